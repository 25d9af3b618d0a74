/* SPDX-License-Identifier: Apache-2.0 */
/*
 * executor/weir_tasks.h - a competitor's threads that run tasks, on weir: a group of one executor.
 *
 * Settings: io=none|epoll|uring|poll is what it waits in, strategy=select|adaptive how, receive=
 * poll|ring how a ring receives; own=1 submits by weir_execute_task, with tasks in the submitter's
 * memory, instead of weir_execute.
 */
#ifndef BENCH_EXECUTOR_WEIR_TASKS_H
#define BENCH_EXECUTOR_WEIR_TASKS_H

#include <stdalign.h>

#include <weir/group.h>

#include "executor/tasks.h"

static void group_configure(weir_group_options *options, bench_round *round)
{
    static const char *const ios[] = {"none", "epoll", "uring", "poll", NULL};
    static const enum weir_io io[] = {WEIR_IO_NONE, WEIR_IO_EPOLL, WEIR_IO_URING, WEIR_IO_POLL};
    static const char *const strategies[] = {"select", "adaptive", NULL};
    static const enum weir_strategy strategy[] = {WEIR_STRATEGY_SELECT, WEIR_STRATEGY_ADAPTIVE};
    static const char *const ways[] = {"poll", "ring", NULL};

    weir_group_options_init(options);
    options->threads = 1;
    options->io = io[bench_choice(round, "io", ios)];
    options->strategy = strategy[bench_choice(round, "strategy", strategies)];
    options->uring_receive = bench_choice(round, "receive", ways) == 1;
}

static weir_group *group_start(weir_group_options *options, int cpu)
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

struct task {
    alignas(BENCH_LINE) weir_task weir;
};

struct loop {
    weir_group *group;
    weir_executor *executor;
    bool own_tasks;
};

static inline void loop_post(struct loop *loop, struct task *task, task_fn *fn, void *arg)
{
    int err;

    if (loop->own_tasks) {
        weir_task_init(&task->weir, fn, arg);
        err = weir_execute_task(loop->executor, &task->weir);
    } else {
        err = weir_execute(loop->executor, fn, arg);
    }
    bench_require(err == 0, "weir_execute");
}

static void loop_start(struct loop *loop, bench_round *round, int cpu)
{
    weir_group_options options;

    group_configure(&options, round);
    loop->group = group_start(&options, cpu);
    loop->executor = weir_group_next(loop->group);
    loop->own_tasks = bench_setting(round, "own", 0) != 0;
}

static void loop_stop(struct loop *loop)
{
    weir_group_release(loop->group);
}

#endif
