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

static void write_sized(struct test_channel *tc, size_t bytes)
{
    weir_channel_write(tc->channel, sized_msg(bytes - COST), NULL);
}

static void tc_open_marked(struct test_channel *tc, int64_t low, int64_t high)
{
    tc_open_started(tc, &(struct wire_options){.silent = true},
                    WEIR_CHANNEL_OPTIONS(.low_mark = low, .high_mark = high));
}

/* The events alone, without what was written. */
static void assert_writability(struct test_channel *tc, unsigned unwritable, unsigned writable)
{
    assert_int_equal(event_log_count(&tc->events, "a.unwritable"), unwritable);
    assert_int_equal(event_log_count(&tc->events, "a.writable"), writable);
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
    struct test_channel tc;
    int64_t before, held;

    tc_open_marked(&tc, 0, 0);
    tc.wire->room = 0;
    weir_channel_write_and_flush(tc.channel, text_msg("the first"), NULL);
    tc_run(&tc);
    before = memory_in_use();
    while (weir_channel_is_writable(tc.channel))
        weir_channel_write_and_flush(tc.channel, make(), NULL);
    held = memory_in_use() - before;
    assert_in_range(held, 32768, 2 * 65536);
    tc_make_room(&tc, -1);
    assert_int_equal(weir_channel_pending_bytes(tc.channel), 0);
    tc_close(&tc);
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
    struct test_channel tc;
    weir_channel_stats before, after;

    tc_open_marked(&tc, 0, 0);
    weir_channel_read_stats(&before);
    weir_channel_write_and_flush(tc.channel, make_roomy(), NULL);
    weir_channel_write_and_flush(tc.channel, make_frame(), NULL);
    weir_channel_read_stats(&after);
    assert_int_equal(after.bytes_sent - before.bytes_sent, 1 + 5);
    tc_close(&tc);
}

/* ---- the usual flush: a single buffer ---- */

/* A channel with these messages flushed, of which the peer takes nothing. */
static void tc_open_full(struct test_channel *tc, make_fn *const *make, size_t count)
{
    tc_open_marked(tc, 1, 2);
    tc->wire->room = 0;
    for (size_t i = 0; i < count; i++)
        weir_channel_write(tc->channel, make[i](), NULL);
    weir_channel_flush(tc->channel);
}

/* The same bytes, and only where a single buffer is all there is. */
static void assert_gathered_alike(make_fn *const *make, size_t count, bool is_usual)
{
    struct iovec usual = {0}, vectors[8];
    struct test_channel tc;
    size_t bytes;

    tc_open_full(&tc, make, count);
    assert_int_equal(weir__outbound_fast_gather(&tc.channel->outbound, &usual), is_usual);
    if (is_usual) {
        assert_int_equal(weir__outbound_gather(tc.channel, vectors, 8, &bytes), 1);
        assert_ptr_equal(vectors[0].iov_base, usual.iov_base);
        assert_int_equal(vectors[0].iov_len, usual.iov_len);
        assert_int_equal(bytes, usual.iov_len);
    }
    tc_close(&tc);
}

TEST(outbound, gathers_a_single_buffer_alike_by_both_ways)
{
    make_fn *const small[] = {make_small}, *const roomy[] = {make_roomy};
    make_fn *const view[] = {make_view}, *const frame[] = {make_frame};
    make_fn *const two[] = {make_small, make_view};

    assert_gathered_alike(small, 1, true);
    assert_gathered_alike(roomy, 1, true);
    assert_gathered_alike(view, 1, true);
    assert_gathered_alike(frame, 1, false);
    assert_gathered_alike(two, 2, false);
}

static void advance_over_two(struct test_channel *tc, void (*advance)(weir_channel *, size_t))
{
    tc_open_marked(tc, 1, 2);
    tc->wire->room = 0;
    tc_write(tc, "first", "p");
    tc_write(tc, "second", "q");
    weir_channel_flush(tc->channel);
    advance(tc->channel, 5);
    tc_run(tc);
}

TEST(outbound, completes_the_first_message_alike_by_both_ways)
{
    struct test_channel fast, general;

    advance_over_two(&fast, weir__outbound_fast_advance);
    advance_over_two(&general, weir__outbound_advance);
    assert_int_equal(event_log_count(&fast.events, "p=ok"), 1);
    assert_int_equal(event_log_count(&fast.events, "q=ok"), 0);
    assert_string_equal(general.events.text, fast.events.text);
    assert_int_equal(weir_channel_pending_bytes(general.channel),
                     weir_channel_pending_bytes(fast.channel));
    tc_close(&fast);
    tc_close(&general);
}

/* A copy is what the peer gets, also of what was read in part. */
TEST(outbound, sends_the_same_bytes_of_what_it_has_copied)
{
    weir_composite *composite;
    struct test_channel tc;

    tc_open_marked(&tc, 0, 0);
    tc.wire->room = 0;
    weir_channel_write_and_flush(tc.channel, text_msg("first "), NULL);
    assert_int_equal(weir_composite_create(0, &composite), 0);
    assert_int_equal(weir_composite_add(composite, text_msg("not this: ")), 0);
    assert_int_equal(weir_composite_add(composite, text_msg("second ")), 0);
    assert_int_equal(weir_composite_add(composite, text_msg("third")), 0);
    assert_int_equal(weir_composite_skip(composite, 10), 0);
    weir_channel_write_and_flush(tc.channel, weir_composite_msg(composite), NULL);
    tc_make_room(&tc, -1);
    assert_sent(&tc, "first second third");
    tc_close(&tc);
}

/* ---- the marks themselves ---- */

TEST(outbound, is_unwritable_above_the_high_mark_and_writable_below_the_low_one)
{
    struct test_channel tc;

    tc_open_marked(&tc, 1000, 2000);
    tc.wire->room = 0;
    write_sized(&tc, 1001);
    assert_writability(&tc, 0, 0); /* above the low mark alone */
    write_sized(&tc, 999);
    assert_writability(&tc, 0, 0); /* at the high mark */
    assert_int_equal(weir_channel_pending_bytes(tc.channel), 2000);
    assert_int_equal(weir_channel_bytes_before_unwritable(tc.channel), 1);
    write_sized(&tc, 250);
    assert_writability(&tc, 1, 0);
    assert_int_equal(weir_channel_bytes_before_unwritable(tc.channel), 0);
    assert_int_equal(weir_channel_bytes_before_writable(tc.channel), 1251);
    write_sized(&tc, 250);
    assert_writability(&tc, 1, 0);

    weir_channel_flush(tc.channel);
    tc_make_room(&tc, 1001 - COST);
    assert_writability(&tc, 1, 0); /* 1499 are left */
    tc_make_room(&tc, 999 - COST);
    assert_writability(&tc, 1, 1);
    assert_int_equal(weir_channel_pending_bytes(tc.channel), 500);
    tc_close(&tc);
}

