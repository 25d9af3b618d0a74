/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The TLS handler: a decoder of records in one direction, a queue of writes in the other.
 *
 *      from             to        by                  when
 *      -                WAITING   init                its session is made
 *      WAITING          SHAKING   weir__tls_begin     the channel is active, or a listener of the
 *                                                     connect ends the output before it has
 *                                                     heard that; of a start-TLS, its first
 *                                                     message is on its way
 *      SHAKING          OPEN      succeed             the handshake is over
 *      OPEN             SHUT      shut_output         a half closure was asked for, and all writes
 *                                                     are sealed
 *      OPEN             ENDING    end_output          a close was asked for, by us or by the peer's
 *                                                     end of TLS, and all writes are sealed
 *      SHUT             ENDING    close_shut          a close was asked for, likewise
 *      WAITING SHAKING  OVER      close_early         a close, and nothing is to be sent
 *      any              OVER      weir__tls_give_up   the session fails; no memory, no time left
 *      any              OVER      on_inactive         the channel has ended
 *      any              OVER      on_removed          the handler has gone
 *
 * What holds in them:
 *
 *      WAITING   Bytes that come are kept. Writes are held, but for the first of a start-TLS.
 *      SHAKING   Bytes go to the session. Writes are held, and a close waits for them; a half
 *                closure waits in any case, since the peer may have something to say. The session
 *                may be elsewhere: then bytes are kept, and no more are read. Or it waits for a
 *                choice (`awaits`): then WEIR__TLS_KEPT_MAX are kept, and more are an error.
 *      OPEN      Bytes go to the session and come out plain; those behind have heard of the
 *                handshake before the first of them. Writes are held until they are flushed, and
 *                while the peer is amid a message of the handshake (`is_blocked`): a close, too,
 *                and a half closure.
 *      SHUT      The end of TLS is the last that we have written, and the transport's output is
 *                shut behind it. Bytes still come out plain, and writes fail.
 *      ENDING    As SHUT, but that a close waits for the peer's end, if it is to, or has been
 *                passed on.
 *      OVER      Bytes are dropped, writes fail, a close passes by.
 *
 * Invariants:
 *   - How the handshake went is told once, whatever happens: weir__tls_tell.
 *   - Between the making of a record and its weir_write nothing else runs: records are written in
 *     the order in which they were made.
 *   - What is fired may do anything to us. After it the stage is looked at again; the memory of the
 *     state is there until the next turn, also when we were removed.
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

/* ---- what many do ---- */

void weir__tls_send(weir_ctx *ctx, weir_buf *records)
{
    if (records == NULL)
        return;
    if (weir__tls_of(ctx)->stage == WEIR__TLS_SHUT) { /* nothing is sent behind our end */
        weir_buf_release(records);
        return;
    }
    weir__tls_of(ctx)->needs_flush = true;
    weir_write_pending(ctx, weir_buf_msg(records), NULL,
                       0); /* not refused for the cap, as others */
}

void weir__tls_flush(weir_ctx *ctx)
{
    weir__tls *tls = weir__tls_of(ctx);

    if (!tls->needs_flush)
        return;
    tls->needs_flush = false;
    weir_flush(ctx);
}

void weir__tls_become_over(weir__tls *tls)
{
    tls->stage = WEIR__TLS_OVER;
    (void)weir_timer_stop(&tls->timer);
}

void weir__tls_give_up(weir_ctx *ctx, int err, const char *detail)
{
    weir__tls *tls = weir__tls_of(ctx);

    if (tls->stage == WEIR__TLS_OVER)
        return;
    weir__tls_become_over(tls);
    weir__tls_flush(ctx); /* the alert */
    weir__tls_fail_writes(ctx, err, detail);
    weir__tls_tell(ctx, err, detail);
    weir_fire_error(ctx, err, detail);
    if (tls->writes.close_deferred)
        weir_pending_writes_run_deferred(ctx, &tls->writes);
    else
        weir_close(ctx, NULL);
}

/* ---- reading ---- */

static int drop(weir_buf *in)
{
    (void)weir_buf_skip(in, weir_buf_readable(in));
    return 1;
}

/*
 * A client may go on as soon as it has said its own part, while the last step is still being done
 * elsewhere. It does no wrong, and waits, as any peer of who does not read.
 */
