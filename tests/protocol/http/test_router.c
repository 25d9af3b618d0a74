/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Routes: which one answers, with which parameters; and what a match costs.
 */
#include <weir/http_server.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/http/route_tree.h"
#include "support/executor/log_capture.h"
#include "support/memory.h"
#include "support/protocol/http/exchange_fixture.h"

/* Answers with the route and its parameters: "/users/{id} 7". */
static void name_route(weir_http_exchange *exchange, void *user_data)
{
    static const char *const names[] = {"id", "name", "path", "a", "b"};
    char text[256];
    int length = snprintf(text, sizeof(text), "%s%s", user_data != NULL ? (char *)user_data : "",
                          weir_http_exchange_route(exchange));

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        weir_span value = weir_http_exchange_parameter(exchange, names[i]);

        if (value.data != NULL)
            length += snprintf(text + length, sizeof(text) - (size_t)length, " %s=%.*s", names[i],
                               (int)value.length, (const char *)value.data);
    }
    assert_int_equal(weir_http_respond_text(exchange, 200, text), 0);
}

static const weir_http_route routes[] = {
    {"GET", "/", name_route},
    {"GET", "/users", name_route},
    {"POST", "/users", name_route, .user_data = (char[]){"post "}},
    {"GET", "/users/{id}", name_route},
    {"DELETE", "/users/{name}", name_route},
    {"GET", "/users/me", name_route},
    {"GET", "/users/{id}/posts/{name}", name_route},
    {"GET", "/users/me/drafts", name_route},
    {"GET", "/files/{path*}", name_route},
    {"GET", "/files/list", name_route},
    {"*", "/any/{a}", name_route},
    {"HEAD", "/any/{a}", name_route},
    {"PURGE", "/cache", name_route},
    {"OPTIONS", "/own", name_route},
    {"GET", "/a b", name_route},
    {"GET", "/deep/{a}/{b}/x", name_route},
    {"GET", "/deep/a/{path*}", name_route},
    {"CONNECT", "/", name_route, .user_data = (char[]){"connect "}},
    {0}};

static void assert_route(weir_embedded *embedded, const char *method, const char *target,
                         const char *expected)
{
    char sent[512];

    exchange_put(embedded, method, target);
    snprintf(sent, sizeof(sent), "200(%zu) | %s | end", strlen(expected), expected);
    assert_exchange_sent(embedded, sent);
}

static void assert_status(weir_embedded *embedded, const char *method, const char *target,
                          const char *expected)
{
    exchange_put(embedded, method, target);
    assert_exchange_sent(embedded, expected);
}

TEST(router, prefers_literals_to_parameters_to_the_rest)
{
    weir_embedded *embedded = exchange_open(routes);

    assert_route(embedded, "GET", "/", "/");
    assert_route(embedded, "GET", "/users", "/users");
    assert_route(embedded, "POST", "/users?x=1", "post /users");
    assert_route(embedded, "GET", "/users/7", "/users/{id} id=7");
    assert_route(embedded, "GET", "/users/me", "/users/me");
    assert_route(embedded, "GET", "/users/me/posts/x", "/users/{id}/posts/{name} id=me name=x");
    assert_route(embedded, "GET", "/users/me/drafts", "/users/me/drafts");
    assert_route(embedded, "GET", "/files/list", "/files/list");
    assert_route(embedded, "GET", "/files/list/a", "/files/{path*} path=list/a");
    assert_route(embedded, "GET", "/files/", "/files/{path*} path=");
    assert_route(embedded, "GET", "/files/a/../b//c", "/files/{path*} path=a/../b//c");
    assert_route(embedded, "GET", "/deep/a/b/x", "/deep/a/{path*} path=b/x");
    assert_route(embedded, "GET", "/deep/c/b/x", "/deep/{a}/{b}/x a=c b=b");
    assert_route(embedded, "GET", "http://host/users/7", "/users/{id} id=7");
    assert_route(embedded, "CONNECT", "host:443", "connect /");
    weir_embedded_release(embedded);
}

