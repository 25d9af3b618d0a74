/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ring comes and goes. A new one takes the sqe of one that has failed: what is in flight is
 * cancelled, and what comes of it is kept, until nothing is in flight any more; then the handles
 * are as they would be if nothing had been started yet.
 */
#include <weir/error.h>

#include "base/log.h"
#include "loop/uring.h"
#include "os/clock.h"

#define DRAIN_NS weir_seconds(1)
#define WORKERS_MAX 2
#define REASON_SIZE 256
#define FEATURES_SIZE 128

/* A loop that resumes after a suspension has had a ring that works. */
int weir__uring_open(weir__io *io, char *reason, size_t size)
{
    int err = io->closed ? 0 : weir__uring_probe(&io->options, reason, size);

    return err < 0 ? err : weir__uring_setup(weir__uring_of(io), reason, size);
}

/* Nothing we submit blocks, so there is no work for the kernel's threads; if it thinks otherwise,
 * there are few of them. */
static void limit_workers(weir__uring *self)
{
    unsigned most[2] = {WORKERS_MAX, WORKERS_MAX};

    (void)io_uring_register_iowq_max_workers(&self->ring, most);
}

int weir__uring_begin(weir__io *io)
{
    weir__uring *self = weir__uring_of(io);
    char features[FEATURES_SIZE];
    int err = weir__uring_system.enable(&self->ring);

    if (err < 0)
        return err;
    limit_workers(self);
    weir__uring_features(self, features, sizeof(features));
    weir__debug("loop", io->options.name, "has a ring of io_uring: %s", features);
    if (!io->options.ring_receive)
        return 0;
    err = weir__uring_buffers_open(self);
    if (err < 0)
        weir__warn("loop", io->options.name, "receives by poll, for there is no buffer ring: %s",
                   weir_error_text(err));
    return 0;
}

static void close_ring(weir__uring *self, bool buffers_in_use)
{
    if (!self->is_open)
        return;
    self->is_open = false;
    self->is_wake_watched = false;
    io_uring_queue_exit(&self->ring);
    weir__uring_buffers_close(self, buffers_in_use);
}

static bool is_any_in_flight(weir__uring *self)
{
    weir_list_foreach (link, &self->io.handles) {
        if (WEIR_CONTAINER_OF(link, weir__io_handle, link)->in_flight != 0)
            return true;
    }
    return false;
}

void weir__uring_close(weir__io *io)
{
    weir__uring *self = weir__uring_of(io);

    close_ring(self, is_any_in_flight(self) && !weir__uring_cancel_sync(self));
    weir__uring_free_spare(self);
}

/*
 * Ends all that is in flight, for a second at most. What has not reached the kernel yet is
 * submitted first, so that it completes like the rest. What completes is kept: nobody may be told
 * now. However late it is, the kernel is entered once after the cancellation: a thread that was
 * without a CPU for a second must not lose its handles.
 */
static void drain(weir__uring *self)
{
    int64_t give_up_ns = weir__monotonic_now() + DRAIN_NS;
    int err = weir__uring_enter(self, 0);
    bool is_cancelled = false;

    self->is_draining = true;
    if (err == 0)
        err = weir__uring_cancel_all(self);
    do {
        (void)weir__uring_count(self);
        while (weir__uring_complete_next(self)) {
        }
        if (!is_any_in_flight(self) || (is_cancelled && weir__monotonic_now() >= give_up_ns))
            break;
        err = err < 0 ? err : weir__uring_enter(self, give_up_ns);
        is_cancelled = true;
    } while (err == 0);
    self->is_draining = false;
}

/* What is still in flight is never heard of. Returns whether the kernel may still receive. */
static bool drop_operations(weir__io_handle *handle)
{
    bool receives = weir__uring_is_in_flight(handle, WEIR__URING_RECEIVE);
    bool is_lost = handle->in_flight != 0;

    handle->in_flight = 0;
    handle->armed = 0;
    if (is_lost) {
        handle->slot = 0;
        handle->delivered = 0;
        weir__uring_fail(handle, WEIR_EREBUILT);
    }
    if (handle->state >= WEIR__IO_DETACHING)
        weir__uring_try_detach_done(handle);
    return receives;
}

static void abandon_ring(weir__uring *self)
{
    bool receives = false;

    if (!self->is_open)
        return;
    drain(self);
    weir_list_foreach (link, &self->io.handles)
        receives |= drop_operations(WEIR_CONTAINER_OF(link, weir__io_handle, link));
    close_ring(self, receives && !weir__uring_cancel_sync(self));
}

int weir__uring_rebuild(weir__io *io)
{
    weir__uring *self = weir__uring_of(io);
    char reason[REASON_SIZE];
    int err;

    abandon_ring(self);
    err = weir__uring_setup(self, reason, sizeof(reason));
    if (err < 0) {
        weir__error("loop", io->options.name, "there is no new ring: %s", reason);
        return err;
    }
    err = weir__uring_begin(io);
    if (err < 0) {
        close_ring(self, false);
        return err;
    }
    weir__uring_rearm_all(self);
    return 0;
}