static bool hold_input(weir_ctx *ctx)
{
    weir__tls *tls = weir__tls_of(ctx);

    if (tls->awaits != WEIR__TLS_JOB)
        return false; /* it may still be, from a job that is over, and is about to be let go */
    if (!tls->is_input_held)
        tls->is_input_held = weir_ctx_pause_input(ctx) == 0;
    return tls->is_input_held;
}

void weir__tls_release_input(weir_ctx *ctx)
{
    weir__tls *tls = weir__tls_of(ctx);

    if (!tls->is_input_held || tls->awaits == WEIR__TLS_JOB)
        return;
    tls->is_input_held = false;
    weir_ctx_resume_input(ctx);
}

/* Nothing can be done with bytes now: they are looked at again when something can, or when there
 * are too many. */
static int keep(weir_ctx *ctx, weir_buf *in)
{
    if (hold_input(ctx))
        return weir_decoder_need(ctx, SIZE_MAX);
    if (weir_buf_readable(in) <= WEIR__TLS_KEPT_MAX)
        return weir_decoder_need(ctx, WEIR__TLS_KEPT_MAX + 1);
    weir__tls_give_up(ctx, WEIR_ETOOLONG,
                      "the peer goes on sending in the middle of the handshake");
    return drop(in);
}

/* All of it fits, with what the session has of a record already: plain bytes are fewer. */
static int create_plain(weir__tls *tls, const weir_buf *in, weir_buf **ret_plain)
{
    size_t room = weir_buf_readable(in);

    if (tls->session->engine->is_amid_record(tls->session))
        room += WEIR__TLS_RECORD_MAX;
    return weir_buf_create(room, 0, ret_plain);
}

/*
 * Whether the peer has taken the answers that it has got: to new keys, say. It may demand as many
 * as it likes, but if it takes none they would pile up, whatever the marks are. When nothing waits
 * to be sent it has all of them.
 */
static bool takes_answers(weir_ctx *ctx, size_t length)
{
    weir__tls *tls = weir__tls_of(ctx);

    if (weir_channel_pending_bytes(weir_ctx_channel(ctx)) == 0)
        tls->answered = 0;
    else if (tls->answered > WEIR__TLS_ANSWERED_MAX)
        return false;
    tls->answered += length;
    return true;
}

/* Opens what there is: MORE, ENDED or an error; what comes out is in `plain`. */
WEIR__NO_STACK_PROTECTOR static int open_records(weir_ctx *ctx, weir_buf *in, weir_buf *plain)
{
    weir__tls *tls = weir__tls_of(ctx);
    weir__tls_io io = {.in = in};
    int result;

    do {
        result = weir_buf_writable(plain) > 0 ? 0 : weir_buf_reserve(plain, WEIR__TLS_RECORD_MAX);
        if (result == 0)
            result = tls->session->engine->open(tls->session, &io, plain);
    } while (result == WEIR__TLS_DONE);
    if (result >= 0 && io.out != NULL && !takes_answers(ctx, weir_buf_readable(io.out)))
        result = WEIR_ETLS;
    weir__tls_send(ctx, io.out);
    return result;
}

static const char *why(const weir__tls *tls, int err)
{
    if (err == -ENOMEM)
        return "there is no memory";
    return tls->session->reason != NULL ? tls->session->reason
                                        : "the peer demands answers and does not take them";
}

static void end_of_records(weir_ctx *ctx, int result)
{
    weir__tls *tls = weir__tls_of(ctx);

    if (result == WEIR__TLS_ENDED && tls->session->is_blocked)
        weir__tls_give_up(ctx, WEIR_ETLS, "the peer has ended TLS amid a message of its own");
    else if (result == WEIR__TLS_ENDED)
        tls->has_peer_ended = true; /* told when what came before has been dealt with */
    else if (result < 0)
        weir__tls_give_up(ctx, result, why(tls, result));
}

/* A close waits for the peer's end: plain bytes that nobody has requested are in its way. */
static bool discards(weir_ctx *ctx)
{
    return weir__tls_of(ctx)->writes.close_deferred && !weir_decoder_has_demand(ctx);
}

/*
 * What came before an error, or before the end, goes on before they are told: decode passes on one
 * message, and that when it has returned. So it is passed on here.
 */
