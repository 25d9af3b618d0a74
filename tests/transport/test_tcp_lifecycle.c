/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TCP: how connections begin and end.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <weir/error.h>

#include "os/clock.h"
#include "os/system.h"
#include "support/channel/test_channel.h"
#include "support/executor/run_on_thread.h"
#include "support/loop/sockets.h"
#include "support/transport/connection.h"

/* ---- beginning ---- */

TEST_EACH_PAIR(tcp, brings_words_both_ways)
{
    connection_open(connection, NULL);
    connection_send(&connection->client, "hello");
    assert_end_events(&connection->server, "read(hello)");
    connection_send(&connection->server, "world");
    assert_end_events(&connection->client, "read(world)");
}

static void on_connected(weir_promise *promise, void *user_data)
{
    struct connection_end *end = user_data;

    (void)promise;
    connection_note(end, "connected");
}

TEST_EACH_CONNECTION(tcp, completes_the_connect_before_active)
{
    weir_promise *promise;

    connection_prepare(connection, NULL);
    promise = connection_promise(&connection->client);
    assert_int_equal(weir_promise_add_listener(promise, on_connected, &connection->client), 0);
    weir_channel_connect(connection->client.channel, &connection->address, NULL, promise);
    assert_int_equal(connection_result(promise), 0);
    assert_end_events(&connection->client, "connected active");
}

static void close_it(weir_promise *promise, void *channel)
{
    (void)promise;
    weir_channel_close(channel, NULL);
}

TEST_EACH_PAIR(tcp, becomes_active_and_then_inactive_if_closed_when_connected)
{
    weir_promise *promise;

    connection_prepare(connection, NULL);
    promise = connection_promise(&connection->client);
    assert_int_equal(weir_promise_add_listener(promise, close_it, connection->client.channel), 0);
    weir_channel_connect(connection->client.channel, &connection->address, NULL, promise);
    assert_int_equal(connection_result(promise), 0);
    assert_end_events(&connection->client, "active inactive unregistered");
    assert_end_events(&connection->server, "registered active inactive unregistered");
}

TEST_EACH_CONNECTION(tcp, fails_what_is_written_before_it_has_a_loop)
{
    weir_promise *promise;

    connection_make_client(connection);
    promise = connection_promise(&connection->client);
    weir_channel_write_and_flush(connection->client.channel, text_msg("x"), promise);
    assert_int_equal(connection_result(promise), -ENOTCONN);
    weir_group_register(connection->near.group, connection->client.channel, NULL);
    assert_end_events(&connection->client, "registered");
}

TEST_EACH_CONNECTION(tcp, fails_what_is_written_before_it_is_connected)
{
    weir_promise *promise;

    connection_prepare(connection, NULL);
    promise = connection_promise(&connection->client);
    weir_channel_write_and_flush(connection->client.channel, text_msg("x"), promise);
    assert_int_equal(connection_result(promise), -ENOTCONN);
    connection_connect(connection);
    connection_send(&connection->client, "y");
    assert_end_events(&connection->server, "read(y)");
}

TEST_EACH_CONNECTION(tcp, is_closed_if_its_loop_has_ended)
{
    weir_promise *promise;

    connection_make_client(connection);
    host_end(&connection->near);
    assert_int_equal(weir_promise_create(connection->far.loop, &promise), 0);
    weir_group_register(connection->near.group, connection->client.channel, promise);
    assert_int_equal(connection_result(promise), WEIR_EREJECTED);
    assert_int_equal(weir_channel_await_closed(connection->client.channel, TEST_TIMEOUT_NS), 0);
}

TEST(tcp, does_not_live_on_a_plain_executor)
{
    weir_group *group = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 1));
    weir_channel *channel;
    weir_promise *promise;

    assert_int_equal(weir_tcp_create(NULL, &channel), 0);
    assert_int_equal(weir_promise_create(weir_group_at(group, 0), &promise), 0);
    weir_group_register(group, channel, promise);
    assert_int_equal(connection_result(promise), -EINVAL);
    assert_int_equal(weir_channel_await_closed(channel, TEST_TIMEOUT_NS), 0);
    weir_channel_release(channel);
    end_group(group);
}

/* ---- ending ---- */

