/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loops that start and end while the watchdog looks at them, and a watchdog that is started and
 * stopped by several threads; for TSan.
 */
#include <errno.h>

#include <weir/group.h>
#include <weir/watchdog.h>

#include "os/clock.h"
#include "os/thread.h"
#include "support/executor/log_capture.h"
#include "support/loop/host.h"
#include "support/watchdog/block_log.h"

#define ROUNDS 6
#define TASKS 4
#define COMPUTE_NS weir_us(1500)

static int start(void)
{
    return weir_watchdog_start(WEIR_WATCHDOG_OPTIONS(.threshold_ns = weir_ms(1)));
}

static void compute(void *arg, int status)
{
    int64_t end_ns = weir__monotonic_now() + COMPUTE_NS;

    while (status == 0 && weir__monotonic_now() < end_ns)
        ;
    (void)arg;
}

struct life {
    const struct backend *backend;
    _Atomic int err;
};

/* Each round is the whole life of two loops, which end while they are busy. */
static void live(void *arg)
{
    struct life *life = arg;
    weir_group *group;
    int err = 0;

    for (int i = 0; i < ROUNDS && err == 0; i++) {
        err = weir_group_create(WEIR_GROUP_OPTIONS(.io = life->backend->io, .threads = 2), &group);
        if (err < 0)
            break;
        for (int j = 0; j < TASKS && err == 0; j++)
            err = weir_execute(weir_group_next(group), compute, NULL);
        (void)weir_group_shutdown(group, 0, TEST_TIMEOUT_NS);
        if (err == 0)
            err = weir_group_await_termination(group, TEST_TIMEOUT_NS);
        weir_group_release(group);
    }
    atomic_store(&life->err, err);
}

static void assert_nothing_left(void)
{
    weir_watchdog_stats stats;

    weir_watchdog_read_stats(&stats);
    assert_int_equal(stats.blocked_now, 0);
    assert_false(stats.is_running);
}

TEST_EACH_LOOP(watchdog_stress, loops_end_while_it_looks_at_them)
{
    /* TSan does not see that a ring's memory was unmapped, so threads do not create them in turn.
     */
    int count = host->backend->io == WEIR_IO_URING ? 1 : 2;
    struct life lives[2] = {{host->backend, 1}, {host->backend, 1}};
    static struct block_log blocks;
    weir__thread threads[2];

    log_capture_start();
    block_log_start(&blocks);
    assert_int_equal(start(), 0);
    for (int i = 0; i < count; i++)
        assert_int_equal(weir__thread_start("life", live, &lives[i], &threads[i]), 0);
    for (int i = 0; i < count; i++) {
        weir__thread_join(&threads[i]);
        assert_int_equal(lives[i].err, 0);
    }
    weir_watchdog_stop();
    block_log_stop(&blocks);
    assert_nothing_left();
}

static void start_and_stop(void *arg)
{
    _Atomic int *wrong = arg;

    for (int i = 0; i < ROUNDS; i++) {
        int err = start();

        if (err != 0 && err != -EALREADY)
            atomic_store(wrong, err);
        weir_watchdog_stop();
    }
}

TEST_EACH_LOOP(watchdog_stress, is_started_and_stopped_by_several_threads)
{
    struct life life = {host->backend, 1};
    weir__thread threads[3];
    _Atomic int wrong = 0;

    log_capture_start();
    assert_int_equal(weir__thread_start("life", live, &life, &threads[0]), 0);
    assert_int_equal(weir__thread_start("starter", start_and_stop, &wrong, &threads[1]), 0);
    assert_int_equal(weir__thread_start("starter", start_and_stop, &wrong, &threads[2]), 0);
    for (int i = 0; i < 3; i++)
        weir__thread_join(&threads[i]);
    assert_int_equal(life.err, 0);
    assert_int_equal(wrong, 0);
    assert_nothing_left();
}
