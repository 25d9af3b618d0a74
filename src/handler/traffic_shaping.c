/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A message reserves its time when it becomes the first of its channel's queue, so that channels
 * which share a limit take turns, and one timer per channel is enough.
 */
#include <weir/traffic.h>

#include <errno.h>

#include <weir/error.h>
#include <weir/flow_control.h>
#include <weir/pipeline.h>

#include "base/options.h"
#include "channel/channel.h"
#include "channel/outbound.h"
#include "handler/msg_bytes.h"
#include "handler/traffic.h"

#define NOT_RESERVED INT64_MIN

struct shaping {
    weir_traffic *traffic;
    weir_pending_writes writes;
    int64_t first_ready_at; /* time when the first may be sent, or NOT_RESERVED */
    weir_timer write_timer;
    weir_timer read_timer;
    int64_t resume_at; /* while paused */
    bool is_paused;
    bool is_pumping; /* pump is on the stack */
};

static int64_t now_of(const weir_ctx *ctx)
{
    return weir__executor_now(weir_ctx_executor(ctx));
}

/* ---- writing ---- */

static void pump(weir_ctx *ctx);

static void on_write_timer(weir_ctx *ctx, weir_timer *timer)
{
    (void)timer;
    pump(ctx);
}

/* True if the first write may be sent now; else starts the timer. */
static bool is_ready(weir_ctx *ctx)
{
    struct shaping *state = weir_ctx_state(ctx);
    int64_t now_ns = now_of(ctx);

    if (state->first_ready_at == NOT_RESERVED)
        state->first_ready_at = weir__traffic_reserve(
            state->traffic, weir__msg_bytes_on_wire(state->writes.first->msg), now_ns);
    if (state->first_ready_at <= now_ns)
        return true;
    (void)weir_ctx_timer_start(ctx, &state->write_timer, state->first_ready_at - now_ns,
                               on_write_timer);
    return false;
}

static void pass_first(weir_ctx *ctx)
{
    struct shaping *state = weir_ctx_state(ctx);
    int64_t size = weir__msg_bytes_on_wire(state->writes.first->msg);

    state->first_ready_at = NOT_RESERVED;
    weir__traffic_end_waiting(state->traffic, size);
    weir__traffic_count_written(state->traffic, size);
    weir_pending_writes_pass(ctx, &state->writes);
}

static bool is_cancelled(const weir_pending_write *write)
{
    return write->done != NULL && weir_promise_is_done(write->done);
}

/* Cancelled writes are not sent, and do not use the rate. */
static void drop_cancelled(weir_ctx *ctx)
{
    struct shaping *state = weir_ctx_state(ctx);
    weir_promise *done;

    while (state->writes.count > 0 && is_cancelled(state->writes.first)) {
        weir__traffic_end_waiting(state->traffic,
                                  weir__msg_bytes_on_wire(state->writes.first->msg));
        weir_msg_release(weir_pending_writes_take(ctx, &state->writes, &done));
        weir_promise_release(done);
    }
}

static void pump(weir_ctx *ctx)
{
    struct shaping *state = weir_ctx_state(ctx);
    bool needs_flush = false;

    if (state->is_pumping)
        return;
    state->is_pumping = true;
    drop_cancelled(ctx);
    while (state->writes.count > 0 && is_ready(ctx)) {
        needs_flush = needs_flush || state->writes.flushed > 0;
        pass_first(ctx);
        drop_cancelled(ctx);
    }
    state->is_pumping = false;
    if (needs_flush)
        weir_flush(ctx);
    weir_pending_writes_run_deferred(ctx, &state->writes);
}

/*
 * Counts the message before it is queued: if it makes the channel unwritable, the event may run
 * other handlers, which may write more or have this message passed on.
 */
static void enqueue(weir_ctx *ctx, weir_msg *msg, weir_promise *done)
{
    struct shaping *state = weir_ctx_state(ctx);
    int64_t size = weir__msg_bytes_on_wire(msg);

    weir__traffic_begin_waiting(state->traffic, size);
    if (weir_pending_writes_add(ctx, &state->writes, weir__outbound_compact(msg), done) == NULL)
        weir__traffic_cancel_waiting(state->traffic, size);
}

/* Sends the message at once, or makes it the first of the queue. */
static void write_first(weir_ctx *ctx, weir_msg *msg, weir_promise *done)
{
    struct shaping *state = weir_ctx_state(ctx);
    int64_t size = weir__msg_bytes_on_wire(msg), now_ns = now_of(ctx);

    state->first_ready_at = weir__traffic_reserve(state->traffic, size, now_ns);
    if (state->first_ready_at > now_ns) {
        enqueue(ctx, msg, done);
        pump(ctx);
    } else {
        weir__traffic_count_written(state->traffic, size);
        weir_write(ctx, msg, done);
    }
}

