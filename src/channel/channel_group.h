/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A walk through the members of a channel group that holds no lock between two steps and needs no
 * memory: a cursor lies in the list of members, behind the one that was visited last.
 */
#ifndef WEIR_CHANNEL_CHANNEL_GROUP_H
#define WEIR_CHANNEL_CHANNEL_GROUP_H

#include <weir/channel_group.h>

#include "base/list.h"

/* A place in the list: a member's, or a cursor. */
typedef struct weir__member_place {
    weir__list link;
    uint64_t number; /* members are numbered as they join, from 1 on; a cursor has 0 */
} weir__member_place;

typedef struct weir__member_walk {
    weir_channel_group *group;
    weir__member_place cursor;
    uint64_t last; /* who has joined later is not visited */
    size_t count;  /* of members when it began: it visits no more than these */
} weir__member_walk;

/* Begins a walk, which is to be walked to its end: it lies in the caller's memory, and uses the
 * group until then. */
void weir__member_walk_begin(weir__member_walk *walk, weir_channel_group *group);

/* The next member, which the caller releases; NULL at the end. */
weir_channel *weir__member_walk_next(weir__member_walk *walk);

/* From here on it closes who wants to join, if that is what it was asked for. */
void weir__channel_group_shut(weir_channel_group *group);

#endif
