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
 * A test channel with a remote handler "e", on a group of one thread, between "a" and "z" on the
 * loop. The thread waits at a gate while the loop runs, so that the order of events is fixed: the
 * loop, the thread, the loop, and so on.
 */
struct remote_test {
    struct test_channel tc;
    weir_group *group;
    struct gate gate;
};

static weir_executor *executor_of(struct remote_test *rt)
{
    return weir_group_at(rt->group, 0);
}

static void nothing(void *arg)
{
    (void)arg;
}

static void rt_hold(struct remote_test *rt)
{
    rt->gate = (struct gate){{0}, {0}};
    gate_hold(&rt->gate, executor_of(rt));
}

/* Runs the thread and the loop in turn until no event is left in a mailbox. */
static void rt_settle(struct remote_test *rt)
{
    for (int i = 0; i < 6; i++) {
        gate_open(&rt->gate);
        run_on_executor(executor_of(rt), nothing, NULL);
        rt_hold(rt);
        tc_run(&rt->tc);
    }
}

static void rt_add(struct remote_test *rt, const char *name)
{
    struct event_recorder options = {.events = &rt->tc.events};

    strncpy(options.name, name, sizeof(options.name) - 1);
    assert_int_equal(weir_pipeline_add(rt->tc.pipeline,
                                       WEIR_PLACE(.name = name, .group = rt->group),
                                       &event_recorder, &options),
                     0);
}

static void rt_create(struct remote_test *rt, const struct wire_options *wire,
                      const weir_channel_options *options)
{
    rt->group = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 1));
    rt_hold(rt);
    tc_open_with(&rt->tc, wire, options);
}

static void rt_open_with(struct remote_test *rt, const weir_channel_options *options)
{
    rt_create(rt, NULL, options);
    tc_add(&rt->tc, "a");
    rt_add(rt, "e");
    tc_add(&rt->tc, "z");
    tc_start(&rt->tc);
    rt_settle(rt);
}

static void rt_open(struct remote_test *rt)
{
    rt_open_with(rt, NULL);
}

static void rt_close(struct remote_test *rt)
{
    rt->tc.wire->options.slow_close = false;
    weir_channel_abort(rt->tc.channel, NULL);
    rt_settle(rt);
    rt_settle(rt); /* segments are removed one after the other */
    tc_close(&rt->tc);
    gate_open(&rt->gate);
    end_group(rt->group);
}

TEST(remote_handler, gets_the_events_of_a_channel_in_order)
{
    struct remote_test rt;

    rt_open(&rt);
    assert_events(&rt.tc.events,
                  "ATTACH a.added z.added a.registered a.active z.request_read e.added "
                  "e.registered e.active e.request_read z.registered z.active a.request_read READ");
    rt_close(&rt);
}

TEST(remote_handler, keeps_the_order_of_what_is_read_and_written)
{
    struct remote_test rt;
    weir_promise *done;

    rt_open(&rt);
    event_log_clear(&rt.tc.events);
    (void)tc_receive(&rt.tc, "1");
    (void)tc_receive(&rt.tc, "2");
    weir__channel_read_complete(rt.tc.channel);
    rt_settle(&rt);
    assert_events(&rt.tc.events,
                  "a.read(1) a.read(2) a.read_complete z.request_read e.read(1) e.read(2) "
                  "e.read_complete e.request_read z.read(1) z.read(2) z.read_complete "
                  "a.request_read");

    done = tc_promise(&rt.tc, "done");
    weir_channel_write(rt.tc.channel, text_msg("x"), NULL);
    weir_channel_write_and_flush(rt.tc.channel, text_msg("y"), done);
    assert_int_equal(weir_channel_pending_bytes(rt.tc.channel), 2 + 2 * WEIR__OUTBOUND_COST);
    rt_settle(&rt);
    assert_events(&rt.tc.events, "z.write(x) z.write(y) z.flush e.write(x) e.write(y) e.flush "
                                 "a.write(x) a.write(y) a.flush FLUSH done=ok");
    assert_int_equal(weir_channel_pending_bytes(rt.tc.channel), 0);
    assert_sent(&rt.tc, "xy");
    weir_promise_release(done);
    rt_close(&rt);
}

TEST(remote_handler, passes_a_half_closure_behind_writes)
{
    struct remote_test rt;
    weir_promise *done;

    rt_open(&rt);
    event_log_clear(&rt.tc.events);
    done = tc_promise(&rt.tc, "done");
    weir_channel_write(rt.tc.channel, text_msg("x"), NULL);
    weir_channel_shutdown_output(rt.tc.channel, done);
    rt_settle(&rt);
    assert_events(&rt.tc.events,
                  "z.write(x) z.shutdown_output e.write(x) e.shutdown_output a.write(x) "
                  "a.shutdown_output FLUSH FIN done=ok a.event(output-closed) "
                  "e.event(output-closed) z.event(output-closed)");
    assert_sent(&rt.tc, "x");
    weir_promise_release(done);
    rt_close(&rt);
}

TEST(remote_handler, runs_the_handler_on_its_own_executor)
{
    struct remote_test rt;
    weir_ctx *e;

    rt_open(&rt);
    e = weir_pipeline_find(rt.tc.pipeline, "e");
    assert_ptr_equal(weir_ctx_executor(e), executor_of(&rt));
    assert_ptr_equal(weir_ctx_executor(weir_pipeline_find(rt.tc.pipeline, "a")),
                     rt.tc.stepper.executor);
    rt_close(&rt);
}

