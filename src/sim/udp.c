/* SPDX-License-Identifier: Apache-2.0 */
/*
 * UDP.
 *
 * A datagram under way is an event. It counts against the send buffer of its socket until it
 * arrives or is lost. Datagrams of a socket arrive in order, unless the seed lets one be overtaken.
 * One that finds no socket is answered: a socket that is connected to that address reports
 * ECONNREFUSED. One that finds no host reports EHOSTUNREACH in the same way.
 *
 * A datagram with UDP_SEGMENT is cut, as the kernel does. Datagrams are never joined (UDP_GRO).
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "sim/network.h"
#include "sim/packet.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

#define SEGMENTS_MAX 64 /* UDP_MAX_SEGMENTS */
#define OVERHEAD 256    /* of a datagram in a buffer, beside its bytes */

struct udp {
    weir__sim_socket base;
    weir_address plain_peer; /* length 0 = not connected */
    weir__list received;     /* packets */
    size_t received_size;
    weir__list flights;
    size_t sending_size;
    int64_t last_arrival_ns;
    bool input_shut, output_shut;
};

/* A datagram under way, or the answer to one. */
struct flight {
    weir__sim_event event;
    weir__list link;     /* of all flights */
    weir__list own_link; /* of the socket */
    struct udp *sender;  /* NULL: closed, or an answer */
    weir__sim_packet *packet;
    weir_sim_host *from_host, *to_host;
    weir_address from, to; /* plain */
    int error;             /* of an answer */
    bool is_lost;
};

static weir__list flights;

static struct udp *udp_of(weir__sim_socket *socket)
{
    return (struct udp *)socket;
}

static size_t cost_of(const weir__sim_packet *packet)
{
    return packet->length + OVERHEAD;
}

/* ---- under way ---- */

static struct flight *create_flight(weir_sim_host *from_host, const weir_address *from,
                                    weir_sim_host *to_host, const weir_address *to)
{
    struct flight *flight = calloc(1, sizeof(*flight));

    if (flight == NULL)
        return NULL;
    flight->from_host = from_host;
    flight->to_host = to_host;
    flight->from = *from;
    flight->to = *to;
    weir__list_init(&flight->own_link);
    weir__list_append(&flights, &flight->link);
    return flight;
}

static void free_flight(struct flight *flight)
{
    struct udp *sender = flight->sender;

    if (sender != NULL) {
        sender->sending_size -= cost_of(flight->packet);
        weir__list_remove(&flight->own_link);
        weir__sim_file_woken(&sender->base.file, POLLOUT);
    }
    weir__sim_event_remove(&flight->event);
    weir__list_remove(&flight->link);
    if (flight->packet != NULL)
        weir__sim_packet_free(flight->packet);
    free(flight);
}

/* An error arrives at a socket that is connected to where it comes from. */
static void on_answer(weir__sim_event *event)
{
    struct flight *flight = WEIR_CONTAINER_OF(event, struct flight, event);
    weir__sim_socket *socket =
        weir__sim_find_bound(flight->to_host, &flight->to, SOCK_DGRAM, &flight->from);

    if (socket != NULL && socket->has_peer &&
        !weir__sim_is_separated(flight->from_host, flight->to_host)) {
        weir__sim_trace("icmp", socket->file.number, (uint64_t)flight->error);
        socket->error = flight->error;
        weir__sim_file_changed(&socket->file);
    }
    free_flight(flight);
}

static void answer(const struct flight *to, int err)
{
    struct flight *flight = create_flight(to->to_host, &to->to, to->from_host, &to->from);

    if (flight == NULL)
        return;
    flight->error = err;
    weir__sim_event_add(&flight->event, weir__sim_arrival(to->to_host, to->from_host, 0),
                        on_answer);
}

