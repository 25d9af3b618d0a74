/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The socket of a channel: created when its family is known, or accepted. From then on its handle
 * is attached whenever the channel has a loop.
 */
#include "transport/endpoint.h"

#include <errno.h>

#include "loop/loop.h"
#include "os/descriptor.h"
#include "transport/receive.h"
#include "transport/socket.h"

static bool is_attached(const weir__endpoint *endpoint)
{
    return endpoint->handle.io != NULL;
}

struct weir_channel *weir__endpoint_channel(weir__io_handle *handle)
{
    return &WEIR_CONTAINER_OF(handle, weir__endpoint, handle)->channel;
}

/* ---- on a loop ---- */

bool weir__endpoint_suits(const weir_channel *channel, const weir_executor *executor)
{
    (void)channel;
    return weir__loop_io(executor) != NULL;
}

/* Attaches once there are both a socket and a loop. */
int weir__endpoint_attach(weir_channel *channel)
{
    weir__endpoint *endpoint = weir__endpoint_of(channel);
    weir__io *io = weir__loop_io(weir__channel_executor(channel));

    if (endpoint->handle.descriptor < 0 || is_attached(endpoint))
        return 0;
    weir__receive_into_buffers(io);
    return weir__io_attach(io, &endpoint->handle);
}

bool weir__endpoint_detach(weir_channel *channel)
{
    weir__endpoint *endpoint = weir__endpoint_of(channel);

    if (!is_attached(endpoint))
        return true;
    weir__io_detach(&endpoint->handle);
    return false;
}

bool weir__endpoint_close(weir_channel *channel)
{
    weir__endpoint *endpoint = weir__endpoint_of(channel);

    if (is_attached(endpoint)) {
        weir__io_close(&endpoint->handle);
        return false;
    }
    if (endpoint->handle.descriptor >= 0)
        (void)weir__descriptor_close(endpoint->handle.descriptor);
    endpoint->handle.descriptor = -1;
    return true;
}

/* ---- the socket ---- */

int weir__endpoint_open(weir__endpoint *endpoint, int family, int type,
                        weir__configure_fn *configure)
{
    const weir_channel_options *options = weir__channel_options(&endpoint->channel);
    int descriptor, err;

    if (!weir__endpoint_knows(&endpoint->channel, family))
        return -EAFNOSUPPORT;
    if (endpoint->handle.descriptor >= 0)
        return 0;
    err = weir__socket_create(family, type, &descriptor);
    if (err < 0)
        return err;
    err = configure(descriptor, family, options);
    if (err == 0)
        err = weir__socket_set_options(descriptor, options);
    if (err < 0) {
        (void)weir__descriptor_close(descriptor);
        return err;
    }
    weir__channel_lock(&endpoint->channel); /* other threads may read it */
    endpoint->handle.descriptor = descriptor;
    weir__channel_unlock(&endpoint->channel);
    return weir__endpoint_attach(&endpoint->channel);
}

int weir__endpoint_descriptor(const weir_channel *channel)
{
    return weir__endpoint_of(channel)->handle.descriptor;
}

int weir__endpoint_local_address(weir_channel *channel, weir_address *ret_address)
{
    return weir__socket_local_address(weir__endpoint_of(channel)->handle.descriptor, ret_address);
}

int weir__endpoint_remote_address(weir_channel *channel, weir_address *ret_address)
{
    return weir__socket_remote_address(weir__endpoint_of(channel)->handle.descriptor, ret_address);
}

int weir__endpoint_set_socket_option(weir_channel *channel, int level, int name, const void *value,
                                     size_t length)
{
    return weir__socket_set(weir__endpoint_of(channel)->handle.descriptor, level, name, value,
                            length);
}

int weir__endpoint_get_socket_option(weir_channel *channel, int level, int name, void *ret_value,
                                     size_t *length)
{
    return weir__socket_get(weir__endpoint_of(channel)->handle.descriptor, level, name, ret_value,
                            length);
}
