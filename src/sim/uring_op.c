/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations of a simulated io_uring. An operation is tried when it is submitted. If it has to
 * wait it watches its descriptor, and once woken it is work for the thread: tried again when that
 * enters the kernel to get events, or interrupted for it. An operation that is cancelled while it
 * is work completes as cancelled; one that has completed before is not found.
 *
 * Its calls are those of the table of system calls, with their faults.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#include "sim/uring.h"

#define ALWAYS (POLLERR | POLLHUP | POLLRDHUP) /* reported to every poll */

struct op {
    weir__list link, work_link;
    weir__sim_watch watch;
    weir__sim_uring *ring;
    struct io_uring_sqe sqe;
    unsigned interest; /* events that wake it, beside ALWAYS */
    unsigned woken;    /* what it was woken for; 0: look */
    bool is_multishot, is_cancelled;
    bool is_connecting; /* the call was made */
};

static const weir__system *calls(void)
{
    return weir__sim->seams->system;
}

/* ---- the life of an operation ---- */

static void end(struct op *op)
{
    weir__list_remove(&op->link);
    weir__list_remove(&op->work_link);
    weir__list_remove(&op->watch.link);
    free(op);
}

static void finish(struct op *op, int result, unsigned flags)
{
    weir__sim_uring_post(op->ring, op->sqe.user_data, result, flags);
    end(op);
}

/* Posts a completion after which a multishot operation goes on, unless the kernel ends it. */
static bool post_and_go_on(struct op *op, int result, unsigned flags)
{
    if (!op->is_multishot || !weir__sim_uring_has_room(op->ring) ||
        weir__sim_fault(WEIR_SIM_FAULT_SHORT_READ)) {
        finish(op, result, flags);
        return false;
    }
    weir__sim_uring_post(op->ring, op->sqe.user_data, result, flags | IORING_CQE_F_MORE);
    return true;
}

static void queue(struct op *op)
{
    if (weir__list_is_empty(&op->work_link))
        weir__list_append(&op->ring->work, &op->work_link);
    weir__sim_uring_notify(op->ring);
}

static unsigned state_of(const struct op *op)
{
    return op->watch.descriptor == NULL
               ? POLLNVAL
               : weir__sim_descriptor_poll(op->watch.descriptor) & (op->interest | ALWAYS);
}

/* The loop closes a descriptor when no operation uses it any more. */
static bool on_woken(weir__sim_watch *watch, unsigned events)
{
    struct op *op = WEIR_CONTAINER_OF(watch, struct op, watch);
    bool is_work = !weir__list_is_empty(&op->work_link);

    if (watch->descriptor == NULL) {
        weir_sim_fail(weir__sim, "descriptor %d was closed with an operation %u in flight",
                      op->sqe.fd, op->sqe.opcode);
        op->is_cancelled = true;
    } else if ((events != 0 && (events & op->interest) == 0) ||
               ((events & POLLIN) == 0 && state_of(op) == 0)) {
        return false;
    }
    op->woken = 0; /* after several wakes it looks */
    if (!is_work && weir__sim_kernel_of_world.reports_wakes)
        op->woken = events & op->interest;
    queue(op);
    return !is_work;
}

/* ---- polls ---- */

static void poll_again(struct op *op)
{
    unsigned events = op->woken != 0 ? op->woken : state_of(op);

    op->woken = 0;
    if (events != 0)
        (void)post_and_go_on(op, (int)events, 0);
}

static unsigned poll_events(const struct io_uring_sqe *sqe)
{
    unsigned events = sqe->poll32_events;

#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    events = events << 16 | events >> 16;
#endif
    return events;
}

/* A one-shot poll reports a state that is there at once, a multishot poll as work. */
static void start_poll(struct op *op)
{
    if (state_of(op) == 0)
        return;
    if (op->is_multishot)
        queue(op);
    else
        poll_again(op);
}

/* ---- receives by the buffer ring ---- */

