/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plain type with a destroy function.
 */
#include "support/executor/counted_executor.h"

weir__executor_type doomed_type;

static struct tally destroyed;

static void on_destroy(weir_executor *executor)
{
    (void)executor;
    tally_add(&destroyed);
}

struct tally *doomed_open(void)
{
    doomed_type = weir__plain_type;
    doomed_type.destroy = on_destroy;
    atomic_store(&destroyed.calls, 0);
    return &destroyed;
}
