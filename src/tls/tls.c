/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The TLS handler: a decoder of records in one direction, a queue of writes in the other.
 *
 *      from          to           by                         when
 *      -             WAITING      init                       its session is created
 *      WAITING       HANDSHAKING  weir__tls_start_handshake  the channel is active, or a listener
 *                                                            of the connect closes the output
 *                                                            before that; with start_tls, the
 *                                                            first message has been passed on
 *      HANDSHAKING   OPEN         succeed                    the handshake is complete
 *      OPEN          HALF_CLOSED  half_close                 a half closure is pending and all
 *                                                            writes are sealed
 *      OPEN          CLOSING      close_output               a close is pending, by us or by the
 *                                                            peer's close_notify, and all writes
 *                                                            are sealed
 *      HALF_CLOSED   CLOSING      close_half_closed          a close is requested
 *      WAITING,      CLOSED       close_early                a close, and there is nothing to send
 *      HANDSHAKING
 *      any           CLOSED       weir__tls_fail_and_close   the session fails; no memory; timeout
 *      any           CLOSED       on_inactive                the channel has ended
 *      any           CLOSED       on_removed                 the handler is removed
 *
 * Invariants of the stages:
 *
 *      WAITING      Received bytes are buffered. Writes are queued, except the first one of
 *                   start_tls.
 *      HANDSHAKING  Bytes go to the session. Writes are queued, and a close waits for them; a half
 *                   closure always waits, since the peer may still send. While a job has the
 *                   session, bytes are buffered and reading is paused; while on_sni has not decided
 *                   (`awaits`), up to WEIR__TLS_BUFFERED_MAX are buffered, more are an error.
 *      OPEN         Bytes go to the session and come out plain; the handshake has been reported
 *                   before the first of them. Writes are queued until they are flushed, and while
 *                   the peer is in the middle of a handshake message (`is_blocked`); so are a close
 *                   and a half closure.
 *      HALF_CLOSED  close_notify is the last that we have written, and the transport's output is
 *                   shut down behind it. Bytes still come out plain; writes fail.
 *      CLOSING      As HALF_CLOSED, but a close waits for the peer's close_notify, or has been
 *                   passed on.
 *      CLOSED       Bytes are discarded, writes fail, a close is passed on.
 *
 * Beside the stage, and each with a field of its own:
 *
 *      awaits  NOTHING <-> OFFLOAD, SNI             by a step of the handshake; when it is done
 *      clear   NONE; or FIRST -> PASSED             with start_tls; by the first write
 *      input   OPEN -> HELD -> HELD_DRAINED         by events while the handshake waits; as they
 *              either -> OPEN, OWES_DRAINED -> OPEN are passed on
 *              any -> REPORTED                      by the peer's close_notify, or removal
 *      peer    OPEN -> CLOSED -> REPORTED           by close_notify; when it is passed on
 *              OPEN -> CUT_OFF                      at the end of the stream without one
 *
 * Invariants:
 *   - The result of the handshake is reported exactly once: weir__tls_report_handshake.
 *   - Nothing runs between sealing a record and its weir_write: records are written in the order in
 *     which they were sealed.
 *   - A fired event may do anything to this handler. After it the stage is read again; the state's
 *     memory stays valid until the next turn, even if the handler was removed.
 */
#include "tls/tls.h"

#include <errno.h>
#include <string.h>

#include <weir/channel.h>
#include <weir/handler.h>

#include "base/no_stack_protector.h"
#include "base/options.h"
#include "tls/tls_reason.h"

#define HANDSHAKE_TIMEOUT_NS weir_seconds(10)
#define CLOSE_TIMEOUT_NS weir_seconds(3)

/* ---- shared by all files ---- */

void weir__tls_send(weir_ctx *ctx, weir_buf *records)
{
    if (records == NULL)
        return;
    if (weir__tls_of(ctx)->stage == WEIR__TLS_HALF_CLOSED) { /* nothing follows our close_notify */
        weir_buf_release(records);
        return;
    }
    weir__tls_of(ctx)->needs_flush = true;
    weir_write_pending(ctx, weir_buf_msg(records), NULL, 0); /* regardless of the cap */
}

