/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stats of an executor: exact on a stepper, and readable from any thread.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <weir/error.h>
#include <weir/manual.h>
#include <weir/metric.h>
#include <weir/timer.h>

#include "executor/executor.h"
#include "os/thread.h"
#include "support/executor/gate.h"
#include "support/executor/log_capture.h"
#include "support/executor/run_on_thread.h"
#include "support/executor/single_executor.h"
#include "support/executor/stepper.h"
#include "support/memory.h"
#include "support/test.h"

#define BATCH 64

static weir_executor_stats read_stats(const weir_executor *executor)
{
    weir_executor_stats stats;

    memset(&stats, 0xa5, sizeof(stats));
    weir_executor_read_stats(executor, &stats);
    return stats;
}

static void do_nothing(void *arg, int status)
{
    (void)arg;
    (void)status;
}

static void execute(weir_executor *executor, int count)
{
    for (int i = 0; i < count; i++)
        assert_int_equal(weir_execute(executor, do_nothing, NULL), 0);
}

/* A task that takes a given time. */
struct timed_work {
    struct stepper *stepper;
    int64_t takes_ns;
};

static void do_timed_work(void *arg, int status)
{
    struct timed_work *timed_work = arg;

    if (status == 0)
        assert_int_equal(
            weir_manual_clock_advance(timed_work->stepper->clock, timed_work->takes_ns), 0);
}

/* Works for a while, then sleeps for a while. */
static void work_and_sleep(struct stepper *stepper, int64_t work_ns, int64_t rest_ns)
{
    struct timed_work timed_work = {stepper, work_ns};

    assert_int_equal(weir_execute(stepper->executor, do_timed_work, &timed_work), 0);
    stepper_run(stepper);
    assert_int_equal(weir_manual_clock_advance(stepper->clock, rest_ns), 0);
}

TEST(executor_stats, begin_with_nothing)
{
    struct single_executor single = single_executor_open(NULL);
    weir_executor_stats stats = read_stats(single.executor), nothing = {0};

    nothing.state = WEIR_EXECUTOR_NOT_STARTED;
    assert_memory_equal(&stats, &nothing, sizeof(stats));
    assert_int_equal(weir_executor_pending(single.executor), 0);
    assert_true(weir_executor_utilisation(single.executor) == 0.0);
    single_executor_close(&single);
}

TEST(executor_stats, include_the_state)
{
    struct single_executor single = single_executor_open(NULL);
    weir_executor *executor = weir_executor_retain(single.executor);

    execute(executor, 1);
    assert_int_equal(read_stats(executor).state, WEIR_EXECUTOR_STARTED);
    single_executor_close(&single);
    assert_int_equal(read_stats(executor).state, WEIR_EXECUTOR_TERMINATED);
    weir_executor_release(executor);
}

TEST(executor_stats, count_what_is_pending)
{
    struct stepper stepper = stepper_open();

    for (int count = 1; count <= 3 * BATCH; count++) {
        execute(stepper.executor, 1);
        assert_int_equal(weir_executor_pending(stepper.executor), count);
    }
    assert_int_equal(read_stats(stepper.executor).pending, 3 * BATCH);
    stepper_run(&stepper);
    assert_int_equal(weir_executor_pending(stepper.executor), 0);
    stepper_close(&stepper);
}

struct inside {
    weir_executor *executor;
    uint64_t pending[2];
};

static void record_inside(void *arg, int status)
{
    struct inside *inside = arg;

    assert_int_equal(status, 0);
    inside->pending[0] = weir_executor_pending(inside->executor);
    execute(inside->executor, 2);
    inside->pending[1] = weir_executor_pending(inside->executor);
}

TEST(executor_stats, count_what_is_pending_as_a_task_sees_it)
{
    struct stepper stepper = stepper_open();
    struct inside inside = {.executor = stepper.executor};

    assert_int_equal(weir_execute(stepper.executor, record_inside, &inside), 0);
    execute(stepper.executor, 5);
    stepper_run(&stepper);
    assert_int_equal(inside.pending[0], 5);
    assert_int_equal(inside.pending[1], 7);
    stepper_close(&stepper);
}

