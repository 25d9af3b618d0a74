/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Datagrams as packets. The two addresses may have different families, since a socket bound to [::]
 * receives IPv4 as well. The packet then has the remote family, and the local address is
 * unspecified.
 */
#include <weir/channel.h>

#include "buffer/datagram.h"
#include "handler/msg_bytes.h"
#include "handler/pcap.h"
#include "handler/udp_packet.h"

/* ---- addresses ---- */

static weir__udp_endpoint endpoint_of(const weir_address *address)
{
    return (weir__udp_endpoint){.host = weir__ip_of(address), .port = weir_address_port(address)};
}

/* The address of one side: from the datagram if it has one, else from the channel. */
static weir__udp_endpoint find_endpoint(weir_channel *channel, unsigned side,
                                        const weir_address *given)
{
    weir_address address = {.length = 0};

    if (given != NULL && given->length > 0)
        return endpoint_of(given);
    if (side == WEIR__PCAP_LOCAL)
        (void)weir_channel_local_address(channel, &address);
    else
        (void)weir_channel_remote_address(channel, &address);
    return endpoint_of(&address);
}

static void unify_families(weir_channel *channel, weir__udp_endpoint *local,
                           weir__udp_endpoint *remote)
{
    if (local->host.family == AF_UNSPEC && remote->host.family == AF_UNSPEC) {
        local->host = weir__pcap_placeholder(WEIR__PCAP_LOCAL);
        remote->host = weir__pcap_placeholder(WEIR__PCAP_REMOTE);
        local->port = remote->port = (uint16_t)weir_channel_id(channel);
    } else if (remote->host.family == AF_UNSPEC) {
        remote->host.family = local->host.family;
    } else if (local->host.family != remote->host.family) {
        local->host = (weir__ip){.family = remote->host.family};
    }
}

static weir__udp_path path_of(weir_channel *channel, unsigned from, const weir_datagram *datagram)
{
    const weir_address *sender = NULL, *recipient = NULL;
    weir__udp_endpoint local, remote;

    if (datagram != NULL) {
        sender = weir_datagram_sender(datagram);
        recipient = weir_datagram_recipient(datagram);
    }
    if (from == WEIR__PCAP_REMOTE) {
        remote = find_endpoint(channel, WEIR__PCAP_REMOTE, sender);
        local = find_endpoint(channel, WEIR__PCAP_LOCAL, recipient);
        unify_families(channel, &local, &remote);
        return (weir__udp_path){.from = remote, .to = local};
    }
    remote = find_endpoint(channel, WEIR__PCAP_REMOTE, recipient);
    local = find_endpoint(channel, WEIR__PCAP_LOCAL, /* otherwise the sender may be the peer of the
                                                        datagram that this one answers */
                          datagram != NULL && datagram->has_source ? sender : NULL);
    unify_families(channel, &local, &remote);
    return (weir__udp_path){.from = local, .to = remote};
}

/* ---- packets ---- */

static void add_packets(weir_pcap *pcap, const weir__udp_path *path, weir_msg *content,
                        size_t segment)
{
    size_t length = weir__msg_bytes_length(content), offset = 0;
    size_t max_payload = weir__udp_packet_max_payload(path);
    size_t header_size = weir__udp_packet_header_size(path);

    if (segment > 0 && segment < max_payload)
        max_payload = segment;
    do { /* an empty datagram is a packet */
        size_t part = length - offset < max_payload ? length - offset : max_payload;
        uint8_t *packet = weir__pcap_begin(pcap, header_size + part);

        if (packet != NULL) {
            if (part > 0)
                weir__msg_bytes_copy(content, offset, packet + header_size, part);
            weir__udp_packet_write(path, packet, part);
            weir__pcap_end(pcap);
        }
        offset += part;
    } while (offset < length);
}

void weir__pcap_add_datagram(weir_pcap *pcap, weir_channel *channel, unsigned from, weir_msg *msg)
{
    weir_datagram *datagram = weir_datagram_of(msg);
    weir_msg *content = datagram != NULL ? weir_datagram_content(datagram) : msg;
    weir__udp_path path;

    if (datagram == NULL && !weir__msg_has_bytes(msg))
        return;
    path = path_of(channel, from, datagram);
    add_packets(pcap, &path, content, datagram != NULL ? weir_datagram_segment_size(datagram) : 0);
}
