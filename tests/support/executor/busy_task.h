/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A task that submits itself again, so that its executor's queue is never empty.
 *
 *     struct treadmill treadmill = {.executor = executor};
 *     weir_execute(executor, treadmill_task, &treadmill);
 *     ...
 *     assert_true(tally_await(&treadmill.stopped, 1));
 */
#ifndef WEIR_TEST_BUSY_TASK_H
#define WEIR_TEST_BUSY_TASK_H

#include <weir/executor.h>

#include "support/executor/call_counter.h"

struct treadmill {
    weir_executor *executor;
    _Atomic bool stop;
    int refusal; /* the error that has stopped it, or 0 */
    struct tally stopped;
};

void treadmill_task(void *arg, int status);

#endif
