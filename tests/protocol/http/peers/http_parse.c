/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http-parse FILE: what the HTTP/1.1 codec of a server makes of each stream of FILE (mutants.py),
 * as one line of JSON: see differential.py. The stream is parsed byte by byte, which tells where a
 * message ends, and whole, which must give the same messages. Each request is answered with 200.
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
    bool is_connect;
    bool is_over; /* a tunnel has begun, or the connection is closed */
    char error[128];
};

static struct parse current;

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
    (void)fprintf(current.line, "\"keep\":%s,\"tunnel\":%s}", keep ? "true" : "false",
                  current.is_connect ? "true" : "false");
    current.is_answered = false;
}

/* ---- the application ---- */

static void on_request(const weir_http_request *request)
{
    int version = (int)weir_http_request_version(request);

    put_keep(true);
    (void)fputs(current.messages++ > 0 ? ",{" : "{", current.line);
    put_member("method", weir_http_request_method_text(request));
    put_member("target", weir_http_request_target(request));
    (void)fprintf(current.line, "\"version\":\"%d.%d\",", version / 10, version % 10);
    (void)fprintf(current.line, "\"length\":%lld,",
                  (long long)weir_http_request_content_length(request));
    put_fields("fields", weir_http_request_headers(request));
    current.is_connect = weir_http_request_method(request) == WEIR_HTTP_METHOD_CONNECT;
    must(weir_buf_create(0, 0, &current.body) == 0, "no memory");
}

static void respond(weir_ctx *ctx)
{
    weir_http_response *response;

    must(weir_http_response_create(200, &response) == 0, "no memory");
    must(weir_http_response_set_content_length(response, 0) == 0, "no length");
    current.is_answered = true;
    current.is_over = current.is_connect;
    weir_write(ctx, weir_http_response_msg(response), NULL);
    weir_write_and_flush(ctx, weir_http_end_static(), NULL);
}

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    weir_buf *buf = weir_buf_of(msg);

    if (weir_http_request_of(msg) != NULL) {
        on_request(weir_http_request_of(msg));
    } else if (weir_http_end_of(msg) != NULL) {
        put_rest(weir_http_end_trailers(weir_http_end_of(msg)), true);
        respond(ctx);
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

static const weir_handler application = {.name = "application", .read = on_read, .event = on_event};

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

/* Writes the messages of a stream that arrives in pieces of `step` bytes. */
static char *parse(weir_span stream, size_t step, bool tells_where)
{
    char *text = NULL;
    size_t size, length;

    current = (struct parse){.line = open_memstream(&text, &size), .tells_where = tells_where};
    must(current.line != NULL && weir_embedded_create(NULL, &current.embedded) == 0, "no memory");
    must(weir_http1_server_add(weir_embedded_pipeline(current.embedded), NULL) == 0 &&
             weir_pipeline_add_last(weir_embedded_pipeline(current.embedded), &application, NULL) ==
                 0,
         "no codec");
    (void)fputs("{\"messages\":[", current.line);
    for (size_t from = 0; from < stream.length && !current.is_over; from += length) {
        length = stream.length - from < step ? stream.length - from : step;
        feed(weir_span_of(stream.data + from, length));
    }
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

static void compare(weir_span stream)
{
    char *bytewise = parse(stream, 1, false), *whole = parse(stream, stream.length, false);
    char *line = parse(stream, 1, true);

    printf("%s,\"split\":%s}\n", line, strcmp(bytewise, whole) == 0 ? "false" : "true");
    if (strcmp(bytewise, whole) != 0)
        (void)fprintf(stderr, "bytewise %s\nwhole    %s\n", bytewise, whole);
    free(bytewise);
    free(whole);
    free(line);
}

int main(int argc, char **argv)
{
    static char stream[1 << 20];
    unsigned char length[4];
    FILE *file = argc == 2 ? fopen(argv[1], "rb") : NULL;
    size_t count;

    must(file != NULL, "usage: http-parse FILE");
    while (fread(length, sizeof(length), 1, file) == 1) {
        count = length[0] | (size_t)length[1] << 8 | (size_t)length[2] << 16;
        must(length[3] == 0 && count <= sizeof(stream), "a stream that is too long");
        must(count == 0 || fread(stream, count, 1, file) == 1, "a stream that is cut off");
        compare(weir_span_of(stream, count));
    }
    (void)fclose(file);
    return 0;
}
