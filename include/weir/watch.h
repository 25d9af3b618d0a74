/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/watch.h - a descriptor of your own as a source of events: a pipe, a terminal, a device, a
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
#ifndef WEIR_WATCH_H
#define WEIR_WATCH_H

#include <weir/executor.h>
#include <weir/options.h>
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

#define WEIR_FD_WATCH_OPTIONS(...) WEIR_OPTIONS(weir_fd_watch_options, __VA_ARGS__)

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

/* --- signals ---------------------------------------------------------------------------------- */

/*
 * Signals as events on a loop, for programs that drain on SIGTERM.
 *
 *      static void on_signal(weir_signals *signals, const weir_signal *signal, void *group)
 *      {
 *          weir_group_shutdown(group, 0, weir_seconds(10));
 *      }
 *
 * A signal reaches the loop only if no thread takes it first, that is, if all have it blocked.
 * weir's own threads have. Creating the signals blocks them in the calling thread, and threads
 * inherit that from who starts them: so create them in main(), before other threads are started.
 * What came before, while blocked, is told first. As ever, a signal that comes several times before
 * it is told is told once (but for the real-time ones), and one that was sent to a single thread is
 * that thread's.
 */

#define WEIR_SIGNALS_MAX 16 /* for more, create another */

typedef struct weir_signals weir_signals;

/* A signal that has come, as sigaction(2) describes it. */
typedef struct weir_signal {
    int number;
    int code;       /* SI_USER, SI_KERNEL, CLD_EXITED, ... */
    int64_t pid;    /* who sent it, 0 if the kernel did; for SIGCHLD the child */
    uint32_t uid;   /* whose process that is */
    int32_t status; /* SIGCHLD: exit status or signal */
    int64_t value;  /* what sigqueue(3) gave with it */
    uint64_t reserved[4];
} weir_signal;

/* Called on the loop's thread, once for each. The signal is lent until it returns. */
typedef void weir_signal_fn(weir_signals *signals, const weir_signal *signal, void *user_data);

/*
 * The last word, exactly once, never from inside a call of yours. `err` is 0 if you released the
 * signals, WEIR_ECANCELED if the loop has shut down, otherwise what went wrong.
 */
typedef void weir_signals_closed_fn(weir_signals *signals, int err, void *user_data);

/* Zero means default. Build with WEIR_SIGNALS_OPTIONS(.numbers = {SIGINT, SIGTERM}, ...). */
typedef struct weir_signals_options {
    size_t size;
    int numbers[WEIR_SIGNALS_MAX]; /* the signals, until the first 0 */
    weir_signal_fn *received;
    weir_signals_closed_fn *closed; /* default: nobody is told */
    void *user_data;
} weir_signals_options;

#define WEIR_SIGNALS_OPTIONS(...) WEIR_OPTIONS(weir_signals_options, __VA_ARGS__)

/*
 * Blocks the signals in the calling thread and has the loop tell of them. A signal is told to one
 * weir_signals only. One that cannot be blocked, or is a fault of the thread's own, is no event:
 * SIGKILL, SIGSTOP, SIGSEGV and the like are -EINVAL.
 * Thread: any.  Gives: signals.  Fails: -EINVAL (also: not an event loop, no `.received`, no
 * signals), -EBUSY (another has one of these), -ENOMEM, -EMFILE, WEIR_EREJECTED (the loop has shut
 * down), -EAGAIN (its thread cannot be started).
 */
WEIR_API int weir_signals_create(weir_executor *loop, const weir_signals_options *options,
                                 weir_signals **ret_signals);

/*
 * Ends it; NULL is fine. On the loop's thread `received` is not called again, elsewhere it may be
 * running until `closed`. On the thread that created the signals, those that this had blocked are
 * unblocked, unless others have them by now: one that has come and was not told then does what it
 * would do without weir. On another thread nothing is unblocked.
 * Thread: any.  Takes: signals.
 */
WEIR_API void weir_signals_release(weir_signals *signals);

/* --- child ------------------------------------------------------------------------------------ */

