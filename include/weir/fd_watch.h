/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/fd_watch.h - a descriptor of your own as a source of events: a pipe, a terminal, a device, a
 * library's socket.
 *
 *      weir_fd_watch_create ---> ready, ready, ... ---> closed
 *                                             ^ weir_fd_watch_close, the loop's end, an error
 *
 * `ready` is called on the loop's thread, once a turn, as long as the descriptor is ready for what
 * was asked for: read or write what you like, the rest is told again. `closed` is the last word: it
 * comes exactly once, never from inside a call of yours, and from then on weir uses neither the
 * descriptor nor your memory. Until then the descriptor must stay open.
 *
 * weir only waits for the descriptor. It does not read it, and does not change its flags; a
 * blocking one is best read once per call. A loop watches a descriptor once: dup(2) it for more.
 */
#ifndef WEIR_FD_WATCH_H
#define WEIR_FD_WATCH_H

#include <weir/executor.h>
#include <weir/promise.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_fd_watch weir_fd_watch;

/* What a descriptor may be ready for. HANGUP and ERROR are told with any other, also unasked. */
#define WEIR_FD_READABLE (1u << 0) /* a read will not block: there are bytes, or their end */
#define WEIR_FD_WRITABLE (1u << 1) /* there is room */
#define WEIR_FD_PRIORITY (1u << 2) /* something exceptional, such as a socket's urgent data */
#define WEIR_FD_HANGUP (1u << 3)   /* the other end has gone; if asked for, has ended its sending */
#define WEIR_FD_ERROR (1u << 4)    /* such as a pipe that nobody reads; a read or write says what */

typedef void weir_fd_ready_fn(weir_fd_watch *watch, uint32_t events, void *user_data);

/*
 * `err` is 0 if you closed the watch, WEIR_ECANCELED if its loop has shut down, otherwise what went
 * wrong.
 */
typedef void weir_fd_closed_fn(weir_fd_watch *watch, int err, void *user_data);

/* Zero means default. Build with WEIR_FD_WATCH_OPTIONS(.events = WEIR_FD_READABLE, ...). */
typedef struct weir_fd_watch_options {
    size_t size;
    uint32_t events; /* what to watch for at first; 0 = nothing yet */
    weir_fd_ready_fn *ready;
    weir_fd_closed_fn *closed; /* default: nobody is told */
    void *user_data;
    bool close_descriptor; /* the descriptor is the watch's, and is closed before `closed` */
} weir_fd_watch_options;

#define WEIR_FD_WATCH_OPTIONS(...) \
    (&(const weir_fd_watch_options){.size = sizeof(weir_fd_watch_options), __VA_ARGS__})

/*
 * Makes options that are all default.
 * Thread: any.
 */
WEIR_API void weir_fd_watch_options_init(weir_fd_watch_options *options);

/*
 * Watches a descriptor. Elsewhere than on the loop's thread the loop is asked to, and `ready` may
 * be called before this returns. `ret_watch` may be NULL: then only the call-backs know the watch.
 * A file that is always ready cannot be watched, which is -EPERM: a regular one, a directory,
 * /dev/null.
 * Thread: any.  Takes: descriptor, with `.close_descriptor`.  Gives: watch.  Fails: -EINVAL (not an
 * event loop, no `.ready`, unknown events), -EBADF, -EPERM, -EMFILE, -ENOMEM, WEIR_EREJECTED (the
 * loop has shut down), -EAGAIN (its thread cannot be started).
 */
WEIR_API int weir_fd_watch_create(weir_executor *loop, int descriptor,
                                  const weir_fd_watch_options *options, weir_fd_watch **ret_watch);

/*
 * Changes what is watched for; 0 = nothing, not even errors, until it is changed again. `ready` is
 * not called for anything else from now on; if this is not the loop's thread, it may be running.
 * Thread: any.  Fails: -EINVAL (unknown events), WEIR_ECANCELED (the watch is closed).
 */
WEIR_API int weir_fd_watch_set_events(weir_fd_watch *watch, uint32_t events);

/*
 * Ends the watch: `ready` is not called again, also not for an event that has come already; if this
 * is not the loop's thread, it may be running. Then comes `closed`. Closing twice does nothing.
 * Thread: any.
 */
WEIR_API void weir_fd_watch_close(weir_fd_watch *watch);

/*
 * Completes when the watch is closed, after `closed` was called, and with the same error: for a
 * thread that wants to wait for it.
 * Thread: any.
 */
WEIR_API weir_promise *weir_fd_watch_closed(weir_fd_watch *watch);

/*
 * The descriptor that is watched.
 * Thread: any.
 */
WEIR_API int weir_fd_watch_descriptor(const weir_fd_watch *watch);

/*
 * Keeps a watch. A kept one may be used on any thread, closed or not.
 * Thread: any.
 */
WEIR_API weir_fd_watch *weir_fd_watch_retain(weir_fd_watch *watch);

/*
 * Gives a reference back; NULL is fine. The last one closes the watch.
 * Thread: any.  Takes: watch.
 */
WEIR_API void weir_fd_watch_release(weir_fd_watch *watch);

#ifdef __cplusplus
}
#endif

#endif
