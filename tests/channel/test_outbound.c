/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The outbound queue: what is counted, what is sent, what fails.
 */
#include <errno.h>

#include <weir/buf.h>
#include <weir/channel.h>
#include <weir/composite.h>
#include <weir/error.h>
#include <weir/file_range.h>
#include <weir/pool.h>

#include "support/channel/test_channel.h"
#include "support/executor/log_capture.h"
#include "support/memory.h"

#define COST WEIR__OUTBOUND_COST

static void write_sized(struct rig *rig, size_t bytes)
{
    weir_channel_write(rig->channel, sized_msg(bytes - COST), NULL);
}

static void rig_open_marked(struct rig *rig, int64_t low, int64_t high)
{
    rig_open_started(rig, &(struct wire_options){.silent = true},
                     WEIR_CHANNEL_OPTIONS(.low_mark = low, .high_mark = high));
}

/* The events alone, without what was written. */
static void assert_writability(struct rig *rig, unsigned unwritable, unsigned writable)
{
    assert_int_equal(diary_count(&rig->diary, "a.unwritable"), unwritable);
    assert_int_equal(diary_count(&rig->diary, "a.writable"), writable);
}

/* ---- marks ---- */

/* ---- what is held ---- */

typedef weir_msg *make_fn(void);

static weir_msg *make_small(void)
{
    return text_msg("x");
}

/* A handler that takes a buffer of a usual size for a short answer. */
static weir_msg *make_roomy(void)
{
    weir_buf *buf;

    assert_int_equal(weir_buf_create(4096, 0, &buf), 0);
    assert_int_equal(weir_buf_write_bytes(buf, "x", 1), 0);
    return weir_buf_msg(buf);
}

/* The only frame that is answered of all that came in a block. */
static weir_msg *make_view(void)
{
    weir_buf *block, *view;

    assert_int_equal(weir_buf_create(65536, 0, &block), 0);
    assert_int_equal(weir_buf_set_write_index(block, 65536), 0);
    assert_int_equal(weir_buf_slice(block, 7, 1, &view), 0);
    weir_buf_release(block);
    return weir_buf_msg(view);
}

/* A frame with its length in front. */
static weir_msg *make_frame(void)
{
    weir_composite *frame;

    assert_int_equal(weir_composite_create(0, &frame), 0);
    assert_int_equal(weir_composite_add(frame, text_msg("head")), 0);
    assert_int_equal(weir_composite_add(frame, make_view()), 0);
    return weir_composite_msg(frame);
}

static int64_t memory_in_use(void)
{
    weir_pool_stats pool;

    weir_pool_read_stats(&pool);
    return (int64_t)(pool.in_use_bytes + test_memory_live_bytes());
}

/* Answers until the channel is not writable, to a peer that takes nothing. */
static void assert_held_within_the_mark(make_fn *make)
{
    struct rig rig;
    int64_t before, held;

    rig_open_marked(&rig, 0, 0);
    rig.wire->room = 0;
    weir_channel_write_and_flush(rig.channel, text_msg("the first"), NULL);
    rig_run(&rig);
    before = memory_in_use();
    while (weir_channel_is_writable(rig.channel))
        weir_channel_write_and_flush(rig.channel, make(), NULL);
    held = memory_in_use() - before;
    assert_in_range(held, 32768, 2 * 65536);
    rig_make_room(&rig, -1);
    assert_int_equal(weir_channel_pending_bytes(rig.channel), 0);
    rig_close(&rig);
}

TEST(outbound, counts_the_memory_that_is_held_against_the_marks)
{
    assert_held_within_the_mark(make_small);
    assert_held_within_the_mark(make_roomy);
    assert_held_within_the_mark(make_view);
    assert_held_within_the_mark(make_frame);
}

TEST(outbound, counts_bytes_and_not_memory_in_the_statistics)
{
    struct rig rig;
    weir_channel_stats before, after;

    rig_open_marked(&rig, 0, 0);
    weir_channel_read_stats(&before);
    weir_channel_write_and_flush(rig.channel, make_roomy(), NULL);
    weir_channel_write_and_flush(rig.channel, make_frame(), NULL);
    weir_channel_read_stats(&after);
    assert_int_equal(after.bytes_sent - before.bytes_sent, 1 + 5);
    rig_close(&rig);
}

/* A copy is what the peer gets, also of what was read in part. */
TEST(outbound, sends_the_same_bytes_of_what_it_has_copied)
{
    weir_composite *composite;
    struct rig rig;

    rig_open_marked(&rig, 0, 0);
    rig.wire->room = 0;
    weir_channel_write_and_flush(rig.channel, text_msg("first "), NULL);
    assert_int_equal(weir_composite_create(0, &composite), 0);
    assert_int_equal(weir_composite_add(composite, text_msg("not this: ")), 0);
    assert_int_equal(weir_composite_add(composite, text_msg("second ")), 0);
    assert_int_equal(weir_composite_add(composite, text_msg("third")), 0);
    assert_int_equal(weir_composite_skip(composite, 10), 0);
    weir_channel_write_and_flush(rig.channel, weir_composite_msg(composite), NULL);
    rig_make_room(&rig, -1);
    assert_sent(&rig, "first second third");
    rig_close(&rig);
}

