/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When flushed messages are sent: at once, or at the end of a batch of reads.
 */
#include <errno.h>
#include <stdlib.h>

#include <weir/error.h>
#include <weir/handler.h>

#include "support/channel/test_channel.h"

static const weir_channel_options *on_demand = WEIR_CHANNEL_OPTIONS(.read_on_demand = true);

/* What a handler does in its slots. */
struct actor {
    void (*on_read)(weir_ctx *ctx);
    void (*on_read_complete)(weir_ctx *ctx);
    void (*on_event)(weir_ctx *ctx);
};

static int init_actor(void *state, const void *options)
{
    *(struct actor *)state = *(const struct actor *)options;
    return 0;
}

static void call(weir_ctx *ctx, void (*action)(weir_ctx *ctx))
{
    if (action != NULL)
        action(ctx);
}

static void actor_read(weir_ctx *ctx, weir_msg *msg)
{
    weir_msg_release(msg);
    call(ctx, ((struct actor *)weir_ctx_state(ctx))->on_read);
}

static void actor_read_complete(weir_ctx *ctx)
{
    call(ctx, ((struct actor *)weir_ctx_state(ctx))->on_read_complete);
    weir_fire_read_complete(ctx);
}

static void actor_event(weir_ctx *ctx, weir_msg *event)
{
    call(ctx, ((struct actor *)weir_ctx_state(ctx))->on_event);
    weir_fire_event(ctx, event);
}

static const weir_handler actor_table = {
    .name = "actor",
    .state_size = sizeof(struct actor),
    .init = init_actor,
    .read = actor_read,
    .read_complete = actor_read_complete,
    .event = actor_event,
};

static void say(weir_ctx *ctx)
{
    weir_write_and_flush(ctx, text_msg("r"), NULL);
}

static void say_twice(weir_ctx *ctx)
{
    say(ctx);
    say(ctx);
}

static void add_actor(struct test_channel *tc, const struct actor *actor)
{
    assert_int_equal(weir_pipeline_add_last(tc->pipeline, &actor_table, actor), 0);
}

/* Without a recorder: the log has the transport's calls only. */
static void open_rig_with(struct test_channel *tc, const struct wire_options *wire,
                          const weir_channel_options *options, const struct actor *actor)
{
    tc_open_with(tc, wire, options);
    add_actor(tc, actor);
    tc_start(tc);
    event_log_clear(&tc->events);
}

static void open_rig(struct test_channel *tc, const struct actor *actor)
{
    open_rig_with(tc, NULL, NULL, actor);
}

/* ---- the end of a batch ---- */

TEST(batch, sends_once_whatever_is_flushed_in_it)
{
    struct test_channel tc;

    open_rig(&tc, &(const struct actor){.on_read = say_twice, .on_read_complete = say_twice});
    add_actor(&tc, &(const struct actor){.on_read_complete = say});
    assert_true(tc_receive(&tc, "1"));
    assert_true(tc_receive(&tc, "2"));
    assert_events(&tc.events, "");
    weir__channel_read_complete(tc.channel);
    assert_events(&tc.events, "FLUSH");
    assert_sent(&tc, "rrrrrrr");
    tc_close(&tc);
}

TEST(batch, without_a_flush_sends_nothing)
{
    struct test_channel tc;

    open_rig(&tc, &(const struct actor){0});
    assert_true(tc_receive(&tc, "1"));
    tc_write(&tc, "not flushed", NULL);
    weir__channel_read_complete(tc.channel);
    assert_events(&tc.events, "");
    weir_channel_flush(tc.channel);
    assert_events(&tc.events, "FLUSH");
    tc_close(&tc);
}

TEST(batch, sends_what_was_flushed_and_no_more)
{
    struct test_channel tc;

    open_rig(&tc, &(const struct actor){.on_read = say});
    assert_true(tc_receive(&tc, "1"));
    tc_write(&tc, "later", NULL);
    weir__channel_read_complete(tc.channel);
    assert_sent(&tc, "r");
    tc_close(&tc);
}

