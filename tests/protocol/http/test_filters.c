/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All filters between the HTTP/1.1 codec and routes: pipelined requests on one connection, each
 * with its own result.
 */
#include <weir/http_filters.h>

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include <weir/http1.h>
#include <weir/http_server.h>

#include "protocol/http/content_coding.h"
#include "protocol/http/filters.h"
#include "support/memory.h"
#include "support/protocol/http/coded_content.h"
#include "support/protocol/http/filter_fixture.h"

static const char *const origins[] = {"https://a.example", NULL};

static void long_text(weir_http_exchange *exchange, void *user_data)
{
    weir_buf *text = content_text(5000);

    (void)user_data;
    (void)weir_http_headers_add_text(weir_http_exchange_headers(exchange), WEIR_HTTP_CONTENT_TYPE,
                                     "text/plain");
    (void)weir_http_respond(exchange, 200, weir_buf_msg(text));
}

static void count_content(weir_http_exchange *exchange, void *user_data)
{
    char text[32];

    (void)user_data;
    (void)snprintf(text, sizeof(text), "%zu bytes",
                   weir_buf_readable(weir_http_exchange_content(exchange)));
    (void)weir_http_respond_text(exchange, 200, text);
}

static void on_content(weir_http_exchange *exchange, weir_msg *msg, int err, void *user_data)
{
    size_t *count = user_data;

    if (msg != NULL) {
        *count += weir_msg_size(msg);
        weir_msg_release(msg);
        weir_http_exchange_read(exchange);
        return;
    }
    if (err == 0)
        (void)weir_http_respond_text(exchange, 200, "streamed");
    weir_http_exchange_release(exchange);
}

static size_t streamed;

static void stream_content(weir_http_exchange *exchange, void *user_data)
{
    (void)user_data;
    streamed = 0;
    weir_http_exchange_on_content(weir_http_exchange_retain(exchange), on_content, &streamed);
    weir_http_exchange_read(exchange);
}

static const weir_http_route routes[] = {
    {"GET", "/text", long_text},
    {"POST", "/count", count_content},
    {"POST", "/stream", stream_content, .streaming = true},
    {0},
};

struct line {
    weir_embedded *embedded;
    weir_http_access_log *log;
    weir_http_client_limit *limit;
    weir_http_router *router;
    weir_buf *sent;
};

static void open_line(struct line *line, int burst)
{
    weir_pipeline *pipeline;

    memset(line, 0, sizeof(*line));
    line->embedded = filter_open();
    pipeline = weir_embedded_pipeline(line->embedded);
    assert_int_equal(weir_http_router_create(routes, &line->router), 0);
    assert_int_equal(
        weir_http_access_log_create(WEIR_HTTP_ACCESS_LOG_OPTIONS(.path = "/dev/null"), &line->log),
        0);
    assert_int_equal(
        weir_http_client_limit_create(
            WEIR_HTTP_CLIENT_LIMIT_OPTIONS(.requests_per_second = 1, .burst = burst), &line->limit),
        0);
    assert_int_equal(weir_buf_create(0, 0, &line->sent), 0);
    assert_int_equal(weir_http1_server_add(pipeline, NULL), 0);
    assert_int_equal(weir_http_access_log_add(pipeline, line->log), 0);
    assert_int_equal(weir_http_request_ids_add(pipeline), 0);
    assert_int_equal(weir_http_client_limit_add(pipeline, line->limit), 0);
    assert_int_equal(weir_http_security_add(pipeline, NULL), 0);
    assert_int_equal(weir_http_cors_add(pipeline, WEIR_HTTP_CORS_OPTIONS(.origins = origins)), 0);
    assert_int_equal(weir_http_compression_add(pipeline, NULL), 0);
    assert_int_equal(weir_http_router_add(pipeline, line->router, 0), 0);
}

static void close_line(struct line *line)
{
    weir_embedded_release(line->embedded);
    weir_http_access_log_release(line->log);
    weir_http_client_limit_release(line->limit);
    weir_http_router_release(line->router);
    weir_buf_release(line->sent);
}

/* Receives bytes in pieces; collects what is sent. */
static void receive(struct line *line, const weir_buf *bytes, size_t piece)
{
    weir_span rest = weir_buf_span(bytes);
    weir_msg *msg;

    while (rest.length > 0) {
        size_t length = rest.length < piece ? rest.length : piece;
        weir_buf *buf = NULL;

        assert_int_equal(weir_buf_create_from(rest.data, length, &buf), 0);
        IGNORE_RESULT(weir_embedded_write_inbound(line->embedded, weir_buf_msg(buf)));
        rest.data += length;
        rest.length -= length;
    }
    while ((msg = weir_embedded_read_outbound(line->embedded)) != NULL) {
        weir_buf *buf = weir_buf_of(msg);

        assert_non_null(buf);
        assert_int_equal(
            weir_buf_write_bytes(line->sent, weir_buf_bytes(buf), weir_buf_readable(buf)), 0);
        weir_msg_release(msg);
    }
}

/* Consumes what was sent up to and including a text. */
static void expect(struct line *line, const char *text)
{
    ssize_t at = weir_span_find_sequence(weir_buf_span(line->sent), weir_span_of_text(text));

    if (at < 0)
        print_error("\"%s\" is missing in: %.*s\n", text, (int)weir_buf_readable(line->sent),
                    (const char *)weir_buf_bytes(line->sent));
    assert_true(at >= 0);
    assert_int_equal(weir_buf_skip(line->sent, (size_t)at + strlen(text)), 0);
}

