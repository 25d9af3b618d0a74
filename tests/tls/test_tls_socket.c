/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS over sockets, on every backend. ./dev soak tls does more of it.
 */
#include <weir/buf.h>
#include <weir/error.h>
#include <weir/loop.h>
#include <weir/tls.h>
#include <weir/tls_context.h>

#include "support/channel/test_channel.h"
#include "support/executor/global_executor.h"
#include "support/executor/log_capture.h"
#include "support/tls/pki.h"
#include "support/tls/tls_line.h"
#include "support/transport/connection.h"
#include "support/transport/echo.h"

static int add_tls(weir_pipeline *pipeline, bool is_server, void *arg)
{
    struct tls_setup *setup = arg;

    return weir_tls_add_with(pipeline, is_server ? setup->server : setup->client,
                             WEIR_TLS_OPTIONS(.server_name = "localhost", .offload = setup->offload,
                                              .place = WEIR_PLACE(.group = setup->group)));
}

/* ---- echo ---- */

/* TSan slows each byte down, and finds races by the number of hand-overs, not of bytes. */
#if defined(__SANITIZE_THREAD__)
#define SCALE 32
#else
#define SCALE 1
#endif

static void echo_all(struct connection *connection, struct tls_setup *setup, unsigned connections,
                     size_t bytes)
{
    struct echo echo = {
        .connections = connections, .seed = 1, .prepare = add_tls, .prepare_arg = setup};

    assert_int_equal(echo_open(&echo, connection->far.group, connection->near.group), 0);
    assert_true(echo_exchange(&echo, bytes));
    assert_true(echo_close(&echo));
    assert_int_equal(echo.received, connections * (uint64_t)bytes);
    assert_int_equal(echo.wrong, 0);
    assert_int_equal(echo.errors, 0);
}

TEST_EACH_PAIR(tls_socket, echoes_every_byte)
{
    struct tls_setup setup;

    tls_setup_open(&setup);
    echo_all(connection, &setup, 8, (256 << 10) / SCALE);
    tls_setup_close(&setup);
}

TEST_EACH_CONNECTION(tls_socket, echoes_much)
{
    struct tls_setup setup;

    tls_setup_open(&setup);
    echo_all(connection, &setup, 1, (16 << 20) / SCALE);
    tls_setup_close(&setup);
}

TEST_EACH_CONNECTION(tls_socket, echoes_from_remote_handlers)
{
    struct tls_setup setup;

    tls_setup_open(&setup);
    setup.group = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 2));
    echo_all(connection, &setup, 8, 128 << 10);
    tls_line_end_loops(connection);
    tls_setup_close(&setup);
}

TEST_EACH_CONNECTION(tls_socket, offloads_the_handshake)
{
    struct tls_setup setup;

    tls_setup_open(&setup);
    setup.offload = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 2));
    echo_all(connection, &setup, 8, 64 << 10);
    tls_line_end_loops(connection);
    tls_setup_close(&setup);
}

TEST_EACH_CONNECTION(tls_socket, offloads_the_handshake_of_remote_handlers)
{
    struct tls_setup setup;

    tls_setup_open(&setup);
    setup.group = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 2));
    setup.offload = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 2));
    echo_all(connection, &setup, 8, 64 << 10);
    tls_line_end_loops(connection);
    tls_setup_close(&setup);
}

#define HIGH_MARK 16384
#define RECEIVE_MAX 16384
#define COST 208 /* of a message, besides its bytes */

/* What is queued for a client that does not read is bounded by the marks, plus one read and the
 * overhead of records. */
