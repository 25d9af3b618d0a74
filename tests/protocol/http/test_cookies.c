/* SPDX-License-Identifier: Apache-2.0 */
#include <weir/http_cookies.h>

#include <stdio.h>

#include "support/memory.h"
#include "support/test.h"

static weir_http_request *new_request(void)
{
    weir_http_request *request = NULL;

    assert_int_equal(weir_http_request_create("GET", "/", &request), 0);
    return request;
}

static void release(weir_http_request *request)
{
    weir_msg_release(weir_http_request_msg(request));
}

static void assert_next(weir_span *rest, const char *name, const char *value)
{
    weir_span found_name, found_value;

    assert_true(weir_http_cookie_next(rest, &found_name, &found_value));
    assert_true(weir_span_equal(found_name, weir_span_of_text(name)));
    assert_true(weir_span_equal(found_value, weir_span_of_text(value)));
}

TEST(cookies, of_a_request_are_taken_apart)
{
    weir_span rest = weir_span_of_text("a=1; b=\"2\";c=x=y;; d ;e=;\tf=g h ; =i; (=j; k=\"");
    weir_span name, value;

    assert_next(&rest, "a", "1");
    assert_next(&rest, "b", "2");
    assert_next(&rest, "c", "x=y");
    assert_next(&rest, "e", "");
    assert_next(&rest, "f", "g h");
    assert_next(&rest, "k", "\"");
    assert_false(weir_http_cookie_next(&rest, &name, &value));
    assert_false(weir_http_cookie_next(&rest, &name, &value));
}

TEST(cookies, are_found_in_all_fields)
{
    weir_http_request *request = new_request();
    weir_http_headers *headers = weir_http_request_headers(request);

    assert_null(weir_http_cookie_get(headers, "a").data);
    assert_int_equal(weir_http_headers_add_text(headers, WEIR_HTTP_COOKIE, "a=1; b=2"), 0);
    assert_int_equal(weir_http_headers_add_text(headers, WEIR_HTTP_COOKIE, "c=3; a=4"), 0);
    assert_true(weir_span_equal(weir_http_cookie_get(headers, "a"), weir_span_of_text("1")));
    assert_true(weir_span_equal(weir_http_cookie_get(headers, "c"), weir_span_of_text("3")));
    assert_null(weir_http_cookie_get(headers, "A").data);
    assert_null(weir_http_cookie_get(headers, "").data);
    release(request);
}

/* ---- Set-Cookie ---- */

/* The field that the options give; "refused" if none. */
static void assert_set(const char *expected, const weir_http_cookie_options *options)
{
    weir_http_request *request = new_request();
    weir_http_headers *headers = weir_http_request_headers(request);
    char text[256] = "refused";
    int err = weir_http_cookie_set(headers, options);

    if (err)
        assert_int_equal(err, -EINVAL);
    if (!err) {
        weir_span value = weir_http_headers_get(headers, WEIR_HTTP_SET_COOKIE);

        (void)snprintf(text, sizeof(text), "%.*s", (int)value.length, (const char *)value.data);
    }
    assert_int_equal(weir_http_headers_count(headers), err ? 0 : 1);
    release(request);
    assert_string_equal(text, expected);
}

#define SET(...) WEIR_HTTP_COOKIE_OPTIONS(__VA_ARGS__)

TEST(cookies, are_set_with_all_attributes)
{
    assert_set("a=", SET(.name = "a"));
    assert_set("a=b", SET(.name = "a", .value = "b"));
    assert_set("a=\"b\"", SET(.name = "a", .value = "\"b\""));
    assert_set("a=b; Expires=Sun, 06 Nov 1994 08:49:37 GMT; Max-Age=60; Domain=example.org; "
               "Path=/x; Secure; HttpOnly; SameSite=None; Partitioned",
               SET(.name = "a", .value = "b", .domain = "example.org", .path = "/x",
                   .expires = 784111777, .max_age_seconds = 60, .secure = true, .http_only = true,
                   .same_site = WEIR_HTTP_SAME_SITE_NONE, .partitioned = true));
    assert_set("a=; Max-Age=0", SET(.name = "a", .max_age_seconds = WEIR_OFF));
    assert_set("a=; SameSite=Lax", SET(.name = "a", .same_site = WEIR_HTTP_SAME_SITE_LAX));
    assert_set("a=; SameSite=Strict", SET(.name = "a", .same_site = WEIR_HTTP_SAME_SITE_STRICT));
    assert_set("__Host-a=b; Path=/; Secure",
               SET(.name = "__Host-a", .value = "b", .path = "/", .secure = true));
    assert_set("__Secure-a=; Domain=a.b; Secure",
               SET(.name = "__Secure-a", .domain = "a.b", .secure = true));
}

