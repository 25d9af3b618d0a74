/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A group of one plain executor, for tests of executors.
 *
 *     struct solo solo = solo_open(NULL);
 *     weir_execute(solo.executor, ...);
 *     solo_close(&solo);
 */
#ifndef WEIR_TEST_SINGLE_EXECUTOR_H
#define WEIR_TEST_SINGLE_EXECUTOR_H

#include <weir/clock.h>
#include <weir/group.h>

struct solo {
    weir_group *group;
    weir_executor *executor;
    weir_manual_clock *clock; /* NULL = whatever the options say */
};

/* .threads and .io need not be set. NULL: every default. */
struct solo solo_open(const weir_group_options *options);

/* Its clock stands at `now_ns` until the test moves it. */
struct solo solo_open_at(int64_t now_ns);

/* Shuts it down without a quiet period and waits for its end, which must be a good one. */
void solo_end(struct solo *solo);

/* The same, and then it is gone. */
void solo_close(struct solo *solo);

/* Has it run a task; suspends it. */
void solo_run_one(struct solo *solo);
void solo_suspend(struct solo *solo);

/*
 * Waits until the executor's thread has gone to sleep until `deadline_ns` of its clock (WEIR_NEVER:
 * until woken); false if it has not within 10 s. What was submitted before must have run.
 */
bool solo_await_sleep(const struct solo *solo, int64_t deadline_ns);

/* Waits until the executor is in that state; false if it is not within 10 s. */
bool solo_await_state(const struct solo *solo, enum weir_executor_state state);

weir_executor_stats solo_stats(const struct solo *solo);

#endif
