/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests of rings that replace some of weir__uring_system: what it was at the beginning, and how
 * it becomes so again. Included by test_uring*.c alone, which are built only if there are rings.
 */
#ifndef WEIR_TEST_URING_SEAM_H
#define WEIR_TEST_URING_SEAM_H

#include "loop/uring.h"

static weir__uring_calls uring_real;

__attribute__((constructor)) static void uring_seam_begin(void)
{
    uring_real = weir__uring_system;
}

/* Begins each test that replaces something, since one that fails leaves what it has replaced; and
 * ends it. */
static inline void uring_seam_restore(void)
{
    weir__uring_system = uring_real;
    weir__uring_fault = NULL;
}

#endif
