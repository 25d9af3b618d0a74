/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a channel moves from one loop to another.
 */
#include <errno.h>
#include <string.h>

#include <weir/error.h>

#include "support/channel/test_channel.h"
#include "support/executor/global_executor.h"
#include "support/executor/group.h"
#include "support/executor/log_capture.h"
#include "support/executor/run_on_thread.h"
#include "support/memory.h"
#include "support/timeout.h"

/* D 23, D 78 */
TEST(life, a_channel_can_leave_its_loop_and_come_to_another)
{
    struct rig rig;
    struct stepper other = stepper_open();
    weir_promise *left, *came;

    rig_open_started(&rig, NULL, NULL);
    left = rig_promise(&rig, "left");
    weir_channel_deregister(rig.channel, left);
    assert_diary(&rig.diary, "a.deregister");
    rig_run(&rig);
    assert_diary(&rig.diary, "STOP DETACH a.unregistered left=ok");
    assert_false(weir_channel_is_registered(rig.channel));
    assert_true(weir_channel_is_active(rig.channel));

    came = rig_promise(&rig, "came");
    weir_channel_register(rig.channel, other.executor, came);
    assert_diary(&rig.diary, "ATTACH came=ok a.registered a.request_read READ");
    assert_ptr_equal(weir_channel_executor(rig.channel), other.executor);
    assert_ptr_equal(weir_ctx_executor(weir_pipeline_find(rig.pipeline, "a")), other.executor);
    (void)rig_receive(&rig, "x");
    assert_diary(&rig.diary, "a.read(x)");
    weir_channel_abort(rig.channel, NULL);
    (void)stepper_run(&other);
    assert_diary(&rig.diary, "CLOSE a.inactive a.unregistered a.removed a.deinit");
    weir_promise_release(left);
    weir_promise_release(came);
    rig_close(&rig);
    stepper_close(&other);
}

static weir_executor *destination;

static void move_on(weir_ctx *ctx)
{
    weir_channel_register(weir_ctx_channel(ctx), destination, NULL);
    weir_fire_unregistered(ctx);
}

/* Otherwise two loops would run its handlers at the same time. */
TEST(life, who_hears_that_it_leaves_moves_it_when_all_have_heard)
{
    static weir_handler mover;
    struct stepper other = stepper_open();
    struct rig rig;

    mover = spy;
    mover.unregistered = move_on;
    destination = other.executor;
    rig_open(&rig);
    assert_int_equal(weir_pipeline_add_last(rig.pipeline, &mover, SPY(&rig.diary, "m")), 0);
    rig_add(&rig, "a");
    rig_start(&rig);
    diary_clear(&rig.diary);
    weir_channel_deregister(rig.channel, NULL);
    rig_run(&rig);
    (void)stepper_run(&other);
    assert_diary(&rig.diary, "a.deregister m.deregister STOP DETACH a.unregistered ATTACH "
                             "m.registered a.registered a.request_read m.request_read READ");
    assert_ptr_equal(weir_channel_executor(rig.channel), other.executor);
    destination = rig.stepper.executor; /* `unregistered` comes once more, when it ends */
    weir_channel_abort(rig.channel, NULL);
    (void)stepper_run(&other);
    rig_close(&rig);
    stepper_close(&other);
}

TEST(life, an_abort_while_it_leaves_ends_both)
{
    struct rig rig;
    weir_promise *left, *closed;

    rig_open_started(&rig, &(struct wire_options){.slow_close = true}, NULL);
    left = rig_promise(&rig, "left");
    closed = rig_promise(&rig, "closed");
    weir_channel_deregister(rig.channel, left);
    rig_run(&rig);
    weir_channel_abort(rig.channel, closed);
    assert_diary(&rig.diary, "a.deregister STOP DETACH CLOSE");
    rig_let_go(&rig);
    assert_diary(&rig.diary, "closed=ok left=ok");
    rig_run(&rig);
    assert_diary(&rig.diary, "a.inactive a.unregistered a.removed a.deinit");
    weir_promise_release(left);
    weir_promise_release(closed);
    rig_close(&rig);
}

