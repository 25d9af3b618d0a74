/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A real redis-server, on a Unix socket in a folder of its own, with nothing kept on disk.
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

/* Returns when it accepts connections. Skips the test if there is no redis-server here. */
void redis_server_start(struct redis_server *server);
void redis_server_stop(struct redis_server *server);

/* At once, whatever it is doing. */
void redis_server_kill(struct redis_server *server);

#endif
