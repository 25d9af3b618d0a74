/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/loop.h - event loops: executors that wait for I/O.
 *
 *      one turn:  wait for I/O, a task or a timer  ->  I/O  ->  timers, tasks  ->  tail tasks
 *
 * Most programs use the loops of a group, each with its own thread (weir/group.h). A loop created
 * with weir_loop_create is driven by a thread of the caller, its owner, and can be embedded in
 * another main loop:
 *
 *      for (;;) {
 *          wait for the application's own events, for weir_loop_descriptor(loop) to become
 *          readable, or for weir_loop_timeout(loop) to pass
 *          weir_loop_run_once(loop, 0);
 *      }
 *
 * Such a loop is asleep whenever weir_loop_run_once is not running. A submission from another
 * thread then makes its descriptor readable. After weir_executor_shutdown, keep running the loop
 * until weir_loop_run_once returns WEIR_ETERMINATED. The owner must release a loop that still has
 * open descriptors.
 *
 * A failing backend does not end a loop: the loop rebuilds it, closes channels whose state was lost
 * with WEIR_EREBUILT, and keeps running tasks and timers until the rebuild succeeds.
 */
#ifndef WEIR_LOOP_H
#define WEIR_LOOP_H

#include <poll.h>
#include <sys/types.h>

#include <weir/clock.h>
#include <weir/executor.h>
#include <weir/group.h>
#include <weir/options.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Zero means default. Build with WEIR_LOOP_OPTIONS(.name = "...", ...). */
typedef struct weir_loop_options {
    size_t size;
    enum weir_io io;            /* AUTO, EPOLL, URING or POLL */
    const char *name;           /* default "loop" */
    weir_clock *clock;          /* default the monotonic clock */
    bool claim_later;           /* the owner calls weir_loop_claim; default: the creating thread */
    int64_t max_pending;        /* maximum number of queued tasks, at least 16; default no limit */
    weir_rejected_fn *rejected; /* default weir_reject */
    void *rejected_data;
    int64_t task_cap_ns; /* this and all below: see weir_group_options */
    int io_ratio;
    enum weir_strategy strategy;
    weir_strategy_fn *strategy_fn;
    void *strategy_data;
    int64_t adaptive_limit_ns;
    int64_t adaptive_credit_ns;
} weir_loop_options;

#define WEIR_LOOP_OPTIONS(...) WEIR_OPTIONS(weir_loop_options, __VA_ARGS__)

/* Statistics of a loop since its creation. Times are in nanoseconds of its clock. */
typedef struct weir_loop_stats {
    uint64_t turns;
    uint64_t events;         /* I/O events */
    uint64_t wakeups;        /* system calls by other threads to wake the loop */
    uint64_t rebuilds;       /* of the backend */
    uint64_t handles;        /* descriptors attached now */
    uint64_t busy_polls;     /* times the adaptive strategy polled before sleeping */
    uint64_t busy_poll_hits; /* busy polls that found work */
    int64_t io_ns;           /* time spent on I/O */
    int64_t task_ns;         /* time spent on tasks and timers */
    int64_t busy_poll_ns;    /* time spent busy polling */
    int64_t idle_ns;         /* time asleep since the loop started */
    uint64_t waits;          /* system calls: epoll_wait, poll, io_uring_enter */
    uint64_t controls;       /* epoll_ctl */
    uint64_t accepts;        /* accept and so on */
    uint64_t connects;
    uint64_t receives;
    uint64_t sends;
    uint64_t closes;
    uint64_t reserved[8];
} weir_loop_stats;

/*
 * Creates an event loop that its owner drives. NULL options mean all defaults.
 * Thread: any.  Gives: loop.  Fails: -EINVAL, -ENOMEM, -ENOTSUP (built without that backend), or
 * the error with which the system refused the backend; the reason is logged.
 */
WEIR_API WEIR_MUST_USE int weir_loop_create(const weir_loop_options *options,
                                            weir_executor **ret_loop);

/*
 * Makes the calling thread the owner of a loop created with .claim_later. Ownership is final.
 * Thread: any.  Fails: -EALREADY (it has an owner), -EINVAL (not created by weir_loop_create).
 */
WEIR_API WEIR_MUST_USE int weir_loop_claim(weir_executor *loop);

/*
 * Runs one turn: waits up to `max_wait_ns` for work (0: does not wait; WEIR_NEVER: until woken),
 * then runs I/O, due timers, tasks and tail tasks. Returns the number of events, timers and tasks.
 * Thread: the owner.  Fails: WEIR_ENOOWNER, WEIR_EWRONGTHREAD, -EBUSY (called recursively),
 * WEIR_ETERMINATED (the loop has ended), -EINVAL.
 */
WEIR_API int weir_loop_run_once(weir_executor *loop, int64_t max_wait_ns);

/*
 * Returns how long the owner may wait for the descriptor before it must call run_once: 0 if there
 * is work, or if run_once has yet to return WEIR_ETERMINATED; WEIR_NEVER if only the descriptor
 * matters. Call it before each wait: it also submits operations started since the last run.
 * Thread: the owner.
 */
WEIR_API int64_t weir_loop_timeout(weir_executor *loop);

/*
 * Returns a descriptor that poll(2) and similar calls report as readable when run_once has I/O or
 * tasks to process. The loop owns it: do not read or close it. It changes when the backend is
 * rebuilt, so ask again after each run.
 * Thread: the owner.  Fails: -ENOTSUP (WEIR_IO_POLL: use weir_loop_pollfds), -EAGAIN (the backend
 * is waiting to be rebuilt; weir_loop_timeout says when), -EINVAL (not created by
 * weir_loop_create).
 */
WEIR_API int weir_loop_descriptor(const weir_executor *loop);

/*
 * Returns the descriptors that a main loop based on poll(2) must watch. With WEIR_IO_POLL these are
 * the descriptors of all channels, with the other backends there is one. Writes the first `count`
 * entries and returns the total number. Ask again before each wait.
 * Thread: the owner.  Fails: -EAGAIN, -EINVAL, as weir_loop_descriptor.
 */
WEIR_API ssize_t weir_loop_pollfds(const weir_executor *loop, size_t count,
                                   struct pollfd *ret_entries);

/*
 * Returns the loop's backend, never WEIR_IO_AUTO. WEIR_IO_NONE if the executor is not a loop.
 * Thread: any.
 */
WEIR_API enum weir_io weir_loop_io(const weir_executor *loop);

/*
 * Returns the time of the executor's clock in nanoseconds. Works for executors of every kind, not
 * only loops. Code that measures time by it can be tested with a manual clock, without sleeping.
 * Each call reads the clock: the result is never the cached time of the turn. Returns 0 after the
 * executor has terminated, because its clock may be freed by then.
 * Thread: any.
 */
WEIR_API int64_t weir_loop_now(const weir_executor *executor);

/*
 * Reads the statistics without locks. Each value is exact, but they are not one snapshot.
 * Thread: any.  Fails: -EINVAL (not a loop).
 */
WEIR_API int weir_loop_read_stats(const weir_executor *loop, weir_loop_stats *ret_stats);

/*
 * Record every turn of all event loops in the histograms "loop.turn_ns", from begin to end, instead
 * of one in 64. Calls are counted: each begin needs an end.
 * Thread: any.
 */
WEIR_API void weir_loops_begin_timing(void);
WEIR_API void weir_loops_end_timing(void);

#ifdef __cplusplus
}
#endif

#endif
