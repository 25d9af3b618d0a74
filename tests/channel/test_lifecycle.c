/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a channel comes to a loop, and how it ends. How it moves is in test_lifecycle_moving.c.
 */
#include <errno.h>
#include <string.h>

#include <weir/error.h>

#include "support/channel/test_channel.h"
#include "support/executor/group.h"
#include "support/executor/log_capture.h"
#include "support/executor/run_on_thread.h"
#include "support/memory.h"

/* ---- registration ---- */

TEST(lifecycle, registration_calls_added_then_the_promise_then_events)
{
    struct test_channel tc;
    weir_promise *done;

    tc_open(&tc);
    tc_add(&tc, "a");
    tc_add(&tc, "b");
    done = tc_promise(&tc, "done");
    weir_channel_register(tc.channel, tc.stepper.executor, done);
    assert_events(&tc.events, "ATTACH a.added b.added done=ok a.registered b.registered "
                              "a.active b.active b.request_read a.request_read READ");
    assert_true(weir_channel_is_registered(tc.channel));
    assert_true(weir_channel_is_active(tc.channel));
    assert_ptr_equal(weir_channel_executor(tc.channel), tc.stepper.executor);
    weir_promise_release(done);
    tc_close(&tc);
}

TEST(lifecycle, a_second_registration_fails_and_closes_nothing)
{
    struct test_channel tc;
    weir_promise *done;

    tc_open_started(&tc, NULL, NULL);
    done = tc_promise(&tc, "done");
    weir_channel_register(tc.channel, tc.stepper.executor, done);
    assert_int_equal(weir_promise_result(done), -EALREADY);
    weir_promise_release(done);

    done = tc_promise(&tc, "done");
    weir_channel_register(tc.channel, NULL, done);
    assert_int_equal(weir_promise_result(done), -EINVAL);
    assert_true(weir_channel_is_open(tc.channel));
    weir_promise_release(done);
    tc_close(&tc);
}

TEST(lifecycle, an_attach_that_fails_closes_the_channel)
{
    struct test_channel tc;
    weir_promise *done;

    tc_open_with(&tc, &(struct wire_options){.attach_err = -EMFILE}, NULL);
    tc_add(&tc, "a");
    done = tc_promise(&tc, "done");
    weir_channel_register(tc.channel, tc.stepper.executor, done);
    assert_events(&tc.events, "ATTACH CLOSE done=EMFILE");
    assert_false(weir_channel_is_open(tc.channel));
    weir_promise_release(done);
    tc_close(&tc);
}

TEST(lifecycle, an_executor_that_does_not_suit_closes_the_channel)
{
    struct test_channel tc;
    weir_promise *done;

    tc_open(&tc);
    done = tc_promise(&tc, "done");
    weir_channel_register(tc.channel, weir_executor_immediate(), done);
    tc_run(&tc);
    assert_events(&tc.events, "CLOSE done=EINVAL");
    weir_promise_release(done);
    tc_close(&tc);
}

TEST(lifecycle, a_loop_that_has_ended_takes_no_channel_and_that_closes_it)
{
    struct test_channel tc;
    struct stepper ended = stepper_open();
    weir_promise *done;

    tc_open(&tc);
    tc_add(&tc, "a");
    assert_int_equal(weir_executor_shutdown(ended.executor, 0, 0), 0);
    (void)stepper_run(&ended);
    done = tc_promise(&tc, "done");
    weir_channel_register(tc.channel, ended.executor, done);
    assert_int_equal(weir_promise_result(done), WEIR_EREJECTED);
    assert_events(&tc.events, "CLOSE done=WEIR_EREJECTED");
    assert_true(weir_promise_is_done(weir_channel_closed(tc.channel)));
    weir_promise_release(done);
    tc_close(&tc);
    stepper_close(&ended);
}

TEST(lifecycle, a_channel_that_was_never_registered_closes_with_its_last_reference)
{
    struct test_channel tc;
    weir_promise *closed;

    tc_open(&tc);
    tc_add(&tc, "a");
    closed = weir_promise_retain(weir_channel_closed(tc.channel));
    weir_channel_retain(tc.channel);
    weir_channel_release(tc.channel);
    assert_events(&tc.events, "");
    weir_channel_release(tc.channel);
    assert_events(&tc.events, "CLOSE a.deinit DESTROY");
    assert_int_equal(weir_promise_result(closed), 0);
    weir_promise_release(closed);
    stepper_close(&tc.stepper);
    event_log_close(&tc.events);
}

