/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The io_uring backend.
 *
 * Little data is received and sent by the ring: a multishot receive takes a buffer when data
 * arrives, and sends are submitted together with the next wait, so that a turn costs one system
 * call. Much data is transferred by readiness.c as with epoll, while its memory is in the cache: a
 * poll in the ring reports readiness, and plain calls follow. The loop chooses for each handle by
 * what it has received last (uring_receive.c, uring_send.c).
 *
 * How a handle reads is its mode:
 *
 *     mode       in flight                  queued    reads
 *     BY_POLL    the poll, or nothing       nothing   by readiness.c
 *     BULK       the poll, or nothing       nothing   by readiness.c
 *     BY_RING    the receive                nothing   by the ring
 *     LEAVING    nothing, or the receive,   events,   nothing new
 *                which is cancelled         if any
 *
 *     from              to              when
 *     BY_POLL, BULK     BY_RING         eight reads in a row were small, and the poll has ended
 *     BY_RING           LEAVING         it brings much, the owner stops or wants single reads, the
 *                                       receive ends, the handle leaves, the ring is rebuilt
 *     any               LEAVING         an event is queued: it cannot be delivered now
 *     LEAVING           BY_POLL, BULK   the receive has ended, and all has been delivered; BULK if
 *                                       it has brought much
 *
 * So only one of poll and receive is in flight, which keeps the stream in order, and *something
 * undelivered means nothing armed*: what the owner does not take stays in the socket, whose buffer
 * is what the peer has to wait for. The kernel may have received more before it takes a
 * cancellation, which is submitted when the first event is queued. Each completion with data has a
 * buffer of its own until it is taken, so at most WEIR__URING_UNDELIVERED_MAX reads follow. A
 * cancellation for which there is no room is tried again in the next turn (needs_rearm). A rebuild
 * cancels all operations at once and queues what they bring.
 *
 * The ring also connects, except Unix sockets. It does not accept: a multishot accept empties the
 * backlog, and connections that nobody serves would wait here, beyond every limit. Several rings
 * that accept from one socket poll it in turn (uring_poll.c).
 */
#include "loop/uring.h"

#include <errno.h>
#include <poll.h>

#include "executor/executor.h"
#include "loop/readiness.h"

/* ---- starting and ending what is wanted or not ---- */

static void start_reading(weir__io_handle *handle)
{
    bool by_ring = weir__uring_receives_by_ring(handle);

    weir__uring_settle(handle);
    if (handle->uring_mode == WEIR__URING_BY_RING && by_ring)
        return;
    if (handle->uring_mode == WEIR__URING_BY_RING || handle->uring_mode == WEIR__URING_LEAVING)
        weir__uring_leave_ring(handle);
    else if (!by_ring)
        weir__uring_poll_readable(handle);
    else if (weir__uring_is_in_flight(handle, WEIR__URING_POLL))
        weir__uring_cancel(handle, WEIR__URING_POLL);
    else
        weir__uring_start_receive(handle);
}

/* A rebuild that drains the old ring rearms all handles later. */
void weir__uring_arm(weir__io_handle *handle)
{
    unsigned wanted = weir__readiness_wanted(handle);

    if (weir__uring_of(handle->io)->is_draining)
        return;
    if (wanted == 0 && handle->exclusive && weir__uring_is_in_flight(handle, WEIR__URING_POLL)) {
        weir__uring_cancel(handle, WEIR__URING_POLL);
        (void)weir__uring_submit(weir__uring_of(handle->io)); /* no connection wakes it any more */
    }
    if (wanted != 0 && (handle->wants & WEIR__IO_POLL) != 0) {
        weir__uring_poll_for_owner(handle, handle->poll_events | POLLERR | POLLHUP);
        wanted &= (handle->wants & WEIR__IO_SEND) != 0 ? POLLOUT : 0;
    }
    if ((wanted & POLLOUT) != 0 && !weir__uring_is_in_flight(handle, WEIR__URING_CONNECT))
        weir__uring_poll_writable(handle);
    if ((wanted & POLLIN) != 0)
        start_reading(handle);
}

