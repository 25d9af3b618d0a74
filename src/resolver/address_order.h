/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of a host's addresses: by family, and each time another first.
 */
#ifndef WEIR_RESOLVER_ADDRESS_ORDER_H
#define WEIR_RESOLVER_ADDRESS_ORDER_H

#include <weir/resolver.h>

/* Leaves out the addresses that are not wanted, and puts those first that are preferred; otherwise
 * the order stays. Returns how many are left. */
size_t weir__address_order(enum weir_family family, weir_address *addresses, size_t count);

/* Copies addresses, those of each family moved on by `rotation` places, and sets their port. NULL =
 * no memory. */
weir_addresses *weir__address_rotate(const weir_addresses *addresses, unsigned rotation,
                                     uint16_t port);

#endif
