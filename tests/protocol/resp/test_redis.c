/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Redis client on an embedded channel: matching of replies, and pushes. test_redis_server.c
 * uses a real server.
 */
#include <weir/redis.h>

#include <errno.h>
#include <stdio.h>

#include <weir/embedded.h>
#include <weir/error.h>

#include "protocol/resp/redis_request.h"
#include "support/codec/feed.h"
#include "support/memory.h"
#include "support/protocol/resp/resp_text.h"

#define REPLIES 8

struct test_channel {
    weir_embedded *embedded;
    weir_channel *channel;
    weir_promise *replies[REPLIES];
    char pushed[FEED_SIZE];
};

static void on_push(weir_channel *channel, weir_resp *push, void *user_data)
{
    struct test_channel *tc = user_data;
    char text[256];

    (void)channel;
    resp_format(weir_resp_msg(push), text, sizeof(text));
    strncat(tc->pushed, text, sizeof(tc->pushed) - strlen(tc->pushed) - 1);
}

static void open_rig(struct test_channel *tc)
{
    *tc = (struct test_channel){0};
    assert_int_equal(weir_embedded_create(NULL, &tc->embedded), 0);
    tc->channel = weir_embedded_channel(tc->embedded);
    assert_int_equal(weir_redis_add(weir_embedded_pipeline(tc->embedded),
                                    WEIR_REDIS_OPTIONS(.push = on_push, .user_data = tc)),
                     0);
}

static void close_rig(struct test_channel *tc)
{
    weir_embedded_release(tc->embedded);
    for (size_t i = 0; i < REPLIES; i++) {
        if (tc->replies[i] != NULL)
            assert_true(weir_promise_is_done(tc->replies[i]));
        weir_promise_release(tc->replies[i]);
    }
}

static void ask(struct test_channel *tc, size_t slot, const char *name, const char *argument)
{
    assert_int_equal(weir_redis_call(tc->channel, &tc->replies[slot], name, argument, NULL), 0);
    weir_embedded_run(tc->embedded);
}

static int answer(struct test_channel *tc, const char *bytes)
{
    return weir_embedded_write_inbound(tc->embedded, feed_bytes(bytes, strlen(bytes)));
}

static void assert_reply(const struct test_channel *tc, size_t slot, const char *expected)
{
    char text[256] = "pending";

    if (weir_promise_value(tc->replies[slot]) != NULL)
        resp_format(weir_resp_msg(weir_promise_value(tc->replies[slot])), text, sizeof(text));
    else if (weir_promise_is_done(tc->replies[slot]))
        (void)snprintf(text, sizeof(text), "%s: %s",
                       weir_error_name(weir_promise_result(tc->replies[slot])),
                       weir_promise_detail(tc->replies[slot]));
    assert_string_equal(text, expected);
}

static void assert_sent(struct test_channel *tc, const char *expected)
{
    char text[FEED_SIZE] = "";
    weir_msg *msg;

    while ((msg = weir_embedded_read_outbound(tc->embedded)) != NULL) {
        strncat(text, (const char *)weir_buf_bytes(weir_buf_of(msg)), weir_msg_size(msg));
        weir_msg_release(msg);
    }
    assert_string_equal(text, expected);
}

/* ---- replies ---- */

TEST(redis, pipelines_commands_and_matches_replies_in_order)
{
    struct test_channel tc;

    open_rig(&tc);
    ask(&tc, 0, "GET", "a");
    ask(&tc, 1, "PING", NULL);
    assert_sent(&tc, "*2\r\n$3\r\nGET\r\n$1\r\na\r\n*1\r\n$4\r\nPING\r\n");
    assert_int_equal(answer(&tc, "$1\r\nx\r\n+PO"), 0);
    assert_reply(&tc, 0, "$x");
    assert_reply(&tc, 1, "pending");
    assert_int_equal(answer(&tc, "NG\r\n"), 0);
    assert_reply(&tc, 1, "+PONG");
    close_rig(&tc);
}

