/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/http/file_cache.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include <weir/memory.h>
#include <weir/promise.h>
#include <weir/timer.h>

#include "base/list.h"
#include "base/refcount.h"
#include "os/mutex.h"

#define STRIPE_COUNT 64
#define BUCKET_COUNT 256
#define LOOKUP_BUCKET_COUNT 64
#define MIN_SWEEP_NS ((int64_t)1000000000)

struct entry {
    weir__list link; /* of the stripe, the least recently used first */
    struct entry *next;
    uint64_t hash;
    weir__http_file *file;
    int64_t expires_ns;
    bool was_used; /* since the last sweep */
    size_t length;
    char path[];
};

struct weir__http_file_stripe {
    weir__mutex mutex;
    weir__list entries;
    struct entry *buckets[BUCKET_COUNT];
    weir__http_lookup *lookups[LOOKUP_BUCKET_COUNT]; /* one for each connection, at most */
};

/* References: that of the owner, and that of a scheduled sweep. */
struct weir__http_file_cache {
    weir__refs refs;
    weir__http_file_cache_limits limits;
    weir_executor *executor;
    _Atomic bool is_closed;
    _Atomic bool is_sweep_scheduled;
    weir__mutex sweep_mutex;
    weir_promise *sweep; /* the scheduled one */
    _Atomic size_t bytes;
    _Atomic unsigned descriptors;
    weir__http_file_stripe *_Atomic stripes[STRIPE_COUNT];
};

/* ---- the cache ---- */

int weir__http_file_cache_create(const weir__http_file_cache_limits *limits,
                                 weir_executor *executor, weir__http_file_cache **ret_cache)
{
    weir__http_file_cache *cache = weir_memory_alloc(sizeof(*cache));

    if (cache == NULL)
        return -ENOMEM;
    memset(cache, 0, sizeof(*cache));
    weir__refs_init(&cache->refs);
    weir__mutex_init(&cache->sweep_mutex);
    cache->limits = *limits;
    cache->executor = weir_executor_retain(executor);
    *ret_cache = cache;
    return 0;
}

static void release(weir__http_file_cache *cache)
{
    if (!weir__refs_release(&cache->refs))
        return;
    for (size_t i = 0; i < STRIPE_COUNT; i++) {
        weir__http_file_stripe *stripe = atomic_load(&cache->stripes[i]);

        if (stripe != NULL)
            weir__mutex_deinit(&stripe->mutex);
        weir_memory_free(stripe);
    }
    weir__mutex_deinit(&cache->sweep_mutex);
    weir_promise_release(cache->sweep);
    weir_executor_release(cache->executor);
    weir_memory_free(cache);
}

static weir__http_file_stripe *create_stripe(void)
{
    weir__http_file_stripe *stripe = weir_memory_alloc(sizeof(*stripe));

    if (stripe == NULL)
        return NULL;
    memset(stripe, 0, sizeof(*stripe));
    weir__mutex_init(&stripe->mutex);
    weir__list_init(&stripe->entries);
    return stripe;
}

/* The stripe of a loop; NULL without memory. Executors are allocated: the low bits say nothing. */
static weir__http_file_stripe *stripe_for(weir__http_file_cache *cache, const weir_executor *loop)
{
    uint64_t mixed = (uint64_t)(uintptr_t)loop * UINT64_C(0x9e3779b97f4a7c15);
    weir__http_file_stripe *_Atomic *slot = &cache->stripes[mixed >> 58];
    weir__http_file_stripe *stripe = atomic_load_explicit(slot, memory_order_acquire),
                           *other = NULL;

    if (stripe != NULL)
        return stripe;
    stripe = create_stripe();
    if (stripe != NULL && !atomic_compare_exchange_strong(slot, &other, stripe)) {
        weir__mutex_deinit(&stripe->mutex);
        weir_memory_free(stripe);
        return other;
    }
    return stripe;
}

/* ---- entries: under the stripe's mutex ---- */

static struct entry *entry_of(weir__list *link)
{
    return (struct entry *)(void *)link; /* its first member */
}

static struct entry **find(weir__http_file_stripe *stripe, weir_span path, uint64_t hash)
{
    struct entry **at = &stripe->buckets[hash % BUCKET_COUNT];

    while (*at != NULL && ((*at)->hash != hash ||
                           !weir_span_equal(path, weir_span_of((*at)->path, (*at)->length))))
        at = &(*at)->next;
    return at;
}

/* Moves an entry to a list of entries to be freed, outside of the mutex: that may close a file. */
static void unlink_entry(weir__http_file_cache *cache, struct entry **at, weir__list *removed)
{
    struct entry *entry = *at;

    *at = entry->next;
    weir__list_remove(&entry->link);
    weir__list_append(removed, &entry->link);
    atomic_fetch_sub_explicit(&cache->bytes, entry->file->bytes, memory_order_relaxed);
    atomic_fetch_sub_explicit(&cache->descriptors, entry->file->descriptors, memory_order_relaxed);
}

static void unlink_found(weir__http_file_cache *cache, weir__http_file_stripe *stripe,
                         struct entry *entry, weir__list *removed)
{
    unlink_entry(cache, find(stripe, weir_span_of(entry->path, entry->length), entry->hash),
                 removed);
}

