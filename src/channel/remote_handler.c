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
 *      ADDED       a context was added             links it, calls `added`
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
 * Memory. Events without contents travel in nodes of the mailbox, so pushing them cannot fail. One
 * that is pushed again while it is queued moves to the end: the last `read_complete` follows the
 * last message. A message needs memory for its node; without, the channel is aborted.
 *
 * Demand. While auto-read is off a message passes a mailbox only if one was requested through it,
 * as in handlers that keep messages (demand.h). Read_complete and the end of the input stay behind
 * the messages, other events overtake them. Messages that wait when the channel becomes inactive
 * are released.
 */
#include "channel/remote_handler.h"

#include <errno.h>
#include <string.h>

#include <weir/error.h>
#include <weir/handler.h>

#include "base/memory.h"
#include "channel/channel.h"
#include "channel/demand.h"
#include "channel/node_pool.h"
#include "channel/pipeline.h"
#include "channel/pipeline_change.h"
#include "executor/group.h"

#define BATCH 64 /* nodes that a task takes before others get their turn */

/* What a node may be besides an event. */
enum {
    ADDED = 1 << 19,
    REMOVED = 1 << 20,
    SPLIT = 1 << 21,
    ENDED = 1 << 22,
    DISCARDED = 1 << 23, /* a message of an inactive channel that was not requested */
    AUTO = 1 << 24,      /* with REQUEST_READ: made by auto-read */
    FLUSHES = 1 << 25,   /* the messages in front of the node pass, requested or not */
};

/* Events without contents. The first four are two pairs of a beginning and its end. */
enum { PAIRED = 4 };

static const uint32_t fixed_slots[WEIR__REMOTE_FIXED] = {
    WEIR__REGISTERED,  WEIR__UNREGISTERED, WEIR__ACTIVE,       WEIR__INACTIVE, WEIR__READ_COMPLETE,
    WEIR__WRITABILITY, WEIR__DRAINING,     WEIR__REQUEST_READ, WEIR__FLUSH,    ENDED,
};

#define FIXED_SLOTS                                                                                \
    (WEIR__REGISTERED | WEIR__UNREGISTERED | WEIR__ACTIVE | WEIR__INACTIVE | WEIR__READ_COMPLETE | \
     WEIR__WRITABILITY | WEIR__DRAINING | WEIR__REQUEST_READ | WEIR__FLUSH)

/* An event with contents. */
struct event_node {
    weir__remote_node node;
    int err;
    weir_msg *msg;
    weir_promise *done;
    int64_t bytes;
    void *extra; /* the detail of an error, or addresses */
};

_Static_assert(sizeof(struct event_node) <= WEIR__NODE_SIZE, "an event_node is a node");

/* Which executor of a group the handlers of a channel run on. */
struct weir__pin {
    struct weir__pin *next;
    weir_group *group; /* a reference: it keeps the executors */
    weir_executor *executor;
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
    /* Two threads may pin a group at the same time: then it has two pins, and the later one counts.
     */
    while (!atomic_compare_exchange_weak_explicit(&extra->pins, &pin->next, pin,
                                                  memory_order_acq_rel, memory_order_relaxed))
        ;
    return 0;
}

void weir__remote_forget(weir__channel_extra *extra)
{
    struct weir__pin *pin = atomic_load_explicit(&extra->pins, memory_order_acquire), *next;

    for (; pin != NULL; pin = next) {
        next = pin->next;
        weir_group_release(pin->group);
        weir__free(pin);
    }
}

/* ---- memory ---- */

int weir__remote_init(weir_ctx *ctx, weir_group *group)
{
    weir__remote *remote = weir__remote_of(ctx);
    weir_channel_options options;
    struct weir__pin *pin;
    int err = weir__group_grows(group) ? -ENOTSUP : pin_group(ctx->channel, group, &pin);

    if (err < 0)
        return err;
    weir__config_read(weir__channel_config(ctx->channel), &options);
    remote->executor = options.executor_per_handler ? weir_group_next(group) : pin->executor;
    weir__executor_weak_retain(remote->executor);
    return 0;
}

void weir__remote_deinit(weir_ctx *ctx)
{
    weir__executor_weak_release(weir__remote_of(ctx)->executor);
}

static weir_task_fn run_inbox, run_outbox;

