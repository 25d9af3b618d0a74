/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stopping a server: listeners first, which accept once more what is in the backlog, so that no
 * connection arrives any more and every accepted one has its loop; then the workers, which drain
 * (executor/lifecycle.c, loop/loop.c), then the boss; or the server's own loop.
 */
#include <errno.h>

#include <weir/error.h>
#include <weir/loop.h>
#include <weir/restart.h>

#include "base/log.h"
#include "bootstrap/server.h"
#include "channel/channel.h"
#include "executor/executor.h"
#include "executor/group.h"
#include "executor/promise.h"
#include "os/clock.h"
#include "transport/listener.h"

/* The group itself reports a thread that misses the deadline; this is for when even that report
 * does not arrive. */
#define GRACE_NS weir_seconds(1)

static int64_t left_until(int64_t deadline_ns)
{
    int64_t now_ns = weir__monotonic_now();

    if (deadline_ns == WEIR_NEVER)
        return WEIR_NEVER;
    return deadline_ns > now_ns ? deadline_ns - now_ns : 0;
}

/* ---- waiting ---- */

static bool runs_loop(const weir_executor *loop)
{
    return loop != NULL && loop->type->threadless && weir__in_executor(loop);
}

bool weir__server_runs_loop(const weir_server *server)
{
    return runs_loop(server->loop);
}

static void wake_loop(weir_promise *promise, void *user_data)
{
    (void)promise;
    (void)user_data;
}

/* If this thread runs the loop, a listener there ends its wait when another thread completes the
 * promise. */
int weir__server_create_promise(weir_executor *loop, weir_promise **ret_promise)
{
    weir_promise *promise;
    int err = weir_promise_create(runs_loop(loop) ? loop : NULL, &promise);

    if (err < 0)
        return err;
    if (runs_loop(loop))
        err = weir_promise_add_listener(promise, wake_loop, NULL);
    if (err < 0)
        weir_promise_release(promise);
    else
        *ret_promise = promise;
    return err;
}

/* A thread of one of its channels would wait for itself. */
int weir__server_may_wait(const weir_server *server)
{
    int err;

    if (server->loop != NULL)
        return weir__promise_may_wait(
            weir__server_runs_loop(server) ? NULL : weir_executor_termination(server->loop));
    err = weir__promise_may_wait(weir_group_termination(server->workers));
    return err < 0 ? err : weir__promise_may_wait(weir_group_termination(server->boss));
}

int weir__server_await(weir_server *server, weir_promise *promise, int64_t timeout_ns)
{
    int64_t deadline_ns = weir__deadline(weir__monotonic_now(), timeout_ns);

    if (!weir__server_runs_loop(server))
        return weir_promise_await(promise, timeout_ns);
    while (!weir_promise_is_done(promise)) {
        int64_t left_ns = left_until(deadline_ns);
        int ran = left_ns > 0 ? weir_loop_run_once(server->loop, left_ns) : -ETIMEDOUT;

        if (ran < 0 && !weir_promise_is_done(promise))
            return ran;
    }
    return 0;
}

/* ---- listeners ---- */

/* On the listener's loop. */
static void on_accept_waiting(void *arg, int status)
{
    weir_channel *listener = arg;

    if (status == 0 && weir__channel_in_loop(listener))
        weir__listener_accept_waiting(listener);
    weir_channel_release(listener);
}

/*
 * Accepts what is in the backlog: the close of the last descriptor of the socket resets it. Not if
 * another process has the socket: that one accepts.
 */
static void accept_waiting(weir_server *server, weir_channel *listener)
{
    weir_executor *loop = weir_channel_executor(listener);

    /* Relaxed, as in weir__server_stop. */
    if (loop == NULL || !weir__listener_can_share(listener) ||
        atomic_load_explicit(&server->is_replaced, memory_order_relaxed))
        return;
    if (weir_execute(loop, on_accept_waiting, weir_channel_retain(listener)) < 0)
        weir_channel_release(listener);
}

/* Deregisters a listener first: so every accepted connection has its loop when the listener has
 * been closed. The task comes before. */
static void stop_accepting(weir_server *server, weir_channel *listener, int64_t deadline_ns)
{
    weir_promise *left;

    if (weir_promise_create(NULL, &left) < 0)
        return; /* it is closed nevertheless */
    accept_waiting(server, listener);
    weir_channel_deregister(listener, left);
    (void)weir__server_await(server, left, left_until(deadline_ns));
    weir_promise_release(left);
}

/* Once started, the first listener closes the others. Datagram channels are drained with their
 * group, as connections are. */
