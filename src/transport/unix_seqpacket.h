/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing to a socket that keeps messages apart: each is one packet, whole or not at all. Slots of
 * weir__transport; the rest of such a channel is a stream's (stream.h).
 */
#ifndef WEIR_TRANSPORT_UNIX_SEQPACKET_H
#define WEIR_TRANSPORT_UNIX_SEQPACKET_H

#include <weir/channel.h>

/* An empty message is -EINVAL: the peer would take it for the end. */
int weir__seqpacket_admit(weir_channel *channel, const weir_msg *msg);
int weir__seqpacket_flush(weir_channel *channel);

#endif
