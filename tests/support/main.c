/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs the registered tests.
 *
 * The leak check is part of the test, not of its teardown, so that a leak fails the test. A test
 * that has failed is not checked.
 */
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __GLIBC__ /* defined by the headers above */
#include <sys/single_threaded.h>
#endif

#include <weir/thread.h>

#include "os/file_writer.h"
#include "support/memory.h"

#define CLEANUPS_MAX 8

static struct test_case *first_test;
static struct test_case **last_test = &first_test;
static void (*cleanups[CLEANUPS_MAX])(void);
static size_t cleanup_count;

void test_register(struct test_case *test)
{
    *last_test = test;
    last_test = &test->next;
}

void test_before_leak_check(void (*fn)(void))
{
    if (cleanup_count == CLEANUPS_MAX)
        abort();
    cleanups[cleanup_count++] = fn;
}

void test_skip(const char *reason, const char *file, int line)
{
    const char *required = getenv("WEIR_REQUIRE");

    if (required != NULL && strcmp(required, "all") == 0)
        fail_msg("%s:%d: not to be skipped here: %s", file, line, reason);
    print_message("skipped: %s\n", reason);
    _skip(file, line);
}

/* Of a test in tests/single_threaded.txt. */
static void check_single_threaded(void)
{
#ifdef __GLIBC__
    if (getenv("WEIR_SINGLE_THREADED") != NULL && !__libc_single_threaded)
        fail_msg("starts a thread: remove it from tests/single_threaded.txt");
#endif
}

static void run_and_check(void **state)
{
    const struct test_case *test = *state;

    test_memory_begin();
    test->body();
    for (size_t i = 0; i < cleanup_count; i++)
        cleanups[i]();
    (void)weir__file_writers_wait(TEST_TIMEOUT_NS);
    weir_locals_remove_all();
    test_memory_check();
    check_single_threaded();
}

static size_t select_tests(const char *wanted, struct CMUnitTest *ret_selected)
{
    size_t count = 0;

    for (struct test_case *test = first_test; test != NULL; test = test->next) {
        if (wanted != NULL && strstr(test->name, wanted) == NULL)
            continue;
        if (ret_selected != NULL)
            ret_selected[count] = (struct CMUnitTest){
                .name = test->name, .test_func = run_and_check, .initial_state = test};
        count++;
    }
    return count;
}

int main(int argc, char **argv)
{
    const char *wanted = argc > 1 ? argv[1] : NULL;
    size_t count = select_tests(wanted, NULL);
    struct CMUnitTest *selected = calloc(count + 1, sizeof(*selected));
    int failures;

    if (selected == NULL || count == 0) {
        fprintf(stderr, "%s: no test matches\n", argv[0]);
        free(selected);
        return EXIT_FAILURE;
    }
    (void)select_tests(wanted, selected);
    test_memory_install();
    failures = _cmocka_run_group_tests(argv[0], selected, count, NULL, NULL);
    free(selected);
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
