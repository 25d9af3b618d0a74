/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing to a seqpacket socket: each message is one packet, sent as a whole. Slots of
 * weir__transport; the others are those of streams (stream.h).
 */
#ifndef WEIR_TRANSPORT_UNIX_SEQPACKET_H
#define WEIR_TRANSPORT_UNIX_SEQPACKET_H

#include <weir/channel.h>

/* An empty message is -EINVAL: the peer would take it for the end. */
int weir__seqpacket_admit(weir_channel *channel, const weir_msg *msg);
int weir__seqpacket_flush(weir_channel *channel);

#endif
