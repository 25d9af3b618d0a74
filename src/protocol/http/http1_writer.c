/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/http/http1_writer.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <weir/channel.h>
#include <weir/composite.h>
#include <weir/error.h>

#include "base/no_stack_protector.h"
#include "os/clock.h"
#include "protocol/http/date.h"
#include "protocol/http/http_counters.h"

#define OUT_SIZE 512       /* for one small message */
#define OUT_SIZE_MORE 8192 /* if more are likely to follow */
#define COPY_MAX 1024      /* content up to this size is copied behind the head */
#define LARGE_FILE 262144  /* files from this size on are observed while they are sent */
#define LINE_MAX 128       /* a status line, Date, or framing fields */

/* ---- the buffer ---- */

static void release_file(weir__http1_writer *writer)
{
    weir_file_range *file = writer->file;

    if (file == NULL)
        return;
    writer->file = NULL;
    weir_msg_release(weir_file_range_msg(file));
}

void weir__http1_writer_forget_file(weir__http1_writer *writer)
{
    if (writer->file != NULL && weir_file_range_remaining(writer->file) == 0)
        release_file(writer);
}

/* Files do not count as pending bytes. */
bool weir__http1_writer_is_sending(weir_ctx *ctx, const weir__http1_writer *writer)
{
    return !weir_ctx_is_writable(ctx) ||
           (writer->file != NULL && weir_file_range_remaining(writer->file) > 0);
}

static void pass(weir_ctx *ctx, weir__http1_writer *writer, weir_msg *msg, weir_promise *done)
{
    weir_file_range *file = weir_file_range_of(msg);

    if (writer->is_server)
        weir__http_count(WEIR__HTTP_BYTES_SENT, file != NULL
                                                    ? (uint64_t)weir_file_range_remaining(file)
                                                    : weir__http_bytes_of(msg));
    if (file != NULL && weir_file_range_remaining(file) >= LARGE_FILE) {
        release_file(writer);
        writer->file = file;
        writer->files++;
        weir_msg_retain(msg);
    }
    weir_write(ctx, msg, done);
}

void weir__http1_writer_deinit(weir__http1_writer *writer)
{
    weir_buf_release(writer->out);
    writer->out = NULL;
    release_file(writer);
}

/* An empty buffer carries a promise: it completes when everything before it has been sent. */
void weir__http1_writer_pass(weir_ctx *ctx, weir__http1_writer *writer, weir_promise *done)
{
    weir_buf *out = writer->out;
    int err = 0;

    writer->out = NULL;
    if (out == NULL && done != NULL)
        err = weir_buf_wrap_static("", 0, &out);
    if (err < 0)
        weir_ctx_report(ctx, done, err, NULL);
    else if (out != NULL)
        pass(ctx, writer, weir_buf_msg(out), done);
}

WEIR__NO_STACK_PROTECTOR static int replace(weir_ctx *ctx, weir__http1_writer *writer, size_t size)
{
    size_t usual = writer->expects_more ? OUT_SIZE_MORE : OUT_SIZE;
    weir_buf *out;
    int err = weir_buf_create(size > usual ? size : usual, 0, &out);

    if (err < 0)
        return err;
    if (writer->out != NULL)
        weir__http1_writer_pass(ctx, writer, NULL);
    writer->out = out;
    return 0;
}

/* Makes room for `size` bytes. */
static inline int reserve(weir_ctx *ctx, weir__http1_writer *writer, size_t size)
{
    if (writer->out != NULL && weir_buf_writable(writer->out) >= size)
        return 0;
    return replace(ctx, writer, size);
}

/* Most texts are short: a call of memcpy costs more than the copy. */
static inline uint8_t *put(uint8_t *to, const uint8_t *from, size_t length)
{
    if (length > 32) {
        memcpy(to, from, length);
    } else if (length >= 16) {
        memcpy(to, from, 16);
        memcpy(to + length - 16, from + length - 16, 16);
    } else if (length >= 8) {
        memcpy(to, from, 8);
        memcpy(to + length - 8, from + length - 8, 8);
    } else if (length >= 4) {
        memcpy(to, from, 4);
        memcpy(to + length - 4, from + length - 4, 4);
    } else {
        for (size_t i = 0; i < length; i++)
            to[i] = from[i];
    }
    return to + length;
}

static inline uint8_t *put_span(uint8_t *to, weir_span text)
{
    return put(to, text.data, text.length);
}

static inline uint8_t *put_text(uint8_t *to, const char *text)
{
    return put(to, (const uint8_t *)text, strlen(text));
}

