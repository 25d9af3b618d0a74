/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Combiners: one promise for many. The test's thread is that of the combiner's executor.
 */
#include <errno.h>

#include <weir/error.h>
#include <weir/manual.h>
#include <weir/promise.h>

#include "support/executor/promises.h"
#include "support/executor/run_on_thread.h"
#include "support/executor/single_executor.h"
#include "support/executor/stepper.h"
#include "support/memory.h"
#include "support/test.h"

#define PARTS 3

/* A combiner, its promises, and its aggregate. */
struct trio {
    struct stepper stepper;
    weir_combiner *combiner;
    weir_promise *parts[PARTS];
    weir_promise *all;
};

static struct trio trio_open(void)
{
    struct trio trio = {.stepper = stepper_open()};

    assert_int_equal(weir_combiner_create(trio.stepper.executor, &trio.combiner), 0);
    for (int i = 0; i < PARTS; i++)
        trio.parts[i] = new_promise(trio.stepper.executor);
    trio.all = new_promise(trio.stepper.executor);
    return trio;
}

static void trio_close(struct trio *trio)
{
    weir_combiner_release(trio->combiner);
    for (int i = 0; i < PARTS; i++)
        weir_promise_release(trio->parts[i]);
    weir_promise_release(trio->all);
    stepper_close(&trio->stepper);
}

static void trio_add_all(struct trio *trio)
{
    for (int i = 0; i < PARTS; i++)
        assert_int_equal(weir_combiner_add(trio->combiner, trio->parts[i]), 0);
}

TEST(combiner, succeeds_when_all_have)
{
    struct trio trio = trio_open();

    trio_add_all(&trio);
    assert_int_equal(weir_combiner_finish(trio.combiner, trio.all), 0);
    for (int i = 0; i < PARTS; i++) {
        assert_false(weir_promise_is_done(trio.all));
        assert_int_equal(weir_promise_succeed(trio.parts[i], &trio), 0);
    }
    assert_int_equal(weir_promise_result(trio.all), 0);
    assert_null(weir_promise_value(trio.all));
    trio_close(&trio);
}

TEST(combiner, fails_with_the_first_failure_but_waits_for_all)
{
    struct trio trio = trio_open();

    trio_add_all(&trio);
    assert_int_equal(weir_combiner_finish(trio.combiner, trio.all), 0);
    assert_int_equal(weir_promise_fail(trio.parts[2], -EIO, "the first to fail"), 0);
    assert_int_equal(weir_promise_fail(trio.parts[0], -EPIPE, "the second"), 0);
    assert_false(weir_promise_is_done(trio.all));
    assert_int_equal(weir_promise_succeed(trio.parts[1], NULL), 0);
    assert_int_equal(weir_promise_result(trio.all), -EIO);
    assert_string_equal(weir_promise_detail(trio.all), "the first to fail");
    trio_close(&trio);
}

TEST(combiner, counts_a_cancellation_as_a_failure)
{
    struct trio trio = trio_open();

    assert_int_equal(weir_combiner_add(trio.combiner, trio.parts[0]), 0);
    assert_int_equal(weir_combiner_finish(trio.combiner, trio.all), 0);
    assert_int_equal(weir_promise_cancel(trio.parts[0]), 0);
    assert_true(weir_promise_is_cancelled(trio.all));
    trio_close(&trio);
}

TEST(combiner, counts_an_abandoned_promise_as_a_failure)
{
    struct trio trio = trio_open();

    assert_int_equal(weir_combiner_add(trio.combiner, trio.parts[0]), 0);
    assert_int_equal(weir_combiner_finish(trio.combiner, trio.all), 0);
    weir_promise_release(trio.parts[0]);
    trio.parts[0] = NULL;
    assert_int_equal(weir_promise_result(trio.all), WEIR_EABANDONED);
    trio_close(&trio);
}

TEST(combiner, of_nothing_succeeds_at_once)
{
    struct trio trio = trio_open();

    assert_int_equal(weir_combiner_finish(trio.combiner, trio.all), 0);
    assert_int_equal(weir_promise_result(trio.all), 0);
    trio_close(&trio);
}

