/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/group.h - which executor of a group is next.
 *
 * A chooser is one const table. The group allocates its state; `next` is called from any thread, by
 * several at once.
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

typedef struct weir_chooser {
    const char *name;
    size_t state_size; /* zeroed before init */
    /* In weir_group_create, when all members are there; NULL = nothing to do. */
    int (*init)(void *state, weir_group *group, const void *options);
    /* Any thread, concurrently. Returns a member of the group. */
    weir_executor *(*next)(void *state, weir_group *group);
    /* Once, if init succeeded, before the group's members go; NULL = nothing to do. */
    void (*deinit)(void *state);
    void *reserved[4];
} weir_chooser;

/*
 * One after the other. This is the default.
 * Thread: any.
 */
WEIR_API const weir_chooser *weir_chooser_round_robin(void);

/*
 * The one with the fewest pending tasks; looks at all of them.
 * Thread: any.
 */
WEIR_API const weir_chooser *weir_chooser_least_pending(void);

/*
 * The less loaded of two that are drawn at random: fewer pending tasks, then lower utilisation. As
 * good as looking at all of them, at the price of two.
 * Thread: any.
 */
WEIR_API const weir_chooser *weir_chooser_two_choices(void);

/*
 * The event loop with the fewest descriptors, and so the fewest channels; looks at all of them.
 * Thread: any.
 */
WEIR_API const weir_chooser *weir_chooser_least_handles(void);

/*
 * The one that is pinned to the CPU that the caller runs on (`.pin` of weir_group_options); if none
 * is, one after the other.
 * Thread: any.
 */
WEIR_API const weir_chooser *weir_chooser_by_cpu(void);

/*
 * How a group grows and shrinks by itself. Every window each member's utilisation is measured: one
 * above `scale_up` for longer than `patience` windows is busy, one below `scale_down` as long is
 * idle. Each busy member wants an idle one beside it: while there are fewer, suspended members are
 * resumed; while there are more, idle ones that have no timer running and no descriptor open are
 * suspended. All begin as active, up to `max_active`; `next` goes round among those that are.
 */
typedef struct weir_autoscale_options {
    size_t size;
    int min_active;    /* default 1 */
    int max_active;    /* default all */
    int64_t window_ns; /* default 100 ms */
    double scale_down; /* default 0.25 */
    double scale_up;   /* default 0.75 */
    int ramp_down;     /* suspended per window at most, default 1 */
    int ramp_up;       /* resumed per window at most, default 1 */
    int patience;      /* windows before the one that acts, default 2; WEIR_OFF = none */
} weir_autoscale_options;

#define WEIR_AUTOSCALE_OPTIONS(...) WEIR_OPTIONS(weir_autoscale_options, __VA_ARGS__)

/* --- group ------------------------------------------------------------------------------------ */

/*
 * Executors of one kind, and the chooser that hands out the next one.
 *
 *      weir_group_next(group)  --chooser-->  [weir-1] [weir-2] [weir-3] ...
 *
 * Threads start with their first task. A group ends by weir_group_shutdown, and its memory goes
 * with weir_group_release.
 *
 * A thread per channel (WEIR_IO_BLOCKING, Netty's OIO): such a group has no chooser. Each channel
 * that is registered with it - listeners and connections, too - gets an executor of its own, an
 * idle one or a new one, and gives it back when it is closed or deregistered. So its handlers may
 * block and compute as they like: they keep nobody waiting but their own channel. They may also
 * wait for promises, other than those of their own executor (-EDEADLK). A thread that waits for
 * bytes is woken by a task at once: between a task and its run there is never more than the
 * handlers and tasks of the same channel that were before it. A thread without a channel waits a
 * minute for the next one, then it ends, and its executor is freed.
 */

/* What the group's executors wait in. */
enum weir_io {
    WEIR_IO_AUTO, /* event loops on io_uring where that can be had, otherwise on epoll; or on what
                     the environment's WEIR_IO names: epoll, uring or poll */
    WEIR_IO_EPOLL,
    WEIR_IO_URING,
    WEIR_IO_POLL,
    WEIR_IO_BLOCKING, /* a thread per channel: see above */
    WEIR_IO_NONE,     /* plain executors, for what blocks or computes */
};

