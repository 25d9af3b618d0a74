/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compression of responses: which ones, how they are sent, and what becomes of their heads.
 */
#include <weir/http_filters.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <weir/composite.h>
#include <weir/error.h>
#include <weir/file_range.h>
#include <weir/http_server.h>

#include "protocol/http/content_coding.h"
#include "protocol/http/filters.h"
#include "support/memory.h"
#include "support/protocol/http/coded_content.h"
#include "support/protocol/http/filter_fixture.h"

#define PLAIN "Content-Type: text/plain\n"
#define OUT_SIZE 65536

static weir_embedded *open_with(const weir_http_compression_options *options)
{
    weir_embedded *embedded = filter_open();

    assert_int_equal(weir_http_compression_add(weir_embedded_pipeline(embedded), options), 0);
    return embedded;
}

static void request(weir_embedded *embedded, const char *head)
{
    filter_receive(embedded, head);
    assert_non_null(filter_received(embedded));
}

static void respond_with(weir_embedded *embedded, const char *fields, weir_buf *content)
{
    filter_write_head(embedded, 200, fields, (int64_t)weir_buf_readable(content));
    filter_write(embedded, weir_msg_retain(weir_buf_msg(content)));
    filter_write_end(embedded);
    weir_channel_flush(weir_embedded_channel(embedded));
    weir_embedded_run(embedded);
}

static weir_buf *decode(const char *coding, weir_buf *coded, bool is_complete)
{
    const weir__http_decoder_limits limits = {.max_decoded = 1 << 30, .max_ratio = 100000};
    weir_span name = weir_span_of_text(coding), in = weir_buf_span(coded);
    weir__http_content_decoder *decoder = NULL;
    weir_buf *out = NULL;

    assert_int_equal(weir__http_content_decoder_create(&name, 1, &limits, &decoder), 0);
    assert_int_equal(weir_buf_create(4 << 20, 0, &out), 0);
    assert_int_equal(weir__http_content_decoder_run(decoder, &in, out), 0);
    assert_int_equal(weir__http_content_decoder_is_complete(decoder), is_complete);
    weir__http_content_decoder_free(decoder);
    return out;
}

static bool has_field(const weir_http_response *response, enum weir_http_name name,
                      const char *value)
{
    weir_span found = weir_http_headers_get(weir_http_response_headers(response), name);

    if (value == NULL)
        return found.data == NULL;
    return found.data != NULL && weir_span_equal(found, weir_span_of_text(value));
}

/* Takes a response, compressed by `coding` or NULL, that has this content. Returns its length. */
static int64_t assert_response(weir_embedded *embedded, const char *coding, const weir_buf *content)
{
    weir_http_response *response = NULL;
    weir_buf *coded = NULL, *decoded;
    int64_t length;

    (void)filter_take_response(embedded, &response, &coded);
    assert_true(has_field(response, WEIR_HTTP_CONTENT_ENCODING, coding));
    length = weir_http_response_content_length(response);
    if (length != WEIR_HTTP_UNKNOWN_LENGTH)
        assert_int_equal(length, weir_buf_readable(coded));
    decoded = coding != NULL ? decode(coding, coded, true) : weir_buf_retain(coded);
    assert_true(weir_buf_equal(decoded, content));
    weir_buf_release(decoded);
    weir_buf_release(coded);
    weir_msg_release(weir_http_response_msg(response));
    return length;
}

