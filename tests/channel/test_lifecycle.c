/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a channel comes to a loop, and how it ends. How it moves is in test_life_moving.c.
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

TEST(life, registration_tells_handlers_then_the_promise_then_events)
{
    struct rig rig;
    weir_promise *done;

    rig_open(&rig);
    rig_add(&rig, "a");
    rig_add(&rig, "b");
    done = rig_promise(&rig, "done");
    weir_channel_register(rig.channel, rig.stepper.executor, done);
    assert_diary(&rig.diary, "ATTACH a.added b.added done=ok a.registered b.registered "
                             "a.active b.active b.request_read a.request_read READ");
    assert_true(weir_channel_is_registered(rig.channel));
    assert_true(weir_channel_is_active(rig.channel));
    assert_ptr_equal(weir_channel_executor(rig.channel), rig.stepper.executor);
    weir_promise_release(done);
    rig_close(&rig);
}

TEST(life, a_second_registration_fails_and_closes_nothing)
{
    struct rig rig;
    weir_promise *done;

    rig_open_started(&rig, NULL, NULL);
    done = rig_promise(&rig, "done");
    weir_channel_register(rig.channel, rig.stepper.executor, done);
    assert_int_equal(weir_promise_result(done), -EALREADY);
    weir_promise_release(done);

    done = rig_promise(&rig, "done");
    weir_channel_register(rig.channel, NULL, done);
    assert_int_equal(weir_promise_result(done), -EINVAL);
    assert_true(weir_channel_is_open(rig.channel));
    weir_promise_release(done);
    rig_close(&rig);
}

TEST(life, an_attach_that_fails_closes_the_channel)
{
    struct rig rig;
    weir_promise *done;

    rig_open_with(&rig, &(struct wire_options){.attach_err = -EMFILE}, NULL);
    rig_add(&rig, "a");
    done = rig_promise(&rig, "done");
    weir_channel_register(rig.channel, rig.stepper.executor, done);
    assert_diary(&rig.diary, "ATTACH CLOSE done=EMFILE");
    assert_false(weir_channel_is_open(rig.channel));
    weir_promise_release(done);
    rig_close(&rig);
}

TEST(life, an_executor_that_does_not_suit_closes_the_channel)
{
    struct rig rig;
    weir_promise *done;

    rig_open(&rig);
    done = rig_promise(&rig, "done");
    weir_channel_register(rig.channel, weir_executor_immediate(), done);
    rig_run(&rig);
    assert_diary(&rig.diary, "CLOSE done=EINVAL");
    weir_promise_release(done);
    rig_close(&rig);
}

/* D 17 */
TEST(life, a_loop_that_has_ended_takes_no_channel_and_that_closes_it)
{
    struct rig rig;
    struct stepper ended = stepper_open();
    weir_promise *done;

    rig_open(&rig);
    rig_add(&rig, "a");
    assert_int_equal(weir_executor_shutdown(ended.executor, 0, 0), 0);
    (void)stepper_run(&ended);
    done = rig_promise(&rig, "done");
    weir_channel_register(rig.channel, ended.executor, done);
    assert_int_equal(weir_promise_result(done), WEIR_EREJECTED);
    assert_diary(&rig.diary, "CLOSE done=WEIR_EREJECTED");
    assert_true(weir_promise_is_done(weir_channel_closed(rig.channel)));
    weir_promise_release(done);
    rig_close(&rig);
    stepper_close(&ended);
}

TEST(life, a_channel_that_was_never_registered_closes_with_its_last_reference)
{
    struct rig rig;
    weir_promise *closed;

    rig_open(&rig);
    rig_add(&rig, "a");
    closed = weir_promise_retain(weir_channel_closed(rig.channel));
    weir_channel_retain(rig.channel);
    weir_channel_release(rig.channel);
    assert_diary(&rig.diary, "");
    weir_channel_release(rig.channel);
    assert_diary(&rig.diary, "CLOSE a.deinit DESTROY");
    assert_int_equal(weir_promise_result(closed), 0);
    weir_promise_release(closed);
    stepper_close(&rig.stepper);
    diary_close(&rig.diary);
}

