/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What in-process channels and their listeners share.
 */
#ifndef WEIR_TRANSPORT_INPROC_H
#define WEIR_TRANSPORT_INPROC_H

#include "channel/channel.h"
#include "transport/inproc_link.h"

/* Makes the channel at the called end of a link, which it takes on success. Fails with -ENOMEM. */
int weir__inproc_accept(weir_channel *listener, weir__config *config, weir__inproc_link *link,
                        weir_channel **ret_channel);

/* Lets a channel look at what has come; NULL is fine. Takes: channel. */
void weir__inproc_tell(weir_channel *channel);

/* Such channels live wherever tasks run. */
bool weir__inproc_suits(const weir_channel *channel, const weir_executor *executor);

#endif
