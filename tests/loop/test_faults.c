/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each system call of a backend fails with each of its possible errors, and each allocation in
 * turn, while a workload runs (support/loop/workload.h): on a backend alone, and on a loop.
 *
 * Whatever fails, the workload ends within bounds, and every handle is detached. A part of it
 * continues, or gets exactly this error. No memory and no descriptor is leaked.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include <weir/error.h>
#include <weir/thread.h>
#include <weir/watch.h>

#include "loop/loop.h"
#include "support/executor/call_counter.h"
#include "support/executor/global_executor.h"
#include "support/executor/group.h"
#include "support/executor/log_capture.h"
#include "support/loop/faults.h"
#include "support/loop/host.h"
#include "support/loop/suite.h"
#include "support/loop/workload.h"
#include "support/memory.h"

#define A_WHILE 1000 /* calls in a row that fail: nothing is tried as often */
#define A_FEW 3      /* the same of what costs a rebuild each */

/* Under slow sanitizers, only every n-th error and call. */
#if defined(__SANITIZE_THREAD__)
#define STRIDE 61
#elif defined(__SANITIZE_ADDRESS__)
#define STRIDE 9
#else
#define STRIDE 1
#endif

#define PLACES 50 /* calls of one kind to fail, at the most, or a little more */
#define ACTS 2

/* One run of the workload, a suspension, and another run; and what came of it. */
struct play {
    const struct backend *backend;
    int err; /* of making the backend or the loop */
    unsigned rebuilds;
    struct workload *workloads[ACTS]; /* NULL = it was never started */
};

typedef void play_fn(struct play *play);

/* What fails now, for the report. */
static char plight[128];

static void fail_if_late(const struct play *play, int act, int64_t begin_ns)
{
    char state[1024];

    if (weir__monotonic_now() - begin_ns < TEST_TIMEOUT_NS)
        return;
    workload_describe(play->workloads[act], state, sizeof(state));
    fail_msg("%s: %s: the workload hangs: %s", play->backend->name, plight, state);
}

/* ---- over a backend alone ---- */

static void on_over(void *arg)
{
    *(bool *)arg = true;
}

static void drive(struct play *play, int act, weir__io *io)
{
    int64_t begin_ns = weir__monotonic_now();
    bool over = false, more = false;

    play->workloads[act] = workload_open();
    workload_start(play->workloads[act], io, on_over, &over);
    while (!over) {
        int events = weir__io_wait(io, more ? 0 : weir__monotonic_now() + weir_ms(20));

        if (events < 0 || io->broken) {
            play->rebuilds++;
            (void)weir__io_rebuild(io);
        }
        more = weir__io_dispatch(io, WEIR_NEVER);
        fail_if_late(play, act, begin_ns);
    }
    assert_int_equal(atomic_load(&io->stats.handles), 0);
}

static void play_on_backend(struct play *play)
{
    char reason[256] = "";
    weir__io *io;

    play->err = backend_create(play->backend, &io, reason, sizeof(reason));
    if (play->err < 0) {
        assert_true(reason[0] != '\0');
        return;
    }
    for (int act = 0; act < ACTS && play->err == 0; act++) {
        if (act > 0)
            weir__io_suspend(io);
        play->err = weir__io_begin(io);
        if (play->err == 0)
            drive(play, act, io);
    }
    weir__io_destroy(io);
}

/* ---- over a loop ---- */

struct stage {
    weir_executor *loop;
    struct workload *workload;
    struct call_counter over;
};

static void on_over_on_loop(void *arg)
{
    call_counter_add(arg);
}

static void start_on_loop(void *arg, int status)
{
    struct stage *stage = arg;

    (void)status;
    workload_start(stage->workload, weir__loop_io(stage->loop), on_over_on_loop, &stage->over);
}

/* Its thread may have to be started, which takes memory: one allocation fails, not two. */
static void act_on_loop(struct play *play, int act, weir_executor *loop)
{
    int64_t begin_ns = weir__monotonic_now();
    struct stage stage = {.loop = loop, .workload = workload_open()};
    weir_task task;
    int err;

    play->workloads[act] = stage.workload;
    weir_task_init(&task, start_on_loop, &stage);
    err = weir_execute_task(loop, &task);
    if (err == -ENOMEM && test_memory_failed())
        err = weir_execute_task(loop, &task);
    assert_int_equal(err, 0);
    while (!call_counter_await(&stage.over, 1))
        fail_if_late(play, act, begin_ns);
}

static void suspend(const struct play *play, weir_executor *loop)
{
    int64_t end_ns = weir__monotonic_now() + TEST_TIMEOUT_NS;

    assert_int_equal(weir_executor_suspend(loop), 0);
    while (weir_executor_state(loop) != WEIR_EXECUTOR_SUSPENDED) {
        if (weir__monotonic_now() > end_ns)
            fail_msg("%s: %s: the loop is not suspended", play->backend->name, plight);
        weir__thread_yield();
    }
}

