/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is asked of all members of a channel group.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <weir/buf.h>
#include <weir/channel_group.h>
#include <weir/error.h>

#include "os/thread.h"
#include "support/channel/group_fixture.h"
#include "support/executor/gate.h"
#include "support/executor/group.h"
#include "support/executor/log_capture.h"
#include "support/executor/run_on_thread.h"
#include "support/memory.h"

/* ---- on the test's own thread ---- */

struct setup {
    struct stepper stepper;
    struct group_fixture fixture;
    weir_channel_group *group;
    weir_promise *done;
};

static void open_setup(struct setup *setup, int members)
{
    setup->stepper = stepper_open();
    group_fixture_open(&setup->fixture, NULL);
    setup->group = setup->fixture.group;
    for (int i = 0; i < members; i++)
        (void)group_fixture_add(&setup->fixture, setup->stepper.executor, NULL, NULL);
    assert_int_equal(weir_promise_create(setup->stepper.executor, &setup->done), 0);
}

static void close_setup(struct setup *setup)
{
    weir_promise_release(setup->done);
    group_fixture_close(&setup->fixture, &setup->stepper);
    stepper_close(&setup->stepper);
}

static void assert_all_got(struct group_fixture *fixture, const char *text)
{
    for (size_t i = 0; i < fixture->count; i++)
        assert_wire(fixture, i, text);
}

TEST(broadcast, brings_a_message_to_all)
{
    struct setup setup;

    open_setup(&setup, 3);
    weir_channel_group_write_and_flush(setup.group, text_msg("hello"), setup.done, NULL, NULL);
    assert_all_got(&setup.fixture, "hello");
    assert_int_equal(weir_promise_result(setup.done), 0);
    assert_int_equal((uintptr_t)weir_promise_value(setup.done), 3);
    close_setup(&setup);
}

TEST(broadcast, completes_when_the_last_has_sent_it)
{
    struct setup setup;

    open_setup(&setup, 3);
    group_fixture_wire(&setup.fixture, 1)->room = 2;
    weir_channel_group_write(setup.group, text_msg("hello"), setup.done, NULL, NULL);
    assert_all_got(&setup.fixture, "");
    weir_channel_group_flush(setup.group, NULL, NULL);
    assert_wire(&setup.fixture, 0, "hello");
    assert_wire(&setup.fixture, 1, "he");
    assert_wire(&setup.fixture, 2, "hello");
    assert_int_equal(weir_promise_result(setup.done), -EINPROGRESS);
    group_fixture_wire(&setup.fixture, 1)->room = -1;
    weir__channel_writable(setup.fixture.members[1], 0);
    assert_wire(&setup.fixture, 1, "llo");
    assert_int_equal(weir_promise_result(setup.done), 0);
    close_setup(&setup);
}

TEST(broadcast, to_no_members_succeeds_at_once)
{
    struct setup setup;

    open_setup(&setup, 0);
    weir_channel_group_write_and_flush(setup.group, text_msg("hello"), setup.done, NULL, NULL);
    assert_int_equal(weir_promise_result(setup.done), 0);
    assert_null(weir_promise_value(setup.done));
    weir_channel_group_write(setup.group, text_msg("hello"), NULL, NULL, NULL);
    weir_channel_group_flush(setup.group, NULL, NULL);
    weir_channel_group_close(setup.group, NULL, NULL, NULL);
    close_setup(&setup);
}

TEST(broadcast, reports_the_number_of_failures_and_the_first_reason)
{
    struct setup setup;

    open_setup(&setup, 5);
    group_fixture_wire(&setup.fixture, 1)->options.admit_err = -ENOTSUP;
    group_fixture_wire(&setup.fixture, 3)->options.admit_err = -ENOTSUP;
    weir_channel_group_write_and_flush(setup.group, text_msg("x"), setup.done, NULL, NULL);
    assert_int_equal(weir_promise_result(setup.done), -ENOTSUP);
    assert_non_null(strstr(weir_promise_detail(setup.done), "2 of 5 failed: "));
    assert_non_null(strstr(weir_promise_detail(setup.done), weir_error_text(-ENOTSUP)));
    assert_wire(&setup.fixture, 0, "x");
    assert_wire(&setup.fixture, 1, "");
    assert_wire(&setup.fixture, 4, "x");
    close_setup(&setup);
}

