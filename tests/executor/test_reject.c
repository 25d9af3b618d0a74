/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rejection policies.
 */
#include <errno.h>

#include <weir/error.h>
#include <weir/thread.h>

#include "executor/executor.h"
#include "os/clock.h"
#include "os/thread.h"
#include "support/executor/gate.h"
#include "support/executor/run_on_thread.h"
#include "support/executor/single_executor.h"
#include "support/memory.h"
#include "support/test.h"

#define BOUND 16

/* An executor whose queue is full: its thread waits at the gate. */
static struct single_executor open_full(const weir_group_options *options, struct gate *gate,
                                        struct call_counter *queued)
{
    weir_group_options given = *options;
    struct single_executor single;

    given.max_pending = BOUND;
    single = single_executor_open(&given);
    gate_hold(gate, single.executor);
    for (int i = 0; i < BOUND; i++)
        assert_int_equal(weir_execute(single.executor, call_counter_task, queued), 0);
    return single;
}

TEST(reject, by_default_a_full_queue_refuses_at_once)
{
    struct call_counter queued = {0}, refused = {0};
    struct gate gate = {0};
    struct single_executor single = open_full(WEIR_GROUP_OPTIONS(0), &gate, &queued);
    weir_task task;

    weir_task_init(&task, call_counter_task, &refused);
    assert_int_equal(weir_execute(single.executor, call_counter_task, &refused), WEIR_EFULL);
    assert_int_equal(weir_execute_lazy(single.executor, call_counter_task, &refused), WEIR_EFULL);
    assert_int_equal(weir_execute_task(single.executor, &task), WEIR_EFULL);
    assert_int_equal(weir_execute_after_turn(single.executor, call_counter_task, &refused),
                     WEIR_EFULL);
    assert_int_equal(weir_submit(single.executor, call_counter_work, &refused, NULL), WEIR_EFULL);
    gate_open(&gate);
    single_executor_end(&single);
    assert_int_equal(weir_execute(single.executor, call_counter_task, &refused), WEIR_EREJECTED);
    assert_int_equal(weir_execute_task(single.executor, &task), WEIR_EREJECTED);
    assert_int_equal(queued.run, BOUND);
    assert_int_equal(refused.calls, 0);
    single_executor_close(&single);
}

/* ---- custom policies ---- */

struct policy {
    int answer;
    int calls;
    int reason;
    weir_executor *executor;
    weir_task_fn *fn;
    void *arg;
};

static int note_and_answer(weir_executor *executor, weir_task_fn *fn, void *arg, int reason,
                           void *user_data)
{
    struct policy *policy = user_data;

    policy->calls++;
    policy->executor = executor;
    policy->fn = fn;
    policy->arg = arg;
    policy->reason = reason;
    return policy->answer;
}

static void check_policy(struct policy *policy, int reason, weir_executor *executor, void *arg)
{
    assert_int_equal(policy->calls, 1);
    assert_int_equal(policy->reason, reason);
    assert_ptr_equal(policy->executor, executor);
    assert_true(policy->fn == call_counter_task);
    assert_ptr_equal(policy->arg, arg);
    policy->calls = 0;
}

TEST(reject, a_custom_policy_gets_all_arguments_and_decides)
{
    struct policy policy = {.answer = -EXDEV};
    struct call_counter queued = {0}, refused = {0};
    struct gate gate = {0};
    struct single_executor single = open_full(
        WEIR_GROUP_OPTIONS(.rejected = note_and_answer, .rejected_data = &policy), &gate, &queued);
    weir_task task;

    weir_task_init(&task, call_counter_task, &refused);
    assert_int_equal(weir_execute(single.executor, call_counter_task, &refused), -EXDEV);
    check_policy(&policy, WEIR_EFULL, single.executor, &refused);
    assert_int_equal(weir_execute_task(single.executor, &task), -EXDEV);
    check_policy(&policy, WEIR_EFULL, single.executor, &refused);
    assert_int_equal(weir_execute_after_turn(single.executor, call_counter_task, &refused), -EXDEV);
    check_policy(&policy, WEIR_EFULL, single.executor, &refused);
    gate_open(&gate);
    single_executor_end(&single);
    assert_int_equal(weir_execute(single.executor, call_counter_task, &refused), -EXDEV);
    check_policy(&policy, WEIR_EREJECTED, single.executor, &refused);
    assert_int_equal(refused.calls, 0);
    single_executor_close(&single);
}

