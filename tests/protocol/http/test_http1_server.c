/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server's side of a connection: responses, persistence, order, and the end.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/composite.h>
#include <weir/embedded.h>
#include <weir/error.h>
#include <weir/http1.h>
#include <weir/promise.h>

#include "support/codec/feed.h"
#include "support/executor/log_capture.h"
#include "support/protocol/http/http_feed.h"
#include "support/protocol/http/http_text.h"
#include "support/test.h"

/* ---- fixture: the test is the application ---- */

static weir_embedded *open_with(const weir_http1_options *options, bool peer_stays)
{
    weir_embedded *embedded = NULL;

    assert_int_equal(
        weir_embedded_create(
            WEIR_EMBEDDED_OPTIONS(.channel = WEIR_CHANNEL_OPTIONS(.half_closure = true),
                                  .peer_stays = peer_stays),
            &embedded),
        0);
    assert_int_equal(weir_http1_server_add(weir_embedded_pipeline(embedded), options), 0);
    return embedded;
}

static weir_embedded *open(void)
{
    return open_with(NULL, false);
}

static int put(weir_embedded *embedded, const char *text)
{
    return weir_embedded_write_inbound(embedded, feed_bytes(text, strlen(text)));
}

static void assert_in(weir_embedded *embedded, const char *expected)
{
    weir_msg *msg = weir_embedded_read_inbound(embedded);
    char text[4096];

    if (expected == NULL) {
        assert_null(msg);
        return;
    }
    assert_non_null(msg);
    http_format(msg, text, sizeof(text));
    assert_string_equal(text, expected);
    weir_msg_release(msg);
}

static void assert_out(weir_embedded *embedded, const char *expected)
{
    struct http_fed *fed = calloc(1, sizeof(*fed));

    http_feed_collect(embedded, fed);
    assert_string_equal(fed->out, expected);
    free(fed);
}

static bool is_open(weir_embedded *embedded)
{
    return weir_channel_is_open(weir_embedded_channel(embedded));
}

static weir_http_response *response_of(int status, int64_t length)
{
    weir_http_response *response = NULL;

    assert_int_equal(weir_http_response_create(status, &response), 0);
    assert_int_equal(weir_http_response_set_content_length(response, length), 0);
    return response;
}

static void write_msg(weir_embedded *embedded, weir_msg *msg)
{
    weir_channel_write(weir_embedded_channel(embedded), msg, NULL);
}

static void write_head(weir_embedded *embedded, int status, int64_t length)
{
    write_msg(embedded, weir_http_response_msg(response_of(status, length)));
}

static void write_text(weir_embedded *embedded, const char *text)
{
    write_msg(embedded, feed_bytes(text, strlen(text)));
}

static void write_end(weir_embedded *embedded)
{
    weir_channel_write_and_flush(weir_embedded_channel(embedded), weir_http_end_static(), NULL);
    weir_embedded_run(embedded);
}

static void respond(weir_embedded *embedded, int status, const char *text)
{
    write_head(embedded, status, (int64_t)strlen(text));
    write_text(embedded, text);
    write_end(embedded);
}

/* Events are fired from here: to the codec. */
static void pass_draining(weir_ctx *ctx)
{
    weir_fire_draining(ctx);
}

static const weir_handler first = {.name = "first", .draining = pass_draining};

#define GET_LINES "GET / HTTP/1.1\r\nHost: h\r\n"
#define GET GET_LINES "\r\n"
#define GET_MSG "GET / 1.1 {Host: h} 0"

static void assert_get(weir_embedded *embedded)
{
    assert_in(embedded, GET_MSG);
    assert_in(embedded, "end");
}

/* ---- framing of responses ---- */

TEST(http1_server, frames_content_by_its_length)
{
    weir_embedded *embedded = open();

    assert_int_equal(put(embedded, GET), 0);
    assert_get(embedded);
    write_head(embedded, 404, 5);
    write_text(embedded, "ab");
    write_text(embedded, "");
    write_text(embedded, "cde");
    write_end(embedded);
    assert_out(embedded, "HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\n\r\nabcde");
    assert_true(is_open(embedded));
    weir_embedded_release(embedded);
}

TEST(http1_server, chunks_content_of_unknown_length)
{
    weir_embedded *embedded = open();
    weir_http_end *end = NULL;

    assert_int_equal(put(embedded, GET), 0);
    assert_get(embedded);
    write_head(embedded, 200, WEIR_HTTP_UNKNOWN_LENGTH);
    write_text(embedded, "0123456789abcdef");
    write_text(embedded, "");
    write_text(embedded, "x");
    assert_int_equal(weir_http_end_create(&end), 0);
    assert_int_equal(weir_http_headers_add_text(weir_http_end_trailers(end), WEIR_HTTP_ETAG, "e"),
                     0);
    weir_channel_write_and_flush(weir_embedded_channel(embedded), weir_http_end_msg(end), NULL);
    assert_out(embedded, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                         "10\r\n0123456789abcdef\r\n1\r\nx\r\n0\r\nETag: e\r\n\r\n");
    weir_embedded_release(embedded);
}

