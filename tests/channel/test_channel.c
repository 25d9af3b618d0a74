/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What anyone may ask a channel.
 */
#include <errno.h>
#include <stdio.h>

#include <weir/channel_group.h>
#include <weir/error.h>

#include "os/thread.h"
#include "support/channel/test_channel.h"
#include "support/child.h"
#include "support/executor/group.h"
#include "support/executor/run_on_thread.h"
#include "support/litmus.h"
#include "support/memory.h"

TEST(channel, has_a_name_for_the_log)
{
    char name[WEIR__CHANNEL_LOG_NAME_SIZE], expected[128];
    struct test_channel tc;

    tc_open_started(&tc, NULL, NULL);
    (void)snprintf(expected, sizeof(expected), "%llu (127.0.0.1:1 -> 127.0.0.1:2)",
                   (unsigned long long)weir_channel_id(tc.channel));
    assert_string_equal(weir__channel_log_name(tc.channel, name), expected);
    tc_close(&tc);

    tc_open_started(&tc, NULL, NULL);
    weir_channel_abort(tc.channel, NULL);
    tc_run(&tc);
    (void)snprintf(expected, sizeof(expected), "%llu",
                   (unsigned long long)weir_channel_id(tc.channel));
    assert_string_equal(weir__channel_log_name(tc.channel, name), expected);
    tc_close(&tc);
}

TEST(channel, remembers_its_addresses_when_it_is_closed)
{
    struct test_channel tc;
    weir_address address;
    char text[128], expected[128];

    tc_open_started(&tc, NULL, NULL);
    assert_int_equal(weir_channel_local_address(tc.channel, &address), 0);
    assert_int_equal(weir_address_port(&address), 1);
    assert_int_equal(weir_channel_local_address(tc.channel, &address), 0);
    assert_int_equal(tc.wire->address_calls, 1);
    (void)snprintf(expected, sizeof(expected), "[%llu 127.0.0.1:1 - 127.0.0.1:2]",
                   (unsigned long long)weir_channel_id(tc.channel));
    assert_string_equal(weir_channel_format(tc.channel, text, sizeof(text)), expected);
    weir_channel_abort(tc.channel, NULL);
    tc_run(&tc);
    (void)snprintf(expected, sizeof(expected), "[%llu 127.0.0.1:1 ! 127.0.0.1:2]",
                   (unsigned long long)weir_channel_id(tc.channel));
    assert_string_equal(weir_channel_format(tc.channel, text, sizeof(text)), expected);
    tc_close(&tc);

    tc_open_started(&tc, NULL, NULL);
    weir_channel_abort(tc.channel, NULL);
    assert_int_equal(weir_channel_remote_address(tc.channel, &address), -ENOTCONN);
    tc_close(&tc);
}

TEST(channel, finds_its_addresses_without_memory)
{
    struct test_channel tc;
    weir_address address;

    for (unsigned n = 1; n <= 2; n++) {
        tc_open_started(&tc, NULL, NULL);
        test_memory_fail_at(n);
        assert_int_equal(weir_channel_remote_address(tc.channel, &address), 0);
        assert_true(test_memory_failed());
        test_memory_fail_at(0);
        assert_int_equal(weir_address_port(&address), 2);
        tc_close(&tc);
    }
}

TEST(channel, asks_its_transport_for_socket_options_until_it_is_closed)
{
    struct test_channel tc;
    int value = 0;
    size_t length = sizeof(value);

    tc_open_started(&tc, NULL, NULL);
    assert_int_equal(weir_channel_set_socket_option(tc.channel, 1, 2, &value, length), -3);
    assert_int_equal(weir_channel_get_socket_option(tc.channel, 1, 2, &value, &length), -ENOTSUP);
    weir_channel_abort(tc.channel, NULL);
    assert_int_equal(weir_channel_set_socket_option(tc.channel, 1, 2, &value, length),
                     WEIR_ECLOSED);
    tc_close(&tc);
}

TEST(channel, has_a_promise_of_its_end_also_afterwards)
{
    struct test_channel tc;

    tc_open_started(&tc, NULL, NULL);
    assert_int_equal(weir_channel_await_closed(tc.channel, 0), -EDEADLK);
    weir_channel_abort(tc.channel, NULL);
    assert_int_equal(weir_promise_result(weir_channel_closed(tc.channel)), 0);
    tc_close(&tc);

    tc_open_started(&tc, NULL, NULL);
    weir_channel_abort(tc.channel, NULL);
    assert_int_equal(weir_promise_result(weir_channel_closed(tc.channel)), 0);
    tc_close(&tc);

    tc_open_started(&tc, NULL, NULL);
    test_memory_fail_at(1);
    assert_null(weir_channel_closed(tc.channel));
    test_memory_fail_at(0);
    tc_close(&tc);
}

