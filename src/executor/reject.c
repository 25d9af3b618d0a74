/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What to do with a task that an executor does not take.
 */
#include <errno.h>

#include <weir/error.h>

#include "executor/executor.h"

#define RETRIES 10
#define PAUSE_NS weir_ms(1)

int weir_reject(weir_executor *executor, weir_task_fn *fn, void *arg, int reason, void *user_data)
{
    (void)executor;
    (void)fn;
    (void)arg;
    (void)user_data;
    return reason;
}

int weir_reject_after_back_off(weir_executor *executor, weir_task_fn *fn, void *arg, int reason,
                               void *user_data)
{
    const weir_back_off *back_off = user_data;
    int retries = back_off != NULL && back_off->retries > 0 ? back_off->retries : RETRIES;
    int64_t pause_ns = back_off != NULL && back_off->pause_ns > 0 ? back_off->pause_ns : PAUSE_NS;

    if (weir_in_executor(executor))
        return reason;
    while (reason == WEIR_EFULL && retries-- > 0) {
        weir__executor_wake(executor); /* it may be full of lazy tasks */
        weir__thread_sleep(pause_ns);
        reason = weir__executor_try(executor, fn, arg, WEIR__NOW);
    }
    return reason == -ENOMEM ? WEIR_EFULL : reason; /* the task at hand needed no memory */
}
