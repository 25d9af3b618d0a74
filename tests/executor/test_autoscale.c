/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Autoscaling groups. Most tests use a manual clock and call the monitor directly; its own window
 * is so long that it never runs.
 */
#include "support/test.h"

#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include <weir/timer.h>

#include "executor/group.h"
#include "support/executor/call_counter.h"
#include "support/executor/gate.h"
#include "support/executor/log_capture.h"
#include "support/executor/plain_group.h"
#include "support/executor/thread_factory.h"
#include "support/memory.h"

#define WINDOW_NS weir_ms(100)
#define BY_HAND .window_ns = weir_seconds(1000000)

struct scaled {
    weir_manual_clock *clock;
    weir_group *group;
    struct thread_factory_fixture fixture;
};

static void open_scaled(struct scaled *scaled, int threads, const weir_autoscale_options *options)
{
    thread_factory_open(&scaled->fixture);
    assert_int_equal(weir_manual_clock_create(weir_seconds(1), &scaled->clock), 0);
    assert_int_equal(
        plain_group_create(WEIR_GROUP_OPTIONS(.io = WEIR_IO_NONE, .threads = threads,
                                              .clock = weir_manual_clock_clock(scaled->clock),
                                              .thread_factory = &scaled->fixture.factory,
                                              .autoscale = options),
                           &scaled->group),
        0);
}

static void close_scaled(struct scaled *scaled)
{
    weir_group_release(scaled->group);
    thread_factory_close(&scaled->fixture);
    weir_manual_clock_release(scaled->clock);
}

static weir_executor *member(const struct scaled *scaled, size_t i)
{
    return weir_group_at(scaled->group, i);
}

static bool is_active(const weir_executor *executor)
{
    enum weir_executor_state state = weir_executor_state(executor);

    return state != WEIR_EXECUTOR_SUSPENDING && state != WEIR_EXECUTOR_SUSPENDED;
}

static int count_active(const struct scaled *scaled)
{
    int count = 0;

    for (size_t i = 0; i < weir_group_count(scaled->group); i++)
        count += is_active(member(scaled, i));
    return count;
}

static bool is_idle_or_ended(const weir_executor *executor)
{
    switch (weir_executor_state(executor)) {
    case WEIR_EXECUTOR_SUSPENDING:
        return false;
    case WEIR_EXECUTOR_STARTED:
        return atomic_load(&executor->next_wakeup) != WEIR__AWAKE;
    default:
        return true;
    }
}

/* Waits until a member sleeps or has ended, so that time that passes does not count as awake. */
static void await_idle_or_ended(const weir_executor *executor)
{
    int64_t deadline_ns = weir__monotonic_now() + TEST_TIMEOUT_NS;

    while (!is_idle_or_ended(executor)) {
        assert_true(weir__monotonic_now() < deadline_ns);
        weir__thread_yield();
    }
}

static void advance(struct scaled *scaled, int64_t delta_ns)
{
    assert_int_equal(weir_manual_clock_advance(scaled->clock, delta_ns), 0);
}

/* Runs the monitor, and waits for the members that it resumed or suspended. */
static void step(struct scaled *scaled, size_t busy)
{
    weir__autoscale_step(weir__group_chooser_state(scaled->group));
    for (size_t i = busy; i < weir_group_count(scaled->group); i++)
        await_idle_or_ended(member(scaled, i));
}

/* Lets windows pass in which the first `busy` members wait at a gate. */
static void pass(struct scaled *scaled, int windows, size_t busy)
{
    for (int i = 0; i < windows; i++) {
        advance(scaled, WINDOW_NS);
        step(scaled, busy);
    }
}

static void keep_busy(const struct scaled *scaled, size_t i, struct gate *gate)
{
    uint32_t arrived = atomic_load(&gate->arrivals.calls);

    assert_int_equal(weir_execute(member(scaled, i), gate_task, gate), 0);
    assert_true(gate_await_arrivals(gate, arrived + 1));
}

/* ---- down ---- */

