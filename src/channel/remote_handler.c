/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handlers on other executors.
 *
 * The loop is the only one that walks and changes the pipeline. So an event that leaves such a
 * handler goes to the loop, through the outbox, and from there to the next one, wherever that is.
 * The exception are neighbours on the same executor, which the loop writes down for them: they call
 * each other. One that is removed is written down nowhere before its executor hears of it, as of a
 * task like any other; so when it has, none of its neighbours is on the way to it any more. A new
 * neighbour has a mark: what left for it before still goes over the loop. The executor takes the
 * mark off when it finds that all of it has arrived, and calls it from there on.
 *
 *      who             inbox                       outbox
 *      the loop        enter: pushes               runs: passes on what comes out of it
 *      the executor    runs: calls the handler     leave: pushes
 *
 * Removal. The loop pushes `removed` behind everything that is on the way in, and goes on pushing:
 * the handler passes on what comes after. When its executor finds the inbox empty it closes it, and
 * says so through the outbox; from there on the loop pushes to the outbox directly, behind what is
 * still there. When that is empty too the context is freed. So nothing is lost or overtaken.
 *
 * The end. When the channel is closed `ended` follows `unregistered`, through each of them in turn:
 * when it comes to the tail all handlers have heard what they had to, and may be removed.
 *
 * Demand. While auto-read is off a message passes a port only if one was requested through it, as
 * through handlers that keep messages (demand.h). Read_complete and the end of the input wait
 * behind the messages, other events do not. Those that are left when the channel becomes inactive
 * are released; those of a handler that is removed pass.
 *
 * Bytes. A message counts while it is under way: one that was read against the marks that pause
 * reading (rare->under_way), one that was written against those of the outbound queue.
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
#include "channel/pipeline_change.h"
#include "executor/group.h"

#define BATCH 64 /* nodes that a port runs before others get their turn */

/* Besides the slots: to the handler, and from it. */
enum {
    ADDED = 1 << 19,
    REMOVED = 1 << 20, /* to: you are removed; from: I am through */
    LEAVE = 1 << 21,   /* from: remove me */
    ENDED = 1 << 22,   /* no event of the channel's follows */
    DROPPED = 1 << 23, /* a message that nobody requested */
    AUTO = 1 << 24,    /* with REQUEST_READ: auto-read makes it */
};

/* What travels in nodes of the port itself: first two pairs, each of a beginning and its end. */
enum { PAIRED = 4 };

static const uint32_t fixed_slots[WEIR__REMOTE_FIXED] = {
    WEIR__REGISTERED,    WEIR__UNREGISTERED, WEIR__ACTIVE,   WEIR__INACTIVE,
    WEIR__READ_COMPLETE, WEIR__WRITABILITY,  WEIR__DRAINING, WEIR__REQUEST_READ,
    WEIR__FLUSH,         ADDED | LEAVE,      REMOVED,        ENDED,
};

#define IS_NEW ((uintptr_t)1) /* the mark of a neighbour */

/* What brings something travels in memory of its own. */
struct parcel {
    weir__remote_node node;
    int err;
    weir_msg *msg;
    weir_promise *done;
    int64_t bytes;
    void *extra; /* the sentence of an error, or addresses */
};

_Static_assert(sizeof(struct parcel) <= WEIR__NODE_SIZE, "a parcel is a node");

/* Which executor of a group the handlers of a channel run on. */
struct weir__pin {
    struct weir__pin *next;
    weir_group *group;
    weir_executor *executor;
};

/* ---- executors ---- */

static struct weir__pin *find_pin(weir__channel_extra *rare, const weir_group *group)
{
    struct weir__pin *pin = atomic_load_explicit(&rare->pins, memory_order_acquire);

    while (pin != NULL && pin->group != group)
        pin = pin->next;
    return pin;
}

