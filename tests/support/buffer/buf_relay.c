/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each runner has a lane from the one before it: slots that one fills and the other empties, in
 * turn. At the end runners create no more buffers, and continue until all are released.
 */
#include "support/buffer/buf_relay.h"

#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <weir/buf.h>
#include <weir/pool.h>

#include "base/turn_hooks.h"
#include "os/clock.h"
#include "os/random.h"
#include "os/thread.h"
#include "support/buffer/pool.h"

#define RUNNERS 4
#define LANE_SLOTS 256
#define HOPS_MAX 12
#define SENSE_MAX ((uint64_t)64 << 30) /* bytes; a count below zero would be more */
#define TURN_STEPS 16                  /* steps per turn, after which outboxes are flushed */

struct course;

struct runner {
    alignas(64) _Atomic(weir_buf *) lane[LANE_SLOTS];
    alignas(64) struct course *course;
    struct runner *next;
    weir__thread thread;
    weir__random random;
    uint32_t filled;  /* slots of the next runner's lane, */
    uint32_t emptied; /* and of its own */
    uint64_t steps;
    uint64_t made;
    uint64_t passed;
    uint64_t released;
};

struct course {
    const struct relay *relay;
    int64_t end_ns;
    _Atomic int64_t live; /* buffers */
    _Atomic bool watched;
    _Atomic(const char *) fault;
    pthread_barrier_t barrier;
    struct runner runners[RUNNERS];
};

/* In front of the bytes of a buffer, which are all `mark`. */
struct stamp {
    uint32_t hops;
    uint32_t mark;
};

static void fail(struct course *course, const char *fault)
{
    atomic_store(&course->fault, fault);
}

static bool has_failed(const struct course *course)
{
    return atomic_load_explicit(&course->fault, memory_order_relaxed) != NULL;
}

static bool one_in(struct runner *runner, uint64_t n)
{
    return weir__random_below(&runner->random, n) == 0;
}

/* ---- one buffer ---- */

/* Mostly small, some as large as the pool has them, few larger. */
static size_t choose_size(struct runner *runner)
{
    uint64_t shift = one_in(runner, 500) ? 21 : one_in(runner, 50) ? 16 : 11;

    return sizeof(struct stamp) + weir__random_below(&runner->random, (uint64_t)1 << shift);
}

static weir_buf *make(struct runner *runner)
{
    size_t size = choose_size(runner);
    struct stamp stamp = {
        .hops = 1 + (uint32_t)weir__random_below(&runner->random, HOPS_MAX),
        .mark = (uint32_t)weir__random_below(&runner->random, 256),
    };
    weir_buf *buf;

    if (weir_buf_create(size, 0, &buf) < 0) {
        fail(runner->course, "a buffer could not be made");
        return NULL;
    }
    memcpy(weir_buf_space(buf), &stamp, sizeof(stamp));
    memset(weir_buf_space(buf) + sizeof(stamp), (int)stamp.mark, size - sizeof(stamp));
    if (weir_buf_advance(buf, size) < 0)
        fail(runner->course, "a buffer has less room than was asked for");
    runner->made++;
    atomic_fetch_add(&runner->course->live, 1);
    return buf;
}

static bool is_intact(struct runner *runner, const weir_buf *buf, const struct stamp *stamp)
{
    const uint8_t *bytes = weir_buf_bytes(buf) + sizeof(*stamp);
    size_t length = weir_buf_readable(buf) - sizeof(*stamp);

    for (int i = 0; i < 4 && length > 0; i++)
        if (bytes[weir__random_below(&runner->random, length)] != stamp->mark)
            return false;
    return length == 0 || (bytes[0] == stamp->mark && bytes[length - 1] == stamp->mark);
}

static void finish(struct runner *runner, weir_buf *buf)
{
    weir_buf_release(buf);
    runner->released++;
    atomic_fetch_sub(&runner->course->live, 1);
}

/* Continues with a view of it, so that the last reference of the root is released on another
 * thread. */
static weir_buf *slice(weir_buf *buf)
{
    weir_buf *view;

    if (weir_buf_slice(buf, 0, weir_buf_readable(buf), &view) < 0)
        return buf;
    weir_buf_release(buf);
    return view;
}

/* NULL when the next runner's lane is full. */
static _Atomic(weir_buf *) *free_slot(struct runner *runner)
{
    _Atomic(weir_buf *) *slot = &runner->next->lane[runner->filled % LANE_SLOTS];

    return atomic_load_explicit(slot, memory_order_acquire) == NULL ? slot : NULL;
}

static void pass_on(struct runner *runner, weir_buf *buf)
{
    _Atomic(weir_buf *) *slot = free_slot(runner);

    if (slot == NULL) {
        finish(runner, buf);
        return;
    }
    atomic_store_explicit(slot, buf, memory_order_release);
    runner->filled++;
    runner->passed++;
}

