/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What docs/guide/28-http-server.md shows.
 */
#include <stdio.h>

#include <weir/http_server.h>

#include "guide/guide_fixture.h"
#include "support/bootstrap/raw_client.h"

/* doc:begin parameters */
static void show_user(weir_http_exchange *exchange, void *user_data)
{
    weir_span id = weir_http_exchange_parameter(exchange, "id");
    weir_span format = weir_http_exchange_query(exchange, "format");
    weir_buf *json = NULL;
    int err;

    (void)user_data;
    if (format.data != NULL && (format.length != 4 || memcmp(format.data, "json", 4) != 0)) {
        weir_http_respond_error(exchange, 406, "the only format is json");
        return;
    }
    err = weir_buf_create(64, 0, &json);
    if (!err)
        err = weir_buf_printf(json, "{\"id\":\"%.*s\"}\n", (int)id.length, (const char *)id.data);
    if (err) {
        weir_buf_release(json);
        return; /* the exchange is released unanswered: 500, and a line in the log */
    }
    weir_http_headers_add_text(weir_http_exchange_headers(exchange), WEIR_HTTP_CACHE_CONTROL,
                               "max-age=60");
    weir_http_respond_json(exchange, 200, json);
}
/* doc:end */

/* doc:begin later */
static void answer(void *arg, int status)
{
    weir_http_exchange *exchange = arg;

    if (status == 0) /* otherwise the group was shut down: 500 */
        weir_http_respond_text(exchange, 200, "sorry for the delay\n");
    weir_http_exchange_release(exchange);
}

static void later(weir_http_exchange *exchange, void *user_data)
{
    weir_group *workers = user_data;
    int err = weir_execute(weir_group_next(workers), answer, weir_http_exchange_retain(exchange));

    if (err < 0)
        weir_http_exchange_release(exchange); /* 500 */
}
/* doc:end */

static void hello(weir_http_exchange *exchange, void *user_data)
{
    (void)user_data;
    weir_http_respond_text(exchange, 200, "Hello, World!\n");
}

/* doc:begin table */
static weir_group *blocking; /* created before the server starts */

static const weir_http_route routes[] = {
    WEIR_HTTP_ROUTE("GET", "/hello", hello), WEIR_HTTP_ROUTE("GET", "/users/{id}", show_user),
    WEIR_HTTP_ROUTE("GET", "/slow", hello, .group = &blocking), /* it may block */
    WEIR_HTTP_ROUTES_END};
/* doc:end */

/* doc:begin options */
static int start(weir_http_access_log *log, weir_http_server **ret_server)
{
    return weir_http_server_start(
        WEIR_HTTP_SERVER_OPTIONS(.address = "127.0.0.1:0", .routes = routes, .threads = 2,
                                 .compression = WEIR_HTTP_COMPRESSION_OPTIONS(),

                                 .security = WEIR_HTTP_SECURITY_OPTIONS(), .access_log = log,
                                 .request_ids = true),
        ret_server);
}
/* doc:end */

static const weir_http_route later_routes[] = {
    WEIR_HTTP_ROUTE("GET", "/later", later, .user_data = NULL), WEIR_HTTP_ROUTES_END};

/* Sends a request on a connection of its own, and expects the last line of the response. */
static void assert_answer(weir_http_server *server, const char *request, const char *status,
                          const char *last)
{
    char response[4096] = "";
    size_t length;
    int peer = raw_client_connect(weir_http_server_server(server));

    raw_client_send(peer, request);
    length = raw_client_receive_all(peer, response, sizeof(response));
    raw_client_close(peer);
    assert_memory_equal(response, status, strlen(status));
    assert_string_equal(response + length - strlen(last), last);
}

#define CLOSE " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"

TEST(guide_http_server, routes_and_parameters)
{
    weir_http_server *server = NULL;

    blocking = make_loops(1);
    assert_int_equal(start(NULL, &server), 0);
    assert_answer(server, "GET /hello" CLOSE, "HTTP/1.1 200 OK\r\n", "Hello, World!\n");
    assert_answer(server, "GET /slow" CLOSE, "HTTP/1.1 200 OK\r\n", "Hello, World!\n");
    assert_answer(server, "GET /users/7?format=json" CLOSE, "HTTP/1.1 200 OK\r\n",
                  "{\"id\":\"7\"}\n");
    assert_answer(server, "GET /users/7?format=xml" CLOSE, "HTTP/1.1 406 ",
                  "the only format is json\n");
    assert_answer(server, "POST /hello" CLOSE, "HTTP/1.1 405 ", "\n");
    assert_answer(server, "GET /nothing" CLOSE, "HTTP/1.1 404 ", "\n");
    weir_http_server_release(server);
    end_group(blocking);
}

TEST(guide_http_server, answers_later)
{
    weir_group *workers = make_loops(1);
    weir_http_route table[2] = {later_routes[0], {0}};
    weir_http_server *server = NULL;

    table[0].user_data = workers;
    assert_int_equal(weir_http_server_start(WEIR_HTTP_SERVER_OPTIONS(.address = "127.0.0.1:0",
                                                                     .routes = table, .threads = 1),
                                            &server),
                     0);
    assert_answer(server, "GET /later" CLOSE, "HTTP/1.1 200 OK\r\n", "sorry for the delay\n");
    weir_http_server_release(server);
    end_group(workers);
}
