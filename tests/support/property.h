/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Property tests: random steps are applied to an implementation and to a simple model, which must
 * agree after each step. If they do not, the sequence is shrunk (steps are removed and numbers
 * reduced as long as it fails), and the result is printed, one line per step.
 *
 *     static const struct property same_as_flat = {
 *         .name = "composite",
 *         .state_size = sizeof(struct pair),
 *         .kinds = KIND_COUNT,
 *         .begin = begin_pair,       both empty
 *         .step = do_to_both,        PROPERTY(actual == expected);
 *         .describe = describe_step,
 *         .end = end_pair,           frees both, also after a failure
 *     };
 *     TEST(composite, behaves_like_one_flat_array) { property_check(&same_as_flat, 500, 200); }
 *
 * A step is a kind and three random numbers, which are scaled to the current state; so any
 * subsequence is valid. WEIR_SEED repeats a run, WEIR_PROPERTY_RUNS=100 makes it a hundred times as
 * long.
 */
#ifndef WEIR_TEST_PROPERTY_H
#define WEIR_TEST_PROPERTY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct property_step {
    uint32_t kind;
    uint32_t numbers[3];
};

struct property {
    const char *name;
    size_t state_size;
    uint32_t kinds;             /* step->kind is below it */
    void (*begin)(void *state); /* the memory is zeroed */
    /* False if the property is broken, by PROPERTY. Must not use cmocka asserts, which would
     * longjmp. */
    bool (*step)(void *state, const struct property_step *step);
    void (*describe)(const struct property_step *step, char *text, size_t size);
    void (*end)(void *state);
};

/* In a function that returns bool: fails the sequence unless the condition holds. */
#define PROPERTY(condition)                                         \
    do {                                                            \
        if (!(condition))                                           \
            return property_broken(#condition, __FILE__, __LINE__); \
    } while (0)

/* Records the broken condition; returns false. */
bool property_broken(const char *condition, const char *file, int line);

/* Runs `runs` sequences of `steps` steps; fails the test with the shortest failing sequence. */
void property_check(const struct property *property, size_t runs, size_t steps);

/*
 * Finds the first failing sequence and shrinks it in `steps`, which has room for `count`. Returns
 * the number of steps left, 0 if none fails.
 */
size_t property_find(const struct property *property, uint64_t seed, size_t runs,
                     struct property_step *steps, size_t count);

#endif
