/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Both ends of TLS, between two embedded channels.
 */
#include <errno.h>
#include <string.h>

#include <weir/buf.h>
#include <weir/error.h>
#include <weir/flow_control.h>
#include <weir/tls.h>

#include "support/executor/log_capture.h"
#include "support/tls/tls_pair.h"
#include "tls/openssl/internal.h"
#include "tls/tls.h"

static void close_channel(struct tls_side *side, const char *name)
{
    weir_promise *promise = name != NULL ? tls_side_promise(side, name) : NULL;

    weir_channel_close(side->channel, promise);
    weir_promise_release(promise);
    weir_embedded_run(side->embedded);
}

/* The handshake is complete, and its events are cleared. */
static void open_pair(struct tls_pair *pair, const struct tls_pair_options *options)
{
    tls_pair_open(pair, options);
    assert_events(&pair->client.events, "handshake(ok)");
    assert_events(&pair->server.events, "handshake(ok)");
}

/* What was sent is lost on its way. */
static void lose(struct tls_side *from)
{
    weir_msg *msg;

    while ((msg = weir_embedded_read_outbound(from->embedded)) != NULL)
        weir_msg_release(msg);
}

/* ---- our own ---- */

TEST(tls_closing, sends_all_that_was_written_before)
{
    struct tls_pair pair;

    open_pair(&pair, NULL);
    tls_side_write(&pair.client, tls_pair_bytes(1000), "a");
    weir_channel_flush(pair.client.channel);
    tls_side_write(&pair.client, tls_pair_bytes(2000), "b"); /* not flushed */
    close_channel(&pair.client, "close");
    tls_pair_run(&pair);
    assert_events(&pair.client.events, "a=ok b=ok close=ok inactive");
    assert_events(&pair.server.events, "read(1000) read(2000) ended inactive");
    tls_pair_close(&pair);
}

TEST(tls_closing, takes_no_writes_afterwards)
{
    struct tls_pair pair;

    open_pair(&pair, &(const struct tls_pair_options){
                         .client_channel = WEIR_EMBEDDED_OPTIONS(.peer_stays = true)});
    close_channel(&pair.client, NULL);
    tls_side_write(&pair.client, tls_pair_bytes(1), "w");
    assert_events(&pair.client.events, "w=WEIR_ECLOSED");
    tls_pair_close(&pair);
}

TEST(tls_closing, waits_for_the_handshake_if_something_was_written)
{
    struct tls_pair pair;

    tls_pair_prepare(&pair, NULL);
    assert_int_equal(weir_embedded_register(pair.server.embedded), 0);
    assert_int_equal(weir_embedded_register(pair.client.embedded), 0);
    tls_side_write(&pair.client, tls_pair_bytes(200), "w");
    close_channel(&pair.client, "close");
    tls_side_write(&pair.client, tls_pair_bytes(200), "late");
    close_channel(&pair.client, "again");
    assert_events(&pair.client.events, "late=WEIR_ECLOSED");
    tls_pair_run(&pair);
    assert_int_equal(event_log_count(&pair.client.events, "handshake(ok)"), 1);
    assert_int_equal(event_log_count(&pair.client.events, "w=ok"), 1);
    assert_int_equal(event_log_count(&pair.client.events, "close=ok"), 1);
    assert_int_equal(event_log_count(&pair.client.events, "again=ok"), 1);
    assert_events(&pair.server.events, "handshake(ok) read(200) ended inactive");
    tls_pair_close(&pair);
}

/* A client has something to say, and its server has not begun. */
static void speak_too_early(struct tls_pair *pair, const weir_tls_options *client)
{
    tls_pair_prepare(pair, &(const struct tls_pair_options){.client = client});
    assert_int_equal(weir_embedded_register(pair->client.embedded), 0);
    tls_side_write(&pair->client, tls_pair_bytes(200), "w");
}

