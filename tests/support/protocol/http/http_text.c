/* SPDX-License-Identifier: Apache-2.0 */
#include "support/protocol/http/http_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <weir/composite.h>

#include "support/test.h"

/* Appends to a text, as far as there is room. */
static void append(char *text, size_t size, const void *bytes, size_t length)
{
    size_t used = strlen(text), room = size - used - 1;

    if (length > room)
        length = room;
    for (size_t i = 0; i < length; i++) {
        char byte = ((const char *)bytes)[i];

        text[used + i] = byte != '\0' ? byte : '0';
    }
    text[used + length] = '\0';
}

static void append_text(char *text, size_t size, const char *more)
{
    append(text, size, more, strlen(more));
}

static void append_span(char *text, size_t size, weir_span span)
{
    append(text, size, span.data, span.length);
}

void assert_span_text(weir_span span, const char *expected)
{
    char text[4096] = "";

    append_span(text, sizeof(text), span);
    assert_string_equal(text, expected);
}

static void format_fields(const weir_http_headers *headers, char *text, size_t size)
{
    for (size_t i = 0; i < weir_http_headers_count(headers); i++) {
        weir_http_field field = weir_http_headers_at(headers, i);

        append_text(text, size, i > 0 ? "|" : "");
        append_span(text, size, field.name);
        append_text(text, size, ": ");
        append_span(text, size, field.value);
    }
}

void assert_fields(const weir_http_headers *headers, const char *expected)
{
    char text[65536] = "";

    format_fields(headers, text, sizeof(text));
    assert_string_equal(text, expected);
}

static void format_rest(enum weir_http_version version, const weir_http_headers *headers,
                        int64_t length, char *text, size_t size)
{
    char number[32];

    (void)snprintf(number, sizeof(number), " %d.%d {", (int)version / 10, (int)version % 10);
    append_text(text, size, number);
    format_fields(headers, text, size);
    (void)snprintf(number, sizeof(number), "} %" PRId64, length);
    append_text(text, size, length >= 0 ? number : "} ?");
}

static void format_response(weir_http_response *response, char *text, size_t size)
{
    char status[16];

    (void)snprintf(status, sizeof(status), "%d ", weir_http_response_status(response));
    append_text(text, size, status);
    append_span(text, size, weir_http_response_reason(response));
    format_rest(weir_http_response_version(response), weir_http_response_headers(response),
                weir_http_response_content_length(response), text, size);
}

static void format_request(weir_http_request *request, char *text, size_t size)
{
    append_span(text, size, weir_http_request_method_text(request));
    append_text(text, size, " ");
    append_span(text, size, weir_http_request_target(request));
    format_rest(weir_http_request_version(request), weir_http_request_headers(request),
                weir_http_request_content_length(request), text, size);
}

static void format_end(weir_http_end *end, char *text, size_t size)
{
    append_text(text, size, "end");
    if (weir_http_end_trailers(end) == NULL)
        return;
    append_text(text, size, " {");
    format_fields(weir_http_end_trailers(end), text, size);
    append_text(text, size, "}");
}

static void format_full(weir_http_full *full, char *text, size_t size)
{
    append_text(text, size, "full ");
    if (weir_http_full_request(full) != NULL)
        format_request(weir_http_full_request(full), text, size);
    else
        format_response(weir_http_full_response(full), text, size);
    append_text(text, size, " (");
    append_span(text, size, weir_buf_span(weir_http_full_content(full)));
    append_text(text, size, ")");
}

void http_format(weir_msg *msg, char *text, size_t size)
{
    text[0] = '\0';
    if (weir_http_request_of(msg) != NULL) {
        format_request(weir_http_request_of(msg), text, size);
    } else if (weir_http_response_of(msg) != NULL) {
        format_response(weir_http_response_of(msg), text, size);
    } else if (weir_http_end_of(msg) != NULL) {
        format_end(weir_http_end_of(msg), text, size);
    } else if (weir_http_full_of(msg) != NULL) {
        format_full(weir_http_full_of(msg), text, size);
    } else if (weir_buf_of(msg) != NULL) {
        append_text(text, size, "(");
        append_span(text, size, weir_buf_span(weir_buf_of(msg)));
        append_text(text, size, ")");
    } else {
        append_text(text, size, msg->type->name);
    }
}
