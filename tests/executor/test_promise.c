/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Promises: completing them, waiting for them, abandoning them.
 */
#include <errno.h>

#include <weir/error.h>
#include <weir/manual.h>
#include <weir/promise.h>

#include "executor/promise.h"
#include "os/clock.h"
#include "os/thread.h"
#include "support/child.h"
#include "support/executor/fake_loop.h"
#include "support/executor/promises.h"
#include "support/executor/run_on_thread.h"
#include "support/executor/single_executor.h"
#include "support/executor/stepper.h"
#include "support/litmus.h"
#include "support/memory.h"
#include "support/test.h"

/* ---- states ---- */

TEST(promise, begins_pending)
{
    weir_promise *promise = new_promise(weir_executor_immediate());

    assert_false(weir_promise_is_done(promise));
    assert_false(weir_promise_is_cancelled(promise));
    assert_int_equal(weir_promise_result(promise), -EINPROGRESS);
    assert_null(weir_promise_value(promise));
    assert_string_equal(weir_promise_detail(promise), "");
    assert_ptr_equal(weir_promise_executor(promise), weir_executor_immediate());
    weir_promise_release(promise);
}

TEST(promise, without_an_executor_notifies_on_the_global_one)
{
    weir_promise *promise = new_promise(NULL);

    assert_ptr_equal(weir_promise_executor(promise), weir_executor_global());
    weir_promise_release(promise);
}

TEST(promise, retains_its_executor)
{
    struct single_executor single = single_executor_open(NULL);
    weir_promise *promise = new_promise(single.executor);

    single_executor_close(&single);
    assert_int_equal(weir_executor_state(weir_promise_executor(promise)), WEIR_EXECUTOR_TERMINATED);
    weir_promise_release(promise);
}

TEST(promise, that_succeeds_has_its_value)
{
    weir_promise *promise = new_promise(NULL);
    int value;

    assert_int_equal(weir_promise_succeed(promise, &value), 0);
    assert_true(weir_promise_is_done(promise));
    assert_false(weir_promise_is_cancelled(promise));
    assert_int_equal(weir_promise_result(promise), 0);
    assert_ptr_equal(weir_promise_value(promise), &value);
    assert_string_equal(weir_promise_detail(promise), "");
    weir_promise_release(promise);
}

TEST(promise, that_fails_has_its_error_and_a_copy_of_the_detail)
{
    weir_promise *promise = new_promise(NULL);
    char detail[] = "the disk is full";

    assert_int_equal(weir_promise_fail(promise, -ENOSPC, detail), 0);
    detail[0] = '\0';
    assert_true(weir_promise_is_done(promise));
    assert_false(weir_promise_is_cancelled(promise));
    assert_int_equal(weir_promise_result(promise), -ENOSPC);
    assert_null(weir_promise_value(promise));
    assert_string_equal(weir_promise_detail(promise), "the disk is full");
    weir_promise_release(promise);
}

TEST(promise, that_fails_without_a_detail_has_the_text_of_the_error)
{
    weir_promise *promise = new_promise(NULL);

    assert_int_equal(weir_promise_fail(promise, WEIR_EFULL, NULL), 0);
    assert_string_equal(weir_promise_detail(promise), weir_error_text(WEIR_EFULL));
    weir_promise_release(promise);
}

TEST(promise, is_not_failed_with_what_is_no_error)
{
    weir_promise *promise = new_promise(NULL);

    assert_int_equal(weir_promise_fail(promise, 0, "nothing"), -EINVAL);
    assert_int_equal(weir_promise_fail(promise, EIO, "a positive one"), -EINVAL);
    assert_false(weir_promise_is_done(promise));
    assert_int_equal(weir_promise_cancel(promise), 0);
    weir_promise_release(promise);
}

TEST(promise, that_is_cancelled_has_that_error)
{
    weir_promise *promise = new_promise(NULL);

    assert_int_equal(weir_promise_cancel(promise), 0);
    assert_true(weir_promise_is_done(promise));
    assert_true(weir_promise_is_cancelled(promise));
    assert_int_equal(weir_promise_result(promise), WEIR_ECANCELED);
    assert_int_equal(weir_promise_sync(promise, 0), WEIR_ECANCELED);
    assert_null(weir_promise_value(promise));
    assert_string_equal(weir_promise_detail(promise), weir_error_text(WEIR_ECANCELED));
    weir_promise_release(promise);
}

