/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations stay in the submission queue until the loop enters the kernel anyway, or until the
 * queue is full.
 *
 * The kernel runs deferred work only when it is entered to get events. The flag TASKRUN reports
 * that there is some; a ring without that flag must be entered to find out.
 */
#include <errno.h>
#include <poll.h>

#include "executor/executor.h"
#include "loop/uring.h"
#include "os/clock.h"

_Static_assert(_Alignof(weir__io_handle) > WEIR__URING_OP_MASK, "the low bits are not free");

/* The kernel must be entered to post completions. */
#define KERNEL_HAS_COMPLETIONS (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW)

#define CANCEL_SYNC_NS 100000000

/* ---- submitting ---- */

/* liburing publishes the tail only when it submits; we submit with our own flags. */
static unsigned publish_tail(struct io_uring *ring)
{
    struct io_uring_sq *queue = &ring->sq;

    queue->sqe_head = queue->sqe_tail;
    io_uring_smp_store_release(queue->ktail, queue->sqe_tail);
    return io_uring_sq_ready(ring);
}

static int enter(weir__uring *self, unsigned wait, unsigned flags, const void *argument,
                 size_t size)
{
    int err = weir__uring_system.enter((unsigned)self->ring.ring_fd, publish_tail(&self->ring),
                                       wait, flags, (sigset_t *)(uintptr_t)argument, size);

    weir__counter_add(self->io.stats.waits, 1);
    return err;
}

int weir__uring_submit(weir__uring *self)
{
    int err = enter(self, 0, 0, NULL, 0);

    return err < 0 ? err : 0;
}

/*
 * EBUSY: process the posted completions first. EAGAIN, ENOMEM: the kernel has no memory for another
 * operation now; retry in the next turn.
 */
static bool is_transient(int err)
{
    return err == -ETIME || err == -EINTR || err == -EBUSY || err == -EAGAIN || err == -ENOMEM;
}

int weir__uring_enter(weir__uring *self, int64_t deadline_ns)
{
    struct io_uring_getevents_arg argument = {0};
    struct __kernel_timespec timeout;
    int err;

    if (deadline_ns != 0 && deadline_ns != WEIR_NEVER) {
        int64_t left_ns = deadline_ns - weir__monotonic_now();

        left_ns = left_ns > 0 ? left_ns : 0;
        timeout = (struct __kernel_timespec){
            .tv_sec = left_ns / weir_seconds(1),
            .tv_nsec = left_ns % weir_seconds(1),
        };
        argument.ts = (uintptr_t)&timeout;
    }
    err = enter(self, deadline_ns != 0 ? 1 : 0,
                IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG | self->enter_flags, &argument,
                sizeof(argument));
    if (err == -EINTR)
        self->io.interrupted = true;
    return err < 0 && !is_transient(err) ? err : 0;
}

struct io_uring_sqe *weir__uring_make_room(weir__uring *self)
{
    struct io_uring_sqe *sqe = NULL;

    if (self->is_open) {
        if (weir__uring_submit(self) <
            0) /* the completion queue has overflowed: have the kernel flush it */
            (void)weir__uring_enter(self, 0);
        sqe = weir__uring_next_sqe(self);
    }
    if (sqe == NULL)
        self->needs_rearm = true;
    return sqe;
}

static struct io_uring_sqe *next_sqe(weir__uring *self)
{
    struct io_uring_sqe *sqe = weir__uring_next_sqe(self);

    return sqe != NULL ? sqe : weir__uring_make_room(self);
}

/* A cancellation completes only if it finds nothing, and then for no handle. */
static struct io_uring_sqe *start_cancel(weir__uring *self, uint64_t user_data, unsigned flags)
{
    struct io_uring_sqe *sqe = next_sqe(self);

    if (sqe == NULL)
        return NULL;
    io_uring_prep_cancel64(sqe, user_data, (int)flags);
    sqe->flags |= IOSQE_CQE_SKIP_SUCCESS;
    sqe->user_data = WEIR__URING_CANCEL;
    return sqe;
}

void weir__uring_cancel(weir__io_handle *handle, enum weir__uring_op op)
{
    weir__uring *self = weir__uring_of(handle->io);

    if (!weir__uring_is_in_flight(handle, op) || weir__uring_is_cancelled(handle, op))
        return;
    if (start_cancel(self, (uintptr_t)handle | (uint64_t)op, 0) != NULL)
        handle->in_flight |= WEIR__URING_CANCELLED(op);
    else
        self->needs_rearm = true;
}

int weir__uring_cancel_all(weir__uring *self)
{
    return start_cancel(self, 0, IORING_ASYNC_CANCEL_ANY | IORING_ASYNC_CANCEL_ALL) != NULL
               ? 0
               : -EBUSY;
}

/* An operation marked as cancelled does nothing more, even if it never completes. */
bool weir__uring_cancel_sync(weir__uring *self)
{
    struct io_uring_sync_cancel_reg all = {
        .fd = -1,
        .flags = IORING_ASYNC_CANCEL_ANY | IORING_ASYNC_CANCEL_ALL,
        .timeout = {.tv_nsec = CANCEL_SYNC_NS},
    };
    int err = weir__uring_system.cancel_sync(&self->ring, &all);

    return err >= 0 || err == -ENOENT;
}

void weir__uring_watch_wake(weir__uring *self)
{
    struct io_uring_sqe *sqe = self->is_wake_watched ? NULL : next_sqe(self);

    if (sqe == NULL)
        return;
    io_uring_prep_poll_multishot(sqe, self->io.wake_descriptor, POLLIN);
    sqe->user_data = WEIR__URING_WAKE;
    self->is_wake_watched = true;
}

bool weir__uring_kernel_has_completions(const weir__uring *self)
{
    return (IO_URING_READ_ONCE(*self->ring.sq.kflags) & KERNEL_HAS_COMPLETIONS) != 0;
}
