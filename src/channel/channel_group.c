/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is in a channel group.
 *
 *      no record --add--> member --remove, or the group's end--> former member --add--> member
 *                            `---- its channel closes: the record goes ----'
 *
 * A record listens to its channel's end, and a listener cannot be taken back: so it stays until
 * then, member or not, and a channel that joins again finds its own. A member's record keeps the
 * channel, a former one's does not; each keeps the memory of the group.
 *
 * Nothing is called, and no channel released, with the lock held.
 */
#include "channel/channel_group.h"

#include <errno.h>

#include <weir/error.h>

#include "base/memory.h"
#include "base/options.h"
#include "base/refcount.h"
#include "base/table.h"
#include "base/thread.h"
#include "channel/channel.h"

struct weir_channel_group {
    weir__refs users;
    weir__refs refs; /* of its memory: the users' together, and each record's */
    char *name;
    bool stays_closed;
    weir__mutex lock; /* guards the rest */
    bool is_shut;
    weir__table records; /* by channel id */
    weir__list places;   /* of members, in the order in which they joined, and of cursors */
    size_t count;        /* of members */
    uint64_t last_number;
};

struct record {
    weir__table_item item;
    weir__member_place place;
    weir_channel_group *group; /* its memory is kept */
    weir_channel *channel;     /* kept; NULL = a former member */
    weir_listener on_closed;
};

/* ---- life ---- */

void weir_channel_group_options_init(weir_channel_group_options *options)
{
    *options = *WEIR_CHANNEL_GROUP_OPTIONS(.name = NULL);
}

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
    weir__table_init(&group->records);
    weir__list_init(&group->places);
    *ret_group = group;
    return 0;
}

weir_channel_group *weir_channel_group_retain(weir_channel_group *group)
{
    weir__refs_retain(&group->users);
    return group;
}

static void drop(weir_channel_group *group)
{
    if (!weir__refs_release(&group->refs))
        return;
    weir__table_deinit(&group->records);
    weir__mutex_deinit(&group->lock);
    weir__free(group->name);
    weir__free(group);
}

/* Locked: gives the channel to the caller, who releases it. */
static weir_channel *leave(struct record *record)
{
    weir_channel *channel = record->channel;

    weir__list_remove(&record->place.link);
    record->channel = NULL;
    record->group->count--;
    return channel;
}

static weir_channel *pop_member(weir_channel_group *group)
{
    weir_channel *channel = NULL;

    weir__mutex_lock(&group->lock);
    if (!weir__list_is_empty(&group->places)) /* no user is left, and so no cursor */
        channel = leave(container_of(group->places.next, struct record, place.link));
    weir__mutex_unlock(&group->lock);
    return channel;
}

void weir_channel_group_release(weir_channel_group *group)
{
    weir_channel *channel;

    if (group == NULL || !weir__refs_release(&group->users))
        return;
    while ((channel = pop_member(group)) != NULL)
        weir_channel_release(channel);
    drop(group);
}

const char *weir_channel_group_name(const weir_channel_group *group)
{
    return group->name;
}

/* ---- members ---- */

static struct record *find_record(const weir_channel_group *group, uint64_t id)
{
    weir__table_item *item = weir__table_find(&group->records, id);

    return item != NULL ? container_of(item, struct record, item) : NULL;
}

static struct record *find_member(const weir_channel_group *group, uint64_t id)
{
    struct record *record = find_record(group, id);

    return record != NULL && record->channel != NULL ? record : NULL;
}

static void on_closed(weir_promise *promise, void *user_data)
{
    struct record *record = user_data;
    weir_channel_group *group = record->group;
    weir_channel *channel = NULL;

    (void)promise;
    weir__mutex_lock(&group->lock);
    if (record->channel != NULL)
        channel = leave(record);
    weir__table_remove(&group->records, &record->item);
    weir__mutex_unlock(&group->lock);
    weir__free(record);
    drop(group);
    weir_channel_release(channel);
}

static struct record *make_record(weir_channel_group *group, const weir_channel *channel)
{
    struct record *record = weir__zalloc(sizeof(*record));

    if (record == NULL)
        return NULL;
    record->item.key = channel->id;
    record->group = group;
    record->on_closed = (weir_listener){.fn = on_closed, .user_data = record};
    return record;
}

/* Locked: `fresh` is used, and NULL then, if the channel has no record yet. */
static int join(weir_channel_group *group, weir_channel *channel, struct record **fresh)
{
    struct record *record = find_record(group, channel->id);

    if (group->is_shut)
        return WEIR_ECLOSED;
    if (record != NULL && record->channel != NULL)
        return -EEXIST;
    if (record == NULL) {
        record = *fresh;
        *fresh = NULL;
        weir__table_add(&group->records, &record->item);
        weir__refs_retain(&group->refs);
    }
    record->channel = weir_channel_retain(channel);
    record->place.number = ++group->last_number;
    weir__list_append(&group->places, &record->place.link);
    group->count++;
    return 0;
}

int weir_channel_group_add(weir_channel_group *group, weir_channel *channel)
{
    weir_promise *closed;
    struct record *record, *unused;
    int err;

    if (weir__channel_executor(channel) == NULL)
        return -EINVAL;
    closed = weir_channel_closed(channel);
    record = unused = closed != NULL ? make_record(group, channel) : NULL;
    if (record == NULL)
        return -ENOMEM;
    weir__mutex_lock(&group->lock);
    err = weir_promise_is_done(closed) ? WEIR_ECLOSED : join(group, channel, &unused);
    weir__mutex_unlock(&group->lock);
    if (unused == NULL)
        weir_promise_listen(closed, &record->on_closed);
    weir__free(unused);
    if (err == WEIR_ECLOSED)
        weir_channel_close(channel, NULL); /* which does nothing if that is why */
    return err;
}

int weir_channel_group_remove(weir_channel_group *group, weir_channel *channel)
{
    struct record *record;
    bool was_member;

    weir__mutex_lock(&group->lock);
    record = find_member(group, channel->id);
    was_member = record != NULL;
    if (was_member)
        (void)leave(record);
    weir__mutex_unlock(&group->lock);
    if (!was_member)
        return -ENOENT;
    weir_channel_release(channel);
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
    struct record *record;
    weir_channel *channel;

    weir__mutex_lock(&group->lock);
    record = find_member(group, id);
    channel = record != NULL ? weir_channel_retain(record->channel) : NULL;
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
    walk->group = group;
    walk->cursor.number = 0;
    weir__mutex_lock(&group->lock);
    walk->last = group->last_number;
    walk->count = group->count;
    weir__list_append(group->places.next, &walk->cursor.link); /* before the first */
    weir__mutex_unlock(&group->lock);
}

/* Locked: the next place that is a member's; NULL if there is none. */
static weir__member_place *next_place(const weir__member_walk *walk)
{
    weir__list *link = walk->cursor.link.next;
    weir__member_place *place;

    for (; link != &walk->group->places; link = link->next) {
        place = container_of(link, weir__member_place, link);
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
        channel = weir_channel_retain(container_of(place, struct record, place)->channel);
    }
    weir__mutex_unlock(&walk->group->lock);
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

/* ---- matches ---- */

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
