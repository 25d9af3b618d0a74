/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operations of weir/channel.h: at once on the loop, as a posted call on other threads. Each
 * starts at the tail of the pipeline.
 */
#include <errno.h>

#include <weir/error.h>

#include "base/log.h"
#include "base/log_limit.h"
#include "base/memory.h"
#include "channel/channel.h"
#include "channel/channel_stats.h"
#include "channel/node_pool.h"
#include "channel/posted_call.h"
#include "executor/group.h"

/* Posts a call without an argument. */
static void post(weir_channel *channel, weir__posted_call_fn *fn, weir_promise *done)
{
    int err;

    if (!weir__channel_may_begin(channel, done))
        return;
    err =
        weir__posted_call_post(channel, &(const weir__posted_call){.fn = fn, .done = done}, false);
    if (err < 0)
        weir__channel_fail_posted(channel, done, err);
}

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
static void on_register(weir_channel *channel, weir__posted_call *call, int status)
{
    if (status == 0)
        weir__channel_do_register(channel, call->done);
    else
        weir__channel_reject_registration(channel, call->done,
                                          status); /* no loop owns it: closed here */
    weir__executor_unlease(call->arg);
}

static void register_on(weir_channel *channel, weir_executor *loop, weir_promise *done)
{
    weir__posted_call call = {.fn = on_register, .done = done, .arg = loop};
    int err = 0;

    if (weir__channel_in_loop(channel))
        on_register(channel, &call, 0);
    else
        err = weir__posted_call_post(channel, &call, false);
    if (err < 0)
        on_register(channel, &call, err);
}

/*
 * The previous loop hands the channel over: from here on the new one owns it. Calls that other
 * threads posted to the previous loop are forwarded. They may be posting right now, so its memory
 * is kept.
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

/*
 * As soon as the channel has the loop, other threads post the deferred task to it. If the loop
 * rejects the channel, this thread closes it, and the deferred task must not run meanwhile - which
 * it would, on the global executor, if the loop has ended. So it is paused until the registration
 * is settled. If it was posted before, it is on its way to the current loop.
 */
static bool pause_deferred(weir_channel *channel, const weir_executor *loop)
{
    return !weir__in_executor(loop) && weir__channel_pause_deferred(channel);
}

static void resume_deferred(weir_channel *channel, bool paused)
{
    if (paused)
        weir__channel_resume_deferred(channel);
}

static void move(weir_channel *channel, weir_executor *loop, weir_promise *done)
{
    int err = weir__channel_check_registration(channel);
    bool paused;

    if (err < 0) {
        weir__posted_call_fail(channel, done, err);
        weir__executor_unlease(loop);
        return;
    }
    paused = pause_deferred(channel, loop);
    if (loop != weir__channel_executor(channel))
        err = change_executor(channel, loop);
    if (err == 0) {
        register_on(channel, loop, done);
    } else {
        weir__channel_lose(channel, err);
        weir__channel_report(channel, done, err, NULL);
        weir__executor_unlease(loop);
    }
    resume_deferred(channel, paused);
}

/* Registers a channel without a loop. False if it has or had one. */
static bool register_first(weir_channel *channel, weir_executor *loop, weir_promise *done)
{
    bool paused = pause_deferred(channel, loop), is_first = claim(channel, loop);

    if (is_first)
        register_on(channel, loop, done);
    resume_deferred(channel, paused);
    return is_first;
}

/* The call did not reach the previous loop, which has to hand the channel over. */
static void fail_move(weir_channel *channel, weir_executor *loop, weir_promise *done, int err)
{
    weir__posted_call_fail(channel, done, err);
    if (!weir_channel_is_registered(channel))
        weir__channel_defer_loss(channel, err);
    weir__executor_unlease(loop);
}

/* A move that the deferred task makes, because the previous loop has ended. */
struct weir__move {
    struct weir__move *next;
    weir_executor *loop; /* weakly retained, and leased */
    weir_promise *done;  /* retained; may be NULL */
};

static bool has_ended(const weir_executor *executor)
{
    return weir__executor_state(executor) >= WEIR_EXECUTOR_SHUTDOWN;
}

