/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Datagrams as packets. Their addresses may be of two families: who is bound to [::] hears from
 * IPv4, too. A packet then has the family of the other side's address, and ours is that of nobody.
 */
#include <weir/channel.h>

#include "buffer/datagram.h"
#include "handler/msg_bytes.h"
#include "handler/pcap.h"
#include "handler/udp_packet.h"

/* ---- who and to whom ---- */

static weir__udp_end end_of(const weir_address *address)
{
    return (weir__udp_end){.host = weir__ip_of(address), .port = weir_address_port(address)};
}

/* What the message says of one side; otherwise the channel does. */
static weir__udp_end find_end(weir_channel *channel, unsigned side, const weir_address *said)
{
    weir_address address = {.length = 0};

    if (said != NULL && said->length > 0)
        return end_of(said);
    if (side == WEIR__PCAP_HERE)
        (void)weir_channel_local_address(channel, &address);
    else
        (void)weir_channel_remote_address(channel, &address);
    return end_of(&address);
}

static void agree(weir_channel *channel, weir__udp_end *here, weir__udp_end *there)
{
    if (here->host.family == AF_UNSPEC && there->host.family == AF_UNSPEC) {
        here->host = weir__pcap_stand_in(WEIR__PCAP_HERE);
        there->host = weir__pcap_stand_in(WEIR__PCAP_THERE);
        here->port = there->port = (uint16_t)weir_channel_id(channel);
    } else if (there->host.family == AF_UNSPEC) {
        there->host.family = here->host.family;
    } else if (here->host.family != there->host.family) {
        here->host = (weir__ip){.family = there->host.family};
    }
}

static weir__udp_path path_of(weir_channel *channel, unsigned from, const weir_datagram *datagram)
{
    const weir_address *sender = NULL, *recipient = NULL;
    weir__udp_end here, there;

    if (datagram != NULL) {
        sender = weir_datagram_sender(datagram);
        recipient = weir_datagram_recipient(datagram);
    }
    if (from == WEIR__PCAP_THERE) {
        there = find_end(channel, WEIR__PCAP_THERE, sender);
        here = find_end(channel, WEIR__PCAP_HERE, recipient);
        agree(channel, &here, &there);
        return (weir__udp_path){.from = there, .to = here};
    }
    there = find_end(channel, WEIR__PCAP_THERE, recipient);
    here = find_end(channel, WEIR__PCAP_HERE, /* otherwise the sender may be who is answered */
                    datagram != NULL && datagram->has_source ? sender : NULL);
    agree(channel, &here, &there);
    return (weir__udp_path){.from = here, .to = there};
}

/* ---- what ---- */

static void add_packet(weir_pcap *pcap, const weir__udp_path *path, weir_msg *content,
                       size_t offset, size_t length)
{
    size_t head = weir__udp_packet_head(path);
    uint8_t *packet = weir__pcap_begin(pcap, head + length);

    if (packet == NULL)
        return;
    if (length > 0)
        weir__msg_bytes_copy(content, offset, packet + head, length);
    weir__udp_packet_write(path, packet, length);
    weir__pcap_end(pcap);
}

static void add_packets(weir_pcap *pcap, const weir__udp_path *path, weir_msg *content,
                        size_t segment)
{
    size_t length = weir__msg_bytes_length(content), most = weir__udp_packet_most(path), offset = 0;

    if (segment > 0 && segment < most)
        most = segment;
    do { /* an empty one is one, too */
        size_t part = length - offset < most ? length - offset : most;

        add_packet(pcap, path, content, offset, part);
        offset += part;
    } while (offset < length);
}

void weir__pcap_add_datagram(weir_pcap *pcap, weir_channel *channel, unsigned from, weir_msg *msg)
{
    weir_datagram *datagram = weir_datagram_of(msg);
    weir_msg *content = datagram != NULL ? weir_datagram_content(datagram) : msg;
    weir__udp_path path;

    if (datagram == NULL && !weir__msg_bytes_is(msg))
        return;
    path = path_of(channel, from, datagram);
    add_packets(pcap, &path, content, datagram != NULL ? weir_datagram_segment_size(datagram) : 0);
}
