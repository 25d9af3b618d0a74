/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The handshake, step by step: each step consumes received bytes and produces bytes to send. A step
 * may run on another executor (tls_offload.c). A server may have to choose the context for a
 * client: by the names of its context at once, or by on_sni, which may decide later.
 */
#include <errno.h>
#include <stdio.h>

#include <weir/channel.h>
#include <weir/error.h>

#include "tls/tls.h"

/* ---- the result ---- */

/* Fails without memory for the certificate: a peer must not seem to have sent none. */
static int create_success(weir__tls *tls, weir_msg **ret_event, bool *ret_is_resumed)
{
    weir_tls_certificate *peer;
    weir__openssl_negotiated negotiated;
    weir_msg *event;
    int err = weir__openssl_session_peer_certificate(tls->session, &peer);

    if (err < 0)
        return err;
    weir__openssl_session_negotiated(tls->session, &negotiated);
    event = weir__tls_handshake_create(0, "", &negotiated, peer);
    weir_tls_certificate_release(peer);
    err = weir_tls_handshake_result(weir_tls_handshake_of(event));
    if (err < 0) {
        weir_msg_release(event);
        return err;
    }
    *ret_is_resumed = negotiated.is_resumed;
    *ret_event = event;
    return 0;
}

static void complete(weir__tls *tls, int err, const char *detail)
{
    weir_promise *promise = tls->handshake;

    tls->handshake = NULL;
    if (promise == NULL)
        return;
    if (err < 0)
        (void)weir_promise_fail(promise, err, detail);
    else
        (void)weir_promise_succeed(promise, NULL);
    weir_promise_release(promise);
}

void weir__tls_report_handshake(weir_ctx *ctx, int err, const char *detail)
{
    weir__tls *tls = weir__tls_of(ctx);

    if (tls->is_reported)
        return;
    tls->is_reported = true;
    weir__tls_context_count(tls->context, err, false);
    complete(tls, err, detail);
    weir_fire_event(ctx, weir__tls_handshake_create(err, detail, NULL, NULL));
}

void weir__tls_report_handshake_lost(weir_ctx *ctx)
{
    int lost = weir__tls_of(ctx)->last_error;

    weir__tls_report_handshake(ctx, lost < 0 ? lost : WEIR_ECLOSED,
                               lost < 0 ? "the connection was lost during the handshake"
                                        : "the channel was closed during the handshake");
}

static void report_success(weir_ctx *ctx, weir_msg *event, bool is_resumed)
{
    weir__tls *tls = weir__tls_of(ctx);

    tls->is_reported = true;
    weir__tls_context_count(tls->context, 0, is_resumed);
    complete(tls, 0, NULL);
    weir_fire_event(ctx, event);
}

static void succeed(weir_ctx *ctx)
{
    weir__tls *tls = weir__tls_of(ctx);
    bool is_resumed;
    weir_msg *event;
    int err = create_success(tls, &event, &is_resumed);

    if (err < 0) {
        weir__tls_fail_and_close(ctx, err, weir_error_text(err));
        return;
    }
    (void)weir_timer_stop(&tls->timer);
    tls->stage = WEIR__TLS_OPEN;
    report_success(ctx, event, is_resumed);
    weir__tls_seal(ctx, tls); /* flushed after the rest of the read */
    weir__tls_continue_closing(ctx);
}

/* The session of a handler on another executor must not be used here. */
weir_msg *weir_tls_read_handshake(weir_pipeline *pipeline)
{
    weir_ctx *ctx = weir_pipeline_find_handler(pipeline, &weir__tls_handler.handler);
    bool is_resumed;
    weir__tls *tls;
    weir_msg *handshake;

    if (ctx == NULL || weir_ctx_executor(ctx) != weir_channel_executor(weir_ctx_channel(ctx)))
        return NULL;
    tls = weir__tls_of(ctx);
    if (tls->stage < WEIR__TLS_OPEN || tls->stage == WEIR__TLS_CLOSED)
        return NULL;
    return create_success(tls, &handshake, &is_resumed) == 0 ? handshake : NULL;
}

