/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ./dev soak udp [COUNT]: on each backend, sends COUNT datagrams (default 1,000,000) from one
 * channel to another: as fast as possible, so that many are dropped; no faster than they are
 * received; and in segments. Each has a number and derived bytes, and the missing ones must equal
 * the drops that the receiving socket reports.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "os/clock.h"
#include "support/executor/group.h"
#include "support/loop/backend.h"
#include "support/transport/flood.h"

static weir_group *open_group(const struct backend *backend)
{
    weir_group *group;
    int err = backend->type == NULL
                  ? -1
                  : weir_group_create(WEIR_GROUP_OPTIONS(.io = backend->io, .threads = 1), &group);

    return err == 0 ? group : NULL;
}

/* What was started and did not end is left alone: the program ends with it. */
static bool soak(const struct backend *backend, const char *manner, struct flood flood)
{
    static struct flood running;
    weir_group *far = open_group(backend), *near = open_group(backend);
    int64_t begin_ns = weir__monotonic_now();
    int err;

    if (far == NULL || near == NULL) {
        printf("%-10s cannot be had here\n", backend->name);
        return true;
    }
    running = flood;
    err = flood_run(&running, far, near);
    printf("%-10s %-10s %9" PRIu32 " sent = %9" PRIu32 " received + %9" PRIu32
           " dropped, in %5.1f s: %s\n",
           backend->name, manner, running.count, running.received, running.dropped,
           (double)(weir__monotonic_now() - begin_ns) / 1e9,
           err == 0 && flood_is_good(&running) ? "ok" : "FAILED");
    (void)fflush(stdout);
    if (err < 0 || !flood_is_good(&running))
        return false;
    end_group(near);
    end_group(far);
    return true;
}

int main(int argc, char **argv)
{
    uint32_t count = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 1000000;

    for (int i = 0; i <= BACKEND_BLOCKING; i++)
        if (!soak(&backends[i], "hasty", (struct flood){.count = count}) ||
            !soak(&backends[i], "patient", (struct flood){.count = count, .patient = true}) ||
            !soak(&backends[i], "segments", (struct flood){.count = count, .segments = 16}))
            return 1;
    return 0;
}
