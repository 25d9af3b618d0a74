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
    line_open(line, NULL);
    line_say(&line->client, "hello");
    assert_heard(&line->server, "read(hello)");
    line_say(&line->server, "world");
    assert_heard(&line->client, "read(world)");
}

static void on_connected(weir_promise *promise, void *user_data)
{
    struct line_end *end = user_data;

    (void)promise;
    line_note(end, "connected");
}

/* D 75, C.5 */
TEST_EACH_LINE(tcp, tells_who_connects_before_the_handlers)
{
    weir_promise *promise;

    line_prepare(line, NULL);
    promise = line_promise(&line->client);
    assert_int_equal(weir_promise_add_listener(promise, on_connected, &line->client), 0);
    weir_channel_connect(line->client.channel, &line->address, NULL, promise);
    assert_int_equal(line_result(promise), 0);
    assert_heard(&line->client, "connected active");
}

static void close_it(weir_promise *promise, void *channel)
{
    (void)promise;
    weir_channel_close(channel, NULL);
}

/* D 84 */
TEST_EACH_PAIR(tcp, becomes_active_and_then_inactive_if_closed_when_connected)
{
    weir_promise *promise;

    line_prepare(line, NULL);
    promise = line_promise(&line->client);
    assert_int_equal(weir_promise_add_listener(promise, close_it, line->client.channel), 0);
    weir_channel_connect(line->client.channel, &line->address, NULL, promise);
    assert_int_equal(line_result(promise), 0);
    assert_heard(&line->client, "active inactive unregistered");
    assert_heard(&line->server, "registered active inactive unregistered");
}

/* D 95 */
TEST_EACH_LINE(tcp, fails_what_is_written_before_it_has_a_loop)
{
    weir_promise *promise;

    line_make_client(line);
    promise = line_promise(&line->client);
    weir_channel_write_and_flush(line->client.channel, text_msg("x"), promise);
    assert_int_equal(line_result(promise), -ENOTCONN);
    weir_group_register(line->near.group, line->client.channel, NULL);
    assert_heard(&line->client, "registered");
}

TEST_EACH_LINE(tcp, fails_what_is_written_before_it_is_connected)
{
    weir_promise *promise;

    line_prepare(line, NULL);
    promise = line_promise(&line->client);
    weir_channel_write_and_flush(line->client.channel, text_msg("x"), promise);
    assert_int_equal(line_result(promise), -ENOTCONN);
    line_connect(line);
    line_say(&line->client, "y");
    assert_heard(&line->server, "read(y)");
}

/* D 17 */
TEST_EACH_LINE(tcp, is_closed_if_its_loop_has_ended)
{
    weir_promise *promise;

    line_make_client(line);
    host_end(&line->near);
    assert_int_equal(weir_promise_create(line->far.loop, &promise), 0);
    weir_group_register(line->near.group, line->client.channel, promise);
    assert_int_equal(line_result(promise), WEIR_EREJECTED);
    assert_int_equal(weir_channel_await_closed(line->client.channel, TEST_TIMEOUT_NS), 0);
}

TEST(tcp, does_not_live_on_a_plain_executor)
{
    weir_group *group = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 1));
    weir_channel *channel;
    weir_promise *promise;

    assert_int_equal(weir_tcp_create(NULL, &channel), 0);
    assert_int_equal(weir_promise_create(weir_group_at(group, 0), &promise), 0);
    weir_group_register(group, channel, promise);
    assert_int_equal(line_result(promise), -EINVAL);
    assert_int_equal(weir_channel_await_closed(channel, TEST_TIMEOUT_NS), 0);
    weir_channel_release(channel);
    end_group(group);
}

/* ---- ending ---- */

