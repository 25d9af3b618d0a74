/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A replacement of time, threads, waiting, signals, names, processes and randomness, for a
 * simulator. The functions of os/ call it instead of the kernel while it is set; system calls on
 * descriptors are replaced in weir__sys (os/system.h), and the I/O backend in loop/seams.h.
 *
 * It is set and cleared while the process has no other thread that uses weir. The threads of a
 * simulator are fibers of one thread: `self` distinguishes them, and the thread-local variables are
 * exchanged at each switch.
 */
#ifndef WEIR_OS_VIRTUAL_OS_H
#define WEIR_OS_VIRTUAL_OS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <weir/address.h>
#include <weir/thread.h>

struct weir__process;
struct weir__process_options;
struct weir__random;

typedef struct weir__virtual_os {
    int64_t (*monotonic_now)(void);
    int64_t (*realtime_now)(void);
    struct weir__random *(*random)(void); /* of the calling thread */

    /* Threads, by a number that is never 0 and never used again. */
    int (*thread_start)(const char *name, weir_thread_fn *fn, void *arg, uint64_t *ret_thread);
    void (*thread_join)(uint64_t thread);
    void (*thread_detach)(uint64_t thread);
    uint64_t (*thread_current)(void);
    const char *(*thread_name)(void);
    void (*thread_sleep)(int64_t duration_ns);
    void (*thread_yield)(void);

    void (*futex_wait)(_Atomic uint32_t *word, uint32_t expected, int64_t deadline_ns);
    void (*futex_wake)(_Atomic uint32_t *word, int count);

    /* A place at which another thread may run first. The caller holds no lock. */
    void (*preempt)(void);

    /* See os/signal_set.h; a set is a mask of signals, n is bit n - 1. */
    int (*signal_wait)(uint64_t set, int *ret_number, bool *ret_is_own);
    void (*signal_thread)(int number, uint64_t thread);

    /* An executor has terminated: how many tasks it got, and how many it has called. */
    void (*executor_ended)(const char *name, uint64_t taken, uint64_t called);

    int (*host_lookup)(const char *host, int family, weir_address *ret_addresses, size_t max,
                       size_t *ret_count);

    /* Of the calling process. See os/process.h and os/environment.h. */
    pid_t (*process_id)(void);
    int (*process_start)(const struct weir__process_options *options,
                         struct weir__process *ret_process);
    int (*process_first_descriptor)(void);
    const char *(*environment_get)(const char *name);
    int (*environment_put)(const char *name, const char *value);
    void (*environment_unset)(const char *name);
    char *const *(*environment_entries)(void); /* to NULL */

    /* The calling process's own copy of a static variable, zeroed at first. Never NULL. */
    void *(*process_static)(const void *variable, size_t size);

    /* Makes the calling thread one of another process, unless that is NULL; returns the process
     * that it was one of. */
    void *(*process_enter)(void *process);
} weir__virtual_os;

/* NULL = the kernel. */
extern const weir__virtual_os *weir__virtual_os_set;

/*
 * Calls a function at the end of the simulation, on a thread of it, when all processes have ended:
 * for objects in static memory that have threads. A function is added once.
 */
void weir__virtual_os_at_end(void (*fn)(void));
void weir__virtual_os_end(void);

static inline bool weir__os_is_virtual(void)
{
    return __builtin_expect(weir__virtual_os_set != NULL, 0);
}

/*
 * A static variable that each process must have for itself, such as the signals that it has
 * claimed: all processes of a simulator share the memory of one. It is zero at the start.
 */
static inline void *weir__process_static(void *variable, size_t size)
{
    return weir__os_is_virtual() ? weir__virtual_os_set->process_static(variable, size) : variable;
}

/*
 * Calls process_enter; returns NULL without a simulator. A thread that is started belongs to the
 * process of its starter, which may be a thread that serves all of them, as the global executor's.
 */
static inline void *weir__process_enter(void *process)
{
    return weir__os_is_virtual() ? weir__virtual_os_set->process_enter(process) : NULL;
}

static inline void weir__preempt(void)
{
    if (weir__os_is_virtual())
        weir__virtual_os_set->preempt();
}

#endif
