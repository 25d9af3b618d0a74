/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Segments of remote handlers.
 *
 *      thread          inbox                         outbox
 *      the loop        enter: pushes                 run_outbox: passes events on
 *      the executor    run_inbox: calls members      leave: pushes
 *
 * The loop owns the ring of contexts, the executor the list of members. A change to the ring
 * travels to the executor as a node in the inbox, in order with the events:
 *
 *      node        pushed when                     the executor
 *      ADDED       a context was added, or moved   links it, calls `added`; of a moved one it
 *                  from the loop                   starts the timers instead
 *      REMOVED     a context was removed           calls `removed`, unlinks it; the loop frees it
 *       + FLUSHES  the last one was                also closes the inbox
 *      SPLIT       a context of another executor   moves the members behind it to a new segment and
 *                  came between two members        starts its inbox; the loop starts its outbox
 *      ENDED       the channel's last event was    passes it on; the loop removes the handlers
 *
 * Joining. A handler joins the segment next to it as long as nothing was pushed there. Later it
 * forms its own, because events that have left the segment may be on the loop, on their way to the
 * new handler. A handler that is added between two members, or replaces one, always joins.
 *
 * Closing. The executor moves what is left in the inbox to the outbox. From then on the loop pushes
 * to the outbox directly. The last context stays in the ring until the outbox is empty.
 *
 * Splitting. Each mailbox of the new segment is stopped until SPLIT has passed that of the old one,
 * so that nothing overtakes what the moved members got, and passed on, in the old segment. Inbound
 * events in the old outbox in front of SPLIT have left the last of them (`splits`).
 *
 * Moving. The loop makes a context remote while no slot of it is on the stack: everything that it
 * was given before is done, everything later enters the segment behind ADDED. The loop writes the
 * marks of `mask` before it pushes ADDED and never again, so the executor reads them without a
 * lock. To the rest of this file a moved context is one that was just added.
 */
#include "channel/remote_handler.h"

#include <errno.h>
#include <string.h>

#include <weir/error.h>
#include <weir/handler.h>

#include "base/memory.h"
#include "channel/channel.h"
#include "channel/demand.h"
#include "channel/pipeline.h"
#include "channel/pipeline_change.h"
#include "executor/group.h"

#define BATCH 64 /* nodes that a task takes before others get their turn */

/* Slots of nodes that are not events. */
enum {
    ADDED = 1 << 19,
    REMOVED = 1 << 20,
    SPLIT = 1 << 21,
};

/* The executor of a group that the handlers of a channel run on. */
struct weir__pin {
    struct weir__pin *next;
    weir_group *group; /* a reference: it keeps the executors in memory */
    weir_executor *executor;
};

/* The remote part of a moved context. Stays in the list of its channel, to be used again. */
struct weir__moved {
    weir__remote remote;
    struct weir__moved *next;
    _Atomic(weir_ctx *) ctx; /* NULL: not in use */
};

/* ---- executors ---- */

static int pin_group(weir_channel *channel, weir_group *group, struct weir__pin **ret_pin)
{
    weir__channel_extra *extra = weir__channel_extra_get(channel);
    struct weir__pin *first, *pin;

    if (extra == NULL)
        return -ENOMEM;
    first = pin = atomic_load_explicit(&extra->pins, memory_order_acquire);
    while (pin != NULL && pin->group != group)
        pin = pin->next;
    *ret_pin = pin;
    if (pin != NULL)
        return 0;
    *ret_pin = pin = weir__alloc(sizeof(*pin));
    if (pin == NULL)
        return -ENOMEM;
    *pin = (struct weir__pin){first, weir_group_retain(group), weir_group_next(group)};
    /* If two threads pin a group at the same time it has two pins, and the later one counts. */
    while (!atomic_compare_exchange_weak_explicit(&extra->pins, &pin->next, pin,
                                                  memory_order_acq_rel, memory_order_relaxed))
        ;
    return 0;
}

