/* SPDX-License-Identifier: Apache-2.0 */
#include "handler/tcp_packet.h"

#include <string.h>

#define IPV4_HEAD 20
#define IPV6_HEAD 40
#define TCP_HEAD 20
#define PROTOCOL_TCP 6
#define HOPS 64
#define WINDOW 65535
#define IPV4_LENGTH 4
#define IPV6_LENGTH 16

static void put16(uint8_t *to, uint32_t number)
{
    to[0] = (uint8_t)(number >> 8);
    to[1] = (uint8_t)number;
}

static void put32(uint8_t *to, uint32_t number)
{
    put16(to, number >> 16);
    put16(to + 2, number);
}

/* Of RFC 1071: the sum of words, to be folded and inverted when all are in. */
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

static bool is_ipv4(const weir__tcp_flow *flow)
{
    return flow->ends[0].host.family == AF_INET;
}

size_t weir__tcp_packet_head(const weir__tcp_flow *flow)
{
    return (is_ipv4(flow) ? IPV4_HEAD : IPV6_HEAD) + TCP_HEAD;
}

static uint8_t *write_ipv4(const weir__tcp_flow *flow, unsigned from, uint8_t *to, size_t length)
{
    memset(to, 0, IPV4_HEAD);
    to[0] = 4 << 4 | IPV4_HEAD / 4;
    put16(to + 2, (uint32_t)(IPV4_HEAD + length));
    put16(to + 6, 0x4000); /* not to be cut */
    to[8] = HOPS;
    to[9] = PROTOCOL_TCP;
    memcpy(to + 12, flow->ends[from].host.bytes, IPV4_LENGTH);
    memcpy(to + 16, flow->ends[!from].host.bytes, IPV4_LENGTH);
    put16(to + 10, fold(add_words(0, to, IPV4_HEAD)));
    return to + IPV4_HEAD;
}

static uint8_t *write_ipv6(const weir__tcp_flow *flow, unsigned from, uint8_t *to, size_t length)
{
    memset(to, 0, IPV6_HEAD);
    to[0] = 6 << 4;
    put16(to + 4, (uint32_t)length);
    to[6] = PROTOCOL_TCP;
    to[7] = HOPS;
    memcpy(to + 8, flow->ends[from].host.bytes, IPV6_LENGTH);
    memcpy(to + 24, flow->ends[!from].host.bytes, IPV6_LENGTH);
    return to + IPV6_HEAD;
}

/* Both addresses, the length and the protocol belong to it. What follows the address of IPv4 in its
 * bytes is 0, and adds nothing. */
static uint16_t sum_of(const weir__tcp_flow *flow, const uint8_t *tcp, size_t length)
{
    uint32_t sum = PROTOCOL_TCP + (uint32_t)length;

    for (int i = 0; i < 2; i++)
        sum = add_words(sum, flow->ends[i].host.bytes, sizeof(flow->ends[i].host.bytes));
    return fold(add_words(sum, tcp, length));
}

void weir__tcp_packet_write(weir__tcp_flow *flow, unsigned from, unsigned flags, uint8_t *packet,
                            size_t payload)
{
    uint8_t *tcp = is_ipv4(flow) ? write_ipv4(flow, from, packet, TCP_HEAD + payload)
                                 : write_ipv6(flow, from, packet, TCP_HEAD + payload);

    memset(tcp, 0, TCP_HEAD);
    put16(tcp, flow->ends[from].port);
    put16(tcp + 2, flow->ends[!from].port);
    put32(tcp + 4, flow->ends[from].next);
    if ((flags & WEIR__TCP_ACK) != 0)
        put32(tcp + 8, flow->ends[!from].next);
    tcp[12] = TCP_HEAD / 4 << 4;
    tcp[13] = (uint8_t)flags;
    put16(tcp + 14, WINDOW);
    put16(tcp + 16, sum_of(flow, tcp, TCP_HEAD + payload));
    flow->ends[from].next += (uint32_t)payload;
    if ((flags & (WEIR__TCP_SYN | WEIR__TCP_FIN)) != 0)
        flow->ends[from].next++; /* both count as a byte */
}
