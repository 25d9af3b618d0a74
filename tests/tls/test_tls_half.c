/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One direction of TLS ends before the other, between two embedded channels.
 */
#include <errno.h>

#include <weir/error.h>
#include <weir/tls.h>
#include <weir/traffic.h>

#include "support/memory.h"
#include "support/tls/pki.h"
#include "support/tls/tls_pair.h"
#include "tls/openssl/internal.h"
#include "tls/tls.h"

/* The stream of a peer that we have told our end goes on, as the other one says. */
#define STAYS WEIR_EMBEDDED_OPTIONS(.peer_stays = true)
#define HALF \
    WEIR_EMBEDDED_OPTIONS(.peer_stays = true, .channel = WEIR_CHANNEL_OPTIONS(.half_closure = true))

static void ask(struct tls_side *side, void (*operation)(weir_channel *, weir_promise *),
                const char *name)
{
    weir_promise *promise = name != NULL ? tls_side_promise(side, name) : NULL;

    operation(side->channel, promise);
    weir_promise_release(promise);
    weir_embedded_run(side->embedded);
}

static void shut(struct tls_side *side, const char *name)
{
    ask(side, weir_channel_shutdown_output, name);
}

static void close_channel(struct tls_side *side, const char *name)
{
    ask(side, weir_channel_close, name);
}

/* The handshake is complete, and its events are cleared. */
static void open_pair(struct tls_pair *pair, const struct tls_pair_options *options)
{
    tls_pair_open(pair, options);
    assert_events(&pair->client.events, "handshake(ok)");
    assert_events(&pair->server.events, "handshake(ok)");
}

static void open_half(struct tls_pair *pair)
{
    open_pair(pair,
              &(const struct tls_pair_options){.server_channel = HALF, .client_channel = HALF});
}

/* Before the handshake, with the client's hello on its way. */
static void begin_pair(struct tls_pair *pair)
{
    tls_pair_prepare(
        pair, &(const struct tls_pair_options){.server_channel = HALF, .client_channel = STAYS});
    assert_int_equal(weir_embedded_register(pair->server.embedded), 0);
    assert_int_equal(weir_embedded_register(pair->client.embedded), 0);
}

/* ---- our own end ---- */

static void check_half(enum weir_tls_version version)
{
    struct tls_pair pair;

    open_pair(&pair, &(const struct tls_pair_options){
                         .client_context =
                             WEIR_TLS_CONTEXT_OPTIONS(.ca_pem = pki()->ca, .max_version = version),
                         .server_channel = HALF,
                         .client_channel = HALF});
    tls_side_write(&pair.client, tls_pair_bytes(1000), "a");
    weir_channel_flush(pair.client.channel);
    tls_side_write(&pair.client, tls_pair_bytes(2000), "b"); /* not flushed */
    shut(&pair.client, "shut");
    assert_events(&pair.client.events, "a=ok b=ok shut=ok");
    tls_pair_run(&pair);
    assert_events(&pair.server.events, "read(1000) read(2000) ended input-closed");
    for (int i = 0; i < 3; i++) {
        tls_side_send_text(&pair.server, "answer");
        tls_pair_run(&pair);
        assert_events(&pair.client.events, "read(answer)");
    }
    tls_side_write(&pair.server, tls_pair_bytes(100000), "c");
    shut(&pair.server, "shut");
    tls_pair_run(&pair);
    assert_int_equal(event_log_count(&pair.server.events, "c=ok"), 1);
    assert_int_equal(event_log_count(&pair.server.events, "shut=ok"), 1);
    assert_int_equal(pair.client.received, 100000 + 3 * 6);
    assert_int_equal(event_log_count(&pair.client.events, "ended"), 1);
    assert_int_equal(event_log_count(&pair.client.events, "input-closed"), 1);
    assert_true(weir_channel_is_active(pair.client.channel));
    tls_pair_close(&pair);
}

TEST(tls_half, sends_what_is_held_and_its_end_and_reads_on)
{
    check_half(WEIR_TLS_VERSION_1_3);
    check_half(WEIR_TLS_VERSION_1_2);
}