TEST(lifecycle, what_is_done_before_the_registration_does_no_harm)
{
    struct test_channel tc;

    tc_open(&tc);
    tc_add(&tc, "a");
    tc_write(&tc, "early", "early");
    tc_write(&tc, "nobody waits", NULL);
    weir_channel_flush(tc.channel);
    assert_events(&tc.events, "early=ENOTCONN");
    tc_write(&tc, "kept", "kept");
    weir_channel_request_read(tc.channel);
    weir_channel_set_auto_read(tc.channel, false);
    weir_channel_set_auto_read(tc.channel, true);
    tc_start(&tc);
    event_log_clear(&tc.events);
    weir_channel_flush(tc.channel);
    assert_events(&tc.events, "a.flush FLUSH kept=ok");
    assert_sent(&tc, "kept");
    tc_close(&tc);
}

TEST(lifecycle, what_is_done_after_the_end_fails_and_does_no_harm)
{
    struct test_channel tc;
    weir_promise *close, *bound, *registered;
    weir_address address;

    tc_open_started(&tc, NULL, NULL);
    weir_channel_abort(tc.channel, NULL);
    tc_run(&tc);
    event_log_clear(&tc.events);
    tc_write(&tc, "late", "late");
    weir_channel_flush(tc.channel);
    weir_channel_request_read(tc.channel);
    assert_int_equal(
        weir_pipeline_add_last(tc.pipeline, &event_recorder, EVENT_RECORDER(&tc.events, "b")),
        WEIR_ECLOSED);
    close = tc_promise(&tc, "close");
    weir_channel_close(tc.channel, close);
    bound = tc_promise(&tc, "bound");
    assert_int_equal(weir_address_parse(":1", &address), 0);
    weir_channel_bind(tc.channel, &address, bound);
    registered = tc_promise(&tc, "registered");
    weir_channel_register(tc.channel, tc.stepper.executor, registered);
    tc_run(&tc);
    assert_events(&tc.events,
                  "late=WEIR_ECLOSED close=ok bound=WEIR_ECLOSED registered=WEIR_ECLOSED");
    weir_promise_release(close);
    weir_promise_release(bound);
    weir_promise_release(registered);
    tc_close(&tc);
}

/* ---- closing ---- */

TEST(lifecycle, abort_completes_promises_then_writes_then_fires_events)
{
    struct test_channel tc;
    struct event_recorder listener = {.events = &tc.events, .name = "closed"};
    weir_promise *done;

    tc_open_started(&tc, NULL, NULL);
    tc_add(&tc, "b");
    assert_int_equal(weir_promise_add_listener(weir_channel_closed(tc.channel),
                                               event_recorder_listen, &listener),
                     0);
    tc_write(&tc, "x", "x");
    event_log_clear(&tc.events);
    done = tc_promise(&tc, "done");
    weir_channel_abort(tc.channel, done);
    assert_events(&tc.events, "RESET CLOSE closed=ok done=ok x=WEIR_ECLOSED");
    assert_false(weir_channel_is_active(tc.channel));
    tc_run(&tc);
    assert_events(&tc.events, "a.inactive b.inactive a.unregistered b.unregistered "
                              "b.removed a.removed a.deinit b.deinit");
    assert_false(weir_channel_is_registered(tc.channel));
    weir_promise_release(done);
    tc_close(&tc);
}

TEST(lifecycle, closing_twice_waits_for_the_first)
{
    struct test_channel tc;
    weir_promise *first, *second, *third;

    tc_open_started(&tc, &(struct wire_options){.slow_close = true}, NULL);
    first = tc_promise(&tc, "first");
    second = tc_promise(&tc, "second");
    third = tc_promise(&tc, "third");
    weir_channel_close(tc.channel, first);
    weir_channel_close(tc.channel, second);
    assert_events(&tc.events, "a.close FIN a.close");
    tc_end_input(&tc);
    assert_events(&tc.events, "CLOSE");
    weir_channel_close(tc.channel, third);
    assert_events(&tc.events, "a.close");
    tc_finish_detach(&tc);
    assert_events(&tc.events, "first=ok second=ok third=ok");
    weir_promise_release(first);
    weir_promise_release(second);
    weir_promise_release(third);
    tc_close(&tc);
}

