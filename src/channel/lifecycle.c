/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A channel's life: how it comes to a loop, and how it ends.
 *
 *      phase from                 to          by                       when
 *      -                          OPEN        weir__channel_create
 *      OPEN                       SENDING     weir__channel_do_close   it is active: there may be
 *                                                                      something to send or to hear
 *      SENDING                    LINGERING   weir__channel_sent_all   the peer has not ended its
 *                                                                      stream
 *      OPEN, SENDING, LINGERING   CLOSING     weir__channel_end        close of what is not active,
 *                                                                      abort, an error, all sent
 *                                                                      and the peer's end seen, or
 *                                                                      a timeout (closing.c)
 *      CLOSING                    CLOSED      become_closed            the transport is through
 *
 *      registered from   to    by
 *      no                yes   weir__channel_do_register    attach
 *      yes               no    leave_loop                   deregister: detach is through, and it
 *                                                           is still OPEN
 *      yes               no    weir__channel_do_end         closed
 *
 * Invariants:
 *   - Writes are taken in OPEN only. From SENDING on what is received is discarded.
 *   - The transport's `close` is called once, when CLOSING begins; it sends nothing from there on.
 *   - While it is registered the loop holds a reference (WEIR__MEMBER), until all handlers are
 *     gone or it was deregistered; so nobody needs one to run the channel on its loop. For as long
 *     it is a member of its event loop, which does not end before all of them have parted.
 *   - `active` and `inactive` come in pairs, and so do `registered` and `unregistered`.
 *
 * The end, in this order: the transport - the closed promise - the promises of those who closed -
 * what was not sent fails - then, in a task, `inactive`, `unregistered`, and when all handlers have
 * heard that, wherever they run, they go, from the tail on.
 */
#include "channel/channel.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include <weir/error.h>

#include "base/log.h"
#include "base/log_limit.h"
#include "channel/channel_stats.h"
#include "channel/closing.h"
#include "channel/posted_call.h"

/*
 * Only the loop writes it. Sequentially consistent for weir_channel_closed: it publishes the
 * promise and then looks at the state, the loop does it the other way round.
 */
void weir__channel_set_state(weir_channel *channel, uint32_t set, uint32_t clear)
{
    uint32_t before = weir__channel_state(channel), after = (before & ~clear) | set;

    weir__stats_state(channel, before, after);
    atomic_store_explicit(&channel->state, after, memory_order_seq_cst);
}

/* ---- coming to a loop ---- */

int weir__channel_check_registration(const weir_channel *channel)
{
    if (weir__channel_phase(channel) != WEIR__OPEN)
        return WEIR_ECLOSED;
    if (weir__channel_is(channel, WEIR__IS_REGISTERED))
        return -EALREADY;
    return 0;
}

/* A manual executor that has ended is still its owner's thread. */
static int attach(weir_channel *channel)
{
    if (weir__executor_state(weir__channel_executor(channel)) >= WEIR_EXECUTOR_SHUTDOWN)
        return WEIR_EREJECTED;
    return channel->transport->attach(channel);
}

static void on_shut_down(weir__member *member)
{
    weir__channel_drain(WEIR_CONTAINER_OF(member, weir_channel, member));
}

/* The time of the shutdown is up. */
static void on_abort(weir__member *member)
{
    weir_channel *channel = WEIR_CONTAINER_OF(member, weir_channel, member);
    char reason[WEIR__LOSS_SIZE];

    if (weir__outbound_is_empty(&channel->outbound)) {
        weir__channel_do_abort(channel, NULL, WEIR_ECLOSED);
        return;
    }
    (void)snprintf(reason, sizeof(reason),
                   "the shutdown of the group does not wait for the last %" PRId64 " bytes",
                   weir__outbound_left(channel));
    weir__channel_give_up(channel, WEIR_ECLOSED, reason);
}

static const weir__member_type member_type = {.shut_down = on_shut_down, .abort = on_abort};
static const weir__member_type listener_type = {
    .is_first = true, .shut_down = on_shut_down, .abort = on_abort};

