/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/server.h - listens on addresses, accepts connections, and sets up their pipelines.
 *
 *      each worker loop:  listener --accepts--> child: init_child, handlers
 *
 *      boss loop:  listener --accepts--> child --chooser--> worker loop: init_child, handlers
 *
 * The options choose the reactor model. Without a boss every loop of `workers` accepts from the one
 * socket of each address, and a connection stays on the loop that accepted it, unless that has
 * clearly more than its share: then it goes to the loop with the fewest. Connections that stay are
 * balanced within 10 %; those that end soon, less. One loop accepts for all, and the group's
 * chooser selects the loop of each connection,
 *   - with a `boss`, a group of its own;
 *   - with `acceptors` = 1;
 *   - if the group has a chooser or autoscaling, or its I/O is WEIR_IO_POLL or WEIR_IO_BLOCKING;
 *   - for "inproc:" addresses.
 * With `acceptors` = N there are N sockets for each address (SO_REUSEPORT). If every loop of one
 * group has one, all connections stay. A server can also run entirely on one loop of the caller's
 * (`loop`).
 *
 * With .kind = WEIR_KIND_DATAGRAM there are no connections: the listeners are the datagram channels
 * themselves, `acceptors` per address, and init_server adds their handlers.
 *
 * A server can take over listening sockets instead of binding them, and pass them on to the process
 * that replaces it, so that no client is refused (weir/restart.h):
 *
 *      .inherit = true, .restart_argv = argv
 *
 * A connection that cannot be set up is closed; the listener continues. Listeners and connections
 * keep the groups alive: weir_server_stop shuts them down.
 */
#ifndef WEIR_SERVER_H
#define WEIR_SERVER_H

#include <weir/channel.h>
#include <weir/group.h>
#include <weir/options.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_server weir_server;

/* Adds the handlers of a new channel. If it fails, the channel is closed. */
typedef int weir_init_fn(weir_channel *channel, void *user_data);

/* Zero means default. Build with WEIR_SERVER_OPTIONS(.address = "0.0.0.0:8007", ...). */
typedef struct weir_server_options {
    size_t size;
    weir_group *boss;    /* runs the listeners; default: workers, each of which accepts */
    weir_group *workers; /* run the connections; default: boss, as if that were the workers */
    weir_executor *loop; /* instead of the groups: runs both, such as a loop of weir_loop_create;
                            kept alive by the caller until the server is stopped */
    const char *address; /* "0.0.0.0:8007", "[::]:8007" (includes IPv4: not together with 0.0.0.0),
                            "unix:/run/x.sock", "unix:@name", "inproc:..."; port 0 = any free */
    const char *const *addresses; /* more addresses, NULL-terminated */
    int backlog;                  /* default 4096 */
    int acceptors; /* sockets per address, by SO_REUSEPORT, one per loop of boss; default 1 */
    weir_init_fn *init_child;  /* on the connection's loop; required, except for datagrams */
    weir_init_fn *init_server; /* adds handlers to each listener; required for datagrams */
    void *user_data;           /* for both */
    const weir_channel_options *options;       /* of the listeners */
    const weir_channel_options *child_options; /* of the connections */
    const weir_attribute_value *attributes;    /* set on the listeners, which do not free them */
    size_t attribute_count;
    const weir_attribute_value *child_attributes; /* set on connections, which do not free them */
    size_t child_attribute_count;
    enum weir_kind kind; /* default WEIR_KIND_STREAM */
    const int *adopt;    /* sockets that already listen, or are bound if datagram sockets: each
                            becomes a listener, before those of the addresses */
    size_t adopt_count;
    bool inherit; /* listen on the sockets passed by systemd or by the process being replaced,
                     if any, instead of the addresses; and notify it when ready */
    char *const *restart_argv;    /* argv of main: on SIGUSR2, weir_server_run replaces this process
                                     by this program; borrowed until the server is freed. SIGUSR2,
                                     SIGINT and SIGTERM are blocked in the calling thread from the
                                     start on; SIGINT and SIGTERM until the server is stopped */
    int64_t restart_probation_ns; /* how long this process continues to serve after a new one is
                                     ready, to stay if that one exits; default 5 s; WEIR_OFF = 0 */
    weir_group *offload_when_blocking; /* as that of child_options; retained */
    int64_t drain_timeout_ns; /* how long weir_server_run waits for connections to end; default
                                 10 s; WEIR_OFF = 0 */
} weir_server_options;

#define WEIR_SERVER_OPTIONS(...) WEIR_OPTIONS(weir_server_options, __VA_ARGS__)

