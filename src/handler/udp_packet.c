/* SPDX-License-Identifier: Apache-2.0 */
#include "handler/udp_packet.h"

#include "handler/ip_packet.h"

#define UDP_HEADER 8

size_t weir__udp_packet_header_size(const weir__udp_path *path)
{
    return weir__ip_packet_header_size(path->from.host.family) + UDP_HEADER;
}

/* The length field of IPv4 includes its header, that of IPv6 does not. */
size_t weir__udp_packet_max_payload(const weir__udp_path *path)
{
    size_t max_payload = WEIR__IP_PACKET_MAX - UDP_HEADER;

    return path->from.host.family == AF_INET ? max_payload - weir__ip_packet_header_size(AF_INET)
                                             : max_payload;
}

void weir__udp_packet_write(const weir__udp_path *path, uint8_t *packet, size_t payload)
{
    weir__ip_route route = {.from = &path->from.host, .to = &path->to.host};
    size_t length = UDP_HEADER + payload;
    uint8_t *udp = weir__ip_packet_write(route, WEIR__IP_UDP, packet, length);
    uint16_t checksum;

    weir__put16(udp, path->from.port);
    weir__put16(udp + 2, path->to.port);
    weir__put16(udp + 4, (uint32_t)length);
    weir__put16(udp + 6, 0);
    checksum = weir__ip_packet_checksum(route, WEIR__IP_UDP, udp, length);
    weir__put16(udp + 6, checksum != 0 ? checksum : UINT16_MAX); /* 0 means no checksum */
}
