/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bustle: on two loops workloads come and go (workload.h), with timers among them; two threads
 * submit tasks; now and then a backend fails and is made anew; and every so often all is quiet, the
 * loops are suspended, and it is seen whether memory or descriptors have become more. tests/loop
 * has a short one, tests/soak long ones.
 */
#ifndef WEIR_TEST_MIXED_LOAD_H
#define WEIR_TEST_MIXED_LOAD_H

#include "support/loop/backend.h"

/* What the process holds. */
struct footprint {
    size_t resident; /* bytes */
    size_t descriptors;
    size_t blocks; /* of memory, as far as support/memory.h counts it */
};

struct mixed_load {
    const struct backend *backend;
    uint64_t seed;
    int64_t duration_ns;
    void (*report)(const struct mixed_load *load); /* when all is quiet; NULL = to nobody */

    /* What there was so far. */
    uint64_t workloads;
    uint64_t timers;
    uint64_t tasks;
    uint64_t failures;            /* of backends */
    uint64_t suspensions;         /* suspensions of both loops */
    struct footprint early, late; /* the largest of the first half, and of the second */
};

/* Returns what went wrong, NULL if nothing did. One at a time. */
const char *mixed_load_run(struct mixed_load *load);

#endif
