/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What other threads ask of a channel.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <weir/error.h>

#include "channel/channel.h"
#include "os/thread.h"
#include "support/channel/test_channel.h"
#include "support/executor/global_executor.h"
#include "support/executor/log_capture.h"
#include "support/executor/manual_fixture.h"
#include "support/executor/run_on_thread.h"
#include "support/executor/single_executor.h"
#include "support/memory.h"

/* ---- one thing at a time ---- */

/* What a stranger does to a channel, on a thread of its own. */
struct stranger {
    weir_channel *channel;
    weir_promise *done;
    weir_executor *loop;
    weir_address address;
    const char *text;
    struct event_log *events;
    int result;
};

static struct stranger stranger_at(struct test_channel *tc)
{
    struct stranger stranger = {
        .channel = tc->channel, .loop = tc->stepper.executor, .text = "x", .events = &tc->events};

    assert_int_equal(weir_address_parse("1.2.3.4:5", &stranger.address), 0);
    return stranger;
}

static void do_write(void *arg)
{
    struct stranger *stranger = arg;

    weir_channel_write(stranger->channel, text_msg(stranger->text), stranger->done);
}

static void do_write_and_flush(void *arg)
{
    struct stranger *stranger = arg;

    weir_channel_write_and_flush(stranger->channel, text_msg(stranger->text), stranger->done);
}

static void do_flush(void *arg)
{
    weir_channel_flush(((struct stranger *)arg)->channel);
}

static void do_request_read(void *arg)
{
    weir_channel_request_read(((struct stranger *)arg)->channel);
}

static void do_close(void *arg)
{
    weir_channel_close(((struct stranger *)arg)->channel, ((struct stranger *)arg)->done);
}

static void do_abort(void *arg)
{
    weir_channel_abort(((struct stranger *)arg)->channel, ((struct stranger *)arg)->done);
}

static void do_register(void *arg)
{
    struct stranger *stranger = arg;

    weir_channel_register(stranger->channel, stranger->loop, stranger->done);
}

static void do_everything_else(void *arg)
{
    struct stranger *stranger = arg;

    weir_channel_request_read(stranger->channel);
    weir_channel_fire_event(stranger->channel, text_msg("e"));
    weir_channel_bind(stranger->channel, &stranger->address, NULL);
    weir_channel_connect(stranger->channel, &stranger->address, NULL, stranger->done);
    weir_channel_shutdown_output(stranger->channel, NULL);
    weir_channel_shutdown_input(stranger->channel, NULL);
    weir_channel_disconnect(stranger->channel, NULL);
}

static void do_deregister(void *arg)
{
    weir_channel_deregister(((struct stranger *)arg)->channel, NULL);
}

static void do_set_options(void *arg)
{
    struct stranger *stranger = arg;

    stranger->result = weir_channel_set_options(
        stranger->channel, WEIR_CHANNEL_OPTIONS(.read_on_demand = true, .high_mark = 7));
}

static void do_stop_reading(void *arg)
{
    weir_channel_set_auto_read(((struct stranger *)arg)->channel, false);
}

static void do_add(void *arg)
{
    struct stranger *stranger = arg;

    stranger->result =
        weir_pipeline_add(weir_channel_pipeline(stranger->channel),
                          WEIR_PLACE(.before = stranger->text, .done = stranger->done),
                          &event_recorder, EVENT_RECORDER(stranger->events, "s"));
}

static void do_remove(void *arg)
{
    struct stranger *stranger = arg;

    stranger->result = weir_pipeline_remove(weir_channel_pipeline(stranger->channel),
                                            stranger->text, stranger->done);
}

TEST(operation, from_another_thread_runs_on_the_loop_in_order)
{
    struct test_channel tc;
    struct stranger stranger;

    tc_open_started(&tc, NULL, NULL);
    stranger = stranger_at(&tc);
    run_on_other_thread(do_write, &stranger);
    run_on_other_thread(do_write_and_flush, &stranger);
    run_on_other_thread(do_close, &stranger);
    assert_events(&tc.events, "");
    tc_run(&tc);
    assert_events(&tc.events, "a.write(x) a.write(x) a.flush FLUSH a.close FIN");
    assert_sent(&tc, "xx");
    tc_close(&tc);
}

