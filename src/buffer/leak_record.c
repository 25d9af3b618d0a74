/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The registry of watched messages: a hash table by address, with one lock. Only one message in 128
 * is recorded, so contention is rare; at the paranoid level speed does not matter.
 *
 * Invariants: - a marked message has a record from its creation to its destruction: so while the
 * lock is held
 *     the message of a record exists, and its count and type may be read.
 * - all other members of a message belong to its holder: the record stores what was last seen. - a
 * thread_ref is referenced by its thread and by the records of the messages that it holds.
 *
 * Without memory to grow the table, its chains get longer.
 */
#include "buffer/leak_record.h"

#include <assert.h>
#include <string.h>

#include <weir/thread.h>

#include "base/memory.h"
#include "buffer/leak.h"
#include "os/backtrace.h"
#include "os/clock.h"
#include "os/random.h"
#include "os/thread.h"

#define BUCKETS_MIN 64
#define RECORDS_PER_BUCKET 2
#define REPORTED_MAX 1024
#define TOUCHES_ALWAYS_KEPT 4 /* kept before touches are replaced at random */

/* A thread, from its first watched message to its exit. */
struct thread_ref {
    weir__leak_thread thread;
    bool ended;
    size_t refs;
};

struct record {
    struct record *next;
    weir_msg *msg;
    uint64_t number;
    uint64_t site; /* hash of the stack trace of its creation */
    struct thread_ref *holder;
    weir__leak_info info; /* allocated without the touches unless detailed */
};

#define SIZE_WITHOUT_TOUCHES (offsetof(struct record, info.touches))

static struct {
    weir__mutex lock; /* guards all members, records and thread_refs */
    struct record **buckets;
    size_t bucket_count;
    size_t record_count;
    uint64_t next_number;
    uint64_t reported[REPORTED_MAX]; /* sites; cleared when full */
    size_t reported_count;
    size_t threads; /* that run and have a thread_ref */
    struct record *first_buckets[BUCKETS_MIN];
} registry = {
    .lock = WEIR__MUTEX_INIT,
    .buckets = registry.first_buckets,
    .bucket_count = BUCKETS_MIN,
};

static _Thread_local struct thread_ref *own_thread;

/* ---- threads ---- */

static void release_thread_locked(struct thread_ref *thread_ref)
{
    if (--thread_ref->refs == 0)
        weir__free(thread_ref);
}

static void on_thread_end(void *arg)
{
    struct thread_ref *thread_ref = arg;

    own_thread = NULL;
    weir__mutex_lock(&registry.lock);
    thread_ref->ended = true;
    registry.threads--;
    release_thread_locked(thread_ref);
    weir__mutex_unlock(&registry.lock);
}

/* NULL without memory. */
static struct thread_ref *track_thread(void)
{
    struct thread_ref *thread_ref = weir__zalloc(sizeof(*thread_ref));

    if (thread_ref == NULL)
        return NULL;
    thread_ref->thread.id = weir__thread_id();
    weir__thread_name(thread_ref->thread.name, sizeof(thread_ref->thread.name));
    thread_ref->refs = 1;
    if (weir_thread_on_exit(on_thread_end, thread_ref) < 0) {
        weir__free(thread_ref);
        return NULL;
    }
    own_thread = thread_ref;
    weir__mutex_lock(&registry.lock);
    registry.threads++;
    weir__mutex_unlock(&registry.lock);
    return thread_ref;
}

bool weir__leak_others_run(void)
{
    size_t threads;

    weir__mutex_lock(&registry.lock);
    threads = registry.threads;
    weir__mutex_unlock(&registry.lock);
    return threads > (own_thread != NULL ? 1 : 0);
}

static void set_holder_locked(struct record *record, struct thread_ref *thread_ref)
{
    if (record->holder == thread_ref)
        return;
    thread_ref->refs++;
    if (record->holder != NULL)
        release_thread_locked(record->holder);
    record->holder = thread_ref;
}

/* ---- the table ---- */

static struct record **bucket_of_locked(const weir_msg *msg)
{
    uint64_t mixed = ((uintptr_t)msg >> 4) * UINT64_C(0x9e3779b97f4a7c15);

    return &registry.buckets[(mixed >> 32) & (registry.bucket_count - 1)];
}

static struct record **find_locked(const weir_msg *msg)
{
    struct record **link = bucket_of_locked(msg);

    while (*link != NULL && (*link)->msg != msg)
        link = &(*link)->next;
    return link;
}

