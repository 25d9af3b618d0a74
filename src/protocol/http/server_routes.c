/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/http/server_routes.h"

#include <errno.h>

#include <weir/memory.h>

#include "protocol/http/exchange.h"

struct weir__http_added_routes {
    struct weir__http_added_routes *older;
    weir_http_router *router;
    void (*released)(void *arg); /* NULL = none */
    void *arg;
};

/* Takes the router. The caller has the mutex, or is alone. */
static int push(weir__http_server_routes *routes, weir_http_router *router,
                void (*released)(void *arg), void *arg)
{
    struct weir__http_added_routes *added = weir_memory_alloc(sizeof(*added));

    if (added == NULL) {
        weir_http_router_release(router);
        return -ENOMEM;
    }
    *added = (struct weir__http_added_routes){routes->newest, router, released, arg};
    routes->newest = added;
    atomic_store_explicit(&routes->current, router, memory_order_release);
    return 0;
}

int weir__http_server_routes_init(weir__http_server_routes *routes, const weir_http_route *first,
                                  weir_http_router *router)
{
    int err = 0;

    if (router != NULL)
        (void)weir_http_router_retain(router);
    else
        err = weir_http_router_create(first, &router);
    weir__mutex_init(&routes->mutex);
    routes->newest = NULL;
    atomic_init(&routes->current, NULL);
    return err == 0 ? push(routes, router, NULL, NULL) : err;
}

void weir__http_server_routes_deinit(weir__http_server_routes *routes)
{
    struct weir__http_added_routes *added;

    for (added = routes->newest; added != NULL; added = added->older)
        if (added->released != NULL)
            added->released(added->arg);
    while ((added = routes->newest) != NULL) {
        routes->newest = added->older;
        weir_http_router_release(added->router);
        weir_memory_free(added);
    }
    weir__mutex_deinit(&routes->mutex);
}

/* The caller has the mutex. */
static int add(weir__http_server_routes *routes, const weir_http_route *more,
               void (*released)(void *arg), void *arg)
{
    weir_http_router *router = NULL;
    int err = weir__http_router_extend(weir__http_server_routes_current(routes), more, &router);

    return err == 0 ? push(routes, router, released, arg) : err;
}

int weir__http_server_routes_add(weir__http_server_routes *routes, const weir_http_route *more,
                                 void (*released)(void *arg), void *arg)
{
    int err;

    weir__mutex_lock(&routes->mutex);
    err = add(routes, more, released, arg);
    weir__mutex_unlock(&routes->mutex);
    if (err < 0 && released != NULL)
        released(arg);
    return err;
}

void *weir__http_server_routes_find(weir__http_server_routes *routes, void (*released)(void *arg))
{
    const struct weir__http_added_routes *added;

    weir__mutex_lock(&routes->mutex);
    for (added = routes->newest; added != NULL && added->released != released;)
        added = added->older;
    weir__mutex_unlock(&routes->mutex);
    return added != NULL ? added->arg : NULL;
}