static void join(weir_channel *channel)
{
    weir_executor *executor = weir__channel_executor(channel);

    weir_channel_retain(channel);
    channel->flags |= WEIR__MEMBER;
    channel->member.type = channel->transport->accepts ? &listener_type : &member_type;
    if (executor->type->run_inline == NULL)
        weir__member_join(&channel->member, executor);
}

/* Leaves the loop's reference to the caller. */
static void part(weir_channel *channel)
{
    channel->flags &= ~(uint32_t)WEIR__MEMBER;
    weir__member_leave(&channel->member);
}

/* Accepting and connecting make it active later; a channel that comes again is active already. */
static void go_on(weir_channel *channel)
{
    if (weir__channel_phase(channel) != WEIR__OPEN || !channel->transport->is_active(channel))
        return;
    if (weir__channel_has(channel, WEIR__TOLD_ACTIVE)) {
        weir__channel_begin_reading(channel);
        weir__channel_go_on_sending(channel);
        return;
    }
    weir__channel_set_state(channel, WEIR__IS_ACTIVE, 0);
    weir__channel_do_active(channel);
}

/* Where nobody waits for the registration nobody else would say why the channel is gone. */
void weir__channel_refuse(weir_channel *channel, weir_promise *done, int err)
{
    static weir__log_limit limit;
    char name[WEIR__CHANNEL_NAME_SIZE];
    weir__log_note note;

    if (done == NULL && weir__log_admit(&limit, WEIR_LOG_WARN, &note))
        weir__warn("channel", weir__channel_name(channel, name),
                   "is closed, since its loop did not take it: %s%s", weir_error_text(err),
                   note.text);
    weir__stats_error(channel, err);
    weir__channel_end(channel, err);
    if (done != NULL)
        (void)weir_promise_fail(done, err, "the loop did not take the channel");
}

void weir__channel_do_register(weir_channel *channel, weir_promise *done)
{
    int err = weir__channel_check_registration(channel);

    if (err < 0) {
        weir__posted_call_fail(channel, done, err); /* no event: it is as well as before */
        return;
    }
    if (done != NULL && !weir_promise_set_uncancellable(done))
        return;
    err = attach(channel);
    if (err < 0) {
        weir__channel_refuse(channel, done, err);
        return;
    }
    join(channel);
    if (!weir__channel_has(channel, WEIR__BEGUN))
        weir__channel_take_auto_read(channel);
    weir__channel_set_state(channel, WEIR__IS_REGISTERED, 0);
    weir__pipeline_begin(&channel->pipeline);
    weir__channel_report(channel, done, 0, NULL);
    weir_fire_registered(weir__channel_head_tail(channel));
    go_on(channel);
}

/* ---- leaving it ---- */

static void leave_loop(weir_channel *channel)
{
    weir__channel_extra *rare = weir__channel_extra_if_any(channel);

    channel->flags &= ~(uint32_t)WEIR__OUTPUT_FULL;
    part(channel);
    weir__channel_stop_timers(channel);
    weir__channel_set_state(channel, 0, WEIR__IS_REGISTERED);
    weir_fire_unregistered(weir__channel_head_tail(channel));
    if (rare != NULL)
        weir__waiting_complete(&rare->deregisterers, 0, NULL);
    channel->flags &= ~(uint32_t)WEIR__DETACHING; /* from here on it may be another loop's */
    weir_channel_release(channel);                /* the loop's */
}

void weir__channel_do_deregister(weir_channel *channel, weir_promise *done)
{
    weir__channel_extra *rare = weir__channel_extra_get(channel);

    if (done != NULL && !weir_promise_set_uncancellable(done))
        return;
    if (weir__channel_executor(channel) == NULL)
        weir__channel_report(channel, done, 0, NULL); /* it never had a loop */
    else if (rare == NULL || weir__waiting_add(&rare->deregisterers, done) < 0)
        weir__channel_report(channel, done, -ENOMEM, NULL);
    else
        weir__channel_defer(channel, WEIR__DEFERRED_DEREGISTER);
}