TEST(tls_half, takes_no_writes_afterwards)
{
    struct tls_pair pair;

    open_half(&pair);
    shut(&pair.client, "shut");
    tls_side_write(&pair.client, tls_pair_bytes(1), "w");
    assert_events(&pair.client.events, "shut=ok w=WEIR_ECLOSED");
    shut(&pair.client, "again");
    assert_events(&pair.client.events, "again=ok");
    tls_pair_close(&pair);
}

TEST(tls_half, is_too_late_after_a_close)
{
    struct tls_pair pair;

    open_pair(&pair, &(const struct tls_pair_options){
                         .client_channel = WEIR_EMBEDDED_OPTIONS(.peer_stays = true)});
    close_channel(&pair.client, NULL);
    shut(&pair.client, "shut");
    assert_events(&pair.client.events, "shut=WEIR_ECLOSED");
    tls_pair_close(&pair);
}

TEST(tls_half, is_too_late_while_a_close_waits)
{
    struct tls_pair pair;

    begin_pair(&pair);
    tls_side_write(&pair.client, tls_pair_bytes(200), "w");
    close_channel(&pair.client, "close");
    shut(&pair.client, "shut");
    assert_events(&pair.client.events, "shut=WEIR_ECLOSED");
    tls_pair_run(&pair);
    weir_embedded_end_input(pair.client.embedded);
    assert_events(&pair.client.events, "handshake(ok) w=ok close=ok inactive");
    tls_pair_close(&pair);
}

TEST(tls_half, waits_as_long_as_the_peer_takes_nothing)
{
    struct tls_pair pair;

    open_pair(&pair, &(const struct tls_pair_options){
                         .server_channel = HALF,
                         .client_channel =
                             WEIR_EMBEDDED_OPTIONS(.socket_space = 10000, .peer_stays = true)});
    tls_side_write(&pair.client, tls_pair_bytes(20000), "w");
    shut(&pair.client, "shut");
    tls_pair_advance(&pair, weir_seconds(100));
    assert_events(&pair.client.events, "");
    weir_embedded_make_space(pair.client.embedded, 50000);
    assert_events(&pair.client.events, "w=ok shut=ok");
    tls_pair_run(&pair);
    assert_int_equal(pair.server.received, 20000);
    assert_int_equal(event_log_count(&pair.server.events, "ended"), 1);
    tls_pair_close(&pair);
}

TEST(tls_half, waits_behind_what_other_handlers_hold)
{
    weir_traffic *traffic = NULL;
    struct tls_pair pair;

    assert_int_equal(weir_traffic_create(
                         WEIR_TRAFFIC_OPTIONS(.write_rate = 1000, .burst_ns = WEIR_OFF), &traffic),
                     0);
    open_half(&pair);
    assert_int_equal(weir_traffic_shaping_add(pair.client.pipeline, traffic), 0);
    weir_traffic_release(traffic);
    for (int i = 0; i < 3; i++)
        tls_side_write(&pair.client, tls_pair_bytes(1000), i < 2 ? NULL : "w");
    shut(&pair.client, "shut");
    tls_pair_advance(&pair, weir_seconds(1));
    assert_events(&pair.client.events, "");
    tls_pair_advance(&pair, weir_ms(1002));
    assert_events(&pair.client.events, "w=ok shut=ok");
    tls_pair_run(&pair);
    assert_int_equal(pair.server.received, 3000);
    assert_int_equal(event_log_count(&pair.server.events, "ended input-closed"), 1);
    tls_pair_close(&pair);
}

/* ---- during the handshake ---- */

TEST(tls_half, waits_for_the_handshake)
{
    struct tls_pair pair;

    begin_pair(&pair);
    tls_side_write(&pair.client, tls_pair_bytes(200), "w");
    shut(&pair.client, "shut");
    tls_side_write(&pair.client, tls_pair_bytes(200), "late");
    shut(&pair.client, "again");
    assert_events(&pair.client.events, "late=WEIR_ECLOSED");
    tls_pair_run(&pair);
    assert_events(&pair.client.events, "handshake(ok) w=ok shut=ok again=ok");
    assert_events(&pair.server.events, "handshake(ok) read(200) ended input-closed");
    tls_pair_close(&pair);
}

