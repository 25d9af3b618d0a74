/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A suspended thread ends as soon as nothing is queued and no timer runs.
 */
#include "support/executor/global_executor.h"

#include "executor/executor.h"
#include "support/test.h"

static bool is_running(const weir_executor *executor)
{
    uint32_t state = weir__executor_state(executor);

    return state != WEIR_EXECUTOR_NOT_STARTED && state != WEIR_EXECUTOR_SUSPENDED;
}

void global_executor_stop(void)
{
    weir_executor *executor = weir_executor_global();

    while (is_running(executor)) {
        (void)weir_executor_suspend(executor);
        weir__thread_yield();
    }
    weir__executor_join(executor);
}

__attribute__((constructor)) static void settle_after_each_test(void)
{
    test_before_leak_check(global_executor_stop);
}
