/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small responses that the codec writes without messages: what is sent is the same as with a
 * handler between codec and exchange, which then sees all messages.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <weir/embedded.h>
#include <weir/http1.h>
#include <weir/http_server.h>

#include "support/test.h"

static void text(weir_http_exchange *exchange, void *user_data)
{
    (void)user_data;
    assert_int_equal(weir_http_respond_text(exchange, 200, "Hello, World!"), 0);
}

static void missing(weir_http_exchange *exchange, void *user_data)
{
    (void)user_data;
    assert_int_equal(weir_http_respond_bytes(exchange, 404, "a/b", "none", 4), 0);
}

static void json(weir_http_exchange *exchange, void *user_data)
{
    weir_buf *body;

    (void)user_data;
    assert_int_equal(weir_buf_create_from("{}", 2, &body), 0);
    assert_int_equal(weir_http_respond_json(exchange, 201, body), 0);
}

static void with_field(weir_http_exchange *exchange, void *user_data)
{
    assert_int_equal(weir_http_headers_add_text(weir_http_exchange_headers(exchange),
                                                WEIR_HTTP_CACHE_CONTROL, "no-store"),
                     0);
    text(exchange, user_data);
}

static void bad_type(weir_http_exchange *exchange, void *user_data)
{
    (void)user_data;
    assert_int_equal(weir_http_respond_bytes(exchange, 200, "a\r\nb", "none", 4), -EINVAL);
    text(exchange, NULL);
}

static void empty(weir_http_exchange *exchange, void *user_data)
{
    (void)user_data;
    assert_int_equal(weir_http_respond_text(exchange, 200, ""), 0);
}

static size_t sized_length;

static void sized(weir_http_exchange *exchange, void *user_data)
{
    static const char bytes[4096];

    (void)user_data;
    assert_int_equal(weir_http_respond_bytes(exchange, 200, "a/b", bytes, sized_length), 0);
}

static const weir_http_route routes[] = {{"GET", "/", text},        {"GET", "/404", missing},
                                         {"GET", "/json", json},    {"GET", "/field", with_field},
                                         {"GET", "/bad", bad_type}, {"GET", "/empty", empty},
                                         {"GET", "/sized", sized},  {0}};

static int writes_seen;
static const weir_http1_options *http1_options;

static void see_write(weir_ctx *ctx, weir_msg *msg, weir_promise *done)
{
    writes_seen++;
    weir_write(ctx, msg, done);
}

/* What is sent, with the second of the Date erased. */
static void exchange_bytes(const char *request, bool between, char *ret_sent, size_t size)
{
    static const weir_handler observer = {.name = "observer", .write = see_write};
    weir_http_router *router;
    weir_embedded *embedded;
    weir_pipeline *pipeline;
    weir_buf *in;
    weir_msg *msg;
    size_t length = 0;

    assert_int_equal(weir_http_router_create(routes, &router), 0);
    assert_int_equal(weir_embedded_create(NULL, &embedded), 0);
    pipeline = weir_embedded_pipeline(embedded);
    assert_int_equal(weir_http1_server_add(pipeline, http1_options), 0);
    if (between)
        assert_int_equal(weir_pipeline_add_last(pipeline, &observer, NULL), 0);
    assert_int_equal(weir_http_router_add(pipeline, router, 0), 0);
    assert_int_equal(weir_buf_create_from(request, strlen(request), &in), 0);
    (void)weir_embedded_write_inbound(embedded, weir_buf_msg(in));
    while ((msg = weir_embedded_read_outbound(embedded)) != NULL) {
        weir_buf *buf = weir_buf_of(msg);

        assert_non_null(buf);
        assert_true(length + weir_buf_readable(buf) < size);
        memcpy(ret_sent + length, weir_buf_bytes(buf), weir_buf_readable(buf));
        length += weir_buf_readable(buf);
        weir_msg_release(msg);
    }
    ret_sent[length] = '\0';
    for (char *date = ret_sent; (date = strstr(date, "Date: ")) != NULL; date += 6)
        memset(date + 6, '-', 29);
    weir_embedded_release(embedded);
    weir_http_router_release(router);
}

static void assert_same(const char *request, int writes)
{
    char direct[8192], observed[8192];

    writes_seen = 0;
    exchange_bytes(request, false, direct, sizeof(direct));
    assert_int_equal(writes_seen, 0);
    exchange_bytes(request, true, observed, sizeof(observed));
    assert_int_equal(writes_seen, writes);
    assert_string_equal(direct, observed);
    assert_int_equal(strncmp(direct, "HTTP/1.1 ", 9), 0);
}

#define HOST "Host: a\r\n"

TEST(answer, is_what_messages_would_have_been)
{
    assert_same("GET / HTTP/1.1\r\n" HOST "\r\n", 3);
    assert_same("GET /404 HTTP/1.1\r\n" HOST "\r\n", 3);
    assert_same("GET /json HTTP/1.1\r\n" HOST "\r\n", 3);
    assert_same("GET /field HTTP/1.1\r\n" HOST "\r\n", 3);
    assert_same("GET /bad HTTP/1.1\r\n" HOST "\r\n", 3);
    assert_same("GET /empty HTTP/1.1\r\n" HOST "\r\n", 2);
    assert_same("HEAD / HTTP/1.1\r\n" HOST "\r\n", 2);
    assert_same("GET / HTTP/1.0\r\n\r\n", 3);
    assert_same("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", 3);
    assert_same("GET / HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n", 3);
    assert_same("GET / HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\nabc", 3);
}

TEST(answer, keeps_the_order_of_pipelined_requests)
{
    assert_same("GET / HTTP/1.1\r\n" HOST "\r\n"
                "GET /404 HTTP/1.1\r\n" HOST "\r\n"
                "GET /field HTTP/1.1\r\n" HOST "\r\n"
                "GET / HTTP/1.1\r\n" HOST "\r\n",
                12);
}

TEST(answer, of_the_last_request_closes)
{
    http1_options = WEIR_HTTP1_OPTIONS(.max_requests = 2);
    assert_same("GET / HTTP/1.1\r\n" HOST "\r\n"
                "GET / HTTP/1.1\r\n" HOST "\r\n"
                "GET / HTTP/1.1\r\n" HOST "\r\n",
                6);
    http1_options = NULL;
}

/* Numbers below 100 are written by another way than the others. */
TEST(answer, has_the_right_length)
{
    const size_t lengths[] = {1, 9, 10, 11, 99, 100, 101, 999, 1000, 4096};
    char sent[8192], line[64];

    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        sized_length = lengths[i];
        exchange_bytes("GET /sized HTTP/1.1\r\nHost: h\r\n\r\n", false, sent, sizeof(sent));
        (void)snprintf(line, sizeof(line), "\r\nContent-Length: %zu\r\n", lengths[i]);
        assert_non_null(strstr(sent, line));
        assert_non_null(strstr(sent, "HTTP/1.1 200 OK\r\n"));
    }
}
