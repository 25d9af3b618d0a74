/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The client with a real Redis server: on every backend, from several threads, until it is killed.
 */
#include <weir/redis.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <weir/client.h>
#include <weir/error.h>

#include "support/executor/call_counter.h"
#include "support/executor/group.h"
#include "support/protocol/resp/redis_server.h"
#include "support/protocol/resp/resp_text.h"
#include "support/test.h"
#include "support/transport/loops.h"

#define MANY 10000

struct test_channel {
    struct redis_server server;
    weir_group *group;
    weir_redis_options options;
    weir_channel *channel;
};

/* The last push; belongs to the loop until `pushes` has counted it. */
struct ear {
    struct call_counter pushes;
    char last[256];
};

static void on_push(weir_channel *channel, weir_resp *push, void *user_data)
{
    struct ear *ear = user_data;

    (void)channel;
    resp_format(weir_resp_msg(push), ear->last, sizeof(ear->last));
    call_counter_add(&ear->pushes);
}

static int init(weir_channel *channel, void *user_data)
{
    return weir_redis_add(weir_channel_pipeline(channel), user_data);
}

static weir_channel *connect_to(struct test_channel *tc)
{
    weir_channel *channel = NULL;

    assert_int_equal(weir_client_connect_sync(
                         WEIR_CLIENT_OPTIONS(.group = tc->group, .address = tc->server.address,
                                             .init = init, .user_data = &tc->options),
                         &channel),
                     0);
    return channel;
}

static void open_rig(struct test_channel *tc, enum weir_io io, struct ear *ear)
{
    *tc = (struct test_channel){0};
    tc->group = make_loops(WEIR_GROUP_OPTIONS(.threads = 2, .io = io));
    redis_server_start(&tc->server);
    tc->options = *WEIR_REDIS_OPTIONS();
    tc->options.push = ear != NULL ? on_push : NULL;
    tc->options.user_data = ear;
    tc->channel = connect_to(tc);
}

static void close_rig(struct test_channel *tc)
{
    weir_channel_release(tc->channel);
    end_group(tc->group);
    redis_server_stop(&tc->server);
}

/* Waits for the reply, checks its text, and releases the promise. */
static void assert_reply(weir_promise *reply, const char *expected)
{
    char text[256];
    int err = weir_promise_sync(reply, TEST_TIMEOUT_NS);

    if (err < 0)
        (void)snprintf(text, sizeof(text), "%s: %s", weir_error_name(err),
                       weir_promise_detail(reply));
    else
        resp_format(weir_resp_msg(weir_promise_value(reply)), text, sizeof(text));
    weir_promise_release(reply);
    assert_string_equal(text, expected);
}

#define assert_answer(expected, channel, ...)                                              \
    do {                                                                                   \
        weir_promise *reply_ = NULL;                                                       \
        assert_int_equal(weir_redis_call(channel, &reply_, __VA_ARGS__, (char *)NULL), 0); \
        assert_reply(reply_, expected);                                                    \
    } while (0)

static void talk(weir_channel *channel)
{
    assert_answer("+OK", channel, "SET", "key", "a value");
    assert_answer("$a value", channel, "GET", "key");
    assert_answer(":2", channel, "RPUSH", "list", "1", "2");
    assert_answer("*($1 $2)", channel, "LRANGE", "list", "0", "-1");
    assert_answer(":1", channel, "HSET", "hash", "field", "1.5");
    assert_answer("WEIR_EREPLY: WRONGTYPE Operation against a key holding the wrong kind of value",
                  channel, "GET", "hash");
    assert_answer("_", channel, "GET", "nothing");
}

static void talk_on(enum weir_io io)
{
    struct test_channel tc;

    open_rig(&tc, io, NULL);
    talk(tc.channel);
    assert_answer("*($field $1.5)", tc.channel, "HGETALL", "hash");
    assert_answer("+OK", tc.channel, "FLUSHALL");
    weir_promise *hello = NULL;
    assert_int_equal(weir_redis_call(tc.channel, &hello, "HELLO", "3", NULL), 0);
    assert_int_equal(weir_promise_sync(hello, TEST_TIMEOUT_NS), 0);
    assert_int_equal(weir_resp_integer(weir_resp_find(weir_promise_value(hello), "proto")), 3);
    weir_promise_release(hello);
    talk(tc.channel);
    assert_answer("%($field $1.5)", tc.channel, "HGETALL", "hash");
    close_rig(&tc);
}

TEST(redis_server, answers_in_both_versions_on_epoll)
{
    talk_on(WEIR_IO_EPOLL);
}

TEST(redis_server, answers_in_both_versions_on_uring)
{
    talk_on(WEIR_IO_URING);
}