TEST(http1_server, ends_content_of_unknown_length_with_the_connection_in_http_1_0)
{
    weir_embedded *embedded = open();

    assert_int_equal(put(embedded, "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"), 0);
    weir_msg_release(weir_embedded_read_inbound(embedded));
    write_head(embedded, 200, WEIR_HTTP_UNKNOWN_LENGTH);
    write_text(embedded, "abc");
    write_end(embedded);
    assert_out(embedded, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nabc");
    assert_false(is_open(embedded));
    weir_embedded_release(embedded);
}

TEST(http1_server, sends_no_content_where_there_is_none)
{
    static const struct {
        const char *method;
        int status;
        int64_t length;
        const char *out;
    } rows[] = {
        {"HEAD", 200, 3, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n"},
        {"HEAD", 200, 0, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"},
        {"HEAD", 200, WEIR_HTTP_UNKNOWN_LENGTH, "HTTP/1.1 200 OK\r\n\r\n"},
        {"GET", 204, 3, "HTTP/1.1 204 No Content\r\n\r\n"},
        {"GET", 204, 0, "HTTP/1.1 204 No Content\r\n\r\n"},
        {"GET", 304, 0, "HTTP/1.1 304 Not Modified\r\n\r\n"},
        {"GET", 304, 3, "HTTP/1.1 304 Not Modified\r\nContent-Length: 3\r\n\r\n"},
        {"GET", 200, 0, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"},
    };
    weir_embedded *embedded = open();
    char request[64];

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        (void)snprintf(request, sizeof(request), "%s / HTTP/1.1\r\nHost: h\r\n\r\n",
                       rows[i].method);
        assert_int_equal(put(embedded, request), 0);
        weir_msg_release(weir_embedded_read_inbound(embedded));
        weir_msg_release(weir_embedded_read_inbound(embedded));
        write_head(embedded, rows[i].status, rows[i].length);
        if (rows[i].status != 200 || rows[i].length != 0 || strcmp(rows[i].method, "HEAD") == 0)
            write_text(embedded, "abc");
        write_end(embedded);
        assert_out(embedded, rows[i].out);
    }
    assert_true(is_open(embedded));
    weir_embedded_release(embedded);
}

TEST(http1_server, writes_the_fields_but_not_those_of_the_framing)
{
    weir_embedded *embedded = open();
    weir_http_response *response = response_of(200, 0);
    static const char *const names[] = {
        "Content-Type", "content-length", "Connection", "Transfer-Encoding",
        "X-Other",      "Keep-Alive",     "Date"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        assert_int_equal(weir_http_headers_add_named(weir_http_response_headers(response),
                                                     weir_span_of_text(names[i]),
                                                     weir_span_of_text("v")),
                         0);
    assert_int_equal(put(embedded, GET), 0);
    write_msg(embedded, weir_http_response_msg(response));
    write_end(embedded);
    assert_out(embedded, "HTTP/1.1 200 OK\r\nContent-Type: v\r\nX-Other: v\r\n"
                         "Content-Length: 0\r\n\r\n"); /* the helper has removed the only Date */
    weir_embedded_release(embedded);
}

TEST(http1_server, sends_a_date)
{
    weir_embedded *embedded = open();
    weir_msg *msg;
    char text[512];

    assert_int_equal(put(embedded, GET), 0);
    respond(embedded, 200, "x");
    msg = weir_embedded_read_outbound(embedded);
    http_format(msg, text, sizeof(text));
    weir_msg_release(msg);
    assert_non_null(strstr(text, "\r\nDate: "));
    assert_int_equal(strcspn(strstr(text, "Date: "), "\r"), 35);
    assert_non_null(strstr(text, " GMT\r\n"));
    weir_embedded_release(embedded);
}

TEST(http1_server, passes_large_content_on_without_a_copy)
{
    weir_embedded *embedded = open();
    char *large = malloc(5000);
    weir_msg *content, *msg;

    memset(large, 'x', 5000);
    content = feed_bytes(large, 5000);
    assert_int_equal(put(embedded, GET), 0);
    write_head(embedded, 200, 5000);
    write_msg(embedded, content);
    write_end(embedded);
    msg = weir_embedded_read_outbound(embedded);
    weir_msg_release(msg);
    msg = weir_embedded_read_outbound(embedded);
    assert_ptr_equal(msg, content);
    weir_msg_release(msg);
    free(large);
    weir_embedded_release(embedded);
}

/* ---- responses that are wrong ---- */

static int result_of(weir_embedded *embedded, weir_msg *msg)
{
    weir_promise *done = NULL;
    int result;

    assert_int_equal(
        weir_promise_create(weir_channel_executor(weir_embedded_channel(embedded)), &done), 0);
    weir_channel_write_and_flush(weir_embedded_channel(embedded), msg, done);
    weir_embedded_run(embedded);
    result = weir_promise_is_done(done) ? weir_promise_result(done) : 1;
    weir_promise_release(done);
    return result;
}

TEST(http1_server, completes_promises_when_the_bytes_are_sent)
{
    weir_embedded *embedded = open();

    assert_int_equal(put(embedded, GET), 0);
    assert_int_equal(result_of(embedded, weir_http_response_msg(response_of(200, 1))), 0);
    assert_int_equal(result_of(embedded, feed_bytes("x", 1)), 0);
    assert_int_equal(result_of(embedded, weir_http_end_static()), 0);
    assert_out(embedded, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx");
    weir_embedded_release(embedded);
}

TEST(http1_server, resets_instead_of_sending_too_much)
{
    weir_embedded *embedded = open();

    assert_int_equal(put(embedded, GET), 0);
    write_head(embedded, 200, 2);
    assert_int_equal(result_of(embedded, feed_bytes("abc", 3)), WEIR_ETOOLONG);
    assert_false(is_open(embedded));
    assert_out(embedded, "");
    assert_int_equal(result_of(embedded, weir_http_end_static()), WEIR_ECLOSED);
    weir_embedded_release(embedded);
}

TEST(http1_server, resets_instead_of_sending_too_little)
{
    weir_embedded *embedded = open();

    assert_int_equal(put(embedded, GET), 0);
    write_head(embedded, 200, 4);
    write_text(embedded, "abc");
    assert_int_equal(result_of(embedded, weir_http_end_static()), WEIR_ETRUNCATED);
    assert_false(is_open(embedded));
    weir_embedded_release(embedded);
}

TEST(http1_server, refuses_messages_out_of_order)
{
    weir_embedded *embedded = open();
    weir_http_request *request = NULL;

    assert_int_equal(result_of(embedded, weir_http_response_msg(response_of(200, 0))), -EINVAL);
    assert_int_equal(result_of(embedded, weir_http_end_static()), -EINVAL);
    assert_int_equal(result_of(embedded, feed_bytes("x", 1)), -EINVAL);
    assert_int_equal(weir_http_request_create("GET", "/", &request), 0);
    assert_int_equal(result_of(embedded, weir_http_request_msg(request)), -EINVAL);
    assert_int_equal(put(embedded, GET), 0);
    assert_int_equal(result_of(embedded, weir_http_response_msg(response_of(200, 0))), 0);
    assert_int_equal(result_of(embedded, weir_http_response_msg(response_of(200, 0))), -EINVAL);
    assert_int_equal(result_of(embedded, weir_http_end_static()), 0);
    assert_true(is_open(embedded));
    weir_embedded_release(embedded);
}

/* ---- persistence ---- */

static void assert_persists(const char *request, bool persists, const char *head)
{
    weir_embedded *embedded = open();

    assert_int_equal(put(embedded, request), 0);
    respond(embedded, 200, "");
    assert_out(embedded, head);
    assert_int_equal(is_open(embedded), persists);
    weir_embedded_release(embedded);
}

TEST(http1_server, keeps_the_connection_as_the_client_wants)
{
#define OK "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n"
    assert_persists(GET, true, OK "\r\n");
    assert_persists(GET_LINES "Connection: keep-alive\r\n\r\n", true, OK "\r\n");
    assert_persists(GET_LINES "Connection: keep-alive\r\nConnection: close\r\n\r\n", false,
                    OK "Connection: close\r\n\r\n");
    assert_persists(GET_LINES "Connection: x, Close\r\n\r\n", false,
                    OK "Connection: close\r\n\r\n");
    assert_persists(GET_LINES "Connection: x\r\nConnection: close\r\n\r\n", false,
                    OK "Connection: close\r\n\r\n");
    assert_persists("GET / HTTP/1.0\r\n\r\n", false, OK "Connection: close\r\n\r\n");
    assert_persists("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", true,
                    OK "Connection: keep-alive\r\n\r\n");
    assert_persists("GET / HTTP/1.0\r\nConnection: keep-alive, close\r\n\r\n", false,
                    OK "Connection: close\r\n\r\n");
}

TEST(http1_server, closes_if_the_response_says_so)
{
    weir_embedded *embedded = open();
    weir_http_response *response = response_of(200, 0);

    weir_http_response_set_closes(response, true);
    assert_int_equal(put(embedded, GET GET), 0);
    write_msg(embedded, weir_http_response_msg(response));
    write_end(embedded);
    assert_out(embedded, OK "Connection: close\r\n\r\n");
    assert_false(is_open(embedded));
    assert_get(embedded);
    assert_in(embedded, NULL); /* the second request is not read */
    weir_embedded_release(embedded);
}

TEST(http1_server, closes_after_the_last_allowed_request)
{
    weir_embedded *embedded = open_with(WEIR_HTTP1_OPTIONS(.max_requests = 2), false);

    assert_int_equal(put(embedded, GET GET GET), 0);
    respond(embedded, 200, "");
    assert_out(embedded, OK "\r\n");
    respond(embedded, 200, "");
    assert_out(embedded, OK "Connection: close\r\n\r\n");
    assert_false(is_open(embedded));
    weir_embedded_release(embedded);
}

/* ---- order ---- */

TEST(http1_server, reads_a_request_when_the_response_before_it_has_ended)
{
    weir_embedded *embedded = open();

    assert_int_equal(put(embedded, GET "POST /2 HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx"
                                       "GET /3 HTTP/1.1\r\nHo"),
                     0);
    assert_get(embedded);
    assert_in(embedded, NULL);
    assert_int_equal(put(embedded, "st: h\r\n\r\n"), 0);
    assert_in(embedded, NULL);
    write_head(embedded, 200, 1);
    assert_in(embedded, NULL);
    write_text(embedded, "1");
    assert_in(embedded, NULL);
    write_end(embedded);
    assert_in(embedded, "POST /2 1.1 {Host: h|Content-Length: 1} 1");
    assert_in(embedded, "(x)");
    assert_in(embedded, "end");
    assert_in(embedded, NULL);
    respond(embedded, 200, "2");
    assert_in(embedded, "GET /3 1.1 {Host: h} 0");
    assert_in(embedded, "end");
    weir_embedded_release(embedded);
}

TEST(http1_server, reads_the_rest_of_a_request_that_was_answered_early)
{
    weir_embedded *embedded = open();

    assert_int_equal(put(embedded, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nab"), 0);
    respond(embedded, 200, "early");
    assert_out(embedded, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nearly");
    assert_int_equal(put(embedded, "cd" GET), 0);
    assert_in(embedded, "POST / 1.1 {Host: h|Content-Length: 4} 4");
    assert_in(embedded, "(ab)");
    assert_in(embedded, "(cd)");
    assert_in(embedded, "end");
    assert_get(embedded);
    weir_embedded_release(embedded);
}

/* Answers each request at once, with a flush. */
static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    if (weir_http_end_of(msg) != NULL) {
        weir_write(ctx, weir_http_response_msg(response_of(200, 1)), NULL);
        weir_write(ctx, feed_bytes("x", 1), NULL);
        weir_write_and_flush(ctx, weir_http_end_static(), NULL);
    }
    weir_msg_release(msg);
}

static const weir_handler hello = {.name = "hello", .read = on_read};

/* 10,000 requests run in a loop, not on the stack, and share few writes. */
TEST(http1_server, answers_pipelined_requests_together)
{
    weir_embedded *embedded = open();
    const size_t count = 10000, length = strlen(GET);
    char *all = malloc(count * length);
    weir_msg *msg;
    size_t bytes = 0, messages = 0;

    assert_int_equal(weir_pipeline_add_last(weir_embedded_pipeline(embedded), &hello, NULL), 0);
    for (size_t i = 0; i < count; i++)
        memcpy(all + i * length, GET, length);
    assert_int_equal(weir_embedded_write_inbound(embedded, feed_bytes(all, count * length)), 0);
    while ((msg = weir_embedded_read_outbound(embedded)) != NULL) {
        bytes += weir_msg_size(msg);
        messages++;
        weir_msg_release(msg);
    }
    assert_int_equal(bytes, count * (strlen(OK "\r\n") + 37 + 1));
    assert_true(messages < 150);
    free(all);
    weir_embedded_release(embedded);
}

#define MANY_RESPONSE (strlen(OK "\r\n") + 37 + 1)

/* A client that takes a response only after weir_embedded_make_space. */
static weir_embedded *open_slow_client(void)
{
    weir_embedded *embedded = NULL;

    assert_int_equal(weir_embedded_create(
                         WEIR_EMBEDDED_OPTIONS(.channel = WEIR_CHANNEL_OPTIONS(.half_closure = true,
                                                                               .high_mark = 4096,
                                                                               .low_mark = 2048),
                                               .socket_space = 1000),
                         &embedded),
                     0);
    assert_int_equal(weir_http1_server_add(weir_embedded_pipeline(embedded), NULL), 0);
    assert_int_equal(weir_pipeline_add_last(weir_embedded_pipeline(embedded), &hello, NULL), 0);
    return embedded;
}

/* Receives a thousand requests at once, `times` times. */
static void put_thousands(weir_embedded *embedded, int times)
{
    const size_t length = strlen(GET);
    char *all = malloc(length * 1000);

    assert_non_null(all);
    for (size_t i = 0; i < 1000; i++)
        memcpy(all + i * length, GET, length);
    for (int i = 0; i < times; i++)
        assert_int_equal(weir_embedded_write_inbound(embedded, feed_bytes(all, length * 1000)), 0);
    free(all);
}

/* Makes space once and returns the bytes that were sent. */
static size_t take_some(weir_embedded *embedded)
{
    size_t bytes = 0;
    weir_msg *msg;

    weir_embedded_make_space(embedded, 1000);
    while ((msg = weir_embedded_read_outbound(embedded)) != NULL) {
        bytes += weir_msg_size(msg);
        weir_msg_release(msg);
    }
    return bytes;
}

/* A client that does not read its responses: no more requests are read, and then no more bytes. */
TEST(http1_server, stops_reading_while_responses_wait_to_be_sent)
{
    weir_embedded *embedded = open_slow_client();
    size_t bytes = 0;

    put_thousands(embedded, 20);
    assert_true(weir_channel_pending_bytes(weir_embedded_channel(embedded)) < 20000);
    for (int i = 0; i < 4000; i++) {
        bytes += take_some(embedded);
        assert_true(weir_channel_pending_bytes(weir_embedded_channel(embedded)) < 20000);
    }
    assert_int_equal(bytes, 20000 * MANY_RESPONSE);
    weir_embedded_release(embedded);
}

/* The client has sent all its requests and then ended its stream. */
TEST(http1_server, answers_all_requests_of_a_client_that_has_ended_its_stream)
{
    weir_embedded *embedded = open_slow_client();
    size_t bytes = 0;

    put_thousands(embedded, 1);
    weir_embedded_end_input(embedded);
    for (int i = 0; i < 200; i++)
        bytes += take_some(embedded);
    assert_int_equal(bytes, 1000 * MANY_RESPONSE);
    assert_false(is_open(embedded));
    weir_embedded_release(embedded);
}

static int reads_seen;

static void see_read(weir_ctx *ctx, weir_msg *msg)
{
    reads_seen++;
    weir_fire_read(ctx, msg);
}

/* Behind a request that is being answered, each time anew. */
TEST(http1_server, pauses_the_input_when_much_waits)
{
    static const weir_handler observer = {.name = "observer", .read = see_read};
    weir_embedded *embedded = open();
    char *much = calloc(1, 40000);

    memset(much, 'x', 40000 - 1);
    assert_int_equal(weir_pipeline_add_first(weir_embedded_pipeline(embedded), &observer, NULL), 0);
    for (int i = 0; i < 3; i++) {
        reads_seen = 0;
        assert_int_equal(put(embedded, GET), 0);
        assert_int_equal(
            put(embedded, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 79999\r\n\r\n"), 0);
        assert_int_equal(put(embedded, much), 0);
        assert_int_equal(put(embedded, much), 0);
        assert_int_equal(reads_seen, 4);
        assert_int_equal(put(embedded, "x"), 0);
        assert_int_equal(reads_seen, 4);
        respond(embedded, 200, "");
        assert_int_equal(reads_seen, 5);
        respond(embedded, 200, "");
        assert_out(embedded, OK "\r\n" OK "\r\n");
    }
    free(much);
    weir_embedded_release(embedded);
}

/* ---- 100-continue ---- */

#define EXPECT "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nExpect: 100-Continue\r\n\r\n"

TEST(http1_server, continues_when_the_application_says_so)
{
    weir_embedded *embedded = open();
    weir_msg *msg;

    assert_int_equal(put(embedded, EXPECT), 0);
    msg = weir_embedded_read_inbound(embedded);
    assert_true(weir_http_request_expects_continue(weir_http_request_of(msg)));
    weir_msg_release(msg);
    write_head(embedded, 100, 0);
    weir_channel_flush(weir_embedded_channel(embedded));
    assert_out(embedded, "HTTP/1.1 100 Continue\r\n\r\n");
    assert_int_equal(put(embedded, "x"), 0);
    respond(embedded, 200, "");
    assert_out(embedded, OK "\r\n");
    assert_true(is_open(embedded));
    weir_embedded_release(embedded);
}

/* Whether the client sends the content is unknown then. */
TEST(http1_server, closes_if_it_answers_instead_of_continuing)
{
    weir_embedded *embedded = open();

    assert_int_equal(put(embedded, EXPECT), 0);
    respond(embedded, 403, "");
    assert_out(embedded,
               "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    assert_false(is_open(embedded));
    weir_embedded_release(embedded);
}

TEST(http1_server, sends_no_informational_response_to_http_1_0)
{
    weir_embedded *embedded = open();

    assert_int_equal(put(embedded,
                         "POST / HTTP/1.0\r\nContent-Length: 1\r\nExpect: 100-continue\r\n"
                         "\r\nx"),
                     0);
    assert_int_equal(result_of(embedded, weir_http_response_msg(response_of(100, 0))), 0);
    respond(embedded, 200, "");
    assert_out(embedded, OK "Connection: close\r\n\r\n");
    weir_embedded_release(embedded);
}

/* ---- the end ---- */

TEST(http1_server, answers_a_client_that_has_ended_its_stream)
{
    weir_embedded *embedded = open_with(WEIR_HTTP1_OPTIONS(.keep_half_closed = true), true);

    assert_int_equal(put(embedded, GET GET), 0);
    weir_embedded_end_input(embedded);
    assert_get(embedded);
    assert_in(embedded, NULL);
    respond(embedded, 200, "1");
    assert_get(embedded);
    assert_true(is_open(embedded));
    respond(embedded, 200, "2");
    assert_out(embedded, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n1"
                         "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n2");
    assert_false(is_open(embedded));
    weir_embedded_release(embedded);
}

/* Those that are answered at once are; the first one that is not has lost its client. */
TEST(http1_server, abandons_the_request_of_a_client_that_has_ended_its_stream)
{
    weir_embedded *embedded = open_with(NULL, true);

    assert_int_equal(put(embedded, GET GET GET), 0);
    assert_get(embedded);
    respond(embedded, 200, "1");
    assert_get(embedded);
    write_head(embedded, 200, 2);
    weir_embedded_end_input(embedded);
    assert_out(embedded, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n1");
    assert_false(is_open(embedded));
    assert_in(embedded, NULL);
    weir_embedded_release(embedded);
}

static void hang_up(weir_embedded *embedded)
{
    weir_fire_event(weir_pipeline_find(weir_embedded_pipeline(embedded), "first"),
                    weir_event_hangup());
    weir_embedded_run(embedded);
}

/* While its content is not read. */
TEST(http1_server, abandons_the_request_of_a_client_that_hangs_up)
{
    static const char post[] = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\na";

    for (int keeps = 0; keeps < 2; keeps++) {
        weir_embedded *embedded =
            open_with(WEIR_HTTP1_OPTIONS(.keep_half_closed = keeps != 0), false);

        assert_int_equal(weir_pipeline_add_first(weir_embedded_pipeline(embedded), &first, NULL),
                         0);
        hang_up(embedded); /* between requests this means nothing yet */
        assert_int_equal(put(embedded, post), 0);
        assert_in(embedded, "POST / 1.1 {Host: h|Content-Length: 2} 2");
        assert_in(embedded, "(a)");
        hang_up(embedded);
        assert_int_equal(is_open(embedded), keeps);
        weir_embedded_release(embedded);
    }
}

TEST(http1_server, closes_an_idle_connection_with_its_client)
{
    weir_embedded *embedded = open();

    assert_int_equal(put(embedded, GET), 0);
    respond(embedded, 200, "");
    weir_embedded_end_input(embedded);
    assert_false(is_open(embedded));
    weir_embedded_release(embedded);
}

TEST(http1_server, refuses_a_request_that_is_cut_off)
{
    static const char *const cut[] = {"GET / HT", "POST / HTTP/1.1\r\nHost: h\r\n"
                                                  "Content-Length: 2\r\n\r\nx"};

    for (size_t i = 0; i < 2; i++) {
        weir_embedded *embedded = open();
        weir_msg *msg;
        char text[512];

        assert_int_equal(put(embedded, cut[i]), 0);
        weir_embedded_end_input(embedded);
        msg = weir_embedded_read_outbound(embedded);
        assert_non_null(msg);
        http_format(msg, text, sizeof(text));
        weir_msg_release(msg);
        assert_non_null(strstr(text, "(HTTP/1.1 400 Bad Request\r\n"));
        assert_false(is_open(embedded));
        weir_embedded_release(embedded);
    }
}

TEST(http1_server, answers_a_refused_request_and_closes)
{
    weir_embedded *embedded = open();

    assert_int_equal(put(embedded, "GET / HTTP/1.1\r\n\r\n" GET), 0);
    assert_out(embedded, "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\n"
                         "Content-Length: 14\r\nConnection: close\r\n\r\nno Host field\n");
    assert_false(is_open(embedded));
    assert_in(embedded, NULL);
    weir_embedded_release(embedded);
}

TEST(http1_server, sends_no_text_if_a_head_request_is_refused)
{
    weir_embedded *embedded = open();

    assert_int_equal(put(embedded, "HEAD / HTTP/1.1\r\n\r\n"), 0);
    assert_out(embedded, "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\n"
                         "Content-Length: 14\r\nConnection: close\r\n\r\n");
    weir_embedded_release(embedded);
}

#define CHUNKED "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"

TEST(http1_server, answers_if_content_is_malformed_before_the_response)
{
    weir_embedded *embedded = open();

    assert_int_equal(put(embedded, CHUNKED), 0);
    assert_int_equal(put(embedded, "x"), 0);
    assert_out(embedded, "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\n"
                         "Content-Length: 21\r\nConnection: close\r\n\r\nmalformed chunk size\n");
    assert_int_equal(result_of(embedded, weir_http_response_msg(response_of(200, 0))),
                     WEIR_ECLOSED);
    weir_embedded_release(embedded);
}

TEST(http1_server, resets_if_content_is_malformed_after_the_response_has_begun)
{
    weir_embedded *embedded = open();

    assert_int_equal(put(embedded, CHUNKED), 0);
    write_head(embedded, 200, 100);
    weir_channel_flush(weir_embedded_channel(embedded));
    assert_int_equal(put(embedded, "x"), 0);
    assert_out(embedded, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n");
    assert_false(is_open(embedded));
    weir_embedded_release(embedded);
}

/* ---- drain ---- */

static void drain(weir_embedded *embedded)
{
    /* As the group does when it shuts down. */
    weir_fire_draining(weir_pipeline_find(weir_embedded_pipeline(embedded), "first"));
    weir_embedded_run(embedded);
}

static weir_embedded *open_draining(void)
{
    weir_embedded *embedded = open();

    assert_int_equal(weir_pipeline_add_first(weir_embedded_pipeline(embedded), &first, NULL), 0);
    return embedded;
}

TEST(http1_server, closes_idle_connections_when_draining)
{
    weir_embedded *embedded = open_draining();

    assert_int_equal(put(embedded, GET), 0);
    respond(embedded, 200, "");
    drain(embedded);
    assert_false(is_open(embedded));
    weir_embedded_release(embedded);
}

/* Its client has connected in order to send a request, which may be on its way. */
TEST(http1_server, answers_the_first_request_of_a_connection_when_draining)
{
    weir_embedded *embedded = open_draining();

    drain(embedded);
    assert_true(is_open(embedded));
    assert_int_equal(put(embedded, GET), 0);
    assert_get(embedded);
    respond(embedded, 200, "");
    assert_out(embedded, OK "Connection: close\r\n\r\n");
    assert_false(is_open(embedded));
    weir_embedded_release(embedded);
}

TEST(http1_server, waits_for_a_first_request_no_longer_than_for_any_head_when_draining)
{
    weir_embedded *embedded = open_draining();

    weir_embedded_advance(embedded, weir_seconds(10));
    drain(embedded);
    weir_embedded_advance(embedded, weir_seconds(4));
    assert_true(is_open(embedded));
    weir_embedded_advance(embedded, weir_seconds(2));
    assert_out(embedded, "");
    assert_false(is_open(embedded));
    weir_embedded_release(embedded);
}

/* Its response came before its content; the connection would have been kept. */
TEST(http1_server, closes_after_the_content_of_a_rejected_request_when_draining)
{
    weir_embedded *embedded = open_draining();

    assert_int_equal(put(embedded, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\na"), 0);
    assert_in(embedded, "POST / 1.1 {Host: h|Content-Length: 2} 2");
    assert_in(embedded, "(a)");
    respond(embedded, 404, "");
    assert_out(embedded, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
    drain(embedded);
    assert_true(is_open(embedded));
    assert_int_equal(put(embedded, "b" GET), 0);
    assert_in(embedded, "(b)");
    assert_in(embedded, "end");
    assert_in(embedded, NULL);
    assert_false(is_open(embedded));
    weir_embedded_release(embedded);
}

TEST(http1_server, answers_the_request_that_was_read_when_draining)
{
    weir_embedded *embedded = open_draining();

    assert_int_equal(put(embedded, GET), 0);
    drain(embedded);
    assert_true(is_open(embedded));
    respond(embedded, 200, "");
    assert_out(embedded, OK "Connection: close\r\n\r\n");
    assert_false(is_open(embedded));
    weir_embedded_release(embedded);
}

TEST(http1_server, answers_the_head_that_has_begun_when_draining)
{
    weir_embedded *embedded = open_draining();

    assert_int_equal(put(embedded, "GET / HTTP"), 0);
    drain(embedded);
    assert_true(is_open(embedded));
    assert_int_equal(put(embedded, "/1.1\r\nHost: h\r\n\r\n"), 0);
    respond(embedded, 200, "");
    assert_out(embedded, OK "Connection: close\r\n\r\n");
    assert_false(is_open(embedded));
    weir_embedded_release(embedded);
}

TEST(http1_server, ends_a_response_that_had_begun_when_draining)
{
    weir_embedded *embedded = open_draining();

    assert_int_equal(put(embedded, GET), 0);
    write_head(embedded, 200, 1);
    drain(embedded);
    assert_true(is_open(embedded));
    write_text(embedded, "x");
    write_end(embedded);
    assert_out(embedded, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx");
    assert_false(is_open(embedded));
    weir_embedded_release(embedded);
}

/* ---- other protocols ---- */

TEST(http1_server, hands_the_connection_over_after_an_upgrade)
{
    weir_embedded *embedded = open();
    weir_http_response *response = response_of(101, 0);

    assert_int_equal(put(embedded, GET_LINES "Connection: upgrade\r\nUpgrade: x\r\n\r\nfirst"), 0);
    assert_in(embedded, "GET / 1.1 {Host: h|Connection: upgrade|Upgrade: x} 0");
    assert_in(embedded, "end");
    assert_in(embedded, NULL);
    assert_int_equal(
        weir_http_headers_add_text(weir_http_response_headers(response), WEIR_HTTP_UPGRADE, "x"),
        0);
    write_msg(embedded, weir_http_response_msg(response));
    write_end(embedded);
    assert_out(embedded, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n"
                         "Connection: Upgrade\r\n\r\n");
    assert_in(embedded, "(first)");
    assert_int_equal(put(embedded, "second"), 0);
    assert_in(embedded, "(second)");
    write_text(embedded, "out");
    weir_channel_flush(weir_embedded_channel(embedded));
    assert_out(embedded, "out");
    assert_int_equal(weir_pipeline_count(weir_embedded_pipeline(embedded)), 0);
    weir_embedded_release(embedded);
}

TEST(http1_server, hands_the_connection_over_after_connect)
{
    weir_embedded *embedded = open();

    assert_int_equal(put(embedded, "CONNECT x:1 HTTP/1.1\r\nHost: x:1\r\n\r\n"), 0);
    weir_msg_release(weir_embedded_read_inbound(embedded));
    weir_msg_release(weir_embedded_read_inbound(embedded));
    write_head(embedded, 200, 0);
    write_end(embedded);
    assert_out(embedded, "HTTP/1.1 200 OK\r\n\r\n");
    assert_int_equal(put(embedded, "bytes"), 0);
    assert_in(embedded, "(bytes)");
    weir_embedded_release(embedded);
}

/* What follows may be meant for the tunnel. */
TEST(http1_server, reads_no_request_behind_a_connect_that_failed)
{
    weir_embedded *embedded = open();

    assert_int_equal(put(embedded, "CONNECT x:1 HTTP/1.1\r\nHost: x:1\r\n\r\n" GET), 0);
    weir_msg_release(weir_embedded_read_inbound(embedded));
    weir_msg_release(weir_embedded_read_inbound(embedded));
    respond(embedded, 502, "no");
    assert_out(embedded, "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 2\r\n"
                         "Connection: close\r\n\r\nno");
    assert_null(weir_embedded_read_inbound(embedded));
    assert_false(weir_channel_is_open(weir_embedded_channel(embedded)));
    weir_embedded_release(embedded);
}

/* ---- reading on demand, options ---- */

TEST(http1_server, passes_one_message_for_each_request_to_read)
{
    weir_embedded *embedded = open();
    weir_channel *channel = weir_embedded_channel(embedded);

    weir_channel_set_auto_read(channel, false);
    weir_embedded_run(embedded);
    assert_int_equal(put(embedded, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nab" GET),
                     0);
    assert_in(embedded, NULL);
    weir_channel_request_read(channel);
    weir_embedded_run(embedded);
    assert_in(embedded, "POST / 1.1 {Host: h|Content-Length: 2} 2");
    assert_in(embedded, NULL);
    weir_channel_request_read(channel);
    weir_embedded_run(embedded);
    assert_in(embedded, "(ab)");
    assert_in(embedded, NULL);
    weir_channel_request_read(channel);
    weir_embedded_run(embedded);
    assert_in(embedded, "end");
    weir_channel_request_read(channel);
    weir_embedded_run(embedded);
    assert_in(embedded, NULL); /* the response comes first */
    respond(embedded, 200, "");
    assert_in(embedded, GET_MSG);
    assert_in(embedded, NULL);
    weir_channel_set_auto_read(channel, true);
    weir_embedded_run(embedded);
    assert_in(embedded, "end");
    weir_embedded_release(embedded);
}

TEST(http1_server, rejects_invalid_options)
{
    static const weir_http1_options wrong[] = {
        {.size = sizeof(weir_http1_options), .max_start_line = -1},
        {.size = sizeof(weir_http1_options), .max_header_bytes = 1 << 30},
        {.size = sizeof(weir_http1_options), .max_header_fields = 65536},
        {.size = sizeof(weir_http1_options), .max_chunk = -1},
        {.size = sizeof(weir_http1_options), .head_timeout_ns = -2},
        {.size = sizeof(weir_http1_options), .idle_timeout_ns = -2},
        {.size = sizeof(weir_http1_options), .min_rate = -2},
        {.size = sizeof(weir_http1_options), .max_requests = -1},
    };
    weir_embedded *embedded = open();

    log_capture_start();
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_int_equal(weir_http1_server_add(weir_embedded_pipeline(embedded), &wrong[i]),
                         -EINVAL);
        assert_int_equal(weir_http1_client_add(weir_embedded_pipeline(embedded), &wrong[i]),
                         -EINVAL);
    }
    weir_embedded_release(embedded);
}
