/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handlers that block are moved from the loop to another group.
 */
#include "channel/offload_blocking.h"

#include <errno.h>
#include <string.h>

#include <weir/error.h>

#include "channel/border.h"
#include "executor/group.h"
#include "support/channel/test_channel.h"
#include "support/executor/gate.h"
#include "support/executor/group.h"
#include "support/executor/log_capture.h"
#include "support/executor/run_on_thread.h"
#include "support/memory.h"

/* The state of "e", an event recorder that blocks. */
struct blocker {
    struct event_recorder recorder;
    weir_timer timers[2];
};

static int init_blocker(void *state, const void *options)
{
    ((struct blocker *)state)->recorder = *(const struct event_recorder *)options;
    return 0;
}

/* The table, known to block from its first use on. */
static const weir_handler *blocker(void)
{
    static weir_handler handler;

    if (handler.name == NULL) {
        handler = event_recorder;
        handler.name = "blocker";
        handler.state_size = sizeof(struct blocker);
        handler.init = init_blocker;
        weir__handler_offload(&handler, 4);
    }
    return &handler;
}

/*
 * A test channel with "e" between "a" and "z", which do not block. It gets the option when it is
 * open, so that "e" is on the loop first; then "z" moves with it.
 */
struct move_test {
    struct test_channel tc;
    weir_group *group;
    weir_ctx *e;
};

static weir_executor *executor_of(struct move_test *mt)
{
    return weir_group_at(mt->group, 0);
}

static void nothing(void *arg)
{
    (void)arg;
}

/* Runs the loop and the group in turn until no event is left. */
static void mt_settle(struct move_test *mt)
{
    for (int i = 0; i < 8; i++) {
        tc_run(&mt->tc);
        run_on_executor(executor_of(mt), nothing, NULL);
    }
}

/* Runs the loop until the event is logged, and clears the log. */
static void mt_await(struct move_test *mt, const char *word)
{
    while (event_log_count(&mt->tc.events, word) == 0) {
        weir__thread_yield();
        tc_run(&mt->tc);
    }
    event_log_clear(&mt->tc.events);
}

static void mt_add(struct move_test *mt, const char *name, const weir_handler *handler)
{
    struct event_recorder options = {.events = &mt->tc.events};

    strncpy(options.name, name, sizeof(options.name) - 1);
    assert_int_equal(weir_pipeline_add_last_as(mt->tc.pipeline, name, handler, &options), 0);
}

static weir_ctx *mt_find(struct move_test *mt, const char *name)
{
    return weir_pipeline_find(mt->tc.pipeline, name);
}

static void mt_open_with(struct move_test *mt, const struct wire_options *wire,
                         const weir_channel_options *options)
{
    log_capture_start();
    mt->group = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 1, .name = "aside"));
    tc_open_with(&mt->tc, wire, options);
    mt_add(mt, "a", &event_recorder);
    mt_add(mt, "e", blocker());
    mt_add(mt, "z", &event_recorder);
    mt->e = mt_find(mt, "e");
    tc_start(&mt->tc);
    run_on_executor(executor_of(mt), nothing, NULL); /* starts its thread */
    event_log_clear(&mt->tc.events);
}

static void mt_open(struct move_test *mt)
{
    mt_open_with(mt, &(const struct wire_options){.silent = true}, NULL);
}

/* Gives the channel the option: moves what can be moved. */
static void mt_set_option(struct move_test *mt)
{
    assert_int_equal(weir_channel_set_options(
                         mt->tc.channel, WEIR_CHANNEL_OPTIONS(.offload_when_blocking = mt->group)),
                     0);
    tc_run(&mt->tc);
}

static void mt_retry(struct move_test *mt)
{
    weir__channel_defer(mt->tc.channel, WEIR__DEFERRED_OFFLOAD);
    tc_run(&mt->tc);
}

static bool is_moved(const weir_ctx *ctx)
{
    return weir__ctx_is_remote(ctx);
}

static void mt_close(struct move_test *mt)
{
    weir_channel_abort(mt->tc.channel, NULL);
    mt_settle(mt);
    tc_close(&mt->tc);
    end_group(mt->group);
}

