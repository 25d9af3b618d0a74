/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/timers.h - the timers of one thread, handed back in exact order of deadline, then of start.
 *
 * A wheel whose levels are the digits of the deadline, a count of nanoseconds. A timer lies at the
 * level of the highest digit in which its deadline differs from the position, in the slot that this
 * digit names. So it moves at most once a level, and most are stopped before they ever move.
 *
 *     bits of the deadline   62..60  59..52  51..44  43..36  35..28   27..20  19..12  11..4   3..0
 *     level                     8       7       6       5       4        3       2       1      0
 *     width of a slot        36.5 y    52 d   4.9 h    69 s  268 ms  1.05 ms    4 us   16 ns   1 ns
 *     lists in a slot           4       4       4       4       4        4       1       1      1
 *
 *       ready     |   level 0      level 1        level 2               level 3
 *     [t][t][t]   |  |.|.|t|.|   |..|tt|..|t.|   |....|.t.t|....|...   |........|.t..t.t.|...
 *     ------------|--------------------------------------------------------------------> time
 *             position
 *
 * The first slot that holds a timer, counted from level 0 up, covers the earliest time. To open it
 * is to move the position into it and to file its timers again: what is now at or before the
 * position is ready, the rest goes to lower levels. A slot with few timers is opened as far as now
 * reaches, past the levels between; a fuller one at its first nanosecond, so that its timers are
 * spread by one more digit. This is a radix sort that goes only as deep as it must.
 *
 * The ready timers are kept in sorted runs of 1, 2, 4, ... of them: one or two as a rule, and yet a
 * timer that is started late costs little among any number of others.
 *
 * Whoever starts a timer need not know the time: one that is started `after` a delay waits aside,
 * and gets its deadline when the next look at the clock is told. Most timeouts are stopped before.
 *
 * A restart to a later deadline only stores it. The timer is then "postponed": it lies in a slot
 * earlier than its own until that slot is opened, or weir__timers_next needs to know better.
 *
 * Between any two calls:
 *   1. A timer is ready iff its deadline is at or before the position. Each run is in order.
 *   2. Any other timer lies in a slot that begins after the position and not after its deadline.
 *   3. Such a slot agrees with the position in all digits above its level, so that its number tells
 *      its time: the position only moves forward, and never to where such a slot has begun.
 *   4. A slot or run that holds a timer has its bit set. A set bit may be stale: searches clear it.
 *      The lists of a slot whose bit is not set have never been written, or are stale.
 *   5. next_ns is unknown, or not after the earliest deadline.
 *   6. A timer aside has at_ns = -1 - its delay, and counts, but has no deadline yet.
 *
 * So for expire(now)
 *   - no timer is early: its deadline is compared with now before it is handed out;
 *   - none is missed: if due, it is ready or, by 2, in a slot that begins by now; and the call
 *     gives up only when nothing is ready and the first slot begins after now;
 *   - none is out of order: by 1 and 2, ready timers come before all others. Opening the first
 *     slot keeps this true: every other slot begins after its end, hence after the new position,
 *     so that the timers at or before it were all in the slot opened.
 *
 * Nothing here allocates or fails. Start and stop take constant time, except for a start at or
 * before the position: logarithmic in the number of ready timers, amortised.
 *
 * Thread: one at a time. The struct must not move while it holds timers.
 */
#ifndef WEIR_BASE_TIMERS_H
#define WEIR_BASE_TIMERS_H

#include <weir/base.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    WEIR__TIMERS_RUNS = 64,
    WEIR__TIMERS_LEVEL_SLOTS = 256,
    WEIR__TIMERS_SLOTS = 8 * WEIR__TIMERS_LEVEL_SLOTS + 8, /* three bits are left for level 8 */
    WEIR__TIMERS_FINE_SLOTS = 3 * WEIR__TIMERS_LEVEL_SLOTS,
    WEIR__TIMERS_COARSE_SLOTS = WEIR__TIMERS_SLOTS - WEIR__TIMERS_FINE_SLOTS,
    WEIR__TIMERS_COARSE_LISTS = 4, /* in each of these; a fine slot has one */
    WEIR__TIMERS_LISTS =
        WEIR__TIMERS_FINE_SLOTS + WEIR__TIMERS_COARSE_SLOTS * WEIR__TIMERS_COARSE_LISTS,
    WEIR__TIMERS_WORDS = (WEIR__TIMERS_SLOTS + 63) / 64,
};

