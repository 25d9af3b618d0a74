/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TCP: stream sockets and their listeners, for internet addresses.
 */
#include <weir/transport.h>

#include "transport/listener.h"
#include "transport/stream.h"

static const weir__transport stream =
    WEIR__STREAM(.name = "tcp", .stats = WEIR__STATS_TCP, .size = sizeof(weir__stream),
                 .socket_type = SOCK_STREAM, .bind = weir__stream_bind,
                 .connect = weir__stream_connect, .close = weir__stream_close,
                 .reset = weir__stream_reset, .unacknowledged = weir__stream_unacknowledged,
                 .sends_buffers = true, .admit = weir__stream_admit,
                 .flush = weir__stream_fast_flush);

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