TEST(autoscale, idle_members_are_suspended_one_by_one_down_to_the_minimum)
{
    struct scaled scaled;

    open_scaled(&scaled, 3, WEIR_AUTOSCALE_OPTIONS(BY_HAND));
    assert_int_equal(count_active(&scaled), 3);
    pass(&scaled, 2, 0);
    assert_int_equal(count_active(&scaled), 3); /* patience is 2 */
    pass(&scaled, 1, 0);
    assert_int_equal(count_active(&scaled), 2);
    pass(&scaled, 1, 0);
    assert_int_equal(count_active(&scaled), 1);
    assert_true(is_active(member(&scaled, 0)));
    pass(&scaled, 20, 0);
    assert_int_equal(count_active(&scaled), 1);
    assert_int_equal(atomic_load(&scaled.fixture.asked),
                     0); /* no thread was started only to be stopped */
    close_scaled(&scaled);
}

TEST(autoscale, never_fewer_are_active_than_asked_for)
{
    struct scaled scaled;

    open_scaled(&scaled, 4, WEIR_AUTOSCALE_OPTIONS(BY_HAND, .min_active = 3));
    pass(&scaled, 20, 0);
    assert_int_equal(count_active(&scaled), 3);
    close_scaled(&scaled);
}

TEST(autoscale, suspends_several_at_once_with_a_larger_ramp)
{
    struct scaled scaled;

    open_scaled(
        &scaled, 6,
        WEIR_AUTOSCALE_OPTIONS(BY_HAND, .ramp_down = 3, .patience = WEIR_OFF, .min_active = 2));
    pass(&scaled, 1, 0);
    assert_int_equal(count_active(&scaled), 3);
    pass(&scaled, 1, 0);
    assert_int_equal(count_active(&scaled), 2);
    close_scaled(&scaled);
}

TEST(autoscale, a_suspended_member_ends_its_thread_and_a_task_brings_it_back)
{
    struct call_counter counter = {0};
    struct scaled scaled;

    open_scaled(&scaled, 2, WEIR_AUTOSCALE_OPTIONS(BY_HAND, .patience = WEIR_OFF));
    assert_int_equal(weir_execute(member(&scaled, 1), call_counter_task, &counter), 0);
    assert_true(call_counter_await(&counter, 1));
    await_idle_or_ended(member(&scaled, 1));
    pass(&scaled, 1, 0);
    assert_int_equal(weir_executor_state(member(&scaled, 1)), WEIR_EXECUTOR_SUSPENDED);

    assert_int_equal(weir_execute(member(&scaled, 1), call_counter_task, &counter), 0);
    assert_true(call_counter_await(&counter, 2));
    assert_int_equal(weir_executor_state(member(&scaled, 1)), WEIR_EXECUTOR_STARTED);
    assert_int_equal(atomic_load(&scaled.fixture.started), 2);
    close_scaled(&scaled);
}

/* Idle windows before the suspension do not count. */
TEST(autoscale, a_member_that_a_task_brought_back_has_all_the_patience_again)
{
    struct call_counter counter = {0};
    struct scaled scaled;

    open_scaled(&scaled, 2, WEIR_AUTOSCALE_OPTIONS(BY_HAND));
    pass(&scaled, 10, 0);
    assert_int_equal(count_active(&scaled), 1);
    assert_int_equal(weir_execute(member(&scaled, 1), call_counter_task, &counter), 0);
    assert_true(call_counter_await(&counter, 1));
    await_idle_or_ended(member(&scaled, 1));
    pass(&scaled, 2, 0);
    assert_true(is_active(member(&scaled, 1)));
    close_scaled(&scaled);
}

TEST(autoscale, a_busy_window_ends_the_run_of_idle_ones)
{
    struct gate gate = {0};
    struct scaled scaled;

    open_scaled(&scaled, 2, WEIR_AUTOSCALE_OPTIONS(BY_HAND));
    pass(&scaled, 2, 0);
    keep_busy(&scaled, 0, &gate);
    keep_busy(&scaled, 1, &gate);
    pass(&scaled, 1, 2);
    gate_open(&gate);
    await_idle_or_ended(member(&scaled, 0));
    await_idle_or_ended(member(&scaled, 1));
    pass(&scaled, 2, 0);
    assert_int_equal(count_active(&scaled), 2);
    pass(&scaled, 1, 0);
    assert_int_equal(count_active(&scaled), 1);
    close_scaled(&scaled);
}