TEST(router, passes_over_routes_without_the_method)
{
    weir_embedded *embedded = exchange_open(routes);

    assert_route(embedded, "DELETE", "/users/me", "/users/{name} name=me");
    assert_route(embedded, "PURGE", "/cache", "/cache");
    assert_route(embedded, "BREW", "/any/pot", "/any/{a} a=pot");
    weir_embedded_release(embedded);
}

TEST(router, answers_without_a_route)
{
    weir_embedded *embedded = exchange_open(routes);

    assert_status(embedded, "GET", "/none", "404(10) | Not Found\n | end");
    assert_status(embedded, "GET", "/users/", "404(10) | Not Found\n | end");
    assert_status(embedded, "GET", "/files", "404(10) | Not Found\n | end");
    assert_status(embedded, "GET", "/users/1/posts", "404(10) | Not Found\n | end");
    assert_status(embedded, "PUT", "/users",
                  "405(19) Allow: GET, HEAD, POST, OPTIONS | Method Not Allowed\n | end");
    assert_status(embedded, "PUT", "/users/me",
                  "405(19) Allow: GET, HEAD, DELETE, OPTIONS | Method Not Allowed\n | end");
    assert_status(embedded, "PURGE", "/users",
                  "405(19) Allow: GET, HEAD, POST, OPTIONS | Method Not Allowed\n | end");
    assert_status(embedded, "GET", "/cache",
                  "405(19) Allow: OPTIONS, PURGE | Method Not Allowed\n | end");
    assert_status(embedded, "TRACE", "/any/x",
                  "405(19) Allow: GET, HEAD, POST, PUT, DELETE, OPTIONS, PATCH | "
                  "Method Not Allowed\n | end");
    weir_embedded_release(embedded);
}

TEST(router, answers_head_and_options_by_itself)
{
    weir_embedded *embedded = exchange_open(routes);

    assert_status(embedded, "HEAD", "/users/7", "200(16) | end");
    assert_status(embedded, "HEAD", "/none", "404(10) | end");
    assert_status(embedded, "OPTIONS", "/users", "204 Allow: GET, HEAD, POST, OPTIONS | end");
    assert_route(embedded, "OPTIONS", "/own", "/own");
    assert_route(embedded, "OPTIONS", "/any/x", "/any/{a} a=x");
    assert_status(embedded, "OPTIONS", "*",
                  "204 Allow: GET, HEAD, POST, PUT, DELETE, CONNECT, OPTIONS, PATCH, PURGE | end");
    assert_status(embedded, "OPTIONS", "/none", "404(10) | Not Found\n | end");
    weir_embedded_release(embedded);
}

TEST(router, does_not_implement_connect_without_a_route)
{
    static const weir_http_route any[] = {{"*", "/{path*}", name_route}, {0}};
    weir_embedded *embedded = exchange_open(any);

    assert_status(embedded, "CONNECT", "host:443", "501(16) | Not Implemented\n | end");
    assert_route(embedded, "GET", "/", "/{path*} path=");
    weir_embedded_release(embedded);
}

TEST(router, decodes_segments_after_separating_them)
{
    weir_embedded *embedded = exchange_open(routes);

    assert_route(embedded, "GET", "/users/%37", "/users/{id} id=7");
    assert_route(embedded, "GET", "/users/a%2Fb", "/users/{id} id=a/b");
    assert_route(embedded, "GET", "/%75sers/%6de", "/users/me");
    assert_route(embedded, "GET", "/a%20b", "/a b");
    assert_route(embedded, "GET", "/users/a%20b/posts/%C3%A4",
                 "/users/{id}/posts/{name} id=a b name=\xc3\xa4");
    assert_route(embedded, "GET", "/files/a%20b/%2e%2e/c", "/files/{path*} path=a b/../c");
    assert_route(embedded, "GET", "/users/%252f", "/users/{id} id=%2f");
    assert_route(embedded, "GET", "/users/..", "/users/{id} id=..");
    weir_embedded_release(embedded);
}

