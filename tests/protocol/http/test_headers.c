/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <weir/error.h>
#include <weir/http.h>

#include "support/memory.h"
#include "support/protocol/http/http_text.h"
#include "support/test.h"

static weir_http_response *open(void)
{
    weir_http_response *response = NULL;

    assert_int_equal(weir_http_response_create(200, &response), 0);
    return response;
}

static void finish(weir_http_response *response)
{
    weir_msg_release(weir_http_response_msg(response));
}

TEST(headers, keep_order_and_duplicates)
{
    weir_http_response *response = open();
    weir_http_headers *headers = weir_http_response_headers(response);
    weir_span value;
    size_t index = 0;

    assert_int_equal(weir_http_headers_add_text(headers, WEIR_HTTP_SET_COOKIE, "a=1"), 0);
    assert_int_equal(
        weir_http_headers_add_named(headers, weir_span_of_text("X-Y"), weir_span_of_text(" \tz ")),
        0);
    assert_int_equal(weir_http_headers_add_text(headers, WEIR_HTTP_SET_COOKIE, "b=2"), 0);
    assert_int_equal(weir_http_headers_add_named(headers, weir_span_of_text("content-type"),
                                                 weir_span_of_text("")),
                     0);
    assert_fields(headers, "Set-Cookie: a=1|X-Y: z|Set-Cookie: b=2|content-type: ");
    assert_int_equal(weir_http_headers_count(headers), 4);
    assert_int_equal(weir_http_headers_at(headers, 1).id, WEIR_HTTP_OTHER);
    assert_int_equal(weir_http_headers_at(headers, 3).id, WEIR_HTTP_CONTENT_TYPE);
    assert_true(weir_http_headers_next(headers, WEIR_HTTP_SET_COOKIE, &index, &value));
    assert_span_text(value, "a=1");
    assert_true(weir_http_headers_next(headers, WEIR_HTTP_SET_COOKIE, &index, &value));
    assert_span_text(value, "b=2");
    assert_false(weir_http_headers_next(headers, WEIR_HTTP_SET_COOKIE, &index, &value));
    assert_non_null(weir_http_headers_get(headers, WEIR_HTTP_CONTENT_TYPE).data);
    assert_null(weir_http_headers_get(headers, WEIR_HTTP_HOST).data);
    assert_null(weir_http_headers_get(headers, WEIR_HTTP_OTHER).data);
    assert_span_text(weir_http_headers_get_named(headers, "x-y"), "z");
    assert_span_text(weir_http_headers_get_named(headers, "SET-cookie"), "a=1");
    assert_null(weir_http_headers_get_named(headers, "x-z").data);
    finish(response);
}

TEST(headers, are_set_and_removed)
{
    weir_http_response *response = open();
    weir_http_headers *headers = weir_http_response_headers(response);

    assert_int_equal(weir_http_headers_set_text(headers, WEIR_HTTP_VARY, "a"), 0);
    assert_int_equal(weir_http_headers_add_text(headers, WEIR_HTTP_ETAG, "\"1\""), 0);
    assert_int_equal(weir_http_headers_add_text(headers, WEIR_HTTP_VARY, "b"), 0);
    assert_int_equal(
        weir_http_headers_add_named(headers, weir_span_of_text("X"), weir_span_of_text("1")), 0);
    assert_int_equal(
        weir_http_headers_add_named(headers, weir_span_of_text("Y"), weir_span_of_text("1")), 0);
    assert_int_equal(
        weir_http_headers_add_named(headers, weir_span_of_text("x"), weir_span_of_text("2")), 0);
    assert_int_equal(weir_http_headers_set_text(headers, WEIR_HTTP_VARY, "c"), 0);
    assert_fields(headers, "Vary: c|ETag: \"1\"|X: 1|Y: 1|x: 2");
    assert_int_equal(weir_http_headers_remove(headers, WEIR_HTTP_VARY), 1);
    assert_null(weir_http_headers_get(headers, WEIR_HTTP_VARY).data);
    assert_int_equal(weir_http_headers_remove(headers, WEIR_HTTP_VARY), 0);
    assert_int_equal(weir_http_headers_remove(headers, WEIR_HTTP_OTHER), 0);
    assert_int_equal(weir_http_headers_remove_named(headers, "X"), 2);
    assert_int_equal(weir_http_headers_remove_named(headers, "etag"), 1);
    assert_fields(headers, "Y: 1");
    finish(response);
}

TEST(headers, refuse_what_would_break_the_stream)
{
    static const char *const wrong[] = {"a\rb", "a\nb", "a\r\nSet-Cookie: b", "\x01", "\x7f"};
    weir_http_response *response = open();
    weir_http_headers *headers = weir_http_response_headers(response);

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_int_equal(weir_http_headers_add_text(headers, WEIR_HTTP_VARY, wrong[i]), -EINVAL);
        assert_int_equal(weir_http_headers_set_text(headers, WEIR_HTTP_VARY, wrong[i]), -EINVAL);
        assert_int_equal(weir_http_headers_add_named(headers, weir_span_of_text("X"),
                                                     weir_span_of_text(wrong[i])),
                         -EINVAL);
        assert_int_equal(weir_http_headers_add_named(headers, weir_span_of_text(wrong[i]),
                                                     weir_span_of_text("x")),
                         -EINVAL);
    }
    assert_int_equal(weir_http_headers_add(headers, WEIR_HTTP_VARY, weir_span_of("a\0b", 3)),
                     -EINVAL);
    assert_int_equal(weir_http_headers_add_text(headers, WEIR_HTTP_OTHER, "x"), -EINVAL);
    assert_int_equal(weir_http_headers_set_text(headers, WEIR_HTTP_OTHER, "x"), -EINVAL);
    assert_int_equal(weir_http_headers_add_text(headers, WEIR_HTTP_NAME_COUNT, "x"), -EINVAL);
    assert_int_equal(
        weir_http_headers_add_named(headers, weir_span_of_text(""), weir_span_of_text("x")),
        -EINVAL);
    assert_int_equal(
        weir_http_headers_add_named(headers, weir_span_of_text("a b"), weir_span_of_text("x")),
        -EINVAL);
    assert_int_equal(weir_http_headers_add_text(headers, WEIR_HTTP_VARY, "a\tb \xff"), 0);
    assert_fields(headers, "Vary: a\tb \xff");
    finish(response);
}

