/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a channel moves from one loop to another.
 */
#include <errno.h>
#include <string.h>

#include <weir/error.h>

#include "support/channel/test_channel.h"
#include "support/executor/gate.h"
#include "support/executor/global_executor.h"
#include "support/executor/group.h"
#include "support/executor/log_capture.h"
#include "support/executor/run_on_thread.h"
#include "support/memory.h"
#include "support/timeout.h"

TEST(lifecycle, a_channel_can_leave_its_loop_and_come_to_another)
{
    struct test_channel tc;
    struct stepper other = stepper_open();
    weir_promise *left, *came;

    tc_open_started(&tc, NULL, NULL);
    left = tc_promise(&tc, "left");
    weir_channel_deregister(tc.channel, left);
    assert_events(&tc.events, "a.deregister");
    tc_run(&tc);
    assert_events(&tc.events, "STOP DETACH a.unregistered left=ok");
    assert_false(weir_channel_is_registered(tc.channel));
    assert_true(weir_channel_is_active(tc.channel));

    came = tc_promise(&tc, "came");
    weir_channel_register(tc.channel, other.executor, came);
    assert_events(&tc.events, "ATTACH came=ok a.registered a.request_read READ");
    assert_ptr_equal(weir_channel_executor(tc.channel), other.executor);
    assert_ptr_equal(weir_ctx_executor(weir_pipeline_find(tc.pipeline, "a")), other.executor);
    (void)tc_receive(&tc, "x");
    assert_events(&tc.events, "a.read(x)");
    weir_channel_abort(tc.channel, NULL);
    (void)stepper_run(&other);
    assert_events(&tc.events, "CLOSE a.inactive a.unregistered a.removed a.deinit");
    weir_promise_release(left);
    weir_promise_release(came);
    tc_close(&tc);
    stepper_close(&other);
}

static weir_executor *destination;

static void move_on(weir_ctx *ctx)
{
    weir_channel_register(weir_ctx_channel(ctx), destination, NULL);
    weir_fire_unregistered(ctx);
}

/* Otherwise two loops would run its handlers at the same time. */
TEST(lifecycle, a_move_in_unregistered_waits_for_all_handlers)
{
    static weir_handler mover;
    struct stepper other = stepper_open();
    struct test_channel tc;

    mover = event_recorder;
    mover.unregistered = move_on;
    destination = other.executor;
    tc_open(&tc);
    assert_int_equal(weir_pipeline_add_last(tc.pipeline, &mover, EVENT_RECORDER(&tc.events, "m")),
                     0);
    tc_add(&tc, "a");
    tc_start(&tc);
    event_log_clear(&tc.events);
    weir_channel_deregister(tc.channel, NULL);
    tc_run(&tc);
    (void)stepper_run(&other);
    assert_events(&tc.events, "a.deregister m.deregister STOP DETACH a.unregistered ATTACH "
                              "m.registered a.registered a.request_read m.request_read READ");
    assert_ptr_equal(weir_channel_executor(tc.channel), other.executor);
    destination = tc.stepper.executor; /* `unregistered` comes once more, when it ends */
    weir_channel_abort(tc.channel, NULL);
    (void)stepper_run(&other);
    tc_close(&tc);
    stepper_close(&other);
}

TEST(lifecycle, an_abort_while_it_leaves_ends_both)
{
    struct test_channel tc;
    weir_promise *left, *closed;

    tc_open_started(&tc, &(struct wire_options){.slow_close = true}, NULL);
    left = tc_promise(&tc, "left");
    closed = tc_promise(&tc, "closed");
    weir_channel_deregister(tc.channel, left);
    tc_run(&tc);
    weir_channel_abort(tc.channel, closed);
    assert_events(&tc.events, "a.deregister STOP DETACH CLOSE");
    tc_finish_detach(&tc);
    assert_events(&tc.events, "closed=ok left=ok");
    tc_run(&tc);
    assert_events(&tc.events, "a.inactive a.unregistered a.removed a.deinit");
    weir_promise_release(left);
    weir_promise_release(closed);
    tc_close(&tc);
}

/* Written and not sent, on the way out of its loop, and closed. */
static void open_leaving(struct test_channel *tc, weir_promise **ret_left)
{
    tc_open_started(tc, &(struct wire_options){.slow_close = true}, NULL);
    tc->wire->room = 0;
    tc_write(tc, "last", "sent");
    weir_channel_flush(tc->channel);
    tc_write(tc, "words", "sent");
    *ret_left = tc_promise(tc, "left");
    weir_channel_deregister(tc->channel, *ret_left);
    tc_run(tc);
    assert_events(&tc->events,
                  "a.write(last) a.flush FLUSH a.write(words) a.deregister STOP DETACH");
    weir_channel_close(tc->channel, NULL);
    assert_events(&tc->events, "a.close");
    assert_false(weir_channel_is_open(tc->channel));
    tc->wire->options.slow_close = false;
}

