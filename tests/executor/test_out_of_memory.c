/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every allocation of the layer fails in turn: each scenario is repeated, failing the next
 * allocation, until none fails. A call that needed the allocation returns -ENOMEM and works when
 * repeated, or does without; nothing leaks.
 *
 * Steps that assert on an executor's thread use a manual executor, which runs on the test's thread.
 */
#include <errno.h>

#include <weir/error.h>
#include <weir/manual.h>
#include <weir/promise.h>
#include <weir/thread.h>
#include <weir/timer.h>

#include "executor/executor.h"
#include "support/executor/call_order.h"
#include "support/executor/global_executor.h"
#include "support/executor/log_capture.h"
#include "support/executor/plain_group.h"
#include "support/executor/single_executor.h"
#include "support/memory.h"
#include "support/test.h"

#define AN_HOUR_NS weir_seconds(3600)

/* Makes a call that may fail with -ENOMEM, and repeats it: only one allocation fails. */
#define SURVIVE(call)                               \
    do {                                            \
        int survive_err = (call);                   \
                                                    \
        if (survive_err < 0) {                      \
            assert_int_equal(survive_err, -ENOMEM); \
            assert_true(test_memory_failed());      \
            survive_err = (call);                   \
        }                                           \
        assert_int_equal(survive_err, 0);           \
    } while (0)

/* Returns the number of allocations that failed. */
static unsigned fail_each_allocation(void (*play)(void))
{
    bool failed;
    unsigned n = 0;

    log_capture_start(); /* some of it is logged */
    do {
        test_memory_fail_at(++n);
        play();
        failed = test_memory_failed();
        test_memory_fail_at(0);
        global_executor_stop();
        weir_locals_remove_all();
        assert_int_equal(test_memory_live(), 0);
    } while (failed);
    return n - 1;
}

static weir_group *create_group(const weir_group_options *options)
{
    weir_group_options given = *options;
    weir_group *group;

    given.threads = 2;
    given.io = WEIR_IO_NONE;
    SURVIVE(plain_group_create(&given, &group));
    return group;
}

static void await_counter(struct call_counter *counter, uint32_t calls)
{
    assert_true(call_counter_await(counter, calls));
}

static void end_group(weir_group *group)
{
    assert_int_equal(weir_group_shutdown(group, 0, TEST_TIMEOUT_NS), 0);
    assert_int_equal(weir_group_await_termination(group, TEST_TIMEOUT_NS), 0);
    weir_group_release(group);
}

static void record_letter(weir_promise *promise, void *user_data)
{
    (void)promise;
    call_counter_add(user_data);
}

/* ---- tasks ---- */

static void play_tasks(void)
{
    weir_group *group = create_group(WEIR_GROUP_OPTIONS(.name = "oom"));
    weir_executor *executor = weir_group_next(group);
    weir_thread_properties thread;
    struct call_counter counter = {0};
    weir_promise *promise;
    weir_task task;

    SURVIVE(weir_execute_after_turn(executor, call_counter_task, &counter)); /* starts the thread */
    SURVIVE(weir_execute(executor, call_counter_task, &counter));
    SURVIVE(weir_execute_lazy(executor, call_counter_task, &counter));
    SURVIVE(weir_execute_after_turn(executor, call_counter_task, &counter));
    SURVIVE(weir_execute(weir_group_next(group), call_counter_task, &counter)); /* another one */
    SURVIVE(weir_submit(executor, call_counter_work, &counter, &promise));
    weir_task_init(&task, call_counter_task, &counter);
    assert_int_equal(weir_execute_task(executor, &task), 0);
    SURVIVE(weir_executor_thread(executor, &thread));
    await_counter(&counter, 7);
    assert_int_equal(weir_promise_await(promise, TEST_TIMEOUT_NS), 0);
    assert_int_equal(weir_promise_result(promise), 0);
    weir_promise_release(promise);
    end_group(group);
    assert_int_equal(counter.run, 7);
}