TEST(batch, ends_with_read_complete_and_flushes_after_it_send_at_once)
{
    struct test_channel tc;

    open_rig(&tc, &(const struct actor){.on_read = say});
    assert_true(tc_receive(&tc, "1"));
    weir__channel_read_complete(tc.channel);
    assert_sent(&tc, "r");
    tc_write(&tc, "x", NULL);
    weir_channel_flush(tc.channel);
    assert_sent(&tc, "x");
    assert_events(&tc.events, "FLUSH FLUSH");
    tc_close(&tc);
}

TEST(batch, of_one_requested_message_sends_at_its_end)
{
    struct test_channel tc;

    open_rig_with(&tc, NULL, on_demand, &(const struct actor){.on_read = say_twice});
    weir_channel_request_read(tc.channel);
    assert_false(tc_receive(&tc, "1"));
    assert_events(&tc.events, "READ_ONCE");
    weir__channel_read_complete(tc.channel);
    assert_events(&tc.events, "FLUSH");
    assert_sent(&tc, "rr");
    tc_close(&tc);
}

/* A timer or another task may fire a read: no read_complete of the transport follows. */
TEST(batch, is_not_a_read_that_a_handler_fires)
{
    struct test_channel tc;

    open_rig(&tc, &(const struct actor){.on_read = say});
    weir_pipeline_fire_read(tc.pipeline, text_msg("made up"));
    assert_sent(&tc, "r");
    tc_close(&tc);
}

TEST(batch, ends_though_its_flush_completes_a_promise_whose_listener_flushes)
{
    struct test_channel tc;

    open_rig(&tc, &(const struct actor){.on_read = say});
    assert_true(tc_receive(&tc, "1"));
    tc_write(&tc, "p", "p");
    weir_channel_flush(tc.channel);
    assert_events(&tc.events, "");
    weir__channel_read_complete(tc.channel);
    assert_events(&tc.events, "FLUSH p=ok");
    assert_sent(&tc, "rp");
    tc_close(&tc);
}

/* ---- a handler that waits for the promise of what it flushed in `read` ---- */

static unsigned pieces;

static void send_piece(weir_ctx *ctx);

static void on_piece_sent(weir_promise *promise, void *user_data)
{
    if (weir_promise_result(promise) == 0)
        send_piece(user_data);
}

static void send_piece(weir_ctx *ctx)
{
    weir_promise *sent;

    if (pieces-- == 0)
        return;
    if (weir_promise_create(weir_ctx_executor(ctx), &sent) < 0 ||
        weir_promise_add_listener(sent, on_piece_sent, ctx) < 0)
        abort();
    weir_write_and_flush(ctx, text_msg("p"), sent);
    weir_promise_release(sent);
}

TEST(batch, lets_pieces_follow_each_other_by_their_promises)
{
    struct test_channel tc;

    pieces = 5;
    open_rig(&tc, &(const struct actor){.on_read = send_piece});
    assert_true(tc_receive(&tc, "1"));
    assert_int_equal(pieces, 4);
    weir__channel_read_complete(tc.channel);
    assert_sent(&tc, "ppppp");
    tc_close(&tc);
}

/* ---- memory ---- */

static unsigned written;

static void fill(weir_ctx *ctx)
{
    while (written < 8 && weir_ctx_is_writable(ctx)) {
        written++;
        weir_write_and_flush(ctx, sized_msg(40), NULL);
    }
}

TEST(batch, sends_before_its_end_when_the_channel_is_unwritable)
{
    struct test_channel tc;

    written = 0;
    open_rig_with(&tc, NULL, WEIR_CHANNEL_OPTIONS(.low_mark = 300, .high_mark = 600),
                  &(const struct actor){.on_read = fill});
    assert_true(tc_receive(&tc, "1"));
    assert_int_equal(written, 8); /* it became writable again */
    assert_events(&tc.events, "FLUSH FLUSH");
    assert_true(weir_channel_pending_bytes(tc.channel) <= 600);
    weir__channel_read_complete(tc.channel);
    assert_events(&tc.events, "FLUSH");
    assert_int_equal(weir_channel_pending_bytes(tc.channel), 0);
    assert_int_equal(tc.wire->sent_length, 320);
    tc_close(&tc);
}

