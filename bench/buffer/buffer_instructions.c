/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The instructions of the buffer layer's hot paths. Nothing is watched for leaks: how much is
 * depends on the clock and on chance.
 */
#include <weir/buf.h>
#include <weir/composite.h>
#include <weir/pool.h>

#include "support/bench.h"
#include "support/instructions.h"

enum { COUNT = 1000 };

static weir_buf *bufs[COUNT];

static weir_buf *create(size_t capacity)
{
    weir_buf *buf;

    bench_require(weir_buf_create(capacity, 0, &buf) == 0, "weir_buf_create");
    return buf;
}

static void create_all(size_t capacity)
{
    int errors = 0;

    for (int i = 0; i < COUNT; i++)
        errors |= weir_buf_create(capacity, 0, &bufs[i]);
    bench_require(errors == 0, "weir_buf_create");
}

static void release_all(void)
{
    for (int i = 0; i < COUNT; i++)
        weir_buf_release(bufs[i]);
}

/* ---- life ---- */

/* What the pool does for the first of a size is not counted. */
static void count_create(const char *name, size_t capacity)
{
    weir_buf *buf = create(capacity);
    int errors = 0;

    weir_buf_release(buf);
    bench_count_begin(name, COUNT);
    for (int i = 0; i < COUNT; i++) {
        errors |= weir_buf_create(capacity, 0, &buf);
        weir_buf_release(buf);
    }
    bench_count_end();
    bench_require(errors == 0, "weir_buf_create");
}

/* So that the thread has its own part of the pool when the counting begins. */
static void enter_pool(void)
{
    weir_buf_release(create(0));
}

static void *release_body(void *arg)
{
    (void)arg;
    enter_pool();
    bench_count_begin("release on another thread", COUNT);
    release_all();
    bench_count_end();
    return NULL;
}

static void count_way_home(void)
{
    pthread_t thread;

    create_all(64);
    bench_thread_start(&thread, -1, release_body, NULL);
    bench_thread_join(thread);
    bench_count_begin("create from what came home", COUNT);
    create_all(64);
    bench_count_end();
    release_all();
}

static void count_slice(void)
{
    weir_buf *buf = create(1024), *slice = NULL;
    int errors = 0;

    weir_buf_advance(buf, 1024);
    enter_pool();
    bench_count_begin("slice, release", COUNT);
    for (int i = 0; i < COUNT; i++) {
        errors |= weir_buf_slice(buf, 0, 512, &slice);
        weir_buf_release(slice);
    }
    bench_count_end();
    bench_require(errors == 0, "weir_buf_slice");
    weir_buf_release(buf);
}

static void count_retain(void)
{
    weir_buf *buf = create(64);

    bench_count_begin("retain, release", COUNT);
    for (int i = 0; i < COUNT; i++)
        weir_buf_release(weir_buf_retain(buf));
    bench_count_end();
    weir_buf_release(buf);
}

/* ---- numbers ---- */

static void count_u32(void)
{
    weir_buf *buf = create(COUNT * sizeof(uint32_t));
    uint32_t number = 0;
    int errors = 0;

    bench_count_begin("write u32", COUNT);
    for (uint32_t i = 0; i < COUNT; i++)
        errors |= weir_buf_write_u32(buf, i);
    bench_count_end();
    bench_count_begin("read u32", COUNT);
    for (uint32_t i = 0; i < COUNT; i++) {
        errors |= weir_buf_read_u32(buf, &number);
        errors |= number != i;
    }
    bench_count_end();
    bench_require(errors == 0, "weir_buf_write_u32 or weir_buf_read_u32");
    weir_buf_release(buf);
}

/* As long as lengths in protocols are: one or two bytes. */
static void count_varint(void)
{
    weir_buf *buf = create((size_t)COUNT * WEIR_VARINT_MAX);
    uint64_t number;
    int errors = 0;

    bench_count_begin("write varint", COUNT);
    for (uint64_t i = 0; i < COUNT; i++)
        errors |= weir_buf_write_varint(buf, i);
    bench_count_end();
    bench_count_begin("read varint", COUNT);
    for (int i = 0; i < COUNT; i++)
        errors |= weir_buf_read_varint(buf, &number);
    bench_count_end();
    bench_require(errors == 0, "weir_buf_write_varint or weir_buf_read_varint");
    weir_buf_release(buf);
}

/* ---- composites ---- */

enum { JOINED = 4, COMPOSITES = COUNT / JOINED };

static weir_composite *composites[COMPOSITES];

static void fill_composites(void)
{
    int errors = 0;

    bench_count_begin("composite add", COUNT);
    for (int i = 0; i < COUNT; i++)
        errors |= weir_composite_add(composites[i / JOINED], weir_buf_msg(bufs[i]));
    bench_count_end();
    bench_require(errors == 0, "weir_composite_add");
}

static void gather_composites(void)
{
    struct iovec vectors[JOINED];
    size_t gathered = 0;

    bench_count_begin("composite iovecs of 4", COMPOSITES);
    for (int i = 0; i < COMPOSITES; i++)
        gathered += weir_composite_iovecs(composites[i], vectors, JOINED);
    bench_count_end();
    bench_require(gathered == COUNT, "weir_composite_iovecs");
}

static void count_composites(void)
{
    create_all(64);
    for (int i = 0; i < COUNT; i++)
        weir_buf_advance(bufs[i], 64);
    for (int i = 0; i < COMPOSITES; i++)
        bench_require(weir_composite_create(0, &composites[i]) == 0, "weir_composite_create");
    fill_composites();
    gather_composites();
    bench_count_begin("composite release of 4", COMPOSITES);
    for (int i = 0; i < COMPOSITES; i++)
        weir_composite_release(composites[i]);
    bench_count_end();
}

static void count_all(bench_round *round)
{
    (void)round;
    weir_leak_set_level(WEIR_LEAK_OFF);
    count_create("create, release: 64 B", 64);
    count_create("create, release: 4 KiB", 4096);
    count_way_home();
    count_slice();
    count_retain();
    count_u32();
    count_varint();
    count_composites();
}

int main(int argc, char **argv)
{
    static const bench_case cases[] = {{"count", count_all}, {NULL, NULL}};

    return bench_main(argc, argv, cases);
}
