/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The caller's thread directs: it runs one scene after the other and waits for the end of each.
 * Only then it reads what the loops' threads wrote.
 */
#include "support/loop/mixed_load.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include <weir/error.h>
#include <weir/timer.h>

#include "loop/loop.h"
#include "os/random.h"
#include "os/thread.h"
#include "support/executor/call_counter.h"
#include "support/loop/sockets.h"
#include "support/loop/workload.h"
#include "support/memory.h"
#include "support/timeout.h"

#define LOOPS 2
#define SUBMITTERS 2
#define WORKLOADS 4
#define ALARMS 8
#define REST_EVERY 4 /* scenes */
#define RESTS_MIN 2
#define FAILURE_EVERY 8          /* the same */
#define BURST_MAX 64             /* tasks */
#define BACKLOG_MAX 256          /* the same: pools keep memory that a backlog once needed */
#define GROWTH_BYTES (16u << 20) /* resident memory that does not count as growth */
#define GROWTH_BLOCKS 1024       /* the same for blocks: pools are not equally full in each pause */

struct submitter {
    weir__thread thread;
    weir__random random;
    uint64_t submitted;
    bool refused;
};

struct act {
    weir_task task;
    weir_executor *loop;
    struct workload *workload;
};

struct alarm {
    int64_t due_ns;
    bool early;
};

static struct {
    weir_group *group;
    weir__random random;
    struct act acts[WORKLOADS];
    struct alarm alarms[ALARMS];
    struct call_counter over; /* workloads and alarms of the scene */
    bool has_failed;          /* a backend, in this scene */
    struct submitter submitters[SUBMITTERS];
    _Atomic uint64_t tasks;
    _Atomic bool quiet; /* submitters pause */
    _Atomic bool ended; /* or end */
    _Atomic int resting;
} town;

static uint64_t draw(uint64_t limit)
{
    return weir__random_below(&town.random, limit);
}

static weir_executor *any_loop(weir__random *random)
{
    return weir_group_at(town.group, weir__random_below(random, LOOPS));
}

/* ---- tasks from other threads ---- */

static void count_task(void *arg, int status)
{
    (void)arg;
    (void)status;
    atomic_fetch_add_explicit(&town.tasks, 1, memory_order_relaxed);
}

static void submit_burst(struct submitter *submitter)
{
    uint64_t count = weir__random_below(&submitter->random, BURST_MAX);
    weir_executor *loop = any_loop(&submitter->random);

    for (uint64_t i = 0; i < count && weir_executor_pending(loop) < BACKLOG_MAX; i++) {
        submitter->refused |= weir_execute(loop, count_task, NULL) < 0;
        submitter->submitted++;
    }
}

static void rest(void)
{
    atomic_fetch_add(&town.resting, 1);
    while (atomic_load(&town.quiet) && !atomic_load(&town.ended))
        weir__thread_sleep(weir_us(100));
    atomic_fetch_sub(&town.resting, 1);
}

static void submit_bursts(void *arg)
{
    struct submitter *submitter = arg;

    while (!atomic_load(&town.ended)) {
        submit_burst(submitter);
        weir__thread_sleep(weir_us((int64_t)weir__random_below(&submitter->random, 300)));
        if (atomic_load(&town.quiet))
            rest();
    }
}

/* ---- a scene ---- */

static void on_over(void *arg)
{
    call_counter_add(arg);
}

static void start_act(void *arg, int status)
{
    struct act *act = arg;

    (void)status;
    workload_start(act->workload, weir__loop_io(act->loop), on_over, &town.over);
}

static const char *begin_acts(void)
{
    for (int i = 0; i < WORKLOADS; i++) {
        struct act *act = &town.acts[i];

        act->loop = any_loop(&town.random);
        act->workload = workload_open();
        weir_task_init(&act->task, start_act, act);
        if (weir_execute_task(act->loop, &act->task) < 0)
            return "a loop takes no tasks";
    }
    return NULL;
}

static void on_alarm(void *arg, int status)
{
    struct alarm *alarm = arg;

    alarm->early = status == 0 && weir__monotonic_now() < alarm->due_ns;
    call_counter_add(&town.over);
}

static const char *set_alarms(void)
{
    for (int i = 0; i < ALARMS; i++) {
        int64_t delay_ns = (int64_t)draw((uint64_t)weir_ms(3));

        town.alarms[i] = (struct alarm){.due_ns = weir__monotonic_now() + delay_ns};
        if (weir_schedule(any_loop(&town.random), delay_ns, on_alarm, &town.alarms[i], NULL) < 0)
            return "a timer cannot be scheduled";
    }
    return NULL;
}

/* As if the last wait had failed. */
static void break_backend(void *arg, int status)
{
    (void)status;
    weir__loop_of(arg)->health.err = -EIO;
}

static const char *await_end_of_scene(void)
{
    int64_t end_ns = weir__monotonic_now() + TEST_TIMEOUT_NS;

    while (!call_counter_await(&town.over, WORKLOADS + ALARMS))
        if (weir__monotonic_now() > end_ns)
            return "a workload hangs, or a timer";
    for (int i = 0; i < ALARMS; i++)
        if (town.alarms[i].early)
            return "a timer was early";
    return NULL;
}

static const char *end_acts(void)
{
    const char *fault = NULL;

    for (int i = 0; i < WORKLOADS; i++) {
        struct workload *workload = town.acts[i].workload;
        int err = workload_error(workload);

        if (fault == NULL)
            fault = workload_fault(workload);
        if (fault == NULL && err != 0 && !(town.has_failed && err == WEIR_EREBUILT))
            fault = weir_error_text(err);
        workload_close(workload);
    }
    return fault;
}