TEST(remote_handler, gets_read_complete_once_behind_the_last_message)
{
    struct remote_test rt;

    rt_open(&rt);
    event_log_clear(&rt.tc.events);
    (void)tc_receive(&rt.tc, "1");
    weir__channel_read_complete(rt.tc.channel);
    (void)tc_receive(&rt.tc, "2");
    weir__channel_read_complete(rt.tc.channel);
    event_log_clear(&rt.tc.events);
    rt_settle(&rt);
    assert_int_equal(event_log_count(&rt.tc.events, "e.read_complete"), 1);
    assert_non_null(strstr(rt.tc.events.text, "e.read(1) e.read(2) e.read_complete"));
    assert_non_null(strstr(rt.tc.events.text, "z.read(1) z.read(2) z.read_complete"));
    rt_close(&rt);
}

/* "a" requests it, so "e" does not see the request. */
static void move_away(struct remote_test *rt)
{
    weir_deregister(weir_pipeline_find(rt->tc.pipeline, "a"), NULL);
    tc_run(&rt->tc);
}

/* Deregisters the channel and registers it again while the handler's executor is busy. */
static void move_away_and_back(struct remote_test *rt)
{
    move_away(rt);
    weir_channel_register(rt->tc.channel, rt->tc.stepper.executor, NULL);
    tc_run(&rt->tc);
}

/* Compares the events of "e" only. */
static void assert_events_of_e(struct remote_test *rt, const char *words)
{
    char found[EVENT_LOG_SIZE] = "", *at = found, *rest = rt->tc.events.text, *word;

    while ((word = strtok_r(rest, " ", &rest)) != NULL)
        if (strncmp(word, "e.", 2) == 0)
            at += sprintf(at, "%s%s", at > found ? " " : "", word);
    event_log_clear(&rt->tc.events);
    assert_string_equal(found, words);
}

TEST(remote_handler, gets_the_events_of_a_move_to_another_loop)
{
    struct remote_test rt;

    rt_open(&rt);
    event_log_clear(&rt.tc.events);
    move_away_and_back(&rt);
    rt_settle(&rt);
    assert_events_of_e(&rt, "e.unregistered e.registered e.request_read");
    rt_close(&rt);
}

TEST(remote_handler, gets_no_unregistered_before_registered)
{
    struct remote_test rt;

    rt_create(&rt, NULL, NULL);
    tc_add(&rt.tc, "a");
    rt_add(&rt, "e");
    tc_start(&rt.tc);
    move_away_and_back(&rt);
    move_away_and_back(&rt);
    rt_settle(&rt);
    assert_events_of_e(&rt, "e.added e.registered e.active e.request_read");
    move_away(&rt);
    rt_settle(&rt);
    assert_events_of_e(&rt, "e.unregistered");
    rt_close(&rt);
}

TEST(remote_handler, gets_messages_between_registered_and_unregistered)
{
    struct remote_test rt;

    rt_open(&rt);
    event_log_clear(&rt.tc.events);
    move_away_and_back(&rt);
    (void)tc_receive(&rt.tc, "x");
    move_away(&rt);
    rt_settle(&rt);
    assert_events_of_e(&rt, "e.request_read e.read(x) e.unregistered");
    rt_close(&rt);
}

TEST(remote_handler, passes_events_errors_and_promises)
{
    struct remote_test rt;
    weir_promise *closed;

    rt_open(&rt);
    event_log_clear(&rt.tc.events);
    weir_channel_fire_event(rt.tc.channel, text_msg("ev"));
    rt_settle(&rt);
    assert_events(&rt.tc.events, "a.event(ev) e.event(ev) z.event(ev)");
    log_capture_start();
    {
        char sentence[] = "a sentence that is gone when it arrives";

        weir_pipeline_fire_error(rt.tc.pipeline, -EPROTO, sentence);
        memset(sentence, 'x', sizeof(sentence) - 1);
    }
    closed = tc_promise(&rt.tc, "closed");
    weir_channel_close(rt.tc.channel, closed);
    rt_settle(&rt);
    assert_true(log_capture_last_contains("a sentence that is gone when it arrives"));
    tc_end_input(&rt.tc);
    assert_int_equal(weir_promise_result(closed), 0);
    weir_promise_release(closed);
    rt_close(&rt);
}

TEST(remote_handler, passes_addresses)
{
    struct remote_test rt;
    weir_address address;
    weir_promise *done;

    rt_create(&rt, &(struct wire_options){.idle = true}, NULL);
    rt_add(&rt, "e");
    tc_start(&rt.tc);
    rt_settle(&rt);
    event_log_clear(&rt.tc.events);
    assert_int_equal(weir_address_parse("1.2.3.4:5", &address), 0);
    done = tc_promise(&rt.tc, "done");
    weir_channel_connect(rt.tc.channel, &address, &address, done);
    rt_settle(&rt);
    weir__channel_connected(rt.tc.channel, 0);
    rt_settle(&rt);
    assert_events(&rt.tc.events, "e.connect CONNECT done=ok e.active e.request_read READ");
    weir_promise_release(done);
    rt_close(&rt);
}