TEST(redis_server, answers_in_both_versions_on_poll)
{
    talk_on(WEIR_IO_POLL);
}

TEST(redis_server, answers_in_both_versions_on_a_thread_per_channel)
{
    talk_on(WEIR_IO_BLOCKING);
}

TEST(redis_server, sends_every_kind_of_version_3)
{
    struct test_channel tc;

    open_rig(&tc, WEIR_IO_AUTO, NULL);
    weir_promise *hello = NULL;
    assert_int_equal(weir_redis_call(tc.channel, &hello, "HELLO", "3", NULL), 0);
    weir_promise_release(hello);
    assert_answer("$Hello World", tc.channel, "DEBUG", "PROTOCOL", "string");
    assert_answer(":12345", tc.channel, "DEBUG", "PROTOCOL", "integer");
    assert_answer(",3.141", tc.channel, "DEBUG", "PROTOCOL", "double");
    assert_answer("_", tc.channel, "DEBUG", "PROTOCOL", "null");
    assert_answer("*(:0 :1 :2)", tc.channel, "DEBUG", "PROTOCOL", "array");
    assert_answer("~(:0 :1 :2)", tc.channel, "DEBUG", "PROTOCOL", "set");
    assert_answer("%(:0 #f :1 #t :2 #f)", tc.channel, "DEBUG", "PROTOCOL", "map");
    assert_answer("|($key-popularity *($key:123 :90))$Some real reply following the attribute",
                  tc.channel, "DEBUG", "PROTOCOL", "attrib");
    assert_answer("(1234567999999999999999999999999999999", tc.channel, "DEBUG", "PROTOCOL",
                  "bignum");
    assert_answer("#t", tc.channel, "DEBUG", "PROTOCOL", "true");
    assert_answer("=txt:This is a verbatim\nstring", tc.channel, "DEBUG", "PROTOCOL", "verbatim");
    close_rig(&tc);
}

/* ---- many ---- */

TEST(redis_server, many_commands_are_answered_in_order)
{
    static weir_promise *replies[MANY];
    struct test_channel tc;

    open_rig(&tc, WEIR_IO_AUTO, NULL);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(weir_redis_call(tc.channel, &replies[i], "INCR", "n", NULL), 0);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(weir_promise_sync(replies[i], TEST_TIMEOUT_NS), 0);
        assert_int_equal(weir_resp_integer(weir_promise_value(replies[i])), i + 1);
        weir_promise_release(replies[i]);
    }
    close_rig(&tc);
}

struct caller {
    pthread_t thread;
    weir_channel *channel;
    bool is_in_order;
};

/* No asserts: runs on another thread. */
static void *call_many(void *arg)
{
    static _Thread_local weir_promise *replies[MANY / 10];
    struct caller *caller = arg;
    int64_t before = 0, number;

    caller->is_in_order = true;
    for (int i = 0; i < MANY / 10; i++)
        if (weir_redis_call(caller->channel, &replies[i], "INCR", "n", NULL) < 0)
            abort();
    for (int i = 0; i < MANY / 10; i++) {
        if (weir_promise_sync(replies[i], TEST_TIMEOUT_NS) < 0)
            abort();
        number = weir_resp_integer(weir_promise_value(replies[i]));
        caller->is_in_order = caller->is_in_order && number > before;
        before = number;
        weir_promise_release(replies[i]);
    }
    return NULL;
}

