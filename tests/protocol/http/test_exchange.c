/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exchanges on an embedded channel, without a codec: responses, content, and their ends.
 */
#include <weir/http_server.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <weir/composite.h>
#include <weir/error.h>

#include "support/child.h"
#include "support/executor/log_capture.h"
#include "support/memory.h"
#include "support/protocol/http/exchange_fixture.h"

/* What the handlers of a test have seen. */
struct seen {
    weir_http_exchange *exchange; /* retained */
    int err[4];
    int calls;
    char text[512]; /* content; "." for the end, "!" for an error */
    const weir_http_headers *trailers;
    int last_err;
    int lost;
    int writable;
};

/* ---- responses in one call ---- */

static void say_hello(weir_http_exchange *exchange, void *user_data)
{
    (void)user_data;
    assert_int_equal(weir_http_respond_text(exchange, 200, "hello"), 0);
}

static void say_json(weir_http_exchange *exchange, void *user_data)
{
    weir_buf *json = NULL;

    (void)user_data;
    assert_int_equal(weir_buf_create_from("{}", 2, &json), 0);
    assert_int_equal(weir_http_respond_json(exchange, 201, json), 0);
}

static void say_bytes(weir_http_exchange *exchange, void *user_data)
{
    (void)user_data;
    assert_int_equal(weir_http_respond_bytes(exchange, 200, "image/x", "12", 2), 0);
}

static void redirect(weir_http_exchange *exchange, void *user_data)
{
    (void)user_data;
    assert_int_equal(weir_http_respond_redirect(exchange, 200, "/x"), -EINVAL);
    assert_int_equal(weir_http_respond_redirect(exchange, 303, "/x"), 0);
}

static void say_error(weir_http_exchange *exchange, void *user_data)
{
    (void)user_data;
    assert_int_equal(weir_http_respond_error(exchange, 418, "short and stout"), 0);
}

static void say_nothing(weir_http_exchange *exchange, void *user_data)
{
    (void)user_data;
    assert_int_equal(weir_http_respond(exchange, 204, NULL), 0);
}

static void say_typed(weir_http_exchange *exchange, void *user_data)
{
    weir_http_headers *headers = weir_http_exchange_headers(exchange);

    (void)user_data;
    assert_int_equal(weir_http_headers_add_text(headers, WEIR_HTTP_CONTENT_TYPE, "text/html"), 0);
    assert_int_equal(weir_http_headers_add_text(headers, WEIR_HTTP_ETAG, "\"1\""), 0);
    assert_int_equal(weir_http_respond_text(exchange, 200, "<p>"), 0);
}

static void say_composite(weir_http_exchange *exchange, void *user_data)
{
    weir_composite *body = NULL;
    weir_buf *part = NULL;

    (void)user_data;
    assert_int_equal(weir_composite_create(0, &body), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(weir_buf_create_from("abc", 3, &part), 0);
        assert_int_equal(weir_composite_add(body, weir_buf_msg(part)), 0);
    }
    assert_int_equal(weir_http_respond(exchange, 200, weir_composite_msg(body)), 0);
}

TEST(exchange, responds_in_one_call)
{
    static const weir_http_route routes[] = {{"GET", "/text", say_hello},
                                             {"GET", "/json", say_json},
                                             {"GET", "/bytes", say_bytes},
                                             {"GET", "/redirect", redirect},
                                             {"GET", "/error", say_error},
                                             {"GET", "/nothing", say_nothing},
                                             {"GET", "/typed", say_typed},
                                             {"GET", "/composite", say_composite},
                                             {0}};
    static const char *const rows[][2] = {
        {"/text", "200(5) | hello | end"},
        {"/json", "201(2) Content-Type: application/json | {} | end"},
        {"/bytes", "200(2) Content-Type: image/x | 12 | end"},
        {"/redirect", "303 Location: /x | end"},
        {"/error", "418(16) | short and stout\n | end"},
        {"/nothing", "204 | end"},
        {"/typed", "200(3) Content-Type: text/html ETag: \"1\" | <p> | end"},
        {"/composite", "200(6) | ? | end"},
    };
    weir_embedded *embedded = exchange_open(routes);

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        exchange_put(embedded, "GET", rows[i][0]);
        assert_exchange_sent(embedded, rows[i][1]);
    }
    weir_embedded_release(embedded);
}

