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

#include "sim/unix_path.h"

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

weir_address weir__sim_plain(const weir_address *address)
{
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&address->storage;
    struct sockaddr_in in = {.sin_family = AF_INET};
    weir_address plain = {.length = sizeof(in)};

    if (address->length == 0 || in6->sin6_family != AF_INET6 ||
        !IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr))
        return *address;
    in.sin_port = in6->sin6_port;
    memcpy(&in.sin_addr, &in6->sin6_addr.s6_addr[12], sizeof(in.sin_addr));
    memcpy(&plain.storage, &in, sizeof(in));
    return plain;
}

weir_address weir__sim_shown(int domain, const weir_address *address)
{
    const struct sockaddr_in *in = (const struct sockaddr_in *)&address->storage;
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};
    weir_address mapped = {.length = sizeof(in6)};

    if (domain != AF_INET6 || address->length == 0 || in->sin_family != AF_INET)
        return *address;
    in6.sin6_port = in->sin_port;
    in6.sin6_addr.s6_addr[10] = 0xff;
    in6.sin6_addr.s6_addr[11] = 0xff;
    memcpy(&in6.sin6_addr.s6_addr[12], &in->sin_addr, sizeof(in->sin_addr));
    memcpy(&mapped.storage, &in6, sizeof(in6));
    return mapped;
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
    weir__sim_paths_free(host);
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
    char names[WEIR__SIM_TRACE_TEXT_MAX];

    if (link == NULL)
        return;
    (void)snprintf(names, sizeof(names), "%s and %s", a->name, b->name);
    weir__sim_trace_named(separated ? "separate" : "connect", NULL, names, a->number, b->number);
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

/* ---- destinations and sources ---- */

static int set_ip(const char *text, weir_address *address)
{
    uint16_t port = weir_address_port(address);
    int err = parse_ip(text, address);

    if (err == 0)
        weir_address_set_port(address, port);
    return err;
}

int weir__sim_destination(int domain, const struct sockaddr *address, socklen_t length,
                          weir_address *ret_address)
{
    weir_address to;
    int err;

    if (length < sizeof(sa_family_t))
        return -EINVAL;
    if (address->sa_family != domain)
        return -EAFNOSUPPORT;
    err = weir_address_from_sockaddr(address, length, &to);
    if (err < 0)
        return err;
    to = weir__sim_plain(&to);
    if (is_wildcard(&to))
        err = set_ip(weir_address_family(&to) == AF_INET ? "127.0.0.1" : "::1", &to);
    *ret_address = to;
    return err;
}

int weir__sim_source(const weir_sim_host *host, const weir_address *to, weir_address *ret_address)
{
    int family = weir_address_family(to);

    if (is_loopback(to))
        return parse_ip(family == AF_INET ? "127.0.0.1" : "::1", ret_address);
    for (size_t i = 0; i < host->address_count; i++) {
        if (weir_address_family(&host->addresses[i]) == family) {
            *ret_address = host->addresses[i];
            return 0;
        }
    }
    return -ENETUNREACH;
}

/* ---- binding ---- */

static bool is_dual_wildcard(const weir__sim_socket *socket, const weir_address *plain)
{
    return weir_address_family(plain) == AF_INET6 && is_wildcard(plain) && !socket->only_v6;
}

/* True if something could be sent to both. */
static bool overlaps(const weir__sim_socket *a, const weir__sim_socket *b)
{
    weir_address x = weir__sim_plain(&a->local), y = weir__sim_plain(&b->local);

    if (weir_address_family(&x) != weir_address_family(&y))
        return is_dual_wildcard(a, &x) || is_dual_wildcard(b, &y);
    return is_wildcard(&x) || is_wildcard(&y) || has_same_ip(&x, &y);
}

