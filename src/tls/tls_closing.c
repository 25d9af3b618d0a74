/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Both ends of TLS. Ours is sent by a close, behind all that was written before it; then the close
 * goes on to the transport, which sends all of this in its own time. Or it waits before that for
 * the peer's end. A half closure does the same, and waits for nobody. The peer's end closes the
 * channel; if that has half closure, it is the end of the input, whether or not the peer's stream
 * goes on.
 *
 * The timer is used three times, at the most. A peer that keeps us from sending is given up. One
 * that takes nothing of what is to be sent, and one that was to end TLS, is not waited for any
 * longer: the close goes on to the transport, which has its own timeouts.
 */
#include <errno.h>

#include <weir/channel.h>
#include <weir/error.h>
#include <weir/handler.h>
#include <weir/memory.h>

#include "tls/tls.h"

/* ---- the event ---- */

static void never(weir_msg *msg)
{
    (void)msg;
    assert(!"the event was released more often than it was fired");
}

weir_msg *weir_event_tls_closed(void)
{
    static const weir_msg_type type = {.name = "tls-closed", .destroy = never};
    static weir_msg event = {.type = &type, .refs = 1};

    return &event;
}

/* ---- waiting ---- */

static void limit_sending(weir_ctx *ctx);

static void on_close_timer(weir_ctx *ctx, weir_timer *timer)
{
    weir_channel *channel = weir_ctx_channel(ctx);

    (void)timer;
    if (weir_channel_sent_at(channel) != weir__tls_of(ctx)->sent_at)
        limit_sending(ctx);
    else
        weir_pending_writes_run_deferred(ctx, &weir__tls_of(ctx)->writes);
}

/*
 * As long as the close waits here for our end of TLS to be sent. A peer that takes nothing gets the
 * close without it: from there on the transport's timeout counts, and only that gives up.
 */
static void limit_sending(weir_ctx *ctx)
{
    weir__tls *tls = weir__tls_of(ctx);
    weir_channel *channel = weir_ctx_channel(ctx);

    if (tls->close_timeout_ns == WEIR_OFF || !tls->writes.close_deferred)
        return;
    tls->sent_at = weir_channel_sent_at(channel);
    (void)weir_ctx_timer_start(ctx, &tls->timer, tls->close_timeout_ns, on_close_timer);
}

static void on_peer_timer(weir_ctx *ctx, weir_timer *timer)
{
    (void)timer;
    weir_pending_writes_run_deferred(ctx, &weir__tls_of(ctx)->writes);
}

static int limit_peer(weir_ctx *ctx)
{
    weir__tls *tls = weir__tls_of(ctx);

    return weir_ctx_timer_start(ctx, &tls->timer, tls->peer_close_timeout_ns, on_peer_timer);
}

static void on_waiting_timer(weir_ctx *ctx, weir_timer *timer)
{
    (void)timer;
    weir__tls_give_up(ctx, -ETIMEDOUT,
                      weir__tls_of(ctx)->stage == WEIR__TLS_SHAKING
                          ? "a close has waited too long for the end of the handshake"
                          : "a close has waited too long for the peer to finish its message");
}

/* Before anything can be sent. A handshake that has a limit of its own has no need of this. */
static void limit_waiting(weir_ctx *ctx)
{
    weir__tls *tls = weir__tls_of(ctx);

    if (tls->close_timeout_ns != WEIR_OFF && !weir_timer_is_running(&tls->timer))
        (void)weir_ctx_timer_start(ctx, &tls->timer, tls->close_timeout_ns, on_waiting_timer);
}

void weir__tls_limit_close(weir_ctx *ctx)
{
    const weir__tls *tls = weir__tls_of(ctx);

    if (tls->writes.close_deferred && tls->stage != WEIR__TLS_ENDING)
        limit_waiting(ctx);
    else if (tls->writes.close_deferred && tls->last_write == NULL)
        (void)limit_peer(ctx);
    else if (tls->stage == WEIR__TLS_ENDING)
        limit_sending(ctx);
}

/* Our end of TLS, when the peer's is to be waited for: from the moment that it has been sent. */
struct weir__tls_last_write {
    weir_listener listener;
    weir_ctx *ctx; /* NULL = nobody waits any more */
};

static void on_last_sent(weir_promise *promise, void *user_data)
{
    weir__tls_last_write *last = user_data;
    weir_ctx *ctx = last->ctx;
    weir__tls *tls;

    weir_memory_free(last);
    if (ctx == NULL)
        return;
    tls = weir__tls_of(ctx);
    tls->last_write = NULL;
    if (!tls->writes.close_deferred)
        return;
    if (weir_promise_result(promise) < 0 || limit_peer(ctx) < 0)
        weir_pending_writes_run_deferred(ctx, &tls->writes);
}

