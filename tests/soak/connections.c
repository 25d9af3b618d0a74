/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ./dev soak connections [COUNT]: on each backend as many connections as the limit of descriptors
 * allows, each with both of its ends in this process, are held open; each is pinged twice, and none
 * may be lost.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "support/executor/group.h"
#include "support/loop/backend.h"
#include "support/transport/echo.h"

#define SPARE 200 /* descriptors for everything else */
#define PING 32

static unsigned as_many_as_possible(void)
{
    struct rlimit limits = {0};

    (void)getrlimit(RLIMIT_NOFILE, &limits);
    limits.rlim_cur = limits.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limits);
    return (unsigned)(limits.rlim_cur > 1 << 20 ? 1 << 19 : (limits.rlim_cur - SPARE) / 2);
}

static bool run(struct echo *echo, weir_group *far, weir_group *near)
{
    return echo_open(echo, far, near) == 0 && echo_exchange(echo, PING) &&
           echo_exchange(echo, PING) && echo->closed.calls == 0 && echo_close(echo) &&
           echo->received == 2ull * PING * echo->connections && echo->wrong == 0 &&
           echo->errors == 0;
}

static bool soak(const struct backend *backend, unsigned connections)
{
    const weir_group_options *options =
        WEIR_GROUP_OPTIONS(.io = backend->io, .threads = 1, .uring_receive = backend->ring_receive);
    struct echo echo = {.connections = connections, .seed = 1};
    int64_t begin_ns = weir__monotonic_now();
    weir_group *far, *near;
    bool good;

    if (backend->type == NULL || weir_group_create(options, &far) < 0 ||
        weir_group_create(options, &near) < 0) {
        printf("%-10s cannot be had here\n", backend->name);
        return true;
    }
    good = run(&echo, far, near);
    printf("%-10s %u connections in %.1f s: %s\n", backend->name, connections,
           (double)(weir__monotonic_now() - begin_ns) / 1e9, good ? "none lost" : "FAILED");
    (void)fflush(stdout);
    if (good) {
        end_group(near);
        end_group(far);
    }
    return good;
}

int main(int argc, char **argv)
{
    unsigned most = as_many_as_possible();
    unsigned connections = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : most;

    for (int backend = 0; backend < BACKEND_COUNT; backend++)
        if (!soak(&backends[backend], connections < most ? connections : most))
            return 1;
    return 0;
}