TEST(tls_closing, waits_no_longer_than_the_handshake_may)
{
    struct tls_pair pair;

    speak_too_early(&pair, NULL);
    close_channel(&pair.client, "close");
    tls_pair_advance(&pair, weir_seconds(10));
    assert_events(&pair.client.events,
                  "w=ETIMEDOUT handshake(ETIMEDOUT) error(ETIMEDOUT) close=ok inactive");
    tls_pair_close(&pair);
}

/* A handshake that may last for ever: a close may not. */
TEST(tls_closing, waits_for_a_handshake_without_limit_only_as_long_as_it_may_itself)
{
    struct tls_pair pair;

    speak_too_early(&pair,
                    WEIR_TLS_OPTIONS(.server_name = "localhost", .handshake_timeout_ns = WEIR_OFF));
    tls_pair_advance(&pair, weir_seconds(3600));
    close_channel(&pair.client, "close");
    tls_pair_advance(&pair, weir_seconds(3) - 1);
    assert_events(&pair.client.events, "");
    tls_pair_advance(&pair, 1);
    assert_events(&pair.client.events,
                  "w=ETIMEDOUT handshake(ETIMEDOUT) error(ETIMEDOUT) close=ok inactive");
    assert_string_equal(pair.client.detail, "close timeout: the handshake did not complete");
    tls_pair_close(&pair);
}

/* What it has waited for before it left its loop is forgotten. */
TEST(tls_closing, waits_for_a_handshake_no_longer_on_another_loop)
{
    struct tls_pair pair;

    speak_too_early(&pair,
                    WEIR_TLS_OPTIONS(.server_name = "localhost", .handshake_timeout_ns = WEIR_OFF));
    close_channel(&pair.client, "close");
    tls_pair_advance(&pair, weir_seconds(2));
    weir_channel_deregister(pair.client.channel, NULL);
    weir_embedded_run(pair.client.embedded);
    assert_int_equal(weir_embedded_register(pair.client.embedded), 0);
    tls_pair_advance(&pair, weir_seconds(3) - 1);
    assert_events(&pair.client.events, "");
    tls_pair_advance(&pair, 1);
    assert_events(&pair.client.events,
                  "w=ETIMEDOUT handshake(ETIMEDOUT) error(ETIMEDOUT) close=ok inactive");
    tls_pair_close(&pair);
}

TEST(tls_closing, waits_for_a_handshake_for_ever_if_neither_has_a_limit)
{
    struct tls_pair pair;

    speak_too_early(&pair,
                    WEIR_TLS_OPTIONS(.server_name = "localhost", .handshake_timeout_ns = WEIR_OFF,
                                     .close_timeout_ns = WEIR_OFF));
    close_channel(&pair.client, "close");
    tls_pair_advance(&pair, weir_seconds(3600));
    assert_events(&pair.client.events, "");
    assert_int_equal(weir_embedded_register(pair.server.embedded), 0);
    tls_pair_run(&pair);
    assert_events(&pair.client.events, "handshake(ok) w=ok close=ok inactive");
    assert_events(&pair.server.events, "handshake(ok) read(200) ended inactive");
    tls_pair_close(&pair);
}

TEST(tls_closing, does_not_wait_for_a_handshake_that_nobody_needs)
{
    struct tls_pair pair;

    tls_pair_prepare(&pair, NULL);
    assert_int_equal(weir_embedded_register(pair.server.embedded), 0);
    assert_int_equal(weir_embedded_register(pair.client.embedded), 0);
    close_channel(&pair.client, "close");
    assert_events(&pair.client.events, "handshake(WEIR_ECLOSED) close=ok inactive");
    tls_pair_run(&pair);
    assert_events(&pair.server.events, "handshake(WEIR_ECUTOFF) error(WEIR_ECUTOFF) inactive");
    tls_pair_close(&pair);
}

