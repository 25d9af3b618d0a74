/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buckets, percentiles compared with a sorted list, merge and reset, concurrent readers and
 * writers.
 */
#include "support/test.h"

#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/histogram.h"
#include "os/random.h"
#include "os/thread.h"
#include "support/memory.h"

static weir_histogram *create(void)
{
    weir_histogram *histogram;

    assert_int_equal(weir_histogram_create(&histogram), 0);
    return histogram;
}

static weir_histogram_summary summary_of(const weir_histogram *histogram)
{
    weir_histogram_summary summary;

    weir_histogram_read(histogram, &summary);
    return summary;
}

TEST(histogram, an_empty_one_is_all_zero)
{
    weir_histogram *histogram = create();
    weir_histogram_summary summary = summary_of(histogram);

    assert_int_equal(summary.count, 0);
    assert_int_equal(summary.sum, 0);
    assert_int_equal(summary.min, 0);
    assert_int_equal(summary.max, 0);
    assert_true(summary.mean == 0);
    assert_int_equal(summary.p50, 0);
    assert_int_equal(summary.p999, 0);
    assert_int_equal(weir_histogram_percentile(histogram, 50), 0);
    weir_histogram_release(histogram);
    weir_histogram_release(NULL);
}

TEST(histogram, create_fails_without_memory)
{
    weir_histogram *histogram = NULL;

    test_memory_fail_at(1);
    assert_int_equal(weir_histogram_create(&histogram), -ENOMEM);
    assert_null(histogram);
}

TEST(histogram, one_value_is_every_percentile)
{
    const int64_t values[] = {0, 1, 15, 16, 17, 1000, 123456789, WEIR_HISTOGRAM_MAX};

    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        weir_histogram *histogram = create();
        weir_histogram_summary summary;

        weir_histogram_record(histogram, values[i]);
        summary = summary_of(histogram);
        assert_int_equal(summary.count, 1);
        assert_int_equal(summary.sum, values[i]);
        assert_int_equal(summary.min, values[i]);
        assert_int_equal(summary.max, values[i]);
        assert_true(summary.mean == (double)values[i]);
        assert_int_equal(summary.p50, values[i]);
        assert_int_equal(summary.p999, values[i]);
        weir_histogram_release(histogram);
    }
}

TEST(histogram, buckets_are_in_order_and_a_sixteenth_wide)
{
    unsigned last = 0;

    for (int64_t value = 0; value < 100000; value++) {
        unsigned bucket = weir__histogram_bucket(value);

        assert_true(bucket == last || bucket == last + 1);
        last = bucket;
    }
    for (unsigned shift = 4; shift < 42; shift++) {
        int64_t start = INT64_C(1) << shift, width = start / 16;

        assert_int_equal(weir__histogram_bucket(start), weir__histogram_bucket(start - 1) + 1);
        assert_int_equal(weir__histogram_bucket(start + width - 1), weir__histogram_bucket(start));
        assert_int_equal(weir__histogram_bucket(start + width), weir__histogram_bucket(start) + 1);
    }
    assert_int_equal(weir__histogram_bucket(WEIR_HISTOGRAM_MAX), WEIR__HISTOGRAM_BUCKETS - 1);
}

TEST(histogram, values_out_of_range_are_clamped)
{
    weir_histogram *histogram = create();
    weir_histogram_summary summary;

    weir_histogram_record(histogram, -5);
    weir_histogram_record(histogram, INT64_MIN);
    weir_histogram_record(histogram, WEIR_HISTOGRAM_MAX + 1);
    weir__histogram_record(histogram, INT64_MAX);
    summary = summary_of(histogram);
    assert_int_equal(summary.count, 4);
    assert_int_equal(summary.min, 0);
    assert_int_equal(summary.max, WEIR_HISTOGRAM_MAX);
    assert_int_equal(summary.sum, 2 * WEIR_HISTOGRAM_MAX);
    assert_int_equal(summary.p50, 0);
    assert_int_equal(summary.p90, WEIR_HISTOGRAM_MAX);
    weir_histogram_release(histogram);
}

