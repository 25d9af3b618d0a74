/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations on all members of a channel group.
 *
 *      walk, match            -> receivers, sorted into batches of one loop each
 *      batches of other loops -> one task each, which applies the operation there
 *      a mailbox that is in use -> the operation is posted to it, as a single call
 *      this loop's batch      -> applied at once, after the tasks were posted
 *
 * Each receiver gets the operation through the channel's own function, which works on any thread:
 * reports for a loop that takes no task. So the only failure here is want of memory before the
 * first receiver.
 *
 * The order is that of single calls: the receivers of a task are those whose mailboxes could be
 * held. What is posted to them meanwhile runs when the task has applied the operation and resumes
 * them; a channel does not move before that.
 *
 * A message on its way to another loop counts against each receiver's marks from the start, as a
 * single write does. Each batch has a share of the message, of which its loop makes further ones.
 */
#include <errno.h>
#include <stdio.h>

#include <weir/error.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/refcount.h"
#include "channel/channel.h"
#include "channel/channel_group.h"
#include "channel/mailbox.h"

/* An operation, the members it applies to, and its promise. */
struct operation {
    void (*send)(weir_channel *channel, weir_msg *msg,
                 weir_promise *done); /* one of send and act is set */
    void (*act)(weir_channel *channel, weir_promise *done);
    weir_msg *msg;      /* owned */
    weir_promise *done; /* may be NULL */
    weir_match_fn *match;
    void *user_data;
};

struct receiver {
    weir_channel *channel; /* retained */
    weir_executor *executor;
    bool is_counted; /* its marks count the message */
    bool is_held;    /* its mailbox waits for the task */
    size_t here;     /* first of a loop of this thread: the number of its receivers */
};

struct broadcast {
    weir__refs refs;            /* the caller's, each task's, each promise's */
    struct operation operation; /* `done` is retained */
    int64_t cost;

    /* Counted if there is a promise. The thread that makes `waiting` zero completes `done`:
     * acquire-release, so that it sees all failures. */
    _Atomic size_t waiting; /* receivers, plus one until all were reached */
    _Atomic size_t failed;
    _Atomic int err;  /* the first error */
    char reason[160]; /* its text */

    size_t count;
    struct receiver receivers[];
};

/* The receivers of one loop. */
struct batch {
    struct broadcast *broadcast;
    struct receiver *receivers;
    size_t count;
    weir_msg *msg;
};

/* A batch on its way to its loop. It owns references to everything in it. */
struct batch_task {
    weir_task task;
    struct batch batch;
};

/* ---- completion ---- */

static void release(struct broadcast *broadcast)
{
    if (!weir__refs_release(&broadcast->refs))
        return;
    weir_msg_release(broadcast->operation.msg);
    weir_promise_release(broadcast->operation.done);
    weir__free(broadcast);
}

static void complete(struct broadcast *broadcast)
{
    weir_promise *done = broadcast->operation.done;
    size_t failed = atomic_load_explicit(&broadcast->failed, memory_order_relaxed);
    char sentence[sizeof(broadcast->reason) + 64];

    if (failed == 0) {
        (void)weir_promise_succeed(done, (void *)(uintptr_t)broadcast->count);
        return;
    }
    (void)snprintf(sentence, sizeof(sentence), "%zu of %zu failed: %s", failed, broadcast->count,
                   broadcast->reason);
    (void)weir_promise_fail(done, atomic_load_explicit(&broadcast->err, memory_order_relaxed),
                            sentence);
}

static void count_down(struct broadcast *broadcast)
{
    if (broadcast->operation.done != NULL &&
        atomic_fetch_sub_explicit(&broadcast->waiting, 1, memory_order_acq_rel) == 1)
        complete(broadcast);
}

static void note_failure(struct broadcast *broadcast, int err, const char *detail)
{
    int none = 0;

    atomic_fetch_add_explicit(&broadcast->failed, 1, memory_order_relaxed);
    if (atomic_compare_exchange_strong_explicit(&broadcast->err, &none, err, memory_order_relaxed,
                                                memory_order_relaxed))
        (void)snprintf(broadcast->reason, sizeof(broadcast->reason), "%s", detail);
}

/* ---- one receiver ---- */

static void on_receiver_done(weir_promise *promise, void *user_data)
{
    struct broadcast *broadcast = user_data;
    int err = weir_promise_result(promise);

    if (err < 0)
        note_failure(broadcast, err, weir_promise_detail(promise));
    count_down(broadcast);
    release(broadcast);
}

