/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of watches on the user's descriptors, and other ends that they survive, on a loop of each
 * backend.
 */
#include <weir/watch.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <weir/error.h>

#include "executor/executor.h"
#include "loop/loop.h"
#include "os/thread.h"
#include "support/executor/gate.h"
#include "support/executor/group.h"
#include "support/executor/log_capture.h"
#include "support/executor/run_on_thread.h"
#include "support/loop/host.h"
#include "support/loop/sockets.h"
#include "support/loop/watch_recorder.h"
#include "support/memory.h"

#define MANY 1000

/* ---- the end ---- */

TEST_EACH_LOOP(fd_watch, may_be_closed_in_the_callback)
{
    struct watch_record seen = {.reaction = END};
    weir_fd_watch *watch;
    int ends[2];

    pipe_open(ends);
    pipe_feed(ends[1]);
    watch = watch_reading(host->loop, ends[0], &seen);
    assert_true(call_counter_await(&seen.closed, 1));
    host_turn(host, 3);
    assert_int_equal(seen.ready.calls, 1);
    watch_end(watch, &seen, 0);
    pipe_close(ends);
}

/* The first of the two to be called closes the other, whose event is in the same batch. */
TEST_EACH_LOOP(fd_watch, ignores_a_queued_event_after_close)
{
    struct watch_record seen[2] = {{.reaction = END}, {.reaction = END}};
    weir_fd_watch *watches[2];
    struct gate gate = {0};
    int ends[2][2];

    for (int i = 0; i < 2; i++) {
        pipe_open(ends[i]);
        watches[i] = watch_reading(host->loop, ends[i][0], &seen[i]);
    }
    host_turn(host, 2);
    gate_hold(&gate, host->loop);
    for (int i = 0; i < 2; i++) {
        seen[i].also_closes = watches[1 - i];
        pipe_feed(ends[i][1]);
    }
    gate_open(&gate);
    for (int i = 0; i < 2; i++)
        watch_end(watches[i], &seen[i], 0);
    assert_int_equal(seen[0].ready.calls + seen[1].ready.calls, 1);
    for (int i = 0; i < 2; i++)
        pipe_close(ends[i]);
}

struct closing {
    weir_fd_watch *watch;
    struct watch_record *seen;
    uint32_t told_inside;
};

static void close_here(void *arg)
{
    struct closing *closing = arg;

    weir_fd_watch_close(closing->watch);
    closing->told_inside = closing->seen->closed.calls;
}

TEST_EACH_LOOP(fd_watch, never_calls_closed_from_inside_the_call)
{
    struct watch_record seen = {0};
    struct closing closing = {.seen = &seen};
    int ends[2];

    pipe_open(ends);
    closing.watch = watch_reading(host->loop, ends[0], &seen);
    run_on_executor(host->loop, close_here, &closing);
    assert_int_equal(closing.told_inside, 0);
    watch_end(closing.watch, &seen, 0);
    pipe_close(ends);
}

TEST_EACH_LOOP(fd_watch, can_be_waited_for)
{
    struct watch_record seen = {.reaction = DRAIN};
    weir_fd_watch *watch;
    int ends[2];

    pipe_open(ends);
    watch = watch_reading(host->loop, ends[0], &seen);
    assert_int_equal(weir_promise_result(weir_fd_watch_closed(watch)), -EINPROGRESS);
    weir_fd_watch_close(watch);
    assert_int_equal(weir_promise_sync(weir_fd_watch_closed(watch), TEST_TIMEOUT_NS), 0);
    assert_int_equal(seen.closed.calls, 1);
    watch_end(watch, &seen, 0);
    pipe_close(ends);
}

