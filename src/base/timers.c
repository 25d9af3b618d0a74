/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The timer wheel; timers.h has its picture, invariants and proof. This file finds, fills and opens
 * slots.
 *
 * Slots are numbered across all levels, so that their order is the order of time, and the first
 * slot in use is the first bit set.
 */
#include "base/timers.h"

#include <assert.h>
#include <string.h>

#include "base/no_stack_protector.h"

enum {
    DIGIT_BITS = 8,
    LOWEST_DIGIT_BITS = 4,
    FEW_TIMERS = 8, /* measured: above it, spreading a slot is cheaper than sorting it */
    NO_SLOT = WEIR__TIMERS_SLOTS,
};

static unsigned highest_bit(uint64_t bits)
{
    return 63 - (unsigned)__builtin_clzll(bits);
}

static unsigned lowest_bit(uint64_t bits)
{
    return (unsigned)__builtin_ctzll(bits);
}

static unsigned level_shift(unsigned level)
{
    return level == 0 ? 0 : level * DIGIT_BITS - LOWEST_DIGIT_BITS;
}

/*
 * The slots of level 0 differ in four bits but are numbered by eight, as all others: the upper four
 * bits are equal in all of them, so that no level needs a special case.
 */
static unsigned slot_covering(const weir__timers *timers, int64_t at_ns)
{
    uint64_t differing = (uint64_t)(at_ns ^ timers->position_ns);
    unsigned level = (highest_bit(differing) + DIGIT_BITS - LOWEST_DIGIT_BITS) / DIGIT_BITS;
    unsigned digit = (unsigned)(at_ns >> level_shift(level)) % WEIR__TIMERS_LEVEL_SLOTS;

    return level * WEIR__TIMERS_LEVEL_SLOTS + digit;
}

static int64_t slot_first_ns(const weir__timers *timers, unsigned slot)
{
    unsigned shift = level_shift(slot / WEIR__TIMERS_LEVEL_SLOTS);
    int64_t digit = slot % WEIR__TIMERS_LEVEL_SLOTS;
    int64_t digits_above = timers->position_ns >> shift & -(int64_t)WEIR__TIMERS_LEVEL_SLOTS;

    return (digits_above | digit) << shift;
}

static int64_t slot_last_ns(const weir__timers *timers, unsigned slot)
{
    unsigned shift = level_shift(slot / WEIR__TIMERS_LEVEL_SLOTS);

    return slot_first_ns(timers, slot) | ((INT64_C(1) << shift) - 1);
}

static unsigned slot_list_count(unsigned slot)
{
    return slot < WEIR__TIMERS_FINE_SLOTS ? 1 : WEIR__TIMERS_SLOT_LISTS;
}

static bool slot_is_empty(weir__timers *timers, unsigned slot)
{
    weir_timer_node **lists = timers->lists[slot];

    for (unsigned i = 0; i < slot_list_count(slot); i++)
        if (lists[i] != &timers->end)
            return false;
    return true;
}

static bool slot_has_few(weir__timers *timers, unsigned slot)
{
    weir_timer_node **lists = timers->lists[slot];
    unsigned count = 0;

    for (unsigned i = 0; i < slot_list_count(slot); i++)
        for (weir_timer_node *node = lists[i]; node != &timers->end; node = node->next)
            if (++count > FEW_TIMERS)
                return false;
    return true;
}

static void unmark(weir__timers *timers, unsigned slot)
{
    timers->marks[slot / 64] &= ~(UINT64_C(1) << slot % 64);
    if (timers->marks[slot / 64] == 0)
        timers->marked_words &= ~(UINT64_C(1) << slot / 64);
}

static unsigned first_slot(weir__timers *timers)
{
    while (timers->marked_words != 0) {
        unsigned word = lowest_bit(timers->marked_words);
        unsigned slot = word * 64 + lowest_bit(timers->marks[word]);

        if (!slot_is_empty(timers, slot))
            return slot;
        unmark(timers, slot);
    }
    return NO_SLOT;
}

/* Initializes the lists of the slot, which are valid while it is marked. */
__attribute__((noinline)) static void insert_in_unmarked(weir__timers *timers,
                                                         weir_timer_node *node, unsigned slot)
{
    weir_timer_node **lists = timers->lists[slot];

    for (unsigned i = 0; i < slot_list_count(slot); i++)
        lists[i] = &timers->end;
    timers->marks[slot / 64] |= UINT64_C(1) << slot % 64;
    timers->marked_words |= UINT64_C(1) << slot / 64;
    weir__timers_link(&lists[node->sequence % slot_list_count(slot)], node);
}

/* Reads the mark before it writes: with a million timers a start is bound by its stores. */
static inline void insert_in_wheel(weir__timers *timers, weir_timer_node *node)
{
    unsigned slot = slot_covering(timers, node->at_ns);

    assert(node->at_ns > timers->position_ns);
    if ((timers->marks[slot / 64] & UINT64_C(1) << slot % 64) == 0)
        insert_in_unmarked(timers, node, slot);
    else
        weir__timers_link(&timers->lists[slot][node->sequence % slot_list_count(slot)], node);
}

