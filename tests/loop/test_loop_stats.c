/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics of a loop. */
#include <errno.h>
#include <stdio.h>

#include <weir/error.h>
#include <weir/loop.h>
#include <weir/metric.h>
#include <weir/timer.h>

#include "support/executor/call_counter.h"
#include "support/executor/run_on_thread.h"
#include "support/loop/fd_event.h"
#include "support/loop/host.h"
#include "support/test.h"

static weir_loop_stats stats_of(const weir_executor *loop)
{
    weir_loop_stats stats;

    assert_int_equal(weir_loop_read_stats(loop, &stats), 0);
    return stats;
}

TEST(loop_stats, are_of_loops_only)
{
    weir_loop_stats stats;

    assert_int_equal(weir_loop_read_stats(weir_executor_global(), &stats), -EINVAL);
    assert_int_equal(weir_loop_read_stats(NULL, &stats), -EINVAL);
}

TEST_EACH_LOOP(loop_stats, begin_at_zero)
{
    weir_loop_stats stats = stats_of(host->loop);

    assert_int_equal(stats.turns + stats.events + stats.wakeups + stats.rebuilds + stats.handles,
                     0);
    assert_int_equal(stats.io_ns + stats.task_ns + stats.busy_poll_ns + stats.idle_ns, 0);
}

TEST_EACH_LOOP(loop_stats, count_events_handles_and_calls)
{
    struct fd_event events[3] = {0};
    weir_loop_stats stats;

    for (int i = 0; i < 3; i++)
        fd_event_open(&events[i], host->loop);
    assert_int_equal(stats_of(host->loop).handles, 3);
    for (uint32_t i = 1; i <= 10; i++) {
        fd_event_trigger(&events[0]);
        assert_true(call_counter_await(&events[0].triggered, i));
    }
    host_turn(host, 1);
    stats = stats_of(host->loop);
    assert_true(stats.events >= 10);
    assert_true(stats.turns >= 10);
    assert_true(stats.waits >= 10);
    assert_true(stats.io_ns > 0);
    assert_true(stats.task_ns > 0);
    for (int i = 0; i < 3; i++)
        fd_event_close(&events[i]);
    stats = stats_of(host->loop);
    assert_int_equal(stats.handles, 0);
    assert_int_equal(stats.closes, 3);
}

static weir_manual_clock *manual_clock;

static void take_io_time(struct fd_event *event)
{
    (void)event;
    (void)weir_manual_clock_advance(manual_clock, weir_ms(30));
}

static void take_task_time(void *arg, int status)
{
    (void)weir_manual_clock_advance(manual_clock, weir_ms(5));
    call_counter_task(arg, status);
}

/* By a clock that stands still: every nanosecond is somewhere. */
TEST_EACH_LOOP(loop_stats, account_for_the_time)
{
    struct fd_event event = {.on_event = take_io_time};
    struct call_counter counter = {0};
    weir_loop_options options = {.size = sizeof(options), .io = weir_loop_io(host->loop)};
    weir_executor *loop;
    weir_loop_stats stats;

    assert_int_equal(weir_manual_clock_create(weir_seconds(1), &manual_clock), 0);
    options.clock = weir_manual_clock_clock(manual_clock);
    assert_int_equal(weir_loop_create(&options, &loop), 0);
    fd_event_open(&event, loop);
    assert_int_equal(weir_loop_run_once(loop, 0), 0);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(weir_manual_clock_advance(manual_clock, weir_ms(100)), 0);
        fd_event_trigger(&event);
        assert_int_equal(weir_execute(loop, take_task_time, &counter), 0);
        while (atomic_load(&counter.calls) <= (uint32_t)i ||
               atomic_load(&event.triggered.calls) <= (uint32_t)i)
            assert_true(weir_loop_run_once(loop, 0) >= 0);
    }
    stats = stats_of(loop);
    assert_int_equal(stats.io_ns, 4 * weir_ms(30));
    assert_int_equal(stats.task_ns, 4 * weir_ms(5));
    assert_int_equal(stats.idle_ns, 4 * weir_ms(100));
    assert_int_equal(stats.busy_poll_ns, 0);

    assert_int_equal(weir_executor_shutdown(loop, 0, weir_seconds(1)), 0);
    while (weir_loop_run_once(loop, 0) != WEIR_ETERMINATED) {
    }
    assert_int_equal(weir_manual_clock_advance(manual_clock, weir_seconds(10)), 0);
    assert_int_equal(stats_of(loop).idle_ns, stats.idle_ns); /* it has ended */
    weir_executor_release(loop);
    weir_manual_clock_release(manual_clock);
    fd_event_free(&event);
}

static int64_t metric_of(const weir_executor *loop, const char *figure)
{
    char name[WEIR_METRIC_NAME_SIZE];
    weir_metric_value value;

    (void)snprintf(name, sizeof(name), "loop.%s%s", figure, loop->labels);
    return weir_metric_read(name, &value) == 0 ? value.value : -1;
}

TEST_EACH_LOOP(loop_stats, are_in_the_metric_registry)
{
    struct fd_event event = {0};

    fd_event_open(&event, host->loop);
    fd_event_trigger(&event);
    assert_true(call_counter_await(&event.triggered, 1));
    host_turn(host, 1);
    assert_int_equal(metric_of(host->loop, "handles"), 1);
    assert_true(metric_of(host->loop, "events") >= 1);
    assert_true(metric_of(host->loop, "io_ns") > 0);
    assert_true(metric_of(host->loop, "waits") > 0);
    assert_int_equal(metric_of(host->loop, "rebuilds"), 0);
    fd_event_close(&event);
    host_end(host);
    assert_int_equal(metric_of(host->loop, "handles"), -1);
}

static void turn_often(struct host *host)
{
    for (int i = 0; i < 20; i++)
        host_turn(host, 1);
}

TEST_EACH_LOOP(loop_stats, record_every_turn_on_request)
{
    int64_t turns, samples;

    weir_loops_begin_timing();
    weir_loops_begin_timing();
    weir_loops_end_timing();
    host_turn(host, 1);
    turns = metric_of(host->loop, "turns");
    samples = metric_of(host->loop, "turn_ns");
    turn_often(host);
    assert_true(metric_of(host->loop, "turns") >= turns + 20);
    assert_true(metric_of(host->loop, "turn_ns") >= samples + 20);
    weir_loops_end_timing();
    host_turn(host, 1);
    samples = metric_of(host->loop, "turn_ns");
    turn_often(host);
    assert_true(metric_of(host->loop, "turn_ns") <= samples + 2);
}
