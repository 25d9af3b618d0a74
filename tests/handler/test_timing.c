/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The timing handler, with a clock that the measured handlers advance.
 */
#include <weir/diagnostics.h>

#include <errno.h>

#include <weir/embedded.h>
#include <weir/handler.h>
#include <weir/metric.h>
#include <weir/pipeline.h>

#include "support/codec/feed.h"
#include "support/memory.h"
#include "support/test.h"
#include "support/transport/embedded_threads.h"

static weir_manual_clock *clock_of_test;

static void pass(int64_t ns)
{
    assert_int_equal(weir_manual_clock_advance(clock_of_test, ns), 0);
}

/* ---- a handler that takes a while: another one for each kind of event ---- */

static void slow_registered(weir_ctx *ctx)
{
    pass(1);
    weir_fire_registered(ctx);
}

static void slow_unregistered(weir_ctx *ctx)
{
    pass(2);
    weir_fire_unregistered(ctx);
}

static void slow_active(weir_ctx *ctx)
{
    pass(3);
    weir_fire_active(ctx);
}

static void slow_inactive(weir_ctx *ctx)
{
    pass(4);
    weir_fire_inactive(ctx);
}

static void slow_read(weir_ctx *ctx, weir_msg *msg)
{
    pass((int64_t)weir_msg_size(msg));
    weir_fire_read(ctx, msg);
}

static void slow_read_complete(weir_ctx *ctx)
{
    pass(6);
    weir_fire_read_complete(ctx);
}

static void slow_event(weir_ctx *ctx, weir_msg *event)
{
    pass(7);
    weir_fire_event(ctx, event);
}

static void slow_writability(weir_ctx *ctx)
{
    pass(8);
    weir_fire_writability(ctx);
}

static void slow_error(weir_ctx *ctx, int err, const char *detail)
{
    pass(9);
    weir_fire_error(ctx, err, detail);
}

static const weir_handler slow = {
    .name = "slow",
    .registered = slow_registered,
    .unregistered = slow_unregistered,
    .active = slow_active,
    .inactive = slow_inactive,
    .read = slow_read,
    .read_complete = slow_read_complete,
    .event = slow_event,
    .writability = slow_writability,
    .error = slow_error,
};

static weir_timing *make_timing(const char *name)
{
    weir_timing *timing = NULL;

    assert_int_equal(weir_manual_clock_create(0, &clock_of_test), 0);
    assert_int_equal(
        weir_timing_create(
            WEIR_TIMING_OPTIONS(.name = name, .clock = weir_manual_clock_clock(clock_of_test)),
            &timing),
        0);
    return timing;
}

static void release_timing(weir_timing *timing)
{
    weir_timing_release(timing);
    weir_manual_clock_release(clock_of_test);
}

static weir_embedded *open_with(weir_timing *timing)
{
    weir_embedded *embedded = NULL;
    weir_pipeline *pipeline;

    assert_int_equal(weir_embedded_create(WEIR_EMBEDDED_OPTIONS(.register_later = true), &embedded),
                     0);
    pipeline = weir_embedded_pipeline(embedded);
    assert_int_equal(weir_timing_add(pipeline, timing), 0);
    assert_int_equal(weir_pipeline_add_last(pipeline, &slow, NULL), 0);
    assert_int_equal(weir_embedded_register(embedded), 0);
    return embedded;
}

static void assert_took(const weir_timing *timing, enum weir_timing_kind kind, uint64_t count,
                        int64_t sum)
{
    weir_histogram_summary summary;

    weir_histogram_read(weir_timing_histogram(timing, kind), &summary);
    assert_int_equal(summary.count, count);
    assert_int_equal(summary.sum, sum);
}

TEST(timing, records_each_kind_of_event)
{
    weir_timing *timing = make_timing(NULL);
    weir_embedded *embedded = open_with(timing);
    weir_channel *channel = weir_embedded_channel(embedded);

    assert_int_equal(weir_embedded_write_inbound(embedded, feed_bytes("abc", 3)), 0);
    assert_int_equal(weir_embedded_write_inbound(embedded, feed_bytes("0123456789", 10)), 0);
    weir_channel_fire_event(channel, weir_msg_retain(weir_event_output_closed()));
    weir_embedded_run(embedded);
    assert_int_equal(weir_channel_set_user_writable(channel, 1, false), 0);
    weir_embedded_run(embedded);
    weir_pipeline_fire_error(weir_embedded_pipeline(embedded), -EIO, NULL);
    assert_int_equal(weir_embedded_take_error(embedded), -EIO);
    (void)weir_embedded_finish(embedded);
    assert_took(timing, WEIR_TIMING_REGISTERED, 1, 1);
    assert_took(timing, WEIR_TIMING_UNREGISTERED, 1, 2);
    assert_took(timing, WEIR_TIMING_ACTIVE, 1, 3);
    assert_took(timing, WEIR_TIMING_INACTIVE, 1, 4);
    assert_took(timing, WEIR_TIMING_READ, 2, 13);
    assert_took(timing, WEIR_TIMING_READ_COMPLETE, 2, 12);
    assert_took(timing, WEIR_TIMING_EVENT, 1, 7);
    assert_took(timing, WEIR_TIMING_WRITABILITY, 1, 8);
    assert_took(timing, WEIR_TIMING_ERROR, 1, 9);
    assert_took(timing, WEIR_TIMING_DRAINING, 0, 0);
    assert_null(weir_timing_histogram(timing, (enum weir_timing_kind)99));
    weir_embedded_release(embedded);
    release_timing(timing);
}