TEST(outbound, is_not_writable_again_at_the_low_mark)
{
    struct test_channel tc;

    tc_open_marked(&tc, 1000, 2000);
    tc.wire->room = 0;
    write_sized(&tc, 1001);
    write_sized(&tc, 1000);
    weir_channel_flush(tc.channel);
    tc_make_room(&tc, 1001 - COST);
    assert_int_equal(weir_channel_pending_bytes(tc.channel), 1000);
    assert_writability(&tc, 1, 0);
    tc_make_room(&tc, -1);
    assert_writability(&tc, 1, 1);
    tc_close(&tc);
}

TEST(outbound, has_an_event_for_the_first_and_the_last_reason_of_the_users)
{
    struct test_channel tc;

    tc_open_marked(&tc, 1000, 2000);
    assert_int_equal(weir_channel_set_user_writable(tc.channel, 1, false), 0);
    assert_int_equal(weir_channel_set_user_writable(tc.channel, 31, false), 0);
    assert_false(weir_channel_is_writable(tc.channel));
    assert_writability(&tc, 0, 0); /* later */
    tc_run(&tc);
    assert_writability(&tc, 1, 0);
    assert_int_equal(weir_channel_set_user_writable(tc.channel, 1, true), 0);
    tc_run(&tc);
    assert_writability(&tc, 1, 0);
    assert_int_equal(weir_channel_set_user_writable(tc.channel, 31, true), 0);
    tc_run(&tc);
    assert_writability(&tc, 1, 1);
    assert_int_equal(weir_channel_set_user_writable(tc.channel, 0, true), -EINVAL);
    assert_int_equal(weir_channel_set_user_writable(tc.channel, 32, true), -EINVAL);
    tc_close(&tc);
}

TEST(outbound, combines_marks_and_reasons)
{
    struct test_channel tc;

    tc_open_marked(&tc, 1000, 2000);
    tc.wire->room = 0;
    write_sized(&tc, 2001);
    assert_writability(&tc, 1, 0);
    assert_int_equal(weir_channel_set_user_writable(tc.channel, 5, false), 0);
    weir_channel_flush(tc.channel);
    tc_make_room(&tc, -1);
    tc_run(&tc);
    assert_writability(&tc, 1, 0);
    assert_int_equal(weir_channel_set_user_writable(tc.channel, 5, true), 0);
    tc_run(&tc);
    assert_writability(&tc, 1, 1);
    tc_close(&tc);
}

TEST(outbound, counts_what_handlers_hold_back)
{
    struct test_channel tc;
    weir_ctx *a;

    tc_open_marked(&tc, 1000, 2000);
    a = weir_pipeline_find(tc.pipeline, "a");
    weir_ctx_add_pending_bytes(a, 1500);
    weir_ctx_add_pending_bytes(a, 501);
    assert_writability(&tc, 1, 0);
    weir_ctx_add_pending_bytes(a, -501);
    assert_writability(&tc, 1, 0);
    assert_int_equal(weir_channel_pending_bytes(tc.channel), 1500);
    tc_add(&tc, "b");
    weir_ctx_remove(a); /* what is left goes with it */
    assert_int_equal(weir_channel_pending_bytes(tc.channel), 0);
    assert_true(weir_channel_is_writable(tc.channel));
    tc_close(&tc);
}

TEST(outbound, refuses_writes_beyond_its_cap)
{
    struct test_channel tc;

    tc_open_started(&tc, NULL, WEIR_CHANNEL_OPTIONS(.write_cap = 2 * COST + 3));
    tc_write(&tc, "ab", "first");
    tc_write(&tc, "cd", "second");
    assert_events(&tc.events, "a.write(ab) a.write(cd) second=WEIR_EFULL");
    tc_write(&tc, "c", "third");
    weir_channel_flush(tc.channel);
    assert_sent(&tc, "abc");
    tc_close(&tc);
}

static void write_another(weir_ctx *ctx, weir_msg *msg, weir_promise *done)
{
    weir_write(ctx, msg, NULL);
    weir_write(ctx, sized_msg(10000), done);
}

/* A message that a handler has held back passes the cap, and nothing else with it. */
TEST(outbound, refuses_what_is_added_to_a_write_that_its_cap_has_admitted)
{
    static const weir_handler adder = {.name = "adder", .write = write_another};
    struct test_channel tc;
    weir_promise *done;
    weir_ctx *a;

    tc_open_started(&tc, &(struct wire_options){.silent = true},
                    WEIR_CHANNEL_OPTIONS(.write_cap = 4 * COST + 500));
    tc.channel->flags &= ~(uint32_t)WEIR__CHECKS_BUFFERS; /* as with TCP */
    for (int i = 0; i < 4; i++)
        tc_write(&tc, "x", NULL);
    weir_channel_flush(tc.channel); /* leaves entries to be used again */
    assert_int_equal(weir_pipeline_add_first(tc.pipeline, &adder, NULL), 0);
    a = weir_pipeline_find(tc.pipeline, "a");
    weir_ctx_add_pending_bytes(a, 10);
    done = tc_promise(&tc, "done");
    weir_write_pending(a, text_msg("x"), done, 10);
    assert_int_equal(weir_promise_result(done), WEIR_EFULL);
    assert_int_equal(weir_channel_pending_bytes(tc.channel), COST + 1);
    weir_promise_release(done);
    tc_close(&tc);
}

/* What handlers write when there is room again would follow a gap. */
TEST(outbound, does_not_become_writable_when_it_is_aborted_for_a_loss)
{
    struct test_channel tc;

    tc_open_started(&tc, NULL, NULL);
    assert_int_equal(weir_channel_set_user_writable(tc.channel, 1, false), 0);
    tc_run(&tc);
    assert_writability(&tc, 1, 0);
    assert_int_equal(weir_channel_set_user_writable(tc.channel, 1, true), 0);
    weir__channel_defer(tc.channel, WEIR__DEFERRED_ABORT); /* as for want of memory */
    tc_run(&tc);
    assert_writability(&tc, 1, 0);
    assert_false(weir_channel_is_open(tc.channel));
    tc_close(&tc);
}

