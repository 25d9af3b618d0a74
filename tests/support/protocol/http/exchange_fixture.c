/* SPDX-License-Identifier: Apache-2.0 */
#include "support/protocol/http/exchange_fixture.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "protocol/http/message.h"

weir_embedded *exchange_open(const weir_http_route *routes)
{
    weir_embedded *embedded = NULL;
    weir_http_router *router = NULL;

    assert_int_equal(weir_http_router_create(routes, &router), 0);
    assert_int_equal(weir_embedded_create(NULL, &embedded), 0);
    assert_int_equal(weir_http_router_add(weir_embedded_pipeline(embedded), router, 0), 0);
    weir_http_router_release(router);
    return embedded;
}

void exchange_put_head(weir_embedded *embedded, const char *method, const char *target,
                       int64_t length, bool expects)
{
    weir_http_request *request = NULL;

    assert_int_equal(weir_http_request_create(method, target, &request), 0);
    assert_int_equal(weir_http_request_set_content_length(request, length), 0);
    request->expects_continue = expects; /* as the codec does */
    (void)weir_embedded_write_inbound(embedded, weir_http_request_msg(request));
}

void exchange_put_content(weir_embedded *embedded, const char *text)
{
    weir_buf *buf = NULL;

    assert_int_equal(weir_buf_create_from(text, strlen(text), &buf), 0);
    (void)weir_embedded_write_inbound(embedded, weir_buf_msg(buf));
}

void exchange_put_end(weir_embedded *embedded)
{
    (void)weir_embedded_write_inbound(embedded, weir_http_end_static());
}

void exchange_put(weir_embedded *embedded, const char *method, const char *target)
{
    exchange_put_head(embedded, method, target, 0, false);
    exchange_put_end(embedded);
}

struct text {
    char bytes[4096];
    size_t length;
};

__attribute__((format(printf, 2, 3))) static void add(struct text *text, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    text->length += (size_t)vsnprintf(text->bytes + text->length,
                                      sizeof(text->bytes) - text->length, format, arguments);
    va_end(arguments);
    assert_true(text->length < sizeof(text->bytes));
}

static void add_head(struct text *text, const weir_http_response *response)
{
    const weir_http_headers *headers = weir_http_response_headers(response);
    int64_t length = weir_http_response_content_length(response);

    add(text, "%d", weir_http_response_status(response));
    if (length == WEIR_HTTP_UNKNOWN_LENGTH)
        add(text, "(?)");
    else if (length != 0)
        add(text, "(%" PRId64 ")", length);
    for (size_t i = 0; i < weir_http_headers_count(headers); i++) {
        weir_http_field field = weir_http_headers_at(headers, i);

        if (field.id != WEIR_HTTP_CONTENT_TYPE || field.value.length < 10 ||
            memcmp(field.value.data, "text/plain", 10) != 0)
            add(text, " %.*s: %.*s", (int)field.name.length, (const char *)field.name.data,
                (int)field.value.length, (const char *)field.value.data);
    }
    if (weir_http_response_closes(response))
        add(text, " close");
}

void assert_exchange_sent(weir_embedded *embedded, const char *expected)
{
    struct text text = {.bytes = ""};
    weir_msg *msg;

    while ((msg = weir_embedded_read_outbound(embedded)) != NULL) {
        if (text.length > 0)
            add(&text, " | ");
        if (weir_http_response_of(msg) != NULL)
            add_head(&text, weir_http_response_of(msg));
        else if (weir_http_end_of(msg) != NULL)
            add(&text, "end");
        else if (weir_buf_of(msg) != NULL)
            add(&text, "%.*s", (int)weir_buf_readable(weir_buf_of(msg)),
                (const char *)weir_buf_bytes(weir_buf_of(msg)));
        else
            add(&text, "?");
        weir_msg_release(msg);
    }
    assert_string_equal(text.bytes, expected);
}
