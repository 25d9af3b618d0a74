/* SPDX-License-Identifier: Apache-2.0 */
#include "executor/leases.h"

#include <weir/error.h>

#include "base/memory.h"
#include "executor/executor.h"

weir__leases *weir__leases_create(size_t most)
{
    weir__leases *roster = weir__zalloc(sizeof(*roster));

    if (roster == NULL)
        return NULL;
    weir__refs_init(&roster->refs);
    weir__mutex_init(&roster->lock);
    weir__list_init(&roster->idle);
    roster->most = most;
    return roster;
}

void weir__leases_release(weir__leases *roster)
{
    if (roster == NULL || !weir__refs_release(&roster->refs))
        return;
    weir__mutex_deinit(&roster->lock);
    weir__free(roster);
}

void weir__leases_close(weir__leases *roster)
{
    weir__mutex_lock(&roster->lock);
    roster->closed = true;
    weir__mutex_unlock(&roster->lock);
}

static bool takes_tasks(const weir_executor *executor)
{
    return weir__executor_state(executor) < WEIR_EXECUTOR_SHUTTING_DOWN;
}

/* One that was shut down by itself is of no use to anybody. */
static weir_executor *pop_idle(weir__leases *roster)
{
    weir__list *link;

    while ((link = weir__list_pop(&roster->idle)) != NULL) {
        weir_executor *executor = WEIR_CONTAINER_OF(link, weir_executor, place.link);

        if (takes_tasks(executor))
            return executor;
    }
    return NULL;
}

/* There is room for one more, or why not. */
static int admit(weir__leases *roster)
{
    if (roster->most > 0 && roster->active >= roster->most) {
        roster->refused++;
        return WEIR_ETOOMANY;
    }
    roster->active++;
    return 0;
}

int weir__leases_take(weir__leases *roster, weir_executor **ret_executor)
{
    weir_executor *executor = NULL;
    int err;

    weir__mutex_lock(&roster->lock);
    err = roster->closed ? WEIR_EREJECTED : admit(roster);
    if (err == 0) {
        executor = pop_idle(roster);
        if (executor != NULL)
            executor->place.uses = 1;
    }
    weir__mutex_unlock(&roster->lock);
    if (err == 0)
        *ret_executor = executor;
    return err;
}

void weir__leases_return(weir__leases *roster)
{
    weir__mutex_lock(&roster->lock);
    roster->active--;
    weir__mutex_unlock(&roster->lock);
}

/* In front of the others: the latest is the first to be taken. */
static void rest(weir__leases *roster, weir_executor *executor)
{
    weir__list_append(roster->idle.next, &executor->place.link);
}

void weir__leases_enter(weir__leases *roster, weir_executor *executor, bool held)
{
    weir__place *place = &executor->place;

    weir__refs_retain(&roster->refs);
    place->roster = roster;
    weir__list_init(&place->link);
    place->uses = held;
    if (held)
        return;
    weir__mutex_lock(&roster->lock);
    rest(roster, executor);
    weir__mutex_unlock(&roster->lock);
}

void weir__leases_leave(weir_executor *executor)
{
    weir__leases *roster = executor->place.roster;

    if (roster == NULL)
        return;
    weir__mutex_lock(&roster->lock);
    weir__list_remove(&executor->place.link);
    weir__mutex_unlock(&roster->lock);
    weir__leases_release(roster);
}

bool weir__leases_retire(weir_executor *executor, weir__refs *refs)
{
    weir__leases *roster = executor->place.roster;
    bool retires;

    weir__mutex_lock(&roster->lock);
    retires = !roster->closed && executor->place.uses == 0 && takes_tasks(executor) &&
              weir__executor_is_forgotten(executor);
    if (retires) {
        weir__list_remove(&executor->place.link);
        weir__refs_retain(refs);
    }
    weir__mutex_unlock(&roster->lock);
    return retires;
}

void weir__leases_read(weir__leases *roster, uint64_t *ret_active, uint64_t *ret_refused)
{
    weir__mutex_lock(&roster->lock);
    *ret_active = roster->active;
    *ret_refused = roster->refused;
    weir__mutex_unlock(&roster->lock);
}

/* ---- uses ---- */

void weir__executor_lease(weir_executor *executor)
{
    weir__place *place = &executor->place;
    weir__leases *roster = place->roster;

    if (roster == NULL)
        return;
    weir__mutex_lock(&roster->lock);
    if (place->uses++ == 0) {
        roster->active++;
        weir__list_remove(&place->link);
    }
    weir__mutex_unlock(&roster->lock);
}

void weir__executor_unlease(weir_executor *executor)
{
    weir__leases *roster = executor->place.roster;

    if (roster == NULL)
        return;
    weir__mutex_lock(&roster->lock);
    if (--executor->place.uses == 0) {
        roster->active--;
        if (takes_tasks(executor))
            rest(roster, executor);
    }
    weir__mutex_unlock(&roster->lock);
}
