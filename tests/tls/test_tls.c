/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The TLS handler between two embedded channels: reading and writing. SslHandlerTest of Netty, and
 * more; the handshake is in test_tls_handshake.c, the ends are in test_tls_closing.c.
 */
#include <weir/tls.h>

#include <errno.h>
#include <string.h>

#include <weir/buf.h>
#include <weir/composite.h>
#include <weir/error.h>

#include "support/executor/log_capture.h"
#include "support/memory.h"
#include "support/tls/pki.h"
#include "support/tls/tls_pair.h"
#include "tls/openssl/internal.h"
#include "tls/tls.h"

/* ---- writing ---- */

TEST(tls, holds_what_is_written_before_the_handshake_is_over)
{
    struct tls_pair pair;

    tls_pair_prepare(
        &pair, &(const struct tls_pair_options){
                   .client_channel =
                       WEIR_EMBEDDED_OPTIONS(.channel = WEIR_CHANNEL_OPTIONS(.low_mark = 5000,
                                                                             .high_mark = 10000))});
    tls_pair_begin(&pair);
    tls_side_write(&pair.client, tls_pair_bytes(6000), "a");
    assert_events(&pair.client.events, "");
    tls_side_write(&pair.client, tls_pair_bytes(6000), "b");
    assert_events(&pair.client.events, "writable(no)");
    weir_channel_flush(pair.client.channel);
    tls_side_write(&pair.client, tls_pair_bytes(200), "c"); /* not flushed */
    tls_pair_run(&pair);
    assert_events(&pair.client.events, "handshake(ok) a=ok b=ok writable(yes)");
    assert_events(&pair.server.events, "handshake(ok) read(12000)");
    weir_channel_flush(pair.client.channel);
    tls_pair_run(&pair);
    assert_events(&pair.client.events, "c=ok");
    assert_int_equal(weir_channel_pending_bytes(pair.client.channel), 0);
    tls_pair_close(&pair);
}

TEST(tls, sends_nothing_but_bytes)
{
    static const weir_msg_type odd_type = {.name = "odd"};
    static weir_msg odd = {.type = &odd_type, .refs = 2};
    struct tls_pair pair;

    tls_pair_open(&pair, NULL);
    tls_side_write(&pair.client, &odd, "odd");
    assert_events(&pair.client.events, "handshake(ok) odd=EINVAL");
    assert_int_equal(weir_msg_refs(&odd), 1);
    tls_pair_close(&pair);
}

TEST(tls, coalesces_small_writes_into_one_record)
{
    struct tls_pair pair;
    uint64_t before;

    tls_pair_open(&pair, NULL);
    before = pair.client.sent;
    for (int i = 0; i < 100; i++)
        tls_side_write(&pair.client, tls_pair_bytes(10), NULL);
    weir_channel_flush(pair.client.channel);
    tls_pair_run(&pair);
    assert_events(&pair.server.events, "handshake(ok) read(1000)");
    assert_int_equal(pair.client.sent - before, 1000 + 22);
    tls_pair_close(&pair);
}

static uint8_t received_bytes[1 << 20];
static size_t received_length;

static void keep_bytes(weir_ctx *ctx, weir_msg *msg)
{
    weir_buf *buf = weir_buf_of(msg);

    (void)ctx;
    assert_true(received_length + weir_buf_readable(buf) <= sizeof(received_bytes));
    memcpy(received_bytes + received_length, weir_buf_bytes(buf), weir_buf_readable(buf));
    received_length += weir_buf_readable(buf);
    weir_msg_release(msg);
}

static void append_expected(uint8_t *expected, size_t *length, weir_msg *msg)
{
    memcpy(expected + *length, weir_buf_bytes(weir_buf_of(msg)),
           weir_buf_readable(weir_buf_of(msg)));
    *length += weir_buf_readable(weir_buf_of(msg));
}

