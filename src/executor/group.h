/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Internals of groups, for the executor types of higher layers.
 */
#ifndef WEIR_EXECUTOR_GROUP_H
#define WEIR_EXECUTOR_GROUP_H

#include <weir/group.h>

#include "executor/executor.h"

/*
 * Creates a group of executors of `type`, with `type_options` for its `create`. The options have
 * been read and validated, except those for all types.
 */
int weir__group_create(const weir__executor_type *type, const void *type_options,
                       const weir_group_options *options, weir_group **ret_group);

/*
 * Creates a group that creates an executor for each channel, if no other is idle. Copies
 * `type_options`.
 */
int weir__group_create_growing(const weir__executor_type *type, const void *type_options,
                               size_t type_options_size, const weir_group_options *options,
                               weir_group **ret_group);
bool weir__group_grows(const weir_group *group);

/* True if the user has chosen how it distributes channels: by a chooser, or by .autoscale. */
bool weir__group_has_own_chooser(const weir_group *group);

/* The name that it was created with, or "weir". */
const char *weir__group_name(const weir_group *group);

/*
 * Returns an executor for a channel: the next one, or, in a growing group, a leased one, until
 * weir__executor_unlease. Fails: WEIR_ETOOMANY, WEIR_EREJECTED (shutting down), and with the errors
 * of its creation.
 */
int weir__group_lease_next(weir_group *group, weir_executor **ret_executor);

/* Like weir_group_at, with a weak reference: a member of a growing group may retire at any time. */
weir_executor *weir__group_weak_retain_at(const weir_group *group, size_t index);

/* The chooser behind weir_group_options.autoscale; its options are weir_autoscale_options. */
extern const weir_chooser weir__chooser_autoscale;

/* Measures and scales once, as the monitor does every window. For tests. */
void weir__autoscale_step(void *state);

/* The state of the group's chooser. */
void *weir__group_chooser_state(weir_group *group);

#endif