/* A pin keeps the group, and with it its executors: also those of handlers that chose their own. */
static int pin_group(weir_channel *channel, weir_group *group, struct weir__pin **ret_pin)
{
    weir__channel_extra *rare = weir__channel_extra_get(channel);
    struct weir__pin *pin;

    if (rare == NULL)
        return -ENOMEM;
    *ret_pin = find_pin(rare, group);
    if (*ret_pin != NULL)
        return 0;
    pin = weir__alloc(sizeof(*pin));
    if (pin == NULL)
        return -ENOMEM;
    pin->group = weir_group_retain(group);
    pin->executor = weir_group_next(group);
    pin->next = atomic_load_explicit(&rare->pins, memory_order_relaxed);
    /* Two threads that come at the same time may pin the group twice: the later pin counts. */
    while (!atomic_compare_exchange_weak_explicit(&rare->pins, &pin->next, pin,
                                                  memory_order_acq_rel, memory_order_relaxed))
        ;
    *ret_pin = pin;
    return 0;
}

static void free_pins(struct weir__pin *pin)
{
    struct weir__pin *next;

    for (; pin != NULL; pin = next) {
        next = pin->next;
        weir_group_release(pin->group);
        weir__free(pin);
    }
}

void weir__remote_forget(weir__channel_extra *rare)
{
    free_pins(atomic_load_explicit(&rare->pins, memory_order_acquire));
}

/* ---- life ---- */

static weir_task_fn run_inbox, run_outbox;

static void port_init(weir__port *port, weir_task_fn *run, weir__remote *hop)
{
    weir__mutex_init(&port->lock);
    weir__list_init(&port->nodes);
    weir_task_init(&port->task, run, hop);
    port->is_asked = true; /* it may have been before: what is below counts as well */
    for (int i = 0; i < WEIR__REMOTE_FIXED; i++) {
        weir__list_init(&port->fixed[i].link);
        port->fixed[i].is_fixed = true;
    }
}

int weir__remote_init(weir_ctx *ctx, weir_group *group)
{
    weir__remote *hop = weir__remote_of(ctx);
    weir_channel_options options;
    struct weir__pin *pin;
    int err = weir__group_grows(group) ? -ENOTSUP : pin_group(ctx->channel, group, &pin);

    if (err < 0)
        return err;
    weir__config_read(weir__channel_config(ctx->channel), &options);
    hop->executor = options.executor_per_handler ? weir_group_next(group) : pin->executor;
    weir__executor_weak_retain(hop->executor);
    port_init(&hop->inbox, run_inbox, hop);
    port_init(&hop->outbox, run_outbox, hop);
    return 0;
}

void weir__remote_deinit(weir_ctx *ctx)
{
    weir__remote *hop = weir__remote_of(ctx);

    assert(weir__list_is_empty(&hop->inbox.nodes) && weir__list_is_empty(&hop->outbox.nodes));
    weir__mutex_deinit(&hop->inbox.lock);
    weir__mutex_deinit(&hop->outbox.lock);
    weir__executor_weak_release(hop->executor);
}

static bool is_removed(const weir_ctx *ctx)
{
    return weir__ctx_is_remote(ctx) && weir__remote_of(ctx)->was_removed;
}

static bool are_together(const weir_ctx *a, const weir_ctx *b)
{
    return weir__ctx_is_remote(a) && weir__ctx_is_remote(b) &&
           weir__remote_of(a)->executor == weir__remote_of(b)->executor;
}

/*
 * One that is removed is nobody's neighbour, but until it is gone it is between its neighbours: it
 * may still have to pass something on. Release: whoever finds a neighbour finds all of it.
 */
static void write_down(_Atomic uintptr_t *place, const weir_ctx *ctx, const weir_ctx *beside)
{
    uintptr_t neighbour = are_together(ctx, beside) && !is_removed(beside) ? (uintptr_t)beside : 0,
              known = atomic_load_explicit(place, memory_order_relaxed) & ~IS_NEW;

    if (neighbour != known)
        atomic_store_explicit(place, neighbour != 0 ? neighbour | IS_NEW : 0, memory_order_release);
}

