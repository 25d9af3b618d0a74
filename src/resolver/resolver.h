/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Internals of resolvers.
 */
#ifndef WEIR_RESOLVER_RESOLVER_H
#define WEIR_RESOLVER_RESOLVER_H

#include <weir/resolver.h>

#include "base/list.h"
#include "base/refcount.h"

struct weir_resolver {
    const weir_resolver_type *type;
    void *user_data;
    weir__refs refs;
};

/* The extra part of a resolution's promise, for use by the resolver. */
typedef struct weir__resolve_request {
    weir__list link;
    uint16_t port;
} weir__resolve_request;

/* Completes a promise with addresses, which it takes. */
int weir__resolver_succeed(weir_promise *promise, weir_addresses *taken);

/* Fails a promise with a detail text that names the host. */
void weir__resolver_fail(weir_promise *promise, const char *host, int err);

#endif
