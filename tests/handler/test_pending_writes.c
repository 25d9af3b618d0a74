/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pending writes: Netty's PendingWriteQueueTest, and more.
 */
#include <weir/flow_control.h>

#include <errno.h>

#include <weir/error.h>
#include <weir/pipeline.h>

#include "support/channel/test_channel.h"
#include "support/memory.h"

/* A handler that queues everything; the test decides what happens to it. */
struct queueing {
    weir_pending_writes writes;
};

static void on_write(weir_ctx *ctx, weir_msg *msg, weir_promise *done)
{
    struct queueing *queueing = weir_ctx_state(ctx);

    (void)weir_pending_writes_add(ctx, &queueing->writes, msg, done);
}

static void on_flush(weir_ctx *ctx)
{
    weir_pending_writes_flush(&((struct queueing *)weir_ctx_state(ctx))->writes);
}

static void on_close(weir_ctx *ctx, weir_promise *done)
{
    weir_pending_writes_close(ctx, &((struct queueing *)weir_ctx_state(ctx))->writes, done);
}

static void on_shutdown_output(weir_ctx *ctx, weir_promise *done)
{
    weir_pending_writes_shutdown_output(ctx, &((struct queueing *)weir_ctx_state(ctx))->writes,
                                        done);
}

static void on_removed(weir_ctx *ctx)
{
    struct queueing *queueing = weir_ctx_state(ctx);

    weir_pending_writes_fail(ctx, &queueing->writes, WEIR_ECLOSED, NULL);
}

static const weir_handler queueing_handler = {
    .name = "queueing",
    .state_size = sizeof(struct queueing),
    .removed = on_removed,
    .write = on_write,
    .flush = on_flush,
    .close = on_close,
    .shutdown_output = on_shutdown_output,
};

static weir_pending_writes *open_rig(struct test_channel *tc, weir_ctx **ret_ctx)
{
    tc_open_with(tc, &(const struct wire_options){.silent = true},
                 WEIR_CHANNEL_OPTIONS(.low_mark = 500, .high_mark = 1000));
    assert_int_equal(weir_pipeline_add_last(tc->pipeline, &queueing_handler, NULL), 0);
    tc_start(tc);
    *ret_ctx = weir_pipeline_find(tc->pipeline, "queueing");
    return &((struct queueing *)weir_ctx_state(*ret_ctx))->writes;
}

TEST(pending_writes, pass_in_order)
{
    struct test_channel tc;
    weir_ctx *ctx;
    weir_pending_writes *writes = open_rig(&tc, &ctx);

    tc_write(&tc, "a", "a");
    tc_write(&tc, "b", NULL);
    tc_write(&tc, "c", "c");
    assert_int_equal(writes->count, 3);
    assert_int_equal(writes->flushed, 0);
    for (size_t left = 3; left > 0; left--) {
        assert_int_equal(writes->count, left);
        weir_pending_writes_pass(ctx, writes);
    }
    assert_null(writes->first);
    assert_null(writes->last);
    weir_flush(ctx);
    tc_run(&tc);
    assert_sent(&tc, "abc");
    assert_events(&tc.events, "a=ok c=ok");
    tc_write(&tc, "d", "d"); /* an empty queue can be filled again */
    weir_pending_writes_pass(ctx, writes);
    weir_flush(ctx);
    tc_run(&tc);
    assert_sent(&tc, "d");
    tc_close(&tc);
}

TEST(pending_writes, count_flushed_writes)
{
    struct test_channel tc;
    weir_ctx *ctx;
    weir_pending_writes *writes = open_rig(&tc, &ctx);

    tc_write(&tc, "a", NULL);
    tc_write(&tc, "b", NULL);
    weir_channel_flush(tc.channel);
    tc_write(&tc, "c", NULL);
    assert_int_equal(writes->flushed, 2);
    weir_pending_writes_pass(ctx, writes);
    assert_int_equal(writes->flushed, 1);
    weir_pending_writes_pass(ctx, writes);
    weir_pending_writes_pass(ctx, writes);
    assert_int_equal(writes->flushed, 0);
    tc_close(&tc);
}

TEST(pending_writes, count_against_the_water_marks)
{
    struct test_channel tc;
    weir_ctx *ctx;
    weir_pending_writes *writes = open_rig(&tc, &ctx);

    tc.wire->room = 0;
    weir_channel_write(tc.channel, sized_msg(2000), NULL);
    assert_false(weir_channel_is_writable(tc.channel));
    assert_true(writes->cost >= 2000);
    tc_add(&tc, "a");
    weir_pending_writes_pass(ctx, writes);
    tc_run(&tc);
    assert_int_equal(writes->cost, 0);
    assert_false(weir_channel_is_writable(tc.channel));
    assert_int_equal(event_log_count(&tc.events, "a.writable"), 0);
    tc_close(&tc);
}

