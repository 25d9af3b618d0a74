/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The codec without memory: every allocation fails once, in turn, and nothing is leaked.
 */
#include <string.h>

#include <weir/embedded.h>
#include <weir/error.h>
#include <weir/http1.h>

#include "support/memory.h"
#include "support/test.h"

static void ignore_error(weir_ctx *ctx, int err, const char *detail)
{
    (void)ctx;
    (void)err;
    (void)detail;
    weir_close(ctx, NULL);
}

/* Answers with content that is chunked, or passed on by reference; keeps no message. */
static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    weir_http_response *response = NULL;
    weir_buf *small = NULL, *large = NULL;

    if (weir_http_end_of(msg) != NULL && weir_http_response_create(200, &response) == 0) {
        (void)weir_http_response_set_content_length(response, WEIR_HTTP_UNKNOWN_LENGTH);
        (void)weir_http_headers_add_text(weir_http_response_headers(response), WEIR_HTTP_VARY, "x");
        weir_write(ctx, weir_http_response_msg(response), NULL);
        if (weir_buf_create_from("small", 5, &small) == 0)
            weir_write(ctx, weir_buf_msg(small), NULL);
        if (weir_buf_create(4000, 0, &large) == 0) {
            (void)weir_buf_advance(large, 4000);
            weir_write(ctx, weir_buf_msg(large), NULL);
        }
        weir_write_and_flush(ctx, weir_http_end_static(), NULL);
    }
    weir_msg_release(msg);
}

static const weir_handler server = {.name = "server", .read = on_read, .error = ignore_error};

static const char *const server_pieces[] = {
    "GET / HTTP/1.1\r\nHost: h\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nab",
    "c\r\n2\r\nde\r\n0\r\nX-Trailer: y\r\n",
    "\r\nGET / HTTP/1.1\r\nHost: h\r\nX-1: 1\r\nX-2: 2\r\nX-3: 3\r\nX-4: 4\r\nX-5: 5\r\nX-6: 6\r\n"
    "X-7: 7\r\nX-8: 8\r\nX-9: 9\r\nX-10: 10\r\nX-11: 11\r\nX-12: 12\r\nX-13: 13\r\nX-14: 14\r\n"
    "X-15: 1\r\nX-16: 2\r\nX-17: 3\r\nX-18: 4\r\nX-19: 5\r\nX-20: 6\r\nX-21: 7\r\nX-22: 8\r\n"
    "X-23: 1\r\nX-24: 2\r\nX-25: 3\r\nX-26: 4\r\nX-27: 5\r\nX-28: 6\r\nX-29: 7\r\nX-30: 8\r\n",
    "\r\nGET http://other/ HTTP/1.1\r\nHost: h\r\n\r\n",
    "GET / HTTP/1.1\r\n\r\n", /* refused */
    NULL,
};

/* A failed allocation of the test itself ends the connection. */
static void feed_pieces(weir_embedded *embedded, const char *const *pieces)
{
    weir_buf *buf;

    for (size_t i = 0; pieces[i] != NULL; i++) {
        if (weir_buf_create_from(pieces[i], strlen(pieces[i]), &buf) < 0)
            break;
        (void)weir_embedded_write_inbound(embedded, weir_buf_msg(buf));
    }
    weir_embedded_end_input(embedded);
    weir_embedded_advance(embedded, weir_seconds(1));
}

static void run_server(void)
{
    weir_embedded *embedded = NULL;

    if (weir_embedded_create(
            WEIR_EMBEDDED_OPTIONS(.channel = WEIR_CHANNEL_OPTIONS(.half_closure = true)),
            &embedded) < 0)
        return;
    if (weir_http1_server_add(weir_embedded_pipeline(embedded), NULL) == 0 &&
        weir_pipeline_add_last(weir_embedded_pipeline(embedded), &server, NULL) == 0)
        feed_pieces(embedded, server_pieces);
    weir_embedded_release(embedded);
}

TEST(http1_memory, a_server_survives_each_failure)
{
    run_server(); /* creates the pools */
    for (unsigned n = 1;; n++) {
        test_memory_fail_at(n);
        run_server();
        if (!test_memory_failed())
            break;
    }
    test_memory_fail_at(0);
}

static void release_read(weir_ctx *ctx, weir_msg *msg)
{
    (void)ctx;
    weir_msg_release(msg);
}

static const weir_handler client = {.name = "client", .read = release_read, .error = ignore_error};

static void write_requests(weir_channel *channel)
{
    weir_http_request *request = NULL;
    weir_buf *content = NULL;

    for (int i = 0; i < 3; i++) {
        if (weir_http_request_create("POST", "http://h/path", &request) < 0)
            return;
        (void)weir_http_request_set_content_length(request, WEIR_HTTP_UNKNOWN_LENGTH);
        weir_channel_write(channel, weir_http_request_msg(request), NULL);
        if (weir_buf_create_from("content", 7, &content) == 0)
            weir_channel_write(channel, weir_buf_msg(content), NULL);
        weir_channel_write_and_flush(channel, weir_http_end_static(), NULL);
    }
}

static const char *const client_pieces[] = {
    "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcHTTP/1.1 20",
    "0 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX: y\r\n\r\n",
    "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nrest",
    NULL,
};

static void run_client(void)
{
    weir_embedded *embedded = NULL;

    if (weir_embedded_create(
            WEIR_EMBEDDED_OPTIONS(.channel = WEIR_CHANNEL_OPTIONS(.half_closure = true)),
            &embedded) < 0)
        return;
    if (weir_http1_client_add(weir_embedded_pipeline(embedded), NULL) == 0 &&
        weir_http_aggregator_add(weir_embedded_pipeline(embedded), 0) == 0 &&
        weir_pipeline_add_last(weir_embedded_pipeline(embedded), &client, NULL) == 0) {
        write_requests(weir_embedded_channel(embedded));
        feed_pieces(embedded, client_pieces);
    }
    weir_embedded_release(embedded);
}

TEST(http1_memory, a_client_survives_each_failure)
{
    run_client();
    for (unsigned n = 1;; n++) {
        test_memory_fail_at(n);
        run_client();
        if (!test_memory_failed())
            break;
    }
    test_memory_fail_at(0);
}