TEST(tls_closing, may_be_by_disconnect)
{
    struct tls_pair pair;

    open_pair(&pair, NULL);
    tls_side_write(&pair.client, tls_pair_bytes(200), "w");
    weir_channel_disconnect(pair.client.channel, NULL);
    tls_pair_run(&pair);
    assert_events(&pair.client.events, "w=ok inactive");
    assert_events(&pair.server.events, "read(200) ended inactive");
    tls_pair_close(&pair);
}

TEST(tls_closing, of_a_channel_that_never_was_active_fails_what_was_written)
{
    struct tls_pair pair;

    tls_pair_prepare(&pair, &(const struct tls_pair_options){
                                .client_channel = WEIR_EMBEDDED_OPTIONS(.connect_later = true)});
    assert_int_equal(weir_embedded_register(pair.client.embedded), 0);
    tls_side_write(&pair.client, tls_pair_bytes(200), "w");
    close_channel(&pair.client, "close");
    assert_events(&pair.client.events, "w=WEIR_ECLOSED handshake(WEIR_ECLOSED) close=ok");
    tls_pair_close(&pair);
}

/* ---- a peer that takes nothing ---- */

TEST(tls_closing, gives_a_peer_up_that_takes_nothing)
{
    struct tls_pair pair;

    open_pair(&pair,
              &(const struct tls_pair_options){
                  .client_channel =
                      WEIR_EMBEDDED_OPTIONS(.socket_space = 10000,
                                            .channel =
                                                WEIR_CHANNEL_OPTIONS(.close_timeout_ns = WEIR_NEVER,
                                                                     .high_mark = 1 << 20))});
    log_capture_start();
    tls_side_write(&pair.client, tls_pair_bytes(50000), "w");
    close_channel(&pair.client, "close");
    tls_pair_advance(&pair, weir_seconds(30) - 1);
    assert_events(&pair.client.events, "");
    tls_pair_advance(&pair, 1);
    assert_events(&pair.client.events, "close=ETIMEDOUT w=ETIMEDOUT inactive");
    assert_int_equal(log_capture_count(WEIR_LOG_WARN), 1);
    assert_log_contains("bytes for 30 s after the close");
    tls_pair_close(&pair);
}

/* The close waits for our end of TLS to be sent, for 3 s, and then for the transport's timeout. */
TEST(tls_closing, gives_a_peer_up_whose_end_it_waits_for)
{
    struct tls_pair pair;

    open_pair(&pair, &(const struct tls_pair_options){
                         .client = WEIR_TLS_OPTIONS(.server_name = "localhost",
                                                    .peer_close_timeout_ns = weir_seconds(1)),
                         .client_channel =
                             WEIR_EMBEDDED_OPTIONS(.socket_space = 10000,
                                                   .channel = WEIR_CHANNEL_OPTIONS(.high_mark =
                                                                                       1 << 20))});
    log_capture_start();
    tls_side_write(&pair.client, tls_pair_bytes(50000), "w");
    close_channel(&pair.client, "close");
    tls_pair_advance(&pair, weir_seconds(33) - 1);
    assert_events(&pair.client.events, "");
    tls_pair_advance(&pair, 1);
    assert_events(&pair.client.events, "close=ETIMEDOUT w=ETIMEDOUT inactive");
    assert_int_equal(log_capture_count(WEIR_LOG_WARN), 1);
    tls_pair_close(&pair);
}