static int open_all(weir_ctx *ctx, weir_buf *in, weir_msg **ret_msg)
{
    weir__tls *tls = weir__tls_of(ctx);
    weir_buf *plain;
    int result = create_plain(tls, in, &plain);

    if (result < 0) {
        weir__tls_give_up(ctx, result, "there is no memory");
        return drop(in);
    }
    result = open_records(ctx, in, plain);
    if (weir_buf_readable(plain) == 0 || (tls->stage == WEIR__TLS_ENDING && discards(ctx))) {
        weir_buf_release(plain);
    } else if (result == WEIR__TLS_MORE) {
        *ret_msg = weir_buf_msg(plain);
    } else {
        weir_decoder_pass(ctx, weir_buf_msg(plain));
    }
    if (result != WEIR__TLS_MORE && tls->stage != WEIR__TLS_OVER)
        end_of_records(ctx, result);
    return result == WEIR__TLS_MORE ? 1 : drop(in);
}

WEIR__NO_STACK_PROTECTOR static int decode(weir_ctx *ctx, weir_buf *in, weir_msg **ret_msg)
{
    weir__tls *tls = weir__tls_of(ctx);

    if (tls->stage == WEIR__TLS_OVER || tls->has_peer_ended)
        return drop(in);
    if (tls->taken > 0) {
        (void)weir_buf_skip(in, tls->taken);
        tls->taken = 0;
        return 1;
    }
    if (tls->stage == WEIR__TLS_WAITING || tls->awaits != WEIR__TLS_NOTHING)
        return keep(ctx, in);
    if (tls->stage == WEIR__TLS_SHAKING)
        return weir__tls_shake(ctx, in);
    return open_all(ctx, in, ret_msg);
}

/* The handshake, and all that a write or a close waits for, goes on whether or not plain bytes were
 * requested. */
static bool is_urgent(weir_ctx *ctx)
{
    const weir__tls *tls = weir__tls_of(ctx);

    return tls->stage < WEIR__TLS_OPEN || tls->stage == WEIR__TLS_OVER ||
           weir__tls_waits_for_bytes(tls);
}

/* The peer's end waits, as a message does, until it is wanted by those behind or by a close. */
static void tell_peer_ended(weir_ctx *ctx)
{
    if (weir__tls_of(ctx)->writes.close_deferred || weir_decoder_has_demand(ctx))
        weir__tls_peer_ended(ctx);
}

/* What has come has been dealt with; and writes may have waited for it, or an end of ours. */
static void finish_reading(weir_ctx *ctx)
{
    const weir__tls *tls = weir__tls_of(ctx);

    if (tls->writes.flushed > 0 || weir_pending_writes_is_ending(&tls->writes)) {
        weir__tls_seal(ctx);
        weir__tls_go_on_closing(ctx);
    }
    weir__tls_flush(ctx);
    if (tls->has_peer_ended)
        tell_peer_ended(ctx);
}

/* Records that were kept are opened; if the request comes from inside that, it is not the end. */
static void on_request_read(weir_ctx *ctx)
{
    bool is_inside = weir__tls_of(ctx)->decoder.demand.is_running;

    weir_decoder_request_read(ctx);
    if (!is_inside)
        finish_reading(ctx);
}

static void on_read_complete(weir_ctx *ctx)
{
    weir_decoder_read_complete(ctx);
    finish_reading(ctx);
    weir__tls_ask_for_more(ctx);
}

static void on_input_closed(weir_ctx *ctx);

void weir__tls_resume(weir_ctx *ctx)
{
    weir_decoder_resume(ctx);
    finish_reading(ctx);
    if (weir__tls_of(ctx)->has_input_closed)
        on_input_closed(ctx);
}

/* ---- writing ---- */

static void on_write(weir_ctx *ctx, weir_msg *msg, weir_promise *done)
{
    weir__tls *tls = weir__tls_of(ctx);
    int err = 0;

    if (tls->is_start_tls) {
        tls->is_start_tls = false;
        tls->has_passed_first = true;
        weir_write(ctx, msg, done);
        return;
    }
    if (tls->stage > WEIR__TLS_OPEN || weir_pending_writes_is_ending(&tls->writes))
        err = WEIR_ECLOSED;
    else if (weir_buf_of(msg) == NULL && weir_composite_of(msg) == NULL)
        err = -EINVAL;
    if (err == 0) {
        (void)weir_pending_writes_add(ctx, &tls->writes, msg, done);
        return;
    }
    weir_msg_release(msg);
    weir_ctx_report(ctx, done, err, err == -EINVAL ? "only bytes can be sent by TLS" : NULL);
}