TEST(redis, an_error_reply_fails_its_promise_and_no_other)
{
    struct test_channel tc;

    open_rig(&tc);
    ask(&tc, 0, "NOPE", NULL);
    ask(&tc, 1, "NOPE", NULL);
    ask(&tc, 2, "PING", NULL);
    assert_int_equal(answer(&tc, "-ERR unknown command\r\n!5\r\nERR b\r\n+PONG\r\n"), 0);
    assert_reply(&tc, 0, "WEIR_EREPLY: ERR unknown command");
    assert_reply(&tc, 1, "WEIR_EREPLY: ERR b");
    assert_reply(&tc, 2, "+PONG");
    close_rig(&tc);
}

TEST(redis, pending_commands_fail_when_the_connection_ends)
{
    struct test_channel tc;

    open_rig(&tc);
    ask(&tc, 0, "PING", NULL);
    ask(&tc, 1, "PING", NULL);
    assert_int_equal(answer(&tc, "+PONG\r\n"), 0);
    (void)weir_embedded_finish(tc.embedded);
    assert_reply(&tc, 0, "+PONG");
    assert_reply(&tc, 1, "WEIR_ECLOSED: connection closed before the reply");
    ask(&tc, 2, "PING", NULL);
    assert_reply(&tc, 2, "WEIR_ECLOSED: connection closed before the command was sent");
    close_rig(&tc);
}

/* The defaults of the codec, for servers, are smaller. */
TEST(redis, a_reply_may_have_as_many_elements_as_redis_sends)
{
    enum { COUNT = 20000 };
    struct test_channel tc;

    open_rig(&tc);
    ask(&tc, 0, "KEYS", "*");
    assert_int_equal(answer(&tc, "*20000\r\n"), 0);
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(answer(&tc, "$3\r\nkey\r\n"), 0);
    assert_int_equal(weir_promise_result(tc.replies[0]), 0);
    assert_int_equal(weir_resp_count(weir_promise_value(tc.replies[0])), COUNT);
    close_rig(&tc);
}

TEST(redis, malformed_replies_end_the_connection)
{
    struct test_channel tc;

    open_rig(&tc);
    ask(&tc, 0, "PING", NULL);
    assert_int_equal(answer(&tc, "HTTP/1.1 200 OK\r\n"), WEIR_EMALFORMED);
    assert_reply(&tc, 0, "WEIR_EMALFORMED: unknown type byte");
    weir_embedded_run(tc.embedded);
    assert_false(weir_channel_is_open(tc.channel));
    close_rig(&tc);
}

TEST(redis, pending_commands_fail_when_the_client_is_removed)
{
    struct test_channel tc;

    open_rig(&tc);
    ask(&tc, 0, "PING", NULL);
    assert_int_equal(weir_pipeline_remove(weir_embedded_pipeline(tc.embedded), "redis", NULL), 0);
    assert_reply(&tc, 0, "WEIR_ECLOSED: the redis handler was removed");
    close_rig(&tc);
}

TEST(redis, a_command_that_is_sent_cannot_be_cancelled)
{
    struct test_channel tc;

    open_rig(&tc);
    ask(&tc, 0, "PING", NULL);
    assert_int_equal(weir_promise_cancel(tc.replies[0]), -EBUSY);
    assert_int_equal(answer(&tc, "+PONG\r\n"), 0);
    assert_reply(&tc, 0, "+PONG");
    close_rig(&tc);
}

TEST(redis, a_command_that_was_cancelled_is_not_sent)
{
    const weir_span ping = weir_span_of_text("PING");
    weir__redis_request *request = NULL;
    struct test_channel tc;

    open_rig(&tc);
    assert_int_equal(
        weir__redis_request_create(weir_channel_executor(tc.channel), &ping, 1, &request), 0);
    tc.replies[0] = weir_promise_retain(request->promise);
    assert_int_equal(weir_promise_cancel(tc.replies[0]), 0);
    weir_channel_write_and_flush(tc.channel, &request->msg, NULL);
    assert_sent(&tc, "");
    ask(&tc, 1, "GET", "a");
    assert_int_equal(answer(&tc, ":1\r\n"), 0);
    assert_reply(&tc, 1, ":1");
    assert_true(weir_promise_is_cancelled(tc.replies[0]));
    close_rig(&tc);
}