static void misuse(weir_http_exchange *exchange, void *user_data)
{
    weir_buf *buf = NULL;

    (void)user_data;
    assert_non_null(weir_http_exchange_headers(exchange));
    assert_int_equal(weir_http_respond(exchange, 199, NULL), -EINVAL);
    assert_int_equal(weir_http_respond(exchange, 600, NULL), -EINVAL);
    assert_int_equal(weir_http_exchange_begin(exchange, 200, -2), -EINVAL);
    assert_int_equal(weir_http_exchange_end(exchange, NULL), -EINVAL);
    assert_int_equal(weir_buf_create_from("x", 1, &buf), 0);
    assert_int_equal(weir_http_exchange_write(exchange, weir_buf_msg(buf), NULL), -EINVAL);
    assert_int_equal(weir_http_exchange_begin(exchange, 200, WEIR_HTTP_UNKNOWN_LENGTH), 0);
    assert_null(weir_http_exchange_headers(exchange));
    assert_int_equal(weir_http_respond_text(exchange, 200, "x"), -EALREADY);
    assert_int_equal(weir_http_respond_redirect(exchange, 301, "x"), -EALREADY);
    assert_int_equal(weir_http_exchange_begin(exchange, 200, 0), -EALREADY);
    assert_int_equal(weir_http_exchange_end(exchange, NULL), 0);
    assert_int_equal(weir_http_exchange_end(exchange, NULL), -EALREADY);
    assert_int_equal(weir_buf_create_from("x", 1, &buf), 0);
    assert_int_equal(weir_http_exchange_write(exchange, weir_buf_msg(buf), NULL), -EALREADY);
    weir_http_exchange_abort(exchange); /* ignored: the response has ended */
}

TEST(exchange, reports_misuse)
{
    static const weir_http_route routes[] = {{"GET", "/", misuse}, {0}};
    weir_embedded *embedded = exchange_open(routes);

    exchange_put(embedded, "GET", "/");
    assert_exchange_sent(embedded, "200(?) | end");
    assert_true(weir_channel_is_open(weir_embedded_channel(embedded)));
    weir_embedded_release(embedded);
}

/* ---- later responses ---- */

static void keep(weir_http_exchange *exchange, void *user_data)
{
    struct seen *seen = user_data;

    seen->calls++;
    seen->exchange = weir_http_exchange_retain(exchange);
}

#define KEEP(seen)                     \
    (weir_http_route[])                \
    {                                  \
        {"*", "/{path*}", keep, seen}, \
        {                              \
            0                          \
        }                              \
    }

static void release(struct seen *seen)
{
    weir_http_exchange_release(seen->exchange);
    seen->exchange = NULL;
}

TEST(exchange, is_answered_later)
{
    struct seen seen = {0};
    weir_http_exchange *first;
    weir_embedded *embedded = exchange_open(KEEP(&seen));

    exchange_put(embedded, "GET", "/a");
    assert_exchange_sent(embedded, "");
    assert_true(weir_http_exchange_channel(seen.exchange) == weir_embedded_channel(embedded));
    assert_int_equal(weir_http_respond_text(seen.exchange, 200, "late"), 0);
    assert_exchange_sent(embedded, "200(4) | late | end");
    first = seen.exchange;
    exchange_put(embedded, "GET", "/b"); /* while the first one is still referenced */
    assert_int_equal(weir_http_respond_text(seen.exchange, 200, "second"), 0);
    assert_exchange_sent(embedded, "200(6) | second | end");
    weir_http_exchange_release(first);
    release(&seen);
    assert_int_equal(seen.calls, 2);
    weir_embedded_release(embedded);
}

static void add_text(struct seen *seen, weir_http_exchange *exchange, const char *text, int err)
{
    weir_buf *buf = NULL;

    assert_int_equal(weir_buf_create_from(text, strlen(text), &buf), 0);
    assert_int_equal(weir_http_exchange_write(exchange, weir_buf_msg(buf), NULL), err);
    (void)seen;
}

TEST(exchange, streams_a_response)
{
    struct seen seen = {0};
    weir_embedded *embedded = exchange_open(KEEP(&seen));
    weir_http_end *end = NULL;

    exchange_put(embedded, "GET", "/");
    assert_int_equal(weir_http_exchange_begin(seen.exchange, 200, 6), 0);
    assert_exchange_sent(embedded, "200(6)");
    add_text(&seen, seen.exchange, "abc", 0);
    assert_exchange_sent(embedded, "abc");
    add_text(&seen, seen.exchange, "def", 0);
    assert_int_equal(weir_http_end_create(&end), 0);
    assert_int_equal(weir_http_exchange_end(seen.exchange, end), 0);
    assert_exchange_sent(embedded, "def | end");
    release(&seen);

    exchange_put(embedded, "HEAD", "/");
    assert_int_equal(weir_http_exchange_begin(seen.exchange, 200, 6), 0);
    add_text(&seen, seen.exchange, "abcdef", 0);
    assert_int_equal(weir_http_exchange_end(seen.exchange, NULL), 0);
    assert_exchange_sent(embedded, "200(6) | end");
    release(&seen);
    weir_embedded_release(embedded);
}