/* Unwanted polls are left alone until they complete. A send completes with its submission. */
static void cancel_unwanted(weir__io_handle *handle)
{
    if ((handle->wants & WEIR__IO_RECEIVE) == 0)
        weir__uring_leave_ring(handle);
    for (unsigned op = 0; handle->state != WEIR__IO_ATTACHED && op < WEIR__URING_SEND; op++)
        weir__uring_cancel(handle, op);
}

void weir__uring_fail(weir__io_handle *handle, int err)
{
    if (!weir__io_is_attached(handle))
        return;
    weir__uring_discard_queued(handle);
    weir__io_fail(handle, err);
    cancel_unwanted(handle);
}

/* Called when an operation or a cancellation could not be submitted. */
void weir__uring_rearm_all(weir__uring *self)
{
    self->needs_rearm = false;
    weir_list_foreach (link, &self->io.handles) {
        weir__io_handle *handle = WEIR_CONTAINER_OF(link, weir__io_handle, link);

        cancel_unwanted(handle);
        if (weir__io_is_attached(handle))
            weir__uring_arm(handle);
    }
}

/* ---- leaving ---- */

static bool is_idle(const weir__io_handle *handle)
{
    return handle->in_flight == 0 && handle->undelivered == NULL;
}

void weir__uring_try_detach_done(weir__io_handle *handle)
{
    if (is_idle(handle) && (handle->pending & WEIR__IO_PENDING_DETACHED) == 0)
        weir__io_detach_done(handle);
}

/* ---- waiting and dispatching ---- */

/* The kernel must be entered: to submit, to have completions posted, or to find out. */
static bool must_enter(const weir__uring *self)
{
    const unsigned how = IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_TASKRUN_FLAG;

    return io_uring_sq_ready(&self->ring) != 0 || weir__uring_kernel_has_completions(self) ||
           (self->ring.flags & how) == IORING_SETUP_DEFER_TASKRUN;
}

/* Retries if the eventfd is not watched: otherwise nothing could end a wait. */
static bool has_completions_to_deliver(const weir__uring *self)
{
    return self->needs_rearm || !self->is_wake_watched || io_uring_cq_ready(&self->ring) != 0 ||
           weir__io_has_pending(&self->io);
}

/* After 2^32 turns a handle could seem to have read in this one. */
static __attribute__((noinline, cold)) void restart_turns(weir__uring *self)
{
    weir_list_foreach (link, &self->io.handles)
        WEIR_CONTAINER_OF(link, weir__io_handle, link)->slot = 0;
    self->turn = 1;
}

static int wait_for_completions(weir__io *io, int64_t deadline_ns)
{
    weir__uring *self = weir__uring_of(io);
    int err = 0;

    if (weir__uring_has_counted(self)) /* the turn is not over: return what is left */
        return (int)(self->counted - *self->ring.cq.khead);
    weir__uring_watch_wake(self);
    if (has_completions_to_deliver(self))
        deadline_ns = 0;
    if (deadline_ns != 0 || must_enter(self))
        err = weir__uring_enter(self, deadline_ns);
    if (err < 0)
        return err;
    if (++self->turn == 0)
        restart_turns(self);
    self->turn_events = (unsigned)weir__uring_count(self);
    return (int)self->turn_events;
}

/* Operations must reach the kernel before they can complete. */
static bool peek(weir__io *io)
{
    weir__uring *self = weir__uring_of(io);

    weir__uring_watch_wake(self);
    if (must_enter(self))
        (void)weir__uring_enter(self, 0);
    return has_completions_to_deliver(self);
}

static void flush(weir__io *io)
{
    weir__uring *self = weir__uring_of(io);

    weir__uring_watch_wake(self);
    if (io_uring_sq_ready(&self->ring) != 0)
        (void)weir__uring_submit(self);
    if (io_uring_sq_ready(&self->ring) != 0) /* the kernel has no memory now */
        weir__io_retry_later(io);
}

static int descriptor(weir__io *io)
{
    return weir__uring_of(io)->ring.ring_fd;
}

static bool dispatch(weir__io *io, int64_t until_ns)
{
    weir__uring *self = weir__uring_of(io);
    bool has_more;

    if (self->needs_rearm)
        weir__uring_rearm_all(self);
    has_more = weir__uring_complete(self, until_ns);
    weir__uring_buffers_fill(self);
    return has_more;
}

