/* SPDX-License-Identifier: Apache-2.0 */
/*
 * executor/cases.h - the cases of the executor suite, and main; after the competitor's own part.
 *
 *      submit   producers=1 count=200000 cpu=0 producer_cpu=1   "ns" a task, first post to last run
 *      pingpong trips=1000 cpu=0 other_cpu=1                     "ns" a round trip, its median
 *      restart  timers=1000 count=100000                         "ns" a stop and start
 *      fire     timers=1000 within_us=10000 repeat=5             "ns" a start and expiry, and each
 *
 * CPUs count from 0 among those that the process may use; -1 = any.
 */
#include "executor/pingpong.h"

/* ---- submit ---- */

struct submit {
    struct loop loop;
    size_t share; /* of each producer, of the tasks of each of the two bursts */
    pthread_barrier_t gate;
    struct task hold;
    sem_t let_go;
    sem_t ran_all;

    /* The loop's. */
    alignas(BENCH_LINE) size_t left;
    int64_t ended_ns;
};

struct producer {
    alignas(BENCH_LINE) struct submit *submit;
    struct task *tasks;
    pthread_t thread;
    int64_t began_ns;
};

static void on_task(void *arg, int status)
{
    struct submit *submit = arg;

    (void)status;
    if (--submit->left > 0)
        return;
    submit->ended_ns = bench_now_ns();
    sem_post(&submit->ran_all);
}

static void on_hold(void *arg, int status)
{
    struct submit *submit = arg;

    (void)status;
    await(&submit->let_go);
}

static void post_share(struct submit *submit, struct task *tasks)
{
    for (size_t i = 0; i < submit->share; i++)
        loop_post(&submit->loop, &tasks[i], on_task, submit);
}

/*
 * The first burst is the warm-up. The loop is held up meanwhile, so that whoever keeps a pool of
 * tasks has it filled with all that the second, timed one can need.
 */
static void *produce(void *arg)
{
    struct producer *self = arg;

    post_share(self->submit, self->tasks);
    pthread_barrier_wait(&self->submit->gate);
    pthread_barrier_wait(&self->submit->gate);
    self->began_ns = bench_now_ns();
    post_share(self->submit, self->tasks);
    return NULL;
}

static int64_t run_bursts(struct submit *submit, struct producer *producers, size_t count, int cpu)
{
    int64_t began_ns = INT64_MAX;

    submit->left = count * submit->share;
    loop_post(&submit->loop, &submit->hold, on_hold, submit);
    for (size_t i = 0; i < count; i++)
        bench_thread_start(&producers[i].thread, cpu, produce, &producers[i]);
    pthread_barrier_wait(&submit->gate);
    sem_post(&submit->let_go);
    await(&submit->ran_all);

    submit->left = count * submit->share;
    pthread_barrier_wait(&submit->gate);
    await(&submit->ran_all);
    for (size_t i = 0; i < count; i++) {
        bench_thread_join(producers[i].thread);
        if (producers[i].began_ns < began_ns)
            began_ns = producers[i].began_ns;
    }
    return submit->ended_ns - began_ns;
}

static void submit_case(bench_round *round)
{
    size_t count = (size_t)bench_setting(round, "producers", 1);
    size_t tasks = (size_t)bench_setting(round, "count", 200000);
    int producer_cpu = bench_cpu(bench_setting(round, "producer_cpu", -1));
    struct submit *submit = bench_alloc(1, sizeof(*submit));
    struct producer *producers = bench_alloc(count, sizeof(*producers));
    int64_t took_ns;

    submit->share = tasks / count;
    sem_init(&submit->let_go, 0, 0);
    sem_init(&submit->ran_all, 0, 0);
    pthread_barrier_init(&submit->gate, NULL, (unsigned)count + 1);
    for (size_t i = 0; i < count; i++) {
        producers[i].submit = submit;
        producers[i].tasks = bench_alloc(submit->share, sizeof(struct task));
    }
    loop_start(&submit->loop, round, bench_cpu(bench_setting(round, "cpu", 0)));

    took_ns = run_bursts(submit, producers, count, producer_cpu);
    bench_report(round, "ns", (double)took_ns / (double)(count * submit->share));

    loop_stop(&submit->loop);
    for (size_t i = 0; i < count; i++)
        bench_free(producers[i].tasks);
    pthread_barrier_destroy(&submit->gate);
    sem_destroy(&submit->ran_all);
    sem_destroy(&submit->let_go);
    bench_free(producers);
    bench_free(submit);
}

/* ---- timers ---- */

struct timing {
    struct timer_loop loop;
    struct timer *timers;
    size_t count;      /* timers outstanding */
    int64_t lead_us;   /* of fire: when the first is due, */
    int64_t within_us; /* and how long after it the last */
    uint64_t random;
    int64_t took_ns;
};

/* What idle and connection timers of servers are set to. */
enum { DELAY_US_MIN = 1000 * 1000, DELAY_US_MAX = 60 * 1000 * 1000 };

