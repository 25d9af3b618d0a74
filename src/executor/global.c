/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The global executor: a plain executor in static memory that suspends itself when idle.
 *
 * exit() waits for its thread, so that leak checkers find neither its memory nor that of its last
 * tasks. Nothing else depends on it: a thread that takes longer, because it is busy or waits for
 * timers, is abandoned, and a forked child has no thread to wait for.
 */
#include "executor/executor.h"

#include <stdlib.h>

#include "base/poison.h"
#include "os/clock.h"
#include "os/process.h"
#include "os/virtual_os.h"

#define IDLE_NS weir_seconds(1)
#define EXIT_TIMEOUT_NS weir_ms(100)
#define VALGRIND_TIMEOUT_NS weir_seconds(2) /* it runs one thread at a time, and slowly */

static weir_executor global;
static weir__once once = WEIR__ONCE_INIT;
static pid_t creator;

static bool can_end(void)
{
    return creator == weir__process_kernel_id() && weir__current != &global;
}

static void end_thread(void)
{
    int64_t timeout_ns = weir__runs_under_valgrind() ? VALGRIND_TIMEOUT_NS : EXIT_TIMEOUT_NS;

    if (can_end() && weir_executor_suspend(&global) == 0)
        weir__executor_join_until(&global, weir__monotonic_now() + timeout_ns);
}

static void init(void)
{
    const weir__executor_options options = {
        .name = "weir-global",
        .clock = weir_clock_monotonic(),
        .rejected = weir_reject,
        .task_cap_ns = weir_ms(10),
        .cpu = -1,
        .idle_ns = IDLE_NS,
        .permanent = true,
    };

    weir__executor_init(&global, &weir__plain_type, &options);
    creator = weir__process_kernel_id();
    (void)atexit(end_thread);
}

/* Which wake-ups are timed: a simulated world depends on nothing that was before it. */
static void forget_wakeups(void)
{
    atomic_store_explicit(&global.wakeups_made, 0, memory_order_relaxed);
}

weir_executor *weir_executor_global(void)
{
    weir__once_run(&once, init);
    if (weir__os_is_virtual())
        weir__virtual_os_at_end(forget_wakeups);
    return &global;
}

void weir__executor_global_reap(void)
{
    if (creator == 0)
        return; /* never used */
    weir__mutex_lock(&global.lifecycle.lock);
    weir__executor_threads_reap(&global.lifecycle.threads);
    weir__mutex_unlock(&global.lifecycle.lock);
}
