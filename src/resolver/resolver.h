/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of a resolver.
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

/* What the promise of a resolution has behind it: for the resolver that it is given to. */
typedef struct weir__resolve_request {
    weir__list link;
    uint16_t port;
} weir__resolve_request;

/* Completes a promise with addresses. */
int weir__resolver_succeed(weir_promise *promise, weir_addresses *taken);

/* Fails it with a sentence that names the host. */
void weir__resolver_fail(weir_promise *promise, const char *host, int err);

#endif
