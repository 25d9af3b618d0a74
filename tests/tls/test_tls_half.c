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
#include "tls/openssl/session.h"
#include "tls/tls.h"

/* The stream of a peer that we have told our end goes on, as the other one says. */
#define STAYS WEIR_EMBEDDED_OPTIONS(.peer_stays = true)
#define HALF \
    WEIR_EMBEDDED_OPTIONS(.peer_stays = true, .channel = WEIR_CHANNEL_OPTIONS(.half_closure = true))

static void ask(struct duettist *duettist, void (*operation)(weir_channel *, weir_promise *),
                const char *name)
{
    weir_promise *promise = name != NULL ? duet_promise(duettist, name) : NULL;

    operation(duettist->channel, promise);
    weir_promise_release(promise);
    weir_embedded_run(duettist->embedded);
}

static void shut(struct duettist *duettist, const char *name)
{
    ask(duettist, weir_channel_shutdown_output, name);
}

static void close_channel(struct duettist *duettist, const char *name)
{
    ask(duettist, weir_channel_close, name);
}

/* Both have shaken hands, and nobody remembers it. */
static void open_duet(struct duet *duet, const struct duet_options *options)
{
    duet_open(duet, options);
    assert_events(&duet->client.events, "shaken(ok)");
    assert_events(&duet->server.events, "shaken(ok)");
}

static void open_half(struct duet *duet)
{
    open_duet(duet, &(const struct duet_options){.server_channel = HALF, .client_channel = HALF});
}

/* Neither has shaken hands, and the client's first word is on its way. */
static void begin_duet(struct duet *duet)
{
    duet_prepare(duet,
                 &(const struct duet_options){.server_channel = HALF, .client_channel = STAYS});
    assert_int_equal(weir_embedded_register(duet->server.embedded), 0);
    assert_int_equal(weir_embedded_register(duet->client.embedded), 0);
}

/* ---- our own end ---- */

static void check_half(enum weir_tls_version version)
{
    struct duet duet;

    open_duet(&duet, &(const struct duet_options){
                         .client_context =
                             WEIR_TLS_CONTEXT_OPTIONS(.ca_pem = pki()->ca, .max_version = version),
                         .server_channel = HALF,
                         .client_channel = HALF});
    duet_write(&duet.client, duet_bytes(1000), "a");
    weir_channel_flush(duet.client.channel);
    duet_write(&duet.client, duet_bytes(2000), "b"); /* not flushed */
    shut(&duet.client, "shut");
    assert_events(&duet.client.events, "a=ok b=ok shut=ok");
    duet_play(&duet);
    assert_events(&duet.server.events, "read(1000) read(2000) ended input-closed");
    for (int i = 0; i < 3; i++) {
        duet_say(&duet.server, "answer");
        duet_play(&duet);
        assert_events(&duet.client.events, "read(answer)");
    }
    duet_write(&duet.server, duet_bytes(100000), "c");
    shut(&duet.server, "shut");
    duet_play(&duet);
    assert_int_equal(event_log_count(&duet.server.events, "c=ok"), 1);
    assert_int_equal(event_log_count(&duet.server.events, "shut=ok"), 1);
    assert_int_equal(duet.client.received, 100000 + 3 * 6);
    assert_int_equal(event_log_count(&duet.client.events, "ended"), 1);
    assert_int_equal(event_log_count(&duet.client.events, "input-closed"), 1);
    assert_true(weir_channel_is_active(duet.client.channel));
    duet_close(&duet);
}

/* D 87 */
TEST(tls_half, sends_what_is_held_and_its_end_and_reads_on)
{
    check_half(WEIR_TLS_VERSION_1_3);
    check_half(WEIR_TLS_VERSION_1_2);
}

TEST(tls_half, takes_no_writes_afterwards)
{
    struct duet duet;

    open_half(&duet);
    shut(&duet.client, "shut");
    duet_write(&duet.client, duet_bytes(1), "w");
    assert_events(&duet.client.events, "shut=ok w=WEIR_ECLOSED");
    shut(&duet.client, "again");
    assert_events(&duet.client.events, "again=ok");
    duet_close(&duet);
}

/* D 88 */
TEST(tls_half, is_too_late_after_a_close)
{
    struct duet duet;

    open_duet(&duet, &(const struct duet_options){.client_channel =
                                                      WEIR_EMBEDDED_OPTIONS(.peer_stays = true)});
    close_channel(&duet.client, NULL);
    shut(&duet.client, "shut");
    assert_events(&duet.client.events, "shut=WEIR_ECLOSED");
    duet_close(&duet);
}

