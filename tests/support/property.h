/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Property tests: random steps are done to the thing itself and to a plain model of it, and the two
 * must agree after each. When they do not, the sequence is shrunk - steps are left out, numbers
 * made smaller, as long as it still fails - and what remains is printed, a line per step.
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
 * A step is a kind and three random numbers, which its interpreter scales to the state it finds; so
 * any part of a sequence is a sequence. WEIR_SEED repeats a run, WEIR_PROPERTY_RUNS=100 makes it a
 * hundred times as long.
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
    void (*begin)(void *state); /* of zeroed memory */
    /* Whether all is well: PROPERTY returns false from it. No cmocka asserts, they would jump out.
     */
    bool (*step)(void *state, const struct property_step *step);
    void (*describe)(const struct property_step *step, char *text, size_t size);
    void (*end)(void *state);
};

/* In a function that returns bool: what must hold, or else the sequence has failed here. */
#define PROPERTY(condition)                                         \
    do {                                                            \
        if (!(condition))                                           \
            return property_broken(#condition, __FILE__, __LINE__); \
    } while (0)

/* Remembers what did not hold; returns false. */
bool property_broken(const char *condition, const char *file, int line);

/* Runs so many sequences of so many steps; fails the test with the shortest that fails. */
void property_check(const struct property *property, size_t runs, size_t steps);

/*
 * The part of property_check that looks: the first of these sequences that fails, shrunk, in
 * `steps`, which has room for `count`. Returns how many steps are left, 0 if all is well.
 */
size_t property_find(const struct property *property, uint64_t seed, size_t runs,
                     struct property_step *steps, size_t count);

#endif
