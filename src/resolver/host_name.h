/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parsing of host names.
 */
#ifndef WEIR_RESOLVER_HOST_NAME_H
#define WEIR_RESOLVER_HOST_NAME_H

#include <stdbool.h>
#include <stdint.h>

#define WEIR__HOST_MAX 253 /* RFC 1035, without the last dot */

typedef struct weir__host {
    char
        name[WEIR__HOST_MAX + 2]; /* lower case; a final dot is kept, because "x." and "x" differ */
    uint16_t port;
} weir__host;

/* Parses "name:port". Fails with -EINVAL if the name is invalid or a numeric address. */
int weir__host_parse(const char *text, weir__host *ret_host);

/* True for "localhost" and "invalid" and the names below them (RFC 6761, 6.3 and 6.4). */
bool weir__host_is_local(const char *name);
bool weir__host_is_invalid(const char *name);

#endif