TEST_EACH_CONNECTION(tls_socket, echoes_within_its_marks)
{
    struct tls_setup setup;
    struct echo echo = {.connections = 20,
                        .low_mark = HIGH_MARK / 2,
                        .high_mark = HIGH_MARK,
                        .receive_max = RECEIVE_MAX,
                        .socket_buffer = 8192,
                        .pauses = true,
                        .seed = 1,
                        .prepare = add_tls,
                        .prepare_arg = &setup};

    tls_setup_open(&setup);
    assert_int_equal(echo_open(&echo, connection->far.group, connection->near.group), 0);
    assert_true(echo_exchange(&echo, 128 << 10));
    assert_true(echo_close(&echo));
    assert_int_equal(echo.wrong, 0);
    assert_int_equal(echo.errors, 0);
    assert_true(echo.most_pending <= HIGH_MARK + 2 * (RECEIVE_MAX + COST));
    tls_setup_close(&setup);
}

/* ---- one line ---- */

static void open_tls_line(struct connection *connection, const struct connection_options *options)
{
    tls_line_open(connection, options, tls_line_add_client);
}

static int nothing(void *arg, int status, void **ret_value)
{
    (void)arg;
    (void)ret_value;
    return status;
}

/* What its loop was given before has been done when this returns. */
static void pass_by(weir_channel *channel)
{
    weir_promise *there;

    assert_int_equal(weir_submit(weir_channel_executor(channel), nothing, NULL, &there), 0);
    assert_int_equal(connection_result(there), 0);
}

TEST_EACH_PAIR(tls_socket, delivers_data_and_close_notify)
{
    open_tls_line(connection, NULL);
    connection_send(&connection->client, "hello");
    connection_await_received(&connection->server, 5);
    connection_send(&connection->server, "you too");
    connection_await_received(&connection->client, 7);
    assert_int_equal(connection_do(&connection->client, weir_channel_close), 0);
    assert_end_events(&connection->server, "read(hello) tls-closed inactive unregistered");
    assert_end_events(&connection->client, "read(you too) inactive unregistered");
    tls_line_close(connection);
}

#define MUCH ((uint64_t)4 << 20)

static _Atomic int64_t left_to_write;

static void write_some(weir_ctx *ctx)
{
    while (left_to_write > 0 && weir_ctx_is_writable(ctx)) {
        left_to_write -= 4096; /* first: the write may call this again, for writability */
        weir_write(ctx, sized_msg(4096), NULL);
    }
    weir_flush(ctx);
}

static void write_on_event(weir_ctx *ctx, const weir_msg *event)
{
    (void)event;
    write_some(ctx);
}

/* ---- how often the system is called ---- */

#define BUFFER ((uint64_t)112 << 10) /* what TLS puts into one buffer */

static _Atomic uint64_t sends_before;
static size_t flushed;

static uint64_t sends_of(weir_executor *loop)
{
    weir_loop_stats stats;

    assert_int_equal(weir_loop_read_stats(loop, &stats), 0);
    return stats.sends;
}

/* On the loop: so what is sent is counted from here on. */
static void write_and_flush_once(weir_ctx *ctx, const weir_msg *event)
{
    weir_loop_stats stats = {0};

    (void)event;
    (void)weir_loop_read_stats(weir_channel_executor(weir_ctx_channel(ctx)), &stats);
    sends_before = stats.sends;
    for (int i = 0; i < 100; i++)
        weir_write(ctx, sized_msg(10), NULL);
    weir_write(ctx, sized_msg(flushed - 2000), NULL);
    for (int i = 0; i < 100; i++)
        weir_write(ctx, sized_msg(10), NULL);
    weir_flush(ctx);
}

/* Of `length` bytes in many writes and one flush. */
static uint64_t count_sends(struct connection *connection, size_t length)
{
    flushed = length;
    open_tls_line(connection, &(const struct connection_options){
                                  .client = WEIR_CHANNEL_OPTIONS(.send_buffer = 1 << 20)});
    connection->server.on_read = connection_discard;
    connection->client.on_event = write_and_flush_once;
    weir_channel_fire_event(connection->client.channel, weir_msg_retain(weir_event_tls_closed()));
    connection_await_received(&connection->server, length);
    pass_by(connection->client.channel); /* what was sent is counted behind it */
    return sends_of(weir_channel_executor(connection->client.channel)) - sends_before;
}

