/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/restart.h - a server that is replaced by a new process, and no client notices.
 *
 *      old process                                      new process
 *      weir_server_restart -- starts, LISTEN_FDS ---->  adopts the listeners, begins to accept
 *      both accept         <-- NOTIFY_SOCKET, READY=1 - weir_server_start with .inherit
 *      the probation: both accept                       serves
 *      done succeeds: weir_server_stop                  accepts all that come
 *
 * The listening sockets are never closed, so nobody is refused. What the new process has to do is
 * what a service of systemd's does, and `.inherit` of weir/server.h does it. If it ends before it
 * is ready, or takes too long, the old one goes on as if nothing had been. The same holds for the
 * probation, 5 s by default: both processes serve, and if the new one ends in that time, in
 * whatever way, the old one goes on. Only the connections that the new one had accepted are lost.
 *
 * Connections that the old process has accepted are its own to serve: a client that has just come
 * has perhaps not been read from yet. So they should not be closed when it is stopped, but when
 * their clients are through, or when the time is up: `drain_waits` of weir_channel_options says so,
 * and is set for servers with `inherit` or `restart_argv`; a handler that knows where a request
 * ends does better, with its `draining`.
 *
 * Under systemd there is no need for this: its socket unit holds the listeners while the service is
 * restarted. But a service may (Type=notify, or notify-reload): the manager is told RELOADING=1,
 * and MAINPID= and READY=1 at the end of the probation, or only READY=1 if this one goes on. The
 * weir_systemd_notify of the new process is for the manager from READY=1 on.
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
    char *const *argv;        /* the program and its arguments, as weir_child_options has them;
                                 default: the server's restart_argv */
    char *const *extra_env;   /* the same: added to the environment */
    int64_t ready_timeout_ns; /* default 60 s */
    int64_t probation_ns;     /* default: the server's restart_probation_ns; WEIR_OFF = none */
} weir_restart_options;

#define WEIR_RESTART_OPTIONS(...) WEIR_OPTIONS(weir_restart_options, __VA_ARGS__)

/*
 * Starts the program that is to replace this process, with the server's listeners. The promise
 * succeeds at the end of the probation, and its value is the weir_child: now it is time for
 * weir_server_stop. It fails, with a sentence, if that does not come to be, and the server goes on:
 * -ECHILD if the program has ended before, -ETIMEDOUT if it took too long - then it was ended, by
 * SIGTERM and, 5 s later, SIGKILL - and WEIR_ECANCELED if the server was stopped meanwhile. NULL:
 * nobody waits.
 * Thread: any.  Keeps: done.  Fails: -EINVAL (no server, or one that has not started, no argv),
 * -EALREADY (it is under way), WEIR_ECLOSED, -ENOTSUP (a listener that no process can be handed:
 * inproc), and as weir_child_spawn.
 */
WEIR_API int weir_server_restart(weir_server *server, const weir_restart_options *options,
                                 weir_promise *done);

/* --- systemd ---------------------------------------------------------------------------------- */

/*
 * What a service manager hands over and wants to hear, by systemd's protocol:
 * sockets that were opened before the program was started (sd_listen_fds(3)), and how it fares
 * (sd_notify(3)). It needs no library of systemd's, and whoever speaks the protocol will do:
 * weir_server_restart is such a one.
 *
 * Most programs need none of this: with `.inherit` of weir/server.h a server takes what it is
 * handed, and says when it is ready.
 */

#define WEIR_SYSTEMD_NAME_SIZE 256 /* the longest name, and the 0 behind it */

/* A descriptor that was handed over. */
typedef struct weir_systemd_listener {
    int descriptor;                    /* closed on exec from now on */
    char name[WEIR_SYSTEMD_NAME_SIZE]; /* FileDescriptorName= of the unit; "unknown" if none is said
                                        */
} weir_systemd_listener;

/*
 * Writes up to `capacity` of the descriptors that this process was handed by LISTEN_PID, LISTEN_FDS
 * and LISTEN_FDNAMES, and returns how many there are; 0 if they were meant for another process.
 * With `forget` the variables are unset when all were written, so that the next call finds none,
 * and NOTIFY_SOCKET is set to that of the manager if we were started by weir_server_restart:
 * getenv in other threads does not like that. What makes no sense is logged.
 * Thread: any; with `forget` best the only one.  Gives: descriptors.  Fails: -EINVAL (no numbers,
 * or too large ones), -EBADF (a descriptor is not open).
 */
WEIR_API int weir_systemd_listeners(weir_systemd_listener *ret_listeners, size_t capacity,
                                    bool forget);

/*
 * Tells the manager something: "READY=1", "STOPPING=1", "STATUS=a sentence", "WATCHDOG=1", several
 * of them with a line break between. Returns 1, or 0 if there is nobody to tell (NOTIFY_SOCKET). A
 * process that replaces another says to that one that it is ready, which tells the manager.
 * Thread: any.  Fails: -EINVAL (NOTIFY_SOCKET is no address), -ECONNREFUSED, -EMFILE, ...
 */
WEIR_API int weir_systemd_notify(const char *state);

/*
 * How often the manager wants to hear "WATCHDOG=1", at the least: tell it twice as often. Returns
 * 1, or 0 if it does not want to.
 * Thread: any.  Fails: -EINVAL (WATCHDOG_USEC is no number).
 */
WEIR_API int weir_systemd_watchdog(int64_t *ret_interval_ns);

#ifdef __cplusplus
}
#endif

#endif