TEST(compression, uses_the_best_coding_that_is_accepted)
{
    static const struct {
        const char *accept;
        const char *coding;
    } rows[] = {
        {"Accept-Encoding: gzip\n", "gzip"},
        {"Accept-Encoding: gzip, deflate\n", "gzip"},
        {"Accept-Encoding: deflate\n", "deflate"},
        {"Accept-Encoding: gzip;q=0.5, deflate;q=0.6\n", "deflate"},
        {"Accept-Encoding: gzip;q=0, identity\n", NULL},
        {"Accept-Encoding: gzip;q=0.5, identity;q=0.6\n", NULL},
        {"Accept-Encoding: compress\n", NULL},
        {"Accept-Encoding: gzip;q=x\n", NULL},
        {"Accept-Encoding: deflate\nAccept-Encoding: gzip\n", "gzip"},
        {"Accept-Encoding:\n", NULL},
        {"", NULL},
#ifdef WEIR_HAVE_BROTLI
        {"Accept-Encoding: gzip, br\n", "br"},
        {"Accept-Encoding: br;q=0.9, gzip\n", "gzip"},
#endif
#ifdef WEIR_HAVE_ZSTD
        {"Accept-Encoding: gzip, deflate, br, zstd\n", "zstd"},
        {"Accept-Encoding: *\n", "zstd"},
#endif
    };
    weir_embedded *embedded = open_with(NULL);
    weir_buf *text = content_text(5000);

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char head[256];
        int64_t length;

        (void)snprintf(head, sizeof(head), "GET /\n%s", rows[i].accept);
        request(embedded, head);
        respond_with(embedded, PLAIN, text);
        length = assert_response(embedded, rows[i].coding, text);
        assert_in_range(length, 1, 5000); /* known, as all content was there */
    }
    weir_buf_release(text);
    weir_embedded_release(embedded);
}

/* Of content of unknown length, too, which ends before it is sent. */
TEST(compression, begins_at_the_minimum)
{
    weir_embedded *embedded = open_with(WEIR_HTTP_COMPRESSION_OPTIONS(.min_length = 100));

    for (size_t length = 99; length <= 100; length++)
        for (int is_known = 0; is_known < 2; is_known++) {
            weir_buf *text = NULL;

            assert_int_equal(weir_buf_create(length, 0, &text), 0);
            assert_int_equal(weir_buf_write_fill(text, 'x', length), 0);
            request(embedded, "GET /\nAccept-Encoding: gzip\n");
            filter_write_head(embedded, 200, PLAIN,
                              is_known ? (int64_t)length : WEIR_HTTP_UNKNOWN_LENGTH);
            filter_write(embedded, weir_msg_retain(weir_buf_msg(text)));
            filter_write_end(embedded);
            weir_channel_flush(weir_embedded_channel(embedded));
            weir_embedded_run(embedded);
            (void)assert_response(embedded, length == 100 ? "gzip" : NULL, text);
            weir_buf_release(text);
        }
    weir_embedded_release(embedded);
}

TEST(compression, may_leave_out_codings)
{
    weir_embedded *embedded =
        open_with(WEIR_HTTP_COMPRESSION_OPTIONS(.no_brotli = true, .no_zstd = true, .level = 9));
    weir_buf *text = content_text(5000);

    request(embedded, "GET /\nAccept-Encoding: gzip, br, zstd\n");
    respond_with(embedded, PLAIN, text);
    (void)assert_response(embedded, "gzip", text);
    weir_buf_release(text);
    weir_embedded_release(embedded);
}

TEST(compression, changes_the_head)
{
    weir_embedded *embedded = open_with(NULL);
    weir_buf *text = content_text(5000), *content = NULL;
    weir_http_response *response = NULL;

    request(embedded, "GET /\nAccept-Encoding: gzip\n");
    respond_with(embedded,
                 PLAIN "Vary: Origin\nETag: \"abc\"\nContent-Length: 5000\nAccept-Ranges: bytes\n",
                 text);
    assert_int_equal(filter_take_response(embedded, &response, &content), 1);
    assert_true(has_field(response, WEIR_HTTP_VARY, "Origin, Accept-Encoding"));
    assert_true(has_field(response, WEIR_HTTP_ETAG, "W/\"abc\""));
    assert_true(has_field(response, WEIR_HTTP_CONTENT_LENGTH, NULL));
    assert_true(has_field(response, WEIR_HTTP_ACCEPT_RANGES, NULL));
    weir_msg_release(weir_http_response_msg(response));
    weir_buf_release(content);
    request(embedded, "GET /\n"); /* it would have varied */
    respond_with(embedded, PLAIN "ETag: \"abc\"\n", text);
    (void)filter_take_response(embedded, &response, &content);
    assert_true(has_field(response, WEIR_HTTP_VARY, "Accept-Encoding"));
    assert_true(has_field(response, WEIR_HTTP_ETAG, "\"abc\""));
    weir_msg_release(weir_http_response_msg(response));
    weir_buf_release(content);
    weir_buf_release(text);
    weir_embedded_release(embedded);
}

