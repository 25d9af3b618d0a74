/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Routers: a compiled tree of routes, shared by the connections of a server.
 */
#include <errno.h>
#include <string.h>

#include <weir/memory.h>

#include "base/log.h"
#include "base/refcount.h"
#include "protocol/http/exchange.h"

struct weir_http_router {
    weir__refs refs;
    weir__http_route_tree *tree;
    weir_buf *empty; /* the content of requests without any */
};

int weir_http_router_create(const weir_http_route *routes, weir_http_router **ret_router)
{
    weir_http_router *router;
    int err;

    if (routes == NULL)
        return -EINVAL;
    router = weir_memory_alloc(sizeof(*router));
    if (router == NULL)
        return -ENOMEM;
    err = weir_buf_wrap_static("", 0, &router->empty);
    if (err == 0) {
        err = weir__http_route_tree_create(routes, &router->tree);
        if (err < 0)
            weir_buf_release(router->empty);
    }
    if (err < 0) {
        weir_memory_free(router);
        return err;
    }
    weir__refs_init(&router->refs);
    *ret_router = router;
    return 0;
}

int weir__http_router_extend(const weir_http_router *router, const weir_http_route *more,
                             weir_http_router **ret_router)
{
    size_t count = weir__http_route_tree_count(router->tree), more_count = 0;
    weir_http_route *all;
    int err;

    if (more == NULL)
        return -EINVAL;
    while (more[more_count].path != NULL)
        more_count++;
    all = weir_memory_alloc((count + more_count + 1) * sizeof(*all));
    if (all == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++)
        all[i] = weir__http_route_tree_route(router->tree, i);
    memcpy(all + count, more, (more_count + 1) * sizeof(*all));
    err = weir_http_router_create(all, ret_router);
    weir_memory_free(all);
    return err;
}

weir_http_router *weir_http_router_retain(weir_http_router *router)
{
    weir__refs_retain(&router->refs);
    return router;
}

void weir_http_router_release(weir_http_router *router)
{
    if (router == NULL || !weir__refs_release(&router->refs))
        return;
    weir__http_route_tree_free(router->tree);
    weir_buf_release(router->empty);
    weir_memory_free(router);
}

const weir__http_route_tree *weir__http_router_tree(const weir_http_router *router)
{
    return router->tree;
}

weir_buf *weir__http_router_empty(const weir_http_router *router)
{
    return router->empty;
}

int weir_http_router_add(weir_pipeline *pipeline, weir_http_router *router, uint64_t max_content)
{
    const struct weir__exchange_handler_options options = {router, max_content};

    return weir_pipeline_add_last(pipeline, &weir__http_exchange_handler, &options);
}