TEST(cookies, that_browsers_would_refuse_are_not_set)
{
    assert_set("refused", NULL);
    assert_set("refused", SET(.value = "b"));
    assert_set("refused", SET(.name = ""));
    assert_set("refused", SET(.name = "a b"));
    assert_set("refused", SET(.name = "a=b"));
    assert_set("refused", SET(.name = "a", .value = "b;c"));
    assert_set("refused", SET(.name = "a", .value = "b c"));
    assert_set("refused", SET(.name = "a", .value = "b\r\nX: y"));
    assert_set("refused", SET(.name = "a", .value = "\""));
    assert_set("refused", SET(.name = "a", .value = "b,c"));
    assert_set("refused", SET(.name = "a", .path = "b"));
    assert_set("refused", SET(.name = "a", .path = "/;b"));
    assert_set("refused", SET(.name = "a", .path = "/\n"));
    assert_set("refused", SET(.name = "a", .domain = "b;c"));
    assert_set("refused", SET(.name = "a", .domain = "b c"));
    assert_set("refused", SET(.name = "a", .max_age_seconds = -2));
    assert_set("refused", SET(.name = "a", .expires = -1));
    assert_set("refused", SET(.name = "a", .same_site = WEIR_HTTP_SAME_SITE_NONE));
    assert_set("refused", SET(.name = "a", .same_site = (enum weir_http_same_site)4));
    assert_set("refused", SET(.name = "a", .partitioned = true));
    assert_set("refused", SET(.name = "__Secure-a"));
    assert_set("refused", SET(.name = "__host-a", .path = "/"));
    assert_set("refused", SET(.name = "__Host-a", .secure = true));
    assert_set("refused", SET(.name = "__Host-a", .secure = true, .path = "/a"));
    assert_set("refused", SET(.name = "__Host-a", .secure = true, .path = "/", .domain = "a.b"));
}

TEST(cookies, that_are_too_long_are_not_set)
{
    weir_http_request *request = new_request();
    weir_http_headers *headers = weir_http_request_headers(request);
    char text[4097];

    memset(text, 'x', sizeof(text));
    text[4096] = '\0';
    assert_int_equal(weir_http_cookie_set(headers, SET(.name = "a", .value = text)), WEIR_ETOOLONG);
    text[4095] = '\0';
    assert_int_equal(weir_http_cookie_set(headers, SET(.name = "a", .value = text)), 0);
    text[0] = '/';
    assert_int_equal(weir_http_cookie_set(headers, SET(.name = "a", .path = text)), WEIR_ETOOLONG);
    release(request);
}

TEST(cookies, are_not_set_without_memory)
{
    weir_http_request *request;
    int err;

    for (unsigned n = 1;; n++) {
        request = new_request();
        test_memory_fail_at(n);
        err = weir_http_cookie_set(weir_http_request_headers(request),
                                   SET(.name = "a", .value = "b", .path = "/", .secure = true));
        release(request);
        if (!test_memory_failed())
            break;
        assert_int_equal(err, -ENOMEM);
    }
    test_memory_fail_at(0);
    assert_int_equal(err, 0);
}

/* ---- received ---- */

/* name|value|domain|path|expires|max-age|flags */
static void assert_received(const char *text, const char *expected)
{
    weir_http_set_cookie cookie;
    char found[512] = "refused";

    if (weir_http_set_cookie_parse(weir_span_of_text(text), &cookie) == 0)
        (void)snprintf(found, sizeof(found), "%.*s|%.*s|%.*s|%.*s|%lld|%lld|%s%s%s%d",
                       (int)cookie.name.length, (const char *)cookie.name.data,
                       (int)cookie.value.length, (const char *)cookie.value.data,
                       (int)cookie.domain.length, (const char *)cookie.domain.data,
                       (int)cookie.path.length, (const char *)cookie.path.data,
                       cookie.expires == WEIR_NEVER ? -1 : (long long)cookie.expires,
                       cookie.max_age_seconds == WEIR_NEVER ? -1LL
                                                            : (long long)cookie.max_age_seconds,
                       cookie.secure ? "S" : "", cookie.http_only ? "H" : "",
                       cookie.partitioned ? "P" : "", (int)cookie.same_site);
    assert_string_equal(found, expected);
}

TEST(cookies, that_are_received_are_parsed)
{
    assert_received("a=b", "a|b|||-1|-1|0");
    assert_received(" a = b c ; Secure", "a|b c|||-1|-1|S0");
    assert_received("a=\"b\"; path=/x ; HTTPONLY;PARTITIONED; samesite=strict",
                    "a|\"b\"||/x|-1|-1|HP2");
    assert_received("a=b=c; Domain=.Example.org; Path=x", "a|b=c|Example.org||-1|-1|0");
    assert_received("a=; Expires=Sun, 06 Nov 1994 08:49:37 GMT; Max-Age=-5", "a||||784111777|-5|0");
    assert_received("a=; Expires=soon; Max-Age=5x", "a||||-1|-1|0");
    assert_received("a=; Max-Age=99999999999999999999999999", "a||||-1|99999999999999999|0");
    assert_received("a=; Path=/a; Path=/b; SameSite=Lax; SameSite=other", "a|||/b|-1|-1|0");
    assert_received("a=;;=;x;; secure=yes", "a||||-1|-1|S0");
    assert_received("", "refused");
    assert_received("a", "refused");
    assert_received("=b", "refused");
    assert_received("; a=b", "refused");
    assert_received("a=b\x01", "refused");
    assert_received("a=b; path=/\x7f", "refused");
}
