/* SPDX-License-Identifier: Apache-2.0 */
/*
 * No test but those of the leak records watches its messages: which ones are sampled is chance, and
 * a record is one more allocation that a test would count, or fail.
 */
#include <weir/pool.h>

#include "support/test.h"

static void watch_nothing(void)
{
    weir_leak_set_listener(NULL, NULL);
    (void)weir_leak_set_level(WEIR_LEAK_OFF);
}

__attribute__((constructor)) static void register_watch_nothing(void)
{
    watch_nothing();
    test_before_leak_check(watch_nothing);
}
