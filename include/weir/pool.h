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
typedef struct weir_pool_block_stats {
    uint64_t size;       /* what each holds, besides a header of 64 bytes; 0 if that differs */
    uint64_t in_use;     /* blocks that are somebody's */
    uint64_t cached;     /* blocks free to be taken by the thread whose cache they are in */
    uint64_t in_transit; /* blocks released on another thread, on their way to that cache */
    uint64_t slabs;      /* pieces of the system's memory that blocks are cut from */
    uint64_t mapped_bytes;
    uint64_t peak_bytes; /* the most that has been mapped at once */
    uint64_t failures;   /* times that such a block was asked for in vain; of a cache: any block */
    uint64_t reserved[4];
} weir_pool_block_stats;

/* What one thread keeps. */
typedef struct weir_pool_cache_stats {
    uint64_t number;      /* as in the names of its metrics, pool.cache#NUMBER */
    int64_t thread_id;    /* the system's number of it; 0 = an orphan: the thread has ended */
    char thread_name[16]; /* of an orphan, the name that its thread had */
    weir_pool_block_stats blocks;
    uint64_t reserved[4];
} weir_pool_cache_stats;

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
    uint64_t spare_bytes;       /* not cut into blocks, or between them */
    weir_pool_block_stats huge; /* straight from the system, and no slabs; part of in_use_bytes */
    uint64_t slabs;
    uint64_t caches;  /* threads that have one */
    uint64_t orphans; /* caches whose thread has ended while buffers from it were in use */
    uint64_t class_count;
    weir_pool_block_stats classes[WEIR_POOL_CLASSES_MAX];
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
WEIR_API void weir_pool_read_stats(weir_pool_stats *ret_stats);

/*
 * Says what each thread's cache has, in no particular order, for the first `count` of them. Returns
 * how many caches there are. What was asked for in vain before a thread had a cache is in no
 * cache's failures.
 * Thread: any.
 */
WEIR_API size_t weir_pool_read_cache_stats(weir_pool_cache_stats *ret_caches, size_t count);

/*
 * Writes all of this as a table for people into `text`, cut off after `size` bytes with the end:
 * each size that was ever needed, and each cache. Returns the length that the whole table has.
 * Thread: any.
 */
WEIR_API size_t weir_pool_describe(char *text, size_t size);

/* --- leak ------------------------------------------------------------------------------------- */

/*
 * Which buffers were never released, who made them, and who saw them last.
 *
 * Of the buffers, composites and file ranges that a thread makes, one in 128 is watched: a record
 * keeps where it was made and, at the advanced level, the last places that touched it
 * (weir_msg_touch). A watched message that is still there when the thread that had it last has
 * ended has been forgotten: that is looked for whenever a group has terminated, and on demand, and
 * reported once for each place that made such messages. docs/internals/buffer.md shows how to read
 * a report.
 *
 * A thread that makes more than 128,000 messages a second is sampled less often, so that watching
 * costs it no more than a thousand records a second.
 *
 * Tests want more: between weir_leak_scope_begin and weir_leak_scope_end everything that the thread
 * makes is watched, and must be gone at the end.
 */

enum weir_leak_level {
    WEIR_LEAK_OFF,      /* nothing is watched */
    WEIR_LEAK_SIMPLE,   /* one in 128; where it was made. The default */
    WEIR_LEAK_ADVANCED, /* one in 128; where it was made and touched */
    WEIR_LEAK_PARANOID, /* every one; where it was made and touched */
};

/* What is known of messages that were forgotten; all of it is lent for the call of the listener. */
typedef struct weir_leak_report {
    size_t size;        /* of this struct: later versions may have more */
    const char *type;   /* "buf", "composite", "file_range" */
    size_t bytes;       /* that it had room for when it was last seen */
    uint32_t refs;      /* that have not been released */
    int64_t age_ns;     /* since it was made */
    const char *thread; /* the name of the one that had it last */
    bool thread_ended;
    size_t others;    /* further ones that were made in the same place; they get no report */
    const char *text; /* all of this but the type, and the message's way, in lines */
} weir_leak_report;

/* Runs on the thread that looked for leaks; may call anything. */
typedef void weir_leak_listener_fn(const weir_leak_report *report, void *user_data);

/* Private, as all of it. */
typedef struct weir_leak_scope {
    uint64_t first;
    void *reserved[3];
} weir_leak_scope;

/*
 * Changes what is watched of the messages made from now on, and forgets which places were reported.
 * Other threads hear of it within 256 messages, or 16,384 if they were sampled less often. Until
 * the first call the level is WEIR_LEAK_LEVEL of the environment (off, simple, advanced, paranoid),
 * or simple.
 * Thread: any.  Fails: -EINVAL.
 */
WEIR_API int weir_leak_set_level(enum weir_leak_level level);

/*
 * The level in force.
 * Thread: any.
 */
WEIR_API enum weir_leak_level weir_leak_level(void);

/*
 * Sends reports to `fn` from now on; NULL brings back the log, where they are warnings, a line each
 * (weir/log.h). A report that is under way may still reach the old one.
 * Thread: any.
 */
WEIR_API void weir_leak_set_listener(weir_leak_listener_fn *fn, void *user_data);

/*
 * Reports the watched messages whose last known thread has ended. Runs by itself when a group has
 * terminated. Returns how many there are, also of those that were reported before.
 * Thread: any.
 */
WEIR_API size_t weir_leak_check(void);

/*
 * Reports all watched messages that are there, whoever has them: at the end of a program, when
 * there should be none. Returns how many there are.
 * Thread: any.
 */
WEIR_API size_t weir_leak_check_all(void);

/*
 * From now on every message that this thread makes is watched, whatever the level. Scopes may be
 * nested. A message for which there is no memory for a record is not watched.
 * Thread: any.  Lends until weir_leak_scope_end: scope.
 */
WEIR_API void weir_leak_scope_begin(weir_leak_scope *scope);

/*
 * Ends the scope, on the thread that began it. Reports, also places that were reported before, what
 * this thread has made since and nobody has released. Returns how many there are.
 * Thread: the scope's.
 */
WEIR_API size_t weir_leak_scope_end(weir_leak_scope *scope);

#ifdef __cplusplus
}
#endif

#endif