TEST(pending_writes, are_taken_with_their_promise)
{
    struct test_channel tc;
    weir_ctx *ctx;
    weir_pending_writes *writes = open_rig(&tc, &ctx);
    weir_promise *done = NULL;
    weir_msg *msg;

    weir_channel_write(tc.channel, sized_msg(2000), tc_promise(&tc, "a"));
    msg = weir_pending_writes_take(ctx, writes, &done);
    assert_non_null(done);
    assert_true(weir_channel_is_writable(tc.channel));
    assert_int_equal(weir_channel_pending_bytes(tc.channel), 0);
    weir_msg_release(msg);
    weir_ctx_report(ctx, done, 0, NULL);
    weir_promise_release(done);
    weir_promise_release(done); /* the reference of the test */
    tc_run(&tc);
    assert_events(&tc.events, "a=ok");
    tc_close(&tc);
}

/* Merges two and a half writes into one message, which keeps their cost without a gap. */
TEST(pending_writes, are_taken_charged)
{
    struct test_channel tc;
    weir_ctx *ctx;
    weir_pending_writes *writes = open_rig(&tc, &ctx);
    int64_t cost, costs = 400;
    weir_promise *done;

    for (int i = 0; i < 3; i++)
        weir_channel_write(tc.channel, sized_msg(1000), NULL);
    assert_false(weir_channel_is_writable(tc.channel));
    tc_add(&tc, "a");
    for (int i = 0; i < 2; i++) {
        weir_msg_release(weir_pending_writes_take_charged(writes, &done, &cost));
        assert_null(done);
        costs += cost;
    }
    weir_pending_writes_shorten(writes, 400);
    assert_int_equal(writes->count, 1);
    assert_int_equal(weir_channel_pending_bytes(tc.channel), costs + writes->cost);
    weir_write_pending(ctx, sized_msg(2500), NULL, costs);
    assert_int_equal(weir_channel_pending_bytes(tc.channel),
                     2500 + WEIR__OUTBOUND_COST + writes->cost);
    assert_int_equal(event_log_count(&tc.events, "a.writ"), 0);
    weir_pending_writes_fail(ctx, writes, WEIR_ECLOSED, NULL);
    assert_int_equal(weir_channel_pending_bytes(tc.channel), 2500 + WEIR__OUTBOUND_COST);
    tc_close(&tc);
}

TEST(pending_writes, fail_one_or_all)
{
    struct test_channel tc;
    weir_ctx *ctx;
    weir_pending_writes *writes = open_rig(&tc, &ctx);

    tc_write(&tc, "a", "a");
    tc_write(&tc, "b", "b");
    tc_write(&tc, "c", "c");
    weir_pending_writes_fail_first(ctx, writes, -EIO, "no");
    tc_run(&tc);
    assert_int_equal(writes->count, 2);
    assert_int_equal(event_log_count(&tc.events, "a=EIO"), 1);
    weir_pending_writes_fail(ctx, writes, -EPERM, NULL);
    tc_run(&tc);
    assert_int_equal(writes->count, 0);
    assert_int_equal(event_log_count(&tc.events, "b=EPERM"), 1);
    assert_int_equal(event_log_count(&tc.events, "c=EPERM"), 1);
    assert_true(weir_channel_is_open(tc.channel));
    tc_close(&tc);
}

TEST(pending_writes, defer_a_close)
{
    struct test_channel tc;
    weir_ctx *ctx;
    weir_pending_writes *writes = open_rig(&tc, &ctx);
    weir_promise *first = tc_promise(&tc, "first"), *second = tc_promise(&tc, "second");

    tc_write(&tc, "a", "a");
    weir_channel_close(tc.channel, first);
    weir_channel_close(tc.channel, second);
    tc_run(&tc);
    assert_true(writes->close_deferred);
    assert_int_equal(writes->flushed, 1);
    weir_pending_writes_run_deferred(ctx, writes); /* unchanged */
    assert_events(&tc.events, "");
    weir_pending_writes_pass(ctx, writes);
    weir_flush(ctx);
    weir_pending_writes_run_deferred(ctx, writes);
    tc_end_input(&tc);
    tc_run(&tc);
    assert_sent(&tc, "a");
    assert_int_equal(event_log_count(&tc.events, "a=ok"), 1);
    assert_int_equal(event_log_count(&tc.events, "first=ok"), 1);
    assert_int_equal(event_log_count(&tc.events, "second=ok"), 1);
    weir_promise_release(first);
    weir_promise_release(second);
    tc_close(&tc);
}

static void shut(struct test_channel *tc, const char *name)
{
    weir_promise *done = name != NULL ? tc_promise(tc, name) : NULL;

    weir_channel_shutdown_output(tc->channel, done);
    weir_promise_release(done);
    tc_run(tc);
}

