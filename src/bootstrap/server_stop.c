/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stopping a server: listeners first, so that nobody comes any more and everybody who came has a
 * loop; then the workers, which drain (DESIGN.md 7: executor/lifecycle.c, loop/loop.c), then the
 * boss.
 */
#include <errno.h>

#include <weir/error.h>
#include <weir/restart.h>

#include "base/log.h"
#include "bootstrap/server.h"
#include "executor/executor.h"
#include "executor/group.h"
#include "executor/promise.h"
#include "os/clock.h"

/* The group says itself when a thread has not come back by the deadline; this is for when not even
 * that can be said. */
#define GRACE_NS weir_seconds(1)

static int64_t left_until(int64_t deadline_ns)
{
    int64_t now_ns = weir__monotonic_now();

    if (deadline_ns == WEIR_NEVER)
        return WEIR_NEVER;
    return deadline_ns > now_ns ? deadline_ns - now_ns : 0;
}

/*
 * What the system has accepted for a listener is told before it leaves its loop: a ring may have
 * done so ahead of us, and a close would turn those clients away.
 */
static void stop_accepting(weir_channel *listener, int64_t deadline_ns)
{
    weir_promise *left;

    if (weir_promise_create(NULL, &left) < 0)
        return; /* it closes all the same */
    weir_channel_deregister(listener, left);
    (void)weir_promise_await(left, left_until(deadline_ns));
    weir_promise_release(left);
}

/* The first one takes the others with it, if they have been started. Datagram channels are drained
 * with their group, as connections are. */
static void close_listeners(weir__server *server, int64_t deadline_ns)
{
    size_t count = weir__server_has(server, WEIR__SERVER_STARTED) ? server->count : 1;

    if (server->kind == WEIR_KIND_DATAGRAM) {
        weir__server_mark(server, WEIR__SERVER_DRAINS);
        return;
    }
    for (size_t i = 0; i < count; i++)
        stop_accepting(server->listeners[i].channel, deadline_ns);
    weir_channel_abort(server->listeners[0].channel, NULL);
    for (size_t i = 0; i < count; i++)
        (void)weir_channel_await_closed(server->listeners[i].channel, left_until(deadline_ns));
}

/* The loop tells its members as it does at the deadline. */
static void abort_all(void *executor, int status)
{
    if (status == 0)
        (void)((weir_executor *)executor)->type->drain(executor, true);
    weir__executor_weak_release(executor);
}

static void abort_group(weir_group *group)
{
    weir_executor *executor;

    for (size_t i = 0; (executor = weir__group_weak_retain_at(group, i)) != NULL; i++) {
        if (executor->type->drain == NULL ||
            weir__executor_state(executor) != WEIR_EXECUTOR_SHUTTING_DOWN ||
            weir_execute(executor, abort_all, executor) < 0)
            weir__executor_weak_release(executor);
    }
}

static int end_group(weir__server *server, weir_group *group, int64_t quiet_ns, int64_t deadline_ns)
{
    int64_t left_ns = left_until(deadline_ns);

    (void)weir_group_shutdown(group, quiet_ns < left_ns ? quiet_ns : left_ns, left_ns);
    /* One of the two sees the other: the shutdown changes the state before we look, and who hurries
     * looks at the state after the change. */
    if (atomic_load_explicit(&server->hurries, memory_order_seq_cst))
        abort_group(group);
    return weir_group_await_termination(group, weir__deadline(left_ns, GRACE_NS));
}

/* Nor may a thread that it would have to wait for: that of one of its channels. */
int weir__server_may_wait(const weir__server *server)
{
    int err = weir__promise_may_wait(weir_group_termination(server->workers));

    return err < 0 ? err : weir__promise_may_wait(weir_group_termination(server->boss));
}

/* Relaxed: who has stopped it because it was replaced knows. */
static void tell_manager(weir__server *server)
{
    if (server->tells_manager && !atomic_load_explicit(&server->is_replaced, memory_order_relaxed))
        (void)weir_systemd_notify("STOPPING=1"); /* the log says if it could not be told */
}

int weir__server_stop(weir__server *server, int64_t quiet_ns, int64_t timeout_ns)
{
    int64_t deadline_ns = weir__deadline(weir__monotonic_now(), timeout_ns);
    int err, boss_err = 0;

    /* Acquire-release, as where a restart looks at it: what is left of files was said before. */
    (void)atomic_exchange_explicit(&server->is_stopping, true, memory_order_acq_rel);
    tell_manager(server);
    close_listeners(server, deadline_ns);
    err = end_group(server, server->workers, quiet_ns, deadline_ns);
    if (server->boss != server->workers)
        boss_err = end_group(server, server->boss, quiet_ns, deadline_ns);
    return err < 0 ? err : boss_err;
}

int weir_server_stop(weir_channel *channel, int64_t quiet_ns, int64_t timeout_ns)
{
    weir__server *server = weir__server_of(channel);
    int err;

    if (server == NULL || quiet_ns < 0 || timeout_ns < quiet_ns)
        return -EINVAL;
    err = weir__server_may_wait(server);
    if (err < 0)
        return err;
    err = weir__server_stop(server, quiet_ns, timeout_ns);
    weir__server_let_signals_go(server);
    return err;
}

void weir__server_hurry(weir__server *server)
{
    atomic_store_explicit(&server->hurries, true, memory_order_seq_cst);
    abort_group(server->workers);
    if (server->boss != server->workers)
        abort_group(server->boss);
}
