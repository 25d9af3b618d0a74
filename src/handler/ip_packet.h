/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Synthetic IP headers for captures, and the checksum of TCP and UDP.
 */
#ifndef WEIR_HANDLER_IP_PACKET_H
#define WEIR_HANDLER_IP_PACKET_H

#include "base/ip.h"

#define WEIR__IP_PACKET_MAX 65535

enum {
    WEIR__IP_TCP = 6,
    WEIR__IP_UDP = 17,
};

/* Source and destination, of one family. */
typedef struct weir__ip_route {
    const weir__ip *from;
    const weir__ip *to;
} weir__ip_route;

/* Big-endian numbers. */
static inline void weir__put16(uint8_t *to, uint32_t number)
{
    to[0] = (uint8_t)(number >> 8);
    to[1] = (uint8_t)number;
}

static inline void weir__put32(uint8_t *to, uint32_t number)
{
    weir__put16(to, number >> 16);
    weir__put16(to + 2, number);
}

/* The size of the IP header of a family. */
size_t weir__ip_packet_header_size(int family);

/* Writes the header for a payload of `length` bytes, and returns the address of the payload. */
uint8_t *weir__ip_packet_write(weir__ip_route route, unsigned protocol, uint8_t *packet,
                               size_t length);

/* The checksum of a payload whose checksum field is 0. */
uint16_t weir__ip_packet_checksum(weir__ip_route route, unsigned protocol, const uint8_t *payload,
                                  size_t length);

#endif
