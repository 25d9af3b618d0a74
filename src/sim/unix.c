/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unix sockets: streams, packets and datagrams between processes of one host. What is sent is at
 * the receiver at once, as in the kernel: there is neither latency nor loss. It counts against the
 * send buffer of the sender until it is read.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "sim/network.h"
#include "sim/packet.h"
#include "sim/unix_path.h"

#define PATH_OFFSET offsetof(struct sockaddr_un, sun_path)
#define PATH_MAX_LENGTH sizeof(((struct sockaddr_un *)NULL)->sun_path)
#define QUEUE_MAX 10 /* net.unix.max_dgram_qlen */
#define OVERHEAD 256 /* of a packet in a buffer, beside its bytes */
#define MARGIN 32    /* of the send buffer that a packet cannot use */

/* Descriptors passed with the bytes of a stream from `position` to `end`. */
struct mark {
    weir__list link;
    uint64_t position, end;
    weir__sim_passed *passed;
};

struct local {
    weir__sim_socket base;
    weir__list link;        /* of all Unix sockets */
    weir__sim_inode *inode; /* if it is bound to a path */
    struct local *peer;     /* NULL: not connected, or closed */
    bool was_connected;     /* a stream; the peer may have closed */
    bool peer_is_gone;      /* a datagram socket whose peer has closed: the next send reports it */
    bool input_shut, output_shut;

    /* Received so far. */
    weir__sim_stream input;
    weir__list marks;
    weir__list packets;
    unsigned packet_count;

    size_t sending_size; /* what others have received from it as packets and not read yet */

    /* Of listeners. */
    weir__list backlog;
    weir__list accept_link;
    struct local *listener;
    unsigned waiting, max_waiting;
};

static weir__list sockets;
static unsigned next_name;

static const weir__sim_socket_type type;

static struct local *local_of(weir__sim_socket *socket)
{
    return (struct local *)socket;
}

static void woken(struct local *self, unsigned events)
{
    if (self != NULL)
        weir__sim_file_woken(&self->base.file, events);
}

static void changed(struct local *self)
{
    woken(self, 0);
}

static bool is_datagram(const struct local *self)
{
    return self->base.kind == SOCK_DGRAM;
}

static struct local *create_socket(int kind)
{
    struct local *self = calloc(1, sizeof(*self));

    if (self == NULL)
        return NULL;
    weir__sim_socket_init(&self->base, AF_UNIX, kind);
    weir__list_init(&self->marks);
    weir__list_init(&self->packets);
    weir__list_init(&self->backlog);
    weir__list_init(&self->accept_link);
    weir__list_append(&sockets, &self->link);
    return self;
}

static struct ucred own_credentials(void)
{
    return (struct ucred){.pid = weir__sim_pid(weir__sim_process()), .uid = 1000, .gid = 1000};
}

/* ---- names ---- */

/* The path of an address, with a terminating 0; "" for an abstract name. Fails with -EINVAL. */
static int read_path(const struct sockaddr *address, socklen_t length,
                     char ret_path[PATH_MAX_LENGTH + 1])
{
    const struct sockaddr_un *un = (const struct sockaddr_un *)(const void *)address;
    size_t size = length > PATH_OFFSET ? length - PATH_OFFSET : 0;

    if (length < sizeof(sa_family_t) || address->sa_family != AF_UNIX || size > PATH_MAX_LENGTH)
        return -EINVAL;
    if (size > 0)
        memcpy(ret_path, un->sun_path, size);
    ret_path[size] = '\0';
    return 0;
}

static struct local *find_abstract(const weir_sim_host *host, const weir_address *name)
{
    weir_list_foreach (link, &sockets) {
        struct local *other = WEIR_CONTAINER_OF(link, struct local, link);

        if (other->base.host == host && other->base.is_bound && other->inode == NULL &&
            other->base.local.length == name->length &&
            memcmp(&other->base.local.storage, &name->storage, name->length) == 0)
            return other;
    }
    return NULL;
}

