/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads with an embedded channel each, whose handlers share something.
 */
#ifndef WEIR_TEST_EMBEDDED_THREADS_H
#define WEIR_TEST_EMBEDDED_THREADS_H

#include <weir/embedded.h>

#define CROWD_THREADS 4
#define CROWD_ROUNDS 200

/* What all of them receive in all, "hello" at a time. */
#define CROWD_MESSAGES (CROWD_THREADS * CROWD_ROUNDS)
#define CROWD_BYTES (5 * CROWD_MESSAGES)

/* Each adds the handler to its pipeline, receives, and goes; returns when all have. */
void crowd_talk(int (*add)(weir_pipeline *pipeline, void *shared), void *shared);

#endif