/* From another executor; the loop gets no more than two flags. */
TEST(outbound, of_a_handler_that_gives_up_is_reset_and_says_why)
{
    struct test_channel tc;
    weir_promise *closed;

    tc_open_started(&tc, NULL, NULL);
    tc.wire->room = 1;
    tc_write(&tc, "ab", NULL);
    closed = tc_promise(&tc, "closed");
    weir_channel_close(tc.channel, closed);
    event_log_clear(&tc.events);
    log_capture_start();
    weir__channel_defer_give_up(tc.channel, -ETIMEDOUT);
    tc_run(&tc);
    assert_int_equal(event_log_count(&tc.events, "RESET CLOSE closed=ETIMEDOUT"), 1);
    assert_string_equal(weir_promise_detail(closed), "a handler has queued data for too long");
    assert_log_contains("a handler has queued data for too long");
    weir_promise_release(closed);
    tc_close(&tc);
}

TEST(outbound, looks_at_the_marks_again_when_they_change)
{
    struct test_channel tc;

    tc_open_marked(&tc, 1000, 2000);
    write_sized(&tc, 1500);
    assert_int_equal(weir_channel_set_options(tc.channel, WEIR_CHANNEL_OPTIONS(.high_mark = 1400)),
                     0);
    assert_writability(&tc, 1, 0);
    assert_int_equal(weir_channel_set_options(
                         tc.channel, WEIR_CHANNEL_OPTIONS(.low_mark = 1501, .high_mark = 2000)),
                     0);
    assert_writability(&tc, 1, 1);
    tc_close(&tc);
}

/* ---- sending ---- */

TEST(outbound, sends_only_what_is_flushed_in_order)
{
    struct test_channel tc;

    tc_open_started(&tc, NULL, NULL);
    tc_write(&tc, "a", "1");
    tc_write(&tc, "b", "2");
    weir_channel_flush(tc.channel);
    tc_write(&tc, "c", "3");
    assert_events(&tc.events, "a.write(a) a.write(b) a.flush FLUSH 1=ok 2=ok a.write(c)");
    assert_sent(&tc, "ab");
    assert_null(weir__outbound_current(tc.channel));
    weir_channel_flush(tc.channel);
    assert_sent(&tc, "c");
    tc_close(&tc);
}

TEST(outbound, continues_after_a_partial_send)
{
    struct test_channel tc;

    tc_open_started(&tc, &(struct wire_options){.silent = true}, NULL);
    tc.wire->room = 0;
    tc_write(&tc, "hello ", "1");
    tc_write(&tc, "world", "2");
    weir_channel_flush(tc.channel);
    for (int i = 0; i < 11; i++)
        tc_make_room(&tc, 1);
    assert_sent(&tc, "hello world");
    assert_events(&tc.events, "a.write(hello ) a.write(world) a.flush 1=ok 2=ok");
    tc_close(&tc);
}

TEST(outbound, gathers_no_more_vectors_than_there_is_room_for)
{
    struct test_channel tc;
    struct iovec vectors[4];
    size_t bytes;

    tc_open_started(&tc, NULL, NULL);
    tc.wire->room = 0;
    for (int i = 0; i < 6; i++)
        tc_write(&tc, "ab", NULL);
    assert_int_equal(weir__outbound_gather(tc.channel, vectors, 4, &bytes), 0);
    weir_channel_flush(tc.channel);
    assert_int_equal(weir__outbound_gather(tc.channel, vectors, 4, &bytes), 4);
    assert_int_equal(bytes, 8);
    assert_int_equal(weir__outbound_gather(tc.channel, vectors, 1, &bytes), 1);
    assert_int_equal(bytes, 2);
    tc_close(&tc);
}

TEST(outbound, gathers_composites_and_stops_within_one)
{
    struct test_channel tc;
    struct iovec vectors[4];
    weir_composite *composite;
    size_t bytes;

    tc_open_started(&tc, NULL, NULL);
    tc.wire->room = 0;
    assert_int_equal(weir_composite_create(0, &composite), 0);
    assert_int_equal(weir_composite_add(composite, text_msg("bc")), 0);
    assert_int_equal(weir_composite_add(composite, text_msg("de")), 0);
    assert_int_equal(weir_composite_add(composite, text_msg("fg")), 0);
    tc_write(&tc, "a", NULL);
    weir_channel_write(tc.channel, weir_composite_msg(composite), NULL);
    tc_write(&tc, "h", NULL);
    weir_channel_flush(tc.channel);
    assert_int_equal(weir__outbound_gather(tc.channel, vectors, 3, &bytes), 3);
    assert_int_equal(bytes, 5);
    tc_make_room(&tc, 4);
    assert_sent(&tc, "abcd");
    tc_make_room(&tc, -1);
    assert_sent(&tc, "efgh");
    tc_close(&tc);
}

TEST(outbound, completes_empty_messages_without_sending)
{
    struct test_channel tc;

    tc_open_started(&tc, NULL, NULL);
    tc_write(&tc, "", "empty");
    weir_channel_flush(tc.channel);
    assert_events(&tc.events, "a.write() a.flush FLUSH empty=ok");
    tc_write(&tc, "a", NULL);
    tc_write(&tc, "", "between");
    tc_write(&tc, "b", NULL);
    weir_channel_flush(tc.channel);
    assert_sent(&tc, "ab");
    assert_int_equal(weir_channel_pending_bytes(tc.channel), 0);
    tc_close(&tc);
}

TEST(outbound, stops_gathering_at_what_does_not_consist_of_bytes)
{
    struct test_channel tc;
    struct iovec vectors[4];
    weir_file_range *range;
    size_t bytes;

    tc_open_started(&tc, NULL, NULL);
    tc.wire->room = 0;
    assert_int_equal(weir_file_range_create(0, 0, 10, 0, &range), 0);
    tc_write(&tc, "a", NULL);
    weir_channel_write(tc.channel, weir_file_range_msg(range), NULL);
    tc_write(&tc, "b", "b");
    weir_channel_flush(tc.channel);
    event_log_clear(&tc.events);
    assert_int_equal(weir__outbound_gather(tc.channel, vectors, 4, &bytes), 1);
    weir__outbound_advance(tc.channel, 1);
    assert_int_equal(weir__outbound_gather(tc.channel, vectors, 4, &bytes), 0);
    assert_ptr_equal(weir__outbound_current(tc.channel), weir_file_range_msg(range));
    weir__outbound_advance(tc.channel, 4);
    assert_int_equal(weir_file_range_remaining(range), 6);
    weir__outbound_advance(tc.channel, 7);
    assert_events(&tc.events, "b=ok");
    tc_close(&tc);
}

