/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A channel over a datagram socket: the slots of weir__transport that such channels share, whatever
 * their family. The others are those of any socket: endpoint.h.
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
    weir_address local;    /* the recipient of what comes */
    weir__unix_path *file; /* of a Unix socket, NULL = none */
    _Atomic bool leaves_file;
    bool bound;
    bool connected;
    bool lost;           /* by the backend, which is about to let go of the socket */
    weir__backoff pause; /* until it gets it again */

    /* Receiving. What came in one batch, and was not wanted any more, waits. */
    weir_datagram *waiting;
    weir_datagram **waiting_end;
    bool reads;
    bool once;

    /* Sending. */
    weir_timer room;   /* Unix sockets: tries again whether the recipient has room, */
    int64_t room_ns;   /* after so long */
    size_t sent;       /* bytes of the message at the front of the queue, if it has segments */
    bool segments;     /* the system may be asked to make them, */
    bool splits_front; /* but has refused to for the message at the front */
    size_t join_max;   /* datagrams up to this long are given to the system as one; */
    size_t join_again; /* so long, if it was not for being one that the front was refused */
} weir__datagrams;

static inline weir__datagrams *weir__datagrams_of(const weir_channel *channel)
{
    return WEIR_CONTAINER_OF(weir__endpoint_of(channel), weir__datagrams, base);
}

/* Makes a channel that has no socket yet. */
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

/* Any thread: its file is somebody else's when it is closed. */
void weir__datagrams_disable_unlink(weir_channel *channel);
int weir__datagrams_configure(weir_channel *channel);
void weir__datagrams_destroy(weir_channel *channel);

/* ---- datagrams_receive.c ---- */

void weir__datagrams_read_start(weir_channel *channel, bool once);
void weir__datagrams_read_stop(weir_channel *channel);
void weir__datagrams_deferred(weir_channel *channel);

/* For datagrams.c: what the options say; receiving begins if it is wanted. */
void weir__datagrams_expect(weir__datagrams *self, const weir_channel_options *options);
void weir__datagrams_start_receiving(weir__datagrams *self);

/* A batch has come; or an error. */
void weir__datagrams_receive(weir__datagrams *self, const weir__io_datagram *datagrams,
                             size_t count);
void weir__datagrams_receive_failed(weir__datagrams *self, int err);

/* Nobody will want what waits. */
void weir__datagrams_forget(weir__datagrams *self);

/* ---- datagrams_send.c ---- */

int weir__datagrams_admit(weir_channel *channel, const weir_msg *msg);
int weir__datagrams_flush(weir_channel *channel);

/* For datagrams.c: of a new socket, how long datagrams may be that are given to the system as one.
 */
void weir__datagrams_learn_to_join(weir__datagrams *self);

/* Such a transport: families differ in no more than this. */
#define WEIR__DATAGRAMS(transport_name, figures, family, connect_slot)                        \
    {                                                                                         \
        .name = transport_name, .stats = figures, .size = sizeof(weir__datagrams),            \
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
