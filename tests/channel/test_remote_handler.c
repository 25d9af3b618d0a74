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
    settle(far); /* handlers of several segments leave one segment after the other */
    tc_close(&far->tc);
    gate_open(&far->gate);
    end_group(far->group);
}

TEST(remote_handler, brings_the_life_of_a_channel_there_and_back)
{
    struct far far;

    far_open(&far);
    assert_events(&far.tc.events,
                  "ATTACH a.added z.added a.registered a.active z.request_read e.added "
                  "e.registered e.active e.request_read z.registered z.active a.request_read READ");
    far_close(&far);
}

TEST(remote_handler, keeps_the_order_of_what_is_read_and_written)
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

TEST(remote_handler, brings_a_half_closure_along_behind_what_was_written)
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

TEST(remote_handler, runs_the_handler_on_its_own_executor)
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

TEST(remote_handler, moves_an_event_that_is_still_under_way_behind_the_last_message)
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

TEST(remote_handler, brings_a_move_to_another_loop_along)
{
    struct far far;

    far_open(&far);
    event_log_clear(&far.tc.events);
    move_away_and_back(&far);
    settle(&far);
    assert_e_heard(&far, "e.unregistered e.registered e.request_read");
    far_close(&far);
}

TEST(remote_handler, does_not_tell_of_the_end_of_a_registration_before_its_beginning)
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

TEST(remote_handler, tells_messages_between_the_beginning_of_a_registration_and_its_end)
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

TEST(remote_handler, brings_events_errors_and_promises_along)
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

TEST(remote_handler, brings_addresses_along)
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
TEST(remote_handler, removes_handlers_from_the_tail_on_across_executors)
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
TEST(remote_handler, pins_a_group_to_one_executor_a_channel_unless_told_otherwise)
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

/* ---- segments ---- */

/* Runs the executor, and not the loop. */
static void run_far(struct far *far)
{
    gate_open(&far->gate);
    run_on_executor(executor_of(far), nothing, NULL);
    hold(far);
}

static weir__segment *segment_of(struct far *far, const char *name)
{
    return weir__remote_of(weir_pipeline_find(far->tc.pipeline, name))->segment;
}

/* Adds a handler behind another one: on the group, or on the loop. */
static void add_after(struct far *far, const char *after, const char *name, weir_group *group)
{
    struct event_recorder options = {.events = &far->tc.events};

    strncpy(options.name, name, sizeof(options.name) - 1);
    assert_int_equal(weir_pipeline_add(far->tc.pipeline,
                                       WEIR_PLACE(.after = after, .name = name, .group = group),
                                       &event_recorder, &options),
                     0);
}

static void remove_named(struct far *far, const char *name)
{
    assert_int_equal(weir_pipeline_remove(far->tc.pipeline, name, NULL), 0);
}

/* A segment of all the handlers whose names are letters of `names`. */
static void far_open_segment(struct far *far, const char *names)
{
    far_open_bare(far, &(const struct wire_options){.silent = true}, NULL);
    for (; *names != '\0'; names++)
        add_far(far, (const char[]){*names, '\0'});
    tc_start(&far->tc);
    settle(far);
    event_log_clear(&far->tc.events);
}

TEST(remote_handler, is_called_directly_by_its_neighbour_in_the_segment)
{
    struct far far;

    far_open_segment(&far, "ef");
    (void)tc_receive(&far.tc, "1");
    (void)tc_receive(&far.tc, "2");
    settle(&far);
    assert_events(&far.tc.events, "e.read(1) f.read(1) e.read(2) f.read(2)");
    weir_channel_write(far.tc.channel, text_msg("x"), NULL);
    settle(&far);
    assert_events(&far.tc.events, "f.write(x) e.write(x)");
    far_close(&far);
}

static int add_two(weir_channel *channel, void *user_data)
{
    struct far *far = user_data;

    assert_ptr_equal(channel, far->tc.channel);
    add_far(far, "e");
    add_far(far, "f");
    return 0;
}

TEST(remote_handler, forms_one_segment_with_others_that_an_initializer_adds)
{
    struct far far;

    far_open_bare(&far, &(const struct wire_options){.silent = true}, NULL);
    assert_int_equal(weir_pipeline_add_initializer(far.tc.pipeline, add_two, &far), 0);
    tc_start(&far.tc);
    settle(&far);
    assert_ptr_equal(segment_of(&far, "e"), segment_of(&far, "f"));
    assert_events(&far.tc.events, "e.added f.added e.registered f.registered e.active f.active "
                                  "f.request_read e.request_read");
    far_close(&far);
}

TEST(remote_handler, joins_the_segment_that_it_is_added_or_put_into)
{
    struct far far;

    far_open_segment(&far, "eg");
    add_after(&far, "e", "f", far.group);
    assert_int_equal(weir_pipeline_replace(far.tc.pipeline, "g",
                                           WEIR_PLACE(.name = "h", .group = far.group),
                                           &event_recorder, EVENT_RECORDER(&far.tc.events, "h")),
                     0);
    assert_ptr_equal(segment_of(&far, "f"), segment_of(&far, "e"));
    assert_ptr_equal(segment_of(&far, "h"), segment_of(&far, "e"));
    (void)tc_receive(&far.tc, "1");
    settle(&far);
    assert_events(&far.tc.events,
                  "f.added h.added g.removed e.read(1) f.read(1) h.read(1) g.deinit");
    far_close(&far);
}

