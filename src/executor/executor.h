/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of an executor, for the kinds that are made of it: plain, global, manual, immediate,
 * and the event loops above.
 *
 * An executor is a turn that repeats - wait, run, look at the state - around a kind's way of
 * waiting. What a kind brings is in weir__executor_type; the rest is written once, in executor.c
 * (submitting, the turn, sleeping) and lifecycle.c (starting, suspending, ending).
 */
#ifndef WEIR_EXECUTOR_EXECUTOR_H
#define WEIR_EXECUTOR_EXECUTOR_H

#include <stdalign.h>
#include <stdatomic.h>

#include <weir/clock.h>
#include <weir/executor.h>
#include <weir/promise.h>
#include <weir/thread.h>
#include <weir/timer.h>

#include "base/histogram.h"
#include "base/list.h"
#include "base/metric.h"
#include "base/queue.h"
#include "base/refcount.h"
#include "base/sharded_counters.h"
#include "base/timers.h"
#include "executor/executor_thread.h"
#include "executor/leases.h"
#include "executor/member.h"
#include "executor/task.h"
#include "os/clock.h"
#include "os/thread.h"

/* The value of next_wakeup that is no deadline; deadlines that are slept for are greater than 0. */
#define WEIR__AWAKE INT64_C(-1)

/* `when` of a submission: wakes an executor that would sleep longer than that. */
#define WEIR__NOW INT64_C(0)
#define WEIR__LAZY WEIR_NEVER

/* The budget of a turn is what the kind says. */
#define WEIR__TYPE_BUDGET INT64_MIN

typedef struct weir__executor_type {
    const char *name;
    size_t size;     /* of the whole object, whose first member is the weir_executor */
    bool is_loop;    /* nobody may wait for a promise on its thread */
    bool threadless; /* no thread of its own: the caller's runs it */

    /* Any thread, at creation: an error is the creation's. Undone by destroy. NULL = nothing. */
    int (*create)(weir_executor *executor);

    /* The new thread, before anything else; an error ends the executor with it. NULL = nothing. */
    int (*begin)(weir_executor *executor);

    /* The executor's thread: something of the kind's own is to be done now. NULL = never. */
    bool (*has_work)(weir_executor *executor);

    /*
     * The executor's thread, before it sleeps: may look for work itself for a while, not beyond the
     * deadline by its own clock. True if there is some: then it does not sleep. It counts as awake
     * meanwhile, so nobody calls `wake`: what weir__executor_is_notified says is work, too. NULL =
     * does not look.
     */
    bool (*look)(weir_executor *executor, int64_t deadline_ns);

    /*
     * The executor's thread: waits until the deadline by CLOCK_MONOTONIC (0: does not), until
     * woken, or until there is I/O. It may return early, for no reason.
     */
    void (*wait)(weir_executor *executor, int64_t deadline_ns);

    /*
     * The executor's thread, awake again, after it has looked at its clock: does the I/O. Returns
     * how long the tasks of this turn may take. NULL = there is none, and tasks have their cap.
     */
    int64_t (*dispatch)(weir_executor *executor);

    /* The owner of a manual executor leaves it until the next run: what was begun goes on by
     * itself. NULL = it does. */
    void (*flush)(weir_executor *executor);

    /* Any thread: ends the current or the next wait. Called at most once per published deadline. */
    void (*wake)(weir_executor *executor);

    /* Any thread: how many handles there are. The executor is not suspended with one. NULL = none.
     */
    uint64_t (*handles)(const weir_executor *executor);

    /*
     * The executor's thread, in each turn of a shutdown until it says true: everything that is open
     * has been let go of. What waits for a peer may take until `abort`. NULL = nothing was open.
     */
    bool (*drain)(weir_executor *executor, bool abort);

    /* The executor's thread, as the last: what `begin` began. Also before a suspension. NULL =
     * nothing. */
    void (*end)(weir_executor *executor);

    /* Any thread: the last reference has gone. NULL = nothing. */
    void (*destroy)(weir_executor *executor);

    /* Runs a task at once instead of queueing it: a kind whose queue is never open. */
    void (*run_inline)(weir_executor *executor, weir_task *task);
} weir__executor_type;