TEST(remote_handler, removes_handlers_from_the_tail_on_across_executors)
{
    struct remote_test rt;

    rt_open(&rt);
    rt_add(&rt, "f");
    tc_add(&rt.tc, "y");
    rt_settle(&rt);
    event_log_clear(&rt.tc.events);
    weir_channel_abort(rt.tc.channel, NULL);
    rt_settle(&rt);
    assert_non_null(strstr(rt.tc.events.text, "y.removed"));
    assert_true(strstr(rt.tc.events.text, "y.removed") < strstr(rt.tc.events.text, "f.removed"));
    assert_true(strstr(rt.tc.events.text, "f.removed") < strstr(rt.tc.events.text, "z.removed"));
    assert_true(strstr(rt.tc.events.text, "z.removed") < strstr(rt.tc.events.text, "e.removed"));
    assert_true(strstr(rt.tc.events.text, "e.removed") < strstr(rt.tc.events.text, "a.removed"));
    assert_true(strstr(rt.tc.events.text, "e.unregistered") <
                strstr(rt.tc.events.text, "e.removed"));
    rt_close(&rt);
}

static weir_executor *executor_in(struct test_channel *tc, const char *name)
{
    return weir_ctx_executor(weir_pipeline_find(tc->pipeline, name));
}

TEST(remote_handler, shares_an_executor_of_its_group_unless_executor_per_handler)
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
static void rt_run_executor(struct remote_test *rt)
{
    gate_open(&rt->gate);
    run_on_executor(executor_of(rt), nothing, NULL);
    rt_hold(rt);
}

static weir__segment *segment_of(struct remote_test *rt, const char *name)
{
    return weir__remote_of(weir_pipeline_find(rt->tc.pipeline, name))->segment;
}

/* Adds a handler behind another one: on the group, or on the loop. */
static void add_after(struct remote_test *rt, const char *after, const char *name,
                      weir_group *group)
{
    struct event_recorder options = {.events = &rt->tc.events};

    strncpy(options.name, name, sizeof(options.name) - 1);
    assert_int_equal(weir_pipeline_add(rt->tc.pipeline,
                                       WEIR_PLACE(.after = after, .name = name, .group = group),
                                       &event_recorder, &options),
                     0);
}

static void remove_named(struct remote_test *rt, const char *name)
{
    assert_int_equal(weir_pipeline_remove(rt->tc.pipeline, name, NULL), 0);
}

/* Opens a channel with one segment; each letter of `names` is a handler. */
static void rt_open_segment(struct remote_test *rt, const char *names)
{
    rt_create(rt, &(const struct wire_options){.silent = true}, NULL);
    for (; *names != '\0'; names++)
        rt_add(rt, (const char[]){*names, '\0'});
    tc_start(&rt->tc);
    rt_settle(rt);
    event_log_clear(&rt->tc.events);
}

TEST(remote_handler, is_called_directly_by_its_neighbour_in_the_segment)
{
    struct remote_test rt;

    rt_open_segment(&rt, "ef");
    (void)tc_receive(&rt.tc, "1");
    (void)tc_receive(&rt.tc, "2");
    rt_settle(&rt);
    assert_events(&rt.tc.events, "e.read(1) f.read(1) e.read(2) f.read(2)");
    weir_channel_write(rt.tc.channel, text_msg("x"), NULL);
    rt_settle(&rt);
    assert_events(&rt.tc.events, "f.write(x) e.write(x)");
    rt_close(&rt);
}

static int add_two(weir_channel *channel, void *user_data)
{
    struct remote_test *rt = user_data;

    assert_ptr_equal(channel, rt->tc.channel);
    rt_add(rt, "e");
    rt_add(rt, "f");
    return 0;
}

TEST(remote_handler, forms_one_segment_with_others_that_an_initializer_adds)
{
    struct remote_test rt;

    rt_create(&rt, &(const struct wire_options){.silent = true}, NULL);
    assert_int_equal(weir_pipeline_add_initializer(rt.tc.pipeline, add_two, &rt), 0);
    tc_start(&rt.tc);
    rt_settle(&rt);
    assert_ptr_equal(segment_of(&rt, "e"), segment_of(&rt, "f"));
    assert_events(&rt.tc.events, "e.added f.added e.registered f.registered e.active f.active "
                                 "f.request_read e.request_read");
    rt_close(&rt);
}

TEST(remote_handler, joins_the_segment_that_it_is_added_or_replaced_in)
{
    struct remote_test rt;

    rt_open_segment(&rt, "eg");
    add_after(&rt, "e", "f", rt.group);
    assert_int_equal(weir_pipeline_replace(rt.tc.pipeline, "g",
                                           WEIR_PLACE(.name = "h", .group = rt.group),
                                           &event_recorder, EVENT_RECORDER(&rt.tc.events, "h")),
                     0);
    assert_ptr_equal(segment_of(&rt, "f"), segment_of(&rt, "e"));
    assert_ptr_equal(segment_of(&rt, "h"), segment_of(&rt, "e"));
    (void)tc_receive(&rt.tc, "1");
    rt_settle(&rt);
    assert_events(&rt.tc.events,
                  "f.added h.added g.removed e.read(1) f.read(1) h.read(1) g.deinit");
    rt_close(&rt);
}

/* "1" left "e" before "f" was added, "2" enters it after that: "f" gets both. */
TEST(remote_handler, added_next_to_a_segment_that_is_in_use_forms_its_own)
{
    struct remote_test rt;

    rt_open_segment(&rt, "e");
    (void)tc_receive(&rt.tc, "1");
    rt_run_executor(&rt);
    rt_add(&rt, "f");
    (void)tc_receive(&rt.tc, "2");
    rt_settle(&rt);
    assert_ptr_not_equal(segment_of(&rt, "f"), segment_of(&rt, "e"));
    assert_events(&rt.tc.events, "e.read(1) e.read(2) f.added f.read(1) f.read(2)");
    rt_close(&rt);
}

/* "1" is in the inbox, "0" in the outbox. "c" gets what comes after the split, and "f" each once.
 */
