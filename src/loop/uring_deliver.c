/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Telling owners what has completed - or keeping it: because the owner has stopped, because it was
 * told enough for this turn, or because the ring is being rebuilt. The kernel does not take back
 * what it has received or accepted; so that is kept, in order, and is told first when it is wanted.
 *
 * A turn's reading of a handle is over with the last of its completions that `wait` has counted.
 */
#include <errno.h>

#include "base/memory.h"
#include "loop/uring.h"
#include "os/descriptor.h"

/* ---- what is kept ---- */

static weir__uring_news *take_spare(weir__uring *self)
{
    weir__uring_news *news = self->spare;

    if (news == NULL)
        return weir__alloc(sizeof(*news));
    self->spare = news->next;
    return news;
}

static void give_spare(weir__uring *self, weir__uring_news *news)
{
    news->next = self->spare;
    self->spare = news;
}

void weir__uring_trim(weir__uring *self)
{
    weir__uring_news *news;

    while ((news = self->spare) != NULL) {
        self->spare = news->next;
        weir__free(news);
    }
}

/* Reads come in order; what is none comes before them, since it does not wait to be wanted. */
static int append(weir__io_handle *handle, const weir__uring_news *what)
{
    weir__uring_news *last = handle->backend;
    weir__uring_news *news = take_spare(weir__uring_of(handle->io));

    if (news == NULL)
        return -ENOMEM;
    *news = *what;
    news->next = last != NULL ? last->next : news;
    if (last != NULL)
        last->next = news;
    if (last == NULL || weir__uring_is_read(what->op))
        handle->backend = news;
    return 0;
}

static weir__uring_news *first(const weir__io_handle *handle)
{
    const weir__uring_news *last = handle->backend;

    return last != NULL ? last->next : NULL;
}

static void remove_first(weir__io_handle *handle)
{
    weir__uring_news *last = handle->backend;
    weir__uring_news *news = last->next;

    last->next = news->next;
    if (last == news)
        handle->backend = NULL;
    give_spare(weir__uring_of(handle->io), news);
}

static void discard(weir__io_handle *handle, const weir__uring_news *what)
{
    const weir__io_memory *memory = &handle->io->memory;

    if (what->op == WEIR__URING_RECEIVE && what->result > 0)
        memory->give(memory->arg, &what->block);
    else if (what->op == WEIR__URING_ACCEPT && what->result >= 0)
        (void)weir__descriptor_close(what->result);
}

void weir__uring_forget_news(weir__io_handle *handle)
{
    while (handle->backend != NULL) {
        discard(handle, first(handle));
        remove_first(handle);
    }
}

/* ---- whether ---- */

/* What a detaching handle has received is told in any case: it is the last chance. */
static bool is_wanted(const weir__io_handle *handle, const weir__uring_news *what)
{
    if (handle->state == WEIR__IO_DETACHING)
        return true;
    switch (what->op) {
    case WEIR__URING_ACCEPT:
        return (handle->wants & WEIR__IO_ACCEPT) != 0;
    case WEIR__URING_RECEIVE:
        return (handle->wants & WEIR__IO_RECEIVE) != 0;
    default:
        return true;
    }
}

/* Reads are told in order, and so many in a turn. */
static bool may_be_told_now(const weir__io_handle *handle, const weir__uring_news *what)
{
    if (weir__uring_of(handle->io)->is_settling)
        return false;
    if (!weir__uring_is_read(what->op))
        return true;
    return handle->backend == NULL && handle->told < weir__io_reads(handle) &&
           is_wanted(handle, what);
}

/* ---- telling ---- */

static void count_told(weir__io_handle *handle)
{
    if (handle->told < UINT8_MAX)
        handle->told++;
}

static void tell_accepted(weir__io_handle *handle, int result)
{
    if (result < 0)
        handle->wants &= (uint8_t)~WEIR__IO_ACCEPT;
    count_told(handle);
    handle->owner->accepted(handle, result, NULL, 0);
}

static void tell_received(weir__io_handle *handle, const weir__uring_news *what)
{
    if (what->result <= 0 || (handle->wants & WEIR__IO_ONCE) != 0)
        handle->wants &= (uint8_t) ~(WEIR__IO_RECEIVE | WEIR__IO_ONCE);
    count_told(handle);
    if (what->result > 0)
        handle->owner->received(handle, &what->block, (size_t)what->result);
    else
        handle->owner->receive_ended(handle, what->result);
}

static void tell(weir__io_handle *handle, const weir__uring_news *what)
{
    if (what->op == WEIR__URING_ACCEPT) {
        tell_accepted(handle, what->result);
    } else if (what->op == WEIR__URING_RECEIVE) {
        tell_received(handle, what);
    } else if ((handle->wants & WEIR__IO_CONNECT) != 0) {
        handle->wants &= (uint8_t)~WEIR__IO_CONNECT;
        handle->owner->connected(handle, what->result);
    }
}

void weir__uring_deliver_later(weir__io_handle *handle)
{
    if (weir__io_is_told(handle))
        weir__io_set_pending(handle, WEIR__IO_PENDING_READ);
}

/*
 * Where there is no memory to keep it in, an owner that wants it is told more than its share of a
 * turn; to one that does not it would be lost, and so the handle is.
 */
static void keep(weir__io_handle *handle, const weir__uring_news *what)
{
    bool is_settling = weir__uring_of(handle->io)->is_settling;

    if (append(handle, what) == 0) {
        if (is_settling)
            weir__uring_deliver_later(handle);
    } else if (!is_settling && handle->backend == NULL && is_wanted(handle, what)) {
        tell(handle, what);
    } else {
        discard(handle, what);
        weir__uring_lose(handle, -ENOMEM);
    }
}

void weir__uring_deliver(weir__io_handle *handle, const weir__uring_news *what)
{
    if (!weir__io_is_told(handle))
        discard(handle, what);
    else if (may_be_told_now(handle, what))
        tell(handle, what);
    else
        keep(handle, what);
}

/* What reads goes on by itself, in the way that is the best now. */
static bool goes_on(const weir__io_handle *handle)
{
    return weir__uring_is_in_flight(handle, WEIR__URING_ACCEPT) ||
           (weir__uring_is_in_flight(handle, WEIR__URING_RECEIVE) &&
            weir__uring_receives_by_ring(handle));
}

void weir__uring_finish_reading(weir__io_handle *handle)
{
    if (handle->slot > 0)
        return;
    if (weir__uring_of(handle->io)->is_settling) {
        if (handle->told > 0)
            weir__uring_deliver_later(handle);
        return;
    }
    if (handle->told > 0 && weir__io_is_told(handle))
        handle->owner->read_complete(handle);
    handle->told = 0;
    if (handle->backend != NULL && is_wanted(handle, first(handle)))
        weir__uring_deliver_later(handle);
    else if (weir__io_is_attached(handle) && !goes_on(handle))
        weir__uring_arm(handle);
}

void weir__uring_deliver_kept(weir__io_handle *handle)
{
    while (handle->backend != NULL && handle->told < weir__io_reads(handle)) {
        weir__uring_news what = *first(handle);

        if (!is_wanted(handle, &what))
            break;
        remove_first(handle);
        tell(handle, &what);
    }
    weir__uring_finish_reading(handle);
}
