/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ring of handlers, on the loop: adding, removing, finding. Calls from other threads come here
 * by way of change.c.
 *
 * The life of a context:
 *
 *      created           change.c, in the caller: `init`
 *      linked            weir__pipeline_insert
 *      added             tell_added: when linked, or by weir__pipeline_begin if that was before the
 *                        first registration; from here on it has its slots
 *      removed           take_out: no slots from here on, and no name that is found; then
 *                        tell_removed, for a replaced one after `added` of its replacement
 *      unlinked, freed   weir__pipeline_sweep, in a later task: `deinit`
 *
 * One that runs elsewhere is told through its inbox, and is unlinked when it is through with what
 * was on the way to it (weir__pipeline_gone).
 */
#include "channel/pipeline.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <weir/error.h>

#include "channel/channel.h"
#include "channel/demand.h"
#include "channel/pipeline_change.h"
#include "channel/remote_handler.h"

/* ---- the ring ---- */

void weir__pipeline_init(weir_pipeline *pipeline, weir_channel *channel)
{
    pipeline->ends = (weir_ctx){
        .prev = &pipeline->ends,
        .next = &pipeline->ends,
        .channel = channel,
        .handler = &weir__head_tail,
        .mask = WEIR__SLOTS,
    };
}

/* The one whose `next` it is. */
static weir_ctx *leading_to(const weir_ctx *ctx)
{
    weir_ctx *before = ctx->prev;

    while (before->next != ctx)
        before = before->next;
    return before;
}

static void link_before(weir_ctx *next, weir_ctx *ctx)
{
    while ((next->mask & WEIR__CTX_ASIDE) != 0)
        next = next->next;
    ctx->next = next;
    ctx->prev = next->prev;
    leading_to(next)->next = ctx;
    next->prev = ctx;
    weir__remote_write_down(&ctx->channel->pipeline);
}

/*
 * A handler that is replaced passes on what it still has to its replacement, which comes next to
 * it, in both directions. So it is left out on the way back, where `prev` leads.
 */
static void step_aside(weir_ctx *ctx, weir_ctx *replacement)
{
    if (weir__ctx_is_remote(ctx))
        return;
    ctx->mask |= WEIR__CTX_ASIDE;
    replacement->prev = ctx->prev;
    ctx->prev = replacement;
}

static void unlink_ctx(weir_ctx *ctx)
{
    weir_ctx *before = leading_to(ctx), *other = before;

    before->next = ctx->next;
    do {
        if (other->prev == ctx)
            other->prev = ctx->prev;
        other = other->next;
    } while (other != before);
    weir__remote_write_down(&ctx->channel->pipeline);
}

static bool is_removed(const weir_ctx *ctx)
{
    return weir__ctx_is_remote(ctx) ? weir__remote_of(ctx)->was_removed
                                    : (ctx->mask & WEIR__CTX_REMOVED) != 0;
}

/* The slots that make the channel fire an event. Requests to read need not be repeated for a
 * handler that lets all messages pass while auto-read is on. */
static uint32_t slots_of(const weir_ctx *ctx)
{
    bool keeps_reads = ctx->handler->keeps_reads;
    uint32_t mask = weir__handler_mask(ctx->handler);

    if (keeps_reads)
        mask &= ~(uint32_t)WEIR__REQUEST_READ;
    return keeps_reads || weir__ctx_is_remote(ctx) ? mask | WEIR__KEEPS_READS : mask;
}

static void collect_mask(weir_pipeline *pipeline)
{
    pipeline->ends.slots = 0;
    for (weir_ctx *ctx = pipeline->ends.next; ctx != &pipeline->ends; ctx = ctx->next)
        if (!is_removed(ctx))
            pipeline->ends.slots |= slots_of(ctx);
}

/* ---- finding ---- */

weir_ctx *weir_pipeline_find(weir_pipeline *pipeline, const char *name)
{
    for (weir_ctx *ctx = pipeline->ends.next; ctx != &pipeline->ends; ctx = ctx->next)
        if (!is_removed(ctx) && strcmp(weir_ctx_name(ctx), name) == 0)
            return ctx;
    return NULL;
}

weir_ctx *weir_pipeline_find_handler(weir_pipeline *pipeline, const weir_handler *handler)
{
    for (weir_ctx *ctx = pipeline->ends.next; ctx != &pipeline->ends; ctx = ctx->next)
        if (!is_removed(ctx) && ctx->handler == handler)
            return ctx;
    return NULL;
}

size_t weir_pipeline_count(const weir_pipeline *pipeline)
{
    size_t count = 0;

    for (const weir_ctx *ctx = pipeline->ends.next; ctx != &pipeline->ends; ctx = ctx->next)
        count += !is_removed(ctx);
    return count;
}

