/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing tests: include this, define TEST(noun, a_sentence_about_it), assert with cmocka.
 *
 *     TEST(promise, a_listener_added_late_still_runs)
 *     {
 *         assert_int_equal(weir_promise_..., 0);
 *     }
 *
 * Tests register themselves; support/main.c runs those of the program, or with an argument those
 * whose name contains it. Each runs on a counting allocator and fails if it leaks memory. Assert
 * only on the thread of the test: cmocka leaves a failed test by longjmp.
 */
#ifndef WEIR_TEST_H
#define WEIR_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/timeout.h"

struct test_case {
    const char *name;
    void (*body)(void);
    struct test_case *next;
};

void test_register(struct test_case *test);

#define TEST(noun, sentence)                                                           \
    static void noun##_##sentence(void);                                               \
    __attribute__((constructor)) static void register_##noun##_##sentence(void)        \
    {                                                                                  \
        static struct test_case test = {#noun "." #sentence, noun##_##sentence, NULL}; \
                                                                                       \
        test_register(&test);                                                          \
    }                                                                                  \
    static void noun##_##sentence(void)

/* Ignores the result of a WEIR_MUST_USE function, where the test observes the effect instead. */
#define IGNORE_RESULT(call) ((void)((call) == 0))

/*
 * Skips a test that cannot run here, with a reason. With WEIR_REQUIRE=all in the environment, as in
 * CI, the test fails instead.
 */
#define WEIR_TEST_SKIP(reason) test_skip(reason, __FILE__, __LINE__)

void test_skip(const char *reason, const char *file, int line);

/*
 * Calls fn after each test, before the leak check: for fixtures whose state outlives a test, such
 * as a thread that is about to end. Call it from a constructor.
 */
void test_before_leak_check(void (*fn)(void));

#endif
