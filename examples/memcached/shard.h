/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shards: each key belongs to one of them, and each of them to one loop, on which alone its items
 * are used. So nothing of it needs a lock.
 */
#ifndef EXAMPLES_SHARD_H
#define EXAMPLES_SHARD_H

#include "command.h"
#include "store.h"

struct shard_stats {
    struct store_stats store;
    uint64_t gets;
    uint64_t hits;
    uint64_t sets;
};

struct shard {
    weir_executor *loop;
    struct store store;
    struct shard_stats stats; /* but for `store`, which the store counts */
};

struct cache {
    struct shard *shards;
    size_t count;
    uint64_t seed; /* of hashes: clients do not know it */
    size_t max_bytes;
    size_t item_max; /* bytes of a value */
    int64_t started_at;
};

/* A shard for each loop of the group, which are `max_bytes` together. */
int cache_init(struct cache *cache, weir_group *loops, size_t max_bytes, size_t item_max);
void cache_deinit(struct cache *cache);

/* Whose key it is. */
struct shard *cache_shard(struct cache *cache, weir_span key, uint64_t *ret_hash);

/*
 * Does what a command says with one key of it, and appends the answer. FLUSH_ALL has no key. On the
 * shard's loop. Fails if the answer cannot be written.
 */
int shard_execute(struct shard *shard, const struct command *command, weir_span key, uint64_t hash,
                  weir_buf *answer);

struct shard_stats shard_read_stats(const struct shard *shard);

#endif
