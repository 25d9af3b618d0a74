/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The client's side of a connection: requests out, and what they mean for the responses.
 */
#include <errno.h>
#include <string.h>

#include <weir/embedded.h>
#include <weir/error.h>
#include <weir/http1.h>
#include <weir/promise.h>

#include "support/codec/feed.h"
#include "support/protocol/http/http_text.h"
#include "support/test.h"

static weir_embedded *open(void)
{
    weir_embedded *embedded = NULL;

    assert_int_equal(weir_embedded_create(NULL, &embedded), 0);
    assert_int_equal(weir_http1_client_add(weir_embedded_pipeline(embedded), NULL), 0);
    return embedded;
}

static weir_http_request *request_of(const char *method, const char *target, int64_t length)
{
    weir_http_request *request = NULL;

    assert_int_equal(weir_http_request_create(method, target, &request), 0);
    assert_int_equal(weir_http_request_set_content_length(request, length), 0);
    return request;
}

static void add(weir_http_request *request, const char *name, const char *value)
{
    assert_int_equal(weir_http_headers_add_named(weir_http_request_headers(request),
                                                 weir_span_of_text(name), weir_span_of_text(value)),
                     0);
}

static int write_msg(weir_embedded *embedded, weir_msg *msg)
{
    return weir_embedded_write_outbound(embedded, msg);
}

static int write_request(weir_embedded *embedded, weir_http_request *request)
{
    return write_msg(embedded, weir_http_request_msg(request));
}

static int put(weir_embedded *embedded, const char *text)
{
    return weir_embedded_write_inbound(embedded, feed_bytes(text, strlen(text)));
}

static void assert_out(weir_embedded *embedded, const char *expected)
{
    char text[4096] = "", word[4096];
    weir_msg *msg;

    while ((msg = weir_embedded_read_outbound(embedded)) != NULL) {
        http_format(msg, word, sizeof(word));
        word[strlen(word) - 1] = '\0';
        strcat(text, word + 1);
        weir_msg_release(msg);
    }
    assert_string_equal(text, expected);
}

static void assert_in(weir_embedded *embedded, const char *expected)
{
    weir_msg *msg = weir_embedded_read_inbound(embedded);
    char text[4096] = "nothing";

    if (msg != NULL)
        http_format(msg, text, sizeof(text));
    weir_msg_release(msg);
    assert_string_equal(text, expected);
}

TEST(http1_client, writes_requests)
{
    weir_embedded *embedded = open();
    weir_http_request *request = request_of("GET", "/a?b", 0);

    add(request, "Host", "h");
    add(request, "Connection", "close");
    add(request, "Content-Length", "7");
    add(request, "X", "y");
    assert_int_equal(write_request(embedded, request), 0);
    assert_int_equal(write_msg(embedded, weir_http_end_static()), 0);
    assert_out(embedded, "GET /a?b HTTP/1.1\r\nHost: h\r\nX: y\r\n\r\n");
    assert_int_equal(write_request(embedded, request_of("GET", "http://x:1/p", 0)), 0);
    assert_int_equal(write_msg(embedded, weir_http_end_static()), 0);
    assert_out(embedded, "GET http://x:1/p HTTP/1.1\r\nHost: x:1\r\n\r\n");
    weir_embedded_release(embedded);
}

TEST(http1_client, frames_content)
{
    weir_embedded *embedded = open();

    assert_int_equal(write_request(embedded, request_of("POST", "http://h/", 0)), 0);
    assert_int_equal(write_msg(embedded, weir_http_end_static()), 0);
    assert_out(embedded, "POST http://h/ HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n");
    assert_int_equal(write_request(embedded, request_of("PUT", "http://h/", 2)), 0);
    assert_int_equal(write_msg(embedded, feed_bytes("ab", 2)), 0);
    assert_int_equal(write_msg(embedded, weir_http_end_static()), 0);
    assert_out(embedded, "PUT http://h/ HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nab");
    assert_int_equal(
        write_request(embedded, request_of("PUT", "http://h/", WEIR_HTTP_UNKNOWN_LENGTH)), 0);
    assert_int_equal(write_msg(embedded, feed_bytes("ab", 2)), 0);
    assert_int_equal(write_msg(embedded, weir_http_end_static()), 0);
    assert_out(embedded, "PUT http://h/ HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
                         "2\r\nab\r\n0\r\n\r\n");
    weir_embedded_release(embedded);
}

TEST(http1_client, refuses_wrong_writes)
{
    weir_embedded *embedded = open();
    weir_http_response *response = NULL;

    assert_int_equal(write_request(embedded, request_of("GET", "/", 0)), -EINVAL); /* no Host */
    assert_int_equal(write_msg(embedded, feed_bytes("x", 1)), -EINVAL);
    assert_int_equal(write_msg(embedded, weir_http_end_static()), -EINVAL);
    assert_int_equal(weir_http_response_create(200, &response), 0);
    assert_int_equal(write_msg(embedded, weir_http_response_msg(response)), -EINVAL);
    assert_int_equal(write_request(embedded, request_of("GET", "http://h/", 0)), 0);
    assert_int_equal(write_request(embedded, request_of("GET", "http://h/", 0)), -EINVAL);
    assert_int_equal(write_msg(embedded, weir_http_end_static()), 0);
    for (int i = 1; i < 32; i++) {
        assert_int_equal(write_request(embedded, request_of("GET", "http://h/", 0)), 0);
        assert_int_equal(write_msg(embedded, weir_http_end_static()), 0);
    }
    assert_int_equal(write_request(embedded, request_of("GET", "http://h/", 0)), WEIR_EFULL);
    weir_embedded_release(embedded);
}