/* Listeners run where the promise completes: counting needs no thread. */
static int make_promise(struct broadcast *broadcast, weir_promise **ret_promise)
{
    weir_promise *promise;
    int err = weir_promise_create(weir_executor_immediate(), &promise);

    if (err < 0)
        return err;
    weir__refs_retain(&broadcast->refs);
    *ret_promise = promise;
    return weir_promise_add_listener(promise, on_receiver_done, broadcast); /* 0: needs no memory */
}

/* Without a promise the channel itself reports that it was not reached. */
static void report_unreached(const struct operation *operation, weir_channel *channel, int err)
{
    if (operation->msg != NULL)
        weir__channel_fail_posted_write(channel, NULL, err);
    else
        weir__channel_fail_posted(channel, NULL, err);
}

/* The receiver is not reached. */
static void skip(struct broadcast *broadcast, weir_channel *channel, int err)
{
    if (broadcast->operation.done == NULL) {
        report_unreached(&broadcast->operation, channel, err);
        return;
    }
    note_failure(broadcast, err, weir_error_text(err));
    count_down(broadcast);
}

/* Prepares a share of the message, and a promise if there is one to complete. */
static int prepare(const struct batch *batch, weir_msg **ret_msg, weir_promise **ret_promise)
{
    const weir_promise *done = batch->broadcast->operation.done;
    weir_msg *msg = NULL;
    int err = 0;

    if (done != NULL && weir_promise_is_cancelled(done))
        return WEIR_ECANCELED;
    if (batch->msg != NULL)
        err = weir_msg_share(batch->msg, &msg);
    if (err == 0 && done != NULL)
        err = make_promise(batch->broadcast, ret_promise);
    if (err < 0)
        weir_msg_release(msg);
    else
        *ret_msg = msg;
    return err;
}

static void apply(const struct batch *batch, weir_channel *channel)
{
    const struct operation *operation = &batch->broadcast->operation;
    weir_promise *promise = NULL;
    weir_msg *msg;
    int err = prepare(batch, &msg, &promise);

    if (err < 0)
        skip(batch->broadcast, channel, err);
    else if (operation->send != NULL)
        operation->send(channel, msg, promise);
    else
        operation->act(channel, promise);
    weir_promise_release(promise);
}

/* The message has reached the channel's loop, which counts it again; or the loop has ended. */
static void apply_counted(const struct batch *batch, weir_channel *channel)
{
    if (weir__channel_in_loop(channel)) {
        weir__outbound_unreserve(channel, batch->broadcast->cost);
        apply(batch, channel);
        weir__outbound_check_marks(channel);
    } else {
        weir__outbound_cancel_reserve(channel, batch->broadcast->cost);
        apply(batch, channel);
    }
}

/* In the place of the mailbox: the operation comes before what was posted since. */
static void apply_held(const struct batch *batch, const struct receiver *receiver)
{
    weir__subject subject;

    weir__channel_enter(receiver->channel, &subject);
    if (receiver->is_counted)
        apply_counted(batch, receiver->channel);
    else
        apply(batch, receiver->channel);
    weir__channel_leave(&subject);
    weir__mailbox_resume(&receiver->channel->mailbox);
}

/* ---- the receivers of one loop ---- */

static void apply_batch(const struct batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        const struct receiver *receiver = &batch->receivers[i];

        if (receiver->is_held)
            apply_held(batch, receiver);
        else
            apply(batch, receiver->channel);
        weir_channel_release(receiver->channel);
    }
}

static void destroy_batch_task(struct batch_task *batch_task)
{
    weir_msg_release(batch_task->batch.msg);
    release(batch_task->batch.broadcast);
    weir__free(batch_task);
}

/* Runs on cancellation, too: the channels report that they have no loop. */
static void on_batch_task(void *arg, int status)
{
    struct batch_task *batch_task = arg;

    (void)status;
    apply_batch(&batch_task->batch);
    destroy_batch_task(batch_task);
}

static struct batch_task *make_batch_task(const struct batch *batch)
{
    struct batch_task *batch_task = weir__zalloc(sizeof(*batch_task));