static void mailbox_init(weir__mailbox *box, weir_task_fn *run, weir__segment *segment)
{
    weir__mutex_init(&box->lock);
    weir__list_init(&box->nodes);
    weir_task_init(&box->task, run, segment);
    box->is_asked = true; /* a message may have been requested before */
    for (int i = 0; i < WEIR__REMOTE_FIXED; i++) {
        weir__list_init(&box->fixed[i].link);
        box->fixed[i].is_fixed = true;
    }
}

static weir__segment *segment_create(weir_channel *channel, weir_executor *executor)
{
    weir__segment *segment = weir__zalloc(sizeof(*segment));

    if (segment == NULL)
        return NULL;
    segment->channel = channel;
    segment->executor = executor;
    mailbox_init(&segment->inbox, run_inbox, segment);
    mailbox_init(&segment->outbox, run_outbox, segment);
    weir__list_init(&segment->members);
    weir__list_init(&segment->splits);
    return segment;
}

static void segment_destroy(weir__segment *segment)
{
    assert(weir__list_is_empty(&segment->inbox.nodes));
    assert(weir__list_is_empty(&segment->outbox.nodes));
    weir__mutex_deinit(&segment->inbox.lock);
    weir__mutex_deinit(&segment->outbox.lock);
    weir__free(segment);
}

/* ---- bytes in mailboxes: of reads against the marks that pause reading, of writes as queued ----
 */

static int64_t low_mark(const weir_channel *channel)
{
    return atomic_load_explicit(&weir__channel_config(channel)->low_mark, memory_order_relaxed);
}

bool weir__remote_may_read(const weir_channel *channel)
{
    const weir__channel_extra *extra = weir__channel_extra_if_any(channel);

    return atomic_load_explicit(&extra->under_way, memory_order_relaxed) < low_mark(channel);
}

/* Counts before anyone else can uncount. */
static int count(weir_channel *channel, const struct event_node *node)
{
    weir__channel_extra *extra = weir__channel_extra_if_any(channel);
    int64_t bytes = node->bytes, before;

    if (node->node.slot == WEIR__WRITE)
        return weir__outbound_reserve(channel, bytes);
    if (node->node.slot != WEIR__READ)
        return 0;
    before = atomic_fetch_add_explicit(&extra->under_way, bytes, memory_order_relaxed);
    if (weir__channel_in_loop(channel) &&
        before + bytes > weir__channel_options(channel)->high_mark) {
        channel->flags |= WEIR__INPUT_THROTTLED;
        weir__channel_update_reading(channel);
    }
    return 0;
}

/* The thread that crosses the low mark wakes the loop, which may have paused reading. */
static void uncount(weir_channel *channel, const struct event_node *node)
{
    weir__channel_extra *extra = weir__channel_extra_if_any(channel);
    int64_t bytes = node->bytes, before, low = low_mark(channel);

    if (node->node.slot == WEIR__WRITE)
        weir__outbound_cancel_reserve(channel, bytes);
    if (node->node.slot != WEIR__READ)
        return;
    before = atomic_fetch_sub_explicit(&extra->under_way, bytes, memory_order_relaxed);
    if (before >= low && before - bytes < low)
        weir__channel_defer(channel, WEIR__DEFERRED_READING);
}

/* ---- events with contents ---- */

/* Copies what is only lent: the detail of an error, the addresses of a bind or connect. */
static int copy_extra(const weir__event *event, void **ret_extra)
{
    weir_address *addresses;

    *ret_extra = NULL;
    if (event->detail != NULL) {
        *ret_extra = weir__strdup(event->detail);
    } else if ((event->slot & (WEIR__BIND | WEIR__CONNECT)) != 0) {
        *ret_extra = addresses = weir__zalloc(2 * sizeof(*addresses));
        if (addresses != NULL && event->remote != NULL)
            addresses[0] = *event->remote;
        if (addresses != NULL && event->local != NULL)
            addresses[1] = *event->local;
    } else {
        return 0;
    }
    return *ret_extra != NULL ? 0 : -ENOMEM;
}

static int event_node_create(weir_channel *channel, const weir__event *event,
                             struct event_node **ret_node)
{
    struct event_node *node = weir__node_alloc();
    int err;

    if (node == NULL)
        return -ENOMEM;
    *node = (struct event_node){.node.slot = event->slot, .err = event->err, .msg = event->msg};
    node->bytes = event->msg != NULL ? weir__outbound_cost(event->msg) : 0;
    err = copy_extra(event, &node->extra);
    if (err == 0)
        err = count(channel, node);
    if (err < 0) {
        weir__free(node->extra);
        weir__node_free(node);
        return err;
    }
    node->done = event->done != NULL ? weir_promise_retain(event->done) : NULL;
    *ret_node = node;
    return 0;
}