TEST(compression, leaves_other_responses_alone)
{
    static const char *const fields[] = {
        "Content-Type: image/png\n",
        "Content-Type: text\n",
        "",
        PLAIN "Content-Encoding: br\n",
        PLAIN "Content-Range: bytes 0-4999/9000\n",
        PLAIN "Cache-Control: public, no-transform\n",
    };
    weir_embedded *embedded = open_with(NULL);
    weir_buf *text = content_text(5000), *little = content_text(1023);

    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        const char *sent;

        request(embedded, "GET /\nAccept-Encoding: gzip\n");
        respond_with(embedded, fields[i], text);
        sent = filter_sent(embedded);
        assert_non_null(strstr(sent, "200 (5000)"));
        assert_null(strstr(sent, "Vary"));
        assert_null(strstr(sent, "gzip"));
    }
    request(embedded, "GET /\nAccept-Encoding: gzip\n");
    respond_with(embedded, PLAIN, little);
    (void)assert_response(embedded, NULL, little);
    for (int status = 204; status <= 206; status += 2) {
        request(embedded, "GET /\nAccept-Encoding: gzip\n");
        filter_write_head(embedded, status, PLAIN "ETag: \"a\"\n", 5000);
        filter_write_end(embedded);
        weir_channel_flush(weir_embedded_channel(embedded));
        weir_embedded_run(embedded);
        assert_non_null(
            strstr(filter_sent(embedded), "(5000) Content-Type: text/plain; ETag: \"a\" | end"));
    }
    weir_buf_release(text);
    weir_buf_release(little);
    weir_embedded_release(embedded);
}

TEST(compression, knows_types_by_prefix_and_suffix)
{
    static const char *const types[] = {"text/", "+json", "application/x", NULL};
    static const struct {
        const char *field;
        bool is_compressed;
    } rows[] = {
        {"Content-Type: text/html; charset=utf-8\n", true},
        {"Content-Type: TEXT/HTML\n", true},
        {"Content-Type: application/problem+json\n", true},
        {"Content-Type: application/x ;a=b\n", true},
        {"Content-Type: application/xy\n", false},
        {"Content-Type: application/json\n", false},
        {"Content-Type: xtext/\n", false},
        {"Content-Type:\n", false},
    };
    weir_embedded *embedded = open_with(WEIR_HTTP_COMPRESSION_OPTIONS(.types = types));
    weir_buf *text = content_text(5000);

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        request(embedded, "GET /\nAccept-Encoding: gzip\n");
        respond_with(embedded, rows[i].field, text);
        (void)assert_response(embedded, rows[i].is_compressed ? "gzip" : NULL, text);
    }
    weir_buf_release(text);
    weir_embedded_release(embedded);
}

TEST(compression, of_a_head_request_changes_the_head_only)
{
    weir_embedded *embedded = open_with(NULL);

    request(embedded, "HEAD /\nAccept-Encoding: gzip\n");
    filter_write_head(embedded, 200, PLAIN "ETag: \"a\"\n", 5000);
    filter_write_end(embedded);
    weir_channel_flush(weir_embedded_channel(embedded));
    weir_embedded_run(embedded);
    assert_string_equal(filter_sent(embedded),
                        "200 (?) Content-Type: text/plain; ETag: W/\"a\"; "
                        "Vary: Accept-Encoding; Content-Encoding: gzip | end");
    weir_embedded_release(embedded);
}

TEST(compression, sends_content_that_gets_no_shorter_as_it_is)
{
    weir_embedded *embedded = open_with(NULL);
    weir_buf *noise = content_noise(3000);
    weir_composite *composite = NULL;

    request(embedded, "GET /\nAccept-Encoding: gzip\n");
    respond_with(embedded, PLAIN "ETag: \"a\"\n", noise);
    assert_int_equal(assert_response(embedded, NULL, noise), 3000);
    request(embedded, "GET /\nAccept-Encoding: gzip\n");
    assert_int_equal(weir_composite_create(0, &composite), 0);
    assert_int_equal(weir_composite_add(composite, weir_msg_retain(weir_buf_msg(noise))), 0);
    filter_write_head(embedded, 200, PLAIN, WEIR_HTTP_UNKNOWN_LENGTH);
    filter_write(embedded, weir_composite_msg(composite));
    filter_write_end(embedded);
    weir_channel_flush(weir_embedded_channel(embedded));
    weir_embedded_run(embedded);
    assert_non_null(strstr(filter_sent(embedded), "composite of 3000 | end"));
    weir_buf_release(noise);
    weir_embedded_release(embedded);
}