/* ---- the context of a client ---- */

static void use_context(weir__tls *tls, weir_tls_context *context)
{
    weir__openssl_context *current = weir__tls_context_current(context);

    weir__openssl_session_set_context(tls->session, current);
    weir__openssl_context_release(current);
}

static void use_context_by_name(weir__tls *tls)
{
    const weir__openssl_hello *hello = weir__openssl_session_hello(tls->session);
    weir_tls_context *context = weir__tls_context_find(tls->context, hello->server_name);

    use_context(tls, context);
    weir_tls_context_release(context);
}

/* on_sni has one reference of the request, the handler the other. */
static int call_sni_fn(weir_ctx *ctx, weir_tls_sni_fn *on_sni, void *user_data)
{
    weir__tls *tls = weir__tls_of(ctx);
    weir_tls_sni_request *request;
    int err =
        weir__tls_sni_request_create(ctx, weir__openssl_session_hello(tls->session), &request);

    if (err < 0)
        return err;
    weir_msg_retain(&request->msg);
    tls->request = request;
    tls->awaits = WEIR__TLS_AWAITS_SNI;
    tls->is_in_sni_fn = true;
    on_sni(request, user_data);
    tls->is_in_sni_fn = false;
    return 0;
}

static int choose_context(weir_ctx *ctx)
{
    weir__tls *tls = weir__tls_of(ctx);
    void *user_data = NULL;
    weir_tls_sni_fn *on_sni = weir__tls_context_sni_fn(tls->context, &user_data);

    if (on_sni != NULL)
        return call_sni_fn(ctx, on_sni, user_data);
    use_context_by_name(tls);
    return 0;
}

/* A rejected request is retained for its reason. */
static void apply_decision(weir__tls *tls, weir_tls_sni_request *request)
{
    weir_tls_context *context = request->accepted != NULL ? request->accepted : tls->context;

    tls->awaits = WEIR__TLS_AWAITS_NOTHING;
    if (!request->is_rejected && !weir__tls_context_is_server(context)) {
        request->is_rejected = true;
        (void)snprintf(request->reason, sizeof(request->reason),
                       "the chosen context is not a server's");
    }
    if (request->is_rejected) {
        weir__openssl_session_set_context(tls->session, NULL);
        return;
    }
    use_context(tls, context);
    tls->request = NULL;
    weir_msg_release(&request->msg);
}

/* ---- steps ---- */

static const char *reason_of(const weir__tls *tls, int err)
{
    if (tls->request != NULL)
        return tls->request->reason;
    return tls->session->reason != NULL ? tls->session->reason : weir_error_text(err);
}

/* Handles the result of a step. True if the next can follow at once, without more bytes. */
static bool handle_result(weir_ctx *ctx, int result, weir_buf *out)
{
    weir__tls *tls = weir__tls_of(ctx);

    weir__tls_send(ctx, out);
    if (tls->stage != WEIR__TLS_HANDSHAKING)
        return false;
    if (result == WEIR__OPENSSL_DONE)
        succeed(ctx);
    else if (result == WEIR__OPENSSL_WANT_CONTEXT)
        result = choose_context(ctx);
    if (result < 0)
        weir__tls_fail_and_close(ctx, result, reason_of(tls, result));
    return result == 0 && tls->stage == WEIR__TLS_HANDSHAKING &&
           tls->awaits == WEIR__TLS_AWAITS_NOTHING;
}

static void step(weir_ctx *ctx, weir_buf *in)
{
    weir__tls *tls = weir__tls_of(ctx);
    weir__openssl_io io;
    int result;

    do {
        if (tls->offload != NULL && weir__tls_offload(ctx, in))
            return;
        io = (weir__openssl_io){.in = in};
        result = weir__openssl_session_handshake(tls->session, &io);
    } while (handle_result(ctx, result, io.out) && result == WEIR__OPENSSL_WANT_CONTEXT);
}