/* The server has something to say: so it is worth a handshake. */
TEST(tls_half, waits_for_the_handshake_also_if_nothing_was_written)
{
    struct tls_pair pair;

    begin_pair(&pair);
    shut(&pair.client, "shut");
    tls_pair_run(&pair);
    assert_events(&pair.client.events, "handshake(ok) shut=ok");
    assert_events(&pair.server.events, "handshake(ok) ended input-closed");
    tls_side_send_text(&pair.server, "welcome");
    tls_pair_run(&pair);
    assert_events(&pair.client.events, "read(welcome)");
    tls_pair_close(&pair);
}

TEST(tls_half, fails_with_the_handshake)
{
    struct tls_pair pair;

    begin_pair(&pair);
    shut(&pair.client, "shut");
    tls_pair_advance(&pair, weir_seconds(10));
    assert_events(&pair.client.events, "shut=ETIMEDOUT handshake(ETIMEDOUT) error(ETIMEDOUT)");
    tls_pair_close(&pair);
}

TEST(tls_half, fails_with_a_close_that_waits_for_no_handshake)
{
    struct tls_pair pair;

    begin_pair(&pair);
    shut(&pair.client, "shut");
    close_channel(&pair.client, "close");
    weir_embedded_end_input(pair.client.embedded);
    assert_events(&pair.client.events,
                  "shut=WEIR_ECLOSED handshake(WEIR_ECLOSED) close=ok inactive");
    tls_pair_close(&pair);
}

TEST(tls_half, goes_before_a_close_that_waits_for_the_handshake)
{
    struct tls_pair pair;

    begin_pair(&pair);
    tls_side_write(&pair.client, tls_pair_bytes(200), "w");
    shut(&pair.client, "shut");
    close_channel(&pair.client, "close");
    tls_pair_run(&pair);
    weir_embedded_end_input(pair.client.embedded);
    assert_events(&pair.client.events, "handshake(ok) w=ok shut=ok close=ok inactive");
    assert_events(&pair.server.events, "handshake(ok) read(200) ended input-closed");
    tls_pair_close(&pair);
}

TEST(tls_half, fails_when_the_handler_is_removed)
{
    struct tls_pair pair;

    begin_pair(&pair);
    shut(&pair.client, "shut");
    assert_int_equal(weir_pipeline_remove(pair.client.pipeline, "tls", NULL), 0);
    weir_embedded_run(pair.client.embedded);
    assert_int_equal(event_log_count(&pair.client.events, "shut=WEIR_ECLOSED"), 1);
    tls_pair_close(&pair);
}

TEST(tls_half, fails_when_the_channel_is_aborted)
{
    struct tls_pair pair;

    begin_pair(&pair);
    tls_side_write(&pair.client, tls_pair_bytes(200), "w");
    shut(&pair.client, "shut");
    weir_channel_abort(pair.client.channel, NULL);
    weir_embedded_run(pair.client.embedded);
    assert_events(&pair.client.events,
                  "handshake(WEIR_ECLOSED) w=WEIR_ECLOSED shut=WEIR_ECLOSED inactive");
    tls_pair_close(&pair);
}

/* ---- where TLS has not begun ---- */

TEST(tls_half, is_nothing_before_the_channel_is_connected)
{
    struct tls_pair pair;

    tls_pair_prepare(&pair, &(const struct tls_pair_options){
                                .client_channel = WEIR_EMBEDDED_OPTIONS(.connect_later = true)});
    assert_int_equal(weir_embedded_register(pair.client.embedded), 0);
    shut(&pair.client, "shut");
    assert_events(&pair.client.events, "shut=ENOTCONN");
    tls_pair_close(&pair);
}

