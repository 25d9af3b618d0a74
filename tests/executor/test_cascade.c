/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Promises that complete others, and are cancelled by them.
 */
#include <errno.h>

#include <weir/error.h>
#include <weir/promise.h>

#include "os/thread.h"
#include "support/executor/log_capture.h"
#include "support/executor/promises.h"
#include "support/executor/single_executor.h"
#include "support/executor/stepper.h"
#include "support/litmus.h"
#include "support/memory.h"
#include "support/test.h"

#define CHAIN_LENGTH 5000
#define ROUNDS 300

static void count_free(void *value)
{
    ++*(int *)value;
}

TEST(cascade, passes_on_a_value_that_the_source_owns)
{
    weir_promise *source = new_promise(weir_executor_immediate()),
                 *target = new_promise(weir_executor_immediate());
    int frees = 0;

    assert_int_equal(weir_promise_cascade(source, target), 0);
    assert_false(weir_promise_is_done(target));
    assert_int_equal(weir_promise_succeed_with(source, &frees, count_free), 0);
    weir_promise_release(source);
    assert_int_equal(weir_promise_result(target), 0);
    assert_ptr_equal(weir_promise_value(target), &frees);
    assert_int_equal(frees, 0);
    weir_promise_release(target);
    assert_int_equal(frees, 1);
}

TEST(cascade, passes_an_error_on_with_its_detail)
{
    weir_promise *source = new_promise(weir_executor_immediate()),
                 *target = new_promise(weir_executor_immediate());

    assert_int_equal(weir_promise_cascade(source, target), 0);
    assert_int_equal(weir_promise_fail(source, -EIO, "the cable is out"), 0);
    weir_promise_release(source);
    assert_int_equal(weir_promise_result(target), -EIO);
    assert_string_equal(weir_promise_detail(target), "the cable is out");
    weir_promise_release(target);
}

TEST(cascade, passes_a_cancellation_back)
{
    weir_promise *source = new_promise(weir_executor_immediate()),
                 *target = new_promise(weir_executor_immediate());
    struct call_counter calls = {0};

    log_capture_start();
    assert_int_equal(weir_promise_cascade(source, target), 0);
    assert_int_equal(weir_promise_add_listener(source, count_completion, &calls), 0);
    assert_int_equal(weir_promise_add_listener(target, count_completion, &calls), 0);
    assert_int_equal(weir_promise_cancel(target), 0);
    assert_true(weir_promise_is_cancelled(source));
    assert_int_equal(calls.calls, 2);
    assert_int_equal(log_capture_count(WEIR_LOG_WARN) + log_capture_count(WEIR_LOG_ERROR), 0);
    weir_promise_release(source);
    weir_promise_release(target);
}

TEST(cascade, passes_a_cancellation_on)
{
    weir_promise *source = new_promise(weir_executor_immediate()),
                 *target = new_promise(weir_executor_immediate());

    assert_int_equal(weir_promise_cascade(source, target), 0);
    assert_int_equal(weir_promise_cancel(source), 0);
    assert_true(weir_promise_is_cancelled(target));
    weir_promise_release(source);
    weir_promise_release(target);
}

TEST(cascade, leaves_a_source_that_is_uncancellable)
{
    weir_promise *source = new_promise(weir_executor_immediate()),
                 *target = new_promise(weir_executor_immediate());

    assert_int_equal(weir_promise_cascade(source, target), 0);
    assert_true(weir_promise_set_uncancellable(source));
    assert_int_equal(weir_promise_cancel(target), 0);
    assert_false(weir_promise_is_done(source));
    assert_int_equal(weir_promise_succeed(source, source), 0);
    assert_true(weir_promise_is_cancelled(target));
    weir_promise_release(source);
    weir_promise_release(target);
}

TEST(cascade, leaves_a_source_whose_target_was_completed_by_another)
{
    weir_promise *source = new_promise(weir_executor_immediate()),
                 *target = new_promise(weir_executor_immediate());

    assert_int_equal(weir_promise_cascade(source, target), 0);
    assert_int_equal(weir_promise_succeed(target, target), 0);
    assert_false(weir_promise_is_done(source));
    assert_int_equal(weir_promise_fail(source, -EIO, NULL), 0);
    assert_int_equal(weir_promise_result(target), 0);
    assert_ptr_equal(weir_promise_value(target), target);
    weir_promise_release(source);
    weir_promise_release(target);
}