TEST(broadcast, fires_a_failure_on_each_member_without_a_promise)
{
    struct setup setup;

    log_capture_start();
    open_setup(&setup, 2);
    group_fixture_wire(&setup.fixture, 1)->options.admit_err = -ENOTSUP;
    weir_channel_group_write_and_flush(setup.group, text_msg("x"), NULL, NULL, NULL);
    (void)stepper_run(&setup.stepper);
    assert_true(weir_channel_is_open(setup.fixture.members[0]));
    assert_false(weir_channel_is_open(setup.fixture.members[1])); /* the tail closes on an error */
    close_setup(&setup);
}

static bool is_second(weir_channel *channel, void *user_data)
{
    return channel == ((struct group_fixture *)user_data)->members[1];
}

TEST(broadcast, is_for_those_that_match)
{
    struct setup setup;
    const struct wire_options listener = {.accepts = true};

    open_setup(&setup, 3);
    weir_channel_group_write_and_flush(setup.group, text_msg("a"), NULL, is_second, &setup.fixture);
    weir_channel_group_write_and_flush(setup.group, text_msg("b"), NULL, weir_match_is,
                                       setup.fixture.members[0]);
    weir_channel_group_write_and_flush(setup.group, text_msg("c"), NULL, weir_match_is_not,
                                       setup.fixture.members[0]);
    assert_wire(&setup.fixture, 0, "b");
    assert_wire(&setup.fixture, 1, "ac");
    assert_wire(&setup.fixture, 2, "c");

    (void)group_fixture_add(&setup.fixture, setup.stepper.executor, &listener, NULL);
    weir_channel_group_abort(setup.group, setup.done, weir_match_listeners, NULL);
    assert_int_equal((uintptr_t)weir_promise_value(setup.done), 1);
    (void)stepper_run(&setup.stepper);
    assert_int_equal(weir_channel_group_size(setup.group), 3);
    weir_channel_group_abort(setup.group, NULL, weir_match_connections, NULL);
    (void)stepper_run(&setup.stepper);
    assert_int_equal(weir_channel_group_size(setup.group), 0);
    close_setup(&setup);
}

TEST(broadcast, skips_channels_that_do_not_read)
{
    struct setup setup;

    open_setup(&setup, 2);
    group_fixture_wire(&setup.fixture, 1)->room = 0;
    weir_channel_write_and_flush(setup.fixture.members[1], sized_msg(100000), NULL);
    weir_channel_group_write_and_flush(setup.group, text_msg("x"), setup.done, weir_match_writable,
                                       NULL);
    assert_int_equal((uintptr_t)weir_promise_value(setup.done), 1);
    assert_wire(&setup.fixture, 0, "x");
    close_setup(&setup);
}

TEST(broadcast, closes_aborts_and_takes_from_the_loop)
{
    static void (*const operations[])(weir_channel_group * group, weir_promise * done,
                                      weir_match_fn * match, void *user_data) = {
        weir_channel_group_close,
        weir_channel_group_abort,
        weir_channel_group_disconnect,
    };
    const struct wire_options no_linger = {.no_linger = true};
    struct setup setup;

    for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++) {
        open_setup(&setup, 0);
        for (size_t j = 0; j < 2; j++)
            (void)group_fixture_add(&setup.fixture, setup.stepper.executor, &no_linger, NULL);
        operations[i](setup.group, setup.done, NULL, NULL);
        (void)stepper_run(&setup.stepper);
        assert_int_equal(weir_promise_result(setup.done), 0);
        assert_int_equal((uintptr_t)weir_promise_value(setup.done), 2);
        assert_int_equal(weir_channel_group_size(setup.group), 0);
        close_setup(&setup);
    }
    open_setup(&setup, 2);
    weir_channel_group_deregister(setup.group, setup.done, NULL, NULL);
    (void)stepper_run(&setup.stepper);
    assert_int_equal(weir_promise_result(setup.done), 0);
    assert_int_equal(weir_channel_group_size(setup.group), 2);
    assert_false(weir_channel_is_registered(setup.fixture.members[0]));
    close_setup(&setup);
}

