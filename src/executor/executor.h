/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Internals of executors, shared by all types: plain, global, manual, immediate, and the event
 * loops of src/loop.
 *
 * An executor repeats a turn: wait, run, update the state. A type supplies its way of waiting in a
 * weir__executor_type; the rest is in executor.c (submitting, the turn, sleeping) and lifecycle.c
 * (starting, suspending, ending).
 */
#ifndef WEIR_EXECUTOR_EXECUTOR_H
#define WEIR_EXECUTOR_EXECUTOR_H

#include <assert.h>
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
#include "executor/member.h"
#include "executor/running_loops.h"
#include "executor/task.h"
#include "os/clock.h"
#include "os/thread.h"

/* A value of next_wakeup that is not a deadline; published deadlines are greater than 0. */
#define WEIR__AWAKE INT64_C(-1)

/* `when` of a submission: wakes an executor that would sleep beyond it. */
#define WEIR__NOW INT64_C(0)
#define WEIR__LAZY WEIR_NEVER

/* A value of woken_ns that is not a time: this wake-up gives no sample of the queue latency. */
#define WEIR__WOKEN_UNTIMED INT64_C(-1)

/* The turn has the budget that the type returns. */
#define WEIR__TYPE_BUDGET INT64_MIN

/*
 * The handler or channel that a task or timer runs for, which a report of the watchdog names. In
 * the stack frame of the function that calls it; read by a signal handler on the same thread.
 */
typedef struct weir__subject {
    struct weir_channel *channel; /* NULL: that of ctx */
    struct weir_ctx *ctx;         /* NULL: not a certain handler */
    const char *call;             /* of the handler: "timer", ... */
    struct weir__subject *outer;
} weir__subject;

typedef struct weir__executor_type {
    const char *name;
    size_t size;     /* of the whole object, whose first member is the weir_executor */
    bool is_loop;    /* waiting for a promise on its thread is refused */
    bool threadless; /* has no thread: the caller's thread runs it */

    /* Any thread, at creation, which fails with its error. Undone by `destroy`. May be NULL. */
    int (*create)(weir_executor *executor);

    /* The new thread, first of all; an error ends the executor. May be NULL. */
    int (*begin)(weir_executor *executor);

    /* The executor's thread: true if the type itself has work now. NULL: never. */
    bool (*has_work)(weir_executor *executor);

    /*
     * The executor's thread, before it sleeps: may poll for work, until the deadline of its own
     * clock at the latest. Returns true if there is work: then the thread does not sleep. `wake` is
     * not called meanwhile, because the executor counts as awake, so this must also poll
     * weir__executor_is_notified. If it polls or returns true it first
     * calls the hooks of base/turn_hooks.h. NULL: does not poll.
     */
    bool (*busy_poll)(weir_executor *executor, int64_t deadline_ns);

    /*
     * The executor's thread: waits until the deadline by CLOCK_MONOTONIC (0: does not wait), until
     * woken, or until there is I/O. May return early.
     */
    void (*wait)(weir_executor *executor, int64_t deadline_ns);

    /*
     * The executor's thread, after waking up and updating its time: does the I/O. Returns the time
     * for the tasks of this turn. NULL: no I/O, and tasks have options.task_cap_ns.
     */
    int64_t (*dispatch)(weir_executor *executor);

    /* The owner of a manual executor, at the end of a run: submits the I/O that was prepared. May
     * be NULL. */
    void (*flush)(weir_executor *executor);

    /* Any thread: ends the current or next wait. Called at most once per published deadline. */
    void (*wake)(weir_executor *executor);

    /* Any thread: the number of open handles, which prevent a suspension. NULL: none. */
    uint64_t (*handles)(const weir_executor *executor);

    /*
     * The executor's thread, in each turn of a shutdown until it returns true: all handles are
     * closed. Closing may wait for a peer until `abort` is set. NULL: nothing is open.
     */
    bool (*drain)(weir_executor *executor, bool abort);

    /* The executor's thread, at its end and before a suspension: undoes `begin`. May be NULL. */
    void (*end)(weir_executor *executor);

    /* Any thread: the last reference was released. May be NULL. */
    void (*destroy)(weir_executor *executor);

    /* Runs a task at once instead of queueing it: for a type whose queue is never open. */
    void (*run_inline)(weir_executor *executor, weir_task *task);
} weir__executor_type;

