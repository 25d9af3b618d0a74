/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A task on a stepper that records when it runs, and takes a given time.
 *
 *     struct job job = {.stepper = &stepper, .takes_ns = 5};
 *     weir_schedule(stepper.executor, 100, job_task, &job, NULL);
 *     stepper_advance(&stepper, 100);
 *     assert_job_ran(&job, 1, 0);
 */
#ifndef WEIR_TEST_JOB_H
#define WEIR_TEST_JOB_H

#include "support/executor/stepper.h"

#define JOB_RUNS_MAX 16

struct job {
    struct stepper *stepper;
    int64_t takes_ns;
    unsigned runs;
    int64_t at_ns[JOB_RUNS_MAX]; /* since the stepper's start */
    unsigned cancellations;
    void (*during)(struct job *job); /* called by each run; may be NULL */
    weir_promise *promise;
};

void job_task(void *arg, int status);

/* For run_on_other_thread: schedules the job in 10 ns. */
void job_schedule(void *arg);

/* The time since the stepper's start. */
int64_t job_now(const struct stepper *stepper);

void assert_job_ran(const struct job *job, unsigned runs, unsigned cancellations);

#endif