TEST(exchange, a_write_completes_its_promise)
{
    struct seen seen = {0};
    weir_embedded *embedded = exchange_open(KEEP(&seen));
    weir_promise *done[2] = {NULL, NULL};
    weir_buf *buf = NULL;

    for (int i = 0; i < 2; i++)
        assert_int_equal(weir_promise_create(NULL, &done[i]), 0);
    exchange_put(embedded, "GET", "/");
    assert_int_equal(weir_http_exchange_begin(seen.exchange, 200, WEIR_HTTP_UNKNOWN_LENGTH), 0);
    assert_int_equal(weir_buf_create_from("x", 1, &buf), 0);
    assert_int_equal(weir_http_exchange_write(seen.exchange, weir_buf_msg(buf), done[0]), 0);
    assert_int_equal(weir_promise_result(done[0]), 0);
    (void)weir_embedded_finish(embedded);
    assert_int_equal(weir_buf_create_from("x", 1, &buf), 0);
    assert_int_equal(weir_http_exchange_write(seen.exchange, weir_buf_msg(buf), done[1]),
                     WEIR_ECLOSED);
    assert_int_equal(weir_promise_result(done[1]), WEIR_ECLOSED);
    for (int i = 0; i < 2; i++)
        weir_promise_release(done[i]);
    release(&seen);
    weir_embedded_release(embedded);
}

#ifndef NDEBUG
static void release_what_is_borrowed(weir_http_exchange *exchange, void *user_data)
{
    (void)user_data;
    weir_http_exchange_release(exchange);
}

static void release_in_the_handler(void)
{
    const weir_http_route routes[] = {{"GET", "/", release_what_is_borrowed}, {0}};

    exchange_put(exchange_open(routes), "GET", "/");
}

static void release_twice(void)
{
    struct seen seen = {0};
    weir_embedded *embedded = exchange_open(KEEP(&seen));

    exchange_put_head(embedded, "GET", "/", WEIR_HTTP_UNKNOWN_LENGTH, false);
    exchange_put_end(embedded);
    (void)weir_http_respond_text(seen.exchange, 200, "x");
    weir_http_exchange_release(seen.exchange);
    weir_http_exchange_release(seen.exchange);
}

TEST(exchange, released_too_often_fails_an_assertion)
{
    assert_true(child_dies_with_output(release_in_the_handler, "a handler borrows its exchange"));
    assert_true(child_dies_with_output(release_twice, "released more often than retained"));
}
#endif

/* ---- responses that never come ---- */

static void ignore(weir_http_exchange *exchange, void *user_data)
{
    (void)exchange;
    (void)user_data;
}

TEST(exchange, that_is_dropped_unanswered_is_a_500)
{
    struct seen seen = {0};
    const weir_http_route routes[] = {
        {"GET", "/ignored/{id}", ignore}, {"GET", "/kept", keep, &seen}, {0}};
    weir_embedded *embedded = exchange_open(routes);

    log_capture_start();
    exchange_put(embedded, "GET", "/ignored/7");
    assert_exchange_sent(embedded, "500(22) | Internal Server Error\n | end");
    assert_int_equal(log_capture_count(WEIR_LOG_WARN), 1);
    assert_log_contains("without a response");
    exchange_put(embedded, "GET", "/kept");
    assert_exchange_sent(embedded, "");
    release(&seen);
    assert_exchange_sent(embedded, "500(22) | Internal Server Error\n | end");
    assert_int_equal(log_capture_count(WEIR_LOG_WARN), 2);
    weir_embedded_release(embedded);
}

/* Each request could be a line in the log otherwise. */
TEST(exchange, that_fails_does_not_fill_the_log)
{
    weir_group *ended = NULL;
    const weir_http_route routes[] = {
        {"GET", "/ignored", ignore}, {"GET", "/ended", ignore, .group = &ended}, {0}};
    weir_embedded *embedded;

    assert_int_equal(
        weir_group_create(WEIR_GROUP_OPTIONS(.threads = 1, .io = WEIR_IO_NONE), &ended), 0);
    assert_int_equal(weir_group_shutdown(ended, 0, 0), 0);
    assert_int_equal(weir_group_await_termination(ended, weir_seconds(10)), 0);
    embedded = exchange_open(routes);
    log_capture_start();
    for (int i = 0; i < 100; i++) {
        exchange_put(embedded, "GET", "/ignored");
        assert_exchange_sent(embedded, "500(22) | Internal Server Error\n | end");
    }
    assert_in_range(log_capture_count(WEIR_LOG_WARN), 10, 20); /* in one or two periods */
    for (int i = 0; i < 100; i++) {
        exchange_put(embedded, "GET", "/ended");
        assert_exchange_sent(embedded, "503(20) | Service Unavailable\n | end");
    }
    assert_in_range(log_capture_count(WEIR_LOG_WARN), 20, 40);
    weir_embedded_release(embedded);
    weir_group_release(ended);
}

TEST(exchange, that_is_dropped_before_its_end_is_reset)
{
    struct seen seen = {0};
    weir_embedded *embedded = exchange_open(KEEP(&seen));

    log_capture_start();
    exchange_put(embedded, "GET", "/");
    assert_int_equal(weir_http_exchange_begin(seen.exchange, 200, 6), 0);
    release(&seen);
    assert_log_contains("without the end of its response");
    assert_false(weir_channel_is_open(weir_embedded_channel(embedded)));
    weir_embedded_release(embedded);
}