TEST(combiner, waits_until_it_is_finished)
{
    struct trio trio = trio_open();

    assert_int_equal(weir_combiner_add(trio.combiner, trio.parts[0]), 0);
    assert_int_equal(weir_promise_fail(trio.parts[0], -EIO, NULL), 0);
    stepper_run(&trio.stepper);
    assert_int_equal(weir_combiner_finish(trio.combiner, trio.all), 0);
    assert_int_equal(weir_promise_result(trio.all), -EIO);
    trio_close(&trio);
}

TEST(combiner, takes_promises_that_are_complete)
{
    struct trio trio = trio_open();

    assert_int_equal(weir_promise_fail(trio.parts[0], -EIO, NULL), 0);
    assert_int_equal(weir_promise_succeed(trio.parts[1], NULL), 0);
    assert_int_equal(weir_combiner_add(trio.combiner, trio.parts[0]), 0);
    assert_int_equal(weir_combiner_add(trio.combiner, trio.parts[1]), 0);
    assert_int_equal(weir_combiner_finish(trio.combiner, trio.all), 0);
    stepper_run(&trio.stepper);
    assert_int_equal(weir_promise_result(trio.all), -EIO);
    trio_close(&trio);
}

TEST(combiner, may_be_released_once_it_is_finished)
{
    struct trio trio = trio_open();

    trio_add_all(&trio);
    assert_int_equal(weir_combiner_finish(trio.combiner, trio.all), 0);
    weir_combiner_release(trio.combiner);
    trio.combiner = NULL;
    for (int i = 0; i < PARTS; i++)
        assert_int_equal(weir_promise_succeed(trio.parts[i], NULL), 0);
    assert_int_equal(weir_promise_result(trio.all), 0);
    trio_close(&trio);
}

TEST(combiner, may_be_released_unfinished)
{
    struct trio trio = trio_open();

    trio_add_all(&trio);
    weir_combiner_release(trio.combiner);
    trio.combiner = NULL;
    assert_int_equal(weir_promise_fail(trio.parts[0], -EIO, NULL), 0);
    assert_false(weir_promise_is_done(trio.all));
    trio_close(&trio);
}

TEST(combiner, leaves_an_aggregate_that_was_completed_by_another)
{
    struct trio trio = trio_open();

    assert_int_equal(weir_combiner_add(trio.combiner, trio.parts[0]), 0);
    assert_int_equal(weir_combiner_finish(trio.combiner, trio.all), 0);
    assert_int_equal(weir_promise_cancel(trio.all), 0);
    assert_int_equal(weir_promise_succeed(trio.parts[0], NULL), 0);
    assert_true(weir_promise_is_cancelled(trio.all));
    trio_close(&trio);
}

TEST(combiner, rejects_promises_once_it_is_finished)
{
    struct trio trio = trio_open();
    weir_promise *other = new_promise(trio.stepper.executor);

    assert_int_equal(weir_combiner_add(trio.combiner, trio.parts[0]), 0);
    assert_int_equal(weir_combiner_finish(trio.combiner, trio.all), 0);
    assert_int_equal(weir_combiner_add(trio.combiner, trio.parts[1]), -EINVAL);
    assert_int_equal(weir_combiner_finish(trio.combiner, other), -EINVAL);
    assert_int_equal(weir_promise_succeed(trio.parts[0], NULL), 0);
    assert_int_equal(weir_promise_result(trio.all), 0);
    assert_false(weir_promise_is_done(other));
    weir_promise_release(other);
    trio_close(&trio);
}

struct outsider {
    struct trio *trio;
    int add_err;
    int finish_err;
};

static void use_on_other_thread(void *arg)
{
    struct outsider *outsider = arg;

    outsider->add_err = weir_combiner_add(outsider->trio->combiner, outsider->trio->parts[0]);
    outsider->finish_err = weir_combiner_finish(outsider->trio->combiner, outsider->trio->all);
}

TEST(combiner, is_for_its_executors_thread_only)
{
    struct trio trio = trio_open();
    struct outsider outsider = {.trio = &trio};

    run_on_other_thread(use_on_other_thread, &outsider);
    assert_int_equal(outsider.add_err, WEIR_EWRONGTHREAD);
    assert_int_equal(outsider.finish_err, WEIR_EWRONGTHREAD);
    assert_int_equal(weir_combiner_finish(trio.combiner, trio.all), 0);
    assert_int_equal(weir_promise_result(trio.all), 0);
    trio_close(&trio);
}

