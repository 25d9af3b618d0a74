/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts promises down. Adding and finishing happen on one thread, the only one that accesses
 * `finished`; promises complete on any thread, so the rest is atomic.
 *
 * `waiting` counts the promises that are not complete, plus one until the combiner is finished. The
 * thread that makes it zero completes the aggregate. The count is acquire-release, so that this
 * thread sees the aggregate and the first failure.
 */
#include <weir/promise.h>

#include <errno.h>

#include <weir/error.h>

#include "base/memory.h"
#include "executor/executor.h"

struct weir_combiner {
    weir__refs refs;
    weir_executor *executor;
    weir_promise *aggregate;
    bool finished;
    _Atomic size_t waiting;
    _Atomic(weir_promise *) failed; /* the first one */
};

int weir_combiner_create(weir_executor *executor, weir_combiner **ret_combiner)
{
    weir_combiner *combiner;

    if (executor == NULL)
        return -EINVAL;
    combiner = weir__zalloc(sizeof(*combiner));
    if (combiner == NULL)
        return -ENOMEM;
    weir__refs_init(&combiner->refs);
    weir__executor_weak_retain(executor); /* weak: it may wait for the executor's termination */
    combiner->executor = executor;
    atomic_init(&combiner->waiting, 1);
    *ret_combiner = combiner;
    return 0;
}

void weir_combiner_release(weir_combiner *combiner)
{
    if (combiner == NULL || !weir__refs_release(&combiner->refs))
        return;
    weir_promise_release(atomic_load_explicit(&combiner->failed, memory_order_relaxed));
    weir_promise_release(combiner->aggregate);
    weir__executor_weak_release(combiner->executor);
    weir__free(combiner);
}

static void count_down(weir_combiner *combiner)
{
    weir_promise *failed;

    if (atomic_fetch_sub_explicit(&combiner->waiting, 1, memory_order_acq_rel) > 1)
        return;
    failed = atomic_load_explicit(&combiner->failed, memory_order_relaxed);
    if (failed != NULL)
        (void)weir_promise_fail(combiner->aggregate, weir_promise_result(failed),
                                weir_promise_detail(failed));
    else
        (void)weir_promise_succeed(combiner->aggregate, NULL);
}

static void on_promise_done(weir_promise *promise, void *user_data)
{
    weir_combiner *combiner = user_data;
    weir_promise *none = NULL;

    if (weir_promise_result(promise) < 0 &&
        atomic_compare_exchange_strong_explicit(&combiner->failed, &none, promise,
                                                memory_order_relaxed, memory_order_relaxed))
        weir_promise_retain(promise);
    count_down(combiner);
    weir_combiner_release(combiner);
}

static int may_use(const weir_combiner *combiner)
{
    if (!weir__in_executor(combiner->executor))
        return WEIR_EWRONGTHREAD;
    return combiner->finished ? -EINVAL : 0;
}

int weir_combiner_add(weir_combiner *combiner, weir_promise *promise)
{
    int err;

    if (combiner == NULL || promise == NULL)
        return -EINVAL;
    err = may_use(combiner);
    if (err < 0)
        return err;
    weir__refs_retain(&combiner->refs);
    atomic_fetch_add_explicit(&combiner->waiting, 1, memory_order_relaxed);
    err = weir_promise_add_listener(promise, on_promise_done, combiner);
    if (err < 0) {
        atomic_fetch_sub_explicit(&combiner->waiting, 1, memory_order_relaxed);
        weir_combiner_release(combiner);
    }
    return err;
}

int weir_combiner_finish(weir_combiner *combiner, weir_promise *aggregate)
{
    int err;

    if (combiner == NULL || aggregate == NULL)
        return -EINVAL;
    err = may_use(combiner);
    if (err < 0)
        return err;
    combiner->finished = true;
    combiner->aggregate = weir_promise_retain(aggregate);
    count_down(combiner);
    return 0;
}
