/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stress test of the pool: four threads in a ring create buffers and pass them on for some hops,
 * slicing and growing some; the last one releases the buffer. A fifth thread reads the stats of the
 * pool all the time. The contents of buffers must not change, and in the end all memory must be
 * returned. tests/buffer runs short ones, tests/soak long ones.
 */
#ifndef WEIR_TEST_BUFFER_BUF_RELAY_H
#define WEIR_TEST_BUFFER_BUF_RELAY_H

#include <stdint.h>

struct relay {
    uint64_t seed;
    uint64_t buffers; /* ends when each thread has created this number of buffers, 0 = any, ... */
    int64_t duration_ns; /* ... or after this time, 0 = no limit */

    /* Results. */
    uint64_t made;
    uint64_t passed;
    uint64_t released;
};

/* Returns a description of the fault, or NULL. The calling thread must hold no buffers. */
const char *relay_run(struct relay *relay);

#endif