static void on_flush(weir_ctx *ctx)
{
    weir__tls *tls = weir__tls_of(ctx);

    weir_pending_writes_flush(&tls->writes);
    tls->needs_flush = true;
    weir__tls_seal(ctx);
    weir__tls_go_on_closing(ctx); /* if that was asked for meanwhile */
    if (!tls->is_sealing)
        weir__tls_flush(ctx);
    weir__tls_ask_for_more(ctx);
    if (tls->stage == WEIR__TLS_WAITING && tls->has_passed_first)
        weir__tls_begin(ctx);
}

/* ---- coming and going ---- */

void weir__tls_begin_if_active(weir_ctx *ctx)
{
    const weir__tls *tls = weir__tls_of(ctx);

    if (tls->stage == WEIR__TLS_WAITING && !tls->is_start_tls && !tls->has_passed_first &&
        weir_channel_is_active(weir_ctx_channel(ctx)))
        weir__tls_begin(ctx);
}

static void on_active(weir_ctx *ctx)
{
    weir__tls_begin_if_active(ctx);
    weir_fire_active(ctx);
}

/* On another loop: the timer has been stopped. */
static void on_registered(weir_ctx *ctx)
{
    const weir__tls *tls = weir__tls_of(ctx);

    if (tls->stage == WEIR__TLS_SHAKING)
        weir__tls_limit_handshake(ctx);
    if (tls->stage != WEIR__TLS_OVER)
        weir__tls_limit_close(ctx);
    weir_fire_registered(ctx);
}

/* A promise completes where it was made: on the loop that is left. */
static void on_unregistered(weir_ctx *ctx)
{
    weir__tls_forget_last_write(weir__tls_of(ctx));
    weir_fire_unregistered(ctx);
}

static void on_inactive(weir_ctx *ctx)
{
    weir__tls *tls = weir__tls_of(ctx);

    if (tls->has_peer_ended)
        weir__tls_peer_ended(ctx);
    if (weir_channel_has_peer_ended(weir_ctx_channel(ctx)))
        weir__tls_input_ended(ctx);
    weir__tls_become_over(tls);
    weir__tls_tell_ended(ctx);
    weir__tls_fail_writes(ctx, WEIR_ECLOSED, NULL);
    weir_pending_writes_run_deferred(ctx, &tls->writes);
    weir_decoder_inactive(ctx);
}

static void on_removed(weir_ctx *ctx)
{
    const char *words = weir_channel_is_open(weir_ctx_channel(ctx))
                            ? "the TLS handler was removed"
                            : "the channel was closed before the handshake was over";
    weir__tls *tls = weir__tls_of(ctx);
    bool owes_end = tls->has_input_closed && tls->stage != WEIR__TLS_OVER;

    tls->stage = WEIR__TLS_OVER; /* the timers have been stopped */
    tls->awaits = WEIR__TLS_NOTHING;
    weir__tls_flush(ctx);
    weir__tls_release_input(ctx);
    weir__tls_forget_last_write(tls);
    weir__tls_tell(ctx, WEIR_ECLOSED, words);
    weir__tls_fail_writes(ctx, WEIR_ECLOSED, words);
    weir_pending_writes_run_deferred(ctx, &tls->writes);
    if (owes_end)
        weir_fire_event(ctx, weir_msg_retain(weir_event_input_closed()));
}

/* A reset by a peer that has heard our end of TLS does no harm. */
static void on_error(weir_ctx *ctx, int err, const char *detail)
{
    weir__tls *tls = weir__tls_of(ctx);

    tls->lost = err;
    if (tls->stage != WEIR__TLS_ENDING || (err != -ECONNRESET && err != -EPIPE))
        weir_fire_error(ctx, err, detail);
}

/* The end of the input waits for what came before it. */
static void on_input_closed(weir_ctx *ctx)
{
    weir__tls *tls = weir__tls_of(ctx);

    if (tls->stage == WEIR__TLS_SHAKING && tls->awaits != WEIR__TLS_NOTHING) {
        tls->has_input_closed = true;
        return;
    }
    tls->has_input_closed = false;
    if (weir_channel_has_peer_ended(weir_ctx_channel(ctx)))
        weir__tls_input_ended(ctx);
    if (!tls->is_input_closed)
        weir_decoder_event(ctx, weir_msg_retain(weir_event_input_closed()));
}

