/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading responses. Every stream is fed whole, split into any two parts, and byte by byte.
 */
#include <stdio.h>
#include <string.h>

#include <weir/http1.h>

#include "support/protocol/http/http_feed.h"
#include "support/test.h"

static void assert_read(const char *requests, const char *text, const char *in)
{
    const struct http_feed feed = {.requests = requests};

    assert_http_text_fed(&feed, text, in, "");
}

TEST(http1_response, with_a_length)
{
    assert_read("GET", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc",
                "200 OK 1.1 {Content-Length: 3} 3|(abc)|end");
    assert_read(
        "GET GET",
        "HTTP/1.1 404 Nicht da\r\nContent-Length: 0\r\n\r\n"
        "HTTP/1.1 200\r\nContent-Length: 1\r\n\r\nx",
        "404 Nicht da 1.1 {Content-Length: 0} 0|end|200  1.1 {Content-Length: 1} 1|(x)|end");
    assert_read("GET", "HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n",
                "200  1.1 {Content-Length: 0} 0|end");
}

TEST(http1_response, chunked)
{
    assert_read("GET GET",
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX: y\r\n\r\n"
                "HTTP/1.1 204 No Content\r\n\r\n",
                "200 OK 1.1 {Transfer-Encoding: chunked} ?|(abc)|end {X: y}|"
                "204 No Content 1.1 {} 0|end");
}

TEST(http1_response, until_the_connection_ends)
{
    assert_read("GET", "HTTP/1.1 200 OK\r\n\r\nabc", "200 OK 1.1 {} ?|(abc)|end");
    assert_read("GET", "HTTP/1.0 200 OK\r\nX: y\r\n\r\n", "200 OK 1.0 {X: y} ?|end");
}

TEST(http1_response, without_content)
{
    assert_read("HEAD GET",
                "HTTP/1.1 200 OK\r\nContent-Length: 30\r\n\r\nHTTP/1.1 304 Not Modified\r\n"
                "Content-Length: 20\r\n\r\n",
                "200 OK 1.1 {Content-Length: 30} 30|end|"
                "304 Not Modified 1.1 {Content-Length: 20} 20|end");
    assert_read("HEAD GET",
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nHTTP/1.1 204 x\r\n"
                "Content-Length: 20\r\n\r\n",
                "200 OK 1.1 {Transfer-Encoding: chunked} ?|end|204 x 1.1 {Content-Length: 20} "
                "0|end");
    assert_read("HEAD GET", "HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 304 x\r\n\r\n",
                "200 OK 1.1 {} ?|end|304 x 1.1 {} ?|end");
}

TEST(http1_response, informational)
{
    assert_read("GET",
                "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
                "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na",
                "100 Continue 1.1 {} 0|103 Early Hints 1.1 {Link: x} 0|"
                "200 OK 1.1 {Content-Length: 1} 1|(a)|end");
}

TEST(http1_response, that_ends_the_connection)
{
    assert_read("GET GET",
                "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\naHTTP/1.1 200 OK"
                "\r\nContent-Length: 0\r\n\r\n",
                "200 OK 1.1 {Connection: close|Content-Length: 1} 1|(a)|end");
    assert_read("GET GET", "HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\naHTTP/1.1 200 OK\r\n\r\n",
                "200 OK 1.0 {Content-Length: 1} 1|(a)|end");
    assert_read("GET GET",
                "HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 1\r\n\r\na"
                "HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n",
                "200 OK 1.0 {Connection: Keep-Alive|Content-Length: 1} 1|(a)|end|"
                "200 OK 1.0 {Content-Length: 0} 0|end");
}

TEST(http1_response, cut_off)
{
    assert_read("GET", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab",
                "200 OK 1.1 {Content-Length: 3} 3|(ab)|error(WEIR_ECUTOFF)");
    assert_read("GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n",
                "200 OK 1.1 {Transfer-Encoding: chunked} ?|(ab)|error(WEIR_ECUTOFF)");
    assert_read("GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n",
                "200 OK 1.1 {Transfer-Encoding: chunked} ?|error(WEIR_ECUTOFF)");
    assert_read("GET", "HTTP/1.1 200 OK\r\nContent-Length:", "error(WEIR_ECUTOFF)");
    assert_read("GET", "H", "error(WEIR_ECUTOFF)");
}

TEST(http1_response, malformed)
{
    static const char *const wrong[] = {
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1, 1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, x\r\n\r\n",
        "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 100 Continue\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 103 Early Hints\r\nContent-Length: 5\r\n\r\n",
        "HTTP/1.1 200 OK\nContent-Length: 1\n\n",
        "HTTP/1.1 200 OK\r\nX : y\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX: y\r\n z\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX: \x01\r\n\r\n",
        "HTTP/1.1 20 OK\r\n\r\n",
        "HTTP/1.1 2000 OK\r\n\r\n",
        "HTTP/1.1 099 OK\r\n\r\n",
        "HTTP/1.1 600 OK\r\n\r\n",
        "HTTP/1.1  200 OK\r\n\r\n",
        "HTTP/2.0 200 OK\r\n\r\n",
        "\r\nHTTP/1.1 200 OK\r\n\r\n",
        "ICY 200 OK\r\n\r\n",
        "HTTP/1.1 200 O\x01K\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
    };

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_read("GET", wrong[i], "error(WEIR_EMALFORMED)");
    assert_read("", "HTTP/1.1 200 OK\r\n\r\n", "error(WEIR_EMALFORMED)");
    assert_read("GET", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nX",
                "200 OK 1.1 {Content-Length: 0} 0|end|error(WEIR_EMALFORMED)");
    assert_read("GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
                "200 OK 1.1 {Transfer-Encoding: chunked} ?|error(WEIR_EMALFORMED)");
}

TEST(http1_response, to_connect_is_followed_by_a_tunnel)
{
    assert_read("CONNECT", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n\x16\x03 bytes",
                "200 OK 1.1 {Content-Length: 5} 0|end|(\x16\x03 bytes)");
    assert_read("CONNECT",
                "HTTP/1.1 407 No\r\nContent-Length: 2\r\n\r\nnoHTTP/1.1 200 OK\r\n\r\nbytes",
                "407 No 1.1 {Content-Length: 2} 2|(no)|end");
}
