/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ring of handlers, on the loop: adding, removing, finding. Changes by other threads get here
 * through pipeline_change.c.
 *
 * The lifecycle of a context:
 *
 *      created           pipeline_change.c, in the caller: `init`
 *      linked            weir__pipeline_insert
 *      added             call_added: when linked, or, before the first registration, by
 *                        weir__pipeline_call_added; from here on it has its slots
 *      removed           mark_removed: no slots and no name from here on; then call_removed, of a
 *                        replaced handler after `added` of its replacement
 *      unlinked, freed   weir__pipeline_sweep, in a later task: `deinit`
 *
 * Remote handlers are called on their executors. The sweep frees a remote context when its executor
 * has finished with it (remote_handler.h).
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
    pipeline->head_tail = (weir_ctx){
        .prev = &pipeline->head_tail,
        .next = &pipeline->head_tail,
        .channel = channel,
        .handler = &weir__head_tail,
        .mask = WEIR__SLOTS,
    };
}

/* The context whose `next` is `ctx`. */
static weir_ctx *predecessor(const weir_ctx *ctx)
{
    weir_ctx *before = ctx->prev;

    while (before->next != ctx)
        before = before->next;
    return before;
}

static int link_before(weir_ctx *next, weir_ctx *ctx, bool replaces)
{
    weir_ctx *before;
    int err;

    while ((next->mask & WEIR__CTX_REPLACED) != 0 || weir__remote_is_leaving(next))
        next = next->next;
    next = weir__remote_position(next);
    before = predecessor(next);
    err = weir__remote_place(ctx, before, next, replaces);
    if (err < 0)
        return err;
    ctx->next = next;
    ctx->prev = next->prev;
    before->next = ctx;
    next->prev = ctx;
    return 0;
}

/*
 * A replaced handler passes what it still has to its replacement, which is next to it, in both
 * directions. So `prev` of the others leads past it.
 */
static void put_aside(weir_ctx *ctx, weir_ctx *replacement)
{
    if (weir__ctx_is_remote(ctx))
        return;
    ctx->mask |= WEIR__CTX_REPLACED;
    replacement->prev = ctx->prev;
    ctx->prev = replacement;
}

static void unlink_ctx(weir_ctx *ctx)
{
    weir_ctx *before = predecessor(ctx), *other = before;

    if (weir__ctx_is_remote(ctx))
        weir__remote_unplace(ctx, before);
    before->next = ctx->next;
    do {
        if (other->prev == ctx)
            other->prev = ctx->prev;
        other = other->next;
    } while (other != before);
}

static bool is_removed(const weir_ctx *ctx)
{
    return weir__ctx_is_remote(ctx) ? weir__remote_of(ctx)->was_removed
                                    : (ctx->mask & WEIR__CTX_REMOVED) != 0;
}

/* The slots for which the channel fires events. Read requests need not be repeated for a handler
 * that passes all messages on while auto-read is on. */
static uint32_t slots_of(const weir_ctx *ctx)
{
    bool buffers_reads = ctx->handler->buffers_reads;
    uint32_t mask = weir__handler_mask(ctx->handler);

    if (buffers_reads)
        mask &= ~(uint32_t)WEIR__REQUEST_READ;
    return buffers_reads || weir__ctx_is_remote(ctx) ? mask | WEIR__BUFFERS_READS : mask;
}

static void recompute_slots(weir_pipeline *pipeline)
{
    pipeline->head_tail.slots = 0;
    for (weir_ctx *ctx = pipeline->head_tail.next; ctx != &pipeline->head_tail; ctx = ctx->next)
        if (!is_removed(ctx))
            pipeline->head_tail.slots |= slots_of(ctx);
}

/* ---- finding ---- */

weir_ctx *weir_pipeline_find(weir_pipeline *pipeline, const char *name)
{
    for (weir_ctx *ctx = pipeline->head_tail.next; ctx != &pipeline->head_tail; ctx = ctx->next)
        if (!is_removed(ctx) && strcmp(weir_ctx_name(ctx), name) == 0)
            return ctx;
    return NULL;
}

weir_ctx *weir_pipeline_find_handler(weir_pipeline *pipeline, const weir_handler *handler)
{
    for (weir_ctx *ctx = pipeline->head_tail.next; ctx != &pipeline->head_tail; ctx = ctx->next)
        if (!is_removed(ctx) && ctx->handler == handler)
            return ctx;
    return NULL;
}

size_t weir_pipeline_count(const weir_pipeline *pipeline)
{
    size_t count = 0;

    for (const weir_ctx *ctx = pipeline->head_tail.next; ctx != &pipeline->head_tail;
         ctx = ctx->next)
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

    for (const weir_ctx *ctx = pipeline->head_tail.next; ctx != &pipeline->head_tail;
         ctx = ctx->next) {
        if (is_removed(ctx))
            continue;
        used = append_text(buffer, size, used, weir_ctx_name(ctx));
        used = append_text(buffer, size, used, " <-> ");
    }
    return append_text(buffer, size, used, "tail");
}