static bool is_end_of_input(const weir_msg *event)
{
    return event == weir_event_input_closed() || event == weir_event_input_drained();
}

static void on_event(weir_ctx *ctx, weir_msg *event)
{
    const weir__tls *tls = weir__tls_of(ctx);
    weir_tls_choice *choice = weir__tls_choice_of(event);

    if (choice != NULL && choice->ctx == ctx) {
        weir__tls_decided(ctx, choice);
        return;
    }
    if (tls->is_input_closed && is_end_of_input(event)) {
        weir_msg_release(event); /* they know it */
    } else if (event != weir_event_input_closed()) {
        weir_decoder_event(ctx, event);
    } else {
        weir_msg_release(event);
        on_input_closed(ctx);
    }
}

/* ---- making one ---- */

struct setup {
    weir_tls_context *context;
    const weir_tls_options *options;
    bool *ret_is_told; /* there are words for why it cannot be */
};

static int refuse_name(const char *name)
{
    if (name == NULL)
        weir__tls_set_reason("a client that verifies must say whom it wants to reach: server_name");
    else
        (void)weir__tls_fail(-EINVAL, "server_name: \"%s\" is neither a name nor an address", name);
    return weir__tls_complain(false, -EINVAL);
}

static int create_session(const struct setup *setup, weir__tls_session **ret_session)
{
    weir_tls_context *context = setup->context;
    const char *server_name = setup->options->server_name;
    const weir__tls_engine *engine = &weir__tls_openssl;
    bool is_server = weir__tls_context_is_server(context);
    weir__tls_peer peer = {
        .server_name = is_server ? NULL : server_name,
        .cache_key = is_server ? NULL : server_name,
    };
    weir__tls_settings *settings = weir__tls_context_begin(context, &peer.asks);
    int err = -EINVAL;

    if (is_server || server_name != NULL || !engine->settings_verify_names(settings))
        err = engine->session_create(settings, &peer, ret_session);
    engine->settings_release(settings);
    *setup->ret_is_told = err == -EINVAL;
    return err == -EINVAL ? refuse_name(server_name) : err;
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
    tls->is_start_tls = options->start_tls;
    return 0;
}

static void deinit(void *state)
{
    weir__tls *tls = state;

    if (tls->session != NULL)
        tls->session->engine->session_release(tls->session);
    if (tls->handshake != NULL) /* it was never added */
        (void)weir_promise_fail(tls->handshake, WEIR_ECLOSED, NULL);
    weir_promise_release(tls->handshake);
    if (tls->choice != NULL)
        weir_msg_release(&tls->choice->msg);
    weir_group_release(tls->offload);
    weir_tls_context_release(tls->context);
}

const weir_decoder weir__tls_handler = {
    .handler =
        {
            .name = "tls",
            .state_size = sizeof(weir__tls),
            .init = init,
            .deinit = deinit,
            .added = weir__tls_begin_if_active,
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
        return weir__options_reject("tls", NULL, "there is no context");
    return weir__options_check("tls", NULL,
                               WEIR__OPTION_FROM(options, handshake_timeout_ns, WEIR_OFF),
                               WEIR__OPTION_FROM(options, close_timeout_ns, WEIR_OFF),
                               WEIR__OPTION_FROM(options, peer_close_timeout_ns, WEIR_OFF));
}

int weir_tls_add_with(weir_pipeline *pipeline, weir_tls_context *context,
                      const weir_tls_options *options)
{
    weir_tls_options own;
    bool is_told = false;
    int err = weir__options_read(&own, sizeof(own), options);

    if (err < 0)
        return weir__tls_not_added(err); /* nobody knows what they are */
    err = check(context, &own);
    if (own.handshake_timeout_ns == 0)
        own.handshake_timeout_ns = HANDSHAKE_TIMEOUT_NS;
    if (own.close_timeout_ns == 0)
        own.close_timeout_ns = CLOSE_TIMEOUT_NS;
    if (err == 0)
        err = weir_pipeline_add(pipeline, own.place, &weir__tls_handler.handler,
                                &(const struct setup){context, &own, &is_told});
    if (err < 0 && own.handshake != NULL)
        (void)weir_promise_fail(own.handshake, err, NULL);
    return err < 0 && !is_told ? weir__tls_not_added(err) : err;
}

int weir_tls_add(weir_pipeline *pipeline, weir_tls_context *context)
{
    return weir_tls_add_with(pipeline, context, NULL);
}
