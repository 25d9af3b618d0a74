/* SPDX-License-Identifier: Apache-2.0 */
/*
 * close_notify, ours and the peer's. A close writes ours behind all earlier writes. Then it is
 * passed on to the transport, which sends all of it in its own time; or it first waits for the
 * peer's close_notify. A half closure does the same without waiting. The peer's close_notify closes
 * the channel; with half closure it ends the input, whether or not the peer's stream goes on.
 *
 * The timer is used up to three times. A peer that keeps us from sending fails the connection. For
 * one that reads nothing, or does not send its close_notify, the close stops waiting and is passed
 * on to the transport, which has timeouts of its own.
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
    assert(!"a static event was freed");
}

weir_msg *weir_event_tls_closed(void)
{
    static const weir_msg_type type = {.name = "tls-closed", .destroy = never};
    static weir_msg event = {.type = &type, .refs = WEIR_MSG_STATIC};

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
 * While the close waits for our close_notify to be sent. If the peer reads nothing, the close is
 * passed on without waiting: from then on the transport's timeout applies.
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
    weir__tls_fail_and_close(ctx, -ETIMEDOUT,
                             weir__tls_of(ctx)->stage == WEIR__TLS_HANDSHAKING
                                 ? "close timeout: the handshake did not complete"
                                 : "close timeout: the peer did not complete its message");
}

/* Before anything can be sent. A handshake with a timeout of its own does not need this. */
static void limit_waiting(weir_ctx *ctx)
{
    weir__tls *tls = weir__tls_of(ctx);

    if (tls->close_timeout_ns != WEIR_OFF && !weir_timer_is_running(&tls->timer))
        (void)weir_ctx_timer_start(ctx, &tls->timer, tls->close_timeout_ns, on_waiting_timer);
}

void weir__tls_limit_close(weir_ctx *ctx)
{
    const weir__tls *tls = weir__tls_of(ctx);

    if (tls->writes.close_deferred && tls->stage != WEIR__TLS_CLOSING)
        limit_waiting(ctx);
    else if (tls->writes.close_deferred && tls->last_write == NULL)
        (void)limit_peer(ctx);
    else if (tls->stage == WEIR__TLS_CLOSING)
        limit_sending(ctx);
}

