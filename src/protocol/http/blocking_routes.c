/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/http/blocking_routes.h"

#include <inttypes.h>
#include <string.h>

#include <weir/channel.h>

#include "base/log.h"
#include "os/mutex.h"

const char weir__http_offloaded = 0;

static weir__mutex lock = WEIR__MUTEX_INIT; /* of everything here, and of `blocks` of the routes */
static weir__list trees = {&trees, &trees};
static bool has_blocked; /* a route of any tree, at any time */

/* ---- functions ---- */

static bool is_function(weir_http_handler_fn *fn, const void *function)
{
    const void *address;

    memcpy(&address, &fn, sizeof(address));
    return address == function;
}

static bool is_content_function(const weir__http_route *route, const void *function)
{
    /* Relaxed: the address is all that counts. */
    weir_http_content_fn *fn = atomic_load_explicit(&route->content_fn, memory_order_relaxed);
    const void *address;

    memcpy(&address, &fn, sizeof(address));
    return address == function;
}

static bool has_function(const weir__http_route *route, const void *function)
{
    return is_function(route->given.handler, function) || is_content_function(route, function);
}

void weir__http_route_set_content_fn(const weir__http_route *route, weir_http_content_fn *fn)
{
    weir__http_route *own = (weir__http_route *)(uintptr_t)route;

    if (atomic_load_explicit(&route->content_fn, memory_order_relaxed) != fn)
        atomic_store_explicit(&own->content_fn, fn, memory_order_relaxed);
}

/* ---- marks ---- */

static bool runs_on_loop(const weir__http_route *route)
{
    return atomic_load_explicit(&route->runs_on, memory_order_relaxed) == NULL;
}

/* Release: with the loop's acquire in `run`, which then reads `blocks`. */
static void mark(weir__http_route *route)
{
    atomic_store_explicit(&route->runs_on, WEIR__HTTP_OFFLOADED, memory_order_release);
}

/* Counts a block of the routes with this function. Returns false if there are none on a loop. */
static bool count_block(const void *function, uint64_t limit, size_t *ret_moved)
{
    weir__http_route *route;
    bool is_found = false;

    weir_list_foreach (link, &trees) {
        weir__http_route_tree *tree = weir__http_route_tree_of(link);

        for (size_t i = 0; (route = weir__http_route_tree_at(tree, i)) != NULL; i++) {
            if (!runs_on_loop(route) || !has_function(route, function))
                continue;
            is_found = true;
            if (++route->blocks > limit) {
                mark(route);
                ++*ret_moved;
            }
        }
    }
    return is_found;
}

size_t weir__http_routes_blocked(const void *const *functions, size_t count, uint64_t limit)
{
    bool is_found = false;
    size_t moved = 0;

    weir__mutex_lock(&lock);
    for (size_t i = 0; i < count && !is_found; i++)
        is_found = functions[i] != NULL && count_block(functions[i], limit, &moved);
    has_blocked = has_blocked || is_found;
    weir__mutex_unlock(&lock);
    return moved;
}

/* ---- trees ---- */

/* A route of a new tree continues where one with its handler is. */
static void continue_route(weir__http_route *route)
{
    const weir__http_route *other;

    weir_list_foreach (link, &trees) {
        weir__http_route_tree *tree = weir__http_route_tree_of(link);

        for (size_t i = 0; (other = weir__http_route_tree_at(tree, i)) != NULL; i++) {
            if (other->given.handler != route->given.handler || other->blocks <= route->blocks)
                continue;
            route->blocks = other->blocks;
            if (!runs_on_loop(other) && runs_on_loop(route))
                mark(route);
        }
    }
}

void weir__http_blocking_routes_add(weir__http_route_tree *tree)
{
    weir__http_route *route;

    weir__mutex_lock(&lock);
    for (size_t i = 0; has_blocked && (route = weir__http_route_tree_at(tree, i)) != NULL; i++)
        continue_route(route);
    weir__list_append(&trees, weir__http_route_tree_link(tree));
    weir__mutex_unlock(&lock);
}

void weir__http_blocking_routes_remove(weir__http_route_tree *tree)
{
    weir__mutex_lock(&lock);
    weir__list_remove(weir__http_route_tree_link(tree));
    weir__mutex_unlock(&lock);
}

/* ---- requests ---- */

static bool is_first(const atomic_bool *is_done)
{
    return !atomic_exchange_explicit((atomic_bool *)(uintptr_t)is_done, true, memory_order_relaxed);
}

weir_group *weir__http_route_offload_group(const weir__http_route *route, weir_channel *channel)
{
    weir_channel_options options;
    weir_group *group;

    weir_channel_get_options(channel, &options);
    group = options.offload_when_blocking;
    if (group != NULL && is_first(&route->is_move_logged))
        weir__warn("http", route->given.path,
                   "the handler has blocked its loop %" PRIu64
                   " times: from now on it runs on the group of \"%s\"",
                   route->blocks, weir_executor_name(weir_group_at(group, 0)));
    return group;
}

void weir__http_route_log_rejection(const weir__http_route *route)
{
    if (is_first(&route->is_rejection_logged))
        weir__warn("http", route->given.path,
                   "the handler blocks and runs on the loop: the group of offload_when_blocking "
                   "has ended");
}