TEST_EACH_LOOP(fd_watch, that_never_began_is_closed)
{
    struct watch_record seen = {.reaction = LEAVE};
    struct gate gate = {0};
    weir_fd_watch *watch;
    int ends[2];

    pipe_open(ends);
    pipe_feed(ends[1]);
    assert_int_equal(weir_execute(host->loop, gate_task, &gate), 0);
    watch = watch_reading(host->loop, ends[0], &seen);
    weir_fd_watch_close(watch);
    assert_int_equal(seen.closed.calls, 0);
    gate_open(&gate);
    watch_end(watch, &seen, 0);
    assert_int_equal(seen.ready.calls, 0);
    pipe_close(ends);
}

TEST_EACH_LOOP(fd_watch, is_closed_with_its_last_reference)
{
    struct watch_record seen = {.reaction = DRAIN};
    weir_fd_watch *watch;
    int ends[2];

    pipe_open(ends);
    watch = watch_reading(host->loop, ends[0], &seen);
    weir_fd_watch_retain(watch);
    weir_fd_watch_release(watch);
    pipe_feed(ends[1]);
    assert_true(call_counter_await(&seen.ready, 1));
    weir_fd_watch_release(watch);
    assert_true(call_counter_await(&seen.closed, 1));
    assert_int_equal(seen.err, 0);
    weir_fd_watch_release(NULL);
    pipe_close(ends);
}

TEST_EACH_LOOP(fd_watch, may_be_its_callbacks_alone)
{
    struct watch_record seen = {.reaction = END};
    int ends[2];

    pipe_open(ends);
    assert_int_equal(weir_fd_watch_create(host->loop, ends[0],
                                          WEIR_FD_WATCH_OPTIONS(RECORD_READING(&seen)), NULL),
                     0);
    host_turn(host, 3);
    pipe_feed(ends[1]);
    assert_true(call_counter_await(&seen.closed, 1));
    assert_int_equal(seen.ready.calls, 1);
    pipe_close(ends);
}

/* ---- several threads ---- */

static void close_soon(void *arg)
{
    struct closing *closing = arg;

    (void)call_counter_await(&closing->seen->ready, 50);
    for (int i = 0; i < 50; i++)
        (void)weir_fd_watch_set_events(closing->watch, i % 2 == 0 ? 0 : WEIR_FD_READABLE);
    weir_fd_watch_close(closing->watch);
}

TEST_EACH_LOOP(fd_watch, may_be_closed_by_any_thread_while_events_flow)
{
    struct watch_record seen = {.reaction = LEAVE};
    struct closing closing = {.seen = &seen};
    weir__thread threads[3];
    int ends[2];

    pipe_open(ends);
    pipe_feed(ends[1]);
    closing.watch = watch_reading(host->loop, ends[0], &seen);
    for (int i = 0; i < 3; i++)
        assert_int_equal(weir__thread_start("closer", close_soon, &closing, &threads[i]), 0);
    assert_true(call_counter_await(&seen.closed, 1));
    pipe_close(ends);
    for (int i = 0; i < 3; i++)
        weir__thread_join(&threads[i]);
    host_turn(host, 3);
    watch_end(closing.watch, &seen, 0);
}

static void open_and_close(void *arg)
{
    struct host *host = arg;

    for (int i = 0; i < 100; i++) {
        struct watch_record seen = {.reaction = DRAIN};
        int descriptor = eventfd(1, EFD_NONBLOCK | EFD_CLOEXEC);
        weir_fd_watch *watch = NULL;

        if (weir_fd_watch_create(host->loop, descriptor,
                                 WEIR_FD_WATCH_OPTIONS(RECORD_READING(&seen)), &watch) < 0)
            break;
        if (i % 2 == 0)
            (void)call_counter_await(&seen.ready, 1);
        weir_fd_watch_release(watch);
        (void)call_counter_await(&seen.closed, 1);
        (void)close(descriptor);
    }
}

TEST_EACH_LOOP(fd_watch, comes_and_goes_from_many_threads)
{
    weir__thread threads[4];

    for (int i = 0; i < 4; i++)
        assert_int_equal(weir__thread_start("opener", open_and_close, host, &threads[i]), 0);
    for (int i = 0; i < 4; i++)
        weir__thread_join(&threads[i]);
    assert_int_equal(weir__executor_handles(host->loop), 0);
}

