/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The system calls that make and configure sockets.
 */
#include "transport/socket.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include "base/system.h"

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
    return weir__sys.setsockopt(descriptor, level, name, value, (socklen_t)length) < 0 ? -errno : 0;
}

int weir__socket_get(int descriptor, int level, int name, void *ret_value, size_t *length)
{
    socklen_t used = (socklen_t)*length;

    if (weir__sys.getsockopt(descriptor, level, name, ret_value, &used) < 0)
        return -errno;
    *length = used;
    return 0;
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

static int set_tcp(int descriptor, const weir_channel_options *options)
{
    int err = options->nagle ? 0 : set_number(descriptor, IPPROTO_TCP, TCP_NODELAY, 1);

    if (err == 0 && options->user_timeout_ns > 0)
        err = set_number(descriptor, IPPROTO_TCP, TCP_USER_TIMEOUT,
                         (int)((options->user_timeout_ns + 999999) / 1000000));
    return err;
}

int weir__socket_configure(int descriptor, int family, const weir_channel_options *options)
{
    const struct linger reset = {.l_onoff = 1, .l_linger = 0};
    int err = set_buffers(descriptor, options);

    if (err == 0 && (family == AF_INET || family == AF_INET6))
        err = set_tcp(descriptor, options);
    if (err == 0 && options->keep_alive)
        err = set_number(descriptor, SOL_SOCKET, SO_KEEPALIVE, 1);
    if (err == 0 && options->reset_on_close)
        err = weir__socket_set(descriptor, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
    return err;
}

int weir__socket_set_options(int descriptor, const weir_channel_options *options)
{
    int err = 0;

    for (size_t i = 0; i < options->socket_option_count && err == 0; i++)
        err = set_number(descriptor, options->socket_options[i].level,
                         options->socket_options[i].name, options->socket_options[i].value);
    return err;
}

int weir__socket_bind(int descriptor, const weir_address *local,
                      const weir_channel_options *options)
{
    bool internet = weir_address_family(local) != AF_UNIX;
    int err = 0;

    if (internet && !options->no_reuse_address)
        err = set_number(descriptor, SOL_SOCKET, SO_REUSEADDR, 1);
    if (err == 0 && options->reuse_port)
        err = set_number(descriptor, SOL_SOCKET, SO_REUSEPORT, 1);
    if (err == 0 && weir__sys.bind(descriptor, weir_address_sockaddr(local), local->length) < 0)
        err = -errno;
    return err;
}

int weir__socket_local_address(int descriptor, weir_address *ret_address)
{
    weir_address address = {.length = sizeof(address.storage)};

    if (weir__sys.getsockname(descriptor, (struct sockaddr *)&address.storage, &address.length) < 0)
        return -errno;
    *ret_address = address;
    return 0;
}

int weir__socket_remote_address(int descriptor, weir_address *ret_address)
{
    weir_address address = {.length = sizeof(address.storage)};

    if (weir__sys.getpeername(descriptor, (struct sockaddr *)&address.storage, &address.length) < 0)
        return -errno;
    *ret_address = address;
    return 0;
}
