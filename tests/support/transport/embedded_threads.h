/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads with an embedded channel each, whose handlers share something.
 */
#ifndef WEIR_TEST_EMBEDDED_THREADS_H
#define WEIR_TEST_EMBEDDED_THREADS_H

#include <weir/embedded.h>

#define EMBEDDED_THREADS 4
#define EMBEDDED_ROUNDS 200

/* What all of them receive in all, "hello" at a time. */
#define EMBEDDED_MESSAGES (EMBEDDED_THREADS * EMBEDDED_ROUNDS)
#define EMBEDDED_BYTES (5 * EMBEDDED_MESSAGES)

/* Each adds the handler to its pipeline, receives, and goes; returns when all have. */
void embedded_threads_run(int (*add)(weir_pipeline *pipeline, void *shared), void *shared);

#endif