static struct event_node *contents_of(weir__remote_node *node)
{
    return WEIR_CONTAINER_OF(node, struct event_node, node);
}

/* The event of a node that was taken; `node` is NULL if it has no contents. */
static weir__event event_of(weir__remote_node *node, uint32_t slot)
{
    weir__event event = {.slot = slot & ~(uint32_t)AUTO, .is_auto = (slot & AUTO) != 0};
    const struct event_node *contents = contents_of(node);
    const weir_address *addresses;

    if (node == NULL)
        return event;
    event.err = contents->err;
    event.msg = contents->msg;
    event.done = contents->done;
    if (slot == WEIR__ERROR) {
        event.detail = contents->extra;
    } else if (contents->extra != NULL) {
        addresses = contents->extra;
        event.remote = &addresses[0];
        event.local = addresses[1].length > 0 ? &addresses[1] : NULL;
    }
    return event;
}

static void event_node_destroy(struct event_node *node)
{
    weir_promise_release(node->done);
    weir__free(node->extra);
    weir__node_free(node);
}

/* ---- mailboxes ---- */

static bool is_queued(const weir__remote_node *node)
{
    return !weir__list_is_empty(&node->link);
}

/* Both are queued. */
static bool is_behind(const weir__remote_node *node, const weir__remote_node *other,
                      const weir__mailbox *box)
{
    const weir__list *link = other->link.next;

    while (link != &box->nodes && link != &node->link)
        link = link->next;
    return link == &node->link;
}

/*
 * A node that is queued already moves to the end. Of a beginning and its end there would be three
 * then: begin, end, begin; or end, begin, end. An end and the beginning after it cancel each other:
 * what is left is the first beginning, with all that came after it, or the last end.
 */
static void append_fixed_locked(weir__mailbox *box, uint32_t slot)
{
    weir__remote_node *node, *opposite;
    unsigned i = 0;

    while ((fixed_slots[i] & slot) == 0)
        i++;
    node = &box->fixed[i];
    opposite = &box->fixed[i ^ 1];
    if (i < PAIRED && is_queued(node) && is_queued(opposite) && is_behind(opposite, node, box)) {
        weir__list_remove(&opposite->link);
        if (i % 2 == 0)
            return;
    }
    /* A request of auto-read does not take the place of one that is not. */
    if (!is_queued(node) || node->slot != WEIR__REQUEST_READ)
        node->slot = slot;
    weir__list_remove(&node->link);
    weir__list_append(&box->nodes, &node->link);
}

/* `node` is NULL for an event without contents. */
static void append_locked(weir__mailbox *box, weir__remote_node *node, uint32_t slot)
{
    if ((slot & (WEIR__ACTIVE | WEIR__INACTIVE)) != 0)
        box->has_ended = slot == WEIR__INACTIVE;
    if (node == NULL) {
        append_fixed_locked(box, slot);
        return;
    }
    weir__list_append(&box->nodes, &node->link);
    if ((slot & FLUSHES) != 0)
        box->flushing++;
}

/* An executor that has ended refuses the task: then the global one runs it. */
static void post(weir_executor *executor, weir_task *task)
{
    if (weir__executor_post(executor, task, WEIR__NOW) < 0)
        (void)weir__executor_post(weir_executor_global(), task, WEIR__NOW);
}

/* True if the caller has to wake the mailbox when it has unlocked it. */
static bool claim_locked(weir__mailbox *box)
{
    bool was_posted = box->is_posted;

    box->is_posted = true;
    return !was_posted;
}

/* The task holds a reference to the channel. */
static void wake(weir__segment *segment, weir__mailbox *box)
{
    weir_channel_retain(segment->channel);
    post(box == &segment->inbox ? segment->executor : weir__channel_executor(segment->channel),
         &box->task);
}

static void push(weir__segment *segment, weir__mailbox *box, weir__remote_node *node, uint32_t slot)
{
    bool is_claimed;

    weir__mutex_lock(&box->lock);
    if (box->is_closed) {
        weir__mutex_unlock(&box->lock);
        push(segment, &segment->outbox, node, slot);
        return;
    }
    append_locked(box, node, slot);
    is_claimed = claim_locked(box);
    weir__mutex_unlock(&box->lock);
    if (is_claimed)
        wake(segment, box);
}

