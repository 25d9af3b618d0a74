/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptors of simulated processes, and eventfds.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "sim/network.h"

/* ---- descriptors ---- */

/*
 * Descriptors are numbers of the world, not of a process: the global executor, which all processes
 * share, may close one. They are counted for the process that opened them.
 */
static int find_slots(weir_sim_process *process, size_t count, size_t *ret_first)
{
    weir_sim *sim = weir__sim;
    size_t first, found = 0;

    if (process->descriptors + count > sim->options.max_descriptors)
        return -EMFILE;
    while (sim->first_free < sim->descriptor_size && sim->descriptors[sim->first_free] != NULL)
        sim->first_free++;
    first = sim->first_free;
    while (found < count && first + found < sim->descriptor_size) {
        found++;
        if (sim->descriptors[first + found - 1] != NULL) {
            first += found;
            found = 0;
        }
    }
    if (found < count) {
        size_t size = sim->descriptor_size > 0 ? sim->descriptor_size * 2 : 256;
        weir__sim_descriptor **descriptors;

        size += count;
        descriptors = realloc(sim->descriptors, size * sizeof(*descriptors));
        if (descriptors == NULL)
            return -ENOMEM;
        memset(descriptors + sim->descriptor_size, 0,
               (size - sim->descriptor_size) * sizeof(*descriptors));
        sim->descriptors = descriptors;
        sim->descriptor_size = size;
    }
    *ret_first = first;
    return 0;
}

static int add_at(size_t slot, weir__sim_file *file, weir_sim_process *process)
{
    weir__sim_descriptor *descriptor = calloc(1, sizeof(*descriptor));

    if (descriptor == NULL)
        return -ENOMEM;
    descriptor->file = file;
    descriptor->process = process;
    descriptor->is_dead = file->is_socket && process->is_dying;
    weir__list_init(&descriptor->ready_link);
    weir__list_init(&descriptor->watches);
    weir__list_append(&file->descriptors, &descriptor->link);
    file->references++;
    file->dead += descriptor->is_dead;
    weir__sim->descriptors[slot] = descriptor;
    process->descriptors++;
    return WEIR__SIM_FD_FIRST + (int)slot;
}

static int add_descriptor(weir__sim_file *file)
{
    weir_sim_process *process = weir__sim_process();
    size_t slot = 0;
    int err = find_slots(process, 1, &slot);

    return err < 0 ? err : add_at(slot, file, process);
}

int weir__sim_file_open(weir__sim_file *file, const weir__sim_file_type *type)
{
    int number;

    if (weir__sim_fault(WEIR_SIM_FAULT_DESCRIPTORS))
        return -EMFILE;
    weir__list_init(&file->descriptors);
    number = add_descriptor(file);
    if (number < 0)
        return number;
    file->type = type;
    file->process = weir__sim_process();
    file->is_dead = file->dead > 0;
    file->number = ++weir__sim->next_file;
    return number;
}

int weir__sim_file_duplicate(weir__sim_file *file)
{
    return weir__sim_fault(WEIR_SIM_FAULT_DESCRIPTORS) ? -EMFILE : add_descriptor(file);
}

int weir__sim_files_pass(weir_sim_process *to, const int *numbers, size_t count)
{
    size_t first = 0;
    int err = 0;

    for (size_t i = 0; i < count && err == 0; i++)
        err = weir__sim_file_of(numbers[i]) != NULL ? 0 : -EBADF;
    if (err == 0)
        err = find_slots(to, count, &first);
    for (size_t i = 0; i < count && err == 0; i++) {
        err = add_at(first + i, weir__sim_file_of(numbers[i]), to);
        if (err < 0)
            abort(); /* no memory for a few bytes */
        weir__sim->descriptors[first + i]->was_passed = true;
        err = 0;
    }
    return err < 0 ? err : WEIR__SIM_FD_FIRST + (int)first;
}

weir__sim_descriptor *weir__sim_descriptor_of(int number)
{
    size_t slot = (size_t)(number - WEIR__SIM_FD_FIRST);

    return number >= WEIR__SIM_FD_FIRST && slot < weir__sim->descriptor_size
               ? weir__sim->descriptors[slot]
               : NULL;
}

weir__sim_file *weir__sim_file_of(int number)
{
    const weir__sim_descriptor *descriptor = weir__sim_descriptor_of(number);

    return descriptor != NULL ? descriptor->file : NULL;
}

/*
 * Of a dead process it is ready for everything, and everything fails. But a datagram socket that
 * fails continues to receive: it receives nothing, and only sending fails.
 */
static unsigned events_of_dead(const weir__sim_descriptor *descriptor)
{
    const weir__sim_socket *socket = (const weir__sim_socket *)(const void *)descriptor->file;

    return socket->kind == SOCK_DGRAM ? POLLOUT : POLLIN | POLLOUT | POLLERR | POLLHUP | POLLRDHUP;
}

unsigned weir__sim_descriptor_poll(weir__sim_descriptor *descriptor)
{
    return descriptor->is_dead ? events_of_dead(descriptor)
                               : descriptor->file->type->poll(descriptor->file);
}

/* True if an exclusive one has taken the wake-up. */
static bool wake_watches(weir__sim_descriptor *descriptor, unsigned events, bool is_taken)
{
    weir_list_foreach (link, &descriptor->watches) {
        weir__sim_watch *watch = WEIR_CONTAINER_OF(link, weir__sim_watch, link);

        if (!watch->is_exclusive || !is_taken)
            is_taken |= watch->fn(watch, events) && watch->is_exclusive;
    }
    return is_taken;
}

