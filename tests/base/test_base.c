/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Version and durations.
 */
#include "support/test.h"

#include <stdio.h>

#include <weir/base.h>

TEST(base, version_is_that_of_the_headers)
{
    char expected[32];

    snprintf(expected, sizeof(expected), "%d.%d.%d", WEIR_VERSION_MAJOR, WEIR_VERSION_MINOR,
             WEIR_VERSION_PATCH);
    assert_string_equal(weir_version(), expected);
}

TEST(base, durations_are_nanoseconds)
{
    assert_int_equal(weir_us(3), 3000);
    assert_int_equal(weir_ms(-3), -3000000);
    assert_int_equal(weir_seconds(3), INT64_C(3000000000));
}

TEST(base, durations_saturate)
{
    assert_true(weir_us(INT64_MAX) == WEIR_NEVER);
    assert_true(weir_us(INT64_MIN) == -WEIR_NEVER);
    assert_true(weir_ms(INT64_MAX / 1000000 + 1) == WEIR_NEVER);
    assert_true(weir_ms(INT64_MIN) == -WEIR_NEVER);
    assert_true(weir_seconds(INT64_MAX / 1000000000 + 1) == WEIR_NEVER);
    assert_true(weir_seconds(INT64_MAX / 1000000000) == INT64_C(9223372036000000000));
    assert_true(weir_seconds(-INT64_MAX / 1000000000 - 1) == -WEIR_NEVER);
}
