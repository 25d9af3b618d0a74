/* SPDX-License-Identifier: Apache-2.0 */
#include "support/protocol/http/filter_fixture.h"

#include <stdio.h>
#include <string.h>

#include "support/memory.h"

#define TRANSCRIPT_SIZE 8192

weir_embedded *filter_open(void)
{
    weir_embedded *embedded = NULL;

    assert_int_equal(
        weir_embedded_create(WEIR_EMBEDDED_OPTIONS(.remote = "192.0.2.1:1000"), &embedded), 0);
    return embedded;
}

/* Adds the fields of "Name: value\nName: value\n". */
static void add_fields(weir_http_headers *headers, const char *fields)
{
    while (*fields != '\0') {
        const char *colon = strchr(fields, ':'), *end = strchr(fields, '\n');

        assert_true(colon != NULL && end != NULL && colon < end);
        assert_int_equal(
            weir_http_headers_add_named(headers, weir_span_of(fields, (size_t)(colon - fields)),
                                        weir_span_of(colon + 1, (size_t)(end - colon - 1))),
            0);
        fields = end + 1;
    }
}

/* ---- as the codec ---- */

weir_http_request *filter_make_request(const char *head, int64_t length)
{
    char method[16], target[256];
    weir_http_request *request = NULL;
    const char *fields = strchr(head, '\n');

    assert_int_equal(sscanf(head, "%15s %255s", method, target), 2);
    assert_int_equal(weir_http_request_create(method, target, &request), 0);
    add_fields(weir_http_request_headers(request), fields != NULL ? fields + 1 : "");
    assert_int_equal(weir_http_request_set_content_length(request, length), 0);
    return request;
}

static void receive(weir_embedded *embedded, weir_msg *msg)
{
    int err = weir_embedded_write_inbound(embedded, msg);

    if (!test_memory_failed())
        assert_int_equal(err, 0);
}

void filter_receive_head(weir_embedded *embedded, const char *head, int64_t length)
{
    receive(embedded, weir_http_request_msg(filter_make_request(head, length)));
}

void filter_receive_text(weir_embedded *embedded, const char *text)
{
    weir_buf *buf = NULL;

    assert_int_equal(weir_buf_create_from(text, strlen(text), &buf), 0);
    receive(embedded, weir_buf_msg(buf));
}

void filter_receive_end(weir_embedded *embedded)
{
    receive(embedded, weir_http_end_static());
}

void filter_receive(weir_embedded *embedded, const char *head)
{
    filter_receive_head(embedded, head, 0);
    filter_receive_end(embedded);
}

/* ---- transcripts ---- */

struct transcript {
    char text[TRANSCRIPT_SIZE];
    size_t length;
};

static void WEIR_PRINTF(2, 3) put(struct transcript *transcript, const char *format, ...)
{
    size_t room = sizeof(transcript->text) - transcript->length;
    va_list arguments;
    int length;

    va_start(arguments, format);
    length = vsnprintf(transcript->text + transcript->length, room, format, arguments);
    va_end(arguments);
    assert_true(length >= 0 && (size_t)length < room);
    transcript->length += (size_t)length;
}

static void put_head(struct transcript *transcript, const weir_http_headers *headers,
                     int64_t length)
{
    if (length == WEIR_HTTP_UNKNOWN_LENGTH)
        put(transcript, " (?)");
    else
        put(transcript, " (%lld)", (long long)length);
    for (size_t i = 0; headers != NULL && i < weir_http_headers_count(headers); i++) {
        weir_http_field field = weir_http_headers_at(headers, i);

        put(transcript, "%s %.*s: %.*s", i > 0 ? ";" : "", (int)field.name.length,
            (const char *)field.name.data, (int)field.value.length, (const char *)field.value.data);
    }
}

