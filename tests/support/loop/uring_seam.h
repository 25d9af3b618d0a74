/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests that replace functions of weir__uring_system: saves and restores the original. Included
 * by test_uring*.c only, which are built only with liburing.
 */
#ifndef WEIR_TEST_URING_SEAM_H
#define WEIR_TEST_URING_SEAM_H

#include "loop/uring.h"

static weir__uring_calls uring_real;

__attribute__((constructor)) static void uring_seam_begin(void)
{
    uring_real = weir__uring_system;
}

/*
 * Called at the start of each test that replaces something, because a failed test does not restore
 * it; and at its end.
 */
static inline void uring_seam_restore(void)
{
    weir__uring_system = uring_real;
    weir__uring_fault = NULL;
}

#endif
