/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A task or a thread, and a counter to wait for it.
 */
#include "support/executor/run_on_thread.h"

#include "os/thread.h"
#include "support/executor/call_counter.h"
#include "support/test.h"

struct job {
    weir_thread_fn *fn;
    void *arg;
    struct call_counter done;
};

static void on_task(void *arg, int status)
{
    struct job *job = arg;

    if (status == 0)
        job->fn(job->arg);
    call_counter_task(&job->done, status);
}

void run_on_executor(weir_executor *executor, weir_thread_fn *fn, void *arg)
{
    struct job job = {.fn = fn, .arg = arg};

    assert_int_equal(weir_execute(executor, on_task, &job), 0);
    assert_true(call_counter_await(&job.done, 1));
    assert_int_equal(job.done.run, 1);
}

void run_on_other_thread(weir_thread_fn *fn, void *arg)
{
    weir__thread thread;

    assert_int_equal(weir__thread_start("job", fn, arg, &thread), 0);
    weir__thread_join(&thread);
}
