/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ./dev soak websocket [VISITS [CLIENTS [SEED [BACKEND]]]]: on each backend, or on one, VISITS
 * (default 20000) connections, CLIENTS (default 200) at a time, as support/protocol/websocket/
 * ws_crowd.h describes. At the end no buffer may be in use.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/pool.h>

#include "os/clock.h"
#include "support/loop/backend.h"
#include "support/protocol/websocket/ws_crowd.h"

static uint64_t bytes_in_use(void)
{
    weir_pool_stats stats;

    weir_pool_read_stats(&stats);
    return stats.in_use_bytes;
}

static bool soak(const struct backend *backend, unsigned visits, unsigned clients, uint64_t seed)
{
    static struct ws_crowd crowd;
    int64_t begin_ns = weir__monotonic_now();
    weir_group *group;
    uint64_t left;
    bool good;

    if (backend->type == NULL ||
        weir_group_create(WEIR_GROUP_OPTIONS(.io = backend->io, .threads = 2), &group) < 0) {
        printf("%-10s cannot be had here\n", backend->name);
        return true;
    }
    crowd = (struct ws_crowd){
        .group = group, .clients = clients, .visits = visits, .max_message = 100000, .seed = seed};
    good = ws_crowd_run(&crowd);
    weir_group_release(group);
    left = bytes_in_use();
    printf("%-10s %u visits, %" PRIu64 " messages of %.1f MiB in %.1f s, %" PRIu64
           " bytes in use at the end: %s\n",
           backend->name, visits, atomic_load(&crowd.messages),
           (double)atomic_load(&crowd.bytes) / (1 << 20),
           (double)(weir__monotonic_now() - begin_ns) / 1e9, left,
           good && left == 0 ? "ok" : "FAILED");
    (void)fflush(stdout);
    return good && left == 0;
}

int main(int argc, char **argv)
{
    unsigned visits = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 20000;
    unsigned clients = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 200;
    uint64_t seed = argc > 3 ? strtoull(argv[3], NULL, 10) : (uint64_t)weir__monotonic_now();
    const char *only = argc > 4 ? argv[4] : NULL;
    bool was_meant = false;

    printf("seed %" PRIu64 "\n", seed);
    for (int i = 0; i < BACKEND_COUNT; i++) {
        if (only != NULL && strcmp(backends[i].name, only) != 0)
            continue;
        was_meant = true;
        if (!soak(&backends[i], visits, clients, seed))
            return 1;
    }
    if (!was_meant)
        printf("there is no backend %s\n", only);
    return was_meant ? 0 : 2;
}
