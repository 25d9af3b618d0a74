/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ./dev soak echo [MIB [SEED [BACKEND]]]: on each pair of backends, a thread per channel among
 * them, or on one backend, echoes MIB (default 64) over 200 connections, with writes of random
 * sizes, readers that pause, and marks of 8 and 16 KiB. Compares every byte; the memory that the
 * server holds for a connection must be bounded.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/clock.h"
#include "support/executor/group.h"
#include "support/loop/backend.h"
#include "support/transport/echo.h"

#define CONNECTIONS 200
#define LOW_MARK 8192
#define HIGH_MARK 16384
#define RECEIVE_MAX 32768
#define COST 208 /* of a message, besides its bytes */

static weir_group *open_group(const struct backend *backend)
{
    weir_group *group;
    int err = backend->type == NULL
                  ? -1
                  : weir_group_create(WEIR_GROUP_OPTIONS(.io = backend->io, .threads = 1), &group);

    return err == 0 ? group : NULL;
}

static bool run(struct echo *echo, weir_group *far, weir_group *near, size_t share)
{
    return echo_open(echo, far, near) == 0 && echo_exchange(echo, share) && echo_close(echo) &&
           echo->wrong == 0 && echo->errors == 0 &&
           echo->most_pending <= HIGH_MARK + RECEIVE_MAX + COST;
}

/* What was started and did not end is left alone: the program ends with it. */
static bool soak_pair(const struct backend *server, const struct backend *client, size_t share,
                      uint64_t seed)
{
    static struct echo echo;
    weir_group *far = open_group(server), *near = open_group(client);
    int64_t begin_ns = weir__monotonic_now();
    bool good;

    if (far == NULL || near == NULL) {
        printf("%-10s - %-10s cannot be had here\n", server->name, client->name);
        return true;
    }
    echo = (struct echo){.connections = CONNECTIONS,
                         .low_mark = LOW_MARK,
                         .high_mark = HIGH_MARK,
                         .receive_max = RECEIVE_MAX,
                         .socket_buffer = 8192,
                         .pauses = true,
                         .seed = seed};
    good = run(&echo, far, near, share);
    printf("%-10s - %-10s %6.1f MiB in %5.1f s, at most %" PRId64 " bytes held for one: %s\n",
           server->name, client->name, (double)echo.received / (1 << 20),
           (double)(weir__monotonic_now() - begin_ns) / 1e9, echo.most_pending,
           good ? "ok" : "FAILED");
    (void)fflush(stdout);
    if (!good)
        return false;
    end_group(near);
    end_group(far);
    return true;
}

static bool is_meant(const char *only, int server, int client)
{
    return only == NULL || (server == client && strcmp(backends[server].name, only) == 0);
}

int main(int argc, char **argv)
{
    const char *only = argc > 3 ? argv[3] : NULL;
    size_t bytes = (argc > 1 ? strtoull(argv[1], NULL, 10) : 64) << 20;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : (uint64_t)weir__monotonic_now();
    bool was_meant = false;

    printf("seed %" PRIu64 "\n", seed);
    for (int server = 0; server < BACKEND_KINDS; server++)
        for (int client = 0; client < BACKEND_KINDS; client++) {
            if (!is_meant(only, server, client))
                continue;
            was_meant = true;
            if (!soak_pair(&backends[server], &backends[client], bytes / CONNECTIONS, seed))
                return 1;
        }
    if (!was_meant)
        printf("there is no backend %s\n", only);
    return was_meant ? 0 : 2;
}
