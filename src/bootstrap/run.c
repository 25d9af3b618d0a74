/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Serving until the end. The signals have a loop of their own: those of the server's groups are
 * about to end when the second one comes.
 */
#include <errno.h>
#include <signal.h>

#include <weir/error.h>
#include <weir/restart.h>
#include <weir/signals.h>

#include "base/log.h"
#include "base/thread.h"
#include "bootstrap/server.h"
#include "executor/promise.h"

#define DRAIN_NS weir_seconds(10)
#define RETRY_NS weir_seconds(1)

struct run {
    weir__server *server;
    weir_promise *over; /* it is time to stop */
    weir_group *group;  /* of the one loop */
    weir_signals *signals;
    weir_signals *restart_signals; /* NULL = it is not to be restarted */
};

/* ---- before and after ---- */

weir__signal_set weir__server_hold_signals(char *const *restart_argv)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGUSR2};
    weir__signal_set set = 0;

    if (restart_argv == NULL)
        return 0;
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        if (weir__signal_is_default(numbers[i]))
            (void)weir__signal_set_add(&set, numbers[i]);
    return weir__signal_set_block(set);
}

void weir__server_let_signals_go(weir__server *server)
{
    weir__signal_set restart = 0;

    if (server->holder != weir__thread_id())
        return;
    (void)weir__signal_set_add(&restart, SIGUSR2);
    weir__signal_set_unblock(server->held & ~restart);
    server->held = 0;
}

/* ---- signals ---- */

static void on_signal(weir_signals *signals, const weir_signal *signal, void *user_data)
{
    struct run *run = user_data;

    (void)signals;
    if (weir_promise_succeed(run->over, NULL) == 0) {
        weir__info("server", "-", "signal %d: draining", signal->number);
    } else {
        weir__info("server", "-", "signal %d: draining no longer", signal->number);
        weir__server_hurry(run->server);
    }
}

/* The run may be over by now: what it waits for is kept for this. */
static void on_restarted(weir_promise *restarted, void *over)
{
    if (weir_promise_result(restarted) == 0)
        (void)weir_promise_succeed(over, NULL);
    weir_promise_release(over);
}

static int restart(struct run *run)
{
    weir_promise *restarted;
    int err = weir_promise_create(weir_group_at(run->group, 0), &restarted);

    if (err < 0)
        return err;
    err = weir_promise_add_listener(restarted, on_restarted, weir_promise_retain(run->over));
    if (err < 0) {
        weir_promise_release(run->over);
    } else {
        err = weir_server_restart(run->server->listeners[0].channel, NULL, restarted);
        if (err < 0)
            (void)weir_promise_fail(restarted, err, NULL);
    }
    weir_promise_release(restarted);
    return err;
}

static void on_restart_signal(weir_signals *signals, const weir_signal *signal, void *user_data)
{
    int err = restart(user_data);

    (void)signals;
    weir__info("server", "-", "signal %d: %s%s", signal->number,
               err == 0 ? "a new process is to replace this one" : "this process goes on: ",
               err == 0 ? "" : weir_error_text(err));
}

static int hear_restart_signal(struct run *run)
{
    int err;

    if (run->server->restart_argv == NULL)
        return 0;
    err = weir_signals_create(
        weir_group_at(run->group, 0),
        WEIR_SIGNALS_OPTIONS(.numbers = {SIGUSR2}, .received = on_restart_signal, .user_data = run),
        &run->restart_signals);
    return err == -EBUSY ? 0 : err;
}

/* Signals that the program has taken for itself are its own business. */
static int hear_signals(struct run *run)
{
    int err = weir_group_create(
        WEIR_GROUP_OPTIONS(.threads = 1, .io = WEIR_IO_EPOLL, .name = "signals"), &run->group);

    if (err == 0)
        err = weir_signals_create(weir_group_at(run->group, 0),
                                  WEIR_SIGNALS_OPTIONS(.numbers = {SIGINT, SIGTERM},
                                                       .received = on_signal, .user_data = run),
                                  &run->signals);
    if (err == 0 || err == -EBUSY)
        err = hear_restart_signal(run);
    return err;
}

static void end_hearing(struct run *run)
{
    weir_signals_release(run->restart_signals); /* NULL is fine, as below */
    weir_signals_release(run->signals);
    weir_group_release(run->group); /* waits for its thread: from here on nobody has `run` */
    run->restart_signals = NULL;
    run->signals = NULL;
    run->group = NULL;
}

static bool is_short_of_descriptors(int err)
{
    return err == -EMFILE || err == -ENFILE;
}

/*
 * The server has been accepting for a while: those who came may have the last descriptors. That is
 * no reason to leave them: the signals are heard when there are some again, and do until then what
 * they did before.
 */
static int hear_signals_at_last(struct run *run)
{
    int err = hear_signals(run);

    while (is_short_of_descriptors(err) && weir_promise_await(run->over, RETRY_NS) == -ETIMEDOUT) {
        end_hearing(run);
        err = hear_signals(run);
    }
    return is_short_of_descriptors(err) ? 0 : err;
}

static int hear_closing(struct run *run)
{
    weir_promise *closed = weir_channel_closed(run->server->listeners[0].channel);
    int err = closed != NULL ? weir_promise_create(NULL, &run->over) : -ENOMEM;

    return err < 0 ? err : weir_promise_cascade(closed, run->over);
}

int weir_server_run(weir_channel *channel)
{
    struct run run = {.server = weir__server_of(channel)};
    int err = run.server != NULL ? weir__server_may_wait(run.server) : -EINVAL;

    if (err == 0)
        err = hear_closing(&run);
    if (err == 0)
        err = hear_signals_at_last(&run);
    if (err == 0)
        err = weir_promise_await(run.over, WEIR_NEVER);
    if (err == 0)
        err = weir__server_stop(run.server, 0, DRAIN_NS);
    end_hearing(&run);
    if (run.server != NULL)
        weir__server_let_signals_go(run.server);
    weir_promise_release(run.over);
    return err;
}
