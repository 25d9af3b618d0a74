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
 * Handlers behind the border are called on its executor. The sweep frees such a context when the
 * executor has finished with it (border.h).
 */
#include "channel/pipeline.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <weir/error.h>

#include "base/log.h"
#include "channel/border.h"
#include "channel/channel.h"
#include "channel/demand.h"
#include "channel/offload_blocking.h"
#include "channel/pipeline_change.h"
#include "executor/group.h"

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

static void link_before(weir_ctx *next, weir_ctx *ctx)
{
    weir_ctx *before;

    while ((next->mask & WEIR__CTX_REPLACED) != 0)
        next = next->next;
    before = predecessor(next);
    ctx->next = next;
    ctx->prev = next->prev;
    before->next = ctx;
    next->prev = ctx;
}

/*
 * A replaced handler passes what it still has to its replacement, which is next to it, in both
 * directions. So `prev` of the others leads past it.
 */
static void put_aside(weir_ctx *ctx, weir_ctx *replacement)
{
    ctx->mask |= WEIR__CTX_REPLACED;
    replacement->prev = ctx->prev;
    ctx->prev = replacement;
}

void weir__pipeline_unlink(weir_ctx *ctx)
{
    weir_ctx *before = predecessor(ctx), *other = before;

    before->next = ctx->next;
    do {
        if (other->prev == ctx) {
            other->prev = ctx->prev;
            other->mask &= ~(uint32_t)WEIR__CTX_REPLACED; /* what replaced it is not there */
        }
        other = other->next;
    } while (other != before);
}

/* On the loop, or an initializer. */
static bool is_removed(const weir_ctx *ctx)
{
    return (ctx->mask & WEIR__CTX_REMOVED) != 0;
}

static bool is_border(const weir_ctx *ctx)
{
    return (ctx->mask & WEIR__CTX_BORDER) != 0;
}

/* A walk over the handlers of the pipeline: those on the loop, then those behind the border. */
struct walk {
    const weir_ctx *head_tail;
    weir_ctx *at;
    const weir__border *border; /* NULL: none */
    const weir__list *link;     /* of the last resident */
};

static struct walk walk_begin(const weir_pipeline *pipeline)
{
    weir_ctx *head_tail = (weir_ctx *)(uintptr_t)&pipeline->head_tail;
    weir__border *border = weir__channel_border(head_tail->channel);

    return (struct walk){.head_tail = head_tail,
                         .at = head_tail,
                         .border = border,
                         .link = border != NULL ? &border->residents : NULL};
}

static weir__resident *resident_at(const weir__list *link)
{
    return WEIR_CONTAINER_OF((weir__list *)(uintptr_t)link, weir__resident, link);
}

/* NULL at the end. */
static weir_ctx *walk_next(struct walk *walk)
{
    while (walk->at != NULL) {
        walk->at = walk->at->next;
        if (walk->at == walk->head_tail)
            walk->at = NULL;
        else if (!is_removed(walk->at) && !is_border(walk->at))
            return walk->at;
    }
    while (walk->border != NULL && (walk->link = walk->link->next) != &walk->border->residents)
        if (!weir__resident_is_removed(resident_at(walk->link)))
            return resident_at(walk->link)->ctx;
    return NULL;
}

/* The slots for which the channel fires events. Read requests need not be repeated for a handler
 * that passes all messages on while auto-read is on. */
static uint32_t slots_of(const weir_ctx *ctx)
{
    bool buffers_reads = ctx->handler->buffers_reads;
    uint32_t mask = weir__handler_mask(ctx->handler);

    if (buffers_reads)
        mask &= ~(uint32_t)WEIR__REQUEST_READ;
    return buffers_reads ? mask | WEIR__BUFFERS_READS : mask;
}

/* A border holds back messages as well. */
static void recompute_slots(weir_pipeline *pipeline)
{
    struct walk walk = walk_begin(pipeline);
    const weir_ctx *ctx;

    pipeline->head_tail.slots = weir__border_stands(walk.border) ? WEIR__BUFFERS_READS : 0;
    while ((ctx = walk_next(&walk)) != NULL)
        pipeline->head_tail.slots |= slots_of(ctx);
}

/* ---- finding ---- */