/* Lengths around the borders of records, of what is copied, and of what becomes one buffer. */
TEST(tls, brings_every_byte_of_messages_of_any_length)
{
    static const size_t lengths[] = {1,     4095,  4096,  4097,   1,      16383, 16384, 16385, 5,
                                     5,     16380, 100,   114688, 114689, 3,     0,     32768, 2,
                                     70000, 9,     16384, 0,      200000, 4096,  4096,  12,    1};
    static uint8_t expected[sizeof(received_bytes)];
    size_t length = 0;
    struct tls_pair pair;
    weir_msg *msg;

    tls_pair_open(&pair, NULL);
    received_length = 0;
    pair.server.on_read = keep_bytes;
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        msg = tls_pair_bytes(lengths[i]);
        append_expected(expected, &length, msg);
        tls_side_write(&pair.client, msg, i == 3 || i == 12 ? "w" : NULL);
    }
    weir_channel_flush(pair.client.channel);
    tls_pair_run(&pair);
    assert_int_equal(received_length, length);
    assert_memory_equal(received_bytes, expected, length);
    assert_int_equal(event_log_count(&pair.client.events, "w=ok"), 2);
    assert_int_equal(weir_channel_pending_bytes(pair.client.channel), 0);
    tls_pair_close(&pair);
}

TEST(tls, sends_composites)
{
    static uint8_t expected[sizeof(received_bytes)];
    weir_composite *composite = NULL;
    size_t length = 0;
    struct tls_pair pair;
    weir_msg *msg;

    tls_pair_open(&pair, NULL);
    received_length = 0;
    pair.server.on_read = keep_bytes;
    assert_int_equal(weir_composite_create(SIZE_MAX, &composite), 0);
    for (size_t i = 0; i < 40; i++) {
        msg = tls_pair_bytes(i % 5 == 0 ? 20000 : i);
        append_expected(expected, &length, msg);
        assert_int_equal(weir_composite_add(composite, msg), 0);
    }
    tls_side_write(&pair.client, weir_composite_msg(composite), "c");
    weir_channel_flush(pair.client.channel);
    tls_pair_run(&pair);
    assert_int_equal(received_length, length);
    assert_memory_equal(received_bytes, expected, length);
    assert_events(&pair.client.events, "handshake(ok) writable(no) c=ok writable(yes)");
    tls_pair_close(&pair);
}

TEST(tls, completes_promises_in_order_when_their_last_byte_has_been_sent)
{
    struct tls_pair pair;

    tls_pair_open(&pair, &(const struct tls_pair_options){
                             .client_channel = WEIR_EMBEDDED_OPTIONS(.socket_space = 10000)});
    event_log_clear(&pair.client.events);
    tls_side_write(&pair.client, tls_pair_bytes(10), "a");
    tls_side_write(&pair.client, tls_pair_bytes(0), "b");
    tls_side_write(&pair.client, tls_pair_bytes(20), NULL);
    tls_side_write(&pair.client, tls_pair_bytes(150000), "c");
    tls_side_write(&pair.client, tls_pair_bytes(30), "d");
    tls_side_write(&pair.client, tls_pair_bytes(0), "e");
    weir_channel_flush(pair.client.channel);
    assert_int_equal(event_log_count(&pair.client.events, "a="),
                     0); /* with the first 114688 bytes */
    weir_embedded_make_space(pair.client.embedded, 115000);
    assert_int_equal(event_log_count(&pair.client.events, "a=ok"), 1);
    assert_int_equal(event_log_count(&pair.client.events, "b=ok"), 1);
    assert_int_equal(event_log_count(&pair.client.events, "c="), 0);
    weir_embedded_make_space(pair.client.embedded, 100000);
    tls_pair_run(&pair);
    assert_events(&pair.client.events, "writable(no) a=ok b=ok c=ok d=ok e=ok writable(yes)");
    assert_int_equal(pair.server.received, 150060);
    tls_pair_close(&pair);
}

TEST(tls, completes_empty_writes_that_are_alone)
{
    struct tls_pair pair;

    tls_pair_open(&pair, NULL);
    tls_side_write(&pair.client, tls_pair_bytes(0), "a");
    tls_side_write(&pair.client, tls_pair_bytes(0), "b");
    weir_channel_flush(pair.client.channel);
    assert_events(&pair.client.events, "handshake(ok) a=ok b=ok");
    tls_pair_close(&pair);
}

TEST(tls, does_not_send_what_was_cancelled_before_the_flush)
{
    struct tls_pair pair;
    weir_promise *promise;

    tls_pair_open(&pair, NULL);
    promise = tls_side_promise(&pair.client, "b");
    tls_side_write(&pair.client, tls_pair_bytes(3), "a");
    weir_channel_write(pair.client.channel, tls_pair_bytes(1000), promise);
    tls_side_write(&pair.client, tls_pair_bytes(3), "c");
    assert_int_equal(weir_promise_cancel(promise), 0);
    weir_channel_flush(pair.client.channel);
    tls_pair_run(&pair);
    assert_events(&pair.client.events, "handshake(ok) b=WEIR_ECANCELED a=ok c=ok");
    assert_int_equal(pair.server.received, 6);
    weir_promise_release(promise);
    tls_pair_close(&pair);
}

