/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pseudo-random numbers that repeat: xoshiro256** (Blackman and Vigna). For choosing and for
 * simulation, never for secrets.
 */
#ifndef WEIR_OS_RANDOM_H
#define WEIR_OS_RANDOM_H

#include <stdint.h>

typedef struct weir__random {
    uint64_t state[4];
} weir__random;

/* Equal seeds give equal numbers; any seed will do. */
void weir__random_init(weir__random *random, uint64_t seed);
uint64_t weir__random_next(weir__random *random);

/* Uniform over 0 .. limit - 1; `limit` is not 0. */
uint64_t weir__random_below(weir__random *random, uint64_t limit);

/* The calling thread's own generator, seeded from the process seed and the thread's turn to ask. */
weir__random *weir__random_thread(void);

/* What the process draws from: WEIR_SEED of the environment, or else the kernel's random source. */
uint64_t weir__random_process_seed(void);

/* Reads a seed as it is written in WEIR_SEED: decimal, 0x1f or 017. Fails with -EINVAL. */
int weir__random_parse_seed(const char *text, uint64_t *ret_seed);

#endif
