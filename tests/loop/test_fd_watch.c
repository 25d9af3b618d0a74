/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watches on the user's descriptors: what they report, and what may be watched, on a loop of each
 * backend.
 */
#include <weir/watch.h>

#include <errno.h>
#include <fcntl.h>
#include <pty.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <weir/error.h>

#include "support/executor/log_capture.h"
#include "support/litmus.h"
#include "support/loop/host.h"
#include "support/loop/sockets.h"
#include "support/loop/watch_recorder.h"

/* ---- events ---- */

TEST_EACH_LOOP(fd_watch, reports_a_readable_pipe)
{
    struct watch_record seen = {.reaction = DRAIN};
    weir_fd_watch *watch;
    int ends[2];

    pipe_open(ends);
    watch = watch_reading(host->loop, ends[0], &seen);
    assert_int_equal(weir_fd_watch_descriptor(watch), ends[0]);
    for (uint32_t i = 1; i <= 3; i++) {
        pipe_feed(ends[1]);
        assert_true(call_counter_await(&seen.ready, i));
        assert_int_equal(seen.events, WEIR_FD_READABLE);
        host_turn(host, 3);
        assert_int_equal(seen.ready.calls, i);
    }
    watch_end(watch, &seen, 0);
    pipe_close(ends);
}

TEST_EACH_LOOP(fd_watch, reports_unread_data_again)
{
    struct watch_record seen = {.reaction = LEAVE};
    weir_fd_watch *watch;
    int ends[2];

    pipe_open(ends);
    watch = watch_reading(host->loop, ends[0], &seen);
    pipe_feed(ends[1]);
    assert_true(call_counter_await(&seen.ready, 5));
    watch_end(watch, &seen, 0);
    pipe_close(ends);
}

static void make_eventfd(int ends[2])
{
    ends[0] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    ends[1] = dup(ends[0]);
}

static void signal_eventfd(int descriptor)
{
    assert_int_equal(eventfd_write(descriptor, 1), 0);
}

static void make_timerfd(int ends[2])
{
    ends[0] = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    ends[1] = dup(ends[0]);
}

static void start_timer(int descriptor)
{
    const struct itimerspec soon = {.it_value.tv_nsec = 1000000};

    assert_int_equal(timerfd_settime(descriptor, 0, &soon, NULL), 0);
}

static void make_terminal(int ends[2])
{
    assert_int_equal(openpty(&ends[1], &ends[0], NULL, NULL, NULL), 0);
    assert_int_equal(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
}

static void type_line(int descriptor)
{
    assert_int_equal(write(descriptor, "hello\n", 6), 6);
}

static void make_unix_sockets(int ends[2])
{
    socket_pair(PAIR_UNIX, ends);
}

static void make_udp_sockets(int ends[2])
{
    socket_pair(PAIR_UDP, ends);
}

static void send_byte(int descriptor)
{
    assert_int_equal(send(descriptor, "x", 1, MSG_NOSIGNAL), 1);
}

TEST_EACH_LOOP(fd_watch, works_with_whatever_can_be_waited_for)
{
    static const struct {
        void (*make)(int ends[2]);
        void (*feed)(int descriptor);
    } kinds[] = {
        {pipe_open, pipe_feed},     {make_eventfd, signal_eventfd}, {make_timerfd, start_timer},
        {make_terminal, type_line}, {make_unix_sockets, send_byte}, {make_udp_sockets, send_byte},
    };

    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
        struct watch_record seen = {.reaction = DRAIN};
        weir_fd_watch *watch;
        int ends[2];

        kinds[i].make(ends);
        watch = watch_reading(host->loop, ends[0], &seen);
        for (uint32_t round = 1; round <= 3; round++) {
            kinds[i].feed(ends[1]);
            assert_true(call_counter_await(&seen.ready, round));
            assert_int_equal(seen.events, WEIR_FD_READABLE);
        }
        watch_end(watch, &seen, 0);
        pipe_close(ends);
    }
}

TEST_EACH_LOOP(fd_watch, reports_a_writable_pipe)
{
    struct watch_record seen = {.reaction = PAUSE};
    weir_fd_watch *watch;
    int ends[2];

    socket_pair(PAIR_UNIX, ends);
    (void)socket_fill(ends[0]);
    watch = watch_with(host->loop, ends[0], WEIR_FD_WRITABLE, &seen);
    host_turn(host, 3);
    assert_int_equal(seen.ready.calls, 0);
    (void)socket_drain(ends[1]);
    assert_true(call_counter_await(&seen.ready, 1));
    assert_int_equal(seen.events, WEIR_FD_WRITABLE);
    watch_end(watch, &seen, 0);
    pipe_close(ends);
}

TEST_EACH_LOOP(fd_watch, reports_urgent_data)
{
    struct watch_record seen = {.reaction = PAUSE};
    weir_fd_watch *watch;
    int ends[2];

    socket_pair(PAIR_TCP, ends);
    watch = watch_with(host->loop, ends[0], WEIR_FD_PRIORITY, &seen);
    send_byte(ends[1]);
    host_turn(host, 3);
    assert_int_equal(seen.ready.calls, 0);
    assert_int_equal(send(ends[1], "!", 1, MSG_OOB), 1);
    assert_true(call_counter_await(&seen.ready, 1));
    assert_int_equal(seen.events, WEIR_FD_PRIORITY);
    watch_end(watch, &seen, 0);
    pipe_close(ends);
}

