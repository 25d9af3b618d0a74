/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/local.h - a variable with one value per thread, and a function that disposes of the value.
 *
 * Each weir_local has a process-wide index into an array that every thread keeps: reading one is a
 * bounds check and a load. When a thread ends its values are removed: an executor's thread does it
 * by itself, at its end and when it is suspended, and so does any other thread that ends.
 */
#ifndef WEIR_LOCAL_H
#define WEIR_LOCAL_H

#include <weir/base.h>

#ifdef __cplusplus
extern "C" {
#endif

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
