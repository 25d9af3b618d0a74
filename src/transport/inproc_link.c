/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Links. One lock for both directions: an end holds it for a few instructions, a few times a turn.
 *
 * Notification. An end that finds nothing to take, or no room, sets its waiting flag under the same
 * lock. So it cannot miss a change, and is notified once.
 *
 * An end may be retained for its notification although the link holds no reference to it: its loop
 * holds one while the end is attached, and detaches it under this lock before releasing that.
 */
#include "transport/inproc_link.h"

#include <errno.h>

#include "base/memory.h"
#include "channel/outbound.h"
#include "transport/inproc_name.h"

static weir__inproc_link_end *end_of(weir__inproc_link *link, weir__side side)
{
    return &link->ends[side];
}

static weir__inproc_link_end *peer_of(weir__inproc_link *link, weir__side side)
{
    return &link->ends[side == WEIR__CLIENT_SIDE ? WEIR__SERVER_SIDE : WEIR__CLIENT_SIDE];
}

/* The end's channel, retained, to be notified; NULL if it has no loop. */
static weir_channel *retain_attached(weir__inproc_link_end *end)
{
    return end->channel != NULL ? weir_channel_retain(end->channel) : NULL;
}

/* ---- lifecycle ---- */

int weir__inproc_link_create(const weir_channel *caller, weir__inproc_name *name,
                             weir__inproc_link **ret_link)
{
    weir__inproc_link *link = weir__zalloc(sizeof(*link));

    if (link == NULL)
        return -ENOMEM;
    weir__refs_init(&link->refs);
    weir__mutex_init(&link->lock);
    weir__list_init(&link->waiting);
    weir__msg_queue_init(&link->ends[WEIR__CLIENT_SIDE].messages);
    weir__msg_queue_init(&link->ends[WEIR__SERVER_SIDE].messages);
    if (name != NULL)
        link->names[WEIR__CLIENT_SIDE] = weir__inproc_name_retain(name);
    link->caller_id = weir_channel_id(caller);
    *ret_link = link;
    return 0;
}

void weir__inproc_link_retain(weir__inproc_link *link)
{
    weir__refs_retain(&link->refs);
}

void weir__inproc_link_release(weir__inproc_link *link)
{
    if (link == NULL || !weir__refs_release(&link->refs))
        return;
    for (int side = 0; side < 2; side++) {
        weir__msg_queue_clear(&link->ends[side].messages);
        weir__inproc_name_release(link->names[side]);
    }
    weir__mutex_deinit(&link->lock);
    weir__free(link);
}

void weir__inproc_link_set_capacity(weir__inproc_link *link, weir__side side, int64_t bytes)
{
    weir__mutex_lock(&link->lock);
    end_of(link, side)->capacity = bytes;
    weir__mutex_unlock(&link->lock);
}

weir_channel *weir__inproc_link_attach(weir__inproc_link *link, weir__side side,
                                       weir_channel *channel)
{
    weir_channel *notified = NULL;

    weir__mutex_lock(&link->lock);
    end_of(link, side)->channel = channel;
    if (side == WEIR__SERVER_SIDE && !link->is_made) {
        link->is_made = true;
        notified = retain_attached(peer_of(link, side));
    }
    weir__mutex_unlock(&link->lock);
    return notified;
}

void weir__inproc_link_detach(weir__inproc_link *link, weir__side side)
{
    weir__mutex_lock(&link->lock);
    end_of(link, side)->channel = NULL;
    weir__mutex_unlock(&link->lock);
}

int weir__inproc_link_state(weir__inproc_link *link)
{
    int state = -EINPROGRESS;

    weir__mutex_lock(&link->lock);
    if (link->is_made)
        state = 0;
    else if (link->ends[WEIR__SERVER_SIDE].is_gone)
        state = -ECONNREFUSED;
    weir__mutex_unlock(&link->lock);
    return state;
}

bool weir__inproc_link_is_gone(weir__inproc_link *link, weir__side side)
{
    bool is_gone;

    weir__mutex_lock(&link->lock);
    is_gone = end_of(link, side)->is_gone;
    weir__mutex_unlock(&link->lock);
    return is_gone;
}

/* ---- sending ---- */

/* A message waits until it fits as a whole, unless the direction is empty. */
static bool fits(const weir__inproc_link_end *end, int64_t cost)
{
    return end->bytes == 0 || end->bytes + cost <= end->capacity;
}

int weir__inproc_link_put(weir__inproc_link *link, weir__side side, weir_msg *msg,
                          weir_channel **ret_notified)
{
    weir__inproc_link_end *to = peer_of(link, side);
    int64_t cost = weir__outbound_cost(msg);
    weir_msg *unwanted = NULL;
    int err = 0;

    *ret_notified = NULL;
    weir__mutex_lock(&link->lock);
    if (to->is_gone) {
        err = -EPIPE;
    } else if (to->is_input_shut) {
        unwanted = msg;
    } else if (!fits(to, cost)) {
        to->writer_waits = true;
        err = -EAGAIN;
    } else if (!weir__msg_queue_push(&to->messages, msg)) {
        err = -ENOMEM;
    } else {
        to->bytes += cost;
        *ret_notified = to->reader_waits ? retain_attached(to) : NULL;
        to->reader_waits = false;
    }
    weir__mutex_unlock(&link->lock);
    weir_msg_release(unwanted);
    return err;
}

