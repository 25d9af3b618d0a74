/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by in-process channels and listeners.
 */
#ifndef WEIR_TRANSPORT_INPROC_H
#define WEIR_TRANSPORT_INPROC_H

#include "channel/channel.h"
#include "transport/inproc_link.h"

/* Creates the channel of the server end of a link, which it owns on success. Fails with -ENOMEM. */
int weir__inproc_accept(weir_channel *listener, weir__config *config, weir__inproc_link *link,
                        weir_channel **ret_channel);

/* Schedules the task of a channel that looks at the link. NULL is ignored. Takes: channel. */
void weir__inproc_notify(weir_channel *channel);

/* In-process channels run on any executor. */
bool weir__inproc_suits(const weir_channel *channel, const weir_executor *executor);

#endif