/* The loop gets it again, for what is still to be sent. */
TEST(lifecycle, a_close_while_it_leaves_sends_what_was_written)
{
    struct test_channel tc;
    weir_promise *left;

    open_leaving(&tc, &left);
    tc_finish_detach(&tc);
    assert_events(&tc.events, "ATTACH READ FLUSH");
    tc_make_room(&tc, 100);
    assert_sent(&tc, "lastwords");
    assert_events(&tc.events, "FLUSH sent=ok sent=ok FIN");
    tc_end_input(&tc);
    assert_events(&tc.events, "CLOSE left=ok");
    tc_run(&tc);
    assert_events(&tc.events, "a.inactive a.unregistered a.removed a.deinit");
    weir_promise_release(left);
    tc_close(&tc);
}

TEST(lifecycle, a_close_while_it_leaves_has_a_deadline_from_then_on)
{
    struct test_channel tc;
    weir_promise *left;

    open_leaving(&tc, &left);
    log_capture_start();
    stepper_advance(&tc.stepper, weir_seconds(30));
    assert_events(&tc.events, "RESET CLOSE left=ok sent=ETIMEDOUT sent=ETIMEDOUT a.inactive "
                              "a.unregistered a.removed a.deinit");
    weir_promise_release(left);
    tc_close(&tc);
}

TEST(lifecycle, a_close_while_it_leaves_ends_it_if_its_loop_does_not_take_it_again)
{
    struct test_channel tc;
    weir_promise *left;

    open_leaving(&tc, &left);
    tc.wire->options.attach_err = -ENOMEM;
    tc_finish_detach(&tc);
    assert_events(&tc.events, "ATTACH RESET CLOSE left=ok sent=ENOMEM sent=ENOMEM");
    tc_run(&tc);
    assert_events(&tc.events, "a.inactive a.unregistered a.removed a.deinit");
    weir_promise_release(left);
    tc_close(&tc);
}

/* Or the peer would see a reset. */
TEST(lifecycle, a_close_while_it_leaves_waits_for_the_peer)
{
    struct test_channel tc;

    tc_open_started(&tc, &(struct wire_options){.slow_close = true}, NULL);
    weir_channel_deregister(tc.channel, NULL);
    tc_run(&tc);
    weir_channel_close(tc.channel, NULL);
    tc.wire->options.slow_close = false;
    tc_finish_detach(&tc);
    assert_events(&tc.events, "a.deregister STOP DETACH a.close ATTACH READ FIN");
    tc_end_input(&tc);
    assert_events(&tc.events, "CLOSE");
    tc_close(&tc);
}

TEST(lifecycle, a_channel_leaves_when_its_transport_has_let_go)
{
    struct test_channel tc;
    weir_promise *first, *second, *third;

    tc_open_started(&tc, &(struct wire_options){.slow_close = true}, NULL);
    first = tc_promise(&tc, "first");
    second = tc_promise(&tc, "second");
    third = tc_promise(&tc, "third");
    weir_channel_deregister(tc.channel, first);
    tc_run(&tc);
    weir_channel_deregister(tc.channel, second);
    tc_run(&tc);
    assert_events(&tc.events, "a.deregister STOP DETACH a.deregister");
    tc_finish_detach(&tc);
    assert_events(&tc.events, "a.unregistered first=ok second=ok");
    weir_channel_deregister(tc.channel, third); /* it is out already */
    tc_run(&tc);
    assert_events(&tc.events, "a.deregister third=ok");
    weir_promise_release(first);
    weir_promise_release(second);
    weir_promise_release(third);
    tc_close(&tc);
}

TEST(lifecycle, a_channel_that_connects_does_not_leave)
{
    struct test_channel tc;
    weir_address address;
    weir_promise *left;

    tc_open_started(&tc, &(struct wire_options){.idle = true}, NULL);
    assert_int_equal(weir_address_parse(":1", &address), 0);
    weir_channel_connect(tc.channel, &address, NULL, NULL);
    left = tc_promise(&tc, "left");
    weir_channel_deregister(tc.channel, left);
    tc_run(&tc);
    assert_int_equal(weir_promise_result(left), -EBUSY);
    weir_promise_release(left);
    tc_close(&tc);
}

