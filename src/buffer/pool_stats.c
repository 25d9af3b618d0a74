/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stats of the pool, per size class and per heap, as numbers and as a table.
 *
 * Counters are read one by one while other threads allocate and free; the lock held here blocks
 * only threads that get or lose a heap. So while blocks move, each counter is accurate by itself;
 * when nothing moves, the result is exact.
 */
#include <weir/pool.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "buffer/heaps.h"

_Static_assert(WEIR__CLASS_COUNT <= WEIR_POOL_CLASSES_MAX, "a row for each class");

static uint64_t read_counter(const _Atomic int64_t *counter)
{
    return (uint64_t)atomic_load_explicit(counter, memory_order_relaxed);
}

static weir__heap *heap_of(weir__list *link)
{
    return WEIR_CONTAINER_OF(link, weir__heap, registry.link);
}

/* ---- blocks ---- */

static void add_bin(weir_pool_block_stats *count, const weir__bin *bin, unsigned size_class)
{
    uint64_t slabs = weir__owned_counter_read(&bin->slab_count);

    count->cached += weir__owned_counter_read(&bin->cached);
    count->in_use += (uint64_t)weir__bin_allocated(bin);
    count->slabs += slabs;
    count->mapped_bytes += slabs * weir__slab_bytes(size_class);
}

/* Blocks in transit were counted as in use. Neither becomes negative if a counter was read earlier.
 */
static void set_in_transit(weir_pool_block_stats *count, int32_t in_transit)
{
    int64_t in_use = (int64_t)count->in_use - in_transit;

    count->in_transit = in_transit > 0 ? (uint64_t)in_transit : 0;
    count->in_use = in_use > 0 ? (uint64_t)in_use : 0;
}

/* Initialized with the values that are kept for all heaps together. */
static weir_pool_block_stats init_count(unsigned size_class)
{
    const weir__mapped_class *mapped = &weir__mapped_now.classes[size_class];

    return (weir_pool_block_stats){
        .peak_bytes = read_counter(&mapped->peak_bytes),
        .failures = read_counter(&mapped->failures),
    };
}

static void count_class_locked(unsigned size_class, weir_pool_block_stats *ret_count)
{
    uint32_t sent = atomic_load_explicit(&weir__heaps_all.sent[size_class], memory_order_relaxed);

    *ret_count = init_count(size_class);
    ret_count->size = weir__class_size(size_class);
    weir_list_foreach (link, &weir__heaps_all.list) {
        const weir__bin *bin = &heap_of(link)->bins[size_class];

        add_bin(ret_count, bin, size_class);
        sent += weir__owned_counter_read(&bin->sent) - weir__owned_counter_read(&bin->received);
    }
    set_in_transit(ret_count, (int32_t)sent);
}

/* The blocks of `heap` in the outboxes of `other`. */
static uint32_t count_in_outboxes(const weir__heap *other, const weir__heap *heap)
{
    uint32_t count = 0;

    for (unsigned i = 0; i < WEIR__OUTBOX_COUNT; i++) {
        const weir__outbox *box = &other->outboxes.boxes[i];

        if (atomic_load_explicit(&box->owner, memory_order_relaxed) == heap)
            count += weir__owned_counter_read(&box->count);
    }
    return count;
}

static void count_heap_locked(const weir__heap *heap, weir_pool_block_stats *ret_count)
{
    uint32_t in_transit = atomic_load_explicit(&heap->remote.count, memory_order_relaxed);

    *ret_count = (weir_pool_block_stats){
        .peak_bytes = atomic_load_explicit(&heap->peak_bytes, memory_order_relaxed),
        .failures = weir__owned_counter_read(&heap->failures),
    };
    for (unsigned i = 0; i < WEIR__CLASS_COUNT; i++)
        add_bin(ret_count, &heap->bins[i], i);
    weir_list_foreach (link, &weir__heaps_all.list)
        in_transit += count_in_outboxes(heap_of(link), heap);
    set_in_transit(ret_count, (int32_t)in_transit);
}

/* ---- weir_pool_read_stats ---- */

static void read_locked(weir_pool_stats *stats)
{
    uint64_t counted;

    memset(stats, 0, sizeof(*stats));
    stats->mapped_bytes = read_counter(&weir__mapped_now.bytes);
    stats->peak_bytes = read_counter(&weir__mapped_now.peak_bytes);
    stats->limit_bytes = read_counter(&weir__mapped_now.limit_bytes);
    stats->failures = read_counter(&weir__mapped_now.failures);
    stats->huge = init_count(WEIR__CLASS_HUGE);
    stats->huge.in_use = read_counter(&weir__mapped_now.huge_count);
    stats->huge.mapped_bytes = read_counter(&weir__mapped_now.classes[WEIR__CLASS_HUGE].bytes);
    stats->in_use_bytes = stats->huge.mapped_bytes;
    stats->class_count = WEIR__CLASS_COUNT;
    for (unsigned i = 0; i < WEIR__CLASS_COUNT; i++) {
        weir_pool_block_stats *count = &stats->classes[i];

        count_class_locked(i, count);
        stats->in_use_bytes += count->in_use * weir__class_stride(i);
        stats->cached_bytes += count->cached * weir__class_stride(i);
        stats->in_transit_bytes += count->in_transit * weir__class_stride(i);
        stats->slabs += count->slabs;
    }
    weir_list_foreach (link, &weir__heaps_all.list) {
        if (heap_of(link)->registry.thread != 0)
            stats->caches++;
        else
            stats->orphans++;
    }
    counted = stats->in_use_bytes + stats->cached_bytes + stats->in_transit_bytes;
    stats->spare_bytes = stats->mapped_bytes > counted ? stats->mapped_bytes - counted : 0;
}

