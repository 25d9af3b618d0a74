/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The counter is its own futex. The wakeup does not access the counter, which may be freed by then.
 */
#include "support/executor/call_counter.h"

#include <weir/base.h>

#include "os/clock.h"
#include "os/futex.h"
#include "support/timeout.h"

void call_counter_task(void *arg, int status)
{
    struct call_counter *counter = arg;

    atomic_fetch_add(status == 0 ? &counter->run : &counter->cancelled, 1);
    atomic_fetch_add(&counter->calls, 1);
    weir__futex_wake(&counter->calls, INT32_MAX);
}

int call_counter_work(void *arg, int status, void **ret_value)
{
    (void)ret_value;
    call_counter_task(arg, status);
    return 0;
}

void call_counter_add(struct call_counter *counter)
{
    call_counter_task(counter, 0);
}

bool call_counter_await(struct call_counter *counter, uint32_t calls)
{
    return call_counter_await_for(counter, calls, TEST_TIMEOUT_NS);
}

bool call_counter_await_for(struct call_counter *counter, uint32_t calls, int64_t time_ns)
{
    int64_t deadline_ns = weir__monotonic_now() + time_ns;
    uint32_t seen;

    while ((seen = atomic_load(&counter->calls)) < calls) {
        if (weir__monotonic_now() >= deadline_ns)
            return false;
        weir__futex_wait(&counter->calls, seen, deadline_ns);
    }
    return true;
}