typedef struct weir__executor_options {
    const char *name;
    weir_clock *clock;
    int64_t max_pending; /* 0 = no bound */
    weir_rejected_fn *rejected;
    void *rejected_data;
    int64_t task_cap_ns;                /* WEIR_NEVER = none */
    int cpu;                            /* -1 = any */
    weir_thread_factory thread_factory; /* start = NULL: a thread of our own */
    int64_t idle_ns;                    /* suspends itself after this long, WEIR_NEVER = does not */
    bool permanent;                     /* cannot be shut down */
    const void *kind;                   /* what the kind's `create` is told, for as long */

    /* Called once, when the executor has ended or was given up, on any thread. */
    void (*on_terminated)(weir_executor *executor, int err, void *arg);
    void *on_terminated_arg;

    /* Called by a thread that has suspended the executor because it was idle, as the thread's last
     * step. Another thread may have started meanwhile. NULL = nothing. */
    void (*on_idle)(weir_executor *executor, void *arg);
    void *on_idle_arg;

    bool in_pages; /* its memory is whole pages: those that it does not use cost nothing */
} weir__executor_options;

/* The figures in the metric registry: "executor.NAME#NUMBER.pending", ... */
enum {
    WEIR__METRIC_PENDING,
    WEIR__METRIC_TASKS_RUN,
    WEIR__METRIC_WAKEUPS,
    WEIR__METRIC_UTILISATION,
    WEIR__METRIC_QUEUE_LATENCY,
    WEIR__METRIC_RUN_TIME,
    WEIR__METRIC_COUNT,
};

struct weir_executor {
    /* Written at creation and under lifecycle.lock; read by everybody. */
    const weir__executor_type *type;
    weir__executor_options options;
    char name[16];
    uint64_t number; /* in the process: names need not be unique */
    _Atomic uint32_t state;
    _Atomic(const void *) owner;    /* the thread that weir_in_executor is true on */
    _Atomic(const void *) consumer; /* the thread that may touch `turn` now */

    /* Written by producers. */
    alignas(64) weir__queue queue;
    _Atomic int64_t admitted; /* tasks that count against max_pending */

    /* The sleep protocol: executor.c. */
    alignas(64) _Atomic int64_t next_wakeup;
    _Atomic uint32_t token; /* what a plain executor sleeps on: 1 = woken */
    _Atomic uint64_t wakeups_made;

    /* The consumer's. */
    alignas(64) struct {
        weir__chain ready; /* taken from the queue, or submitted by the thread itself */
        weir__chain tail;
        weir__task_returns returns;
        int64_t now_ns; /* as of the last look at the clock */
        uint64_t last_taken;
        uint32_t state; /* as seen at the start of the turn */
        int64_t window_ns;
        int64_t window_active_ns;
        unsigned batch; /* tasks between two looks at the clock */
    } turn;

    /* Written by the consumer, read by everybody: executor/executor_stats.h. */
    struct {
        _Atomic uint64_t taken;     /* tasks that came into the consumer's hands, */
        _Atomic uint64_t popped;    /* and left them */
        _Atomic uint64_t submitted; /* of the taken ones, those from other threads */
        _Atomic uint64_t run;       /* functions called with status 0: of tasks and timers, */
        _Atomic uint64_t cancelled; /* and with WEIR_ECANCELED */
        _Atomic uint64_t events;    /* of I/O that were dispatched, or batches of them */
        _Atomic uint64_t timers;
        _Atomic uint64_t turns;
        _Atomic int64_t active;
        _Atomic uint32_t window_version;
        _Atomic int64_t window_ns;
        _Atomic int64_t window_active_ns;
        weir_histogram queue_latency;
        weir_histogram run_time;
    } stats;

    /* What is counted on its thread for the whole process; of `run_inline`, with its many threads,
     * not used. */
    weir__counter_shard shard;

    /* One task that travels with every 64th submission and measures how long that takes. */
    struct {
        weir_task task;
        bool from_outside;            /* its holder's */
        _Atomic int64_t submitted_ns; /* and 1 more, so that 0 = not under way */
    } probe;