/*
 * True if a server has to wait for more of the client's hello, until there are `ret_need` bytes.
 * Given half a record, a session allocates 64 KB of buffers, however little has arrived. So it gets
 * a complete hello, or bytes that are no hello, for which it has the right error.
 */
static bool awaits_hello(weir__tls *tls, const weir_buf *in, size_t *ret_need)
{
    const weir_span bytes = {weir_buf_bytes(in), weir_buf_readable(in)};
    const char *why;

    if (tls->has_hello || !weir__tls_context_is_server(tls->context))
        return false;
    tls->has_hello = weir__tls_hello_scan_records(&tls->hello, bytes, ret_need, &why) != 0;
    return !tls->has_hello;
}

int weir__tls_handshake_decode(weir_ctx *ctx, weir_buf *in)
{
    weir__tls *tls = weir__tls_of(ctx);
    size_t before = weir_buf_readable(in), need;

    if (awaits_hello(tls, in, &need))
        return weir_decoder_need(ctx, need);
    step(ctx, in);
    weir_flush(ctx);
    if (tls->awaits != WEIR__TLS_AWAITS_NOTHING && weir_buf_readable(in) == before)
        return weir_decoder_need(ctx, before + 1);
    if (tls->stage == WEIR__TLS_CLOSED)
        (void)weir_buf_skip(in, weir_buf_readable(in));
    return weir_buf_readable(in) != before;
}

void weir__tls_handshake_step_done(weir_ctx *ctx, int result, weir_buf *out)
{
    if (handle_result(ctx, result, out) && result == WEIR__OPENSSL_WANT_CONTEXT)
        step(ctx, NULL);
    weir__tls_resume(ctx);
}

void weir__tls_sni_decided(weir_ctx *ctx, weir_tls_sni_request *request)
{
    weir__tls *tls = weir__tls_of(ctx);
    bool is_ours = request == tls->request && tls->awaits == WEIR__TLS_AWAITS_SNI &&
                   tls->stage == WEIR__TLS_HANDSHAKING;

    weir_msg_release(&request->msg); /* if it is ours, we have another reference */
    if (!is_ours)
        return;
    apply_decision(tls, request);
    if (tls->is_in_sni_fn)
        return;
    step(ctx, NULL);
    weir__tls_resume(ctx);
}

/* ---- start and timeout ---- */

static void on_timeout(weir_ctx *ctx, weir_timer *timer)
{
    char detail[80];

    (void)timer;
    (void)snprintf(detail, sizeof(detail), "the handshake did not complete within %lld ms",
                   (long long)(weir__tls_of(ctx)->handshake_timeout_ns / 1000000));
    weir__tls_fail_and_close(ctx, -ETIMEDOUT, detail);
}

void weir__tls_limit_handshake(weir_ctx *ctx)
{
    weir__tls *tls = weir__tls_of(ctx);

    if (tls->handshake_timeout_ns != WEIR_OFF)
        (void)weir_ctx_timer_start(ctx, &tls->timer, tls->handshake_timeout_ns, on_timeout);
}

/* The client speaks first. Bytes received before are processed now, even with auto-read off. */
void weir__tls_start_handshake(weir_ctx *ctx)
{
    weir__tls *tls = weir__tls_of(ctx);

    tls->stage = WEIR__TLS_HANDSHAKING;
    weir__tls_limit_handshake(ctx);
    if (!weir__tls_context_is_server(tls->context))
        step(ctx, NULL);
    weir__tls_resume(ctx);
    if (tls->stage == WEIR__TLS_HANDSHAKING && !weir_channel_auto_read(weir_ctx_channel(ctx)))
        weir_request_read(ctx);
}
