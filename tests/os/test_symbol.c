/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Backtraces and symbols.
 */
#include "os/symbol.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/backtrace.h"
#include "support/test.h"

#define FRAMES 32

static size_t taken_in_here(void **frames, size_t count)
{
    size_t found = weir__backtrace(frames, count);

    __asm__ volatile(""); /* prevents a tail call */
    return found;
}

static const int some_data = 1;

/* Through a volatile pointer, so that it has its own frame. */
static size_t (*volatile take)(void **frames, size_t count) = taken_in_here;

TEST(backtrace, begins_with_the_caller)
{
    void *frames[FRAMES];
    size_t count = take(frames, FRAMES);
    weir__symbol symbol;

    if (count == 0)
        WEIR_TEST_SKIP("no backtraces on this system");
    assert_in_range(count, 2, FRAMES);
    weir__symbol_find(frames[0], &symbol);
    assert_string_equal(symbol.function, "taken_in_here");
}

TEST(backtrace, is_as_long_as_there_is_room)
{
    void *frames[FRAMES] = {NULL};
    size_t count = take(frames, 2);

    if (count == 0)
        WEIR_TEST_SKIP("no backtraces on this system");
    assert_int_equal(count, 2);
    assert_null(frames[2]);
    assert_int_equal(take(frames, 0), 0);
}

/* Just behind the first byte of a function, where a call in it might return to. */
static const void *inside(size_t (*fn)(void **, size_t))
{
    return (const char *)(uintptr_t)fn + 1;
}

TEST(symbol, of_a_static_function_is_its_name)
{
    weir__symbol symbol;

    weir__symbol_find(inside(taken_in_here), &symbol);
    assert_ptr_equal(symbol.address, inside(taken_in_here));
    assert_string_equal(symbol.function, "taken_in_here");
    assert_int_equal(symbol.function_offset, 1);
    assert_string_equal(symbol.module, "test_os_symbol");
    assert_true(symbol.module_offset > 0);
}

TEST(symbol, of_a_library_is_found_in_its_exported_names)
{
    weir__symbol symbol;

    weir__symbol_find((const char *)(uintptr_t)_cmocka_run_group_tests + 1, &symbol);
    assert_string_equal(symbol.function, "_cmocka_run_group_tests");
    assert_non_null(strstr(symbol.module, "cmocka"));
}

TEST(symbol, of_data_has_a_module_but_no_function)
{
    weir__symbol symbol;

    weir__symbol_find((const char *)&some_data + 1, &symbol);
    assert_string_equal(symbol.function, "");
    assert_string_equal(symbol.module, "test_os_symbol");
}

TEST(symbol, of_memory_is_none)
{
    weir__symbol symbol;
    int on_the_stack = 0;

    weir__symbol_find(&on_the_stack, &symbol);
    assert_string_equal(symbol.module, "");
    weir__symbol_find(NULL, &symbol);
    assert_string_equal(symbol.module, "");
    assert_string_equal(symbol.function, "");
}

static void describe(const void *address, char *text, size_t size)
{
    weir__symbol symbol;

    weir__symbol_find(address, &symbol);
    weir__symbol_describe(&symbol, text, size);
}

TEST(symbol, describes_what_is_known)
{
    char text[160], expected[160];

    describe(inside(taken_in_here), text, sizeof(text));
    assert_non_null(strstr(text, "taken_in_here+0x1 (test_os_symbol+0x"));

    describe((const char *)&some_data + 1, text, sizeof(text));
    assert_ptr_equal(strstr(text, "test_os_symbol+0x"), text);

    snprintf(expected, sizeof(expected), "%p", (void *)text);
    describe(text, text, sizeof(text));
    assert_string_equal(text, expected);
}