TEST_EACH_LOOP(fd_watch, does_not_call_ordinary_bytes_urgent)
{
    struct watch_record seen = {.reaction = DRAIN};
    weir_fd_watch *watch;
    int ends[2];

    socket_pair(PAIR_TCP, ends);
    watch = watch_with(host->loop, ends[0], WEIR_FD_READABLE | WEIR_FD_PRIORITY, &seen);
    for (uint32_t i = 1; i <= 3; i++) {
        host_turn(host, 1);
        send_byte(ends[1]);
        assert_true(call_counter_await(&seen.ready, i));
        assert_int_equal(seen.events, WEIR_FD_READABLE);
    }
    watch_end(watch, &seen, 0);
    pipe_close(ends);
}

TEST_EACH_LOOP(fd_watch, reports_a_hangup)
{
    struct watch_record seen = {.reaction = PAUSE};
    weir_fd_watch *watch;
    int ends[2];

    pipe_open(ends);
    watch = watch_reading(host->loop, ends[0], &seen);
    (void)close(ends[1]);
    assert_true(call_counter_await(&seen.ready, 1));
    assert_int_equal(seen.events, WEIR_FD_HANGUP);
    host_turn(host, 3);
    assert_int_equal(seen.ready.calls, 1); /* though it cannot be masked out */
    watch_end(watch, &seen, 0);
    (void)close(ends[0]);
}

TEST_EACH_LOOP(fd_watch, reports_a_half_close_if_requested)
{
    struct watch_record asked = {.reaction = PAUSE}, unasked = {.reaction = PAUSE};
    weir_fd_watch *watches[2];
    int ends[2], twin;

    socket_pair(PAIR_TCP, ends);
    twin = dup(ends[0]);
    watches[0] = watch_with(host->loop, ends[0], WEIR_FD_HANGUP, &asked);
    watches[1] = watch_with(host->loop, twin, WEIR_FD_PRIORITY, &unasked);
    assert_int_equal(shutdown(ends[1], SHUT_WR), 0);
    assert_true(call_counter_await(&asked.ready, 1));
    assert_int_equal(asked.events, WEIR_FD_HANGUP);
    host_turn(host, 3);
    assert_int_equal(unasked.ready.calls, 0);
    watch_end(watches[0], &asked, 0);
    watch_end(watches[1], &unasked, 0);
    pipe_close(ends);
    (void)close(twin);
}

TEST_EACH_LOOP(fd_watch, reports_an_error_alone)
{
    struct watch_record seen = {.reaction = PAUSE};
    weir_fd_watch *watch;
    int ends[2];

    pipe_open(ends);
    watch = watch_with(host->loop, ends[1], WEIR_FD_ERROR, &seen);
    host_turn(host, 3);
    assert_int_equal(seen.ready.calls, 0);
    (void)close(ends[0]);
    assert_true(call_counter_await(&seen.ready, 1));
    assert_int_equal(seen.events, WEIR_FD_ERROR);
    watch_end(watch, &seen, 0);
    (void)close(ends[1]);
}

/* ---- what may be watched ---- */

static int try_to_watch(weir_executor *loop, int descriptor, const weir_fd_watch_options *options)
{
    weir_fd_watch *watch = (weir_fd_watch *)&watch;
    int err = weir_fd_watch_create(loop, descriptor, options, &watch);

    assert_ptr_equal(watch, &watch); /* written only on success */
    return err;
}

TEST_EACH_LOOP(fd_watch, refuses_files_that_are_always_ready)
{
    static const char *const names[] = {"/proc/self/exe", "/", "/dev/null"};

    log_capture_start();
    weir_log_set_level(WEIR_LOG_INFO);
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        int file = open(names[i], O_RDONLY | O_CLOEXEC);

        assert_true(file >= 0);
        assert_int_equal(try_to_watch(host->loop, file, WEIR_FD_WATCH_OPTIONS(READING)), -EPERM);
        assert_true(log_capture_last_contains("always ready"));
        (void)close(file);
    }
    weir_log_set_level(WEIR_LOG_WARN);
}

TEST_EACH_LOOP(fd_watch, refuses_what_is_no_descriptor)
{
    int ends[2];

    pipe_open(ends);
    pipe_close(ends);
    assert_int_equal(try_to_watch(host->loop, ends[0], WEIR_FD_WATCH_OPTIONS(READING)), -EBADF);
    assert_int_equal(try_to_watch(host->loop, -1, WEIR_FD_WATCH_OPTIONS(READING)), -EBADF);
}

