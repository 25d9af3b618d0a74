/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The I/O backend of loops in a world, unless they run on a simulated io_uring (uring.c): readiness
 * of simulated descriptors. Events become
 * completions by the same code as with epoll and poll (loop/readiness.c), so that all of it is
 * tested, and each system call can fail.
 *
 * A descriptor that becomes ready is appended to the list of its backend. It stays there as long as
 * the handle wants what it is ready for.
 *
 * Exclusive handles are those of EPOLLEXCLUSIVE: a change wakes the first whose loop sleeps, and
 * until then those whose loops are busy.
 */
#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>

#include "sim/network.h"

#define BUSY_MAX 64 /* after that, a loop that is never idle lets others run */

struct weir__sim_io {
    weir__io io;
    weir__list ready;
    unsigned batch; /* of the ready ones, those that the current dispatch delivers */
    unsigned ready_count;
    bool woken;
    unsigned busy; /* waits in a row that did not wait */
    weir__sim_fiber *waiter;
};

static weir__sim_io *sim_io_of(weir__io *io)
{
    return WEIR_CONTAINER_OF(io, weir__sim_io, io);
}

/* ---- readiness ---- */

static unsigned events_of(weir__sim_descriptor *descriptor)
{
    return weir__sim_descriptor_poll(descriptor) & (descriptor->handle->armed | POLLERR | POLLHUP);
}

static void wake(weir__sim_io *self)
{
    if (self->waiter != NULL)
        weir__sim_wake_fiber(self->waiter);
}

bool weir__sim_io_ready(weir__sim_descriptor *descriptor)
{
    weir__sim_io *self = descriptor->io;

    if (descriptor->handle->armed == 0 || !weir__list_is_empty(&descriptor->ready_link) ||
        events_of(descriptor) == 0)
        return false;
    weir__list_append(&self->ready, &descriptor->ready_link);
    self->ready_count++;
    wake(self);
    return descriptor->handle->exclusive && self->waiter != NULL;
}

void weir__sim_io_wake(weir__sim_io *self)
{
    self->woken = true;
    wake(self);
}

void weir__sim_io_forget(weir__sim_descriptor *descriptor)
{
    if (!weir__list_is_empty(&descriptor->ready_link)) {
        weir__list_remove(&descriptor->ready_link);
        descriptor->io->ready_count--;
    }
    descriptor->handle = NULL;
    descriptor->io = NULL;
}

/* ---- handles ---- */

static int sim_attach(weir__io_handle *handle)
{
    weir__sim_descriptor *descriptor = weir__sim_descriptor_of(handle->descriptor);

    if (descriptor == NULL)
        return -EBADF; /* a descriptor of the real system */
    descriptor->handle = handle;
    descriptor->io = sim_io_of(handle->io);
    return 0;
}

static bool sim_detach(weir__io_handle *handle)
{
    weir__sim_descriptor *descriptor = weir__sim_descriptor_of(handle->descriptor);

    if (descriptor != NULL && descriptor->handle == handle)
        weir__sim_io_forget(descriptor);
    handle->armed = 0;
    return true;
}

static void sim_arm(weir__io_handle *handle)
{
    weir__sim_descriptor *descriptor = weir__sim_descriptor_of(handle->descriptor);

    handle->armed = (uint16_t)weir__sim->seams->wanted(handle);
    if (descriptor != NULL && descriptor->handle == handle)
        (void)weir__sim_io_ready(descriptor);
}

/* ---- the backend ---- */

static int sim_open(weir__io *io, char *reason, size_t size)
{
    weir__sim_io *self = sim_io_of(io);

    (void)reason;
    (void)size;
    weir__list_init(&self->ready);
    self->ready_count = 0;
    self->batch = 0;
    weir__sim_eventfd_set_io(io->wake_descriptor, self);
    return 0;
}

static void sim_close(weir__io *io)
{
    (void)io; /* no handle is attached, so nothing is ready */
}

static int sim_wait(weir__io *io, int64_t deadline_ns)
{
    weir__sim_io *self = sim_io_of(io);

    if (self->batch > 0)
        return (int)self->batch;
    atomic_fetch_add_explicit(&io->stats.waits, 1, memory_order_relaxed);
    weir__sim_preempt();
    if (++self->busy == BUSY_MAX) { /* also in a calm world */
        self->busy = 0;
        weir__sim_yield();
    }
    if (self->ready_count == 0 && !self->woken && deadline_ns > weir__sim->now_ns) {
        self->waiter = weir__sim->current;
        weir__sim_wait("I/O", io, deadline_ns);
        self->waiter = NULL;
        self->busy = 0;
    }
    io->woken = self->woken;
    self->woken = false;
    self->batch = self->ready_count;
    return (int)self->batch;
}

static void dispatch(weir__sim_descriptor *descriptor)
{
    weir__io_handle *handle = descriptor->handle;
    unsigned events = events_of(descriptor);

    if (events == 0)
        return;
    weir__sim_trace("ready", descriptor->file->number, events);
    if (events == POLLIN && handle->wants == WEIR__IO_RECEIVE && handle->pending == 0 &&
        !handle->datagrams)
        weir__sim->seams->receive(handle, events);
    else if (weir__io_is_attached(handle))
        weir__sim->seams->deliver(handle, events);
    if (weir__io_is_attached(handle))
        sim_arm(handle);
}

static bool sim_dispatch(weir__io *io, int64_t until_ns)
{
    weir__sim_io *self = sim_io_of(io);
    bool late = false;
    weir__list *link;

    while (!late && self->batch > 0 && (link = weir__list_pop(&self->ready)) != NULL) {
        weir__sim_descriptor *descriptor =
            WEIR_CONTAINER_OF(link, weir__sim_descriptor, ready_link);

        self->batch--;
        self->ready_count--;
        weir__io_set_current(io, descriptor->handle);
        dispatch(descriptor);
        late = ++io->work >= WEIR__IO_CLOCK_INTERVAL && weir__sim->seams->check_clock(io, until_ns);
    }
    if (self->batch > self->ready_count)
        self->batch = self->ready_count; /* files that have left */
    return self->batch > 0;
}

static int sim_rebuild(weir__io *io)
{
    sim_io_of(io)->batch = 0;
    return 0;
}

/* The other operations are those of weir__seams.readiness: see weir__sim_backend. */
static weir__io_type type = {
    .name = "sim",
    .wakes_one = true,
    .size = sizeof(weir__sim_io),
    .open = sim_open,
    .close = sim_close,
    .wait = sim_wait,
    .dispatch = sim_dispatch,
    .rebuild = sim_rebuild,
    .attach = sim_attach,
    .detach = sim_detach,
    .arm = sim_arm,
};

const weir__io_type *weir__sim_backend(enum weir_io io)
{
    const weir__io_type *readiness = weir__sim->seams->readiness;

    if (weir__sim->options.uring && io == WEIR_IO_URING)
        return weir__sim->seams->uring;
    type.dispatch_pending = readiness->dispatch_pending;
    type.accept_start = readiness->accept_start;
    type.accept_stop = readiness->accept_stop;
    type.connect = readiness->connect;
    type.receive_start = readiness->receive_start;
    type.receive_stop = readiness->receive_stop;
    type.send = readiness->send;
    type.send_datagrams = readiness->send_datagrams;
    type.send_file = readiness->send_file;
    type.poll_start = readiness->poll_start;
    type.poll_stop = readiness->poll_stop;
    return &type;
}
