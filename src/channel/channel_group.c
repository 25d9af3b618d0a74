/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The members of a channel group.
 *
 * A member is in the group's table, by the channel's id, and in the channel's own list, for when
 * the channel closes. That list is guarded by the channel's lock, which is taken inside the
 * group's. The thread that takes a member out of the channel's list frees it. If the other side
 * comes first, it only detaches the member (`channel` is NULL).
 *
 * No callback runs, and no channel is released, while a lock is held.
 */
#include "channel/channel_group.h"

#include <errno.h>

#include <weir/error.h>

#include "base/memory.h"
#include "base/options.h"
#include "base/refcount.h"
#include "base/table.h"
#include "channel/channel.h"
#include "os/thread.h"

struct weir_channel_group {
    char *name;
    bool stays_closed;
    weir__refs users;
    weir__refs refs;  /* of the memory: one for all users, one per member */
    weir__mutex lock; /* guards the rest */
    bool is_shut;
    weir__table members; /* by channel id */
    weir__list order;    /* members in the order in which they joined, and cursors */
    size_t count;        /* of members */
    uint64_t last_number;
};

struct member {
    weir__table_item item;
    weir__member_place place;
    weir__list membership;     /* in the channel's list */
    weir_channel_group *group; /* its memory is retained */
    weir_channel *channel;     /* retained; NULL = left the group */
};

/* ---- lifecycle ---- */

int weir_channel_group_create(const weir_channel_group_options *given,
                              weir_channel_group **ret_group)
{
    weir_channel_group_options options;
    weir_channel_group *group;
    int err = weir__options_read(&options, sizeof(options), given);

    if (err < 0)
        return err;
    group = weir__zalloc(sizeof(*group));
    if (group == NULL)
        return -ENOMEM;
    group->name = weir__strdup(options.name != NULL ? options.name : "channels");
    if (group->name == NULL) {
        weir__free(group);
        return -ENOMEM;
    }
    weir__refs_init(&group->users);
    weir__refs_init(&group->refs);
    group->stays_closed = options.stay_closed;
    weir__mutex_init(&group->lock);
    weir__table_init(&group->members);
    weir__list_init(&group->order);
    *ret_group = group;
    return 0;
}

weir_channel_group *weir_channel_group_retain(weir_channel_group *group)
{
    weir__refs_retain(&group->users);
    return group;
}

static void release_memory(weir_channel_group *group)
{
    if (!weir__refs_release(&group->refs))
        return;
    weir__table_deinit(&group->members);
    weir__mutex_deinit(&group->lock);
    weir__free(group->name);
    weir__free(group);
}

static void free_member(struct member *member)
{
    if (member == NULL)
        return;
    release_memory(member->group);
    weir__free(member);
}

/* A member that was removed under the lock: to be released without it. */
struct departed {
    weir_channel *channel;
    struct member *member; /* NULL = the thread that closes the channel frees it */
};

static void release_departed(const struct departed *departed)
{
    free_member(departed->member);
    weir_channel_release(departed->channel);
}

/* Locked. */
static struct departed leave(struct member *member)
{
    struct departed departed = {.channel = member->channel};

    weir__list_remove(&member->place.link);
    weir__table_remove(&member->group->members, &member->item);
    member->group->count--;
    member->channel = NULL;
    weir__channel_lock(departed.channel);
    if (!weir__list_is_empty(&member->membership))
        departed.member = member;
    weir__list_remove(&member->membership);
    weir__channel_unlock(departed.channel);
    return departed;
}

static struct departed pop_member(weir_channel_group *group)
{
    struct departed departed = {.channel = NULL};

    weir__mutex_lock(&group->lock);
    if (!weir__list_is_empty(&group->order)) /* without users there are no cursors */
        departed = leave(WEIR_CONTAINER_OF(group->order.next, struct member, place.link));
    weir__mutex_unlock(&group->lock);
    return departed;
}

