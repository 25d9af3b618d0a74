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
#include "tls/openssl/session.h"
#include "tls/tls.h"

static void close_channel(struct duettist *duettist, const char *name)
{
    weir_promise *promise = name != NULL ? duet_promise(duettist, name) : NULL;

    weir_channel_close(duettist->channel, promise);
    weir_promise_release(promise);
    weir_embedded_run(duettist->embedded);
}

/* Both have shaken hands, and nobody remembers it. */
static void open_duet(struct duet *duet, const struct duet_options *options)
{
    duet_open(duet, options);
    assert_events(&duet->client.events, "shaken(ok)");
    assert_events(&duet->server.events, "shaken(ok)");
}

/* What was sent is lost on its way. */
static void lose(struct duettist *from)
{
    weir_msg *msg;

    while ((msg = weir_embedded_read_outbound(from->embedded)) != NULL)
        weir_msg_release(msg);
}

/* ---- our own ---- */

TEST(tls_closing, sends_all_that_was_written_before)
{
    struct duet duet;

    open_duet(&duet, NULL);
    duet_write(&duet.client, duet_bytes(1000), "a");
    weir_channel_flush(duet.client.channel);
    duet_write(&duet.client, duet_bytes(2000), "b"); /* not flushed */
    close_channel(&duet.client, "close");
    duet_play(&duet);
    assert_events(&duet.client.events, "a=ok b=ok close=ok inactive");
    assert_events(&duet.server.events, "read(1000) read(2000) ended inactive");
    duet_close(&duet);
}

TEST(tls_closing, takes_no_writes_afterwards)
{
    struct duet duet;

    open_duet(&duet, &(const struct duet_options){.client_channel =
                                                      WEIR_EMBEDDED_OPTIONS(.peer_stays = true)});
    close_channel(&duet.client, NULL);
    duet_write(&duet.client, duet_bytes(1), "w");
    assert_events(&duet.client.events, "w=WEIR_ECLOSED");
    duet_close(&duet);
}

TEST(tls_closing, waits_for_the_handshake_if_something_was_written)
{
    struct duet duet;

    duet_prepare(&duet, NULL);
    assert_int_equal(weir_embedded_register(duet.server.embedded), 0);
    assert_int_equal(weir_embedded_register(duet.client.embedded), 0);
    duet_write(&duet.client, duet_bytes(200), "w");
    close_channel(&duet.client, "close");
    duet_write(&duet.client, duet_bytes(200), "late");
    close_channel(&duet.client, "again");
    assert_events(&duet.client.events, "late=WEIR_ECLOSED");
    duet_play(&duet);
    assert_int_equal(event_log_count(&duet.client.events, "shaken(ok)"), 1);
    assert_int_equal(event_log_count(&duet.client.events, "w=ok"), 1);
    assert_int_equal(event_log_count(&duet.client.events, "close=ok"), 1);
    assert_int_equal(event_log_count(&duet.client.events, "again=ok"), 1);
    assert_events(&duet.server.events, "shaken(ok) read(200) ended inactive");
    duet_close(&duet);
}

/* A client has something to say, and its server has not begun. */
static void speak_too_early(struct duet *duet, const weir_tls_options *client)
{
    duet_prepare(duet, &(const struct duet_options){.client = client});
    assert_int_equal(weir_embedded_register(duet->client.embedded), 0);
    duet_write(&duet->client, duet_bytes(200), "w");
}

TEST(tls_closing, waits_no_longer_than_the_handshake_may)
{
    struct duet duet;

    speak_too_early(&duet, NULL);
    close_channel(&duet.client, "close");
    duet_advance(&duet, weir_seconds(10));
    assert_events(&duet.client.events,
                  "w=ETIMEDOUT shaken(ETIMEDOUT) error(ETIMEDOUT) close=ok inactive");
    duet_close(&duet);
}