void weir__tls_flush(weir_ctx *ctx, weir__tls *tls)
{
    if (!tls->needs_flush)
        return;
    tls->needs_flush = false;
    weir_flush(ctx);
}

void weir__tls_set_closed(weir__tls *tls)
{
    tls->stage = WEIR__TLS_CLOSED;
    (void)weir_timer_stop(&tls->timer);
}

void weir__tls_fail_and_close(weir_ctx *ctx, int err, const char *detail)
{
    weir__tls *tls = weir__tls_of(ctx);

    if (tls->stage == WEIR__TLS_CLOSED)
        return;
    weir__tls_set_closed(tls);
    weir__tls_flush(ctx, tls); /* the alert */
    weir__tls_fail_writes(ctx, err, detail);
    weir__tls_report_handshake(ctx, err, detail);
    weir_fire_error(ctx, err, detail);
    if (tls->writes.close_deferred)
        weir_pending_writes_run_deferred(ctx, &tls->writes);
    else
        weir_close(ctx, NULL);
}

/* ---- reading ---- */

static int discard(weir_buf *in)
{
    (void)weir_buf_skip(in, weir_buf_readable(in));
    return 1;
}

/*
 * A client may send data as soon as its own part of the handshake is complete, while our last step
 * still runs as a job. That is legal; it waits as for any peer that does not read.
 */
static bool pause_input(weir_ctx *ctx)
{
    weir__tls *tls = weir__tls_of(ctx);

    if (tls->awaits != WEIR__TLS_AWAITS_OFFLOAD)
        return false; /* may still be paused by a job that is done, and is about to be resumed */
    if (!tls->is_input_paused)
        tls->is_input_paused = weir_ctx_pause_input(ctx) == 0;
    return tls->is_input_paused;
}

void weir__tls_resume_input(weir_ctx *ctx)
{
    weir__tls *tls = weir__tls_of(ctx);

    if (!tls->is_input_paused || tls->awaits == WEIR__TLS_AWAITS_OFFLOAD)
        return;
    tls->is_input_paused = false;
    weir_ctx_resume_input(ctx);
}

/* Leaves bytes in the decoder until they can be processed, or are too many. */
static int buffer_input(weir_ctx *ctx, weir_buf *in)
{
    if (pause_input(ctx))
        return weir_decoder_need(ctx, SIZE_MAX);
    if (weir_buf_readable(in) <= WEIR__TLS_BUFFERED_MAX)
        return weir_decoder_need(ctx, WEIR__TLS_BUFFERED_MAX + 1);
    weir__tls_fail_and_close(ctx, WEIR_ETOOLONG, "the peer sent too much during the handshake");
    return discard(in);
}

/*
 * False if the peer does not read our replies, to key updates say. It may request any number, but
 * unread they would pile up whatever the marks are. When nothing is queued it has read them all.
 */
static bool reads_replies(weir_ctx *ctx, size_t length)
{
    weir__tls *tls = weir__tls_of(ctx);

    if (weir_channel_pending_bytes(weir_ctx_channel(ctx)) == 0)
        tls->reply_bytes = 0;
    else if (tls->reply_bytes > WEIR__TLS_REPLIES_MAX)
        return false;
    tls->reply_bytes += length;
    return true;
}

/* Decrypts what there is into `plain`: WANT_READ, CLOSED or an error. */
WEIR__NO_STACK_PROTECTOR static int open_records(weir_ctx *ctx, weir__tls *tls, weir_buf *in,
                                                 weir_buf *plain)
{
    weir__openssl_io io = {.in = in};
    int result = weir__openssl_session_open(tls->session, &io, plain);

    while (result == WEIR__OPENSSL_DONE) {
        result = weir_buf_reserve(plain, WEIR__TLS_RECORD_MAX);
        if (result == 0)
            result = weir__openssl_session_open(tls->session, &io, plain);
    }
    if (io.out == NULL)
        return result;
    if (result >= 0 && !reads_replies(ctx, weir_buf_readable(io.out)))
        result = WEIR_ETLS;
    weir__tls_send(ctx, io.out);
    return result;
}