TEST(executor_stats, count_tail_tasks_as_tasks)
{
    struct stepper stepper = stepper_open();

    assert_int_equal(weir_execute_after_turn(stepper.executor, do_nothing, NULL), 0);
    assert_int_equal(weir_executor_pending(stepper.executor), 1);
    stepper_run(&stepper);
    assert_int_equal(weir_executor_pending(stepper.executor), 0);
    assert_int_equal(read_stats(stepper.executor).tasks_run, 1);
    stepper_close(&stepper);
}

static void on_letter_timer(weir_timer *timer)
{
    (void)timer;
}

TEST(executor_stats, count_what_was_run)
{
    struct stepper stepper = stepper_open();
    weir_timer timer = {.fn = NULL};

    execute(stepper.executor, 5 * BATCH);
    stepper_run(&stepper);
    assert_int_equal(read_stats(stepper.executor).tasks_run, 5 * BATCH);

    assert_int_equal(weir_timer_start(stepper.executor, &timer, 1, on_letter_timer), 0);
    assert_int_equal(weir_schedule(stepper.executor, 1, do_nothing, NULL, NULL), 0);
    stepper_advance(&stepper, 1);
    assert_int_equal(read_stats(stepper.executor).tasks_run, 5 * BATCH + 2);
    assert_int_equal(read_stats(stepper.executor).tasks_cancelled, 0);
    stepper_close(&stepper);
}

TEST(executor_stats, count_what_was_cancelled_apart_from_what_was_run)
{
    struct stepper stepper = stepper_open();
    weir_executor *executor = stepper.executor;
    weir_promise *once, *repeated;
    weir_timer timer = {.fn = NULL};

    log_capture_start();
    assert_int_equal(weir_schedule(executor, 10, do_nothing, NULL, &once), 0);
    assert_int_equal(weir_schedule_at_fixed_rate(executor, 0, 10, do_nothing, NULL, &repeated), 0);
    execute(executor, 3);
    stepper_run(&stepper);
    assert_int_equal(weir_promise_cancel(once), 0);
    assert_int_equal(weir_promise_cancel(repeated), 0);
    assert_int_equal(read_stats(executor).tasks_run, 4);
    assert_int_equal(read_stats(executor).tasks_cancelled, 2);

    assert_int_equal(weir_schedule(executor, 10, do_nothing, NULL, NULL), 0);
    assert_int_equal(weir_timer_start(executor, &timer, 10, on_letter_timer), 0);
    execute(executor, BATCH);
    assert_int_equal(weir_executor_shutdown(executor, 0, 0), 0);
    (void)weir_manual_run_once(executor, 0, -1);
    assert_int_equal(read_stats(executor).tasks_run, 4);
    assert_int_equal(read_stats(executor).tasks_cancelled, 2 + 1 + BATCH);
    assert_int_equal(read_stats(executor).pending, 0);
    assert_int_equal(read_stats(executor).timers, 0);
    weir_promise_release(once);
    weir_promise_release(repeated);
    stepper_close(&stepper);
}

static void cancel_promise_of(void *arg)
{
    (void)weir_promise_cancel(arg);
}

TEST(executor_stats, count_a_task_that_was_cancelled_when_it_was_due)
{
    struct stepper stepper = stepper_open();
    weir_promise *once, *repeated;

    assert_int_equal(weir_schedule(stepper.executor, 10, do_nothing, NULL, &once), 0);
    assert_int_equal(
        weir_schedule_at_fixed_rate(stepper.executor, 10, 10, do_nothing, NULL, &repeated), 0);
    assert_int_equal(weir_manual_clock_advance(stepper.clock, 10), 0);
    run_on_other_thread(cancel_promise_of, once);
    run_on_other_thread(cancel_promise_of, repeated);
    stepper_run(&stepper); /* and the two tasks that stop the timers */
    assert_int_equal(read_stats(stepper.executor).tasks_run, 2);
    assert_int_equal(read_stats(stepper.executor).tasks_cancelled, 2);
    weir_promise_release(once);
    weir_promise_release(repeated);
    stepper_close(&stepper);
}