/* A handshake that may last for ever: a close may not. */
TEST(tls_closing, waits_for_a_handshake_without_limit_only_as_long_as_it_may_itself)
{
    struct duet duet;

    speak_too_early(&duet,
                    WEIR_TLS_OPTIONS(.server_name = "localhost", .handshake_timeout_ns = WEIR_OFF));
    duet_advance(&duet, weir_seconds(3600));
    close_channel(&duet.client, "close");
    duet_advance(&duet, weir_seconds(3) - 1);
    assert_events(&duet.client.events, "");
    duet_advance(&duet, 1);
    assert_events(&duet.client.events,
                  "w=ETIMEDOUT shaken(ETIMEDOUT) error(ETIMEDOUT) close=ok inactive");
    assert_string_equal(duet.client.detail,
                        "a close has waited too long for the end of the handshake");
    duet_close(&duet);
}

/* What it has waited for before it left its loop is forgotten. */
TEST(tls_closing, waits_for_a_handshake_no_longer_on_another_loop)
{
    struct duet duet;

    speak_too_early(&duet,
                    WEIR_TLS_OPTIONS(.server_name = "localhost", .handshake_timeout_ns = WEIR_OFF));
    close_channel(&duet.client, "close");
    duet_advance(&duet, weir_seconds(2));
    weir_channel_deregister(duet.client.channel, NULL);
    weir_embedded_run(duet.client.embedded);
    assert_int_equal(weir_embedded_register(duet.client.embedded), 0);
    duet_advance(&duet, weir_seconds(3) - 1);
    assert_events(&duet.client.events, "");
    duet_advance(&duet, 1);
    assert_events(&duet.client.events,
                  "w=ETIMEDOUT shaken(ETIMEDOUT) error(ETIMEDOUT) close=ok inactive");
    duet_close(&duet);
}

TEST(tls_closing, waits_for_a_handshake_for_ever_if_neither_has_a_limit)
{
    struct duet duet;

    speak_too_early(&duet,
                    WEIR_TLS_OPTIONS(.server_name = "localhost", .handshake_timeout_ns = WEIR_OFF,
                                     .close_timeout_ns = WEIR_OFF));
    close_channel(&duet.client, "close");
    duet_advance(&duet, weir_seconds(3600));
    assert_events(&duet.client.events, "");
    assert_int_equal(weir_embedded_register(duet.server.embedded), 0);
    duet_play(&duet);
    assert_events(&duet.client.events, "shaken(ok) w=ok close=ok inactive");
    assert_events(&duet.server.events, "shaken(ok) read(200) ended inactive");
    duet_close(&duet);
}

TEST(tls_closing, does_not_wait_for_a_handshake_that_nobody_needs)
{
    struct duet duet;

    duet_prepare(&duet, NULL);
    assert_int_equal(weir_embedded_register(duet.server.embedded), 0);
    assert_int_equal(weir_embedded_register(duet.client.embedded), 0);
    close_channel(&duet.client, "close");
    assert_events(&duet.client.events, "shaken(WEIR_ECLOSED) close=ok inactive");
    duet_play(&duet);
    assert_events(&duet.server.events, "shaken(WEIR_ECUTOFF) error(WEIR_ECUTOFF) inactive");
    duet_close(&duet);
}

TEST(tls_closing, may_be_by_disconnect)
{
    struct duet duet;

    open_duet(&duet, NULL);
    duet_write(&duet.client, duet_bytes(200), "w");
    weir_channel_disconnect(duet.client.channel, NULL);
    duet_play(&duet);
    assert_events(&duet.client.events, "w=ok inactive");
    assert_events(&duet.server.events, "read(200) ended inactive");
    duet_close(&duet);
}

TEST(tls_closing, of_a_channel_that_never_was_active_fails_what_was_written)
{
    struct duet duet;

    duet_prepare(&duet, &(const struct duet_options){
                            .client_channel = WEIR_EMBEDDED_OPTIONS(.not_active = true)});
    assert_int_equal(weir_embedded_register(duet.client.embedded), 0);
    duet_write(&duet.client, duet_bytes(200), "w");
    close_channel(&duet.client, "close");
    assert_events(&duet.client.events, "w=WEIR_ECLOSED shaken(WEIR_ECLOSED) close=ok");
    duet_close(&duet);
}