/* D 95 */
TEST(life, what_is_done_before_the_registration_does_no_harm)
{
    struct rig rig;

    rig_open(&rig);
    rig_add(&rig, "a");
    rig_write(&rig, "early", "early");
    rig_write(&rig, "nobody waits", NULL);
    weir_channel_flush(rig.channel);
    assert_diary(&rig.diary, "early=ENOTCONN");
    rig_write(&rig, "kept", "kept");
    weir_channel_request_read(rig.channel);
    weir_channel_set_auto_read(rig.channel, false);
    weir_channel_set_auto_read(rig.channel, true);
    rig_start(&rig);
    diary_clear(&rig.diary);
    weir_channel_flush(rig.channel);
    assert_diary(&rig.diary, "a.flush FLUSH kept=ok");
    assert_sent(&rig, "kept");
    rig_close(&rig);
}

TEST(life, what_is_done_after_the_end_fails_and_does_no_harm)
{
    struct rig rig;
    weir_promise *close, *bound, *registered;
    weir_address address;

    rig_open_started(&rig, NULL, NULL);
    weir_channel_abort(rig.channel, NULL);
    rig_run(&rig);
    diary_clear(&rig.diary);
    rig_write(&rig, "late", "late");
    weir_channel_flush(rig.channel);
    weir_channel_request_read(rig.channel);
    assert_int_equal(weir_pipeline_add_last(rig.pipeline, &spy, SPY(&rig.diary, "b")),
                     WEIR_ECLOSED);
    close = rig_promise(&rig, "close");
    weir_channel_close(rig.channel, close);
    bound = rig_promise(&rig, "bound");
    assert_int_equal(weir_address_parse(":1", &address), 0);
    weir_channel_bind(rig.channel, &address, bound);
    registered = rig_promise(&rig, "registered");
    weir_channel_register(rig.channel, rig.stepper.executor, registered);
    rig_run(&rig);
    assert_diary(&rig.diary,
                 "late=WEIR_ECLOSED close=ok bound=WEIR_ECLOSED registered=WEIR_ECLOSED");
    weir_promise_release(close);
    weir_promise_release(bound);
    weir_promise_release(registered);
    rig_close(&rig);
}

/* ---- closing ---- */

/* D 69 */
TEST(life, abort_tells_promises_then_fails_writes_then_in_a_task_the_handlers)
{
    struct rig rig;
    struct spy listener = {.diary = &rig.diary, .name = "closed"};
    weir_promise *done;

    rig_open_started(&rig, NULL, NULL);
    rig_add(&rig, "b");
    assert_int_equal(
        weir_promise_add_listener(weir_channel_closed(rig.channel), spy_listen, &listener), 0);
    rig_write(&rig, "x", "x");
    diary_clear(&rig.diary);
    done = rig_promise(&rig, "done");
    weir_channel_abort(rig.channel, done);
    assert_diary(&rig.diary, "RESET CLOSE closed=ok done=ok x=WEIR_ECLOSED");
    assert_false(weir_channel_is_active(rig.channel));
    rig_run(&rig);
    assert_diary(&rig.diary, "a.inactive b.inactive a.unregistered b.unregistered "
                             "b.removed a.removed a.deinit b.deinit");
    assert_false(weir_channel_is_registered(rig.channel));
    weir_promise_release(done);
    rig_close(&rig);
}

/* D 86 */
TEST(life, closing_twice_waits_for_the_first)
{
    struct rig rig;
    weir_promise *first, *second, *third;

    rig_open_started(&rig, &(struct wire_options){.slow_close = true}, NULL);
    first = rig_promise(&rig, "first");
    second = rig_promise(&rig, "second");
    third = rig_promise(&rig, "third");
    weir_channel_close(rig.channel, first);
    weir_channel_close(rig.channel, second);
    assert_diary(&rig.diary, "a.close FIN a.close");
    rig_end_input(&rig);
    assert_diary(&rig.diary, "CLOSE");
    weir_channel_close(rig.channel, third);
    assert_diary(&rig.diary, "a.close");
    rig_let_go(&rig);
    assert_diary(&rig.diary, "first=ok second=ok third=ok");
    weir_promise_release(first);
    weir_promise_release(second);
    weir_promise_release(third);
    rig_close(&rig);
}

