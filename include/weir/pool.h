/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/pool.h - the memory pool of buffers: limit, trimming, stats; and leak detection.
 *
 * Each thread that creates buffers has a cache of blocks in 53 sizes up to 1 MiB; larger blocks are
 * mapped individually. A buffer released on another thread is returned to the cache it came from:
 * at the end of that thread's turn, when 32 blocks have gathered, or when that thread ends. Free
 * memory is unmapped when an executor is idle and when a thread ends.
 */
#ifndef WEIR_POOL_H
#define WEIR_POOL_H

#include <weir/base.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_POOL_CLASSES_MAX 64

/* The blocks of one size, or of one cache. */
typedef struct weir_pool_block_stats {
    uint64_t size;       /* payload of a block, without its header of 64 bytes; 0 if sizes differ */
    uint64_t in_use;     /* allocated blocks */
    uint64_t cached;     /* free blocks in the caches of threads */
    uint64_t in_transit; /* blocks released on another thread and not yet returned */
    uint64_t slabs;      /* mapped areas that blocks are carved from */
    uint64_t mapped_bytes;
    uint64_t peak_bytes; /* peak of mapped_bytes */
    uint64_t failures;   /* failed allocations of this size; of a cache: of any size */
    uint64_t reserved[4];
} weir_pool_block_stats;

/* The cache of one thread. */
typedef struct weir_pool_cache_stats {
    uint64_t number;      /* as in its metrics: {cache="NUMBER"} */
    int64_t thread_id;    /* the thread id; 0 = an orphan: the thread has ended */
    char thread_name[16]; /* of an orphan, the name of its former thread */
    weir_pool_block_stats blocks;
    uint64_t reserved[4];
} weir_pool_cache_stats;

/*
 * Memory of the pool. Exact while no buffer is created or released; then mapped_bytes is the sum of
 * in_use_bytes, cached_bytes, in_transit_bytes and spare_bytes.
 */
typedef struct weir_pool_stats {
    uint64_t mapped_bytes; /* mapped from the system */
    uint64_t peak_bytes;   /* peak of mapped_bytes */
    uint64_t limit_bytes;  /* 0 = none */
    uint64_t failures;     /* failed allocations: no memory, or above the limit */
    uint64_t in_use_bytes; /* including headers, as the following */
    uint64_t cached_bytes;
    uint64_t in_transit_bytes;
    uint64_t spare_bytes;       /* not carved into blocks, or between them */
    weir_pool_block_stats huge; /* blocks above 1 MiB, mapped individually; part of in_use_bytes */
    uint64_t slabs;
    uint64_t caches;  /* caches of running threads */
    uint64_t orphans; /* caches of ended threads whose blocks are still in use */
    uint64_t class_count;
    weir_pool_block_stats classes[WEIR_POOL_CLASSES_MAX];
    uint64_t reserved[8];
} weir_pool_stats;

/*
 * Limits the memory that the pool maps, used or cached, to `bytes`; 0 or WEIR_OFF = no limit, the
 * default. An allocation above the limit first unmaps free memory, then fails with -ENOMEM. A limit
 * below the current size prevents growth. Memory is mapped in slabs of 64 KiB to 1 MiB, and slabs
 * count: a limit of a few MiB leaves little for buffers of many sizes.
 * Thread: any.  Fails: -EINVAL below WEIR_OFF.
 */
WEIR_API int weir_pool_set_limit(int64_t bytes);

/*
 * Unmaps free memory: that of the calling thread's cache and of orphaned caches immediately, that
 * of other executors' threads when their turn ends. Also returns blocks that the calling thread has
 * released to their caches. Returns the number of bytes unmapped by this call.
 * Thread: any.
 */
WEIR_API size_t weir_pool_trim(void);

/*
 * Reads the stats of the pool. Does not block threads that create or release buffers.
 * Thread: any.
 */
WEIR_API void weir_pool_read_stats(weir_pool_stats *ret_stats);

/*
 * Reads the stats of at most `count` caches, in no particular order. Returns the total number of
 * caches. Allocations that failed before a thread had a cache count in no cache.
 * Thread: any.
 */
WEIR_API size_t weir_pool_read_cache_stats(weir_pool_cache_stats *ret_caches, size_t count);

