/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In-process channels: a peer that leaves while nothing is read, on stepped executors.
 */
#include <semaphore.h>

#include "support/channel/test_channel.h"
#include "support/executor/group.h"
#include "support/executor/run_on_thread.h"
#include "support/transport/pair.h"

static const weir_channel_options watched = {.size = sizeof(weir_channel_options),
                                             .half_closure = true,
                                             .report_hangup = true,
                                             .read_on_demand = true};
static const weir_channel_options half_closure = {.size = sizeof(weir_channel_options),
                                                  .half_closure = true};

static void open_watched(struct pair *pair, const struct pair_options *options)
{
    struct pair_options own = *options;

    own.server = &watched;
    own.client = &half_closure;
    pair_open_connected(pair, &own);
}

static void end_stream(struct pair *pair)
{
    weir_channel_shutdown_output(pair->client.channel, NULL);
    pair_run(pair);
}

static void read_one(struct pair *pair)
{
    weir_channel_request_read(pair->server.channel);
    pair_run(pair);
}

static void before_data(const struct pair_options *options)
{
    struct pair pair;

    open_watched(&pair, options);
    pair_send(&pair.client, "last", NULL);
    end_stream(&pair);
    assert_events(&pair.events, "client.output-closed server.hangup");
    read_one(&pair);
    assert_events(&pair.events, "server.read(last)");
    read_one(&pair);
    assert_events(&pair.events, "server.input-closed");
    pair_send(&pair.server, "answer", NULL);
    pair_run(&pair);
    assert_events(&pair.events, "client.read(answer)");
    pair_close(&pair);
}

TEST(inproc_hangup, is_reported_before_what_was_not_read)
{
    pair_for_both(before_data);
}

static void between_messages(const struct pair_options *options)
{
    struct pair pair;

    open_watched(&pair, options);
    read_one(&pair);
    pair_send(&pair.client, "one", NULL);
    pair_run(&pair);
    assert_events(&pair.events, "server.read(one)");
    pair_send(&pair.client, "two", NULL);
    end_stream(&pair);
    assert_events(&pair.events, "client.output-closed server.hangup");
    pair_close(&pair);
}

TEST(inproc_hangup, is_reported_between_requested_messages)
{
    pair_for_both(between_messages);
}

/* The peer has left meanwhile. */
static void after_a_move(const struct pair_options *options)
{
    struct pair pair;

    open_watched(&pair, options);
    weir_channel_deregister(pair.server.channel, NULL);
    pair_run(&pair);
    pair_send(&pair.client, "1", NULL);
    end_stream(&pair);
    assert_events(&pair.events, "client.output-closed");
    weir_channel_register(pair.server.channel, pair.near.executor, NULL);
    pair_run(&pair);
    assert_events(&pair.events, "server.hangup");
    pair_close(&pair);
}

TEST(inproc_hangup, is_reported_after_a_move)
{
    pair_for_both(after_a_move);
}

static sem_t gate;

static void wait_at_gate(void *arg, int status)
{
    (void)arg;
    (void)status;
    while (sem_wait(&gate) < 0)
        ;
}

static void do_nothing(void *arg)
{
    (void)arg;
}

/* The channel is accepted, and waits for its executor when the peer closes. */
TEST(inproc_hangup, is_reported_if_the_peer_leaves_before_the_registration)
{
    struct stepper listeners;
    weir_executor *busy;
    weir_group *group = NULL;
    struct pair pair;

    assert_int_equal(sem_init(&gate, 0, 0), 0);
    assert_int_equal(
        weir_group_create(WEIR_GROUP_OPTIONS(.threads = 1, .io = WEIR_IO_NONE), &group), 0);
    busy = weir_group_at(group, 0);
    pair_open(&pair, &(const struct pair_options){
                         .apart = true, .server = &watched, .client = &half_closure});
    pair_call(&pair);
    (void)stepper_run(&pair.near);
    assert_int_equal(weir_execute(busy, wait_at_gate, NULL), 0);
    listeners = pair.far;
    pair.far.executor = busy;
    (void)stepper_run(&listeners);
    weir_channel_close(pair.client.channel, NULL);
    assert_int_equal(sem_post(&gate), 0);
    for (int i = 0; i < 5; i++)
        run_on_executor(busy, do_nothing, NULL);
    assert_events(&pair.events, "connect=WEIR_ECLOSED server.active server.hangup");
    weir_channel_abort(pair.server.channel, NULL);
    end_group(group);
    pair.far = listeners;
    pair_close(&pair);
    (void)sem_destroy(&gate);
}

static void stop_in_read(weir_ctx *ctx, weir_msg *msg)
{
    weir_ctx_set_auto_read(ctx, false);
    weir_msg_release(msg);
}

/* The end was already there. */
static void stop_before_the_end(const struct pair_options *options)
{
    struct pair_options later = *options;
    struct pair pair;

    later.server =
        WEIR_CHANNEL_OPTIONS(.half_closure = true, .report_hangup = true, .read_on_demand = true,
                             .receive_min = 1, .receive_initial = 1, .receive_max = 1);
    later.client = &half_closure;
    pair_open_connected(&pair, &later);
    weir_channel_deregister(pair.server.channel, NULL);
    pair_run(&pair);
    weir_channel_set_auto_read(pair.server.channel, true);
    pair.server.on_read = stop_in_read;
    pair_send(&pair.client, "1", NULL);
    pair_send(&pair.client, "2", NULL);
    end_stream(&pair);
    event_log_clear(&pair.events);
    weir_channel_register(pair.server.channel, pair.near.executor, NULL);
    pair_run(&pair);
    assert_events(&pair.events, "server.read(1) server.hangup");
    pair_close(&pair);
}

TEST(inproc_hangup, is_reported_if_a_handler_stops_before_the_end)
{
    pair_for_both(stop_before_the_end);
}

static void without_the_option(const struct pair_options *options)
{
    struct pair_options own = *options;
    struct pair pair;

    own.server = WEIR_CHANNEL_OPTIONS(.half_closure = true, .read_on_demand = true);
    own.client = &half_closure;
    pair_open_connected(&pair, &own);
    end_stream(&pair);
    pair_close_end(&pair.client);
    assert_events(&pair.events, "client.output-closed client.inactive");
    pair_close(&pair);
}

TEST(inproc_hangup, is_not_reported_unless_wanted)
{
    pair_for_both(without_the_option);
}

/* A close, whose end follows its own `inactive`. */
static void closed(const struct pair_options *options)
{
    struct pair pair;

    open_watched(&pair, options);
    pair_close_end(&pair.client);
    assert_events(&pair.events, "client.inactive server.hangup");
    read_one(&pair);
    assert_events(&pair.events, "server.input-closed");
    pair_close(&pair);
}

TEST(inproc_hangup, is_reported_after_a_close)
{
    pair_for_both(closed);
}

/* Leaves messages behind that were not sent. */
static void reset(struct pair *pair)
{
    pair_write(&pair->client, "unsent", NULL);
    weir_channel_abort(pair->client.channel, NULL);
    pair_run(pair);
}

static void closes(const struct pair_options *options)
{
    struct pair pair;

    open_watched(&pair, options);
    pair_send(&pair.client, "lost", NULL);
    reset(&pair);
    assert_events(&pair.events, "client.inactive server.error(ECONNRESET) server.inactive");
    pair_close(&pair);
}

TEST(inproc_hangup, closes_if_the_connection_is_reset)
{
    pair_for_both(closes);
}