/* Each of these words was logged once, in this order; others may be between them. */
static void assert_order(struct move_test *mt, const char *words)
{
    char copy[256], *rest = copy, *word;
    const char *at = mt->tc.events.text;

    strncpy(copy, words, sizeof(copy) - 1);
    copy[sizeof(copy) - 1] = '\0';
    while ((word = strtok_r(rest, " ", &rest)) != NULL) {
        assert_int_equal(event_log_count(&mt->tc.events, word), 1);
        at = strstr(at, word);
        if (at == NULL)
            fail_msg("%s is not in order: %s", word, mt->tc.events.text);
    }
}

/* ---- the move ---- */

TEST(offload_blocking, moves_a_handler_that_does_not_notice)
{
    uint64_t before, after;
    struct move_test mt;
    void *state;

    mt_open(&mt);
    state = weir_ctx_state(mt.e);
    assert_ptr_equal(weir_ctx_executor(mt.e), mt.tc.stepper.executor);
    assert_true(weir__handler_offload_read(blocker(), &before));
    mt_set_option(&mt);
    mt_settle(&mt);
    assert_events(&mt.tc.events, "");
    assert_ptr_equal(mt_find(&mt, "e"), mt.e);
    assert_ptr_equal(weir_ctx_state(mt.e), state);
    assert_ptr_equal(weir_ctx_executor(mt.e), executor_of(&mt));
    assert_string_equal(weir_ctx_name(mt.e), "e");
    assert_int_equal(weir_pipeline_count(mt.tc.pipeline), 3);
    assert_true(weir__handler_offload_read(blocker(), &after));
    assert_int_equal(after, before + 1);
    assert_false(weir__handler_offload_read(&event_recorder, &after));
    assert_int_equal(after, 0);

    (void)tc_receive(&mt.tc, "1");
    weir_channel_write(mt.tc.channel, text_msg("x"), NULL);
    mt_settle(&mt);
    assert_order(&mt, "a.read(1) e.read(1) z.read(1)");
    assert_order(&mt, "z.write(x) e.write(x) a.write(x)");
    mt_close(&mt);
}

TEST(offload_blocking, keeps_the_order_of_a_read_and_its_end)
{
    struct move_test mt;

    mt_open(&mt);
    (void)tc_receive(&mt.tc, "1");
    mt_set_option(&mt);
    (void)tc_receive(&mt.tc, "2");
    weir__channel_read_complete(mt.tc.channel);
    mt_settle(&mt);
    assert_order(&mt, "a.read(1) e.read(1) z.read(1) a.read(2) e.read(2) z.read(2)");
    assert_order(&mt, "a.read(2) a.read_complete e.read_complete z.read_complete");
    assert_order(&mt, "e.read(2) e.read_complete");
    assert_order(&mt, "z.read(2) z.read_complete");
    mt_close(&mt);
}

/* Without auto-read: one message for each request, before the move and after it. */
TEST(offload_blocking, answers_each_request_with_one_message)
{
    struct move_test mt;

    mt_open_with(&mt, &(const struct wire_options){.silent = true},
                 WEIR_CHANNEL_OPTIONS(.read_on_demand = true));
    weir_channel_request_read(mt.tc.channel);
    assert_int_equal(weir_channel_set_options(
                         mt.tc.channel, WEIR_CHANNEL_OPTIONS(.read_on_demand = true,
                                                             .offload_when_blocking = mt.group)),
                     0);
    tc_run(&mt.tc);
    assert_true(is_moved(mt.e));
    mt_settle(&mt);
    for (unsigned i = 1; i <= 3; i++) {
        assert_true(mt.tc.wire->reads);
        (void)tc_receive(&mt.tc, "m");
        weir__channel_read_complete(mt.tc.channel);
        mt_settle(&mt);
        assert_int_equal(event_log_count(&mt.tc.events, "z.read(m)"), i);
        assert_false(mt.tc.wire->reads);
        weir_channel_request_read(mt.tc.channel);
        mt_settle(&mt);
    }
    mt_close(&mt);
}

static void switch_auto_read_on(void *arg, int status)
{
    (void)status;
    weir_channel_set_auto_read(arg, true);
}

/* Messages that were not requested when the channel closed are discarded, in two batches here; none
 * behind them passes. */
