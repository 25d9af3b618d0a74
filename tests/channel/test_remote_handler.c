/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handlers on other executors.
 */
#include "channel/remote_handler.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <weir/error.h>

#include "support/channel/test_channel.h"
#include "support/executor/call_counter.h"
#include "support/executor/gate.h"
#include "support/executor/group.h"
#include "support/executor/log_capture.h"
#include "support/executor/run_on_thread.h"
#include "support/memory.h"

/*
 * A test channel, and a group of one thread that a handler "e" runs on, between "a" and "z". What
 * the loop does is done while that thread is held at a gate, so that the order of everything is
 * known: the loop, the thread, the loop again, and so on.
 */
struct far {
    struct test_channel tc;
    weir_group *group;
    struct gate gate;
};

static weir_executor *executor_of(struct far *far)
{
    return weir_group_at(far->group, 0);
}

static void nothing(void *arg)
{
    (void)arg;
}

static void hold(struct far *far)
{
    far->gate = (struct gate){{0}, {0}};
    gate_hold(&far->gate, executor_of(far));
}

/* Until nothing is under way: the way through the handler is two hops, and they may be repeated. */
static void settle(struct far *far)
{
    for (int i = 0; i < 6; i++) {
        gate_open(&far->gate);
        run_on_executor(executor_of(far), nothing, NULL);
        hold(far);
        tc_run(&far->tc);
    }
}

static void add_far(struct far *far, const char *name)
{
    struct event_recorder options = {.events = &far->tc.events};

    strncpy(options.name, name, sizeof(options.name) - 1);
    assert_int_equal(weir_pipeline_add(far->tc.pipeline,
                                       WEIR_PLACE(.name = name, .group = far->group),
                                       &event_recorder, &options),
                     0);
}

static void far_open_bare(struct far *far, const struct wire_options *wire,
                          const weir_channel_options *options)
{
    far->group = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 1));
    hold(far);
    tc_open_with(&far->tc, wire, options);
}

static void far_open_with(struct far *far, const weir_channel_options *options)
{
    far_open_bare(far, NULL, options);
    tc_add(&far->tc, "a");
    add_far(far, "e");
    tc_add(&far->tc, "z");
    tc_start(&far->tc);
    settle(far);
}

static void far_open(struct far *far)
{
    far_open_with(far, NULL);
}

static void far_close(struct far *far)
{
    far->tc.wire->options.slow_close = false;
    weir_channel_abort(far->tc.channel, NULL);
    settle(far);
    tc_close(&far->tc);
    gate_open(&far->gate);
    end_group(far->group);
}

TEST(hop, brings_the_life_of_a_channel_there_and_back)
{
    struct far far;

    far_open(&far);
    assert_events(&far.tc.events,
                  "ATTACH a.added z.added a.registered a.active z.request_read e.added "
                  "e.registered e.active e.request_read z.registered z.active a.request_read READ");
    far_close(&far);
}

TEST(hop, keeps_the_order_of_what_is_read_and_written)
{
    struct far far;
    weir_promise *done;

    far_open(&far);
    event_log_clear(&far.tc.events);
    (void)tc_receive(&far.tc, "1");
    (void)tc_receive(&far.tc, "2");
    weir__channel_read_complete(far.tc.channel);
    settle(&far);
    assert_events(&far.tc.events,
                  "a.read(1) a.read(2) a.read_complete z.request_read e.read(1) e.read(2) "
                  "e.read_complete e.request_read z.read(1) z.read(2) z.read_complete "
                  "a.request_read");

    done = tc_promise(&far.tc, "done");
    weir_channel_write(far.tc.channel, text_msg("x"), NULL);
    weir_channel_write_and_flush(far.tc.channel, text_msg("y"), done);
    assert_int_equal(weir_channel_pending_bytes(far.tc.channel), 2 + 2 * WEIR__OUTBOUND_COST);
    settle(&far);
    assert_events(&far.tc.events, "z.write(x) z.write(y) z.flush e.write(x) e.write(y) e.flush "
                                  "a.write(x) a.write(y) a.flush FLUSH done=ok");
    assert_int_equal(weir_channel_pending_bytes(far.tc.channel), 0);
    assert_sent(&far.tc, "xy");
    weir_promise_release(done);
    far_close(&far);
}