static void assert_cannot_be_completed_again(weir_promise *promise)
{
    int err = weir_promise_result(promise), other;
    void *value = weir_promise_value(promise);
    const char *detail = weir_promise_detail(promise);

    assert_int_equal(weir_promise_succeed(promise, &other), WEIR_ECOMPLETED);
    assert_int_equal(weir_promise_fail(promise, -EIO, "again"), WEIR_ECOMPLETED);
    assert_int_equal(weir_promise_cancel(promise), WEIR_ECOMPLETED);
    assert_int_equal(weir_promise_result(promise), err);
    assert_ptr_equal(weir_promise_value(promise), value);
    assert_string_equal(weir_promise_detail(promise), detail);
    weir_promise_release(promise);
}

TEST(promise, is_completed_once)
{
    weir_promise *succeeded = new_promise(NULL), *failed = new_promise(NULL),
                 *cancelled = new_promise(NULL);

    assert_int_equal(weir_promise_succeed(succeeded, &succeeded), 0);
    assert_cannot_be_completed_again(succeeded);
    assert_int_equal(weir_promise_fail(failed, -EPIPE, "broken"), 0);
    assert_cannot_be_completed_again(failed);
    assert_int_equal(weir_promise_cancel(cancelled), 0);
    assert_cannot_be_completed_again(cancelled);
}

TEST(promise, that_is_uncancellable_is_not_done_and_can_still_succeed)
{
    weir_promise *promise = new_promise(NULL);
    int value;

    assert_true(weir_promise_set_uncancellable(promise));
    assert_true(weir_promise_set_uncancellable(promise));
    assert_false(weir_promise_is_done(promise));
    assert_int_equal(weir_promise_result(promise), -EINPROGRESS);
    assert_null(weir_promise_value(promise));
    assert_int_equal(weir_promise_cancel(promise), -EBUSY);
    assert_false(weir_promise_is_done(promise));

    assert_int_equal(weir_promise_succeed(promise, &value), 0);
    assert_ptr_equal(weir_promise_value(promise), &value);
    weir_promise_release(promise);
}

TEST(promise, that_is_uncancellable_can_still_fail)
{
    weir_promise *promise = new_promise(NULL);

    assert_true(weir_promise_set_uncancellable(promise));
    assert_int_equal(weir_promise_fail(promise, -EIO, NULL), 0);
    assert_int_equal(weir_promise_result(promise), -EIO);
    weir_promise_release(promise);
}

TEST(promise, cannot_be_made_uncancellable_only_once_it_is_cancelled)
{
    weir_promise *cancelled = new_promise(NULL), *succeeded = new_promise(NULL),
                 *failed = new_promise(NULL);

    assert_int_equal(weir_promise_cancel(cancelled), 0);
    assert_false(weir_promise_set_uncancellable(cancelled));
    assert_int_equal(weir_promise_succeed(succeeded, NULL), 0);
    assert_true(weir_promise_set_uncancellable(succeeded));
    assert_int_equal(weir_promise_fail(failed, -EIO, NULL), 0);
    assert_true(weir_promise_set_uncancellable(failed));
    weir_promise_release(cancelled);
    weir_promise_release(succeeded);
    weir_promise_release(failed);
}

static void count_free(void *value)
{
    ++*(int *)value;
}

TEST(promise, frees_a_value_that_it_owns)
{
    weir_promise *promise = new_promise(NULL);
    int frees = 0;

    assert_int_equal(weir_promise_succeed_with(promise, &frees, count_free), 0);
    weir_promise_retain(promise);
    weir_promise_release(promise);
    assert_int_equal(frees, 0);
    assert_ptr_equal(weir_promise_value(promise), &frees);
    weir_promise_release(promise);
    assert_int_equal(frees, 1);
}

TEST(promise, frees_a_value_that_comes_too_late_at_once)
{
    weir_promise *promise = new_promise(NULL);
    int frees = 0;

    assert_int_equal(weir_promise_cancel(promise), 0);
    assert_int_equal(weir_promise_succeed_with(promise, &frees, count_free), WEIR_ECOMPLETED);
    assert_int_equal(frees, 1);
    assert_null(weir_promise_value(promise));
    weir_promise_release(promise);
    assert_int_equal(frees, 1);
}