TEST(operation, of_every_kind_works_from_another_thread)
{
    struct test_channel tc;
    struct stranger stranger;

    tc_open_started(&tc, NULL, NULL);
    stranger = stranger_at(&tc);
    stranger.done = tc_promise(&tc, "done");
    run_on_other_thread(do_everything_else, &stranger);
    assert_events(&tc.events, "");
    tc_run(&tc);
    assert_events(
        &tc.events,
        "a.request_read a.event(e) a.bind BIND a.connect done=EISCONN "
        "a.shutdown_output FIN a.event(output-closed) STOP SHUT_INPUT a.event(input-closed) "
        "a.close CLOSE a.inactive a.unregistered "
        "a.removed a.deinit");
    weir_promise_release(stranger.done);
    tc_close(&tc);
}

TEST(operation, counts_a_write_when_it_is_submitted)
{
    struct test_channel tc;
    struct stranger stranger;

    tc_open_started(&tc, NULL, WEIR_CHANNEL_OPTIONS(.high_mark = WEIR__OUTBOUND_COST));
    stranger = stranger_at(&tc);
    assert_true(weir_channel_is_writable(tc.channel));
    run_on_other_thread(do_write_and_flush, &stranger);
    assert_int_equal(weir_channel_pending_bytes(tc.channel), WEIR__OUTBOUND_COST + 1);
    assert_false(weir_channel_is_writable(tc.channel));
    tc_run(&tc);
    assert_int_equal(weir_channel_pending_bytes(tc.channel), 0);
    assert_true(weir_channel_is_writable(tc.channel));
    assert_events(&tc.events, "a.unwritable a.write(x) a.flush FLUSH a.writable");
    tc_close(&tc);
}

TEST(operation, that_reaches_the_high_mark_leaves_the_channel_writable)
{
    struct test_channel tc;
    struct stranger stranger;

    tc_open_started(&tc, NULL, WEIR_CHANNEL_OPTIONS(.high_mark = WEIR__OUTBOUND_COST + 1));
    stranger = stranger_at(&tc);
    run_on_other_thread(do_write_and_flush, &stranger);
    assert_int_equal(weir_channel_pending_bytes(tc.channel), WEIR__OUTBOUND_COST + 1);
    assert_true(weir_channel_is_writable(tc.channel));
    tc_run(&tc);
    assert_events(&tc.events, "a.write(x) a.flush FLUSH");
    tc_close(&tc);
}

TEST(operation, refuses_a_write_beyond_the_cap_at_once)
{
    struct test_channel tc;
    struct stranger stranger;

    tc_open_started(&tc, NULL, WEIR_CHANNEL_OPTIONS(.write_cap = WEIR__OUTBOUND_COST));
    stranger = stranger_at(&tc);
    stranger.done = tc_promise(&tc, "done");
    run_on_other_thread(do_write, &stranger);
    assert_int_equal(weir_promise_result(stranger.done), WEIR_EFULL);
    assert_int_equal(weir_channel_pending_bytes(tc.channel), 0);
    weir_promise_release(stranger.done);
    tc_close(&tc);
}

TEST(operation, wakes_the_loop_with_the_first_call)
{
    struct manual_fixture fixture;
    struct test_channel tc;
    struct stranger stranger;
    uint32_t wakeups;

    manual_fixture_open(&fixture);
    tc_open(&tc);
    weir_channel_register(tc.channel, fixture.executor, NULL);
    (void)manual_fixture_run(&fixture);
    stranger = stranger_at(&tc);
    wakeups = manual_fixture_wakeups(&fixture);
    run_on_other_thread(do_write, &stranger);
    assert_int_equal(manual_fixture_wakeups(&fixture), wakeups + 1);
    run_on_other_thread(do_flush, &stranger);
    assert_int_equal(manual_fixture_wakeups(&fixture), wakeups + 1);
    (void)manual_fixture_run(&fixture);
    assert_sent(&tc, "x");
    weir_channel_abort(tc.channel, NULL);
    (void)manual_fixture_run(&fixture);
    tc_close(&tc);
    manual_fixture_close(&fixture);
}

