/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The headers of IP and UDP for a datagram that has come, or goes, without them.
 */
#ifndef WEIR_HANDLER_UDP_PACKET_H
#define WEIR_HANDLER_UDP_PACKET_H

#include "base/ip.h"

typedef struct weir__udp_endpoint {
    weir__ip host;
    uint16_t port;
} weir__udp_endpoint;

/* Who sends it, and to whom: both hosts are of one family. */
typedef struct weir__udp_path {
    weir__udp_endpoint from;
    weir__udp_endpoint to;
} weir__udp_path;

/* How many bytes both headers have; and how many a datagram has at the most. */
size_t weir__udp_packet_header_size(const weir__udp_path *path);
size_t weir__udp_packet_max_payload(const weir__udp_path *path);

/* Writes the headers in front of a payload, which is there already. */
void weir__udp_packet_write(const weir__udp_path *path, uint8_t *packet, size_t payload);

#endif
