/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plain executor whose type has is_loop set.
 */
#include "support/executor/fake_loop.h"

#include "executor/executor.h"
#include "support/test.h"

weir_executor *fake_loop_open(void)
{
    static weir__executor_type type;
    weir_executor *loop;

    if (type.name == NULL) {
        type = weir__plain_type;
        type.name = "loop";
        type.is_loop = true;
    }
    assert_int_equal(weir__executor_create(&type,
                                           &(const weir__executor_options){
                                               .name = "loop",
                                               .clock = weir_clock_monotonic(),
                                               .rejected = weir_reject,
                                               .task_cap_ns = WEIR_NEVER,
                                               .cpu = -1,
                                               .idle_ns = WEIR_NEVER,
                                           },
                                           &loop),
                     0);
    return loop;
}

void fake_loop_close(weir_executor *loop)
{
    assert_int_equal(weir_executor_shutdown(loop, 0, TEST_TIMEOUT_NS), 0);
    assert_int_equal(weir_executor_await_termination(loop, TEST_TIMEOUT_NS), 0);
    weir__executor_join(loop);
    weir_executor_release(loop);
}