/* ---- a peer that takes nothing ---- */

TEST(tls_closing, gives_a_peer_up_that_takes_nothing)
{
    struct duet duet;

    open_duet(&duet,
              &(const struct duet_options){
                  .client_channel =
                      WEIR_EMBEDDED_OPTIONS(.socket_space = 10000,
                                            .channel =
                                                WEIR_CHANNEL_OPTIONS(.close_timeout_ns = WEIR_NEVER,
                                                                     .high_mark = 1 << 20))});
    log_capture_start();
    duet_write(&duet.client, duet_bytes(50000), "w");
    close_channel(&duet.client, "close");
    duet_advance(&duet, weir_seconds(30) - 1);
    assert_events(&duet.client.events, "");
    duet_advance(&duet, 1);
    assert_events(&duet.client.events, "close=ETIMEDOUT w=ETIMEDOUT inactive");
    assert_int_equal(log_capture_count(WEIR_LOG_WARN), 1);
    assert_log_contains("bytes for 30 s after the close");
    duet_close(&duet);
}

/* The close waits for our end of TLS to be sent, for 3 s, and then for the transport's timeout. */
TEST(tls_closing, gives_a_peer_up_whose_end_it_waits_for)
{
    struct duet duet;

    open_duet(&duet, &(const struct duet_options){
                         .client = WEIR_TLS_OPTIONS(.server_name = "localhost",
                                                    .peer_close_timeout_ns = weir_seconds(1)),
                         .client_channel =
                             WEIR_EMBEDDED_OPTIONS(.socket_space = 10000,
                                                   .channel = WEIR_CHANNEL_OPTIONS(.high_mark =
                                                                                       1 << 20))});
    log_capture_start();
    duet_write(&duet.client, duet_bytes(50000), "w");
    close_channel(&duet.client, "close");
    duet_advance(&duet, weir_seconds(33) - 1);
    assert_events(&duet.client.events, "");
    duet_advance(&duet, 1);
    assert_events(&duet.client.events, "close=ETIMEDOUT w=ETIMEDOUT inactive");
    assert_int_equal(log_capture_count(WEIR_LOG_WARN), 1);
    duet_close(&duet);
}

TEST(tls_closing, is_patient_as_long_as_something_moves)
{
    struct duet duet;

    open_duet(&duet,
              &(const struct duet_options){
                  .client = WEIR_TLS_OPTIONS(.server_name = "localhost",
                                             .close_timeout_ns = weir_ms(100)),
                  .client_channel =
                      WEIR_EMBEDDED_OPTIONS(.socket_space = 10000,
                                            .channel =
                                                WEIR_CHANNEL_OPTIONS(.close_timeout_ns = WEIR_NEVER,
                                                                     .high_mark = 1 << 20))});
    for (int i = 0; i < 10; i++)
        duet_write(&duet.client, duet_bytes(100000), i == 9 ? "w" : NULL);
    close_channel(&duet.client, "close");
    for (int i = 0; i < 7; i++) {
        duet_advance(&duet, weir_ms(99));
        assert_events(&duet.client.events, "");
        weir_embedded_make_space(duet.client.embedded, 120000);
    }
    weir_embedded_make_space(duet.client.embedded, 200000);
    duet_play(&duet);
    assert_events(&duet.client.events, "w=ok close=ok inactive");
    assert_int_equal(duet.server.received, 1000000);
    assert_int_equal(event_log_count(&duet.server.events, "ended"), 1);
    duet_close(&duet);
}

