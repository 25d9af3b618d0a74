/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/http/chars.h"

#include "support/test.h"

static bool is_among(int byte, const char *chars)
{
    return byte != 0 && strchr(chars, byte) != NULL;
}

TEST(chars, the_table_is_that_of_the_grammars)
{
    for (int byte = 0; byte < 256; byte++) {
        bool digit = byte >= '0' && byte <= '9';
        bool alpha = (byte >= 'A' && byte <= 'Z') || (byte >= 'a' && byte <= 'z');
        bool visible = byte > ' ' && byte < 127;
        uint8_t of = (uint8_t)byte;

        assert_int_equal(weir__http_char_is(of, WEIR__HTTP_DIGIT), digit);
        assert_int_equal(weir__http_char_is(of, WEIR__HTTP_ALPHA), alpha);
        assert_int_equal(weir__http_char_is(of, WEIR__HTTP_UNRESERVED),
                         digit || alpha || is_among(byte, "-._~"));
        assert_int_equal(weir__http_char_is(of, WEIR__HTTP_SUB_DELIM),
                         is_among(byte, "!$&'()*+,;="));
        assert_int_equal(weir__http_char_is(of, WEIR__HTTP_HEX),
                         digit || is_among(byte, "abcdefABCDEF"));
        assert_int_equal(weir__http_char_is(of, WEIR__HTTP_TOKEN),
                         digit || alpha || is_among(byte, "!#$%&'*+-.^_`|~"));
        assert_int_equal(weir__http_char_is(of, WEIR__HTTP_COOKIE_OCTET),
                         visible && !is_among(byte, "\",;\\"));
        assert_int_equal(weir__http_char_is(of, WEIR__HTTP_COLON_AT), is_among(byte, ":@"));
        assert_int_equal(weir__http_char_is(of, WEIR__HTTP_VALUE),
                         visible || byte == ' ' || byte == '\t' || byte > 127);
        assert_int_equal(weir__http_char_is(of, WEIR__HTTP_TARGET), visible);
    }
}

TEST(chars, text_is_cut_trimmed_and_compared)
{
    weir_span rest = weir_span_of_text("a, B\t ,"), part;

    part = weir__http_cut(&rest, ',');
    assert_true(weir__http_is_text(part, "A"));
    part = weir__http_trimmed(weir__http_cut(&rest, ','));
    assert_true(weir__http_is_text(part, "b"));
    assert_non_null(rest.data);
    part = weir__http_cut(&rest, ',');
    assert_int_equal(part.length, 0);
    assert_null(rest.data);
    assert_false(weir__http_is_text(weir_span_of_text("ab"), "abc"));
    assert_false(weir__http_is_token(weir_span_of_text("")));
    assert_true(weir__http_is_token(weir_span_of_text("x-y")));
    assert_false(weir__http_is_token(weir_span_of_text("x y")));
}