/* Written and not sent, on the way out of its loop, and closed. */
static void open_leaving(struct rig *rig, weir_promise **ret_left)
{
    rig_open_started(rig, &(struct wire_options){.slow_close = true}, NULL);
    rig->wire->room = 0;
    rig_write(rig, "last", "sent");
    weir_channel_flush(rig->channel);
    rig_write(rig, "words", "sent");
    *ret_left = rig_promise(rig, "left");
    weir_channel_deregister(rig->channel, *ret_left);
    rig_run(rig);
    assert_diary(&rig->diary,
                 "a.write(last) a.flush FLUSH a.write(words) a.deregister STOP DETACH");
    weir_channel_close(rig->channel, NULL);
    assert_diary(&rig->diary, "a.close");
    assert_false(weir_channel_is_open(rig->channel));
    rig->wire->options.slow_close = false;
}

/* B 11: the loop gets it again, for what is still to be sent. */
TEST(life, a_close_while_it_leaves_sends_what_was_written)
{
    struct rig rig;
    weir_promise *left;

    open_leaving(&rig, &left);
    rig_let_go(&rig);
    assert_diary(&rig.diary, "ATTACH READ FLUSH");
    rig_make_room(&rig, 100);
    assert_sent(&rig, "lastwords");
    assert_diary(&rig.diary, "FLUSH sent=ok sent=ok FIN");
    rig_end_input(&rig);
    assert_diary(&rig.diary, "CLOSE left=ok");
    rig_run(&rig);
    assert_diary(&rig.diary, "a.inactive a.unregistered a.removed a.deinit");
    weir_promise_release(left);
    rig_close(&rig);
}

TEST(life, a_close_while_it_leaves_has_a_deadline_from_then_on)
{
    struct rig rig;
    weir_promise *left;

    open_leaving(&rig, &left);
    log_capture_start();
    stepper_advance(&rig.stepper, weir_seconds(30));
    assert_diary(&rig.diary, "RESET CLOSE left=ok sent=ETIMEDOUT sent=ETIMEDOUT a.inactive "
                             "a.unregistered a.removed a.deinit");
    weir_promise_release(left);
    rig_close(&rig);
}

TEST(life, a_close_while_it_leaves_ends_it_if_its_loop_does_not_take_it_again)
{
    struct rig rig;
    weir_promise *left;

    open_leaving(&rig, &left);
    rig.wire->options.attach_err = -ENOMEM;
    rig_let_go(&rig);
    assert_diary(&rig.diary, "ATTACH RESET CLOSE left=ok sent=ENOMEM sent=ENOMEM");
    rig_run(&rig);
    assert_diary(&rig.diary, "a.inactive a.unregistered a.removed a.deinit");
    weir_promise_release(left);
    rig_close(&rig);
}

/* B 11: or the peer would see a reset. */
TEST(life, a_close_while_it_leaves_waits_for_the_peer)
{
    struct rig rig;

    rig_open_started(&rig, &(struct wire_options){.slow_close = true}, NULL);
    weir_channel_deregister(rig.channel, NULL);
    rig_run(&rig);
    weir_channel_close(rig.channel, NULL);
    rig.wire->options.slow_close = false;
    rig_let_go(&rig);
    assert_diary(&rig.diary, "a.deregister STOP DETACH a.close ATTACH READ FIN");
    rig_end_input(&rig);
    assert_diary(&rig.diary, "CLOSE");
    rig_close(&rig);
}

TEST(life, a_channel_leaves_when_its_transport_has_let_go)
{
    struct rig rig;
    weir_promise *first, *second, *third;

    rig_open_started(&rig, &(struct wire_options){.slow_close = true}, NULL);
    first = rig_promise(&rig, "first");
    second = rig_promise(&rig, "second");
    third = rig_promise(&rig, "third");
    weir_channel_deregister(rig.channel, first);
    rig_run(&rig);
    weir_channel_deregister(rig.channel, second);
    rig_run(&rig);
    assert_diary(&rig.diary, "a.deregister STOP DETACH a.deregister");
    rig_let_go(&rig);
    assert_diary(&rig.diary, "a.unregistered first=ok second=ok");
    weir_channel_deregister(rig.channel, third); /* it is out already */
    rig_run(&rig);
    assert_diary(&rig.diary, "a.deregister third=ok");
    weir_promise_release(first);
    weir_promise_release(second);
    weir_promise_release(third);
    rig_close(&rig);
}

