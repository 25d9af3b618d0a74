/* SPDX-License-Identifier: Apache-2.0 */
/*
 * executor/weir_group.h - a group as the line of a round asks for it.
 *
 * Settings: io=none|epoll|uring|poll|blocking is what it waits in, strategy=select|adaptive how,
 * threads=N the number of executors, 1 by default.
 */
#ifndef BENCH_EXECUTOR_WEIR_GROUP_H
#define BENCH_EXECUTOR_WEIR_GROUP_H

#include <weir/group.h>

#include "support/bench.h"

static inline void group_configure(weir_group_options *options, bench_round *round)
{
    static const char *const ios[] = {"none", "epoll", "uring", "poll", "blocking", NULL};
    static const enum weir_io io[] = {WEIR_IO_NONE, WEIR_IO_EPOLL, WEIR_IO_URING, WEIR_IO_POLL,
                                      WEIR_IO_BLOCKING};
    static const char *const strategies[] = {"select", "adaptive", NULL};
    static const enum weir_strategy strategy[] = {WEIR_STRATEGY_SELECT, WEIR_STRATEGY_ADAPTIVE};

    *options = *WEIR_GROUP_OPTIONS();
    options->threads = (int)bench_setting(round, "threads", 1);
    options->io = io[bench_choice(round, "io", ios)];
    options->strategy = strategy[bench_choice(round, "strategy", strategies)];
}

static inline weir_group *group_start(weir_group_options *options, int cpu)
{
    weir_group *group;

    if (cpu >= 0) {
        options->pin = true;
        options->cpus = &cpu;
        options->cpu_count = 1;
    }
    bench_require(weir_group_create(options, &group) == 0, "weir_group_create");
    return group;
}

#endif
