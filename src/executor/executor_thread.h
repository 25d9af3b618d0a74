/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker is one life of an executor's thread, from its start to its last step. Whoever started it
 * waits for that, or walks away. A thread of our own is then joined; one of the user's factory
 * cannot be.
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
    bool is_own; /* the thread can be joined */
    weir__thread os_thread;
};

/* Runs fn(arg) on a thread of the factory's; NULL = a thread of our own. Fails: -ENOMEM, -EAGAIN.
 */
int weir__executor_thread_start(const weir_thread_factory *factory, const char *name,
                                weir_thread_fn *fn, void *arg, weir__executor_thread **ret_thread);

bool weir__executor_thread_has_ended(const weir__executor_thread *thread);

/* Both take the worker. A thread that was waited for touches no memory of weir's any more; one of
 * our own has gone. */
void weir__executor_thread_wait(weir__executor_thread *thread);
void weir__executor_thread_abandon(weir__executor_thread *thread);

/* Waits, but not longer than until the deadline, and then abandons the worker. False = it did. */
bool weir__executor_thread_wait_until(weir__executor_thread *thread, int64_t deadline_ns);

/* The same for a list of them, by `next`; and only for those that have ended, which are taken out
 * of the list. */
void weir__executor_threads_wait(weir__executor_thread *threads, int64_t deadline_ns);
void weir__executor_threads_abandon(weir__executor_thread *threads);
void weir__executor_threads_reap(weir__executor_thread **list);

#endif