    /* Guarded by lifecycle.lock, where not said otherwise. */
    struct {
        weir__mutex lock;
        weir__executor_thread *threads; /* threads that were started here, the newest first */
        weir__list hooks;
        bool hooks_done;
        int64_t quiet_from_ns; /* at the earliest: when it was shut down, or was drained */
        int64_t quiet_ns;
        bool drained; /* the thread's own */
        int64_t timeout_at_ns;
        int64_t last_task_ns;   /* the thread's own */
        uint64_t last_run;      /* the thread's own */
        int64_t next_check_ns;  /* the thread's own */
        weir_promise *watchdog; /* fails the termination if the thread does not come back */
        weir_promise *termination;
        _Atomic bool reported;         /* on_terminated was called */
        weir_thread_properties thread; /* the thread's own */
    } lifecycle;

    weir__members members;
    weir__lease lease;
    weir_clock_observer observer;
    weir__refs refs;        /* on the memory */
    _Atomic uint32_t users; /* those of the references that let somebody use it: lifecycle.c */
    weir_metric metrics[WEIR__METRIC_COUNT];
    weir__timers timers;
};

extern const weir__executor_type weir__plain_type;

/* ---- making one (lifecycle.c) ---- */

int weir__executor_create(const weir__executor_type *type, const weir__executor_options *options,
                          weir_executor **ret_executor);

/* For executors in static memory, which need no release. */
void weir__executor_init(weir_executor *executor, const weir__executor_type *type,
                         const weir__executor_options *options);

/* Keeps the memory alone: for what the executor may hold itself, as it does a task's promise. */
void weir__executor_weak_retain(weir_executor *executor);
void weir__executor_weak_release(weir_executor *executor);

/* Makes the queue of a closed executor ready for a push, or says why not. */
int weir__executor_open(weir_executor *executor);

/* Waits until no thread of the executor's exists any more; not on such a thread. */
void weir__executor_join(weir_executor *executor);

/* The workers of its threads, which become the caller's to wait for. */
weir__executor_thread *weir__executor_take_threads(weir_executor *executor);

/* Nobody but the caller and its group refers to the executor. What others do meanwhile may make
 * that false; nobody can make it true again who does not refer to it. */
bool weir__executor_is_unreferenced(const weir_executor *executor);

/* The same, but threads that have not ended by the deadline are left to themselves. */
void weir__executor_join_until(weir_executor *executor, int64_t deadline_ns);

/* The state may call for more than another turn: true when the thread's work is over. */
bool weir__executor_update_state(weir_executor *executor);

/* The thread's last word: nothing is left, and it will not come back. */
void weir__executor_terminate(weir_executor *executor, int err);

/* Each hook once, in order, also those that hooks add; after the last call none is taken (hooks.c).
 */
void weir__executor_run_hooks(weir_executor *executor, bool last_call);

/* What the kind began on this thread ends. */
void weir__executor_stop_type(weir_executor *executor);

/* When a thread that shuts down wants to look again; WEIR_NEVER otherwise. */
int64_t weir__executor_next_check(const weir_executor *executor);

/* ---- running (executor.c) ---- */

/* Queues a task that no bound applies to. Fails only if the executor takes no tasks. */
int weir__executor_post(weir_executor *executor, weir_task *task, int64_t when_ns);

/* The same at the end of the turn; of the next one, for a task that runs there itself. Only on the
 * executor's thread. */
int weir__executor_post_after_turn(weir_executor *executor, weir_task *task);

/* Submits a pooled task, and does not ask the rejection policy. */
int weir__executor_try_execute(weir_executor *executor, weir_task_fn *fn, void *arg,
                               int64_t when_ns);

/* One turn: sleeps until `limit_ns` at the longest; tasks run for `budget_ns`, not at all if that
 * is negative, or as long as the kind says. */
void weir__executor_turn(weir_executor *executor, int64_t limit_ns, int64_t budget_ns);

/* When the next turn has something to do, as far as is known: 0 = at once. */
int64_t weir__executor_deadline(weir_executor *executor, int64_t limit_ns);

/* Others have given the thread something to do since it last looked, or its manual clock has passed
 * the deadline. */
bool weir__executor_is_notified(const weir_executor *executor, int64_t deadline_ns);

/* The thread is about to sleep: calls the hooks for that (base/turn_hooks.h). Returns until when it
 * may.
 */
int64_t weir__executor_before_sleep(weir_executor *executor, int64_t deadline_ns);

/* The executor counts as asleep until the next turn; true if it may: there is nothing to do. */
bool weir__executor_publish_deadline(weir_executor *executor, int64_t deadline_ns);