void weir__sim_file_woken(weir__sim_file *file, unsigned events)
{
    bool is_taken = false;

    weir_list_foreach (link, &file->descriptors) {
        weir__sim_descriptor *descriptor = WEIR_CONTAINER_OF(link, weir__sim_descriptor, link);

        if (descriptor->handle != NULL && (!descriptor->handle->exclusive || !is_taken))
            is_taken |= weir__sim_io_ready(descriptor);
        is_taken = wake_watches(descriptor, events, is_taken);
    }
}

void weir__sim_file_changed(weir__sim_file *file)
{
    weir__sim_file_woken(file, 0);
}

void weir__sim_file_short_read(weir__sim_file *file)
{
    weir_list_foreach (link, &file->descriptors)
        (void)wake_watches(WEIR_CONTAINER_OF(link, weir__sim_descriptor, link), WEIR__SIM_DATA,
                           false);
}

/* ---- references ---- */

/* The last process that could use the file has died. */
static void kill_if_dead(weir__sim_file *file)
{
    if (file->is_dead || file->dead < file->references)
        return;
    file->is_dead = true;
    if (file->type->kill != NULL)
        file->type->kill(file);
}

void weir__sim_file_retain(weir__sim_file *file)
{
    file->references++;
}

void weir__sim_file_release(weir__sim_file *file)
{
    if (--file->references == 0)
        file->type->close(file);
    else
        kill_if_dead(file);
}

int weir__sim_file_close(int number)
{
    weir__sim_descriptor *descriptor = weir__sim_descriptor_of(number);
    size_t slot = (size_t)(number - WEIR__SIM_FD_FIRST);
    weir__sim_file *file;

    if (descriptor == NULL)
        return -EBADF;
    file = descriptor->file;
    weir__sim->descriptors[slot] = NULL;
    if (slot < weir__sim->first_free)
        weir__sim->first_free = slot;
    weir__sim_io_forget(descriptor);
    weir_list_foreach (link, &descriptor->watches) {
        weir__sim_watch *watch = WEIR_CONTAINER_OF(link, weir__sim_watch, link);

        weir__list_remove(&watch->link);
        watch->descriptor = NULL;
        (void)watch->fn(watch, 0);
    }
    weir__list_remove(&descriptor->link);
    descriptor->process->descriptors--;
    file->dead -= descriptor->is_dead;
    free(descriptor);
    weir__sim_file_release(file);
    return 0;
}

void weir__sim_files_end(weir_sim_process *process)
{
    for (size_t i = 0; i < weir__sim->descriptor_size; i++) {
        const weir__sim_descriptor *descriptor = weir__sim->descriptors[i];

        if (descriptor != NULL && descriptor->process == process && descriptor->was_passed)
            (void)weir__sim_file_close(WEIR__SIM_FD_FIRST + (int)i);
    }
}

void weir__sim_files_kill(weir_sim_process *process)
{
    for (size_t i = 0; i < weir__sim->descriptor_size; i++) {
        weir__sim_descriptor *descriptor = weir__sim->descriptors[i];

        if (descriptor == NULL || descriptor->process != process || descriptor->is_dead ||
            !descriptor->file->is_socket)
            continue;
        descriptor->is_dead = true;
        descriptor->file->dead++;
        kill_if_dead(descriptor->file);
        weir__sim_file_changed(descriptor->file);
    }
}

/* ---- eventfds ---- */

struct eventfd {
    weir__sim_file file;
    uint64_t value;
    weir__sim_io *wakes; /* the backend that it wakes */
};

static unsigned eventfd_poll(weir__sim_file *file)
{
    const struct eventfd *self = (const struct eventfd *)file;

    return (self->value > 0 ? POLLIN : 0u) | POLLOUT;
}

static void eventfd_close(weir__sim_file *file)
{
    free(file);
}

static const weir__sim_file_type eventfd_type = {
    .name = "eventfd",
    .poll = eventfd_poll,
    .close = eventfd_close,
};

int weir__sim_eventfd(unsigned value)
{
    struct eventfd *self = calloc(1, sizeof(*self));
    int descriptor = self != NULL ? weir__sim_file_open(&self->file, &eventfd_type) : -ENOMEM;

    if (descriptor < 0)
        free(self);
    else
        self->value = value;
    return descriptor;
}

bool weir__sim_eventfd_write(weir__sim_file *file, uint64_t value)
{
    struct eventfd *self = (struct eventfd *)file;

    if (file->type != &eventfd_type)
        return false;
    self->value += value;
    if (self->wakes != NULL)
        weir__sim_io_wake(self->wakes);
    weir__sim_file_changed(file);
    return true;
}

bool weir__sim_eventfd_read(weir__sim_file *file, uint64_t *ret_value)
{
    struct eventfd *self = (struct eventfd *)file;

    if (file->type != &eventfd_type || self->value == 0)
        return false;
    *ret_value = self->value;
    self->value = 0;
    return true;
}

void weir__sim_eventfd_set_io(int descriptor, weir__sim_io *io)
{
    weir__sim_file *file = weir__sim_file_of(descriptor);

    if (file != NULL && file->type == &eventfd_type)
        ((struct eventfd *)file)->wakes = io;
}