static void write_coded_post(weir_buf *bytes, const char *path, const weir_buf *coded)
{
    assert_int_equal(weir_buf_printf(bytes,
                                     "POST %s HTTP/1.1\r\nHost: a\r\nContent-Encoding: gzip\r\n"
                                     "Content-Length: %zu\r\n\r\n",
                                     path, weir_buf_readable(coded)),
                     0);
    assert_int_equal(weir_buf_write_bytes(bytes, weir_buf_bytes(coded), weir_buf_readable(coded)),
                     0);
}

static void write_requests(weir_buf *bytes)
{
    weir_buf *text = content_text(100000);
    weir_buf *coded = content_encode(&weir__http_gzip, text, SIZE_MAX, false);

    assert_int_equal(
        weir_buf_write_string(bytes, "GET /text HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n"
                                     "Origin: https://a.example\r\nX-Request-Id: one\r\n\r\n"),
        0);
    assert_int_equal(weir_buf_write_string(bytes, "GET /text HTTP/1.1\r\nHost: a\r\n\r\n"), 0);
    write_coded_post(bytes, "/count", coded);
    assert_int_equal(weir_buf_write_string(bytes, "OPTIONS /text HTTP/1.1\r\nHost: a\r\n"
                                                  "Origin: https://a.example\r\n"
                                                  "Access-Control-Request-Method: GET\r\n\r\n"),
                     0);
    write_coded_post(bytes, "/stream", coded);
    assert_int_equal(weir_buf_write_string(bytes, "GET /none HTTP/1.1\r\nHost: a\r\n\r\n"), 0);
    weir_buf_release(text);
    weir_buf_release(coded);
}

TEST(filters, work_on_pipelined_requests)
{
    weir_buf *bytes = NULL, *text = content_text(5000);
    struct line line;

    assert_int_equal(weir_buf_create(0, 0, &bytes), 0);
    write_requests(bytes);
    for (size_t piece = 1; piece < 10000000; piece = piece * 100 - 3) {
        open_line(&line, 100);
        receive(&line, bytes, piece);
        expect(&line, "HTTP/1.1 200 OK\r\n");
        expect(&line, "Content-Encoding: gzip\r\n");
        expect(&line, "Access-Control-Allow-Origin: https://a.example\r\n");
        expect(&line, "X-Content-Type-Options: nosniff\r\n");
        expect(&line, "X-Request-Id: one\r\n");
        expect(&line, "\r\n\r\n");
        expect(&line, "HTTP/1.1 200 OK\r\n");
        expect(&line, "Content-Type: text/plain\r\nVary: Accept-Encoding, Origin\r\n");
        expect(&line, "\r\n\r\n");
        assert_memory_equal(weir_buf_bytes(line.sent), weir_buf_bytes(text), 5000);
        expect(&line, "HTTP/1.1 200 OK\r\n");
        expect(&line, "\r\n\r\n100000 bytes");
        expect(&line, "HTTP/1.1 204 No Content\r\n");
        expect(&line, "Access-Control-Allow-Methods: GET, HEAD, POST\r\n");
        expect(&line, "HTTP/1.1 200 OK\r\n");
        expect(&line, "\r\n\r\nstreamed");
        assert_int_equal(streamed, 100000);
        expect(&line, "HTTP/1.1 404 Not Found\r\n");
        assert_true(weir_channel_is_open(weir_embedded_channel(line.embedded)));
        close_line(&line);
    }
    weir_buf_release(text);
    weir_buf_release(bytes);
}

TEST(filters, refuse_and_keep_the_connection_or_close_it)
{
    weir_buf *bytes = NULL, *text = content_text(100);
    struct line line;

    assert_int_equal(weir_buf_create(0, 0, &bytes), 0);
    open_line(&line, 2);
    for (int i = 0; i < 2; i++) /* the second half is above the limit */
        write_requests(bytes);
    receive(&line, bytes, SIZE_MAX);
    expect(&line, "HTTP/1.1 200 OK\r\n");
    expect(&line, "HTTP/1.1 200 OK\r\n");
    for (int i = 0; i < 10; i++) { /* of which some have content */
        expect(&line, "HTTP/1.1 429 Too Many Requests\r\n");
        expect(&line, "Retry-After: 1\r\n");
    }
    assert_true(weir_channel_is_open(weir_embedded_channel(line.embedded)));
    close_line(&line);
    weir_buf_clear(bytes);
    write_coded_post(bytes, "/count", text); /* not gzip at all */
    open_line(&line, 2);
    receive(&line, bytes, 50);
    expect(&line, "HTTP/1.1 400 Bad Request\r\n");
    expect(&line, "Connection: close\r\n");
    close_line(&line);
    weir_buf_release(text);
    weir_buf_release(bytes);
}

TEST(filters, survive_allocation_failures)
{
    weir_buf *bytes = NULL;
    bool has_failed = true;
    struct line line;

    assert_int_equal(weir_buf_create(0, 0, &bytes), 0);
    write_requests(bytes);
    for (unsigned n = 1; has_failed; n++) {
        weir_buf *copy = NULL;

        open_line(&line, 100);
        assert_int_equal(weir_buf_copy(bytes, 0, weir_buf_readable(bytes), &copy), 0);
        test_memory_fail_at(n);
        IGNORE_RESULT(weir_embedded_write_inbound(line.embedded, weir_buf_msg(copy)));
        has_failed = test_memory_failed();
        test_memory_fail_at(0);
        close_line(&line);
    }
    weir_buf_release(bytes);
}