/* An event that cannot be pushed is lost. If that is for want of memory the channel is aborted. */
static void push_event(weir__segment *segment, weir__mailbox *box, const weir__event *event)
{
    struct event_node *node;
    int err;

    if ((event->slot & FIXED_SLOTS) != 0) {
        push(segment, box, NULL, event->slot | (event->is_auto ? AUTO : 0u));
        return;
    }
    err = event_node_create(segment->channel, event, &node);
    if (err == 0) {
        push(segment, box, &node->node, event->slot);
        return;
    }
    weir_msg_release(event->msg);
    weir__channel_fail_posted(segment->channel, event->done, err);
    if (err == -ENOMEM)
        weir__channel_defer(segment->channel, WEIR__DEFERRED_ABORT);
}

static weir__remote_node *first_message_locked(weir__mailbox *box)
{
    weir__remote_node *node;

    for (weir__list *link = box->nodes.next; link != &box->nodes; link = link->next) {
        node = WEIR_CONTAINER_OF(link, weir__remote_node, link);
        if (node->slot == WEIR__READ)
            return node;
    }
    return NULL;
}

/* True if the node may not overtake a message. */
static bool stays_behind(weir__remote_node *node)
{
    const weir_msg *msg = contents_of(node)->msg; /* if it is an event */

    if (node->slot != WEIR__EVENT)
        return node->slot == WEIR__READ || node->slot == WEIR__READ_COMPLETE;
    return msg == weir_event_input_closed() || msg == weir_event_input_drained();
}

/* The first node that need not wait: any in front of `waiting`, and some behind it. */
static weir__remote_node *first_free_locked(weir__mailbox *box, const weir__remote_node *waiting)
{
    bool is_waiting = false;
    weir__remote_node *node;

    for (weir__list *link = box->nodes.next; link != &box->nodes; link = link->next) {
        node = WEIR_CONTAINER_OF(link, weir__remote_node, link);
        is_waiting = is_waiting || node == waiting;
        if (!is_waiting || !stays_behind(node))
            return node;
    }
    return NULL;
}

/*
 * Removes the next node that need not wait and returns its slot, which may be overwritten as soon
 * as the lock is free. *ret_node is NULL for an event without contents. Returns 0 if there is none:
 * then the mailbox is not posted any more.
 */
static uint32_t take(weir__mailbox *box, const weir_channel *channel, weir__remote_node **ret_node)
{
    weir__remote_node *waiting = NULL, *node;
    uint32_t slot = 0;

    *ret_node = NULL;
    weir__mutex_lock(&box->lock);
    if (!box->is_asked && box->flushing == 0 && !weir_channel_auto_read(channel))
        waiting = first_message_locked(box);
    node = waiting != NULL && box->has_ended ? waiting : first_free_locked(box, waiting);
    if (node != NULL) {
        weir__list_remove(&node->link);
        slot = node == waiting ? DISCARDED : node->slot;
        if (!node->is_fixed)
            *ret_node = node;
    } else if (waiting != NULL && box->has_passed) {
        slot = WEIR__READ_COMPLETE; /* of the messages in front of the one that waits */
    }
    if (slot == WEIR__READ) {
        box->is_asked = false;
        box->has_passed = true;
    } else if (slot == WEIR__READ_COMPLETE) {
        box->has_passed = false;
    } else if (slot == 0) {
        box->is_posted = false;
    } else if ((slot & FLUSHES) != 0) {
        box->flushing--;
    }
    weir__mutex_unlock(&box->lock);
    return slot;
}

/* A request to read passes the mailbox. True if a message that waits there is the answer. */
static bool answers_request(weir__segment *segment, weir__mailbox *box, const weir__event *event)
{
    bool asks = !event->is_auto && !weir_channel_auto_read(segment->channel), has_some, is_claimed;

    weir__mutex_lock(&box->lock);
    if (asks)
        box->is_asked = true;
    has_some = first_message_locked(box) != NULL;
    is_claimed = has_some && claim_locked(box);
    weir__mutex_unlock(&box->lock);
    if (is_claimed)
        wake(segment, box);
    return has_some && asks;
}

/* The executor: the last member is gone. */
static void close_inbox(weir__segment *segment)
{
    weir__mailbox *inbox = &segment->inbox, *outbox = &segment->outbox;
    weir__remote_node *node;
    weir__list *link;
    bool is_claimed;

    weir__mutex_lock(&inbox->lock);
    weir__mutex_lock(&outbox->lock);
    inbox->is_closed = true;
    while ((link = weir__list_pop(&inbox->nodes)) != NULL) {
        node = WEIR_CONTAINER_OF(link, weir__remote_node, link);
        append_locked(outbox, node->is_fixed ? NULL : node, node->slot);
    }
    outbox->flushing++;
    is_claimed = !weir__list_is_empty(&outbox->nodes) && claim_locked(outbox);
    weir__mutex_unlock(&outbox->lock);
    weir__mutex_unlock(&inbox->lock);
    if (is_claimed)
        wake(segment, outbox);
}