/* ---- the marks themselves ---- */

/* D 61 */
TEST(outbound, is_unwritable_above_the_high_mark_and_writable_below_the_low_one)
{
    struct rig rig;

    rig_open_marked(&rig, 1000, 2000);
    rig.wire->room = 0;
    write_sized(&rig, 1001);
    assert_writability(&rig, 0, 0); /* above the low mark alone */
    write_sized(&rig, 999);
    assert_writability(&rig, 0, 0); /* at the high mark */
    assert_int_equal(weir_channel_pending_bytes(rig.channel), 2000);
    assert_int_equal(weir_channel_bytes_before_unwritable(rig.channel), 1);
    write_sized(&rig, 250);
    assert_writability(&rig, 1, 0);
    assert_int_equal(weir_channel_bytes_before_unwritable(rig.channel), 0);
    assert_int_equal(weir_channel_bytes_before_writable(rig.channel), 1251);
    write_sized(&rig, 250);
    assert_writability(&rig, 1, 0);

    weir_channel_flush(rig.channel);
    rig_make_room(&rig, 1001 - COST);
    assert_writability(&rig, 1, 0); /* 1499 are left */
    rig_make_room(&rig, 999 - COST);
    assert_writability(&rig, 1, 1);
    assert_int_equal(weir_channel_pending_bytes(rig.channel), 500);
    rig_close(&rig);
}

TEST(outbound, is_not_writable_again_at_the_low_mark)
{
    struct rig rig;

    rig_open_marked(&rig, 1000, 2000);
    rig.wire->room = 0;
    write_sized(&rig, 1001);
    write_sized(&rig, 1000);
    weir_channel_flush(rig.channel);
    rig_make_room(&rig, 1001 - COST);
    assert_int_equal(weir_channel_pending_bytes(rig.channel), 1000);
    assert_writability(&rig, 1, 0);
    rig_make_room(&rig, -1);
    assert_writability(&rig, 1, 1);
    rig_close(&rig);
}

/* D 62 */
TEST(outbound, has_an_event_for_the_first_and_the_last_reason_of_the_users)
{
    struct rig rig;

    rig_open_marked(&rig, 1000, 2000);
    assert_int_equal(weir_channel_set_user_writable(rig.channel, 1, false), 0);
    assert_int_equal(weir_channel_set_user_writable(rig.channel, 31, false), 0);
    assert_false(weir_channel_is_writable(rig.channel));
    assert_writability(&rig, 0, 0); /* later */
    rig_run(&rig);
    assert_writability(&rig, 1, 0);
    assert_int_equal(weir_channel_set_user_writable(rig.channel, 1, true), 0);
    rig_run(&rig);
    assert_writability(&rig, 1, 0);
    assert_int_equal(weir_channel_set_user_writable(rig.channel, 31, true), 0);
    rig_run(&rig);
    assert_writability(&rig, 1, 1);
    assert_int_equal(weir_channel_set_user_writable(rig.channel, 0, true), -EINVAL);
    assert_int_equal(weir_channel_set_user_writable(rig.channel, 32, true), -EINVAL);
    rig_close(&rig);
}

/* D 63 */
TEST(outbound, combines_marks_and_reasons)
{
    struct rig rig;

    rig_open_marked(&rig, 1000, 2000);
    rig.wire->room = 0;
    write_sized(&rig, 2001);
    assert_writability(&rig, 1, 0);
    assert_int_equal(weir_channel_set_user_writable(rig.channel, 5, false), 0);
    weir_channel_flush(rig.channel);
    rig_make_room(&rig, -1);
    rig_run(&rig);
    assert_writability(&rig, 1, 0);
    assert_int_equal(weir_channel_set_user_writable(rig.channel, 5, true), 0);
    rig_run(&rig);
    assert_writability(&rig, 1, 1);
    rig_close(&rig);
}

TEST(outbound, counts_what_handlers_hold_back)
{
    struct rig rig;
    weir_ctx *a;

    rig_open_marked(&rig, 1000, 2000);
    a = weir_pipeline_find(rig.pipeline, "a");
    weir_ctx_add_pending_bytes(a, 1500);
    weir_ctx_add_pending_bytes(a, 501);
    assert_writability(&rig, 1, 0);
    weir_ctx_add_pending_bytes(a, -501);
    assert_writability(&rig, 1, 0);
    assert_int_equal(weir_channel_pending_bytes(rig.channel), 1500);
    rig_add(&rig, "b");
    weir_ctx_remove(a); /* what is left goes with it */
    assert_int_equal(weir_channel_pending_bytes(rig.channel), 0);
    assert_true(weir_channel_is_writable(rig.channel));
    rig_close(&rig);
}