TEST(compression, of_an_unknown_length_is_decided_by_what_comes)
{
    weir_embedded *embedded = open_with(NULL);
    weir_buf *text = content_text(5000);

    request(embedded, "GET /\nAccept-Encoding: gzip\n");
    filter_write_head(embedded, 200, PLAIN, WEIR_HTTP_UNKNOWN_LENGTH);
    filter_write_text(embedded, "little");
    filter_write_end(embedded);
    weir_channel_flush(weir_embedded_channel(embedded));
    weir_embedded_run(embedded);
    assert_string_equal(filter_sent(embedded),
                        "200 (6) Content-Type: text/plain; Vary: Accept-Encoding | little | end");
    request(embedded, "GET /\nAccept-Encoding: gzip\n");
    filter_write_head(embedded, 200, PLAIN, WEIR_HTTP_UNKNOWN_LENGTH);
    filter_write_end(embedded);
    weir_channel_flush(weir_embedded_channel(embedded));
    weir_embedded_run(embedded);
    assert_non_null(strstr(filter_sent(embedded), "200 (0)"));
    weir_buf_release(text);
    weir_embedded_release(embedded);
}

/* Pieces with promises, of buffers and composites, in all numbers that are held and more. */
TEST(compression, completes_the_promise_of_every_piece)
{
    weir_channel *channel;
    weir_embedded *embedded = open_with(NULL);
    weir_buf *text = content_text(1500), *all = NULL;

    channel = weir_embedded_channel(embedded);
    for (unsigned count = 1; count <= 8; count++) {
        weir_promise *done[10] = {NULL};

        assert_int_equal(weir_buf_create(0, 0, &all), 0);
        request(embedded, "GET /\nAccept-Encoding: gzip\n");
        for (unsigned i = 0; i < count + 2; i++)
            assert_int_equal(weir_promise_create(weir_channel_executor(channel), &done[i]), 0);
        weir_channel_write(
            channel,
            weir_http_response_msg(filter_make_response(200, PLAIN, (int64_t)(count * 1500u))),
            done[0]);
        for (unsigned i = 0; i < count; i++) {
            weir_channel_write(channel, weir_msg_retain(weir_buf_msg(text)),
                               (count & 1) != 0 || i % 2 == 0 ? done[i + 1] : NULL);
            assert_int_equal(weir_buf_write_bytes(all, weir_buf_bytes(text), 1500), 0);
        }
        weir_channel_write(channel, weir_http_end_static(), done[count + 1]);
        assert_false(weir_promise_is_done(done[count + 1]));
        weir_channel_flush(channel);
        weir_embedded_run(embedded);
        for (unsigned i = 0; i < count + 2; i++) {
            bool was_used = i == 0 || i == count + 1 || (count & 1) != 0 || (i - 1) % 2 == 0;

            assert_int_equal(weir_promise_is_done(done[i]), was_used);
            if (was_used)
                assert_int_equal(weir_promise_result(done[i]), 0);
            weir_promise_release(done[i]);
        }
        assert_int_equal(assert_response(embedded, "gzip", all) == WEIR_HTTP_UNKNOWN_LENGTH,
                         count > 4);
        weir_buf_release(all);
    }
    weir_buf_release(text);
    weir_embedded_release(embedded);
}