/* ---- what the members get ---- */

static const uint8_t *bytes_of_last;
static const weir_msg *last;

static void on_write(weir_ctx *ctx, weir_msg *msg, weir_promise *done)
{
    if (weir_buf_of(msg) != NULL) {
        bytes_of_last = weir_buf_bytes(weir_buf_of(msg));
        assert_int_equal(weir_buf_set_u8(weir_buf_of(msg), 0, 'X'), -EROFS);
    }
    last = msg;
    weir_write(ctx, msg, done);
}

static const weir_handler watcher = {.name = "watcher", .write = on_write};

static void watch(struct setup *setup)
{
    for (size_t i = 0; i < setup->fixture.count; i++)
        assert_int_equal(weir_pipeline_add_last(weir_channel_pipeline(setup->fixture.members[i]),
                                                &watcher, NULL),
                         0);
}

TEST(broadcast, copies_no_bytes_and_makes_them_read_only)
{
    struct setup setup;
    weir_msg *msg = text_msg("hello");
    const uint8_t *bytes = weir_buf_bytes(weir_buf_of(msg));

    open_setup(&setup, 2);
    watch(&setup);
    weir_channel_group_write_and_flush(setup.group, msg, setup.done, NULL, NULL);
    assert_ptr_equal(bytes_of_last, bytes);
    assert_ptr_not_equal(last, msg);
    assert_all_got(&setup.fixture, "hello");
    close_setup(&setup);
}

struct note {
    weir_msg msg;
    int destroyed;
};

static void destroy_note(weir_msg *msg)
{
    WEIR_CONTAINER_OF(msg, struct note, msg)->destroyed++;
}

static const weir_msg_type note_type = {.name = "note", .destroy = destroy_note};

TEST(broadcast, gives_a_message_of_the_users_own_to_all)
{
    struct setup setup;
    struct note note = {.destroyed = 0};

    open_setup(&setup, 2);
    watch(&setup);
    weir_msg_init(&note.msg, &note_type);
    group_fixture_wire(&setup.fixture, 0)->options.admit_err = -ENOTSUP;
    group_fixture_wire(&setup.fixture, 1)->options.admit_err = -ENOTSUP;
    weir_channel_group_write(setup.group, &note.msg, setup.done, NULL, NULL);
    assert_ptr_equal(last, &note.msg);
    assert_int_equal(weir_promise_result(setup.done), -ENOTSUP);
    assert_int_equal(note.destroyed, 1);
    close_setup(&setup);
}

TEST(broadcast, does_nothing_for_a_promise_that_is_complete)
{
    struct setup setup;

    log_capture_start();
    open_setup(&setup, 1);
    assert_int_equal(weir_promise_cancel(setup.done), 0);
    weir_channel_group_write_and_flush(setup.group, text_msg("x"), setup.done, NULL, NULL);
    assert_int_equal(log_capture_count(WEIR_LOG_ERROR), 0);
    weir_promise_release(setup.done);
    assert_int_equal(weir_promise_create_completed(NULL, 0, NULL, &setup.done), 0);
    weir_channel_group_write_and_flush(setup.group, text_msg("x"), setup.done, NULL, NULL);
    assert_int_equal(log_capture_count(WEIR_LOG_ERROR), 1);
    assert_wire(&setup.fixture, 0, "");
    close_setup(&setup);
}

static void write_again(weir_promise *promise, void *user_data)
{
    struct setup *setup = user_data;

    (void)promise;
    weir_channel_group_write_and_flush(setup->group, text_msg("b"), NULL, NULL, NULL);
    weir_channel_group_abort(setup->group, NULL, NULL, NULL);
}

TEST(broadcast, may_be_started_in_the_listener_of_another)
{
    struct setup setup;

    open_setup(&setup, 2);
    assert_int_equal(weir_promise_add_listener(setup.done, write_again, &setup), 0);
    weir_channel_group_write_and_flush(setup.group, text_msg("a"), setup.done, NULL, NULL);
    (void)stepper_run(&setup.stepper);
    assert_all_got(&setup.fixture, "ab");
    assert_int_equal(weir_channel_group_size(setup.group), 0);
    close_setup(&setup);
}

/* ---- to other loops ---- */

#define EACH 8

