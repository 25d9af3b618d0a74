/* SPDX-License-Identifier: Apache-2.0 */
#include "executor/leases.h"

#include <weir/error.h>

#include "base/memory.h"
#include "executor/executor.h"

weir__leases *weir__leases_create(size_t most)
{
    weir__leases *leases = weir__zalloc(sizeof(*leases));

    if (leases == NULL)
        return NULL;
    weir__refs_init(&leases->refs);
    weir__mutex_init(&leases->lock);
    weir__list_init(&leases->idle);
    leases->most = most;
    return leases;
}

void weir__leases_release(weir__leases *leases)
{
    if (leases == NULL || !weir__refs_release(&leases->refs))
        return;
    weir__mutex_deinit(&leases->lock);
    weir__free(leases);
}

void weir__leases_close(weir__leases *leases)
{
    weir__mutex_lock(&leases->lock);
    leases->closed = true;
    weir__mutex_unlock(&leases->lock);
}

static bool takes_tasks(const weir_executor *executor)
{
    return weir__executor_state(executor) < WEIR_EXECUTOR_SHUTTING_DOWN;
}

/* One that was shut down by itself is of no use to anybody. */
static weir_executor *pop_idle(weir__leases *leases)
{
    weir__list *link;

    while ((link = weir__list_pop(&leases->idle)) != NULL) {
        weir_executor *executor = WEIR_CONTAINER_OF(link, weir_executor, lease.link);

        if (takes_tasks(executor))
            return executor;
    }
    return NULL;
}

/* There is room for one more, or why not. */
static int admit(weir__leases *leases)
{
    if (leases->most > 0 && leases->active >= leases->most) {
        leases->refused++;
        return WEIR_ETOOMANY;
    }
    leases->active++;
    return 0;
}

int weir__leases_acquire(weir__leases *leases, weir_executor **ret_executor)
{
    weir_executor *executor = NULL;
    int err;

    weir__mutex_lock(&leases->lock);
    err = leases->closed ? WEIR_EREJECTED : admit(leases);
    if (err == 0) {
        executor = pop_idle(leases);
        if (executor != NULL)
            executor->lease.uses = 1;
    }
    weir__mutex_unlock(&leases->lock);
    if (err == 0)
        *ret_executor = executor;
    return err;
}

void weir__leases_cancel(weir__leases *leases)
{
    weir__mutex_lock(&leases->lock);
    leases->active--;
    weir__mutex_unlock(&leases->lock);
}

/* In front of the others: the latest is the first to be taken. */
static void rest(weir__leases *leases, weir_executor *executor)
{
    weir__list_append(leases->idle.next, &executor->lease.link);
}

void weir__leases_add(weir__leases *leases, weir_executor *executor, bool held)
{
    weir__lease *lease = &executor->lease;

    weir__refs_retain(&leases->refs);
    lease->leases = leases;
    weir__list_init(&lease->link);
    lease->uses = held;
    if (held)
        return;
    weir__mutex_lock(&leases->lock);
    rest(leases, executor);
    weir__mutex_unlock(&leases->lock);
}

void weir__leases_remove(weir_executor *executor)
{
    weir__leases *leases = executor->lease.leases;

    if (leases == NULL)
        return;
    weir__mutex_lock(&leases->lock);
    weir__list_remove(&executor->lease.link);
    weir__mutex_unlock(&leases->lock);
    weir__leases_release(leases);
}

bool weir__leases_retire(weir_executor *executor, weir__refs *refs)
{
    weir__leases *leases = executor->lease.leases;
    bool retires;

    weir__mutex_lock(&leases->lock);
    retires = !leases->closed && executor->lease.uses == 0 && takes_tasks(executor) &&
              weir__executor_is_unreferenced(executor);
    if (retires) {
        weir__list_remove(&executor->lease.link);
        weir__refs_retain(refs);
    }
    weir__mutex_unlock(&leases->lock);
    return retires;
}

void weir__leases_read_stats(weir__leases *leases, uint64_t *ret_active, uint64_t *ret_refused)
{
    weir__mutex_lock(&leases->lock);
    *ret_active = leases->active;
    *ret_refused = leases->refused;
    weir__mutex_unlock(&leases->lock);
}

/* ---- uses ---- */

void weir__executor_lease(weir_executor *executor)
{
    weir__lease *lease = &executor->lease;
    weir__leases *leases = lease->leases;

    if (leases == NULL)
        return;
    weir__mutex_lock(&leases->lock);
    if (lease->uses++ == 0) {
        leases->active++;
        weir__list_remove(&lease->link);
    }
    weir__mutex_unlock(&leases->lock);
}

void weir__executor_unlease(weir_executor *executor)
{
    weir__leases *leases = executor->lease.leases;

    if (leases == NULL)
        return;
    weir__mutex_lock(&leases->lock);
    if (--executor->lease.uses == 0) {
        leases->active--;
        if (takes_tasks(executor))
            rest(leases, executor);
    }
    weir__mutex_unlock(&leases->lock);
}
