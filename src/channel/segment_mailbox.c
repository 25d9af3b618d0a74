/* SPDX-License-Identifier: Apache-2.0 */
#include "channel/segment_mailbox.h"

#include <errno.h>

#include <weir/error.h>
#include <weir/handler.h>

#include "base/memory.h"
#include "channel/channel.h"
#include "channel/node_pool.h"
#include "os/thread.h"

#define RETRY_NS weir_ms(1)

/* Events without contents. The first four are two pairs of a beginning and its end. */
enum { PAIRED = 4 };

static const uint32_t fixed_slots[WEIR__MAIL_FIXED] = {
    WEIR__REGISTERED,  WEIR__UNREGISTERED, WEIR__ACTIVE,       WEIR__INACTIVE, WEIR__READ_COMPLETE,
    WEIR__WRITABILITY, WEIR__DRAINING,     WEIR__REQUEST_READ, WEIR__FLUSH,    WEIR__MAIL_ENDED,
};

#define FIXED_SLOTS                                                                                \
    (WEIR__REGISTERED | WEIR__UNREGISTERED | WEIR__ACTIVE | WEIR__INACTIVE | WEIR__READ_COMPLETE | \
     WEIR__WRITABILITY | WEIR__DRAINING | WEIR__REQUEST_READ | WEIR__FLUSH)

/* An event with contents. */
struct event_node {
    weir__inmail node;
    int err;
    weir_msg *msg;
    weir_promise *done;
    int64_t bytes;
    void *extra; /* the detail of an error, or addresses */
};

_Static_assert(sizeof(struct event_node) <= WEIR__NODE_SIZE, "an event_node is a node");

static struct event_node *contents_of(weir__inmail *node)
{
    return WEIR_CONTAINER_OF(node, struct event_node, node);
}

/* ---- bytes ---- */

static int64_t low_mark(const weir_channel *channel)
{
    return atomic_load_explicit(&weir__channel_config(channel)->low_mark, memory_order_relaxed);
}

