/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operations of weir/channel.h: immediate on the loop, posted on other threads (mailbox.h has
 * the order). Each starts at the tail of the pipeline.
 */
#include <errno.h>

#include <weir/error.h>

#include "base/log.h"
#include "base/log_limit.h"
#include "base/memory.h"
#include "channel/channel.h"
#include "channel/channel_stats.h"
#include "channel/mailbox.h"
#include "executor/group.h"

/* ---- registration ---- */

static void set_executor(weir_channel *channel, weir_executor *loop)
{
    weir__executor_weak_retain(loop);
    /* Release: writes to the channel happen before the accesses of the new loop. */
    atomic_store_explicit(&channel->executor, loop, memory_order_release);
}

/* Sequentially consistent for weir_channel_set_auto_read. */
static bool claim(weir_channel *channel, weir_executor *loop)
{
    weir_executor *none = NULL;

    weir__executor_weak_retain(loop);
    if (atomic_compare_exchange_strong_explicit(&channel->executor, &none, loop,
                                                memory_order_seq_cst, memory_order_relaxed))
        return true;
    weir__executor_weak_release(loop);
    return false;
}

/*
 * The loop is leased (executor/group.c) from the moment of the request, so that no other channel
 * gets it meanwhile. From here on the channel's membership replaces the lease, or the loop is not
 * needed. The channel keeps the memory of each loop that it was given.
 */
static void run_register(weir_channel *channel, weir__call *call)
{
    weir__channel_do_register(channel, call->done);
    weir__executor_unlease(call->arg);
}

/* No loop owns the channel: it is closed here. */
static void fail_register(weir_channel *channel, weir__call *call, int err)
{
    weir__channel_reject_registration(channel, call->done, err);
    weir__executor_unlease(call->arg);
}

static const weir__operation registration = {.run = run_register, .fail = fail_register};

static bool suits(const weir_channel *channel, const weir_executor *loop)
{
    return loop->type->run_inline == NULL && channel->transport->suits(channel, loop);
}

/* Above the limit of connections it is not the server's fault: INFO. */
static void log_rejection(weir_channel *channel, int err, const char *detail)
{
    static weir__log_limit limits[2];
    enum weir_log_level level = err == WEIR_ETOOMANY ? WEIR_LOG_INFO : WEIR_LOG_WARN;
    char name[WEIR__CHANNEL_LOG_NAME_SIZE];
    weir__log_note note;

    if (weir__log_admit(&limits[err == WEIR_ETOOMANY], level, &note))
        weir_log_write(level, "channel", weir__channel_log_name(channel, name), "closed: %s: %s%s",
                       detail, weir_error_text(err), note.text);
}

/* Rejects a channel before it gets to a loop. A registered channel keeps its loop. */
static void reject(weir_channel *channel, weir_promise *done, int err, const char *detail)
{
    if (weir_channel_is_registered(channel)) {
        weir__call_fail(channel, done, -EALREADY);
        return;
    }
    if (done == NULL)
        log_rejection(channel, err, detail);
    weir__stats_error(channel, err);
    if (weir__channel_is(channel, WEIR__IS_ACTIVE))
        weir__channel_defer_loss(channel, err);
    else
        weir_channel_abort(channel, NULL);
    if (done != NULL)
        (void)weir_promise_fail(done, err, detail);
}

/*
 * Registers a channel without a loop. False if it has or had one. As soon as it has the loop other
 * threads post to it: the mailbox is held, so that the registration comes first.
 */
static bool register_first(weir_channel *channel, weir_executor *loop, weir_promise *done)
{
    weir__call *call;
    bool is_first;

    if (weir__channel_executor(channel) != NULL)
        return false;
    if (weir__in_executor(loop)) {
        is_first = claim(channel, loop);
        if (is_first)
            run_register(channel, &(weir__call){.done = done, .arg = loop});
        return is_first;
    }
    call = weir__call_create(&registration, done, loop, 0);
    if (call == NULL) {
        fail_register(channel, &(weir__call){.done = done, .arg = loop}, -ENOMEM);
        return true;
    }
    if (!weir__mailbox_hold(&channel->mailbox)) {
        weir__call_free(call);
        return false;
    }
    is_first = claim(channel, loop);
    if (is_first)
        weir__mailbox_post_first(&channel->mailbox, &call->mail);
    else
        weir__call_free(call);
    weir__mailbox_resume(&channel->mailbox);
    return is_first;
}

/*
 * The previous loop hands the channel over: from here on the new one owns it, and the mailbox.
 * Other threads may be posting to the previous loop right now, so its memory is kept.
 */
