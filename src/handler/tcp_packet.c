/* SPDX-License-Identifier: Apache-2.0 */
#include "handler/tcp_packet.h"

#include <string.h>

#include "handler/ip_packet.h"

#define TCP_HEAD 20
#define WINDOW 65535

size_t weir__tcp_packet_head(const weir__tcp_flow *flow)
{
    return weir__ip_packet_head(flow->ends[0].host.family) + TCP_HEAD;
}

void weir__tcp_packet_write(weir__tcp_flow *flow, unsigned from, unsigned flags, uint8_t *packet,
                            size_t payload)
{
    weir__ip_route route = {.from = &flow->ends[from].host, .to = &flow->ends[!from].host};
    size_t length = TCP_HEAD + payload;
    uint8_t *tcp = weir__ip_packet_write(route, WEIR__IP_TCP, packet, length);

    memset(tcp, 0, TCP_HEAD);
    weir__put16(tcp, flow->ends[from].port);
    weir__put16(tcp + 2, flow->ends[!from].port);
    weir__put32(tcp + 4, flow->ends[from].next);
    if ((flags & WEIR__TCP_ACK) != 0)
        weir__put32(tcp + 8, flow->ends[!from].next);
    tcp[12] = TCP_HEAD / 4 << 4;
    tcp[13] = (uint8_t)flags;
    weir__put16(tcp + 14, WINDOW);
    weir__put16(tcp + 16, weir__ip_packet_sum(route, WEIR__IP_TCP, tcp, length));
    flow->ends[from].next += (uint32_t)payload;
    if ((flags & (WEIR__TCP_SYN | WEIR__TCP_FIN)) != 0)
        flow->ends[from].next++; /* both count as a byte */
}
