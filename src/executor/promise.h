/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Internals of promises, for objects that extend one: submitted and scheduled tasks, and others.
 */
#ifndef WEIR_EXECUTOR_PROMISE_H
#define WEIR_EXECUTOR_PROMISE_H

#include <weir/promise.h>

/* Creates a promise followed by `extra` zeroed bytes, aligned for any type. NULL: no memory. */
weir_promise *weir__promise_create_with(weir_executor *executor, size_t extra);
void *weir__promise_extra(weir_promise *promise);

/* Retains a promise that only the caller knows yet, without a locked instruction. */
void weir__promise_retain_new(weir_promise *promise);
weir_promise *weir__promise_of_extra(void *extra);

/* on_cancel runs on the cancelling thread, after the completion. Set it before sharing the promise.
 */
void weir__promise_set_on_cancel(weir_promise *promise, void (*on_cancel)(weir_promise *promise));

/*
 * Completes a promise, with a value unless err < 0. The caller has a reference that neither a
 * listener nor a waiter releases. Fails with WEIR_ECOMPLETED.
 */
int weir__promise_complete(weir_promise *promise, int err, void *value);

/* Waiting is refused on threads for which guard(arg) is true, instead of on the executor's thread.
 */
void weir__promise_set_guard(weir_promise *promise, bool (*guard)(const void *arg),
                             const void *arg);

/* 0, or -EDEADLK if this thread may not wait for the promise; NULL: for any promise. */
int weir__promise_may_wait(const weir_promise *promise);

#endif