void weir__remote_forget(weir__channel_extra *extra)
{
    struct weir__pin *pin = atomic_load_explicit(&extra->pins, memory_order_acquire), *next;
    struct weir__moved *moved = atomic_load_explicit(&extra->moved, memory_order_acquire),
                       *following;

    for (; moved != NULL; moved = following) {
        following = moved->next;
        weir__free(moved);
    }
    for (; pin != NULL; pin = next) {
        next = pin->next;
        weir_group_release(pin->group);
        weir__free(pin);
    }
}

/* ---- memory ---- */

int weir__remote_init(weir__remote *remote, weir_ctx *ctx, weir_group *group)
{
    weir_channel_options options;
    struct weir__pin *pin;
    int err = weir__group_grows(group) ? -ENOTSUP : pin_group(ctx->channel, group, &pin);

    if (err < 0)
        return err;
    weir__config_read(weir__channel_config(ctx->channel), &options);
    remote->ctx = ctx;
    remote->executor = options.executor_per_handler ? weir_group_next(group) : pin->executor;
    weir__executor_weak_retain(remote->executor);
    return 0;
}

void weir__remote_deinit(weir_ctx *ctx)
{
    weir__remote *remote = weir__remote_of(ctx);

    weir__executor_weak_release(remote->executor);
    /* Relaxed: other executors only compare it with contexts of their own. */
    if ((ctx->mask & WEIR__CTX_MOVED) != 0)
        atomic_store_explicit(&WEIR_CONTAINER_OF(remote, struct weir__moved, remote)->ctx, NULL,
                              memory_order_relaxed);
}

/* Acquire: the list may be newer than the context. Few contexts of a channel were moved. */
weir__remote *weir__remote_of_moved(const weir_ctx *ctx)
{
    weir__channel_extra *extra = weir__channel_extra_if_any(ctx->channel);
    struct weir__moved *moved = atomic_load_explicit(&extra->moved, memory_order_acquire);

    while (atomic_load_explicit(&moved->ctx, memory_order_relaxed) != ctx)
        moved = moved->next;
    return &moved->remote;
}

/* On the loop: returns one that is not in use. */
static struct weir__moved *get_moved(weir__channel_extra *extra)
{
    struct weir__moved *first = atomic_load_explicit(&extra->moved, memory_order_relaxed), *moved;

    for (moved = first; moved != NULL; moved = moved->next)
        if (atomic_load_explicit(&moved->ctx, memory_order_relaxed) == NULL) {
            memset(&moved->remote, 0, sizeof(moved->remote));
            return moved;
        }
    moved = weir__zalloc(sizeof(*moved));
    if (moved == NULL)
        return NULL;
    moved->next = first;
    atomic_store_explicit(&extra->moved, moved, memory_order_release);
    return moved;
}

static weir_task_fn run_inbox, run_outbox;

static weir__segment *segment_create(weir_channel *channel, weir_executor *executor)
{
    weir__segment *segment = weir__zalloc(sizeof(*segment));

    if (segment == NULL)
        return NULL;
    segment->channel = channel;
    segment->executor = executor;
    weir__inbox_init(&segment->inbox, channel, executor, run_inbox, segment);
    weir__inbox_init(&segment->outbox, channel, NULL, run_outbox, segment);
    weir__list_init(&segment->members);
    weir__list_init(&segment->splits);
    return segment;
}

static void segment_destroy(weir__segment *segment)
{
    weir__inbox_deinit(&segment->inbox);
    weir__inbox_deinit(&segment->outbox);
    weir__free(segment);
}

/* ---- the ring, on the loop ---- */

static weir__segment *segment_of(const weir_ctx *ctx)
{
    return weir__ctx_is_remote(ctx) ? weir__remote_of(ctx)->segment : NULL;
}