static int change_executor(weir_channel *channel, weir_executor *loop)
{
    weir__channel_extra *extra = weir__channel_extra_get(channel);
    weir__retired *retired = extra != NULL ? weir__zalloc(sizeof(*retired)) : NULL;

    if (retired == NULL)
        return -ENOMEM;
    retired->executor = weir__channel_executor(channel);
    weir__channel_extra_retire(extra, retired);
    set_executor(channel, loop);
    return 0;
}

/* The channel cannot be moved: it stays unregistered, and nothing else takes it. */
static void fail_move(weir_channel *channel, weir__call *call, int err)
{
    weir__call_fail(channel, call->done, err);
    if (!weir_channel_is_registered(channel))
        weir__channel_defer_loss(channel, err);
    weir__executor_unlease(call->arg);
}

static int hand_over(weir_channel *channel, weir__call *call)
{
    int err = weir__channel_check_registration(channel);

    if (err < 0) {
        weir__call_fail(channel, call->done, err);
    } else if (call->arg != weir__channel_executor(channel)) {
        err = change_executor(channel, call->arg);
        if (err < 0) {
            weir__channel_lose(channel, err);
            weir__channel_report(channel, call->done, err, NULL);
        }
    }
    if (err < 0)
        weir__executor_unlease(call->arg);
    return err;
}

/*
 * On the previous loop, or on the executor that replaces it because it has ended; the caller has
 * the mailbox. The registration on the new loop comes before everything that is in the mailbox.
 */
static void move(weir_channel *channel, weir__call *call)
{
    int err = hand_over(channel, call);

    if (err == 0 && !weir__channel_in_loop(channel)) {
        weir__call_become(call, &registration);
        weir__mailbox_post_first(&channel->mailbox, &call->mail);
        return;
    }
    if (err == 0)
        run_register(channel, call);
    weir__call_free(call);
}

static bool has_ended(const weir_executor *executor)
{
    return weir__executor_state(executor) >= WEIR_EXECUTOR_SHUTDOWN;
}

static void on_move(weir__mailbox *box, weir__mail *mail, int status)
{
    weir_channel *channel = WEIR_CONTAINER_OF(box, weir_channel, mailbox);
    weir__call *call = WEIR_CONTAINER_OF(mail, weir__call, mail);
    weir_executor *loop = call->arg;

    if (status == 0 || has_ended(weir__channel_executor(channel))) {
        move(channel, call);
    } else {
        fail_move(channel, call, status);
        weir__call_free(call);
    }
    weir__executor_weak_release(loop); /* the channel has its own reference now */
}

/* Handlers that see `unregistered` may move the channel: after the deregistration has finished. */
static bool hold_to_move(weir_channel *channel)
{
    return weir__channel_in_loop(channel) && !weir__channel_is_detaching(channel) &&
           weir__mailbox_hold(&channel->mailbox);
}

static void move_or_post(weir_channel *channel, weir_executor *loop, weir_promise *done)
{
    weir__call *call = weir__call_create(NULL, done, loop, 0);

    if (call == NULL) {
        fail_move(channel, &(weir__call){.done = done, .arg = loop}, -ENOMEM);
    } else if (hold_to_move(channel)) {
        move(channel, call);
        weir__mailbox_resume(&channel->mailbox);
    } else {
        weir__executor_weak_retain(loop);
        call->mail.fn = on_move;
        weir__mailbox_post(&channel->mailbox, &call->mail);
    }
}

void weir_channel_register(weir_channel *channel, weir_executor *loop, weir_promise *done)
{
    if (!weir__channel_may_begin(channel, done))
        return;
    if (loop == NULL) {
        weir__call_fail(channel, done, -EINVAL);
        return;
    }
    if (!suits(channel, loop)) {
        reject(channel, done, -EINVAL, "the executor cannot run this channel");
        return;
    }
    weir__executor_lease(loop);
    if (!register_first(channel, loop, done))
        move_or_post(channel, loop, done);
}

void weir_group_register(weir_group *group, weir_channel *channel, weir_promise *done)
{
    weir_executor *loop = NULL;
    int err = group != NULL ? weir__group_lease_next(group, &loop) : 0;

    if (err < 0) {
        if (weir__channel_may_begin(channel, done))
            reject(channel, done, err, "the group has no executor for it");
        return;
    }
    weir_channel_register(channel, loop, done);
    if (loop != NULL)
        weir__executor_unlease(loop);
}

/* ---- calls with only a promise, or nothing ---- */

struct operation {
    weir__operation base; /* of a call: first */
    void (*act)(weir_ctx *ctx, weir_promise *done);
    uint32_t flag; /* of the mailbox, which replaces a call without a promise; 0: none */
};

static void run_act(weir_channel *channel, weir__call *call)
{
    const struct operation *operation = (const struct operation *)(const void *)call->operation;

    operation->act(weir__channel_head_tail(channel), call->done);
}