TEST(batch, waits_for_room_if_the_transport_does)
{
    struct test_channel tc;

    open_rig(&tc, &(const struct actor){.on_read = say_twice});
    tc.wire->room = 1;
    assert_true(tc_receive(&tc, "1"));
    weir__channel_read_complete(tc.channel);
    assert_events(&tc.events, "FLUSH");
    assert_true(tc_receive(&tc, "2"));
    weir__channel_read_complete(tc.channel);
    assert_events(&tc.events, "");
    tc_make_room(&tc, -1);
    assert_events(&tc.events, "FLUSH");
    assert_sent(&tc, "rrrr");
    tc_close(&tc);
}

TEST(batch, leaves_lent_messages_alone)
{
    struct test_channel tc;

    open_rig(&tc, &(const struct actor){.on_read = say});
    tc.wire->lends = true;
    assert_true(tc_receive(&tc, "1"));
    weir__channel_read_complete(tc.channel);
    assert_true(tc_receive(&tc, "2"));
    weir__channel_read_complete(tc.channel);
    assert_events(&tc.events, "FLUSH");
    tc.wire->lends = false;
    tc_end_send(&tc, 1);
    assert_events(&tc.events, "FLUSH");
    assert_int_equal(weir_channel_pending_bytes(tc.channel), 0);
    tc_close(&tc);
}

/* ---- what cuts a batch short ---- */

static void say_and_close(weir_ctx *ctx)
{
    say(ctx);
    weir_close(ctx, NULL);
}

static void say_and_abort(weir_ctx *ctx)
{
    say(ctx);
    weir_channel_abort(weir_ctx_channel(ctx), NULL);
}

static void say_and_disconnect(weir_ctx *ctx)
{
    say(ctx);
    weir_disconnect(ctx, NULL);
}

static void say_and_connect(weir_ctx *ctx)
{
    weir_address address;

    say(ctx);
    if (weir_address_parse("127.0.0.1:3", &address) == 0)
        weir_connect(ctx, &address, NULL, NULL);
}

static void say_and_shut_output(weir_ctx *ctx)
{
    say(ctx);
    weir_shutdown_output(ctx, NULL);
    say(ctx); /* fails */
}

static void say_and_fail(weir_ctx *ctx)
{
    say(ctx);
    weir_fire_error(ctx, -EPROTO, NULL);
}

TEST(batch, that_a_close_cuts_short_sends_all_before_it)
{
    struct test_channel tc;

    open_rig(&tc, &(const struct actor){.on_read = say_and_close});
    assert_true(tc_receive(&tc, "1"));
    assert_events(&tc.events, "FLUSH FIN");
    assert_sent(&tc, "r");
    weir__channel_read_complete(tc.channel);
    assert_events(&tc.events, "");
    tc_end_input(&tc);
    tc_close(&tc);
}

TEST(batch, that_an_unhandled_error_cuts_short_sends_all_before_it)
{
    struct test_channel tc;

    open_rig(&tc, &(const struct actor){.on_read = say_and_fail});
    (void)tc_receive(&tc, "1");
    assert_sent(&tc, "r");
    tc_close(&tc);
}

TEST(batch, that_an_abort_cuts_short_loses_nothing_that_was_flushed)
{
    struct test_channel tc;

    open_rig(&tc, &(const struct actor){.on_read = say_and_abort});
    assert_false(tc_receive(&tc, "1"));
    assert_events(&tc.events, "FLUSH CLOSE");
    assert_sent(&tc, "r");
    tc_close(&tc);
}

TEST(batch, that_a_disconnect_cuts_short_sends_all_before_it)
{
    struct test_channel tc;

    open_rig_with(&tc, &(const struct wire_options){.can_disconnect = true}, NULL,
                  &(const struct actor){.on_read = say_and_disconnect});
    (void)tc_receive(&tc, "1");
    assert_events(&tc.events, "FLUSH DISCONNECT STOP");
    assert_sent(&tc, "r");
    tc_close(&tc);
}