weir_ctx *weir_pipeline_find(weir_pipeline *pipeline, const char *name)
{
    struct walk walk = walk_begin(pipeline);
    weir_ctx *ctx = walk_next(&walk);

    while (ctx != NULL && strcmp(weir_ctx_name(ctx), name) != 0)
        ctx = walk_next(&walk);
    return ctx;
}

weir_ctx *weir_pipeline_find_handler(weir_pipeline *pipeline, const weir_handler *handler)
{
    struct walk walk = walk_begin(pipeline);
    weir_ctx *ctx = walk_next(&walk);

    while (ctx != NULL && ctx->handler != handler)
        ctx = walk_next(&walk);
    return ctx;
}

size_t weir_pipeline_count(const weir_pipeline *pipeline)
{
    struct walk walk = walk_begin(pipeline);
    size_t count = 0;

    while (walk_next(&walk) != NULL)
        count++;
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
    struct walk walk = walk_begin(pipeline);
    const weir_ctx *ctx;

    while ((ctx = walk_next(&walk)) != NULL) {
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
    return (ctx->mask & (WEIR__CTX_ADDED | WEIR__CTX_BORDER)) != 0;
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

/* The first context on the loop that was not added, among those in front of the border. */
static weir_ctx *first_new(weir_pipeline *pipeline)
{
    weir_ctx *ctx = pipeline->head_tail.next;

    while (ctx != &pipeline->head_tail && was_added_once(ctx))
        ctx = ctx->next;
    return ctx != &pipeline->head_tail ? ctx : NULL;
}

static weir__resident *first_new_resident(weir_pipeline *pipeline)
{
    weir__border *border = weir__channel_border(pipeline->head_tail.channel);
    weir__resident *resident;

    for (weir__list *link = border != NULL ? border->residents.next : NULL;
         border != NULL && link != &border->residents; link = link->next) {
        resident = resident_at(link);
        if (weir__ctx_is_remote(resident->ctx) ? !resident->was_added
                                               : !was_added_once(resident->ctx))
            return resident;
    }
    return NULL;
}

/* Each may change the pipeline: then the search begins again. */
void weir__pipeline_call_added(weir_pipeline *pipeline)
{
    weir__resident *resident;
    bool is_over;
    weir_ctx *ctx;

    while ((ctx = first_new(pipeline)) != NULL) {
        is_over = is_removed(ctx) && !waits_for_replacement(ctx);
        call_added_and_replaced(ctx);
        if (is_over) /* removed before it was added */
            call_removed(ctx);
    }
    while ((resident = first_new_resident(pipeline)) != NULL) {
        if (!weir__ctx_is_remote(resident->ctx)) {
            call_added(resident->ctx);
            continue;
        }
        weir__border_announce(resident);
        if (resident->was_removed)
            weir__border_remove(resident);
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
    ctx->mask = (ctx->mask & ~(uint32_t)WEIR__SLOTS) | WEIR__CTX_REMOVED;
    weir__ctx_set_out(ctx);
}

/*
 * The old handler is removed before `added` of the new one runs: `added` may change the pipeline in
 * any way, and finds only the new handler.
 */
static void replace(weir_pipeline *pipeline, weir_ctx *old, weir_ctx *ctx)
{
    put_aside(old, ctx);
    mark_removed(old);
    if (!was_registered(pipeline))
        return;
    call_added(ctx);
    call_removed(old);
}

/* ---- adding behind the border ---- */

static weir__border *border_of(const weir_pipeline *pipeline)
{
    return weir__channel_border(pipeline->head_tail.channel);
}

static bool has_resident_before(const weir__border *border, const weir__list *end)
{
    for (const weir__list *link = border->residents.next; link != end; link = link->next)
        if (!weir__resident_is_removed(resident_at(link)))
            return true;
    return false;
}

/*
 * The place behind the border that the position means; NULL: the handler comes in front. A handler
 * whose place is at the border comes in front, unless it has the group. While the border stands,
 * the last place is behind it.
 */
static weir__list *place_behind(const weir_pipeline *pipeline, const weir__position *position,
                                const weir_ctx *anchor)
{
    weir__border *border = border_of(pipeline);
    weir__resident *resident = weir__border_find(border, anchor);

    if (!weir__border_stands(border))
        return NULL;
    if (anchor == &pipeline->head_tail)
        return position->kind == WEIR__LAST ? &border->residents : NULL;
    if (resident == NULL)
        return NULL;
    if (position->kind == WEIR__AFTER || position->kind == WEIR__REPLACE)
        return resident->link.next;
    return position->group != NULL || has_resident_before(border, &resident->link) ? &resident->link
                                                                                   : NULL;
}

static int insert_behind(weir__border *border, weir_ctx *ctx, weir__list *next)
{
    int err = weir__border_add(border, ctx, next);

    if (err == 0 && was_registered(&ctx->channel->pipeline)) {
        if (weir__ctx_is_remote(ctx))
            weir__border_announce(resident_at(next->previous));
        else
            call_added(ctx);
    }
    return err;
}

/* The first handler from here to the border that runs on the loop; initializers do not count. */
static weir_ctx *first_running(weir_ctx *ctx)
{
    const weir_ctx *head_tail = weir__channel_head_tail(ctx->channel);

    while (ctx != head_tail && !is_border(ctx)) {
        if ((ctx->mask & (WEIR__CTX_ADDED | WEIR__CTX_REMOVED)) == WEIR__CTX_ADDED &&
            ctx->handler != &weir__initializer)
            return ctx;
        ctx = ctx->next;
    }
    return NULL;
}

static bool may_all_cross(weir_ctx *ctx)
{
    while ((ctx = first_running(ctx)) != NULL) {
        if (ctx->handler->stays_on_loop || ctx->handler->blocked != NULL)
            return false;
        ctx = ctx->next;
    }
    return true;
}

/* Finds the border for a group; for the cure any that there is. */
static int get_border(const weir_ctx *ctx, weir_group *group, bool is_cure, weir__border **ret)
{
    weir__border *border = weir__channel_border(ctx->channel);

    if (is_cure && border != NULL && border->state != WEIR__BORDER_NONE) {
        *ret = border;
        return 0;
    }
    return weir__border_get(ctx, group, ret);
}

static void want(weir__border *border, weir_ctx *ctx)
{
    ctx->mask |= WEIR__CTX_CROSSES;
    if (border->state == WEIR__BORDER_NONE)
        border->state = WEIR__BORDER_WANTED;
}

/* The handler has a group, and comes before `next`, which is on the loop. */
static int insert_at_border(weir_ctx *ctx, weir_ctx *next, const weir__position *position)
{
    weir__border *border;
    int err = may_all_cross(next) ? 0 : -ENOTSUP;

    if (err == 0)
        err = get_border(ctx, position->group, position->is_cure, &border);
    if (err < 0)
        return err;
    if (first_running(next) == NULL)
        return weir__border_cross(border, ctx, next);
    link_before(next, ctx);
    want(border, ctx);
    weir__channel_defer(ctx->channel, WEIR__DEFERRED_OFFLOAD);
    return 0;
}

/* ---- adding and removing ---- */

/* `old` is the handler that is replaced; it may be NULL. */
static int insert_remote(weir_pipeline *pipeline, weir_ctx *ctx, const weir__position *position,
                         weir__list *behind, weir_ctx *next, weir_ctx *old)
{
    weir__border *border = border_of(pipeline);
    int err = 0;

    if (behind != NULL && position->group != NULL && !position->is_cure)
        err = weir__border_get(ctx, position->group, &border);
    if (err == 0)
        err = behind != NULL ? insert_behind(border, ctx, behind)
                             : insert_at_border(ctx, next, position);
    if (err < 0)
        return err;
    if (old != NULL)
        weir__pipeline_remove(old);
    recompute_slots(pipeline);
    return 0;
}

static int insert_near(weir_pipeline *pipeline, weir_ctx *ctx, weir_ctx *next, weir_ctx *old)
{
    link_before(next, ctx);
    pipeline->head_tail.slots |= slots_of(ctx);
    if (old != NULL)
        replace(pipeline, old, ctx);
    else if (was_registered(pipeline))
        call_added(ctx);
    return 0;
}

/* The context on the loop before which the handler comes, if it does not come behind the border. */
static weir_ctx *next_of(const weir_pipeline *pipeline, const weir__position *position,
                         weir_ctx *anchor)
{
    if (weir__border_find(border_of(pipeline), anchor) != NULL)
        return &border_of(pipeline)->near.ctx;
    return position->kind == WEIR__BEFORE || position->kind == WEIR__LAST ? anchor : anchor->next;
}

int weir__pipeline_insert(weir_pipeline *pipeline, weir_ctx *ctx, const weir__position *position)
{
    weir_ctx *anchor = &pipeline->head_tail, *next, *old;
    weir__list *behind;
    int err;

    if (weir__channel_phase(pipeline->head_tail.channel) == WEIR__CLOSED)
        return WEIR_ECLOSED;
    if (position->anchor != NULL)
        anchor = weir_pipeline_find(pipeline, position->anchor);
    if (anchor == NULL)
        return -ENOENT;
    old = position->kind == WEIR__REPLACE ? anchor : NULL;
    err = choose_name(pipeline, ctx, position->is_exact, old);
    if (err < 0)
        return err;
    if (position->kind == WEIR__LAST)
        anchor = weir__initializer_anchor(pipeline);
    behind = place_behind(pipeline, position, anchor);
    next = next_of(pipeline, position, anchor);
    if (behind == NULL && (position->group == NULL || (position->is_cure && !may_all_cross(next))))
        return insert_near(pipeline, ctx, next, old);
    return insert_remote(pipeline, ctx, position, behind, next, old);
}

void weir__pipeline_remove(weir_ctx *ctx)
{
    if (weir__ctx_is_remote(ctx)) {
        weir__border_remove(weir__border_find(weir__channel_border(ctx->channel), ctx));
    } else if (!is_removed(ctx)) {
        mark_removed(ctx);
        if (was_registered(&ctx->channel->pipeline))
            call_removed(ctx);
    }
}

void weir_ctx_remove(weir_ctx *ctx)
{
    assert(weir__ctx_in_executor(ctx));
    if (weir__ctx_is_remote(ctx))
        weir__border_ask_removal(ctx);
    else
        weir__pipeline_remove(ctx);
}

/* ---- moving the border ---- */

static weir_ctx *first_waiting(const weir_pipeline *pipeline)
{
    weir_ctx *ctx = pipeline->head_tail.next;

    while (ctx != &pipeline->head_tail && ((ctx->mask & WEIR__CTX_CROSSES) == 0 || is_removed(ctx)))
        ctx = ctx->next;
    return ctx != &pipeline->head_tail ? ctx : NULL;
}

/* A channel without a loop tries again when it is registered, one that is closing need not. */
static bool may_change(const weir_channel *channel)
{
    return weir__channel_in_loop(channel) && weir__channel_phase(channel) == WEIR__OPEN &&
           weir__channel_state_is_at(channel, WEIR__REGISTRATION, WEIR__IS_REGISTERED);
}

/*
 * True if something that runs on the loop may still use one of the contexts:
 *
 *      a reference (weir_ctx_retain)   its owner may be on the way back to the loop
 *      offloaded work                  comes back to the executor that it left
 *      promises of queued writes       their listeners run on the loop
 *      a connection attempt, paused input
 *
 * A count of 1 is the pipeline's own reference, and only this executor can add one to it: "context"
 * in src/base/refcount.h. Acquire: after what the thread did that has released the last other one.
 */
static bool is_in_use(weir_channel *channel, weir_ctx *ctx)
{
    const weir__channel_extra *extra = weir__channel_extra_if_any(channel);

    ctx = first_running(ctx);
    if (ctx != NULL &&
        (weir__channel_is_connecting(channel) || (extra != NULL && extra->input_pauses > 0) ||
         weir__outbound_has_promises(channel)))
        return true;
    for (; ctx != NULL; ctx = first_running(ctx->next))
        if (atomic_load_explicit(&ctx->refs, memory_order_acquire) != 1 ||
            weir__ctx_has_offloads(ctx))
            return true;
    return false;
}

void weir__pipeline_cross(weir_pipeline *pipeline)
{
    weir_channel *channel = pipeline->head_tail.channel;
    weir__border *border = border_of(pipeline);
    weir_ctx *first;

    if (!may_change(channel))
        return;
    weir__pipeline_sweep(pipeline); /* those that were replaced lead to what replaced them */
    first = first_waiting(pipeline);
    if (first == NULL)
        return;
    if (is_in_use(channel, first) || weir__border_cross(border, NULL, first) < 0)
        weir__border_retry(border);
    else
        recompute_slots(pipeline);
}

void weir__pipeline_advance(weir_pipeline *pipeline)
{
    weir_channel *channel = pipeline->head_tail.channel;
    weir__border *border = border_of(pipeline);
    weir_ctx *first = first_waiting(pipeline);

    if (border == NULL)
        return;
    if (first == NULL && border->state == WEIR__BORDER_WANTED)
        border->state = WEIR__BORDER_NONE;
    if (first == NULL || !may_change(channel))
        return;
    if (border->state == WEIR__BORDER_NONE)
        border->state = WEIR__BORDER_WANTED;
    if (border->state == WEIR__BORDER_WANTED)
        weir__pipeline_cross(pipeline);
    else if (border->state == WEIR__BORDER_STANDS && is_in_use(channel, first))
        weir__border_retry(border);
    else if (border->state == WEIR__BORDER_STANDS)
        weir__border_ask_quiet(border);
}

static int check_destination(const weir_channel *channel, const weir_executor *executor)
{
    if (executor == weir__channel_executor(channel))
        return -EALREADY;
    return weir__executor_state(executor) < WEIR_EXECUTOR_SHUTTING_DOWN ? 0 : WEIR_EREJECTED;
}

int weir__pipeline_offload(weir_ctx *ctx, weir_group *group)
{
    weir__border *border;
    int err = may_all_cross(ctx) ? 0 : -ENOTSUP;

    if (err == 0 && weir__group_grows(group))
        err = -ENOTSUP;
    if (err == 0)
        err = get_border(ctx, group, true, &border);
    if (err == 0)
        err = check_destination(ctx->channel, border->executor);
    if (err == 0)
        want(border, ctx);
    return err;
}

/* ---- teardown ---- */

static void remove_all(weir_pipeline *pipeline)
{
    weir_channel *channel = pipeline->head_tail.channel;
    weir__border *border = border_of(pipeline);

    weir__channel_set_state(channel, WEIR__REMOVING_HANDLERS, WEIR__REGISTRATION);
    if (weir__border_stands(border)) {
        for (weir__list *link = border->residents.previous; link != &border->residents;
             link = link->previous)
            weir__pipeline_remove(resident_at(link)->ctx);
        weir__channel_defer(channel, WEIR__DEFERRED_SWEEP);
        return; /* weir__pipeline_border_ended continues */
    }
    for (weir_ctx *ctx = pipeline->head_tail.prev; ctx != &pipeline->head_tail; ctx = ctx->prev)
        weir__pipeline_remove(ctx);
    weir__channel_leave_loop(channel);
}

void weir__pipeline_border_ended(weir_pipeline *pipeline)
{
    recompute_slots(pipeline);
    if (weir__channel_state_is_at(pipeline->head_tail.channel, WEIR__REGISTRATION,
                                  WEIR__REMOVING_HANDLERS))
        remove_all(pipeline);
}

void weir__pipeline_sweep(weir_pipeline *pipeline)
{
    weir_ctx *ctx = pipeline->head_tail.next, *next;

    for (; ctx != &pipeline->head_tail; ctx = next) {
        next = ctx->next;
        if (is_removed(ctx) && !weir__ctx_has_offloads(ctx)) {
            weir__pipeline_unlink(ctx);
            weir__ctx_destroy(ctx);
        }
    }
    weir__border_sweep(border_of(pipeline));
    recompute_slots(pipeline);
}

void weir__pipeline_teardown(weir_pipeline *pipeline)
{
    remove_all(pipeline);
}

void weir__pipeline_destroy(weir_pipeline *pipeline)
{
    weir_ctx *ctx;

    while ((ctx = pipeline->head_tail.next) != &pipeline->head_tail) {
        weir__pipeline_unlink(ctx);
        if (!is_border(ctx))
            weir__ctx_destroy(ctx);
    }
}