TEST(lifecycle, close_sends_what_was_written_before_flushed_or_not_and_lingers)
{
    struct test_channel tc;
    weir_promise *done;

    tc_open_started(&tc, NULL, NULL);
    tc.wire->room = 3;
    tc_write(&tc, "hello", "hello");
    weir_channel_flush(tc.channel);
    tc_write(&tc, " world", "world");
    event_log_clear(&tc.events);

    done = tc_promise(&tc, "done");
    weir_channel_close(tc.channel, done);
    assert_events(&tc.events, "a.close"); /* goes on reading, to discard */
    assert_false(weir_channel_is_open(tc.channel));
    assert_false(weir_channel_is_writable(tc.channel));
    tc_write(&tc, "late", "late");
    assert_events(&tc.events, "a.write(late) late=WEIR_ECLOSED");

    (void)tc_receive(&tc, "discarded");
    tc_make_room(&tc, -1);
    assert_sent(&tc, "hello world");
    assert_events(&tc.events, "FLUSH hello=ok world=ok FIN");
    (void)tc_receive(&tc, "discarded");
    weir__channel_read_complete(tc.channel);
    assert_true(weir_channel_is_active(tc.channel));
    tc_end_input(&tc);
    assert_events(&tc.events, "CLOSE done=ok");
    tc_run(&tc);
    assert_events(&tc.events, "a.inactive a.unregistered a.removed a.deinit");
    weir_promise_release(done);
    tc_close(&tc);
}

TEST(lifecycle, close_does_not_linger_if_the_peer_has_ended_its_stream)
{
    struct test_channel tc;

    tc_open_started(&tc, NULL, WEIR_CHANNEL_OPTIONS(.half_closure = true));
    tc_end_input(&tc);
    tc_write(&tc, "bye", NULL);
    event_log_clear(&tc.events);
    weir_channel_close(tc.channel, NULL);
    assert_events(&tc.events, "a.close FLUSH CLOSE");
    assert_sent(&tc, "bye");
    tc_close(&tc);
}

TEST(lifecycle, close_does_not_linger_if_the_peer_has_said_that_nothing_more_comes)
{
    struct test_channel tc;

    tc_open_started(&tc, NULL, NULL);
    weir_channel_skip_linger(tc.channel);
    tc.wire->room = 3;
    tc_write(&tc, "bye", "bye");
    tc_write(&tc, "bye", "byebye");
    event_log_clear(&tc.events);
    weir_channel_close(tc.channel, NULL);
    assert_events(&tc.events, "a.close FLUSH bye=ok");
    tc_make_room(&tc, -1); /* all of it is sent first */
    assert_events(&tc.events, "FLUSH byebye=ok CLOSE");
    assert_sent(&tc, "byebye");
    tc_close(&tc);
}

TEST(lifecycle, the_end_of_the_peers_stream_closes_after_the_rest_was_sent)
{
    struct test_channel tc;

    tc_open_started(&tc, NULL, NULL);
    tc_write(&tc, "reply", "reply");
    event_log_clear(&tc.events);
    tc_end_input(&tc);
    assert_events(&tc.events, "FLUSH reply=ok CLOSE");
    assert_sent(&tc, "reply");
    tc_close(&tc);
}

TEST(lifecycle, lingering_ends_at_the_deadline)
{
    struct test_channel tc;

    tc_open_started(&tc, NULL, WEIR_CHANNEL_OPTIONS(.close_timeout_ns = weir_ms(100)));
    weir_channel_close(tc.channel, NULL);
    assert_events(&tc.events, "a.close FIN");
    (void)stepper_advance(&tc.stepper, weir_ms(99));
    assert_events(&tc.events, "");
    (void)stepper_advance(&tc.stepper, weir_ms(1));
    assert_events(&tc.events, "CLOSE a.inactive a.unregistered a.removed a.deinit");
    tc_close(&tc);
}

static void open_stuck(struct test_channel *tc, const struct wire_options *wire,
                       const weir_channel_options *options)
{
    tc_open_started(tc, wire, options);
    tc->wire->room = 0;
    tc_write(tc, "stuck", "stuck");
    event_log_clear(&tc->events);
    log_capture_start();
}

static weir_promise *begin_to_close(struct test_channel *tc)
{
    weir_promise *closed = tc_promise(tc, "closed");

    weir_channel_close(tc->channel, closed);
    assert_events(&tc->events, "a.close FLUSH");
    return closed;
}

