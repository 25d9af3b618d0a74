/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chunked writing: Netty's ChunkedWriteHandlerTest, and more.
 */
#include <weir/chunks.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/error.h>
#include <weir/file_range.h>
#include <weir/flow_control.h>

#include "support/channel/test_channel.h"
#include "support/executor/log_capture.h"
#include "support/memory.h"

/* ---- a source that follows a script: letters are chunks, '.' is later, '!' an error ---- */

struct script {
    const char *text;
    unsigned asked;
    unsigned closed;
    size_t size; /* of a chunk; 0 = 1 */
    void (*on_ask)(struct script *script);
    weir_channel *channel;
};

static int next_letter(void *source, weir_msg **ret_chunk)
{
    struct script *script = source;
    size_t size = script->size > 0 ? script->size : 1;
    char letter = *script->text;
    weir_buf *buf;

    script->asked++;
    if (script->on_ask != NULL)
        script->on_ask(script);
    if (letter == '\0')
        return WEIR_CHUNKS_END;
    script->text++;
    if (letter == '.')
        return WEIR_CHUNKS_AGAIN;
    if (letter == '!')
        return WEIR_EMALFORMED;
    if (weir_buf_create(size, size, &buf) < 0)
        return -ENOMEM;
    memset(weir_buf_space(buf), letter, size);
    (void)weir_buf_advance(buf, size);
    *ret_chunk = weir_buf_msg(buf);
    return WEIR_CHUNKS_READY;
}

static void close_script(void *source)
{
    ((struct script *)source)->closed++;
}

static const weir_chunk_source script_source = {.next = next_letter, .close = close_script};

static weir_msg *chunks_of(struct script *script)
{
    weir_chunks *chunks = NULL;

    assert_int_equal(
        weir_chunks_create(&script_source, script, (int64_t)strlen(script->text), &chunks), 0);
    return weir_chunks_msg(chunks);
}

/* ---- a test channel ---- */

static void open_rig(struct test_channel *tc)
{
    tc_open_with(tc, &(const struct wire_options){.silent = true},
                 WEIR_CHANNEL_OPTIONS(.low_mark = 500, .high_mark = 1000,
                                      .close_send_timeout_ns = weir_ms(100)));
    assert_int_equal(weir_chunked_writing_add(tc->pipeline), 0);
    tc_start(tc);
}

static void put(struct test_channel *tc, weir_msg *msg, const char *name)
{
    weir_promise *promise = name != NULL ? tc_promise(tc, name) : NULL;

    weir_channel_write(tc->channel, msg, promise);
    weir_promise_release(promise);
}

static void flush(struct test_channel *tc)
{
    weir_channel_flush(tc->channel);
    tc_run(tc);
}

TEST(chunked_writing, sends_chunks_until_the_source_ends)
{
    struct script script = {.text = "abcdef"};
    struct test_channel tc;

    open_rig(&tc);
    put(&tc, chunks_of(&script), "c");
    assert_int_equal(script.asked, 0); /* nothing before the flush */
    flush(&tc);
    assert_sent(&tc, "abcdef");
    assert_events(&tc.events, "c=ok");
    assert_int_equal(script.closed, 1);
    tc_close(&tc);
}

TEST(chunked_writing, keeps_the_order_of_messages)
{
    struct script one = {.text = "abc"}, two = {.text = ""}, three = {.text = "xy"};
    struct test_channel tc;

    open_rig(&tc);
    put(&tc, text_msg("1"), "1");
    put(&tc, chunks_of(&one), "one");
    put(&tc, text_msg("2"), "2");
    put(&tc, chunks_of(&two), "two");
    put(&tc, chunks_of(&three), NULL);
    put(&tc, text_msg("3"), "3");
    flush(&tc);
    assert_sent(&tc, "1abc2xy3");
    assert_int_equal(event_log_count(&tc.events, "1=ok"), 1);
    assert_int_equal(event_log_count(&tc.events, "one=ok"), 1);
    assert_int_equal(event_log_count(&tc.events, "2=ok"), 1);
    assert_int_equal(event_log_count(&tc.events, "two=ok"), 1);
    assert_int_equal(event_log_count(&tc.events, "3=ok"), 1);
    put(&tc, text_msg("4"), NULL); /* messages pass again */
    flush(&tc);
    assert_sent(&tc, "4");
    tc_close(&tc);
}