void weir_channel_group_release(weir_channel_group *group)
{
    struct departed departed;

    if (group == NULL)
        return;
    WEIR__ASSERT_HELD(
        weir__refs_are_held(&group->users),
        "weir_channel_group_release: the group was released more often than retained");
    if (!weir__refs_release(&group->users))
        return;
    while ((departed = pop_member(group)).channel != NULL)
        release_departed(&departed);
    release_memory(group);
}

const char *weir_channel_group_name(const weir_channel_group *group)
{
    return group->name;
}

/* ---- members ---- */

static struct member *find_member(const weir_channel_group *group, uint64_t id)
{
    weir__table_item *item = weir__table_find(&group->members, id);

    return item != NULL ? WEIR_CONTAINER_OF(item, struct member, item) : NULL;
}

static struct member *take_membership(weir_channel *channel, weir__channel_extra *extra)
{
    weir__list *link;

    weir__channel_lock(channel);
    link = weir__list_pop(&extra->memberships);
    weir__channel_unlock(channel);
    return link != NULL ? WEIR_CONTAINER_OF(link, struct member, membership) : NULL;
}

void weir__channel_leave_groups(weir_channel *channel, weir__channel_extra *extra)
{
    struct member *member;

    while ((member = take_membership(channel, extra)) != NULL) {
        weir_channel_group *group = member->group;
        struct departed departed = {.channel = NULL};

        weir__mutex_lock(&group->lock);
        if (member->channel != NULL)
            departed = leave(member);
        weir__mutex_unlock(&group->lock);
        departed.member = member;
        release_departed(&departed);
    }
}

/*
 * The state is read after the list was published; the loop reads the list after it has changed the
 * state. Both are sequentially consistent. If the list existed before, the lock orders them.
 */
static int add_membership(weir_channel *channel, weir__channel_extra *extra, struct member *member)
{
    bool is_closed;

    weir__channel_lock(channel);
    is_closed =
        (atomic_load_explicit(&channel->state, memory_order_seq_cst) & WEIR__PHASE) == WEIR__CLOSED;
    if (!is_closed)
        weir__list_append(&extra->memberships, &member->membership);
    weir__channel_unlock(channel);
    return is_closed ? WEIR_ECLOSED : 0;
}

/* Locked. On an error the caller keeps the member. Once it is in the channel's list, a close may
 * take it and wait for our lock: its group must be set by then. */
static int join(weir_channel_group *group, weir_channel *channel, weir__channel_extra *extra,
                struct member *member)
{
    int err = 0;

    if (group->is_shut)
        err = WEIR_ECLOSED;
    else if (find_member(group, channel->id) != NULL)
        err = -EEXIST;
    member->group = group;
    if (err == 0)
        err = add_membership(channel, extra, member);
    if (err < 0)
        return err;
    weir__refs_retain(&group->refs);
    member->channel = weir_channel_retain(channel);
    member->item.key = channel->id;
    weir__table_add(&group->members, &member->item);
    member->place.number = ++group->last_number;
    weir__list_append(&group->order, &member->place.link);
    group->count++;
    return 0;
}

int weir_channel_group_add(weir_channel_group *group, weir_channel *channel)
{
    weir__channel_extra *extra;
    struct member *member;
    int err;

    if (weir__channel_executor(channel) == NULL)
        return -EINVAL;
    extra = weir__channel_extra_get(channel);
    member = extra != NULL ? weir__zalloc(sizeof(*member)) : NULL;
    if (member == NULL)
        return -ENOMEM;
    weir__mutex_lock(&group->lock);
    err = join(group, channel, extra, member);
    weir__mutex_unlock(&group->lock);
    if (err < 0)
        weir__free(member);
    if (err == WEIR_ECLOSED)
        weir_channel_close(channel, NULL); /* no effect if the channel is closed */
    return err;
}

