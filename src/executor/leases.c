/* SPDX-License-Identifier: Apache-2.0 */
#include "executor/leases.h"

#include <weir/error.h>

#include "base/memory.h"
#include "executor/executor.h"

weir__roster *weir__roster_create(size_t most)
{
    weir__roster *roster = weir__zalloc(sizeof(*roster));

    if (roster == NULL)
        return NULL;
    weir__refs_init(&roster->refs);
    weir__mutex_init(&roster->lock);
    weir__list_init(&roster->idle);
    roster->most = most;
    return roster;
}

void weir__roster_release(weir__roster *roster)
{
    if (roster == NULL || !weir__refs_release(&roster->refs))
        return;
    weir__mutex_deinit(&roster->lock);
    weir__free(roster);
}

void weir__roster_close(weir__roster *roster)
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
static weir_executor *pop_idle(weir__roster *roster)
{
    weir__list *link;

    while ((link = weir__list_pop(&roster->idle)) != NULL) {
        weir_executor *executor = container_of(link, weir_executor, place.link);

        if (takes_tasks(executor))
            return executor;
    }
    return NULL;
}

/* There is room for one more, or why not. */
static int admit(weir__roster *roster)
{
    if (roster->most > 0 && roster->active >= roster->most) {
        roster->refused++;
        return WEIR_ETOOMANY;
    }
    roster->active++;
    return 0;
}

int weir__roster_take(weir__roster *roster, weir_executor **ret_executor)
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

void weir__roster_give_back(weir__roster *roster)
{
    weir__mutex_lock(&roster->lock);
    roster->active--;
    weir__mutex_unlock(&roster->lock);
}

/* In front of the others: the latest is the first to be taken. */
static void rest(weir__roster *roster, weir_executor *executor)
{
    weir__list_append(roster->idle.next, &executor->place.link);
}

void weir__roster_enter(weir__roster *roster, weir_executor *executor, bool held)
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

void weir__roster_leave(weir_executor *executor)
{
    weir__roster *roster = executor->place.roster;

    if (roster == NULL)
        return;
    weir__mutex_lock(&roster->lock);
    weir__list_remove(&executor->place.link);
    weir__mutex_unlock(&roster->lock);
    weir__roster_release(roster);
}

bool weir__roster_retire(weir_executor *executor, weir__refs *refs)
{
    weir__roster *roster = executor->place.roster;
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

void weir__roster_read(weir__roster *roster, uint64_t *ret_active, uint64_t *ret_refused)
{
    weir__mutex_lock(&roster->lock);
    *ret_active = roster->active;
    *ret_refused = roster->refused;
    weir__mutex_unlock(&roster->lock);
}

/* ---- uses ---- */

void weir__executor_hold(weir_executor *executor)
{
    weir__place *place = &executor->place;
    weir__roster *roster = place->roster;

    if (roster == NULL)
        return;
    weir__mutex_lock(&roster->lock);
    if (place->uses++ == 0) {
        roster->active++;
        weir__list_remove(&place->link);
    }
    weir__mutex_unlock(&roster->lock);
}

void weir__executor_let_go(weir_executor *executor)
{
    weir__roster *roster = executor->place.roster;

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