TEST(headers, find_tokens_in_lists)
{
    weir_http_response *response = open();
    weir_http_headers *headers = weir_http_response_headers(response);

    assert_false(weir_http_headers_have_token(headers, WEIR_HTTP_CONNECTION, "close"));
    assert_int_equal(
        weir_http_headers_add_text(headers, WEIR_HTTP_CONNECTION, "x, Keep-Alive ,closed"), 0);
    assert_true(weir_http_headers_have_token(headers, WEIR_HTTP_CONNECTION, "keep-alive"));
    assert_false(weir_http_headers_have_token(headers, WEIR_HTTP_CONNECTION, "close"));
    assert_int_equal(weir_http_headers_add_text(headers, WEIR_HTTP_CONNECTION, "CLOSE"), 0);
    assert_true(weir_http_headers_have_token(headers, WEIR_HTTP_CONNECTION, "close"));
    finish(response);
}

TEST(headers, lose_those_of_one_connection)
{
    weir_http_response *response = open();
    weir_http_headers *headers = weir_http_response_headers(response);
    static const struct {
        const char *name, *value;
    } fields[] = {{"Host", "h"},
                  {"Connection", "x-a, Host,Connection"},
                  {"X-A", "1"},
                  {"Keep-Alive", "5"},
                  {"connection", "age, X-b"},
                  {"TE", "trailers"},
                  {"X-C", "3"},
                  {"Age", "4"},
                  {"x-B", "2"},
                  {"Upgrade", "h2c"},
                  {"Proxy-Connection", "close"},
                  {"Transfer-Encoding", "chunked"}};

    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
        assert_int_equal(weir_http_headers_add_named(headers, weir_span_of_text(fields[i].name),
                                                     weir_span_of_text(fields[i].value)),
                         0);
    weir_http_headers_remove_hop_by_hop(headers);
    assert_fields(headers, "Host: h|X-C: 3");
    finish(response);
}

/* Values of the headers themselves stay right while the area grows. */
TEST(headers, grow_and_take_their_own_text)
{
    weir_http_response *response = open();
    weir_http_headers *headers = weir_http_response_headers(response);
    char value[32];

    assert_int_equal(weir_http_headers_add_text(headers, WEIR_HTTP_LINK, "0123456789"), 0);
    for (int i = 0; i < 300; i++)
        assert_int_equal(
            weir_http_headers_add_named(headers, weir_span_of_text("X"),
                                        weir_http_headers_get(headers, WEIR_HTTP_LINK)),
            0);
    for (int i = 0; i < 300; i++) {
        (void)snprintf(value, sizeof(value), "%d", i);
        assert_int_equal(weir_http_headers_add_text(headers, WEIR_HTTP_VARY, value), 0);
    }
    for (size_t i = 0; i <= 300; i++)
        assert_span_text(weir_http_headers_at(headers, i).value, "0123456789");
    assert_span_text(weir_http_headers_at(headers, 301).value, "0");
    assert_span_text(weir_http_headers_at(headers, 600).value, "299");
    finish(response);
}

TEST(headers, are_limited)
{
    weir_http_response *response = open();
    weir_http_headers *headers = weir_http_response_headers(response);
    char value[1024];
    int err = 0, count = 0;

    memset(value, 'v', sizeof(value));
    while (err == 0 && count++ < 100)
        err = weir_http_headers_add(headers, WEIR_HTTP_LINK, weir_span_of(value, sizeof(value)));
    assert_int_equal(err, WEIR_ETOOLONG);
    assert_int_equal(count, 65);
    assert_int_equal(weir_http_headers_count(headers), 64);
    finish(response);
}

TEST(headers, are_appended_whole_or_not_at_all)
{
    weir_http_response *a = open(), *b = open();
    weir_http_headers *to = weir_http_response_headers(a), *from = weir_http_response_headers(b);
    char value[2000];

    memset(value, 'v', sizeof(value));
    assert_int_equal(weir_http_headers_add_text(to, WEIR_HTTP_AGE, "1"), 0);
    assert_int_equal(weir_http_headers_add_text(from, WEIR_HTTP_VARY, "x"), 0);
    assert_int_equal(
        weir_http_headers_add_named(from, weir_span_of_text("X-y"), weir_span_of_text("z")), 0);
    assert_int_equal(weir_http_headers_append(to, from), 0);
    assert_fields(to, "Age: 1|Vary: x|X-y: z");
    assert_int_equal(weir_http_headers_add(from, WEIR_HTTP_ETAG, weir_span_of(value, 2000)), 0);
    for (unsigned n = 1;; n++) {
        int err;

        test_memory_fail_at(n);
        err = weir_http_headers_append(to, from);
        if (!test_memory_failed())
            break;
        assert_int_equal(err, -ENOMEM);
        assert_fields(to, "Age: 1|Vary: x|X-y: z");
        assert_null(weir_http_headers_get(to, WEIR_HTTP_ETAG).data);
    }
    test_memory_fail_at(0);
    finish(a);
    finish(b);
}
