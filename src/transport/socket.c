/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Creating and configuring sockets.
 */
#include "transport/socket.h"

#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>

#include "os/system.h"

int weir__socket_create(int family, int type, int *ret_descriptor)
{
    int descriptor = weir__sys.socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (descriptor < 0)
        return -errno;
    *ret_descriptor = descriptor;
    return 0;
}

int weir__socket_set(int descriptor, int level, int name, const void *value, size_t length)
{
    if (descriptor < 0)
        return -ENOTSUP;
    return weir__sys.setsockopt(descriptor, level, name, value, (socklen_t)length) < 0 ? -errno : 0;
}

int weir__socket_get(int descriptor, int level, int name, void *ret_value, size_t *length)
{
    socklen_t used = (socklen_t)*length;
    int err;

    if (descriptor < 0)
        return -ENOTSUP;
    err = weir__sys.getsockopt(descriptor, level, name, ret_value, &used) < 0 ? -errno : 0;
    *length = used; /* even if the memory is too small: then the required size */
    return err;
}

static int set_number(int descriptor, int level, int name, int value)
{
    return weir__socket_set(descriptor, level, name, &value, sizeof(value));
}

static int set_buffers(int descriptor, const weir_channel_options *options)
{
    int err = 0;

    if (options->send_buffer > 0)
        err = set_number(descriptor, SOL_SOCKET, SO_SNDBUF, options->send_buffer);
    if (err == 0 && options->receive_buffer > 0)
        err = set_number(descriptor, SOL_SOCKET, SO_RCVBUF, options->receive_buffer);
    return err;
}

/* 0 is the system's default. */
static int set_user_timeout(int descriptor, const weir_channel_options *options, bool fresh)
{
    int64_t ms = (options->user_timeout_ns + 999999) / 1000000;

    if (ms == 0 && fresh)
        return 0;
    return set_number(descriptor, IPPROTO_TCP, TCP_USER_TIMEOUT, ms < INT_MAX ? (int)ms : INT_MAX);
}

static bool is_internet(int family)
{
    return family == AF_INET || family == AF_INET6;
}