    if (batch_task == NULL)
        return NULL;
    if (batch->msg != NULL && weir_msg_share(batch->msg, &batch_task->batch.msg) < 0) {
        weir__free(batch_task);
        return NULL;
    }
    weir__refs_retain(&batch->broadcast->refs);
    batch_task->batch.broadcast = batch->broadcast;
    batch_task->batch.receivers = batch->receivers;
    batch_task->batch.count = batch->count;
    weir_task_init(&batch_task->task, on_batch_task, batch_task);
    return batch_task;
}

static void reserve_bytes(const struct batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        struct receiver *receiver = &batch->receivers[i];

        receiver->is_counted =
            weir__outbound_reserve(receiver->channel, batch->broadcast->cost) == 0;
    }
}

/* Posts a batch, whose mailboxes are held, to its loop. Returns false if its channels have to be
 * called one by one. */
static bool post_batch(const struct batch *batch)
{
    weir_executor *executor = batch->receivers->executor;
    struct batch_task *batch_task = make_batch_task(batch);
    int err;

    if (batch_task == NULL)
        return false;
    if (batch->msg != NULL)
        reserve_bytes(batch);
    weir__executor_weak_retain(
        executor); /* the task may free the channels before the post returns */
    err = weir__executor_post(executor, &batch_task->task, WEIR__NOW);
    weir__executor_weak_release(executor);
    if (err < 0)
        destroy_batch_task(batch_task);
    return err == 0;
}

/* ---- all receivers ---- */

static void swap(struct receiver *a, struct receiver *b)
{
    struct receiver other = *a;

    *a = *b;
    *b = other;
}

/* Holds the mailboxes that are empty, and moves their receivers to the front. Returns their
 * number. */
static size_t hold(struct receiver *receivers, size_t count)
{
    size_t held = 0;

    if (receivers->executor == NULL)
        return 0;
    for (size_t i = 0; i < count; i++) {
        receivers[i].is_held = weir__mailbox_hold(&receivers[i].channel->mailbox);
        if (receivers[i].is_held)
            swap(&receivers[held++], &receivers[i]);
    }
    return held;
}

/* The receivers of another loop. */
static void post(const struct batch *batch)
{
    struct batch held = *batch, others = *batch;

    held.count = hold(batch->receivers, batch->count);
    others.receivers += held.count;
    others.count -= held.count;
    if (held.count > 0 && !post_batch(&held))
        apply_batch(&held);
    apply_batch(&others);
}

/* Moves the receivers of the first one's loop to the front and returns their number. There are
 * few loops. */
static size_t gather_batch(struct receiver *receivers, size_t count)
{
    const weir_executor *executor = receivers->executor;
    size_t length = 1;

    for (size_t i = 1; i < count; i++) {
        if (receivers[i].executor == executor)
            swap(&receivers[length++], &receivers[i]);
    }
    return length;
}

/* The calling thread may have several loops, which it drives in turn. The others come first. */
static void dispatch(struct broadcast *broadcast)
{
    struct batch batch = {.broadcast = broadcast, .msg = broadcast->operation.msg};

    for (size_t first = 0; first < broadcast->count; first += batch.count) {
        batch.receivers = &broadcast->receivers[first];
        batch.count = gather_batch(batch.receivers, broadcast->count - first);
        if (weir__in_executor(batch.receivers->executor))
            batch.receivers->here = batch.count;
        else
            post(&batch);
    }
    for (size_t i = 0; i < broadcast->count; i++) {
        batch.receivers = &broadcast->receivers[i];
        batch.count = batch.receivers->here;
        apply_batch(&batch);
    }
}

/* Collects the members that match, retained. The match function is user code, so no lock is
 * held. */
static void collect(struct broadcast *broadcast, weir__member_walk *walk)
{
    const struct operation *operation = &broadcast->operation;
    weir_channel *channel;

    while ((channel = weir__member_walk_next(walk)) != NULL) {
        if (operation->match != NULL && !operation->match(channel, operation->user_data)) {
            weir_channel_release(channel);
            continue;
        }
        broadcast->receivers[broadcast->count++] =
            (struct receiver){.channel = channel, .executor = weir__channel_executor(channel)};
    }
}

static struct broadcast *make_broadcast(const struct operation *operation, size_t receivers)
{
    struct broadcast *broadcast =
        weir__alloc(sizeof(*broadcast) + receivers * sizeof(broadcast->receivers[0]));

