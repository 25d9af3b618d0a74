/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decoding of requests, with limits and on demand; and of responses, for clients.
 */
#include <weir/http_filters.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/composite.h>
#include <weir/error.h>

#include "protocol/http/content_coding.h"
#include "support/memory.h"
#include "support/protocol/http/coded_content.h"
#include "support/protocol/http/filter_fixture.h"

static weir_embedded *open_with(const weir_http_compression_options *options)
{
    weir_embedded *embedded = filter_open();

    assert_int_equal(weir_http_compression_add(weir_embedded_pipeline(embedded), options), 0);
    return embedded;
}

static weir_embedded *open_client(void)
{
    weir_embedded *embedded = filter_open();

    assert_int_equal(weir_http_decompression_add(weir_embedded_pipeline(embedded), NULL), 0);
    return embedded;
}

static int receive(weir_embedded *embedded, const weir_buf *content, size_t piece)
{
    weir_span rest = weir_buf_span(content);
    int err = 0;

    while (err == 0 && rest.length > 0) {
        size_t length = rest.length < piece ? rest.length : piece;
        weir_buf *buf = NULL;

        assert_int_equal(weir_buf_create_from(rest.data, length, &buf), 0);
        err = weir_embedded_write_inbound(embedded, weir_buf_msg(buf));
        rest.data += length;
        rest.length -= length;
    }
    return err;
}

/* Takes what reached the application, after the head: content, each piece at most 64 KiB, and the
 * end, if there is one. */
static bool take_content(weir_embedded *embedded, weir_buf *all)
{
    weir_msg *msg;
    bool has_end = false;

    while ((msg = weir_embedded_read_inbound(embedded)) != NULL) {
        weir_buf *buf = weir_buf_of(msg);

        assert_false(has_end);
        if (buf != NULL) {
            assert_in_range(weir_buf_readable(buf), 1, 65536);
            assert_int_equal(weir_buf_write_bytes(all, weir_buf_bytes(buf), weir_buf_readable(buf)),
                             0);
        } else {
            assert_non_null(weir_http_end_of(msg));
            has_end = true;
        }
        weir_msg_release(msg);
    }
    return has_end;
}

static void receive_coded_head(weir_embedded *embedded, const char *coding, int64_t length)
{
    char head[256];
    weir_msg *msg;
    weir_http_request *request;

    (void)snprintf(head, sizeof(head), "POST /\nContent-Encoding: %s\nContent-Length: 9\n", coding);
    filter_receive_head(embedded, head, length);
    msg = weir_embedded_read_inbound(embedded);
    request = weir_http_request_of(msg);
    assert_non_null(request);
    assert_int_equal(weir_http_request_content_length(request), WEIR_HTTP_UNKNOWN_LENGTH);
    assert_int_equal(weir_http_headers_count(weir_http_request_headers(request)), 0);
    weir_msg_release(msg);
}

TEST(decompression, decodes_the_content_of_requests)
{
    weir_embedded *embedded = open_with(NULL);
    weir_buf *text = content_text(300000);

    for (size_t i = 0; i < weir__http_coding_count; i++) {
        const weir__http_coding *coding = weir__http_codings[i];
        weir_buf *coded = content_encode(coding, text, SIZE_MAX, false), *all = NULL;

        for (size_t piece = 1000; piece < 10000000; piece *= 1000) {
            assert_int_equal(weir_buf_create(0, 0, &all), 0);
            receive_coded_head(embedded, coding->name, (int64_t)weir_buf_readable(coded));
            assert_int_equal(receive(embedded, coded, piece), 0);
            filter_receive_end(embedded);
            assert_true(take_content(embedded, all));
            assert_true(weir_buf_equal(all, text));
            weir_buf_release(all);
            filter_respond(embedded, 200, "", NULL);
            assert_string_equal(filter_sent(embedded), "200 (0) | end");
        }
        weir_buf_release(coded);
    }
    weir_buf_release(text);
    weir_embedded_release(embedded);
}

