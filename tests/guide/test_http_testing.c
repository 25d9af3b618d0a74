/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What docs/guide/32-http-testing.md shows.
 */
#include <stdio.h>

#include <weir/embedded.h>
#include <weir/http_server.h>

#include "guide/guide_fixture.h"

/* doc:begin handler */
static void greet(weir_http_exchange *exchange, void *user_data)
{
    weir_span name = weir_http_exchange_parameter(exchange, "name");
    char text[80];

    (void)user_data;
    if (name.length > 40) {
        weir_http_respond_error(exchange, 400, "a name has at most 40 characters");
        return;
    }
    snprintf(text, sizeof(text), "Hello, %.*s!\n", (int)name.length, (const char *)name.data);
    weir_http_respond_text(exchange, 200, text);
}

static const weir_http_route routes[] = {WEIR_HTTP_ROUTE("GET", "/greet/{name}", greet),
                                         WEIR_HTTP_ROUTES_END};
/* doc:end */

/* doc:begin request */
static weir_embedded *open_routes(void)
{
    weir_embedded *embedded = NULL;
    weir_http_router *router = NULL;

    assert_int_equal(weir_embedded_create(NULL, &embedded), 0);
    assert_int_equal(weir_http_router_create(routes, &router), 0);
    assert_int_equal(weir_http_router_add(weir_embedded_pipeline(embedded), router, 0), 0);
    weir_http_router_release(router);
    return embedded;
}

static void send_request(weir_embedded *embedded, const char *method, const char *target)
{
    weir_http_request *request = NULL;

    assert_int_equal(weir_http_request_create(method, target, &request), 0);
    weir_embedded_write_inbound(embedded, weir_http_request_msg(request));
    weir_embedded_write_inbound(embedded, weir_http_end_static());
}

TEST(guide_http_testing, a_greeting)
{
    weir_embedded *embedded = open_routes();
    weir_msg *head, *end;

    send_request(embedded, "GET", "/greet/Ann%20Lee");
    head = weir_embedded_read_outbound(embedded);
    assert_int_equal(weir_http_response_status(weir_http_response_of(head)), 200);
    assert_text(weir_embedded_read_outbound(embedded), "Hello, Ann Lee!\n");
    end = weir_embedded_read_outbound(embedded);
    assert_non_null(weir_http_end_of(end));
    weir_msg_release(end);
    weir_msg_release(head);
    weir_embedded_release(embedded);
}
/* doc:end */

TEST(guide_http_testing, a_long_name)
{
    weir_embedded *embedded = open_routes();
    weir_msg *head;

    send_request(embedded, "GET", "/greet/12345678901234567890123456789012345678901");
    head = weir_embedded_read_outbound(embedded);
    assert_int_equal(weir_http_response_status(weir_http_response_of(head)), 400);
    weir_msg_release(head);
    weir_embedded_release(embedded);
}

/* doc:begin bytes */
TEST(guide_http_testing, bytes_on_the_wire)
{
    weir_embedded *embedded = NULL;
    weir_http_router *router = NULL;
    weir_pipeline *pipeline;
    weir_buf *bytes = NULL;
    weir_msg *answer;

    assert_int_equal(weir_embedded_create(NULL, &embedded), 0);
    pipeline = weir_embedded_pipeline(embedded);
    assert_int_equal(weir_http_router_create(routes, &router), 0);
    assert_int_equal(weir_http1_server_add(pipeline, NULL), 0);
    assert_int_equal(weir_http_router_add(pipeline, router, 0), 0);

    assert_int_equal(weir_buf_create_from("GET /greet/Ann HTTP/1.1\r\n", 25, &bytes), 0);
    weir_embedded_write_inbound(embedded, weir_buf_msg(bytes));
    weir_embedded_advance(embedded, weir_seconds(16)); /* the rest of the head never comes */
    answer = weir_embedded_read_outbound(embedded);
    assert_memory_equal(weir_buf_bytes(weir_buf_of(answer)), "HTTP/1.1 408 ", 13);

    weir_msg_release(answer);
    weir_http_router_release(router);
    weir_embedded_release(embedded);
}
/* doc:end */