static void receive_packet(struct udp *receiver, struct flight *flight)
{
    weir__sim_packet *packet = flight->packet;
    bool is_full = receiver->received_size > 0 &&
                   receiver->received_size + cost_of(packet) > receiver->base.receive_buffer;

    weir__sim_trace(is_full ? "datagram is dropped" : "datagram", receiver->base.file.number,
                    packet->length);
    if (is_full || receiver->input_shut)
        return;
    packet = weir__sim_packet_copy(packet);
    if (packet == NULL)
        return;
    packet->from = weir__sim_shown(receiver->base.domain, &flight->from);
    receiver->received_size += cost_of(packet);
    weir__list_append(&receiver->received, &packet->link);
    weir__sim_file_woken(&receiver->base.file, WEIR__SIM_DATA);
}

static void on_arrival(weir__sim_event *event)
{
    struct flight *flight = WEIR_CONTAINER_OF(event, struct flight, event);
    weir__sim_socket *receiver;

    if (!flight->is_lost && !weir__sim_is_separated(flight->from_host, flight->to_host)) {
        receiver = weir__sim_find_bound(flight->to_host, &flight->to, SOCK_DGRAM, &flight->from);
        if (receiver != NULL)
            receive_packet(udp_of(receiver), flight);
        else
            answer(flight, flight->to_host == weir__sim->world_host ? EHOSTUNREACH : ECONNREFUSED);
    }
    free_flight(flight);
}

/* The time of arrival: after those sent before, unless it is overtaken. */
static int64_t draw_arrival(struct udp *self, const struct flight *flight, bool is_remote)
{
    const weir_sim_network *network = weir__sim_network(flight->from_host, flight->to_host);
    int64_t arrival_ns =
        weir__sim_arrival(flight->from_host, flight->to_host, flight->packet->length);

    if (is_remote && weir__sim_fault(WEIR_SIM_FAULT_REORDER))
        return arrival_ns + 1 + weir__sim_duration(4 * (network->latency_ns + network->jitter_ns));
    if (arrival_ns <= self->last_arrival_ns)
        arrival_ns = self->last_arrival_ns + 1;
    self->last_arrival_ns = arrival_ns;
    return arrival_ns;
}

/* Takes: packet. */
static void launch(struct udp *self, weir__sim_packet *packet, const weir_address *from,
                   const weir_address *to)
{
    weir_sim_host *to_host = weir__sim_host_of(self->base.host, to);
    bool is_remote = to_host != self->base.host;
    struct flight *flight =
        create_flight(self->base.host, from, to_host != NULL ? to_host : weir__sim->world_host, to);

    if (flight == NULL) {
        weir__sim_packet_free(packet);
        return;
    }
    flight->packet = packet;
    flight->sender = self;
    flight->is_lost = is_remote && weir__sim_fault(WEIR_SIM_FAULT_LOSS);
    self->sending_size += cost_of(packet);
    weir__list_append(&self->flights, &flight->own_link);
    weir__sim_event_add(&flight->event, draw_arrival(self, flight, is_remote), on_arrival);
}

static int send_one(struct udp *self, const struct msghdr *message, size_t offset, size_t length,
                    const weir_address *from, const weir_address *to)
{
    weir__sim_packet *packet = weir__sim_packet_create(message, offset, length), *again = NULL;

    if (packet == NULL)
        return -ENOBUFS;
    weir__sim_trace("send datagram", self->base.file.number, length);
    if (weir__sim_host_of(self->base.host, to) != self->base.host &&
        weir__sim_fault(WEIR_SIM_FAULT_DUPLICATE))
        again = weir__sim_packet_copy(packet);
    launch(self, packet, from, to);
    if (again != NULL)
        launch(self, again, from, to);
    return 0;
}

/* ---- sending ---- */

/* The segment size that the message asks for; 0 = none. */
static size_t segment_size(const struct msghdr *message)
{
    struct msghdr *controls = (struct msghdr *)(uintptr_t)message; /* only read */
    uint16_t size = 0;

    for (struct cmsghdr *at = CMSG_FIRSTHDR(controls); at != NULL; at = CMSG_NXTHDR(controls, at))
        if (at->cmsg_level == IPPROTO_UDP && at->cmsg_type == UDP_SEGMENT)
            memcpy(&size, CMSG_DATA(at), sizeof(size));
    return size;
}