TEST(decompression, decodes_composites)
{
    weir_embedded *embedded = open_with(NULL);
    weir_buf *text = content_text(100000), *all = NULL, *half = NULL;
    weir_buf *coded = content_encode(&weir__http_gzip, text, SIZE_MAX, false);
    weir_composite *composite = NULL;

    assert_int_equal(weir_buf_create(0, 0, &all), 0);
    assert_int_equal(weir_composite_create(0, &composite), 0);
    assert_int_equal(weir_buf_read_slice(coded, 1000, &half), 0);
    assert_int_equal(weir_composite_add(composite, weir_buf_msg(half)), 0);
    assert_int_equal(weir_composite_add(composite, weir_buf_msg(coded)), 0);
    receive_coded_head(embedded, "gzip", 9);
    assert_int_equal(weir_embedded_write_inbound(embedded, weir_composite_msg(composite)), 0);
    filter_receive_end(embedded);
    assert_true(take_content(embedded, all));
    assert_true(weir_buf_equal(all, text));
    weir_buf_release(all);
    weir_buf_release(text);
    weir_embedded_release(embedded);
}

TEST(decompression, passes_other_content)
{
    weir_embedded *embedded = open_with(NULL);

    filter_receive_head(embedded, "POST /\n", 5);
    filter_receive_text(embedded, "hello");
    filter_receive_end(embedded);
    assert_string_equal(filter_received(embedded), "POST / (5) | hello | end");
    filter_receive_head(embedded, "POST /\nContent-Encoding: identity\n", 5);
    filter_receive_text(embedded, "hello");
    filter_receive_end(embedded);
    assert_string_equal(filter_received(embedded),
                        "POST / (5) Content-Encoding: identity | hello | end");
    receive_coded_head(embedded, "gzip", 0); /* without content */
    filter_receive_end(embedded);
    assert_string_equal(filter_received(embedded), "end");
    filter_receive_text(embedded, "raw bytes, after an upgrade");
    assert_string_equal(filter_received(embedded), "raw bytes, after an upgrade");
    weir_embedded_release(embedded);
    embedded = open_with(WEIR_HTTP_COMPRESSION_OPTIONS(.no_requests = true));
    filter_receive_head(embedded, "POST /\nContent-Encoding: gzip\n", 5);
    filter_receive_text(embedded, "hello");
    assert_string_equal(filter_received(embedded), "POST / (5) Content-Encoding: gzip | hello");
    weir_embedded_release(embedded);
}

TEST(decompression, refuses_unknown_codings)
{
    static const char *const codings[] = {"compress", "gzip, x", "gzip,gzip,gzip,gzip"};

    for (size_t i = 0; i < sizeof(codings) / sizeof(codings[0]); i++) {
        weir_embedded *embedded = open_with(NULL);
        char head[128];
        const char *sent;

        (void)snprintf(head, sizeof(head), "POST /\nContent-Encoding: %s\n", codings[i]);
        filter_receive_head(embedded, head, 5);
        filter_receive_text(embedded, "hello");
        filter_receive_end(embedded);
        assert_null(filter_received(embedded));
        sent = filter_sent(embedded);
        assert_memory_equal(sent, "415 ", 4);
        assert_non_null(strstr(sent, "Accept-Encoding: gzip; Accept-Encoding: deflate closes | "));
        weir_embedded_release(embedded);
    }
}

/* The status with which this content is refused, after the application has seen the head. */
static int status_of(const char *coding, const weir_buf *coded)
{
    weir_embedded *embedded = open_with(NULL);
    weir_promise *done = NULL;
    weir_buf *all = NULL;
    const char *sent;
    int status;

    assert_int_equal(weir_buf_create(0, 0, &all), 0);
    receive_coded_head(embedded, coding, (int64_t)weir_buf_readable(coded));
    assert_int_equal(receive(embedded, coded, 10000), 0);
    filter_receive_end(embedded);
    assert_false(take_content(embedded, all));
    sent = filter_sent(embedded);
    assert_non_null(sent);
    assert_non_null(strstr(sent, " closes | "));
    status = atoi(sent);
    assert_int_equal(
        weir_promise_create(weir_channel_executor(weir_embedded_channel(embedded)), &done), 0);
    weir_channel_write_and_flush(weir_embedded_channel(embedded),
                                 weir_http_response_msg(filter_make_response(200, "", 0)), done);
    weir_embedded_run(embedded);
    assert_int_equal(weir_promise_result(done), WEIR_ECLOSED); /* too late */
    assert_null(filter_sent(embedded));
    weir_promise_release(done);
    weir_buf_release(all);
    weir_embedded_release(embedded);
    return status;
}