/* ---- the ring, on the loop ---- */

static weir__segment *segment_of(const weir_ctx *ctx)
{
    return weir__ctx_is_remote(ctx) ? weir__remote_of(ctx)->segment : NULL;
}

/* True if the executor has the context in its list when it has taken the nodes that are queued. */
static bool is_member(const weir_ctx *ctx)
{
    return weir__remote_of(ctx)->added.slot != 0 && !weir__remote_of(ctx)->is_leaving;
}

/* Pushes what was added since the last push. Comes before anything else that is pushed. */
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
            remote->added.slot = ADDED;
            remote->after = after;
            push(segment, &segment->inbox, &remote->added, ADDED);
        }
        if (is_member(ctx))
            after = remote;
    }
}

/* Splits off the contexts from `ctx` on. If none of them is a member there is nothing to wait for.
 */
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
        part->is_sealed = part->inbox.is_posted = part->outbox.is_posted = true;
        weir__list_append(&segment->splits, &part->split_link);
        part->split.slot = SPLIT;
        push(segment, &segment->inbox, &part->split, SPLIT);
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

void weir__remote_remove(weir_ctx *ctx)
{
    weir__remote *remote = weir__remote_of(ctx);
    weir__segment *segment = remote->segment;

    if (!remote->was_added)
        return;
    announce(segment);
    remote->is_leaving = true;
    remote->removed.slot = --segment->open > 0 ? REMOVED : REMOVED | FLUSHES;
    push(segment, &segment->inbox, &remote->removed, remote->removed.slot);
}

bool weir__remote_sweep(weir_ctx *ctx)
{
    weir__remote *remote = weir__remote_of(ctx);
    weir__segment *segment = remote->segment;
    bool is_posted;

    announce(segment);
    /* Relaxed: the deferred task comes after the store. */
    if (atomic_load_explicit(&remote->wants_removal, memory_order_relaxed))
        weir__pipeline_remove(ctx);
    /* Acquire: after everything that the executor did with the context and the segment. */
    if (!atomic_load_explicit(&remote->is_gone, memory_order_acquire))
        return false;
    if (segment->first != segment->last)
        return true;
    weir__mutex_lock(&segment->outbox.lock);
    is_posted = segment->outbox.is_posted;
    weir__mutex_unlock(&segment->outbox.lock);
    return !is_posted; /* otherwise run_outbox asks for another sweep */
}

/* ---- to the handlers ---- */

void weir__remote_enter(weir_ctx *ctx, const weir__event *event)
{
    weir__segment *segment = weir__remote_of(ctx)->segment;

    announce(segment);
    if (event->slot != WEIR__REQUEST_READ || !answers_request(segment, &segment->outbox, event))
        push_event(segment, &segment->inbox, event);
}

void weir__remote_end(weir_ctx *ctx)
{
    weir__segment *segment = weir__remote_of(ctx)->segment;

    announce(segment);
    push(segment, &segment->inbox, NULL, ENDED);
}

/* Brings an event to the next member that has the slot, from this link on; past the last one it
 * leaves the segment. */
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
            weir__invoke(weir__remote_ctx(remote), event);
            return;
        }
    }
    if (event->slot != WEIR__REQUEST_READ || !answers_request(segment, &segment->inbox, event))
        push_event(segment, &segment->outbox, event);
}

static void add_member(weir__segment *segment, weir__remote *remote)
{
    weir_ctx *ctx = weir__remote_ctx(remote);
    weir__list *before = remote->after != NULL ? &remote->after->link : &segment->members;

    weir__list_append(before->next, &remote->link);
    remote->home = segment;
    remote->slots = weir__handler_mask(ctx->handler);
    if (ctx->handler->buffers_reads)
        weir__demand_begin(ctx);
    if (ctx->handler->added != NULL)
        ctx->handler->added(ctx);
}

void weir__remote_let_free(weir_ctx *ctx)
{
    weir_channel *channel = ctx->channel;

    /* Release: all that was done with the context, before the loop frees it. */
    atomic_store_explicit(&weir__remote_of(ctx)->is_gone, true, memory_order_release);
    weir__channel_defer(channel, WEIR__DEFERRED_SWEEP);
}