static void play_on_loop(struct play *play)
{
    weir_loop_stats stats;
    weir_executor *loop;
    weir_group *group;

    play->err = weir_group_create(
        WEIR_GROUP_OPTIONS(.threads = 1, .name = "stage", .io = play->backend->io), &group);
    if (play->err < 0) {
        assert_true(log_capture_count(WEIR_LOG_ERROR) > 0 || play->err == -ENOMEM);
        return;
    }
    loop = weir_group_at(group, 0);
    for (int act = 0; act < ACTS; act++) {
        if (act > 0)
            suspend(play, loop);
        act_on_loop(play, act, loop);
    }
    assert_int_equal(weir_loop_read_stats(loop, &stats), 0);
    assert_int_equal(stats.handles, 0);
    play->rebuilds = (unsigned)stats.rebuilds;
    end_group(group);
}

/* ---- what must hold ---- */

static void expect_the_same(const struct backend *backend, const char *what, size_t before,
                            size_t after)
{
    if (after != before)
        fail_msg("%s: %s: there were %zu %s, and there are %zu", backend->name, plight, before,
                 what, after);
}

/* The error that a workload got; 0 if it is complete or was never started. */
static int judge(const struct play *play, int act)
{
    struct workload *workload = play->workloads[act];
    int err;

    if (workload == NULL)
        return 0;
    if (workload_fault(workload) != NULL)
        fail_msg("%s: %s: %s", play->backend->name, plight, workload_fault(workload));
    err = workload_error(workload);
    workload_close(workload);
    return err;
}

/* All but the failure itself. Returns the first error reported, 0 if all is complete. */
static int play_once(const struct backend *backend, play_fn *play_it)
{
    size_t descriptors = descriptors_open(), blocks = test_memory_live();
    struct play play = {.backend = backend};
    int err;

    log_capture_start();
    play_it(&play);
    faults_end();
    err = play.err;
    for (int act = 0; act < ACTS; act++) {
        int act_err = judge(&play, act);

        err = err != 0 ? err : act_err;
    }
    if (play.rebuilds > 0 && play_it == play_on_loop && log_capture_count(WEIR_LOG_ERROR) == 0)
        fail_msg("%s: %s: there is nothing in the log", backend->name, plight);
    global_executor_stop();
    weir_locals_remove_all();
    expect_the_same(backend, "blocks of memory", blocks, test_memory_live());
    expect_the_same(backend, "descriptors", descriptors, descriptors_open());
    return err;
}

/* ---- system calls ---- */

/* A failure of the backend itself: it is made anew, and a ring may lose handles by that. */
static bool is_of_backend(enum fault_call call)
{
    return call == FAULT_EPOLL_WAIT || call == FAULT_EPOLL_PWAIT2 || call == FAULT_PPOLL ||
           (call >= FAULT_RING_SETUP && call <= FAULT_RING_BUFFERS);
}

/* If no handle is affected, the workload completes. */
static bool must_go_on(enum fault_call call, int err)
{
    return err == EINTR || call == FAULT_CLOSE || call == FAULT_READ || call == FAULT_WRITE;
}

/* Whether a wake-up is needed depends on timing. */
static bool is_certain(enum fault_call call)
{
    return call != FAULT_READ && call != FAULT_WRITE;
}

struct trial {
    enum fault_call call;
    int err;
    uint64_t n, count; /* the calls that fail */
};

static bool is_explained(const struct trial *trial, int err)
{
    if (err == 0)
        return true;
    if (faults_injected() == 0 || must_go_on(trial->call, trial->err))
        return false;
    return err == -trial->err || (is_of_backend(trial->call) && err == WEIR_EREBUILT);
}

static void try(const struct backend *backend, play_fn *play_it, const struct trial *trial)
{
    int err;

    (void)snprintf(plight, sizeof(plight), "%s fails with %d, from the %u. on, %u times",
                   faults_name(trial->call), trial->err, (unsigned)trial->n,
                   (unsigned)trial->count);
    faults_inject(trial->call, trial->n, trial->count, trial->err);
    err = play_once(backend, play_it);
    if (!is_explained(trial, err))
        fail_msg("%s: %s: the error told is %d", backend->name, plight, err);
    if (trial->n == 1 && is_certain(trial->call) && faults_injected() == 0)
        fail_msg("%s: %s: it was not called", backend->name, plight);
}

/*
 * A ring that can never be entered again may still write into its buffers, which are then left
 * alone for good: that is no leak, but looks like one.
 */
