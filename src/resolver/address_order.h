/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of a host's addresses: by family, and rotated.
 */
#ifndef WEIR_RESOLVER_ADDRESS_ORDER_H
#define WEIR_RESOLVER_ADDRESS_ORDER_H

#include <weir/resolver.h>

/* Removes addresses of an excluded family and moves those of a preferred one to the front, keeping
 * the order otherwise. Returns the number left. */
size_t weir__address_order(enum weir_family family, weir_address *addresses, size_t count);

/* Copies the addresses, rotates those of each family by `rotation` positions, and sets the port.
 * NULL: no memory. */
weir_addresses *weir__address_rotate(const weir_addresses *addresses, unsigned rotation,
                                     uint16_t port);

#endif
