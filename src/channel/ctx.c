/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts: memory, references, pending bytes and timers.
 */
#include "channel/ctx.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <weir/error.h>
#include <weir/loop.h>

#include "base/memory.h"
#include "base/refcount.h"
#include "channel/border.h"
#include "channel/channel.h"
#include "channel/node_pool.h"
#include "executor/executor.h"

/* Bytes that a handler has queued. */
struct weir__pending_bytes {
    struct weir__pending_bytes *next;
    weir_ctx *ctx;
    int64_t bytes;
};

/* ---- memory ---- */

static size_t name_offset(const weir_handler *handler)
{
    return handler->state_size > 0 ? weir__ctx_state_offset(handler) + handler->state_size
                                   : sizeof(weir_ctx);
}

int weir__ctx_create(weir_channel *channel, const weir_handler *handler, const void *options,
                     size_t name_size, weir_ctx **ret_ctx)
{
    weir_ctx *ctx = weir__zalloc(name_offset(handler) + name_size);
    int err;

    if (ctx == NULL)
        return -ENOMEM;
    atomic_init(&ctx->refs, 1);
    ctx->channel = channel;
    ctx->handler = handler;
    ctx->mask = name_size > 0 ? WEIR__CTX_NAME_SPACE : 0;
    err = handler->init != NULL ? handler->init(weir__ctx_state(ctx), options) : 0;
    if (err < 0) {
        weir__free(ctx);
        return err;
    }
    *ret_ctx = ctx;
    return 0;
}

/* As weir__refs_release, beside the flags: "release" in src/base/refcount.h. */
static void unref(weir_ctx *ctx)
{
    if ((atomic_load_explicit(&ctx->refs, memory_order_acquire) & WEIR__CTX_REFS) == 1 ||
        (atomic_fetch_sub_explicit(&ctx->refs, 1, memory_order_acq_rel) & WEIR__CTX_REFS) == 1)
        weir__free(ctx);
}

void weir__ctx_destroy(weir_ctx *ctx)
{
    if (!weir_ctx_is_removed(ctx))
        weir__ctx_set_out(ctx); /* `added` has never been called, so neither was `removed` */
    if (ctx->handler->deinit != NULL)
        ctx->handler->deinit(weir__ctx_state(ctx));
    unref(ctx);
}

weir_ctx *weir_ctx_retain(weir_ctx *ctx)
{
    /* Relaxed: the caller has a reference, or runs on the executor that removes the handler. */
    atomic_fetch_add_explicit(&ctx->refs, 1, memory_order_relaxed);
    weir_channel_retain(ctx->channel);
    return ctx;
}

void weir_ctx_release(weir_ctx *ctx)
{
    weir_channel *channel;

    if (ctx == NULL)
        return;
    channel = ctx->channel;
    WEIR__ASSERT_HELD((atomic_load_explicit(&ctx->refs, memory_order_relaxed) & WEIR__CTX_REFS) > 0,
                      "weir_ctx_release: the context was released more often than retained");
    unref(ctx);
    weir_channel_release(channel);
}

void weir__ctx_set_name(weir_ctx *ctx, const char *name)
{
    char *place = (char *)ctx + name_offset(ctx->handler);

    assert((ctx->mask & WEIR__CTX_NAME_SPACE) != 0);
    memcpy(place, name, strlen(name) + 1);
    ctx->mask |= WEIR__CTX_NAMED;
}

/* ---- the handler and its executor ---- */

/* An executor that has ended is replaced by another: executor/mailbox.c. */
bool weir__ctx_in_executor(const weir_ctx *ctx)
{
    const weir_executor *executor = weir_ctx_executor(ctx);

    return executor == NULL || weir__in_executor(executor) ||
           weir__executor_state(executor) >= WEIR_EXECUTOR_SHUTDOWN;
}

void *weir_ctx_state(weir_ctx *ctx)
{
    return weir__ctx_state(ctx);
}

const weir_handler *weir_ctx_handler(const weir_ctx *ctx)
{
    return ctx->handler;
}

const char *weir_ctx_name(const weir_ctx *ctx)
{
    if ((ctx->mask & WEIR__CTX_NAMED) != 0)
        return (const char *)ctx + name_offset(ctx->handler);
    return ctx->handler->name != NULL ? ctx->handler->name : "handler";
}

weir_channel *weir_ctx_channel(const weir_ctx *ctx)
{
    return ctx->channel;
}

weir_pipeline *weir_ctx_pipeline(const weir_ctx *ctx)
{
    return &ctx->channel->pipeline;
}