struct crowd {
    weir_group *loops;
    struct group_fixture fixture;
    weir_channel_group *group;
    weir_promise *done;
    struct gate gates[2];
};

static void open_crowd(struct crowd *crowd, const weir_channel_options *options)
{
    memset(crowd, 0, sizeof(*crowd));
    crowd->loops = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 2));
    group_fixture_open(&crowd->fixture, NULL);
    crowd->group = crowd->fixture.group;
    for (size_t i = 0; i < 2 * EACH; i++)
        (void)group_fixture_add(&crowd->fixture, weir_group_at(crowd->loops, i % 2), NULL, options);
    assert_int_equal(weir_promise_create(NULL, &crowd->done), 0);
}

static void close_crowd(struct crowd *crowd)
{
    weir_promise_release(crowd->done);
    group_fixture_close(&crowd->fixture, NULL);
    end_group(crowd->loops);
}

/* Blocks all loops until they are released. */
static void stop(struct crowd *crowd)
{
    for (size_t i = 0; i < 2; i++) {
        gate_hold(&crowd->gates[i], weir_group_at(crowd->loops, i));
    }
}

static void let_go(struct crowd *crowd)
{
    for (size_t i = 0; i < 2; i++)
        gate_open(&crowd->gates[i]);
}

TEST(broadcast, posts_one_task_per_loop)
{
    struct crowd crowd;

    open_crowd(&crowd, NULL);
    stop(&crowd);
    weir_channel_group_write_and_flush(crowd.group, text_msg("x"), crowd.done, NULL, NULL);
    assert_int_equal(weir_executor_pending(weir_group_at(crowd.loops, 0)), 1);
    assert_int_equal(weir_executor_pending(weir_group_at(crowd.loops, 1)), 1);
    let_go(&crowd);
    assert_int_equal(weir_promise_sync(crowd.done, TEST_TIMEOUT_NS), 0);
    assert_int_equal((uintptr_t)weir_promise_value(crowd.done), 2 * EACH);
    assert_all_got(&crowd.fixture, "x");
    close_crowd(&crowd);
}

TEST(broadcast, from_a_loop_asks_its_own_members_at_once)
{
    struct crowd crowd;
    struct stepper stepper = stepper_open();

    open_crowd(&crowd, NULL);
    (void)group_fixture_add(&crowd.fixture, stepper.executor, NULL, NULL);
    weir_channel_group_write_and_flush(crowd.group, text_msg("x"), crowd.done, NULL, NULL);
    assert_wire(&crowd.fixture, 2 * EACH, "x");
    assert_int_equal(weir_promise_sync(crowd.done, TEST_TIMEOUT_NS), 0);
    assert_wire(&crowd.fixture, 0, "x");
    weir_channel_abort(crowd.fixture.members[2 * EACH], NULL);
    (void)stepper_run(&stepper);
    close_crowd(&crowd);
    stepper_close(&stepper);
}

TEST(broadcast, counts_against_the_marks_before_the_loop_has_it)
{
    struct crowd crowd;
    weir_channel *member;

    open_crowd(&crowd, WEIR_CHANNEL_OPTIONS(.low_mark = 500, .high_mark = 1000));
    member = crowd.fixture.members[3];
    stop(&crowd);
    weir_channel_group_write_and_flush(crowd.group, sized_msg(2000), crowd.done, NULL, NULL);
    assert_true(weir_channel_pending_bytes(member) >= 2000);
    assert_false(weir_channel_is_writable(member));
    let_go(&crowd);
    assert_int_equal(weir_promise_sync(crowd.done, TEST_TIMEOUT_NS), 0);
    close_crowd(&crowd); /* waits for the loops */
}

static void nothing(void *arg)
{
    (void)arg;
}

TEST(broadcast, leaves_the_marks_as_they_were)
{
    struct crowd crowd;

    open_crowd(&crowd, WEIR_CHANNEL_OPTIONS(.low_mark = 500, .high_mark = 1000));
    weir_channel_group_write_and_flush(crowd.group, sized_msg(2000), crowd.done, NULL, NULL);
    assert_int_equal(weir_promise_sync(crowd.done, TEST_TIMEOUT_NS), 0);
    for (size_t i = 0; i < 2; i++)
        run_on_executor(weir_group_at(crowd.loops, i), nothing, NULL);
    for (size_t i = 0; i < 2 * EACH; i++) {
        assert_int_equal(weir_channel_pending_bytes(crowd.fixture.members[i]), 0);
        assert_true(weir_channel_is_writable(crowd.fixture.members[i]));
    }
    close_crowd(&crowd);
}

