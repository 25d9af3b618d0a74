/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Channels over stream sockets: the slots of weir__transport that they share, for all families. The
 * other slots are those of any socket (endpoint.h).
 */
#ifndef WEIR_TRANSPORT_STREAM_H
#define WEIR_TRANSPORT_STREAM_H

#include "transport/endpoint.h"
#include "transport/receive.h"

typedef struct weir__stream {
    weir__endpoint base;
    weir__receive_size receive_size;
    bool connected;
    bool hung_up; /* the end of the peer's stream was reported, or read */
} weir__stream;

/* Creates an accepted channel. Owns the descriptor, even on failure. */
int weir__stream_adopt(const weir__transport *transport, weir__config *config, weir_channel *parent,
                       int descriptor, weir_channel **ret_channel);

/* Creates a channel without a socket. */
int weir__stream_create(const weir__transport *transport, const weir_channel_options *options,
                        weir_channel **ret_channel);

/* Creates the socket, unless there is one. */
int weir__stream_open(weir_channel *channel, const weir_address *address);

int weir__stream_take(weir_channel *channel, int descriptor);
bool weir__stream_is_active(const weir_channel *channel);
int weir__stream_bind(weir_channel *channel, const weir_address *local);
int weir__stream_connect(weir_channel *channel, const weir_address *remote,
                         const weir_address *local);
bool weir__stream_close(weir_channel *channel);
void weir__stream_reset(weir_channel *channel);
int64_t weir__stream_unacknowledged(const weir_channel *channel);
int weir__stream_shut_output(weir_channel *channel);
int weir__stream_shut_input(weir_channel *channel);
void weir__stream_read_start(weir_channel *channel, bool once);
void weir__stream_read_stop(weir_channel *channel);
int weir__stream_admit(weir_channel *channel, const weir_msg *msg);
int weir__stream_fast_flush(weir_channel *channel);
int weir__stream_configure(weir_channel *channel);

/* The transport of a stream, with its own slots for binding, connecting, closing and sending. */
#define WEIR__STREAM(...)                                                                         \
    {                                                                                             \
        .lingers = true, .suits = weir__endpoint_suits, .attach = weir__endpoint_attach,          \
        .detach = weir__endpoint_detach, .is_active = weir__stream_is_active,                     \
        .shut_output = weir__stream_shut_output, .shut_input = weir__stream_shut_input,           \
        .read_start = weir__stream_read_start, .read_stop = weir__stream_read_stop,               \
        .local_address = weir__endpoint_local_address,                                            \
        .remote_address = weir__endpoint_remote_address,                                          \
        .set_socket_option = weir__endpoint_set_socket_option,                                    \
        .get_socket_option = weir__endpoint_get_socket_option, .adopt = weir__stream_take,        \
        .descriptor = weir__endpoint_descriptor, .configure = weir__stream_configure, __VA_ARGS__ \
    }

#endif