/* D: marks hold through TLS. What is held counts, then what is sealed does: nothing in between. */
TEST(tls, counts_against_the_marks_without_a_gap)
{
    struct tls_pair pair;

    tls_pair_open(
        &pair, &(const struct tls_pair_options){
                   .client_channel =
                       WEIR_EMBEDDED_OPTIONS(.socket_space = 2000,
                                             .channel = WEIR_CHANNEL_OPTIONS(.low_mark = 5000,
                                                                             .high_mark = 10000))});
    event_log_clear(&pair.client.events);
    tls_side_write(&pair.client, tls_pair_bytes(9000), NULL);
    assert_events(&pair.client.events, "");
    tls_side_write(&pair.client, tls_pair_bytes(9000), NULL);
    assert_events(&pair.client.events, "writable(no)");
    weir_channel_flush(pair.client.channel);
    weir_embedded_run(pair.client.embedded);
    assert_events(&pair.client.events, "");
    assert_true(weir_channel_pending_bytes(pair.client.channel) > 16000);
    weir_embedded_make_space(pair.client.embedded, 100000);
    assert_events(&pair.client.events, "writable(yes)");
    assert_int_equal(weir_channel_pending_bytes(pair.client.channel), 0);
    tls_pair_close(&pair);
}

/* Beyond the cap writes fail one by one, and those that were taken arrive: no record is missing. */
TEST(tls, takes_no_more_writes_than_the_cap_allows)
{
    unsigned taken;
    struct tls_pair pair;

    tls_pair_open(
        &pair,
        &(const struct tls_pair_options){
            .client_channel =
                WEIR_EMBEDDED_OPTIONS(.channel = WEIR_CHANNEL_OPTIONS(.write_cap = 100000))});
    for (int i = 0; i < 20; i++)
        tls_side_write(&pair.client, tls_pair_bytes(10000), "w");
    taken = 20 - event_log_count(&pair.client.events, "w=WEIR_EFULL");
    assert_int_equal(taken, 9);
    weir_channel_flush(pair.client.channel);
    tls_pair_run(&pair);
    assert_int_equal(event_log_count(&pair.client.events, "w=ok"), taken);
    assert_int_equal(pair.server.received, taken * 10000);
    assert_int_equal(event_log_count(&pair.server.events, "error"), 0);
    tls_pair_close(&pair);
}

/* ---- reading ---- */

static void count_complete(weir_ctx *ctx)
{
    event_log_write(&tls_side_of(ctx)->events, "complete");
}

TEST(tls, passes_all_records_of_one_read_on_as_one_message)
{
    struct tls_pair pair;

    tls_pair_open(&pair, NULL);
    event_log_clear(&pair.server.events);
    pair.server.on_read_complete = count_complete;
    pair.is_joined = true;
    for (int i = 0; i < 5; i++)
        tls_side_send_text(&pair.client, "abc");
    tls_pair_run(&pair);
    assert_events(&pair.server.events, "read(abcabcabcabcabc) complete");
    tls_pair_close(&pair);
}

TEST(tls, reads_on_demand)
{
    struct tls_pair pair;

    tls_pair_open(
        &pair,
        &(const struct tls_pair_options){
            .server_channel =
                WEIR_EMBEDDED_OPTIONS(.channel = WEIR_CHANNEL_OPTIONS(.read_on_demand = true))});
    assert_events(&pair.server.events, "handshake(ok)"); /* for which nobody asks */
    pair.piece = 10;
    weir_channel_request_read(pair.server.channel);
    tls_side_send_text(&pair.client, "hello");
    tls_side_send_text(&pair.client, "again");
    tls_pair_run(&pair);
    assert_events(&pair.server.events, "read(hello)");
    weir_channel_request_read(pair.server.channel);
    tls_pair_run(&pair);
    assert_events(&pair.server.events, "read(again)");
    tls_pair_close(&pair);
}