TEST(remote_handler, keeps_the_order_of_reads_when_its_segment_is_split)
{
    struct remote_test rt;

    rt_open_segment(&rt, "ef");
    tc_add(&rt.tc, "z");
    (void)tc_receive(&rt.tc, "0");
    rt_run_executor(&rt);
    (void)tc_receive(&rt.tc, "1");
    add_after(&rt, "e", "c", NULL);
    (void)tc_receive(&rt.tc, "2");
    rt_settle(&rt);
    assert_ptr_not_equal(segment_of(&rt, "f"), segment_of(&rt, "e"));
    assert_events(&rt.tc.events,
                  "z.added e.read(0) f.read(0) c.added e.read(1) f.read(1) e.read(2) z.read(0) "
                  "z.read(1) c.read(2) f.read(2) z.read(2)");
    rt_close(&rt);
}

TEST(remote_handler, keeps_the_order_of_writes_when_its_segment_is_split)
{
    struct remote_test rt;

    rt_open_segment(&rt, "ef");
    weir_channel_write(rt.tc.channel, text_msg("0"), NULL);
    rt_run_executor(&rt);
    weir_channel_write(rt.tc.channel, text_msg("1"), NULL);
    add_after(&rt, "e", "c", NULL);
    weir_channel_write(rt.tc.channel, text_msg("2"), NULL);
    rt_settle(&rt);
    weir_channel_flush(rt.tc.channel);
    rt_settle(&rt);
    assert_non_null(strstr(rt.tc.events.text, "f.write(1) e.write(1) f.write(2) c.write(2)"));
    assert_sent(&rt.tc, "012");
    rt_close(&rt);
}

/* The handler has read "1" to "4", each once. */
static void assert_reads_in_order(struct remote_test *rt, char name)
{
    const char *rest = rt->tc.events.text;
    char read[] = "?.read(?)";

    read[0] = name;
    for (read[7] = '1'; read[7] <= '4'; read[7]++) {
        assert_int_equal(event_log_count(&rt->tc.events, read), 1);
        rest = strstr(rest, read);
        assert_non_null(rest);
    }
}

/* Each split is made while the ones before it are still on their way. */
TEST(remote_handler, keeps_the_order_when_its_segment_is_split_again_and_again)
{
    struct remote_test rt;

    rt_open_segment(&rt, "efgh");
    (void)tc_receive(&rt.tc, "0");
    rt_run_executor(&rt);
    (void)tc_receive(&rt.tc, "1");
    add_after(&rt, "f", "x", NULL); /* ef x gh */
    (void)tc_receive(&rt.tc, "2");
    add_after(&rt, "e", "y", NULL); /* e y f x gh */
    (void)tc_receive(&rt.tc, "3");
    add_after(&rt, "g", "z", NULL); /* e y f x g z h */
    (void)tc_receive(&rt.tc, "4");
    event_log_clear(&rt.tc.events);
    rt_settle(&rt);
    rt_settle(&rt);
    for (const char *name = "efgh"; *name != '\0'; name++)
        assert_reads_in_order(&rt, *name);
    assert_int_equal(event_log_count(&rt.tc.events, "y.read(3)"), 1);
    assert_int_equal(event_log_count(&rt.tc.events, "z.read(4)"), 1);
    rt_close(&rt);
}

/* Nobody has requested "1", which waits in the outbox: the split lets it pass, to "z" only. */
TEST(remote_handler, lets_messages_pass_that_wait_when_its_segment_is_split)
{
    struct remote_test rt;

    rt_open_segment(&rt, "ef");
    tc_add(&rt.tc, "z");
    (void)tc_receive(&rt.tc, "0");
    (void)tc_receive(&rt.tc, "1");
    rt_run_executor(&rt);
    weir_channel_set_auto_read(rt.tc.channel, false);
    tc_run(&rt.tc);
    assert_int_equal(event_log_count(&rt.tc.events, "z.read(1)"), 0);
    add_after(&rt, "e", "c", NULL);
    rt_settle(&rt);
    assert_int_equal(event_log_count(&rt.tc.events, "z.read(1)"), 1);
    assert_int_equal(event_log_count(&rt.tc.events, "f.read(1)"), 1);
    assert_int_equal(event_log_count(&rt.tc.events, "c.read(1)"), 0);
    rt_close(&rt);
}

TEST(remote_handler, lets_messages_pass_that_wait_when_the_last_of_a_segment_is_removed)
{
    struct remote_test rt;

    rt_open_segment(&rt, "e");
    tc_add(&rt.tc, "z");
    (void)tc_receive(&rt.tc, "0");
    (void)tc_receive(&rt.tc, "1");
    rt_run_executor(&rt);
    (void)tc_receive(&rt.tc, "2");
    weir_channel_set_auto_read(rt.tc.channel, false);
    rt_settle(&rt);
    assert_int_equal(event_log_count(&rt.tc.events, "z.read(1)"), 0);
    assert_int_equal(event_log_count(&rt.tc.events, "e.read(2)"), 0);
    remove_named(&rt, "e");
    rt_settle(&rt);
    assert_non_null(strstr(rt.tc.events.text, "e.removed z.read(1) z.read_complete z.read(2)"));
    assert_int_equal(event_log_count(&rt.tc.events, "e.deinit"), 1);
    rt_close(&rt);
}