__attribute__((noinline)) static uint8_t *put_number(uint8_t *to, uint64_t number)
{
    uint8_t digits[20];
    size_t count = 0;

    do
        digits[sizeof(digits) - ++count] = (uint8_t)('0' + number % 10);
    while ((number /= 10) > 0);
    for (; count > 0; count--)
        *to++ = digits[sizeof(digits) - count];
    return to;
}

static inline uint8_t *fast_put_number(uint8_t *to, uint64_t number)
{
    if (number >= 100)
        return put_number(to, number);
    if (number >= 10)
        *to++ = (uint8_t)('0' + number / 10);
    *to++ = (uint8_t)('0' + number % 10);
    return to;
}

static uint8_t *put_hex(uint8_t *to, uint64_t number)
{
    uint8_t digits[16];
    size_t count = 0;

    do
        digits[sizeof(digits) - ++count] = (uint8_t)("0123456789abcdef"[number & 15]);
    while ((number >>= 4) > 0);
    for (; count > 0; count--)
        *to++ = digits[sizeof(digits) - count];
    return to;
}

/* ---- heads ---- */

#define DATE_LINE_LENGTH 37

static void format_date_line(int64_t second, char ret_line[DATE_LINE_LENGTH + 1])
{
    char text[WEIR__HTTP_DATE_SIZE];

    (void)snprintf(ret_line, DATE_LINE_LENGTH + 1, "Date: %s\r\n",
                   weir__http_date_format(second, text));
}

/* The Date field of this second, formatted once per thread. */
static inline const char *date_line(void)
{
    static _Thread_local struct {
        int64_t second;
        char line[DATE_LINE_LENGTH + 1];
    } date __attribute__((tls_model("initial-exec")));
    int64_t second = weir_time_of_day_coarse() / 1000000000;

    if (__builtin_expect(date.second != second, 0)) {
        date.second = second;
        format_date_line(second, date.line);
    }
    return date.line;
}

/* Fields that the codec writes itself. */
static inline bool is_framing(uint8_t id)
{
    return id == WEIR_HTTP_CONTENT_LENGTH || id == WEIR_HTTP_TRANSFER_ENCODING ||
           id == WEIR_HTTP_CONNECTION || id == WEIR_HTTP_KEEP_ALIVE ||
           id == WEIR_HTTP_PROXY_CONNECTION;
}

/* At least the number of bytes of all fields. */
static size_t fields_size(const weir_http_headers *headers)
{
    size_t size = 0;

    for (size_t i = 0; i < headers->count; i++)
        size += weir__http_field_name(headers, &headers->fields[i]).length +
                headers->fields[i].value_length + 4;
    return size;
}

static uint8_t *put_fields(uint8_t *to, const weir_http_headers *headers)
{
    for (size_t i = 0; i < headers->count; i++) {
        const weir__http_field *field = &headers->fields[i];

        if (is_framing(field->id))
            continue;
        to = put_span(to, weir__http_field_name(headers, field));
        *to++ = ':';
        *to++ = ' ';
        to = put_span(to, weir__http_field_value(headers, field));
        *to++ = '\r';
        *to++ = '\n';
    }
    return to;
}

static uint8_t *put_framing(uint8_t *to, const weir__http1_framed *framed)
{
    if (framed->length >= 0) {
        to = put(to, (const uint8_t *)"Content-Length: ", 16);
        to = fast_put_number(to, (uint64_t)framed->length);
        *to++ = '\r';
        *to++ = '\n';
    } else if (framed->content == WEIR__HTTP1_CHUNKED) {
        to = put_text(to, "Transfer-Encoding: chunked\r\n");
    }
    if (framed->connection != NULL) {
        to = put_text(to, "Connection: ");
        to = put_text(to, framed->connection);
        *to++ = '\r';
        *to++ = '\n';
    }
    *to++ = '\r';
    *to++ = '\n';
    return to;
}

/* The reason is the usual one if `data` is NULL. */
static inline uint8_t *put_status(uint8_t *to, int status, weir_span reason)
{
    if (status == 200 && reason.data == NULL)
        return put(to, (const uint8_t *)"HTTP/1.1 200 OK\r\n", 17);
    to = put(to, (const uint8_t *)"HTTP/1.1 ", 9);
    to = fast_put_number(to, (uint64_t)status);
    *to++ = ' ';
    to = put_span(to,
                  reason.data != NULL ? reason : weir_span_of_text(weir_http_status_text(status)));
    *to++ = '\r';
    *to++ = '\n';
    return to;
}