/* ---- flushing ---- */

static void ask_twice(weir_promise *reply, void *user_data)
{
    struct test_channel *tc = user_data;

    (void)reply;
    assert_int_equal(weir_redis_call(tc->channel, NULL, "PING", NULL), 0);
    assert_int_equal(weir_redis_call(tc->channel, NULL, "PING", NULL), 0);
    assert_null(weir_embedded_read_outbound(tc->embedded));
}

TEST(redis, commands_sent_from_reply_listeners_are_sent_together)
{
    struct test_channel tc;

    open_rig(&tc);
    ask(&tc, 0, "PING", NULL);
    ask(&tc, 1, "PING", NULL);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(weir_promise_add_listener(tc.replies[i], ask_twice, &tc), 0);
    assert_sent(&tc, "*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nPING\r\n");
    assert_int_equal(answer(&tc, "+PONG\r\n+PONG\r\n"), 0);
    assert_sent(&tc, "*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nPING\r\n"
                     "*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nPING\r\n");
    close_rig(&tc);
}

TEST(redis, a_command_needs_a_name_and_has_at_most_64_texts)
{
    struct test_channel tc;

    open_rig(&tc);
    assert_int_equal(weir_redis_command(tc.channel, NULL, 0, NULL), -EINVAL);
    assert_int_equal(weir_redis_call(tc.channel, NULL, NULL, NULL), -EINVAL);
#define EIGHT "1", "2", "3", "4", "5", "6", "7", "8"
    assert_int_equal(weir_redis_call(tc.channel, NULL, EIGHT, EIGHT, EIGHT, EIGHT, EIGHT, EIGHT,
                                     EIGHT, EIGHT, "9", NULL),
                     -E2BIG);
    assert_sent(&tc, "");
    close_rig(&tc);
}

/* ---- subscriptions ---- */

TEST(redis, receives_messages_in_resp2)
{
    struct test_channel tc;

    open_rig(&tc);
    ask(&tc, 0, "LRANGE", "l");
    ask(&tc, 1, "subscribe", "c");
    assert_int_equal(answer(&tc, "*1\r\n$7\r\nmessage\r\n"
                                 "*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n"
                                 "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$2\r\nhi\r\n"),
                     0);
    assert_reply(&tc, 0, "*($message)"); /* before any subscription */
    assert_reply(&tc, 1, "*($subscribe $c :1)");
    assert_string_equal(tc.pushed, "*($message $c $hi)");
    ask(&tc, 2, "PING", NULL);
    assert_int_equal(answer(&tc, "*2\r\n$4\r\npong\r\n$0\r\n\r\n"), 0);
    assert_reply(&tc, 2, "*($pong $)");
    close_rig(&tc);
}

TEST(redis, receives_messages_in_resp3_between_replies)
{
    struct test_channel tc;

    open_rig(&tc);
    ask(&tc, 0, "HELLO", "3");
    ask(&tc, 1, "SUBSCRIBE", "c");
    ask(&tc, 2, "LRANGE", "l");
    assert_int_equal(answer(&tc, "%1\r\n+proto\r\n:3\r\n"
                                 ">3\r\n+subscribe\r\n+c\r\n:1\r\n"
                                 ">3\r\n+message\r\n+c\r\n+hi\r\n"
                                 "*3\r\n+message\r\n+c\r\n+hi\r\n"),
                     0);
    assert_reply(&tc, 0, "%(+proto :3)");
    assert_reply(&tc, 1, ">(+subscribe +c :1)");
    assert_string_equal(tc.pushed, ">(+message +c +hi)");
    assert_reply(&tc, 2, "*(+message +c +hi)");
    close_rig(&tc);
}