/* A name that the kernel chooses: five digits. */
static void choose_name(struct local *self)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    weir_address *local = &self->base.local;

    local->length = PATH_OFFSET + 6;
    do {
        (void)snprintf(un.sun_path + 1, 6, "%05x", ++next_name & 0xfffff);
        memcpy(&local->storage, &un, local->length);
    } while (find_abstract(self->base.host, local) != NULL);
}

static int bind_abstract(struct local *self, const struct sockaddr *address, socklen_t length)
{
    weir_address name = {.length = length};

    memcpy(&name.storage, address, length);
    if (length == sizeof(sa_family_t))
        choose_name(self);
    else if (find_abstract(self->base.host, &name) != NULL)
        return -EADDRINUSE;
    else
        self->base.local = name;
    return 0;
}

static int bind_path(struct local *self, const char *path)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    int err = weir__sim_path_bind(path, &self->base, &self->inode);

    if (err < 0)
        return err;
    memcpy(un.sun_path, path, strlen(path));
    self->base.local.length = (socklen_t)(PATH_OFFSET + strlen(path) + 1);
    if (self->base.local.length > sizeof(un))
        self->base.local.length = sizeof(un);
    memcpy(&self->base.local.storage, &un, sizeof(un));
    return 0;
}

static int local_bind(weir__sim_socket *socket, const struct sockaddr *address, socklen_t length)
{
    struct local *self = local_of(socket);
    char path[PATH_MAX_LENGTH + 1];
    int err = read_path(address, length, path);

    if (err < 0 || socket->is_bound)
        return -EINVAL;
    err = path[0] != '\0' ? bind_path(self, path) : bind_abstract(self, address, length);
    socket->is_bound = err == 0; /* not in the host's list, which is for ports */
    return err;
}

/* The socket of a name. Fails with -ENOENT, -ECONNREFUSED, -EPROTOTYPE, -EINVAL. */
static int find_socket(const struct local *self, const struct sockaddr *address, socklen_t length,
                       struct local **ret_socket)
{
    char path[PATH_MAX_LENGTH + 1];
    weir_address name = {.length = length};
    const weir__sim_inode *inode = NULL;
    struct local *found;
    int err = read_path(address, length, path);

    if (err < 0 || length == sizeof(sa_family_t))
        return -EINVAL;
    memcpy(&name.storage, address, length);
    if (path[0] != '\0') {
        inode = weir__sim_path_find(self->base.host, path);
        if (inode == NULL)
            return -ENOENT;
        found = inode->socket != NULL ? local_of(inode->socket) : NULL;
    } else {
        found = find_abstract(self->base.host, &name);
    }
    if (found == NULL)
        return -ECONNREFUSED;
    if (found->base.kind != self->base.kind)
        return -EPROTOTYPE;
    *ret_socket = found;
    return 0;
}

/* ---- connections ---- */

static int local_listen(weir__sim_socket *socket, int backlog)
{
    struct local *self = local_of(socket);
    unsigned max = weir__sim->options.network.backlog;

    if (is_datagram(self))
        return -EOPNOTSUPP;
    if (!socket->is_bound || self->was_connected)
        return -EINVAL;
    socket->is_listening = true;
    socket->peer_credentials = own_credentials();
    self->max_waiting = (unsigned)backlog < max ? (unsigned)backlog : max;
    return 0;
}

/* The server's end, which waits to be accepted. */
static struct local *add_to_backlog(struct local *listener, struct local *client)
{
    struct local *child = create_socket(listener->base.kind);

    if (child == NULL)
        return NULL;
    child->base.file.type = &type.file;
    child->base.host = listener->base.host;
    child->base.local = listener->base.local;
    child->base.peer = client->base.local;
    child->base.has_peer = true;
    child->base.peer_credentials = own_credentials();
    child->was_connected = true;
    child->peer = client;
    child->listener = listener;
    weir__list_append(&listener->backlog, &child->accept_link);
    listener->waiting++;
    return child;
}