/* No timer is due before the last is started: more than the slowest competitor needs for each. */
enum { LEAD_NS = 300 };

/* The coarsest of their clocks ticks every 4 to 10 ms: by then all timers are due for everybody. */
enum { SLACK_US = 12 * 1000 };

static struct timing *timing_create(bench_round *round)
{
    struct timing *timing = bench_alloc(1, sizeof(*timing));

    timing->count = (size_t)bench_setting(round, "timers", 1000);
    timing->timers = bench_alloc(timing->count, sizeof(*timing->timers));
    timers_open(&timing->loop);
    for (size_t i = 0; i < timing->count; i++)
        timer_init(&timing->loop, &timing->timers[i]);
    return timing;
}

static void timing_release(struct timing *timing)
{
    timers_close(&timing->loop, timing->timers, timing->count);
    bench_free(timing->timers);
    bench_free(timing);
}

static int64_t random_delay_us(uint64_t random)
{
    uint32_t bits = (uint32_t)random;

    return DELAY_US_MIN + (int64_t)bench_scale(bits, DELAY_US_MAX - DELAY_US_MIN);
}

/* A loop turns between two batches, as it does between the events of some connections. */
enum { RESTART_BATCH = 256 };

static void restart_some(void *arg)
{
    struct timing *timing = arg;

    for (size_t i = 0; i < RESTART_BATCH; i++) {
        uint64_t random = bench_random(&timing->random);
        struct timer *timer = &timing->timers[bench_scale((uint32_t)(random >> 32), timing->count)];

        timer_stop(&timing->loop, timer);
        timer_start(&timing->loop, timer, random_delay_us(random));
    }
}

static void start_all(void *arg)
{
    struct timing *timing = arg;

    for (size_t i = 0; i < timing->count; i++)
        timer_start(&timing->loop, &timing->timers[i],
                    random_delay_us(bench_random(&timing->random)));
}

static void stop_all(void *arg)
{
    struct timing *timing = arg;

    for (size_t i = 0; i < timing->count; i++)
        timer_stop(&timing->loop, &timing->timers[i]);
}

static int64_t time_restarts(struct timing *timing, size_t batches)
{
    int64_t began_ns = bench_now_ns();

    for (size_t i = 0; i < batches; i++)
        timers_call(&timing->loop, restart_some, timing);
    return bench_now_ns() - began_ns;
}

static void restart_case(bench_round *round)
{
    struct timing *timing = timing_create(round);
    size_t batches = (size_t)bench_setting(round, "count", 100000) / RESTART_BATCH;

    timers_call(&timing->loop, start_all, timing);
    (void)time_restarts(timing, batches / 4);
    bench_report(round, "ns",
                 (double)time_restarts(timing, batches) / (double)(batches * RESTART_BATCH));
    timers_call(&timing->loop, stop_all, timing);
    timing_release(timing);
}

static void start_timers(void *arg)
{
    struct timing *timing = arg;
    int64_t began_ns = bench_now_ns();

    for (size_t i = 0; i < timing->count; i++) {
        uint32_t bits = (uint32_t)bench_random(&timing->random);
        int64_t after_us = (int64_t)bench_scale(bits, (uint64_t)timing->within_us);

        timer_start(&timing->loop, &timing->timers[i], timing->lead_us + after_us);
    }
    timing->took_ns = bench_now_ns() - began_ns;
}

static int64_t fire_timers(struct timing *timing)
{
    int64_t wait_us = timing->lead_us + timing->within_us + SLACK_US;
    int64_t began_ns;

    bench_spin_until(bench_now_ns() + wait_us * 1000);
    began_ns = bench_now_ns();
    while (timers_fired < timing->count)
        timers_run_due(&timing->loop);
    return bench_now_ns() - began_ns;
}

static void fire_case(bench_round *round)
{
    struct timing *timing = timing_create(round);
    int64_t repeat = bench_setting(round, "repeat", 1);
    int64_t start_ns = 0, fire_ns = 0;
    double fired = (double)repeat * (double)timing->count;

    timing->lead_us = 1000 + (int64_t)timing->count * LEAD_NS / 1000;
    timing->within_us = bench_setting(round, "within_us", 10000);
    for (int64_t i = 0; i < repeat; i++) {
        timers_fired = 0;
        timers_call(&timing->loop, start_timers, timing);
        start_ns += timing->took_ns;
        fire_ns += fire_timers(timing);
    }
    bench_report(round, "ns", (double)(start_ns + fire_ns) / fired);
    bench_report(round, "start_ns", (double)start_ns / fired);
    bench_report(round, "fire_ns", (double)fire_ns / fired);
    timing_release(timing);
}

int main(int argc, char **argv)
{
    static const bench_case cases[] = {
        {"submit", submit_case},
        {"pingpong", pingpong_case},
        {"restart", restart_case},
        {"fire", fire_case},
        {NULL, NULL},
    };

    return bench_main(argc, argv, cases);
}