TEST(compression, flushes_what_the_application_flushes)
{
    weir_embedded *embedded = open_with(NULL);

    for (size_t c = 0; c < weir__http_coding_count; c++) {
        const char *coding = weir__http_codings[c]->name;
        weir_http_response *response = NULL;
        weir_buf *sent = NULL, *decoded, *more;
        char head[64];
        weir_msg *msg;

        (void)snprintf(head, sizeof(head), "GET /\nAccept-Encoding: %s\n", coding);
        request(embedded, head);
        filter_write_head(embedded, 200, "Content-Type: text/event-stream\n",
                          WEIR_HTTP_UNKNOWN_LENGTH);
        weir_channel_flush(weir_embedded_channel(embedded)); /* the head goes out at once */
        weir_embedded_run(embedded);
        assert_int_equal(filter_take_response(embedded, &response, &sent), 0);
        assert_true(has_field(response, WEIR_HTTP_CONTENT_ENCODING, coding));
        weir_msg_release(weir_http_response_msg(response));
        for (size_t i = 1; i <= 3; i++) {
            filter_write_text(embedded, "data: tick\n\n");
            weir_channel_flush(weir_embedded_channel(embedded));
            weir_embedded_run(embedded);
            while ((msg = weir_embedded_read_outbound(embedded)) != NULL) {
                more = weir_buf_of(msg);
                assert_int_equal(
                    weir_buf_write_bytes(sent, weir_buf_bytes(more), weir_buf_readable(more)), 0);
                weir_msg_release(msg);
            }
            decoded = decode(coding, sent, false);
            assert_int_equal(weir_buf_readable(decoded), i * strlen("data: tick\n\n"));
            weir_buf_release(decoded);
            weir_channel_flush(weir_embedded_channel(embedded)); /* nothing new: nothing sent */
            weir_embedded_run(embedded);
            assert_null(weir_embedded_read_outbound(embedded));
        }
        weir_buf_release(sent);
        filter_write_end(embedded);
        weir_channel_flush(weir_embedded_channel(embedded));
        weir_embedded_run(embedded);
        assert_non_null(filter_sent(embedded));
    }
    weir_embedded_release(embedded);
}

TEST(compression, streams_much_content)
{
    weir_embedded *embedded = open_with(NULL);
    weir_buf *text = content_text(1 << 20), *all = NULL;

    assert_int_equal(weir_buf_create(3 << 20, 0, &all), 0);
    request(embedded, "GET /\nAccept-Encoding: gzip\n");
    filter_write_head(embedded, 200, PLAIN, 3 << 20);
    for (int i = 0; i < 3; i++) {
        filter_write(embedded, weir_msg_retain(weir_buf_msg(text)));
        assert_int_equal(weir_buf_write_bytes(all, weir_buf_bytes(text), 1 << 20), 0);
    }
    filter_write_end(embedded);
    weir_channel_flush(weir_embedded_channel(embedded));
    weir_embedded_run(embedded);
    assert_int_equal(assert_response(embedded, "gzip", all), WEIR_HTTP_UNKNOWN_LENGTH);
    weir_buf_release(text);
    weir_buf_release(all);
    weir_embedded_release(embedded);
}

static weir_msg *make_range(void)
{
    weir_file_range *range = NULL;
    int file = open("/dev/null", O_RDONLY);

    assert_int_equal(weir_file_range_create(file, 0, 5000, WEIR_FILE_RANGE_CLOSE, &range), 0);
    return weir_file_range_msg(range);
}

TEST(compression, sends_files_as_they_are)
{
    weir_embedded *embedded = open_with(NULL);
    const char *sent;

    request(embedded, "GET /\nAccept-Encoding: gzip\n");
    filter_write_head(embedded, 200, PLAIN "ETag: \"a\"\n", 5006);
    filter_write_text(embedded, "before");
    filter_write(embedded, make_range());
    filter_write_end(embedded);
    weir_channel_flush(weir_embedded_channel(embedded));
    weir_embedded_run(embedded);
    sent = filter_sent(embedded);
    assert_non_null(strstr(sent, "200 (5006) Content-Type: text/plain; ETag: \"a\"; "
                                 "Vary: Accept-Encoding | before | "));
    weir_embedded_release(embedded);
}

static void send_range(weir_http_exchange *exchange, void *user_data)
{
    (void)user_data;
    assert_int_equal(weir_http_headers_add_text(weir_http_exchange_headers(exchange),
                                                WEIR_HTTP_CONTENT_TYPE, "text/plain"),
                     0);
    assert_int_equal(weir_http_respond(exchange, 200, make_range()), 0);
}

