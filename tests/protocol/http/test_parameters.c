/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/http/parameters.h"

#include "protocol/http/chars.h"
#include "support/test.h"

static void assert_next(weir_span *rest, const char *name, const char *value)
{
    weir__http_parameter parameter;
    char text[64];
    size_t length;

    assert_int_equal(weir__http_parameters_next(rest, &parameter), 1);
    assert_true(weir__http_is_text(parameter.name, name));
    length = weir__http_unquote(&parameter, text);
    assert_true(weir_span_equal(weir_span_of(text, length), weir_span_of_text(value)));
}

TEST(parameters, are_taken_apart)
{
    weir_span rest = weir_span_of_text("text/html ; a=1;;B=\"x;\\\"y\\\\ \" ;\tc=\"\";");
    weir__http_parameter parameter;

    assert_true(weir__http_is_text(weir__http_parameters_begin(&rest), "text/html"));
    assert_int_equal(weir__http_parameters_find(rest, "C", &parameter), 1);
    assert_int_equal(weir__http_parameters_find(rest, "d", &parameter), 0);
    assert_next(&rest, "a", "1");
    assert_next(&rest, "b", "x;\"y\\ ");
    assert_next(&rest, "c", "");
    assert_int_equal(weir__http_parameters_next(&rest, &parameter), 0);
}

TEST(parameters, are_refused_if_malformed)
{
    static const char *const texts[] = {
        ";a",       ";a=",       ";=b",         ";a=b c", ";a =b",        ";a= b", ";a=\"b",
        ";a=\"b\\", ";a=\"b\"c", ";a=\"\x01\"", ";a=b,c", ";a=\"b\x7f\"", "x"};
    weir__http_parameter parameter;
    weir_span rest;

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        rest = weir_span_of_text(texts[i]);
        if (weir__http_parameters_next(&rest, &parameter) != WEIR_EMALFORMED)
            fail_msg("%s is accepted", texts[i]);
    }
}

TEST(parameters, lists_are_cut_at_commas_outside_of_quotes)
{
    weir_span rest = weir_span_of_text(" , a;b=\"c,\\\",d\" ,e, ,"), element;

    assert_true(weir__http_list_next(&rest, &element));
    assert_true(weir__http_is_text(element, "a;b=\"c,\\\",d\""));
    assert_true(weir__http_list_next(&rest, &element));
    assert_true(weir__http_is_text(element, "e"));
    assert_false(weir__http_list_next(&rest, &element));
    rest = weir_span_of_text("\"a,");
    assert_true(weir__http_list_next(&rest, &element));
    assert_int_equal(element.length, 3);
    assert_false(weir__http_list_next(&rest, &element));
}
