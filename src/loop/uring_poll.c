/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Polls: multishot for readable, one-shot for writable, after which readiness.c makes the calls;
 * and one-shot for the events that an owner polls for.
 *
 * A multishot poll is edge-triggered: it reports that data has arrived, not that data is there. A
 * one-shot poll checks the state first. About their results:
 *
 *   - POLLRDHUP is always reported, like POLLERR and POLLHUP. After a peer has ended its stream,
 *     one-shot polls for other events would complete at once, forever: such handles use multishot.
 *   - A result is the state of the descriptor, or the events it was woken for. A socket is woken
 *     for POLLIN, POLLPRI and POLLRDBAND whenever data arrives, and never has the state POLLRDBAND:
 *     so POLLPRI with POLLRDBAND means nothing, and POLLPRI without it means urgent data.
 *   - POLLPRI alone does not wake a poll. POLLRDBAND does.
 *
 * One-shot are also
 *   - the first two polls of a handle for data: a connection for one request then closes with no
 *     poll in flight, which would have to be cancelled, and the loop to enter the kernel once more;
 *   - those of listening sockets, so that a turn need not accept until nothing is left. If they are
 *     exclusive, a connection ends the first of the polls of several rings. The next poll of that
 *     ring is the last, and a ring that is busy with a connection is not woken for another one.
 */
#include <assert.h>
#include <errno.h>
#include <poll.h>

#include "base/no_stack_protector.h"
#include "loop/readiness.h"
#include "loop/uring.h"
#include "os/system.h"

#define ONE_SHOT_POLLS 2
#define URGENT (POLLPRI | POLLRDBAND)
#define READ_EVENTS (POLLIN | POLLRDHUP | URGENT)
#define WRITE_EVENTS (POLLOUT | POLLERR | POLLHUP)

/* ---- starting ---- */

static void start(weir__io_handle *handle, enum weir__uring_op op, unsigned events, bool again)
{
    struct io_uring_sqe *sqe = weir__uring_start(handle, op);

    if (sqe == NULL)
        return;
    if (handle->exclusive)
        events |= WEIR__URING_EXCLUSIVE;
    if (again)
        io_uring_prep_poll_multishot(sqe, handle->descriptor, events);
    else
        io_uring_prep_poll_add(sqe, handle->descriptor, events);
    handle->armed |= (uint16_t)events;
}

static bool polls_once(weir__io_handle *handle)
{
    if ((handle->wants & WEIR__IO_ACCEPT) != 0)
        return true;
    if (handle->uring_polls >= ONE_SHOT_POLLS || handle->uring_edges)
        return false;
    handle->uring_polls++;
    return true;
}

void weir__uring_poll_readable(weir__io_handle *handle)
{
    if (!weir__uring_is_in_flight(handle, WEIR__URING_POLL))
        start(handle, WEIR__URING_POLL, READ_EVENTS, !polls_once(handle));
    else if ((handle->armed & POLLIN) == 0) /* the owner's, which has stopped polling */
        weir__uring_cancel(handle, WEIR__URING_POLL);
}

void weir__uring_poll_for_owner(weir__io_handle *handle, unsigned events)
{
    if ((events & POLLPRI) != 0)
        events |= URGENT;
    if (!weir__uring_is_in_flight(handle, WEIR__URING_POLL))
        start(handle, WEIR__URING_POLL, events, handle->uring_edges);
    else if ((events & ~(unsigned)handle->armed) != 0)
        weir__uring_cancel(handle, WEIR__URING_POLL);
}

void weir__uring_poll_writable(weir__io_handle *handle)
{
    if (!weir__uring_is_in_flight(handle, WEIR__URING_POLL_WRITE))
        start(handle, WEIR__URING_POLL_WRITE, POLLOUT, handle->uring_edges);
}

/* ---- completing ---- */

/*
 * The result is of no use now, and the next poll reports it again; or the descriptor cannot be
 * polled.
 */
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
 * A short read means that the socket is empty, unless it ended at the mark of urgent data. Then the
 * socket is read to the end, as after a hang-up.
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
 * Reads once per turn, however many polls complete: further completions report data that was there
 * before the read, which either emptied the socket or reported that it did not. But the read may
 * not have seen the end of the stream.
 */
static void read_or_note(weir__io_handle *handle, unsigned events)
{
    events = read_events(events);
    assert(handle->uring_mode == WEIR__URING_BY_POLL || handle->uring_mode == WEIR__URING_BULK);
    weir__uring_enter_turn(handle, weir__uring_of(handle->io));
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
        weir__uring_cancel(handle, WEIR__URING_POLL); /* not wanted any more */
}

/* Delivers only events that are still present. */
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
    weir__uring_enter_turn(handle, weir__uring_of(handle->io));
    if (handle->delivered > 0) {
        if (handle->uring_edges)
            weir__uring_cancel(handle, WEIR__URING_POLL); /* as below */
        return;
    }
    events = owner_events(handle, events);
    if (events == 0) {
        handle->uring_edges = true;
        return;
    }
    weir__readiness_deliver(handle, events);
    handle->delivered = 1;
    if (handle->uring_edges)
        weir__uring_cancel(handle, WEIR__URING_POLL); /* the next one checks the state first */
}

/* The poll may be one for data, from before the owner stopped reading: it is about to be replaced.
 */
static void on_polled(weir__io_handle *handle, unsigned events)
{
    if ((events & ~(unsigned)handle->poll_events & POLLIN) != 0)
        handle->unread = true;
    if (!weir__uring_is_cancelled(handle, WEIR__URING_POLL))
        notify_owner(handle, events);
}

/*
 * A socket that is connecting has nothing to report. The poll is restarted after the connect, to
 * check the state again; and after the last receive by the ring, if that has not ended yet.
 */
static void on_events(weir__io_handle *handle, unsigned events)
{
    if (weir__uring_is_in_flight(handle, WEIR__URING_CONNECT))
        weir__uring_cancel(handle, WEIR__URING_POLL);
    else if ((handle->wants & WEIR__IO_POLL) != 0)
        on_polled(handle, events);
    else if (handle->uring_mode != WEIR__URING_LEAVING)
        read_or_note(handle, events);
}

/*
 * weir__readiness_deliver has armed what was missing, but does not know that a poll has ended, or
 * that the buffer ring may be preferred by now.
 */
static void rearm(weir__io_handle *handle, bool has_ended)
{
    if (has_ended || weir__uring_receives_by_ring(handle))
        weir__uring_arm(handle);
}

WEIR__NO_STACK_PROTECTOR void weir__uring_on_poll(weir__io_handle *handle, int result,
                                                  unsigned flags)
{
    bool has_ended = (flags & IORING_CQE_F_MORE) == 0;

    if (has_ended)
        handle->armed = weir__uring_is_in_flight(handle, WEIR__URING_POLL_WRITE) ? POLLOUT : 0;
    if (!is_useless(handle, result)) {
        if (result > 0)
            on_events(handle, (unsigned)result);
        rearm(handle, has_ended);
    }
}

void weir__uring_on_writable(weir__io_handle *handle, int result, unsigned flags)
{
    if ((flags & IORING_CQE_F_MORE) == 0)
        handle->armed &= (uint16_t)~POLLOUT;
    if (is_useless(handle, result))
        return;
    if (result > 0 && (result & WRITE_EVENTS) == 0) {
        handle->uring_edges = true;
    } else if (result > 0) {
        weir__uring_cancel(handle, WEIR__URING_POLL_WRITE); /* in case it is multishot */
        weir__readiness_deliver(handle, POLLOUT);
    }
    weir__uring_arm(handle);
}