TEST(operation, that_is_refused_leaves_nothing)
{
    struct test_channel tc;
    struct stranger stranger;
    struct stepper other = stepper_open();

    tc_open(&tc);
    weir_channel_register(tc.channel, other.executor, NULL);
    (void)stepper_run(&other);
    stepper_close(&other);
    stranger = stranger_at(&tc);
    stranger.done = tc_promise(&tc, "done");
    run_on_other_thread(do_write_and_flush, &stranger);
    global_executor_stop(); /* in the place of the loop */
    assert_int_equal(weir_promise_result(stranger.done), WEIR_EREJECTED);
    assert_int_equal(weir_channel_pending_bytes(tc.channel), 0);
    weir_promise_release(stranger.done);
    weir_channel_abort(tc.channel, NULL);
    global_executor_stop(); /* in the place of the loop */
    tc_close(&tc);
}

/* The message is refused on the calling thread and never gets to the loop. */
TEST(operation, with_a_completed_promise_releases_the_message)
{
    struct test_channel tc;
    struct stranger stranger;

    tc_open_started(&tc, NULL, NULL);
    stranger = stranger_at(&tc);
    stranger.done = tc_promise(&tc, "done");
    assert_int_equal(weir_promise_cancel(stranger.done), 0);
    event_log_clear(&tc.events);
    run_on_other_thread(do_write, &stranger);
    run_on_other_thread(do_write_and_flush, &stranger);
    tc_run(&tc);
    assert_events(&tc.events, "");
    assert_int_equal(weir_channel_pending_bytes(tc.channel), 0);
    weir_promise_release(stranger.done);
    tc_close(&tc);
}

TEST(operation, follows_a_channel_that_has_moved)
{
    struct test_channel tc;
    struct stranger stranger;
    struct stepper other = stepper_open();

    tc_open_started(&tc, NULL, NULL);
    stranger = stranger_at(&tc);
    stranger.done = tc_promise(&tc, "done");
    weir_channel_deregister(tc.channel, NULL);
    tc_run(&tc);
    event_log_clear(&tc.events);
    run_on_other_thread(do_write_and_flush, &stranger); /* to where it was */
    weir_channel_register(tc.channel, other.executor, NULL);
    tc_run(&tc);
    (void)stepper_run(&other);
    assert_sent(&tc, "x");
    weir_channel_abort(tc.channel, NULL);
    (void)stepper_run(&other);
    weir_promise_release(stranger.done);
    tc_close(&tc);
    stepper_close(&other);
}

/* A loop that ends cancels its tasks; those of a channel that has moved are not its own. */
TEST(operation, follows_a_channel_also_from_a_loop_that_ends)
{
    struct test_channel tc;
    struct stranger stranger;
    struct stepper old = stepper_open();

    tc_open(&tc);
    weir_channel_register(tc.channel, old.executor, NULL);
    (void)stepper_run(&old);
    weir_channel_deregister(tc.channel, NULL);
    (void)stepper_run(&old);
    stranger = stranger_at(&tc);
    run_on_other_thread(do_write_and_flush, &stranger); /* to where it was */
    weir_channel_register(tc.channel, tc.stepper.executor, NULL);
    stepper_close(&old);
    tc_run(&tc);
    assert_sent(&tc, "x");
    tc_close(&tc);
}

TEST(operation, registers_and_moves_from_another_thread)
{
    struct test_channel tc;
    struct stranger stranger;
    struct stepper other = stepper_open();

    tc_open(&tc);
    tc_add(&tc, "a");
    stranger = stranger_at(&tc);
    stranger.done = tc_promise(&tc, "1st");
    run_on_other_thread(do_register, &stranger);
    tc_run(&tc);
    assert_events(&tc.events, "ATTACH a.added 1st=ok a.registered a.active a.request_read READ");
    weir_promise_release(stranger.done);

    run_on_other_thread(do_deregister, &stranger);
    tc_run(&tc);
    event_log_clear(&tc.events);
    stranger.done = tc_promise(&tc, "2nd");
    stranger.loop = other.executor;
    run_on_other_thread(do_register, &stranger);
    tc_run(&tc);
    tc_run(&tc);
    (void)stepper_run(&other);
    tc_run(&tc);
    assert_events(&tc.events, "ATTACH 2nd=ok a.registered a.request_read READ");
    assert_ptr_equal(weir_channel_executor(tc.channel), other.executor);
    weir_promise_release(stranger.done);
    weir_channel_abort(tc.channel, NULL);
    (void)stepper_run(&other);
    tc_close(&tc);
    stepper_close(&other);
}