TEST(life, close_sends_what_was_written_before_flushed_or_not_and_lingers)
{
    struct rig rig;
    weir_promise *done;

    rig_open_started(&rig, NULL, NULL);
    rig.wire->room = 3;
    rig_write(&rig, "hello", "hello");
    weir_channel_flush(rig.channel);
    rig_write(&rig, " world", "world");
    diary_clear(&rig.diary);

    done = rig_promise(&rig, "done");
    weir_channel_close(rig.channel, done);
    assert_diary(&rig.diary, "a.close"); /* goes on reading, to discard */
    assert_false(weir_channel_is_open(rig.channel));
    assert_false(weir_channel_is_writable(rig.channel));
    rig_write(&rig, "late", "late");
    assert_diary(&rig.diary, "a.write(late) late=WEIR_ECLOSED");

    (void)rig_receive(&rig, "discarded");
    rig_make_room(&rig, -1);
    assert_sent(&rig, "hello world");
    assert_diary(&rig.diary, "FLUSH hello=ok world=ok FIN");
    (void)rig_receive(&rig, "discarded");
    weir__channel_read_complete(rig.channel);
    assert_true(weir_channel_is_active(rig.channel));
    rig_end_input(&rig);
    assert_diary(&rig.diary, "CLOSE done=ok");
    rig_run(&rig);
    assert_diary(&rig.diary, "a.inactive a.unregistered a.removed a.deinit");
    weir_promise_release(done);
    rig_close(&rig);
}

TEST(life, close_does_not_linger_if_the_peer_has_ended_its_stream)
{
    struct rig rig;

    rig_open_started(&rig, NULL, WEIR_CHANNEL_OPTIONS(.half_closure = true));
    rig_end_input(&rig);
    rig_write(&rig, "bye", NULL);
    diary_clear(&rig.diary);
    weir_channel_close(rig.channel, NULL);
    assert_diary(&rig.diary, "a.close FLUSH CLOSE");
    assert_sent(&rig, "bye");
    rig_close(&rig);
}

TEST(life, close_does_not_linger_if_the_peer_has_said_that_nothing_more_comes)
{
    struct rig rig;

    rig_open_started(&rig, NULL, NULL);
    weir_channel_set_no_linger(rig.channel);
    rig.wire->room = 3;
    rig_write(&rig, "bye", "bye");
    rig_write(&rig, "bye", "byebye");
    diary_clear(&rig.diary);
    weir_channel_close(rig.channel, NULL);
    assert_diary(&rig.diary, "a.close FLUSH bye=ok");
    rig_make_room(&rig, -1); /* all of it is sent first */
    assert_diary(&rig.diary, "FLUSH byebye=ok CLOSE");
    assert_sent(&rig, "byebye");
    rig_close(&rig);
}

TEST(life, the_end_of_the_peers_stream_closes_after_the_rest_was_sent)
{
    struct rig rig;

    rig_open_started(&rig, NULL, NULL);
    rig_write(&rig, "reply", "reply");
    diary_clear(&rig.diary);
    rig_end_input(&rig);
    assert_diary(&rig.diary, "FLUSH reply=ok CLOSE");
    assert_sent(&rig, "reply");
    rig_close(&rig);
}

TEST(life, lingering_ends_at_the_deadline)
{
    struct rig rig;

    rig_open_started(&rig, NULL, WEIR_CHANNEL_OPTIONS(.close_timeout_ns = weir_ms(100)));
    weir_channel_close(rig.channel, NULL);
    assert_diary(&rig.diary, "a.close FIN");
    (void)stepper_advance(&rig.stepper, weir_ms(99));
    assert_diary(&rig.diary, "");
    (void)stepper_advance(&rig.stepper, weir_ms(1));
    assert_diary(&rig.diary, "CLOSE a.inactive a.unregistered a.removed a.deinit");
    rig_close(&rig);
}

static void open_stuck(struct rig *rig, const struct wire_options *wire,
                       const weir_channel_options *options)
{
    rig_open_started(rig, wire, options);
    rig->wire->room = 0;
    rig_write(rig, "stuck", "stuck");
    diary_clear(&rig->diary);
    log_capture_start();
}

