/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes held back: PendingWriteQueueTest of Netty, and more.
 */
#include <weir/flow_control.h>

#include <errno.h>

#include <weir/error.h>
#include <weir/pipeline.h>

#include "support/channel/test_channel.h"
#include "support/memory.h"

/* A handler that holds back everything; the test says what becomes of it. */
struct keeper {
    weir_pending_writes writes;
};

static void on_write(weir_ctx *ctx, weir_msg *msg, weir_promise *done)
{
    struct keeper *keeper = weir_ctx_state(ctx);

    (void)weir_pending_writes_add(ctx, &keeper->writes, msg, done);
}

static void on_flush(weir_ctx *ctx)
{
    weir_pending_writes_flush(&((struct keeper *)weir_ctx_state(ctx))->writes);
}

static void on_close(weir_ctx *ctx, weir_promise *done)
{
    weir_pending_writes_close(ctx, &((struct keeper *)weir_ctx_state(ctx))->writes, done);
}

static void on_shutdown_output(weir_ctx *ctx, weir_promise *done)
{
    weir_pending_writes_shutdown_output(ctx, &((struct keeper *)weir_ctx_state(ctx))->writes, done);
}

static void on_removed(weir_ctx *ctx)
{
    struct keeper *keeper = weir_ctx_state(ctx);

    weir_pending_writes_fail(ctx, &keeper->writes, WEIR_ECLOSED, NULL);
}

static const weir_handler keeper_handler = {
    .name = "keeper",
    .state_size = sizeof(struct keeper),
    .removed = on_removed,
    .write = on_write,
    .flush = on_flush,
    .close = on_close,
    .shutdown_output = on_shutdown_output,
};

static weir_pending_writes *open_rig(struct rig *rig, weir_ctx **ret_ctx)
{
    rig_open_with(rig, &(const struct wire_options){.silent = true},
                  WEIR_CHANNEL_OPTIONS(.low_mark = 500, .high_mark = 1000));
    assert_int_equal(weir_pipeline_add_last(rig->pipeline, &keeper_handler, NULL), 0);
    rig_start(rig);
    *ret_ctx = weir_pipeline_find(rig->pipeline, "keeper");
    return &((struct keeper *)weir_ctx_state(*ret_ctx))->writes;
}

TEST(pending_writes, pass_on_one_by_one_in_order)
{
    struct rig rig;
    weir_ctx *ctx;
    weir_pending_writes *writes = open_rig(&rig, &ctx);

    rig_write(&rig, "a", "a");
    rig_write(&rig, "b", NULL);
    rig_write(&rig, "c", "c");
    assert_int_equal(writes->count, 3);
    assert_int_equal(writes->flushed, 0);
    for (size_t left = 3; left > 0; left--) {
        assert_int_equal(writes->count, left);
        weir_pending_writes_pass(ctx, writes);
    }
    assert_null(writes->first);
    assert_null(writes->last);
    weir_flush(ctx);
    rig_run(&rig);
    assert_sent(&rig, "abc");
    assert_diary(&rig.diary, "a=ok c=ok");
    rig_write(&rig, "d", "d"); /* an empty one can be filled again */
    weir_pending_writes_pass(ctx, writes);
    weir_flush(ctx);
    rig_run(&rig);
    assert_sent(&rig, "d");
    rig_close(&rig);
}

TEST(pending_writes, know_how_many_were_flushed)
{
    struct rig rig;
    weir_ctx *ctx;
    weir_pending_writes *writes = open_rig(&rig, &ctx);

    rig_write(&rig, "a", NULL);
    rig_write(&rig, "b", NULL);
    weir_channel_flush(rig.channel);
    rig_write(&rig, "c", NULL);
    assert_int_equal(writes->flushed, 2);
    weir_pending_writes_pass(ctx, writes);
    assert_int_equal(writes->flushed, 1);
    weir_pending_writes_pass(ctx, writes);
    weir_pending_writes_pass(ctx, writes);
    assert_int_equal(writes->flushed, 0);
    rig_close(&rig);
}

TEST(pending_writes, count_against_the_marks_without_a_gap)
{
    struct rig rig;
    weir_ctx *ctx;
    weir_pending_writes *writes = open_rig(&rig, &ctx);

    rig.wire->room = 0;
    weir_channel_write(rig.channel, sized_msg(2000), NULL);
    assert_false(weir_channel_is_writable(rig.channel));
    assert_true(writes->cost >= 2000);
    rig_add(&rig, "a");
    weir_pending_writes_pass(ctx, writes);
    rig_run(&rig);
    assert_int_equal(writes->cost, 0);
    assert_false(weir_channel_is_writable(rig.channel));
    assert_int_equal(diary_count(&rig.diary, "a.writable"), 0);
    rig_close(&rig);
}