weir_channel *weir_pipeline_channel(const weir_pipeline *pipeline)
{
    return pipeline->head_tail.channel;
}

/* ---- calling handlers ---- */

static bool was_registered(const weir_pipeline *pipeline)
{
    return !weir__channel_state_is_at(pipeline->head_tail.channel, WEIR__REGISTRATION, WEIR__NEW);
}

/* The slots are set before `added` runs, so that it can fire events. */
static void call_added(weir_ctx *ctx)
{
    if (weir__ctx_is_remote(ctx)) {
        weir__remote_add(ctx);
        return;
    }
    ctx->mask |= WEIR__CTX_ADDED;
    if (!is_removed(ctx))
        ctx->mask |= weir__handler_mask(ctx->handler);
    if (ctx->handler->buffers_reads)
        weir__demand_begin(ctx);
    if (ctx->handler->added != NULL)
        ctx->handler->added(ctx);
}

/* `removed` may subtract its pending bytes itself: only the rest is subtracted here. */
static void call_removed(weir_ctx *ctx)
{
    weir__ctx_stop_timers(ctx);
    if ((ctx->mask & WEIR__CTX_ADDED) != 0 && ctx->handler->removed != NULL)
        ctx->handler->removed(ctx);
    weir__ctx_clear_pending_bytes(ctx);
    weir__channel_defer(ctx->channel, WEIR__DEFERRED_SWEEP);
}

static bool was_added_once(const weir_ctx *ctx)
{
    return weir__ctx_is_remote(ctx) ? weir__remote_of(ctx)->was_added
                                    : (ctx->mask & WEIR__CTX_ADDED) != 0;
}

/* `removed` is called after `added` of the replacement, which `prev` leads to. */
static bool waits_for_replacement(const weir_ctx *ctx)
{
    return (ctx->mask & WEIR__CTX_REPLACED) != 0 && !was_added_once(ctx->prev);
}

/* Also calls `removed` of the handler that it replaces, which comes before it. */
static void call_added_and_replaced(weir_ctx *ctx)
{
    weir_ctx *old = ctx->channel->pipeline.head_tail.next;

    while (old != ctx && ((old->mask & WEIR__CTX_REPLACED) == 0 || old->prev != ctx))
        old = old->next;
    call_added(ctx);
    if (old != ctx)
        call_removed(old);
}

/* Handlers that are added and removed meanwhile stay linked, so `next` stays valid. */
void weir__pipeline_call_added(weir_pipeline *pipeline)
{
    bool is_over;

    for (weir_ctx *ctx = pipeline->head_tail.next; ctx != &pipeline->head_tail; ctx = ctx->next) {
        if (was_added_once(ctx))
            continue;
        is_over = is_removed(ctx) && !weir__ctx_is_remote(ctx) && !waits_for_replacement(ctx);
        call_added_and_replaced(ctx);
        if (is_over) /* removed before it was added */
            call_removed(ctx);
    }
}

/* ---- changes ---- */

static int choose_name(weir_pipeline *pipeline, weir_ctx *ctx, bool is_exact,
                       const weir_ctx *except)
{
    const char *wanted = weir_ctx_name(ctx);
    char name[WEIR__NAME_MAX];
    weir_ctx *other = weir_pipeline_find(pipeline, wanted);

    if (other == NULL || other == except)
        return 0;
    if (is_exact || (ctx->mask & WEIR__CTX_NAME_SPACE) == 0)
        return -EEXIST;
    for (unsigned number = 2; other != NULL; number++) {
        (void)snprintf(name, sizeof(name), "%s#%u", wanted, number);
        other = weir_pipeline_find(pipeline, name);
    }
    weir__ctx_set_name(ctx, name);
    return 0;
}

/* From here on no event and no change finds the handler, so it is removed only once. */
static void mark_removed(weir_ctx *ctx)
{
    if (weir__ctx_is_remote(ctx)) {
        weir__remote_of(ctx)->was_removed = true;
        return;
    }
    ctx->mask = (ctx->mask & ~(uint32_t)WEIR__SLOTS) | WEIR__CTX_REMOVED;
    weir__ctx_set_out(ctx);
}

static void finish_removal(weir_ctx *ctx)
{
    if (weir__ctx_is_remote(ctx))
        weir__remote_remove(ctx);
    else if (was_registered(&ctx->channel->pipeline))
        call_removed(ctx);
}

/*
 * The old handler is removed before `added` of the new one runs: `added` may change the pipeline in
 * any way, and finds only the new handler.
 */
static void replace(weir_pipeline *pipeline, weir_ctx *old, weir_ctx *ctx)
{
    put_aside(old, ctx);
    mark_removed(old);
    if (was_registered(pipeline))
        call_added(ctx);
    finish_removal(old);
}

