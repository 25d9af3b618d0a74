/* SPDX-License-Identifier: Apache-2.0 */
/*
 * executor/weir_tasks.h - a competitor's threads that run tasks, on weir: a group of one executor.
 *
 * Settings: those of executor/weir_group.h; own=1 submits by weir_execute_task, with tasks in the
 * submitter's memory, instead of weir_execute.
 */
#ifndef BENCH_EXECUTOR_WEIR_TASKS_H
#define BENCH_EXECUTOR_WEIR_TASKS_H

#include <stdalign.h>

#include "executor/tasks.h"
#include "executor/weir_group.h"

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