static void use_buckets_locked(struct record **buckets, size_t count)
{
    struct record **old = registry.buckets;
    size_t old_count = registry.bucket_count;

    registry.buckets = buckets;
    registry.bucket_count = count;
    for (size_t i = 0; i < old_count; i++) {
        struct record *record = old[i], *next;

        for (; record != NULL; record = next) {
            struct record **bucket = bucket_of_locked(record->msg);

            next = record->next;
            record->next = *bucket;
            *bucket = record;
        }
        old[i] = NULL;
    }
    if (old != registry.first_buckets)
        weir__free(old);
}

static void grow_locked(void)
{
    size_t count = registry.bucket_count * 4;
    struct record **buckets;

    if (registry.record_count < registry.bucket_count * RECORDS_PER_BUCKET)
        return;
    buckets = weir__zalloc(count * sizeof(struct record *));
    if (buckets != NULL)
        use_buckets_locked(buckets, count);
}

static void insert_locked(struct record *record)
{
    struct record **bucket;

    grow_locked();
    bucket = bucket_of_locked(record->msg);
    record->next = *bucket;
    *bucket = record;
    registry.record_count++;
}

/* ---- creating, touching, removing ---- */

static size_t capacity_of(weir_msg *msg)
{
    const weir_buf *buf = weir_buf_of(msg);

    return buf != NULL ? weir_buf_capacity(buf) : weir_msg_size(msg);
}

/* Without frames, messages of the same type and size have the same site. */
static uint64_t site_of(const weir__leak_info *info)
{
    uint64_t hash = info->made.count > 0 ? 0 : info->bytes;

    for (size_t i = 0; i < info->made.count; i++)
        hash = (hash ^ (uintptr_t)info->made.frames[i]) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ (uintptr_t)info->type;
}

static void take_trace(weir__leak_trace *trace)
{
    trace->count = weir__backtrace(trace->frames, WEIR__LEAK_FRAMES_MAX);
}

void weir__leak_record_add(weir_msg *msg, bool detailed)
{
    struct thread_ref *thread_ref = own_thread != NULL ? own_thread : track_thread();
    struct record *record;

    if (thread_ref == NULL)
        return;
    record = weir__zalloc(detailed ? sizeof(*record) : SIZE_WITHOUT_TOUCHES);
    if (record == NULL)
        return;
    record->msg = msg;
    record->info.type = msg->type->name;
    record->info.bytes = capacity_of(msg);
    record->info.created_ns = weir__monotonic_now();
    record->info.maker = thread_ref->thread;
    record->info.detailed = detailed;
    take_trace(&record->info.made);
    record->site = site_of(&record->info);
    msg->flags |= WEIR__LEAK_WATCHED;

    weir__mutex_lock(&registry.lock);
    record->number = registry.next_number++;
    set_holder_locked(record, thread_ref);
    insert_locked(record);
    weir__mutex_unlock(&registry.lock);
}

/*
 * As in Netty, the newest touch is always kept; whether the one before it is kept too is random,
 * with a probability that decreases with their number. So the trail shows the beginning and the end
 * of a message's path, and parts of the middle.
 */
static weir__leak_touch_info *next_touch(weir__leak_info *info)
{
    uint32_t count = info->touch_count;
    bool replace = count == WEIR__LEAK_TOUCHES_MAX;

    if (!replace && count >= TOUCHES_ALWAYS_KEPT)
        replace =
            weir__random_below(weir__random_thread(), 1u << (count - TOUCHES_ALWAYS_KEPT)) != 0;
    if (!replace)
        return &info->touches[info->touch_count++];
    info->touches_dropped++;
    return &info->touches[count - 1];
}

static void touch_locked(struct record *record, struct thread_ref *thread_ref, const char *where)
{
    weir__leak_touch_info *touch;

    set_holder_locked(record, thread_ref);
    record->info.bytes = capacity_of(record->msg);
    if (!record->info.detailed)
        return;
    touch = next_touch(&record->info);
    touch->where = where;
    touch->at_ns = weir__monotonic_now();
    touch->thread = thread_ref->thread;
    take_trace(&touch->trace);
}

void weir__leak_record_touch(weir_msg *msg, const char *where)
{
    struct thread_ref *thread_ref = own_thread != NULL ? own_thread : track_thread();
    struct record *record;

    if (thread_ref == NULL)
        return;
    weir__mutex_lock(&registry.lock);
    record = *find_locked(msg);
    assert(record != NULL);
    touch_locked(record, thread_ref, where);
    weir__mutex_unlock(&registry.lock);
}

