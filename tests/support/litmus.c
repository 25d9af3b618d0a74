/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two threads that retain and release on behalf of one reference.
 */
#include "support/litmus.h"

#include <stdatomic.h>

#include "os/thread.h"
#include "support/test.h"

#define BLOCK 100 /* rounds: about a microsecond or more */

struct side {
    struct litmus *litmus;
    struct side *other;
    _Alignas(64) _Atomic uint64_t calls;
};

struct litmus {
    weir_thread_fn *fn;
    void *arg;
    uint64_t rounds;
    struct side sides[2];
    _Alignas(64) _Atomic int started;
    _Atomic bool is_over;
};

static void run(void *arg)
{
    struct side *side = arg;
    struct litmus *litmus = side->litmus;
    uint64_t calls = 0, beside = 0;

    for (atomic_fetch_add(&litmus->started, 1); atomic_load(&litmus->started) < 2;)
        weir__thread_yield();
    while (!atomic_load(&litmus->is_over)) {
        uint64_t before = atomic_load(&side->other->calls);

        for (int i = 0; i < BLOCK; i++)
            litmus->fn(litmus->arg);
        calls += BLOCK;
        atomic_store(&side->calls, calls);
        if (atomic_load(&side->other->calls) != before)
            beside += BLOCK;
        if (beside >= litmus->rounds || calls >= 50 * litmus->rounds)
            atomic_store(&litmus->is_over, true);
    }
}

uint64_t litmus_run(weir_thread_fn *fn, void *arg, uint64_t rounds)
{
    struct litmus litmus = {.fn = fn, .arg = arg, .rounds = rounds};
    struct side *mine = &litmus.sides[0], *others = &litmus.sides[1];
    weir__thread other;

    *mine = (struct side){&litmus, others, 0};
    *others = (struct side){&litmus, mine, 0};
    assert_int_equal(weir__thread_start("litmus", run, others, &other), 0);
    run(mine);
    weir__thread_join(&other);
    return mine->calls + others->calls;
}

struct references {
    weir_thread_fn *retain;
    weir_thread_fn *release;
    void *object;
};

static void retain_and_release(void *arg)
{
    const struct references *references = arg;

    references->retain(references->object);
    references->release(references->object);
}

void litmus_references(weir_thread_fn *retain, weir_thread_fn *release, void *object)
{
    struct references references = {retain, release, object};

    (void)litmus_run(retain_and_release, &references, LITMUS_ROUNDS);
}

struct use {
    weir_thread_fn *fn;
    void *arg;
    _Atomic bool is_over;
};

static void use(void *arg)
{
    struct use *use = arg;

    use->fn(use->arg);
    atomic_store_explicit(&use->is_over, true, memory_order_relaxed); /* orders nothing */
}

void litmus_last_use(weir_thread_fn *first, void *first_arg, weir_thread_fn *then, void *then_arg)
{
    struct use before = {first, first_arg, false};
    weir__thread thread;

    assert_int_equal(weir__thread_start("litmus", use, &before, &thread), 0);
    while (!atomic_load_explicit(&before.is_over, memory_order_relaxed))
        weir__thread_yield();
    then(then_arg);
    weir__thread_join(&thread);
}
