/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/watch.h - other event sources on a loop: descriptors, signals and child processes.
 */
#ifndef WEIR_WATCH_H
#define WEIR_WATCH_H

#include <weir/executor.h>
#include <weir/options.h>
#include <weir/promise.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- descriptors ------------------------------------------------------------------------------ */

/*
 * Watches a descriptor of the application: a pipe, a terminal, a device, a library's socket.
 *
 *      weir_fd_watch_create ---> ready, ready, ... ---> closed
 *                                             ^ weir_fd_watch_close, loop shutdown, an error
 *
 * `ready` is called on the loop's thread, once per turn, for as long as the descriptor is ready for
 * the requested events: unread data is reported again. `closed` is called last, exactly once, and
 * never from inside a call into weir. The descriptor must stay open until then; afterwards weir
 * uses neither the descriptor nor `user_data`.
 *
 * weir only waits for the descriptor: it does not read from it or change its flags. Read a blocking
 * descriptor once per call. A loop can watch a descriptor only once: use dup(2) for more watches.
 */

typedef struct weir_fd_watch weir_fd_watch;

/* Readiness events. HANGUP and ERROR are always reported, requested or not. */
#define WEIR_FD_READABLE (1u << 0) /* a read will not block: data or end of file */
#define WEIR_FD_WRITABLE (1u << 1) /* a write will not block */
#define WEIR_FD_PRIORITY (1u << 2) /* an exceptional condition, such as urgent data on a socket */
#define WEIR_FD_HANGUP (1u << 3)   /* the peer hung up; if requested, also if it stopped sending */
#define WEIR_FD_ERROR (1u << 4)    /* such as a pipe without readers; read or write for the error */

typedef void weir_fd_ready_fn(weir_fd_watch *watch, uint32_t events, void *user_data);

/* `err` is 0 after weir_fd_watch_close, WEIR_ECANCELED if the loop shut down, else the failure. */
typedef void weir_fd_closed_fn(weir_fd_watch *watch, int err, void *user_data);

/* Zero means default. Build with WEIR_FD_WATCH_OPTIONS(.events = WEIR_FD_READABLE, ...). */
typedef struct weir_fd_watch_options {
    size_t size;
    uint32_t events; /* events to watch for initially; 0 = none yet */
    weir_fd_ready_fn *ready;
    weir_fd_closed_fn *closed; /* optional */
    void *user_data;
    bool close_descriptor; /* the watch owns the descriptor and closes it before `closed` */
} weir_fd_watch_options;

#define WEIR_FD_WATCH_OPTIONS(...) WEIR_OPTIONS(weir_fd_watch_options, __VA_ARGS__)

/*
 * Watches a descriptor. On threads other than the loop's, the watch is handed to the loop, and
 * `ready` may be called before this function returns. `ret_watch` may be NULL: then only the
 * callbacks see the watch. Files that are always ready (regular files, directories, /dev/null)
 * cannot be watched: -EPERM.
 * Thread: any.  Takes: descriptor, with `.close_descriptor`.  Gives: watch.  Fails: -EINVAL (not an
 * event loop, no `.ready`, unknown events), -EBADF, -EPERM, -EMFILE, -ENOMEM, WEIR_EREJECTED (the
 * loop has shut down), -EAGAIN (its thread cannot be started).
 */
WEIR_API WEIR_MUST_USE int weir_fd_watch_create(weir_executor *loop, int descriptor,
                                                const weir_fd_watch_options *options,
                                                weir_fd_watch **ret_watch);

/*
 * Replaces the events to watch for. 0 pauses the watch: not even errors are reported. `ready` is
 * not called for other events from now on, but on other threads than the loop's a call may still be
 * running.
 * Thread: any.  Fails: -EINVAL (unknown events), WEIR_ECANCELED (the watch is closed).
 */
WEIR_API int weir_fd_watch_set_events(weir_fd_watch *watch, uint32_t events);

/*
 * Closes the watch. `ready` is not called again, not even for events that are already queued, but
 * on other threads than the loop's a call may still be running. `closed` follows. Closing twice has
 * no effect.
 * Thread: any.
 */
WEIR_API void weir_fd_watch_close(weir_fd_watch *watch);

/*
 * Returns a promise that completes after `closed` was called, with the same error. Other threads
 * can wait for it. Borrowed.
 * Thread: any.
 */
