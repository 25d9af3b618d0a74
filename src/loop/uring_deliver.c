/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notifies owners of completions, or queues them: if the owner has stopped, has received enough for
 * this turn, or the ring is being rebuilt. The kernel does not take back received data or accepted
 * connections, so they are queued in order and delivered first when reading resumes.
 *
 * The reads of a handle end with the last of its completions in a row: usually that is all of a
 * turn.
 */
#include <assert.h>
#include <errno.h>
#include <limits.h>

#include "base/memory.h"
#include "loop/uring.h"
#include "os/clock.h"

/* ---- the queue of undelivered events ---- */

static weir__uring_event *alloc_event(weir__uring *self)
{
    weir__uring_event *event = self->spare;

    if (event == NULL)
        return weir__alloc(sizeof(*event));
    self->spare = event->next;
    return event;
}

static void free_event(weir__uring *self, weir__uring_event *event)
{
    event->next = self->spare;
    self->spare = event;
}

void weir__uring_free_spare(weir__uring *self)
{
    weir__uring_event *event;

    while ((event = self->spare) != NULL) {
        self->spare = event->next;
        weir__free(event);
    }
}

/* Reads stay in order. Other events go before them, because they need not be wanted. */
static int append(weir__io_handle *handle, const weir__uring_event *event)
{
    weir__uring_event *last = handle->undelivered;
    weir__uring_event *copy = alloc_event(weir__uring_of(handle->io));

    if (copy == NULL)
        return -ENOMEM;
    *copy = *event;
    copy->after_cancel = last != NULL ? last->after_cancel : 0;
    if (weir__uring_is_read(event->op) && weir__uring_is_cancelled(handle, WEIR__URING_RECEIVE))
        copy->after_cancel++;
    assert(copy->after_cancel <= WEIR__URING_UNDELIVERED_MAX);
    copy->next = last != NULL ? last->next : copy;
    if (last != NULL)
        last->next = copy;
    if (last == NULL || weir__uring_is_read(event->op))
        handle->undelivered = copy;
    return 0;
}

static weir__uring_event *first(const weir__io_handle *handle)
{
    const weir__uring_event *last = handle->undelivered;

    return last != NULL ? last->next : NULL;
}

static void remove_first(weir__io_handle *handle)
{
    weir__uring_event *last = handle->undelivered;
    weir__uring_event *event = last->next;

    last->next = event->next;
    if (last == event)
        handle->undelivered = NULL;
    free_event(weir__uring_of(handle->io), event);
}

static void discard(weir__io_handle *handle, const weir__uring_event *event)
{
    const weir__io_memory *memory = &handle->io->memory;

    if (event->op == WEIR__URING_RECEIVE && event->result > 0)
        memory->free(memory->arg, &event->block);
}

void weir__uring_discard_queued(weir__io_handle *handle)
{
    while (handle->undelivered != NULL) {
        discard(handle, first(handle));
        remove_first(handle);
    }
}

/* ---- conditions ---- */

/* A detaching handle delivers in any case: it is the last chance. */
static bool is_wanted(const weir__io_handle *handle, const weir__uring_event *event)
{
    if (handle->state == WEIR__IO_DETACHING)
        return true;
    return !weir__uring_is_read(event->op) || (handle->wants & WEIR__IO_RECEIVE) != 0;
}

/* Reads are delivered in order, up to the limit of a turn. */
static bool may_notify_now(weir__io_handle *handle, const weir__uring_event *event)
{
    if (weir__uring_of(handle->io)->is_draining)
        return false;
    if (!weir__uring_is_read(event->op))
        return true;
    weir__uring_enter_turn(handle, weir__uring_of(handle->io));
    if (handle->uring_is_reading)
        weir__uring_limit_row(handle);
    return handle->undelivered == NULL && handle->delivered < handle->reads &&
           is_wanted(handle, event);
}

/* ---- notifying ---- */

void weir__uring_limit_row(weir__io_handle *handle)
{
    weir__uring *self = weir__uring_of(handle->io);
    int64_t now_ns = weir__monotonic_now();

    if (self->row_since_ns == 0)
        self->row_since_ns = now_ns;
    else if (now_ns - self->row_since_ns >= WEIR__IO_READING_NS)
        handle->delivered = UINT8_MAX;
}