/* The client takes new keys, and wants the server to. */
TEST(tls, goes_on_with_new_keys)
{
    weir__openssl_session *session;
    struct tls_pair pair;

    tls_pair_open(&pair, NULL);
    session = tls_side_state(&pair.client)->session;
    assert_int_equal(SSL_key_update(session->ssl, SSL_KEY_UPDATE_REQUESTED), 1);
    tls_side_send_text(&pair.client, "hello");
    tls_pair_run(&pair);
    assert_events(&pair.server.events, "handshake(ok) read(hello)");
    tls_side_send_text(&pair.server, "you too");
    tls_pair_run(&pair);
    assert_events(&pair.client.events, "handshake(ok) read(you too)");
    tls_pair_close(&pair);
}

/* A flipped bit is an error for the reader, and an alert for the other side. */
TEST(tls, reports_both_of_a_record_that_was_changed)
{
    struct tls_pair pair;
    weir_msg *msg;

    tls_pair_open(&pair, NULL);
    tls_side_send_text(&pair.client, "fine");
    tls_pair_run(&pair);
    tls_side_send_text(&pair.client, "hello");
    msg = weir_embedded_read_outbound(pair.client.embedded);
    weir_buf_of(msg)->data[weir_buf_of(msg)->read + 9] ^= 1;
    (void)weir_embedded_write_inbound(pair.server.embedded, msg);
    tls_side_write(&pair.server, tls_pair_bytes(1), "w");
    tls_pair_run(&pair);
    assert_events(&pair.server.events,
                  "handshake(ok) read(fine) error(WEIR_ETLS) inactive w=WEIR_ECLOSED");
    assert_events(&pair.client.events, "handshake(ok) error(WEIR_ETLSREFUSED) inactive");
    tls_pair_close(&pair);
}

/* ---- handlers that do things meanwhile ---- */

static void write_at_once(weir_ctx *ctx, const weir_tls_handshake *handshake)
{
    (void)handshake;
    weir_write_and_flush(ctx, tls_pair_bytes(5), NULL);
}

TEST(tls, takes_writes_of_who_hears_of_the_handshake)
{
    struct tls_pair pair;

    tls_pair_prepare(&pair, NULL);
    pair.client.on_handshake = write_at_once;
    pair.server.on_handshake = write_at_once;
    pair.client.is_long = pair.server.is_long = true;
    tls_pair_begin(&pair);
    tls_pair_run(&pair);
    assert_int_equal(pair.server.received, 5);
    assert_int_equal(pair.client.received, 5);
    tls_pair_close(&pair);
}

static void close_at_once(weir_ctx *ctx, const weir_tls_handshake *handshake)
{
    (void)handshake;
    weir_close(ctx, NULL);
}

TEST(tls, may_be_closed_by_who_hears_of_the_handshake)
{
    struct tls_pair pair;

    tls_pair_prepare(&pair, NULL);
    pair.client.on_handshake = close_at_once;
    tls_pair_begin(&pair);
    tls_side_write(&pair.client, tls_pair_bytes(1000), "w"); /* not flushed, but before the close */
    tls_pair_run(&pair);
    assert_events(&pair.client.events, "handshake(ok) w=ok inactive");
    assert_events(&pair.server.events, "handshake(ok) read(1000) ended inactive");
    tls_pair_close(&pair);
}

static void close_if_failed(weir_ctx *ctx, const weir_tls_handshake *handshake)
{
    if (weir_tls_handshake_result(handshake) < 0)
        weir_close(ctx, NULL);
}

TEST(tls, may_be_closed_by_who_hears_of_its_failure)
{
    struct tls_pair pair;

    tls_pair_prepare(&pair,
                     &(const struct tls_pair_options){
                         .client_context = WEIR_TLS_CONTEXT_OPTIONS(.ca_pem = pki()->strange_ca)});
    pair.client.on_handshake = close_if_failed;
    tls_pair_begin(&pair);
    tls_pair_run(&pair);
    assert_events(&pair.client.events,
                  "handshake(WEIR_EUNTRUSTED) error(WEIR_EUNTRUSTED) inactive");
    tls_pair_close(&pair);
}

static void echo(weir_ctx *ctx, weir_msg *msg)
{
    weir_write_and_flush(ctx, msg, NULL);
}

TEST(tls, takes_writes_of_who_reads)
{
    struct tls_pair pair;

    tls_pair_open(&pair, NULL);
    pair.server.on_read = echo;
    tls_side_send_text(&pair.client, "hello");
    tls_pair_run(&pair);
    assert_events(&pair.client.events, "handshake(ok) read(hello)");
    tls_pair_close(&pair);
}

