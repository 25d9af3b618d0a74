/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nothing is sent before the PROXY header, whichever write comes first: otherwise a client of the
 * proxy could send a header of its own.
 */
#include <errno.h>
#include <string.h>

#include <weir/error.h>
#include <weir/proxy_protocol.h>
#include <weir/transport.h>

#include "support/channel/test_channel.h"
#include "support/executor/log_capture.h"
#include "support/memory.h"
#include "support/transport/connection.h"
#include "support/transport/pair.h"

#define FORGED "PROXY TCP4 6.6.6.6 7.7.7.7 6 7\r\nGET"

static weir_proxy_header *make_header(int version)
{
    weir_proxy_header *header = NULL;
    weir_address source, destination;

    assert_int_equal(weir_address_parse("192.0.2.1:1", &source), 0);
    assert_int_equal(weir_address_parse("192.0.2.2:2", &destination), 0);
    assert_int_equal(
        weir_proxy_header_create(WEIR_PROXY_HEADER_OPTIONS(.version = version, .source = &source,
                                                           .destination = &destination),
                                 &header),
        0);
    return header;
}

/* The expected bytes. */
struct bytes {
    size_t length;
    char data[256];
};

static struct bytes header_bytes(const weir_proxy_header *header)
{
    struct bytes bytes = {0};
    weir_buf *buf = NULL;

    assert_int_equal(weir_buf_create(sizeof(bytes.data), 0, &buf), 0);
    assert_int_equal(weir_proxy_header_write(header, buf), 0);
    bytes.length = weir_buf_readable(buf);
    memcpy(bytes.data, weir_buf_bytes(buf), bytes.length);
    weir_buf_release(buf);
    return bytes;
}

/* ---- on a wire ---- */

/* A client that is about to connect, with a sender and an event recorder behind it. */
static void open_client(struct test_channel *tc, int version)
{
    weir_proxy_header *header = make_header(version);

    tc_open_with(tc, &(const struct wire_options){.idle = true, .silent = true}, NULL);
    assert_int_equal(weir_proxy_sender_add(tc->pipeline, header), 0);
    weir_proxy_header_release(header);
    tc_add(tc, "a");
    tc_start(tc);
    event_log_clear(&tc->events);
}

static void connect_with(struct test_channel *tc, weir_listener_fn *listener)
{
    weir_promise *connected = NULL;
    weir_address address;

    assert_int_equal(weir_address_parse("127.0.0.1:2", &address), 0);
    assert_int_equal(weir_promise_create(tc->stepper.executor, &connected), 0);
    if (listener != NULL)
        assert_int_equal(weir_promise_add_listener(connected, listener, tc), 0);
    weir_channel_connect(tc->channel, &address, NULL, connected);
    tc->wire->is_active = true;
    weir__channel_connected(tc->channel, 0);
    weir_promise_release(connected);
}

/* Asserts that the wire has received the header and this text, and nothing else. */
static void assert_header_and(struct test_channel *tc, int version, const char *text)
{
    weir_proxy_header *header = make_header(version);
    struct bytes bytes = header_bytes(header);

    weir_proxy_header_release(header);
    assert_int_equal(tc->wire->sent_length, bytes.length + strlen(text));
    assert_memory_equal(tc->wire->sent, bytes.data, bytes.length);
    assert_memory_equal(tc->wire->sent + bytes.length, text, strlen(text));
    tc->wire->sent_length = 0;
}

static void write_and_flush(weir_promise *connected, void *tc)
{
    (void)connected;
    tc_write(tc, FORGED, "written");
    weir_channel_flush(((struct test_channel *)tc)->channel);
}

static void write_early(int version)
{
    struct test_channel tc;

    open_client(&tc, version);
    connect_with(&tc, write_and_flush);
    assert_header_and(&tc, version, FORGED);
    assert_events(&tc.events, "a.connect a.write(" FORGED ") a.flush written=ok a.active "
                              "a.request_read");
    assert_int_equal(weir_pipeline_count(tc.pipeline), 1);
    tc_close(&tc);
}

TEST(proxy_sender, precedes_writes_of_a_connect_listener)
{
    write_early(1);
    write_early(2);
}

static void write_only(weir_promise *connected, void *tc)
{
    (void)connected;
    tc_write(tc, "x", NULL);
}

TEST(proxy_sender, precedes_unflushed_writes_of_a_connect_listener)
{
    struct test_channel tc;

    open_client(&tc, 1);
    connect_with(&tc, write_only);
    assert_header_and(&tc, 1, "x"); /* the sender flushes at `active` */
    tc_close(&tc);
}

TEST(proxy_sender, precedes_writes_before_the_connect)
{
    struct test_channel tc;

    open_client(&tc, 1);
    tc_write(&tc, "x", NULL);
    connect_with(&tc, write_only);
    assert_header_and(&tc, 1, "xx");
    tc_close(&tc);
}

/* A flush before the connect fails its writes, including the header. */
TEST(proxy_sender, is_sent_again_if_flushed_before_the_connect)
{
    struct test_channel tc;

    open_client(&tc, 1);
    tc_write(&tc, "x", "lost");
    weir_channel_flush(tc.channel);
    assert_int_equal(event_log_count(&tc.events, "lost=ENOTCONN"), 1);
    connect_with(&tc, write_only);
    assert_header_and(&tc, 1, "x");
    tc_close(&tc);
}

static void shut_output(weir_promise *connected, void *tc)
{
    (void)connected;
    weir_channel_shutdown_output(((struct test_channel *)tc)->channel, NULL);
}

