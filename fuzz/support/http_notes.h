/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs the HTTP/1.1 codec over a stream, in pieces, and takes notes of everything that it passes
 * on. Pieces of content are joined, so the notes do not depend on the pieces.
 */
#ifndef WEIR_FUZZ_HTTP_NOTES_H
#define WEIR_FUZZ_HTTP_NOTES_H

#include <stdlib.h>

#include <weir/buf.h>
#include <weir/embedded.h>
#include <weir/error.h>
#include <weir/http1.h>

static void expect(bool holds)
{
    if (!holds)
        abort();
}

struct http_notes {
    weir_buf *notes;
    bool is_server;
    bool is_in_content;
};

static int init_notes(void *state, const void *options)
{
    *(struct http_notes *)state = *(const struct http_notes *)options;
    return 0;
}

static void note_span(struct http_notes *notes, char kind, weir_span text)
{
    expect(weir_buf_printf(notes->notes, "\n%c", kind) == 0);
    expect(weir_buf_write_bytes(notes->notes, text.data, text.length) == 0);
}

static void note_number(struct http_notes *notes, char kind, int64_t number)
{
    expect(weir_buf_printf(notes->notes, "\n%c%lld", kind, (long long)number) == 0);
}

static void note_fields(struct http_notes *notes, const weir_http_headers *headers)
{
    for (size_t i = 0; headers != NULL && i < weir_http_headers_count(headers); i++) {
        weir_http_field field = weir_http_headers_at(headers, i);

        note_span(notes, 'n', field.name);
        note_span(notes, 'v', field.value);
        note_number(notes, 'i', field.id);
        expect(field.id == weir_http_name_of(field.name));
    }
}

static void note_request(struct http_notes *notes, const weir_http_request *request)
{
    note_span(notes, 'm', weir_http_request_method_text(request));
    note_span(notes, 't', weir_http_request_target(request));
    note_span(notes, 'p', weir_http_request_path(request));
    note_span(notes, 'q', weir_http_request_query(request));
    note_span(notes, 'a', weir_http_request_authority(request));
    note_number(notes, 'l', weir_http_request_content_length(request));
    note_fields(notes, weir_http_request_headers(request));
}

static void note_response(struct http_notes *notes, const weir_http_response *response)
{
    note_number(notes, 's', weir_http_response_status(response));
    note_span(notes, 'r', weir_http_response_reason(response));
    note_number(notes, 'l', weir_http_response_content_length(response));
    note_fields(notes, weir_http_response_headers(response));
}

static void answer(weir_ctx *ctx)
{
    weir_http_response *response = NULL;

    expect(weir_http_response_create(204, &response) == 0);
    weir_write(ctx, weir_http_response_msg(response), NULL);
    weir_write_and_flush(ctx, weir_http_end_static(), NULL);
}

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    struct http_notes *notes = weir_ctx_state(ctx);
    weir_buf *buf = weir_buf_of(msg);
    bool is_end = weir_http_end_of(msg) != NULL;

    if (buf != NULL) {
        expect(weir_buf_readable(buf) > 0);
        if (!notes->is_in_content)
            note_span(notes, 'c', weir_span_of("", 0));
        expect(weir_buf_write_bytes(notes->notes, weir_buf_bytes(buf), weir_buf_readable(buf)) ==
               0);
    }
    notes->is_in_content = buf != NULL;
    if (weir_http_request_of(msg) != NULL)
        note_request(notes, weir_http_request_of(msg));
    if (weir_http_response_of(msg) != NULL)
        note_response(notes, weir_http_response_of(msg));
    if (is_end) {
        note_number(notes, 'e', 0);
        note_fields(notes, weir_http_end_trailers(weir_http_end_of(msg)));
    }
    weir_msg_release(msg);
    if (is_end && notes->is_server)
        answer(ctx);
}

static void on_error(weir_ctx *ctx, int err, const char *detail)
{
    expect(err == WEIR_EMALFORMED || err == WEIR_ETOOLONG || err == WEIR_ECUTOFF);
    expect(detail != NULL);
    note_number(weir_ctx_state(ctx), 'x', err);
}

static void on_event(weir_ctx *ctx, weir_msg *event)
{
    const weir_http_refusal *refusal = weir_http_refusal_of(event);

    if (refusal != NULL)
        note_number(weir_ctx_state(ctx), 'f', weir_http_refusal_status(refusal));
    weir_msg_release(event);
}

static const weir_handler note_taker = {.name = "notes",
                                        .state_size = sizeof(struct http_notes),
                                        .init = init_notes,
                                        .read = on_read,
                                        .error = on_error,
                                        .event = on_event};

static void write_requests(weir_embedded *embedded)
{
    static const char *const methods[] = {"GET", "HEAD", "GET", "POST"};
    weir_channel *channel = weir_embedded_channel(embedded);

    for (size_t i = 0; i < 4; i++) {
        weir_http_request *request = NULL;

        expect(weir_http_request_create(methods[i], "http://h/", &request) == 0);
        weir_channel_write(channel, weir_http_request_msg(request), NULL);
        weir_channel_write_and_flush(channel, weir_http_end_static(), NULL);
    }
}

/* The notes of a server or client that receives `prefix` and `bytes`, which come in pieces. */
static weir_buf *run_in_pieces(const weir_http1_options *options, bool is_server,
                               const char *prefix, weir_span bytes, size_t piece)
{
    struct http_notes notes = {.is_server = is_server};
    weir_embedded *embedded = NULL;
    weir_buf *buf;
    size_t length;

    expect(weir_buf_create(0, 0, &notes.notes) == 0);
    expect(weir_embedded_create(
               WEIR_EMBEDDED_OPTIONS(.channel = WEIR_CHANNEL_OPTIONS(.half_closure = true)),
               &embedded) == 0);
    expect((is_server ? weir_http1_server_add
                      : weir_http1_client_add)(weir_embedded_pipeline(embedded), options) == 0);
    expect(weir_pipeline_add_last(weir_embedded_pipeline(embedded), &note_taker, &notes) == 0);
    if (!is_server)
        write_requests(embedded);
    if (prefix[0] != '\0' && weir_buf_create_from(prefix, strlen(prefix), &buf) == 0)
        (void)weir_embedded_write_inbound(embedded, weir_buf_msg(buf));
    for (size_t from = 0; from < bytes.length; from += length) {
        length = bytes.length - from < piece ? bytes.length - from : piece;
        expect(weir_buf_create_from(bytes.data + from, length, &buf) == 0);
        (void)weir_embedded_write_inbound(embedded, weir_buf_msg(buf));
    }
    weir_embedded_end_input(embedded);
    weir_embedded_release(embedded);
    return notes.notes;
}

static void expect_same_notes(weir_buf *a, weir_buf *b)
{
    expect(weir_buf_equal(a, b));
    weir_buf_release(b);
}

/* The notes do not depend on the pieces. */
static void run_in_all_pieces(const weir_http1_options *options, bool is_server, const char *prefix,
                              weir_span bytes, size_t piece)
{
    weir_buf *notes = run_in_pieces(options, is_server, prefix, bytes, SIZE_MAX);

    expect_same_notes(notes, run_in_pieces(options, is_server, prefix, bytes, 1));
    expect_same_notes(notes, run_in_pieces(options, is_server, prefix, bytes, piece));
    weir_buf_release(notes);
}

#endif