TEST(redis, a_subscription_to_several_is_confirmed_by_the_last)
{
    struct test_channel tc;

    open_rig(&tc);
    assert_int_equal(weir_redis_call(tc.channel, &tc.replies[0], "SUBSCRIBE", "a", "b", "a", NULL),
                     0);
    ask(&tc, 1, "PSUBSCRIBE", "p*");
    ask(&tc, 2, "UNSUBSCRIBE", NULL);
    ask(&tc, 3, "UNSUBSCRIBE", NULL);
    ask(&tc, 4, "RESET", NULL);
    ask(&tc, 5, "PING", NULL);
    assert_int_equal(
        answer(&tc, "*3\r\n+subscribe\r\n+a\r\n:1\r\n*3\r\n+subscribe\r\n+b\r\n:2\r\n"), 0);
    assert_reply(&tc, 0, "pending");
    assert_int_equal(
        answer(&tc, "*3\r\n+subscribe\r\n+a\r\n:2\r\n*3\r\n+psubscribe\r\n+p*\r\n:3\r\n"), 0);
    assert_reply(&tc, 0, "*(+subscribe +a :2)");
    assert_reply(&tc, 1, "*(+psubscribe +p* :3)");
    assert_int_equal(answer(&tc, "*3\r\n+unsubscribe\r\n+a\r\n:2\r\n"), 0);
    assert_reply(&tc, 2, "pending");
    assert_int_equal(answer(&tc, "*3\r\n+unsubscribe\r\n+b\r\n:1\r\n"), 0);
    assert_reply(&tc, 2, "*(+unsubscribe +b :1)");
    assert_int_equal(answer(&tc, "*3\r\n+unsubscribe\r\n_\r\n:1\r\n+RESET\r\n+PONG\r\n"), 0);
    assert_reply(&tc, 3, "*(+unsubscribe _ :1)");
    assert_reply(&tc, 4, "+RESET");
    assert_reply(&tc, 5, "+PONG");
    assert_string_equal(tc.pushed, "");
    close_rig(&tc);
}

TEST(redis, a_rejected_subscription_fails_once)
{
    struct test_channel tc;

    open_rig(&tc);
    assert_int_equal(weir_redis_call(tc.channel, &tc.replies[0], "SUBSCRIBE", "a", "b", NULL), 0);
    ask(&tc, 1, "PING", NULL);
    assert_int_equal(answer(&tc, "-NOPERM no\r\n+PONG\r\n"), 0);
    assert_reply(&tc, 0, "WEIR_EREPLY: NOPERM no");
    assert_reply(&tc, 1, "+PONG");
    close_rig(&tc);
}

TEST(redis, an_unrequested_value_is_a_push)
{
    struct test_channel tc;

    open_rig(&tc);
    ask(&tc, 0, "PING", NULL);
    assert_int_equal(answer(&tc, ">1\r\n+invalidate\r\n+PONG\r\n-ERR later\r\n"), 0);
    assert_reply(&tc, 0, "+PONG");
    assert_string_equal(tc.pushed, ">(+invalidate)-ERR later");
    close_rig(&tc);
}

/* ---- no memory ---- */

static bool survives(unsigned n)
{
    weir_msg *bytes = feed_bytes("*1\r\n:1\r\n+OK\r\n", 13);
    struct test_channel tc;
    int err;

    open_rig(&tc);
    test_memory_fail_at(n);
    for (size_t i = 0; i < 2; i++) {
        err = weir_redis_call(tc.channel, &tc.replies[i], "SET", "a", "b", NULL);
        if (err < 0)
            assert_int_equal(err, -ENOMEM);
    }
    (void)weir_embedded_write_inbound(tc.embedded, bytes);
    close_rig(&tc);
    return !test_memory_failed();
}

TEST(redis, survives_allocation_failures)
{
    for (unsigned n = 1; !survives(n); n++)
        ;
    test_memory_fail_at(0);
}
