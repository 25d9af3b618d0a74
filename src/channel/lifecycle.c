/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lifecycle of a channel: registration, closing and teardown.
 *
 *      phase from                 to          by
 *      -                          OPEN        weir__channel_create
 *      OPEN                       SENDING     weir__channel_do_close (1)
 *      SENDING                    LINGERING   weir__channel_sent_all (2)
 *      OPEN, SENDING, LINGERING   CLOSING     weir__channel_begin_closing (3)
 *      CLOSING                    CLOSED      finish_closing: the transport is closed
 *
 *      (1) The channel is active: it has data to send, or the peer's end to await.
 *      (2) Everything is sent, and the peer has not ended its stream.
 *      (3) By a close while not active, an abort, an error, a timeout (closing.c), or when all is
 *          sent and the peer has ended its stream.
 *
 *      registration from        to           by
 *      -                        NEW          weir__channel_create
 *      NEW, BETWEEN_LOOPS       REGISTERED   weir__channel_do_register   attached
 *      REGISTERED               DETACHING    weir__channel_do_detach     OPEN
 *      DETACHING                DETACHED     finish_deregister           detached, still OPEN
 *      DETACHING                REGISTERED   reattach_to_send            closed in the meantime
 *      DETACHED                 BETWEEN_LOOPS   finish_deregister        its events are fired
 *      REGISTERED, DETACHING    DETACHED     weir__channel_fire_closed   CLOSED
 *      DETACHED, BETWEEN_LOOPS  REMOVING_HANDLERS  remove_all            CLOSED, pipeline.c
 *
 *      activity from   to             by
 *      -               IDLE           weir__channel_create
 *      IDLE            IS_ACTIVE      resume, and in connect.c the end of a bind or a connect
 *      IS_ACTIVE       KNOWN_ACTIVE   weir__channel_do_active: `active`
 *      KNOWN_ACTIVE    WAS_ACTIVE     finish_closing, and in connect.c a disconnect
 *      WAS_ACTIVE      IDLE           weir__channel_do_inactive: `inactive`
 *      WAS_ACTIVE      KNOWN_ACTIVE   connect.c: connected again before `inactive` was fired
 *      IS_ACTIVE       IDLE           finish_closing before `active` was fired
 *      IDLE            WAS_ACTIVE     weir__channel_do_active, after that: `active`
 *
 * Invariants:
 *   - Writes are accepted in OPEN only. From SENDING on, input is discarded.
 *   - The transport's `close` is called once, when CLOSING begins. Nothing is sent after that.
 *   - From the registration until all handlers are removed, or until the deregistration, the
 *     channel is a member of its loop (weir__channel_is_member), and the loop holds a reference:
 *     code that runs on the loop needs none. A loop does not end before all its members have left.
 *   - `active` and `inactive` are fired in pairs, and so are `registered` and `unregistered`.
 *
 * Order of a close: the transport closes; the closed promise, then the promises of close complete;
 * unsent messages fail; then, by the mailbox (weir__channel_fire_closed), `inactive` and
 * `unregistered` are fired; when both have passed all handlers, on whatever executor, the handlers
 * are removed from the tail on; at last the channel leaves its loop (weir__channel_leave_loop).
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
#include "channel/mailbox.h"
#include "channel/offload_blocking.h"

#ifndef NDEBUG
#define TO(state, shift) (1u << ((unsigned)(state) >> (shift)))

static bool may_follow(const unsigned *next, uint32_t before, uint32_t after, uint32_t mask,
                       unsigned shift)
{
    uint32_t from = (before & mask) >> shift, to = (after & mask) >> shift;

    return from == to || (next[from] >> to & 1) != 0;
}