TEST(outbound, refuses_writes_beyond_its_cap)
{
    struct rig rig;

    rig_open_started(&rig, NULL, WEIR_CHANNEL_OPTIONS(.write_cap = 2 * COST + 3));
    rig_write(&rig, "ab", "first");
    rig_write(&rig, "cd", "second");
    assert_diary(&rig.diary, "a.write(ab) a.write(cd) second=WEIR_EFULL");
    rig_write(&rig, "c", "third");
    weir_channel_flush(rig.channel);
    assert_sent(&rig, "abc");
    rig_close(&rig);
}

TEST(outbound, looks_at_the_marks_again_when_they_change)
{
    struct rig rig;

    rig_open_marked(&rig, 1000, 2000);
    write_sized(&rig, 1500);
    assert_int_equal(weir_channel_set_options(rig.channel, WEIR_CHANNEL_OPTIONS(.high_mark = 1400)),
                     0);
    assert_writability(&rig, 1, 0);
    assert_int_equal(weir_channel_set_options(
                         rig.channel, WEIR_CHANNEL_OPTIONS(.low_mark = 1501, .high_mark = 2000)),
                     0);
    assert_writability(&rig, 1, 1);
    rig_close(&rig);
}

/* ---- sending ---- */

TEST(outbound, sends_only_what_is_flushed_in_order)
{
    struct rig rig;

    rig_open_started(&rig, NULL, NULL);
    rig_write(&rig, "a", "1");
    rig_write(&rig, "b", "2");
    weir_channel_flush(rig.channel);
    rig_write(&rig, "c", "3");
    assert_diary(&rig.diary, "a.write(a) a.write(b) a.flush FLUSH 1=ok 2=ok a.write(c)");
    assert_sent(&rig, "ab");
    assert_null(weir__outbound_current(rig.channel));
    weir_channel_flush(rig.channel);
    assert_sent(&rig, "c");
    rig_close(&rig);
}

TEST(outbound, goes_on_where_a_partial_send_ended)
{
    struct rig rig;

    rig_open_started(&rig, &(struct wire_options){.silent = true}, NULL);
    rig.wire->room = 0;
    rig_write(&rig, "hello ", "1");
    rig_write(&rig, "world", "2");
    weir_channel_flush(rig.channel);
    for (int i = 0; i < 11; i++)
        rig_make_room(&rig, 1);
    assert_sent(&rig, "hello world");
    assert_diary(&rig.diary, "a.write(hello ) a.write(world) a.flush 1=ok 2=ok");
    rig_close(&rig);
}

/* D 65 */
TEST(outbound, gathers_no_more_vectors_than_there_is_room_for)
{
    struct rig rig;
    struct iovec vectors[4];
    size_t bytes;

    rig_open_started(&rig, NULL, NULL);
    rig.wire->room = 0;
    for (int i = 0; i < 6; i++)
        rig_write(&rig, "ab", NULL);
    assert_int_equal(weir__outbound_gather(rig.channel, vectors, 4, &bytes), 0);
    weir_channel_flush(rig.channel);
    assert_int_equal(weir__outbound_gather(rig.channel, vectors, 4, &bytes), 4);
    assert_int_equal(bytes, 8);
    assert_int_equal(weir__outbound_gather(rig.channel, vectors, 1, &bytes), 1);
    assert_int_equal(bytes, 2);
    rig_close(&rig);
}

TEST(outbound, gathers_composites_and_stops_within_one)
{
    struct rig rig;
    struct iovec vectors[4];
    weir_composite *composite;
    size_t bytes;

    rig_open_started(&rig, NULL, NULL);
    rig.wire->room = 0;
    assert_int_equal(weir_composite_create(0, &composite), 0);
    assert_int_equal(weir_composite_add(composite, text_msg("bc")), 0);
    assert_int_equal(weir_composite_add(composite, text_msg("de")), 0);
    assert_int_equal(weir_composite_add(composite, text_msg("fg")), 0);
    rig_write(&rig, "a", NULL);
    weir_channel_write(rig.channel, weir_composite_msg(composite), NULL);
    rig_write(&rig, "h", NULL);
    weir_channel_flush(rig.channel);
    assert_int_equal(weir__outbound_gather(rig.channel, vectors, 3, &bytes), 3);
    assert_int_equal(bytes, 5);
    rig_make_room(&rig, 4);
    assert_sent(&rig, "abcd");
    rig_make_room(&rig, -1);
    assert_sent(&rig, "efgh");
    rig_close(&rig);
}