TEST_EACH_CONNECTION(tls_socket, sends_all_of_a_flush_at_once)
{
    uint64_t sends = count_sends(connection, BUFFER);

    tls_line_close(connection);
    assert_int_equal(sends, 1);
}

TEST_EACH_CONNECTION(tls_socket, sends_a_buffer_of_a_long_flush_at_a_time)
{
    uint64_t sends = count_sends(connection, 2 * BUFFER + BUFFER / 2);

    tls_line_close(connection);
    assert_in_range(sends, 2, 3); /* those behind a send of the ring's are sent together */
}

/* ---- marks and ends ---- */

/* The writer stops at the high mark and continues when the reader does. */
TEST_EACH_CONNECTION(tls_socket, stops_a_writer_whose_reader_has_stopped)
{
    int64_t high_mark = 64 << 10, written;

    open_tls_line(connection, &(const struct connection_options){
                                  .server = WEIR_CHANNEL_OPTIONS(.receive_buffer = 8192),
                                  .client = WEIR_CHANNEL_OPTIONS(.send_buffer = 8192)});
    weir_channel_set_auto_read(connection->server.channel, false);
    connection->server.on_read = connection_discard;
    connection->client.on_writability = write_some;
    connection->client.on_event = write_on_event;
    left_to_write = (int64_t)MUCH;
    weir_channel_fire_event(connection->client.channel, weir_msg_retain(weir_event_tls_closed()));
    connection_await(&connection->client, "tls-closed", 1);
    written = (int64_t)MUCH - left_to_write;
    assert_true(weir_channel_pending_bytes(connection->client.channel) <=
                high_mark + 4096 + 2 * COST);
    assert_true(written < 2 << 20); /* the rest is in the sockets */
    weir_channel_set_auto_read(connection->server.channel, true);
    connection_await_received(&connection->server, MUCH);
    assert_int_equal(left_to_write, 0);
    tls_line_close(connection);
}

TEST_EACH_CONNECTION(tls_socket, delivers_all_that_was_written_before_a_close)
{
    weir_promise *closed;

    open_tls_line(connection, NULL);
    closed = connection_promise(&connection->client);
    connection->server.on_read = connection_discard;
    for (uint64_t i = 0; i < MUCH; i += 65536)
        weir_channel_write(connection->client.channel, sized_msg(65536), NULL);
    weir_channel_close(connection->client.channel, closed);
    assert_int_equal(connection_result(closed), 0);
    connection_await_received(&connection->server, MUCH);
    assert_end_events(&connection->server, "tls-closed inactive unregistered");
    tls_line_close(connection);
}

static void read_again(void *channel, int status)
{
    (void)status;
    weir_channel_request_read(channel);
    weir_channel_release(channel);
}

/* Reads a little, after a detour over another executor. */
static void read_slowly(weir_ctx *ctx)
{
    weir_channel *channel = weir_channel_retain(weir_ctx_channel(ctx));

    if (weir_execute(weir_executor_global(), read_again, channel) < 0)
        read_again(channel, 0);
}

#define MUCH_MORE (SCALE > 1 ? MUCH : 4 * MUCH)

/* Everything arrives, and close_notify after it, however slowly it is read. */
static void close_before_a_slow_reader(struct connection_end *writer, struct connection_end *reader)
{
    weir_promise *closed;

    weir_channel_set_auto_read(reader->channel, false);
    reader->on_read = connection_discard;
    reader->on_read_complete = read_slowly;
    closed = connection_promise(writer);
    for (uint64_t i = 0; i < MUCH_MORE; i += 1 << 18)
        weir_channel_write(writer->channel, sized_msg(1 << 18), NULL);
    weir_channel_close(writer->channel, closed);
    weir_channel_request_read(reader->channel);
    connection_await_received(reader, MUCH_MORE);
    assert_end_events(reader, "tls-closed inactive unregistered");
    assert_int_equal(connection_result(closed), 0);
    global_executor_stop();
}

