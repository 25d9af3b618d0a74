/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Channel options with all defaults set. A config is shared by all channels with the same options,
 * such as the children of a listener, and is not changed while it is shared: a channel whose
 * options are changed gets its own config.
 */
#ifndef WEIR_CHANNEL_CONFIG_H
#define WEIR_CHANNEL_CONFIG_H

#include <stdatomic.h>

#include <weir/channel.h>

#include "base/refcount.h"

typedef struct weir__config {
    weir__refs refs;

    /* Copies from `options` for writers on other threads. WEIR_NEVER = no cap. */
    _Atomic int64_t low_mark;
    _Atomic int64_t high_mark;
    _Atomic int64_t write_cap;
    _Atomic int64_t
        limit; /* the lower of high_mark and write_cap: up to it a write checks neither */

    /* Defaults are set, and WEIR_OFF times are WEIR_NEVER. Changed only by the loop of the
     * single channel that has the config. */
    weir_channel_options options;
} weir__config;

/* NULL means all defaults. Fails with -EINVAL, -ENOMEM. */
int weir__config_create(const weir_channel_options *options, weir__config **ret_config);
weir__config *weir__config_retain(weir__config *config);
void weir__config_release(weir__config *config); /* NULL is ignored */

/*
 * On the loop of its channel: swaps the options with those of `other`, which only the caller has.
 * Returns true if other threads may have pointers to the previous socket options or group, from
 * weir__config_read: then `other` must be kept for them.
 */
bool weir__config_exchange(weir__config *config, weir__config *other);

/* Any thread: copies the options. socket_options and the group stay valid as long as the config,
 * or the one that it was exchanged with. */
void weir__config_read(const weir__config *config, weir_channel_options *ret_options);

#endif