TEST(exchange, aborts)
{
    struct seen seen = {0};
    weir_embedded *embedded = exchange_open(KEEP(&seen));

    exchange_put(embedded, "GET", "/");
    weir_http_exchange_abort(seen.exchange);
    assert_false(weir_channel_is_open(weir_embedded_channel(embedded)));
    assert_int_equal(weir_http_respond(seen.exchange, 200, NULL), -EALREADY);
    weir_embedded_run(embedded);
    assert_int_equal(weir_http_respond(seen.exchange, 200, NULL), WEIR_ECLOSED);
    release(&seen);
    weir_embedded_release(embedded);
}

/* ---- content ---- */

static void repeat_content(weir_http_exchange *exchange, void *user_data)
{
    weir_buf *content = weir_http_exchange_content(exchange);

    (void)user_data;
    assert_non_null(content);
    assert_int_equal(weir_http_respond_bytes(exchange, 200, "text/plain", weir_buf_bytes(content),
                                             weir_buf_readable(content)),
                     0);
}

static const weir_http_route collecting[] = {
    {"POST", "/", repeat_content}, {"POST", "/ten", repeat_content, .max_content = 10}, {0}};

TEST(exchange, collects_content)
{
    weir_embedded *embedded = exchange_open(collecting);

    exchange_put(embedded, "POST", "/");
    assert_exchange_sent(embedded, "200 | end");
    exchange_put_head(embedded, "POST", "/", 3, false);
    exchange_put_content(embedded, "abc");
    assert_exchange_sent(embedded, "");
    exchange_put_end(embedded);
    assert_exchange_sent(embedded, "200(3) | abc | end");
    for (int64_t length = -1; length < 100; length += 10) {
        exchange_put_head(embedded, "POST", "/", length, false);
        for (int i = 0; i < 3; i++)
            exchange_put_content(embedded, "abc");
        exchange_put_end(embedded);
        assert_exchange_sent(embedded, "200(9) | abcabcabc | end");
    }
    weir_embedded_release(embedded);
}

TEST(exchange, collects_composites)
{
    weir_embedded *embedded = exchange_open(collecting);
    weir_composite *composite = NULL;
    weir_buf *part = NULL;

    for (int round = 0; round < 2; round++) {
        exchange_put_head(embedded, "POST", "/", -1, false);
        if (round == 1)
            exchange_put_content(embedded, "0");
        assert_int_equal(weir_composite_create(0, &composite), 0);
        for (int i = 0; i < 2; i++) {
            assert_int_equal(weir_buf_create_from(i == 0 ? "abc" : "def", 3, &part), 0);
            assert_int_equal(weir_composite_add(composite, weir_buf_msg(part)), 0);
        }
        assert_int_equal(weir_embedded_write_inbound(embedded, weir_composite_msg(composite)), 0);
        exchange_put_content(embedded, "g");
        exchange_put_end(embedded);
        assert_exchange_sent(embedded,
                             round == 0 ? "200(7) | abcdefg | end" : "200(8) | 0abcdefg | end");
    }
    weir_embedded_release(embedded);
}

TEST(exchange, refuses_content_above_the_limit)
{
    static const char refused[] = "413(18) close | Content Too Large\n | end";
    weir_embedded *embedded = exchange_open(collecting);

    exchange_put_head(embedded, "POST", "/ten", 11, true); /* without reading it */
    assert_exchange_sent(embedded, refused);
    exchange_put_content(embedded, "0123456789a");
    exchange_put_end(embedded);
    assert_exchange_sent(embedded, "");

    exchange_put_head(embedded, "POST", "/ten", WEIR_HTTP_UNKNOWN_LENGTH, false);
    exchange_put_content(embedded, "0123456789");
    assert_exchange_sent(embedded, "");
    exchange_put_content(embedded, "a");
    assert_exchange_sent(embedded, refused);
    exchange_put_content(embedded, "b");
    exchange_put_end(embedded);

    exchange_put_head(embedded, "POST", "/ten", 10, false);
    exchange_put_content(embedded, "0123456789");
    exchange_put_end(embedded);
    assert_exchange_sent(embedded, "200(10) | 0123456789 | end");
    exchange_put_head(embedded, "POST", "/", ((int64_t)1 << 20) + 1, false); /* the default */
    assert_exchange_sent(embedded, refused);
    weir_embedded_release(embedded);
}

TEST(exchange, asks_a_waiting_client_to_continue)
{
    weir_embedded *embedded = exchange_open(collecting);

    exchange_put_head(embedded, "POST", "/", 3, true);
    assert_exchange_sent(embedded, "100");
    exchange_put_content(embedded, "abc");
    exchange_put_end(embedded);
    assert_exchange_sent(embedded, "200(3) | abc | end");
    exchange_put_head(embedded, "POST", "/none", 3, true); /* is not asked */
    assert_exchange_sent(embedded, "404(10) close | Not Found\n | end");
    weir_embedded_release(embedded);
}

/* ---- streamed content ---- */