void weir__remote_write_down(weir_pipeline *pipeline)
{
    weir__channel_extra *rare = weir__channel_extra_if_any(pipeline->head_tail.channel);
    weir__remote *hop;

    if (rare == NULL || atomic_load_explicit(&rare->pins, memory_order_relaxed) == NULL)
        return; /* all of them run on the loop */
    for (weir_ctx *ctx = pipeline->head_tail.next; ctx != &pipeline->head_tail; ctx = ctx->next) {
        if (!weir__ctx_is_remote(ctx))
            continue;
        hop = weir__remote_of(ctx);
        write_down(&hop->next, ctx, ctx->next);
        write_down(&hop->prev, ctx, ctx->prev);
    }
}

/* ---- bytes under way ---- */

static int64_t low_mark(const weir_channel *channel)
{
    return atomic_load_explicit(&weir__channel_config(channel)->low_mark, memory_order_relaxed);
}

bool weir__remote_may_read(const weir_channel *channel)
{
    const weir__channel_extra *rare = weir__channel_extra_if_any(channel);

    return atomic_load_explicit(&rare->under_way, memory_order_relaxed) < low_mark(channel);
}

/* The loop: more is under way. It comes before what takes it off, in the order of the counter. */
static void count_read(weir_channel *channel, int64_t bytes)
{
    weir__channel_extra *rare = weir__channel_extra_if_any(channel);
    int64_t before = atomic_fetch_add_explicit(&rare->under_way, bytes, memory_order_relaxed);

    if (!weir__channel_in_loop(channel) ||
        before + bytes <= weir__channel_options(channel)->high_mark)
        return;
    channel->flags |= WEIR__INPUT_THROTTLED;
    weir__channel_update_reading(channel);
}

/* Who brings it below the low mark tells the loop, which may have paused. */
static void uncount_read(weir_channel *channel, int64_t bytes)
{
    weir__channel_extra *rare = weir__channel_extra_if_any(channel);
    int64_t before = atomic_fetch_sub_explicit(&rare->under_way, bytes, memory_order_relaxed);
    int64_t low = low_mark(channel);

    if (before >= low && before - bytes < low)
        weir__channel_defer(channel, WEIR__DEFERRED_READING);
}

static int depart(weir_channel *channel, const struct parcel *parcel)
{
    if (parcel->node.slot == WEIR__WRITE)
        return weir__outbound_reserve(channel, parcel->bytes);
    if (parcel->node.slot == WEIR__READ)
        count_read(channel, parcel->bytes);
    return 0;
}

static void arrive(weir_channel *channel, const struct parcel *parcel)
{
    if (parcel->node.slot == WEIR__WRITE)
        weir__outbound_cancel_reserve(channel, parcel->bytes);
    else if (parcel->node.slot == WEIR__READ)
        uncount_read(channel, parcel->bytes);
}

/* ---- parcels ---- */

static bool is_fixed_slot(uint32_t slot)
{
    for (int i = 0; i < WEIR__REMOTE_FIXED; i++)
        if ((fixed_slots[i] & slot) != 0)
            return true;
    return false;
}

static void *copy_addresses(const weir__event *event)
{
    weir_address *copy = weir__zalloc(2 * sizeof(*copy));

    if (copy == NULL)
        return NULL;
    if (event->remote != NULL)
        copy[0] = *event->remote;
    if (event->local != NULL)
        copy[1] = *event->local;
    return copy;
}

/* Only an error, a bind and a connect bring what has to be copied. */
static int copy_extra(const weir__event *event, void **ret_extra)
{
    *ret_extra = NULL;
    if (event->detail != NULL)
        *ret_extra = weir__strdup(event->detail);
    else if ((event->slot & (WEIR__BIND | WEIR__CONNECT)) != 0)
        *ret_extra = copy_addresses(event);
    else
        return 0;
    return *ret_extra != NULL ? 0 : -ENOMEM;
}

static int parcel_create(weir_channel *channel, const weir__event *event,
                         struct parcel **ret_parcel)
{
    struct parcel *parcel = weir__node_alloc();
    int err;

