/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a world in a child process, which writes its result to a pipe.
 *
 * A child that crashes, or that runs for too long, writes what it knows from its signal handler:
 * the last events and the faults so far are in memory. Handlers must not allocate, so they write
 * the trace line by line, and behind it the stack. If not even that works, the parent makes up a
 * result from the status.
 */
#include "sim/isolated.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <weir/error.h>

#include "sim/sanitizer.h"
#include "sim/world.h"

#define MAX_REAL_NS weir_seconds(30)
#define GRACE_NS weir_seconds(5) /* for the handler of a child that runs for too long */
#define HANDLER_STACK ((size_t)256 * 1024)
#define FRAMES_MAX 40

/* Parts of a result in the pipe: a header, then `length` bytes. */
enum {
    PART_NUMBERS = 1, /* struct numbers; the last part */
    PART_FAILURE,
    PART_TRACE, /* may come in pieces */
    PART_FAULTS,
};

struct part {
    uint32_t kind;
    uint32_t length;
};

struct numbers {
    int result;
    uint64_t hash, events, steps;
    int64_t time_ns;
};

/* ---- the child ---- */

static int child_pipe = -1;
static weir__stack_copy *crash_stack; /* NULL = no memory */

static void write_all(const void *bytes, size_t length)
{
    const char *at = bytes;

    while (length > 0) {
        ssize_t written = write(child_pipe, at, length);

        if (written < 0 && errno != EINTR)
            _exit(2); /* the parent has gone */
        if (written > 0) {
            at += written;
            length -= (size_t)written;
        }
    }
}

static void write_part(uint32_t kind, const void *bytes, size_t length)
{
    const struct part part = {kind, (uint32_t)length};

    if (length == 0)
        return;
    write_all(&part, sizeof(part));
    write_all(bytes, length);
}

static void write_result(int err, const weir_sim_result *result)
{
    const struct numbers numbers = {err, result->hash, result->events, result->steps,
                                    result->time_ns};

    if (result->failure != NULL)
        write_part(PART_FAILURE, result->failure, strlen(result->failure));
    if (result->trace != NULL)
        write_part(PART_TRACE, result->trace, strlen(result->trace));
    write_part(PART_FAULTS, result->faults, result->fault_count * sizeof(*result->faults));
    write_part(PART_NUMBERS, &numbers, sizeof(numbers));
}

static void write_line(const char *line, void *user_data)
{
    (void)user_data;
    write_part(PART_TRACE, line, strlen(line));
    write_part(PART_TRACE, "\n", 1);
}

/* Of the fiber that was interrupted. Resolving names locks, and reads files: that may fail again in
 * a process that has crashed, so everything else has been written before. */
static void write_stack(const void *context)
{
    const weir__seams *seams = weir__sim->seams;
    const void *frames[FRAMES_MAX], *functions[FRAMES_MAX];
    char line[256], text[200];
    weir__symbol symbol;
    size_t count;

    if (crash_stack == NULL || context == NULL)
        return;
    seams->stack_take(crash_stack, context);
    count = seams->stack_unwind(crash_stack, frames, functions, FRAMES_MAX);
    for (size_t i = 0; i < count; i++) {
        seams->symbol_find(frames[i], &symbol);
        (void)seams->symbol_describe(&symbol, text, sizeof(text));
        (void)snprintf(line, sizeof(line), "  #%zu %s", i, text);
        write_line(line, NULL);
    }
}

/* Writes the result of a run that cannot continue, without allocating. `context` is that of a
 * signal handler; NULL = there is none. */
static void write_state(const char *failure, const void *context)
{
    const weir_sim *sim = weir__sim;
    weir_sim_result result = {0};

    if (sim == NULL || child_pipe < 0)
        return;
    write_part(PART_FAILURE, failure, strlen(failure));
    if (sim->trace != NULL)
        weir__sim_trace_each(write_line, NULL);
    write_stack(context);
    result.hash = sim->hash;
    result.events = sim->event_total;
    result.steps = sim->steps;
    result.time_ns = sim->now_ns - weir_seconds(1);
    result.faults = sim->faults;
    result.fault_count = sim->fault_count;
    write_result(WEIR_ESIM, &result);
}