TEST(broadcast, beyond_a_members_cap_fails_for_that_one)
{
    struct crowd crowd;

    open_crowd(&crowd, WEIR_CHANNEL_OPTIONS(.write_cap = 3000));
    weir_channel_group_write_and_flush(crowd.group, sized_msg(5000), crowd.done, NULL, NULL);
    assert_int_equal(weir_promise_sync(crowd.done, TEST_TIMEOUT_NS), WEIR_EFULL);
    assert_non_null(strstr(weir_promise_detail(crowd.done), "16 of 16 failed: "));
    assert_int_equal(weir_channel_pending_bytes(crowd.fixture.members[0]), 0);
    close_crowd(&crowd);
}

TEST(broadcast, that_is_cancelled_skips_loops_that_have_not_started)
{
    struct crowd crowd;

    open_crowd(&crowd, NULL);
    stop(&crowd);
    weir_channel_group_write_and_flush(crowd.group, text_msg("x"), crowd.done, NULL, NULL);
    assert_int_equal(weir_promise_cancel(crowd.done), 0);
    let_go(&crowd);
    for (size_t i = 0; i < 2; i++)
        run_on_executor(weir_group_at(crowd.loops, i), nothing, NULL);
    assert_all_got(&crowd.fixture, "");
    assert_int_equal(weir_channel_pending_bytes(crowd.fixture.members[0]), 0);
    close_crowd(&crowd);
}

/* Bytes that were counted before the loop had them, and never came. */
TEST(broadcast, that_is_cancelled_leaves_the_marks_as_they_were)
{
    struct crowd crowd;

    open_crowd(&crowd, WEIR_CHANNEL_OPTIONS(.low_mark = 500, .high_mark = 1000));
    stop(&crowd);
    weir_channel_group_write_and_flush(crowd.group, sized_msg(2000), crowd.done, NULL, NULL);
    for (size_t i = 0; i < 2 * EACH; i++)
        assert_false(weir_channel_is_writable(crowd.fixture.members[i]));
    assert_int_equal(weir_promise_cancel(crowd.done), 0);
    let_go(&crowd);
    for (size_t i = 0; i < 2; i++)
        run_on_executor(weir_group_at(crowd.loops, i), nothing, NULL);
    for (size_t i = 0; i < 2 * EACH; i++)
        assert_true(weir_channel_is_writable(crowd.fixture.members[i]));
    close_crowd(&crowd);
}

TEST(broadcast, reaches_channels_that_have_moved)
{
    struct crowd crowd;
    weir_promise *moved;

    open_crowd(&crowd, NULL);
    assert_int_equal(weir_promise_create(NULL, &moved), 0);
    weir_channel_deregister(crowd.fixture.members[0], NULL);
    stop(&crowd);
    weir_channel_register(crowd.fixture.members[0], weir_group_at(crowd.loops, 1), moved);
    weir_channel_group_write_and_flush(crowd.group, text_msg("x"), crowd.done, NULL, NULL);
    let_go(&crowd);
    assert_int_equal(weir_promise_sync(moved, TEST_TIMEOUT_NS), 0);
    assert_int_equal(weir_promise_sync(crowd.done, TEST_TIMEOUT_NS), 0);
    assert_ptr_equal(weir_channel_executor(crowd.fixture.members[0]),
                     weir_group_at(crowd.loops, 1));
    assert_all_got(&crowd.fixture, "x");
    assert_int_equal(weir_channel_pending_bytes(crowd.fixture.members[0]), 0);
    weir_promise_release(moved);
    close_crowd(&crowd);
}