typedef struct weir__executor_options {
    const char *name;
    const char *group; /* the name of its group, or NULL; only until it is created */
    weir_clock *clock;
    int64_t max_pending; /* 0: no bound */
    weir_rejected_fn *rejected;
    void *rejected_data;
    int64_t task_cap_ns;                /* WEIR_NEVER: none */
    int cpu;                            /* -1: any */
    weir_thread_factory thread_factory; /* start == NULL: weir starts the thread */
    int64_t idle_ns;                    /* suspends itself when idle for this long, or WEIR_NEVER */
    bool permanent;                     /* cannot be shut down */
    const void *type_options;           /* for the type's `create`, and only until then */

    /* Any thread: called once, when the executor has terminated or was given up. */
    void (*on_terminated)(weir_executor *executor, int err, void *arg);
    void *on_terminated_arg;

    /* Called as the last step of a thread that suspended the executor because it was idle. Another
     * thread may have been started since. May be NULL. */
    void (*on_idle)(weir_executor *executor, void *arg);
    void *on_idle_arg;

    bool in_pages; /* allocates whole pages: untouched ones take no memory */
} weir__executor_options;

/* In the metric registry: "executor.pending{group=...,loop=...}", ... */
enum {
    WEIR__METRIC_PENDING,
    WEIR__METRIC_TASKS_RUN,
    WEIR__METRIC_WAKEUPS,
    WEIR__METRIC_TIMERS,
    WEIR__METRIC_UTILISATION,
    WEIR__METRIC_QUEUE_LATENCY,
    WEIR__METRIC_RUN_TIME,
    WEIR__METRIC_COUNT,
};

struct weir_executor {
    /* Written at creation and under lifecycle.lock; read by any thread. */
    const weir__executor_type *type;
    weir__executor_options options;
    char name[16];
    uint64_t number; /* unique in the process; names are not */
    char labels[96]; /* of its metrics */
    void *process;   /* its thread belongs to: weir__process_enter */
    _Atomic uint32_t state;
    _Atomic(const void *) owner;    /* the thread for which weir_in_executor is true */
    _Atomic(const void *) consumer; /* the thread that may access `turn` now */

    /* Written by producers. */
    alignas(64) weir__queue queue;
    _Atomic int64_t admitted; /* tasks that count against max_pending */

    /* The sleep protocol: executor.c. */
    alignas(64) _Atomic int64_t next_wakeup;
    _Atomic uint32_t token; /* futex of a plain executor: 1 = woken */
    _Atomic uint64_t wakeups_made;
    _Atomic int64_t woken_ns; /* when a thread ended this sleep; 0: none did */

    /* Accessed by the consumer only. */
    alignas(64) struct {
        weir__chain ready; /* from the queue, or submitted by this thread */
        weir__chain tail;
        weir__task_returns returns;
        struct {                   /* of the mailbox that runs: mailbox.c */
            weir_queue_node *last; /* the last task that was ready when it took its mails */
            const void *mailbox;
        } mark;
        int64_t now_ns; /* time of the last clock read */
        uint64_t last_taken;
        uint32_t state; /* as seen at the start of the turn */
        int64_t window_ns;
        int64_t window_active_ns;
        unsigned batch; /* tasks between two clock reads */
        struct {        /* of the queue latency: sample_queue_latency in executor.c */
            int64_t at_ns;
            int64_t woke_ns; /* the end of the last sleep */
            uint64_t behind; /* the number of tasks, since the creation, that run before it */
        } sample;
        _Atomic(weir__subject *) subject;
    } turn;

    /* Written by the consumer, read by any thread: executor_stats.c. */
    struct {
        _Atomic uint64_t taken;      /* tasks that the consumer took from the queue or submitted */
        _Atomic uint64_t submitted;  /* tasks of `taken` that came from other threads */
        _Atomic uint64_t run;        /* tasks and timers called with status 0 */
        _Atomic uint64_t cancelled;  /* tasks and timers called with WEIR_ECANCELED */
        _Atomic uint64_t ran_timers; /* of both */
        _Atomic uint64_t uncounted;  /* internal tasks called, which are in none of the above */
        _Atomic uint64_t events;     /* I/O events dispatched, or batches of them */
        _Atomic uint64_t timers;
        _Atomic uint64_t turns;
        _Atomic int64_t turn_began;      /* the time after the wait */
        _Atomic uint64_t sample_at;      /* the next number of turns to sample; any thread may
                                            write 0: the current turn is blocked */
        _Atomic uint64_t blocked_turn;   /* the number of turns after the last blocked one */
        _Atomic int64_t blocked_turn_ns; /* its duration */
        _Atomic int64_t active;
        _Atomic uint32_t window_version;
        _Atomic int64_t window_ns;
        _Atomic int64_t window_active_ns;
        weir_histogram queue_latency;
        weir_histogram run_time;
        weir_histogram turn_time; /* of each 64th turn, and of blocked ones */
    } stats;

