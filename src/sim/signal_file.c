/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Simulated signalfds: a signal that is pending for the process makes them readable.
 */
#include "sim/signal_file.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>

struct signal_file {
    weir__sim_file file;
    weir__list link; /* of the process */
    uint64_t set;
};

static unsigned signal_poll(weir__sim_file *file)
{
    const struct signal_file *self = (const struct signal_file *)file;

    return (file->process->pending_signals & self->set) != 0 ? POLLIN : 0;
}

static void signal_close(weir__sim_file *file)
{
    weir__list_remove(&((struct signal_file *)file)->link);
    free(file);
}

static const weir__sim_file_type type = {
    .name = "signalfd",
    .poll = signal_poll,
    .close = signal_close,
};

int weir__sim_signal_file(int descriptor, const sigset_t *mask, int flags)
{
    struct signal_file *self;
    int opened;

    (void)flags;
    if (descriptor >= 0) {
        errno = EINVAL;
        return -1;
    }
    self = calloc(1, sizeof(*self));
    opened = self != NULL ? weir__sim_file_open(&self->file, &type) : -ENOMEM;
    if (opened < 0) {
        free(self);
        errno = -opened;
        return -1;
    }
    for (int number = 1; number <= 64; number++)
        if (sigismember(mask, number) == 1)
            self->set |= UINT64_C(1) << (number - 1);
    weir__list_append(&weir__sim_process()->signal_files, &self->link);
    return opened;
}

bool weir__sim_signal_file_is(const weir__sim_file *file)
{
    return file->type == &type;
}

ssize_t weir__sim_signal_file_read(weir__sim_file *file, void *memory, size_t size)
{
    const struct signal_file *self = (const struct signal_file *)file;
    uint64_t pending = file->process->pending_signals & self->set;
    struct signalfd_siginfo info = {0};

    if (pending == 0)
        return -EAGAIN;
    if (size < sizeof(info))
        return -EINVAL;
    info.ssi_signo = (uint32_t)__builtin_ctzll(pending) + 1;
    file->process->pending_signals &= ~(UINT64_C(1) << (info.ssi_signo - 1));
    memcpy(memory, &info, sizeof(info));
    return sizeof(info);
}

void weir__sim_signal_files_changed(weir_sim_process *process)
{
    weir_list_foreach (link, &process->signal_files)
        weir__sim_file_changed(&WEIR_CONTAINER_OF(link, struct signal_file, link)->file);
}
