/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Polling a descriptor that the backend neither reads nor writes, on each backend.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "support/loop/suite.h"

static int make_eventfd(unsigned value)
{
    int descriptor = eventfd(value, EFD_NONBLOCK | EFD_CLOEXEC);

    assert_true(descriptor >= 0);
    return descriptor;
}

static void add(int descriptor)
{
    const uint64_t one = 1;

    assert_int_equal(write(descriptor, &one, sizeof(one)), sizeof(one));
}

static void take(int descriptor)
{
    uint64_t value;

    assert_int_equal(read(descriptor, &value, sizeof(value)), sizeof(value));
}

/* The reading end of a pipe; the writing end is `remote`. */
static struct peer *open_pipe(struct driver *driver)
{
    struct peer *peer;
    int pair[2];

    assert_int_equal(pipe2(pair, O_NONBLOCK | O_CLOEXEC), 0);
    peer = peer_open(driver, pair[0]);
    peer->remote = pair[1];
    return peer;
}

/* ---- events ---- */

TEST_EACH_BACKEND(poll_handle, reports_readable)
{
    struct peer *peer = open_pipe(driver);

    peer_poll_start(peer, POLLIN);
    driver_run_until_idle(driver);
    assert_int_equal(peer->polls, 0);
    assert_int_equal(write(peer->remote, "x", 1), 1);
    driver_until(driver, peer->polls > 0);
    assert_int_equal(peer->poll_events, POLLIN);
}

TEST_EACH_BACKEND(poll_handle, reports_writable)
{
    struct peer *peer = peer_open(driver, make_eventfd(0));

    peer_poll_start(peer, POLLOUT);
    driver_until(driver, peer->polls > 0);
    assert_int_equal(peer->poll_events, POLLOUT);
}

/* Once a turn, for as long as nobody reads it: level, not edge. */
TEST_EACH_BACKEND(poll_handle, reports_every_turn_until_read)
{
    struct peer *peer = peer_open(driver, make_eventfd(0));

    peer_poll_start(peer, POLLIN);
    for (unsigned round = 0; round < 5; round++) {
        unsigned before = peer->polls;

        add(peer->descriptor);
        driver_until(driver, peer->polls == before + 10);
        take(peer->descriptor);
        driver_run_until_idle(driver);
        before = peer->polls;
        driver_run_until_idle(driver);
        assert_int_equal(peer->polls, before);
    }
}

TEST_EACH_BACKEND(poll_handle, reports_readiness_from_before_the_start)
{
    struct peer *peer = peer_open(driver, make_eventfd(1));

    driver_run_until_idle(driver);
    peer_poll_start(peer, POLLIN | POLLOUT);
    driver_until(driver, peer->polls > 0);
    assert_int_equal(peer->poll_events, POLLIN | POLLOUT);
}

TEST_EACH_BACKEND(poll_handle, reports_a_hangup)
{
    struct peer *peer = open_pipe(driver);

    peer_poll_start(peer, POLLIN);
    driver_run_until_idle(driver);
    peer_remote_close(peer);
    driver_until(driver, peer->polls > 0);
    assert_true((peer->poll_events & POLLHUP) != 0);
}

TEST_EACH_BACKEND(poll_handle, reports_a_pipe_without_readers)
{
    int pair[2];
    struct peer *peer;

    assert_int_equal(pipe2(pair, O_NONBLOCK | O_CLOEXEC), 0);
    peer = peer_open(driver, pair[1]);
    peer->remote = pair[0];
    peer_poll_start(peer, POLLOUT);
    driver_until(driver, peer->polls > 0);
    peer_remote_close(peer);
    driver_until(driver, (peer->poll_events & POLLERR) != 0);
}

TEST_EACH_BACKEND(poll_handle, reports_a_half_close)
{
    struct peer *peer = peer_open_pair(driver, PAIR_TCP);

    peer_poll_start(peer, POLLRDHUP);
    driver_run_until_idle(driver);
    assert_int_equal(peer->polls, 0);
    assert_int_equal(shutdown(peer->remote, SHUT_WR), 0);
    driver_until(driver, peer->polls > 0);
    assert_true((peer->poll_events & POLLRDHUP) != 0);
}

/* Nor does it spin on what is there, but was not asked for. */
TEST_EACH_BACKEND(poll_handle, reports_only_requested_events)
{
    struct peer *peer = peer_open_pair(driver, PAIR_TCP);

    assert_int_equal(peer_remote_send(peer, 100), 100);
    assert_int_equal(shutdown(peer->remote, SHUT_WR), 0);
    peer_poll_start(peer, POLLPRI);
    driver_run_until_idle(driver);
    assert_int_equal(peer->polls, 0);
    driver_sleep(driver, weir_ms(50));
    peer_poll_start(peer, POLLIN);
    driver_until(driver, peer->polls > 0);
    assert_int_equal(peer->poll_events, POLLIN);
}

