/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The registry of watched messages: a hash table by address, behind one lock. One message in 128
 * comes here, so that the lock is rarely met; where every one does, speed was not asked for.
 *
 * Invariants:
 *   - a message that is marked has a record, from its birth to its end: so the message of a record
 *     is there while the lock is held, and its count and type may be read.
 *   - everything else of a message belongs to its holder: the record keeps what the holder was seen
 *     to have.
 *   - a life is kept by its thread and by the records of the messages that the thread has.
 *
 * The table is never empty-handed: when there is no memory to grow, the chains grow.
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
#define TOUCHES_SURE 4 /* kept before the back-off begins */

/* A thread from its first watched message to its end. */
struct life {
    weir__leak_thread thread;
    bool ended;
    size_t refs;
};

struct record {
    struct record *next;
    weir_msg *msg;
    uint64_t number;
    uint64_t place; /* hash of where it was made */
    struct life *holder;
    weir__leak_facts facts; /* without the touches unless detailed */
};

#define SIZE_WITHOUT_TOUCHES (offsetof(struct record, facts.touches))

static struct {
    weir__mutex lock; /* guards all below, all records and all lives */
    struct record **buckets;
    size_t bucket_count;
    size_t record_count;
    uint64_t next_number;
    uint64_t reported[REPORTED_MAX]; /* places; when it is full, it begins anew */
    size_t reported_count;
    struct record *first_buckets[BUCKETS_MIN];
} registry = {
    .lock = WEIR__MUTEX_INIT,
    .buckets = registry.first_buckets,
    .bucket_count = BUCKETS_MIN,
};

static _Thread_local struct life *own_life;

/* ---- threads ---- */

static void release_life_locked(struct life *life)
{
    if (--life->refs == 0)
        weir__free(life);
}

static void on_thread_end(void *arg)
{
    struct life *life = arg;

    own_life = NULL;
    weir__mutex_lock(&registry.lock);
    life->ended = true;
    release_life_locked(life);
    weir__mutex_unlock(&registry.lock);
}

/* NULL when there is no memory for it. */
static struct life *begin_life(void)
{
    struct life *life = weir__zalloc(sizeof(*life));

    if (life == NULL)
        return NULL;
    life->thread.id = weir__thread_id();
    weir__thread_name(life->thread.name, sizeof(life->thread.name));
    life->refs = 1;
    if (weir_thread_on_exit(on_thread_end, life) < 0) {
        weir__free(life);
        return NULL;
    }
    own_life = life;
    return life;
}

