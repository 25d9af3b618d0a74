/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes completions out of the queue one by one and dispatches them. The completions counted by
 * `wait` belong to the current turn; processing them may take several calls.
 */
#include <errno.h>

#include "base/no_stack_protector.h"
#include "executor/executor.h"
#include "loop/uring.h"

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

/* Wake-ups alone are no events. Among others they are counted with them. */
int weir__uring_count(weir__uring *self)
{
    unsigned at = self->counted, tail = io_uring_smp_load_acquire(self->ring.cq.ktail);
    int events = (int)(tail - at);

    while (at != tail && handle_of(completion_at(&self->ring, at)->user_data) == NULL)
        at++;
    if (at == tail && events > 0) {
        self->io.woken = true;
        events = 0;
    }
    self->counted = tail;
    weir__counter_add(self->io.stats.events, (uint64_t)events);
    return events;
}

/* ---- results of operations ---- */

/* A connect interrupted while in progress is finished by a poll. */
static bool is_connect_in_progress(int err)
{
    return err == -EINPROGRESS || err == -EAGAIN || err == -EINTR || err == -ECANCELED;
}

static void on_connect(weir__io_handle *handle, int result)
{
    const weir__uring_event event = {.op = WEIR__URING_CONNECT, .result = result};

    if (!weir__io_is_attached(handle))
        return;
    if (!is_connect_in_progress(event.result))
        weir__uring_deliver(handle, &event);
    weir__uring_arm(handle); /* also operations started meanwhile */
}

/* ---- taking completions ---- */

static __attribute__((noinline)) void on_rare(weir__io_handle *handle, enum weir__uring_op op,
                                              int result, unsigned flags)
{
    if ((flags & IORING_CQE_F_MORE) == 0)
        weir__uring_end(handle, op);
    if (result == -EBADF)
        weir__uring_fail(handle, -EBADF);
    switch (op) {
    case WEIR__URING_POLL:
        weir__uring_on_poll(handle, result, flags);
        break;
    case WEIR__URING_POLL_WRITE:
        weir__uring_on_writable(handle, result, flags);
        break;
    default:
        on_connect(handle, result);
    }
    weir__uring_check_detach(handle);
}

static inline void on_completion(weir__io_handle *handle, enum weir__uring_op op, int result,
                                 unsigned flags)
{
    if (op == WEIR__URING_RECEIVE)
        weir__uring_on_receive(handle, result, flags);
    else if (op == WEIR__URING_SEND)
        weir__uring_on_send(handle, result);
    else
        on_rare(handle, op, result, flags);
}

static void on_completion_without_handle(weir__uring *self, enum weir__uring_op op, unsigned flags)
{
    if (op == WEIR__URING_WAKE && (flags & IORING_CQE_F_MORE) == 0)
        self->is_wake_watched = false;
}

/* The only function that takes completions out of the queue. */
WEIR__NO_STACK_PROTECTOR bool weir__uring_complete(weir__uring *self, int64_t until_ns)
{
    unsigned head = *self->ring.cq.khead;
    bool is_late = false;

    while (!is_late && head != self->counted) {
        const struct io_uring_cqe *taken = completion_at(&self->ring, head++);
        struct io_uring_cqe changed;
        uint64_t user_data;
        unsigned flags;
        int result;

        if (weir__uring_fault != NULL) {
            changed = *taken;
            taken = &changed;
            weir__uring_fault(&changed);
        }
        user_data = taken->user_data;
        result = taken->res;
        flags = taken->flags;
        io_uring_smp_store_release(self->ring.cq.khead, head);
        weir__io_set_current(&self->io, handle_of(user_data));
        if (handle_of(user_data) != NULL)
            on_completion(handle_of(user_data), op_of(user_data), result, flags);
        else
            on_completion_without_handle(self, op_of(user_data), flags);
        is_late = weir__io_is_late(&self->io, until_ns);
    }
    return head != self->counted;
}
