/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TCP.
 *
 * A connection has two directions. A direction is one buffer of bytes with four positions:
 *
 *      read  <=  arrived  <=  sent  <=  written
 *
 * [read, arrived) is in the receive buffer of one end, [arrived, written) in the send buffer of the
 * other, of which [arrived, sent) is one segment under way: an event, at whose time it arrives. Its
 * size and its time are drawn from the seed. The next segment follows when the receiver has room.
 * The end of the stream and a reset travel in the same way; a reset overtakes what was not sent.
 *
 * If the hosts are separated when a segment should arrive, it is sent again, after 200 ms, then
 * 400 ms and so on, until the connection times out.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "sim/network.h"

#define RETRY_NS weir_ms(200)
#define RETRY_MAX_NS weir_seconds(60)
#define TIMEOUT_NS weir_seconds(900)
#define SYN_RETRY_NS weir_seconds(1)
#define SYN_TRIES 6

struct tcp;

struct direction {
    uint8_t *bytes; /* a ring */
    size_t size;    /* a power of two; 0 = none yet */
    uint64_t read, arrived, sent, written;
    int64_t written_ns; /* the last write */
    bool end_written, end_sent, end_arrived;
    bool is_reset;          /* nothing more is sent */
    bool reader_has_closed; /* what arrives is answered by a reset */
    weir__sim_event segment;
    weir__sim_event reset;
    int64_t retry_ns;
    int64_t stuck_since_ns; /* 0: what was sent last has arrived */
    struct connection *connection;
};

enum {
    CONNECTING,
    ESTABLISHED,
    FAILED,
};

struct connection {
    weir__list link;
    uint64_t number;
    struct direction directions[2]; /* [i]: what end i writes */
    struct tcp *ends[2];            /* NULL: closed */
    weir_sim_host *hosts[2];
    weir_address addresses[2];
    weir__sim_event handshake;
    uint8_t state;
    unsigned tries;
};

struct tcp {
    weir__sim_socket base;
    struct connection *connection; /* NULL before connect, and of listeners */
    unsigned end;                  /* which of the two */
    bool is_connecting, is_connected, input_shut, output_shut;
    bool error_reported;

    /* Of listeners. */
    weir__list backlog; /* connections, by accept_link of their sockets */
    weir__list accept_link;
    struct tcp *listener;
    unsigned waiting, max_waiting;
};

static weir__list connections;
static uint64_t next_connection;

static const weir__sim_socket_type tcp_type;

static struct direction *output_of(struct tcp *self)
{
    return &self->connection->directions[self->end];
}

static struct direction *input_of(struct tcp *self)
{
    return &self->connection->directions[1 - self->end];
}

static struct tcp *reader_of(struct direction *direction)
{
    struct connection *connection = direction->connection;

    return connection->ends[direction == &connection->directions[0] ? 1 : 0];
}

static struct tcp *writer_of(struct direction *direction)
{
    struct connection *connection = direction->connection;

    return connection->ends[direction == &connection->directions[0] ? 0 : 1];
}

static unsigned index_of(const struct direction *direction)
{
    return direction == &direction->connection->directions[0] ? 0 : 1;
}

static void changed(struct tcp *end)
{
    if (end != NULL)
        weir__sim_file_changed(&end->base.file);
}

/* ---- the buffer of a direction ---- */

static void grow(struct direction *direction, size_t needed)
{
    size_t size = direction->size > 0 ? direction->size : 2048;
    uint8_t *bytes;

    while (size < needed)
        size *= 2;
    bytes = malloc(size);
    if (bytes == NULL)
        abort();
    for (uint64_t at = direction->read; at < direction->written; at++)
        bytes[at & (size - 1)] = direction->bytes[at & (direction->size - 1)];
    free(direction->bytes);
    direction->bytes = bytes;
    direction->size = size;
}

static void put_bytes(struct direction *direction, const struct msghdr *message, size_t length)
{
    size_t at, first;

    if (direction->written - direction->read + length > direction->size)
        grow(direction, (size_t)(direction->written - direction->read) + length);
    at = (size_t)direction->written & (direction->size - 1);
    first = direction->size - at < length ? direction->size - at : length;
    (void)weir__sim_copy_in(direction->bytes + at, first, message, 0);
    (void)weir__sim_copy_in(direction->bytes, length - first, message, first);
    direction->written += length;
}