/* Where a message goes, and from where. Binds the socket if necessary. */
static int find_way(struct udp *self, const struct msghdr *message, weir_address *ret_from,
                    weir_address *ret_to)
{
    weir__sim_socket *socket = &self->base;
    weir_address local;
    int err = 0;

    if (message->msg_name != NULL && message->msg_namelen > 0)
        err =
            weir__sim_destination(socket->domain, message->msg_name, message->msg_namelen, ret_to);
    else if (self->plain_peer.length == 0)
        err = -EDESTADDRREQ;
    else
        *ret_to = self->plain_peer;
    if (err == 0 && weir_address_port(ret_to) == 0)
        err = -EINVAL;
    if (err == 0)
        err = weir__sim_bind_any(socket);
    if (err < 0)
        return err;
    local = weir__sim_plain(&socket->local);
    if (socket->has_own_address || self->plain_peer.length > 0)
        *ret_from = local;
    else
        err = weir__sim_source(socket->host, ret_to, ret_from);
    if (err == 0 && weir_address_family(ret_from) != weir_address_family(ret_to))
        err = -ENETUNREACH;
    if (err == 0)
        weir_address_set_port(ret_from, weir_address_port(&local));
    return err;
}

static int check_size(struct udp *self, const weir_address *to, size_t length, size_t segment)
{
    weir_sim_host *host = weir__sim_host_of(self->base.host, to);
    size_t max =
        weir__sim_network(self->base.host, host != NULL ? host : self->base.host)->max_datagram;

    if (segment > 0 && (length + segment - 1) / segment > SEGMENTS_MAX)
        return -EINVAL;
    if (segment > 0 && length <= 65507 && segment <= max)
        return 0;
    return length > max ? -EMSGSIZE : 0;
}

static ssize_t udp_send(weir__sim_socket *socket, const struct msghdr *message, int flags)
{
    struct udp *self = udp_of(socket);
    size_t length = weir__sim_message_size(message), segment = segment_size(message), offset = 0;
    weir_address from, to;
    int err;

    (void)flags;
    if (socket->error != 0) {
        err = -socket->error;
        socket->error = 0;
        return err;
    }
    if (self->output_shut)
        return -EPIPE;
    err = find_way(self, message, &from, &to);
    if (err == 0)
        err = check_size(self, &to, length, segment);
    if (err == 0 && weir__sim_fault(WEIR_SIM_FAULT_NO_BUFFERS))
        err = -ENOBUFS;
    if (err == 0 && self->sending_size >= socket->send_buffer)
        err = -EAGAIN;
    if (segment == 0 || segment > length)
        segment = length;
    do {
        size_t piece = length - offset < segment ? length - offset : segment;

        if (err == 0)
            err = send_one(self, message, offset, piece, &from, &to);
        offset += piece;
    } while (err == 0 && offset < length);
    return err < 0 ? err : (ssize_t)length;
}

/* ---- receiving ---- */

static ssize_t udp_receive(weir__sim_socket *socket, struct msghdr *message, int flags)
{
    struct udp *self = udp_of(socket);
    weir__sim_packet *packet;
    ssize_t length;

    if (socket->error != 0) {
        length = -socket->error;
        socket->error = 0;
        return length;
    }
    if (weir__list_is_empty(&self->received)) {
        message->msg_controllen = 0;
        return self->input_shut ? 0 : -EAGAIN;
    }
    packet = WEIR_CONTAINER_OF(self->received.next, weir__sim_packet, link);
    length = weir__sim_packet_receive(packet, message, flags);
    if ((flags & MSG_PEEK) == 0) {
        weir__sim_trace("receive datagram", socket->file.number, packet->length);
        self->received_size -= cost_of(packet);
        weir__sim_packet_free(packet);
    }
    return length;
}

