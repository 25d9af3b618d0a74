/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of a channel with a border: all handlers get `inactive` and `unregistered` before they
 * are removed, from the tail on.
 */
#include "channel/border.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "support/channel/test_channel.h"
#include "support/executor/gate.h"
#include "support/executor/global_executor.h"
#include "support/executor/group.h"
#include "support/memory.h"

#define HANDLERS 4             /* "a" to "d" */
#define LAYOUTS (HANDLERS + 1) /* the number of handlers in front of the border */
#define NOBODY HANDLERS        /* removes itself */

struct spread {
    struct test_channel tc;
    weir_group *group; /* of one thread */
};

static const char *const names[HANDLERS] = {"a", "b", "c", "d"};

static void leave_in_inactive(weir_ctx *ctx)
{
    weir_ctx_remove(ctx);
    event_recorder.inactive(ctx);
}

static void add_handler(struct spread *spread, unsigned i, bool is_behind, bool leaves)
{
    static weir_handler leaver;
    struct event_recorder options = {.events = &spread->tc.events};

    leaver = event_recorder;
    leaver.inactive = leave_in_inactive;
    options.name[0] = names[i][0];
    assert_int_equal(
        weir_pipeline_add(spread->tc.pipeline,
                          WEIR_PLACE(.name = names[i], .group = is_behind ? spread->group : NULL),
                          leaves ? &leaver : &event_recorder, &options),
        0);
}

/* Runs the loop until the event is logged. The executors run freely. */
static void run_until(struct spread *spread, const char *word)
{
    while (event_log_count(&spread->tc.events, word) == 0) {
        weir__thread_yield();
        tc_run(&spread->tc);
    }
}

static void spread_open(struct spread *spread, unsigned layout, unsigned leaver)
{
    spread->group = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 1));
    tc_open_with(&spread->tc, &(const struct wire_options){.silent = true}, NULL);
    for (unsigned i = 0; i < HANDLERS; i++)
        add_handler(spread, i, i >= layout, i == leaver);
    tc_start(&spread->tc);
    run_until(spread, "d.active");
}

static void end_its_group(struct spread *spread)
{
    if (spread->group != NULL)
        end_group(spread->group);
    spread->group = NULL;
}

/* Releases a group that was shut down without a timeout: its threads may still be running. */
static void release_group(weir_group *group)
{
    (void)weir_group_await_termination(group, TEST_TIMEOUT_NS);
    weir_group_release(group);
}

static void spread_close(struct spread *spread)
{
    end_its_group(spread);
    global_executor_stop();
    tc_close(&spread->tc);
}

static const char *find(struct spread *spread, unsigned handler, const char *word)
{
    char text[32];

    (void)snprintf(text, sizeof(text), "%s.%s", names[handler], word);
    assert_int_equal(event_log_count(&spread->tc.events, text), 1);
    return strstr(spread->tc.events.text, text);
}

/* All handlers got both events, once, before the first was removed. */
static void assert_ended(struct spread *spread)
{
    const char *last_removed = find(spread, HANDLERS - 1, "removed");

    for (unsigned i = 0; i < HANDLERS; i++) {
        assert_true(find(spread, i, "inactive") < find(spread, i, "unregistered"));
        assert_true(find(spread, i, "unregistered") < last_removed);
        if (i > 0) {
            assert_true(find(spread, i - 1, "inactive") < find(spread, i, "inactive"));
            assert_true(find(spread, i - 1, "unregistered") < find(spread, i, "unregistered"));
            assert_true(find(spread, i, "removed") < find(spread, i - 1, "removed"));
        }
    }
}

/* ---- all layouts ---- */

TEST(border_end, reaches_each_handler_before_any_is_removed)
{
    struct spread spread;

    for (unsigned layout = 0; layout < LAYOUTS; layout++) {
        spread_open(&spread, layout, NOBODY);
        weir_channel_abort(spread.tc.channel, NULL);
        run_until(&spread, "a.deinit");
        assert_ended(&spread);
        spread_close(&spread);
    }
}

TEST(border_end, reaches_each_handler_whose_executor_has_ended)
{
    struct spread spread;

    for (unsigned layout = 0; layout < LAYOUTS; layout++) {
        spread_open(&spread, layout, NOBODY);
        end_its_group(&spread);
        weir_channel_abort(spread.tc.channel, NULL);
        run_until(&spread, "a.deinit");
        assert_ended(&spread);
        spread_close(&spread);
    }
}

