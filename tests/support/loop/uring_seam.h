/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests that replace functions of weir__uring_system: saves and restores the original. Included
 * by test_uring*.c only, which are built only with liburing.
 */
#ifndef WEIR_TEST_URING_SEAM_H
#define WEIR_TEST_URING_SEAM_H

#include <dirent.h>

#include "loop/uring.h"
#include "support/test.h"

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

/* The smallest ring that there is: everything overflows. */
static inline int uring_setup_tiny(unsigned entries, struct io_uring *ring,
                                   struct io_uring_params *params)
{
    (void)entries;
    params->cq_entries = 4;
    return uring_real.setup(2, ring, params);
}

/* The threads of this process, those of the kernel's workers included. */
static inline unsigned thread_count(void)
{
    DIR *folder = opendir("/proc/self/task");
    unsigned count = 0;

    assert_non_null(folder);
    while (readdir(folder) != NULL)
        count++;
    (void)closedir(folder);
    return count - 2; /* . and .. */
}

#endif
