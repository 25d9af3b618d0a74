/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connecting in-process channels on stepped executors: names, listeners, refused connections, and
 * the order of events.
 */
#include <weir/transport.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "support/transport/pair.h"

static void connect_in_order(const struct pair_options *options)
{
    struct pair pair;

    pair_open(&pair, options);
    pair_call(&pair);
    pair_run(&pair);
    assert_events(&pair.events, "server.active connect=ok client.active");
    pair_close(&pair);
}

TEST(inproc, registers_the_server_first_then_completes_connect_then_is_active)
{
    pair_for_both(connect_in_order);
}

TEST(inproc, has_names_for_addresses)
{
    weir_address local = pair_address("inproc:me"), address;
    struct pair pair;
    char text[128];

    pair_open(&pair, NULL);
    weir_channel_connect(pair.client.channel, &pair.address, &local, NULL);
    pair_run(&pair);
    assert_int_equal(weir_channel_local_address(pair.listener, &address), 0);
    assert_true(weir_address_equal(&address, &pair.address));
    assert_int_equal(weir_channel_local_address(pair.client.channel, &address), 0);
    assert_true(weir_address_equal(&address, &local));
    assert_int_equal(weir_channel_remote_address(pair.client.channel, &address), 0);
    assert_true(weir_address_equal(&address, &pair.address));
    assert_non_null(
        strstr(weir_channel_format(pair.server.channel, text, sizeof(text)), " - inproc:me]"));
    pair_close(&pair);
}

TEST(inproc, has_no_address_before_it_is_bound)
{
    weir_channel *listener;
    weir_address address;

    assert_int_equal(weir_inproc_create_server(NULL, NULL, &listener), 0);
    assert_int_equal(weir_channel_local_address(listener, &address), -ENOTCONN);
    weir_channel_release(listener);
}

TEST(inproc, that_has_no_name_is_known_by_its_number)
{
    struct pair pair;
    char text[128], expected[64];

    pair_open(&pair, NULL);
    assert_non_null(strstr(weir_channel_format(pair.client.channel, text, sizeof(text)), "- ! -"));
    pair_connect(&pair);
    (void)snprintf(expected, sizeof(expected), "inproc:#%llu - inproc:pair",
                   (unsigned long long)weir_channel_id(pair.client.channel));
    assert_non_null(strstr(weir_channel_format(pair.client.channel, text, sizeof(text)), expected));
    pair_close(&pair);
}

static weir_channel *bind_to(struct stepper *stepper, const char *name, bool server, int *ret_err)
{
    weir_address address = pair_address(name);
    weir_channel *channel;
    weir_promise *done;

    assert_int_equal(weir_promise_create(stepper->executor, &done), 0);
    assert_int_equal(server ? weir_inproc_create_server(NULL, NULL, &channel)
                            : weir_inproc_create(NULL, &channel),
                     0);
    weir_channel_register(channel, stepper->executor, NULL);
    weir_channel_bind(channel, &address, done);
    (void)stepper_run(stepper);
    *ret_err = weir_promise_result(done);
    weir_promise_release(done);
    return channel;
}

TEST(inproc, has_its_name_alone_until_it_is_closed)
{
    struct stepper stepper = stepper_open();
    weir_channel *first, *second;
    int err;

    first = bind_to(&stepper, "inproc:name", true, &err);
    assert_int_equal(err, 0);
    for (int server = 0; server < 2; server++) {
        second = bind_to(&stepper, "inproc:name", server, &err);
        assert_int_equal(err, -EADDRINUSE);
        assert_false(weir_channel_is_open(second));
        weir_channel_release(second);
    }
    second = bind_to(&stepper, "inproc:another", true, &err);
    assert_int_equal(err, 0);
    pair_end_channel(&stepper, second);
    pair_end_channel(&stepper, first);
    second = bind_to(&stepper, "inproc:name", true, &err);
    assert_int_equal(err, 0);
    pair_end_channel(&stepper, second);
    stepper_close(&stepper);
}

TEST(inproc, is_bound_to_names_only)
{
    struct stepper stepper = stepper_open();
    int err;
    weir_channel *channel = bind_to(&stepper, "127.0.0.1:1", true, &err);

    assert_int_equal(err, -EAFNOSUPPORT);
    weir_channel_release(channel);
    stepper_close(&stepper);
}

TEST(inproc, is_refused_without_a_listener)
{
    weir_address nobody = pair_address("inproc:nobody");
    struct pair pair;
    weir_promise *done;

    pair_open(&pair, NULL);
    done = pair_promise(&pair, "connect");
    weir_channel_connect(pair.client.channel, &nobody, NULL, done);
    pair_run(&pair);
    assert_events(&pair.events, "connect=ECONNREFUSED");
    assert_false(weir_channel_is_open(pair.client.channel));
    weir_promise_release(done);
    pair_close(&pair);
}

/* A name that somebody connects from is nobody's to connect to. */
TEST(inproc, is_refused_by_one_that_does_not_listen)
{
    struct stepper stepper = stepper_open();
    weir_address address = pair_address("inproc:bound");
    weir_channel *bound, *channel;
    weir_promise *done;
    int err;

    bound = bind_to(&stepper, "inproc:bound", false, &err);
    assert_int_equal(err, 0);
    assert_int_equal(weir_inproc_create(NULL, &channel), 0);
    assert_int_equal(weir_promise_create(stepper.executor, &done), 0);
    weir_channel_register(channel, stepper.executor, NULL);
    weir_channel_connect(channel, &address, NULL, done);
    (void)stepper_run(&stepper);
    assert_int_equal(weir_promise_result(done), -ECONNREFUSED);
    weir_promise_release(done);
    pair_end_channel(&stepper, channel);
    pair_end_channel(&stepper, bound);
    stepper_close(&stepper);
}

