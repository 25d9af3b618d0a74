/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The default resolver keeps what it has learned; a test does not leave it to the next one.
 */
#include "os/thread.h"
#include "resolver/system_resolver.h"
#include "support/test.h"

static void end_default(void)
{
    while (!weir__resolver_default_cleanup())
        weir__thread_yield();
}

__attribute__((constructor)) static void end_after_each_test(void)
{
    test_before_leak_check(end_default);
}
