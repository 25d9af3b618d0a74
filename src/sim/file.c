/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptors of simulated processes, and eventfds.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "sim/world.h"

/*
 * Descriptors are numbers of the world, not of a process: the global executor, which all processes
 * share, may close one. They are counted for the process that opened them.
 */
static int find_slot(weir_sim_process *process, size_t *ret_slot)
{
    weir_sim *sim = weir__sim;
    weir__sim_file **files;
    size_t size;

    if (process->descriptors >= sim->options.max_descriptors)
        return -EMFILE;
    while (sim->first_free < sim->file_size && sim->files[sim->first_free] != NULL)
        sim->first_free++;
    if (sim->first_free == sim->file_size) {
        size = sim->file_size > 0 ? sim->file_size * 2 : 256;
        files = realloc(sim->files, size * sizeof(*files));
        if (files == NULL)
            return -ENOMEM;
        memset(files + sim->file_size, 0, (size - sim->file_size) * sizeof(*files));
        sim->files = files;
        sim->file_size = size;
    }
    *ret_slot = sim->first_free;
    return 0;
}

int weir__sim_file_open(weir__sim_file *file, const weir__sim_file_type *type)
{
    weir_sim_process *process = weir__sim_process();
    size_t slot;
    int err = weir__sim_fault(WEIR_SIM_FAULT_DESCRIPTORS) ? -EMFILE : find_slot(process, &slot);

    if (err < 0)
        return err;
    file->type = type;
    file->process = process;
    file->references = 1;
    file->is_dead = file->is_socket && process->is_dying;
    file->number = ++weir__sim->next_file;
    weir__list_init(&file->ready_link);
    weir__sim->files[slot] = file;
    process->descriptors++;
    return WEIR__SIM_FD_FIRST + (int)slot;
}

weir__sim_file *weir__sim_file_of(int descriptor)
{
    size_t slot = (size_t)(descriptor - WEIR__SIM_FD_FIRST);

    return descriptor >= WEIR__SIM_FD_FIRST && slot < weir__sim->file_size ? weir__sim->files[slot]
                                                                           : NULL;
}

int weir__sim_file_close(int descriptor)
{
    weir__sim_file *file = weir__sim_file_of(descriptor);
    size_t slot = (size_t)(descriptor - WEIR__SIM_FD_FIRST);

    if (file == NULL)
        return -EBADF;
    weir__sim->files[slot] = NULL;
    if (slot < weir__sim->first_free)
        weir__sim->first_free = slot;
    file->process->descriptors--;
    if (--file->references > 0)
        return 0;
    weir__list_remove(&file->ready_link);
    file->handle = NULL;
    file->io = NULL;
    file->type->close(file);
    return 0;
}

int weir__sim_file_duplicate(int descriptor)
{
    weir__sim_file *file = weir__sim_file_of(descriptor);
    size_t slot;
    int err = file == NULL ? -EBADF : find_slot(file->process, &slot);

    if (err < 0)
        return err;
    file->references++;
    file->process->descriptors++;
    weir__sim->files[slot] = file;
    return WEIR__SIM_FD_FIRST + (int)slot;
}

void weir__sim_file_changed(weir__sim_file *file)
{
    if (file->handle != NULL)
        weir__sim_io_ready(file);
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
