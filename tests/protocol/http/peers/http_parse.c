/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http-parse requests|responses FILE STRIDE: what the HTTP/1.1 codec of a server or a client makes
 * of each stream of FILE (mutants.py), as one line of JSON: see differential.py. The stream is
 * parsed byte by byte, which tells where a message ends, and whole and in two parts, cut at every
 * STRIDE-th byte, which must give the same messages. Each request is answered with 200; a client
 * asks again after each response.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/embedded.h>
#include <weir/error.h>
#include <weir/http1.h>

struct parse {
    weir_embedded *embedded;
    FILE *line;
    size_t position;  /* bytes that were written to the channel */
    size_t messages;  /* requests seen */
    weir_buf *body;   /* content of the current one */
    bool tells_where; /* writes positions */
    bool is_answered; /* the last request was; whether it is the last one is not written yet */
    bool is_last;     /* the response says so */
    bool is_tunnel;   /* a CONNECT, or status 101 */
    bool is_over;     /* a tunnel has begun, or the connection is closed */
    char error[128];
};

static struct parse current;
static bool is_client;

static void must(bool holds, const char *what)
{
    if (holds)
        return;
    (void)fprintf(stderr, "http-parse: %s\n", what);
    exit(1);
}

/* ---- one line of JSON; strings are hexadecimal ---- */

static void put_hex(weir_span bytes)
{
    (void)fputc('"', current.line);
    for (size_t i = 0; i < bytes.length; i++)
        (void)fprintf(current.line, "%02x", (unsigned char)bytes.data[i]);
    (void)fputc('"', current.line);
}

static void put_member(const char *name, weir_span bytes)
{
    (void)fprintf(current.line, "\"%s\":", name);
    put_hex(bytes);
    (void)fputc(',', current.line);
}

static void put_fields(const char *name, const weir_http_headers *headers)
{
    size_t count = headers == NULL ? 0 : weir_http_headers_count(headers);

    (void)fprintf(current.line, "\"%s\":[", name);
    for (size_t i = 0; i < count; i++) {
        (void)fputs(i > 0 ? "," : "", current.line);
        put_hex(weir_http_headers_at(headers, i).name);
        (void)fputc(',', current.line);
        put_hex(weir_http_headers_at(headers, i).value);
    }
    (void)fputs("],", current.line);
}

/* The request has ended, or will not. */
static void put_rest(const weir_http_headers *trailers, bool has_ended)
{
    put_member("body", weir_buf_span(current.body));
    put_fields("trailers", trailers);
    if (has_ended)
        (void)fprintf(current.line, "\"end\":%zu,", current.tells_where ? current.position : 0);
    else
        (void)fputs("\"end\":null,", current.line);
    weir_buf_release(current.body);
    current.body = NULL;
}

/* Whether the connection persists is known when the response has been written. */
static void put_keep(bool keep)
{
    if (!current.is_answered)
        return;
    (void)fprintf(current.line, "\"keep\":%s,\"tunnel\":%s}",
                  keep && !current.is_last ? "true" : "false",
                  current.is_tunnel ? "true" : "false");
    current.is_answered = false;
}

/* ---- the application ---- */

static void begin_message(void)
{
    put_keep(true);
    (void)fputs(current.messages++ > 0 ? ",{" : "{", current.line);
    must(weir_buf_create(0, 0, &current.body) == 0, "no memory");
}

static void put_head(int version, int64_t length, const weir_http_headers *headers)
{
    (void)fprintf(current.line, "\"version\":\"%d.%d\",", version / 10, version % 10);
    (void)fprintf(current.line, "\"length\":%lld,", (long long)length);
    put_fields("fields", headers);
}

static void on_request(const weir_http_request *request)
{
    begin_message();
    put_member("method", weir_http_request_method_text(request));
    put_member("target", weir_http_request_target(request));
    put_head((int)weir_http_request_version(request), weir_http_request_content_length(request),
             weir_http_request_headers(request));
    current.is_tunnel = weir_http_request_method(request) == WEIR_HTTP_METHOD_CONNECT;
}