static const char *reason_of(const weir__tls *tls, int err)
{
    if (err == -ENOMEM)
        return "out of memory";
    return tls->session->reason != NULL ? tls->session->reason
                                        : "the peer requests replies and does not read them";
}

static void handle_last_result(weir_ctx *ctx, int result)
{
    weir__tls *tls = weir__tls_of(ctx);

    if (result == WEIR__OPENSSL_CLOSED && tls->session->is_blocked)
        weir__tls_fail_and_close(ctx, WEIR_ETLS, "the peer closed TLS in the middle of a message");
    else if (result == WEIR__OPENSSL_CLOSED)
        tls->peer = WEIR__TLS_PEER_CLOSED; /* reported after what came before it */
    else if (result < 0)
        weir__tls_fail_and_close(ctx, result, reason_of(tls, result));
}

/* True if a close waits for close_notify, and plain bytes that nobody requested precede it. */
static bool discards(weir_ctx *ctx)
{
    return weir__tls_of(ctx)->writes.close_deferred && !weir_decoder_has_demand(ctx);
}

/*
 * Plain bytes before an error or close_notify are passed on before these are reported. `decode`
 * returns one message, which is passed on afterwards; so they are passed on here.
 */
static int pass_and_end(weir_ctx *ctx, weir_buf *in, weir_buf *plain, int result)
{
    if (plain != NULL)
        weir_decoder_pass(ctx, weir_buf_msg(plain));
    if (weir__tls_of(ctx)->stage != WEIR__TLS_CLOSED)
        handle_last_result(ctx, result);
    return discard(in);
}

/* Plain bytes are fewer than what there is, including the part of a record that the session holds:
 * so the buffer has room for all of them. */
WEIR__NO_STACK_PROTECTOR static int open_all(weir_ctx *ctx, weir__tls *tls, weir_buf *in,
                                             weir_msg **ret_msg)
{
    size_t room =
        weir_buf_readable(in) + (tls->session->is_between_records ? 0 : WEIR__TLS_RECORD_MAX);
    weir_buf *plain;
    int result = weir_buf_create(room, 0, &plain);

    if (result < 0) {
        weir__tls_fail_and_close(ctx, result, "out of memory");
        return discard(in);
    }
    result = open_records(ctx, tls, in, plain);
    if (weir_buf_readable(plain) == 0 || (tls->stage == WEIR__TLS_CLOSING && discards(ctx))) {
        weir_buf_release(plain);
        plain = NULL;
    }
    if (result != WEIR__OPENSSL_WANT_READ)
        return pass_and_end(ctx, in, plain, result);
    *ret_msg = plain != NULL ? weir_buf_msg(plain) : NULL;
    return 1;
}

static int decode(weir_ctx *ctx, weir_buf *in, weir_msg **ret_msg)
{
    weir__tls *tls = weir__tls_of(ctx);

    if (tls->stage == WEIR__TLS_CLOSED || weir__tls_has_peer_closed(tls))
        return discard(in);
    if (tls->consumed > 0) {
        (void)weir_buf_skip(in, tls->consumed);
        tls->consumed = 0;
        return 1;
    }
    if (tls->stage == WEIR__TLS_WAITING || tls->awaits != WEIR__TLS_AWAITS_NOTHING)
        return buffer_input(ctx, in);
    if (tls->stage == WEIR__TLS_HANDSHAKING)
        return weir__tls_handshake_decode(ctx, in);
    return open_all(ctx, tls, in, ret_msg);
}

/* The handshake, and what a write or a close waits for, continue even if no plain bytes were
 * requested. */
