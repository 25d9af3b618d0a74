/* SPDX-License-Identifier: Apache-2.0 */
/* Listeners that come and go, also during reports. */
#include <errno.h>

#include "os/thread.h"
#include "support/executor/gate.h"
#include "support/memory.h"
#include "support/watchdog/watched_loop.h"

struct counter {
    unsigned calls;
    struct counter *removes; /* by its first call */
    struct counter *adds;
};

static void on_block(const weir_block *block, void *user_data);

static int add(struct counter *counter)
{
    return weir_watchdog_add_listener(on_block, counter);
}

static int drop(struct counter *counter)
{
    return weir_watchdog_remove_listener(on_block, counter);
}

static void on_block(const weir_block *block, void *user_data)
{
    struct counter *counter = user_data;

    (void)block;
    if (++counter->calls > 1)
        return;
    if (counter->removes != NULL) {
        assert_int_equal(drop(counter->removes), 0);
        assert_int_equal(drop(counter->removes), -ENOENT); /* it is still in the list */
    }
    if (counter->adds != NULL)
        assert_int_equal(add(counter->adds), 0);
}

static void block_in_task(void *arg, int status)
{
    if (status == 0)
        watched_block(arg, weir_ms(100));
}

/* One report: the block has not ended. */
static void report(struct watched_loop *watched)
{
    assert_int_equal(weir_execute(watched->loop, block_in_task, watched), 0);
    watched_run(watched);
}

TEST_EACH_LOOP(listeners, are_called_until_they_are_removed)
{
    struct counter one = {0}, two = {0};
    struct watched_loop watched;

    assert_int_equal(add(&one), 0);
    watched_open(&watched, host, NULL);
    assert_int_equal(add(&two), 0);
    report(&watched);
    assert_int_equal(drop(&one), 0);
    watched_check();
    assert_int_equal(one.calls, 1);
    assert_int_equal(two.calls, 2);
    assert_int_equal(drop(&one), -ENOENT);
    assert_int_equal(drop(&two), 0);
    watched_close(&watched);
}

TEST_EACH_LOOP(listeners, may_remove_themselves_and_others)
{
    struct counter before = {0}, remover = {0}, after = {0}, own = {.removes = &own};
    struct watched_loop watched;

    watched_open(&watched, host, NULL);
    assert_int_equal(add(&own), 0);
    assert_int_equal(add(&before), 0);
    assert_int_equal(add(&remover), 0);
    assert_int_equal(add(&after), 0);
    remover.removes = &after;
    report(&watched);
    watched_check();
    assert_int_equal(own.calls, 1);
    assert_int_equal(before.calls, 2);
    assert_int_equal(remover.calls, 2);
    assert_int_equal(after.calls, 0);
    assert_int_equal(drop(&own), -ENOENT);
    assert_int_equal(drop(&after), -ENOENT);
    assert_int_equal(drop(&before), 0);
    assert_int_equal(drop(&remover), 0);
    watched_close(&watched);
}

TEST_EACH_LOOP(listeners, may_add_others)
{
    struct counter added = {0}, adder = {.adds = &added};
    struct watched_loop watched;

    watched_open(&watched, host, NULL);
    assert_int_equal(add(&adder), 0);
    report(&watched);
    watched_check();
    assert_int_equal(adder.calls, 2);
    assert_int_equal(added.calls, 2);
    assert_int_equal(drop(&adder), 0);
    assert_int_equal(drop(&added), 0);
    watched_close(&watched);
}

TEST_EACH_LOOP(listeners, may_be_added_twice)
{
    struct counter twice = {0};
    struct watched_loop watched;

    watched_open(&watched, host, NULL);
    assert_int_equal(add(&twice), 0);
    assert_int_equal(add(&twice), 0);
    report(&watched);
    assert_int_equal(twice.calls, 2);
    assert_int_equal(drop(&twice), 0);
    watched_check();
    assert_int_equal(twice.calls, 3);
    assert_int_equal(drop(&twice), 0);
    assert_int_equal(drop(&twice), -ENOENT);
    watched_close(&watched);
}

TEST(listeners, need_a_function_and_memory)
{
    struct counter counter = {0};

    assert_int_equal(weir_watchdog_add_listener(NULL, NULL), -EINVAL);
    test_memory_fail_at(1);
    assert_int_equal(add(&counter), -ENOMEM);
    test_memory_fail_at(0);
    assert_int_equal(drop(&counter), -ENOENT);
}

/* ---- another thread ---- */

static void wait_at_gate(const weir_block *block, void *user_data)
{
    if (!block->has_ended)
        gate_task(user_data, 0);
}

struct removal {
    struct gate gate;
    int err;
    bool is_early; /* it has returned while the listener was in its call */
    struct call_counter done;
};

static void remove_listener(void *arg)
{
    struct removal *removal = arg;

    if (gate_await_arrivals(&removal->gate, 1))
        removal->err = weir_watchdog_remove_listener(wait_at_gate, &removal->gate);
    call_counter_add(&removal->done);
}

static void open_gate_later(void *arg)
{
    struct removal *removal = arg;

    if (gate_await_arrivals(&removal->gate, 1))
        removal->is_early = call_counter_await_for(&removal->done, 1, weir_ms(5));
    gate_open(&removal->gate);
}

/* The removal returns when the call is over: the gate is opened while it waits. */
TEST_EACH_LOOP(listeners, are_not_called_after_their_removal_by_another_thread)
{
    static struct removal removal;
    weir__thread remover, opener;
    struct watched_loop watched;

    removal = (struct removal){.err = 1};
    watched_open(&watched, host, NULL);
    assert_int_equal(weir_watchdog_add_listener(wait_at_gate, &removal.gate), 0);
    assert_int_equal(weir__thread_start("opener", open_gate_later, &removal, &opener), 0);
    assert_int_equal(weir_execute(watched.loop, block_in_task, &watched), 0);
    assert_int_equal(weir__thread_start("remover", remove_listener, &removal, &remover), 0);
    watched_run(&watched);
    weir__thread_join(&remover);
    weir__thread_join(&opener);
    assert_int_equal(removal.err, 0);
    assert_false(removal.is_early);
    watched_close(&watched);
}