/* "e" and "f" are on their way out: what is added between "f" and "g" comes in front of both. */
TEST(remote_handler, is_not_split_off_from_handlers_that_are_being_removed)
{
    struct remote_test rt;

    rt_open_segment(&rt, "efg");
    remove_named(&rt, "e");
    remove_named(&rt, "f");
    assert_int_equal(weir_pipeline_add(rt.tc.pipeline, WEIR_PLACE(.before = "g", .name = "c"),
                                       &event_recorder, EVENT_RECORDER(&rt.tc.events, "c")),
                     0);
    (void)tc_receive(&rt.tc, "1");
    rt_settle(&rt);
    assert_events(&rt.tc.events,
                  "c.added c.read(1) e.removed f.removed g.read(1) e.deinit f.deinit");
    rt_close(&rt);
}

TEST(remote_handler, cannot_be_added_or_split_without_memory)
{
    struct remote_test rt;
    weir_group *other;
    int err;

    rt_open_segment(&rt, "ef");
    other = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 1));
    for (unsigned i = 0, n = 1; i < 3; i++, n = 1) {
        weir_group *groups[] = {NULL, other, other};
        const char *after[] = {"e", "e", "f"};

        do {
            test_memory_fail_at(n++);
            err = weir_pipeline_add(rt.tc.pipeline,
                                    WEIR_PLACE(.after = after[i], .name = "c", .group = groups[i]),
                                    &event_recorder, EVENT_RECORDER(&rt.tc.events, "c"));
            test_memory_fail_at(0);
            assert_true(err == 0 || err == -ENOMEM);
            assert_int_equal(weir_pipeline_count(rt.tc.pipeline), err == 0 ? 3 : 2);
            if (err < 0 && i == 0)
                assert_ptr_equal(segment_of(&rt, "e"), segment_of(&rt, "f"));
        } while (err < 0);
        assert_true(n > 2);
        remove_named(&rt, "c");
        rt_settle(&rt);
        run_on_executor(weir_group_at(other, 0), nothing, NULL);
        rt_settle(&rt);
    }
    event_log_clear(&rt.tc.events);
    (void)tc_receive(&rt.tc, "1");
    rt_settle(&rt);
    assert_events(&rt.tc.events, "e.read(1) f.read(1)");
    rt_close(&rt);
    end_group(other);
}

/* Opens a channel with "e" and "f" on the executor, and "c" between them on the loop. */
static void rt_open_apart(struct remote_test *rt)
{
    rt_create(rt, NULL, NULL);
    rt_add(rt, "e");
    tc_add(&rt->tc, "c");
    rt_add(rt, "f");
    tc_start(&rt->tc);
    rt_settle(rt);
}

/* "1" has left "e", and is on its way over the loop. The two stay segments of their own. */
TEST(remote_handler, that_becomes_a_neighbour_gets_reads_in_order)
{
    struct remote_test rt;

    rt_open_apart(&rt);
    (void)tc_receive(&rt.tc, "1");
    rt_run_executor(&rt);
    assert_int_equal(weir_pipeline_remove(rt.tc.pipeline, "c", NULL), 0);
    (void)tc_receive(&rt.tc, "2");
    tc_run(&rt.tc);
    event_log_clear(&rt.tc.events);
    rt_settle(&rt);
    assert_events(&rt.tc.events, "e.read(2) f.read(1) f.read(2)");
    (void)tc_receive(&rt.tc, "3");
    (void)tc_receive(&rt.tc, "4");
    rt_settle(&rt);
    assert_events(&rt.tc.events, "e.read(3) e.read(4) f.read(3) f.read(4)");
    rt_close(&rt);
}

TEST(remote_handler, that_becomes_a_neighbour_gets_writes_in_order)
{
    struct remote_test rt;

    rt_open_apart(&rt);
    weir_channel_write(rt.tc.channel, text_msg("1"), NULL);
    rt_run_executor(&rt);
    assert_int_equal(weir_pipeline_remove(rt.tc.pipeline, "c", NULL), 0);
    weir_channel_write(rt.tc.channel, text_msg("2"), NULL);
    tc_run(&rt.tc);
    event_log_clear(&rt.tc.events);
    rt_settle(&rt);
    assert_events(&rt.tc.events, "f.write(2) e.write(1) e.write(2)");
    rt_close(&rt);
}

/* "m", between them, is removed with "1" on its way to it, and gets it. */
TEST(remote_handler, whose_neighbour_is_removed_gets_everything_in_order)
{
    struct remote_test rt;

    rt_create(&rt, NULL, NULL);
    rt_add(&rt, "e");
    rt_add(&rt, "m");
    rt_add(&rt, "f");
    tc_start(&rt.tc);
    rt_settle(&rt);
    (void)tc_receive(&rt.tc, "1");
    event_log_clear(&rt.tc.events);
    assert_int_equal(weir_pipeline_remove(rt.tc.pipeline, "m", NULL), 0);
    (void)tc_receive(&rt.tc, "2");
    rt_settle(&rt);
    assert_events(&rt.tc.events,
                  "e.read(1) m.read(1) f.read(1) m.removed e.read(2) f.read(2) m.deinit");
    (void)tc_receive(&rt.tc, "3");
    rt_settle(&rt);
    assert_events(&rt.tc.events, "e.read(3) f.read(3)");
    rt_close(&rt);
}

/* Answers inside the call. */
static void answer(weir_ctx *ctx, weir_msg *msg)
{
    weir_write(ctx, msg, NULL);
}

