/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process's own executor: a plain one in static memory that suspends itself when idle.
 */
#include "executor/executor.h"

#define IDLE_NS weir_seconds(1)

static weir_executor global;
static weir__once once = WEIR__ONCE_INIT;

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
}

weir_executor *weir_executor_global(void)
{
    weir__once_run(&once, init);
    return &global;
}