static void remove_tls(weir_ctx *ctx, weir_msg *msg)
{
    event_log_write(&tls_side_of(ctx)->events, "removing(%.*s)",
                    (int)weir_buf_readable(weir_buf_of(msg)),
                    (const char *)weir_buf_bytes(weir_buf_of(msg)));
    tls_side_of(ctx)->on_read = NULL;
    weir_msg_release(msg);
    (void)weir_pipeline_remove(weir_ctx_pipeline(ctx), "tls", NULL);
}

/* What comes after it is the next handler's, as it came. */
TEST(tls, may_be_removed_by_who_reads)
{
    struct tls_pair pair;
    weir_buf *plain = NULL;

    tls_pair_open(&pair, NULL);
    pair.server.on_read = remove_tls;
    tls_side_write(&pair.server, tls_pair_bytes(3), "w");
    tls_side_send_text(&pair.client, "hello");
    tls_pair_run(&pair);
    assert_events(&pair.server.events, "handshake(ok) removing(hello) w=WEIR_ECLOSED");
    assert_int_equal(weir_buf_create_from("plain", 5, &plain), 0);
    (void)weir_embedded_write_inbound(pair.server.embedded, weir_buf_msg(plain));
    assert_events(&pair.server.events, "read(plain)");
    tls_pair_close(&pair);
}

/* As with ALPN: a handler added on the handshake event gets all bytes after it. */
static void upper_case(weir_ctx *ctx, weir_msg *msg)
{
    weir_buf *buf = weir_buf_of(msg);

    for (uint8_t *at = buf->data + buf->read; at < weir_buf_space(buf); at++)
        *at = (uint8_t)(*at - 'a' + 'A');
    weir_fire_read(ctx, msg);
}

static void add_upper_case(weir_ctx *ctx, const weir_tls_handshake *handshake)
{
    static const weir_handler handler = {.name = "upper", .read = upper_case};

    (void)handshake;
    assert_int_equal(
        weir_pipeline_add_before(weir_ctx_pipeline(ctx), weir_ctx_name(ctx), &handler, NULL), 0);
}

TEST(tls, lets_who_hears_of_the_handshake_change_the_pipeline)
{
    struct tls_pair pair;

    tls_pair_prepare(&pair, NULL);
    pair.server.on_handshake = add_upper_case;
    tls_pair_begin(&pair);
    tls_side_send_text(&pair.client, "hello"); /* comes together with the end of the handshake */
    tls_pair_run(&pair);
    assert_events(&pair.server.events, "handshake(ok) read(HELLO)");
    tls_pair_close(&pair);
}

/* ---- start-TLS ---- */

TEST(tls, sends_the_first_message_in_clear_if_it_is_to)
{
    struct tls_pair pair;
    weir_buf *go_ahead = NULL;
    weir_msg *msg;

    tls_pair_prepare(
        &pair, &(const struct tls_pair_options){.server = WEIR_TLS_OPTIONS(.start_tls = true)});
    assert_int_equal(weir_embedded_register(pair.server.embedded), 0);
    tls_pair_advance(&pair, weir_seconds(3600)); /* there is no handshake yet that could be late */
    assert_int_equal(weir_buf_create_from("220 go ahead", 12, &go_ahead), 0);
    tls_side_write(&pair.server, weir_buf_msg(go_ahead), "first");
    tls_side_write(&pair.server, tls_pair_bytes(4), "second");
    assert_null(weir_embedded_read_outbound(pair.server.embedded));
    weir_channel_flush(pair.server.channel);
    weir_embedded_run(pair.server.embedded);
    msg = weir_embedded_read_outbound(pair.server.embedded);
    assert_memory_equal(weir_buf_bytes(weir_buf_of(msg)), "220 go ahead", 12);
    weir_msg_release(msg);
    assert_int_equal(weir_embedded_register(pair.client.embedded), 0);
    tls_pair_run(&pair);
    assert_events(&pair.server.events, "first=ok handshake(ok) second=ok");
    assert_int_equal(pair.client.received, 4);
    tls_pair_close(&pair);
}

