/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The registry of metrics.
 *
 *     chunks[0] -> 64 slots    chunks[1] -> 128 slots    chunks[2] -> 256 slots ...
 *                   |
 *                   +-> weir_metric, in memory of its owner; or NULL
 *
 * Slots do not move, so a reader can stop at a slot, call its callback, and continue with the next.
 * Changes are made under a mutex, which also guards a hash table of the names. Readers do not lock
 * it:
 *
 *     reader                            unregistration
 *     readers += 1          (a)         slot = NULL               (c)
 *     metric = slot         (b)         wait until readers == 0   (d)
 *     copy the metric
 *     readers -= 1          (release)
 *
 * (a) to (d) are sequentially consistent. If (d) precedes (a) in their total order, then so does
 * (c), and (b) does not find the metric. Otherwise (d) sees the reader and waits; the 0 that ends
 * the wait was written by the last decrement, and each decrement continues the release sequence of
 * those before it, so every copy happens before the memory of the metric is reused. The same holds
 * for the chunks, which are freed with the last metric. A reader is counted only for the duration
 * of one copy, so the wait is short.
 */
#include "base/metric.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/histogram.h"
#include "base/memory.h"
#include "os/thread.h"

#define FIRST_CHUNK_SLOTS 64u
#define CHUNKS_MAX 20 /* 67 million slots */
#define NAME_BUCKETS 1024u
#define NO_SLOT UINT32_MAX

struct slot {
    _Atomic(weir_metric *) metric;
    uint32_t next_free; /* guarded by registry.lock */
};

static struct {
    weir__mutex lock; /* guards the fields of this struct */
    uint32_t count;
    uint32_t first_free;
    weir_metric *by_name[NAME_BUCKETS];
} registry = {.lock = WEIR__MUTEX_INIT, .first_free = NO_SLOT};

/* Release and acquire: a thread that sees a table sees its rows. */
static _Atomic(weir_metric_table *) tables = &weir__process_metrics;

/* Read without the lock; changed only under registry.lock. */
static struct {
    _Atomic uint32_t readers;
    _Atomic uint32_t slots_end; /* slots at or after it were never used */
    _Atomic(struct slot *) chunks[CHUNKS_MAX];
} shared;

static unsigned chunk_of(uint32_t index)
{
    return 31u - (unsigned)__builtin_clz(index / FIRST_CHUNK_SLOTS + 1);
}

static uint32_t chunk_size(unsigned chunk)
{
    return FIRST_CHUNK_SLOTS << chunk;
}

/* NULL if the chunk was freed. */
static struct slot *slot_at(uint32_t index)
{
    unsigned chunk = chunk_of(index);
    struct slot *slots = atomic_load(&shared.chunks[chunk]);

    return slots != NULL ? &slots[index + FIRST_CHUNK_SLOTS - chunk_size(chunk)] : NULL;
}

static int take_new_slot_locked(uint32_t *ret_slot)
{
    uint32_t index = atomic_load(&shared.slots_end);
    unsigned chunk = chunk_of(index);

    if (chunk >= CHUNKS_MAX)
        return -ENOMEM;
    if (atomic_load(&shared.chunks[chunk]) == NULL) {
        struct slot *slots = weir__zalloc(chunk_size(chunk) * sizeof(*slots));

        if (slots == NULL)
            return -ENOMEM;
        atomic_store(&shared.chunks[chunk], slots);
    }
    atomic_store(&shared.slots_end, index + 1);
    *ret_slot = index;
    return 0;
}

static int take_slot_locked(uint32_t *ret_slot)
{
    if (registry.first_free == NO_SLOT)
        return take_new_slot_locked(ret_slot);
    *ret_slot = registry.first_free;
    registry.first_free = slot_at(*ret_slot)->next_free;
    return 0;
}

#define HASH_BASE 2166136261u /* FNV-1a */

/* The hash of a text that is continued by `length` bytes at most. */
static uint32_t hash_on(uint32_t hash, const char *text, size_t length)
{
    for (size_t i = 0; i < length && text[i] != '\0'; i++)
        hash = (hash ^ (unsigned char)text[i]) * 16777619u;
    return hash;
}

