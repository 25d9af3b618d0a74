/* SPDX-License-Identifier: Apache-2.0 */
#include "shard.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

#define RELATIVE_MAX (60 * 60 * 24 * 30) /* beyond 30 days an expiry is a time since 1970 */
#define NUMBER_MAX_LENGTH 20             /* digits of a number that can be incremented */

/* What a command is about. */
struct call {
    struct shard *shard;
    const struct command *command;
    weir_span key;
    uint64_t hash;
    struct item *item; /* NULL = there is none of that key */
    weir_buf *answer;
};

/* ---- the protocol's times ---- */

static int64_t expiry_of(int64_t expires)
{
    int64_t now = time(NULL);

    if (expires < 0)
        return 1; /* long ago */
    return expires == 0 || expires > RELATIVE_MAX ? expires : now + expires;
}

/* ---- commands ---- */

static int say(const struct call *call, const char *text)
{
    return call->command->noreply ? 0 : weir_buf_write_string(call->answer, text);
}

static int put(const struct call *call, const struct value *value)
{
    int err = store_put(&call->shard->store, call->key, call->hash, value);

    return say(call, err ? "SERVER_ERROR out of memory storing object\r\n" : "STORED\r\n");
}

static int get(const struct call *call)
{
    const struct item *item = call->item;
    enum verb verb = call->command->verb;
    int err;

    call->shard->stats.gets++;
    if (item == NULL)
        return 0;
    call->shard->stats.hits++;
    if (verb == GAT || verb == GATS)
        call->item->expires = expiry_of(call->command->expires);
    err = weir_buf_printf(call->answer, "VALUE %.*s %" PRIu32 " %" PRIu32, (int)item->key_length,
                          item->bytes, item->flags, item->length);
    if (!err && (verb == GETS || verb == GATS))
        err = weir_buf_printf(call->answer, " %" PRIu64, item->cas);
    if (!err)
        err = weir_buf_write_string(call->answer, "\r\n");
    if (!err)
        err = weir_buf_write_bytes(call->answer, item_value(item).data, item->length);
    return err ? err : weir_buf_write_string(call->answer, "\r\n");
}

static int set(const struct call *call)
{
    const struct command *command = call->command;
    struct value value = {.flags = command->flags,
                          .expires = expiry_of(command->expires),
                          .head = weir_buf_span(command->data)};

    call->shard->stats.sets++;
    if (command->verb == ADD && call->item != NULL)
        return say(call, "NOT_STORED\r\n");
    if (command->verb == REPLACE && call->item == NULL)
        return say(call, "NOT_STORED\r\n");
    if (command->verb == CAS && call->item == NULL)
        return say(call, "NOT_FOUND\r\n");
    if (command->verb == CAS && call->item->cas != command->number)
        return say(call, "EXISTS\r\n");
    return put(call, &value);
}

static int extend(const struct call *call)
{
    weir_span more = weir_buf_span(call->command->data);
    struct value value;

    call->shard->stats.sets++;
    if (call->item == NULL)
        return say(call, "NOT_STORED\r\n");
    value = (struct value){.flags = call->item->flags, .expires = call->item->expires};
    value.head = call->command->verb == APPEND ? item_value(call->item) : more;
    value.tail = call->command->verb == APPEND ? more : item_value(call->item);
    return put(call, &value);
}

static int erase(const struct call *call)
{
    if (call->item == NULL)
        return say(call, "NOT_FOUND\r\n");
    store_remove(&call->shard->store, call->item);
    return say(call, "DELETED\r\n");
}

static bool read_number(weir_span text, uint64_t *ret_number)
{
    char digits[NUMBER_MAX_LENGTH + 1], *end;

    if (text.length == 0 || text.length > NUMBER_MAX_LENGTH)
        return false;
    memcpy(digits, text.data, text.length);
    digits[text.length] = '\0';
    errno = 0;
    *ret_number = strtoull(digits, &end, 10);
    return digits[0] >= '0' && digits[0] <= '9' && *end == '\0' && errno == 0;
}

/* Beyond 64 bits it begins anew, below 0 it stays there. */
static int count(const struct call *call)
{
    uint64_t by = call->command->number, number;
    char text[NUMBER_MAX_LENGTH + 3];
    struct value value;
    int length, err;

    if (call->item == NULL)
        return say(call, "NOT_FOUND\r\n");
    if (!read_number(item_value(call->item), &number))
        return say(call, "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n");
    if (call->command->verb == INCR)
        number += by;
    else
        number = by < number ? number - by : 0;
    length = snprintf(text, sizeof(text), "%" PRIu64 "\r\n", number);
    value = (struct value){.flags = call->item->flags,
                           .expires = call->item->expires,
                           .head = weir_span_of(text, (size_t)length - 2)};
    err = store_put(&call->shard->store, call->key, call->hash, &value);
    return say(call, err ? "SERVER_ERROR out of memory in incr\r\n" : text);
}

static int touch(const struct call *call)
{
    if (call->item == NULL)
        return say(call, "NOT_FOUND\r\n");
    call->item->expires = expiry_of(call->command->expires);
    return say(call, "TOUCHED\r\n");
}

/* The client is answered when all shards have done it. */
static int flush(const struct call *call)
{
    int64_t delay = call->command->expires;

    store_flush(&call->shard->store, delay > 0 ? expiry_of(delay) : 1);
    return 0;
}

int shard_execute(struct shard *shard, const struct command *command, weir_span key, uint64_t hash,
                  weir_buf *answer)
{
    struct call call = {
        .shard = shard, .command = command, .key = key, .hash = hash, .answer = answer};

    if (command->verb == FLUSH_ALL)
        return flush(&call);
    call.item = store_find(&shard->store, key, hash);
    switch (command->verb) {
    case GET:
    case GETS:
    case GAT:
    case GATS:
        return get(&call);
    case APPEND:
    case PREPEND:
        return extend(&call);
    case DELETE:
        return erase(&call);
    case INCR:
    case DECR:
        return count(&call);
    case TOUCH:
        return touch(&call);
    default:
        return set(&call);
    }
}

/* ---- the cache ---- */

int cache_init(struct cache *cache, weir_group *loops, size_t max_bytes, size_t item_max)
{
    size_t count = weir_group_count(loops);
    int err = 0;

    *cache = (struct cache){.max_bytes = max_bytes, .item_max = item_max, .started_at = time(NULL)};
    if (getrandom(&cache->seed, sizeof(cache->seed), 0) < 0)
        return -errno;
    cache->shards = calloc(count, sizeof(*cache->shards));
    if (cache->shards == NULL)
        return -ENOMEM;
    for (; cache->count < count && !err; cache->count++) {
        cache->shards[cache->count].loop = weir_group_at(loops, cache->count);
        err = store_init(&cache->shards[cache->count].store, max_bytes / count);
    }
    return err;
}

void cache_deinit(struct cache *cache)
{
    for (size_t i = 0; i < cache->count; i++)
        store_deinit(&cache->shards[i].store);
    free(cache->shards);
}

/* The shard is chosen by other bits than the bucket. */
struct shard *cache_shard(struct cache *cache, weir_span key, uint64_t *ret_hash)
{
    *ret_hash = weir_span_hash(key, cache->seed);
    return &cache->shards[(*ret_hash >> 32) % cache->count];
}

struct shard_stats shard_read_stats(const struct shard *shard)
{
    struct shard_stats stats = shard->stats;

    stats.store = shard->store.stats;
    return stats;
}