TEST(outbound, completes_empty_messages_without_sending)
{
    struct rig rig;

    rig_open_started(&rig, NULL, NULL);
    rig_write(&rig, "", "empty");
    weir_channel_flush(rig.channel);
    assert_diary(&rig.diary, "a.write() a.flush FLUSH empty=ok");
    rig_write(&rig, "a", NULL);
    rig_write(&rig, "", "between");
    rig_write(&rig, "b", NULL);
    weir_channel_flush(rig.channel);
    assert_sent(&rig, "ab");
    assert_int_equal(weir_channel_pending_bytes(rig.channel), 0);
    rig_close(&rig);
}

TEST(outbound, stops_gathering_at_what_does_not_consist_of_bytes)
{
    struct rig rig;
    struct iovec vectors[4];
    weir_file_range *range;
    size_t bytes;

    rig_open_started(&rig, NULL, NULL);
    rig.wire->room = 0;
    assert_int_equal(weir_file_range_create(0, 0, 10, 0, &range), 0);
    rig_write(&rig, "a", NULL);
    weir_channel_write(rig.channel, weir_file_range_msg(range), NULL);
    rig_write(&rig, "b", "b");
    weir_channel_flush(rig.channel);
    diary_clear(&rig.diary);
    assert_int_equal(weir__outbound_gather(rig.channel, vectors, 4, &bytes), 1);
    weir__outbound_advance(rig.channel, 1);
    assert_int_equal(weir__outbound_gather(rig.channel, vectors, 4, &bytes), 0);
    assert_ptr_equal(weir__outbound_current(rig.channel), weir_file_range_msg(range));
    weir__outbound_advance(rig.channel, 4);
    assert_int_equal(weir_file_range_remaining(range), 6);
    weir__outbound_advance(rig.channel, 7);
    assert_diary(&rig.diary, "b=ok");
    rig_close(&rig);
}

TEST(outbound, gives_whole_messages_to_who_takes_them)
{
    struct rig rig;
    weir_msg *msg;

    rig_open_started(&rig, &(struct wire_options){.silent = true}, NULL);
    rig.wire->room = 0;
    assert_null(weir__outbound_take(rig.channel));
    rig_write(&rig, "a", "1");
    rig_write(&rig, "b", "2");
    weir_channel_flush(rig.channel);
    diary_clear(&rig.diary);
    msg = weir__outbound_take(rig.channel);
    assert_memory_equal(weir_buf_bytes(weir_buf_of(msg)), "a", 1);
    assert_diary(&rig.diary, "");
    weir__outbound_drop(rig.channel, 0, NULL);
    assert_diary(&rig.diary, "1=ok");
    weir__outbound_drop(rig.channel, -EMSGSIZE, NULL);
    assert_diary(&rig.diary, "2=EMSGSIZE");
    weir__outbound_drop(rig.channel, 0, NULL);
    weir_msg_release(msg);
    rig_close(&rig);
}

/* ---- cancelling and failing ---- */

/* D 64, D 92 */
TEST(outbound, leaves_cancelled_writes_out)
{
    static const char *const texts[] = {"a", "b", "c", "d", "e"};
    struct rig rig;
    weir_promise *promises[5];

    rig_open_started(&rig, &(struct wire_options){.silent = true}, NULL);
    for (int i = 0; i < 5; i++) {
        promises[i] = rig_promise(&rig, texts[i]);
        weir_channel_write(rig.channel, text_msg(texts[i]), promises[i]);
    }
    diary_clear(&rig.diary);
    assert_int_equal(weir_promise_cancel(promises[0]), 0);
    assert_int_equal(weir_promise_cancel(promises[3]), 0);
    weir_channel_flush(rig.channel);
    assert_sent(&rig, "bce");
    assert_diary(&rig.diary, "a=WEIR_ECANCELED d=WEIR_ECANCELED a.flush b=ok c=ok e=ok");
    assert_int_equal(weir_channel_pending_bytes(rig.channel), 0);
    for (int i = 0; i < 5; i++)
        weir_promise_release(promises[i]);
    rig_close(&rig);
}

TEST(outbound, cannot_be_cancelled_any_more_once_it_is_flushed)
{
    struct rig rig;
    weir_promise *promise;

    rig_open_started(&rig, NULL, NULL);
    rig.wire->room = 0;
    promise = rig_promise(&rig, "x");
    weir_channel_write_and_flush(rig.channel, text_msg("x"), promise);
    assert_int_equal(weir_promise_cancel(promise), -EBUSY);
    rig_make_room(&rig, -1);
    assert_int_equal(weir_promise_result(promise), 0);
    weir_promise_release(promise);
    rig_close(&rig);
}

