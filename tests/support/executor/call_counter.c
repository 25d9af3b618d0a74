/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tally is its own futex. The wake-up does not touch the tally, which may be gone by then.
 */
#include "support/executor/call_counter.h"

#include <weir/base.h>

#include "os/clock.h"
#include "os/futex.h"
#include "support/patience.h"

void tally_task(void *arg, int status)
{
    struct tally *tally = arg;

    atomic_fetch_add(status == 0 ? &tally->run : &tally->cancelled, 1);
    atomic_fetch_add(&tally->calls, 1);
    weir__futex_wake(&tally->calls, INT32_MAX);
}

int tally_call(void *arg, int status, void **ret_value)
{
    (void)ret_value;
    tally_task(arg, status);
    return 0;
}

void tally_add(struct tally *tally)
{
    tally_task(tally, 0);
}

bool tally_await(struct tally *tally, uint32_t calls)
{
    return tally_await_for(tally, calls, PATIENCE_NS);
}

bool tally_await_for(struct tally *tally, uint32_t calls, int64_t time_ns)
{
    int64_t deadline_ns = weir__monotonic_now() + time_ns;
    uint32_t seen;

    while ((seen = atomic_load(&tally->calls)) < calls) {
        if (weir__monotonic_now() >= deadline_ns)
            return false;
        weir__futex_wait(&tally->calls, seen, deadline_ns);
    }
    return true;
}