/* Both have the same head. */
TEST(compression, of_a_head_request_for_a_file_changes_nothing)
{
    static const weir_http_route routes[] = {{"GET", "/", send_range}, {0}};
    static const char head[] = "200 (5000) Content-Type: text/plain; Vary: Accept-Encoding | ";
    static const char *const requests[] = {"GET /\nAccept-Encoding: gzip\n",
                                           "HEAD /\nAccept-Encoding: gzip\n"};
    weir_embedded *embedded = open_with(NULL);
    weir_http_router *router = NULL;

    assert_int_equal(weir_http_router_create(routes, &router), 0);
    assert_int_equal(weir_http_router_add(weir_embedded_pipeline(embedded), router, 0), 0);
    weir_http_router_release(router);
    for (size_t i = 0; i < 2; i++) {
        filter_receive(embedded, requests[i]);
        assert_memory_equal(filter_sent(embedded), head, strlen(head));
    }
    weir_embedded_release(embedded);
}

TEST(compression, cannot_send_a_file_in_a_compressed_stream)
{
    weir_embedded *embedded = open_with(NULL);
    weir_channel_options options;

    request(embedded, "GET /\nAccept-Encoding: gzip\n");
    filter_write_head(embedded, 200, PLAIN, WEIR_HTTP_UNKNOWN_LENGTH);
    filter_write_text(embedded, "before");
    weir_channel_flush(weir_embedded_channel(embedded));
    weir_embedded_run(embedded);
    assert_int_equal(weir_embedded_write_outbound(embedded, make_range()), -ENOTSUP);
    assert_false(weir_channel_is_open(weir_embedded_channel(embedded)));
    weir_channel_get_options(weir_embedded_channel(embedded), &options);
    assert_true(options.reset_on_close); /* or it would look whole */
    weir_embedded_release(embedded);
}

TEST(compression, keeps_trailers_and_interim_responses)
{
    weir_embedded *embedded = open_with(NULL);
    weir_buf *text = content_text(5000);
    weir_http_end *end = NULL;

    request(embedded, "GET /\nAccept-Encoding: gzip\n");
    filter_write_head(embedded, 103, "Link: </a>\n", 0);
    filter_write_head(embedded, 200, PLAIN, 5000);
    filter_write(embedded, weir_msg_retain(weir_buf_msg(text)));
    assert_int_equal(weir_http_end_create(&end), 0);
    assert_int_equal(weir_http_headers_add_named(weir_http_end_trailers(end),
                                                 weir_span_of_text("Sum"), weir_span_of_text("1")),
                     0);
    filter_write(embedded, weir_http_end_msg(end));
    weir_channel_flush(weir_embedded_channel(embedded));
    weir_embedded_run(embedded);
    assert_non_null(strstr(filter_sent(embedded), "103 (0) Link: </a> | 200 (?)"));
    weir_buf_release(text);
    weir_embedded_release(embedded);
}

TEST(compression, fails_what_it_holds_when_the_connection_is_lost)
{
    weir_embedded *embedded = open_with(NULL);
    weir_channel *channel = weir_embedded_channel(embedded);
    weir_promise *done[2];
    weir_buf *text = content_text(5000);

    for (int i = 0; i < 2; i++)
        assert_int_equal(weir_promise_create(weir_channel_executor(channel), &done[i]), 0);
    request(embedded, "GET /\nAccept-Encoding: gzip\n");
    weir_channel_write(channel, weir_http_response_msg(filter_make_response(200, PLAIN, 5000)),
                       done[0]);
    weir_channel_write(channel, weir_msg_retain(weir_buf_msg(text)), done[1]);
    (void)weir_embedded_finish(embedded);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(weir_promise_result(done[i]), WEIR_ECLOSED);
        weir_promise_release(done[i]);
    }
    weir_buf_release(text);
    weir_embedded_release(embedded);
}

TEST(compression, refuses_invalid_settings)
{
    weir__http_compression *compression = NULL;

    assert_int_equal(
        weir__http_compression_create(WEIR_HTTP_COMPRESSION_OPTIONS(.level = 10), &compression),
        -EINVAL);
    assert_int_equal(weir__http_compression_create(WEIR_HTTP_COMPRESSION_OPTIONS(.min_length = -1),
                                                   &compression),
                     -EINVAL);
    assert_int_equal(
        weir__http_compression_create(WEIR_HTTP_COMPRESSION_OPTIONS(.max_ratio = -1), &compression),
        -EINVAL);
}