/* Assumes fewer than 2^31 starts between two timers of the same deadline. */
static bool comes_before(const weir_timer_node *a, const weir_timer_node *b)
{
    if (a->at_ns != b->at_ns)
        return a->at_ns < b->at_ns;
    return (int32_t)(a->sequence - b->sequence) < 0;
}

/* Merges the sorted list `b` into the sorted list at `head`. */
static void merge(weir__timers *timers, weir_timer_node **head, weir_timer_node *b)
{
    weir_timer_node *a = *head;

    while (a != &timers->end && b != &timers->end) {
        weir_timer_node **first = comes_before(a, b) ? &a : &b;
        weir_timer_node *node = *first;

        *first = node->next;
        *head = node;
        node->pprev = head;
        head = &node->next;
    }
    *head = a != &timers->end ? a : b;
    (*head)->pprev = head;
}

/*
 * An incremental merge sort. `ready` is a binary counter with a run for each bit set: a carry
 * merges two runs of the same size. So a timer is merged at most once per bit. Not inlined, so that
 * the usual start needs no stack frame.
 */
WEIR__NO_STACK_PROTECTOR __attribute__((noinline)) static void insert_ready(weir__timers *timers,
                                                                            weir_timer_node *node)
{
    unsigned run;

    assert(node->at_ns <= timers->position_ns);
    node->next = &timers->end;
    for (run = 0; timers->ready >> run & 1; run++) {
        merge(timers, &timers->runs[run], node);
        node = timers->runs[run];
    }
    timers->runs[run] = node;
    node->pprev = &timers->runs[run];
    timers->ready++;
}

static weir_timer_node *first_ready(weir__timers *timers)
{
    weir_timer_node *first = NULL;

    for (uint64_t rest = timers->ready; rest != 0; rest &= rest - 1) {
        unsigned run = lowest_bit(rest);
        weir_timer_node *node = timers->runs[run];

        if (node == &timers->end)
            timers->ready &= ~(UINT64_C(1) << run);
        else if (first == NULL || comes_before(node, first))
            first = node;
    }
    return first;
}

static void insert(weir__timers *timers, weir_timer_node *node)
{
    if (node->at_ns > timers->position_ns)
        insert_in_wheel(timers, node);
    else
        insert_ready(timers, node);
}

/* WEIR_NEVER never expires, at any time. */
static int64_t before_never(int64_t now_ns)
{
    return now_ns < WEIR_NEVER ? now_ns : WEIR_NEVER - 1;
}

/* Does not write the lists: untouched pages of fresh memory cost nothing. */
void weir__timers_init(weir__timers *timers, int64_t now_ns)
{
    memset(timers, 0, offsetof(weir__timers, lists));
    timers->position_ns = now_ns > 0 ? before_never(now_ns) : 0;
    timers->next_ns = WEIR_NEVER;
    timers->relative = &timers->end;
}

static void add_new(weir__timers *timers, weir_timer_node *node, int64_t at_ns)
{
    weir__timers_stamp(timers, node, at_ns);
    if (at_ns < timers->next_ns)
        timers->next_ns = at_ns;
    insert(timers, node);
}

/* In the wheel a deadline may increase in place (invariant 2); in a run this would break the order.
 */
static bool can_postpone(const weir__timers *timers, const weir_timer_node *node, int64_t at_ns)
{
    return node->at_ns > timers->position_ns && at_ns >= node->at_ns;
}

void weir__timers_start(weir__timers *timers, weir_timer_node *node, int64_t at_ns)
{
    if (at_ns < 0)
        at_ns = 0;
    if (weir__timers_is_linked(node)) {
        if (can_postpone(timers, node, at_ns)) {
            weir__timers_forget_next(timers, node);
            weir__timers_stamp(timers, node, at_ns);
            timers->ends++;
            return;
        }
        weir__timers_remove(timers, node);
    }
    add_new(timers, node, at_ns);
}

static int64_t deadline_after(int64_t now_ns, int64_t delay_ns)
{
    return delay_ns > WEIR_NEVER - now_ns ? WEIR_NEVER : now_ns + delay_ns;
}

void weir__timers_resolve_relative(weir__timers *timers, int64_t now_ns)
{
    weir_timer_node *node, *next;

    for (node = timers->relative; node != &timers->end; node = next) {
        next = node->next;
        node->at_ns = deadline_after(now_ns, -1 - node->at_ns);
        if (node->at_ns < timers->next_ns)
            timers->next_ns = node->at_ns;
        insert(timers, node);
    }
    timers->relative = &timers->end;
}

static bool reinsert_postponed(weir__timers *timers, unsigned slot)
{
    weir_timer_node **lists = timers->lists[slot];
    int64_t last_ns = slot_last_ns(timers, slot);
    bool moved = false;

    for (unsigned i = 0; i < slot_list_count(slot); i++) {
        for (weir_timer_node *node = lists[i], *next; node != &timers->end; node = next) {
            next = node->next;
            if (node->at_ns <= last_ns)
                continue;
            weir__timers_unlink(node);
            insert_in_wheel(timers, node);
            moved = true;
        }
    }
    return moved;
}