/* A handler in front that holds back all that is written, until it is told otherwise. */
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
    struct duet duet;

    open_duet(&duet, NULL);
    assert_int_equal(
        weir_pipeline_add(duet.client.pipeline, WEIR_PLACE(.first = true), &dam_handler, NULL), 0);
    duet_write(&duet.client, duet_bytes(200), "w");
    close_channel(&duet.client, "close");
    for (int i = 0; i < 20; i++)
        duet_advance(&duet, weir_seconds(1));
    assert_events(&duet.client.events, "");
    let_one_go();
    for (int i = 0; i < 20; i++)
        duet_advance(&duet, weir_seconds(1));
    assert_events(&duet.client.events, "w=ok");
    let_one_go();
    duet_play(&duet);
    assert_events(&duet.client.events, "close=ok inactive");
    assert_events(&duet.server.events, "read(200) ended inactive");
    duet_close(&duet);
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
    struct duet duet;

    open_duet(&duet, &(const struct duet_options){.client = patient()});
    duet_write(&duet.client, duet_bytes(200), "w");
    close_channel(&duet.client, "close");
    assert_true(weir_channel_is_open(duet.client.channel));
    assert_events(&duet.client.events, "w=ok");
    duet_play(&duet);
    assert_events(&duet.client.events, "ended close=ok inactive");
    assert_events(&duet.server.events, "read(200) ended inactive");
    duet_close(&duet);
}

/* What comes meanwhile is still read. */
TEST(tls_closing, reads_on_until_the_peers_end)
{
    struct duet duet;

    open_duet(&duet, &(const struct duet_options){.client = patient()});
    close_channel(&duet.client, "close");
    duet_say(&duet.server, "not yet");
    duet_play(&duet);
    assert_events(&duet.client.events, "read(not yet) ended close=ok inactive");
    duet_close(&duet);
}

TEST(tls_closing, waits_for_the_peers_end_no_longer_than_it_is_to)
{
    struct duet duet;

    open_duet(&duet, &(const struct duet_options){.client = patient()});
    close_channel(&duet.client, "close");
    close_channel(&duet.client, "again");
    duet_advance(&duet, weir_seconds(1) - 1);
    assert_events(&duet.client.events, "");
    duet_advance(&duet, 1);
    assert_int_equal(event_log_count(&duet.client.events, "close=ok"), 1);
    assert_int_equal(event_log_count(&duet.client.events, "again=ok"), 1);
    assert_int_equal(event_log_count(&duet.client.events, "inactive"), 1);
    duet_close(&duet);
}

TEST(tls_closing, waits_for_the_peers_end_only_from_when_its_own_was_sent)
{
    struct duet duet;

    open_duet(&duet, &(const struct duet_options){
                         .client = patient(),
                         .client_channel = WEIR_EMBEDDED_OPTIONS(.socket_space = 10000)});
    duet_write(&duet.client, duet_bytes(20000), "w");
    close_channel(&duet.client, "close");
    duet_advance(&duet, weir_seconds(2));
    assert_events(&duet.client.events, "");
    weir_embedded_make_space(duet.client.embedded, 50000);
    assert_events(&duet.client.events, "w=ok");
    duet_advance(&duet, weir_seconds(1));
    assert_events(&duet.client.events, "close=ok inactive");
    duet_close(&duet);
}

/* Without memory our end cannot be told, and the peer does not answer what it does not hear. */
TEST(tls_closing, waits_for_nothing_if_it_cannot_tell_its_own_end)
{
    struct duet duet;

    open_duet(&duet, &(const struct duet_options){.client = patient()});
    ((weir__openssl_session *)(void *)duet_tls(&duet.client)->session)->is_ended = true;
    close_channel(&duet.client, "close");
    assert_events(&duet.client.events, "close=ok inactive");
    duet_close(&duet);
}

TEST(tls_closing, of_both_at_once_waits_for_nobody)
{
    struct duet duet;

    open_duet(&duet, &(const struct duet_options){
                         .client = patient(),
                         .server = WEIR_TLS_OPTIONS(.peer_close_timeout_ns = weir_seconds(1))});
    close_channel(&duet.client, "close");
    close_channel(&duet.server, "close");
    duet_play(&duet);
    assert_events(&duet.client.events, "ended close=ok inactive");
    assert_events(&duet.server.events, "ended close=ok inactive");
    duet_close(&duet);
}