TEST(operation, changes_options_and_auto_read_from_another_thread)
{
    struct test_channel tc;
    struct stranger stranger;
    weir_channel_options options;

    tc_open_started(&tc, NULL, NULL);
    stranger = stranger_at(&tc);
    run_on_other_thread(do_stop_reading, &stranger);
    assert_false(weir_channel_auto_read(tc.channel));
    assert_true(tc.wire->reads);
    tc_run(&tc);
    assert_events(&tc.events, "STOP");
    run_on_other_thread(do_set_options, &stranger);
    assert_int_equal(stranger.result, 0);
    tc_run(&tc);
    weir_channel_get_options(tc.channel, &options);
    assert_int_equal(options.high_mark, 7);
    tc_close(&tc);
}

TEST(operation, changes_the_pipeline_from_another_thread)
{
    struct test_channel tc;
    struct stranger stranger;

    tc_open_started(&tc, NULL, NULL);
    stranger = stranger_at(&tc);
    stranger.text = "a";
    stranger.done = tc_promise(&tc, "added");
    run_on_other_thread(do_add, &stranger);
    assert_int_equal(stranger.result, 0);
    assert_events(&tc.events, "");
    tc_run(&tc);
    assert_events(&tc.events, "s.added added=ok");
    weir_promise_release(stranger.done);

    stranger.text = "nobody";
    stranger.done = tc_promise(&tc, "nobody");
    run_on_other_thread(do_add, &stranger);
    assert_int_equal(stranger.result, 0);
    tc_run(&tc);
    assert_events(&tc.events, "s.deinit nobody=ENOENT");
    weir_promise_release(stranger.done);

    stranger.text = "recorder";
    stranger.done = tc_promise(&tc, "removed");
    run_on_other_thread(do_remove, &stranger);
    tc_run(&tc);
    assert_events(&tc.events, "s.removed removed=ok s.deinit");
    weir_promise_release(stranger.done);
    tc_close(&tc);
}

static void do_shutdown_output(void *arg)
{
    weir_channel_shutdown_output(((struct stranger *)arg)->channel, NULL);
}

/* Every operation with its first allocation failing: on the stranger's own thread. */
static weir_thread_fn *starved;

static void do_starved(void *arg)
{
    test_memory_fail_at(1);
    starved(arg);
    test_memory_fail_at(0);
}

static void do_bind(void *arg)
{
    struct stranger *stranger = arg;

    weir_channel_bind(stranger->channel, &stranger->address, stranger->done);
}

static void do_move(void *arg)
{
    struct stranger *stranger = arg;

    weir_channel_register(stranger->channel, stranger->loop, stranger->done);
}

static weir_msg *msg_to_write;

static void do_write_it(void *arg)
{
    struct stranger *stranger = arg;

    weir_channel_write_and_flush(stranger->channel, msg_to_write, stranger->done);
}

static void do_fire_it(void *arg)
{
    weir_channel_fire_event(((struct stranger *)arg)->channel, msg_to_write);
}

TEST(operation, that_finds_no_memory_fails_its_promise_and_leaves_nothing)
{
    weir_thread_fn *const operations[] = {do_bind,   do_move, do_write_it,    do_close,
                                          do_remove, do_add,  do_set_options, do_fire_it};
    struct test_channel tc;
    struct stranger stranger;

    tc_open_started(&tc, NULL, NULL);
    stranger = stranger_at(&tc);
    stranger.text = "a";
    for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++) {
        stranger.done = tc_promise(&tc, "done");
        stranger.result = 0;
        msg_to_write = text_msg("x");
        weir_msg_retain(msg_to_write);
        starved = operations[i];
        run_on_other_thread(do_starved, &stranger);
        tc_run(&tc);
        if (weir_promise_is_done(stranger.done))
            assert_int_equal(weir_promise_result(stranger.done), -ENOMEM);
        else if (operations[i] != do_fire_it)
            assert_int_equal(stranger.result, -ENOMEM);
        weir_promise_release(stranger.done);
        weir_msg_release(msg_to_write);
        if (operations[i] != do_write_it && operations[i] != do_fire_it)
            weir_msg_release(msg_to_write);
    }
    assert_int_equal(weir_channel_pending_bytes(tc.channel), 0);
    assert_true(weir_channel_is_open(tc.channel));
    assert_int_equal(weir_pipeline_count(tc.pipeline), 1);
    tc_close(&tc);
}