    /* Its share of the process-wide counters. Not used by `run_inline` types: many threads run
     * their tasks. */
    weir__counter_shard shard;

    /* Guarded by `lock`, except where noted. */
    struct {
        weir__mutex lock;
        weir__executor_thread *threads; /* started for this executor, newest first */
        weir__list hooks;
        bool hooks_done;
        int64_t quiet_from_ns; /* earliest start of the quiet period: shutdown or drain */
        int64_t quiet_ns;
        bool drained; /* accessed by the thread only */
        int64_t timeout_at_ns;
        int64_t last_task_ns;   /* thread only */
        uint64_t last_run;      /* thread only */
        int64_t next_check_ns;  /* thread only */
        weir_promise *watchdog; /* fails the termination if the thread does not end in time */
        weir_promise *termination;
        _Atomic bool reported;         /* on_terminated was called */
        weir_thread_properties thread; /* thread only */
    } lifecycle;

    /* The thread that runs it, or the owner of a manual executor; 0: none yet. Any thread reads. */
    _Atomic pid_t thread_id;
    _Atomic clockid_t cpu_clock;

    weir__members members;
    struct {
        struct weir_group *group; /* that grows: a reference to its memory; or NULL */
        weir__list link;          /* among the idle members */
        uint64_t count;
    } lease; /* guarded by the lock of the group: group.c */
    weir__running_loop running_loop;
    weir_clock_observer observer;
    weir__refs refs;        /* keep the memory; weak references are in `refs` alone */
    _Atomic uint32_t users; /* references that may use the executor: lifecycle.c */
    weir_metric metrics[WEIR__METRIC_COUNT];
    weir__timers timers;
};

extern const weir__executor_type weir__plain_type;

/* ---- creation and lifecycle (lifecycle.c) ---- */

int weir__executor_create(const weir__executor_type *type, const weir__executor_options *options,
                          weir_executor **ret_executor);

/* For executors in static memory, which are never released. */
void weir__executor_init(weir_executor *executor, const weir__executor_type *type,
                         const weir__executor_options *options);

/* References that keep only the memory, for objects that the executor may own: a task's promise. */
void weir__executor_weak_retain(weir_executor *executor);
void weir__executor_weak_release(weir_executor *executor);

/* Opens the queue of an executor for a push, starting its thread. Returns why it cannot. */
int weir__executor_open(weir_executor *executor);

/* Waits until all threads of the executor have ended. Not to be called on one of them. */
void weir__executor_join(weir_executor *executor);

/* Frees the objects of threads of the global executor that have ended: for a simulator. */
void weir__executor_global_reap(void);

/* Returns its threads; the caller now has to wait for them. */
weir__executor_thread *weir__executor_take_threads(weir_executor *executor);

/* True if only the caller and the group refer to the executor. */
bool weir__executor_is_unreferenced(const weir_executor *executor);

/* Like weir__executor_join, but abandons threads that have not ended by the deadline. */
void weir__executor_join_until(weir_executor *executor, int64_t deadline_ns);

/* The slow paths of weir__executor_update_state and weir__executor_next_check. */
bool weir__executor_change_state(weir_executor *executor);
int64_t weir__executor_find_next_check(const weir_executor *executor);

/* The thread's last step: sets TERMINATED and completes the termination. */
void weir__executor_terminate(weir_executor *executor, int err);

/* Runs each hook once, in order, including hooks added by hooks. After the last call none can be
 * added (hooks.c). */
void weir__executor_run_hooks(weir_executor *executor, bool last_call);

/* Calls the type's `end`. */
void weir__executor_stop_type(weir_executor *executor);

/*
 * How long after the deadline of a shutdown a thread is given up. 100 ms; a variable for the tests,
 * where a thread may have to wait longer for a CPU. Any thread may set it.
 */
extern _Atomic int64_t weir__shutdown_grace_ns;