TEST(proxy_sender, precedes_a_half_closure)
{
    struct test_channel tc;

    open_client(&tc, 2);
    connect_with(&tc, shut_output);
    assert_header_and(&tc, 2, "");
    assert_true(weir_channel_is_open(tc.channel));
    tc_close(&tc);
}

static void write_and_close(weir_promise *connected, void *tc)
{
    write_and_flush(connected, tc);
    weir_channel_close(((struct test_channel *)tc)->channel, NULL);
}

TEST(proxy_sender, precedes_a_write_and_a_close)
{
    struct test_channel tc;

    open_client(&tc, 1);
    connect_with(&tc, write_and_close);
    assert_header_and(&tc, 1, FORGED);
    tc_close(&tc);
}

static void abort_it(weir_promise *connected, void *tc)
{
    (void)connected;
    weir_channel_abort(((struct test_channel *)tc)->channel, NULL);
}

TEST(proxy_sender, is_silent_if_the_channel_is_closed_at_once)
{
    struct test_channel tc;

    open_client(&tc, 1);
    connect_with(&tc, abort_it);
    tc_run(&tc);
    assert_int_equal(tc.wire->sent_length, 0);
    assert_int_equal(event_log_count(&tc.events, "a.error"), 0);
    assert_int_equal(event_log_count(&tc.events, "a.active"), 1);
    assert_int_equal(event_log_count(&tc.events, "a.inactive"), 1);
    tc_close(&tc);
}

static unsigned fails_at; /* the allocation that fails */

static void write_without_memory(weir_promise *connected, void *tc)
{
    weir_msg *msg = text_msg("x");

    (void)connected;
    test_memory_fail_at(fails_at);
    weir_channel_write_and_flush(((struct test_channel *)tc)->channel, msg, NULL);
}

/* Without memory for the header, nothing is sent. */
TEST(proxy_sender, is_never_omitted_without_memory)
{
    bool failed = true;
    struct test_channel tc;

    log_capture_start();
    for (fails_at = 1; failed; fails_at++) {
        open_client(&tc, 1);
        connect_with(&tc, write_without_memory);
        failed = test_memory_failed();
        test_memory_fail_at(0);
        if (tc.wire->sent_length > 0)
            assert_memory_equal(tc.wire->sent, "PROXY TCP4 192.0.2.1", 20);
        assert_true(failed || tc.wire->sent_length > 0);
        assert_true(tc.wire->sent_length > 0 || !weir_channel_is_open(tc.channel));
        tc_close(&tc);
    }
    assert_true(fails_at > 3);
}

/* ---- in the process ---- */

static void write_to_pair(weir_promise *connected, void *channel)
{
    assert_int_equal(weir_promise_result(connected), 0);
    weir_channel_write_and_flush(channel, text_msg("GET"), NULL);
}

static void send_in_process(const struct pair_options *options)
{
    weir_proxy_header *header = make_header(1);
    weir_promise *connected = NULL;
    weir_channel *client = NULL;
    struct pair pair;

    pair_open(&pair, options);
    assert_int_equal(weir_inproc_create(NULL, &client), 0);
    assert_int_equal(weir_proxy_sender_add(weir_channel_pipeline(client), header), 0);
    weir_proxy_header_release(header);
    weir_channel_register(client, pair.near.executor, NULL);
    assert_int_equal(weir_promise_create(pair.near.executor, &connected), 0);
    assert_int_equal(weir_promise_add_listener(connected, write_to_pair, client), 0);
    weir_channel_connect(client, &pair.address, NULL, connected);
    pair_run(&pair);
    assert_events(&pair.events,
                  "server.active server.read(PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\nGET)");
    weir_promise_release(connected);
    pair_end_channel(&pair.near, client);
    pair_run(&pair);
    pair_close(&pair);
}

TEST(proxy_sender, cannot_be_overtaken_in_the_process)
{
    pair_for_both(send_in_process);
}

/* ---- on sockets ---- */

static void collect(weir_ctx *ctx, weir_msg *msg)
{
    struct bytes *bytes = connection_end_of(ctx)->user_data;
    weir_buf *buf = weir_buf_of(msg);
    size_t length = weir_buf_readable(buf);

    if (bytes->length + length <= sizeof(bytes->data)) {
        memcpy(bytes->data + bytes->length, weir_buf_bytes(buf), length);
        bytes->length += length;
    }
    weir_msg_release(msg);
}

static int add_sender(weir_pipeline *pipeline, void *header)
{
    return weir_proxy_sender_add(pipeline, header);
}

static void forge_on(struct connection *connection, int version)
{
    weir_proxy_header *header = make_header(version);
    struct bytes expected = header_bytes(header), received = {0};

    memcpy(expected.data + expected.length, FORGED, strlen(FORGED));
    expected.length += strlen(FORGED);
    connection->server.user_data = &received;
    connection->server.on_read = collect;
    connection_prepare(connection,
                       &(const struct connection_options){.add = add_sender, .arg = header});
    connection_start_and_send(connection, FORGED);
    connection_await_received(&connection->server, expected.length);
    connection_close(connection);
    assert_int_equal(received.length, expected.length);
    assert_memory_equal(received.data, expected.data, expected.length);
    weir_proxy_header_release(header);
}

TEST_EACH_CONNECTION(proxy_sender, of_version_1_cannot_be_overtaken)
{
    forge_on(connection, 1);
}

TEST_EACH_CONNECTION(proxy_sender, of_version_2_cannot_be_overtaken)
{
    forge_on(connection, 2);
}
