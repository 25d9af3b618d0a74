/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TCP: a peer that leaves while nothing is read.
 */
#include <string.h>

#include <weir/error.h>
#include <weir/handler.h>

#include "support/channel/test_channel.h"
#include "support/transport/connection.h"

static void open_watched(struct connection *connection)
{
    connection_open(connection,
                    &(const struct connection_options){
                        .server = WEIR_CHANNEL_OPTIONS(.half_closure = true, .report_hangup = true,
                                                       .high_mark = 1 << 30),
                        .client = WEIR_CHANNEL_OPTIONS(.half_closure = true)});
}

/* So many small messages that a ring receives them by itself. */
static void exchange_small_messages(struct connection *connection)
{
    connection->server.on_read = connection_discard;
    for (uint64_t i = 1; i <= 20; i++) {
        connection_send(&connection->client, "x");
        connection_await_received(&connection->server, i);
    }
    connection->server.on_read = (void (*)(weir_ctx *, weir_msg *))0;
}

static void stop_reading(struct connection *connection)
{
    weir_channel_set_auto_read(connection->server.channel, false);
    host_turn(&connection->far, 2);
}

static void end_stream(struct connection *connection)
{
    assert_int_equal(connection_do(&connection->client, weir_channel_shutdown_output), 0);
}

TEST_EACH_CONNECTION(tcp_hangup, is_reported_before_what_was_not_read)
{
    open_watched(connection);
    exchange_small_messages(connection);
    stop_reading(connection);
    connection_send(&connection->client, "last");
    end_stream(connection);
    assert_end_events(&connection->server, "hangup");
    host_turn(&connection->far, 3); /* once */
    weir_channel_request_read(connection->server.channel);
    assert_end_events(&connection->server, "read(last)");
    weir_channel_request_read(connection->server.channel);
    assert_end_events(&connection->server, "input-closed");
    connection_send(&connection->server, "answer");
    connection_await(&connection->client, "read(answer)", 1);
}

TEST_EACH_CONNECTION(tcp_hangup, is_reported_if_nothing_was_ever_read)
{
    connection_open(connection,
                    &(const struct connection_options){
                        .server = WEIR_CHANNEL_OPTIONS(.half_closure = true, .report_hangup = true,
                                                       .read_on_demand = true),
                        .client = WEIR_CHANNEL_OPTIONS(.half_closure = true)});
    end_stream(connection);
    assert_end_events(&connection->server, "hangup");
}

TEST_EACH_CONNECTION(tcp_hangup, is_reported_between_requested_messages)
{
    open_watched(connection);
    stop_reading(connection);
    weir_channel_request_read(connection->server.channel);
    connection_send(&connection->client, "one");
    assert_end_events(&connection->server, "read(one)");
    connection_send(&connection->client, "two");
    end_stream(connection);
    assert_end_events(&connection->server, "hangup");
}

/* A backend that reports edges reads on without an event. */
TEST_EACH_CONNECTION(tcp_hangup, is_not_mistaken_for_more_data)
{
    connection_open(connection,
                    &(const struct connection_options){
                        .server = WEIR_CHANNEL_OPTIONS(.half_closure = true, .report_hangup = true,
                                                       .read_on_demand = true, .receive_min = 10,
                                                       .receive_initial = 10, .receive_max = 10),
                        .client = WEIR_CHANNEL_OPTIONS(.half_closure = true)});
    connection->server.on_read = connection_discard;
    connection_send(&connection->client, "0123456789012345678901234567890123456789");
    for (uint64_t i = 1; i <= 3; i++) {
        weir_channel_request_read(connection->server.channel);
        connection_await_received(&connection->server, 10 * i);
        host_turn(&connection->far, 2);
    }
    assert_end_events(&connection->server, "");
    end_stream(connection);
    assert_end_events(&connection->server, "hangup");
}

TEST_EACH_CONNECTION(tcp_hangup, is_not_reported_unless_wanted)
{
    connection_open(connection, &(const struct connection_options){
                                    .server = WEIR_CHANNEL_OPTIONS(.half_closure = true),
                                    .client = WEIR_CHANNEL_OPTIONS(.half_closure = true)});
    stop_reading(connection);
    end_stream(connection);
    host_turn(&connection->far, 3);
    assert_end_events(&connection->server, "");
}

static void reset(struct connection *connection)
{
    weir_channel_options options;

    weir_channel_get_options(connection->client.channel, &options);
    options.reset_on_close = true;
    assert_int_equal(weir_channel_set_options(connection->client.channel, &options), 0);
    weir_channel_abort(connection->client.channel, NULL);
    connection_await(&connection->server, "inactive", 1);
    assert_false(weir_channel_is_open(connection->server.channel));
}

TEST_EACH_CONNECTION(tcp_hangup, closes_if_the_connection_is_reset)
{
    open_watched(connection);
    exchange_small_messages(connection);
    stop_reading(connection);
    connection_send(&connection->client, "lost");
    reset(connection);
}

/* A half-closed peer that leaves for good. */
TEST_EACH_CONNECTION(tcp_hangup, closes_if_the_connection_is_reset_after_the_end)
{
    open_watched(connection);
    end_stream(connection);
    assert_end_events(&connection->server, "input-closed");
    reset(connection);
}

/* What is sent does not wait for the peer to leave, and what is received does not get lost. */
TEST_EACH_CONNECTION(tcp_hangup, is_watched_for_beside_the_traffic)
{
    enum { ROUNDS = 12, SIZE = 8 << 20 }; /* more than a socket takes at once */
    uint64_t sent = 0;

    open_watched(connection);
    exchange_small_messages(connection);
    connection->server.on_read = connection_discard;
    connection->client.on_read = connection_discard;
    for (unsigned i = 0; i < ROUNDS; i++) {
        weir_channel_set_auto_read(connection->server.channel, false);
        weir_channel_write_and_flush(connection->server.channel, sized_msg(SIZE), NULL);
        if (i % 2 == 0)
            host_turn(&connection->far, 1);
        connection_send(&connection->client, "x");
        sent++;
        connection_await_received(&connection->client, (i + 1) * (uint64_t)SIZE);
        weir_channel_set_auto_read(connection->server.channel, true);
        if (i % 3 == 0)
            connection_await_received(&connection->server, 20 + sent);
    }
    connection_await_received(&connection->server, 20 + sent);
    stop_reading(connection);
    end_stream(connection);
    assert_end_events(&connection->server, "hangup");
}