TEST(decompression, refuses_malformed_and_truncated_content)
{
    weir_buf *text = content_text(50000);
    weir_buf *coded = content_encode(&weir__http_gzip, text, SIZE_MAX, false), *part = NULL;

    assert_int_equal(status_of("gzip", text), 400);
    assert_int_equal(weir_buf_slice(coded, 0, weir_buf_readable(coded) - 1, &part), 0);
    assert_int_equal(status_of("gzip", part), 400);
    assert_int_equal(weir_buf_write_string(coded, "more"), 0);
    assert_int_equal(status_of("gzip", coded), 400);
    weir_buf_release(part);
    weir_buf_release(coded);
    weir_buf_release(text);
}

TEST(decompression, refuses_bombs)
{
    const weir__http_coding *const twice[] = {&weir__http_gzip, &weir__http_gzip, NULL};
    weir_buf *bomb = content_bomb(8 << 20, twice); /* 1 : 10,000 and more */

    assert_true(weir_buf_readable(bomb) < (8 << 20) / 10000);
    assert_int_equal(status_of("gzip, gzip", bomb), 413);
    weir_buf_release(bomb);
    for (size_t i = 0; i < weir__http_coding_count; i++) {
        const weir__http_coding *const one[] = {weir__http_codings[i], NULL};

        bomb = content_bomb(8 << 20, one);
        assert_int_equal(status_of(one[0]->name, bomb), 413);
        weir_buf_release(bomb);
    }
}

TEST(decompression, refuses_content_above_the_limit)
{
    weir_embedded *embedded = open_with(WEIR_HTTP_COMPRESSION_OPTIONS(.max_decoded = 10000));
    weir_buf *text = content_text(10001);
    weir_buf *coded = content_encode(&weir__http_gzip, text, SIZE_MAX, false);

    receive_coded_head(embedded, "gzip", 9);
    assert_int_equal(receive(embedded, coded, SIZE_MAX), 0);
    assert_memory_equal(filter_sent(embedded), "413 ", 4);
    weir_buf_release(coded);
    weir_buf_release(text);
    weir_embedded_release(embedded);
}

/* Counts memory while a bomb is read by an application that discards it. */
static size_t most_bytes;

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    (void)ctx;
    if (test_memory_live_bytes() > most_bytes)
        most_bytes = test_memory_live_bytes();
    weir_msg_release(msg);
}

static const weir_handler discarding = {.name = "discarding", .read = on_read};

TEST(decompression, of_a_bomb_takes_little_memory)
{
    const weir__http_coding *const twice[] = {&weir__http_gzip, &weir__http_gzip, NULL};
    weir_buf *bomb = content_bomb(8 << 20, twice);
    weir_embedded *embedded = open_with(NULL);
    size_t before;

    assert_int_equal(weir_pipeline_add_last(weir_embedded_pipeline(embedded), &discarding, NULL),
                     0);
    before = most_bytes = test_memory_live_bytes();
    filter_receive_head(embedded, "POST /\nContent-Encoding: gzip, gzip\n", 100);
    assert_int_equal(receive(embedded, bomb, SIZE_MAX), 0);
    assert_in_range(most_bytes - before, 1000, 1 << 20);
    assert_memory_equal(filter_sent(embedded), "413 ", 4);
    weir_buf_release(bomb);
    weir_embedded_release(embedded);
}

