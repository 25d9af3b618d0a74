/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A task that submits itself again, so that the queue of its executor is never empty.
 *
 *     struct busy_task busy = {.executor = executor};
 *     weir_execute(executor, busy_task_run, &busy);
 *     ...
 *     assert_true(call_counter_await(&busy.stopped, 1));
 */
#ifndef WEIR_TEST_BUSY_TASK_H
#define WEIR_TEST_BUSY_TASK_H

#include <weir/executor.h>

#include "support/executor/call_counter.h"

struct busy_task {
    weir_executor *executor;
    _Atomic bool stop;
    int refusal; /* the error of the submission that stopped it, or 0 */
    struct call_counter stopped;
};

void busy_task_run(void *arg, int status);

#endif
