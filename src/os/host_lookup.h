/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The resolver of libc, which may block for a long time: not for event loops.
 */
#ifndef WEIR_OS_HOST_LOOKUP_H
#define WEIR_OS_HOST_LOOKUP_H

#include <weir/address.h>

/*
 * Looks up at most `max` addresses of a host, in the order of the system (RFC 6724) and with port
 * 0. The family is AF_INET, AF_INET6, or AF_UNSPEC for both. Fails with WEIR_ENOHOST, WEIR_ELOOKUP
 * (temporary), -ENOMEM, -errno.
 */
typedef int weir__host_lookup_fn(const char *host, int family, weir_address *ret_addresses,
                                 size_t max, size_t *ret_count);

weir__host_lookup_fn weir__host_lookup;

#endif