TEST(offload_blocking, leaves_no_gap_when_messages_are_discarded)
{
    struct gate gate = {{0}, {0}};
    struct move_test mt;

    mt_open(&mt);
    mt_set_option(&mt);
    mt_settle(&mt);
    gate_hold(&gate, executor_of(&mt));
    for (int i = 0; i < 100; i++)
        (void)tc_receive(&mt.tc, "m");
    weir_channel_set_auto_read(mt.tc.channel, false);
    weir_channel_abort(mt.tc.channel, NULL);
    tc_run(&mt.tc);
    assert_int_equal(weir_execute(executor_of(&mt), switch_auto_read_on, mt.tc.channel), 0);
    event_log_clear(&mt.tc.events);
    gate_open(&gate);
    mt_settle(&mt);
    assert_int_equal(event_log_count(&mt.tc.events, "e.read(m)"), 1);
    mt_close(&mt);
}

static void count_timer(weir_ctx *ctx, weir_timer *timer)
{
    struct blocker *self = weir_ctx_state(ctx);

    (void)timer;
    event_log_write(self->recorder.events, "fired-on-%s",
                    weir_executor_name(weir_executor_current()));
}

static void restart_second(void *arg)
{
    struct blocker *self = weir_ctx_state(arg);

    assert_int_equal(weir_timer_restart(&self->timers[1], weir_ms(1)), 0);
}

/* On a group with a clock of its own. */
TEST(offload_blocking, moves_timers_with_the_time_that_is_left)
{
    weir_manual_clock *clock;
    struct move_test mt;
    struct blocker *self;
    weir_group *plain;

    mt_open(&mt);
    plain = mt.group;
    assert_int_equal(weir_manual_clock_create(weir_seconds(77), &clock), 0);
    mt.group = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 1, .name = "aside",
                                             .clock = weir_manual_clock_clock(clock)));
    self = weir_ctx_state(mt.e);
    assert_int_equal(weir_ctx_timer_start(mt.e, &self->timers[0], weir_ms(500), count_timer), 0);
    assert_int_equal(weir_ctx_timer_start(mt.e, &self->timers[1], weir_ms(10), count_timer), 0);
    (void)stepper_advance(&mt.tc.stepper, weir_ms(200));
    assert_events(&mt.tc.events, "fired-on-manual");
    mt_set_option(&mt);
    mt_settle(&mt);
    assert_null(mt.tc.channel->timers);
    (void)stepper_advance(&mt.tc.stepper, weir_ms(1000));
    (void)weir_manual_clock_advance(clock, weir_ms(300) - 1);
    mt_settle(&mt);
    assert_events(&mt.tc.events, "");
    (void)weir_manual_clock_advance(clock, 1);
    mt_await(&mt, "fired-on-aside-1");

    run_on_executor(executor_of(&mt), restart_second, mt.e);
    (void)weir_manual_clock_advance(clock, weir_ms(1));
    mt_await(&mt, "fired-on-aside-1");
    run_on_executor(executor_of(&mt), restart_second, mt.e);
    mt_close(&mt); /* stops it */
    weir_manual_clock_release(clock);
    end_group(plain);
}

static void subtract_bytes(void *arg)
{
    weir_ctx_add_pending_bytes(arg, -60);
}

TEST(offload_blocking, moves_pending_bytes)
{
    struct move_test mt;

    mt_open(&mt);
    weir_ctx_add_pending_bytes(mt.e, 100);
    mt_set_option(&mt);
    assert_true(is_moved(mt.e));
    mt_settle(&mt);
    assert_int_equal(weir_channel_pending_bytes(mt.tc.channel), 100);
    run_on_executor(executor_of(&mt), subtract_bytes, mt.e);
    mt_settle(&mt);
    assert_int_equal(weir_channel_pending_bytes(mt.tc.channel), 40);
    assert_int_equal(weir_pipeline_remove(mt.tc.pipeline, "e", NULL), 0);
    mt_settle(&mt);
    assert_int_equal(weir_channel_pending_bytes(mt.tc.channel), 0);
    mt_close(&mt);
}

TEST(offload_blocking, removes_a_moved_handler_once)
{
    weir_promise *done;
    struct move_test mt;

    mt_open(&mt);
    mt_set_option(&mt);
    done = tc_promise(&mt.tc, "done");
    (void)tc_receive(&mt.tc, "1");
    assert_int_equal(weir_pipeline_remove(mt.tc.pipeline, "e", done), 0);
    assert_null(mt_find(&mt, "e"));
    mt_settle(&mt);
    assert_order(&mt, "a.read(1) e.read(1) z.read(1)");
    assert_order(&mt, "e.read(1) e.removed e.deinit done=ok");
    event_log_clear(&mt.tc.events);
    weir_promise_release(done);
    (void)tc_receive(&mt.tc, "2");
    mt_settle(&mt);
    assert_events(&mt.tc.events, "a.read(2) z.read(2)");
    mt_close(&mt);
}