    if (broadcast == NULL)
        return NULL;
    weir__refs_init(&broadcast->refs);
    broadcast->operation = *operation;
    if (operation->done != NULL)
        weir_promise_retain(operation->done);
    broadcast->cost = operation->msg != NULL ? weir__outbound_cost(operation->msg) : 0;
    broadcast->count = 0;
    atomic_init(&broadcast->failed, 0);
    atomic_init(&broadcast->err, 0);
    return broadcast;
}

/* Without memory no member is reached. Without a promise each member reports it. */
static void give_up(weir__member_walk *walk, const struct operation *operation)
{
    weir_channel *channel;

    while ((channel = weir__member_walk_next(walk)) != NULL) {
        if (operation->done == NULL &&
            (operation->match == NULL || operation->match(channel, operation->user_data)))
            report_unreached(operation, channel, -ENOMEM);
        weir_channel_release(channel);
    }
    weir_msg_release(operation->msg);
    if (operation->done != NULL)
        (void)weir_promise_fail(operation->done, -ENOMEM, "no memory: no member was reached");
}

static bool may_begin(const weir_channel_group *group, const weir_promise *done)
{
    if (done == NULL || !weir_promise_is_done(done))
        return true;
    if (!weir_promise_is_cancelled(done))
        weir__error_limited("channel_group", weir_channel_group_name(group),
                            "an operation was started with a promise that is already complete");
    return false;
}

static void broadcast_to(weir_channel_group *group, const struct operation *operation)
{
    weir__member_walk walk;
    struct broadcast *broadcast;

    if (!may_begin(group, operation->done)) {
        weir_msg_release(operation->msg);
        return;
    }
    weir__member_walk_begin(&walk, group);
    broadcast = make_broadcast(operation, walk.count);
    if (broadcast == NULL) {
        give_up(&walk, operation);
        return;
    }
    collect(broadcast, &walk);
    atomic_init(&broadcast->waiting, broadcast->count + 1);
    dispatch(broadcast);
    count_down(broadcast);
    release(broadcast);
}

/* ---- public ---- */

void weir_channel_group_write(weir_channel_group *group, weir_msg *msg, weir_promise *done,
                              weir_match_fn *match, void *user_data)
{
    broadcast_to(group, &(const struct operation){.send = weir_channel_write,
                                                  .msg = msg,
                                                  .done = done,
                                                  .match = match,
                                                  .user_data = user_data});
}

void weir_channel_group_write_and_flush(weir_channel_group *group, weir_msg *msg,
                                        weir_promise *done, weir_match_fn *match, void *user_data)
{
    broadcast_to(group, &(const struct operation){.send = weir_channel_write_and_flush,
                                                  .msg = msg,
                                                  .done = done,
                                                  .match = match,
                                                  .user_data = user_data});
}

/* A flush has no promise. */
static void flush(weir_channel *channel, weir_promise *done)
{
    (void)done;
    weir_channel_flush(channel);
}

void weir_channel_group_flush(weir_channel_group *group, weir_match_fn *match, void *user_data)
{
    broadcast_to(group,
                 &(const struct operation){.act = flush, .match = match, .user_data = user_data});
}

void weir_channel_group_close(weir_channel_group *group, weir_promise *done, weir_match_fn *match,
                              void *user_data)
{
    weir__channel_group_shut(group);
    broadcast_to(group, &(const struct operation){.act = weir_channel_close,
                                                  .done = done,
                                                  .match = match,
                                                  .user_data = user_data});
}

void weir_channel_group_abort(weir_channel_group *group, weir_promise *done, weir_match_fn *match,
                              void *user_data)
{
    weir__channel_group_shut(group);
    broadcast_to(group, &(const struct operation){.act = weir_channel_abort,
                                                  .done = done,
                                                  .match = match,
                                                  .user_data = user_data});
}

void weir_channel_group_disconnect(weir_channel_group *group, weir_promise *done,
                                   weir_match_fn *match, void *user_data)
{
    broadcast_to(group, &(const struct operation){.act = weir_channel_disconnect,
                                                  .done = done,
                                                  .match = match,
                                                  .user_data = user_data});
}

void weir_channel_group_deregister(weir_channel_group *group, weir_promise *done,
                                   weir_match_fn *match, void *user_data)
{
    broadcast_to(group, &(const struct operation){.act = weir_channel_deregister,
                                                  .done = done,
                                                  .match = match,
                                                  .user_data = user_data});
}
