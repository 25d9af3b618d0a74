/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/seams.h"

#include "base/log_limit.h"
#include "executor/executor.h"
#include "loop/readiness.h"
#ifdef WEIR_WITH_URING
#include "loop/uring.h"
#endif

weir__backend_fn *weir__backend_set;

static void set_fiber(uintptr_t number)
{
    weir__fiber = number;
}

static void begin(void)
{
    (void)weir_executor_global();
    (void)weir_executor_immediate();
    weir__log_limits_reset();
}

static const weir__io_type readiness = {
    .name = "readiness",
    .dispatch_pending = weir__readiness_pending,
    WEIR__READINESS_SLOTS,
};

const weir__seams *weir__seams_get(void)
{
    static const weir__seams seams = {
        .system = &weir__sys,
        .virtual_os = &weir__virtual_os_set,
        .backend = &weir__backend_set,
        .set_fiber = set_fiber,
        .memory = weir__memory_get,
        .begin = begin,
        .end = weir__virtual_os_end,
        .reap_global = weir__executor_global_reap,
        .random_init = weir__random_init,
        .random_next = weir__random_next,
        .random_below = weir__random_below,
        .stack_take = weir__stack_copy_take,
        .stack_unwind = weir__stack_copy_unwind,
        .symbol_find = weir__symbol_find,
        .symbol_describe = weir__symbol_describe,
        .readiness = &readiness,
        .wanted = weir__readiness_wanted,
        .deliver = weir__readiness_deliver,
        .receive = weir__readiness_receive,
        .check_clock = weir__io_check_clock,
#ifdef WEIR_WITH_URING
        .uring = &weir__io_uring,
        .uring_calls = &weir__uring_system,
#endif
    };

    return &seams;
}