void weir__tls_forget_last_write(weir__tls *tls)
{
    if (tls->last_write != NULL)
        tls->last_write->ctx = NULL;
    tls->last_write = NULL;
}

/* Gives a promise that tells when to wait for the peer; NULL: it is not waited for. */
static weir_promise *watch_last_write(weir_ctx *ctx)
{
    weir__tls_last_write *last = weir_memory_alloc(sizeof(*last));
    weir_promise *promise;

    if (last == NULL)
        return NULL;
    if (weir_promise_create(weir_ctx_executor(ctx), &promise) < 0) {
        weir_memory_free(last);
        return NULL;
    }
    *last = (weir__tls_last_write){.ctx = ctx};
    last->listener = (weir_listener){.fn = on_last_sent, .user_data = last};
    weir__tls_of(ctx)->last_write = last;
    weir_promise_listen(promise, &last->listener);
    return promise;
}

/* ---- our end ---- */

static bool waits_for_peer(const weir__tls *tls)
{
    return tls->peer_close_timeout_ns > 0 && !tls->has_peer_ended;
}

bool weir__tls_waits_for_bytes(const weir__tls *tls)
{
    if (tls->stage == WEIR__TLS_ENDING)
        return tls->writes.close_deferred;
    return tls->stage == WEIR__TLS_OPEN && tls->session->is_blocked &&
           (tls->writes.flushed > 0 || weir_pending_writes_is_ending(&tls->writes));
}

void weir__tls_ask_for_more(weir_ctx *ctx)
{
    if (weir__tls_waits_for_bytes(weir__tls_of(ctx)) &&
        !weir_channel_auto_read(weir_ctx_channel(ctx)))
        weir_request_read(ctx);
}

/* One flush for it and all that was sealed before. */
static void write_end(weir_ctx *ctx, weir_promise *promise)
{
    weir__tls *tls = weir__tls_of(ctx);
    weir__tls_io io = {0};

    tls->session->engine->end(tls->session, &io);
    tls->needs_flush = true;
    if (io.out != NULL)
        weir_write_pending(ctx, weir_buf_msg(io.out), promise, 0); /* whatever the cap is */
}

static void end_output(weir_ctx *ctx)
{
    weir__tls *tls = weir__tls_of(ctx);
    weir_promise *promise = waits_for_peer(tls) ? watch_last_write(ctx) : NULL;

    tls->stage = WEIR__TLS_ENDING;
    (void)weir_timer_stop(&tls->timer);
    write_end(ctx, promise);
    if (promise != NULL)
        weir__tls_flush(ctx);
    else
        weir_pending_writes_run_deferred(ctx,
                                         &tls->writes); /* the close sends it, with its own end */
    weir__tls_ask_for_more(ctx);
    if (tls->last_write != NULL) /* otherwise it has been sent, or is not waited for */
        limit_sending(ctx);
    weir_promise_release(promise);
}

/* The half closure sends it, with its own end. */
static void shut_output(weir_ctx *ctx)
{
    weir__tls *tls = weir__tls_of(ctx);

    tls->stage = WEIR__TLS_SHUT;
    write_end(ctx, NULL);
    weir_pending_writes_run_deferred(ctx, &tls->writes);
}

void weir__tls_go_on_closing(weir_ctx *ctx)
{
    weir__tls *tls = weir__tls_of(ctx);

    if (!weir_pending_writes_is_ending(&tls->writes) || tls->is_sealing ||
        tls->stage != WEIR__TLS_OPEN)
        return;
    weir__tls_seal(ctx);
    if (tls->stage != WEIR__TLS_OPEN)
        return;
    if (tls->session->is_blocked && tls->writes.close_deferred)
        limit_waiting(ctx);
    if (tls->session->is_blocked || tls->writes.count > 0)
        return;
    if (tls->writes.close_deferred)
        end_output(ctx);
    else
        shut_output(ctx);
}

/* Nothing of ours would be lost, and there is nothing yet that could be ended. */
static void close_early(weir_ctx *ctx, weir_promise *done)
{
    weir__tls_become_over(weir__tls_of(ctx));
    weir__tls_fail_writes(ctx, WEIR_ECLOSED,
                          "the channel was closed before the handshake was over");
    weir__tls_tell_ended(ctx);
    weir_close(ctx, done);
}

/* Our end of TLS has been written before. */
static void close_shut(weir_ctx *ctx, weir_promise *done)
{
    weir__tls *tls = weir__tls_of(ctx);

    tls->stage = WEIR__TLS_ENDING;
    weir_pending_writes_defer_close(ctx, &tls->writes, done);
    if (waits_for_peer(tls) && limit_peer(ctx) == 0) {
        weir__tls_ask_for_more(ctx);
        return;
    }
    weir_pending_writes_run_deferred(ctx, &tls->writes);
}

