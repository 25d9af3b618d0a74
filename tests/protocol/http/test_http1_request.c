/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading requests. Every stream is fed whole, split into any two parts, and byte by byte.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/http1.h>

#include "support/protocol/http/http_feed.h"
#include "support/test.h"

static const struct http_feed feed = {.options = NULL};

#define OK(length, content) "HTTP/1.1 200 OK\r\nContent-Length: " #length "\r\n\r\n" content

static void assert_read(const char *text, const char *in)
{
    assert_http_text_fed(&feed, text, in, NULL);
}

TEST(http1_request, without_content)
{
    assert_http_text_fed(&feed, "GET / HTTP/1.1\r\nHost: h\r\n\r\n", "GET / 1.1 {Host: h} 0|end",
                         OK(1, "0"));
    assert_read("GET /a?b=c HTTP/1.1\r\nhost:h:80\r\nX-Long-Name-Of-A-Field:   a value \t with "
                "blanks\t \r\nEmpty:\r\nBlank: \t \r\n\r\n",
                "GET /a?b=c 1.1 {host: h:80|X-Long-Name-Of-A-Field: a value \t with blanks|Empty: "
                "|Blank: } 0|end");
    assert_read("BREW /pot HTTP/1.0\r\n\r\n", "BREW /pot 1.0 {} 0|end");
    assert_read("GET / HTTP/1.2\r\nHost: h\r\n\r\n", "GET / 1.1 {Host: h} 0|end");
    assert_read("\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n", "GET / 1.1 {Host: h} 0|end");
    assert_read("GET / HTTP/1.1\r\nHost: h\r\nX: \x80\xff\r\n\r\n",
                "GET / 1.1 {Host: h|X: \x80\xff} 0|end");
}

TEST(http1_request, pipelined)
{
    assert_http_text_fed(&feed,
                         "GET /1 HTTP/1.1\r\nHost: h\r\n\r\n"
                         "POST /2 HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc"
                         "POST /3 HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
                         "2\r\nab\r\n0\r\n\r\n"
                         "GET /4 HTTP/1.1\r\nHost: h\r\n\r\n",
                         "GET /1 1.1 {Host: h} 0|end|"
                         "POST /2 1.1 {Host: h|Content-Length: 3} 3|(abc)|end|"
                         "POST /3 1.1 {Host: h|Transfer-Encoding: chunked} ?|(ab)|end|"
                         "GET /4 1.1 {Host: h} 0|end",
                         OK(1, "0") OK(1, "3") OK(1, "2") OK(1, "0"));
}

TEST(http1_request, target_forms)
{
    assert_read("OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n", "OPTIONS * 1.1 {Host: h} 0|end");
    assert_read("GET http://x:80/p HTTP/1.1\r\nHost: x:80\r\n\r\n",
                "GET http://x:80/p 1.1 {Host: x:80} 0|end");
    assert_read("GET http://x/p HTTP/1.1\r\nHost: other\r\n\r\n",
                "GET http://x/p 1.1 {Host: x} 0|end");
    assert_read("GET / HTTP/1.1\r\nHost: [::1]:8080\r\n\r\n", "GET / 1.1 {Host: [::1]:8080} 0|end");
    assert_read("GET / HTTP/1.1\r\nHost:\r\n\r\n", "GET / 1.1 {Host: } 0|end");
    assert_read("CONNECT x:443 HTTP/1.1\r\nHost: x:443\r\n\r\n",
                "CONNECT x:443 1.1 {Host: x:443} 0|end");
    assert_read("CONNECT [::1]:443 HTTP/1.1\r\nHost: [::1]:443\r\n\r\n",
                "CONNECT [::1]:443 1.1 {Host: [::1]:443} 0|end");
}

