/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Maps and unmaps memory, and counts it.
 */
#include "os/pages.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/poison.h"

static _Atomic size_t mapped; /* relaxed: only a counter */
static weir__pages_hook_fn *gate;

static size_t page_size(void)
{
    static _Atomic size_t known;
    size_t size = atomic_load_explicit(&known, memory_order_relaxed);

    if (size == 0) {
        size = (size_t)sysconf(_SC_PAGESIZE);
        atomic_store_explicit(&known, size, memory_order_relaxed);
    }
    return size;
}

size_t weir__pages_round(size_t size)
{
    size_t mask = page_size() - 1;

    return size <= SIZE_MAX - mask ? (size + mask) & ~mask : 0;
}

void *weir__pages_map(size_t size)
{
    void *pages;

    assert(size > 0 && size == weir__pages_round(size));
    if (gate != NULL && !gate())
        return NULL;
    pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED)
        return NULL;
    weir__poison_root_add(pages, size);
    atomic_fetch_add_explicit(&mapped, size, memory_order_relaxed);
    return pages;
}

void weir__pages_unmap(void *pages, size_t size)
{
    int err;

    weir__poison_root_remove(pages, size);
    err = munmap(pages, size);
    assert(err == 0);
    (void)err;
    atomic_fetch_sub_explicit(&mapped, size, memory_order_relaxed);
}

size_t weir__pages_mapped(void)
{
    return atomic_load_explicit(&mapped, memory_order_relaxed);
}

void weir__pages_set_hook(weir__pages_hook_fn *new_gate)
{
    gate = new_gate;
}