static void get_bytes(const struct direction *direction, struct msghdr *message, size_t length)
{
    size_t at = (size_t)direction->read & (direction->size - 1);
    size_t first = direction->size - at < length ? direction->size - at : length;

    (void)weir__sim_copy_out(message, 0, direction->bytes + at, first);
    (void)weir__sim_copy_out(message, first, direction->bytes, length - first);
}

/* ---- the end of a connection ---- */

static void free_if_unused(struct connection *connection)
{
    if (connection->ends[0] != NULL || connection->ends[1] != NULL)
        return;
    for (unsigned i = 0; i < 2; i++) {
        struct direction *direction = &connection->directions[i];

        if (direction->segment.slot != 0 || direction->reset.slot != 0)
            return; /* something is still under way */
    }
    if (connection->handshake.slot != 0)
        return;
    weir__list_remove(&connection->link);
    free(connection->directions[0].bytes);
    free(connection->directions[1].bytes);
    free(connection);
}

/* One end of the connection fails: what it has received before can still be read. */
static void fail_end(struct connection *connection, unsigned end, int err)
{
    struct tcp *socket = connection->ends[end];
    struct direction *output = &connection->directions[end];

    output->is_reset = true;
    weir__sim_event_remove(&output->segment);
    if (socket == NULL)
        return;
    if (socket->base.error == 0 && !socket->error_reported)
        socket->base.error = err;
    socket->is_connecting = false;
    changed(socket);
}

static void on_reset(weir__sim_event *event)
{
    struct direction *direction = WEIR_CONTAINER_OF(event, struct direction, reset);
    struct connection *connection = direction->connection;
    unsigned from = index_of(direction);

    if (weir__sim_is_separated(connection->hosts[0], connection->hosts[1])) {
        /* The reset is lost. The other end finds out when it sends. */
        free_if_unused(connection);
        return;
    }
    weir__sim_trace("reset", connection->number, 1 - from);
    weir__sim_event_remove(&direction->segment);
    direction->end_arrived = true;
    fail_end(connection, 1 - from, ECONNRESET);
    free_if_unused(connection);
}

/* Sends a reset to the other end. */
static void send_reset(struct direction *direction)
{
    struct connection *connection = direction->connection;
    unsigned from = index_of(direction);

    direction->is_reset = true;
    weir__sim_event_remove(&direction->segment);
    weir__sim_event_add(&direction->reset,
                        weir__sim_arrival(connection->hosts[from], connection->hosts[1 - from], 0),
                        on_reset);
}

/* ---- segments ---- */

static weir__sim_event_fn on_segment;

static size_t room_of(const struct direction *direction, const struct tcp *reader)
{
    size_t used = (size_t)(direction->arrived - direction->read);
    size_t size = reader != NULL ? reader->base.receive_buffer : SIZE_MAX;

    return size > used ? size - used : 0;
}

/* Sends the next segment, unless one is under way. */
static void transmit(struct direction *direction)
{
    struct connection *connection = direction->connection;
    unsigned from = index_of(direction);
    weir_sim_host *a = connection->hosts[from], *b = connection->hosts[1 - from];
    const weir_sim_network *network = weir__sim_network(a, b);
    size_t left = (size_t)(direction->written - direction->sent), length;
    int64_t arrival_ns;

    if (direction->segment.slot != 0 || direction->is_reset || connection->state != ESTABLISHED)
        return;
    length = room_of(direction, reader_of(direction));
    length = left < length ? left : length;
    if (length > network->max_segment)
        length = network->max_segment;
    if (length > 1 && weir__sim_below(4) == 0)
        length = 1 + (size_t)weir__sim_below(length);
    if (length == 0 && (left > 0 || !direction->end_written || direction->end_sent))
        return;
    direction->sent += length;
    if (length == left && direction->end_written && (length == 0 || weir__sim_below(2) == 0))
        direction->end_sent = true;
    arrival_ns = weir__sim_arrival(a, b, length);
    if (direction->written_ns + network->latency_ns < weir__sim->now_ns) /* right behind the last */
        arrival_ns = weir__sim->now_ns + 1000 + (int64_t)length * 1000000000 / network->bandwidth;
    weir__sim_event_add(&direction->segment, arrival_ns, on_segment);
}

