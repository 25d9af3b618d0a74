/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A manual executor on a manual clock, which counts the calls of `.wakeup`.
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

/* The clock starts at 1 s. The fixture must not be moved. */
void manual_fixture_open(struct manual_fixture *fixture);

/* Releases the executor, which cancels the remaining tasks. */
void manual_fixture_close(struct manual_fixture *fixture);

/* One run that does not wait, without a budget. */
int manual_fixture_run(struct manual_fixture *fixture);

/* The number of calls of .wakeup. */
uint32_t manual_fixture_wakeups(const struct manual_fixture *fixture);

/* A task that advances the manual clock, its arg, by 3 ms. */
void manual_fixture_slow_task(void *arg, int status);

#endif