TEST(hop, brings_a_half_closure_along_behind_what_was_written)
{
    struct far far;
    weir_promise *done;

    far_open(&far);
    event_log_clear(&far.tc.events);
    done = tc_promise(&far.tc, "done");
    weir_channel_write(far.tc.channel, text_msg("x"), NULL);
    weir_channel_shutdown_output(far.tc.channel, done);
    settle(&far);
    assert_events(&far.tc.events,
                  "z.write(x) z.shutdown_output e.write(x) e.shutdown_output a.write(x) "
                  "a.shutdown_output FLUSH FIN done=ok a.event(output-closed) "
                  "e.event(output-closed) z.event(output-closed)");
    assert_sent(&far.tc, "x");
    weir_promise_release(done);
    far_close(&far);
}

TEST(hop, runs_the_handler_on_its_own_executor)
{
    struct far far;
    weir_ctx *e;

    far_open(&far);
    e = weir_pipeline_find(far.tc.pipeline, "e");
    assert_ptr_equal(weir_ctx_executor(e), executor_of(&far));
    assert_ptr_equal(weir_ctx_executor(weir_pipeline_find(far.tc.pipeline, "a")),
                     far.tc.stepper.executor);
    far_close(&far);
}

TEST(hop, moves_an_event_that_is_still_under_way_behind_the_last_message)
{
    struct far far;

    far_open(&far);
    event_log_clear(&far.tc.events);
    (void)tc_receive(&far.tc, "1");
    weir__channel_read_complete(far.tc.channel);
    (void)tc_receive(&far.tc, "2");
    weir__channel_read_complete(far.tc.channel);
    event_log_clear(&far.tc.events);
    settle(&far);
    assert_int_equal(event_log_count(&far.tc.events, "e.read_complete"), 1);
    assert_non_null(strstr(far.tc.events.text, "e.read(1) e.read(2) e.read_complete"));
    assert_non_null(strstr(far.tc.events.text, "z.read(1) z.read(2) z.read_complete"));
    far_close(&far);
}

/* Asked for by "a", so that "e" has nothing to do with it. */
static void move_away(struct far *far)
{
    weir_deregister(weir_pipeline_find(far->tc.pipeline, "a"), NULL);
    tc_run(&far->tc);
}

/* The loop lets go of the channel and takes it again, while the handler's executor is busy. */
static void move_away_and_back(struct far *far)
{
    move_away(far);
    weir_channel_register(far->tc.channel, far->tc.stepper.executor, NULL);
    tc_run(&far->tc);
}

/* What "e" wrote down, without what the others did. */
static void assert_e_heard(struct far *far, const char *words)
{
    char heard[EVENT_LOG_SIZE] = "", *at = heard, *rest = far->tc.events.text, *word;

    while ((word = strtok_r(rest, " ", &rest)) != NULL)
        if (strncmp(word, "e.", 2) == 0)
            at += sprintf(at, "%s%s", at > heard ? " " : "", word);
    event_log_clear(&far->tc.events);
    assert_string_equal(heard, words);
}

TEST(hop, brings_a_move_to_another_loop_along)
{
    struct far far;

    far_open(&far);
    event_log_clear(&far.tc.events);
    move_away_and_back(&far);
    settle(&far);
    assert_e_heard(&far, "e.unregistered e.registered e.request_read");
    far_close(&far);
}

TEST(hop, does_not_tell_of_the_end_of_a_registration_before_its_beginning)
{
    struct far far;

    far_open_bare(&far, NULL, NULL);
    tc_add(&far.tc, "a");
    add_far(&far, "e");
    tc_start(&far.tc);
    move_away_and_back(&far);
    move_away_and_back(&far);
    settle(&far);
    assert_e_heard(&far, "e.added e.registered e.active e.request_read");
    move_away(&far);
    settle(&far);
    assert_e_heard(&far, "e.unregistered");
    far_close(&far);
}

TEST(hop, tells_messages_between_the_beginning_of_a_registration_and_its_end)
{
    struct far far;

    far_open(&far);
    event_log_clear(&far.tc.events);
    move_away_and_back(&far);
    (void)tc_receive(&far.tc, "x");
    move_away(&far);
    settle(&far);
    assert_e_heard(&far, "e.request_read e.read(x) e.unregistered");
    far_close(&far);
}

