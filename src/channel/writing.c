/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing: when the transport sends flushed messages.
 *
 * A flush goes to the transport at once, with these exceptions, in which it only marks entries:
 *
 *      reads are being delivered    The end of the batch sends, once for all flushes.
 *      the transport is sending     It is further out on the stack, and takes what was added.
 *      the transport waits          For room, or for the end of a send that has borrowed messages:
 *                                   these stay unchanged at the front of the queue, also while the
 *                                   channel is deregistered, until weir__channel_writable or
 *                                   weir__channel_detached.
 *
 * When the budget of the transport is used up, it continues in a task, so that other channels get
 * their turn.
 *
 * A batch (without WEIR__SENDS_AT_ONCE) begins with the first message that the transport delivers,
 * and ends when the `read_complete` that follows has passed the handlers. So a flush never waits
 * for another event of the peer. Invariants:
 *   - In a batch the channel is OPEN, registered and active. What ends that ends the batch, and
 * sends what was flushed before: a close and a half closure by sending everything, an abort and a
 *     disconnect by weir__channel_end_batch. A deregistration leaves it to the next loop.
 *   - While the channel is unwritable a flush does not wait: so a batch holds no more than the high
 *     mark and one write, and a handler that writes while it may continues to do so.
 *   - Reads that a handler fires are not a batch.
 *
 *      output from     to       by
 *      OPEN            ENDING   weir__channel_do_shut_output
 *      ENDING          SHUT     shut_output, and, of a close, finish_half_closure
 *      OPEN, ENDING    SHUT     weir__channel_sent_all; fail_output if the channel stays open
 *
 *      busy from    to         by
 *      NOT          FLUSHING   send_flushed, weir__channel_end_batch
 *      FLUSHING     NOT        send_some
 *      NOT          FULL       finish_flush            the transport has no room
 *      NOT          LENT       finish_flush            it has borrowed messages
 *      FULL, LENT   NOT        weir__channel_stop_waiting
 *
 *      queue from       to        by
 *      GOES_ON          STOPPED   weir__channel_begin_closing
 *      any              LOST      fail_output, weir__channel_give_up, weir__channel_lose, the
 *                                 outbound queue and the mailbox: something is not sent
 */
#include "channel/channel.h"

#include <errno.h>

#include <weir/error.h>
#include <weir/handler.h>

#include "channel/channel_stats.h"

/* ---- shutting down the output ---- */

static void fire_output_closed(weir_channel *channel)
{
    if (weir__channel_phase(channel) == WEIR__OPEN)
        weir_fire_event(weir__channel_head_tail(channel),
                        weir_msg_retain(weir_event_output_closed()));
}

/* Everything written before has been sent. */
static void shut_output(weir_channel *channel)
{
    weir__channel_extra *extra = weir__channel_extra_if_any(channel);
    int err = channel->transport->shut_output(channel);

    assert(weir__channel_is_at(channel, WEIR__OUTPUT, WEIR__OUTPUT_ENDING));
    weir__channel_go_to(channel, WEIR__OUTPUT, WEIR__OUTPUT_SHUT);
    if (extra != NULL)
        weir__promise_list_complete(&extra->shutdown_waiters, err, NULL);
    if (err == 0)
        fire_output_closed(channel);
}

/* Flushes, as a close does. */
static void send_rest(weir_channel *channel)
{
    weir__outbound_flush(channel);
    if (weir__outbound_has_flushed(&channel->outbound))
        weir__channel_resume_sending(channel);
    else if (weir__channel_phase(channel) == WEIR__OPEN &&
             !weir__channel_has(channel, WEIR__OUTPUT_SHUT | WEIR__QUEUE))
        shut_output(channel);
}

/* Without memory for the waiter the output is shut down nonetheless: the handlers have been
 * passed. */