#define SMALL WEIR_CHANNEL_OPTIONS(.receive_buffer = 32768, .send_buffer = 32768)

TEST_EACH_CONNECTION(tls_socket, delivers_all_to_a_server_that_reads_slowly)
{
    open_tls_line(connection, &(const struct connection_options){.server = SMALL, .client = SMALL});
    close_before_a_slow_reader(&connection->client, &connection->server);
    tls_line_close(connection);
}

TEST_EACH_CONNECTION(tls_socket, delivers_all_to_a_client_that_reads_slowly)
{
    open_tls_line(connection, &(const struct connection_options){.server = SMALL, .client = SMALL});
    close_before_a_slow_reader(&connection->server, &connection->client);
    tls_line_close(connection);
}

TEST_EACH_CONNECTION(tls_socket, reports_a_truncated_stream)
{
    open_tls_line(connection, NULL);
    assert_int_equal(
        weir_pipeline_remove(weir_channel_pipeline(connection->client.channel), "tls", NULL), 0);
    assert_int_equal(connection_do(&connection->client, weir_channel_close), 0);
    assert_end_events(&connection->server, "error(WEIR_ECUTOFF) inactive unregistered");
    tls_line_close(connection);
}

/* ---- other threads ---- */

static void decide(void *arg, int status)
{
    (void)status;
    weir_tls_sni_request_accept(arg, NULL);
}

static void decide_on_another_thread(weir_tls_sni_request *request, void *user_data)
{
    (void)user_data;
    if (weir_execute(weir_executor_global(), decide, request) < 0)
        weir_tls_sni_request_reject(request, NULL);
}

TEST_EACH_CONNECTION(tls_socket, accepts_a_decision_of_another_thread)
{
    struct tls_setup setup;

    tls_setup_open(&setup);
    assert_int_equal(
        weir_tls_context_replace(
            setup.server, WEIR_TLS_CONTEXT_OPTIONS(.certificate_pem = pki()->server.certificate,
                                                   .key_pem = pki()->server.key,
                                                   .on_sni = decide_on_another_thread)),
        0);
    echo_all(connection, &setup, 20, 10000);
    tls_setup_close(&setup);
}

TEST_EACH_CONNECTION(tls_socket, goes_on_when_its_channel_has_moved)
{
    open_tls_line(connection, NULL);
    for (int i = 1; i <= 4; i++) {
        assert_int_equal(connection_do(&connection->server, weir_channel_deregister), 0);
        weir_group_register(i % 2 == 1 ? connection->near.group : connection->far.group,
                            connection->server.channel, NULL);
        connection_send(&connection->client, "hello");
        connection_await_received(&connection->server, 5 * (uint64_t)i);
        connection_send(&connection->server, "hello");
        connection_await_received(&connection->client, 5 * (uint64_t)i);
    }
    assert_int_equal(event_log_count(&connection->server.events, "error"), 0);
    tls_line_close(connection);
}