TEST(hop, brings_events_errors_and_promises_along)
{
    struct far far;
    weir_promise *closed;

    far_open(&far);
    event_log_clear(&far.tc.events);
    weir_channel_fire_event(far.tc.channel, text_msg("ev"));
    settle(&far);
    assert_events(&far.tc.events, "a.event(ev) e.event(ev) z.event(ev)");
    log_capture_start();
    {
        char sentence[] = "a sentence that is gone when it arrives";

        weir_pipeline_fire_error(far.tc.pipeline, -EPROTO, sentence);
        memset(sentence, 'x', sizeof(sentence) - 1);
    }
    closed = tc_promise(&far.tc, "closed");
    weir_channel_close(far.tc.channel, closed);
    settle(&far);
    assert_true(log_capture_last_contains("a sentence that is gone when it arrives"));
    tc_end_input(&far.tc);
    assert_int_equal(weir_promise_result(closed), 0);
    weir_promise_release(closed);
    far_close(&far);
}

TEST(hop, brings_addresses_along)
{
    struct far far;
    weir_address address;
    weir_promise *done;

    far_open_bare(&far, &(struct wire_options){.idle = true}, NULL);
    add_far(&far, "e");
    tc_start(&far.tc);
    settle(&far);
    event_log_clear(&far.tc.events);
    assert_int_equal(weir_address_parse("1.2.3.4:5", &address), 0);
    done = tc_promise(&far.tc, "done");
    weir_channel_connect(far.tc.channel, &address, &address, done);
    settle(&far);
    weir__channel_connected(far.tc.channel, 0);
    settle(&far);
    assert_events(&far.tc.events, "e.connect CONNECT done=ok e.active e.request_read READ");
    weir_promise_release(done);
    far_close(&far);
}

/* D 46 */
TEST(hop, removes_handlers_from_the_tail_on_across_executors)
{
    struct far far;

    far_open(&far);
    add_far(&far, "f");
    tc_add(&far.tc, "y");
    settle(&far);
    event_log_clear(&far.tc.events);
    weir_channel_abort(far.tc.channel, NULL);
    settle(&far);
    assert_non_null(strstr(far.tc.events.text, "y.removed"));
    assert_true(strstr(far.tc.events.text, "y.removed") < strstr(far.tc.events.text, "f.removed"));
    assert_true(strstr(far.tc.events.text, "f.removed") < strstr(far.tc.events.text, "z.removed"));
    assert_true(strstr(far.tc.events.text, "z.removed") < strstr(far.tc.events.text, "e.removed"));
    assert_true(strstr(far.tc.events.text, "e.removed") < strstr(far.tc.events.text, "a.removed"));
    assert_true(strstr(far.tc.events.text, "e.unregistered") <
                strstr(far.tc.events.text, "e.removed"));
    far_close(&far);
}

static weir_executor *executor_in(struct test_channel *tc, const char *name)
{
    return weir_ctx_executor(weir_pipeline_find(tc->pipeline, name));
}

/* D 49 */
TEST(hop, pins_a_group_to_one_executor_a_channel_unless_told_otherwise)
{
    weir_group *group = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 4));
    struct test_channel tc;

    for (int per_handler = 0; per_handler <= 1; per_handler++) {
        tc_open_with(&tc, NULL, WEIR_CHANNEL_OPTIONS(.executor_per_handler = per_handler == 1));
        assert_int_equal(weir_pipeline_add(tc.pipeline, WEIR_PLACE(.name = "e", .group = group),
                                           &event_recorder, EVENT_RECORDER(&tc.events, "e")),
                         0);
        assert_int_equal(weir_pipeline_add(tc.pipeline, WEIR_PLACE(.name = "f", .group = group),
                                           &event_recorder, EVENT_RECORDER(&tc.events, "f")),
                         0);
        assert_int_equal(executor_in(&tc, "e") != executor_in(&tc, "f"), per_handler);
        tc_close(&tc);
    }
    end_group(group);
}

TEST(hop, calls_neighbours_on_the_same_executor_directly)
{
    struct far far;

    far_open(&far);
    assert_int_equal(weir_pipeline_add(far.tc.pipeline,
                                       WEIR_PLACE(.after = "e", .name = "f", .group = far.group),
                                       &event_recorder, EVENT_RECORDER(&far.tc.events, "f")),
                     0);
    settle(&far);
    event_log_clear(&far.tc.events);
    (void)tc_receive(&far.tc, "1");
    (void)tc_receive(&far.tc, "2");
    settle(&far);
    assert_events(
        &far.tc.events,
        "a.read(1) a.read(2) e.read(1) f.read(1) e.read(2) f.read(2) z.read(1) z.read(2)");
    weir_channel_write(far.tc.channel, text_msg("x"), NULL);
    settle(&far);
    assert_events(&far.tc.events, "z.write(x) f.write(x) e.write(x) a.write(x)");
    far_close(&far);
}

