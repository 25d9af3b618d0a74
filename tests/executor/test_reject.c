/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What becomes of a task that an executor does not take.
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

/* An executor whose queue is full: its thread stands at the gate. */
static struct solo open_full(const weir_group_options *options, struct gate *gate,
                             struct tally *queued)
{
    weir_group_options given = *options;
    struct solo solo;

    given.max_pending = BOUND;
    solo = solo_open(&given);
    gate_hold(gate, solo.executor);
    for (int i = 0; i < BOUND; i++)
        assert_int_equal(weir_execute(solo.executor, tally_task, queued), 0);
    return solo;
}

TEST(reject, by_default_a_full_queue_refuses_at_once)
{
    struct tally queued = {0}, refused = {0};
    struct gate gate = {0};
    struct solo solo = open_full(WEIR_GROUP_OPTIONS(0), &gate, &queued);
    weir_task task;

    weir_task_init(&task, tally_task, &refused);
    assert_int_equal(weir_execute(solo.executor, tally_task, &refused), WEIR_EFULL);
    assert_int_equal(weir_execute_lazy(solo.executor, tally_task, &refused), WEIR_EFULL);
    assert_int_equal(weir_execute_task(solo.executor, &task), WEIR_EFULL);
    assert_int_equal(weir_execute_after_turn(solo.executor, tally_task, &refused), WEIR_EFULL);
    assert_int_equal(weir_submit(solo.executor, NULL, tally_call, &refused), WEIR_EFULL);
    gate_open(&gate);
    solo_end(&solo);
    assert_int_equal(weir_execute(solo.executor, tally_task, &refused), WEIR_EREJECTED);
    assert_int_equal(weir_execute_task(solo.executor, &task), WEIR_EREJECTED);
    assert_int_equal(queued.run, BOUND);
    assert_int_equal(refused.calls, 0);
    solo_close(&solo);
}

/* ---- a policy of the user's ---- */

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
    assert_true(policy->fn == tally_task);
    assert_ptr_equal(policy->arg, arg);
    policy->calls = 0;
}

TEST(reject, a_policy_of_the_users_is_told_everything_and_has_the_last_word)
{
    struct policy policy = {.answer = -EXDEV};
    struct tally queued = {0}, refused = {0};
    struct gate gate = {0};
    struct solo solo = open_full(
        WEIR_GROUP_OPTIONS(.rejected = note_and_answer, .rejected_data = &policy), &gate, &queued);
    weir_task task;

    weir_task_init(&task, tally_task, &refused);
    assert_int_equal(weir_execute(solo.executor, tally_task, &refused), -EXDEV);
    check_policy(&policy, WEIR_EFULL, solo.executor, &refused);
    assert_int_equal(weir_execute_task(solo.executor, &task), -EXDEV);
    check_policy(&policy, WEIR_EFULL, solo.executor, &refused);
    assert_int_equal(weir_execute_after_turn(solo.executor, tally_task, &refused), -EXDEV);
    check_policy(&policy, WEIR_EFULL, solo.executor, &refused);
    gate_open(&gate);
    solo_end(&solo);
    assert_int_equal(weir_execute(solo.executor, tally_task, &refused), -EXDEV);
    check_policy(&policy, WEIR_EREJECTED, solo.executor, &refused);
    assert_int_equal(refused.calls, 0);
    solo_close(&solo);
}

TEST(reject, a_policy_that_answers_0_has_taken_the_task_over)
{
    struct policy policy = {.answer = 0};
    struct tally queued = {0}, taken_over = {0};
    struct gate gate = {0};
    struct solo solo = open_full(
        WEIR_GROUP_OPTIONS(.rejected = note_and_answer, .rejected_data = &policy), &gate, &queued);
    weir_promise *promise;

    assert_int_equal(weir_execute(solo.executor, tally_task, &taken_over), 0);
    policy.fn(policy.arg, 0);
    assert_int_equal(taken_over.run, 1);
    assert_int_equal(weir_submit(solo.executor, &promise, tally_call, &taken_over), 0);
    assert_false(weir_promise_is_done(promise));
    policy.fn(policy.arg, 0);
    assert_int_equal(weir_promise_result(promise), 0);
    assert_int_equal(taken_over.run, 2);
    gate_open(&gate);
    solo_close(&solo);
    assert_int_equal(taken_over.calls, 2);
    assert_int_equal(queued.run, BOUND);
    weir_promise_release(promise);
}