static void open_start_tls(struct tls_pair *pair)
{
    tls_pair_prepare(pair,
                     &(const struct tls_pair_options){.server = WEIR_TLS_OPTIONS(.start_tls = true),
                                                      .server_channel = STAYS,
                                                      .client_channel = HALF});
    assert_int_equal(weir_embedded_register(pair->server.embedded), 0);
}

TEST(tls_half, is_plain_before_the_first_word_of_a_start_tls)
{
    struct tls_pair pair;

    open_start_tls(&pair);
    shut(&pair.server, "shut");
    assert_events(&pair.server.events, "shut=ok");
    assert_null(weir_embedded_read_outbound(pair.server.embedded));
    tls_pair_close(&pair);
}

TEST(tls_half, begins_behind_the_first_word_of_a_start_tls)
{
    struct tls_pair pair;
    weir_msg *msg;

    open_start_tls(&pair);
    tls_side_write(&pair.server, tls_pair_bytes(12), "clear");
    tls_side_write(&pair.server, tls_pair_bytes(200), "w");
    shut(&pair.server, "shut");
    assert_events(&pair.server.events, "clear=ok");
    msg = weir_embedded_read_outbound(pair.server.embedded);
    assert_int_equal(weir_buf_readable(weir_buf_of(msg)), 12);
    weir_msg_release(msg);
    assert_int_equal(weir_embedded_register(pair.client.embedded), 0);
    tls_pair_run(&pair);
    assert_events(&pair.server.events, "handshake(ok) w=ok shut=ok");
    assert_events(&pair.client.events, "handshake(ok) read(200) ended input-closed");
    tls_pair_close(&pair);
}

static void remove_tls(weir_promise *promise, void *side)
{
    (void)promise;
    assert_int_equal(weir_pipeline_remove(((struct tls_side *)side)->pipeline, "tls", NULL), 0);
}

TEST(tls_half, begins_nothing_if_the_handler_goes_when_the_first_word_is_sent)
{
    weir_listener listener = {.fn = remove_tls};
    weir_promise *clear;
    struct tls_pair pair;
    weir_buf *word;
    weir_msg *msg;

    tls_pair_prepare(&pair,
                     &(const struct tls_pair_options){
                         .client = WEIR_TLS_OPTIONS(.server_name = "localhost", .start_tls = true),
                         .client_channel = STAYS});
    assert_int_equal(weir_embedded_register(pair.client.embedded), 0);
    listener.user_data = &pair.client;
    clear = tls_side_promise(&pair.client, "clear");
    weir_promise_listen(clear, &listener);
    assert_int_equal(weir_buf_create_from("go", 2, &word), 0);
    weir_channel_write(pair.client.channel, weir_buf_msg(word), clear);
    weir_promise_release(clear);
    shut(&pair.client, "shut");
    msg = weir_embedded_read_outbound(pair.client.embedded);
    assert_int_equal(weir_buf_readable(weir_buf_of(msg)), 2);
    weir_msg_release(msg);
    assert_null(weir_embedded_read_outbound(pair.client.embedded));
    assert_int_equal(event_log_count(&pair.client.events, "shut=WEIR_ECLOSED"), 1);
    tls_pair_close(&pair);
}

/* ---- the close that follows ---- */

TEST(tls_half, is_followed_by_a_close_that_sends_nothing_more)
{
    struct tls_pair pair;

    open_half(&pair);
    shut(&pair.client, "shut");
    tls_pair_run(&pair);
    assert_events(&pair.server.events, "ended input-closed");
    close_channel(&pair.client, "close");
    assert_null(weir_embedded_read_outbound(pair.client.embedded));
    weir_embedded_end_input(pair.client.embedded);
    assert_events(&pair.client.events, "shut=ok close=ok inactive");
    tls_pair_close(&pair);
}

