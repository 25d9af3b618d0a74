/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Internal functions on addresses and their parts.
 */
#ifndef WEIR_BASE_ADDRESS_H
#define WEIR_BASE_ADDRESS_H

#include <weir/address.h>

/* Splits "host:port" at its last colon; the host is not checked. Fails with -EINVAL without a colon
 * or a valid port. */
int weir__address_split(const char *text, size_t *ret_host_length, uint16_t *ret_port);

/* Parses an IP address without a port, "127.0.0.1" or "::1", as an address with port 0. Fails with
 * -EINVAL. */
int weir__address_parse_host(const char *host, weir_address *ret_address);

/* Convert between an internet address and the 4 or 16 bytes of its host. */
weir_address weir__address_of_host(int family, const uint8_t *host, uint16_t port);
const uint8_t *weir__address_host(const weir_address *address, size_t *ret_length);

/* Convert between a Unix address and the bytes of its name, including the NUL behind a path if
 * there is one: at most 108, 0 if it has no name. */
weir_address weir__address_of_name(const void *name, size_t length);
const uint8_t *weir__address_name(const weir_address *address, size_t *ret_length);

#endif
