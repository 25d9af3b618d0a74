/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of a group, for the kinds of executors above this layer.
 */
#ifndef WEIR_EXECUTOR_GROUP_H
#define WEIR_EXECUTOR_GROUP_H

#include <weir/group.h>

#include "executor/executor.h"

/*
 * Creates a group of executors of `type`, whose `create` is told `kind`; the options have been
 * read, and what they say about loops has been dealt with.
 */
int weir__group_create(const weir__executor_type *type, const void *kind,
                       const weir_group_options *options, weir_group **ret_group);

/*
 * Creates a group that makes an executor for each channel, when no other is idle. `kind` is copied.
 */
int weir__group_create_growing(const weir__executor_type *type, const void *kind, size_t kind_size,
                               const weir_group_options *options, weir_group **ret_group);
bool weir__group_grows(const weir_group *group);

/*
 * An executor for a channel: the next one, or one of a group that grows, which is held
 * (executor/leases.h) until weir__executor_unlease. Fails: WEIR_ETOOMANY, WEIR_EREJECTED (it shuts
 * down), and as its creation does.
 */
int weir__group_lease_next(weir_group *group, weir_executor **ret_executor);

/* weir_group_at, with the memory kept until weir__executor_weak_release: a member of a group that
 * grows may retire at any time. */
weir_executor *weir__group_weak_retain_at(const weir_group *group, size_t index);

/* The chooser of a group that grows and shrinks by itself; its options are weir_autoscale_options.
 */
extern const weir_chooser weir__chooser_autoscale;

/* One look at all members, as the monitor does every window. For tests. */
void weir__autoscale_step(void *state);

/* The state that the group's chooser keeps. */
void *weir__group_chooser_state(weir_group *group);

#endif