static void remove_member(weir__segment *segment, weir__remote *remote, bool is_last)
{
    weir_ctx *ctx = weir__remote_ctx(remote);

    weir__ctx_stop_timers(ctx);
    weir__ctx_set_out(ctx);
    remote->slots = 0;
    if (ctx->handler->removed != NULL)
        ctx->handler->removed(ctx);
    weir__ctx_clear_pending_bytes(ctx);
    weir__list_remove(&remote->link);
    remote->home = NULL;
    if (is_last)
        close_inbox(segment);
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
    part->split.slot = SPLIT | FLUSHES;
    push(segment, &segment->outbox, &part->split, SPLIT | FLUSHES);
    wake(part, &part->inbox);
}

/* Returns false if the inbox is closed: then the loop may have freed the segment. */
static bool deliver(weir__segment *segment, weir__remote_node *node, uint32_t slot)
{
    weir__event event;

    if (slot == ADDED) {
        add_member(segment, WEIR_CONTAINER_OF(node, weir__remote, added));
    } else if ((slot & REMOVED) != 0) {
        remove_member(segment, WEIR_CONTAINER_OF(node, weir__remote, removed), slot != REMOVED);
    } else if (slot == SPLIT) {
        move_members(segment, WEIR_CONTAINER_OF(node, weir__segment, split));
    } else if (slot == ENDED) {
        push(segment, &segment->outbox, NULL, ENDED);
    } else {
        event = event_of(node, slot);
        if (slot == DISCARDED)
            weir_msg_release(event.msg);
        else
            pass_member(segment, &segment->members, &event);
        if (node != NULL) {
            uncount(segment->channel, contents_of(node));
            event_node_destroy(contents_of(node));
        }
    }
    return slot != (REMOVED | FLUSHES);
}

static void run_inbox(void *arg, int status)
{
    weir__segment *segment = arg;
    weir_channel *channel = segment->channel;
    weir__remote_node *node;
    uint32_t slot;

    (void)status; /* run or cancelled: events must arrive */
    for (int i = 0; i < BATCH; i++) {
        slot = take(&segment->inbox, channel, &node);
        if (slot == 0 || !deliver(segment, node, slot)) {
            weir_channel_release(channel);
            return;
        }
    }
    post(segment->executor, &segment->inbox.task);
}

/* ---- from the handlers ---- */

/* A handler that is removed passes nothing on after `removed` has returned. */
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
    /* Relaxed: the deferred task orders it. */
    atomic_store_explicit(&weir__remote_of(ctx)->wants_removal, true, memory_order_relaxed);
    weir__channel_defer(ctx->channel, WEIR__DEFERRED_SWEEP);
}

/* The context that events of this direction have left. */
static weir_ctx *exit_of(weir__segment *segment, bool is_inbound)
{
    if (!is_inbound)
        return segment->first;
    while (!weir__list_is_empty(&segment->splits))
        segment = WEIR_CONTAINER_OF(segment->splits.next, weir__segment, split_link);
    return segment->last;
}

static void pass_on(weir__segment *segment, weir__remote_node *node, uint32_t slot)
{
    weir__segment *part;
    weir__event event;

    if ((slot & SPLIT) != 0) {
        part = WEIR_CONTAINER_OF(node, weir__segment, split);
        weir__list_remove(&part->split_link);
        wake(part, &part->outbox);
    } else if (slot == ENDED) {
        weir__pipeline_teardown_after(exit_of(segment, true));
    } else {
        event = event_of(node, slot);
        if (node != NULL)
            uncount(segment->channel, contents_of(node));
        if (slot == DISCARDED)
            weir_msg_release(event.msg);
        else
            weir__pass(exit_of(segment, event.slot < WEIR__BIND), &event);
        if (node != NULL)
            event_node_destroy(contents_of(node));
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
    weir__remote_node *node;
    uint32_t slot;

    (void)status;
    for (int i = 0; i < BATCH && !has_moved(channel); i++) {
        slot = take(&segment->outbox, channel, &node);
        if (slot == 0) {
            if (segment->open == 0)
                weir__channel_defer(channel, WEIR__DEFERRED_SWEEP);
            weir_channel_release(channel);
            return;
        }
        pass_on(segment, node, slot);
    }
    weir_channel_retain(channel); /* the task may end before post returns */
    post(weir__channel_executor(channel), &segment->outbox.task);
    weir_channel_release(channel);
}