TEST(tls_half, is_too_late_while_a_close_waits)
{
    struct duet duet;

    begin_duet(&duet);
    duet_write(&duet.client, duet_bytes(200), "w");
    close_channel(&duet.client, "close");
    shut(&duet.client, "shut");
    assert_events(&duet.client.events, "shut=WEIR_ECLOSED");
    duet_play(&duet);
    weir_embedded_end_input(duet.client.embedded);
    assert_events(&duet.client.events, "shaken(ok) w=ok close=ok inactive");
    duet_close(&duet);
}

TEST(tls_half, waits_as_long_as_the_peer_takes_nothing)
{
    struct duet duet;

    open_duet(&duet, &(const struct duet_options){
                         .server_channel = HALF,
                         .client_channel =
                             WEIR_EMBEDDED_OPTIONS(.socket_space = 10000, .peer_stays = true)});
    duet_write(&duet.client, duet_bytes(20000), "w");
    shut(&duet.client, "shut");
    duet_advance(&duet, weir_seconds(100));
    assert_events(&duet.client.events, "");
    weir_embedded_make_space(duet.client.embedded, 50000);
    assert_events(&duet.client.events, "w=ok shut=ok");
    duet_play(&duet);
    assert_int_equal(duet.server.received, 20000);
    assert_int_equal(event_log_count(&duet.server.events, "ended"), 1);
    duet_close(&duet);
}

TEST(tls_half, waits_behind_what_other_handlers_hold)
{
    weir_traffic *traffic = NULL;
    struct duet duet;

    assert_int_equal(weir_traffic_create(
                         WEIR_TRAFFIC_OPTIONS(.write_rate = 1000, .burst_ns = WEIR_OFF), &traffic),
                     0);
    open_half(&duet);
    assert_int_equal(weir_traffic_shaping_add(duet.client.pipeline, traffic), 0);
    weir_traffic_release(traffic);
    for (int i = 0; i < 3; i++)
        duet_write(&duet.client, duet_bytes(1000), i < 2 ? NULL : "w");
    shut(&duet.client, "shut");
    duet_advance(&duet, weir_seconds(1));
    assert_events(&duet.client.events, "");
    duet_advance(&duet, weir_ms(1002));
    assert_events(&duet.client.events, "w=ok shut=ok");
    duet_play(&duet);
    assert_int_equal(duet.server.received, 3000);
    assert_int_equal(event_log_count(&duet.server.events, "ended input-closed"), 1);
    duet_close(&duet);
}

/* ---- during the handshake ---- */

TEST(tls_half, waits_for_the_handshake)
{
    struct duet duet;

    begin_duet(&duet);
    duet_write(&duet.client, duet_bytes(200), "w");
    shut(&duet.client, "shut");
    duet_write(&duet.client, duet_bytes(200), "late");
    shut(&duet.client, "again");
    assert_events(&duet.client.events, "late=WEIR_ECLOSED");
    duet_play(&duet);
    assert_events(&duet.client.events, "shaken(ok) w=ok shut=ok again=ok");
    assert_events(&duet.server.events, "shaken(ok) read(200) ended input-closed");
    duet_close(&duet);
}

/* The server has something to say: so it is worth a handshake. */
TEST(tls_half, waits_for_the_handshake_also_if_nothing_was_written)
{
    struct duet duet;

    begin_duet(&duet);
    shut(&duet.client, "shut");
    duet_play(&duet);
    assert_events(&duet.client.events, "shaken(ok) shut=ok");
    assert_events(&duet.server.events, "shaken(ok) ended input-closed");
    duet_say(&duet.server, "welcome");
    duet_play(&duet);
    assert_events(&duet.client.events, "read(welcome)");
    duet_close(&duet);
}

TEST(tls_half, fails_with_the_handshake)
{
    struct duet duet;

    begin_duet(&duet);
    shut(&duet.client, "shut");
    duet_advance(&duet, weir_seconds(10));
    assert_events(&duet.client.events, "shut=ETIMEDOUT shaken(ETIMEDOUT) error(ETIMEDOUT)");
    duet_close(&duet);
}

TEST(tls_half, fails_with_a_close_that_waits_for_no_handshake)
{
    struct duet duet;

    begin_duet(&duet);
    shut(&duet.client, "shut");
    close_channel(&duet.client, "close");
    weir_embedded_end_input(duet.client.embedded);
    assert_events(&duet.client.events, "shut=WEIR_ECLOSED shaken(WEIR_ECLOSED) close=ok inactive");
    duet_close(&duet);
}