static void free_entries(weir__list *removed)
{
    weir__list *link;

    while ((link = weir__list_pop(removed)) != NULL) {
        weir__http_file_release(entry_of(link)->file);
        weir_memory_free(entry_of(link));
    }
}

static bool is_full(const weir__http_file_cache *cache, const weir__http_file *file)
{
    return atomic_load_explicit(&cache->bytes, memory_order_relaxed) + file->bytes >
               cache->limits.bytes ||
           atomic_load_explicit(&cache->descriptors, memory_order_relaxed) + file->descriptors >
               cache->limits.descriptors;
}

/* Keeps a file. Makes room within the stripe; if that is not enough, the file is not kept. */
static void keep(weir__http_file_cache *cache, const weir__http_lookup *lookup,
                 weir__http_file *file, weir__list *removed)
{
    weir__http_file_stripe *stripe = lookup->stripe;
    weir_span path = weir_span_of(lookup->path, lookup->length);
    uint64_t hash = lookup->hash;
    struct entry *entry;

    while (is_full(cache, file) && !weir__list_is_empty(&stripe->entries))
        unlink_found(cache, stripe, entry_of(stripe->entries.next), removed);
    if (is_full(cache, file))
        return;
    entry = weir_memory_alloc(sizeof(*entry) + path.length);
    if (entry == NULL)
        return;
    *entry = (struct entry){
        .hash = hash,
        .file = weir__http_file_retain(file),
        .expires_ns = lookup->started_ns + cache->limits.lifetime_ns,
        .was_used = true,
        .length = path.length,
        .next = stripe->buckets[hash % BUCKET_COUNT],
    };
    memcpy(entry->path, path.data, path.length);
    stripe->buckets[hash % BUCKET_COUNT] = entry;
    weir__list_append(&stripe->entries, &entry->link);
    atomic_fetch_add_explicit(&cache->bytes, file->bytes, memory_order_relaxed);
    atomic_fetch_add_explicit(&cache->descriptors, file->descriptors, memory_order_relaxed);
}

weir__http_file *weir__http_file_cache_get(weir__http_file_cache *cache, const weir_executor *loop,
                                           weir_span path, int64_t now_ns)
{
    weir__http_file_stripe *stripe = stripe_for(cache, loop);
    weir__http_file *file = NULL;
    struct entry *entry;

    if (stripe == NULL)
        return NULL;
    weir__mutex_lock(&stripe->mutex);
    entry = *find(stripe, path, weir_span_hash(path, 0));
    if (entry != NULL && now_ns < entry->expires_ns) {
        entry->was_used = true;
        if (stripe->entries.previous != &entry->link) {
            weir__list_remove(&entry->link);
            weir__list_append(&stripe->entries, &entry->link);
        }
        file = weir__http_file_retain(entry->file);
    }
    weir__mutex_unlock(&stripe->mutex);
    return file;
}

/* ---- sweeps ---- */

/* Removes the entries of a stripe, all or the unused ones. Returns true if there are others. */
static bool sweep_stripe(weir__http_file_cache *cache, weir__http_file_stripe *stripe, bool all)
{
    weir__list removed;
    bool has_entries;

    weir__list_init(&removed);
    weir__mutex_lock(&stripe->mutex);
    weir_list_foreach (link, &stripe->entries) {
        if (all || !entry_of(link)->was_used)
            unlink_found(cache, stripe, entry_of(link), &removed);
        else
            entry_of(link)->was_used = false;
    }
    has_entries = !weir__list_is_empty(&stripe->entries);
    weir__mutex_unlock(&stripe->mutex);
    free_entries(&removed);
    return has_entries;
}

static bool sweep_all(weir__http_file_cache *cache, bool all)
{
    weir__http_file_stripe *stripe;
    bool has_entries = false;

    for (size_t i = 0; i < STRIPE_COUNT; i++) {
        stripe = atomic_load_explicit(&cache->stripes[i], memory_order_acquire);
        if (stripe != NULL && sweep_stripe(cache, stripe, all))
            has_entries = true;
    }
    return has_entries;
}

static void schedule_sweep(weir__http_file_cache *cache);

/* A file that is kept between the sweep and the store finds that no sweep needs to be scheduled;
 * the second look finds the file. */
static void on_sweep(void *user_data, int status)
{
    weir__http_file_cache *cache = user_data;
    bool has_entries = status == 0 && sweep_all(cache, false);

    atomic_store(&cache->is_sweep_scheduled, false);
    if (status == 0 && (has_entries || atomic_load(&cache->bytes) > 0))
        schedule_sweep(cache);
    release(cache);
}

