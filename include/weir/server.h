/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/server.h - listens, accepts, and gives each connection its handlers and its loop.
 *
 *      boss loop:  listener --accepts--> child --chooser--> worker loop: init_child, handlers
 *
 * The three reactor models are options alone: one group with one thread for both; a boss of one
 * thread and many workers; many acceptors (`acceptors`, SO_REUSEPORT) and many workers.
 */
#ifndef WEIR_SERVER_H
#define WEIR_SERVER_H

#include <weir/attribute.h>
#include <weir/channel.h>
#include <weir/group.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Gives a new channel its handlers. On an error the channel is closed, and nothing else happens. */
typedef int weir_init_fn(weir_channel *channel, void *user_data);

/* Zero means default. Build with WEIR_SERVER_OPTIONS(.address = "0.0.0.0:8007", ...). */
typedef struct weir_server_options {
    size_t size;
    weir_group *boss;    /* the listener's loops; kept */
    weir_group *workers; /* the connections'; default: boss; kept */
    const char *address; /* "0.0.0.0:8007", "[::]:0", "unix:...", "inproc:..."; port 0 = any free */
    const char *const *addresses; /* further ones, to the first NULL */
    int backlog;                  /* default 4096 */
    int acceptors; /* listeners per address, by SO_REUSEPORT, one per loop of boss; default 1 */
    weir_init_fn *init_child;                  /* on the connection's loop */
    weir_init_fn *init_server;                 /* for the listener's own handlers */
    void *user_data;                           /* for both */
    const weir_channel_options *options;       /* the listeners' */
    const weir_channel_options *child_options; /* the connections' */
    const weir_attribute_value *attributes;    /* set on the listeners */
    size_t attribute_count;
    const weir_attribute_value *child_attributes; /* set on each connection: not freed by it */
    size_t child_attribute_count;
} weir_server_options;

#define WEIR_SERVER_OPTIONS(...) \
    (&(const weir_server_options){.size = sizeof(weir_server_options), __VA_ARGS__})

/*
 * Makes options that are all default.
 * Thread: any.
 */
WEIR_API void weir_server_options_init(weir_server_options *options);

/*
 * Listens. Waits until all addresses are bound; returns the first listener, which stands for all of
 * them: closing it closes the others.
 * Thread: any that may wait.  Gives: listener.  Fails: -EINVAL, -ENOMEM, -EDEADLK (on a loop),
 * -EADDRINUSE and what else bind and listen say.
 */
WEIR_API int weir_server_start(const weir_server_options *options, weir_channel **ret_server);

/*
 * The same without waiting: the promise completes when all is bound. Its value is the listener.
 * Thread: any.  Gives: listener.  Keeps: done.  Fails: -EINVAL, -ENOMEM.
 */
WEIR_API int weir_server_start_later(const weir_server_options *options, weir_promise *done,
                                     weir_channel **ret_server);

/*
 * Serves until the listener is closed, or SIGINT or SIGTERM comes; then weir_server_stop. A second
 * signal ends the draining at once.
 * Thread: any that may wait; best the main one, before others are started.  Fails: -EDEADLK, and as
 * weir_server_stop.
 */
WEIR_API int weir_server_run(weir_channel *server);

/*
 * Stops accepting, drains the workers, then the boss, and waits until both have ended.
 * Thread: any that may wait.  Fails: -EDEADLK, -ETIMEDOUT (something did not end in time).
 */
WEIR_API int weir_server_stop(weir_channel *server, int64_t quiet_ns, int64_t timeout_ns);

/*
 * How many listeners there are, and each of them, borrowed.
 * Thread: any.
 */
WEIR_API size_t weir_server_count(weir_channel *server);
WEIR_API weir_channel *weir_server_at(weir_channel *server, size_t index);

#ifdef __cplusplus
}
#endif

#endif
