/* SPDX-License-Identifier: Apache-2.0 */
#include "support/executor/grace.h"

#include "executor/executor.h"
#include "support/timeout.h"

static int64_t as_ever_ns;

__attribute__((constructor)) static void be_patient(void)
{
    as_ever_ns = atomic_exchange(&weir__shutdown_grace_ns, TEST_TIMEOUT_NS);
}

void grace_use_default(void)
{
    atomic_store(&weir__shutdown_grace_ns, as_ever_ns);
}

void grace_use_long(void)
{
    atomic_store(&weir__shutdown_grace_ns, TEST_TIMEOUT_NS);
}