/* "private%2Fkey" is one segment, which no literal "private" matches: a rest that accepted it would
 * be a way around the more specific route. */
TEST(router, an_encoded_slash_is_not_found_in_a_rest_unless_the_route_allows_it)
{
    static const weir_http_route table[] = {
        {"GET", "/files/{path*}", name_route},
        {"GET", "/files/private/{path*}", name_route},
        {"GET", "/open/{a}/{path*}", name_route, .encoded_slashes = true},
        {"GET", "/open/{a}/private/{path*}", name_route},
        {"GET", "/{path*}", name_route, .encoded_slashes = true},
        {0}};
    static const char *const refused[] = {
        "/files/private%2Fkey", "/files/private%2fkey",   "/files/%2fprivate/key", "/files/%2F",
        "/files/a/b%2fc",       "/files/private/a%2Fkey", "/files/%61%2f",         "/files//%2F/"};
    weir_embedded *embedded = exchange_open(table);

    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
        assert_status(embedded, "GET", refused[i], "404(10) | Not Found\n | end");
    assert_status(embedded, "OPTIONS", "/files/a%2fb", "204 Allow: GET, HEAD, OPTIONS | end");
    assert_route(embedded, "GET", "/files/private/k%25", "/files/private/{path*} path=k%");
    assert_route(embedded, "GET", "/open/x%2Fy/b%2fc/d", "/open/{a}/{path*} path=b/c/d a=x/y");
    assert_route(embedded, "GET", "/open/x%2Fy/%62", "/open/{a}/{path*} path=b a=x/y");
    assert_status(embedded, "GET", "/open/x/private/b%2fc", "404(10) | Not Found\n | end");
    assert_route(embedded, "GET", "/other%2fpath", "/{path*} path=other/path");
    weir_embedded_release(embedded);
}

TEST(router, refuses_invalid_encodings)
{
    static const char *const targets[] = {"/users/%", "/users/%4",    "/users/%zz",  "/users/%00",
                                          "/%00",     "/users/a%00b", "/none/%g1/x", "/users/%+1"};
    weir_embedded *embedded = exchange_open(routes);

    for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++)
        assert_status(embedded, "GET", targets[i], "400(12) | Bad Request\n | end");
    assert_status(embedded, "GET", "*", "400(12) | Bad Request\n | end");
    weir_embedded_release(embedded);
}

static void assert_invalid(int err, const char *method, const char *path, const char *log)
{
    const weir_http_route invalid[] = {
        {"GET", "/ok/{id}", name_route}, {method, path, name_route}, {0}};
    weir_http_router *router;

    log_capture_start();
    assert_int_equal(weir_http_router_create(invalid, &router), err);
    assert_log_contains(log);
}

TEST(router, rejects_invalid_routes)
{
    char deep[256] = "";
    weir_http_router *router;
    const weir_http_route without_handler[] = {{"GET", "/x", NULL}, {0}};

    assert_invalid(-EINVAL, "GET", "users", "does not begin with");
    assert_invalid(-EINVAL, "GET", "", "does not begin with");
    assert_invalid(-EINVAL, "GET", "/{id", "a brace");
    assert_invalid(-EINVAL, "GET", "/x{id}", "a brace");
    assert_invalid(-EINVAL, "GET", "/{id}.html", "a brace");
    assert_invalid(-EINVAL, "GET", "/{}", "without a name");
    assert_invalid(-EINVAL, "GET", "/{*}", "without a name");
    assert_invalid(-EINVAL, "GET", "/{a*}/b", "not the last segment");
    assert_invalid(-EINVAL, "GET", "/{a}/{a}", "the same name");
    assert_invalid(-EINVAL, "GET", "/{a}/{a*}", "the same name");
    assert_invalid(-EINVAL, NULL, "/x", "no method");
    assert_invalid(-EEXIST, "GET", "/ok/{other}", "two with this method and path");
    for (int i = 0; i < 65; i++)
        strcat(deep, "/x");
    assert_invalid(-EINVAL, "GET", deep, "64 segments");
    deep[0] = '\0';
    for (int i = 0; i < 17; i++)
        sprintf(deep + strlen(deep), "/{p%d}", i);
    assert_invalid(-EINVAL, "GET", deep, "16 parameters");
    assert_int_equal(weir_http_router_create(without_handler, &router), -EINVAL);
    assert_log_contains("no handler");
    assert_int_equal(weir_http_router_create(NULL, &router), -EINVAL);
}

