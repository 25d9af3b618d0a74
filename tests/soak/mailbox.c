/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ./dev soak mailbox [ROUNDS [STEPS [SEED]]]: the stress test of mailboxes, by default 200 rounds
 * of a million steps. Round n has the seed SEED + n; one round is repeated by
 * ./dev soak mailbox 1 1000000 SEED.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <weir/log.h>

#include "os/clock.h"
#include "os/random.h"
#include "support/executor/mailbox_stress.h"

static void keep_quiet(void *user_data, enum weir_log_level level, const char *subsystem,
                       const char *object, const char *message)
{
    (void)user_data;
    (void)level;
    (void)subsystem;
    (void)object;
    (void)message; /* that executors end is what this is about */
}

static uint32_t argument(int argc, char **argv, int index, uint32_t otherwise)
{
    return argc > index ? (uint32_t)strtoul(argv[index], NULL, 10) : otherwise;
}

int main(int argc, char **argv)
{
    uint32_t rounds = argument(argc, argv, 1, 200), steps = argument(argc, argv, 2, 1000000);
    uint64_t seed = weir__random_process_seed();
    int64_t start_ns = weir__monotonic_now();

    if (rounds == 0 || steps < 100 || (argc > 3 && weir__random_parse_seed(argv[3], &seed) < 0)) {
        fprintf(stderr, "usage: %s [ROUNDS [STEPS [SEED]]]\n", argv[0]);
        return 2;
    }
    weir_log_set(keep_quiet, NULL);
    for (uint32_t round = 0; round < rounds; round++) {
        struct mailbox_stress stress = {.seed = seed + round, .steps = steps};
        const char *fault = mailbox_stress_run(&stress);

        printf("round %" PRIu32 " of %" PRIu32 ": seed %" PRIu64 ", %" PRIu32 " mails, %" PRIu32
               " calls for flags, %" PRIu32 " with errors, %" PRIu32 " moves, %" PRIu32
               " holds, %.0f s\n",
               round + 1, rounds, stress.seed, stress.mails, stress.flags, stress.failed,
               stress.moves, stress.holds, (double)(weir__monotonic_now() - start_ns) / 1e9);
        (void)fflush(stdout);
        if (fault != NULL) {
            fprintf(stderr, "seed %" PRIu64 ", %" PRIu32 " steps: %s\n", stress.seed, steps, fault);
            return EXIT_FAILURE;
        }
    }
    return EXIT_SUCCESS;
}