static int defer_move(weir_channel *channel, weir_executor *loop, weir_promise *done)
{
    weir__channel_extra *extra = weir__channel_extra_get(channel);
    struct weir__move *move = extra != NULL ? weir__node_alloc() : NULL;

    if (move == NULL)
        return -ENOMEM;
    weir__executor_weak_retain(loop);
    move->loop = loop;
    move->done = done != NULL ? weir_promise_retain(done) : NULL;
    move->next = atomic_load_explicit(&extra->moves, memory_order_relaxed);
    /* Release: pairs with take_moves. */
    while (!atomic_compare_exchange_weak_explicit(&extra->moves, &move->next, move,
                                                  memory_order_release, memory_order_relaxed))
        ;
    weir__channel_defer(channel, WEIR__DEFERRED_MOVE);
    return 0;
}

static void on_move(weir_channel *channel, weir__posted_call *call, int status)
{
    weir_executor *loop = call->arg;

    if (status < 0 && has_ended(weir__channel_executor(channel)))
        status = defer_move(channel, loop, call->done);
    else if (status == 0)
        move(channel, loop, call->done);
    if (status < 0)
        fail_move(channel, loop, call->done, status);
    weir__executor_weak_release(loop);
}

static void post_move(weir_channel *channel, weir_executor *loop, weir_promise *done)
{
    int err;

    weir__executor_weak_retain(loop);
    err = weir__posted_call_post(
        channel, &(const weir__posted_call){.fn = on_move, .arg = loop, .done = done}, false);
    if (err < 0) {
        fail_move(channel, loop, done, err);
        weir__executor_weak_release(loop);
    }
}

/* Takes all pending moves, in order. */
static struct weir__move *take_moves(weir__channel_extra *extra)
{
    struct weir__move *move = atomic_exchange_explicit(&extra->moves, NULL, memory_order_acquire),
                      *next, *first = NULL;

    for (; move != NULL; move = next) {
        next = move->next;
        move->next = first;
        first = move;
    }
    return first;
}

/* After the first move the new loop owns the channel; the others are posted to it. */
void weir__channel_do_moves(weir_channel *channel)
{
    struct weir__move *pending = take_moves(weir__channel_extra_if_any(channel)), *next;

    for (bool is_first = true; pending != NULL; pending = next, is_first = false) {
        next = pending->next;
        if (is_first) {
            move(channel, pending->loop, pending->done);
        } else {
            post_move(channel, pending->loop, pending->done);
        }
        weir__executor_weak_release(pending->loop);
        weir_promise_release(pending->done);
        weir__node_free(pending);
    }
}

/* Handlers that see `unregistered` may move the channel: after the deregistration has finished. */
static bool can_move_now(const weir_channel *channel)
{
    return weir__channel_in_loop(channel) && !weir__channel_has(channel, WEIR__DETACHING);
}

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
        weir__posted_call_fail(channel, done, -EALREADY);
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