/* The bound of the queue is for tasks of users. */
TEST(broadcast, to_a_loop_with_a_full_queue_reaches_its_members)
{
    weir_group *loops = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 1, .max_pending = 16));
    weir_executor *loop = weir_group_at(loops, 0);
    struct group_fixture fixture;
    struct gate gate = {0};
    struct call_counter counter = {0};
    uint32_t queued = 0;
    weir_promise *done;

    group_fixture_open(&fixture, NULL);
    for (size_t i = 0; i < 3; i++)
        (void)group_fixture_add(&fixture, loop, NULL, NULL);
    assert_int_equal(weir_promise_create(NULL, &done), 0);
    gate_hold(&gate, loop);
    while (weir_execute(loop, call_counter_task, &counter) == 0)
        queued++;
    weir_channel_group_write_and_flush(fixture.group, text_msg("x"), done, NULL, NULL);
    gate_open(&gate);
    assert_true(call_counter_await(&counter, queued));
    assert_int_equal(weir_promise_sync(done, TEST_TIMEOUT_NS), 0);
    run_on_executor(loop, nothing, NULL);
    assert_int_equal(weir_channel_pending_bytes(fixture.members[0]), 0);
    weir_promise_release(done);
    group_fixture_close(&fixture, NULL);
    end_group(loops);
}

TEST(broadcast, to_members_whose_loop_has_ended_completes)
{
    struct crowd crowd;

    open_crowd(&crowd, NULL);
    stop(&crowd);
    weir_channel_group_write_and_flush(crowd.group, text_msg("x"), crowd.done, NULL, NULL);
    assert_int_equal(weir_group_shutdown(crowd.loops, 0, 0), 0);
    let_go(&crowd);
    assert_int_equal(weir_promise_await(crowd.done, TEST_TIMEOUT_NS), 0);
    assert_int_equal(weir_group_await_termination(crowd.loops, TEST_TIMEOUT_NS), 0);
    weir_channel_group_close(crowd.group, NULL, NULL, NULL);
    close_crowd(&crowd);
}

/* ---- the order of single calls and broadcasts ---- */

static void write_in_turn(void *arg)
{
    struct setup *setup = arg;
    weir_channel *member = setup->fixture.members[0];

    weir_channel_group_write(setup->group, text_msg("1"), NULL, NULL, NULL);
    weir_channel_write(member, text_msg("2"), NULL);
    weir_channel_group_write(setup->group, text_msg("3"), NULL, NULL, NULL);
    weir_channel_write_and_flush(member, text_msg("4"), NULL);
}

TEST(broadcast, keeps_its_place_among_the_calls_of_a_thread)
{
    struct setup setup;

    open_setup(&setup, 2);
    run_on_other_thread(write_in_turn, &setup);
    weir_channel_write_and_flush(setup.fixture.members[0], text_msg("5"), NULL);
    (void)stepper_run(&setup.stepper);
    assert_wire(&setup.fixture, 0, "12345");
    close_setup(&setup);
}

/* ---- no memory ---- */

/* A member that has not got "x" must not get what is sent behind it. */
static void assert_no_gap(struct setup *setup)
{
    weir_channel_group_write_and_flush(setup->group, text_msg("y"), NULL, NULL, NULL);
    for (size_t i = 0; i < setup->fixture.count; i++) {
        struct wire *wire = group_fixture_wire(&setup->fixture, i);

        wire->sent[wire->sent_length] = '\0';
        assert_true(strcmp(wire->sent, "xy") == 0 || strcmp(wire->sent, "") == 0);
    }
}

static void broadcast_without_memory(unsigned n, bool waits, bool *ret_failed)
{
    struct setup setup;
    weir_msg *msg = text_msg("x");
    int err;

    open_setup(&setup, 3);
    test_memory_fail_at(n);
    weir_channel_group_write_and_flush(setup.group, msg, waits ? setup.done : NULL, NULL, NULL);
    *ret_failed = test_memory_failed();
    test_memory_fail_at(0);
    err = waits ? weir_promise_result(setup.done) : 0;
    assert_true(err == (waits && *ret_failed ? -ENOMEM : 0));
    if (!waits)
        assert_no_gap(&setup);
    (void)stepper_run(&setup.stepper);
    if (*ret_failed && !waits) /* somebody has not got it, and will not go on as if he had */
        assert_true(weir_channel_group_size(setup.group) < 3);
    close_setup(&setup);
}