TEST(lifecycle, a_channel_without_a_loop_and_a_holder_ends_where_it_was_last)
{
    struct test_channel tc;

    tc_open_started(&tc, NULL, NULL);
    weir_channel_deregister(tc.channel, NULL);
    tc_run(&tc);
    event_log_clear(&tc.events);
    weir_channel_release(tc.channel);
    tc_run(&tc);
    assert_events(&tc.events, "CLOSE a.inactive a.removed a.deinit DESTROY");
    stepper_close(&tc.stepper);
    event_log_close(&tc.events);
}

/* ---- the loop that it left has ended ---- */

/* A test channel whose channel has left its loop, which has ended since. */
static void open_left_behind(struct test_channel *tc)
{
    tc_open_started(tc, NULL, NULL);
    weir_channel_deregister(tc->channel, NULL);
    tc_run(tc);
    assert_int_equal(weir_executor_shutdown(tc->stepper.executor, 0, 0), 0);
    tc_run(tc);
    event_log_clear(&tc->events);
}

struct registration {
    weir_channel *channel;
    weir_executor *loop;
    weir_promise *done;
    unsigned fails_at; /* which allocation, 0 = none */
};

static void register_it(void *arg)
{
    struct registration *registration = arg;

    test_memory_fail_at(registration->fails_at);
    weir_channel_register(registration->channel, registration->loop, registration->done);
}

/* By a thread that is not the old loop's. */
static void register_from_elsewhere(weir_channel *channel, struct stepper *loop, weir_promise *done)
{
    run_on_other_thread(register_it, &(struct registration){channel, loop->executor, done, 0});
}

/* The channel's own task makes the move, on the global executor. */
static void await_move(struct stepper *loop, weir_promise *done)
{
    global_executor_stop();
    (void)stepper_run(loop);
    assert_true(weir_promise_is_done(done));
}

static weir_promise *plain_promise(void)
{
    weir_promise *promise = NULL;

    assert_int_equal(weir_promise_create(NULL, &promise), 0);
    return promise;
}

TEST(lifecycle, a_channel_whose_loop_has_ended_can_be_registered_again)
{
    struct stepper other = stepper_open();
    weir_promise *came = plain_promise(), *again = plain_promise();
    struct test_channel tc;

    open_left_behind(&tc);
    register_from_elsewhere(tc.channel, &other, came);
    register_from_elsewhere(tc.channel, &other, again);
    await_move(&other, came);
    await_move(&other, again);
    assert_int_equal(weir_promise_result(came), 0);
    assert_int_equal(weir_promise_result(again), -EALREADY);
    assert_events(&tc.events, "ATTACH a.registered a.request_read READ");
    assert_ptr_equal(weir_channel_executor(tc.channel), other.executor);
    (void)tc_receive(&tc, "x");
    assert_events(&tc.events, "a.read(x)");
    weir_channel_abort(tc.channel, NULL);
    (void)stepper_run(&other);
    assert_events(&tc.events, "CLOSE a.inactive a.unregistered a.removed a.deinit");
    weir_promise_release(came);
    weir_promise_release(again);
    tc_close(&tc);
    stepper_close(&other);
}

TEST(lifecycle, a_channel_whose_loops_have_both_ended_is_closed)
{
    struct stepper other = stepper_open();
    weir_promise *came = plain_promise();
    struct test_channel tc;

    open_left_behind(&tc);
    assert_int_equal(weir_executor_shutdown(other.executor, 0, 0), 0);
    (void)stepper_run(&other);
    register_from_elsewhere(tc.channel, &other, came);
    await_move(&other, came);
    assert_int_equal(weir_promise_result(came), WEIR_EREJECTED);
    assert_int_equal(weir_channel_await_closed(tc.channel, TEST_TIMEOUT_NS), 0);
    weir_promise_release(came);
    tc_close(&tc);
    stepper_close(&other);
}

static void move_and_close(void *arg)
{
    struct registration *registration = arg;

    weir_channel_register(registration->channel, registration->loop, registration->done);
    weir_channel_write_and_flush(registration->channel, text_msg("x"), NULL);
    weir_channel_close(registration->channel, NULL);
}

/* The order holds across a move, also for what is posted before it is made. */
TEST(lifecycle, a_call_that_is_posted_after_a_move_comes_after_the_registration)
{
    struct stepper other = stepper_open();
    struct registration registration = {.loop = other.executor};
    struct test_channel tc;

    tc_open_started(&tc, NULL, NULL);
    weir_channel_deregister(tc.channel, NULL);
    tc_run(&tc);
    event_log_clear(&tc.events);
    registration.channel = tc.channel;
    registration.done = tc_promise(&tc, "came");
    run_on_other_thread(move_and_close, &registration);
    assert_events(&tc.events, "");
    tc_run(&tc);
    assert_ptr_equal(weir_channel_executor(tc.channel), other.executor);
    (void)stepper_run(&other);
    tc_run(&tc); /* the promise */
    assert_int_equal(weir_promise_result(registration.done), 0);
    assert_sent(&tc, "x");
    weir_promise_release(registration.done);
    weir_channel_abort(tc.channel, NULL);
    (void)stepper_run(&other);
    tc_close(&tc);
    stepper_close(&other);
}