/* Without a reset the peer would see the end of the stream in the middle of a record. */
TEST_EACH_CONNECTION(tls_socket, resets_the_connection_when_a_close_gives_up)
{
    weir_promise *last, *closed;

    open_tls_line(connection,
                  &(const struct connection_options){
                      .server = WEIR_CHANNEL_OPTIONS(.receive_buffer = 8192),
                      .client = WEIR_CHANNEL_OPTIONS(.send_buffer = 8192,
                                                     .close_send_timeout_ns = weir_ms(80))});
    log_capture_start();
    weir_channel_set_auto_read(connection->server.channel, false);
    connection->server.on_read = connection_discard;
    last = connection_promise(&connection->client);
    closed = connection_promise(&connection->client);
    for (uint64_t i = 0; i < MUCH; i += 65536)
        weir_channel_write(connection->client.channel, sized_msg(65536),
                           i + 65536 == MUCH ? last : NULL);
    weir_channel_close(connection->client.channel, closed);
    assert_int_equal(connection_result(last), -ETIMEDOUT);
    assert_int_equal(connection_result(closed), -ETIMEDOUT);
    assert_int_equal(log_capture_count(WEIR_LOG_WARN), 1);
    assert_log_contains("the peer took none of the last ");
    weir_channel_set_auto_read(connection->server.channel, true);
    connection_await(&connection->server, "inactive", 1);
    assert_int_equal(event_log_count(&connection->server.events, "error(ECONNRESET)"), 1);
    assert_true(connection->server.received < MUCH);
    tls_line_close(connection);
}

static void add_patient_client(weir_ctx *ctx)
{
    if (weir_tls_add_with(weir_ctx_pipeline(ctx), tls_line_setup.client,
                          WEIR_TLS_OPTIONS(.server_name = "localhost",
                                           .peer_close_timeout_ns = TEST_TIMEOUT_NS,
                                           .place = WEIR_PLACE(.first = true))) < 0)
        weir_close(ctx, NULL);
}

/* Its close_notify is sent on another loop than the one that created the promise. */
TEST_EACH_CONNECTION(tls_socket, waits_for_the_peers_end_where_its_channel_has_moved)
{
    weir_promise *closed;

    tls_line_open(
        connection,
        &(const struct connection_options){.server = WEIR_CHANNEL_OPTIONS(.receive_buffer = 8192),
                                           .client = WEIR_CHANNEL_OPTIONS(.send_buffer = 8192)},
        add_patient_client);
    weir_channel_set_auto_read(connection->server.channel, false);
    connection->server.on_read = connection_discard;
    closed = connection_promise(&connection->client);
    for (uint64_t i = 0; i < MUCH; i += 65536)
        weir_channel_write(connection->client.channel, sized_msg(65536), NULL);
    weir_channel_close(connection->client.channel, closed);
    pass_by(connection->client.channel);
    assert_int_equal(connection_do(&connection->client, weir_channel_deregister), 0);
    weir_group_register(connection->far.group, connection->client.channel, NULL);
    weir_channel_set_auto_read(connection->server.channel, true);
    connection_await_received(&connection->server, MUCH);
    assert_int_equal(connection_result(closed), 0);
    connection_await(&connection->client, "tls-closed", 1);
    tls_line_close(connection);
}

/* ---- shutdown ---- */

/* All of it has come to the loop when this returns: what has not when that shuts down would fail.
 */
static void write_much(struct connection *connection)
{
    connection->server.on_read = connection_discard;
    for (uint64_t i = 0; i < MUCH; i += 65536)
        weir_channel_write_and_flush(connection->client.channel, sized_msg(65536), NULL);
    pass_by(connection->client.channel);
}

TEST_EACH_CONNECTION(tls_socket, delivers_all_when_its_loop_shuts_down)
{
    open_tls_line(connection, NULL);
    write_much(connection);
    assert_int_equal(weir_group_shutdown(connection->near.group, 0, TEST_TIMEOUT_NS), 0);
    connection_await(&connection->server, "unregistered", 1);
    assert_int_equal(connection->server.received, MUCH);
    assert_int_equal(event_log_count(&connection->server.events, "tls-closed"), 1);
    tls_line_close(connection);
}

/* Much is under way to it: that fails or is thrown away, and nothing is left. */
TEST_EACH_CONNECTION(tls_socket, survives_the_shutdown_of_the_peers_loop)
{
    open_tls_line(connection, NULL);
    write_much(connection);
    assert_int_equal(weir_group_shutdown(connection->far.group, 0, TEST_TIMEOUT_NS), 0);
    connection_await(&connection->client, "unregistered", 1);
    tls_line_close(connection);
}