/* D 51 */
TEST(outbound, does_nothing_for_a_promise_that_was_cancelled_before)
{
    struct rig rig;
    weir_promise *promise;
    weir_msg *msg;

    rig_open_started(&rig, NULL, NULL);
    promise = rig_promise(&rig, "x");
    msg = weir_msg_retain(text_msg("x"));
    assert_int_equal(weir_promise_cancel(promise), 0);
    diary_clear(&rig.diary);
    weir_channel_write(rig.channel, msg, promise);
    weir_channel_close(rig.channel, promise);
    assert_diary(&rig.diary, "");
    assert_int_equal(weir_msg_refs(msg), 1);
    assert_true(weir_channel_is_open(rig.channel));
    weir_msg_release(msg);
    weir_promise_release(promise);
    rig_close(&rig);
}

/* D 52 */
TEST(outbound, does_nothing_for_a_promise_that_is_complete_and_says_so)
{
    struct rig rig;
    weir_promise *promise;

    log_capture_start();
    rig_open_started(&rig, NULL, NULL);
    promise = rig_promise(&rig, "x");
    assert_int_equal(weir_promise_succeed(promise, NULL), 0);
    diary_clear(&rig.diary);
    weir_channel_write(rig.channel, text_msg("x"), promise);
    assert_diary(&rig.diary, "");
    assert_int_equal(log_capture_count(WEIR_LOG_ERROR), 1);
    weir_channel_close(rig.channel, promise);
    assert_int_equal(log_capture_count(WEIR_LOG_ERROR), 2);
    assert_true(weir_channel_is_open(rig.channel));
    weir_promise_release(promise);
    rig_close(&rig);
}

/* D 50 */
TEST(outbound, fires_the_first_failure_that_nobody_waits_for)
{
    struct rig rig;

    rig_open_started(&rig, &(struct wire_options){.admit_err = -EINVAL},
                     WEIR_CHANNEL_OPTIONS(.keep_open_on_error = true));
    log_capture_start();
    rig_write(&rig, "1", NULL);
    rig_write(&rig, "2", NULL);
    rig_write(&rig, "3", "3");
    assert_diary(&rig.diary, "a.write(1) a.error(EINVAL) a.write(2) a.write(3) 3=EINVAL");
    rig_close(&rig);
}

TEST(outbound, is_silent_about_failures_because_it_closes)
{
    struct rig rig;

    rig_open_started(&rig, NULL, NULL);
    rig_write(&rig, "1", NULL);
    weir_channel_abort(rig.channel, NULL);
    rig_write(&rig, "2", NULL);
    assert_int_equal(diary_count(&rig.diary, "a.error"), 0);
    rig_close(&rig);
}

/* D 53 */
TEST(outbound, releases_what_it_refuses_or_has_no_memory_for)
{
    struct rig rig;
    weir_msg *msg = weir_msg_retain(text_msg("x"));

    rig_open_started(&rig, NULL, NULL);
    log_capture_start();
    test_memory_fail_at(1);
    weir_channel_write(rig.channel, msg, NULL);
    assert_true(test_memory_failed());
    test_memory_fail_at(0);
    assert_int_equal(weir_msg_refs(msg), 1);
    assert_int_equal(weir_channel_pending_bytes(rig.channel), 0);
    assert_diary(&rig.diary, "a.write(x) a.error(ENOMEM) a.close FIN");
    weir_msg_release(msg);
    rig_close(&rig);
}

/* ---- what happens inside ---- */

struct echo {
    struct rig *rig;
    int left;
};

static void write_again(weir_promise *promise, void *user_data)
{
    struct echo *echo = user_data;

    (void)promise;
    if (echo->left-- == 0) {
        weir_channel_close(echo->rig->channel, NULL);
        return;
    }
    assert_int_equal(weir_promise_create(echo->rig->stepper.executor, &promise), 0);
    assert_int_equal(weir_promise_add_listener(promise, write_again, echo), 0);
    weir_channel_write_and_flush(echo->rig->channel, text_msg("x"), promise);
    weir_promise_release(promise);
}

/* D 67 */
TEST(outbound, may_be_written_flushed_and_closed_from_within)
{
    struct rig rig;
    struct echo echo = {&rig, 20};
    weir_promise *promise;

    rig_open_started(&rig, &(struct wire_options){.silent = true, .no_linger = true}, NULL);
    assert_int_equal(weir_promise_create(rig.stepper.executor, &promise), 0);
    assert_int_equal(weir_promise_add_listener(promise, write_again, &echo), 0);
    weir_channel_write_and_flush(rig.channel, text_msg("0"), promise);
    weir_promise_release(promise);
    rig_run(&rig);
    assert_sent(&rig, "0xxxxxxxxxxxxxxxxxxxx");
    assert_false(weir_channel_is_active(rig.channel));
    assert_int_equal(diary_count(&rig.diary, "a.write"), 21);
    assert_int_equal(diary_count(&rig.diary, "a.close"), 1);
    rig_close(&rig);
}