TEST(operation, that_never_comes_to_the_loop_fails_and_leaves_nothing)
{
    weir_thread_fn *const operations[] = {
        do_bind, do_deregister,  do_write_it,        do_abort, do_remove,
        do_add,  do_set_options, do_everything_else, do_flush, do_move};
    struct stepper other = stepper_open();
    struct test_channel tc;
    struct stranger stranger;

    tc_open(&tc);
    weir_channel_register(tc.channel, other.executor, NULL);
    (void)stepper_run(&other);
    stranger = stranger_at(&tc);
    stranger.text = "a";
    log_capture_start();
    for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++) {
        stranger.done = tc_promise(&tc, "done");
        msg_to_write = text_msg("x");
        if (operations[i] != do_write_it)
            weir_msg_release(msg_to_write);
        run_on_other_thread(operations[i], &stranger);
        weir_promise_release(stranger.done);
    }
    stepper_close(&other);  /* cancels what was posted */
    global_executor_stop(); /* makes the move in place of the loop */
    tc_run(&tc);
    assert_int_equal(event_log_count(&tc.events, "done="), 10);
    assert_int_equal(weir_channel_pending_bytes(tc.channel), 0);
    weir_channel_abort(tc.channel, NULL);
    global_executor_stop();
    tc_close(&tc);
}

/* A write that is lost without a word would leave a hole in the stream. */
TEST(operation, that_is_lost_without_a_promise_fires_error)
{
    struct test_channel tc;
    struct stranger stranger;

    tc_open_started(&tc, NULL, WEIR_CHANNEL_OPTIONS(.write_cap = 10));
    stranger = stranger_at(&tc);
    run_on_other_thread(do_write_and_flush, &stranger);
    tc_run(&tc);
    assert_int_equal(event_log_count(&tc.events, "a.error(WEIR_EFULL)"), 1);
    tc_close(&tc);
}

TEST(operation, without_memory_and_promise_aborts_the_channel)
{
    weir_thread_fn *const operations[] = {do_write_it, do_deregister, do_shutdown_output};
    struct stranger stranger;

    for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++) {
        struct test_channel tc;

        tc_open_started(&tc, NULL, NULL);
        stranger = stranger_at(&tc);
        msg_to_write = text_msg("x");
        starved = operations[i];
        run_on_other_thread(do_starved, &stranger);
        if (operations[i] != do_write_it)
            weir_msg_release(msg_to_write);
        tc_run(&tc);
        assert_false(weir_channel_is_open(tc.channel));
        tc_close(&tc);
    }
}

/* They are flags of the mailbox. */
TEST(operation, without_argument_and_promise_needs_no_memory)
{
    weir_thread_fn *const operations[] = {do_flush, do_request_read, do_close};
    struct test_channel tc;
    struct stranger stranger;

    tc_open_started(&tc, NULL, NULL);
    stranger = stranger_at(&tc);
    weir_channel_write(tc.channel, text_msg("x"), NULL);
    event_log_clear(&tc.events);
    for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++) {
        starved = operations[i];
        run_on_other_thread(do_starved, &stranger);
    }
    tc_run(&tc);
    assert_events(&tc.events, "a.flush FLUSH a.request_read a.close FIN");
    assert_sent(&tc, "x");
    tc_close(&tc);
}

/* ---- the order of all threads ---- */

static void do_fire_and_write(void *arg)
{
    struct stranger *stranger = arg;

    weir_channel_fire_event(stranger->channel, text_msg("e"));
    weir_channel_write_and_flush(stranger->channel, text_msg("x"), NULL);
}

