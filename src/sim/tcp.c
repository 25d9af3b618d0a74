/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TCP.
 *
 * A connection has two directions. A direction is a stream of bytes (stream.h) with four positions:
 *
 *      read  <=  arrived  <=  sent  <=  written
 *
 * [read, arrived) is in the receive buffer of one end, [arrived, written) in the send buffer of the
 * other, of which [arrived, sent) is one segment under way: an event, at whose time it arrives. Its
 * size and its time are drawn from the seed. The next segment follows when the receiver has room.
 * The end of the stream and a reset travel in the same way; a reset overtakes what was not sent.
 *
 * If the hosts are separated when a segment should arrive, it is sent again, after 200 ms, then
 * 400 ms and so on, until the connection times out. A reset is not sent again: if it is lost, the
 * other end learns of it when it sends something. A host that has no such connection any more
 * answers everything by a reset.
 *
 * A connection whose two streams have ended is over: neither end can be reset any more.
 */
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/network.h"
#include "sim/stream.h"

#define RETRY_NS weir_ms(200)
#define RETRY_MAX_NS weir_seconds(60)
#define TIMEOUT_NS weir_seconds(900)
#define SYN_RETRY_NS weir_seconds(1)
#define SYN_TRIES 7 /* the first, and six retries */

struct tcp;

struct direction {
    weir__sim_stream stream;
    uint64_t arrived, sent;
    int64_t written_ns; /* the last write */
    bool end_written, end_sent, end_arrived;
    bool is_reset; /* nothing more is sent */
    weir__sim_event segment;
    weir__sim_event reset;
    bool reset_is_answer; /* to a segment, which will be sent again */
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
    char name[64];                  /* for the trace */
    struct direction directions[2]; /* [i]: what end i writes */
    struct tcp *ends[2];            /* NULL: closed */
    weir_sim_host *hosts[2];
    weir_address addresses[2];
    weir__sim_event handshake;
    int64_t begun_ns;
    int error; /* of the handshake, on its way to the client */
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

/* Both streams have ended. */
static bool is_over(const struct connection *connection)
{
    return connection->directions[0].end_arrived && connection->directions[1].end_arrived;
}

static struct tcp *reader_of(struct direction *direction)
{
    struct connection *connection = direction->connection;

