/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Servers and clients inside the process: the same calls, on loops and on plain executors.
 */
#include <weir/client.h>

#include <errno.h>

#include <weir/buf.h>
#include <weir/pipeline.h>

#include "support/bootstrap/echo_service.h"
#include "support/channel/pointer_state.h"
#include "support/executor/group.h"
#include "support/loop/host.h"

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    call_counter_add(*(struct call_counter **)weir_ctx_state(ctx));
    weir_msg_release(msg);
}

static const weir_handler read_counter = {.name = "counter",
                                          .state_size = sizeof(struct call_counter *),
                                          .init = pointer_keep,
                                          .read = on_read};

static int init_counter(weir_channel *channel, void *counter)
{
    return weir_pipeline_add_last(weir_channel_pipeline(channel), &read_counter, counter);
}

static weir_channel *call(weir_group *group, struct call_counter *heard)
{
    weir_channel *channel = NULL;

    assert_int_equal(
        weir_client_connect_sync(WEIR_CLIENT_OPTIONS(.group = group, .address = "inproc:test",
                                                     .init = init_counter, .user_data = heard),
                                 &channel),
        0);
    return channel;
}

static void greet(weir_channel *channel, struct call_counter *heard)
{
    weir_buf *buf;

    assert_int_equal(weir_buf_create_from("hello", 5, &buf), 0);
    weir_channel_write_and_flush(channel, weir_buf_msg(buf), NULL);
    assert_true(call_counter_await(heard, 1));
}

static weir_server *serve(weir_group *group, struct echo_service *service)
{
    return echo_service_start(service,
                              WEIR_SERVER_OPTIONS(.boss = group, .address = "inproc:test"));
}

TEST_EACH_LOOP(inside, a_server_is_called_by_name)
{
    struct echo_service service = {0};
    struct call_counter heard = {0};
    weir_group *clients = NULL;
    weir_server *server = serve(host->group, &service);
    weir_channel *channel;

    assert_int_equal(
        weir_group_create(WEIR_GROUP_OPTIONS(.io = host->backend->io, .threads = 2), &clients), 0);
    channel = call(clients, &heard);
    greet(channel, &heard);
    echo_service_stop(server);
    assert_int_equal(weir_channel_await_closed(channel, TEST_TIMEOUT_NS), 0);
    assert_int_equal(service.closed.calls, 1);
    weir_channel_release(channel);
    end_group(clients);
}

TEST(inside, a_server_needs_no_loops)
{
    struct echo_service service = {0};
    struct call_counter heard = {0};
    weir_group *servers = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 2));
    weir_group *clients = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 1));
    weir_server *server = serve(servers, &service);
    weir_channel *channel = call(clients, &heard);

    greet(channel, &heard);
    weir_channel_close(channel, NULL);
    assert_int_equal(weir_channel_await_closed(channel, TEST_TIMEOUT_NS), 0);
    assert_true(call_counter_await(&service.closed, 1));
    weir_channel_release(channel);
    echo_service_stop(server);
    weir_group_release(servers);
    end_group(clients);
}

TEST(inside, a_server_without_loops_is_drained_too)
{
    struct echo_service service = {0};
    struct call_counter heard = {0};
    weir_group *servers = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 2));
    weir_group *clients = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 1));
    weir_server *server = serve(servers, &service);
    weir_channel *channel = call(clients, &heard);

    greet(channel, &heard);
    echo_service_stop(server);
    assert_int_equal(service.closed.calls, 1);
    assert_int_equal(weir_channel_await_closed(channel, TEST_TIMEOUT_NS), 0);
    weir_channel_release(channel);
    weir_group_release(servers);
    end_group(clients);
}

TEST(inside, nobody_answers_to_a_name_that_nobody_has)
{
    weir_group *clients = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 1));
    weir_channel *channel = NULL;

    assert_int_equal(
        weir_client_connect_sync(WEIR_CLIENT_OPTIONS(.group = clients, .address = "inproc:nobody"),
                                 &channel),
        -ECONNREFUSED);
    assert_null(channel);
    end_group(clients);
}