/* "1" left "e" before "f" was added, "2" enters it after that: "f" gets both. */
TEST(remote_handler, added_next_to_a_segment_that_is_in_use_forms_its_own)
{
    struct far far;

    far_open_segment(&far, "e");
    (void)tc_receive(&far.tc, "1");
    run_far(&far);
    add_far(&far, "f");
    (void)tc_receive(&far.tc, "2");
    settle(&far);
    assert_ptr_not_equal(segment_of(&far, "f"), segment_of(&far, "e"));
    assert_events(&far.tc.events, "e.read(1) e.read(2) f.added f.read(1) f.read(2)");
    far_close(&far);
}

/* "1" is in the inbox, "0" in the outbox. "c" gets what comes after the split, and "f" each once.
 */
TEST(remote_handler, keeps_the_order_of_reads_when_its_segment_is_split)
{
    struct far far;

    far_open_segment(&far, "ef");
    tc_add(&far.tc, "z");
    (void)tc_receive(&far.tc, "0");
    run_far(&far);
    (void)tc_receive(&far.tc, "1");
    add_after(&far, "e", "c", NULL);
    (void)tc_receive(&far.tc, "2");
    settle(&far);
    assert_ptr_not_equal(segment_of(&far, "f"), segment_of(&far, "e"));
    assert_events(&far.tc.events,
                  "z.added e.read(0) f.read(0) c.added e.read(1) f.read(1) e.read(2) z.read(0) "
                  "z.read(1) c.read(2) f.read(2) z.read(2)");
    far_close(&far);
}

TEST(remote_handler, keeps_the_order_of_writes_when_its_segment_is_split)
{
    struct far far;

    far_open_segment(&far, "ef");
    weir_channel_write(far.tc.channel, text_msg("0"), NULL);
    run_far(&far);
    weir_channel_write(far.tc.channel, text_msg("1"), NULL);
    add_after(&far, "e", "c", NULL);
    weir_channel_write(far.tc.channel, text_msg("2"), NULL);
    settle(&far);
    weir_channel_flush(far.tc.channel);
    settle(&far);
    assert_non_null(strstr(far.tc.events.text, "f.write(1) e.write(1) f.write(2) c.write(2)"));
    assert_sent(&far.tc, "012");
    far_close(&far);
}

/* The handler has read "1" to "4", each once. */
static void assert_reads_in_order(struct far *far, char name)
{
    const char *rest = far->tc.events.text;
    char read[] = "?.read(?)";

    read[0] = name;
    for (read[7] = '1'; read[7] <= '4'; read[7]++) {
        assert_int_equal(event_log_count(&far->tc.events, read), 1);
        rest = strstr(rest, read);
        assert_non_null(rest);
    }
}

/* Each split is made while the ones before it are still on their way. */
TEST(remote_handler, keeps_the_order_when_its_segment_is_split_again_and_again)
{
    struct far far;

    far_open_segment(&far, "efgh");
    (void)tc_receive(&far.tc, "0");
    run_far(&far);
    (void)tc_receive(&far.tc, "1");
    add_after(&far, "f", "x", NULL); /* ef x gh */
    (void)tc_receive(&far.tc, "2");
    add_after(&far, "e", "y", NULL); /* e y f x gh */
    (void)tc_receive(&far.tc, "3");
    add_after(&far, "g", "z", NULL); /* e y f x g z h */
    (void)tc_receive(&far.tc, "4");
    event_log_clear(&far.tc.events);
    settle(&far);
    settle(&far);
    for (const char *name = "efgh"; *name != '\0'; name++)
        assert_reads_in_order(&far, *name);
    assert_int_equal(event_log_count(&far.tc.events, "y.read(3)"), 1);
    assert_int_equal(event_log_count(&far.tc.events, "z.read(4)"), 1);
    far_close(&far);
}

/* Nobody has requested "1", which waits in the outbox: the split lets it pass, to "z" only. */
TEST(remote_handler, lets_messages_pass_that_wait_when_its_segment_is_split)
{
    struct far far;

    far_open_segment(&far, "ef");
    tc_add(&far.tc, "z");
    (void)tc_receive(&far.tc, "0");
    (void)tc_receive(&far.tc, "1");
    run_far(&far);
    weir_channel_set_auto_read(far.tc.channel, false);
    tc_run(&far.tc);
    assert_int_equal(event_log_count(&far.tc.events, "z.read(1)"), 0);
    add_after(&far, "e", "c", NULL);
    settle(&far);
    assert_int_equal(event_log_count(&far.tc.events, "z.read(1)"), 1);
    assert_int_equal(event_log_count(&far.tc.events, "f.read(1)"), 1);
    assert_int_equal(event_log_count(&far.tc.events, "c.read(1)"), 0);
    far_close(&far);
}

