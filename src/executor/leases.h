/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which executors of a group that grows are in use, and which are idle.
 *
 *      take --> in use --uses become 0--> idle --take, hold, join--> in use
 *
 * An idle executor whose thread has ended leaves the leases, and its group (weir__leases_retire).
 *
 * An executor is in use while it has members, and while somebody holds it because a member is on
 * its way. The one that became idle last is the next to be taken: its thread is the likeliest to be
 * there still.
 *
 * The race that there could be - a channel is on its way to an executor, and the last one that it
 * had parts on another thread - is none: uses and the list change in one critical section, so an
 * executor is in the list only while its uses are 0, and who takes it from there has made them 1
 * before anybody else can look.
 */
#ifndef WEIR_EXECUTOR_LEASES_H
#define WEIR_EXECUTOR_LEASES_H

#include <weir/executor.h>

#include "base/list.h"
#include "base/refcount.h"
#include "os/thread.h"

typedef struct weir__leases {
    weir__refs refs; /* the group's, and each of its executors': one may outlive the group */
    weir__mutex lock;
    weir__list idle; /* the latest first */
    size_t most;     /* in use at a time; 0 = no bound */
    size_t active;   /* in use, and about to be made */
    uint64_t refused;
    bool closed;
} weir__leases;

/* An executor's part of it. */
typedef struct weir__lease {
    weir__leases *leases; /* kept; NULL = of a group that does not grow */
    weir__list link;
    uint64_t uses; /* guarded by the leases's lock */
} weir__lease;

/* NULL = no memory. */
weir__leases *weir__leases_create(size_t most);
void weir__leases_release(weir__leases *leases);

/* From here on nothing is taken any more. */
void weir__leases_close(weir__leases *leases);

/*
 * Takes an idle executor, which is then held; NULL if there is none: then a new one may be made,
 * and is to be entered, or the place for it is to be given back. Fails: WEIR_ETOOMANY,
 * WEIR_EREJECTED.
 */
int weir__leases_acquire(weir__leases *leases, weir_executor **ret_executor);
void weir__leases_cancel(weir__leases *leases);

/* A new executor that nobody else knows yet: held, in the place that was taken for it; or idle. */
void weir__leases_add(weir__leases *leases, weir_executor *executor, bool held);

/* The executor goes. */
void weir__leases_remove(weir_executor *executor);

/*
 * An executor that is idle leaves for good: nobody can take it any more. False if it is in use
 * again, or if nothing is taken any more. `refs` of the group are retained in the same step: until
 * the leases is closed the group is there.
 */
bool weir__leases_retire(weir_executor *executor, weir__refs *refs);

/* How many are in use, and how often one was refused. */
void weir__leases_read_stats(weir__leases *leases, uint64_t *ret_active, uint64_t *ret_refused);

/* ---- of any executor: nothing happens to those that are in no leases ---- */

/* Any thread: keeps the executor in use. The bound is no matter here: it is one for new executors,
 * and this one is there. */
void weir__executor_lease(weir_executor *executor);
void weir__executor_unlease(weir_executor *executor);

#endif