TEST(promise, can_be_created_complete)
{
    weir_promise *promise;
    int value;

    assert_int_equal(weir_promise_create_completed(NULL, 0, &value, &promise), 0);
    assert_int_equal(weir_promise_result(promise), 0);
    assert_ptr_equal(weir_promise_value(promise), &value);
    assert_cannot_be_completed_again(promise);

    assert_int_equal(weir_promise_create_completed(NULL, -EIO, &value, &promise), 0);
    assert_int_equal(weir_promise_result(promise), -EIO);
    assert_null(weir_promise_value(promise));
    assert_string_equal(weir_promise_detail(promise), weir_error_text(-EIO));
    assert_cannot_be_completed_again(promise);

    promise = NULL;
    assert_int_equal(weir_promise_create_completed(NULL, EIO, &value, &promise), -EINVAL);
    assert_null(promise);
}

TEST(promise, is_not_created_without_memory)
{
    weir_promise *promise = NULL;
    struct call_counter counter = {0};

    test_memory_fail_at(1);
    assert_int_equal(weir_promise_create(NULL, &promise), -ENOMEM);
    test_memory_fail_at(1);
    assert_int_equal(weir_promise_create_completed(NULL, 0, NULL, &promise), -ENOMEM);
    assert_null(promise);

    promise = new_promise(weir_executor_immediate());
    assert_int_equal(weir_promise_add_listener(promise, count_completion, &counter), 0);
    test_memory_fail_at(1);
    assert_int_equal(weir_promise_add_listener(promise, count_completion, &counter), -ENOMEM);
    test_memory_fail_at(1);
    assert_int_equal(weir_promise_fail(promise, -EIO, "a sentence that cannot be copied"), 0);
    assert_true(test_memory_failed());
    assert_string_equal(weir_promise_detail(promise), weir_error_text(-EIO));
    assert_int_equal(counter.calls, 1);
    weir_promise_release(promise);
}

TEST(promise, without_listeners_never_touches_its_executor)
{
    struct single_executor single = single_executor_open(NULL);
    weir_promise *succeeded = new_promise(single.executor),
                 *cancelled = new_promise(single.executor);

    assert_int_equal(weir_promise_succeed(succeeded, NULL), 0);
    assert_int_equal(weir_promise_cancel(cancelled), 0);
    assert_int_equal(weir_executor_state(single.executor), WEIR_EXECUTOR_NOT_STARTED);
    weir_promise_release(succeeded);
    weir_promise_release(cancelled);
    single_executor_close(&single);
}

#define RIVALS 4
#define ROUNDS 300

/* Threads that race for a promise, one of each role, in each round. */
struct race {
    _Atomic unsigned ready;
    weir_promise *promises[ROUNDS];
    int results[RIVALS][ROUNDS];
};

static void race_round(struct race *race, unsigned round)
{
    atomic_fetch_add(&race->ready, 1);
    while (atomic_load(&race->ready) < (round + 1) * RIVALS)
        weir__thread_yield();
}

static void race_succeed(void *arg)
{
    struct race *race = arg;

    for (unsigned i = 0; i < ROUNDS; i++) {
        race_round(race, i);
        race->results[0][i] = weir_promise_succeed(race->promises[i], race);
    }
}

static void race_fail(void *arg)
{
    struct race *race = arg;

    for (unsigned i = 0; i < ROUNDS; i++) {
        race_round(race, i);
        race->results[1][i] = weir_promise_fail(race->promises[i], -EIO, "lost");
    }
}

static void race_cancel(void *arg)
{
    struct race *race = arg;

    for (unsigned i = 0; i < ROUNDS; i++) {
        race_round(race, i);
        race->results[2][i] = weir_promise_cancel(race->promises[i]);
    }
}

static void race_set_uncancellable(void *arg)
{
    struct race *race = arg;

    for (unsigned i = 0; i < ROUNDS; i++) {
        race_round(race, i);
        race->results[3][i] = weir_promise_set_uncancellable(race->promises[i]);
    }
}

