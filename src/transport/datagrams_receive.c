/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Receiving datagrams. A backend receives a batch at a time, and a handler may stop reading after
 * any datagram of it: the rest waits, and is delivered before more is received.
 *
 *      read_start -> the backend receives -> weir__datagrams_receive -> deliver_one
 *          `-> some wait -> deferred -> deliver_one      `-> not reading: waits
 *
 * Most socket errors concern one datagram, such as "port unreachable": they are reported, and
 * receiving continues.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <string.h>

#include "channel/channel_stats.h"
#include "transport/datagrams.h"
#include "transport/fd_passing.h"
#include "transport/receive.h"

/* ---- waiting datagrams ---- */

static void append(weir__datagrams *self, weir_datagram *datagram)
{
    *self->waiting_end = datagram;
    self->waiting_end = &datagram->next;
}

static weir_datagram *take_first(weir__datagrams *self)
{
    weir_datagram *datagram = self->waiting;

    self->waiting = datagram->next;
    datagram->next = NULL;
    if (self->waiting == NULL)
        self->waiting_end = &self->waiting;
    return datagram;
}

void weir__datagrams_release_waiting(weir__datagrams *self)
{
    while (self->waiting != NULL)
        weir_datagram_release(take_first(self));
}

/* ---- delivery ---- */

/* Clears `once` first: the handler may ask for the next datagram. */
static void deliver_one(weir__datagrams *self, weir_datagram *datagram)
{
    self->reads = !self->once;
    weir__stats_received(&self->base.channel, 1, weir_msg_size(weir_datagram_msg(datagram)));
    (void)weir__channel_received(&self->base.channel, weir_datagram_msg(datagram));
}

static void report_dropped(weir__datagrams *self, int err, const char *detail)
{
    weir__channel_nonfatal_error(&self->base.channel, err, detail);
}

/* ---- recipients ---- */

static void take_ipv4(weir_datagram *datagram, struct cmsghdr *control)
{
    struct sockaddr_in *recipient = (struct sockaddr_in *)&datagram->recipient.storage;
    struct in_pktinfo info;

    memcpy(&info, CMSG_DATA(control), sizeof(info));
    datagram->is_local = info.ipi_addr.s_addr == info.ipi_spec_dst.s_addr;
    if (weir_address_family(&datagram->recipient) == AF_INET)
        recipient->sin_addr = info.ipi_addr;
}

static void take_ipv6(weir_datagram *datagram, struct cmsghdr *control)
{
    struct sockaddr_in6 *recipient = (struct sockaddr_in6 *)&datagram->recipient.storage;
    struct in6_pktinfo info;

    memcpy(&info, CMSG_DATA(control), sizeof(info));
    recipient->sin6_addr = info.ipi6_addr;
    if (IN6_IS_ADDR_LINKLOCAL(&info.ipi6_addr))
        recipient->sin6_scope_id = info.ipi6_ifindex;
    datagram->is_local = !IN6_IS_ADDR_MULTICAST(&info.ipi6_addr);
}

/*
 * Finds the recipient in the control messages of packet_info. A multicast or broadcast address is
 * not a local one, and replies cannot leave from it. For an IPv4 datagram on a dual-stack socket
 * only IP_PKTINFO, which comes last, tells the two apart.
 */
static void find_recipient(weir_datagram *datagram, const struct msghdr *header)
{
    struct msghdr *message = (struct msghdr *)(uintptr_t)header; /* only read */
    struct cmsghdr *control = CMSG_FIRSTHDR(message);

    for (; control != NULL; control = CMSG_NXTHDR(message, control)) {
        if (control->cmsg_level == IPPROTO_IP && control->cmsg_type == IP_PKTINFO)
            take_ipv4(datagram, control);
        if (control->cmsg_level == IPPROTO_IPV6 && control->cmsg_type == IPV6_PKTINFO)
            take_ipv6(datagram, control);
    }
}

/* ---- received buffers ---- */

/* Takes: content. */
static void deliver(weir__datagrams *self, weir_msg *content, const struct msghdr *header)
{
    weir_datagram *datagram;
    int err = weir__datagram_received(content, header->msg_name, header->msg_namelen, &self->local,
                                      &datagram);

    if (err == 0 && header->msg_controllen > 0)
        find_recipient(datagram, header);
    if (err < 0)
        report_dropped(self, err, "datagram dropped: out of memory");
    else if (weir__channel_phase(&self->base.channel) >= WEIR__CLOSING)
        weir_datagram_release(datagram);
    else if (self->reads && self->waiting == NULL)
        deliver_one(self, datagram);
    else
        append(self, datagram);
}

/* The segment size of datagrams coalesced by UDP_GRO; 0 = a single datagram. */
static size_t joined_size(const struct msghdr *header)
{
    struct msghdr *message = (struct msghdr *)(uintptr_t)header; /* only read */
    struct cmsghdr *control = CMSG_FIRSTHDR(message);
    int size = 0;

    for (; control != NULL; control = CMSG_NXTHDR(message, control))
        if (control->cmsg_level == IPPROTO_UDP && control->cmsg_type == UDP_GRO)
            memcpy(&size, CMSG_DATA(control), sizeof(size));
    return size > 0 ? (size_t)size : 0;
}