TEST(http1_client, resets_instead_of_sending_a_wrong_length)
{
    weir_embedded *embedded = open();

    assert_int_equal(write_request(embedded, request_of("PUT", "http://h/", 1)), 0);
    assert_int_equal(write_msg(embedded, feed_bytes("ab", 2)), WEIR_ETOOLONG);
    assert_false(weir_channel_is_open(weir_embedded_channel(embedded)));
    weir_embedded_release(embedded);
    embedded = open();
    assert_int_equal(write_request(embedded, request_of("PUT", "http://h/", 1)), 0);
    assert_int_equal(write_msg(embedded, weir_http_end_static()), WEIR_ETRUNCATED);
    assert_false(weir_channel_is_open(weir_embedded_channel(embedded)));
    weir_embedded_release(embedded);
    embedded = open();
    assert_int_equal(write_request(embedded, request_of("GET", "http://h/", 0)), 0);
    assert_int_equal(write_msg(embedded, feed_bytes("ab", 2)), WEIR_ETOOLONG);
    assert_false(weir_channel_is_open(weir_embedded_channel(embedded)));
    weir_embedded_release(embedded);
}

TEST(http1_client, hands_the_connection_over_after_an_upgrade)
{
    weir_embedded *embedded = open();
    weir_http_request *request = request_of("GET", "http://h/", 0);

    add(request, "Upgrade", "x");
    add(request, "TE", "trailers");
    assert_int_equal(write_request(embedded, request), 0);
    assert_int_equal(write_msg(embedded, weir_http_end_static()), 0);
    assert_out(embedded, "GET http://h/ HTTP/1.1\r\nHost: h\r\nUpgrade: x\r\nTE: trailers\r\n"
                         "Connection: Upgrade, TE\r\n\r\n");
    assert_int_equal(put(embedded, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\nbytes"),
                     0);
    assert_in(embedded, "101 Switching Protocols 1.1 {Upgrade: x} 0");
    assert_in(embedded, "end");
    assert_in(embedded, "(bytes)");
    assert_int_equal(write_msg(embedded, feed_bytes("out", 3)), 0);
    assert_out(embedded, "out");
    assert_int_equal(weir_pipeline_count(weir_embedded_pipeline(embedded)), 0);
    weir_embedded_release(embedded);
}

TEST(http1_client, stays_if_an_upgrade_is_declined)
{
    weir_embedded *embedded = open();
    weir_http_request *request = request_of("GET", "http://h/", 0);

    add(request, "Upgrade", "x");
    assert_int_equal(write_request(embedded, request), 0);
    assert_int_equal(write_msg(embedded, weir_http_end_static()), 0);
    assert_int_equal(put(embedded, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx"), 0);
    assert_in(embedded, "200 OK 1.1 {Content-Length: 1} 1");
    assert_in(embedded, "(x)");
    assert_in(embedded, "end");
    assert_int_equal(weir_pipeline_count(weir_embedded_pipeline(embedded)), 1);
    weir_embedded_release(embedded);
}

/* The server may not read the rest of the request. */
TEST(http1_client, closes_if_a_response_ends_before_its_request)
{
    weir_embedded *embedded = open();

    assert_int_equal(write_request(embedded, request_of("PUT", "http://h/", 10)), 0);
    assert_int_equal(put(embedded, "HTTP/1.1 413 x\r\nContent-Length: 0\r\n\r\n"), 0);
    assert_in(embedded, "413 x 1.1 {Content-Length: 0} 0");
    assert_in(embedded, "end");
    assert_false(weir_channel_is_open(weir_embedded_channel(embedded)));
    weir_embedded_release(embedded);
}

/* A connection that is reset does not end a response. */
TEST(http1_client, distinguishes_an_abort_from_the_end)
{
    weir_embedded *embedded = open();

    assert_int_equal(write_request(embedded, request_of("GET", "http://h/", 0)), 0);
    assert_int_equal(write_msg(embedded, weir_http_end_static()), 0);
    assert_int_equal(put(embedded, "HTTP/1.1 200 OK\r\n\r\nabc"), 0);
    weir_channel_abort(weir_embedded_channel(embedded), NULL);
    weir_embedded_run(embedded);
    assert_in(embedded, "200 OK 1.1 {} ?");
    assert_in(embedded, "(abc)");
    assert_in(embedded, "nothing");
    assert_int_equal(weir_embedded_take_error(embedded), WEIR_ECUTOFF);
    weir_embedded_release(embedded);
}