static int connect_stream(struct local *self, struct local *listener)
{
    if (self->base.is_listening)
        return -EINVAL;
    if (self->was_connected)
        return -EISCONN;
    if (!listener->base.is_listening || listener->input_shut)
        return -ECONNREFUSED;
    if (listener->waiting > listener->max_waiting)
        return -EAGAIN;
    self->peer = add_to_backlog(listener, self);
    if (self->peer == NULL)
        return -ENOMEM;
    self->was_connected = true;
    self->base.peer_credentials = listener->base.peer_credentials;
    weir__sim_trace("connect", self->base.file.number, listener->base.file.number);
    changed(listener);
    changed(self);
    return 0;
}

/* A socket that is connected receives from its peer alone. */
static bool may_send(const struct local *self, const struct local *to)
{
    return to->peer == NULL || to->peer == self;
}

static int connect_datagrams(struct local *self, struct local *to)
{
    if (!may_send(self, to))
        return -EPERM;
    self->peer = to;
    self->peer_is_gone = false;
    weir__sim_trace("connect", self->base.file.number, to->base.file.number);
    changed(self);
    return 0;
}

static int disconnect(struct local *self)
{
    self->peer = NULL;
    self->peer_is_gone = false;
    self->base.has_peer = false;
    self->base.peer.length = 0;
    return 0;
}

static int local_connect(weir__sim_socket *socket, const struct sockaddr *address, socklen_t length)
{
    struct local *self = local_of(socket), *other;
    int err;

    if (is_datagram(self) && length >= sizeof(sa_family_t) && address->sa_family == AF_UNSPEC)
        return disconnect(self);
    err = find_socket(self, address, length, &other);
    if (err == 0)
        err = is_datagram(self) ? connect_datagrams(self, other) : connect_stream(self, other);
    if (err < 0)
        return err;
    socket->peer = other->base.local;
    socket->has_peer = true;
    return 0;
}

static weir__sim_socket *local_accept(weir__sim_socket *socket, bool take)
{
    struct local *self = local_of(socket), *child;

    if (weir__list_is_empty(&self->backlog))
        return NULL;
    child = WEIR_CONTAINER_OF(self->backlog.next, struct local, accept_link);
    if (!take)
        return &child->base;
    weir__list_remove(&child->accept_link);
    child->listener = NULL;
    self->waiting--;
    weir__sim_trace("accept", child->base.file.number, 0);
    return &child->base;
}

static int local_shutdown(weir__sim_socket *socket, int how)
{
    struct local *self = local_of(socket), *peer = is_datagram(self) ? NULL : self->peer;

    if (how != SHUT_WR) {
        self->input_shut = true;
        if (peer != NULL)
            peer->output_shut = true;
    }
    if (how != SHUT_RD) {
        self->output_shut = true;
        if (peer != NULL)
            peer->input_shut = true;
    }
    weir__sim_trace("shutdown", socket->file.number, (uint64_t)how);
    changed(self);
    changed(peer);
    return 0;
}

/* ---- errors ---- */

static int take_error(struct local *self)
{
    int err = self->base.error;

    self->base.error = 0;
    return -err;
}

/* ---- streams ---- */

static size_t used_of(const struct local *self)
{
    if (self->base.kind == SOCK_STREAM)
        return self->peer != NULL ? weir__sim_stream_length(&self->peer->input) : 0;
    return self->sending_size;
}

static void add_mark(struct local *to, uint64_t position, weir__sim_passed *passed)
{
    struct mark *mark = passed != NULL ? malloc(sizeof(*mark)) : NULL;

    if (mark == NULL) {
        weir__sim_passed_free(passed);
        return;
    }
    *mark = (struct mark){.position = position, .end = to->input.written, .passed = passed};
    weir__list_append(&to->marks, &mark->link);
}

static ssize_t send_stream(struct local *self, const struct msghdr *message,
                           weir__sim_passed *passed)
{
    size_t length = weir__sim_message_size(message), used = used_of(self), room;
    uint64_t position = self->peer->input.written;

    room = used < self->base.send_buffer ? self->base.send_buffer - used : 0;
    if (room == 0)
        return -EAGAIN;
    length = length < room ? length : room;
    if (length > 1 && weir__sim_fault(WEIR_SIM_FAULT_SHORT_WRITE))
        length = 1 + (size_t)weir__sim_below(length - 1);
    weir__sim_stream_write(&self->peer->input, message, length);
    if (length > 0)
        add_mark(self->peer, position, passed);
    else
        weir__sim_passed_free(passed);
    weir__sim_trace("send", self->base.file.number, length);
    woken(self->peer, WEIR__SIM_DATA);
    return (ssize_t)length;
}