TEST(redis_server, answers_many_threads_on_one_connection)
{
    struct caller callers[4];
    struct test_channel tc;

    open_rig(&tc, WEIR_IO_AUTO, NULL);
    for (int i = 0; i < 4; i++) {
        callers[i].channel = tc.channel;
        assert_int_equal(pthread_create(&callers[i].thread, NULL, call_many, &callers[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(callers[i].thread, NULL), 0);
        assert_true(callers[i].is_in_order);
    }
    assert_answer("$4000", tc.channel, "GET", "n");
    close_rig(&tc);
}

TEST(redis_server, megabytes_go_there_and_back)
{
    size_t length = 20 << 20;
    char *bytes = malloc(length);
    weir_promise *reply = NULL;
    struct test_channel tc;

    assert_non_null(bytes);
    for (size_t i = 0; i < length; i++)
        bytes[i] = (char)(i * 31 >> 3);
    open_rig(&tc, WEIR_IO_AUTO, NULL);
    const weir_span set[] = {weir_span_of_text("SET"), weir_span_of_text("big"),
                             weir_span_of(bytes, length)};
    assert_int_equal(weir_redis_command(tc.channel, set, 3, &reply), 0);
    assert_reply(reply, "+OK");
    assert_int_equal(weir_redis_call(tc.channel, &reply, "GET", "big", NULL), 0);
    assert_int_equal(weir_promise_sync(reply, TEST_TIMEOUT_NS), 0);
    assert_int_equal(weir_resp_text(weir_promise_value(reply)).length, length);
    assert_memory_equal(weir_resp_text(weir_promise_value(reply)).data, bytes, length);
    weir_promise_release(reply);
    free(bytes);
    close_rig(&tc);
}

/* ---- publish and subscribe ---- */

static void subscribe_in(const char *version, const char *message, const char *pmessage)
{
    struct ear ear = {0};
    weir_channel *publisher;
    weir_promise *hello = NULL;
    struct test_channel tc;

    open_rig(&tc, WEIR_IO_AUTO, &ear);
    publisher = connect_to(&tc);
    assert_int_equal(weir_redis_call(tc.channel, &hello, "HELLO", version, NULL), 0);
    assert_int_equal(weir_promise_sync(hello, TEST_TIMEOUT_NS), 0);
    weir_promise_release(hello);
    assert_answer(version[0] == '2' ? "*($subscribe $b :2)" : ">($subscribe $b :2)", tc.channel,
                  "SUBSCRIBE", "a", "b");
    assert_answer(":1", publisher, "PUBLISH", "b", "hi");
    assert_true(call_counter_await(&ear.pushes, 1));
    assert_string_equal(ear.last, message);
    assert_answer(version[0] == '2' ? "*($psubscribe $c* :3)" : ">($psubscribe $c* :3)", tc.channel,
                  "PSUBSCRIBE", "c*");
    assert_answer(":1", publisher, "PUBLISH", "cat", "meow");
    assert_true(call_counter_await(&ear.pushes, 2));
    assert_string_equal(ear.last, pmessage);
    assert_answer(version[0] == '2' ? "*($pong $)" : "+PONG", tc.channel, "PING");
    assert_answer(version[0] == '2' ? "*($punsubscribe $c* :2)" : ">($punsubscribe $c* :2)",
                  tc.channel, "PUNSUBSCRIBE");
    weir_promise *end = NULL; /* of both, in any order */
    assert_int_equal(weir_redis_call(tc.channel, &end, "UNSUBSCRIBE", NULL), 0);
    assert_int_equal(weir_promise_sync(end, TEST_TIMEOUT_NS), 0);
    assert_int_equal(weir_resp_integer(weir_resp_at(weir_promise_value(end), 2)), 0);
    weir_promise_release(end);
    assert_answer("+OK", tc.channel, "SET", "key", "value");
    assert_answer(":0", publisher, "PUBLISH", "b", "hi");
    weir_channel_release(publisher);
    close_rig(&tc);
}

TEST(redis_server, publishes_to_subscribers_in_resp2)
{
    subscribe_in("2", "*($message $b $hi)", "*($pmessage $c* $cat $meow)");
}

TEST(redis_server, publishes_to_subscribers_in_resp3)
{
    subscribe_in("3", ">($message $b $hi)", ">($pmessage $c* $cat $meow)");
}

/* ---- the end ---- */

TEST(redis_server, killed_fails_all_pending_commands)
{
    weir_promise *replies[100];
    struct test_channel tc;

    open_rig(&tc, WEIR_IO_AUTO, NULL);
    assert_answer("+OK", tc.channel, "CLIENT", "PAUSE", "60000");
    for (int i = 0; i < 100; i++)
        assert_int_equal(weir_redis_call(tc.channel, &replies[i], "SET", "key", "value", NULL), 0);
    redis_server_kill(&tc.server);
    for (int i = 0; i < 100; i++) {
        assert_true(weir_promise_sync(replies[i], TEST_TIMEOUT_NS) < 0);
        weir_promise_release(replies[i]);
    }
    assert_int_equal(weir_redis_call(tc.channel, &replies[0], "PING", NULL), 0);
    assert_int_equal(weir_promise_sync(replies[0], TEST_TIMEOUT_NS), WEIR_ECLOSED);
    weir_promise_release(replies[0]);
    weir_channel_release(tc.channel);
    end_group(tc.group);
}

TEST(redis_server, answers_before_its_client_is_drained)
{
    weir_promise *reply = NULL;
    struct test_channel tc;

    open_rig(&tc, WEIR_IO_AUTO, NULL);
    assert_int_equal(weir_redis_call(tc.channel, &reply, "DEBUG", "SLEEP", "0.2", NULL), 0);
    assert_int_equal(weir_group_shutdown(tc.group, 0, TEST_TIMEOUT_NS), 0);
    assert_reply(reply, "+OK");
    close_rig(&tc);
}
