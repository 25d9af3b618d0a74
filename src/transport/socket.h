/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sockets as channels make them: non-blocking, closed on exec, with the channel's options.
 */
#ifndef WEIR_TRANSPORT_SOCKET_H
#define WEIR_TRANSPORT_SOCKET_H

#include <weir/address.h>
#include <weir/channel.h>

/* Makes a socket of `type` (SOCK_STREAM, ...) for the family. Fails with -errno. */
int weir__socket_create(int family, int type, int *ret_descriptor);

/* What the options say of a socket that sends and receives; a listener for internet addresses hands
 * it on to the sockets that it accepts, all but `socket_options`. An option that cannot be set is
 * an error. */
int weir__socket_configure(int descriptor, int family, const weir_channel_options *options);
int weir__socket_set_options(int descriptor, const weir_channel_options *options);

/* The same for a socket that other options were set on. */
int weir__socket_reconfigure(int descriptor, int family, const weir_channel_options *options);

/* Both for a socket that sends and receives datagrams. */
int weir__socket_configure_datagrams(int descriptor, int family,
                                     const weir_channel_options *options);
int weir__socket_reconfigure_datagrams(int descriptor, int family,
                                       const weir_channel_options *options);

/* Closing the socket will reset its connection. */
void weir__socket_reset_on_close(int descriptor);

/* Binds, with the options that must be set before. */
int weir__socket_bind(int descriptor, const weir_address *local,
                      const weir_channel_options *options);
int weir__socket_bind_datagrams(int descriptor, const weir_address *local,
                                const weir_channel_options *options);

/* Of a socket, or of none (-1): that is -ENOTCONN. */
int weir__socket_local_address(int descriptor, weir_address *ret_address);
int weir__socket_remote_address(int descriptor, weir_address *ret_address);

/* setsockopt and getsockopt; without a socket -ENOTSUP. */
int weir__socket_set(int descriptor, int level, int name, const void *value, size_t length);
int weir__socket_get(int descriptor, int level, int name, void *ret_value, size_t *length);

#endif