WEIR_API weir_promise *weir_fd_watch_closed(weir_fd_watch *watch);

/*
 * Returns the watched descriptor.
 * Thread: any.
 */
WEIR_API int weir_fd_watch_descriptor(const weir_fd_watch *watch);

/*
 * Retains a watch. A retained watch may be used on any thread, even after it was closed.
 * Thread: any.
 */
WEIR_API weir_fd_watch *weir_fd_watch_retain(weir_fd_watch *watch);

/*
 * Releases a reference. NULL is ignored. Releasing the last reference closes the watch.
 * Thread: any.  Takes: watch.
 */
WEIR_API void weir_fd_watch_release(weir_fd_watch *watch);

/* --- signals ---------------------------------------------------------------------------------- */

/*
 * Delivers signals as events on a loop, for example to drain on SIGTERM.
 *
 *      static void on_signal(weir_signals *signals, const weir_signal *signal, void *group)
 *      {
 *          weir_group_shutdown(group, 0, weir_seconds(10));
 *      }
 *
 * A signal reaches the loop only if it is blocked in every thread. weir's own threads block all
 * signals. weir_signals_create blocks them in the calling thread, and new threads inherit the mask
 * of their creator: call it in main() before starting other threads.
 *
 * Signals that are already pending are delivered first. As usual, several instances of a standard
 * signal may be merged into one (real-time signals are queued), and a signal sent to a specific
 * thread is delivered to that thread only.
 */

#define WEIR_SIGNALS_MAX 16 /* signals per weir_signals */

typedef struct weir_signals weir_signals;

/* A received signal; see sigaction(2) for the fields. */
typedef struct weir_signal {
    int number;
    int code;       /* SI_USER, SI_KERNEL, CLD_EXITED, ... */
    int64_t pid;    /* of the sender, 0 for the kernel; for SIGCHLD, of the child */
    uint32_t uid;   /* of that process */
    int32_t status; /* SIGCHLD: exit status or signal number */
    int64_t value;  /* passed to sigqueue(3) */
    uint64_t reserved[4];
} weir_signal;

/* Called on the loop's thread for each signal. `signal` is valid until the function returns. */
typedef void weir_signal_fn(weir_signals *signals, const weir_signal *signal, void *user_data);

/*
 * Called last, exactly once, never from inside a call into weir. `err` is 0 after
 * weir_signals_release, WEIR_ECANCELED if the loop shut down, else the failure.
 */
typedef void weir_signals_closed_fn(weir_signals *signals, int err, void *user_data);

/* Zero means default. Build with WEIR_SIGNALS_OPTIONS(.numbers = {SIGINT, SIGTERM}, ...). */
typedef struct weir_signals_options {
    size_t size;
    int numbers[WEIR_SIGNALS_MAX]; /* terminated by 0 unless full */
    weir_signal_fn *received;
    weir_signals_closed_fn *closed; /* optional */
    void *user_data;
} weir_signals_options;

#define WEIR_SIGNALS_OPTIONS(...) WEIR_OPTIONS(weir_signals_options, __VA_ARGS__)

/*
 * Blocks the signals in the calling thread and delivers them on the loop. Each signal can belong to
 * one weir_signals only. Signals that cannot be blocked or that report a fault of the thread
 * (SIGKILL, SIGSTOP, SIGSEGV and the like) are -EINVAL.
 * Thread: any.  Gives: signals.  Fails: -EINVAL (also: not an event loop, no `.received`, no
 * signals), -EBUSY (another weir_signals has one of them), -ENOMEM, -EMFILE, WEIR_EREJECTED (the
 * loop has shut down), -EAGAIN (its thread cannot be started).
 */
WEIR_API WEIR_MUST_USE int weir_signals_create(weir_executor *loop,
                                               const weir_signals_options *options,
                                               weir_signals **ret_signals);

/*
 * Stops delivery. NULL is ignored. On the loop's thread `received` is not called again; on other
 * threads a call may still be running until `closed`. On the thread that created the signals, those
 * it blocked are unblocked unless another weir_signals has claimed them meanwhile: a pending signal
 * then takes its normal action. On other threads nothing is unblocked.
 * Thread: any.  Takes: signals.
 */
WEIR_API void weir_signals_release(weir_signals *signals);

