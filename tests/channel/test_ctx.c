/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a handler has of its own: state, timers.
 */
#include "channel/ctx.h"

#include <errno.h>
#include <stdalign.h>
#include <string.h>

#include <weir/error.h>

#include "support/channel/test_channel.h"

/* ---- state ---- */

static void assert_state(size_t size)
{
    weir_handler handler = {.name = "sized", .state_size = size};
    struct test_channel tc;
    char *state;

    tc_open(&tc);
    assert_int_equal(weir_pipeline_add_last_as(tc.pipeline, "a name of its own", &handler, NULL),
                     0);
    state = weir_ctx_state(weir_pipeline_find_handler(tc.pipeline, &handler));
    for (size_t i = 0; i < size; i++)
        assert_int_equal(state[i], 0);
    if (size % 16 == 0)
        assert_int_equal((uintptr_t)state % 16, 0);
    assert_int_equal((uintptr_t)state % 8, 0);
    memset(state, 'x', size);
    assert_non_null(weir_pipeline_find(tc.pipeline, "a name of its own"));
    tc_close(&tc);
}

TEST(ctx, has_a_state_that_is_zero_aligned_and_its_own)
{
    for (size_t size = 1; size < 70; size++)
        assert_state(size);
    assert_state(4096);
}

static bool was_given_a_state;

static int look_at_state(void *state, const void *options)
{
    (void)options;
    was_given_a_state = state != NULL;
    return 0;
}

TEST(ctx, of_a_handler_without_a_state_size_has_no_state)
{
    static const weir_handler stateless = {.name = "stateless", .init = look_at_state};
    struct test_channel tc;

    tc_open(&tc);
    was_given_a_state = true;
    assert_int_equal(weir_pipeline_add_last_as(tc.pipeline, "a name of its own", &stateless, NULL),
                     0);
    assert_false(was_given_a_state);
    assert_null(weir_ctx_state(weir_pipeline_find_handler(tc.pipeline, &stateless)));
    assert_non_null(weir_pipeline_find(tc.pipeline, "a name of its own"));
    tc_close(&tc);
}

/* ---- timers ---- */

struct clockwork {
    struct event_log *events;
    weir_timer short_timer;
    weir_timer long_timer;
};

static int clockwork_init(void *state, const void *options)
{
    struct clockwork *self = state;

    self->events = *(struct event_log *const *)options;
    return 0;
}

static void on_short(weir_ctx *ctx, weir_timer *timer)
{
    struct clockwork *self = weir_ctx_state(ctx);

    assert_ptr_equal(timer, &self->short_timer);
    event_log_write(self->events, "short");
}

static void on_long(weir_ctx *ctx, weir_timer *timer)
{
    struct clockwork *self = weir_ctx_state(ctx);

    assert_ptr_equal(timer, &self->long_timer);
    event_log_write(self->events, "long");
}

static void clockwork_start(weir_ctx *ctx)
{
    struct clockwork *self = weir_ctx_state(ctx);

    assert_int_equal(weir_ctx_timer_start(ctx, &self->short_timer, weir_ms(1), on_short), 0);
    assert_int_equal(weir_ctx_timer_start(ctx, &self->long_timer, weir_ms(2), on_long), 0);
}

static void clockwork_removed(weir_ctx *ctx)
{
    struct clockwork *self = weir_ctx_state(ctx);

    assert_false(weir_timer_is_running(&self->short_timer));
    assert_int_equal(weir_ctx_timer_start(ctx, &self->short_timer, 0, on_short), WEIR_ECLOSED);
}

static const weir_handler clockwork = {
    .name = "clockwork",
    .state_size = sizeof(struct clockwork),
    .init = clockwork_init,
    .added = clockwork_start,
    .removed = clockwork_removed,
    .registered = clockwork_start,
};

static void add_clockwork(struct test_channel *tc)
{
    struct event_log *events = &tc->events;

    assert_int_equal(weir_pipeline_add_last(tc->pipeline, &clockwork, &events), 0);
}

TEST(ctx, has_timers_that_run_on_its_executor)
{
    struct test_channel tc;

    tc_open_started(&tc, &(struct wire_options){.silent = true}, NULL);
    add_clockwork(&tc);
    (void)stepper_advance(&tc.stepper, weir_ms(1));
    assert_events(&tc.events, "short");
    (void)stepper_advance(&tc.stepper, weir_ms(1));
    assert_events(&tc.events, "long");
    tc_close(&tc);
}