static void write_on_loop(void *arg, int status)
{
    struct stranger *stranger = arg;

    assert_int_equal(status, 0);
    weir_channel_write_and_flush(stranger->channel, text_msg(stranger->text), NULL);
}

static void write_and_submit(void *arg)
{
    struct stranger *stranger = arg;

    weir_channel_write(stranger->channel, text_msg("1"), NULL);
    assert_int_equal(weir_execute(stranger->loop, write_on_loop, stranger), 0);
}

/* The owner of the loop calls while a call of another thread waits. */
TEST(operation, on_the_loop_does_not_overtake_one_that_waits)
{
    struct test_channel tc;
    struct stranger stranger;

    tc_open_started(&tc, NULL, NULL);
    stranger = stranger_at(&tc);
    stranger.text = "1";
    run_on_other_thread(do_write, &stranger);
    weir_channel_write(tc.channel, text_msg("2"), NULL);
    weir_channel_flush(tc.channel);
    weir_channel_request_read(tc.channel);
    weir_channel_fire_event(tc.channel, text_msg("e"));
    weir_channel_shutdown_output(tc.channel, NULL);
    weir_channel_close(tc.channel, NULL);
    assert_events(&tc.events, "");
    tc_run(&tc);
    assert_events(&tc.events, "a.write(1) a.write(2) a.flush FLUSH a.request_read a.event(e) "
                              "a.shutdown_output FIN a.event(output-closed) a.close");
    assert_sent(&tc, "12");
    tc_close(&tc);
}

/* A flag, too, is a call that waits. */
TEST(operation, on_the_loop_does_not_overtake_a_flush)
{
    struct test_channel tc;
    struct stranger stranger;

    tc_open_started(&tc, NULL, NULL);
    stranger = stranger_at(&tc);
    run_on_other_thread(do_flush, &stranger);
    weir_channel_write(tc.channel, text_msg("2"), NULL);
    tc_run(&tc);
    assert_events(&tc.events, "a.flush a.write(2)");
    tc_close(&tc);
}

/* What the channel itself has left for later does not delay a call. */
TEST(operation, on_the_loop_is_immediate_if_no_call_waits)
{
    struct test_channel tc;

    tc_open_started(&tc, NULL, NULL);
    weir__channel_defer(tc.channel, WEIR__DEFERRED_SWEEP);
    weir_channel_write(tc.channel, text_msg("1"), NULL);
    assert_events(&tc.events, "a.write(1)");
    tc_close(&tc);
}

TEST(operation, that_drops_everything_is_immediate_on_the_loop)
{
    struct test_channel tc;
    struct stranger stranger;

    tc_open_started(&tc, NULL, NULL);
    stranger = stranger_at(&tc);
    stranger.done = tc_promise(&tc, "done");
    run_on_other_thread(do_write, &stranger);
    weir_channel_abort(tc.channel, NULL);
    assert_false(weir_channel_is_open(tc.channel));
    tc_run(&tc);
    assert_int_equal(weir_promise_result(stranger.done), WEIR_ECLOSED);
    weir_promise_release(stranger.done);
    tc_close(&tc);
}

/* A handler that calls its context and its channel in turn. */
static void mix_calls(weir_ctx *ctx, weir_msg *event)
{
    weir_channel *channel = weir_ctx_channel(ctx);

    weir_msg_release(event);
    weir_channel_write(channel, text_msg("1"), NULL);
    weir_write(ctx, text_msg("2"), NULL);
    weir_channel_write_and_flush(channel, text_msg("3"), NULL);
}

TEST(operation, of_a_handler_is_immediate_while_others_wait)
{
    static const weir_handler mixer = {.event = mix_calls};
    struct test_channel tc;
    struct stranger stranger;

    tc_open_started(&tc, NULL, NULL);
    assert_int_equal(weir_pipeline_add_last(tc.pipeline, &mixer, NULL), 0);
    stranger = stranger_at(&tc);
    event_log_clear(&tc.events);
    run_on_other_thread(do_fire_and_write, &stranger);
    tc_run(&tc);
    assert_sent(&tc, "123x");
    tc_close(&tc);
}

