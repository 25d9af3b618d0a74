/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each handler counts locally and publishes at the end of a batch, so that loops touch the shared
 * counters once for many messages. All accesses are relaxed: no counter depends on another.
 */
#include <weir/diagnostics.h>

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include <weir/channel.h>
#include <weir/handler.h>
#include <weir/pipeline.h>

#include "base/memory.h"
#include "base/metric.h"
#include "base/options.h"
#include "base/refcount.h"
#include "handler/msg_bytes.h"

/* All counters, in the order of weir_counters_stats. */
#define COUNTERS(XX)              \
    XX(bytes_read, COUNTER)       \
    XX(messages_read, COUNTER)    \
    XX(reads, COUNTER)            \
    XX(bytes_written, COUNTER)    \
    XX(messages_written, COUNTER) \
    XX(flushes, COUNTER)          \
    XX(errors, COUNTER)           \
    XX(channels, COUNTER)         \
    XX(open, GAUGE)

enum counter {
#define XX(name, kind) COUNTER_##name,
    COUNTERS(XX)
#undef XX
        COUNTER_COUNT
};

static const weir_metric_row rows[COUNTER_COUNT] = {
#define XX(name, kind) {#name, WEIR_METRIC_##kind},
    COUNTERS(XX)
#undef XX
};

struct weir_counters {
    weir__refs refs;
    _Atomic int64_t values[COUNTER_COUNT];
    weir_metric metrics[COUNTER_COUNT];
    char names[COUNTER_COUNT][WEIR_METRIC_NAME_SIZE + 1]; /* of the metrics */
};

struct counting {
    weir_counters *counters;
    bool is_open;
    int64_t unpublished[COUNTER_COUNT];
};

/* ---- lifecycle ---- */

static int register_metrics(weir_counters *counters, const char *name)
{
    int err = 0;

    for (size_t i = 0; i < COUNTER_COUNT && err == 0; i++) {
        weir__metric_name_extend(counters->names[i], name, rows[i].name);
        err =
            weir__metric_init_source(&counters->metrics[i], rows[i].kind,
                                     (weir__metric_name){counters->names[i]}, &counters->values[i]);
    }
    return err;
}

static void destroy(weir_counters *counters)
{
    for (size_t i = 0; i < COUNTER_COUNT; i++)
        weir__metric_deinit(&counters->metrics[i]);
    weir__free(counters);
}

int weir_counters_create(const weir_counters_options *options, weir_counters **ret_counters)
{
    weir_counters_options own;
    weir_counters *counters;
    int err = weir__options_read(&own, sizeof(own), options);

    if (err < 0)
        return err;
    counters = weir__zalloc(sizeof(*counters));
    if (counters == NULL)
        return -ENOMEM;
    weir__refs_init(&counters->refs);
    if (own.name != NULL)
        err = register_metrics(counters, own.name);
    if (err < 0)
        destroy(counters);
    else
        *ret_counters = counters;
    return err;
}

weir_counters *weir_counters_retain(weir_counters *counters)
{
    weir__refs_retain(&counters->refs);
    return counters;
}

void weir_counters_release(weir_counters *counters)
{
    if (counters != NULL && weir__refs_release(&counters->refs))
        destroy(counters);
}

void weir_counters_read_stats(const weir_counters *counters, weir_counters_stats *ret_stats)
{
#define XX(counter, kind) \
    ret_stats->counter =  \
        atomic_load_explicit(&counters->values[COUNTER_##counter], memory_order_relaxed);
    COUNTERS(XX)
#undef XX
}

/* ---- the handler ---- */

static struct counting *state_of(weir_ctx *ctx)
{
    return weir_ctx_state(ctx);
}

static int init(void *state, const void *options)
{
    weir_counters *counters =
        (weir_counters *)(uintptr_t)options; /* borrowed from weir_counters_add */

    ((struct counting *)state)->counters = weir_counters_retain(counters);
    return 0;
}

static void publish(struct counting *counting)
{
    for (size_t i = 0; i < COUNTER_COUNT; i++) {
        if (counting->unpublished[i] == 0)
            continue;
        atomic_fetch_add_explicit(&counting->counters->values[i], counting->unpublished[i],
                                  memory_order_relaxed);
        counting->unpublished[i] = 0;
    }
}

static void set_open(struct counting *counting, bool is_open)
{
    if (counting->is_open == is_open)
        return;
    counting->is_open = is_open;
    counting->unpublished[COUNTER_open] += is_open ? 1 : -1;
    counting->unpublished[COUNTER_channels] += is_open;
    publish(counting);
}

/* A handler may be removed from a channel that stays open. */
static void deinit(void *state)
{
    struct counting *counting = state;

    set_open(counting, false);
    publish(counting);
    weir_counters_release(counting->counters);
}

static int64_t bytes_of(weir_msg *msg)
{
    return msg->type->size != NULL ? weir__msg_bytes_on_wire(msg) : 0;
}

static void on_added(weir_ctx *ctx)
{
    set_open(state_of(ctx), weir_channel_is_active(weir_ctx_channel(ctx)));
}

static void on_active(weir_ctx *ctx)
{
    set_open(state_of(ctx), true);
    weir_fire_active(ctx);
}

static void on_inactive(weir_ctx *ctx)
{
    set_open(state_of(ctx), false);
    weir_fire_inactive(ctx);
}

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    state_of(ctx)->unpublished[COUNTER_messages_read]++;
    state_of(ctx)->unpublished[COUNTER_bytes_read] += bytes_of(msg);
    weir_fire_read(ctx, msg);
}

static void on_read_complete(weir_ctx *ctx)
{
    state_of(ctx)->unpublished[COUNTER_reads]++;
    publish(state_of(ctx));
    weir_fire_read_complete(ctx);
}

static void on_error(weir_ctx *ctx, int err, const char *detail)
{
    state_of(ctx)->unpublished[COUNTER_errors]++;
    publish(state_of(ctx));
    weir_fire_error(ctx, err, detail);
}

static void on_write(weir_ctx *ctx, weir_msg *msg, weir_promise *done)
{
    state_of(ctx)->unpublished[COUNTER_messages_written]++;
    state_of(ctx)->unpublished[COUNTER_bytes_written] += bytes_of(msg);
    weir_write(ctx, msg, done);
}

static void on_flush(weir_ctx *ctx)
{
    state_of(ctx)->unpublished[COUNTER_flushes]++;
    publish(state_of(ctx));
    weir_flush(ctx);
}

static const weir_handler handler = {
    .name = "counters",
    .state_size = sizeof(struct counting),
    .init = init,
    .deinit = deinit,
    .added = on_added,
    .active = on_active,
    .inactive = on_inactive,
    .read = on_read,
    .read_complete = on_read_complete,
    .error = on_error,
    .write = on_write,
    .flush = on_flush,
};

int weir_counters_add(weir_pipeline *pipeline, weir_counters *counters)
{
    return weir_pipeline_add_last(pipeline, &handler, counters);
}
