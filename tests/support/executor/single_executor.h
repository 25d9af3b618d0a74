/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A group of one plain executor, for tests of executors.
 *
 *     struct single_executor single = single_executor_open(NULL);
 *     weir_execute(single.executor, ...);
 *     single_executor_close(&single);
 */
#ifndef WEIR_TEST_SINGLE_EXECUTOR_H
#define WEIR_TEST_SINGLE_EXECUTOR_H

#include <weir/clock.h>
#include <weir/group.h>

struct single_executor {
    weir_group *group;
    weir_executor *executor;
    weir_manual_clock *clock; /* NULL: the clock of the options */
};

/* .threads and .io need not be set. NULL: all defaults. */
struct single_executor single_executor_open(const weir_group_options *options);

/* With a manual clock that starts at `now_ns`. */
struct single_executor single_executor_open_at(int64_t now_ns);

/* Shuts it down without a quiet period and asserts that it terminates without an error. */
void single_executor_end(struct single_executor *single);

/* The same, and releases it. */
void single_executor_close(struct single_executor *single);

/* Runs a task and waits for it; suspends the executor and waits for that. */
void single_executor_run_one(struct single_executor *single);
void single_executor_suspend(struct single_executor *single);

/*
 * Waits until the executor's thread sleeps until `deadline_ns` of its clock (WEIR_NEVER: until
 * woken); false after 10 s. All submitted tasks must have run.
 */
bool single_executor_await_sleep(const struct single_executor *single, int64_t deadline_ns);

/* Waits until the executor is in this state; false after 10 s. */
bool single_executor_await_state(const struct single_executor *single,
                                 enum weir_executor_state state);

weir_executor_stats single_executor_stats(const struct single_executor *single);

#endif
