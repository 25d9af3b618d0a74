/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What has something open on an executor: a channel, a watch. It is a member from join to part, and
 * as long as there is one the executor is not suspended. At a shutdown the members are told, and
 * the executor goes on turning until all of them have parted, or their time is up.
 */
#ifndef WEIR_EXECUTOR_MEMBER_H
#define WEIR_EXECUTOR_MEMBER_H

#include <stdatomic.h>

#include <weir/executor.h>

#include "base/list.h"

typedef struct weir__member weir__member;

typedef struct weir__member_type {
    bool is_first; /* hears of a shutdown before the others: it brings new ones */

    /* The executor shuts down: the member closes what it has, and parts. Called once. */
    void (*shut_down)(weir__member *member);

    /* It has not parted, and its time is up: it does so without its peer. Once; NULL = nothing that
     * it waits for can take long. */
    void (*abort)(weir__member *member);
} weir__member_type;

struct weir__member {
    weir__list link;
    weir_executor *executor; /* NULL = of none */
    const weir__member_type *type;
};

/* An executor's, which only its thread touches, but for the count. */
typedef struct weir__members {
    weir__list owners;  /* those that do not know of a shutdown, */
    weir__list leaving; /* that were told of it, */
    weir__list aborted; /* and that were told a second time */
    _Atomic uint64_t count;
} weir__members;

void weir__members_init(weir__members *members);

/* The executor's thread, before it has ended. Who joins during a shutdown is told of it. */
void weir__member_join(weir__member *member, weir_executor *executor);
void weir__member_leave(weir__member *member);

/* For an executor's kind: its `drain`, and its `handles`. */
bool weir__members_drain(weir_executor *executor, bool abort);
uint64_t weir__members_count(const weir_executor *executor);

#endif