static bool may_leave(const weir_channel *channel)
{
    return weir__channel_phase(channel) == WEIR__OPEN &&
           !weir__channel_has(channel, WEIR__DETACHING);
}

/* Whoever closes it meanwhile completes what waits for this. */
void weir__channel_do_detach(weir_channel *channel)
{
    weir__channel_extra *rare = weir__channel_extra_if_any(channel);

    if (weir__channel_is_connecting(channel)) {
        weir__waiting_complete(&rare->deregisterers, -EBUSY, "it is connecting");
        return;
    }
    if (!weir__channel_is(channel, WEIR__IS_REGISTERED) ||
        weir__channel_phase(channel) == WEIR__CLOSED) {
        weir__waiting_complete(&rare->deregisterers, 0, NULL);
        return;
    }
    if (!may_leave(channel))
        return;
    channel->flags |= WEIR__DETACHING;
    weir__channel_look_at_reading(channel);
    if (channel->transport->detach(channel))
        weir__channel_detached(channel);
}

/*
 * Closed on its way out, it still has to send, or to hear of the peer's end: its loop takes it
 * again.
 */
static void stay_to_send(weir_channel *channel)
{
    int err;

    channel->flags &= ~(uint32_t)(WEIR__DETACHING | WEIR__OUTPUT_FULL);
    err = attach(channel);
    if (err < 0) {
        weir__channel_end(channel, err);
        return;
    }
    weir__channel_look_at_reading(channel);
    weir__channel_go_on_sending(channel);
}

/* ---- closing ---- */

static void stop_timer(weir_channel *channel)
{
    weir__channel_extra *rare = weir__channel_extra_if_any(channel);

    if (rare != NULL)
        (void)weir_timer_stop(&rare->timer);
}

static void complete_waiting(weir_channel *channel)
{
    weir__channel_extra *rare = weir__channel_extra_if_any(channel);
    weir_promise *closed;
    const char *reason;
    int err = weir__closing_loss(channel, &reason);

    if (rare == NULL)
        return;
    weir__channel_leave_groups(channel, rare); /* whoever hears of the end finds it gone */
    closed = atomic_load_explicit(&rare->closed, memory_order_seq_cst);
    if (closed != NULL)
        (void)weir_promise_succeed(closed, NULL);
    weir__waiting_complete(&rare->closers, err, reason);
    weir__waiting_complete(&rare->deregisterers, 0, NULL);
    weir__waiting_complete(&rare->output_closers, err < 0 ? err : WEIR_ECLOSED, reason);
}

/* A loop at its very end closes what is left, but runs no task: the rest is done elsewhere, where
 * its members must not be touched. */
static void part_if_loop_ends(weir_channel *channel)
{
    const weir_executor *executor = weir__channel_executor(channel);

    if (executor != NULL && weir__executor_state(executor) >= WEIR_EXECUTOR_SHUTDOWN)
        weir__member_leave(&channel->member);
}

static void become_closed(weir_channel *channel)
{
    const char *reason;

    weir__channel_set_state(channel, WEIR__CLOSED, WEIR__PHASE | WEIR__IS_ACTIVE);
    complete_waiting(channel);
    (void)weir__closing_loss(channel, &reason);
    weir__outbound_fail_all(channel, channel->outbound.cause, reason);
    part_if_loop_ends(channel);
    if (weir__channel_has(channel, WEIR__BEGUN))
        weir__channel_defer(channel, WEIR__DEFERRED_END);
}

/*
 * A peer that has only a part of what was written must not take it for the whole. Until a close
 * comes to the transport handlers may hold some of it; after that all of it is in the queue.
 */
static bool loses_data(const weir_channel *channel)
{
    if (weir__channel_has(channel, WEIR__RESETS))
        return true;
    if (weir__channel_phase(channel) == WEIR__OPEN)
        return weir__channel_is(channel, WEIR__IS_ACTIVE) && weir__outbound_bytes(channel) > 0;
    return !weir__outbound_is_empty(&channel->outbound);
}

