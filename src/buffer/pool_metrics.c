/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The totals are read from variables. Those of a heap are summed up on the thread of the reader,
 * without a lock: unregistration waits for the reader.
 */
#include "buffer/pool_metrics.h"

#include <errno.h>
#include <stdio.h>

static const struct {
    const char *name;
    enum weir_metric_kind kind;
    const _Atomic int64_t *source;
} pool_metrics[] = {
    {"pool.mapped_bytes", WEIR_METRIC_GAUGE, &weir__mapped_now.bytes},
    {"pool.peak_bytes", WEIR_METRIC_GAUGE, &weir__mapped_now.peak_bytes},
    {"pool.limit_bytes", WEIR_METRIC_GAUGE, &weir__mapped_now.limit_bytes},
    {"pool.huge_bytes", WEIR_METRIC_GAUGE, &weir__mapped_now.classes[WEIR__CLASS_HUGE].bytes},
    {"pool.failures", WEIR_METRIC_COUNTER, &weir__mapped_now.failures},
};

#define POOL_METRIC_COUNT (sizeof(pool_metrics) / sizeof(pool_metrics[0]))

static weir_metric metrics[POOL_METRIC_COUNT];

/* A name that the user has already taken costs this metric, not the allocation. */
static int unless_taken(int err)
{
    return err == -EEXIST ? 0 : err;
}

void weir__pool_metrics_end(void)
{
    for (unsigned i = 0; i < POOL_METRIC_COUNT; i++)
        weir__metric_deinit(&metrics[i]);
}

int weir__pool_metrics_begin(void)
{
    int err = 0;

    for (unsigned i = 0; i < POOL_METRIC_COUNT && err == 0; i++)
        err = unless_taken(weir__metric_init_source(&metrics[i], pool_metrics[i].kind,
                                                    (weir__metric_name){pool_metrics[i].name},
                                                    pool_metrics[i].source));
    if (err < 0)
        weir__pool_metrics_end();
    return err;
}

static int64_t read_out(void *heap)
{
    const weir__bin *bins = ((const weir__heap *)heap)->bins;
    int64_t bytes = 0;

    for (unsigned i = 0; i < WEIR__CLASS_COUNT; i++)
        bytes += weir__bin_allocated(&bins[i]) * (int64_t)weir__class_stride(i);
    return bytes;
}

static int64_t read_cached(void *heap)
{
    const weir__bin *bins = ((const weir__heap *)heap)->bins;
    int64_t bytes = 0;

    for (unsigned i = 0; i < WEIR__CLASS_COUNT; i++)
        bytes += weir__owned_counter_read(&bins[i].cached) * (int64_t)weir__class_stride(i);
    return bytes;
}

static int64_t read_mapped(void *heap)
{
    const weir__bin *bins = ((const weir__heap *)heap)->bins;
    int64_t bytes = 0;

    for (unsigned i = 0; i < WEIR__CLASS_COUNT; i++)
        bytes += weir__owned_counter_read(&bins[i].slab_count) * (int64_t)weir__slab_bytes(i);
    return bytes;
}

static const struct {
    const char *family;
    weir__metric_read_fn *read;
} heap_metrics[WEIR__HEAP_METRIC_COUNT] = {
    [WEIR__HEAP_METRIC_OUT] = {"pool.cache.out_bytes", read_out},
    [WEIR__HEAP_METRIC_CACHED] = {"pool.cache.cached_bytes", read_cached},
    [WEIR__HEAP_METRIC_MAPPED] = {"pool.cache.mapped_bytes", read_mapped},
};

void weir__pool_metrics_remove(weir__heap *heap)
{
    for (unsigned i = 0; i < WEIR__HEAP_METRIC_COUNT; i++)
        weir__metric_deinit(&heap->metrics[i]);
}

int weir__pool_metrics_add(weir__heap *heap)
{
    int err = 0;

    (void)snprintf(heap->labels, sizeof(heap->labels), "{cache=\"%llu\"}",
                   (unsigned long long)heap->registry.number);
    for (unsigned i = 0; i < WEIR__HEAP_METRIC_COUNT && err == 0; i++)
        err = unless_taken(weir__metric_init_read(
            &heap->metrics[i], WEIR_METRIC_GAUGE,
            (weir__metric_name){heap_metrics[i].family, heap->labels}, heap_metrics[i].read, heap));
    if (err < 0)
        weir__pool_metrics_remove(heap);
    return err;
}
