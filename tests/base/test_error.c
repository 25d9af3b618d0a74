/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names and texts of error codes.
 */
#include "support/test.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include <weir/error.h>

static const struct {
    int err;
    const char *name;
    const char *text;
} ours[] = {
#define ROW(name, number, text) {WEIR_##name, "WEIR_" #name, text},
    WEIR_ERROR_MAP(ROW)
#undef ROW
};

#define OURS_COUNT (sizeof(ours) / sizeof(ours[0]))

TEST(error, our_codes_have_their_name_and_text)
{
    for (size_t i = 0; i < OURS_COUNT; i++) {
        assert_string_equal(weir_error_name(ours[i].err), ours[i].name);
        assert_string_equal(weir_error_text(ours[i].err), ours[i].text);
    }
    assert_string_equal(weir_error_name(WEIR_EFULL), "WEIR_EFULL");
    assert_string_equal(weir_error_text(WEIR_EFULL), "queue is full");
}

TEST(error, our_codes_are_unique_and_outside_the_range_of_errno)
{
    for (size_t i = 0; i < OURS_COUNT; i++) {
        assert_true(ours[i].err < -4095);
        for (size_t j = 0; j < i; j++)
            assert_int_not_equal(ours[i].err, ours[j].err);
    }
}

TEST(error, system_codes_pass_through)
{
    assert_string_equal(weir_error_name(-ENOMEM), "ENOMEM");
    assert_string_equal(weir_error_text(-ENOMEM), strerror(ENOMEM));
    assert_string_equal(weir_error_name(-EWOULDBLOCK), "EAGAIN");
    assert_string_equal(weir_error_name(-ECANCELED), "ECANCELED");
}

TEST(error, a_deadlock_says_which_thread_may_not_wait)
{
    assert_string_equal(weir_error_name(-EDEADLK), "EDEADLK");
    assert_string_equal(weir_error_text(-EDEADLK),
                        "a loop thread, or an executor's own thread, may not wait "
                        "(Resource deadlock avoided)");
}

#ifdef __GLIBC__
TEST(error, system_names_are_those_of_libc)
{
    for (int number = 1; number < 200; number++) {
        const char *name = strerrorname_np(number);

        assert_string_equal(weir_error_name(-number), name != NULL ? name : "EUNKNOWN");
    }
}
#endif

TEST(error, zero_is_success)
{
    assert_string_equal(weir_error_name(0), "OK");
    assert_string_equal(weir_error_text(0), "success");
}

TEST(error, other_numbers_are_unknown)
{
    const int unknown[] = {1, ENOMEM, INT_MAX, INT_MIN, -4096, -9999, -10000, -10999};

    for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
        assert_string_equal(weir_error_name(unknown[i]), "EUNKNOWN");
        assert_non_null(weir_error_text(unknown[i]));
        assert_int_not_equal(strlen(weir_error_text(unknown[i])), 0);
    }
    assert_string_equal(weir_error_text(ENOMEM), "unknown error");
}
