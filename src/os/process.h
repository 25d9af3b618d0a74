/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes: starting a program, and knowing it by a descriptor, which no other process can come to
 * have, as it can come to have a number.
 */
#ifndef WEIR_OS_PROCESS_H
#define WEIR_OS_PROCESS_H

#include <stddef.h>
#include <sys/types.h>

/* The number of this one. */
pid_t weir__process_id(void);

#define WEIR__PROCESS_DIGITS 10 /* the most that a number has */

typedef struct weir__process_options {
    const char *program;   /* its path */
    char *const *argv;     /* to NULL, as `env` */
    char *const *env;      /* "NAME=value" */
    char *pid_text;        /* in `env`: where its number is to be written, with as many digits and a
                              0 behind; NULL = nowhere */
    const char *directory; /* NULL = that of this process */
    int *descriptors;      /* the i-th becomes descriptor i; -1 = as it is here. Overwritten in the
                              new process's memory. */
    size_t count;          /* of them: at least 3. All further ones are closed. */
} weir__process_options;

typedef struct weir__process {
    pid_t pid;
    int descriptor; /* a pidfd */
} weir__process;

/*
 * Starts a program, with default signals, none of them blocked - a SIGHUP that is ignored stays so,
 * for nohup(1). Returns when it runs: what keeps it from running is an error here, and there is no
 * process then. Fails with -EAGAIN, -ENOMEM, -EMFILE, -ENOSYS (no pidfd) and what execve(2),
 * dup2(2) and chdir(2) say.
 */
int weir__process_start(const weir__process_options *options, weir__process *ret_process);

/* The descriptor of a process that runs. Fails with -ESRCH, -EMFILE, -ENOSYS, ... */
int weir__process_open(pid_t pid, int *ret_descriptor);

/* Kills a process that was started and has not been waited for, and closes its descriptor. */
void weir__process_kill(weir__process *process);

/*
 * The path of a program: of `name` itself if there is a slash in it, otherwise by PATH. Fails with
 * -ENOENT, -EACCES, -ENOMEM. Gives: path, from weir__alloc.
 */
int weir__process_find(const char *name, char **ret_path);

#endif