TEST(offload_blocking, lets_a_moved_handler_be_replaced)
{
    struct move_test mt;

    mt_open(&mt);
    mt_set_option(&mt);
    mt_settle(&mt);
    assert_int_equal(weir_pipeline_replace(mt.tc.pipeline, "e", WEIR_PLACE(.name = "f"), blocker(),
                                           EVENT_RECORDER(&mt.tc.events, "f")),
                     0);
    mt_settle(&mt);
    assert_ptr_equal(weir_ctx_executor(mt_find(&mt, "f")), executor_of(&mt));
    (void)tc_receive(&mt.tc, "1");
    mt_settle(&mt);
    assert_events(&mt.tc.events, "f.added e.removed e.deinit a.read(1) f.read(1) z.read(1)");
    mt_close(&mt);
}

static void remove_itself(void *arg)
{
    weir_ctx_remove(arg);
}

/* The border goes away with the last handler behind it. */
TEST(offload_blocking, moves_one_handler_after_the_other)
{
    struct move_test mt;

    mt_open(&mt);
    assert_int_equal(weir_pipeline_remove(mt.tc.pipeline, "z", NULL), 0);
    for (unsigned i = 0; i < 5; i++) {
        mt_set_option(&mt);
        mt_settle(&mt);
        assert_true(is_moved(mt.e));
        run_on_executor(executor_of(&mt), remove_itself, mt.e);
        mt_settle(&mt);
        assert_null(mt_find(&mt, "e"));
        assert_int_equal(weir_channel_set_options(mt.tc.channel, NULL), 0);
        mt_add(&mt, "e", blocker());
        mt.e = mt_find(&mt, "e");
        tc_run(&mt.tc);
        assert_false(is_moved(mt.e));
    }
    mt_close(&mt);
}

TEST(offload_blocking, ends_with_the_channel_also_right_after_the_move)
{
    struct move_test mt;

    for (unsigned settles = 0; settles < 3; settles++) {
        mt_open(&mt);
        (void)tc_receive(&mt.tc, "1");
        mt_set_option(&mt);
        for (unsigned i = 0; i < settles; i++)
            mt_settle(&mt);
        event_log_clear(&mt.tc.events);
        weir_channel_abort(mt.tc.channel, NULL);
        mt_settle(&mt);
        mt_settle(&mt);
        assert_int_equal(event_log_count(&mt.tc.events, "e.inactive"), 1);
        assert_int_equal(event_log_count(&mt.tc.events, "e.unregistered"), 1);
        assert_int_equal(event_log_count(&mt.tc.events, "e.removed"), 1);
        assert_int_equal(event_log_count(&mt.tc.events, "e.deinit"), 1);
        mt_close(&mt);
    }
}

/* ---- several handlers ---- */

TEST(offload_blocking, moves_all_handlers_behind_the_first_that_blocks)
{
    struct move_test mt;

    mt_open(&mt);
    mt_add(&mt, "f", blocker());
    mt_add(&mt, "g", &event_recorder);
    event_log_clear(&mt.tc.events);
    mt_set_option(&mt);
    assert_false(is_moved(mt_find(&mt, "a")));
    assert_true(is_moved(mt_find(&mt, "z")));
    assert_true(is_moved(mt_find(&mt, "f")));
    assert_true(is_moved(mt_find(&mt, "g")));
    (void)tc_receive(&mt.tc, "1");
    weir_channel_write(mt.tc.channel, text_msg("x"), NULL);
    mt_settle(&mt);
    assert_order(&mt, "a.read(1) e.read(1) z.read(1) f.read(1) g.read(1)");
    assert_order(&mt, "g.write(x) f.write(x) z.write(x) e.write(x) a.write(x)");
    mt_close(&mt);
}

