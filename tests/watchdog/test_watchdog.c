/* SPDX-License-Identifier: Apache-2.0 */
/* When a turn counts as blocked, and for how long, with a stepped clock; starting and stopping. */
#include <weir/watchdog.h>

#include <errno.h>

#include <weir/loop.h>

#include "loop/loop.h"
#include "support/executor/log_capture.h"
#include "support/memory.h"
#include "support/watchdog/watched_loop.h"

static unsigned found(const struct watched_loop *watched)
{
    return atomic_load(&watched->blocks.found.calls);
}

static unsigned ended(const struct watched_loop *watched)
{
    return atomic_load(&watched->blocks.ended.calls);
}

/* A task that blocks. */
struct blocking_task {
    struct watched_loop *watched;
    int64_t watched_ns;   /* in steps, with looks */
    int64_t unwatched_ns; /* then, at once, without a look */
};

static void block(void *arg, int status)
{
    const struct blocking_task *task = arg;

    if (status < 0)
        return;
    watched_block(task->watched, task->watched_ns);
    assert_int_equal(weir_manual_clock_advance(task->watched->clock, task->unwatched_ns), 0);
}

static void run_blocking(struct watched_loop *watched, int64_t watched_ns, int64_t unwatched_ns)
{
    struct blocking_task task = {watched, watched_ns, unwatched_ns};

    assert_int_equal(weir_execute(watched->loop, block, &task), 0);
    watched_run(watched);
}

/* ---- which turns are reported ---- */

TEST_EACH_LOOP(watchdog, reports_a_block_once_and_its_end)
{
    struct watched_loop watched;
    const struct block_record *records = watched.blocks.records;

    watched_open(&watched, host, NULL);
    run_blocking(&watched, weir_ms(250), 0);
    assert_int_equal(found(&watched), 1);
    assert_int_equal(ended(&watched), 0);
    assert_int_equal(records[0].block.duration_ns, weir_ms(100));
    assert_ptr_equal(records[0].block.executor, watched.loop);
    watched_check();
    watched_check();
    assert_int_equal(found(&watched), 1);
    assert_int_equal(ended(&watched), 1);
    assert_int_equal(records[1].block.number, records[0].block.number);
    assert_int_equal(records[1].block.duration_ns, weir_ms(250));

    run_blocking(&watched, weir_ms(100), 0);
    assert_int_equal(records[2].block.number, records[0].block.number + 1);
    watched_close(&watched);
}

TEST_EACH_LOOP(watchdog, does_not_report_shorter_turns)
{
    struct watched_loop watched;

    watched_open(&watched, host, NULL);
    for (int i = 0; i < 3; i++)
        run_blocking(&watched, weir_ms(99), 0);
    watched_check();
    assert_int_equal(found(&watched), 0);
    watched_close(&watched);
}

TEST_EACH_LOOP(watchdog, has_the_threshold_of_its_options)
{
    struct watched_loop watched;

    watched_open(&watched, host, WEIR_WATCHDOG_OPTIONS(.threshold_ns = weir_ms(500)));
    run_blocking(&watched, weir_ms(499), 0);
    assert_int_equal(found(&watched), 0);
    run_blocking(&watched, weir_ms(500), 0);
    assert_int_equal(found(&watched), 1);
    watched_close(&watched);
}

/* The loop measures the blocked turn itself. */
TEST_EACH_LOOP(watchdog, reports_the_exact_duration)
{
    struct watched_loop watched;

    watched_open(&watched, host, NULL);
    run_blocking(&watched, weir_ms(125), weir_ms(7));
    watched_check();
    assert_int_equal(watched.blocks.records[1].block.duration_ns, weir_ms(132));
    watched_close(&watched);
}

/* A look adds at most half of the threshold: the process was stopped, or the watchdog was. */
TEST_EACH_LOOP(watchdog, does_not_count_time_between_looks_that_are_far_apart)
{
    struct watched_loop watched;

    watched_open(&watched, host, NULL);
    run_blocking(&watched, weir_ms(25), weir_seconds(3600));
    watched_check();
    assert_int_equal(found(&watched), 0);
    run_blocking(&watched, weir_ms(100), weir_seconds(3600));
    watched_check();
    assert_int_equal(watched.blocks.records[1].block.duration_ns, weir_ms(150));
    watched_close(&watched);
}

