/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TCP: reading, by itself and on demand.
 */
#include <weir/buf.h>
#include <weir/error.h>

#include "support/channel/test_channel.h"
#include "support/transport/connection.h"

/* ---- on demand ---- */

static void stop_reading(weir_ctx *ctx, weir_msg *msg)
{
    weir_ctx_set_auto_read(ctx, false);
    connection_note(connection_end_of(ctx), "read");
    weir_msg_release(msg);
}

static void say_apart(struct connection *connection, struct connection_end *end, const char *text)
{
    weir_promise *promise = connection_promise(end);

    weir_channel_write_and_flush(end->channel, text_msg(text), promise);
    assert_int_equal(connection_result(promise), 0);
    host_turn(&connection->far, 2);
    host_turn(&connection->near, 2);
}

TEST_EACH_PAIR(tcp, reads_once_when_auto_read_is_switched_off_inside)
{
    connection_open(connection, NULL);
    connection->server.on_read = stop_reading;
    say_apart(connection, &connection->client, "one");
    say_apart(connection, &connection->client, "two");
    assert_end_events(&connection->server, "read");
    connection->server.on_read = (void (*)(weir_ctx *, weir_msg *))0;
    host_turn(&connection->far, 1);
    assert_end_events(&connection->server, "");
    weir_channel_request_read(connection->server.channel);
    assert_end_events(&connection->server, "read(two)");
}

static void ask_once(weir_ctx *ctx, weir_msg *msg)
{
    struct connection_end *end = connection_end_of(ctx);

    event_log_write(&end->events, "read(%zu)", weir_buf_readable(weir_buf_of(msg)));
    if (end->user_data == NULL)
        weir_request_read(ctx);
    end->user_data = end;
    weir_msg_release(msg);
}

/* Two messages are read for two requests, though there is more. */
TEST_EACH_PAIR(tcp, reads_one_message_for_each_request)
{
    connection_open(connection,
                    &(const struct connection_options){
                        .server = WEIR_CHANNEL_OPTIONS(.read_on_demand = true, .receive_min = 4,
                                                       .receive_initial = 4, .receive_max = 4)});
    connection->server.on_read = ask_once;
    say_apart(connection, &connection->client, "aaaabbbbcccc");
    assert_end_events(&connection->server, "");
    weir_channel_request_read(connection->server.channel);
    connection_await(&connection->server, "read", 2);
    host_turn(&connection->far, 3);
    assert_end_events(&connection->server, "read(4) read(4)");
    assert_int_equal(atomic_load(&connection->server.received), 8);
}

TEST_EACH_PAIR(tcp, reads_nothing_before_it_is_asked_to)
{
    connection_open(connection, &(const struct connection_options){
                                    .server = WEIR_CHANNEL_OPTIONS(.read_on_demand = true)});
    say_apart(connection, &connection->client, "x");
    assert_end_events(&connection->server, "");
    weir_channel_request_read(connection->server.channel);
    assert_end_events(&connection->server, "read(x)");
    assert_true(call_counter_await(&connection->server.completes, 1));
    host_turn(&connection->far, 2);
    assert_int_equal(atomic_load(&connection->server.completes.calls), 1);
}

TEST_EACH_PAIR(tcp, remembers_a_request_from_before_it_was_connected)
{
    connection_prepare(connection, &(const struct connection_options){
                                       .client = WEIR_CHANNEL_OPTIONS(.read_on_demand = true)});
    weir_channel_request_read(connection->client.channel);
    connection_connect(connection);
    say_apart(connection, &connection->server, "x");
    assert_end_events(&connection->client, "read(x)");
    say_apart(connection, &connection->server, "y");
    assert_end_events(&connection->client, "");
}

/* ---- how much ---- */

static void count_reads(weir_ctx *ctx, weir_msg *msg)
{
    struct connection_end *end = connection_end_of(ctx);

    end->user_data = (char *)end->user_data + 1;
    weir_msg_release(msg);
}

static void note_reads(weir_ctx *ctx)
{
    struct connection_end *end = connection_end_of(ctx);

    event_log_write(&end->events, "%zu", (size_t)(uintptr_t)end->user_data);
    end->user_data = NULL;
    call_counter_add(&end->notes);
}

static void check_reads_per_turn(struct connection *connection, int reads, const char *words)
{
    connection_open(connection,
                    &(const struct connection_options){
                        .server = WEIR_CHANNEL_OPTIONS(.read_on_demand = true, .receive_min = 10,
                                                       .receive_initial = 10, .receive_max = 10,
                                                       .reads_per_turn = reads)});
    connection->server.on_read = count_reads;
    connection->server.on_read_complete = note_reads;
    say_apart(connection, &connection->client,
              "0123456789012345678901234567890123456789"); /* 4 times 10 */
    weir_channel_set_auto_read(connection->server.channel, true);
    connection_await_received(&connection->server, 40);
    host_turn(&connection->far, 2);
    assert_end_events(&connection->server, words);
}

TEST_EACH_CONNECTION(tcp, reads_as_often_in_a_turn_as_it_may)
{
    check_reads_per_turn(connection, 3, "3 1");
}

TEST_EACH_CONNECTION(tcp, reads_once_in_a_turn_if_it_may_do_no_more)
{
    check_reads_per_turn(connection, 1, "1 1 1 1");
}

TEST_EACH_CONNECTION(tcp, reads_16_times_in_a_turn_by_default)
{
    check_reads_per_turn(connection, 0, "4");
}

static void note_capacity(weir_ctx *ctx, weir_msg *msg)
{
    struct connection_end *end = connection_end_of(ctx);
    size_t most = (size_t)(uintptr_t)end->user_data, length = weir_buf_readable(weir_buf_of(msg));

    end->user_data = (void *)(uintptr_t)(length > most ? length : most);
    weir_msg_release(msg);
}

/* What comes is more than the first guess: reads become larger. */
TEST_EACH_CONNECTION(tcp, reads_more_at_a_time_under_load)
{
    connection_open(connection, NULL);
    connection->server.on_read = note_capacity;
    for (int i = 0; i < 64; i++)
        weir_channel_write(connection->client.channel, sized_msg(65536), NULL);
    weir_channel_flush(connection->client.channel);
    connection_await_received(&connection->server, 64 * 65536);
    host_turn(&connection->far, 1);
    assert_true((size_t)(uintptr_t)connection->server.user_data > 2048);
}