/* True if ADDED was pushed and REMOVED was not. */
static bool is_member(const weir_ctx *ctx)
{
    return weir__remote_of(ctx)->added.slot != 0 && !weir__remote_of(ctx)->is_leaving;
}

/* Pushes ADDED for new contexts, in the order of the ring. Called before an event is pushed. */
static void announce(weir__segment *segment)
{
    weir__remote *remote, *after = NULL;

    if (!segment->has_new)
        return;
    segment->has_new = false;
    segment->is_sealed = true;
    for (weir_ctx *ctx = segment->first; ctx != segment->last->next; ctx = ctx->next) {
        remote = weir__remote_of(ctx);
        if (remote->was_added && remote->added.slot == 0) {
            remote->after = after;
            weir__inbox_push(&segment->inbox, &remote->added, ADDED);
        }
        if (is_member(ctx))
            after = remote;
    }
}

/* Splits off the contexts from `ctx` on. No node is needed if none of them is a member yet. */
static int split(weir__segment *segment, weir_ctx *prev, weir_ctx *ctx)
{
    weir__segment *part = segment_create(segment->channel, segment->executor);

    if (part == NULL)
        return -ENOMEM;
    part->first = ctx;
    part->last = segment->last;
    segment->last = prev;
    part->has_new = segment->has_new;
    for (; ctx != part->last->next; ctx = ctx->next) {
        if (part->split_at == NULL && is_member(ctx))
            part->split_at = weir__remote_of(ctx);
        part->open += !weir__remote_of(ctx)->is_leaving;
        weir__remote_of(ctx)->segment = part;
    }
    segment->open -= part->open;
    assert(segment->open > 0 && part->open > 0);
    if (part->split_at != NULL) {
        part->is_sealed = true;
        weir__inbox_stop(&part->inbox);
        weir__inbox_stop(&part->outbox);
        weir__list_append(&segment->splits, &part->split_link);
        weir__inbox_push(&segment->inbox, &part->split, SPLIT);
    }
    return 0;
}

weir_ctx *weir__remote_position(weir_ctx *next)
{
    weir__segment *segment = segment_of(next);
    weir_ctx *ctx;

    if (segment == NULL)
        return next;
    for (ctx = segment->first; ctx != next; ctx = ctx->next)
        if (!weir__remote_of(ctx)->is_leaving)
            return next;
    return segment->first;
}

static bool may_join(const weir__segment *segment, const weir__remote *remote, bool is_inside)
{
    return segment != NULL && segment->executor == remote->executor && segment->open > 0 &&
           (is_inside || !segment->is_sealed);
}

int weir__remote_place(weir_ctx *ctx, weir_ctx *prev, weir_ctx *next, bool replaces)
{
    weir__segment *before = segment_of(prev), *behind = segment_of(next), *segment;
    weir__remote *remote = weir__ctx_is_remote(ctx) ? weir__remote_of(ctx) : NULL;
    bool is_between = before != NULL && before == behind;

    if (remote == NULL)
        return is_between ? split(before, prev, next) : 0;
    if (may_join(before, remote, is_between || replaces)) {
        segment = before;
        if (segment->last == prev)
            segment->last = ctx;
    } else if (may_join(behind, remote, false)) {
        segment = behind;
        segment->first = ctx;
    } else {
        segment = segment_create(ctx->channel, remote->executor);
        if (segment == NULL)
            return -ENOMEM;
        if (is_between && split(before, prev, next) < 0) {
            segment_destroy(segment);
            return -ENOMEM;
        }
        segment->first = segment->last = ctx;
    }
    remote->segment = segment;
    segment->open++;
    return 0;
}

void weir__remote_unplace(weir_ctx *ctx, weir_ctx *prev)
{
    weir__segment *segment = weir__remote_of(ctx)->segment;

    if (segment->first == segment->last)
        segment_destroy(segment);
    else if (segment->first == ctx)
        segment->first = ctx->next;
    else if (segment->last == ctx)
        segment->last = prev;
}

