/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The common part of channels over sockets; the first member of their structs.
 */
#ifndef WEIR_TRANSPORT_ENDPOINT_H
#define WEIR_TRANSPORT_ENDPOINT_H

#include "channel/channel.h"
#include "loop/io.h"

typedef struct weir__endpoint {
    weir_channel channel;
    weir__io_handle handle; /* descriptor -1 = no socket yet */
} weir__endpoint;

/* Applies the options to a new socket of that family. */
typedef int weir__configure_fn(int descriptor, int family, const weir_channel_options *options);

static inline weir__endpoint *weir__endpoint_of(const weir_channel *channel)
{
    return WEIR_CONTAINER_OF((weir_channel *)(uintptr_t)channel, weir__endpoint, channel);
}

/* Slot of weir__io_owner. */
struct weir_channel *weir__endpoint_channel(weir__io_handle *handle);

/* True if the channel's transport supports the family. */
static inline bool weir__endpoint_knows(const weir_channel *channel, int family)
{
    return (family == AF_UNIX) == (channel->transport->socket_family == AF_UNIX);
}

/* Creates a socket, unless there is one, and attaches it if there is a loop. */
int weir__endpoint_open(weir__endpoint *endpoint, int family, int type,
                        weir__configure_fn *configure);

/* Slots of weir__transport. */
bool weir__endpoint_suits(const weir_channel *channel, const weir_executor *executor);
int weir__endpoint_attach(weir_channel *channel);
bool weir__endpoint_detach(weir_channel *channel);
bool weir__endpoint_close(weir_channel *channel);
int weir__endpoint_descriptor(const weir_channel *channel);
int weir__endpoint_local_address(weir_channel *channel, weir_address *ret_address);
int weir__endpoint_remote_address(weir_channel *channel, weir_address *ret_address);
int weir__endpoint_set_socket_option(weir_channel *channel, int level, int name, const void *value,
                                     size_t length);
int weir__endpoint_get_socket_option(weir_channel *channel, int level, int name, void *ret_value,
                                     size_t *length);

#endif
