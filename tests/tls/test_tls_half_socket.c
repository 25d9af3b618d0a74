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

static const struct line_options half = {
    .server =
        &(const weir_channel_options){.size = sizeof(weir_channel_options), .half_closure = true},
    .client = &(const weir_channel_options){.size = sizeof(weir_channel_options),
                                            .half_closure = true,
                                            .high_mark = 1 << 30},
};

/* Not flushed: a half closure sends all the same. */
static void write_much(struct line *line)
{
    line->server.on_read = line_discard;
    for (uint64_t i = 0; i < MUCH; i += PIECE)
        weir_channel_write(line->client.channel, sized_msg(PIECE), NULL);
}

/* The client has ended its part; the server answers, and ends its own. */
static void converse(struct line *line)
{
    assert_int_equal(line_do(&line->client, weir_channel_shutdown_output), 0);
    assert_heard(&line->server, "tls-closed input-closed input-drained");
    line_say(&line->server, "answer");
    assert_heard(&line->client, "output-closed read(answer)");
    assert_int_equal(line_do(&line->server, weir_channel_shutdown_output), 0);
    assert_heard(&line->client, "tls-closed input-closed input-drained");
    assert_true(weir_channel_is_active(line->client.channel));
    assert_int_equal(line_do(&line->client, weir_channel_close), 0); /* both ends seen: at once */
}

/* D 87, D 89 */
TEST_EACH_PAIR(tls_half_socket, can_still_read_when_its_output_is_shut)
{
    secure_line_open(line, &half, secure_client);
    converse(line);
    assert_heard(&line->client, "inactive unregistered");
    secure_line_close(line);
}

TEST_EACH_LINE(tls_half_socket, sends_what_was_written_before)
{
    secure_line_open(line, &half, secure_client);
    write_much(line);
    converse(line);
    assert_int_equal(atomic_load(&line->server.received), MUCH);
    secure_line_close(line);
}

TEST_EACH_LINE(tls_half_socket, sends_what_was_written_before_from_executors_of_its_own)
{
    secure_line_open_on(line, &half, make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 2)));
    write_much(line);
    converse(line);
    assert_int_equal(atomic_load(&line->server.received), MUCH);
    secure_line_close(line);
}

static void hold_back(struct line *line)
{
    weir_pipeline *pipeline = weir_channel_pipeline(line->client.channel);
    weir_traffic *traffic = NULL;

    assert_int_equal(
        weir_traffic_create(WEIR_TRAFFIC_OPTIONS(.write_rate = (int64_t)MUCH * 10), &traffic), 0);
    assert_int_equal(weir_traffic_shaping_add(pipeline, traffic), 0);
    weir_traffic_release(traffic);
}

TEST_EACH_LINE(tls_half_socket, waits_behind_what_is_shaped)
{
    secure_line_open(line, &half, secure_client);
    hold_back(line);
    write_much(line);
    converse(line);
    assert_int_equal(atomic_load(&line->server.received), MUCH);
    secure_line_close(line);
}

/* Much is written, and the end of it asked for, before anybody has shaken hands. */
static void say_all_at_once(weir_ctx *ctx)
{
    secure_client(ctx);
    for (uint64_t i = 0; i < MUCH; i += PIECE)
        weir_channel_write(weir_ctx_channel(ctx), sized_msg(PIECE), NULL);
    weir_channel_shutdown_output(weir_ctx_channel(ctx), NULL);
}

TEST_EACH_LINE(tls_half_socket, waits_for_the_handshake)
{
    line->server.on_read = line_discard;
    secure_line_call(line, &half, say_all_at_once);
    line_await(&line->server, "input-drained", 1);
    assert_int_equal(atomic_load(&line->server.received), MUCH);
    line_say(&line->server, "answer");
    line_await_received(&line->client, 6);
    assert_int_equal(event_log_count(&line->client.events, "error"), 0);
    secure_line_close(line);
}

/* ---- on another loop ---- */

static void move_to_and_fro(struct line *line)
{
    struct host *hosts[] = {&line->far, &line->near};
    weir_promise *promise;

    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(line_do(&line->client, weir_channel_deregister), 0);
        promise = line_promise(&line->client);
        weir_group_register(hosts[i % 2]->group, line->client.channel, promise);
        assert_int_equal(line_result(promise), 0);
    }
}

/* The answer comes when the end of what was asked has: so that has not got lost on the way. */
static void move_while_it_waits(struct line *line)
{
    weir_promise *shut = line_promise(&line->client);

    hold_back(line);
    write_much(line);
    weir_channel_shutdown_output(line->client.channel, shut);
    move_to_and_fro(line);
    line_await(&line->server, "input-drained", 1);
    assert_int_equal(line_result(shut), 0);
    assert_int_equal(atomic_load(&line->server.received), MUCH);
    line_say(&line->server, "answer");
    line_await_received(&line->client, 6);
    secure_line_close(line);
}

TEST_EACH_LINE(tls_half_socket, goes_along_to_another_loop)
{
    secure_line_open(line, &half, secure_client);
    move_while_it_waits(line);
}

TEST_EACH_LINE(tls_half_socket, goes_along_to_another_loop_from_executors_of_its_own)
{
    secure_line_open_on(line, &half, make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 2)));
    move_while_it_waits(line);
}
