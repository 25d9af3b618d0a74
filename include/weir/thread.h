/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/thread.h - where threads come from, and what is done when one ends.
 */
#ifndef WEIR_THREAD_H
#define WEIR_THREAD_H

#include <weir/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The body of a thread; also what is called at a thread's end. */
typedef void weir_thread_fn(void *arg);

/*
 * Makes threads in the library's place: from a pool, with a stack of another size, under a
 * profiler. `start` either arranges that fn(arg) runs exactly once, on a thread that does nothing
 * else until fn returns, and returns 0; or it returns a negative error and fn never runs. It may
 * return before fn begins. It may not use the executor that the thread is for. `name` is lent for
 * the call. A thread that is to serve as an event loop should have all signals blocked, as the
 * library's own have.
 */
typedef struct weir_thread_factory {
    int (*start)(void *user_data, const char *name, weir_thread_fn *fn, void *arg);
    void *user_data;
} weir_thread_factory;

/*
 * Calls fn(arg) at the end of the calling thread, whoever made that thread: the last added first,
 * and after the thread's weir_locals are gone. An executor's thread also ends when the executor is
 * suspended. For the main thread it is called by weir_locals_remove_all and by pthread_exit, not by
 * exit. A function added by one that is being called is called too, up to eight rounds.
 * Thread: any.  Fails: -EINVAL if fn is NULL, -ENOMEM, -EAGAIN if the process has no thread key
 * left.
 */
WEIR_API int weir_thread_on_exit(weir_thread_fn *fn, void *arg);

/* --- local ------------------------------------------------------------------------------------ */

/*
 * A variable with one value per thread, and a function that disposes of the value.
 *
 * Each weir_local has a process-wide index into an array that every thread keeps: reading one is a
 * bounds check and a load. When a thread ends its values are removed: an executor's thread does it
 * by itself, at its end and when it is suspended, and so does any other thread that ends.
 */

typedef struct weir_local weir_local;

/*
 * Disposes of a value that was removed, on the thread whose value it was. The variable is unset by
 * then, and may be set again.
 */
typedef void weir_local_remove_fn(void *value);

/*
 * Makes a variable that is unset on every thread. `on_remove` may be NULL. Indices are never used
 * twice, so variables are made once per program or library, not per object.
 * Thread: any.  Gives: ret_local.  Fails: -ENOMEM, -ENOSPC after 65,535 of them.
 */
WEIR_API int weir_local_create(weir_local_remove_fn *on_remove, weir_local **ret_local);

/*
 * Gives the variable up; NULL is fine. Values that threads still have stay where they are and are
 * removed, with its on_remove, when those threads end.
 * Thread: any.  Takes: local.
 */
WEIR_API void weir_local_release(weir_local *local);

/*
 * The calling thread's value, NULL if it is unset.
 * Thread: any.
 */
WEIR_API void *weir_local_get(const weir_local *local);

/*
 * Sets the calling thread's value; NULL unsets it. The value that was there before is dropped
 * without a call of on_remove: who replaces a value knows it.
 * Thread: any.  Fails: -ENOMEM, -EAGAIN if the process has no thread key left; never if the
 * variable is set already.
 */
WEIR_API int weir_local_set(const weir_local *local, void *value);

/*
 * Unsets the calling thread's value and calls on_remove with it; does nothing if it is unset.
 * Thread: any.
 */
WEIR_API void weir_local_remove(const weir_local *local);

/*
 * Removes every value of the calling thread, again while on_remove sets new ones, up to eight
 * rounds; then calls what weir_thread_on_exit has collected, the last added first; then removes
 * what those have set. The main thread calls it before it leaves main, if it cares.
 * Thread: any.
 */
WEIR_API void weir_locals_remove_all(void);

#ifdef __cplusplus
}
#endif

#endif