/* Without a promise the want of memory aborts the channel. */
static void fail_act(weir_channel *channel, weir__call *call, int err)
{
    if (err == -ENOMEM)
        weir__channel_fail_posted(channel, call->done, err);
    else
        weir__call_fail(channel, call->done, err);
}

/* A close that did not reach the loop succeeds if the channel is closed. */
static void fail_close(weir_channel *channel, weir__call *call, int err)
{
    if (weir__channel_phase(channel) != WEIR__CLOSED)
        weir__call_fail(channel, call->done, err);
    else if (call->done != NULL)
        (void)weir_promise_succeed(call->done, NULL);
}

static void abort_now(weir_ctx *head_tail, weir_promise *done)
{
    if (weir__channel_may_begin(head_tail->channel, done))
        weir__channel_do_abort(head_tail->channel, done, WEIR_ECLOSED);
}

static void shut_input(weir_ctx *head_tail, weir_promise *done)
{
    if (weir__channel_may_begin(head_tail->channel, done))
        weir__channel_do_shut_input(head_tail->channel, done);
}

static void flush(weir_ctx *head_tail, weir_promise *done)
{
    (void)done;
    weir_flush(head_tail);
}

static void request_read(weir_ctx *head_tail, weir_promise *done)
{
    (void)done;
    weir_request_read(head_tail);
}

enum { DEREGISTER, DISCONNECT, CLOSE, ABORT, SHUTDOWN_OUTPUT, SHUTDOWN_INPUT, FLUSH, REQUEST_READ };

static const struct operation operations[] = {
    [DEREGISTER] = {{run_act, fail_act}, weir_deregister},
    [DISCONNECT] = {{run_act, fail_act}, weir_disconnect},
    [CLOSE] = {{run_act, fail_close}, weir_close, WEIR__DEFERRED_CLOSE},
    [ABORT] = {{run_act, fail_close}, abort_now, WEIR__DEFERRED_ABORT},
    [SHUTDOWN_OUTPUT] = {{run_act, fail_act}, weir_shutdown_output},
    [SHUTDOWN_INPUT] = {{run_act, fail_act}, shut_input},
    [FLUSH] = {{run_act, fail_act}, flush, WEIR__DEFERRED_FLUSH},
    [REQUEST_READ] = {{run_act, fail_act}, request_read, WEIR__DEFERRED_REQUEST_READ},
};

static inline void perform(weir_channel *channel, const struct operation *operation,
                           bool is_immediate, weir_promise *done)
{
    if (is_immediate)
        operation->act(weir__channel_head_tail(channel), done);
    else if (!weir__channel_may_begin(channel, done))
        return;
    else if (done == NULL && operation->flag != 0)
        weir__channel_defer(channel, operation->flag);
    else
        (void)weir__channel_call(channel, &operation->base, done, NULL, 0);
}

void weir_channel_deregister(weir_channel *channel, weir_promise *done)
{
    perform(channel, &operations[DEREGISTER], weir__channel_may_act(channel), done);
}

void weir_channel_disconnect(weir_channel *channel, weir_promise *done)
{
    perform(channel, &operations[DISCONNECT], weir__channel_may_act(channel), done);
}

void weir_channel_close(weir_channel *channel, weir_promise *done)
{
    perform(channel, &operations[CLOSE], weir__channel_may_act(channel), done);
}

void weir_channel_abort(weir_channel *channel, weir_promise *done)
{
    perform(channel, &operations[ABORT], weir__channel_in_loop(channel), done);
}

void weir_channel_shutdown_output(weir_channel *channel, weir_promise *done)
{
    perform(channel, &operations[SHUTDOWN_OUTPUT], weir__channel_may_act(channel), done);
}

void weir_channel_shutdown_input(weir_channel *channel, weir_promise *done)
{
    perform(channel, &operations[SHUTDOWN_INPUT], weir__channel_may_act(channel), done);
}

void weir_channel_flush(weir_channel *channel)
{
    perform(channel, &operations[FLUSH], weir__channel_may_act(channel), NULL);
}

void weir_channel_request_read(weir_channel *channel)
{
    perform(channel, &operations[REQUEST_READ], weir__channel_may_act(channel), NULL);
}

/* ---- calls with addresses ---- */

struct addresses {
    weir_address remote;
    weir_address local;
    bool has_local;
};

static void run_bind(weir_channel *channel, weir__call *call)
{
    struct addresses *addresses = call->arg;

    weir_bind(weir__channel_head_tail(channel), &addresses->local, call->done);
    weir__free(addresses);
}