static struct mark *first_mark(const struct local *self)
{
    return weir__list_is_empty(&self->marks)
               ? NULL
               : WEIR_CONTAINER_OF(self->marks.next, struct mark, link);
}

static void free_mark(struct mark *mark)
{
    weir__list_remove(&mark->link);
    weir__sim_passed_free(mark->passed);
    free(mark);
}

/* The descriptors that come with the next `length` bytes. */
static void deliver_mark(struct local *self, struct msghdr *message, size_t length, bool is_peek)
{
    struct mark *mark = first_mark(self);

    if (mark == NULL || self->input.read + length <= mark->position) {
        message->msg_controllen = 0;
    } else if (is_peek) {
        if (message->msg_controllen == 0)
            message->msg_flags |= MSG_CTRUNC;
        message->msg_controllen = 0;
    } else {
        weir__sim_passed_deliver(mark->passed, message);
        mark->passed = NULL;
        free_mark(mark);
    }
}

static ssize_t receive_stream(struct local *self, struct msghdr *message, int flags)
{
    size_t wanted = weir__sim_message_size(message);
    size_t length = weir__sim_stream_length(&self->input);
    const struct mark *mark = first_mark(self);
    bool is_peek = (flags & MSG_PEEK) != 0;

    message->msg_namelen = 0;
    if (length == 0) {
        message->msg_controllen = 0;
        if (self->base.error != 0)
            return take_error(self);
        return self->input_shut ? 0 : -EAGAIN;
    }
    length = length < wanted ? length : wanted;
    if (mark != NULL && length > mark->end - self->input.read)
        length = (size_t)(mark->end - self->input.read);
    if (length > 1 && weir__sim_fault(WEIR_SIM_FAULT_SHORT_READ)) {
        length = 1 + (size_t)weir__sim_below(length - 1);
        if (!is_peek)
            weir__sim_file_short_read(&self->base.file);
    }
    deliver_mark(self, message, length, is_peek);
    weir__sim_stream_read(&self->input, message, length, is_peek);
    if (!is_peek) {
        weir__sim_trace("receive", self->base.file.number, length);
        woken(self->peer, POLLOUT);
    }
    return (ssize_t)length;
}

/* ---- packets ---- */

static bool is_full(const struct local *self)
{
    return self->packet_count > QUEUE_MAX;
}

static ssize_t send_packet(struct local *self, struct local *to, const struct msghdr *message,
                           weir__sim_passed *passed)
{
    size_t length = weir__sim_message_size(message);
    weir__sim_packet *packet;

    if (length + MARGIN > self->base.send_buffer)
        return -EMSGSIZE;
    if (self->sending_size >= self->base.send_buffer || (to->peer != self && is_full(to)))
        return -EAGAIN;
    packet = weir__sim_packet_create(message, 0, length);
    if (packet == NULL)
        return -ENOBUFS;
    packet->sender = self;
    packet->passed = passed;
    packet->credentials = own_credentials();
    if (is_datagram(self))
        packet->from = self->base.local;
    self->sending_size += length + OVERHEAD;
    to->packet_count++;
    weir__list_append(&to->packets, &packet->link);
    weir__sim_trace("send packet", self->base.file.number, length);
    woken(to, WEIR__SIM_DATA);
    return (ssize_t)length;
}

static void free_packet(struct local *self, weir__sim_packet *packet)
{
    struct local *sender = packet->sender;

    self->packet_count--;
    if (sender != NULL) {
        sender->sending_size -= packet->length + OVERHEAD;
        woken(sender, POLLOUT);
    }
    weir__sim_packet_free(packet);
}

