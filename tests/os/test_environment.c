/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Environments for new processes.
 */
#include "os/environment.h"

#include <errno.h>
#include <stdlib.h>

#include "support/memory.h"
#include "support/test.h"

static char *const two[] = {(char *)(uintptr_t) "ONE=1", (char *)(uintptr_t) "TWO=2", NULL};

TEST(environment, is_a_copy_that_can_be_changed)
{
    weir__environment environment;

    assert_int_equal(weir__environment_init(&environment, two), 0);
    assert_int_equal(weir__environment_set(&environment, "TWO=3"), 0);
    assert_int_equal(weir__environment_set(&environment, "THREE=x=y"), 0);
    assert_string_equal(weir__environment_value(&environment, "ONE"), "1");
    assert_string_equal(weir__environment_value(&environment, "TWO"), "3");
    assert_string_equal(weir__environment_value(&environment, "THREE"), "x=y");
    assert_null(weir__environment_value(&environment, "TW"));
    weir__environment_remove(&environment, "ONE");
    weir__environment_remove(&environment, "NONE");
    assert_null(weir__environment_value(&environment, "ONE"));
    assert_int_equal(environment.count, 2);
    assert_null(environment.entries[2]);
    weir__environment_deinit(&environment);
}

TEST(environment, of_this_process_is_the_default)
{
    weir__environment environment;

    assert_int_equal(setenv("WEIR_TEST", "here", 1), 0);
    assert_string_equal(weir__environment_get("WEIR_TEST"), "here");
    assert_int_equal(weir__environment_init(&environment, NULL), 0);
    assert_string_equal(weir__environment_value(&environment, "WEIR_TEST"), "here");
    weir__environment_deinit(&environment);
    weir__environment_unset("WEIR_TEST");
    assert_null(weir__environment_get("WEIR_TEST"));
}

TEST(environment, has_names)
{
    weir__environment environment;

    assert_int_equal(weir__environment_init(&environment, two), 0);
    assert_int_equal(weir__environment_set(&environment, "no equals sign"), -EINVAL);
    assert_int_equal(weir__environment_set(&environment, "=value"), -EINVAL);
    weir__environment_deinit(&environment);
}

TEST(environment, fails_without_memory)
{
    bool failed = true;

    for (unsigned n = 1; failed; n++) {
        weir__environment environment;
        int err;

        test_memory_fail_at(n);
        err = weir__environment_init(&environment, two);
        if (err == 0) {
            err = weir__environment_set(&environment, "TWO=3");
            weir__environment_deinit(&environment);
        }
        failed = test_memory_failed();
        assert_int_equal(err, failed ? -ENOMEM : 0);
    }
    test_memory_fail_at(0);
}
