/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Channels over listening sockets: they read the channels that they accept.
 */
#ifndef WEIR_TRANSPORT_LISTENER_H
#define WEIR_TRANSPORT_LISTENER_H

#include "channel/channel.h"
#include "loop/io.h"
#include "transport/backoff.h"
#include "transport/unix_path.h"

typedef void weir__listener_left_fn(void *arg);

typedef struct weir__listener {
    weir_channel channel;
    weir__io_handle handle; /* descriptor -1 = not bound yet */
    const weir__transport *child;
    weir__config *child_config;
    weir__unix_path *file; /* of a Unix socket, NULL = none */
    _Atomic bool leaves_file;
    int reserve; /* a spare descriptor, for when there are no others; -1 = none */
    bool listens;
    bool lost;                    /* the backend is about to detach the socket */
    bool reads;                   /* the channel reads */
    bool once;                    /* only one of them */
    weir__backoff backoff;        /* after an accept that failed */
    weir__listener_left_fn *left; /* see weir__listener_set_left; NULL = none */
    void *left_arg;
} weir__listener;

int weir__listener_create(const weir__transport *transport, const weir__transport *child,
                          const weir_channel_options *options,
                          const weir_channel_options *child_options, weir_channel **ret_channel);

/*
 * Several loops accept from one socket: `first` is bound, or has adopted it, and a listener for
 * each of the other loops shares it. All are created before the first one is registered; `share`
 * gives a listener the socket, before it is registered. False if the transport cannot share.
 */
bool weir__listener_can_share(const weir_channel *channel);
int weir__listener_create_sharing(weir_channel *first, const weir_channel_options *options,
                                  const weir_channel_options *child_options, bool exclusive,
                                  weir_channel **ret_channel);
int weir__listener_share(weir_channel *channel, weir_channel *first);

/*
 * Before the registration: `left` is called on the listener's loop when it has stopped accepting,
 * and connections wait that may have woken no other listener of the socket; these have to look.
 */
void weir__listener_set_left(weir_channel *channel, weir__listener_left_fn *left, void *arg);
void weir__listener_look(weir_channel *channel); /* on its loop */

/* On its loop: accepts the connections that wait now, as many as the backlog has room for. */
void weir__listener_accept_waiting(weir_channel *channel);

/* Any thread: close does not remove the file. */
void weir__listener_disable_unlink(weir_channel *channel);

int weir__listener_attach(weir_channel *channel);
bool weir__listener_detach(weir_channel *channel);
bool weir__listener_is_active(const weir_channel *channel);
int weir__listener_bind(weir_channel *channel, const weir_address *local);
bool weir__listener_close(weir_channel *channel);
void weir__listener_read_start(weir_channel *channel, bool once);
void weir__listener_read_stop(weir_channel *channel);
int weir__listener_take(weir_channel *channel, int descriptor);
int weir__listener_descriptor(const weir_channel *channel);
int weir__listener_local_address(weir_channel *channel, weir_address *ret_address);
int weir__listener_set_socket_option(weir_channel *channel, int level, int name, const void *value,
                                     size_t length);
int weir__listener_get_socket_option(weir_channel *channel, int level, int name, void *ret_value,
                                     size_t *length);
int weir__listener_configure(weir_channel *channel);
void weir__listener_destroy(weir_channel *channel);

/* The transport of a listener. */
#define WEIR__LISTENER(transport_name, stats_id, family)                                      \
    {                                                                                         \
        .name = transport_name, .stats = stats_id, .size = sizeof(weir__listener),            \
        .accepts = true, .socket_family = family, .suits = weir__endpoint_suits,              \
        .attach = weir__listener_attach, .detach = weir__listener_detach,                     \
        .is_active = weir__listener_is_active, .bind = weir__listener_bind,                   \
        .close = weir__listener_close, .read_start = weir__listener_read_start,               \
        .read_stop = weir__listener_read_stop, .local_address = weir__listener_local_address, \
        .set_socket_option = weir__listener_set_socket_option,                                \
        .get_socket_option = weir__listener_get_socket_option, .adopt = weir__listener_take,  \
        .descriptor = weir__listener_descriptor, .configure = weir__listener_configure,       \
        .destroy = weir__listener_destroy,                                                    \
    }

#endif