bool weir__inbox_may_read(const weir_channel *channel)
{
    const weir__channel_extra *extra = weir__channel_extra_if_any(channel);

    return atomic_load_explicit(&extra->under_way, memory_order_relaxed) < low_mark(channel);
}

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
void weir__inmail_uncount(weir__inmail *node, weir_channel *channel)
{
    weir__channel_extra *extra = weir__channel_extra_if_any(channel);
    int64_t bytes = contents_of(node)->bytes, before, low = low_mark(channel);

    if (node->slot == WEIR__WRITE)
        weir__outbound_cancel_reserve(channel, bytes);
    if (node->slot != WEIR__READ)
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

weir__event weir__inmail_event(weir__inmail *node, uint32_t slot)
{
    weir__event event = {.slot = slot & ~(uint32_t)WEIR__MAIL_AUTO,
                         .is_auto = (slot & WEIR__MAIL_AUTO) != 0};
    const struct event_node *contents;
    const weir_address *addresses;

    if (node == NULL)
        return event;
    contents = contents_of(node);
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

void weir__inmail_free(weir__inmail *node)
{
    struct event_node *contents = contents_of(node);

    weir_promise_release(contents->done);
    weir__free(contents->extra);
    weir__node_free(contents);
}

/* ---- mailboxes ---- */

void weir__inbox_init(weir__inbox *box, weir_channel *channel, weir_executor *executor,
                      weir_task_fn *run, void *arg)
{
    box->channel = channel;
    box->executor = executor;
    weir_task_init(&box->task, run, arg);
    weir__mutex_init(&box->lock);
    weir__list_init(&box->nodes);
    box->is_asked = true; /* a message may have been requested before */
    for (int i = 0; i < WEIR__MAIL_FIXED; i++) {
        weir__list_init(&box->fixed[i].link);
        box->fixed[i].is_fixed = true;
    }
}

void weir__inbox_deinit(weir__inbox *box)
{
    assert(weir__list_is_empty(&box->nodes));
    weir__mutex_deinit(&box->lock);
}

static bool is_queued(const weir__inmail *node)
{
    return !weir__list_is_empty(&node->link);
}

/* Both are queued. */
static bool is_behind(const weir__inmail *node, const weir__inmail *other, const weir__inbox *box)
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
static void append_fixed_locked(weir__inbox *box, uint32_t slot)
{
    weir__inmail *node, *opposite;
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
static void append_locked(weir__inbox *box, weir__inmail *node, uint32_t slot)
{
    if ((slot & (WEIR__ACTIVE | WEIR__INACTIVE)) != 0)
        box->has_ended = slot == WEIR__INACTIVE;
    if (slot == WEIR__ACTIVE)
        box->is_discarding = false;
    if (node == NULL) {
        append_fixed_locked(box, slot);
        return;
    }
    node->slot = slot;
    weir__list_append(&box->nodes, &node->link);
    if ((slot & WEIR__MAIL_FLUSHES) != 0)
        box->flushing++;
}

/* The only thread that is sure to exist waits: handlers run on their own executor or not at all. */
static void on_retry(void *arg, int status)
{
    (void)status;
    weir__thread_sleep(RETRY_NS);
    weir__inbox_repost(arg);
}

/*
 * An executor that has ended refuses the task: then the global one runs it. One whose thread cannot
 * be started, for want of memory, is asked again later.
 */
void weir__inbox_repost(weir__inbox *box)
{
    weir_channel *channel = weir_channel_retain(box->channel); /* the task may end at once */
    weir_executor *executor =
        box->executor != NULL ? box->executor : weir__channel_executor(channel);
    weir_task *task = &box->task;

    if (weir__executor_post(executor, task, WEIR__NOW) < 0) {
        if (weir__executor_state(executor) < WEIR_EXECUTOR_SHUTDOWN) {
            task = &box->retry;
            weir_task_init(task, on_retry, box);
        }
        (void)weir__executor_post(weir_executor_global(), task, WEIR__NOW);
    }
    weir_channel_release(channel);
}

/* True if the caller has to start the mailbox when it has unlocked it. */
static bool claim_locked(weir__inbox *box)
{
    bool was_posted = box->is_posted;

    box->is_posted = true;
    return !was_posted;
}

void weir__inbox_start(weir__inbox *box)
{
    weir_channel_retain(box->channel);
    weir__inbox_repost(box);
}

void weir__inbox_stop(weir__inbox *box)
{
    box->is_posted = true;
}

bool weir__inbox_is_posted(weir__inbox *box)
{
    bool is_posted;

    weir__mutex_lock(&box->lock);
    is_posted = box->is_posted;
    weir__mutex_unlock(&box->lock);
    return is_posted;
}

void weir__inbox_push(weir__inbox *box, weir__inmail *node, uint32_t slot)
{
    weir__inbox *moved_to;
    bool is_claimed;

    weir__mutex_lock(&box->lock);
    moved_to = box->moved_to;
    if (moved_to != NULL) {
        weir__mutex_unlock(&box->lock);
        weir__inbox_push(moved_to, node, slot);
        return;
    }
    append_locked(box, node, slot);
    is_claimed = claim_locked(box);
    weir__mutex_unlock(&box->lock);
    if (is_claimed)
        weir__inbox_start(box);
}

/* An event that cannot be pushed is lost. If that is for want of memory the channel is aborted. */
void weir__inbox_push_event(weir__inbox *box, const weir__event *event)
{
    struct event_node *node;
    int err;

    if ((event->slot & FIXED_SLOTS) != 0) {
        weir__inbox_push(box, NULL, event->slot | (event->is_auto ? WEIR__MAIL_AUTO : 0u));
        return;
    }
    err = event_node_create(box->channel, event, &node);
    if (err == 0) {
        weir__inbox_push(box, &node->node, event->slot);
        return;
    }
    weir_msg_release(event->msg);
    if (event->slot == WEIR__WRITE)
        weir__channel_fail_posted_write(box->channel, event->done, err);
    else
        weir__channel_fail_posted(box->channel, event->done, err);
    if (err == -ENOMEM)
        weir__channel_defer(box->channel, WEIR__DEFERRED_ABORT);
}

static weir__inmail *first_message_locked(weir__inbox *box)
{
    weir__inmail *node;

    for (weir__list *link = box->nodes.next; link != &box->nodes; link = link->next) {
        node = WEIR_CONTAINER_OF(link, weir__inmail, link);
        if (node->slot == WEIR__READ)
            return node;
    }
    return NULL;
}

/* True if the node may not overtake a message. */
static bool stays_behind(weir__inmail *node)
{
    if (node->slot != WEIR__EVENT)
        return node->slot == WEIR__READ || node->slot == WEIR__READ_COMPLETE;
    return contents_of(node)->msg == weir_event_input_closed();
}

/* The first node that need not wait: any in front of `waiting`, and some behind it. */
static weir__inmail *first_free_locked(weir__inbox *box, const weir__inmail *waiting)
{
    bool is_waiting = false;
    weir__inmail *node;

    for (weir__list *link = box->nodes.next; link != &box->nodes; link = link->next) {
        node = WEIR_CONTAINER_OF(link, weir__inmail, link);
        is_waiting = is_waiting || node == waiting;
        if (!is_waiting || !stays_behind(node))
            return node;
    }
    return NULL;
}

/* The slot is read under the lock: an event without contents may be pushed again at once. */
uint32_t weir__inbox_take(weir__inbox *box, weir__inmail **ret_node)
{
    weir__inmail *waiting = NULL, *node;
    uint32_t slot = 0;

    *ret_node = NULL;
    weir__mutex_lock(&box->lock);
    if (!box->is_asked && box->flushing == 0 && !weir_channel_auto_read(box->channel))
        waiting = first_message_locked(box);
    node = waiting != NULL && box->has_ended ? waiting : first_free_locked(box, waiting);
    if (node != NULL) {
        weir__list_remove(&node->link);
        box->is_discarding = box->is_discarding || node == waiting;
        slot = node->slot == WEIR__READ && box->is_discarding ? WEIR__MAIL_DISCARDED : node->slot;
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
    } else if ((slot & WEIR__MAIL_FLUSHES) != 0) {
        box->flushing--;
    }
    weir__mutex_unlock(&box->lock);
    return slot;
}

bool weir__inbox_answers(weir__inbox *box, const weir__event *event)
{
    bool asks = !event->is_auto && !weir_channel_auto_read(box->channel), has_some, is_claimed;

    weir__mutex_lock(&box->lock);
    if (asks)
        box->is_asked = true;
    has_some = first_message_locked(box) != NULL;
    is_claimed = has_some && claim_locked(box);
    weir__mutex_unlock(&box->lock);
    if (is_claimed)
        weir__inbox_start(box);
    return has_some && asks;
}

void weir__inbox_close(weir__inbox *box, weir__inbox *to)
{
    weir__inmail *node;
    weir__list *link;
    bool is_claimed;

    weir__mutex_lock(&box->lock);
    weir__mutex_lock(&to->lock);
    box->moved_to = to;
    while ((link = weir__list_pop(&box->nodes)) != NULL) {
        node = WEIR_CONTAINER_OF(link, weir__inmail, link);
        append_locked(to, node->is_fixed ? NULL : node, node->slot);
    }
    to->flushing++;
    is_claimed = !weir__list_is_empty(&to->nodes) && claim_locked(to);
    weir__mutex_unlock(&to->lock);
    weir__mutex_unlock(&box->lock);
    if (is_claimed)
        weir__inbox_start(to);
}
