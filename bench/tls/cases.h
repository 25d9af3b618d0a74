/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tls/cases.h - the cases of a TLS server, after its own part (echo/competitor.h).
 *
 *      visit  clients=16     connect, handshake, one request, close at both ends
 *      talk   clients=64     lasting connections with repeated requests
 *      memory clients=10000  idle clients after one request each
 *
 * and of all: version=13|12 (of TLS; 0: in clear) answer=0 (bytes; 0: as many as the request, which
 * has 64) tickets=0|1 resumed=0|1 ms=200 warmup_ms=40 cpu=1 load_cpu=1. They answer with
 *
 *      ns      CPU time of the server for each visit, or each answer
 *      bytes   of memory: what the server has grown by for each client
 *
 * and the rest of echo/cases.h.
 */
#include "echo/measurement.h"
#include "tls/crowd.h"

struct tls_round {
    struct measurement *measurement;
    tls_lines lines;
    tls_crowd *crowd;
    size_t clients;
};

static void tls_round_open(struct tls_round *self, bench_round *round, int64_t clients)
{
    int64_t version = bench_setting(round, "version", 13);
    int64_t answer = bench_setting(round, "answer", 0);
    bool resumed = bench_setting(round, "resumed", 0) != 0;
    bool tickets = bench_setting(round, "tickets", 0) != 0 || resumed;

    self->clients = (size_t)bench_setting(round, "clients", clients);
    self->measurement = measurement_open(round);
    tls_lines_init(&self->lines, version, tickets);
    self->lines.resumes = resumed;
    self->crowd =
        tls_crowd_open(&self->lines, self->measurement->server.port, self->clients, (size_t)answer);
}

static void tls_round_close(struct tls_round *self)
{
    tls_crowd_close(self->crowd);
    tls_lines_deinit(&self->lines);
    measurement_close(self->measurement);
}

static void visit_case(bench_round *round)
{
    struct tls_round self;

    tls_round_open(&self, round, 16);
    tls_crowd_visit(self.crowd, self.measurement->warmup_ns, &self.measurement->counts);
    measurement_begin(self.measurement);
    tls_crowd_visit(self.crowd, self.measurement->duration_ns, &self.measurement->counts);
    measurement_end(self.measurement);
    tls_round_close(&self);
}

static void talk_case(bench_round *round)
{
    struct tls_round self;

    tls_round_open(&self, round, 64);
    tls_crowd_settle(self.crowd);
    tls_crowd_talk(self.crowd, self.measurement->warmup_ns, &self.measurement->counts);
    measurement_begin(self.measurement);
    tls_crowd_talk(self.crowd, self.measurement->duration_ns, &self.measurement->counts);
    measurement_end(self.measurement);
    tls_round_close(&self);
}

static void memory_case(bench_round *round)
{
    struct tls_round self;
    int64_t before, after;

    tls_round_open(&self, round, 10000);
    before = echo_server_resident(&self.measurement->server);
    tls_crowd_settle(self.crowd);
    after = echo_server_resident(&self.measurement->server);
    bench_report(round, "bytes", (double)(after - before) / (double)self.clients);
    bench_report(round, "base", (double)before);
    tls_round_close(&self);
}

#define TLS_CASES                               \
    {"visit", visit_case}, {"talk", talk_case}, \
    {                                           \
        "memory", memory_case                   \
    }