TEST_EACH_PAIR(tcp, can_be_closed_twice)
{
    weir_promise *first, *second;

    connection_open(connection, NULL);
    first = connection_promise(&connection->client);
    second = connection_promise(&connection->client);
    weir_channel_close(connection->client.channel, first);
    weir_channel_close(connection->client.channel, second);
    assert_int_equal(connection_result(first), 0);
    assert_int_equal(connection_result(second), 0);
    assert_end_events(&connection->client, "inactive unregistered");
    assert_end_events(&connection->server, "inactive unregistered");
    assert_int_equal(connection_do(&connection->client, weir_channel_close), 0);
}

TEST_EACH_PAIR(tcp, sends_what_was_written_before_a_close)
{
    weir_promise *before, *after;

    connection_open(connection, NULL);
    before = connection_promise(&connection->client);
    after = connection_promise(&connection->client);
    weir_channel_write(connection->client.channel, text_msg("last"), before); /* not flushed */
    weir_channel_close(connection->client.channel, NULL);
    weir_channel_write(connection->client.channel, text_msg("late"), after);
    weir_channel_flush(connection->client.channel);
    assert_int_equal(connection_result(before), 0);
    assert_int_equal(connection_result(after), WEIR_ECLOSED);
    assert_end_events(&connection->server, "read(last) inactive unregistered");
}

static void reply_and_close(weir_ctx *ctx, weir_msg *msg)
{
    weir_msg_release(msg);
    weir_write(ctx, text_msg("bye"), NULL);
    weir_close(ctx, NULL);
}

static void keep_sending(weir_ctx *ctx)
{
    for (int i = 0; i < 64 && weir_ctx_is_writable(ctx); i++)
        weir_write(ctx, sized_msg(4096), NULL);
    weir_flush(ctx);
}

static ssize_t (*send_as_ever)(int descriptor, const void *bytes, size_t length, int flags);
static _Atomic size_t sent_with_more;

static ssize_t send_noting_more(int descriptor, const void *bytes, size_t length, int flags)
{
    if ((flags & MSG_MORE) != 0)
        sent_with_more += length;
    return send_as_ever(descriptor, bytes, length, flags);
}

TEST_EACH_CONNECTION(tcp, sends_its_last_words_in_one_packet_with_its_end)
{
    connection_open(connection, NULL);
    sent_with_more = 0;
    send_as_ever = weir__sys.send;
    weir__sys.send = send_noting_more;
    connection_send(&connection->client, "hello");
    assert_end_events(&connection->server, "read(hello)");
    assert_int_equal(sent_with_more, 0);
    weir_channel_write(connection->client.channel, text_msg("bye"), NULL);
    weir_channel_close(connection->client.channel, NULL);
    assert_end_events(&connection->server, "read(bye) inactive unregistered");
    assert_int_equal(weir_channel_await_closed(connection->client.channel, TEST_TIMEOUT_NS), 0);
    weir__sys.send = send_as_ever;
    assert_int_equal(sent_with_more, strlen("bye"));
}

/* The peer has much more to say than the server wants to hear, and still gets its answer. */
TEST_EACH_PAIR(tcp, brings_a_reply_to_a_peer_that_is_still_sending)
{
    connection_prepare(connection, NULL);
    connection->server.on_read = reply_and_close;
    connection->client.on_active = keep_sending;
    connection->client.on_writability = keep_sending;
    connection_start(connection);
    assert_end_events(&connection->client, "active read(bye) inactive unregistered");
    assert_end_events(&connection->server, "registered active inactive unregistered");
}

/* What does not end its stream is waited for no longer than the deadline. */
TEST_EACH_CONNECTION(tcp, waits_for_its_peer_no_longer_than_it_may)
{
    int64_t start;

    connection_open(connection, &(const struct connection_options){
                                    .client = WEIR_CHANNEL_OPTIONS(.close_timeout_ns = weir_ms(50)),
                                    .server = WEIR_CHANNEL_OPTIONS(.half_closure = true)});
    start = weir__monotonic_now();
    assert_int_equal(connection_do(&connection->client, weir_channel_close), 0);
    assert_true(weir__monotonic_now() - start >= weir_ms(50));
    assert_true(weir_channel_is_active(connection->server.channel));
}

/* Nothing is lost: so there is no reset. */
TEST_EACH_PAIR(tcp, aborts_without_a_word)
{
    connection_open(connection, NULL);
    assert_int_equal(connection_do(&connection->client, weir_channel_abort), 0);
    assert_end_events(&connection->client, "inactive unregistered");
    assert_end_events(&connection->server, "inactive unregistered");
}