/*
 * Other processes: starting a program, and hearing on a loop that it has ended.
 *
 *      weir_child_spawn ---> the program runs ---> exited, on the loop, once
 *      weir_child_watch ---> (it runs already) ---^
 *
 * A process is known by a descriptor (pidfd, Linux 5.4), not by its number: so a signal never
 * reaches a process that has come to have the number of one that is gone. How a
 * child has ended is told once: who watches it as the second, or beside somebody who waits for all
 * children, hears only that it has.
 */

typedef struct weir_child weir_child;

/* How a process has ended. */
typedef struct weir_child_exit {
    int err;    /* 0; -ECHILD = it has ended, but how was not for us to hear; WEIR_ECANCELED = the
                   loop has shut down, and the process goes on; otherwise what went wrong */
    int status; /* what it returned, or gave to exit(); -1 = it did not come to that */
    int signal; /* that has killed it; 0 = none */
    bool dumped_core;
    uint64_t reserved[4];
} weir_child_exit;

/* Called on the loop's thread, exactly once, never from inside a call of yours. `exit` is lent. */
typedef void weir_child_exited_fn(weir_child *child, const weir_child_exit *exit, void *user_data);

/* Zero means default. Build with WEIR_CHILD_OPTIONS(.argv = argv, ...). */
typedef struct weir_child_options {
    size_t size;
    char *const *argv;      /* the program, by PATH if there is no slash in it, and what it is
                               told; to NULL */
    char *const *env;       /* "NAME=value", to NULL; default: as here */
    char *const *extra_env; /* the same, added to the above or in place of it */
    const char *directory;  /* default: as here */
    int stdio[3];           /* its input, output and error; 0 = as here */
    const int *descriptors; /* become its descriptors 3, 4, ...; all others are closed there */
    size_t descriptor_count;
    bool export_listen_fds;       /* it is told of them as systemd does: LISTEN_PID, LISTEN_FDS */
    const char *listen_fd_names;  /* "one:another", as LISTEN_FDNAMES */
    weir_child_exited_fn *exited; /* default: nobody is told */
    void *user_data;
} weir_child_options;

#define WEIR_CHILD_OPTIONS(...) WEIR_OPTIONS(weir_child_options, __VA_ARGS__)

/*
 * Starts a program: with default signals, none of them blocked. Returns when it runs, so a program
 * that cannot be run is an error here, which the log has in words. `ret_child` may be NULL. A child
 * that is released is heard of all the same; nothing but its own end, or a signal, ends it.
 * Thread: any.  Gives: child.  Fails: -EINVAL (not an event loop, no program, no "NAME=value"),
 * -ENOENT, -EACCES and what else execve, chdir and dup2 say, -EAGAIN (too many processes), -EMFILE,
 * -ENOMEM, -ENOSYS (no pidfd), WEIR_EREJECTED (the loop has shut down).
 */
WEIR_API int weir_child_spawn(weir_executor *loop, const weir_child_options *options,
                              weir_child **ret_child);

/*
 * The same for a process that runs already. If it is not a child of this one, how it has ended is
 * not told (-ECHILD).
 * Thread: any.  Gives: child.  Fails: -EINVAL, -ESRCH, -EMFILE, -ENOMEM, -ENOSYS, WEIR_EREJECTED.
 */
WEIR_API int weir_child_watch(weir_executor *loop, int pid, weir_child_exited_fn *exited,
                              void *user_data, weir_child **ret_child);

/*
 * Its number, which may be another's when it has ended.
 * Thread: any.
 */
WEIR_API int weir_child_pid(const weir_child *child);

/*
 * Sends it a signal; 0 only asks whether it is there.
 * Thread: any.  Fails: -ESRCH (it has ended), -EPERM, -EINVAL.
 */
WEIR_API int weir_child_signal(weir_child *child, int number);

/*
 * Keeps a child.
 * Thread: any.
 */
WEIR_API weir_child *weir_child_retain(weir_child *child);

/*
 * Gives a reference back; NULL is fine.
 * Thread: any.  Takes: child.
 */
WEIR_API void weir_child_release(weir_child *child);

#ifdef __cplusplus
}
#endif

#endif