static void set_holder_locked(struct record *record, struct life *life)
{
    if (record->holder == life)
        return;
    life->refs++;
    if (record->holder != NULL)
        release_life_locked(record->holder);
    record->holder = life;
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

/* ---- making, touching, removing ---- */

static size_t room_in(weir_msg *msg)
{
    const weir_buf *buf = weir_buf_of(msg);

    return buf != NULL ? weir_buf_capacity(buf) : weir_msg_size(msg);
}

/* Without frames all messages of one type and size are of one place. */
static uint64_t place_of(const weir__leak_facts *facts)
{
    uint64_t hash = facts->made.count > 0 ? 0 : facts->bytes;

    for (size_t i = 0; i < facts->made.count; i++)
        hash = (hash ^ (uintptr_t)facts->made.frames[i]) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ (uintptr_t)facts->type;
}

static void take_trace(weir__leak_trace *trace)
{
    trace->count = weir__backtrace(trace->frames, WEIR__LEAK_FRAMES_MAX);
}

void weir__leak_record_add(weir_msg *msg, bool detailed)
{
    struct life *life = own_life != NULL ? own_life : begin_life();
    struct record *record;

    if (life == NULL)
        return;
    record = weir__zalloc(detailed ? sizeof(*record) : SIZE_WITHOUT_TOUCHES);
    if (record == NULL)
        return;
    record->msg = msg;
    record->facts.type = msg->type->name;
    record->facts.bytes = room_in(msg);
    record->facts.born_ns = weir__monotonic_now();
    record->facts.maker = life->thread;
    record->facts.detailed = detailed;
    take_trace(&record->facts.made);
    record->place = place_of(&record->facts);
    msg->flags |= WEIR__LEAK_WATCHED;

    weir__mutex_lock(&registry.lock);
    record->number = registry.next_number++;
    set_holder_locked(record, life);
    insert_locked(record);
    weir__mutex_unlock(&registry.lock);
}

/*
 * As in Netty: the newest touch is always kept; whether the one before it stays too is a matter of
 * chance, a smaller one the more there are. So the trail shows the beginning and the end of a
 * message's way, and some of the middle.
 */
static weir__leak_mark *next_touch(weir__leak_facts *facts)
{
    uint32_t count = facts->touch_count;
    bool replace = count == WEIR__LEAK_TOUCHES_MAX;

    if (!replace && count >= TOUCHES_SURE)
        replace = weir__random_below(weir__random_thread(), 1u << (count - TOUCHES_SURE)) != 0;
    if (!replace)
        return &facts->touches[facts->touch_count++];
    facts->touches_dropped++;
    return &facts->touches[count - 1];
}

static void touch_locked(struct record *record, struct life *life, const char *where)
{
    weir__leak_mark *touch;

    set_holder_locked(record, life);
    record->facts.bytes = room_in(record->msg);
    if (!record->facts.detailed)
        return;
    touch = next_touch(&record->facts);
    touch->where = where;
    touch->at_ns = weir__monotonic_now();
    touch->thread = life->thread;
    take_trace(&touch->trace);
}

void weir__leak_record_touch(weir_msg *msg, const char *where)
{
    struct life *life = own_life != NULL ? own_life : begin_life();
    struct record *record;

    if (life == NULL)
        return;
    weir__mutex_lock(&registry.lock);
    record = *find_locked(msg);
    assert(record != NULL);
    touch_locked(record, life, where);
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
    release_life_locked(record->holder);
    if (--registry.record_count == 0 && registry.buckets != registry.first_buckets)
        use_buckets_locked(registry.first_buckets, BUCKETS_MIN);
    weir__mutex_unlock(&registry.lock);
    weir__free(record);
}

/* ---- looking ---- */

uint64_t weir__leak_records_next_number(void)
{
    uint64_t number;

    weir__mutex_lock(&registry.lock);
    number = registry.next_number;
    weir__mutex_unlock(&registry.lock);
    return number;
}

static bool fits_locked(const struct record *record, const weir__leak_search *search)
{
    return (!search->only_ended || record->holder->ended) &&
           (search->maker == 0 || record->facts.maker.id == search->maker) &&
           record->number >= search->first;
}

static bool is_among(uint64_t place, const uint64_t *places, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (places[i] == place)
            return true;
    return false;
}

static bool is_reported_locked(uint64_t place, const weir__leak_search *search)
{
    return is_among(place, search->places, search->place_count) ||
           (!search->again && is_among(place, registry.reported, registry.reported_count));
}

static void mark_reported_locked(uint64_t place, weir__leak_search *search)
{
    search->places[search->place_count++] = place;
    if (is_among(place, registry.reported, registry.reported_count))
        return;
    if (registry.reported_count == REPORTED_MAX)
        registry.reported_count = 0;
    registry.reported[registry.reported_count++] = place;
}

size_t weir__leak_records_count(const weir__leak_search *search)
{
    size_t count = 0;

    weir__mutex_lock(&registry.lock);
    for (size_t i = 0; i < registry.bucket_count; i++)
        for (const struct record *r = registry.buckets[i]; r != NULL; r = r->next)
            count += fits_locked(r, search);
    weir__mutex_unlock(&registry.lock);
    return count;
}

static const struct record *oldest_unreported_locked(const weir__leak_search *search)
{
    const struct record *oldest = NULL;

    for (size_t i = 0; i < registry.bucket_count; i++)
        for (const struct record *r = registry.buckets[i]; r != NULL; r = r->next)
            if ((oldest == NULL || r->number < oldest->number) && fits_locked(r, search) &&
                !is_reported_locked(r->place, search))
                oldest = r;
    return oldest;
}

static size_t count_place_locked(uint64_t place, const weir__leak_search *search)
{
    size_t count = 0;

    for (size_t i = 0; i < registry.bucket_count; i++)
        for (const struct record *r = registry.buckets[i]; r != NULL; r = r->next)
            count += r->place == place && fits_locked(r, search);
    return count;
}

static void copy_facts_locked(const struct record *record, weir__leak_facts *ret_facts)
{
    memcpy(ret_facts, &record->facts,
           record->facts.detailed ? sizeof(*ret_facts) : offsetof(weir__leak_facts, touches));
    ret_facts->refs = weir_msg_refs(record->msg);
    ret_facts->holder = record->holder->thread;
    ret_facts->holder_ended = record->holder->ended;
}

bool weir__leak_records_pick(weir__leak_search *search, weir__leak_facts *ret_facts,
                             size_t *ret_others)
{
    const struct record *record;

    if (search->place_count == WEIR__LEAK_PLACES_MAX)
        return false;
    weir__mutex_lock(&registry.lock);
    record = oldest_unreported_locked(search);
    if (record != NULL) {
        copy_facts_locked(record, ret_facts);
        *ret_others = count_place_locked(record->place, search) - 1;
        mark_reported_locked(record->place, search);
    }
    weir__mutex_unlock(&registry.lock);
    return record != NULL;
}

void weir__leak_places_forget(void)
{
    weir__mutex_lock(&registry.lock);
    registry.reported_count = 0;
    weir__mutex_unlock(&registry.lock);
}