TEST(combiner, refuses_bad_arguments)
{
    struct trio trio = trio_open();
    weir_combiner *none = NULL;

    assert_int_equal(weir_combiner_create(NULL, &none), -EINVAL);
    assert_null(none);
    assert_int_equal(weir_combiner_add(NULL, trio.parts[0]), -EINVAL);
    assert_int_equal(weir_combiner_add(trio.combiner, NULL), -EINVAL);
    assert_int_equal(weir_combiner_finish(NULL, trio.all), -EINVAL);
    assert_int_equal(weir_combiner_finish(trio.combiner, NULL), -EINVAL);
    weir_combiner_release(NULL);
    trio_close(&trio);
}

TEST(combiner, that_finds_no_memory_for_a_promise_works_without_it)
{
    struct trio trio = trio_open();
    struct call_order letters = {0};
    weir_combiner *none = NULL;

    test_memory_fail_at(1);
    assert_int_equal(weir_combiner_create(trio.stepper.executor, &none), -ENOMEM);
    assert_null(none);
    call_order_listen(trio.parts[0], &letters, 'a'); /* uses the slot of the first listener */
    test_memory_fail_at(1);
    assert_int_equal(weir_combiner_add(trio.combiner, trio.parts[0]), -ENOMEM);
    assert_int_equal(weir_combiner_add(trio.combiner, trio.parts[1]), 0);
    assert_int_equal(weir_combiner_finish(trio.combiner, trio.all), 0);
    assert_int_equal(weir_promise_succeed(trio.parts[1], NULL), 0);
    assert_int_equal(weir_promise_result(trio.all), 0);
    trio_close(&trio);
}

static int answer(void *arg, int status, void **ret_value)
{
    (void)ret_value;
    return status < 0 ? status : *(int *)arg;
}

#define CROWD 200

/* Promises that complete concurrently on several executors; the combiner is on the immediate one.
 */
static void combine_crowd(weir_executor *executors[2], int results[CROWD], int expected)
{
    weir_promise *all = new_promise(weir_executor_immediate()), *part;
    weir_combiner *combiner;

    assert_int_equal(weir_combiner_create(weir_executor_immediate(), &combiner), 0);
    for (int i = 0; i < CROWD; i++) {
        assert_int_equal(weir_submit(executors[i % 2], answer, &results[i], &part), 0);
        assert_int_equal(weir_combiner_add(combiner, part), 0);
        weir_promise_release(part);
    }
    assert_int_equal(weir_combiner_finish(combiner, all), 0);
    weir_combiner_release(combiner);
    assert_int_equal(weir_promise_sync(all, TEST_TIMEOUT_NS), expected);
    weir_promise_release(all);
}

TEST(combiner, counts_promises_that_complete_on_several_threads_at_once)
{
    struct single_executor first = single_executor_open(NULL), second = single_executor_open(NULL);
    weir_executor *executors[2] = {first.executor, second.executor};
    int results[CROWD] = {0};

    for (int round = 0; round < 20; round++) {
        combine_crowd(executors, results, 0);
        results[round] = -EIO;
        combine_crowd(executors, results, -EIO);
        results[round] = 0;
    }
    single_executor_close(&first);
    single_executor_close(&second);
}

/* It may wait for the termination of its executor. */
TEST(combiner, holds_only_a_weak_reference_to_its_executor)
{
    weir_promise *all = new_promise(NULL), *part;
    weir_combiner *combiner;
    weir_executor *executor;
    int result = 0;

    assert_int_equal(weir_manual_create(NULL, &executor), 0);
    assert_int_equal(weir_submit(executor, answer, &result, &part), 0);
    assert_int_equal(weir_combiner_create(executor, &combiner), 0);
    assert_int_equal(weir_combiner_add(combiner, part), 0);
    assert_int_equal(weir_combiner_finish(combiner, all), 0);
    weir_combiner_release(combiner);
    weir_promise_release(part);
    weir_executor_release(executor);
    assert_int_equal(weir_promise_result(all), WEIR_ECANCELED);
    weir_promise_release(all);
}
