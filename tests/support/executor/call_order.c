/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts after writing the letter, so that a waiter reads all letters.
 */
#include "support/executor/call_order.h"

#include <ctype.h>
#include <string.h>

void *call_order_arg(struct call_order *letters, char letter)
{
    struct letter *arg = &letters->args[letter - 'a'];

    arg->letters = letters;
    arg->letter = letter;
    return arg;
}

void call_order_write(struct call_order *letters, char letter)
{
    size_t length = strlen(letters->text);

    if (length < CALL_ORDER_MAX)
        letters->text[length] = letter;
    call_counter_add(&letters->written);
}

void call_order_task(void *arg, int status)
{
    struct letter *letter = arg;

    call_order_write(letter->letters,
                     status == 0 ? letter->letter : (char)toupper((unsigned char)letter->letter));
}

bool call_order_await(struct call_order *letters, uint32_t count)
{
    return call_counter_await(&letters->written, count);
}

int call_order_execute(struct call_order *letters, weir_executor *executor, char letter)
{
    return weir_execute(executor, call_order_task, call_order_arg(letters, letter));
}