TEST(out_of_memory, tasks_are_refused_and_the_next_ones_run)
{
    assert_true(fail_each_allocation(play_tasks) > 10);
}

/* From within a task: the pool of the executor's own thread. */
struct nested_tasks {
    weir_executor *executor;
    struct call_counter counter;
    int errs[3];
};

static void submit_nested_tasks(void *arg, int status)
{
    struct nested_tasks *nested_tasks = arg;
    weir_executor *executor = nested_tasks->executor;
    struct call_counter *counter = &nested_tasks->counter;

    nested_tasks->errs[0] = weir_execute(executor, call_counter_task, counter);
    nested_tasks->errs[1] = weir_execute_after_turn(executor, call_counter_task, counter);
    nested_tasks->errs[2] = weir_schedule(executor, 0, call_counter_task, counter, NULL);
    call_counter_task(counter, status);
}

static void play_nested_tasks(void)
{
    weir_group *group = create_group(WEIR_GROUP_OPTIONS(.name = "oom"));
    struct nested_tasks nested_tasks = {.executor = weir_group_next(group)};
    unsigned refused = 0;

    SURVIVE(weir_execute(nested_tasks.executor, submit_nested_tasks, &nested_tasks));
    await_counter(&nested_tasks.counter, 1);
    end_group(group);
    for (int i = 0; i < 3; i++) {
        refused += nested_tasks.errs[i] == -ENOMEM;
        assert_true(nested_tasks.errs[i] == 0 || nested_tasks.errs[i] == -ENOMEM);
    }
    assert_true(refused <= 1);
    assert_int_equal(nested_tasks.counter.calls, 4 - refused);
}

TEST(out_of_memory, tasks_within_tasks_are_refused_too)
{
    assert_true(fail_each_allocation(play_nested_tasks) > 10);
}

/* ---- timers ---- */

static void play_schedules(void)
{
    weir_group *group = create_group(WEIR_GROUP_OPTIONS(.name = "oom"));
    weir_executor *executor = weir_group_next(group);
    struct call_counter once = {0}, again = {0};
    weir_promise *promises[4];

    SURVIVE(weir_schedule(executor, 0, call_counter_task, &once, &promises[0]));
    SURVIVE(weir_schedule_at_fixed_rate(executor, 0, weir_us(10), call_counter_task, &again,
                                        &promises[1]));
    SURVIVE(weir_schedule_with_fixed_delay(executor, 0, weir_us(10), call_counter_task, &again,
                                           &promises[2]));
    SURVIVE(weir_schedule(executor, AN_HOUR_NS, call_counter_task, &once, &promises[3]));
    await_counter(&again, 10);
    for (int i = 1; i < 4; i++)
        assert_int_equal(weir_promise_cancel(promises[i]), 0);
    end_group(group);
    assert_int_equal(once.run, 1);
    assert_int_equal(once.cancelled, 1);
    assert_int_equal(again.cancelled, 2);
    for (int i = 0; i < 4; i++)
        weir_promise_release(promises[i]);
}

TEST(out_of_memory, schedules_are_refused_and_the_next_ones_run)
{
    assert_true(fail_each_allocation(play_schedules) > 10);
}

/* ---- lifecycle ---- */

