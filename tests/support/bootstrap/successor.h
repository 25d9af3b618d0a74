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

/* What starts it, on such loops; valid until the next call. */
char *const *successor_argv(enum backend_id id);

#endif