TEST(lifecycle, a_close_gives_up_when_nothing_was_sent_for_30_seconds)
{
    weir_promise *closed;
    struct test_channel tc;

    open_stuck(&tc, NULL, NULL);
    closed = begin_to_close(&tc);
    (void)stepper_advance(&tc.stepper, weir_seconds(30) - 1);
    assert_events(&tc.events, "");
    (void)stepper_advance(&tc.stepper, 1);
    assert_events(&tc.events, "RESET CLOSE closed=ETIMEDOUT stuck=ETIMEDOUT a.inactive "
                              "a.unregistered a.removed a.deinit");
    assert_string_equal(weir_promise_detail(closed),
                        "the peer took none of the last 5 bytes for 30 s after the close");
    assert_int_equal(log_capture_count(WEIR_LOG_WARN), 1);
    assert_log_contains("127.0.0.1:2");
    assert_log_contains(weir_promise_detail(closed));
    weir_promise_release(closed);
    tc_close(&tc);
}

/* Half a minute is counted from the last byte that was taken. */
TEST(lifecycle, a_close_waits_for_a_slow_peer_as_long_as_it_takes)
{
    weir_promise *closed;
    struct test_channel tc;

    open_stuck(&tc, NULL, NULL);
    closed = begin_to_close(&tc);
    for (int i = 0; i < 4; i++) {
        (void)stepper_advance(&tc.stepper, weir_seconds(30) - 1);
        tc_make_room(&tc, 1);
        assert_events(&tc.events, "FLUSH");
    }
    (void)stepper_advance(&tc.stepper, weir_seconds(30) - 1);
    assert_events(&tc.events, "");
    tc_make_room(&tc, 1);
    assert_events(&tc.events, "FLUSH stuck=ok FIN");
    (void)stepper_advance(&tc.stepper, weir_seconds(3));
    assert_events(&tc.events, "CLOSE closed=ok a.inactive a.unregistered a.removed a.deinit");
    weir_promise_release(closed);
    tc_close(&tc);
}

/* Second by second: samples come in between. */
static void pass_seconds(struct test_channel *tc, int count)
{
    for (int i = 0; i < count; i++)
        (void)stepper_advance(&tc->stepper, weir_seconds(1));
}

/* A full socket takes nothing for a long time, though its peer reads. */
TEST(lifecycle, a_close_counts_what_the_peer_acknowledges_as_progress)
{
    weir_promise *closed;
    struct test_channel tc;

    open_stuck(&tc, &(struct wire_options){.acknowledges = true}, NULL);
    tc.wire->unacknowledged = 1000;
    closed = begin_to_close(&tc);
    for (int i = 0; i < 20; i++) {
        pass_seconds(&tc, 29);
        assert_events(&tc.events, "");
        tc.wire->unacknowledged--;
    }
    pass_seconds(&tc, 30);
    assert_events(&tc.events, "");
    pass_seconds(&tc, 8); /* two samples */
    assert_events(&tc.events, "RESET CLOSE closed=ETIMEDOUT stuck=ETIMEDOUT a.inactive "
                              "a.unregistered a.removed a.deinit");
    assert_string_equal(weir_promise_detail(closed),
                        "the peer took none of the last 985 bytes for 30 s after the close");
    weir_promise_release(closed);
    tc_close(&tc);
}

TEST(lifecycle, lingering_continues_while_data_is_unacknowledged)
{
    struct test_channel tc;

    tc_open_started(&tc, &(struct wire_options){.acknowledges = true}, NULL);
    tc.wire->unacknowledged = 10;
    weir_channel_close(tc.channel, NULL);
    assert_events(&tc.events, "a.close FIN");
    for (int i = 0; i < 10; i++) {
        pass_seconds(&tc, 25);
        assert_events(&tc.events, "");
        tc.wire->unacknowledged--;
    }
    pass_seconds(&tc, 2); /* the peer gets its time from when all of it has come */
    assert_events(&tc.events, "");
    pass_seconds(&tc, 5);
    assert_events(&tc.events, "CLOSE a.inactive a.unregistered a.removed a.deinit");
    tc_close(&tc);
}

