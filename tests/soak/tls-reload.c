/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ./dev soak tls-reload [SWAPS [BACKEND]]: on each backend, or on one, swaps the certificate of a
 * server SWAPS times (default 1000), while 8 clients connect, exchange data and close. No handshake
 * may fail.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/clock.h"
#include "support/executor/group.h"
#include "support/loop/backend.h"
#include "support/tls/certificate_swaps.h"

#define CLIENTS 8

static bool soak(const struct backend *backend, int count)
{
    struct swaps swaps = {.clients = CLIENTS, .count = count};
    int64_t begin_ns = weir__monotonic_now();
    bool good;

    if (backend->type == NULL ||
        weir_group_create(WEIR_GROUP_OPTIONS(.io = backend->io, .threads = 2), &swaps.group) < 0) {
        printf("%-10s cannot be had here\n", backend->name);
        return true;
    }
    good = swaps_run(&swaps);
    printf("%-10s %" PRIu64 " swaps, %" PRIu64 " handshakes, %" PRIu64 " resumed, %" PRIu64
           " and %" PRIu64 " by each certificate, %" PRIu64 " failed, in %.1f s: %s%s\n",
           backend->name, swaps.stats.reloads, swaps.visits, swaps.resumed, swaps.by_leaf[0],
           swaps.by_leaf[1], swaps.failed + swaps.stats.failed,
           (double)(weir__monotonic_now() - begin_ns) / 1e9, good ? "ok" : "FAILED ", swaps.why);
    (void)fflush(stdout);
    end_group(swaps.group);
    return good;
}

int main(int argc, char **argv)
{
    int count = argc > 1 ? atoi(argv[1]) : 1000;
    const char *only = argc > 2 ? argv[2] : NULL;
    bool was_meant = false;

    for (int i = 0; i < BACKEND_KINDS; i++) {
        if (only != NULL && strcmp(backends[i].name, only) != 0)
            continue;
        was_meant = true;
        if (!soak(&backends[i], count))
            return 1;
    }
    if (!was_meant)
        printf("there is no backend %s\n", only);
    return was_meant ? 0 : 2;
}
