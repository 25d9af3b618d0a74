/* SPDX-License-Identifier: Apache-2.0 */
/*
 * echo/script_round.h - rounds that run a script over many connections: what a request costs the
 * server, and the memory of connections that are idle after one request each.
 */
#include "echo/load.h"
#include "echo/measurement.h"

static inline void script_round_run(struct measurement *self, size_t connections,
                                    const echo_script *script)
{
    echo_load *load;

    echo_server_allow_preemption(&self->server, true);
    load = echo_load_open(self->server.port, connections, script);
    echo_server_allow_preemption(&self->server, false);
    echo_load_run(load, self->warmup_ns, &self->counts);
    measurement_begin(self);
    echo_load_run(load, self->duration_ns, &self->counts);
    measurement_end(self);
    echo_load_close(load);
}

static inline void script_round_memory(struct measurement *self, size_t connections,
                                       const echo_script *script)
{
    int64_t before, after;
    echo_load *first, *load;

    echo_server_allow_preemption(&self->server, true);
    first = echo_load_open(self->server.port, 1, script);
    echo_load_run(first, self->warmup_ns, &self->counts);
    before = echo_server_resident(&self->server);
    load = echo_load_open(self->server.port, connections, script);
    echo_load_drain(load, &self->counts);
    after = echo_server_resident(&self->server);
    bench_report(self->round, "bytes", (double)(after - before) / (double)connections);
    bench_report(self->round, "base", (double)before);
    echo_load_close(load);
    echo_load_close(first);
}