static void on_content(weir_http_exchange *exchange, weir_msg *msg, int err, void *user_data)
{
    struct seen *seen = user_data;
    size_t length = strlen(seen->text);
    weir_buf *buf = weir_buf_of(msg);

    assert_true(exchange == seen->exchange);
    if (buf != NULL)
        snprintf(seen->text + length, sizeof(seen->text) - length, "%.*s",
                 (int)weir_buf_readable(buf), (const char *)weir_buf_bytes(buf));
    else
        snprintf(seen->text + length, sizeof(seen->text) - length, err < 0 ? "!" : ".");
    seen->trailers = weir_http_exchange_trailers(exchange);
    seen->last_err = err;
    weir_msg_release(msg);
}

static void stream(weir_http_exchange *exchange, void *user_data)
{
    struct seen *seen = user_data;

    keep(exchange, seen);
    weir_http_exchange_on_content(exchange, on_content, seen);
    assert_null(weir_http_exchange_content(exchange));
}

#define STREAM(seen, limit)                                                   \
    (weir_http_route[])                                                       \
    {                                                                         \
        {"POST", "/", stream, seen, .streaming = true, .max_content = limit}, \
        {                                                                     \
            0                                                                 \
        }                                                                     \
    }

TEST(exchange, streams_content_on_demand)
{
    struct seen seen = {0};
    weir_embedded *embedded = exchange_open(STREAM(&seen, 0));

    for (int round = 0; round < 2; round++) {
        seen.text[0] = '\0';
        exchange_put_head(embedded, "POST", "/", 6, true);
        exchange_put_content(embedded, "abc");
        exchange_put_content(embedded, "def");
        exchange_put_end(embedded);
        assert_exchange_sent(embedded, "");
        assert_string_equal(seen.text, "");
        weir_http_exchange_read(seen.exchange);
        weir_embedded_run(embedded);
        assert_string_equal(seen.text, "abc");
        assert_exchange_sent(embedded, "100");
        weir_http_exchange_read(seen.exchange);
        weir_embedded_run(embedded);
        assert_string_equal(seen.text, "abcdef");
        weir_http_exchange_read(seen.exchange);
        weir_embedded_run(embedded);
        assert_string_equal(seen.text, "abcdef.");
        weir_http_exchange_read(seen.exchange); /* ignored */
        assert_true(weir_channel_auto_read(weir_embedded_channel(embedded)));
        assert_int_equal(weir_http_respond_text(seen.exchange, 200, "ok"), 0);
        assert_exchange_sent(embedded, "200(2) | ok | end");
        release(&seen);
    }
    weir_embedded_release(embedded);
}

static void put_trailers(weir_embedded *embedded, const char *value)
{
    weir_http_end *end = NULL;

    assert_int_equal(weir_http_end_create(&end), 0);
    assert_int_equal(weir_http_headers_add_text(weir_http_end_trailers(end), WEIR_HTTP_ETAG, value),
                     0);
    assert_int_equal(weir_embedded_write_inbound(embedded, weir_http_end_msg(end)), 0);
}

static void keep_trailers(weir_http_exchange *exchange, void *user_data)
{
    struct seen *seen = user_data;

    keep(exchange, seen);
    seen->trailers = weir_http_exchange_trailers(exchange);
}

static void assert_etag(const struct seen *seen, const char *value)
{
    assert_non_null(seen->trailers);
    assert_true(weir_span_equal(weir_http_headers_get(seen->trailers, WEIR_HTTP_ETAG),
                                weir_span_of_text(value)));
}

TEST(exchange, has_trailers_when_its_content_has_ended)
{
    struct seen seen = {0};
    const weir_http_route routes[] = {
        {"POST", "/", stream, &seen, .streaming = true}, {"POST", "/a", keep_trailers, &seen}, {0}};
    weir_embedded *embedded = exchange_open(routes);

    exchange_put_head(embedded, "POST", "/", -1, false);
    exchange_put_content(embedded, "abc");
    put_trailers(embedded, "one");
    weir_http_exchange_read(seen.exchange);
    weir_embedded_run(embedded);
    assert_string_equal(seen.text, "abc");
    assert_null(seen.trailers);
    weir_http_exchange_read(seen.exchange);
    weir_embedded_run(embedded);
    assert_string_equal(seen.text, "abc.");
    assert_etag(&seen, "one");
    assert_int_equal(weir_http_respond(seen.exchange, 200, NULL), 0);
    assert_etag(&seen, "one"); /* while it is retained */
    release(&seen);
    for (int round = 0; round < 2; round++) {
        exchange_put_head(embedded, "POST", "/a", -1, false);
        exchange_put_content(embedded, "abc");
        if (round == 0)
            put_trailers(embedded, "two");
        else
            exchange_put_end(embedded);
        if (round == 0)
            assert_etag(&seen, "two");
        else
            assert_null(seen.trailers);
        assert_int_equal(weir_http_respond(seen.exchange, 200, NULL), 0);
        release(&seen);
    }
    assert_exchange_sent(embedded, "200 | end | 200 | end | 200 | end");
    exchange_put_head(embedded, "POST", "/a", -1, false);
    put_trailers(embedded, "three"); /* whose exchange is never answered */
    release(&seen);
    exchange_put_head(embedded, "POST", "/", -1, false);
    assert_int_equal(weir_http_respond(seen.exchange, 200, NULL), 0);
    release(&seen);
    put_trailers(embedded, "four"); /* of a request that is discarded */
    assert_exchange_sent(embedded, "500(22) | Internal Server Error\n | end | 200 | end");
    weir_embedded_release(embedded);
}

