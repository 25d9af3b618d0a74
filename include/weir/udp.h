/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/udp.h - UDP channels on event loops: bound, connected, or both. Bootstraps make them
 * (weir/server.h, weir/client.h, with .kind = WEIR_KIND_DATAGRAM); this is for programs that want
 * it done by hand, and for multicast.
 *
 * A channel is active once it is bound or connected, and its messages are datagrams
 * (weir/datagram.h). One that cannot be sent fails its own promise, and nothing else. What the
 * network reports of those that were sent - nobody receives at that port: -ECONNREFUSED - is an
 * error event, and so is one that was too long to be received (-EMSGSIZE); the channel stays open.
 */
#ifndef WEIR_UDP_H
#define WEIR_UDP_H

#include <weir/channel.h>
#include <weir/datagram.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A channel to be registered, and bound or connected. NULL options: every default. The socket is
 * made when it is known whether it is IPv4 or IPv6.
 * Thread: any.  Gives: channel.  Fails: -ENOMEM, -EINVAL.
 */
WEIR_API int weir_udp_create(const weir_channel_options *options, weir_channel **ret_channel);

/*
 * Joins a multicast group, or leaves it: what is sent to the group's address comes to a channel
 * that is bound to its port. `interface` is a name, such as "eth0", or NULL for the system's
 * choice. With a `source` only what that address sends comes, and several can be joined; NULL is
 * any source. The ports do not matter. What only others on this host have joined does not come
 * (IP_MULTICAST_ALL is off).
 *
 * What is sent goes by the socket's options: IP_MULTICAST_IF, _TTL and _LOOP or their IPv6 equals
 * (weir_channel_set_socket_option). Who shares the port with others wants SO_REUSEADDR
 * (weir_channel_options.socket_options).
 * Thread: any.  Keeps: done.  Fails: -ENOTSUP (no UDP channel), -ENOTCONN (neither bound nor
 * connected), -EINVAL (no such group), -ENODEV (no such interface), -EADDRINUSE (joined already),
 * -EADDRNOTAVAIL (not joined), -ENAMETOOLONG, WEIR_ECLOSED, -ENOMEM.
 */
WEIR_API void weir_udp_join(weir_channel *channel, const weir_address *group, const char *interface,
                            const weir_address *source, weir_promise *done);
WEIR_API void weir_udp_leave(weir_channel *channel, const weir_address *group,
                             const char *interface, const weir_address *source, weir_promise *done);

#ifdef __cplusplus
}
#endif

#endif
