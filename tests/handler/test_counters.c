/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The counters handler.
 */
#include <weir/diagnostics.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <weir/embedded.h>
#include <weir/file_range.h>
#include <weir/metric.h>
#include <weir/pipeline.h>

#include "support/codec/feed.h"
#include "support/memory.h"
#include "support/test.h"
#include "support/transport/embedded_threads.h"

static weir_counters *make_counters(const char *name)
{
    weir_counters *counters = NULL;

    assert_int_equal(weir_counters_create(WEIR_COUNTERS_OPTIONS(.name = name), &counters), 0);
    return counters;
}

static weir_embedded *open_with(weir_counters *counters)
{
    weir_embedded *embedded = NULL;

    assert_int_equal(weir_embedded_create(WEIR_EMBEDDED_OPTIONS(.register_later = true), &embedded),
                     0);
    assert_int_equal(weir_counters_add(weir_embedded_pipeline(embedded), counters), 0);
    assert_int_equal(weir_embedded_register(embedded), 0);
    return embedded;
}

#define assert_figures(counters, ...)                                \
    do {                                                             \
        weir_counters_stats found_, expected_ = {__VA_ARGS__};       \
        weir_counters_read_stats(counters, &found_);                 \
        assert_memory_equal(&found_, &expected_, sizeof(expected_)); \
    } while (0)

TEST(counters, count_messages_and_bytes)
{
    weir_counters *counters = make_counters(NULL);
    weir_embedded *embedded = open_with(counters);
    weir_channel *channel = weir_embedded_channel(embedded);

    assert_int_equal(weir_embedded_write_inbound(embedded, feed_bytes("abc", 3)), 0);
    assert_int_equal(weir_embedded_write_inbound(embedded, feed_bytes("de", 2)), 0);
    weir_channel_write(channel, feed_bytes("x", 1), NULL);
    weir_channel_write_and_flush(channel, feed_bytes("yz", 2), NULL);
    weir_embedded_run(embedded);
    assert_figures(counters, .bytes_read = 5, .messages_read = 2, .reads = 2, .bytes_written = 3,
                   .messages_written = 2, .flushes = 1, .channels = 1, .open = 1);
    (void)weir_embedded_finish(embedded);
    weir_pipeline_fire_error(weir_embedded_pipeline(embedded), -EIO, NULL);
    assert_figures(counters, .bytes_read = 5, .messages_read = 2, .reads = 2, .bytes_written = 3,
                   .messages_written = 2, .flushes = 1, .channels = 1);
    weir_embedded_release(embedded);
    weir_counters_release(counters);
}

TEST(counters, count_errors_and_messages_without_a_size)
{
    static const weir_msg_type type = {.name = "letter", .destroy = NULL};
    weir_counters *counters = make_counters(NULL);
    weir_embedded *embedded = open_with(counters);
    weir_msg letter;

    weir_msg_init(&letter, &type);
    assert_int_equal(weir_embedded_write_inbound(embedded, &letter), 0);
    assert_ptr_equal(weir_embedded_read_inbound(embedded), &letter);
    weir_pipeline_fire_error(weir_embedded_pipeline(embedded), -EIO, NULL);
    assert_figures(counters, .messages_read = 1, .reads = 1, .errors = 1, .channels = 1, .open = 1);
    weir_embedded_release(embedded);
    weir_counters_release(counters);
}

TEST(counters, count_the_bytes_of_files)
{
    weir_counters *counters = make_counters(NULL);
    weir_embedded *embedded = open_with(counters);
    int file = memfd_create("weir-counters", MFD_CLOEXEC);
    weir_file_range *range = NULL;

    assert_int_equal(ftruncate(file, 700), 0);
    assert_int_equal(weir_file_range_create(file, 200, 500, WEIR_FILE_RANGE_CLOSE, &range), 0);
    weir_channel_write_and_flush(weir_embedded_channel(embedded), weir_file_range_msg(range), NULL);
    weir_embedded_run(embedded);
    assert_figures(counters, .bytes_written = 500, .messages_written = 1, .flushes = 1,
                   .channels = 1, .open = 1);
    weir_embedded_release(embedded);
    weir_counters_release(counters);
}

