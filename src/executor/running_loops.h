/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The event loops of the process that are running: started, and neither suspended nor terminated.
 *
 * Loops of blocking channels are not in the list: blocking them is allowed.
 */
#ifndef WEIR_EXECUTOR_RUNNING_LOOPS_H
#define WEIR_EXECUTOR_RUNNING_LOOPS_H

#include <stdatomic.h>

#include <weir/executor.h>

#include "base/list.h"

/* What the watchdog has seen of a loop. Guarded by its lock. */
typedef struct weir__watch {
    uint64_t look;        /* the number of its last look at the loop while it was awake */
    uint64_t turns;       /* then */
    int64_t observed_ns;  /* for how long it was in this turn */
    bool is_blocked;      /* the turn was reported */
    bool has_times;       /* the following are set: since its second look at the turn */
    int64_t since_ns;     /* time of CLOCK_MONOTONIC */
    int64_t busy_ns;      /* time for which the thread used or wanted a CPU, at that time */
    int64_t cpu_ns;       /* at the last look: CPU time of the thread */
    int64_t run_delay_ns; /* then: see weir__thread_run_delay */
} weir__watch;

/* The part of each executor. Guarded by the lock of the list. */
typedef struct weir__running_loop {
    weir__list link; /* zero: not in the list */
    bool is_mark;    /* the place of an iteration, not a loop */
    weir__watch watch;
} weir__running_loop;

/*
 * Adds and removes an executor. No effect if it is no event loop, or is in the list already, or not
 * in it. The list has a weak reference, so the caller needs one of its own.
 */
void weir__running_loops_add(weir_executor *executor);
void weir__running_loops_remove(weir_executor *executor);

/*
 * Calls `fn` for each loop, in the order in which they were started, with a weak reference and
 * without a lock. A loop may suspend itself or terminate meanwhile. Loops started meanwhile may be
 * left out. Any thread.
 */
typedef void weir__running_loop_fn(weir_executor *loop, void *arg);
void weir__running_loops_foreach(weir__running_loop_fn *fn, void *arg);

/*
 * Lets the watchdog sleep while all loops do: true if none was awake when the alarm was set. It is
 * a futex that is 1 until the next loop wakes up, or weir__running_loops_ring is called, and 0
 * then. False, too, if the kernel has no barrier for other threads.
 */
extern _Atomic uint32_t weir__running_loops_alarm;

bool weir__running_loops_set_alarm(void);
void weir__running_loops_ring(void);

/* The thread of an executor, after `active` has said that it is awake. */
void weir__running_loop_ring(const weir_executor *executor);

static inline void weir__running_loop_woke_up(const weir_executor *executor)
{
    /* The compiler keeps the order; the processor's is up to the barrier of set_alarm. */
    atomic_signal_fence(memory_order_seq_cst);
    if (atomic_load_explicit(&weir__running_loops_alarm, memory_order_relaxed) != 0)
        weir__running_loop_ring(executor);
}

/* Any thread: begins and ends the recording of every turn; true meanwhile. Calls are counted. */
void weir__running_loops_begin_timing(void);
void weir__running_loops_end_timing(void);
bool weir__running_loops_are_timed(void);

/*
 * Lets a signal interrupt the threads that weir has started for event loops, whose signals are
 * blocked otherwise; 0: none. `begin` is called by each new thread. Threads of a factory of the
 * user's, and those that run a manual loop, keep their masks.
 */
void weir__running_loops_allow_signal(int signal);
void weir__running_loop_begin(const weir_executor *executor);

#endif