/* True if both may not be bound at the same time. */
static bool collides(const weir__sim_socket *a, const weir__sim_socket *b)
{
    if (a->kind != b->kind || weir_address_port(&a->local) != weir_address_port(&b->local) ||
        !overlaps(a, b))
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

bool weir__sim_may_listen(weir__sim_socket *socket)
{
    bool was_listening = socket->is_listening, may;

    socket->is_listening = true;
    may = is_free(socket);
    socket->is_listening = was_listening;
    return may;
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

static void add_bound(weir__sim_socket *socket)
{
    socket->is_bound = true;
    weir__list_append(&socket->host->sockets, &socket->bound_link);
}

int weir__sim_bind(weir__sim_socket *socket, const struct sockaddr *address, socklen_t length)
{
    weir_address plain;
    int err;

    if (socket->is_bound)
        return -EINVAL;
    if (length < sizeof(sa_family_t) || address->sa_family != socket->domain)
        return length < sizeof(sa_family_t) ? -EINVAL : -EAFNOSUPPORT;
    err = weir_address_from_sockaddr(address, length, &socket->local);
    if (err < 0)
        return err;
    plain = weir__sim_plain(&socket->local);
    socket->has_own_port = weir_address_port(&plain) != 0;
    socket->has_own_address = !is_wildcard(&plain);
    if (!is_wildcard(&plain) && !is_loopback(&plain) && !host_has(socket->host, &plain))
        err = -EADDRNOTAVAIL;
    else if (!socket->has_own_port)
        err = choose_port(socket) < 0 ? -EADDRINUSE : 0;
    else if (!is_free(socket))
        err = -EADDRINUSE;
    if (err < 0) {
        socket->local = (weir_address){0};
        return err;
    }
    add_bound(socket);
    return 0;
}

int weir__sim_bind_any(weir__sim_socket *socket)
{
    int err;

    if (socket->is_bound)
        return 0;
    err = parse_ip(socket->domain == AF_INET ? "0.0.0.0" : "::", &socket->local);
    if (err == 0)
        err = choose_port(socket);
    if (err < 0) {
        socket->local = (weir_address){0};
        return err == -EADDRNOTAVAIL ? -EAGAIN : err; /* as the kernel does */
    }
    add_bound(socket);
    return 0;
}

int weir__sim_bind_ephemeral(weir__sim_socket *socket, const weir_address *to)
{
    weir_address plain = weir__sim_plain(&socket->local), source;
    int err;

    if (socket->is_bound && !is_wildcard(&plain))
        return weir_address_family(&plain) == weir_address_family(to) ? 0 : -ENETUNREACH;
    err = weir__sim_source(socket->host, to, &source);
    if (err < 0)
        return err;
    if (socket->is_bound)
        weir_address_set_port(&source, weir_address_port(&plain));
    socket->local = weir__sim_shown(socket->domain, &source);
    if (socket->is_bound)
        return 0;
    err = choose_port(socket);
    if (err < 0)
        socket->local = (weir_address){0};
    else
        add_bound(socket);
    return err;
}

void weir__sim_unbind(weir__sim_socket *socket)
{
    if (socket->is_bound)
        weir__list_remove(&socket->bound_link);
    socket->is_bound = false;
}

void weir__sim_unbind_ephemeral(weir__sim_socket *socket)
{
    if (!socket->is_bound)
        return;
    if (!socket->has_own_address)
        (void)set_ip(socket->domain == AF_INET ? "0.0.0.0" : "::", &socket->local);
    if (!socket->has_own_port) {
        weir__sim_unbind(socket);
        socket->local = (weir_address){0};
    }
}

/* ---- finding the receiver ---- */

/* How well a socket fits; 0 = not at all. */
static unsigned fitness(const weir__sim_socket *socket, const weir_address *to, int kind,
                        const weir_address *from)
{
    weir_address local, peer;
    unsigned fits;

    if (socket->kind != kind || weir_address_port(&socket->local) != weir_address_port(to))
        return 0;
    if (kind == SOCK_STREAM && !socket->is_listening)
        return 0;
    local = weir__sim_plain(&socket->local);
    if (!is_wildcard(&local))
        fits = has_same_ip(&local, to) ? 3 : 0;
    else if (weir_address_family(&local) == weir_address_family(to))
        fits = 2;
    else
        fits = is_dual_wildcard(socket, &local) ? 1 : 0;
    if (fits == 0 || socket->peer.length == 0)
        return fits;
    peer = weir__sim_plain(&socket->peer);
    return has_same_ip(&peer, from) && weir_address_port(&peer) == weir_address_port(from)
               ? fits + 4
               : 0;
}

/* The same for all packets between two ports. */
static uint64_t flow_number(const weir_address *to, const weir_address *from)
{
    uint64_t flow = ((uint64_t)weir_address_port(to) << 16 | weir_address_port(from)) + 1;

    return ((flow + weir__sim->options.seed) * UINT64_C(0x9e3779b97f4a7c15)) >> 32;
}

weir__sim_socket *weir__sim_find_bound(weir_sim_host *host, const weir_address *to, int kind,
                                       const weir_address *from)
{
    weir__sim_socket *found = NULL;
    unsigned best = 0, count = 0, wanted;

    weir_list_foreach (link, &host->sockets) {
        weir__sim_socket *socket = WEIR_CONTAINER_OF(link, weir__sim_socket, bound_link);
        unsigned fits = fitness(socket, to, kind, from);

        if (fits > best) {
            best = fits;
            count = 0;
        }
        if (fits == best && fits > 0) {
            found = socket; /* the last that was bound */
            count++;
        }
    }
    if (count < 2 || !found->reuse_port)
        return found;
    wanted = (unsigned)(flow_number(to, from) % count);
    weir_list_foreach (link, &host->sockets) {
        weir__sim_socket *socket = WEIR_CONTAINER_OF(link, weir__sim_socket, bound_link);

        if (fitness(socket, to, kind, from) == best && wanted-- == 0)
            return socket;
    }
    return found;
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
    socket->peer_credentials = (struct ucred){.uid = (uid_t)-1, .gid = (gid_t)-1};
    socket->mode = 0777;
    weir__list_init(&socket->bound_link);
    weir__list_init(&socket->file.descriptors);
}

size_t weir__sim_message_size(const struct msghdr *message)
{
    size_t size = 0;

    for (size_t i = 0; i < (size_t)message->msg_iovlen; i++)
        size += message->msg_iov[i].iov_len;
    return size;
}

size_t weir__sim_copy_in(void *to, size_t size, const struct msghdr *message, size_t skip)
{
    char *at = to;

    for (size_t i = 0; i < (size_t)message->msg_iovlen && size > 0; i++) {
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

    for (size_t i = 0; i < (size_t)message->msg_iovlen && size > 0; i++) {
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
