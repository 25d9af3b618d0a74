/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A manual executor between its runs: it counts as asleep, calls `.wakeup` at most once per sleep,
 * and misses no wakeup.
 */
#include "support/test.h"

#include <stdatomic.h>

#include <weir/manual.h>
#include <weir/timer.h>

#include "executor/executor.h"
#include "os/clock.h"
#include "os/futex.h"
#include "os/thread.h"
#include "support/executor/call_counter.h"
#include "support/executor/manual_fixture.h"
#include "support/executor/run_on_thread.h"
#include "support/executor/stepper.h"

/* Calls from another thread to a sleeping executor. */
struct outside {
    weir_executor *executor;
    struct call_counter *counter;
    int64_t delay_ns;
};

static void count_wakeup(void *user_data)
{
    call_counter_add(user_data);
}

static void submit_one(void *arg)
{
    struct outside *outside = arg;

    IGNORE_RESULT(weir_execute(outside->executor, call_counter_task, outside->counter));
}

static void submit_lazily(void *arg)
{
    struct outside *outside = arg;

    IGNORE_RESULT(weir_execute_lazy(outside->executor, call_counter_task, outside->counter));
}

TEST(manual, calls_wakeup_once_per_sleep)
{
    struct manual_fixture fixture;
    struct call_counter counter = {0};
    struct outside outside;

    manual_fixture_open(&fixture);
    outside = (struct outside){fixture.executor, &counter, 0};
    run_on_other_thread(submit_one, &outside);
    assert_int_equal(manual_fixture_wakeups(&fixture), 1);
    run_on_other_thread(submit_one, &outside);
    assert_int_equal(weir_execute(fixture.executor, call_counter_task, &counter), 0);
    assert_int_equal(manual_fixture_wakeups(&fixture), 1);
    assert_int_equal(manual_fixture_run(&fixture), 3);
    assert_int_equal(manual_fixture_wakeups(&fixture), 1); /* nothing was left */

    run_on_other_thread(submit_one, &outside);
    assert_int_equal(manual_fixture_wakeups(&fixture), 2);
    assert_int_equal(manual_fixture_run(&fixture), 1);
    manual_fixture_close(&fixture);
}

TEST(manual, calls_wakeup_when_its_owner_submits_between_runs)
{
    struct manual_fixture fixture;
    struct call_counter counter = {0};

    manual_fixture_open(&fixture);
    assert_int_equal(weir_execute(fixture.executor, call_counter_task, &counter), 0);
    assert_int_equal(manual_fixture_wakeups(&fixture), 1);
    assert_int_equal(weir_manual_timeout(fixture.executor), 0);
    assert_int_equal(manual_fixture_run(&fixture), 1);
    manual_fixture_close(&fixture);
}

TEST(manual, does_not_call_wakeup_for_a_lazy_task)
{
    struct manual_fixture fixture;
    struct call_counter counter = {0};
    struct outside outside;

    manual_fixture_open(&fixture);
    outside = (struct outside){fixture.executor, &counter, 0};
    run_on_other_thread(submit_lazily, &outside);
    assert_int_equal(manual_fixture_wakeups(&fixture), 0);
    run_on_other_thread(submit_one, &outside);
    assert_int_equal(manual_fixture_wakeups(&fixture), 1);
    assert_int_equal(manual_fixture_run(&fixture), 2);
    manual_fixture_close(&fixture);
}

TEST(manual, calls_wakeup_if_a_run_leaves_work)
{
    struct manual_fixture fixture;

    manual_fixture_open(&fixture);
    for (int i = 0; i < 3; i++)
        assert_int_equal(weir_execute(fixture.executor, manual_fixture_slow_task, fixture.clock),
                         0);
    assert_int_equal(manual_fixture_wakeups(&fixture), 1);
    assert_int_equal(weir_manual_run_once(fixture.executor, 0, 1), 1);
    assert_int_equal(manual_fixture_wakeups(&fixture), 2);
    assert_int_equal(weir_manual_run_once(fixture.executor, 0, -1), 0);
    assert_int_equal(manual_fixture_wakeups(&fixture), 3);
    assert_int_equal(manual_fixture_run(&fixture), 2);
    assert_int_equal(manual_fixture_wakeups(&fixture), 3);
    manual_fixture_close(&fixture);
}

static void schedule_one(void *arg)
{
    struct outside *outside = arg;

    IGNORE_RESULT(weir_schedule(outside->executor, outside->delay_ns, call_counter_task,
                                outside->counter, NULL));
}

