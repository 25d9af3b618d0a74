/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buffer/cases.h - the cases of the buffer suite that every allocator has; between the competitor's
 * own part and its main.
 *
 *      now  size=64 count=200000                   "ns" a take, and the give of the same
 *      live size=64 count=200000 live=1024         "ns" a take, and the give of an older one
 *      far  size=64 count=200000 cpu=0 far_cpu=1   "ns" a take here, and the give there
 *      ring count=200000 cpu=0 far_cpu=1           "ns" the way from here to there alone
 *
 * Of each item the first byte is used. Each case begins with a quarter more of the same, to warm
 * up. CPUs count from 0 among those that the process may use; -1 = any.
 */
#include "buffer/ring.h"

static inline item *take_and_use(size_t size)
{
    item *it = item_take(size);

    *item_bytes(it) = 1;
    made((uintptr_t)it);
    return it;
}

/* ---- on one thread ---- */

static int64_t take_and_give(size_t size, size_t count)
{
    int64_t began_ns = bench_now_ns();

    for (size_t i = 0; i < count; i++)
        item_give(take_and_use(size), size);
    return bench_now_ns() - began_ns;
}

static void now_case(bench_round *round)
{
    size_t size = (size_t)bench_setting(round, "size", 64);
    size_t count = (size_t)bench_setting(round, "count", 200000);

    (void)take_and_give(size, count / 4);
    bench_report(round, "ns", (double)take_and_give(size, count) / (double)count);
    items_trim();
}

struct live {
    size_t size;
    size_t count;
    item **items;
    uint64_t random;
};

static int64_t replace(struct live *live, size_t count)
{
    int64_t began_ns = bench_now_ns();

    for (size_t i = 0; i < count; i++) {
        uint32_t bits = (uint32_t)bench_random(&live->random);
        item **place = &live->items[bench_scale(bits, live->count)];
        item *old = *place;

        *place = take_and_use(live->size);
        item_give(old, live->size);
    }
    return bench_now_ns() - began_ns;
}

static void live_case(bench_round *round)
{
    size_t count = (size_t)bench_setting(round, "count", 200000);
    struct live live = {0};

    live.size = (size_t)bench_setting(round, "size", 64);
    live.count = (size_t)bench_setting(round, "live", 1024);
    live.items = bench_alloc(live.count, sizeof(item *));
    for (size_t i = 0; i < live.count; i++)
        live.items[i] = take_and_use(live.size);
    (void)replace(&live, count / 4);
    bench_report(round, "ns", (double)replace(&live, count) / (double)count);
    for (size_t i = 0; i < live.count; i++)
        item_give(live.items[i], live.size);
    bench_free(live.items);
    items_trim();
}

/* ---- from thread to thread ---- */

struct far {
    struct ring ring;
    alignas(BENCH_LINE) size_t size;
    size_t warmup;
    size_t count;
    bool ring_alone;
    int64_t took_ns;
};

static void *produce(void *arg)
{
    struct far *far = arg;

    for (size_t i = far->warmup + far->count; i > 0; i--)
        ring_put(&far->ring, far->ring_alone ? far : (void *)take_and_use(far->size));
    return NULL;
}

static void consume_some(struct far *far, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        void *it = ring_get(&far->ring);

        if (far->ring_alone)
            continue;
        made(*item_bytes(it));
        item_give_far(it, far->size);
    }
}

/*
 * The consumer has the clock: what it takes for a number of items is how fast they come through,
 * whichever of the two is the slower.
 */
static void *consume(void *arg)
{
    struct far *far = arg;
    int64_t began_ns;

    consume_some(far, far->warmup);
    began_ns = bench_now_ns();
    consume_some(far, far->count);
    far->took_ns = bench_now_ns() - began_ns;
    return NULL;
}

static void pass(bench_round *round, struct far *far)
{
    int cpu = bench_cpu(bench_setting(round, "cpu", 0));
    int far_cpu = bench_cpu(bench_setting(round, "far_cpu", 1));
    pthread_t producer, consumer;

    far->count = (size_t)bench_setting(round, "count", 200000);
    far->warmup = far->count / 4;
    bench_thread_start(&consumer, far_cpu, consume, far);
    bench_thread_start(&producer, cpu, produce, far);
    bench_thread_join(producer);
    bench_thread_join(consumer);
    bench_report(round, "ns", (double)far->took_ns / (double)far->count);
}

static void far_case(bench_round *round)
{
    struct far *far = bench_alloc(1, sizeof(*far));

    far->size = (size_t)bench_setting(round, "size", 64);
    pass(round, far);
    bench_free(far);
    items_trim();
}

static void ring_case(bench_round *round)
{
    struct far *far = bench_alloc(1, sizeof(*far));

    far->ring_alone = true;
    pass(round, far);
    bench_free(far);
}