TEST(tls_closing, is_patient_as_long_as_something_moves)
{
    struct tls_pair pair;

    open_pair(&pair,
              &(const struct tls_pair_options){
                  .client = WEIR_TLS_OPTIONS(.server_name = "localhost",
                                             .close_timeout_ns = weir_ms(100)),
                  .client_channel =
                      WEIR_EMBEDDED_OPTIONS(.socket_space = 10000,
                                            .channel =
                                                WEIR_CHANNEL_OPTIONS(.close_timeout_ns = WEIR_NEVER,
                                                                     .high_mark = 1 << 20))});
    for (int i = 0; i < 10; i++)
        tls_side_write(&pair.client, tls_pair_bytes(100000), i == 9 ? "w" : NULL);
    close_channel(&pair.client, "close");
    for (int i = 0; i < 7; i++) {
        tls_pair_advance(&pair, weir_ms(99));
        assert_events(&pair.client.events, "");
        weir_embedded_make_space(pair.client.embedded, 120000);
    }
    weir_embedded_make_space(pair.client.embedded, 200000);
    tls_pair_run(&pair);
    assert_events(&pair.client.events, "w=ok close=ok inactive");
    assert_int_equal(pair.server.received, 1000000);
    assert_int_equal(event_log_count(&pair.server.events, "ended"), 1);
    tls_pair_close(&pair);
}

/* A handler in front that queues all writes until it is released. */
static weir_ctx *dam;

static void dam_added(weir_ctx *ctx)
{
    dam = ctx;
}

static void dam_write(weir_ctx *ctx, weir_msg *msg, weir_promise *done)
{
    (void)weir_pending_writes_add(ctx, weir_ctx_state(ctx), msg, done);
}

static void dam_flush(weir_ctx *ctx)
{
    weir_pending_writes_flush(weir_ctx_state(ctx));
}

static void dam_close(weir_ctx *ctx, weir_promise *done)
{
    weir_pending_writes_close(ctx, weir_ctx_state(ctx), done);
}

static void dam_inactive(weir_ctx *ctx)
{
    weir_pending_writes_fail(ctx, weir_ctx_state(ctx), WEIR_ECLOSED, NULL);
    weir_fire_inactive(ctx);
}

static const weir_handler dam_handler = {
    .name = "dam",
    .state_size = sizeof(weir_pending_writes),
    .added = dam_added,
    .inactive = dam_inactive,
    .close = dam_close,
    .write = dam_write,
    .flush = dam_flush,
};

static void let_one_go(void)
{
    weir_pending_writes *writes = weir_ctx_state(dam);

    weir_pending_writes_pass(dam, writes);
    weir_flush(dam);
    weir_pending_writes_run_deferred(dam, writes);
}

/* As traffic shaping does. It is not the peer then that takes nothing. */
TEST(tls_closing, is_patient_with_a_handler_in_front_that_holds_records_back)
{
    struct tls_pair pair;

    open_pair(&pair, NULL);
    assert_int_equal(
        weir_pipeline_add(pair.client.pipeline, WEIR_PLACE(.first = true), &dam_handler, NULL), 0);
    tls_side_write(&pair.client, tls_pair_bytes(200), "w");
    close_channel(&pair.client, "close");
    for (int i = 0; i < 20; i++)
        tls_pair_advance(&pair, weir_seconds(1));
    assert_events(&pair.client.events, "");
    let_one_go();
    for (int i = 0; i < 20; i++)
        tls_pair_advance(&pair, weir_seconds(1));
    assert_events(&pair.client.events, "w=ok");
    let_one_go();
    tls_pair_run(&pair);
    assert_events(&pair.client.events, "close=ok inactive");
    assert_events(&pair.server.events, "read(200) ended inactive");
    tls_pair_close(&pair);
}

/* ---- waiting for the peer's ---- */

static const weir_tls_options *patient(void)
{
    static weir_tls_options options;

    options =
        *WEIR_TLS_OPTIONS(.server_name = "localhost", .peer_close_timeout_ns = weir_seconds(1));
    return &options;
}

TEST(tls_closing, waits_for_the_peers_end)
{
    struct tls_pair pair;

    open_pair(&pair, &(const struct tls_pair_options){.client = patient()});
    tls_side_write(&pair.client, tls_pair_bytes(200), "w");
    close_channel(&pair.client, "close");
    assert_true(weir_channel_is_open(pair.client.channel));
    assert_events(&pair.client.events, "w=ok");
    tls_pair_run(&pair);
    assert_events(&pair.client.events, "ended close=ok inactive");
    assert_events(&pair.server.events, "read(200) ended inactive");
    tls_pair_close(&pair);
}