static void play_lifecycle(void)
{
    weir_group *group = create_group(WEIR_GROUP_OPTIONS(.max_pending = 16));
    struct single_executor single = {.group = group, .executor = weir_group_at(group, 0)};
    weir_executor *executor = single.executor;
    struct call_counter tasks = {0}, hooks = {0}, ends = {0};

    SURVIVE(weir_executor_add_shutdown_hook(executor, call_counter_task, &hooks));
    SURVIVE(weir_executor_add_shutdown_hook(weir_group_at(group, 1), call_counter_task, &hooks));
    SURVIVE(weir_promise_add_listener(weir_executor_termination(executor), record_letter, &ends));
    SURVIVE(weir_promise_add_listener(weir_executor_termination(executor), record_letter, &ends));
    SURVIVE(weir_execute(executor, call_counter_task, &tasks));
    await_counter(&tasks, 1);
    assert_int_equal(weir_executor_suspend(executor), 0);
    assert_true(single_executor_await_state(&single, WEIR_EXECUTOR_SUSPENDED));
    SURVIVE(weir_execute(executor, call_counter_task, &tasks)); /* a new thread */
    await_counter(&tasks, 2);
    assert_int_equal(weir_group_shutdown(group, 0, TEST_TIMEOUT_NS), 0); /* without a watchdog */
    assert_int_equal(weir_group_await_termination(group, TEST_TIMEOUT_NS), 0);
    await_counter(&ends, 2);
    SURVIVE(weir_promise_add_listener(weir_executor_termination(executor), record_letter, &ends));
    await_counter(&ends, 3);
    weir_group_release(group);
    assert_int_equal(hooks.run, 2);
}

TEST(out_of_memory, an_executor_starts_again_and_ends)
{
    assert_true(fail_each_allocation(play_lifecycle) > 10);
}

/* ---- promises ---- */

static void play_promises(void)
{
    weir_promise *source, *target, *failed, *complete;
    struct call_counter heard = {0};

    SURVIVE(weir_promise_create(NULL, &source));
    SURVIVE(weir_promise_create(weir_executor_immediate(), &target));
    SURVIVE(weir_promise_create(NULL, &failed));
    SURVIVE(weir_promise_create_completed(NULL, 0, &heard, &complete));
    SURVIVE(weir_promise_cascade(source, target));
    for (int i = 0; i < 3; i++) {
        SURVIVE(weir_promise_add_listener(source, record_letter, &heard));
        SURVIVE(weir_promise_add_listener(target, record_letter, &heard));
        SURVIVE(weir_promise_add_listener(complete, record_letter, &heard));
        SURVIVE(weir_promise_add_listener(failed, record_letter, &heard));
    }
    assert_int_equal(weir_promise_succeed(source, &heard), 0);
    assert_int_equal(weir_promise_fail(failed, -EIO, "the disk is on fire"), 0);
    await_counter(&heard, 12);
    assert_ptr_equal(weir_promise_value(target), &heard);
    assert_true(weir_promise_detail(failed)[0] != '\0'); /* the given text, or that of the error */
    weir_promise_release(source);
    weir_promise_release(target);
    weir_promise_release(failed);
    weir_promise_release(complete);
}

TEST(out_of_memory, listeners_of_promises_run)
{
    assert_true(fail_each_allocation(play_promises) > 10);
}

/* ---- the test's own thread ---- */

struct stage {
    weir_executor *executor;
    weir_combiner *combiner;
    weir_promise *parts[2];
    weir_promise *whole;
    weir_timer timer;
    struct call_order letters;
};

static void fire(weir_timer *timer)
{
    call_order_write(&WEIR_CONTAINER_OF(timer, struct stage, timer)->letters, 't');
}

/* A task of a manual executor: it runs on the test's thread, and may assert. */
static void act(void *arg, int status)
{
    struct stage *stage = arg;
    struct call_order *letters = &stage->letters;
    weir_executor *executor = stage->executor;

    assert_int_equal(status, 0);
    SURVIVE(weir_combiner_create(executor, &stage->combiner));
    for (int i = 0; i < 2; i++) {
        SURVIVE(weir_promise_create(executor, &stage->parts[i]));
        SURVIVE(weir_combiner_add(stage->combiner, stage->parts[i]));
    }
    SURVIVE(weir_promise_create(executor, &stage->whole));
    SURVIVE(weir_combiner_finish(stage->combiner, stage->whole));
    SURVIVE(weir_execute(executor, call_order_task, call_order_arg(letters, 'a')));
    SURVIVE(weir_execute_after_turn(executor, call_order_task, call_order_arg(letters, 'z')));
    SURVIVE(weir_schedule(executor, 0, call_order_task, call_order_arg(letters, 's'), NULL));
    assert_int_equal(weir_timer_start(executor, &stage->timer, 0, fire), 0);
    SURVIVE(weir_execute(weir_executor_immediate(), call_order_task, call_order_arg(letters, 'i')));
}

