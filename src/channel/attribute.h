/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attributes that a channel begins with, and the end of them all.
 */
#ifndef WEIR_CHANNEL_ATTRIBUTE_H
#define WEIR_CHANNEL_ATTRIBUTE_H

#include <weir/channel.h>

/*
 * Sets values that stay somebody else's: the channel frees none of them. For a new channel that
 * nobody else has. Fails with -ENOMEM.
 */
int weir__attributes_lend(weir_channel *channel, const weir_attribute_value *values, size_t count);

/* Frees all values; nobody else has the channel any more. */
void weir__attributes_destroy(weir_channel *channel);

#endif
