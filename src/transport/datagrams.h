/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Channels over datagram sockets: the slots of weir__transport that they share, for all families.
 * The other slots are those of any socket (endpoint.h).
 */
#ifndef WEIR_TRANSPORT_DATAGRAMS_H
#define WEIR_TRANSPORT_DATAGRAMS_H

#include <stdatomic.h>

#include "buffer/datagram.h"
#include "transport/backoff.h"
#include "transport/endpoint.h"
#include "transport/unix_path.h"

typedef struct weir__datagrams {
    weir__endpoint base;
    weir_address local;    /* the recipient of received datagrams */
    weir__unix_path *file; /* of a Unix socket, NULL = none */
    _Atomic bool leaves_file;
    bool bound;
    bool connected;
    bool lost;             /* the backend is about to detach the socket */
    weir__backoff backoff; /* until it is attached again */

    /* Receiving. Datagrams of a batch wait here after the handler has stopped reading. */
    weir_datagram *waiting;
    weir_datagram **waiting_end;
    bool reads;
    bool once;

    /* Sending. */
    weir_timer room;   /* Unix sockets: retries a full recipient */
    int64_t room_ns;   /* its last delay */
    size_t sent;       /* bytes sent of the message at the front, if it has segments */
    bool segments;     /* the kernel can make them (GSO), */
    bool splits_front; /* but not for the message at the front */
    size_t join_max;   /* datagrams up to this length are combined into runs */
    size_t join_again; /* join_max again, if the front fails even without a run */
} weir__datagrams;

static inline weir__datagrams *weir__datagrams_of(const weir_channel *channel)
{
    return WEIR_CONTAINER_OF(weir__endpoint_of(channel), weir__datagrams, base);
}

/* Creates a channel without a socket. */
int weir__datagrams_create(const weir__transport *transport, const weir_channel_options *options,
                           weir_channel **ret_channel);

int weir__datagrams_take(weir_channel *channel, int descriptor);
bool weir__datagrams_is_active(const weir_channel *channel);
int weir__datagrams_bind(weir_channel *channel, const weir_address *local);
int weir__datagrams_connect(weir_channel *channel, const weir_address *remote,
                            const weir_address *local);
int weir__datagrams_disconnect(weir_channel *channel);
bool weir__datagrams_detach(weir_channel *channel);
bool weir__datagrams_close(weir_channel *channel);

/* Any thread: close does not remove the file. */
void weir__datagrams_disable_unlink(weir_channel *channel);
int weir__datagrams_configure(weir_channel *channel);
void weir__datagrams_destroy(weir_channel *channel);

/* ---- datagrams_receive.c ---- */

void weir__datagrams_read_start(weir_channel *channel, bool once);
void weir__datagrams_read_stop(weir_channel *channel);
void weir__datagrams_deferred(weir_channel *channel);

/* Applies the options, and begins to receive if the channel reads. */
void weir__datagrams_apply_receive_options(weir__datagrams *self,
                                           const weir_channel_options *options);
void weir__datagrams_start_receiving(weir__datagrams *self);

/* Delivers a received batch; reports an error. */
void weir__datagrams_receive(weir__datagrams *self, const weir__io_datagram *datagrams,
                             size_t count);
void weir__datagrams_receive_failed(weir__datagrams *self, int err);

/* Releases the waiting datagrams. */
void weir__datagrams_release_waiting(weir__datagrams *self);

/* ---- datagrams_send.c ---- */

int weir__datagrams_admit(weir_channel *channel, const weir_msg *msg);
int weir__datagrams_flush(weir_channel *channel);

/* Determines join_max of a new socket. */
void weir__datagrams_probe_join(weir__datagrams *self);

/* The transport of a family. */
#define WEIR__DATAGRAMS(transport_name, stats_id, family, connect_slot)                       \
    {                                                                                         \
        .name = transport_name, .stats = stats_id, .size = sizeof(weir__datagrams),           \
        .socket_family = family, .connectionless = true, .has_disconnect = true,              \
        .suits = weir__endpoint_suits, .attach = weir__endpoint_attach,                       \
        .detach = weir__datagrams_detach, .is_active = weir__datagrams_is_active,             \
        .bind = weir__datagrams_bind, .connect = connect_slot,                                \
        .disconnect = weir__datagrams_disconnect, .close = weir__datagrams_close,             \
        .read_start = weir__datagrams_read_start, .read_stop = weir__datagrams_read_stop,     \
        .admit = weir__datagrams_admit, .flush = weir__datagrams_flush,                       \
        .deferred = weir__datagrams_deferred, .local_address = weir__endpoint_local_address,  \
        .remote_address = weir__endpoint_remote_address,                                      \
        .set_socket_option = weir__endpoint_set_socket_option,                                \
        .get_socket_option = weir__endpoint_get_socket_option, .adopt = weir__datagrams_take, \
        .descriptor = weir__endpoint_descriptor, .configure = weir__datagrams_configure,      \
        .destroy = weir__datagrams_destroy,                                                   \
    }

#endif