/* --- child processes -------------------------------------------------------------------------- */

/*
 * Starts programs and reports their exit on a loop.
 *
 *      weir_child_spawn ---> the program runs ---> exited, on the loop, once
 *      weir_child_watch ---> (already running) ---^
 *
 * A process is identified by a pidfd (Linux 5.4), not by its pid, so a signal never reaches an
 * unrelated process that reuses the pid. The kernel reports an exit status once: a second watcher,
 * or one that competes with a wait() for all children, learns only that the process has exited.
 */

typedef struct weir_child weir_child;

/* How a process exited. */
typedef struct weir_child_exit {
    int err;    /* 0; -ECHILD = exited, status unknown; WEIR_ECANCELED = the loop shut down and the
                   process is still running; else the failure */
    int status; /* exit status; -1 = it did not exit normally */
    int signal; /* that killed the process; 0 = none */
    bool dumped_core;
    uint64_t reserved[4];
} weir_child_exit;

/*
 * Called on the loop's thread, exactly once, never from inside a call into weir. `exit` is valid
 * until the function returns.
 */
typedef void weir_child_exited_fn(weir_child *child, const weir_child_exit *exit, void *user_data);

/* Zero means default. Build with WEIR_CHILD_OPTIONS(.argv = argv, ...). */
typedef struct weir_child_options {
    size_t size;
    char *const *argv;      /* program (searched in PATH if it has no slash) and arguments,
                               NULL-terminated */
    char *const *env;       /* "NAME=value", NULL-terminated; default: inherited */
    char *const *extra_env; /* added to the above, replacing variables of the same name */
    const char *directory;  /* working directory; default: inherited */
    int stdio[3];           /* standard input, output and error; 0 = inherited */
    const int *descriptors; /* become descriptors 3, 4, ... of the child; it gets no others */
    size_t descriptor_count;
    bool export_listen_fds;       /* pass them by systemd's protocol: sets LISTEN_PID, LISTEN_FDS */
    const char *listen_fd_names;  /* sets LISTEN_FDNAMES, such as "http:admin" */
    weir_child_exited_fn *exited; /* optional */
    void *user_data;
} weir_child_options;

#define WEIR_CHILD_OPTIONS(...) WEIR_OPTIONS(weir_child_options, __VA_ARGS__)

/*
 * Starts a program with default signal dispositions and an empty signal mask. Returns when the
 * program runs: a failed execve is an error here, and is logged. `ret_child` may be NULL. Releasing
 * the child does not stop the process or its exit report.
 * Thread: any.  Gives: child.  Fails: -EINVAL (not an event loop, no program, malformed
 * "NAME=value"), -ENOENT, -EACCES and other errors of execve, chdir and dup2, -EAGAIN (too many
 * processes), -EMFILE, -ENOMEM, -ENOSYS (no pidfd), WEIR_EREJECTED (the loop has shut down).
 */
WEIR_API WEIR_MUST_USE int weir_child_spawn(weir_executor *loop, const weir_child_options *options,
                                            weir_child **ret_child);

/*
 * Watches a running process. If it is not a child of this process, `exited` gets -ECHILD: the exit
 * status is not available.
 * Thread: any.  Gives: child.  Fails: -EINVAL, -ESRCH, -EMFILE, -ENOMEM, -ENOSYS, WEIR_EREJECTED.
 */
WEIR_API WEIR_MUST_USE int weir_child_watch(weir_executor *loop, int pid,
                                            weir_child_exited_fn *exited, void *user_data,
                                            weir_child **ret_child);

/*
 * Returns the pid. After the exit another process may have it.
 * Thread: any.
 */
WEIR_API int weir_child_pid(const weir_child *child);

/*
 * Sends a signal. Signal 0 only checks whether the process exists.
 * Thread: any.  Fails: -ESRCH (it has exited), -EPERM, -EINVAL.
 */
WEIR_API int weir_child_signal(weir_child *child, int number);

/*
 * Retains a child.
 * Thread: any.
 */
WEIR_API weir_child *weir_child_retain(weir_child *child);

/*
 * Releases a reference. NULL is ignored.
 * Thread: any.  Takes: child.
 */
WEIR_API void weir_child_release(weir_child *child);

#ifdef __cplusplus
}
#endif

#endif