static void flush_in_writability(weir_ctx *ctx)
{
    if (!weir_ctx_is_writable(ctx))
        weir_flush(ctx);
    weir_fire_writability(ctx);
}

/* D 67 */
TEST(outbound, may_be_flushed_when_it_becomes_unwritable)
{
    static const weir_handler flusher = {.name = "flusher", .writability = flush_in_writability};
    struct rig rig;

    rig_open_started(&rig, &(struct wire_options){.silent = true},
                     WEIR_CHANNEL_OPTIONS(.low_mark = 10, .high_mark = 2 * COST));
    assert_int_equal(weir_pipeline_add_last(rig.pipeline, &flusher, NULL), 0);
    rig_write(&rig, "a", "1");
    rig_write(&rig, "b", "2");
    assert_diary(&rig.diary, "a.write(a) a.write(b) a.unwritable a.flush 1=ok 2=ok a.writable");
    assert_sent(&rig, "ab");
    rig_close(&rig);
}

static void write_late(weir_promise *promise, void *user_data)
{
    (void)promise;
    rig_write(user_data, "late", "late");
    weir_channel_close(((struct rig *)user_data)->channel, NULL);
}

/* D 68 */
TEST(outbound, fails_everything_once_also_what_is_written_meanwhile)
{
    struct rig rig;
    weir_promise *promise;

    rig_open_started(&rig, &(struct wire_options){.silent = true}, NULL);
    promise = rig_promise(&rig, "1");
    assert_int_equal(weir_promise_add_listener(promise, write_late, &rig), 0);
    weir_channel_write(rig.channel, text_msg("1"), promise);
    weir_promise_release(promise);
    rig_write(&rig, "2", "2");
    rig_write(&rig, "3", "3");
    diary_clear(&rig.diary);
    weir_channel_abort(rig.channel, NULL);
    assert_diary(&rig.diary, "1=WEIR_ECLOSED a.write(late) late=WEIR_ECLOSED a.close "
                             "2=WEIR_ECLOSED 3=WEIR_ECLOSED");
    assert_int_equal(weir_channel_pending_bytes(rig.channel), 0);
    rig_close(&rig);
}

/* ---- flushing ---- */

TEST(outbound, goes_on_in_a_task_when_the_budget_is_used_up)
{
    struct rig rig;

    rig_open_started(&rig, NULL, NULL);
    rig.wire->budget = 1;
    rig.wire->vectors_max = 1;
    rig_write(&rig, "a", NULL);
    rig_write(&rig, "b", NULL);
    rig_write(&rig, "c", "c");
    diary_clear(&rig.diary);
    weir_channel_flush(rig.channel);
    assert_sent(&rig, "a");
    rig_run(&rig);
    assert_sent(&rig, "bc");
    assert_diary(&rig.diary, "a.flush FLUSH FLUSH FLUSH c=ok");
    rig_close(&rig);
}

TEST(outbound, only_marks_while_the_wire_is_full)
{
    struct rig rig;

    rig_open_started(&rig, NULL, NULL);
    rig.wire->room = 1;
    rig_write(&rig, "ab", NULL);
    diary_clear(&rig.diary);
    weir_channel_flush(rig.channel);
    rig_write(&rig, "cd", "cd");
    weir_channel_flush(rig.channel);
    assert_diary(&rig.diary, "a.flush FLUSH a.write(cd) a.flush");
    rig_make_room(&rig, -1);
    assert_diary(&rig.diary, "FLUSH cd=ok");
    assert_sent(&rig, "abcd");
    rig_close(&rig);
}

TEST(outbound, fails_and_closes_when_sending_fails)
{
    struct rig rig;

    rig_open_started(&rig, NULL, NULL);
    rig.wire->flush_err = -EPIPE;
    rig_write(&rig, "a", "a");
    rig_write(&rig, "b", NULL);
    diary_clear(&rig.diary);
    weir_channel_flush(rig.channel);
    assert_diary(&rig.diary, "a.flush FLUSH a=EPIPE a.error(EPIPE) a.close FIN CLOSE");
    rig_close(&rig);
}

/* D 90 */
TEST(outbound, is_shut_when_sending_fails_and_the_channel_stays_open)
{
    struct rig rig;

    rig_open_started(&rig, NULL, WEIR_CHANNEL_OPTIONS(.keep_open_on_error = true));
    rig.wire->flush_err = -EPIPE;
    rig_write(&rig, "a", "a");
    diary_clear(&rig.diary);
    weir_channel_flush(rig.channel);
    assert_diary(&rig.diary, "a.flush FLUSH a=EPIPE FIN a.event(output-closed)");
    assert_true(weir_channel_is_open(rig.channel));
    rig_write(&rig, "b", "b");
    assert_diary(&rig.diary, "a.write(b) b=WEIR_ECLOSED");
    (void)rig_receive(&rig, "x");
    assert_diary(&rig.diary, "a.read(x)");
    rig_close(&rig);
}

