/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What may be the name of a host, as it is written.
 */
#ifndef WEIR_RESOLVER_HOST_NAME_H
#define WEIR_RESOLVER_HOST_NAME_H

#include <stdbool.h>
#include <stdint.h>

#define WEIR__HOST_MAX 253 /* RFC 1035, without the last dot */

typedef struct weir__host {
    char name[WEIR__HOST_MAX + 2]; /* in small letters; "x." is not "x": it is looked up as it is */
    uint16_t port;
} weir__host;

/* Reads "name:port". Fails with -EINVAL for what is no name: an address in numbers is none. */
int weir__host_parse(const char *text, weir__host *ret_host);

/* Whether it stands for this machine, or for none: "localhost" and "invalid", and what is under
 * them (RFC 6761, 6.3 and 6.4). */
bool weir__host_is_local(const char *name);
bool weir__host_is_invalid(const char *name);

#endif
