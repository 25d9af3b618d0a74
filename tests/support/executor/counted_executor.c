/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plain type with a destroy function.
 */
#include "support/executor/counted_executor.h"

weir__executor_type counted_executor_type;

static struct call_counter destroyed;

static void on_destroy(weir_executor *executor)
{
    (void)executor;
    call_counter_add(&destroyed);
}

struct call_counter *counted_executor_open(void)
{
    counted_executor_type = weir__plain_type;
    counted_executor_type.destroy = on_destroy;
    atomic_store(&destroyed.calls, 0);
    return &destroyed;
}