static weir_promise *begin_to_close(struct rig *rig)
{
    weir_promise *closed = rig_promise(rig, "closed");

    weir_channel_close(rig->channel, closed);
    assert_diary(&rig->diary, "a.close FLUSH");
    return closed;
}

TEST(life, a_close_gives_up_when_nothing_was_sent_for_30_seconds)
{
    weir_promise *closed;
    struct rig rig;

    open_stuck(&rig, NULL, NULL);
    closed = begin_to_close(&rig);
    (void)stepper_advance(&rig.stepper, weir_seconds(30) - 1);
    assert_diary(&rig.diary, "");
    (void)stepper_advance(&rig.stepper, 1);
    assert_diary(&rig.diary, "RESET CLOSE closed=ETIMEDOUT stuck=ETIMEDOUT a.inactive "
                             "a.unregistered a.removed a.deinit");
    assert_string_equal(weir_promise_detail(closed),
                        "the peer took none of the last 5 bytes for 30 s after the close");
    assert_int_equal(log_capture_count(WEIR_LOG_WARN), 1);
    assert_log_contains("127.0.0.1:2");
    assert_log_contains(weir_promise_detail(closed));
    weir_promise_release(closed);
    rig_close(&rig);
}

/* Half a minute is counted from the last byte that was taken. */
TEST(life, a_close_waits_for_a_slow_peer_as_long_as_it_takes)
{
    weir_promise *closed;
    struct rig rig;

    open_stuck(&rig, NULL, NULL);
    closed = begin_to_close(&rig);
    for (int i = 0; i < 4; i++) {
        (void)stepper_advance(&rig.stepper, weir_seconds(30) - 1);
        rig_make_room(&rig, 1);
        assert_diary(&rig.diary, "FLUSH");
    }
    (void)stepper_advance(&rig.stepper, weir_seconds(30) - 1);
    assert_diary(&rig.diary, "");
    rig_make_room(&rig, 1);
    assert_diary(&rig.diary, "FLUSH stuck=ok FIN");
    (void)stepper_advance(&rig.stepper, weir_seconds(3));
    assert_diary(&rig.diary, "CLOSE closed=ok a.inactive a.unregistered a.removed a.deinit");
    weir_promise_release(closed);
    rig_close(&rig);
}

/* Second by second: samples come in between. */
static void pass_seconds(struct rig *rig, int count)
{
    for (int i = 0; i < count; i++)
        (void)stepper_advance(&rig->stepper, weir_seconds(1));
}

/* A full socket takes nothing for a long time, though its peer reads. */
TEST(life, a_close_counts_what_the_peer_acknowledges_as_progress)
{
    weir_promise *closed;
    struct rig rig;

    open_stuck(&rig, &(struct wire_options){.acknowledges = true}, NULL);
    rig.wire->unacknowledged = 1000;
    closed = begin_to_close(&rig);
    for (int i = 0; i < 20; i++) {
        pass_seconds(&rig, 29);
        assert_diary(&rig.diary, "");
        rig.wire->unacknowledged--;
    }
    pass_seconds(&rig, 30);
    assert_diary(&rig.diary, "");
    pass_seconds(&rig, 8); /* two samples */
    assert_diary(&rig.diary, "RESET CLOSE closed=ETIMEDOUT stuck=ETIMEDOUT a.inactive "
                             "a.unregistered a.removed a.deinit");
    assert_string_equal(weir_promise_detail(closed),
                        "the peer took none of the last 985 bytes for 30 s after the close");
    weir_promise_release(closed);
    rig_close(&rig);
}

TEST(life, lingering_goes_on_while_data_is_not_acknowledged)
{
    struct rig rig;

    rig_open_started(&rig, &(struct wire_options){.acknowledges = true}, NULL);
    rig.wire->unacknowledged = 10;
    weir_channel_close(rig.channel, NULL);
    assert_diary(&rig.diary, "a.close FIN");
    for (int i = 0; i < 10; i++) {
        pass_seconds(&rig, 25);
        assert_diary(&rig.diary, "");
        rig.wire->unacknowledged--;
    }
    pass_seconds(&rig, 2); /* the peer gets its time from when all of it has come */
    assert_diary(&rig.diary, "");
    pass_seconds(&rig, 5);
    assert_diary(&rig.diary, "CLOSE a.inactive a.unregistered a.removed a.deinit");
    rig_close(&rig);
}

