/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A message that is written and not flushed: Debug builds say so, others do not look.
 */
#include <weir/embedded.h>
#include <weir/flow_control.h>
#include <weir/pipeline.h>

#include "support/buffer/buf.h"
#include "support/executor/log_capture.h"

#ifdef NDEBUG
#define WARNINGS 0u
#else
#define WARNINGS 1u
#endif

static void write_only(weir_ctx *ctx, weir_msg *msg)
{
    weir_write(ctx, msg, NULL);
}

static void flush(weir_ctx *ctx)
{
    weir_flush(ctx);
    weir_fire_read_complete(ctx);
}

static const weir_handler forgets = {.name = "forgets", .read = write_only};
static const weir_handler flushes = {.name = "flushes", .read = write_only, .read_complete = flush};

static weir_embedded *create(const weir_handler *handler, bool consolidated)
{
    weir_embedded *embedded;
    weir_pipeline *pipeline;

    log_capture_start();
    assert_int_equal(weir_embedded_create(NULL, &embedded), 0);
    pipeline = weir_embedded_pipeline(embedded);
    if (consolidated)
        assert_int_equal(weir_flush_consolidation_add(pipeline, NULL), 0);
    assert_int_equal(weir_pipeline_add_last(pipeline, handler, NULL), 0);
    return embedded;
}

static void receive(weir_embedded *embedded)
{
    assert_int_equal(weir_embedded_write_inbound(embedded, weir_buf_msg(make_buf_of("x"))), 0);
}

static void release(weir_embedded *embedded)
{
    weir_msg *msg;

    while ((msg = weir_embedded_read_outbound(embedded)) != NULL)
        weir_msg_release(msg);
    weir_embedded_release(embedded);
}

TEST(forgotten_flush, is_reported_when_the_channel_closes)
{
    weir_embedded *embedded = create(&forgets, false);

    receive(embedded);
    weir_embedded_advance(embedded, weir_ms(999));
    assert_int_equal(log_capture_count(WEIR_LOG_WARN), 0);
    weir_embedded_advance(embedded, weir_ms(1));
    weir_channel_close(weir_embedded_channel(embedded), NULL);
    weir_embedded_run(embedded);
    assert_int_equal(log_capture_count(WEIR_LOG_WARN), WARNINGS);
    if (WARNINGS > 0)
        assert_log_contains("written 1000 ms ago and never flushed");
    release(embedded);
}

TEST(forgotten_flush, is_reported_when_the_channel_is_aborted)
{
    weir_embedded *embedded = create(&forgets, false);

    receive(embedded);
    weir_embedded_advance(embedded, weir_ms(1500));
    weir_channel_abort(weir_embedded_channel(embedded), NULL);
    weir_embedded_run(embedded);
    assert_int_equal(log_capture_count(WEIR_LOG_WARN), WARNINGS);
    release(embedded);
}

TEST(forgotten_flush, is_reported_when_more_has_been_received)
{
    weir_embedded *embedded = create(&forgets, false);

    receive(embedded);
    weir_embedded_advance(embedded, weir_seconds(2));
    receive(embedded);
    assert_int_equal(log_capture_count(WEIR_LOG_WARN), WARNINGS);
    release(embedded);
}

/* A flush ends the time; the next write begins another one. */
TEST(forgotten_flush, is_not_reported_if_it_comes_late)
{
    weir_embedded *embedded = create(&forgets, false);

    receive(embedded);
    weir_embedded_advance(embedded, weir_seconds(2));
    weir_channel_flush(weir_embedded_channel(embedded));
    receive(embedded);
    weir_embedded_advance(embedded, weir_ms(500));
    receive(embedded);
    weir_channel_close(weir_embedded_channel(embedded), NULL);
    weir_embedded_run(embedded);
    assert_int_equal(log_capture_count(WEIR_LOG_WARN), 0);
    release(embedded);
}

TEST(forgotten_flush, is_not_reported_if_flushes_are_consolidated)
{
    weir_embedded *embedded = create(&flushes, true);

    for (int i = 0; i < 3; i++) {
        receive(embedded);
        weir_embedded_advance(embedded, weir_seconds(2));
    }
    weir_channel_close(weir_embedded_channel(embedded), NULL);
    weir_embedded_run(embedded);
    assert_int_equal(log_capture_count(WEIR_LOG_WARN), 0);
    release(embedded);
}