/* Unsent bytes may be lent to io_uring: they are kept until it returns them. */
TEST_EACH_PAIR(tcp, aborts_while_much_is_under_way)
{
    enum { COUNT = 16 };
    weir_promise *promises[COUNT];
    int failed = 0;

    connection_open(connection, &(const struct connection_options){
                                    .client = WEIR_CHANNEL_OPTIONS(.high_mark = 1 << 30),
                                    .server = WEIR_CHANNEL_OPTIONS(.read_on_demand = true)});
    for (int i = 0; i < COUNT; i++) {
        promises[i] = connection_promise(&connection->client);
        weir_channel_write_and_flush(connection->client.channel, sized_msg(1 << 20), promises[i]);
    }
    assert_int_equal(connection_do(&connection->client, weir_channel_abort), 0);
    for (int i = 0; i < COUNT; i++)
        failed += connection_result(promises[i]) == WEIR_ECLOSED;
    assert_true(failed > 0);
    assert_end_events(&connection->client, "inactive unregistered");
}

TEST_EACH_PAIR(tcp, resets_if_it_is_to)
{
    if (connection_is_unix())
        return; /* there is no such thing */
    connection_open(connection, &(const struct connection_options){
                                    .client = WEIR_CHANNEL_OPTIONS(.reset_on_close = true)});
    assert_int_equal(connection_do(&connection->client, weir_channel_close), 0);
    assert_end_events(&connection->server, "error(ECONNRESET) inactive unregistered");
}

TEST_EACH_PAIR(tcp, resets_accepted_connections_if_it_is_to)
{
    if (connection_is_unix())
        return;
    connection_open(connection, &(const struct connection_options){
                                    .server = WEIR_CHANNEL_OPTIONS(.reset_on_close = true)});
    assert_int_equal(connection_do(&connection->server, weir_channel_close), 0);
    assert_end_events(&connection->client, "error(ECONNRESET) inactive unregistered");
}

static void fire_an_error(weir_ctx *ctx, weir_msg *msg)
{
    weir_msg_release(msg);
    weir_fire_error(ctx, -EBADMSG, "not understood");
}

TEST_EACH_PAIR(tcp, closes_after_an_unhandled_error)
{
    connection_open(connection, NULL);
    connection->server.on_read = fire_an_error;
    connection_send(&connection->client, "x");
    assert_end_events(&connection->client, "inactive unregistered");
    assert_end_events(&connection->server, "inactive unregistered");
}

TEST_EACH_CONNECTION(tcp, knows_its_addresses_after_its_end)
{
    weir_address near, far, peer;

    connection_open(connection, NULL);
    assert_int_equal(weir_channel_local_address(connection->client.channel, &near), 0);
    assert_int_equal(weir_channel_remote_address(connection->client.channel, &far), 0);
    assert_int_equal(weir_channel_remote_address(connection->server.channel, &peer), 0);
    assert_true(weir_address_equal(&far, &connection->address));
    assert_true(weir_address_equal(&near, &peer));
    assert_ptr_equal(weir_channel_parent(connection->server.channel), connection->listener);
    assert_int_equal(connection_do(&connection->client, weir_channel_close), 0);
    assert_int_equal(weir_channel_local_address(connection->client.channel, &far), 0);
    assert_true(weir_address_equal(&near, &far));
}

/* ---- with their loops ---- */

/* How soon is tested in tests/bootstrap. */
TEST_EACH_CONNECTION(tcp, ends_a_loop_with_an_open_listener_soon)
{
    int64_t start = weir__monotonic_now();

    connection_open(connection, NULL);
    assert_int_equal(weir_group_shutdown(connection->far.group, 0, TEST_TIMEOUT_NS), 0);
    assert_int_equal(weir_group_await_termination(connection->far.group, TEST_TIMEOUT_NS), 0);
    assert_true(weir__monotonic_now() - start < TEST_TIMEOUT_NS / 2);
    assert_false(weir_channel_is_open(connection->listener));
    assert_end_events(&connection->server, "inactive unregistered");
    assert_end_events(&connection->client, "inactive unregistered");
}

