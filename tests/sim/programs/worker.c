/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Worlds in worker processes, one per core. A worker runs one seed after the other and says in
 * shared memory where it is; a failed run spoils it, so it ends, and the parent starts another. The
 * parent itself runs no world: it can still fork for the report.
 */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <weir/error.h>

#include "sim/programs/runner.h"

#define MAX_JOBS 256
#define MAX_FAILURES 20 /* with --keep-going */
#define POLL_NS 10000000
#define REPEATED 8 /* seeds that a worker repeats in reverse order */

struct slot {
    _Atomic uint64_t seed;
    _Atomic uint64_t begun_ms; /* real time; 0: between two seeds */
    _Atomic uint64_t done, uring, events;
    _Atomic int64_t virtual_ns;
    char failure[512];
};

struct shared {
    _Atomic uint64_t next;
    struct slot slots[MAX_JOBS];
};

struct crew {
    const sim_program *program;
    const sim_command *command;
    struct shared *shared;
    uint64_t *hashes; /* shared; by seed. NULL: not wanted */
    pid_t pids[MAX_JOBS];
    unsigned jobs, alive;
    uint64_t failures;
    double begin;
    const char *pass;
};

double sim_real_seconds(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static uint64_t real_ms(void)
{
    return (uint64_t)(sim_real_seconds() * 1e3);
}

static void *share(size_t size)
{
    void *memory =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (memory == MAP_FAILED) {
        perror("sim: mmap");
        exit(2);
    }
    return memory;
}

/* ---- a worker ---- */

static void fail(struct slot *slot, const char *text)
{
    (void)snprintf(slot->failure, sizeof(slot->failure), "%s", text);
    _exit(1);
}

static uint64_t run_seed(const struct crew *crew, struct slot *slot, uint64_t seed)
{
    weir_sim_options options = sim_options_for(crew->program, seed, crew->command);
    weir_sim_result result = {0};
    uint64_t hash;
    int err;

    atomic_store(&slot->seed, seed);
    atomic_store(&slot->begun_ms, real_ms());
    err = weir_sim_run(&options, crew->program->run, NULL, &result);
    if (err < 0)
        fail(slot, result.failure != NULL ? result.failure : weir_error_text(err));
    atomic_store(&slot->begun_ms, 0);
    atomic_fetch_add(&slot->events, result.events);
    atomic_fetch_add(&slot->virtual_ns, result.time_ns);
    hash = result.hash;
    weir_sim_result_free(&result);
    return hash;
}

static void note_done(const struct crew *crew, struct slot *slot, uint64_t seed)
{
    atomic_fetch_add(&slot->done, 1);
    if (sim_options_for(crew->program, seed, crew->command).uring)
        atomic_fetch_add(&slot->uring, 1);
}

/* Runs some seeds, and again in reverse order: the worlds in between must leave nothing behind. */
static void repeat_seeds(const struct crew *crew, struct slot *slot, uint64_t from, uint64_t to)
{
    for (uint64_t seed = from; seed <= to; seed++) {
        crew->hashes[seed - crew->command->from] = run_seed(crew, slot, seed);
        note_done(crew, slot, seed);
    }
    for (uint64_t seed = to; seed >= from && seed > 0; seed--)
        if (run_seed(crew, slot, seed) != crew->hashes[seed - crew->command->from])
            fail(slot, "another hash when it was repeated in the same process");
}

static _Noreturn void worker_main(const struct crew *crew, struct slot *slot)
{
    const sim_command *command = crew->command;
    bool repeats = command->repeat && crew->pass != NULL;
    uint64_t count = repeats ? REPEATED : 1, from;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    while ((from = atomic_fetch_add(&crew->shared->next, count)) <= command->to) {
        uint64_t to = from + count - 1 < command->to ? from + count - 1 : command->to;

        if (repeats) {
            repeat_seeds(crew, slot, from, to);
        } else {
            uint64_t hash = run_seed(crew, slot, from);

            if (crew->hashes != NULL)
                crew->hashes[from - command->from] = hash;
            note_done(crew, slot, from);
        }
    }
    (void)fflush(NULL);
    _exit(0);
}

static void start_worker(struct crew *crew, unsigned index)
{
    (void)fflush(NULL);
    crew->pids[index] = fork();
    if (crew->pids[index] == 0)
        worker_main(crew, &crew->shared->slots[index]);
    if (crew->pids[index] < 0) {
        perror("sim: fork");
        exit(2);
    }
    crew->alive++;
}

/* ---- the parent ---- */

static void sum(const struct crew *crew, sim_summary *ret_summary)
{
    *ret_summary = (sim_summary){.failures = crew->failures};
    for (unsigned i = 0; i < crew->jobs; i++) {
        struct slot *slot = &crew->shared->slots[i];

        ret_summary->seeds += atomic_load(&slot->done);
        ret_summary->uring += atomic_load(&slot->uring);
        ret_summary->events += atomic_load(&slot->events);
        ret_summary->virtual_ns += atomic_load(&slot->virtual_ns);
    }
    ret_summary->seconds = sim_real_seconds() - crew->begin;
}

static void show_progress(const struct crew *crew, bool last)
{
    static uint64_t shown_ms;
    sim_summary now;

    if (!isatty(STDERR_FILENO) || (!last && real_ms() - shown_ms < 250))
        return;
    shown_ms = real_ms();
    sum(crew, &now);
    if (last)
        (void)fprintf(stderr, "\r\033[K");
    else
        (void)fprintf(
            stderr, "\r%s%s: %llu of %llu seeds, %.0f per second, %.0f virtual s per second\033[K",
            crew->program->name, crew->pass != NULL ? crew->pass : "",
            (unsigned long long)now.seeds,
            (unsigned long long)(crew->command->to - crew->command->from + 1),
            (double)now.seeds / now.seconds, (double)now.virtual_ns / 1e9 / now.seconds);
}

static void on_failure(struct crew *crew, struct slot *slot, int status)
{
    char text[64];

    crew->failures++;
    if (slot->failure[0] == '\0') {
        if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
            (void)snprintf(text, sizeof(text), "no end within %u s", crew->command->timeout);
        else if (WIFSIGNALED(status))
            (void)snprintf(text, sizeof(text), "crash: signal %d (%s)", WTERMSIG(status),
                           strsignal(WTERMSIG(status)));
        else
            (void)snprintf(text, sizeof(text), "crash: status %d", WEXITSTATUS(status));
        (void)snprintf(slot->failure, sizeof(slot->failure), "%s", text);
    }
    show_progress(crew, true);
    sim_report_failure(crew->program, atomic_load(&slot->seed), slot->failure, crew->command);
    slot->failure[0] = '\0';
    atomic_store(&slot->begun_ms, 0);
    note_done(crew, slot, atomic_load(&slot->seed));
    if (!crew->command->keep_going || crew->failures >= MAX_FAILURES)
        atomic_store(&crew->shared->next, UINT64_MAX / 2); /* the others end after their seed */
}

/* Collects workers that have ended, and kills those that hang. */
static void look_after(struct crew *crew)
{
    for (unsigned i = 0; i < crew->jobs; i++) {
        struct slot *slot = &crew->shared->slots[i];
        uint64_t begun_ms = atomic_load(&slot->begun_ms);
        int status;

        if (crew->pids[i] == 0)
            continue;
        if (begun_ms != 0 && real_ms() > begun_ms + (uint64_t)crew->command->timeout * 1000)
            (void)kill(crew->pids[i], SIGKILL);
        if (waitpid(crew->pids[i], &status, WNOHANG) != crew->pids[i])
            continue;
        crew->pids[i] = 0;
        crew->alive--;
        if (status == 0)
            continue;
        on_failure(crew, slot, status);
        start_worker(crew, i); /* ends at once if no seed is left */
    }
}

static void run_pass(struct crew *crew)
{
    const struct timespec pause = {0, POLL_NS};

    atomic_store(&crew->shared->next, crew->command->from);
    for (unsigned i = 0; i < crew->jobs; i++)
        start_worker(crew, i);
    while (crew->alive > 0) {
        (void)nanosleep(&pause, NULL);
        look_after(crew);
        show_progress(crew, false);
    }
    show_progress(crew, true);
}

static uint64_t combine(const uint64_t *hashes, uint64_t count)
{
    uint64_t hash = 0;

    for (uint64_t i = 0; i < count; i++) {
        hash = (hash ^ hashes[i]) * UINT64_C(0xd6e8feb86659fd93);
        hash ^= hash >> 32;
    }
    return hash;
}

/* Another pass, by new processes, gives the same hashes. */
static void compare_with_other_processes(struct crew *crew, uint64_t count)
{
    uint64_t *first = crew->hashes;

    crew->hashes = share(count * sizeof(*crew->hashes));
    crew->pass = NULL;
    run_pass(crew);
    for (uint64_t i = 0; i < count && crew->failures < MAX_FAILURES; i++)
        if (first[i] != crew->hashes[i]) {
            crew->failures++;
            printf("%s: seed %llu FAILED: another hash in another process\n", crew->program->name,
                   (unsigned long long)(crew->command->from + i));
        }
    (void)munmap(first, count * sizeof(*first));
}

bool sim_run_seeds(const sim_program *program, const sim_command *command, sim_summary *ret_summary)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    uint64_t count = command->to - command->from + 1;
    struct crew crew = {.program = program, .command = command, .begin = sim_real_seconds()};

    crew.jobs = command->jobs > 0 ? command->jobs : cores > 0 ? (unsigned)cores : 1;
    crew.jobs = crew.jobs < MAX_JOBS ? crew.jobs : MAX_JOBS;
    crew.jobs = crew.jobs < count ? crew.jobs : (unsigned)count;
    crew.shared = share(sizeof(*crew.shared));
    if (command->hash || command->repeat)
        crew.hashes = share(count * sizeof(*crew.hashes));
    crew.pass = command->repeat ? " (repeats)" : NULL;
    run_pass(&crew);
    if (command->repeat && crew.failures == 0)
        compare_with_other_processes(&crew, count);
    sum(&crew, ret_summary);
    if (crew.hashes != NULL) {
        ret_summary->hash = combine(crew.hashes, count);
        for (uint64_t i = 0; command->hashes && i < count; i++)
            printf("%s %llu %016llx\n", program->name, (unsigned long long)(command->from + i),
                   (unsigned long long)crew.hashes[i]);
        (void)munmap(crew.hashes, count * sizeof(*crew.hashes));
    }
    (void)munmap(crew.shared, sizeof(*crew.shared));
    return crew.failures == 0;
}
