/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <string.h>

#include <weir/http.h>

#include "protocol/http/names.h"
#include "support/test.h"

TEST(names, are_found_in_any_case)
{
    char text[64];

    for (int name = WEIR_HTTP_OTHER + 1; name < WEIR_HTTP_NAME_COUNT; name++) {
        const char *spelling = weir_http_name_text((enum weir_http_name)name);

        assert_true(strlen(spelling) < sizeof(text));
        assert_int_equal(weir_http_name_of(weir_span_of_text(spelling)), name);
        for (size_t i = 0; i <= strlen(spelling); i++)
            text[i] = (char)toupper((unsigned char)spelling[i]);
        assert_int_equal(weir_http_name_of(weir_span_of_text(text)), name);
        for (size_t i = 0; i <= strlen(spelling); i++)
            text[i] = (char)tolower((unsigned char)spelling[i]);
        assert_int_equal(weir_http_name_of(weir_span_of_text(text)), name);
    }
}

/* Every single-byte change of a name is another name, unless it changes only the case. */
TEST(names, are_not_mistaken_for_others)
{
    char text[64];

    for (int name = WEIR_HTTP_OTHER + 1; name < WEIR_HTTP_NAME_COUNT; name++) {
        const char *spelling = weir_http_name_text((enum weir_http_name)name);
        size_t length = strlen(spelling);

        for (size_t i = 0; i < length; i++)
            for (int byte = 0; byte < 256; byte++) {
                memcpy(text, spelling, length);
                text[i] = (char)byte;
                if (tolower(byte) == tolower((unsigned char)spelling[i]))
                    continue;
                assert_int_not_equal(weir_http_name_of(weir_span_of(text, length)), name);
            }
        assert_int_not_equal(weir_http_name_of(weir_span_of(spelling, length - 1)), name);
        memcpy(text, spelling, length);
        text[length] = 'x';
        assert_int_not_equal(weir_http_name_of(weir_span_of(text, length + 1)), name);
    }
    assert_int_equal(weir_http_name_of(weir_span_of("", 0)), WEIR_HTTP_OTHER);
    assert_int_equal(weir_http_name_of(weir_span_of("x", 1)), WEIR_HTTP_OTHER);
    assert_string_equal(weir_http_name_text((enum weir_http_name)10000), "");
}

TEST(names, of_methods_are_case_sensitive)
{
    for (int method = WEIR_HTTP_METHOD_GET; method <= WEIR_HTTP_METHOD_PATCH; method++) {
        const char *text = weir_http_method_text((enum weir_http_method)method);

        assert_int_equal(weir_http_method_of(weir_span_of_text(text)), method);
        assert_int_equal(weir_http_method_of(weir_span_of(text, strlen(text) - 1)),
                         WEIR_HTTP_METHOD_OTHER);
    }
    assert_int_equal(weir_http_method_of(weir_span_of_text("get")), WEIR_HTTP_METHOD_OTHER);
    assert_int_equal(weir_http_method_of(weir_span_of_text("PUSH")), WEIR_HTTP_METHOD_OTHER);
    assert_int_equal(weir_http_method_of(weir_span_of_text("X")), WEIR_HTTP_METHOD_OTHER);
    assert_string_equal(weir_http_method_text((enum weir_http_method)100), "");
}

TEST(names, list_elements_are_separated_by_commas_outside_of_quotes)
{
    weir_span list = weir_span_of_text(" , a ,b\t,, \"c,\\\"d\" ,e"), element;
    static const char *const expected[] = {"a", "b", "\"c,\\\"d\"", "e"};

    for (size_t i = 0; i < 4; i++) {
        assert_true(weir__http_list_next(&list, &element));
        assert_int_equal(element.length, strlen(expected[i]));
        assert_memory_equal(element.data, expected[i], element.length);
    }
    assert_false(weir__http_list_next(&list, &element));
}
