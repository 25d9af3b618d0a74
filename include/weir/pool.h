/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/pool.h - where the memory of buffers comes from, how much it may be, and where it is.
 *
 * Each thread that makes buffers has a cache of its own, of blocks in 53 sizes up to 1 MiB; what is
 * larger comes straight from the system. A buffer released on another thread finds its way home: at
 * the end of that thread's turn, or when 32 of them have gathered, or when that thread ends.
 * Threads give back what they do not need: an executor's when it idles, every thread at its end.
 */
#ifndef WEIR_POOL_H
#define WEIR_POOL_H

#include <weir/base.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_POOL_CLASSES_MAX 64

/* Blocks of one size, or of one cache. */
typedef struct weir_pool_count {
    uint64_t size;       /* what each holds, besides a header of 64 bytes; 0 if that differs */
    uint64_t in_use;     /* blocks that are somebody's */
    uint64_t cached;     /* blocks free to be taken by the thread whose cache they are in */
    uint64_t in_transit; /* blocks released on another thread, on their way to that cache */
    uint64_t slabs;      /* pieces of the system's memory that blocks are cut from */
    uint64_t mapped_bytes;
    uint64_t peak_bytes; /* the most that has been mapped at once */
    uint64_t failures;   /* times that such a block was asked for in vain; of a cache: any block */
    uint64_t reserved[4];
} weir_pool_count;

/* What one thread keeps. */
typedef struct weir_pool_cache {
    uint64_t number;      /* as in the names of its metrics, pool.cache#NUMBER */
    int64_t thread_id;    /* the system's number of it; 0 = an orphan: the thread has ended */
    char thread_name[16]; /* of an orphan, the name that its thread had */
    weir_pool_count blocks;
    uint64_t reserved[4];
} weir_pool_cache;

/*
 * Where the memory is. Exact when no buffer is made or released meanwhile; then mapped_bytes is the
 * sum of in_use_bytes, cached_bytes, in_transit_bytes and spare_bytes.
 */
typedef struct weir_pool_stats {
    uint64_t mapped_bytes; /* of the system's memory */
    uint64_t peak_bytes;   /* the most that there has been */
    uint64_t limit_bytes;  /* 0 = none */
    uint64_t failures;     /* times that there was no memory, or no more within the limit */
    uint64_t in_use_bytes; /* headers included, here and below */
    uint64_t cached_bytes;
    uint64_t in_transit_bytes;
    uint64_t spare_bytes; /* not cut into blocks, or between them */
    weir_pool_count huge; /* straight from the system, and no slabs; part of in_use_bytes */
    uint64_t slabs;
    uint64_t caches;  /* threads that have one */
    uint64_t orphans; /* caches whose thread has ended while buffers from it were in use */
    uint64_t class_count;
    weir_pool_count classes[WEIR_POOL_CLASSES_MAX];
    uint64_t reserved[8];
} weir_pool_stats;

/*
 * Limits what the pool holds of the system's memory, used or cached, to `bytes`; 0 or WEIR_OFF = no
 * limit, which is the default. What would go beyond it fails with -ENOMEM, once memory that is free
 * at hand has been given back in vain. A limit below what is held now keeps it from growing. Memory
 * is mapped in slabs of 64 KiB to 1 MiB, and it is those that count: a limit of a few MiB leaves
 * little for buffers of many sizes.
 * Thread: any.  Fails: -EINVAL below WEIR_OFF.
 */
WEIR_API int weir_pool_set_limit(int64_t bytes);

/*
 * Gives memory that is wholly free back to the system: at once that of the calling thread's cache
 * and of caches whose thread has ended; that of other executors' threads when their turn ends. Also
 * sends home what the calling thread has released of others. Returns how many bytes it has given
 * back itself.
 * Thread: any.
 */
WEIR_API size_t weir_pool_trim(void);

/*
 * Says where the memory is. Holds up no thread that makes or releases buffers.
 * Thread: any.
 */
WEIR_API void weir_pool_read(weir_pool_stats *ret_stats);

/*
 * Says what each thread's cache has, in no particular order, for the first `count` of them. Returns
 * how many caches there are. What was asked for in vain before a thread had a cache is in no
 * cache's failures.
 * Thread: any.
 */
WEIR_API size_t weir_pool_read_caches(weir_pool_cache *ret_caches, size_t count);

/*
 * Writes all of this as a table for people into `text`, cut off after `size` bytes with the end:
 * each size that was ever needed, and each cache. Returns the length that the whole table has.
 * Thread: any.
 */
WEIR_API size_t weir_pool_describe(char *text, size_t size);

#ifdef __cplusplus
}
#endif

#endif