TEST(decompression, makes_one_piece_for_each_request)
{
    weir_embedded *embedded = open_with(NULL);
    weir_channel *channel = weir_embedded_channel(embedded);
    weir_buf *text = content_text(1 << 20), *all = NULL;
    weir_buf *coded = content_encode(&weir__http_gzip, text, SIZE_MAX, false);
    unsigned count = 0;
    bool has_end = false;

    weir_channel_set_auto_read(channel, false);
    weir_embedded_run(embedded);
    assert_int_equal(weir_buf_create(0, 0, &all), 0);
    filter_receive_head(embedded, "POST /\nContent-Encoding: gzip\n", 9);
    assert_int_equal(weir_embedded_write_inbound(embedded, weir_msg_retain(weir_buf_msg(coded))),
                     0);
    filter_receive_end(embedded);
    while (!has_end) {
        weir_msg *msg;

        assert_null(weir_embedded_read_inbound(embedded));
        weir_channel_request_read(channel);
        weir_embedded_run(embedded);
        msg = weir_embedded_read_inbound(embedded);
        assert_non_null(msg);
        if (weir_buf_of(msg) != NULL)
            assert_int_equal(
                weir_buf_write_bytes(all, weir_buf_bytes(weir_buf_of(msg)), weir_msg_size(msg)), 0);
        has_end = weir_http_end_of(msg) != NULL;
        weir_msg_release(msg);
        if (++count == 2) /* the head and a piece: the rest is not decoded yet */
            assert_true(weir_buf_readable(coded) > 0);
    }
    assert_true(weir_buf_equal(all, text));
    assert_in_range(count, (1 << 20) / 65536 + 2, 40);
    weir_buf_release(all);
    weir_buf_release(coded);
    weir_buf_release(text);
    weir_embedded_release(embedded);
}

/* The client must not take a part for the whole. */
TEST(decompression, resets_if_the_response_has_begun)
{
    weir_embedded *embedded = open_with(NULL);
    weir_channel_options options;

    receive_coded_head(embedded, "gzip", 9);
    filter_write_head(embedded, 200, "", WEIR_HTTP_UNKNOWN_LENGTH);
    weir_channel_flush(weir_embedded_channel(embedded));
    weir_embedded_run(embedded);
    filter_receive_text(embedded, "not gzip");
    assert_string_equal(filter_sent(embedded), "200 (?)");
    assert_false(weir_channel_is_open(weir_embedded_channel(embedded)));
    weir_channel_get_options(weir_embedded_channel(embedded), &options);
    assert_true(options.reset_on_close);
    weir_embedded_release(embedded);
}

/* Of this request, not of the one before. */
TEST(decompression, answers_if_only_an_earlier_response_has_begun)
{
    weir_embedded *embedded = open_with(NULL);
    weir_msg *msg;

    filter_receive(embedded, "GET /\n");
    assert_string_equal(filter_received(embedded), "GET / (0) | end");
    filter_respond(embedded, 200, "", NULL);
    assert_non_null(filter_sent(embedded));
    receive_coded_head(embedded, "gzip", 9);
    filter_receive_text(embedded, "not gzip!");
    msg = weir_embedded_read_outbound(embedded);
    assert_non_null(msg);
    assert_int_equal(weir_http_response_status(weir_http_response_of(msg)), 400);
    weir_msg_release(msg);
    weir_embedded_release(embedded);
}

/* ---- clients ---- */

static void receive_response(weir_embedded *embedded, int status, const char *fields)
{
    weir_http_response *response = filter_make_response(status, fields, 100);

    assert_int_equal(weir_embedded_write_inbound(embedded, weir_http_response_msg(response)), 0);
}

static void send_request(weir_embedded *embedded, const char *head)
{
    assert_int_equal(
        weir_embedded_write_outbound(embedded, weir_http_request_msg(filter_make_request(head, 0))),
        0);
    assert_int_equal(weir_embedded_write_outbound(embedded, weir_http_end_static()), 0);
    assert_non_null(filter_sent(embedded));
}