static bool has_name(const weir_metric *metric, uint32_t hash, const char *name)
{
    return metric->name_hash == hash && strncmp(name, metric->family, metric->family_length) == 0 &&
           strcmp(name + metric->family_length, metric->labels) == 0;
}

/* Writes the whole name; it fits. */
static void copy_name(const weir_metric *metric, char ret_name[WEIR_METRIC_NAME_SIZE])
{
    memcpy(ret_name, metric->family, metric->family_length);
    memcpy(ret_name + metric->family_length, metric->labels, strlen(metric->labels) + 1);
}

/* ---- tables ---- */

static void add_table_locked(weir_metric_table *table)
{
    table->next = atomic_load_explicit(&tables, memory_order_relaxed);
    atomic_store_explicit(&tables, table, memory_order_release);
}

void weir__metric_table_add(weir_metric_table *table)
{
    weir__mutex_lock(&registry.lock);
    add_table_locked(table);
    weir__mutex_unlock(&registry.lock);
}

/* Reads the summary of a copied histogram, so that both agree. */
static void set_histogram(weir_metric_value *value, const weir_histogram *copy)
{
    weir_histogram_read(copy, &value->summary);
    value->value = (int64_t)value->summary.count;
    value->histogram = copy;
}

static void copy_row(const weir_metric_table *table, unsigned row, weir_metric_value *ret_value,
                     weir_histogram *copy)
{
    *ret_value = (weir_metric_value){
        .family_length = strcspn(table->rows[row].name, "{"),
        .kind = table->rows[row].kind,
    };
    (void)snprintf(ret_value->name, sizeof(ret_value->name), "%s", table->rows[row].name);
    if (ret_value->kind == WEIR_METRIC_HISTOGRAM) {
        weir__histogram_init(copy);
        table->merge(row, copy);
        set_histogram(ret_value, copy);
    } else {
        ret_value->value = table->read(row);
    }
}

/* The table that has a row with this name; NULL if there is none. */
static const weir_metric_table *find_row(const char *name, unsigned *ret_row)
{
    const weir_metric_table *table = atomic_load_explicit(&tables, memory_order_acquire);

    for (; table != NULL; table = table->next)
        for (*ret_row = 0; *ret_row < table->count; ++*ret_row)
            if (strcmp(table->rows[*ret_row].name, name) == 0)
                return table;
    return NULL;
}

static void visit_tables(weir_metric_fn *fn, void *user_data, weir_histogram *copy)
{
    const weir_metric_table *table = atomic_load_explicit(&tables, memory_order_acquire);
    weir_metric_value value;

    for (; table != NULL; table = table->next)
        for (unsigned i = 0; i < table->count; i++) {
            copy_row(table, i, &value, copy);
            fn(&value, user_data);
        }
}

/* ---- registered metrics ---- */

static weir_metric **bucket_of(uint32_t hash)
{
    return &registry.by_name[hash % NAME_BUCKETS];
}

static bool is_taken_locked(const char *name, uint32_t hash)
{
    unsigned row;

    for (weir_metric *other = *bucket_of(hash); other != NULL; other = other->next_in_bucket)
        if (has_name(other, hash, name))
            return true;
    return find_row(name, &row) != NULL;
}

static int insert_locked(weir_metric *metric)
{
    weir_metric **bucket = bucket_of(metric->name_hash);
    char name[WEIR_METRIC_NAME_SIZE];
    int err;

    copy_name(metric, name);
    if (is_taken_locked(name, metric->name_hash))
        return -EEXIST;
    err = take_slot_locked(&metric->slot);
    if (err < 0)
        return err;

    metric->next_in_bucket = *bucket;
    *bucket = metric;
    registry.count++;
    atomic_store(&slot_at(metric->slot)->metric, metric);
    return 0;
}

static void remove_locked(weir_metric *metric)
{
    struct slot *slot = slot_at(metric->slot);
    weir_metric **link = bucket_of(metric->name_hash);

    while (*link != metric)
        link = &(*link)->next_in_bucket;
    *link = metric->next_in_bucket;

    atomic_store(&slot->metric, NULL);
    slot->next_free = registry.first_free;
    registry.first_free = metric->slot;
    registry.count--;
}