static void assert_one_winner(const struct race *race, unsigned i)
{
    static const int outcomes[] = {0, -EIO, WEIR_ECANCELED};
    unsigned winners = 0;

    for (unsigned role = 0; role < 3; role++) {
        if (race->results[role][i] != 0)
            continue;
        winners++;
        assert_int_equal(weir_promise_result(race->promises[i]), outcomes[role]);
    }
    assert_int_equal(winners, 1);
    assert_true(race->results[3][i] == !weir_promise_is_cancelled(race->promises[i]));
}

TEST(promise, has_one_winner_of_a_race)
{
    static weir_thread_fn *const roles[RIVALS] = {race_succeed, race_fail, race_cancel,
                                                  race_set_uncancellable};
    static struct race race;
    weir__thread threads[RIVALS];

    for (unsigned i = 0; i < ROUNDS; i++)
        race.promises[i] = new_promise(NULL);
    for (unsigned i = 0; i < RIVALS; i++)
        assert_int_equal(weir__thread_start("rival", roles[i], &race, &threads[i]), 0);
    for (unsigned i = 0; i < RIVALS; i++)
        weir__thread_join(&threads[i]);
    for (unsigned i = 0; i < ROUNDS; i++) {
        assert_one_winner(&race, i);
        weir_promise_release(race.promises[i]);
    }
}

/* ---- waiting ---- */

TEST(promise, that_is_complete_is_not_waited_for)
{
    weir_promise *promise;

    assert_int_equal(weir_promise_create_completed(NULL, -EIO, NULL, &promise), 0);
    assert_int_equal(weir_promise_await(promise, 0), 0);
    assert_int_equal(weir_promise_await(promise, WEIR_NEVER), 0);
    assert_int_equal(weir_promise_sync(promise, WEIR_NEVER), -EIO);
    weir_promise_release(promise);
}

TEST(promise, is_waited_for_until_the_timeout_and_not_less)
{
    weir_promise *promise = new_promise(NULL);
    int64_t start_ns = weir__monotonic_now();

    assert_int_equal(weir_promise_await(promise, weir_ms(5)), -ETIMEDOUT);
    assert_true(weir__monotonic_now() - start_ns >= weir_ms(5));
    assert_int_equal(weir_promise_await(promise, 0), -ETIMEDOUT);
    assert_int_equal(weir_promise_await(promise, -1), -ETIMEDOUT);
    assert_int_equal(weir_promise_sync(promise, 0), -ETIMEDOUT);
    assert_false(weir_promise_is_done(promise));
    weir_promise_release(promise);
}

struct waiting {
    weir_promise *promise;
    int64_t timeout_ns;
    int err;
    struct call_counter begun;
};

static void wait_for_promise(void *arg)
{
    struct waiting *waiting = arg;

    call_counter_add(&waiting->begun);
    waiting->err = weir_promise_sync(waiting->promise, waiting->timeout_ns);
}

TEST(promise, wakes_all_waiters)
{
    struct waiting waiting[3];
    weir__thread threads[3];
    weir_promise *promise = new_promise(NULL);

    for (int i = 0; i < 3; i++) {
        waiting[i] = (struct waiting){promise, i == 0 ? WEIR_NEVER : TEST_TIMEOUT_NS, 0, {0}};
        assert_int_equal(weir__thread_start("waiting", wait_for_promise, &waiting[i], &threads[i]),
                         0);
        assert_true(call_counter_await(&waiting[i].begun, 1));
    }
    assert_true(weir_promise_set_uncancellable(promise));
    assert_int_equal(weir_promise_fail(promise, -EIO, NULL), 0);
    for (int i = 0; i < 3; i++) {
        weir__thread_join(&threads[i]);
        assert_int_equal(waiting[i].err, -EIO);
    }
    weir_promise_release(promise);
}

static int wait_on(weir_executor *executor, weir_promise *promise)
{
    struct waiting waiting = {promise, TEST_TIMEOUT_NS, 1, {0}};

    run_on_executor(executor, wait_for_promise, &waiting);
    return waiting.err;
}

