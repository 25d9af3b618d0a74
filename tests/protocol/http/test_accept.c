/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/http/accept.h"

#include <errno.h>

#include <weir/http_body.h>

#include "support/test.h"

static void assert_coding(const char *line, const char *expected)
{
    static const char *const codings[] = {"zstd", "br", "gzip"};
    weir_span value = weir_span_of_text(line);
    int found = weir__http_accept_coding(&value, 1, codings, 3);

    assert_in_range(found + 1, 0, 3);
    if (strcmp(found < 0 ? "identity" : codings[found], expected) != 0)
        fail_msg("%s: %d", line, found);
}

TEST(accept, chooses_the_coding_of_the_highest_quality)
{
    assert_coding("", "identity");
    assert_coding("gzip", "gzip");
    assert_coding("X-GZIP", "gzip");
    assert_coding("deflate", "identity");
    assert_coding("gzip, br, zstd", "zstd");
    assert_coding("gzip, br;q=0.9", "gzip");
    assert_coding("gzip;q=0.5, br;q=0.501", "br");
    assert_coding("gzip;Q=0.5 , br; q=0.5", "br");
    assert_coding("*", "zstd");
    assert_coding("*;q=0.1, gzip;q=0.2", "gzip");
    assert_coding("*;q=0, gzip", "gzip");
    assert_coding("*;q=0", "identity");
    assert_coding("gzip;q=0", "identity");
    assert_coding("gzip;q=0.001", "gzip");
    assert_coding("gzip;q=0.5, identity", "identity");
    assert_coding("gzip;q=0.5, identity;q=0.5", "gzip");
    assert_coding("identity;q=0, gzip;q=0.1", "gzip");
    assert_coding("zstd;q=0, *", "br");
    assert_coding(",, gzip ,", "gzip");
}

TEST(accept, chooses_no_coding_if_malformed)
{
    assert_coding("gzip;q=1.1", "identity");
    assert_coding("gzip;q=2", "identity");
    assert_coding("gzip;q=0.1234", "identity");
    assert_coding("gzip;q=.5", "identity");
    assert_coding("gzip;q=", "identity");
    assert_coding("gzip;q", "identity");
    assert_coding("gzip;q=-1", "identity");
    assert_coding("gzip;q=1.x", "identity");
    assert_coding("gzip br", "identity");
    assert_coding("gzip, b@r", "identity");
    assert_coding("gzip, br; q = 1", "identity");
}

TEST(accept, reads_all_lines)
{
    static const char *const codings[] = {"br", "gzip"};
    weir_span lines[] = {weir_span_of_text("br;q=0.5"), weir_span_of_text("gzip")};

    assert_int_equal(weir__http_accept_coding(lines, 2, codings, 2), 1);
    assert_int_equal(weir__http_accept_coding(lines, 1, codings, 2), 0);
    assert_int_equal(weir__http_accept_coding(NULL, 0, codings, 2), WEIR__HTTP_IDENTITY);
}

static void assert_type(const char *line, int expected)
{
    static const char *const types[] = {"application/json", "text/html;charset=utf-8", "text/plain",
                                        NULL};
    weir_http_request *request = NULL;
    int found;

    assert_int_equal(weir_http_request_create("GET", "/", &request), 0);
    if (line != NULL)
        assert_int_equal(
            weir_http_headers_add_text(weir_http_request_headers(request), WEIR_HTTP_ACCEPT, line),
            0);
    found = weir_http_accept_type(weir_http_request_headers(request), types);
    weir_msg_release(weir_http_request_msg(request));
    if (found != expected)
        fail_msg("%s: %d", line, found);
}

TEST(accept, chooses_the_type_by_the_most_specific_range)
{
    assert_type("*/*", 0);
    assert_type("text/*", 1);
    assert_type("text/plain", 2);
    assert_type("TEXT/Plain;q=0.3, text/*;q=0.5", 1);
    assert_type("text/*, text/html;q=0.1", 2);
    assert_type("text/*;q=0.5, text/html;charset=utf-8, application/json;q=0.9", 1);
    assert_type("text/html;charset=latin1, */*;q=0.1", 0);
    assert_type("text/html;charset=\"utf-8\";q=0.8, */*;q=0.1", 1);
    assert_type("application/json;q=0, */*", 1);
    assert_type("image/png", -ENOENT);
    assert_type("*/*;q=0", -ENOENT);
    assert_type("text", -ENOENT);
    assert_type("*/html", -ENOENT);
    assert_type("text/plain;q=x", -ENOENT);
    assert_type("text/plain;a", -ENOENT);
    assert_type(NULL, 0);
}

TEST(accept, reads_all_lines_of_types)
{
    static const char *const types[] = {"a/a", "b/b", NULL};
    weir_http_request *request = NULL;
    weir_http_headers *headers;

    assert_int_equal(weir_http_request_create("GET", "/", &request), 0);
    headers = weir_http_request_headers(request);
    assert_int_equal(weir_http_headers_add_text(headers, WEIR_HTTP_ACCEPT, "a/a;q=0.5"), 0);
    assert_int_equal(weir_http_accept_type(headers, types), 0);
    assert_int_equal(weir_http_headers_add_text(headers, WEIR_HTTP_ACCEPT, "*/*"), 0);
    assert_int_equal(weir_http_accept_type(headers, types), 1);
    assert_int_equal(weir_http_accept_type(headers, types + 2), -ENOENT);
    weir_msg_release(weir_http_request_msg(request));
}