weir_executor *weir_ctx_executor(const weir_ctx *ctx)
{
    if (weir__ctx_is_remote(ctx))
        return weir__channel_border(ctx->channel)->executor;
    return weir__channel_executor(ctx->channel);
}

int64_t weir_ctx_now(const weir_ctx *ctx)
{
    const weir_executor *executor = weir_ctx_executor(ctx);

    return executor != NULL && weir__executor_state(executor) < WEIR_EXECUTOR_TERMINATED
               ? weir__executor_now(executor)
               : 0;
}

int64_t weir_ctx_turn_elapsed(const weir_ctx *ctx)
{
    const weir_executor *executor = weir_ctx_executor(ctx);

    if (executor == NULL || executor != weir__current || executor->type->dispatch == NULL)
        return 0;
    return weir__executor_now(executor) -
           atomic_load_explicit(&executor->stats.turn_began, memory_order_relaxed);
}

bool weir_ctx_is_removed(const weir_ctx *ctx)
{
    return (atomic_load_explicit(&ctx->refs, memory_order_acquire) & WEIR__CTX_OUT) != 0;
}

void weir_ctx_report(weir_ctx *ctx, weir_promise *done, int err, const char *detail)
{
    assert(weir__ctx_in_executor(ctx));
    if (done != NULL || !weir__ctx_is_remote(ctx))
        weir__channel_report(ctx->channel, done, err, detail);
    else if (err < 0)
        weir__channel_fail_posted(ctx->channel, NULL, err);
}

/* ---- flow control ---- */

bool weir_ctx_is_writable(const weir_ctx *ctx)
{
    return weir_channel_is_writable(ctx->channel);
}

void weir_ctx_set_auto_read(weir_ctx *ctx, bool on)
{
    weir_channel_set_auto_read(ctx->channel, on);
}

/* The counters of the handlers on the same side of the border; NULL: there are none, or there is no
 * memory. */
static struct weir__pending_bytes **counters_of(const weir_ctx *ctx, bool takes)
{
    weir__channel_extra *extra = weir__channel_extra_if_any(ctx->channel);

    if (weir__ctx_is_remote(ctx))
        return &weir__channel_border(ctx->channel)->pending_bytes;
    if (extra == NULL && takes)
        extra = weir__channel_extra_get(ctx->channel);
    return extra != NULL ? &extra->pending_bytes : NULL;
}

static struct weir__pending_bytes **find_pending(const weir_ctx *ctx, bool takes)
{
    struct weir__pending_bytes **link = counters_of(ctx, takes);

    while (link != NULL && *link != NULL && (*link)->ctx != ctx)
        link = &(*link)->next;
    return link;
}

/* The counter of a handler; NULL if it has none and `takes` is false, or without memory. */
static int64_t *pending_of(weir_ctx *ctx, bool takes)
{
    struct weir__pending_bytes **link = find_pending(ctx, takes), *entry;

    if (link == NULL)
        return NULL;
    if (*link == NULL) {
        if (!takes)
            return NULL;
        entry = weir__node_alloc();
        if (entry == NULL)
            return NULL;
        *entry = (struct weir__pending_bytes){.ctx = ctx};
        *link = entry;
    }
    return &(*link)->bytes;
}

/* Changes the pending bytes of a handler. Returns the change that counts: bytes that were never
 * counted are not subtracted. */
static inline int64_t count_pending(weir_ctx *ctx, int64_t bytes)
{
    int64_t *held;

    assert(weir__ctx_in_executor(ctx));
    if (bytes == 0)
        return 0;
    held = pending_of(ctx, bytes > 0);
    if (held == NULL)
        return 0;
    if (bytes < -*held)
        bytes = -*held; /* no more than was added */
    *held += bytes;
    return bytes;
}

void weir_ctx_add_pending_bytes(weir_ctx *ctx, int64_t bytes)
{
    bytes = count_pending(ctx, bytes);
    if (bytes != 0)
        weir__outbound_add_pending(ctx->channel, bytes);
}

/* The message passed the cap when it was queued, so it passes now, even if it has grown a
 * little. */
void weir_write_pending(weir_ctx *ctx, weir_msg *msg, weir_promise *done, int64_t bytes)
{
    weir_channel *channel = ctx->channel;
    bool is_here = !weir__ctx_is_remote(ctx);

    weir__outbound_count(channel, count_pending(ctx, -bytes));
    if (is_here)
        channel->flags |= WEIR__ADMITTED;
    weir_write(ctx, msg, done);
    if (is_here)
        channel->flags &= ~(uint32_t)WEIR__ADMITTED;
    weir__outbound_add_pending(channel,
                               0); /* checks the marks, in case the message was not queued */
}

