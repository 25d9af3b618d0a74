/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handlers on another executor: those behind the border of a pipeline.
 */
#include "channel/border.h"

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
 * A test channel with "a" on the loop, and "e" and "z" behind a border, on a group of one thread.
 * The thread waits at a gate while the loop runs, so that the order of events is fixed: the loop,
 * the thread, the loop, and so on.
 */
struct border_test {
    struct test_channel tc;
    weir_group *group;
    struct gate gate;
};

static weir_executor *executor_of(struct border_test *rt)
{
    return weir_group_at(rt->group, 0);
}

static void nothing(void *arg)
{
    (void)arg;
}

static void rt_hold(struct border_test *rt)
{
    rt->gate = (struct gate){{0}, {0}};
    gate_hold(&rt->gate, executor_of(rt));
}

/* Runs the thread and the loop in turn until no event is on its way. */
static void rt_settle(struct border_test *rt)
{
    for (int i = 0; i < 6; i++) {
        gate_open(&rt->gate);
        run_on_executor(executor_of(rt), nothing, NULL);
        rt_hold(rt);
        tc_run(&rt->tc);
    }
}

static void rt_add(struct border_test *rt, const char *name)
{
    struct event_recorder options = {.events = &rt->tc.events};

    strncpy(options.name, name, sizeof(options.name) - 1);
    assert_int_equal(weir_pipeline_add(rt->tc.pipeline,
                                       WEIR_PLACE(.name = name, .group = rt->group),
                                       &event_recorder, &options),
                     0);
}

static void rt_create(struct border_test *rt, const struct wire_options *wire,
                      const weir_channel_options *options)
{
    rt->group = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 1));
    rt_hold(rt);
    tc_open_with(&rt->tc, wire, options);
}

static void rt_open_with(struct border_test *rt, const weir_channel_options *options)
{
    rt_create(rt, NULL, options);
    tc_add(&rt->tc, "a");
    rt_add(rt, "e");
    tc_add(&rt->tc, "z");
    tc_start(&rt->tc);
    rt_settle(rt);
}

static void rt_open(struct border_test *rt)
{
    rt_open_with(rt, NULL);
}

static void rt_close(struct border_test *rt)
{
    rt->tc.wire->options.slow_close = false;
    weir_channel_abort(rt->tc.channel, NULL);
    rt_settle(rt);
    tc_close(&rt->tc);
    gate_open(&rt->gate);
    end_group(rt->group);
}

TEST(border, passes_the_events_of_a_channel_in_order)
{
    struct border_test rt;

    rt_open(&rt);
    assert_events(&rt.tc.events,
                  "ATTACH a.added a.registered a.active e.added z.added e.registered z.registered "
                  "e.active z.active z.request_read e.request_read a.request_read READ");
    rt_close(&rt);
}

TEST(border, keeps_the_order_of_what_is_read_and_written)
{
    struct border_test rt;
    weir_promise *done;

    rt_open(&rt);
    event_log_clear(&rt.tc.events);
    (void)tc_receive(&rt.tc, "1");
    (void)tc_receive(&rt.tc, "2");
    weir__channel_read_complete(rt.tc.channel);
    rt_settle(&rt);
    assert_events(&rt.tc.events,
                  "a.read(1) a.read(2) a.read_complete e.read(1) z.read(1) e.read(2) z.read(2) "
                  "e.read_complete z.read_complete z.request_read e.request_read "
                  "a.request_read");

    done = tc_promise(&rt.tc, "done");
    weir_channel_write(rt.tc.channel, text_msg("x"), NULL);
    weir_channel_write_and_flush(rt.tc.channel, text_msg("y"), done);
    assert_int_equal(weir_channel_pending_bytes(rt.tc.channel), 2 + 2 * WEIR__OUTBOUND_COST);
    rt_settle(&rt);
    assert_events(&rt.tc.events, "z.write(x) e.write(x) z.write(y) e.write(y) z.flush e.flush "
                                 "a.write(x) a.write(y) a.flush FLUSH done=ok");
    assert_int_equal(weir_channel_pending_bytes(rt.tc.channel), 0);
    assert_sent(&rt.tc, "xy");
    weir_promise_release(done);
    rt_close(&rt);
}

TEST(border, passes_a_half_closure_behind_writes)
{
    struct border_test rt;
    weir_promise *done;

    rt_open(&rt);
    event_log_clear(&rt.tc.events);
    done = tc_promise(&rt.tc, "done");
    weir_channel_write(rt.tc.channel, text_msg("x"), NULL);
    weir_channel_shutdown_output(rt.tc.channel, done);
    rt_settle(&rt);
    assert_events(&rt.tc.events,
                  "z.write(x) e.write(x) z.shutdown_output e.shutdown_output a.write(x) "
                  "a.shutdown_output FLUSH FIN done=ok a.event(output-closed) "
                  "e.event(output-closed) z.event(output-closed)");
    assert_sent(&rt.tc, "x");
    weir_promise_release(done);
    rt_close(&rt);
}