TEST(executor_stats, count_the_timers_that_run)
{
    struct stepper stepper = stepper_open();
    weir_timer timers[3] = {{.fn = NULL}};

    for (int i = 0; i < 3; i++)
        assert_int_equal(weir_timer_start(stepper.executor, &timers[i], 10 + i, on_letter_timer),
                         0);
    stepper_run(&stepper);
    assert_int_equal(read_stats(stepper.executor).timers, 3);
    stepper_advance(&stepper, 10);
    assert_int_equal(read_stats(stepper.executor).timers, 2);
    assert_int_equal(weir_timer_stop(&timers[1]), 0);
    stepper_run(&stepper);
    assert_int_equal(read_stats(stepper.executor).timers, 1);
    stepper_close(&stepper);
}

TEST(executor_stats, count_turns)
{
    struct stepper stepper = stepper_open();

    for (int i = 1; i <= 3; i++) {
        assert_int_equal(weir_manual_run_once(stepper.executor, 0, 0), 0);
        assert_int_equal(read_stats(stepper.executor).turns, i);
    }
    stepper_close(&stepper);
}

/* ---- samples ---- */

static void execute_timed(struct timed_work *timed_work, int count)
{
    for (int i = 0; i < count; i++)
        assert_int_equal(weir_execute(timed_work->stepper->executor, do_timed_work, timed_work), 0);
}

static void assert_one_wait(const weir_executor *executor, int64_t took_ns)
{
    weir_histogram_summary latency = read_stats(executor).queue_latency_ns;

    assert_int_equal(latency.count, 1);
    assert_int_equal(latency.min, took_ns);
}

/* A task that is submitted a millisecond after the start runs after those that were queued. */
TEST(executor_stats, sample_how_long_a_task_would_wait)
{
    struct stepper stepper = stepper_open();
    struct timed_work timed_work = {&stepper, weir_ms(2)};

    execute_timed(&timed_work, 3 * BATCH);
    stepper_run(&stepper);
    assert_one_wait(stepper.executor, weir_ms(2) * 3 * BATCH - weir_ms(1));
    stepper_close(&stepper);
}

TEST(executor_stats, sample_no_wait_more_often_than_each_millisecond)
{
    struct stepper stepper = stepper_open();
    struct timed_work timed_work = {&stepper, weir_us(10)};

    execute_timed(&timed_work, 10 * BATCH); /* 6.4 ms, each batch is shorter than one */
    stepper_run(&stepper);
    assert_one_wait(stepper.executor, 10 * BATCH * weir_us(10) - weir_ms(1));

    execute_timed(&timed_work, BATCH);
    stepper_run(&stepper);
    assert_one_wait(stepper.executor, 10 * BATCH * weir_us(10) - weir_ms(1));
    stepper_close(&stepper);
}

struct blocking_timer {
    weir_timer timer;
    struct stepper stepper;
};

static void block_a_while(weir_timer *timer)
{
    struct blocking_timer *blocking = WEIR_CONTAINER_OF(timer, struct blocking_timer, timer);

    assert_int_equal(weir_manual_clock_advance(blocking->stepper.clock, weir_ms(7)), 0);
}

TEST(executor_stats, sample_what_a_task_waits_for_timers_and_no_sleep)
{
    struct blocking_timer blocking = {.stepper = stepper_open()};
    struct stepper *stepper = &blocking.stepper;

    assert_int_equal(
        weir_timer_start(stepper->executor, &blocking.timer, weir_ms(50), block_a_while), 0);
    stepper_advance(stepper, weir_ms(50));
    assert_one_wait(stepper->executor, weir_ms(7));
    stepper_close(stepper);
}

/* Wakes a manual executor of the system's clock, and runs it two milliseconds later. */
static void wake_and_run_late(weir_executor *executor)
{
    int64_t woken_ns;

    execute(executor, 1);
    woken_ns = weir__monotonic_now();
    while (weir__monotonic_now() < woken_ns + weir_ms(2))
        weir__thread_yield();
    assert_int_equal(weir_manual_run_once(executor, 0, 0), 1);
}