TEST(tls_closing, asks_for_the_peers_end_where_reads_are_on_demand)
{
    struct duet duet;

    open_duet(&duet, &(const struct duet_options){.client = patient()});
    weir_channel_set_auto_read(duet.client.channel, false);
    weir_embedded_run(duet.client.embedded);
    close_channel(&duet.client, "close");
    duet_play(&duet);
    assert_events(&duet.client.events, "ended close=ok inactive");
    duet_close(&duet);
}

TEST(tls_closing, waits_for_nothing_when_it_is_removed)
{
    struct duet duet;

    open_duet(&duet, &(const struct duet_options){.client = patient(),
                                                  .client_channel =
                                                      WEIR_EMBEDDED_OPTIONS(.socket_space = 2000)});
    duet_write(&duet.client, duet_bytes(20000), NULL);
    close_channel(&duet.client, "close");
    assert_int_equal(weir_pipeline_remove(duet.client.pipeline, "tls", NULL), 0);
    weir_embedded_make_space(duet.client.embedded, 50000);
    assert_events(&duet.client.events, "close=ok inactive");
    duet_close(&duet);
}

/* Who closes on the error, as the tail does, does not make it another one. */
TEST(tls_closing, of_a_connection_that_was_lost_is_no_close_of_ours)
{
    weir_promise *handshake = NULL;
    struct duet duet;

    assert_int_equal(weir_promise_create(weir_executor_immediate(), &handshake), 0);
    duet_prepare(&duet,
                 &(const struct duet_options){.client = WEIR_TLS_OPTIONS(.server_name = "localhost",
                                                                         .handshake = handshake)});
    duet_begin(&duet);
    weir_pipeline_fire_error(duet.client.pipeline, -ECONNRESET, NULL);
    close_channel(&duet.client, "close");
    assert_events(&duet.client.events, "error(ECONNRESET) shaken(ECONNRESET) close=ok inactive");
    assert_string_equal(weir_promise_detail(handshake),
                        "the connection was lost before the handshake was over");
    weir_promise_release(handshake);
    duet_close(&duet);
}

/* SslHandlerTest: a reset by a peer that has heard our end is no error. */
TEST(tls_closing, swallows_a_reset_after_its_own_end)
{
    struct duet duet;

    open_duet(&duet, &(const struct duet_options){.client = patient()});
    weir_pipeline_fire_error(duet.client.pipeline, -ECONNRESET, NULL);
    assert_events(&duet.client.events, "error(ECONNRESET)");
    close_channel(&duet.client, NULL);
    weir_pipeline_fire_error(duet.client.pipeline, -ECONNRESET, NULL);
    assert_events(&duet.client.events, "");
    duet_close(&duet);
}

/* ---- the peer's ---- */

/* Who hears of it may still write: that goes out first. */
static void say_good_bye(weir_ctx *ctx)
{
    weir_write(ctx, duet_bytes(300), NULL);
}

TEST(tls_closing, answers_the_peers_end_and_closes)
{
    struct duet duet;

    open_duet(&duet, &(const struct duet_options){.client = patient()});
    duet.server.on_ended = say_good_bye;
    close_channel(&duet.client, NULL);
    duet_play(&duet);
    assert_events(&duet.server.events, "ended inactive");
    assert_events(&duet.client.events, "read(300) ended inactive");
    duet_close(&duet);
}

/* What came before it can be answered by who waits for read_complete. */
static void answer(weir_ctx *ctx)
{
    if (duettist_of(ctx)->received == 5)
        weir_write_and_flush(ctx, duet_bytes(300), NULL);
}

