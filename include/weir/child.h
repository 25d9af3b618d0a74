/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/child.h - other processes: starting a program, and hearing on a loop that it has ended.
 *
 *      weir_child_spawn ---> the program runs ---> exited, on the loop, once
 *      weir_child_watch ---> (it runs already) ---^
 *
 * A process is known by a descriptor (pidfd, Linux 5.4), not by its number: so a signal never
 * reaches a process that has come to have the number of one that is gone. How a
 * child has ended is told once: who watches it as the second, or beside somebody who waits for all
 * children, hears only that it has.
 */
#ifndef WEIR_CHILD_H
#define WEIR_CHILD_H

#include <weir/executor.h>

#ifdef __cplusplus
extern "C" {
#endif

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
    int standard[3];        /* its input, output and error; 0 = as here */
    const int *descriptors; /* become its descriptors 3, 4, ...; all others are closed there */
    size_t descriptor_count;
    bool are_listeners;           /* it is told of them as systemd does: LISTEN_PID, LISTEN_FDS */
    const char *listener_names;   /* "one:another", as LISTEN_FDNAMES */
    weir_child_exited_fn *exited; /* default: nobody is told */
    void *user_data;
} weir_child_options;

#define WEIR_CHILD_OPTIONS(...) \
    (&(const weir_child_options){.size = sizeof(weir_child_options), __VA_ARGS__})

/*
 * Makes options that are all default.
 * Thread: any.
 */
WEIR_API void weir_child_options_init(weir_child_options *options);

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
