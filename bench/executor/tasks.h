/* SPDX-License-Identifier: Apache-2.0 */
/*
 * executor/tasks.h - the part of a competitor that runs tasks: a thread with a queue. What is said
 * in executor/competitor.h holds for it.
 */
#ifndef BENCH_EXECUTOR_TASKS_H
#define BENCH_EXECUTOR_TASKS_H

#include "support/bench.h"

typedef void task_fn(void *arg, int status);

/* Room for one queued task, for those that have the submitter provide it; else it stays unused. */
struct task;

/* A thread that runs tasks, and sleeps when there are none. */
struct loop;

static void loop_start(struct loop *loop, bench_round *round, int cpu);
static void loop_post(struct loop *loop, struct task *task, task_fn *fn, void *arg);
static void loop_stop(struct loop *loop); /* not on its thread; waits for the thread's end */

#endif
