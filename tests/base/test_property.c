/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The property test framework: a planted fault is found, and the sequence is shrunk to a minimum.
 */
#include "support/property.h"

#include <stdio.h>

#include "support/test.h"

enum {
    ADD,
    DOUBLE,
    NOTHING,
    KIND_COUNT,
};

#define STEPS 200

static int open_states;

static void begin_counter(void *state)
{
    assert_true(*(uint64_t *)state == 0);
    open_states++;
}

static bool step_counter(void *state, const struct property_step *step)
{
    uint64_t *counter = state;

    if (step->kind == ADD)
        *counter += step->numbers[0] % 1000;
    else if (step->kind == DOUBLE)
        *counter *= 2;
    return true;
}

/* The fault: a value of 10 or more is not doubled. */
static bool step_faulty(void *state, const struct property_step *step)
{
    uint64_t before = *(uint64_t *)state;

    (void)step_counter(state, step);
    PROPERTY(!(step->kind == DOUBLE && before >= 10));
    return true;
}

static void describe_step(const struct property_step *step, char *text, size_t size)
{
    snprintf(text, size, "%u", step->kind);
}

static void end_counter(void *state)
{
    (void)state;
    open_states--;
}

static struct property property_of(bool (*step)(void *, const struct property_step *))
{
    return (struct property){
        .name = "counter",
        .state_size = sizeof(uint64_t),
        .kinds = KIND_COUNT,
        .begin = begin_counter,
        .step = step,
        .describe = describe_step,
        .end = end_counter,
    };
}

TEST(property, that_holds_finds_nothing)
{
    struct property_step steps[STEPS];
    struct property property = property_of(step_counter);

    assert_int_equal(property_find(&property, 1, 20, steps, STEPS), 0);
    assert_int_equal(open_states, 0);
}

TEST(property, that_is_broken_is_shrunk_to_a_minimal_example)
{
    struct property_step steps[STEPS];
    struct property property = property_of(step_faulty);

    for (uint64_t seed = 0; seed < 10; seed++) {
        assert_int_equal(property_find(&property, seed, 20, steps, STEPS), 2);
        assert_int_equal(steps[0].kind, ADD);
        assert_int_equal(steps[0].numbers[0], 10);
        assert_int_equal(steps[1].kind, DOUBLE);
        assert_int_equal(steps[1].numbers[0], 0);
    }
    assert_int_equal(open_states, 0);
}

TEST(property, steps_are_those_of_the_seed)
{
    struct property_step first[STEPS], again[STEPS], other[STEPS];
    struct property property = property_of(step_counter);

    (void)property_find(&property, 7, 1, first, STEPS);
    (void)property_find(&property, 7, 1, again, STEPS);
    (void)property_find(&property, 8, 1, other, STEPS);
    assert_memory_equal(first, again, sizeof(first));
    assert_memory_not_equal(first, other, sizeof(first));
}
