/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hosts, links between them, and addresses.
 */
#include "sim/network.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_PORT 32768
#define LOCAL_LATENCY_NS weir_us(5)
#define LOCAL_JITTER_NS weir_us(20)

/* ---- addresses ---- */

static bool is_wildcard(const weir_address *address)
{
    const struct sockaddr *sockaddr = weir_address_sockaddr(address);

    if (sockaddr->sa_family == AF_INET)
        return ((const struct sockaddr_in *)(const void *)sockaddr)->sin_addr.s_addr == 0;
    return memcmp(&((const struct sockaddr_in6 *)(const void *)sockaddr)->sin6_addr, &in6addr_any,
                  sizeof(in6addr_any)) == 0;
}

static bool is_loopback(const weir_address *address)
{
    const struct sockaddr *sockaddr = weir_address_sockaddr(address);

    if (sockaddr->sa_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)(const void *)sockaddr)->sin_addr.s_addr) >> 24 ==
               127;
    return memcmp(&((const struct sockaddr_in6 *)(const void *)sockaddr)->sin6_addr,
                  &in6addr_loopback, sizeof(in6addr_loopback)) == 0;
}

/* Compares without the port. */
static bool has_same_ip(const weir_address *a, const weir_address *b)
{
    const struct sockaddr *x = weir_address_sockaddr(a), *y = weir_address_sockaddr(b);

    if (x->sa_family != y->sa_family)
        return false;
    if (x->sa_family == AF_INET)
        return ((const struct sockaddr_in *)(const void *)x)->sin_addr.s_addr ==
               ((const struct sockaddr_in *)(const void *)y)->sin_addr.s_addr;
    return memcmp(&((const struct sockaddr_in6 *)(const void *)x)->sin6_addr,
                  &((const struct sockaddr_in6 *)(const void *)y)->sin6_addr,
                  sizeof(struct in6_addr)) == 0;
}

/* An address without a port. */
static int parse_ip(const char *text, weir_address *ret_address)
{
    char with_port[80];

    (void)snprintf(with_port, sizeof(with_port), strchr(text, ':') != NULL ? "[%s]:0" : "%s:0",
                   text);
    return weir_address_parse(with_port, ret_address);
}

/* ---- hosts ---- */

weir_sim_host *weir__sim_host_add(const char *name)
{
    weir_sim_host *host = calloc(1, sizeof(*host));

    if (host == NULL)
        return NULL;
    host->name = strdup(name);
    host->number = weir__sim->next_host++;
    weir__list_init(&host->sockets);
    weir__list_init(&host->paths);
    weir__list_append(&weir__sim->hosts, &host->link);
    return host;
}

void weir__sim_host_free(weir_sim_host *host)
{
    weir__list_remove(&host->link);
    free(host->disk);
    free(host->name);
    free(host);
}

int weir_sim_host_create(weir_sim *sim, const char *name, const char *addresses,
                         weir_sim_host **ret_host)
{
    weir_sim_host *host;
    const char *at = addresses;
    char text[64];

    (void)sim;
    if (name == NULL || addresses == NULL)
        return -EINVAL;
    host = weir__sim_host_add(name);
    if (host == NULL)
        return -ENOMEM;
    while (*(at += strspn(at, " ")) != '\0') {
        size_t length = strcspn(at, " ");
        weir_address *address = &host->addresses[host->address_count];

        if (length >= sizeof(text) || host->address_count == 4)
            goto invalid;
        memcpy(text, at, length);
        text[length] = '\0';
        at += length;
        if (parse_ip(text, address) < 0)
            goto invalid;
        if (weir__sim_host_of(host, address) != NULL) {
            weir__sim_host_free(host);
            return -EADDRINUSE;
        }
        host->address_count++;
    }
    *ret_host = host;
    return 0;

invalid:
    weir__sim_host_free(host);
    return -EINVAL;
}

weir_sim_host *weir__sim_host_by_name(const char *name)
{
    weir_list_foreach (link, &weir__sim->hosts) {
        weir_sim_host *host = WEIR_CONTAINER_OF(link, weir_sim_host, link);

        if (strcmp(host->name, name) == 0)
            return host;
    }
    return NULL;
}

static bool host_has(const weir_sim_host *host, const weir_address *address)
{
    for (size_t i = 0; i < host->address_count; i++)
        if (has_same_ip(&host->addresses[i], address))
            return true;
    return false;
}

weir_sim_host *weir__sim_host_of(weir_sim_host *from, const weir_address *address)
{
    if (is_wildcard(address) || is_loopback(address))
        return from;
    weir_list_foreach (link, &weir__sim->hosts) {
        weir_sim_host *host = WEIR_CONTAINER_OF(link, weir_sim_host, link);

        if (host_has(host, address))
            return host;
    }
    return NULL;
}

/* ---- links ---- */

static weir__sim_link *find_link(const weir_sim_host *a, const weir_sim_host *b)
{
    weir_list_foreach (item, &weir__sim->links) {
        weir__sim_link *link = WEIR_CONTAINER_OF(item, weir__sim_link, link);

        if ((link->a == a && link->b == b) || (link->a == b && link->b == a))
            return link;
    }
    return NULL;
}

