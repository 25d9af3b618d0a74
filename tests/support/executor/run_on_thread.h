/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a function on another thread while the test waits for it, so that they may share data.
 */
#ifndef WEIR_TEST_RUN_ON_THREAD_H
#define WEIR_TEST_RUN_ON_THREAD_H

#include <weir/executor.h>
#include <weir/thread.h>

/* Runs fn(arg) as a task of the executor. */
void run_on_executor(weir_executor *executor, weir_thread_fn *fn, void *arg);

/* Runs fn(arg) on a thread without an executor. */
void run_on_other_thread(weir_thread_fn *fn, void *arg);

#endif
