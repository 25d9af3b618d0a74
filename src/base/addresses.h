/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses that are being put together.
 */
#ifndef WEIR_BASE_ADDRESSES_H
#define WEIR_BASE_ADDRESSES_H

#include <weir/address.h>

/* `count` addresses, 1 or more, that the caller has yet to write into *ret_list. NULL = no memory.
 */
weir_addresses *weir__addresses_alloc(size_t count, weir_address **ret_list);

#endif
