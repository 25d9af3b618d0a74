/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipeline/cases.h - the cases of a handler chain in memory, after a competitor's own part.
 *
 *      read  handlers=10 count=20000      an event that all pass on, and nobody handles
 *      write handlers=10 count=20000      the same outwards
 *
 * They answer with `ns` of each event, and with `each_ns`: what one handler more has cost, from a
 * chain of one to this one.
 */
#ifndef BENCH_PIPELINE_CASES_H
#define BENCH_PIPELINE_CASES_H

#include "support/bench.h"

/* ---- defined by each competitor ---- */

/* Creates a chain of handlers that pass every event on. */
static void chain_open(int64_t handlers);
static void chain_close(void);
static void chain_read(int64_t count);
static void chain_write(int64_t count);

/* ---- */

static double event_ns(int64_t handlers, int64_t count, void (*run)(int64_t count))
{
    int64_t began_ns;
    double ns;

    chain_open(handlers);
    run(count / 8);
    began_ns = bench_now_ns();
    run(count);
    ns = (double)(bench_now_ns() - began_ns) / (double)count;
    chain_close();
    return ns;
}

static void chain_case(bench_round *round, void (*run)(int64_t count))
{
    int64_t handlers = bench_setting(round, "handlers", 10);
    int64_t count = bench_setting(round, "count", 20000);
    double one_ns, all_ns;

    bench_pin(bench_cpu(1));
    one_ns = event_ns(1, count, run);
    all_ns = event_ns(handlers, count, run);
    bench_report(round, "ns", all_ns);
    if (handlers > 1)
        bench_report(round, "each_ns", (all_ns - one_ns) / (double)(handlers - 1));
}

static void read_case(bench_round *round)
{
    chain_case(round, chain_read);
}

static void write_case(bench_round *round)
{
    chain_case(round, chain_write);
}

int main(int argc, char **argv)
{
    static const bench_case cases[] = {{"read", read_case}, {"write", write_case}, {NULL, NULL}};

    return bench_main(argc, argv, cases);
}

#endif
