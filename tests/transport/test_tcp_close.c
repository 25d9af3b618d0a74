/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A close that gives up: the peer must not take a part of what was written for the whole.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include <weir/error.h>

#include "support/channel/test_channel.h"
#include "support/executor/log_capture.h"
#include "support/timeout.h"
#include "support/transport/connection.h"

#define TIMEOUT_NS weir_ms(80)
#define MESSAGE (1 << 20)
#define MESSAGES 8

/* The server reads nothing, and its socket and the client's are small. */
static void open_stuck(struct connection *connection)
{
    connection_open(
        connection,
        &(const struct connection_options){
            .listener = WEIR_CHANNEL_OPTIONS(.receive_buffer = 16384),
            .server = WEIR_CHANNEL_OPTIONS(.read_on_demand = true, .receive_buffer = 16384),
            .client = WEIR_CHANNEL_OPTIONS(.send_buffer = 65536, .high_mark = 1 << 30,
                                           .close_timeout_ns = weir_ms(20),
                                           .close_send_timeout_ns = TIMEOUT_NS)});
}

static weir_promise *write_much(struct connection_end *end)
{
    weir_promise *last = connection_promise(end);

    for (int i = 0; i < MESSAGES; i++)
        weir_channel_write_and_flush(end->channel, sized_msg(MESSAGE),
                                     i == MESSAGES - 1 ? last : NULL);
    return last;
}

static void assert_gave_up(weir_promise *promise)
{
    char expected[64];

    assert_int_equal(weir_promise_await(promise, TEST_TIMEOUT_NS), 0);
    assert_int_equal(weir_promise_result(promise), -ETIMEDOUT);
    (void)snprintf(expected, sizeof(expected), "bytes for %d ms after the close",
                   (int)(TIMEOUT_NS / weir_ms(1)));
    assert_non_null(strstr(weir_promise_detail(promise), "the peer took none of the last "));
    assert_non_null(strstr(weir_promise_detail(promise), expected));
    weir_promise_release(promise);
}

/* The peer reads on, and finds the end of it. Unix sockets have no reset of this kind. */
static void assert_reset(struct connection *connection)
{
    connection->server.on_read = connection_discard;
    weir_channel_set_auto_read(connection->server.channel, true);
    assert_end_events(&connection->server, connection_is_unix()
                                               ? "inactive unregistered"
                                               : "error(ECONNRESET) inactive unregistered");
}

TEST_EACH_PAIR(tcp_close, that_times_out_resets_the_connection)
{
    weir_promise *last, *closed;
    char remote[WEIR_ADDRESS_TEXT_SIZE];

    open_stuck(connection);
    log_capture_start();
    last = write_much(&connection->client);
    closed = connection_promise(&connection->client);
    weir_channel_close(connection->client.channel, closed);
    assert_gave_up(last);
    assert_gave_up(closed);
    assert_int_equal(log_capture_count(WEIR_LOG_WARN), 1);
    assert_log_contains("the peer took none of the last ");
    assert_log_contains(weir_address_format(&connection->address, remote, sizeof(remote)));
    assert_reset(connection);
    assert_true(connection->server.received < (uint64_t)MESSAGE * MESSAGES);
}

/* What the kernel has taken is not yet what the peer has. */
TEST_EACH_CONNECTION(tcp_close, resets_what_the_peer_has_not_acknowledged)
{
    weir_promise *last, *closed;

    if (connection_is_unix())
        return; /* what is sent is the peer's already */
    open_stuck(connection);
    log_capture_start();
    last = connection_promise(&connection->client);
    weir_channel_write_and_flush(connection->client.channel, sized_msg(100000), last);
    assert_int_equal(connection_result(last), 0);
    closed = connection_promise(&connection->client);
    weir_channel_close(connection->client.channel, closed);
    assert_gave_up(closed);
    assert_int_equal(log_capture_count(WEIR_LOG_WARN), 1);
    assert_reset(connection);
}

TEST_EACH_CONNECTION(tcp_close, does_not_report_a_peer_that_only_does_not_end_its_stream)
{
    open_stuck(connection);
    log_capture_start();
    connection_send(&connection->client, "all of it");
    assert_int_equal(connection_do(&connection->client, weir_channel_close), 0);
    assert_int_equal(log_capture_count(WEIR_LOG_WARN), 0);
    weir_channel_set_auto_read(connection->server.channel, true);
    assert_end_events(&connection->server, "read(all of it) inactive unregistered");
}

TEST_EACH_CONNECTION(tcp_close, times_out_after_a_half_closure)
{
    weir_promise *last, *shut, *closed;

    open_stuck(connection);
    log_capture_start();
    last = write_much(&connection->client);
    shut = connection_promise(&connection->client);
    weir_channel_shutdown_output(connection->client.channel, shut);
    closed = connection_promise(&connection->client);
    weir_channel_close(connection->client.channel, closed);
    assert_gave_up(last);
    assert_gave_up(shut);
    assert_gave_up(closed);
    assert_reset(connection);
}

TEST_EACH_CONNECTION(tcp_close, resets_when_an_abort_loses_data)
{
    weir_promise *last;

    open_stuck(connection);
    last = write_much(&connection->client);
    assert_int_equal(connection_do(&connection->client, weir_channel_abort), 0);
    assert_int_equal(connection_result(last), WEIR_ECLOSED);
    assert_reset(connection);
}

TEST_EACH_CONNECTION(tcp_close, resets_when_the_shutdown_of_the_group_loses_data)
{
    weir_promise *last;

    open_stuck(connection);
    log_capture_start();
    last = write_much(&connection->client);
    host_turn(&connection->near, 1); /* a write that is posted would be cancelled */
    assert_int_equal(weir_group_shutdown(connection->near.group, 0, weir_ms(1)), 0);
    assert_int_equal(weir_promise_await(last, TEST_TIMEOUT_NS), 0);
    assert_int_equal(weir_promise_result(last), WEIR_ECLOSED);
    assert_non_null(strstr(weir_promise_detail(last), "the shutdown of the group timed out"));
    weir_promise_release(last);
    assert_reset(connection);
}
