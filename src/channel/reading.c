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
 *
 *      reading from   to         by
 *      STOPPED        ALL, ONE   weir__channel_update_reading
 *      ALL            ONE        weir__channel_update_reading
 *      ONE            ALL        weir__channel_update_reading
 *      ONE            STOPPED    answer_request: the transport has stopped by itself
 *      ALL, ONE       STOPPED    weir__channel_update_reading, weir__channel_input_ended,
 *                                weir__channel_begin_closing
 *
 *      request from     to         by
 *      -                NONE       weir__channel_create        read_on_demand
 *      -                AUTO       weir__channel_create
 *      NONE, ANSWERED   ONE        weir__channel_do_request_read
 *      AUTO             ALL        weir__channel_do_request_read
 *      ONE              ANSWERED   answer_request              before the message is passed on
 *      ANSWERED         NONE       answer_request              unless a handler has changed it
 *      NONE, ANSWERED   AUTO       weir__channel_update_auto_read, weir__channel_init_auto_read
 *      ONE              ALL        weir__channel_update_auto_read, weir__channel_init_auto_read
 *      AUTO, ALL        NONE       weir__channel_update_auto_read
 *      AUTO             NONE       weir__channel_init_auto_read
 *      ALL              ONE        weir__channel_init_auto_read
 *
 *      input from   to           by
 *      OPEN         SHUT         weir__channel_do_shut_input, weir__channel_input_ended (an error)
 *      OPEN         PEER_ENDED   weir__channel_input_ended
 */
#include "channel/channel.h"

#include <errno.h>

#include <weir/error.h>
#include <weir/handler.h>

#include "channel/event_mail.h"

/* ---- starting and stopping ---- */

static bool is_auto(const weir_channel *channel)
{
    uint32_t request = channel->flags & WEIR__REQUEST;

    return request == WEIR__REQUEST_AUTO || request == WEIR__REQUEST_ALL;
}

static bool is_paused(const weir_channel *channel)
{
    const weir__channel_extra *extra = weir__channel_extra_if_any(channel);

    return weir__channel_has(channel, WEIR__INPUT_THROTTLED) ||
           (extra != NULL && extra->input_pauses > 0);
}

/* What the transport should read while the channel is open. */
static uint32_t requested_reading(const weir_channel *channel)
{
    switch (channel->flags & WEIR__REQUEST) {
    case WEIR__REQUEST_ALL:
        return is_paused(channel) ? WEIR__READING_STOPPED : WEIR__READING_ALL;
    case WEIR__REQUEST_ONE:
        return is_paused(channel) ? WEIR__READING_STOPPED : WEIR__READING_ONE;
    default:
        return WEIR__READING_STOPPED;
    }
}

/* What the transport should read. */
static uint32_t wanted_reading(const weir_channel *channel)
{
    if (!weir__channel_is(channel, WEIR__IS_ACTIVE) ||
        !weir__channel_state_is_at(channel, WEIR__REGISTRATION, WEIR__IS_REGISTERED) ||
        weir__channel_is(channel, WEIR__INPUT_SHUT))
        return WEIR__READING_STOPPED;
    switch (weir__channel_phase(channel)) {
    case WEIR__OPEN:
        return requested_reading(channel);
    case WEIR__SENDING:
    case WEIR__LINGERING:
        return WEIR__READING_ALL;
    default:
        return WEIR__READING_STOPPED;
    }
}

void weir__channel_update_reading(weir_channel *channel)
{
    uint32_t now = wanted_reading(channel);

    if (weir__channel_is_at(channel, WEIR__READING, now))
        return;
    weir__channel_go_to(channel, WEIR__READING, now);
    if (now == WEIR__READING_STOPPED)
        channel->transport->read_stop(channel);
    else
        channel->transport->read_start(channel, now == WEIR__READING_ONE);
}

/* Another thread may have switched auto-read off and on again: handlers that saw it off hold
 * back messages and need a request. */
static bool needs_request(const weir_channel *channel)
{
    return !is_auto(channel) || (channel->pipeline.head_tail.slots & WEIR__BUFFERS_READS) != 0;
}

/* The loop has seen auto_read on. */
static void begin_auto(weir_channel *channel)
{
    bool is_requested = weir__channel_is_at(channel, WEIR__REQUEST, WEIR__REQUEST_ONE) ||
                        weir__channel_is_at(channel, WEIR__REQUEST, WEIR__REQUEST_ALL);

    weir__channel_go_to(channel, WEIR__REQUEST,
                        is_requested ? WEIR__REQUEST_ALL : WEIR__REQUEST_AUTO);
}