TEST(reject, a_policy_is_not_asked_about_bad_arguments_and_want_of_memory)
{
    struct policy policy = {.answer = 0};
    struct tally queued = {0};
    struct gate gate = {0};
    struct solo solo = open_full(
        WEIR_GROUP_OPTIONS(.rejected = note_and_answer, .rejected_data = &policy), &gate, &queued);

    assert_int_equal(weir_execute(solo.executor, NULL, NULL), -EINVAL);
    assert_int_equal(policy.calls, 0);
    gate_open(&gate);
    solo_close(&solo);
}

/* ---- backing off ---- */

struct late_comer {
    weir__thread thread;
    weir_executor *executor;
    struct tally tally;
    struct tally submitting;
    int err;
};

static void come_late(void *arg)
{
    struct late_comer *comer = arg;

    tally_add(&comer->submitting);
    comer->err = weir_execute(comer->executor, tally_task, &comer->tally);
}

TEST(reject, after_back_off_a_task_is_taken_when_there_is_room)
{
    weir_back_off back_off = {.retries = 100000, .pause_ns = weir_us(100)};
    struct tally queued = {0};
    struct gate gate = {0};
    struct solo solo = open_full(
        WEIR_GROUP_OPTIONS(.rejected = weir_reject_after_back_off, .rejected_data = &back_off),
        &gate, &queued);
    struct late_comer comer = {.executor = solo.executor};

    assert_int_equal(weir__thread_start(&comer.thread, "comer", come_late, &comer), 0);
    assert_true(tally_await(&comer.submitting, 1));
    gate_open(&gate);
    weir__thread_join(&comer.thread);
    assert_int_equal(comer.err, 0);
    assert_true(tally_await(&comer.tally, 1));
    solo_close(&solo);
    assert_int_equal(comer.tally.run, 1);
    assert_int_equal(queued.run, BOUND);
}

TEST(reject, after_back_off_gives_up_when_its_tries_are_used_up)
{
    weir_back_off back_off = {.retries = 3, .pause_ns = weir_ms(1)};
    struct tally queued = {0}, refused = {0};
    struct gate gate = {0};
    struct solo solo = open_full(
        WEIR_GROUP_OPTIONS(.rejected = weir_reject_after_back_off, .rejected_data = &back_off),
        &gate, &queued);
    int64_t start_ns = weir__monotonic_now();

    assert_int_equal(weir_execute(solo.executor, tally_task, &refused), WEIR_EFULL);
    assert_true(weir__monotonic_now() - start_ns >= weir_ms(3));
    gate_open(&gate);
    solo_close(&solo);
    assert_int_equal(refused.calls, 0);
}

TEST(reject, after_back_off_has_defaults)
{
    struct tally queued = {0}, refused = {0};
    struct gate gate = {0};
    struct solo solo =
        open_full(WEIR_GROUP_OPTIONS(.rejected = weir_reject_after_back_off), &gate, &queued);
    int64_t start_ns = weir__monotonic_now();

    assert_int_equal(weir_execute(solo.executor, tally_task, &refused), WEIR_EFULL);
    assert_true(weir__monotonic_now() - start_ns >= weir_ms(10));
    gate_open(&gate);
    solo_close(&solo);
}

/* A pause on the executor's own thread would keep it from making room. */
struct insider {
    weir_executor *executor;
    struct tally tally;
    int accepted;
    int64_t took_ns;
};

static void submit_inside(void *arg)
{
    struct insider *insider = arg;
    int64_t start_ns = weir__monotonic_now();

    for (int i = 0; i < 2 * BOUND; i++)
        insider->accepted += weir_execute(insider->executor, tally_task, &insider->tally) == 0;
    insider->took_ns = weir__monotonic_now() - start_ns;
}