static bool is_urgent(weir_ctx *ctx)
{
    const weir__tls *tls = weir__tls_of(ctx);

    return tls->stage < WEIR__TLS_OPEN || tls->stage == WEIR__TLS_CLOSED ||
           weir__tls_waits_for_bytes(tls);
}

/* Like a message, the peer's close_notify waits until a handler behind or a close wants it. */
static void report_peer_closed(weir_ctx *ctx)
{
    if (weir__tls_of(ctx)->writes.close_deferred || weir_decoder_has_demand(ctx))
        weir__tls_peer_closed(ctx);
}

/* Everything received has been processed; writes or a close may have waited for it. */
static void finish_reading(weir_ctx *ctx, weir__tls *tls)
{
    if (tls->writes.flushed > 0 || weir__tls_is_ending(tls)) {
        weir__tls_seal(ctx, tls);
        weir__tls_continue_closing(ctx);
    }
    weir__tls_flush(ctx, tls);
    if (tls->peer == WEIR__TLS_PEER_CLOSED)
        report_peer_closed(ctx);
}

static bool is_input_held(const weir__tls *tls)
{
    return tls->input >= WEIR__TLS_INPUT_HELD;
}

/* Decrypts buffered records. If the request comes from within that, the outer call finishes. */
static void on_request_read(weir_ctx *ctx)
{
    weir__tls *tls = weir__tls_of(ctx);
    bool is_inside = tls->decoder.demand.is_running;

    weir_decoder_request_read(ctx);
    if (!is_inside)
        finish_reading(ctx, tls);
}

static void on_read_complete(weir_ctx *ctx)
{
    weir__tls *tls = weir__tls_of(ctx);

    weir_decoder_read_complete(ctx);
    finish_reading(ctx, tls);
    weir__tls_request_more(ctx, tls);
}

static void on_input_closed(weir_ctx *ctx);

void weir__tls_resume(weir_ctx *ctx)
{
    weir__tls *tls = weir__tls_of(ctx);

    weir_decoder_resume(ctx);
    finish_reading(ctx, tls);
    if (is_input_held(tls))
        on_input_closed(ctx);
}

/* ---- writing ---- */

static void on_write(weir_ctx *ctx, weir_msg *msg, weir_promise *done)
{
    weir__tls *tls = weir__tls_of(ctx);
    int err = 0;

    if (tls->clear == WEIR__TLS_CLEAR_FIRST) {
        tls->clear = WEIR__TLS_CLEAR_PASSED;
        weir_write(ctx, msg, done);
        return;
    }
    if (tls->stage > WEIR__TLS_OPEN || weir__tls_is_ending(tls))
        err = WEIR_ECLOSED;
    else if (weir_buf_of(msg) == NULL && weir_composite_of(msg) == NULL)
        err = -EINVAL;
    if (err == 0) {
        (void)weir_pending_writes_add(ctx, &tls->writes, msg, done);
        return;
    }
    weir_msg_release(msg);
    weir_ctx_report(ctx, done, err,
                    err == -EINVAL ? "TLS sends buffers and composites only" : NULL);
}

static void on_flush(weir_ctx *ctx)
{
    weir__tls *tls = weir__tls_of(ctx);

    weir_pending_writes_flush(&tls->writes);
    tls->needs_flush = true;
    weir__tls_seal(ctx, tls);
    if (weir__tls_is_ending(tls)) /* it was requested meanwhile */
        weir__tls_continue_closing(ctx);
    if (!tls->is_sealing)
        weir__tls_flush(ctx, tls);
    weir__tls_request_more(ctx, tls);
    if (tls->stage == WEIR__TLS_WAITING && tls->clear == WEIR__TLS_CLEAR_PASSED)
        weir__tls_start_handshake(ctx);
}

/* ---- lifecycle and events ---- */

void weir__tls_start_if_active(weir_ctx *ctx)
{
    const weir__tls *tls = weir__tls_of(ctx);

    if (tls->stage == WEIR__TLS_WAITING && tls->clear == WEIR__TLS_CLEAR_NONE &&
        weir_channel_is_active(weir_ctx_channel(ctx)))
        weir__tls_start_handshake(ctx);
}