/* sigdescr_np is unknown to musl, and strsignal may allocate. */
static const char *signal_name(int number)
{
    switch (number) {
    case SIGSEGV:
        return "Segmentation fault";
    case SIGABRT:
        return "Aborted";
    case SIGBUS:
        return "Bus error";
    case SIGFPE:
        return "Floating point exception";
    case SIGILL:
        return "Illegal instruction";
    default:
        return "unknown";
    }
}

static void on_crash(int number, siginfo_t *info, void *context)
{
    char text[96];

    (void)info;
    if (number == SIGALRM)
        (void)snprintf(text, sizeof(text), "no end: the run takes too much real time");
    else
        (void)snprintf(text, sizeof(text), "crash: signal %d (%s)", number, signal_name(number));
    write_state(text, context);
    _exit(1);
}

#if WEIR__SIM_ASAN
static void on_sanitizer_report(void)
{
    write_state("crash: the sanitizer has reported an error, see stderr", NULL);
}
#endif

/* Handlers run on a stack of their own: the crash may be the overflow of a fiber's. */
static void install_handlers(void)
{
    static const int crashes[] = {SIGABRT, SIGALRM, SIGTRAP, SIGFPE, SIGILL, SIGSEGV, SIGBUS};
    const size_t count = WEIR__SIM_ASAN ? 3 : sizeof(crashes) / sizeof(crashes[0]); /* it reports */
    struct sigaction action = {.sa_sigaction = on_crash,
                               .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESETHAND};
    const stack_t stack = {.ss_sp = malloc(HANDLER_STACK), .ss_size = HANDLER_STACK};

#if WEIR__SIM_ASAN
    __sanitizer_set_death_callback(on_sanitizer_report);
#endif
    crash_stack = malloc(sizeof(*crash_stack));
    if (stack.ss_sp == NULL || sigaltstack(&stack, NULL) < 0)
        return;
    (void)sigfillset(&action.sa_mask);
    for (size_t i = 0; i < count; i++)
        (void)sigaction(crashes[i], &action, NULL);
}

static void limit_time(int64_t duration_ns)
{
    const struct timespec value = {duration_ns / 1000000000, duration_ns % 1000000000};
    const struct itimerspec timer = {.it_value = value};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
    sigset_t set;
    timer_t id;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGALRM);
    (void)sigprocmask(SIG_UNBLOCK, &set, NULL);
    if (timer_create(CLOCK_MONOTONIC, &event, &id) == 0)
        (void)timer_settime(id, 0, &timer, NULL);
}

static _Noreturn void child_main(const weir_sim_options *options, weir_sim_program_fn *program,
                                 void *arg, int64_t max_real_ns)
{
    weir_sim_result result = {0};
    int err;

    install_handlers();
    limit_time(max_real_ns);
    err = weir_sim_run(options, program, arg, &result);
    (void)fflush(NULL); /* what on_trace has printed */
    write_result(err, &result);
    _exit(0);
}

/* ---- the parent ---- */