typedef struct weir__timers {
    int64_t position_ns;
    int64_t next_ns; /* the answer of weir__timers_next, or WEIR__TIMERS_UNKNOWN */
    uint32_t sequence;
    size_t count;
    weir_timer_node end; /* of every list, so that linking and unlinking need no branch */
    weir_timer_node *relative;
    uint64_t ready; /* a bit for each run */
    weir_timer_node *runs[WEIR__TIMERS_RUNS];
    uint64_t marked_words;
    uint64_t marks[WEIR__TIMERS_WORDS];         /* a bit for each slot */
    weir_timer_node *lists[WEIR__TIMERS_LISTS]; /* the last: valid in slots that are marked */
} weir__timers;

static inline bool weir__timers_is_linked(const weir_timer_node *node)
{
    return node->pprev != NULL;
}

/* ---- what a start and a stop are made of: most timers see nothing else of the store ---- */

#define WEIR__TIMERS_UNKNOWN INT64_MIN

static inline void weir__timers_link(weir_timer_node **where, weir_timer_node *node)
{
    node->next = *where;
    node->pprev = where;
    node->next->pprev = &node->next;
    *where = node;
}

static inline void weir__timers_unlink(weir_timer_node *node)
{
    *node->pprev = node->next;
    node->next->pprev = node->pprev;
}

static inline void weir__timers_stamp(weir__timers *timers, weir_timer_node *node, int64_t at_ns)
{
    node->at_ns = at_ns;
    node->sequence = timers->sequence++;
}

/* Without the earliest timer next_ns would not be late, but needlessly early. */
static inline void weir__timers_forget_next(weir__timers *timers, const weir_timer_node *node)
{
    if (node->at_ns >= 0 && node->at_ns <= timers->next_ns)
        timers->next_ns = WEIR__TIMERS_UNKNOWN;
}

static inline void weir__timers_remove(weir__timers *timers, weir_timer_node *node)
{
    weir__timers_unlink(node);
    node->pprev = NULL;
    timers->count--;
    weir__timers_forget_next(timers, node);
}

/* ---- the store ---- */

void weir__timers_init(weir__timers *timers, int64_t now_ns);

/*
 * Starts a timer, or restarts it; either way it comes after all others of the same deadline. A
 * deadline before 0 counts as 0, WEIR_NEVER never comes. A node that was never started is zeroed.
 */
void weir__timers_start(weir__timers *timers, weir_timer_node *node, int64_t at_ns);

/*
 * The same, with a deadline `delay_ns` >= 0 after the time of the next weir__timers_resolve: the
 * caller need not look at the clock, and the timer is not early.
 */
static inline void weir__timers_start_after(weir__timers *timers, weir_timer_node *node,
                                            int64_t delay_ns)
{
    if (weir__timers_is_linked(node))
        weir__timers_remove(timers, node);
    weir__timers_stamp(timers, node, -1 - delay_ns);
    timers->count++;
    weir__timers_link(&timers->relative, node);
}

/* It is `now_ns`: gives their deadlines to the timers that wait for the time. */
void weir__timers_resolve_relative(weir__timers *timers, int64_t now_ns);

static inline bool weir__timers_has_relative(const weir__timers *timers)
{
    return timers->relative != &timers->end;
}

static inline void weir__timers_resolve(weir__timers *timers, int64_t now_ns)
{
    if (weir__timers_has_relative(timers))
        weir__timers_resolve_relative(timers, now_ns);
}

/* Does nothing if the timer is not filed. */
static inline void weir__timers_stop(weir__timers *timers, weir_timer_node *node)
{
    if (weir__timers_is_linked(node))
        weir__timers_remove(timers, node);
}

/*
 * When to call weir__timers_expire again: not after the earliest deadline, WEIR_NEVER without any.
 * If many timers share the first slot it is the beginning of that slot, otherwise exact. Once
 * expire(now) has returned NULL it is after now until a timer is started. Timers that wait for the
 * time do not count: tell it first.
 */
int64_t weir__timers_next(weir__timers *timers);

/*
 * Takes out the first timer if it is due, that is if its deadline is not after now_ns; NULL if not.
 * Between two calls timers may be started, at any time past or future, and stopped. Timers that
 * wait for the time are not due.
 */
weir_timer_node *weir__timers_expire(weir__timers *timers, int64_t now_ns);

/* Takes out some timer, due or not; NULL if there is none. */
weir_timer_node *weir__timers_pop_any(weir__timers *timers);

static inline size_t weir__timers_count(const weir__timers *timers)
{
    return timers->count;
}

#endif
