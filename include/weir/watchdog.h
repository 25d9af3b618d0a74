/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/watchdog.h - reports handlers that block their event loop, and can move them away.
 *
 *      err = weir_watchdog_start(NULL);
 *
 *      weir WARN  watchdog http-1: blocked for 100 ms by handler "app" in read, channel
 *                 [7 127.0.0.1:8080 - 127.0.0.1:51234]; the thread is sleeping
 *      weir WARN  watchdog http-1:   #0 clock_nanosleep (libc.so.6+0xd9a3f)
 *      weir WARN  watchdog http-1:   #1 lookup_user+0x3c (server+0x3a1f)
 *      weir WARN  watchdog http-1: handler "app" blocked for 312 ms
 *
 * One thread watches the event loops of all groups. A loop is blocked if one turn takes longer than
 * the threshold. The report names the handler that is running, found in the stack of the loop's
 * thread, which is interrupted once by a signal. Nothing is measured per event: while nothing
 * blocks, the watchdog costs nothing but its own thread, which wakes up four times per threshold,
 * and not at all while all loops sleep. Time for which the whole process was stopped, or the thread
 * waited for a CPU, does not count.
 *
 * The signal restarts most system calls of the blocked handler; sleeps, poll and some others fail
 * with EINTR: see signal(7). A handler whose last act is the call that blocks may have no frame in
 * the stack, unless it is compiled with -fno-optimize-sibling-calls.
 *
 * The cure: with `offload_when_blocking` of weir_channel_options or weir_server_options, a handler
 * that has blocked more than `blocks_before_offload` times is moved to that group, in all pipelines
 * with this option, present and future. Order is kept, and the log says so. Handlers with
 * `stays_on_loop` are not moved, nor is any handler before the watchdog is started. Of an HTTP
 * server, single routes are moved. A loop with a thread per channel is not watched: it may block.
 */
#ifndef WEIR_WATCHDOG_H
#define WEIR_WATCHDOG_H

#include <weir/address.h>
#include <weir/clock.h>
#include <weir/executor.h>
#include <weir/handler.h>
#include <weir/options.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Zero means default. Build with WEIR_WATCHDOG_OPTIONS(.threshold_ns = weir_ms(20), ...). */
typedef struct weir_watchdog_options {
    size_t size;
    int64_t threshold_ns; /* a turn that takes longer is reported; default 100 ms, at least
                             1 ms */
    int backtrace;        /* WEIR_OFF = sends no signal: reports have no backtrace, no handler and
                             no channel */
    int signal;           /* to interrupt a blocked thread; its disposition is replaced until
                             the watchdog is stopped; default SIGRTMAX - 2 */
    int blocks_before_offload; /* default 3 */
    int logged_blocks;         /* that the log describes in ten seconds, each with its end; the next
                                  one says how many it left out; default 10 */
    weir_clock *clock;         /* default: the monotonic clock. With a manual clock there is no
                                  thread: call weir_watchdog_check */
} weir_watchdog_options;

#define WEIR_WATCHDOG_OPTIONS(...) WEIR_OPTIONS(weir_watchdog_options, __VA_ARGS__)

/*
 * Starts the watchdog of the process. NULL options are the defaults.
 * Thread: any.  Fails: -EALREADY, -EINVAL, -EBUSY (the program handles the signal), -ENOMEM,
 * -EAGAIN (no thread).
 */
WEIR_API int weir_watchdog_start(const weir_watchdog_options *options);

/*
 * Stops it and waits for its thread. Does nothing if it does not run.
 * Thread: any that may wait; not a listener.
 */
WEIR_API void weir_watchdog_stop(void);

/*
 * Looks at all loops once, as the thread does; for a watchdog with a manual clock.
 * Thread: any that may wait.  Fails: -ESRCH (there is none), -EINVAL (it has a thread), -EDEADLK
 * (called by a listener).
 */
WEIR_API int weir_watchdog_check(void);

/* --- reports ---------------------------------------------------------------------------------- */

#define WEIR_BLOCK_FRAMES_MAX 32