    if (parcel == NULL)
        return -ENOMEM;
    memset(parcel, 0, sizeof(*parcel));
    weir__list_init(&parcel->node.link);
    parcel->node.slot = event->slot;
    parcel->err = event->err;
    parcel->msg = event->msg;
    parcel->bytes = event->msg != NULL ? weir__outbound_cost(event->msg) : 0;
    err = copy_extra(event, &parcel->extra);
    if (err == 0)
        err = depart(channel, parcel);
    if (err < 0) {
        weir__free(parcel->extra);
        weir__node_free(parcel);
        return err;
    }
    parcel->done = event->done != NULL ? weir_promise_retain(event->done) : NULL;
    *ret_parcel = parcel;
    return 0;
}

static weir__event event_of(const struct parcel *parcel)
{
    weir__event event = {
        .slot = parcel->node.slot, .err = parcel->err, .msg = parcel->msg, .done = parcel->done};
    const weir_address *addresses = parcel->extra;

    if (event.slot == WEIR__ERROR) {
        event.detail = parcel->extra;
    } else if (addresses != NULL) {
        event.remote = &addresses[0];
        event.local = addresses[1].length > 0 ? &addresses[1] : NULL;
    }
    return event;
}

static void parcel_destroy(struct parcel *parcel)
{
    weir_promise_release(parcel->done);
    weir__free(parcel->extra);
    weir__node_free(parcel);
}

/* It could not go on: nothing of it is left, and a channel that loses something is not kept. */
static void lose(weir_channel *channel, const weir__event *event, int err)
{
    weir_msg_release(event->msg);
    weir__channel_fail_posted(channel, event->done, err);
    if (err == -ENOMEM)
        weir__channel_defer(channel, WEIR__DEFERRED_ABORT);
}

static void drop_parcel(weir_ctx *ctx, struct parcel *parcel)
{
    weir_msg_release(parcel->msg);
    arrive(ctx->channel, parcel);
    parcel_destroy(parcel);
}

/* ---- ports ---- */

static unsigned *count_of(weir__port *port, uint32_t slot)
{
    return &port->under_way[slot < WEIR__BIND ? 0 : 1];
}

static bool is_under_way(const weir__remote_node *node)
{
    return !weir__list_is_empty(&node->link);
}

/* The other one of its pair if both are under way, and this one first; otherwise NULL. */
static weir__remote_node *opposite_behind(weir__port *port, unsigned i)
{
    weir__remote_node *opposite = i < PAIRED ? &port->fixed[i ^ 1] : NULL;
    const weir__list *link = port->fixed[i].link.next;

    if (opposite == NULL || !is_under_way(&port->fixed[i]) || !is_under_way(opposite))
        return NULL;
    while (link != &port->nodes && link != &opposite->link)
        link = link->next;
    return link == &opposite->link ? opposite : NULL;
}

/*
 * One that is under way when it comes again moves to the end. Of a beginning and its end there are
 * three then: begin, end, begin; or end, begin, end. An end and the beginning after it have met
 * before the handler could hear of them, and it does not: what is left of the three is the first
 * beginning, with all that came after it, or the last end.
 */
static void append_fixed_locked(weir__port *port, unsigned i)
{
    weir__remote_node *opposite = opposite_behind(port, i);
    weir__list *link = &port->fixed[i].link;

    if (opposite != NULL) {
        weir__list_remove(&opposite->link);
        --*count_of(port, opposite->slot);
    }
    if (opposite != NULL && i % 2 == 0)
        return;
    if (!is_under_way(&port->fixed[i]))
        ++*count_of(port, port->fixed[i].slot);
    weir__list_remove(link);
    weir__list_append(&port->nodes, link);
}