TEST(tls_half, is_followed_by_a_close_that_waits_for_the_peers_end)
{
    struct tls_pair pair;

    open_pair(&pair, &(const struct tls_pair_options){
                         .client = WEIR_TLS_OPTIONS(.server_name = "localhost",
                                                    .peer_close_timeout_ns = weir_seconds(1)),
                         .server_channel = HALF,
                         .client_channel = HALF});
    shut(&pair.client, "shut");
    close_channel(&pair.client, "close");
    tls_pair_run(&pair);
    tls_side_send_text(&pair.server, "not yet");
    tls_pair_run(&pair);
    assert_events(&pair.client.events, "shut=ok read(not yet)");
    close_channel(&pair.server, NULL);
    tls_pair_run(&pair);
    assert_events(&pair.client.events, "ended close=ok inactive");
    tls_pair_close(&pair);
}

TEST(tls_half, is_followed_by_a_close_that_does_not_wait_for_ever)
{
    struct tls_pair pair;

    open_pair(&pair, &(const struct tls_pair_options){
                         .client = WEIR_TLS_OPTIONS(.server_name = "localhost",
                                                    .peer_close_timeout_ns = weir_seconds(1)),
                         .server_channel = HALF,
                         .client_channel = STAYS});
    shut(&pair.client, "shut");
    close_channel(&pair.client, "close");
    tls_pair_advance(&pair, weir_seconds(1) - 1);
    assert_events(&pair.client.events, "shut=ok");
    tls_pair_advance(&pair, 1);
    assert_false(weir_channel_is_open(pair.client.channel));
    weir_embedded_end_input(pair.client.embedded);
    assert_events(&pair.client.events, "close=ok inactive");
    tls_pair_close(&pair);
}

/* ---- what comes afterwards ---- */

/* An answer would come behind our end. */
TEST(tls_half, changes_keys_and_does_not_answer)
{
    struct tls_pair pair;
    SSL *server;

    open_half(&pair);
    shut(&pair.client, "shut");
    tls_pair_run(&pair);
    server = tls_side_state(&pair.server)->session->ssl;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(SSL_key_update(server, SSL_KEY_UPDATE_REQUESTED), 1);
        tls_side_send_text(&pair.server, "new");
        tls_pair_run(&pair);
    }
    assert_events(&pair.client.events, "shut=ok read(new) read(new) read(new)");
    assert_events(&pair.server.events, "ended input-closed");
    tls_pair_close(&pair);
}

TEST(tls_half, reports_of_a_forged_record_and_closes)
{
    weir_buf *forged = NULL;
    struct tls_pair pair;

    open_half(&pair);
    shut(&pair.client, "shut");
    tls_pair_run(&pair);
    assert_int_equal(weir_buf_create_from("\x17\x03\x03\x00\x13 not what was agreed!", 25, &forged),
                     0);
    (void)weir_embedded_write_inbound(pair.client.embedded, weir_buf_msg(forged));
    assert_null(weir_embedded_read_outbound(pair.client.embedded));
    weir_embedded_end_input(pair.client.embedded);
    assert_events(&pair.client.events, "shut=ok error(WEIR_ETLS) inactive");
    tls_pair_close(&pair);
}

TEST(tls_half, reports_that_the_peer_was_cut_off)
{
    struct tls_pair pair;

    open_pair(&pair,
              &(const struct tls_pair_options){.server_channel = HALF, .client_channel = STAYS});
    shut(&pair.client, "shut");
    tls_side_send_text(&pair.server, "some of it");
    tls_pair_run(&pair);
    weir_embedded_end_input(pair.client.embedded);
    assert_events(&pair.client.events, "shut=ok read(some of it) error(WEIR_ECUTOFF) inactive");
    tls_pair_close(&pair);
}

/* Once, whether the stream ends with TLS, later, or not at all. */
TEST(tls_half, reports_the_end_of_the_input_once)
{
    struct tls_pair pair;

    open_half(&pair);
    shut(&pair.client, NULL);
    tls_pair_run(&pair);
    assert_events(&pair.server.events, "ended input-closed");
    weir_embedded_end_input(pair.server.embedded);
    assert_events(&pair.server.events, "");
    tls_side_send_text(&pair.server, "still here");
    tls_pair_run(&pair);
    assert_events(&pair.client.events, "read(still here)");
    tls_pair_close(&pair);
}

