/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread that runs an executor, from its start to its last step. Its owner waits for it or
 * abandons it. A thread that weir started is joined; one of the user's factory cannot be joined.
 */
#ifndef WEIR_EXECUTOR_EXECUTOR_THREAD_H
#define WEIR_EXECUTOR_EXECUTOR_THREAD_H

#include <stdatomic.h>

#include <weir/thread.h>

#include "os/thread.h"

typedef struct weir__executor_thread weir__executor_thread;

struct weir__executor_thread {
    weir__executor_thread *next; /* for the owner's use */
    weir_thread_fn *fn;
    void *arg;
    _Atomic uint32_t state;
    bool is_own; /* started by weir: can be joined */
    weir__thread os_thread;
};

/* Runs fn(arg) on a thread of the factory; NULL: on a thread that weir starts. Fails: -ENOMEM,
 * -EAGAIN. */
int weir__executor_thread_start(const weir_thread_factory *factory, const char *name,
                                weir_thread_fn *fn, void *arg, weir__executor_thread **ret_thread);

bool weir__executor_thread_has_ended(const weir__executor_thread *thread);

/* Both free the object. After the wait the thread does not access weir's memory any more; a thread
 * that weir started has exited. At the deadline the wait abandons the thread and returns false. */
bool weir__executor_thread_wait(weir__executor_thread *thread, int64_t deadline_ns);
void weir__executor_thread_abandon(weir__executor_thread *thread);

/* The same for a list, linked by `next`. `reap` frees only those that have ended. */
void weir__executor_threads_wait(weir__executor_thread *threads, int64_t deadline_ns);
void weir__executor_threads_abandon(weir__executor_thread *threads);
void weir__executor_threads_reap(weir__executor_thread **list);

#endif
