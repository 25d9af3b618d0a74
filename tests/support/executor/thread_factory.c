/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads of os/thread.h behind the factory's interface.
 */
#include "support/executor/thread_factory.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static int start(void *user_data, const char *name, weir_thread_fn *fn, void *arg)
{
    struct workshop *workshop = user_data;
    int answer = atomic_load(&workshop->answer);
    unsigned i;

    atomic_fetch_add(&workshop->asked, 1);
    if (answer != 0)
        return answer;
    i = atomic_fetch_add(&workshop->started, 1);
    if (i >= WORKSHOP_THREADS_MAX)
        return -ENOSPC;
    snprintf(workshop->threads[i].name, sizeof(workshop->threads[i].name), "%s", name);
    return weir__thread_start(&workshop->threads[i].thread, name, fn, arg);
}

void workshop_open(struct workshop *workshop)
{
    memset(workshop, 0, sizeof(*workshop));
    workshop->factory = (weir_thread_factory){start, workshop};
}

void workshop_close(struct workshop *workshop)
{
    unsigned count = atomic_load(&workshop->started);

    for (unsigned i = 0; i < count && i < WORKSHOP_THREADS_MAX; i++)
        weir__thread_join(&workshop->threads[i].thread);
}
