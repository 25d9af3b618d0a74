/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RESP values: creating and reading.
 */
#include <weir/resp.h>

#include <errno.h>
#include <locale.h>
#include <math.h>

#include <weir/buf.h>

#include "protocol/resp/resp_number.h"
#include "support/memory.h"
#include "support/test.h"

static weir_resp *text(enum weir_resp_kind kind, const char *words)
{
    weir_resp *value = NULL;

    assert_int_equal(weir_resp_create_text(kind, words, strlen(words), &value), 0);
    return value;
}

static void assert_refused(enum weir_resp_kind kind, const char *words)
{
    weir_resp *value = NULL;

    assert_int_equal(weir_resp_create_text(kind, words, strlen(words), &value), -EINVAL);
    assert_null(value);
}

TEST(resp, a_text_is_any_kind_of_text)
{
    weir_resp *value = text(WEIR_RESP_BULK, "a\r\nb");

    assert_int_equal(weir_resp_kind(value), WEIR_RESP_BULK);
    assert_true(weir_resp_is(value, "a\r\nb"));
    assert_false(weir_resp_is(value, "a"));
    assert_int_equal(weir_resp_text(value).length, 4);
    assert_ptr_equal(weir_resp_of(weir_resp_msg(value)), value);
    assert_int_equal(weir_resp_count(value), 0);
    assert_null(weir_resp_at(value, 0));
    weir_resp_release(value);
}

TEST(resp, a_text_may_be_a_buffer_which_is_consumed_on_failure)
{
    weir_resp *value = NULL;
    const void *bytes;
    weir_buf *buf;

    assert_int_equal(weir_buf_create_from("hello", 5, &buf), 0);
    bytes = weir_buf_bytes(buf);
    assert_int_equal(weir_resp_create_from(WEIR_RESP_BULK, buf, &value), 0);
    assert_true(weir_resp_is(value, "hello"));
    assert_ptr_equal(weir_resp_text(value).data, bytes);
    weir_resp_release(value);

    value = NULL;
    assert_int_equal(weir_buf_create_from("12a", 3, &buf), 0);
    assert_int_equal(weir_resp_create_from(WEIR_RESP_BIG_NUMBER, buf, &value), -EINVAL);
    assert_null(value);
}

TEST(resp, a_text_must_fit_its_kind)
{
    assert_refused(WEIR_RESP_SIMPLE, "a\nb");
    assert_refused(WEIR_RESP_ERROR, "a\rb");
    assert_refused(WEIR_RESP_BIG_NUMBER, "12x");
    assert_refused(WEIR_RESP_VERBATIM, "txt");
    assert_refused(WEIR_RESP_INTEGER, "1");
    assert_refused(WEIR_RESP_ARRAY, "");
}

TEST(resp, the_text_of_a_verbatim_excludes_its_format)
{
    weir_resp *value = text(WEIR_RESP_VERBATIM, "mkd:*hi*");

    assert_true(weir_resp_is(value, "*hi*"));
    assert_int_equal(weir_buf_readable(weir_resp_buf(value)), 8);
    weir_resp_release(value);
}

TEST(resp, numbers_are_converted_from_every_kind)
{
    static const struct {
        const char *text;
        int64_t integer;
        double number;
    } rows[] = {{"42", 42, 42}, {"-1.5", 0, -1.5}, {"x", 0, 0}, {"1e2", 0, 100}};
    weir_resp *value = NULL;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        value = text(WEIR_RESP_BULK, rows[i].text);
        assert_int_equal(weir_resp_integer(value), rows[i].integer);
        assert_true(weir_resp_double(value) == rows[i].number);
        weir_resp_release(value);
    }
    assert_int_equal(weir_resp_create_double(-2.75, &value), 0);
    assert_int_equal(weir_resp_integer(value), -2);
    weir_resp_release(value);
    assert_int_equal(weir_resp_create_double(1e300, &value), 0);
    assert_int_equal(weir_resp_integer(value), INT64_MAX);
    weir_resp_release(value);
    assert_int_equal(weir_resp_create_boolean(true, &value), 0);
    assert_int_equal(weir_resp_integer(value), 1);
    weir_resp_release(value);
}