static void receive(struct runner *runner, weir_buf *buf)
{
    uint8_t *front = buf->data;
    struct stamp stamp;

    memcpy(&stamp, weir_buf_bytes(buf), sizeof(stamp));
    if (!is_intact(runner, buf, &stamp))
        fail(runner->course, "a buffer's bytes have changed on the way");
    if (stamp.hops == 0 || has_failed(runner->course)) {
        finish(runner, buf);
        return;
    }
    stamp.hops--;
    memcpy(front, &stamp, sizeof(stamp));
    if (one_in(runner, 8))
        (void)weir_buf_reserve(buf, weir_buf_writable(buf) + 1); /* a view does not grow */
    if (one_in(runner, 8))
        buf = slice(buf);
    pass_on(runner, buf);
}

/* ---- a runner ---- */

static void empty_lane(struct runner *runner)
{
    _Atomic(weir_buf *) *slot = &runner->lane[runner->emptied % LANE_SLOTS];
    weir_buf *buf;

    while ((buf = atomic_load_explicit(slot, memory_order_acquire)) != NULL) {
        atomic_store_explicit(slot, NULL, memory_order_release);
        slot = &runner->lane[++runner->emptied % LANE_SLOTS];
        receive(runner, buf);
    }
}

static bool may_make(const struct runner *runner)
{
    const struct relay *relay = runner->course->relay;

    if (has_failed(runner->course))
        return false;
    if (relay->buffers > 0 && runner->made >= relay->buffers)
        return false;
    return relay->duration_ns == 0 || weir__monotonic_now() < runner->course->end_ns;
}

static void step(struct runner *runner)
{
    weir_buf *buf;

    empty_lane(runner);
    for (int i = 0; i < 4 && may_make(runner) && free_slot(runner) != NULL; i++)
        if ((buf = make(runner)) != NULL)
            pass_on(runner, buf);
    if (free_slot(runner) == NULL)
        weir__thread_yield();
    if (++runner->steps % TURN_STEPS == 0)
        (void)weir__turn_hooks_run(true, weir__monotonic_now());
    if (one_in(runner, 5000))
        (void)weir_pool_trim();
}

static void check_totals(struct course *course)
{
    struct blocks blocks = count_blocks();

    if (blocks.in_use > 0)
        fail(course, "blocks are in use although all buffers were released");
    if (blocks.in_transit > 0)
        fail(course, "blocks were not returned");
    if (blocks.cached > 0)
        fail(course, "a slab is held although all of its blocks are free");
}

static void run(void *arg)
{
    struct runner *runner = arg;
    struct course *course = runner->course;

    pthread_barrier_wait(&course->barrier);
    do {
        step(runner);
    } while (may_make(runner) || atomic_load(&course->live) > 0);
    (void)weir_pool_trim(); /* returns all blocks of other heaps */
    pthread_barrier_wait(&course->barrier);
    (void)weir_pool_trim(); /* all blocks of this heap were returned */
    pthread_barrier_wait(&course->barrier);
    if (runner == &course->runners[0] && !has_failed(course))
        check_totals(course);
    pthread_barrier_wait(&course->barrier);
}

/* ---- the whole ---- */

static void watch(void *arg)
{
    struct course *course = arg;
    weir_pool_stats stats;
    char text[8192];

    while (atomic_load(&course->watched)) {
        weir_pool_read_stats(&stats);
        if (stats.in_use_bytes > SENSE_MAX || stats.in_transit_bytes > SENSE_MAX)
            fail(course, "the stats of the pool are invalid");
        if (weir_pool_describe(text, sizeof(text)) == 0)
            fail(course, "the description of the pool is empty");
        weir__thread_yield();
    }
}

static void start(weir__thread *thread, const char *name, void (*fn)(void *arg), void *arg)
{
    if (weir__thread_start(name, fn, arg, thread) < 0)
        abort();
}

static void prepare(struct course *course, struct relay *relay)
{
    course->relay = relay;
    course->end_ns = weir__monotonic_now() + relay->duration_ns;
    atomic_store(&course->watched, true);
    pthread_barrier_init(&course->barrier, NULL, RUNNERS);
    for (unsigned i = 0; i < RUNNERS; i++) {
        course->runners[i].course = course;
        course->runners[i].next = &course->runners[(i + 1) % RUNNERS];
        weir__random_init(&course->runners[i].random, relay->seed * RUNNERS + i);
    }
}

static void sum_up(const struct course *course, struct relay *relay)
{
    for (unsigned i = 0; i < RUNNERS; i++) {
        relay->made += course->runners[i].made;
        relay->passed += course->runners[i].passed;
        relay->released += course->runners[i].released;
    }
}

const char *relay_run(struct relay *relay)
{
    static struct course course;
    weir__thread watcher;

    memset(&course, 0, sizeof(course));
    relay->made = relay->passed = relay->released = 0;
    prepare(&course, relay);
    start(&watcher, "watcher", watch, &course);
    for (unsigned i = 0; i < RUNNERS; i++)
        start(&course.runners[i].thread, "runner", run, &course.runners[i]);
    for (unsigned i = 0; i < RUNNERS; i++)
        weir__thread_join(&course.runners[i].thread);
    atomic_store(&course.watched, false);
    weir__thread_join(&watcher);
    pthread_barrier_destroy(&course.barrier);
    sum_up(&course, relay);
    return atomic_load(&course.fault);
}
