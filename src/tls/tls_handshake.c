/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The handshake, one step after the other: each takes the bytes that have come, and leaves some to
 * be sent. A step may be done elsewhere (tls_offload.c). A server may have to ask which settings a
 * client gets: the names of its context say so at once, a chooser when it likes.
 */
#include <errno.h>
#include <stdio.h>

#include <weir/channel.h>
#include <weir/error.h>

#include "tls/tls.h"

static const weir__tls_engine *engine_of(const weir__tls *tls)
{
    return tls->session->engine;
}

/* ---- how it went ---- */

/* Nobody is to be taken for a peer without a certificate because there is no memory for it. */
static int create_success(weir__tls *tls, weir_msg **ret_event, bool *ret_is_resumed)
{
    weir_tls_certificate *peer;
    weir__tls_facts facts;
    weir_msg *event;
    int err = engine_of(tls)->peer_certificate(tls->session, &peer);

    if (err < 0)
        return err;
    engine_of(tls)->facts(tls->session, &facts);
    event = weir__tls_handshake_create(0, "", &facts, peer);
    weir_tls_certificate_release(peer);
    err = weir_tls_handshake_result(weir_tls_handshake_of(event));
    if (err < 0) {
        weir_msg_release(event);
        return err;
    }
    *ret_is_resumed = facts.is_resumed;
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

void weir__tls_tell(weir_ctx *ctx, int err, const char *detail)
{
    weir__tls *tls = weir__tls_of(ctx);

    if (tls->is_told)
        return;
    tls->is_told = true;
    weir__tls_context_count(tls->context, err, false);
    complete(tls, err, detail);
    weir_fire_event(ctx, weir__tls_handshake_create(err, detail, NULL, NULL));
}

void weir__tls_tell_ended(weir_ctx *ctx)
{
    int lost = weir__tls_of(ctx)->lost;

    weir__tls_tell(ctx, lost < 0 ? lost : WEIR_ECLOSED,
                   lost < 0 ? "the connection was lost before the handshake was over"
                            : "the channel was closed before the handshake was over");
}

static void tell_success(weir_ctx *ctx, weir_msg *event, bool is_resumed)
{
    weir__tls *tls = weir__tls_of(ctx);

    tls->is_told = true;
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
        weir__tls_give_up(ctx, err, weir_error_text(err));
        return;
    }
    (void)weir_timer_stop(&tls->timer);
    tls->stage = WEIR__TLS_OPEN;
    tell_success(ctx, event, is_resumed);
    weir__tls_seal(ctx); /* flushed with what comes of the rest that was read */
    weir__tls_go_on_closing(ctx);
}

/* A session is its handler's own: one that runs elsewhere cannot be asked from here. */
weir_msg *weir_tls_read_handshake(weir_pipeline *pipeline)
{
    weir_ctx *ctx = weir_pipeline_find_handler(pipeline, &weir__tls_handler.handler);
    bool is_resumed;
    weir__tls *tls;
    weir_msg *handshake;

    if (ctx == NULL || weir_ctx_executor(ctx) != weir_channel_executor(weir_ctx_channel(ctx)))
        return NULL;
    tls = weir__tls_of(ctx);
    if (tls->stage < WEIR__TLS_OPEN || tls->stage == WEIR__TLS_OVER)
        return NULL;
    return create_success(tls, &handshake, &is_resumed) == 0 ? handshake : NULL;
}

/* ---- what a client gets ---- */

static void choose(weir__tls *tls, weir_tls_context *context)
{
    weir__tls_settings *settings = weir__tls_context_settings(context);

    engine_of(tls)->choose(tls->session, settings);
    engine_of(tls)->settings_release(settings);
}

static void choose_by_name(weir__tls *tls)
{
    const weir__tls_wish *wish = engine_of(tls)->wish(tls->session);
    weir_tls_context *context = weir__tls_context_find(tls->context, wish->server_name);

    choose(tls, context);
    weir_tls_context_release(context);
}

/* One reference of the choice is the chooser's, the other one ours. */
static int ask_chooser(weir_ctx *ctx, weir_tls_choose_fn *chooser, void *user_data)
{
    weir__tls *tls = weir__tls_of(ctx);
    weir_tls_choice *choice;
    int err = weir__tls_choice_create(ctx, engine_of(tls)->wish(tls->session), &choice);

    if (err < 0)
        return err;
    weir_msg_retain(&choice->msg);
    tls->choice = choice;
    tls->awaits = WEIR__TLS_CHOICE;
    tls->is_choosing = true;
    chooser(choice, user_data);
    tls->is_choosing = false;
    return 0;
}

static int ask(weir_ctx *ctx)
{
    weir__tls *tls = weir__tls_of(ctx);
    void *user_data = NULL;
    weir_tls_choose_fn *chooser = weir__tls_context_chooser(tls->context, &user_data);

    if (chooser != NULL)
        return ask_chooser(ctx, chooser, user_data);
    choose_by_name(tls);
    return 0;
}