/* The border that the channel has moves in front of "e", with its own group. */
TEST(offload_blocking, moves_a_border_towards_the_head)
{
    weir_group *own = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 1, .name = "own"));
    struct gate gate = {{0}, {0}};
    struct move_test mt;

    mt_open(&mt);
    assert_int_equal(weir_pipeline_add(mt.tc.pipeline, WEIR_PLACE(.name = "f", .group = own),
                                       &event_recorder, EVENT_RECORDER(&mt.tc.events, "f")),
                     0);
    mt_await(&mt, "f.added");
    gate_hold(&gate, weir_group_at(own, 0));
    (void)tc_receive(&mt.tc, "1");
    weir_channel_write(mt.tc.channel, text_msg("x"), NULL);
    mt_set_option(&mt);
    assert_false(is_moved(mt.e)); /* the answer of the executor is awaited */
    (void)tc_receive(&mt.tc, "2");
    weir_channel_write(mt.tc.channel, text_msg("y"), NULL);
    gate_open(&gate);
    while (!is_moved(mt.e)) {
        weir__thread_yield();
        tc_run(&mt.tc);
    }
    (void)tc_receive(&mt.tc, "3");
    weir_channel_write(mt.tc.channel, text_msg("z"), NULL);
    while (event_log_count(&mt.tc.events, "f.read(3)") == 0 ||
           event_log_count(&mt.tc.events, "a.write(z)") == 0) {
        weir__thread_yield();
        tc_run(&mt.tc);
    }
    assert_ptr_equal(weir_ctx_executor(mt.e), weir_group_at(own, 0));
    assert_order(&mt, "e.read(1) z.read(1) f.read(1) f.read(2) f.read(3)");
    assert_order(&mt, "e.read(1) e.read(2) e.read(3)");
    assert_order(&mt, "f.write(x) z.write(x) e.write(x) a.write(x) a.write(y) a.write(z)");
    assert_order(&mt, "e.write(x) e.write(y) e.write(z)");
    weir_channel_abort(mt.tc.channel, NULL);
    mt_await(&mt, "a.deinit");
    mt_close(&mt);
    end_group(own);
}

/* ---- contexts that are not moved ---- */

static void *work(void *arg)
{
    gate_task(arg, 0);
    return NULL;
}

static void on_done(weir_ctx *ctx, int err, void *result, void *arg)
{
    struct blocker *self = weir_ctx_state(ctx);

    (void)err;
    (void)result;
    (void)arg;
    event_log_write(self->recorder.events, "back-on-%s",
                    weir_executor_name(weir_executor_current()));
}

TEST(offload_blocking, waits_for_offloaded_work)
{
    struct gate gate = {{0}, {0}};
    struct move_test mt;

    mt_open(&mt);
    assert_int_equal(weir_ctx_offload(mt.e, mt.group, work, on_done, &gate), 0);
    mt_set_option(&mt);
    assert_false(is_moved(mt.e));
    gate_open(&gate);
    mt_settle(&mt);
    assert_events(&mt.tc.events, "back-on-manual");
    mt_retry(&mt);
    assert_true(is_moved(mt.e));
    mt_close(&mt);
}

TEST(offload_blocking, waits_for_references)
{
    struct move_test mt;
    weir_ctx *ctx;

    mt_open(&mt);
    ctx = weir_ctx_retain(mt.e);
    mt_set_option(&mt);
    assert_false(is_moved(mt.e));
    weir_ctx_release(ctx);
    mt_retry(&mt);
    assert_true(is_moved(mt.e));
    mt_settle(&mt);

    ctx = weir_ctx_retain(mt.e); /* the handler's thread is still */
    assert_int_equal(weir_pipeline_remove(mt.tc.pipeline, "e", NULL), 0);
    mt_settle(&mt);
    assert_true(weir_ctx_is_removed(ctx));
    assert_string_equal(weir_ctx_name(ctx), "e");
    weir_ctx_release(ctx);
    mt_close(&mt);
}

TEST(offload_blocking, waits_while_the_input_is_paused)
{
    struct move_test mt;

    mt_open(&mt);
    assert_int_equal(weir_ctx_pause_input(mt.e), 0);
    mt_set_option(&mt);
    assert_false(is_moved(mt.e));
    weir_ctx_resume_input(mt.e);
    mt_retry(&mt);
    assert_true(is_moved(mt.e));
    mt_close(&mt);
}

