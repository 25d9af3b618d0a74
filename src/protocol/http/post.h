/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Posting a task to the executor of an object that the task may free, and that may have been what
 * kept the executor.
 */
#ifndef WEIR_PROTOCOL_HTTP_POST_H
#define WEIR_PROTOCOL_HTTP_POST_H

#include <weir/executor.h>

/* As weir_execute_task. The executor is retained meanwhile: the task may run, and the loop may end,
 * before the caller has woken the loop. */
static inline int weir__http_post(weir_executor *executor, weir_task *task)
{
    int err;

    (void)weir_executor_retain(executor);
    err = weir_execute_task(executor, task);
    weir_executor_release(executor);
    return err;
}

#endif