TEST(lifecycle, lingering_gives_up_on_data_that_is_not_acknowledged)
{
    weir_promise *closed;
    struct test_channel tc;

    tc_open_started(&tc, &(struct wire_options){.acknowledges = true},
                    WEIR_CHANNEL_OPTIONS(.close_timeout_ns = WEIR_OFF));
    log_capture_start();
    tc.wire->unacknowledged = 10;
    closed = tc_promise(&tc, "closed");
    weir_channel_close(tc.channel, closed);
    assert_events(&tc.events, "a.close FIN");
    pass_seconds(&tc, 29);
    assert_events(&tc.events, "");
    pass_seconds(&tc, 4);
    assert_events(&tc.events,
                  "RESET CLOSE closed=ETIMEDOUT a.inactive a.unregistered a.removed a.deinit");
    assert_string_equal(weir_promise_detail(closed),
                        "the peer took none of the last 10 bytes for 30 s after the close");
    weir_promise_release(closed);
    tc_close(&tc);
}

TEST(lifecycle, a_close_without_a_timeout_never_gives_up)
{
    struct test_channel tc;

    open_stuck(&tc, &(struct wire_options){.acknowledges = true},
               WEIR_CHANNEL_OPTIONS(.close_send_timeout_ns = WEIR_OFF));
    weir_channel_close(tc.channel, NULL);
    (void)stepper_advance(&tc.stepper, weir_seconds(1000000));
    assert_events(&tc.events, "a.close FLUSH");
    tc_make_room(&tc, -1);
    assert_events(&tc.events, "FLUSH stuck=ok FIN");
    tc_close(&tc);
}

TEST(lifecycle, lingering_without_a_deadline_waits_for_the_peer)
{
    struct test_channel tc;

    tc_open_started(&tc, NULL, WEIR_CHANNEL_OPTIONS(.close_timeout_ns = WEIR_OFF));
    weir_channel_close(tc.channel, NULL);
    (void)stepper_advance(&tc.stepper, weir_seconds(1000000));
    assert_events(&tc.events, "a.close FIN");
    tc_end_input(&tc);
    assert_events(&tc.events, "CLOSE");
    tc_close(&tc);
}

TEST(lifecycle, a_sending_side_that_cannot_be_shut_ends_the_channel)
{
    struct test_channel tc;

    tc_open_started(&tc, &(struct wire_options){.shut_err = -ENOTCONN}, NULL);
    weir_channel_close(tc.channel, NULL);
    assert_events(&tc.events, "a.close FIN CLOSE");
    tc_close(&tc);
}

TEST(lifecycle, a_promise_that_is_cancelled_leaves_things_as_they_are)
{
    struct test_channel tc;
    weir_promise *done;

    tc_open(&tc);
    done = tc_promise(&tc, "done");
    assert_int_equal(weir_promise_cancel(done), 0);
    weir_channel_register(tc.channel, tc.stepper.executor, done);
    weir_channel_close(tc.channel, done);
    weir_channel_abort(tc.channel, done);
    weir_channel_deregister(tc.channel, done);
    assert_events(&tc.events, "done=WEIR_ECANCELED");
    assert_true(weir_channel_is_open(tc.channel));
    weir_promise_release(done);
    tc_close(&tc);
}

TEST(lifecycle, an_error_that_it_survives_is_an_event)
{
    struct test_channel tc;

    tc_open_started(&tc, NULL, WEIR_CHANNEL_OPTIONS(.keep_open_on_error = true));
    log_capture_start();
    weir__channel_nonfatal_error(tc.channel, -EMFILE, "no more descriptors");
    assert_events(&tc.events, "a.error(EMFILE)");
    assert_true(weir_channel_is_open(tc.channel));
    tc_close(&tc);
}

TEST(lifecycle, a_channel_that_resets_or_has_no_half_closure_does_not_linger)
{
    struct test_channel tc;

    tc_open_started(&tc, &(struct wire_options){.no_linger = true}, NULL);
    tc_write(&tc, "x", NULL);
    event_log_clear(&tc.events);
    weir_channel_close(tc.channel, NULL);
    assert_events(&tc.events, "a.close FLUSH CLOSE");
    assert_sent(&tc, "x");
    tc_close(&tc);

    tc_open_started(&tc, NULL, WEIR_CHANNEL_OPTIONS(.reset_on_close = true));
    weir_channel_close(tc.channel, NULL);
    assert_events(&tc.events, "a.close CLOSE");
    tc_close(&tc);
}

TEST(lifecycle, without_memory_for_a_deadline_close_does_not_wait)
{
    struct test_channel tc;

    tc_open_started(&tc, NULL, NULL);
    test_memory_fail_at(1);
    weir_channel_close(tc.channel, NULL);
    assert_true(test_memory_failed());
    test_memory_fail_at(0);
    assert_events(&tc.events, "a.close CLOSE");
    tc_close(&tc);
}