static weir__sim_link *get_link(weir_sim_host *a, weir_sim_host *b)
{
    weir__sim_link *link = find_link(a, b);

    if (link == NULL && (link = calloc(1, sizeof(*link))) != NULL) {
        link->a = a;
        link->b = b;
        link->network = weir__sim->options.network;
        weir__list_append(&weir__sim->links, &link->link);
    }
    return link;
}

const weir_sim_network *weir__sim_network(weir_sim_host *a, weir_sim_host *b)
{
    const weir__sim_link *link = find_link(a, b);

    return link != NULL ? &link->network : &weir__sim->options.network;
}

int weir_sim_set_link(weir_sim_host *a, weir_sim_host *b, const weir_sim_network *network)
{
    weir__sim_link *link = get_link(a, b);

    if (link == NULL)
        return -ENOMEM;
    if (network->latency_ns != 0)
        link->network.latency_ns = network->latency_ns;
    if (network->jitter_ns != 0)
        link->network.jitter_ns = network->jitter_ns;
    if (network->bandwidth != 0)
        link->network.bandwidth = network->bandwidth;
    if (network->max_segment != 0)
        link->network.max_segment = network->max_segment;
    if (network->max_datagram != 0)
        link->network.max_datagram = network->max_datagram;
    return 0;
}

void weir_sim_partition(weir_sim_host *a, weir_sim_host *b, bool separated)
{
    weir__sim_link *link = get_link(a, b);

    if (link == NULL)
        return;
    weir__sim_trace(separated ? "separate" : "connect", a->number, b->number);
    if (separated)
        link->separations++;
    else if (link->separations > 0)
        link->separations--;
}

bool weir__sim_is_separated(weir_sim_host *a, weir_sim_host *b)
{
    const weir__sim_link *link;

    if (a->stops > 0 || b->stops > 0)
        return true;
    if (a == b)
        return false;
    link = find_link(a, b);
    return link != NULL && link->separations > 0;
}

int64_t weir__sim_arrival(weir_sim_host *from, weir_sim_host *to, size_t size)
{
    const weir_sim_network *network = weir__sim_network(from, to);

    if (from == to)
        return weir__sim->now_ns + LOCAL_LATENCY_NS + weir__sim_duration(LOCAL_JITTER_NS);
    return weir__sim->now_ns + network->latency_ns + weir__sim_duration(network->jitter_ns) +
           (int64_t)size * 1000000000 / network->bandwidth;
}

/* ---- binding ---- */

/* True if both may not be bound at the same time. */
static bool collides(const weir__sim_socket *a, const weir__sim_socket *b)
{
    if (a->kind != b->kind || weir_address_port(&a->local) != weir_address_port(&b->local))
        return false;
    if (a->domain != b->domain &&
        (a->only_v6 || b->only_v6 || !is_wildcard(&a->local) || !is_wildcard(&b->local)))
        return false;
    if (a->domain == b->domain && !is_wildcard(&a->local) && !is_wildcard(&b->local) &&
        !has_same_ip(&a->local, &b->local))
        return false;
    if (a->reuse_port && b->reuse_port)
        return false;
    return !(a->reuse_address && b->reuse_address &&
             (a->kind == SOCK_DGRAM || (!a->is_listening && !b->is_listening)));
}

static bool is_free(const weir__sim_socket *socket)
{
    weir_list_foreach (link, &socket->host->sockets) {
        const weir__sim_socket *other = WEIR_CONTAINER_OF(link, weir__sim_socket, bound_link);

        if (other != socket && collides(socket, other))
            return false;
    }
    return true;
}

static int choose_port(weir__sim_socket *socket)
{
    unsigned count = weir__sim->options.network.ports;

    for (unsigned i = 0; i < count; i++) {
        unsigned candidate = FIRST_PORT + socket->host->next_port++ % count;

        weir_address_set_port(&socket->local, (uint16_t)candidate);
        if (is_free(socket))
            return 0;
    }
    return -EADDRNOTAVAIL;
}

int weir__sim_bind(weir__sim_socket *socket, const struct sockaddr *address, socklen_t length)
{
    int err;

    if (socket->is_bound)
        return -EINVAL;
    if (address->sa_family != socket->domain)
        return -EAFNOSUPPORT;
    err = weir_address_from_sockaddr(address, length, &socket->local);
    if (err < 0)
        return err;
    if (!is_wildcard(&socket->local) && !is_loopback(&socket->local) &&
        !host_has(socket->host, &socket->local))
        return -EADDRNOTAVAIL;
    if (weir_address_port(&socket->local) == 0)
        err = choose_port(socket) < 0 ? -EADDRINUSE : 0;
    else if (!is_free(socket))
        err = -EADDRINUSE;
    if (err < 0)
        return err;
    socket->is_bound = true;
    weir__list_append(&socket->host->sockets, &socket->bound_link);
    return 0;
}

