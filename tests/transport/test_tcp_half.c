/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TCP: one direction ends before the other.
 */
#include <errno.h>
#include <string.h>

#include <weir/error.h>
#include <weir/handler.h>

#include "support/channel/test_channel.h"
#include "support/transport/connection.h"

static void open_half(struct connection *connection)
{
    connection_open(connection, &(const struct connection_options){
                                    .server = WEIR_CHANNEL_OPTIONS(.half_closure = true),
                                    .client = WEIR_CHANNEL_OPTIONS(.half_closure = true,
                                                                   .high_mark = 1 << 30)});
}

TEST_EACH_PAIR(tcp, can_still_read_when_its_output_is_shut)
{
    open_half(connection);
    connection_send(&connection->client, "last");
    assert_int_equal(connection_do(&connection->client, weir_channel_shutdown_output), 0);
    assert_end_events(&connection->client, "output-closed");
    assert_end_events(&connection->server, "read(last) input-closed");
    assert_true(weir_channel_is_active(connection->client.channel));
    connection_send(&connection->server, "answer");
    assert_end_events(&connection->client, "read(answer)");
}

TEST_EACH_CONNECTION(tcp, sends_what_was_written_before_its_output_is_shut)
{
    enum { COUNT = 64, SIZE = 65536 };
    weir_promise *last, *late;

    open_half(connection);
    connection->server.on_read = connection_discard;
    weir_channel_set_auto_read(connection->server.channel, false); /* so that it does not fit */
    for (int i = 0; i < COUNT; i++)
        weir_channel_write_and_flush(connection->client.channel, sized_msg(SIZE), NULL);
    last = connection_promise(&connection->client);
    weir_channel_write(connection->client.channel, text_msg("not flushed"), last);
    weir_channel_shutdown_output(connection->client.channel, NULL);
    late = connection_promise(&connection->client);
    weir_channel_write(connection->client.channel, text_msg("late"), late);
    weir_channel_flush(connection->client.channel);
    assert_int_equal(connection_result(late), WEIR_ECLOSED);
    weir_channel_set_auto_read(connection->server.channel, true);
    connection_await(&connection->server, "input-closed", 1);
    assert_int_equal(connection_result(last), 0);
    assert_int_equal(atomic_load(&connection->server.received),
                     COUNT * SIZE + strlen("not flushed"));
}

TEST_EACH_CONNECTION(tcp, refuses_writes_when_its_output_is_shut)
{
    weir_promise *promise;

    open_half(connection);
    assert_int_equal(connection_do(&connection->client, weir_channel_shutdown_output), 0);
    promise = connection_promise(&connection->client);
    weir_channel_write_and_flush(connection->client.channel, text_msg("x"), promise);
    assert_int_equal(connection_result(promise), WEIR_ECLOSED);
    assert_int_equal(connection_do(&connection->client, weir_channel_shutdown_output), 0);
}

TEST_EACH_CONNECTION(tcp, cannot_be_half_closed_when_it_is_closed)
{
    open_half(connection);
    assert_int_equal(connection_do(&connection->client, weir_channel_abort), 0);
    assert_int_equal(connection_do(&connection->client, weir_channel_shutdown_output),
                     WEIR_ECLOSED);
    assert_int_equal(connection_do(&connection->client, weir_channel_shutdown_input), WEIR_ECLOSED);
}

TEST_EACH_CONNECTION(tcp, cannot_be_half_closed_before_it_is_connected)
{
    connection_prepare(connection, NULL);
    assert_int_equal(connection_do(&connection->client, weir_channel_shutdown_output), -ENOTCONN);
    assert_int_equal(connection_do(&connection->client, weir_channel_shutdown_input), -ENOTCONN);
}

TEST_EACH_PAIR(tcp, reads_everything_before_the_end_is_reported_once)
{
    enum { COUNT = 16, SIZE = 65536 };

    open_half(connection);
    connection->server.on_read = connection_discard;
    for (int i = 0; i < COUNT; i++)
        weir_channel_write(connection->client.channel, sized_msg(SIZE), NULL);
    weir_channel_flush(connection->client.channel);
    weir_channel_shutdown_output(connection->client.channel, NULL);
    assert_end_events(&connection->server, "input-closed");
    assert_int_equal(atomic_load(&connection->server.received), COUNT * SIZE);
    connection_send(&connection->server, "x");
    assert_end_events(&connection->client, "output-closed read(x)");
    host_turn(&connection->far, 2);
    assert_end_events(&connection->server, "");
    assert_int_equal(connection_do(&connection->server, weir_channel_shutdown_output), 0);
    assert_end_events(&connection->client, "input-closed");
    assert_true(weir_channel_is_active(connection->client.channel));
    assert_int_equal(connection_do(&connection->client, weir_channel_close),
                     0); /* both ends seen: at once */
}

TEST_EACH_CONNECTION(tcp, receives_nothing_when_its_input_is_shut)
{
    if (connection_is_unix())
        return; /* there the peer notices: its writes fail */
    open_half(connection);
    assert_int_equal(connection_do(&connection->client, weir_channel_shutdown_input), 0);
    assert_end_events(&connection->client, "input-closed");
    connection_send(&connection->server, "x");
    host_turn(&connection->near, 2);
    assert_end_events(&connection->client, "");
    connection_send(&connection->client, "y");
    assert_end_events(&connection->server, "read(y)");
}

/* The default: the peer's end is the end. */
TEST_EACH_PAIR(tcp, closes_when_its_peer_shuts_its_output)
{
    connection_open(connection, &(const struct connection_options){
                                    .client = WEIR_CHANNEL_OPTIONS(.half_closure = true)});
    assert_int_equal(connection_do(&connection->client, weir_channel_shutdown_output), 0);
    assert_end_events(&connection->server, "inactive unregistered");
    assert_end_events(&connection->client, "output-closed input-closed");
}

TEST_EACH_CONNECTION(tcp, keeps_its_input_after_an_error_of_its_output)
{
    weir_promise *promise;

    connection_open(connection, &(const struct connection_options){
                                    .client = WEIR_CHANNEL_OPTIONS(.keep_open_on_error = true,
                                                                   .half_closure = true,
                                                                   .read_on_demand = true)});
    connection_send(&connection->server, "last words");
    assert_int_equal(connection_do(&connection->server, weir_channel_shutdown_output), 0);
    assert_int_equal(connection_do(&connection->server, weir_channel_shutdown_input), 0);
    assert_int_equal(connection_do(&connection->server, weir_channel_abort), 0);
    do { /* the first of them make the peer's system answer with a reset */
        promise = connection_promise(&connection->client);
        weir_channel_write_and_flush(connection->client.channel, text_msg("x"), promise);
        assert_int_equal(weir_promise_await(promise, TEST_TIMEOUT_NS), 0);
    } while (connection_result(promise) == 0);
    assert_true(weir_channel_is_open(connection->client.channel));
    assert_true(weir_channel_is_active(connection->client.channel));
    connection_await(&connection->client, "output-closed", 1);
}