TEST(cascade, takes_promises_that_are_complete)
{
    weir_promise *source, *target = new_promise(weir_executor_immediate());
    int value;

    assert_int_equal(weir_promise_create_completed(weir_executor_immediate(), 0, &value, &source),
                     0);
    assert_int_equal(weir_promise_cascade(source, target), 0);
    weir_promise_release(source);
    assert_ptr_equal(weir_promise_value(target), &value);
    weir_promise_release(target);

    source = new_promise(weir_executor_immediate());
    target = new_promise(weir_executor_immediate());
    assert_int_equal(weir_promise_cancel(target), 0);
    assert_int_equal(weir_promise_cascade(source, target), 0);
    assert_true(weir_promise_is_cancelled(source));
    weir_promise_release(source);
    weir_promise_release(target);
}

TEST(cascade, rejects_null_and_itself)
{
    weir_promise *promise = new_promise(weir_executor_immediate());

    assert_int_equal(weir_promise_cascade(NULL, promise), -EINVAL);
    assert_int_equal(weir_promise_cascade(promise, NULL), -EINVAL);
    assert_int_equal(weir_promise_cascade(promise, promise), -EINVAL);
    weir_promise_release(promise);
}

TEST(cascade, passes_on_that_its_source_was_abandoned)
{
    weir_promise *source = new_promise(weir_executor_immediate()),
                 *target = new_promise(weir_executor_immediate());

    assert_int_equal(weir_promise_cascade(source, target), 0);
    weir_promise_release(source);
    assert_int_equal(weir_promise_result(target), WEIR_EABANDONED);
    assert_string_equal(weir_promise_detail(target), weir_error_text(WEIR_EABANDONED));
    weir_promise_release(target);
}

TEST(cascade, completes_a_target_that_has_no_other_owner)
{
    weir_promise *source = new_promise(weir_executor_immediate()),
                 *target = new_promise(weir_executor_immediate());
    struct completion_record record = {0};

    assert_int_equal(weir_promise_add_listener(target, record_completion, &record), 0);
    assert_int_equal(weir_promise_cascade(source, target), 0);
    weir_promise_release(target);
    assert_int_equal(record.calls.calls, 0);
    assert_int_equal(weir_promise_succeed(source, NULL), 0);
    assert_int_equal(record.calls.calls, 1);
    assert_int_equal(record.result, 0);
    weir_promise_release(source);
}

TEST(cascade, may_have_several_targets)
{
    weir_promise *source = new_promise(weir_executor_immediate()),
                 *first = new_promise(weir_executor_immediate()),
                 *second = new_promise(weir_executor_immediate());

    assert_int_equal(weir_promise_cascade(source, first), 0);
    assert_int_equal(weir_promise_cascade(source, second), 0);
    assert_int_equal(weir_promise_cancel(second), 0);
    assert_true(weir_promise_is_cancelled(source));
    assert_true(weir_promise_is_cancelled(first));
    weir_promise_release(source);
    weir_promise_release(first);
    weir_promise_release(second);
}

TEST(cascade, fails_without_memory)
{
    weir_promise *source = new_promise(weir_executor_immediate()),
                 *target = new_promise(weir_executor_immediate());

    test_memory_fail_at(1);
    assert_int_equal(weir_promise_cascade(source, target), -ENOMEM);
    assert_int_equal(weir_promise_succeed(source, NULL), 0);
    assert_false(weir_promise_is_done(target));
    weir_promise_release(source);
    weir_promise_release(target);
}

/* A chain of cascades on one executor; the first is the source of all. */
static void cascade_open(weir_promise **promises, unsigned count, weir_executor *executor)
{
    for (unsigned i = 0; i < count; i++) {
        promises[i] = new_promise(executor);
        if (i > 0)
            assert_int_equal(weir_promise_cascade(promises[i - 1], promises[i]), 0);
    }
}

static void cascade_close(weir_promise **promises, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        weir_promise_release(promises[i]);
}

TEST(cascade, of_cascades_has_the_value_and_detail_of_the_first)
{
    weir_promise *promises[4];
    int frees = 0;

    cascade_open(promises, 4, weir_executor_immediate());
    assert_int_equal(weir_promise_succeed_with(promises[0], &frees, count_free), 0);
    cascade_close(promises, 3);
    assert_int_equal(test_memory_live(), 2); /* the first and the last */
    assert_ptr_equal(weir_promise_value(promises[3]), &frees);
    assert_int_equal(frees, 0);
    weir_promise_release(promises[3]);
    assert_int_equal(frees, 1);

    cascade_open(promises, 4, weir_executor_immediate());
    assert_int_equal(weir_promise_fail(promises[0], -EIO, "far away"), 0);
    cascade_close(promises, 3);
    assert_string_equal(weir_promise_detail(promises[3]), "far away");
    weir_promise_release(promises[3]);
}

