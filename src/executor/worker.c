/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RUNNING --thread ends--> ENDED: the owner frees the worker, when it likes.
 * RUNNING --owner leaves--> ABANDONED --thread ends--> the thread frees it.
 *
 * Both sides exchange (acquire-release), so that exactly one of them is second, and comes after all
 * that the other did.
 */
#include "executor/worker.h"

#include <errno.h>

#include "base/futex.h"
#include "base/memory.h"
#include "base/thread.h"

enum {
    RUNNING,
    ENDED,
    ABANDONED,
};

static _Thread_local weir__worker *own __attribute__((tls_model("initial-exec")));

static void worker_main(void *arg)
{
    weir__worker *worker = arg;

    own = worker;
    worker->fn(worker->arg);
    own = NULL; /* the thread may be a pool's */
    if (atomic_exchange_explicit(&worker->state, ENDED, memory_order_acq_rel) == ABANDONED)
        weir__free(worker);
    else
        weir__futex_wake(&worker->state, 1);
}

static int start_own(void *user_data, const char *name, weir_thread_fn *fn, void *arg)
{
    weir__thread thread;
    int err = weir__thread_start(&thread, name, fn, arg);

    (void)user_data;
    if (err == 0)
        weir__thread_detach(&thread);
    return err;
}

static const weir_thread_factory own_factory = {.start = start_own};

int weir__worker_start(const weir_thread_factory *factory, const char *name, weir_thread_fn *fn,
                       void *arg, weir__worker **ret_worker)
{
    weir__worker *worker = weir__zalloc(sizeof(*worker));
    int err;

    if (worker == NULL)
        return -ENOMEM;
    worker->fn = fn;
    worker->arg = arg;
    atomic_init(&worker->state, RUNNING);
    if (factory == NULL)
        factory = &own_factory;
    err = factory->start(factory->user_data, name, worker_main, worker);
    if (err != 0) {
        weir__free(worker);
        return err < 0 ? err : -EAGAIN;
    }
    *ret_worker = worker;
    return 0;
}

bool weir__worker_has_ended(const weir__worker *worker)
{
    return atomic_load_explicit(&worker->state, memory_order_acquire) == ENDED;
}

void weir__worker_wait(weir__worker *worker)
{
    if (worker == own) { /* at its end a thread may come to wait for itself: it need not */
        weir__worker_abandon(worker);
        return;
    }
    while (!weir__worker_has_ended(worker))
        weir__futex_wait(&worker->state, RUNNING, INT64_MAX);
    weir__free(worker);
}

void weir__worker_abandon(weir__worker *worker)
{
    if (atomic_exchange_explicit(&worker->state, ABANDONED, memory_order_acq_rel) == ENDED)
        weir__free(worker);
}

/* ---- lists ---- */

static void for_each(weir__worker *worker, void (*fn)(weir__worker *worker))
{
    while (worker != NULL) {
        weir__worker *next = worker->next;

        fn(worker);
        worker = next;
    }
}

void weir__workers_wait(weir__worker *workers)
{
    for_each(workers, weir__worker_wait);
}

void weir__workers_abandon(weir__worker *workers)
{
    for_each(workers, weir__worker_abandon);
}

void weir__workers_reap(weir__worker **list)
{
    weir__worker *worker;

    while ((worker = *list) != NULL) {
        if (!weir__worker_has_ended(worker)) {
            list = &worker->next;
            continue;
        }
        *list = worker->next;
        weir__worker_wait(worker);
    }
}
