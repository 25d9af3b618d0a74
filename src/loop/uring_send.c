/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends through the ring: what a turn sends is submitted together with the next wait, without a
 * call of its own.
 *
 * MSG_DONTWAIT makes the kernel complete a send while it is submitted: a full socket is -EAGAIN and
 * waits for room by a poll of ours. Without it the kernel would retry by polls of its own, which a
 * peer that has ended its stream completes at once, and after 128 of them it would block a thread.
 * So the memory of a send is in use only until the next submission.
 *
 * Much data is sent at once by a plain call, while it is in the cache: the end of the turn may be
 * many sends away. So is data of a turn with few events: the completions of sends need a turn of
 * their own if nothing else happens meanwhile, which costs more than the calls.
 */
#include <errno.h>

#include "base/no_stack_protector.h"
#include "executor/executor.h"
#include "loop/readiness.h"
#include "loop/uring.h"

#define LENGTH_MAX (16 * 1024) /* more is sent at once */
#define SEND_FLAGS (MSG_DONTWAIT | MSG_NOSIGNAL)

unsigned weir__uring_lend_min = 4;

/* ---- starting ---- */

/*
 * A handle has one send in the ring: packets would need a turn each. A last send is made at once,
 * since the owner waits for it to close.
 */
static inline bool may_lend(const weir__io_handle *handle)
{
    return weir__uring_of(handle->io)->turn_events >= weir__uring_lend_min &&
           handle->state == WEIR__IO_ATTACHED && !handle->datagrams && !handle->last_send &&
           (handle->wants & (WEIR__IO_SEND | WEIR__IO_LENDS)) == 0 &&
           handle->uring_mode < WEIR__URING_LEAVING;
}

static bool is_small(const struct iovec *vector, size_t count)
{
    size_t length = 0;

    for (size_t i = 0; i < count; i++)
        length += vector[i].iov_len;
    return length - 1 < LENGTH_MAX; /* not 0 */
}

/* The kernel reads header and vector when it is entered; all are free again when it has. */
static struct msghdr *copy_vector(weir__uring *self, const struct iovec *vector, size_t count)
{
    struct weir__uring_vectors *vectors = &self->vectors;
    struct weir__uring_vector *copy;

    if (io_uring_sq_ready(&self->ring) == 0)
        vectors->count = 0;
    if (vectors->count == WEIR__URING_VECTORS_MAX)
        return NULL;
    copy = &vectors->all[vectors->count++];
    for (size_t i = 0; i < count; i++)
        copy->parts[i] = vector[i];
    copy->header = (struct msghdr){.msg_iov = copy->parts, .msg_iovlen = count};
    return &copy->header;
}

static ssize_t lend(weir__io_handle *handle)
{
    weir__counter_add(handle->io->stats.sends, 1);
    handle->wants |= WEIR__IO_LENDS;
    return WEIR__IO_LENT;
}

static __attribute__((noinline)) ssize_t send_vector(weir__io_handle *handle,
                                                     const struct iovec *vector, size_t count)
{
    struct msghdr *header = NULL;
    struct io_uring_sqe *sqe = NULL;

    if (count > 1 && count <= WEIR__URING_VECTOR_MAX && is_small(vector, count) && may_lend(handle))
        header = copy_vector(weir__uring_of(handle->io), vector, count);
    if (header != NULL)
        sqe = weir__uring_start(handle, WEIR__URING_SEND);
    if (sqe == NULL)
        return weir__readiness_send(handle, vector, count);
    io_uring_prep_sendmsg(sqe, handle->descriptor, header, SEND_FLAGS);
    return lend(handle);
}

WEIR__NO_STACK_PROTECTOR ssize_t weir__uring_send(weir__io_handle *handle,
                                                  const struct iovec *vector, size_t count)
{
    struct io_uring_sqe *sqe;

    if (count != 1 || vector->iov_len - 1 >= LENGTH_MAX || !may_lend(handle) ||
        (sqe = weir__uring_start(handle, WEIR__URING_SEND)) == NULL)
        return send_vector(handle, vector, count);
    io_uring_prep_send(sqe, handle->descriptor, vector->iov_base, vector->iov_len, SEND_FLAGS);
    return lend(handle);
}

/* ---- completing ---- */

/* -EAGAIN: the socket is full. -EINTR, -ECANCELED: it was not tried, the owner sends again. */
static __attribute__((noinline)) void on_other_result(weir__io_handle *handle, int result)
{
    weir__uring_event event = {.op = WEIR__URING_SEND, .result = result};

    if (result == -EBADF)
        weir__uring_fail(handle, result);
    if (result == -EAGAIN && weir__io_is_attached(handle)) {
        handle->wants &= (uint8_t)~WEIR__IO_LENDS;
        handle->wants |= WEIR__IO_SEND;
        weir__uring_arm(handle);
        return;
    }
    if (result == -EAGAIN || result == -EINTR || result == -ECANCELED)
        event.result = 0;
    weir__uring_deliver(handle, &event);
    weir__uring_check_detach(handle);
}

WEIR__NO_STACK_PROTECTOR void weir__uring_on_send(weir__io_handle *handle, int result)
{
    weir__uring_end(handle, WEIR__URING_SEND);
    if (result < 0 || !weir__io_is_attached(handle) || weir__uring_of(handle->io)->is_draining) {
        on_other_result(handle, result);
        return;
    }
    handle->wants &= (uint8_t)~WEIR__IO_LENDS;
    handle->owner->sent(handle, result);
}