void weir__channel_end(weir_channel *channel, int err)
{
    if (weir__channel_phase(channel) >= WEIR__CLOSING)
        return;
    if (channel->transport->reset != NULL && loses_data(channel))
        channel->transport->reset(channel);
    channel->outbound.cause = err;
    weir__channel_lock(channel);
    weir__channel_set_state(channel, WEIR__CLOSING, WEIR__PHASE);
    weir__channel_unlock(channel);
    channel->flags |= WEIR__OUTPUT_OVER;
    channel->flags &= ~(uint32_t)(WEIR__READING | WEIR__READING_ONCE);
    stop_timer(channel);
    weir__channel_stop_connecting(channel, err);
    if (channel->transport->close(channel))
        become_closed(channel);
}

static bool has_time(const weir_channel *channel)
{
    const weir_channel_options *options = weir__channel_options(channel);

    return channel->transport->lingers && !options->reset_on_close && options->close_timeout_ns > 0;
}

/* Whether the peer has to be waited for, so that what was sent is not lost to a reset. */
static bool has_to_linger(const weir_channel *channel)
{
    return has_time(channel) && !weir__channel_has(channel, WEIR__INPUT_SHUT) &&
           !atomic_load_explicit(&channel->no_linger, memory_order_relaxed) &&
           channel->transport->shut_output != NULL;
}

/* A half closure has waited for what is sent now. The end that follows tells the peer no more. */
static void finish_half_closure(weir_channel *channel)
{
    weir__channel_extra *rare = weir__channel_extra_if_any(channel);
    int err;

    if (!weir__channel_has(channel, WEIR__OUTPUT_CLOSED) ||
        weir__channel_has(channel, WEIR__OUTPUT_SHUT) ||
        weir__channel_options(channel)->reset_on_close)
        return;
    err = channel->transport->shut_output(channel);
    channel->flags |= WEIR__OUTPUT_SHUT;
    if (rare != NULL)
        weir__waiting_complete(&rare->output_closers, err, NULL);
}

void weir__channel_sent_all(weir_channel *channel)
{
    weir__channel_extra *rare = weir__channel_extra_if_any(channel);
    int err = 0;

    if (!has_to_linger(channel)) {
        finish_half_closure(channel);
        weir__channel_end(channel, WEIR_ECLOSED);
        return;
    }
    weir__channel_set_state(channel, WEIR__LINGERING, WEIR__PHASE);
    err = weir__closing_limit_lingering(channel) ? 0 : WEIR_ECLOSED;
    if (err == 0 && !weir__channel_has(channel, WEIR__OUTPUT_SHUT))
        err = channel->transport->shut_output(channel);
    channel->flags |= WEIR__OUTPUT_SHUT;
    if (err < 0) {
        weir__channel_end(channel, err);
        return;
    }
    weir__channel_look_at_reading(channel);
    if (rare != NULL) /* who waits for that need not wait for the peer */
        weir__waiting_complete(&rare->output_closers, 0, NULL);
}

/* What was written is sent; and what comes is discarded, so that the peer can go on sending. */
static void send_rest(weir_channel *channel)
{
    weir__channel_set_state(channel, WEIR__SENDING, WEIR__PHASE);
    weir__outbound_flush(channel);
    if (weir__outbound_is_empty(&channel->outbound) && !has_to_linger(channel)) {
        weir__channel_end(channel, WEIR_ECLOSED);
        return;
    }
    if (!weir__closing_limit_sending(channel)) {
        weir__channel_end(channel, WEIR_ECLOSED);
        return;
    }
    weir__channel_look_at_reading(channel);
    weir__channel_do_flush(channel);
}

