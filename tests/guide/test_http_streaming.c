/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What docs/guide/29-http-streaming.md shows.
 */
#include <inttypes.h>
#include <stdio.h>

#include <weir/http_server.h>
#include <weir/memory.h>

#include "guide/guide_fixture.h"
#include "support/bootstrap/raw_client.h"

/* doc:begin upload */
struct count {
    uint64_t bytes;
};

static void on_content(weir_http_exchange *exchange, weir_msg *msg, int err, void *user_data)
{
    struct count *count = user_data;
    char text[64];

    if (msg != NULL) { /* a piece: process it, then ask for the next */
        count->bytes += weir_msg_size(msg);
        weir_msg_release(msg);
        weir_http_exchange_read(exchange);
        return;
    }
    if (!err) { /* the end of the content */
        snprintf(text, sizeof(text), "%" PRIu64 " bytes\n", count->bytes);
        weir_http_respond_text(exchange, 200, text);
    }
    weir_memory_free(count);
    weir_http_exchange_release(exchange);
}

static void upload(weir_http_exchange *exchange, void *user_data)
{
    struct count *count = weir_memory_alloc(sizeof(*count));

    (void)user_data;
    if (count == NULL)
        return; /* 500 */
    count->bytes = 0;
    weir_http_exchange_on_content(weir_http_exchange_retain(exchange), on_content, count);
    weir_http_exchange_read(exchange);
}
/* doc:end */

/* doc:begin download */
struct countdown {
    int left;
};

static void send_more(weir_http_exchange *exchange, void *user_data)
{
    struct countdown *countdown = user_data;

    while (countdown->left > 0 && weir_http_exchange_is_writable(exchange)) {
        weir_buf *line = NULL;
        int err = weir_buf_create(32, 0, &line);

        if (!err)
            err = weir_buf_printf(line, "%d\n", countdown->left);
        if (!err)
            err = weir_http_exchange_write(exchange, weir_buf_msg(line), NULL);
        else
            weir_buf_release(line);
        if (err) { /* the connection is lost, or there is no memory: the client sees a reset */
            weir_memory_free(countdown);
            weir_http_exchange_release(exchange);
            return;
        }
        countdown->left--;
    }
    if (countdown->left > 0) {
        weir_http_exchange_on_writable(exchange, send_more, countdown);
        return;
    }
    weir_http_exchange_end(exchange, NULL);
    weir_memory_free(countdown);
    weir_http_exchange_release(exchange);
}

static void download(weir_http_exchange *exchange, void *user_data)
{
    struct countdown *countdown = weir_memory_alloc(sizeof(*countdown));

    (void)user_data;
    if (countdown == NULL)
        return;
    countdown->left = 100000;
    if (weir_http_exchange_begin(exchange, 200, WEIR_HTTP_UNKNOWN_LENGTH) < 0) {
        weir_memory_free(countdown);
        return;
    }
    send_more(weir_http_exchange_retain(exchange), countdown);
}
/* doc:end */

static const weir_http_route routes[] = {
    WEIR_HTTP_ROUTE("PUT", "/upload", upload, .streaming = true),
    WEIR_HTTP_ROUTE("GET", "/download", download), WEIR_HTTP_ROUTES_END};

static weir_http_server *start(void)
{
    weir_http_server *server = NULL;

    assert_int_equal(
        weir_http_server_start(
            WEIR_HTTP_SERVER_OPTIONS(.address = "127.0.0.1:0", .routes = routes, .threads = 1),
            &server),
        0);
    return server;
}

TEST(guide_http_streaming, an_upload_is_counted)
{
    weir_http_server *server = start();
    int peer = raw_client_connect(weir_http_server_server(server));
    char response[1024] = "";

    raw_client_send(peer, "PUT /upload HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"
                          "Transfer-Encoding: chunked\r\n\r\n");
    for (int i = 0; i < 1000; i++)
        raw_client_send(peer, "a\r\n0123456789\r\n");
    raw_client_send(peer, "0\r\n\r\n");
    (void)raw_client_receive_all(peer, response, sizeof(response));
    assert_non_null(strstr(response, "\r\n\r\n10000 bytes\n"));
    raw_client_close(peer);
    weir_http_server_release(server);
}

TEST(guide_http_streaming, a_download_is_complete)
{
    weir_http_server *server = start();
    int peer = raw_client_connect(weir_http_server_server(server));
    char tail[256];
    size_t total;

    raw_client_send(peer, "GET /download HTTP/1.0\r\n\r\n");
    total = raw_client_receive_all(peer, tail, sizeof(tail));
    assert_true(total > 588895); /* the lines, and a head */
    assert_string_equal(tail + strlen(tail) - 3, "\n1\n");
    raw_client_close(peer);
    weir_http_server_release(server);
}
