/* SPDX-License-Identifier: Apache-2.0 */
#include "handler/idle_watch.h"

#include <errno.h>

#include <weir/channel.h>
#include <weir/handler.h>

#include "channel/last_sent.h"

#define MIN_LIMIT_NS weir_ms(1) /* bounds the timer's rate */

static weir__idle_watch *watch_of(weir_ctx *ctx)
{
    return weir_ctx_state(ctx);
}

static int64_t now_of(const weir_ctx *ctx)
{
    return weir__executor_now(weir_ctx_executor(ctx));
}

static int64_t later(int64_t one, int64_t other)
{
    return one > other ? one : other;
}

/* ---- the timers ---- */

static int64_t last_read(const weir__idle_watch *watch, int64_t now_ns)
{
    return watch->is_reading ? now_ns : watch->read_at;
}

static int64_t last_sent(const weir_ctx *ctx, const weir__idle_watch *watch)
{
    const weir_channel *channel = weir_ctx_channel(ctx);

    return later(watch->started_at, watch->observes_output ? weir__last_sent_of_bytes(channel)
                                                           : weir__last_sent_of_messages(channel));
}

/* The time of the last activity of a kind. */
static int64_t last_activity(const weir_ctx *ctx, const weir__idle_watch *watch,
                             enum weir_idle_kind kind, int64_t now_ns)
{
    switch (kind) {
    case WEIR_IDLE_READER:
        return last_read(watch, now_ns);
    case WEIR_IDLE_WRITER:
        return last_sent(ctx, watch);
    default:
        return later(last_read(watch, now_ns), last_sent(ctx, watch));
    }
}

static void on_timer(weir_ctx *ctx, weir_timer *timer)
{
    weir__idle_watch *watch = watch_of(ctx);
    enum weir_idle_kind kind = (enum weir_idle_kind)(timer - watch->timers);
    int64_t limit_ns = watch->limits_ns[kind], now_ns = now_of(ctx);
    int64_t last_ns = last_activity(ctx, watch, kind, now_ns);
    bool first = last_ns >= watch->reported_at[kind]; /* active since the last report */

    if (now_ns - last_ns < limit_ns) {
        (void)weir_ctx_timer_start(ctx, timer, limit_ns - (now_ns - last_ns), on_timer);
        return;
    }
    watch->reported_at[kind] = now_ns;
    (void)weir_ctx_timer_start(ctx, timer, limit_ns, on_timer);
    watch->on_idle(ctx, kind, first);
}

/* Also called when the channel moved to another loop, which stopped the timers. */
static void begin(weir_ctx *ctx)
{
    weir__idle_watch *watch = watch_of(ctx);

    watch->started_at = watch->read_at = now_of(ctx);
    watch->is_reading = false;
    for (unsigned kind = 0; kind < WEIR__IDLE_KINDS; kind++)
        if (watch->limits_ns[kind] > 0)
            (void)weir_ctx_timer_start(ctx, &watch->timers[kind], watch->limits_ns[kind], on_timer);
}

void weir__idle_watch_stop(weir_ctx *ctx)
{
    for (unsigned kind = 0; kind < WEIR__IDLE_KINDS; kind++)
        (void)weir_timer_stop(&watch_of(ctx)->timers[kind]);
}

/* ---- lifecycle ---- */

static int64_t limit_of(int64_t given_ns)
{
    return given_ns > 0 ? later(given_ns, MIN_LIMIT_NS) : 0;
}

void weir__idle_watch_init(weir__idle_watch *watch, const weir_idle_options *options,
                           weir__idle_fn *on_idle)
{
    watch->on_idle = on_idle;
    watch->observes_output = options->observe_output;
    watch->limits_ns[WEIR_IDLE_READER] = limit_of(options->reader_ns);
    watch->limits_ns[WEIR_IDLE_WRITER] = limit_of(options->writer_ns);
    watch->limits_ns[WEIR_IDLE_BOTH] = limit_of(options->both_ns);
}

bool weir__idle_watch_needs_last_sent(const weir_idle_options *options)
{
    return options->writer_ns > 0 || options->both_ns > 0;
}

void weir__idle_watch_added(weir_ctx *ctx)
{
    if (weir_channel_is_active(weir_ctx_channel(ctx)) &&
        weir_channel_is_registered(weir_ctx_channel(ctx)))
        begin(ctx);
}

void weir__idle_watch_registered(weir_ctx *ctx)
{
    weir__idle_watch_added(ctx);
    weir_fire_registered(ctx);
}

void weir__idle_watch_active(weir_ctx *ctx)
{
    begin(ctx);
    weir_fire_active(ctx);
}

void weir__idle_watch_inactive(weir_ctx *ctx)
{
    weir__idle_watch_stop(ctx);
    weir_fire_inactive(ctx);
}

/* ---- reading ---- */

void weir__idle_watch_read(weir_ctx *ctx, weir_msg *msg)
{
    watch_of(ctx)->is_reading = true;
    weir_fire_read(ctx, msg);
}

void weir__idle_watch_read_complete(weir_ctx *ctx)
{
    weir__idle_watch *watch = watch_of(ctx);

    if (watch->is_reading) {
        watch->is_reading = false;
        watch->read_at = now_of(ctx);
    }
    weir_fire_read_complete(ctx);
}
