/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A manual executor whose .wakeup is a counter.
 */
#include "support/executor/manual_fixture.h"

#include <string.h>

#include <weir/error.h>
#include <weir/manual.h>

#include "support/test.h"

static void on_wakeup(void *user_data)
{
    call_counter_add(user_data);
}

void manual_fixture_open(struct manual_fixture *fixture)
{
    memset(fixture, 0, sizeof(*fixture));
    assert_int_equal(weir_manual_clock_create(weir_seconds(1), &fixture->clock), 0);
    assert_int_equal(weir_manual_create(
                         WEIR_MANUAL_OPTIONS(.clock = weir_manual_clock_clock(fixture->clock),
                                             .wakeup = on_wakeup, .wakeup_data = &fixture->wakeups),
                         &fixture->executor),
                     0);
}

void manual_fixture_close(struct manual_fixture *fixture)
{
    int ran;

    assert_int_equal(weir_executor_shutdown(fixture->executor, 0, 0), 0);
    do {
        ran = manual_fixture_run(fixture);
    } while (ran >= 0);
    assert_int_equal(ran, WEIR_ETERMINATED);
    weir_executor_release(fixture->executor);
    weir_manual_clock_release(fixture->clock);
}

int manual_fixture_run(struct manual_fixture *fixture)
{
    return weir_manual_run_once(fixture->executor, 0, 0);
}

uint32_t manual_fixture_wakeups(const struct manual_fixture *fixture)
{
    return atomic_load(&fixture->wakeups.calls);
}

void manual_fixture_slow_task(void *arg, int status)
{
    if (status == 0)
        (void)weir_manual_clock_advance(arg, weir_ms(3));
}
