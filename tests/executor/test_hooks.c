/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shutdown hooks.
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

static int add_hook(struct single_executor *single, struct call_order *letters, char letter)
{
    return weir_executor_add_shutdown_hook(single->executor, call_order_task,
                                           call_order_arg(letters, letter));
}

static int remove_hook(struct single_executor *single, struct call_order *letters, char letter)
{
    return weir_executor_remove_shutdown_hook(single->executor, call_order_task,
                                              call_order_arg(letters, letter));
}

/* Also without a quiet period, and with tasks until the end. */
TEST(lifecycle, runs_its_hooks_in_the_order_added_after_the_tasks)
{
    struct single_executor single = single_executor_open(NULL);
    struct call_order letters = {0};
    struct gate gate = {0};

    gate_hold(&gate, single.executor);
    for (char letter = 'x'; letter <= 'z'; letter++)
        assert_int_equal(add_hook(&single, &letters, letter), 0);
    assert_int_equal(weir_executor_shutdown(single.executor, 0, TEST_TIMEOUT_NS), 0);
    assert_int_equal(call_order_execute(&letters, single.executor, 'a'), 0);
    assert_int_equal(call_order_execute(&letters, single.executor, 'b'), 0);
    gate_open(&gate);
    single_executor_close(&single);
    assert_string_equal(letters.text, "abxyz");
}

TEST(lifecycle, removes_the_first_matching_hook)
{
    struct single_executor single = single_executor_open(NULL);
    struct call_order letters = {0};

    single_executor_run_one(&single);
    assert_int_equal(add_hook(&single, &letters, 'a'), 0);
    assert_int_equal(add_hook(&single, &letters, 'b'), 0);
    assert_int_equal(add_hook(&single, &letters, 'a'), 0);
    assert_int_equal(remove_hook(&single, &letters, 'a'), 0);
    assert_int_equal(remove_hook(&single, &letters, 'c'), -ENOENT);
    assert_int_equal(weir_executor_remove_shutdown_hook(single.executor, call_counter_task,
                                                        call_order_arg(&letters, 'b')),
                     -ENOENT);
    single_executor_close(&single);
    assert_string_equal(letters.text, "ba");
}

struct hooked {
    struct single_executor *single;
    struct call_order letters;
    weir_executor *current;
    bool in_executor;
    int err;
};

/* Adds c, removes b, and leaves a task. */
static void change_hooks(void *arg, int status)
{
    struct hooked *hooked = arg;

    (void)status;
    call_order_write(&hooked->letters, 'a');
    hooked->err |= add_hook(hooked->single, &hooked->letters, 'c');
    hooked->err |= remove_hook(hooked->single, &hooked->letters, 'b');
    hooked->err |= call_order_execute(&hooked->letters, hooked->single->executor, 't');
}

TEST(lifecycle, hooks_may_add_and_remove_hooks_and_leave_tasks)
{
    struct single_executor single = single_executor_open(NULL);
    struct hooked hooked = {.single = &single};

    single_executor_run_one(&single);
    assert_int_equal(weir_executor_add_shutdown_hook(single.executor, change_hooks, &hooked), 0);
    assert_int_equal(add_hook(&single, &hooked.letters, 'b'), 0);
    assert_int_equal(add_hook(&single, &hooked.letters, 'd'), 0);
    single_executor_close(&single);
    assert_int_equal(hooked.err, 0);
    assert_string_equal(hooked.letters.text, "adct");
}

static void record_state(void *arg, int status)
{
    struct hooked *hooked = arg;

    hooked->current = weir_executor_current();
    hooked->in_executor = weir_in_executor(hooked->single->executor);
    hooked->err = call_order_execute(&hooked->letters, hooked->single->executor, 'a');
    call_order_write(&hooked->letters, status == 0 ? 'h' : '!');
}

TEST(lifecycle, runs_hooks_on_its_thread)
{
    struct single_executor single = single_executor_open(NULL);
    struct hooked hooked = {.single = &single};

    single_executor_run_one(&single);
    assert_int_equal(weir_executor_add_shutdown_hook(single.executor, record_state, &hooked), 0);
    single_executor_end(&single);
    assert_ptr_equal(hooked.current, single.executor);
    assert_true(hooked.in_executor);
    assert_int_equal(hooked.err, 0);
    assert_string_equal(hooked.letters.text, "ha");
    single_executor_close(&single);
}

