/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes of a world: start, signals, death, disks.
 *
 * A killed process cannot simply vanish: its memory is that of weir in this process, and parts of
 * it are in use by the registries of the library. So it is cut off instead (weir_sim_kill): from
 * that moment nothing that it does can be seen, and it cleans up by its own error handling.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/error.h>

#include "sim/child.h"
#include "sim/signal_file.h"
#include "sim/world.h"

weir_sim_process *weir__sim_process(void)
{
    return weir__sim->current->process;
}

/* ---- static variables ---- */

struct variable {
    weir__list link;
    const void *of; /* the variable of the library */
    _Alignas(16) char value[];
};

void *weir__sim_process_static(const void *variable, size_t size)
{
    weir__list *statics = &weir__sim_process()->statics;
    struct variable *copy;

    weir_list_foreach (link, statics) {
        copy = WEIR_CONTAINER_OF(link, struct variable, link);
        if (copy->of == variable)
            return copy->value;
    }
    copy = calloc(1, sizeof(*copy) + size);
    if (copy == NULL)
        abort();
    copy->of = variable;
    weir__list_append(statics, &copy->link);
    return copy->value;
}

static void free_statics(weir_sim_process *process)
{
    weir__list *link;

    while ((link = weir__list_pop(&process->statics)) != NULL)
        free(WEIR_CONTAINER_OF(link, struct variable, link));
}

/* ---- start and end ---- */

weir_sim_process *weir__sim_process_create(weir_sim_host *host, const char *name)
{
    weir_sim_process *process = calloc(1, sizeof(*process));

    if (process == NULL)
        return NULL;
    process->host = host;
    process->name = strdup(name);
    process->number = weir__sim->next_process++;
    weir__list_init(&process->signal_files);
    weir__list_init(&process->statics);
    weir__list_init(&process->pidfds);
    weir__list_append(&weir__sim->processes, &process->link);
    return process;
}

void weir__sim_process_free(weir_sim_process *process)
{
    weir__list_remove(&process->link);
    weir__sim_event_remove(&process->restart);
    free_statics(process);
    for (char **entry = process->environment; entry != NULL && *entry != NULL; entry++)
        free(*entry);
    free(process->environment);
    free(process->name);
    free(process);
}

static weir__sim_event_fn on_restart;

/* Wakes the fibers that wait for an object: a process, or the world. */
static void wake_joiners(const void *object)
{
    weir_list_foreach (link, &weir__sim->process_joiners) {
        weir__sim_fiber *fiber = WEIR_CONTAINER_OF(link, weir__sim_fiber, wait_link);

        if (fiber->wait_object == object)
            weir__sim_wake_fiber(fiber);
    }
}

static void process_main(void *arg)
{
    weir_sim_process *process = arg;

    process->result = process->fn(process->arg);
    process->has_ended = true;
    weir__sim_files_end(process);
    weir__sim_pidfds_changed(process);
    weir__sim_trace_named("process ends", process, "", process->number, (uint64_t)-process->result);
    if (process->result < 0 && !process->is_dying)
        weir_sim_fail(weir__sim, "process %s failed: %s", process->name,
                      weir_error_text(process->result));
    wake_joiners(process);
}

int weir__sim_process_begin(weir_sim_process *process)
{
    weir__sim_fiber *fiber = weir__sim_fiber_start(process, process->name, process_main, process);

    if (fiber == NULL)
        return -ENOMEM;
    fiber->detached = true;
    return 0;
}

int weir_sim_start(weir_sim_host *host, const char *name, weir_sim_main_fn *fn, void *arg,
                   weir_sim_process **ret_process)
{
    weir_sim_process *process = weir__sim_process_create(host, name);

    if (process == NULL)
        return -ENOMEM;
    process->fn = fn;
    process->arg = arg;
    if (ret_process != NULL)
        *ret_process = process;
    return weir__sim_process_begin(process);
}

void weir__sim_process_leave(weir_sim_process *process)
{
    if (--process->fibers == 0)
        wake_joiners(weir__sim);
}

static bool have_processes_ended(void)
{
    weir_list_foreach (link, &weir__sim->processes) {
        const weir_sim_process *process = WEIR_CONTAINER_OF(link, weir_sim_process, link);

        if (process != weir__sim->world_process &&
            (process->fibers > 0 || process->restart.slot != 0))
            return false;
    }
    return true;
}

void weir__sim_processes_join(void)
{
    while (!have_processes_ended()) {
        weir__list_append(&weir__sim->process_joiners, &weir__sim->current->wait_link);
        weir__sim_wait("the end of all processes", weir__sim, WEIR_NEVER);
    }
}

/* The process that runs now, of those that replaced it after a death. */
static weir_sim_process *latest(weir_sim_process *process)
{
    while (process->successor != NULL)
        process = process->successor;
    return process;
}

int weir_sim_join(weir_sim_process *process)
{
    process = latest(process);
    while (!process->has_ended || process->restart.slot != 0 || process->successor != NULL) {
        weir__list_append(&weir__sim->process_joiners, &weir__sim->current->wait_link);
        weir__sim_wait("the end of a process", process, WEIR_NEVER);
        process = latest(process);
    }
    return process->is_dying ? 0 : process->result;
}