TEST(chunked_writing, pulls_only_below_the_high_mark)
{
    struct script script = {.text = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", .size = 100};
    struct test_channel tc;

    open_rig(&tc);
    tc.wire->room = 0;
    put(&tc, chunks_of(&script), "c");
    flush(&tc);
    assert_in_range(script.asked, 1, 10); /* of 196 bytes each, up to 1000 */
    assert_false(weir_channel_is_writable(tc.channel));
    for (unsigned asked = script.asked; script.asked <= 40; asked = script.asked) {
        tc_make_room(&tc, 100);
        tc_run(&tc);
        assert_int_equal(script.asked, asked + 1); /* one sent, one pulled */
    }
    tc_make_room(&tc, 100000);
    tc_run(&tc);
    assert_int_equal(event_log_count(&tc.events, "c=ok"), 1);
    tc_close(&tc);
}

TEST(chunked_writing, gets_room_behind_a_message_that_fills_the_queue)
{
    struct script script = {.text = "abc"};
    struct test_channel tc;

    open_rig(&tc);
    tc.wire->room = 0;
    put(&tc, sized_msg(2000), NULL);
    put(&tc, chunks_of(&script), "c");
    put(&tc, sized_msg(800), NULL); /* queued: keeps the channel unwritable */
    flush(&tc);
    assert_int_equal(script.asked, 0);
    tc_make_room(&tc, 100000);
    tc_run(&tc);
    assert_int_equal(event_log_count(&tc.events, "c=ok"), 1);
    assert_true(weir_channel_is_writable(tc.channel));
    assert_int_equal(weir_channel_pending_bytes(tc.channel), 0);
    tc_close(&tc);
}

TEST(chunked_writing, gets_room_at_once_if_what_fills_the_queue_goes_with_the_flush)
{
    struct script script = {.text = "abc"};
    struct test_channel tc;

    open_rig(&tc);
    put(&tc, sized_msg(2000), NULL);
    put(&tc, chunks_of(&script), "c");
    put(&tc, text_msg("x"), "x");
    flush(&tc);
    assert_events(&tc.events, "c=ok x=ok");
    assert_int_equal(weir_channel_pending_bytes(tc.channel), 0);
    tc_close(&tc);
}

/* A later handler that queues more than the mark and waits for us never makes room. */
static void hold_much(weir_ctx *ctx)
{
    weir_ctx_add_pending_bytes(ctx, 2000);
}

TEST(chunked_writing, continues_if_the_queue_is_filled_from_behind)
{
    static const weir_handler holder = {.name = "holder", .added = hold_much};
    struct script script = {.text = "abc"};
    struct test_channel tc;

    open_rig(&tc);
    assert_int_equal(weir_pipeline_add_last(tc.pipeline, &holder, NULL), 0);
    put(&tc, chunks_of(&script), "c");
    flush(&tc);
    assert_sent(&tc, "abc");
    assert_events(&tc.events, "c=ok");
    tc_close(&tc);
}

/* Its pieces are sent from within a flush, in which further writes are not sent at once. */
TEST(chunked_writing, continues_if_the_queue_is_filled_behind_later_pieces)
{
    static const weir_handler holder = {.name = "holder", .added = hold_much};
    struct script script = {.text = "abcd", .size = 600};
    struct test_channel tc;

    open_rig(&tc);
    tc.wire->room = 0;
    put(&tc, chunks_of(&script), "c");
    flush(&tc);
    assert_int_equal(weir_pipeline_add_last(tc.pipeline, &holder, NULL), 0);
    tc_make_room(&tc, 1300);
    tc_run(&tc);
    assert_int_equal(tc.wire->sent_length, 1300);
    tc_make_room(&tc, -1);
    tc_run(&tc);
    assert_int_equal(tc.wire->sent_length, 2400);
    assert_events(&tc.events, "c=ok");
    tc_close(&tc);
}

TEST(chunked_writing, retries_a_source_with_the_next_flush)
{
    struct script script = {.text = "a.b..c"};
    struct test_channel tc;

    open_rig(&tc);
    put(&tc, chunks_of(&script), "c");
    put(&tc, text_msg("!"), NULL);
    flush(&tc);
    assert_sent(&tc, "a");
    flush(&tc);
    assert_sent(&tc, "b");
    flush(&tc);
    assert_sent(&tc, "");
    assert_events(&tc.events, "");
    flush(&tc);
    assert_sent(&tc, "c!");
    assert_events(&tc.events, "c=ok");
    tc_close(&tc);
}

TEST(chunked_writing, continues_after_a_source_failed)
{
    struct script one = {.text = "ab!cd"}, two = {.text = "xy"};
    struct test_channel tc;

    open_rig(&tc);
    put(&tc, chunks_of(&one), "one");
    put(&tc, chunks_of(&two), "two");
    flush(&tc);
    assert_sent(&tc, "abxy");
    assert_events(&tc.events, "one=WEIR_EMALFORMED two=ok");
    assert_int_equal(one.closed, 1);
    tc_close(&tc);
}

TEST(chunked_writing, continues_after_a_piece_failed)
{
    struct script one = {.text = "abc"};
    struct test_channel tc;

    open_rig(&tc);
    put(&tc, chunks_of(&one), "one");
    tc.wire->options.admit_err = -EMSGSIZE;
    flush(&tc);
    tc.wire->options.admit_err = 0;
    assert_events(&tc.events, "one=EMSGSIZE");
    assert_int_equal(one.asked, 1);
    assert_int_equal(one.closed, 1);
    put(&tc, text_msg("x"), NULL);
    flush(&tc);
    assert_sent(&tc, "x");
    tc_close(&tc);
}

/* ---- a handler in front that keeps the first piece, and fails it later ---- */

static weir_promise *kept;

static void withhold_first(weir_ctx *ctx, weir_msg *msg, weir_promise *done)
{
    if (kept != NULL) {
        weir_write(ctx, msg, done);
        return;
    }
    kept = weir_promise_retain(done);
    weir_msg_release(msg);
}

TEST(chunked_writing, continues_after_a_later_piece_failed)
{
    static const weir_handler withholding = {.name = "withholding", .write = withhold_first};
    struct script one = {.text = "a.b"};
    struct test_channel tc;

    open_rig(&tc);
    assert_int_equal(weir_pipeline_add_first(tc.pipeline, &withholding, NULL), 0);
    put(&tc, chunks_of(&one), "one");
    put(&tc, text_msg("x"), "x");
    flush(&tc);
    assert_events(&tc.events, "");
    assert_int_equal(weir_promise_fail(kept, -EIO, NULL), 0);
    weir_promise_release(kept);
    kept = NULL;
    tc_run(&tc);
    assert_sent(&tc, "x");
    assert_events(&tc.events, "one=EIO x=ok");
    assert_int_equal(one.closed, 1);
    tc_close(&tc);
}

TEST(chunked_writing, does_not_start_a_cancelled_message)
{
    struct script script = {.text = "abc"};
    weir_promise *promise;
    struct test_channel tc;

    open_rig(&tc);
    promise = tc_promise(&tc, "c");
    weir_channel_write(tc.channel, chunks_of(&script), promise);
    assert_int_equal(weir_promise_cancel(promise), 0);
    weir_promise_release(promise);
    put(&tc, text_msg("x"), NULL);
    flush(&tc);
    assert_sent(&tc, "x");
    assert_int_equal(script.asked, 0);
    assert_int_equal(script.closed, 1);
    tc_close(&tc);
}

struct progress {
    int64_t sent;
    int64_t length;
    unsigned times;
};

static void record_progress(int64_t sent, int64_t length, void *user_data)
{
    *(struct progress *)user_data =
        (struct progress){sent, length, ((struct progress *)user_data)->times + 1};
}

TEST(chunked_writing, reports_progress)
{
    struct script script = {.text = "abc"};
    struct progress progress = {0};
    weir_msg *chunks = chunks_of(&script);
    struct test_channel tc;

    open_rig(&tc);
    tc.wire->room = 2;
    weir_chunks_on_progress(weir_chunks_of(chunks), record_progress, &progress);
    put(&tc, chunks, "c");
    flush(&tc);
    assert_int_equal(progress.sent, 2);
    assert_int_equal(progress.length, 3);
    assert_events(&tc.events, "");
    tc_make_room(&tc, 1);
    tc_run(&tc);
    assert_int_equal(progress.sent, 3);
    assert_int_equal(progress.times, 3);
    assert_events(&tc.events, "c=ok");
    tc_close(&tc);
}

/* user_data may be gone after a failure, even if a piece is still in flight. */
TEST(chunked_writing, reports_no_progress_after_a_failure)
{
    struct script script = {.text = "ab.c"};
    struct progress progress = {0};
    weir_msg *chunks = chunks_of(&script);
    struct test_channel tc;

    open_rig(&tc);
    tc.wire->room = 1;
    weir_chunks_on_progress(weir_chunks_of(chunks), record_progress, &progress);
    put(&tc, chunks, "c");
    flush(&tc);
    assert_int_equal(weir_pipeline_remove(tc.pipeline, "chunked-writing", NULL), 0);
    tc_run(&tc);
    assert_int_equal(event_log_count(&tc.events, "c=WEIR_ECLOSED"), 1);
    assert_int_equal(progress.times, 1);
    tc_make_room(&tc, -1);
    tc_run(&tc);
    assert_int_equal(progress.times, 1);
    assert_int_equal(script.closed, 1);
    tc_close(&tc);
}

static int next_range(void *source, weir_msg **ret_chunk)
{
    weir_msg **range = source;

    if (*range == NULL)
        return WEIR_CHUNKS_END;
    *ret_chunk = *range;
    *range = NULL;
    return WEIR_CHUNKS_READY;
}

static void swallow(weir_ctx *ctx, weir_msg *msg, weir_promise *done)
{
    weir_msg_release(msg);
    weir_ctx_report(ctx, done, 0, NULL);
}

TEST(chunked_writing, reports_progress_of_files)
{
    static const weir_handler swallower = {.name = "swallower", .write = swallow};
    static const weir_chunk_source ranges = {.next = next_range};
    weir_file_range *range = NULL;
    weir_chunks *chunks = NULL;
    struct progress progress = {0};
    weir_msg *msg;
    struct test_channel tc;

    open_rig(&tc);
    assert_int_equal(weir_pipeline_add_first(tc.pipeline, &swallower, NULL), 0);
    assert_int_equal(weir_file_range_create(0, 0, 300, 0, &range), 0);
    msg = weir_file_range_msg(range);
    assert_int_equal(weir_chunks_create(&ranges, &msg, 300, &chunks), 0);
    weir_chunks_on_progress(chunks, record_progress, &progress);
    put(&tc, weir_chunks_msg(chunks), "c");
    flush(&tc);
    assert_events(&tc.events, "c=ok");
    assert_int_equal(progress.sent, 300);
    tc_close(&tc);
}

/* ---- the end ---- */

TEST(chunked_writing, sends_everything_before_a_close)
{
    struct script script = {.text = "aaaaaaaaaaaaaaaaaaaa", .size = 100};
    weir_promise *again;
    struct test_channel tc;

    open_rig(&tc);
    tc.wire->room = 0;
    put(&tc, chunks_of(&script), "c");
    weir_channel_close(tc.channel, NULL); /* flushes as well */
    again = tc_promise(&tc, "again");
    weir_channel_close(tc.channel, again);
    weir_promise_release(again);
    put(&tc, text_msg("late"), "late");
    tc_run(&tc);
    for (int i = 0; i < 25; i++) {
        assert_int_equal(event_log_count(&tc.events, "c="), i >= 20);
        stepper_advance(&tc.stepper, weir_ms(60)); /* slow progress */
        tc_make_room(&tc, 100);
        tc_run(&tc);
    }
    assert_int_equal(tc.wire->sent_length, 2000);
    assert_int_equal(event_log_count(&tc.events, "c=ok"), 1);
    assert_int_equal(event_log_count(&tc.events, "late=WEIR_ECLOSED"), 1);
    tc_end_input(&tc);
    tc_run(&tc);
    assert_false(weir_channel_is_open(tc.channel));
    assert_int_equal(event_log_count(&tc.events, "again=ok"), 1);
    tc_close(&tc);
}

/* A half closure has no deadline. */
TEST(chunked_writing, sends_everything_before_a_half_closure)
{
    struct script script = {.text = "aaaaaaaaaaaaaaaaaaaa", .size = 100};
    weir_promise *shut;
    struct test_channel tc;

    open_rig(&tc);
    tc.wire->room = 0;
    put(&tc, chunks_of(&script), "c");
    shut = tc_promise(&tc, "shut");
    weir_channel_shutdown_output(tc.channel, shut); /* flushes as well */
    put(&tc, text_msg("late"), "late");
    stepper_advance(&tc.stepper, weir_seconds(60));
    assert_events(&tc.events, "late=WEIR_ECLOSED");
    for (int i = 0; i < 25; i++) {
        assert_int_equal(event_log_count(&tc.events, "shut="), i >= 20);
        tc_make_room(&tc, 100);
        tc_run(&tc);
    }
    assert_int_equal(tc.wire->sent_length, 2000);
    assert_events(&tc.events, "c=ok shut=ok");
    assert_true(weir_channel_is_open(tc.channel));
    weir_promise_release(shut);
    tc_close(&tc);
}

TEST(chunked_writing, a_half_closure_and_a_close_wait_in_their_order)
{
    struct script script = {.text = "aaaaaaaaaaaaaaaaaaaa", .size = 100};
    weir_promise *shut;
    struct test_channel tc;

    open_rig(&tc);
    tc.wire->room = 0;
    put(&tc, chunks_of(&script), "c");
    shut = tc_promise(&tc, "shut");
    weir_channel_shutdown_output(tc.channel, shut);
    weir_channel_close(tc.channel, NULL);
    tc_make_room(&tc, -1);
    tc_run(&tc);
    assert_int_equal(tc.wire->sent_length, 2000);
    assert_events(&tc.events, "c=ok shut=ok");
    tc_end_input(&tc);
    tc_run(&tc);
    assert_false(weir_channel_is_open(tc.channel));
    weir_promise_release(shut);
    tc_close(&tc);
}

/* Makes room a little later. */
static void make_room_later(struct test_channel *tc, int64_t room)
{
    stepper_advance(&tc->stepper, weir_ms(60));
    tc_make_room(tc, room);
    tc_run(tc);
}

/* Closes before anything can be sent. */
static void close_at_once(struct test_channel *tc, struct script *script)
{
    open_rig(tc);
    tc->wire->room = 0;
    put(tc, chunks_of(script), "c");
    weir_channel_close(tc->channel, NULL);
    tc_run(tc);
}

TEST(chunked_writing, a_close_waits_as_long_as_a_piece_moves)
{
    struct script script = {.text = "aaaa", .size = 400};
    struct test_channel tc;

    close_at_once(&tc, &script);
    for (int i = 0; i < 32; i++) { /* 480 ms for each piece */
        assert_int_equal(event_log_count(&tc.events, "c="), 0);
        make_room_later(&tc, 50);
    }
    assert_int_equal(tc.wire->sent_length, 1600);
    assert_events(&tc.events, "c=ok");
    tc_close(&tc);
}

TEST(chunked_writing, a_close_times_out_soon_after_a_piece_stalled)
{
    struct script script = {.text = "aaaa", .size = 400};
    struct test_channel tc;

    close_at_once(&tc, &script);
    log_capture_start();
    make_room_later(&tc, 50);
    stepper_advance(&tc.stepper, weir_ms(99));
    assert_events(&tc.events, "");
    stepper_advance(&tc.stepper, weir_ms(1));
    assert_events(&tc.events, "c=ETIMEDOUT");
    assert_int_equal(log_capture_count(WEIR_LOG_WARN), 1);
    assert_log_contains("no chunk was sent for 100 ms after the close");
    tc_close(&tc);
}

TEST(chunked_writing, a_close_times_out_without_progress)
{
    struct script script = {.text = "a."};
    weir_promise *closed;
    struct test_channel tc;

    open_rig(&tc);
    log_capture_start();
    tc.wire->options.silent = false; /* a reset, no end of stream */
    put(&tc, chunks_of(&script), "c");
    put(&tc, text_msg("x"), "x");
    closed = tc_promise(&tc, "closed");
    weir_channel_close(tc.channel, closed);
    weir_promise_release(closed);
    tc_run(&tc);
    event_log_clear(&tc.events);
    stepper_advance(&tc.stepper, weir_ms(99));
    assert_events(&tc.events, "");
    stepper_advance(&tc.stepper, weir_ms(1));
    assert_events(&tc.events, "RESET CLOSE c=ETIMEDOUT x=ETIMEDOUT closed=ETIMEDOUT");
    assert_false(weir_channel_is_open(tc.channel));
    assert_int_equal(script.closed, 1);
    tc_close(&tc);
}

TEST(chunked_writing, a_close_follows_a_changed_timeout)
{
    struct script script = {.text = "aaaa", .size = 400};
    struct test_channel tc;

    close_at_once(&tc, &script);
    make_room_later(&tc, 50);
    assert_int_equal(weir_channel_set_options(
                         tc.channel, WEIR_CHANNEL_OPTIONS(.low_mark = 500, .high_mark = 1000,
                                                          .close_send_timeout_ns = WEIR_NEVER)),
                     0);
    stepper_advance(&tc.stepper, weir_seconds(1000));
    assert_events(&tc.events, "");
    tc_close(&tc);
}

TEST(chunked_writing, fails_the_rest_when_the_channel_is_aborted)
{
    struct script one = {.text = "abc", .size = 600}, two = {.text = "x"};
    struct test_channel tc;

    open_rig(&tc);
    tc.wire->room = 0;
    put(&tc, chunks_of(&one), "one");
    put(&tc, chunks_of(&two), "two");
    put(&tc, text_msg("x"), "x");
    flush(&tc);
    weir_channel_abort(tc.channel, NULL);
    tc_run(&tc);
    assert_int_equal(event_log_count(&tc.events, "one=WEIR_ECLOSED"), 1);
    assert_int_equal(event_log_count(&tc.events, "two=WEIR_ECLOSED"), 1);
    assert_int_equal(event_log_count(&tc.events, "x=WEIR_ECLOSED"), 1);
    assert_int_equal(one.closed, 1);
    assert_int_equal(two.closed, 1);
    tc_close(&tc);
}

static void abort_channel(struct script *script)
{
    if (*script->text == 'b')
        weir_channel_abort(script->channel, NULL);
}

TEST(chunked_writing, survives_a_source_that_aborts_the_channel)
{
    struct script script = {.text = "abc", .on_ask = abort_channel};
    struct test_channel tc;

    open_rig(&tc);
    script.channel = tc.channel;
    put(&tc, chunks_of(&script), "c");
    flush(&tc);
    assert_int_equal(event_log_count(&tc.events, "c=WEIR_ECLOSED"), 1);
    assert_int_equal(script.closed, 1);
    tc_close(&tc);
}

TEST(chunked_writing, passes_other_messages_on_when_removed)
{
    struct script one = {.text = "ab.c"}, two = {.text = "x"};
    struct test_channel tc;

    open_rig(&tc);
    put(&tc, chunks_of(&one), "one");
    put(&tc, text_msg("1"), "1");
    put(&tc, chunks_of(&two), "two");
    put(&tc, text_msg("2"), "2");
    flush(&tc);
    assert_sent(&tc, "ab");
    assert_int_equal(weir_pipeline_remove(tc.pipeline, "chunked-writing", NULL), 0);
    tc_run(&tc);
    assert_sent(&tc, "12");
    assert_int_equal(event_log_count(&tc.events, "one=WEIR_ECLOSED"), 1);
    assert_int_equal(event_log_count(&tc.events, "two=WEIR_ECLOSED"), 1);
    assert_int_equal(weir_channel_pending_bytes(tc.channel), 0);
    tc_close(&tc);
}

static void write_on(weir_promise *promise, void *tc_)
{
    struct test_channel *tc = tc_;

    assert_int_equal(weir_promise_result(promise), WEIR_ECLOSED);
    weir_channel_write_and_flush(tc->channel, text_msg("3"), NULL);
}

TEST(chunked_writing, keeps_the_order_if_a_listener_writes_at_removal)
{
    struct script script = {.text = "ab.c"};
    weir_promise *promise;
    struct test_channel tc;

    open_rig(&tc);
    promise = tc_promise(&tc, "c");
    assert_int_equal(weir_promise_add_listener(promise, write_on, &tc), 0);
    weir_channel_write(tc.channel, chunks_of(&script), promise);
    put(&tc, text_msg("1"), NULL);
    put(&tc, text_msg("2"), NULL);
    flush(&tc);
    assert_sent(&tc, "ab");
    assert_int_equal(weir_pipeline_remove(tc.pipeline, "chunked-writing", NULL), 0);
    tc_run(&tc);
    assert_sent(&tc, "123");
    weir_promise_release(promise);
    tc_close(&tc);
}

/* A handler nearer to the head delays flushes, and sends with the flush of the removal. */
TEST(chunked_writing, fails_chunks_when_removed_though_a_piece_was_sent)
{
    struct script script = {.text = "a.b"};
    struct test_channel tc;

    tc_open_with(&tc, &(const struct wire_options){.silent = true}, NULL);
    assert_int_equal(weir_flush_consolidation_add(
                         tc.pipeline, WEIR_FLUSH_CONSOLIDATION_OPTIONS(.max_flushes = 3)),
                     0);
    assert_int_equal(weir_chunked_writing_add(tc.pipeline), 0);
    tc_start(&tc);
    put(&tc, chunks_of(&script), "c");
    weir_channel_flush(tc.channel);
    assert_sent(&tc, "");
    assert_int_equal(weir_pipeline_remove(tc.pipeline, "chunked-writing", NULL), 0);
    assert_sent(&tc, "a");
    tc_run(&tc);
    assert_events(&tc.events, "c=WEIR_ECLOSED");
    tc_close(&tc);
}

/* ---- files ---- */

static int open_file(const char *text)
{
    char path[] = "/tmp/weir-chunks-XXXXXX";
    int file = mkstemp(path);

    assert_true(file >= 0);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(write(file, text, strlen(text)), (ssize_t)strlen(text));
    return file;
}

TEST(chunked_writing, sends_parts_of_files)
{
    weir_chunks *chunks = NULL;
    struct test_channel tc;

    open_rig(&tc);
    assert_int_equal(
        weir_chunks_create_file(open_file("0123456789"), 2, 7, WEIR_FILE_RANGE_CLOSE, 3, &chunks),
        0);
    put(&tc, weir_chunks_msg(chunks), "f");
    flush(&tc);
    assert_sent(&tc, "2345678");
    assert_events(&tc.events, "f=ok");
    tc_close(&tc);
}

TEST(chunked_writing, fails_if_a_file_is_too_short)
{
    weir_chunks *chunks = NULL;
    struct test_channel tc;

    open_rig(&tc);
    assert_int_equal(
        weir_chunks_create_file(open_file("0123"), 0, 7, WEIR_FILE_RANGE_CLOSE, 0, &chunks), 0);
    put(&tc, weir_chunks_msg(chunks), "f");
    flush(&tc);
    assert_events(&tc.events, "f=WEIR_ETRUNCATED");
    tc_close(&tc);
}

static weir_msg *range_of(const char *text, int64_t length)
{
    weir_file_range *range = NULL;

    assert_int_equal(
        weir_file_range_create(open_file(text), 0, length, WEIR_FILE_RANGE_CLOSE, &range), 0);
    return weir_file_range_msg(range);
}

TEST(file_reading, turns_ranges_into_bytes_and_passes_everything_else)
{
    struct test_channel tc;

    open_rig(&tc);
    assert_int_equal(weir_file_reading_add(tc.pipeline), 0);
    put(&tc, text_msg("<"), "a");
    put(&tc, range_of("0123456789", 10), "f");
    put(&tc, text_msg(">"), "b");
    flush(&tc);
    assert_sent(&tc, "<0123456789>");
    assert_events(&tc.events, "a=ok f=ok b=ok");
    put(&tc, range_of("0123", 7), "g");
    flush(&tc);
    assert_events(&tc.events, "g=WEIR_ETRUNCATED");
    tc_close(&tc);
}

TEST(file_reading, reports_that_there_is_no_memory_for_chunks)
{
    struct test_channel tc;
    weir_msg *range = range_of("0123456789", 10);

    open_rig(&tc);
    assert_int_equal(weir_file_reading_add(tc.pipeline), 0);
    for (unsigned n = 1; n <= 2; n++) {
        weir_promise *promise = tc_promise(&tc, "f");

        test_memory_fail_at(n);
        weir_channel_write(tc.channel, n == 1 ? range : range_of("01234", 5), promise);
        test_memory_fail_at(0);
        weir_promise_release(promise);
    }
    flush(&tc);
    tc_close(&tc);
}

TEST(chunks, reject_invalid_arguments)
{
    struct script script = {.text = ""};
    weir_chunks *chunks = NULL;

    assert_int_equal(weir_chunks_create(&script_source, &script, -2, &chunks), -EINVAL);
    assert_int_equal(script.closed, 1);
    assert_int_equal(weir_chunks_create(NULL, &script, 0, &chunks), -EINVAL);
    assert_int_equal(weir_chunks_create_file(-1, 0, 1, 0, 0, &chunks), -EBADF);
    assert_int_equal(weir_chunks_create_file(1, -1, 1, 0, 0, &chunks), -EINVAL);
    assert_null(weir_chunks_of(NULL));
}

/* ---- lack of memory ---- */

static bool send_without(unsigned n, bool half)
{
    struct script script = {.text = "abcd", .size = 300};
    weir_chunks *chunks = NULL;
    int file = open_file("0123456789");
    weir_msg *text = text_msg("x");
    bool failed;
    struct test_channel tc;

    open_rig(&tc);
    tc.wire->room = 500;
    test_memory_fail_at(n);
    if (weir_chunks_create(&script_source, &script, -1, &chunks) == 0)
        weir_channel_write(tc.channel, weir_chunks_msg(chunks), NULL);
    weir_channel_write(tc.channel, text, NULL);
    if (weir_chunks_create_file(file, 0, 10, WEIR_FILE_RANGE_CLOSE, 3, &chunks) == 0)
        weir_channel_write(tc.channel, weir_chunks_msg(chunks), NULL);
    if (half)
        weir_channel_shutdown_output(tc.channel, NULL);
    weir_channel_close(tc.channel, NULL);
    tc_run(&tc);
    tc_make_room(&tc, 100000);
    tc_run(&tc);
    failed = test_memory_failed();
    test_memory_fail_at(0);
    tc_end_input(&tc);
    tc_close(&tc);
    assert_int_equal(script.closed, 1);
    return failed;
}

TEST(chunked_writing, survives_allocation_failures)
{
    for (unsigned n = 1; send_without(n, false); n++)
        ;
    for (unsigned n = 1; send_without(n, true); n++)
        ;
}
