/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A gate is two counters: arrivals, and openings.
 */
#include "support/executor/gate.h"

#include "support/test.h"

void gate_task(void *arg, int status)
{
    struct gate *gate = arg;

    call_counter_task(&gate->arrivals, status);
    if (status == 0)
        (void)call_counter_await(&gate->opened, 1);
}

bool gate_await_arrivals(struct gate *gate, uint32_t count)
{
    return call_counter_await(&gate->arrivals, count);
}

void gate_open(struct gate *gate)
{
    call_counter_add(&gate->opened);
}

void gate_hold(struct gate *gate, weir_executor *executor)
{
    assert_int_equal(weir_execute(executor, gate_task, gate), 0);
    assert_true(gate_await_arrivals(gate, 1));
}
