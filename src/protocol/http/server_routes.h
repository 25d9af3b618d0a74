/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The routers of a server. Routes that are added make a new router of all routes, which the next
 * connections get; those that are open keep theirs. All routers live as long as the server.
 *
 * Memory order: a router is complete before it is stored to `current` (release), which connections
 * load (acquire). The list is changed under the mutex, and read without it once the server's loops
 * have ended.
 */
#ifndef WEIR_PROTOCOL_HTTP_SERVER_ROUTES_H
#define WEIR_PROTOCOL_HTTP_SERVER_ROUTES_H

#include <stdatomic.h>

#include <weir/http_server.h>

#include "os/mutex.h"

typedef struct weir__http_server_routes {
    _Atomic(weir_http_router *) current;
    weir__mutex mutex;
    struct weir__http_added_routes *newest; /* a list down to the first ones */
} weir__http_server_routes;

/* Begins with routes, or with a router, which is retained. Fails as weir_http_router_create. */
int weir__http_server_routes_init(weir__http_server_routes *routes, const weir_http_route *first,
                                  weir_http_router *router);

/* Calls the functions that were added with routes, the newest first, and frees all routers. */
void weir__http_server_routes_deinit(weir__http_server_routes *routes);

/* As weir_http_server_add_routes. */
int weir__http_server_routes_add(weir__http_server_routes *routes, const weir_http_route *more,
                                 void (*released)(void *arg), void *arg);

/* The argument that was added with this function; NULL if there is none. */
void *weir__http_server_routes_find(weir__http_server_routes *routes, void (*released)(void *arg));

/* The router of new connections, borrowed. */
static inline weir_http_router *
weir__http_server_routes_current(const weir__http_server_routes *routes)
{
    return atomic_load_explicit(&routes->current, memory_order_acquire);
}

#endif