/* ---- addresses ---- */

static int disconnect(struct udp *self)
{
    self->plain_peer.length = 0;
    self->base.peer.length = 0;
    self->base.has_peer = false;
    weir__sim_unbind_ephemeral(&self->base);
    return 0;
}

static int udp_connect(weir__sim_socket *socket, const struct sockaddr *address, socklen_t length)
{
    struct udp *self = udp_of(socket);
    weir_address to;
    int err;

    if (length >= sizeof(sa_family_t) && address->sa_family == AF_UNSPEC)
        return disconnect(self);
    err = weir__sim_destination(socket->domain, address, length, &to);
    if (err == 0)
        err = weir__sim_bind_ephemeral(socket, &to);
    if (err < 0)
        return err;
    self->plain_peer = to;
    socket->peer = weir__sim_shown(socket->domain, &to);
    socket->has_peer = true;
    weir__sim_trace("connect datagrams", socket->file.number, weir_address_port(&to));
    return 0;
}

static int udp_shutdown(weir__sim_socket *socket, int how)
{
    struct udp *self = udp_of(socket);

    if (self->plain_peer.length == 0)
        return -ENOTCONN;
    self->input_shut = self->input_shut || how != SHUT_WR;
    self->output_shut = self->output_shut || how != SHUT_RD;
    weir__sim_file_changed(&socket->file);
    return 0;
}

/* ---- the file ---- */

static int udp_outq(weir__sim_socket *socket)
{
    return (int)udp_of(socket)->sending_size;
}

static unsigned udp_poll(weir__sim_file *file)
{
    const struct udp *self = (const struct udp *)file;
    unsigned events = 0;

    if (self->base.error != 0)
        events |= POLLERR | POLLIN;
    if (!weir__list_is_empty(&self->received) || self->input_shut)
        events |= POLLIN;
    if (self->input_shut)
        events |= POLLRDHUP;
    if (self->input_shut && self->output_shut)
        events |= POLLHUP;
    if (self->sending_size * 2 <= self->base.send_buffer)
        events |= POLLOUT;
    return events;
}

static void leave(struct udp *self)
{
    weir__list *link;

    while ((link = weir__list_pop(&self->flights)) != NULL)
        WEIR_CONTAINER_OF(link, struct flight, own_link)->sender = NULL;
    weir__sim_packets_free(&self->received);
    self->received_size = 0;
    self->sending_size = 0;
    weir__sim_unbind(&self->base);
}

static void udp_kill(weir__sim_file *file)
{
    leave((struct udp *)file);
}

static void udp_close(weir__sim_file *file)
{
    weir__sim_trace("close", file->number, 0);
    leave((struct udp *)file);
    free(file);
}

static const weir__sim_socket_type udp_type = {
    .file = {.name = "udp", .poll = udp_poll, .close = udp_close, .kill = udp_kill},
    .bind = weir__sim_bind,
    .connect = udp_connect,
    .shutdown = udp_shutdown,
    .send = udp_send,
    .receive = udp_receive,
    .outq = udp_outq,
};

int weir__sim_udp_socket(int domain)
{
    struct udp *self = calloc(1, sizeof(*self));
    int descriptor;

    if (self == NULL)
        return -ENOBUFS;
    weir__sim_socket_init(&self->base, domain, SOCK_DGRAM);
    weir__list_init(&self->received);
    weir__list_init(&self->flights);
    descriptor = weir__sim_file_open(&self->base.file, &udp_type.file);
    if (descriptor < 0)
        free(self);
    return descriptor;
}

void weir__sim_udp_begin(void)
{
    weir__list_init(&flights);
}

void weir__sim_udp_end(void)
{
    weir_list_foreach (link, &flights) {
        struct flight *flight = WEIR_CONTAINER_OF(link, struct flight, link);

        flight->sender = NULL;
        free_flight(flight);
    }
}
