/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RUNNING --thread ends--> ENDED: the owner frees the worker, when it likes.
 * RUNNING --owner leaves--> ABANDONED --thread ends--> the thread frees it.
 *
 * Both sides exchange (acquire-release), so that exactly one of them is second, and comes after all
 * that the other did.
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

static void worker_main(void *arg)
{
    weir__executor_thread *worker = arg;

    own = worker;
    worker->fn(worker->arg);
    own = NULL; /* the thread may be a pool's */
    if (atomic_exchange_explicit(&worker->state, ENDED, memory_order_acq_rel) == ABANDONED)
        weir__free(worker);
    else
        weir__futex_wake(&worker->state, 1);
}

static int start_thread(weir__executor_thread *worker, const weir_thread_factory *factory,
                        const char *name)
{
    if (factory != NULL)
        return factory->start(factory->user_data, name, worker_main, worker);
    worker->is_own = true;
    return weir__thread_start(name, worker_main, worker, &worker->thread);
}

int weir__executor_thread_start(const weir_thread_factory *factory, const char *name,
                                weir_thread_fn *fn, void *arg, weir__executor_thread **ret_worker)
{
    weir__executor_thread *worker = weir__zalloc(sizeof(*worker));
    int err;

    if (worker == NULL)
        return -ENOMEM;
    worker->fn = fn;
    worker->arg = arg;
    atomic_init(&worker->state, RUNNING);
    err = start_thread(worker, factory, name);
    if (err != 0) {
        weir__free(worker);
        return err < 0 ? err : -EAGAIN;
    }
    *ret_worker = worker;
    return 0;
}

bool weir__executor_thread_has_ended(const weir__executor_thread *worker)
{
    return atomic_load_explicit(&worker->state, memory_order_acquire) == ENDED;
}

/* A thread may wait for itself while it ends, in the destructor of a thread-specific value. */
static void join(weir__executor_thread *worker)
{
    if (!worker->is_own)
        return;
    if (weir__thread_is_current(&worker->thread))
        weir__thread_detach(&worker->thread);
    else
        weir__thread_join(&worker->thread);
}

bool weir__executor_thread_wait_until(weir__executor_thread *worker, int64_t deadline_ns)
{
    while (worker != own && !weir__executor_thread_has_ended(worker) &&
           weir__monotonic_now() < deadline_ns)
        weir__futex_wait(&worker->state, RUNNING, deadline_ns);
    if (worker == own || !weir__executor_thread_has_ended(worker)) {
        weir__executor_thread_abandon(worker);
        return false;
    }
    join(worker);
    weir__free(worker);
    return true;
}

void weir__executor_thread_wait(weir__executor_thread *worker)
{
    (void)weir__executor_thread_wait_until(worker, WEIR_NEVER);
}

/* The thread may free the worker after the exchange. */
void weir__executor_thread_abandon(weir__executor_thread *worker)
{
    if (worker->is_own)
        weir__thread_detach(&worker->thread);
    if (atomic_exchange_explicit(&worker->state, ABANDONED, memory_order_acq_rel) == ENDED)
        weir__free(worker);
}

/* ---- lists ---- */

void weir__executor_threads_wait(weir__executor_thread *worker, int64_t deadline_ns)
{
    while (worker != NULL) {
        weir__executor_thread *next = worker->next;

        (void)weir__executor_thread_wait_until(worker, deadline_ns);
        worker = next;
    }
}

void weir__executor_threads_abandon(weir__executor_thread *worker)
{
    while (worker != NULL) {
        weir__executor_thread *next = worker->next;

        weir__executor_thread_abandon(worker);
        worker = next;
    }
}

/* They are not joined: the caller holds a lock, and their last steps may be the user's. */
void weir__executor_threads_reap(weir__executor_thread **list)
{
    weir__executor_thread *worker;

    while ((worker = *list) != NULL) {
        if (!weir__executor_thread_has_ended(worker)) {
            list = &worker->next;
            continue;
        }
        *list = worker->next;
        weir__executor_thread_abandon(worker);
    }
}