/* Looks that are far apart, and then others in the same turn. */
struct far_apart {
    struct watched_loop *watched;
    unsigned looks; /* each of which is far from the one before */
    int64_t then_ns;
};

static void look_seldom(void *arg, int status)
{
    const struct far_apart *task = arg;

    for (unsigned i = 0; i < task->looks && status == 0; i++) {
        assert_int_equal(weir_manual_clock_advance(task->watched->clock, weir_seconds(3600)), 0);
        watched_check();
    }
    watched_block(task->watched, task->then_ns);
}

/*
 * The first two looks at a turn do not know for how long its thread had no CPU: they add a quarter
 * of the threshold each, however late they are.
 */
TEST_EACH_LOOP(watchdog, adds_no_more_than_a_period_for_each_of_the_first_two_looks)
{
    struct watched_loop watched;

    for (unsigned looks = 1; looks <= 2; looks++) {
        struct far_apart task = {&watched, looks, weir_ms(75) - looks * weir_ms(25)};

        watched_open(&watched, host, NULL);
        assert_int_equal(weir_execute(watched.loop, look_seldom, &task), 0);
        watched_run(&watched);
        watched_check();
        assert_int_equal(found(&watched), 0);
        task.then_ns += weir_ms(25);
        assert_int_equal(weir_execute(watched.loop, look_seldom, &task), 0);
        watched_run(&watched);
        assert_int_equal(found(&watched), 1);
        watched_close(&watched);
    }
}

TEST_EACH_LOOP(watchdog, does_not_report_loops_that_do_not_run)
{
    struct watched_loop watched;

    watched_open(&watched, host, NULL);
    watched_block(&watched, weir_seconds(1));
    assert_int_equal(found(&watched), 0);
    watched_close(&watched);
}

static void poll_busily(void *arg, int status)
{
    struct watched_loop *watched = arg;
    atomic_bool *is_polling = &weir__loop_of(watched->loop)->stats.is_busy_polling;

    (void)status;
    atomic_store(is_polling, true);
    watched_block(watched, weir_seconds(1));
    atomic_store(is_polling, false);
}

TEST_EACH_LOOP(watchdog, does_not_report_busy_polling)
{
    struct watched_loop watched;

    watched_open(&watched, host, NULL);
    assert_int_equal(weir_execute(watched.loop, poll_busily, &watched), 0);
    watched_run(&watched);
    assert_int_equal(found(&watched), 0);
    watched_close(&watched);
}

static void end_while_blocked(void *arg, int status)
{
    struct watched_loop *watched = arg;

    (void)status;
    watched_block(watched, weir_ms(100));
    (void)weir_executor_shutdown(watched->loop, 0, 0);
}

TEST_EACH_LOOP(watchdog, reports_the_end_of_a_block_of_a_loop_that_ends)
{
    struct watched_loop watched;

    watched_open(&watched, host, NULL);
    assert_int_equal(weir_execute(watched.loop, end_while_blocked, &watched), 0);
    while (weir_loop_run_once(watched.loop, 0) >= 0)
        ;
    assert_int_equal(found(&watched), 1);
    watched_check();
    assert_int_equal(ended(&watched), 1);
    assert_string_equal(watched.blocks.records[1].executor, "watched");
    watched_close(&watched);
}

/* ---- starting and stopping ---- */

static void stop_while_blocked(void *arg, int status)
{
    weir_watchdog_stats stats;

    (void)status;
    watched_block(arg, weir_ms(100));
    weir_watchdog_read_stats(&stats);
    assert_int_equal(stats.blocked_now, 1);
    weir_watchdog_stop();
}

TEST_EACH_LOOP(watchdog, forgets_blocks_when_it_is_stopped)
{
    struct watched_loop watched;
    weir_watchdog_stats stats;

    watched_open(&watched, host, NULL);
    assert_int_equal(weir_execute(watched.loop, stop_while_blocked, &watched), 0);
    watched_run(&watched);
    weir_watchdog_read_stats(&stats);
    assert_int_equal(stats.blocked_now, 0);
    assert_false(stats.is_running);
    assert_int_equal(
        weir_watchdog_start(WEIR_WATCHDOG_OPTIONS(.clock = weir_manual_clock_clock(watched.clock))),
        0);
    run_blocking(&watched, weir_ms(75), 0);
    assert_int_equal(found(&watched), 1);
    assert_int_equal(ended(&watched), 0);
    watched_close(&watched);
}

