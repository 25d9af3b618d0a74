/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fork and exec. Everything that can be prepared is prepared before the fork: until the exec the
 * child calls only async-signal-safe functions (signal-safety(7)), because other threads of the
 * parent may have held any lock.
 *
 * The parent reads from a pipe, which the exec closes. If the exec fails the child writes its
 * errno.
 */
#include "os/process.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/memory.h"
#include "os/descriptor.h"
#include "os/system.h"
#include "os/virtual_os.h"

#define PATH_DEFAULT "/usr/local/bin:/usr/bin:/bin"
#define CLOEXEC_RANGE (1u << 2) /* CLOSE_RANGE_CLOEXEC, of Linux 5.11 */

pid_t weir__process_id(void)
{
    return weir__os_is_virtual() ? weir__virtual_os_set->process_id() : getpid();
}

pid_t weir__process_kernel_id(void)
{
    return getpid();
}

int weir__process_first_descriptor(void)
{
    return weir__os_is_virtual() ? weir__virtual_os_set->process_first_descriptor()
                                 : STDERR_FILENO + 1;
}

/* ---- in the child ---- */

/* Handlers of this program must not run in the child when signals are unblocked. */
static void restore_signals(void)
{
    const struct sigaction default_action = {.sa_handler = SIG_DFL};
    struct sigaction action;
    sigset_t none;

    for (int number = 1; number < _NSIG; number++) {
        if (number == SIGHUP && sigaction(number, NULL, &action) == 0 &&
            action.sa_handler == SIG_IGN)
            continue;
        (void)sigaction(number, &default_action, NULL); /* fails for SIGKILL and SIGSTOP */
    }
    sigemptyset(&none);
    (void)pthread_sigmask(SIG_SETMASK, &none, NULL);
}

/* Copies them above `count` first, so that none is overwritten before it was copied. */
static bool place_descriptors(int *descriptors, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (descriptors[i] < 0)
            continue;
        descriptors[i] = fcntl(descriptors[i], F_DUPFD_CLOEXEC, (int)count);
        if (descriptors[i] < 0)
            return false;
    }
    for (size_t i = 0; i < count; i++)
        if (descriptors[i] >= 0 && dup2(descriptors[i], (int)i) < 0)
            return false;
    /* Sets CLOEXEC on descriptors that lack it; fails on kernels before 5.11. */
    (void)syscall(SYS_close_range, (unsigned)count, ~0u, CLOEXEC_RANGE);
    return true;
}

static void write_pid(char *place, pid_t number)
{
    char digits[WEIR__PROCESS_DIGITS];
    size_t count = 0;

    for (; number > 0 && count < sizeof(digits); number /= 10)
        digits[count++] = (char)('0' + number % 10);
    while (count > 0)
        *place++ = digits[--count];
    *place = '\0';
}

static void exec_child(const weir__process_options *options, int report)
{
    int high = fcntl(report, F_DUPFD_CLOEXEC, (int)options->count), err;

    if (high >= 0 && place_descriptors(options->descriptors, options->count) &&
        (options->directory == NULL || chdir(options->directory) == 0)) {
        if (options->pid_text != NULL)
            write_pid(options->pid_text, getpid());
        restore_signals();
        (void)execve(options->program, options->argv, options->env);
    }
    err = errno;
    (void)weir__sys.write(high >= 0 ? high : report, &err, sizeof(err));
    _exit(127);
}

/* ---- in the parent ---- */

static pid_t fork_with_signals_blocked(const weir__process_options *options, int report)
{
    sigset_t all, before;
    pid_t pid;
    int err;

    sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    pid = weir__sys.fork();
    if (pid == 0)
        exec_child(options, report);
    err = errno;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return pid < 0 ? -err : pid;
}

/* Returns 0 if the exec succeeded. */
static int read_exec_error(int pipe_end)
{
    int err = 0;
    ssize_t length;

    do {
        length = weir__sys.read(pipe_end, &err, sizeof(err));
    } while (length < 0 && errno == EINTR);
    if (length < 0)
        return -errno;
    return length == (ssize_t)sizeof(err) ? -err : 0;
}

static int start_and_check(const weir__process_options *options, const int ends[2],
                           weir__process *process)
{
    int err;

    process->pid = fork_with_signals_blocked(options, ends[1]);
    (void)weir__descriptor_close(ends[1]); /* now only the child has it */
    if (process->pid < 0)
        return process->pid;
    err = read_exec_error(ends[0]);
    if (err == 0)
        err = weir__process_open(process->pid, &process->descriptor);
    if (err < 0) {
        process->descriptor = -1;
        weir__process_kill(process);
    }
    return err;
}

int weir__process_start(const weir__process_options *options, weir__process *ret_process)
{
    weir__process process;
    int ends[2], err;

    if (weir__os_is_virtual())
        return weir__virtual_os_set->process_start(options, ret_process);
    if (weir__sys.pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    err = start_and_check(options, ends, &process);
    (void)weir__descriptor_close(ends[0]);
    if (err == 0)
        *ret_process = process;
    return err;
}

int weir__process_open(pid_t pid, int *ret_descriptor)
{
    int descriptor = weir__sys.pidfd_open(pid, 0);

    if (descriptor < 0)
        return -errno;
    *ret_descriptor = descriptor;
    return 0;
}

void weir__process_kill(weir__process *process)
{
    siginfo_t info;

    if (weir__os_is_virtual())
        (void)weir__sys.pidfd_send_signal(process->descriptor, SIGKILL);
    else
        (void)kill(process->pid, SIGKILL);
    while (!weir__os_is_virtual() &&
           weir__sys.waitid(P_PID, (id_t)process->pid, &info, WEXITED) < 0 && errno == EINTR)
        continue;
    if (process->descriptor >= 0)
        (void)weir__descriptor_close(process->descriptor);
    process->descriptor = -1;
}

/* ---- programs ---- */

/* "directory/name"; an empty directory is the current one. */
static char *join(const char *directory, size_t length, const char *name)
{
    size_t rest = strlen(name) + 1;
    char *path = weir__alloc(length + 2 + rest);

    if (path == NULL)
        return NULL;
    if (length == 0)
        path[length++] = '.';
    else
        memcpy(path, directory, length);
    path[length] = '/';
    memcpy(path + length + 1, name, rest);
    return path;
}

static int find_by_path(const char *name, char **ret_path)
{
    const char *place = getenv("PATH");
    int err = -ENOENT;

    for (place = place != NULL ? place : PATH_DEFAULT;; place++) {
        size_t length = strcspn(place, ":");
        char *path = join(place, length, name);

        if (path == NULL)
            return -ENOMEM;
        if (access(path, X_OK) == 0) {
            *ret_path = path;
            return 0;
        }
        if (errno == EACCES)
            err = -EACCES;
        weir__free(path);
        place += length;
        if (*place == '\0')
            return err;
    }
}

int weir__process_find(const char *name, char **ret_path)
{
    char *path;

    if (strchr(name, '/') == NULL && !weir__os_is_virtual())
        return *name != '\0' ? find_by_path(name, ret_path) : -ENOENT;
    path = weir__strdup(name);
    if (path == NULL)
        return -ENOMEM;
    *ret_path = path;
    return 0;
}
