/* SPDX-License-Identifier: Apache-2.0 */
#include "executor/leases.h"

#include <weir/error.h>

#include "base/memory.h"
#include "executor/executor.h"

weir__leases *weir__leases_create(size_t max)
{
    weir__leases *leases = weir__zalloc(sizeof(*leases));

    if (leases == NULL)
        return NULL;
    weir__refs_init(&leases->refs);
    weir__mutex_init(&leases->lock);
    weir__list_init(&leases->idle);
    leases->max = max;
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

/* Skips executors that were shut down individually. */
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

/* Counts one more executor in use, unless that exceeds the bound. */
static int admit(weir__leases *leases)
{
    if (leases->max > 0 && leases->active >= leases->max) {
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
            executor->lease.count = 1;
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

/* Latest first. */
static void make_idle(weir__leases *leases, weir_executor *executor)
{
    weir__list_append(leases->idle.next, &executor->lease.link);
}

void weir__leases_add(weir__leases *leases, weir_executor *executor, bool leased)
{
    weir__lease *lease = &executor->lease;

    weir__refs_retain(&leases->refs);
    lease->leases = leases;
    weir__list_init(&lease->link);
    lease->count = leased;
    if (leased)
        return;
    weir__mutex_lock(&leases->lock);
    make_idle(leases, executor);
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
    retires = !leases->closed && executor->lease.count == 0 && takes_tasks(executor) &&
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

/* ---- leasing ---- */

void weir__executor_lease(weir_executor *executor)
{
    weir__lease *lease = &executor->lease;
    weir__leases *leases = lease->leases;

    if (leases == NULL)
        return;
    weir__mutex_lock(&leases->lock);
    if (lease->count++ == 0) {
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
    if (--executor->lease.count == 0) {
        leases->active--;
        if (takes_tasks(executor))
            make_idle(leases, executor);
    }
    weir__mutex_unlock(&leases->lock);
}