TEST(life, lingering_gives_up_on_data_that_is_not_acknowledged)
{
    weir_promise *closed;
    struct rig rig;

    rig_open_started(&rig, &(struct wire_options){.acknowledges = true},
                     WEIR_CHANNEL_OPTIONS(.close_timeout_ns = WEIR_OFF));
    log_capture_start();
    rig.wire->unacknowledged = 10;
    closed = rig_promise(&rig, "closed");
    weir_channel_close(rig.channel, closed);
    assert_diary(&rig.diary, "a.close FIN");
    pass_seconds(&rig, 29);
    assert_diary(&rig.diary, "");
    pass_seconds(&rig, 4);
    assert_diary(&rig.diary,
                 "RESET CLOSE closed=ETIMEDOUT a.inactive a.unregistered a.removed a.deinit");
    assert_string_equal(weir_promise_detail(closed),
                        "the peer took none of the last 10 bytes for 30 s after the close");
    weir_promise_release(closed);
    rig_close(&rig);
}

TEST(life, a_close_without_a_timeout_never_gives_up)
{
    struct rig rig;

    open_stuck(&rig, &(struct wire_options){.acknowledges = true},
               WEIR_CHANNEL_OPTIONS(.close_send_timeout_ns = WEIR_OFF));
    weir_channel_close(rig.channel, NULL);
    (void)stepper_advance(&rig.stepper, weir_seconds(1000000));
    assert_diary(&rig.diary, "a.close FLUSH");
    rig_make_room(&rig, -1);
    assert_diary(&rig.diary, "FLUSH stuck=ok FIN");
    rig_close(&rig);
}

TEST(life, lingering_without_a_deadline_waits_for_the_peer)
{
    struct rig rig;

    rig_open_started(&rig, NULL, WEIR_CHANNEL_OPTIONS(.close_timeout_ns = WEIR_OFF));
    weir_channel_close(rig.channel, NULL);
    (void)stepper_advance(&rig.stepper, weir_seconds(1000000));
    assert_diary(&rig.diary, "a.close FIN");
    rig_end_input(&rig);
    assert_diary(&rig.diary, "CLOSE");
    rig_close(&rig);
}

TEST(life, a_sending_side_that_cannot_be_shut_ends_the_channel)
{
    struct rig rig;

    rig_open_started(&rig, &(struct wire_options){.shut_err = -ENOTCONN}, NULL);
    weir_channel_close(rig.channel, NULL);
    assert_diary(&rig.diary, "a.close FIN CLOSE");
    rig_close(&rig);
}

TEST(life, a_promise_that_is_cancelled_leaves_things_as_they_are)
{
    struct rig rig;
    weir_promise *done;

    rig_open(&rig);
    done = rig_promise(&rig, "done");
    assert_int_equal(weir_promise_cancel(done), 0);
    weir_channel_register(rig.channel, rig.stepper.executor, done);
    weir_channel_close(rig.channel, done);
    weir_channel_abort(rig.channel, done);
    weir_channel_deregister(rig.channel, done);
    assert_diary(&rig.diary, "done=WEIR_ECANCELED");
    assert_true(weir_channel_is_open(rig.channel));
    weir_promise_release(done);
    rig_close(&rig);
}

TEST(life, an_error_that_it_survives_is_an_event)
{
    struct rig rig;

    rig_open_started(&rig, NULL, WEIR_CHANNEL_OPTIONS(.keep_open_on_error = true));
    log_capture_start();
    weir__channel_troubled(rig.channel, -EMFILE, "no more descriptors");
    assert_diary(&rig.diary, "a.error(EMFILE)");
    assert_true(weir_channel_is_open(rig.channel));
    rig_close(&rig);
}