/* One response at once and one streamed; whatever fails, nothing is lost or sent twice. */
static bool run_with_failure(const char *coding, const weir_buf *text, unsigned n)
{
    weir_embedded *embedded = filter_open();
    weir_channel *channel = weir_embedded_channel(embedded);
    weir_msg *heads[2], *responses[2], *pieces[4];
    char head[64];
    bool has_failed;

    (void)snprintf(head, sizeof(head), "GET /\nAccept-Encoding: %s\n", coding);
    for (int i = 0; i < 2; i++) {
        heads[i] = weir_http_request_msg(filter_make_request(head, 0));
        responses[i] = weir_http_response_msg(
            filter_make_response(200, PLAIN "ETag: \"a\"\n", WEIR_HTTP_UNKNOWN_LENGTH));
    }
    for (int i = 0; i < 4; i++) {
        weir_buf *copy = NULL;

        assert_int_equal(weir_buf_copy(text, 0, weir_buf_readable(text), &copy), 0);
        pieces[i] = weir_buf_msg(copy);
    }
    test_memory_fail_at(n);
    IGNORE_RESULT(weir_http_compression_add(weir_embedded_pipeline(embedded), NULL));
    for (int i = 0; i < 2; i++) {
        IGNORE_RESULT(weir_embedded_write_inbound(embedded, heads[i]));
        weir_channel_write(channel, responses[i], NULL);
        weir_channel_write(channel, pieces[2 * i], NULL);
        if (i == 1)
            weir_channel_flush(channel);
        weir_channel_write(channel, pieces[2 * i + 1], NULL);
        weir_channel_write(channel, weir_http_end_static(), NULL);
        weir_channel_flush(channel);
        weir_embedded_run(embedded);
    }
    has_failed = test_memory_failed();
    test_memory_fail_at(0);
    weir_embedded_release(embedded);
    return has_failed;
}

TEST(compression, survives_allocation_failures)
{
    weir_buf *text = content_text(3000);

    for (size_t i = 0; i < weir__http_coding_count; i++) {
        unsigned n = 1;

        while (run_with_failure(weir__http_codings[i]->name, text, n))
            n++;
        assert_true(n > 6);
    }
    weir_buf_release(text);
}

/* The validators of a 304 are those of the 200 that it stands for. */
TEST(compression, changes_a_304_as_the_content)
{
    static const struct {
        const char *request;
        const char *fields;
        int64_t length;
        const char *sent;
    } rows[] = {
        {"GET /\nAccept-Encoding: gzip\n", PLAIN, 5000,
         "304 (?) ETag: W/\"a\"; Vary: Accept-Encoding | end"},
        {"GET /\nAccept-Encoding: gzip\n", "", 0,
         "304 (?) ETag: W/\"a\"; Vary: Accept-Encoding | end"},
        {"HEAD /\nAccept-Encoding: gzip\n", PLAIN, WEIR_HTTP_UNKNOWN_LENGTH,
         "304 (?) ETag: W/\"a\"; Vary: Accept-Encoding | end"},
        {"GET /\n", PLAIN, 5000, "304 (5000) ETag: \"a\"; Vary: Accept-Encoding | end"},
        {"GET /\nAccept-Encoding: gzip\n", PLAIN, 1023, "304 (1023) ETag: \"a\" | end"},
        {"GET /\nAccept-Encoding: gzip\n", "Content-Type: image/png\n", 5000,
         "304 (5000) ETag: \"a\" | end"},
        {"GET /\nAccept-Encoding: gzip\n", PLAIN "Content-Encoding: br\n", 5000,
         "304 (5000) ETag: \"a\" | end"},
    };
    weir_embedded *embedded = open_with(NULL);

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char fields[128];

        (void)snprintf(fields, sizeof(fields), "%sETag: \"a\"\n", rows[i].fields);
        request(embedded, rows[i].request);
        filter_write_head(embedded, 304, fields, rows[i].length);
        filter_write_end(embedded);
        weir_channel_flush(weir_embedded_channel(embedded));
        weir_embedded_run(embedded);
        assert_string_equal(filter_sent(embedded), rows[i].sent);
    }
    weir_embedded_release(embedded);
}