static void retry(struct direction *direction)
{
    struct connection *connection = direction->connection;
    unsigned from = index_of(direction);
    const struct tcp *writer = writer_of(direction);
    int64_t limit_ns = writer != NULL && writer->base.user_timeout_ns > 0
                           ? writer->base.user_timeout_ns
                           : TIMEOUT_NS;

    if (direction->stuck_since_ns == 0)
        direction->stuck_since_ns = weir__sim->now_ns;
    if (weir__sim->now_ns - direction->stuck_since_ns > limit_ns) {
        fail_end(connection, from, ETIMEDOUT);
        free_if_unused(connection);
        return;
    }
    direction->retry_ns = direction->retry_ns == 0 ? RETRY_NS : direction->retry_ns * 2;
    if (direction->retry_ns > RETRY_MAX_NS)
        direction->retry_ns = RETRY_MAX_NS;
    weir__sim_event_add(&direction->segment, weir__sim->now_ns + direction->retry_ns, on_segment);
}

static void on_segment(weir__sim_event *event)
{
    struct direction *direction = WEIR_CONTAINER_OF(event, struct direction, segment);
    struct connection *connection = direction->connection;
    struct tcp *reader = reader_of(direction);

    if (weir__sim_is_separated(connection->hosts[0], connection->hosts[1])) {
        retry(direction);
        return;
    }
    direction->retry_ns = 0;
    direction->stuck_since_ns = 0;
    weir__sim_trace("arrive", connection->number * 2 + index_of(direction),
                    direction->sent - direction->arrived);
    if (reader == NULL && direction->sent > direction->arrived) {
        /* Nobody will read it: the writer learns that by a reset. */
        direction->arrived = direction->sent;
        direction->read = direction->arrived;
        send_reset(&connection->directions[1 - index_of(direction)]);
        return;
    }
    direction->arrived = direction->sent;
    if (direction->end_sent)
        direction->end_arrived = true;
    changed(reader);
    changed(writer_of(direction));
    transmit(direction);
    free_if_unused(connection);
}

/* ---- connecting ---- */

static weir__sim_event_fn on_syn, on_syn_answer;

static struct tcp *create_socket(int domain)
{
    struct tcp *self = calloc(1, sizeof(*self));

    if (self == NULL)
        return NULL;
    weir__sim_socket_init(&self->base, domain, SOCK_STREAM);
    weir__list_init(&self->backlog);
    weir__list_init(&self->accept_link);
    return self;
}

/* The server's end of a connection, which waits to be accepted. */
static bool add_to_backlog(struct tcp *listener, struct connection *connection)
{
    struct tcp *child = create_socket(listener->base.domain);

    if (child == NULL)
        return false;
    child->base.host = listener->base.host;
    child->base.file.type = &tcp_type.file;
    child->base.local = connection->addresses[1];
    child->base.peer = connection->addresses[0];
    child->base.user_timeout_ns = listener->base.user_timeout_ns;
    child->connection = connection;
    child->end = 1;
    child->is_connected = true;
    child->listener = listener;
    connection->ends[1] = child;
    weir__list_append(&listener->backlog, &child->accept_link);
    listener->waiting++;
    return true;
}

static void answer_syn(struct connection *connection, int err)
{
    if (connection->ends[0] != NULL)
        connection->ends[0]->base.error = -err; /* until the answer has arrived */
    connection->state = err == 0 ? CONNECTING : FAILED;
    weir__sim_event_add(&connection->handshake,
                        weir__sim_arrival(connection->hosts[1], connection->hosts[0], 0),
                        on_syn_answer);
}

static void on_syn(weir__sim_event *event)
{
    struct connection *connection = WEIR_CONTAINER_OF(event, struct connection, handshake);
    struct tcp *listener;

    if (connection->ends[0] == NULL) { /* given up */
        free_if_unused(connection);
        return;
    }
    listener = (struct tcp *)weir__sim_find_bound(connection->hosts[1], &connection->addresses[1],
                                                  SOCK_STREAM, &connection->addresses[0]);
    if (weir__sim_is_separated(connection->hosts[0], connection->hosts[1]) ||
        (listener != NULL && listener->waiting >= listener->max_waiting)) {
        if (++connection->tries >= SYN_TRIES) {
            connection->state = FAILED;
            fail_end(connection, 0, ETIMEDOUT);
            return;
        }
        weir__sim_event_add(&connection->handshake,
                            weir__sim->now_ns + (SYN_RETRY_NS << connection->tries), on_syn);
        return;
    }
    weir__sim_trace("syn", connection->number, listener != NULL);
    if (listener == NULL || !add_to_backlog(listener, connection)) {
        answer_syn(connection, -ECONNREFUSED);
        return;
    }
    answer_syn(connection, 0);
}