TEST(pending_writes, are_given_with_their_promise)
{
    struct rig rig;
    weir_ctx *ctx;
    weir_pending_writes *writes = open_rig(&rig, &ctx);
    weir_promise *done = NULL;
    weir_msg *msg;

    weir_channel_write(rig.channel, sized_msg(2000), rig_promise(&rig, "a"));
    msg = weir_pending_writes_take(ctx, writes, &done);
    assert_non_null(done);
    assert_true(weir_channel_is_writable(rig.channel));
    assert_int_equal(weir_channel_pending_bytes(rig.channel), 0);
    weir_msg_release(msg);
    weir_ctx_report(ctx, done, 0, NULL);
    weir_promise_release(done);
    weir_promise_release(done); /* the test's own */
    rig_run(&rig);
    assert_diary(&rig.diary, "a=ok");
    rig_close(&rig);
}

/* Two and a half become one message: what they count as is that one's, without a gap. */
TEST(pending_writes, may_become_part_of_something_else)
{
    struct rig rig;
    weir_ctx *ctx;
    weir_pending_writes *writes = open_rig(&rig, &ctx);
    int64_t cost, costs = 400;
    weir_promise *done;

    for (int i = 0; i < 3; i++)
        weir_channel_write(rig.channel, sized_msg(1000), NULL);
    assert_false(weir_channel_is_writable(rig.channel));
    rig_add(&rig, "a");
    for (int i = 0; i < 2; i++) {
        weir_msg_release(weir_pending_writes_pop(writes, &done, &cost));
        assert_null(done);
        costs += cost;
    }
    weir_pending_writes_shorten(writes, 400);
    assert_int_equal(writes->count, 1);
    assert_int_equal(weir_channel_pending_bytes(rig.channel), costs + writes->cost);
    weir_write_pending(ctx, sized_msg(2500), NULL, costs);
    assert_int_equal(weir_channel_pending_bytes(rig.channel),
                     2500 + WEIR__OUTBOUND_COST + writes->cost);
    assert_int_equal(diary_count(&rig.diary, "a.writ"), 0);
    weir_pending_writes_fail(ctx, writes, WEIR_ECLOSED, NULL);
    assert_int_equal(weir_channel_pending_bytes(rig.channel), 2500 + WEIR__OUTBOUND_COST);
    rig_close(&rig);
}

TEST(pending_writes, fail_one_or_all)
{
    struct rig rig;
    weir_ctx *ctx;
    weir_pending_writes *writes = open_rig(&rig, &ctx);

    rig_write(&rig, "a", "a");
    rig_write(&rig, "b", "b");
    rig_write(&rig, "c", "c");
    weir_pending_writes_fail_first(ctx, writes, -EIO, "no");
    rig_run(&rig);
    assert_int_equal(writes->count, 2);
    assert_int_equal(diary_count(&rig.diary, "a=EIO"), 1);
    weir_pending_writes_fail(ctx, writes, -EPERM, NULL);
    rig_run(&rig);
    assert_int_equal(writes->count, 0);
    assert_int_equal(diary_count(&rig.diary, "b=EPERM"), 1);
    assert_int_equal(diary_count(&rig.diary, "c=EPERM"), 1);
    assert_true(weir_channel_is_open(rig.channel));
    rig_close(&rig);
}

TEST(pending_writes, let_a_close_wait_until_they_are_gone)
{
    struct rig rig;
    weir_ctx *ctx;
    weir_pending_writes *writes = open_rig(&rig, &ctx);
    weir_promise *first = rig_promise(&rig, "first"), *second = rig_promise(&rig, "second");

    rig_write(&rig, "a", "a");
    weir_channel_close(rig.channel, first);
    weir_channel_close(rig.channel, second);
    rig_run(&rig);
    assert_true(writes->closes);
    assert_int_equal(writes->flushed, 1);
    weir_pending_writes_settle(ctx, writes); /* nothing has changed */
    assert_diary(&rig.diary, "");
    weir_pending_writes_pass(ctx, writes);
    weir_flush(ctx);
    weir_pending_writes_settle(ctx, writes);
    rig_end_input(&rig);
    rig_run(&rig);
    assert_sent(&rig, "a");
    assert_int_equal(diary_count(&rig.diary, "a=ok"), 1);
    assert_int_equal(diary_count(&rig.diary, "first=ok"), 1);
    assert_int_equal(diary_count(&rig.diary, "second=ok"), 1);
    weir_promise_release(first);
    weir_promise_release(second);
    rig_close(&rig);
}

static void shut(struct rig *rig, const char *name)
{
    weir_promise *done = name != NULL ? rig_promise(rig, name) : NULL;

    weir_channel_shutdown_output(rig->channel, done);
    weir_promise_release(done);
    rig_run(rig);
}

