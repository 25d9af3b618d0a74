/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a channel has last sent something.
 */
#include "channel/last_sent.h"

#include <errno.h>
#include <pthread.h>

#include "support/channel/test_channel.h"
#include "support/memory.h"

static int64_t now_of(const struct rig *rig)
{
    return weir__executor_now(rig->stepper.executor);
}

TEST(progress, is_of_bytes_and_of_whole_messages)
{
    struct rig rig;
    int64_t message_at, bytes_at;

    rig_open_started(&rig, &(const struct wire_options){.silent = true}, NULL);
    assert_int_equal(weir__last_sent_watch(rig.channel), 0);
    assert_int_equal(weir__last_sent_of_bytes(rig.channel), 0);
    weir_channel_write_and_flush(rig.channel, text_msg("x"), NULL);
    rig_run(&rig);
    message_at = now_of(&rig);
    assert_int_equal(weir__last_sent_of_bytes(rig.channel), message_at);
    assert_int_equal(weir__last_sent_of_messages(rig.channel), message_at);
    stepper_advance(&rig.stepper, weir_ms(1));
    rig.wire->room = 1;
    weir_channel_write_and_flush(rig.channel, text_msg("xy"), NULL);
    rig_run(&rig);
    bytes_at = now_of(&rig);
    stepper_advance(&rig.stepper, weir_ms(1));
    assert_int_equal(weir__last_sent_of_bytes(rig.channel), bytes_at);
    assert_int_equal(weir__last_sent_of_messages(rig.channel), message_at);
    rig_close(&rig);
}

/* On the loop it is now while nothing is to be sent; else it is when bytes last went. */
TEST(progress, is_told_to_users_as_the_time_for_which_nothing_moves)
{
    struct rig rig;
    int64_t sent_at;

    rig_open_started(&rig, &(const struct wire_options){.silent = true}, NULL);
    assert_int_equal(weir_channel_sent_at(rig.channel), now_of(&rig));
    stepper_advance(&rig.stepper, weir_ms(1));
    assert_int_equal(weir_channel_sent_at(rig.channel), now_of(&rig));
    rig.wire->room = 1;
    weir_channel_write_and_flush(rig.channel, text_msg("xy"), NULL);
    rig_run(&rig);
    sent_at = now_of(&rig);
    stepper_advance(&rig.stepper, weir_ms(1));
    assert_int_equal(weir_channel_sent_at(rig.channel), sent_at);
    rig_close(&rig);
}

TEST(progress, is_not_written_down_where_nobody_asks)
{
    struct rig rig;

    rig_open_started(&rig, &(const struct wire_options){.silent = true}, NULL);
    weir_channel_write_and_flush(rig.channel, text_msg("x"), NULL);
    rig_run(&rig);
    assert_int_equal(weir__last_sent_of_bytes(rig.channel), 0);
    assert_int_equal(weir__last_sent_of_messages(rig.channel), 0);
    rig_close(&rig);
}

static void *watch(void *channel)
{
    return weir__last_sent_watch(channel) == 0 ? channel : NULL;
}

TEST(progress, may_be_asked_for_by_another_thread)
{
    struct rig rig;
    pthread_t thread;
    void *result = NULL;

    rig_open_started(&rig, &(const struct wire_options){.silent = true}, NULL);
    assert_int_equal(pthread_create(&thread, NULL, watch, rig.channel), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_ptr_equal(result, rig.channel);
    rig_run(&rig);
    weir_channel_write_and_flush(rig.channel, text_msg("x"), NULL);
    rig_run(&rig);
    assert_int_equal(weir__last_sent_of_messages(rig.channel), now_of(&rig));
    rig_close(&rig);
}

TEST(progress, needs_memory)
{
    struct rig rig;

    rig_open(&rig);
    test_memory_fail_at(1);
    assert_int_equal(weir__last_sent_watch(rig.channel), -ENOMEM);
    test_memory_fail_at(0);
    rig_close(&rig);
}