TEST_EACH_CONNECTION(tcp, keeps_its_loop_from_being_suspended)
{
    weir_executor *loop;

    connection_open(connection, NULL);
    loop = weir_channel_executor(connection->client.channel);
    assert_int_equal(weir_executor_suspend(loop), 0);
    host_turn(&connection->near, 2);
    connection_send(&connection->server, "x");
    assert_end_events(&connection->client, "read(x)");
    assert_int_not_equal(weir_executor_state(loop), WEIR_EXECUTOR_SUSPENDED);
}

static void say_goodbye(weir_ctx *ctx)
{
    weir_write(ctx, text_msg("goodbye"), NULL);
    weir_close(ctx, NULL);
}

static const weir_handler polite = {.name = "polite", .draining = say_goodbye};

/* Handlers with `draining` close their channel themselves; the other channels are closed. */
TEST_EACH_PAIR(tcp, lets_handlers_drain)
{
    connection_open(connection, NULL);
    assert_int_equal(
        weir_pipeline_add_last(weir_channel_pipeline(connection->server.channel), &polite, NULL),
        0);
    host_turn(&connection->far, 1);
    assert_int_equal(weir_group_shutdown(connection->far.group, 0, TEST_TIMEOUT_NS), 0);
    assert_end_events(&connection->client, "read(goodbye) inactive unregistered");
    assert_int_equal(weir_group_await_termination(connection->far.group, TEST_TIMEOUT_NS), 0);
}

/* Everything written before is sent, however much it is. */
TEST_EACH_PAIR(tcp, sends_what_was_written_when_its_loop_shuts_down)
{
    enum { COUNT = 16 };

    connection_open(connection, &(const struct connection_options){
                                    .client = WEIR_CHANNEL_OPTIONS(.high_mark = 1 << 30)});
    connection->server.on_read = connection_discard;
    for (int i = 0; i < COUNT; i++)
        weir_channel_write(connection->client.channel, sized_msg(1 << 20), NULL);
    host_end(&connection->near);
    connection_await(&connection->server, "unregistered", 1);
    assert_int_equal(atomic_load(&connection->server.received), COUNT << 20);
}

static void dawdle(weir_ctx *ctx)
{
    (void)ctx;
}

static const weir_handler dawdler = {.name = "dawdler", .draining = dawdle};

TEST_EACH_CONNECTION(tcp, is_aborted_when_its_loop_cannot_wait)
{
    connection_open(connection, NULL);
    assert_int_equal(
        weir_pipeline_add_last(weir_channel_pipeline(connection->server.channel), &dawdler, NULL),
        0);
    host_turn(&connection->far, 1);
    assert_int_equal(weir_group_shutdown(connection->far.group, 0, weir_ms(20)), 0);
    assert_int_equal(weir_group_await_termination(connection->far.group, TEST_TIMEOUT_NS), 0);
    assert_end_events(&connection->server, "inactive unregistered");
    assert_end_events(&connection->client, "inactive unregistered");
}

/* ---- closed between two loops ---- */

static void close_client(void *arg, int status)
{
    (void)status;
    weir_channel_close(((struct connection *)arg)->client.channel, NULL);
}

/* The task of the deregistration runs before that of the close, and the socket is detached after
 * both. */
static void leave_and_close(void *arg, int status)
{
    struct connection *connection = arg;

    (void)status;
    weir_channel_deregister(connection->client.channel, NULL);
    IGNORE_RESULT(weir_execute(connection->near.loop, close_client, connection));
}

TEST_EACH_CONNECTION(tcp, sends_what_was_written_also_if_it_is_closed_on_its_way_out_of_its_loop)
{
    enum { SIZE = 16 * 1024 * 1024 };
    weir_promise *sent;

    connection_open(connection, &(const struct connection_options){
                                    .server = WEIR_CHANNEL_OPTIONS(.read_on_demand = true)});
    sent = connection_promise(&connection->client);
    connection->server.on_read = connection_discard;
    weir_channel_write_and_flush(connection->client.channel, sized_msg(SIZE), sent);
    assert_int_equal(weir_execute(connection->near.loop, leave_and_close, connection), 0);
    host_turn(&connection->near, 2);
    assert_false(weir_promise_is_done(sent));
    weir_channel_set_auto_read(connection->server.channel, true);
    assert_int_equal(connection_result(sent), 0);
    connection_await_received(&connection->server, SIZE);
    assert_int_equal(weir_channel_await_closed(connection->client.channel, TEST_TIMEOUT_NS), 0);
    assert_int_equal(weir_channel_await_closed(connection->server.channel, TEST_TIMEOUT_NS), 0);
}
