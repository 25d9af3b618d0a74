/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In-process channels on stepped executors: the events of both ends, and their order. How they come
 * and go is in test_inproc_connect.c and test_inproc_close.c, what runs on several threads at a
 * time in test_inproc_threads.c.
 */
#include <weir/transport.h>

#include <string.h>

#include <weir/pool.h>

#include "support/channel/test_channel.h"
#include "support/memory.h"
#include "support/transport/opaque_msg.h"
#include "support/transport/pair.h"

/* ---- messages ---- */

static void both_ways(const struct pair_options *options)
{
    struct pair pair;

    pair_open_connected(&pair, options);
    pair_send(&pair.client, "ping", "w");
    pair_run(&pair);
    assert_events(&pair.events, "w=ok server.read(ping)");
    pair_send(&pair.server, "pong", NULL);
    pair_run(&pair);
    assert_events(&pair.events, "client.read(pong)");
    pair_close(&pair);
}

TEST(inproc, sends_messages_both_ways)
{
    pair_for_both(both_ways);
}

TEST(inproc, hands_over_messages_of_every_type_as_they_are)
{
    struct opaque_msg opaque;
    struct pair pair;

    pair_open_connected(&pair, NULL);
    opaque_msg_init(&opaque);
    weir_channel_write_and_flush(pair.client.channel, &opaque.msg, NULL);
    pair_run(&pair);
    assert_events(&pair.events, "server.read(opaque)");
    assert_true(opaque.is_gone);
    pair_close(&pair);
}

static const uint8_t *seen_bytes;

static void remember_bytes(weir_ctx *ctx, weir_msg *msg)
{
    (void)ctx;
    seen_bytes = weir_buf_bytes(weir_buf_of(msg));
    weir_msg_release(msg);
}

TEST(inproc, does_not_copy_a_buffer_that_comes_alone)
{
    struct pair pair;
    weir_msg *msg = text_msg("alone");
    const uint8_t *bytes = weir_buf_bytes(weir_buf_of(msg));

    pair_open_connected(&pair, NULL);
    pair.server.on_read = remember_bytes;
    weir_channel_write_and_flush(pair.client.channel, msg, NULL);
    pair_run(&pair);
    assert_ptr_equal(seen_bytes, bytes);
    pair_close(&pair);
}

TEST(inproc, puts_buffers_together_that_fit_into_what_it_would_receive)
{
    struct opaque_msg opaque;
    struct pair pair;

    pair_open_connected(&pair,
                        &(const struct pair_options){
                            .server = WEIR_CHANNEL_OPTIONS(.receive_min = 16, .receive_initial = 16,
                                                           .receive_max = 16)});
    pair_write(&pair.client, "0123456", NULL);
    pair_write(&pair.client, "", NULL);
    pair_write(&pair.client, "789", NULL);
    pair_write(&pair.client, "abcdef", NULL);
    pair_write(&pair.client, "g", NULL);
    pair_write(&pair.client, "longer than a receive buffer is", NULL);
    pair_write(&pair.client, "h", NULL);
    opaque_msg_init(&opaque);
    weir_channel_write(pair.client.channel, &opaque.msg, NULL);
    pair_write(&pair.client, "i", NULL);
    weir_channel_flush(pair.client.channel);
    pair_run(&pair);
    assert_events(&pair.events, "server.read(0123456789abcdef) server.read(g) "
                                "server.read(longer than a receive buffer is) server.read(h) "
                                "server.read(opaque) server.read(i)");
    pair_close(&pair);
}

/* The guess follows what comes: four steps up each time that it was too small. */
TEST(inproc, merges_more_if_more_arrives)
{
    struct pair pair;

    pair_open_connected(
        &pair, &(const struct pair_options){
                   .server = WEIR_CHANNEL_OPTIONS(.receive_min = 16, .receive_initial = 16)});
    for (int i = 0; i < 16; i++)
        pair_write(&pair.client, "12345678", NULL);
    weir_channel_flush(pair.client.channel);
    pair_run(&pair);
    assert_events(&pair.events, "server.read(1234567812345678) server.read(80) "
                                "server.read(12345678123456781234567812345678)");
    pair_close(&pair);
}

/* Three buffers of 100,000 come, in however many pieces there is memory for. */
static unsigned bytes_read;

static void count_bytes(weir_ctx *ctx, weir_msg *msg)
{
    (void)ctx;
    bytes_read += (unsigned)weir_buf_readable(weir_buf_of(msg));
    weir_msg_release(msg);
}