TEST(tls_half, goes_before_a_close_that_waits_for_the_handshake)
{
    struct duet duet;

    begin_duet(&duet);
    duet_write(&duet.client, duet_bytes(200), "w");
    shut(&duet.client, "shut");
    close_channel(&duet.client, "close");
    duet_play(&duet);
    weir_embedded_end_input(duet.client.embedded);
    assert_events(&duet.client.events, "shaken(ok) w=ok shut=ok close=ok inactive");
    assert_events(&duet.server.events, "shaken(ok) read(200) ended input-closed");
    duet_close(&duet);
}

TEST(tls_half, fails_when_the_handler_is_removed)
{
    struct duet duet;

    begin_duet(&duet);
    shut(&duet.client, "shut");
    assert_int_equal(weir_pipeline_remove(duet.client.pipeline, "tls", NULL), 0);
    weir_embedded_run(duet.client.embedded);
    assert_int_equal(event_log_count(&duet.client.events, "shut=WEIR_ECLOSED"), 1);
    duet_close(&duet);
}

TEST(tls_half, fails_when_the_channel_is_aborted)
{
    struct duet duet;

    begin_duet(&duet);
    duet_write(&duet.client, duet_bytes(200), "w");
    shut(&duet.client, "shut");
    weir_channel_abort(duet.client.channel, NULL);
    weir_embedded_run(duet.client.embedded);
    assert_events(&duet.client.events,
                  "shaken(WEIR_ECLOSED) w=WEIR_ECLOSED shut=WEIR_ECLOSED inactive");
    duet_close(&duet);
}

/* ---- where TLS has not begun ---- */

TEST(tls_half, is_nothing_before_the_channel_is_connected)
{
    struct duet duet;

    duet_prepare(&duet, &(const struct duet_options){
                            .client_channel = WEIR_EMBEDDED_OPTIONS(.not_active = true)});
    assert_int_equal(weir_embedded_register(duet.client.embedded), 0);
    shut(&duet.client, "shut");
    assert_events(&duet.client.events, "shut=ENOTCONN");
    duet_close(&duet);
}

static void open_start_tls(struct duet *duet)
{
    duet_prepare(duet, &(const struct duet_options){.server = WEIR_TLS_OPTIONS(.start_tls = true),
                                                    .server_channel = STAYS,
                                                    .client_channel = HALF});
    assert_int_equal(weir_embedded_register(duet->server.embedded), 0);
}

TEST(tls_half, is_plain_before_the_first_word_of_a_start_tls)
{
    struct duet duet;

    open_start_tls(&duet);
    shut(&duet.server, "shut");
    assert_events(&duet.server.events, "shut=ok");
    assert_null(weir_embedded_read_outbound(duet.server.embedded));
    duet_close(&duet);
}

TEST(tls_half, begins_behind_the_first_word_of_a_start_tls)
{
    struct duet duet;
    weir_msg *msg;

    open_start_tls(&duet);
    duet_write(&duet.server, duet_bytes(12), "clear");
    duet_write(&duet.server, duet_bytes(200), "w");
    shut(&duet.server, "shut");
    assert_events(&duet.server.events, "clear=ok");
    msg = weir_embedded_read_outbound(duet.server.embedded);
    assert_int_equal(weir_buf_readable(weir_buf_of(msg)), 12);
    weir_msg_release(msg);
    assert_int_equal(weir_embedded_register(duet.client.embedded), 0);
    duet_play(&duet);
    assert_events(&duet.server.events, "shaken(ok) w=ok shut=ok");
    assert_events(&duet.client.events, "shaken(ok) read(200) ended input-closed");
    duet_close(&duet);
}

static void remove_tls(weir_promise *promise, void *duettist)
{
    (void)promise;
    assert_int_equal(weir_pipeline_remove(((struct duettist *)duettist)->pipeline, "tls", NULL), 0);
}