/* D 87 */
TEST(outbound, is_shut_after_what_was_written_has_gone_out)
{
    struct rig rig;
    weir_promise *first, *second;

    rig_open_started(&rig, NULL, NULL);
    rig.wire->room = 1;
    rig_write(&rig, "ab", "ab");
    weir_channel_flush(rig.channel);
    rig_write(&rig, "c", "c");
    diary_clear(&rig.diary);
    first = rig_promise(&rig, "first");
    second = rig_promise(&rig, "second");
    weir_channel_shutdown_output(rig.channel, first);
    rig_write(&rig, "d", "d");
    assert_diary(&rig.diary, "a.shutdown_output a.write(d) d=WEIR_ECLOSED");
    rig_make_room(&rig, -1);
    assert_diary(&rig.diary, "FLUSH ab=ok c=ok FIN first=ok a.event(output-closed)");
    assert_sent(&rig, "abc");
    weir_channel_shutdown_output(rig.channel, second);
    assert_diary(&rig.diary, "a.shutdown_output second=ok");
    assert_true(weir_channel_is_active(rig.channel));
    (void)rig_receive(&rig, "x");
    assert_diary(&rig.diary, "a.read(x)");
    weir_promise_release(first);
    weir_promise_release(second);
    rig_close(&rig);
}

/* Nobody has flushed: the half closure does. */
TEST(outbound, is_flushed_when_it_is_shut)
{
    struct rig rig;

    rig_open_started(&rig, NULL, NULL);
    rig_write(&rig, "a", "a");
    diary_clear(&rig.diary);
    weir_channel_shutdown_output(rig.channel, NULL);
    assert_diary(&rig.diary, "a.shutdown_output FLUSH a=ok FIN a.event(output-closed)");
    assert_sent(&rig, "a");
    rig_close(&rig);
}

static void keep_back(weir_ctx *ctx, weir_promise *done)
{
    weir_ctx_report(ctx, done, -EPERM, NULL);
}

/* From the tail on, or from where a handler asks: each may keep it back. */
TEST(outbound, is_shut_by_way_of_the_handlers)
{
    static const weir_handler keeper = {.name = "keeper", .shutdown_output = keep_back};
    struct rig rig;
    weir_promise *done;

    rig_open_started(&rig, NULL, NULL);
    assert_int_equal(weir_pipeline_add_last(rig.pipeline, &keeper, NULL), 0);
    rig_add(&rig, "z");
    diary_clear(&rig.diary);
    done = rig_promise(&rig, "shut");
    weir_channel_shutdown_output(rig.channel, done);
    assert_diary(&rig.diary, "z.shutdown_output shut=EPERM");
    weir_promise_release(done);
    done = rig_promise(&rig, "shut");
    weir_shutdown_output(weir_pipeline_find(rig.pipeline, "keeper"), done);
    assert_diary(&rig.diary, "a.shutdown_output FIN shut=ok a.event(output-closed) "
                             "z.event(output-closed)");
    weir_promise_release(done);
    rig_close(&rig);
}

TEST(outbound, is_not_shut_if_that_was_cancelled_before)
{
    struct rig rig;
    weir_promise *done;

    rig_open_started(&rig, NULL, NULL);
    done = rig_promise(&rig, "shut");
    assert_int_equal(weir_promise_cancel(done), 0);
    diary_clear(&rig.diary);
    weir_channel_shutdown_output(rig.channel, done);
    assert_diary(&rig.diary, "");
    weir_promise_release(done);
    rig_close(&rig);
}

/* D 88 */
TEST(outbound, cannot_be_shut_after_a_close)
{
    struct rig rig;
    weir_promise *output, *input;

    rig_open_started(&rig, NULL, NULL);
    weir_channel_abort(rig.channel, NULL);
    rig_run(&rig);
    output = rig_promise(&rig, "output");
    input = rig_promise(&rig, "input");
    weir_channel_shutdown_output(rig.channel, output);
    weir_channel_shutdown_input(rig.channel, input);
    assert_int_equal(weir_promise_result(output), WEIR_ECLOSED);
    assert_int_equal(weir_promise_result(input), WEIR_ECLOSED);
    weir_promise_release(output);
    weir_promise_release(input);
    rig_close(&rig);
}

static void let_go_of_all(weir_ctx *ctx)
{
    weir_ctx_add_pending_bytes(ctx, -1000);
}