TEST(remote_handler, that_answers_writes_to_its_neighbour_directly)
{
    static weir_handler echo;
    struct remote_test rt;

    echo = event_recorder;
    echo.read = answer;
    rt_create(&rt, NULL, NULL);
    rt_add(&rt, "e");
    assert_int_equal(weir_pipeline_add(rt.tc.pipeline, WEIR_PLACE(.name = "f", .group = rt.group),
                                       &echo, EVENT_RECORDER(&rt.tc.events, "f")),
                     0);
    tc_start(&rt.tc);
    rt_settle(&rt);
    event_log_clear(&rt.tc.events);
    (void)tc_receive(&rt.tc, "1");
    (void)tc_receive(&rt.tc, "2");
    rt_settle(&rt);
    assert_events(&rt.tc.events, "e.read(1) e.write(1) e.read(2) e.write(2)");
    rt_close(&rt);
}

static void remove_self(weir_ctx *ctx, weir_msg *msg)
{
    weir_ctx_remove(ctx);
    weir_fire_read(ctx, msg);
}

TEST(remote_handler, that_removes_itself_loses_and_reorders_nothing)
{
    static const weir_handler shy = {.name = "shy", .read = remove_self};
    struct remote_test rt;

    rt_open(&rt);
    assert_int_equal(
        weir_pipeline_add(rt.tc.pipeline, WEIR_PLACE(.after = "e", .group = rt.group), &shy, NULL),
        0);
    rt_settle(&rt);
    assert_int_equal(weir_pipeline_remove(rt.tc.pipeline, "e", NULL), 0);
    event_log_clear(&rt.tc.events);
    for (char text[2] = "1"; text[0] <= '9'; text[0]++)
        (void)tc_receive(&rt.tc, text);
    for (int i = 0; i < 3; i++)
        rt_settle(&rt);
    assert_non_null(strstr(rt.tc.events.text, "e.removed"));
    assert_non_null(strstr(rt.tc.events.text,
                           "z.read(1) z.read(2) z.read(3) z.read(4) z.read(5) z.read(6) z.read(7) "
                           "z.read(8) z.read(9)"));
    assert_int_equal(weir_pipeline_count(rt.tc.pipeline), 2);
    rt_close(&rt);
}

TEST(remote_handler, added_and_removed_before_the_registration_gets_both_calls)
{
    struct remote_test rt;

    rt_create(&rt, NULL, NULL);
    rt_add(&rt, "e");
    assert_int_equal(weir_pipeline_remove(rt.tc.pipeline, "e", NULL), 0);
    assert_int_equal(weir_pipeline_count(rt.tc.pipeline), 0);
    tc_start(&rt.tc);
    rt_settle(&rt);
    assert_events(&rt.tc.events, "ATTACH e.added e.removed READ e.deinit");
    rt_close(&rt);
}

TEST(remote_handler, of_a_channel_that_was_never_registered_is_freed)
{
    struct remote_test rt;

    rt_create(&rt, NULL, NULL);
    rt_add(&rt, "e");
    rt_close(&rt);
}

/* ---- flow ---- */

TEST(remote_handler, pauses_reading_above_the_high_mark)
{
    struct remote_test rt;

    rt_open_with(&rt, WEIR_CHANNEL_OPTIONS(.low_mark = 500, .high_mark = 1000));
    rt.tc.wire->options.silent = true;
    assert_true(weir__channel_received(rt.tc.channel, sized_msg(1000 - WEIR__OUTBOUND_COST)));
    assert_true(rt.tc.wire->reads);
    assert_false(weir__channel_received(rt.tc.channel, sized_msg(100)));
    assert_false(rt.tc.wire->reads);
    assert_true(weir_channel_auto_read(rt.tc.channel));
    rt_settle(&rt);
    assert_true(rt.tc.wire->reads);
    rt_close(&rt);
}

/* Reads a message, reports that, and waits until the test permits it to return. */
static struct call_counter arrivals, permits;

static void take_when_let(weir_ctx *ctx, weir_msg *msg)
{
    (void)ctx;
    call_counter_add(&arrivals);
    (void)call_counter_await(&permits, atomic_load(&arrivals.calls));
    weir_msg_release(msg);
}

/* Permits one message. Returns when the next one is being read and the loop has run. */
static void let_take(struct remote_test *rt, uint32_t count)
{
    call_counter_add(&permits);
    assert_true(call_counter_await(&arrivals, count + 1));
    tc_run(&rt->tc);
}

/* Reading resumes below the low mark, not at it, even if it was exactly at it before. */
TEST(remote_handler, resumes_reading_below_the_low_mark)
{
    static const weir_handler taker = {.name = "taker", .read = take_when_let};
    weir_msg *sample = sized_msg(100);
    int64_t cost = weir__outbound_cost(sample);
    struct remote_test rt;

    weir_msg_release(sample);
    arrivals = permits = (struct call_counter){0};
    rt_create(&rt, NULL, WEIR_CHANNEL_OPTIONS(.low_mark = 2 * cost, .high_mark = 4 * cost - 1));
    assert_int_equal(weir_pipeline_add(rt.tc.pipeline, WEIR_PLACE(.group = rt.group), &taker, NULL),
                     0);
    tc_start(&rt.tc);
    rt_settle(&rt);
    gate_open(&rt.gate);
    for (int i = 0; i < 4; i++)
        (void)weir__channel_received(rt.tc.channel, sized_msg(100));
    assert_false(rt.tc.wire->reads);
    let_take(&rt, 1); /* 3 are left */
    assert_false(rt.tc.wire->reads);
    let_take(&rt, 2); /* 2: the low mark */
    assert_false(rt.tc.wire->reads);
    weir_channel_set_auto_read(rt.tc.channel, true); /* the loop checks again */
    assert_false(rt.tc.wire->reads);
    let_take(&rt, 3);
    assert_true(rt.tc.wire->reads);
    call_counter_add(&permits);
    rt_close(&rt);
}