TEST(resp, a_map_is_asked_by_key)
{
    weir_resp *map = NULL, *number = NULL;

    assert_int_equal(weir_resp_create_aggregate(WEIR_RESP_MAP, &map), 0);
    assert_int_equal(weir_resp_create_integer(3, &number), 0);
    assert_int_equal(weir_resp_add(map, text(WEIR_RESP_SIMPLE, "proto")), 0);
    assert_int_equal(weir_resp_add(map, number), 0);
    assert_int_equal(weir_resp_integer(weir_resp_find(map, "proto")), 3);
    assert_null(weir_resp_find(map, "mode"));
    assert_int_equal(weir_resp_count(map), 2);
    weir_resp_release(map);
}

TEST(resp, an_element_may_live_longer_than_its_array)
{
    weir_resp *array = NULL, *element = text(WEIR_RESP_BULK, "a");

    assert_int_equal(weir_resp_create_aggregate(WEIR_RESP_ARRAY, &array), 0);
    assert_int_equal(weir_resp_add(array, weir_resp_retain(element)), 0);
    weir_resp_release(array);
    assert_true(weir_resp_is(element, "a"));
    weir_resp_release(element);
}

TEST(resp, only_aggregates_have_elements_and_only_attributes_are_attributes)
{
    weir_resp *value = text(WEIR_RESP_BULK, "a"), *array = NULL, *attributes = NULL, *head = NULL;

    assert_int_equal(weir_resp_create_aggregate(WEIR_RESP_BULK, &array), -EINVAL);
    assert_int_equal(weir_resp_create_aggregate(WEIR_RESP_ARRAY, &array), 0);
    assert_int_equal(weir_resp_create_aggregate(WEIR_RESP_ATTRIBUTE, &attributes), 0);
    assert_int_equal(weir_resp_create_bulk_header(5, &head), 0);
    assert_int_equal(weir_resp_add(value, weir_resp_retain(array)), -EINVAL);
    assert_int_equal(weir_resp_add(array, weir_resp_retain(attributes)), -EINVAL);
    assert_int_equal(weir_resp_add(array, head), -EINVAL);
    assert_int_equal(weir_resp_set_attributes(value, array), -EINVAL);
    assert_int_equal(weir_resp_set_attributes(value, attributes), 0);
    assert_ptr_equal(weir_resp_attributes(value), attributes);
    weir_resp_release(value);
}

TEST(resp, a_double_is_written_the_same_in_every_locale)
{
    char digits[WEIR__RESP_NUMBER_MAX];
    double number = 0;

    if (setlocale(LC_NUMERIC, "de_DE.UTF-8") == NULL)
        (void)setlocale(LC_NUMERIC, "C");
    assert_int_equal(weir__resp_write_double(0.5, digits), 3);
    assert_memory_equal(digits, "0.5", 3);
    assert_int_equal(weir__resp_read_double(weir_span_of_text("-12.25"), &number), 0);
    assert_true(number == -12.25);
    (void)setlocale(LC_NUMERIC, "C");
    assert_int_equal(weir__resp_write_double((double)NAN, digits), 3);
    assert_int_equal(weir__resp_read_double(weir_span_of_text("nan"), &number), 0);
    assert_true(isnan(number));
}

TEST(resp, survives_allocation_failures)
{
    weir_resp *array = NULL, *element = NULL;
    int err = -ENOMEM;

    for (unsigned n = 1; err == -ENOMEM; n++) {
        test_memory_fail_at(n);
        err = weir_resp_create_aggregate(WEIR_RESP_ARRAY, &array);
        if (err < 0)
            continue;
        err = weir_resp_create_text(WEIR_RESP_BULK, "abc", 3, &element);
        if (err == 0)
            err = weir_resp_add(array, element);
        weir_resp_release(array);
    }
    assert_int_equal(err, 0);
    test_memory_fail_at(0);
}