static void append_locked(weir__port *port, weir__remote_node *node, uint32_t fixed)
{
    unsigned i = 0;

    if ((fixed & (WEIR__ACTIVE | WEIR__INACTIVE)) != 0)
        port->has_ended = fixed == WEIR__INACTIVE;
    if (fixed == REMOVED)
        port->lets_all_pass = true;

    if (node != NULL) {
        weir__list_append(&port->nodes, &node->link);
        ++*count_of(port, node->slot);
        return;
    }
    while ((fixed_slots[i] & fixed) == 0)
        i++;
    if (is_under_way(&port->fixed[i]) && port->fixed[i].slot == WEIR__REQUEST_READ)
        fixed = WEIR__REQUEST_READ; /* one of both is not by auto-read */
    port->fixed[i].slot = fixed;
    append_fixed_locked(port, i);
}

/* The executor has ended: the global one runs what is left, and it alone. */
static void post(weir_executor *executor, weir_task *task)
{
    if (weir__executor_post(executor, task, WEIR__NOW) < 0)
        (void)weir__executor_post(weir_executor_global(), task, WEIR__NOW);
}

/* False: the port is closed. A port that is to be run holds a reference of the channel. */
static bool push(weir__port *port, weir__remote_node *node, uint32_t fixed, weir_channel *channel,
                 weir_executor *executor)
{
    bool is_first;

    weir__mutex_lock(&port->lock);
    if (port->closed) {
        weir__mutex_unlock(&port->lock);
        return false;
    }
    append_locked(port, node, fixed);
    is_first = !port->posted;
    port->posted = true;
    weir__mutex_unlock(&port->lock);
    if (is_first) {
        weir_channel_retain(channel);
        post(executor, &port->task);
    }
    return true;
}

/* ---- messages that wait in a port ---- */

static bool is_open_locked(const weir__port *port, const weir_channel *channel)
{
    return port->is_asked || port->lets_all_pass || weir_channel_auto_read(channel);
}

static bool is_end_of_input(weir__remote_node *node)
{
    const weir_msg *msg = WEIR_CONTAINER_OF(node, struct parcel, node)->msg;

    return node->slot == WEIR__EVENT &&
           (msg == weir_event_input_closed() || msg == weir_event_input_drained());
}

/* True if it may not overtake a message. */
static bool stays_behind(weir__remote_node *node)
{
    return node->is_fixed ? node->slot == WEIR__READ_COMPLETE
                          : node->slot == WEIR__READ || is_end_of_input(node);
}

static weir__remote_node *first_message_locked(weir__port *port)
{
    weir__remote_node *node;

    for (weir__list *link = port->nodes.next; link != &port->nodes; link = link->next) {
        node = WEIR_CONTAINER_OF(link, weir__remote_node, link);
        if (node->slot == WEIR__READ)
            return node;
    }
    return NULL;
}

/* The first message that waits, or NULL. */
static weir__remote_node *first_waiting_locked(weir__port *port, const weir_channel *channel)
{
    return is_open_locked(port, channel) ? NULL : first_message_locked(port);
}

/* The first node that need not wait: all in front of `waiting`, and some behind it. */
static weir__remote_node *first_free_locked(weir__port *port, const weir__remote_node *waiting)
{
    bool is_behind = false;
    weir__remote_node *node;

    for (weir__list *link = port->nodes.next; link != &port->nodes; link = link->next) {
        node = WEIR_CONTAINER_OF(link, weir__remote_node, link);
        is_behind = is_behind || node == waiting;
        if (!is_behind || !stays_behind(node))
            return node;
    }
    return NULL;
}

static weir__remote_node *pop_locked(weir__port *port, weir__remote_node *node)
{
    weir__list_remove(&node->link);
    if (node->slot == WEIR__READ) {
        port->is_asked = false;
        port->has_passed = true;
    } else if (node->slot == WEIR__READ_COMPLETE) {
        port->has_passed = false;
    }
    port->running = node->slot;
    return node;
}

/* Those in front of a message that waits are complete. Its node may be under way further behind. */
static weir__remote_node *complete_locked(weir__port *port)
{
    unsigned i = 0;

    while (fixed_slots[i] != WEIR__READ_COMPLETE)
        i++;
    port->has_passed = false;
    port->running = WEIR__READ_COMPLETE;
    ++*count_of(port, WEIR__READ_COMPLETE);
    return &port->fixed[i];
}