/* The executor does what it has to; the loop does not look yet. */
static void run_far(struct far *far)
{
    gate_open(&far->gate);
    run_on_executor(executor_of(far), nothing, NULL);
    hold(far);
}

/* Two on the same executor, "e" and "f", with "c" between them on the loop. */
static void far_open_apart(struct far *far)
{
    far_open_bare(far, NULL, NULL);
    add_far(far, "e");
    tc_add(&far->tc, "c");
    add_far(far, "f");
    tc_start(&far->tc);
    settle(far);
}

/* "1" has left "e", and is on its way over the loop. */
TEST(hop, that_becomes_a_neighbour_is_not_called_before_what_is_under_way)
{
    struct far far;

    far_open_apart(&far);
    (void)tc_receive(&far.tc, "1");
    run_far(&far);
    assert_int_equal(weir_pipeline_remove(far.tc.pipeline, "c", NULL), 0);
    (void)tc_receive(&far.tc, "2");
    tc_run(&far.tc);
    event_log_clear(&far.tc.events);
    settle(&far);
    assert_events(&far.tc.events, "e.read(2) f.read(1) f.read(2)");
    (void)tc_receive(&far.tc, "3");
    (void)tc_receive(&far.tc, "4");
    settle(&far);
    assert_events(&far.tc.events, "e.read(3) f.read(3) e.read(4) f.read(4)");
    far_close(&far);
}

TEST(hop, that_becomes_a_neighbour_is_not_written_to_before_what_is_under_way)
{
    struct far far;

    far_open_apart(&far);
    weir_channel_write(far.tc.channel, text_msg("1"), NULL);
    run_far(&far);
    assert_int_equal(weir_pipeline_remove(far.tc.pipeline, "c", NULL), 0);
    weir_channel_write(far.tc.channel, text_msg("2"), NULL);
    tc_run(&far.tc);
    event_log_clear(&far.tc.events);
    settle(&far);
    assert_events(&far.tc.events, "f.write(2) e.write(1) e.write(2)");
    far_close(&far);
}

TEST(hop, that_is_added_as_a_neighbour_is_not_called_before_what_is_under_way)
{
    struct far far;

    far_open_bare(&far, NULL, NULL);
    add_far(&far, "e");
    tc_start(&far.tc);
    settle(&far);
    (void)tc_receive(&far.tc, "1");
    run_far(&far);
    (void)tc_receive(&far.tc, "2");
    add_far(&far, "f");
    tc_run(&far.tc);
    event_log_clear(&far.tc.events);
    settle(&far);
    assert_events(&far.tc.events, "e.read(2) f.added f.read(1) f.read(2)");
    far_close(&far);
}

/* "m", between them, is removed with "1" on its way to it. */
TEST(hop, whose_neighbour_is_removed_does_not_overtake_what_that_passes_on)
{
    struct far far;

    far_open_bare(&far, NULL, NULL);
    add_far(&far, "e");
    add_far(&far, "m");
    add_far(&far, "f");
    tc_start(&far.tc);
    settle(&far);
    (void)tc_receive(&far.tc, "1");
    event_log_clear(&far.tc.events);
    assert_int_equal(weir_pipeline_remove(far.tc.pipeline, "m", NULL), 0);
    (void)tc_receive(&far.tc, "2");
    settle(&far);
    assert_events(&far.tc.events, "e.read(1) e.read(2) m.removed m.deinit f.read(1) f.read(2)");
    (void)tc_receive(&far.tc, "3");
    settle(&far);
    assert_events(&far.tc.events, "e.read(3) f.read(3)");
    far_close(&far);
}

/* It answers inside the call: the way back is as short. */
static void answer(weir_ctx *ctx, weir_msg *msg)
{
    weir_write(ctx, msg, NULL);
}

