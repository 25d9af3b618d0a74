/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reproducible pseudo-random numbers: xoshiro256** (Blackman and Vigna). For load balancing,
 * sampling and simulation; not for secrets.
 */
#ifndef WEIR_OS_RANDOM_H
#define WEIR_OS_RANDOM_H

#include <stdint.h>

typedef struct weir__random {
    uint64_t state[4];
} weir__random;

/* The same seed yields the same numbers; any seed is allowed. */
void weir__random_init(weir__random *random, uint64_t seed);
uint64_t weir__random_next(weir__random *random);

/* Uniform over 0 .. limit - 1; `limit` is not 0. */
uint64_t weir__random_below(weir__random *random, uint64_t limit);

/* The generator of the calling thread, seeded from the process seed and the order of first use. */
weir__random *weir__random_thread(void);

/* The seed of the process: WEIR_SEED of the environment, or a random number from the kernel. */
uint64_t weir__random_process_seed(void);

/* Parses a seed as in WEIR_SEED: decimal, 0x1f or 017. Fails with -EINVAL. */
int weir__random_parse_seed(const char *text, uint64_t *ret_seed);

#endif
