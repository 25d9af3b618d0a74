/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir_submit: a task with a result, allocated together with its promise.
 */
#include <errno.h>

#include <weir/error.h>

#include "executor/executor.h"
#include "executor/promise.h"

struct submission {
    weir_task task;
    weir_work_fn *work;
    void *arg;
};

static void on_task(void *arg, int status)
{
    struct submission *submission = arg;
    weir_promise *promise = weir__promise_of_extra(submission);
    void *value = NULL;
    int err;

    if (status == 0 && !weir_promise_set_uncancellable(promise))
        status = WEIR_ECANCELED;
    err = submission->work(submission->arg, status, &value);
    if (status < 0)
        err = status;
    (void)weir__promise_complete(promise, err < 0 ? err : 0, err < 0 ? NULL : value);
    weir_promise_release(promise);
}

int weir_submit(weir_executor *executor, weir_work_fn *work, void *arg, weir_promise **ret_promise)
{
    struct submission *submission;
    weir_promise *promise;
    int err;

    if (executor == NULL || work == NULL)
        return -EINVAL;
    promise = weir__promise_create_with(executor, sizeof(*submission));
    if (promise == NULL)
        return -ENOMEM;
    submission = weir__promise_extra(promise);
    weir_task_init(&submission->task, on_task, submission);
    submission->work = work;
    submission->arg = arg;

    weir__promise_retain_new(promise); /* the task's */
    err = weir_execute_task(executor, &submission->task);
    if (err < 0)
        weir_promise_release(promise);
    if (err < 0 || ret_promise == NULL)
        weir_promise_release(promise);
    else
        *ret_promise = promise;
    return err;
}
