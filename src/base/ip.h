/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An IP address without a port. IPv4-mapped IPv6 addresses, as a dual-stack listener sees them, are
 * converted to IPv4, so that filters treat both alike.
 */
#ifndef WEIR_BASE_IP_H
#define WEIR_BASE_IP_H

#include <weir/address.h>

typedef struct weir__ip {
    int family;        /* AF_INET, AF_INET6, or AF_UNSPEC = none */
    uint8_t bytes[16]; /* IPv4: the first 4; the rest is 0 */
} weir__ip;

weir__ip weir__ip_of(const weir_address *address);

typedef struct weir__subnet {
    weir__ip ip;
    unsigned bits; /* prefix length */
} weir__subnet;

/* Parses "10.0.0.0/8", "2001:db8::/32", or a single address. Fails with -EINVAL. */
int weir__subnet_parse(const char *text, weir__subnet *ret_subnet);

bool weir__subnet_contains(const weir__subnet *subnet, const weir__ip *ip);

#endif