TEST(broadcast, without_memory_is_reported)
{
    bool failed = true;
    unsigned n;

    log_capture_start();
    for (n = 1; failed; n++)
        broadcast_without_memory(n, true, &failed);
    assert_in_range(n, 5, 30); /* the receivers; a promise, a view for each */
    for (n = 1, failed = true; failed; n++)
        broadcast_without_memory(n, false, &failed);
    assert_in_range(n, 3, 30);
}

static void post_without_memory(unsigned n, bool *ret_failed)
{
    struct crowd crowd;
    weir_msg *msg = text_msg("x");

    open_crowd(&crowd, NULL);
    test_memory_fail_at(n);
    weir_channel_group_write_and_flush(crowd.group, msg, crowd.done, NULL, NULL);
    assert_int_equal(weir_promise_await(crowd.done, TEST_TIMEOUT_NS), 0);
    *ret_failed = test_memory_failed();
    test_memory_fail_at(0);
    assert_true(weir_promise_result(crowd.done) == 0 || *ret_failed);
    close_crowd(&crowd);
}

TEST(broadcast, without_memory_to_post_it_is_still_made)
{
    bool failed = true;

    log_capture_start();
    for (unsigned n = 1; failed; n++)
        post_without_memory(n, &failed);
}

/* ---- a stress: channels come and go while others broadcast ---- */

#define ROUNDS 300

struct stress {
    weir_group *loops;
    weir_channel_group *group;
    struct event_log events;
    struct call_counter completed;
    _Atomic uint32_t asked;
};

static void count_completed(weir_promise *promise, void *user_data)
{
    (void)promise;
    call_counter_add(user_data);
}

static void shout(void *arg)
{
    struct stress *stress = arg;
    weir_promise *done;
    weir_buf *buf;

    for (int i = 0; i < ROUNDS; i++) {
        if (weir_buf_create_from("hello", 5, &buf) < 0 || weir_promise_create(NULL, &done) < 0 ||
            weir_promise_add_listener(done, count_completed, &stress->completed) < 0)
            abort();
        atomic_fetch_add(&stress->asked, 1);
        weir_channel_group_write_and_flush(stress->group, weir_buf_msg(buf), done, NULL, NULL);
        weir_promise_release(done);
        (void)weir_channel_group_size(stress->group);
    }
}

static void come_and_go(void *arg)
{
    struct stress *stress = arg;
    weir_channel *channel;
    int err;

    for (int i = 0; i < ROUNDS; i++) {
        if (wire_create(&stress->events, &(struct wire_options){.silent = true}, NULL, NULL,
                        &channel) < 0)
            abort();
        weir_group_register(stress->loops, channel, NULL);
        if (i % 7 == 0) /* it may have gone before it has come */
            weir_channel_abort(channel, NULL);
        err = weir_channel_group_add(stress->group, channel);
        if (err < 0 && (err != WEIR_ECLOSED || i % 7 != 0))
            abort();
        if (i % 3 == 0)
            (void)weir_channel_group_remove(stress->group, channel);
        if (i % 5 == 0)
            IGNORE_RESULT(weir_channel_group_add(stress->group, channel));
        if (i % 2 == 0)
            weir_channel_abort(channel, NULL);
        if (i % 4 == 0) /* it may be leaving by itself */
            (void)weir_channel_group_remove(stress->group, channel);
        weir_channel_release(channel);
        if (i % 100 == 99)
            weir_channel_group_abort(stress->group, NULL, NULL, NULL);
    }
}

TEST(broadcast, and_coming_and_going_do_not_disturb_each_other)
{
    static struct stress stress;
    weir__thread threads[4];

    memset(&stress, 0, sizeof(stress));
    log_capture_start();
    event_log_open(&stress.events);
    stress.loops = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 2));
    assert_int_equal(weir_channel_group_create(NULL, &stress.group), 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(
            weir__thread_start("stress", i < 2 ? shout : come_and_go, &stress, &threads[i]), 0);
    for (int i = 0; i < 4; i++)
        weir__thread_join(&threads[i]);
    weir_channel_group_abort(stress.group, NULL, NULL, NULL);
    assert_true(call_counter_await(&stress.completed, stress.asked));
    end_group(stress.loops);
    weir_channel_group_release(stress.group);
    event_log_close(&stress.events);
}