TEST(histogram, small_values_have_exact_percentiles)
{
    weir_histogram *histogram = create();

    for (int64_t value = 1; value <= 10; value++)
        weir_histogram_record(histogram, value);
    assert_int_equal(weir_histogram_percentile(histogram, 0), 1);
    assert_int_equal(weir_histogram_percentile(histogram, 10), 1);
    assert_int_equal(weir_histogram_percentile(histogram, 10.1), 2);
    assert_int_equal(weir_histogram_percentile(histogram, 50), 5);
    assert_int_equal(weir_histogram_percentile(histogram, 100), 10);
    weir_histogram_release(histogram);
}

TEST(histogram, a_percentile_is_the_upper_bound_of_its_bucket)
{
    weir_histogram *histogram = create();

    weir_histogram_record(histogram, 16);
    weir_histogram_record(histogram, 1000); /* in 992 .. 1023 */
    weir_histogram_record(histogram, 1024); /* in 1024 .. 1087 */
    weir_histogram_record(histogram, 5000);
    assert_int_equal(weir_histogram_percentile(histogram, 25), 16);
    assert_int_equal(weir_histogram_percentile(histogram, 50), 1023);
    assert_int_equal(weir_histogram_percentile(histogram, 75), 1087);
    assert_int_equal(weir_histogram_percentile(histogram, 100), 5000);
    weir_histogram_release(histogram);
}

TEST(histogram, a_percentile_out_of_range_is_the_minimum_or_maximum)
{
    weir_histogram *histogram = create();

    weir_histogram_record(histogram, 3);
    weir_histogram_record(histogram, 7);
    assert_int_equal(weir_histogram_percentile(histogram, -1), 3);
    assert_int_equal(weir_histogram_percentile(histogram, 1000), 7);
    assert_int_equal(weir_histogram_percentile(histogram, INFINITY), 7);
    assert_int_equal(weir_histogram_percentile(histogram, -INFINITY), 3);
    assert_int_equal(weir_histogram_percentile(histogram, NAN), 3);
    weir_histogram_release(histogram);
}

#define VALUES 5000

static int by_value(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;

    return (left > right) - (left < right);
}

static void assert_covers(int64_t answer, const int64_t *sorted, size_t rank)
{
    int64_t truth = sorted[rank - 1];

    assert_true(answer >= truth);
    assert_true(answer <= truth + truth / 16);
    assert_true(answer <= sorted[VALUES - 1]);
}

TEST(histogram, percentiles_are_never_too_low_and_a_sixteenth_too_high_at_most)
{
    static int64_t values[VALUES];

    for (uint64_t seed = 1; seed <= 20; seed++) {
        weir_histogram *histogram = create();
        weir_histogram_summary summary;
        weir__random random;
        int64_t sum = 0;

        weir__random_init(&random, seed);
        for (int i = 0; i < VALUES; i++) {
            values[i] = (int64_t)(weir__random_next(&random) >> (22 + random.state[0] % 42));
            sum += values[i];
            weir__histogram_record(histogram, values[i]);
        }
        qsort(values, VALUES, sizeof(values[0]), by_value);
        summary = summary_of(histogram);
        assert_int_equal(summary.count, VALUES);
        assert_int_equal(summary.sum, sum);
        assert_int_equal(summary.min, values[0]);
        assert_int_equal(summary.max, values[VALUES - 1]);
        assert_true(summary.mean == (double)sum / VALUES);
        assert_covers(summary.p50, values, VALUES / 2);
        assert_covers(summary.p90, values, VALUES / 10 * 9);
        assert_covers(summary.p99, values, VALUES / 100 * 99);
        assert_covers(summary.p999, values, VALUES / 1000 * 999);
        for (int percent = 1; percent <= 100; percent++)
            assert_covers(weir_histogram_percentile(histogram, percent), values,
                          (size_t)percent * VALUES / 100);
        weir_histogram_release(histogram);
    }
}

/* ---- merge and reset ---- */