static const struct io_uring_buf *first_buffer(weir__sim_uring *ring)
{
    unsigned count;

    if (ring->buffers == NULL)
        return NULL;
    count =
        (uint16_t)(__atomic_load_n(&ring->buffers->tail, __ATOMIC_ACQUIRE) - ring->buffers_taken);
    if (count > weir__sim_kernel_of_world.most_buffers)
        weir__sim_kernel_of_world.most_buffers = count;
    return count > 0 ? &ring->buffers->bufs[ring->buffers_taken & (ring->buffer_count - 1)] : NULL;
}

/* Without a buffer it ends, even if there is nothing to receive. */
static void receive(struct op *op)
{
    const weir__sim_kernel *kernel = &weir__sim_kernel_of_world;
    bool goes_on = true;

    for (unsigned i = 0; goes_on; i++) {
        const struct io_uring_buf *buffer = first_buffer(op->ring);
        ssize_t length;
        unsigned flags;

        if (buffer == NULL) {
            finish(op, -ENOBUFS, 0);
            return;
        }
        if (i == kernel->receives) {
            queue(op);
            return;
        }
        length = calls()->recv(op->sqe.fd, (void *)(uintptr_t)buffer->addr, buffer->len, 0);
        if (length < 0 && errno == EAGAIN)
            return;
        if (length < 0 || (length == 0 && !kernel->end_takes_buffer)) {
            finish(op, length < 0 ? -errno : 0, 0);
            return;
        }
        op->ring->buffers_taken++;
        flags = IORING_CQE_F_BUFFER | (unsigned)buffer->bid << IORING_CQE_BUFFER_SHIFT;
        if (length == 0) {
            finish(op, 0, flags);
            return;
        }
        goes_on = post_and_go_on(op, (int)length, flags);
    }
}

/* ---- connects ---- */

static void connect_again(struct op *op)
{
    int err = 0;
    socklen_t length = sizeof(err);

    if (!op->is_connecting) {
        err = calls()->connect(op->sqe.fd, (const struct sockaddr *)(uintptr_t)op->sqe.addr,
                               (socklen_t)op->sqe.off) < 0
                  ? errno
                  : 0;
        op->is_connecting = true;
        if (err == EINPROGRESS)
            return;
    } else if (state_of(op) == 0) {
        return;
    } else if (calls()->getsockopt(op->sqe.fd, SOL_SOCKET, SO_ERROR, &err, &length) < 0) {
        err = errno;
    }
    finish(op, -err, 0);
}

/* ---- work ---- */

static void try(struct op *op)
{
    if (op->is_cancelled) {
        finish(op, -ECANCELED, 0);
        return;
    }
    switch (op->sqe.opcode) {
    case IORING_OP_POLL_ADD:
        poll_again(op);
        break;
    case IORING_OP_RECV:
        receive(op);
        break;
    default:
        connect_again(op);
    }
}

/* What becomes work meanwhile is left for the next time. An interrupted thread is the ring's. */
void weir__sim_uring_run_work(weir__sim_uring *ring)
{
    weir_sim_process *process = weir__sim->current->process;
    weir__list work, *link;

    weir__list_init(&work);
    while ((link = weir__list_pop(&ring->work)) != NULL)
        weir__list_append(&work, link);
    ring->sq_flags &= ~(unsigned)IORING_SQ_TASKRUN;
    weir__sim->current->process = ring->process;
    while ((link = weir__list_pop(&work)) != NULL)
        try(WEIR_CONTAINER_OF(link, struct op, work_link));
    weir__sim->current->process = process;
}

bool weir__sim_uring_receives(const weir__sim_uring *ring, const weir__io_handle *handle)
{
    for (const weir__list *link = ring->ops.next; link != &ring->ops; link = link->next) {
        const struct op *op = WEIR_CONTAINER_OF((weir__list *)(uintptr_t)link, struct op, link);

        if (op->sqe.opcode == IORING_OP_RECV && !op->is_cancelled &&
            op->sqe.user_data == ((uintptr_t)handle | WEIR__URING_RECEIVE))
            return true;
    }
    return false;
}

unsigned weir__sim_uring_end_all(weir__sim_uring *ring, bool silently)
{
    unsigned count = 0;

    weir_list_foreach (link, &ring->ops) {
        struct op *op = WEIR_CONTAINER_OF(link, struct op, link);

        count++;
        if (silently)
            end(op);
        else
            finish(op, -ECANCELED, 0);
    }
    return count;
}

