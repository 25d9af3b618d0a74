/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The leases of a growing group: which of its executors are in use, and which are idle.
 *
 *      acquire --> in use --leases drop to 0--> idle --acquire, lease--> in use
 *
 * An executor is leased by each of its members, and for a member that is about to join. The
 * executor that became idle last is acquired first, because its thread is most likely still
 * running. An idle executor whose thread has ended is removed from its group (weir__leases_retire).
 *
 * The count of leases and the idle list change in one critical section. So an executor is in the
 * list only while its count is 0, and acquiring it makes the count 1 before any other thread can
 * see it: a channel on its way to an executor does not race with the last member leaving it.
 */
#ifndef WEIR_EXECUTOR_LEASES_H
#define WEIR_EXECUTOR_LEASES_H

#include <weir/executor.h>

#include "base/list.h"
#include "base/refcount.h"
#include "os/thread.h"

typedef struct weir__leases {
    weir__refs refs; /* of the group and of each executor, which may outlive the group */
    weir__mutex lock;
    weir__list idle; /* latest first */
    size_t max;      /* in use at a time; 0: no bound */
    size_t active;   /* in use, or about to be created */
    uint64_t refused;
    bool closed;
} weir__leases;

/* The part of each executor. */
typedef struct weir__lease {
    weir__leases *leases; /* retained; NULL: the group does not grow */
    weir__list link;
    uint64_t count; /* guarded by leases->lock */
} weir__lease;

/* NULL: no memory. */
weir__leases *weir__leases_create(size_t max);
void weir__leases_release(weir__leases *leases);

/* Makes later acquisitions fail. */
void weir__leases_close(weir__leases *leases);

/*
 * Leases an idle executor. Returns NULL if there is none: then the caller creates an executor and
 * adds it, or cancels. Fails: WEIR_ETOOMANY, WEIR_EREJECTED.
 */
int weir__leases_acquire(weir__leases *leases, weir_executor **ret_executor);
void weir__leases_cancel(weir__leases *leases);

/* Adds a new executor, not yet visible to other threads: leased, after an acquire; or idle. */
void weir__leases_add(weir__leases *leases, weir_executor *executor, bool leased);

/* Removes an executor that is about to be freed. */
void weir__leases_remove(weir_executor *executor);

/*
 * Removes an idle executor for good. False if it is in use again, or if the leases are closed. On
 * success `refs`, those of the group, are retained in the same critical section: the group exists
 * until the leases are closed.
 */
bool weir__leases_retire(weir_executor *executor, weir__refs *refs);

/* The number of executors in use, and of refused acquisitions. */
void weir__leases_read_stats(weir__leases *leases, uint64_t *ret_active, uint64_t *ret_refused);

/* ---- for any executor; no effect in a group that does not grow ---- */

/* Any thread: keeps the executor in use. `max` does not apply, because the executor exists. */
void weir__executor_lease(weir_executor *executor);
void weir__executor_unlease(weir_executor *executor);

#endif
