/* SPDX-License-Identifier: Apache-2.0 */
/* A loop whose backend fails: it is rebuilt, and no failure ends the loop. */
#include "loop/loop.h"

#include <errno.h>
#include <string.h>

#include <weir/error.h>
#include <weir/timer.h>

#include "os/system.h"
#include "support/executor/log_capture.h"
#include "support/executor/run_on_thread.h"
#include "support/loop/faults.h"
#include "support/loop/fd_event.h"
#include "support/loop/host.h"
#include "support/test.h"

#define FOR_EVER (UINT64_C(1) << 32)

/* What the backend waits by, and what it cannot be made without. */
static enum fault_call wait_of(const struct host *host)
{
    switch (weir_loop_io(host->loop)) {
    case WEIR_IO_EPOLL:
        return FAULT_EPOLL_WAIT;
    case WEIR_IO_POLL:
        return FAULT_PPOLL;
    default:
        return FAULT_RING_ENTER;
    }
}

static uint64_t rebuilds_of(const struct host *host)
{
    weir_loop_stats stats;

    assert_int_equal(weir_loop_read_stats(host->loop, &stats), 0);
    return stats.rebuilds;
}

static void await_rebuilds(const struct host *host, uint64_t count)
{
    while (rebuilds_of(host) < count)
        weir__thread_yield();
}

static void run_one(struct host *host)
{
    struct call_counter counter = {0};

    assert_int_equal(weir_execute(host->loop, call_counter_task, &counter), 0);
    assert_true(call_counter_await(&counter, 1));
}

TEST_EACH_LOOP(loop_rebuild, a_wait_that_fails_is_followed_by_a_rebuild)
{
    struct fd_event event = {0};

    log_capture_start();
    faults_install();
    fd_event_open(&event, host->loop);
    fd_event_trigger(&event);
    assert_true(call_counter_await(&event.triggered, 1));
    faults_inject(wait_of(host), 1, 1, EINVAL);
    run_one(host); /* ends the wait that is under way: the next one fails */
    await_rebuilds(host, 1);
    assert_int_equal(faults_injected(), 1);
    for (uint32_t i = 2; i <= 10; i++) {
        fd_event_trigger(&event);
        assert_true(call_counter_await(&event.triggered, i));
    }
    assert_int_equal(atomic_load(&event.failed.calls), 0);
    assert_int_equal(log_capture_count(WEIR_LOG_ERROR), 1);
    fd_event_close(&event);
    host_end(host);
    faults_remove();
}

/* A handle of which something is in flight that does not end is lost: B 6. */
static void ring_or_lose(struct fd_event *event)
{
    fd_event_trigger(event);
    while (atomic_load(&event->triggered.calls) == 0 && atomic_load(&event->failed.calls) == 0)
        weir__thread_yield();
    if (atomic_load(&event->failed.calls) == 0)
        fd_event_close(event);
    else
        fd_event_free(event);
}

/* Nobody hammers at a backend that does not come back, nor fills the log with it. */
TEST_EACH_LOOP(loop_rebuild, goes_on_with_tasks_and_timers_while_waits_fail)
{
    int64_t start_ns = weir__monotonic_now();
    struct fd_event event = {0};
    struct call_counter timers = {0};
    uint64_t passed_ms;

    log_capture_start();
    faults_install();
    fd_event_open(&event, host->loop);
    faults_inject(wait_of(host), 1, FOR_EVER, EINVAL);
    run_one(host); /* ends the wait that is under way: the next one has no deadline, and fails */
    while (faults_injected() == 0)
        weir__thread_yield();
    for (uint32_t i = 1; i <= 20; i++) {
        run_one(host);
        assert_int_equal(weir_schedule(host->loop, weir_ms(1), call_counter_task, &timers, NULL),
                         0);
        assert_true(call_counter_await(&timers, i));
    }
    passed_ms = (uint64_t)(weir__monotonic_now() - start_ns) / weir_ms(1);
    assert_in_range(faults_injected(), 1, 400 + passed_ms); /* by poll(2) itself: one in a ms */
    assert_in_range(log_capture_count(WEIR_LOG_ERROR), 1, 10 + passed_ms / 1000);
    faults_end();
    ring_or_lose(&event);
    host_end(host);
    faults_remove();
}

/* What a new backend is made of. */
static enum fault_call object_of(const struct host *host)
{
    return weir_loop_io(host->loop) == WEIR_IO_EPOLL ? FAULT_EPOLL_CREATE1 : FAULT_RING_SETUP;
}

static void fail_the_wait(void *arg)
{
    const struct host *host = arg;

    weir__loop_of(host->loop)->health.err = -EIO;
}

TEST_EACH_LOOP(loop_rebuild, goes_on_without_a_backend_until_there_is_one)
{
    struct fd_event event = {0}, meanwhile = {0};

    if (weir_loop_io(host->loop) == WEIR_IO_POLL)
        return; /* it has nothing that could be refused */
    log_capture_start();
    faults_install();
    fd_event_open(&event, host->loop);
    faults_inject(object_of(host), 1, FOR_EVER, EMFILE);
    run_on_executor(host->loop, fail_the_wait, host);
    while (faults_injected() == 0)
        run_one(host);
    for (int i = 0; i < 10; i++)
        run_one(host);
    fd_event_open(&meanwhile, host->loop); /* handles may come */
    faults_end();
    fd_event_trigger(&meanwhile);
    assert_true(call_counter_await(&meanwhile.triggered, 1));
    assert_true(log_capture_last_contains("again"));
    fd_event_close(&meanwhile);
    ring_or_lose(&event);
    host_end(host);
    faults_remove();
}