TEST(router, survives_a_lack_of_memory)
{
    weir_http_router *router = NULL;
    int err;

    for (unsigned n = 1;; n++) {
        test_memory_fail_at(n);
        err = weir_http_router_create(routes, &router);
        if (!test_memory_failed())
            break;
        assert_int_equal(err, -ENOMEM);
    }
    test_memory_fail_at(0);
    assert_int_equal(err, 0);
    weir_http_router_release(router);
}

/* ---- cost ---- */

#define MANY 1000

static size_t steps_of(const weir__http_route_tree *tree, const char *path)
{
    weir__http_route_query query = {WEIR_HTTP_METHOD_GET,
                                    {NULL, 0},
                                    (const uint8_t *)path + 1,
                                    (const uint8_t *)path + strlen(path),
                                    '/'};
    weir_span values[WEIR__ROUTE_MAX_PARAMETERS];
    weir__http_route_match match = weir__http_route_tree_match(tree, &query, values);

    assert_non_null(match.route);
    return match.steps;
}

TEST(router, a_thousand_routes_cost_what_ten_cost)
{
    static char paths[MANY][64];
    static weir_http_route many[MANY + 1];
    size_t steps[2];

    for (int i = 0; i < MANY; i++) {
        snprintf(paths[i], sizeof(paths[i]), "/api/v%d/resource%d/{id}/item%d", i % 7, i, i % 3);
        many[i] = (weir_http_route){"GET", paths[i], name_route};
    }
    for (int round = 0; round < 2; round++) {
        size_t count = round == 0 ? 10 : MANY;
        weir__http_route_tree *tree = NULL;

        memset(&many[count], 0, sizeof(many[count]));
        steps[round] = 0;
        if (round == 1)
            many[10] = (weir_http_route){"GET", paths[10], name_route};
        assert_int_equal(weir__http_route_tree_create(many, &tree), 0);
        for (size_t i = 0; i < count; i++)
            steps[round] += steps_of(tree, paths[i]);
        weir__http_route_tree_free(tree);
        print_message("%zu routes: %.2f steps a match\n", count,
                      (double)steps[round] / (double)count);
    }
    /* Five segments, one of them a parameter: five slots, and collisions. */
    assert_true((double)steps[1] / MANY < (double)steps[0] / 10 * 1.5);
}

/* Every alternative fits until the last segment: the search visits each node once. */
TEST(router, backtracks_within_bounds)
{
    weir_http_route table[65];
    char paths[64][64];
    weir__http_route_tree *tree = NULL;
    weir__http_route_query query;
    weir_span values[WEIR__ROUTE_MAX_PARAMETERS];
    weir__http_route_match match;
    const char *path = "a/a/a/a/a/a/none";

    memset(table, 0, sizeof(table));
    for (int i = 0; i < 64; i++) {
        paths[i][0] = '\0';
        for (int bit = 0; bit < 6; bit++)
            sprintf(paths[i] + strlen(paths[i]), i >> bit & 1 ? "/{p%d}" : "/a", bit);
        strcat(paths[i], "/x");
        table[i] = (weir_http_route){"GET", paths[i], name_route};
    }
    assert_int_equal(weir__http_route_tree_create(table, &tree), 0);
    query = (weir__http_route_query){WEIR_HTTP_METHOD_GET,
                                     {NULL, 0},
                                     (const uint8_t *)path,
                                     (const uint8_t *)path + strlen(path),
                                     '/'};
    match = weir__http_route_tree_match(tree, &query, values);
    assert_null(match.route);
    assert_true(match.steps >= 127 && match.steps < 2000); /* 127 nodes have children */
    weir__http_route_tree_free(tree);
}