/* Clients take a final status for status 100, or do not wait for one. */
TEST(exchange, does_not_ask_to_continue_behind_a_final_response)
{
    struct seen seen = {0};
    weir_embedded *embedded = exchange_open(STREAM(&seen, 0));

    exchange_put_head(embedded, "POST", "/", 3, true);
    assert_int_equal(weir_http_exchange_begin(seen.exchange, 200, WEIR_HTTP_UNKNOWN_LENGTH), 0);
    weir_http_exchange_read(seen.exchange);
    assert_exchange_sent(embedded, "200(?)");
    exchange_put_content(embedded, "abc");
    weir_embedded_run(embedded);
    assert_string_equal(seen.text, "abc");
    assert_int_equal(weir_http_exchange_end(seen.exchange, NULL), 0);
    assert_exchange_sent(embedded, "end");
    release(&seen);
    weir_embedded_release(embedded);
}

TEST(exchange, discards_a_small_rest_after_an_early_response)
{
    struct seen seen = {0};
    weir_embedded *embedded = exchange_open(STREAM(&seen, 0));

    for (int round = 0; round < 2; round++) {
        seen.text[0] = '\0';
        exchange_put_head(embedded, "POST", "/", 6, false);
        assert_int_equal(weir_http_respond_text(seen.exchange, 200, "enough"), 0);
        assert_exchange_sent(embedded, "200(6) | enough | end");
        weir_embedded_run(embedded);
        assert_string_equal(seen.text, "!");
        assert_int_equal(seen.last_err, WEIR_ECANCELED);
        exchange_put_content(embedded, "abcdef");
        exchange_put_end(embedded);
        assert_string_equal(seen.text, "!");
        release(&seen);
    }
    assert_true(weir_channel_is_open(weir_embedded_channel(embedded)));
    weir_embedded_release(embedded);
}

TEST(exchange, does_not_read_a_large_rest)
{
    struct seen seen = {0};
    weir_embedded *embedded = exchange_open(STREAM(&seen, 0));
    weir_buf *big = NULL;

    exchange_put_head(embedded, "POST", "/", (64 << 10) + 1, false);
    assert_int_equal(weir_http_respond_text(seen.exchange, 200, "x"), 0);
    release(&seen);
    assert_exchange_sent(embedded, "200(1) close | x | end");
    weir_embedded_release(embedded);

    embedded = exchange_open(STREAM(&seen, 0)); /* the length is unknown: it is found out */
    exchange_put_head(embedded, "POST", "/", WEIR_HTTP_UNKNOWN_LENGTH, false);
    assert_int_equal(weir_http_respond_text(seen.exchange, 200, "x"), 0);
    release(&seen);
    assert_exchange_sent(embedded, "200(1) | x | end");
    for (int i = 0; i < 2; i++) {
        assert_true(weir_channel_is_open(weir_embedded_channel(embedded)));
        assert_int_equal(weir_buf_create(64 << 10, 0, &big), 0);
        assert_int_equal(weir_buf_write_fill(big, 'x', 64 << 10), 0);
        (void)weir_embedded_write_inbound(embedded, weir_buf_msg(big));
    }
    assert_false(weir_channel_is_open(weir_embedded_channel(embedded)));
    weir_embedded_release(embedded);
}

/* What was read before the response is not a part of the rest. */
TEST(exchange, discards_a_small_rest_of_much_content)
{
    static const int64_t lengths[] = {70 << 10, WEIR_HTTP_UNKNOWN_LENGTH};
    struct seen seen = {0};
    weir_embedded *embedded = exchange_open(STREAM(&seen, 0));
    weir_buf *big = NULL;

    for (size_t i = 0; i < 2; i++) {
        exchange_put_head(embedded, "POST", "/", lengths[i], false);
        weir_http_exchange_read(seen.exchange);
        for (int piece = 0; piece < 2; piece++) {
            size_t size = piece == 0 ? 60 << 10 : 10 << 10;

            assert_int_equal(weir_buf_create(size, 0, &big), 0);
            assert_int_equal(weir_buf_write_fill(big, 'x', size), 0);
            (void)weir_embedded_write_inbound(embedded, weir_buf_msg(big));
            if (piece == 0)
                assert_int_equal(weir_http_respond_text(seen.exchange, 200, "ok"), 0);
        }
        exchange_put_end(embedded);
        assert_exchange_sent(embedded, "200(2) | ok | end");
        assert_true(weir_channel_is_open(weir_embedded_channel(embedded)));
        release(&seen);
        seen.text[0] = '\0';
    }
    weir_embedded_release(embedded);
}