static void add_shutdown_waiter(weir_channel *channel, weir_promise *done)
{
    weir__channel_extra *extra = weir__channel_extra_get(channel);

    if (extra == NULL || weir__promise_list_add(&extra->shutdown_waiters, done) < 0)
        weir__channel_report(channel, done, -ENOMEM,
                             "no memory to wait for the shutdown, which continues");
    else if (weir__channel_has(channel, WEIR__OUTPUT_SHUT))
        weir__promise_list_complete(&extra->shutdown_waiters, 0, NULL);
}

void weir__channel_do_shut_output(weir_channel *channel, weir_promise *done)
{
    int err = 0;

    if (weir__channel_phase(channel) != WEIR__OPEN)
        err = WEIR_ECLOSED;
    else if (!weir__channel_is(channel, WEIR__IS_ACTIVE))
        err = -ENOTCONN;
    else if (channel->transport->shut_output == NULL)
        err = -ENOTSUP;
    if (err < 0) {
        weir__channel_report(channel, done, err, NULL);
        return;
    }
    if (done != NULL && !weir_promise_set_uncancellable(done))
        return;
    if (done != NULL)
        add_shutdown_waiter(channel, done);
    if (weir__channel_has(channel, WEIR__OUTPUT))
        return;
    weir__channel_go_to(channel, WEIR__OUTPUT, WEIR__OUTPUT_ENDING);
    send_rest(channel);
}

/*
 * Sending has failed: fails all flushed messages. A handler that closes the channel for the first
 * of them must not have the others sent. With keep_open_on_error the channel can still receive.
 */
static void fail_output(weir_channel *channel, int err)
{
    bool stays = weir__channel_options(channel)->keep_open_on_error;
    weir__channel_extra *extra = weir__channel_extra_if_any(channel);

    weir__stats_error(channel, err);
    channel->flags |= WEIR__QUEUE_LOST; /* what fails here */
    if (stays)
        weir__channel_go_to(channel, WEIR__OUTPUT, WEIR__OUTPUT_SHUT);
    weir__outbound_fail_flushed(channel, err, NULL);
    if (!stays || weir__channel_phase(channel) != WEIR__OPEN) {
        weir__channel_begin_closing(channel, err);
        return;
    }
    weir__outbound_fail_unflushed(channel, err, NULL);
    if (extra != NULL)
        weir__promise_list_complete(&extra->shutdown_waiters, err, NULL);
    if (channel->transport->shut_output != NULL)
        (void)channel->transport->shut_output(channel);
    fire_output_closed(channel);
}

/* ---- flushing ---- */

/* Continues a close or a half closure, which has flushed the queue: all of it has been sent. */
static void check_sent(weir_channel *channel)
{
    if (weir__channel_phase(channel) == WEIR__SENDING)
        weir__channel_sent_all(channel);
    else if (weir__channel_is_at(channel, WEIR__OUTPUT | WEIR__QUEUE, WEIR__OUTPUT_ENDING))
        shut_output(channel);
}

static void wait_for(weir_channel *channel, uint32_t busy)
{
    assert(weir__channel_is_at(channel, WEIR__BUSY, WEIR__NOT_BUSY));
    channel->flags |= busy;
}

/* The result of a flush, unless everything is sent and nothing waits for that. */
static __attribute__((noinline)) void finish_flush(weir_channel *channel, int result)
{
    if (weir__channel_phase(channel) >= WEIR__CLOSING)
        return;
    if (result < 0)
        fail_output(channel, result);
    else if (result == WEIR__FLUSH_LENT)
        wait_for(channel, WEIR__BUSY_LENT);
    else if (result > 0)
        weir__channel_defer(channel, WEIR__DEFERRED_SENDING);
    else if (weir__outbound_has_flushed(&channel->outbound))
        wait_for(channel, WEIR__BUSY_FULL);
    else
        check_sent(channel);
}

/* ABORTS: something was lost on its way here, so nothing after it may be sent. */
#define STOPPED (WEIR__CLOSING | WEIR__ABORTS)

