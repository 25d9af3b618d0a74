/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ./dev soak buffer [SECONDS [SEED]]: four threads pass buffers around for SECONDS (default 60), in
 * rounds of ten seconds. After each round all memory must have been returned. Round n has the seed
 * SEED + n.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <weir/base.h>
#include <weir/pool.h>

#include "os/pages.h"
#include "os/random.h"
#include "support/buffer/buf_relay.h"

#define RELAY_SECONDS 10

static const char *run(struct relay *relay)
{
    const char *fault = relay_run(relay);

    printf("seed %" PRIu64 ": %" PRIu64 " buffers made, %" PRIu64 " times passed on\n", relay->seed,
           relay->made, relay->passed);
    (void)fflush(stdout);
    if (fault == NULL && relay->made != relay->released)
        fault = "buffers were lost";
    if (fault == NULL && weir__pages_mapped() > 0)
        fault = "memory is mapped although all threads have ended";
    return fault;
}

int main(int argc, char **argv)
{
    long left = argc > 1 ? strtol(argv[1], NULL, 10) : 60;
    uint64_t seed = weir__random_process_seed();

    if (left <= 0 || (argc > 2 && weir__random_parse_seed(argv[2], &seed) < 0)) {
        fprintf(stderr, "usage: %s [SECONDS [SEED]]\n", argv[0]);
        return 2;
    }
    for (; left > 0; left -= RELAY_SECONDS, seed++) {
        struct relay relay = {
            .seed = seed,
            .duration_ns = weir_seconds(left < RELAY_SECONDS ? left : RELAY_SECONDS),
        };
        const char *fault = run(&relay);

        if (fault != NULL) {
            fprintf(stderr, "seed %" PRIu64 ": %s\n", seed, fault);
            return EXIT_FAILURE;
        }
    }
    return EXIT_SUCCESS;
}
