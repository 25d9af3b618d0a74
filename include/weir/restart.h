/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/restart.h - replacing a server's process without refusing a connection, and systemd's
 * socket activation and notifications.
 *
 *      old process                                      new process
 *      weir_server_restart -- exec, LISTEN_FDS ------>  adopts the listeners, begins to accept
 *      both accept         <-- NOTIFY_SOCKET, READY=1 - weir_server_start with .inherit
 *      probation: both accept                           serves
 *      done succeeds: weir_server_stop                  is the only one to accept
 *
 * The listening sockets are never closed, so no client is refused. The new process behaves like a
 * systemd service; `.inherit` (weir/server.h) implements that. If it exits before it is ready, or
 * takes too long, the old process continues as before. The same holds during the probation, 5 s by
 * default: if the new process exits for whatever reason, only the connections that it had accepted
 * are lost.
 *
 * The old process serves the connections that it has accepted: a client that has just connected may
 * not have been read from yet. So stopping it should not close them; they end when their clients
 * close them, or at the timeout. `drain_waits` of weir_channel_options does that, and is set for
 * servers with `inherit` or `restart_argv`. A handler that knows where a request ends can close
 * earlier, in its `draining`.
 *
 * systemd's socket units make this unnecessary: they hold the listeners while the service restarts.
 * But services may use it (Type=notify or notify-reload): the manager receives RELOADING=1, then
 * MAINPID= and READY=1 at the end of the probation, or only READY=1 if the old process continues.
 * weir_systemd_notify of the new process goes to the manager after READY=1.
 */
#ifndef WEIR_RESTART_H
#define WEIR_RESTART_H

#include <weir/base.h>
#include <weir/channel.h>
#include <weir/options.h>
#include <weir/server.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Zero means default. Build with WEIR_RESTART_OPTIONS(.argv = argv, ...). */
typedef struct weir_restart_options {
    size_t size;
    char *const *argv;        /* program and arguments, as in weir_child_options; default: the
                                 server's restart_argv. If every loop of the server accepts it needs
                                 restart_argv or inherit: they keep a process that ends from taking
                                 the wake-up of a connection along */
    char *const *extra_env;   /* added to the environment, as in weir_child_options */
    int64_t ready_timeout_ns; /* default 60 s */
    int64_t probation_ns;     /* default: the server's restart_probation_ns; WEIR_OFF = none */
} weir_restart_options;

#define WEIR_RESTART_OPTIONS(...) WEIR_OPTIONS(weir_restart_options, __VA_ARGS__)

/*
 * Starts the program that replaces this process, with the server's listeners. The promise succeeds
 * at the end of the probation, with the weir_child as its value: call weir_server_stop then. If the
 * promise fails, the server continues; its detail says why: -ECHILD (the program exited),
 * -ETIMEDOUT (it was not ready in time, and was ended by SIGTERM and, 5 s later, SIGKILL),
 * WEIR_ECANCELED (the server was stopped meanwhile). The promise may be NULL.
 * Thread: any.  Keeps: done.  Fails: -EINVAL (not started, or no argv), -EALREADY (a restart is in
 * progress), WEIR_ECLOSED, -ENOTSUP (an inproc listener cannot be passed), and as weir_child_spawn.
 */
WEIR_API WEIR_MUST_USE int
weir_server_restart(weir_server *server, const weir_restart_options *options, weir_promise *done);

/* --- systemd ---------------------------------------------------------------------------------- */

/*
 * systemd's protocols, without its library: sockets opened before the program was started
 * (sd_listen_fds(3)), and status notifications (sd_notify(3)). weir_server_restart speaks them,
 * too.
 *
 * Most programs do not need these functions: a server with `.inherit` adopts the sockets and
 * notifies the manager when it is ready.
 */

#define WEIR_SYSTEMD_NAME_SIZE 256 /* the longest name, with its terminating 0 */

typedef struct weir_systemd_listener {
    int descriptor;                    /* close-on-exec is set */
    char name[WEIR_SYSTEMD_NAME_SIZE]; /* FileDescriptorName= of the unit; default "unknown" */
} weir_systemd_listener;

/*
 * Returns the number of descriptors passed to this process by LISTEN_PID, LISTEN_FDS and
 * LISTEN_FDNAMES, and writes up to `capacity` of them; 0 if they are for another process. With
 * `unset_environment` the variables are unset once all descriptors were written, so that the next
 * call finds none; if weir_server_restart started this process, NOTIFY_SOCKET is set to the
 * manager's. Neither is safe while other threads call getenv. Invalid variables are logged.
 * Thread: any; with `unset_environment` the only one.  Gives: descriptors.  Fails: -EINVAL (invalid
 * or too large number), -EBADF (a descriptor is not open).
 */
WEIR_API WEIR_MUST_USE int weir_systemd_listeners(bool unset_environment,
                                                  weir_systemd_listener *ret_listeners,
                                                  size_t capacity);

/*
 * Notifies the manager: "READY=1", "STOPPING=1", "STATUS=text", "WATCHDOG=1", or several lines of
 * them. Returns 1, or 0 if there is no manager (NOTIFY_SOCKET). A process started by
 * weir_server_restart sends READY=1 to the process that it replaces, which notifies the manager.
 * Thread: any.  Fails: -EINVAL (NOTIFY_SOCKET is not an address), -ECONNREFUSED, -EMFILE, ...
 */
WEIR_API int weir_systemd_notify(const char *state);

/*
 * Returns 1 if the manager expects "WATCHDOG=1", and the longest interval between two of them: send
 * it twice as often. Returns 0 if it does not.
 * Thread: any.  Fails: -EINVAL (WATCHDOG_USEC is not a number).
 */
WEIR_API WEIR_MUST_USE int weir_systemd_watchdog(int64_t *ret_interval_ns);

#ifdef __cplusplus
}
#endif

#endif
