/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends the test on an errand: a function runs on another thread, and the test waits for it, so
 * that the two may share anything.
 */
#ifndef WEIR_TEST_RUN_ON_THREAD_H
#define WEIR_TEST_RUN_ON_THREAD_H

#include <weir/executor.h>
#include <weir/thread.h>

/* Runs fn(arg) as a task of the executor. */
void run_on_executor(weir_executor *executor, weir_thread_fn *fn, void *arg);

/* Runs fn(arg) on a thread that is nobody's. */
void run_on_other_thread(weir_thread_fn *fn, void *arg);

#endif
