/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The time that a test waits for an expected event. It only expires if something is wrong, so it is
 * long: on a loaded machine, under a sanitizer, a thread may get no CPU for seconds. Half of it is
 * less than the default connect timeout of 30 s.
 */
#ifndef WEIR_TEST_TIMEOUT_H
#define WEIR_TEST_TIMEOUT_H

#include <weir/base.h>

#define TEST_TIMEOUT_NS weir_seconds(40)

#endif