/* ---- submission ---- */

static int cancel(weir__sim_uring *ring, const struct io_uring_sqe *sqe)
{
    int result = -ENOENT;

    weir_list_foreach (link, &ring->ops) {
        struct op *op = WEIR_CONTAINER_OF(link, struct op, link);

        if ((sqe->cancel_flags & IORING_ASYNC_CANCEL_ANY) == 0 && op->sqe.user_data != sqe->addr)
            continue;
        if (op->is_cancelled) {
            result = result == -ENOENT ? -EALREADY : result;
            continue;
        }
        op->is_cancelled = true;
        queue(op);
        result = 0;
        if ((sqe->cancel_flags & IORING_ASYNC_CANCEL_ALL) == 0)
            break;
    }
    return result;
}

static int send_now(const struct io_uring_sqe *sqe)
{
    void *memory = (void *)(uintptr_t)sqe->addr;
    ssize_t sent;

    if ((sqe->msg_flags & MSG_DONTWAIT) == 0)
        return -EINVAL; /* it would have to wait */
    if (sqe->opcode == IORING_OP_SENDMSG)
        sent = calls()->sendmsg(sqe->fd, memory, (int)sqe->msg_flags);
    else
        sent = calls()->send(sqe->fd, memory, sqe->len, (int)sqe->msg_flags);
    return sent < 0 ? -errno : (int)sent;
}

static struct op *create(weir__sim_uring *ring, const struct io_uring_sqe *sqe)
{
    weir__sim_descriptor *descriptor = weir__sim_descriptor_of(sqe->fd);
    struct op *op = descriptor != NULL ? calloc(1, sizeof(*op)) : NULL;

    if (op == NULL)
        return NULL;
    op->ring = ring;
    op->sqe = *sqe;
    op->watch = (weir__sim_watch){.descriptor = descriptor, .fn = on_woken};
    weir__list_init(&op->work_link);
    weir__list_append(descriptor->watches.next, &op->watch.link); /* in front: as in Linux */
    weir__list_append(&ring->ops, &op->link);
    return op;
}

static void start(weir__sim_uring *ring, const struct io_uring_sqe *sqe)
{
    struct op *op = create(ring, sqe);

    if (op == NULL) {
        weir__sim_uring_post(ring, sqe->user_data, -EBADF, 0);
        return;
    }
    switch (sqe->opcode) {
    case IORING_OP_POLL_ADD:
        op->is_multishot = (sqe->len & IORING_POLL_ADD_MULTI) != 0;
        op->interest = poll_events(sqe) & ~WEIR__URING_EXCLUSIVE;
        op->watch.is_exclusive = (poll_events(sqe) & WEIR__URING_EXCLUSIVE) != 0;
        start_poll(op);
        break;
    case IORING_OP_RECV:
        op->is_multishot = (sqe->ioprio & IORING_RECV_MULTISHOT) != 0;
        op->interest = POLLIN;
        receive(op);
        break;
    default:
        op->interest = POLLOUT;
        connect_again(op);
    }
}

static void post_unless_skipped(weir__sim_uring *ring, const struct io_uring_sqe *sqe, int result)
{
    if (result < 0 || (sqe->flags & IOSQE_CQE_SKIP_SUCCESS) == 0)
        weir__sim_uring_post(ring, sqe->user_data, result, 0);
}

void weir__sim_uring_issue(weir__sim_uring *ring, const struct io_uring_sqe *sqe)
{
    weir__sim_trace("submit", sqe->opcode, (uint64_t)(int64_t)sqe->fd);
    switch (sqe->opcode) {
    case IORING_OP_NOP:
        post_unless_skipped(ring, sqe, 0);
        break;
    case IORING_OP_SEND:
    case IORING_OP_SENDMSG:
        post_unless_skipped(ring, sqe, send_now(sqe));
        break;
    case IORING_OP_ASYNC_CANCEL:
        post_unless_skipped(ring, sqe, cancel(ring, sqe));
        break;
    case IORING_OP_POLL_ADD:
    case IORING_OP_RECV:
    case IORING_OP_CONNECT:
        start(ring, sqe);
        break;
    default:
        post_unless_skipped(ring, sqe, -EINVAL);
    }
}
