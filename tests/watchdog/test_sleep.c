/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The watchdog sleeps while all loops do, and is awake as soon as one of them is.
 */
#include <weir/watchdog.h>

#include "executor/running_loops.h"
#include "os/clock.h"
#include "os/thread.h"
#include "support/executor/log_capture.h"
#include "support/loop/host.h"
#include "support/watchdog/block_log.h"

static struct block_log blocks;

/* True when the watchdog waits for the alarm. */
static bool await_sleep(void)
{
    int64_t end_ns = weir__monotonic_now() + TEST_TIMEOUT_NS;

    while (atomic_load(&weir__running_loops_alarm) == 0 && weir__monotonic_now() < end_ns)
        weir__thread_sleep(weir_us(100));
    return atomic_load(&weir__running_loops_alarm) == 1;
}

static void compute_until_reported(void *arg, int status)
{
    int64_t end_ns = weir__monotonic_now() + weir_seconds(3);

    (void)arg;
    while (status == 0 && atomic_load(&blocks.found.calls) == 0 && weir__monotonic_now() < end_ns)
        ;
}

static void begin(void)
{
    log_capture_start();
    block_log_start(&blocks);
    assert_int_equal(weir_watchdog_start(WEIR_WATCHDOG_OPTIONS(.threshold_ns = weir_ms(4))), 0);
    if (!weir__thread_barrier_others()) {
        weir_watchdog_stop();
        WEIR_TEST_SKIP("no membarrier: the watchdog does not sleep");
    }
    assert_true(await_sleep());
}

static void end(void)
{
    assert_true(await_sleep());
    weir_watchdog_stop(); /* wakes it up, and joins its thread */
    assert_int_equal(atomic_load(&weir__running_loops_alarm), 0);
    block_log_stop(&blocks);
}

TEST_EACH_LOOP(sleep, ends_when_a_loop_wakes_up)
{
    begin();
    for (int i = 0; i < 3; i++) {
        atomic_store(&blocks.found.calls, 0);
        assert_int_equal(weir_execute(host->loop, compute_until_reported, NULL), 0);
        assert_true(call_counter_await(&blocks.found, 1));
        assert_true(await_sleep());
    }
    end();
}

TEST_EACH_LOOP(sleep, ends_when_another_loop_starts)
{
    struct host other;

    begin();
    host_open(&other, (enum backend_id)(host->backend - backends));
    assert_int_equal(weir_execute(other.loop, compute_until_reported, NULL), 0);
    assert_true(call_counter_await(&blocks.found, 1));
    host_close(&other);
    end();
}

static void finish(void *arg, int status)
{
    (void)arg;
    (void)status;
}

TEST(sleep, is_not_ended_by_executors_without_a_loop)
{
    weir_group *group;

    begin();
    assert_int_equal(
        weir_group_create(WEIR_GROUP_OPTIONS(.io = WEIR_IO_NONE, .threads = 1), &group), 0);
    assert_int_equal(weir_execute(weir_group_at(group, 0), finish, NULL), 0);
    assert_int_equal(weir_group_shutdown(group, 0, TEST_TIMEOUT_NS), 0);
    assert_int_equal(weir_group_await_termination(group, TEST_TIMEOUT_NS), 0);
    assert_int_equal(atomic_load(&weir__running_loops_alarm), 1);
    weir_group_release(group);
    end();
}