TEST(http1_request, with_chunked_content)
{
    assert_read(
        "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: Chunked\r\n\r\n"
        "1\r\na\r\n00A;x=y;z=\"q\"\r\n0123456789\r\n2 ; x\t=\t\"a\\\"b\"\r\nbc\r\n000;last\r\n\r\n",
        "POST / 1.1 {Host: h|Transfer-Encoding: Chunked} ?|(a0123456789bc)|end");
    assert_read("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
                "0\r\nX-Sum: 1\r\nContent-Length: 5\r\nhost: evil\r\nY:\r\n\r\n"
                "GET / HTTP/1.1\r\nHost: h\r\n\r\n",
                "POST / 1.1 {Host: h|Transfer-Encoding: chunked} ?|end {X-Sum: 1|Y: }|"
                "GET / 1.1 {Host: h} 0|end");
    assert_read("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nTE: x\r\n"
                "\r\n",
                "POST / 1.1 {Host: h|Transfer-Encoding: chunked} ?|end");
}

/* Many small chunks, and one that is larger than those that are gathered. */
TEST(http1_request, with_many_chunks)
{
    static const char head[] = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
    char *bytes = malloc(65536), *in = malloc(65536), *to, *note;
    size_t length;

    to = bytes + sprintf(bytes, "%s", head);
    note = in + sprintf(in, "POST / 1.1 {Host: h|Transfer-Encoding: chunked} ?|(");
    for (int i = 0; i < 300; i++) {
        to += sprintf(to, "1\r\n%c\r\n", 'a' + i % 26);
        *note++ = (char)('a' + i % 26);
    }
    to += sprintf(to, "bb8\r\n");
    memset(to, 'x', 3000);
    memset(note, 'x', 3000);
    to += 3000;
    note += 3000;
    to += sprintf(to, "\r\n2\r\nyz\r\n0\r\n\r\n");
    (void)sprintf(note, "yz)|end");
    length = (size_t)(to - bytes);
    assert_http_fed(&feed, bytes, length, in, OK(4, "3302"));
    free(bytes);
    free(in);
}

struct refusal {
    const char *text;
    int status;
};

/* Every row is refused after the head, which is a refused one itself unless it says "head:". */
static void assert_refused(const struct refusal *rows, size_t count)
{
    char in[64];

    for (size_t i = 0; i < count; i++) {
        (void)snprintf(in, sizeof(in), "refused(%d)", rows[i].status);
        assert_read(rows[i].text, in);
    }
}

#define GET "GET / HTTP/1.1\r\n"
#define REFUSED(rows) assert_refused(rows, sizeof(rows) / sizeof((rows)[0]))