/* Events in the inbox are delivered although the executor cancels its tasks. */
TEST(border_end, reaches_each_handler_while_an_executor_ends)
{
    struct spread spread;

    for (unsigned layout = 0; layout < LAYOUTS; layout++) {
        struct gate gate = {{0}, {0}};

        spread_open(&spread, layout, NOBODY);
        gate_hold(&gate, weir_group_at(spread.group, 0));
        weir_channel_abort(spread.tc.channel, NULL);
        tc_run(&spread.tc);
        assert_int_equal(weir_group_shutdown(spread.group, 0, 0), 0);
        gate_open(&gate);
        run_until(&spread, "a.deinit");
        assert_ended(&spread);
        release_group(spread.group);
        spread.group = NULL;
        spread_close(&spread);
    }
}

/* ---- handlers that remove themselves ---- */

/* The others got all events; `leaver` got those before its removal. */
static void assert_ended_without(struct spread *spread, unsigned leaver)
{
    for (unsigned i = 0; i < HANDLERS; i++) {
        (void)find(spread, i, "inactive");
        (void)find(spread, i, "removed");
        (void)find(spread, i, "deinit");
        if (i == leaver)
            continue;
        assert_true(find(spread, i, "inactive") < find(spread, i, "unregistered"));
        assert_true(find(spread, i, "unregistered") < find(spread, i, "removed"));
    }
}

static bool all_are_freed(struct spread *spread)
{
    unsigned gone = 0;

    for (unsigned i = 0; i < HANDLERS; i++) {
        char text[] = {names[i][0], '.', 'd', 'e', 'i', 'n', 'i', 't', '\0'};

        gone += event_log_count(&spread->tc.events, text);
    }
    return gone == HANDLERS;
}

TEST(border_end, reaches_the_others_when_a_handler_removes_itself)
{
    struct spread spread;

    for (unsigned i = 0; i < LAYOUTS * HANDLERS; i++) {
        spread_open(&spread, i / HANDLERS, i % HANDLERS);
        weir_channel_abort(spread.tc.channel, NULL);
        while (!all_are_freed(&spread)) {
            weir__thread_yield();
            tc_run(&spread.tc);
        }
        assert_ended_without(&spread, i % HANDLERS);
        spread_close(&spread);
    }
}

/* ---- without memory ---- */

/* The error may be lost, the last events are not. */
TEST(border_end, reaches_each_handler_without_memory)
{
    struct spread spread;
    bool failed = true;

    for (unsigned n = 1; failed; n++) {
        spread_open(&spread, 2, NOBODY);
        test_memory_fail_at(n);
        weir_pipeline_fire_error(spread.tc.pipeline, -EPIPE, "a sentence that has to be copied");
        weir_channel_abort(spread.tc.channel, NULL);
        run_until(&spread, "a.deinit");
        failed = test_memory_failed();
        test_memory_fail_at(0);
        assert_ended(&spread);
        spread_close(&spread);
    }
}

/* ---- the loop's end ---- */

/* The loop is shut down while the last events wait for a handler behind the border. */
TEST(border_end, reaches_each_handler_while_the_loop_ends)
{
    weir_group *loops = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 1)),
               *group = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 1));
    struct spread spread = {.group = group};
    struct gate gate = {{0}, {0}};
    struct test_channel *tc = &spread.tc;

    event_log_open(&tc->events);
    assert_int_equal(wire_create(&tc->events, &(const struct wire_options){.silent = true}, NULL,
                                 NULL, &tc->channel),
                     0);
    tc->pipeline = weir_channel_pipeline(tc->channel);
    for (unsigned i = 0; i < HANDLERS; i++)
        add_handler(&spread, i, i >= 2, false);
    weir_channel_register(tc->channel, weir_group_at(loops, 0), NULL);
    while (event_log_count(&tc->events, "d.active") == 0)
        weir__thread_yield();
    gate_hold(&gate, weir_group_at(group, 0));
    weir_channel_abort(tc->channel, NULL);
    assert_int_equal(weir_channel_await_closed(tc->channel, TEST_TIMEOUT_NS), 0);
    weir_channel_release(tc->channel);
    assert_int_equal(weir_group_shutdown(loops, 0, 0), 0);
    gate_open(&gate);
    while (event_log_count(&tc->events, "a.deinit") == 0)
        weir__thread_yield();
    release_group(loops);
    end_group(group);
    global_executor_stop();
    assert_ended(&spread);
    event_log_close(&tc->events);
}