static int64_t earliest_in(weir__timers *timers, unsigned slot)
{
    weir_timer_node **lists = timers->lists[slot];
    int64_t earliest_ns = WEIR_NEVER;

    for (unsigned i = 0; i < slot_list_count(slot); i++)
        for (weir_timer_node *node = lists[i]; node != &timers->end; node = node->next)
            if (node->at_ns < earliest_ns)
                earliest_ns = node->at_ns;
    return earliest_ns;
}

/*
 * The earliest timer of the first slot is the earliest of all, unless it is postponed: then timers
 * in other slots may expire before it.
 */
static int64_t find_next(weir__timers *timers)
{
    weir_timer_node *ready = first_ready(timers);
    unsigned slot;

    if (ready != NULL)
        return ready->at_ns;
    while ((slot = first_slot(timers)) != NO_SLOT) {
        if (!slot_has_few(timers, slot))
            return slot_first_ns(timers, slot);
        if (!reinsert_postponed(timers, slot))
            return earliest_in(timers, slot);
    }
    return WEIR_NEVER;
}

int64_t weir__timers_find_next(weir__timers *timers)
{
    timers->next_ns = find_next(timers);
    return timers->next_ns;
}

/*
 * Alternates between the lists: with very many timers each step along a list is a cache miss, and
 * this way four of them overlap.
 */
static void insert_all(weir__timers *timers, weir_timer_node **lists, unsigned list_count)
{
    bool more = true;

    while (more) {
        more = false;
        for (unsigned i = 0; i < list_count; i++) {
            weir_timer_node *node = lists[i];

            if (node == &timers->end)
                continue;
            lists[i] = node->next;
            __builtin_prefetch(lists[i]);
            insert(timers, node);
            more = true;
        }
    }
}

/* Not inlined, because its array would give every expiry a stack protector. */
__attribute__((noinline)) static void open_slot(weir__timers *timers, unsigned slot, int64_t now_ns)
{
    weir_timer_node **lists = timers->lists[slot];
    weir_timer_node *taken[WEIR__TIMERS_SLOT_LISTS];
    int64_t first_ns = slot_first_ns(timers, slot);
    int64_t last_ns = slot_last_ns(timers, slot);

    if (!slot_has_few(timers, slot))
        timers->position_ns = first_ns;
    else
        timers->position_ns = now_ns < last_ns ? now_ns : last_ns;
    timers->next_ns = WEIR__TIMERS_UNKNOWN;

    for (unsigned i = 0; i < slot_list_count(slot); i++)
        taken[i] = lists[i];
    unmark(timers, slot);
    insert_all(timers, taken, slot_list_count(slot));
}

/*
 * The short way for sparse timers, which all end alone in a slot: if due and not postponed, such a
 * timer is the first of all and need not become ready.
 */
static weir_timer_node *pop_single(weir__timers *timers, unsigned slot, int64_t now_ns)
{
    weir_timer_node *node = timers->lists[slot][0];

    if (slot_list_count(slot) > 1 || node->next != &timers->end)
        return NULL;
    if (node->at_ns > now_ns || node->at_ns > slot_last_ns(timers, slot))
        return NULL;
    timers->position_ns = node->at_ns;
    weir__timers_remove(timers, node);
    unmark(timers, slot);
    return node;
}

/* If next_ns passes without a timer it was the start of a slot whose timers were stopped. */
static void advance_idle(weir__timers *timers, int64_t now_ns)
{
    if (timers->position_ns < now_ns)
        timers->position_ns = now_ns;
    if (timers->next_ns <= now_ns)
        timers->next_ns = WEIR__TIMERS_UNKNOWN;
}

weir_timer_node *weir__timers_expire_due(weir__timers *timers, int64_t now_ns)
{
    weir_timer_node *node;

    now_ns = before_never(now_ns);
    while ((node = first_ready(timers)) == NULL) {
        unsigned slot = first_slot(timers);

        if (slot == NO_SLOT || slot_first_ns(timers, slot) > now_ns) {
            advance_idle(timers, now_ns);
            return NULL;
        }
        node = pop_single(timers, slot, now_ns);
        if (node != NULL)
            return node;
        open_slot(timers, slot, now_ns);
    }
    if (node->at_ns > now_ns) /* the clock went backwards */
        return NULL;
    weir__timers_remove(timers, node);
    return node;
}

static weir_timer_node *any_in(weir__timers *timers, unsigned slot)
{
    weir_timer_node **lists = timers->lists[slot];

    while (*lists == &timers->end)
        lists++;
    return *lists;
}

weir_timer_node *weir__timers_pop_any(weir__timers *timers)
{
    weir_timer_node *node = first_ready(timers);

    if (weir__timers_count(timers) == 0)
        return NULL;
    if (node == NULL && weir__timers_has_relative(timers))
        node = timers->relative;
    if (node == NULL)
        node = any_in(timers, first_slot(timers));
    weir__timers_remove(timers, node);
    return node;
}