TEST(autoscale, a_member_with_a_timer_is_left_active)
{
    struct call_counter counter = {0};
    struct scaled scaled;
    weir_promise *timer;

    open_scaled(&scaled, 3, WEIR_AUTOSCALE_OPTIONS(BY_HAND, .patience = WEIR_OFF));
    assert_int_equal(weir_execute(member(&scaled, 2), call_counter_task, &counter), 0);
    assert_int_equal(
        weir_schedule(member(&scaled, 2), weir_seconds(3600), call_counter_task, &counter, &timer),
        0);
    assert_true(call_counter_await(&counter, 1));
    while (atomic_load(&member(&scaled, 2)->stats.timers) == 0)
        weir__thread_yield();
    await_idle_or_ended(member(&scaled, 2));
    pass(&scaled, 5, 0);
    assert_true(is_active(member(&scaled, 2)));
    assert_false(is_active(member(&scaled, 1)));

    assert_int_equal(weir_promise_cancel(timer), 0);
    assert_int_equal(weir_execute(member(&scaled, 2), call_counter_task, &counter), 0);
    assert_true(call_counter_await(&counter, 3));
    await_idle_or_ended(member(&scaled, 2));
    pass(&scaled, 5, 0);
    assert_int_equal(count_active(&scaled), 1);
    weir_promise_release(timer);
    close_scaled(&scaled);
}

/* ---- up ---- */

TEST(autoscale, a_busy_member_gets_one_beside_it_and_two_busy_ones_a_third)
{
    struct gate gate = {0};
    struct scaled scaled;

    open_scaled(&scaled, 3, WEIR_AUTOSCALE_OPTIONS(BY_HAND));
    pass(&scaled, 10, 0);
    assert_int_equal(count_active(&scaled), 1);

    keep_busy(&scaled, 0, &gate);
    pass(&scaled, 2, 1);
    assert_int_equal(count_active(&scaled), 1); /* patience is 2 */
    pass(&scaled, 1, 1);
    assert_int_equal(count_active(&scaled), 2);
    pass(&scaled, 10, 1);
    assert_int_equal(count_active(&scaled), 2);

    keep_busy(&scaled, 1, &gate);
    pass(&scaled, 3, 2);
    assert_int_equal(count_active(&scaled), 3);
    gate_open(&gate);
    close_scaled(&scaled);
}

/* While one is busy and one idle nothing changes, and no thread is started or ended. */
TEST(autoscale, a_group_in_balance_is_left_alone)
{
    struct gate gate = {0};
    struct scaled scaled;

    open_scaled(&scaled, 4, WEIR_AUTOSCALE_OPTIONS(BY_HAND, .patience = WEIR_OFF));
    keep_busy(&scaled, 0, &gate);
    pass(&scaled, 4, 1);
    assert_int_equal(count_active(&scaled), 2);
    assert_int_equal(atomic_load(&scaled.fixture.started), 1);
    pass(&scaled, 50, 1);
    assert_int_equal(count_active(&scaled), 2);
    assert_int_equal(atomic_load(&scaled.fixture.started), 1);
    gate_open(&gate);
    close_scaled(&scaled);
}

TEST(autoscale, never_more_are_active_than_asked_for)
{
    struct gate gate = {0};
    struct scaled scaled;

    open_scaled(&scaled, 4, WEIR_AUTOSCALE_OPTIONS(BY_HAND, .max_active = 2));
    assert_int_equal(count_active(&scaled), 2); /* from the beginning */
    assert_false(is_active(member(&scaled, 2)));
    keep_busy(&scaled, 0, &gate);
    keep_busy(&scaled, 1, &gate);
    pass(&scaled, 20, 2);
    assert_int_equal(count_active(&scaled), 2);
    gate_open(&gate);
    close_scaled(&scaled);
}

TEST(autoscale, resumes_as_many_at_once_as_are_busy_up_to_the_ramp)
{
    struct gate gate = {0};
    struct scaled scaled;

    open_scaled(&scaled, 8, WEIR_AUTOSCALE_OPTIONS(BY_HAND, .ramp_down = 8, .ramp_up = 3));
    pass(&scaled, 3, 0);
    assert_int_equal(count_active(&scaled), 1);
    for (size_t i = 0; i < 2; i++)
        keep_busy(&scaled, i, &gate);
    pass(&scaled, 3, 2);
    assert_int_equal(count_active(&scaled), 4); /* 2 more for 2 busy ones, though the ramp is 3 */
    for (size_t i = 2; i < 4; i++)
        keep_busy(&scaled, i, &gate);
    pass(&scaled, 2, 4);
    assert_int_equal(count_active(&scaled), 6); /* before the new ones have been busy for long */
    pass(&scaled, 1, 4);
    assert_int_equal(count_active(&scaled), 8); /* and now there are 4 of them */
    gate_open(&gate);
    close_scaled(&scaled);
}

