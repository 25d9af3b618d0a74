/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/inproc.h - channels inside the process: messages, of whatever type, go from one pipeline to
 * the other as they are, without a socket. Buffers that wait one behind the other are put together,
 * as long as they fit into what the channel would receive at a time. Addresses are names:
 * "inproc:name". The two ends run on executors of every kind, event loop or not, the same or two.
 *
 * A message has been sent when it is on the way to the peer, and is pending until then. On the way
 * there is room for the `receive_buffer` of the channel that reads (default 64 KiB, counted as the
 * marks of a channel are), or for one larger message. So a peer that does not read makes the
 * writer unwritable, as with a socket. Other options of sockets mean nothing here.
 *
 * A name that is taken fails to be bound with -EADDRINUSE, and is free again when its channel has
 * been closed. To connect where nobody listens, or where `backlog` others wait, or to a listener
 * that closes the connection before it has a loop, fails with -ECONNREFUSED. A write to a peer that
 * has closed fails with WEIR_ECLOSED; what that one had sent before can still be read. When it has
 * been, and half closure has kept the channel open, a write fails with -EPIPE and ends it.
 */
#ifndef WEIR_INPROC_H
#define WEIR_INPROC_H

#include <weir/channel.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A channel to be registered and connected.
 * Thread: any.  Gives: channel.  Fails: -ENOMEM, -EINVAL.
 */
WEIR_API int weir_inproc_create(const weir_channel_options *options, weir_channel **ret_channel);

/*
 * A channel to be registered and bound to a name.
 * Thread: any.  Gives: channel.  Fails: -ENOMEM, -EINVAL.
 */
WEIR_API int weir_inproc_create_server(const weir_channel_options *options,
                                       const weir_channel_options *child_options,
                                       weir_channel **ret_channel);

#ifdef __cplusplus
}
#endif

#endif
