/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A task that submits itself.
 */
#include "support/executor/busy_task.h"

void busy_task_run(void *arg, int status)
{
    struct busy_task *busy = arg;
    bool stop = atomic_load(&busy->stop);
    int err = stop ? 0 : weir_execute(busy->executor, busy_task_run, busy);

    if (stop || err < 0) {
        busy->refusal = err;
        call_counter_task(&busy->stopped, status);
    }
}