TEST(outbound, gives_whole_messages_to_transports_that_take_them)
{
    struct test_channel tc;
    weir_msg *msg;

    tc_open_started(&tc, &(struct wire_options){.silent = true}, NULL);
    tc.wire->room = 0;
    assert_null(weir__outbound_take(tc.channel));
    tc_write(&tc, "a", "1");
    tc_write(&tc, "b", "2");
    weir_channel_flush(tc.channel);
    event_log_clear(&tc.events);
    msg = weir__outbound_take(tc.channel);
    assert_memory_equal(weir_buf_bytes(weir_buf_of(msg)), "a", 1);
    assert_events(&tc.events, "");
    weir__outbound_complete(tc.channel, 0, NULL);
    assert_events(&tc.events, "1=ok");
    weir__outbound_complete(tc.channel, -EMSGSIZE, NULL);
    assert_events(&tc.events, "2=EMSGSIZE");
    weir__outbound_complete(tc.channel, 0, NULL);
    weir_msg_release(msg);
    tc_close(&tc);
}

/* For transports that send several messages in a call, as of datagrams. */
TEST(outbound, lets_its_transport_peek_at_what_is_flushed)
{
    weir_msg *msgs[8];
    struct test_channel tc;

    tc_open_started(&tc, NULL, NULL);
    tc.wire->room = 0;
    tc_write(&tc, "1", NULL);
    assert_int_equal(weir__outbound_peek(tc.channel, msgs, 8), 0);
    tc_write(&tc, "2", NULL);
    weir_channel_flush(tc.channel);
    tc_write(&tc, "3", NULL);
    assert_int_equal(weir__outbound_peek(tc.channel, msgs, 8), 2);
    assert_int_equal(weir__outbound_peek(tc.channel, msgs, 1), 1);
    weir_channel_flush(tc.channel);
    assert_int_equal(weir__outbound_peek(tc.channel, msgs, 8), 3);
    tc_make_room(&tc, -1);
    assert_sent(&tc, "123");
    tc_close(&tc);
}

/* ---- cancelling and failing ---- */

TEST(outbound, leaves_cancelled_writes_out)
{
    static const char *const texts[] = {"a", "b", "c", "d", "e"};
    struct test_channel tc;
    weir_promise *promises[5];

    tc_open_started(&tc, &(struct wire_options){.silent = true}, NULL);
    for (int i = 0; i < 5; i++) {
        promises[i] = tc_promise(&tc, texts[i]);
        weir_channel_write(tc.channel, text_msg(texts[i]), promises[i]);
    }
    event_log_clear(&tc.events);
    assert_int_equal(weir_promise_cancel(promises[0]), 0);
    assert_int_equal(weir_promise_cancel(promises[3]), 0);
    weir_channel_flush(tc.channel);
    assert_sent(&tc, "bce");
    assert_events(&tc.events, "a=WEIR_ECANCELED d=WEIR_ECANCELED a.flush b=ok c=ok e=ok");
    assert_int_equal(weir_channel_pending_bytes(tc.channel), 0);
    for (int i = 0; i < 5; i++)
        weir_promise_release(promises[i]);
    tc_close(&tc);
}

/* Bytes that are left out do not count any more, although nothing is sent that would show it. */
static void check_cancelled(int64_t flushed)
{
    struct test_channel tc;
    weir_promise *promise;

    tc_open_marked(&tc, 1000, 2000);
    tc.wire->room = 0;
    if (flushed > 0)
        write_sized(&tc, (size_t)flushed);
    weir_channel_flush(tc.channel); /* waits for room from here on */
    promise = tc_promise(&tc, "x");
    weir_channel_write(tc.channel, sized_msg(2500 - COST), promise);
    assert_writability(&tc, 1, 0);
    assert_int_equal(weir_promise_cancel(promise), 0);
    assert_writability(&tc, 1, 0); /* it is still in the queue */
    weir_channel_flush(tc.channel);
    assert_int_equal(weir_channel_pending_bytes(tc.channel), flushed);
    assert_writability(&tc, 1, flushed < 1000);
    weir_promise_release(promise);
    tc_close(&tc);
}

TEST(outbound, becomes_writable_again_without_cancelled_writes)
{
    check_cancelled(0);
    check_cancelled(999);
    check_cancelled(1000); /* not at the low mark */
}

TEST(outbound, cannot_be_cancelled_any_more_once_it_is_flushed)
{
    struct test_channel tc;
    weir_promise *promise;

    tc_open_started(&tc, NULL, NULL);
    tc.wire->room = 0;
    promise = tc_promise(&tc, "x");
    weir_channel_write_and_flush(tc.channel, text_msg("x"), promise);
    assert_int_equal(weir_promise_cancel(promise), -EBUSY);
    tc_make_room(&tc, -1);
    assert_int_equal(weir_promise_result(promise), 0);
    weir_promise_release(promise);
    tc_close(&tc);
}

TEST(outbound, does_nothing_for_a_promise_that_was_cancelled_before)
{
    struct test_channel tc;
    weir_promise *promise;
    weir_msg *msg;

    tc_open_started(&tc, NULL, NULL);
    promise = tc_promise(&tc, "x");
    msg = weir_msg_retain(text_msg("x"));
    assert_int_equal(weir_promise_cancel(promise), 0);
    event_log_clear(&tc.events);
    weir_channel_write(tc.channel, msg, promise);
    weir_channel_close(tc.channel, promise);
    assert_events(&tc.events, "");
    assert_int_equal(weir_msg_refs(msg), 1);
    assert_true(weir_channel_is_open(tc.channel));
    weir_msg_release(msg);
    weir_promise_release(promise);
    tc_close(&tc);
}

TEST(outbound, ignores_and_logs_a_completed_promise)
{
    struct test_channel tc;
    weir_promise *promise;

    log_capture_start();
    tc_open_started(&tc, NULL, NULL);
    promise = tc_promise(&tc, "x");
    assert_int_equal(weir_promise_succeed(promise, NULL), 0);
    event_log_clear(&tc.events);
    weir_channel_write(tc.channel, text_msg("x"), promise);
    assert_events(&tc.events, "");
    assert_int_equal(log_capture_count(WEIR_LOG_ERROR), 1);
    weir_channel_close(tc.channel, promise);
    assert_int_equal(log_capture_count(WEIR_LOG_ERROR), 2);
    assert_true(weir_channel_is_open(tc.channel));
    weir_promise_release(promise);
    tc_close(&tc);
}

