/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An internet address without its port. An IPv4 address that comes in IPv6 clothes, as it does on a
 * listener for both, is the IPv4 address: who filters one of them means the other, too.
 */
#ifndef WEIR_BASE_IP_H
#define WEIR_BASE_IP_H

#include <weir/address.h>

typedef struct weir__ip {
    int family;        /* AF_INET, AF_INET6, or AF_UNSPEC: there is none */
    uint8_t bytes[16]; /* the first 4 of an IPv4 address; the rest is 0 */
} weir__ip;

weir__ip weir__ip_of(const weir_address *address);

typedef struct weir__subnet {
    weir__ip ip;
    unsigned bits; /* so many have to be the same */
} weir__subnet;

/* Reads "10.0.0.0/8", "2001:db8::/32", or an address alone. Fails with -EINVAL. */
int weir__subnet_parse(const char *text, weir__subnet *ret_subnet);

bool weir__subnet_contains(const weir__subnet *subnet, const weir__ip *ip);

#endif
