/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of system calls in a world: descriptors of simulated files are handled here, all others
 * by the system.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "sim/child.h"
#include "sim/network.h"
#include "sim/signal_file.h"
#include "sim/unix_path.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

#define FILE_PIECE ((size_t)64 * 1024)

/* Turns a result or -errno into what a system call returns. */
static ssize_t returned(ssize_t result)
{
    if (result >= 0)
        return result;
    errno = (int)-result;
    return -1;
}

static int returned_int(int result)
{
    return (int)returned(result);
}

/* The socket of a call; sets *ret_err if there is none that works. */
static weir__sim_socket *usable(int descriptor, int *ret_err)
{
    weir__sim_socket *socket = weir__sim_socket_of(descriptor);

    *ret_err = 0;
    if (socket == NULL)
        *ret_err = weir__sim_file_of(descriptor) != NULL ? -ENOTSOCK : -EBADF;
    else if (weir__sim_descriptor_of(descriptor)->is_dead)
        *ret_err = socket->kind == SOCK_DGRAM ? -ENETDOWN : -ECONNRESET;
    return *ret_err == 0 ? socket : NULL;
}

weir__sim_socket *weir__sim_socket_of(int descriptor)
{
    weir__sim_file *file = weir__sim_file_of(descriptor);

    return file != NULL && file->is_socket ? (weir__sim_socket *)(void *)file : NULL;
}

/* ---- sockets ---- */

static int sim_socket(int domain, int type, int protocol)
{
    int kind = type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC);

    (void)protocol;
    if (weir_sim_is_dying())
        return returned_int(-ENETDOWN);
    if (domain == AF_UNIX)
        return returned_int(weir__sim_unix_socket(kind));
    if (domain != AF_INET && domain != AF_INET6)
        return returned_int(-EAFNOSUPPORT);
    return returned_int(kind == SOCK_STREAM ? weir__sim_tcp_socket(domain)
                                            : weir__sim_udp_socket(domain));
}

static int sim_bind(int descriptor, const struct sockaddr *address, socklen_t length)
{
    int err;
    weir__sim_socket *socket = usable(descriptor, &err);

    return returned_int(
        socket != NULL ? weir__sim_socket_type_of(socket)->bind(socket, address, length) : err);
}

static int sim_listen(int descriptor, int backlog)
{
    int err;
    weir__sim_socket *socket = usable(descriptor, &err);

    if (socket != NULL && weir__sim_socket_type_of(socket)->listen == NULL)
        err = -EOPNOTSUPP;
    return returned_int(err == 0 ? weir__sim_socket_type_of(socket)->listen(socket, backlog) : err);
}

static void copy_address(const weir_address *from, struct sockaddr *address, socklen_t *length)
{
    if (address == NULL)
        return;
    memcpy(address, &from->storage, *length < from->length ? *length : from->length);
    *length = from->length;
}

static int sim_accept4(int descriptor, struct sockaddr *address, socklen_t *length, int flags)
{
    int err, opened;
    weir__sim_socket *socket = usable(descriptor, &err), *child;

    (void)flags;
    if (err < 0)
        return returned_int(err == -ECONNRESET ? -EINVAL : err);
    if (weir__sim_fault(WEIR_SIM_FAULT_INTERRUPTED))
        return returned_int(-EINTR);
    if (!socket->is_listening)
        return returned_int(-EINVAL);
    child = weir__sim_socket_type_of(socket)->accept(socket, false);
    if (child == NULL)
        return returned_int(-EAGAIN);
    opened = weir__sim_file_open(&child->file, child->file.type);
    if (opened < 0)
        return returned_int(opened);
    (void)weir__sim_socket_type_of(socket)->accept(socket, true);
    copy_address(&child->peer, address, length);
    return opened;
}

static int sim_connect(int descriptor, const struct sockaddr *address, socklen_t length)
{
    int err;
    weir__sim_socket *socket = usable(descriptor, &err);

    return returned_int(
        socket != NULL ? weir__sim_socket_type_of(socket)->connect(socket, address, length) : err);
}

static int sim_shutdown(int descriptor, int how)
{
    int err;
    weir__sim_socket *socket = usable(descriptor, &err);

    if (socket == NULL)
        return returned_int(err == -ECONNRESET ? -ENOTCONN : err);
    return returned_int(weir__sim_socket_type_of(socket)->shutdown != NULL
                            ? weir__sim_socket_type_of(socket)->shutdown(socket, how)
                            : -EOPNOTSUPP);
}

/* ---- options: those that change what the simulation does; all others are accepted ---- */

static int int_option(const void *value, socklen_t length)
{
    int number = 0;

    memcpy(&number, value, length < sizeof(number) ? length : sizeof(number));
    return number;
}