TEST(outbound, fires_the_first_failure_without_a_promise)
{
    struct test_channel tc;

    tc_open_started(&tc, &(struct wire_options){.admit_err = -EINVAL},
                    WEIR_CHANNEL_OPTIONS(.keep_open_on_error = true));
    log_capture_start();
    tc_write(&tc, "1", NULL);
    tc_write(&tc, "2", NULL);
    tc_write(&tc, "3", "3");
    assert_events(&tc.events, "a.write(1) a.error(EINVAL) a.write(2) a.write(3) 3=EINVAL");
    tc_close(&tc);
}

TEST(outbound, is_silent_about_failures_because_it_closes)
{
    struct test_channel tc;

    tc_open_started(&tc, NULL, NULL);
    tc_write(&tc, "1", NULL);
    weir_channel_abort(tc.channel, NULL);
    tc_write(&tc, "2", NULL);
    assert_int_equal(event_log_count(&tc.events, "a.error"), 0);
    tc_close(&tc);
}

TEST(outbound, releases_what_it_refuses_or_has_no_memory_for)
{
    struct test_channel tc;
    weir_msg *msg = weir_msg_retain(text_msg("x"));

    tc_open_started(&tc, NULL, NULL);
    log_capture_start();
    test_memory_fail_at(1);
    weir_channel_write(tc.channel, msg, NULL);
    assert_true(test_memory_failed());
    test_memory_fail_at(0);
    assert_int_equal(weir_msg_refs(msg), 1);
    assert_int_equal(weir_channel_pending_bytes(tc.channel), 0);
    assert_events(&tc.events, "a.write(x) a.error(ENOMEM) a.close RESET CLOSE");
    weir_msg_release(msg);
    tc_close(&tc);
}

/* Writes until there is no entry left to be used again. Returns how the last write has ended. */
static int write_without_memory(struct test_channel *tc, bool has_promise)
{
    weir_promise *done = NULL;
    weir_msg *msg;
    bool has_failed;
    int err = 0;

    do {
        msg = text_msg("x");
        if (has_promise)
            assert_int_equal(weir_promise_create(tc->stepper.executor, &done), 0);
        test_memory_fail_at(1);
        weir_channel_write(tc->channel, msg, done);
        has_failed = test_memory_failed();
        test_memory_fail_at(0);
        if (has_failed && has_promise)
            err = weir_promise_result(done);
        weir_promise_release(done);
    } while (!has_failed);
    return err;
}

static void shut_on_error(weir_ctx *ctx, int err, const char *detail)
{
    (void)err;
    (void)detail;
    weir_shutdown_output(ctx, NULL);
}

static void close_on_error(weir_ctx *ctx, int err, const char *detail)
{
    (void)err;
    (void)detail;
    weir_write_and_flush(ctx, text_msg("sorry"), NULL);
    weir_close(ctx, NULL);
}

/* Nobody but the error handlers knows that the stream has a gap: the peer gets neither what follows
 * nor an end of the stream. */
TEST(outbound, resets_the_stream_if_it_has_lost_a_write)
{
    static const weir_handler handlers[] = {{.name = "shuts", .error = shut_on_error},
                                            {.name = "closes", .error = close_on_error}};
    struct test_channel tc, other;

    for (int i = 0; i < 2; i++) {
        tc_open_started(&tc, NULL, NULL);
        tc_open_started(&other, NULL, NULL);
        assert_int_equal(weir_pipeline_add_last(tc.pipeline, &handlers[i], NULL), 0);
        tc_write(&tc, "1", NULL);
        weir_channel_flush(tc.channel);
        (void)write_without_memory(&other, true); /* takes the entries */
        (void)write_without_memory(&tc, false);
        weir_channel_flush(tc.channel);
        assert_sent(&tc, "1");
        assert_int_equal(event_log_count(&tc.events, "FIN"), 0);
        assert_int_equal(event_log_count(&tc.events, "RESET"), 1);
        assert_false(weir_channel_is_open(tc.channel));
        tc_close(&other);
        tc_close(&tc);
    }
}

TEST(outbound, goes_on_after_a_lost_write_if_its_writer_knows)
{
    struct test_channel tc;

    tc_open_started(&tc, NULL, NULL);
    assert_int_equal(write_without_memory(&tc, true), -ENOMEM);
    weir_channel_flush(tc.channel);
    assert_int_equal(weir_channel_pending_bytes(tc.channel), 0);
    assert_true(weir_channel_is_open(tc.channel));
    tc_close(&tc);

    log_capture_start();
    tc_open_started(&tc, NULL, WEIR_CHANNEL_OPTIONS(.keep_open_on_error = true));
    (void)write_without_memory(&tc, false);
    tc_write(&tc, "2", NULL);
    weir_channel_flush(tc.channel);
    assert_int_equal(weir_channel_pending_bytes(tc.channel), 0);
    assert_true(weir_channel_is_open(tc.channel));
    tc_close(&tc);
}

/* ---- what happens inside ---- */

struct echo {
    struct test_channel *tc;
    int left;
};

static void write_again(weir_promise *promise, void *user_data)
{
    struct echo *echo = user_data;

    (void)promise;
    if (echo->left-- == 0) {
        weir_channel_close(echo->tc->channel, NULL);
        return;
    }
    assert_int_equal(weir_promise_create(echo->tc->stepper.executor, &promise), 0);
    assert_int_equal(weir_promise_add_listener(promise, write_again, echo), 0);
    weir_channel_write_and_flush(echo->tc->channel, text_msg("x"), promise);
    weir_promise_release(promise);
}

TEST(outbound, may_be_written_flushed_and_closed_from_within)
{
    struct test_channel tc;
    struct echo echo = {&tc, 20};
    weir_promise *promise;

    tc_open_started(&tc, &(struct wire_options){.silent = true, .no_linger = true}, NULL);
    assert_int_equal(weir_promise_create(tc.stepper.executor, &promise), 0);
    assert_int_equal(weir_promise_add_listener(promise, write_again, &echo), 0);
    weir_channel_write_and_flush(tc.channel, text_msg("0"), promise);
    weir_promise_release(promise);
    tc_run(&tc);
    assert_sent(&tc, "0xxxxxxxxxxxxxxxxxxxx");
    assert_false(weir_channel_is_active(tc.channel));
    assert_int_equal(event_log_count(&tc.events, "a.write"), 21);
    assert_int_equal(event_log_count(&tc.events, "a.close"), 1);
    tc_close(&tc);
}