/* Every eighth wake-up is timed. The wait begins with it, not with the sleep. */
TEST(executor_stats, sample_how_long_a_thread_takes_to_wake_up)
{
    weir_histogram_summary latency;
    weir_executor *executor;
    int64_t began_ns = weir__monotonic_now();

    assert_int_equal(weir_manual_create(NULL, &executor), 0);
    for (uint64_t wakeups = 0; wakeups < 16; wakeups++) {
        wake_and_run_late(executor);
        latency = read_stats(executor).queue_latency_ns;
        assert_true(latency.count >= wakeups / 8 + 1); /* more if this thread was preempted */
        assert_true(latency.max >= weir_ms(2));
    }
    assert_true(latency.sum <= weir__monotonic_now() - began_ns);
    weir_executor_release(executor);
}

TEST(executor_stats, sample_how_long_tasks_run)
{
    struct stepper stepper = stepper_open();
    struct timed_work timed_work = {&stepper, 700};
    weir_histogram_summary run_time;

    for (int i = 0; i < 3; i++) {
        assert_int_equal(weir_execute(stepper.executor, do_timed_work, &timed_work), 0);
        stepper_run(&stepper);
    }
    run_time = read_stats(stepper.executor).run_time_ns;
    assert_int_equal(run_time.count, 3);
    assert_int_equal(run_time.min, 700);
    assert_int_equal(run_time.max, 700);
    stepper_close(&stepper);
}

TEST(executor_stats, sample_about_one_task_in_64)
{
    struct stepper stepper = stepper_open();

    execute(stepper.executor, 1024);
    stepper_run(&stepper);
    assert_in_range(read_stats(stepper.executor).run_time_ns.count, 1024 / 64, 1024 / 32);
    stepper_close(&stepper);
}

/* ---- time awake ---- */

TEST(executor_stats, measure_the_time_awake)
{
    struct stepper stepper = stepper_open();

    work_and_sleep(&stepper, weir_ms(3), weir_ms(50));
    assert_int_equal(read_stats(stepper.executor).active_ns, weir_ms(3));
    work_and_sleep(&stepper, weir_ms(4), 0);
    assert_int_equal(read_stats(stepper.executor).active_ns, weir_ms(7));
    stepper_close(&stepper);
}

static void read_active(void *arg, int status)
{
    struct inside *inside = arg;

    assert_int_equal(status, 0);
    inside->pending[0] = (uint64_t)read_stats(inside->executor).active_ns;
}

TEST(executor_stats, measure_the_time_awake_while_it_passes)
{
    struct stepper stepper = stepper_open();
    struct timed_work timed_work = {&stepper, 700};
    struct inside inside = {.executor = stepper.executor};

    assert_int_equal(weir_execute(stepper.executor, do_timed_work, &timed_work), 0);
    assert_int_equal(weir_execute(stepper.executor, read_active, &inside), 0);
    stepper_run(&stepper);
    assert_int_equal(inside.pending[0], 700);
    stepper_close(&stepper);
}

static void assert_utilisation(const struct stepper *stepper, double low, double high)
{
    double utilisation = weir_executor_utilisation(stepper->executor);

    if (utilisation < low || utilisation > high)
        fail_msg("utilisation %f is not between %f and %f", utilisation, low, high);
    assert_true(utilisation == read_stats(stepper->executor).utilisation);
}

TEST(executor_stats, measure_the_utilisation_of_the_last_second_or_so)
{
    struct stepper stepper = stepper_open();

    for (int i = 0; i < 60; i++)
        work_and_sleep(&stepper, weir_ms(25), weir_ms(75));
    assert_utilisation(&stepper, 0.24, 0.26);
    for (int i = 0; i < 40; i++)
        work_and_sleep(&stepper, weir_ms(90), weir_ms(10));
    assert_utilisation(&stepper, 0.89, 0.91);
    for (int i = 0; i < 40; i++)
        work_and_sleep(&stepper, weir_ms(100), 0);
    assert_utilisation(&stepper, 1.0, 1.0);
    for (int i = 0; i < 4; i++)
        work_and_sleep(&stepper, 0, weir_seconds(1));
    assert_utilisation(&stepper, 0.0, 0.0);
    stepper_close(&stepper);
}