static weir__remote_node *next_locked(weir__port *port, const weir_channel *channel,
                                      uint32_t *ret_slot)
{
    weir__remote_node *waiting = first_waiting_locked(port, channel), *node;

    if (waiting != NULL && port->has_ended) {
        weir__list_remove(&waiting->link);
        port->running = waiting->slot;
        *ret_slot = DROPPED;
        return waiting;
    }
    node = first_free_locked(port, waiting);
    if (node != NULL)
        node = pop_locked(port, node);
    else if (waiting != NULL && port->has_passed)
        node = complete_locked(port);
    *ret_slot = port->running;
    return node;
}

/* The next node and its slot, for a fixed one may be pushed again at once; NULL if there is none
 * that need not wait: then the port is not to be run any more, and closed if so asked. */
static weir__remote_node *take(weir__port *port, const weir_channel *channel, bool close,
                               uint32_t *ret_slot)
{
    weir__remote_node *node;

    weir__mutex_lock(&port->lock);
    if (port->running != 0)
        --*count_of(port, port->running);
    port->running = 0;
    node = next_locked(port, channel, ret_slot);
    if (node == NULL) {
        port->posted = false;
        port->closed = close;
    }
    weir__mutex_unlock(&port->lock);
    return node;
}

/* A request passes the port. True if a message that waits there is the answer: it is on its way. */
static bool answers_request(weir__port *port, const weir__event *event, weir_channel *channel,
                            weir_executor *executor)
{
    bool asks = !event->is_auto && !weir_channel_auto_read(channel), has_some, is_first;

    weir__mutex_lock(&port->lock);
    if (asks)
        port->is_asked = true;
    has_some = first_message_locked(port) != NULL;
    is_first = has_some && !port->posted;
    port->posted = port->posted || is_first;
    weir__mutex_unlock(&port->lock);
    if (is_first) {
        weir_channel_retain(channel);
        post(executor, &port->task);
    }
    return has_some && asks;
}

/* Nothing of what goes the way of this slot is in the port, or being passed on from it. */
static bool is_free(weir__port *port, uint32_t slot)
{
    unsigned count;

    weir__mutex_lock(&port->lock);
    count = *count_of(port, slot);
    weir__mutex_unlock(&port->lock);
    return count == 0;
}

static void push_out(weir_ctx *ctx, weir__remote_node *node, uint32_t fixed)
{
    (void)push(&weir__remote_of(ctx)->outbox, node, fixed, ctx->channel,
               weir__channel_executor(ctx->channel)); /* never closed */
}

static void push_in(weir_ctx *ctx, weir__remote_node *node, uint32_t fixed)
{
    weir__remote *hop = weir__remote_of(ctx);

    if (!push(&hop->inbox, node, fixed, ctx->channel, hop->executor))
        push_out(ctx, node, fixed);
}

static void dispatch(weir_ctx *ctx, const weir__event *event,
                     void (*push_there)(weir_ctx *ctx, weir__remote_node *node, uint32_t fixed))
{
    struct parcel *parcel;
    int err;

    if (is_fixed_slot(event->slot)) {
        push_there(ctx, NULL, event->slot | (event->is_auto ? AUTO : 0u));
        return;
    }
    err = parcel_create(ctx->channel, event, &parcel);
    if (err < 0)
        lose(ctx->channel, event, err);
    else
        push_there(ctx, &parcel->node, 0);
}

/* ---- to the handler ---- */

void weir__remote_enter(weir_ctx *ctx, const weir__event *event)
{
    if (event->slot == WEIR__REQUEST_READ &&
        answers_request(&weir__remote_of(ctx)->outbox, event, ctx->channel,
                        weir__channel_executor(ctx->channel)))
        return;
    dispatch(ctx, event, push_in);
}