TEST(promise, is_not_waited_for_on_its_own_executor)
{
    struct single_executor single = single_executor_open(NULL);
    struct stepper stepper = stepper_open();
    weir_promise *own = new_promise(single.executor), *global = new_promise(NULL),
                 *manual = new_promise(stepper.executor);

    assert_int_equal(wait_on(single.executor, own), -EDEADLK);
    assert_int_equal(wait_on(weir_executor_global(), global), -EDEADLK);
    assert_int_equal(weir_promise_await(manual, TEST_TIMEOUT_NS), -EDEADLK);
    assert_false(weir_promise_is_done(own));

    assert_int_equal(weir_promise_succeed(own, NULL), 0);
    assert_int_equal(wait_on(single.executor, own), 0);
    weir_promise_release(own);
    weir_promise_release(global);
    weir_promise_release(manual);
    stepper_close(&stepper);
    single_executor_close(&single);
}

TEST(promise, is_not_waited_for_on_any_event_loop)
{
    weir_executor *loop = fake_loop_open(), *other_loop = fake_loop_open();
    weir_promise *promises[] = {new_promise(loop), new_promise(other_loop), new_promise(NULL),
                                new_promise(weir_executor_immediate())};

    for (int i = 0; i < 4; i++) {
        assert_int_equal(wait_on(loop, promises[i]), -EDEADLK);
        assert_int_equal(weir_promise_succeed(promises[i], NULL), 0);
        assert_int_equal(wait_on(loop, promises[i]), 0);
        weir_promise_release(promises[i]);
    }
    fake_loop_close(loop);
    fake_loop_close(other_loop);
}

static int succeed_after_all(void *arg, int status, void **ret_value)
{
    int err = status < 0 ? status : weir_promise_succeed(arg, NULL);

    (void)ret_value;
    weir_promise_release(arg);
    return err;
}

TEST(promise, may_be_waited_for_on_another_plain_executor_and_if_it_has_no_thread)
{
    struct single_executor single = single_executor_open(NULL);
    weir_promise *promises[] = {new_promise(NULL), new_promise(weir_executor_immediate())};

    for (int i = 0; i < 2; i++) {
        weir_promise_retain(promises[i]); /* the completing thread may be last */
        assert_int_equal(weir_submit(weir_executor_global(), succeed_after_all, promises[i], NULL),
                         0);
        assert_int_equal(wait_on(single.executor, promises[i]), 0);
        weir_promise_release(promises[i]);
    }
    single_executor_close(&single);
}

static void wait_inside(void *arg, int status)
{
    (void)status;
    wait_for_promise(arg);
}

/* A loop's task runs a manual executor, whose task waits. */
static void drive_and_wait(void *arg)
{
    weir_executor *manual;

    if (weir_manual_create(NULL, &manual) < 0)
        return;
    IGNORE_RESULT(weir_execute(manual, wait_inside, arg));
    (void)weir_manual_run_once(manual, 0, 0);
    weir_executor_release(manual);
}

TEST(promise, is_not_waited_for_further_in_on_an_event_loop)
{
    weir_executor *loop = fake_loop_open();
    weir_promise *promise = new_promise(NULL);
    struct waiting waiting = {promise, TEST_TIMEOUT_NS, 1, {0}};

    run_on_executor(loop, drive_and_wait, &waiting);
    assert_int_equal(waiting.err, -EDEADLK);
    weir_promise_release(promise);
    fake_loop_close(loop);
}

static bool is_guarded(const void *arg)
{
    return *(const bool *)arg;
}

TEST(promise, with_a_guard_calls_it_instead)
{
    struct single_executor single = single_executor_open(NULL);
    weir_promise *promise = new_promise(NULL);
    bool guarded = true;

    weir__promise_set_guard(promise, is_guarded, &guarded);
    assert_int_equal(weir_promise_await(promise, TEST_TIMEOUT_NS), -EDEADLK);
    assert_int_equal(wait_on(single.executor, promise), -EDEADLK);
    guarded = false;
    assert_int_equal(weir_promise_await(promise, 0), -ETIMEDOUT);
    weir_promise_release(promise);
    single_executor_close(&single);
}

static void ask_to_wait(void *arg)
{
    *(int *)arg = weir__promise_may_wait(NULL);
}

