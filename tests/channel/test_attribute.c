/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values that users hang on a channel.
 */
#include <weir/channel.h>

#include <errno.h>

#include "support/channel/test_channel.h"
#include "support/executor/call_counter.h"
#include "support/executor/group.h"
#include "support/executor/run_on_thread.h"
#include "support/memory.h"

static void count_free(void *value)
{
    (*(unsigned *)value)++;
}

static const weir_attribute counted = {.name = "counted", .free = count_free};
static const weir_attribute plain = {.name = "plain"};

TEST(attribute, is_set_found_and_replaced)
{
    struct rig rig;
    unsigned a = 0, b = 0;

    rig_open(&rig);
    assert_null(weir_attribute_get(rig.channel, &counted));
    assert_int_equal(weir_attribute_set(rig.channel, &counted, &a), 0);
    assert_int_equal(weir_attribute_set(rig.channel, &plain, &rig), 0);
    assert_ptr_equal(weir_attribute_get(rig.channel, &counted), &a);
    assert_ptr_equal(weir_attribute_get(rig.channel, &plain), &rig);
    assert_int_equal(weir_attribute_set(rig.channel, &counted, &b), 0);
    assert_int_equal(a, 1);
    assert_int_equal(b, 0);
    rig_close(&rig);
    assert_int_equal(b, 1);
}

TEST(attribute, is_set_if_it_is_not_there)
{
    struct rig rig;
    unsigned a = 0, b = 0;

    rig_open(&rig);
    assert_ptr_equal(weir_attribute_set_if_absent(rig.channel, &counted, &a), &a);
    assert_ptr_equal(weir_attribute_set_if_absent(rig.channel, &counted, &b), &a);
    assert_int_equal(weir_attribute_set(rig.channel, &counted, NULL), 0);
    assert_int_equal(a, 1);
    assert_ptr_equal(weir_attribute_set_if_absent(rig.channel, &counted, &b), &b);
    rig_close(&rig);
    assert_int_equal(b, 1);
}

TEST(attribute, can_be_taken_out)
{
    struct rig rig;
    unsigned a = 0;

    rig_open(&rig);
    assert_null(weir_attribute_take(rig.channel, &counted));
    assert_int_equal(weir_attribute_set(rig.channel, &counted, NULL), 0);
    assert_int_equal(weir_attribute_set(rig.channel, &counted, &a), 0);
    assert_ptr_equal(weir_attribute_take(rig.channel, &counted), &a);
    assert_null(weir_attribute_get(rig.channel, &counted));
    rig_close(&rig);
    assert_int_equal(a, 0);
}

TEST(attribute, stays_the_callers_if_there_is_no_memory)
{
    struct rig rig;
    unsigned a = 0;

    rig_open(&rig);
    test_memory_fail_at(1);
    assert_int_equal(weir_attribute_set(rig.channel, &counted, &a), -ENOMEM);
    test_memory_fail_at(1);
    assert_null(weir_attribute_set_if_absent(rig.channel, &counted, &a));
    test_memory_fail_at(0);
    rig_close(&rig);
    assert_int_equal(a, 0);
}

#define KEYS 8
#define ROUNDS 200

struct racer {
    weir_channel *channel;
    weir_attribute *keys;
    struct call_counter done;
    _Atomic unsigned winners;
};

static void race(void *arg, int status)
{
    struct racer *racer = arg;
    int mine;

    (void)status;
    for (int i = 0; i < KEYS; i++)
        if (weir_attribute_set_if_absent(racer->channel, &racer->keys[i], &mine) == &mine)
            atomic_fetch_add(&racer->winners, 1);
    call_counter_add(&racer->done);
}

TEST(attribute, has_one_value_however_many_threads_set_it)
{
    weir_group *group = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 4));
    weir_attribute keys[KEYS] = {{.name = "key"}};

    for (int round = 0; round < ROUNDS; round++) {
        struct rig rig;
        struct racer racer = {.keys = keys};

        rig_open(&rig);
        racer.channel = rig.channel;
        for (size_t i = 0; i < 4; i++)
            assert_int_equal(weir_execute(weir_group_at(group, i), race, &racer), 0);
        assert_true(call_counter_await(&racer.done, 4));
        assert_int_equal(atomic_load(&racer.winners), KEYS);
        rig_close(&rig);
    }
    end_group(group);
}
