/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What other threads ask of a channel.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <weir/error.h>

#include "support/channel/test_channel.h"
#include "support/executor/global_executor.h"
#include "support/executor/log_capture.h"
#include "support/executor/manual_fixture.h"
#include "support/executor/run_on_thread.h"
#include "support/memory.h"

/* ---- one thing at a time ---- */

/* What a stranger does to a channel, on a thread of its own. */
struct stranger {
    weir_channel *channel;
    weir_promise *done;
    weir_executor *loop;
    weir_address address;
    const char *text;
    struct diary *diary;
    int result;
};

static struct stranger stranger_at(struct rig *rig)
{
    struct stranger stranger = {
        .channel = rig->channel, .loop = rig->stepper.executor, .text = "x", .diary = &rig->diary};

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
                          WEIR_PLACE(.before = stranger->text, .done = stranger->done), &spy,
                          SPY(stranger->diary, "s"));
}

static void do_remove(void *arg)
{
    struct stranger *stranger = arg;

    stranger->result = weir_pipeline_remove(weir_channel_pipeline(stranger->channel),
                                            stranger->text, stranger->done);
}

TEST(operation, from_elsewhere_is_done_on_the_loop_in_order)
{
    struct rig rig;
    struct stranger stranger;

    rig_open_started(&rig, NULL, NULL);
    stranger = stranger_at(&rig);
    run_on_other_thread(do_write, &stranger);
    run_on_other_thread(do_write_and_flush, &stranger);
    run_on_other_thread(do_close, &stranger);
    assert_diary(&rig.diary, "");
    rig_run(&rig);
    assert_diary(&rig.diary, "a.write(x) a.write(x) a.flush FLUSH a.close FIN");
    assert_sent(&rig, "xx");
    rig_close(&rig);
}

TEST(operation, of_every_kind_can_come_from_elsewhere)
{
    struct rig rig;
    struct stranger stranger;

    rig_open_started(&rig, NULL, NULL);
    stranger = stranger_at(&rig);
    stranger.done = rig_promise(&rig, "done");
    run_on_other_thread(do_everything_else, &stranger);
    assert_diary(&rig.diary, "");
    rig_run(&rig);
    assert_diary(
        &rig.diary,
        "a.request_read a.event(e) a.bind BIND a.connect done=EISCONN "
        "a.shutdown_output FIN a.event(output-closed) STOP SHUT_INPUT a.event(input-closed) "
        "a.event(input-drained) a.close CLOSE a.inactive a.unregistered "
        "a.removed a.deinit");
    weir_promise_release(stranger.done);
    rig_close(&rig);
}

TEST(operation, counts_a_write_when_it_is_submitted)
{
    struct rig rig;
    struct stranger stranger;

    rig_open_started(&rig, NULL, WEIR_CHANNEL_OPTIONS(.high_mark = WEIR__OUTBOUND_COST));
    stranger = stranger_at(&rig);
    assert_true(weir_channel_is_writable(rig.channel));
    run_on_other_thread(do_write_and_flush, &stranger);
    assert_int_equal(weir_channel_pending_bytes(rig.channel), WEIR__OUTBOUND_COST + 1);
    assert_false(weir_channel_is_writable(rig.channel));
    rig_run(&rig);
    assert_int_equal(weir_channel_pending_bytes(rig.channel), 0);
    assert_true(weir_channel_is_writable(rig.channel));
    assert_diary(&rig.diary, "a.unwritable a.write(x) a.flush FLUSH a.writable");
    rig_close(&rig);
}

TEST(operation, refuses_a_write_beyond_the_cap_at_once)
{
    struct rig rig;
    struct stranger stranger;

    rig_open_started(&rig, NULL, WEIR_CHANNEL_OPTIONS(.write_cap = WEIR__OUTBOUND_COST));
    stranger = stranger_at(&rig);
    stranger.done = rig_promise(&rig, "done");
    run_on_other_thread(do_write, &stranger);
    assert_int_equal(weir_promise_result(stranger.done), WEIR_EFULL);
    assert_int_equal(weir_channel_pending_bytes(rig.channel), 0);
    weir_promise_release(stranger.done);
    rig_close(&rig);
}

TEST(operation, wakes_the_loop_to_flush_but_not_to_write)
{
    struct manual_fixture fixture;
    struct rig rig;
    struct stranger stranger;
    uint32_t wakeups;

    manual_fixture_open(&fixture);
    rig_open(&rig);
    weir_channel_register(rig.channel, fixture.executor, NULL);
    (void)manual_fixture_run(&fixture);
    stranger = stranger_at(&rig);
    wakeups = manual_fixture_wakeups(&fixture);
    run_on_other_thread(do_write, &stranger);
    assert_int_equal(manual_fixture_wakeups(&fixture), wakeups);
    run_on_other_thread(do_flush, &stranger);
    assert_int_equal(manual_fixture_wakeups(&fixture), wakeups + 1);
    (void)manual_fixture_run(&fixture);
    assert_sent(&rig, "x");
    weir_channel_abort(rig.channel, NULL);
    (void)manual_fixture_run(&fixture);
    rig_close(&rig);
    manual_fixture_close(&fixture);
}