TEST(promise, reports_whether_a_thread_may_wait)
{
    struct single_executor single = single_executor_open(NULL);
    weir_executor *loop = fake_loop_open();
    int answer = 1;

    assert_int_equal(weir__promise_may_wait(NULL), 0);
    run_on_executor(single.executor, ask_to_wait, &answer);
    assert_int_equal(answer, 0);
    run_on_executor(loop, ask_to_wait, &answer);
    assert_int_equal(answer, -EDEADLK);
    fake_loop_close(loop);
    single_executor_close(&single);
}

#define WAKE_UPS 4096

struct wake_ups {
    weir_promise *promises[WAKE_UPS];
    _Atomic unsigned waiting; /* the number of the awaited promise, plus 1 */
};

static void complete_each(void *arg)
{
    struct wake_ups *wake_ups = arg;

    for (unsigned i = 0; i < WAKE_UPS; i++) {
        while (atomic_load(&wake_ups->waiting) <= i)
            weir__thread_yield(); /* there may be only one CPU */
        for (unsigned pauses = i % 64; pauses > 0; pauses--)
            weir__cpu_relax();
        (void)weir_promise_succeed(wake_ups->promises[i], NULL);
    }
}

TEST(promise, loses_no_wake_up)
{
    static struct wake_ups wake_ups;
    weir__thread thread;

    for (unsigned i = 0; i < WAKE_UPS; i++)
        wake_ups.promises[i] = new_promise(NULL);
    assert_int_equal(weir__thread_start("completer", complete_each, &wake_ups, &thread), 0);
    for (unsigned i = 0; i < WAKE_UPS; i++) {
        atomic_store(&wake_ups.waiting, i + 1);
        assert_int_equal(weir_promise_await(wake_ups.promises[i], TEST_TIMEOUT_NS), 0);
    }
    weir__thread_join(&thread);
    for (unsigned i = 0; i < WAKE_UPS; i++)
        weir_promise_release(wake_ups.promises[i]);
}

#define LOANS 20000

static void complete_borrowed(void *arg, int status)
{
    (void)status;
    (void)weir_promise_succeed(arg, NULL);
}

TEST(promise, may_be_released_by_a_waiter_as_soon_as_it_is_complete)
{
    struct single_executor single = single_executor_open(NULL);

    for (int i = 0; i < LOANS; i++) {
        weir_promise *promise = new_promise(NULL);

        assert_int_equal(weir_execute(single.executor, complete_borrowed, promise), 0);
        assert_int_equal(weir_promise_await(promise, TEST_TIMEOUT_NS), 0);
        weir_promise_release(promise);
    }
    single_executor_close(&single);
}

static void release_own(weir_promise *promise, void *user_data)
{
    weir_promise_release(promise);
    atomic_fetch_add((_Atomic int *)user_data, 1);
}

static int do_nothing(void *arg, int status, void **ret_value)
{
    (void)arg;
    (void)status;
    (void)ret_value;
    return 0;
}

TEST(promise, may_be_released_by_a_listener_as_soon_as_that_is_added)
{
    struct single_executor single = single_executor_open(NULL);
    _Atomic int released = 0;

    for (int i = 0; i < LOANS; i++) {
        weir_promise *promise;

        assert_int_equal(weir_submit(single.executor, do_nothing, NULL, &promise), 0);
        assert_int_equal(weir_promise_add_listener(promise, release_own, &released), 0);
        while (atomic_load(&released) <= i)
            weir__thread_yield();
    }
    single_executor_close(&single);
}

/* ---- abandoned promises ---- */

TEST(promise, that_is_abandoned_fails)
{
    struct stepper stepper = stepper_open();
    weir_promise *promise = new_promise(stepper.executor);
    struct completion_record record = {0};

    assert_int_equal(weir_promise_add_listener(promise, record_completion, &record), 0);
    weir_promise_retain(promise);
    weir_promise_release(promise);
    assert_int_equal(record.calls.calls, 0);
    weir_promise_release(promise);
    assert_int_equal(record.calls.calls, 1);
    assert_int_equal(record.result, WEIR_EABANDONED);
    stepper_close(&stepper);
}

static void abandon(void *arg)
{
    weir_promise_release(arg);
}

