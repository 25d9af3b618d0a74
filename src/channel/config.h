/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options of channels, with every default in its place. One config is shared by as many
 * channels as have the same options - all children of a listener - and is not changed any more
 * while it is: a channel that gets options of its own gets a config of its own.
 */
#ifndef WEIR_CHANNEL_CONFIG_H
#define WEIR_CHANNEL_CONFIG_H

#include <stdatomic.h>

#include <weir/channel.h>

#include "base/refcount.h"

typedef struct weir__config {
    weir__refs refs;

    /* Of `options`: writers on other threads compare with them. WEIR_NEVER = no cap. */
    _Atomic int64_t low_mark;
    _Atomic int64_t high_mark;
    _Atomic int64_t write_cap;

    /* No field is 0 for "default" any more; WEIR_NEVER for a time that was switched off. Changed by
     * the loop of the only channel that has it. */
    weir_channel_options options;
} weir__config;

/* NULL: every default. Fails with -EINVAL, -ENOMEM. */
int weir__config_create(const weir_channel_options *options, weir__config **ret_config);
weir__config *weir__config_retain(weir__config *config);
void weir__config_release(weir__config *config); /* NULL is fine */

/*
 * The loop of its channel: takes the options of `other` over, whose only holder is the caller, and
 * leaves it those before. True: others may have these, or their socket options, from
 * weir__config_read, and `other` must be kept for them.
 */
bool weir__config_exchange(weir__config *config, weir__config *other);

/* Any thread: a copy of the options; socket_options is lent as long as the config is there, or what
 * it was exchanged with. */
void weir__config_read(const weir__config *config, weir_channel_options *ret_options);

#endif
