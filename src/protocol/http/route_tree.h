/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tree of a router: routes by their path, segment by segment.
 *
 *      GET /users        POST /users        GET /users/{id}        GET /files/{path*}
 *
 *      root -- users : GET, POST
 *        |        `-- {} : GET
 *        `---- files : rest GET
 *
 * Literal children of all nodes are in one hash table, by parent and text, so a step costs the same
 * for any number of routes. A node has at most one parameter child; names of parameters belong to
 * the routes. The tree is one block of memory and does not change.
 */
#ifndef WEIR_PROTOCOL_HTTP_ROUTE_TREE_H
#define WEIR_PROTOCOL_HTTP_ROUTE_TREE_H

#include <stdatomic.h>

#include <weir/http_server.h>

#include "base/list.h"

/* Limits of a route; more is rejected. They bound the recursion of a match. */
#define WEIR__ROUTE_MAX_SEGMENTS 64
#define WEIR__ROUTE_MAX_PARAMETERS 16

typedef struct weir__http_route {
    weir_http_route given; /* its method and path are copies */
    enum weir_http_method method;
    bool is_any;                   /* "*" */
    bool has_rest;                 /* its last parameter is "{name*}" */
    weir_group *group;             /* as given; retained; NULL = none */
    const weir_span *names;        /* of its parameters */
    size_t parameter_count;        /* including the rest */
    struct weir__http_route *next; /* with the same path */

    /* See blocking_routes.h. */
    _Atomic(weir_group *) runs_on; /* NULL = the connection's loop */
    _Atomic(weir_http_content_fn *) content_fn;
    uint64_t blocks;
    atomic_bool is_move_logged;
    atomic_bool is_rejection_logged;
} weir__http_route;

typedef struct weir__http_route_tree weir__http_route_tree;

/*
 * Compiles routes, up to one whose path is NULL; logs why it fails. Fails with -EINVAL, -EEXIST or
 * -ENOMEM.
 */
int weir__http_route_tree_create(const weir_http_route *routes, weir__http_route_tree **ret_tree);
void weir__http_route_tree_free(weir__http_route_tree *tree);

/* A route, in the order given; NULL at the end. */
weir__http_route *weir__http_route_tree_at(weir__http_route_tree *tree, size_t index);

/* The link of a tree in the list of all, and the tree of a link. */
weir__list *weir__http_route_tree_link(weir__http_route_tree *tree);
weir__http_route_tree *weir__http_route_tree_of(weir__list *link);

/* The number of routes; and one of them, in the order given, with texts and a group that live as
 * long as the tree. */
size_t weir__http_route_tree_count(const weir__http_route_tree *tree);
weir_http_route weir__http_route_tree_route(const weir__http_route_tree *tree, size_t index);

/* The largest parameter count of its routes. */
size_t weir__http_route_tree_max_parameters(const weir__http_route_tree *tree);

/* The request to be matched. */
typedef struct weir__http_route_query {
    enum weir_http_method method;
    weir_span method_text;
    const uint8_t *path; /* without its first '/' */
    const uint8_t *end;
    uint8_t separator; /* between the segments */
} weir__http_route_query;

typedef struct weir__http_route_match {
    const weir__http_route *route; /* NULL = none */
    bool is_known;                 /* a route has the path, perhaps with another method */
    size_t steps;                  /* slots of the table that were looked at */
} weir__http_route_match;

/*
 * Finds the route of a request, and sets the values of its parameters. Literal segments win over
 * parameters, parameters over the rest. A route without the method is passed over: the search
 * continues with the next best path. HEAD also finds routes with GET. "*" does not find CONNECT and
 * TRACE, which are dangerous to answer by accident.
 *
 * Visits each node at most once, and only nodes whose path fits: the cost depends on the length of
 * the path and on the alternatives that fit it, not on the number of routes.
 */
weir__http_route_match weir__http_route_tree_match(const weir__http_route_tree *tree,
                                                   const weir__http_route_query *query,
                                                   weir_span *ret_values);

/*
 * Writes the methods of all routes that have the path, for Allow: "GET, HEAD, OPTIONS"; or of all
 * routes of the tree if `query` is NULL. Methods that do not fit are left out. Returns the length.
 */
size_t weir__http_route_tree_allow(const weir__http_route_tree *tree,
                                   const weir__http_route_query *query, char *ret_text,
                                   size_t size);

#endif