/* True if at least half is free, so that reader and writer do not wake each other for every
 * message. */
static bool has_room(const weir__inproc_link_end *end)
{
    return end->is_gone || end->is_input_shut || end->bytes <= end->capacity / 2;
}

bool weir__inproc_link_has_room(weir__inproc_link *link, weir__side side)
{
    weir__inproc_link_end *to = peer_of(link, side);
    bool has;

    weir__mutex_lock(&link->lock);
    has = has_room(to);
    to->writer_waits = !has;
    weir__mutex_unlock(&link->lock);
    return has;
}

/* ---- receiving ---- */

bool weir__inproc_link_take(weir__inproc_link *link, weir__side side, weir__msg_queue *queue)
{
    weir__inproc_link_end *end = end_of(link, side);
    bool is_over;

    weir__mutex_lock(&link->lock);
    end->reader_waits = false;
    weir__msg_queue_move(&end->messages, queue);
    is_over = end->is_over;
    weir__mutex_unlock(&link->lock);
    return is_over;
}

/* The other end, if it waits for room towards this one, and there is room. */
static weir_channel *retain_waiting_writer(weir__inproc_link *link, weir__side side)
{
    weir__inproc_link_end *end = end_of(link, side);

    if (!end->writer_waits || !has_room(end))
        return NULL;
    end->writer_waits = false;
    return retain_attached(peer_of(link, side));
}

weir_channel *weir__inproc_link_make_room(weir__inproc_link *link, weir__side side, int64_t bytes)
{
    weir_channel *notified;

    weir__mutex_lock(&link->lock);
    end_of(link, side)->bytes -= bytes;
    notified = retain_waiting_writer(link, side);
    weir__mutex_unlock(&link->lock);
    return notified;
}

bool weir__inproc_link_wait(weir__inproc_link *link, weir__side side)
{
    weir__inproc_link_end *end = end_of(link, side);
    bool waits;

    weir__mutex_lock(&link->lock);
    waits = weir__msg_queue_is_empty(&end->messages) && !end->is_over;
    end->reader_waits = waits;
    weir__mutex_unlock(&link->lock);
    return waits;
}

/* ---- closing ---- */

weir_channel *weir__inproc_link_shut_output(weir__inproc_link *link, weir__side side)
{
    weir__inproc_link_end *to = peer_of(link, side);
    weir_channel *notified;

    weir__mutex_lock(&link->lock);
    to->is_over = true;
    notified = retain_attached(to);
    weir__mutex_unlock(&link->lock);
    return notified;
}

bool weir__inproc_link_is_over(weir__inproc_link *link, weir__side side)
{
    bool is_over;

    weir__mutex_lock(&link->lock);
    is_over = end_of(link, side)->is_over;
    weir__mutex_unlock(&link->lock);
    return is_over;
}

weir_channel *weir__inproc_link_shut_input(weir__inproc_link *link, weir__side side)
{
    weir__inproc_link_end *end = end_of(link, side);
    weir__msg_queue unwanted;
    weir_channel *notified;

    weir__msg_queue_init(&unwanted);
    weir__mutex_lock(&link->lock);
    end->is_input_shut = true;
    weir__msg_queue_move(&end->messages, &unwanted);
    notified = retain_waiting_writer(link, side);
    weir__mutex_unlock(&link->lock);
    weir__msg_queue_clear(&unwanted);
    return notified;
}

void weir__inproc_link_cut(weir__inproc_link *link, weir__side side)
{
    weir__mutex_lock(&link->lock);
    peer_of(link, side)->is_cut = true;
    weir__mutex_unlock(&link->lock);
}

bool weir__inproc_link_is_cut(weir__inproc_link *link, weir__side side)
{
    bool is_cut;

    weir__mutex_lock(&link->lock);
    is_cut = end_of(link, side)->is_cut;
    weir__mutex_unlock(&link->lock);
    return is_cut;
}

weir_channel *weir__inproc_link_close(weir__inproc_link *link, weir__side side)
{
    weir__inproc_link_end *end = end_of(link, side), *peer = peer_of(link, side);
    weir__msg_queue unread;
    weir_channel *notified;

    weir__msg_queue_init(&unread);
    weir__mutex_lock(&link->lock);
    end->channel = NULL;
    end->is_gone = true;
    peer->is_over = true;
    weir__msg_queue_move(&end->messages, &unread);
    notified = retain_attached(peer);
    weir__mutex_unlock(&link->lock);
    weir__msg_queue_clear(&unread);
    return notified;
}
