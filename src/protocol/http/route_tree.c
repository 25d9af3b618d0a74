/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/http/route_tree.h"

#include <errno.h>
#include <string.h>

#include <weir/memory.h>

#include "base/log.h"
#include "base/no_stack_protector.h"
#include "protocol/http/blocking_routes.h"

#define NONE 0 /* the root is no child */

struct node {
    weir_span text; /* of a literal */
    uint64_t word;  /* its last bytes, up to 8 */
    uint32_t parent;
    uint32_t parameter;       /* child, or NONE */
    weir__http_route *routes; /* that end here */
    weir__http_route *rest;   /* "{name*}" below this node */
};

struct slot {
    uint32_t hash;
    uint32_t node; /* NONE = free */
};

struct weir__http_route_tree {
    struct node *nodes;
    struct slot *slots;
    uint32_t mask; /* number of slots - 1 */
    uint32_t node_count;
    weir__http_route *routes;
    size_t route_count;
    size_t max_parameters;
    weir__list link; /* of blocking_routes.c */
};

/* ---- the table of literal segments ---- */

/* Loads up to 8 bytes as a number. Different texts of one length give different numbers. */
static inline uint64_t load_up_to_8(const uint8_t *bytes, size_t length)
{
    uint32_t low, high;

    if (length >= 4) {
        memcpy(&low, bytes, 4);
        memcpy(&high, bytes + length - 4, 4);
        return (uint64_t)high << 32 | low;
    }
    if (length == 0)
        return 0;
    return (uint64_t)bytes[0] | (uint64_t)bytes[length / 2] << 8 |
           (uint64_t)bytes[length - 1] << 16;
}

/* The last bytes of a text, and all of a short one: what load_up_to_8 has not hashed before. */
static inline uint64_t last_word(weir_span text)
{
    size_t rest = text.length > 8 ? 8 : text.length;

    return load_up_to_8(text.data + text.length - rest, rest);
}

/*
 * A hash of a short text, inline. It needs no secret: clients cannot choose the texts in the table,
 * and a lookup ends at the first free slot.
 */
static inline uint32_t hash_of(uint32_t parent, weir_span text, uint64_t last)
{
    uint64_t hash = ((uint64_t)parent << 32 | text.length) * 0x9e3779b97f4a7c15u;
    uint64_t word;

    for (size_t i = 0; i + 8 < text.length; i += 8) {
        memcpy(&word, text.data + i, 8);
        hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 32;
    }
    /* The first product spreads low bits upwards, the second one what was in the high bits. */
    hash = (hash ^ last) * 0x9e3779b97f4a7c15u;
    hash = (hash ^ hash >> 32) * 0x9e3779b97f4a7c15u;
    return (uint32_t)(hash >> 32);
}

static inline uint32_t find_child(const weir__http_route_tree *tree, uint32_t parent,
                                  weir_span text, size_t *steps)
{
    uint64_t last = last_word(text);
    uint32_t hash = hash_of(parent, text, last);

    for (uint32_t i = hash & tree->mask;; i = (i + 1) & tree->mask) {
        const struct slot *slot = &tree->slots[i];
        const struct node *node = &tree->nodes[slot->node];

        ++*steps;
        if (slot->node == NONE)
            return NONE;
        if (slot->hash == hash && node->parent == parent && node->text.length == text.length &&
            node->word == last &&
            (text.length <= 8 || memcmp(node->text.data, text.data, text.length - 8) == 0))
            return slot->node;
    }
}

static uint32_t add_node(weir__http_route_tree *tree, uint32_t parent)
{
    uint32_t index = tree->node_count++;

    tree->nodes[index].parent = parent;
    return index;
}

static uint32_t add_child(weir__http_route_tree *tree, uint32_t parent, weir_span text)
{
    size_t steps = 0;
    uint32_t node = find_child(tree, parent, text, &steps);
    uint32_t hash = hash_of(parent, text, last_word(text)), i = hash & tree->mask;

    if (node != NONE)
        return node;
    node = add_node(tree, parent);
    tree->nodes[node].text = text;
    tree->nodes[node].word = last_word(text);
    while (tree->slots[i].node != NONE)
        i = (i + 1) & tree->mask;
    tree->slots[i] = (struct slot){hash, node};
    return node;
}

/* ---- compiling ---- */

/* Cuts the first segment off a path, which points behind a '/'. False if none is left. */
static bool next_segment(const char **path, weir_span *ret_segment)
{
    size_t length;

    if (*path == NULL)
        return false;
    length = strcspn(*path, "/");
    *ret_segment = weir_span_of(*path, length);
    *path = (*path)[length] == '/' ? *path + length + 1 : NULL;
    return true;
}

