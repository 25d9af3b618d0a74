/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A manual executor on a manual clock, both the test's own, that counts how often it asks to be
 * run.
 */
#ifndef WEIR_TEST_MANUAL_FIXTURE_H
#define WEIR_TEST_MANUAL_FIXTURE_H

#include <weir/clock.h>
#include <weir/executor.h>

#include "support/executor/call_counter.h"

struct sleeper {
    weir_manual_clock *clock;
    weir_executor *executor;
    struct tally wakeups;
};

/* The clock stands at 1 s. The sleeper must not move. */
void sleeper_open(struct sleeper *sleeper);

/* Ends the executor, which cancels what is left. */
void sleeper_close(struct sleeper *sleeper);

/* One run that does not wait and has no budget. */
int sleeper_run(struct sleeper *sleeper);

/* Calls of .wakeup so far. */
uint32_t sleeper_wakeups(const struct sleeper *sleeper);

/* A task that takes 3 ms of the manual clock that is its arg. */
void sleeper_slow_task(void *arg, int status);

#endif
