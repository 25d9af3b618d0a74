/* SPDX-License-Identifier: Apache-2.0 */
/*
 * echo/measurement.h - a round of an echo server, whatever it echoes: the server starts, there is a
 * warm-up, and what the server costs is measured while requests are counted.
 *
 * After the server's own part: it calls server_configure and server_run (echo/competitor.h).
 */
#include "echo/competitor.h"
#include "echo/counts.h"

#define COLD_WARMUP_NS (3 * INT64_C(1000000000)) /* until what runs has been compiled */

struct measurement {
    bench_round *round;
    echo_server server;
    int64_t warmup_ns;
    int64_t duration_ns;
    int64_t began_ns;
    int64_t cpu_ns;
    int64_t user_ns;
    echo_counts counts;
};

static int64_t setting_ns(bench_round *round, const char *name, int64_t otherwise, int64_t unit_ns)
{
    return bench_setting(round, name, otherwise) * unit_ns;
}

/* The load stands ready on its CPU, the server serves on its own. */
static struct measurement *measurement_open(bench_round *round)
{
    struct measurement *self = bench_alloc(1, sizeof(*self));

    self->round = round;
    self->warmup_ns = setting_ns(round, "warmup_ms", 40, 1000 * 1000);
    self->duration_ns = setting_ns(round, "ms", 200, 1000 * 1000);
    echo_server_use_unix(bench_setting(round, "unix", 0) != 0);
    server_configure(round);
    echo_server_start(&self->server, server_run, bench_cpu(bench_setting(round, "cpu", 1)));
    if (self->server.cold)
        self->warmup_ns = COLD_WARMUP_NS;
    bench_pin(bench_cpu(bench_setting(round, "load_cpu", 1)));
    echo_server_allow_preemption(&self->server, false);
    return self;
}

/* What came before was the warm-up. */
static void measurement_begin(struct measurement *self)
{
    self->counts = (echo_counts){0};
    self->began_ns = bench_now_ns();
    self->user_ns = echo_server_user_ns(&self->server);
    self->cpu_ns = echo_server_cpu_ns(&self->server);
}

static void measurement_end(struct measurement *self)
{
    double cpu_ns = (double)(echo_server_cpu_ns(&self->server) - self->cpu_ns);
    double user_ns = (double)(echo_server_user_ns(&self->server) - self->user_ns);
    double wall_ns = (double)(bench_now_ns() - self->began_ns);

    bench_report(self->round, "share", cpu_ns / wall_ns * 1e6);
    if (self->counts.requests == 0)
        return;
    bench_report(self->round, "ns", cpu_ns / (double)self->counts.requests);
    bench_report(self->round, "user_ns", user_ns / (double)self->counts.requests);
    bench_report(self->round, "wall_ns", wall_ns / (double)self->counts.requests);
    bench_report(self->round, "p50_ns", latency_percentile(&self->counts.latency, 0.5));
    bench_report(self->round, "p99_ns", latency_percentile(&self->counts.latency, 0.99));
}

static void measurement_close(struct measurement *self)
{
    echo_server_stop(&self->server);
    bench_pin(-1);
    bench_free(self);
}
