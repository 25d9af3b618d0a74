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
 * A rig, and a group of one thread that a handler "e" runs on, between "a" and "z". What the loop
 * does is done while that thread is held at a gate, so that the order of everything is known: the
 * loop, the thread, the loop again, and so on.
 */
struct far {
    struct rig rig;
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
        rig_run(&far->rig);
    }
}

static void add_far(struct far *far, const char *name)
{
    struct spy options = {.diary = &far->rig.diary};

    strncpy(options.name, name, sizeof(options.name) - 1);
    assert_int_equal(weir_pipeline_add(far->rig.pipeline,
                                       WEIR_PLACE(.name = name, .group = far->group), &spy,
                                       &options),
                     0);
}

static void far_open_bare(struct far *far, const struct wire_options *wire,
                          const weir_channel_options *options)
{
    far->group = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 1));
    hold(far);
    rig_open_with(&far->rig, wire, options);
}

static void far_open_with(struct far *far, const weir_channel_options *options)
{
    far_open_bare(far, NULL, options);
    rig_add(&far->rig, "a");
    add_far(far, "e");
    rig_add(&far->rig, "z");
    rig_start(&far->rig);
    settle(far);
}

static void far_open(struct far *far)
{
    far_open_with(far, NULL);
}

static void far_close(struct far *far)
{
    far->rig.wire->options.slow_close = false;
    weir_channel_abort(far->rig.channel, NULL);
    settle(far);
    rig_close(&far->rig);
    gate_open(&far->gate);
    end_group(far->group);
}

TEST(hop, brings_the_life_of_a_channel_there_and_back)
{
    struct far far;

    far_open(&far);
    assert_diary(&far.rig.diary,
                 "ATTACH a.added z.added a.registered a.active z.request_read e.added "
                 "e.registered e.active e.request_read z.registered z.active a.request_read READ");
    far_close(&far);
}

TEST(hop, keeps_the_order_of_what_is_read_and_written)
{
    struct far far;
    weir_promise *done;

    far_open(&far);
    diary_clear(&far.rig.diary);
    (void)rig_receive(&far.rig, "1");
    (void)rig_receive(&far.rig, "2");
    weir__channel_read_complete(far.rig.channel);
    settle(&far);
    assert_diary(&far.rig.diary,
                 "a.read(1) a.read(2) a.read_complete z.request_read e.read(1) e.read(2) "
                 "e.read_complete e.request_read z.read(1) z.read(2) z.read_complete "
                 "a.request_read");

    done = rig_promise(&far.rig, "done");
    weir_channel_write(far.rig.channel, text_msg("x"), NULL);
    weir_channel_write_and_flush(far.rig.channel, text_msg("y"), done);
    assert_int_equal(weir_channel_pending_bytes(far.rig.channel), 2 + 2 * WEIR__OUTBOUND_COST);
    settle(&far);
    assert_diary(&far.rig.diary, "z.write(x) z.write(y) z.flush e.write(x) e.write(y) e.flush "
                                 "a.write(x) a.write(y) a.flush FLUSH done=ok");
    assert_int_equal(weir_channel_pending_bytes(far.rig.channel), 0);
    assert_sent(&far.rig, "xy");
    weir_promise_release(done);
    far_close(&far);
}

TEST(hop, brings_a_half_closure_along_behind_what_was_written)
{
    struct far far;
    weir_promise *done;

    far_open(&far);
    diary_clear(&far.rig.diary);
    done = rig_promise(&far.rig, "done");
    weir_channel_write(far.rig.channel, text_msg("x"), NULL);
    weir_channel_shutdown_output(far.rig.channel, done);
    settle(&far);
    assert_diary(&far.rig.diary,
                 "z.write(x) z.shutdown_output e.write(x) e.shutdown_output a.write(x) "
                 "a.shutdown_output FLUSH FIN done=ok a.event(output-closed) "
                 "e.event(output-closed) z.event(output-closed)");
    assert_sent(&far.rig, "x");
    weir_promise_release(done);
    far_close(&far);
}