    return connection->ends[direction == &connection->directions[0] ? 1 : 0];
}

static unsigned index_of(const struct direction *direction)
{
    return direction == &direction->connection->directions[0] ? 0 : 1;
}

static void woken(struct tcp *end, unsigned events)
{
    if (end != NULL)
        weir__sim_file_woken(&end->base.file, events);
}

static void changed(struct tcp *end)
{
    woken(end, 0);
}

/* ---- the end of a connection ---- */

/* Something is still under way, or an end is open. */
static bool is_used(const struct connection *connection)
{
    bool is_used = connection->handshake.slot != 0;

    for (unsigned i = 0; i < 2; i++)
        is_used = is_used || connection->ends[i] != NULL ||
                  connection->directions[i].segment.slot != 0 ||
                  connection->directions[i].reset.slot != 0;
    return is_used;
}

static void free_connection(struct connection *connection)
{
    weir__list_remove(&connection->link);
    weir__sim_event_remove(&connection->handshake);
    for (unsigned i = 0; i < 2; i++) {
        weir__sim_event_remove(&connection->directions[i].segment);
        weir__sim_event_remove(&connection->directions[i].reset);
        weir__sim_stream_drop(&connection->directions[i].stream);
    }
    free(connection);
}

static void free_if_unused(struct connection *connection)
{
    if (!is_used(connection))
        free_connection(connection);
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
    socket->base.has_peer = false;
    changed(socket);
}

static weir__sim_event_fn on_reset;
static void transmit(struct direction *direction);

/* Sends a reset to the other end. */
static void send_reset(struct direction *direction, bool is_answer)
{
    struct connection *connection = direction->connection;
    unsigned from = index_of(direction);

    direction->is_reset = true;
    weir__sim_event_remove(&direction->segment);
    if (direction->reset.slot != 0)
        return;
    direction->reset_is_answer = is_answer;
    weir__sim_event_add(&direction->reset,
                        weir__sim_arrival(connection->hosts[from], connection->hosts[1 - from], 0),
                        on_reset);
}

/* A segment that was answered is sent again. Without one, the other end learns nothing until it
 * has something to send. */
static void lose_reset(struct direction *direction)
{
    struct connection *connection = direction->connection;
    unsigned from = index_of(direction);

    weir__sim_trace_named("reset is lost", NULL, connection->name, connection->number, 1 - from);
    if (direction->reset_is_answer && connection->ends[1 - from] != NULL)
        weir__sim_event_add(&direction->reset, weir__sim->now_ns + RETRY_NS, on_reset);
    else
        transmit(&connection->directions[1 - from]);
    free_if_unused(connection);
}

static void on_reset(weir__sim_event *event)
{
    struct direction *direction = WEIR_CONTAINER_OF(event, struct direction, reset);
    struct connection *connection = direction->connection;
    unsigned from = index_of(direction);
    const struct tcp *other = connection->ends[1 - from];
    bool is_half_closed = direction->end_arrived && other != NULL && !other->output_shut;

    if (weir__sim_is_separated(connection->hosts[0], connection->hosts[1])) {
        lose_reset(direction);
        return;
    }
    weir__sim_trace_named("reset", NULL, connection->name, connection->number, 1 - from);
    direction->end_arrived = true;
    fail_end(connection, 1 - from, is_half_closed ? EPIPE : ECONNRESET);
    free_if_unused(connection);
}

/* ---- segments ---- */

static weir__sim_event_fn on_segment;

static size_t room_of(const struct direction *direction, const struct tcp *reader)
{
    size_t used = (size_t)(direction->arrived - direction->stream.read);
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
    size_t left = (size_t)(direction->stream.written - direction->sent), length;
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

/* The time after which an end gives up. */
static int64_t timeout_of(const struct tcp *end, int64_t standard_ns)
{
    return end != NULL && end->base.user_timeout_ns > 0 ? end->base.user_timeout_ns : standard_ns;
}

static void retry(struct direction *direction)
{
    struct connection *connection = direction->connection;
    unsigned from = index_of(direction);
    int64_t limit_ns = timeout_of(connection->ends[from], TIMEOUT_NS), left_ns;

    if (connection->hosts[from]->stops > 0) { /* its timers stand still, too */
        weir__sim_event_add(&direction->segment, weir__sim->now_ns + RETRY_NS, on_segment);
        return;
    }
    if (direction->stuck_since_ns == 0)
        direction->stuck_since_ns = weir__sim->now_ns;
    left_ns = direction->stuck_since_ns + limit_ns - weir__sim->now_ns;
    if (left_ns <= 0) {
        weir__sim_trace_named("timeout", NULL, connection->name, connection->number, from);
        fail_end(connection, from, ETIMEDOUT);
        free_if_unused(connection);
        return;
    }
    direction->retry_ns = direction->retry_ns == 0 ? RETRY_NS : direction->retry_ns * 2;
    if (direction->retry_ns > RETRY_MAX_NS)
        direction->retry_ns = RETRY_MAX_NS;
    weir__sim_event_add(&direction->segment,
                        weir__sim->now_ns +
                            (direction->retry_ns < left_ns ? direction->retry_ns : left_ns),
                        on_segment);
}

/* The receiver has closed the socket, or its kernel has forgotten the connection. */
static bool is_refused(const struct direction *direction)
{
    const struct connection *connection = direction->connection;
    unsigned from = index_of(direction);

    return connection->directions[1 - from].is_reset ||
           (connection->ends[1 - from] == NULL && direction->sent > direction->arrived);
}

static void on_segment(weir__sim_event *event)
{
    struct direction *direction = WEIR_CONTAINER_OF(event, struct direction, segment);
    struct connection *connection = direction->connection;
    unsigned from = index_of(direction);

    if (weir__sim_is_separated(connection->hosts[0], connection->hosts[1])) {
        retry(direction);
        return;
    }
    direction->retry_ns = 0;
    direction->stuck_since_ns = 0;
    weir__sim_trace_named("arrive", NULL, connection->name, connection->number * 2 + from,
                          direction->sent - direction->arrived);
    if (is_refused(direction)) {
        direction->sent = direction->arrived; /* it is not acknowledged */
        direction->end_sent = false;
        send_reset(&connection->directions[1 - from], true);
        return;
    }
    direction->arrived = direction->sent;
    if (direction->end_sent)
        direction->end_arrived = true;
    for (unsigned end = 0; end < 2; end++)
        woken(connection->ends[end], end == from              ? POLLOUT
                                     : direction->end_arrived ? 0
                                                              : WEIR__SIM_DATA);
    transmit(direction);
    free_if_unused(connection);
}

/* ---- connecting ---- */

static int take_error(struct tcp *self)
{
    int err = self->base.error;

    self->base.error = 0;
    self->error_reported = true;
    return -err;
}

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
    child->base.local = weir__sim_shown(listener->base.domain, &connection->addresses[1]);
    child->base.peer = weir__sim_shown(listener->base.domain, &connection->addresses[0]);
    child->base.has_peer = true;
    child->base.user_timeout_ns = listener->base.user_timeout_ns;
    child->base.send_buffer = listener->base.send_buffer;
    child->base.receive_buffer = listener->base.receive_buffer;
    child->base.lingers = listener->base.lingers;
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
    connection->error = err;
    connection->state = err == 0 ? CONNECTING : FAILED;
    weir__sim_event_add(&connection->handshake,
                        weir__sim_arrival(connection->hosts[1], connection->hosts[0], 0),
                        on_syn_answer);
}

/* The server forgets a connection whose client has not answered. */
static void drop_half_open(struct connection *connection)
{
    struct tcp *server = connection->ends[1];

    if (server == NULL)
        return;
    weir__list_remove(&server->accept_link);
    server->listener->waiting--;
    connection->ends[1] = NULL;
    free(server);
}

/* Waits longer with each try. The last one fails. */
static void retry_handshake(struct connection *connection, weir__sim_event_fn *fn)
{
    int64_t now_ns = weir__sim->now_ns, next_ns = now_ns + (SYN_RETRY_NS << connection->tries);
    int64_t limit_ns = timeout_of(connection->ends[0], WEIR_NEVER), end_ns;

    end_ns = limit_ns == WEIR_NEVER ? WEIR_NEVER : connection->begun_ns + limit_ns;
    if (now_ns >= end_ns || connection->tries >= SYN_TRIES) {
        connection->state = FAILED;
        weir__sim_trace_named("timeout", NULL, connection->name, connection->number, 0);
        drop_half_open(connection);
        fail_end(connection, 0, ETIMEDOUT);
        free_if_unused(connection);
        return;
    }
    connection->tries++;
    weir__sim_event_add(&connection->handshake, next_ns < end_ns ? next_ns : end_ns, fn);
}

static void on_syn(weir__sim_event *event)
{
    struct connection *connection = WEIR_CONTAINER_OF(event, struct connection, handshake);
    struct tcp *listener;

    if (weir__sim_is_separated(connection->hosts[0], connection->hosts[1])) {
        retry_handshake(connection, on_syn);
        return;
    }
    listener = (struct tcp *)weir__sim_find_bound(connection->hosts[1], &connection->addresses[1],
                                                  SOCK_STREAM, &connection->addresses[0]);
    if (listener != NULL && listener->waiting > listener->max_waiting) {
        weir__sim_trace_named("syn is dropped", NULL, connection->name, connection->number,
                              listener->waiting);
        retry_handshake(connection, on_syn);
        return;
    }
    weir__sim_trace_named("syn", NULL, connection->name, connection->number, listener != NULL);
    if (listener == NULL || !add_to_backlog(listener, connection))
        answer_syn(connection, ECONNREFUSED);
    else
        answer_syn(connection, 0);
}

static void on_syn_answer(weir__sim_event *event)
{
    struct connection *connection = WEIR_CONTAINER_OF(event, struct connection, handshake);
    struct tcp *client = connection->ends[0], *server = connection->ends[1];

    if (weir__sim_is_separated(connection->hosts[0], connection->hosts[1]) && client != NULL) {
        retry_handshake(connection, on_syn_answer);
        return;
    }
    if (connection->state == FAILED) {
        fail_end(connection, 0, connection->error);
        free_if_unused(connection);
        return;
    }
    connection->state = ESTABLISHED;
    weir__sim_trace_named("established", NULL, connection->name, connection->number,
                          client != NULL);
    if (client != NULL) {
        client->is_connecting = false;
        client->is_connected = true;
        client->base.has_peer = true;
        changed(client);
    } else {
        send_reset(&connection->directions[0], false);
    }
    if (server != NULL && server->listener != NULL)
        changed(server->listener);
    transmit(&connection->directions[0]);
    transmit(&connection->directions[1]);
    free_if_unused(connection);
}

static void leave_connection(struct tcp *self);

static void name_connection(struct connection *connection)
{
    const char *hosts[2] = {connection->hosts[0]->name, "nowhere"};

    if (connection->hosts[1] != NULL)
        hosts[1] = connection->hosts[1]->name;
    (void)snprintf(connection->name, sizeof(connection->name), "%s:%u - %s:%u", hosts[0],
                   weir_address_port(&connection->addresses[0]), hosts[1],
                   weir_address_port(&connection->addresses[1]));
}

static struct connection *create_connection(struct tcp *client, const weir_address *to)
{
    weir__sim_socket *socket = &client->base;
    struct connection *connection = calloc(1, sizeof(*connection));

