/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A gate at which tasks wait until the test opens it: keeps an executor busy. Zeroed is closed.
 *
 *     struct gate gate = {0};
 *     weir_execute(executor, gate_task, &gate);
 *     assert_true(gate_await_arrivals(&gate, 1));    the executor's thread waits at the gate
 *     ...
 *     gate_open(&gate);
 */
#ifndef WEIR_TEST_GATE_H
#define WEIR_TEST_GATE_H

#include <weir/executor.h>

#include "support/executor/call_counter.h"

struct gate {
    struct call_counter arrivals;
    struct call_counter opened;
};

/* A task function; arg is the gate. Waits at most 10 s, and not at all if cancelled. */
void gate_task(void *arg, int status);

bool gate_await_arrivals(struct gate *gate, uint32_t count);
void gate_open(struct gate *gate);

/* Submits gate_task and returns when the executor's thread waits at the gate. */
void gate_hold(struct gate *gate, weir_executor *executor);

#endif