void weir__remote_add(weir_ctx *ctx)
{
    weir__remote *hop = weir__remote_of(ctx);

    hop->was_added = true;
    push_in(ctx, NULL, ADDED);
    if (hop->was_removed)
        push_in(ctx, NULL, REMOVED);
}

void weir__remote_take_out(weir_ctx *ctx)
{
    weir__remote_of(ctx)->was_removed = true;
    weir__remote_write_down(&ctx->channel->pipeline);
}

void weir__remote_tell_removed(weir_ctx *ctx)
{
    if (weir__remote_of(ctx)->was_added)
        push_in(ctx, NULL, REMOVED);
}

void weir__remote_end(weir_ctx *ctx)
{
    push_in(ctx, NULL, ENDED);
}

static bool takes(const weir_ctx *ctx, uint32_t slot)
{
    const weir__remote *hop = weir__remote_of(ctx);

    return hop->is_ready && !weir_ctx_is_removed(ctx) &&
           (weir__handler_mask(ctx->handler) & slot) != 0;
}

static void deliver(weir_ctx *ctx, const weir__event *event)
{
    if (takes(ctx, event->slot))
        weir__invoke(ctx, event);
    else
        weir__remote_leave(ctx, event);
}

static void tell_added(weir_ctx *ctx)
{
    weir__remote_of(ctx)->is_ready = true;
    if (ctx->handler->buffers_reads)
        weir__demand_begin(ctx);
    if (ctx->handler->added != NULL)
        ctx->handler->added(ctx);
}

static void tell_removed(weir_ctx *ctx)
{
    weir__ctx_stop_timers(ctx);
    weir__ctx_set_out(ctx);
    if (ctx->handler->removed != NULL)
        ctx->handler->removed(ctx);
    weir__ctx_clear_pending_bytes(ctx);
}

static void deliver_node(weir_ctx *ctx, weir__remote_node *node, uint32_t slot)
{
    struct parcel *parcel;
    weir__event event = {.slot = slot & ~(uint32_t)AUTO, .is_auto = (slot & AUTO) != 0};

    if (slot == ADDED) {
        if (!weir__remote_of(ctx)->is_ready)
            tell_added(ctx);
    } else if (slot == REMOVED) {
        tell_removed(ctx);
    } else if (slot == ENDED) {
        push_out(ctx, NULL, ENDED);
    } else if (slot == DROPPED) {
        drop_parcel(ctx, WEIR_CONTAINER_OF(node, struct parcel, node));
    } else if (node->is_fixed) {
        deliver(ctx, &event);
    } else {
        parcel = WEIR_CONTAINER_OF(node, struct parcel, node);
        event = event_of(parcel);
        deliver(ctx, &event);
        arrive(ctx->channel, parcel);
        parcel_destroy(parcel);
    }
}

/* ---- from the handler ---- */

/*
 * The neighbour that may be called; NULL if there is none, or if something that left for it before
 * is still under way. In this order: what has left the outbox is in the inbox, and nothing is added
 * meanwhile, since only this executor does that. Acquire: all of the neighbour.
 */
static weir_ctx *neighbour_for(weir_ctx *ctx, uint32_t slot)
{
    weir__remote *hop = weir__remote_of(ctx), *next_hop;
    _Atomic uintptr_t *place = slot < WEIR__BIND ? &hop->next : &hop->prev;
    uintptr_t found = atomic_load_explicit(place, memory_order_acquire);
    weir_ctx *next = (weir_ctx *)(found & ~IS_NEW);

    if ((found & IS_NEW) == 0)
        return next;
    next_hop = weir__remote_of(next);
    if (!next_hop->is_ready || !is_free(&hop->outbox, slot) || !is_free(&next_hop->inbox, slot))
        return NULL;
    /* Relaxed: nobody learns anything by it. The loop may have written another one down. */
    return atomic_compare_exchange_strong_explicit(place, &found, (uintptr_t)next,
                                                   memory_order_relaxed, memory_order_relaxed)
               ? next
               : NULL;
}

