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
    struct test_channel tc;
    unsigned a = 0, b = 0;

    tc_open(&tc);
    assert_null(weir_attribute_get(tc.channel, &counted));
    assert_int_equal(weir_attribute_set(tc.channel, &counted, &a), 0);
    assert_int_equal(weir_attribute_set(tc.channel, &plain, &tc), 0);
    assert_ptr_equal(weir_attribute_get(tc.channel, &counted), &a);
    assert_ptr_equal(weir_attribute_get(tc.channel, &plain), &tc);
    assert_int_equal(weir_attribute_set(tc.channel, &counted, &b), 0);
    assert_int_equal(a, 1);
    assert_int_equal(b, 0);
    tc_close(&tc);
    assert_int_equal(b, 1);
}

TEST(attribute, is_set_if_it_is_not_there)
{
    struct test_channel tc;
    unsigned a = 0, b = 0;

    tc_open(&tc);
    assert_ptr_equal(weir_attribute_set_if_absent(tc.channel, &counted, &a), &a);
    assert_ptr_equal(weir_attribute_set_if_absent(tc.channel, &counted, &b), &a);
    assert_int_equal(weir_attribute_set(tc.channel, &counted, NULL), 0);
    assert_int_equal(a, 1);
    assert_ptr_equal(weir_attribute_set_if_absent(tc.channel, &counted, &b), &b);
    tc_close(&tc);
    assert_int_equal(b, 1);
}

TEST(attribute, can_be_removed)
{
    struct test_channel tc;
    unsigned a = 0;

    tc_open(&tc);
    assert_false(weir_attribute_remove(tc.channel, &counted));
    assert_int_equal(weir_attribute_set(tc.channel, &counted, &a), 0);
    assert_int_equal(weir_attribute_set(tc.channel, &plain, &tc), 0);
    assert_true(weir_attribute_remove(tc.channel, &counted));
    assert_int_equal(a, 1);
    assert_null(weir_attribute_get(tc.channel, &counted));
    assert_ptr_equal(weir_attribute_get(tc.channel, &plain), &tc);
    assert_false(weir_attribute_remove(tc.channel, &counted));
    assert_int_equal(weir_attribute_set(tc.channel, &counted, &a), 0);
    tc_close(&tc);
    assert_int_equal(a, 2);
}

TEST(attribute, can_be_taken_out)
{
    struct test_channel tc;
    unsigned a = 0;

    tc_open(&tc);
    assert_null(weir_attribute_take(tc.channel, &counted));
    assert_int_equal(weir_attribute_set(tc.channel, &counted, NULL), 0);
    assert_int_equal(weir_attribute_set(tc.channel, &counted, &a), 0);
    assert_ptr_equal(weir_attribute_take(tc.channel, &counted), &a);
    assert_null(weir_attribute_get(tc.channel, &counted));
    tc_close(&tc);
    assert_int_equal(a, 0);
}

TEST(attribute, stays_the_callers_if_there_is_no_memory)
{
    struct test_channel tc;
    unsigned a = 0;

    tc_open(&tc);
    test_memory_fail_at(1);
    assert_int_equal(weir_attribute_set(tc.channel, &counted, &a), -ENOMEM);
    test_memory_fail_at(1);
    assert_null(weir_attribute_set_if_absent(tc.channel, &counted, &a));
    test_memory_fail_at(0);
    tc_close(&tc);
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
        struct test_channel tc;
        struct racer racer = {.keys = keys};

        tc_open(&tc);
        racer.channel = tc.channel;
        for (size_t i = 0; i < 4; i++)
            assert_int_equal(weir_execute(weir_group_at(group, i), race, &racer), 0);
        assert_true(call_counter_await(&racer.done, 4));
        assert_int_equal(atomic_load(&racer.winners), KEYS);
        tc_close(&tc);
    }
    end_group(group);
}