TEST(lifecycle, abort_ends_a_close_that_waits)
{
    struct test_channel tc;
    weir_promise *close, *abort;

    tc_open_started(&tc, NULL, NULL);
    close = tc_promise(&tc, "close");
    abort = tc_promise(&tc, "abort");
    weir_channel_close(tc.channel, close);
    weir_channel_abort(tc.channel, abort);
    assert_events(&tc.events, "a.close FIN CLOSE close=ok abort=ok");
    weir_promise_release(close);
    weir_promise_release(abort);
    tc_close(&tc);
}

TEST(lifecycle, an_error_of_the_transport_is_an_event_and_ends_the_channel)
{
    struct test_channel tc;

    tc_open_started(&tc, NULL, NULL);
    tc_write(&tc, "x", "x");
    event_log_clear(&tc.events);
    weir__channel_input_ended(tc.channel, -ECONNRESET);
    assert_events(&tc.events, "a.error(ECONNRESET) a.close FLUSH x=ok CLOSE");
    tc_close(&tc);

    tc_open_started(&tc, NULL, WEIR_CHANNEL_OPTIONS(.keep_open_on_error = true));
    log_capture_start();
    weir__channel_failed(tc.channel, -EIO, "it broke");
    assert_events(&tc.events, "a.error(EIO) CLOSE");
    assert_true(log_capture_last_contains("it broke"));
    tc_close(&tc);
}

TEST(lifecycle, an_error_at_the_tail_closes_unless_it_is_to_stay_open)
{
    struct test_channel tc;

    log_capture_start();
    tc_open_started(&tc, NULL, WEIR_CHANNEL_OPTIONS(.keep_open_on_error = true));
    weir_pipeline_fire_error(tc.pipeline, -EPROTO, "nonsense");
    assert_events(&tc.events, "a.error(EPROTO)");
    assert_int_equal(log_capture_count(WEIR_LOG_WARN), 1);
    assert_true(log_capture_last_contains("nonsense"));
    assert_true(weir_channel_is_open(tc.channel));
    tc_close(&tc);

    tc_open_started(&tc, NULL, NULL);
    weir_pipeline_fire_error(tc.pipeline, -ECONNRESET, NULL); /* no news */
    assert_events(&tc.events, "a.error(ECONNRESET) a.close FIN");
    assert_int_equal(log_capture_count(WEIR_LOG_WARN), 1);
    tc_close(&tc);
}

/* The name of the channel costs system calls. */
TEST(lifecycle, errors_at_the_tail_are_limited_for_each_kind)
{
    struct test_channel tc;

    tc_open_started(&tc, NULL, WEIR_CHANNEL_OPTIONS(.keep_open_on_error = true));
    log_capture_start();
    for (int i = 0; i < 100; i++)
        weir_pipeline_fire_error(tc.pipeline, -EDOM, "again");
    assert_int_equal(log_capture_count(WEIR_LOG_WARN), 10);
    for (int i = 0; i < 100; i++) {
        weir_pipeline_fire_error(tc.pipeline, -ERANGE, "and again");
        weir_pipeline_fire_error(tc.pipeline, WEIR_EFULL, "and once more");
        weir_pipeline_fire_error(tc.pipeline, -5000 - i, "of no kind");
    }
    assert_int_equal(log_capture_count(WEIR_LOG_WARN), 40);
    tc_close(&tc);

    tc_open_started(&tc, NULL, WEIR_CHANNEL_OPTIONS(.keep_open_on_error = true));
    weir_pipeline_fire_error(tc.pipeline, -EDOM, "again");
    weir_pipeline_fire_error(tc.pipeline, -ECONNRESET, "not at this level");
    assert_int_equal(tc.wire->address_calls, 0);
    tc_close(&tc);
}

/* ---- shutdown ---- */

TEST(lifecycle, draining_closes_a_channel_without_a_draining_handler)
{
    struct test_channel tc;

    tc_open_with(&tc, NULL, NULL);
    assert_int_equal(
        weir_pipeline_add_last(tc.pipeline, &lifecycle_recorder, EVENT_RECORDER(&tc.events, "b")),
        0);
    tc_start(&tc);
    event_log_clear(&tc.events);
    weir__channel_drain(tc.channel);
    assert_events(&tc.events, "FIN");
    tc_close(&tc);
}

