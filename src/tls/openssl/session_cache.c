/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions to be resumed: a client's by server name, the newest of a name first; a server's by id.
 *
 *      buckets   by the hash of the key, the newest first
 *      by_use    all of them, the least recently used first: it is evicted when the cache is full
 *
 * A ticket of TLS 1.3 is used once, so that an observer cannot link two connections of the same
 * client: a server sends several, and a few of them are cached. A session of TLS 1.2 may be used
 * repeatedly.
 */
#include <string.h>

#include <weir/memory.h>

#include "base/list.h"
#include "os/clock.h"
#include "os/mutex.h"
#include "tls/openssl/internal.h"

#define BUCKETS_MAX 65536
#define PER_KEY_MAX 4

struct entry {
    weir__list by_use;
    struct entry *next; /* of its bucket */
    uint64_t hash;
    SSL_SESSION *session; /* a reference */
    char key[];
};

struct weir__openssl_session_cache {
    weir__refs refs;
    weir__mutex lock; /* guards: */
    weir__list by_use;
    size_t count;
    size_t capacity;
    size_t bucket_count; /* a power of two */
    struct entry *buckets[];
};

/* ---- lifecycle ---- */

weir__openssl_session_cache *weir__openssl_session_cache_create(size_t capacity)
{
    weir__openssl_session_cache *cache;
    size_t bucket_count = 16, size;

    while (bucket_count < capacity && bucket_count < BUCKETS_MAX)
        bucket_count *= 2;
    size = sizeof(*cache) + bucket_count * sizeof(cache->buckets[0]);
    cache = weir_memory_alloc(size);
    if (cache == NULL)
        return NULL;
    memset(cache, 0, size);
    weir__refs_init(&cache->refs);
    weir__mutex_init(&cache->lock);
    weir__list_init(&cache->by_use);
    cache->capacity = capacity;
    cache->bucket_count = bucket_count;
    return cache;
}

static uint64_t hash_of(const char *key)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */

    for (; *key != '\0'; key++)
        hash = (hash ^ (unsigned char)*key) * UINT64_C(0x100000001b3);
    return hash;
}

static struct entry **bucket_of(weir__openssl_session_cache *cache, uint64_t hash)
{
    return &cache->buckets[(hash ^ hash >> 32) & (cache->bucket_count - 1)];
}

/* Removes the entry that a link of a bucket points to, and returns its session to the caller. */
static SSL_SESSION *unlink_entry(weir__openssl_session_cache *cache, struct entry **link)
{
    struct entry *entry = *link;
    SSL_SESSION *session = entry->session;

    *link = entry->next;
    weir__list_remove(&entry->by_use);
    cache->count--;
    weir_memory_free(entry);
    return session;
}

static void evict(weir__openssl_session_cache *cache, struct entry **link)
{
    SSL_SESSION_free(unlink_entry(cache, link));
}

static void evict_least_used(weir__openssl_session_cache *cache)
{
    struct entry *entry = WEIR_CONTAINER_OF(cache->by_use.next, struct entry, by_use);
    struct entry **link = bucket_of(cache, entry->hash);

    while (*link != entry)
        link = &(*link)->next;
    evict(cache, link);
}

weir__openssl_session_cache *weir__openssl_session_cache_retain(weir__openssl_session_cache *cache)
{
    weir__refs_retain(&cache->refs);
    return cache;
}

void weir__openssl_session_cache_release(weir__openssl_session_cache *cache)
{
    if (cache == NULL || !weir__refs_release(&cache->refs))
        return;
    while (cache->count > 0)
        evict_least_used(cache);
    weir__mutex_deinit(&cache->lock);
    weir_memory_free(cache);
}

size_t weir__openssl_session_cache_count(weir__openssl_session_cache *cache)
{
    size_t count;

    weir__mutex_lock(&cache->lock);
    count = cache->count;
    weir__mutex_unlock(&cache->lock);
    return count;
}

size_t weir__openssl_session_cache_capacity(const weir__openssl_session_cache *cache)
{
    return cache->capacity; /* never changes */
}

/* ---- one session ---- */

/* The link to the next entry of this key, starting at a link of its bucket. */
static struct entry **next_of(struct entry **link, uint64_t hash, const char *key)
{
    while (*link != NULL && ((*link)->hash != hash || strcmp((*link)->key, key) != 0))
        link = &(*link)->next;
    return link;
}

static bool is_used_once(const SSL_SESSION *session)
{
    return SSL_SESSION_get_protocol_version(session) >= TLS1_3_VERSION;
}

/* By the time of day, as OpenSSL counts it: after our lifetime, or after the server's. */
static bool is_expired(SSL_SESSION *session)
{
    int64_t age_s = weir_time_of_day() / 1000000000 - weir__openssl_session_time(session);
    unsigned long hint_s = SSL_SESSION_get_ticket_lifetime_hint(session);

    return age_s >= SSL_SESSION_get_timeout(session) ||
           weir__openssl_resumption_is_expired(session, SSL_SESSION_get_timeout(session)) ||
           (hint_s > 0 && age_s > 0 && (uint64_t)age_s >= hint_s);
}

/* Makes room for one more session of this key. */
static void evict_surplus(weir__openssl_session_cache *cache, uint64_t hash, const char *key,
                          size_t max)
{
    struct entry **link = next_of(bucket_of(cache, hash), hash, key);
    size_t count = 0;

    while (*link != NULL) {
        if (++count < max)
            link = &(*link)->next;
        else
            evict(cache, link);
        link = next_of(link, hash, key);
    }
}

bool weir__openssl_session_cache_add(weir__openssl_session_cache *cache, const char *key,
                                     SSL_SESSION *session)
{
    size_t size = strlen(key) + 1;
    struct entry *entry = weir_memory_alloc(sizeof(*entry) + size);
    struct entry **bucket;

    if (entry == NULL)
        return false; /* the next handshake is a full one */
    memcpy(entry->key, key, size);
    entry->hash = hash_of(key);
    entry->session = session;
    weir__mutex_lock(&cache->lock);
    evict_surplus(cache, entry->hash, key, is_used_once(session) ? PER_KEY_MAX : 1);
    if (cache->count == cache->capacity)
        evict_least_used(cache);
    bucket = bucket_of(cache, entry->hash);
    entry->next = *bucket;
    *bucket = entry;
    weir__list_append(&cache->by_use, &entry->by_use);
    cache->count++;
    weir__mutex_unlock(&cache->lock);
    return true;
}

static SSL_SESSION *use(weir__openssl_session_cache *cache, struct entry **link)
{
    struct entry *entry = *link;

    if (is_used_once(entry->session))
        return unlink_entry(cache, link);
    weir__list_remove(&entry->by_use);
    weir__list_append(&cache->by_use, &entry->by_use);
    return SSL_SESSION_up_ref(entry->session) == 1 ? entry->session : NULL;
}

SSL_SESSION *weir__openssl_session_cache_take(weir__openssl_session_cache *cache, const char *key)
{
    uint64_t hash = hash_of(key);
    SSL_SESSION *session = NULL;
    struct entry **link;

    weir__mutex_lock(&cache->lock);
    link = next_of(bucket_of(cache, hash), hash, key);
    while (*link != NULL && is_expired((*link)->session)) {
        evict(cache, link);
        link = next_of(link, hash, key);
    }
    if (*link != NULL)
        session = use(cache, link);
    weir__mutex_unlock(&cache->lock);
    return session;
}
