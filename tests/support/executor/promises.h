/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Promises for tests, and listeners that record their calls.
 */
#ifndef WEIR_TEST_PROMISES_H
#define WEIR_TEST_PROMISES_H

#include <weir/promise.h>

#include "support/executor/call_order.h"

weir_promise *new_promise(weir_executor *executor);

/* For run_on_other_thread. */
void cancel_promise(void *promise);

/* Adds a listener that writes the letter. */
void call_order_listen(weir_promise *promise, struct call_order *letters, char letter);

/* A listener; user_data is a struct call_counter. */
void count_completion(weir_promise *promise, void *user_data);

/* The call of a listener. */
struct completion_record {
    weir_executor *current;
    int result;
    struct call_counter calls;
};

/* A listener; user_data is a struct completion_record. */
void record_completion(weir_promise *promise, void *user_data);

#endif