/*
 * Starts a server and waits until all addresses are bound. If one cannot be bound, none is, and the
 * log names it. No connection is accepted before all are bound, so none is left if this fails. The
 * server owns the descriptors of `adopt`, even if this fails.
 *
 * An address in use is retried for half a second, unless sockets are adopted: the kernel may still
 * hold the sockets of a killed process. Each retry creates new listeners and calls init_server.
 *
 * With `inherit` or `restart_argv`, connections have `drain_waits` set: a process being replaced
 * serves its connections until the clients close them. With a `loop` of weir_loop_create that the
 * calling thread owns, this call runs the loop.
 * Thread: any that may wait.  Takes: descriptors of adopt.  Keeps: boss, workers.  Gives: server.
 * Fails: as weir_server_start_later, -EDEADLK (on a loop), WEIR_EREJECTED (boss was shut down),
 * WEIR_ETOOMANY, -EADDRINUSE, and with errors of bind, listen and init_server.
 */
WEIR_API WEIR_MUST_USE int weir_server_start(const weir_server_options *options,
                                             weir_server **ret_server);

/*
 * Starts a server without waiting. The promise completes when all addresses are bound; its value is
 * the server, and its detail names an address that could not be bound. Cancelling it closes all
 * listeners. NULL is allowed. Each address is tried once. With `restart_argv` the signals of
 * weir_server_run are blocked in the calling thread from here on, until weir_server_stop there.
 * Thread: any.  Takes: descriptors of adopt.  Keeps: boss, workers, done.  Gives: server.  Fails:
 * -EINVAL, -ENOMEM, -EAFNOSUPPORT, as weir_adopt_server and weir_systemd_listeners.
 */
WEIR_API WEIR_MUST_USE int weir_server_start_later(const weir_server_options *options,
                                                   weir_promise *done, weir_server **ret_server);

/*
 * Retains the server.
 * Thread: any.
 */
WEIR_API weir_server *weir_server_retain(weir_server *server);

/*
 * Releases a reference. NULL is ignored. A server that was not stopped continues to listen.
 * Thread: any.  Takes: server.
 */
WEIR_API void weir_server_release(weir_server *server);

/*
 * Serves until the server is closed, SIGINT or SIGTERM arrives, or, with restart_argv, a new
 * process started by SIGUSR2 has passed its probation (weir/restart.h); then stops the server as
 * weir_server_stop does, with no quiet period and a timeout of drain_timeout_ns. A second signal
 * aborts the remaining connections. If it cannot wait, for want of memory or a thread, it stops the
 * server at once.
 *
 * The signals are blocked in the calling thread meanwhile; weir/watch.h says what that means for
 * threads that weir did not start. A signal that arrived earlier is handled if it was blocked then.
 * Signals that the program watches itself are ignored here. Waiting for signals needs a thread but
 * no descriptor, so they arrive even if clients hold all descriptors.
 *
 * With a `loop` of weir_loop_create that the calling thread owns, this call runs the loop.
 * Thread: any that may wait; best the main one.  Fails: -EDEADLK, -ENOMEM, -EAGAIN (no thread), and
 * as weir_server_stop.
 */
WEIR_API WEIR_MUST_USE int weir_server_run(weir_server *server);

/*
 * Accepts what is in the backlog, unless the server was replaced; stops accepting, shuts down the
 * workers, then the boss, or the `loop`, and waits until they have ended. Clients that connect
 * after the listeners have looked, and before they are closed, are reset. Connections are closed
 * when everything written has been sent; those with a handler that implements `draining` when that
 * handler closes them. The remaining ones are aborted `quiet_ns` before the timeout
 * (weir_executor_shutdown). With a `loop` of weir_loop_create that the calling thread owns, this
 * call runs the loop until it ends.
 * Thread: any that may wait.  Fails: -EDEADLK, -EINVAL (unless 0 <= quiet_ns <= timeout_ns),
 * -ETIMEDOUT (a thread did not end in time).
 */
WEIR_API int weir_server_stop(weir_server *server, int64_t quiet_ns, int64_t timeout_ns);

/*
 * Closes all listeners. Connections and groups are not affected.
 * Thread: any.
 */
WEIR_API void weir_server_close(weir_server *server);

/*
 * The number of listeners: per address, in the order given, its acceptors; then, if every loop
 * accepts, those of the other loops. To pause accepting, pause all of them.
 * Thread: any.
 */
WEIR_API size_t weir_server_listener_count(const weir_server *server);

/*
 * Listener `index`, from 0; borrowed. NULL beyond the last. Closing the first one closes all.
 * Thread: any.
 */
WEIR_API weir_channel *weir_server_listener(const weir_server *server, size_t index);

/*
 * The index of the address of a listener, or of a connection that it has accepted: 0 is the first
 * address of the options. Adopted and inherited sockets come before the addresses, in their order;
 * adjacent ones with the same address count once. -1 for a channel of no server. For servers that
 * speak several protocols.
 * Thread: any.
 */
WEIR_API int weir_server_address_index(weir_channel *channel);

#ifdef __cplusplus
}
#endif

#endif