/* A blocked turn. Each is reported twice: when it is found, and when it has ended. */
typedef struct weir_block {
    uint64_t number;             /* 1 for the first of the process */
    bool has_ended;              /* the second report */
    int64_t duration_ns;         /* until now */
    weir_executor *executor;     /* that is blocked */
    const weir_handler *handler; /* whose slot is running; NULL = none was found: a task, a timer */
    const char *handler_name;    /* in the pipeline; "" = none was found */
    const char *slot;            /* "read", "write", ...; "" = none was found */
    uint64_t channel_id;         /* of weir_channel_id; 0 = no channel was found */
    const char *channel;         /* as weir_channel_format; "" = no channel was found */
    const weir_address *peer;    /* NULL = unknown */
    bool is_computing;           /* the thread used or wanted a CPU; false: it slept or waited */
    size_t frame_count;          /* 0 without a backtrace */
    const void *frames[WEIR_BLOCK_FRAMES_MAX];    /* return addresses, innermost first */
    const void *functions[WEIR_BLOCK_FRAMES_MAX]; /* where their functions begin; NULL = unknown */
    uint64_t reserved[8];
} weir_block;

/* Called with each report; `block` is valid during the call. */
typedef void weir_block_fn(const weir_block *block, void *user_data);

/*
 * Adds a listener, which is called for all blocks, logged or not, on the watchdog's thread; removes
 * the one with this function and argument, which is not called after that. Listeners may be added
 * before the watchdog is started.
 * Thread: any; remove: any that may wait, or a listener.  Fails: -ENOMEM, -EINVAL; -ENOENT.
 */
WEIR_API WEIR_MUST_USE int weir_watchdog_add_listener(weir_block_fn *fn, void *user_data);
WEIR_API int weir_watchdog_remove_listener(weir_block_fn *fn, void *user_data);

/*
 * Writes a frame as text: "lookup_user+0x3c (server+0x3a1f)". Returns the length of the whole text,
 * as snprintf. Reads the program's file: not for loops.
 * Thread: any.
 */
WEIR_API size_t weir_block_format_frame(const weir_block *block, size_t index, char *buffer,
                                        size_t size);

/* --- statistics ------------------------------------------------------------------------------- */

typedef struct weir_watchdog_stats {
    bool is_running;
    uint64_t blocks;         /* blocked turns */
    uint64_t blocked_now;    /* of them, that have not ended */
    int64_t blocked_ns;      /* the sum of those that have ended */
    int64_t longest_ns;      /* of those that have ended */
    uint64_t without_signal; /* blocks without a backtrace: the thread did not answer the signal */
    uint64_t not_logged;     /* left out of the log */
    uint64_t reserved[4];
} weir_watchdog_stats;

/*
 * Reads the counters of the process.
 * Thread: any.
 */
WEIR_API void weir_watchdog_read_stats(weir_watchdog_stats *ret_stats);

/* The blocks of a handler, in all pipelines. */
typedef struct weir_handler_stats {
    const weir_handler *handler;
    char name[64];      /* of the table */
    uint64_t blocks;    /* that it caused */
    int64_t blocked_ns; /* the sum of those that have ended */
    int64_t longest_ns; /* of those that have ended */
    bool is_offloaded;  /* runs on another group, in pipelines with offload_when_blocking */
    uint64_t moved;     /* contexts moved from their loop; routes, of "http-exchanges" */
    uint64_t reserved[4];
} weir_handler_stats;

/*
 * Reads the stats of a handler by its table.
 * Thread: any.  Fails: -ENOENT (it has not blocked).
 */
WEIR_API int weir_handler_read_stats(const weir_handler *handler, weir_handler_stats *ret_stats);

/* Called for one handler; `stats` is valid during the call. */
typedef void weir_handler_stats_fn(const weir_handler_stats *stats, void *user_data);

/*
 * Calls `fn` for every handler that has blocked, in the order of their first blocks.
 * Thread: any.  Lends until it returns: user_data.
 */
WEIR_API void weir_handler_stats_foreach(weir_handler_stats_fn *fn, void *user_data);

#ifdef __cplusplus
}
#endif

#endif
