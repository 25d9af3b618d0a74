/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What anyone may ask a channel.
 */
#include <errno.h>
#include <stdio.h>

#include <weir/channel_group.h>
#include <weir/error.h>

#include "support/channel/test_channel.h"
#include "support/child.h"
#include "support/executor/group.h"
#include "support/executor/run_on_thread.h"
#include "support/memory.h"

TEST(channel, has_a_name_for_the_log)
{
    char name[WEIR__CHANNEL_NAME_SIZE], expected[128];
    struct rig rig;

    rig_open_started(&rig, NULL, NULL);
    (void)snprintf(expected, sizeof(expected), "%llu (127.0.0.1:1 -> 127.0.0.1:2)",
                   (unsigned long long)weir_channel_id(rig.channel));
    assert_string_equal(weir__channel_name(rig.channel, name), expected);
    rig_close(&rig);

    rig_open_started(&rig, NULL, NULL);
    weir_channel_abort(rig.channel, NULL);
    rig_run(&rig);
    (void)snprintf(expected, sizeof(expected), "%llu",
                   (unsigned long long)weir_channel_id(rig.channel));
    assert_string_equal(weir__channel_name(rig.channel, name), expected);
    rig_close(&rig);
}

TEST(channel, remembers_its_addresses_when_it_is_closed)
{
    struct rig rig;
    weir_address address;
    char text[128], expected[128];

    rig_open_started(&rig, NULL, NULL);
    assert_int_equal(weir_channel_local_address(rig.channel, &address), 0);
    assert_int_equal(weir_address_port(&address), 1);
    assert_int_equal(weir_channel_local_address(rig.channel, &address), 0);
    assert_int_equal(rig.wire->address_calls, 1);
    (void)snprintf(expected, sizeof(expected), "[%llu 127.0.0.1:1 - 127.0.0.1:2]",
                   (unsigned long long)weir_channel_id(rig.channel));
    assert_string_equal(weir_channel_format(rig.channel, text, sizeof(text)), expected);
    weir_channel_abort(rig.channel, NULL);
    rig_run(&rig);
    (void)snprintf(expected, sizeof(expected), "[%llu 127.0.0.1:1 ! 127.0.0.1:2]",
                   (unsigned long long)weir_channel_id(rig.channel));
    assert_string_equal(weir_channel_format(rig.channel, text, sizeof(text)), expected);
    rig_close(&rig);

    rig_open_started(&rig, NULL, NULL);
    weir_channel_abort(rig.channel, NULL);
    assert_int_equal(weir_channel_remote_address(rig.channel, &address), -ENOTCONN);
    rig_close(&rig);
}

TEST(channel, finds_its_addresses_without_memory)
{
    struct rig rig;
    weir_address address;

    for (unsigned n = 1; n <= 2; n++) {
        rig_open_started(&rig, NULL, NULL);
        test_memory_fail_at(n);
        assert_int_equal(weir_channel_remote_address(rig.channel, &address), 0);
        assert_true(test_memory_failed());
        test_memory_fail_at(0);
        assert_int_equal(weir_address_port(&address), 2);
        rig_close(&rig);
    }
}

TEST(channel, asks_its_transport_for_socket_options_until_it_is_closed)
{
    struct rig rig;
    int value = 0;
    size_t length = sizeof(value);

    rig_open_started(&rig, NULL, NULL);
    assert_int_equal(weir_channel_set_socket_option(rig.channel, 1, 2, &value, length), -3);
    assert_int_equal(weir_channel_get_socket_option(rig.channel, 1, 2, &value, &length), -ENOTSUP);
    weir_channel_abort(rig.channel, NULL);
    assert_int_equal(weir_channel_set_socket_option(rig.channel, 1, 2, &value, length),
                     WEIR_ECLOSED);
    rig_close(&rig);
}

TEST(channel, has_a_promise_of_its_end_also_afterwards)
{
    struct rig rig;

    rig_open_started(&rig, NULL, NULL);
    assert_int_equal(weir_channel_await_closed(rig.channel, 0), -EDEADLK);
    weir_channel_abort(rig.channel, NULL);
    assert_int_equal(weir_promise_result(weir_channel_closed(rig.channel)), 0);
    rig_close(&rig);

    rig_open_started(&rig, NULL, NULL);
    weir_channel_abort(rig.channel, NULL);
    assert_int_equal(weir_promise_result(weir_channel_closed(rig.channel)), 0);
    rig_close(&rig);

    rig_open_started(&rig, NULL, NULL);
    test_memory_fail_at(1);
    assert_null(weir_channel_closed(rig.channel));
    test_memory_fail_at(0);
    rig_close(&rig);
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
    struct rig rig;
    struct waiter waiter = {.result = 1};

    rig_open_started(&rig, NULL, NULL);
    waiter.channel = rig.channel;
    weir_channel_abort(rig.channel, NULL);
    run_on_other_thread(wait_closed, &waiter);
    assert_int_equal(waiter.result, 0);
    rig_close(&rig);
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
    struct rig rig;

    rig_open(&rig);
    weir_channel_release(rig.channel);
    weir_channel_release(rig.channel);
}

/* The second one is the loop's. */
static void release_an_open_channel_twice(void)
{
    struct rig rig;

    rig_open_started(&rig, NULL, NULL);
    weir_channel_release(rig.channel);
    weir_channel_release(rig.channel);
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