/* Our close_notify, if the peer's is to be waited for from the moment it has been sent. */
struct weir__tls_last_write {
    weir_listener listener;
    weir_ctx *ctx; /* NULL = detached */
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

void weir__tls_detach_last_write(weir__tls *tls)
{
    if (tls->last_write != NULL)
        tls->last_write->ctx = NULL;
    tls->last_write = NULL;
}

/* Returns a promise that completes when the wait for the peer begins; NULL = do not wait. */
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

/* ---- our close_notify ---- */

static bool waits_for_peer(const weir__tls *tls)
{
    return tls->peer_close_timeout_ns > 0 && !weir__tls_has_peer_closed(tls);
}

/* One flush for it and everything sealed before. */
static void write_close_notify(weir_ctx *ctx, weir_promise *promise)
{
    weir__tls *tls = weir__tls_of(ctx);
    weir__openssl_io io = {0};

    weir__openssl_session_close(tls->session, &io);
    tls->needs_flush = true;
    if (io.out != NULL)
        weir_write_pending(ctx, weir_buf_msg(io.out), promise, 0); /* regardless of the cap */
}

static void close_output(weir_ctx *ctx)
{
    weir__tls *tls = weir__tls_of(ctx);
    weir_promise *promise = waits_for_peer(tls) ? watch_last_write(ctx) : NULL;

    tls->stage = WEIR__TLS_CLOSING;
    (void)weir_timer_stop(&tls->timer);
    write_close_notify(ctx, promise);
    if (promise != NULL)
        weir__tls_flush(ctx, tls);
    else
        weir_pending_writes_run_deferred(ctx, &tls->writes); /* the close flushes it */
    weir__tls_request_more(ctx, tls);
    if (tls->last_write != NULL) /* otherwise it was sent, or nothing waits for it */
        limit_sending(ctx);
    weir_promise_release(promise);
}

/* The half closure flushes the close_notify. */
static void half_close(weir_ctx *ctx)
{
    weir__tls *tls = weir__tls_of(ctx);

    tls->stage = WEIR__TLS_HALF_CLOSED;
    write_close_notify(ctx, NULL);
    weir_pending_writes_run_deferred(ctx, &tls->writes);
}

void weir__tls_continue_closing(weir_ctx *ctx)
{
    weir__tls *tls = weir__tls_of(ctx);

    if (!weir__tls_is_ending(tls) || tls->is_sealing || tls->stage != WEIR__TLS_OPEN)
        return;
    weir__tls_seal(ctx, tls);
    if (tls->stage != WEIR__TLS_OPEN)
        return;
    if (tls->session->is_blocked && tls->writes.close_deferred)
        limit_waiting(ctx);
    if (tls->session->is_blocked || tls->writes.count > 0)
        return;
    if (tls->writes.close_deferred)
        close_output(ctx);
    else
        half_close(ctx);
}

/* Nothing of ours would be lost, and there is no TLS session to close yet. */
static void close_early(weir_ctx *ctx, weir_promise *done)
{
    weir__tls_set_closed(weir__tls_of(ctx));
    weir__tls_fail_writes(ctx, WEIR_ECLOSED, "the channel was closed during the handshake");
    weir__tls_report_handshake_lost(ctx);
    weir_close(ctx, done);
}

/* Our close_notify was written before. */
static void close_half_closed(weir_ctx *ctx, weir_promise *done)
{
    weir__tls *tls = weir__tls_of(ctx);

    tls->stage = WEIR__TLS_CLOSING;
    weir_pending_writes_defer_close(ctx, &tls->writes, done);
    if (waits_for_peer(tls) && limit_peer(ctx) == 0) {
        weir__tls_request_more(ctx, tls);
        return;
    }
    weir_pending_writes_run_deferred(ctx, &tls->writes);
}

/*
 * Listeners of a connect run before `active`: what they wrote needs a handshake first, and so does
 * the close.
 */
void weir__tls_close(weir_ctx *ctx, weir_promise *done)
{
    weir__tls *tls = weir__tls_of(ctx);

    if (tls->writes.count > 0)
        weir__tls_start_if_active(ctx);
    if (tls->writes.close_deferred) {
        weir_pending_writes_defer_close(ctx, &tls->writes, done);
    } else if (tls->stage == WEIR__TLS_HALF_CLOSED) {
        close_half_closed(ctx, done);
    } else if (tls->stage == WEIR__TLS_CLOSED || tls->stage == WEIR__TLS_CLOSING) {
        weir_close(ctx, done);
    } else if (tls->stage == WEIR__TLS_WAITING ||
               (tls->stage == WEIR__TLS_HANDSHAKING && tls->writes.count == 0)) {
        close_early(ctx, done);
    } else {
        weir_pending_writes_defer_close(ctx, &tls->writes, done);
        if (tls->stage == WEIR__TLS_HANDSHAKING)
            limit_waiting(ctx);
        weir__tls_continue_closing(ctx);
        if (tls->stage == WEIR__TLS_OPEN)
            weir__tls_request_more(ctx, tls);
    }
}

/*
 * True if only the transport is half closed. There is no TLS to close before the channel is active,
 * and before the first message with start_tls.
 */
static bool passes_half_closure(weir_ctx *ctx)
{
    const weir__tls *tls = weir__tls_of(ctx);

    if (tls->stage == WEIR__TLS_WAITING)
        return tls->clear != WEIR__TLS_CLEAR_PASSED ||
               !weir_channel_is_active(weir_ctx_channel(ctx));
    return tls->stage > WEIR__TLS_OPEN && !tls->writes.close_deferred;
}

/* With start_tls, a listener of the first message may already have started or closed it. */
static void start_after_first(weir_ctx *ctx)
{
    weir_flush(ctx);
    if (weir__tls_of(ctx)->stage == WEIR__TLS_WAITING)
        weir__tls_start_handshake(ctx);
}

void weir__tls_shutdown_output(weir_ctx *ctx, weir_promise *done)
{
    weir__tls *tls = weir__tls_of(ctx);

    weir__tls_start_if_active(ctx);
    if (passes_half_closure(ctx)) {
        weir_shutdown_output(ctx, done);
        return;
    }
    weir_pending_writes_defer_shutdown_output(ctx, &tls->writes, done);
    if (tls->stage == WEIR__TLS_WAITING && tls->writes.shutdown_deferred)
        start_after_first(ctx);
    weir__tls_continue_closing(ctx);
    if (tls->stage == WEIR__TLS_OPEN)
        weir__tls_request_more(ctx, tls);
}

/* ---- the peer's close_notify ---- */

static bool has_half_closure(weir_ctx *ctx)
{
    weir_channel_options options;

    weir_channel_get_options(weir_ctx_channel(ctx), &options);
    return options.half_closure;
}

static bool is_open(const weir__tls *tls)
{
    return tls->stage == WEIR__TLS_OPEN || tls->stage == WEIR__TLS_HALF_CLOSED;
}

/* As if the stream had ended, which it need not have: a peer may close TLS alone. */
static void fire_input_closed(weir_ctx *ctx)
{
    weir__tls *tls = weir__tls_of(ctx);

    tls->input = WEIR__TLS_INPUT_REPORTED;
    weir_fire_event(ctx, weir_msg_retain(weir_event_input_closed()));
    weir_fire_event(ctx, weir_msg_retain(weir_event_input_drained()));
}

void weir__tls_peer_closed(weir_ctx *ctx)
{
    weir__tls *tls = weir__tls_of(ctx);

    if (tls->peer != WEIR__TLS_PEER_CLOSED)
        return;
    tls->peer = WEIR__TLS_PEER_REPORTED;
    weir_channel_skip_linger(weir_ctx_channel(ctx));
    weir_fire_event(ctx, weir_msg_retain(weir_event_tls_closed()));
    if (tls->stage == WEIR__TLS_CLOSING)
        weir_pending_writes_run_deferred(ctx, &tls->writes); /* the close waited for it */
    else if (is_open(tls) && !has_half_closure(ctx))
        weir__tls_close(ctx, NULL);
    else if (is_open(tls) && weir_channel_is_open(weir_ctx_channel(ctx)))
        fire_input_closed(ctx);
}

void weir__tls_input_closed(weir_ctx *ctx)
{
    weir__tls *tls = weir__tls_of(ctx);

    weir__tls_peer_closed(ctx);
    if (tls->stage == WEIR__TLS_HANDSHAKING)
        weir__tls_fail_and_close(ctx, WEIR_ECUTOFF,
                                 "the peer closed the connection during the handshake");
    if (!is_open(tls) || tls->peer != WEIR__TLS_PEER_OPEN)
        return;
    tls->peer = WEIR__TLS_PEER_CUT_OFF;
    weir_fire_error(ctx, WEIR_ECUTOFF, NULL);
}