/* "e" and "f" are on their way out: what is added between "f" and "g" comes in front of both. */
TEST(remote_handler, is_not_split_off_from_handlers_that_are_being_removed)
{
    struct far far;

    far_open_segment(&far, "efg");
    remove_named(&far, "e");
    remove_named(&far, "f");
    assert_int_equal(weir_pipeline_add(far.tc.pipeline, WEIR_PLACE(.before = "g", .name = "c"),
                                       &event_recorder, EVENT_RECORDER(&far.tc.events, "c")),
                     0);
    (void)tc_receive(&far.tc, "1");
    settle(&far);
    assert_events(&far.tc.events,
                  "c.added c.read(1) e.removed f.removed g.read(1) e.deinit f.deinit");
    far_close(&far);
}

TEST(remote_handler, cannot_be_added_or_split_without_memory)
{
    struct far far;
    weir_group *other;
    int err;

    far_open_segment(&far, "ef");
    other = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 1));
    for (unsigned i = 0, n = 1; i < 3; i++, n = 1) {
        weir_group *groups[] = {NULL, other, other};
        const char *after[] = {"e", "e", "f"};

        do {
            test_memory_fail_at(n++);
            err = weir_pipeline_add(far.tc.pipeline,
                                    WEIR_PLACE(.after = after[i], .name = "c", .group = groups[i]),
                                    &event_recorder, EVENT_RECORDER(&far.tc.events, "c"));
            test_memory_fail_at(0);
            assert_true(err == 0 || err == -ENOMEM);
            assert_int_equal(weir_pipeline_count(far.tc.pipeline), err == 0 ? 3 : 2);
            if (err < 0 && i == 0)
                assert_ptr_equal(segment_of(&far, "e"), segment_of(&far, "f"));
        } while (err < 0);
        assert_true(n > 2);
        remove_named(&far, "c");
        settle(&far);
        run_on_executor(weir_group_at(other, 0), nothing, NULL);
        settle(&far);
    }
    event_log_clear(&far.tc.events);
    (void)tc_receive(&far.tc, "1");
    settle(&far);
    assert_events(&far.tc.events, "e.read(1) f.read(1)");
    far_close(&far);
    end_group(other);
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

/* "1" has left "e", and is on its way over the loop. The two stay segments of their own. */
TEST(remote_handler, that_becomes_a_neighbour_gets_reads_in_order)
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
    assert_events(&far.tc.events, "e.read(3) e.read(4) f.read(3) f.read(4)");
    far_close(&far);
}

TEST(remote_handler, that_becomes_a_neighbour_gets_writes_in_order)
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

/* "m", between them, is removed with "1" on its way to it, and gets it. */
TEST(remote_handler, whose_neighbour_is_removed_gets_everything_in_order)
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
    assert_events(&far.tc.events,
                  "e.read(1) m.read(1) f.read(1) m.removed e.read(2) f.read(2) m.deinit");
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

TEST(remote_handler, that_answers_its_neighbour_writes_to_it_directly)
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

TEST(remote_handler, lets_a_handler_remove_itself_and_loses_and_overtakes_nothing)
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

TEST(remote_handler, tells_a_handler_that_was_added_and_removed_before_the_registration)
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

TEST(remote_handler, of_a_channel_that_was_never_registered_leaves_nothing)
{
    struct far far;

    far_open_bare(&far, NULL, NULL);
    add_far(&far, "e");
    far_close(&far);
}

/* ---- flow ---- */

TEST(remote_handler, pauses_reading_while_too_much_is_under_way)
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
TEST(remote_handler, reads_on_when_less_than_the_low_mark_is_under_way)
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

TEST(remote_handler, counts_what_its_handler_holds)
{
    struct far far;

    far_open(&far);
    weir_ctx_add_pending_bytes(weir_pipeline_find(far.tc.pipeline, "z"), 7);
    assert_int_equal(weir_channel_pending_bytes(far.tc.channel), 7);
    far_close(&far);
}

/* ---- the end ---- */

TEST(remote_handler, goes_on_when_its_executor_has_ended)
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

TEST(remote_handler, aborts_the_channel_if_a_message_cannot_be_passed_on)
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
TEST(remote_handler, starts_no_timers_for_a_handler_that_is_being_removed)
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

TEST(remote_handler, says_that_a_handler_is_removed_when_it_has_been_told)
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
TEST(remote_handler, reads_on_when_the_marks_have_been_raised)
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
TEST(remote_handler, reports_a_write_beyond_the_cap_that_nobody_waits_for)
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

TEST(remote_handler, replaced_by_one_on_the_loop_before_the_registration_is_told_all_of_it)
{
    replace_before_registration(true, false);
}

TEST(remote_handler, that_replaces_one_on_the_loop_before_the_registration_leaves_it_its_end)
{
    replace_before_registration(false, true);
}

TEST(remote_handler, replaced_by_another_before_the_registration_is_told_all_of_it)
{
    replace_before_registration(true, true);
}