TEST(exchange, limits_streamed_content)
{
    struct seen seen = {0};
    weir_embedded *embedded = exchange_open(STREAM(&seen, 5));

    exchange_put_head(embedded, "POST", "/", 6, false);
    assert_int_equal(seen.calls, 0);
    assert_exchange_sent(embedded, "413(18) close | Content Too Large\n | end");
    weir_embedded_release(embedded);

    embedded = exchange_open(STREAM(&seen, 5));
    exchange_put_head(embedded, "POST", "/", WEIR_HTTP_UNKNOWN_LENGTH, false);
    exchange_put_content(embedded, "abc");
    exchange_put_content(embedded, "def");
    for (int i = 0; i < 2; i++) {
        weir_http_exchange_read(seen.exchange);
        weir_embedded_run(embedded);
    }
    assert_exchange_sent(embedded, "413(18) close | Content Too Large\n | end");
    assert_string_equal(seen.text, "abc!");
    assert_int_equal(seen.last_err, WEIR_ETOOLONG);
    assert_int_equal(weir_http_respond(seen.exchange, 200, NULL), -EALREADY);
    release(&seen);
    weir_embedded_release(embedded);
}

/* ---- the connection ---- */

static void on_lost(weir_http_exchange *exchange, void *user_data)
{
    struct seen *seen = user_data;

    assert_true(exchange == seen->exchange);
    seen->lost++;
}

static void on_writable(weir_http_exchange *exchange, void *user_data)
{
    struct seen *seen = user_data;

    assert_true(exchange == seen->exchange);
    seen->writable++;
}

TEST(exchange, notices_a_lost_connection)
{
    struct seen seen = {0};
    weir_embedded *embedded = exchange_open(STREAM(&seen, 0));

    exchange_put_head(embedded, "POST", "/", 6, false);
    weir_http_exchange_on_lost(seen.exchange, on_lost, &seen);
    weir_http_exchange_on_lost(seen.exchange, on_lost, &seen); /* replaces the first */
    assert_int_equal(seen.lost, 0);
    (void)weir_embedded_finish(embedded);
    weir_embedded_run(embedded);
    assert_int_equal(seen.lost, 1);
    assert_string_equal(seen.text, "!");
    assert_int_equal(seen.last_err, WEIR_ECLOSED);
    assert_true(weir_http_exchange_is_writable(seen.exchange)); /* so that it is noticed */
    assert_int_equal(weir_http_respond_text(seen.exchange, 200, "x"), WEIR_ECLOSED);
    weir_http_exchange_on_lost(seen.exchange, on_lost, &seen); /* it is already */
    weir_http_exchange_on_writable(seen.exchange, on_writable, &seen);
    weir_embedded_run(embedded);
    assert_int_equal(seen.lost, 2);
    assert_int_equal(seen.writable, 1);
    weir_http_exchange_read(seen.exchange);
    release(&seen);
    weir_embedded_release(embedded);
}

TEST(exchange, a_released_or_answered_exchange_is_not_lost)
{
    struct seen seen = {0};
    weir_embedded *embedded = exchange_open(KEEP(&seen));

    log_capture_start();
    exchange_put(embedded, "GET", "/");
    weir_http_exchange_on_lost(seen.exchange, on_lost, &seen);
    release(&seen); /* answered with 500 */
    exchange_put(embedded, "GET", "/");
    weir_http_exchange_on_lost(seen.exchange, on_lost, &seen);
    assert_int_equal(weir_http_respond_text(seen.exchange, 200, "x"), 0);
    (void)weir_embedded_finish(embedded);
    weir_embedded_run(embedded);
    release(&seen);
    assert_int_equal(seen.lost, 0);
    weir_embedded_release(embedded);
}

TEST(exchange, a_connection_may_end_before_the_content)
{
    weir_embedded *embedded = exchange_open(collecting);

    exchange_put_head(embedded, "POST", "/", 6, false);
    exchange_put_content(embedded, "abc");
    weir_embedded_release(embedded); /* nothing leaks */
}

TEST(exchange, waits_for_a_slow_client)
{
    struct seen seen = {0};
    weir_embedded *embedded = NULL;
    weir_http_router *router = NULL;
    weir_buf *big = NULL;

    assert_int_equal(weir_http_router_create(KEEP(&seen), &router), 0);
    assert_int_equal(weir_embedded_create(WEIR_EMBEDDED_OPTIONS(.socket_space = 1000), &embedded),
                     0);
    assert_int_equal(weir_http_router_add(weir_embedded_pipeline(embedded), router, 0), 0);
    weir_http_router_release(router);
    exchange_put(embedded, "GET", "/");
    assert_int_equal(weir_http_exchange_begin(seen.exchange, 200, WEIR_HTTP_UNKNOWN_LENGTH), 0);
    weir_http_exchange_on_writable(seen.exchange, on_writable, &seen);
    weir_embedded_run(embedded);
    assert_int_equal(seen.writable, 1); /* it is */
    assert_true(weir_http_exchange_is_writable(seen.exchange));
    assert_int_equal(weir_buf_create(100 << 10, 0, &big), 0);
    assert_int_equal(weir_buf_write_fill(big, 'x', 100 << 10), 0);
    assert_int_equal(weir_http_exchange_write(seen.exchange, weir_buf_msg(big), NULL), 0);
    assert_false(weir_http_exchange_is_writable(seen.exchange));
    weir_http_exchange_on_writable(seen.exchange, on_writable, &seen);
    weir_embedded_run(embedded);
    assert_int_equal(seen.writable, 1);
    weir_embedded_make_space(embedded, 1 << 20);
    weir_embedded_run(embedded);
    assert_int_equal(seen.writable, 2);
    weir_http_exchange_on_writable(seen.exchange, on_writable, &seen);
    weir_http_exchange_on_writable(seen.exchange, NULL, NULL);
    weir_embedded_run(embedded);
    assert_int_equal(seen.writable, 2);
    assert_int_equal(weir_http_exchange_end(seen.exchange, NULL), 0);
    release(&seen);
    weir_embedded_release(embedded);
}

