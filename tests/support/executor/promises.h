/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Promises to test with, and listeners that tell what they heard.
 */
#ifndef WEIR_TEST_PROMISES_H
#define WEIR_TEST_PROMISES_H

#include <weir/promise.h>

#include "support/executor/call_order.h"

weir_promise *new_promise(weir_executor *executor);

/* An errand. */
void cancel_promise(void *promise);

/* Adds a listener that writes the letter. */
void listen_letter(weir_promise *promise, struct letters *letters, char letter);

/* A listener; its user_data is a struct tally. */
void hear_tally(weir_promise *promise, void *user_data);

/* What a listener saw, and where. */
struct witness {
    weir_executor *current;
    int result;
    struct tally calls;
};

/* A listener; its user_data is a struct witness. */
void hear_witness(weir_promise *promise, void *user_data);

#endif
