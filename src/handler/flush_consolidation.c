/* SPDX-License-Identifier: Apache-2.0 */
#include <weir/flow_control.h>

#include <errno.h>
#include <string.h>

#include <weir/handler.h>
#include <weir/pipeline.h>

#include "base/options.h"
#include "channel/channel.h"

#define DEFAULT_MAX_FLUSHES 256

struct consolidation {
    weir_timer timer; /* zero delay: runs at the end of the turn */
    int max_flushes;
    int waiting; /* number of flushes */
};

static void flush_now(weir_ctx *ctx)
{
    struct consolidation *state = weir_ctx_state(ctx);

    state->waiting = 0;
    (void)weir_timer_stop(&state->timer);
    weir_flush(ctx);
}

static void flush_waiting(weir_ctx *ctx)
{
    const struct consolidation *state = weir_ctx_state(ctx);

    if (state->waiting > 0)
        flush_now(ctx);
}

static void on_timer(weir_ctx *ctx, weir_timer *timer)
{
    (void)timer;
    flush_waiting(ctx);
}

/* The channel itself waits for the end of a batch of reads, which comes before that of the turn. */
static bool can_wait(weir_ctx *ctx)
{
    struct consolidation *state = weir_ctx_state(ctx);
    const weir_channel *channel = weir_ctx_channel(ctx);

    if (weir__channel_in_loop(channel) && weir__channel_is_in_batch(channel))
        return false;
    return weir_timer_is_running(&state->timer) ||
           weir_ctx_timer_start(ctx, &state->timer, 0, on_timer) == 0;
}

/* ---- slots ---- */

static void on_flush(weir_ctx *ctx)
{
    struct consolidation *state = weir_ctx_state(ctx);

    state->waiting++;
    if (state->waiting >= state->max_flushes || !can_wait(ctx))
        flush_now(ctx);
}

static void on_error(weir_ctx *ctx, int err, const char *detail)
{
    flush_waiting(ctx);
    weir_fire_error(ctx, err, detail);
}

static void on_writability(weir_ctx *ctx)
{
    if (!weir_ctx_is_writable(ctx))
        flush_waiting(ctx);
    weir_fire_writability(ctx);
}

static void on_disconnect(weir_ctx *ctx, weir_promise *done)
{
    flush_waiting(ctx);
    weir_disconnect(ctx, done);
}

static void on_close(weir_ctx *ctx, weir_promise *done)
{
    flush_waiting(ctx);
    weir_close(ctx, done);
}

static void on_shutdown_output(weir_ctx *ctx, weir_promise *done)
{
    flush_waiting(ctx);
    weir_shutdown_output(ctx, done);
}

/* ---- lifecycle ---- */

static int init(void *state, const void *options)
{
    const weir_flush_consolidation_options *given = options;
    struct consolidation *self = state;
    int err =
        weir__options_check("flush-consolidation", NULL, WEIR__OPTION_FROM(given, max_flushes, 0));

    if (err < 0)
        return err;
    self->max_flushes = given->max_flushes > 0 ? given->max_flushes : DEFAULT_MAX_FLUSHES;
    return 0;
}

static void on_removed(weir_ctx *ctx)
{
    flush_waiting(ctx);
}

/* The channel moved to another loop, which stopped the timer. */
static void on_registered(weir_ctx *ctx)
{
    flush_waiting(ctx);
    weir_fire_registered(ctx);
}

static const weir_handler flush_consolidation = {
    .name = "flush-consolidation",
    .state_size = sizeof(struct consolidation),
    .init = init,
    .removed = on_removed,
    .registered = on_registered,
    .error = on_error,
    .writability = on_writability,
    .disconnect = on_disconnect,
    .close = on_close,
    .flush = on_flush,
    .shutdown_output = on_shutdown_output,
};

int weir_flush_consolidation_add(weir_pipeline *pipeline,
                                 const weir_flush_consolidation_options *options)
{
    weir_flush_consolidation_options own;
    int err = weir__options_read(&own, sizeof(own), options);

    return err < 0 ? err : weir_pipeline_add_last(pipeline, &flush_consolidation, &own);
}