struct waiter {
    weir_channel *channel;
    int result;
};

static void wait_closed(void *arg)
{
    struct waiter *waiter = arg;

    waiter->result = weir_channel_await_closed(waiter->channel, TEST_TIMEOUT_NS);
}

TEST(channel, can_be_waited_for)
{
    struct test_channel tc;
    struct waiter waiter = {.result = 1};

    tc_open_started(&tc, NULL, NULL);
    waiter.channel = tc.channel;
    weir_channel_abort(tc.channel, NULL);
    run_on_other_thread(wait_closed, &waiter);
    assert_int_equal(waiter.result, 0);
    tc_close(&tc);
}

TEST(channel, is_not_any_message)
{
    weir_msg *msg = text_msg("x");

    assert_null(weir_channel_of(msg));
    assert_null(weir_channel_of(NULL));
    weir_msg_release(msg);
    weir_channel_release(NULL);
}

#ifndef NDEBUG
static void release_a_channel_twice(void)
{
    struct test_channel tc;

    tc_open(&tc);
    weir_channel_release(tc.channel);
    weir_channel_release(tc.channel);
}

/* The second one is the loop's. */
static void release_an_open_channel_twice(void)
{
    struct test_channel tc;

    tc_open_started(&tc, NULL, NULL);
    weir_channel_release(tc.channel);
    weir_channel_release(tc.channel);
}

static void release_a_channel_group_twice(void)
{
    weir_channel_group *group;

    assert_int_equal(weir_channel_group_create(NULL, &group), 0);
    weir_channel_group_release(group);
    weir_channel_group_release(group);
}

TEST(channel, released_once_too_often_fails_an_assertion)
{
    assert_true(
        child_dies_with_output(release_a_channel_twice, "weir_channel_release: the channel"));
    assert_true(child_dies_with_output(release_an_open_channel_twice,
                                       "weir_channel_release: the reference"));
    assert_true(child_dies_with_output(release_a_channel_group_twice,
                                       "weir_channel_group_release: the group"));
}
#endif

/* ---- several threads on behalf of one holder ---- */

static void retain(void *channel)
{
    weir_channel_retain(channel);
}

static void release(void *channel)
{
    weir_channel_release(channel);
}

TEST(channel, of_one_holder_is_retained_by_two_threads)
{
    struct test_channel tc;

    tc_open(&tc); /* not registered: the only reference is the test's */
    litmus_references(retain, release, tc.channel);
    assert_int_equal(weir_msg_refs(&tc.channel->msg), 1);
    assert_int_equal(event_log_count(&tc.events, "DESTROY"), 0);
    tc_close(&tc);
}

/* Returns when the loop has released all of its references. */
static void await_sole(const weir_channel *channel)
{
    while (weir_msg_refs(&channel->msg) > 1)
        weir__thread_yield();
}

/* Each write posts a task, which holds a reference until it has failed. Both threads wait for the
 * end of these tasks, so that they find a count of 1 at the same time. */
static void write_to_closed(void *arg)
{
    weir_channel *channel = arg;
    weir_msg *msg = text_msg("x");

    await_sole(channel);
    weir_channel_write_and_flush(channel, msg, NULL);
}

TEST(channel, of_one_holder_is_written_by_two_threads)
{
    weir_group *group = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 1));
    struct event_log events;
    weir_channel *channel;

    event_log_open(&events);
    assert_int_equal(
        wire_create(&events, &(struct wire_options){.silent = true}, NULL, NULL, &channel), 0);
    weir_channel_register(channel, weir_group_at(group, 0), NULL);
    weir_channel_abort(channel, NULL);
    assert_int_equal(weir_channel_await_closed(channel, TEST_TIMEOUT_NS), 0);
    await_sole(channel);
    (void)litmus_run(write_to_closed, channel, LITMUS_ROUNDS / 100);
    await_sole(channel);
    assert_int_equal(weir_msg_refs(&channel->msg), 1);
    weir_channel_release(channel);
    end_group(group);
    event_log_close(&events);
}