/* Sockets that are connected to this one can send again. */
static void wake_senders(const struct local *self)
{
    weir_list_foreach (link, &sockets) {
        struct local *other = WEIR_CONTAINER_OF(link, struct local, link);

        if (other->peer == self)
            woken(other, POLLOUT);
    }
}

/* A message without descriptors has the credentials of its sender. */
static void deliver_credentials(const weir__sim_packet *packet, struct msghdr *message, size_t size)
{
    struct cmsghdr *control = message->msg_control;

    if (control == NULL || size < CMSG_SPACE(sizeof(packet->credentials)) ||
        message->msg_controllen > 0)
        return;
    control->cmsg_level = SOL_SOCKET;
    control->cmsg_type = SCM_CREDENTIALS;
    control->cmsg_len = CMSG_LEN(sizeof(packet->credentials));
    memcpy(CMSG_DATA(control), &packet->credentials, sizeof(packet->credentials));
    message->msg_controllen = CMSG_SPACE(sizeof(packet->credentials));
}

static ssize_t receive_packet(struct local *self, struct msghdr *message, int flags)
{
    size_t control_size = message->msg_controllen;
    bool was_full = is_full(self);
    weir__sim_packet *packet;
    ssize_t length;

    if (self->base.error != 0)
        return take_error(self);
    if (weir__list_is_empty(&self->packets)) {
        message->msg_controllen = 0;
        message->msg_namelen = 0;
        return self->input_shut ? 0 : -EAGAIN;
    }
    packet = WEIR_CONTAINER_OF(self->packets.next, weir__sim_packet, link);
    length = weir__sim_packet_receive(packet, message, flags);
    if (self->base.passes_credentials)
        deliver_credentials(packet, message, control_size);
    if ((flags & MSG_PEEK) != 0)
        return length;
    weir__sim_trace("receive packet", self->base.file.number, packet->length);
    free_packet(self, packet);
    if (was_full)
        wake_senders(self);
    return length;
}

/* ---- sending and receiving ---- */

/* Where a message goes. */
static int find_receiver(struct local *self, const struct msghdr *message, struct local **ret_to)
{
    if (is_datagram(self) && message->msg_name != NULL && message->msg_namelen > 0)
        return find_socket(self, message->msg_name, message->msg_namelen, ret_to);
    if (self->peer_is_gone) {
        (void)disconnect(self);
        return -ECONNREFUSED;
    }
    if (self->peer == NULL)
        return self->was_connected ? -EPIPE : -ENOTCONN;
    *ret_to = self->peer;
    return 0;
}

static ssize_t local_send(weir__sim_socket *socket, const struct msghdr *message, int flags)
{
    struct local *self = local_of(socket), *to = NULL;
    weir__sim_passed *passed = NULL;
    ssize_t result;

    (void)flags;
    if (self->output_shut)
        return -EPIPE;
    result = find_receiver(self, message, &to);
    if (result == 0 && is_datagram(self) && !may_send(self, to))
        result = -EPERM;
    if (result == 0 && to->input_shut)
        result = -EPIPE;
    if (result == 0 && weir__sim_fault(WEIR_SIM_FAULT_NO_BUFFERS))
        result = -ENOBUFS;
    if (result == 0)
        result = weir__sim_passed_take(message, &passed);
    if (result < 0)
        return result;
    result = socket->kind == SOCK_STREAM ? send_stream(self, message, passed)
                                         : send_packet(self, to, message, passed);
    if (result < 0)
        weir__sim_passed_free(passed);
    return result;
}

static ssize_t local_receive(weir__sim_socket *socket, struct msghdr *message, int flags)
{
    struct local *self = local_of(socket);

    if (!is_datagram(self) && !self->was_connected)
        return socket->kind == SOCK_STREAM ? -EINVAL : -ENOTCONN;
    return socket->kind == SOCK_STREAM ? receive_stream(self, message, flags)
                                       : receive_packet(self, message, flags);
}

static int local_outq(weir__sim_socket *socket)
{
    return (int)used_of(local_of(socket));
}

/* ---- the file ---- */

static bool is_writable(const struct local *self)
{
    if (used_of(self) * 4 > self->base.send_buffer)
        return false;
    return !is_datagram(self) || self->peer == NULL || self->peer->peer == self ||
           !is_full(self->peer);
}

