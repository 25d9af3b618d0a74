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
    weir_manual_clock *clock; /* NULL = whatever the options say */
};

/* .threads and .io need not be set. NULL: every default. */
struct single_executor single_executor_open(const weir_group_options *options);

/* Its clock stands at `now_ns` until the test moves it. */
struct single_executor single_executor_open_at(int64_t now_ns);

/* Shuts it down without a quiet period and waits for its end, which must be a good one. */
void single_executor_end(struct single_executor *single);

/* The same, and then it is gone. */
void single_executor_close(struct single_executor *single);

/* Has it run a task; suspends it. */
void single_executor_run_one(struct single_executor *single);
void single_executor_suspend(struct single_executor *single);

/*
 * Waits until the executor's thread has gone to sleep until `deadline_ns` of its clock (WEIR_NEVER:
 * until woken); false if it has not within 10 s. What was submitted before must have run.
 */
bool single_executor_await_sleep(const struct single_executor *single, int64_t deadline_ns);

/* Waits until the executor is in that state; false if it is not within 10 s. */
bool single_executor_await_state(const struct single_executor *single,
                                 enum weir_executor_state state);

weir_executor_stats single_executor_stats(const struct single_executor *single);

#endif
