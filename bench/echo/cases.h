/* SPDX-License-Identifier: Apache-2.0 */
/*
 * echo/cases.h - the cases of an echo server, after its own part.
 *
 *      echo   connections=64 size=64 depth=1   a closed loop over many connections
 *      churn  connections=64 size=64           connect, one request, close
 *      client size=64 spin=0 interval_us=0     one client, which may pause between its requests
 *      idle                                    one silent connection
 *      memory connections=10000                idle connections after one request each
 *
 * and of all: ms=200 warmup_ms=40 cpu=1 load_cpu=1 unix=0 (1 = Unix sockets instead of TCP). They
 * answer with
 *
 *      ns               CPU time of the server for each request (of the churn: connection)
 *      user_ns          the part of it that is not the kernel's; only of rounds of seconds
 *      wall_ns          time for each request
 *      p50_ns, p99_ns   how long a client waits for the answer
 *      share            microseconds of CPU that the server uses in a second
 *      bytes            of memory: what the server has grown by for each connection
 *      base             of memory: the server's with one connection
 */
#include "echo/script_round.h"

static void echo_case(bench_round *round)
{
    size_t connections = (size_t)bench_setting(round, "connections", 64);
    size_t size = (size_t)bench_setting(round, "size", 64);
    size_t depth = (size_t)bench_setting(round, "depth", 1);
    struct measurement *self = measurement_open(round);
    echo_script script;

    echo_script_init(&script, size, depth);
    script_round_run(self, connections, &script);
    echo_script_deinit(&script);
    measurement_close(self);
}

static void churn_case(bench_round *round)
{
    size_t connections = (size_t)bench_setting(round, "connections", 64);
    size_t size = (size_t)bench_setting(round, "size", 64);
    struct measurement *self = measurement_open(round);
    uint16_t port = self->server.port;

    echo_churn_run(port, connections, size, self->warmup_ns, &self->counts);
    measurement_begin(self);
    echo_churn_run(port, connections, size, self->duration_ns, &self->counts);
    measurement_end(self);
    measurement_close(self);
}

static void client_case(bench_round *round)
{
    size_t size = (size_t)bench_setting(round, "size", 64);
    int64_t interval_ns = setting_ns(round, "interval_us", 0, 1000);
    bool spins = bench_setting(round, "spin", 0) != 0;
    struct measurement *self = measurement_open(round);
    echo_client client;

    echo_client_open(&client, self->server.port, size, spins);
    echo_client_run(&client, interval_ns, self->warmup_ns, &self->counts);
    measurement_begin(self);
    echo_client_run(&client, interval_ns, self->duration_ns, &self->counts);
    measurement_end(self);
    echo_client_close(&client);
    measurement_close(self);
}

static void idle_case(bench_round *round)
{
    struct measurement *self = measurement_open(round);
    int64_t now_ns;
    echo_client client;

    echo_client_open(&client, self->server.port, 1, false);
    echo_client_run(&client, 0, self->warmup_ns, &self->counts);
    now_ns = bench_now_ns();
    echo_client_pause_until(&client, now_ns + self->warmup_ns);
    measurement_begin(self);
    echo_client_pause_until(&client, now_ns + self->warmup_ns + self->duration_ns);
    measurement_end(self);
    echo_client_close(&client);
    measurement_close(self);
}

static void memory_case(bench_round *round)
{
    size_t connections = (size_t)bench_setting(round, "connections", 10000);
    struct measurement *self = measurement_open(round);
    echo_script script;

    echo_script_init(&script, 64, 1);
    script_round_memory(self, connections, &script);
    echo_script_deinit(&script);
    measurement_close(self);
}

#define ECHO_CASES                                                                            \
    {"echo", echo_case}, {"churn", churn_case}, {"client", client_case}, {"idle", idle_case}, \
    {                                                                                         \
        "memory", memory_case                                                                 \
    }