    if (connection == NULL)
        return NULL;
    connection->number = ++next_connection;
    connection->directions[0].connection = connection;
    connection->directions[1].connection = connection;
    connection->hosts[0] = socket->host;
    connection->hosts[1] = weir__sim_host_of(socket->host, to);
    connection->addresses[0] = weir__sim_plain(&socket->local);
    connection->addresses[1] = *to;
    name_connection(connection);
    connection->ends[0] = client;
    connection->state = CONNECTING;
    connection->begun_ns = weir__sim->now_ns;
    weir__list_append(&connections, &connection->link);
    return connection;
}

static int tcp_connect(weir__sim_socket *socket, const struct sockaddr *address, socklen_t length)
{
    struct tcp *self = (struct tcp *)socket;
    struct connection *connection;
    weir_address to;
    int err;

    if (self->is_connecting)
        return -EALREADY;
    if (self->is_connected || socket->is_listening)
        return -EISCONN;
    if (socket->error != 0)
        return take_error(self);
    err = weir__sim_destination(socket->domain, address, length, &to);
    if (err == 0)
        err = weir__sim_bind_ephemeral(socket, &to);
    if (err < 0)
        return err;
    leave_connection(self); /* an attempt that has failed */
    connection = create_connection(self, &to);
    if (connection == NULL)
        return -ENOBUFS;
    self->connection = connection;
    self->is_connecting = true;
    self->error_reported = false;
    socket->peer = weir__sim_shown(socket->domain, &to);
    weir__sim_trace_named("connect", NULL, connection->name, connection->number,
                          weir_address_port(&to));
    if (connection->hosts[1] == NULL) {
        connection->hosts[1] = weir__sim->world_host;
        answer_syn(connection, EHOSTUNREACH);
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
    int err = weir__sim_bind_any(socket);

    if (err < 0 || self->connection != NULL)
        return err < 0 ? err : -EINVAL;
    if (!weir__sim_may_listen(socket))
        return -EADDRINUSE;
    socket->is_listening = true;
    self->max_waiting = (unsigned)backlog < max ? (unsigned)backlog : max;
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
    weir__sim_trace_named("accept", NULL, child->connection->name, child->connection->number, 0);
    return &child->base;
}

/* ---- reading and writing ---- */

static ssize_t tcp_receive(weir__sim_socket *socket, struct msghdr *message, int flags)
{
    struct tcp *self = (struct tcp *)socket;
    struct direction *input;
    size_t wanted = weir__sim_message_size(message), length;

    message->msg_namelen = 0;
    message->msg_controllen = 0;
    if (!self->is_connected)
        return socket->error != 0 ? take_error(self) : -ENOTCONN;
    input = input_of(self);
    length = (size_t)(input->arrived - input->stream.read);
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
    weir__sim_stream_read(&input->stream, message, length, (flags & MSG_PEEK) != 0);
    if ((flags & MSG_PEEK) == 0) {
        weir__sim_trace_named("receive", NULL, self->connection->name,
                              self->connection->number * 2 + self->end, length);
        transmit(input);
        if (input->arrived > input->stream.read && length < wanted)
            weir__sim_file_short_read(&socket->file);
    }
    return (ssize_t)length;
}

static size_t send_room(struct tcp *self)
{
    const struct direction *output = output_of(self);
    size_t used = (size_t)(output->stream.written - output->arrived);

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
    weir__sim_stream_write(&output->stream, message, length);
    output->written_ns = weir__sim->now_ns;
    weir__sim_trace_named("send", NULL, self->connection->name,
                          self->connection->number * 2 + self->end, length);
    transmit(output);
    return (ssize_t)length;
}

static int tcp_shutdown(weir__sim_socket *socket, int how)
{
    struct tcp *self = (struct tcp *)socket;

    if (!self->is_connected || output_of(self)->is_reset || is_over(self->connection))
        return -ENOTCONN;
    if (how != SHUT_WR)
        self->input_shut = true;
    if (how != SHUT_RD && !self->output_shut) {
        self->output_shut = true;
        output_of(self)->end_written = true;
        weir__sim_trace_named("shutdown", NULL, self->connection->name,
                              self->connection->number * 2 + self->end, 0);
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
    return (int)(output->stream.written - output->arrived) +
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
    if (input->arrived > input->stream.read || input->end_arrived || self->input_shut)
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
    self->base.has_peer = false;
    if (connection->state == ESTABLISHED && !output->is_reset && !is_over(connection)) {
        if (input->arrived > input->stream.read || self->base.lingers) {
            send_reset(output, false);
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
            answer_syn(connection, ECONNREFUSED);
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

        assert(weir__sim->failure != NULL || is_used(connection)); /* not a leak */
        free_connection(connection);
    }
}

void weir__sim_tcp_reset_one(void)
{
    struct connection *found = NULL;
    uint64_t count = 0;

    weir_list_foreach (link, &connections) {
        struct connection *connection = WEIR_CONTAINER_OF(link, struct connection, link);

        if (connection->state == ESTABLISHED && connection->ends[0] != NULL &&
            connection->ends[1] != NULL && !is_over(connection) && weir__sim_below(++count) == 0)
            found = connection;
    }
    if (found == NULL)
        return;
    weir__sim_trace_named("reset by the network", NULL, found->name, found->number, 0);
    fail_end(found, 0, ECONNRESET);
    fail_end(found, 1, ECONNRESET);
    found->directions[0].end_arrived = true;
    found->directions[1].end_arrived = true;
}
