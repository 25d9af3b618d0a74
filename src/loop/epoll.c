/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The epoll backend: level-triggered, so unread data is reported again.
 *
 * `armed` of a handle is the kernel's interest; epoll_ctl is called only to change it. Unwanted
 * interest is removed when one of its events arrives, not before. Errors and hang-ups cannot be
 * masked, so a handle that wants nothing is then removed from the set.
 *
 * An exclusive handle (EPOLLEXCLUSIVE) wakes only one of the loops that sleep in epoll_wait, and
 * none that is busy; a loop that is busy finds the connection in its next turn, if no other has
 * accepted it by then. The kernel does not modify such an entry: it is removed and added again,
 * and removed as soon as it is unwanted, or it would take wake-ups from the other loops.
 *
 * The eventfd is edge-triggered and never read: each write causes one event and costs one call.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <sys/epoll.h>

#include <weir/error.h>

#include "base/memory.h"
#include "base/no_stack_protector.h"
#include "executor/executor.h"
#include "loop/io.h"
#include "loop/readiness.h"
#include "os/clock.h"
#include "os/descriptor.h"
#include "os/system.h"

#define EVENTS_MIN 64
#define EVENTS_MAX 4096

struct epoll {
    weir__io io;
    int descriptor; /* -1 = none */
    bool stale;     /* the set has a stale entry: rebuild before the next wait */
    bool no_pwait2; /* epoll_pwait2 is missing, or blocked by a seccomp filter */
    struct epoll_event *events;
    int capacity;
    const struct epoll_event *next; /* events of the last wait that are not dispatched yet */
    const struct epoll_event *end;
};

static struct epoll *epoll_of(weir__io *io)
{
    return WEIR_CONTAINER_OF(io, struct epoll, io);
}

/* ---- the set ---- */

_Static_assert(EPOLLIN == POLLIN && EPOLLPRI == POLLPRI && EPOLLOUT == POLLOUT &&
                   EPOLLERR == POLLERR && EPOLLHUP == POLLHUP && EPOLLRDHUP == POLLRDHUP,
               "events of poll are events of epoll");

static int control(struct epoll *self, int operation, int descriptor, unsigned events,
                   weir__io_handle *handle)
{
    struct epoll_event event = {.events = events, .data.ptr = handle};

    weir__counter_add(self->io.stats.controls, 1);
    return weir__sys.epoll_ctl(self->descriptor, operation, descriptor, &event) < 0 ? -errno : 0;
}

static int control_exclusive(struct epoll *self, weir__io_handle *handle, unsigned wanted)
{
    int err = 0;

    if (handle->slot != 0)
        err = control(self, EPOLL_CTL_DEL, handle->descriptor, 0, handle);
    handle->slot = 0;
    if (err < 0 || wanted == 0)
        return err;
    return control(self, EPOLL_CTL_ADD, handle->descriptor, wanted | EPOLLEXCLUSIVE, handle);
}

static void epoll_arm(weir__io_handle *handle)
{
    struct epoll *self = epoll_of(handle->io);
    unsigned wanted = weir__readiness_wanted(handle);
    int operation = handle->slot != 0 ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
    int err;

    if (wanted == handle->armed || self->descriptor < 0)
        return;
    err = handle->exclusive ? control_exclusive(self, handle, wanted)
                            : control(self, operation, handle->descriptor, wanted, handle);
    if (err < 0) {
        weir__io_fail(handle, err);
        return;
    }
    handle->armed = (uint16_t)wanted;
    handle->slot = wanted != 0 || !handle->exclusive;
}

/*
 * Also called before a close: a child process may keep the open file description alive, and its
 * events with it. If the descriptor was closed behind our back, the entry cannot be removed: the
 * set must be rebuilt before it reports a handle that no longer exists.
 */
static bool epoll_detach(weir__io_handle *handle)
{
    struct epoll *self = epoll_of(handle->io);

    if (handle->slot != 0 && self->descriptor >= 0 &&
        control(self, EPOLL_CTL_DEL, handle->descriptor, 0, handle) < 0)
        self->stale = true;
    handle->slot = 0;
    handle->armed = 0;
    return true;
}

/* After an event: removes the interest that caused it, if it was unwanted even before the event. */
static void remove_interest(weir__io_handle *handle, unsigned events, unsigned wanted_before)
{
    unsigned wanted = weir__readiness_wanted(handle);

    if ((wanted | wanted_before) == 0 && (events & (EPOLLERR | EPOLLHUP)) != 0)
        (void)epoll_detach(handle);
    else if ((events & handle->armed & ~(wanted | wanted_before)) != 0)
        epoll_arm(handle);
}

/* ---- the kernel's object ---- */

static int open_set(struct epoll *self)
{
    int err;

    self->descriptor = weir__sys.epoll_create1(EPOLL_CLOEXEC);
    if (self->descriptor < 0)
        return -errno;
    err = control(self, EPOLL_CTL_ADD, self->io.wake_descriptor, EPOLLIN | EPOLLET, NULL);
    if (err < 0) {
        (void)weir__descriptor_close(self->descriptor);
        self->descriptor = -1;
    }
    return err;
}

static void close_set(struct epoll *self)
{
    if (self->descriptor >= 0)
        (void)weir__descriptor_close(self->descriptor);
    self->descriptor = -1;
    self->stale = false;
    self->next = NULL;
    self->end = NULL;
}

static int explain(int err, char *reason, size_t size)
{
    snprintf(reason, size, "epoll_create1 failed: %s%s", weir_error_text(err),
             err == -EMFILE ? " (raise the limit: ulimit -n)" : "");
    return err;
}