TEST(histogram, a_merge_adds_every_value_and_leaves_the_source)
{
    weir_histogram *target = create(), *source = create(), *both = create();
    weir_histogram_summary expected, actual;

    for (int64_t value = 1; value < 3000; value += 7) {
        weir_histogram_record(value % 2 == 0 ? target : source, value);
        weir_histogram_record(both, value);
    }
    expected = summary_of(source);
    weir_histogram_merge(target, source);
    actual = summary_of(source);
    assert_memory_equal(&actual, &expected, sizeof(actual));
    expected = summary_of(both);
    actual = summary_of(target);
    assert_memory_equal(&actual, &expected, sizeof(actual));
    weir_histogram_release(target);
    weir_histogram_release(source);
    weir_histogram_release(both);
}

TEST(histogram, an_empty_source_changes_nothing)
{
    weir_histogram *target = create(), *source = create();

    weir_histogram_merge(target, source);
    assert_int_equal(summary_of(target).count, 0);
    weir_histogram_record(target, 5);
    weir_histogram_merge(target, source);
    assert_int_equal(summary_of(target).count, 1);
    assert_int_equal(summary_of(target).min, 5);
    assert_int_equal(summary_of(target).max, 5);
    weir_histogram_release(target);
    weir_histogram_release(source);
}

TEST(histogram, a_merge_into_itself_doubles_the_counts)
{
    weir_histogram *histogram = create();

    weir_histogram_record(histogram, 3);
    weir_histogram_record(histogram, 70);
    weir_histogram_merge(histogram, histogram);
    assert_int_equal(summary_of(histogram).count, 4);
    assert_int_equal(summary_of(histogram).sum, 146);
    assert_int_equal(summary_of(histogram).max, 70);
    weir_histogram_release(histogram);
}

TEST(histogram, a_reset_forgets_every_value)
{
    const weir_histogram_summary empty = {0};
    weir_histogram *histogram = create();
    weir_histogram_summary summary;

    weir_histogram_record(histogram, 1);
    weir_histogram_record(histogram, 1000000);
    weir_histogram_reset(histogram);
    summary = summary_of(histogram);
    assert_memory_equal(&summary, &empty, sizeof(summary));
    weir_histogram_record(histogram, 500);
    assert_int_equal(summary_of(histogram).count, 1);
    assert_int_equal(summary_of(histogram).min, 500);
    assert_int_equal(summary_of(histogram).max, 500);
    assert_int_equal(summary_of(histogram).sum, 500);
    weir_histogram_release(histogram);
}

/* A reset between the two halves of a record leaves a bucket without its min, max and sum. */
TEST(histogram, a_value_that_a_reset_cut_in_half_is_reported_within_its_bucket)
{
    weir_histogram *histogram = create();
    weir_histogram_summary summary;

    atomic_store(&histogram->buckets[weir__histogram_bucket(1000)], 1);
    summary = summary_of(histogram);
    assert_int_equal(summary.count, 1);
    assert_in_range(summary.min, 992, 1023);
    assert_in_range(summary.max, 992, 1023);
    assert_in_range(summary.p50, 992, 1023);
    assert_true(summary.mean >= 992 && summary.mean <= 1023);
    weir_histogram_release(histogram);
}

/* ---- threads ---- */

#define RECORDS 20000

static _Atomic int writers_left;

static void record_any(void *histogram)
{
    for (int i = 0; i < RECORDS; i++)
        weir_histogram_record(histogram, 1000 + i % 500);
    atomic_fetch_sub(&writers_left, 1);
}

static void record_alone(void *histogram)
{
    for (int i = 0; i < RECORDS; i++)
        weir__histogram_record(histogram, 1000 + i % 500);
    atomic_fetch_sub(&writers_left, 1);
}

static void assert_ordered(const weir_histogram_summary *summary, int64_t min, int64_t max)
{
    if (summary->count == 0)
        return;
    assert_true(min <= summary->min && summary->min <= summary->p50);
    assert_true(summary->p50 <= summary->p90 && summary->p90 <= summary->p99);
    assert_true(summary->p99 <= summary->p999 && summary->p999 <= summary->max);
    assert_true(summary->max <= max);
    assert_true(summary->mean >= (double)summary->min && summary->mean <= (double)summary->max);
}

