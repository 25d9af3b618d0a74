/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The poll backend: the simple one, and the reference for the others. Each attached handle has a
 * slot in two arrays; the eventfd has the first. A handle that wants nothing has descriptor -1
 * there, which poll ignores, hang-ups included. The last slot moves into one that becomes free.
 *
 * Slots are dispatched from the last to the first. So a slot that moves has been dispatched
 * already, or moves to a place that has not been reached yet; new slots are behind the cursor.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>

#include "base/memory.h"
#include "executor/executor.h"
#include "loop/io.h"
#include "loop/readiness.h"
#include "os/clock.h"
#include "os/system.h"

#define SLOTS_MIN 16

struct slots {
    weir__io io;
    struct pollfd *polls;
    weir__io_handle **handles; /* NULL = the eventfd */
    uint32_t capacity;
    uint32_t count;
    uint32_t cursor; /* slots before it are not dispatched yet */
    uint32_t ready;  /* number of those with events, including those of handles that left */
};

static struct slots *slots_of(weir__io *io)
{
    return WEIR_CONTAINER_OF(io, struct slots, io);
}

/* ---- the slots ---- */

static int reserve(struct slots *self, uint32_t capacity)
{
    struct pollfd *polls = weir__realloc(self->polls, capacity * sizeof(polls[0]));
    weir__io_handle **handles;

    if (polls == NULL)
        return -ENOMEM;
    self->polls = polls;
    handles = weir__realloc(self->handles, capacity * sizeof(handles[0]));
    if (handles == NULL)
        return -ENOMEM;
    self->handles = handles;
    self->capacity = capacity;
    return 0;
}

static void put(struct slots *self, uint32_t slot, struct pollfd poll, weir__io_handle *handle)
{
    self->polls[slot] = poll;
    self->handles[slot] = handle;
    if (handle != NULL)
        handle->slot = slot;
}

static int poll_attach(weir__io_handle *handle)
{
    struct slots *self = slots_of(handle->io);

    if (self->count == 0)
        return -ENOMEM; /* no memory for the arrays either */
    if (self->count == self->capacity) {
        int err = reserve(self, self->capacity * 2);

        if (err < 0)
            return err;
    }
    put(self, self->count++, (struct pollfd){.fd = -1}, handle);
    return 0;
}

static bool poll_detach(weir__io_handle *handle)
{
    struct slots *self = slots_of(handle->io);
    uint32_t last;

    if (handle->slot != 0) {
        last = --self->count;
        put(self, handle->slot, self->polls[last], self->handles[last]);
    }
    handle->slot = 0;
    handle->armed = 0;
    return true;
}

static void poll_arm(weir__io_handle *handle)
{
    struct slots *self = slots_of(handle->io);
    unsigned wanted = weir__readiness_wanted(handle);
    struct pollfd *poll = &self->polls[handle->slot];

    poll->fd = wanted != 0 ? handle->descriptor : -1;
    poll->events = (short)wanted;
    handle->armed = (uint16_t)wanted;
}

/* ---- the backend ---- */

static int poll_open(weir__io *io, char *reason, size_t size)
{
    struct slots *self = slots_of(io);

    if (reserve(self, SLOTS_MIN) < 0) {
        weir__free(self->polls);
        self->polls = NULL;
        snprintf(reason, size, "no memory for the poll backend");
        return -ENOMEM;
    }
    put(self, self->count++, (struct pollfd){.fd = io->wake_descriptor, .events = POLLIN}, NULL);
    return 0;
}

static void poll_close(weir__io *io)
{
    struct slots *self = slots_of(io);

    weir__free(self->polls);
    weir__free(self->handles);
    self->polls = NULL;
    self->handles = NULL;
    self->capacity = 0;
    self->count = 0;
    self->ready = 0;
}

static size_t poll_pollfds(weir__io *io, struct pollfd *ret_entries, size_t count)
{
    const struct slots *self = slots_of(io);
    size_t found = 0;

    for (uint32_t i = 0; i < self->count; i++) {
        if (self->polls[i].fd < 0)
            continue;
        if (found < count)
            ret_entries[found] =
                (struct pollfd){.fd = self->polls[i].fd, .events = self->polls[i].events};
        found++;
    }
    return found;
}