TEST(autoscale, resumes_no_more_at_once_than_the_ramp)
{
    struct gate gate = {0};
    struct scaled scaled;

    open_scaled(&scaled, 6, WEIR_AUTOSCALE_OPTIONS(BY_HAND, .ramp_down = 8, .patience = WEIR_OFF));
    pass(&scaled, 1, 0);
    assert_int_equal(count_active(&scaled), 1);
    for (size_t i = 0; i < 3; i++)
        keep_busy(&scaled, i, &gate); /* which brings them back */
    for (int active = 4; active <= 6; active++) {
        pass(&scaled, 1, 3);
        assert_int_equal(count_active(&scaled), active);
    }
    gate_open(&gate);
    close_scaled(&scaled);
}

TEST(autoscale, retries_when_a_thread_cannot_be_started)
{
    struct gate gate = {0};
    struct scaled scaled;

    log_capture_start();
    open_scaled(&scaled, 2, WEIR_AUTOSCALE_OPTIONS(BY_HAND, .patience = WEIR_OFF));
    pass(&scaled, 1, 0);
    keep_busy(&scaled, 0, &gate);
    atomic_store(&scaled.fixture.answer, -EAGAIN);
    pass(&scaled, 2, 1);
    assert_int_equal(count_active(&scaled), 1);
    assert_int_equal(log_capture_count(WEIR_LOG_ERROR), 2);
    atomic_store(&scaled.fixture.answer, 0);
    pass(&scaled, 1, 1);
    assert_int_equal(count_active(&scaled), 2);
    gate_open(&gate);
    close_scaled(&scaled);
}

static int count_rejection(weir_executor *executor, weir_task_fn *fn, void *arg, int reason,
                           void *user_data)
{
    (void)executor;
    (void)fn;
    (void)arg;
    call_counter_add(user_data);
    return reason;
}

/* The task that resumes a member does not go through the rejection policy. */
TEST(autoscale, does_not_change_a_group_that_shuts_down)
{
    struct call_counter rejected = {0};
    struct gate gate = {0};
    struct scaled scaled;

    thread_factory_open(&scaled.fixture);
    assert_int_equal(weir_manual_clock_create(0, &scaled.clock), 0);
    assert_int_equal(
        plain_group_create(
            WEIR_GROUP_OPTIONS(.io = WEIR_IO_NONE, .threads = 3, .rejected = count_rejection,
                               .rejected_data = &rejected,
                               .clock = weir_manual_clock_clock(scaled.clock),
                               .thread_factory = &scaled.fixture.factory,
                               .autoscale = WEIR_AUTOSCALE_OPTIONS(BY_HAND, .patience = WEIR_OFF)),
            &scaled.group),
        0);
    keep_busy(&scaled, 0, &gate);
    pass(&scaled, 3, 1);
    assert_int_equal(weir_group_shutdown(scaled.group, 0, weir_seconds(3600)), 0);
    pass(&scaled, 3, 1);
    assert_int_equal(atomic_load(&scaled.fixture.started), 1);
    assert_int_equal(atomic_load(&rejected.calls), 0);
    gate_open(&gate);
    close_scaled(&scaled);
}

/* ---- thresholds ---- */

/* Lets a window pass in which the member is awake for `busy_ns`. */
static void pass_window_with(struct scaled *scaled, size_t i, int64_t busy_ns)
{
    struct gate gate = {0};

    keep_busy(scaled, i, &gate);
    advance(scaled, busy_ns);
    gate_open(&gate);
    await_idle_or_ended(member(scaled, i));
    advance(scaled, WINDOW_NS - busy_ns);
    step(scaled, 0);
}

TEST(autoscale, a_member_at_the_lower_threshold_is_not_idle)
{
    struct scaled scaled;

    open_scaled(&scaled, 2,
                WEIR_AUTOSCALE_OPTIONS(BY_HAND, .patience = WEIR_OFF, .scale_down = 0.5));
    pass_window_with(&scaled, 1, weir_ms(50));
    assert_true(is_active(member(&scaled, 1)));
    assert_false(is_active(member(&scaled, 0)));
    pass_window_with(&scaled, 1, weir_ms(49));
    assert_int_equal(count_active(&scaled), 1); /* the minimum */
    close_scaled(&scaled);
}

