/* SPDX-License-Identifier: Apache-2.0 */
#include <weir/diagnostics.h>

#include <errno.h>
#include <string.h>

#include <weir/handler.h>
#include <weir/loop.h>
#include <weir/pipeline.h>

#include "base/memory.h"
#include "base/metric.h"
#include "base/options.h"
#include "base/refcount.h"
#include "os/clock.h"

static const char *const kind_names[] = {
    [WEIR_TIMING_REGISTERED] = "registered",
    [WEIR_TIMING_UNREGISTERED] = "unregistered",
    [WEIR_TIMING_ACTIVE] = "active",
    [WEIR_TIMING_INACTIVE] = "inactive",
    [WEIR_TIMING_READ] = "read",
    [WEIR_TIMING_READ_COMPLETE] = "read_complete",
    [WEIR_TIMING_EVENT] = "event",
    [WEIR_TIMING_WRITABILITY] = "writability",
    [WEIR_TIMING_ERROR] = "error",
    [WEIR_TIMING_DRAINING] = "draining",
};

#define KINDS (sizeof(kind_names) / sizeof(kind_names[0]))

struct weir_timing {
    weir__refs refs;
    const weir_clock *clock;
    weir_histogram *histograms[KINDS];
    weir_metric metrics[KINDS];
    char names[KINDS][WEIR_METRIC_NAME_SIZE + 1]; /* of the metrics */
};

/* ---- lifecycle ---- */

static int add_kind(weir_timing *timing, size_t kind, const char *name)
{
    int err = weir_histogram_create(&timing->histograms[kind]);

    if (err < 0 || name == NULL)
        return err;
    weir__metric_name_extend(timing->names[kind], name, kind_names[kind]);
    return weir__metric_init_histogram(
        &timing->metrics[kind], (weir__metric_name){timing->names[kind]}, timing->histograms[kind]);
}

static void destroy(weir_timing *timing)
{
    for (size_t i = 0; i < KINDS; i++) {
        weir__metric_deinit(&timing->metrics[i]);
        weir_histogram_release(timing->histograms[i]);
    }
    weir__free(timing);
}

int weir_timing_create(const weir_timing_options *options, weir_timing **ret_timing)
{
    weir_timing_options own;
    weir_timing *timing;
    int err = weir__options_read(&own, sizeof(own), options);

    if (err < 0)
        return err;
    timing = weir__zalloc(sizeof(*timing));
    if (timing == NULL)
        return -ENOMEM;
    weir__refs_init(&timing->refs);
    timing->clock = own.clock;
    for (size_t i = 0; i < KINDS && err == 0; i++)
        err = add_kind(timing, i, own.name);
    if (err < 0)
        destroy(timing);
    else
        *ret_timing = timing;
    return err;
}

weir_timing *weir_timing_retain(weir_timing *timing)
{
    weir__refs_retain(&timing->refs);
    return timing;
}

void weir_timing_release(weir_timing *timing)
{
    if (timing != NULL && weir__refs_release(&timing->refs))
        destroy(timing);
}

const weir_histogram *weir_timing_histogram(const weir_timing *timing, enum weir_timing_kind kind)
{
    return (size_t)kind < KINDS ? timing->histograms[kind] : NULL;
}

/* ---- the handler: an event may remove it, and free its state ---- */

struct state {
    weir_timing *timing;
};

static int init(void *state, const void *options)
{
    weir_timing *timing = (weir_timing *)(uintptr_t)options; /* borrowed from weir_timing_add */

    ((struct state *)state)->timing = weir_timing_retain(timing);
    return 0;
}

static void deinit(void *state)
{
    weir_timing_release(((struct state *)state)->timing);
}

struct span {
    weir_timing *timing;
    const weir_executor *executor; /* the handler's; the caller runs on it */
    int64_t from_ns;
};

static int64_t now_of(const weir_timing *timing, const weir_executor *executor)
{
    if (timing->clock != NULL)
        return weir__clock_now(timing->clock);
    return executor != NULL ? weir_loop_now(executor) : 0; /* NULL: not registered yet */
}

static struct span begin(weir_ctx *ctx)
{
    weir_timing *timing = weir_timing_retain(((struct state *)weir_ctx_state(ctx))->timing);
    const weir_executor *executor = weir_ctx_executor(ctx);

    return (struct span){
        .timing = timing, .executor = executor, .from_ns = now_of(timing, executor)};
}

static void end(struct span span, enum weir_timing_kind kind)
{
    weir_histogram_record(span.timing->histograms[kind],
                          now_of(span.timing, span.executor) - span.from_ns);
    weir_timing_release(span.timing);
}

#define TIMED(slot, kind, parameters, arguments) \
    static void on_##slot parameters             \
    {                                            \
        struct span span = begin(ctx);           \
                                                 \
        weir_fire_##slot arguments;              \
        end(span, WEIR_TIMING_##kind);           \
    }

TIMED(registered, REGISTERED, (weir_ctx * ctx), (ctx))
TIMED(unregistered, UNREGISTERED, (weir_ctx * ctx), (ctx))
TIMED(active, ACTIVE, (weir_ctx * ctx), (ctx))
TIMED(inactive, INACTIVE, (weir_ctx * ctx), (ctx))
TIMED(read, READ, (weir_ctx * ctx, weir_msg *msg), (ctx, msg))
TIMED(read_complete, READ_COMPLETE, (weir_ctx * ctx), (ctx))
TIMED(event, EVENT, (weir_ctx * ctx, weir_msg *event), (ctx, event))
TIMED(writability, WRITABILITY, (weir_ctx * ctx), (ctx))
TIMED(error, ERROR, (weir_ctx * ctx, int err, const char *detail), (ctx, err, detail))
TIMED(draining, DRAINING, (weir_ctx * ctx), (ctx))

static const weir_handler handler = {
    .name = "timing",
    .state_size = sizeof(struct state),
    .init = init,
    .deinit = deinit,
    .registered = on_registered,
    .unregistered = on_unregistered,
    .active = on_active,
    .inactive = on_inactive,
    .read = on_read,
    .read_complete = on_read_complete,
    .event = on_event,
    .writability = on_writability,
    .error = on_error,
    .draining = on_draining,
};

int weir_timing_add(weir_pipeline *pipeline, weir_timing *timing)
{
    return weir_pipeline_add_last(pipeline, &handler, timing);
}
