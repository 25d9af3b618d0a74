/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two futex operations. FUTEX_WAIT_BITSET is used because it takes an absolute deadline.
 */
#include "os/futex.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <weir/base.h>

#include "os/virtual_os.h"

/* From linux/futex.h, which musl toolchains do not always have. */
#define FUTEX_WAKE_PRIVATE (1 | 128)
#define FUTEX_WAIT_BITSET_PRIVATE (9 | 128)
#define FUTEX_BITSET_MATCH_ANY 0xffffffffu

void weir__futex_wait(_Atomic uint32_t *word, uint32_t expected, int64_t deadline_ns)
{
    struct timespec deadline;
    struct timespec *timeout = NULL;

    if (weir__os_is_virtual()) {
        weir__virtual_os_set->futex_wait(word, expected, deadline_ns);
        return;
    }
    if (deadline_ns != WEIR_NEVER) {
        /* The kernel rejects a negative deadline: the call returns immediately, as for any in the
         * past. */
        deadline.tv_sec = (time_t)(deadline_ns / 1000000000);
        deadline.tv_nsec = (long)(deadline_ns % 1000000000);
        timeout = &deadline;
    }
    (void)syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, expected, timeout, NULL,
                  FUTEX_BITSET_MATCH_ANY);
}

void weir__futex_wake(_Atomic uint32_t *word, int count)
{
    if (weir__os_is_virtual()) {
        weir__virtual_os_set->futex_wake(word, count);
        return;
    }
    (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}
