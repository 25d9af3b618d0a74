/* SPDX-License-Identifier: Apache-2.0 */
#include "handler/ip_packet.h"

#include <string.h>

#define IPV4_HEADER 20
#define IPV6_HEADER 40
#define IPV4_LENGTH 4
#define IPV6_LENGTH 16
#define HOP_LIMIT 64

/* The sum of 16-bit words of RFC 1071, before folding and inverting. */
static uint32_t add_words(uint32_t sum, const uint8_t *bytes, size_t length)
{
    for (size_t i = 0; i + 1 < length; i += 2)
        sum += (uint32_t)bytes[i] << 8 | bytes[i + 1];
    if (length % 2 != 0)
        sum += (uint32_t)bytes[length - 1] << 8;
    return sum;
}

static uint16_t fold(uint32_t sum)
{
    while (sum > UINT16_MAX)
        sum = (sum & UINT16_MAX) + (sum >> 16);
    return (uint16_t)~sum;
}

size_t weir__ip_packet_header_size(int family)
{
    return family == AF_INET ? IPV4_HEADER : IPV6_HEADER;
}

static void write_ipv4(weir__ip_route route, unsigned protocol, uint8_t *to, size_t length)
{
    memset(to, 0, IPV4_HEADER);
    to[0] = 4 << 4 | IPV4_HEADER / 4;
    weir__put16(to + 2, (uint32_t)(IPV4_HEADER + length));
    weir__put16(to + 6, 0x4000); /* don't fragment */
    to[8] = HOP_LIMIT;
    to[9] = (uint8_t)protocol;
    memcpy(to + 12, route.from->bytes, IPV4_LENGTH);
    memcpy(to + 16, route.to->bytes, IPV4_LENGTH);
    weir__put16(to + 10, fold(add_words(0, to, IPV4_HEADER)));
}

static void write_ipv6(weir__ip_route route, unsigned protocol, uint8_t *to, size_t length)
{
    memset(to, 0, IPV6_HEADER);
    to[0] = 6 << 4;
    weir__put16(to + 4, (uint32_t)length);
    to[6] = (uint8_t)protocol;
    to[7] = HOP_LIMIT;
    memcpy(to + 8, route.from->bytes, IPV6_LENGTH);
    memcpy(to + 24, route.to->bytes, IPV6_LENGTH);
}

uint8_t *weir__ip_packet_write(weir__ip_route route, unsigned protocol, uint8_t *packet,
                               size_t length)
{
    if (route.from->family == AF_INET)
        write_ipv4(route, protocol, packet, length);
    else
        write_ipv6(route, protocol, packet, length);
    return packet + weir__ip_packet_header_size(route.from->family);
}

/* Includes the pseudo header: addresses, length and protocol. The unused bytes of an IPv4 address
 * are zero. */
uint16_t weir__ip_packet_checksum(weir__ip_route route, unsigned protocol, const uint8_t *payload,
                                  size_t length)
{
    uint32_t sum = protocol + (uint32_t)length;

    sum = add_words(sum, route.from->bytes, sizeof(route.from->bytes));
    sum = add_words(sum, route.to->bytes, sizeof(route.to->bytes));
    return fold(add_words(sum, payload, length));
}
