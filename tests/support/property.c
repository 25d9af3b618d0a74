/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generates, runs and shrinks sequences of steps.
 *
 * Shrinking is greedy: a change that still fails is kept. First, runs of steps are removed, half of
 * all at a time, then ever fewer, down to single ones; then each number is reduced to 0, half, or
 * one less. This repeats until nothing helps any more, or the number of tries is exhausted.
 */
#include "support/property.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/random.h"
#include "support/test.h"

#define TRIES_MAX 20000
#define LINE_SIZE 160

struct search {
    const struct property *property;
    struct property_step *steps;
    struct property_step *candidate;
    size_t count;
    size_t tries;
};

static struct {
    const char *condition;
    const char *file;
    int line;
} broken;

bool property_broken(const char *condition, const char *file, int line)
{
    broken.condition = condition;
    broken.file = file;
    broken.line = line;
    return false;
}

static void *allocate(size_t count, size_t size)
{
    void *memory = calloc(count, size);

    if (memory == NULL)
        abort();
    return memory;
}

/* The number of steps until the failure, 0 if there was none. */
static size_t run(const struct property *property, const struct property_step *steps, size_t count)
{
    void *state = allocate(1, property->state_size);
    size_t failed_at = 0;

    property->begin(state);
    for (size_t i = 0; i < count && failed_at == 0; i++)
        if (!property->step(state, &steps[i]))
            failed_at = i + 1;
    property->end(state);
    free(state);
    return failed_at;
}

/* Numbers of every magnitude are equally likely: small ones hit limits, large ones overflow. */
static uint32_t draw_number(weir__random *random)
{
    return (uint32_t)(weir__random_next(random) >> (32 + weir__random_below(random, 32)));
}

static void draw_steps(const struct property *property, weir__random *random,
                       struct property_step *steps, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        steps[i].kind = (uint32_t)weir__random_below(random, property->kinds);
        for (int n = 0; n < 3; n++)
            steps[i].numbers[n] = draw_number(random);
    }
}

/* Accepts the candidate if it fails, without the steps after its failure. */
static bool accept(struct search *search, size_t count)
{
    size_t failed_at;

    if (search->tries == TRIES_MAX)
        return false;
    search->tries++;
    failed_at = run(search->property, search->candidate, count);
    if (failed_at == 0)
        return false;
    memcpy(search->steps, search->candidate, failed_at * sizeof(*search->steps));
    search->count = failed_at;
    return true;
}

static bool leave_out(struct search *search, size_t from, size_t length)
{
    size_t rest = search->count - from - length;

    memcpy(search->candidate, search->steps, from * sizeof(*search->steps));
    memcpy(search->candidate + from, search->steps + from + length, rest * sizeof(*search->steps));
    return accept(search, from + rest);
}

static bool shorten(struct search *search)
{
    size_t before = search->count;

    for (size_t length = search->count / 2; length > 0; length /= 2)
        for (size_t from = 0; from + length <= search->count;)
            if (!leave_out(search, from, length))
                from += length;
    return search->count < before;
}

static bool try_number(struct search *search, size_t step, int n, uint32_t number)
{
    if (step >= search->count || number >= search->steps[step].numbers[n])
        return false;
    memcpy(search->candidate, search->steps, search->count * sizeof(*search->steps));
    search->candidate[step].numbers[n] = number;
    return accept(search, search->count);
}

static bool lessen_one(struct search *search, size_t step, int n)
{
    uint32_t number = search->steps[step].numbers[n];

    if (number == 0)
        return false;
    return try_number(search, step, n, 0) || try_number(search, step, n, number / 2) ||
           try_number(search, step, n, number - 1);
}

static bool lessen(struct search *search)
{
    bool any = false;

    for (size_t step = 0; step < search->count; step++)
        for (int n = 0; n < 3; n++)
            while (step < search->count && lessen_one(search, step, n))
                any = true;
    return any;
}

static size_t shrink(const struct property *property, struct property_step *steps, size_t count)
{
    struct search search = {
        .property = property,
        .steps = steps,
        .candidate = allocate(count, sizeof(*steps)),
        .count = count,
    };

    while (shorten(&search) || lessen(&search))
        continue;
    free(search.candidate);
    (void)run(property, steps, search.count); /* this condition broke it */
    return search.count;
}

size_t property_find(const struct property *property, uint64_t seed, size_t runs,
                     struct property_step *steps, size_t count)
{
    weir__random random;
    size_t failed_at;

    weir__random_init(&random, seed);
    for (size_t i = 0; i < runs; i++) {
        draw_steps(property, &random, steps, count);
        failed_at = run(property, steps, count);
        if (failed_at > 0)
            return shrink(property, steps, failed_at);
    }
    return 0;
}

static size_t times_as_long(void)
{
    const char *text = getenv("WEIR_PROPERTY_RUNS");
    unsigned long times = text != NULL ? strtoul(text, NULL, 10) : 1;

    return times > 0 ? times : 1;
}

static void print_steps(const struct property *property, const struct property_step *steps,
                        size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char text[LINE_SIZE] = "";

        property->describe(&steps[i], text, sizeof(text));
        print_error("  %2zu  %s\n", i + 1, text);
    }
}

/* TSan finds nothing in a single thread, and counting lines is slow: a few of the runs are
 * sufficient. */
#if defined(__SANITIZE_THREAD__) || defined(WEIR_COVERAGE)
#define RUNS(runs) ((runs) / 30 + 1)
#elif defined(__SANITIZE_ADDRESS__)
#define RUNS(runs) ((runs) > 4000 ? (runs) / 4 : (runs)) /* ten times slower; release runs all */
#else
#define RUNS(runs) (runs)
#endif

void property_check(const struct property *property, size_t runs, size_t steps)
{
    struct property_step *sequence = allocate(steps, sizeof(*sequence));
    uint64_t seed = weir__random_process_seed();
    size_t count;

    /* Printed before the run, so that a crash can be repeated, too. */
    print_message("[   seed   ] %s: WEIR_SEED=%" PRIu64 "\n", property->name, seed);
    count = property_find(property, seed, RUNS(runs) * times_as_long(), sequence, steps);
    if (count > 0)
        print_steps(property, sequence, count);
    free(sequence);
    if (count > 0)
        fail_msg("%s: %zu steps break it, seed %" PRIu64 ": %s at %s:%d", property->name, count,
                 seed, broken.condition, broken.file, broken.line);
}
