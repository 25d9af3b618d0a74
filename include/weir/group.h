/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/group.h - a group of executors of one kind, and the chooser that picks the next one.
 *
 *      weir_group_next(group)  --chooser-->  [weir-1] [weir-2] [weir-3] ...
 *
 * Threads start with their first task. weir_group_shutdown ends the group; weir_group_release frees
 * it.
 *
 * Thread per channel (WEIR_IO_BLOCKING, Netty's OIO): such a group has no chooser. Each channel
 * registered with it, listeners and accepted connections included, gets an executor of its own,
 * idle or new, until it is closed or deregistered. Its handlers may block and compute: they delay
 * only their own channel. They may also wait for promises, except those of their own executor
 * (-EDEADLK). A task wakes a thread that waits for bytes: it runs as soon as the handlers and tasks
 * before it have run. A thread without a channel ends after a minute, and its executor is freed.
 */
#ifndef WEIR_GROUP_H
#define WEIR_GROUP_H

#include <weir/base.h>
#include <weir/clock.h>
#include <weir/executor.h>
#include <weir/options.h>
#include <weir/promise.h>
#include <weir/thread.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_group weir_group;

/* --- choosers --------------------------------------------------------------------------------- */

/* Picks the next executor of a group. One const table; the group allocates the state. */
typedef struct weir_chooser {
    const char *name;
    size_t state_size; /* zeroed before init */
    /* Called by weir_group_create, once all members exist; may be NULL. */
    int (*init)(void *state, weir_group *group, const void *options);
    /* Any thread, concurrently. Returns a member of the group. */
    weir_executor *(*next)(void *state, weir_group *group);
    /* Called once if init succeeded, before the members are freed; may be NULL. */
    void (*deinit)(void *state);
    void *reserved[4];
} weir_chooser;

/*
 * Picks each executor in turn. This is the default.
 * Thread: any.
 */
WEIR_API const weir_chooser *weir_chooser_round_robin(void);

/*
 * Picks the executor with the fewest pending tasks, comparing all of them.
 * Thread: any.
 */
WEIR_API const weir_chooser *weir_chooser_least_pending(void);

/*
 * Picks the less loaded of two random executors: fewer pending tasks, then lower utilisation.
 * Nearly as good as comparing all of them, at a constant cost.
 * Thread: any.
 */
WEIR_API const weir_chooser *weir_chooser_two_choices(void);

/*
 * Picks the event loop with the fewest descriptors, and so the fewest channels, comparing all.
 * Thread: any.
 */
WEIR_API const weir_chooser *weir_chooser_least_handles(void);

/*
 * Picks an executor pinned to the caller's CPU (`.pin` of weir_group_options); if there is none,
 * each executor in turn.
 * Thread: any.
 */
WEIR_API const weir_chooser *weir_chooser_by_cpu(void);

/*
 * Suspends and resumes the executors of a group by load. Once per window the utilisation of each
 * member is measured: above `scale_up` for more than `patience` windows it is busy, below
 * `scale_down` for as long it is idle. The aim is one idle member per busy one: while there are
 * fewer, suspended members are resumed; while there are more, idle members without a running timer
 * or an open descriptor are suspended. Initially `max_active` members are active;
 * weir_group_next picks each active member in turn.
 */
typedef struct weir_autoscale_options {
    size_t size;
    int min_active;    /* default 1 */
    int max_active;    /* default all */
    int64_t window_ns; /* default 100 ms */
    double scale_down; /* default 0.25 */
    double scale_up;   /* default 0.75 */
    int ramp_down;     /* members suspended per window, at most; default 1 */
    int ramp_up;       /* members resumed per window, at most; default 1 */
    int patience;      /* windows before the one that acts; default 2, WEIR_OFF: none */
} weir_autoscale_options;

#define WEIR_AUTOSCALE_OPTIONS(...) WEIR_OPTIONS(weir_autoscale_options, __VA_ARGS__)

/* --- group ------------------------------------------------------------------------------------ */

/* The I/O backend of a group's executors. */
enum weir_io {
    WEIR_IO_AUTO, /* event loops on the backend that the environment variable WEIR_IO names: epoll,
                     uring or poll; without it on io_uring if available, otherwise on epoll */
    WEIR_IO_EPOLL,
    WEIR_IO_URING,
    WEIR_IO_POLL,
    WEIR_IO_BLOCKING, /* a thread per channel, see the top of this file */
    WEIR_IO_NONE,     /* plain executors, for blocking calls and computation */
};

/* How an event loop waits for work. */
enum weir_strategy {
    WEIR_STRATEGY_SELECT,    /* sleeps until there is work */
    WEIR_STRATEGY_BUSY_WAIT, /* never sleeps: takes a whole CPU, needs no wakeups */
    WEIR_STRATEGY_ADAPTIVE,  /* polls for a bounded time before it sleeps, if that has paid off */
};

/* The result of a weir_strategy_fn. */
enum weir_wait {
    WEIR_WAIT_SELECT,   /* sleep until there is work; poll, if there is some already */
    WEIR_WAIT_POLL,     /* poll for I/O, but do not sleep */
    WEIR_WAIT_CONTINUE, /* do not poll: this turn is for timers and tasks */
};

/*
 * A custom strategy: called on the loop's thread at the start of each turn. `has_work` is true if
 * there are tasks or due timers. Not called while the loop shuts down.
 */
typedef enum weir_wait weir_strategy_fn(weir_executor *loop, bool has_work, void *user_data);

/* Zero means default. Build with WEIR_GROUP_OPTIONS(.threads = 4, ...). */
typedef struct weir_group_options {
    size_t size;
    int threads; /* default: the environment variable WEIR_LOOP_THREADS, or 2 x CPUs. Ignored with
                    WEIR_IO_BLOCKING, where each channel has a thread */
    enum weir_io io;
    const char *name;            /* threads are named NAME-1, NAME-2, ...; default "weir" */
    const weir_chooser *chooser; /* default weir_chooser_round_robin() */
    const void *chooser_options; /* passed to the init of `chooser` */
    const weir_autoscale_options *autoscale; /* excludes `chooser` */
    int64_t max_pending;        /* bound of each task queue, at least 16; default: none */
    weir_rejected_fn *rejected; /* default weir_reject */
    void *rejected_data;
    const weir_thread_factory *thread_factory; /* default: weir starts the threads */
    weir_clock *clock;   /* default: the monotonic clock; must outlive the group */
    int64_t task_cap_ns; /* time for the tasks of one turn, default 10 ms; WEIR_OFF: no limit */
    bool pin;            /* pins thread i to CPU i of those the process may use, or of `cpus` */
    const int *cpus;
    size_t cpu_count;

    /* Event loops. */
    int io_ratio; /* share of a turn for I/O, in percent; tasks get the rest. 100: tasks run until
                     none is left. task_cap_ns limits both in any case. Default 50 */
    enum weir_strategy strategy;
    weir_strategy_fn *strategy_fn; /* overrides `strategy` */
    void *strategy_data;
    int64_t adaptive_limit_ns;  /* longest time to poll before sleeping, default 50 us */
    int64_t adaptive_credit_ns; /* time that an avoided sleep is worth, default 50 us */

    /* WEIR_IO_BLOCKING. */
    int max_channels; /* channels with an executor at a time, at most; default: no bound */
} weir_group_options;

/* A snapshot of a group's counters. */
typedef struct weir_group_stats {
    uint64_t executors;
    uint64_t active;  /* executors with a channel or a descriptor watch, or about to get one */
    uint64_t idle;    /* the other executors */
    uint64_t threads; /* executors with a running thread */
    uint64_t refused; /* channels refused because of max_channels */
    uint64_t reserved[8];
} weir_group_stats;

#define WEIR_GROUP_OPTIONS(...) WEIR_OPTIONS(weir_group_options, __VA_ARGS__)

/*
 * Creates a group. If one of its executors cannot be created, the earlier ones are shut down again.
 * The reason why a backend is not available is logged. NULL options: all defaults.
 * Thread: any.  Gives: group.  Fails: -EINVAL (also: a chooser with WEIR_IO_BLOCKING), -ENOMEM,
 * -ENOTSUP (built without the backend), and with the error of the backend or of the chooser's init.
 */
WEIR_API WEIR_MUST_USE int weir_group_create(const weir_group_options *options,
                                             weir_group **ret_group);

/*
 * Retains the group.
 * Thread: any.
 */
WEIR_API weir_group *weir_group_retain(weir_group *group);

/*
 * Releases a reference. NULL is ignored. Releasing the last one shuts the group down without a
 * quiet period if it still runs, and, on a thread that may wait, waits up to 15 s for its threads
 * to end.
 * Thread: any.  Takes: group.
 */
WEIR_API void weir_group_release(weir_group *group);

/*
 * Returns the executor that the chooser picks. The group owns it: retain it to outlive the group.
 * NULL with a thread per channel; use weir_group_register there.
 * Thread: any.
 */
WEIR_API weir_executor *weir_group_next(weir_group *group);

/*
 * The number of executors. With a thread per channel it changes at any time: executors are created
 * on demand, and all but the first are freed after a minute without a channel.
 * Thread: any.
 */
WEIR_API size_t weir_group_count(const weir_group *group);

/*
 * Returns executor `index`, from 0; NULL beyond the last. For iterating over all of them. With a
 * thread per channel all but the first may be freed while they have no channel: iterate while none
 * is idle, or use weir_group_read_stats.
 * Thread: any.
 */
WEIR_API weir_executor *weir_group_at(const weir_group *group, size_t index);

/*
 * Takes a snapshot of the counters; each is exact by itself. Visits all executors.
 * Thread: any.
 */
WEIR_API void weir_group_read_stats(const weir_group *group, weir_group_stats *ret_stats);

/*
 * Calls weir_execute on the next executor.
 * Thread: any.  Fails: as weir_execute; -ENOTSUP (a thread per channel).
 */
WEIR_API WEIR_MUST_USE int weir_group_execute(weir_group *group, weir_task_fn *fn, void *arg);

/*
 * Calls weir_submit on the next executor.
 * Thread: any.  Gives: promise.  Fails: as weir_submit; -ENOTSUP (a thread per channel).
 */
WEIR_API WEIR_MUST_USE int weir_group_submit(weir_group *group, weir_work_fn *work, void *arg,
                                             weir_promise **ret_promise);

/*
 * Calls weir_schedule on the next executor.
 * Thread: any.  Gives: promise.  Fails: as weir_schedule; -ENOTSUP (a thread per channel).
 */
WEIR_API WEIR_MUST_USE int weir_group_schedule(weir_group *group, int64_t delay_ns,
                                               weir_task_fn *fn, void *arg,
                                               weir_promise **ret_promise);

/*
 * Calls weir_schedule_at_fixed_rate on the next executor.
 * Thread: any.  Gives: promise.  Fails: as weir_schedule_at_fixed_rate; -ENOTSUP (a thread per
 * channel).
 */
WEIR_API WEIR_MUST_USE int weir_group_schedule_at_fixed_rate(weir_group *group, int64_t initial_ns,
                                                             int64_t period_ns, weir_task_fn *fn,
                                                             void *arg, weir_promise **ret_promise);

/*
 * Calls weir_schedule_with_fixed_delay on the next executor.
 * Thread: any.  Gives: promise.  Fails: as weir_schedule_with_fixed_delay; -ENOTSUP (a thread per
 * channel).
 */
WEIR_API WEIR_MUST_USE int
weir_group_schedule_with_fixed_delay(weir_group *group, int64_t initial_ns, int64_t delay_ns,
                                     weir_task_fn *fn, void *arg, weir_promise **ret_promise);

/*
 * Shuts all executors down, as weir_executor_shutdown does. An executor that never started ends
 * without starting, and channels get no new executors. A thread that has not ended by the deadline
 * is named in the log, and the termination fails with -ETIMEDOUT.
 * Thread: any.  Fails: -EINVAL (unless 0 <= quiet_ns <= timeout_ns).
 */
WEIR_API int weir_group_shutdown(weir_group *group, int64_t quiet_ns, int64_t timeout_ns);

/*
 * A promise that completes when all executors have terminated, with the first error if one failed.
 * Borrowed.
 * Thread: any.
 */
WEIR_API weir_promise *weir_group_termination(weir_group *group);

/*
 * Waits for the termination and returns its result, or -ETIMEDOUT.
 * Thread: any that may wait.  Fails: -ETIMEDOUT, -EDEADLK, and with the error of the termination.
 */
WEIR_API int weir_group_await_termination(weir_group *group, int64_t timeout_ns);

/*
 * The lowest state of its executors: WEIR_EXECUTOR_SHUTTING_DOWN or more once all are.
 * Thread: any.
 */
WEIR_API enum weir_executor_state weir_group_state(const weir_group *group);

#ifdef __cplusplus
}
#endif

#endif