/* A refusal is kept for its words. */
static void apply(weir__tls *tls, weir_tls_choice *choice)
{
    weir_tls_context *context = choice->accepted != NULL ? choice->accepted : tls->context;

    tls->awaits = WEIR__TLS_NOTHING;
    if (!choice->is_refused && !weir__tls_context_is_server(context)) {
        choice->is_refused = true;
        (void)snprintf(choice->reason, sizeof(choice->reason), "a client's context was chosen");
    }
    if (choice->is_refused) {
        engine_of(tls)->choose(tls->session, NULL);
        return;
    }
    choose(tls, context);
    tls->choice = NULL;
    weir_msg_release(&choice->msg);
}

/* ---- steps ---- */

static const char *why(const weir__tls *tls, int err)
{
    if (tls->choice != NULL)
        return tls->choice->reason;
    return tls->session->reason != NULL ? tls->session->reason : weir_error_text(err);
}

/* True if it can go on at once, with no more bytes. */
static bool conclude(weir_ctx *ctx, int result, weir_buf *out)
{
    weir__tls *tls = weir__tls_of(ctx);

    weir__tls_send(ctx, out);
    if (tls->stage != WEIR__TLS_SHAKING)
        return false;
    if (result == WEIR__TLS_DONE)
        succeed(ctx);
    else if (result == WEIR__TLS_CHOOSE)
        result = ask(ctx);
    if (result < 0)
        weir__tls_give_up(ctx, result, why(tls, result));
    return result == 0 && tls->stage == WEIR__TLS_SHAKING && tls->awaits == WEIR__TLS_NOTHING;
}

static void step(weir_ctx *ctx, weir_buf *in)
{
    weir__tls *tls = weir__tls_of(ctx);
    weir__tls_io io;
    int result;

    do {
        if (tls->offload != NULL && weir__tls_offload(ctx, in))
            return;
        io = (weir__tls_io){.in = in};
        result = engine_of(tls)->handshake(tls->session, &io);
    } while (conclude(ctx, result, io.out) && result == WEIR__TLS_CHOOSE);
}

/*
 * Whether a server has to wait for more of the client's hello; then `ret_need` bytes. A session
 * that has got half a record takes 64 KB of buffers for it, however little has come. So it gets a
 * hello that is complete, or bytes that are none: it knows what to say to them.
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

int weir__tls_shake(weir_ctx *ctx, weir_buf *in)
{
    weir__tls *tls = weir__tls_of(ctx);
    size_t before = weir_buf_readable(in), need;

    if (awaits_hello(tls, in, &need))
        return weir_decoder_need(ctx, need);
    step(ctx, in);
    if (tls->awaits != WEIR__TLS_NOTHING && weir_buf_readable(in) == before)
        return weir_decoder_need(ctx, before + 1);
    if (tls->stage == WEIR__TLS_OVER)
        (void)weir_buf_skip(in, weir_buf_readable(in));
    return weir_buf_readable(in) != before;
}

void weir__tls_stepped(weir_ctx *ctx, int result, weir_buf *out)
{
    if (conclude(ctx, result, out) && result == WEIR__TLS_CHOOSE)
        step(ctx, NULL);
    weir__tls_resume(ctx);
}

void weir__tls_decided(weir_ctx *ctx, weir_tls_choice *choice)
{
    weir__tls *tls = weir__tls_of(ctx);
    bool is_ours =
        choice == tls->choice && tls->awaits == WEIR__TLS_CHOICE && tls->stage == WEIR__TLS_SHAKING;

    weir_msg_release(&choice->msg); /* if it is, we have another */
    if (!is_ours)
        return;
    apply(tls, choice);
    if (tls->is_choosing)
        return;
    step(ctx, NULL);
    weir__tls_resume(ctx);
}

/* ---- its beginning, and its time ---- */

static void on_timeout(weir_ctx *ctx, weir_timer *timer)
{
    char words[80];

    (void)timer;
    (void)snprintf(words, sizeof(words), "the handshake was not over after %lld ms",
                   (long long)(weir__tls_of(ctx)->handshake_timeout_ns / 1000000));
    weir__tls_give_up(ctx, -ETIMEDOUT, words);
}

void weir__tls_limit_handshake(weir_ctx *ctx)
{
    weir__tls *tls = weir__tls_of(ctx);

    if (tls->handshake_timeout_ns != WEIR_OFF)
        (void)weir_ctx_timer_start(ctx, &tls->timer, tls->handshake_timeout_ns, on_timeout);
}

/* A client speaks first. What has come already is looked at now, also where reads are on demand. */
void weir__tls_begin(weir_ctx *ctx)
{
    weir__tls *tls = weir__tls_of(ctx);

    tls->stage = WEIR__TLS_SHAKING;
    weir__tls_limit_handshake(ctx);
    if (!weir__tls_context_is_server(tls->context))
        step(ctx, NULL);
    weir__tls_resume(ctx);
    if (tls->stage == WEIR__TLS_SHAKING && !weir_channel_auto_read(weir_ctx_channel(ctx)))
        weir_request_read(ctx);
}
