/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Routes whose functions block: the option offload_when_blocking of channels.
 *
 * The handler of exchanges runs the functions of all routes, so not it is moved but the routes. The
 * watchdog finds the function of a route, or that for its content, in the stack of a blocked loop.
 * After some blocks, all routes with this function are marked, in all routers, present and future.
 * From then on their requests run on the group of their channel, as those of a route with a group.
 *
 * `runs_on` of a route is written here, under a lock, and read by the loops without it. It is a
 * single word: a request that is dispatched meanwhile runs where the route ran before.
 */
#ifndef WEIR_PROTOCOL_HTTP_BLOCKING_ROUTES_H
#define WEIR_PROTOCOL_HTTP_BLOCKING_ROUTES_H

#include "protocol/http/route_tree.h"

/* The value of `runs_on` of a route that blocks: the group of the channel. */
#define WEIR__HTTP_OFFLOADED ((weir_group *)(uintptr_t)&weir__http_offloaded)
extern const char weir__http_offloaded;

/* Any thread: a tree was created; one is about to be freed. */
void weir__http_blocking_routes_add(weir__http_route_tree *tree);
void weir__http_blocking_routes_remove(weir__http_route_tree *tree);

/* On the loop: the handler of a route, which runs there, has set this function for its content. */
void weir__http_route_set_content_fn(const weir__http_route *route, weir_http_content_fn *fn);

/* On the loop: the group that a request of a marked route has to run on; NULL = the loop. Logs the
 * first one of the route. */
weir_group *weir__http_route_offload_group(const weir__http_route *route, weir_channel *channel);

/* On the loop: the group has ended. Logs the first one of the route. */
void weir__http_route_log_rejection(const weir__http_route *route);

/* `blocked` of the handler of exchanges. */
size_t weir__http_routes_blocked(const void *const *functions, size_t count, uint64_t limit);

#endif
