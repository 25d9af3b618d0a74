/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rejection policies.
 */
#include <errno.h>

#include <weir/error.h>

#include "executor/executor.h"

#define RETRIES 10
#define DELAY_NS weir_ms(1)

int weir_reject(weir_executor *executor, weir_task_fn *fn, void *arg, int reason, void *user_data)
{
    (void)executor;
    (void)fn;
    (void)arg;
    (void)user_data;
    return reason;
}

int weir_reject_after_backoff(weir_executor *executor, weir_task_fn *fn, void *arg, int reason,
                              void *user_data)
{
    const weir_backoff *backoff = user_data;
    int retries = backoff != NULL && backoff->retries > 0 ? backoff->retries : RETRIES;
    int64_t delay_ns = backoff != NULL && backoff->delay_ns > 0 ? backoff->delay_ns : DELAY_NS;

    if (weir_in_executor(executor))
        return reason;
    while (reason == WEIR_EFULL && retries-- > 0) {
        weir__executor_wake(executor); /* the queue may be full of lazy tasks */
        weir__thread_sleep(delay_ns);
        reason = weir__executor_try_execute(executor, fn, arg, WEIR__NOW);
    }
    return reason == -ENOMEM ? WEIR_EFULL : reason; /* the original task needed no memory */
}