/* Of two messages that came while auto-read was on, the second waits for a request. */
static void rt_open_waiting(struct remote_test *rt)
{
    rt_open_with(rt, WEIR_CHANNEL_OPTIONS(.half_closure = true));
    (void)tc_receive(&rt->tc, "1");
    (void)tc_receive(&rt->tc, "2");
    weir_channel_set_auto_read(rt->tc.channel, false);
    rt_settle(rt);
    assert_int_equal(event_log_count(&rt->tc.events, "e.read(1)"), 1);
    assert_int_equal(event_log_count(&rt->tc.events, "e.read(2)"), 0);
    event_log_clear(&rt->tc.events);
}

TEST(remote_handler, gets_the_end_of_the_input_behind_messages_that_wait)
{
    struct remote_test rt;

    rt_open_waiting(&rt);
    tc_end_input(&rt.tc);
    rt_settle(&rt);
    assert_int_equal(event_log_count(&rt.tc.events, "e.event"), 0);
    event_log_clear(&rt.tc.events);
    weir_channel_request_read(rt.tc.channel);
    rt_settle(&rt);
    assert_non_null(strstr(rt.tc.events.text, "e.read(2)"));
    assert_non_null(strstr(strstr(rt.tc.events.text, "e.read(2)"), "e.event(input-closed)"));
    rt_close(&rt);
}

static void read_twice(weir_ctx *ctx, weir_msg *msg)
{
    weir_fire_read(ctx, msg);
    weir_fire_read(ctx, text_msg("again"));
}

/* What waits in a mailbox answers a request, but not that of auto-read: the channel reads on. */
TEST(remote_handler, reads_on_when_auto_read_is_switched_on_while_messages_wait)
{
    static const weir_handler doubler = {.name = "doubler", .read = read_twice};
    struct remote_test rt;

    rt_create(&rt, NULL, NULL);
    assert_int_equal(
        weir_pipeline_add(rt.tc.pipeline, WEIR_PLACE(.group = rt.group), &doubler, NULL), 0);
    tc_add(&rt.tc, "z");
    tc_start(&rt.tc);
    rt_settle(&rt);
    (void)tc_receive(&rt.tc, "1");
    weir_channel_set_auto_read(rt.tc.channel, false);
    rt_settle(&rt);
    assert_int_equal(event_log_count(&rt.tc.events, "z.read(1)"), 1);
    assert_int_equal(event_log_count(&rt.tc.events, "z.read(again)"), 0);
    assert_false(rt.tc.wire->reads);
    weir_channel_set_auto_read(rt.tc.channel, true);
    rt_settle(&rt);
    assert_int_equal(event_log_count(&rt.tc.events, "z.read(again)"), 1);
    assert_true(rt.tc.wire->reads);
    rt_close(&rt);
}

static struct call_counter taken;

static void take(weir_ctx *ctx, weir_msg *msg)
{
    (void)ctx;
    call_counter_add(&taken);
    weir_msg_release(msg);
}

/* A request counts, also if auto-read was on for a moment after it. */
TEST(remote_handler, answers_a_request_that_auto_read_has_followed)
{
    static const weir_handler taker = {.name = "taker", .read = take};
    struct remote_test rt;

    taken = (struct call_counter){0};
    rt_create(&rt, NULL, NULL);
    assert_int_equal(weir_pipeline_add(rt.tc.pipeline, WEIR_PLACE(.group = rt.group), &taker, NULL),
                     0);
    tc_start(&rt.tc);
    rt_settle(&rt);
    (void)tc_receive(&rt.tc, "1");
    (void)tc_receive(&rt.tc, "2");
    weir_channel_set_auto_read(rt.tc.channel, false);
    rt_settle(&rt);
    assert_int_equal(taken.calls, 1);
    weir_channel_request_read(rt.tc.channel);
    weir_channel_set_auto_read(rt.tc.channel, true);
    weir_channel_set_auto_read(rt.tc.channel, false);
    rt_settle(&rt);
    assert_int_equal(taken.calls, 2);
    rt_close(&rt);
}

TEST(remote_handler, counts_pending_bytes)
{
    struct remote_test rt;

    rt_open(&rt);
    weir_ctx_add_pending_bytes(weir_pipeline_find(rt.tc.pipeline, "z"), 7);
    assert_int_equal(weir_channel_pending_bytes(rt.tc.channel), 7);
    rt_close(&rt);
}

/* ---- the end ---- */

TEST(remote_handler, works_after_its_executor_has_ended)
{
    struct remote_test rt;

    rt_open(&rt);
    gate_open(&rt.gate);
    end_group(rt.group);
    event_log_clear(&rt.tc.events);
    (void)tc_receive(&rt.tc, "1");
    while (event_log_count(&rt.tc.events, "z.read(1)") == 0) {
        weir__thread_yield();
        tc_run(&rt.tc);
    }
    weir_channel_abort(rt.tc.channel, NULL);
    while (event_log_count(&rt.tc.events, "a.deinit") == 0) {
        weir__thread_yield();
        tc_run(&rt.tc);
    }
    tc_close(&rt.tc);
}

