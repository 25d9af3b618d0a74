/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One direction of TLS ends before the other, over sockets, on every backend.
 */
#include <weir/error.h>
#include <weir/traffic.h>

#include "support/channel/test_channel.h"
#include "support/tls/tls_line.h"

#define MUCH ((uint64_t)2 << 20)
#define PIECE ((uint64_t)1 << 16)

static const struct connection_options half = {
    .server =
        &(const weir_channel_options){.size = sizeof(weir_channel_options), .half_closure = true},
    .client = &(const weir_channel_options){.size = sizeof(weir_channel_options),
                                            .half_closure = true,
                                            .high_mark = 1 << 30},
};

/* Not flushed: a half closure sends all the same. */
static void write_much(struct connection *connection)
{
    connection->server.on_read = connection_discard;
    for (uint64_t i = 0; i < MUCH; i += PIECE)
        weir_channel_write(connection->client.channel, sized_msg(PIECE), NULL);
}

/* The client has ended its part; the server answers, and ends its own. */
static void converse(struct connection *connection)
{
    assert_int_equal(connection_do(&connection->client, weir_channel_shutdown_output), 0);
    assert_end_events(&connection->server, "tls-closed input-closed");
    connection_send(&connection->server, "answer");
    assert_end_events(&connection->client, "output-closed read(answer)");
    assert_int_equal(connection_do(&connection->server, weir_channel_shutdown_output), 0);
    assert_end_events(&connection->client, "tls-closed input-closed");
    assert_true(weir_channel_is_active(connection->client.channel));
    assert_int_equal(connection_do(&connection->client, weir_channel_close),
                     0); /* both ends seen: at once */
}

TEST_EACH_PAIR(tls_half_socket, can_still_read_when_its_output_is_shut)
{
    tls_line_open(connection, &half, tls_line_add_client);
    converse(connection);
    assert_end_events(&connection->client, "inactive unregistered");
    tls_line_close(connection);
}

TEST_EACH_CONNECTION(tls_half_socket, sends_what_was_written_before)
{
    tls_line_open(connection, &half, tls_line_add_client);
    write_much(connection);
    converse(connection);
    assert_int_equal(atomic_load(&connection->server.received), MUCH);
    tls_line_close(connection);
}

TEST_EACH_CONNECTION(tls_half_socket, sends_what_was_written_before_from_executors_of_its_own)
{
    tls_line_open_on(connection, &half, make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 2)));
    write_much(connection);
    converse(connection);
    assert_int_equal(atomic_load(&connection->server.received), MUCH);
    tls_line_close(connection);
}

static void hold_back(struct connection *connection)
{
    weir_pipeline *pipeline = weir_channel_pipeline(connection->client.channel);
    weir_traffic *traffic = NULL;

    assert_int_equal(
        weir_traffic_create(WEIR_TRAFFIC_OPTIONS(.write_rate = (int64_t)MUCH * 10), &traffic), 0);
    assert_int_equal(weir_traffic_shaping_add(pipeline, traffic), 0);
    weir_traffic_release(traffic);
}

TEST_EACH_CONNECTION(tls_half_socket, waits_behind_what_is_shaped)
{
    tls_line_open(connection, &half, tls_line_add_client);
    hold_back(connection);
    write_much(connection);
    converse(connection);
    assert_int_equal(atomic_load(&connection->server.received), MUCH);
    tls_line_close(connection);
}

/* Much is written, and the end of it asked for, before anybody has shaken hands. */
static void say_all_at_once(weir_ctx *ctx)
{
    tls_line_add_client(ctx);
    for (uint64_t i = 0; i < MUCH; i += PIECE)
        weir_channel_write(weir_ctx_channel(ctx), sized_msg(PIECE), NULL);
    weir_channel_shutdown_output(weir_ctx_channel(ctx), NULL);
}

TEST_EACH_CONNECTION(tls_half_socket, waits_for_the_handshake)
{
    connection->server.on_read = connection_discard;
    tls_line_connect(connection, &half, say_all_at_once);
    connection_await(&connection->server, "input-closed", 1);
    assert_int_equal(atomic_load(&connection->server.received), MUCH);
    connection_send(&connection->server, "answer");
    connection_await_received(&connection->client, 6);
    assert_int_equal(event_log_count(&connection->client.events, "error"), 0);
    tls_line_close(connection);
}

/* ---- on another loop ---- */

static void move_to_and_fro(struct connection *connection)
{
    struct host *hosts[] = {&connection->far, &connection->near};
    weir_promise *promise;

    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(connection_do(&connection->client, weir_channel_deregister), 0);
        promise = connection_promise(&connection->client);
        weir_group_register(hosts[i % 2]->group, connection->client.channel, promise);
        assert_int_equal(connection_result(promise), 0);
    }
}

/* The answer comes when the end of what was asked has: so that has not got lost on the way. */
static void move_while_it_waits(struct connection *connection)
{
    weir_promise *shut = connection_promise(&connection->client);

    hold_back(connection);
    write_much(connection);
    weir_channel_shutdown_output(connection->client.channel, shut);
    move_to_and_fro(connection);
    connection_await(&connection->server, "input-closed", 1);
    assert_int_equal(connection_result(shut), 0);
    assert_int_equal(atomic_load(&connection->server.received), MUCH);
    connection_send(&connection->server, "answer");
    connection_await_received(&connection->client, 6);
    tls_line_close(connection);
}

TEST_EACH_CONNECTION(tls_half_socket, goes_along_to_another_loop)
{
    tls_line_open(connection, &half, tls_line_add_client);
    move_while_it_waits(connection);
}

TEST_EACH_CONNECTION(tls_half_socket, goes_along_to_another_loop_from_executors_of_its_own)
{
    tls_line_open_on(connection, &half, make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 2)));
    move_while_it_waits(connection);
}