int weir_channel_group_remove(weir_channel_group *group, weir_channel *channel)
{
    struct departed departed = {.channel = NULL};
    struct member *member;

    weir__mutex_lock(&group->lock);
    member = find_member(group, channel->id);
    if (member != NULL)
        departed = leave(member);
    weir__mutex_unlock(&group->lock);
    if (member == NULL)
        return -ENOENT;
    release_departed(&departed);
    return 0;
}

bool weir_channel_group_contains(weir_channel_group *group, const weir_channel *channel)
{
    bool is_member;

    weir__mutex_lock(&group->lock);
    is_member = find_member(group, channel->id) != NULL;
    weir__mutex_unlock(&group->lock);
    return is_member;
}

size_t weir_channel_group_size(weir_channel_group *group)
{
    size_t count;

    weir__mutex_lock(&group->lock);
    count = group->count;
    weir__mutex_unlock(&group->lock);
    return count;
}

weir_channel *weir_channel_group_find(weir_channel_group *group, uint64_t id)
{
    struct member *member;
    weir_channel *channel;

    weir__mutex_lock(&group->lock);
    member = find_member(group, id);
    channel = member != NULL ? weir_channel_retain(member->channel) : NULL;
    weir__mutex_unlock(&group->lock);
    return channel;
}

void weir__channel_group_shut(weir_channel_group *group)
{
    weir__mutex_lock(&group->lock);
    group->is_shut = group->stays_closed;
    weir__mutex_unlock(&group->lock);
}

/* ---- walking ---- */

void weir__member_walk_begin(weir__member_walk *walk, weir_channel_group *group)
{
    walk->group = weir_channel_group_retain(group); /* a callback may release the last reference */
    walk->cursor.number = 0;
    weir__mutex_lock(&group->lock);
    walk->last = group->last_number;
    walk->count = group->count;
    weir__list_append(group->order.next, &walk->cursor.link); /* before the first */
    weir__mutex_unlock(&group->lock);
}

/* Locked: the next member, skipping cursors; NULL at the end. */
static weir__member_place *next_place(const weir__member_walk *walk)
{
    weir__list *link = walk->cursor.link.next;
    weir__member_place *place;

    for (; link != &walk->group->order; link = link->next) {
        place = WEIR_CONTAINER_OF(link, weir__member_place, link);
        if (place->number > 0)
            return place->number <= walk->last ? place : NULL;
    }
    return NULL;
}

weir_channel *weir__member_walk_next(weir__member_walk *walk)
{
    weir_channel *channel = NULL;
    weir__member_place *place;

    weir__mutex_lock(&walk->group->lock);
    place = next_place(walk);
    weir__list_remove(&walk->cursor.link);
    if (place != NULL) {
        weir__list_append(place->link.next, &walk->cursor.link);
        channel = weir_channel_retain(WEIR_CONTAINER_OF(place, struct member, place)->channel);
    }
    weir__mutex_unlock(&walk->group->lock);
    if (channel == NULL)
        weir_channel_group_release(walk->group);
    return channel;
}

void weir_channel_group_foreach(weir_channel_group *group, weir_member_fn *fn, void *user_data)
{
    weir__member_walk walk;
    weir_channel *channel;

    weir__member_walk_begin(&walk, group);
    while ((channel = weir__member_walk_next(&walk)) != NULL) {
        fn(channel, user_data);
        weir_channel_release(channel);
    }
}

/* ---- match functions ---- */

bool weir_match_is(weir_channel *channel, void *user_data)
{
    return channel == user_data;
}

bool weir_match_is_not(weir_channel *channel, void *user_data)
{
    return channel != user_data;
}

bool weir_match_listeners(weir_channel *channel, void *user_data)
{
    (void)user_data;
    return channel->transport->accepts;
}

bool weir_match_connections(weir_channel *channel, void *user_data)
{
    (void)user_data;
    return !channel->transport->accepts;
}

bool weir_match_writable(weir_channel *channel, void *user_data)
{
    (void)user_data;
    return weir_channel_is_writable(channel);
}