/* The name of a parameter segment, with the '*' of a rest; data is NULL for a literal. */
static weir_span parameter_of(weir_span segment)
{
    if (segment.length < 2 || segment.data[0] != '{' || segment.data[segment.length - 1] != '}')
        return weir_span_of(NULL, 0);
    return weir_span_of(segment.data + 1, segment.length - 2);
}

static bool is_rest(weir_span parameter)
{
    return parameter.length > 0 && parameter.data[parameter.length - 1] == '*';
}

static bool has_any(weir_span text, const char *bytes)
{
    for (size_t i = 0; i < text.length; i++)
        if (strchr(bytes, text.data[i]) != NULL)
            return true;
    return false;
}

static const char *check_parameter(weir_span name, bool is_last)
{
    if (is_rest(name)) {
        if (!is_last)
            return "\"{name*}\" is not the last segment";
        name.length--;
    }
    if (name.length == 0)
        return "a parameter without a name";
    return has_any(name, "{}*") ? "a brace or '*' in the name of a parameter" : NULL;
}

/* Returns why a route is invalid, or NULL; and counts its parts. */
static const char *check_route(const weir_http_route *route, size_t *ret_segments,
                               size_t *ret_parameters)
{
    const char *path = route->path, *reason;
    weir_span segment, name;

    *ret_segments = *ret_parameters = 0;
    if (route->method == NULL || route->method[0] == '\0')
        return "no method";
    if (route->handler == NULL)
        return "no handler";
    if (path[0] != '/')
        return "the path does not begin with \"/\"";
    for (path++; next_segment(&path, &segment); ++*ret_segments) {
        name = parameter_of(segment);
        if (name.data == NULL) {
            if (has_any(segment, "{}"))
                return "a brace in a segment that is not \"{name}\"";
            continue;
        }
        reason = check_parameter(name, path == NULL);
        if (reason != NULL)
            return reason;
        ++*ret_parameters;
    }
    if (*ret_segments > WEIR__ROUTE_MAX_SEGMENTS)
        return "more than 64 segments";
    return *ret_parameters > WEIR__ROUTE_MAX_PARAMETERS ? "more than 16 parameters" : NULL;
}

static int reject(const weir_http_route *route, int err, const char *reason)
{
    weir__error("http", "router", "invalid route \"%s %s\": %s",
                route->method != NULL ? route->method : "", route->path, reason);
    return err;
}

/* Where the parts of a tree are written to: behind each other in one block. */
struct parts {
    weir_span *names;
    char *text;
};

static const char *copy_text(struct parts *parts, const char *text)
{
    size_t size = strlen(text) + 1;

    memcpy(parts->text, text, size);
    parts->text += size;
    return parts->text - size;
}

static bool has_name(const weir__http_route *route, weir_span name)
{
    for (size_t i = 0; i < route->parameter_count; i++)
        if (weir_span_equal(route->names[i], name))
            return true;
    return false;
}

static bool is_same_method(const weir__http_route *a, const weir__http_route *b)
{
    return strcmp(a->given.method, b->given.method) == 0;
}

static int add_to(weir__http_route **list, weir__http_route *route)
{
    for (; *list != NULL; list = &(*list)->next)
        if (is_same_method(*list, route))
            return reject(&route->given, -EEXIST, "there are two with this method and path");
    *list = route;
    return 0;
}

static int add_route(weir__http_route_tree *tree, const weir_http_route *given, struct parts *parts)
{
    weir__http_route *route = &tree->routes[tree->route_count];
    const char *path;
    weir_span segment, name;
    uint32_t node = 0;

    route->given = *given;
    route->given.method = copy_text(parts, given->method);
    route->given.path = copy_text(parts, given->path);
    route->method = weir_http_method_of(weir_span_of_text(given->method));
    route->is_any = strcmp(given->method, "*") == 0;
    route->names = parts->names;
    path = route->given.path + 1;
    while (next_segment(&path, &segment)) {
        name = parameter_of(segment);
        if (name.data == NULL) {
            node = add_child(tree, node, segment);
            continue;
        }
        segment = name;
        name.length -= is_rest(name) ? 1 : 0;
        if (has_name(route, name))
            return reject(given, -EINVAL, "two parameters have the same name");
        *parts->names++ = name;
        route->parameter_count++;
        route->has_rest = is_rest(segment);
        if (route->has_rest)
            return add_to(&tree->nodes[node].rest, route);
        if (tree->nodes[node].parameter == NONE)
            tree->nodes[node].parameter = add_node(tree, node);
        node = tree->nodes[node].parameter;
    }
    return add_to(&tree->nodes[node].routes, route);
}

