/* SPDX-License-Identifier: Apache-2.0 */
#include "base/ip.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "base/address.h"

#define MAPPED_BITS 96 /* prefix of IPv4-mapped addresses, ::ffff:0:0/96 */

static weir__ip ip_of_in6(const struct in6_addr *in6)
{
    weir__ip ip = {.family = AF_INET6};

    if (IN6_IS_ADDR_V4MAPPED(in6)) {
        ip.family = AF_INET;
        memcpy(ip.bytes, in6->s6_addr + MAPPED_BITS / 8, 4);
    } else {
        memcpy(ip.bytes, in6->s6_addr, sizeof(ip.bytes));
    }
    return ip;
}

weir__ip weir__ip_of(const weir_address *address)
{
    weir__ip ip = {.family = weir_address_family(address)};

    if (ip.family == AF_INET6)
        return ip_of_in6(&((const struct sockaddr_in6 *)&address->storage)->sin6_addr);
    if (ip.family == AF_INET)
        memcpy(ip.bytes, &((const struct sockaddr_in *)&address->storage)->sin_addr, 4);
    else
        ip.family = AF_UNSPEC;
    return ip;
}

/* ---- subnets ---- */

static int parse_bits(const char *text, unsigned max, unsigned *ret_bits)
{
    char *end;
    unsigned long bits;

    if (*text < '0' || *text > '9')
        return -EINVAL;
    bits = strtoul(text, &end, 10);
    if (*end != '\0' || bits > max)
        return -EINVAL;
    *ret_bits = (unsigned)bits;
    return 0;
}

int weir__subnet_parse(const char *text, weir__subnet *ret_subnet)
{
    const char *slash = text != NULL ? strchr(text, '/') : NULL;
    char host[WEIR_ADDRESS_TEXT_SIZE];
    weir_address address;
    unsigned max, bits;
    weir__ip ip;
    size_t length;

    if (text == NULL)
        return -EINVAL;
    length = slash != NULL ? (size_t)(slash - text) : strlen(text);
    if (length >= sizeof(host) || memchr(text, '%', length) != NULL)
        return -EINVAL;
    memcpy(host, text, length);
    host[length] = '\0';
    if (weir__address_parse_host(host, &address) < 0)
        return -EINVAL;
    max = bits = weir_address_family(&address) == AF_INET ? 32 : 128;
    if (slash != NULL && parse_bits(slash + 1, max, &bits) < 0)
        return -EINVAL;
    ip = weir__ip_of(&address);
    if (ip.family == AF_INET && max == 128) { /* IPv4-mapped */
        if (bits < MAPPED_BITS)
            return -EINVAL;
        bits -= MAPPED_BITS;
    }
    *ret_subnet = (weir__subnet){.ip = ip, .bits = bits};
    return 0;
}

bool weir__subnet_contains(const weir__subnet *subnet, const weir__ip *ip)
{
    size_t whole = subnet->bits / 8;
    uint8_t mask = (uint8_t)(0xff00u >> subnet->bits % 8);

    if (ip->family != subnet->ip.family || memcmp(ip->bytes, subnet->ip.bytes, whole) != 0)
        return false;
    return mask == 0 || ((ip->bytes[whole] ^ subnet->ip.bytes[whole]) & mask) == 0;
}