static int epoll_open(weir__io *io, char *reason, size_t size)
{
    struct epoll *self = epoll_of(io);
    int err;

    self->events = weir__alloc(EVENTS_MIN * sizeof(self->events[0]));
    if (self->events == NULL)
        return explain(-ENOMEM, reason, size);
    self->capacity = EVENTS_MIN;
    err = open_set(self);
    if (err < 0) {
        weir__free(self->events);
        return explain(err, reason, size);
    }
    return 0;
}

static void epoll_close(weir__io *io)
{
    struct epoll *self = epoll_of(io);

    close_set(self);
    weir__free(self->events);
    self->events = NULL;
}

/* Closes the old set first: its descriptor may be the last one available. */
static int epoll_rebuild(weir__io *io)
{
    struct epoll *self = epoll_of(io);
    int err;

    close_set(self);
    weir_list_foreach (link, &io->handles) {
        weir__io_handle *handle = WEIR_CONTAINER_OF(link, weir__io_handle, link);

        handle->armed = 0;
        handle->slot = 0;
    }
    err = open_set(self);
    if (err < 0)
        return err;
    weir_list_foreach (link, &io->handles)
        epoll_arm(WEIR_CONTAINER_OF(link, weir__io_handle, link));
    return 0;
}

/* ---- waiting ---- */

/*
 * By epoll_pwait2, which counts nanoseconds; by epoll_wait, whose milliseconds are rounded up, if
 * that is not needed or not available: ENOSYS from old kernels, EPERM from seccomp filters that do
 * not know the call.
 */
static int wait_until(struct epoll *self, int64_t deadline_ns)
{
    int64_t left_ns = deadline_ns != WEIR_NEVER ? weir__monotonic_left(deadline_ns) : 0, left_ms;
    int timeout_ms = deadline_ns != WEIR_NEVER ? 0 : -1;

    if (left_ns > 0) {
        if (!self->no_pwait2) {
            struct timespec timeout = weir__timespec(left_ns);
            int count = weir__sys.epoll_pwait2(self->descriptor, self->events, self->capacity,
                                               &timeout, NULL);

            if (count >= 0 || (errno != ENOSYS && errno != EPERM))
                return count;
            self->no_pwait2 = true;
        }
        left_ms = left_ns / 1000000 + (left_ns % 1000000 != 0);
        timeout_ms = left_ms < INT_MAX ? (int)left_ms : INT_MAX;
    }
    return weir__sys.epoll_wait(self->descriptor, self->events, self->capacity, timeout_ms);
}

/* A batch that filled the array may be incomplete: make the next one larger. */
static void grow(struct epoll *self)
{
    int capacity = self->capacity * 2;
    struct epoll_event *events;

    if (capacity > EVENTS_MAX)
        return;
    events = weir__realloc(self->events, (size_t)capacity * sizeof(events[0]));
    if (events == NULL)
        return;
    self->events = events;
    self->capacity = capacity;
}

/* Removes the wake-up from the batch. Returns the number of other events. */
static int remove_wake(struct epoll *self, int count)
{
    for (int i = 0; i < count; i++) {
        if (self->events[i].data.ptr == NULL) {
            self->events[i] = self->events[--count];
            self->io.woken = true;
            break;
        }
    }
    return count;
}

WEIR__NO_STACK_PROTECTOR static int epoll_wait_for(weir__io *io, int64_t deadline_ns)
{
    struct epoll *self = epoll_of(io);
    int count;

    if (self->next < self->end)
        return (int)(self->end - self->next); /* left from the last batch */
    if (self->stale)
        return -ESTALE;
    weir__counter_add(io->stats.waits, 1);
    count = wait_until(self, deadline_ns);
    if (count < 0) {
        io->interrupted = errno == EINTR;
        return io->interrupted ? 0 : -errno;
    }
    if (count == self->capacity)
        grow(self);
    count = remove_wake(self, count);
    self->next = self->events;
    self->end = self->events + count;
    weir__counter_add(io->stats.events, (uint64_t)count);
    return count;
}

static int epoll_descriptor(weir__io *io)
{
    return epoll_of(io)->descriptor;
}

/* ---- dispatching ---- */

static void dispatch_event(weir__io_handle *handle, unsigned events)
{
    unsigned wanted = weir__readiness_wanted(handle);

    if (weir__io_is_attached(handle))
        weir__readiness_deliver(handle, events);
    if ((events & ~wanted) != 0 && handle->slot != 0)
        remove_interest(handle, events, wanted);
}

static bool epoll_dispatch(weir__io *io, int64_t until_ns)
{
    struct epoll *self = epoll_of(io);
    const struct epoll_event *event = self->next, *end = self->end;

    while (event < end) {
        weir__io_handle *handle = event->data.ptr;
        unsigned events = event->events;

        event++;
        weir__io_set_current(io, handle);
        if (weir__readiness_is_data(handle, events))
            weir__readiness_receive(handle, events);
        else
            dispatch_event(handle, events);
        if (weir__io_is_late(io, until_ns))
            break;
    }
    self->next = event;
    return event < end;
}

const weir__io_type weir__io_epoll = {
    .name = "epoll",
    .wakes_one = true,
    .size = sizeof(struct epoll),
    .open = epoll_open,
    .close = epoll_close,
    .wait = epoll_wait_for,
    .descriptor = epoll_descriptor,
    .dispatch = epoll_dispatch,
    .rebuild = epoll_rebuild,
    .detach = epoll_detach,
    .arm = epoll_arm,
    .dispatch_pending = weir__readiness_pending,
    WEIR__READINESS_SLOTS,
};
