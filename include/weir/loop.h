/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/loop.h - event loops: executors that wait for I/O.
 *
 *      one turn:  wait for I/O, a task or a timer  ->  I/O  ->  timers, tasks  ->  tail tasks
 *
 * Usually a group makes them, each with a thread of its own (weir/group.h). A loop that is made
 * here is driven by the caller's own thread, its owner, and can live inside someone else's main
 * loop:
 *
 *      for (;;) {
 *          wait for the application's own events, for weir_loop_descriptor(loop) to become
 *          readable, or for weir_loop_timeout(loop)
 *          weir_loop_run_once(loop, 0);
 *      }
 *
 * It counts as asleep whenever weir_loop_run_once is not running: whoever has something for it
 * makes its descriptor readable. After weir_executor_shutdown go on running it until
 * weir_loop_run_once says WEIR_ETERMINATED. One that has descriptors open is released by its owner.
 *
 * A loop never ends by itself: when its backend fails it is made anew, and what that has lost is
 * closed with WEIR_EREBUILT; until that succeeds tasks and timers go on.
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
    enum weir_io io;     /* AUTO, EPOLL, URING or POLL */
    const char *name;    /* default "loop" */
    weir_clock *clock;   /* default the monotonic one */
    bool claim_later;    /* the owner calls weir_loop_claim; default: the creating thread owns it */
    int64_t max_pending; /* at most this many queued tasks, 16 at the least; default no bound */
    weir_rejected_fn *rejected; /* default weir_reject */
    void *rejected_data;
    int64_t task_cap_ns; /* as in weir_group_options, as is what follows */
    int io_ratio;
    enum weir_strategy strategy;
    weir_strategy_fn *strategy_fn;
    void *strategy_data;
    int64_t adaptive_limit_ns;
    int64_t adaptive_credit_ns;
    bool uring_receive;
} weir_loop_options;

#define WEIR_LOOP_OPTIONS(...) WEIR_OPTIONS(weir_loop_options, __VA_ARGS__)

/* What a loop has done so far, and does now. Times in nanoseconds of its clock. */
typedef struct weir_loop_stats {
    uint64_t turns;
    uint64_t events;         /* of I/O */
    uint64_t wakeups;        /* system calls made by others to wake it */
    uint64_t rebuilds;       /* of its backend */
    uint64_t handles;        /* descriptors that it has now */
    uint64_t busy_polls;     /* times that the adaptive strategy looked before it slept, */
    uint64_t busy_poll_hits; /* and found something */
    int64_t io_ns;           /* time spent on I/O, */
    int64_t task_ns;         /* on tasks and timers, */
    int64_t busy_poll_ns;    /* looking, */
    int64_t idle_ns;         /* and asleep, from its start on */
    uint64_t waits;          /* system calls: epoll_wait, poll, io_uring_enter, */
    uint64_t controls;       /* epoll_ctl, */
    uint64_t accepts;        /* and so on */
    uint64_t connects;
    uint64_t receives;
    uint64_t sends;
    uint64_t closes;
    uint64_t reserved[8];
} weir_loop_stats;

/*
 * Creates an event loop that its owner drives. NULL options: every default.
 * Thread: any.  Gives: loop.  Fails: -EINVAL, -ENOMEM, -ENOTSUP (built without that backend), and
 * with what the system refused the backend with: the log has the reason.
 */
WEIR_API int weir_loop_create(const weir_loop_options *options, weir_executor **ret_loop);

/*
 * Makes the calling thread the owner of a loop that has none, once.
 * Thread: any.  Fails: -EALREADY (it has one), -EINVAL (not a loop of weir_loop_create).
 */
WEIR_API int weir_loop_claim(weir_executor *loop);

/*
 * One turn: waits up to `max_wait_ns` for something to do (0: not at all; WEIR_NEVER: until woken),
 * then does I/O, due timers, tasks, tail tasks. Returns how many events, timers and tasks there
 * were.
 * Thread: the owner.  Fails: WEIR_ENOOWNER, WEIR_EWRONGTHREAD, -EBUSY (called from within itself),
 * WEIR_ETERMINATED (it has ended), -EINVAL.
 */
WEIR_API int weir_loop_run_once(weir_executor *loop, int64_t max_wait_ns);

/*
 * How long the owner may wait before the next run_once if the descriptor does not become readable:
 * 0 if there is something to do, or if that is yet to say WEIR_ETERMINATED; WEIR_NEVER if only the
 * descriptor will tell. Ask before each wait: what was begun since the last run is begun by this.
 * Thread: the owner.
 */
WEIR_API int64_t weir_loop_timeout(weir_executor *loop);

/*
 * A descriptor that poll(2) and the like find readable when run_once has I/O or tasks to see to. It
 * is the loop's: do not read or close it. Ask again after each run: a loop that had to make its
 * backend anew has another one.
 * Thread: the owner.  Fails: -ENOTSUP (WEIR_IO_POLL has none, but weir_loop_pollfds), -EAGAIN
 * (there is none until the backend is made anew: weir_loop_timeout says when), -EINVAL (not a loop
 * of weir_loop_create).
 */
WEIR_API int weir_loop_descriptor(const weir_executor *loop);

/*
 * The same for a main loop that is poll(2) itself, and for every backend: what that has to watch.
 * Of WEIR_IO_POLL these are the descriptors of all its channels, of the others only one. Writes the
 * first `count`, and returns how many there are. Ask again before each wait.
 * Thread: the owner.  Fails: -EAGAIN, -EINVAL, as weir_loop_descriptor.
 */
WEIR_API ssize_t weir_loop_pollfds(const weir_executor *loop, size_t count,
                                   struct pollfd *ret_entries);

/*
 * What the loop waits in: never WEIR_IO_AUTO; WEIR_IO_NONE for an executor that is no loop.
 * Thread: any.
 */
WEIR_API enum weir_io weir_loop_io(const weir_executor *loop);

/*
 * The current time of the executor's clock, in nanoseconds. Works for executors of every kind, not
 * only for loops. With a manual clock it is that clock's time, so code that measures by it can be
 * tested without sleeping. It reads the clock on each call and is never the cached time of a turn.
 * Returns 0 after the executor has terminated, because its clock may be freed by then.
 * Thread: any.
 */
WEIR_API int64_t weir_loop_now(const weir_executor *executor);

/*
 * The figures as of now, without locks; each is exact by itself.
 * Thread: any.  Fails: -EINVAL (not a loop).
 */
WEIR_API int weir_loop_read_stats(const weir_executor *loop, weir_loop_stats *ret_stats);

#ifdef __cplusplus
}
#endif

#endif
