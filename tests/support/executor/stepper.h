/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A manual executor and a manual clock on the test's own thread: the time of each run is exact, and
 * callbacks may assert.
 *
 *     struct stepper stepper = stepper_open();
 *     weir_schedule(stepper.executor, weir_ms(5), ...);
 *     stepper_advance(&stepper, weir_ms(5));
 *     stepper_close(&stepper);
 */
#ifndef WEIR_TEST_STEPPER_H
#define WEIR_TEST_STEPPER_H

#include <weir/clock.h>
#include <weir/executor.h>

struct stepper {
    weir_manual_clock *clock;
    weir_executor *executor;
};

/* The clock starts at 1 s. */
struct stepper stepper_open(void);

/* Releases the executor, which cancels the remaining tasks. */
void stepper_close(struct stepper *stepper);

/* Runs until there is no work or the executor has ended. Returns the number of tasks and timers. */
int stepper_run(struct stepper *stepper);

/* Advances the clock, then runs. */
int stepper_advance(struct stepper *stepper, int64_t delta_ns);

#endif