/* The tables above, and that of the input in reading.c. */
static bool is_transition(uint32_t before, uint32_t after)
{
    static const unsigned phases[8] = {
        [WEIR__OPEN] = TO(WEIR__SENDING, 0) | TO(WEIR__CLOSING, 0),
        [WEIR__SENDING] = TO(WEIR__LINGERING, 0) | TO(WEIR__CLOSING, 0),
        [WEIR__LINGERING] = TO(WEIR__CLOSING, 0),
        [WEIR__CLOSING] = TO(WEIR__CLOSED, 0),
    };
    static const unsigned registrations[8] = {
        [WEIR__NEW >> 3] = TO(WEIR__IS_REGISTERED, 3),
        [WEIR__IS_REGISTERED >> 3] = TO(WEIR__DETACHING, 3) | TO(WEIR__DETACHED, 3),
        [WEIR__DETACHING >> 3] = TO(WEIR__DETACHED, 3) | TO(WEIR__IS_REGISTERED, 3),
        [WEIR__DETACHED >> 3] = TO(WEIR__BETWEEN_LOOPS, 3) | TO(WEIR__REMOVING_HANDLERS, 3),
        [WEIR__BETWEEN_LOOPS >> 3] = TO(WEIR__IS_REGISTERED, 3) | TO(WEIR__REMOVING_HANDLERS, 3),
    };
    static const unsigned activities[4] = {
        [WEIR__IDLE >> 6] = TO(WEIR__IS_ACTIVE, 6) | TO(WEIR__WAS_ACTIVE, 6),
        [WEIR__IS_ACTIVE >> 6] = TO(WEIR__KNOWN_ACTIVE, 6) | TO(WEIR__IDLE, 6),
        [WEIR__KNOWN_ACTIVE >> 6] = TO(WEIR__WAS_ACTIVE, 6),
        [WEIR__WAS_ACTIVE >> 6] = TO(WEIR__KNOWN_ACTIVE, 6) | TO(WEIR__IDLE, 6),
    };
    static const unsigned inputs[4] = {
        [WEIR__INPUT_OPEN >> 8] = TO(WEIR__INPUT_SHUT, 8) | TO(WEIR__PEER_ENDED, 8),
    };

    return may_follow(phases, before, after, WEIR__PHASE, 0) &&
           may_follow(registrations, before, after, WEIR__REGISTRATION, 3) &&
           may_follow(activities, before, after, WEIR__ACTIVITY, 6) &&
           may_follow(inputs, before, after, WEIR__INPUT, 8);
}
#endif

/*
 * Only the loop writes these bits of the state. Sequentially consistent for weir_channel_closed,
 * which publishes the promise and then reads the state; the loop does it the other way round.
 */
void weir__channel_set_state(weir_channel *channel, uint32_t set, uint32_t clear)
{
    uint32_t before = weir__channel_state(channel), after;

    do {
        after = (before & ~clear) | set;
    } while (!atomic_compare_exchange_weak_explicit(&channel->state, &before, after,
                                                    memory_order_seq_cst, memory_order_relaxed));
    assert(is_transition(before, after));
    weir__stats_state(channel, before, after);
    if ((after & WEIR__PHASE) != WEIR__OPEN)
        channel->flags |= WEIR__NOT_OPEN | WEIR__SENDS_AT_ONCE;
}

/* ---- registration ---- */

int weir__channel_check_registration(const weir_channel *channel)
{
    if (weir__channel_phase(channel) != WEIR__OPEN)
        return WEIR_ECLOSED;
    if (weir__channel_is(channel, WEIR__IS_REGISTERED))
        return -EALREADY;
    return 0;
}

/* A manual executor that has ended still counts as the current thread. */
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

/* The shutdown has timed out. */
static void on_abort(weir__member *member)
{
    weir_channel *channel = WEIR_CONTAINER_OF(member, weir_channel, member);
    char reason[WEIR__CLOSE_REASON_SIZE];

    if (weir__outbound_is_empty(&channel->outbound)) {
        weir__channel_do_abort(channel, NULL, WEIR_ECLOSED);
        return;
    }
    (void)snprintf(reason, sizeof(reason),
                   "the shutdown of the group timed out before the last %" PRId64
                   " bytes were sent",
                   weir__outbound_left(channel));
    weir__channel_give_up(channel, WEIR_ECLOSED, reason);
}

static const weir__member_type member_type = {.shut_down = on_shut_down, .abort = on_abort};
static const weir__member_type listener_type = {
    .is_first = true, .shut_down = on_shut_down, .abort = on_abort};

weir_channel *weir__channel_of_member(weir__member *member)
{
    if (member->type != &member_type && member->type != &listener_type)
        return NULL;
    return WEIR_CONTAINER_OF(member, weir_channel, member);
}

static void join_loop(weir_channel *channel)
{
    weir_executor *executor = weir__channel_executor(channel);

    weir_channel_retain(channel);
    channel->member.type = channel->transport->accepts ? &listener_type : &member_type;
    if (executor->type->run_inline == NULL)
        weir__member_join(&channel->member, executor);
}

/* The caller releases the loop's reference. */
static void part_from_loop(weir_channel *channel)
{
    weir__member_leave(&channel->member, weir__channel_executor(channel));
    channel->member.type = NULL;
}