/* There is no kernel object to replace, but an invalid descriptor may be the cause. */
static int poll_rebuild(weir__io *io)
{
    struct slots *self = slots_of(io);
    struct timespec at_once = {0};

    self->ready = 0;
    for (uint32_t i = 1; i < self->count; i++)
        poll_arm(self->handles[i]);
    if (weir__sys.ppoll(self->polls, self->count, &at_once, NULL) < 0)
        return errno == EINTR ? 0 : -errno;
    for (uint32_t i = 1; i < self->count; i++) {
        if ((self->polls[i].revents & POLLNVAL) != 0) {
            weir__io_fail(self->handles[i], -EBADF);
            poll_arm(self->handles[i]);
        }
    }
    return 0;
}

/* ---- waiting ---- */

/* Removes the wake-up from the batch and from the eventfd, or it would be reported again. */
static void take_wake(struct slots *self)
{
    uint64_t count;

    if (self->polls[0].revents == 0)
        return;
    self->ready--;
    self->io.woken = true;
    (void)weir__sys.read(self->io.wake_descriptor, &count, sizeof(count));
}

static int poll_wait(weir__io *io, int64_t deadline_ns)
{
    struct slots *self = slots_of(io);
    struct timespec timeout;
    int ready;

    if (self->ready > 0)
        return (int)self->ready; /* left from the last batch */
    weir__counter_add(io->stats.waits, 1);
    if (deadline_ns != WEIR_NEVER)
        timeout = weir__timespec(weir__monotonic_left(deadline_ns));
    ready = weir__sys.ppoll(self->polls, self->count, deadline_ns != WEIR_NEVER ? &timeout : NULL,
                            NULL);
    if (ready < 0) {
        io->interrupted = errno == EINTR;
        return io->interrupted ? 0 : -errno;
    }
    self->ready = (uint32_t)ready;
    self->cursor = self->count;
    if (ready > 0)
        take_wake(self);
    weir__counter_add(io->stats.events, self->ready);
    return (int)self->ready;
}

/* ---- dispatching ---- */

static void dispatch_slot(weir__io_handle *handle, struct pollfd *poll)
{
    unsigned events = (unsigned)(unsigned short)poll->revents;

    poll->revents = 0;
    if (weir__readiness_is_data(handle, events)) {
        weir__readiness_receive(handle, events);
        if (weir__readiness_is_data(handle, events))
            return; /* still wants the same */
    } else if ((events & POLLNVAL) != 0)
        weir__io_fail(handle, -EBADF);
    else if (weir__io_is_attached(handle))
        weir__readiness_deliver(handle, events);
    if (handle->slot != 0) /* removes unwanted interest */
        poll_arm(handle);
}

static bool poll_dispatch(weir__io *io, int64_t until_ns)
{
    struct slots *self = slots_of(io);
    bool late = false;

    while (!late && self->ready > 0) {
        uint32_t slot = self->cursor < self->count ? self->cursor : self->count;

        while (slot > 1 && self->polls[slot - 1].revents == 0)
            slot--;
        if (slot <= 1) {
            self->ready = 0; /* handles with events have left */
            break;
        }
        self->cursor = --slot;
        self->ready--;
        weir__io_set_current(io, self->handles[slot]);
        dispatch_slot(self->handles[slot], &self->polls[slot]);
        late = weir__io_is_late(io, until_ns);
    }
    return self->ready > 0;
}

const weir__io_type weir__io_poll = {
    .name = "poll",
    .size = sizeof(struct slots),
    .open = poll_open,
    .close = poll_close,
    .wait = poll_wait,
    .pollfds = poll_pollfds,
    .dispatch = poll_dispatch,
    .rebuild = poll_rebuild,
    .attach = poll_attach,
    .detach = poll_detach,
    .arm = poll_arm,
    .dispatch_pending = weir__readiness_pending,
    WEIR__READINESS_SLOTS,
};
