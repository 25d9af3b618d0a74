/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/thread.h - thread factories, exit hooks, and thread-local variables.
 */
#ifndef WEIR_THREAD_H
#define WEIR_THREAD_H

#include <weir/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The body of a thread; also the type of exit hooks. */
typedef void weir_thread_fn(void *arg);

/*
 * Starts threads instead of the library: from a pool, with another stack size, under a profiler.
 * `start` either arranges that fn(arg) runs exactly once, on a thread that does nothing else until
 * fn returns, and returns 0; or returns a negative error, and fn never runs. It may return before
 * fn begins. It must not use the executor that the thread is for. `name` is valid during the call.
 * A thread for an event loop should have all signals blocked, as the threads of the library have.
 */
typedef struct weir_thread_factory {
    int (*start)(void *user_data, const char *name, weir_thread_fn *fn, void *arg);
    void *user_data;
} weir_thread_factory;

/*
 * Calls fn(arg) when the calling thread ends, on any thread: last added first, after the
 * weir_local values of the thread were removed. The thread of an executor also ends when the
 * executor is suspended. On the main thread the hooks run in weir_locals_remove_all and
 * pthread_exit, not in exit. Hooks added by a hook run too, up to eight rounds.
 * Thread: any.  Fails: -EINVAL if fn is NULL, -ENOMEM, -EAGAIN if the process has no thread key
 * left.
 */
WEIR_API WEIR_MUST_USE int weir_thread_on_exit(weir_thread_fn *fn, void *arg);

/* --- local ------------------------------------------------------------------------------------ */

/*
 * A variable with one value per thread and a destructor for the values.
 *
 * Each weir_local has a process-wide index into an array of each thread: reading it is a bounds
 * check and a load. When a thread ends its values are removed; a thread of an executor also removes
 * them when it is suspended.
 */

typedef struct weir_local weir_local;

/*
 * Destroys a removed value, on the thread whose value it was. The variable is already unset, and
 * may be set again.
 */
typedef void weir_local_remove_fn(void *value);

/*
 * Creates a variable that is unset on every thread. `on_remove` may be NULL. Indices are not
 * reused, so create variables once per program or library, not per object.
 * Thread: any.  Gives: ret_local.  Fails: -ENOMEM, -ENOSPC (more than 65,535).
 */
WEIR_API WEIR_MUST_USE int weir_local_create(weir_local_remove_fn *on_remove,
                                             weir_local **ret_local);

/*
 * Releases the variable. NULL is ignored. Values that threads still have remain, and are removed
 * with on_remove when those threads end.
 * Thread: any.  Takes: local.
 */
WEIR_API void weir_local_release(weir_local *local);

/*
 * The value of the calling thread; NULL if it is unset.
 * Thread: any.
 */
WEIR_API void *weir_local_get(const weir_local *local);

/*
 * Sets the value of the calling thread; NULL unsets it. on_remove is not called for the old value.
 * Thread: any.  Fails: -ENOMEM, -EAGAIN if the process has no thread key left; never if the
 * variable is already set.
 */
WEIR_API WEIR_MUST_USE int weir_local_set(const weir_local *local, void *value);

/*
 * Unsets the value of the calling thread and calls on_remove with it; does nothing if it is unset.
 * Thread: any.
 */
WEIR_API void weir_local_remove(const weir_local *local);

/*
 * Removes every value of the calling thread, repeatedly while on_remove sets new ones, up to eight
 * rounds; then runs the hooks of weir_thread_on_exit, last added first; then removes the values
 * that those have set. The main thread may call it before it returns from main.
 * Thread: any.
 */
WEIR_API void weir_locals_remove_all(void);

#ifdef __cplusplus
}
#endif

#endif