/* A new connection becomes active later; a channel that is registered again already is. */
static void resume(weir_channel *channel)
{
    if (weir__channel_phase(channel) != WEIR__OPEN || !channel->transport->is_active(channel))
        return;
    if (weir__channel_is(channel, WEIR__WAS_ACTIVE)) {
        weir__channel_start_reading(channel);
        weir__channel_resume_sending(channel);
        return;
    }
    weir__channel_set_state(channel, WEIR__IS_ACTIVE, 0);
    weir__channel_do_active(channel);
}

void weir__channel_lose(weir_channel *channel, int err)
{
    if (weir__channel_is(channel, WEIR__IS_ACTIVE) && channel->transport->reset != NULL)
        channel->flags |= WEIR__QUEUE_LOST;
    weir__channel_begin_closing(channel, err);
}

/* Without a promise the log is the only place that says why the channel was closed. */
void weir__channel_reject_registration(weir_channel *channel, weir_promise *done, int err)
{
    static weir__log_limit limit;
    char name[WEIR__CHANNEL_LOG_NAME_SIZE];
    weir__log_note note;

    if (done == NULL && weir__log_admit(&limit, WEIR_LOG_WARN, &note))
        weir__warn("channel", weir__channel_log_name(channel, name),
                   "closed: its loop rejected it: %s%s", weir_error_text(err), note.text);
    weir__stats_error(channel, err);
    weir__channel_lose(channel, err);
    if (done != NULL)
        (void)weir_promise_fail(done, err, "the loop rejected the channel");
}

/* See weir__channel_do_close. */
static void close_if_waiting(weir_channel *channel)
{
    bool is_waiting = weir__channel_has(channel, WEIR__CLOSE_WAITS);

    channel->flags &= ~(uint32_t)(WEIR__CLOSES_BETWEEN | WEIR__CLOSE_WAITS);
    if (is_waiting)
        weir__channel_do_close(channel, NULL);
}

void weir__channel_do_register(weir_channel *channel, weir_promise *done)
{
    int err = weir__channel_check_registration(channel);
    weir__subject subject;
    bool is_new;

    if (err < 0) {
        weir__call_fail(channel, done, err); /* no event: the channel is unaffected */
        return;
    }
    if (done != NULL && !weir_promise_set_uncancellable(done))
        return;
    err = attach(channel);
    if (err < 0) {
        weir__channel_reject_registration(channel, done, err);
        return;
    }
    join_loop(channel);
    is_new = weir__channel_state_is_at(channel, WEIR__REGISTRATION, WEIR__NEW);
    if (is_new)
        weir__channel_init_auto_read(channel);
    weir__channel_set_state(channel, WEIR__IS_REGISTERED, WEIR__REGISTRATION);
    weir__channel_enter(channel, &subject);
    if (is_new)
        weir__pipeline_call_added(&channel->pipeline);
    weir__channel_report(channel, done, 0, NULL);
    weir_fire_registered(weir__channel_head_tail(channel));
    resume(channel);
    close_if_waiting(channel);
    weir__channel_leave(&subject);
    weir__channel_check_offload(channel);
}

/* ---- deregistration ---- */

static void finish_deregister(weir_channel *channel)
{
    weir__channel_extra *extra = weir__channel_extra_if_any(channel);

    weir__channel_stop_waiting(channel);
    channel->flags |= WEIR__SENDS_AT_ONCE;
    part_from_loop(channel);
    weir__channel_stop_timers(channel);
    weir__channel_set_state(channel, WEIR__DETACHED, WEIR__REGISTRATION);
    weir_fire_unregistered(weir__channel_head_tail(channel));
    if (extra != NULL)
        weir__promise_list_complete(&extra->deregister_waiters, 0, NULL);
    if (weir__channel_state_is_at(channel, WEIR__REGISTRATION, WEIR__DETACHED))
        weir__channel_set_state(channel, WEIR__BETWEEN_LOOPS, WEIR__REGISTRATION);
    /* From here on another loop may own it. */
    weir_channel_release(channel); /* the loop's reference */
}