/* Missing in the simulated network: joined datagrams, their recipients, and multicast. */
static bool is_refused(int level, int name)
{
    return (level == IPPROTO_UDP && name == UDP_GRO) ||
           (level == IPPROTO_IP &&
            (name == IP_PKTINFO || name == MCAST_JOIN_GROUP || name == MCAST_JOIN_SOURCE_GROUP)) ||
           (level == IPPROTO_IPV6 && (name == IPV6_RECVPKTINFO || name == MCAST_JOIN_GROUP ||
                                      name == MCAST_JOIN_SOURCE_GROUP));
}

static int sim_setsockopt(int descriptor, int level, int name, const void *value, socklen_t length)
{
    int err, number = int_option(value, length);
    weir__sim_socket *socket = usable(descriptor, &err);

    if (socket == NULL)
        return returned_int(err);
    if (level == SOL_SOCKET && name == SO_REUSEADDR)
        socket->reuse_address = number != 0;
    else if (level == SOL_SOCKET && name == SO_REUSEPORT)
        socket->reuse_port = number != 0;
    else if (level == SOL_SOCKET && name == SO_PASSCRED)
        socket->passes_credentials = number != 0;
    else if (level == SOL_SOCKET && name == SO_LINGER)
        socket->lingers = number != 0 && length >= sizeof(struct linger) &&
                          ((const struct linger *)value)->l_linger == 0;
    else if (level == SOL_SOCKET && name == SO_SNDBUF && number > 0)
        socket->send_buffer = (size_t)number * 2;
    else if (level == SOL_SOCKET && name == SO_RCVBUF && number > 0)
        socket->receive_buffer = (size_t)number * 2;
    else if (level == IPPROTO_IPV6 && name == IPV6_V6ONLY)
        socket->only_v6 = number != 0;
    else if (level == IPPROTO_TCP && name == TCP_USER_TIMEOUT)
        socket->user_timeout_ns = weir_ms(number);
    else if (is_refused(level, name))
        return returned_int(number != 0 ? -ENOPROTOOPT : 0);
    return 0;
}

static int get_int_option(weir__sim_socket *socket, int level, int name)
{
    int err;

    if (level != SOL_SOCKET)
        return level == IPPROTO_IPV6 && name == IPV6_V6ONLY ? socket->only_v6 : 0;
    switch (name) {
    case SO_ERROR:
        err = socket->error;
        socket->error = 0;
        return err;
    case SO_TYPE:
        return socket->kind;
    case SO_DOMAIN:
        return socket->domain;
    case SO_ACCEPTCONN:
        return socket->is_listening;
    case SO_REUSEADDR:
        return socket->reuse_address;
    case SO_REUSEPORT:
        return socket->reuse_port;
    case SO_SNDBUF:
        return (int)socket->send_buffer;
    case SO_RCVBUF:
        return (int)socket->receive_buffer;
    default:
        return 0;
    }
}

static int sim_getsockopt(int descriptor, int level, int name, void *value, socklen_t *length)
{
    weir__sim_socket *socket = weir__sim_socket_of(descriptor);
    int number;

    if (socket == NULL)
        return returned_int(weir__sim_file_of(descriptor) != NULL ? -ENOTSOCK : -EBADF);
    if (level == SOL_SOCKET && name == SO_PEERCRED) {
        if (*length > sizeof(socket->peer_credentials))
            *length = sizeof(socket->peer_credentials);
        memcpy(value, &socket->peer_credentials, *length);
        return 0;
    }
    if (weir__sim_descriptor_of(descriptor)->is_dead && name == SO_ERROR && level == SOL_SOCKET)
        number = ECONNRESET;
    else
        number = get_int_option(socket, level, name);
    memset(value, 0, *length);
    memcpy(value, &number, *length < sizeof(number) ? *length : sizeof(number));
    if (*length > sizeof(number))
        *length = sizeof(number);
    return 0;
}

static int sim_getsockname(int descriptor, struct sockaddr *address, socklen_t *length)
{
    weir__sim_socket *socket = weir__sim_socket_of(descriptor);
    weir_address none;

    if (socket == NULL)
        return returned_int(-EBADF);
    none = socket->local;
    if (none.length == 0) {
        none.storage.ss_family = (sa_family_t)socket->domain;
        none.length = socket->domain == AF_INET    ? sizeof(struct sockaddr_in)
                      : socket->domain == AF_INET6 ? sizeof(struct sockaddr_in6)
                                                   : sizeof(sa_family_t);
    }
    copy_address(&none, address, length);
    return 0;
}

static int sim_getpeername(int descriptor, struct sockaddr *address, socklen_t *length)
{
    const weir__sim_socket *socket = weir__sim_socket_of(descriptor);

    if (socket == NULL || !socket->has_peer)
        return returned_int(socket == NULL ? -EBADF : -ENOTCONN);
    copy_address(&socket->peer, address, length);
    return 0;
}

