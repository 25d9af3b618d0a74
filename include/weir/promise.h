/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/promise.h - a result that is not there yet; written once, heard by any number of listeners.
 *
 *      PENDING --> UNCANCELLABLE --> DONE: a value, or an error with a sentence
 *          `-------------------------^
 *
 * Listeners run on the promise's executor, in the order added, one at a time. One that was there
 * before the completion runs inside the completing call if that is made on the executor's thread
 * (deeper than 8 such calls it is posted); otherwise, and if added later, it runs as a task. Where
 * the executor has ended, the global executor takes its place.
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
 * A listener in the caller's memory: adding one needs no allocation. It belongs to the promise
 * until its function is called.
 */
typedef struct weir_listener {
    weir_queue_node node; /* private */
    weir_listener_fn *fn;
    void *user_data;
    void *reserved;
} weir_listener;

/*
 * Creates a pending promise that notifies on `executor` (NULL: the global one).
 * Thread: any.  Keeps: executor.  Gives: promise.  Fails: -ENOMEM.
 */
WEIR_API int weir_promise_create(weir_executor *executor, weir_promise **ret_promise);

/*
 * Creates a promise that is complete already: with `value` if err is 0, else failed with err.
 * Thread: any.  Keeps: executor.  Gives: promise.  Fails: -ENOMEM, -EINVAL (err > 0).
 */
WEIR_API int weir_promise_create_completed(weir_executor *executor, int err, void *value,
                                           weir_promise **ret_promise);

/*
 * Keeps a promise.
 * Thread: any.
 */
WEIR_API weir_promise *weir_promise_retain(weir_promise *promise);

/*
 * Gives a reference back; NULL is fine. If it was the last one and nobody completed the promise, it
 * completes with WEIR_EABANDONED, so that no listener waits for ever.
 * Thread: any.  Takes: promise.
 */
WEIR_API void weir_promise_release(weir_promise *promise);

/*
 * Completes the promise with a value.
 * Thread: any.  Fails: WEIR_ECOMPLETED (it was complete; nothing changes).
 */
WEIR_API int weir_promise_succeed(weir_promise *promise, void *value);

/*
 * Completes the promise with a value that it owns: `free_value` is called with it when the promise
 * is freed, or at once if the promise was complete.
 * Thread: any.  Takes: value.  Fails: WEIR_ECOMPLETED.
 */
WEIR_API int weir_promise_succeed_with(weir_promise *promise, void *value,
                                       weir_value_free_fn *free_value);

/*
 * Completes the promise with an error and a sentence about it, which is copied; NULL = the error's
 * own.
 * Thread: any.  Fails: WEIR_ECOMPLETED, -EINVAL (err >= 0).
 */
WEIR_API int weir_promise_fail(weir_promise *promise, int err, const char *detail);

/*
 * Completes a pending promise with WEIR_ECANCELED; what it stands for is then not done, where it
 * had not begun.
 * Thread: any.  Fails: WEIR_ECOMPLETED, -EBUSY (it is uncancellable: too late).
 */
WEIR_API int weir_promise_cancel(weir_promise *promise);

/*
 * From here on the promise cannot be cancelled. True unless it has been.
 * Thread: any.
 */
WEIR_API bool weir_promise_set_uncancellable(weir_promise *promise);

/*
 * Whether it is complete, in whatever way.
 * Thread: any.
 */
WEIR_API bool weir_promise_is_done(const weir_promise *promise);

/*
 * Whether it was cancelled.
 * Thread: any.
 */
WEIR_API bool weir_promise_is_cancelled(const weir_promise *promise);

/*
 * 0 if it succeeded, its error if it failed, -EINPROGRESS while it is not complete.
 * Thread: any.
 */
WEIR_API int weir_promise_result(const weir_promise *promise);

/*
 * Its value; NULL while there is none.
 * Thread: any.
 */
WEIR_API void *weir_promise_value(const weir_promise *promise);

/*
 * The sentence beside its error: what was given, or the error's own text; "" if it did not fail.
 * Thread: any.
 */
WEIR_API const char *weir_promise_detail(const weir_promise *promise);

/*
 * The executor on which its listeners run.
 * Thread: any.
 */
WEIR_API weir_executor *weir_promise_executor(const weir_promise *promise);

/*
 * Adds a listener: fn(promise, user_data) runs once, on the promise's executor.
 * Thread: any.  Fails: -ENOMEM, -EINVAL.
 */
WEIR_API int weir_promise_add_listener(weir_promise *promise, weir_listener_fn *fn,
                                       void *user_data);

/*
 * Adds a listener in the caller's memory. Cannot fail.
 * Thread: any.  Lends until its function is called: listener.
 */
WEIR_API void weir_promise_listen(weir_promise *promise, weir_listener *listener);

/*
 * Waits until the promise is complete, in whatever way. Refused on every event-loop thread (not on
 * one that a channel has for itself), and on the thread of the promise's own executor.
 * Thread: any that may wait.  Fails: -ETIMEDOUT, -EDEADLK.
 */
WEIR_API int weir_promise_await(weir_promise *promise, int64_t timeout_ns);

/*
 * Waits, then gives the promise's result.
 * Thread: any that may wait.  Fails: -ETIMEDOUT, -EDEADLK, and with the promise's own error.
 */
WEIR_API int weir_promise_sync(weir_promise *promise, int64_t timeout_ns);

/*
 * Completes `target` as `source` completes, or is abandoned; cancelling `target` cancels `source`.
 * A value stays owned by the source, which then lives as long as the target.
 * Thread: any.  Keeps: target.  Fails: -ENOMEM, -EINVAL.
 */
WEIR_API int weir_promise_cascade(weir_promise *source, weir_promise *target);

/* --- combiner --------------------------------------------------------------------------------- */

/*
 * Waits for any number of promises at once.
 *
 * Add promises, then finish with the promise that shall hear of it: it completes when all have,
 * with the first failure or with success. It is used on one executor's thread only; the promises
 * may complete anywhere.
 */

typedef struct weir_combiner weir_combiner;

/*
 * Creates a combiner that is used on `executor`'s thread.
 * Thread: any.  Keeps: executor.  Gives: combiner.  Fails: -ENOMEM, -EINVAL.
 */
WEIR_API int weir_combiner_create(weir_executor *executor, weir_combiner **ret_combiner);

/*
 * Adds a promise to wait for. Whose it is stays as it was: one that is abandoned has failed.
 * Thread: its executor's.  Fails: WEIR_EWRONGTHREAD, -EINVAL (finished), -ENOMEM.
 */
WEIR_API int weir_combiner_add(weir_combiner *combiner, weir_promise *promise);

/*
 * No more promises: `aggregate` completes when all of them have, at once if they have already.
 * Thread: its executor's.  Keeps: aggregate.  Fails: WEIR_EWRONGTHREAD, -EINVAL (finished).
 */
WEIR_API int weir_combiner_finish(weir_combiner *combiner, weir_promise *aggregate);

/*
 * Gives the combiner back; one that was finished still does its work. NULL is fine.
 * Thread: any.  Takes: combiner.
 */
WEIR_API void weir_combiner_release(weir_combiner *combiner);

#ifdef __cplusplus
}
#endif

#endif
