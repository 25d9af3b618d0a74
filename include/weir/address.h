/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/address.h - addresses of channels, as values, and lists of addresses.
 *
 *      "127.0.0.1:8007"   "[::1]:8007"   ":8007" (every IPv4 address)   "[::]:8007"
 *      "unix:/run/x.sock"   "unix:@name" (abstract)   "inproc:name" (inside this process)
 */
#ifndef WEIR_ADDRESS_H
#define WEIR_ADDRESS_H

#include <sys/socket.h>

#include <weir/base.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_ADDRESS_TEXT_SIZE 128 /* enough for any formatted address, with its NUL */

typedef struct weir_address {
    socklen_t length; /* bytes used in `storage`; 0 = no address */
    struct sockaddr_storage storage;
} weir_address;

/*
 * Parses an address as shown above. Host names are not resolved: see weir/resolver.h.
 * Thread: any.  Fails: -EINVAL (not an address), -ENAMETOOLONG.
 */
WEIR_API int weir_address_parse(const char *text, weir_address *ret_address);

/*
 * Formats an address as weir_address_parse accepts it; "-" if there is none. Returns `buffer`.
 * Thread: any.
 */
WEIR_API char *weir_address_format(const weir_address *address, char *buffer, size_t size);

/*
 * Converts a sockaddr.
 * Thread: any.  Fails: -EINVAL (too long).
 */
WEIR_API int weir_address_from_sockaddr(const struct sockaddr *address, socklen_t length,
                                        weir_address *ret_address);

/*
 * The address as a sockaddr of `address->length` bytes; valid as long as `address`.
 * Thread: any.
 */
WEIR_API const struct sockaddr *weir_address_sockaddr(const weir_address *address);

/*
 * The address family: AF_INET, AF_INET6, AF_UNIX, WEIR_AF_INPROC, or AF_UNSPEC without an address.
 * Thread: any.
 */
WEIR_API int weir_address_family(const weir_address *address);

#define WEIR_AF_INPROC 0x7001 /* outside the range of the system */

/*
 * The port; 0 if the family has none.
 * Thread: any.
 */
WEIR_API uint16_t weir_address_port(const weir_address *address);

/*
 * Sets the port of an IPv4 or IPv6 address; other addresses are unchanged.
 * Thread: any.
 */
WEIR_API void weir_address_set_port(weir_address *address, uint16_t port);

/*
 * True if both are the same address.
 * Thread: any.
 */
WEIR_API bool weir_address_equal(const weir_address *a, const weir_address *b);

/* --- addresses -------------------------------------------------------------------------------- */

/*
 * The addresses of a host, in the order in which to try them. Reference-counted and immutable.
 */

typedef struct weir_addresses {
    size_t count; /* 1 or more */
    const weir_address *addresses;
} weir_addresses;

/*
 * Creates a list with a copy of `addresses`.
 * Thread: any.  Gives: addresses.  Fails: -EINVAL (none), -ENOMEM.
 */
WEIR_API WEIR_MUST_USE int weir_addresses_create(const weir_address *addresses, size_t count,
                                                 weir_addresses **ret_addresses);

/*
 * Retains a reference.
 * Thread: any.
 */
WEIR_API weir_addresses *weir_addresses_retain(weir_addresses *addresses);

/*
 * Releases a reference. NULL is ignored.
 * Thread: any.  Takes: addresses.
 */
WEIR_API void weir_addresses_release(weir_addresses *addresses);

#ifdef __cplusplus
}
#endif

#endif