static void run_connect(weir_channel *channel, weir__call *call)
{
    struct addresses *addresses = call->arg;

    weir_connect(weir__channel_head_tail(channel), &addresses->remote,
                 addresses->has_local ? &addresses->local : NULL, call->done);
    weir__free(addresses);
}

static void fail_addresses(weir_channel *channel, weir__call *call, int err)
{
    weir__call_fail(channel, call->done, err);
    weir__free(call->arg);
}

static const weir__operation bind_operation = {.run = run_bind, .fail = fail_addresses};
static const weir__operation connect_operation = {.run = run_connect, .fail = fail_addresses};

static void post_addresses(weir_channel *channel, const weir__operation *operation,
                           const weir_address *remote, const weir_address *local,
                           weir_promise *done)
{
    struct addresses *addresses;

    if (!weir__channel_may_begin(channel, done))
        return;
    addresses = weir__zalloc(sizeof(*addresses));
    if (addresses == NULL) {
        weir__call_fail(channel, done, -ENOMEM);
        return;
    }
    if (remote != NULL)
        addresses->remote = *remote;
    if (local != NULL)
        addresses->local = *local;
    addresses->has_local = local != NULL;
    (void)weir__channel_call(channel, operation, done, addresses, 0);
}

void weir_channel_bind(weir_channel *channel, const weir_address *local, weir_promise *done)
{
    if (local == NULL)
        weir__call_fail(channel, done, -EINVAL);
    else if (weir__channel_may_act(channel))
        weir_bind(weir__channel_head_tail(channel), local, done);
    else
        post_addresses(channel, &bind_operation, NULL, local, done);
}

void weir_channel_connect(weir_channel *channel, const weir_address *remote,
                          const weir_address *local, weir_promise *done)
{
    if (remote == NULL)
        weir__call_fail(channel, done, -EINVAL);
    else if (weir__channel_may_act(channel))
        weir_connect(weir__channel_head_tail(channel), remote, local, done);
    else
        post_addresses(channel, &connect_operation, remote, local, done);
}

/* ---- calls with a message ---- */

/* The queue counts the message again, unless a handler keeps it: then the marks are checked. */
static void run_write(weir_channel *channel, weir__call *call)
{
    weir__outbound_unreserve(channel, call->number);
    weir_write(weir__channel_head_tail(channel), call->arg, call->done);
    weir__outbound_check_marks(channel);
}

static void run_write_and_flush(weir_channel *channel, weir__call *call)
{
    run_write(channel, call);
    weir_flush(weir__channel_head_tail(channel));
}

static void fail_write(weir_channel *channel, weir__call *call, int err)
{
    weir__outbound_cancel_reserve(channel, call->number);
    weir_msg_release(call->arg);
    weir__channel_fail_posted_write(channel, call->done, err);
}

static const weir__operation write_operation = {.run = run_write, .fail = fail_write};
static const weir__operation write_and_flush_operation = {.run = run_write_and_flush,
                                                          .fail = fail_write};

/* The reservation bounds the memory of posted writes: no other bound applies to calls. */
static void post_write(weir_channel *channel, const weir__operation *operation, weir_msg *msg,
                       weir_promise *done)
{
    int64_t cost = weir__outbound_cost(msg);
    int err;

    if (!weir__channel_may_begin(channel, done)) {
        weir_msg_release(msg);
        return;
    }
    err = weir__outbound_reserve(channel, cost);
    if (err == 0) {
        (void)weir__channel_call(channel, operation, done, msg, cost);
        return;
    }
    weir_msg_release(msg);
    weir__channel_fail_posted_write(channel, done, err);
}

void weir_channel_write(weir_channel *channel, weir_msg *msg, weir_promise *done)
{
    if (weir__channel_may_act(channel))
        weir_write(weir__channel_head_tail(channel), msg, done);
    else
        post_write(channel, &write_operation, msg, done);
}

void weir_channel_write_and_flush(weir_channel *channel, weir_msg *msg, weir_promise *done)
{
    if (weir__channel_may_act(channel))
        weir_write_and_flush(weir__channel_head_tail(channel), msg, done);
    else
        post_write(channel, &write_and_flush_operation, msg, done);
}

static void run_event(weir_channel *channel, weir__call *call)
{
    weir_fire_event(weir__channel_head_tail(channel), call->arg);
}

static void fail_event(weir_channel *channel, weir__call *call, int err)
{
    (void)channel;
    (void)err;
    weir_msg_release(call->arg);
}

static const weir__operation event_operation = {.run = run_event, .fail = fail_event};

void weir_channel_fire_event(weir_channel *channel, weir_msg *event)
{
    if (weir__channel_may_act(channel))
        weir_fire_event(weir__channel_head_tail(channel), event);
    else
        (void)weir__channel_call(channel, &event_operation, NULL, event, 0);
}