static const char *play_scene(struct mixed_load *load)
{
    const char *fault;

    town.over = (struct call_counter){0};
    town.has_failed = draw(FAILURE_EVERY) == 0;
    fault = begin_acts();
    if (fault == NULL)
        fault = set_alarms();
    if (fault == NULL && town.has_failed) {
        weir_executor *loop = any_loop(&town.random);

        if (weir_execute(loop, break_backend, loop) < 0)
            fault = "a loop takes no tasks";
    }
    if (fault == NULL)
        fault = await_end_of_scene();
    if (fault == NULL)
        fault = end_acts();
    load->workloads += WORKLOADS;
    load->timers += ALARMS;
    load->failures += town.has_failed;
    return fault;
}

/* ---- when all is quiet ---- */

static size_t resident_bytes(void)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");

    if (file == NULL)
        return 0;
    if (fscanf(file, "%*u %lu", &pages) != 1)
        pages = 0;
    (void)fclose(file);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static size_t greater(size_t a, size_t b)
{
    return a > b ? a : b;
}

static void note_footprint(struct footprint *footprint)
{
    footprint->resident = greater(footprint->resident, resident_bytes());
    footprint->descriptors = greater(footprint->descriptors, descriptors_open());
    footprint->blocks = greater(footprint->blocks, test_memory_live());
}

/* Deferred by a loop that still has tasks or handles. */
static bool suspend(weir_executor *loop)
{
    int64_t end_ns = weir__monotonic_now() + TEST_TIMEOUT_NS;

    (void)weir_executor_suspend(loop);
    while (weir_executor_state(loop) != WEIR_EXECUTOR_SUSPENDED &&
           weir_executor_state(loop) != WEIR_EXECUTOR_NOT_STARTED) {
        if (weir__monotonic_now() > end_ns)
            return false;
        weir__thread_yield();
    }
    return true;
}

static const char *take_a_rest(struct mixed_load *load, bool late)
{
    struct footprint *footprint = late && load->suspensions > 0 ? &load->late : &load->early;
    bool suspended = true;

    atomic_store(&town.quiet, true);
    while (atomic_load(&town.resting) < SUBMITTERS)
        weir__thread_yield();
    for (size_t i = 0; i < LOOPS; i++)
        suspended = suspended && suspend(weir_group_at(town.group, i));
    if (!suspended)
        return "a loop that has nothing is not suspended";
    note_footprint(footprint);
    load->suspensions++;
    load->tasks = atomic_load(&town.tasks);
    if (load->report != NULL)
        load->report(load);
    atomic_store(&town.quiet, false);
    return NULL;
}

static const char *compare_footprints(const struct mixed_load *load)
{
    const struct footprint *early = &load->early, *late = &load->late;

    if (late->descriptors > early->descriptors)
        return "there are more and more descriptors";
    if (late->blocks > early->blocks + GROWTH_BLOCKS)
        return "there are more and more blocks of memory";
#ifndef __SANITIZE_ADDRESS__ /* its quarantine keeps growing */
    if (late->resident > early->resident + early->resident / 10 + GROWTH_BYTES)
        return "the process becomes larger and larger";
#endif
    return NULL;
}

/* ---- the whole ---- */

static const char *begin(const struct mixed_load *load)
{
    weir__random_init(&town.random, load->seed);
    atomic_store(&town.tasks, 0);
    atomic_store(&town.quiet, false);
    atomic_store(&town.ended, false);
    if (weir_group_create(WEIR_GROUP_OPTIONS(.threads = LOOPS, .io = load->backend->io),
                          &town.group) < 0)
        return "the group cannot be made";
    for (int i = 0; i < SUBMITTERS; i++) {
        struct submitter *submitter = &town.submitters[i];

        *submitter = (struct submitter){0};
        weir__random_init(&submitter->random, load->seed + 1 + (uint64_t)i);
        if (weir__thread_start("submitter", submit_bursts, submitter, &submitter->thread) < 0)
            return "a thread cannot be started";
    }
    return NULL;
}

static const char *play(struct mixed_load *load)
{
    int64_t begin_ns = weir__monotonic_now(), played_ns;
    const char *fault = NULL;
    int scene = 0;

    do {
        played_ns = weir__monotonic_now() - begin_ns;
        fault = play_scene(load);
        if (fault == NULL && ++scene % REST_EVERY == 0)
            fault = take_a_rest(load, played_ns > load->duration_ns / 2);
    } while (fault == NULL && (played_ns < load->duration_ns || load->suspensions < RESTS_MIN));
    return fault;
}

static const char *end(struct mixed_load *load)
{
    uint64_t submitted = 0;
    bool refused = false;

    atomic_store(&town.ended, true);
    for (int i = 0; i < SUBMITTERS; i++) {
        weir__thread_join(&town.submitters[i].thread);
        submitted += town.submitters[i].submitted;
        refused = refused || town.submitters[i].refused;
    }
    if (weir_group_shutdown(town.group, 0, TEST_TIMEOUT_NS) < 0 ||
        weir_group_await_termination(town.group, TEST_TIMEOUT_NS) < 0)
        return "the loops do not end";
    weir_group_release(town.group);
    load->tasks = atomic_load(&town.tasks);
    return refused || load->tasks != submitted ? "a task was refused or lost" : NULL;
}

/* After a fault everything is left as it is: the program ends. */
const char *mixed_load_run(struct mixed_load *load)
{
    const char *fault = begin(load);

    if (fault == NULL)
        fault = play(load);
    if (fault == NULL)
        fault = end(load);
    if (fault == NULL)
        fault = compare_footprints(load);
    return fault;
}
