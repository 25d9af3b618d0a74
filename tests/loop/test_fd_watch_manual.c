/* SPDX-License-Identifier: Apache-2.0 */
/* Watches on a loop driven by the test: between two runs nothing happens but what the test does. */
#include <weir/watch.h>

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include <weir/error.h>
#include <weir/loop.h>

#include "support/executor/run_on_thread.h"
#include "support/loop/host.h"
#include "support/loop/sockets.h"
#include "support/loop/watch_recorder.h"

#define RUNS_MAX 50

static weir_executor *make_loop(const struct host *host)
{
    weir_executor *loop = NULL;

    assert_int_equal(weir_loop_create(WEIR_LOOP_OPTIONS(.io = host->backend->io), &loop), 0);
    return loop;
}

/* Runs until nothing is left to do. */
static void settle(weir_executor *loop)
{
    int runs = 0;

    while (weir_loop_run_once(loop, weir_ms(1)) > 0)
        assert_true(++runs < RUNS_MAX);
}

TEST_EACH_LOOP(fd_watch, begins_with_its_owners_next_run)
{
    struct watch_record seen = {.reaction = DRAIN};
    weir_executor *loop = make_loop(host);
    weir_fd_watch *watch;
    int ends[2];

    pipe_open(ends);
    pipe_feed(ends[1]);
    watch = watch_reading(loop, ends[0], &seen);
    assert_int_equal(weir_loop_timeout(loop), 0);
    settle(loop);
    assert_int_equal(seen.ready.calls, 1);
    weir_fd_watch_close(watch);
    assert_int_equal(seen.closed.calls, 0);
    settle(loop);
    watch_end(watch, &seen, 0);
    weir_executor_release(loop);
    pipe_close(ends);
}

TEST_EACH_LOOP(fd_watch, reports_nothing_after_its_owner_closed_it)
{
    struct watch_record seen = {.reaction = DRAIN};
    weir_executor *loop = make_loop(host);
    weir_fd_watch *watch;
    int ends[2];

    pipe_open(ends);
    watch = watch_reading(loop, ends[0], &seen);
    settle(loop);
    pipe_feed(ends[1]);
    weir_fd_watch_close(watch);
    settle(loop);
    assert_int_equal(seen.ready.calls, 0);
    watch_end(watch, &seen, 0);
    weir_executor_release(loop);
    pipe_close(ends);
}

TEST_EACH_LOOP(fd_watch, reports_only_events_still_wanted)
{
    struct watch_record seen = {.reaction = PAUSE};
    weir_executor *loop = make_loop(host);
    weir_fd_watch *watch;
    int ends[2];

    socket_pair(PAIR_UNIX, ends);
    watch = watch_reading(loop, ends[0], &seen);
    settle(loop);
    pipe_feed(ends[1]);
    assert_int_equal(weir_fd_watch_set_events(watch, WEIR_FD_WRITABLE), 0);
    settle(loop);
    assert_int_equal(seen.ready.calls, 1);
    assert_int_equal(seen.events, WEIR_FD_WRITABLE);
    weir_fd_watch_close(watch);
    settle(loop);
    watch_end(watch, &seen, 0);
    weir_executor_release(loop);
    pipe_close(ends);
}

TEST_EACH_LOOP(fd_watch, makes_its_loops_descriptor_readable)
{
    struct watch_record seen = {.reaction = DRAIN};
    weir_executor *loop = make_loop(host);
    struct pollfd outer = {.events = POLLIN};
    weir_fd_watch *watch;
    int ends[2];

    pipe_open(ends);
    outer.fd = weir_loop_descriptor(loop);
    watch = watch_reading(loop, ends[0], &seen);
    if (outer.fd >= 0)
        assert_int_equal(poll(&outer, 1, 10000), 1); /* it is to begin */
    else
        assert_int_equal(outer.fd, -ENOTSUP);
    settle(loop);
    if (outer.fd >= 0)
        assert_int_equal(poll(&outer, 1, 0), 0);
    pipe_feed(ends[1]);
    if (outer.fd >= 0)
        assert_int_equal(poll(&outer, 1, 10000), 1);
    settle(loop);
    assert_int_equal(seen.ready.calls, 1);
    weir_fd_watch_close(watch);
    settle(loop);
    watch_end(watch, &seen, 0);
    weir_executor_release(loop);
    pipe_close(ends);
}

static void close_here(void *arg)
{
    weir_fd_watch_close(arg);
}

TEST_EACH_LOOP(fd_watch, of_a_sleeping_owner_may_be_closed_by_another_thread)
{
    struct watch_record seen = {.reaction = DRAIN};
    weir_executor *loop = make_loop(host);
    weir_fd_watch *watch;
    int ends[2];

    pipe_open(ends);
    watch = watch_reading(loop, ends[0], &seen);
    settle(loop);
    run_on_other_thread(close_here, watch);
    settle(loop);
    assert_int_equal(seen.closed.calls, 1);
    watch_end(watch, &seen, 0);
    weir_executor_release(loop);
    pipe_close(ends);
}

TEST_EACH_LOOP(fd_watch, ends_with_a_loop_that_is_released)
{
    struct watch_record begun = {.reaction = DRAIN}, waiting = {.reaction = DRAIN};
    weir_executor *loop = make_loop(host);
    weir_fd_watch *watches[2];
    int ends[2];

    pipe_open(ends);
    watches[0] = watch_reading(loop, ends[0], &begun);
    settle(loop);
    watches[1] = watch_with(loop, ends[1], WEIR_FD_WRITABLE, &waiting);
    weir_executor_release(loop);
    watch_end(watches[0], &begun, WEIR_ECANCELED);
    watch_end(watches[1], &waiting, WEIR_ECANCELED);
    assert_int_equal(waiting.ready.calls, 0);
    pipe_close(ends);
}

TEST_EACH_LOOP(fd_watch, that_was_closed_first_does_not_blame_the_loop)
{
    struct watch_record begun = {.reaction = DRAIN}, waiting = {.reaction = DRAIN};
    weir_executor *loop = make_loop(host);
    weir_fd_watch *watches[2];
    int ends[2];

    pipe_open(ends);
    watches[0] = watch_reading(loop, ends[0], &begun);
    settle(loop);
    watches[1] = watch_with(loop, ends[1], WEIR_FD_WRITABLE, &waiting);
    weir_fd_watch_close(watches[0]);
    weir_fd_watch_close(watches[1]);
    weir_executor_release(loop);
    watch_end(watches[0], &begun, 0);
    watch_end(watches[1], &waiting, 0);
    pipe_close(ends);
}

/*
 * The kernel's set has a descriptor that is closed, and cannot be waited in: all events are still
 * reported.
 */
TEST_EACH_LOOP(fd_watch, of_a_descriptor_closed_behind_its_back_ends_with_its_loop)
{
    struct watch_record seen = {.reaction = DRAIN};
    weir_executor *loop = make_loop(host);
    weir_fd_watch *watch;
    int ends[2];

    pipe_open(ends);
    watch = watch_reading(loop, ends[0], &seen);
    settle(loop);
    pipe_close(ends);
    weir_executor_release(loop);
    assert_int_equal(seen.closed.calls, 1);
    weir_fd_watch_release(watch);
}
