/* SPDX-License-Identifier: Apache-2.0 */
#include "support/tls/openssl_memory.h"

#include <malloc.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <openssl/crypto.h>

static _Atomic unsigned countdown; /* 0 = none */
static _Atomic bool has_failed;
static _Atomic size_t live;
static _Atomic size_t bytes;

static bool is_refused(void)
{
    unsigned left = atomic_load(&countdown);

    while (left > 0)
        if (atomic_compare_exchange_weak(&countdown, &left, left - 1))
            break;
    if (left != 1)
        return false;
    atomic_store(&has_failed, true);
    return true;
}

static void count(void *memory)
{
    if (memory == NULL)
        return;
    atomic_fetch_add(&live, 1);
    atomic_fetch_add(&bytes, malloc_usable_size(memory));
}

static void discount(void *memory)
{
    if (memory == NULL)
        return;
    atomic_fetch_sub(&live, 1);
    atomic_fetch_sub(&bytes, malloc_usable_size(memory));
}

static void *on_malloc(size_t size, const char *file, int line)
{
    void *memory = is_refused() ? NULL : malloc(size);

    (void)file;
    (void)line;
    count(memory);
    return memory;
}

static void on_free(void *memory, const char *file, int line)
{
    (void)file;
    (void)line;
    discount(memory);
    free(memory);
}

static void *on_realloc(void *memory, size_t size, const char *file, int line)
{
    void *moved;

    if (size == 0) { /* as OpenSSL's own has it */
        on_free(memory, file, line);
        return NULL;
    }
    if (is_refused())
        return NULL;
    discount(memory);
    moved = realloc(memory, size);
    count(moved);
    return moved;
}

/* Before OpenSSL allocates: later it refuses. */
__attribute__((constructor)) static void install(void)
{
    if (CRYPTO_set_mem_functions(on_malloc, on_realloc, on_free) != 1)
        abort();
}

void test_openssl_fail_at(unsigned n)
{
    atomic_store(&has_failed, false);
    atomic_store(&countdown, n);
}

bool test_openssl_failed(void)
{
    return atomic_load(&has_failed);
}

size_t test_openssl_live(void)
{
    return atomic_load(&live);
}

size_t test_openssl_bytes(void)
{
    return atomic_load(&bytes);
}