/*
 * Listeners of a connect run before `active`: what they wrote needs a handshake, and so the end of
 * the output does.
 */
void weir__tls_close(weir_ctx *ctx, weir_promise *done)
{
    weir__tls *tls = weir__tls_of(ctx);

    if (tls->writes.count > 0)
        weir__tls_begin_if_active(ctx);
    if (tls->writes.close_deferred) {
        weir_pending_writes_defer_close(ctx, &tls->writes, done);
    } else if (tls->stage == WEIR__TLS_SHUT) {
        close_shut(ctx, done);
    } else if (tls->stage == WEIR__TLS_OVER || tls->stage == WEIR__TLS_ENDING) {
        weir_close(ctx, done);
    } else if (tls->stage == WEIR__TLS_WAITING ||
               (tls->stage == WEIR__TLS_SHAKING && tls->writes.count == 0)) {
        close_early(ctx, done);
    } else {
        weir_pending_writes_defer_close(ctx, &tls->writes, done);
        if (tls->stage == WEIR__TLS_SHAKING)
            limit_waiting(ctx);
        weir__tls_go_on_closing(ctx);
        if (tls->stage == WEIR__TLS_OPEN)
            weir__tls_ask_for_more(ctx);
    }
}

/*
 * Whether it is the transport's alone. What has not begun has no end: before the channel is active,
 * and before the first message of a start-TLS.
 */
static bool passes_half_closure(weir_ctx *ctx)
{
    const weir__tls *tls = weir__tls_of(ctx);

    if (tls->stage == WEIR__TLS_WAITING)
        return !tls->has_passed_first || !weir_channel_is_active(weir_ctx_channel(ctx));
    return tls->stage > WEIR__TLS_OPEN && !tls->writes.close_deferred;
}

/* Who hears that the first message of a start-TLS has been sent may have begun, or ended, this. */
static void begin_behind_first(weir_ctx *ctx)
{
    weir_flush(ctx);
    if (weir__tls_of(ctx)->stage == WEIR__TLS_WAITING)
        weir__tls_begin(ctx);
}

void weir__tls_shutdown_output(weir_ctx *ctx, weir_promise *done)
{
    weir__tls *tls = weir__tls_of(ctx);

    weir__tls_begin_if_active(ctx);
    if (passes_half_closure(ctx)) {
        weir_shutdown_output(ctx, done);
        return;
    }
    weir_pending_writes_defer_shutdown_output(ctx, &tls->writes, done);
    if (tls->stage == WEIR__TLS_WAITING && tls->writes.shutdown_deferred)
        begin_behind_first(ctx);
    weir__tls_go_on_closing(ctx);
    if (tls->stage == WEIR__TLS_OPEN)
        weir__tls_ask_for_more(ctx);
}

/* ---- the peer's ---- */

static bool has_half_closure(weir_ctx *ctx)
{
    weir_channel_options options;

    weir_channel_get_options(weir_ctx_channel(ctx), &options);
    return options.half_closure;
}

static bool is_open(const weir__tls *tls)
{
    return tls->stage == WEIR__TLS_OPEN || tls->stage == WEIR__TLS_SHUT;
}

/* As if the stream had ended, which it need not have: peers may end TLS alone, to say this. */
static void tell_input_closed(weir_ctx *ctx)
{
    weir__tls *tls = weir__tls_of(ctx);

    tls->is_input_closed = true;
    weir_fire_event(ctx, weir_msg_retain(weir_event_input_closed()));
    weir_fire_event(ctx, weir_msg_retain(weir_event_input_drained()));
}

void weir__tls_peer_ended(weir_ctx *ctx)
{
    weir__tls *tls = weir__tls_of(ctx);

    if (tls->is_end_told)
        return;
    tls->is_end_told = true;
    weir_channel_skip_linger(weir_ctx_channel(ctx));
    weir_fire_event(ctx, weir_msg_retain(weir_event_tls_closed()));
    if (tls->stage == WEIR__TLS_ENDING)
        weir_pending_writes_run_deferred(ctx, &tls->writes); /* it was waited for */
    else if (is_open(tls) && !has_half_closure(ctx))
        weir__tls_close(ctx, NULL);
    else if (is_open(tls) && weir_channel_is_open(weir_ctx_channel(ctx)))
        tell_input_closed(ctx);
}

void weir__tls_input_ended(weir_ctx *ctx)
{
    weir__tls *tls = weir__tls_of(ctx);

    if (tls->has_peer_ended)
        weir__tls_peer_ended(ctx);
    if (tls->stage == WEIR__TLS_SHAKING)
        weir__tls_give_up(ctx, WEIR_ECUTOFF,
                          "the peer ended the connection before the handshake was over");
    if (!is_open(tls) || tls->is_end_told)
        return;
    tls->is_end_told = true;
    weir_fire_error(ctx, WEIR_ECUTOFF, NULL);
}
