/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads, CPUs, and with os/mutex.h the only door to pthread.
 */
#ifndef WEIR_OS_THREAD_H
#define WEIR_OS_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

#include <weir/thread.h>

#include "os/mutex.h"

/* A thread that was started here; join or detach it, once. */
typedef struct weir__thread {
    pthread_t handle;
} weir__thread;

/*
 * Starts a joinable thread that runs fn(arg) with all signals blocked, under the first 15 bytes of
 * `name`. `*ret_thread` is written before this returns, not before fn begins. Fails with -ENOMEM or
 * -EAGAIN, and then fn never runs.
 */
int weir__thread_start(const char *name, weir_thread_fn *fn, void *arg, weir__thread *ret_thread);
void weir__thread_join(weir__thread *thread);
void weir__thread_detach(weir__thread *thread);
bool weir__thread_is_current(const weir__thread *thread);

/* The kernel's number of the calling thread, and its name, which has at most 15 bytes. */
pid_t weir__thread_id(void);
void weir__thread_name(char *ret_name, size_t size);

/* Confines the calling thread to one CPU. Fails with -EINVAL if it may not run there. */
int weir__thread_set_affinity(int cpu);

void weir__thread_yield(void);
void weir__thread_sleep(int64_t duration_ns);

/* Tells the CPU that the caller spins. */
static inline void weir__cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* How many CPUs the process may use, at least 1; and the i-th of them, counted round and round. */
unsigned weir__cpu_count(void);
int weir__cpu_nth(unsigned index);

/* The CPU that the caller runs on at this moment; -1 if the system does not say. */
int weir__cpu_current(void);

typedef struct weir__once {
    pthread_once_t handle;
} weir__once;

/* clang-format off */
#define WEIR__ONCE_INIT {PTHREAD_ONCE_INIT}
/* clang-format on */

/* Runs fn unless it has run for this `once`; nobody returns before it is through. */
void weir__once_run(weir__once *once, void (*fn)(void));

#endif
