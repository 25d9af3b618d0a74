/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes completions out of the queue one by one and dispatches them. The completions counted by
 * `wait` belong to the current turn; processing them may take several calls.
 */
#include <errno.h>

#include "base/no_stack_protector.h"
#include "executor/executor.h"
#include "loop/readiness.h"
#include "loop/uring.h"
#include "os/system.h"

#define ACCEPTS_MAX 64 /* by accept4, after the ring */

void (*weir__uring_fault)(struct io_uring_cqe *completion);

/* ---- the queue ---- */

static const struct io_uring_cqe *completion_at(const struct io_uring *ring, unsigned index)
{
    return &ring->cq.cqes[index & ring->cq.ring_mask];
}

static weir__io_handle *handle_of(uint64_t user_data)
{
    return (weir__io_handle *)(uintptr_t)(user_data & ~(uint64_t)WEIR__URING_OP_MASK);
}

static enum weir__uring_op op_of(uint64_t user_data)
{
    return user_data & WEIR__URING_OP_MASK;
}

int weir__uring_count(weir__uring *self)
{
    unsigned tail = io_uring_smp_load_acquire(self->ring.cq.ktail);
    int events = 0;

    for (; self->counted != tail; self->counted++) {
        uint64_t user_data = completion_at(&self->ring, self->counted)->user_data;

        if (user_data == WEIR__URING_WAKE)
            self->io.woken = true;
        else if (user_data != WEIR__URING_CANCEL)
            events++;
        if (weir__uring_is_read(
                op_of(user_data))) /* so that the last one of the turn is recognized */
            handle_of(user_data)->slot++;
    }
    return events;
}

static void end_operation(weir__uring *self, const weir__uring_completion *completion)
{
    if (completion->handle != NULL)
        completion->handle->in_flight &=
            (uint16_t) ~(1u << completion->op | WEIR__URING_CANCELLED(completion->op));
    else if (completion->op == WEIR__URING_WAKE)
        self->is_wake_watched = false;
}

/* The only function that takes completions out of the queue. */
static bool take_next(weir__uring *self, weir__uring_completion *ret_completion)
{
    struct io_uring_cqe taken;

    if (!weir__uring_has_counted(self))
        return false;
    taken = *completion_at(&self->ring, *self->ring.cq.khead);
    io_uring_cq_advance(&self->ring, 1);
    if (weir__uring_is_read(op_of(taken.user_data)))
        handle_of(taken.user_data)->slot--;
    if (weir__uring_fault != NULL)
        weir__uring_fault(&taken);
    *ret_completion = (weir__uring_completion){
        .handle = handle_of(taken.user_data),
        .op = op_of(taken.user_data),
        .result = taken.res,
        .flags = taken.flags,
    };
    if ((taken.flags & IORING_CQE_F_MORE) == 0)
        end_operation(self, ret_completion);
    return true;
}

/* ---- results of operations ---- */

/* For a socket that cannot listen the ring returns EOPNOTSUPP, and would do so forever. */
static bool is_retryable_accept_error(int err)
{
    return err == -ECANCELED || err == -EAGAIN ||
           (err != -EOPNOTSUPP && weir__readiness_is_connection_error(err));
}

/*
 * The kernel wakes only one of the rings that accept from a socket. If several processes do, this
 * one may have been woken for a client and cancelled before the accept: no other process would be
 * woken for it.
 */
static void accept_rest(weir__io_handle *handle)
{
    weir__uring_event event = {.op = WEIR__URING_ACCEPT};

    for (int i = 0; i < ACCEPTS_MAX; i++) {
        event.result =
            weir__sys.accept4(handle->descriptor, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (event.result < 0)
            return;
        weir__counter_add(handle->io->stats.accepts, 1);
        weir__uring_deliver(handle, &event);
    }
}

static void on_accept(weir__io_handle *handle, const weir__uring_completion *completion)
{
    const weir__uring_event event = {.op = WEIR__URING_ACCEPT, .result = completion->result};

    if (event.result >= 0)
        weir__counter_add(handle->io->stats.accepts, 1);
    if (event.result >= 0 || !is_retryable_accept_error(event.result))
        weir__uring_deliver(handle, &event);
    if (event.result == -ECANCELED && handle->state == WEIR__IO_DETACHING)
        accept_rest(handle);
    weir__uring_finish_reading(handle);
}

static void on_receive(weir__io_handle *handle, const weir__uring_completion *completion)
{
    weir__counter_add(handle->io->stats.receives, 1);
    weir__uring_on_receive(handle, completion);
    weir__uring_finish_reading(handle);
}

/* A connect interrupted while in progress is finished by a poll. */
static bool is_connect_in_progress(int err)
{
    return err == -EINPROGRESS || err == -EAGAIN || err == -EINTR || err == -ECANCELED;
}

static void on_connect(weir__io_handle *handle, const weir__uring_completion *completion)
{
    const weir__uring_event event = {.op = WEIR__URING_CONNECT, .result = completion->result};

    if (!weir__io_is_attached(handle))
        return;
    if (!is_connect_in_progress(event.result))
        weir__uring_deliver(handle, &event);
    weir__uring_arm(handle); /* also operations started meanwhile */
}

typedef void on_completion_fn(weir__io_handle *handle, const weir__uring_completion *completion);

static on_completion_fn *const on_completion[WEIR__URING_OP_COUNT] = {
    [WEIR__URING_POLL] = weir__uring_on_poll, [WEIR__URING_POLL_WRITE] = weir__uring_on_writable,
    [WEIR__URING_ACCEPT] = on_accept,         [WEIR__URING_CONNECT] = on_connect,
    [WEIR__URING_RECEIVE] = on_receive,
};

WEIR__NO_STACK_PROTECTOR bool weir__uring_complete_next(weir__uring *self)
{
    weir__uring_completion completion;
    weir__io_handle *handle;

    if (!take_next(self, &completion))
        return false;
    handle = completion.handle;
    if (handle == NULL)
        return true;
    weir__counter_add(self->io.stats.events, 1);
    if (completion.result == -EBADF)
        weir__uring_fail(handle, -EBADF);
    on_completion[completion.op](handle, &completion);
    if (handle->state >= WEIR__IO_DETACHING)
        weir__uring_try_detach_done(handle);
    return true;
}
