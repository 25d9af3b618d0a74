/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ./dev soak executor [ROUNDS [TASKS [SEED]]]: the stress test of executors, by default 200 rounds
 * of a million tasks. Round n has the seed SEED + n; one round is repeated by
 * ./dev soak executor 1 1000000 SEED.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <weir/log.h>

#include "os/clock.h"
#include "os/random.h"
#include "support/executor/submit_stress.h"

static void keep_quiet(void *user_data, enum weir_log_level level, const char *subsystem,
                       const char *object, const char *message)
{
    (void)user_data;
    (void)level;
    (void)subsystem;
    (void)object;
    (void)message; /* that tasks were cancelled is what this is about */
}

static void report_progress(uint32_t round, uint32_t rounds, const struct submit_stress *stress,
                            int64_t start_ns)
{
    printf("%sround %" PRIu32 " of %" PRIu32 ": seed %" PRIu64 ", %" PRIu32 " run, %" PRIu32
           " cancelled, %" PRIu32 " refused, %.0f s%s",
           isatty(STDOUT_FILENO) ? "\r\033[K" : "", round, rounds, stress->seed, stress->run,
           stress->cancelled, stress->refused, (double)(weir__monotonic_now() - start_ns) / 1e9,
           isatty(STDOUT_FILENO) && round < rounds ? "" : "\n");
    (void)fflush(stdout);
}

static uint32_t argument(int argc, char **argv, int index, uint32_t otherwise)
{
    return argc > index ? (uint32_t)strtoul(argv[index], NULL, 10) : otherwise;
}

int main(int argc, char **argv)
{
    uint32_t rounds = argument(argc, argv, 1, 200), tasks = argument(argc, argv, 2, 1000000);
    uint64_t seed = weir__random_process_seed();
    int64_t start_ns = weir__monotonic_now();

    if (rounds == 0 || tasks == 0 || (argc > 3 && weir__random_parse_seed(argv[3], &seed) < 0)) {
        fprintf(stderr, "usage: %s [ROUNDS [TASKS [SEED]]]\n", argv[0]);
        return 2;
    }
    weir_log_set(keep_quiet, NULL);
    for (uint32_t round = 0; round < rounds; round++) {
        struct submit_stress stress = {.seed = seed + round, .tasks = tasks};
        const char *fault = submit_stress_run(&stress);

        report_progress(round + 1, rounds, &stress, start_ns);
        if (fault != NULL) {
            fprintf(stderr, "seed %" PRIu64 ", %" PRIu32 " tasks: %s\n", stress.seed, tasks, fault);
            return EXIT_FAILURE;
        }
    }
    return EXIT_SUCCESS;
}