static bool come_together(struct pair *pair, unsigned n)
{
    bool failed;

    for (int i = 0; i < 3; i++)
        pair_send_bytes(&pair->client, 100000);
    bytes_read = 0;
    (void)weir_pool_trim();
    test_memory_fail_at(n);
    weir_channel_request_read(pair->server.channel);
    weir_channel_request_read(pair->server.channel);
    pair_run(pair);
    failed = test_memory_failed();
    test_memory_fail_at(0);
    weir_channel_set_auto_read(pair->server.channel, true);
    pair_run(pair);
    weir_channel_set_auto_read(pair->server.channel, false);
    assert_int_equal(bytes_read, 300000);
    return failed;
}

TEST(inproc, hands_over_one_by_one_what_there_is_no_memory_to_put_together)
{
    struct pair pair;
    unsigned n = 0;

    pair_open_connected(
        &pair,
        &(const struct pair_options){
            .server = WEIR_CHANNEL_OPTIONS(.read_on_demand = true, .receive_buffer = 400000,
                                           .receive_initial = 400000, .receive_max = 400000)});
    pair.server.on_read = count_bytes;
    while (come_together(&pair, ++n))
        ;
    assert_in_range(n, 2, 10);
    assert_int_equal(event_log_count(&pair.events, "server.read(300000)"), 1);
    pair_close(&pair);
}

/* ---- who runs when ---- */

TEST(inproc, is_read_inside_the_flush_where_both_have_one_executor)
{
    struct pair pair;

    pair_open_connected(&pair, &pair_together);
    pair_send(&pair.client, "x", NULL);
    assert_events(&pair.events, "server.read(x)");
    pair_close(&pair);

    pair_open_connected(&pair, &pair_apart);
    pair_send(&pair.client, "x", NULL);
    assert_events(&pair.events, "");
    (void)stepper_run(&pair.near);
    assert_events(&pair.events, "");
    (void)stepper_run(&pair.far);
    assert_events(&pair.events, "server.read(x)");
    pair_close(&pair);
}

static unsigned nested, deepest, bounces;

/* Sends it back, some times. */
static void bounce(weir_ctx *ctx, weir_msg *msg)
{
    nested++;
    deepest = nested > deepest ? nested : deepest;
    if (bounces-- > 0)
        weir_write_and_flush(ctx, msg, NULL);
    else
        weir_msg_release(msg);
    nested--;
}

/* The writer's own flush is further out on the stack: its peer's answer comes in a task. What a
 * handler flushes in `read` is sent when it has returned. */
TEST(inproc, is_not_read_while_it_writes_or_reads)
{
    struct pair pair;

    pair_open_connected(&pair, &pair_together);
    pair.client.on_read = pair.server.on_read = bounce;
    nested = deepest = 0;
    bounces = 100;
    pair_send(&pair.client, "x", NULL);
    pair_run(&pair);
    assert_int_equal(event_log_count(&pair.events, "server.read(x)"), 51);
    assert_int_equal(event_log_count(&pair.events, "client.read(x)"), 50);
    assert_int_equal(deepest, 1);
    pair_close(&pair);
}

#define CHAIN 20

static weir_channel *chain_callers[CHAIN], *chain_called[CHAIN];
static unsigned chain_count, chain_arrived;

static void relay_read(weir_ctx *ctx, weir_msg *msg)
{
    unsigned next = 1;

    while (chain_called[next - 1] != weir_ctx_channel(ctx))
        next++;
    nested++;
    deepest = nested > deepest ? nested : deepest;
    if (next < CHAIN) {
        weir_channel_write_and_flush(chain_callers[next], msg, NULL);
    } else {
        chain_arrived++;
        weir_msg_release(msg);
    }
    nested--;
}

static const weir_handler relay = {.name = "relay", .read = relay_read};

static void relay_accepted(weir_ctx *ctx, weir_msg *msg)
{
    weir_channel *channel = weir_channel_of(msg);

    chain_called[chain_count++] = channel;
    IGNORE_RESULT(weir_pipeline_add_last(weir_channel_pipeline(channel), &relay, NULL));
    weir_channel_register(channel, weir_ctx_executor(ctx), NULL);
}

static const weir_handler chain_acceptor = {.name = "acceptor", .read = relay_accepted};

static void call_chain(struct stepper *stepper, const weir_address *address)
{
    for (unsigned i = 0; i < CHAIN; i++) {
        assert_int_equal(weir_inproc_create(NULL, &chain_callers[i]), 0);
        weir_channel_register(chain_callers[i], stepper->executor, NULL);
        weir_channel_connect(chain_callers[i], address, NULL, NULL);
    }
    (void)stepper_run(stepper);
    assert_int_equal(chain_count, CHAIN);
}