/* Detaches the chunks of an empty registry, to be freed. */
static void detach_chunks_locked(struct slot *ret_chunks[CHUNKS_MAX])
{
    for (int i = 0; i < CHUNKS_MAX; i++)
        ret_chunks[i] = registry.count == 0 ? atomic_exchange(&shared.chunks[i], NULL) : NULL;
    if (registry.count == 0) {
        registry.first_free = NO_SLOT;
        atomic_store(&shared.slots_end, 0);
    }
}

static void wait_for_readers(void)
{
    while (atomic_load(&shared.readers) > 0)
        weir__thread_yield();
}

static bool is_number(enum weir_metric_kind kind)
{
    return kind == WEIR_METRIC_COUNTER || kind == WEIR_METRIC_GAUGE;
}

static int check_row_locked(const weir_metric_table *table, const weir_metric_row *row)
{
    int err = weir__metric_name_check((weir__metric_name){row->name});

    if (err < 0)
        return err;
    if (row->kind == WEIR_METRIC_HISTOGRAM ? table->merge == NULL
                                           : !is_number(row->kind) || table->read == NULL)
        return -EINVAL;
    return is_taken_locked(row->name, hash_on(HASH_BASE, row->name, SIZE_MAX)) ? -EEXIST : 0;
}

int weir_metric_table_add(weir_metric_table *table)
{
    int err = 0;

    weir__mutex_lock(&registry.lock);
    for (unsigned i = 0; i < table->count && err == 0; i++)
        err = check_row_locked(table, &table->rows[i]);
    if (err == 0)
        add_table_locked(table);
    weir__mutex_unlock(&registry.lock);
    return err;
}

/* Registers an initialized metric: readers see it from here on. */
static int publish(weir_metric *metric, weir__metric_name name)
{
    int err = weir__metric_name_check(name);

    if (err < 0)
        return err;
    metric->family = name.family;
    metric->family_length = (uint8_t)strcspn(name.family, "{");
    metric->labels = name.labels != NULL ? name.labels : name.family + metric->family_length;
    metric->name_hash = hash_on(hash_on(HASH_BASE, metric->family, metric->family_length),
                                metric->labels, WEIR_METRIC_NAME_SIZE);

    weir__mutex_lock(&registry.lock);
    err = insert_locked(metric);
    weir__mutex_unlock(&registry.lock);
    metric->registered = err == 0;
    return err;
}

int weir__metric_init(weir_metric *metric, enum weir_metric_kind kind, weir__metric_name name)
{
    return weir__metric_init_source(metric, kind, name, &metric->value);
}

int weir__metric_init_source(weir_metric *metric, enum weir_metric_kind kind,
                             weir__metric_name name, const _Atomic int64_t *source)
{
    *metric = (weir_metric){.kind = kind, .source = source};
    return is_number(kind) ? publish(metric, name) : -EINVAL;
}

int weir__metric_init_read(weir_metric *metric, enum weir_metric_kind kind, weir__metric_name name,
                           weir__metric_read_fn *read, void *arg)
{
    *metric = (weir_metric){.kind = kind, .read = read, .read_arg = arg};
    return is_number(kind) ? publish(metric, name) : -EINVAL;
}

int weir__metric_init_histogram(weir_metric *metric, weir__metric_name name,
                                weir_histogram *histogram)
{
    *metric = (weir_metric){.kind = WEIR_METRIC_HISTOGRAM, .histogram = histogram};
    return publish(metric, name);
}

void weir__metric_deinit(weir_metric *metric)
{
    struct slot *chunks[CHUNKS_MAX];

    if (!metric->registered)
        return;
    weir__mutex_lock(&registry.lock);
    remove_locked(metric);
    detach_chunks_locked(chunks);
    weir__mutex_unlock(&registry.lock);

    wait_for_readers();
    metric->registered = false;
    for (int i = 0; i < CHUNKS_MAX; i++)
        weir__free(chunks[i]);
}

static int init_with_histogram(weir_metric *metric, weir__metric_name name)
{
    weir_histogram *histogram;
    int err = weir_histogram_create(&histogram);

    if (err < 0)
        return err;
    err = weir__metric_init_histogram(metric, name, histogram);
    if (err < 0)
        weir_histogram_release(histogram);
    return err;
}

/* A metric that owns its name. */
struct created {
    weir_metric metric;
    char name[];
};