static void on_syn_answer(weir__sim_event *event)
{
    struct connection *connection = WEIR_CONTAINER_OF(event, struct connection, handshake);
    struct tcp *client = connection->ends[0], *server = connection->ends[1];

    if (weir__sim_is_separated(connection->hosts[0], connection->hosts[1]) && client != NULL) {
        weir__sim_event_add(event, weir__sim->now_ns + SYN_RETRY_NS, on_syn_answer);
        return;
    }
    if (connection->state == FAILED) {
        if (client != NULL) {
            client->is_connecting = false;
            changed(client);
        }
        free_if_unused(connection);
        return;
    }
    connection->state = ESTABLISHED;
    weir__sim_trace("established", connection->number, client != NULL);
    if (client != NULL) {
        client->is_connecting = false;
        client->is_connected = true;
        changed(client);
    } else {
        send_reset(&connection->directions[0]);
    }
    if (server != NULL && server->listener != NULL)
        changed(server->listener);
    transmit(&connection->directions[0]);
    transmit(&connection->directions[1]);
    free_if_unused(connection);
}

static int tcp_connect(weir__sim_socket *socket, const struct sockaddr *address, socklen_t length)
{
    struct tcp *self = (struct tcp *)socket;
    struct connection *connection;
    weir_address to;
    int err;

    if (self->is_connecting)
        return -EALREADY;
    if (self->connection != NULL)
        return -EISCONN;
    err = weir_address_from_sockaddr(address, length, &to);
    if (err == 0 && weir_address_family(&to) != socket->domain)
        err = -EAFNOSUPPORT;
    if (err == 0)
        err = weir__sim_bind_ephemeral(socket, &to);
    if (err < 0)
        return err;
    connection = calloc(1, sizeof(*connection));
    if (connection == NULL)
        return -ENOBUFS;
    connection->number = ++next_connection;
    connection->directions[0].connection = connection;
    connection->directions[1].connection = connection;
    connection->hosts[0] = socket->host;
    connection->hosts[1] = weir__sim_host_of(socket->host, &to);
    connection->addresses[0] = socket->local;
    connection->addresses[1] = to;
    connection->ends[0] = self;
    connection->state = CONNECTING;
    weir__list_append(&connections, &connection->link);
    self->connection = connection;
    self->is_connecting = true;
    socket->peer = to;
    weir__sim_trace("connect", connection->number, weir_address_port(&to));
    if (connection->hosts[1] == NULL) {
        connection->hosts[1] = weir__sim->world_host;
        answer_syn(connection, -EHOSTUNREACH);
    } else {
        weir__sim_event_add(&connection->handshake,
                            weir__sim_arrival(socket->host, connection->hosts[1], 0), on_syn);
    }
    return -EINPROGRESS;
}

/* ---- listening ---- */

static int tcp_bind(weir__sim_socket *socket, const struct sockaddr *address, socklen_t length)
{
    return weir__sim_bind(socket, address, length);
}

static int tcp_listen(weir__sim_socket *socket, int backlog)
{
    struct tcp *self = (struct tcp *)socket;
    unsigned max = weir__sim->options.network.backlog;

    if (!socket->is_bound)
        return -EINVAL;
    weir_list_foreach (link, &socket->host->sockets) {
        const weir__sim_socket *other = WEIR_CONTAINER_OF(link, weir__sim_socket, bound_link);

        if (other != socket && other->is_listening && other->kind == SOCK_STREAM &&
            weir_address_equal(&other->local, &socket->local) &&
            !(other->reuse_port && socket->reuse_port))
            return -EADDRINUSE;
    }
    socket->is_listening = true;
    self->max_waiting = backlog < 1 ? 1 : (unsigned)backlog < max ? (unsigned)backlog : max;
    return 0;
}

/* A connection whose handshake is complete. */
static struct tcp *first_acceptable(struct tcp *self)
{
    weir_list_foreach (link, &self->backlog) {
        struct tcp *child = WEIR_CONTAINER_OF(link, struct tcp, accept_link);

        if (child->connection->state == ESTABLISHED)
            return child;
    }
    return NULL;
}

static weir__sim_socket *tcp_accept(weir__sim_socket *socket, bool take)
{
    struct tcp *self = (struct tcp *)socket, *child = first_acceptable(self);

    if (child == NULL || !take)
        return child != NULL ? &child->base : NULL;
    weir__list_remove(&child->accept_link);
    child->listener = NULL;
    self->waiting--;
    weir__sim_trace("accept", child->connection->number, 0);
    return &child->base;
}

/* ---- reading and writing ---- */