/* The default: the peer's end is the end, and what was written before is sent. */
TEST(tls_half, of_the_peer_closes_without_the_option)
{
    struct tls_pair pair;

    open_pair(&pair, &(const struct tls_pair_options){.client_channel = STAYS});
    tls_side_write(&pair.server, tls_pair_bytes(300), "w");
    shut(&pair.client, "shut");
    tls_pair_run(&pair);
    assert_events(&pair.server.events, "ended w=ok inactive");
    assert_events(&pair.client.events, "shut=ok read(300) ended inactive");
    tls_pair_close(&pair);
}

TEST(tls_half, of_both_leaves_the_channel_to_its_handlers)
{
    struct tls_pair pair;

    open_half(&pair);
    shut(&pair.client, "shut");
    shut(&pair.server, "shut");
    tls_pair_run(&pair);
    assert_events(&pair.client.events, "shut=ok ended input-closed");
    assert_events(&pair.server.events, "shut=ok ended input-closed");
    close_channel(&pair.client, "close");
    close_channel(&pair.server, "close");
    assert_events(&pair.client.events, "close=ok inactive");
    assert_events(&pair.server.events, "close=ok inactive");
    tls_pair_close(&pair);
}

/* ---- handlers that do things meanwhile ---- */

static void shut_when_full(weir_ctx *ctx)
{
    weir_shutdown_output(ctx, NULL);
}

/* It comes in the middle of sealing, when the marks are crossed. */
TEST(tls_half, may_be_asked_for_by_who_hears_that_the_marks_are_crossed)
{
    struct tls_pair pair;

    open_pair(&pair,
              &(const struct tls_pair_options){
                  .server_channel = HALF,
                  .client_channel =
                      WEIR_EMBEDDED_OPTIONS(.socket_space = 10000,
                                            .channel = WEIR_CHANNEL_OPTIONS(.low_mark = 100000,
                                                                            .high_mark = 300500))});
    tls_side_write(&pair.client, tls_pair_bytes(300000), "a"); /* too much, with what records add */
    tls_side_write(&pair.client, tls_pair_bytes(10), "b");
    pair.client.on_writability = shut_when_full;
    weir_channel_flush(pair.client.channel);
    pair.client.on_writability = NULL;
    weir_embedded_make_space(pair.client.embedded, 1000000);
    tls_pair_run(&pair);
    assert_int_equal(pair.server.received, 300010);
    assert_int_equal(event_log_count(&pair.client.events, "a=ok"), 1);
    assert_int_equal(event_log_count(&pair.client.events, "b=ok"), 1);
    assert_int_equal(event_log_count(&pair.server.events, "ended input-closed"), 1);
    tls_pair_close(&pair);
}

/* ---- lack of memory ---- */

static bool shut_without(unsigned n)
{
    weir_promise *done;
    struct tls_pair pair;
    bool failed;

    open_half(&pair);
    done = tls_side_promise(&pair.client, "shut");
    tls_side_write(&pair.client, tls_pair_bytes(40000), "a");
    tls_side_write(&pair.client, tls_pair_bytes(10), "b");
    test_memory_fail_at(n);
    weir_channel_shutdown_output(pair.client.channel, done);
    weir_embedded_run(pair.client.embedded);
    failed = test_memory_failed();
    test_memory_fail_at(0);
    tls_pair_run(&pair);
    assert_true(weir_promise_is_done(done));
    assert_true(weir_promise_result(done) < 0 || pair.server.received == 40010);
    assert_int_equal(event_log_count(&pair.client.events, "a="), 1);
    assert_int_equal(event_log_count(&pair.client.events, "b="), 1);
    weir_promise_release(done);
    tls_pair_close(&pair);
    return failed;
}

TEST(tls_half, survives_every_lack_of_memory)
{
    for (unsigned n = 1; shut_without(n); n++)
        ;
}