void weir__channel_update_auto_read(weir_channel *channel)
{
    bool on = weir_channel_auto_read(channel);

    if (weir__channel_has(channel, WEIR__INPUT_THROTTLED) && weir__channel_may_read(channel))
        channel->flags &= ~(uint32_t)WEIR__INPUT_THROTTLED;
    if (on && needs_request(channel)) {
        begin_auto(channel);
        weir_request_read(weir__channel_head_tail(channel));
    } else if (!on && is_auto(channel)) {
        weir__channel_go_to(channel, WEIR__REQUEST, WEIR__REQUEST_NONE);
    }
    weir__channel_update_reading(channel);
}

void weir__channel_init_auto_read(weir_channel *channel)
{
    if (atomic_load_explicit(&channel->state, memory_order_seq_cst) & WEIR__AUTO_READ)
        begin_auto(channel);
    else if (is_auto(channel)) /* a request that was made before holds */
        weir__channel_go_to(channel, WEIR__REQUEST,
                            weir__channel_is_at(channel, WEIR__REQUEST, WEIR__REQUEST_ALL)
                                ? WEIR__REQUEST_ONE
                                : WEIR__REQUEST_NONE);
}

int weir__channel_pause_input(weir_channel *channel)
{
    weir__channel_extra *extra = weir__channel_extra_get(channel);

    if (extra == NULL)
        return -ENOMEM;
    extra->input_pauses++;
    weir__channel_update_reading(channel);
    return 0;
}

void weir__channel_resume_input(weir_channel *channel)
{
    weir__channel_extra *extra = weir__channel_extra_if_any(channel);

    if (--extra->input_pauses > 0)
        return;
    weir__channel_update_reading(channel);
}

void weir__channel_start_reading(weir_channel *channel)
{
    if (is_auto(channel))
        weir_request_read(weir__channel_head_tail(channel));
    weir__channel_update_reading(channel); /* for a request that was made before */
    if (weir__channel_options(channel)->report_hangup && !weir__channel_has(channel, WEIR__READING))
        channel->transport->read_stop(channel); /* which watches the peer */
}

void weir__channel_do_active(weir_channel *channel)
{
    if (weir__channel_is(channel, WEIR__WAS_ACTIVE))
        return; /* a `registered` handler has bound it */
    weir__channel_set_state(channel, WEIR__WAS_ACTIVE, 0);
    weir_fire_active(weir__channel_head_tail(channel));
    weir__channel_start_reading(channel);
}

void weir__channel_do_request_read(weir_channel *channel)
{
    weir__channel_go_to(channel, WEIR__REQUEST,
                        is_auto(channel) ? WEIR__REQUEST_ALL : WEIR__REQUEST_ONE);
    weir__channel_update_reading(channel);
}

/* ---- notifications of the transport ---- */

/* The states are changed first: the handler may make the next request. */
static void answer_request(weir_channel *channel, weir_msg *msg)
{
    assert(weir__channel_is_at(channel, WEIR__REQUEST, WEIR__REQUEST_ONE));
    weir__channel_go_to(channel, WEIR__READING, WEIR__READING_STOPPED);
    weir__channel_go_to(channel, WEIR__REQUEST, WEIR__REQUEST_ANSWERED);
    weir_fire_read(weir__channel_head_tail(channel), msg);
    if (weir__channel_is_at(channel, WEIR__REQUEST, WEIR__REQUEST_ANSWERED))
        weir__channel_go_to(channel, WEIR__REQUEST, WEIR__REQUEST_NONE);
}

bool weir__channel_received(weir_channel *channel, weir_msg *msg)
{
    if (weir__channel_has(channel, WEIR__NOT_OPEN)) {
        weir_msg_release(msg);
        return weir__channel_has(channel, WEIR__READING);
    }
    channel->flags &= ~(uint32_t)WEIR__SENDS_AT_ONCE;
    if (weir__channel_has(channel, WEIR__READING_ONE)) {
        answer_request(channel, msg);
        return false;
    }
    weir_fire_read(weir__channel_head_tail(channel), msg);
    return weir__channel_has(channel, WEIR__READING);
}

/* A handler passes on requests: with auto_read, it gets one after each read_complete. */
static __attribute__((noinline)) void request_again(weir_channel *channel)
{
    if (is_auto(channel))
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
    if (weir__channel_is(channel, WEIR__INPUT_SHUT))
        return;
    weir__channel_set_state(channel, err < 0 ? WEIR__INPUT_SHUT : WEIR__PEER_ENDED, WEIR__INPUT);
    weir__channel_go_to(channel, WEIR__READING, WEIR__READING_STOPPED);
    if (err < 0) {
        weir__channel_failed(channel, err, NULL);
        return;
    }
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
    if (err < 0 || weir__channel_is(channel, WEIR__INPUT_SHUT)) {
        weir__channel_report(channel, done, err, NULL);
        return;
    }
    weir__channel_set_state(channel, WEIR__INPUT_SHUT, WEIR__INPUT);
    weir__channel_update_reading(channel);
    err = channel->transport->shut_input(channel);
    weir__channel_report(channel, done, err, NULL);
    if (err == 0)
        fire_event(channel, weir_event_input_closed());
}
