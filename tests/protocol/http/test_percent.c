/* SPDX-License-Identifier: Apache-2.0 */
#include <weir/http_uri.h>

#include "support/test.h"

static void assert_decoded(ssize_t (*decode)(weir_span text, void *to), const char *text,
                           const char *expected)
{
    char found[64];
    ssize_t length = decode(weir_span_of_text(text), found);

    if (expected == NULL) {
        assert_int_equal(length, WEIR_EMALFORMED);
        return;
    }
    assert_int_equal(length, strlen(expected));
    assert_memory_equal(found, expected, strlen(expected));
}

TEST(percent, is_decoded)
{
    assert_decoded(weir_http_percent_decode, "", "");
    assert_decoded(weir_http_percent_decode, "a%20b+c", "a b+c");
    assert_decoded(weir_http_percent_decode, "%c3%A4%2f", "\xc3\xa4/");
    assert_decoded(weir_http_percent_decode, "%2525", "%25");
    assert_decoded(weir_http_percent_decode, "%", NULL);
    assert_decoded(weir_http_percent_decode, "a%4", NULL);
    assert_decoded(weir_http_percent_decode, "%4g", NULL);
    assert_decoded(weir_http_percent_decode, "%%41", NULL);
    assert_decoded(weir_http_percent_decode, "%+1", NULL);
    assert_decoded(weir_http_query_decode, "a%20b+c%2B", "a b c+");
    assert_decoded(weir_http_query_decode, "%", NULL);
}

TEST(percent, is_decoded_in_place)
{
    char text[] = "%41%42c";

    assert_int_equal(weir_http_percent_decode(weir_span_of_text(text), text), 3);
    assert_memory_equal(text, "ABc", 3);
}

static void assert_buf(weir_buf *buf, const char *expected)
{
    assert_int_equal(weir_buf_readable(buf), strlen(expected));
    assert_memory_equal(weir_buf_bytes(buf), expected, strlen(expected));
    weir_buf_release(buf);
}

TEST(percent, is_encoded)
{
    weir_span text = weir_span_of_text("/a b~%&:@\xe4+");
    weir_buf *to = NULL;

    assert_int_equal(weir_buf_create(0, 0, &to), 0);
    assert_int_equal(weir_http_percent_encode(to, text, WEIR_HTTP_PERCENT_PATH), 0);
    assert_buf(to, "/a%20b~%25&:@%E4+");
    assert_int_equal(weir_buf_create(0, 0, &to), 0);
    assert_int_equal(weir_http_percent_encode(to, text, WEIR_HTTP_PERCENT_COMPONENT), 0);
    assert_int_equal(weir_http_percent_encode(to, weir_span_of("\0", 1), WEIR_HTTP_PERCENT_PATH),
                     0);
    assert_buf(to, "%2Fa%20b~%25%26%3A%40%E4%2B%00");
}

TEST(percent, every_byte_survives_encoding_and_decoding)
{
    uint8_t bytes[256], found[3 * 256];
    weir_buf *to = NULL;
    weir_span rest, name, value, all = weir_span_of(bytes, sizeof(bytes));

    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)i;
    for (int kind = WEIR_HTTP_PERCENT_COMPONENT; kind <= WEIR_HTTP_PERCENT_PATH; kind++) {
        assert_int_equal(weir_buf_create(0, 0, &to), 0);
        assert_int_equal(weir_http_percent_encode(to, all, (enum weir_http_percent)kind), 0);
        assert_int_equal(weir_http_percent_decode(weir_buf_span(to), found), sizeof(bytes));
        assert_memory_equal(found, bytes, sizeof(bytes));
        weir_buf_release(to);
    }
    assert_int_equal(weir_buf_create(0, 0, &to), 0);
    assert_int_equal(weir_http_query_add(to, all, all), 0);
    rest = weir_buf_span(to);
    assert_true(weir_http_query_next(&rest, &name, &value));
    assert_false(weir_http_query_next(&rest, &name, &value));
    assert_true(weir_http_query_find(weir_buf_span(to), all, &value));
    assert_int_equal(weir_http_query_decode(value, found), sizeof(bytes));
    assert_memory_equal(found, bytes, sizeof(bytes));
    weir_buf_release(to);
}

static void assert_next(weir_span *rest, const char *name, const char *value)
{
    weir_span found_name, found_value;

    assert_true(weir_http_query_next(rest, &found_name, &found_value));
    assert_true(weir_span_equal(found_name, weir_span_of_text(name)));
    assert_true(weir_span_equal(found_value, weir_span_of_text(value)));
    assert_non_null(found_value.data);
}

TEST(query, is_taken_apart)
{
    weir_span rest = weir_span_of_text("&&a=1&b&=c&d=&e=f=g&%41=+%20&"), name, value;

    assert_next(&rest, "a", "1");
    assert_next(&rest, "b", "");
    assert_next(&rest, "", "c");
    assert_next(&rest, "d", "");
    assert_next(&rest, "e", "f=g");
    assert_next(&rest, "%41", "+%20");
    assert_false(weir_http_query_next(&rest, &name, &value));
    assert_false(weir_http_query_next(&rest, &name, &value));
}

static const char *found_in(const char *query, const char *name)
{
    static char text[64];
    weir_span value;

    if (!weir_http_query_find(weir_span_of_text(query), weir_span_of_text(name), &value))
        return "none";
    memcpy(text, value.data, value.length);
    text[value.length] = '\0';
    return text;
}

TEST(query, finds_the_first_value_of_a_name)
{
    assert_string_equal(found_in("a=1&b=2&a=3", "a"), "1");
    assert_string_equal(found_in("a=1&b=2&a=3", "b"), "2");
    assert_string_equal(found_in("a=1", "c"), "none");
    assert_string_equal(found_in("", "a"), "none");
    assert_string_equal(found_in("ab=1&a%62c=2", "abc"), "2");
    assert_string_equal(found_in("a+b=1", "a b"), "1");
    assert_string_equal(found_in("a%=1&a%25=2", "a%"), "2");
    assert_string_equal(found_in("=x", ""), "x");
}

TEST(query, is_built_of_pairs)
{
    weir_buf *query = NULL;

    assert_int_equal(weir_buf_create(0, 0, &query), 0);
    assert_int_equal(weir_http_query_add(query, weir_span_of_text("a b"), weir_span_of_text("&")),
                     0);
    assert_int_equal(weir_http_query_add(query, weir_span_of_text("c"), weir_span_of_text("")), 0);
    assert_buf(query, "a+b=%26&c=");
}
