/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Serving until the end. A thread of its own waits for the signals, in sigwaitinfo(2) and not in a
 * loop: that needs no descriptor, so signals arrive also if clients have taken all of them.
 */
#include <errno.h>
#include <signal.h>

#include <weir/error.h>
#include <weir/restart.h>

#include "base/log.h"
#include "bootstrap/server.h"
#include "executor/promise.h"
#include "loop/signals.h"
#include "os/thread.h"

#define DRAIN_NS weir_seconds(10)

struct run {
    weir__server *server;
    weir_promise *over;       /* it is time to stop */
    weir__signal_set signals; /* that the thread waits for; 0 = there is no thread */
    weir__signal_set blocked; /* of them, by us */
    weir__thread thread;
    _Atomic bool is_ending; /* the next signal of this process ends the thread */
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

static void stop_or_hurry(struct run *run, int number)
{
    if (weir_promise_succeed(run->over, NULL) == 0) {
        weir__info("server", "-", "signal %d: draining", number);
    } else {
        weir__info("server", "-", "signal %d: draining no longer", number);
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
    int err = weir_promise_create(NULL, &restarted);

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

static void restart_or_go_on(struct run *run, int number)
{
    int err = restart(run);

    weir__info("server", "-", "signal %d: %s%s", number,
               err == 0 ? "a new process is to replace this one" : "this process goes on: ",
               err == 0 ? "" : weir_error_text(err));
}

static void wait_for_signals(void *arg)
{
    struct run *run = arg;
    weir__signal_event event;

    while (weir__signal_wait(run->signals, &event) == 0) {
        /* Relaxed: the flag is set before the signal is sent, and the kernel orders the two. */
        if (event.is_own && atomic_load_explicit(&run->is_ending, memory_order_relaxed))
            return;
        if (event.number == SIGUSR2)
            restart_or_go_on(run, event.number);
        else
            stop_or_hurry(run, event.number);
    }
}

/* Signals that the program has claimed are its own business. */
static void claim(struct run *run, const int *numbers, size_t count)
{
    weir__signal_set set = 0;

    for (size_t i = 0; i < count; i++)
        (void)weir__signal_set_add(&set, numbers[i]);
    if (weir__signals_claim(set) == 0)
        run->signals |= set;
}

static void end_claims(struct run *run)
{
    weir__signals_unclaim(run->signals);
    weir__signals_unblock(run->blocked);
    run->signals = 0;
}

static int start_hearing(struct run *run)
{
    static const int stop[] = {SIGINT, SIGTERM}, restarts[] = {SIGUSR2};
    int err;

    claim(run, stop, 2);
    if (run->server->restart_argv != NULL)
        claim(run, restarts, 1);
    if (run->signals == 0)
        return 0;
    run->blocked = weir__signal_set_block(run->signals);
    err = weir__thread_start("weir-signals", wait_for_signals, run, &run->thread);
    if (err < 0) {
        weir__error("server", "-", "no thread to wait for signals: %s", weir_error_text(err));
        end_claims(run);
    }
    return err;
}

static void end_hearing(struct run *run)
{
    if (run->signals == 0)
        return;
    atomic_store_explicit(&run->is_ending, true, memory_order_relaxed);
    weir__signal_send_to_thread(run->signals, &run->thread);
    weir__thread_join(&run->thread); /* from here on nobody has `run` */
    end_claims(run);
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
        err = start_hearing(&run);
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
