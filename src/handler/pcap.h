/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A capture file, packet by packet.
 */
#ifndef WEIR_HANDLER_PCAP_H
#define WEIR_HANDLER_PCAP_H

#include <weir/diagnostics.h>

#include "handler/ip_packet.h"

#define WEIR__PCAP_PACKET_MAX \
    (WEIR__IP_PACKET_MAX + 40) /* the length of IPv6 leaves its head out */

/*
 * Where to write the next packet of so many bytes, WEIR__PCAP_PACKET_MAX at the most, each of which
 * has to be written; nobody else can until weir__pcap_end. NULL if it is left out: then there is no
 * end.
 */
uint8_t *weir__pcap_begin(weir_pcap *pcap, size_t length);
void weir__pcap_end(weir_pcap *pcap);

/* Has the packets so far written, and does not wait for it. */
void weir__pcap_push(weir_pcap *pcap);

/* Which side a packet comes from. */
enum {
    WEIR__PCAP_LOCAL,
    WEIR__PCAP_REMOTE,
};

/* The host of a side that has no address of IP. */
weir__ip weir__pcap_placeholder(unsigned side);

/* Writes a message of a datagram channel, which is a datagram or its bytes. */
void weir__pcap_add_datagram(weir_pcap *pcap, weir_channel *channel, unsigned from, weir_msg *msg);

#endif
