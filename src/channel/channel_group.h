/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Iteration over the members of a channel group without a lock between two steps and without
 * memory: a cursor is linked into the list of members, behind the last one visited.
 */
#ifndef WEIR_CHANNEL_CHANNEL_GROUP_H
#define WEIR_CHANNEL_CHANNEL_GROUP_H

#include <weir/channel_group.h>

#include "base/list.h"

/* An entry of the list: a member or a cursor. */
typedef struct weir__member_place {
    weir__list link;
    uint64_t number; /* members are numbered from 1 in the order of joining; a cursor has 0 */
} weir__member_place;

typedef struct weir__member_walk {
    weir_channel_group *group;
    weir__member_place cursor;
    uint64_t last; /* members with higher numbers are not visited */
    size_t count;  /* members at the start: at most this many are visited */
} weir__member_walk;

/* Begins a walk in the caller's memory. It must be walked to its end, and retains the group
 * until then. */
void weir__member_walk_begin(weir__member_walk *walk, weir_channel_group *group);

/* The next member, retained for the caller; NULL at the end. */
weir_channel *weir__member_walk_next(weir__member_walk *walk);

/* With stay_closed, closes channels that are added from here on. */
void weir__channel_group_shut(weir_channel_group *group);

#endif