TEST(executor_stats, measure_the_utilisation_from_the_start)
{
    struct stepper stepper = stepper_open();

    assert_int_equal(weir_manual_clock_advance(stepper.clock, weir_seconds(3600)), 0);
    for (int i = 0; i < 10; i++)
        work_and_sleep(&stepper, weir_ms(100), 0);
    assert_utilisation(&stepper, 0.5, 1.0);
    for (int i = 0; i < 20; i++)
        work_and_sleep(&stepper, weir_ms(100), 0);
    assert_utilisation(&stepper, 0.75, 1.0);
    stepper_close(&stepper);
}

TEST(executor_stats, ignore_an_old_sleep_in_the_utilisation)
{
    struct stepper stepper = stepper_open();

    for (int i = 0; i < 30; i++)
        work_and_sleep(&stepper, weir_ms(100), 0);
    work_and_sleep(&stepper, 0, weir_seconds(3600));
    assert_utilisation(&stepper, 0.0, 0.01);
    for (int i = 0; i < 10; i++)
        work_and_sleep(&stepper, weir_ms(100), 0);
    assert_utilisation(&stepper, 0.5, 1.0);
    stepper_close(&stepper);
}

TEST(executor_stats, have_no_utilisation_while_suspended)
{
    struct single_executor single = single_executor_open(NULL);

    execute(single.executor, 1000);
    assert_int_equal(weir_executor_suspend(single.executor), 0);
    assert_true(single_executor_await_state(&single, WEIR_EXECUTOR_SUSPENDED));
    assert_true(weir_executor_utilisation(single.executor) == 0.0);
    assert_true(single_executor_stats(&single).utilisation == 0.0);
    assert_true(single_executor_stats(&single).active_ns > 0);
    single_executor_close(&single);
}

/* ---- wake-ups ---- */

TEST(executor_stats, count_wake_ups_made_and_saved)
{
    weir_manual_clock *clock;
    struct gate gate = {0};
    struct call_counter counter = {0};
    weir_executor_stats before, after;
    struct single_executor single;

    assert_int_equal(weir_manual_clock_create(1, &clock), 0); /* so that nothing else wakes it */
    single = single_executor_open(WEIR_GROUP_OPTIONS(.clock = weir_manual_clock_clock(clock)));
    assert_int_equal(weir_execute(single.executor, call_counter_task, &counter), 0); /* starts it */
    assert_true(call_counter_await(&counter, 1));
    assert_true(single_executor_await_sleep(&single, WEIR_NEVER));
    before = single_executor_stats(&single);
    assert_int_equal(before.wakeups_made + before.wakeups_saved, 1);

    assert_int_equal(weir_execute(single.executor, gate_task, &gate), 0); /* wakes it */
    assert_true(gate_await_arrivals(&gate, 1));
    for (int i = 0; i < 2 * BATCH; i++) /* it is awake */
        assert_int_equal(weir_execute(single.executor, call_counter_task, &counter), 0);
    gate_open(&gate);
    assert_true(call_counter_await(&counter, 1 + 2 * BATCH));
    assert_true(single_executor_await_sleep(&single, WEIR_NEVER));
    after = single_executor_stats(&single);
    assert_int_equal(after.wakeups_made - before.wakeups_made, 1);
    assert_int_equal(after.wakeups_saved - before.wakeups_saved, 2 * BATCH);
    assert_int_equal(after.tasks_run - before.tasks_run, 1 + 2 * BATCH);

    assert_int_equal(weir_execute_lazy(single.executor, call_counter_task, &counter), 0);
    assert_int_equal(single_executor_stats(&single).wakeups_made, after.wakeups_made);
    assert_int_equal(single_executor_stats(&single).pending, 1);
    single_executor_close(&single);
    weir_manual_clock_release(clock);
}

/* ---- the metric registry ---- */

static weir_metric_value read_metric(const weir_executor *executor, const char *figure)
{
    weir_metric_value value;
    char name[WEIR_METRIC_NAME_SIZE];

    (void)snprintf(name, sizeof(name), "executor.%s{executor=\"%s#%llu\"}", figure,
                   weir_executor_name(executor), (unsigned long long)executor->number);
    assert_int_equal(weir_metric_read(name, &value), 0);
    return value;
}

