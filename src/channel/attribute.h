/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of a channel's attributes.
 */
#ifndef WEIR_CHANNEL_ATTRIBUTE_H
#define WEIR_CHANNEL_ATTRIBUTE_H

#include <weir/attribute.h>

/* Frees all values; nobody else has the channel any more. */
void weir__attributes_destroy(weir_channel *channel);

#endif