/* What a stranger submits after a call comes after it, and so does what the task calls. */
TEST(operation, of_a_task_comes_after_the_call_before_the_task)
{
    struct test_channel tc;
    struct stranger stranger;

    tc_open_started(&tc, NULL, NULL);
    stranger = stranger_at(&tc);
    stranger.text = "2";
    run_on_other_thread(write_and_submit, &stranger);
    tc_run(&tc);
    assert_sent(&tc, "12");
    tc_close(&tc);
}

/* The close becomes an abort. */
TEST(operation, that_closes_is_not_lost_with_its_loop)
{
    struct stepper other = stepper_open();
    struct test_channel tc;
    struct stranger stranger;

    tc_open(&tc);
    weir_channel_register(tc.channel, other.executor, NULL);
    (void)stepper_run(&other);
    weir_channel_deregister(tc.channel, NULL);
    (void)stepper_run(&other);
    stepper_close(&other);
    stranger = stranger_at(&tc);
    run_on_other_thread(do_close, &stranger);
    global_executor_stop();
    assert_false(weir_channel_is_open(tc.channel));
    tc_close(&tc);
}

/* ---- the order while a third thread posts ---- */

#define PAIRS 3000

static struct {
    weir_msg *first, *second, *other;
    unsigned firsts, seconds, overtaken; /* the loop's */
    weir_channel *channel;
    weir_executor *loop;
    atomic_bool is_over;
} race;

static void count_write(weir_ctx *ctx, weir_msg *msg, weir_promise *done)
{
    (void)ctx;
    (void)done;
    race.overtaken += msg == race.second && race.firsts <= race.seconds;
    race.firsts += msg == race.first;
    race.seconds += msg == race.second;
    weir_msg_release(msg);
}

static void write_second(void *arg, int status)
{
    (void)arg;
    assert_int_equal(status, 0);
    weir_channel_write(race.channel, weir_msg_retain(race.second), NULL);
}

static void write_pairs(void *arg)
{
    (void)arg;
    for (int i = 0; i < PAIRS; i++) {
        weir_channel_write(race.channel, weir_msg_retain(race.first), NULL);
        assert_int_equal(weir_execute(race.loop, write_second, NULL), 0);
        if (i % 16 == 0)
            weir__thread_yield();
    }
    atomic_store(&race.is_over, true);
}

static void post_others(void *arg)
{
    (void)arg;
    while (!atomic_load(&race.is_over)) {
        weir_channel_write(race.channel, weir_msg_retain(race.other), NULL);
        weir__thread_yield();
    }
}

static void do_nothing(void *arg)
{
    (void)arg;
}

TEST(operation, of_a_task_is_in_order_while_a_third_thread_posts)
{
    static const weir_handler counter = {.write = count_write};
    struct single_executor single = single_executor_open(NULL);
    weir__thread threads[2];
    struct test_channel tc;
    weir_promise *done;

    memset(&race, 0, sizeof(race));
    race.first = text_msg("1");
    race.second = text_msg("2");
    race.other = text_msg("3");
    tc_open(&tc);
    assert_int_equal(weir_pipeline_add_last(tc.pipeline, &counter, NULL), 0);
    race.channel = tc.channel;
    race.loop = single.executor;
    assert_int_equal(weir_promise_create(NULL, &done), 0);
    weir_channel_register(tc.channel, single.executor, done);
    assert_int_equal(weir_promise_sync(done, TEST_TIMEOUT_NS), 0);
    weir_promise_release(done);
    assert_int_equal(weir__thread_start("pairs", write_pairs, NULL, &threads[0]), 0);
    assert_int_equal(weir__thread_start("others", post_others, NULL, &threads[1]), 0);
    weir__thread_join(&threads[0]);
    weir__thread_join(&threads[1]);
    run_on_executor(single.executor, do_nothing, NULL); /* after all tasks */
    weir_channel_abort(tc.channel, NULL);
    assert_int_equal(weir_channel_await_closed(tc.channel, TEST_TIMEOUT_NS), 0);
    single_executor_end(&single);
    assert_int_equal(race.firsts, PAIRS);
    assert_int_equal(race.seconds, PAIRS);
    assert_int_equal(race.overtaken, 0);
    weir_msg_release(race.first);
    weir_msg_release(race.second);
    weir_msg_release(race.other);
    tc_close(&tc);
    single_executor_close(&single);
}