static int sim_if_nametoindex(const char *name)
{
    (void)name;
    return returned_int(-ENODEV);
}

static int sim_outq(int descriptor, int *ret_bytes)
{
    int err;
    weir__sim_socket *socket = usable(descriptor, &err);

    if (socket == NULL)
        return returned_int(err);
    *ret_bytes = weir__sim_socket_type_of(socket)->outq != NULL
                     ? weir__sim_socket_type_of(socket)->outq(socket)
                     : 0;
    return 0;
}

/* ---- receiving and sending ---- */

static ssize_t sim_recvmsg(int descriptor, struct msghdr *message, int flags)
{
    int err;
    weir__sim_socket *socket = usable(descriptor, &err);
    ssize_t length;

    if (socket == NULL)
        return returned(err == -ENETDOWN ? -EAGAIN : err); /* datagrams: nothing comes any more */
    if ((flags & MSG_ERRQUEUE) != 0)
        return returned(-EAGAIN);
    if (weir__sim_fault(WEIR_SIM_FAULT_INTERRUPTED))
        return returned(-EINTR);
    message->msg_flags = 0;
    length = weir__sim_socket_type_of(socket)->receive(socket, message, flags);
    return returned(length);
}

static ssize_t sim_recv(int descriptor, void *memory, size_t size, int flags)
{
    struct iovec vector = {memory, size};
    struct msghdr message = {.msg_iov = &vector, .msg_iovlen = 1};

    return sim_recvmsg(descriptor, &message, flags);
}

/* An error after some messages is that of the next call. */
static void keep_error(int descriptor, int err)
{
    weir__sim_socket *socket = weir__sim_socket_of(descriptor);

    if (err != EAGAIN && err != EINTR && socket != NULL)
        socket->error = err;
}

static int sim_recvmmsg(int descriptor, struct mmsghdr *messages, unsigned count, int flags,
                        struct timespec *timeout)
{
    unsigned done = 0;

    (void)timeout;
    while (done < count) {
        ssize_t length = sim_recvmsg(descriptor, &messages[done].msg_hdr, flags);

        if (length < 0 && done > 0)
            keep_error(descriptor, errno);
        if (length < 0)
            return done > 0 ? (int)done : -1;
        messages[done++].msg_len = (unsigned)length;
    }
    return (int)done;
}

static ssize_t sim_sendmsg(int descriptor, const struct msghdr *message, int flags)
{
    int err;
    weir__sim_socket *socket = usable(descriptor, &err);

    if (socket == NULL)
        return returned(err);
    if (weir__sim_fault(WEIR_SIM_FAULT_INTERRUPTED))
        return returned(-EINTR);
    return returned(weir__sim_socket_type_of(socket)->send(socket, message, flags));
}

static ssize_t sim_send(int descriptor, const void *memory, size_t size, int flags)
{
    struct iovec vector = {(void *)(uintptr_t)memory, size};
    const struct msghdr message = {.msg_iov = &vector, .msg_iovlen = 1};

    return sim_sendmsg(descriptor, &message, flags);
}

static int sim_sendmmsg(int descriptor, struct mmsghdr *messages, unsigned count, int flags)
{
    unsigned done = 0;

    while (done < count) {
        ssize_t length = sim_sendmsg(descriptor, &messages[done].msg_hdr, flags);

        if (length < 0)
            return done > 0 ? (int)done : -1;
        messages[done++].msg_len = (unsigned)length;
    }
    return (int)done;
}

/* The file is a real one. */
static ssize_t sim_sendfile(int descriptor, int file, off_t *offset, size_t count)
{
    char *piece = malloc(FILE_PIECE);
    ssize_t length, sent = -1;

    if (piece == NULL)
        return returned(-ENOMEM);
    length = weir__sim->real.pread(file, piece, count < FILE_PIECE ? count : FILE_PIECE, *offset);
    sent = length > 0 ? sim_send(descriptor, piece, (size_t)length, MSG_NOSIGNAL) : length;
    if (sent > 0)
        *offset += sent;
    free(piece);
    return sent;
}

/* ---- other descriptors ---- */

static ssize_t sim_read(int descriptor, void *memory, size_t size)
{
    weir__sim_file *file = weir__sim_file_of(descriptor);
    uint64_t value;

    if (descriptor < WEIR__SIM_FD_FIRST)
        return weir__sim->real.read(descriptor, memory, size);
    if (file == NULL)
        return returned(-EBADF);
    if (weir__sim_signal_file_is(file))
        return returned(weir__sim_signal_file_read(file, memory, size));
    if (!weir__sim_eventfd_read(file, &value))
        return file->is_socket ? sim_recv(descriptor, memory, size, 0) : returned(-EAGAIN);
    memcpy(memory, &value, size < sizeof(value) ? size : sizeof(value));
    return sizeof(value);
}

