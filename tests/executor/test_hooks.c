/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an executor runs at its end.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <weir/error.h>

#include "executor/executor.h"
#include "support/executor/busy_task.h"
#include "support/executor/call_order.h"
#include "support/executor/gate.h"
#include "support/executor/log_capture.h"
#include "support/executor/single_executor.h"
#include "support/test.h"

static int add_hook(struct solo *solo, struct letters *letters, char letter)
{
    return weir_executor_add_shutdown_hook(solo->executor, letters_task,
                                           letters_arg(letters, letter));
}

static int remove_hook(struct solo *solo, struct letters *letters, char letter)
{
    return weir_executor_remove_shutdown_hook(solo->executor, letters_task,
                                              letters_arg(letters, letter));
}

/* B 4: also without a quiet period, and although there were tasks to the last. */
TEST(life, runs_its_hooks_in_the_order_added_after_the_tasks)
{
    struct solo solo = solo_open(NULL);
    struct letters letters = {0};
    struct gate gate = {0};

    gate_hold(&gate, solo.executor);
    for (char letter = 'x'; letter <= 'z'; letter++)
        assert_int_equal(add_hook(&solo, &letters, letter), 0);
    assert_int_equal(weir_executor_shutdown(solo.executor, 0, PATIENCE_NS), 0);
    assert_int_equal(letters_execute(&letters, solo.executor, 'a'), 0);
    assert_int_equal(letters_execute(&letters, solo.executor, 'b'), 0);
    gate_open(&gate);
    solo_close(&solo);
    assert_string_equal(letters.text, "abxyz");
}

TEST(life, removes_the_first_hook_that_was_added_so)
{
    struct solo solo = solo_open(NULL);
    struct letters letters = {0};

    solo_run_one(&solo);
    assert_int_equal(add_hook(&solo, &letters, 'a'), 0);
    assert_int_equal(add_hook(&solo, &letters, 'b'), 0);
    assert_int_equal(add_hook(&solo, &letters, 'a'), 0);
    assert_int_equal(remove_hook(&solo, &letters, 'a'), 0);
    assert_int_equal(remove_hook(&solo, &letters, 'c'), -ENOENT);
    assert_int_equal(
        weir_executor_remove_shutdown_hook(solo.executor, tally_task, letters_arg(&letters, 'b')),
        -ENOENT);
    solo_close(&solo);
    assert_string_equal(letters.text, "ba");
}

struct hooked {
    struct solo *solo;
    struct letters letters;
    weir_executor *current;
    bool in_executor;
    int err;
};

/* Adds c, removes b, and leaves a task. */
static void change_hooks(void *arg, int status)
{
    struct hooked *hooked = arg;

    (void)status;
    letters_write(&hooked->letters, 'a');
    hooked->err |= add_hook(hooked->solo, &hooked->letters, 'c');
    hooked->err |= remove_hook(hooked->solo, &hooked->letters, 'b');
    hooked->err |= letters_execute(&hooked->letters, hooked->solo->executor, 't');
}

TEST(life, hooks_may_add_and_remove_hooks_and_leave_tasks)
{
    struct solo solo = solo_open(NULL);
    struct hooked hooked = {.solo = &solo};

    solo_run_one(&solo);
    assert_int_equal(weir_executor_add_shutdown_hook(solo.executor, change_hooks, &hooked), 0);
    assert_int_equal(add_hook(&solo, &hooked.letters, 'b'), 0);
    assert_int_equal(add_hook(&solo, &hooked.letters, 'd'), 0);
    solo_close(&solo);
    assert_int_equal(hooked.err, 0);
    assert_string_equal(hooked.letters.text, "adct");
}

static void look_around(void *arg, int status)
{
    struct hooked *hooked = arg;

    hooked->current = weir_executor_current();
    hooked->in_executor = weir_in_executor(hooked->solo->executor);
    hooked->err = letters_execute(&hooked->letters, hooked->solo->executor, 'a');
    letters_write(&hooked->letters, status == 0 ? 'h' : '!');
}

TEST(life, runs_hooks_on_its_thread)
{
    struct solo solo = solo_open(NULL);
    struct hooked hooked = {.solo = &solo};

    solo_run_one(&solo);
    assert_int_equal(weir_executor_add_shutdown_hook(solo.executor, look_around, &hooked), 0);
    solo_end(&solo);
    assert_ptr_equal(hooked.current, solo.executor);
    assert_true(hooked.in_executor);
    assert_int_equal(hooked.err, 0);
    assert_string_equal(hooked.letters.text, "ha");
    solo_close(&solo);
}

