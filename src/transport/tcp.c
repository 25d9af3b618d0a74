/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TCP: stream sockets and their listeners, for internet addresses.
 */
#include <weir/tcp.h>

#include "transport/listener.h"
#include "transport/stream.h"

static const weir__transport stream = {
    .name = "tcp",
    .stats = WEIR__STATS_TCP,
    .size = sizeof(weir__stream),
    .socket_type = SOCK_STREAM,
    .lingers = true,
    .suits = weir__endpoint_suits,
    .attach = weir__endpoint_attach,
    .detach = weir__endpoint_detach,
    .is_active = weir__stream_is_active,
    .bind = weir__stream_bind,
    .connect = weir__stream_connect,
    .close = weir__stream_close,
    .shut_output = weir__stream_shut_output,
    .shut_input = weir__stream_shut_input,
    .read_start = weir__stream_read_start,
    .read_stop = weir__stream_read_stop,
    .admit = weir__stream_admit,
    .flush = weir__stream_flush,
    .local_address = weir__endpoint_local_address,
    .remote_address = weir__endpoint_remote_address,
    .set_socket_option = weir__endpoint_set_socket_option,
    .get_socket_option = weir__endpoint_get_socket_option,
    .adopt = weir__stream_take,
    .descriptor = weir__endpoint_descriptor,
    .configure = weir__stream_configure,
};

static const weir__transport listener = WEIR__LISTENER("tcp-server", WEIR__STATS_TCP, AF_UNSPEC);

int weir_tcp_create(const weir_channel_options *options, weir_channel **ret_channel)
{
    return weir__stream_create(&stream, options, ret_channel);
}

int weir_tcp_create_server(const weir_channel_options *options,
                           const weir_channel_options *child_options, weir_channel **ret_channel)
{
    return weir__listener_create(&listener, &stream, options, child_options, ret_channel);
}
