/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A timer wheel for one thread. Timers expire in exact order of deadline, then of start.
 *
 * The levels of the wheel are the digits of the deadline in nanoseconds. A timer is at the level of
 * the highest digit in which its deadline differs from the position, in the slot given by this
 * digit. So it moves at most once per level, and most timers are stopped before they move.
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
 * The first slot in use, counted from level 0 upwards, covers the earliest time. Opening it moves
 * the position into it and inserts its timers again: those at or before the position are ready, the
 * others go to lower levels. A slot with few timers is opened up to the current time, skipping
 * levels; a fuller one at its first nanosecond, which spreads its timers by one more digit. This is
 * a radix sort that goes only as deep as necessary.
 *
 * Ready timers are kept in sorted runs of 1, 2, 4, ... timers: usually one or two runs, and a timer
 * that is started late costs little among any number of others.
 *
 * A timer can be started with a relative delay, without reading the clock. It waits in the list
 * `relative` and gets its deadline when weir__timers_resolve is called with the time. Most timeouts
 * are stopped before that.
 *
 * Restarting a timer to a later deadline only stores the deadline. The timer is then "postponed":
 * it stays in an earlier slot until that slot is opened, or weir__timers_next needs its deadline.
 *
 * Between any two calls: 1. A timer is ready iff its deadline is at or before the position. Each
 * run is sorted. 2. Any other timer is in a slot that begins after the position and not after its
 * deadline. 3. Such a slot agrees with the position in all digits above its level, so that its
 * number
 *      determines its time: the position only moves forward, and never into such a slot.
 * 4. A slot or run that holds a timer has its bit set. A set bit may be stale: searches clear it.
 *      The lists of a slot whose bit is not set are uninitialized or stale.
 * 5. next_ns is unknown, or not after the earliest deadline. 6. A relative timer has at_ns = -1 -
 * its delay. It counts, but has no deadline yet.
 *
 * Hence for expire(now) - no timer is early: its deadline is compared with now before it is
 * returned; - none is missed: an expired timer is ready or, by 2, in a slot that begins by now; and
 * the call
 *     ends only when nothing is ready and the first slot begins after now;
 * - none is out of order: by 1 and 2, ready timers come before all others. Opening the first slot
 *     preserves this: every other slot begins after its end, hence after the new position, so that
 *     the timers at or before the position were all in the slot opened.
 *
 * Nothing here allocates or fails. Start and stop take constant time, except a start at or before
 * the position: amortized logarithmic in the number of ready timers.
 *
 * Not synchronized. The struct must not move while it holds timers.
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
    WEIR__TIMERS_SLOTS = 8 * WEIR__TIMERS_LEVEL_SLOTS + 8, /* level 8 has three bits */
    WEIR__TIMERS_FINE_SLOTS = 3 * WEIR__TIMERS_LEVEL_SLOTS,
    WEIR__TIMERS_SLOT_LISTS = 4, /* a fine slot uses only the first */
    WEIR__TIMERS_WORDS = (WEIR__TIMERS_SLOTS + 63) / 64,
};

typedef struct weir__timers {
    int64_t position_ns;
    int64_t next_ns;     /* result of weir__timers_next, or WEIR__TIMERS_UNKNOWN */
    uint64_t starts;     /* the next sequence number */
    uint64_t ends;       /* of these starts: stopped, expired or restarted */
    weir_timer_node end; /* end of every list, so that linking and unlinking need no branch */
    weir_timer_node *relative;
    uint64_t ready; /* one bit per run */
    weir_timer_node *runs[WEIR__TIMERS_RUNS];
    uint64_t marked_words;
    uint64_t marks[WEIR__TIMERS_WORDS]; /* one bit per slot */
    /* last member; valid for marked slots */
    weir_timer_node *lists[WEIR__TIMERS_SLOTS][WEIR__TIMERS_SLOT_LISTS];
} weir__timers;