static int take_error(struct tcp *self)
{
    int err = self->base.error;

    self->base.error = 0;
    self->error_reported = true;
    return -err;
}

static ssize_t tcp_receive(weir__sim_socket *socket, struct msghdr *message, int flags)
{
    struct tcp *self = (struct tcp *)socket;
    struct direction *input;
    size_t wanted = weir__sim_message_size(message), length;

    if ((flags & MSG_ERRQUEUE) != 0)
        return -EAGAIN;
    if (!self->is_connected)
        return socket->error != 0 && !self->is_connecting ? take_error(self) : -ENOTCONN;
    input = input_of(self);
    length = (size_t)(input->arrived - input->read);
    if (length == 0) {
        if (socket->error != 0)
            return take_error(self);
        if (input->end_arrived || self->input_shut || output_of(self)->is_reset)
            return 0;
        return -EAGAIN;
    }
    length = length < wanted ? length : wanted;
    if (length > 1 && weir__sim_fault(WEIR_SIM_FAULT_SHORT_READ))
        length = 1 + (size_t)weir__sim_below(length - 1);
    get_bytes(input, message, length);
    if ((flags & MSG_PEEK) == 0) {
        input->read += length;
        weir__sim_trace("receive", self->connection->number * 2 + self->end, length);
        transmit(input);
    }
    return (ssize_t)length;
}

static size_t send_room(struct tcp *self)
{
    const struct direction *output = output_of(self);
    size_t used = (size_t)(output->written - output->arrived);

    return used < self->base.send_buffer ? self->base.send_buffer - used : 0;
}

static ssize_t tcp_send(weir__sim_socket *socket, const struct msghdr *message, int flags)
{
    struct tcp *self = (struct tcp *)socket;
    size_t length = weir__sim_message_size(message), room;
    struct direction *output;

    (void)flags;
    if (socket->error != 0 && !self->is_connecting)
        return take_error(self);
    if (!self->is_connected)
        return self->is_connecting ? -EAGAIN : -EPIPE;
    output = output_of(self);
    if (self->output_shut || output->is_reset)
        return -EPIPE;
    if (weir__sim_fault(WEIR_SIM_FAULT_NO_BUFFERS))
        return -ENOBUFS;
    room = send_room(self);
    if (room == 0)
        return -EAGAIN;
    length = length < room ? length : room;
    if (length > 1 && weir__sim_fault(WEIR_SIM_FAULT_SHORT_WRITE))
        length = 1 + (size_t)weir__sim_below(length - 1);
    put_bytes(output, message, length);
    output->written_ns = weir__sim->now_ns;
    weir__sim_trace("send", self->connection->number * 2 + self->end, length);
    transmit(output);
    return (ssize_t)length;
}

static int tcp_shutdown(weir__sim_socket *socket, int how)
{
    struct tcp *self = (struct tcp *)socket;

    if (!self->is_connected || output_of(self)->is_reset)
        return -ENOTCONN;
    if (how != SHUT_WR)
        self->input_shut = true;
    if (how != SHUT_RD && !self->output_shut) {
        self->output_shut = true;
        output_of(self)->end_written = true;
        weir__sim_trace("shutdown", self->connection->number * 2 + self->end, 0);
        transmit(output_of(self));
    }
    changed(self);
    return 0;
}

static int tcp_outq(weir__sim_socket *socket)
{
    struct tcp *self = (struct tcp *)socket;
    const struct direction *output;

    if (self->connection == NULL)
        return 0;
    output = output_of(self);
    if (output->is_reset)
        return 0;
    return (int)(output->written - output->arrived) +
           (output->end_written && !output->end_arrived ? 1 : 0);
}

static unsigned tcp_poll(weir__sim_file *file)
{
    struct tcp *self = (struct tcp *)file;
    const struct direction *input, *output;
    unsigned events = 0;

    if (file->is_dead)
        return POLLIN | POLLOUT | POLLERR | POLLHUP | POLLRDHUP;
    if (self->base.is_listening)
        return first_acceptable(self) != NULL ? POLLIN : 0;
    if (self->is_connecting)
        return 0;
    if (!self->is_connected)
        return self->base.error != 0 ? POLLIN | POLLOUT | POLLERR | POLLHUP : POLLOUT | POLLHUP;
    input = input_of(self);
    output = output_of(self);
    if (self->base.error != 0)
        events |= POLLERR | POLLIN | POLLOUT;
    if (output->is_reset)
        events |= POLLHUP | POLLIN | POLLOUT | POLLRDHUP;
    if (input->arrived > input->read || input->end_arrived || self->input_shut)
        events |= POLLIN;
    if (input->end_arrived || self->input_shut)
        events |= POLLRDHUP;
    if (input->end_arrived && self->output_shut)
        events |= POLLHUP;
    if (!self->output_shut && send_room(self) * 3 >= self->base.send_buffer)
        events |= POLLOUT;
    return events;
}

