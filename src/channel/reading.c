/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading: when the transport reads, and where its data goes.
 *
 * Reading starts when a request arrives at the head. With auto_read the channel makes the request
 * itself, from the tail, when it becomes active and after each read_complete, and it holds until
 * auto_read is switched off. Otherwise the user makes it, for one message. A closing channel reads
 * to the end of the stream by itself and discards the data.
 *
 *      reads if:  active, registered, the stream has not ended; and
 *                 OPEN: requested, not throttled for a border, not paused by a handler
 *                 SENDING, LINGERING: always
 */
#include "channel/channel.h"

#include <errno.h>

#include <weir/error.h>
#include <weir/handler.h>

#include "channel/event_mail.h"

/* ---- starting and stopping ---- */

/* The flags WEIR__READING and WEIR__READING_ONCE as they should be. */
static uint32_t wanted_flags(const weir_channel *channel)
{
    if (!weir__channel_is(channel, WEIR__IS_ACTIVE | WEIR__IS_REGISTERED) ||
        weir__channel_has(channel, WEIR__INPUT_SHUT | WEIR__DETACHING))
        return 0;
    switch (weir__channel_phase(channel)) {
    case WEIR__OPEN:
        if (!weir__channel_has(channel, WEIR__READ_REQUESTED) ||
            weir__channel_has(channel, WEIR__INPUT_THROTTLED | WEIR__INPUT_PAUSED))
            return 0;
        return weir__channel_has(channel, WEIR__AUTO_READING) ? WEIR__READING
                                                              : WEIR__READING | WEIR__READING_ONCE;
    case WEIR__SENDING:
    case WEIR__LINGERING:
        return WEIR__READING;
    default:
        return 0;
    }
}

void weir__channel_update_reading(weir_channel *channel)
{
    const uint32_t both = WEIR__READING | WEIR__READING_ONCE;
    uint32_t before = channel->flags & both, now = wanted_flags(channel);

    if (before == now)
        return;
    channel->flags = (channel->flags & ~both) | now;
    if (now == 0)
        channel->transport->read_stop(channel);
    else
        channel->transport->read_start(channel, (now & WEIR__READING_ONCE) != 0);
}

/* Another thread may have switched auto-read off and on again: handlers that saw it off hold
 * back messages and need a request. */
static bool needs_request(const weir_channel *channel)
{
    return !weir__channel_has(channel, WEIR__AUTO_READING) ||
           (channel->pipeline.head_tail.slots & WEIR__BUFFERS_READS) != 0;
}

void weir__channel_update_auto_read(weir_channel *channel)
{
    bool on = weir_channel_auto_read(channel);

    if (weir__channel_has(channel, WEIR__INPUT_THROTTLED) && weir__channel_may_read(channel))
        channel->flags &= ~(uint32_t)WEIR__INPUT_THROTTLED;
    if (on && needs_request(channel)) {
        channel->flags |= WEIR__AUTO_READING;
        weir_request_read(weir__channel_head_tail(channel));
    } else if (!on && weir__channel_has(channel, WEIR__AUTO_READING)) {
        channel->flags &= ~(uint32_t)(WEIR__AUTO_READING | WEIR__READ_REQUESTED);
    }
    weir__channel_update_reading(channel);
}

void weir__channel_init_auto_read(weir_channel *channel)
{
    if (atomic_load_explicit(&channel->state, memory_order_seq_cst) & WEIR__AUTO_READ)
        channel->flags |= WEIR__AUTO_READING;
    else
        channel->flags &= ~(uint32_t)WEIR__AUTO_READING;
}

int weir__channel_pause_input(weir_channel *channel)
{
    weir__channel_extra *extra = weir__channel_extra_get(channel);

    if (extra == NULL)
        return -ENOMEM;
    extra->input_pauses++;
    channel->flags |= WEIR__INPUT_PAUSED;
    weir__channel_update_reading(channel);
    return 0;
}

void weir__channel_resume_input(weir_channel *channel)
{
    weir__channel_extra *extra = weir__channel_extra_if_any(channel);

    if (--extra->input_pauses > 0)
        return;
    channel->flags &= ~(uint32_t)WEIR__INPUT_PAUSED;
    weir__channel_update_reading(channel);
}

void weir__channel_start_reading(weir_channel *channel)
{
    if (weir__channel_has(channel, WEIR__AUTO_READING))
        weir_request_read(weir__channel_head_tail(channel));
    weir__channel_update_reading(channel); /* for a request that was made before */
    if (weir__channel_options(channel)->report_hangup && !weir__channel_has(channel, WEIR__READING))
        channel->transport->read_stop(channel); /* which watches the peer */
}

