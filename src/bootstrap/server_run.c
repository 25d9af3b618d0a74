/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Running a server until it is closed or a signal arrives. A separate thread waits for the signals,
 * in sigwaitinfo(2) and not in a loop: that needs no descriptor, so signals arrive even if clients
 * hold all descriptors.
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

#define DEFAULT_DRAIN_NS weir_seconds(10)

struct run {
    weir_server *server;
    weir_promise *over;       /* completes when it is time to stop */
    weir__signal_set signals; /* that the thread waits for; 0 = there is no thread */
    weir__signal_set blocked; /* of them, those blocked here */
    weir__thread thread;
    _Atomic bool is_ending; /* the next signal from this process ends the thread */
};

/* ---- blocking signals ---- */

weir__signal_set weir__server_block_signals(char *const *restart_argv)
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

void weir__server_unblock_signals(weir_server *server)
{
    weir__signal_set restart = 0;

    if (server->blocking_thread != weir__thread_id())
        return;
    (void)weir__signal_set_add(&restart, SIGUSR2);
    weir__signal_set_unblock(server->blocked_signals & ~restart);
    server->blocked_signals = 0;
}

/* ---- the signal thread ---- */

static void stop_or_abort(struct run *run, int number)
{
    if (weir_promise_succeed(run->over, NULL) == 0) {
        weir__info("server", "-", "signal %d: draining connections", number);
    } else {
        weir__info("server", "-", "signal %d: aborting connections", number);
        weir__server_abort(run->server);
    }
}

/* May be called after the run: owns a reference to `over`. */
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
        err = weir_server_restart(run->server, NULL, restarted);
        if (err < 0)
            (void)weir_promise_fail(restarted, err, NULL);
    }
    weir_promise_release(restarted);
    return err;
}

static void wait_for_signals(void *arg)
{
    struct run *run = arg;
    weir__signal_event event;

    while (weir__signal_wait(run->signals, &event) == 0) {
        int err;

        /* Relaxed: the flag is set before the signal is sent, and the kernel orders the two. */
        if (event.is_own && atomic_load_explicit(&run->is_ending, memory_order_relaxed))
            return;
        if (event.number != SIGUSR2) {
            stop_or_abort(run, event.number);
            continue;
        }
        err = restart(run);
        if (err < 0)
            weir__error("server", "-", "signal %d: restart failed: %s", event.number,
                        weir_error_text(err));
        else
            weir__info("server", "-", "signal %d: restarting", event.number);
    }
}

/* Skips signals that the program watches itself. */
static void claim(struct run *run, const int *numbers, size_t count)
{
    weir__signal_set set = 0;

    for (size_t i = 0; i < count; i++)
        (void)weir__signal_set_add(&set, numbers[i]);
    if (weir__signals_claim(set) == 0)
        run->signals |= set;
}

static void unclaim(struct run *run)
{
    weir__signals_unclaim(run->signals);
    weir__signals_unblock(run->blocked);
    run->signals = 0;
}

static int start_thread(struct run *run)
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
        weir__error("server", "-", "cannot start the signal thread: %s", weir_error_text(err));
        unclaim(run);
    }
    return err;
}

static void end_thread(struct run *run)
{
    if (run->signals == 0)
        return;
    atomic_store_explicit(&run->is_ending, true, memory_order_relaxed);
    weir__signal_send_to_thread(run->signals, &run->thread);
    weir__thread_join(&run->thread); /* no other thread refers to `run` from here on */
    unclaim(run);
}

/* ---- running ---- */

static int create_over(struct run *run)
{
    weir_promise *closed = weir_channel_closed(run->server->listeners[0].channel);
    int err = closed != NULL ? weir__server_create_promise(run->server->loop, &run->over) : -ENOMEM;

    return err < 0 ? err : weir_promise_cascade(closed, run->over);
}

int weir_server_run(weir_server *server)
{
    struct run run = {.server = server};
    int64_t drain_ns = DEFAULT_DRAIN_NS;
    int err = server != NULL ? weir__server_may_wait(server) : -EINVAL, stop_err;

    if (err < 0)
        return err;
    if (server->drain_timeout_ns != 0)
        drain_ns = server->drain_timeout_ns > 0 ? server->drain_timeout_ns : 0;
    err = create_over(&run);
    if (err == 0)
        err = start_thread(&run);
    if (err == 0)
        err = weir__server_await(server, run.over, WEIR_NEVER);
    stop_err = weir__server_stop(server, 0, drain_ns); /* also if it could not wait */
    if (err == 0)
        err = stop_err;
    end_thread(&run);
    weir__server_unblock_signals(server);
    weir_promise_release(run.over);
    return err;
}