static int add_routes(weir__http_route_tree *tree, const weir_http_route *routes,
                      struct parts *parts)
{
    for (; routes->path != NULL; routes++) {
        weir__http_route *route = &tree->routes[tree->route_count];
        int err = add_route(tree, routes, parts);

        if (err < 0)
            return err;
        if (routes->group != NULL && *routes->group != NULL)
            route->group = weir_group_retain(*routes->group);
        atomic_init(&route->runs_on, route->group);
        if (route->parameter_count > tree->max_parameters)
            tree->max_parameters = route->parameter_count;
        tree->route_count++;
    }
    return 0;
}

int weir__http_route_tree_create(const weir_http_route *routes, weir__http_route_tree **ret_tree)
{
    size_t count = 0, nodes = 1, names = 0, texts = 0, slots = 8, size;
    weir__http_route_tree *tree;
    struct parts parts;
    int err;

    for (; routes[count].path != NULL; count++) {
        size_t segments, parameters;
        const char *reason = check_route(&routes[count], &segments, &parameters);

        if (reason != NULL)
            return reject(&routes[count], -EINVAL, reason);
        nodes += segments;
        names += parameters;
        texts += strlen(routes[count].method) + strlen(routes[count].path) + 2;
    }
    while (slots < 2 * nodes)
        slots *= 2;
    size = sizeof(*tree) + count * sizeof(*tree->routes) + nodes * sizeof(*tree->nodes) +
           names * sizeof(*parts.names) + slots * sizeof(*tree->slots) + texts;
    tree = weir_memory_alloc(size);
    if (tree == NULL)
        return -ENOMEM;
    memset(tree, 0, size);
    tree->routes = (weir__http_route *)(void *)(tree + 1);
    tree->nodes = (struct node *)(void *)(tree->routes + count);
    parts.names = (weir_span *)(void *)(tree->nodes + nodes);
    tree->slots = (struct slot *)(void *)(parts.names + names);
    parts.text = (char *)(tree->slots + slots);
    tree->mask = (uint32_t)slots - 1;
    (void)add_node(tree, 0); /* the root */
    err = add_routes(tree, routes, &parts);
    weir__http_blocking_routes_add(tree);
    if (err < 0)
        weir__http_route_tree_free(tree);
    else
        *ret_tree = tree;
    return err;
}

void weir__http_route_tree_free(weir__http_route_tree *tree)
{
    if (tree == NULL)
        return;
    weir__http_blocking_routes_remove(tree);
    for (size_t i = 0; i < tree->route_count; i++)
        weir_group_release(tree->routes[i].group);
    weir_memory_free(tree);
}

weir__http_route *weir__http_route_tree_at(weir__http_route_tree *tree, size_t index)
{
    return index < tree->route_count ? &tree->routes[index] : NULL;
}

weir__list *weir__http_route_tree_link(weir__http_route_tree *tree)
{
    return &tree->link;
}

weir__http_route_tree *weir__http_route_tree_of(weir__list *link)
{
    return WEIR_CONTAINER_OF(link, weir__http_route_tree, link);
}

size_t weir__http_route_tree_count(const weir__http_route_tree *tree)
{
    return tree->route_count;
}

weir_http_route weir__http_route_tree_route(const weir__http_route_tree *tree, size_t index)
{
    weir_http_route route = tree->routes[index].given;

    route.group = &tree->routes[index].group; /* the caller's variable may be gone */
    return route;
}

size_t weir__http_route_tree_max_parameters(const weir__http_route_tree *tree)
{
    return tree->max_parameters;
}

/* ---- matching ---- */

/* The routes that `visit` accepts end the search. */
struct search {
    const weir__http_route_tree *tree;
    const weir__http_route_query *query;
    weir__http_route_match match;
    struct methods *methods; /* collects all that fit the path, instead of searching for one */
};

/* Methods for Allow. */
struct methods {
    uint32_t known; /* a bit for each number */
    const weir__http_route *other[8];
    size_t other_count;
};

#define METHOD_BIT(method) (1u << (method))
#define ANY_METHODS                                                           \
    (METHOD_BIT(WEIR_HTTP_METHOD_GET) | METHOD_BIT(WEIR_HTTP_METHOD_POST) |   \
     METHOD_BIT(WEIR_HTTP_METHOD_PUT) | METHOD_BIT(WEIR_HTTP_METHOD_DELETE) | \
     METHOD_BIT(WEIR_HTTP_METHOD_PATCH))

static void collect(struct methods *methods, const weir__http_route *route)
{
    if (route->is_any)
        methods->known |= ANY_METHODS;
    else if (route->method != WEIR_HTTP_METHOD_OTHER)
        methods->known |= METHOD_BIT(route->method);
    else {
        for (size_t i = 0; i < methods->other_count; i++)
            if (is_same_method(methods->other[i], route))
                return;
        if (methods->other_count < sizeof(methods->other) / sizeof(methods->other[0]))
            methods->other[methods->other_count++] = route;
    }
}

static bool any_has(enum weir_http_method method)
{
    return method != WEIR_HTTP_METHOD_CONNECT && method != WEIR_HTTP_METHOD_TRACE;
}