void weir__channel_do_deregister(weir_channel *channel, weir_promise *done)
{
    weir__channel_extra *extra = weir__channel_extra_get(channel);

    if (done != NULL && !weir_promise_set_uncancellable(done))
        return;
    if (weir__channel_executor(channel) == NULL)
        weir__channel_report(channel, done, 0, NULL); /* never registered */
    else if (extra == NULL || weir__promise_list_add(&extra->deregister_waiters, done) < 0)
        weir__channel_report(channel, done, -ENOMEM, NULL);
    else
        weir__channel_defer(channel, WEIR__DEFERRED_DEREGISTER);
}

/* A close in the meantime completes the waiters. */
void weir__channel_do_detach(weir_channel *channel)
{
    weir__channel_extra *extra = weir__channel_extra_if_any(channel);

    if (weir__channel_is_connecting(channel)) {
        weir__promise_list_complete(&extra->deregister_waiters, -EBUSY,
                                    "a connection attempt is in progress");
        return;
    }
    if (!weir__channel_is(channel, WEIR__IS_REGISTERED) ||
        weir__channel_phase(channel) == WEIR__CLOSED) {
        weir__promise_list_complete(&extra->deregister_waiters, 0, NULL);
        return;
    }
    if (weir__channel_phase(channel) != WEIR__OPEN || weir__channel_is_detaching(channel))
        return;
    weir__channel_set_state(channel, WEIR__DETACHING, WEIR__REGISTRATION);
    weir__channel_update_reading(channel);
    if (channel->transport->detach(channel))
        weir__channel_detached(channel);
}

/*
 * The channel was closed while it was being deregistered: its loop takes it back to send the rest
 * and to await the end of the peer's stream.
 */
static void reattach_to_send(weir_channel *channel)
{
    int err;

    weir__channel_set_state(channel, WEIR__IS_REGISTERED, WEIR__REGISTRATION);
    weir__channel_stop_waiting(channel);
    err = attach(channel);
    if (err < 0) {
        weir__channel_begin_closing(channel, err);
        return;
    }
    weir__channel_update_reading(channel);
    weir__channel_resume_sending(channel);
}

/* ---- closing ---- */

static void finish_closing(weir_channel *channel)
{
    weir_executor *executor;
    weir__channel_extra *extra;
    weir_promise *closed;
    const char *reason;
    int err = weir__closing_error(channel, &reason);

    weir__channel_set_state(channel, WEIR__CLOSED, WEIR__PHASE | WEIR__IS_ACTIVE);
    /* Read after the state was set, for weir_channel_closed. */
    extra = weir__channel_extra_if_any(channel);
    if (extra != NULL) {
        weir__channel_leave_groups(channel, extra); /* before listeners run */
        closed = atomic_load_explicit(&extra->closed, memory_order_seq_cst);
        if (closed != NULL)
            (void)weir_promise_succeed(closed, NULL);
        weir__promise_list_complete(&extra->close_waiters, err, reason);
        weir__promise_list_complete(&extra->deregister_waiters, 0, NULL);
        weir__promise_list_complete(&extra->shutdown_waiters, err < 0 ? err : WEIR_ECLOSED, reason);
    }
    weir__outbound_fail_all(channel, weir__channel_cause(channel), reason);
    /* A loop that has ended closes its members but runs no more tasks: the rest runs on the global
     * executor, which must not access the list of members. */
    executor = weir__channel_executor(channel);
    if (executor != NULL && weir__executor_state(executor) >= WEIR_EXECUTOR_SHUTDOWN)
        weir__member_leave(&channel->member, executor);
    if (!weir__channel_state_is_at(channel, WEIR__REGISTRATION, WEIR__NEW))
        weir__channel_defer(channel, WEIR__DEFERRED_CLOSED);
}

/*
 * True if closing loses data: the peer must not take a part for the whole. Until a close reaches
 * the transport handlers may queue some of the data; after that all of it is in the outbound queue.
 */
static bool loses_data(const weir_channel *channel)
{
    if (weir__channel_is_at(channel, WEIR__QUEUE, WEIR__QUEUE_LOST))
        return true;
    if (weir__channel_phase(channel) == WEIR__OPEN)
        return weir__channel_is(channel, WEIR__IS_ACTIVE) && weir__outbound_bytes(channel) > 0;
    return !weir__outbound_is_empty(&channel->outbound);
}