TEST(tls_closing, comes_after_the_answer_to_what_came_with_the_peers_end)
{
    struct duet duet;

    open_duet(&duet, &(const struct duet_options){.client = patient()});
    duet.server.on_read_complete = answer;
    duet.is_joined = true;
    duet_say(&duet.client, "hello");
    close_channel(&duet.client, NULL);
    duet_play(&duet);
    assert_events(&duet.server.events, "read(hello) ended inactive");
    assert_events(&duet.client.events, "read(300) ended inactive");
    duet_close(&duet);
}

TEST(tls_closing, by_the_peer_leaves_a_channel_with_half_closure_open)
{
    struct duet duet;

    open_duet(&duet, &(const struct duet_options){
                         .client = patient(),
                         .server_channel =
                             WEIR_EMBEDDED_OPTIONS(.channel = WEIR_CHANNEL_OPTIONS(.half_closure =
                                                                                       true))});
    close_channel(&duet.client, NULL);
    duet_play(&duet);
    assert_events(&duet.server.events, "ended input-closed");
    duet_say(&duet.server, "still here");
    duet_play(&duet);
    assert_events(&duet.client.events, "read(still here)");
    close_channel(&duet.server, "close");
    duet_play(&duet);
    assert_events(&duet.client.events, "ended inactive");
    assert_events(&duet.server.events, "close=ok inactive");
    duet_close(&duet);
}

/* ---- cut off ---- */

TEST(tls_closing, tells_an_end_of_stream_without_an_end_of_tls)
{
    struct duet duet;

    open_duet(&duet, NULL);
    duet_say(&duet.client, "hello");
    duet_play(&duet);
    weir_embedded_end_input(duet.server.embedded);
    assert_events(&duet.server.events, "read(hello) error(WEIR_ECUTOFF) inactive");
    duet_close(&duet);
}

TEST(tls_closing, tells_of_a_record_that_was_cut_off)
{
    weir_buf *half = NULL;
    struct duet duet;
    weir_msg *msg;

    open_duet(&duet, NULL);
    duet_say(&duet.client, "hello");
    msg = weir_embedded_read_outbound(duet.client.embedded);
    assert_int_equal(weir_buf_slice(weir_buf_of(msg), 0, 12, &half), 0);
    weir_msg_release(msg);
    (void)weir_embedded_write_inbound(duet.server.embedded, weir_buf_msg(half));
    weir_embedded_end_input(duet.server.embedded);
    assert_events(&duet.server.events, "error(WEIR_ECUTOFF) inactive");
    duet_close(&duet);
}

static void stay(weir_ctx *ctx, int err)
{
    (void)ctx;
    (void)err;
}

/* With half closure it is told with the end of the input, once; then it may go on sending. */
TEST(tls_closing, tells_that_it_was_cut_off_with_half_closure_too)
{
    struct duet duet;

    open_duet(&duet, &(const struct duet_options){
                         .server_channel =
                             WEIR_EMBEDDED_OPTIONS(.channel = WEIR_CHANNEL_OPTIONS(.half_closure =
                                                                                       true))});
    duet.server.on_error = stay;
    weir_embedded_end_input(duet.server.embedded);
    assert_events(&duet.server.events, "error(WEIR_ECUTOFF) input-closed");
    duet_say(&duet.server, "still here");
    duet_play(&duet);
    assert_events(&duet.client.events, "read(still here)");
    close_channel(&duet.server, "close");
    assert_events(&duet.server.events, "close=ok inactive");
    duet_close(&duet);
}

TEST(tls_closing, tells_nothing_of_the_kind_after_its_own_end)
{
    struct duet duet;

    open_duet(&duet, &(const struct duet_options){.client_channel =
                                                      WEIR_EMBEDDED_OPTIONS(.peer_stays = true)});
    close_channel(&duet.client, NULL);
    lose(&duet.client);
    weir_embedded_end_input(duet.client.embedded);
    assert_events(&duet.client.events, "inactive");
    duet_close(&duet);
}