TEST(lifecycle, draining_is_fired_once)
{
    struct test_channel tc;

    tc_open_started(&tc, NULL, NULL);
    weir__channel_drain(tc.channel);
    weir__channel_drain(tc.channel);
    assert_events(&tc.events, "a.draining");
    assert_true(weir_channel_is_open(tc.channel));
    tc_close(&tc);

    tc_open_started(&tc, &(struct wire_options){.accepts = true}, NULL);
    weir__channel_drain(tc.channel);
    assert_events(&tc.events, "a.close CLOSE");
    tc_close(&tc);
}

static void nothing(void *arg)
{
    (void)arg;
}

/* Listeners close before `draining` is fired on other channels, so no new connections arrive
 * then. */
TEST(lifecycle, draining_closes_listeners_first)
{
    weir_group *group;
    weir_channel *channels[2];
    struct event_log events;

    assert_int_equal(
        weir_group_create(WEIR_GROUP_OPTIONS(.threads = 1, .io = WEIR_IO_EPOLL), &group), 0);
    event_log_open(&events);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(wire_create(&events,
                                     &(struct wire_options){.silent = true, .accepts = i == 1},
                                     NULL, NULL, &channels[i]),
                         0);
        assert_int_equal(weir_pipeline_add_last(weir_channel_pipeline(channels[i]), &event_recorder,
                                                i == 0 ? EVENT_RECORDER(&events, "c")
                                                       : EVENT_RECORDER(&events, "l")),
                         0);
        weir_group_register(group, channels[i], NULL);
    }
    run_on_executor(weir_group_at(group, 0), nothing, NULL);
    event_log_clear(&events);
    assert_int_equal(weir_group_shutdown(group, 0, weir_ms(50)), 0);
    assert_int_equal(weir_group_await_termination(group, TEST_TIMEOUT_NS), 0);
    assert_memory_equal(events.text, "l.close c.draining", strlen("l.close c.draining"));
    weir_channel_release(channels[0]);
    weir_channel_release(channels[1]);
    weir_group_release(group);
    event_log_close(&events);
}

/* ---- memory ---- */

TEST(lifecycle, a_channel_that_cannot_be_made_leaves_nothing)
{
    struct event_log events;
    weir_channel *channel;
    unsigned n;
    int err;

    event_log_open(&events);
    for (n = 1;; n++) {
        test_memory_fail_at(n);
        err = wire_create(&events, NULL, NULL, NULL, &channel);
        if (!test_memory_failed())
            break;
        assert_int_equal(err, -ENOMEM);
    }
    test_memory_fail_at(0);
    assert_int_equal(n, 3);
    weir_channel_release(channel);
    event_log_close(&events);
}

TEST(lifecycle, ids_are_never_used_twice)
{
    struct test_channel tc;
    uint64_t id;

    tc_open(&tc);
    id = weir_channel_id(tc.channel);
    tc_close(&tc);
    tc_open(&tc);
    assert_true(weir_channel_id(tc.channel) > id);
    tc_close(&tc);
}

/* Its handlers get none between two loops, nor when a later loop looks at the states. */
TEST(lifecycle, an_error_of_a_posted_call_is_reported_at_most_once)
{
    struct test_channel tc;

    tc_open_started(&tc, NULL, NULL);
    weir_channel_deregister(tc.channel, NULL);
    tc_run(&tc);
    weir__channel_fail_posted(tc.channel, NULL, -EPERM);
    tc_run(&tc);
    weir_channel_register(tc.channel, tc.stepper.executor, NULL);
    tc_run(&tc);
    weir__channel_defer(tc.channel, WEIR__DEFERRED_CHECK);
    tc_run(&tc);
    assert_int_equal(event_log_count(&tc.events, "a.error(EPERM)"), 0);
    weir__channel_fail_posted(tc.channel, NULL, -EPERM);
    tc_run(&tc);
    assert_int_equal(event_log_count(&tc.events, "a.error(EPERM)"), 1);
    tc_close(&tc);
}

TEST(lifecycle, a_channel_without_a_loop_has_left_it)
{
    struct test_channel tc;
    weir_promise *done;

    tc_open(&tc);
    done = tc_promise(&tc, "done");
    weir_channel_deregister(tc.channel, done);
    tc_run(&tc);
    assert_events(&tc.events, "done=ok");
    weir_promise_release(done);
    tc_close(&tc);
}
