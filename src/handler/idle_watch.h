/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watches for channels without reads or writes: the base of the idle and read timeout handlers.
 *
 * There is one timer per limit. Activity never touches it: when it fires, it compares the time of
 * the last activity, and sleeps for the rest.
 */
#ifndef WEIR_HANDLER_IDLE_WATCH_H
#define WEIR_HANDLER_IDLE_WATCH_H

#include <weir/timeouts.h>
#include <weir/timer.h>

#define WEIR__IDLE_KINDS 3

typedef void weir__idle_fn(weir_ctx *ctx, enum weir_idle_kind kind, bool first);

/* The first member of the handler's state. */
typedef struct weir__idle_watch {
    weir__idle_fn *on_idle;
    weir_timer timers[WEIR__IDLE_KINDS];
    int64_t limits_ns[WEIR__IDLE_KINDS]; /* 0 = off */
    int64_t reported_at[WEIR__IDLE_KINDS];
    int64_t started_at;
    int64_t read_at;
    bool is_reading;
    bool observes_output;
} weir__idle_watch;

void weir__idle_watch_init(weir__idle_watch *watch, const weir_idle_options *options,
                           weir__idle_fn *on_idle);

/* True if the options require weir__last_sent_watch. */
bool weir__idle_watch_needs_last_sent(const weir_idle_options *options);

void weir__idle_watch_added(weir_ctx *ctx);
void weir__idle_watch_registered(weir_ctx *ctx);
void weir__idle_watch_active(weir_ctx *ctx);
void weir__idle_watch_inactive(weir_ctx *ctx);
void weir__idle_watch_read(weir_ctx *ctx, weir_msg *msg);
void weir__idle_watch_read_complete(weir_ctx *ctx);

#define WEIR__IDLE_WATCH_SLOTS                                                  \
    .added = weir__idle_watch_added, .registered = weir__idle_watch_registered, \
    .active = weir__idle_watch_active, .inactive = weir__idle_watch_inactive,   \
    .read = weir__idle_watch_read, .read_complete = weir__idle_watch_read_complete

/* Stops the timers for good. */
void weir__idle_watch_stop(weir_ctx *ctx);

#endif
