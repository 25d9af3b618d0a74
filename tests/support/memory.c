/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each block has a header in a list, so that leaks can be described. A block belongs to the test
 * that allocated it: leaks of a failed test do not fail the next.
 */
#include "support/memory.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/memory.h>

#include "os/clock.h"
#include "os/pages.h"
#include "os/thread.h"
#include "support/test.h"

#define MAGIC 0x77656972u
#define JUNK 0xa5
#define LEAKS_SHOWN 8

struct header {
    struct header *next;
    struct header **pprev;
    size_t size;
    unsigned test;
    unsigned magic;
};

_Static_assert(sizeof(struct header) % _Alignof(max_align_t) == 0, "blocks stay aligned");

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all below */
static struct header *blocks;
static unsigned current_test;
static size_t allocations;
static size_t live;
static size_t live_bytes;
static size_t mapped_before;
static unsigned fail_countdown;
static size_t refused_map; /* index of the allocation, 0 = none */
static bool failed;
static bool fail_all;

static bool must_fail_locked(void)
{
    allocations++;
    if (!fail_all && (fail_countdown == 0 || --fail_countdown > 0))
        return false;
    failed = true;
    return true;
}

static bool may_map(void)
{
    bool refused;

    pthread_mutex_lock(&lock);
    refused = (refused_map > 0 && refused_map == allocations) || must_fail_locked();
    if (refused)
        refused_map = allocations;
    pthread_mutex_unlock(&lock);
    return !refused;
}

static void link_locked(struct header *header, size_t size)
{
    *header = (struct header){blocks, &blocks, size, current_test, MAGIC};
    if (blocks != NULL)
        blocks->pprev = &header->next;
    blocks = header;
    live++;
    live_bytes += size;
}

static void unlink_locked(struct header *header)
{
    *header->pprev = header->next;
    if (header->next != NULL)
        header->next->pprev = header->pprev;
    header->magic = 0;
    if (header->test == current_test) {
        live--;
        live_bytes -= header->size;
    }
}

static struct header *header_of(void *memory)
{
    struct header *header = (struct header *)memory - 1;

    if (header->magic != MAGIC) {
        fprintf(stderr, "test memory: %p is not a live block\n", memory);
        abort();
    }
    return header;
}

static void *counted_alloc(void *user_data, size_t size)
{
    struct header *header = NULL;

    (void)user_data;
    pthread_mutex_lock(&lock);
    if (!must_fail_locked() && size <= SIZE_MAX - sizeof(*header))
        header = malloc(sizeof(*header) + size);
    if (header != NULL)
        link_locked(header, size);
    pthread_mutex_unlock(&lock);
    return header != NULL ? memset(header + 1, JUNK, size) : NULL;
}

static void counted_free(void *user_data, void *memory)
{
    struct header *header = header_of(memory);

    (void)user_data;
    pthread_mutex_lock(&lock);
    unlink_locked(header);
    pthread_mutex_unlock(&lock);
    free(header);
}

static void *counted_realloc(void *user_data, void *memory, size_t size)
{
    size_t old_size = header_of(memory)->size;
    void *moved = counted_alloc(user_data, size);

    if (moved == NULL)
        return NULL;
    memcpy(moved, memory, old_size < size ? old_size : size);
    counted_free(user_data, memory);
    return moved;
}

void test_memory_fail_at(unsigned n)
{
    pthread_mutex_lock(&lock);
    fail_countdown = n;
    refused_map = 0;
    failed = false;
    pthread_mutex_unlock(&lock);
}

void test_memory_fail_all(bool all)
{
    pthread_mutex_lock(&lock);
    fail_all = all;
    failed = false;
    pthread_mutex_unlock(&lock);
}

bool test_memory_failed(void)
{
    bool answer;

    pthread_mutex_lock(&lock);
    answer = failed;
    pthread_mutex_unlock(&lock);
    return answer;
}

size_t test_memory_allocations(void)
{
    size_t answer;

    pthread_mutex_lock(&lock);
    answer = allocations;
    pthread_mutex_unlock(&lock);
    return answer;
}

size_t test_memory_live(void)
{
    size_t answer;

    pthread_mutex_lock(&lock);
    answer = live;
    pthread_mutex_unlock(&lock);
    return answer;
}

size_t test_memory_live_bytes(void)
{
    size_t answer;

    pthread_mutex_lock(&lock);
    answer = live_bytes;
    pthread_mutex_unlock(&lock);
    return answer;
}

/* Waits only once in a program that has lost memory. */
static bool await(bool (*is_over)(size_t), size_t arg)
{
    static bool has_expired;
    int64_t until_ns = weir__monotonic_now() + weir_seconds(10);

    while (!is_over(arg)) {
        if (has_expired || weir__monotonic_now() > until_ns) {
            has_expired = true;
            return false;
        }
        weir__thread_sleep(weir_ms(1));
    }
    return true;
}

static bool is_live(size_t count)
{
    return test_memory_live() == count;
}

bool test_memory_await(size_t count)
{
    return await(is_live, count);
}

static bool is_mapped_at_most(size_t bytes)
{
    return weir__pages_mapped() <= bytes;
}

void test_memory_install(void)
{
    static const weir_memory memory = {
        .alloc = counted_alloc,
        .realloc = counted_realloc,
        .free = counted_free,
    };

    if (weir_memory_set(&memory) < 0)
        abort();
    weir__pages_set_hook(may_map);
}

void test_memory_begin(void)
{
    pthread_mutex_lock(&lock);
    current_test++;
    allocations = 0;
    live = 0;
    live_bytes = 0;
    mapped_before = weir__pages_mapped();
    fail_countdown = 0;
    refused_map = 0;
    failed = false;
    fail_all = false;
    pthread_mutex_unlock(&lock);
}

/* Writes the sizes of the first leaked blocks, oldest last, as " 24 8 ..." */
static void describe_leaks_locked(char *text, size_t size)
{
    int shown = 0;

    text[0] = '\0';
    for (struct header *block = blocks; block != NULL; block = block->next) {
        size_t used = strlen(text);

        if (block->test != current_test)
            continue;
        if (shown++ == LEAKS_SHOWN) {
            snprintf(text + used, size - used, " ...");
            return;
        }
        snprintf(text + used, size - used, " %zu", block->size);
    }
}

void test_memory_check(void)
{
    char sizes[LEAKS_SHOWN * 24 + 8];
    bool is_left, is_mapped;
    size_t count, bytes;

    pthread_mutex_lock(&lock);
    fail_countdown = 0;
    fail_all = false;
    pthread_mutex_unlock(&lock);
    is_left = !test_memory_await(0);
    is_mapped = !await(is_mapped_at_most, mapped_before);
    pthread_mutex_lock(&lock);
    count = live;
    bytes = live_bytes;
    describe_leaks_locked(sizes, sizeof(sizes));
    pthread_mutex_unlock(&lock);
    if (is_left)
        fail_msg("leaked %zu blocks, %zu bytes; sizes:%s", count, bytes, sizes);
    if (is_mapped)
        fail_msg("left %zu bytes mapped", weir__pages_mapped() - mapped_before);
}