TEST(pending_writes, let_a_half_closure_wait_until_they_are_gone)
{
    struct rig rig;
    weir_ctx *ctx;
    weir_pending_writes *writes = open_rig(&rig, &ctx);

    rig_write(&rig, "a", "a");
    shut(&rig, NULL);
    shut(&rig, "first");
    shut(&rig, "second");
    assert_true(writes->shuts);
    assert_true(weir_pending_writes_is_ending(writes));
    assert_int_equal(writes->flushed, 1);
    weir_pending_writes_settle(ctx, writes); /* nothing has changed */
    assert_diary(&rig.diary, "");
    weir_pending_writes_pass(ctx, writes);
    weir_pending_writes_settle(ctx, writes);
    rig_run(&rig);
    assert_sent(&rig, "a");
    assert_diary(&rig.diary, "a=ok first=ok second=ok");
    assert_false(weir_pending_writes_is_ending(writes));
    assert_true(weir_channel_is_open(rig.channel));
    shut(&rig, "third");
    assert_diary(&rig.diary, "third=ok");
    rig_close(&rig);
}

TEST(pending_writes, let_a_half_closure_pass_if_there_are_none)
{
    struct rig rig;
    weir_ctx *ctx;
    weir_pending_writes *writes = open_rig(&rig, &ctx);

    shut(&rig, "shut");
    assert_diary(&rig.diary, "shut=ok");
    assert_false(weir_pending_writes_is_ending(writes));
    rig_close(&rig);
}

/* The half closure came first, and is first. */
TEST(pending_writes, let_a_close_wait_behind_a_half_closure)
{
    struct rig rig;
    weir_ctx *ctx;
    weir_pending_writes *writes = open_rig(&rig, &ctx);

    rig_write(&rig, "a", "a");
    shut(&rig, "shut");
    weir_channel_close(rig.channel, NULL);
    shut(&rig, "again"); /* D 88 */
    assert_diary(&rig.diary, "again=WEIR_ECLOSED");
    weir_pending_writes_pass(ctx, writes);
    weir_pending_writes_settle(ctx, writes);
    rig_run(&rig);
    assert_diary(&rig.diary, "a=ok shut=ok");
    rig_end_input(&rig);
    rig_run(&rig);
    assert_false(weir_channel_is_open(rig.channel));
    rig_close(&rig);
}

TEST(pending_writes, fail_a_half_closure_with_them)
{
    struct rig rig;
    weir_ctx *ctx;
    weir_pending_writes *writes = open_rig(&rig, &ctx);

    rig_write(&rig, "a", "a");
    shut(&rig, "shut");
    weir_pending_writes_fail(ctx, writes, -EIO, "no");
    rig_run(&rig);
    assert_diary(&rig.diary, "a=EIO shut=EIO");
    assert_false(weir_pending_writes_is_ending(writes));
    rig_close(&rig);
}

/* It has begun: what was written before is flushed by it. */
TEST(pending_writes, do_not_let_a_half_closure_be_cancelled_meanwhile)
{
    struct rig rig;
    weir_ctx *ctx;
    weir_pending_writes *writes = open_rig(&rig, &ctx);
    weir_promise *done = rig_promise(&rig, "shut");

    rig_write(&rig, "a", NULL);
    weir_channel_shutdown_output(rig.channel, done);
    assert_int_equal(weir_promise_cancel(done), -EBUSY);
    weir_pending_writes_pass(ctx, writes);
    weir_pending_writes_settle(ctx, writes);
    rig_run(&rig);
    assert_diary(&rig.diary, "shut=ok");
    weir_promise_release(done);
    rig_close(&rig);
}

/* Without memory the second one cannot wait for the first, and hears that. */
TEST(pending_writes, tell_who_cannot_wait_for_a_half_closure)
{
    struct rig rig;
    weir_ctx *ctx;
    weir_pending_writes *writes = open_rig(&rig, &ctx);
    weir_promise *second = rig_promise(&rig, "second");

    rig_write(&rig, "a", NULL);
    shut(&rig, "first");
    test_memory_fail_at(1);
    weir_channel_shutdown_output(rig.channel, second);
    assert_true(test_memory_failed());
    test_memory_fail_at(0);
    rig_run(&rig);
    assert_diary(&rig.diary, "second=ENOMEM");
    weir_pending_writes_pass(ctx, writes);
    weir_pending_writes_settle(ctx, writes);
    rig_run(&rig);
    assert_diary(&rig.diary, "first=ok");
    weir_promise_release(second);
    rig_close(&rig);
}

TEST(pending_writes, without_memory_a_write_fails_and_is_not_held)
{
    struct rig rig;
    weir_ctx *ctx;
    weir_pending_writes *writes = open_rig(&rig, &ctx);
    weir_promise *done = rig_promise(&rig, "a");
    weir_msg *msg = text_msg("a");
    size_t tried = 0;

    test_memory_fail_at(1);
    for (; !test_memory_failed(); tried++) /* nodes that the thread has kept are used up first */
        weir_channel_write(rig.channel, weir_msg_retain(msg), NULL);
    assert_int_equal(writes->count, tried - 1);
    test_memory_fail_at(1);
    weir_channel_write(rig.channel, msg, done);
    assert_int_equal(writes->count, tried - 1);
    rig_run(&rig);
    assert_int_equal(diary_count(&rig.diary, "a=ENOMEM"), 1);
    weir_promise_release(done);
    rig_close(&rig);
}