TEST(batch, goes_to_the_recipient_from_before_a_connect)
{
    struct test_channel tc;

    open_rig_with(&tc, &(const struct wire_options){.connectionless = true}, NULL,
                  &(const struct actor){.on_read = say_and_connect});
    (void)tc_receive(&tc, "1");
    assert_events(&tc.events, "FLUSH CONNECT");
    weir__channel_connected(tc.channel, 0);
    tc_close(&tc);
}

TEST(batch, that_a_half_closure_cuts_short_sends_all_before_it)
{
    struct test_channel tc;

    open_rig_with(&tc, NULL, WEIR_CHANNEL_OPTIONS(.keep_open_on_error = true),
                  &(const struct actor){.on_read = say_and_shut_output});
    assert_true(tc_receive(&tc, "1"));
    assert_events(&tc.events, "FLUSH FIN");
    assert_sent(&tc, "r");
    weir__channel_read_complete(tc.channel);
    assert_events(&tc.events, "");
    tc_close(&tc);
}

TEST(batch, that_the_end_of_the_stream_cuts_short_sends_all_before_it)
{
    struct test_channel tc;

    open_rig(&tc, &(const struct actor){.on_read = say});
    assert_true(tc_receive(&tc, "1"));
    tc_end_input(&tc);
    assert_sent(&tc, "r");
    tc_close(&tc);

    open_rig_with(&tc, NULL, WEIR_CHANNEL_OPTIONS(.half_closure = true),
                  &(const struct actor){.on_read = say, .on_event = say});
    assert_true(tc_receive(&tc, "1"));
    tc_end_input(&tc);
    weir__channel_read_complete(tc.channel);
    assert_events(&tc.events, "FLUSH");
    assert_sent(&tc, "rr");
    tc_close(&tc);
}

TEST(batch, whose_send_fails_closes_the_channel_once)
{
    struct test_channel tc;

    open_rig(&tc, &(const struct actor){.on_read = say_twice});
    tc.wire->flush_err = -EPIPE;
    assert_true(tc_receive(&tc, "1"));
    weir__channel_read_complete(tc.channel);
    assert_int_equal(event_log_count(&tc.events, "RESET"), 1);
    assert_int_equal(event_log_count(&tc.events, "CLOSE"), 1);
    tc_close(&tc);
}

TEST(batch, that_an_error_of_the_transport_cuts_short_fails_what_was_flushed)
{
    struct test_channel tc;

    open_rig(&tc, &(const struct actor){0});
    assert_true(tc_receive(&tc, "1"));
    tc_write(&tc, "x", "x");
    weir_channel_flush(tc.channel);
    weir__channel_failed(tc.channel, -ECONNRESET, NULL);
    assert_int_equal(
        event_log_count(&tc.events, "x=ECONNRESET") + event_log_count(&tc.events, "x=ok"), 1);
    weir__channel_read_complete(tc.channel);
    tc_close(&tc);
}

/* ---- a channel that moves ---- */

TEST(batch, that_a_deregistration_cuts_short_is_sent_by_the_next_loop)
{
    struct test_channel tc;

    open_rig_with(&tc, &(const struct wire_options){.slow_close = true}, NULL,
                  &(const struct actor){.on_read = say});
    weir_channel_deregister(tc.channel, NULL);
    tc_run(&tc);
    assert_events(&tc.events, "STOP DETACH");
    (void)weir__channel_received(tc.channel, text_msg("the last")); /* no read_complete follows */
    tc_finish_detach(&tc);
    tc_run(&tc);
    assert_events(&tc.events, "");
    weir_channel_register(tc.channel, tc.stepper.executor, NULL);
    tc_run(&tc);
    assert_sent(&tc, "r");
    tc_write(&tc, "x", NULL);
    weir_channel_flush(tc.channel);
    assert_sent(&tc, "x");
    tc.wire->options.slow_close = false;
    tc_close(&tc);
}