/* D 86 */
TEST_EACH_PAIR(tcp, can_be_closed_twice)
{
    weir_promise *first, *second;

    line_open(line, NULL);
    first = line_promise(&line->client);
    second = line_promise(&line->client);
    weir_channel_close(line->client.channel, first);
    weir_channel_close(line->client.channel, second);
    assert_int_equal(line_result(first), 0);
    assert_int_equal(line_result(second), 0);
    assert_heard(&line->client, "inactive unregistered");
    assert_heard(&line->server, "inactive unregistered");
    assert_int_equal(line_do(&line->client, weir_channel_close), 0);
}

TEST_EACH_PAIR(tcp, sends_what_was_written_before_a_close)
{
    weir_promise *before, *after;

    line_open(line, NULL);
    before = line_promise(&line->client);
    after = line_promise(&line->client);
    weir_channel_write(line->client.channel, text_msg("last"), before); /* not flushed */
    weir_channel_close(line->client.channel, NULL);
    weir_channel_write(line->client.channel, text_msg("late"), after);
    weir_channel_flush(line->client.channel);
    assert_int_equal(line_result(before), 0);
    assert_int_equal(line_result(after), WEIR_ECLOSED);
    assert_heard(&line->server, "read(last) inactive unregistered");
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

TEST_EACH_LINE(tcp, sends_its_last_words_in_one_packet_with_its_end)
{
    line_open(line, NULL);
    sent_with_more = 0;
    send_as_ever = weir__sys.send;
    weir__sys.send = send_noting_more;
    line_say(&line->client, "hello");
    assert_heard(&line->server, "read(hello)");
    assert_int_equal(sent_with_more, 0);
    weir_channel_write(line->client.channel, text_msg("bye"), NULL);
    weir_channel_close(line->client.channel, NULL);
    assert_heard(&line->server, "read(bye) inactive unregistered");
    assert_int_equal(weir_channel_await_closed(line->client.channel, TEST_TIMEOUT_NS), 0);
    weir__sys.send = send_as_ever;
    assert_int_equal(sent_with_more, strlen("bye"));
}

/* B 11: the peer has much more to say than the server wants to hear, and still gets its answer. */
TEST_EACH_PAIR(tcp, brings_a_reply_to_a_peer_that_is_still_sending)
{
    line_prepare(line, NULL);
    line->server.on_read = reply_and_close;
    line->client.on_active = keep_sending;
    line->client.on_writability = keep_sending;
    line_call(line);
    assert_heard(&line->client, "active read(bye) inactive unregistered");
    assert_heard(&line->server, "registered active inactive unregistered");
}

/* B 11: what does not end its stream is waited for no longer than the deadline. */
TEST_EACH_LINE(tcp, waits_for_its_peer_no_longer_than_it_may)
{
    int64_t start;

    line_open(line, &(const struct line_options){
                        .client = WEIR_CHANNEL_OPTIONS(.close_timeout_ns = weir_ms(50)),
                        .server = WEIR_CHANNEL_OPTIONS(.half_closure = true)});
    start = weir__monotonic_now();
    assert_int_equal(line_do(&line->client, weir_channel_close), 0);
    assert_true(weir__monotonic_now() - start >= weir_ms(50));
    assert_true(weir_channel_is_active(line->server.channel));
}

/* Nothing is lost: so there is no reset. */
TEST_EACH_PAIR(tcp, aborts_without_a_word)
{
    line_open(line, NULL);
    assert_int_equal(line_do(&line->client, weir_channel_abort), 0);
    assert_heard(&line->client, "inactive unregistered");
    assert_heard(&line->server, "inactive unregistered");
}

/* What the socket did not take may be lent to the ring: it is kept until that lets go of it. */
TEST_EACH_PAIR(tcp, aborts_while_much_is_under_way)
{
    enum { COUNT = 16 };
    weir_promise *promises[COUNT];
    int failed = 0;

    line_open(line,
              &(const struct line_options){.client = WEIR_CHANNEL_OPTIONS(.high_mark = 1 << 30),
                                           .server = WEIR_CHANNEL_OPTIONS(.read_on_demand = true)});
    for (int i = 0; i < COUNT; i++) {
        promises[i] = line_promise(&line->client);
        weir_channel_write_and_flush(line->client.channel, sized_msg(1 << 20), promises[i]);
    }
    assert_int_equal(line_do(&line->client, weir_channel_abort), 0);
    for (int i = 0; i < COUNT; i++)
        failed += line_result(promises[i]) == WEIR_ECLOSED;
    assert_true(failed > 0);
    assert_heard(&line->client, "inactive unregistered");
}

/* D 91 */
TEST_EACH_PAIR(tcp, resets_if_it_is_to)
{
    if (line_is_unix())
        return; /* there is no such thing */
    line_open(line,
              &(const struct line_options){.client = WEIR_CHANNEL_OPTIONS(.reset_on_close = true)});
    assert_int_equal(line_do(&line->client, weir_channel_close), 0);
    assert_heard(&line->server, "error(ECONNRESET) inactive unregistered");
}

TEST_EACH_PAIR(tcp, resets_accepted_connections_if_it_is_to)
{
    if (line_is_unix())
        return;
    line_open(line,
              &(const struct line_options){.server = WEIR_CHANNEL_OPTIONS(.reset_on_close = true)});
    assert_int_equal(line_do(&line->server, weir_channel_close), 0);
    assert_heard(&line->client, "error(ECONNRESET) inactive unregistered");
}

static void fire_an_error(weir_ctx *ctx, weir_msg *msg)
{
    weir_msg_release(msg);
    weir_fire_error(ctx, -EBADMSG, "not understood");
}

/* D 93 */
TEST_EACH_PAIR(tcp, closes_after_an_error_that_nobody_handles)
{
    line_open(line, NULL);
    line->server.on_read = fire_an_error;
    line_say(&line->client, "x");
    assert_heard(&line->client, "inactive unregistered");
    assert_heard(&line->server, "inactive unregistered");
}

TEST_EACH_LINE(tcp, knows_its_addresses_after_its_end)
{
    weir_address near, far, peer;

    line_open(line, NULL);
    assert_int_equal(weir_channel_local_address(line->client.channel, &near), 0);
    assert_int_equal(weir_channel_remote_address(line->client.channel, &far), 0);
    assert_int_equal(weir_channel_remote_address(line->server.channel, &peer), 0);
    assert_true(weir_address_equal(&far, &line->address));
    assert_true(weir_address_equal(&near, &peer));
    assert_ptr_equal(weir_channel_parent(line->server.channel), line->listener);
    assert_int_equal(line_do(&line->client, weir_channel_close), 0);
    assert_int_equal(weir_channel_local_address(line->client.channel, &far), 0);
    assert_true(weir_address_equal(&near, &far));
}

/* ---- with their loops ---- */

/* How soon is for the tests of bootstrap/ to say: D 22. */
TEST_EACH_LINE(tcp, ends_a_loop_with_an_open_listener_soon)
{
    int64_t start = weir__monotonic_now();

    line_open(line, NULL);
    assert_int_equal(weir_group_shutdown(line->far.group, 0, TEST_TIMEOUT_NS), 0);
    assert_int_equal(weir_group_await_termination(line->far.group, TEST_TIMEOUT_NS), 0);
    assert_true(weir__monotonic_now() - start < TEST_TIMEOUT_NS / 2);
    assert_false(weir_channel_is_open(line->listener));
    assert_heard(&line->server, "inactive unregistered");
    assert_heard(&line->client, "inactive unregistered");
}

/* D 37 */
TEST_EACH_LINE(tcp, keeps_its_loop_from_being_suspended)
{
    weir_executor *loop;

    line_open(line, NULL);
    loop = weir_channel_executor(line->client.channel);
    assert_int_equal(weir_executor_suspend(loop), 0);
    host_turn(&line->near, 2);
    line_say(&line->server, "x");
    assert_heard(&line->client, "read(x)");
    assert_int_not_equal(weir_executor_state(loop), WEIR_EXECUTOR_SUSPENDED);
}

static void say_goodbye(weir_ctx *ctx)
{
    weir_write(ctx, text_msg("goodbye"), NULL);
    weir_close(ctx, NULL);
}

static const weir_handler polite = {.name = "polite", .draining = say_goodbye};

/* DESIGN 7: who knows how to end a conversation does so; the others are closed. */
TEST_EACH_PAIR(tcp, lets_handlers_say_goodbye)
{
    line_open(line, NULL);
    assert_int_equal(
        weir_pipeline_add_last(weir_channel_pipeline(line->server.channel), &polite, NULL), 0);
    host_turn(&line->far, 1);
    assert_int_equal(weir_group_shutdown(line->far.group, 0, TEST_TIMEOUT_NS), 0);
    assert_heard(&line->client, "read(goodbye) inactive unregistered");
    assert_int_equal(weir_group_await_termination(line->far.group, TEST_TIMEOUT_NS), 0);
}

/* DESIGN 7: what was written before is sent, however much it is. */
TEST_EACH_PAIR(tcp, sends_what_was_written_when_its_loop_shuts_down)
{
    enum { COUNT = 16 };

    line_open(line,
              &(const struct line_options){.client = WEIR_CHANNEL_OPTIONS(.high_mark = 1 << 30)});
    line->server.on_read = line_discard;
    for (int i = 0; i < COUNT; i++)
        weir_channel_write(line->client.channel, sized_msg(1 << 20), NULL);
    host_end(&line->near);
    line_await(&line->server, "unregistered", 1);
    assert_int_equal(atomic_load(&line->server.received), COUNT << 20);
}

static void dawdle(weir_ctx *ctx)
{
    (void)ctx;
}

static const weir_handler dawdler = {.name = "dawdler", .draining = dawdle};

TEST_EACH_LINE(tcp, is_aborted_when_its_loop_cannot_wait)
{
    line_open(line, NULL);
    assert_int_equal(
        weir_pipeline_add_last(weir_channel_pipeline(line->server.channel), &dawdler, NULL), 0);
    host_turn(&line->far, 1);
    assert_int_equal(weir_group_shutdown(line->far.group, 0, weir_ms(20)), 0);
    assert_int_equal(weir_group_await_termination(line->far.group, TEST_TIMEOUT_NS), 0);
    assert_heard(&line->server, "inactive unregistered");
    assert_heard(&line->client, "inactive unregistered");
}

/* ---- closed between two loops ---- */

static void close_client(void *arg, int status)
{
    (void)status;
    weir_channel_close(((struct line *)arg)->client.channel, NULL);
}

/* The task of the deregistration comes before that of the close, and the socket is let go of after
 * both. */
static void leave_and_close(void *arg, int status)
{
    struct line *line = arg;

    (void)status;
    weir_channel_deregister(line->client.channel, NULL);
    IGNORE_RESULT(weir_execute(line->near.loop, close_client, line));
}

/* B 11 */
TEST_EACH_LINE(tcp, sends_what_was_written_also_if_it_is_closed_on_its_way_out_of_its_loop)
{
    enum { SIZE = 16 * 1024 * 1024 };
    weir_promise *sent;

    line_open(line,
              &(const struct line_options){.server = WEIR_CHANNEL_OPTIONS(.read_on_demand = true)});
    sent = line_promise(&line->client);
    line->server.on_read = line_discard;
    weir_channel_write_and_flush(line->client.channel, sized_msg(SIZE), sent);
    assert_int_equal(weir_execute(line->near.loop, leave_and_close, line), 0);
    host_turn(&line->near, 2);
    assert_false(weir_promise_is_done(sent));
    weir_channel_set_auto_read(line->server.channel, true);
    assert_int_equal(line_result(sent), 0);
    line_await_received(&line->server, SIZE);
    assert_int_equal(weir_channel_await_closed(line->client.channel, TEST_TIMEOUT_NS), 0);
    assert_int_equal(weir_channel_await_closed(line->server.channel, TEST_TIMEOUT_NS), 0);
}