static size_t append_text(char *buffer, size_t size, size_t used, const char *text)
{
    (void)snprintf(used < size ? buffer + used : NULL, used < size ? size - used : 0, "%s", text);
    return used + strlen(text);
}

size_t weir_pipeline_dump(const weir_pipeline *pipeline, char *buffer, size_t size)
{
    size_t used = append_text(buffer, size, 0, "head <-> ");

    for (const weir_ctx *ctx = pipeline->ends.next; ctx != &pipeline->ends; ctx = ctx->next) {
        if (is_removed(ctx))
            continue;
        used = append_text(buffer, size, used, weir_ctx_name(ctx));
        used = append_text(buffer, size, used, " <-> ");
    }
    return append_text(buffer, size, used, "tail");
}

weir_channel *weir_pipeline_channel(const weir_pipeline *pipeline)
{
    return pipeline->ends.channel;
}

/* ---- telling ---- */

static bool has_begun(const weir_pipeline *pipeline)
{
    return weir__channel_has(pipeline->ends.channel, WEIR__BEGUN);
}

/* Its slots are there before `added` runs, so that it can pass events to itself and others. */
static void tell_added(weir_ctx *ctx)
{
    if (weir__ctx_is_remote(ctx)) {
        weir__remote_add(ctx);
        return;
    }
    ctx->mask |= WEIR__CTX_ADDED;
    if (!is_removed(ctx))
        ctx->mask |= weir__handler_mask(ctx->handler);
    if (ctx->handler->keeps_reads)
        weir__demand_begin(ctx);
    if (ctx->handler->added != NULL)
        ctx->handler->added(ctx);
}

/* What it holds back it may give back itself, in `removed`: only the rest is taken off. */
static void tell_removed(weir_ctx *ctx)
{
    weir__ctx_stop_timers(ctx);
    if ((ctx->mask & WEIR__CTX_ADDED) != 0 && ctx->handler->removed != NULL)
        ctx->handler->removed(ctx);
    weir__ctx_let_go(ctx);
    weir__channel_defer(ctx->channel, WEIR__DEFERRED_SWEEP);
}

static bool was_told(const weir_ctx *ctx)
{
    return weir__ctx_is_remote(ctx) ? weir__remote_of(ctx)->was_added
                                    : (ctx->mask & WEIR__CTX_ADDED) != 0;
}

/* Its removal is told after its replacement was: that is where `prev` leads. */
static bool waits_for_replacement(const weir_ctx *ctx)
{
    return (ctx->mask & WEIR__CTX_ASIDE) != 0 && !was_told(ctx->prev);
}

/* It and, if it has replaced one, that one's removal. The old one comes before it. */
static void tell_added_and_replaced(weir_ctx *ctx)
{
    weir_ctx *old = ctx->channel->pipeline.ends.next;

    while (old != ctx && ((old->mask & WEIR__CTX_ASIDE) == 0 || old->prev != ctx))
        old = old->next;
    tell_added(ctx);
    if (old != ctx)
        tell_removed(old);
}

/* What handlers add and remove meanwhile stays linked, so that the way to the next is there. */
void weir__pipeline_begin(weir_pipeline *pipeline)
{
    weir_channel *channel = pipeline->ends.channel;
    bool is_over;

    if (has_begun(pipeline))
        return;
    channel->flags |= WEIR__BEGUN;
    for (weir_ctx *ctx = pipeline->ends.next; ctx != &pipeline->ends; ctx = ctx->next) {
        if (was_told(ctx))
            continue;
        is_over = is_removed(ctx) && !weir__ctx_is_remote(ctx) && !waits_for_replacement(ctx);
        tell_added_and_replaced(ctx);
        if (is_over) /* before it could be told */
            tell_removed(ctx);
    }
}

/* ---- changes ---- */

static int pick_name(weir_pipeline *pipeline, weir_ctx *ctx, bool exactly, const weir_ctx *except)
{
    const char *wanted = weir_ctx_name(ctx);
    char name[WEIR__NAME_MAX];
    weir_ctx *other = weir_pipeline_find(pipeline, wanted);

    if (other == NULL || other == except)
        return 0;
    if (exactly || (ctx->mask & WEIR__CTX_ROOM) == 0)
        return -EEXIST;
    for (unsigned number = 2; other != NULL; number++) {
        (void)snprintf(name, sizeof(name), "%s#%u", wanted, number);
        other = weir_pipeline_find(pipeline, name);
    }
    weir__ctx_set_name(ctx, name);
    return 0;
}

/* From here on no event and no change finds the handler, so each is taken out once. */
static void take_out(weir_ctx *ctx)
{
    if (weir__ctx_is_remote(ctx))
        weir__remote_take_out(ctx);
    else
        ctx->mask = (ctx->mask & ~(uint32_t)WEIR__SLOTS) | WEIR__CTX_REMOVED;
}

