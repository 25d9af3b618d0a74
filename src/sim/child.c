/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes that processes start. The program of a new process is that of its parent: its main
 * function is called again, with the same argument, but with the descriptors and the environment
 * that it was given. So a server can replace itself (weir_server_restart).
 *
 * An environment is empty unless the process was given one: a world does not depend on that of the
 * program that runs it.
 */
#include "sim/child.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define STDIO_COUNT 3

pid_t weir__sim_process_id(void)
{
    return weir__sim_pid(weir__sim_process());
}

int weir__sim_first_descriptor(void)
{
    return weir__sim_process()->first_descriptor;
}

weir_sim_process *weir_sim_child(weir_sim_process *process)
{
    return process->child;
}

/* ---- the environment ---- */

static char *no_entries[] = {NULL};

char *const *weir__sim_environment_entries(void)
{
    const weir_sim_process *process = weir__sim_process();

    return process->environment != NULL ? process->environment : no_entries;
}

/* The index of a variable, or that of the final NULL. */
static size_t find(char *const *entries, const char *name)
{
    size_t length = strlen(name), i = 0;

    while (entries[i] != NULL &&
           (strncmp(entries[i], name, length) != 0 || entries[i][length] != '='))
        i++;
    return i;
}

const char *weir__sim_environment_get(const char *name)
{
    char *const *entries = weir__sim_environment_entries();
    size_t i = find(entries, name);

    return entries[i] != NULL ? entries[i] + strlen(name) + 1 : NULL;
}

static int append(weir_sim_process *process, char *entry)
{
    size_t count = 0;
    char **entries;

    while (process->environment != NULL && process->environment[count] != NULL)
        count++;
    entries = realloc(process->environment, (count + 2) * sizeof(*entries));
    if (entries == NULL || entry == NULL) {
        if (entries != NULL)
            process->environment = entries;
        free(entry);
        return -ENOMEM;
    }
    entries[count] = entry;
    entries[count + 1] = NULL;
    process->environment = entries;
    return 0;
}

int weir__sim_environment_put(const char *name, const char *value)
{
    size_t size = strlen(name) + strlen(value) + 2;
    char *entry = malloc(size);

    if (entry == NULL)
        return -ENOMEM;
    (void)snprintf(entry, size, "%s=%s", name, value);
    weir__sim_environment_unset(name);
    return append(weir__sim_process(), entry);
}

void weir__sim_environment_unset(const char *name)
{
    char **entries = weir__sim_process()->environment;
    size_t i, last;

    if (entries == NULL)
        return;
    i = last = find(entries, name);
    if (entries[i] == NULL)
        return;
    while (entries[last + 1] != NULL)
        last++;
    free(entries[i]);
    entries[i] = entries[last];
    entries[last] = NULL;
}

/* ---- pidfds ---- */

struct pidfd {
    weir__sim_file file;
    weir__list link; /* of the process */
    weir_sim_process *process;
};

static bool is_over(const weir_sim_process *process)
{
    return process->has_ended || process->is_dying;
}

static unsigned pidfd_poll(weir__sim_file *file)
{
    return is_over(((const struct pidfd *)file)->process) ? POLLIN : 0;
}

static void pidfd_close(weir__sim_file *file)
{
    weir__list_remove(&((struct pidfd *)file)->link);
    free(file);
}

static const weir__sim_file_type pidfd_type = {
    .name = "pidfd",
    .poll = pidfd_poll,
    .close = pidfd_close,
};

static int open_pidfd(weir_sim_process *process)
{
    struct pidfd *self = calloc(1, sizeof(*self));
    int number = self != NULL ? weir__sim_file_open(&self->file, &pidfd_type) : -ENOMEM;

    if (number < 0) {
        free(self);
        return number;
    }
    self->process = process;
    weir__list_append(&process->pidfds, &self->link);
    return number;
}

/* NULL if it is none. */
static weir_sim_process *process_of(int number)
{
    weir__sim_file *file = weir__sim_file_of(number);

    return file != NULL && file->type == &pidfd_type ? ((struct pidfd *)file)->process : NULL;
}

void weir__sim_pidfds_changed(weir_sim_process *process)
{
    weir_list_foreach (link, &process->pidfds)
        weir__sim_file_changed(&WEIR_CONTAINER_OF(link, struct pidfd, link)->file);
}

