/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a channel has last sent something.
 */
#include "channel/last_sent.h"

#include <errno.h>
#include <pthread.h>

#include "support/channel/test_channel.h"
#include "support/memory.h"

static int64_t now_of(const struct test_channel *tc)
{
    return weir__executor_now(tc->stepper.executor);
}

TEST(progress, is_of_bytes_and_of_whole_messages)
{
    struct test_channel tc;
    int64_t message_at, bytes_at;

    tc_open_started(&tc, &(const struct wire_options){.silent = true}, NULL);
    assert_int_equal(weir__last_sent_watch(tc.channel), 0);
    assert_int_equal(weir__last_sent_of_bytes(tc.channel), 0);
    weir_channel_write_and_flush(tc.channel, text_msg("x"), NULL);
    tc_run(&tc);
    message_at = now_of(&tc);
    assert_int_equal(weir__last_sent_of_bytes(tc.channel), message_at);
    assert_int_equal(weir__last_sent_of_messages(tc.channel), message_at);
    stepper_advance(&tc.stepper, weir_ms(1));
    tc.wire->room = 1;
    weir_channel_write_and_flush(tc.channel, text_msg("xy"), NULL);
    tc_run(&tc);
    bytes_at = now_of(&tc);
    stepper_advance(&tc.stepper, weir_ms(1));
    assert_int_equal(weir__last_sent_of_bytes(tc.channel), bytes_at);
    assert_int_equal(weir__last_sent_of_messages(tc.channel), message_at);
    tc_close(&tc);
}

/* On the loop it is now while nothing is to be sent; else it is when bytes last went. */
TEST(progress, is_now_while_nothing_is_queued)
{
    struct test_channel tc;
    int64_t sent_at;

    tc_open_started(&tc, &(const struct wire_options){.silent = true}, NULL);
    assert_int_equal(weir_channel_sent_at(tc.channel), now_of(&tc));
    stepper_advance(&tc.stepper, weir_ms(1));
    assert_int_equal(weir_channel_sent_at(tc.channel), now_of(&tc));
    tc.wire->room = 1;
    weir_channel_write_and_flush(tc.channel, text_msg("xy"), NULL);
    tc_run(&tc);
    sent_at = now_of(&tc);
    stepper_advance(&tc.stepper, weir_ms(1));
    assert_int_equal(weir_channel_sent_at(tc.channel), sent_at);
    tc_close(&tc);
}

TEST(progress, counts_bytes_from_the_first_call_on)
{
    struct test_channel tc;

    tc_open_started(&tc, &(const struct wire_options){.silent = true}, NULL);
    weir_channel_write_and_flush(tc.channel, text_msg("before"), NULL);
    tc_run(&tc);
    assert_int_equal(weir_channel_bytes_sent(tc.channel), 0);
    tc.wire->room = 3;
    weir_channel_write_and_flush(tc.channel, text_msg("abcde"), NULL);
    tc_run(&tc);
    assert_int_equal(weir_channel_bytes_sent(tc.channel), 3);
    tc_close(&tc);
}

TEST(progress, is_not_recorded_without_a_request)
{
    struct test_channel tc;

    tc_open_started(&tc, &(const struct wire_options){.silent = true}, NULL);
    weir_channel_write_and_flush(tc.channel, text_msg("x"), NULL);
    tc_run(&tc);
    assert_int_equal(weir__last_sent_of_bytes(tc.channel), 0);
    assert_int_equal(weir__last_sent_of_messages(tc.channel), 0);
    tc_close(&tc);
}

static void *watch(void *channel)
{
    return weir__last_sent_watch(channel) == 0 ? channel : NULL;
}

TEST(progress, may_be_asked_for_by_another_thread)
{
    struct test_channel tc;
    pthread_t thread;
    void *result = NULL;

    tc_open_started(&tc, &(const struct wire_options){.silent = true}, NULL);
    assert_int_equal(pthread_create(&thread, NULL, watch, tc.channel), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_ptr_equal(result, tc.channel);
    tc_run(&tc);
    weir_channel_write_and_flush(tc.channel, text_msg("x"), NULL);
    tc_run(&tc);
    assert_int_equal(weir__last_sent_of_messages(tc.channel), now_of(&tc));
    tc_close(&tc);
}

TEST(progress, needs_memory)
{
    struct test_channel tc;

    tc_open(&tc);
    test_memory_fail_at(1);
    assert_int_equal(weir__last_sent_watch(tc.channel), -ENOMEM);
    test_memory_fail_at(0);
    tc_close(&tc);
}
