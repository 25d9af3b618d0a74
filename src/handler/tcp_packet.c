/* SPDX-License-Identifier: Apache-2.0 */
#include "handler/tcp_packet.h"

#include <string.h>

#include "handler/ip_packet.h"

#define TCP_HEADER 20
#define WINDOW 65535

size_t weir__tcp_packet_header_size(const weir__tcp_flow *flow)
{
    return weir__ip_packet_header_size(flow->endpoints[0].host.family) + TCP_HEADER;
}

void weir__tcp_packet_write(weir__tcp_flow *flow, unsigned from, unsigned flags, uint8_t *packet,
                            size_t payload)
{
    weir__ip_route route = {.from = &flow->endpoints[from].host,
                            .to = &flow->endpoints[!from].host};
    size_t length = TCP_HEADER + payload;
    uint8_t *tcp = weir__ip_packet_write(route, WEIR__IP_TCP, packet, length);

    memset(tcp, 0, TCP_HEADER);
    weir__put16(tcp, flow->endpoints[from].port);
    weir__put16(tcp + 2, flow->endpoints[!from].port);
    weir__put32(tcp + 4, flow->endpoints[from].next_seq);
    if ((flags & WEIR__TCP_ACK) != 0)
        weir__put32(tcp + 8, flow->endpoints[!from].next_seq);
    tcp[12] = TCP_HEADER / 4 << 4;
    tcp[13] = (uint8_t)flags;
    weir__put16(tcp + 14, WINDOW);
    weir__put16(tcp + 16, weir__ip_packet_checksum(route, WEIR__IP_TCP, tcp, length));
    flow->endpoints[from].next_seq += (uint32_t)payload;
    if ((flags & (WEIR__TCP_SYN | WEIR__TCP_FIN)) != 0)
        flow->endpoints[from].next_seq++; /* both count as a byte */
}