static void play_manual(void)
{
    struct stage stage = {0};
    weir_manual_clock *clock;

    SURVIVE(weir_manual_clock_create(0, &clock));
    SURVIVE(weir_manual_create(WEIR_MANUAL_OPTIONS(.clock = weir_manual_clock_clock(clock)),
                               &stage.executor));
    SURVIVE(weir_execute(stage.executor, act, &stage));
    while (weir_manual_timeout(stage.executor) == 0)
        assert_true(weir_manual_run_once(stage.executor, 0, 0) > 0);
    assert_int_equal(stage.letters.written.calls, 5);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(weir_promise_succeed(stage.parts[i], NULL), 0);
        weir_promise_release(stage.parts[i]);
    }
    while (weir_manual_timeout(stage.executor) == 0)
        (void)weir_manual_run_once(stage.executor, 0, 0);
    assert_int_equal(weir_promise_result(stage.whole), 0);
    weir_promise_release(stage.whole);
    weir_combiner_release(stage.combiner);
    assert_int_equal(weir_executor_shutdown(stage.executor, 0, 0), 0);
    assert_true(weir_manual_run_once(stage.executor, 0, 0) >= 0);
    assert_int_equal(weir_executor_state(stage.executor), WEIR_EXECUTOR_TERMINATED);
    weir_executor_release(stage.executor);
    weir_manual_clock_release(clock);
}

TEST(out_of_memory, a_manual_executor_continues)
{
    assert_true(fail_each_allocation(play_manual) > 10);
}

/* ---- groups ---- */

static int take_a_promise(void *state, weir_group *group, const void *options)
{
    weir_promise **promise = state;

    (void)options;
    return weir_promise_create(weir_group_at(group, 0), promise);
}

static weir_executor *take_first(void *state, weir_group *group)
{
    (void)state;
    return weir_group_at(group, 0);
}

static void release_promise(void *state)
{
    weir_promise_release(*(weir_promise **)state);
}

static void play_groups(void)
{
    static const weir_chooser own = {
        .name = "own",
        .state_size = sizeof(weir_promise *),
        .init = take_a_promise,
        .next = take_first,
        .deinit = release_promise,
    };
    const weir_group_options *all[] = {
        WEIR_GROUP_OPTIONS(.chooser = weir_chooser_round_robin()),
        WEIR_GROUP_OPTIONS(.chooser = weir_chooser_least_pending()),
        WEIR_GROUP_OPTIONS(.chooser = weir_chooser_two_choices()),
        WEIR_GROUP_OPTIONS(.chooser = &own),
        WEIR_GROUP_OPTIONS(.autoscale = WEIR_AUTOSCALE_OPTIONS(.window_ns = weir_ms(1))),
    };

    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        weir_group *group = create_group(all[i]);
        struct call_counter counter = {0};

        SURVIVE(weir_group_execute(group, call_counter_task, &counter));
        await_counter(&counter, 1);
        end_group(group);
    }
}

TEST(out_of_memory, a_group_is_created_completely_or_not_at_all)
{
    assert_true(fail_each_allocation(play_groups) > 30);
}

/* ---- the global executor ---- */

static void play_global(void)
{
    weir_executor *executor = weir_executor_global();
    struct call_counter counter = {0};
    weir_promise *promise;

    SURVIVE(weir_execute(executor, call_counter_task, &counter));
    SURVIVE(weir_submit(executor, call_counter_work, &counter, &promise));
    SURVIVE(weir_schedule(executor, 0, call_counter_task, &counter, NULL));
    await_counter(&counter, 3);
    weir_promise_release(promise);
    assert_int_equal(counter.run, 3);
}

TEST(out_of_memory, the_global_executor_restarts)
{
    assert_true(fail_each_allocation(play_global) > 3);
}