/* How an event loop waits for something to do. */
enum weir_strategy {
    WEIR_STRATEGY_SELECT,    /* sleeps until there is something */
    WEIR_STRATEGY_BUSY_WAIT, /* never sleeps: takes a whole CPU, and is woken by nobody */
    WEIR_STRATEGY_ADAPTIVE,  /* looks for a bounded time before it sleeps, where that has paid */
};

/* What a strategy of your own says. */
enum weir_wait {
    WEIR_WAIT_SELECT,   /* sleep until there is something to do; look, if there is already */
    WEIR_WAIT_POLL,     /* look for I/O, but do not sleep */
    WEIR_WAIT_CONTINUE, /* do not even look: this turn is for timers and tasks */
};

/*
 * A strategy of your own: called on the loop's thread at the beginning of each turn. `has_work`
 * says that there are tasks or due timers. While the loop shuts down it is not asked.
 */
typedef enum weir_wait weir_strategy_fn(weir_executor *loop, bool has_work, void *user_data);

/* Zero means default. Build with WEIR_GROUP_OPTIONS(.threads = 4, ...). */
typedef struct weir_group_options {
    size_t size;
    int threads; /* default 2 x CPUs, or the environment's WEIR_LOOP_THREADS; BLOCKING: as many as
                    channels, whatever is said here */
    enum weir_io io;
    const char *name;            /* threads are called NAME-1, NAME-2, ...; default "weir" */
    const weir_chooser *chooser; /* default weir_chooser_round_robin() */
    const void *chooser_options; /* for a chooser of your own */
    const weir_autoscale_options *autoscale; /* grow and shrink by load, instead of a chooser */
    int64_t max_pending; /* at most so many queued tasks each, 16 at the least; default no bound */
    weir_rejected_fn *rejected; /* default weir_reject */
    void *rejected_data;
    const weir_thread_factory *thread_factory; /* default: a thread of weir's own */
    weir_clock *clock;   /* default the monotonic one; must outlive the group */
    int64_t task_cap_ns; /* tasks of a turn stop after this, default 10 ms; WEIR_OFF = no cap */
    bool pin; /* thread i runs on CPU i only, of those the process may use, or of `cpus` */
    const int *cpus;
    size_t cpu_count;

    /* Of event loops. */
    int io_ratio; /* share of a turn, in percent, that I/O may take: tasks get the rest; 100 = until
                     none is left. In any case the cap holds for both. Default 50. */
    enum weir_strategy strategy;
    weir_strategy_fn *strategy_fn; /* your own, instead of `strategy` */
    void *strategy_data;
    int64_t adaptive_limit_ns;  /* it looks for so long at most, default 50 us */
    int64_t adaptive_credit_ns; /* what a sleep that was saved is worth, default 50 us */
    bool uring_receive;         /* io_uring receives into a ring of buffers */

    /* Of WEIR_IO_BLOCKING. */
    int max_channels; /* at most so many at a time have an executor; default no bound */
} weir_group_options;

/* How a group's executors fare. */
typedef struct weir_group_stats {
    uint64_t executors; /* that there are */
    uint64_t active;    /* that have something open: a channel, a watch; or soon will */
    uint64_t idle;      /* that have nothing */
    uint64_t threads;   /* that have a thread now */
    uint64_t refused;   /* channels that were refused, since max_channels had one */
    uint64_t reserved[8];
} weir_group_stats;

#define WEIR_GROUP_OPTIONS(...) WEIR_OPTIONS(weir_group_options, __VA_ARGS__)

/*
 * Creates a group. If one of its executors cannot be made, those made before are shut down first.
 * A backend that is refused leaves its reason in the log. NULL options: every default.
 * Thread: any.  Gives: group.  Fails: -EINVAL (also: a chooser for WEIR_IO_BLOCKING), -ENOMEM,
 * -ENOTSUP (built without that backend), with what the system refused the backend with, and with
 * what the chooser's init failed.
 */
WEIR_API int weir_group_create(const weir_group_options *options, weir_group **ret_group);

/*
 * Keeps a group.
 * Thread: any.
 */
WEIR_API weir_group *weir_group_retain(weir_group *group);

