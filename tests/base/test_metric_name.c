/* SPDX-License-Identifier: Apache-2.0 */
/* The names of metrics. */
#include "support/test.h"

#include <errno.h>
#include <string.h>

#include "base/metric.h"

static int check(const char *name)
{
    return weir__metric_name_check((weir__metric_name){name});
}

TEST(metric_name, a_family_has_letters_digits_and_four_others)
{
    assert_int_equal(check("a"), 0);
    assert_int_equal(check("Az09_.#-"), 0);
    assert_int_equal(check("9"), 0);
    for (unsigned c = 1; c < 256; c++) {
        const char name[] = {'a', (char)c, '\0'};
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');

        if (!letter && !(c >= '0' && c <= '9') && strchr("_.#-", (int)c) == NULL)
            assert_int_equal(check(name), -EINVAL);
    }
    assert_int_equal(check(""), -EINVAL);
    assert_int_equal(check(NULL), -EINVAL);
}

TEST(metric_name, labels_are_keys_and_quoted_values)
{
    assert_int_equal(check("a{b=\"\"}"), 0);
    assert_int_equal(check("a{b=\"c\",_d1=\"e=,{}\",bb=\"\xc3\xa9\"}"), 0);
    assert_int_equal(check("a{b=\"\\\\\\\"\\n\\\\x\"}"), 0);
    assert_int_equal(check("{b=\"c\"}"), -EINVAL);
    assert_int_equal(check("a{}"), -EINVAL);
    assert_int_equal(check("a{"), -EINVAL);
    assert_int_equal(check("a}"), -EINVAL);
    assert_int_equal(check("a{b}"), -EINVAL);
    assert_int_equal(check("a{b=c}"), -EINVAL);
    assert_int_equal(check("a{b=\"c}"), -EINVAL);
    assert_int_equal(check("a{b=\"c\""), -EINVAL);
    assert_int_equal(check("a{b=\"c\",}"), -EINVAL);
    assert_int_equal(check("a{b=\"c\"}d"), -EINVAL);
    assert_int_equal(check("a{b=\"c\" ,d=\"e\"}"), -EINVAL);
    assert_int_equal(check("a{b=\"\n\"}"), -EINVAL);
    assert_int_equal(check("a{b=\"\\t\"}"), -EINVAL);
    assert_int_equal(check("a{b=\"\\"), -EINVAL);
}

TEST(metric_name, keys_differ_and_are_not_reserved)
{
    assert_int_equal(check("a{b=\"1\",c=\"2\",b=\"3\"}"), -EINVAL);
    assert_int_equal(check("a{b=\"1\",c=\"b\",bc=\"3\"}"), 0);
    assert_int_equal(check("a{=\"1\"}"), -EINVAL);
    assert_int_equal(check("a{1b=\"1\"}"), -EINVAL);
    assert_int_equal(check("a{b-c=\"1\"}"), -EINVAL);
    assert_int_equal(check("a{__b=\"1\"}"), -EINVAL);
    assert_int_equal(check("a{le=\"1\"}"), -EINVAL);
    assert_int_equal(check("a{lee=\"1\"}"), 0);
}

TEST(metric_name, both_parts_count_for_its_length)
{
    char family[WEIR_METRIC_NAME_SIZE + 1];

    memset(family, 'n', sizeof(family));
    family[WEIR_METRIC_NAME_SIZE - 1] = '\0';
    assert_int_equal(check(family), 0);
    family[WEIR_METRIC_NAME_SIZE - 1 - 7] = '\0';
    assert_int_equal(weir__metric_name_check((weir__metric_name){family, "{b=\"c\"}"}), 0);
    assert_int_equal(weir__metric_name_check((weir__metric_name){family, "{b=\"cc\"}"}),
                     -ENAMETOOLONG);
}

TEST(metric_name, a_label_is_escaped)
{
    char labels[64] = "";

    weir__metric_add_label(labels, sizeof(labels), "group", "a\"b\\c\nd");
    assert_string_equal(labels, "{group=\"a\\\"b\\\\c\\nd\"}");
    weir__metric_add_label(labels, sizeof(labels), "loop", "b-1#7");
    assert_string_equal(labels, "{group=\"a\\\"b\\\\c\\nd\",loop=\"b-1#7\"}");
    assert_int_equal(weir__metric_name_check((weir__metric_name){"f", labels}), 0);
}

TEST(metric_name, a_label_that_does_not_fit_is_left_out)
{
    char labels[20] = "";

    weir__metric_add_label(labels, sizeof(labels), "k", "123456");
    assert_string_equal(labels, "{k=\"123456\"}");
    weir__metric_add_label(labels, sizeof(labels), "l", "12");
    assert_string_equal(labels, "{k=\"123456\"}");
    weir__metric_add_label(labels, sizeof(labels), "l", "");
    assert_string_equal(labels, "{k=\"123456\",l=\"\"}");
}

TEST(metric_name, a_suffix_goes_before_the_labels)
{
    char name[WEIR_METRIC_NAME_SIZE + 1], endless[2 * WEIR_METRIC_NAME_SIZE];

    weir__metric_name_extend(name, "front", "open");
    assert_string_equal(name, "front.open");
    weir__metric_name_extend(name, "front{port=\"80\"}", "open");
    assert_string_equal(name, "front.open{port=\"80\"}");
    memset(endless, 'x', sizeof(endless));
    endless[sizeof(endless) - 1] = '\0';
    weir__metric_name_extend(name, endless, "open");
    assert_int_equal(check(name), -ENAMETOOLONG);
}