static void on_active(weir_ctx *ctx)
{
    weir__tls_start_if_active(ctx);
    weir_fire_active(ctx);
}

/* On another loop. The timer was stopped. */
static void on_registered(weir_ctx *ctx)
{
    const weir__tls *tls = weir__tls_of(ctx);

    if (tls->stage == WEIR__TLS_HANDSHAKING)
        weir__tls_limit_handshake(ctx);
    if (tls->stage != WEIR__TLS_CLOSED)
        weir__tls_limit_close(ctx);
    weir_fire_registered(ctx);
}

/* A promise completes on the loop it was created on, which is being left. */
static void on_unregistered(weir_ctx *ctx)
{
    weir__tls_detach_last_write(weir__tls_of(ctx));
    weir_fire_unregistered(ctx);
}

static void on_inactive(weir_ctx *ctx)
{
    weir__tls *tls = weir__tls_of(ctx);

    weir__tls_peer_closed(ctx);
    if (weir_channel_has_peer_ended(weir_ctx_channel(ctx)))
        weir__tls_input_closed(ctx);
    weir__tls_set_closed(tls);
    weir__tls_report_handshake_lost(ctx);
    weir__tls_fail_writes(ctx, WEIR_ECLOSED, NULL);
    weir_pending_writes_run_deferred(ctx, &tls->writes);
    weir_decoder_inactive(ctx);
}

static bool owes_drained_event(const weir__tls *tls)
{
    return tls->input == WEIR__TLS_INPUT_HELD_DRAINED || tls->input == WEIR__TLS_INPUT_OWES_DRAINED;
}

static void on_removed(weir_ctx *ctx)
{
    const char *detail = weir_channel_is_open(weir_ctx_channel(ctx))
                             ? "the TLS handler was removed"
                             : "the channel was closed during the handshake";
    weir__tls *tls = weir__tls_of(ctx);
    bool owes_closed = is_input_held(tls) && tls->stage != WEIR__TLS_CLOSED;
    bool owes_drained = owes_drained_event(tls) && tls->stage != WEIR__TLS_CLOSED;

    if (owes_drained)
        tls->input = WEIR__TLS_INPUT_REPORTED;
    tls->stage = WEIR__TLS_CLOSED; /* the timer was stopped */
    tls->awaits = WEIR__TLS_AWAITS_NOTHING;
    weir__tls_flush(ctx, tls);
    weir__tls_resume_input(ctx);
    weir__tls_detach_last_write(tls);
    weir__tls_report_handshake(ctx, WEIR_ECLOSED, detail);
    weir__tls_fail_writes(ctx, WEIR_ECLOSED, detail);
    weir_pending_writes_run_deferred(ctx, &tls->writes);
    if (owes_closed)
        weir_fire_event(ctx, weir_msg_retain(weir_event_input_closed()));
    if (owes_drained)
        weir_fire_event(ctx, weir_msg_retain(weir_event_input_drained()));
}

/* A reset after our close_notify is harmless. */
static void on_error(weir_ctx *ctx, int err, const char *detail)
{
    weir__tls *tls = weir__tls_of(ctx);

    tls->last_error = err;
    if (tls->stage != WEIR__TLS_CLOSING || (err != -ECONNRESET && err != -EPIPE))
        weir_fire_error(ctx, err, detail);
}

