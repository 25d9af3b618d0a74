/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Listeners count last, so that a waiter reads their records.
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

static void write_letter(weir_promise *promise, void *user_data)
{
    (void)promise;
    call_order_task(user_data, 0);
}

void call_order_listen(weir_promise *promise, struct call_order *letters, char letter)
{
    assert_int_equal(
        weir_promise_add_listener(promise, write_letter, call_order_arg(letters, letter)), 0);
}

void count_completion(weir_promise *promise, void *user_data)
{
    (void)promise;
    call_counter_add(user_data);
}

void record_completion(weir_promise *promise, void *user_data)
{
    struct completion_record *record = user_data;

    record->current = weir_executor_current();
    record->result = weir_promise_result(promise);
    call_counter_add(&record->calls);
}