static void flush_in_writability(weir_ctx *ctx)
{
    if (!weir_ctx_is_writable(ctx))
        weir_flush(ctx);
    weir_fire_writability(ctx);
}

TEST(outbound, may_be_flushed_when_it_becomes_unwritable)
{
    static const weir_handler flusher = {.name = "flusher", .writability = flush_in_writability};
    struct test_channel tc;

    tc_open_started(&tc, &(struct wire_options){.silent = true},
                    WEIR_CHANNEL_OPTIONS(.low_mark = 10, .high_mark = 2 * COST));
    assert_int_equal(weir_pipeline_add_last(tc.pipeline, &flusher, NULL), 0);
    tc_write(&tc, "a", "1");
    tc_write(&tc, "b", "2");
    assert_events(&tc.events, "a.write(a) a.write(b) a.unwritable a.flush 1=ok 2=ok a.writable");
    assert_sent(&tc, "ab");
    tc_close(&tc);
}

static void write_late(weir_promise *promise, void *user_data)
{
    (void)promise;
    tc_write(user_data, "late", "late");
    weir_channel_close(((struct test_channel *)user_data)->channel, NULL);
}

TEST(outbound, fails_everything_once_also_what_is_written_meanwhile)
{
    struct test_channel tc;
    weir_promise *promise;

    tc_open_started(&tc, &(struct wire_options){.silent = true}, NULL);
    promise = tc_promise(&tc, "1");
    assert_int_equal(weir_promise_add_listener(promise, write_late, &tc), 0);
    weir_channel_write(tc.channel, text_msg("1"), promise);
    weir_promise_release(promise);
    tc_write(&tc, "2", "2");
    tc_write(&tc, "3", "3");
    event_log_clear(&tc.events);
    weir_channel_abort(tc.channel, NULL);
    assert_events(&tc.events, "1=WEIR_ECLOSED a.write(late) late=WEIR_ECLOSED a.close "
                              "2=WEIR_ECLOSED 3=WEIR_ECLOSED");
    assert_int_equal(weir_channel_pending_bytes(tc.channel), 0);
    tc_close(&tc);
}

/* ---- flushing ---- */

TEST(outbound, continues_in_a_task_when_the_budget_is_used_up)
{
    struct test_channel tc;

    tc_open_started(&tc, NULL, NULL);
    tc.wire->budget = 1;
    tc.wire->vectors_max = 1;
    tc_write(&tc, "a", NULL);
    tc_write(&tc, "b", NULL);
    tc_write(&tc, "c", "c");
    event_log_clear(&tc.events);
    weir_channel_flush(tc.channel);
    assert_sent(&tc, "a");
    tc_run(&tc);
    assert_sent(&tc, "bc");
    assert_events(&tc.events, "a.flush FLUSH FLUSH FLUSH c=ok");
    tc_close(&tc);
}

TEST(outbound, only_marks_while_the_wire_is_full)
{
    struct test_channel tc;

    tc_open_started(&tc, NULL, NULL);
    tc.wire->room = 1;
    tc_write(&tc, "ab", NULL);
    event_log_clear(&tc.events);
    weir_channel_flush(tc.channel);
    tc_write(&tc, "cd", "cd");
    weir_channel_flush(tc.channel);
    assert_events(&tc.events, "a.flush FLUSH a.write(cd) a.flush");
    tc_make_room(&tc, -1);
    assert_events(&tc.events, "FLUSH cd=ok");
    assert_sent(&tc, "abcd");
    tc_close(&tc);
}

/* ---- lent messages ---- */

TEST(outbound, only_marks_while_its_messages_are_lent)
{
    struct test_channel tc;

    tc_open_started(&tc, NULL, NULL);
    tc.wire->lends = true;
    tc_write(&tc, "ab", "ab");
    event_log_clear(&tc.events);
    weir_channel_flush(tc.channel);
    tc_write(&tc, "cd", "cd");
    weir_channel_flush(tc.channel);
    assert_events(&tc.events, "a.flush FLUSH a.write(cd) a.flush");
    tc_end_send(&tc, 1); /* of a part */
    assert_events(&tc.events, "FLUSH");
    tc_end_send(&tc, 3);
    assert_events(&tc.events, "ab=ok cd=ok");
    assert_sent(&tc, "abcd");
    tc_write(&tc, "e", "e");
    weir_channel_flush(tc.channel);
    tc_end_send(&tc, 1);
    assert_events(&tc.events, "a.write(e) a.flush FLUSH e=ok");
    tc_close(&tc);
}

/* A socket that takes everything: nothing has to wait for long. */
TEST(outbound, copies_nothing_while_its_messages_are_lent)
{
    struct test_channel tc;
    weir_msg *frame = make_frame();

    tc_open_marked(&tc, 0, 0);
    tc.wire->lends = true;
    tc_write(&tc, "first", NULL);
    weir_channel_flush(tc.channel);
    weir_channel_write_and_flush(tc.channel, weir_msg_retain(frame), NULL);
    tc_end_send(&tc, 5);
    assert_ptr_equal(weir__outbound_current(tc.channel), frame);
    weir_msg_release(frame);
    tc_end_send(&tc, 5);
    tc_close(&tc);
}

TEST(outbound, is_shut_after_what_was_lent_is_sent)
{
    struct test_channel tc;

    tc_open_started(&tc, NULL, NULL);
    tc.wire->lends = true;
    tc_write(&tc, "ab", "ab");
    weir_channel_flush(tc.channel);
    event_log_clear(&tc.events);
    weir_channel_shutdown_output(tc.channel, NULL);
    assert_events(&tc.events, "a.shutdown_output");
    tc_end_send(&tc, 2);
    assert_events(&tc.events, "ab=ok FIN a.event(output-closed)");
    tc_close(&tc);
}

TEST(outbound, is_closed_after_what_was_lent_is_sent)
{
    struct test_channel tc;

    tc_open_started(&tc, NULL, NULL);
    tc.wire->lends = true;
    tc_write(&tc, "ab", "ab");
    weir_channel_flush(tc.channel);
    event_log_clear(&tc.events);
    weir_channel_close(tc.channel, NULL);
    assert_events(&tc.events, "a.close");
    tc_end_send(&tc, 2);
    assert_events(&tc.events, "ab=ok FIN");
    tc_close(&tc);
}