void weir__remote_add(weir_ctx *ctx)
{
    weir__remote *remote = weir__remote_of(ctx);

    remote->was_added = true;
    remote->segment->has_new = true;
    if (remote->was_removed)
        weir__remote_remove(ctx);
    else
        weir__channel_defer(ctx->channel, WEIR__DEFERRED_SWEEP);
}

static int check_destination(const weir_ctx *ctx, const weir_executor *executor)
{
    if (executor == weir__channel_executor(ctx->channel))
        return -EALREADY;
    return weir__executor_state(executor) < WEIR_EXECUTOR_SHUTTING_DOWN ? 0 : WEIR_EREJECTED;
}

/* `mask` and the list lead from the context to the remote part: weir__remote_place uses both. */
int weir__remote_move(weir_ctx *ctx, weir_ctx *prev, weir_group *group)
{
    weir__channel_extra *extra = weir__channel_extra_get(ctx->channel);
    struct weir__moved *moved = extra != NULL ? get_moved(extra) : NULL;
    weir__remote *remote;
    uint32_t mask = ctx->mask;
    int err;

    if (moved == NULL)
        return -ENOMEM;
    remote = &moved->remote;
    err = weir__remote_init(remote, ctx, group);
    if (err < 0)
        return err;
    atomic_store_explicit(&moved->ctx, ctx, memory_order_relaxed);
    ctx->mask = (mask & ~(uint32_t)WEIR__SLOTS) | WEIR__CTX_REMOTE | WEIR__CTX_MOVED;
    err = check_destination(ctx, remote->executor);
    if (err == 0)
        err = weir__remote_place(ctx, prev, ctx->next, false);
    if (err < 0) {
        weir__remote_deinit(ctx);
        ctx->mask = mask;
        return err;
    }
    remote->timers = weir__ctx_take_timers(ctx, remote->executor);
    remote->held = weir__ctx_take_pending_bytes(ctx);
    weir__remote_add(ctx);
    return 0;
}

void weir__remote_remove(weir_ctx *ctx)
{
    weir__remote *remote = weir__remote_of(ctx);
    weir__segment *segment = remote->segment;

    if (!remote->was_added)
        return;
    announce(segment);
    remote->is_leaving = true;
    weir__inbox_push(&segment->inbox, &remote->removed,
                     --segment->open > 0 ? REMOVED : REMOVED | WEIR__MAIL_FLUSHES);
}

bool weir__remote_sweep(weir_ctx *ctx)
{
    weir__remote *remote = weir__remote_of(ctx);
    weir__segment *segment = remote->segment;

    announce(segment);
    /* Relaxed: the deferred task comes after the store. */
    if (atomic_load_explicit(&remote->wants_removal, memory_order_relaxed))
        weir__pipeline_remove(ctx);
    /* Acquire: after everything that the executor did with the context and the segment. */
    if (!atomic_load_explicit(&remote->is_gone, memory_order_acquire))
        return false;
    /* The last one waits for the outbox: run_outbox asks for another sweep. */
    return segment->first != segment->last || !weir__inbox_is_posted(&segment->outbox);
}

/* ---- to the handlers ---- */

void weir__remote_enter(weir_ctx *ctx, const weir__event *event)
{
    weir__segment *segment = weir__remote_of(ctx)->segment;

    announce(segment);
    if (event->slot != WEIR__REQUEST_READ || !weir__inbox_answers(&segment->outbox, event))
        weir__inbox_push_event(&segment->inbox, event);
}

void weir__remote_end(weir_ctx *ctx)
{
    weir__segment *segment = weir__remote_of(ctx)->segment;

    announce(segment);
    weir__inbox_push(&segment->inbox, NULL, WEIR__MAIL_ENDED);
}

