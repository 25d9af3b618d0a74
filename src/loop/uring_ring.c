/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens, closes and rebuilds the ring. To replace a failed ring, all operations are cancelled and
 * their results queued until nothing is in flight; then the handles are as if nothing had been
 * started.
 */
#include <weir/error.h>

#include "base/log.h"
#include "loop/uring.h"
#include "os/clock.h"

#define DRAIN_NS weir_seconds(1)
#define WORKERS_MAX 2
#define REASON_SIZE 256
#define FEATURES_SIZE 128

/* A loop that resumes after a suspension had a working ring. */
int weir__uring_open(weir__io *io, char *reason, size_t size)
{
    int err = io->closed ? 0 : weir__uring_probe(&io->options, reason, size);

    return err < 0 ? err : weir__uring_setup(weir__uring_of(io), reason, size);
}

int weir__uring_begin(weir__io *io)
{
    weir__uring *self = weir__uring_of(io);
    char features[FEATURES_SIZE];
    int err = weir__uring_system.enable(&self->ring);

    if (err < 0)
        return err;
    /* Our operations do not block: a safeguard, should the kernel start worker threads. */
    (void)weir__uring_system.limit_workers(&self->ring, (unsigned[2]){WORKERS_MAX, WORKERS_MAX});
    weir__uring_features(self, features, sizeof(features));
    weir__debug("loop", io->options.name, "io_uring: %s", features);
    err = weir__uring_buffers_open(self);
    if (err < 0)
        weir__warn("loop", io->options.name, "receives by poll, the buffer ring failed: %s",
                   weir_error_text(err));
    return 0;
}

static void close_ring(weir__uring *self, bool buffers_in_use)
{
    if (!self->is_open)
        return;
    self->is_open = false;
    self->is_wake_watched = false;
    weir__uring_system.exit(&self->ring);
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

/* Its receive is cancelled with all operations. */
static void begin_drain(weir__io_handle *handle)
{
    if (handle->uring_mode == WEIR__URING_BY_RING)
        handle->uring_mode = WEIR__URING_LEAVING;
}

/*
 * Cancels all operations and waits for them, for at most a second. Operations that have not reached
 * the kernel are submitted first, so that they complete too. Results are queued: no owner may be
 * notified now. The kernel is entered at least once after the cancellation: a thread that was
 * without a CPU for a second must not lose its handles.
 */
static void drain(weir__uring *self)
{
    int64_t give_up_ns = weir__monotonic_now() + DRAIN_NS;
    int err = weir__uring_enter(self, 0);
    bool is_cancelled = false;

    self->is_draining = true;
    weir_list_foreach (link, &self->io.handles)
        begin_drain(WEIR_CONTAINER_OF(link, weir__io_handle, link));
    if (err == 0)
        err = weir__uring_cancel_all(self);
    do {
        (void)weir__uring_count(self);
        (void)weir__uring_complete(self, WEIR_NEVER);
        if (!is_any_in_flight(self) || (is_cancelled && weir__monotonic_now() >= give_up_ns))
            break;
        err = err < 0 ? err : weir__uring_enter(self, give_up_ns);
        is_cancelled = true;
    } while (err == 0);
    self->is_draining = false;
}

/* Drops operations still in flight. Returns whether the kernel may still write to a buffer. */
static bool drop_operations(weir__io_handle *handle)
{
    bool receives = weir__uring_is_in_flight(handle, WEIR__URING_RECEIVE);
    bool is_lost = handle->in_flight != 0;

    handle->in_flight = 0;
    handle->armed = 0;
    weir__uring_settle(handle);
    if (is_lost)
        weir__uring_fail(handle, WEIR_EREBUILT);
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
        weir__error("loop", io->options.name, "cannot replace the ring: %s", reason);
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