TEST(outbound, fails_what_was_lent_when_the_send_fails)
{
    struct test_channel tc;

    tc_open_started(&tc, NULL, NULL);
    tc.wire->lends = true;
    tc_write(&tc, "ab", "ab");
    weir_channel_flush(tc.channel);
    event_log_clear(&tc.events);
    tc_end_send(&tc, -EPIPE);
    assert_events(&tc.events, "ab=EPIPE RESET CLOSE");
    tc_close(&tc);
}

/* The transport is closed before it. */
TEST(outbound, keeps_what_was_lent_until_the_transport_is_closed)
{
    struct test_channel tc;

    tc_open_started(&tc, &(struct wire_options){.slow_close = true}, NULL);
    tc.wire->lends = true;
    tc_write(&tc, "ab", "ab");
    weir_channel_flush(tc.channel);
    event_log_clear(&tc.events);
    weir_channel_abort(tc.channel, NULL);
    tc_run(&tc);
    assert_events(&tc.events, "RESET CLOSE");
    tc_finish_detach(&tc);
    assert_events(&tc.events, "ab=WEIR_ECLOSED");
    tc_close(&tc);
}

/* Its end arrives before the detach has finished; the new loop sends the rest. */
TEST(outbound, keeps_what_was_lent_while_it_moves)
{
    struct test_channel tc;

    tc_open_started(&tc, &(struct wire_options){.slow_close = true}, NULL);
    tc.wire->lends = true;
    tc_write(&tc, "abc", "abc");
    weir_channel_flush(tc.channel);
    weir_channel_deregister(tc.channel, NULL);
    tc_run(&tc);
    event_log_clear(&tc.events);
    tc.wire->is_attached = false; /* as a handle that is being detached */
    tc_end_send(&tc, 1);
    tc_finish_detach(&tc);
    tc_run(&tc);
    assert_events(&tc.events, "a.unregistered");
    weir_channel_register(tc.channel, tc.stepper.executor, NULL);
    tc_run(&tc);
    tc_end_send(&tc, 2);
    assert_events(&tc.events, "ATTACH a.registered a.request_read READ FLUSH abc=ok");
    assert_sent(&tc, "abc");
    weir_channel_abort(tc.channel, NULL);
    tc_finish_detach(&tc);
    tc_close(&tc);
}

/* ---- failures ---- */

TEST(outbound, fails_and_closes_when_sending_fails)
{
    struct test_channel tc;

    tc_open_started(&tc, NULL, NULL);
    tc.wire->flush_err = -EPIPE;
    tc_write(&tc, "a", "a");
    tc_write(&tc, "b", NULL);
    event_log_clear(&tc.events);
    weir_channel_flush(tc.channel);
    assert_events(&tc.events, "a.flush FLUSH a=EPIPE a.error(EPIPE) a.close RESET CLOSE");
    tc_close(&tc);
}

TEST(outbound, is_shut_when_sending_fails_and_the_channel_stays_open)
{
    struct test_channel tc;

    tc_open_started(&tc, NULL, WEIR_CHANNEL_OPTIONS(.keep_open_on_error = true));
    tc.wire->flush_err = -EPIPE;
    tc_write(&tc, "a", "a");
    event_log_clear(&tc.events);
    weir_channel_flush(tc.channel);
    assert_events(&tc.events, "a.flush FLUSH a=EPIPE FIN a.event(output-closed)");
    assert_true(weir_channel_is_open(tc.channel));
    tc_write(&tc, "b", "b");
    assert_events(&tc.events, "a.write(b) b=WEIR_ECLOSED");
    (void)tc_receive(&tc, "x");
    assert_events(&tc.events, "a.read(x)");
    tc_close(&tc);
}

TEST(outbound, is_shut_after_what_was_written_has_gone_out)
{
    struct test_channel tc;
    weir_promise *first, *second;

    tc_open_started(&tc, NULL, NULL);
    tc.wire->room = 1;
    tc_write(&tc, "ab", "ab");
    weir_channel_flush(tc.channel);
    tc_write(&tc, "c", "c");
    event_log_clear(&tc.events);
    first = tc_promise(&tc, "first");
    second = tc_promise(&tc, "second");
    weir_channel_shutdown_output(tc.channel, first);
    tc_write(&tc, "d", "d");
    assert_events(&tc.events, "a.shutdown_output a.write(d) d=WEIR_ECLOSED");
    tc_make_room(&tc, -1);
    assert_events(&tc.events, "FLUSH ab=ok c=ok FIN first=ok a.event(output-closed)");
    assert_sent(&tc, "abc");
    weir_channel_shutdown_output(tc.channel, second);
    assert_events(&tc.events, "a.shutdown_output second=ok");
    assert_true(weir_channel_is_active(tc.channel));
    (void)tc_receive(&tc, "x");
    assert_events(&tc.events, "a.read(x)");
    weir_promise_release(first);
    weir_promise_release(second);
    tc_close(&tc);
}

/* Nobody has flushed: the half closure does. */
TEST(outbound, is_flushed_when_it_is_shut)
{
    struct test_channel tc;

    tc_open_started(&tc, NULL, NULL);
    tc_write(&tc, "a", "a");
    event_log_clear(&tc.events);
    weir_channel_shutdown_output(tc.channel, NULL);
    assert_events(&tc.events, "a.shutdown_output FLUSH a=ok FIN a.event(output-closed)");
    assert_sent(&tc, "a");
    tc_close(&tc);
}

static void keep_back(weir_ctx *ctx, weir_promise *done)
{
    weir_ctx_report(ctx, done, -EPERM, NULL);
}

/* From the tail on, or from where a handler asks: each may keep it back. */
TEST(outbound, is_shut_by_way_of_the_handlers)
{
    static const weir_handler keeper = {.name = "keeper", .shutdown_output = keep_back};
    struct test_channel tc;
    weir_promise *done;

    tc_open_started(&tc, NULL, NULL);
    assert_int_equal(weir_pipeline_add_last(tc.pipeline, &keeper, NULL), 0);
    tc_add(&tc, "z");
    event_log_clear(&tc.events);
    done = tc_promise(&tc, "shut");
    weir_channel_shutdown_output(tc.channel, done);
    assert_events(&tc.events, "z.shutdown_output shut=EPERM");
    weir_promise_release(done);
    done = tc_promise(&tc, "shut");
    weir_shutdown_output(weir_pipeline_find(tc.pipeline, "keeper"), done);
    assert_events(&tc.events, "a.shutdown_output FIN shut=ok a.event(output-closed) "
                              "z.event(output-closed)");
    weir_promise_release(done);
    tc_close(&tc);
}