/* D 66 */
TEST(operation, that_is_refused_leaves_nothing)
{
    struct rig rig;
    struct stranger stranger;
    struct stepper other = stepper_open();

    rig_open(&rig);
    weir_channel_register(rig.channel, other.executor, NULL);
    (void)stepper_run(&other);
    stepper_close(&other);
    stranger = stranger_at(&rig);
    stranger.done = rig_promise(&rig, "done");
    run_on_other_thread(do_write_and_flush, &stranger);
    assert_int_equal(weir_promise_result(stranger.done), WEIR_EREJECTED);
    assert_int_equal(weir_channel_pending_bytes(rig.channel), 0);
    weir_promise_release(stranger.done);
    weir_channel_abort(rig.channel, NULL);
    global_executor_stop(); /* in the place of the loop */
    rig_close(&rig);
}

/* The message is refused on the calling thread and never gets to the loop. */
TEST(operation, with_a_completed_promise_releases_the_message)
{
    struct rig rig;
    struct stranger stranger;

    rig_open_started(&rig, NULL, NULL);
    stranger = stranger_at(&rig);
    stranger.done = rig_promise(&rig, "done");
    assert_int_equal(weir_promise_cancel(stranger.done), 0);
    diary_clear(&rig.diary);
    run_on_other_thread(do_write, &stranger);
    run_on_other_thread(do_write_and_flush, &stranger);
    rig_run(&rig);
    assert_diary(&rig.diary, "");
    assert_int_equal(weir_channel_pending_bytes(rig.channel), 0);
    weir_promise_release(stranger.done);
    rig_close(&rig);
}

TEST(operation, follows_a_channel_that_has_moved)
{
    struct rig rig;
    struct stranger stranger;
    struct stepper other = stepper_open();

    rig_open_started(&rig, NULL, NULL);
    stranger = stranger_at(&rig);
    stranger.done = rig_promise(&rig, "done");
    weir_channel_deregister(rig.channel, NULL);
    rig_run(&rig);
    diary_clear(&rig.diary);
    run_on_other_thread(do_write_and_flush, &stranger); /* to where it was */
    weir_channel_register(rig.channel, other.executor, NULL);
    rig_run(&rig);
    (void)stepper_run(&other);
    assert_sent(&rig, "x");
    weir_channel_abort(rig.channel, NULL);
    (void)stepper_run(&other);
    weir_promise_release(stranger.done);
    rig_close(&rig);
    stepper_close(&other);
}

/* A loop that ends cancels its tasks; those of a channel that has moved are not its own. */
TEST(operation, follows_a_channel_also_from_a_loop_that_ends)
{
    struct rig rig;
    struct stranger stranger;
    struct stepper old = stepper_open();

    rig_open(&rig);
    weir_channel_register(rig.channel, old.executor, NULL);
    (void)stepper_run(&old);
    weir_channel_deregister(rig.channel, NULL);
    (void)stepper_run(&old);
    stranger = stranger_at(&rig);
    run_on_other_thread(do_write_and_flush, &stranger); /* to where it was */
    weir_channel_register(rig.channel, rig.stepper.executor, NULL);
    stepper_close(&old);
    rig_run(&rig);
    assert_sent(&rig, "x");
    rig_close(&rig);
}

TEST(operation, registers_and_moves_from_elsewhere)
{
    struct rig rig;
    struct stranger stranger;
    struct stepper other = stepper_open();

    rig_open(&rig);
    rig_add(&rig, "a");
    stranger = stranger_at(&rig);
    stranger.done = rig_promise(&rig, "1st");
    run_on_other_thread(do_register, &stranger);
    rig_run(&rig);
    assert_diary(&rig.diary, "ATTACH a.added 1st=ok a.registered a.active a.request_read READ");
    weir_promise_release(stranger.done);

    run_on_other_thread(do_deregister, &stranger);
    rig_run(&rig);
    diary_clear(&rig.diary);
    stranger.done = rig_promise(&rig, "2nd");
    stranger.loop = other.executor;
    run_on_other_thread(do_register, &stranger);
    rig_run(&rig);
    rig_run(&rig);
    (void)stepper_run(&other);
    rig_run(&rig);
    assert_diary(&rig.diary, "ATTACH 2nd=ok a.registered a.request_read READ");
    assert_ptr_equal(weir_channel_executor(rig.channel), other.executor);
    weir_promise_release(stranger.done);
    weir_channel_abort(rig.channel, NULL);
    (void)stepper_run(&other);
    rig_close(&rig);
    stepper_close(&other);
}

TEST(operation, changes_options_and_auto_read_from_elsewhere)
{
    struct rig rig;
    struct stranger stranger;
    weir_channel_options options;

    rig_open_started(&rig, NULL, NULL);
    stranger = stranger_at(&rig);
    run_on_other_thread(do_stop_reading, &stranger);
    assert_false(weir_channel_auto_read(rig.channel));
    assert_true(rig.wire->reads);
    rig_run(&rig);
    assert_diary(&rig.diary, "STOP");
    run_on_other_thread(do_set_options, &stranger);
    assert_int_equal(stranger.result, 0);
    rig_run(&rig);
    weir_channel_get_options(rig.channel, &options);
    assert_int_equal(options.high_mark, 7);
    rig_close(&rig);
}