/* The thread's: brings turn.now_ns up to date. */
void weir__executor_update_time(weir_executor *executor);

/* Any thread: ends a sleep, if there is one. */
void weir__executor_wake(weir_executor *executor);

/* The thread's: calls what is left, with the status. Returns how many were cancelled. */
uint64_t weir__executor_drain(weir_executor *executor, int status);
void weir__executor_cancel_timers(weir_executor *executor);

/* Enters and leaves the executor on this thread; `enter` returns what was current before. */
weir_executor *weir__executor_enter(weir_executor *executor);
void weir__executor_leave(weir_executor *executor, weir_executor *before);

/* Whether this thread runs an event loop's tasks, directly or further out. */
bool weir__executor_on_loop(void);

static inline bool weir__executor_has_tasks(const weir_executor *executor)
{
    return executor->turn.ready.first != NULL || executor->turn.tail.first != NULL ||
           !weir__queue_is_empty(&executor->queue);
}

static inline uint64_t weir__executor_handles(const weir_executor *executor)
{
    return executor->type->handles != NULL ? executor->type->handles(executor) : 0;
}

static inline uint32_t weir__executor_state(const weir_executor *executor)
{
    return atomic_load_explicit(&executor->state, memory_order_seq_cst);
}

/* Whatever its clock says, WEIR_NEVER has not come. */
static inline int64_t weir__executor_now(const weir_executor *executor)
{
    int64_t now_ns = weir__clock_now(executor->options.clock);

    return now_ns < WEIR_NEVER ? now_ns : WEIR_NEVER - 1;
}

/* The bound of a queue, as asked for: none, or 16 at the least. */
static inline int64_t weir__queue_bound(int64_t max_pending)
{
    return max_pending > 0 && max_pending < 16 ? 16 : max_pending;
}

/* A deadline, from a duration: never past WEIR_NEVER. */
static inline int64_t weir__deadline(int64_t now_ns, int64_t delay_ns)
{
    if (delay_ns <= 0)
        return now_ns;
    return delay_ns > WEIR_NEVER - now_ns ? WEIR_NEVER : now_ns + delay_ns;
}

/* This thread, as a value of `owner` and `consumer`: an address that no other living thread has. */
extern _Thread_local char weir__self
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* The executor that the calling thread serves, or NULL. */
extern _Thread_local weir_executor *weir__current
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* True if a task of the immediate executor runs on the calling thread (immediate.c). */
bool weir__immediate_is_running(void);

static inline bool weir__in_executor(const weir_executor *executor)
{
    return atomic_load_explicit(&executor->owner, memory_order_relaxed) == &weir__self ||
           executor->type->run_inline != NULL;
}

static inline bool weir__executor_is_consumer(const weir_executor *executor)
{
    return atomic_load_explicit(&executor->consumer, memory_order_relaxed) == &weir__self;
}

/* ---- figures (stats.c) ---- */

int weir__executor_stats_init(weir_executor *executor);
void weir__executor_stats_deinit(weir_executor *executor);

/* The thread's own: before and after a sleep. */
void weir__executor_stats_asleep(weir_executor *executor);
void weir__executor_stats_awake(weir_executor *executor);
void weir__executor_stats_turn(weir_executor *executor);

/* Nanoseconds awake so far, by the executor's clock. */
int64_t weir__executor_stats_active(const weir_executor *executor, int64_t now_ns);

/* Any thread: the same, and the time of which that is true; 0 when the executor has ended. */
int64_t weir__executor_stats_read_active(const weir_executor *executor, int64_t *ret_now_ns);

/* The thread's own: a function of the user's is about to be called with this status. */
static inline void weir__executor_stats_count_call(weir_executor *executor, int status)
{
    if (status == 0)
        weir__counter_add(executor->stats.run, 1);
    else
        weir__counter_add(executor->stats.cancelled, 1);
}

/* How many such calls there were, and events of I/O. */
static inline uint64_t weir__executor_stats_calls(const weir_executor *executor)
{
    return atomic_load_explicit(&executor->stats.run, memory_order_relaxed) +
           atomic_load_explicit(&executor->stats.cancelled, memory_order_relaxed) +
           atomic_load_explicit(&executor->stats.events, memory_order_relaxed);
}

#endif