TEST(executor_stats, are_in_the_metric_registry)
{
    struct stepper stepper = stepper_open();
    weir_executor *executor = stepper.executor;

    for (int i = 0; i < 30; i++)
        work_and_sleep(&stepper, weir_ms(50), weir_ms(50));
    execute(executor, 2 * BATCH);
    assert_int_equal(read_metric(executor, "pending").value, 2 * BATCH);
    assert_int_equal(read_metric(executor, "pending").kind, WEIR_METRIC_GAUGE);
    stepper_run(&stepper);
    assert_int_equal(read_metric(executor, "tasks_run").value, 30 + 2 * BATCH);
    assert_int_equal(read_metric(executor, "tasks_run").kind, WEIR_METRIC_COUNTER);
    assert_int_equal(read_metric(executor, "wakeups").value, read_stats(executor).wakeups_made);
    assert_int_equal(read_metric(executor, "wakeups").kind, WEIR_METRIC_COUNTER);
    assert_in_range(read_metric(executor, "utilisation_permille").value, 480, 520);
    assert_int_equal(read_metric(executor, "utilisation_permille").kind, WEIR_METRIC_GAUGE);
    assert_int_equal(read_metric(executor, "queue_latency_ns").kind, WEIR_METRIC_HISTOGRAM);
    assert_int_equal(read_metric(executor, "queue_latency_ns").value,
                     read_stats(executor).queue_latency_ns.count);
    assert_int_equal(read_metric(executor, "run_time_ns").summary.max, weir_ms(50));
    stepper_close(&stepper);
}

static void count_metric(const weir_metric_value *value, void *user_data)
{
    if (strncmp(value->name, "executor.", strlen("executor.")) == 0)
        ++*(size_t *)user_data;
}

static size_t count_metrics(void)
{
    size_t count = 0;

    weir_metrics_foreach(count_metric, &count);
    return count;
}

TEST(executor_stats, leave_the_metric_registry_with_their_executor)
{
    size_t before = count_metrics();
    struct stepper first = stepper_open(), second = stepper_open(); /* of the same name */

    assert_int_equal(count_metrics(), before + (size_t)2 * WEIR__METRIC_COUNT);
    stepper_close(&first);
    assert_int_equal(count_metrics(), before + WEIR__METRIC_COUNT);
    stepper_close(&second);
    assert_int_equal(count_metrics(), before);
}

TEST(executor_stats, that_find_no_memory_leave_nothing_behind)
{
    weir_executor *executor = NULL;
    size_t before = count_metrics();
    unsigned failures = 0;
    int err;

    for (unsigned n = 1;; n++) {
        test_memory_fail_at(n);
        err = weir_manual_create(NULL, &executor);
        if (!test_memory_failed())
            break;
        failures++;
        assert_int_equal(err, -ENOMEM);
        assert_null(executor);
        assert_int_equal(count_metrics(), before);
    }
    test_memory_fail_at(0);
    assert_int_equal(err, 0);
    assert_true(failures > 1);
    weir_executor_release(executor);
    assert_int_equal(count_metrics(), before);
}

TEST(executor_stats, whose_name_is_taken_leave_nothing_behind)
{
    struct stepper stepper = stepper_open();
    weir_executor *executor = NULL;
    weir_metric *metric;
    char name[WEIR_METRIC_NAME_SIZE];
    size_t before;

    (void)snprintf(name, sizeof(name), "executor.run_time_ns{executor=\"manual#%llu\"}",
                   (unsigned long long)stepper.executor->number + 1); /* the next one's */
    assert_int_equal(weir_metric_create(WEIR_METRIC_GAUGE, name, &metric), 0);
    before = count_metrics();
    assert_int_equal(weir_manual_create(NULL, &executor), -EEXIST);
    assert_null(executor);
    assert_int_equal(count_metrics(), before);
    weir_metric_release(metric);
    stepper_close(&stepper);
}

/* ---- from any thread ---- */

struct reader {
    weir_executor *executor;
    uint64_t max_pending;
    _Atomic bool over;
    _Atomic unsigned reads;
    unsigned faults;
};

static void visit_metric(const weir_metric_value *value, void *user_data)
{
    struct reader *reader = user_data;

    if (value->kind != WEIR_METRIC_HISTOGRAM && value->value < 0)
        reader->faults++;
}