TEST_EACH_BACKEND(poll_handle, reports_urgent_data)
{
    struct peer *peer = peer_open_pair(driver, PAIR_TCP);

    peer_poll_start(peer, POLLPRI);
    driver_run_until_idle(driver);
    assert_int_equal(send(peer->remote, "!", 1, MSG_OOB), 1);
    driver_until(driver, peer->polls > 0);
    assert_int_equal(peer->poll_events, POLLPRI);
}

/* ---- changes ---- */

TEST_EACH_BACKEND(poll_handle, follows_changes_of_its_events)
{
    struct peer *peer = peer_open(driver, make_eventfd(1));

    for (int i = 0; i < 10; i++) {
        unsigned before = peer->polls;
        unsigned events = i % 2 == 0 ? POLLIN : POLLOUT;

        peer_poll_start(peer, events);
        driver_until(driver, peer->polls > before);
        assert_int_equal(peer->poll_events, events);
    }
    peer_poll_start(peer, POLLPRI);
    driver_run_until_idle(driver);
}

TEST_EACH_BACKEND(poll_handle, reports_nothing_after_stop)
{
    struct peer *peer = peer_open(driver, make_eventfd(1));

    for (unsigned i = 0; i < 10; i++) {
        peer_poll_start(peer, POLLIN);
        if (i % 2 == 0)
            driver_turn(driver);
        peer_poll_stop(peer);
        peer_poll_stop(peer);
        driver_turn(driver);
    }
    driver_run_until_idle(driver);
    peer_poll_start(peer, POLLIN);
    driver_until(driver, peer->polls > 0);
}

static void stop_polling(struct peer *peer, enum peer_event event)
{
    if (event == PEER_POLLED)
        peer_poll_stop(peer);
}

TEST_EACH_BACKEND(poll_handle, may_be_stopped_in_the_call_back)
{
    struct peer *peer = peer_open(driver, make_eventfd(1));

    peer->react = stop_polling;
    for (unsigned i = 1; i <= 10; i++) {
        peer_poll_start(peer, POLLIN);
        driver_until(driver, peer->polls == i);
        driver_run_until_idle(driver);
        assert_int_equal(peer->polls, i);
    }
}

static void poll_for_the_other(struct peer *peer, enum peer_event event)
{
    if (event == PEER_POLLED)
        peer_poll_start(peer, peer->poll_events == POLLIN ? POLLOUT : POLLIN);
}

TEST_EACH_BACKEND(poll_handle, may_change_its_events_in_the_call_back)
{
    struct peer *peer = peer_open(driver, make_eventfd(1));

    peer->react = poll_for_the_other;
    peer_poll_start(peer, POLLIN);
    driver_until(driver, peer->polls == 20);
}

static void close_peer(struct peer *peer, enum peer_event event)
{
    if (event == PEER_POLLED)
        peer_close(peer);
}

TEST_EACH_BACKEND(poll_handle, may_be_closed_in_the_call_back)
{
    struct peer *peer = peer_open(driver, make_eventfd(1));

    peer->react = close_peer;
    peer_poll_start(peer, POLLIN);
    driver_until(driver, peer->detaches == 1);
    assert_string_equal(peer->history, "px");
}

static void detach_peer(struct peer *peer, enum peer_event event)
{
    if (event == PEER_POLLED)
        peer_detach(peer);
}

/* The descriptor is the user's: it outlives the handle. */
TEST_EACH_BACKEND(poll_handle, may_be_detached_in_the_call_back)
{
    struct peer *peer = peer_open(driver, make_eventfd(1));

    peer->react = detach_peer;
    peer_poll_start(peer, POLLIN);
    driver_until(driver, peer->detaches == 1);
    assert_string_equal(peer->history, "px");
    take(peer->descriptor);
}

/* ---- descriptors that cannot be polled ---- */

TEST_EACH_BACKEND(poll_handle, of_a_closed_descriptor_fails_alone)
{
    struct peer *good = peer_open(driver, make_eventfd(1));
    struct peer *bad = peer_open(driver, fcntl(good->descriptor, F_DUPFD_CLOEXEC, 500));

    (void)close(bad->descriptor);
    peer_poll_start(bad, POLLIN);
    peer_poll_start(good, POLLIN);
    driver_until(driver, bad->fails == 1);
    assert_int_equal(bad->fail_error, -EBADF);
    peer_close(bad);
    driver_until(driver, bad->detaches == 1);
    driver_until(driver, good->polls > 10);
}