TEST(counters, publish_at_the_end_of_a_batch_and_on_removal)
{
    weir_counters *counters = make_counters(NULL);
    weir_embedded *embedded = open_with(counters);

    assert_int_equal(weir_embedded_write_one_inbound(embedded, feed_bytes("abc", 3)), 0);
    assert_figures(counters, .channels = 1, .open = 1);
    assert_int_equal(weir_pipeline_remove(weir_embedded_pipeline(embedded), "counters", NULL), 0);
    weir_embedded_run(embedded);
    assert_figures(counters, .bytes_read = 3, .messages_read = 1, .channels = 1);
    weir_embedded_release(embedded);
    weir_counters_release(counters);
}

TEST(counters, added_late_count_the_channel)
{
    weir_counters *counters = make_counters(NULL);
    weir_embedded *embedded = NULL;

    assert_int_equal(weir_embedded_create(NULL, &embedded), 0);
    assert_int_equal(weir_counters_add(weir_embedded_pipeline(embedded), counters), 0);
    assert_figures(counters, .channels = 1, .open = 1);
    weir_counters_release(counters); /* the channel retains them */
    weir_embedded_release(embedded);
    weir_counters_release(NULL);
}

TEST(counters, with_a_name_are_metrics)
{
    weir_counters *counters = make_counters("front"), *taken = NULL;
    weir_embedded *embedded = open_with(counters);
    weir_metric_value value;
    char endless[WEIR_METRIC_NAME_SIZE + 8];

    assert_int_equal(weir_embedded_write_inbound(embedded, feed_bytes("abc", 3)), 0);
    assert_int_equal(weir_metric_read("front.bytes_read", &value), 0);
    assert_int_equal(value.value, 3);
    assert_int_equal(value.kind, WEIR_METRIC_COUNTER);
    assert_int_equal(weir_metric_read("front.open", &value), 0);
    assert_int_equal(value.value, 1);
    assert_int_equal(value.kind, WEIR_METRIC_GAUGE);
    assert_int_equal(weir_counters_create(WEIR_COUNTERS_OPTIONS(.name = "front"), &taken), -EEXIST);
    memset(endless, 'x', sizeof(endless) - 1);
    endless[sizeof(endless) - 1] = '\0';
    assert_int_equal(weir_counters_create(WEIR_COUNTERS_OPTIONS(.name = endless), &taken),
                     -ENAMETOOLONG);
    weir_embedded_release(embedded);
    weir_counters_release(counters);
    assert_int_equal(weir_metric_read("front.bytes_read", &value), -ENOENT);
}

static int add(weir_pipeline *pipeline, void *shared)
{
    return weir_counters_add(pipeline, shared);
}

TEST(counters, are_shared_by_threads)
{
    weir_counters *counters = make_counters("shared");

    embedded_threads_run(add, counters);
    assert_figures(counters, .bytes_read = EMBEDDED_BYTES, .messages_read = EMBEDDED_MESSAGES,
                   .reads = EMBEDDED_MESSAGES, .channels = EMBEDDED_THREADS);
    weir_counters_release(counters);
}

TEST(counters, survive_allocation_failures)
{
    for (unsigned n = 1;; n++) {
        weir_embedded *embedded = NULL;
        weir_counters *counters = NULL;
        bool failed;
        int err;

        assert_int_equal(weir_embedded_create(NULL, &embedded), 0);
        test_memory_fail_at(n);
        err = weir_counters_create(WEIR_COUNTERS_OPTIONS(.name = "sweep"), &counters);
        if (err == 0)
            err = weir_counters_add(weir_embedded_pipeline(embedded), counters);
        failed = test_memory_failed();
        test_memory_fail_at(0);
        weir_embedded_release(embedded);
        weir_counters_release(counters);
        if (!failed)
            break;
        assert_int_equal(err, -ENOMEM);
    }
}