TEST(hop, runs_the_handler_on_its_own_executor)
{
    struct far far;
    weir_ctx *e;

    far_open(&far);
    e = weir_pipeline_find(far.rig.pipeline, "e");
    assert_ptr_equal(weir_ctx_executor(e), executor_of(&far));
    assert_ptr_equal(weir_ctx_executor(weir_pipeline_find(far.rig.pipeline, "a")),
                     far.rig.stepper.executor);
    far_close(&far);
}

TEST(hop, moves_an_event_that_is_still_under_way_behind_the_last_message)
{
    struct far far;

    far_open(&far);
    diary_clear(&far.rig.diary);
    (void)rig_receive(&far.rig, "1");
    weir__channel_read_complete(far.rig.channel);
    (void)rig_receive(&far.rig, "2");
    weir__channel_read_complete(far.rig.channel);
    diary_clear(&far.rig.diary);
    settle(&far);
    assert_int_equal(diary_count(&far.rig.diary, "e.read_complete"), 1);
    assert_non_null(strstr(far.rig.diary.text, "e.read(1) e.read(2) e.read_complete"));
    assert_non_null(strstr(far.rig.diary.text, "z.read(1) z.read(2) z.read_complete"));
    far_close(&far);
}

/* Asked for by "a", so that "e" has nothing to do with it. */
static void move_away(struct far *far)
{
    weir_deregister(weir_pipeline_find(far->rig.pipeline, "a"), NULL);
    rig_run(&far->rig);
}

/* The loop lets go of the channel and takes it again, while the handler's executor is busy. */
static void move_away_and_back(struct far *far)
{
    move_away(far);
    weir_channel_register(far->rig.channel, far->rig.stepper.executor, NULL);
    rig_run(&far->rig);
}

/* What "e" wrote down, without what the others did. */
static void assert_e_heard(struct far *far, const char *words)
{
    char heard[DIARY_SIZE] = "", *at = heard, *rest = far->rig.diary.text, *word;

    while ((word = strtok_r(rest, " ", &rest)) != NULL)
        if (strncmp(word, "e.", 2) == 0)
            at += sprintf(at, "%s%s", at > heard ? " " : "", word);
    diary_clear(&far->rig.diary);
    assert_string_equal(heard, words);
}

TEST(hop, brings_a_move_to_another_loop_along)
{
    struct far far;

    far_open(&far);
    diary_clear(&far.rig.diary);
    move_away_and_back(&far);
    settle(&far);
    assert_e_heard(&far, "e.unregistered e.registered e.request_read");
    far_close(&far);
}

TEST(hop, does_not_tell_of_the_end_of_a_registration_before_its_beginning)
{
    struct far far;

    far_open_bare(&far, NULL, NULL);
    rig_add(&far.rig, "a");
    add_far(&far, "e");
    rig_start(&far.rig);
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
    diary_clear(&far.rig.diary);
    move_away_and_back(&far);
    (void)rig_receive(&far.rig, "x");
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
    diary_clear(&far.rig.diary);
    weir_channel_fire_event(far.rig.channel, text_msg("ev"));
    settle(&far);
    assert_diary(&far.rig.diary, "a.event(ev) e.event(ev) z.event(ev)");
    log_capture_start();
    {
        char sentence[] = "a sentence that is gone when it arrives";

        weir_pipeline_fire_error(far.rig.pipeline, -EPROTO, sentence);
        memset(sentence, 'x', sizeof(sentence) - 1);
    }
    closed = rig_promise(&far.rig, "closed");
    weir_channel_close(far.rig.channel, closed);
    settle(&far);
    assert_true(log_capture_last_contains("a sentence that is gone when it arrives"));
    rig_end_input(&far.rig);
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
    rig_start(&far.rig);
    settle(&far);
    diary_clear(&far.rig.diary);
    assert_int_equal(weir_address_parse("1.2.3.4:5", &address), 0);
    done = rig_promise(&far.rig, "done");
    weir_channel_connect(far.rig.channel, &address, &address, done);
    settle(&far);
    weir__channel_connected(far.rig.channel, 0);
    settle(&far);
    assert_diary(&far.rig.diary, "e.connect CONNECT done=ok e.active e.request_read READ");
    weir_promise_release(done);
    far_close(&far);
}