TEST(outbound, is_not_shut_if_that_was_cancelled_before)
{
    struct test_channel tc;
    weir_promise *done;

    tc_open_started(&tc, NULL, NULL);
    done = tc_promise(&tc, "shut");
    assert_int_equal(weir_promise_cancel(done), 0);
    event_log_clear(&tc.events);
    weir_channel_shutdown_output(tc.channel, done);
    assert_events(&tc.events, "");
    weir_promise_release(done);
    tc_close(&tc);
}

TEST(outbound, cannot_be_shut_after_a_close)
{
    struct test_channel tc;
    weir_promise *output, *input;

    tc_open_started(&tc, NULL, NULL);
    weir_channel_abort(tc.channel, NULL);
    tc_run(&tc);
    output = tc_promise(&tc, "output");
    input = tc_promise(&tc, "input");
    weir_channel_shutdown_output(tc.channel, output);
    weir_channel_shutdown_input(tc.channel, input);
    assert_int_equal(weir_promise_result(output), WEIR_ECLOSED);
    assert_int_equal(weir_promise_result(input), WEIR_ECLOSED);
    weir_promise_release(output);
    weir_promise_release(input);
    tc_close(&tc);
}

static void let_go_of_all(weir_ctx *ctx)
{
    weir_ctx_add_pending_bytes(ctx, -1000);
}

/* A handler that empties its own queue when it goes says so, and is not counted twice. */
TEST(outbound, counts_bytes_that_a_handler_subtracts_in_removed_once)
{
    static weir_handler holder;
    struct test_channel tc;
    weir_ctx *ctx;

    holder = event_recorder;
    holder.removed = let_go_of_all;
    tc_open_started(&tc, NULL, NULL);
    assert_int_equal(
        weir_pipeline_add_last_as(tc.pipeline, "h", &holder, EVENT_RECORDER(&tc.events, "h")), 0);
    ctx = weir_pipeline_find(tc.pipeline, "h");
    weir_ctx_add_pending_bytes(ctx, 1000);
    assert_int_equal(weir_channel_pending_bytes(tc.channel), 1000);
    weir_ctx_remove(ctx);
    assert_int_equal(weir_channel_pending_bytes(tc.channel), 0);
    tc_close(&tc);
}

TEST(outbound, does_not_count_below_what_a_handler_holds)
{
    struct test_channel tc;
    weir_ctx *a;

    tc_open_started(&tc, NULL, NULL);
    a = weir_pipeline_find(tc.pipeline, "a");
    weir_ctx_add_pending_bytes(a, 10);
    weir_ctx_add_pending_bytes(a, -30);
    assert_int_equal(weir_channel_pending_bytes(tc.channel), 0);
    tc_close(&tc);
}

TEST(outbound, that_fails_also_fails_a_half_closure)
{
    struct test_channel tc;
    weir_promise *shut;

    tc_open_started(&tc, NULL, WEIR_CHANNEL_OPTIONS(.keep_open_on_error = true));
    tc.wire->room = 1;
    tc_write(&tc, "ab", "ab");
    weir_channel_flush(tc.channel);
    shut = tc_promise(&tc, "shut");
    weir_channel_shutdown_output(tc.channel, shut);
    tc.wire->flush_err = -EPIPE;
    event_log_clear(&tc.events);
    tc_make_room(&tc, -1);
    assert_int_equal(event_log_count(&tc.events, "ab=EPIPE"), 1);
    assert_int_equal(event_log_count(&tc.events, "shut=EPIPE"), 1);
    weir_promise_release(shut);
    tc_close(&tc);
}

/* The least high mark has a low one that can be gone below. */
TEST(outbound, becomes_writable_again_with_the_smallest_marks)
{
    struct test_channel tc;

    tc_open_started(&tc, NULL, WEIR_CHANNEL_OPTIONS(.high_mark = 1));
    tc_write(&tc, "a", NULL);
    assert_false(weir_channel_is_writable(tc.channel));
    weir_channel_flush(tc.channel);
    assert_true(weir_channel_is_writable(tc.channel));
    tc_close(&tc);
}

/* The output was shut down, so it does not matter that a close came meanwhile. */
TEST(outbound, that_a_close_shuts_is_what_was_waited_for)
{
    struct test_channel tc;
    weir_promise *shut;

    tc_open_started(&tc, NULL, NULL);
    tc.wire->room = 1;
    tc_write(&tc, "ab", NULL);
    weir_channel_flush(tc.channel);
    shut = tc_promise(&tc, "shut");
    weir_channel_shutdown_output(tc.channel, shut);
    weir_channel_close(tc.channel, NULL);
    event_log_clear(&tc.events);
    tc_make_room(&tc, -1);
    assert_events(&tc.events, "FLUSH FIN shut=ok");
    weir_promise_release(shut);
    tc_close(&tc);
}

/* Nor does it if the peer has ended its stream before, and need not be waited for. */
TEST(outbound, that_a_close_sends_to_a_peer_that_has_ended_is_what_was_waited_for)
{
    struct test_channel tc;
    weir_promise *shut;

    tc_open_started(&tc, NULL, WEIR_CHANNEL_OPTIONS(.half_closure = true));
    tc.wire->room = 1;
    tc_write(&tc, "ab", NULL);
    shut = tc_promise(&tc, "shut");
    weir_channel_shutdown_output(tc.channel, shut);
    tc_end_input(&tc);
    weir_channel_close(tc.channel, NULL);
    event_log_clear(&tc.events);
    tc_make_room(&tc, -1);
    assert_int_equal(event_log_count(&tc.events, "FLUSH FIN shut=ok CLOSE"), 1);
    weir_promise_release(shut);
    tc_close(&tc);
}

/* A reset tells the peer nothing of the kind. */
TEST(outbound, that_is_reset_is_not_what_was_waited_for)
{
    struct test_channel tc;
    weir_promise *shut;

    tc_open_started(&tc, NULL, WEIR_CHANNEL_OPTIONS(.reset_on_close = true));
    tc.wire->room = 1;
    tc_write(&tc, "ab", NULL);
    shut = tc_promise(&tc, "shut");
    weir_channel_shutdown_output(tc.channel, shut);
    weir_channel_close(tc.channel, NULL);
    tc_make_room(&tc, -1);
    assert_int_equal(event_log_count(&tc.events, "shut=WEIR_ECLOSED"), 1);
    weir_promise_release(shut);
    tc_close(&tc);
}