TEST(life, a_channel_that_resets_or_has_no_half_closure_does_not_linger)
{
    struct rig rig;

    rig_open_started(&rig, &(struct wire_options){.no_linger = true}, NULL);
    rig_write(&rig, "x", NULL);
    diary_clear(&rig.diary);
    weir_channel_close(rig.channel, NULL);
    assert_diary(&rig.diary, "a.close FLUSH CLOSE");
    assert_sent(&rig, "x");
    rig_close(&rig);

    rig_open_started(&rig, NULL, WEIR_CHANNEL_OPTIONS(.reset_on_close = true));
    weir_channel_close(rig.channel, NULL);
    assert_diary(&rig.diary, "a.close CLOSE");
    rig_close(&rig);
}

TEST(life, without_memory_for_a_deadline_close_does_not_wait)
{
    struct rig rig;

    rig_open_started(&rig, NULL, NULL);
    test_memory_fail_at(1);
    weir_channel_close(rig.channel, NULL);
    assert_true(test_memory_failed());
    test_memory_fail_at(0);
    assert_diary(&rig.diary, "a.close CLOSE");
    rig_close(&rig);
}

TEST(life, abort_ends_a_close_that_waits)
{
    struct rig rig;
    weir_promise *close, *abort;

    rig_open_started(&rig, NULL, NULL);
    close = rig_promise(&rig, "close");
    abort = rig_promise(&rig, "abort");
    weir_channel_close(rig.channel, close);
    weir_channel_abort(rig.channel, abort);
    assert_diary(&rig.diary, "a.close FIN CLOSE close=ok abort=ok");
    weir_promise_release(close);
    weir_promise_release(abort);
    rig_close(&rig);
}

TEST(life, an_error_of_the_transport_is_an_event_and_ends_the_channel)
{
    struct rig rig;

    rig_open_started(&rig, NULL, NULL);
    rig_write(&rig, "x", "x");
    diary_clear(&rig.diary);
    weir__channel_input_ended(rig.channel, -ECONNRESET);
    assert_diary(&rig.diary, "a.error(ECONNRESET) a.close FLUSH x=ok CLOSE");
    rig_close(&rig);

    rig_open_started(&rig, NULL, WEIR_CHANNEL_OPTIONS(.keep_open_on_error = true));
    log_capture_start();
    weir__channel_failed(rig.channel, -EIO, "it broke");
    assert_diary(&rig.diary, "a.error(EIO) CLOSE");
    assert_true(log_capture_last_contains("it broke"));
    rig_close(&rig);
}

TEST(life, an_error_at_the_tail_closes_unless_it_is_to_stay_open)
{
    struct rig rig;

    log_capture_start();
    rig_open_started(&rig, NULL, WEIR_CHANNEL_OPTIONS(.keep_open_on_error = true));
    weir_pipeline_fire_error(rig.pipeline, -EPROTO, "nonsense");
    assert_diary(&rig.diary, "a.error(EPROTO)");
    assert_int_equal(log_capture_count(WEIR_LOG_WARN), 1);
    assert_true(log_capture_last_contains("nonsense"));
    assert_true(weir_channel_is_open(rig.channel));
    rig_close(&rig);

    rig_open_started(&rig, NULL, NULL);
    weir_pipeline_fire_error(rig.pipeline, -ECONNRESET, NULL); /* no news */
    assert_diary(&rig.diary, "a.error(ECONNRESET) a.close FIN");
    assert_int_equal(log_capture_count(WEIR_LOG_WARN), 1);
    rig_close(&rig);
}

/* The name of the channel costs system calls. */
TEST(life, errors_at_the_tail_are_limited_for_each_kind)
{
    struct rig rig;

    rig_open_started(&rig, NULL, WEIR_CHANNEL_OPTIONS(.keep_open_on_error = true));
    log_capture_start();
    for (int i = 0; i < 100; i++)
        weir_pipeline_fire_error(rig.pipeline, -EDOM, "again");
    assert_int_equal(log_capture_count(WEIR_LOG_WARN), 10);
    for (int i = 0; i < 100; i++) {
        weir_pipeline_fire_error(rig.pipeline, -ERANGE, "and again");
        weir_pipeline_fire_error(rig.pipeline, WEIR_EFULL, "and once more");
        weir_pipeline_fire_error(rig.pipeline, -5000 - i, "of no kind");
    }
    assert_int_equal(log_capture_count(WEIR_LOG_WARN), 40);
    rig_close(&rig);

    rig_open_started(&rig, NULL, WEIR_CHANNEL_OPTIONS(.keep_open_on_error = true));
    weir_pipeline_fire_error(rig.pipeline, -EDOM, "again");
    weir_pipeline_fire_error(rig.pipeline, -ECONNRESET, "not at this level");
    assert_int_equal(rig.wire->address_calls, 0);
    rig_close(&rig);
}

