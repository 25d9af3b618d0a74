/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ./dev soak unix [MIB [DATAGRAMS [SEED]]]: on each backend, echoes MIB (default 1024) through 50
 * Unix streams and as much through seqpacket sockets, with writes of random sizes and readers that
 * pause; compares every byte. Then sends DATAGRAMS (default 1,000,000), none of which may be lost.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "os/clock.h"
#include "support/executor/group.h"
#include "support/loop/backend.h"
#include "support/transport/echo.h"
#include "support/transport/flood.h"

#define CONNECTIONS 50

static weir_group *open_group(const struct backend *backend)
{
    weir_group *group;
    int err = weir_group_create(WEIR_GROUP_OPTIONS(.io = backend->io, .threads = 1), &group);

    return err == 0 ? group : NULL;
}

static double seconds_since(int64_t begin_ns)
{
    return (double)(weir__monotonic_now() - begin_ns) / 1e9;
}

static bool soak_connections(const struct backend *backend, weir_group *far, weir_group *near,
                             enum weir_kind kind, size_t share, uint64_t seed)
{
    static struct echo echo;
    int64_t begin_ns = weir__monotonic_now();
    char place[64];
    bool good;

    (void)snprintf(place, sizeof(place), "unix:@weir-soak-%d", (int)getpid());
    echo = (struct echo){.place = place,
                         .kind = kind,
                         .connections = CONNECTIONS,
                         .low_mark = 32768,
                         .high_mark = 65536,
                         .pauses = true,
                         .seed = seed};
    good = echo_open(&echo, far, near) == 0 && echo_exchange(&echo, share) && echo_close(&echo) &&
           echo.wrong == 0 && echo.errors == 0;
    printf("%-10s %-10s %8.1f MiB in %5.1f s, nobody waited longer than %3.0f ms: %s\n",
           backend->name, kind == WEIR_KIND_STREAM ? "stream" : "seqpacket",
           (double)echo.received / (1 << 20), seconds_since(begin_ns),
           (double)echo.longest_wait_ns / 1e6, good ? "ok" : "FAILED");
    (void)fflush(stdout);
    return good;
}

static bool soak_datagrams(const struct backend *backend, weir_group *far, weir_group *near,
                           uint32_t count)
{
    static struct flood flood;
    int64_t begin_ns = weir__monotonic_now();
    bool good;

    flood = (struct flood){.is_unix = true, .count = count};
    good = flood_run(&flood, far, near) == 0 && flood_is_good(&flood) && flood.dropped == 0;
    printf("%-10s %-10s %8" PRIu32 " of %" PRIu32 " in %5.1f s: %s\n", backend->name, "datagram",
           (uint32_t)flood.received, count, seconds_since(begin_ns), good ? "ok" : "FAILED");
    (void)fflush(stdout);
    return good;
}

/* What was started and did not end is left alone: the program ends with it. */
static bool soak(const struct backend *backend, size_t share, uint32_t datagrams, uint64_t seed)
{
    weir_group *far = open_group(backend), *near = open_group(backend);

    if (far == NULL || near == NULL) {
        printf("%-10s cannot be had here\n", backend->name);
        return true;
    }
    if (!soak_connections(backend, far, near, WEIR_KIND_STREAM, share, seed) ||
        !soak_connections(backend, far, near, WEIR_KIND_SEQPACKET, share, seed) ||
        !soak_datagrams(backend, far, near, datagrams))
        return false;
    end_group(near);
    end_group(far);
    return true;
}

int main(int argc, char **argv)
{
    size_t bytes = (argc > 1 ? strtoull(argv[1], NULL, 10) : 1024) << 20;
    uint32_t datagrams = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 1000000;
    uint64_t seed = argc > 3 ? strtoull(argv[3], NULL, 10) : (uint64_t)weir__monotonic_now();

    printf("seed %" PRIu64 "\n", seed);
    for (int i = 0; i <= BACKEND_BLOCKING; i++)
        if (!soak(&backends[i], bytes / CONNECTIONS, datagrams, seed))
            return 1;
    return 0;
}