/* Waits until what was received before it has been processed. */
static void on_input_closed(weir_ctx *ctx)
{
    weir__tls *tls = weir__tls_of(ctx);

    if (tls->stage == WEIR__TLS_HANDSHAKING && tls->awaits != WEIR__TLS_AWAITS_NOTHING) {
        if (tls->input == WEIR__TLS_INPUT_OPEN)
            tls->input = WEIR__TLS_INPUT_HELD;
        return;
    }
    tls->input = tls->input == WEIR__TLS_INPUT_HELD_DRAINED ? WEIR__TLS_INPUT_OWES_DRAINED
                                                            : WEIR__TLS_INPUT_OPEN;
    if (weir_channel_has_peer_ended(weir_ctx_channel(ctx)))
        weir__tls_input_closed(ctx);
    if (tls->input != WEIR__TLS_INPUT_REPORTED)
        weir_decoder_event(ctx, weir_msg_retain(weir_event_input_closed()));
    if (tls->input != WEIR__TLS_INPUT_OWES_DRAINED)
        return;
    tls->input = WEIR__TLS_INPUT_OPEN;
    weir_decoder_event(ctx, weir_msg_retain(weir_event_input_drained()));
}

static bool is_end_of_input(const weir_msg *event)
{
    return event == weir_event_input_closed() || event == weir_event_input_drained();
}

static void on_event(weir_ctx *ctx, weir_msg *event)
{
    weir__tls *tls = weir__tls_of(ctx);
    weir_tls_sni_request *request = weir__tls_sni_request_of(event);

    if (request != NULL && request->ctx == ctx) {
        weir__tls_sni_decided(ctx, request);
        return;
    }
    if (tls->input == WEIR__TLS_INPUT_REPORTED && is_end_of_input(event)) {
        weir_msg_release(event); /* already reported */
    } else if (is_input_held(tls) && event == weir_event_input_drained()) {
        weir_msg_release(event);
        tls->input = WEIR__TLS_INPUT_HELD_DRAINED;
    } else if (event != weir_event_input_closed()) {
        weir_decoder_event(ctx, event);
    } else {
        weir_msg_release(event);
        on_input_closed(ctx);
    }
}

/* ---- creation ---- */

struct setup {
    weir_channel *channel;
    weir_tls_context *context;
    const weir_tls_options *options;
    bool *ret_has_reason; /* of the failure */
};

static int reject_name(const char *name)
{
    if (name == NULL)
        weir__tls_set_reason("server_name is required for a client that verifies");
    else
        (void)weir__tls_fail(-EINVAL, "server_name: \"%s\" is neither a name nor an address", name);
    return weir__tls_log_reason(false, -EINVAL);
}

static int check_protocols(const weir_tls_context *context, const weir__openssl_context *current,
                           const char *protocols)
{
    char reason[WEIR__TLS_REASON_SIZE];
    int err = weir__openssl_context_check_protocols(current, protocols, reason);

    if (err == 0)
        return 0;
    weir__tls_set_reason(reason);
    return weir__tls_log_reason(weir__tls_context_is_server(context), err);
}

static int create_session(const struct setup *setup, weir__openssl_session **ret_session)
{
    weir_tls_context *context = setup->context;
    const char *server_name = setup->options->server_name;
    bool is_server = weir__tls_context_is_server(context);
    weir__openssl_session_options session_options = {
        .server_name = is_server ? NULL : server_name,
        .cache_key = is_server ? NULL : server_name,
    };
    weir__openssl_context *current =
        weir__tls_context_snapshot(context, &session_options.pause_at_hello);
    weir_channel_options channel_options;
    int err;

    weir_channel_get_options(setup->channel, &channel_options);
    session_options.protocols = channel_options.alpn;
    err = check_protocols(context, current, session_options.protocols);
    if (err == 0 && !is_server && server_name == NULL &&
        weir__openssl_context_verifies_names(current))
        err = -EINVAL;
    if (err == 0)
        err = weir__openssl_session_create(current, &session_options, ret_session);
    weir__openssl_context_release(current);
    *setup->ret_has_reason = err == -EINVAL || err == -EPROTONOSUPPORT;
    return err == -EINVAL ? reject_name(server_name) : err;
}