TEST(autoscale, a_member_below_the_lower_threshold_is_idle)
{
    struct gate gate = {0};
    struct scaled scaled;

    open_scaled(&scaled, 2,
                WEIR_AUTOSCALE_OPTIONS(BY_HAND, .patience = WEIR_OFF, .scale_down = 0.5));
    keep_busy(&scaled, 0, &gate); /* so that it is not suspended */
    gate_open(&gate);
    await_idle_or_ended(member(&scaled, 0));
    pass_window_with(&scaled, 1, weir_ms(49));
    assert_false(is_active(member(&scaled, 1)));
    close_scaled(&scaled);
}

TEST(autoscale, a_member_is_busy_above_the_upper_threshold_and_not_at_it)
{
    struct scaled scaled;

    open_scaled(&scaled, 2, WEIR_AUTOSCALE_OPTIONS(BY_HAND, .patience = WEIR_OFF, .scale_up = 0.5));
    pass(&scaled, 1, 0);
    assert_int_equal(count_active(&scaled), 1);
    pass_window_with(&scaled, 0, weir_ms(50));
    assert_int_equal(count_active(&scaled), 1);
    pass_window_with(&scaled, 0, weir_ms(51));
    assert_int_equal(count_active(&scaled), 2);
    close_scaled(&scaled);
}

TEST(autoscale, a_step_without_elapsed_time_changes_nothing)
{
    struct scaled scaled;

    open_scaled(&scaled, 2, WEIR_AUTOSCALE_OPTIONS(BY_HAND));
    for (int i = 0; i < 5; i++)
        step(&scaled, 0);
    assert_int_equal(count_active(&scaled), 2);
    pass(&scaled, 2, 0);
    for (int i = 0; i < 5; i++)
        step(&scaled, 0);
    assert_int_equal(count_active(&scaled), 2);
    pass(&scaled, 1, 0);
    assert_int_equal(count_active(&scaled), 1);
    close_scaled(&scaled);
}

TEST(autoscale, a_suspended_member_has_no_utilisation)
{
    struct scaled scaled;

    open_scaled(&scaled, 2, WEIR_AUTOSCALE_OPTIONS(BY_HAND, .patience = WEIR_OFF));
    pass_window_with(&scaled, 1, weir_ms(90));
    assert_true(weir_executor_utilisation(member(&scaled, 1)) > 0.0);
    pass(&scaled, 2, 0);
    assert_int_equal(weir_executor_state(member(&scaled, 1)), WEIR_EXECUTOR_SUSPENDED);
    assert_true(weir_executor_utilisation(member(&scaled, 1)) == 0.0);
    close_scaled(&scaled);
}

/* ---- choosing ---- */

TEST(autoscale, a_trickle_of_work_stays_on_the_one_active_member)
{
    struct call_counter counter = {0};
    struct scaled scaled;

    open_scaled(&scaled, 3, WEIR_AUTOSCALE_OPTIONS(BY_HAND));
    pass(&scaled, 10, 0);
    for (uint32_t i = 0; i < 20; i++) {
        assert_ptr_equal(weir_group_next(scaled.group), member(&scaled, 0));
        assert_int_equal(weir_group_execute(scaled.group, call_counter_task, &counter), 0);
        assert_true(call_counter_await(&counter, i + 1));
        await_idle_or_ended(member(&scaled, 0));
        pass(&scaled, 1, 0);
    }
    assert_int_equal(count_active(&scaled), 1);
    assert_int_equal(atomic_load(&scaled.fixture.started), 1);
    close_scaled(&scaled);
}

TEST(autoscale, work_goes_round_evenly_among_the_active_members)
{
    unsigned visits[5] = {0};
    struct scaled scaled;

    open_scaled(&scaled, 5, WEIR_AUTOSCALE_OPTIONS(BY_HAND));
    assert_int_equal(weir_executor_suspend(member(&scaled, 1)), 0);
    assert_int_equal(weir_executor_suspend(member(&scaled, 2)), 0);
    for (int i = 0; i < 300; i++) {
        const weir_executor *next = weir_group_next(scaled.group);

        for (size_t j = 0; j < 5; j++)
            visits[j] += next == member(&scaled, j);
    }
    assert_int_equal(visits[0], 100);
    assert_int_equal(visits[1] + visits[2], 0);
    assert_int_equal(visits[3], 100);
    assert_int_equal(visits[4], 100);
    close_scaled(&scaled);
}

