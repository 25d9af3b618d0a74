/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/tcp.h - TCP channels on event loops: one that connects, one that accepts. Bootstraps make
 * them (weir/server.h, weir/client.h); these are for programs that want it done by hand.
 */
#ifndef WEIR_TCP_H
#define WEIR_TCP_H

#include <weir/channel.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A channel to be registered and connected. NULL options: every default. The socket is made when it
 * is known whether it is IPv4 or IPv6.
 * Thread: any.  Gives: channel.  Fails: -ENOMEM, -EINVAL.
 */
WEIR_API int weir_tcp_create(const weir_channel_options *options, weir_channel **ret_channel);

/*
 * A channel to be registered and bound: its reads are the channels that it accepts, with
 * `child_options`.
 * Thread: any.  Gives: channel.  Fails: -ENOMEM, -EINVAL.
 */
WEIR_API int weir_tcp_create_server(const weir_channel_options *options,
                                    const weir_channel_options *child_options,
                                    weir_channel **ret_channel);

#ifdef __cplusplus
}
#endif

#endif