/* Calls the next member that has the slot; behind the last one the event leaves the segment. */
static void pass_member(weir__segment *segment, const weir__list *link, const weir__event *event)
{
    bool is_inbound = event->slot < WEIR__BIND;
    weir__remote *remote;

    for (;;) {
        link = is_inbound ? link->next : link->previous;
        if (link == &segment->members)
            break;
        remote = WEIR_CONTAINER_OF((weir__list *)(uintptr_t)link, weir__remote, link);
        if ((remote->slots & event->slot) != 0) {
            weir__invoke(remote->ctx, event);
            return;
        }
    }
    if (event->slot != WEIR__REQUEST_READ || !weir__inbox_answers(&segment->inbox, event))
        weir__inbox_push_event(&segment->outbox, event);
}

static void add_member(weir__segment *segment, weir__remote *remote)
{
    weir_ctx *ctx = remote->ctx;
    weir__list *before = remote->after != NULL ? &remote->after->link : &segment->members;

    weir__list_append(before->next, &remote->link);
    remote->home = segment;
    remote->slots = weir__handler_mask(ctx->handler);
    if ((ctx->mask & WEIR__CTX_MOVED) != 0) {
        weir__ctx_resume_timers(remote->timers);
        return;
    }
    if (ctx->handler->buffers_reads)
        weir__demand_begin(ctx);
    if (ctx->handler->added != NULL)
        ctx->handler->added(ctx);
}

void weir__remote_let_free(weir_ctx *ctx)
{
    weir_channel *channel = ctx->channel;

    /* Release: the loop frees the context after everything that was done with it here. */
    atomic_store_explicit(&weir__remote_of(ctx)->is_gone, true, memory_order_release);
    weir__channel_defer(channel, WEIR__DEFERRED_SWEEP);
}

static void remove_member(weir__segment *segment, weir__remote *remote, bool is_last)
{
    weir_ctx *ctx = remote->ctx;

    weir__ctx_stop_timers(ctx);
    weir__ctx_set_out(ctx);
    remote->slots = 0;
    if (ctx->handler->removed != NULL)
        ctx->handler->removed(ctx);
    weir__ctx_clear_pending_bytes(ctx);
    weir__list_remove(&remote->link);
    remote->home = NULL;
    if (is_last)
        weir__inbox_close(&segment->inbox, &segment->outbox);
    if (!weir__ctx_has_offloads(ctx))
        weir__remote_let_free(ctx);
}

static void move_members(weir__segment *segment, weir__segment *part)
{
    weir__list *link = &part->split_at->link, *next;

    for (; link != &segment->members; link = next) {
        next = link->next;
        weir__list_remove(link);
        weir__list_append(&part->members, link);
        WEIR_CONTAINER_OF(link, weir__remote, link)->home = part;
    }
    weir__inbox_push(&segment->outbox, &part->split, SPLIT | WEIR__MAIL_FLUSHES);
    weir__inbox_start(&part->inbox);
}

/* Returns false if the inbox is closed: then the loop may have freed the segment. */
static bool deliver(weir__segment *segment, weir__inmail *node, uint32_t slot)
{
    weir__event event;

    if (slot == ADDED) {
        add_member(segment, WEIR_CONTAINER_OF(node, weir__remote, added));
    } else if ((slot & REMOVED) != 0) {
        remove_member(segment, WEIR_CONTAINER_OF(node, weir__remote, removed), slot != REMOVED);
    } else if (slot == SPLIT) {
        move_members(segment, WEIR_CONTAINER_OF(node, weir__segment, split));
    } else if (slot == WEIR__MAIL_ENDED) {
        weir__inbox_push(&segment->outbox, NULL, WEIR__MAIL_ENDED);
    } else {
        event = weir__inmail_event(node, slot);
        if (slot == WEIR__MAIL_DISCARDED)
            weir_msg_release(event.msg);
        else
            pass_member(segment, &segment->members, &event);
        if (node != NULL) {
            weir__inmail_uncount(node, segment->channel);
            weir__inmail_free(node);
        }
    }
    return slot != (REMOVED | WEIR__MAIL_FLUSHES);
}

