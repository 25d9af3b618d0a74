/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/address.h - where a channel is bound or connected to. A value: copy it as you like.
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

#define WEIR_ADDRESS_TEXT_SIZE 128 /* room for any address in words, and its 0 */

typedef struct weir_address {
    socklen_t length; /* of what is used of `storage`; 0 = no address */
    struct sockaddr_storage storage;
} weir_address;

/*
 * Reads an address as above; no names: see the resolver for those.
 * Thread: any.  Fails: -EINVAL (not an address), -ENAMETOOLONG.
 */
WEIR_API int weir_address_parse(const char *text, weir_address *ret_address);

/*
 * Writes an address as weir_address_parse reads it; "-" if there is none. Returns `buffer`.
 * Thread: any.
 */
WEIR_API char *weir_address_format(const weir_address *address, char *buffer, size_t size);

/*
 * Copies a socket address of the system.
 * Thread: any.  Fails: -EINVAL (too long).
 */
WEIR_API int weir_address_from_sockaddr(const struct sockaddr *address, socklen_t length,
                                        weir_address *ret_address);

/*
 * The system's view of an address, valid as long as it.
 * Thread: any.
 */
WEIR_API const struct sockaddr *weir_address_sockaddr(const weir_address *address);

/*
 * AF_INET, AF_INET6, AF_UNIX, WEIR_AF_INPROC, or AF_UNSPEC if there is no address.
 * Thread: any.
 */
WEIR_API int weir_address_family(const weir_address *address);

#define WEIR_AF_INPROC 0x7001 /* beyond the system's families */

/*
 * The port, 0 where there is none.
 * Thread: any.
 */
WEIR_API uint16_t weir_address_port(const weir_address *address);

/*
 * Changes the port of an internet address; does nothing to others.
 * Thread: any.
 */
WEIR_API void weir_address_set_port(weir_address *address, uint16_t port);

/*
 * Whether both are the same address.
 * Thread: any.
 */
WEIR_API bool weir_address_equal(const weir_address *a, const weir_address *b);

/* --- addresses -------------------------------------------------------------------------------- */

/*
 * The addresses of a host, in the order to be tried. Refcounted, and never
 * changed.
 */

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