TEST(offload_blocking, waits_for_the_promises_of_writes)
{
    struct move_test mt;

    mt_open(&mt);
    mt.tc.wire->room = 0;
    tc_write(&mt.tc, "x", "done");
    weir_channel_flush(mt.tc.channel);
    mt_set_option(&mt);
    assert_false(is_moved(mt.e));
    event_log_clear(&mt.tc.events);
    tc_make_room(&mt.tc, 1);
    assert_events(&mt.tc.events, "done=ok");
    mt.tc.wire->room = 0;
    tc_write(&mt.tc, "y", NULL); /* no promise: nothing waits for it */
    mt_retry(&mt);
    assert_true(is_moved(mt.e));
    mt_close(&mt);
}

TEST(offload_blocking, waits_for_a_connection_attempt)
{
    weir_address address;
    struct move_test mt;

    mt_open_with(&mt, &(const struct wire_options){.idle = true, .silent = true}, NULL);
    assert_int_equal(weir_address_parse("1.2.3.4:5", &address), 0);
    weir_channel_connect(mt.tc.channel, &address, NULL, NULL);
    mt_set_option(&mt);
    assert_false(is_moved(mt.e));
    weir__channel_connected(mt.tc.channel, 0);
    mt_retry(&mt);
    assert_true(is_moved(mt.e));
    mt_close(&mt);
}

TEST(offload_blocking, leaves_handlers_that_stay_and_those_that_are_removed)
{
    static weir_handler stays;
    struct move_test mt;
    weir_ctx *s;

    stays = event_recorder;
    stays.stays_on_loop = true;
    weir__handler_offload(&stays, 4);
    mt_open(&mt);
    mt_add(&mt, "s", &stays);
    s = mt_find(&mt, "s");
    assert_int_equal(weir_pipeline_remove(mt.tc.pipeline, "e", NULL), 0);
    assert_int_equal(weir_channel_set_options(
                         mt.tc.channel, WEIR_CHANNEL_OPTIONS(.offload_when_blocking = mt.group)),
                     0);
    weir__channel_offload(mt.tc.channel); /* before the sweep */
    assert_false(is_moved(mt.e));
    tc_run(&mt.tc);
    assert_false(is_moved(s));
    mt_close(&mt);
}

TEST(offload_blocking, leaves_a_handler_in_front_of_one_that_stays)
{
    static weir_handler stays, blocks;
    struct move_test mt;

    stays = blocks = event_recorder;
    stays.stays_on_loop = true;
    blocks.name = "blocks";
    weir__handler_offload(&blocks, 4);
    mt_open(&mt);
    assert_int_equal(weir_pipeline_remove(mt.tc.pipeline, "e", NULL), 0);
    mt_add(&mt, "f", &blocks);
    mt_add(&mt, "s", &stays);
    mt_set_option(&mt);
    assert_false(is_moved(mt_find(&mt, "f")));
    assert_log_contains("handler \"blocks\" blocked 4 times, but cannot be moved to group "
                        "\"aside\"");
    assert_int_equal(weir_pipeline_add(mt.tc.pipeline, WEIR_PLACE(.first = true, .name = "g"),
                                       &blocks, EVENT_RECORDER(&mt.tc.events, "g")),
                     0);
    assert_false(is_moved(mt_find(&mt, "g")));
    assert_int_equal(weir_pipeline_remove(mt.tc.pipeline, "s", NULL), 0);
    mt_retry(&mt);
    assert_true(is_moved(mt_find(&mt, "g")));
    assert_true(is_moved(mt_find(&mt, "f")));
    mt_close(&mt);
}

TEST(offload_blocking, leaves_a_closing_channel)
{
    struct move_test mt;

    mt_open(&mt);
    weir_channel_close(mt.tc.channel, NULL); /* waits for the peer */
    mt_set_option(&mt);
    assert_false(is_moved(mt.e));
    mt_close(&mt);
}

