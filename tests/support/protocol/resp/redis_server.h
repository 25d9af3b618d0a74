/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A real redis-server on a Unix socket in a temporary folder, without persistence.
 */
#ifndef WEIR_TEST_REDIS_SERVER_H
#define WEIR_TEST_REDIS_SERVER_H

#include <sys/types.h>

struct redis_server {
    char folder[32];
    char address[64]; /* "unix:..." */
    pid_t pid;
    int output;
};

/* Returns when the server accepts connections. Skips the test without redis-server. */
void redis_server_start(struct redis_server *server);
void redis_server_stop(struct redis_server *server);

/* Kills the server with SIGKILL. */
void redis_server_kill(struct redis_server *server);

#endif
