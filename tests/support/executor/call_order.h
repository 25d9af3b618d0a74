/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks that write a letter each, to see in which order they were called: 'a' if run, 'A' if
 * cancelled. All zero is nothing written.
 *
 *     struct call_order letters = {0};
 *     weir_execute(executor, call_order_task, call_order_arg(&letters, 'a'));
 *     assert_true(call_order_await(&letters, 1));
 *     assert_string_equal(letters.text, "a");
 *
 * Tasks that may run at the same time do not share one.
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

/* The arg of the task that writes this letter, one of a to z. */
void *call_order_arg(struct call_order *letters, char letter);

/* A task function; and what submits it. */
void call_order_task(void *arg, int status);
int call_order_execute(struct call_order *letters, weir_executor *executor, char letter);

/* Writes from within a task of the test's own. */
void call_order_write(struct call_order *letters, char letter);

/* Waits until so many are written; false if that takes longer than 10 s. */
bool call_order_await(struct call_order *letters, uint32_t count);

#endif