TEST(reject, a_policy_that_returns_0_takes_the_task_over)
{
    struct policy policy = {.answer = 0};
    struct call_counter queued = {0}, taken_over = {0};
    struct gate gate = {0};
    struct single_executor single = open_full(
        WEIR_GROUP_OPTIONS(.rejected = note_and_answer, .rejected_data = &policy), &gate, &queued);
    weir_promise *promise;

    assert_int_equal(weir_execute(single.executor, call_counter_task, &taken_over), 0);
    policy.fn(policy.arg, 0);
    assert_int_equal(taken_over.run, 1);
    assert_int_equal(weir_submit(single.executor, call_counter_work, &taken_over, &promise), 0);
    assert_false(weir_promise_is_done(promise));
    policy.fn(policy.arg, 0);
    assert_int_equal(weir_promise_result(promise), 0);
    assert_int_equal(taken_over.run, 2);
    gate_open(&gate);
    single_executor_close(&single);
    assert_int_equal(taken_over.calls, 2);
    assert_int_equal(queued.run, BOUND);
    weir_promise_release(promise);
}

TEST(reject, a_policy_is_not_called_for_other_errors)
{
    struct policy policy = {.answer = 0};
    struct call_counter queued = {0};
    struct gate gate = {0};
    struct single_executor single = open_full(
        WEIR_GROUP_OPTIONS(.rejected = note_and_answer, .rejected_data = &policy), &gate, &queued);

    assert_int_equal(weir_execute(single.executor, NULL, NULL), -EINVAL);
    assert_int_equal(policy.calls, 0);
    gate_open(&gate);
    single_executor_close(&single);
}

/* ---- backoff ---- */

struct late_task {
    weir__thread thread;
    weir_executor *executor;
    struct call_counter counter;
    struct call_counter submitting;
    int err;
};

static void join_late(void *arg)
{
    struct late_task *comer = arg;

    call_counter_add(&comer->submitting);
    comer->err = weir_execute(comer->executor, call_counter_task, &comer->counter);
}

TEST(reject, after_backoff_a_task_is_accepted_when_there_is_room)
{
    weir_backoff backoff = {.retries = 100000, .delay_ns = weir_us(100)};
    struct call_counter queued = {0};
    struct gate gate = {0};
    struct single_executor single = open_full(
        WEIR_GROUP_OPTIONS(.rejected = weir_reject_after_backoff, .rejected_data = &backoff), &gate,
        &queued);
    struct late_task comer = {.executor = single.executor};

    assert_int_equal(weir__thread_start("comer", join_late, &comer, &comer.thread), 0);
    assert_true(call_counter_await(&comer.submitting, 1));
    gate_open(&gate);
    weir__thread_join(&comer.thread);
    assert_int_equal(comer.err, 0);
    assert_true(call_counter_await(&comer.counter, 1));
    single_executor_close(&single);
    assert_int_equal(comer.counter.run, 1);
    assert_int_equal(queued.run, BOUND);
}

TEST(reject, after_backoff_rejects_after_its_last_retry)
{
    weir_backoff backoff = {.retries = 3, .delay_ns = weir_ms(1)};
    struct call_counter queued = {0}, refused = {0};
    struct gate gate = {0};
    struct single_executor single = open_full(
        WEIR_GROUP_OPTIONS(.rejected = weir_reject_after_backoff, .rejected_data = &backoff), &gate,
        &queued);
    int64_t start_ns = weir__monotonic_now();

    assert_int_equal(weir_execute(single.executor, call_counter_task, &refused), WEIR_EFULL);
    assert_true(weir__monotonic_now() - start_ns >= weir_ms(3));
    gate_open(&gate);
    single_executor_close(&single);
    assert_int_equal(refused.calls, 0);
}

TEST(reject, after_backoff_has_defaults)
{
    struct call_counter queued = {0}, refused = {0};
    struct gate gate = {0};
    struct single_executor single =
        open_full(WEIR_GROUP_OPTIONS(.rejected = weir_reject_after_backoff), &gate, &queued);
    int64_t start_ns = weir__monotonic_now();

    assert_int_equal(weir_execute(single.executor, call_counter_task, &refused), WEIR_EFULL);
    assert_true(weir__monotonic_now() - start_ns >= weir_ms(10));
    gate_open(&gate);
    single_executor_close(&single);
}

/* Sleeping on the executor's own thread would prevent it from making room. */
struct insider {
    weir_executor *executor;
    struct call_counter counter;
    int accepted;
    int64_t took_ns;
};

static void submit_inside(void *arg)
{
    struct insider *insider = arg;
    int64_t start_ns = weir__monotonic_now();

    for (int i = 0; i < 2 * BOUND; i++)
        insider->accepted +=
            weir_execute(insider->executor, call_counter_task, &insider->counter) == 0;
    insider->took_ns = weir__monotonic_now() - start_ns;
}