/* Takes: buf. */
static void deliver_joined(weir__datagrams *self, weir_buf *buf, const struct msghdr *header,
                           size_t size)
{
    weir_buf *slice;

    while (weir_buf_readable(buf) > 0) {
        size_t left = weir_buf_readable(buf);

        if (weir_buf_read_slice(buf, left < size ? left : size, &slice) < 0) {
            report_dropped(self, -ENOMEM, "coalesced datagrams dropped: out of memory");
            break;
        }
        deliver(self, weir_buf_msg(slice), header);
    }
    weir_buf_release(buf);
}

/* For Unix sockets. */
static void receive_message(weir__datagrams *self, const weir__io_datagram *received)
{
    const char *detail = NULL;
    weir_msg *content;
    int err = weir__fd_passing_receive(&self->base.handle, received, &content, &detail);

    if (err < 0)
        report_dropped(self, err, detail);
    if (content != NULL)
        deliver(self, content, received->header);
}

static void receive(weir__datagrams *self, const weir__io_datagram *received)
{
    size_t size = joined_size(received->header);

    if ((received->header->msg_flags & MSG_TRUNC) != 0) {
        weir_buf_release(weir__received_buf(&received->block, 0));
        report_dropped(self, -EMSGSIZE, "datagram dropped: longer than datagram_size");
    } else if (size > 0 && size < received->length) {
        weir_buf *buf = received->block.cookie;

        (void)weir_buf_set_write_index(buf, received->length);
        deliver_joined(self, buf, received->header, size);
    } else {
        deliver(self, weir_buf_msg(weir__received_buf(&received->block, received->length)),
                received->header);
    }
}

void weir__datagrams_receive(weir__datagrams *self, const weir__io_datagram *datagrams,
                             size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (self->base.handle.unix_socket)
            receive_message(self, &datagrams[i]);
        else
            receive(self, &datagrams[i]);
    }
    if (self->once && self->reads) /* it was dropped: receive another one */
        weir__datagrams_start_receiving(self);
}

/* ---- reading ---- */

void weir__datagrams_apply_receive_options(weir__datagrams *self,
                                           const weir_channel_options *options)
{
    bool is_unix = self->base.channel.transport->socket_family == AF_UNIX;

    self->base.handle.unix_socket = is_unix;
    self->base.handle.receive_fds = is_unix && options->receive_descriptors;
    self->base.handle.window = (uint32_t)options->datagram_size;
    self->base.handle.reads = self->once ? 1 : weir__reads_per_turn(options);
}

void weir__datagrams_start_receiving(weir__datagrams *self)
{
    if (self->reads && self->waiting == NULL && weir__io_is_attached(&self->base.handle))
        weir__io_receive_start(&self->base.handle, self->once);
}

/* Reading on demand receives one datagram at a time. */
void weir__datagrams_read_start(weir_channel *channel, bool once)
{
    weir__datagrams *self = weir__datagrams_of(channel);

    self->reads = true;
    self->once = once;
    weir__datagrams_apply_receive_options(self, weir__channel_options(channel));
    if (self->waiting != NULL)
        weir__channel_defer(channel, WEIR__DEFERRED_TRANSPORT);
    else
        weir__datagrams_start_receiving(self);
}

void weir__datagrams_read_stop(weir_channel *channel)
{
    weir__datagrams *self = weir__datagrams_of(channel);

    self->reads = false;
    if (weir__io_is_attached(&self->base.handle))
        weir__io_receive_stop(&self->base.handle);
}

void weir__datagrams_deferred(weir_channel *channel)
{
    weir__datagrams *self = weir__datagrams_of(channel);
    bool delivered = false;

    while (self->reads && self->waiting != NULL) {
        deliver_one(self, take_first(self));
        delivered = true;
    }
    if (delivered)
        weir__channel_read_complete(channel);
    weir__datagrams_start_receiving(self);
}

/* ---- errors ---- */

/* ICMP errors of datagrams sent earlier, and transient errors. */
static bool is_of_one_datagram(int err)
{
    switch (err) {
    case -ECONNREFUSED:
    case -EHOSTUNREACH:
    case -ENETUNREACH:
    case -EHOSTDOWN:
    case -ENETDOWN:
    case -ENONET:
    case -ENOPROTOOPT:
    case -EOPNOTSUPP:
    case -EPROTO:
    case -EMSGSIZE:
    case -EACCES:
    case -EPERM:
    case -ECONNRESET:
    case -ENOMEM:
    case -ENOBUFS:
        return true;
    default:
        return false;
    }
}

void weir__datagrams_receive_failed(weir__datagrams *self, int err)
{
    if (!is_of_one_datagram(err)) {
        weir__channel_failed(&self->base.channel, err, "receiving failed");
        return;
    }
    weir__channel_nonfatal_error(
        &self->base.channel, err,
        err == -ECONNREFUSED ? "port unreachable: no socket receives at the recipient's address"
                             : NULL);
    weir__datagrams_start_receiving(self);
}