/* The timer comes between the monitor's look at the member and its suspension. */
TEST(autoscale, a_member_that_gets_a_timer_while_suspending_is_active_again)
{
    struct call_counter timer = {0};
    struct gate gate = {0};
    struct scaled scaled;
    bool chosen = false;

    open_scaled(&scaled, 2, WEIR_AUTOSCALE_OPTIONS(BY_HAND, .patience = WEIR_OFF));
    keep_busy(&scaled, 1, &gate);
    assert_int_equal(
        weir_schedule(member(&scaled, 1), 10 * WINDOW_NS, call_counter_task, &timer, NULL), 0);
    assert_int_equal(weir_executor_suspend(member(&scaled, 1)), 0);
    assert_false(is_active(member(&scaled, 1)));
    gate_open(&gate);
    await_idle_or_ended(member(&scaled, 1));
    assert_int_equal(weir_executor_state(member(&scaled, 1)), WEIR_EXECUTOR_STARTED);
    for (int i = 0; i < 2; i++)
        chosen = chosen || weir_group_next(scaled.group) == member(&scaled, 1);
    assert_true(chosen);

    pass(&scaled, 3, 0);
    assert_true(is_active(member(&scaled, 1))); /* as one of the two: */
    assert_int_equal(count_active(&scaled), 1);
    assert_false(is_active(member(&scaled, 0)));
    advance(&scaled, 10 * WINDOW_NS);
    assert_true(call_counter_await(&timer, 1));
    close_scaled(&scaled);
}

TEST(autoscale, work_for_a_group_without_active_members_brings_one_back)
{
    struct call_counter counter = {0};
    struct scaled scaled;

    open_scaled(&scaled, 3, WEIR_AUTOSCALE_OPTIONS(BY_HAND));
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(weir_executor_suspend(member(&scaled, i)), 0);
    for (int i = 0; i < 6; i++)
        assert_int_equal(weir_group_execute(scaled.group, call_counter_task, &counter), 0);
    assert_true(call_counter_await(&counter, 6));
    assert_int_equal(count_active(&scaled), 1);
    close_scaled(&scaled);
}

/* ---- creation ---- */

TEST(autoscale, bad_options_are_refused)
{
    const weir_autoscale_options *wrong[] = {
        WEIR_AUTOSCALE_OPTIONS(.min_active = -1),
        WEIR_AUTOSCALE_OPTIONS(.min_active = 4),
        WEIR_AUTOSCALE_OPTIONS(.max_active = -1),
        WEIR_AUTOSCALE_OPTIONS(.max_active = 4),
        WEIR_AUTOSCALE_OPTIONS(.min_active = 3, .max_active = 2),
        WEIR_AUTOSCALE_OPTIONS(.window_ns = -1),
        WEIR_AUTOSCALE_OPTIONS(.scale_down = -0.1),
        WEIR_AUTOSCALE_OPTIONS(.scale_down = 0.8),
        WEIR_AUTOSCALE_OPTIONS(.scale_up = 0.2),
        WEIR_AUTOSCALE_OPTIONS(.scale_up = 1.1),
        WEIR_AUTOSCALE_OPTIONS(.scale_down = NAN),
        WEIR_AUTOSCALE_OPTIONS(.scale_up = NAN),
        WEIR_AUTOSCALE_OPTIONS(.ramp_down = -1),
        WEIR_AUTOSCALE_OPTIONS(.ramp_up = -1),
        WEIR_AUTOSCALE_OPTIONS(.patience = -2),
        &(const weir_autoscale_options){.size = 0},
    };

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        weir_group *group = NULL;

        assert_int_equal(plain_group_create(WEIR_GROUP_OPTIONS(.io = WEIR_IO_NONE, .threads = 3,
                                                               .autoscale = wrong[i]),
                                            &group),
                         -EINVAL);
        assert_null(group);
    }
    assert_int_equal(test_memory_live(), 0);
}

TEST(autoscale, options_made_step_by_step_are_the_defaults)
{
    weir_autoscale_options options;
    struct scaled scaled;

    memset(&options, 0xff, sizeof(options));
    options = *WEIR_AUTOSCALE_OPTIONS();
    options.window_ns = weir_seconds(1000000);
    open_scaled(&scaled, 2, &options);
    pass(&scaled, 3, 0);
    assert_int_equal(count_active(&scaled), 1);
    close_scaled(&scaled);
}