/* ---- leases (group.c): no effect on an executor whose group does not grow ---- */

/* Any thread: keeps the executor in use. It exists, so the bound of the group does not apply. */
void weir__executor_lease(weir_executor *executor);
void weir__executor_unlease(weir_executor *executor);

/* The executor is about to be freed. */
void weir__executor_leave_group(weir_executor *executor);

/* ---- timers (timer.c, schedule.c) ---- */

/* Like weir_timer_start, with the timer's own function; also for the timers of handlers. */
int weir__timer_start(weir_executor *executor, weir_timer *timer, int64_t delay_ns);

/* The executor's thread: the time that a running timer has left, by the executor's clock. */
int64_t weir__timer_left(const weir_timer *timer);

/* True if the timer is that of a scheduled task, not one in the user's memory. */
bool weir__schedule_owns(const weir_timer *timer);

/* The executor has removed the timer without running it: cancels the scheduled task. */
void weir__schedule_cancelled(weir_timer *timer);

/* ---- running (executor.c) ---- */

/* Queues a task, ignoring max_pending. Fails only if the executor accepts no tasks. */
int weir__executor_post(weir_executor *executor, weir_task *task, int64_t when_ns);

/* Queues a tail task, ignoring max_pending. Only on the executor's thread. */
int weir__executor_post_after_turn(weir_executor *executor, weir_task *task);

/* Queues a task after this one that is ready, or before all others if `after` is NULL, ignoring
 * max_pending. Only on the executor's thread. */
int weir__executor_post_first(weir_executor *executor, weir_task *task, weir_queue_node *after);

/* Like weir_execute, but does not call the rejection policy. */
int weir__executor_try_execute(weir_executor *executor, weir_task_fn *fn, void *arg,
                               int64_t when_ns);

/* Runs one turn: sleeps until `limit_ns` at the latest, then runs tasks for `budget_ns` (negative:
 * none), or for the time that the type returns (WEIR__TYPE_BUDGET). */
void weir__executor_turn(weir_executor *executor, int64_t limit_ns, int64_t budget_ns);

/* The time at which the next turn has work, at most `limit_ns`; 0: now. */
int64_t weir__executor_deadline(weir_executor *executor, int64_t limit_ns);

/* The executor's thread: reads the clock into turn.now_ns. */
void weir__executor_update_time(weir_executor *executor);

/* Any thread: ends a sleep, if the executor sleeps. */
void weir__executor_wake(weir_executor *executor);

/* The executor's thread: calls the remaining tasks with this status. Returns the number cancelled.
 */
uint64_t weir__executor_drain(weir_executor *executor, int status);
void weir__executor_cancel_timers(weir_executor *executor);

static inline bool weir__executor_has_tasks(const weir_executor *executor)
{
    return executor->turn.ready.first != NULL || executor->turn.tail.first != NULL ||
           !weir__queue_is_empty(&executor->queue);
}

/* The executor's thread: the last task that is ready, or NULL. */
static inline weir_queue_node *weir__executor_last_ready(const weir_executor *executor)
{
    return executor->turn.ready.first != NULL ? executor->turn.ready.last : NULL;
}

static inline uint64_t weir__executor_handles(const weir_executor *executor)
{
    return executor->type->handles != NULL ? executor->type->handles(executor) : 0;
}

static inline uint32_t weir__executor_state(const weir_executor *executor)
{
    return atomic_load_explicit(&executor->state, memory_order_seq_cst);
}

/* After a turn: does what the state asks for. Returns true when the thread has to end. */
static inline bool weir__executor_update_state(weir_executor *executor)
{
    uint32_t state = executor->turn.state = weir__executor_state(executor);

    if (state == WEIR_EXECUTOR_STARTED && executor->options.idle_ns == WEIR_NEVER)
        return false;
    return weir__executor_change_state(executor);
}

/* The time of the next weir__executor_update_state that is not caused by work, or WEIR_NEVER. */
static inline int64_t weir__executor_next_check(const weir_executor *executor)
{
    if (executor->turn.state == WEIR_EXECUTOR_STARTED && executor->options.idle_ns == WEIR_NEVER)
        return WEIR_NEVER;
    return weir__executor_find_next_check(executor);
}

/* The executor's time; always less than WEIR_NEVER. */
static inline int64_t weir__executor_now(const weir_executor *executor)
{
    int64_t now_ns = weir__clock_now(executor->options.clock);

    return now_ns < WEIR_NEVER ? now_ns : WEIR_NEVER - 1;
}

