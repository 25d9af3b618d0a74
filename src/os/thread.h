/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads and CPUs. All uses of pthread are here and in os/mutex.h.
 */
#ifndef WEIR_OS_THREAD_H
#define WEIR_OS_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include <weir/thread.h>

#include "os/mutex.h"

/* A started thread; join or detach it exactly once. */
typedef struct weir__thread {
    pthread_t handle;
    uint64_t virtual_handle; /* of os/virtual_os.h; 0 = a real thread */
} weir__thread;

/*
 * Starts a joinable thread that runs fn(arg) with all signals blocked, named with the first 15
 * bytes of `name`. `*ret_thread` is set before this returns, but possibly after fn begins. Fails
 * with -ENOMEM or -EAGAIN.
 */
int weir__thread_start(const char *name, weir_thread_fn *fn, void *arg, weir__thread *ret_thread);
void weir__thread_join(weir__thread *thread);
void weir__thread_detach(weir__thread *thread);
bool weir__thread_is_current(const weir__thread *thread);

/* The kernel's id and name, of at most 15 bytes, of the calling thread. */
pid_t weir__thread_id(void);
void weir__thread_name(char *ret_name, size_t size);

/* The clock of its CPU time, which any thread may read; 0 if the thread has ended. */
clockid_t weir__thread_cpu_clock(void);
int64_t weir__thread_cpu_time(clockid_t clock);

/*
 * Nanoseconds for which a thread of the process was ready to run, but another one had the CPU; 0 if
 * the kernel does not count them.
 */
int64_t weir__thread_run_delay(pid_t id);

/* True if a thread of the process uses a CPU or waits for one. */
bool weir__thread_is_runnable(pid_t id);

/* Sends a signal to a thread of the process. Fails with -ESRCH. */
int weir__thread_signal(pid_t id, int signal);

/* Blocks or unblocks a signal in the calling thread. */
void weir__thread_block_signal(int signal, bool blocked);

/* Pins the calling thread to a CPU. Fails with -EINVAL if it may not run there. */
int weir__thread_set_affinity(int cpu);

/*
 * Returns when every other thread of the process has executed a full memory barrier, or has not run
 * meanwhile. False if the kernel refuses that.
 */
bool weir__thread_barrier_others(void);

void weir__thread_yield(void);
void weir__thread_sleep(int64_t duration_ns);

/* For spin loops. */
static inline void weir__cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* The number of usable CPUs, at least 1; and the number of the i-th of them, modulo their count. */
unsigned weir__cpu_count(void);
int weir__cpu_nth(unsigned index);

/* The CPU that the calling thread runs on; -1 if unknown. */
int weir__cpu_current(void);

typedef struct weir__once {
    pthread_once_t handle;
} weir__once;

/* clang-format off */
#define WEIR__ONCE_INIT {PTHREAD_ONCE_INIT}
/* clang-format on */

/* Runs fn once per `once`. Returns after fn has returned. */
void weir__once_run(weir__once *once, void (*fn)(void));

#endif