TEST(reject, after_back_off_does_not_pause_on_the_executors_own_thread)
{
    weir_back_off back_off = {.retries = 1, .pause_ns = PATIENCE_NS};
    struct solo solo =
        solo_open(WEIR_GROUP_OPTIONS(.max_pending = BOUND, .rejected = weir_reject_after_back_off,
                                     .rejected_data = &back_off));
    struct insider insider = {.executor = solo.executor};

    errand_on(solo.executor, submit_inside, &insider);
    assert_int_equal(insider.accepted, BOUND);
    assert_true(insider.took_ns < back_off.pause_ns);
    solo_close(&solo);
    assert_int_equal(insider.tally.run, BOUND);
}

TEST(reject, after_back_off_does_not_wait_for_an_executor_that_has_ended)
{
    weir_back_off back_off = {.retries = 1, .pause_ns = weir_seconds(30)};
    struct solo solo = solo_open(
        WEIR_GROUP_OPTIONS(.rejected = weir_reject_after_back_off, .rejected_data = &back_off));
    struct tally refused = {0};

    solo_end(&solo);
    assert_int_equal(weir_execute(solo.executor, tally_task, &refused), WEIR_EREJECTED);
    solo_close(&solo);
    assert_int_equal(refused.calls, 0);
}

TEST(reject, after_back_off_stops_when_the_executor_ends_meanwhile)
{
    weir_back_off back_off = {.retries = 1000000, .pause_ns = weir_us(100)};
    struct tally queued = {0};
    struct gate gate = {0};
    struct solo solo = open_full(
        WEIR_GROUP_OPTIONS(.rejected = weir_reject_after_back_off, .rejected_data = &back_off),
        &gate, &queued);
    struct late_comer comer = {.executor = solo.executor};

    assert_int_equal(weir__thread_start(&comer.thread, "comer", come_late, &comer), 0);
    assert_int_equal(weir_executor_shutdown(solo.executor, 0, PATIENCE_NS), 0);
    gate_open(&gate);
    weir__thread_join(&comer.thread);
    assert_int_equal(weir_executor_await_termination(solo.executor, PATIENCE_NS), 0);
    if (comer.err < 0)
        assert_int_equal(comer.err, WEIR_EREJECTED);
    assert_int_equal(comer.tally.run, comer.err == 0);
    solo_close(&solo);
}

/* Nobody but the one who backs off would wake it. */
TEST(reject, after_back_off_wakes_an_executor_whose_queue_is_full_of_lazy_tasks)
{
    weir_back_off back_off = {.retries = 10000, .pause_ns = weir_us(100)};
    struct solo solo =
        solo_open(WEIR_GROUP_OPTIONS(.max_pending = BOUND, .rejected = weir_reject_after_back_off,
                                     .rejected_data = &back_off));
    struct tally tally = {0};

    assert_int_equal(weir_execute(solo.executor, tally_task, &tally), 0);
    assert_true(tally_await(&tally, 1));
    assert_true(solo_await_sleep(&solo, WEIR_NEVER));
    for (int i = 0; i < BOUND; i++)
        assert_int_equal(weir_execute_lazy(solo.executor, tally_task, &tally), 0);
    assert_int_equal(weir_execute_lazy(solo.executor, tally_task, &tally), 0);
    assert_true(tally_await(&tally, BOUND + 1));
    solo_close(&solo);
    assert_int_equal(tally.run, BOUND + 2);
}

/* The promise of weir_execute_task: never -ENOMEM. */
TEST(reject, after_back_off_without_memory_the_queue_was_full)
{
    weir_back_off back_off = {.retries = 2, .pause_ns = 1};
    struct tally queued = {0}, refused = {0};
    struct gate gate = {0};
    struct solo solo = open_full(
        WEIR_GROUP_OPTIONS(.rejected = weir_reject_after_back_off, .rejected_data = &back_off),
        &gate, &queued);
    weir_task task;

    weir_task_init(&task, tally_task, &refused);
    weir_locals_remove_all(); /* and with them this thread's pool of tasks */
    test_memory_fail_at(1);
    assert_int_equal(weir_execute_task(solo.executor, &task), WEIR_EFULL);
    assert_true(test_memory_failed());
    gate_open(&gate);
    solo_close(&solo);
    assert_int_equal(refused.calls, 0);
}