static uint64_t how_many(const struct backend *backend, enum fault_call call)
{
    if (call == FAULT_RING_ENTER && backend->io == WEIR_IO_URING)
        return 1;
    return is_of_backend(call) ? A_FEW : A_WHILE;
}

/* The first call with each error, once and for a while; and each call with one of them. */
static void fail_one_kind(const struct backend *backend, play_fn *play_it, enum fault_call call,
                          uint64_t made)
{
    uint64_t many = how_many(backend, call);
    const int *errors = faults_errors(call);
    size_t count = 0;

    for (; errors[count] != 0; count++) {
        if (count % STRIDE != 0)
            continue;
        try(backend, play_it, &(struct trial){call, errors[count], 1, 1});
        try(backend, play_it, &(struct trial){call, errors[count], 1, many});
    }
    for (uint64_t n = 2; n <= made; n += STRIDE * (1 + made / PLACES))
        try(backend, play_it, &(struct trial){call, errors[n % count], n, 1});
}

static void fail_calls(const struct backend *backend, play_fn *play_it)
{
    uint64_t made[FAULT_COUNT];

    faults_install();
    (void)snprintf(plight, sizeof(plight), "nothing fails");
    assert_int_equal(play_once(backend, play_it), 0);
    for (int call = 0; call < FAULT_COUNT; call++)
        made[call] = faults_calls(call);
    for (int call = 0; call < FAULT_COUNT; call++)
        if (made[call] > 0)
            fail_one_kind(backend, play_it, call, made[call]);
    faults_remove();
}

TEST_EACH_BACKEND(faults, of_each_call_are_reported_or_survived)
{
    fail_calls(driver->backend, play_on_backend);
}

TEST_EACH_BACKEND(faults, of_each_call_are_reported_or_survived_by_a_loop)
{
    fail_calls(driver->backend, play_on_loop);
}

/* ---- allocations ---- */

/* Each of the first, then fewer and fewer: later ones are much alike. */
static void fail_allocations(const struct backend *backend, play_fn *play_it)
{
    bool failed;
    int err;

    faults_install();
    for (unsigned n = 1;; n += 1 + n / 16 * STRIDE) {
        (void)snprintf(plight, sizeof(plight), "allocation %u fails", n);
        test_memory_fail_at(n);
        err = play_once(backend, play_it);
        failed = test_memory_failed();
        test_memory_fail_at(0);
        if (!failed)
            break;
        if (err != 0 && err != -ENOMEM)
            fail_msg("%s: %s: the error told is %d", backend->name, plight, err);
    }
    faults_remove();
}

TEST_EACH_BACKEND(faults, of_each_allocation_are_reported_or_survived)
{
    fail_allocations(driver->backend, play_on_backend);
}

TEST_EACH_BACKEND(faults, of_each_allocation_are_reported_or_survived_by_a_loop)
{
    fail_allocations(driver->backend, play_on_loop);
}

/* ---- signals ---- */

struct reception {
    struct call_counter received;
    struct call_counter closed;
};

static void on_signal(weir_signals *signals, const weir_signal *signal, void *user_data)
{
    struct reception *reception = user_data;

    (void)signals;
    (void)signal;
    call_counter_add(&reception->received);
}

static void on_closed(weir_signals *signals, int err, void *user_data)
{
    struct reception *reception = user_data;

    (void)signals;
    (void)err;
    call_counter_add(&reception->closed);
}

static int receive_signals(weir_executor *loop, struct reception *reception,
                           weir_signals **ret_signals)
{
    *reception = (struct reception){0};
    return weir_signals_create(loop,
                               WEIR_SIGNALS_OPTIONS(.numbers = {SIGUSR1}, .received = on_signal,
                                                    .closed = on_closed, .user_data = reception),
                               ret_signals);
}

/* A loop that polls also reads what wakes it: whichever read fails, the signal is heard. */
TEST_EACH_LOOP(faults, of_signals_are_reported_or_survived)
{
    struct reception reception;
    weir_signals *signals;

    faults_install();
    for (const int *err = faults_errors(FAULT_SIGNALFD); *err != 0; err++) {
        faults_inject(FAULT_SIGNALFD, 1, 1, *err);
        assert_int_equal(receive_signals(host->loop, &reception, &signals), -*err);
    }
    for (const int *err = faults_errors(FAULT_READ); *err != 0; err++) {
        assert_int_equal(receive_signals(host->loop, &reception, &signals), 0);
        faults_inject(FAULT_READ, 1, A_FEW, *err);
        assert_int_equal(kill(getpid(), SIGUSR1), 0);
        assert_true(call_counter_await(&reception.received, 1));
        weir_signals_release(signals);
        assert_true(call_counter_await(&reception.closed, 1));
    }
    host_end(host);
    faults_remove();
}