/* ---- shutdown ---- */

TEST(life, draining_closes_a_channel_none_of_whose_handlers_listens)
{
    struct rig rig;

    rig_open_with(&rig, NULL, NULL);
    assert_int_equal(weir_pipeline_add_last(rig.pipeline, &bystander, SPY(&rig.diary, "b")), 0);
    rig_start(&rig);
    diary_clear(&rig.diary);
    weir__channel_drain(rig.channel);
    assert_diary(&rig.diary, "FIN");
    rig_close(&rig);
}

TEST(life, draining_is_told_once_to_handlers_that_listen)
{
    struct rig rig;

    rig_open_started(&rig, NULL, NULL);
    weir__channel_drain(rig.channel);
    weir__channel_drain(rig.channel);
    assert_diary(&rig.diary, "a.draining");
    assert_true(weir_channel_is_open(rig.channel));
    rig_close(&rig);

    rig_open_started(&rig, &(struct wire_options){.accepts = true}, NULL);
    weir__channel_drain(rig.channel);
    assert_diary(&rig.diary, "a.close CLOSE");
    rig_close(&rig);
}

static void nothing(void *arg)
{
    (void)arg;
}

/* DESIGN 7: whatever came first, no new connections come when the others hear of it. */
TEST(life, draining_closes_listeners_before_the_others_hear_of_it)
{
    weir_group *group;
    weir_channel *channels[2];
    struct diary diary;

    assert_int_equal(
        weir_group_create(WEIR_GROUP_OPTIONS(.threads = 1, .io = WEIR_IO_EPOLL), &group), 0);
    diary_open(&diary);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(wire_create(&diary,
                                     &(struct wire_options){.silent = true, .accepts = i == 1},
                                     NULL, NULL, &channels[i]),
                         0);
        assert_int_equal(weir_pipeline_add_last(weir_channel_pipeline(channels[i]), &spy,
                                                i == 0 ? SPY(&diary, "c") : SPY(&diary, "l")),
                         0);
        weir_group_register(group, channels[i], NULL);
    }
    run_on_executor(weir_group_at(group, 0), nothing, NULL);
    diary_clear(&diary);
    assert_int_equal(weir_group_shutdown(group, 0, weir_ms(50)), 0);
    assert_int_equal(weir_group_await_termination(group, TEST_TIMEOUT_NS), 0);
    assert_memory_equal(diary.text, "l.close c.draining", strlen("l.close c.draining"));
    weir_channel_release(channels[0]);
    weir_channel_release(channels[1]);
    weir_group_release(group);
    diary_close(&diary);
}

/* ---- memory ---- */

TEST(life, a_channel_that_cannot_be_made_leaves_nothing)
{
    struct diary diary;
    weir_channel *channel;
    unsigned n;
    int err;

    diary_open(&diary);
    for (n = 1;; n++) {
        test_memory_fail_at(n);
        err = wire_create(&diary, NULL, NULL, NULL, &channel);
        if (!test_memory_failed())
            break;
        assert_int_equal(err, -ENOMEM);
    }
    test_memory_fail_at(0);
    assert_int_equal(n, 3);
    weir_channel_release(channel);
    diary_close(&diary);
}

TEST(life, ids_are_never_used_twice)
{
    struct rig rig;
    uint64_t id;

    rig_open(&rig);
    id = weir_channel_id(rig.channel);
    rig_close(&rig);
    rig_open(&rig);
    assert_true(weir_channel_id(rig.channel) > id);
    rig_close(&rig);
}

TEST(life, a_channel_without_a_loop_has_left_it)
{
    struct rig rig;
    weir_promise *done;

    rig_open(&rig);
    done = rig_promise(&rig, "done");
    weir_channel_deregister(rig.channel, done);
    rig_run(&rig);
    assert_diary(&rig.diary, "done=ok");
    weir_promise_release(done);
    rig_close(&rig);
}