TEST(life, a_channel_that_connects_does_not_leave)
{
    struct rig rig;
    weir_address address;
    weir_promise *left;

    rig_open_started(&rig, &(struct wire_options){.idle = true}, NULL);
    assert_int_equal(weir_address_parse(":1", &address), 0);
    weir_channel_connect(rig.channel, &address, NULL, NULL);
    left = rig_promise(&rig, "left");
    weir_channel_deregister(rig.channel, left);
    rig_run(&rig);
    assert_int_equal(weir_promise_result(left), -EBUSY);
    weir_promise_release(left);
    rig_close(&rig);
}

TEST(life, a_channel_without_a_loop_and_a_holder_ends_where_it_was_last)
{
    struct rig rig;

    rig_open_started(&rig, NULL, NULL);
    weir_channel_deregister(rig.channel, NULL);
    rig_run(&rig);
    diary_clear(&rig.diary);
    weir_channel_release(rig.channel);
    rig_run(&rig);
    assert_diary(&rig.diary, "CLOSE a.inactive a.removed a.deinit DESTROY");
    stepper_close(&rig.stepper);
    diary_close(&rig.diary);
}

/* ---- the loop that it left has ended ---- */

/* A rig whose channel has left its loop, which has ended since. */
static void open_left_behind(struct rig *rig)
{
    rig_open_started(rig, NULL, NULL);
    weir_channel_deregister(rig->channel, NULL);
    rig_run(rig);
    assert_int_equal(weir_executor_shutdown(rig->stepper.executor, 0, 0), 0);
    rig_run(rig);
    diary_clear(&rig->diary);
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

TEST(life, a_channel_whose_loop_has_ended_can_come_to_another)
{
    struct stepper other = stepper_open();
    weir_promise *came = plain_promise(), *again = plain_promise();
    struct rig rig;

    open_left_behind(&rig);
    register_from_elsewhere(rig.channel, &other, came);
    register_from_elsewhere(rig.channel, &other, again);
    await_move(&other, came);
    await_move(&other, again);
    assert_int_equal(weir_promise_result(came), 0);
    assert_int_equal(weir_promise_result(again), -EALREADY);
    assert_diary(&rig.diary, "ATTACH a.registered a.request_read READ");
    assert_ptr_equal(weir_channel_executor(rig.channel), other.executor);
    (void)rig_receive(&rig, "x");
    assert_diary(&rig.diary, "a.read(x)");
    weir_channel_abort(rig.channel, NULL);
    (void)stepper_run(&other);
    assert_diary(&rig.diary, "CLOSE a.inactive a.unregistered a.removed a.deinit");
    weir_promise_release(came);
    weir_promise_release(again);
    rig_close(&rig);
    stepper_close(&other);
}

TEST(life, a_channel_whose_loops_have_both_ended_is_closed)
{
    struct stepper other = stepper_open();
    weir_promise *came = plain_promise();
    struct rig rig;

    open_left_behind(&rig);
    assert_int_equal(weir_executor_shutdown(other.executor, 0, 0), 0);
    (void)stepper_run(&other);
    register_from_elsewhere(rig.channel, &other, came);
    await_move(&other, came);
    assert_int_equal(weir_promise_result(came), WEIR_EREJECTED);
    assert_int_equal(weir_channel_await_closed(rig.channel, TEST_TIMEOUT_NS), 0);
    weir_promise_release(came);
    rig_close(&rig);
    stepper_close(&other);
}

/* Whatever is wanting, the move is made or fails. */
static bool move_without_memory(struct stepper *other, unsigned nth)
{
    weir_promise *came = plain_promise();
    struct rig rig;
    bool has_failed;

    open_left_behind(&rig);
    run_on_other_thread(register_it,
                        &(struct registration){rig.channel, other->executor, came, nth});
    await_move(other, came);
    has_failed = test_memory_failed();
    test_memory_fail_at(0);
    if (weir_promise_result(came) < 0)
        assert_int_equal(weir_promise_result(came), -ENOMEM);
    weir_channel_abort(rig.channel, NULL);
    (void)stepper_run(other);
    assert_int_equal(weir_channel_await_closed(rig.channel, TEST_TIMEOUT_NS), 0);
    (void)stepper_run(other);
    weir_promise_release(came);
    rig_close(&rig);
    return has_failed;
}

TEST(life, a_move_from_a_loop_that_has_ended_may_want_memory)
{
    struct stepper other = stepper_open();
    unsigned nth = 1;

    log_capture_start();
    while (move_without_memory(&other, nth))
        nth++;
    assert_true(nth > 1);
    stepper_close(&other);
}