/* The thread of the global executor allocates too: start it before counting. */
TEST(autoscale, without_memory_none_is_made)
{
    struct call_counter counter = {0};
    weir_promise *pending;
    weir_group *group = NULL;
    int err;

    assert_int_equal(weir_schedule(weir_executor_global(), weir_seconds(3600), call_counter_task,
                                   &counter, &pending),
                     0);
    assert_int_equal(weir_execute(weir_executor_global(), call_counter_task, &counter), 0);
    assert_true(call_counter_await(&counter, 1));
    for (unsigned n = 1;; n++) {
        test_memory_fail_at(n);
        err = plain_group_create(WEIR_GROUP_OPTIONS(.io = WEIR_IO_NONE, .threads = 2,
                                                    .autoscale = WEIR_AUTOSCALE_OPTIONS(BY_HAND)),
                                 &group);
        if (!test_memory_failed())
            break;
        assert_int_equal(err, -ENOMEM);
        assert_null(group);
    }
    test_memory_fail_at(0);
    assert_int_equal(err, 0);
    weir_group_release(group);
    assert_int_equal(weir_promise_cancel(pending), 0);
    assert_int_equal(weir_execute(weir_executor_global(), call_counter_task, &counter), 0);
    assert_true(call_counter_await(&counter, 3));
    weir_promise_release(pending);
}

/* ---- with the monitor running ---- */

static weir_group *make_monitored(int64_t window_ns)
{
    weir_group *group = NULL;

    assert_int_equal(
        plain_group_create(
            WEIR_GROUP_OPTIONS(.io = WEIR_IO_NONE, .threads = 3,
                               .autoscale = WEIR_AUTOSCALE_OPTIONS(.window_ns = window_ns,
                                                                   .patience = WEIR_OFF)),
            &group),
        0);
    return group;
}

static bool await_active(weir_group *group, int count)
{
    int64_t deadline_ns = weir__monotonic_now() + TEST_TIMEOUT_NS;
    struct scaled scaled = {.group = group};

    while (count_active(&scaled) != count && weir__monotonic_now() < deadline_ns)
        weir__thread_yield();
    return count_active(&scaled) == count;
}

TEST(autoscale, a_group_shrinks_and_grows_by_itself)
{
    struct gate gate = {0};
    weir_group *group = make_monitored(weir_ms(2));

    assert_true(await_active(group, 1));
    assert_int_equal(weir_group_execute(group, gate_task, &gate), 0);
    assert_true(await_active(group, 2));
    gate_open(&gate);
    assert_true(await_active(group, 1));
    weir_group_release(group);
}

struct submitter {
    weir__thread thread;
    weir_group *group;
    struct call_counter *counter;
};

static void submit_often(void *arg)
{
    struct submitter *submitter = arg;

    for (int i = 0; i < 300; i++)
        IGNORE_RESULT(weir_group_execute(submitter->group, call_counter_task, submitter->counter));
    weir_group_release(submitter->group);
}

/* Windows of a few microseconds: the monitor suspends and resumes all the time. */
TEST(autoscale, a_group_is_used_and_released_while_the_monitor_works)
{
    for (int round = 0; round < 20; round++) {
        struct submitter submitters[2];
        struct call_counter counter = {0};
        weir_group *group = make_monitored(weir_us(5));

        for (int i = 0; i < 2; i++) {
            submitters[i].group = weir_group_retain(group);
            submitters[i].counter = &counter;
            assert_int_equal(weir__thread_start("submitter", submit_often, &submitters[i],
                                                &submitters[i].thread),
                             0);
        }
        weir_group_release(group);
        for (int i = 0; i < 2; i++)
            weir__thread_join(&submitters[i].thread);
        assert_int_equal(atomic_load(&counter.run), 600);
    }
}

static void on_release(void *arg, int status)
{
    (void)status;
    weir_group_release(arg);
}

/* The monitor's own thread. */
TEST(autoscale, a_group_is_released_on_the_global_executor)
{
    struct call_counter done = {0};

    for (uint32_t i = 0; i < 20; i++) {
        weir_group *group = make_monitored(weir_us(5));

        assert_int_equal(weir_execute(weir_executor_global(), on_release, group), 0);
        assert_int_equal(weir_execute(weir_executor_global(), call_counter_task, &done), 0);
        assert_true(call_counter_await(&done, i + 1));
    }
}
