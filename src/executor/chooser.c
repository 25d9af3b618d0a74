/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The choosers whose state is at most one counter.
 */
#include <weir/group.h>

#include <stdatomic.h>

#include "executor/executor.h"
#include "os/random.h"

/* A 64-bit counter never wraps, so the modulo has no bias; the mask is for speed. */
static weir_executor *round_robin_next(void *state, weir_group *group)
{
    uint64_t turn = atomic_fetch_add_explicit((_Atomic uint64_t *)state, 1, memory_order_relaxed);
    size_t count = weir_group_count(group);

    return weir_group_at(group, (count & (count - 1)) == 0 ? turn & (count - 1) : turn % count);
}

static const weir_chooser round_robin = {
    .name = "round-robin",
    .state_size = sizeof(_Atomic uint64_t),
    .next = round_robin_next,
};

const weir_chooser *weir_chooser_round_robin(void)
{
    return &round_robin;
}

/* Starts each search at the next member, so that ties are resolved in turn. */
static weir_executor *least_by(uint64_t (*measure)(const weir_executor *executor), void *state,
                               weir_group *group)
{
    uint64_t turn = atomic_fetch_add_explicit((_Atomic uint64_t *)state, 1, memory_order_relaxed);
    size_t count = weir_group_count(group);
    weir_executor *best = NULL, *member;
    uint64_t least = UINT64_MAX, measured;

    for (size_t i = 0; i < count && least > 0; i++) {
        member = weir_group_at(group, (turn + i) % count);
        measured = measure(member);
        if (measured < least) {
            least = measured;
            best = member;
        }
    }
    return best;
}

static weir_executor *least_pending_next(void *state, weir_group *group)
{
    return least_by(weir_executor_pending, state, group);
}

static const weir_chooser least_pending = {
    .name = "least-pending",
    .state_size = sizeof(_Atomic uint64_t),
    .next = least_pending_next,
};

const weir_chooser *weir_chooser_least_pending(void)
{
    return &least_pending;
}

static weir_executor *least_handles_next(void *state, weir_group *group)
{
    return least_by(weir__executor_handles, state, group);
}

static const weir_chooser least_handles = {
    .name = "least-handles",
    .state_size = sizeof(_Atomic uint64_t),
    .next = least_handles_next,
};

const weir_chooser *weir_chooser_least_handles(void)
{
    return &least_handles;
}

/* Picks in turn if the CPU is unknown or no member is pinned to it. */
static weir_executor *by_cpu_next(void *state, weir_group *group)
{
    uint64_t turn = atomic_fetch_add_explicit((_Atomic uint64_t *)state, 1, memory_order_relaxed);
    size_t count = weir_group_count(group);
    int cpu = weir__cpu_current();
    weir_executor *member;

    for (size_t i = 0; i < count; i++) {
        member = weir_group_at(group, (turn + i) % count);
        if (member->options.cpu == cpu)
            return member;
    }
    return weir_group_at(group, turn % count);
}

static const weir_chooser by_cpu = {
    .name = "by-cpu",
    .state_size = sizeof(_Atomic uint64_t),
    .next = by_cpu_next,
};

const weir_chooser *weir_chooser_by_cpu(void)
{
    return &by_cpu;
}

static bool is_less_loaded(const weir_executor *a, const weir_executor *b)
{
    uint64_t pending_a = weir_executor_pending(a), pending_b = weir_executor_pending(b);

    if (pending_a != pending_b)
        return pending_a < pending_b;
    return weir_executor_utilisation(a) < weir_executor_utilisation(b);
}

static weir_executor *two_choices_next(void *state, weir_group *group)
{
    weir__random *random = weir__random_thread();
    size_t count = weir_group_count(group), first, second;

    (void)state;
    if (count == 1)
        return weir_group_at(group, 0);
    first = (size_t)weir__random_below(random, count);
    second = (size_t)weir__random_below(random, count - 1);
    second += second >= first; /* two different ones */
    return is_less_loaded(weir_group_at(group, second), weir_group_at(group, first))
               ? weir_group_at(group, second)
               : weir_group_at(group, first);
}

static const weir_chooser two_choices = {
    .name = "two-choices",
    .next = two_choices_next,
};

const weir_chooser *weir_chooser_two_choices(void)
{
    return &two_choices;
}