/* D 46 */
TEST(hop, removes_handlers_from_the_tail_on_across_executors)
{
    struct far far;

    far_open(&far);
    add_far(&far, "f");
    rig_add(&far.rig, "y");
    settle(&far);
    diary_clear(&far.rig.diary);
    weir_channel_abort(far.rig.channel, NULL);
    settle(&far);
    assert_non_null(strstr(far.rig.diary.text, "y.removed"));
    assert_true(strstr(far.rig.diary.text, "y.removed") < strstr(far.rig.diary.text, "f.removed"));
    assert_true(strstr(far.rig.diary.text, "f.removed") < strstr(far.rig.diary.text, "z.removed"));
    assert_true(strstr(far.rig.diary.text, "z.removed") < strstr(far.rig.diary.text, "e.removed"));
    assert_true(strstr(far.rig.diary.text, "e.removed") < strstr(far.rig.diary.text, "a.removed"));
    assert_true(strstr(far.rig.diary.text, "e.unregistered") <
                strstr(far.rig.diary.text, "e.removed"));
    far_close(&far);
}

static weir_executor *executor_in(struct rig *rig, const char *name)
{
    return weir_ctx_executor(weir_pipeline_find(rig->pipeline, name));
}

/* D 49 */
TEST(hop, pins_a_group_to_one_executor_a_channel_unless_told_otherwise)
{
    weir_group *group = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 4));
    struct rig rig;

    for (int per_handler = 0; per_handler <= 1; per_handler++) {
        rig_open_with(&rig, NULL, WEIR_CHANNEL_OPTIONS(.executor_per_handler = per_handler == 1));
        assert_int_equal(weir_pipeline_add(rig.pipeline, WEIR_PLACE(.name = "e", .group = group),
                                           &spy, SPY(&rig.diary, "e")),
                         0);
        assert_int_equal(weir_pipeline_add(rig.pipeline, WEIR_PLACE(.name = "f", .group = group),
                                           &spy, SPY(&rig.diary, "f")),
                         0);
        assert_int_equal(executor_in(&rig, "e") != executor_in(&rig, "f"), per_handler);
        rig_close(&rig);
    }
    end_group(group);
}

TEST(hop, calls_neighbours_on_the_same_executor_directly)
{
    struct far far;

    far_open(&far);
    assert_int_equal(weir_pipeline_add(far.rig.pipeline,
                                       WEIR_PLACE(.after = "e", .name = "f", .group = far.group),
                                       &spy, SPY(&far.rig.diary, "f")),
                     0);
    settle(&far);
    diary_clear(&far.rig.diary);
    (void)rig_receive(&far.rig, "1");
    (void)rig_receive(&far.rig, "2");
    settle(&far);
    assert_diary(&far.rig.diary,
                 "a.read(1) a.read(2) e.read(1) f.read(1) e.read(2) f.read(2) z.read(1) z.read(2)");
    weir_channel_write(far.rig.channel, text_msg("x"), NULL);
    settle(&far);
    assert_diary(&far.rig.diary, "z.write(x) f.write(x) e.write(x) a.write(x)");
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
    rig_add(&far->rig, "c");
    add_far(far, "f");
    rig_start(&far->rig);
    settle(far);
}

