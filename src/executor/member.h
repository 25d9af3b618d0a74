/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A member is an object that has something open on an executor: a channel, a descriptor watch. An
 * executor with members is not suspended. A shutdown notifies the members, and continues when all
 * of them have left or their time is up.
 */
#ifndef WEIR_EXECUTOR_MEMBER_H
#define WEIR_EXECUTOR_MEMBER_H

#include <stdatomic.h>

#include <weir/executor.h>

#include "base/list.h"

typedef struct weir__member weir__member;

typedef struct weir__member_type {
    bool is_first; /* is shut down before the others, because it adds new members: listeners */

    /* Called once, when the executor shuts down: the member closes itself and leaves. */
    void (*shut_down)(weir__member *member);

    /* Called once, if its time is up and it has not left: leaves without waiting for its peer.
     * NULL: it leaves quickly in any case. */
    void (*abort)(weir__member *member);
} weir__member_type;

struct weir__member {
    weir__list link; /* zeroes: has never joined; alone: has left */
    const weir__member_type *type;
};

/* The members of an executor; accessed by its thread only, except for the count. */
typedef struct weir__members {
    weir__list open;
    weir__list leaving; /* shut_down was called */
    weir__list aborted; /* abort was called */
    _Atomic uint64_t count;
} weir__members;

void weir__members_init(weir__members *members);

/* The executor's thread, before it has ended. A member that joins during a shutdown is shut down in
 * the next turn. */
void weir__member_join(weir__member *member, weir_executor *executor);
void weir__member_leave(weir__member *member, weir_executor *executor);

/* The `drain` and `handles` of executor types. */
bool weir__members_drain(weir_executor *executor, bool abort);
uint64_t weir__members_count(const weir_executor *executor);

#endif
