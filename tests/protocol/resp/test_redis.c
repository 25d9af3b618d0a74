/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The client of Redis on an embedded channel: which reply is whose, and what is none. A real server
 * is in test_redis_server.c.
 */
#include <weir/redis.h>

#include <errno.h>
#include <stdio.h>

#include <weir/embedded.h>
#include <weir/error.h>

#include "protocol/resp/redis_request.h"
#include "support/codec/feed.h"
#include "support/memory.h"
#include "support/protocol/resp/words.h"

#define REPLIES 8

struct rig {
    weir_embedded *embedded;
    weir_channel *channel;
    weir_promise *replies[REPLIES];
    char pushed[FEED_SIZE];
};

static void on_push(weir_channel *channel, weir_resp *push, void *user_data)
{
    struct rig *rig = user_data;
    char text[256];

    (void)channel;
    resp_words(weir_resp_msg(push), text, sizeof(text));
    strncat(rig->pushed, text, sizeof(rig->pushed) - strlen(rig->pushed) - 1);
}

static void open_rig(struct rig *rig)
{
    *rig = (struct rig){0};
    assert_int_equal(weir_embedded_create(NULL, &rig->embedded), 0);
    rig->channel = weir_embedded_channel(rig->embedded);
    assert_int_equal(weir_redis_add(weir_embedded_pipeline(rig->embedded),
                                    WEIR_REDIS_OPTIONS(.push = on_push, .user_data = rig)),
                     0);
}

static void close_rig(struct rig *rig)
{
    weir_embedded_release(rig->embedded);
    for (size_t i = 0; i < REPLIES; i++) {
        if (rig->replies[i] != NULL)
            assert_true(weir_promise_is_done(rig->replies[i]));
        weir_promise_release(rig->replies[i]);
    }
}

static void ask(struct rig *rig, size_t slot, const char *name, const char *argument)
{
    assert_int_equal(weir_redis_call(rig->channel, &rig->replies[slot], name, argument, NULL), 0);
    weir_embedded_run(rig->embedded);
}

static int answer(struct rig *rig, const char *bytes)
{
    return weir_embedded_write_inbound(rig->embedded, feed_bytes(bytes, strlen(bytes)));
}

static void assert_reply(const struct rig *rig, size_t slot, const char *expected)
{
    char text[256] = "pending";

    if (weir_promise_value(rig->replies[slot]) != NULL)
        resp_words(weir_resp_msg(weir_promise_value(rig->replies[slot])), text, sizeof(text));
    else if (weir_promise_is_done(rig->replies[slot]))
        (void)snprintf(text, sizeof(text), "%s: %s",
                       weir_error_name(weir_promise_result(rig->replies[slot])),
                       weir_promise_detail(rig->replies[slot]));
    assert_string_equal(text, expected);
}

static void assert_sent(struct rig *rig, const char *expected)
{
    char text[FEED_SIZE] = "";
    weir_msg *msg;

    while ((msg = weir_embedded_read_outbound(rig->embedded)) != NULL) {
        strncat(text, (const char *)weir_buf_bytes(weir_buf_of(msg)), weir_msg_size(msg));
        weir_msg_release(msg);
    }
    assert_string_equal(text, expected);
}

/* ---- replies ---- */

TEST(redis, sends_commands_at_once_and_takes_replies_in_order)
{
    struct rig rig;

    open_rig(&rig);
    ask(&rig, 0, "GET", "a");
    ask(&rig, 1, "PING", NULL);
    assert_sent(&rig, "*2\r\n$3\r\nGET\r\n$1\r\na\r\n*1\r\n$4\r\nPING\r\n");
    assert_int_equal(answer(&rig, "$1\r\nx\r\n+PO"), 0);
    assert_reply(&rig, 0, "$x");
    assert_reply(&rig, 1, "pending");
    assert_int_equal(answer(&rig, "NG\r\n"), 0);
    assert_reply(&rig, 1, "+PONG");
    close_rig(&rig);
}