void weir__channel_do_active(weir_channel *channel)
{
    if (weir__channel_has(channel, WEIR__FIRED_ACTIVE))
        return; /* a `registered` handler has bound it */
    channel->flags |= WEIR__FIRED_ACTIVE;
    weir_fire_active(weir__channel_head_tail(channel));
    weir__channel_start_reading(channel);
}

void weir__channel_do_request_read(weir_channel *channel)
{
    channel->flags |= WEIR__READ_REQUESTED;
    weir__channel_update_reading(channel);
}

/* ---- notifications of the transport ---- */

/* The flags are cleared first: the handler may make the next request. */
static void answer_request(weir_channel *channel, weir_msg *msg)
{
    channel->flags &= ~(uint32_t)(WEIR__READING | WEIR__READING_ONCE | WEIR__READ_REQUESTED);
    channel->flags |= WEIR__ANSWERING;
    weir_fire_read(weir__channel_head_tail(channel), msg);
    channel->flags &= ~(uint32_t)WEIR__ANSWERING;
}

bool weir__channel_received(weir_channel *channel, weir_msg *msg)
{
    if (weir__channel_has(channel, WEIR__NOT_OPEN)) {
        weir_msg_release(msg);
        return weir__channel_has(channel, WEIR__READING);
    }
    channel->flags &= ~(uint32_t)WEIR__SENDS_AT_ONCE;
    if (weir__channel_has(channel, WEIR__READING_ONCE)) {
        answer_request(channel, msg);
        return false;
    }
    weir_fire_read(weir__channel_head_tail(channel), msg);
    return weir__channel_has(channel, WEIR__READING);
}

/* A handler passes on requests: with auto_read, it gets one after each read_complete. */
static __attribute__((noinline)) void request_again(weir_channel *channel)
{
    if (weir__channel_has(channel, WEIR__AUTO_READING))
        weir_request_read(weir__channel_head_tail(channel));
}

void weir__channel_read_complete(weir_channel *channel)
{
    if (weir__channel_has(channel, WEIR__NOT_OPEN))
        return;
    weir_fire_read_complete(weir__channel_head_tail(channel));
    weir__outbound_find_forgotten(channel);
    if ((channel->pipeline.head_tail.slots & WEIR__REQUEST_READ) != 0)
        request_again(channel);
    weir__channel_end_batch(channel);
}

/* The event is static: the fired reference is an additional one. */
static void fire_event(weir_channel *channel, weir_msg *event)
{
    if (weir__channel_phase(channel) == WEIR__OPEN)
        weir_fire_event(weir__channel_head_tail(channel), weir_msg_retain(event));
}

static void end_of_stream(weir_channel *channel)
{
    if (weir__channel_phase(channel) == WEIR__LINGERING) {
        weir__channel_begin_closing(channel, WEIR_ECLOSED);
    } else if (weir__channel_phase(channel) == WEIR__OPEN) {
        if (weir__channel_options(channel)->half_closure)
            fire_event(channel, weir_event_input_closed());
        else
            weir__channel_do_close(channel, NULL);
    }
}

void weir__channel_input_ended(weir_channel *channel, int err)
{
    if (weir__channel_has(channel, WEIR__INPUT_SHUT))
        return;
    channel->flags |= WEIR__INPUT_SHUT;
    channel->flags &= ~(uint32_t)(WEIR__READING | WEIR__READING_ONCE);
    if (err < 0) {
        weir__channel_failed(channel, err, NULL);
        return;
    }
    weir__channel_set_state(channel, WEIR__PEER_ENDED, 0);
    end_of_stream(channel);
}

/* Nothing is read: the end of the stream waits behind what is left. */
void weir__channel_hung_up(weir_channel *channel, int err)
{
    if (err < 0)
        weir__channel_failed(channel, err, NULL);
    else
        fire_event(channel, weir_event_hangup());
}

/* ---- shutting down the input ---- */

void weir__channel_do_shut_input(weir_channel *channel, weir_promise *done)
{
    int err = 0;

    if (weir__channel_phase(channel) != WEIR__OPEN)
        err = WEIR_ECLOSED;
    else if (!weir__channel_is(channel, WEIR__IS_ACTIVE))
        err = -ENOTCONN;
    else if (channel->transport->shut_input == NULL)
        err = -ENOTSUP;
    if (err == 0 && done != NULL && !weir_promise_set_uncancellable(done))
        return;
    if (err < 0 || weir__channel_has(channel, WEIR__INPUT_SHUT)) {
        weir__channel_report(channel, done, err, NULL);
        return;
    }
    channel->flags |= WEIR__INPUT_SHUT;
    weir__channel_update_reading(channel);
    err = channel->transport->shut_input(channel);
    weir__channel_report(channel, done, err, NULL);
    if (err == 0)
        fire_event(channel, weir_event_input_closed());
}