TEST(offload_blocking, leaves_the_handler_if_the_group_has_ended)
{
    weir_group *ended = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 1, .name = "ended"));
    struct move_test mt;

    assert_int_equal(weir_group_shutdown(ended, 0, 0), 0);
    mt_open(&mt);
    log_capture_start();
    assert_int_equal(weir_channel_set_options(mt.tc.channel,
                                              WEIR_CHANNEL_OPTIONS(.offload_when_blocking = ended)),
                     0);
    tc_run(&mt.tc);
    mt_retry(&mt);
    assert_false(is_moved(mt.e));
    assert_int_equal(log_capture_count(WEIR_LOG_WARN), 1);
    assert_log_contains("handler \"blocker\" blocked 4 times, but cannot be moved to group "
                        "\"ended\"");
    mt_add(&mt, "f", blocker());
    assert_false(weir__ctx_is_remote(mt_find(&mt, "f")));
    (void)tc_receive(&mt.tc, "1");
    assert_non_null(strstr(mt.tc.events.text, "a.read(1) e.read(1) z.read(1) f.read(1)"));
    mt_set_option(&mt);
    assert_true(is_moved(mt.e));
    mt_close(&mt);
    end_group(ended);
}

TEST(offload_blocking, leaves_the_handler_without_memory_and_tries_again)
{
    struct move_test mt;
    unsigned n = 0;
    bool has_failed;

    do {
        mt_open(&mt);
        assert_int_equal(
            weir_channel_set_options(mt.tc.channel,
                                     WEIR_CHANNEL_OPTIONS(.offload_when_blocking = mt.group)),
            0);
        test_memory_fail_at(++n);
        tc_run(&mt.tc);
        has_failed = test_memory_failed();
        test_memory_fail_at(0);
        assert_int_equal(is_moved(mt.e), !has_failed);
        (void)tc_receive(&mt.tc, "1");
        mt_settle(&mt);
        assert_int_equal(event_log_count(&mt.tc.events, "e.read(1)"), 1);
        mt_retry(&mt);
        assert_true(is_moved(mt.e));
        mt_close(&mt);
    } while (has_failed);
    assert_true(n > 2);
}

/* ---- options ---- */

TEST(offload_blocking, runs_handlers_that_are_added_later_on_the_group)
{
    struct move_test mt;

    mt_open(&mt);
    mt_set_option(&mt);
    event_log_clear(&mt.tc.events);
    mt_add(&mt, "f", blocker());
    assert_true(is_moved(mt_find(&mt, "f")));
    mt_settle(&mt);
    assert_ptr_equal(weir_ctx_executor(mt_find(&mt, "f")), executor_of(&mt));
    assert_int_equal(event_log_count(&mt.tc.events, "f.added"), 1);
    mt_close(&mt);
}

TEST(offload_blocking, logs_the_first_handler_that_is_added)
{
    static weir_handler handler;
    struct move_test mt;

    handler = event_recorder;
    handler.name = "later";
    mt_open(&mt);
    mt_set_option(&mt);
    log_capture_start();
    weir__handler_offload(&handler, 5);
    assert_int_equal(log_capture_count(WEIR_LOG_WARN), 0); /* no loop has a channel with it */
    mt_add(&mt, "f", &handler);
    mt_add(&mt, "g", &handler);
    assert_int_equal(log_capture_count(WEIR_LOG_WARN), 1);
    assert_log_contains("handler \"later\" blocked 5 times: runs on group \"aside\" in new "
                        "channels");
    mt_close(&mt);
}

TEST(offload_blocking, moves_handlers_of_a_channel_that_is_registered_later)
{
    struct move_test mt;

    mt.group = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 1));
    tc_open(&mt.tc);
    mt_add(&mt, "e", blocker());
    mt.e = mt_find(&mt, "e");
    assert_int_equal(weir_channel_set_options(
                         mt.tc.channel, WEIR_CHANNEL_OPTIONS(.offload_when_blocking = mt.group)),
                     0);
    tc_run(&mt.tc);
    assert_false(is_moved(mt.e));
    tc_start(&mt.tc);
    assert_true(is_moved(mt.e));
    mt_settle(&mt);
    assert_int_equal(event_log_count(&mt.tc.events, "e.added"), 1);
    assert_int_equal(event_log_count(&mt.tc.events, "e.active"), 1);
    mt_close(&mt);
}

