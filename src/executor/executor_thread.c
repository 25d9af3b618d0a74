/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RUNNING --thread ends--> ENDED: the owner frees the object.
 * RUNNING --owner abandons--> ABANDONED --thread ends--> the thread frees the object.
 *
 * Both sides exchange the state (acquire-release), so that exactly one of them is second, and sees
 * everything the other did.
 */
#include "executor/executor_thread.h"

#include <errno.h>

#include "base/memory.h"
#include "os/clock.h"
#include "os/futex.h"

enum {
    RUNNING,
    ENDED,
    ABANDONED,
};

static _Thread_local weir__executor_thread *own __attribute__((tls_model("initial-exec")));

static void thread_main(void *arg)
{
    weir__executor_thread *thread = arg;

    own = thread;
    thread->fn(thread->arg);
    own = NULL; /* the factory may reuse the thread */
    if (atomic_exchange_explicit(&thread->state, ENDED, memory_order_acq_rel) == ABANDONED)
        weir__free(thread);
    else
        weir__futex_wake(&thread->state, 1);
}

static int start_thread(weir__executor_thread *thread, const weir_thread_factory *factory,
                        const char *name)
{
    if (factory != NULL)
        return factory->start(factory->user_data, name, thread_main, thread);
    thread->is_own = true;
    return weir__thread_start(name, thread_main, thread, &thread->os_thread);
}

int weir__executor_thread_start(const weir_thread_factory *factory, const char *name,
                                weir_thread_fn *fn, void *arg, weir__executor_thread **ret_thread)
{
    weir__executor_thread *thread = weir__zalloc(sizeof(*thread));
    int err;

    if (thread == NULL)
        return -ENOMEM;
    thread->fn = fn;
    thread->arg = arg;
    atomic_init(&thread->state, RUNNING);
    err = start_thread(thread, factory, name);
    if (err != 0) {
        weir__free(thread);
        return err < 0 ? err : -EAGAIN;
    }
    *ret_thread = thread;
    return 0;
}

bool weir__executor_thread_has_ended(const weir__executor_thread *thread)
{
    return atomic_load_explicit(&thread->state, memory_order_acquire) == ENDED;
}

/* A thread may join itself in the destructor of a thread-specific value. */
static void join(weir__executor_thread *thread)
{
    if (!thread->is_own)
        return;
    if (weir__thread_is_current(&thread->os_thread))
        weir__thread_detach(&thread->os_thread);
    else
        weir__thread_join(&thread->os_thread);
}

bool weir__executor_thread_wait(weir__executor_thread *thread, int64_t deadline_ns)
{
    while (thread != own && !weir__executor_thread_has_ended(thread) &&
           weir__monotonic_now() < deadline_ns)
        weir__futex_wait(&thread->state, RUNNING, deadline_ns);
    if (thread == own || !weir__executor_thread_has_ended(thread)) {
        weir__executor_thread_abandon(thread);
        return false;
    }
    join(thread);
    weir__free(thread);
    return true;
}

/* After the exchange the thread may free the object. */
void weir__executor_thread_abandon(weir__executor_thread *thread)
{
    if (thread->is_own)
        weir__thread_detach(&thread->os_thread);
    if (atomic_exchange_explicit(&thread->state, ABANDONED, memory_order_acq_rel) == ENDED)
        weir__free(thread);
}

/* ---- lists ---- */

void weir__executor_threads_wait(weir__executor_thread *thread, int64_t deadline_ns)
{
    while (thread != NULL) {
        weir__executor_thread *next = thread->next;

        (void)weir__executor_thread_wait(thread, deadline_ns);
        thread = next;
    }
}

void weir__executor_threads_abandon(weir__executor_thread *thread)
{
    while (thread != NULL) {
        weir__executor_thread *next = thread->next;

        weir__executor_thread_abandon(thread);
        thread = next;
    }
}

/* Does not join: the caller holds a lock, and the last steps of a thread may be user code. */
void weir__executor_threads_reap(weir__executor_thread **list)
{
    weir__executor_thread *thread;

    while ((thread = *list) != NULL) {
        if (!weir__executor_thread_has_ended(thread)) {
            list = &thread->next;
            continue;
        }
        *list = thread->next;
        weir__executor_thread_abandon(thread);
    }
}
