/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The header of IP for packets that were never seen on a wire, and the sum that TCP and UDP have in
 * common.
 */
#ifndef WEIR_HANDLER_IP_PACKET_H
#define WEIR_HANDLER_IP_PACKET_H

#include "base/ip.h"

#define WEIR__IP_PACKET_MAX 65535

enum {
    WEIR__IP_TCP = 6,
    WEIR__IP_UDP = 17,
};

/* From where to where: both hosts are of one family. */
typedef struct weir__ip_route {
    const weir__ip *from;
    const weir__ip *to;
} weir__ip_route;

/* Numbers as they are on the wire. */
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

/* How many bytes the header of a family has. */
size_t weir__ip_packet_header_size(int family);

/* Writes it for a payload of so many bytes, and returns where that begins. */
uint8_t *weir__ip_packet_write(weir__ip_route route, unsigned protocol, uint8_t *packet,
                               size_t length);

/* The sum of a payload in which the place for it is 0. */
uint16_t weir__ip_packet_checksum(weir__ip_route route, unsigned protocol, const uint8_t *payload,
                                  size_t length);

#endif