static void start_anew_while_blocked(void *arg, int status)
{
    struct watched_loop *watched = arg;

    (void)status;
    watched_block(watched, weir_ms(75));
    weir_watchdog_stop();
    assert_int_equal(weir_watchdog_start(
                         WEIR_WATCHDOG_OPTIONS(.clock = weir_manual_clock_clock(watched->clock))),
                     0);
    watched_block(watched, weir_ms(75));
}

/* What was seen of a turn before the start is not known: it may have been another watchdog's. */
TEST_EACH_LOOP(watchdog, begins_anew_in_the_turn_in_which_it_is_started)
{
    struct watched_loop watched;

    watched_open(&watched, host, NULL);
    assert_int_equal(weir_execute(watched.loop, start_anew_while_blocked, &watched), 0);
    watched_run(&watched);
    assert_int_equal(found(&watched), 0);
    watched_close(&watched);
}

TEST(watchdog, refuses_bad_options)
{
    assert_options_rejected(
        weir_watchdog_start(WEIR_WATCHDOG_OPTIONS(.threshold_ns = weir_us(999))), "threshold_ns");
    assert_options_rejected(weir_watchdog_start(WEIR_WATCHDOG_OPTIONS(.backtrace = 7)),
                            "backtrace");
    assert_options_rejected(weir_watchdog_start(WEIR_WATCHDOG_OPTIONS(.signal = -1)), "signal");
    assert_options_rejected(weir_watchdog_start(WEIR_WATCHDOG_OPTIONS(.blocks_before_offload = -1)),
                            "blocks_before_offload");
    assert_options_rejected(weir_watchdog_start(WEIR_WATCHDOG_OPTIONS(.logged_blocks = -1)),
                            "logged_blocks");
}

TEST(watchdog, runs_once)
{
    weir_manual_clock *clock;

    assert_int_equal(weir_watchdog_check(), -ESRCH);
    assert_int_equal(weir_manual_clock_create(0, &clock), 0);
    assert_int_equal(
        weir_watchdog_start(WEIR_WATCHDOG_OPTIONS(.clock = weir_manual_clock_clock(clock))), 0);
    assert_int_equal(weir_watchdog_start(NULL), -EALREADY);
    assert_int_equal(weir_watchdog_check(), 0);
    weir_watchdog_stop();
    weir_watchdog_stop();
    assert_int_equal(weir_watchdog_check(), -ESRCH);
    weir_manual_clock_release(clock);
}

static void check_again(const weir_block *block, void *ret_err)
{
    (void)block;
    *(int *)ret_err = weir_watchdog_check();
}

TEST_EACH_LOOP(watchdog, cannot_look_from_a_listener)
{
    struct watched_loop watched;
    int err = 0;

    watched_open(&watched, host, NULL);
    assert_int_equal(weir_watchdog_add_listener(check_again, &err), 0);
    run_blocking(&watched, weir_ms(100), 0);
    assert_int_equal(err, -EDEADLK);
    assert_int_equal(weir_watchdog_remove_listener(check_again, &err), 0);
    watched_close(&watched);
}

static void block_without_memory(void *arg, int status)
{
    (void)status;
    test_memory_fail_all(true);
    watched_block(arg, weir_ms(100));
    test_memory_fail_all(false);
}

TEST_EACH_LOOP(watchdog, counts_a_block_without_memory_for_its_report)
{
    struct watched_loop watched;
    weir_watchdog_stats before, after;

    watched_open(&watched, host, NULL);
    weir_watchdog_read_stats(&before);
    assert_int_equal(weir_execute(watched.loop, block_without_memory, &watched), 0);
    watched_run(&watched);
    watched_check();
    weir_watchdog_read_stats(&after);
    assert_int_equal(after.blocks, before.blocks + 1);
    assert_int_equal(after.blocked_now, 0);
    assert_int_equal(found(&watched), 0);
    assert_int_equal(log_capture_count(WEIR_LOG_ERROR), 1);
    assert_log_contains("watchdog watched: is blocked; no memory to describe it");
    watched_close(&watched);
}
