/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mixed load: workloads (workload.h) and timers on two loops; two threads that submit tasks;
 * backends that fail and are rebuilt. From time to time everything pauses, the loops are suspended,
 * and growth of memory or descriptors is checked. tests/loop runs it briefly, tests/soak for long.
 */
#ifndef WEIR_TEST_MIXED_LOAD_H
#define WEIR_TEST_MIXED_LOAD_H

#include "support/loop/backend.h"

/* Resources of the process. */
struct footprint {
    size_t resident; /* bytes */
    size_t descriptors;
    size_t blocks; /* counted by support/memory.h */
};

struct mixed_load {
    const struct backend *backend;
    uint64_t seed;
    int64_t duration_ns;
    void (*report)(const struct mixed_load *load); /* called in each pause; NULL = not called */

    /* Totals so far. */
    uint64_t workloads;
    uint64_t timers;
    uint64_t tasks;
    uint64_t failures;            /* of backends */
    uint64_t suspensions;         /* suspensions of both loops */
    struct footprint early, late; /* the maximum of the first half, and of the second */
};

/* Returns what went wrong, or NULL. Only one can run at a time. */
const char *mixed_load_run(struct mixed_load *load);

#endif