void weir_pool_read_stats(weir_pool_stats *ret_stats)
{
    weir__mutex_lock(&weir__heaps_all.lock);
    read_locked(ret_stats);
    weir__mutex_unlock(&weir__heaps_all.lock);
}

/* ---- weir_pool_read_cache_stats ---- */

static void read_cache_locked(const weir__heap *heap, weir_pool_cache_stats *ret_cache)
{
    _Static_assert(sizeof(ret_cache->thread_name) == sizeof(heap->registry.thread_name),
                   "a name fits");
    *ret_cache = (weir_pool_cache_stats){
        .number = heap->registry.number,
        .thread_id = heap->registry.thread,
    };
    memcpy(ret_cache->thread_name, heap->registry.thread_name, sizeof(ret_cache->thread_name));
    count_heap_locked(heap, &ret_cache->blocks);
}

/* An array instead of a callback, because a callback that allocates a buffer would deadlock. */
size_t weir_pool_read_cache_stats(weir_pool_cache_stats *ret_caches, size_t count)
{
    size_t found = 0;

    weir__mutex_lock(&weir__heaps_all.lock);
    weir_list_foreach (link, &weir__heaps_all.list) {
        if (found < count)
            read_cache_locked(heap_of(link), &ret_caches[found]);
        found++;
    }
    weir__mutex_unlock(&weir__heaps_all.lock);
    return found;
}

/* ---- weir_pool_describe ---- */

/* Counts the whole length, as snprintf. */
struct text {
    char *start;
    size_t size;
    size_t length;
};

static void WEIR_PRINTF(2, 3) print(struct text *text, const char *format, ...)
{
    size_t used = text->length < text->size ? text->length : text->size;
    va_list args;

    va_start(args, format);
    text->length += (size_t)vsnprintf(text->size > 0 ? text->start + used : NULL, text->size - used,
                                      format, args);
    va_end(args);
}

typedef struct bytes_text {
    char text[24];
} bytes_text;

static bytes_text format_bytes(uint64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    bytes_text result;
    unsigned unit = 0;

    while (unit < 4 && bytes >= (uint64_t)1024 << (10 * unit))
        unit++;
    if (bytes % ((uint64_t)1 << (10 * unit)) == 0)
        (void)snprintf(result.text, sizeof(result.text), "%llu %s",
                       (unsigned long long)(bytes >> (10 * unit)), units[unit]);
    else
        (void)snprintf(result.text, sizeof(result.text), "%.1f %s",
                       (double)bytes / (double)((uint64_t)1 << (10 * unit)), units[unit]);
    return result;
}

static void print_heading(struct text *text, const char *what)
{
    print(text, "%24s %9s %9s %9s %9s %11s %11s %9s\n", what, "in use", "cached", "transit",
          "slabs", "mapped", "peak", "failures");
}

static void print_row(struct text *text, const char *name, const weir_pool_block_stats *count)
{
    print(text, "%24s %9llu %9llu %9llu %9llu %11s %11s %9llu\n", name,
          (unsigned long long)count->in_use, (unsigned long long)count->cached,
          (unsigned long long)count->in_transit, (unsigned long long)count->slabs,
          format_bytes(count->mapped_bytes).text, format_bytes(count->peak_bytes).text,
          (unsigned long long)count->failures);
}

static void print_totals(struct text *text, const weir_pool_stats *stats)
{
    print(text, "pool: %s mapped, peak %s, limit %s, %llu failures\n",
          format_bytes(stats->mapped_bytes).text, format_bytes(stats->peak_bytes).text,
          stats->limit_bytes > 0 ? format_bytes(stats->limit_bytes).text : "none",
          (unsigned long long)stats->failures);
    print(text, "      %s in use, %s cached, %s in transit, %s spare\n",
          format_bytes(stats->in_use_bytes).text, format_bytes(stats->cached_bytes).text,
          format_bytes(stats->in_transit_bytes).text, format_bytes(stats->spare_bytes).text);
}

static bool was_used(const weir_pool_block_stats *count)
{
    return count->peak_bytes > 0 || count->failures > 0;
}

static void print_classes(struct text *text, const weir_pool_stats *stats)
{
    print_heading(text, "size");
    for (unsigned i = 0; i < stats->class_count; i++)
        if (was_used(&stats->classes[i]))
            print_row(text, i > 0 ? format_bytes(stats->classes[i].size).text : "header only",
                      &stats->classes[i]);
    if (was_used(&stats->huge))
        print_row(text, "huge", &stats->huge);
}

static void print_heap_locked(struct text *text, const weir__heap *heap)
{
    weir_pool_cache_stats cache;
    char name[40];

    read_cache_locked(heap, &cache);
    if (cache.thread_id != 0)
        (void)snprintf(name, sizeof(name), "%s %d", cache.thread_name, (int)cache.thread_id);
    else
        (void)snprintf(name, sizeof(name), "orphan");
    print_row(text, name, &cache.blocks);
}

size_t weir_pool_describe(char *text, size_t size)
{
    struct text out = {.start = text, .size = size};
    weir_pool_stats stats;

    if (size > 0)
        text[0] = '\0';
    weir__mutex_lock(&weir__heaps_all.lock);
    read_locked(&stats);
    print_totals(&out, &stats);
    print_classes(&out, &stats);
    print_heading(&out, "cache");
    weir_list_foreach (link, &weir__heaps_all.list)
        print_heap_locked(&out, heap_of(link));
    weir__mutex_unlock(&weir__heaps_all.lock);
    return out.length;
}
