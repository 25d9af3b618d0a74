/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The allocator of all tests: it counts, fails on demand, and detects leaks. New memory is filled
 * with junk, and a grown block always moves. Thread-safe.
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
 * Makes the n-th allocation from now on fail, once; 0 = none. Mapped pages (os/pages.h) count too;
 * an immediate second attempt, after trimming, fails as well.
 */
void test_memory_fail_at(unsigned n);

/* Makes every allocation fail, until it is switched off. */
void test_memory_fail_all(bool all);

/* True if an allocation has failed since. */
bool test_memory_failed(void);

/* Allocations since the start of the test, including failed ones and reallocations. */
size_t test_memory_allocations(void);

/* Blocks allocated since the start of the test and not freed. */
size_t test_memory_live(void);

/* Waits until `count` blocks are live. False if that takes too long. Nobody joins the threads of a
 * group whose last reference was released by a loop; the last of them frees it. */
bool test_memory_await(size_t count);

/* Bytes in those blocks, without the pool's pages. */
size_t test_memory_live_bytes(void);

/* For main.c: installs this allocator; starts a test; fails it if blocks or pages are leaked. */
void test_memory_install(void);
void test_memory_begin(void);
void test_memory_check(void);

#endif