/* The bound of a queue: 0 (none), or at least 16. */
static inline int64_t weir__queue_bound(int64_t max_pending)
{
    return max_pending > 0 && max_pending < 16 ? 16 : max_pending;
}

/* now_ns + delay_ns, saturated at WEIR_NEVER. */
static inline int64_t weir__deadline(int64_t now_ns, int64_t delay_ns)
{
    if (delay_ns <= 0)
        return now_ns;
    return delay_ns > WEIR_NEVER - now_ns ? WEIR_NEVER : now_ns + delay_ns;
}

/*
 * Identifies this thread in `owner` and `consumer`: by its address, plus the number of the fiber in
 * a simulator, whose fibers are one thread.
 */
extern _Thread_local uintptr_t weir__fiber
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

static inline const void *weir__thread_self(void)
{
    return (const char *)&weir__fiber + weir__fiber;
}

/* The executor that the calling thread runs, or NULL. */
extern _Thread_local weir_executor *weir__current
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* The number of loops that the calling thread runs: a loop's task may run a manual executor. */
extern _Thread_local unsigned weir__loop_depth
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* Makes the executor current on this thread. Returns the one before, for `leave`. */
static inline weir_executor *weir__executor_enter(weir_executor *executor)
{
    weir_executor *before = weir__current;

    weir__current = executor;
    weir__loop_depth += executor->type->is_loop;
    atomic_store_explicit(&executor->consumer, weir__thread_self(), memory_order_relaxed);
    return before;
}

static inline void weir__executor_leave(weir_executor *executor, weir_executor *before)
{
    atomic_store_explicit(&executor->consumer, NULL, memory_order_relaxed);
    weir__loop_depth -= executor->type->is_loop;
    weir__current = before;
}

/* The thread becomes that of the executor, for the watchdog. */
static inline void weir__executor_set_thread(weir_executor *executor)
{
    atomic_store_explicit(&executor->cpu_clock, weir__thread_cpu_clock(), memory_order_relaxed);
    atomic_store_explicit(&executor->thread_id, weir__thread_id(), memory_order_release);
}

/* The executor's thread: the calls between the two are made for the subject. */
static inline void weir__executor_enter_subject(weir_executor *executor, weir__subject *subject)
{
    subject->outer = atomic_load_explicit(&executor->turn.subject, memory_order_relaxed);
    atomic_signal_fence(memory_order_release);
    atomic_store_explicit(&executor->turn.subject, subject, memory_order_relaxed);
}

static inline void weir__executor_leave_subject(weir_executor *executor,
                                                const weir__subject *subject)
{
    atomic_store_explicit(&executor->turn.subject, subject->outer, memory_order_relaxed);
    atomic_signal_fence(memory_order_release);
}

/* True if this thread runs a task of an event loop, possibly an outer one. */
static inline bool weir__executor_on_loop(void)
{
    return weir__loop_depth > 0;
}

/* True if another thread has queued a task or changed the state, or if a manual clock has passed
 * the deadline. */
static inline bool weir__executor_is_notified(const weir_executor *executor, int64_t deadline_ns)
{
    return !weir__queue_is_empty(&executor->queue) ||
           weir__executor_state(executor) != executor->turn.state ||
           /* a manual clock may have been set before the deadline was published */
           (executor->options.clock->manual && weir__executor_now(executor) >= deadline_ns);
}

/* Marks the executor as asleep until the next turn. Returns true if there is no work. */
static inline bool weir__executor_publish_deadline(weir_executor *executor, int64_t deadline_ns)
{
    atomic_store_explicit(&executor->next_wakeup, deadline_ns, memory_order_seq_cst);
    return !weir__executor_is_notified(executor, deadline_ns);
}

/* True if a task of the immediate executor runs on the calling thread (immediate.c). */
bool weir__immediate_is_running(void);

static inline bool weir__in_executor(const weir_executor *executor)
{
    return atomic_load_explicit(&executor->owner, memory_order_relaxed) == weir__thread_self() ||
           executor->type->run_inline != NULL;
}

static inline bool weir__executor_is_consumer(const weir_executor *executor)
{
    return atomic_load_explicit(&executor->consumer, memory_order_relaxed) == weir__thread_self();
}

/* ---- stats (executor_stats.c) ---- */

