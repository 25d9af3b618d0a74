/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Building a weir_addresses.
 */
#ifndef WEIR_BASE_ADDRESSES_H
#define WEIR_BASE_ADDRESSES_H

#include <weir/address.h>

/* Allocates a list of `count` addresses, at least 1, for the caller to fill in *ret_list. NULL
 * without memory. */
weir_addresses *weir__addresses_alloc(size_t count, weir_address **ret_list);

#endif