TEST(inproc, is_read_inside_eight_flushes_at_the_deepest)
{
    struct stepper stepper = stepper_open();
    weir_address address = pair_address("inproc:chain");
    weir_channel *listener;

    chain_count = chain_arrived = nested = deepest = 0;
    assert_int_equal(weir_inproc_create_server(NULL, NULL, &listener), 0);
    assert_int_equal(weir_pipeline_add_last(weir_channel_pipeline(listener), &chain_acceptor, NULL),
                     0);
    weir_channel_register(listener, stepper.executor, NULL);
    weir_channel_bind(listener, &address, NULL);
    call_chain(&stepper, &address);
    weir_channel_write_and_flush(chain_callers[0], text_msg("x"), NULL);
    assert_int_equal(chain_arrived, 0);
    assert_int_equal(deepest, 8);
    (void)stepper_run(&stepper);
    assert_int_equal(chain_arrived, 1);
    assert_int_equal(deepest, 1 + 8); /* in a task, and inside its flushes */
    for (unsigned i = 0; i < CHAIN; i++) {
        pair_end_channel(&stepper, chain_callers[i]);
        pair_end_channel(&stepper, chain_called[i]);
    }
    pair_end_channel(&stepper, listener);
    stepper_close(&stepper);
}

/* ---- reading ---- */

/* Our n is 1, and what fits together is one message. */
static void read_on_demand(const struct pair_options *options)
{
    struct pair_options on_demand = *options;
    struct pair pair;

    on_demand.server = WEIR_CHANNEL_OPTIONS(.read_on_demand = true, .receive_min = 1,
                                            .receive_initial = 1, .receive_max = 1);
    pair_open_connected(&pair, &on_demand);
    pair_write(&pair.client, "1", NULL);
    pair_write(&pair.client, "2", NULL);
    pair_send(&pair.client, "3", NULL);
    pair_run(&pair);
    assert_events(&pair.events, "");
    weir_channel_request_read(pair.server.channel);
    pair_run(&pair);
    assert_events(&pair.events, "server.read(1)");
    weir_channel_request_read(pair.server.channel);
    weir_channel_request_read(pair.server.channel);
    pair_run(&pair);
    assert_events(&pair.events, "server.read(2)");
    weir_channel_set_auto_read(pair.server.channel, true);
    pair_run(&pair);
    assert_events(&pair.events, "server.read(3)");
    pair_close(&pair);
}

TEST(inproc, reads_one_message_for_each_request)
{
    pair_for_both(read_on_demand);
}

static void stop_reading(weir_ctx *ctx, weir_msg *msg)
{
    weir_ctx_set_auto_read(ctx, false);
    weir_msg_release(msg);
}

TEST(inproc, stops_reading_when_a_handler_asks)
{
    struct pair pair;

    pair_open_connected(&pair,
                        &(const struct pair_options){
                            .server = WEIR_CHANNEL_OPTIONS(.receive_min = 1, .receive_initial = 1,
                                                           .receive_max = 1)});
    pair.server.on_read = stop_reading;
    pair_write(&pair.client, "1", NULL);
    pair_send(&pair.client, "2", NULL);
    pair_run(&pair);
    assert_events(&pair.events, "server.read(1)");
    weir_channel_request_read(pair.server.channel);
    pair_run(&pair);
    assert_events(&pair.events, "server.read(2)");
    pair_close(&pair);
}

static void ask_again(weir_ctx *ctx, weir_msg *msg)
{
    weir_request_read(ctx);
    weir_msg_release(msg);
}

TEST(inproc, reads_on_if_a_handler_asks_for_it)
{
    struct pair pair;

    pair_open_connected(
        &pair, &(const struct pair_options){
                   .server = WEIR_CHANNEL_OPTIONS(.read_on_demand = true, .receive_min = 1,
                                                  .receive_initial = 1, .receive_max = 1)});
    pair.server.on_read = ask_again;
    weir_channel_request_read(pair.server.channel);
    for (int i = 0; i < 3; i++)
        pair_send(&pair.client, "x", NULL);
    pair_run(&pair);
    assert_events(&pair.events, "server.read(x) server.read(x) server.read(x)");
    pair_close(&pair);
}

/* ---- back-pressure ---- */

#define COST_1024 (1024 + WEIR__OUTBOUND_COST)