/* The hooks of an executor without a thread: on the thread that shuts it down, and no tasks. */
static void check_hooks_without_thread(struct solo *solo)
{
    struct hooked hooked = {.solo = solo};

    assert_int_equal(weir_executor_add_shutdown_hook(solo->executor, look_around, &hooked), 0);
    assert_int_equal(weir_executor_shutdown(solo->executor, 0, PATIENCE_NS), 0);
    assert_string_equal(hooked.letters.text, "h");
    assert_ptr_equal(hooked.current, solo->executor);
    assert_int_equal(hooked.err, WEIR_EREJECTED);
    assert_null(weir_executor_current());
    solo_close(solo);
}

TEST(life, runs_hooks_where_it_is_shut_down_if_it_never_started)
{
    struct solo solo = solo_open(NULL);

    check_hooks_without_thread(&solo);
}

static void release_group(void *arg, int status)
{
    (void)status;
    weir_group_release(arg);
}

TEST(life, may_be_released_by_its_own_hook)
{
    struct solo solo = solo_open(NULL);

    assert_int_equal(weir_executor_add_shutdown_hook(solo.executor, release_group, solo.group), 0);
    assert_int_equal(weir_executor_shutdown(solo.executor, 0, PATIENCE_NS), 0);
}

TEST(life, runs_hooks_where_it_is_shut_down_if_it_is_suspended)
{
    struct solo solo = solo_open(NULL);

    solo_run_one(&solo);
    solo_suspend(&solo);
    check_hooks_without_thread(&solo);
}

TEST(life, runs_its_hooks_at_its_hard_limit_too)
{
    struct solo solo = solo_open(NULL);
    struct treadmill treadmill = {.executor = solo.executor};
    struct letters letters = {0};

    messages_catch();
    assert_int_equal(add_hook(&solo, &letters, 'a'), 0);
    assert_int_equal(weir_execute(solo.executor, treadmill_task, &treadmill), 0);
    assert_int_equal(weir_executor_shutdown(solo.executor, 0, weir_ms(5)), 0);
    solo_close(&solo);
    assert_string_equal(letters.text, "a");
}

TEST(life, takes_hooks_until_they_have_run)
{
    struct solo solo = solo_open(NULL);
    struct letters letters = {0};
    struct gate gate = {0};

    gate_hold(&gate, solo.executor);
    assert_int_equal(weir_executor_shutdown(solo.executor, 0, PATIENCE_NS), 0);
    assert_int_equal(add_hook(&solo, &letters, 'a'), 0);
    gate_open(&gate);
    solo_end(&solo);
    assert_string_equal(letters.text, "a");
    assert_int_equal(add_hook(&solo, &letters, 'b'), WEIR_EREJECTED);
    assert_int_equal(remove_hook(&solo, &letters, 'a'), -ENOENT);
    assert_int_equal(weir_executor_add_shutdown_hook(solo.executor, NULL, NULL), -EINVAL);
    solo_close(&solo);
    assert_string_equal(letters.text, "a");
}

/* Adds a hook each time the last one has run, which is when there seem to be no more. */
struct hook_adder {
    weir__thread thread;
    weir_executor *executor;
    struct tally hooks;
    uint32_t accepted;
};

static void add_hooks(void *arg)
{
    struct hook_adder *adder = arg;

    while (adder->accepted < 100 &&
           weir_executor_add_shutdown_hook(adder->executor, tally_task, &adder->hooks) == 0) {
        adder->accepted++;
        while (atomic_load(&adder->hooks.run) < adder->accepted &&
               weir_executor_state(adder->executor) < WEIR_EXECUTOR_TERMINATED)
            continue;
    }
}

TEST(life, a_hook_that_was_added_in_time_runs_once)
{
    for (int round = 0; round < 200; round++) {
        struct solo solo = solo_open(NULL);
        struct hook_adder adder = {.executor = solo.executor};

        if (round % 2 == 0)
            solo_run_one(&solo);
        assert_int_equal(weir__thread_start(&adder.thread, "adder", add_hooks, &adder), 0);
        weir__thread_yield();
        solo_end(&solo);
        weir__thread_join(&adder.thread);
        assert_int_equal(adder.hooks.run, adder.accepted);
        solo_close(&solo);
    }
}
