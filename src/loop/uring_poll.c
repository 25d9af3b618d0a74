/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Polls: for what there is to read, again and again, and for room to write, once, after which
 * ready.c makes the calls; and for whatever an owner polls for, once.
 *
 * A poll that completes again and again is edge-like: it says that something has come, not that
 * something is there. One that completes once looks first. Three things about their results:
 *
 *   - POLLRDHUP comes unasked, like POLLERR and POLLHUP. A peer that has ended its stream would
 * have polls for other things complete at once, for ever: of such a handle we hear only edges.
 *   - A result is what the descriptor has, or what it was woken for. A socket is woken for POLLIN,
 *     POLLPRI and POLLRDBAND whenever anything comes, and never has POLLRDBAND: so POLLPRI with
 *     POLLRDBAND means nothing, and without it urgent data.
 *   - POLLPRI alone wakes nobody. POLLRDBAND does.
 */
#include <errno.h>
#include <poll.h>

#include "base/no_stack_protector.h"
#include "loop/readiness.h"
#include "loop/uring.h"
#include "os/system.h"

#define URGENT (POLLPRI | POLLRDBAND)
#define READ_EVENTS (POLLIN | POLLRDHUP | URGENT)
#define WRITE_EVENTS (POLLOUT | POLLERR | POLLHUP)

/* ---- starting ---- */

static void start(weir__io_handle *handle, enum weir__uring_op op, unsigned events, bool again)
{
    struct io_uring_sqe *sqe = weir__uring_start(handle, op);

    if (sqe == NULL)
        return;
    if (again)
        io_uring_prep_poll_multishot(sqe, handle->descriptor, events);
    else
        io_uring_prep_poll_add(sqe, handle->descriptor, events);
    handle->armed |= (uint16_t)events;
}

static bool uses_edges(const weir__io_handle *handle)
{
    return (handle->uring_flags & WEIR__URING_EDGES) != 0;
}

void weir__uring_poll_readable(weir__io_handle *handle)
{
    if (!weir__uring_is_in_flight(handle, WEIR__URING_POLL))
        start(handle, WEIR__URING_POLL, READ_EVENTS, true);
}

void weir__uring_poll_for_owner(weir__io_handle *handle, unsigned events)
{
    if ((events & POLLPRI) != 0)
        events |= URGENT;
    if (!weir__uring_is_in_flight(handle, WEIR__URING_POLL))
        start(handle, WEIR__URING_POLL, events, uses_edges(handle));
    else if ((events & ~(unsigned)handle->armed) != 0)
        weir__uring_cancel(handle, WEIR__URING_POLL);
}

void weir__uring_poll_writable(weir__io_handle *handle)
{
    if (!weir__uring_is_in_flight(handle, WEIR__URING_POLL_WRITE))
        start(handle, WEIR__URING_POLL_WRITE, POLLOUT, uses_edges(handle));
}

/* ---- completing ---- */

/* What a poll said is of no use now: the next one says it again. Or it says that the descriptor is
 * none that can be polled. */
static bool is_useless(weir__io_handle *handle, int result)
{
    if (weir__uring_of(handle->io)->is_draining || !weir__io_is_attached(handle))
        return true;
    if (result >= 0 || result == -ECANCELED)
        return false;
    weir__uring_fail(handle, result);
    return true;
}

/*
 * A short read means that there is nothing more, unless it has ended at the mark of urgent data.
 * Then it is read to the end, as from a peer that has hung up.
 */
static unsigned read_events(unsigned events)
{
    bool is_urgent = (events & URGENT) == POLLPRI;

    events &= ~(unsigned)URGENT;
    if (is_urgent)
        events |= POLLRDHUP;
    return events;
}

/*
 * It reads once a turn, however often it was woken: what the others tell of was there before the
 * read, which has emptied the socket, or has said that it has not. But it has not looked for an
 * end.
 */
static void read_or_note(weir__io_handle *handle, unsigned events)
{
    events = read_events(events);
    if (handle->delivered == 0)
        weir__readiness_deliver(handle, events);
    else if ((events & ~(unsigned)POLLIN) == 0 && !handle->unread)
        return;
    else if ((handle->wants & (WEIR__IO_ACCEPT | WEIR__IO_RECEIVE)) != 0)
        weir__io_set_pending(handle, WEIR__IO_PENDING_READ);
    else
        handle->unread = true;
    handle->delivered = 1;
    if (handle->unread && weir__io_is_attached(handle))
        weir__uring_cancel(handle, WEIR__URING_POLL); /* nobody wants to hear more */
}

/* What an owner polls for is told only if it is there. */
static unsigned owner_events(const weir__io_handle *handle, unsigned events)
{
    struct pollfd now = {.fd = handle->descriptor, .events = (short)handle->poll_events};

    if ((events & URGENT) == URGENT) {
        if (weir__sys.ppoll(&now, 1, &(struct timespec){0}, NULL) < 0)
            return 0;
        events = (unsigned)now.revents;
    }
    return events & (handle->poll_events | (unsigned)(POLLERR | POLLHUP));
}

static void notify_owner(weir__io_handle *handle, unsigned events)
{
    if (handle->delivered > 0)
        return;
    events = owner_events(handle, events);
    if (events == 0) {
        handle->uring_flags |= WEIR__URING_EDGES;
        return;
    }
    weir__readiness_deliver(handle, events);
    handle->delivered = 1;
    if (uses_edges(handle))
        weir__uring_cancel(handle, WEIR__URING_POLL); /* the next one looks first */
}

/* A socket that is being connected has nothing to say; to hear of it again after that, the poll
 * has to begin again, for it looks first. */
static void on_events(weir__io_handle *handle, unsigned events)
{
    if (weir__uring_is_in_flight(handle, WEIR__URING_CONNECT))
        weir__uring_cancel(handle, WEIR__URING_POLL);
    else if ((handle->wants & WEIR__IO_POLL) != 0)
        notify_owner(handle, events);
    else
        read_or_note(handle, events);
}

/* weir__readiness_deliver has armed what it found missing; it does not know that a poll has ended,
 * or that the ring of buffers may be the better way by now. */
static void rearm(weir__io_handle *handle, bool has_ended)
{
    if (has_ended || weir__uring_receives_by_ring(handle))
        weir__uring_arm(handle);
}

WEIR__NO_STACK_PROTECTOR void weir__uring_on_poll(weir__io_handle *handle,
                                                  const weir__uring_completion *completion)
{
    bool has_ended = (completion->flags & IORING_CQE_F_MORE) == 0;

    if (has_ended)
        handle->armed = weir__uring_is_in_flight(handle, WEIR__URING_POLL_WRITE) ? POLLOUT : 0;
    if (!is_useless(handle, completion->result)) {
        if (completion->result > 0)
            on_events(handle, (unsigned)completion->result);
        rearm(handle, has_ended);
    }
    if (handle->slot == 0)
        handle->delivered = 0;
}

void weir__uring_on_writable(weir__io_handle *handle, const weir__uring_completion *completion)
{
    if ((completion->flags & IORING_CQE_F_MORE) == 0)
        handle->armed &= (uint16_t)~POLLOUT;
    if (is_useless(handle, completion->result))
        return;
    if (completion->result > 0 && (completion->result & WRITE_EVENTS) == 0) {
        handle->uring_flags |= WEIR__URING_EDGES;
    } else if (completion->result > 0) {
        weir__uring_cancel(handle, WEIR__URING_POLL_WRITE); /* if it would go on */
        weir__readiness_deliver(handle, POLLOUT);
    }
    weir__uring_arm(handle);
}