static int set_reset_on_close(int descriptor, bool on)
{
    const struct linger linger = {.l_onoff = on, .l_linger = 0};

    return weir__socket_set(descriptor, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
}

void weir__socket_reset_on_close(int descriptor)
{
    (void)set_reset_on_close(descriptor, true); /* fails if it is no longer connected */
}

/* A new socket has none of them set: only enabled ones need a call. */
static int set_switches(int descriptor, int family, const weir_channel_options *options, bool fresh)
{
    int err = 0;

    if (is_internet(family) && (!fresh || !options->nagle))
        err = set_number(descriptor, IPPROTO_TCP, TCP_NODELAY, !options->nagle);
    if (err == 0 && (!fresh || options->keep_alive))
        err = set_number(descriptor, SOL_SOCKET, SO_KEEPALIVE, options->keep_alive);
    if (err == 0 && (!fresh || options->reset_on_close))
        err = set_reset_on_close(descriptor, options->reset_on_close);
    return err;
}

static int configure(int descriptor, int family, const weir_channel_options *options, bool fresh)
{
    int err = set_buffers(descriptor, options);

    if (err == 0)
        err = set_switches(descriptor, family, options, fresh);
    if (err == 0 && is_internet(family))
        err = set_user_timeout(descriptor, options, fresh);
    return err;
}

int weir__socket_configure(int descriptor, int family, const weir_channel_options *options)
{
    return configure(descriptor, family, options, true);
}

int weir__socket_reconfigure(int descriptor, int family, const weir_channel_options *options)
{
    return configure(descriptor, family, options, false);
}

/*
 * Limits multicast to groups that this socket has joined; the default includes those of all sockets
 * of the host. Kernels without the option keep the default.
 */
static void disable_multicast_all(int descriptor, int family)
{
    (void)set_number(descriptor, IPPROTO_IP, IP_MULTICAST_ALL, 0);
    if (family == AF_INET6)
        (void)set_number(descriptor, IPPROTO_IPV6, IPV6_MULTICAST_ALL, 0);
}

static int configure_datagrams(int descriptor, int family, const weir_channel_options *options,
                               bool fresh)
{
    int err = set_buffers(descriptor, options);

    if (err == 0 && is_internet(family) && fresh)
        disable_multicast_all(descriptor, family);
    if (err == 0 && is_internet(family) && (!fresh || options->broadcast))
        err = set_number(descriptor, SOL_SOCKET, SO_BROADCAST, options->broadcast);
    if (err == 0 && is_internet(family) && (!fresh || options->gro))
        err = set_number(descriptor, IPPROTO_UDP, UDP_GRO, options->gro);
    if (err == 0 && is_internet(family) && (!fresh || options->packet_info))
        err = set_number(descriptor, IPPROTO_IP, IP_PKTINFO, options->packet_info);
    if (err == 0 && family == AF_INET6 && (!fresh || options->packet_info))
        err = set_number(descriptor, IPPROTO_IPV6, IPV6_RECVPKTINFO, options->packet_info);
    return err;
}

int weir__socket_configure_datagrams(int descriptor, int family,
                                     const weir_channel_options *options)
{
    return configure_datagrams(descriptor, family, options, true);
}

int weir__socket_reconfigure_datagrams(int descriptor, int family,
                                       const weir_channel_options *options)
{
    return configure_datagrams(descriptor, family, options, false);
}

int weir__socket_set_options(int descriptor, const weir_channel_options *options)
{
    int err = 0;

    for (size_t i = 0; i < options->socket_option_count && err == 0; i++)
        err = set_number(descriptor, options->socket_options[i].level,
                         options->socket_options[i].name, options->socket_options[i].value);
    return err;
}

static int bind_to(int descriptor, const weir_address *local, const weir_channel_options *options)
{
    int err = 0;

    if (options->reuse_port)
        err = set_number(descriptor, SOL_SOCKET, SO_REUSEPORT, 1);
    if (err == 0 && weir__sys.bind(descriptor, weir_address_sockaddr(local), local->length) < 0)
        err = -errno;
    return err;
}

/* Old connections do not block the port of a new listener. */
int weir__socket_bind(int descriptor, const weir_address *local,
                      const weir_channel_options *options)
{
    int err = 0;

    if (is_internet(weir_address_family(local)) && options->reuse_address != WEIR_OFF)
        err = set_number(descriptor, SOL_SOCKET, SO_REUSEADDR, 1);
    return err == 0 ? bind_to(descriptor, local, options) : err;
}

/* Off by default: SO_REUSEADDR lets another process receive the datagrams of the port. */
int weir__socket_bind_datagrams(int descriptor, const weir_address *local,
                                const weir_channel_options *options)
{
    int err = 0;

    if (is_internet(weir_address_family(local)) && options->reuse_address == WEIR_ON)
        err = set_number(descriptor, SOL_SOCKET, SO_REUSEADDR, 1);
    return err == 0 ? bind_to(descriptor, local, options) : err;
}

int weir__socket_local_address(int descriptor, weir_address *ret_address)
{
    weir_address address = {.length = sizeof(address.storage)};

    if (descriptor < 0)
        return -ENOTCONN;
    if (weir__sys.getsockname(descriptor, (struct sockaddr *)&address.storage, &address.length) < 0)
        return -errno;
    *ret_address = address;
    return 0;
}

int weir__socket_remote_address(int descriptor, weir_address *ret_address)
{
    weir_address address = {.length = sizeof(address.storage)};

    if (descriptor < 0)
        return -ENOTCONN;
    if (weir__sys.getpeername(descriptor, (struct sockaddr *)&address.storage, &address.length) < 0)
        return -errno;
    *ret_address = address;
    return 0;
}