TEST(cascade, of_thousands_completes_and_cancels_from_end_to_end)
{
    static weir_promise *promises[CHAIN_LENGTH];
    struct stepper stepper = stepper_open();
    int value;

    cascade_open(promises, CHAIN_LENGTH, stepper.executor);
    assert_int_equal(weir_promise_succeed(promises[0], &value), 0);
    stepper_run(&stepper);
    assert_ptr_equal(weir_promise_value(promises[CHAIN_LENGTH - 1]), &value);
    cascade_close(promises, CHAIN_LENGTH);

    cascade_open(promises, CHAIN_LENGTH, stepper.executor);
    assert_int_equal(weir_promise_cancel(promises[CHAIN_LENGTH - 1]), 0);
    stepper_run(&stepper);
    assert_true(weir_promise_is_cancelled(promises[0]));
    cascade_close(promises, CHAIN_LENGTH);

    cascade_open(promises, CHAIN_LENGTH, weir_executor_immediate());
    cascade_close(promises, CHAIN_LENGTH - 1);
    assert_int_equal(weir_promise_result(promises[CHAIN_LENGTH - 1]), WEIR_EABANDONED);
    weir_promise_release(promises[CHAIN_LENGTH - 1]);
    stepper_close(&stepper);
}

/* One thread cancels the targets, while another ends the sources. */
struct race {
    _Atomic unsigned ready;
    weir_promise *targets[ROUNDS];
    int results[ROUNDS];
};

static void cancel_targets(void *arg)
{
    struct race *race = arg;

    for (unsigned i = 0; i < ROUNDS; i++) {
        while (atomic_load(&race->ready) <= i)
            weir__thread_yield();
        race->results[i] = weir_promise_cancel(race->targets[i]);
    }
}

static void end_source(weir_promise *source, unsigned round)
{
    if (round % 2 == 0)
        (void)weir_promise_succeed(source, NULL);
    weir_promise_release(source);
}

TEST(cascade, survives_a_target_cancelled_while_its_source_ends)
{
    static struct race race;
    struct single_executor single = single_executor_open(NULL);
    weir_promise *source;
    weir__thread thread;

    for (unsigned i = 0; i < ROUNDS; i++)
        race.targets[i] = new_promise(i % 4 < 2 ? weir_executor_immediate() : single.executor);
    assert_int_equal(weir__thread_start("canceller", cancel_targets, &race, &thread), 0);
    for (unsigned i = 0; i < ROUNDS; i++) {
        source = new_promise(weir_executor_immediate());
        assert_int_equal(weir_promise_cascade(source, race.targets[i]), 0);
        atomic_store(&race.ready, i + 1);
        end_source(source, i);
    }
    weir__thread_join(&thread);
    for (unsigned i = 0; i < ROUNDS; i++) {
        assert_int_equal(weir_promise_await(race.targets[i], TEST_TIMEOUT_NS), 0);
        assert_true((race.results[i] == 0) == weir_promise_is_cancelled(race.targets[i]));
        weir_promise_release(race.targets[i]);
    }
    single_executor_close(&single);
}

/* Cancels a target while the other thread may release the last strong reference to its source. */
static void cancel_while_released(void *arg)
{
    _Atomic(weir_promise *) *slot = arg;
    weir_promise *source, *target, *others;

    if (weir_promise_create(weir_executor_immediate(), &source) < 0)
        return;
    if (weir_promise_create(weir_executor_immediate(), &target) == 0) {
        (void)!weir_promise_cascade(source, target);
        others = atomic_exchange(slot, source);
        (void)weir_promise_cancel(target);
        weir_promise_release(target);
    } else {
        others = source;
    }
    weir_promise_release(others);
}

TEST(cascade, cancels_a_source_that_is_released_meanwhile)
{
    _Atomic(weir_promise *) slot = NULL;

    (void)litmus_run(cancel_while_released, &slot, LITMUS_ROUNDS / 20);
    weir_promise_release(slot);
}
