/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A capture file.
 */
#ifndef WEIR_HANDLER_PCAP_H
#define WEIR_HANDLER_PCAP_H

#include <weir/diagnostics.h>

#include "handler/ip_packet.h"

#define WEIR__PCAP_PACKET_MAX \
    (WEIR__IP_PACKET_MAX + 40) /* the length field of IPv6 excludes its header */

/*
 * Reserves memory for the next packet of `length` bytes, at most WEIR__PCAP_PACKET_MAX. The caller
 * writes all of them and calls weir__pcap_end; other threads wait until then. NULL if the packet is
 * skipped, in which case weir__pcap_end must not be called.
 */
uint8_t *weir__pcap_begin(weir_pcap *pcap, size_t length);
void weir__pcap_end(weir_pcap *pcap);

/* Starts writing the packets so far, without waiting. */
void weir__pcap_push(weir_pcap *pcap);

/* The side that sent a packet. */
enum {
    WEIR__PCAP_LOCAL,
    WEIR__PCAP_REMOTE,
};

/* The address of a side without an IP address. */
weir__ip weir__pcap_placeholder(unsigned side);

/* Captures a message of a datagram channel: a datagram or bytes. */
void weir__pcap_add_datagram(weir_pcap *pcap, weir_channel *channel, unsigned from, weir_msg *msg);

#endif