static unsigned local_poll(weir__sim_file *file)
{
    const struct local *self = (const struct local *)file;
    unsigned events = 0;

    if (self->base.is_listening)
        return weir__list_is_empty(&self->backlog) ? 0 : POLLIN;
    if (self->base.error != 0)
        events |= POLLERR | POLLIN;
    if (self->input_shut)
        events |= POLLIN | POLLRDHUP;
    if ((self->input_shut && self->output_shut) || (!is_datagram(self) && !self->was_connected))
        events |= POLLHUP;
    if (weir__sim_stream_length(&self->input) > 0 || !weir__list_is_empty(&self->packets))
        events |= POLLIN;
    if (is_writable(self))
        events |= POLLOUT;
    return events;
}

/* The end of a connection. Unread data, or a connection that was not accepted, is a reset. */
static void leave_peer(struct local *self, bool is_reset)
{
    struct local *peer = self->peer;

    self->peer = NULL;
    if (peer == NULL || is_datagram(self))
        return;
    peer->peer = NULL;
    peer->input_shut = true;
    peer->output_shut = true;
    if (is_reset || weir__sim_stream_length(&self->input) > 0 ||
        !weir__list_is_empty(&self->packets))
        peer->base.error = ECONNRESET;
    changed(peer);
}

/* Others no longer know this socket. */
static void forget_sender(struct local *self)
{
    weir_list_foreach (link, &sockets) {
        struct local *other = WEIR_CONTAINER_OF(link, struct local, link);

        weir_list_foreach (item, &other->packets) {
            weir__sim_packet *packet = WEIR_CONTAINER_OF(item, weir__sim_packet, link);

            if (packet->sender == self)
                packet->sender = NULL;
        }
        if (is_datagram(other) && other->peer == self) {
            other->peer = NULL;
            other->peer_is_gone = true;
            changed(other);
        }
    }
}

static void leave(struct local *self, bool is_reset)
{
    weir__list *link;

    self->base.is_listening = false;
    while ((link = weir__list_pop(&self->backlog)) != NULL) {
        struct local *child = WEIR_CONTAINER_OF(link, struct local, accept_link);

        leave(child, true);
        free(child);
    }
    self->waiting = 0;
    leave_peer(self, is_reset);
    while (!weir__list_is_empty(&self->packets))
        free_packet(self, WEIR_CONTAINER_OF(self->packets.next, weir__sim_packet, link));
    while (first_mark(self) != NULL)
        free_mark(first_mark(self));
    weir__sim_stream_drop(&self->input);
    weir__list_remove(&self->link);
    forget_sender(self);
    weir__sim_inode_leave(self->inode);
    self->inode = NULL;
    self->base.is_bound = false;
    self->base.has_peer = false;
}

static void local_kill(weir__sim_file *file)
{
    leave((struct local *)file, false);
}

static void local_close(weir__sim_file *file)
{
    weir__sim_trace("close", file->number, 0);
    leave((struct local *)file, false);
    free(file);
}

static const weir__sim_socket_type type = {
    .file = {.name = "unix", .poll = local_poll, .close = local_close, .kill = local_kill},
    .bind = local_bind,
    .listen = local_listen,
    .accept = local_accept,
    .connect = local_connect,
    .shutdown = local_shutdown,
    .send = local_send,
    .receive = local_receive,
    .outq = local_outq,
};

int weir__sim_unix_socket(int kind)
{
    struct local *self;
    int descriptor;

    if (kind != SOCK_STREAM && kind != SOCK_SEQPACKET && kind != SOCK_DGRAM)
        return -ESOCKTNOSUPPORT;
    self = create_socket(kind);
    if (self == NULL)
        return -ENOBUFS;
    descriptor = weir__sim_file_open(&self->base.file, &type.file);
    if (descriptor < 0) {
        weir__list_remove(&self->link);
        free(self);
    }
    return descriptor;
}

void weir__sim_unix_begin(void)
{
    weir__list_init(&sockets);
    next_name = 0;
}
