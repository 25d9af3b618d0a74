/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tally is counted after the letter is there, so who awaited it reads all that was written.
 */
#include "support/executor/call_order.h"

#include <ctype.h>
#include <string.h>

void *letters_arg(struct letters *letters, char letter)
{
    struct letter *arg = &letters->args[letter - 'a'];

    arg->letters = letters;
    arg->letter = letter;
    return arg;
}

void letters_write(struct letters *letters, char letter)
{
    size_t length = strlen(letters->text);

    if (length < LETTERS_MAX)
        letters->text[length] = letter;
    tally_add(&letters->written);
}

void letters_task(void *arg, int status)
{
    struct letter *letter = arg;

    letters_write(letter->letters,
                  status == 0 ? letter->letter : (char)toupper((unsigned char)letter->letter));
}

bool letters_await(struct letters *letters, uint32_t count)
{
    return tally_await(&letters->written, count);
}

int letters_execute(struct letters *letters, weir_executor *executor, char letter)
{
    return weir_execute(executor, letters_task, letters_arg(letters, letter));
}