void weir_channel_register(weir_channel *channel, weir_executor *loop, weir_promise *done)
{
    if (!weir__channel_may_begin(channel, done))
        return;
    if (loop == NULL) {
        weir__posted_call_fail(channel, done, -EINVAL);
        return;
    }
    if (!suits(channel, loop)) {
        reject(channel, done, -EINVAL, "the executor cannot run this channel");
        return;
    }
    weir__executor_lease(loop);
    if (register_first(channel, loop, done))
        return;
    if (can_move_now(channel))
        move(channel, loop, done);
    else
        post_move(channel, loop, done);
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

/* ---- calls with only a promise ---- */

static void on_deregister(weir_channel *channel, weir__posted_call *call, int status)
{
    if (status == 0)
        weir_deregister(weir__channel_head_tail(channel), call->done);
    else
        weir__posted_call_fail(channel, call->done, status);
}

void weir_channel_deregister(weir_channel *channel, weir_promise *done)
{
    if (weir__channel_in_loop(channel))
        weir_deregister(weir__channel_head_tail(channel), done);
    else
        post(channel, on_deregister, done);
}

static void on_disconnect(weir_channel *channel, weir__posted_call *call, int status)
{
    if (status == 0)
        weir_disconnect(weir__channel_head_tail(channel), call->done);
    else
        weir__posted_call_fail(channel, call->done, status);
}

void weir_channel_disconnect(weir_channel *channel, weir_promise *done)
{
    if (weir__channel_in_loop(channel))
        weir_disconnect(weir__channel_head_tail(channel), done);
    else
        post(channel, on_disconnect, done);
}

/*
 * A close that did not reach the loop succeeds if the channel is closed. If not, and there is no
 * promise, the channel is aborted: a close is never lost.
 */
static void fail_close(weir_channel *channel, weir_promise *done, int err)
{
    if (weir__channel_phase(channel) != WEIR__CLOSED) {
        weir__posted_call_fail(channel, done, err);
        if (done == NULL)
            weir__channel_defer(channel, WEIR__DEFERRED_ABORT);
    } else if (done != NULL) {
        (void)weir_promise_succeed(done, NULL);
    }
}

static void on_close(weir_channel *channel, weir__posted_call *call, int status)
{
    if (status == 0)
        weir_close(weir__channel_head_tail(channel), call->done);
    else
        fail_close(channel, call->done, status);
}

void weir_channel_close(weir_channel *channel, weir_promise *done)
{
    if (weir__channel_in_loop(channel))
        weir_close(weir__channel_head_tail(channel), done);
    else
        post(channel, on_close, done);
}

static void on_abort(weir_channel *channel, weir__posted_call *call, int status)
{
    if (status == 0)
        weir__channel_do_abort(channel, call->done, WEIR_ECLOSED);
    else
        fail_close(channel, call->done, status);
}

/* Needs no memory without a promise. */
void weir_channel_abort(weir_channel *channel, weir_promise *done)
{
    if (!weir__channel_may_begin(channel, done))
        return;
    if (weir__channel_in_loop(channel))
        weir__channel_do_abort(channel, done, WEIR_ECLOSED);
    else if (done == NULL)
        weir__channel_defer(channel, WEIR__DEFERRED_ABORT);
    else
        post(channel, on_abort, done);
}

static void on_shutdown_output(weir_channel *channel, weir__posted_call *call, int status)
{
    if (status == 0)
        weir_shutdown_output(weir__channel_head_tail(channel), call->done);
    else
        weir__posted_call_fail(channel, call->done, status);
}

void weir_channel_shutdown_output(weir_channel *channel, weir_promise *done)
{
    if (weir__channel_in_loop(channel))
        weir_shutdown_output(weir__channel_head_tail(channel), done);
    else
        post(channel, on_shutdown_output, done);
}

static void on_shut_input(weir_channel *channel, weir__posted_call *call, int status)
{
    if (status == 0)
        weir__channel_do_shut_input(channel, call->done);
    else
        weir__posted_call_fail(channel, call->done, status);
}

void weir_channel_shutdown_input(weir_channel *channel, weir_promise *done)
{
    if (!weir__channel_in_loop(channel))
        post(channel, on_shut_input, done);
    else if (weir__channel_may_begin(channel, done))
        weir__channel_do_shut_input(channel, done);
}

static void on_flush(weir_channel *channel, weir__posted_call *call, int status)
{
    (void)call;
    if (status == 0)
        weir_flush(weir__channel_head_tail(channel));
    else
        weir__channel_fail_posted(channel, NULL, status);
}

void weir_channel_flush(weir_channel *channel)
{
    if (weir__channel_in_loop(channel))
        weir_flush(weir__channel_head_tail(channel));
    else
        post(channel, on_flush, NULL);
}

static void on_request_read(weir_channel *channel, weir__posted_call *call, int status)
{
    (void)call;
    if (status == 0)
        weir_request_read(weir__channel_head_tail(channel));
    else
        weir__channel_fail_posted(channel, NULL, status);
}

void weir_channel_request_read(weir_channel *channel)
{
    if (weir__channel_in_loop(channel))
        weir_request_read(weir__channel_head_tail(channel));
    else
        post(channel, on_request_read, NULL);
}

/* ---- calls with addresses ---- */

struct addresses {
    weir_address remote;
    weir_address local;
    bool has_local;
};

static void on_bind(weir_channel *channel, weir__posted_call *call, int status)
{
    struct addresses *addresses = call->arg;

    if (status == 0)
        weir_bind(weir__channel_head_tail(channel), &addresses->local, call->done);
    else
        weir__posted_call_fail(channel, call->done, status);
    weir__free(addresses);
}

static void on_connect(weir_channel *channel, weir__posted_call *call, int status)
{
    struct addresses *addresses = call->arg;

    if (status == 0)
        weir_connect(weir__channel_head_tail(channel), &addresses->remote,
                     addresses->has_local ? &addresses->local : NULL, call->done);
    else
        weir__posted_call_fail(channel, call->done, status);
    weir__free(addresses);
}

static void post_addresses(weir_channel *channel, weir__posted_call_fn *fn,
                           const weir_address *remote, const weir_address *local,
                           weir_promise *done)
{
    struct addresses *addresses;
    int err = -ENOMEM;

    if (!weir__channel_may_begin(channel, done))
        return;
    addresses = weir__zalloc(sizeof(*addresses));
    if (addresses != NULL) {
        if (remote != NULL)
            addresses->remote = *remote;
        if (local != NULL)
            addresses->local = *local;
        addresses->has_local = local != NULL;
        err = weir__posted_call_post(
            channel, &(const weir__posted_call){.fn = fn, .arg = addresses, .done = done}, false);
    }
    if (err < 0) {
        weir__free(addresses);
        weir__posted_call_fail(channel, done, err);
    }
}

void weir_channel_bind(weir_channel *channel, const weir_address *local, weir_promise *done)
{
    if (local == NULL)
        weir__posted_call_fail(channel, done, -EINVAL);
    else if (weir__channel_in_loop(channel))
        weir_bind(weir__channel_head_tail(channel), local, done);
    else
        post_addresses(channel, on_bind, NULL, local, done);
}

void weir_channel_connect(weir_channel *channel, const weir_address *remote,
                          const weir_address *local, weir_promise *done)
{
    if (remote == NULL)
        weir__posted_call_fail(channel, done, -EINVAL);
    else if (weir__channel_in_loop(channel))
        weir_connect(weir__channel_head_tail(channel), remote, local, done);
    else
        post_addresses(channel, on_connect, remote, local, done);
}

/* ---- calls with a message ---- */

/* The queue counts the message again, unless a handler keeps it: then the marks are checked. */
static void on_write(weir_channel *channel, weir__posted_call *call, int status)
{
    if (status == 0) {
        weir__outbound_unreserve(channel, call->number);
        weir_write(weir__channel_head_tail(channel), call->arg, call->done);
        weir__outbound_check_marks(channel);
        return;
    }
    weir__outbound_cancel_reserve(channel, call->number);
    weir_msg_release(call->arg);
    weir__channel_fail_posted_write(channel, call->done, status);
}

static void on_write_and_flush(weir_channel *channel, weir__posted_call *call, int status)
{
    on_write(channel, call, status);
    if (status == 0)
        weir_flush(weir__channel_head_tail(channel));
}

static void post_write(weir_channel *channel, weir__posted_call_fn *fn, weir_msg *msg,
                       weir_promise *done)
{
    int64_t cost = weir__outbound_cost(msg);
    int err = weir__outbound_reserve(channel, cost);

    if (err == 0) {
        err = weir__posted_call_post(
            channel, &(const weir__posted_call){.fn = fn, .arg = msg, .number = cost, .done = done},
            fn == on_write);
        if (err == 0)
            return;
        weir__outbound_cancel_reserve(channel, cost);
    }
    weir_msg_release(msg);
    weir__channel_fail_posted_write(channel, done, err);
}

void weir_channel_write(weir_channel *channel, weir_msg *msg, weir_promise *done)
{
    if (weir__channel_in_loop(channel))
        weir_write(weir__channel_head_tail(channel), msg, done);
    else if (weir__channel_may_begin(channel, done))
        post_write(channel, on_write, msg, done);
    else
        weir_msg_release(msg);
}

void weir_channel_write_and_flush(weir_channel *channel, weir_msg *msg, weir_promise *done)
{
    if (weir__channel_in_loop(channel))
        weir_write_and_flush(weir__channel_head_tail(channel), msg, done);
    else if (weir__channel_may_begin(channel, done))
        post_write(channel, on_write_and_flush, msg, done);
    else
        weir_msg_release(msg);
}

static void on_event(weir_channel *channel, weir__posted_call *call, int status)
{
    if (status == 0)
        weir_fire_event(weir__channel_head_tail(channel), call->arg);
    else
        weir_msg_release(call->arg);
}

void weir_channel_fire_event(weir_channel *channel, weir_msg *event)
{
    if (weir__channel_in_loop(channel))
        weir_fire_event(weir__channel_head_tail(channel), event);
    else if (weir__posted_call_post(
                 channel, &(const weir__posted_call){.fn = on_event, .arg = event}, false) < 0)
        weir_msg_release(event);
}
