/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Synthetic IP and UDP headers for captured datagrams.
 */
#ifndef WEIR_HANDLER_UDP_PACKET_H
#define WEIR_HANDLER_UDP_PACKET_H

#include "base/ip.h"

typedef struct weir__udp_endpoint {
    weir__ip host;
    uint16_t port;
} weir__udp_endpoint;

/* Source and destination, of one family. */
typedef struct weir__udp_path {
    weir__udp_endpoint from;
    weir__udp_endpoint to;
} weir__udp_path;

/* The size of both headers, and the maximum size of a payload. */
size_t weir__udp_packet_header_size(const weir__udp_path *path);
size_t weir__udp_packet_max_payload(const weir__udp_path *path);

/* Writes the headers before a payload that is already in place. */
void weir__udp_packet_write(const weir__udp_path *path, uint8_t *packet, size_t payload);

#endif
