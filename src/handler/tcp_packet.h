/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The headers of IP and TCP for a connection that has none to be seen: with addresses, numbers and
 * sums as they would have been.
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

/* Both hosts are of one family. */
typedef struct weir__tcp_flow {
    struct {
        weir__ip host;
        uint16_t port;
        uint32_t next_seq; /* the number of its next_seq byte */
    } endpoints[2];
} weir__tcp_flow;

/* How many bytes both headers have. */
size_t weir__tcp_packet_header_size(const weir__tcp_flow *flow);

/* Writes the headers in front of a payload, which is there already; the sender's number goes on. */
void weir__tcp_packet_write(weir__tcp_flow *flow, unsigned from, unsigned flags, uint8_t *packet,
                            size_t payload);

#endif