TEST(reject, after_backoff_does_not_sleep_on_the_executors_own_thread)
{
    weir_backoff backoff = {.retries = 1, .delay_ns = TEST_TIMEOUT_NS};
    struct single_executor single = single_executor_open(
        WEIR_GROUP_OPTIONS(.max_pending = BOUND, .rejected = weir_reject_after_backoff,
                           .rejected_data = &backoff));
    struct insider insider = {.executor = single.executor};

    run_on_executor(single.executor, submit_inside, &insider);
    assert_int_equal(insider.accepted, BOUND);
    assert_true(insider.took_ns < backoff.delay_ns);
    single_executor_close(&single);
    assert_int_equal(insider.counter.run, BOUND);
}

TEST(reject, after_backoff_does_not_wait_for_an_executor_that_has_ended)
{
    weir_backoff backoff = {.retries = 1, .delay_ns = weir_seconds(30)};
    struct single_executor single = single_executor_open(
        WEIR_GROUP_OPTIONS(.rejected = weir_reject_after_backoff, .rejected_data = &backoff));
    struct call_counter refused = {0};

    single_executor_end(&single);
    assert_int_equal(weir_execute(single.executor, call_counter_task, &refused), WEIR_EREJECTED);
    single_executor_close(&single);
    assert_int_equal(refused.calls, 0);
}

TEST(reject, after_backoff_stops_when_the_executor_ends)
{
    weir_backoff backoff = {.retries = 1000000, .delay_ns = weir_us(100)};
    struct call_counter queued = {0};
    struct gate gate = {0};
    struct single_executor single = open_full(
        WEIR_GROUP_OPTIONS(.rejected = weir_reject_after_backoff, .rejected_data = &backoff), &gate,
        &queued);
    struct late_task comer = {.executor = single.executor};

    assert_int_equal(weir__thread_start("comer", join_late, &comer, &comer.thread), 0);
    assert_int_equal(weir_executor_shutdown(single.executor, 0, TEST_TIMEOUT_NS), 0);
    gate_open(&gate);
    weir__thread_join(&comer.thread);
    assert_int_equal(weir_executor_await_termination(single.executor, TEST_TIMEOUT_NS), 0);
    if (comer.err < 0)
        assert_int_equal(comer.err, WEIR_EREJECTED);
    assert_int_equal(comer.counter.run, comer.err == 0);
    single_executor_close(&single);
}

/* Only the backoff wakes it. */
TEST(reject, after_backoff_wakes_an_executor_whose_queue_is_full_of_lazy_tasks)
{
    weir_backoff backoff = {.retries = 10000, .delay_ns = weir_us(100)};
    struct single_executor single = single_executor_open(
        WEIR_GROUP_OPTIONS(.max_pending = BOUND, .rejected = weir_reject_after_backoff,
                           .rejected_data = &backoff));
    struct call_counter counter = {0};

    assert_int_equal(weir_execute(single.executor, call_counter_task, &counter), 0);
    assert_true(call_counter_await(&counter, 1));
    assert_true(single_executor_await_sleep(&single, WEIR_NEVER));
    for (int i = 0; i < BOUND; i++)
        assert_int_equal(weir_execute_lazy(single.executor, call_counter_task, &counter), 0);
    assert_int_equal(weir_execute_lazy(single.executor, call_counter_task, &counter), 0);
    assert_true(call_counter_await(&counter, BOUND + 1));
    single_executor_close(&single);
    assert_int_equal(counter.run, BOUND + 2);
}

/* weir_execute_task never returns -ENOMEM. */
TEST(reject, after_backoff_without_memory_the_queue_was_full)
{
    weir_backoff backoff = {.retries = 2, .delay_ns = 1};
    struct call_counter queued = {0}, refused = {0};
    struct gate gate = {0};
    struct single_executor single = open_full(
        WEIR_GROUP_OPTIONS(.rejected = weir_reject_after_backoff, .rejected_data = &backoff), &gate,
        &queued);
    weir_task task;

    weir_task_init(&task, call_counter_task, &refused);
    weir_locals_remove_all(); /* and with them this thread's pool of tasks */
    test_memory_fail_at(1);
    assert_int_equal(weir_execute_task(single.executor, &task), WEIR_EFULL);
    assert_true(test_memory_failed());
    gate_open(&gate);
    single_executor_close(&single);
    assert_int_equal(refused.calls, 0);
}