TEST(redis, an_error_reply_fails_its_promise_and_no_other)
{
    struct rig rig;

    open_rig(&rig);
    ask(&rig, 0, "NOPE", NULL);
    ask(&rig, 1, "NOPE", NULL);
    ask(&rig, 2, "PING", NULL);
    assert_int_equal(answer(&rig, "-ERR unknown command\r\n!5\r\nERR b\r\n+PONG\r\n"), 0);
    assert_reply(&rig, 0, "WEIR_EREPLY: ERR unknown command");
    assert_reply(&rig, 1, "WEIR_EREPLY: ERR b");
    assert_reply(&rig, 2, "+PONG");
    close_rig(&rig);
}

TEST(redis, what_is_pending_fails_when_the_connection_ends)
{
    struct rig rig;

    open_rig(&rig);
    ask(&rig, 0, "PING", NULL);
    ask(&rig, 1, "PING", NULL);
    assert_int_equal(answer(&rig, "+PONG\r\n"), 0);
    (void)weir_embedded_finish(rig.embedded);
    assert_reply(&rig, 0, "+PONG");
    assert_reply(&rig, 1, "WEIR_ECLOSED: the connection ended before the reply came");
    ask(&rig, 2, "PING", NULL);
    assert_reply(&rig, 2, "WEIR_ECLOSED: the connection ended before the command was sent");
    close_rig(&rig);
}

/* The codec's own defaults, for servers, are smaller. */
TEST(redis, a_reply_may_have_as_many_elements_as_redis_sends)
{
    enum { COUNT = 20000 };
    struct rig rig;

    open_rig(&rig);
    ask(&rig, 0, "KEYS", "*");
    assert_int_equal(answer(&rig, "*20000\r\n"), 0);
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(answer(&rig, "$3\r\nkey\r\n"), 0);
    assert_int_equal(weir_promise_result(rig.replies[0]), 0);
    assert_int_equal(weir_resp_count(weir_promise_value(rig.replies[0])), COUNT);
    close_rig(&rig);
}

TEST(redis, bytes_that_are_no_resp_end_the_connection)
{
    struct rig rig;

    open_rig(&rig);
    ask(&rig, 0, "PING", NULL);
    assert_int_equal(answer(&rig, "HTTP/1.1 200 OK\r\n"), WEIR_EMALFORMED);
    assert_reply(&rig, 0, "WEIR_EMALFORMED: no value begins with such a byte");
    weir_embedded_run(rig.embedded);
    assert_false(weir_channel_is_open(rig.channel));
    close_rig(&rig);
}

TEST(redis, what_is_pending_fails_when_the_client_is_removed)
{
    struct rig rig;

    open_rig(&rig);
    ask(&rig, 0, "PING", NULL);
    assert_int_equal(weir_pipeline_remove(weir_embedded_pipeline(rig.embedded), "redis", NULL), 0);
    assert_reply(&rig, 0, "WEIR_ECLOSED: nobody listens to the server any more");
    close_rig(&rig);
}

TEST(redis, a_command_that_is_sent_cannot_be_cancelled)
{
    struct rig rig;

    open_rig(&rig);
    ask(&rig, 0, "PING", NULL);
    assert_int_equal(weir_promise_cancel(rig.replies[0]), -EBUSY);
    assert_int_equal(answer(&rig, "+PONG\r\n"), 0);
    assert_reply(&rig, 0, "+PONG");
    close_rig(&rig);
}

TEST(redis, a_command_that_was_cancelled_is_not_sent)
{
    const weir_span ping = weir_span_of_text("PING");
    weir__redis_request *request = NULL;
    struct rig rig;

    open_rig(&rig);
    assert_int_equal(
        weir__redis_request_create(weir_channel_executor(rig.channel), &ping, 1, &request), 0);
    rig.replies[0] = weir_promise_retain(request->promise);
    assert_int_equal(weir_promise_cancel(rig.replies[0]), 0);
    weir_channel_write_and_flush(rig.channel, &request->msg, NULL);
    assert_sent(&rig, "");
    ask(&rig, 1, "GET", "a");
    assert_int_equal(answer(&rig, ":1\r\n"), 0);
    assert_reply(&rig, 1, ":1");
    assert_true(weir_promise_is_cancelled(rig.replies[0]));
    close_rig(&rig);
}

