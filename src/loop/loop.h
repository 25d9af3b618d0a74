/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An event loop: an executor that waits in an I/O backend.
 *
 *      loop.c         the turn: how it waits, what I/O and tasks get of it, how it ends
 *      mend.c         a backend that fails is made anew
 *      strategy.c     whether it pays to look before sleeping
 *      backend.c      which backend it gets
 *      loop_figures.c what it says of itself
 *      loop_manual.c  loops that their owner drives
 */
#ifndef WEIR_LOOP_LOOP_H
#define WEIR_LOOP_LOOP_H

#include <weir/loop.h>

#include "executor/manual.h"
#include "loop/io.h"
#include "loop/strategy.h"

typedef struct weir__loop weir__loop;

/* What a loop is made of; `create` of its type is given this. */
typedef struct weir__loop_options {
    enum weir_io io;
    const weir__io_type *backend;
    bool uring_receive;
    bool is_embedded; /* perhaps: another main loop waits for it */
    int io_ratio;
    enum weir_strategy strategy;
    weir_strategy_fn *strategy_fn;
    void *strategy_data;
    int64_t adaptive_limit_ns;
    int64_t adaptive_credit_ns;
    char *reason; /* a sentence goes here if the backend is refused; lent for the creation */
    size_t reason_size;
} weir__loop_options;

/* The figures in the metric registry: "loop.NAME#NUMBER.events", ... */
enum {
    WEIR__LOOP_METRIC_EVENTS,
    WEIR__LOOP_METRIC_IO_TIME,
    WEIR__LOOP_METRIC_HANDLES,
    WEIR__LOOP_METRIC_WAITS,
    WEIR__LOOP_METRIC_REBUILDS,
    WEIR__LOOP_METRIC_COUNT,
};

struct weir__loop {
    weir_executor executor;
    weir__manual manual; /* of one that its owner drives */
    weir__loop_options options;
    weir__io *io;

    /* The loop's thread's. */
    enum weir_wait choice; /* what the strategy has said for this turn */
    bool chosen;           /* it has */
    bool has_leftover;     /* the last dispatch was not through */
    unsigned ready_events; /* events that wait for it */
    weir__adaptive adaptive;

    /* How the backend fares: mend.c. */
    struct {
        int err;                /* of the last wait */
        unsigned premature;     /* waits in a row that ended for no reason */
        int64_t backoff_ns;     /* 0 = the last wait was a good one */
        int64_t retry_at_ns;    /* WEIR_NEVER = there is a backend */
        int64_t broken_at_ns;   /* since when there is none */
        const char *last_error; /* the last one, */
        int64_t muted_until_ns; /* not repeated until then */
        unsigned suppressed;
    } health;

    /* Written by the loop's thread, read by everybody. */
    struct {
        _Atomic int64_t begun_ns; /* by its clock, and 1 more, so that 0 = never */
        _Atomic int64_t ended_ns; /* the same */
        _Atomic int64_t io_ns;
        _Atomic int64_t busy_poll_ns;
        _Atomic uint64_t busy_polls;
        _Atomic uint64_t busy_poll_hits;
        _Atomic uint64_t rebuilds;
    } stats;
    weir_metric metrics[WEIR__LOOP_METRIC_COUNT];
};

extern const weir__executor_type weir__loop_type;
extern const weir__executor_type weir__manual_loop_type;
extern const weir__executor_type weir__channel_loop_type; /* of one channel: it may block there */

/* NULL if the executor is no loop. Any thread. */
weir__loop *weir__loop_of(const weir_executor *executor);
weir__io *weir__loop_io(const weir_executor *executor);

/* ---- mend.c ---- */

void weir__loop_health_init(weir__loop *loop);

/* A wait has returned: how many events, or an error. */
void weir__loop_check_wait(weir__loop *loop, int64_t deadline_ns, int result);

/* After the wait, awake: makes a backend anew that has failed, when it is time to. */
void weir__loop_rebuild(weir__loop *loop);

/* There is no backend now; tries again after a pause. */
void weir__loop_back_off(weir__loop *loop);

/* ---- loop_figures.c ---- */

int weir__loop_stats_init(weir__loop *loop);
void weir__loop_stats_deinit(weir__loop *loop);

/* ---- backend.c ---- */

/* Makes loops by these options, and is told in `options->reason` if their backend is refused. */
typedef int weir__loop_make_fn(const weir__loop_options *options, void *arg);

/*
 * Calls `make` with the backend that `options->io` names, by AUTO's rule with the first of several
 * that is not refused. What was refused is logged. Fails with what `make` did, and with -EINVAL if
 * the options are wrong.
 */
int weir__loop_make(const char *name, const weir__loop_options *options, weir__loop_make_fn *make,
                    void *arg);

#endif