/*
 * Gives a reference back; NULL is fine. The last one shuts a group that still runs down, without a
 * quiet period, and where the thread may wait it waits until the group's threads have ended (15 s
 * at most).
 * Thread: any.  Takes: group.
 */
WEIR_API void weir_group_release(weir_group *group);

/*
 * The executor that the chooser picks. It is the group's: keep it to outlive the group. NULL with a
 * thread per channel: there is no next one, but weir_group_register.
 * Thread: any.
 */
WEIR_API weir_executor *weir_group_next(weir_group *group);

/*
 * How many executors there are. With a thread per channel there may be more at any moment, and
 * fewer: an executor without a channel is freed after a minute. The first one stays.
 * Thread: any.
 */
WEIR_API size_t weir_group_count(const weir_group *group);

/*
 * Executor `index`, from 0; NULL beyond the last. This is how to go through all of them. With a
 * thread per channel all but the first may be freed when they have no channel: go through them
 * while none is idle, or only read weir_group_read_stats.
 * Thread: any.
 */
WEIR_API weir_executor *weir_group_at(const weir_group *group, size_t index);

/*
 * The figures as of now; each is exact by itself. Goes through all executors.
 * Thread: any.
 */
WEIR_API void weir_group_read_stats(const weir_group *group, weir_group_stats *ret_stats);

/*
 * weir_execute on the next executor.
 * Thread: any.  Fails: as weir_execute; -ENOTSUP (a thread per channel).
 */
WEIR_API int weir_group_execute(weir_group *group, weir_task_fn *fn, void *arg);

/*
 * weir_submit on the next executor.
 * Thread: any.  Gives: promise.  Fails: as weir_submit; -ENOTSUP (a thread per channel).
 */
WEIR_API int weir_group_submit(weir_group *group, weir_work_fn *work, void *arg,
                               weir_promise **ret_promise);

/*
 * weir_schedule on the next executor.
 * Thread: any.  Gives: promise.  Fails: as weir_schedule; -ENOTSUP (a thread per channel).
 */
WEIR_API int weir_group_schedule(weir_group *group, int64_t delay_ns, weir_task_fn *fn, void *arg,
                                 weir_promise **ret_promise);

/*
 * weir_schedule_at_fixed_rate on the next executor.
 * Thread: any.  Gives: promise.  Fails: as weir_schedule_at_fixed_rate; -ENOTSUP (a thread per
 * channel).
 */
WEIR_API int weir_group_schedule_at_fixed_rate(weir_group *group, int64_t initial_ns,
                                               int64_t period_ns, weir_task_fn *fn, void *arg,
                                               weir_promise **ret_promise);

/*
 * weir_schedule_with_fixed_delay on the next executor.
 * Thread: any.  Gives: promise.  Fails: as weir_schedule_with_fixed_delay; -ENOTSUP (a thread per
 * channel).
 */
WEIR_API int weir_group_schedule_with_fixed_delay(weir_group *group, int64_t initial_ns,
                                                  int64_t delay_ns, weir_task_fn *fn, void *arg,
                                                  weir_promise **ret_promise);

/*
 * Begins to shut all executors down, as weir_executor_shutdown does with each. An executor that
 * never started ends without starting, and no channel gets a new one. A thread that has not come
 * back at the deadline is named in the log, and the termination fails with -ETIMEDOUT.
 * Thread: any.  Fails: -EINVAL (unless 0 <= quiet_ns <= timeout_ns).
 */
WEIR_API int weir_group_shutdown(weir_group *group, int64_t quiet_ns, int64_t timeout_ns);

/*
 * Completes when all executors have ended, with the first one's error if one failed.
 * Thread: any.
 */
WEIR_API weir_promise *weir_group_termination(weir_group *group);

/*
 * Waits for the group's end.
 * Thread: any that may wait.  Fails: -ETIMEDOUT, -EDEADLK, and with what failed the termination.
 */
WEIR_API int weir_group_await_termination(weir_group *group, int64_t timeout_ns);

/*
 * The least advanced state of its executors: at least WEIR_EXECUTOR_SHUTTING_DOWN when all are.
 * Thread: any.
 */
WEIR_API enum weir_executor_state weir_group_state(const weir_group *group);

#ifdef __cplusplus
}
#endif

#endif