int weir__sim_bind_ephemeral(weir__sim_socket *socket, const weir_address *to)
{
    int family = weir_address_sockaddr(to)->sa_family;
    const weir_address *own = NULL;
    int err;

    if (socket->is_bound && !is_wildcard(&socket->local))
        return 0;
    for (size_t i = 0; i < socket->host->address_count && own == NULL; i++)
        if (weir_address_sockaddr(&socket->host->addresses[i])->sa_family == family)
            own = &socket->host->addresses[i];
    if (is_wildcard(to) || is_loopback(to)) {
        if (parse_ip(family == AF_INET ? "127.0.0.1" : "::1", &socket->local) < 0)
            return -ENETUNREACH;
    } else if (own == NULL) {
        return -ENETUNREACH;
    } else {
        uint16_t bound_port = socket->is_bound ? weir_address_port(&socket->local) : 0;

        socket->local = *own;
        weir_address_set_port(&socket->local, bound_port);
    }
    if (socket->is_bound)
        return 0;
    err = choose_port(socket);
    if (err < 0)
        return err;
    socket->is_bound = true;
    weir__list_append(&socket->host->sockets, &socket->bound_link);
    return 0;
}

void weir__sim_unbind(weir__sim_socket *socket)
{
    if (socket->is_bound)
        weir__list_remove(&socket->bound_link);
    socket->is_bound = false;
}

static bool receives(const weir__sim_socket *socket, const weir_address *to, int kind,
                     const weir_address *from)
{
    if (socket->kind != kind || weir_address_port(&socket->local) != weir_address_port(to))
        return false;
    if (kind == SOCK_STREAM && !socket->is_listening)
        return false;
    if (socket->peer.length > 0 && (!has_same_ip(&socket->peer, from) ||
                                    weir_address_port(&socket->peer) != weir_address_port(from)))
        return false;
    if (is_wildcard(&socket->local))
        return weir_address_sockaddr(to)->sa_family == socket->domain || !socket->only_v6;
    return has_same_ip(&socket->local, to);
}

weir__sim_socket *weir__sim_find_bound(weir_sim_host *host, const weir_address *to, int kind,
                                       const weir_address *from)
{
    weir__sim_socket *found[16];
    size_t count = 0;

    weir_list_foreach (link, &host->sockets) {
        weir__sim_socket *socket = WEIR_CONTAINER_OF(link, weir__sim_socket, bound_link);

        if (!receives(socket, to, kind, from))
            continue;
        if (socket->peer.length > 0)
            return socket; /* a connected one comes first */
        if (count < 16)
            found[count++] = socket;
    }
    if (count == 0)
        return NULL;
    return found[count > 1 ? weir__sim_below(count) : 0];
}

/* ---- sockets of all kinds ---- */

void weir__sim_socket_init(weir__sim_socket *socket, int domain, int kind)
{
    socket->host = weir__sim_process()->host;
    socket->domain = domain;
    socket->kind = kind;
    socket->file.is_socket = true;
    socket->send_buffer = weir__sim->options.network.socket_buffer;
    socket->receive_buffer = weir__sim->options.network.socket_buffer;
    weir__list_init(&socket->bound_link);
    weir__list_init(&socket->file.ready_link);
}

size_t weir__sim_message_size(const struct msghdr *message)
{
    size_t size = 0;

    for (size_t i = 0; i < message->msg_iovlen; i++)
        size += message->msg_iov[i].iov_len;
    return size;
}

size_t weir__sim_copy_in(void *to, size_t size, const struct msghdr *message, size_t skip)
{
    char *at = to;

    for (size_t i = 0; i < message->msg_iovlen && size > 0; i++) {
        const struct iovec *part = &message->msg_iov[i];
        size_t length;

        if (skip >= part->iov_len) {
            skip -= part->iov_len;
            continue;
        }
        length = part->iov_len - skip < size ? part->iov_len - skip : size;
        memcpy(at, (const char *)part->iov_base + skip, length);
        skip = 0;
        at += length;
        size -= length;
    }
    return (size_t)(at - (char *)to);
}

size_t weir__sim_copy_out(const struct msghdr *message, size_t skip, const void *from, size_t size)
{
    const char *at = from;

    for (size_t i = 0; i < message->msg_iovlen && size > 0; i++) {
        const struct iovec *part = &message->msg_iov[i];
        size_t length;

        if (skip >= part->iov_len) {
            skip -= part->iov_len;
            continue;
        }
        length = part->iov_len - skip < size ? part->iov_len - skip : size;
        memcpy((char *)part->iov_base + skip, at, length);
        skip = 0;
        at += length;
        size -= length;
    }
    return (size_t)(at - (const char *)from);
}

void weir__sim_set_name(struct msghdr *message, const weir_address *address)
{
    socklen_t length = address->length;

    if (message->msg_name == NULL)
        return;
    memcpy(message->msg_name, &address->storage,
           length < message->msg_namelen ? length : message->msg_namelen);
    message->msg_namelen = length;
}