/* ---- handles ---- */

static int attach(weir__io_handle *handle)
{
    handle->in_flight = 0;
    handle->delivered = 0;
    handle->small_reads = (uint8_t)(WEIR__URING_SMALL_MIN - weir__uring_fresh_reads);
    handle->full_reads = 0;
    handle->uring_mode = WEIR__URING_BY_POLL;
    handle->uring_is_reading = false;
    handle->uring_edges = false;
    handle->uring_polls = 0;
    handle->undelivered = NULL;
    return 0;
}

static bool detach(weir__io_handle *handle)
{
    cancel_unwanted(handle);
    if (!weir__io_may_notify(handle))
        weir__uring_discard_queued(handle);
    else if (handle->undelivered != NULL)
        weir__uring_defer_delivery(handle);
    return is_idle(handle);
}

/* Queued events come first; the socket is read in the next turn. */
static void dispatch_pending(weir__io_handle *handle, unsigned pending)
{
    if ((pending & WEIR__IO_PENDING_READ) != 0 &&
        (handle->uring_mode == WEIR__URING_LEAVING || weir__uring_receives_by_ring(handle))) {
        weir__uring_deliver_queued(handle);
        pending &= ~(unsigned)WEIR__IO_PENDING_READ;
    }
    if (handle->state >= WEIR__IO_DETACHING)
        weir__uring_try_detach_done(handle);
    if (pending == 0 || !weir__io_is_attached(handle))
        return;
    weir__readiness_pending(handle, pending);
    if ((pending & WEIR__IO_PENDING_READ) != 0) {
        weir__uring_enter_turn(handle, weir__uring_of(handle->io));
        handle->delivered = 1;
    }
}

/*
 * A socket that receives packets or descriptors from now on must not lose any to a receive that is
 * still in the ring: it is cancelled at once.
 */
static void receive_start(weir__io_handle *handle, bool once)
{
    weir__readiness_receive_start(handle, once);
    if (handle->undelivered != NULL) /* they come before what is read */
        weir__uring_defer_delivery(handle);
    weir__uring_arm(handle);
    if (handle->datagrams && weir__uring_is_in_flight(handle, WEIR__URING_RECEIVE))
        (void)weir__uring_submit(weir__uring_of(handle->io));
}

static void receive_stop(weir__io_handle *handle)
{
    weir__readiness_receive_stop(handle);
    cancel_unwanted(handle);
}

/*
 * A Unix socket connects at once or not at all. If the backlog is full the ring would retry and
 * then block a kernel thread.
 */
static void start_connect(weir__io_handle *handle, const struct sockaddr *address, socklen_t length)
{
    struct io_uring_sqe *sqe = NULL;

    if (!weir__io_is_attached(handle))
        return;
    if (address->sa_family != AF_UNIX)
        sqe = weir__uring_start(handle, WEIR__URING_CONNECT);
    if (sqe == NULL) {
        weir__readiness_connect(handle, address, length);
        return;
    }
    weir__counter_add(handle->io->stats.connects, 1);
    handle->wants |= WEIR__IO_CONNECT;
    io_uring_prep_connect(sqe, handle->descriptor, address, length);
}

const weir__io_type weir__io_uring = {
    .name = "io_uring",
    .size = sizeof(weir__uring),
    .edge = true,
    .wakes_one = true,
    .open = weir__uring_open,
    .begin = weir__uring_begin,
    .close = weir__uring_close,
    .wait = wait_for_completions,
    .peek = peek,
    .flush = flush,
    .descriptor = descriptor,
    .dispatch = dispatch,
    .rebuild = weir__uring_rebuild,
    .attach = attach,
    .detach = detach,
    .arm = weir__uring_arm,
    .dispatch_pending = dispatch_pending,
    .accept_start = weir__readiness_accept_start,
    .accept_stop = weir__readiness_accept_stop,
    .connect = start_connect,
    .receive_start = receive_start,
    .receive_stop = receive_stop,
    .send = weir__uring_send,
    .send_datagrams = weir__readiness_send_datagrams,
    .send_file = weir__readiness_send_file,
    .poll_start = weir__readiness_poll_start,
    .poll_stop = weir__readiness_poll_stop,
};