/* 16 messages of 1024 fit on the way; with 8 of them in the queue the writer is unwritable. */
static void press(const struct pair_options *options)
{
    struct pair_options small = *options;
    int written = 0;
    struct pair pair;

    small.server = WEIR_CHANNEL_OPTIONS(.read_on_demand = true, .receive_buffer = 16 * COST_1024,
                                        .receive_max = 1024);
    small.client = WEIR_CHANNEL_OPTIONS(.low_mark = 4096, .high_mark = 8 * COST_1024 - 1);
    pair_open_connected(&pair, &small);
    for (; weir_channel_is_writable(pair.client.channel); written++)
        pair_send_bytes(&pair.client, 1024);
    pair_run(&pair);
    assert_int_equal(written, 16 + 8);
    assert_int_equal(weir_channel_pending_bytes(pair.client.channel), 8 * COST_1024);
    assert_events(&pair.events, "client.unwritable");
    for (int i = 0; i < 7; i++) {
        weir_channel_request_read(pair.server.channel);
        pair_run(&pair);
    }
    assert_false(weir_channel_is_writable(pair.client.channel));
    assert_int_equal(event_log_count(&pair.events, "server.read(1024)"), 7);
    event_log_clear(&pair.events);
    weir_channel_set_auto_read(pair.server.channel, true);
    pair_run(&pair);
    assert_true(weir_channel_is_writable(pair.client.channel));
    assert_int_equal(event_log_count(&pair.events, "server.read(1024)"), written - 7);
    assert_int_equal(event_log_count(&pair.events, "client.writable"), 1);
    assert_int_equal(weir_channel_pending_bytes(pair.client.channel), 0);
    pair_close(&pair);
}

TEST(inproc, that_is_not_read_makes_its_writer_unwritable)
{
    pair_for_both(press);
}

TEST(inproc, sends_a_message_that_is_larger_than_the_way_alone)
{
    struct pair pair;

    pair_open_connected(
        &pair, &(const struct pair_options){
                   .server = WEIR_CHANNEL_OPTIONS(.read_on_demand = true, .receive_buffer = 200)});
    pair_send_bytes(&pair.client, 100);
    pair_send_bytes(&pair.client, 5000);
    pair_send_bytes(&pair.client, 101);
    pair_run(&pair);
    assert_int_equal(weir_channel_pending_bytes(pair.client.channel),
                     5000 + 101 + 2 * WEIR__OUTBOUND_COST);
    weir_channel_request_read(pair.server.channel);
    pair_run(&pair);
    assert_int_equal(weir_channel_pending_bytes(pair.client.channel), 101 + WEIR__OUTBOUND_COST);
    weir_channel_set_auto_read(pair.server.channel, true);
    pair_run(&pair);
    assert_events(&pair.events, "server.read(100) server.read(5000) server.read(101)");
    pair_close(&pair);
}

TEST(inproc, takes_more_after_its_options_change)
{
    struct pair pair;

    pair_open_connected(
        &pair, &(const struct pair_options){
                   .server = WEIR_CHANNEL_OPTIONS(.read_on_demand = true, .receive_buffer = 200)});
    assert_int_equal(
        weir_channel_set_options(pair.server.channel, WEIR_CHANNEL_OPTIONS(.read_on_demand = true,
                                                                           .receive_buffer = 620)),
        0);
    pair_send_bytes(&pair.client, 100);
    pair_send_bytes(&pair.client, 100);
    pair_send_bytes(&pair.client, 100);
    assert_int_equal(weir_channel_pending_bytes(pair.client.channel), 100 + WEIR__OUTBOUND_COST);
    pair_close(&pair);
}

/* The peer reads at once, but no flush goes on for ever: the rest comes in tasks. */
TEST(inproc, lets_others_have_their_turn_when_a_flush_is_long)
{
    struct pair pair;

    pair_open_connected(
        &pair, &(const struct pair_options){.server = WEIR_CHANNEL_OPTIONS(.receive_buffer = 1),
                                            .client = WEIR_CHANNEL_OPTIONS(.writes_per_flush = 4)});
    for (int i = 0; i < 10; i++)
        weir_channel_write(pair.client.channel, sized_msg(100), NULL);
    weir_channel_flush(pair.client.channel);
    assert_int_equal(event_log_count(&pair.events, "server.read(100)"), 4);
    pair_run(&pair);
    assert_int_equal(event_log_count(&pair.events, "server.read(100)"), 10);
    pair_close(&pair);
}