/* ---- flushes ---- */

TEST(exchange, flushes_each_response)
{
    struct seen seen = {0};
    const weir_http_route routes[] = {{"GET", "/", say_hello}, {"GET", "/later", keep, &seen}, {0}};
    weir_embedded *embedded = exchange_open(routes);
    weir_http_request *request = NULL;

    for (int i = 0; i < 3; i++) {
        assert_int_equal(weir_http_request_create("GET", "/", &request), 0);
        assert_int_equal(weir_embedded_write_one_inbound(embedded, weir_http_request_msg(request)),
                         0);
        assert_int_equal(weir_embedded_write_one_inbound(embedded, weir_http_end_static()), 0);
    }
    exchange_put(embedded, "GET", "/later");
    assert_exchange_sent(embedded, "200(5) | hello | end | 200(5) | hello | end | "
                                   "200(5) | hello | end");
    assert_int_equal(weir_http_respond_text(seen.exchange, 200, "x"), 0);
    assert_exchange_sent(embedded, "200(1) | x | end"); /* at once */
    release(&seen);
    weir_embedded_release(embedded);
}

/* ---- the query string ---- */

static void ask_query(weir_http_exchange *exchange, void *user_data)
{
    weir_span a = weir_http_exchange_query(exchange, "a"),
              b = weir_http_exchange_query(exchange, "b");

    (void)user_data;
    assert_true(weir_span_equal(a, weir_span_of_text("1")));
    assert_true(weir_span_equal(b, weir_span_of_text("x y&")));
    assert_true(weir_span_equal(weir_http_exchange_query(exchange, "b"), b)); /* once more */
    assert_true(weir_span_equal(weir_http_exchange_query(exchange, "c"), weir_span_of_text("")));
    assert_null(weir_http_exchange_query(exchange, "d").data);
    assert_null(weir_http_exchange_query(exchange, "bad").data);
    assert_null(weir_http_exchange_parameter(exchange, "a").data);
    assert_true(weir_span_equal(weir_http_request_query(weir_http_exchange_request(exchange)),
                                weir_span_of_text("a=1&b=x+y%26&c=&bad=%&a=2")));
    assert_int_equal(weir_http_respond(exchange, 200, NULL), 0);
}

TEST(exchange, finds_values_of_the_query_string)
{
    static const weir_http_route routes[] = {{"GET", "/q", ask_query}, {0}};
    weir_embedded *embedded = exchange_open(routes);

    exchange_put(embedded, "GET", "/q?a=1&b=x+y%26&c=&bad=%&a=2");
    assert_exchange_sent(embedded, "200 | end");
    weir_embedded_release(embedded);
}

/* ---- a lack of memory ---- */

static void try_hello(weir_http_exchange *exchange, void *user_data)
{
    (void)user_data;
    (void)weir_http_exchange_query(exchange, "b");
    (void)weir_http_respond_text(weir_http_exchange_retain(exchange), 200, "hello");
    weir_http_exchange_release(exchange);
}

/* A message that the test itself could not create is not counted. */
static bool try_request(weir_embedded *embedded)
{
    weir_http_request *request = NULL;
    weir_buf *buf = NULL;

    if (weir_http_request_create("POST", "/%61?b=%62", &request) < 0)
        return false;
    (void)weir_http_request_set_content_length(request, 6);
    (void)weir_embedded_write_inbound(embedded, weir_http_request_msg(request));
    for (int i = 0; i < 2; i++)
        if (weir_buf_create_from("abc", 3, &buf) == 0)
            (void)weir_embedded_write_inbound(embedded, weir_buf_msg(buf));
    (void)weir_embedded_write_inbound(embedded, weir_http_end_static());
    return true;
}

TEST(exchange, survives_a_lack_of_memory)
{
    static const weir_http_route routes[] = {{"POST", "/a", try_hello}, {0}};
    bool failed = true;

    log_capture_start();
    for (unsigned n = 1; failed; n++) {
        weir_embedded *embedded = exchange_open(routes);

        test_memory_fail_at(n);
        (void)try_request(embedded);
        failed = test_memory_failed();
        test_memory_fail_at(0);
        if (!failed)
            assert_exchange_sent(embedded, "200(5) | hello | end");
        weir_embedded_release(embedded);
    }
}