int weir__pipeline_insert(weir_pipeline *pipeline, weir_ctx *ctx, const weir__position *position)
{
    weir_ctx *anchor = &pipeline->head_tail, *next;
    int err;

    if (weir__channel_phase(pipeline->head_tail.channel) == WEIR__CLOSED)
        return WEIR_ECLOSED;
    if (position->anchor != NULL)
        anchor = weir_pipeline_find(pipeline, position->anchor);
    if (anchor == NULL)
        return -ENOENT;
    err = choose_name(pipeline, ctx, position->is_exact,
                      position->kind == WEIR__REPLACE ? anchor : NULL);
    if (err < 0)
        return err;
    if (position->kind == WEIR__LAST)
        anchor = weir__initializer_anchor(pipeline);
    if (position->kind != WEIR__BEFORE && position->kind != WEIR__LAST)
        next = anchor->next;
    else
        next = anchor;
    err = link_before(next, ctx, position->kind == WEIR__REPLACE);
    if (err < 0)
        return err;
    pipeline->head_tail.slots |= slots_of(ctx);
    if (position->kind == WEIR__REPLACE)
        replace(pipeline, anchor, ctx);
    else if (was_registered(pipeline))
        call_added(ctx);
    return 0;
}

void weir__pipeline_remove(weir_ctx *ctx)
{
    if (is_removed(ctx))
        return;
    mark_removed(ctx);
    finish_removal(ctx);
}

void weir_ctx_remove(weir_ctx *ctx)
{
    assert(weir__ctx_in_executor(ctx));
    if (weir__ctx_is_remote(ctx))
        weir__remote_ask_removal(ctx);
    else
        weir__pipeline_remove(ctx);
}

int weir__pipeline_move(weir_ctx *ctx, weir_group *group)
{
    int err = weir__remote_move(ctx, predecessor(ctx), group);

    if (err == 0)
        ctx->channel->pipeline.head_tail.slots |= slots_of(ctx);
    return err;
}

/* ---- teardown ---- */

/* Removes handlers from the tail on; those of a segment when everything behind it has been
 * freed. */
static void remove_all(weir_pipeline *pipeline)
{
    weir_channel *channel = pipeline->head_tail.channel;

    weir__channel_set_state(channel, WEIR__REMOVING_HANDLERS, WEIR__REGISTRATION);
    for (weir_ctx *ctx = pipeline->head_tail.prev; ctx != &pipeline->head_tail; ctx = ctx->prev) {
        weir__pipeline_remove(ctx);
        if (weir__ctx_is_remote(ctx) && weir__remote_of(ctx)->segment->first == ctx)
            return; /* weir__pipeline_sweep continues */
    }
    weir__channel_leave_loop(channel);
}

static void free_remote(weir_ctx *ctx)
{
    weir_promise *left = weir__remote_of(ctx)->left;

    unlink_ctx(ctx);
    weir__ctx_destroy(ctx);
    if (left != NULL)
        (void)weir_promise_succeed(left, NULL);
    weir_promise_release(left);
}

void weir__pipeline_sweep(weir_pipeline *pipeline)
{
    weir_ctx *ctx = pipeline->head_tail.next, *next;
    bool has_freed_remote = false;

    for (; ctx != &pipeline->head_tail; ctx = next) {
        next = ctx->next;
        if (weir__ctx_is_remote(ctx)) {
            if (!weir__remote_sweep(ctx))
                continue;
            free_remote(ctx);
            has_freed_remote = true;
        } else if (is_removed(ctx) && !weir__ctx_has_offloads(ctx)) {
            unlink_ctx(ctx);
            weir__ctx_destroy(ctx);
        }
    }
    recompute_slots(pipeline);
    if (has_freed_remote && weir__channel_state_is_at(pipeline->head_tail.channel,
                                                      WEIR__REGISTRATION, WEIR__REMOVING_HANDLERS))
        remove_all(pipeline);
}

/* Handlers on the loop run inside the event: only remote ones have to be awaited. None is added
 * any more, because the channel is closed. */
void weir__pipeline_teardown_after(weir_ctx *ctx)
{
    weir_pipeline *pipeline = &ctx->channel->pipeline;

    do
        ctx = ctx->next;
    while (ctx != &pipeline->head_tail && !weir__ctx_is_remote(ctx));
    if (ctx != &pipeline->head_tail)
        weir__remote_end(ctx);
    else
        remove_all(pipeline);
}

void weir__pipeline_teardown(weir_pipeline *pipeline)
{
    weir__pipeline_teardown_after(&pipeline->head_tail);
}

void weir__pipeline_destroy(weir_pipeline *pipeline)
{
    weir_ctx *ctx;

    while ((ctx = pipeline->head_tail.next) != &pipeline->head_tail) {
        unlink_ctx(ctx);
        weir__ctx_destroy(ctx);
    }
}
