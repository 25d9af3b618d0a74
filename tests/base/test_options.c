/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options of an older, an equal and a newer caller.
 */
#include "support/test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/options.h"

struct old {
    size_t size;
    uint32_t first;
};

struct current {
    size_t size;
    uint32_t first;
    uint32_t second;
    const char *third;
};

struct newer {
    size_t size;
    uint32_t first;
    uint32_t second;
    const char *third;
    uint64_t fourth;
};

TEST(options, none_given_means_every_default)
{
    struct current options = {99, 99, 99, "x"};

    assert_int_equal(weir__options_read(&options, sizeof(options), NULL), 0);
    assert_int_equal(options.size, sizeof(options));
    assert_int_equal(options.first, 0);
    assert_int_equal(options.second, 0);
    assert_null(options.third);
}

TEST(options, those_of_the_same_version_are_copied)
{
    struct current given = {sizeof(given), 1, 2, "x"};
    struct current options;

    assert_int_equal(weir__options_read(&options, sizeof(options), &given), 0);
    assert_memory_equal(&options, &given, sizeof(given));
}

TEST(options, members_that_an_older_caller_lacks_are_zero)
{
    struct {
        struct old given;
        uint32_t behind; /* memory behind an older caller's struct must not be read */
    } caller = {{offsetof(struct current, second), 1}, 77};
    struct current options;

    assert_int_equal(weir__options_read(&options, sizeof(options), &caller), 0);
    assert_int_equal(options.size, sizeof(options));
    assert_int_equal(options.first, 1);
    assert_int_equal(options.second, 0);
    assert_null(options.third);
}

TEST(options, a_newer_caller_may_leave_new_members_zero)
{
    struct newer given = {sizeof(given), 1, 2, "x", 0};
    struct current options;

    assert_int_equal(weir__options_read(&options, sizeof(options), &given), 0);
    assert_int_equal(options.size, sizeof(options));
    assert_int_equal(options.second, 2);
}

TEST(options, a_newer_caller_that_sets_a_new_member_is_rejected)
{
    struct newer given = {sizeof(given), 1, 2, "x", UINT64_C(1) << 56};
    struct current options = {7, 7, 7, NULL};

    assert_int_equal(weir__options_read(&options, sizeof(options), &given), -EINVAL);
    assert_int_equal(options.size, 7);
    assert_int_equal(options.first, 7);
}

TEST(options, an_invalid_size_is_rejected)
{
    struct current given = {0, 1, 2, "x"};
    struct current options = {7, 7, 7, NULL};

    for (size_t size = 0; size < sizeof(size_t); size++) {
        given.size = size;
        assert_int_equal(weir__options_read(&options, sizeof(options), &given), -EINVAL);
    }
    assert_int_equal(options.first, 7);

    given.size = sizeof(size_t);
    assert_int_equal(weir__options_read(&options, sizeof(options), &given), 0);
    assert_int_equal(options.first, 0);
}

/* ---- log texts ---- */

static char logged[512];

static void on_log(void *user_data, enum weir_log_level level, const char *subsystem,
                   const char *object, const char *message)
{
    (void)user_data;
    assert_int_equal(level, WEIR_LOG_ERROR);
    (void)snprintf(logged, sizeof(logged), "%s %s: %s", subsystem, object, message);
}

static int check(int first, int second)
{
    const struct {
        int first;
        int second;
    } options = {first, second};

    logged[0] = '\0';
    return weir__options_check("subsystem", "object", WEIR__OPTION(&options, first, 0, 10),
                               WEIR__OPTION_FROM(&options, second, -1));
}

TEST(options, invalid_ones_are_named_in_the_log)
{
    struct newer newer = {sizeof(newer), 1, 2, "x", 1};
    struct current options;

    weir_log_set(on_log, NULL);
    assert_int_equal(check(0, -1), 0);
    assert_int_equal(check(10, INT32_MAX), 0);
    assert_string_equal(logged, "");
    assert_int_equal(check(-1, 0), -EINVAL);
    assert_string_equal(logged, "subsystem object: invalid options: first is -1, the minimum is 0");
    assert_int_equal(check(11, 0), -EINVAL);
    assert_string_equal(logged,
                        "subsystem object: invalid options: first is 11, the maximum is 10");
    assert_int_equal(check(0, -2), -EINVAL);
    assert_string_equal(logged,
                        "subsystem object: invalid options: second is -2, the minimum is -1");
    assert_int_equal(weir__options_read(&options, sizeof(options), &newer), -EINVAL);
    assert_non_null(strstr(logged, "an option is unknown to this version of the library"));
    weir_log_set(NULL, NULL);
}
