/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An executor and a clock that move only when the test says so, on the test's own thread: what runs
 * when is exact, and its callbacks may assert.
 *
 *     struct stepper stepper = stepper_open();
 *     weir_schedule(stepper.executor, weir_ms(5), NULL, ...);
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

/* The clock stands at 1 s. */
struct stepper stepper_open(void);

/* Ends the executor, which cancels what is left. */
void stepper_close(struct stepper *stepper);

/* Runs what there is to run, until nothing is left or the executor has ended; returns how much that
 * was. */
int stepper_run(struct stepper *stepper);

/* Moves the clock, then runs. */
int stepper_advance(struct stepper *stepper, int64_t delta_ns);

#endif
