/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs this test program again as an echo server that inherits listeners, and restarts itself on
 * SIGUSR2. It prints its pid when it is ready, sends "STATUS=running" to its manager, and ends on
 * SIGTERM.
 *
 *     char *const *argv = successor_argv(BACKEND_EPOLL);
 */
#ifndef WEIR_TEST_SUCCESSOR_H
#define WEIR_TEST_SUCCESSOR_H

#include "support/loop/backend.h"

/* Environment variable: it sends SIGUSR2 to itself as soon as it is ready. */
#define SUCCESSOR_HASTY "WEIR_TEST_HASTY"

/* Environment variable: it kills itself as soon as it has sent READY=1. */
#define SUCCESSOR_CRASHES "WEIR_TEST_CRASHES"

/* Environment variable: its probation in milliseconds. Default: none. */
#define SUCCESSOR_PROBATION "WEIR_TEST_PROBATION"

/* Environment variable: the SUCCESSOR_PROBATION of its own successors. */
#define SUCCESSOR_NEXT_PROBATION "WEIR_TEST_NEXT_PROBATION"

/* The argv that starts it on such loops; valid until the next call. */
char *const *successor_argv(enum backend_id id);

#endif