static void run_inbox(void *arg, int status)
{
    weir__segment *segment = arg;
    weir_channel *channel = segment->channel;
    weir__inmail *node;
    uint32_t slot;

    (void)status; /* cancelled tasks run, too: no event may be lost */
    for (int i = 0; i < BATCH; i++) {
        slot = weir__inbox_take(&segment->inbox, &node);
        if (slot == 0 || !deliver(segment, node, slot)) {
            weir_channel_release(channel);
            return;
        }
    }
    weir__inbox_repost(&segment->inbox);
}

/* ---- from the handlers ---- */

/* What a handler passes on after `removed` has returned is released. */
void weir__remote_leave(weir_ctx *ctx, const weir__event *event)
{
    weir__remote *remote = weir__remote_of(ctx);

    if (remote->home != NULL) {
        pass_member(remote->home, &remote->link, event);
        return;
    }
    weir_msg_release(event->msg);
    if (event->done != NULL)
        weir__channel_fail_posted(ctx->channel, event->done, WEIR_ECLOSED);
}

void weir__remote_ask_removal(weir_ctx *ctx)
{
    /* Relaxed: the deferred task comes after it. */
    atomic_store_explicit(&weir__remote_of(ctx)->wants_removal, true, memory_order_relaxed);
    weir__channel_defer(ctx->channel, WEIR__DEFERRED_SWEEP);
}

/* Returns the context that the next event from the outbox has left. */
static weir_ctx *exit_of(weir__segment *segment, bool is_inbound)
{
    if (!is_inbound)
        return segment->first;
    while (!weir__list_is_empty(&segment->splits))
        segment = WEIR_CONTAINER_OF(segment->splits.next, weir__segment, split_link);
    return segment->last;
}

static void pass_on(weir__segment *segment, weir__inmail *node, uint32_t slot)
{
    weir__segment *part;
    weir__event event;

    if ((slot & SPLIT) != 0) {
        part = WEIR_CONTAINER_OF(node, weir__segment, split);
        weir__list_remove(&part->split_link);
        weir__inbox_start(&part->outbox);
    } else if (slot == WEIR__MAIL_ENDED) {
        weir__pipeline_teardown_after(exit_of(segment, true));
    } else {
        event = weir__inmail_event(node, slot);
        if (node != NULL)
            weir__inmail_uncount(node, segment->channel);
        if (slot == WEIR__CLOSE && !weir__channel_is(segment->channel, WEIR__IS_REGISTERED))
            segment->channel->flags |= WEIR__CLOSES_BETWEEN;
        if (slot == WEIR__MAIL_DISCARDED)
            weir_msg_release(event.msg);
        else
            weir__pass(exit_of(segment, event.slot < WEIR__BIND), &event);
        if (node != NULL)
            weir__inmail_free(node);
    }
}

static bool has_moved(const weir_channel *channel)
{
    return !weir__channel_in_loop(channel) &&
           weir__executor_state(weir__channel_executor(channel)) < WEIR_EXECUTOR_SHUTDOWN;
}

static void run_outbox(void *arg, int status)
{
    weir__segment *segment = arg;
    weir_channel *channel = segment->channel;
    weir__subject subject;
    weir__inmail *node;
    uint32_t slot;

    (void)status;
    for (int i = 0; i < BATCH && !has_moved(channel); i++) {
        slot = weir__inbox_take(&segment->outbox, &node);
        if (slot == 0) {
            if (segment->open == 0)
                weir__channel_defer(channel, WEIR__DEFERRED_SWEEP);
            weir_channel_release(channel);
            return;
        }
        weir__channel_enter(channel, &subject);
        pass_on(segment, node, slot);
        weir__channel_leave(&subject);
    }
    weir__inbox_repost(&segment->outbox);
}