static void count_delivered(weir__io_handle *handle)
{
    if (!handle->uring_is_reading)
        weir__uring_of(handle->io)->row_since_ns = 0;
    handle->uring_is_reading = true;
    if (handle->delivered < UINT8_MAX)
        handle->delivered++;
}

static void notify_received(weir__io_handle *handle, const weir__uring_event *event)
{
    if (event->result <= 0 || (handle->wants & WEIR__IO_ONCE) != 0)
        handle->wants &= (uint8_t) ~(WEIR__IO_RECEIVE | WEIR__IO_ONCE);
    count_delivered(handle);
    if (event->result > 0)
        handle->owner->received(handle, &event->block, (size_t)event->result);
    else
        handle->owner->receive_ended(handle, event->result);
}

static void notify(weir__io_handle *handle, const weir__uring_event *event)
{
    if (event->op == WEIR__URING_RECEIVE) {
        notify_received(handle, event);
    } else if (event->op == WEIR__URING_SEND) {
        handle->wants &= (uint8_t)~WEIR__IO_LENDS;
        handle->owner->sent(handle, event->result);
    } else if ((handle->wants & WEIR__IO_CONNECT) != 0) {
        handle->wants &= (uint8_t)~WEIR__IO_CONNECT;
        handle->owner->connected(handle, event->result);
    }
}

void weir__uring_defer_delivery(weir__io_handle *handle)
{
    if (weir__io_may_notify(handle))
        weir__io_set_pending(handle, WEIR__IO_PENDING_READ);
}

static void deliver_wanted(weir__io_handle *handle, unsigned limit)
{
    while (handle->undelivered != NULL && handle->delivered < limit) {
        weir__uring_event event = *first(handle);

        if (!is_wanted(handle, &event))
            break;
        remove_first(handle);
        notify(handle, &event);
        weir__uring_limit_row(handle);
    }
}

/* Nothing may be armed while something is queued, so the kernel has to know at once. */
static void disarm(weir__io_handle *handle)
{
    weir__uring *self = weir__uring_of(handle->io);

    handle->uring_mode = WEIR__URING_LEAVING;
    if (self->is_draining) /* all is being cancelled */
        return;
    weir__uring_leave_ring(handle);
    if (handle->undelivered == NULL && weir__uring_is_in_flight(handle, WEIR__URING_RECEIVE))
        (void)weir__uring_submit(self);
}

/*
 * Without memory for the queue, an owner that wants the event gets more than its limit of a turn.
 * If it does not want it, the event is lost and the handle fails.
 */
static void enqueue(weir__io_handle *handle, const weir__uring_event *event)
{
    bool is_draining = weir__uring_of(handle->io)->is_draining;

    disarm(handle);
    if (append(handle, event) == 0) {
        if (is_draining)
            weir__uring_defer_delivery(handle);
        return;
    }
    if (!is_draining)
        deliver_wanted(handle, UINT_MAX);
    if (!is_draining && handle->undelivered == NULL && is_wanted(handle, event)) {
        notify(handle, event);
    } else {
        discard(handle, event);
        weir__uring_fail(handle, -ENOMEM);
    }
}

void weir__uring_deliver(weir__io_handle *handle, const weir__uring_event *event)
{
    if (!weir__io_may_notify(handle))
        discard(handle, event);
    else if (may_notify_now(handle, event))
        notify(handle, event);
    else
        enqueue(handle, event);
}

void weir__uring_finish_reading(weir__io_handle *handle)
{
    if (weir__uring_of(handle->io)->is_draining) {
        if (handle->uring_is_reading)
            weir__uring_defer_delivery(handle);
        return;
    }
    if (handle->uring_is_reading) {
        handle->uring_is_reading = false;
        if (weir__io_may_notify(handle))
            handle->owner->read_complete(handle);
    }
    weir__uring_settle(handle);
    weir__uring_check_mode(handle);
    if (handle->undelivered != NULL && is_wanted(handle, first(handle)))
        weir__uring_defer_delivery(handle);
    else if (weir__io_is_attached(handle) && handle->uring_mode != WEIR__URING_BY_RING)
        weir__uring_arm(handle);
}

void weir__uring_deliver_queued(weir__io_handle *handle)
{
    weir__uring_enter_turn(handle, weir__uring_of(handle->io));
    deliver_wanted(handle, handle->reads);
    weir__uring_finish_reading(handle);
}