TEST(hop, that_answers_its_neighbour_writes_to_it_directly)
{
    static weir_handler echo;
    struct far far;

    echo = event_recorder;
    echo.read = answer;
    far_open_bare(&far, NULL, NULL);
    add_far(&far, "e");
    assert_int_equal(weir_pipeline_add(far.tc.pipeline, WEIR_PLACE(.name = "f", .group = far.group),
                                       &echo, EVENT_RECORDER(&far.tc.events, "f")),
                     0);
    tc_start(&far.tc);
    settle(&far);
    event_log_clear(&far.tc.events);
    (void)tc_receive(&far.tc, "1");
    (void)tc_receive(&far.tc, "2");
    settle(&far);
    assert_events(&far.tc.events, "e.read(1) e.write(1) e.read(2) e.write(2)");
    far_close(&far);
}

static void remove_self(weir_ctx *ctx, weir_msg *msg)
{
    weir_ctx_remove(ctx);
    weir_fire_read(ctx, msg);
}

TEST(hop, lets_a_handler_remove_itself_and_loses_and_overtakes_nothing)
{
    static const weir_handler shy = {.name = "shy", .read = remove_self};
    struct far far;

    far_open(&far);
    assert_int_equal(weir_pipeline_add(far.tc.pipeline,
                                       WEIR_PLACE(.after = "e", .group = far.group), &shy, NULL),
                     0);
    settle(&far);
    assert_int_equal(weir_pipeline_remove(far.tc.pipeline, "e", NULL), 0);
    event_log_clear(&far.tc.events);
    for (char text[2] = "1"; text[0] <= '9'; text[0]++)
        (void)tc_receive(&far.tc, text);
    for (int i = 0; i < 3; i++)
        settle(&far);
    assert_non_null(strstr(far.tc.events.text, "e.removed"));
    assert_non_null(strstr(far.tc.events.text,
                           "z.read(1) z.read(2) z.read(3) z.read(4) z.read(5) z.read(6) z.read(7) "
                           "z.read(8) z.read(9)"));
    assert_int_equal(weir_pipeline_count(far.tc.pipeline), 2);
    far_close(&far);
}

TEST(hop, tells_a_handler_that_was_added_and_removed_before_the_registration)
{
    struct far far;

    far_open_bare(&far, NULL, NULL);
    add_far(&far, "e");
    assert_int_equal(weir_pipeline_remove(far.tc.pipeline, "e", NULL), 0);
    assert_int_equal(weir_pipeline_count(far.tc.pipeline), 0);
    tc_start(&far.tc);
    settle(&far);
    assert_events(&far.tc.events, "ATTACH e.added e.removed READ e.deinit");
    far_close(&far);
}

TEST(hop, of_a_channel_that_was_never_registered_leaves_nothing)
{
    struct far far;

    far_open_bare(&far, NULL, NULL);
    add_far(&far, "e");
    far_close(&far);
}

/* ---- flow ---- */

TEST(hop, pauses_reading_while_too_much_is_under_way)
{
    struct far far;

    far_open_with(&far, WEIR_CHANNEL_OPTIONS(.low_mark = 500, .high_mark = 1000));
    far.tc.wire->options.silent = true;
    assert_true(weir__channel_received(far.tc.channel, sized_msg(1000 - WEIR__OUTBOUND_COST)));
    assert_true(far.tc.wire->reads);
    assert_false(weir__channel_received(far.tc.channel, sized_msg(100)));
    assert_false(far.tc.wire->reads);
    assert_true(weir_channel_auto_read(far.tc.channel));
    settle(&far);
    assert_true(far.tc.wire->reads);
    far_close(&far);
}

/* A handler that takes each message when the test lets it, and says when it has got one. */
static struct call_counter arrivals, permits;

static void take_when_let(weir_ctx *ctx, weir_msg *msg)
{
    (void)ctx;
    call_counter_add(&arrivals);
    (void)call_counter_await(&permits, atomic_load(&arrivals.calls));
    weir_msg_release(msg);
}

/* It has taken so many: the next one has come to it, and the loop has heard of those before. */
static void let_take(struct far *far, uint32_t count)
{
    call_counter_add(&permits);
    assert_true(call_counter_await(&arrivals, count + 1));
    tc_run(&far->tc);
}