int weir__executor_stats_init(weir_executor *executor);
void weir__executor_stats_deinit(weir_executor *executor);

#define WEIR__STATS_WINDOW_NS weir_seconds(1)

/* The executor's thread: begins the next window of the utilisation, after work or after a long
 * sleep. */
void weir__executor_stats_next_window(weir_executor *executor);
void weir__executor_stats_skip_window(weir_executor *executor);

/* Time awake so far, by the executor's clock. */
static inline int64_t weir__executor_stats_active(const weir_executor *executor, int64_t now_ns)
{
    int64_t word = atomic_load_explicit(&executor->stats.active, memory_order_relaxed);

    return word < 0 ? word + 1 + now_ns : word;
}

/*
 * The executor's thread: before and after a sleep, and at the end of a turn. Release: a reader of
 * `active` reads a time not before the one at which it was written.
 */
static inline void weir__executor_stats_asleep(weir_executor *executor)
{
    int64_t word = atomic_load_explicit(&executor->stats.active, memory_order_relaxed);

    assert(word < 0);
    atomic_store_explicit(&executor->stats.active, word + 1 + executor->turn.now_ns,
                          memory_order_release);
    atomic_store_explicit(&executor->woken_ns, 0, memory_order_relaxed);
}

static inline void weir__executor_stats_awake(weir_executor *executor)
{
    int64_t now_ns = executor->turn.now_ns;

    executor->turn.sample.woke_ns = now_ns;
    if (now_ns - executor->turn.window_ns >= 2 * WEIR__STATS_WINDOW_NS)
        weir__executor_stats_skip_window(executor);
    atomic_store_explicit(&executor->stats.active,
                          weir__executor_stats_active(executor, now_ns) - now_ns - 1,
                          memory_order_release);
    weir__running_loop_woke_up(executor);
}

/* Cold: records the duration of the turn that ends. */
void weir__executor_stats_sample_turn(weir_executor *executor);

static inline void weir__executor_stats_turn(weir_executor *executor)
{
    uint64_t turns = atomic_load_explicit(&executor->stats.turns, memory_order_relaxed) + 1;

    atomic_store_explicit(&executor->stats.turns, turns, memory_order_relaxed);
    if (turns >= atomic_load_explicit(&executor->stats.sample_at, memory_order_relaxed))
        weir__executor_stats_sample_turn(executor);
    atomic_store_explicit(&executor->stats.timers, weir__timers_count(&executor->timers),
                          memory_order_relaxed);
    if (executor->turn.now_ns - executor->turn.window_ns >= WEIR__STATS_WINDOW_NS)
        weir__executor_stats_next_window(executor);
}

/* Any thread: the same, and the time of the reading; 0 if the executor has terminated. */
int64_t weir__executor_stats_read_active(const weir_executor *executor, int64_t *ret_now_ns);

/* The executor's thread: counts a call with this status, before it is made. */
static inline void weir__executor_stats_count_task(weir_executor *executor, int status)
{
    if (status == 0)
        weir__counter_add(executor->stats.run, 1);
    else
        weir__counter_add(executor->stats.cancelled, 1);
}

/* Release: a reader of `ran_timers` then finds the timer in `run` or `cancelled`. */
static inline void weir__executor_stats_count_timer(weir_executor *executor, int status)
{
    uint64_t timers = atomic_load_explicit(&executor->stats.ran_timers, memory_order_relaxed);

    weir__executor_stats_count_task(executor, status);
    atomic_store_explicit(&executor->stats.ran_timers, timers + 1, memory_order_release);
}

/* The number of tasks called so far; on another thread, or more. */
static inline uint64_t weir__executor_stats_popped(const weir_executor *executor)
{
    uint64_t timers = atomic_load_explicit(&executor->stats.ran_timers, memory_order_acquire);

    return atomic_load_explicit(&executor->stats.run, memory_order_relaxed) +
           atomic_load_explicit(&executor->stats.cancelled, memory_order_relaxed) +
           atomic_load_explicit(&executor->stats.uncounted, memory_order_relaxed) - timers;
}

/* The number of calls and I/O events so far. */
static inline uint64_t weir__executor_stats_calls(const weir_executor *executor)
{
    return atomic_load_explicit(&executor->stats.run, memory_order_relaxed) +
           atomic_load_explicit(&executor->stats.cancelled, memory_order_relaxed) +
           atomic_load_explicit(&executor->stats.events, memory_order_relaxed);
}

#endif
