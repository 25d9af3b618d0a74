/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Synthetic IP and TCP headers for a captured connection, with sequence numbers and checksums.
 */
#ifndef WEIR_HANDLER_TCP_PACKET_H
#define WEIR_HANDLER_TCP_PACKET_H

#include "base/ip.h"

enum {
    WEIR__TCP_FIN = 0x01,
    WEIR__TCP_SYN = 0x02,
    WEIR__TCP_RST = 0x04,
    WEIR__TCP_PSH = 0x08,
    WEIR__TCP_ACK = 0x10,
};

/* Both endpoints have one family. */
typedef struct weir__tcp_flow {
    struct {
        weir__ip host;
        uint16_t port;
        uint32_t next_seq; /* sequence number of its next byte */
    } endpoints[2];
} weir__tcp_flow;

/* The size of both headers. */
size_t weir__tcp_packet_header_size(const weir__tcp_flow *flow);

/*
 * Writes the headers before a payload that is already in place, and advances the sequence number.
 */
void weir__tcp_packet_write(weir__tcp_flow *flow, unsigned from, unsigned flags, uint8_t *packet,
                            size_t payload);

#endif