/* False: it is closed already, or the promise was cancelled. */
static bool wait_for_close(weir_channel *channel, weir_promise *done)
{
    weir__channel_extra *rare;
    const char *reason;
    int err;

    if (done == NULL)
        return true;
    if (!weir_promise_set_uncancellable(done))
        return false;
    if (weir__channel_phase(channel) == WEIR__CLOSED) {
        err = weir__closing_loss(channel, &reason);
        weir__channel_report(channel, done, err, reason);
        return false;
    }
    rare = weir__channel_extra_get(channel);
    if (rare == NULL || weir__waiting_add(&rare->closers, done) < 0)
        weir__channel_report(channel, done, -ENOMEM, "it closes all the same");
    return true;
}

void weir__channel_do_close(weir_channel *channel, weir_promise *done)
{
    if (!wait_for_close(channel, done) || weir__channel_phase(channel) != WEIR__OPEN)
        return;
    if (weir__channel_is(channel, WEIR__IS_ACTIVE | WEIR__IS_REGISTERED) &&
        !channel->transport->accepts)
        send_rest(channel);
    else
        weir__channel_end(channel, WEIR_ECLOSED);
}

void weir__channel_do_abort(weir_channel *channel, weir_promise *done, int err)
{
    if (wait_for_close(channel, done))
        weir__channel_end(channel, err);
}

void weir__channel_detached(weir_channel *channel)
{
    if (weir__channel_phase(channel) == WEIR__CLOSING)
        become_closed(channel);
    else if (!weir__channel_has(channel, WEIR__DETACHING))
        return;
    else if (weir__channel_phase(channel) == WEIR__OPEN)
        leave_loop(channel);
    else
        stay_to_send(channel);
}

void weir__channel_failed(weir_channel *channel, int err, const char *detail)
{
    weir__stats_error(channel, err);
    if (weir__channel_phase(channel) == WEIR__OPEN)
        weir_fire_error(weir__channel_head_tail(channel), err, detail);
    weir__channel_end(channel, err);
}

void weir__channel_troubled(weir_channel *channel, int err, const char *detail)
{
    weir__stats_error(channel, err);
    if (channel->transport->accepts)
        weir__stats_count(channel, WEIR__STAT_ACCEPTS_FAILED, 1);
    if (weir__channel_phase(channel) == WEIR__OPEN)
        weir_fire_error(weir__channel_head_tail(channel), err, detail);
}

/* ---- the end ---- */

void weir__channel_do_inactive(weir_channel *channel)
{
    if (!weir__channel_has(channel, WEIR__TOLD_ACTIVE) ||
        weir__channel_is(channel, WEIR__IS_ACTIVE))
        return;
    channel->flags &= ~(uint32_t)WEIR__TOLD_ACTIVE;
    weir_fire_inactive(weir__channel_head_tail(channel));
}

void weir__channel_do_end(weir_channel *channel)
{
    weir__channel_do_inactive(channel);
    weir__channel_stop_timers(channel);
    if (weir__channel_is(channel, WEIR__IS_REGISTERED)) {
        weir__channel_set_state(channel, 0, WEIR__IS_REGISTERED);
        weir_fire_unregistered(weir__channel_head_tail(channel));
    }
    weir__pipeline_end(&channel->pipeline);
}

void weir__channel_ended(weir_channel *channel)
{
    if (!weir__channel_has(channel, WEIR__MEMBER))
        return;
    part(channel);
    weir_channel_release(channel); /* the loop's; the task that we are in has one of its own */
}

/* ---- shutdown ---- */

void weir__channel_drain(weir_channel *channel)
{
    weir_ctx *ends = weir__channel_head_tail(channel);
    bool waits = (channel->pipeline.ends.slots & WEIR__DRAINING) != 0 ||
                 weir__channel_options(channel)->drain_waits;

    if (weir__channel_phase(channel) != WEIR__OPEN ||
        weir__channel_has(channel, WEIR__TOLD_DRAINING))
        return;
    channel->flags |= WEIR__TOLD_DRAINING;
    if (channel->transport->accepts || !waits)
        weir_close(ends, NULL);
    else
        weir_fire_draining(ends);
}
