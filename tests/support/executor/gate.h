/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A gate that tasks wait at until the test opens it, so that an executor is busy for as long as the
 * test likes. Zero is closed, with nobody there.
 *
 *     struct gate gate = {0};
 *     weir_execute(executor, gate_task, &gate);
 *     assert_true(gate_await_arrivals(&gate, 1));    the executor's thread stands at the gate
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

/* A task function; its arg is the gate. A cancelled one does not wait. Nobody waits over 10 s. */
void gate_task(void *arg, int status);

bool gate_await_arrivals(struct gate *gate, uint32_t count);
void gate_open(struct gate *gate);

/* Has the executor's thread come to the gate, and returns when it is there. */
void gate_hold(struct gate *gate, weir_executor *executor);

#endif