static void refused_by_handler(const struct pair_options *options)
{
    struct pair_options refuses = *options;
    struct pair pair;

    refuses.refuses = true;
    pair_open(&pair, &refuses);
    pair_call(&pair);
    pair_run(&pair);
    assert_events(&pair.events, "connect=ECONNREFUSED");
    pair_close(&pair);
}

TEST(inproc, is_refused_if_the_accepted_channel_is_never_registered)
{
    pair_for_both(refused_by_handler);
}

TEST(inproc, listener_that_reads_on_demand_accepts_one_for_each_request)
{
    struct pair pair;

    pair_open(&pair, &(const struct pair_options){
                         .listener = WEIR_CHANNEL_OPTIONS(.read_on_demand = true)});
    pair_call(&pair);
    pair_run(&pair);
    assert_events(&pair.events, "");
    weir_channel_request_read(pair.listener);
    pair_run(&pair);
    assert_events(&pair.events, "server.active connect=ok client.active");
    pair_close(&pair);
}

TEST(inproc, is_refused_if_the_listener_closes_before_it_accepts)
{
    struct pair pair;

    pair_open(&pair, &(const struct pair_options){
                         .listener = WEIR_CHANNEL_OPTIONS(.read_on_demand = true)});
    pair_call(&pair);
    pair_run(&pair);
    weir_channel_close(pair.listener, NULL);
    pair_run(&pair);
    assert_events(&pair.events, "connect=ECONNREFUSED");
    pair_close(&pair);
}

TEST(inproc, is_refused_if_too_many_wait)
{
    weir_channel *second;
    struct pair pair;
    weir_promise *done;

    pair_open(&pair, &(const struct pair_options){
                         .listener = WEIR_CHANNEL_OPTIONS(.read_on_demand = true, .backlog = 1)});
    pair_call(&pair);
    done = pair_promise(&pair, "second");
    assert_int_equal(weir_inproc_create(NULL, &second), 0);
    weir_channel_register(second, pair.near.executor, NULL);
    weir_channel_connect(second, &pair.address, NULL, done);
    pair_run(&pair);
    assert_events(&pair.events, "second=ECONNREFUSED");
    weir_promise_release(done);
    weir_channel_release(second);
    pair_close(&pair);
}

TEST(inproc, times_out_connecting_and_the_listener_skips_it)
{
    struct pair pair;

    pair_open(&pair, &(const struct pair_options){
                         .listener = WEIR_CHANNEL_OPTIONS(.read_on_demand = true),
                         .client = WEIR_CHANNEL_OPTIONS(.connect_timeout_ns = weir_seconds(2))});
    pair_call(&pair);
    (void)stepper_advance(&pair.near, weir_seconds(1));
    assert_events(&pair.events, "");
    (void)stepper_advance(&pair.near, weir_seconds(1));
    assert_events(&pair.events, "connect=ETIMEDOUT");
    weir_channel_request_read(pair.listener);
    pair_run(&pair);
    assert_events(&pair.events, "");
    pair_close(&pair);
}

TEST(inproc, closes_if_connecting_is_cancelled)
{
    struct pair pair;
    weir_promise *done;

    pair_open(&pair, &(const struct pair_options){
                         .listener = WEIR_CHANNEL_OPTIONS(.read_on_demand = true)});
    done = pair_promise(&pair, "connect");
    weir_channel_connect(pair.client.channel, &pair.address, NULL, done);
    pair_run(&pair);
    assert_int_equal(weir_promise_cancel(done), 0);
    pair_run(&pair);
    assert_events(&pair.events, "connect=WEIR_ECANCELED");
    assert_false(weir_channel_is_open(pair.client.channel));
    weir_promise_release(done);
    pair_close(&pair);
}

TEST(inproc, connects_once)
{
    struct pair pair;

    pair_open(&pair, NULL);
    pair_call(&pair);
    pair_call(&pair);
    pair_run(&pair);
    assert_events(&pair.events, "connect=EALREADY server.active connect=ok client.active");
    pair_call(&pair);
    pair_run(&pair);
    assert_events(&pair.events, "connect=EISCONN");
    pair_close(&pair);
}

static void close_in_active(weir_ctx *ctx)
{
    weir_close(ctx, NULL);
}

TEST(inproc, that_is_closed_as_soon_as_it_is_connected_was_active_first)
{
    struct pair pair;

    pair_open(&pair, NULL);
    pair.client.on_active = close_in_active;
    pair_call(&pair);
    pair_run(&pair);
    assert_events(&pair.events,
                  "server.active connect=ok client.active client.inactive server.inactive");
    pair_close(&pair);

    pair_open(&pair, NULL);
    pair.server.on_active = close_in_active;
    pair_call(&pair);
    pair_run(&pair);
    assert_events(&pair.events,
                  "server.active connect=ok client.active server.inactive client.inactive");
    pair_close(&pair);
}