static void put_msg(struct transcript *transcript, weir_msg *msg)
{
    weir_http_request *request = weir_http_request_of(msg);
    weir_http_response *response = weir_http_response_of(msg);
    weir_buf *buf = weir_buf_of(msg);

    if (transcript->length > 0)
        put(transcript, " | ");
    if (request != NULL) {
        weir_span method = weir_http_request_method_text(request);
        weir_span target = weir_http_request_target(request);

        put(transcript, "%.*s %.*s", (int)method.length, (const char *)method.data,
            (int)target.length, (const char *)target.data);
        put_head(transcript, weir_http_request_headers(request),
                 weir_http_request_content_length(request));
    } else if (response != NULL) {
        put(transcript, "%d", weir_http_response_status(response));
        put_head(transcript, weir_http_response_headers(response),
                 weir_http_response_content_length(response));
        if (weir_http_response_closes(response))
            put(transcript, " closes");
    } else if (weir_http_end_of(msg) != NULL) {
        put(transcript, "end");
    } else if (buf != NULL && weir_buf_readable(buf) < 100) {
        put(transcript, "%.*s", (int)weir_buf_readable(buf), (const char *)weir_buf_bytes(buf));
    } else {
        put(transcript, "%s of %zu", msg->type->name, weir_msg_size(msg));
    }
}

static const char *transcribe(weir_embedded *embedded, weir_msg *(*next)(weir_embedded *embedded))
{
    static struct transcript transcript;
    weir_msg *msg;

    transcript.length = 0;
    while ((msg = next(embedded)) != NULL) {
        put_msg(&transcript, msg);
        weir_msg_release(msg);
    }
    return transcript.length > 0 ? transcript.text : NULL;
}

const char *filter_sent(weir_embedded *embedded)
{
    return transcribe(embedded, weir_embedded_read_outbound);
}

const char *filter_received(weir_embedded *embedded)
{
    return transcribe(embedded, weir_embedded_read_inbound);
}

unsigned filter_take_response(weir_embedded *embedded, weir_http_response **ret_response,
                              weir_buf **ret_content)
{
    weir_msg *msg = weir_embedded_read_outbound(embedded);
    weir_buf *content = NULL;
    unsigned pieces = 0;

    *ret_response = weir_http_response_of(msg);
    assert_non_null(*ret_response);
    assert_int_equal(weir_buf_create(0, 0, &content), 0);
    while ((msg = weir_embedded_read_outbound(embedded)) != NULL && weir_http_end_of(msg) == NULL) {
        weir_buf *piece = weir_buf_of(msg);

        assert_non_null(piece);
        assert_int_equal(
            weir_buf_write_bytes(content, weir_buf_bytes(piece), weir_buf_readable(piece)), 0);
        weir_msg_release(msg);
        pieces++;
    }
    weir_msg_release(msg);
    *ret_content = content;
    return pieces;
}

/* ---- as the application ---- */

weir_http_response *filter_make_response(int status, const char *fields, int64_t length)
{
    weir_http_response *response = NULL;

    assert_int_equal(weir_http_response_create(status, &response), 0);
    add_fields(weir_http_response_headers(response), fields);
    assert_int_equal(weir_http_response_set_content_length(response, length), 0);
    return response;
}

void filter_write(weir_embedded *embedded, weir_msg *msg)
{
    weir_channel_write(weir_embedded_channel(embedded), msg, NULL);
}

void filter_write_head(weir_embedded *embedded, int status, const char *fields, int64_t length)
{
    filter_write(embedded, weir_http_response_msg(filter_make_response(status, fields, length)));
}

void filter_write_text(weir_embedded *embedded, const char *text)
{
    weir_buf *buf = NULL;

    assert_int_equal(weir_buf_create_from(text, strlen(text), &buf), 0);
    filter_write(embedded, weir_buf_msg(buf));
}

void filter_write_end(weir_embedded *embedded)
{
    filter_write(embedded, weir_http_end_static());
}

void filter_respond(weir_embedded *embedded, int status, const char *fields, const char *text)
{
    filter_write_head(embedded, status, fields, text != NULL ? (int64_t)strlen(text) : 0);
    if (text != NULL)
        filter_write_text(embedded, text);
    filter_write_end(embedded);
    weir_channel_flush(weir_embedded_channel(embedded));
    weir_embedded_run(embedded);
}