TEST(tls_half, begins_nothing_if_the_handler_goes_when_the_first_word_is_sent)
{
    weir_listener listener = {.fn = remove_tls};
    weir_promise *clear;
    struct duet duet;
    weir_buf *word;
    weir_msg *msg;

    duet_prepare(&duet,
                 &(const struct duet_options){
                     .client = WEIR_TLS_OPTIONS(.server_name = "localhost", .start_tls = true),
                     .client_channel = STAYS});
    assert_int_equal(weir_embedded_register(duet.client.embedded), 0);
    listener.user_data = &duet.client;
    clear = duet_promise(&duet.client, "clear");
    weir_promise_listen(clear, &listener);
    assert_int_equal(weir_buf_create_from("go", 2, &word), 0);
    weir_channel_write(duet.client.channel, weir_buf_msg(word), clear);
    weir_promise_release(clear);
    shut(&duet.client, "shut");
    msg = weir_embedded_read_outbound(duet.client.embedded);
    assert_int_equal(weir_buf_readable(weir_buf_of(msg)), 2);
    weir_msg_release(msg);
    assert_null(weir_embedded_read_outbound(duet.client.embedded));
    assert_int_equal(event_log_count(&duet.client.events, "shut=WEIR_ECLOSED"), 1);
    duet_close(&duet);
}

/* ---- the close that follows ---- */

TEST(tls_half, is_followed_by_a_close_that_sends_nothing_more)
{
    struct duet duet;

    open_half(&duet);
    shut(&duet.client, "shut");
    duet_play(&duet);
    assert_events(&duet.server.events, "ended input-closed");
    close_channel(&duet.client, "close");
    assert_null(weir_embedded_read_outbound(duet.client.embedded));
    weir_embedded_end_input(duet.client.embedded);
    assert_events(&duet.client.events, "shut=ok close=ok inactive");
    duet_close(&duet);
}

TEST(tls_half, is_followed_by_a_close_that_waits_for_the_peers_end)
{
    struct duet duet;

    open_duet(&duet, &(const struct duet_options){
                         .client = WEIR_TLS_OPTIONS(.server_name = "localhost",
                                                    .peer_close_timeout_ns = weir_seconds(1)),
                         .server_channel = HALF,
                         .client_channel = HALF});
    shut(&duet.client, "shut");
    close_channel(&duet.client, "close");
    duet_play(&duet);
    duet_say(&duet.server, "not yet");
    duet_play(&duet);
    assert_events(&duet.client.events, "shut=ok read(not yet)");
    close_channel(&duet.server, NULL);
    duet_play(&duet);
    assert_events(&duet.client.events, "ended close=ok inactive");
    duet_close(&duet);
}

TEST(tls_half, is_followed_by_a_close_that_does_not_wait_for_ever)
{
    struct duet duet;

    open_duet(&duet, &(const struct duet_options){
                         .client = WEIR_TLS_OPTIONS(.server_name = "localhost",
                                                    .peer_close_timeout_ns = weir_seconds(1)),
                         .server_channel = HALF,
                         .client_channel = STAYS});
    shut(&duet.client, "shut");
    close_channel(&duet.client, "close");
    duet_advance(&duet, weir_seconds(1) - 1);
    assert_events(&duet.client.events, "shut=ok");
    duet_advance(&duet, 1);
    assert_false(weir_channel_is_open(duet.client.channel));
    weir_embedded_end_input(duet.client.embedded);
    assert_events(&duet.client.events, "close=ok inactive");
    duet_close(&duet);
}

/* ---- what comes afterwards ---- */

/* An answer would come behind our end. */
TEST(tls_half, changes_keys_and_does_not_answer)
{
    struct duet duet;
    SSL *server;

    open_half(&duet);
    shut(&duet.client, "shut");
    duet_play(&duet);
    server = ((weir__openssl_session *)(void *)duet_tls(&duet.server)->session)->ssl;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(SSL_key_update(server, SSL_KEY_UPDATE_REQUESTED), 1);
        duet_say(&duet.server, "new");
        duet_play(&duet);
    }
    assert_events(&duet.client.events, "shut=ok read(new) read(new) read(new)");
    assert_events(&duet.server.events, "ended input-closed");
    duet_close(&duet);
}

TEST(tls_half, tells_of_a_forged_record_and_closes)
{
    weir_buf *forged = NULL;
    struct duet duet;

    open_half(&duet);
    shut(&duet.client, "shut");
    duet_play(&duet);
    assert_int_equal(weir_buf_create_from("\x17\x03\x03\x00\x13 not what was agreed!", 25, &forged),
                     0);
    (void)weir_embedded_write_inbound(duet.client.embedded, weir_buf_msg(forged));
    assert_null(weir_embedded_read_outbound(duet.client.embedded));
    weir_embedded_end_input(duet.client.embedded);
    assert_events(&duet.client.events, "shut=ok error(WEIR_ETLS) inactive");
    duet_close(&duet);
}

