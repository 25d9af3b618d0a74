/* SPDX-License-Identifier: Apache-2.0 */
/* The owner of a watch: counts and reacts. */
#include "support/loop/watch_recorder.h"

#include <fcntl.h>
#include <unistd.h>

#include "support/test.h"

static void drain(int descriptor)
{
    char bytes[4096];

    while (read(descriptor, bytes, sizeof(bytes)) == (ssize_t)sizeof(bytes)) {
    }
}

static void react(struct watch_record *seen, weir_fd_watch *watch)
{
    switch (seen->reaction) {
    case LEAVE:
        break;
    case DRAIN:
        drain(weir_fd_watch_descriptor(watch));
        break;
    case PAUSE:
        (void)weir_fd_watch_set_events(watch, 0);
        break;
    case WRITE_ONLY:
        (void)weir_fd_watch_set_events(watch, WEIR_FD_WRITABLE);
        break;
    case END:
        weir_fd_watch_close(watch);
        break;
    }
    if (seen->also_closes != NULL)
        weir_fd_watch_close(seen->also_closes);
}

void watch_record_ready(weir_fd_watch *watch, uint32_t events, void *user_data)
{
    struct watch_record *seen = user_data;

    if (atomic_load(&seen->closed.calls) > 0)
        atomic_store(&seen->late, true);
    atomic_store(&seen->events, events);
    react(seen, watch);
    call_counter_add(&seen->ready);
}

void watch_record_closed(weir_fd_watch *watch, int err, void *user_data)
{
    struct watch_record *seen = user_data;

    (void)watch;
    atomic_store(&seen->err, err);
    call_counter_add(&seen->closed);
}

weir_fd_watch *watch_with(weir_executor *loop, int descriptor, uint32_t events,
                          struct watch_record *seen)
{
    weir_fd_watch *watch = NULL;

    assert_int_equal(weir_fd_watch_create(
                         loop, descriptor,
                         WEIR_FD_WATCH_OPTIONS(.events = events, .ready = watch_record_ready,
                                               .closed = watch_record_closed, .user_data = seen),
                         &watch),
                     0);
    return watch;
}

weir_fd_watch *watch_reading(weir_executor *loop, int descriptor, struct watch_record *seen)
{
    return watch_with(loop, descriptor, WEIR_FD_READABLE, seen);
}

void watch_end(weir_fd_watch *watch, struct watch_record *seen, int err)
{
    weir_fd_watch_close(watch);
    assert_true(call_counter_await(&seen->closed, 1));
    assert_int_equal(seen->err, err);
    assert_false(seen->late);
    weir_fd_watch_release(watch);
    assert_int_equal(seen->closed.calls, 1);
}

void pipe_open(int ends[2])
{
    assert_int_equal(pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0);
}

void pipe_feed(int end)
{
    assert_int_equal(write(end, "x", 1), 1);
}

void pipe_close(const int ends[2])
{
    (void)close(ends[0]);
    (void)close(ends[1]);
}
