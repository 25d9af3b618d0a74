/* SPDX-License-Identifier: Apache-2.0 */
/*
 * This test program once more, as a server that echoes, takes the listeners that it is handed, and
 * replaces itself on SIGUSR2. It prints its number when it is ready, tells its manager
 * "STATUS=running", and ends on SIGTERM.
 *
 *     char *const *argv = successor_argv(BACKEND_EPOLL);
 */
#ifndef WEIR_TEST_SUCCESSOR_H
#define WEIR_TEST_SUCCESSOR_H

#include "support/loop/backend.h"

/* In its environment: it sends the signal to itself as soon as it is ready. */
#define SUCCESSOR_HASTY "WEIR_TEST_HASTY"

/* In its environment: it kills itself as soon as it has said that it is ready. */
#define SUCCESSOR_CRASHES "WEIR_TEST_CRASHES"

/* In its environment: the probation of the process that replaces it, in milliseconds. Default: no
 * probation. */
#define SUCCESSOR_PROBATION "WEIR_TEST_PROBATION"

/* What starts it, on such loops; valid until the next call. */
char *const *successor_argv(enum backend_id id);

#endif