TEST(tls_half, tells_that_the_peer_was_cut_off)
{
    struct duet duet;

    open_duet(&duet, &(const struct duet_options){.server_channel = HALF, .client_channel = STAYS});
    shut(&duet.client, "shut");
    duet_say(&duet.server, "some of it");
    duet_play(&duet);
    weir_embedded_end_input(duet.client.embedded);
    assert_events(&duet.client.events, "shut=ok read(some of it) error(WEIR_ECUTOFF) inactive");
    duet_close(&duet);
}

/* D 89: once, whether the stream ends with TLS, later, or not at all. */
TEST(tls_half, tells_the_end_of_the_input_once)
{
    struct duet duet;

    open_half(&duet);
    shut(&duet.client, NULL);
    duet_play(&duet);
    assert_events(&duet.server.events, "ended input-closed");
    weir_embedded_end_input(duet.server.embedded);
    assert_events(&duet.server.events, "");
    duet_say(&duet.server, "still here");
    duet_play(&duet);
    assert_events(&duet.client.events, "read(still here)");
    duet_close(&duet);
}

/* The default: the peer's end is the end, and what was written before is sent. */
TEST(tls_half, of_the_peer_closes_without_the_option)
{
    struct duet duet;

    open_duet(&duet, &(const struct duet_options){.client_channel = STAYS});
    duet_write(&duet.server, duet_bytes(300), "w");
    shut(&duet.client, "shut");
    duet_play(&duet);
    assert_events(&duet.server.events, "ended w=ok inactive");
    assert_events(&duet.client.events, "shut=ok read(300) ended inactive");
    duet_close(&duet);
}

TEST(tls_half, of_both_leaves_the_channel_to_its_handlers)
{
    struct duet duet;

    open_half(&duet);
    shut(&duet.client, "shut");
    shut(&duet.server, "shut");
    duet_play(&duet);
    assert_events(&duet.client.events, "shut=ok ended input-closed");
    assert_events(&duet.server.events, "shut=ok ended input-closed");
    close_channel(&duet.client, "close");
    close_channel(&duet.server, "close");
    assert_events(&duet.client.events, "close=ok inactive");
    assert_events(&duet.server.events, "close=ok inactive");
    duet_close(&duet);
}

/* ---- handlers that do things meanwhile ---- */

static void shut_when_full(weir_ctx *ctx)
{
    weir_shutdown_output(ctx, NULL);
}

/* It comes in the middle of sealing, when the marks are crossed. */
TEST(tls_half, may_be_asked_for_by_who_hears_that_the_marks_are_crossed)
{
    struct duet duet;

    open_duet(&duet,
              &(const struct duet_options){
                  .server_channel = HALF,
                  .client_channel =
                      WEIR_EMBEDDED_OPTIONS(.socket_space = 10000,
                                            .channel = WEIR_CHANNEL_OPTIONS(.low_mark = 100000,
                                                                            .high_mark = 300500))});
    duet_write(&duet.client, duet_bytes(300000), "a"); /* too much, with what records add */
    duet_write(&duet.client, duet_bytes(10), "b");
    duet.client.on_writability = shut_when_full;
    weir_channel_flush(duet.client.channel);
    duet.client.on_writability = NULL;
    weir_embedded_make_space(duet.client.embedded, 1000000);
    duet_play(&duet);
    assert_int_equal(duet.server.received, 300010);
    assert_int_equal(event_log_count(&duet.client.events, "a=ok"), 1);
    assert_int_equal(event_log_count(&duet.client.events, "b=ok"), 1);
    assert_int_equal(event_log_count(&duet.server.events, "ended input-closed"), 1);
    duet_close(&duet);
}

/* ---- lack of memory ---- */

static bool shut_without(unsigned n)
{
    weir_promise *done;
    struct duet duet;
    bool failed;

    open_half(&duet);
    done = duet_promise(&duet.client, "shut");
    duet_write(&duet.client, duet_bytes(40000), "a");
    duet_write(&duet.client, duet_bytes(10), "b");
    test_memory_fail_at(n);
    weir_channel_shutdown_output(duet.client.channel, done);
    weir_embedded_run(duet.client.embedded);
    failed = test_memory_failed();
    test_memory_fail_at(0);
    duet_play(&duet);
    assert_true(weir_promise_is_done(done));
    assert_true(weir_promise_result(done) < 0 || duet.server.received == 40010);
    assert_int_equal(event_log_count(&duet.client.events, "a="), 1);
    assert_int_equal(event_log_count(&duet.client.events, "b="), 1);
    weir_promise_release(done);
    duet_close(&duet);
    return failed;
}

TEST(tls_half, survives_every_lack_of_memory)
{
    for (unsigned n = 1; shut_without(n); n++)
        ;
}
