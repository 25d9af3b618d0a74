/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Listeners note first and tally last, so who awaited the tally reads what they noted.
 */
#include "support/executor/promises.h"

#include "support/test.h"

weir_promise *new_promise(weir_executor *executor)
{
    weir_promise *promise;

    assert_int_equal(weir_promise_create(executor, &promise), 0);
    return promise;
}

void cancel_promise(void *promise)
{
    (void)weir_promise_cancel(promise);
}

static void hear_letter(weir_promise *promise, void *user_data)
{
    (void)promise;
    letters_task(user_data, 0);
}

void listen_letter(weir_promise *promise, struct letters *letters, char letter)
{
    assert_int_equal(weir_promise_add_listener(promise, hear_letter, letters_arg(letters, letter)),
                     0);
}

void hear_tally(weir_promise *promise, void *user_data)
{
    (void)promise;
    tally_add(user_data);
}

void hear_witness(weir_promise *promise, void *user_data)
{
    struct witness *witness = user_data;

    witness->current = weir_executor_current();
    witness->result = weir_promise_result(promise);
    tally_add(&witness->calls);
}