/* Chooses by method among the routes with the path. Prefers the method itself, then GET for HEAD,
 * then "*". */
static const weir__http_route *choose(struct search *search, const weir__http_route *routes)
{
    const weir__http_route_query *query = search->query;
    const weir__http_route *get = NULL, *any = NULL;

    if (search->methods == NULL && query->method != WEIR_HTTP_METHOD_OTHER && routes != NULL &&
        routes->method == query->method)
        return routes; /* usually the only one */
    for (; routes != NULL; routes = routes->next) {
        search->match.is_known = true;
        if (search->methods != NULL)
            collect(search->methods, routes);
        else if (routes->method != WEIR_HTTP_METHOD_OTHER && routes->method == query->method)
            return routes;
        else if (routes->is_any)
            any = any_has(query->method) ? routes : NULL;
        else if (routes->method == WEIR_HTTP_METHOD_GET && query->method == WEIR_HTTP_METHOD_HEAD)
            get = routes;
        else if (routes->method == query->method && /* OTHER */
                 weir_span_equal(weir_span_of_text(routes->given.method), query->method_text))
            return routes;
    }
    return get != NULL ? get : any;
}

/*
 * Matches the path from `at` on, where a segment begins, with what is below a node. Recurses where
 * there is an alternative to a literal: at most as deep as the tree, WEIR__ROUTE_MAX_SEGMENTS.
 */
static const weir__http_route *descend(struct search *search, uint32_t node, const uint8_t *at,
                                       weir_span *values)
{
    const weir__http_route_tree *tree = search->tree;
    const uint8_t *path_end = search->query->end, *end;
    const weir__http_route *route = NULL;
    const struct node *parent;
    weir_span segment;
    uint32_t child;

    for (;; node = child, at = end + 1) {
        parent = &tree->nodes[node];
        for (end = at; end != path_end && *end != search->query->separator;)
            end++;
        segment = weir_span_of(at, (size_t)(end - at));
        child = find_child(tree, node, segment, &search->match.steps);
        if (child == NONE || parent->parameter != NONE || parent->rest != NULL)
            break;
        if (end == path_end)
            return choose(search, tree->nodes[child].routes);
    }
    if (child != NONE)
        route = end == path_end ? choose(search, tree->nodes[child].routes)
                                : descend(search, child, end + 1, values);
    if (route == NULL && parent->parameter != NONE && segment.length > 0) {
        *values = segment;
        route = end == path_end ? choose(search, tree->nodes[parent->parameter].routes)
                                : descend(search, parent->parameter, end + 1, values + 1);
    }
    if (route == NULL && parent->rest != NULL) {
        *values = weir_span_of(at, (size_t)(path_end - at));
        route = choose(search, parent->rest);
    }
    return route;
}

WEIR__NO_STACK_PROTECTOR
weir__http_route_match weir__http_route_tree_match(const weir__http_route_tree *tree,
                                                   const weir__http_route_query *query,
                                                   weir_span *ret_values)
{
    struct search search = {.tree = tree, .query = query};

    search.match.route = descend(&search, 0, query->path, ret_values);
    return search.match;
}

/* ---- Allow ---- */

struct list {
    char *text;
    size_t size;
    size_t length;
};

static void append(struct list *list, const char *method)
{
    size_t length = strlen(method), comma = list->length > 0 ? 2 : 0;

    if (list->length + comma + length > list->size)
        return;
    memcpy(list->text + list->length, ", ", comma);
    memcpy(list->text + list->length + comma, method, length);
    list->length += comma + length;
}

size_t weir__http_route_tree_allow(const weir__http_route_tree *tree,
                                   const weir__http_route_query *query, char *ret_text, size_t size)
{
    struct methods methods = {0};
    struct list list = {ret_text, size, 0};

    if (query != NULL) {
        weir_span values[WEIR__ROUTE_MAX_PARAMETERS];
        struct search search = {.tree = tree, .query = query, .methods = &methods};

        (void)descend(&search, 0, query->path, values);
    } else {
        for (size_t i = 0; i < tree->route_count; i++)
            collect(&methods, &tree->routes[i]);
    }
    if (methods.known & METHOD_BIT(WEIR_HTTP_METHOD_GET))
        methods.known |= METHOD_BIT(WEIR_HTTP_METHOD_HEAD);
    methods.known |= METHOD_BIT(WEIR_HTTP_METHOD_OPTIONS);
    for (int i = WEIR_HTTP_METHOD_GET; i <= WEIR_HTTP_METHOD_PATCH; i++)
        if (methods.known & METHOD_BIT(i))
            append(&list, weir_http_method_text((enum weir_http_method)i));
    for (size_t i = 0; i < methods.other_count; i++)
        append(&list, methods.other[i]->given.method);
    return list.length;
}