/* ---- many ---- */

TEST_EACH_LOOP(fd_watch, is_one_of_a_thousand)
{
    static struct watch_record seen[MANY];
    static weir_fd_watch *watches[MANY];
    static int ends[MANY][2];

    descriptors_allow_all();
    memset(seen, 0, sizeof(seen));
    for (int i = 0; i < MANY; i++) {
        pipe_open(ends[i]);
        seen[i].reaction = DRAIN;
        watches[i] = watch_reading(host->loop, ends[i][0], &seen[i]);
    }
    for (int i = 0; i < MANY; i += 2)
        pipe_feed(ends[i][1]);
    for (int i = 0; i < MANY; i += 2)
        assert_true(call_counter_await(&seen[i].ready, 1));
    host_turn(host, 2);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(seen[i].ready.calls, i % 2 == 0 ? 1 : 0);
        watch_end(watches[i], &seen[i], 0);
        pipe_close(ends[i]);
    }
}

/* In `closed`, on the loop: the descriptor goes, and the next has its number. */
struct succession {
    weir_executor *loop;
    struct watch_record next;
    weir_fd_watch *next_watch;
    int next_ends[2];
    int err;
    struct call_counter done;
};

static void on_closed_follow(weir_fd_watch *watch, int err, void *user_data)
{
    struct succession *succession = user_data;
    int number = weir_fd_watch_descriptor(watch);

    (void)err;
    succession->err = dup3(succession->next_ends[0], number, O_CLOEXEC) == number ? 0 : -errno;
    if (succession->err == 0)
        succession->err = weir_fd_watch_create(
            succession->loop, number, WEIR_FD_WATCH_OPTIONS(RECORD_READING(&succession->next)),
            &succession->next_watch);
    call_counter_add(&succession->done);
}

static void on_ready_close(weir_fd_watch *watch, uint32_t events, void *user_data)
{
    (void)events;
    (void)user_data;
    weir_fd_watch_close(watch);
}

TEST_EACH_LOOP(fd_watch, leaves_its_number_to_the_next_at_once)
{
    struct succession succession = {.loop = host->loop, .next = {.reaction = DRAIN}};
    weir_fd_watch *watch = NULL;
    int ends[2];

    pipe_open(ends);
    pipe_open(succession.next_ends);
    pipe_feed(ends[1]); /* is never read: the old pipe stays readable */
    assert_int_equal(weir_fd_watch_create(host->loop, ends[0],
                                          WEIR_FD_WATCH_OPTIONS(.events = WEIR_FD_READABLE,
                                                                .ready = on_ready_close,
                                                                .closed = on_closed_follow,
                                                                .user_data = &succession),
                                          &watch),
                     0);
    assert_true(call_counter_await(&succession.done, 1));
    assert_int_equal(succession.err, 0);
    host_turn(host, 3);
    assert_int_equal(succession.next.ready.calls, 0);
    pipe_feed(succession.next_ends[1]);
    assert_true(call_counter_await(&succession.next.ready, 1));
    watch_end(succession.next_watch, &succession.next, 0);
    weir_fd_watch_release(watch);
    pipe_close(ends);
    pipe_close(succession.next_ends);
}

/* ---- the loop's end, and the backend's ---- */

