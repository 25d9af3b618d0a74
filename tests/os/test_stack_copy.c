/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies of interrupted stacks, and their unwinding.
 */
#include <signal.h>
#include <string.h>

#include "os/backtrace.h"
#include "os/signal_handler.h"
#include "os/symbol.h"
#include "support/test.h"

#define FRAMES 32
#define SIGNAL (SIGRTMIN + 3)

static weir__stack_copy copy;

static void on_signal(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)info;
    weir__stack_copy_take(&copy, context);
}

static __attribute__((noinline)) int raise_in_here(void)
{
    int err = raise(SIGNAL);

    __asm__ volatile(""); /* prevents a tail call */
    return err;
}

static int (*volatile interrupt)(void) = raise_in_here;

static size_t take(const void **frames, const void **functions)
{
    weir__signal_handler handler;

    assert_int_equal(weir__signal_handler_install(&handler, SIGNAL, on_signal), 0);
    assert_int_equal(interrupt(), 0);
    weir__signal_handler_remove(&handler);
    return weir__stack_copy_unwind(&copy, frames, functions, FRAMES);
}

TEST(stack_copy, has_the_functions_of_the_interrupted_code)
{
    const void *frames[FRAMES], *functions[FRAMES], *wanted;
    int (*function)(void) = raise_in_here;
    weir__symbol symbol;
    size_t count, i = 0;

    if (!weir__stack_copy_is_available())
        WEIR_TEST_SKIP("no backtraces on this system");
    count = take(frames, functions);
    memcpy(&wanted, &function, sizeof(wanted));
    while (i < count && functions[i] != wanted)
        i++;
    assert_in_range(i, 1, count - 3); /* raise is before it, this function and main after it */
    weir__symbol_find(frames[i], &symbol);
    assert_string_equal(symbol.function, "raise_in_here");
}

/* The same as the unwinder of the compiler, up to the first function. */
TEST(stack_copy, goes_on_to_the_first_function)
{
    const void *frames[FRAMES], *functions[FRAMES];
    weir__symbol symbol;
    size_t count;

    if (!weir__stack_copy_is_available())
        WEIR_TEST_SKIP("no backtraces on this system");
    count = take(frames, functions);
    weir__symbol_find(frames[count - 1], &symbol);
    assert_string_equal(symbol.function, "_start");
}

/* Without a stack only the interrupted instruction is known. */
TEST(stack_copy, ends_where_the_copy_ends)
{
    const void *frames[FRAMES], *functions[FRAMES];

    if (!weir__stack_copy_is_available())
        WEIR_TEST_SKIP("no backtraces on this system");
    (void)take(frames, functions);
    copy.length = 0;
    assert_in_range(weir__stack_copy_unwind(&copy, frames, functions, FRAMES), 1, 2);
    copy.frame.pc = 1;
    assert_int_equal(weir__stack_copy_unwind(&copy, frames, functions, FRAMES), 1);
    assert_null(functions[0]);
}

TEST(cfi, reads_memory_within_its_bounds)
{
    static const uint8_t bytes[16] = {1};
    weir__cfi_memory memory = {bytes, 0x1000, sizeof(bytes)};
    uintptr_t value = 0;

    assert_true(weir__cfi_memory_read(&memory, 0x1000, &value));
    assert_int_equal(value, 1);
    assert_true(weir__cfi_memory_read(&memory, 0x1008, &value));
    assert_false(weir__cfi_memory_read(&memory, 0x1009, &value));
    assert_false(weir__cfi_memory_read(&memory, 0xfff, &value));
    memory.length = 7;
    assert_false(weir__cfi_memory_read(&memory, 0x1000, &value));
}