/* The hooks of an executor without a thread: on the thread that shuts it down, and no tasks. */
static void check_hooks_without_thread(struct single_executor *single)
{
    struct hooked hooked = {.single = single};

    assert_int_equal(weir_executor_add_shutdown_hook(single->executor, record_state, &hooked), 0);
    assert_int_equal(weir_executor_shutdown(single->executor, 0, TEST_TIMEOUT_NS), 0);
    assert_string_equal(hooked.letters.text, "h");
    assert_ptr_equal(hooked.current, single->executor);
    assert_int_equal(hooked.err, WEIR_EREJECTED);
    assert_null(weir_executor_current());
    single_executor_close(single);
}

TEST(lifecycle, runs_hooks_where_it_is_shut_down_if_it_never_started)
{
    struct single_executor single = single_executor_open(NULL);

    check_hooks_without_thread(&single);
}

static void release_group(void *arg, int status)
{
    (void)status;
    weir_group_release(arg);
}

TEST(lifecycle, may_be_released_by_its_own_hook)
{
    struct single_executor single = single_executor_open(NULL);

    assert_int_equal(weir_executor_add_shutdown_hook(single.executor, release_group, single.group),
                     0);
    assert_int_equal(weir_executor_shutdown(single.executor, 0, TEST_TIMEOUT_NS), 0);
}

TEST(lifecycle, runs_hooks_where_it_is_shut_down_if_it_is_suspended)
{
    struct single_executor single = single_executor_open(NULL);

    single_executor_run_one(&single);
    single_executor_suspend(&single);
    check_hooks_without_thread(&single);
}

TEST(lifecycle, runs_its_hooks_at_its_timeout_too)
{
    struct single_executor single = single_executor_open(NULL);
    struct busy_task busy = {.executor = single.executor};
    struct call_order letters = {0};

    log_capture_start();
    assert_int_equal(add_hook(&single, &letters, 'a'), 0);
    assert_int_equal(weir_execute(single.executor, busy_task_run, &busy), 0);
    assert_int_equal(weir_executor_shutdown(single.executor, 0, weir_ms(5)), 0);
    single_executor_close(&single);
    assert_string_equal(letters.text, "a");
}

TEST(lifecycle, accepts_hooks_until_they_have_run)
{
    struct single_executor single = single_executor_open(NULL);
    struct call_order letters = {0};
    struct gate gate = {0};

    gate_hold(&gate, single.executor);
    assert_int_equal(weir_executor_shutdown(single.executor, 0, TEST_TIMEOUT_NS), 0);
    assert_int_equal(add_hook(&single, &letters, 'a'), 0);
    gate_open(&gate);
    single_executor_end(&single);
    assert_string_equal(letters.text, "a");
    assert_int_equal(add_hook(&single, &letters, 'b'), WEIR_EREJECTED);
    assert_int_equal(remove_hook(&single, &letters, 'a'), -ENOENT);
    assert_int_equal(weir_executor_add_shutdown_hook(single.executor, NULL, NULL), -EINVAL);
    single_executor_close(&single);
    assert_string_equal(letters.text, "a");
}

/* Adds a hook whenever the last one has run, when the list seems to be empty. */
struct hook_adder {
    weir__thread thread;
    weir_executor *executor;
    struct call_counter hooks;
    uint32_t accepted;
};

static void add_hooks(void *arg)
{
    struct hook_adder *adder = arg;

    while (adder->accepted < 100 && weir_executor_add_shutdown_hook(
                                        adder->executor, call_counter_task, &adder->hooks) == 0) {
        adder->accepted++;
        while (atomic_load(&adder->hooks.run) < adder->accepted &&
               weir_executor_state(adder->executor) < WEIR_EXECUTOR_TERMINATED)
            continue;
    }
}

TEST(lifecycle, a_hook_that_was_added_in_time_runs_once)
{
    for (int round = 0; round < 200; round++) {
        struct single_executor single = single_executor_open(NULL);
        struct hook_adder adder = {.executor = single.executor};

        if (round % 2 == 0)
            single_executor_run_one(&single);
        assert_int_equal(weir__thread_start("adder", add_hooks, &adder, &adder.thread), 0);
        weir__thread_yield();
        single_executor_end(&single);
        weir__thread_join(&adder.thread);
        assert_int_equal(adder.hooks.run, adder.accepted);
        single_executor_close(&single);
    }
}