static int64_t real_now(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Bytes from the child, until its end. */
struct answer {
    char *bytes;
    size_t length, size;
};

static int make_room(struct answer *answer)
{
    char *bytes;

    if (answer->length < answer->size)
        return 0;
    bytes = realloc(answer->bytes, answer->size * 2 + 65536);
    if (bytes == NULL)
        return -ENOMEM;
    answer->bytes = bytes;
    answer->size = answer->size * 2 + 65536;
    return 0;
}

/* Reads until the child closes its end. False if it has not by the deadline. */
static bool read_all(int from, int64_t deadline_ns, struct answer *answer)
{
    struct pollfd poller = {.fd = from, .events = POLLIN};

    while (make_room(answer) == 0) {
        int64_t left_ns = deadline_ns - real_now();
        const struct timespec timeout = {left_ns / 1000000000, left_ns % 1000000000};
        ssize_t length;

        if (left_ns <= 0)
            return false;
        if (ppoll(&poller, 1, &timeout, NULL) <= 0)
            continue;
        length = read(from, answer->bytes + answer->length, answer->size - answer->length);
        if (length == 0)
            return true;
        if (length > 0)
            answer->length += (size_t)length;
    }
    return true;
}

static char *append(char *text, const char *more, size_t length)
{
    size_t before = text != NULL ? strlen(text) : 0;
    char *grown = realloc(text, before + length + 1);

    if (grown == NULL)
        return text;
    memcpy(grown + before, more, length);
    grown[before + length] = '\0';
    return grown;
}

static void take_part(const struct part *part, const char *bytes, weir_sim_result *result, int *err)
{
    struct numbers numbers;

    switch (part->kind) {
    case PART_FAILURE:
        result->failure = append(result->failure, bytes, part->length);
        break;
    case PART_TRACE:
        result->trace = append(result->trace, bytes, part->length);
        break;
    case PART_FAULTS:
        free(result->faults);
        result->faults = malloc(part->length);
        if (result->faults != NULL) {
            memcpy(result->faults, bytes, part->length);
            result->fault_count = part->length / sizeof(*result->faults);
        }
        break;
    default:
        memcpy(&numbers, bytes, sizeof(numbers));
        result->hash = numbers.hash;
        result->events = numbers.events;
        result->steps = numbers.steps;
        result->time_ns = numbers.time_ns;
        *err = numbers.result;
        break;
    }
}

/* Returns the child's result, or WEIR_ESIM with a failure made from its status. */
static int take_answer(const struct answer *answer, int status, weir_sim_result *ret_result)
{
    const size_t header = sizeof(struct part);
    int err = 1; /* no last part yet */
    char *text = NULL;
    int length;

    for (size_t at = 0; err == 1 && at + header <= answer->length;) {
        struct part part;

        memcpy(&part, answer->bytes + at, header);
        at += header;
        if (part.length > answer->length - at)
            break;
        take_part(&part, answer->bytes + at, ret_result, &err);
        at += part.length;
    }
    if (err != 1)
        return err;
    if (WIFSIGNALED(status))
        length = asprintf(&text, "crash: signal %d", WTERMSIG(status));
    else
        length = asprintf(&text, "crash: status %d before the end of the run", WEXITSTATUS(status));
    if (ret_result->failure == NULL && length >= 0)
        ret_result->failure = text;
    else if (length >= 0)
        free(text);
    return WEIR_ESIM;
}

static int wait_for(pid_t child)
{
    int status = 0;

    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    return status;
}

int weir__sim_run_isolated(const weir_sim_options *options, weir_sim_program_fn *program, void *arg,
                           weir_sim_result *ret_result)
{
    weir_sim_options own = {0};
    struct answer answer = {0};
    int ends[2], status, err;
    int64_t max_real_ns;
    pid_t child;

    memcpy(&own, options, options->size < sizeof(own) ? options->size : sizeof(own));
    own.size = sizeof(own);
    own.isolated = false;
    max_real_ns = own.max_real_ns > 0 ? own.max_real_ns : MAX_REAL_NS;
    *ret_result = (weir_sim_result){0};
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    (void)fflush(NULL); /* or the child would print it again */
    child = fork();
    if (child == 0) {
        child_pipe = ends[1];
        child_main(&own, program, arg, max_real_ns);
    }
    err = -errno;
    (void)close(ends[1]);
    if (child > 0) {
        if (!read_all(ends[0], real_now() + max_real_ns + GRACE_NS, &answer))
            (void)kill(child, SIGKILL);
        status = wait_for(child);
        err = take_answer(&answer, status, ret_result);
    }
    (void)close(ends[0]);
    free(answer.bytes);
    return err;
}
