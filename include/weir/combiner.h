/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/combiner.h - waits for any number of promises at once.
 *
 * Add promises, then finish with the promise that shall hear of it: it completes when all have,
 * with the first failure or with success. It is used on one executor's thread only; the promises
 * may complete anywhere.
 */
#ifndef WEIR_COMBINER_H
#define WEIR_COMBINER_H

#include <weir/promise.h>

#ifdef __cplusplus
extern "C" {
#endif

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
