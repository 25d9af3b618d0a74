/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts promises down, on one thread. A promise may notify on another executor, so its listener
 * there only posts a task here, from memory that came with the add.
 */
#include <weir/combiner.h>

#include <errno.h>

#include <weir/error.h>

#include "base/memory.h"
#include "executor/executor.h"

struct weir_combiner {
    weir__refs refs;
    weir_executor *executor;
    weir_promise *aggregate;
    weir_promise *failed; /* the first that did */
    size_t waiting;
    bool finished;
};

struct part {
    weir_listener listener;
    weir_task task;
    weir_combiner *combiner;
    weir_promise *promise;
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
    combiner->executor = weir_executor_retain(executor);
    *ret_combiner = combiner;
    return 0;
}

void weir_combiner_release(weir_combiner *combiner)
{
    if (combiner == NULL || !weir__refs_release(&combiner->refs))
        return;
    weir_promise_release(combiner->failed);
    weir_promise_release(combiner->aggregate);
    weir_executor_release(combiner->executor);
    weir__free(combiner);
}

static void complete_if_all_are_done(weir_combiner *combiner)
{
    weir_promise *failed = combiner->failed;

    if (!combiner->finished || combiner->waiting > 0)
        return;
    if (failed != NULL)
        (void)weir_promise_fail(combiner->aggregate, weir_promise_result(failed),
                                weir_promise_detail(failed));
    else
        (void)weir_promise_succeed(combiner->aggregate, NULL);
}

static void on_part_done(void *arg, int status)
{
    struct part *part = arg;
    weir_combiner *combiner = part->combiner;

    (void)status; /* cancelled with the executor: it counts all the same */
    if (weir_promise_result(part->promise) < 0 && combiner->failed == NULL)
        combiner->failed = weir_promise_retain(part->promise);
    combiner->waiting--;
    complete_if_all_are_done(combiner);
    weir_promise_release(part->promise);
    weir__free(part);
    weir_combiner_release(combiner);
}

static void on_promise_done(weir_promise *promise, void *user_data)
{
    struct part *part = user_data;

    (void)promise;
    if (weir_in_executor(part->combiner->executor))
        on_part_done(part, 0);
    else if (weir__executor_post(part->combiner->executor, &part->task, WEIR__NOW) < 0)
        on_part_done(part, 0); /* the executor has ended, so nobody else is here */
}

int weir_combiner_add(weir_combiner *combiner, weir_promise *promise)
{
    struct part *part;

    if (combiner == NULL || promise == NULL)
        return -EINVAL;
    if (!weir_in_executor(combiner->executor))
        return WEIR_EWRONGTHREAD;
    if (combiner->finished)
        return -EINVAL;
    part = weir__zalloc(sizeof(*part));
    if (part == NULL)
        return -ENOMEM;
    weir__refs_retain(&combiner->refs);
    combiner->waiting++;
    part->combiner = combiner;
    part->promise = weir_promise_retain(promise);
    weir_task_init(&part->task, on_part_done, part);
    part->listener.fn = on_promise_done;
    part->listener.user_data = part;
    weir_promise_listen(promise, &part->listener);
    return 0;
}

int weir_combiner_finish(weir_combiner *combiner, weir_promise *aggregate)
{
    if (combiner == NULL || aggregate == NULL)
        return -EINVAL;
    if (!weir_in_executor(combiner->executor))
        return WEIR_EWRONGTHREAD;
    if (combiner->finished)
        return -EINVAL;
    combiner->finished = true;
    combiner->aggregate = weir_promise_retain(aggregate);
    complete_if_all_are_done(combiner);
    return 0;
}
