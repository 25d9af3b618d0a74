/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long a test waits for what must come. Nobody waits so long unless something is wrong, so it
 * is ample: a machine that runs a dozen other tests beside, under a sanitizer, may leave a thread
 * without a CPU for seconds. Half of it is less than the 30 s that connecting may take by default.
 */
#ifndef WEIR_TEST_TIMEOUT_H
#define WEIR_TEST_TIMEOUT_H

#include <weir/base.h>

#define TEST_TIMEOUT_NS weir_seconds(40)

#endif