void weir__leak_record_remove(weir_msg *msg)
{
    struct record **link, *record;

    weir__mutex_lock(&registry.lock);
    link = find_locked(msg);
    record = *link;
    assert(record != NULL);
    *link = record->next;
    release_thread_locked(record->holder);
    if (--registry.record_count == 0 && registry.buckets != registry.first_buckets)
        use_buckets_locked(registry.first_buckets, BUCKETS_MIN);
    weir__mutex_unlock(&registry.lock);
    weir__free(record);
}

/* ---- searching ---- */

uint64_t weir__leak_records_next_number(void)
{
    uint64_t number;

    weir__mutex_lock(&registry.lock);
    number = registry.next_number;
    weir__mutex_unlock(&registry.lock);
    return number;
}

static bool matches_locked(const struct record *record, const weir__leak_search *search)
{
    return (!search->only_ended || record->holder->ended) &&
           (search->maker == 0 || record->info.maker.id == search->maker) &&
           record->number >= search->first;
}

static bool is_among(uint64_t site, const uint64_t *sites, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (sites[i] == site)
            return true;
    return false;
}

static bool is_reported_locked(uint64_t site, const weir__leak_search *search)
{
    return is_among(site, search->sites, search->site_count) ||
           (!search->repeat_reported && is_among(site, registry.reported, registry.reported_count));
}

static void mark_reported_locked(uint64_t site, weir__leak_search *search)
{
    search->sites[search->site_count++] = site;
    if (is_among(site, registry.reported, registry.reported_count))
        return;
    if (registry.reported_count == REPORTED_MAX)
        registry.reported_count = 0;
    registry.reported[registry.reported_count++] = site;
}

size_t weir__leak_records_count(const weir__leak_search *search)
{
    size_t count = 0;

    weir__mutex_lock(&registry.lock);
    for (size_t i = 0; i < registry.bucket_count; i++)
        for (const struct record *r = registry.buckets[i]; r != NULL; r = r->next)
            count += matches_locked(r, search);
    weir__mutex_unlock(&registry.lock);
    return count;
}

size_t weir__leak_records_count_unreported(const weir__leak_search *search)
{
    size_t count = 0;

    weir__mutex_lock(&registry.lock);
    for (size_t i = 0; i < registry.bucket_count; i++)
        for (const struct record *r = registry.buckets[i]; r != NULL; r = r->next)
            count += matches_locked(r, search) && !is_reported_locked(r->site, search);
    weir__mutex_unlock(&registry.lock);
    return count;
}

static const struct record *oldest_unreported_locked(const weir__leak_search *search)
{
    const struct record *oldest = NULL;

    for (size_t i = 0; i < registry.bucket_count; i++)
        for (const struct record *r = registry.buckets[i]; r != NULL; r = r->next)
            if ((oldest == NULL || r->number < oldest->number) && matches_locked(r, search) &&
                !is_reported_locked(r->site, search))
                oldest = r;
    return oldest;
}

static size_t count_site_locked(uint64_t site, const weir__leak_search *search)
{
    size_t count = 0;

    for (size_t i = 0; i < registry.bucket_count; i++)
        for (const struct record *r = registry.buckets[i]; r != NULL; r = r->next)
            count += r->site == site && matches_locked(r, search);
    return count;
}

static void copy_info_locked(const struct record *record, weir__leak_info *ret_info)
{
    memcpy(ret_info, &record->info,
           record->info.detailed ? sizeof(*ret_info) : offsetof(weir__leak_info, touches));
    ret_info->refs = weir_msg_refs(record->msg);
    ret_info->holder = record->holder->thread;
    ret_info->holder_ended = record->holder->ended;
}

bool weir__leak_records_pick(weir__leak_search *search, weir__leak_info *ret_info,
                             size_t *ret_others)
{
    const struct record *record;

    if (search->site_count == search->site_max)
        return false;
    weir__mutex_lock(&registry.lock);
    record = oldest_unreported_locked(search);
    if (record != NULL) {
        copy_info_locked(record, ret_info);
        *ret_others = count_site_locked(record->site, search) - 1;
        mark_reported_locked(record->site, search);
    }
    weir__mutex_unlock(&registry.lock);
    return record != NULL;
}

void weir__leak_sites_reset(void)
{
    weir__mutex_lock(&registry.lock);
    registry.reported_count = 0;
    weir__mutex_unlock(&registry.lock);
}