TEST(http1_request, refused_for_its_content_length)
{
    static const struct refusal rows[] = {
        {GET "Host: h\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400},
        {GET "Host: h\r\nContent-Length: 1\r\ncontent-length: 1\r\n\r\n", 400},
        {GET "Host: h\r\nContent-Length: 1, 1\r\n\r\n", 400},
        {GET "Host: h\r\nContent-Length: 1,\r\n\r\n", 400},
        {GET "Host: h\r\nContent-Length: +1\r\n\r\n", 400},
        {GET "Host: h\r\nContent-Length: -1\r\n\r\n", 400},
        {GET "Host: h\r\nContent-Length: 1 2\r\n\r\n", 400},
        {GET "Host: h\r\nContent-Length: 1 \t\r\n\r\n", 400},
        {GET "Host: h\r\nContent-Length: 0x1\r\n\r\n", 400},
        {GET "Host: h\r\nContent-Length: 1.0\r\n\r\n", 400},
        {GET "Host: h\r\nContent-Length:\r\n\r\n", 400},
        {GET "Host: h\r\nContent-Length: 1000000000000000000\r\n\r\n", 400},
        {GET "Host: h\r\nContent-Length: 0000000000000000001\r\n\r\n", 400},
    };

    REFUSED(rows);
}

TEST(http1_request, refused_for_its_transfer_encoding)
{
    static const struct refusal rows[] = {
        {GET "Host: h\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n", 400},
        {GET "Host: h\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
        {GET "Host: h\r\nTransfer-Encoding: chunked, gzip\r\n\r\n", 400},
        {GET "Host: h\r\nTransfer-Encoding: chunked, chunked\r\n\r\n", 400},
        {GET "Host: h\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
        {GET "Host: h\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n", 400},
        {GET "Host: h\r\nTransfer-Encoding:\r\n\r\n", 400},
        {GET "Host: h\r\nTransfer-Encoding: chunked,\r\n\r\n", 400},
        {GET "Host: h\r\nTransfer-Encoding: , chunked\r\n\r\n", 400},
        {GET "Host: h\r\nTransfer-Encoding: chunked\t\r\n\r\n", 400},
        {GET "Host: h\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 501},
        {GET "Host: h\r\nTransfer-Encoding: gzip\r\n\r\n", 501},
        {GET "Host: h\r\nTransfer-Encoding: identity\r\n\r\n", 501},
        {GET "Host: h\r\nTransfer-Encoding: xchunked\r\n\r\n", 501},
        {GET "Host: h\r\nTransfer-Encoding: chunked;q=1\r\n\r\n", 501},
        {GET "Host: h\r\nTransfer-Encoding: \"chunked\"\r\n\r\n", 501},
        {"GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
        {"CONNECT h:1 HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\n", 400},
        {"TRACE / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
    };

    REFUSED(rows);
}

TEST(http1_request, refused_for_its_lines)
{
    static const struct refusal rows[] = {
        {"GET / HTTP/1.1\nHost: h\n\n", 400},
        {"GET / HTTP/1.1\rHost: h\r\r", 400},
        {GET "Host: h\n\r\n", 400},
        {GET "Host: h\r\n\n", 400},
        {GET "Host: h\r\n\rX", 400},
        {GET "Host: h\rX: y\r\n\r\n", 400},
        {GET "Host: h\r\n folded\r\n\r\n", 400},
        {GET "Host: h\r\n\tfolded\r\n\r\n", 400},
        {GET " Host: h\r\n\r\n", 400},
        {GET "Host : h\r\n\r\n", 400},
        {GET "Host\t: h\r\n\r\n", 400},
        {GET ": h\r\n\r\n", 400},
        {GET "Host: h\r\nno colon\r\n\r\n", 400},
        {GET "Host: h\r\nno-colon\r\n\r\n", 400},
        {GET "Host: h\r\nX(y): z\r\n\r\n", 400},
        {GET "Host: h\r\nX: \x01\r\n\r\n", 400},
        {GET "Host: h\r\nX: a\x7f\r\n\r\n", 400},
        {GET "Host: h\r\nX: a\x0b\r\n\r\n", 400},
        {"\nGET / HTTP/1.1\r\nHost: h\r\n\r\n", 400},
        {"\rGET / HTTP/1.1\r\nHost: h\r\n\r\n", 400},
    };
    static const char nul[] = GET "Host: h\r\nX: a\0b\r\n\r\n";
    static const char nul_in_name[] = GET "Host: h\r\nX\0: b\r\n\r\n";

    REFUSED(rows);
    assert_http_fed(&feed, nul, sizeof(nul) - 1, "refused(400)", NULL);
    assert_http_fed(&feed, nul_in_name, sizeof(nul_in_name) - 1, "refused(400)", NULL);
}

TEST(http1_request, refused_for_its_request_line)
{
    static const struct refusal rows[] = {
        {"G@T / HTTP/1.1\r\nHost: h\r\n\r\n", 400},
        {" GET / HTTP/1.1\r\nHost: h\r\n\r\n", 400},
        {"GET  / HTTP/1.1\r\nHost: h\r\n\r\n", 400},
        {"GET /  HTTP/1.1\r\nHost: h\r\n\r\n", 400},
        {"GET / x HTTP/1.1\r\nHost: h\r\n\r\n", 400},
        {"GET /\t HTTP/1.1\r\nHost: h\r\n\r\n", 400},
        {"GET /\x01 HTTP/1.1\r\nHost: h\r\n\r\n", 400},
        {"GET /\x80 HTTP/1.1\r\nHost: h\r\n\r\n", 400},
        {"GET /#x HTTP/1.1\r\nHost: h\r\n\r\n", 400},
        {"GET x HTTP/1.1\r\nHost: h\r\n\r\n", 400},
        {"GET * HTTP/1.1\r\nHost: h\r\n\r\n", 400},
        {"GET http:///x HTTP/1.1\r\nHost: h\r\n\r\n", 400},
        {"GET @http://h/x HTTP/1.1\r\nHost: h\r\n\r\n", 400},
        {"GET 1http://h/x HTTP/1.1\r\nHost: h\r\n\r\n", 400},
        {"GET http://a@b/x HTTP/1.1\r\nHost: h\r\n\r\n", 400},
        {"CONNECT / HTTP/1.1\r\nHost: h\r\n\r\n", 400},
        {"CONNECT h HTTP/1.1\r\nHost: h\r\n\r\n", 400},
        {"CONNECT h: HTTP/1.1\r\nHost: h\r\n\r\n", 400},
        {"CONNECT h:0 HTTP/1.1\r\nHost: h\r\n\r\n", 400},
        {"CONNECT h:65536 HTTP/1.1\r\nHost: h\r\n\r\n", 400},
        {"CONNECT [::1] HTTP/1.1\r\nHost: h\r\n\r\n", 400},
        {"CONNECT [::1]: HTTP/1.1\r\nHost: h\r\n\r\n", 400},
        {"GET /\r\n\r\n", 400},
        {"GET\r\n\r\n", 400},
        {"GET / HTTP/1.1 \r\nHost: h\r\n\r\n", 400},
        {"GET / HTTP/1\r\nHost: h\r\n\r\n", 400},
        {"GET / HTTP/1.10\r\nHost: h\r\n\r\n", 400},
        {"GET / HTTP/11.1\r\nHost: h\r\n\r\n", 400},
        {"GET / http/1.1\r\nHost: h\r\n\r\n", 400},
        {"GET / HTTPS/1.1\r\nHost: h\r\n\r\n", 400},
        {"GET / HTTP/2.0\r\nHost: h\r\n\r\n", 505},
        {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505},
        {"GET / HTTP/0.9\r\nHost: h\r\n\r\n", 505},
        {"GET / HTTP/1.1\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: h\r\nHost: h\r\n\r\n", 400},
        {"GET / HTTP/1.0\r\nHost: h\r\nHost: i\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: a@b\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: a:b\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: a, b\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: h\r\nExpect: 200-ok\r\n\r\n", 417},
        {"\x16\x03\x01\x02\x01\x01", 400},
    };

    REFUSED(rows);
}

/* The Host of the request before is remembered: only the whole of it is known to be valid. */
TEST(http1_request, refused_for_the_beginning_of_a_valid_host)
{
    static const struct refusal rows[] = {
        {GET "Host: [::1\r\n\r\n", 400},
        {GET "Host: [\r\n\r\n", 400},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_read(GET "Host: [::1]:8080\r\n\r\n", "GET / 1.1 {Host: [::1]:8080} 0|end");
        assert_refused(&rows[i], 1);
    }
}

TEST(http1_request, refused_for_its_chunks)
{
#define CHUNKED "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
    static const struct {
        const char *text;
        const char *content;
    } rows[] = {
        {"g\r\n", ""},
        {"\r\n", ""},
        {" 1\r\na\r\n", ""},
        {"1 \r\na\r\n", ""},
        {"1 \r\na\r\n", ""},
        {"1;\r\na\r\n", ""},
        {"1;x;\r\na\r\n", ""},
        {"1;;x\r\na\r\n", ""},
        {"1;x \r\na\r\n", ""},
        {"1;x y\r\na\r\n", ""},
        {"1;x=\r\na\r\n", ""},
        {"1;=y\r\na\r\n", ""},
        {"1;x=y=z\r\na\r\n", ""},
        {"1;x=y z\r\na\r\n", ""},
        {"1;x=\"y\r\na\r\n", ""},
        {"1;x=\"y\\\"\r\na\r\n", ""},
        {"1;x=\"y\"z\r\na\r\n", ""},
        {"1;x=\"\x01\"\r\na\r\n", ""},
        {"1;x@\r\na\r\n", ""},
        {"1;\"x\"\r\na\r\n", ""},
        {"1 x\r\na\r\n", ""},
        {"0x1\r\na\r\n", ""},
        {"-1\r\na\r\n", ""},
        {"1\na\r\n", ""},
        {"1\rX", ""},
        {"1;x\na\r\n", ""},
        {"1;\x01\r\na\r\n", ""},
        {"00000000000000001\r\na\r\n", ""},
        {"ffffffffffffffff\r\na", ""},
        {"40000001\r\na", ""},
        {"1\r\nab\r\n", "(a)|"},
        {"1\r\na\n0\r\n\r\n", "(a)|"},
        {"1\r\na\rb", "(a)|"},
        {"1\r\na0\r\n\r\n", "(a)|"},
        {"2\r\nab\r\n1\r\nc\r\nx", "(abc)|"},
        {"0\r\nX : y\r\n\r\n", ""},
        {"0\r\n\n", ""},
        {"0\r\n X: y\r\n\r\n", ""},
    };
    char text[256], in[256];

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        (void)snprintf(text, sizeof(text), "%s%s", CHUNKED, rows[i].text);
        (void)snprintf(in, sizeof(in),
                       "POST / 1.1 {Host: h|Transfer-Encoding: chunked} ?|%srefused(400)",
                       rows[i].content);
        assert_read(text, in);
    }
}

/* ---- limits ---- */

static const struct http_feed narrow = {
    .options = &(const weir_http1_options){.size = sizeof(weir_http1_options),
                                           .max_start_line = 20,
                                           .max_header_bytes = 30,
                                           .max_header_fields = 3,
                                           .max_chunk = 16},
};

TEST(http1_request, of_the_longest_request_line)
{
    assert_http_text_fed(&narrow, "GET /901234 HTTP/1.1\r\nHost: h\r\n\r\n",
                         "GET /901234 1.1 {Host: h} 0|end", NULL);
    assert_http_text_fed(&narrow, "GET /9012345 HTTP/1.1\r\nHost: h\r\n\r\n", "refused(414)", NULL);
    assert_http_text_fed(&narrow, "GET /90123456789012345678901234567890", "refused(414)", NULL);
    assert_http_text_fed(&narrow, "METHODMETHODMETHODMETHODMETHOD /", "refused(414)", NULL);
    assert_http_text_fed(&narrow, "\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n",
                         "refused(414)", NULL);
}

TEST(http1_request, of_the_longest_fields)
{
    /* 9 + 21 bytes of fields */
    assert_http_text_fed(&narrow, "GET / HTTP/1.1\r\nHost: h\r\nX: 4567890123456789\r\n\r\n",
                         "GET / 1.1 {Host: h|X: 4567890123456789} 0|end", NULL);
    assert_http_text_fed(&narrow, "GET / HTTP/1.1\r\nHost: h\r\nX: 456789012345678901\r\n\r\n",
                         "refused(431)", NULL);
    assert_http_text_fed(&narrow, "GET / HTTP/1.1\r\nX: 01234567890123456789012345678901\x01",
                         "refused(431)", NULL);
    assert_http_text_fed(&narrow, "GET / HTTP/1.1\r\n0123456789012345678901234567890123456789",
                         "refused(431)", NULL);
}

TEST(http1_request, of_the_most_fields)
{
    assert_http_text_fed(&narrow, "GET / HTTP/1.1\r\nHost: h\r\nA: b\r\nC: d\r\n\r\n",
                         "GET / 1.1 {Host: h|A: b|C: d} 0|end", NULL);
    assert_http_text_fed(&narrow, "GET / HTTP/1.1\r\nHost: h\r\nA:\r\nC:\r\nE:\r\n\r\n",
                         "refused(431)", NULL);
}

#define NARROW_CHUNKED "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding:chunked\r\n\r\n"

static const struct http_feed limited = {
    .options = &(const weir_http1_options){.size = sizeof(weir_http1_options),
                                           .max_header_bytes = 50,
                                           .max_header_fields = 3,
                                           .max_chunk = 16},
};

TEST(http1_request, of_the_largest_chunk_and_trailers)
{
#define NARROW_HEAD "POST / 1.1 {Host: h|Transfer-Encoding: chunked} ?|"

    assert_http_text_fed(&limited, NARROW_CHUNKED "10\r\n0123456789abcdef\r\n0\r\n\r\n",
                         NARROW_HEAD "(0123456789abcdef)|end", NULL);
    assert_http_text_fed(&limited, NARROW_CHUNKED "11\r\n0", NARROW_HEAD "refused(400)", NULL);
    assert_http_text_fed(&limited, NARROW_CHUNKED "0\r\nA: b\r\nC: d\r\nE: f\r\n\r\n",
                         NARROW_HEAD "end {A: b|C: d|E: f}", NULL);
    assert_http_text_fed(&limited, NARROW_CHUNKED "0\r\nA:\r\nTE:\r\nE:\r\nG:\r\n\r\n",
                         NARROW_HEAD "refused(431)", NULL);
    assert_http_text_fed(
        &limited, NARROW_CHUNKED "0\r\nA: 01234567890123456789012345678901234567890123456789",
        NARROW_HEAD "refused(431)", NULL);
}

/* Appends a chunk of one byte with this many bytes of extensions. */
static char *put_extended(char *to, size_t length)
{
    to += sprintf(to, "1;");
    memset(to, 'e', length);
    return to + length + sprintf(to + length, "\r\nx\r\n");
}

static void assert_extended(const char *bytes, size_t chunks, const char *end)
{
    char in[1024], content[601] = "";

    memset(content, 'x', chunks);
    (void)snprintf(in, sizeof(in), "%s(%s)|%s", NARROW_HEAD, content, end);
    assert_http_fed(&feed, bytes, strlen(bytes), in, NULL);
}

/* A chunk may have 4 KiB of them; all together 128 bytes a chunk, and 16 KiB more. */
TEST(http1_request, with_many_extensions)
{
    char *bytes = malloc(100000), *to = bytes + sprintf(bytes, "%s", NARROW_CHUNKED), *few;

    for (int i = 0; i < 600; i++)
        to = put_extended(to, 129);
    strcpy(to, "0\r\n\r\n");
    assert_extended(bytes, 600, "end");
    to = bytes + strlen(NARROW_CHUNKED);
    for (int i = 0; i < 4; i++) {
        few = to;
        to = put_extended(to, 4096);
    }
    strcpy(to, "0\r\n\r\n");
    assert_extended(bytes, 4, "end");
    strcpy(put_extended(to, 4096), "0\r\n\r\n");
    assert_extended(bytes, 4, "refused(400)");
    strcpy(put_extended(few, 4097), "0\r\n\r\n");
    assert_extended(bytes, 3, "refused(400)");
    free(bytes);
}

/* A head that is too long to be copied, with more fields than fit behind it. */
TEST(http1_request, with_many_fields)
{
    char *bytes = malloc(20000), *in = malloc(20000), *to = bytes, *note = in;

    to += sprintf(to, "GET / HTTP/1.1\r\nHost: h\r\n");
    note += sprintf(note, "GET / 1.1 {Host: h");
    for (int i = 0; i < 99; i++) {
        to += sprintf(to, "X-Field-%d: value number %d\r\n", i, i);
        note += sprintf(note, "|X-Field-%d: value number %d", i, i);
    }
    (void)sprintf(to, "\r\n");
    (void)sprintf(note, "} 0|end");
    assert_http_fed(&feed, bytes, strlen(bytes), in, NULL);
    free(bytes);
    free(in);
}
