/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of addresses in words, for those who know names as well as numbers.
 */
#ifndef WEIR_BASE_ADDRESS_H
#define WEIR_BASE_ADDRESS_H

#include <weir/address.h>

/* Splits "host:port" at its last colon; whatever the host is. Fails with -EINVAL if there is none,
 * or no port behind it. */
int weir__address_split(const char *text, size_t *ret_host_length, uint16_t *ret_port);

/* Reads a number without a port, "127.0.0.1" or "::1"; the address has port 0. Fails with -EINVAL.
 */
int weir__address_parse_host(const char *host, weir_address *ret_address);

/* An internet address of its 4 or 16 bytes; and these bytes of one. */
weir_address weir__address_of_host(int family, const uint8_t *host, uint16_t port);
const uint8_t *weir__address_host(const weir_address *address, size_t *ret_length);

/* A Unix address of the bytes of its name, the 0 behind a path among them if there is one; and
 * these bytes of one, which are 108 at the most: none if it has no name. */
weir_address weir__address_of_name(const void *name, size_t length);
const uint8_t *weir__address_name(const weir_address *address, size_t *ret_length);

#endif
