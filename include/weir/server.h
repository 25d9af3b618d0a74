/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/server.h - listens, accepts, and gives each connection its handlers and its loop.
 *
 *      boss loop:  listener --accepts--> child --chooser--> worker loop: init_child, handlers
 *
 * The three reactor models are options alone: one group with one thread for both; a boss of one
 * thread and many workers; many acceptors (`acceptors`, SO_REUSEPORT) and many workers. Where every
 * loop of one group accepts, a connection stays on the loop that has accepted it.
 *
 * With .kind = WEIR_KIND_DATAGRAM there are no connections: the listeners are the datagram channels
 * themselves, `acceptors` of them for each address, and init_server gives them their handlers.
 *
 * A server may be handed its listeners instead of making them (weir/transport.h, weir/restart.h),
 * and hand them on to the process that replaces it, so that no client notices: weir/restart.h. With
 *
 *      .inherit = true, .restart_argv = argv
 *
 * it takes what it is handed, and SIGUSR2 has weir_server_run start the program anew.
 *
 * A connection that cannot be given its handlers or its loop is closed; the listener goes on. The
 * groups are kept as long as the listeners and connections: weir_server_stop ends them.
 */
#ifndef WEIR_SERVER_H
#define WEIR_SERVER_H

#include <weir/channel.h>
#include <weir/group.h>
#include <weir/options.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Gives a new channel its handlers. On an error the channel is closed, and nothing else happens. */
typedef int weir_init_fn(weir_channel *channel, void *user_data);

/* Zero means default. Build with WEIR_SERVER_OPTIONS(.address = "0.0.0.0:8007", ...). */
typedef struct weir_server_options {
    size_t size;
    weir_group *boss;    /* the listener's loops; default: workers */
    weir_group *workers; /* the connections'; default: boss */
    const char *address; /* "0.0.0.0:8007", "[::]:8007" (IPv4 too: not beside the other one),
                            "unix:/run/x.sock", "unix:@name", "inproc:..."; port 0 = any free */
    const char *const *addresses; /* further ones, to the first NULL */
    int backlog;                  /* default 4096 */
    int acceptors; /* listeners per address, by SO_REUSEPORT, one per loop of boss; default 1 */
    weir_init_fn *init_child;  /* on the connection's loop; must be there, but for datagrams */
    weir_init_fn *init_server; /* for the listener's own handlers; for datagrams it must be there */
    void *user_data;           /* for both */
    const weir_channel_options *options;       /* the listeners' */
    const weir_channel_options *child_options; /* the connections' */
    const weir_attribute_value *attributes;    /* set on the listeners: not freed by them */
    size_t attribute_count;
    const weir_attribute_value *child_attributes; /* set on each connection: not freed by it */
    size_t child_attribute_count;
    enum weir_kind kind; /* default WEIR_KIND_STREAM */
    const int *adopt;    /* sockets that listen already, or are bound if of datagrams: listeners,
                            too, before those of the addresses; one for each */
    size_t adopt_count;
    bool inherit; /* listens on what systemd or the process before has handed over, if it has,
                     instead of the addresses; and tells it when it is ready */
    char *const *restart_argv;    /* main's: on SIGUSR2 weir_server_run has the program replace this
                                     process; borrowed as long as the server exists. SIGUSR2, SIGINT
                                     and SIGTERM are blocked in the calling thread from the start
                                     on; the latter two until the server is stopped there */
    int64_t restart_probation_ns; /* how long this process serves beside a new one that is ready,
                                     and goes on if that one ends; default 5 s; WEIR_OFF = none */
} weir_server_options;

#define WEIR_SERVER_OPTIONS(...) WEIR_OPTIONS(weir_server_options, __VA_ARGS__)

/*
 * Listens. Waits until all addresses are bound; returns the first listener, which stands for all of
 * them: closing it closes the others. If one cannot be bound, none is, and the log says which. The
 * descriptors of `adopt` are the server's, also if it fails. With `inherit` or `restart_argv`
 * connections have `drain_waits`: those of a process that is replaced are left to their clients.
 * An address that is in use is tried for half a second, unless there is something to adopt: a
 * process that was killed has perhaps not let go of it yet. Each time there are new listeners, and
 * init_server is called for them.
 * Thread: any that may wait.  Takes: descriptors of adopt.  Keeps: boss, workers.  Gives: listener.
 * Fails: as weir_server_start_later, -EDEADLK (on a loop), WEIR_EREJECTED (boss has ended),
 * WEIR_ETOOMANY, -EADDRINUSE and what else bind, listen and init_server say.
 */
WEIR_API int weir_server_start(const weir_server_options *options, weir_channel **ret_server);

/*
 * The same without waiting, and each address is tried once: the promise completes when all is
 * bound. Its value is the listener, its sentence says which address could not be bound; cancelling
 * it closes all. NULL: nobody waits. With `restart_argv` the signals of weir_server_run wait in the
 * calling thread from here on, and, if this fails later, until weir_server_stop there.
 * Thread: any.  Takes: descriptors of adopt.  Keeps: boss, workers, done.  Gives: listener.  Fails:
 * -EINVAL, -ENOMEM, -EAFNOSUPPORT, those of weir_adopt_server and weir_systemd_listeners.
 */
WEIR_API int weir_server_start_later(const weir_server_options *options, weir_promise *done,
                                     weir_channel **ret_server);

/*
 * Serves until the listener is closed, or SIGINT or SIGTERM comes, or, with restart_argv, SIGUSR2
 * and a new process has passed its probation (weir/restart.h); then weir_server_stop, without a
 * quiet period and for 10 s at the longest. A second signal ends the draining at once. The signals
 * are blocked in the calling thread meanwhile: what that means for threads that are not weir's says
 * weir/watch.h. One that came before is heard if it was blocked by then. Where the program has
 * taken them for itself they do nothing here.
 * Waiting for signals needs a thread and no descriptor, so they arrive also if clients hold all of
 * them.
 * Thread: any that may wait; best the main one.  Fails: -EDEADLK, -EINVAL (not from
 * weir_server_start), -ENOMEM, -EAGAIN (no thread), and as weir_server_stop.
 */
WEIR_API int weir_server_run(weir_channel *server);

/*
 * Stops accepting, drains the workers, then the boss, and waits until both have ended. Connections
 * are closed when what was written has been sent; those with a handler that has `draining` when it
 * closes them, and `quiet_ns` before the end of the time all that are left (weir_group_shutdown).
 * Thread: any that may wait.  Fails: -EDEADLK, -EINVAL (not from weir_server_start; unless 0 <=
 * quiet_ns <= timeout_ns), -ETIMEDOUT (a thread did not come back in time).
 */
WEIR_API int weir_server_stop(weir_channel *server, int64_t quiet_ns, int64_t timeout_ns);

/*
 * How many listeners there are, and each of them, borrowed: for each address, in the order given,
 * its acceptors. 0 and NULL for a channel that is not from weir_server_start.
 * Thread: any.
 */
WEIR_API size_t weir_server_count(weir_channel *server);
WEIR_API weir_channel *weir_server_at(weir_channel *server, size_t index);

#ifdef __cplusplus
}
#endif

#endif