static void shut_down_with_watches(struct host *host, int64_t quiet_ns, int64_t timeout_ns)
{
    enum { WATCHES = 20 };
    struct watch_record seen[WATCHES] = {{.reaction = LEAVE}};
    weir_fd_watch *watches[WATCHES];
    int ends[2];

    pipe_open(ends);
    for (int i = 0; i < WATCHES; i++) { /* the second half may not be there when it begins */
        if (i == WATCHES / 2)
            host_turn(host, 2);
        watches[i] = watch_with(host->loop, dup(ends[i % 2]), WEIR_FD_READABLE, &seen[i]);
    }
    pipe_feed(ends[1]);
    assert_int_equal(weir_group_shutdown(host->group, quiet_ns, timeout_ns), 0);
    assert_int_equal(weir_group_await_termination(host->group, TEST_TIMEOUT_NS), 0);
    for (int i = 0; i < WATCHES; i++) {
        assert_int_equal(weir_promise_result(weir_fd_watch_closed(watches[i])), WEIR_ECANCELED);
        assert_non_null(strstr(weir_promise_detail(weir_fd_watch_closed(watches[i])), "loop"));
        assert_int_equal(close(weir_fd_watch_descriptor(watches[i])), 0); /* nobody else did */
        watch_end(watches[i], &seen[i], WEIR_ECANCELED);
    }
    pipe_close(ends);
}

TEST_EACH_LOOP(fd_watch, ends_with_its_loop)
{
    shut_down_with_watches(host, 0, TEST_TIMEOUT_NS);
}

TEST_EACH_LOOP(fd_watch, ends_with_a_loop_that_has_no_time)
{
    log_capture_start(); /* tasks are cancelled */
    shut_down_with_watches(host, 0, 0);
}

TEST_EACH_LOOP(fd_watch, ends_with_a_loop_that_is_quiet_first)
{
    shut_down_with_watches(host, weir_ms(20), TEST_TIMEOUT_NS);
}

TEST_EACH_LOOP(fd_watch, keeps_its_loop_from_being_suspended)
{
    struct watch_record seen = {.reaction = DRAIN};
    weir_fd_watch *watch;
    int ends[2];

    pipe_open(ends);
    watch = watch_reading(host->loop, ends[0], &seen);
    host_turn(host, 1);
    assert_int_equal(weir_executor_suspend(host->loop), 0);
    while (weir_executor_state(host->loop) != WEIR_EXECUTOR_STARTED)
        weir__thread_yield();
    pipe_feed(ends[1]);
    assert_true(call_counter_await(&seen.ready, 1));
    watch_end(watch, &seen, 0);
    assert_int_equal(weir_executor_suspend(host->loop), 0);
    while (weir_executor_state(host->loop) != WEIR_EXECUTOR_SUSPENDED)
        weir__thread_yield();
    pipe_close(ends);
}

static void rebuild(void *arg)
{
    weir_executor *loop = arg;

    (void)weir__io_rebuild(weir__loop_io(loop));
}

TEST_EACH_LOOP(fd_watch, survives_a_rebuild_of_the_backend)
{
    struct watch_record seen = {.reaction = DRAIN};
    weir_fd_watch *watch;
    int ends[2];

    pipe_open(ends);
    watch = watch_reading(host->loop, ends[0], &seen);
    for (uint32_t i = 1; i <= 5; i++) {
        pipe_feed(ends[1]);
        assert_true(call_counter_await(&seen.ready, i));
        run_on_executor(host->loop, rebuild, host->loop);
    }
    watch_end(watch, &seen, 0);
    pipe_close(ends);
}

struct failure {
    weir_executor *loop;
    int err;
};

static void fail_first_handle(void *arg)
{
    struct failure *failure = arg;
    weir__io *io = weir__loop_io(failure->loop);

    weir__io_fail(WEIR_CONTAINER_OF(io->handles.next, weir__io_handle, link), failure->err);
}

TEST_EACH_LOOP(fd_watch, comes_back_when_the_backend_has_lost_it)
{
    struct failure failure = {.loop = host->loop, .err = WEIR_EREBUILT};
    struct watch_record seen = {.reaction = DRAIN};
    weir_fd_watch *watch;
    int ends[2];

    pipe_open(ends);
    watch = watch_reading(host->loop, ends[0], &seen);
    for (uint32_t i = 1; i <= 3; i++) {
        host_turn(host, 2);
        run_on_executor(host->loop, fail_first_handle, &failure);
        pipe_feed(ends[1]);
        assert_true(call_counter_await(&seen.ready, i));
    }
    watch_end(watch, &seen, 0);
    pipe_close(ends);
}