/* "1" has left "e", and is on its way over the loop. */
TEST(hop, that_becomes_a_neighbour_is_not_called_before_what_is_under_way)
{
    struct far far;

    far_open_apart(&far);
    (void)rig_receive(&far.rig, "1");
    run_far(&far);
    assert_int_equal(weir_pipeline_remove(far.rig.pipeline, "c", NULL), 0);
    (void)rig_receive(&far.rig, "2");
    rig_run(&far.rig);
    diary_clear(&far.rig.diary);
    settle(&far);
    assert_diary(&far.rig.diary, "e.read(2) f.read(1) f.read(2)");
    (void)rig_receive(&far.rig, "3");
    (void)rig_receive(&far.rig, "4");
    settle(&far);
    assert_diary(&far.rig.diary, "e.read(3) f.read(3) e.read(4) f.read(4)");
    far_close(&far);
}

TEST(hop, that_becomes_a_neighbour_is_not_written_to_before_what_is_under_way)
{
    struct far far;

    far_open_apart(&far);
    weir_channel_write(far.rig.channel, text_msg("1"), NULL);
    run_far(&far);
    assert_int_equal(weir_pipeline_remove(far.rig.pipeline, "c", NULL), 0);
    weir_channel_write(far.rig.channel, text_msg("2"), NULL);
    rig_run(&far.rig);
    diary_clear(&far.rig.diary);
    settle(&far);
    assert_diary(&far.rig.diary, "f.write(2) e.write(1) e.write(2)");
    far_close(&far);
}

TEST(hop, that_is_added_as_a_neighbour_is_not_called_before_what_is_under_way)
{
    struct far far;

    far_open_bare(&far, NULL, NULL);
    add_far(&far, "e");
    rig_start(&far.rig);
    settle(&far);
    (void)rig_receive(&far.rig, "1");
    run_far(&far);
    (void)rig_receive(&far.rig, "2");
    add_far(&far, "f");
    rig_run(&far.rig);
    diary_clear(&far.rig.diary);
    settle(&far);
    assert_diary(&far.rig.diary, "e.read(2) f.added f.read(1) f.read(2)");
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
    rig_start(&far.rig);
    settle(&far);
    (void)rig_receive(&far.rig, "1");
    diary_clear(&far.rig.diary);
    assert_int_equal(weir_pipeline_remove(far.rig.pipeline, "m", NULL), 0);
    (void)rig_receive(&far.rig, "2");
    settle(&far);
    assert_diary(&far.rig.diary, "e.read(1) e.read(2) m.removed m.deinit f.read(1) f.read(2)");
    (void)rig_receive(&far.rig, "3");
    settle(&far);
    assert_diary(&far.rig.diary, "e.read(3) f.read(3)");
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

    echo = spy;
    echo.read = answer;
    far_open_bare(&far, NULL, NULL);
    add_far(&far, "e");
    assert_int_equal(weir_pipeline_add(far.rig.pipeline,
                                       WEIR_PLACE(.name = "f", .group = far.group), &echo,
                                       SPY(&far.rig.diary, "f")),
                     0);
    rig_start(&far.rig);
    settle(&far);
    diary_clear(&far.rig.diary);
    (void)rig_receive(&far.rig, "1");
    (void)rig_receive(&far.rig, "2");
    settle(&far);
    assert_diary(&far.rig.diary, "e.read(1) e.write(1) e.read(2) e.write(2)");
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
    assert_int_equal(weir_pipeline_add(far.rig.pipeline,
                                       WEIR_PLACE(.after = "e", .group = far.group), &shy, NULL),
                     0);
    settle(&far);
    assert_int_equal(weir_pipeline_remove(far.rig.pipeline, "e", NULL), 0);
    diary_clear(&far.rig.diary);
    for (char text[2] = "1"; text[0] <= '9'; text[0]++)
        (void)rig_receive(&far.rig, text);
    for (int i = 0; i < 3; i++)
        settle(&far);
    assert_non_null(strstr(far.rig.diary.text, "e.removed"));
    assert_non_null(strstr(far.rig.diary.text,
                           "z.read(1) z.read(2) z.read(3) z.read(4) z.read(5) z.read(6) z.read(7) "
                           "z.read(8) z.read(9)"));
    assert_int_equal(weir_pipeline_count(far.rig.pipeline), 2);
    far_close(&far);
}