/* What comes meanwhile is still read. */
TEST(tls_closing, reads_on_until_the_peers_end)
{
    struct tls_pair pair;

    open_pair(&pair, &(const struct tls_pair_options){.client = patient()});
    close_channel(&pair.client, "close");
    tls_side_send_text(&pair.server, "not yet");
    tls_pair_run(&pair);
    assert_events(&pair.client.events, "read(not yet) ended close=ok inactive");
    tls_pair_close(&pair);
}

TEST(tls_closing, waits_for_the_peers_end_no_longer_than_it_is_to)
{
    struct tls_pair pair;

    open_pair(&pair, &(const struct tls_pair_options){.client = patient()});
    close_channel(&pair.client, "close");
    close_channel(&pair.client, "again");
    tls_pair_advance(&pair, weir_seconds(1) - 1);
    assert_events(&pair.client.events, "");
    tls_pair_advance(&pair, 1);
    assert_int_equal(event_log_count(&pair.client.events, "close=ok"), 1);
    assert_int_equal(event_log_count(&pair.client.events, "again=ok"), 1);
    assert_int_equal(event_log_count(&pair.client.events, "inactive"), 1);
    tls_pair_close(&pair);
}

TEST(tls_closing, waits_for_the_peers_end_only_from_when_its_own_was_sent)
{
    struct tls_pair pair;

    open_pair(&pair, &(const struct tls_pair_options){
                         .client = patient(),
                         .client_channel = WEIR_EMBEDDED_OPTIONS(.socket_space = 10000)});
    tls_side_write(&pair.client, tls_pair_bytes(20000), "w");
    close_channel(&pair.client, "close");
    tls_pair_advance(&pair, weir_seconds(2));
    assert_events(&pair.client.events, "");
    weir_embedded_make_space(pair.client.embedded, 50000);
    assert_events(&pair.client.events, "w=ok");
    tls_pair_advance(&pair, weir_seconds(1));
    assert_events(&pair.client.events, "close=ok inactive");
    tls_pair_close(&pair);
}

/* Without memory close_notify is not sent, and the peer does not answer it. */
TEST(tls_closing, does_not_wait_if_close_notify_cannot_be_sent)
{
    struct tls_pair pair;

    open_pair(&pair, &(const struct tls_pair_options){.client = patient()});
    tls_side_state(&pair.client)->session->stage = WEIR__OPENSSL_CLOSE_SENT;
    close_channel(&pair.client, "close");
    assert_events(&pair.client.events, "close=ok inactive");
    tls_pair_close(&pair);
}

TEST(tls_closing, of_both_at_once_waits_for_nobody)
{
    struct tls_pair pair;

    open_pair(&pair, &(const struct tls_pair_options){
                         .client = patient(),
                         .server = WEIR_TLS_OPTIONS(.peer_close_timeout_ns = weir_seconds(1))});
    close_channel(&pair.client, "close");
    close_channel(&pair.server, "close");
    tls_pair_run(&pair);
    assert_events(&pair.client.events, "ended close=ok inactive");
    assert_events(&pair.server.events, "ended close=ok inactive");
    tls_pair_close(&pair);
}

TEST(tls_closing, asks_for_the_peers_end_where_reads_are_on_demand)
{
    struct tls_pair pair;

    open_pair(&pair, &(const struct tls_pair_options){.client = patient()});
    weir_channel_set_auto_read(pair.client.channel, false);
    weir_embedded_run(pair.client.embedded);
    close_channel(&pair.client, "close");
    tls_pair_run(&pair);
    assert_events(&pair.client.events, "ended close=ok inactive");
    tls_pair_close(&pair);
}