/* D 55 */
TEST(operation, changes_the_pipeline_from_elsewhere)
{
    struct rig rig;
    struct stranger stranger;

    rig_open_started(&rig, NULL, NULL);
    stranger = stranger_at(&rig);
    stranger.text = "a";
    stranger.done = rig_promise(&rig, "added");
    run_on_other_thread(do_add, &stranger);
    assert_int_equal(stranger.result, 0);
    assert_diary(&rig.diary, "");
    rig_run(&rig);
    assert_diary(&rig.diary, "s.added added=ok");
    weir_promise_release(stranger.done);

    stranger.text = "nobody";
    stranger.done = rig_promise(&rig, "nobody");
    run_on_other_thread(do_add, &stranger);
    assert_int_equal(stranger.result, 0);
    rig_run(&rig);
    assert_diary(&rig.diary, "s.deinit nobody=ENOENT");
    weir_promise_release(stranger.done);

    stranger.text = "spy";
    stranger.done = rig_promise(&rig, "removed");
    run_on_other_thread(do_remove, &stranger);
    rig_run(&rig);
    assert_diary(&rig.diary, "s.removed removed=ok s.deinit");
    weir_promise_release(stranger.done);
    rig_close(&rig);
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
    struct rig rig;
    struct stranger stranger;

    rig_open_started(&rig, NULL, NULL);
    stranger = stranger_at(&rig);
    stranger.text = "a";
    for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++) {
        stranger.done = rig_promise(&rig, "done");
        stranger.result = 0;
        msg_to_write = text_msg("x");
        weir_msg_retain(msg_to_write);
        starved = operations[i];
        run_on_other_thread(do_starved, &stranger);
        rig_run(&rig);
        if (weir_promise_is_done(stranger.done))
            assert_int_equal(weir_promise_result(stranger.done), -ENOMEM);
        else if (operations[i] != do_fire_it)
            assert_int_equal(stranger.result, -ENOMEM);
        weir_promise_release(stranger.done);
        weir_msg_release(msg_to_write);
        if (operations[i] != do_write_it && operations[i] != do_fire_it)
            weir_msg_release(msg_to_write);
    }
    assert_int_equal(weir_channel_pending_bytes(rig.channel), 0);
    assert_true(weir_channel_is_open(rig.channel));
    assert_int_equal(weir_pipeline_count(rig.pipeline), 1);
    rig_close(&rig);
}

TEST(operation, that_never_comes_to_the_loop_fails_and_leaves_nothing)
{
    weir_thread_fn *const operations[] = {
        do_bind, do_deregister,  do_write_it,        do_abort, do_remove,
        do_add,  do_set_options, do_everything_else, do_flush, do_move};
    struct stepper other = stepper_open();
    struct rig rig;
    struct stranger stranger;

    rig_open(&rig);
    weir_channel_register(rig.channel, other.executor, NULL);
    (void)stepper_run(&other);
    stranger = stranger_at(&rig);
    stranger.text = "a";
    log_capture_start();
    for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++) {
        stranger.done = rig_promise(&rig, "done");
        msg_to_write = text_msg("x");
        if (operations[i] != do_write_it)
            weir_msg_release(msg_to_write);
        run_on_other_thread(operations[i], &stranger);
        weir_promise_release(stranger.done);
    }
    stepper_close(&other); /* cancels what was posted */
    rig_run(&rig);
    assert_int_equal(diary_count(&rig.diary, "done="), 10);
    assert_int_equal(weir_channel_pending_bytes(rig.channel), 0);
    weir_channel_abort(rig.channel, NULL);
    global_executor_stop();
    rig_close(&rig);
}

/* D 50: a write that is lost without a word would leave a hole in the stream. */
TEST(operation, that_is_lost_and_nobody_waits_for_is_an_error_of_the_channel)
{
    struct rig rig;
    struct stranger stranger;

    rig_open_started(&rig, NULL, WEIR_CHANNEL_OPTIONS(.write_cap = 10));
    stranger = stranger_at(&rig);
    run_on_other_thread(do_write_and_flush, &stranger);
    rig_run(&rig);
    assert_int_equal(diary_count(&rig.diary, "a.error(WEIR_EFULL)"), 1);
    rig_close(&rig);
}

/* Close and flush as well: they cannot be lost. */
TEST(operation, that_finds_no_memory_and_nobody_waits_for_ends_the_channel)
{
    weir_thread_fn *const operations[] = {do_write_it, do_flush, do_close};
    struct stranger stranger;

    for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++) {
        struct rig rig;

        rig_open_started(&rig, NULL, NULL);
        stranger = stranger_at(&rig);
        msg_to_write = text_msg("x");
        starved = operations[i];
        run_on_other_thread(do_starved, &stranger);
        if (operations[i] != do_write_it)
            weir_msg_release(msg_to_write);
        rig_run(&rig);
        assert_false(weir_channel_is_open(rig.channel));
        rig_close(&rig);
    }
}
