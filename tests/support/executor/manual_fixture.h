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

struct manual_fixture {
    weir_manual_clock *clock;
    weir_executor *executor;
    struct call_counter wakeups;
};

/* The clock stands at 1 s. The fixture must not move. */
void manual_fixture_open(struct manual_fixture *fixture);

/* Ends the executor, which cancels what is left. */
void manual_fixture_close(struct manual_fixture *fixture);

/* One run that does not wait and has no budget. */
int manual_fixture_run(struct manual_fixture *fixture);

/* Calls of .wakeup so far. */
uint32_t manual_fixture_wakeups(const struct manual_fixture *fixture);

/* A task that takes 3 ms of the manual clock that is its arg. */
void manual_fixture_slow_task(void *arg, int status);

#endif