static void on_write(weir_ctx *ctx, weir_msg *msg, weir_promise *done)
{
    struct shaping *state = weir_ctx_state(ctx);

    if (weir_pending_writes_is_ending(&state->writes)) {
        weir_msg_release(msg);
        weir_ctx_report(ctx, done, WEIR_ECLOSED, NULL);
    } else if (state->writes.count == 0) {
        write_first(ctx, msg, done);
    } else {
        enqueue(ctx, msg, done);
    }
}

static void on_flush(weir_ctx *ctx)
{
    struct shaping *state = weir_ctx_state(ctx);

    weir_pending_writes_flush(&state->writes);
    weir_flush(ctx);
}

static void on_close(weir_ctx *ctx, weir_promise *done)
{
    struct shaping *state = weir_ctx_state(ctx);

    weir_pending_writes_close(ctx, &state->writes, done);
}

static void on_shutdown_output(weir_ctx *ctx, weir_promise *done)
{
    struct shaping *state = weir_ctx_state(ctx);

    weir_pending_writes_shutdown_output(ctx, &state->writes, done);
}

/* ---- reading ---- */

static void resume_reading(weir_ctx *ctx)
{
    struct shaping *state = weir_ctx_state(ctx);

    if (!state->is_paused)
        return;
    state->is_paused = false;
    (void)weir_timer_stop(&state->read_timer);
    weir__channel_resume_input(weir_ctx_channel(ctx));
}

static void on_read_timer(weir_ctx *ctx, weir_timer *timer)
{
    (void)timer;
    resume_reading(ctx);
}

static void pause_reading(weir_ctx *ctx, int64_t now_ns)
{
    struct shaping *state = weir_ctx_state(ctx);

    if (!state->is_paused) {
        if (weir__channel_pause_input(weir_ctx_channel(ctx)) < 0)
            return; /* no memory: the debt remains, and the next read pauses */
        state->is_paused = true;
        weir__traffic_count_paused(state->traffic);
    }
    if (weir_ctx_timer_start(ctx, &state->read_timer, state->resume_at - now_ns, on_read_timer) < 0)
        resume_reading(ctx);
}

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    struct shaping *state = weir_ctx_state(ctx);
    int64_t now_ns = now_of(ctx);

    state->resume_at = weir__traffic_charge(state->traffic, weir__msg_bytes_on_wire(msg), now_ns);
    if (state->resume_at > now_ns)
        pause_reading(ctx, now_ns);
    weir_fire_read(ctx, msg);
}

/* ---- lifecycle ---- */

static int init(void *state, const void *options)
{
    struct shaping *self = state;

    self->traffic = weir_traffic_retain(*(weir_traffic *const *)options);
    return 0;
}

static void deinit(void *state)
{
    weir_traffic_release(((struct shaping *)state)->traffic);
}

/* The channel moved to another loop, which stopped the timers. */
static void on_registered(weir_ctx *ctx)
{
    struct shaping *state = weir_ctx_state(ctx);

    if (state->is_paused)
        pause_reading(ctx, now_of(ctx));
    pump(ctx);
    weir_fire_registered(ctx);
}

static void on_inactive(weir_ctx *ctx)
{
    struct shaping *state = weir_ctx_state(ctx);

    while (state->writes.count > 0) {
        weir__traffic_end_waiting(state->traffic,
                                  weir__msg_bytes_on_wire(state->writes.first->msg));
        weir_pending_writes_fail_first(ctx, &state->writes, WEIR_ECLOSED, NULL);
    }
    weir_pending_writes_run_deferred(ctx, &state->writes);
    weir_fire_inactive(ctx);
}

static void on_removed(weir_ctx *ctx)
{
    struct shaping *state = weir_ctx_state(ctx);
    bool needs_flush = state->writes.flushed > 0;

    resume_reading(ctx);
    if (!weir_ctx_is_writable(ctx)) /* keep the channel unwritable until all have passed: a
                                       listener's write would overtake them */
        weir_ctx_add_pending_bytes(ctx, state->writes.cost);
    while (state->writes.count > 0)
        pass_first(ctx);
    if (needs_flush)
        weir_flush(ctx);
    weir_pending_writes_run_deferred(ctx, &state->writes);
}

static const weir_handler traffic_shaping = {
    .name = "traffic-shaping",
    .stays_on_loop = true,
    .state_size = sizeof(struct shaping),
    .init = init,
    .deinit = deinit,
    .removed = on_removed,
    .registered = on_registered,
    .inactive = on_inactive,
    .read = on_read,
    .close = on_close,
    .write = on_write,
    .flush = on_flush,
    .shutdown_output = on_shutdown_output,
};

int weir_traffic_shaping_add(weir_pipeline *pipeline, weir_traffic *traffic)
{
    if (traffic == NULL)
        return weir__options_reject("traffic-shaping", NULL, "traffic is NULL");
    return weir_pipeline_add_last(pipeline, &traffic_shaping, &traffic);
}
