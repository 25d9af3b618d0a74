/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loop/late.h - how late a timer fires on a loop that has nothing else to do.
 *
 *      late timers=100 cpu=1    "p50_ns" and "p99_ns" after the deadline
 *
 * One timer after another, with delays of 0.5 to 1.5 ms at random, so that they meet no tick.
 */
#include <weir/timer.h>

struct late {
    weir_executor *executor;
    weir_timer timer;
    int64_t deadline_ns;
    size_t left;
    uint64_t random;
    struct latency lateness;
    sem_t over;
};

static void on_timer(weir_timer *timer);

static void start_next(struct late *late)
{
    int64_t delay_ns =
        500000 + (int64_t)bench_scale((uint32_t)bench_random(&late->random), 1000000);

    late->deadline_ns = bench_now_ns() + delay_ns;
    weir_timer_start(late->executor, &late->timer, delay_ns, on_timer);
}

static void on_timer(weir_timer *timer)
{
    struct late *late = WEIR_CONTAINER_OF(timer, struct late, timer);

    latency_record(&late->lateness, bench_now_ns() - late->deadline_ns);
    if (--late->left > 0)
        start_next(late);
    else
        sem_post(&late->over);
}

static void on_first(void *arg, int status)
{
    (void)status;
    start_next(arg);
}

static void late_case(bench_round *round)
{
    struct late *late = bench_alloc(1, sizeof(*late));
    struct loop loop;

    late->left = (size_t)bench_setting(round, "timers", 100);
    sem_init(&late->over, 0, 0);
    loop_start(&loop, round, bench_cpu(bench_setting(round, "cpu", 1)));
    late->executor = loop.executor;
    weir_timer_init(&late->timer);
    bench_require(weir_execute(late->executor, on_first, late) == 0, "weir_execute");
    await(&late->over);
    bench_report(round, "p50_ns", latency_percentile(&late->lateness, 0.5));
    bench_report(round, "p99_ns", latency_percentile(&late->lateness, 0.99));
    loop_stop(&loop);
    sem_destroy(&late->over);
    bench_free(late);
}