TEST(tls_closing, waits_for_nothing_when_it_is_removed)
{
    struct tls_pair pair;

    open_pair(&pair, &(const struct tls_pair_options){
                         .client = patient(),
                         .client_channel = WEIR_EMBEDDED_OPTIONS(.socket_space = 2000)});
    tls_side_write(&pair.client, tls_pair_bytes(20000), NULL);
    close_channel(&pair.client, "close");
    assert_int_equal(weir_pipeline_remove(pair.client.pipeline, "tls", NULL), 0);
    weir_embedded_make_space(pair.client.embedded, 50000);
    assert_events(&pair.client.events, "close=ok inactive");
    tls_pair_close(&pair);
}

/* Who closes on the error, as the tail does, does not make it another one. */
TEST(tls_closing, of_a_connection_that_was_lost_is_no_close_of_ours)
{
    weir_promise *handshake = NULL;
    struct tls_pair pair;

    assert_int_equal(weir_promise_create(weir_executor_immediate(), &handshake), 0);
    tls_pair_prepare(
        &pair, &(const struct tls_pair_options){
                   .client = WEIR_TLS_OPTIONS(.server_name = "localhost", .handshake = handshake)});
    tls_pair_begin(&pair);
    weir_pipeline_fire_error(pair.client.pipeline, -ECONNRESET, NULL);
    close_channel(&pair.client, "close");
    assert_events(&pair.client.events, "error(ECONNRESET) handshake(ECONNRESET) close=ok inactive");
    assert_string_equal(weir_promise_detail(handshake),
                        "the connection was lost during the handshake");
    weir_promise_release(handshake);
    tls_pair_close(&pair);
}

/* SslHandlerTest: a reset by a peer that has heard our end is no error. */
TEST(tls_closing, swallows_a_reset_after_its_own_end)
{
    struct tls_pair pair;

    open_pair(&pair, &(const struct tls_pair_options){.client = patient()});
    weir_pipeline_fire_error(pair.client.pipeline, -ECONNRESET, NULL);
    assert_events(&pair.client.events, "error(ECONNRESET)");
    close_channel(&pair.client, NULL);
    weir_pipeline_fire_error(pair.client.pipeline, -ECONNRESET, NULL);
    assert_events(&pair.client.events, "");
    tls_pair_close(&pair);
}

/* ---- the peer's ---- */

/* A handler may still write on that event: this is sent first. */
static void say_good_bye(weir_ctx *ctx)
{
    weir_write(ctx, tls_pair_bytes(300), NULL);
}

TEST(tls_closing, answers_the_peers_end_and_closes)
{
    struct tls_pair pair;

    open_pair(&pair, &(const struct tls_pair_options){.client = patient()});
    pair.server.on_ended = say_good_bye;
    close_channel(&pair.client, NULL);
    tls_pair_run(&pair);
    assert_events(&pair.server.events, "ended inactive");
    assert_events(&pair.client.events, "read(300) ended inactive");
    tls_pair_close(&pair);
}

/* A handler may answer in read_complete what came before it. */
static void answer(weir_ctx *ctx)
{
    if (tls_side_of(ctx)->received == 5)
        weir_write_and_flush(ctx, tls_pair_bytes(300), NULL);
}

TEST(tls_closing, comes_after_the_answer_to_what_came_with_the_peers_end)
{
    struct tls_pair pair;

    open_pair(&pair, &(const struct tls_pair_options){.client = patient()});
    pair.server.on_read_complete = answer;
    pair.is_joined = true;
    tls_side_send_text(&pair.client, "hello");
    close_channel(&pair.client, NULL);
    tls_pair_run(&pair);
    assert_events(&pair.server.events, "read(hello) ended inactive");
    assert_events(&pair.client.events, "read(300) ended inactive");
    tls_pair_close(&pair);
}