TEST(promise, that_is_abandoned_on_another_thread_fails_on_its_executor)
{
    struct stepper stepper = stepper_open();
    weir_promise *promise = new_promise(stepper.executor);
    struct completion_record record = {0};

    assert_int_equal(weir_promise_add_listener(promise, record_completion, &record), 0);
    assert_true(weir_promise_set_uncancellable(promise));
    run_on_other_thread(abandon, promise);
    assert_int_equal(record.calls.calls, 0);
    stepper_run(&stepper);
    assert_int_equal(record.calls.calls, 1);
    assert_ptr_equal(record.current, stepper.executor);
    assert_int_equal(record.result, WEIR_EABANDONED);
    stepper_close(&stepper);
}

static void keep(weir_promise *promise, void *user_data)
{
    *(weir_promise **)user_data = weir_promise_retain(promise);
}

TEST(promise, that_is_abandoned_can_be_retained_by_a_listener)
{
    weir_promise *promise = new_promise(weir_executor_immediate()), *kept = NULL;

    assert_int_equal(weir_promise_add_listener(promise, keep, &kept), 0);
    weir_promise_release(promise);
    assert_ptr_equal(kept, promise);
    assert_int_equal(weir_promise_result(kept), WEIR_EABANDONED);
    assert_string_equal(weir_promise_detail(kept), weir_error_text(WEIR_EABANDONED));
    weir_promise_release(kept);
}

TEST(promise, release_takes_null)
{
    weir_promise_release(NULL);
}

#ifndef NDEBUG
static void release_a_promise_twice(void)
{
    weir_promise *promise = new_promise(weir_executor_immediate());

    weir_promise_release(promise);
    weir_promise_release(promise);
}

/* A cascade keeps the memory of its source until the listeners of its target have run. */
static void release_a_watched_promise_twice(void)
{
    struct stepper stepper = stepper_open();
    weir_promise *source = new_promise(weir_executor_immediate()),
                 *target = new_promise(stepper.executor);

    assert_int_equal(weir_promise_cascade(source, target), 0);
    assert_int_equal(weir_promise_succeed(target, NULL), 0);
    weir_promise_release(source);
    weir_promise_release(source);
}

static void retain_a_promise_too_late(void)
{
    weir_promise *promise = new_promise(weir_executor_immediate());

    weir_promise_release(promise);
    (void)weir_promise_retain(promise);
}

TEST(promise, released_once_too_often_fails_an_assertion)
{
    assert_true(
        child_dies_with_output(release_a_promise_twice, "weir_promise_release: the promise"));
    assert_true(child_dies_with_output(release_a_watched_promise_twice,
                                       "weir_promise_release: the promise"));
    assert_true(
        child_dies_with_output(retain_a_promise_too_late, "weir_promise_retain: the promise"));
}
#endif

/* ---- several threads on behalf of one holder ---- */

static void retain(void *promise)
{
    weir_promise_retain(promise);
}

static void release(void *promise)
{
    weir_promise_release(promise);
}

static void count_a_free(void *value)
{
    ++*(int *)value;
}

TEST(promise, of_one_holder_is_retained_by_two_threads)
{
    weir_promise *promise = new_promise(weir_executor_immediate());
    int frees = 0;

    litmus_references(retain, release, promise);
    assert_false(weir_promise_is_done(promise)); /* nor abandoned */
    assert_int_equal(weir_promise_succeed_with(promise, &frees, count_a_free), 0);
    litmus_references(retain, release, promise);
    assert_int_equal(frees, 0);
    weir_promise_release(promise);
    assert_int_equal(frees, 1);
}

/* A cascade holds a weak reference to its source until both are complete. */
static void cascade_from(void *source)
{
    weir_promise *target;

    if (weir_promise_create(weir_executor_immediate(), &target) < 0)
        return;
    (void)!weir_promise_cascade(source, target);
    weir_promise_release(target);
}

TEST(promise, of_one_holder_is_weakly_retained_by_two_threads)
{
    weir_promise *source = new_promise(weir_executor_immediate());
    int frees = 0;

    assert_int_equal(weir_promise_succeed_with(source, &frees, count_a_free), 0);
    (void)litmus_run(cascade_from, source, LITMUS_ROUNDS / 10);
    assert_int_equal(frees, 0);
    weir_promise_release(source);
    assert_int_equal(frees, 1);
}