bool weir_sim_is_alive(const weir_sim_process *process)
{
    while (process->successor != NULL)
        process = process->successor;
    return !process->has_ended && !process->is_dying;
}

bool weir_sim_is_dying(void)
{
    return weir__sim != NULL && weir__sim->current->process->is_dying;
}

static void deliver(weir_sim_process *process, int number)
{
    process->pending_signals |= UINT64_C(1) << (number - 1);
    weir__sim_signal_files_changed(process);
    weir_list_foreach (link, &weir__sim->fibers) {
        weir__sim_fiber *fiber = WEIR_CONTAINER_OF(link, weir__sim_fiber, link);

        if (fiber->process == process && (fiber->signals & process->pending_signals) != 0) {
            weir__sim_wake_fiber(fiber);
            break;
        }
    }
}

void weir__sim_process_signal(weir_sim_process *process, int number)
{
    weir__sim_trace_named("signal", process, "", process->number, (uint64_t)number);
    if (!process->has_ended)
        deliver(process, number);
}

void weir_sim_signal(weir_sim_process *process, int number)
{
    weir__sim_process_signal(latest(process), number);
}

/* ---- death ---- */

void weir_sim_kill(weir_sim_process *process)
{
    weir__sim_process_kill(latest(process));
}

void weir__sim_process_kill(weir_sim_process *process)
{
    if (process->has_ended || process->is_dying)
        return;
    weir__sim_trace_named("kill", process, "", process->number, 0);
    process->is_dying = true;
    weir__sim_files_kill(process);
    weir__sim_pidfds_changed(process);
    if (process->restarts)
        weir__sim_event_add(&process->restart, weir__sim->now_ns + process->restart_ns, on_restart);
    deliver(process, SIGTERM);
}

/* The dead process may still be cleaning up. */
static void on_restart(weir__sim_event *event)
{
    weir_sim_process *dead = WEIR_CONTAINER_OF(event, weir_sim_process, restart);
    weir_sim_process *process;

    if (!dead->has_ended) { /* it still cleans up what the two would share, such as signals */
        weir__sim_event_add(event, weir__sim->now_ns + weir_ms(1), on_restart);
        return;
    }
    process = weir__sim_process_create(dead->host, dead->name);
    if (process == NULL)
        return;
    process->fn = dead->fn;
    process->arg = dead->arg;
    process->restarts = dead->restarts;
    process->restart_ns = dead->restart_ns;
    process->generation = dead->generation + 1;
    dead->successor = process;
    weir__sim_trace_named("restart", process, "", process->number, process->generation);
    if (weir__sim_process_begin(process) < 0)
        weir_sim_fail(weir__sim, "no memory to restart %s", process->name);
    wake_joiners(dead);
}

void weir_sim_restart(weir_sim_process *process, int64_t delay_ns)
{
    process = latest(process);
    process->restarts = delay_ns >= 0;
    process->restart_ns = delay_ns;
    if (!process->restarts && process->restart.slot != 0) {
        weir__sim_event_remove(&process->restart);
        wake_joiners(process);
        wake_joiners(weir__sim);
    }
}

void weir__sim_processes_die(void)
{
    weir_sim_process *found = NULL;
    uint64_t count = 0;

    weir_list_foreach (link, &weir__sim->processes) {
        weir_sim_process *process = WEIR_CONTAINER_OF(link, weir_sim_process, link);

        if (process->restarts && !process->has_ended && !process->is_dying &&
            weir__sim_below(++count) == 0)
            found = process;
    }
    if (found != NULL)
        weir_sim_kill(found);
}

/* ---- hosts ---- */

void weir_sim_host_stop(weir_sim_host *host)
{
    weir__sim_trace_named("stop host", NULL, host->name, host->number, ++host->stops);
}

void weir_sim_host_continue(weir_sim_host *host)
{
    if (host->stops > 0)
        host->stops--;
    weir__sim_trace_named("continue host", NULL, host->name, host->number, host->stops);
}

void weir_sim_step_clock(weir_sim_host *host, int64_t delta_ns)
{
    host->clock_offset_ns += delta_ns;
    weir__sim_trace_named("step clock", NULL, host->name, host->number, (uint64_t)delta_ns);
}

/* ---- disks ---- */

int weir_sim_disk_append(const void *bytes, size_t length)
{
    weir_sim_host *host = weir__sim_process()->host;

    if (weir_sim_is_dying())
        return -EIO;
    if (host->disk_length + length > host->disk_size) {
        size_t size = (host->disk_length + length) * 2;
        uint8_t *disk = realloc(host->disk, size);

        if (disk == NULL)
            return -ENOMEM;
        host->disk = disk;
        host->disk_size = size;
    }
    memcpy(host->disk + host->disk_length, bytes, length);
    host->disk_length += length;
    weir__sim_trace_named("disk", NULL, host->name, host->number, length);
    return 0;
}

size_t weir_sim_disk_read(size_t offset, void *ret_bytes, size_t size)
{
    const weir_sim_host *host = weir__sim_process()->host;
    size_t length = offset < host->disk_length ? host->disk_length - offset : 0;

    length = length < size ? length : size;
    if (length > 0)
        memcpy(ret_bytes, host->disk + offset, length);
    return length;
}
