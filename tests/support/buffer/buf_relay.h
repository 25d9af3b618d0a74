/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A relay: four threads in a circle make buffers and pass them on, each buffer for a while, slicing
 * and growing some; whoever has one last releases it. A fifth thread looks at the pool all the
 * time. What a buffer holds must be what was put into it, and in the end all memory must have come
 * home. tests/buffer runs short ones, tests/soak long ones.
 */
#ifndef WEIR_TEST_BUFFER_BUF_RELAY_H
#define WEIR_TEST_BUFFER_BUF_RELAY_H

#include <stdint.h>

struct relay {
    uint64_t seed;
    uint64_t buffers;    /* it ends when each thread has made so many, 0 = any number, ... */
    int64_t duration_ns; /* ... or after this time, 0 = whenever */

    /* What has happened. */
    uint64_t made;
    uint64_t passed;
    uint64_t released;
};

/* Returns what went wrong, NULL if nothing did. The calling thread has no buffers. */
const char *relay_run(struct relay *relay);

#endif
