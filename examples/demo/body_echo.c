/* SPDX-License-Identifier: Apache-2.0 */
#include "demo/body_echo.h"

#include <stdatomic.h>
#include <weir/weir.h>

/*
 * Content that waits to be sent. Many clients, such as Python's http.client, do not read before
 * they have sent everything: the server has to read on meanwhile. This is the limit for all
 * requests together; above it, clients that do not read are not read from.
 */
#define UNSENT_MAX ((size_t)256 << 20)

static _Atomic size_t unsent;

static void read_more(weir_http_exchange *exchange, void *user_data)
{
    (void)user_data;
    weir_http_exchange_read(exchange);
}

static void on_sent(weir_promise *sent, void *length)
{
    (void)sent;
    atomic_fetch_sub_explicit(&unsent, (size_t)(uintptr_t)length, memory_order_relaxed);
}

/* Writes a piece that has to wait; counts it until it has been sent. False if the limit is reached,
 * or there is no memory. */
static bool write_counted(weir_http_exchange *exchange, weir_msg *msg)
{
    const weir_buf *buf = weir_buf_of(msg);
    size_t length = buf != NULL ? weir_buf_readable(buf) : 0;
    size_t before = atomic_fetch_add_explicit(&unsent, length, memory_order_relaxed);
    weir_promise *sent = NULL;
    int err = weir_promise_create(NULL, &sent);

    if (!err)
        err = weir_promise_add_listener(sent, on_sent, (void *)(uintptr_t)length);
    if (err)
        on_sent(NULL, (void *)(uintptr_t)length);
    (void)weir_http_exchange_write(exchange, msg, sent); /* fails if the connection is lost */
    weir_promise_release(sent);
    return !err && before + length <= UNSENT_MAX;
}

static int begin(weir_http_exchange *exchange)
{
    const weir_http_request *request = weir_http_exchange_request(exchange);
    weir_http_headers *headers = weir_http_exchange_headers(exchange);
    weir_span type =
        weir_http_headers_get(weir_http_request_headers(request), WEIR_HTTP_CONTENT_TYPE);

    if (headers == NULL)
        return 0; /* it has begun */
    (void)weir_http_headers_set(headers, WEIR_HTTP_CONTENT_TYPE,
                                type.length > 0 ? type
                                                : weir_span_of_text("application/octet-stream"));
    return weir_http_exchange_begin(exchange, 200, weir_http_request_content_length(request));
}

static void on_content(weir_http_exchange *exchange, weir_msg *msg, int err, void *user_data)
{
    (void)user_data;
    if (err == 0)
        err = begin(exchange); /* not earlier: a client may wait for status 100 */
    if (msg == NULL || err) {
        if (err == 0)
            (void)weir_http_exchange_end(exchange, NULL);
        weir_msg_release(msg);
        weir_http_exchange_release(exchange);
        return;
    }
    if (weir_http_exchange_is_writable(exchange)) {
        (void)weir_http_exchange_write(exchange, msg, NULL);
        weir_http_exchange_read(exchange);
    } else if (write_counted(exchange, msg)) {
        weir_http_exchange_read(exchange);
    } else {
        weir_http_exchange_on_writable(exchange, read_more, NULL);
    }
}

void echo_body(weir_http_exchange *exchange, void *user_data)
{
    (void)user_data;
    weir_http_exchange_on_content(weir_http_exchange_retain(exchange), on_content, NULL);
    weir_http_exchange_read(exchange);
}