void weir__channel_begin_closing(weir_channel *channel, int err)
{
    weir__channel_extra *extra = weir__channel_extra_if_any(channel);

    if (weir__channel_phase(channel) >= WEIR__CLOSING)
        return;
    weir__outbound_find_forgotten(channel);
    if (channel->transport->reset != NULL && loses_data(channel))
        channel->transport->reset(channel);
    weir__channel_lock(channel);
    weir__channel_set_state(channel, WEIR__CLOSING | (uint32_t)err << WEIR__CAUSE_SHIFT,
                            WEIR__PHASE);
    weir__channel_unlock(channel);
    channel->flags |= WEIR__QUEUE_STOPPED; /* LOST stays */
    weir__channel_go_to(channel, WEIR__READING, WEIR__READING_STOPPED);
    if (extra != NULL)
        (void)weir_timer_stop(&extra->timer);
    weir__channel_stop_connecting(channel, err);
    /* The transport first: it may be sending messages of the queue, which finish_closing releases.
     */
    if (channel->transport->close(channel))
        finish_closing(channel);
}

/* True if the close has to wait for the peer, so that sent data is not lost to a reset. */
static bool must_linger(const weir_channel *channel)
{
    const weir_channel_options *options = weir__channel_options(channel);

    return channel->transport->lingers && !options->reset_on_close &&
           !weir__channel_is_at(channel, WEIR__QUEUE, WEIR__QUEUE_LOST) &&
           options->close_timeout_ns > 0 && !weir__channel_is(channel, WEIR__INPUT_SHUT) &&
           !weir__channel_is(channel, WEIR__SKIPS_LINGER) &&
           channel->transport->shut_output != NULL;
}

/* Completes a half closure that waited for the queue. The close that follows shuts nothing down. */
static void finish_half_closure(weir_channel *channel)
{
    weir__channel_extra *extra = weir__channel_extra_if_any(channel);
    int err;

    if (!weir__channel_is_at(channel, WEIR__OUTPUT, WEIR__OUTPUT_ENDING) ||
        weir__channel_is_at(channel, WEIR__QUEUE, WEIR__QUEUE_LOST) ||
        weir__channel_options(channel)->reset_on_close)
        return;
    err = channel->transport->shut_output(channel);
    weir__channel_go_to(channel, WEIR__OUTPUT, WEIR__OUTPUT_SHUT);
    if (extra != NULL)
        weir__promise_list_complete(&extra->shutdown_waiters, err, NULL);
}

void weir__channel_sent_all(weir_channel *channel)
{
    weir__channel_extra *extra = weir__channel_extra_if_any(channel);
    int err = 0;

    if (!must_linger(channel)) {
        finish_half_closure(channel);
        weir__channel_begin_closing(channel, WEIR_ECLOSED);
        return;
    }
    weir__channel_set_state(channel, WEIR__LINGERING, WEIR__PHASE);
    err = weir__closing_start_linger_timeout(channel) ? 0 : WEIR_ECLOSED;
    if (err == 0 && !weir__channel_has(channel, WEIR__OUTPUT_SHUT))
        err = channel->transport->shut_output(channel);
    weir__channel_go_to(channel, WEIR__OUTPUT, WEIR__OUTPUT_SHUT);
    if (err < 0) {
        weir__channel_begin_closing(channel, err);
        return;
    }
    weir__channel_update_reading(channel);
    if (extra != NULL) /* need not wait for the peer */
        weir__promise_list_complete(&extra->shutdown_waiters, 0, NULL);
}

/* Sends the queue, and reads and discards input, so that the peer can continue to send. */
static void send_rest(weir_channel *channel)
{
    weir__channel_set_state(channel, WEIR__SENDING, WEIR__PHASE);
    weir__outbound_find_forgotten(channel);
    weir__outbound_flush(channel);
    if (weir__outbound_is_empty(&channel->outbound) && !must_linger(channel)) {
        weir__channel_begin_closing(channel, WEIR_ECLOSED);
        return;
    }
    if (!weir__closing_start_send_timeout(channel)) {
        weir__channel_begin_closing(channel, WEIR_ECLOSED);
        return;
    }
    weir__channel_update_reading(channel);
    weir__channel_do_flush(channel);
}

/* Returns false if the channel is closed already or the promise was cancelled. */
static bool add_close_waiter(weir_channel *channel, weir_promise *done)
{
    weir__channel_extra *extra;
    const char *reason;
    int err;

    if (done == NULL)
        return true;
    if (!weir_promise_set_uncancellable(done))
        return false;
    if (weir__channel_phase(channel) == WEIR__CLOSED) {
        err = weir__closing_error(channel, &reason);
        weir__channel_report(channel, done, err, reason);
        return false;
    }
    extra = weir__channel_extra_get(channel);
    if (extra == NULL || weir__promise_list_add(&extra->close_waiters, done) < 0)
        weir__channel_report(channel, done, -ENOMEM,
                             "no memory to wait for the close, which continues");
    return true;
}

