/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts programs. Processes are identified by a pidfd, because pids are reused.
 */
#ifndef WEIR_OS_PROCESS_H
#define WEIR_OS_PROCESS_H

#include <stddef.h>
#include <sys/types.h>

/* The pid of this process, which may be a virtual one. */
pid_t weir__process_id(void);

/* The kernel's: different in a forked child only. */
pid_t weir__process_kernel_id(void);

/* The first of the descriptors that the process was started with, after stdio: 3, unless it is a
 * virtual process. The others follow it. */
int weir__process_first_descriptor(void);

#define WEIR__PROCESS_DIGITS 10 /* maximum number of digits of a pid */

typedef struct weir__process_options {
    const char *program; /* its path */
    char *const *argv;   /* to NULL, as `env` */
    char *const *env;    /* "NAME=value" */
    char *pid_text; /* in `env`: where to write the pid of the child, WEIR__PROCESS_DIGITS digits
                       and a NUL; NULL = nowhere */
    const char *directory; /* NULL = the current one */
    int *descriptors; /* the i-th becomes descriptor i; -1 = inherited as it is. Overwritten in the
                         child. */
    size_t count;     /* of descriptors, at least 3. All others are closed. */
} weir__process_options;

typedef struct weir__process {
    pid_t pid;
    int descriptor; /* a pidfd */
} weir__process;

/*
 * Starts a program with default signal handlers and no signals blocked; an ignored SIGHUP stays
 * ignored, for nohup(1). Returns when the program runs. On failure there is no process. Fails with
 * -EAGAIN, -ENOMEM, -EMFILE, -ENOSYS (no pidfd) and the errors of execve(2), dup2(2) and chdir(2).
 */
int weir__process_start(const weir__process_options *options, weir__process *ret_process);

/* Opens a pidfd of a running process. Fails with -ESRCH, -EMFILE, -ENOSYS, ... */
int weir__process_open(pid_t pid, int *ret_descriptor);

/* Kills and reaps a process that was started, and closes its pidfd. */
void weir__process_kill(weir__process *process);

/*
 * Finds a program: `name` itself if it contains a slash, otherwise in PATH. Fails with -ENOENT,
 * -EACCES, -ENOMEM. Free the path with weir__free.
 */
int weir__process_find(const char *name, char **ret_path);

#endif