TEST(hop, tells_a_handler_that_was_added_and_removed_before_the_registration)
{
    struct far far;

    far_open_bare(&far, NULL, NULL);
    add_far(&far, "e");
    assert_int_equal(weir_pipeline_remove(far.rig.pipeline, "e", NULL), 0);
    assert_int_equal(weir_pipeline_count(far.rig.pipeline), 0);
    rig_start(&far.rig);
    settle(&far);
    assert_diary(&far.rig.diary, "ATTACH e.added e.removed READ e.deinit");
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
    far.rig.wire->options.silent = true;
    assert_true(weir__channel_received(far.rig.channel, sized_msg(1000 - WEIR__OUTBOUND_COST)));
    assert_true(far.rig.wire->reads);
    assert_false(weir__channel_received(far.rig.channel, sized_msg(100)));
    assert_false(far.rig.wire->reads);
    assert_true(weir_channel_auto_read(far.rig.channel));
    settle(&far);
    assert_true(far.rig.wire->reads);
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
    rig_run(&far->rig);
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
        weir_pipeline_add(far.rig.pipeline, WEIR_PLACE(.group = far.group), &taker, NULL), 0);
    rig_start(&far.rig);
    settle(&far);
    gate_open(&far.gate);
    for (int i = 0; i < 4; i++)
        (void)weir__channel_received(far.rig.channel, sized_msg(100));
    assert_false(far.rig.wire->reads);
    let_take(&far, 1); /* 3 are under way */
    assert_false(far.rig.wire->reads);
    let_take(&far, 2); /* 2: the low mark */
    assert_false(far.rig.wire->reads);
    weir_channel_set_auto_read(far.rig.channel, true); /* has the loop look again */
    assert_false(far.rig.wire->reads);
    let_take(&far, 3);
    assert_true(far.rig.wire->reads);
    call_counter_add(&permits);
    far_close(&far);
}

TEST(hop, counts_what_its_handler_holds)
{
    struct far far;

    far_open(&far);
    weir_ctx_add_pending_bytes(weir_pipeline_find(far.rig.pipeline, "z"), 7);
    assert_int_equal(weir_channel_pending_bytes(far.rig.channel), 7);
    far_close(&far);
}

/* ---- the end ---- */

TEST(hop, goes_on_when_its_executor_has_ended)
{
    struct far far;

    far_open(&far);
    gate_open(&far.gate);
    end_group(far.group);
    diary_clear(&far.rig.diary);
    (void)rig_receive(&far.rig, "1");
    while (diary_count(&far.rig.diary, "z.read(1)") == 0) {
        weir__thread_yield();
        rig_run(&far.rig);
    }
    weir_channel_abort(far.rig.channel, NULL);
    while (diary_count(&far.rig.diary, "a.deinit") == 0) {
        weir__thread_yield();
        rig_run(&far.rig);
    }
    rig_close(&far.rig);
}