static void tell_taken_out(weir_ctx *ctx)
{
    if (weir__ctx_is_remote(ctx))
        weir__remote_tell_removed(ctx);
    else if (has_begun(&ctx->channel->pipeline))
        tell_removed(ctx);
}

/*
 * The old handler is out of the pipeline before `added` of the new one runs: that may change the
 * pipeline in any way, and finds the new handler only.
 */
static void replace(weir_pipeline *pipeline, weir_ctx *old, weir_ctx *ctx)
{
    step_aside(old, ctx);
    take_out(old);
    if (has_begun(pipeline))
        tell_added(ctx);
    tell_taken_out(old);
}

int weir__pipeline_insert(weir_pipeline *pipeline, weir_ctx *ctx, const weir__spot *spot)
{
    weir_ctx *anchor = &pipeline->ends;
    int err;

    if (weir__channel_phase(pipeline->ends.channel) == WEIR__CLOSED)
        return WEIR_ECLOSED;
    if (spot->anchor != NULL)
        anchor = weir_pipeline_find(pipeline, spot->anchor);
    if (anchor == NULL)
        return -ENOENT;
    err = pick_name(pipeline, ctx, spot->exactly, spot->kind == WEIR__INSTEAD ? anchor : NULL);
    if (err < 0)
        return err;
    if (spot->kind == WEIR__LAST)
        anchor = weir__initializer_place(pipeline);
    link_before(spot->kind == WEIR__BEFORE || spot->kind == WEIR__LAST ? anchor : anchor->next,
                ctx);
    pipeline->ends.slots |= slots_of(ctx);
    if (spot->kind == WEIR__INSTEAD)
        replace(pipeline, anchor, ctx);
    else if (has_begun(pipeline))
        tell_added(ctx);
    return 0;
}

void weir__pipeline_remove(weir_ctx *ctx)
{
    if (is_removed(ctx))
        return;
    take_out(ctx);
    tell_taken_out(ctx);
}

void weir_ctx_remove(weir_ctx *ctx)
{
    assert(weir__ctx_is_here(ctx));
    if (weir__ctx_is_remote(ctx))
        weir__remote_ask_removal(ctx);
    else
        weir__pipeline_remove(ctx);
}

/* ---- the end ---- */

void weir__pipeline_sweep(weir_pipeline *pipeline)
{
    weir_ctx *ctx = pipeline->ends.next, *next;

    for (; ctx != &pipeline->ends; ctx = next) {
        next = ctx->next;
        if (weir__ctx_is_remote(ctx) || !is_removed(ctx) || ctx->offloads > 0)
            continue;
        unlink_ctx(ctx);
        weir__ctx_destroy(ctx);
    }
    collect_mask(pipeline);
}

static void remove_all(weir_pipeline *pipeline)
{
    weir_channel *channel = pipeline->ends.channel;

    channel->flags |= WEIR__ENDING;
    for (weir_ctx *ctx = pipeline->ends.prev; ctx != &pipeline->ends; ctx = ctx->prev) {
        weir__pipeline_remove(ctx);
        if (weir__ctx_is_remote(ctx))
            return; /* weir__pipeline_gone goes on */
    }
    weir__channel_ended(channel);
}

void weir__pipeline_gone(weir_ctx *ctx)
{
    weir_channel *channel = ctx->channel;
    weir_promise *left = weir__remote_of(ctx)->left;

    unlink_ctx(ctx);
    weir__ctx_destroy(ctx);
    if (left != NULL)
        (void)weir_promise_succeed(left, NULL);
    weir_promise_release(left);
    if (weir__channel_has(channel, WEIR__ENDING))
        remove_all(&channel->pipeline);
    else
        collect_mask(&channel->pipeline);
}

/* Those on the loop are called as an event comes by: only others have to be waited for. None is
 * added any more, since the channel is closed. */
void weir__pipeline_end_behind(weir_ctx *ctx)
{
    weir_pipeline *pipeline = &ctx->channel->pipeline;

    do
        ctx = ctx->next;
    while (ctx != &pipeline->ends && !weir__ctx_is_remote(ctx));
    if (ctx != &pipeline->ends)
        weir__remote_end(ctx);
    else
        remove_all(pipeline);
}

void weir__pipeline_end(weir_pipeline *pipeline)
{
    weir__pipeline_end_behind(&pipeline->ends);
}

void weir__pipeline_destroy(weir_pipeline *pipeline)
{
    weir_ctx *ctx = pipeline->ends.next, *next;

    for (; ctx != &pipeline->ends; ctx = next) {
        next = ctx->next;
        weir__ctx_destroy(ctx);
    }
    weir__pipeline_init(pipeline, pipeline->ends.channel);
}