TEST(remote_handler, aborts_the_channel_without_memory_for_a_message)
{
    struct remote_test rt;
    weir_promise *done;
    weir_msg *msg;

    for (unsigned n = 1;; n++) {
        rt_open(&rt);
        done = tc_promise(&rt.tc, "done");
        msg = text_msg("x");
        rt_settle(&rt);
        test_memory_fail_at(n);
        weir_channel_write_and_flush(rt.tc.channel, msg, done);
        rt_settle(&rt);
        if (!test_memory_failed())
            break;
        test_memory_fail_at(0);
        rt_settle(&rt);
        assert_true(weir_promise_is_done(done));
        assert_int_equal(weir_channel_pending_bytes(rt.tc.channel), 0);
        weir_promise_release(done);
        rt_close(&rt);
    }
    test_memory_fail_at(0);
    assert_int_equal(weir_promise_result(done), 0);
    weir_promise_release(done);
    rt_close(&rt);
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

/* As on the loop: its memory is about to be freed. */
TEST(remote_handler, starts_no_timers_for_a_handler_that_is_being_removed)
{
    static weir_handler late;
    struct remote_test rt;

    late = event_recorder;
    late.removed = start_late;
    late.read = hold_1000;
    rt_create(&rt, NULL, NULL);
    assert_int_equal(weir_pipeline_add(rt.tc.pipeline, WEIR_PLACE(.name = "l", .group = rt.group),
                                       &late, EVENT_RECORDER(&rt.tc.events, "l")),
                     0);
    tc_start(&rt.tc);
    rt_settle(&rt);
    (void)tc_receive(&rt.tc, "x");
    rt_settle(&rt);
    assert_int_equal(weir_channel_pending_bytes(rt.tc.channel), 1000);
    assert_int_equal(weir_pipeline_remove(rt.tc.pipeline, "l", NULL), 0);
    rt_settle(&rt);
    assert_int_equal(late_result, WEIR_ECLOSED);
    assert_int_equal(weir_channel_pending_bytes(rt.tc.channel), 0);
    rt_close(&rt);
}

TEST(remote_handler, completes_the_promise_of_a_removal_when_it_is_freed)
{
    struct remote_test rt;
    weir_promise *done;

    rt_open(&rt);
    event_log_clear(&rt.tc.events);
    done = tc_promise(&rt.tc, "done");
    assert_int_equal(weir_pipeline_remove(rt.tc.pipeline, "e", done), 0);
    assert_false(weir_promise_is_done(done));
    rt_settle(&rt);
    assert_events(&rt.tc.events, "e.removed e.deinit done=ok");
    weir_promise_release(done);
    rt_close(&rt);
}

/* Bytes in mailboxes count against the current marks. */
TEST(remote_handler, resumes_reading_when_the_marks_are_raised)
{
    struct remote_test rt;

    rt_open_with(&rt, WEIR_CHANNEL_OPTIONS(.low_mark = 1, .high_mark = WEIR__OUTBOUND_COST + 1));
    (void)tc_receive(&rt.tc, "1");
    (void)tc_receive(&rt.tc, "2");
    assert_false(rt.tc.wire->reads);
    assert_int_equal(weir_channel_set_options(
                         rt.tc.channel, WEIR_CHANNEL_OPTIONS(.low_mark = 1000, .high_mark = 2000)),
                     0);
    rt_settle(&rt);
    assert_true(rt.tc.wire->reads);
    rt_close(&rt);
}

/* Also if the write was refused on its way to a remote handler. */
TEST(remote_handler, reports_a_write_beyond_the_cap_without_a_promise)
{
    struct remote_test rt;

    rt_open_with(&rt, WEIR_CHANNEL_OPTIONS(.write_cap = 10, .keep_open_on_error = true));
    log_capture_start();
    event_log_clear(&rt.tc.events);
    tc_write(&rt.tc, "x", NULL);
    rt_settle(&rt);
    assert_int_equal(event_log_count(&rt.tc.events, "a.error(WEIR_EFULL)"), 1);
    rt_close(&rt);
}

/* ---- replaced before the registration ---- */

static void replace_early(struct remote_test *rt, const char *old, const char *name,
                          weir_group *group)
{
    struct event_recorder options = {.events = &rt->tc.events};

    strncpy(options.name, name, sizeof(options.name) - 1);
    assert_int_equal(weir_pipeline_replace(rt->tc.pipeline, old,
                                           WEIR_PLACE(.name = name, .group = group),
                                           &event_recorder, &options),
                     0);
}

static void assert_once(struct remote_test *rt, const char *text)
{
    assert_int_equal(event_log_count(&rt->tc.events, text), 1);
}

/* "b" replaces "a"; either may be remote. Each gets all its calls, once. */
static void replace_before_registration(bool first_is_remote, bool second_is_remote)
{
    struct remote_test rt;

    rt_create(&rt, &(const struct wire_options){.silent = true}, NULL);
    if (first_is_remote)
        rt_add(&rt, "a");
    else
        tc_add(&rt.tc, "a");
    replace_early(&rt, "a", "b", second_is_remote ? rt.group : NULL);
    tc_start(&rt.tc);
    rt_settle(&rt);
    assert_once(&rt, "a.added");
    assert_once(&rt, "a.removed");
    assert_once(&rt, "a.deinit");
    assert_once(&rt, "b.added");
    assert_once(&rt, "b.active");
    assert_int_equal(event_log_count(&rt.tc.events, "a.active"), 0);
    rt_close(&rt);
}

TEST(remote_handler, replaced_by_one_on_the_loop_before_the_registration_gets_all_calls)
{
    replace_before_registration(true, false);
}

TEST(remote_handler, that_replaces_one_on_the_loop_before_the_registration_lets_it_be_removed)
{
    replace_before_registration(false, true);
}

TEST(remote_handler, replaced_by_another_before_the_registration_gets_all_calls)
{
    replace_before_registration(true, true);
}