/* There is something to send. The caller has set BUSY_FLUSHING. */
static inline void send_some(weir_channel *channel)
{
    int result = channel->transport->flush(channel);
    uint32_t flags = channel->flags ^ WEIR__BUSY_FLUSHING;

    assert((flags & WEIR__BUSY) == WEIR__NOT_BUSY);
    channel->flags = flags;
    if (result != 0 || !weir__outbound_is_empty(&channel->outbound) ||
        (flags & (WEIR__NOT_OPEN | WEIR__OUTPUT)) != 0)
        finish_flush(channel, result);
}

static inline void send_flushed(weir_channel *channel)
{
    if (weir__outbound_has_flushed(&channel->outbound)) {
        channel->flags |= WEIR__BUSY_FLUSHING;
        send_some(channel);
    } else if (weir__channel_has(channel, WEIR__NOT_OPEN | WEIR__OUTPUT)) {
        finish_flush(channel, 0);
    }
}

/* STOPPED, or being deregistered: for a registered channel. */
#define HELD (STOPPED | (WEIR__DETACHING & ~WEIR__IS_REGISTERED))

/* Bits of the state of a channel that sends, and of one that is connected. */
#define SENDS (STOPPED | WEIR__REGISTRATION)
#define CONNECTED (WEIR__IS_ACTIVE | WEIR__IS_REGISTERED)

void weir__channel_resume_sending(weir_channel *channel)
{
    if (weir__channel_state_is_at(channel, SENDS, WEIR__IS_REGISTERED) &&
        !weir__channel_has(channel, WEIR__BUSY))
        send_flushed(channel);
}

/* A flush that sends nothing. A channel that moves is active and not registered. */
static __attribute__((noinline)) void flush_without_sending(weir_channel *channel)
{
    if (weir__channel_phase(channel) >= WEIR__CLOSING)
        return; /* the queue fails; without a loop this may be any thread */
    weir__outbound_flush(channel);
    if (!weir__channel_is(channel, WEIR__IS_ACTIVE))
        weir__outbound_fail_flushed(channel, -ENOTCONN, NULL);
}

/* False while it is being deregistered. */
static bool may_send(const weir_channel *channel)
{
    return weir__channel_state_is_at(channel, SENDS | WEIR__IS_ACTIVE, CONNECTED);
}

/* Any flush. */
static __attribute__((noinline)) void flush(weir_channel *channel)
{
    if (!may_send(channel)) {
        flush_without_sending(channel);
        return;
    }
    weir__outbound_flush(channel);
    if (!weir__channel_has(channel, WEIR__BUSY) &&
        (weir__channel_has(channel, WEIR__SENDS_AT_ONCE) || !weir__outbound_is_writable(channel)))
        send_flushed(channel);
}

/* The usual flush, in a batch and without promises, saves no registers. */
void weir__channel_do_flush(weir_channel *channel)
{
    assert(weir__channel_has(channel, WEIR__SENDS_AT_ONCE) ||
           weir__channel_state_is_at(channel, WEIR__CLOSING | CONNECTED, CONNECTED));
    if (!weir__channel_has(channel, WEIR__SENDS_AT_ONCE | WEIR__UNFLUSHED_PROMISE) &&
        weir__outbound_is_writable(channel))
        channel->outbound.unflushed = channel->outbound.end;
    else
        flush(channel);
}

void weir__channel_end_batch(weir_channel *channel)
{
    bool sends = !weir__channel_has(channel, WEIR__SENDS_AT_ONCE | WEIR__BUSY) &&
                 weir__outbound_has_flushed(&channel->outbound) &&
                 (weir__channel_state(channel) & HELD) == 0;

    channel->flags |= WEIR__SENDS_AT_ONCE | (sends ? WEIR__BUSY_FLUSHING : 0u);
    if (sends)
        send_some(channel);
}

void weir__channel_maybe_writable(weir_channel *channel)
{
    weir__channel_stop_waiting(channel);
    weir__channel_resume_sending(channel);
}

void weir__channel_writable(weir_channel *channel, int err)
{
    weir__channel_stop_waiting(channel);
    if (err == 0)
        weir__channel_resume_sending(channel);
    else if (weir__channel_phase(channel) < WEIR__CLOSING)
        fail_output(channel, err);
}
