/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unix sockets: the transports of stream.c, unix_seqpacket.c, datagrams.c and listener.c for
 * addresses that may be files.
 */
#include <weir/transport.h>

#include <errno.h>

#include "os/system.h"
#include "transport/datagrams.h"
#include "transport/fd_passing.h"
#include "transport/listener.h"
#include "transport/stream.h"
#include "transport/unix_seqpacket.h"

/* ---- connections ---- */

struct connection {
    weir__stream stream;
    weir__unix_path *file; /* if it was bound to one before it was connected */
};

static struct connection *connection_of(weir_channel *channel)
{
    return WEIR_CONTAINER_OF(weir__endpoint_of(channel), struct connection, stream.base);
}

static int bind_connection(weir_channel *channel, const weir_address *local)
{
    int err = weir__stream_open(channel, local);

    if (err < 0)
        return err;
    return weir__unix_path_bind(weir__endpoint_of(channel)->handle.descriptor,
                                channel->transport->socket_type, local,
                                weir__channel_options(channel), &connection_of(channel)->file);
}

static int connect_to(weir_channel *channel, const weir_address *remote, const weir_address *local)
{
    int err = local != NULL ? bind_connection(channel, local) : 0;

    return err < 0 ? err : weir__stream_connect(channel, remote, NULL);
}

static bool close_connection(weir_channel *channel)
{
    struct connection *connection = connection_of(channel);

    weir__unix_path_end(connection->file, false);
    connection->file = NULL;
    return weir__stream_close(channel);
}

static int admit_to_stream(weir_channel *channel, const weir_msg *msg)
{
    return weir_msg_is(msg, &weir_descriptors_type) ? weir__seqpacket_admit(channel, msg)
                                                    : weir__stream_admit(channel, msg);
}

#define CONNECTION(transport_name, type, admit_slot, flush_slot)                                   \
    WEIR__STREAM(.name = transport_name, .stats = WEIR__STATS_UNIX,                                \
                 .size = sizeof(struct connection), .socket_family = AF_UNIX, .socket_type = type, \
                 .bind = bind_connection, .connect = connect_to, .close = close_connection,        \
                 .sends_buffers = type == SOCK_STREAM, .admit = admit_slot, .flush = flush_slot)

static const weir__transport stream =
    CONNECTION("unix", SOCK_STREAM, admit_to_stream, weir__stream_fast_flush);
static const weir__transport seqpacket =
    CONNECTION("unix-seqpacket", SOCK_SEQPACKET, weir__seqpacket_admit, weir__seqpacket_flush);

/* ---- listeners ---- */

static const weir__transport listener = WEIR__LISTENER("unix-server", WEIR__STATS_UNIX, AF_UNIX);

/* ---- datagrams ---- */

/* The kernel chooses an abstract name, as it chooses a port for UDP: otherwise the channel could
 * not receive replies. */
static const weir_address any_name = {
    .length = sizeof(sa_family_t),
    .storage = {.ss_family = AF_UNIX},
};

static int connect_datagrams(weir_channel *channel, const weir_address *remote,
                             const weir_address *local)
{
    if (local == NULL && !weir__datagrams_of(channel)->bound)
        local = &any_name;
    return weir__datagrams_connect(channel, remote, local);
}

static const weir__transport datagrams =
    WEIR__DATAGRAMS("unix-datagram", WEIR__STATS_UNIX, AF_UNIX, connect_datagrams);

/* ---- files ---- */

int weir_unix_disable_unlink(weir_channel *channel)
{
    if (channel->transport == &listener)
        weir__listener_disable_unlink(channel);
    else if (channel->transport == &datagrams)
        weir__datagrams_disable_unlink(channel);
    else
        return -EINVAL;
    return 0;
}

/* ---- creation ---- */

int weir_unix_create(enum weir_kind kind, const weir_channel_options *options,
                     weir_channel **ret_channel)
{
    switch (kind) {
    case WEIR_KIND_STREAM:
        return weir__stream_create(&stream, options, ret_channel);
    case WEIR_KIND_SEQPACKET:
        return weir__stream_create(&seqpacket, options, ret_channel);
    case WEIR_KIND_DATAGRAM:
        return weir__datagrams_create(&datagrams, options, ret_channel);
    default:
        return -EINVAL;
    }
}

int weir_unix_create_server(enum weir_kind kind, const weir_channel_options *options,
                            const weir_channel_options *child_options, weir_channel **ret_channel)
{
    const weir__transport *child = kind == WEIR_KIND_STREAM      ? &stream
                                   : kind == WEIR_KIND_SEQPACKET ? &seqpacket
                                                                 : NULL;

    if (child == NULL)
        return -EINVAL;
    return weir__listener_create(&listener, child, options, child_options, ret_channel);
}

/* ---- the peer ---- */

/* The uid of SO_PEERCRED for unconnected sockets; listeners report themselves. */
#define NO_PEER ((uid_t)-1)

int weir_unix_read_peer(weir_channel *channel, weir_unix_peer *ret_peer)
{
    struct ucred peer;
    size_t length = sizeof(peer);
    int err = -EINVAL;

    if (channel->transport->socket_family == AF_UNIX)
        err = weir_channel_get_socket_option(channel, SOL_SOCKET, SO_PEERCRED, &peer, &length);
    if (err == 0 && (peer.uid == NO_PEER || channel->transport->accepts))
        err = -ENOTCONN;
    if (err == 0)
        *ret_peer = (weir_unix_peer){.pid = peer.pid, .uid = peer.uid, .gid = peer.gid};
    return err;
}

int weir_unix_read_peer_groups(weir_channel *channel, gid_t *ret_groups, size_t *count)
{
    size_t length = *count * sizeof(*ret_groups);
    weir_unix_peer peer;
    int err = weir_unix_read_peer(channel, &peer);

    if (err == 0)
        err =
            weir_channel_get_socket_option(channel, SOL_SOCKET, SO_PEERGROUPS, ret_groups, &length);
    if (err == 0 || err == -ERANGE)
        *count = length / sizeof(*ret_groups);
    return err;
}
