/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Creates the channel that fits an existing socket.
 */
#include <weir/transport.h>

#include <errno.h>
#include <stdio.h>

#include <weir/error.h>

#include "base/log.h"
#include "channel/channel.h"
#include "os/descriptor.h"
#include "transport/socket.h"

struct nature {
    int family;
    int type;
    int listens;
};

static int log_failure(int descriptor, const char *what, int err)
{
    char name[32];

    (void)snprintf(name, sizeof(name), "descriptor %d", descriptor);
    weir__warn("adopt", name, "%s: %s", what, weir_error_text(err));
    return err;
}

static int ask(int descriptor, int name, int *ret_number)
{
    size_t length = sizeof(*ret_number);

    return weir__socket_get(descriptor, SOL_SOCKET, name, ret_number, &length);
}

static int look_at(int descriptor, struct nature *ret_nature)
{
    int err = descriptor >= 0 ? ask(descriptor, SO_DOMAIN, &ret_nature->family) : -EBADF;

    if (err == 0)
        err = ask(descriptor, SO_TYPE, &ret_nature->type);
    if (err == 0)
        err = ask(descriptor, SO_ACCEPTCONN, &ret_nature->listens);
    return err < 0 ? log_failure(descriptor, "not a socket", err) : 0;
}

/* ---- selecting the transport ---- */

static bool is_internet(const struct nature *nature)
{
    return nature->family == AF_INET || nature->family == AF_INET6;
}

static int kind_of(const struct nature *nature, enum weir_kind *ret_kind)
{
    switch (nature->type) {
    case SOCK_STREAM:
        *ret_kind = WEIR_KIND_STREAM;
        return 0;
    case SOCK_SEQPACKET:
        *ret_kind = WEIR_KIND_SEQPACKET;
        return 0;
    case SOCK_DGRAM:
        *ret_kind = WEIR_KIND_DATAGRAM;
        return 0;
    default:
        return -EAFNOSUPPORT;
    }
}

static int create(const struct nature *nature, const weir_channel_options *options,
                  weir_channel **ret_channel)
{
    enum weir_kind kind;
    int err = kind_of(nature, &kind);

    if (err < 0)
        return err;
    if (nature->family == AF_UNIX)
        return weir_unix_create(kind, options, ret_channel);
    if (is_internet(nature) && kind == WEIR_KIND_STREAM)
        return weir_tcp_create(options, ret_channel);
    if (is_internet(nature) && kind == WEIR_KIND_DATAGRAM)
        return weir_udp_create(options, ret_channel);
    return -EAFNOSUPPORT;
}

static int create_server(const struct nature *nature, const weir_channel_options *options,
                         const weir_channel_options *child_options, weir_channel **ret_channel)
{
    enum weir_kind kind;
    int err = kind_of(nature, &kind);

    if (err < 0)
        return err;
    if (nature->family == AF_UNIX)
        return weir_unix_create_server(kind, options, child_options, ret_channel);
    if (is_internet(nature) && kind == WEIR_KIND_STREAM)
        return weir_tcp_create_server(options, child_options, ret_channel);
    return -EAFNOSUPPORT;
}

/* ---- adopting ---- */

static int take(int descriptor, weir_channel *channel, weir_channel **ret_channel)
{
    int err = weir__descriptor_set_nonblocking(descriptor);

    if (err == 0)
        err = weir__descriptor_set_cloexec(descriptor);
    if (err == 0)
        err = channel->transport->adopt(channel, descriptor);
    if (err < 0) {
        weir_channel_release(channel);
        return log_failure(descriptor, "cannot set socket options", err);
    }
    *ret_channel = channel;
    return 0;
}

/* A datagram socket that is neither bound nor connected would never receive anything. */
static int check_connection(int descriptor, const struct nature *nature)
{
    weir_address address;
    int err = weir__socket_remote_address(descriptor, &address);

    if (err == -ENOTCONN && nature->type == SOCK_DGRAM) {
        err = weir__socket_local_address(descriptor, &address);
        if (err == 0 && is_internet(nature) && weir_address_port(&address) == 0)
            err = -ENOTCONN;
        else if (err == 0 && address.length <= sizeof(sa_family_t))
            err = -ENOTCONN;
    }
    return err;
}

int weir_adopt(int descriptor, const weir_channel_options *options, weir_channel **ret_channel)
{
    struct nature nature;
    weir_channel *channel;
    int err = look_at(descriptor, &nature);

    if (err < 0)
        return err;
    if (nature.listens)
        return log_failure(descriptor, "it listens: use weir_adopt_server", -EINVAL);
    err = check_connection(descriptor, &nature);
    if (err < 0)
        return log_failure(descriptor, "it is not connected", err);
    err = create(&nature, options, &channel);
    if (err < 0)
        return log_failure(descriptor, "no channel for such a socket", err);
    return take(descriptor, channel, ret_channel);
}

int weir_adopt_server(int descriptor, const weir_channel_options *options,
                      const weir_channel_options *child_options, weir_channel **ret_channel)
{
    struct nature nature;
    weir_channel *channel;
    int err = look_at(descriptor, &nature);

    if (err < 0)
        return err;
    if (!nature.listens)
        return log_failure(descriptor, "it does not listen", -EINVAL);
    err = create_server(&nature, options, child_options, &channel);
    if (err < 0)
        return log_failure(descriptor, "no listener for such a socket", err);
    return take(descriptor, channel, ret_channel);
}

/* ---- duplicating ---- */

int weir_channel_duplicate_descriptor(weir_channel *channel, int *ret_descriptor)
{
    int err = WEIR_ECLOSED, descriptor;

    if (channel->transport->descriptor == NULL)
        return -ENOTSUP;
    weir__channel_lock(channel);
    if (weir__channel_phase(channel) < WEIR__CLOSING) {
        descriptor = channel->transport->descriptor(channel);
        err = descriptor < 0 ? -ENOTSUP : weir__descriptor_duplicate(descriptor, ret_descriptor);
    }
    weir__channel_unlock(channel);
    return err;
}