/* ---- flushing ---- */

static unsigned flushes;

static void count_flush(weir_ctx *ctx)
{
    flushes++;
    weir_flush(ctx);
}

static void ask_twice(weir_promise *reply, void *user_data)
{
    struct rig *rig = user_data;

    (void)reply;
    (void)weir_redis_call(rig->channel, NULL, "PING", NULL);
    (void)weir_redis_call(rig->channel, NULL, "PING", NULL);
}

TEST(redis, commands_that_are_made_while_replies_are_heard_are_sent_together)
{
    static const weir_handler counter = {.name = "counter", .flush = count_flush};
    struct rig rig;

    open_rig(&rig);
    assert_int_equal(weir_pipeline_add_first(weir_embedded_pipeline(rig.embedded), &counter, NULL),
                     0);
    ask(&rig, 0, "PING", NULL);
    ask(&rig, 1, "PING", NULL);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(weir_promise_add_listener(rig.replies[i], ask_twice, &rig), 0);
    assert_sent(&rig, "*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nPING\r\n");
    flushes = 0;
    assert_int_equal(answer(&rig, "+PONG\r\n+PONG\r\n"), 0);
    assert_int_equal(flushes, 1);
    assert_sent(&rig, "*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nPING\r\n"
                      "*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nPING\r\n");
    close_rig(&rig);
}

TEST(redis, a_command_needs_a_name_and_has_at_most_64_texts)
{
    struct rig rig;

    open_rig(&rig);
    assert_int_equal(weir_redis_command(rig.channel, NULL, 0, NULL), -EINVAL);
    assert_int_equal(weir_redis_call(rig.channel, NULL, NULL, NULL), -EINVAL);
#define EIGHT "1", "2", "3", "4", "5", "6", "7", "8"
    assert_int_equal(weir_redis_call(rig.channel, NULL, EIGHT, EIGHT, EIGHT, EIGHT, EIGHT, EIGHT,
                                     EIGHT, EIGHT, "9", NULL),
                     -E2BIG);
    assert_sent(&rig, "");
    close_rig(&rig);
}

/* ---- subscriptions ---- */

TEST(redis, hears_messages_in_version_2)
{
    struct rig rig;

    open_rig(&rig);
    ask(&rig, 0, "LRANGE", "l");
    ask(&rig, 1, "subscribe", "c");
    assert_int_equal(answer(&rig, "*1\r\n$7\r\nmessage\r\n"
                                  "*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n"
                                  "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$2\r\nhi\r\n"),
                     0);
    assert_reply(&rig, 0, "*($message)"); /* nothing was subscribed to by then */
    assert_reply(&rig, 1, "*($subscribe $c :1)");
    assert_string_equal(rig.pushed, "*($message $c $hi)");
    ask(&rig, 2, "PING", NULL);
    assert_int_equal(answer(&rig, "*2\r\n$4\r\npong\r\n$0\r\n\r\n"), 0);
    assert_reply(&rig, 2, "*($pong $)");
    close_rig(&rig);
}

TEST(redis, hears_messages_in_version_3_between_replies)
{
    struct rig rig;

    open_rig(&rig);
    ask(&rig, 0, "HELLO", "3");
    ask(&rig, 1, "SUBSCRIBE", "c");
    ask(&rig, 2, "LRANGE", "l");
    assert_int_equal(answer(&rig, "%1\r\n+proto\r\n:3\r\n"
                                  ">3\r\n+subscribe\r\n+c\r\n:1\r\n"
                                  ">3\r\n+message\r\n+c\r\n+hi\r\n"
                                  "*3\r\n+message\r\n+c\r\n+hi\r\n"),
                     0);
    assert_reply(&rig, 0, "%(+proto :3)");
    assert_reply(&rig, 1, ">(+subscribe +c :1)");
    assert_string_equal(rig.pushed, ">(+message +c +hi)");
    assert_reply(&rig, 2, "*(+message +c +hi)");
    close_rig(&rig);
}