/* A handler that empties its own queue when it goes says so, and is not counted twice. */
TEST(outbound, counts_what_a_handler_gives_back_as_it_goes_once)
{
    static weir_handler holder;
    struct rig rig;
    weir_ctx *ctx;

    holder = spy;
    holder.removed = let_go_of_all;
    rig_open_started(&rig, NULL, NULL);
    assert_int_equal(weir_pipeline_add_last_as(rig.pipeline, "h", &holder, SPY(&rig.diary, "h")),
                     0);
    ctx = weir_pipeline_find(rig.pipeline, "h");
    weir_ctx_add_pending_bytes(ctx, 1000);
    assert_int_equal(weir_channel_pending_bytes(rig.channel), 1000);
    weir_ctx_remove(ctx);
    assert_int_equal(weir_channel_pending_bytes(rig.channel), 0);
    rig_close(&rig);
}

TEST(outbound, does_not_count_below_what_a_handler_holds)
{
    struct rig rig;
    weir_ctx *a;

    rig_open_started(&rig, NULL, NULL);
    a = weir_pipeline_find(rig.pipeline, "a");
    weir_ctx_add_pending_bytes(a, 10);
    weir_ctx_add_pending_bytes(a, -30);
    assert_int_equal(weir_channel_pending_bytes(rig.channel), 0);
    rig_close(&rig);
}

TEST(outbound, that_fails_tells_who_waited_for_its_end)
{
    struct rig rig;
    weir_promise *shut;

    rig_open_started(&rig, NULL, WEIR_CHANNEL_OPTIONS(.keep_open_on_error = true));
    rig.wire->room = 1;
    rig_write(&rig, "ab", "ab");
    weir_channel_flush(rig.channel);
    shut = rig_promise(&rig, "shut");
    weir_channel_shutdown_output(rig.channel, shut);
    rig.wire->flush_err = -EPIPE;
    diary_clear(&rig.diary);
    rig_make_room(&rig, -1);
    assert_int_equal(diary_count(&rig.diary, "ab=EPIPE"), 1);
    assert_int_equal(diary_count(&rig.diary, "shut=EPIPE"), 1);
    weir_promise_release(shut);
    rig_close(&rig);
}

/* The least high mark has a low one that can be gone below. */
TEST(outbound, becomes_writable_again_with_the_smallest_marks)
{
    struct rig rig;

    rig_open_started(&rig, NULL, WEIR_CHANNEL_OPTIONS(.high_mark = 1));
    rig_write(&rig, "a", NULL);
    assert_false(weir_channel_is_writable(rig.channel));
    weir_channel_flush(rig.channel);
    assert_true(weir_channel_is_writable(rig.channel));
    rig_close(&rig);
}

/* The peer has been told: that a close came meanwhile does not matter. */
TEST(outbound, that_a_close_shuts_is_what_was_waited_for)
{
    struct rig rig;
    weir_promise *shut;

    rig_open_started(&rig, NULL, NULL);
    rig.wire->room = 1;
    rig_write(&rig, "ab", NULL);
    weir_channel_flush(rig.channel);
    shut = rig_promise(&rig, "shut");
    weir_channel_shutdown_output(rig.channel, shut);
    weir_channel_close(rig.channel, NULL);
    diary_clear(&rig.diary);
    rig_make_room(&rig, -1);
    assert_diary(&rig.diary, "FLUSH FIN shut=ok");
    weir_promise_release(shut);
    rig_close(&rig);
}

/* Nor does it if the peer has ended its stream before, and need not be waited for. */
TEST(outbound, that_a_close_sends_to_a_peer_that_has_ended_is_what_was_waited_for)
{
    struct rig rig;
    weir_promise *shut;

    rig_open_started(&rig, NULL, WEIR_CHANNEL_OPTIONS(.half_closure = true));
    rig.wire->room = 1;
    rig_write(&rig, "ab", NULL);
    shut = rig_promise(&rig, "shut");
    weir_channel_shutdown_output(rig.channel, shut);
    rig_end_input(&rig);
    weir_channel_close(rig.channel, NULL);
    diary_clear(&rig.diary);
    rig_make_room(&rig, -1);
    assert_int_equal(diary_count(&rig.diary, "FLUSH FIN shut=ok CLOSE"), 1);
    weir_promise_release(shut);
    rig_close(&rig);
}

/* A reset tells the peer nothing of the kind. */
TEST(outbound, that_is_reset_is_not_what_was_waited_for)
{
    struct rig rig;
    weir_promise *shut;

    rig_open_started(&rig, NULL, WEIR_CHANNEL_OPTIONS(.reset_on_close = true));
    rig.wire->room = 1;
    rig_write(&rig, "ab", NULL);
    shut = rig_promise(&rig, "shut");
    weir_channel_shutdown_output(rig.channel, shut);
    weir_channel_close(rig.channel, NULL);
    rig_make_room(&rig, -1);
    assert_int_equal(diary_count(&rig.diary, "shut=WEIR_ECLOSED"), 1);
    weir_promise_release(shut);
    rig_close(&rig);
}
