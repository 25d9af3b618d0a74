/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts calls on any thread, by status, and lets the test wait for them. Zeroed is none.
 *
 *     struct call_counter counter = {0};
 *     weir_execute(executor, call_counter_task, &counter);
 *     assert_true(call_counter_await(&counter, 1));
 */
#ifndef WEIR_TEST_CALL_COUNTER_H
#define WEIR_TEST_CALL_COUNTER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct call_counter {
    _Atomic uint32_t run;
    _Atomic uint32_t cancelled;
    _Atomic uint32_t calls; /* both; incremented last, with release */
};

/* A task function; arg is the counter. */
void call_counter_task(void *arg, int status);

/* A function for weir_submit, without a value. */
int call_counter_work(void *arg, int status, void **ret_value);

/* Counts one call. */
void call_counter_add(struct call_counter *counter);

/* Waits until there were `calls` calls; false after 10 s. */
bool call_counter_await(struct call_counter *counter, uint32_t calls);

/* The same with another timeout. */
bool call_counter_await_for(struct call_counter *counter, uint32_t calls, int64_t time_ns);

#endif