TEST(tls_closing, tells_nothing_of_the_kind_when_it_is_aborted)
{
    struct duet duet;

    open_duet(&duet, NULL);
    duet_write(&duet.client, duet_bytes(1), "w");
    weir_channel_abort(duet.client.channel, NULL);
    weir_embedded_run(duet.client.embedded);
    assert_events(&duet.client.events, "w=WEIR_ECLOSED inactive");
    duet_close(&duet);
}

/* ---- handlers that do things meanwhile ---- */

static void close_again(weir_ctx *ctx)
{
    weir_close(ctx, NULL);
}

TEST(tls_closing, may_be_asked_for_by_who_hears_of_the_peers_end)
{
    struct duet duet;

    open_duet(&duet, NULL);
    duet.server.on_ended = close_again;
    close_channel(&duet.client, NULL);
    duet_play(&duet);
    assert_events(&duet.server.events, "ended inactive");
    duet_close(&duet);
}

static void remove_tls(weir_ctx *ctx)
{
    (void)weir_pipeline_remove(weir_ctx_pipeline(ctx), "tls", NULL);
}

TEST(tls_closing, does_nothing_more_if_it_is_removed_by_who_hears_of_the_peers_end)
{
    struct duet duet;

    open_duet(&duet, &(const struct duet_options){.client = patient()});
    duet.server.on_ended = remove_tls;
    close_channel(&duet.client, NULL);
    duet_play(&duet);
    assert_events(&duet.server.events, "ended");
    assert_true(weir_channel_is_open(duet.server.channel));
    duet_close(&duet);
}

static void close_when_full(weir_ctx *ctx)
{
    weir_close(ctx, NULL);
}

/* The close comes in the middle of sealing, when the marks are crossed. */
TEST(tls_closing, may_be_asked_for_by_who_hears_that_the_marks_are_crossed)
{
    struct duet duet;

    open_duet(&duet,
              &(const struct duet_options){
                  .client_channel =
                      WEIR_EMBEDDED_OPTIONS(.socket_space = 10000,
                                            .channel = WEIR_CHANNEL_OPTIONS(.low_mark = 100000,
                                                                            .high_mark = 300500))});
    duet_write(&duet.client, duet_bytes(300000),
               "a"); /* with what records have besides, too much */
    duet_write(&duet.client, duet_bytes(10), "b");
    duet.client.on_writability = close_when_full;
    weir_channel_flush(duet.client.channel);
    duet.client.on_writability = NULL;
    weir_embedded_make_space(duet.client.embedded, 1000000);
    duet_play(&duet);
    assert_int_equal(duet.server.received, 300010);
    assert_int_equal(event_log_count(&duet.client.events, "a=ok"), 1);
    assert_int_equal(event_log_count(&duet.client.events, "b=ok"), 1);
    assert_int_equal(event_log_count(&duet.server.events, "ended"), 1);
    duet_close(&duet);
}

static void remove_when_full(weir_ctx *ctx)
{
    remove_tls(ctx);
}

TEST(tls_closing, by_removal_in_the_middle_of_sealing_fails_what_is_not_sealed)
{
    struct duet duet;

    open_duet(&duet,
              &(const struct duet_options){
                  .client_channel =
                      WEIR_EMBEDDED_OPTIONS(.channel = WEIR_CHANNEL_OPTIONS(.low_mark = 100000,
                                                                            .high_mark = 115200))});
    duet_write(&duet.client, duet_bytes(114688), "a");
    duet_write(&duet.client, duet_bytes(10), "c");
    duet.client.on_writability = remove_when_full;
    weir_channel_flush(duet.client.channel);
    duet_play(&duet);
    assert_int_equal(event_log_count(&duet.client.events, "a=ok"), 1);
    assert_int_equal(event_log_count(&duet.client.events, "c=WEIR_ECLOSED"), 1);
    assert_int_equal(duet.server.received, 114688);
    assert_int_equal(weir_channel_pending_bytes(duet.client.channel), 0);
    duet_close(&duet);
}