static void respond(weir_ctx *ctx)
{
    weir_http_response *response;

    must(weir_http_response_create(200, &response) == 0, "no memory");
    must(weir_http_response_set_content_length(response, 0) == 0, "no length");
    weir_write(ctx, weir_http_response_msg(response), NULL);
    weir_write_and_flush(ctx, weir_http_end_static(), NULL);
}

static void ask(weir_channel *channel)
{
    weir_http_request *request;

    must(weir_http_request_create("GET", "/", &request) == 0, "no memory");
    must(weir_http_headers_add_text(weir_http_request_headers(request), WEIR_HTTP_HOST, "a") == 0,
         "no memory");
    weir_channel_write(channel, weir_http_request_msg(request), NULL);
    weir_channel_write_and_flush(channel, weir_http_end_static(), NULL);
}

static void on_response(const weir_http_response *response)
{
    int status = weir_http_response_status(response);
    char number[16];

    begin_message();
    (void)snprintf(number, sizeof(number), "%d", status);
    put_member("method", weir_span_of(number, strlen(number)));
    put_member("target", weir_span_of("", 0));
    put_head((int)weir_http_response_version(response), weir_http_response_content_length(response),
             weir_http_response_headers(response));
    current.is_last = weir_http_response_closes(response);
    current.is_tunnel = status == 101;
    current.is_over = current.is_tunnel;
    if (status >= 200)
        return;
    put_rest(NULL, true); /* another response follows, or another protocol */
    current.is_answered = true;
}

static void on_end(weir_ctx *ctx, const weir_http_end *end)
{
    put_rest(weir_http_end_trailers(end), true);
    current.is_answered = true;
    if (is_client) {
        if (weir_channel_is_active(weir_ctx_channel(ctx)))
            ask(weir_ctx_channel(ctx));
        return;
    }
    current.is_over = current.is_tunnel;
    respond(ctx);
}

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    weir_buf *buf = weir_buf_of(msg);

    if (weir_http_request_of(msg) != NULL) {
        on_request(weir_http_request_of(msg));
    } else if (weir_http_response_of(msg) != NULL) {
        on_response(weir_http_response_of(msg));
    } else if (weir_http_end_of(msg) != NULL) {
        on_end(ctx, weir_http_end_of(msg));
    } else if (buf != NULL && current.body != NULL) {
        must(weir_buf_write_bytes(current.body, weir_buf_bytes(buf), weir_buf_readable(buf)) == 0,
             "no memory");
    } else {
        must(current.is_over, "a message of an unknown kind");
    }
    weir_msg_release(msg);
}

static void on_event(weir_ctx *ctx, weir_msg *event)
{
    const weir_http_refusal *refusal = weir_http_refusal_of(event);

    (void)ctx;
    if (refusal != NULL)
        put_keep(true);
    if (refusal != NULL && current.error[0] == '\0')
        (void)snprintf(current.error, sizeof(current.error), "%d %s",
                       weir_http_refusal_status(refusal), weir_http_refusal_detail(refusal));
    weir_msg_release(event);
}

static void on_error(weir_ctx *ctx, int err, const char *detail)
{
    (void)ctx;
    put_keep(true);
    if (current.error[0] == '\0')
        (void)snprintf(current.error, sizeof(current.error), "%s: %s",
                       err == WEIR_EMALFORMED ? "malformed" : weir_error_text(err),
                       detail != NULL ? detail : "");
}

static const weir_handler application = {
    .name = "application", .read = on_read, .event = on_event, .error = on_error};

/* ---- parsing ---- */

static void discard_output(void)
{
    weir_msg *msg;

    while ((msg = weir_embedded_read_outbound(current.embedded)) != NULL)
        weir_msg_release(msg);
}

