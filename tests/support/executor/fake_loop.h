/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An executor that counts as an event loop, without I/O.
 */
#ifndef WEIR_TEST_FAKE_LOOP_H
#define WEIR_TEST_FAKE_LOOP_H

#include <weir/executor.h>

weir_executor *fake_loop_open(void);

/* Shuts it down and waits for its termination. */
void fake_loop_close(weir_executor *loop);

#endif