TEST_EACH_LOOP(fd_watch, ends_with_the_error_of_its_descriptor)
{
    struct failure failure = {.loop = host->loop, .err = -EIO};
    struct watch_record seen = {.reaction = DRAIN};
    weir_fd_watch *watch;
    int ends[2];

    log_capture_start();
    pipe_open(ends);
    watch = watch_reading(host->loop, ends[0], &seen);
    host_turn(host, 2);
    run_on_executor(host->loop, fail_first_handle, &failure);
    assert_int_equal(weir_promise_sync(weir_fd_watch_closed(watch), TEST_TIMEOUT_NS), -EIO);
    assert_int_equal(log_capture_count(WEIR_LOG_WARN), 1);
    assert_true(log_capture_last_contains("no longer watched"));
    watch_end(watch, &seen, -EIO);
    pipe_close(ends);
}

TEST(fd_watch, cannot_be_doubled_on_epoll)
{
    struct host host;
    struct watch_record first = {.reaction = DRAIN}, second = {.reaction = DRAIN};
    weir_fd_watch *watches[2];
    int ends[2];

    host_open(&host, BACKEND_EPOLL);
    log_capture_start();
    pipe_open(ends);
    watches[0] = watch_reading(host.loop, ends[0], &first);
    watches[1] = watch_reading(host.loop, ends[0], &second);
    assert_int_equal(weir_promise_sync(weir_fd_watch_closed(watches[1]), TEST_TIMEOUT_NS), -EEXIST);
    assert_non_null(strstr(weir_promise_detail(weir_fd_watch_closed(watches[1])), "dup(2)"));
    pipe_feed(ends[1]);
    assert_true(call_counter_await(&first.ready, 1));
    watch_end(watches[0], &first, 0);
    watch_end(watches[1], &second, -EEXIST);
    host_close(&host);
    pipe_close(ends);
}

/* ---- no memory ---- */

struct attempt {
    struct host *host;
    struct watch_record seen;
    weir_fd_watch *watch;
    int descriptor;
    int err;
};

static void try_here(void *arg)
{
    struct attempt *attempt = arg;

    attempt->err = weir_fd_watch_create(attempt->host->loop, attempt->descriptor,
                                        WEIR_FD_WATCH_OPTIONS(RECORD_READING(&attempt->seen)),
                                        &attempt->watch);
}

/* Elsewhere than on the loop the last of the memory is asked for when it has returned. */
static void fail_each_allocation(struct host *host, bool on_loop)
{
    int ends[2];

    log_capture_start();
    pipe_open(ends);
    pipe_feed(ends[1]);
    for (unsigned n = 1;; n++) {
        struct attempt attempt = {.host = host, .descriptor = ends[0]};
        bool failed;

        attempt.seen.reaction = END;
        host_turn(host, 1);
        test_memory_fail_at(n);
        if (on_loop)
            run_on_executor(host->loop, try_here, &attempt);
        else
            try_here(&attempt);
        if (attempt.err == 0)
            assert_true(call_counter_await(&attempt.seen.closed, 1));
        failed = test_memory_failed();
        test_memory_fail_at(0);
        assert_int_equal(attempt.err < 0 ? attempt.err : attempt.seen.err, failed ? -ENOMEM : 0);
        if (attempt.err == 0)
            weir_fd_watch_release(attempt.watch);
        if (!failed)
            break;
        assert_true(n < 100);
    }
    pipe_close(ends);
}

TEST_EACH_LOOP(fd_watch, fails_without_memory)
{
    fail_each_allocation(host, false);
}

TEST_EACH_LOOP(fd_watch, fails_without_memory_on_the_loop)
{
    fail_each_allocation(host, true);
}
