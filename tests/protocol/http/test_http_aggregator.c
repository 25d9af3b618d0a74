/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include <weir/embedded.h>
#include <weir/error.h>
#include <weir/http1.h>

#include "support/codec/feed.h"
#include "support/protocol/http/http_text.h"
#include "support/test.h"

static weir_embedded *open_with(uint64_t max_content, bool is_client)
{
    weir_embedded *embedded = NULL;
    weir_pipeline *pipeline;

    assert_int_equal(
        weir_embedded_create(
            WEIR_EMBEDDED_OPTIONS(.channel = WEIR_CHANNEL_OPTIONS(.half_closure = true)),
            &embedded),
        0);
    pipeline = weir_embedded_pipeline(embedded);
    assert_int_equal((is_client ? weir_http1_client_add : weir_http1_server_add)(pipeline, NULL),
                     0);
    assert_int_equal(weir_http_aggregator_add(pipeline, max_content), 0);
    return embedded;
}

static int put(weir_embedded *embedded, const char *text)
{
    return weir_embedded_write_inbound(embedded, feed_bytes(text, strlen(text)));
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

static void assert_out_begins(weir_embedded *embedded, const char *expected)
{
    weir_msg *msg = weir_embedded_read_outbound(embedded);
    char text[4096] = "nothing";

    if (msg != NULL)
        http_format(msg, text, sizeof(text));
    weir_msg_release(msg);
    assert_memory_equal(text + 1, expected, strlen(expected));
}

TEST(http_aggregator, makes_whole_requests)
{
    weir_embedded *embedded = open_with(0, false);

    assert_int_equal(put(embedded, "GET / HTTP/1.1\r\nHost: h\r\n\r\n"), 0);
    assert_in(embedded, "full GET / 1.1 {Host: h} 0 ()");
    weir_embedded_release(embedded);
    embedded = open_with(0, false);
    assert_int_equal(put(embedded,
                         "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
                         "3\r\nabc\r\n"),
                     0);
    assert_int_equal(put(embedded, "2\r\nde\r\n1\r\n"), 0);
    assert_int_equal(put(embedded, "f\r\n"), 0);
    assert_in(embedded, "nothing");
    assert_int_equal(put(embedded, "0\r\nX: y\r\n\r\n"), 0);
    assert_in(embedded, "full POST / 1.1 {Host: h|Transfer-Encoding: chunked} ? (abcdef)");
    weir_embedded_release(embedded);
}

TEST(http_aggregator, keeps_the_trailers)
{
    weir_embedded *embedded = open_with(0, false);
    weir_msg *msg;

    assert_int_equal(put(embedded,
                         "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
                         "0\r\nX: y\r\n\r\n"),
                     0);
    msg = weir_embedded_read_inbound(embedded);
    assert_fields(weir_http_full_trailers(weir_http_full_of(msg)), "X: y");
    assert_non_null(weir_http_full_request(weir_http_full_of(msg)));
    assert_null(weir_http_full_response(weir_http_full_of(msg)));
    assert_ptr_equal(weir_http_full_msg(weir_http_full_of(msg)), msg);
    weir_msg_release(msg);
    weir_embedded_release(embedded);
}

TEST(http_aggregator, continues_what_it_will_read)
{
    weir_embedded *embedded = open_with(3, false);

    assert_int_equal(put(embedded, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n"
                                   "Expect: 100-continue\r\n\r\n"),
                     0);
    assert_out_begins(embedded, "HTTP/1.1 100 Continue\r\n\r\n");
    assert_int_equal(put(embedded, "abc"), 0);
    assert_in(embedded, "full POST / 1.1 {Host: h|Content-Length: 3|Expect: 100-continue} 3 (abc)");
    weir_embedded_release(embedded);
}

TEST(http_aggregator, refuses_content_that_is_too_long)
{
    static const char *const requests[] = {
        "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nabcd",
        "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nbb8\r\nabc",
    };

    for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
        weir_embedded *embedded = open_with(3, false);

        assert_int_equal(put(embedded, requests[i]), 0);
        if (i == 3)
            assert_int_equal(put(embedded, "d"), 0);
        assert_out_begins(embedded, "HTTP/1.1 413 Content Too Large\r\n");
        assert_in(embedded, "nothing");
        assert_false(weir_channel_is_open(weir_embedded_channel(embedded)));
        weir_embedded_release(embedded);
    }
}

static void write_request(weir_embedded *embedded)
{
    weir_http_request *request = NULL;

    assert_int_equal(weir_http_request_create("GET", "http://h/", &request), 0);
    weir_channel_write(weir_embedded_channel(embedded), weir_http_request_msg(request), NULL);
    weir_channel_write_and_flush(weir_embedded_channel(embedded), weir_http_end_static(), NULL);
}

TEST(http_aggregator, makes_whole_responses)
{
    weir_embedded *embedded = open_with(3, true);

    write_request(embedded);
    assert_int_equal(put(embedded, "HTTP/1.1 103 Hints\r\n\r\nHTTP/1.1 200 OK\r\n"
                                   "Content-Length: 3\r\n\r\nabc"),
                     0);
    assert_in(embedded, "103 Hints 1.1 {} 0");
    assert_in(embedded, "full 200 OK 1.1 {Content-Length: 3} 3 (abc)");
    write_request(embedded);
    assert_int_equal(put(embedded, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nabcd"),
                     WEIR_ETOOLONG);
    assert_in(embedded, "nothing");
    assert_false(weir_channel_is_open(weir_embedded_channel(embedded)));
    weir_embedded_release(embedded);
}

/* A whole message can be written, too: an echo of requests by a proxy. */
TEST(http_aggregator, makes_messages_that_can_be_written)
{
    weir_embedded *server = open_with(0, false), *client = open_with(0, true);

    assert_int_equal(put(server, "PUT /x HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc"), 0);
    assert_int_equal(weir_embedded_write_outbound(client, weir_embedded_read_inbound(server)), 0);
    assert_out_begins(client, "PUT /x HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc");
    assert_int_equal(put(client, "HTTP/1.1 404 No\r\nX: y\r\nContent-Length: 2\r\n\r\nno"), 0);
    assert_int_equal(weir_embedded_write_outbound(server, weir_embedded_read_inbound(client)), 0);
    assert_out_begins(server, "HTTP/1.1 404 No\r\nDate: ");
    weir_embedded_release(server);
    weir_embedded_release(client);
}
