/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/addresses.h - the addresses of a host, in the order to be tried. Refcounted, and never
 * changed.
 */
#ifndef WEIR_ADDRESSES_H
#define WEIR_ADDRESSES_H

#include <weir/address.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_addresses {
    size_t count; /* 1 or more */
    const weir_address *addresses;
} weir_addresses;

/*
 * Copies addresses.
 * Thread: any.  Gives: addresses.  Fails: -EINVAL (none), -ENOMEM.
 */
WEIR_API int weir_addresses_create(const weir_address *addresses, size_t count,
                                   weir_addresses **ret_addresses);

/*
 * Keeps them.
 * Thread: any.
 */
WEIR_API weir_addresses *weir_addresses_retain(weir_addresses *addresses);

/*
 * Gives a reference back; NULL is fine.
 * Thread: any.  Takes: addresses.
 */
WEIR_API void weir_addresses_release(weir_addresses *addresses);

#ifdef __cplusplus
}
#endif

#endif