TEST_EACH_LOOP(fd_watch, refuses_what_makes_no_sense)
{
    int descriptor = eventfd(0, EFD_CLOEXEC);

    assert_int_equal(try_to_watch(NULL, descriptor, WEIR_FD_WATCH_OPTIONS(READING)), -EINVAL);
    assert_int_equal(
        try_to_watch(weir_executor_global(), descriptor, WEIR_FD_WATCH_OPTIONS(READING)), -EINVAL);
    assert_int_equal(
        try_to_watch(host->loop, descriptor, WEIR_FD_WATCH_OPTIONS(.events = WEIR_FD_READABLE)),
        -EINVAL);
    assert_int_equal(try_to_watch(host->loop, descriptor, NULL), -EINVAL);
    assert_int_equal(
        try_to_watch(host->loop, descriptor,
                     WEIR_FD_WATCH_OPTIONS(.events = 1u << 30, .ready = watch_record_ready)),
        -EINVAL);
    (void)close(descriptor);
}

TEST_EACH_LOOP(fd_watch, is_refused_by_a_loop_that_has_shut_down)
{
    int descriptor = eventfd(0, EFD_CLOEXEC);

    host_end(host);
    assert_int_equal(try_to_watch(host->loop, descriptor, WEIR_FD_WATCH_OPTIONS(READING)),
                     WEIR_EREJECTED);
    (void)close(descriptor);
}

TEST_EACH_LOOP(fd_watch, closes_a_descriptor_it_owns)
{
    struct watch_record seen = {0};
    weir_fd_watch *watch;
    int descriptor = eventfd(0, EFD_CLOEXEC), refused = open("/", O_RDONLY | O_CLOEXEC);

    assert_int_equal(
        weir_fd_watch_create(host->loop, descriptor,
                             WEIR_FD_WATCH_OPTIONS(RECORD_READING(&seen), .close_descriptor = true),
                             &watch),
        0);
    watch_end(watch, &seen, 0);
    assert_int_equal(fcntl(descriptor, F_GETFD), -1);
    assert_int_equal(
        try_to_watch(host->loop, refused, WEIR_FD_WATCH_OPTIONS(READING, .close_descriptor = true)),
        -EPERM);
    assert_int_equal(fcntl(refused, F_GETFD), -1);
}

/* ---- changes ---- */

TEST_EACH_LOOP(fd_watch, may_change_its_events_in_the_callback)
{
    struct watch_record seen = {.reaction = WRITE_ONLY};
    weir_fd_watch *watch;
    int ends[2];

    socket_pair(PAIR_UNIX, ends);
    send_byte(ends[1]);
    watch = watch_reading(host->loop, ends[0], &seen);
    assert_true(call_counter_await(&seen.ready, 3));
    assert_int_equal(seen.events, WEIR_FD_WRITABLE);
    watch_end(watch, &seen, 0);
    pipe_close(ends);
}

TEST_EACH_LOOP(fd_watch, reports_nothing_while_paused)
{
    struct watch_record seen = {.reaction = PAUSE};
    weir_fd_watch *watch;
    int ends[2];

    pipe_open(ends);
    watch = watch_with(host->loop, ends[0], 0, &seen);
    pipe_feed(ends[1]);
    host_turn(host, 3);
    assert_int_equal(seen.ready.calls, 0);
    for (uint32_t i = 1; i <= 3; i++) {
        assert_int_equal(weir_fd_watch_set_events(watch, WEIR_FD_READABLE), 0);
        assert_true(call_counter_await(&seen.ready, i));
        host_turn(host, 3);
        assert_int_equal(seen.ready.calls, i);
    }
    assert_int_equal(weir_fd_watch_set_events(watch, 1u << 20), -EINVAL);
    watch_end(watch, &seen, 0);
    pipe_close(ends);
}

TEST_EACH_LOOP(fd_watch, cannot_be_changed_when_it_is_closed)
{
    struct watch_record seen = {0};
    weir_fd_watch *watch;
    int ends[2];

    pipe_open(ends);
    watch = watch_reading(host->loop, ends[0], &seen);
    weir_fd_watch_close(watch);
    assert_int_equal(weir_fd_watch_set_events(watch, WEIR_FD_READABLE), WEIR_ECANCELED);
    weir_fd_watch_retain(watch);
    watch_end(watch, &seen, 0);
    assert_int_equal(weir_fd_watch_set_events(watch, WEIR_FD_READABLE), WEIR_ECANCELED);
    weir_fd_watch_release(watch);
    pipe_close(ends);
}

static void retain(void *watch)
{
    weir_fd_watch_retain(watch);
}

static void release(void *watch)
{
    weir_fd_watch_release(watch);
}

TEST_EACH_LOOP(fd_watch, of_one_holder_is_retained_by_two_threads)
{
    struct watch_record seen = {0};
    weir_fd_watch *watch;
    int ends[2];

    pipe_open(ends);
    watch = watch_reading(host->loop, ends[0], &seen);
    litmus_references(retain, release, watch);
    assert_int_equal(weir_fd_watch_set_events(watch, WEIR_FD_READABLE), 0); /* not closed */
    weir_fd_watch_close(watch);
    watch_end(watch, &seen, 0);
    pipe_close(ends);
}