TEST(manual, calls_wakeup_only_for_a_timer_before_its_deadline)
{
    struct manual_fixture fixture;
    struct call_counter counter = {0};
    struct outside outside;

    manual_fixture_open(&fixture);
    outside = (struct outside){fixture.executor, &counter, weir_seconds(10)};
    run_on_other_thread(schedule_one, &outside);
    assert_int_equal(manual_fixture_wakeups(&fixture), 1);
    assert_int_equal(manual_fixture_run(&fixture), 1); /* the task that starts the timer */
    assert_true(weir_manual_timeout(fixture.executor) == weir_seconds(10));

    outside.delay_ns = weir_seconds(20);
    run_on_other_thread(schedule_one, &outside);
    assert_int_equal(manual_fixture_wakeups(&fixture), 1);
    outside.delay_ns = weir_seconds(5);
    run_on_other_thread(schedule_one, &outside);
    assert_int_equal(manual_fixture_wakeups(&fixture), 2);
    assert_int_equal(manual_fixture_run(&fixture), 2);
    assert_true(weir_manual_timeout(fixture.executor) == weir_seconds(5));
    manual_fixture_close(&fixture);
    assert_int_equal(atomic_load(&counter.cancelled), 3);
}

TEST(manual, calls_wakeup_when_a_manual_clock_reaches_its_deadline)
{
    struct manual_fixture fixture;
    struct call_counter counter = {0};

    manual_fixture_open(&fixture);
    assert_int_equal(weir_schedule(fixture.executor, weir_ms(5), call_counter_task, &counter, NULL),
                     0);
    assert_int_equal(manual_fixture_run(&fixture), 0);
    assert_int_equal(weir_manual_clock_advance(fixture.clock, weir_ms(5) - 1), 0);
    assert_int_equal(manual_fixture_wakeups(&fixture), 0);
    assert_int_equal(weir_manual_clock_advance(fixture.clock, 1), 0);
    assert_int_equal(manual_fixture_wakeups(&fixture), 1);
    assert_int_equal(weir_manual_clock_advance(fixture.clock, weir_ms(5)), 0);
    assert_int_equal(manual_fixture_wakeups(&fixture), 1);
    assert_int_equal(manual_fixture_run(&fixture), 1);
    manual_fixture_close(&fixture);
}

TEST(manual, returns_how_long_its_owner_may_wait)
{
    struct stepper stepper = stepper_open();
    struct call_counter counter = {0};
    weir_promise *timer;

    assert_true(weir_manual_timeout(stepper.executor) == WEIR_NEVER);
    assert_int_equal(
        weir_schedule(stepper.executor, weir_ms(5), call_counter_task, &counter, &timer), 0);
    assert_int_equal(weir_manual_timeout(stepper.executor), weir_ms(5));
    assert_int_equal(weir_manual_clock_advance(stepper.clock, weir_ms(2)), 0);
    assert_int_equal(weir_manual_timeout(stepper.executor), weir_ms(3));
    assert_int_equal(weir_manual_clock_advance(stepper.clock, weir_ms(3)), 0);
    assert_int_equal(weir_manual_timeout(stepper.executor), 0);
    assert_int_equal(stepper_run(&stepper), 1);
    assert_true(weir_manual_timeout(stepper.executor) == WEIR_NEVER);

    weir_promise_release(timer);
    assert_int_equal(
        weir_schedule(stepper.executor, weir_ms(5), call_counter_task, &counter, &timer), 0);
    assert_int_equal(weir_promise_cancel(timer), 0);
    assert_true(weir_manual_timeout(stepper.executor) == WEIR_NEVER);
    weir_promise_release(timer);
    stepper_close(&stepper);
}

/* ---- no wakeup is lost ---- */

/* A clock whose read lets another thread submit, once. */
static struct {
    bool armed;
    struct outside outside;
} ambush;

static int64_t read_into_ambush(const weir_clock *clock)
{
    (void)clock;
    if (ambush.armed) {
        ambush.armed = false;
        run_on_other_thread(submit_one, &ambush.outside);
    }
    return weir__monotonic_now();
}

static void on_timer(weir_timer *timer)
{
    (void)timer;
}

/* Starts it as weir_timer_start does on the monotonic clock: its deadline is set later. */
static void start_timer_and_arm(void *arg, int status)
{
    weir_timer *timer = arg;

    if (status != 0)
        return;
    timer->fn = on_timer;
    timer->executor = ambush.outside.executor;
    weir__timers_start_after(&timer->executor->timers, &timer->node, weir_seconds(60));
    ambush.armed = true;
}