/* A handler behind the border does not know that the channel is between two loops: the next one
 * sends what is left. */
static bool must_wait_for_loop(weir_channel *channel)
{
    bool closes_between = weir__channel_has(channel, WEIR__CLOSES_BETWEEN);

    channel->flags &= ~(uint32_t)WEIR__CLOSES_BETWEEN;
    return closes_between && weir__channel_is(channel, WEIR__IS_ACTIVE) &&
           !weir__outbound_is_empty(&channel->outbound);
}

void weir__channel_do_close(weir_channel *channel, weir_promise *done)
{
    if (!add_close_waiter(channel, done) || weir__channel_phase(channel) != WEIR__OPEN)
        return;
    if (weir__channel_is(channel, WEIR__IS_ACTIVE | WEIR__IS_REGISTERED) &&
        !channel->transport->accepts)
        send_rest(channel);
    else if (must_wait_for_loop(channel))
        channel->flags |= WEIR__CLOSE_WAITS;
    else
        weir__channel_begin_closing(channel, WEIR_ECLOSED);
}

void weir__channel_do_abort(weir_channel *channel, weir_promise *done, int err)
{
    if (!add_close_waiter(channel, done))
        return;
    weir__channel_end_batch(channel);
    weir__channel_begin_closing(channel, err);
}

void weir__channel_detached(weir_channel *channel)
{
    if (weir__channel_phase(channel) == WEIR__CLOSING)
        finish_closing(channel);
    else if (!weir__channel_state_is_at(channel, WEIR__REGISTRATION, WEIR__DETACHING))
        return;
    else if (weir__channel_phase(channel) == WEIR__OPEN)
        finish_deregister(channel);
    else
        reattach_to_send(channel);
}

void weir__channel_failed(weir_channel *channel, int err, const char *detail)
{
    weir__stats_error(channel, err);
    if (weir__channel_phase(channel) == WEIR__OPEN)
        weir_fire_error(weir__channel_head_tail(channel), err, detail);
    weir__channel_begin_closing(channel, err);
}

void weir__channel_nonfatal_error(weir_channel *channel, int err, const char *detail)
{
    weir__stats_error(channel, err);
    if (channel->transport->accepts)
        weir__stats_count(channel, WEIR__STAT_ACCEPTS_FAILED, 1);
    if (weir__channel_phase(channel) == WEIR__OPEN)
        weir_fire_error(weir__channel_head_tail(channel), err, detail);
}

/* ---- teardown ---- */

void weir__channel_do_inactive(weir_channel *channel)
{
    if (!weir__channel_state_is_at(channel, WEIR__ACTIVITY, WEIR__WAS_ACTIVE))
        return;
    weir__channel_set_state(channel, WEIR__IDLE, WEIR__ACTIVITY);
    weir_fire_inactive(weir__channel_head_tail(channel));
}

void weir__channel_fire_closed(weir_channel *channel)
{
    weir__channel_do_inactive(channel);
    weir__channel_stop_timers(channel);
    if (weir__channel_is(channel, WEIR__IS_REGISTERED)) {
        weir__channel_set_state(channel, WEIR__DETACHED, WEIR__REGISTRATION);
        weir_fire_unregistered(weir__channel_head_tail(channel));
    }
    weir__pipeline_teardown(&channel->pipeline);
}

void weir__channel_leave_loop(weir_channel *channel)
{
    if (!weir__channel_is_member(channel))
        return;
    part_from_loop(channel);
    weir_channel_release(channel); /* the loop's reference; the mailbox has its own */
}

/* ---- shutdown ---- */

void weir__channel_drain(weir_channel *channel)
{
    weir_ctx *head_tail = weir__channel_head_tail(channel);
    bool waits = (channel->pipeline.head_tail.slots & WEIR__DRAINING) != 0 ||
                 weir__channel_options(channel)->drain_waits;

    if (weir__channel_phase(channel) != WEIR__OPEN ||
        weir__channel_has(channel, WEIR__FIRED_DRAINING))
        return;
    channel->flags |= WEIR__FIRED_DRAINING;
    if (channel->transport->accepts || !waits)
        weir_close(head_tail, NULL);
    else
        weir_fire_draining(head_tail);
}
