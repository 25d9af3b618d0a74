/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The members of an executor, and their shutdown.
 */
#include "executor/member.h"

#include "executor/executor.h"

void weir__members_init(weir__members *members)
{
    weir__list_init(&members->open);
    weir__list_init(&members->leaving);
    weir__list_init(&members->aborted);
}

void weir__member_join(weir__member *member, weir_executor *executor)
{
    weir__list *open = &executor->members.open;

    weir__list_append(member->type->is_first ? open->next : open, &member->link);
    weir__counter_add(executor->members.count, 1);
    weir__executor_lease(executor);
}

void weir__member_leave(weir__member *member, weir_executor *executor)
{
    if (member->link.next == NULL || weir__list_is_empty(&member->link))
        return;
    weir__list_remove(&member->link);
    weir__counter_add(executor->members.count, (uint64_t)-1);
    weir__executor_unlease(executor);
}

static weir__member *next_member(weir__list *from, weir__list *to)
{
    weir__list *link = weir__list_pop(from);

    if (link == NULL)
        return NULL;
    weir__list_append(to, link);
    return WEIR_CONTAINER_OF(link, weir__member, link);
}

bool weir__members_drain(weir_executor *executor, bool abort)
{
    weir__members *members = &executor->members;
    weir__member *member;

    while ((member = next_member(&members->open, &members->leaving)) != NULL)
        member->type->shut_down(member);
    while (abort && (member = next_member(&members->leaving, &members->aborted)) != NULL)
        if (member->type->abort != NULL)
            member->type->abort(member);
    return weir__list_is_empty(&members->leaving) && weir__list_is_empty(&members->aborted);
}

uint64_t weir__members_count(const weir_executor *executor)
{
    return atomic_load_explicit(&executor->members.count, memory_order_relaxed);
}