/* A client that does not wait for the go-ahead: its hello is kept. */
TEST(tls, keeps_what_comes_before_the_first_message)
{
    struct tls_pair pair;
    weir_msg *msg;

    tls_pair_prepare(
        &pair, &(const struct tls_pair_options){.server = WEIR_TLS_OPTIONS(.start_tls = true)});
    tls_pair_begin(&pair);
    tls_pair_run(&pair);
    assert_events(&pair.server.events, "");
    tls_side_write(&pair.server, tls_pair_bytes(4), "first");
    weir_channel_flush(pair.server.channel);
    weir_embedded_run(pair.server.embedded);
    msg = weir_embedded_read_outbound(pair.server.embedded);
    assert_int_equal(weir_buf_readable(weir_buf_of(msg)), 4);
    weir_msg_release(msg);
    tls_pair_run(&pair);
    assert_events(&pair.server.events, "first=ok handshake(ok)");
    tls_pair_close(&pair);
}

/* ---- memory ---- */

static void exchange(struct tls_pair *pair, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        tls_side_send_text(&pair->client, "a message");
        tls_pair_run(pair);
    }
    event_log_clear(&pair->client.events);
    event_log_clear(&pair->server.events);
}

/* Buffers come from the pool, nodes from the thread: nothing else is needed for a message. */
TEST(tls, allocates_nothing_for_a_message)
{
    struct tls_pair pair;
    size_t before;

    tls_pair_open(&pair, NULL);
    pair.server.on_read = echo;
    exchange(&pair, 20);
    before = test_memory_allocations();
    exchange(&pair, 200);
    assert_int_equal(test_memory_allocations() - before, 0);
    tls_pair_close(&pair);
}

/* ---- without memory ---- */

TEST(tls, is_not_added_without_memory)
{
    weir_tls_context *context = NULL;
    weir_embedded *embedded = NULL;
    int err = -ENOMEM;

    assert_int_equal(weir_embedded_create(NULL, &embedded), 0);
    assert_int_equal(
        weir_tls_client_create(WEIR_TLS_CONTEXT_OPTIONS(.ca_pem = pki()->ca), &context), 0);
    for (unsigned n = 1; err < 0; n++) {
        test_memory_fail_at(n);
        err = weir_tls_add_with(weir_embedded_pipeline(embedded), context,
                                WEIR_TLS_OPTIONS(.server_name = "localhost"));
        if (err < 0)
            assert_int_equal(err, -ENOMEM);
        test_memory_fail_at(0);
    }
    weir_embedded_release(embedded);
    weir_tls_context_release(context);
}

#define WRITES 6

/* After a handshake the server's certificate is known. */
static void check_server(weir_ctx *ctx, const weir_tls_handshake *handshake)
{
    (void)ctx;
    if (weir_tls_handshake_result(handshake) == 0)
        assert_non_null(weir_tls_handshake_peer(handshake));
}

/* A whole connection: whatever fails, each event is reported once. */
static bool live_without_memory(unsigned n)
{
    weir_promise *promises[WRITES];
    weir_msg *msgs[WRITES];
    struct tls_pair pair;
    bool failed, begun;

    tls_pair_prepare(&pair, NULL);
    pair.client.on_handshake = check_server;
    for (size_t i = 0; i < WRITES; i++) {
        msgs[i] = tls_pair_bytes(i == 4 ? 200000 : 10);
        assert_int_equal(weir_promise_create(weir_executor_immediate(), &promises[i]), 0);
    }
    test_memory_fail_at(n);
    begun = weir_embedded_register(pair.server.embedded) == 0 &&
            weir_embedded_register(pair.client.embedded) == 0;
    for (size_t i = 0; i < WRITES; i++)
        weir_channel_write(pair.client.channel, msgs[i], promises[i]);
    weir_channel_flush(pair.client.channel);
    tls_pair_run(&pair);
    weir_channel_close(pair.client.channel, NULL);
    tls_pair_run(&pair);
    tls_pair_advance(&pair, weir_seconds(20));
    tls_pair_run(&pair);
    failed = test_memory_failed();
    test_memory_fail_at(0);
    if (begun) {
        assert_int_equal(event_log_count(&pair.client.events, "handshake("), 1);
        assert_int_equal(event_log_count(&pair.server.events, "handshake("), 1);
        assert_true(event_log_count(&pair.client.events, "error(") <= 1);
    }
    if (!failed)
        assert_int_equal(pair.server.received, 200050);
    tls_pair_close(&pair);
    for (size_t i = 0; i < WRITES; i++) {
        assert_true(weir_promise_is_done(promises[i]));
        assert_int_not_equal(weir_promise_result(promises[i]), WEIR_EABANDONED);
        weir_promise_release(promises[i]);
    }
    return failed;
}

TEST(tls, survives_every_lack_of_memory)
{
    for (unsigned n = 1; live_without_memory(n); n++)
        ;
}
