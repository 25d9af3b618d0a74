/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A manual executor whose .wakeup is a tally.
 */
#include "support/executor/manual_fixture.h"

#include <string.h>

#include <weir/error.h>
#include <weir/manual.h>

#include "support/test.h"

static void on_wakeup(void *user_data)
{
    tally_add(user_data);
}

void sleeper_open(struct sleeper *sleeper)
{
    memset(sleeper, 0, sizeof(*sleeper));
    assert_int_equal(weir_manual_clock_create(weir_seconds(1), &sleeper->clock), 0);
    assert_int_equal(weir_manual_create(
                         WEIR_MANUAL_OPTIONS(.clock = weir_manual_clock_clock(sleeper->clock),
                                             .wakeup = on_wakeup, .wakeup_data = &sleeper->wakeups),
                         &sleeper->executor),
                     0);
}

void sleeper_close(struct sleeper *sleeper)
{
    int ran;

    assert_int_equal(weir_executor_shutdown(sleeper->executor, 0, 0), 0);
    do {
        ran = sleeper_run(sleeper);
    } while (ran >= 0);
    assert_int_equal(ran, WEIR_ETERMINATED);
    weir_executor_release(sleeper->executor);
    weir_manual_clock_release(sleeper->clock);
}

int sleeper_run(struct sleeper *sleeper)
{
    return weir_manual_run_once(sleeper->executor, 0, 0);
}

uint32_t sleeper_wakeups(const struct sleeper *sleeper)
{
    return atomic_load(&sleeper->wakeups.calls);
}

void sleeper_slow_task(void *arg, int status)
{
    if (status == 0)
        (void)weir_manual_clock_advance(arg, weir_ms(3));
}