static uint8_t *put_status_line(uint8_t *to, const weir_http_response *response)
{
    weir_span usual = {0};

    return put_status(to, response->status,
                      response->has_reason ? weir_http_response_reason(response) : usual);
}

/* The message that begins with this head. */
static void begin(weir__http1_writer *writer, const weir__http1_framed *framed)
{
    writer->content = (uint8_t)framed->content;
    writer->left = framed->content == WEIR__HTTP1_LENGTH ? (uint64_t)framed->length : 0;
    writer->is_open = true;
    weir__http1_writer_forget_file(writer);
}

int weir__http1_writer_put_response(weir_ctx *ctx, weir__http1_writer *writer,
                                    const weir_http_response *response,
                                    const weir__http1_framed *framed)
{
    const weir_http_headers *headers = &response->head.headers;
    uint8_t *start, *to;
    int err =
        reserve(ctx, writer, fields_size(headers) + response->reason_length + (size_t)3 * LINE_MAX);

    if (err < 0)
        return err;
    start = weir_buf_space(writer->out);
    to = put_status_line(start, response);
    if (framed->has_date && !weir__http_headers_have(headers, WEIR_HTTP_DATE)) {
        memcpy(to, date_line(), DATE_LINE_LENGTH);
        to += DATE_LINE_LENGTH;
    }
    to = put_fields(to, headers);
    to = put_framing(to, framed);
    (void)weir_buf_advance(writer->out, (size_t)(to - start));
    begin(writer, framed);
    return 0;
}

/* With its content; only the end is left. */
WEIR__NO_STACK_PROTECTOR int weir__http1_writer_put_answer(weir_ctx *ctx,
                                                           weir__http1_writer *writer,
                                                           const weir__http_answer *answer)
{
    uint8_t *start, *to;
    int err = reserve(ctx, writer,
                      answer->content.length + answer->content_type.length + (size_t)3 * LINE_MAX);

    if (err < 0)
        return err;
    start = weir_buf_space(writer->out);
    to = put_status(start, answer->status, weir_span_of(NULL, 0));
    memcpy(to, date_line(), DATE_LINE_LENGTH);
    to = put(to + DATE_LINE_LENGTH, (const uint8_t *)"Content-Type: ", 14);
    to = put_span(to, answer->content_type);
    to = put(to, (const uint8_t *)"\r\nContent-Length: ", 18);
    to = fast_put_number(to, answer->content.length);
    to = put(to, (const uint8_t *)"\r\n\r\n", 4);
    to = put_span(to, answer->content);
    (void)weir_buf_advance(writer->out, (size_t)(to - start));
    writer->content = WEIR__HTTP1_LENGTH;
    writer->left = 0;
    writer->is_open = true;
    return 0;
}

int weir__http1_writer_put_request(weir_ctx *ctx, weir__http1_writer *writer,
                                   const weir_http_request *request,
                                   const weir__http1_framed *framed)
{
    const weir_http_headers *headers = &request->head.headers;
    weir_span method = weir_http_request_method_text(request);
    weir_span target = weir_http_request_target(request);
    weir_span host = weir_http_request_authority(request);
    uint8_t *start, *to;
    int err = reserve(ctx, writer,
                      fields_size(headers) + method.length + target.length + host.length +
                          (size_t)3 * LINE_MAX);

    if (err < 0)
        return err;
    start = weir_buf_space(writer->out);
    to = put_span(start, method);
    *to++ = ' ';
    to = put_span(to, target);
    to = put_text(to, " HTTP/1.1\r\n");
    if (!weir__http_headers_have(headers, WEIR_HTTP_HOST)) {
        to = put_text(to, "Host: ");
        to = put_span(to, host);
        *to++ = '\r';
        *to++ = '\n';
    }
    to = put_fields(to, headers);
    to = put_framing(to, framed);
    (void)weir_buf_advance(writer->out, (size_t)(to - start));
    begin(writer, framed);
    return 0;
}

/* ---- content ---- */

/* The bytes of a piece of content; negative if they cannot be counted. */
static int64_t content_size(weir_msg *msg)
{
    if (weir_buf_of(msg) != NULL || weir_composite_of(msg) != NULL)
        return (int64_t)weir_msg_size(msg);
    if (weir_file_range_of(msg) != NULL)
        return weir_file_range_remaining(weir_file_range_of(msg));
    return -1;
}

