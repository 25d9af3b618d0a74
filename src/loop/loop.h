/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An event loop: an executor that waits in an I/O backend.
 *
 *      loop.c         the turn: waiting, the shares of I/O and tasks, the end
 *      rebuild.c      replaces a backend that fails
 *      strategy.c     adaptive busy polling
 *      backend.c      selection of the backend
 *      loop_stats.c   statistics and metrics
 *      loop_manual.c  loops driven by their owner
 */
#ifndef WEIR_LOOP_LOOP_H
#define WEIR_LOOP_LOOP_H

#include <weir/loop.h>

#include "executor/manual.h"
#include "loop/io.h"
#include "loop/strategy.h"

typedef struct weir__loop weir__loop;

/* Passed to `create` of the executor type. */
typedef struct weir__loop_options {
    enum weir_io io;
    const weir__io_type *backend;
    bool is_embedded; /* another main loop may wait for it */
    int io_ratio;
    enum weir_strategy strategy;
    weir_strategy_fn *strategy_fn;
    void *strategy_data;
    int64_t adaptive_limit_ns;
    int64_t adaptive_credit_ns;
    char *reason; /* receives the reason if the backend is refused; valid during creation */
    size_t reason_size;
} weir__loop_options;

/* Metrics in the registry: "loop.events{group=...,loop=...}", ... */
enum {
    WEIR__LOOP_METRIC_EVENTS,
    WEIR__LOOP_METRIC_IO_TIME,
    WEIR__LOOP_METRIC_HANDLES,
    WEIR__LOOP_METRIC_WAITS,
    WEIR__LOOP_METRIC_RECEIVES,
    WEIR__LOOP_METRIC_SENDS,
    WEIR__LOOP_METRIC_TURNS,
    WEIR__LOOP_METRIC_REBUILDS,
    WEIR__LOOP_METRIC_TURN_TIME,
    WEIR__LOOP_METRIC_COUNT,
};

struct weir__loop {
    weir_executor executor;
    weir__manual manual; /* of a loop driven by its owner */
    weir__loop_options options;
    weir__io *io;

    /* Used by the loop's thread only. */
    enum weir_wait choice; /* the strategy's choice for this turn */
    bool chosen;           /* `choice` is valid */
    bool has_leftover;     /* the last dispatch left events */
    unsigned ready_events; /* events not dispatched yet */
    weir__adaptive adaptive;

    /* Health of the backend: rebuild.c. */
    struct {
        int err;                /* of the last wait */
        unsigned premature;     /* consecutive waits that ended early for no reason */
        int64_t backoff_ns;     /* 0 = the last wait was good */
        int64_t retry_at_ns;    /* WEIR_NEVER = there is a backend */
        int64_t broken_at_ns;   /* since when there is none */
        const char *last_error; /* last logged, not repeated until muted_until_ns */
        int64_t muted_until_ns;
        unsigned suppressed;
    } health;

    /* Written by the loop's thread, read by any. */
    struct {
        _Atomic int64_t begun_ns; /* time by its clock plus 1; 0 = never */
        _Atomic int64_t ended_ns; /* the same */
        _Atomic int64_t io_ns;
        atomic_bool is_busy_polling;
        _Atomic int64_t busy_poll_ns;
        _Atomic uint64_t busy_polls;
        _Atomic uint64_t busy_poll_hits;
        _Atomic uint64_t rebuilds;
    } stats;
    weir_metric metrics[WEIR__LOOP_METRIC_COUNT];
};

extern const weir__executor_type weir__loop_type;
extern const weir__executor_type weir__manual_loop_type;
extern const weir__executor_type weir__channel_loop_type; /* serves one blocking channel */

/* NULL if the executor is not a loop. Any thread. */
weir__loop *weir__loop_of(const weir_executor *executor);
weir__io *weir__loop_io(const weir_executor *executor);

/* True if the adaptive strategy polls now: the executor is awake, and waits. Any thread. */
bool weir__loop_is_busy_polling(const weir_executor *executor);

/* ---- rebuild.c ---- */

void weir__loop_health_init(weir__loop *loop);

/* Evaluates the result of a wait without events: 0, or an error. */
void weir__loop_check_wait(weir__loop *loop, int64_t deadline_ns, int result);

/* Called awake, after the wait: rebuilds a failed backend when it is time. Not needed after good
 * waits. */
void weir__loop_rebuild(weir__loop *loop);

/* Drops the backend and schedules a rebuild after a backoff. */
void weir__loop_back_off(weir__loop *loop);

/* ---- loop_stats.c ---- */

int weir__loop_stats_init(weir__loop *loop);
void weir__loop_stats_deinit(weir__loop *loop);

/* ---- backend.c ---- */

/* Creates loops with these options. Writes to `options->reason` if the backend is refused. */
typedef int weir__loop_make_fn(const weir__loop_options *options, void *arg);

/*
 * Calls `make` with the backend selected by `options->io`; for AUTO with the first one that is not
 * refused. Refusals are logged. Fails with the error of `make`, or -EINVAL for invalid options.
 */
int weir__loop_make(const char *name, const weir__loop_options *options, weir__loop_make_fn *make,
                    void *arg);

#endif