/* Reading goes on below the low mark, and not at it; and it does if it was exactly there before. */
TEST(hop, reads_on_when_less_than_the_low_mark_is_under_way)
{
    static const weir_handler taker = {.name = "taker", .read = take_when_let};
    weir_msg *sample = sized_msg(100);
    int64_t cost = weir__outbound_cost(sample);
    struct far far;

    weir_msg_release(sample);
    arrivals = permits = (struct call_counter){0};
    far_open_bare(&far, NULL,
                  WEIR_CHANNEL_OPTIONS(.low_mark = 2 * cost, .high_mark = 4 * cost - 1));
    assert_int_equal(
        weir_pipeline_add(far.tc.pipeline, WEIR_PLACE(.group = far.group), &taker, NULL), 0);
    tc_start(&far.tc);
    settle(&far);
    gate_open(&far.gate);
    for (int i = 0; i < 4; i++)
        (void)weir__channel_received(far.tc.channel, sized_msg(100));
    assert_false(far.tc.wire->reads);
    let_take(&far, 1); /* 3 are under way */
    assert_false(far.tc.wire->reads);
    let_take(&far, 2); /* 2: the low mark */
    assert_false(far.tc.wire->reads);
    weir_channel_set_auto_read(far.tc.channel, true); /* has the loop look again */
    assert_false(far.tc.wire->reads);
    let_take(&far, 3);
    assert_true(far.tc.wire->reads);
    call_counter_add(&permits);
    far_close(&far);
}

TEST(hop, counts_what_its_handler_holds)
{
    struct far far;

    far_open(&far);
    weir_ctx_add_pending_bytes(weir_pipeline_find(far.tc.pipeline, "z"), 7);
    assert_int_equal(weir_channel_pending_bytes(far.tc.channel), 7);
    far_close(&far);
}

/* ---- the end ---- */

TEST(hop, goes_on_when_its_executor_has_ended)
{
    struct far far;

    far_open(&far);
    gate_open(&far.gate);
    end_group(far.group);
    event_log_clear(&far.tc.events);
    (void)tc_receive(&far.tc, "1");
    while (event_log_count(&far.tc.events, "z.read(1)") == 0) {
        weir__thread_yield();
        tc_run(&far.tc);
    }
    weir_channel_abort(far.tc.channel, NULL);
    while (event_log_count(&far.tc.events, "a.deinit") == 0) {
        weir__thread_yield();
        tc_run(&far.tc);
    }
    tc_close(&far.tc);
}

TEST(hop, aborts_the_channel_if_a_message_cannot_be_passed_on)
{
    struct far far;
    weir_promise *done;
    weir_msg *msg;

    for (unsigned n = 1;; n++) {
        far_open(&far);
        done = tc_promise(&far.tc, "done");
        msg = text_msg("x");
        settle(&far);
        test_memory_fail_at(n);
        weir_channel_write_and_flush(far.tc.channel, msg, done);
        settle(&far);
        if (!test_memory_failed())
            break;
        test_memory_fail_at(0);
        settle(&far);
        assert_true(weir_promise_is_done(done));
        assert_int_equal(weir_channel_pending_bytes(far.tc.channel), 0);
        weir_promise_release(done);
        far_close(&far);
    }
    test_memory_fail_at(0);
    assert_int_equal(weir_promise_result(done), 0);
    weir_promise_release(done);
    far_close(&far);
}

static int late_result;
static weir_timer late_timer;

static void on_late(weir_ctx *ctx, weir_timer *timer)
{
    (void)ctx;
    (void)timer;
}

static void start_late(weir_ctx *ctx)
{
    late_result = weir_ctx_timer_start(ctx, &late_timer, weir_seconds(100), on_late);
    weir_ctx_add_pending_bytes(ctx, -1000);
}

static void hold_1000(weir_ctx *ctx, weir_msg *msg)
{
    weir_msg_release(msg);
    weir_ctx_add_pending_bytes(ctx, 1000);
}

/* As on the loop: its memory is about to go. */
TEST(hop, starts_no_timers_for_a_handler_that_is_being_removed)
{
    static weir_handler late;
    struct far far;

    late = event_recorder;
    late.removed = start_late;
    late.read = hold_1000;
    far_open_bare(&far, NULL, NULL);
    assert_int_equal(weir_pipeline_add(far.tc.pipeline, WEIR_PLACE(.name = "l", .group = far.group),
                                       &late, EVENT_RECORDER(&far.tc.events, "l")),
                     0);
    tc_start(&far.tc);
    settle(&far);
    (void)tc_receive(&far.tc, "x");
    settle(&far);
    assert_int_equal(weir_channel_pending_bytes(far.tc.channel), 1000);
    assert_int_equal(weir_pipeline_remove(far.tc.pipeline, "l", NULL), 0);
    settle(&far);
    assert_int_equal(late_result, WEIR_ECLOSED);
    assert_int_equal(weir_channel_pending_bytes(far.tc.channel), 0);
    far_close(&far);
}