TEST(ctx, has_timers_that_stop_before_it_is_removed)
{
    struct test_channel tc;

    tc_open_started(&tc, &(struct wire_options){.silent = true}, NULL);
    add_clockwork(&tc);
    add_clockwork(&tc);
    (void)weir_pipeline_remove(tc.pipeline, "clockwork", NULL);
    (void)stepper_advance(&tc.stepper, weir_ms(5));
    assert_events(&tc.events, "short long"); /* the second's */
    tc_close(&tc);
}

TEST(ctx, has_timers_that_stop_before_the_channel_leaves_its_loop)
{
    struct test_channel tc;

    tc_open_with(&tc, &(struct wire_options){.silent = true}, NULL);
    add_clockwork(&tc);
    tc_start(&tc);
    weir_channel_deregister(tc.channel, NULL);
    tc_run(&tc);
    (void)stepper_advance(&tc.stepper, weir_ms(5));
    assert_events(&tc.events, "");
    tc_start(&tc);
    (void)stepper_advance(&tc.stepper, weir_ms(5));
    assert_events(&tc.events, "short long");
    tc_close(&tc);
}

TEST(ctx, refuses_timers_of_others)
{
    struct test_channel tc;
    struct clockwork *first;
    weir_ctx *second;

    tc_open_started(&tc, &(struct wire_options){.silent = true}, NULL);
    add_clockwork(&tc);
    add_clockwork(&tc);
    first = weir_ctx_state(weir_pipeline_find(tc.pipeline, "clockwork"));
    second = weir_pipeline_find(tc.pipeline, "clockwork#2");
    assert_int_equal(weir_ctx_timer_start(second, &first->short_timer, 0, on_short), -EINVAL);
    assert_int_equal(weir_ctx_timer_start(second, &first->short_timer, 0, NULL), -EINVAL);
    tc_close(&tc);
}

static void never(weir_timer *timer)
{
    (void)timer;
    fail();
}

TEST(ctx, rejects_timers_of_other_contexts)
{
    struct test_channel tc;
    struct clockwork *self;

    tc_open_started(&tc, &(struct wire_options){.silent = true}, NULL);
    add_clockwork(&tc);
    self = weir_ctx_state(weir_pipeline_find(tc.pipeline, "clockwork"));
    assert_int_equal(weir_timer_start(tc.stepper.executor, &self->short_timer, 0, never), -EBUSY);
    assert_int_equal(weir_timer_restart(&self->short_timer, weir_ms(3)), 0);
    (void)stepper_advance(&tc.stepper, weir_ms(5));
    assert_events(&tc.events, "long short");
    tc_close(&tc);
}

static int late_result;

static void clockwork_unregistered(weir_ctx *ctx)
{
    struct clockwork *self = weir_ctx_state(ctx);

    late_result = weir_ctx_timer_start(ctx, &self->short_timer, 0, on_short);
}

/* It would run on a loop that is not the channel's any more. */
TEST(ctx, has_no_timers_while_the_channel_has_no_loop)
{
    static weir_handler late;
    struct test_channel tc;
    struct event_log *events = &tc.events;

    late = clockwork;
    late.unregistered = clockwork_unregistered;
    tc_open_with(&tc, &(struct wire_options){.silent = true}, NULL);
    assert_int_equal(weir_pipeline_add_last(tc.pipeline, &late, &events), 0);
    tc_start(&tc);
    weir_channel_deregister(tc.channel, NULL);
    tc_run(&tc);
    assert_int_equal(late_result, WEIR_ECLOSED);
    (void)stepper_advance(&tc.stepper, weir_ms(5));
    assert_events(&tc.events, "");
    tc_close(&tc);
}

/* ---- neighbours ---- */

static void pass_write(weir_ctx *ctx, weir_msg *msg, weir_promise *done)
{
    weir_write(ctx, msg, done);
}

TEST(ctx, knows_the_handler_that_its_writes_go_to)
{
    static const weir_handler reader = {.name = "reader"};
    static const weir_handler writer = {.name = "writer", .write = pass_write};
    struct test_channel tc;
    weir_ctx *first, *last;

    tc_open(&tc);
    assert_int_equal(weir_pipeline_add_last_as(tc.pipeline, "first", &writer, NULL), 0);
    assert_int_equal(weir_pipeline_add_last_as(tc.pipeline, "between", &reader, NULL), 0);
    assert_int_equal(weir_pipeline_add_last_as(tc.pipeline, "last", &reader, NULL), 0);
    tc_start(&tc);
    first = weir_pipeline_find(tc.pipeline, "first");
    last = weir_pipeline_find(tc.pipeline, "last");
    assert_ptr_equal(weir_ctx_next_writer(last), first);
    assert_null(weir_ctx_next_writer(first)); /* only the transport is left */
    tc_close(&tc);
}