TEST(decompression, decodes_responses_of_clients)
{
    weir_embedded *embedded = open_client();
    weir_buf *coded, *text = NULL;

    assert_int_equal(weir_buf_create_from("hello", 5, &text), 0);
    coded = content_encode(&weir__http_gzip, text, SIZE_MAX, false);
    send_request(embedded, "GET /\n");
    receive_response(embedded, 103, "Content-Encoding: gzip\n");
    receive_response(embedded, 200, "Content-Encoding: gzip\n");
    assert_int_equal(receive(embedded, coded, SIZE_MAX), 0);
    filter_receive_end(embedded);
    assert_string_equal(filter_received(embedded),
                        "103 (100) Content-Encoding: gzip | 200 (?) | hello | end");
    send_request(embedded, "HEAD /\n");
    receive_response(embedded, 200, "Content-Encoding: gzip\n");
    filter_receive_end(embedded);
    assert_string_equal(filter_received(embedded), "200 (100) Content-Encoding: gzip | end");
    send_request(embedded, "GET /\n");
    receive_response(embedded, 304, "Content-Encoding: gzip\n");
    filter_receive_end(embedded);
    assert_string_equal(filter_received(embedded), "304 (100) Content-Encoding: gzip | end");
    receive_response(embedded, 206, "Content-Encoding: gzip\n");
    filter_receive_text(embedded, "part");
    filter_receive_end(embedded);
    assert_string_equal(filter_received(embedded), "206 (100) Content-Encoding: gzip | part | end");
    receive_response(embedded, 200, "Content-Encoding: unknown\n");
    filter_receive_text(embedded, "hello");
    filter_receive_end(embedded);
    assert_string_equal(filter_received(embedded),
                        "200 (100) Content-Encoding: unknown | hello | end");
    weir_buf_release(text);
    weir_buf_release(coded);
    weir_embedded_release(embedded);
}

TEST(decompression, fires_the_errors_of_clients)
{
    const weir__http_coding *const one[] = {&weir__http_gzip, NULL};
    weir_buf *bomb = content_bomb(8 << 20, one), *text = content_text(100);
    weir_embedded *embedded = open_client();

    receive_response(embedded, 200, "Content-Encoding: gzip\n");
    assert_int_equal(receive(embedded, text, SIZE_MAX), WEIR_EMALFORMED);
    assert_false(weir_channel_is_open(weir_embedded_channel(embedded)));
    weir_embedded_release(embedded);
    embedded = open_client();
    receive_response(embedded, 200, "Content-Encoding: gzip\n");
    assert_int_equal(receive(embedded, bomb, SIZE_MAX), WEIR_ETOOLONG);
    weir_embedded_release(embedded);
    weir_buf_release(bomb);
    weir_buf_release(text);
}

static bool run_with_failure(const char *list, const weir_buf *coded, unsigned n)
{
    weir_embedded *embedded = filter_open();
    weir_http_request *request;
    weir_buf *copy = NULL;
    char head[64];
    bool has_failed;

    (void)snprintf(head, sizeof(head), "POST /\nContent-Encoding: %s\n", list);
    request = filter_make_request(head, 100);
    assert_int_equal(weir_buf_copy(coded, 0, weir_buf_readable(coded), &copy), 0);
    test_memory_fail_at(n);
    IGNORE_RESULT(weir_http_compression_add(weir_embedded_pipeline(embedded), NULL));
    IGNORE_RESULT(weir_embedded_write_inbound(embedded, weir_http_request_msg(request)));
    IGNORE_RESULT(weir_embedded_write_inbound(embedded, weir_buf_msg(copy)));
    IGNORE_RESULT(weir_embedded_write_inbound(embedded, weir_http_end_static()));
    has_failed = test_memory_failed();
    test_memory_fail_at(0);
    weir_embedded_release(embedded);
    return has_failed;
}

TEST(decompression, survives_allocation_failures)
{
    weir_buf *text = content_text(100000);

    for (size_t i = 0; i < weir__http_coding_count; i++) {
        weir_buf *coded = content_encode(weir__http_codings[i], text, SIZE_MAX, false);
        weir_buf *twice = content_encode(&weir__http_gzip, coded, SIZE_MAX, false);
        char list[32];
        unsigned n = 1;

        (void)snprintf(list, sizeof(list), "%s, gzip", weir__http_codings[i]->name);
        while (run_with_failure(list, twice, n))
            n++;
        assert_true(n > 8);
        n = 1;
        while (run_with_failure("gzip", text, n)) /* refused */
            n++;
        weir_buf_release(coded);
        weir_buf_release(twice);
    }
    weir_buf_release(text);
}
