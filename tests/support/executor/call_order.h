/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks that write a letter each, to check the order of their calls: 'a' if run, 'A' if cancelled.
 * Zeroed is empty.
 *
 *     struct call_order letters = {0};
 *     weir_execute(executor, call_order_task, call_order_arg(&letters, 'a'));
 *     assert_true(call_order_await(&letters, 1));
 *     assert_string_equal(letters.text, "a");
 *
 * Tasks that may run concurrently must not share a call_order.
 */
#ifndef WEIR_TEST_CALL_ORDER_H
#define WEIR_TEST_CALL_ORDER_H

#include <weir/executor.h>

#include "support/executor/call_counter.h"

#define CALL_ORDER_MAX 63

struct call_order {
    char text[CALL_ORDER_MAX + 1];
    struct call_counter written;
    struct letter {
        struct call_order *letters;
        char letter;
    } args[26];
};

/* The arg of the task that writes this letter, a to z. */
void *call_order_arg(struct call_order *letters, char letter);

/* The task function, and a function that submits it. */
void call_order_task(void *arg, int status);
int call_order_execute(struct call_order *letters, weir_executor *executor, char letter);

/* Writes a letter from another task. */
void call_order_write(struct call_order *letters, char letter);

/* Waits until `count` letters are written; false after 10 s. */
bool call_order_await(struct call_order *letters, uint32_t count);

#endif