static bool is_answered(weir_ctx *ctx, const weir__event *event)
{
    weir__remote *hop = weir__remote_of(ctx);

    return event->slot == WEIR__REQUEST_READ &&
           answers_request(&hop->inbox, event, ctx->channel, hop->executor);
}

/* Neighbours on the same executor get it at once; otherwise the last of them sends it on. */
void weir__remote_leave(weir_ctx *ctx, const weir__event *event)
{
    weir_ctx *next;

    for (; !is_answered(ctx, event); ctx = next) {
        next = neighbour_for(ctx, event->slot);
        if (next == NULL) {
            dispatch(ctx, event, push_out);
            return;
        }
        if (takes(next, event->slot)) {
            weir__invoke(next, event);
            return;
        }
    }
}

void weir__remote_ask_removal(weir_ctx *ctx)
{
    push_out(ctx, NULL, LEAVE);
}

static void pass_node(weir_ctx *ctx, weir__remote_node *node, uint32_t slot)
{
    struct parcel *parcel;
    weir__event event = {.slot = slot & ~(uint32_t)AUTO, .is_auto = (slot & AUTO) != 0};

    if (slot == LEAVE) {
        weir__pipeline_remove(ctx);
    } else if (slot == REMOVED) {
        weir__remote_of(ctx)->is_gone = true;
    } else if (slot == ENDED) {
        weir__pipeline_teardown_after(ctx);
    } else if (slot == DROPPED) {
        drop_parcel(ctx, WEIR_CONTAINER_OF(node, struct parcel, node));
    } else if (node->is_fixed) {
        weir__pass(ctx, &event);
    } else {
        parcel = WEIR_CONTAINER_OF(node, struct parcel, node);
        event = event_of(parcel);
        arrive(ctx->channel, parcel);
        weir__pass(ctx, &event);
        parcel_destroy(parcel);
    }
}

/* ---- running ---- */

static void run_inbox(void *arg, int status)
{
    weir__remote *hop = arg;
    weir_ctx *ctx = weir__remote_ctx(hop);
    weir_channel *channel = ctx->channel;
    weir__remote_node *node;
    uint32_t slot;

    (void)status; /* run or cancelled: what is on the way must arrive */
    for (int i = 0; i < BATCH; i++) {
        node = take(&hop->inbox, channel, weir_ctx_is_removed(ctx) && !weir__ctx_has_offloads(ctx),
                    &slot);
        if (node == NULL) {
            if (weir_ctx_is_removed(ctx) && !weir__ctx_has_offloads(ctx))
                push_out(ctx, NULL, REMOVED);
            weir_channel_release(channel);
            return;
        }
        deliver_node(ctx, node, slot);
    }
    post(hop->executor, &hop->inbox.task);
}

/* An empty run: it closes the inbox, if that is all that is left. */
void weir__remote_look(weir_ctx *ctx)
{
    push_in(ctx, NULL, ADDED);
}

static bool has_moved(const weir_channel *channel)
{
    return !weir__channel_in_loop(channel) &&
           weir__executor_state(weir__channel_executor(channel)) < WEIR_EXECUTOR_SHUTDOWN;
}

static void run_outbox(void *arg, int status)
{
    weir__remote *hop = arg;
    weir_ctx *ctx = weir__remote_ctx(hop);
    weir_channel *channel = ctx->channel;
    weir__remote_node *node = NULL;
    uint32_t slot;

    (void)status;
    if (!has_moved(channel)) {
        for (int i = 0; i < BATCH; i++) {
            node = take(&hop->outbox, channel, false, &slot);
            if (node == NULL)
                break;
            pass_node(ctx, node, slot);
        }
        if (node == NULL) {
            if (hop->is_gone)
                weir__pipeline_free_removed(ctx);
            weir_channel_release(channel);
            return;
        }
    }
    weir_channel_retain(channel); /* it may be through before us */
    post(weir__channel_executor(channel), &hop->outbox.task);
    weir_channel_release(channel);
}