static int init(void *state, const void *setup_)
{
    const struct setup *setup = setup_;
    const weir_tls_options *options = setup->options;
    weir__tls *tls = state;
    int err = create_session(setup, &tls->session);

    if (err < 0)
        return err;
    tls->context = weir_tls_context_retain(setup->context);
    tls->offload = options->offload != NULL ? weir_group_retain(options->offload) : NULL;
    tls->handshake = options->handshake != NULL ? weir_promise_retain(options->handshake) : NULL;
    tls->handshake_timeout_ns = options->handshake_timeout_ns;
    tls->close_timeout_ns = options->close_timeout_ns;
    tls->peer_close_timeout_ns = options->peer_close_timeout_ns;
    tls->clear = options->start_tls ? WEIR__TLS_CLEAR_FIRST : WEIR__TLS_CLEAR_NONE;
    return 0;
}

static void deinit(void *state)
{
    weir__tls *tls = state;

    if (tls->session != NULL)
        weir__openssl_session_release(tls->session);
    if (tls->handshake != NULL) /* it was never added */
        (void)weir_promise_fail(tls->handshake, WEIR_ECLOSED, NULL);
    weir_promise_release(tls->handshake);
    if (tls->request != NULL)
        weir_msg_release(&tls->request->msg);
    weir_group_release(tls->offload);
    weir_tls_context_release(tls->context);
}

const weir_decoder weir__tls_handler = {
    .handler =
        {
            .name = "tls",
            .stays_on_loop = true,
            .state_size = sizeof(weir__tls),
            .init = init,
            .deinit = deinit,
            .added = weir__tls_start_if_active,
            .removed = weir_decoder_removed,
            .registered = on_registered,
            .unregistered = on_unregistered,
            .active = on_active,
            .inactive = on_inactive,
            .read = weir_decoder_read,
            .read_complete = on_read_complete,
            .event = on_event,
            .error = on_error,
            .disconnect = weir__tls_close,
            .close = weir__tls_close,
            .request_read = on_request_read,
            .write = on_write,
            .flush = on_flush,
            .shutdown_output = weir__tls_shutdown_output,
            .buffers_reads = true,
        },
    .decode = decode,
    .removed = on_removed,
    .is_urgent = is_urgent,
};

static int check(const weir_tls_context *context, const weir_tls_options *options)
{
    if (context == NULL)
        return weir__options_reject("tls", NULL, "no context");
    return weir__options_check("tls", NULL,
                               WEIR__OPTION_FROM(options, handshake_timeout_ns, WEIR_OFF),
                               WEIR__OPTION_FROM(options, close_timeout_ns, WEIR_OFF),
                               WEIR__OPTION_FROM(options, peer_close_timeout_ns, WEIR_OFF));
}

int weir_tls_add_with(weir_pipeline *pipeline, weir_tls_context *context,
                      const weir_tls_options *options)
{
    weir_tls_options own;
    bool has_reason = false;
    int err = weir__options_read(&own, sizeof(own), options);

    if (err < 0)
        return weir__tls_fail_add(err); /* of an unknown size */
    err = check(context, &own);
    if (own.handshake_timeout_ns == 0)
        own.handshake_timeout_ns = HANDSHAKE_TIMEOUT_NS;
    if (own.close_timeout_ns == 0)
        own.close_timeout_ns = CLOSE_TIMEOUT_NS;
    if (err == 0)
        err = weir_pipeline_add(
            pipeline, own.place, &weir__tls_handler.handler,
            &(const struct setup){weir_pipeline_channel(pipeline), context, &own, &has_reason});
    if (err < 0 && own.handshake != NULL)
        (void)weir_promise_fail(own.handshake, err, NULL);
    return err < 0 && !has_reason ? weir__tls_fail_add(err) : err;
}

int weir_tls_add(weir_pipeline *pipeline, weir_tls_context *context)
{
    return weir_tls_add_with(pipeline, context, NULL);
}

int weir_tls_add_client(weir_pipeline *pipeline, weir_tls_context *context, const char *server_name)
{
    return weir_tls_add_with(pipeline, context, WEIR_TLS_OPTIONS(.server_name = server_name));
}
