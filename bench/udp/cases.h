/* SPDX-License-Identifier: Apache-2.0 */
/*
 * udp/cases.h - the case of a UDP echo server, after its own part (echo/competitor.h).
 *
 *      echo sockets=1 size=64 depth=1     a closed loop: `depth` datagrams in flight per socket
 *
 * and ms=200 warmup_ms=40 cpu=1 load_cpu=1. It answers as the cases of echo/cases.h do.
 */
#include "echo/measurement.h"
#include "udp/load.h"

static void echo_case(bench_round *round)
{
    size_t sockets = (size_t)bench_setting(round, "sockets", 1);
    size_t size = (size_t)bench_setting(round, "size", 64);
    size_t depth = (size_t)bench_setting(round, "depth", 1);
    struct measurement *self = measurement_open(round);
    udp_load *load = udp_load_open(self->server.port, sockets, size, depth);

    udp_load_run(load, self->warmup_ns, &self->counts);
    measurement_begin(self);
    udp_load_run(load, self->duration_ns, &self->counts);
    measurement_end(self);
    udp_load_close(load);
    measurement_close(self);
}

#define UDP_CASES         \
    {                     \
        "echo", echo_case \
    }
