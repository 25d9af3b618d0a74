/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts calls from any thread, by status, and lets the test wait for them. Zero is none.
 *
 *     struct tally tally = {0};
 *     weir_execute(executor, tally_task, &tally);
 *     assert_true(tally_await(&tally, 1));
 */
#ifndef WEIR_TEST_CALL_COUNTER_H
#define WEIR_TEST_CALL_COUNTER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct tally {
    _Atomic uint32_t run;
    _Atomic uint32_t cancelled;
    _Atomic uint32_t calls; /* both, counted last: who sees it sees what came before the call */
};

/* A task function; its arg is the tally. */
void tally_task(void *arg, int status);

/* The same for weir_submit; there is no value. */
int tally_call(void *arg, int status, void **ret_value);

/* Counts one call that was no task. */
void tally_add(struct tally *tally);

/* Waits until there were `calls` of them; false if that takes longer than 10 s. */
bool tally_await(struct tally *tally, uint32_t calls);

/* The same for so long. */
bool tally_await_for(struct tally *tally, uint32_t calls, int64_t time_ns);

#endif