static ssize_t sim_write(int descriptor, const void *memory, size_t size)
{
    weir__sim_file *file = weir__sim_file_of(descriptor);
    uint64_t value = 0;

    if (descriptor < WEIR__SIM_FD_FIRST)
        return weir__sim->real.write(descriptor, memory, size);
    if (file == NULL)
        return returned(-EBADF);
    memcpy(&value, memory, size < sizeof(value) ? size : sizeof(value));
    if (!weir__sim_eventfd_write(file, value))
        return sim_send(descriptor, memory, size, MSG_NOSIGNAL);
    return (ssize_t)size;
}

static int sim_eventfd(unsigned value, int flags)
{
    (void)flags;
    return returned_int(weir__sim_eventfd(value));
}

static int sim_fcntl(int descriptor, int command, int argument)
{
    if (descriptor < WEIR__SIM_FD_FIRST)
        return weir__sim->real.fcntl(descriptor, command, argument);
    if (weir__sim_file_of(descriptor) == NULL)
        return returned_int(-EBADF);
    if (command == F_DUPFD_CLOEXEC)
        return returned_int(weir__sim_file_duplicate(weir__sim_file_of(descriptor)));
    return command == F_GETFL ? O_RDWR | O_NONBLOCK : command == F_GETFD ? FD_CLOEXEC : 0;
}

static int sim_close(int descriptor)
{
    if (descriptor < WEIR__SIM_FD_FIRST)
        return weir__sim->real.close(descriptor);
    return returned_int(weir__sim_file_close(descriptor));
}

/* Only for the eventfd of a loop without a backend, which a world does not have. */
static int sim_ppoll(struct pollfd *descriptors, nfds_t count, const struct timespec *timeout,
                     const sigset_t *mask)
{
    int ready = 0;

    (void)timeout;
    (void)mask;
    for (nfds_t i = 0; i < count; i++) {
        weir__sim_file *file = weir__sim_file_of(descriptors[i].fd);

        descriptors[i].revents = 0;
        if (file != NULL)
            descriptors[i].revents = (short)(file->type->poll(file) &
                                             ((unsigned)descriptors[i].events | POLLERR | POLLHUP));
        ready += descriptors[i].revents != 0;
    }
    return ready;
}

/* Only for weir_fd_watch, which asks whether a file can be watched: loops have the world's
 * backend. */
static int sim_epoll_create1(int flags)
{
    return sim_eventfd(0, flags);
}

static int sim_epoll_ctl(int epoll, int operation, int descriptor, struct epoll_event *event)
{
    (void)epoll;
    (void)operation;
    (void)event;
    return returned_int(weir__sim_file_of(descriptor) != NULL ? 0 : -EBADF);
}

static pid_t no_fork(void)
{
    return returned_int(-ENOSYS);
}

void weir__sim_system_install(void)
{
    weir__system *table = weir__sim->seams->system;

    weir__sim->real = *table;
    table->socket = sim_socket;
    table->bind = sim_bind;
    table->listen = sim_listen;
    table->accept4 = sim_accept4;
    table->connect = sim_connect;
    table->shutdown = sim_shutdown;
    table->getsockopt = sim_getsockopt;
    table->setsockopt = sim_setsockopt;
    table->getsockname = sim_getsockname;
    table->getpeername = sim_getpeername;
    table->if_nametoindex = sim_if_nametoindex;
    table->outq = sim_outq;
    table->recv = sim_recv;
    table->recvmsg = sim_recvmsg;
    table->recvmmsg = sim_recvmmsg;
    table->send = sim_send;
    table->sendmsg = sim_sendmsg;
    table->sendmmsg = sim_sendmmsg;
    table->sendfile = sim_sendfile;
    table->read = sim_read;
    table->write = sim_write;
    table->epoll_create1 = sim_epoll_create1;
    table->epoll_ctl = sim_epoll_ctl;
    table->ppoll = sim_ppoll;
    table->eventfd = sim_eventfd;
    table->signalfd = weir__sim_signal_file;
    table->fcntl = sim_fcntl;
    table->close = sim_close;
    table->fchmod = weir__sim_path_fchmod;
    table->chmod = weir__sim_path_chmod;
    table->lstat = weir__sim_path_lstat;
    table->rename = weir__sim_path_rename;
    table->link = weir__sim_path_link;
    table->unlink = weir__sim_path_unlink;
    table->fork = no_fork;
    table->waitid = weir__sim_waitid;
    table->pidfd_open = weir__sim_pidfd_open;
    table->pidfd_send_signal = weir__sim_pidfd_send_signal;
}