TEST(hop, says_that_a_handler_is_removed_when_it_has_been_told)
{
    struct far far;
    weir_promise *done;

    far_open(&far);
    event_log_clear(&far.tc.events);
    done = tc_promise(&far.tc, "done");
    assert_int_equal(weir_pipeline_remove(far.tc.pipeline, "e", done), 0);
    assert_false(weir_promise_is_done(done));
    settle(&far);
    assert_events(&far.tc.events, "e.removed e.deinit done=ok");
    weir_promise_release(done);
    far_close(&far);
}

/* What is under way counts against the marks as they are now. */
TEST(hop, reads_on_when_the_marks_have_been_raised)
{
    struct far far;

    far_open_with(&far, WEIR_CHANNEL_OPTIONS(.low_mark = 1, .high_mark = WEIR__OUTBOUND_COST + 1));
    (void)tc_receive(&far.tc, "1");
    (void)tc_receive(&far.tc, "2");
    assert_false(far.tc.wire->reads);
    assert_int_equal(weir_channel_set_options(
                         far.tc.channel, WEIR_CHANNEL_OPTIONS(.low_mark = 1000, .high_mark = 2000)),
                     0);
    settle(&far);
    assert_true(far.tc.wire->reads);
    far_close(&far);
}

/* D 50: also if the write was refused on the way to a handler. */
TEST(hop, reports_a_write_beyond_the_cap_that_nobody_waits_for)
{
    struct far far;

    far_open_with(&far, WEIR_CHANNEL_OPTIONS(.write_cap = 10, .keep_open_on_error = true));
    log_capture_start();
    event_log_clear(&far.tc.events);
    tc_write(&far.tc, "x", NULL);
    settle(&far);
    assert_int_equal(event_log_count(&far.tc.events, "a.error(WEIR_EFULL)"), 1);
    far_close(&far);
}

/* ---- replaced before the registration ---- */

static void replace_early(struct far *far, const char *old, const char *name, weir_group *group)
{
    struct event_recorder options = {.events = &far->tc.events};

    strncpy(options.name, name, sizeof(options.name) - 1);
    assert_int_equal(weir_pipeline_replace(far->tc.pipeline, old,
                                           WEIR_PLACE(.name = name, .group = group),
                                           &event_recorder, &options),
                     0);
}

static void assert_once(struct far *far, const char *text)
{
    assert_int_equal(event_log_count(&far->tc.events, text), 1);
}

/* Of "a" and "b", which has replaced it, either may be elsewhere: each is told all of it, once. */
static void replace_before_registration(bool first_is_far, bool second_is_far)
{
    struct far far;

    far_open_bare(&far, &(const struct wire_options){.silent = true}, NULL);
    if (first_is_far)
        add_far(&far, "a");
    else
        tc_add(&far.tc, "a");
    replace_early(&far, "a", "b", second_is_far ? far.group : NULL);
    tc_start(&far.tc);
    settle(&far);
    assert_once(&far, "a.added");
    assert_once(&far, "a.removed");
    assert_once(&far, "a.deinit");
    assert_once(&far, "b.added");
    assert_once(&far, "b.active");
    assert_int_equal(event_log_count(&far.tc.events, "a.active"), 0);
    far_close(&far);
}

TEST(hop, replaced_by_one_on_the_loop_before_the_registration_is_told_all_of_it)
{
    replace_before_registration(true, false);
}

TEST(hop, that_replaces_one_on_the_loop_before_the_registration_leaves_it_its_end)
{
    replace_before_registration(false, true);
}

TEST(hop, replaced_by_another_before_the_registration_is_told_all_of_it)
{
    replace_before_registration(true, true);
}

/* The inbox of the second is run after that of the first: what the first passes on does not go past
 * the second, which hears first that it was added. */
TEST(hop, side_by_side_hear_all_of_it)
{
    struct far far;

    far_open_bare(&far, &(const struct wire_options){.silent = true}, NULL);
    add_far(&far, "a");
    add_far(&far, "b");
    tc_start(&far.tc);
    settle(&far);
    assert_events(&far.tc.events, "a.added a.registered a.active b.added b.request_read "
                                  "a.request_read b.registered b.active");
    far_close(&far);
}