int weir_ctx_pause_input(weir_ctx *ctx)
{
    assert(weir__ctx_in_executor(ctx));
    return weir__ctx_is_remote(ctx) ? -ENOTSUP : weir__channel_pause_input(ctx->channel);
}

void weir_ctx_resume_input(weir_ctx *ctx)
{
    assert(weir__ctx_in_executor(ctx));
    weir__channel_resume_input(ctx->channel);
}

void weir__ctx_take_pending_bytes(weir_ctx *ctx, struct weir__pending_bytes **taken)
{
    struct weir__pending_bytes **link = find_pending(ctx, false), *entry;

    if (link == NULL || *link == NULL)
        return;
    entry = *link;
    *link = entry->next;
    entry->next = *taken;
    *taken = entry;
}

void weir__ctx_join_pending_bytes(struct weir__pending_bytes *taken,
                                  struct weir__pending_bytes **counters)
{
    while (*counters != NULL)
        counters = &(*counters)->next;
    *counters = taken;
}

void weir__ctx_clear_pending_bytes(weir_ctx *ctx)
{
    struct weir__pending_bytes *entry = NULL;
    int64_t bytes;

    weir__ctx_take_pending_bytes(ctx, &entry);
    if (entry == NULL)
        return;
    bytes = entry->bytes;
    weir__node_free(entry);
    if (bytes != 0)
        weir__outbound_add_pending(ctx->channel, -bytes);
}

/* ---- timers ---- */

static weir_timer **timers_of(weir_ctx *ctx)
{
    return weir__ctx_is_remote(ctx) ? &weir__channel_border(ctx->channel)->timers
                                    : &ctx->channel->timers;
}

/* Between two loops, handlers on the loop have no executor. */
static bool has_executor(const weir_ctx *ctx)
{
    return weir__ctx_is_remote(ctx) || weir__channel_is(ctx->channel, WEIR__IS_REGISTERED);
}

/* A timer stays in the list once it was started: it lives as long as the context. */
int weir_ctx_timer_start(weir_ctx *ctx, weir_timer *timer, int64_t delay_ns,
                         void (*fn)(weir_ctx *ctx, weir_timer *timer))
{
    weir_timer **timers = timers_of(ctx);

    assert(weir__ctx_in_executor(ctx));
    if (fn == NULL || (timer->ctx != NULL && timer->ctx != ctx))
        return -EINVAL;
    if (weir_ctx_is_removed(ctx) || !has_executor(ctx))
        return WEIR_ECLOSED;
    if (timer->ctx == NULL) {
        timer->ctx = ctx;
        timer->ctx_next = *timers;
        *timers = timer;
    }
    timer->ctx_fn = fn;
    return weir__timer_start(weir_ctx_executor(ctx), timer, delay_ns);
}

void weir__ctx_stop_timers(weir_ctx *ctx)
{
    weir_timer **link = timers_of(ctx), *timer;

    while ((timer = *link) != NULL) {
        if (timer->ctx != ctx) {
            link = &timer->ctx_next;
            continue;
        }
        *link = timer->ctx_next;
        (void)weir_timer_stop(timer);
        weir_timer_init(timer); /* its ctx_fn needs a context */
    }
}

/* `reserved` of a stopped timer says that it was running, and `at_ns` the time that was left. */
void weir__ctx_take_timers(weir_ctx *ctx, weir_executor *executor, weir_timer **taken)
{
    weir_timer **link = &ctx->channel->timers, *timer;
    int64_t left_ns;

    while ((timer = *link) != NULL) {
        if (timer->ctx != ctx) {
            link = &timer->ctx_next;
            continue;
        }
        *link = timer->ctx_next;
        timer->node.reserved = weir_timer_is_running(timer);
        if (timer->node.reserved) {
            left_ns = weir__timer_left(timer);
            (void)weir_timer_stop(timer);
            timer->node.at_ns = left_ns;
        }
        timer->executor = executor; /* for weir_timer_restart */
        timer->ctx_next = *taken;
        *taken = timer;
    }
}

/* Starting fails only if the executor has shut down, which stops its timers. */
void weir__ctx_resume_timers(weir_timer *taken, weir_timer **timers)
{
    weir_timer *timer;

    while ((timer = taken) != NULL) {
        taken = timer->ctx_next;
        timer->ctx_next = *timers;
        *timers = timer;
        if (timer->node.reserved)
            (void)weir__timer_start(timer->executor, timer, timer->node.at_ns);
    }
}

void weir__channel_stop_timers(weir_channel *channel)
{
    for (weir_timer *timer = channel->timers; timer != NULL; timer = timer->ctx_next)
        (void)weir_timer_stop(timer);
}
