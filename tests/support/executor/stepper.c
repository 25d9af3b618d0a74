/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A manual executor on a manual clock.
 */
#include "support/executor/stepper.h"

#include <weir/error.h>
#include <weir/manual.h>

#include "support/test.h"

#define TURNS_MAX 1000000

struct stepper stepper_open(void)
{
    struct stepper stepper;

    assert_int_equal(weir_manual_clock_create(weir_seconds(1), &stepper.clock), 0);
    assert_int_equal(
        weir_manual_create(WEIR_MANUAL_OPTIONS(.clock = weir_manual_clock_clock(stepper.clock)),
                           &stepper.executor),
        0);
    return stepper;
}

static void end(weir_executor *executor)
{
    int turns = 0;

    if (weir_executor_state(executor) < WEIR_EXECUTOR_SHUTTING_DOWN)
        assert_int_equal(weir_executor_shutdown(executor, 0, 0), 0);
    while (weir_manual_run_once(executor, 0, 0) != WEIR_ETERMINATED)
        assert_true(++turns < TURNS_MAX);
}

void stepper_close(struct stepper *stepper)
{
    end(stepper->executor);
    weir_executor_release(stepper->executor);
    weir_manual_clock_release(stepper->clock);
}

int stepper_run(struct stepper *stepper)
{
    int ran, total = 0, turns = 0;

    do {
        ran = weir_manual_run_once(stepper->executor, 0, 0);
        if (ran == WEIR_ETERMINATED)
            break;
        assert_true(ran >= 0);
        total += ran;
        assert_true(++turns < TURNS_MAX);
    } while (ran > 0);
    return total;
}

int stepper_advance(struct stepper *stepper, int64_t delta_ns)
{
    assert_int_equal(weir_manual_clock_advance(stepper->clock, delta_ns), 0);
    return stepper_run(stepper);
}
