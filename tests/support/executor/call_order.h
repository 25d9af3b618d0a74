/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks that write a letter each, to see in which order they were called: 'a' if run, 'A' if
 * cancelled. All zero is nothing written.
 *
 *     struct letters letters = {0};
 *     weir_execute(executor, letters_task, letters_arg(&letters, 'a'));
 *     assert_true(letters_await(&letters, 1));
 *     assert_string_equal(letters.text, "a");
 *
 * Tasks that may run at the same time do not share one.
 */
#ifndef WEIR_TEST_CALL_ORDER_H
#define WEIR_TEST_CALL_ORDER_H

#include <weir/executor.h>

#include "support/executor/call_counter.h"

#define LETTERS_MAX 63

struct letters {
    char text[LETTERS_MAX + 1];
    struct tally written;
    struct letter {
        struct letters *letters;
        char letter;
    } args[26];
};

/* The arg of the task that writes this letter, one of a to z. */
void *letters_arg(struct letters *letters, char letter);

/* A task function; and what submits it. */
void letters_task(void *arg, int status);
int letters_execute(struct letters *letters, weir_executor *executor, char letter);

/* Writes from within a task of the test's own. */
void letters_write(struct letters *letters, char letter);

/* Waits until so many are written; false if that takes longer than 10 s. */
bool letters_await(struct letters *letters, uint32_t count);

#endif
