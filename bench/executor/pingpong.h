/* SPDX-License-Identifier: Apache-2.0 */
/*
 * executor/pingpong.h - a task that goes to and fro between two loops, each of which sleeps when it
 * is not there; after the competitor's own part.
 *
 *      pingpong trips=1000 warmup=100 cpu=0 other_cpu=1    "ns" a round trip, its median; "p99_ns"
 */
#include <semaphore.h>
#include <stdalign.h>

#include "support/latency.h"

static void await(sem_t *semaphore)
{
    while (sem_wait(semaphore) != 0)
        ;
}

struct side {
    alignas(BENCH_LINE) struct loop loop;
    struct task ball; /* on its way to this side */
};

struct pingpong {
    struct side near;
    struct side far;
    struct latency trips;
    size_t warmup; /* trips that are still to be made before one counts; the first is only half */
    size_t left;
    int64_t served_ns;
    sem_t over;
};

static void on_near(void *arg, int status);

static void on_far(void *arg, int status)
{
    struct pingpong *game = arg;

    (void)status;
    loop_post(&game->near.loop, &game->near.ball, on_near, game);
}

static void count_trip(struct pingpong *game, int64_t now_ns)
{
    if (game->warmup > 0) {
        game->warmup--;
        return;
    }
    latency_record(&game->trips, now_ns - game->served_ns);
    game->left--;
}

static void on_near(void *arg, int status)
{
    struct pingpong *game = arg;
    int64_t now_ns = bench_now_ns();

    (void)status;
    count_trip(game, now_ns);
    game->served_ns = now_ns;
    if (game->left > 0)
        loop_post(&game->far.loop, &game->far.ball, on_far, game);
    else
        sem_post(&game->over);
}

static void pingpong_case(bench_round *round)
{
    struct pingpong *game = bench_alloc(1, sizeof(*game));

    game->left = (size_t)bench_setting(round, "trips", 1000);
    game->warmup = 1 + (size_t)bench_setting(round, "warmup", (int64_t)game->left / 10);
    sem_init(&game->over, 0, 0);
    loop_start(&game->near.loop, round, bench_cpu(bench_setting(round, "cpu", 0)));
    loop_start(&game->far.loop, round, bench_cpu(bench_setting(round, "other_cpu", 1)));

    loop_post(&game->near.loop, &game->near.ball, on_near, game);
    await(&game->over);
    bench_report(round, "ns", latency_percentile(&game->trips, 0.5));
    bench_report(round, "p99_ns", latency_percentile(&game->trips, 0.99));

    loop_stop(&game->far.loop);
    loop_stop(&game->near.loop);
    sem_destroy(&game->over);
    bench_free(game);
}