TEST(border, has_its_own_executor)
{
    struct border_test rt;
    weir_ctx *e;

    rt_open(&rt);
    e = weir_pipeline_find(rt.tc.pipeline, "e");
    assert_ptr_equal(weir_ctx_executor(e), executor_of(&rt));
    assert_ptr_equal(weir_ctx_executor(weir_pipeline_find(rt.tc.pipeline, "a")),
                     rt.tc.stepper.executor);
    rt_close(&rt);
}

TEST(border, passes_read_complete_behind_the_messages_before_it)
{
    struct border_test rt;

    rt_open(&rt);
    event_log_clear(&rt.tc.events);
    (void)tc_receive(&rt.tc, "1");
    (void)tc_receive(&rt.tc, "2");
    weir__channel_read_complete(rt.tc.channel);
    weir__channel_read_complete(rt.tc.channel);
    (void)tc_receive(&rt.tc, "3");
    weir__channel_read_complete(rt.tc.channel);
    event_log_clear(&rt.tc.events);
    rt_settle(&rt);
    assert_non_null(strstr(rt.tc.events.text, "e.read(1) z.read(1) e.read(2) z.read(2) "
                                              "e.read_complete z.read_complete z.request_read"));
    assert_non_null(strstr(rt.tc.events.text, "e.read(3) z.read(3) e.read_complete"));
    assert_int_equal(event_log_count(&rt.tc.events, "e.read_complete"), 2);
    rt_close(&rt);
}

/* "a" requests it, so "e" does not see the request. */
static void move_away(struct border_test *rt)
{
    weir_deregister(weir_pipeline_find(rt->tc.pipeline, "a"), NULL);
    tc_run(&rt->tc);
}

/* Deregisters the channel and registers it again while the handler's executor is busy. */
static void move_away_and_back(struct border_test *rt)
{
    move_away(rt);
    weir_channel_register(rt->tc.channel, rt->tc.stepper.executor, NULL);
    tc_run(&rt->tc);
}

/* Compares the events of "e" only. */
static void assert_events_of_e(struct border_test *rt, const char *words)
{
    char found[EVENT_LOG_SIZE] = "", *at = found, *rest = rt->tc.events.text, *word;

    while ((word = strtok_r(rest, " ", &rest)) != NULL)
        if (strncmp(word, "e.", 2) == 0)
            at += sprintf(at, "%s%s", at > found ? " " : "", word);
    event_log_clear(&rt->tc.events);
    assert_string_equal(found, words);
}

/* Two that cancel each other do not arrive, if no message is between them. */
TEST(border, passes_the_events_of_a_move_to_another_loop)
{
    struct border_test rt;

    rt_open(&rt);
    event_log_clear(&rt.tc.events);
    move_away(&rt);
    rt_settle(&rt);
    weir_channel_register(rt.tc.channel, rt.tc.stepper.executor, NULL);
    rt_settle(&rt);
    assert_events_of_e(&rt, "e.unregistered e.registered e.request_read");
    move_away_and_back(&rt);
    rt_settle(&rt);
    assert_events_of_e(&rt, "e.request_read");
    rt_close(&rt);
}