static void feed(weir_span bytes)
{
    weir_buf *buf;

    must(weir_buf_create_from(bytes.data, bytes.length, &buf) == 0, "no memory");
    current.position += bytes.length;
    (void)weir_embedded_write_inbound(current.embedded, weir_buf_msg(buf));
    (void)weir_embedded_take_error(current.embedded);
    discard_output();
    if (weir_channel_is_active(weir_embedded_channel(current.embedded)))
        return;
    put_keep(false);
    current.is_over = true;
}

/* Writes the messages of a stream that arrives in pieces: `first` bytes, then `step` at a time. */
static char *parse(weir_span stream, size_t first, size_t step, bool tells_where)
{
    weir_pipeline *pipeline;
    char *text = NULL;
    size_t size, length;

    current = (struct parse){.line = open_memstream(&text, &size), .tells_where = tells_where};
    must(current.line != NULL && weir_embedded_create(NULL, &current.embedded) == 0, "no memory");
    pipeline = weir_embedded_pipeline(current.embedded);
    must((is_client ? weir_http1_client_add(pipeline, NULL)
                    : weir_http1_server_add(pipeline, NULL)) == 0 &&
             weir_pipeline_add_last(pipeline, &application, NULL) == 0,
         "no codec");
    if (is_client)
        ask(weir_embedded_channel(current.embedded));
    (void)fputs("{\"messages\":[", current.line);
    for (size_t from = 0; from < stream.length && !current.is_over; from += length) {
        length = from == 0 ? first : step;
        length = stream.length - from < length ? stream.length - from : length;
        feed(weir_span_of(stream.data + from, length));
    }
    if (is_client && !current.is_over)
        weir_embedded_end_input(current.embedded);
    put_keep(true);
    if (current.body != NULL) {
        put_rest(NULL, false);
        current.is_answered = true;
        put_keep(true);
    }
    if (current.error[0] != '\0')
        (void)fprintf(current.line, "],\"error\":\"%s\"", current.error);
    else
        (void)fputs("],\"error\":null", current.line);
    weir_embedded_release(current.embedded);
    (void)fclose(current.line);
    return text;
}

/* True if the n-th stream gives other messages when it arrives whole, or in two parts. It is cut at
 * other bytes than the one before. */
static bool depends_on_parts(weir_span stream, const char *bytewise, size_t n, size_t stride)
{
    bool differs = false;
    size_t cut = stream.length;
    char *parts;

    for (size_t next = 1 + n % stride; !differs && cut > 0; next += stride) {
        parts = parse(stream, cut, stream.length, false);
        differs = strcmp(bytewise, parts) != 0;
        if (differs)
            (void)fprintf(stderr, "bytewise %s\ncut at %zu %s\n", bytewise, cut, parts);
        free(parts);
        cut = next < stream.length ? next : 0;
    }
    return differs;
}

static void compare(weir_span stream, size_t n, size_t stride)
{
    char *bytewise = parse(stream, 1, 1, false), *line = parse(stream, 1, 1, true);

    printf("%s,\"split\":%s}\n", line,
           depends_on_parts(stream, bytewise, n, stride) ? "true" : "false");
    free(bytewise);
    free(line);
}

int main(int argc, char **argv)
{
    static char stream[1 << 20];
    unsigned char length[4];
    FILE *file = argc == 4 ? fopen(argv[2], "rb") : NULL;
    size_t count, n = 0, stride = argc == 4 ? strtoul(argv[3], NULL, 10) : 0;

    must(file != NULL && stride > 0, "usage: http-parse requests|responses FILE STRIDE");
    is_client = strcmp(argv[1], "responses") == 0;
    while (fread(length, sizeof(length), 1, file) == 1) {
        count = length[0] | (size_t)length[1] << 8 | (size_t)length[2] << 16;
        must(length[3] == 0 && count <= sizeof(stream), "a stream that is too long");
        must(count == 0 || fread(stream, count, 1, file) == 1, "a stream that is cut off");
        compare(weir_span_of(stream, count), n++, stride);
    }
    (void)fclose(file);
    return 0;
}