static void close_listeners(weir_server *server, int64_t deadline_ns)
{
    size_t count = weir__server_has(server, WEIR__SERVER_STARTED) ? server->count : 1;

    if (server->kind == WEIR_KIND_DATAGRAM) {
        weir__server_mark(server, WEIR__SERVER_DRAINING);
        return;
    }
    for (size_t i = 0; i < count; i++)
        stop_accepting(server, server->listeners[i].channel, deadline_ns);
    weir_channel_abort(server->listeners[0].channel, NULL);
    for (size_t i = 0; i < count; i++) {
        weir_promise *closed = weir_channel_closed(server->listeners[i].channel);

        if (closed != NULL)
            (void)weir__server_await(server, closed, left_until(deadline_ns));
    }
}

/* ---- executors ---- */

/* On the loop: aborts everything open, as it does at the deadline. */
static void abort_all(void *executor, int status)
{
    if (status == 0)
        (void)((weir_executor *)executor)->type->drain(executor, true);
    weir__executor_weak_release(executor);
}

/* Takes a weak reference. */
static void abort_executor(weir_executor *executor)
{
    if (executor->type->drain == NULL ||
        weir__executor_state(executor) != WEIR_EXECUTOR_SHUTTING_DOWN ||
        weir_execute(executor, abort_all, executor) < 0)
        weir__executor_weak_release(executor);
}

static void abort_group(weir_group *group)
{
    weir_executor *executor;

    for (size_t i = 0; (executor = weir__group_weak_retain_at(group, i)) != NULL; i++)
        abort_executor(executor);
}

static void abort_executors(weir_server *server)
{
    if (server->loop != NULL) {
        weir__executor_weak_retain(server->loop);
        abort_executor(server->loop);
        return;
    }
    abort_group(server->workers);
    if (server->boss != server->workers)
        abort_group(server->boss);
}

void weir__server_abort(weir_server *server)
{
    atomic_store_explicit(&server->is_aborting, true, memory_order_seq_cst);
    abort_executors(server);
}

/* Either this or weir__server_abort sees the other: the shutdown changes the state before the flag
 * is read, and weir__server_abort sets the flag before it reads the state. */
static void abort_if_asked(weir_server *server)
{
    if (atomic_load_explicit(&server->is_aborting, memory_order_seq_cst))
        abort_executors(server);
}

static int end_group(weir_server *server, weir_group *group, int64_t quiet_ns, int64_t deadline_ns)
{
    int64_t left_ns = left_until(deadline_ns);

    (void)weir_group_shutdown(group, quiet_ns < left_ns ? quiet_ns : left_ns, left_ns);
    abort_if_asked(server);
    return weir_group_await_termination(group, weir__deadline(left_ns, GRACE_NS));
}

static int end_loop(weir_server *server, int64_t quiet_ns, int64_t deadline_ns)
{
    weir_promise *termination = weir_executor_termination(server->loop);
    int64_t left_ns = left_until(deadline_ns);
    int err =
        weir_executor_shutdown(server->loop, quiet_ns < left_ns ? quiet_ns : left_ns, left_ns);

    if (err < 0)
        return err;
    abort_if_asked(server);
    err = weir__server_await(server, termination, weir__deadline(left_ns, GRACE_NS));
    return err < 0 ? err : weir_promise_result(termination);
}

int weir__server_stop(weir_server *server, int64_t quiet_ns, int64_t timeout_ns)
{
    int64_t deadline_ns = weir__deadline(weir__monotonic_now(), timeout_ns);
    int err, boss_err = 0;

    /* Acquire-release, paired with hand_over in restart.c: a restart either sees this, or has left
     * the files of Unix sockets to the new process before. */
    (void)atomic_exchange_explicit(&server->is_stopping, true, memory_order_acq_rel);
    /* Relaxed: a caller that stops the server because it was replaced knows that already. */
    if (server->notifies_manager &&
        !atomic_load_explicit(&server->is_replaced, memory_order_relaxed))
        (void)weir_systemd_notify("STOPPING=1"); /* logs its failures */
    close_listeners(server, deadline_ns);
    if (server->loop != NULL)
        return end_loop(server, quiet_ns, deadline_ns);
    err = end_group(server, server->workers, quiet_ns, deadline_ns);
    if (server->boss != server->workers)
        boss_err = end_group(server, server->boss, quiet_ns, deadline_ns);
    return err < 0 ? err : boss_err;
}

int weir_server_stop(weir_server *server, int64_t quiet_ns, int64_t timeout_ns)
{
    int err;

    if (server == NULL || quiet_ns < 0 || timeout_ns < quiet_ns)
        return -EINVAL;
    err = weir__server_may_wait(server);
    if (err < 0)
        return err;
    err = weir__server_stop(server, quiet_ns, timeout_ns);
    weir__server_unblock_signals(server);
    return err;
}