/* A channel without a loop gets the option, and is registered again. */
TEST(offload_blocking, moves_handlers_of_a_channel_between_two_loops)
{
    struct move_test mt;

    mt_open(&mt);
    weir_channel_deregister(mt.tc.channel, NULL);
    tc_run(&mt.tc);
    mt_set_option(&mt);
    assert_false(is_moved(mt.e));
    weir_channel_register(mt.tc.channel, mt.tc.stepper.executor, NULL);
    tc_run(&mt.tc);
    assert_true(is_moved(mt.e));
    event_log_clear(&mt.tc.events);
    weir_channel_deregister(mt.tc.channel, NULL);
    mt_settle(&mt);
    weir_channel_register(mt.tc.channel, mt.tc.stepper.executor, NULL);
    (void)tc_receive(&mt.tc, "1");
    mt_settle(&mt);
    assert_int_equal(event_log_count(&mt.tc.events, "e.unregistered"), 1);
    assert_int_equal(event_log_count(&mt.tc.events, "e.registered"), 1);
    assert_int_equal(event_log_count(&mt.tc.events, "e.read(1)"), 1);
    mt_close(&mt);
}

static void close_there(void *arg)
{
    weir_close(arg, NULL);
}

/* The handler cannot know that the channel has no loop. */
TEST(offload_blocking, sends_the_rest_if_a_moved_handler_closes_between_two_loops)
{
    struct move_test mt;

    mt_open(&mt);
    mt_set_option(&mt);
    mt_settle(&mt);
    mt.tc.wire->room = 0;
    tc_write(&mt.tc, "x", "done");
    weir_channel_flush(mt.tc.channel);
    mt_settle(&mt);
    weir_channel_deregister(mt.tc.channel, NULL);
    mt_settle(&mt);
    run_on_executor(executor_of(&mt), close_there, mt.e);
    mt_settle(&mt);
    assert_true(weir_channel_is_open(mt.tc.channel));
    assert_int_equal(event_log_count(&mt.tc.events, "done=ok"), 0);
    mt.tc.wire->room = 1;
    weir_channel_register(mt.tc.channel, mt.tc.stepper.executor, NULL);
    mt_settle(&mt);
    assert_int_equal(event_log_count(&mt.tc.events, "done=ok"), 1);
    assert_false(weir_channel_is_open(mt.tc.channel));
    mt_close(&mt);
}

TEST(offload_blocking, aborts_between_two_loops_at_once)
{
    struct move_test mt;

    mt_open(&mt);
    mt_set_option(&mt);
    mt_settle(&mt);
    mt.tc.wire->room = 0;
    tc_write(&mt.tc, "x", "done");
    weir_channel_flush(mt.tc.channel);
    mt_settle(&mt);
    weir_channel_deregister(mt.tc.channel, NULL);
    mt_settle(&mt);
    run_on_executor(executor_of(&mt), close_there, mt.e);
    mt_settle(&mt);
    assert_true(weir_channel_is_open(mt.tc.channel));
    weir_channel_abort(mt.tc.channel, NULL);
    mt_settle(&mt);
    assert_false(weir_channel_is_open(mt.tc.channel));
    mt_close(&mt);
}

/* The options keep the group; threads that have read them may use it until the channel is freed. */
TEST(offload_blocking, keeps_the_group_of_the_options)
{
    weir_channel_options read;
    weir_group *other;
    struct move_test mt;

    mt_open(&mt);
    other = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 1, .name = "other"));
    assert_int_equal(weir_channel_set_options(mt.tc.channel,
                                              WEIR_CHANNEL_OPTIONS(.offload_when_blocking = other)),
                     0);
    assert_int_equal(weir_channel_set_options(mt.tc.channel,
                                              WEIR_CHANNEL_OPTIONS(.offload_when_blocking = other)),
                     0);
    weir_group_release(other);
    weir_channel_get_options(mt.tc.channel, &read);
    assert_ptr_equal(read.offload_when_blocking, other);
    assert_int_equal(weir_channel_set_options(mt.tc.channel, NULL), 0);
    assert_string_equal(weir__group_name(other), "other");
    weir_channel_get_options(mt.tc.channel, &read);
    assert_null(read.offload_when_blocking);
    tc_run(&mt.tc);
    assert_false(is_moved(mt.e));
    mt_close(&mt);
}

TEST(offload_blocking, rejects_a_group_with_a_thread_per_channel)
{
    struct test_channel tc;
    weir_group *group;

    assert_int_equal(weir_group_create(WEIR_GROUP_OPTIONS(.io = WEIR_IO_BLOCKING), &group), 0);
    tc_open(&tc);
    assert_options_rejected(
        weir_channel_set_options(tc.channel, WEIR_CHANNEL_OPTIONS(.offload_when_blocking = group)),
        "offload_when_blocking is a group with a thread per channel");
    tc_close(&tc);
    end_group(group);
}