static void write_two(void *channel)
{
    weir_channel_write(channel, text_msg("two"), NULL);
}

/* The writer cannot know that its loop has ended, and goes on writing to the next one. */
TEST(lifecycle, a_write_that_is_lost_between_two_loops_resets_the_stream)
{
    struct stepper other = stepper_open();
    struct gate gate = {0};
    struct test_channel tc;

    open_left_behind(&tc);
    log_capture_start();
    gate_hold(&gate, weir_executor_global()); /* the mailbox has to wait */
    run_on_other_thread(write_two, tc.channel);
    weir_channel_register(tc.channel, other.executor, NULL);
    tc_write(&tc, "four", NULL);
    weir_channel_flush(tc.channel);
    assert_sent(&tc, "");
    gate_open(&gate);
    global_executor_stop();
    (void)stepper_run(&other);
    assert_sent(&tc, "");
    assert_events(&tc.events, "ATTACH a.registered a.request_read READ a.write(four) a.flush "
                              "a.error(WEIR_EREJECTED) a.close RESET CLOSE a.inactive "
                              "a.unregistered a.removed a.deinit");
    tc_close(&tc);
    stepper_close(&other);
}

/* Nothing is queued, but the peer must not take the end of the stream for the end of the data. */
TEST(lifecycle, a_write_that_is_lost_without_a_loop_resets_the_stream)
{
    struct test_channel tc;

    open_left_behind(&tc);
    log_capture_start();
    run_on_other_thread(write_two, tc.channel);
    global_executor_stop();
    assert_events(&tc.events, "RESET CLOSE a.inactive a.removed a.deinit");
    assert_log_contains("did not reach its loop: the connection is reset");
    tc_close(&tc);
}

/* Its peer must not take the end for the end of the data, though nothing is queued. */
TEST(lifecycle, an_active_stream_that_no_loop_takes_is_reset)
{
    struct stepper other = stepper_open();
    struct test_channel tc;

    tc_open_started(&tc, NULL, NULL);
    weir_channel_deregister(tc.channel, NULL);
    tc_run(&tc);
    event_log_clear(&tc.events);
    log_capture_start();
    tc.wire->options.attach_err = -EMFILE;
    weir_channel_register(tc.channel, other.executor, NULL);
    assert_events(&tc.events, "ATTACH RESET CLOSE");
    (void)stepper_run(&other);
    assert_events(&tc.events, "a.inactive a.removed a.deinit");
    tc_close(&tc);
    stepper_close(&other);
}

TEST(lifecycle, an_active_stream_that_no_executor_suits_is_reset)
{
    struct test_channel tc;

    tc_open_started(&tc, NULL, NULL);
    weir_channel_deregister(tc.channel, NULL);
    tc_run(&tc);
    event_log_clear(&tc.events);
    log_capture_start();
    weir_channel_register(tc.channel, weir_executor_immediate(), NULL);
    tc_run(&tc);
    assert_events(&tc.events, "RESET CLOSE a.inactive a.removed a.deinit");
    tc_close(&tc);
}

/* Whatever is wanting, the move is made or fails. */
static bool move_without_memory(struct stepper *other, unsigned nth)
{
    weir_promise *came = plain_promise();
    struct test_channel tc;
    bool has_failed;

    open_left_behind(&tc);
    run_on_other_thread(register_it,
                        &(struct registration){tc.channel, other->executor, came, nth});
    await_move(other, came);
    has_failed = test_memory_failed();
    test_memory_fail_at(0);
    if (weir_promise_result(came) < 0)
        assert_int_equal(weir_promise_result(came), -ENOMEM);
    weir_channel_abort(tc.channel, NULL);
    (void)stepper_run(other);
    assert_int_equal(weir_channel_await_closed(tc.channel, TEST_TIMEOUT_NS), 0);
    (void)stepper_run(other);
    weir_promise_release(came);
    tc_close(&tc);
    return has_failed;
}

TEST(lifecycle, a_move_from_a_loop_that_has_ended_may_want_memory)
{
    struct stepper other = stepper_open();
    unsigned nth = 1;

    log_capture_start();
    while (move_without_memory(&other, nth))
        nth++;
    assert_true(nth > 1);
    stepper_close(&other);
}