TEST(tls_closing, by_the_peer_leaves_a_channel_with_half_closure_open)
{
    struct tls_pair pair;

    open_pair(&pair, &(const struct tls_pair_options){
                         .client = patient(),
                         .server_channel =
                             WEIR_EMBEDDED_OPTIONS(.channel = WEIR_CHANNEL_OPTIONS(.half_closure =
                                                                                       true))});
    close_channel(&pair.client, NULL);
    tls_pair_run(&pair);
    assert_events(&pair.server.events, "ended input-closed");
    tls_side_send_text(&pair.server, "still here");
    tls_pair_run(&pair);
    assert_events(&pair.client.events, "read(still here)");
    close_channel(&pair.server, "close");
    tls_pair_run(&pair);
    assert_events(&pair.client.events, "ended inactive");
    assert_events(&pair.server.events, "close=ok inactive");
    tls_pair_close(&pair);
}

/* ---- cut off ---- */

TEST(tls_closing, reports_an_end_of_stream_without_an_end_of_tls)
{
    struct tls_pair pair;

    open_pair(&pair, NULL);
    tls_side_send_text(&pair.client, "hello");
    tls_pair_run(&pair);
    weir_embedded_end_input(pair.server.embedded);
    assert_events(&pair.server.events, "read(hello) error(WEIR_ECUTOFF) inactive");
    tls_pair_close(&pair);
}

TEST(tls_closing, reports_of_a_record_that_was_cut_off)
{
    weir_buf *half = NULL;
    struct tls_pair pair;
    weir_msg *msg;

    open_pair(&pair, NULL);
    tls_side_send_text(&pair.client, "hello");
    msg = weir_embedded_read_outbound(pair.client.embedded);
    assert_int_equal(weir_buf_slice(weir_buf_of(msg), 0, 12, &half), 0);
    weir_msg_release(msg);
    (void)weir_embedded_write_inbound(pair.server.embedded, weir_buf_msg(half));
    weir_embedded_end_input(pair.server.embedded);
    assert_events(&pair.server.events, "error(WEIR_ECUTOFF) inactive");
    tls_pair_close(&pair);
}

static void stay(weir_ctx *ctx, int err)
{
    (void)ctx;
    (void)err;
}

/* With half closure it is reported once, with the end of the input; sending may continue. */
TEST(tls_closing, reports_that_it_was_cut_off_with_half_closure_too)
{
    struct tls_pair pair;

    open_pair(&pair, &(const struct tls_pair_options){
                         .server_channel =
                             WEIR_EMBEDDED_OPTIONS(.channel = WEIR_CHANNEL_OPTIONS(.half_closure =
                                                                                       true))});
    pair.server.on_error = stay;
    weir_embedded_end_input(pair.server.embedded);
    assert_events(&pair.server.events, "error(WEIR_ECUTOFF) input-closed");
    tls_side_send_text(&pair.server, "still here");
    tls_pair_run(&pair);
    assert_events(&pair.client.events, "read(still here)");
    close_channel(&pair.server, "close");
    assert_events(&pair.server.events, "close=ok inactive");
    tls_pair_close(&pair);
}

TEST(tls_closing, reports_nothing_of_the_kind_after_its_own_end)
{
    struct tls_pair pair;

    open_pair(&pair, &(const struct tls_pair_options){
                         .client_channel = WEIR_EMBEDDED_OPTIONS(.peer_stays = true)});
    close_channel(&pair.client, NULL);
    lose(&pair.client);
    weir_embedded_end_input(pair.client.embedded);
    assert_events(&pair.client.events, "inactive");
    tls_pair_close(&pair);
}

TEST(tls_closing, reports_nothing_of_the_kind_when_it_is_aborted)
{
    struct tls_pair pair;

    open_pair(&pair, NULL);
    tls_side_write(&pair.client, tls_pair_bytes(1), "w");
    weir_channel_abort(pair.client.channel, NULL);
    weir_embedded_run(pair.client.embedded);
    assert_events(&pair.client.events, "w=WEIR_ECLOSED inactive");
    tls_pair_close(&pair);
}