TEST(pending_writes, defer_a_half_closure)
{
    struct test_channel tc;
    weir_ctx *ctx;
    weir_pending_writes *writes = open_rig(&tc, &ctx);

    tc_write(&tc, "a", "a");
    shut(&tc, NULL);
    shut(&tc, "first");
    shut(&tc, "second");
    assert_true(writes->shutdown_deferred);
    assert_true(weir_pending_writes_is_ending(writes));
    assert_int_equal(writes->flushed, 1);
    weir_pending_writes_run_deferred(ctx, writes); /* unchanged */
    assert_events(&tc.events, "");
    weir_pending_writes_pass(ctx, writes);
    weir_pending_writes_run_deferred(ctx, writes);
    tc_run(&tc);
    assert_sent(&tc, "a");
    assert_events(&tc.events, "a=ok first=ok second=ok");
    assert_false(weir_pending_writes_is_ending(writes));
    assert_true(weir_channel_is_open(tc.channel));
    shut(&tc, "third");
    assert_events(&tc.events, "third=ok");
    tc_close(&tc);
}

TEST(pending_writes, pass_a_half_closure_if_empty)
{
    struct test_channel tc;
    weir_ctx *ctx;
    weir_pending_writes *writes = open_rig(&tc, &ctx);

    shut(&tc, "shut");
    assert_events(&tc.events, "shut=ok");
    assert_false(weir_pending_writes_is_ending(writes));
    tc_close(&tc);
}

/* The half closure was first, and is passed on first. */
TEST(pending_writes, pass_a_half_closure_before_a_close)
{
    struct test_channel tc;
    weir_ctx *ctx;
    weir_pending_writes *writes = open_rig(&tc, &ctx);

    tc_write(&tc, "a", "a");
    shut(&tc, "shut");
    weir_channel_close(tc.channel, NULL);
    shut(&tc, "again");
    assert_events(&tc.events, "again=WEIR_ECLOSED");
    weir_pending_writes_pass(ctx, writes);
    weir_pending_writes_run_deferred(ctx, writes);
    tc_run(&tc);
    assert_events(&tc.events, "a=ok shut=ok");
    tc_end_input(&tc);
    tc_run(&tc);
    assert_false(weir_channel_is_open(tc.channel));
    tc_close(&tc);
}

TEST(pending_writes, fail_together_with_a_half_closure)
{
    struct test_channel tc;
    weir_ctx *ctx;
    weir_pending_writes *writes = open_rig(&tc, &ctx);

    tc_write(&tc, "a", "a");
    shut(&tc, "shut");
    weir_pending_writes_fail(ctx, writes, -EIO, "no");
    tc_run(&tc);
    assert_events(&tc.events, "a=EIO shut=EIO");
    assert_false(weir_pending_writes_is_ending(writes));
    tc_close(&tc);
}

/* The half closure is in progress, and has flushed earlier writes. */
TEST(pending_writes, make_a_deferred_half_closure_uncancellable)
{
    struct test_channel tc;
    weir_ctx *ctx;
    weir_pending_writes *writes = open_rig(&tc, &ctx);
    weir_promise *done = tc_promise(&tc, "shut");

    tc_write(&tc, "a", NULL);
    weir_channel_shutdown_output(tc.channel, done);
    assert_int_equal(weir_promise_cancel(done), -EBUSY);
    weir_pending_writes_pass(ctx, writes);
    weir_pending_writes_run_deferred(ctx, writes);
    tc_run(&tc);
    assert_events(&tc.events, "shut=ok");
    weir_promise_release(done);
    tc_close(&tc);
}

/* Without memory, the second half closure cannot wait for the first, and fails. */
TEST(pending_writes, fail_a_half_closure_promise_without_memory)
{
    struct test_channel tc;
    weir_ctx *ctx;
    weir_pending_writes *writes = open_rig(&tc, &ctx);
    weir_promise *second = tc_promise(&tc, "second");

    tc_write(&tc, "a", NULL);
    shut(&tc, "first");
    test_memory_fail_at(1);
    weir_channel_shutdown_output(tc.channel, second);
    assert_true(test_memory_failed());
    test_memory_fail_at(0);
    tc_run(&tc);
    assert_events(&tc.events, "second=ENOMEM");
    weir_pending_writes_pass(ctx, writes);
    weir_pending_writes_run_deferred(ctx, writes);
    tc_run(&tc);
    assert_events(&tc.events, "first=ok");
    weir_promise_release(second);
    tc_close(&tc);
}

TEST(pending_writes, fail_a_write_without_memory)
{
    struct test_channel tc;
    weir_ctx *ctx;
    weir_pending_writes *writes = open_rig(&tc, &ctx);
    weir_promise *done = tc_promise(&tc, "a");
    weir_msg *msg = text_msg("a");
    size_t tried = 0;

    test_memory_fail_at(1);
    for (; !test_memory_failed(); tried++) /* uses up the nodes that the thread has cached */
        weir_channel_write(tc.channel, weir_msg_retain(msg), NULL);
    assert_int_equal(writes->count, tried - 1);
    test_memory_fail_at(1);
    weir_channel_write(tc.channel, msg, done);
    assert_int_equal(writes->count, tried - 1);
    tc_run(&tc);
    assert_int_equal(event_log_count(&tc.events, "a=ENOMEM"), 1);
    weir_promise_release(done);
    tc_close(&tc);
}