static inline bool weir__timers_is_linked(const weir_timer_node *node)
{
    return node->pprev != NULL;
}

/* ---- inline parts of start and stop ---- */

#define WEIR__TIMERS_UNKNOWN INT64_MIN
#define WEIR__TIMERS_LAG_MAX_NS 1000000

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
    node->sequence = (uint32_t)timers->starts++;
}

/* Without the earliest timer next_ns would be needlessly early. */
static inline void weir__timers_forget_next(weir__timers *timers, const weir_timer_node *node)
{
    if (node->at_ns >= 0 && node->at_ns <= timers->next_ns)
        timers->next_ns = WEIR__TIMERS_UNKNOWN;
}

static inline void weir__timers_remove(weir__timers *timers, weir_timer_node *node)
{
    weir__timers_unlink(node);
    node->pprev = NULL;
    timers->ends++;
    weir__timers_forget_next(timers, node);
}

/* ---- functions ---- */

void weir__timers_init(weir__timers *timers, int64_t now_ns);

/*
 * Starts or restarts a timer; it comes after all others of the same deadline. A deadline before 0
 * counts as 0, WEIR_NEVER never expires. A node that was never started is zeroed.
 */
void weir__timers_start(weir__timers *timers, weir_timer_node *node, int64_t at_ns);

/*
 * The same, with a deadline `delay_ns` >= 0 after the time of the next weir__timers_resolve: the
 * caller need not read the clock, and the timer is not early.
 */
static inline void weir__timers_start_after(weir__timers *timers, weir_timer_node *node,
                                            int64_t delay_ns)
{
    if (weir__timers_is_linked(node))
        weir__timers_remove(timers, node);
    weir__timers_stamp(timers, node, -1 - delay_ns);
    weir__timers_link(&timers->relative, node);
}

/* Sets the deadlines of relative timers. */
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

/* Does nothing if the timer is not running. */
static inline void weir__timers_stop(weir__timers *timers, weir_timer_node *node)
{
    if (!weir__timers_is_linked(node))
        return;
    __builtin_prefetch(node->next); /* both at once, before the stores, which wait in order */
    __builtin_prefetch(node->pprev);
    weir__timers_remove(timers, node);
}

/*
 * When to call weir__timers_expire again: not after the earliest deadline, WEIR_NEVER without
 * timers. It is exact unless many timers share the first slot; then it is the start of that slot.
 * Once expire(now) has returned NULL it is after now until a timer is started. Relative timers do
 * not count: resolve them first.
 */
int64_t weir__timers_find_next(weir__timers *timers);

static inline int64_t weir__timers_next(weir__timers *timers)
{
    return timers->next_ns != WEIR__TIMERS_UNKNOWN ? timers->next_ns
                                                   : weir__timers_find_next(timers);
}

/*
 * Removes and returns the first timer if its deadline is not after now_ns; otherwise NULL. Timers
 * may be started, at any time, and stopped between two calls. Relative timers do not expire.
 */
weir_timer_node *weir__timers_expire_due(weir__timers *timers, int64_t now_ns);

/*
 * False if weir__timers_expire has nothing to do. Without a due timer the position may lag: timers
 * started meanwhile are in slots that are coarser than necessary, and a short lag keeps those few.
 */
static inline bool weir__timers_may_expire(const weir__timers *timers, int64_t now_ns)
{
    return now_ns >= timers->next_ns || now_ns - timers->position_ns >= WEIR__TIMERS_LAG_MAX_NS;
}

static inline weir_timer_node *weir__timers_expire(weir__timers *timers, int64_t now_ns)
{
    return weir__timers_may_expire(timers, now_ns) ? weir__timers_expire_due(timers, now_ns) : NULL;
}

/* Removes and returns any timer; NULL if there is none. */
weir_timer_node *weir__timers_pop_any(weir__timers *timers);

static inline size_t weir__timers_count(const weir__timers *timers)
{
    return timers->starts - timers->ends;
}

#endif
