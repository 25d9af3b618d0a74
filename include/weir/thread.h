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

#ifdef __cplusplus
}
#endif

#endif
