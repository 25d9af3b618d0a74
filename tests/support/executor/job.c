/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job runs on the test's own thread, so it may assert.
 */
#include "support/executor/job.h"

#include <weir/error.h>
#include <weir/timer.h>

#include "support/test.h"

#define START_NS weir_seconds(1) /* a stepper's */

int64_t job_now(const struct stepper *stepper)
{
    const weir_clock *clock = weir_manual_clock_clock(stepper->clock);

    return clock->now(clock) - START_NS;
}

void job_task(void *arg, int status)
{
    struct job *job = arg;

    if (status < 0) {
        assert_int_equal(status, WEIR_ECANCELED);
        job->cancellations++;
        return;
    }
    assert_int_equal(job->cancellations, 0);
    if (job->runs < JOB_RUNS_MAX)
        job->at_ns[job->runs] = job_now(job->stepper);
    job->runs++;
    assert_int_equal(weir_manual_clock_advance(job->stepper->clock, job->takes_ns), 0);
    if (job->during != NULL)
        job->during(job);
}

void job_schedule(void *arg)
{
    struct job *job = arg;

    IGNORE_RESULT(weir_schedule(job->stepper->executor, 10, job_task, job, &job->promise));
}

void assert_job_ran(const struct job *job, unsigned runs, unsigned cancellations)
{
    assert_int_equal(job->runs, runs);
    assert_int_equal(job->cancellations, cancellations);
}
