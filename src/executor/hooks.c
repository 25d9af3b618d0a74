/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shutdown hooks of executors.
 */
#include "executor/executor.h"

#include <errno.h>

#include <weir/error.h>

#include "base/memory.h"

struct hook {
    weir__list link;
    weir_task_fn *fn;
    void *arg;
};

int weir_executor_add_shutdown_hook(weir_executor *executor, weir_task_fn *hook, void *arg)
{
    struct hook *added;
    bool done;

    if (executor == NULL || hook == NULL)
        return -EINVAL;
    if (executor->options.permanent)
        return -EPERM;
    added = weir__zalloc(sizeof(*added));
    if (added == NULL)
        return -ENOMEM;
    added->fn = hook;
    added->arg = arg;
    weir__mutex_lock(&executor->lifecycle.lock);
    done = executor->lifecycle.hooks_done;
    if (!done)
        weir__list_append(&executor->lifecycle.hooks, &added->link);
    weir__mutex_unlock(&executor->lifecycle.lock);
    if (done)
        weir__free(added);
    return done ? WEIR_EREJECTED : 0;
}

int weir_executor_remove_shutdown_hook(weir_executor *executor, weir_task_fn *hook, void *arg)
{
    struct hook *found = NULL;

    weir__mutex_lock(&executor->lifecycle.lock);
    weir_list_foreach (link, &executor->lifecycle.hooks) {
        struct hook *candidate = WEIR_CONTAINER_OF(link, struct hook, link);

        if (found == NULL && candidate->fn == hook && candidate->arg == arg) {
            found = candidate;
            weir__list_remove(link);
        }
    }
    weir__mutex_unlock(&executor->lifecycle.lock);
    weir__free(found);
    return found != NULL ? 0 : -ENOENT;
}

/* The last call closes the list under the lock, so a hook that was added successfully runs. */
static struct hook *take_hook(weir_executor *executor, bool last_call)
{
    weir__list *link;

    weir__mutex_lock(&executor->lifecycle.lock);
    link = weir__list_pop(&executor->lifecycle.hooks);
    if (link == NULL && last_call)
        executor->lifecycle.hooks_done = true;
    weir__mutex_unlock(&executor->lifecycle.lock);
    return link != NULL ? WEIR_CONTAINER_OF(link, struct hook, link) : NULL;
}

void weir__executor_run_hooks(weir_executor *executor, bool last_call)
{
    struct hook *taken, hook;

    while ((taken = take_hook(executor, last_call)) != NULL) {
        hook = *taken;
        weir__free(taken);
        hook.fn(hook.arg, 0);
    }
}