static bool is_sane(const struct reader *reader, const weir_executor_stats *stats,
                    const weir_executor_stats *before)
{
    return stats->pending <= reader->max_pending && stats->turns >= before->turns &&
           stats->wakeups_made >= before->wakeups_made && stats->active_ns >= 0 &&
           stats->utilisation >= 0.0 && stats->utilisation <= 1.0 &&
           stats->run_time_ns.count >= before->run_time_ns.count &&
           stats->queue_latency_ns.p50 <= stats->queue_latency_ns.p999;
}

static void read_everything(void *arg)
{
    struct reader *reader = arg;
    weir_executor_stats before = {0}, stats;

    while (!atomic_load(&reader->over)) {
        weir_executor_read_stats(reader->executor, &stats);
        if (!is_sane(reader, &stats, &before))
            reader->faults++;
        weir_metrics_foreach(visit_metric, reader);
        before = stats;
        atomic_fetch_add(&reader->reads, 1);
        weir__thread_yield();
    }
}

static void schedule_nothing(void *arg)
{
    weir_executor *executor = arg;
    weir_promise *promise;

    for (int i = 0; i < 50; i++)
        if (weir_schedule(executor, weir_us(i), do_nothing, NULL, &promise) == 0) {
            (void)weir_promise_cancel(promise);
            weir_promise_release(promise);
        }
}

/* Tasks, tasks that start and stop timers, notifications. */
#define BURST 300
#define BURST_PENDING_MAX (BURST + 300)

static void burst(weir_executor *executor)
{
    execute(executor, BURST);
    run_on_executor(executor, schedule_nothing, executor);
    schedule_nothing(executor);
    run_on_executor(executor, schedule_nothing, executor); /* nothing is left for the next one */
}

TEST(executor_stats, may_be_read_by_any_thread_at_any_time)
{
    struct single_executor single = single_executor_open(NULL);
    struct reader readers[2];
    weir__thread threads[2];

    for (int i = 0; i < 2; i++) {
        readers[i] = (struct reader){.executor = single.executor, .max_pending = BURST_PENDING_MAX};
        assert_int_equal(weir__thread_start("reader", read_everything, &readers[i], &threads[i]),
                         0);
    }
    do {
        burst(single.executor);
    } while (atomic_load(&readers[0].reads) < 200 || atomic_load(&readers[1].reads) < 200);
    for (int i = 0; i < 2; i++) {
        atomic_store(&readers[i].over, true);
        weir__thread_join(&threads[i]);
        assert_int_equal(readers[i].faults, 0);
    }
    single_executor_close(&single);
}

/* ---- the number of pending tasks is never too high ---- */

#define READERS 3
#define ROUND_TRIPS 12000
#define ROUND_TRIP_PENDING_MAX 4

static void watch_pending(void *arg)
{
    struct reader *reader = arg;

    while (!atomic_load_explicit(&reader->over, memory_order_relaxed))
        if (weir_executor_pending(reader->executor) > reader->max_pending)
            reader->faults++;
}

static void do_nothing_on_thread(void *arg)
{
    (void)arg;
}

/* The readers do nothing else, so most of their preemptions fall into the middle of a read. */
TEST(executor_stats, of_pending_tasks_are_not_too_high_after_a_reader_was_preempted)
{
    struct single_executor single = single_executor_open(NULL);
    struct reader readers[READERS];
    weir__thread threads[READERS];

    for (int i = 0; i < READERS; i++) {
        readers[i] =
            (struct reader){.executor = single.executor, .max_pending = ROUND_TRIP_PENDING_MAX};
        assert_int_equal(weir__thread_start("reader", watch_pending, &readers[i], &threads[i]), 0);
    }
    for (int i = 0; i < ROUND_TRIPS; i++)
        run_on_executor(single.executor, do_nothing_on_thread, NULL);
    for (int i = 0; i < READERS; i++) {
        atomic_store(&readers[i].over, true);
        weir__thread_join(&threads[i]);
        assert_int_equal(readers[i].faults, 0);
    }
    single_executor_close(&single);
}