TEST(redis, a_subscription_to_several_is_confirmed_by_the_last)
{
    struct rig rig;

    open_rig(&rig);
    assert_int_equal(
        weir_redis_call(rig.channel, &rig.replies[0], "SUBSCRIBE", "a", "b", "a", NULL), 0);
    ask(&rig, 1, "PSUBSCRIBE", "p*");
    ask(&rig, 2, "UNSUBSCRIBE", NULL);
    ask(&rig, 3, "UNSUBSCRIBE", NULL);
    ask(&rig, 4, "RESET", NULL);
    ask(&rig, 5, "PING", NULL);
    assert_int_equal(
        answer(&rig, "*3\r\n+subscribe\r\n+a\r\n:1\r\n*3\r\n+subscribe\r\n+b\r\n:2\r\n"), 0);
    assert_reply(&rig, 0, "pending");
    assert_int_equal(
        answer(&rig, "*3\r\n+subscribe\r\n+a\r\n:2\r\n*3\r\n+psubscribe\r\n+p*\r\n:3\r\n"), 0);
    assert_reply(&rig, 0, "*(+subscribe +a :2)");
    assert_reply(&rig, 1, "*(+psubscribe +p* :3)");
    assert_int_equal(answer(&rig, "*3\r\n+unsubscribe\r\n+a\r\n:2\r\n"), 0);
    assert_reply(&rig, 2, "pending");
    assert_int_equal(answer(&rig, "*3\r\n+unsubscribe\r\n+b\r\n:1\r\n"), 0);
    assert_reply(&rig, 2, "*(+unsubscribe +b :1)");
    assert_int_equal(answer(&rig, "*3\r\n+unsubscribe\r\n_\r\n:1\r\n+RESET\r\n+PONG\r\n"), 0);
    assert_reply(&rig, 3, "*(+unsubscribe _ :1)");
    assert_reply(&rig, 4, "+RESET");
    assert_reply(&rig, 5, "+PONG");
    assert_string_equal(rig.pushed, "");
    close_rig(&rig);
}

TEST(redis, a_subscription_that_is_refused_fails_once)
{
    struct rig rig;

    open_rig(&rig);
    assert_int_equal(weir_redis_call(rig.channel, &rig.replies[0], "SUBSCRIBE", "a", "b", NULL), 0);
    ask(&rig, 1, "PING", NULL);
    assert_int_equal(answer(&rig, "-NOPERM no\r\n+PONG\r\n"), 0);
    assert_reply(&rig, 0, "WEIR_EREPLY: NOPERM no");
    assert_reply(&rig, 1, "+PONG");
    close_rig(&rig);
}

TEST(redis, what_nobody_has_asked_for_is_pushed)
{
    struct rig rig;

    open_rig(&rig);
    ask(&rig, 0, "PING", NULL);
    assert_int_equal(answer(&rig, ">1\r\n+invalidate\r\n+PONG\r\n-ERR later\r\n"), 0);
    assert_reply(&rig, 0, "+PONG");
    assert_string_equal(rig.pushed, ">(+invalidate)-ERR later");
    close_rig(&rig);
}

/* ---- no memory ---- */

static bool survives(unsigned n)
{
    weir_msg *bytes = feed_bytes("*1\r\n:1\r\n+OK\r\n", 13);
    struct rig rig;
    int err;

    open_rig(&rig);
    test_memory_fail_at(n);
    for (size_t i = 0; i < 2; i++) {
        err = weir_redis_call(rig.channel, &rig.replies[i], "SET", "a", "b", NULL);
        if (err < 0)
            assert_int_equal(err, -ENOMEM);
    }
    (void)weir_embedded_write_inbound(rig.embedded, bytes);
    close_rig(&rig);
    return !test_memory_failed();
}

TEST(redis, survives_without_memory)
{
    for (unsigned n = 1; !survives(n); n++)
        ;
    test_memory_fail_at(0);
}