TEST(timing, with_a_name_is_a_metric)
{
    weir_timing *timing = make_timing("app"), *taken = NULL;
    weir_embedded *embedded = open_with(timing);
    weir_metric_value value;

    assert_int_equal(weir_embedded_write_inbound(embedded, feed_bytes("abc", 3)), 0);
    assert_int_equal(weir_metric_read("app.read", &value), 0);
    assert_int_equal(value.kind, WEIR_METRIC_HISTOGRAM);
    assert_int_equal(value.summary.count, 1);
    assert_int_equal(value.summary.max, 3);
    assert_int_equal(weir_timing_create(WEIR_TIMING_OPTIONS(.name = "app"), &taken), -EEXIST);
    weir_embedded_release(embedded);
    release_timing(timing);
    assert_int_equal(weir_metric_read("app.read", &value), -ENOENT);
}

static void remove_timing(weir_ctx *ctx, weir_msg *msg)
{
    (void)weir_pipeline_remove(weir_ctx_pipeline(ctx), "timing", NULL);
    weir_fire_read(ctx, msg);
}

TEST(timing, survives_removal_during_an_event)
{
    static const weir_handler remover = {.name = "remover", .read = remove_timing};
    weir_timing *timing = make_timing(NULL);
    weir_embedded *embedded = open_with(timing);

    assert_int_equal(weir_pipeline_add_last(weir_embedded_pipeline(embedded), &remover, NULL), 0);
    weir_timing_release(weir_timing_retain(timing));
    weir_timing_release(timing); /* the handler holds the last reference */
    assert_int_equal(weir_embedded_write_inbound(embedded, feed_bytes("abc", 3)), 0);
    assert_null(weir_pipeline_find(weir_embedded_pipeline(embedded), "timing"));
    weir_embedded_release(embedded);
    release_timing(NULL);
}

TEST(timing, uses_the_monotonic_clock_by_default)
{
    weir_timing *timing = NULL;
    weir_embedded *embedded = NULL;
    weir_histogram_summary summary;

    assert_int_equal(weir_timing_create(NULL, &timing), 0);
    assert_int_equal(weir_embedded_create(NULL, &embedded), 0);
    assert_int_equal(weir_timing_add(weir_embedded_pipeline(embedded), timing), 0);
    assert_int_equal(weir_embedded_write_inbound(embedded, feed_bytes("abc", 3)), 0);
    weir_histogram_read(weir_timing_histogram(timing, WEIR_TIMING_READ), &summary);
    assert_int_equal(summary.count, 1);
    weir_embedded_release(embedded);
    weir_timing_release(timing);
}

static int add(weir_pipeline *pipeline, void *shared)
{
    return weir_timing_add(pipeline, shared);
}

TEST(timing, is_shared_by_threads)
{
    weir_timing *timing = NULL;
    weir_histogram_summary summary;

    assert_int_equal(weir_timing_create(NULL, &timing), 0);
    embedded_threads_run(add, timing);
    weir_histogram_read(weir_timing_histogram(timing, WEIR_TIMING_READ), &summary);
    assert_int_equal(summary.count, EMBEDDED_MESSAGES);
    weir_timing_release(timing);
}

TEST(timing, survives_allocation_failures)
{
    for (unsigned n = 1;; n++) {
        weir_embedded *embedded = NULL;
        weir_timing *timing = NULL;
        bool failed;
        int err;

        assert_int_equal(weir_embedded_create(NULL, &embedded), 0);
        test_memory_fail_at(n);
        err = weir_timing_create(WEIR_TIMING_OPTIONS(.name = "sweep"), &timing);
        if (err == 0)
            err = weir_timing_add(weir_embedded_pipeline(embedded), timing);
        failed = test_memory_failed();
        test_memory_fail_at(0);
        weir_embedded_release(embedded);
        weir_timing_release(timing);
        if (!failed)
            break;
        assert_int_equal(err, -ENOMEM);
    }
}
