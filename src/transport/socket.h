/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sockets of channels: non-blocking, close-on-exec, with the channel's options.
 */
#ifndef WEIR_TRANSPORT_SOCKET_H
#define WEIR_TRANSPORT_SOCKET_H

#include <weir/address.h>
#include <weir/channel.h>

/* Creates a socket of `type` (SOCK_STREAM, ...) for the family. Fails with -errno. */
int weir__socket_create(int family, int type, int *ret_descriptor);

/* Applies the options to a socket. Accepted internet sockets inherit them from the listener, all
 * but `socket_options`. An option that cannot be set is an error. */
int weir__socket_configure(int descriptor, int family, const weir_channel_options *options);
int weir__socket_set_options(int descriptor, const weir_channel_options *options);

/* The same for a socket that already has options. */
int weir__socket_reconfigure(int descriptor, int family, const weir_channel_options *options);

/* Both for datagram sockets. */
int weir__socket_configure_datagrams(int descriptor, int family,
                                     const weir_channel_options *options);
int weir__socket_reconfigure_datagrams(int descriptor, int family,
                                       const weir_channel_options *options);

/* Makes close reset the connection. */
void weir__socket_reset_on_close(int descriptor);

/* Sets the options that precede a bind, and binds. */
int weir__socket_bind(int descriptor, const weir_address *local,
                      const weir_channel_options *options);
int weir__socket_bind_datagrams(int descriptor, const weir_address *local,
                                const weir_channel_options *options);

/* Fail with -ENOTCONN if there is no socket (-1). */
int weir__socket_local_address(int descriptor, weir_address *ret_address);
int weir__socket_remote_address(int descriptor, weir_address *ret_address);

/* setsockopt and getsockopt; -ENOTSUP if there is no socket. */
int weir__socket_set(int descriptor, int level, int name, const void *value, size_t length);
int weir__socket_get(int descriptor, int level, int name, void *ret_value, size_t *length);

#endif