/*
 * Formats the stats as a table into `text`, truncated to `size` bytes including the NUL: a row for
 * each size ever used, and one for each cache. Returns the length of the whole table.
 * Thread: any.
 */
WEIR_API size_t weir_pool_describe(char *text, size_t size);

/* --- leak ------------------------------------------------------------------------------------- */

/*
 * Finds buffers that were never released, where they were created and where they were last seen.
 *
 * Of the buffers, composites and file ranges that a thread creates, one in 128 is watched: a record
 * keeps where it was created and, at the advanced level, where it was touched (weir_msg_touch). A
 * watched message counts as lost if the thread that touched it last has ended. Another thread may
 * still have it: so leaks are searched at exit(), if no such thread runs any more, and on demand.
 * They are reported once per place that created them; docs/internals/buffer.md explains a report.
 *
 * A thread that creates more than 128,000 messages a second is sampled less often: it creates at
 * most about a thousand records a second.
 *
 * For tests: every message that a thread creates between weir_leak_scope_begin and
 * weir_leak_scope_end is watched, and must be released by then.
 */

enum weir_leak_level {
    WEIR_LEAK_OFF,      /* no message is watched */
    WEIR_LEAK_SIMPLE,   /* one in 128, with the place of creation; the default */
    WEIR_LEAK_ADVANCED, /* one in 128, with the places of creation and touches */
    WEIR_LEAK_PARANOID, /* every message, with the places of creation and touches */
};

/* A leak; valid during the call of the listener. */
typedef struct weir_leak_report {
    size_t size;        /* of this struct, for later versions */
    const char *type;   /* "buf", "composite", "file_range" */
    size_t bytes;       /* its capacity when it was last seen */
    uint32_t refs;      /* references that were not released */
    int64_t age_ns;     /* since its creation */
    const char *thread; /* name of the thread that had it last */
    bool thread_ended;
    size_t others;    /* further leaks from the same place, which are not reported */
    const char *text; /* the report, in lines */
} weir_leak_report;

/* Runs on the thread that searched for leaks; may call any function. */
typedef void weir_leak_listener_fn(const weir_leak_report *report, void *user_data);

/* All members are private. */
typedef struct weir_leak_scope {
    uint64_t first;
    void *reserved[3];
} weir_leak_scope;

/*
 * Sets the level for messages created from now on, and forgets which places were reported. Other
 * threads notice after at most 256 messages, or 16,384 if they are sampled less often. Before the
 * first call the level is WEIR_LEAK_LEVEL of the environment (off, simple, advanced, paranoid), or
 * simple.
 * Thread: any.  Fails: -EINVAL (unknown level).
 */
WEIR_API int weir_leak_set_level(enum weir_leak_level level);

/*
 * The current level.
 * Thread: any.
 */
WEIR_API enum weir_leak_level weir_leak_level(void);

/*
 * Sets the function that receives reports; NULL restores the log, one warning per line
 * (weir/log.h), which gets no more than four reports per search. A concurrent report may still
 * reach the old listener. It is called at exit(), too: reset it before what it uses is gone.
 * Thread: any.
 */
WEIR_API void weir_leak_set_listener(weir_leak_listener_fn *fn, void *user_data);

/*
 * Reports watched messages whose last thread has ended, for example after the end of a group.
 * Messages that were handed to another thread are among them unless it has touched them. Called at
 * exit() if no other thread runs that has created or touched a watched message. Returns their
 * number, including those reported before.
 * Thread: any.
 */
WEIR_API size_t weir_leak_check(void);

/*
 * Reports all watched messages that exist; for the end of a program. Returns their number.
 * Thread: any.
 */
WEIR_API size_t weir_leak_check_all(void);

/*
 * Watches every message that the calling thread creates from now on, at any level. Scopes may be
 * nested. A message for whose record there is no memory is not watched.
 * Thread: any.  Lends until weir_leak_scope_end: scope.
 */
WEIR_API void weir_leak_scope_begin(weir_leak_scope *scope);

/*
 * Ends a scope and reports the messages that this thread created in it and that still exist,
 * including those from places reported before. Returns their number.
 * Thread: the scope's.
 */
WEIR_API size_t weir_leak_scope_end(weir_leak_scope *scope);

#ifdef __cplusplus
}
#endif

#endif