/* ---- handlers that do things meanwhile ---- */

static void close_again(weir_ctx *ctx)
{
    weir_close(ctx, NULL);
}

TEST(tls_closing, may_be_asked_for_by_who_hears_of_the_peers_end)
{
    struct tls_pair pair;

    open_pair(&pair, NULL);
    pair.server.on_ended = close_again;
    close_channel(&pair.client, NULL);
    tls_pair_run(&pair);
    assert_events(&pair.server.events, "ended inactive");
    tls_pair_close(&pair);
}

static void remove_tls(weir_ctx *ctx)
{
    (void)weir_pipeline_remove(weir_ctx_pipeline(ctx), "tls", NULL);
}

TEST(tls_closing, does_nothing_more_if_it_is_removed_by_who_hears_of_the_peers_end)
{
    struct tls_pair pair;

    open_pair(&pair, &(const struct tls_pair_options){.client = patient()});
    pair.server.on_ended = remove_tls;
    close_channel(&pair.client, NULL);
    tls_pair_run(&pair);
    assert_events(&pair.server.events, "ended");
    assert_true(weir_channel_is_open(pair.server.channel));
    tls_pair_close(&pair);
}

static void close_when_full(weir_ctx *ctx)
{
    weir_close(ctx, NULL);
}

/* The close comes in the middle of sealing, when the marks are crossed. */
TEST(tls_closing, may_be_asked_for_by_who_hears_that_the_marks_are_crossed)
{
    struct tls_pair pair;

    open_pair(&pair,
              &(const struct tls_pair_options){
                  .client_channel =
                      WEIR_EMBEDDED_OPTIONS(.socket_space = 10000,
                                            .channel = WEIR_CHANNEL_OPTIONS(.low_mark = 100000,
                                                                            .high_mark = 300500))});
    tls_side_write(&pair.client, tls_pair_bytes(300000),
                   "a"); /* with what records have besides, too much */
    tls_side_write(&pair.client, tls_pair_bytes(10), "b");
    pair.client.on_writability = close_when_full;
    weir_channel_flush(pair.client.channel);
    pair.client.on_writability = NULL;
    weir_embedded_make_space(pair.client.embedded, 1000000);
    tls_pair_run(&pair);
    assert_int_equal(pair.server.received, 300010);
    assert_int_equal(event_log_count(&pair.client.events, "a=ok"), 1);
    assert_int_equal(event_log_count(&pair.client.events, "b=ok"), 1);
    assert_int_equal(event_log_count(&pair.server.events, "ended"), 1);
    tls_pair_close(&pair);
}

static void remove_when_full(weir_ctx *ctx)
{
    remove_tls(ctx);
}

TEST(tls_closing, by_removal_in_the_middle_of_sealing_fails_what_is_not_sealed)
{
    struct tls_pair pair;

    open_pair(&pair,
              &(const struct tls_pair_options){
                  .client_channel =
                      WEIR_EMBEDDED_OPTIONS(.channel = WEIR_CHANNEL_OPTIONS(.low_mark = 100000,
                                                                            .high_mark = 115200))});
    tls_side_write(&pair.client, tls_pair_bytes(114688), "a");
    tls_side_write(&pair.client, tls_pair_bytes(10), "c");
    pair.client.on_writability = remove_when_full;
    weir_channel_flush(pair.client.channel);
    tls_pair_run(&pair);
    assert_int_equal(event_log_count(&pair.client.events, "a=ok"), 1);
    assert_int_equal(event_log_count(&pair.client.events, "c=WEIR_ECLOSED"), 1);
    assert_int_equal(pair.server.received, 114688);
    assert_int_equal(weir_channel_pending_bytes(pair.client.channel), 0);
    tls_pair_close(&pair);
}
