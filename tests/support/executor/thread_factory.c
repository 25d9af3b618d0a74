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
    struct thread_factory_fixture *fixture = user_data;
    int answer = atomic_load(&fixture->answer);
    unsigned i;

    atomic_fetch_add(&fixture->asked, 1);
    if (answer != 0)
        return answer;
    i = atomic_fetch_add(&fixture->started, 1);
    if (i >= THREAD_FACTORY_MAX)
        return -ENOSPC;
    snprintf(fixture->threads[i].name, sizeof(fixture->threads[i].name), "%s", name);
    return weir__thread_start(name, fn, arg, &fixture->threads[i].thread);
}

void thread_factory_open(struct thread_factory_fixture *fixture)
{
    memset(fixture, 0, sizeof(*fixture));
    fixture->factory = (weir_thread_factory){start, fixture};
}

void thread_factory_close(struct thread_factory_fixture *fixture)
{
    unsigned count = atomic_load(&fixture->started);

    for (unsigned i = 0; i < count && i < THREAD_FACTORY_MAX; i++)
        weir__thread_join(&fixture->threads[i].thread);
}
