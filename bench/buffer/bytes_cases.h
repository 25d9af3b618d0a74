/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buffer/bytes_cases.h - the cases of the buffer suite that an allocator does not have; after the
 * competitor's own part, which defines a `bytes` and the functions below.
 *
 *      slice  count=200000   "ns" a view of part of a buffer, and its release
 *      retain count=500000   "ns" a retain and release of a buffer that somebody else has too
 *      join   count=50000    "ns" four buffers as one: create, add each, gather iovecs, release
 *      read   count=1000000  "ns" a big-endian 32-bit number read, bounds checked
 *      write  count=1000000  "ns" one written
 */
#include <sys/uio.h>

enum { BYTES_SIZE = 1024, JOINED = 4, NUMBERS = BYTES_SIZE / 4 };

/* Counted memory of BYTES_SIZE bytes, all of them readable. */
static bytes *bytes_create(void);
static bytes *bytes_retain(bytes *self);
static void bytes_release(bytes *self);

/* A view that has a reference of what it is made of. */
static bytes *bytes_slice(bytes *self, size_t offset, size_t length);

/* Makes one of JOINED, each with a reference taken for it; returns how many vectors it has. */
static size_t bytes_join(bytes *const *parts, struct iovec *vectors);

/* Both go over the whole of it, and show each number to made(). */
static void bytes_read_numbers(bytes *self);
static void bytes_write_numbers(bytes *self);

/* Runs an operation on buffers a quarter of the times to warm up, then timed. */
static void time_bytes(bench_round *round, size_t times, size_t each,
                       void (*run)(bytes *const *parts, size_t times))
{
    bytes *parts[JOINED];
    int64_t began_ns;

    for (int i = 0; i < JOINED; i++)
        parts[i] = bytes_create();
    run(parts, times / 4);
    began_ns = bench_now_ns();
    run(parts, times);
    bench_report(round, "ns", (double)(bench_now_ns() - began_ns) / (double)(times * each));
    for (int i = 0; i < JOINED; i++)
        bytes_release(parts[i]);
    items_trim();
}

static void slice_some(bytes *const *parts, size_t times)
{
    for (size_t i = 0; i < times; i++) {
        bytes *slice = bytes_slice(parts[0], i % (BYTES_SIZE / 2), BYTES_SIZE / 2);

        made((uintptr_t)slice);
        bytes_release(slice);
    }
}

static void slice_case(bench_round *round)
{
    time_bytes(round, (size_t)bench_setting(round, "count", 200000), 1, slice_some);
}

static void retain_some(bytes *const *parts, size_t times)
{
    for (size_t i = 0; i < times; i++) {
        bytes *retained = bytes_retain(parts[0]);

        made((uintptr_t)retained);
        bytes_release(retained);
    }
}

static void retain_case(bench_round *round)
{
    time_bytes(round, (size_t)bench_setting(round, "count", 500000), 1, retain_some);
}

static void join_some(bytes *const *parts, size_t times)
{
    struct iovec vectors[JOINED];

    for (size_t i = 0; i < times; i++)
        require(bytes_join(parts, vectors) == JOINED, "gathering all parts");
}

static void join_case(bench_round *round)
{
    time_bytes(round, (size_t)bench_setting(round, "count", 50000), 1, join_some);
}

static void read_some(bytes *const *parts, size_t times)
{
    for (size_t i = 0; i < times; i++)
        bytes_read_numbers(parts[0]);
}

static void read_case(bench_round *round)
{
    size_t count = (size_t)bench_setting(round, "count", 1000000);

    time_bytes(round, count / NUMBERS, NUMBERS, read_some);
}

static void write_some(bytes *const *parts, size_t times)
{
    for (size_t i = 0; i < times; i++)
        bytes_write_numbers(parts[0]);
}

static void write_case(bench_round *round)
{
    size_t count = (size_t)bench_setting(round, "count", 1000000);

    time_bytes(round, count / NUMBERS, NUMBERS, write_some);
}