TEST(border, passes_no_unregistered_before_registered)
{
    struct border_test rt;

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

TEST(border, passes_messages_between_registered_and_unregistered)
{
    struct border_test rt;

    rt_open(&rt);
    event_log_clear(&rt.tc.events);
    move_away_and_back(&rt);
    (void)tc_receive(&rt.tc, "x");
    move_away(&rt);
    rt_settle(&rt);
    assert_events_of_e(&rt, "e.request_read e.read(x) e.unregistered");
    rt_close(&rt);
}

TEST(border, passes_events_errors_and_promises)
{
    struct border_test rt;
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

TEST(border, passes_addresses)
{
    struct border_test rt;
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

TEST(border, has_handlers_that_are_removed_from_the_tail_on)
{
    struct border_test rt;

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

/* ---- the position of the border ---- */

/* Runs the executor, and not the loop. */
static void rt_run_executor(struct border_test *rt)
{
    gate_open(&rt->gate);
    run_on_executor(executor_of(rt), nothing, NULL);
    rt_hold(rt);
}

static int add_at(struct border_test *rt, const char *name, weir_place place)
{
    struct event_recorder options = {.events = &rt->tc.events};

    strncpy(options.name, name, sizeof(options.name) - 1);
    place.size = sizeof(place);
    place.name = name;
    return weir_pipeline_add(rt->tc.pipeline, &place, &event_recorder, &options);
}

static void remove_named(struct border_test *rt, const char *name)
{
    assert_int_equal(weir_pipeline_remove(rt->tc.pipeline, name, NULL), 0);
}

/* `names` with a '|' where the border is: "a|ez". */
static void assert_border(struct border_test *rt, const char *names)
{
    char found[32] = "", dump[256], *rest = dump, *word;
    bool is_behind = false, is_remote;

    (void)weir_pipeline_dump(rt->tc.pipeline, dump, sizeof(dump));
    while ((word = strtok_r(rest, " <->", &rest)) != NULL) {
        if (strcmp(word, "head") == 0 || strcmp(word, "tail") == 0)
            continue;
        is_remote = weir__ctx_is_remote(weir_pipeline_find(rt->tc.pipeline, word));
        if (is_remote && !is_behind)
            strcat(found, "|");
        assert_true(is_remote || !is_behind);
        is_behind = is_remote;
        strcat(found, word);
    }
    assert_string_equal(found, names);
}

/* Opens a channel: `front` are handlers on the loop, `behind` on the executor. */
static void rt_open_named(struct border_test *rt, const char *front, const char *behind)
{
    rt_create(rt, &(const struct wire_options){.silent = true}, NULL);
    for (; *front != '\0'; front++)
        tc_add(&rt->tc, (const char[]){*front, '\0'});
    for (; *behind != '\0'; behind++)
        rt_add(rt, (const char[]){*behind, '\0'});
    tc_start(&rt->tc);
    rt_settle(rt);
    event_log_clear(&rt->tc.events);
}

TEST(border, has_handlers_behind_it_with_and_without_a_group)
{
    struct border_test rt;

    rt_open(&rt);
    assert_border(&rt, "a|ez");
    assert_int_equal(add_at(&rt, "f", (weir_place){.after = "e"}), 0);
    assert_int_equal(add_at(&rt, "y", (weir_place){.group = rt.group}), 0);
    assert_int_equal(add_at(&rt, "x", (weir_place){0}), 0);
    assert_border(&rt, "a|efzyx");
    rt_settle(&rt);
    event_log_clear(&rt.tc.events);
    (void)tc_receive(&rt.tc, "1");
    rt_settle(&rt);
    assert_events(&rt.tc.events, "a.read(1) e.read(1) f.read(1) z.read(1) y.read(1) x.read(1)");
    rt_close(&rt);
}

TEST(border, has_handlers_without_a_group_in_front)
{
    struct border_test rt;

    rt_open(&rt);
    assert_int_equal(add_at(&rt, "b", (weir_place){.before = "e"}), 0);
    assert_int_equal(add_at(&rt, "c", (weir_place){.first = true}), 0);
    assert_border(&rt, "cab|ez");
    assert_int_equal(add_at(&rt, "d", (weir_place){.before = "e", .group = rt.group}), 0);
    assert_int_equal(add_at(&rt, "n", (weir_place){.after = "b", .group = rt.group}), 0);
    assert_border(&rt, "cab|ndez");
    rt_settle(&rt);
    event_log_clear(&rt.tc.events);
    (void)tc_receive(&rt.tc, "1");
    rt_settle(&rt);
    assert_events(&rt.tc.events,
                  "c.read(1) a.read(1) b.read(1) n.read(1) d.read(1) e.read(1) z.read(1)");
    rt_close(&rt);
}

TEST(border, has_one_group)
{
    struct border_test rt;
    weir_group *other = make_group(WEIR_GROUP_OPTIONS(PLAIN, .name = "other", .threads = 1));
    weir_promise *done;

    rt_open(&rt);
    log_capture_start();
    assert_int_equal(add_at(&rt, "f", (weir_place){.group = other}), -EINVAL);
    assert_true(log_capture_last_contains("handler \"f\" cannot run on group \"other\""));
    assert_int_equal(add_at(&rt, "f", (weir_place){.first = true, .group = other}), -EINVAL);
    done = tc_promise(&rt.tc, "done");
    assert_int_equal(weir_pipeline_replace(rt.tc.pipeline, "z",
                                           WEIR_PLACE(.group = other, .done = done),
                                           &event_recorder, EVENT_RECORDER(&rt.tc.events, "f")),
                     -EINVAL);
    assert_int_equal(weir_promise_result(done), -EINVAL);
    weir_promise_release(done);
    assert_border(&rt, "a|ez");
    remove_named(&rt, "e");
    remove_named(&rt, "z");
    rt_settle(&rt);
    assert_int_equal(add_at(&rt, "f", (weir_place){.group = other}), 0);
    assert_border(&rt, "a|f");
    assert_ptr_equal(weir_ctx_executor(weir_pipeline_find(rt.tc.pipeline, "f")),
                     weir_group_at(other, 0));
    run_on_executor(weir_group_at(other, 0), nothing, NULL);
    rt.tc.wire->options.slow_close = false;
    weir_channel_abort(rt.tc.channel, NULL);
    for (int i = 0; i < 3; i++) {
        tc_run(&rt.tc);
        run_on_executor(weir_group_at(other, 0), nothing, NULL);
    }
    rt_close(&rt);
    end_group(other);
}

TEST(border, is_set_before_the_registration_wherever_a_group_is_given)
{
    struct border_test rt;

    rt_create(&rt, &(const struct wire_options){.silent = true}, NULL);
    tc_add(&rt.tc, "a");
    tc_add(&rt.tc, "z");
    assert_int_equal(add_at(&rt, "e", (weir_place){.before = "z", .group = rt.group}), 0);
    assert_border(&rt, "a|ez");
    tc_start(&rt.tc);
    rt_settle(&rt);
    assert_events(&rt.tc.events, "a.added a.registered a.active e.added z.added e.registered "
                                 "z.registered e.active z.active z.request_read e.request_read "
                                 "a.request_read");
    rt_close(&rt);
}

/* "b" crosses without "a", which it has replaced. */
TEST(border, is_set_in_front_of_a_handler_that_has_replaced_another)
{
    struct border_test rt;

    rt_create(&rt, &(const struct wire_options){.silent = true}, NULL);
    tc_add(&rt.tc, "a");
    assert_int_equal(weir_pipeline_replace(rt.tc.pipeline, "a", WEIR_PLACE(.name = "b"),
                                           &event_recorder, EVENT_RECORDER(&rt.tc.events, "b")),
                     0);
    assert_int_equal(add_at(&rt, "e", (weir_place){.before = "b", .group = rt.group}), 0);
    assert_border(&rt, "|eb");
    tc_start(&rt.tc);
    rt_settle(&rt);
    assert_int_equal(event_log_count(&rt.tc.events, "a.removed"), 1);
    assert_int_equal(event_log_count(&rt.tc.events, "a.deinit"), 1);
    assert_int_equal(event_log_count(&rt.tc.events, "a.active"), 0);
    assert_int_equal(event_log_count(&rt.tc.events, "b.active"), 1);
    rt_close(&rt);
}

static int add_three(weir_channel *channel, void *user_data)
{
    struct border_test *rt = user_data;

    assert_ptr_equal(channel, rt->tc.channel);
    tc_add(&rt->tc, "a");
    rt_add(rt, "e");
    tc_add(&rt->tc, "f");
    return 0;
}

/* The initializer itself runs on the loop, also if its place is behind the border. */
TEST(border, is_set_by_an_initializer)
{
    struct border_test rt;

    for (int is_behind = 0; is_behind <= 1; is_behind++) {
        rt_create(&rt, &(const struct wire_options){.silent = true}, NULL);
        if (is_behind)
            rt_add(&rt, "d");
        assert_int_equal(weir_pipeline_add_initializer(rt.tc.pipeline, add_three, &rt), 0);
        tc_add(&rt.tc, "z");
        tc_start(&rt.tc);
        assert_border(&rt, is_behind ? "|daefz" : "a|efz");
        rt_settle(&rt);
        (void)tc_receive(&rt.tc, "1");
        rt_settle(&rt);
        assert_non_null(strstr(rt.tc.events.text, "a.read(1) e.read(1) f.read(1) z.read(1)"));
        rt_close(&rt);
    }
}

/* "z" runs on the loop until nothing of it is on the stack. */
TEST(border, moves_in_front_of_handlers_that_run)
{
    struct border_test rt;

    rt_open_named(&rt, "az", "");
    assert_int_equal(add_at(&rt, "e", (weir_place){.before = "z", .group = rt.group}), 0);
    (void)tc_receive(&rt.tc, "1");
    assert_border(&rt, "aez");
    tc_run(&rt.tc);
    assert_border(&rt, "a|ez");
    (void)tc_receive(&rt.tc, "2");
    rt_settle(&rt);
    assert_events(&rt.tc.events, "a.read(1) z.read(1) a.read(2) e.added e.read(2) z.read(2)");
    weir_channel_write_and_flush(rt.tc.channel, text_msg("x"), NULL);
    rt_settle(&rt);
    assert_non_null(strstr(rt.tc.events.text, "z.write(x) e.write(x) z.flush e.flush a.write(x)"));
    rt_close(&rt);
}

static void write_from_e(void *arg)
{
    weir_ctx *e = arg;

    weir_write(e, text_msg("2"), NULL);
    weir_flush(e);
    weir_write(e, text_msg("3"), NULL);
}

static void flush_from_e(void *arg)
{
    weir_flush(arg);
}

/*
 * "1" is on its way to the loop when "b" is to cross, "2" and "3" are held back: each passes "b"
 * once, and before what is written later. Reads pass "b" once, too.
 */
TEST(border, keeps_the_order_when_it_moves_towards_the_head)
{
    struct border_test rt;
    weir_ctx *e;

    rt_open_named(&rt, "ab", "e");
    e = weir_pipeline_find(rt.tc.pipeline, "e");
    (void)tc_receive(&rt.tc, "r");
    weir_channel_write(rt.tc.channel, text_msg("1"), NULL);
    rt_run_executor(&rt);
    assert_int_equal(add_at(&rt, "n", (weir_place){.before = "b", .group = rt.group}), 0);
    (void)tc_receive(&rt.tc, "s");
    tc_run(&rt.tc); /* asks for quiet */
    assert_border(&rt, "anb|e");
    gate_open(&rt.gate);
    run_on_executor(executor_of(&rt), nothing, NULL);
    run_on_executor(executor_of(&rt), write_from_e, e);
    rt_hold(&rt);
    (void)tc_receive(&rt.tc, "t");
    tc_run(&rt.tc);
    assert_border(&rt, "a|nbe");
    (void)tc_receive(&rt.tc, "u");
    weir__channel_read_complete(rt.tc.channel); /* a flush sends after it */
    rt_settle(&rt);
    assert_border(&rt, "a|nbe");
    gate_open(&rt.gate);
    run_on_executor(executor_of(&rt), flush_from_e, e);
    rt_hold(&rt);
    rt_settle(&rt);
    for (const char *text = "rstu"; *text != '\0'; text++) {
        char word[] = "b.read(?)";

        word[7] = *text;
        assert_int_equal(event_log_count(&rt.tc.events, word), 1);
        word[0] = 'e';
        assert_int_equal(event_log_count(&rt.tc.events, word), 1);
    }
    assert_int_equal(event_log_count(&rt.tc.events, "n.read(t)"), 0);
    assert_int_equal(event_log_count(&rt.tc.events, "n.read(u)"), 1);
    assert_int_equal(event_log_count(&rt.tc.events, "b.write(1)"), 1);
    assert_int_equal(event_log_count(&rt.tc.events, "b.write(2)"), 1);
    assert_int_equal(event_log_count(&rt.tc.events, "b.write(3)"), 1);
    assert_non_null(strstr(rt.tc.events.text, "e.read(r)"));
    assert_sent(&rt.tc, "123");
    rt_close(&rt);
}

/* What was held goes on if the handler that was to cross has gone. */
TEST(border, passes_on_what_was_held_if_it_does_not_move)
{
    struct border_test rt;
    weir_ctx *e;

    rt_open_named(&rt, "ab", "e");
    e = weir_pipeline_find(rt.tc.pipeline, "e");
    assert_int_equal(add_at(&rt, "n", (weir_place){.before = "b", .group = rt.group}), 0);
    tc_run(&rt.tc);
    gate_open(&rt.gate);
    run_on_executor(executor_of(&rt), nothing, NULL);
    run_on_executor(executor_of(&rt), write_from_e, e);
    run_on_executor(executor_of(&rt), flush_from_e, e);
    rt_hold(&rt);
    remove_named(&rt, "n");
    rt_settle(&rt);
    assert_border(&rt, "ab|e");
    assert_sent(&rt.tc, "23");
    rt_close(&rt);
}

/* Messages that wait behind the border have passed "b": they go on before it crosses. */
TEST(border, lets_messages_pass_that_wait_when_it_moves)
{
    struct border_test rt;

    rt_open_named(&rt, "ab", "e");
    (void)tc_receive(&rt.tc, "1");
    (void)tc_receive(&rt.tc, "2");
    weir_channel_set_auto_read(rt.tc.channel, false);
    rt_settle(&rt);
    assert_int_equal(event_log_count(&rt.tc.events, "e.read(2)"), 0);
    assert_int_equal(add_at(&rt, "n", (weir_place){.before = "b", .group = rt.group}), 0);
    rt_settle(&rt);
    assert_border(&rt, "a|nbe");
    assert_int_equal(event_log_count(&rt.tc.events, "e.read(2)"), 1);
    assert_int_equal(event_log_count(&rt.tc.events, "b.read(2)"), 1);
    assert_int_equal(event_log_count(&rt.tc.events, "n.read(2)"), 0);
    rt_close(&rt);
}

/* A handler that stays on its loop is not moved. */
TEST(border, is_not_set_in_front_of_a_handler_that_stays_on_the_loop)
{
    static const weir_handler stayer = {.name = "s", .stays_on_loop = true};
    struct border_test rt;

    rt_open_named(&rt, "a", "");
    assert_int_equal(weir_pipeline_add_last(rt.tc.pipeline, &stayer, NULL), 0);
    assert_int_equal(add_at(&rt, "e", (weir_place){.before = "s", .group = rt.group}), -ENOTSUP);
    assert_border(&rt, "as");
    assert_int_equal(add_at(&rt, "e", (weir_place){.group = rt.group}), 0);
    assert_border(&rt, "as|e");
    rt_close(&rt);
}

/* ---- the end of the border ---- */

/* "1" is on its way to "e", "2" is behind its removal: nobody is there to get it. */
TEST(border, goes_away_with_its_last_handler)
{
    struct border_test rt;

    rt_open_named(&rt, "a", "e");
    (void)tc_receive(&rt.tc, "1");
    remove_named(&rt, "e");
    (void)tc_receive(&rt.tc, "2");
    rt_settle(&rt);
    assert_events(&rt.tc.events, "a.read(1) a.read(2) e.read(1) e.removed e.deinit");
    event_log_clear(&rt.tc.events);
    tc_add(&rt.tc, "z");
    assert_border(&rt, "az");
    (void)tc_receive(&rt.tc, "3");
    assert_events(&rt.tc.events, "z.added a.read(3) z.read(3)");
    rt_add(&rt, "e");
    assert_border(&rt, "az|e");
    (void)tc_receive(&rt.tc, "4");
    rt_settle(&rt);
    assert_int_equal(event_log_count(&rt.tc.events, "e.read(4)"), 1);
    rt_close(&rt);
}

/* What "e" writes in `removed` crosses the border, and passes handlers in front of it. */
static void write_last_words(weir_ctx *ctx)
{
    weir_write(ctx, text_msg("bye"), NULL);
    weir_flush(ctx);
    event_recorder.removed(ctx);
}

TEST(border, stays_until_both_directions_are_empty)
{
    static weir_handler last;
    struct border_test rt;

    last = event_recorder;
    last.removed = write_last_words;
    rt_open_named(&rt, "a", "");
    assert_int_equal(weir_pipeline_add(rt.tc.pipeline, WEIR_PLACE(.name = "e", .group = rt.group),
                                       &last, EVENT_RECORDER(&rt.tc.events, "e")),
                     0);
    rt_settle(&rt);
    remove_named(&rt, "e");
    rt_settle(&rt);
    assert_int_equal(event_log_count(&rt.tc.events, "a.write(bye)"), 1);
    assert_sent(&rt.tc, "bye");
    rt_close(&rt);
}

/* A handler that is added meanwhile runs behind it, and the next one as well. */
TEST(border, stays_for_a_handler_that_is_added_when_the_last_one_is_removed)
{
    struct border_test rt;

    rt_open_named(&rt, "a", "e");
    remove_named(&rt, "e");
    tc_run(&rt.tc);
    rt_run_executor(&rt);
    tc_run(&rt.tc); /* "e" is freed, and the border about to end */
    tc_add(&rt.tc, "z");
    assert_border(&rt, "a|z");
    rt_settle(&rt);
    assert_border(&rt, "a|z");
    (void)tc_receive(&rt.tc, "1");
    rt_settle(&rt);
    assert_int_equal(event_log_count(&rt.tc.events, "z.read(1)"), 1);
    remove_named(&rt, "z");
    rt_settle(&rt);
    tc_add(&rt.tc, "y");
    assert_border(&rt, "ay");
    rt_close(&rt);
}

/* The end of the border waits for a move that is under way, and the other way round. */
TEST(border, ends_or_moves_whichever_comes_first)
{
    struct border_test rt;

    for (int i = 0; i <= 1; i++) {
        rt_open_named(&rt, "ab", "e");
        if (i == 0)
            remove_named(&rt, "e");
        assert_int_equal(add_at(&rt, "n", (weir_place){.before = "b", .group = rt.group}), 0);
        if (i == 1) {
            tc_run(&rt.tc);
            remove_named(&rt, "e");
        }
        rt_settle(&rt);
        rt_settle(&rt);
        assert_border(&rt, "a|nb");
        weir_channel_write_and_flush(rt.tc.channel, text_msg("x"), NULL);
        (void)tc_receive(&rt.tc, "1");
        weir__channel_read_complete(rt.tc.channel);
        rt_settle(&rt);
        assert_int_equal(event_log_count(&rt.tc.events, "b.read(1)"), 1);
        assert_sent(&rt.tc, "x");
        rt_close(&rt);
    }
}

/* ---- changes behind the border ---- */

TEST(border, has_handlers_that_are_replaced_in_place)
{
    struct border_test rt;

    rt_open_named(&rt, "", "eg");
    assert_int_equal(add_at(&rt, "f", (weir_place){.after = "e"}), 0);
    assert_int_equal(weir_pipeline_replace(rt.tc.pipeline, "g", WEIR_PLACE(.name = "h"),
                                           &event_recorder, EVENT_RECORDER(&rt.tc.events, "h")),
                     0);
    assert_border(&rt, "|efh");
    (void)tc_receive(&rt.tc, "1");
    rt_settle(&rt);
    assert_events(&rt.tc.events,
                  "f.added h.added g.removed e.read(1) f.read(1) h.read(1) g.deinit");
    rt_close(&rt);
}

/* "e" and "f" are on their way out. */
TEST(border, is_in_front_of_handlers_that_are_being_removed)
{
    struct border_test rt;

    rt_open_named(&rt, "", "efg");
    remove_named(&rt, "e");
    remove_named(&rt, "f");
    assert_int_equal(add_at(&rt, "c", (weir_place){.before = "g"}), 0);
    assert_border(&rt, "c|g");
    (void)tc_receive(&rt.tc, "1");
    rt_settle(&rt);
    assert_events(&rt.tc.events,
                  "c.added c.read(1) e.removed f.removed g.read(1) e.deinit f.deinit");
    rt_close(&rt);
}

/* Adds "c" at each place, with one allocation after another failing. */
TEST(border, cannot_be_set_or_extended_without_memory)
{
    static const char *const fronts[] = {"a", "ab", "ab"}, *const behinds[] = {"", "e", ""};
    weir_place places[] = {{.after = "a"}, {.after = "e"}, {.before = "b"}};
    struct border_test rt;
    size_t count;
    int err;

    for (unsigned i = 0; i < 3; i++) {
        rt_open_named(&rt, fronts[i], behinds[i]);
        count = weir_pipeline_count(rt.tc.pipeline);
        places[i].group = rt.group;
        for (unsigned n = 1;; n++) {
            test_memory_fail_at(n);
            err = add_at(&rt, "c", places[i]);
            tc_run(&rt.tc);
            test_memory_fail_at(0);
            assert_true(err == 0 || err == -ENOMEM);
            assert_int_equal(weir_pipeline_count(rt.tc.pipeline), err == 0 ? count + 1 : count);
            if (err == 0)
                break;
        }
        (void)stepper_advance(&rt.tc.stepper, weir_seconds(1)); /* tries again to cross */
        rt_settle(&rt);
        event_log_clear(&rt.tc.events);
        (void)tc_receive(&rt.tc, "1");
        rt_settle(&rt);
        assert_int_equal(event_log_count(&rt.tc.events, "c.read(1)"), 1);
        rt_close(&rt);
    }
}

/* "m", between them, is removed with "1" on its way to it, and gets it. */
TEST(border, has_a_handler_whose_neighbour_is_removed)
{
    struct border_test rt;

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

TEST(border, has_handlers_that_call_each_other_directly)
{
    static weir_handler echo;
    struct border_test rt;

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

TEST(border, has_a_handler_that_removes_itself)
{
    static const weir_handler shy = {.name = "shy", .read = remove_self};
    struct border_test rt;

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

TEST(border, makes_both_calls_of_a_handler_removed_before_the_registration)
{
    struct border_test rt;

    rt_create(&rt, NULL, NULL);
    rt_add(&rt, "e");
    assert_int_equal(weir_pipeline_remove(rt.tc.pipeline, "e", NULL), 0);
    assert_int_equal(weir_pipeline_count(rt.tc.pipeline), 0);
    tc_start(&rt.tc);
    rt_settle(&rt);
    assert_events(&rt.tc.events, "ATTACH e.added e.removed e.deinit READ");
    rt_close(&rt);
}

TEST(border, of_a_channel_that_was_never_registered_is_freed)
{
    struct border_test rt;

    rt_create(&rt, NULL, NULL);
    rt_add(&rt, "e");
    rt_close(&rt);
}

/* ---- flow ---- */

TEST(border, pauses_reading_above_the_high_mark)
{
    struct border_test rt;

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
static void let_take(struct border_test *rt, uint32_t count)
{
    call_counter_add(&permits);
    assert_true(call_counter_await(&arrivals, count + 1));
    tc_run(&rt->tc);
}

/* Reading resumes below the low mark, not at it, even if it was exactly at it before. */
TEST(border, resumes_reading_below_the_low_mark)
{
    static const weir_handler taker = {.name = "taker", .read = take_when_let};
    weir_msg *sample = sized_msg(100);
    int64_t cost = weir__outbound_cost(sample);
    struct border_test rt;

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
static void rt_open_waiting(struct border_test *rt)
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

TEST(border, passes_the_end_of_the_input_behind_messages_that_wait)
{
    struct border_test rt;

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

/* What waits answers a request, but not that of auto-read: the channel reads on. */
TEST(border, reads_on_when_auto_read_is_switched_on_while_messages_wait)
{
    static const weir_handler doubler = {.name = "doubler", .read = read_twice};
    struct border_test rt;

    rt_create(&rt, NULL, NULL);
    assert_int_equal(weir_pipeline_add_last(rt.tc.pipeline, &doubler, NULL), 0);
    rt_add(&rt, "z");
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

/* It is on its way behind the messages when auto-read is switched off. */
TEST(border, drops_a_request_of_auto_read_that_comes_too_late)
{
    struct border_test rt;

    rt_open(&rt);
    (void)tc_receive(&rt.tc, "1");
    (void)tc_receive(&rt.tc, "2");
    weir__channel_read_complete(rt.tc.channel);
    weir_channel_set_auto_read(rt.tc.channel, false);
    rt_settle(&rt);
    assert_int_equal(event_log_count(&rt.tc.events, "e.read(1)"), 1);
    assert_int_equal(event_log_count(&rt.tc.events, "e.read(2)"), 0);
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
TEST(border, answers_a_request_that_auto_read_has_followed)
{
    static const weir_handler taker = {.name = "taker", .read = take};
    struct border_test rt;

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

TEST(border, counts_pending_bytes)
{
    struct border_test rt;

    rt_open(&rt);
    weir_ctx_add_pending_bytes(weir_pipeline_find(rt.tc.pipeline, "a"), 7);
    assert_int_equal(weir_channel_pending_bytes(rt.tc.channel), 7);
    rt_close(&rt);
}

/* ---- the end ---- */

TEST(border, works_after_its_executor_has_ended)
{
    struct border_test rt;

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

TEST(border, aborts_the_channel_without_memory_for_a_message)
{
    struct border_test rt;
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
TEST(border, has_no_timers_for_a_handler_that_is_being_removed)
{
    static weir_handler late;
    struct border_test rt;

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

TEST(border, completes_the_promise_of_a_removal_when_it_is_freed)
{
    struct border_test rt;
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

/* Bytes on the way count against the current marks. */
TEST(border, resumes_reading_when_the_marks_are_raised)
{
    struct border_test rt;

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

/* Also if the write was refused on its way over the border. */
TEST(border, reports_a_write_beyond_the_cap_without_a_promise)
{
    struct border_test rt;

    rt_open_with(&rt, WEIR_CHANNEL_OPTIONS(.write_cap = 10, .keep_open_on_error = true));
    log_capture_start();
    event_log_clear(&rt.tc.events);
    tc_write(&rt.tc, "x", NULL);
    rt_settle(&rt);
    assert_int_equal(event_log_count(&rt.tc.events, "a.error(WEIR_EFULL)"), 1);
    rt_close(&rt);
}

/* ---- replaced before the registration ---- */

static void replace_early(struct border_test *rt, const char *old, const char *name,
                          weir_group *group)
{
    struct event_recorder options = {.events = &rt->tc.events};

    strncpy(options.name, name, sizeof(options.name) - 1);
    assert_int_equal(weir_pipeline_replace(rt->tc.pipeline, old,
                                           WEIR_PLACE(.name = name, .group = group),
                                           &event_recorder, &options),
                     0);
}

static void assert_once(struct border_test *rt, const char *text)
{
    assert_int_equal(event_log_count(&rt->tc.events, text), 1);
}

/* "b" replaces "a"; either may be behind the border. Each gets all its calls, once. */
static void replace_before_registration(bool first_is_remote, bool second_is_remote)
{
    struct border_test rt;

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

TEST(border, has_a_handler_replaced_without_a_group_before_the_registration)
{
    replace_before_registration(true, false);
}

TEST(border, has_a_handler_that_replaces_one_on_the_loop_before_the_registration)
{
    replace_before_registration(false, true);
}

TEST(border, has_a_handler_replaced_by_another_before_the_registration)
{
    replace_before_registration(true, true);
}