/* ---- system calls ---- */

static int fail(int err)
{
    errno = err;
    return -1;
}

int weir__sim_pidfd_open(pid_t pid, unsigned flags)
{
    const weir_sim_host *host = weir__sim_process()->host;

    (void)flags;
    weir_list_foreach (link, &weir__sim->processes) {
        weir_sim_process *process = WEIR_CONTAINER_OF(link, weir_sim_process, link);
        int number;

        if (process->host != host || weir__sim_pid(process) != pid || process->is_reaped)
            continue;
        number = open_pidfd(process);
        return number < 0 ? fail(-number) : number;
    }
    return fail(ESRCH);
}

int weir__sim_pidfd_send_signal(int number, int signal)
{
    weir_sim_process *process = process_of(number);

    if (process == NULL)
        return fail(EBADF);
    if (weir_sim_is_dying() || process->is_reaped)
        return fail(ESRCH);
    if (signal == SIGKILL)
        weir__sim_process_kill(process);
    else if (signal != 0)
        weir__sim_process_signal(process, signal);
    return 0;
}

int weir__sim_waitid(idtype_t type, id_t id, siginfo_t *ret_info, int options)
{
    weir_sim_process *process = process_of((int)id);

    (void)type; /* P_PIDFD */
    (void)options;
    if (process == NULL)
        return fail(EBADF);
    if (process->is_reaped || process->parent != weir__sim_process())
        return fail(ECHILD);
    if (weir__sim_fault(WEIR_SIM_FAULT_INTERRUPTED))
        return fail(EINTR);
    memset(ret_info, 0, sizeof(*ret_info));
    if (!is_over(process))
        return 0;
    process->is_reaped = true;
    ret_info->si_pid = weir__sim_pid(process);
    ret_info->si_code = process->is_dying ? CLD_KILLED : CLD_EXITED;
    ret_info->si_status = process->is_dying ? SIGKILL : process->result & 0xff;
    return 0;
}

/* ---- starting ---- */

/* The entry that has the place for the pid is one of `entries`. */
static int copy_environment(weir_sim_process *process, char *const *entries)
{
    int err = 0;

    for (; *entries != NULL && err == 0; entries++)
        err = append(process, strdup(*entries));
    return err;
}

static int prepare(weir_sim_process *process, const weir__process_options *options,
                   int *ret_descriptor)
{
    int descriptor, first = 0, err;

    if (options->pid_text != NULL)
        (void)snprintf(options->pid_text, WEIR__PROCESS_DIGITS + 1, "%u",
                       (unsigned)weir__sim_pid(process) % 1000000000);
    err = copy_environment(process, options->env);
    if (err < 0)
        return err;
    descriptor = open_pidfd(process);
    if (descriptor < 0)
        return descriptor;
    if (options->count > STDIO_COUNT)
        first = weir__sim_files_pass(process, options->descriptors + STDIO_COUNT,
                                     options->count - STDIO_COUNT);
    if (first < 0) {
        (void)weir__sim_file_close(descriptor);
        return first;
    }
    process->first_descriptor = first;
    *ret_descriptor = descriptor;
    return 0;
}

int weir__sim_process_start(const weir__process_options *options, weir__process *ret_process)
{
    weir_sim_process *self = weir__sim_process(), *process;
    int descriptor, err;

    if (self->fn == NULL)
        return -ENOSYS; /* the world is not a program */
    if (self->is_dying)
        return -EAGAIN;
    process = weir__sim_process_create(self->host, self->name);
    if (process == NULL)
        return -ENOMEM;
    process->fn = self->fn;
    process->arg = self->arg;
    process->parent = self;
    err = prepare(process, options, &descriptor);
    if (err < 0) {
        weir__sim_process_free(process);
        return err;
    }
    weir__sim_trace_named("spawn", process, "", process->number, self->number);
    err = weir__sim_process_begin(process);
    if (err < 0) {
        weir_sim_fail(weir__sim, "no memory to start %s", process->name);
        return err;
    }
    self->child = process;
    *ret_process = (weir__process){.pid = weir__sim_pid(process), .descriptor = descriptor};
    return 0;
}