/*
 * A tail task starts a timer, so the clock is read after the run has seen the empty queue and
 * before it publishes its deadline: only the second check finds a task submitted there.
 */
TEST(manual, checks_once_more_before_it_sleeps)
{
    static weir_clock clock = {.now = read_into_ambush};
    struct call_counter counter = {0}, asked = {0};
    weir_timer timer = {0};
    weir_executor *executor;

    assert_int_equal(weir_manual_create(WEIR_MANUAL_OPTIONS(.clock = &clock, .wakeup = count_wakeup,
                                                            .wakeup_data = &asked),
                                        &executor),
                     0);
    ambush.outside = (struct outside){executor, &counter, 0};
    assert_int_equal(weir_execute_after_turn(executor, start_timer_and_arm, &timer), 0);
    assert_int_equal(atomic_load(&asked.calls), 1);
    (void)weir_manual_run_once(executor, 0, 0);
    assert_false(ambush.armed);
    assert_int_equal(atomic_load(&counter.calls), 0); /* it came too late for this run */
    assert_int_equal(atomic_load(&asked.calls), 2);
    assert_int_equal(weir_manual_run_once(executor, 0, 0), 1);
    assert_int_equal(weir_timer_stop(&timer), 0);
    weir_executor_release(executor);
}

#define PRODUCERS 3
#define TASKS_EACH 20000

struct stress {
    weir_executor *executor;
    _Atomic uint32_t wanted; /* set by .wakeup, reset by the owner before each run */
    _Atomic unsigned wakeups;
    unsigned run; /* not atomic: only the owner's tasks access it */
    weir__thread producers[PRODUCERS];
};

static void on_wanted(void *user_data)
{
    struct stress *stress = user_data;

    atomic_fetch_add(&stress->wakeups, 1);
    atomic_store(&stress->wanted, 1);
    weir__futex_wake(&stress->wanted, 1);
}

static void on_stress_task(void *arg, int status)
{
    struct stress *stress = arg;

    stress->run += status == 0;
}

static void produce(void *arg)
{
    struct stress *stress = arg;

    for (int i = 0; i < TASKS_EACH; i++) {
        IGNORE_RESULT(weir_execute(stress->executor, on_stress_task, stress));
        if (i % 64 == 0)
            weir__thread_yield(); /* let it go to sleep now and then */
    }
}

static void open_stress(struct stress *stress)
{
    assert_int_equal(
        weir_manual_create(WEIR_MANUAL_OPTIONS(.wakeup = on_wanted, .wakeup_data = stress),
                           &stress->executor),
        0);
    for (int i = 0; i < PRODUCERS; i++)
        assert_int_equal(weir__thread_start("producer", produce, stress, &stress->producers[i]), 0);
}

static void join_producers(struct stress *stress)
{
    for (int i = 0; i < PRODUCERS; i++)
        weir__thread_join(&stress->producers[i]);
}

/* Like the main loop of an application: sleeps until .wakeup, and does not poll. */
TEST(manual, loses_no_wake_up_between_runs)
{
    struct stress stress = {0};
    unsigned sleeps = 1;

    open_stress(&stress);
    while (stress.run < PRODUCERS * TASKS_EACH) {
        int64_t deadline_ns = weir__monotonic_now() + TEST_TIMEOUT_NS;

        while (atomic_load(&stress.wanted) == 0) {
            assert_true(weir__monotonic_now() < deadline_ns);
            weir__futex_wait(&stress.wanted, 0, deadline_ns);
        }
        atomic_store(&stress.wanted, 0);
        assert_true(weir_manual_run_once(stress.executor, 0, 0) >= 0);
        sleeps++;
    }
    join_producers(&stress);
    assert_true(atomic_load(&stress.wakeups) <= sleeps);
    assert_int_equal(stress.run, PRODUCERS * TASKS_EACH);
    weir_executor_release(stress.executor);
}

TEST(manual, loses_no_wake_up_while_it_waits)
{
    struct stress stress = {0};
    unsigned runs = 0;

    open_stress(&stress);
    for (; stress.run < PRODUCERS * TASKS_EACH; runs++)
        assert_true(weir_manual_run_once(stress.executor, TEST_TIMEOUT_NS, 0) > 0);
    join_producers(&stress);
    assert_true(atomic_load(&stress.wakeups) <= 2 * runs + 1); /* two sleeps each, and the first */
    weir_executor_release(stress.executor);
}
