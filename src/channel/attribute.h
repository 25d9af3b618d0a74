/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Initial attributes of a channel, and the destruction of all.
 */
#ifndef WEIR_CHANNEL_ATTRIBUTE_H
#define WEIR_CHANNEL_ATTRIBUTE_H

#include <weir/channel.h>

/*
 * Sets borrowed values: the channel does not free them. For a new channel that no other thread
 * knows. Fails with -ENOMEM.
 */
int weir__attributes_lend(weir_channel *channel, const weir_attribute_value *values, size_t count);

/* Frees all values, when the channel is freed. */
void weir__attributes_destroy(weir_channel *channel);

#endif