TEST(hop, aborts_the_channel_if_a_message_cannot_be_passed_on)
{
    struct far far;
    weir_promise *done;
    weir_msg *msg;

    for (unsigned n = 1;; n++) {
        far_open(&far);
        done = rig_promise(&far.rig, "done");
        msg = text_msg("x");
        settle(&far);
        test_memory_fail_at(n);
        weir_channel_write_and_flush(far.rig.channel, msg, done);
        settle(&far);
        if (!test_memory_failed())
            break;
        test_memory_fail_at(0);
        settle(&far);
        assert_true(weir_promise_is_done(done));
        assert_int_equal(weir_channel_pending_bytes(far.rig.channel), 0);
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

    late = spy;
    late.removed = start_late;
    late.read = hold_1000;
    far_open_bare(&far, NULL, NULL);
    assert_int_equal(weir_pipeline_add(far.rig.pipeline,
                                       WEIR_PLACE(.name = "l", .group = far.group), &late,
                                       SPY(&far.rig.diary, "l")),
                     0);
    rig_start(&far.rig);
    settle(&far);
    (void)rig_receive(&far.rig, "x");
    settle(&far);
    assert_int_equal(weir_channel_pending_bytes(far.rig.channel), 1000);
    assert_int_equal(weir_pipeline_remove(far.rig.pipeline, "l", NULL), 0);
    settle(&far);
    assert_int_equal(late_result, WEIR_ECLOSED);
    assert_int_equal(weir_channel_pending_bytes(far.rig.channel), 0);
    far_close(&far);
}

TEST(hop, says_that_a_handler_is_removed_when_it_has_been_told)
{
    struct far far;
    weir_promise *done;

    far_open(&far);
    diary_clear(&far.rig.diary);
    done = rig_promise(&far.rig, "done");
    assert_int_equal(weir_pipeline_remove(far.rig.pipeline, "e", done), 0);
    assert_false(weir_promise_is_done(done));
    settle(&far);
    assert_diary(&far.rig.diary, "e.removed e.deinit done=ok");
    weir_promise_release(done);
    far_close(&far);
}

/* What is under way counts against the marks as they are now. */
TEST(hop, reads_on_when_the_marks_have_been_raised)
{
    struct far far;

    far_open_with(&far, WEIR_CHANNEL_OPTIONS(.low_mark = 1, .high_mark = WEIR__OUTBOUND_COST + 1));
    (void)rig_receive(&far.rig, "1");
    (void)rig_receive(&far.rig, "2");
    assert_false(far.rig.wire->reads);
    assert_int_equal(
        weir_channel_set_options(far.rig.channel,
                                 WEIR_CHANNEL_OPTIONS(.low_mark = 1000, .high_mark = 2000)),
        0);
    settle(&far);
    assert_true(far.rig.wire->reads);
    far_close(&far);
}

/* D 50: also if the write was refused on the way to a handler. */
TEST(hop, reports_a_write_beyond_the_cap_that_nobody_waits_for)
{
    struct far far;

    far_open_with(&far, WEIR_CHANNEL_OPTIONS(.write_cap = 10, .keep_open_on_error = true));
    log_capture_start();
    diary_clear(&far.rig.diary);
    rig_write(&far.rig, "x", NULL);
    settle(&far);
    assert_int_equal(diary_count(&far.rig.diary, "a.error(WEIR_EFULL)"), 1);
    far_close(&far);
}

/* ---- replaced before the registration ---- */

static void replace_early(struct far *far, const char *old, const char *name, weir_group *group)
{
    struct spy options = {.diary = &far->rig.diary};

    strncpy(options.name, name, sizeof(options.name) - 1);
    assert_int_equal(weir_pipeline_replace(far->rig.pipeline, old,
                                           WEIR_PLACE(.name = name, .group = group), &spy,
                                           &options),
                     0);
}

static void assert_once(struct far *far, const char *text)
{
    assert_int_equal(diary_count(&far->rig.diary, text), 1);
}

/* Of "a" and "b", which has replaced it, either may be elsewhere: each is told all of it, once. */
static void replace_before_registration(bool first_is_far, bool second_is_far)
{
    struct far far;

    far_open_bare(&far, &(const struct wire_options){.silent = true}, NULL);
    if (first_is_far)
        add_far(&far, "a");
    else
        rig_add(&far.rig, "a");
    replace_early(&far, "a", "b", second_is_far ? far.group : NULL);
    rig_start(&far.rig);
    settle(&far);
    assert_once(&far, "a.added");
    assert_once(&far, "a.removed");
    assert_once(&far, "a.deinit");
    assert_once(&far, "b.added");
    assert_once(&far, "b.active");
    assert_int_equal(diary_count(&far.rig.diary, "a.active"), 0);
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
    rig_start(&far.rig);
    settle(&far);
    assert_diary(&far.rig.diary, "a.added a.registered a.active b.added b.request_read "
                                 "a.request_read b.registered b.active");
    far_close(&far);
}
