/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The global executor's thread holds memory for a second after its last task. Before a test's leaks
 * are counted it is made to end, which it does as soon as nothing is queued and no timer runs.
 */
#include "executor/executor.h"
#include "support/test.h"

static bool is_running(const weir_executor *executor)
{
    uint32_t state = weir__executor_state(executor);

    return state != WEIR_EXECUTOR_NOT_STARTED && state != WEIR_EXECUTOR_SUSPENDED;
}

static void settle_global(void)
{
    weir_executor *executor = weir_executor_global();

    while (is_running(executor)) {
        (void)weir_executor_suspend(executor);
        weir__thread_yield();
    }
    weir__executor_join(executor);
}

__attribute__((constructor)) static void register_settle_global(void)
{
    test_before_leak_check(settle_global);
}