/* Copies a small buffer; passes on everything else. */
static int put_bytes(weir_ctx *ctx, weir__http1_writer *writer, weir_msg *msg, uint64_t size,
                     weir_promise *done)
{
    weir_buf *buf = weir_buf_of(msg);
    int err;

    if (buf == NULL || size > COPY_MAX) {
        weir__http1_writer_pass(ctx, writer, NULL);
        pass(ctx, writer, msg, done);
        return 0;
    }
    err = reserve(ctx, writer, (size_t)size);
    if (err == 0) {
        (void)put(weir_buf_space(writer->out), weir_buf_bytes(buf), (size_t)size);
        (void)weir_buf_advance(writer->out, (size_t)size);
    }
    weir_msg_release(msg);
    if (err == 0 && done != NULL)
        weir__http1_writer_pass(ctx, writer, done);
    return err;
}

static int put_chunk(weir_ctx *ctx, weir__http1_writer *writer, weir_msg *msg, uint64_t size,
                     weir_promise *done)
{
    bool is_copied = weir_buf_of(msg) != NULL && size <= COPY_MAX;
    uint8_t *start, *to;
    int err = reserve(ctx, writer, 24 + (is_copied ? (size_t)size : 0));

    if (err < 0) {
        weir_msg_release(msg);
        return err;
    }
    start = weir_buf_space(writer->out);
    to = put_hex(start, size);
    *to++ = '\r';
    *to++ = '\n';
    (void)weir_buf_advance(writer->out, (size_t)(to - start));
    err = put_bytes(ctx, writer, msg, size, is_copied ? NULL : done);
    if (err == 0)
        err = reserve(ctx, writer, 2);
    if (err < 0)
        return err;
    (void)weir_buf_write_bytes(writer->out, "\r\n", 2);
    if (is_copied && done != NULL)
        weir__http1_writer_pass(ctx, writer, done);
    return 0;
}

int weir__http1_writer_put_content(weir_ctx *ctx, weir__http1_writer *writer, weir_msg *msg,
                                   weir_promise *done)
{
    int64_t size = content_size(msg);
    int err = 0;

    if (writer->content == WEIR__HTTP1_NO_CONTENT || size == 0) {
        weir_msg_release(msg);
        if (done != NULL)
            weir__http1_writer_pass(ctx, writer, done);
        return 0;
    }
    if (size < 0 && writer->content != WEIR__HTTP1_UNTIL_CLOSE)
        err = -ENOTSUP;
    else if (writer->content == WEIR__HTTP1_LENGTH && (uint64_t)size > writer->left)
        err = WEIR_ETOOLONG;
    if (err < 0) {
        weir_msg_release(msg);
        return err;
    }
    if (writer->content == WEIR__HTTP1_CHUNKED)
        return put_chunk(ctx, writer, msg, (uint64_t)size, done);
    if (writer->content == WEIR__HTTP1_LENGTH)
        writer->left -= (uint64_t)size;
    return put_bytes(ctx, writer, msg, size < 0 ? UINT64_MAX : (uint64_t)size, done);
}

/* ---- ends ---- */

static int put_last_chunk(weir_ctx *ctx, weir__http1_writer *writer, const weir_http_end *end)
{
    const weir_http_headers *trailers = weir_http_end_trailers(end);
    uint8_t *start, *to;
    int err = reserve(ctx, writer, 8 + (trailers != NULL ? fields_size(trailers) : 0));

    if (err < 0)
        return err;
    start = weir_buf_space(writer->out);
    to = put(start, (const uint8_t *)"0\r\n", 3);
    if (trailers != NULL)
        to = put_fields(to, trailers);
    to = put(to, (const uint8_t *)"\r\n", 2);
    (void)weir_buf_advance(writer->out, (size_t)(to - start));
    return 0;
}

int weir__http1_writer_put_end(weir_ctx *ctx, weir__http1_writer *writer, const weir_http_end *end,
                               weir_promise *done)
{
    int err = 0;

    if (writer->content == WEIR__HTTP1_CHUNKED)
        err = put_last_chunk(ctx, writer, end);
    else if (writer->content == WEIR__HTTP1_LENGTH && writer->left > 0)
        err = WEIR_ETRUNCATED;
    if (err < 0)
        return err;
    writer->is_open = false;
    if (done != NULL)
        weir__http1_writer_pass(ctx, writer, done);
    return 0;
}

const char *weir__http1_writer_detail(int err)
{
    switch (err) {
    case WEIR_ETOOLONG:
        return "content longer than the content length of the message";
    case WEIR_ETRUNCATED:
        return "content shorter than the content length of the message";
    case -ENOTSUP:
        return "content of unknown length";
    default:
        return NULL;
    }
}