TEST_EACH_LOOP(loop_rebuild, comes_back_from_a_suspension_without_a_backend)
{
    struct fd_event event = {0};

    if (weir_loop_io(host->loop) == WEIR_IO_POLL)
        return;
    log_capture_start();
    faults_install();
    run_one(host);
    assert_int_equal(weir_executor_suspend(host->loop), 0);
    while (weir_executor_state(host->loop) != WEIR_EXECUTOR_SUSPENDED)
        weir__thread_yield();
    faults_inject(object_of(host), 1, 3, EMFILE);
    for (int i = 0; i < 10; i++)
        run_one(host);
    fd_event_open(&event, host->loop);
    fd_event_trigger(&event);
    assert_true(call_counter_await(&event.triggered, 1));
    assert_int_equal(faults_injected(), 3);
    assert_int_equal(rebuilds_of(host), 1);
    fd_event_close(&event);
    host_end(host);
    faults_remove();
}

/* ---- waits that end for no reason ---- */

static weir__system real;
static _Atomic unsigned premature_left, premature_made, good_made;

static bool is_premature(void)
{
    unsigned left = atomic_load(&premature_left);

    if (left == 0)
        return false;
    atomic_store(&premature_left, left - 1);
    atomic_fetch_add(&premature_made, 1);
    return true;
}

/* A wait that is more than a look. */
static int note_good(int result)
{
    if (result > 0)
        atomic_fetch_add(&good_made, 1);
    return result;
}

static int epoll_wait_prematurely(int epoll, struct epoll_event *events, int count, int timeout_ms)
{
    if (timeout_ms == 0)
        return real.epoll_wait(epoll, events, count, 0);
    return is_premature() ? 0 : note_good(real.epoll_wait(epoll, events, count, timeout_ms));
}

static int poll_prematurely(struct pollfd *descriptors, nfds_t count,
                            const struct timespec *timeout, const sigset_t *mask)
{
    if (timeout != NULL && timeout->tv_sec == 0 && timeout->tv_nsec == 0)
        return real.ppoll(descriptors, count, timeout, mask);
    return is_premature() ? 0 : note_good(real.ppoll(descriptors, count, timeout, mask));
}

/* A task alone does not see to it: it may come before the loop waits. */
static void await_good_wait(struct host *host)
{
    unsigned before = atomic_load(&good_made);

    while (atomic_load(&good_made) == before)
        run_one(host);
}

static void return_prematurely(struct host *host, unsigned times)
{
    real = weir__sys;
    if (weir_loop_io(host->loop) == WEIR_IO_EPOLL)
        weir__sys.epoll_wait = epoll_wait_prematurely;
    else
        weir__sys.ppoll = poll_prematurely;
    atomic_store(&premature_left, 0);
    atomic_store(&premature_made, 0);
    await_good_wait(host); /* starts its thread */
    atomic_store(&premature_left, times);
    run_one(host);
    while (atomic_load(&premature_left) > 0)
        weir__thread_yield();
    await_good_wait(host);
}

static bool has_calls_to_replace(const struct host *host)
{
    return weir_loop_io(host->loop) != WEIR_IO_URING;
}

TEST_EACH_LOOP(loop_rebuild, waits_that_end_for_no_reason_are_followed_by_a_rebuild)
{
    struct fd_event event = {0};

    if (!has_calls_to_replace(host))
        return;
    log_capture_start();
    return_prematurely(host, 512);
    await_rebuilds(host, 1);
    assert_int_equal(log_capture_count(WEIR_LOG_ERROR), 1);
    assert_true(log_capture_last_contains("without events"));
    fd_event_open(&event, host->loop);
    fd_event_trigger(&event);
    assert_true(call_counter_await(&event.triggered, 1));
    fd_event_close(&event);
    assert_int_equal(rebuilds_of(host), 1);
    host_end(host);
    weir__sys = real;
}

TEST_EACH_LOOP(loop_rebuild, waits_that_end_for_no_reason_now_and_then_are_none_to_worry_about)
{
    if (!has_calls_to_replace(host))
        return;
    return_prematurely(host, 511);
    for (int i = 0; i < 3; i++) {
        atomic_store(&premature_left, 400); /* a good wait lies between */
        run_one(host);
        while (atomic_load(&premature_left) > 0)
            weir__thread_yield();
        await_good_wait(host);
    }
    assert_int_equal(rebuilds_of(host), 0);
    host_end(host);
    weir__sys = real;
}

/* A manual loop's owner may have a profiler's timer, or children. */
TEST_EACH_LOOP(loop_rebuild, waits_that_signals_interrupt_are_none_to_worry_about)
{
    log_capture_start();
    faults_install();
    run_one(host);
    faults_inject(wait_of(host), 1, 2000, EINTR);
    run_one(host);
    while (faults_injected() < 2000)
        weir__thread_yield();
    run_one(host);
    assert_int_equal(rebuilds_of(host), 0);
    assert_int_equal(log_capture_count(WEIR_LOG_ERROR), 0);
    host_end(host);
    faults_remove();
}

/* It is made anew, that does not help, and then it is left alone for a while. */
TEST_EACH_LOOP(loop_rebuild, waits_that_always_end_for_no_reason_do_not_take_all_the_time)
{
    int64_t start_ns;

    if (weir_loop_io(host->loop) != WEIR_IO_EPOLL)
        return; /* poll(2) itself has to work: a loop that pauses waits in it */
    log_capture_start();
    return_prematurely(host, 512);
    start_ns = weir__monotonic_now();
    atomic_store(&premature_left, 1u << 31);
    while (weir__monotonic_now() - start_ns < weir_ms(60))
        run_one(host);
    assert_true(atomic_load(&premature_made) < 512 * 20);
    atomic_store(&premature_left, 0);
    run_one(host);
    host_end(host);
    weir__sys = real;
}