static void read_beside(weir_thread_fn *writer, int writers)
{
    weir_histogram *histogram = create();
    weir_histogram_summary summary = {0};
    weir__thread threads[3];

    atomic_store(&writers_left, writers);
    for (int i = 0; i < writers; i++)
        assert_int_equal(weir__thread_start("writer", writer, histogram, &threads[i]), 0);
    while (atomic_load(&writers_left) > 0) {
        uint64_t before = summary.count;

        weir_histogram_read(histogram, &summary);
        assert_true(summary.count >= before);
        assert_ordered(&summary, 1000, 1499);
    }
    for (int i = 0; i < writers; i++)
        weir__thread_join(&threads[i]);
    summary = summary_of(histogram);
    assert_int_equal(summary.count, writers * RECORDS);
    assert_int_equal(summary.sum, writers * (RECORDS / 500) * INT64_C(624750));
    assert_int_equal(summary.min, 1000);
    assert_int_equal(summary.max, 1499);
    weir_histogram_release(histogram);
}

TEST(histogram, many_threads_may_record_and_one_read)
{
    read_beside(record_any, 3);
}

TEST(histogram, one_thread_may_record_cheaply_and_another_read)
{
    read_beside(record_alone, 1);
}

static void merge_and_reset(void *histogram)
{
    weir_histogram *total = create();

    while (atomic_load(&writers_left) > 0) {
        weir_histogram_merge(total, histogram);
        weir_histogram_reset(histogram);
    }
    weir_histogram_merge(histogram, total);
    weir_histogram_release(total);
}

TEST(histogram, threads_may_merge_and_reset_beside_writers_and_readers)
{
    weir_histogram *histogram = create();
    weir__thread writers[2], merger;

    atomic_store(&writers_left, 2);
    for (int i = 0; i < 2; i++)
        assert_int_equal(weir__thread_start("writer", record_any, histogram, &writers[i]), 0);
    assert_int_equal(weir__thread_start("merger", merge_and_reset, histogram, &merger), 0);
    while (atomic_load(&writers_left) > 0) {
        weir_histogram_summary summary = summary_of(histogram);

        assert_ordered(&summary, 992, 1535); /* the bounds of the buckets */
    }
    for (int i = 0; i < 2; i++)
        weir__thread_join(&writers[i]);
    weir__thread_join(&merger);
    weir_histogram_release(histogram);
}

/* ---- buckets ---- */

struct buckets {
    int64_t uppers[8];
    uint64_t counts[8];
    int count;
};

static void add_bucket(int64_t upper, uint64_t count, void *user_data)
{
    struct buckets *buckets = user_data;

    assert_in_range(buckets->count, 0, 7);
    buckets->uppers[buckets->count] = upper;
    buckets->counts[buckets->count++] = count;
}

TEST(histogram, its_buckets_have_upper_bounds_and_counts)
{
    static const int64_t values[] = {0, 15, 15, 1023, 1024, WEIR_HISTOGRAM_MAX, INT64_MAX};
    struct buckets buckets = {.count = 0};
    weir_histogram *histogram;

    assert_int_equal(weir_histogram_create(&histogram), 0);
    weir_histogram_foreach_bucket(histogram, add_bucket, &buckets);
    assert_int_equal(buckets.count, 0);
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
        weir_histogram_record(histogram, values[i]);
    weir_histogram_foreach_bucket(histogram, add_bucket, &buckets);
    assert_int_equal(buckets.count, 5);
    assert_int_equal(buckets.uppers[0], 0);
    assert_int_equal(buckets.uppers[1], 15);
    assert_int_equal(buckets.counts[1], 2);
    assert_int_equal(buckets.uppers[2], 1023); /* 1024 is in the next bucket */
    assert_int_equal(buckets.counts[2], 1);
    assert_int_equal(buckets.uppers[3], 1024 + 63);
    assert_int_equal(buckets.uppers[4], WEIR_HISTOGRAM_MAX);
    assert_int_equal(buckets.counts[4], 2);
    weir_histogram_release(histogram);
}