/* ---- closing ---- */

/* As the kernel does: unread data, or a linger of 0, makes it a reset. */
static void leave_connection(struct tcp *self)
{
    struct connection *connection = self->connection;
    struct direction *output, *input;

    if (connection == NULL)
        return;
    output = output_of(self);
    input = input_of(self);
    connection->ends[self->end] = NULL;
    self->connection = NULL;
    input->reader_has_closed = true;
    if (connection->state == ESTABLISHED && !output->is_reset) {
        if (input->arrived > input->read || self->base.lingers) {
            send_reset(output);
        } else {
            output->end_written = true;
            transmit(output);
        }
    } else if (connection->state != ESTABLISHED && self->end == 0 && connection->ends[1] == NULL) {
        weir__sim_event_remove(&connection->handshake);
    }
    free_if_unused(connection);
}

static void close_listener(struct tcp *self)
{
    weir__list *link;

    self->base.is_listening = false;
    while ((link = weir__list_pop(&self->backlog)) != NULL) {
        struct tcp *child = WEIR_CONTAINER_OF(link, struct tcp, accept_link);

        child->base.lingers = true;
        if (child->connection->state != ESTABLISHED) {
            struct connection *connection = child->connection;

            connection->ends[1] = NULL;
            weir__sim_event_remove(&connection->handshake);
            answer_syn(connection, -ECONNREFUSED);
        } else {
            leave_connection(child);
        }
        free(child);
    }
    self->waiting = 0;
}

static void tcp_kill(weir__sim_file *file)
{
    struct tcp *self = (struct tcp *)file;

    close_listener(self);
    leave_connection(self);
    self->is_connecting = false;
    self->is_connected = false;
    self->base.error = ECONNRESET;
    weir__sim_unbind(&self->base);
}

static void tcp_close(weir__sim_file *file)
{
    struct tcp *self = (struct tcp *)file;

    weir__sim_trace("close", file->number, 0);
    close_listener(self);
    leave_connection(self);
    weir__sim_unbind(&self->base);
    free(self);
}

static const weir__sim_socket_type tcp_type = {
    .file = {.name = "tcp", .poll = tcp_poll, .close = tcp_close, .kill = tcp_kill},
    .bind = tcp_bind,
    .listen = tcp_listen,
    .accept = tcp_accept,
    .connect = tcp_connect,
    .shutdown = tcp_shutdown,
    .send = tcp_send,
    .receive = tcp_receive,
    .outq = tcp_outq,
};

int weir__sim_tcp_socket(int domain)
{
    struct tcp *self = create_socket(domain);
    int descriptor =
        self != NULL ? weir__sim_file_open(&self->base.file, &tcp_type.file) : -ENOBUFS;

    if (descriptor < 0)
        free(self);
    return descriptor;
}

/* ---- the world ---- */

void weir__sim_tcp_begin(void)
{
    weir__list_init(&connections);
    next_connection = 0;
}

void weir__sim_tcp_end(void)
{
    weir__list *link;

    while ((link = weir__list_pop(&connections)) != NULL) {
        struct connection *connection = WEIR_CONTAINER_OF(link, struct connection, link);

        for (unsigned i = 0; i < 2; i++) {
            weir__sim_event_remove(&connection->directions[i].segment);
            weir__sim_event_remove(&connection->directions[i].reset);
            free(connection->directions[i].bytes);
        }
        weir__sim_event_remove(&connection->handshake);
        free(connection);
    }
}

void weir__sim_tcp_reset_one(void)
{
    struct connection *found = NULL;
    uint64_t count = 0;

    weir_list_foreach (link, &connections) {
        struct connection *connection = WEIR_CONTAINER_OF(link, struct connection, link);

        if (connection->state == ESTABLISHED && connection->ends[0] != NULL &&
            connection->ends[1] != NULL && weir__sim_below(++count) == 0)
            found = connection;
    }
    if (found == NULL)
        return;
    weir__sim_trace("reset by the network", found->number, 0);
    fail_end(found, 0, ECONNRESET);
    fail_end(found, 1, ECONNRESET);
    found->directions[0].end_arrived = true;
    found->directions[1].end_arrived = true;
}
