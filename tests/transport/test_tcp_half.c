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

static void open_half(struct line *line)
{
    line_open(line,
              &(const struct line_options){
                  .server = WEIR_CHANNEL_OPTIONS(.half_closure = true),
                  .client = WEIR_CHANNEL_OPTIONS(.half_closure = true, .high_mark = 1 << 30)});
}

/* D 87 */
TEST_EACH_PAIR(tcp, can_still_read_when_its_output_is_shut)
{
    open_half(line);
    line_say(&line->client, "last");
    assert_int_equal(line_do(&line->client, weir_channel_shutdown_output), 0);
    assert_heard(&line->client, "output-closed");
    assert_heard(&line->server, "read(last) input-closed input-drained");
    assert_true(weir_channel_is_active(line->client.channel));
    line_say(&line->server, "answer");
    assert_heard(&line->client, "read(answer)");
}

TEST_EACH_LINE(tcp, sends_what_was_written_before_its_output_is_shut)
{
    enum { COUNT = 64, SIZE = 65536 };
    weir_promise *last, *late;

    open_half(line);
    line->server.on_read = line_discard;
    weir_channel_set_auto_read(line->server.channel, false); /* so that it does not fit */
    for (int i = 0; i < COUNT; i++)
        weir_channel_write_and_flush(line->client.channel, sized_msg(SIZE), NULL);
    last = line_promise(&line->client);
    weir_channel_write(line->client.channel, text_msg("not flushed"), last);
    weir_channel_shutdown_output(line->client.channel, NULL);
    late = line_promise(&line->client);
    weir_channel_write(line->client.channel, text_msg("late"), late);
    weir_channel_flush(line->client.channel);
    assert_int_equal(line_result(late), WEIR_ECLOSED);
    weir_channel_set_auto_read(line->server.channel, true);
    line_await(&line->server, "input-drained", 1);
    assert_int_equal(line_result(last), 0);
    assert_int_equal(atomic_load(&line->server.received), COUNT * SIZE + strlen("not flushed"));
}

TEST_EACH_LINE(tcp, refuses_writes_when_its_output_is_shut)
{
    weir_promise *promise;

    open_half(line);
    assert_int_equal(line_do(&line->client, weir_channel_shutdown_output), 0);
    promise = line_promise(&line->client);
    weir_channel_write_and_flush(line->client.channel, text_msg("x"), promise);
    assert_int_equal(line_result(promise), WEIR_ECLOSED);
    assert_int_equal(line_do(&line->client, weir_channel_shutdown_output), 0);
}

/* D 88 */
TEST_EACH_LINE(tcp, cannot_be_half_closed_when_it_is_closed)
{
    open_half(line);
    assert_int_equal(line_do(&line->client, weir_channel_abort), 0);
    assert_int_equal(line_do(&line->client, weir_channel_shutdown_output), WEIR_ECLOSED);
    assert_int_equal(line_do(&line->client, weir_channel_shutdown_input), WEIR_ECLOSED);
}

TEST_EACH_LINE(tcp, cannot_be_half_closed_before_it_is_connected)
{
    line_prepare(line, NULL);
    assert_int_equal(line_do(&line->client, weir_channel_shutdown_output), -ENOTCONN);
    assert_int_equal(line_do(&line->client, weir_channel_shutdown_input), -ENOTCONN);
}

/* D 89 */
TEST_EACH_PAIR(tcp, reads_everything_before_the_end_is_told_once)
{
    enum { COUNT = 16, SIZE = 65536 };

    open_half(line);
    line->server.on_read = line_discard;
    for (int i = 0; i < COUNT; i++)
        weir_channel_write(line->client.channel, sized_msg(SIZE), NULL);
    weir_channel_flush(line->client.channel);
    weir_channel_shutdown_output(line->client.channel, NULL);
    assert_heard(&line->server, "input-closed input-drained");
    assert_int_equal(atomic_load(&line->server.received), COUNT * SIZE);
    line_say(&line->server, "x");
    assert_heard(&line->client, "output-closed read(x)");
    host_turn(&line->far, 2);
    assert_heard(&line->server, "");
    assert_int_equal(line_do(&line->server, weir_channel_shutdown_output), 0);
    assert_heard(&line->client, "input-closed input-drained");
    assert_true(weir_channel_is_active(line->client.channel));
    assert_int_equal(line_do(&line->client, weir_channel_close), 0); /* both ends seen: at once */
}

TEST_EACH_LINE(tcp, hears_nothing_when_its_input_is_shut)
{
    if (line_is_unix())
        return; /* there the peer is told: its writes fail */
    open_half(line);
    assert_int_equal(line_do(&line->client, weir_channel_shutdown_input), 0);
    assert_heard(&line->client, "input-closed input-drained");
    line_say(&line->server, "x");
    host_turn(&line->near, 2);
    assert_heard(&line->client, "");
    line_say(&line->client, "y");
    assert_heard(&line->server, "read(y)");
}

/* The default: the peer's end is the end. */
TEST_EACH_PAIR(tcp, closes_when_its_peer_shuts_its_output)
{
    line_open(line,
              &(const struct line_options){.client = WEIR_CHANNEL_OPTIONS(.half_closure = true)});
    assert_int_equal(line_do(&line->client, weir_channel_shutdown_output), 0);
    assert_heard(&line->server, "inactive unregistered");
    assert_heard(&line->client, "output-closed input-closed input-drained");
}

/* D 90 */
TEST_EACH_LINE(tcp, keeps_its_input_after_an_error_of_its_output)
{
    weir_promise *promise;

    line_open(line,
              &(const struct line_options){
                  .client = WEIR_CHANNEL_OPTIONS(.keep_open_on_error = true, .half_closure = true,
                                                 .read_on_demand = true)});
    line_say(&line->server, "last words");
    assert_int_equal(line_do(&line->server, weir_channel_shutdown_output), 0);
    assert_int_equal(line_do(&line->server, weir_channel_shutdown_input), 0);
    assert_int_equal(line_do(&line->server, weir_channel_abort), 0);
    do { /* the first of them make the peer's system answer with a reset */
        promise = line_promise(&line->client);
        weir_channel_write_and_flush(line->client.channel, text_msg("x"), promise);
        assert_int_equal(weir_promise_await(promise, TEST_TIMEOUT_NS), 0);
    } while (line_result(promise) == 0);
    assert_true(weir_channel_is_open(line->client.channel));
    assert_true(weir_channel_is_active(line->client.channel));
    line_await(&line->client, "output-closed", 1);
}