/* Under the mutex, so that closing finds the promise. */
static void schedule_sweep(weir__http_file_cache *cache)
{
    int64_t delay_ns =
        cache->limits.lifetime_ns > MIN_SWEEP_NS ? cache->limits.lifetime_ns : MIN_SWEEP_NS;

    if (atomic_load(&cache->is_sweep_scheduled) ||
        atomic_exchange(&cache->is_sweep_scheduled, true))
        return;
    weir__mutex_lock(&cache->sweep_mutex);
    weir_promise_release(cache->sweep);
    cache->sweep = NULL;
    weir__refs_retain(&cache->refs);
    if (atomic_load(&cache->is_closed) ||
        weir_schedule(cache->executor, delay_ns, on_sweep, cache, &cache->sweep) < 0) {
        atomic_store(&cache->is_sweep_scheduled, false);
        weir__mutex_unlock(&cache->sweep_mutex);
        release(cache);
        return;
    }
    weir__mutex_unlock(&cache->sweep_mutex);
}

void weir__http_file_cache_clear(weir__http_file_cache *cache)
{
    (void)sweep_all(cache, true);
}

void weir__http_file_cache_close(weir__http_file_cache *cache)
{
    weir_promise *sweep;

    if (cache == NULL)
        return;
    weir__mutex_lock(&cache->sweep_mutex);
    atomic_store(&cache->is_closed, true);
    sweep = cache->sweep;
    cache->sweep = NULL;
    weir__mutex_unlock(&cache->sweep_mutex);
    if (sweep != NULL)
        (void)weir_promise_cancel(sweep);
    weir_promise_release(sweep);
    weir__http_file_cache_clear(cache);
    release(cache);
}

/* ---- lookups ---- */

static weir__http_lookup **find_lookup(weir__http_file_stripe *stripe, weir_span path,
                                       uint64_t hash)
{
    weir__http_lookup **at = &stripe->lookups[hash % LOOKUP_BUCKET_COUNT];

    while (*at != NULL && ((*at)->hash != hash ||
                           !weir_span_equal(path, weir_span_of((*at)->path, (*at)->length))))
        at = &(*at)->next;
    return at;
}

static weir__http_lookup *create_lookup(weir__http_file_stripe *stripe, weir_span path,
                                        int64_t now_ns)
{
    weir__http_lookup *lookup = weir_memory_alloc(sizeof(*lookup) + path.length + 1);

    if (lookup == NULL)
        return NULL;
    memset(lookup, 0, sizeof(*lookup));
    lookup->stripe = stripe;
    lookup->hash = weir_span_hash(path, 0);
    lookup->started_ns = now_ns;
    lookup->length = path.length;
    memcpy(lookup->path, path.data, path.length);
    lookup->path[path.length] = '\0';
    lookup->next = stripe->lookups[lookup->hash % LOOKUP_BUCKET_COUNT];
    stripe->lookups[lookup->hash % LOOKUP_BUCKET_COUNT] = lookup;
    return lookup;
}

static int add_waiter(weir__http_file_stripe *stripe, weir_span path, int64_t now_ns, void *request,
                      weir__http_lookup **ret_lookup)
{
    weir__http_lookup *lookup = *find_lookup(stripe, path, weir_span_hash(path, 0)), *new = NULL;
    weir__http_waiter *waiter = weir_memory_alloc(sizeof(*waiter));

    if (waiter != NULL && lookup == NULL)
        lookup = new = create_lookup(stripe, path, now_ns);
    if (waiter == NULL || lookup == NULL) {
        weir_memory_free(waiter);
        return -ENOMEM;
    }
    *waiter = (weir__http_waiter){.next = lookup->waiters, .request = request};
    lookup->waiters = waiter;
    *ret_lookup = new;
    return 0;
}

int weir__http_file_cache_wait(weir__http_file_cache *cache, const weir_executor *loop,
                               weir_span path, int64_t now_ns, void *request,
                               weir__http_lookup **ret_lookup)
{
    weir__http_file_stripe *stripe = stripe_for(cache, loop);
    int err;

    if (stripe == NULL)
        return -ENOMEM;
    weir__mutex_lock(&stripe->mutex);
    err = add_waiter(stripe, path, now_ns, request, ret_lookup);
    weir__mutex_unlock(&stripe->mutex);
    return err;
}

weir__http_waiter *weir__http_file_cache_end_lookup(weir__http_file_cache *cache,
                                                    weir__http_lookup *lookup,
                                                    weir__http_file *file)
{
    weir__http_file_stripe *stripe = lookup->stripe;
    weir_span path = weir_span_of(lookup->path, lookup->length);
    weir__http_waiter *reversed, *waiters = NULL, *next;
    struct entry **old;
    weir__list removed;

    weir__list_init(&removed);
    weir__mutex_lock(&stripe->mutex);
    *find_lookup(stripe, path, lookup->hash) = lookup->next;
    reversed = lookup->waiters;
    old = find(stripe, path, lookup->hash);
    if (*old != NULL)
        unlink_entry(cache, old, &removed);
    if (file != NULL && cache->limits.lifetime_ns > 0)
        keep(cache, lookup, file, &removed);
    weir__mutex_unlock(&stripe->mutex);
    free_entries(&removed);
    weir_memory_free(lookup);
    if (file != NULL && cache->limits.lifetime_ns > 0)
        schedule_sweep(cache);
    for (; reversed != NULL; reversed = next) {
        next = reversed->next;
        reversed->next = waiters;
        waiters = reversed;
    }
    return waiters;
}
