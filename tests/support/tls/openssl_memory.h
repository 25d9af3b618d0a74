/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OpenSSL's memory in every program that tests TLS: counted, and failing on demand, as that of
 * support/memory.h. OpenSSL keeps some of what it allocates for later, so a test compares after it
 * has done the same once before.
 */
#ifndef WEIR_TEST_OPENSSL_MEMORY_H
#define WEIR_TEST_OPENSSL_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

/* The n-th allocation of OpenSSL's from now on fails, on any thread, once; 0 = none. */
void test_openssl_fail_at(unsigned n);

/* Whether that has happened. */
bool test_openssl_failed(void);

/* What it has at the moment: blocks, and their bytes. */
size_t test_openssl_live(void);
size_t test_openssl_bytes(void);

#endif
