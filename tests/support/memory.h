/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The allocator that every test runs on: counts, fails on demand, and knows what was left behind.
 * New memory is filled with junk, a grown block always moves. All of it may be used on any thread.
 *
 * Failing every allocation of an operation in turn:
 *
 *     for (unsigned n = 1; ; n++) {
 *         test_memory_fail_at(n);
 *         err = operation();
 *         if (!test_memory_failed())
 *             break;
 *         assert_int_equal(err, -ENOMEM);
 *     }
 *     test_memory_fail_at(0);
 */
#ifndef WEIR_TEST_MEMORY_H
#define WEIR_TEST_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

/*
 * The n-th allocation from now on fails, once; 0 = none. Mapped pages (os/pages.h) count too, and
 * are refused again to who asks again at once, after having made room.
 */
void test_memory_fail_at(unsigned n);

/* Every allocation fails from now on, until it is switched off: memory has run out. */
void test_memory_fail_all(bool all);

/* Whether an allocation has failed since. */
bool test_memory_failed(void);

/* Allocations since the test began, failed ones and growing ones too. */
size_t test_memory_allocations(void);

/* Blocks that were allocated since the test began and are not free. */
size_t test_memory_live(void);

/* Bytes in those blocks, without the pool's pages. */
size_t test_memory_live_bytes(void);

/* For main.c: makes the library use this allocator; begins a test; fails it if blocks or pages are
 * left. */
void test_memory_install(void);
void test_memory_begin(void);
void test_memory_check(void);

#endif