int weir_metric_create(enum weir_metric_kind kind, const char *name, weir_metric **ret_metric)
{
    size_t size = name != NULL ? strnlen(name, WEIR_METRIC_NAME_SIZE) + 1 : 1;
    struct created *created = weir__alloc(sizeof(*created) + size);
    int err;

    if (created == NULL)
        return -ENOMEM;
    (void)snprintf(created->name, size, "%s", name != NULL ? name : "");
    err = kind == WEIR_METRIC_HISTOGRAM
              ? init_with_histogram(&created->metric, (weir__metric_name){created->name})
              : weir__metric_init(&created->metric, kind, (weir__metric_name){created->name});
    if (err < 0) {
        weir__free(created);
        return err;
    }
    *ret_metric = &created->metric;
    return 0;
}

void weir_metric_release(weir_metric *metric)
{
    if (metric == NULL)
        return;
    weir__metric_deinit(metric);
    weir_histogram_release(metric->histogram);
    weir__free(metric);
}

/* Relaxed here and below: the value of a metric publishes no other data. */
int weir_metric_add(weir_metric *metric, int64_t n)
{
    if (!is_number(metric->kind) || (metric->kind == WEIR_METRIC_COUNTER && n < 0))
        return -EINVAL;
    atomic_fetch_add_explicit(&metric->value, n, memory_order_relaxed);
    return 0;
}

int weir_metric_set(weir_metric *metric, int64_t value)
{
    if (metric->kind != WEIR_METRIC_GAUGE)
        return -EINVAL;
    atomic_store_explicit(&metric->value, value, memory_order_relaxed);
    return 0;
}

int weir_metric_record(weir_metric *metric, int64_t value)
{
    if (metric->kind != WEIR_METRIC_HISTOGRAM)
        return -EINVAL;
    weir_histogram_record(metric->histogram, value);
    return 0;
}

static void copy_metric(const weir_metric *metric, weir_metric_value *ret_value,
                        weir_histogram *copy)
{
    *ret_value = (weir_metric_value){.family_length = metric->family_length, .kind = metric->kind};
    copy_name(metric, ret_value->name);
    if (metric->histogram != NULL) {
        weir__histogram_init(copy);
        weir_histogram_merge(copy, metric->histogram);
        set_histogram(ret_value, copy);
    } else if (metric->read != NULL) {
        ret_value->value = metric->read(metric->read_arg);
    } else {
        ret_value->value = atomic_load_explicit(metric->source, memory_order_relaxed);
    }
}

/* Copies the metric in a slot, if any. Unless `name` is NULL its name must match. */
static bool copy_slot(uint32_t index, const char *name, uint32_t hash, weir_metric_value *ret_value,
                      weir_histogram *copy)
{
    const struct slot *slot;
    const weir_metric *metric;
    bool wanted;

    atomic_fetch_add(&shared.readers, 1);
    slot = slot_at(index);
    metric = slot != NULL ? atomic_load(&slot->metric) : NULL;
    wanted = metric != NULL && (name == NULL || has_name(metric, hash, name));
    if (wanted)
        copy_metric(metric, ret_value, copy);
    atomic_fetch_sub_explicit(&shared.readers, 1, memory_order_release);
    return wanted;
}

int weir_metric_read(const char *name, weir_metric_value *ret_value)
{
    const weir_metric_table *table;
    weir_histogram copy;
    uint32_t hash;
    unsigned row;

    if (name == NULL)
        return -EINVAL;
    hash = hash_on(HASH_BASE, name, SIZE_MAX);
    for (uint32_t i = 0; i < atomic_load(&shared.slots_end); i++)
        if (copy_slot(i, name, hash, ret_value, &copy)) {
            ret_value->histogram = NULL;
            return 0;
        }
    table = find_row(name, &row);
    if (table == NULL)
        return -ENOENT;
    copy_row(table, row, ret_value, &copy);
    ret_value->histogram = NULL;
    return 0;
}

void weir_metrics_foreach(weir_metric_fn *fn, void *user_data)
{
    weir_metric_value value;
    weir_histogram copy;

    for (uint32_t i = 0; i < atomic_load(&shared.slots_end); i++)
        if (copy_slot(i, NULL, 0, &value, &copy))
            fn(&value, user_data);
    visit_tables(fn, user_data, &copy);
}
