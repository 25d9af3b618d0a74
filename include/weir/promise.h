/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/promise.h - the result of an operation that has not finished: set once, observed by any
 * number of listeners.
 *
 *      PENDING --> UNCANCELLABLE --> DONE: a value, or an error with a detail text
 *          `-------------------------^
 *
 * Listeners run on the promise's executor, one at a time, in the order added:
 *
 *   - A listener added before the completion runs inside the completing call if that call is made
 *     on the executor's thread; from the ninth nested call on, and on any other thread, it is
 *     posted to the executor as a task.
 *   - A listener added after the completion is always posted.
 *   - If the executor has ended, the global executor runs the listeners.
 */
#ifndef WEIR_PROMISE_H
#define WEIR_PROMISE_H

#include <weir/base.h>
#include <weir/executor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef void weir_listener_fn(weir_promise *promise, void *user_data);
typedef void weir_value_free_fn(void *value);

/*
 * A listener in the caller's memory: adding it allocates nothing. The promise owns it until its
 * function is called.
 */
typedef struct weir_listener {
    weir_queue_node node; /* private */
    weir_listener_fn *fn;
    void *user_data;
    void *reserved;
} weir_listener;

/*
 * Creates a pending promise whose listeners run on `executor` (NULL: the global executor).
 * Thread: any.  Keeps: executor.  Gives: promise.  Fails: -ENOMEM.
 */
WEIR_API WEIR_MUST_USE int weir_promise_create(weir_executor *executor, weir_promise **ret_promise);

/*
 * Creates a completed promise: with `value` if err is 0, otherwise failed with err.
 * Thread: any.  Keeps: executor.  Gives: promise.  Fails: -ENOMEM, -EINVAL (err > 0).
 */
WEIR_API WEIR_MUST_USE int weir_promise_create_completed(weir_executor *executor, int err,
                                                         void *value, weir_promise **ret_promise);

/*
 * Retains the promise.
 * Thread: any.
 */
WEIR_API weir_promise *weir_promise_retain(weir_promise *promise);

/*
 * Releases a reference. NULL is ignored. A promise that is not complete when its last reference is
 * released fails with WEIR_EABANDONED, so that no listener waits for ever.
 * Thread: any.  Takes: promise.
 */
WEIR_API void weir_promise_release(weir_promise *promise);

/*
 * Completes the promise with a value.
 * Thread: any.  Fails: WEIR_ECOMPLETED (it was complete already; nothing changes).
 */
WEIR_API int weir_promise_succeed(weir_promise *promise, void *value);

/*
 * Completes the promise with a value that it owns: `free_value` is called with it when the promise
 * is freed, or at once if the promise was complete already.
 * Thread: any.  Takes: value.  Fails: WEIR_ECOMPLETED.
 */
WEIR_API int weir_promise_succeed_with(weir_promise *promise, void *value,
                                       weir_value_free_fn *free_value);

/*
 * Completes the promise with an error and a detail text, which is copied; NULL: the error's text.
 * Thread: any.  Fails: WEIR_ECOMPLETED, -EINVAL (err >= 0).
 */
WEIR_API int weir_promise_fail(weir_promise *promise, int err, const char *detail);

/*
 * Completes a pending promise with WEIR_ECANCELED. An operation that has not begun is not started.
 * Thread: any.  Fails: WEIR_ECOMPLETED, -EBUSY (uncancellable: too late).
 */
WEIR_API int weir_promise_cancel(weir_promise *promise);

/*
 * Makes the promise uncancellable. Returns false if it has been cancelled.
 * Thread: any.
 */
WEIR_API bool weir_promise_set_uncancellable(weir_promise *promise);

/*
 * True if the promise succeeded, failed or was cancelled.
 * Thread: any.
 */
WEIR_API bool weir_promise_is_done(const weir_promise *promise);

/*
 * True if the promise was cancelled.
 * Thread: any.
 */
WEIR_API bool weir_promise_is_cancelled(const weir_promise *promise);

/*
 * 0 if the promise succeeded, its error if it failed, -EINPROGRESS before that.
 * Thread: any.
 */
WEIR_API int weir_promise_result(const weir_promise *promise);

/*
 * The value; NULL if there is none.
 * Thread: any.
 */
WEIR_API void *weir_promise_value(const weir_promise *promise);

/*
 * The detail text of the error, or the error's own text; "" if the promise has not failed.
 * Thread: any.
 */
WEIR_API const char *weir_promise_detail(const weir_promise *promise);

/*
 * The executor that runs the listeners.
 * Thread: any.
 */
WEIR_API weir_executor *weir_promise_executor(const weir_promise *promise);

/*
 * Adds a listener: fn(promise, user_data) runs once, on the promise's executor.
 * Thread: any.  Fails: -ENOMEM, -EINVAL (promise or fn is NULL).
 */
WEIR_API WEIR_MUST_USE int weir_promise_add_listener(weir_promise *promise, weir_listener_fn *fn,
                                                     void *user_data);

/*
 * Adds a listener in the caller's memory. Cannot fail.
 * Thread: any.  Lends until its function is called: listener.
 */
WEIR_API void weir_promise_listen(weir_promise *promise, weir_listener *listener);

/*
 * Waits until the promise is complete, whatever its result. Refused on every event-loop thread,
 * except in a thread-per-channel group, and on the thread of the promise's own executor.
 * Thread: any that may wait.  Fails: -ETIMEDOUT, -EDEADLK.
 */
WEIR_API int weir_promise_await(weir_promise *promise, int64_t timeout_ns);

/*
 * Waits, then returns the promise's result.
 * Thread: any that may wait.  Fails: -ETIMEDOUT, -EDEADLK, and with the promise's own error.
 */
WEIR_API int weir_promise_sync(weir_promise *promise, int64_t timeout_ns);

/*
 * Completes `target` with the result of `source`, including WEIR_EABANDONED; cancelling `target`
 * cancels `source`. The source keeps ownership of a value and lives as long as the target.
 * Thread: any.  Keeps: target.  Fails: -ENOMEM, -EINVAL.
 */
WEIR_API WEIR_MUST_USE int weir_promise_cascade(weir_promise *source, weir_promise *target);

/* --- combiner --------------------------------------------------------------------------------- */

/*
 * Combines any number of promises into one: add them, then finish with the aggregate promise. The
 * aggregate completes when all of them have, with the first failure or with success. A combiner is
 * used on one executor's thread; its promises may complete on any thread.
 */

typedef struct weir_combiner weir_combiner;

/*
 * Creates a combiner for use on the thread of `executor`.
 * Thread: any.  Keeps: executor.  Gives: combiner.  Fails: -ENOMEM, -EINVAL.
 */
WEIR_API WEIR_MUST_USE int weir_combiner_create(weir_executor *executor,
                                                weir_combiner **ret_combiner);

/*
 * Adds a promise. Its ownership is unchanged; an abandoned promise counts as failed.
 * Thread: its executor's.  Fails: WEIR_EWRONGTHREAD, -EINVAL (finished), -ENOMEM.
 */
WEIR_API WEIR_MUST_USE int weir_combiner_add(weir_combiner *combiner, weir_promise *promise);

/*
 * Ends the adding: `aggregate` completes when all promises have, at once if they already have.
 * Thread: its executor's.  Keeps: aggregate.  Fails: WEIR_EWRONGTHREAD, -EINVAL (finished).
 */
WEIR_API WEIR_MUST_USE int weir_combiner_finish(weir_combiner *combiner, weir_promise *aggregate);

/*
 * Releases the combiner. A finished one still completes its aggregate. NULL is ignored.
 * Thread: any.  Takes: combiner.
 */
WEIR_API void weir_combiner_release(weir_combiner *combiner);

#ifdef __cplusplus
}
#endif

#endif
