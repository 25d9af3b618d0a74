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
    struct rig rig;
    char *state;

    rig_open(&rig);
    assert_int_equal(weir_pipeline_add_last_as(rig.pipeline, "a name of its own", &handler, NULL),
                     0);
    state = weir_ctx_state(weir_pipeline_find_handler(rig.pipeline, &handler));
    for (size_t i = 0; i < size; i++)
        assert_int_equal(state[i], 0);
    if (size % 16 == 0)
        assert_int_equal((uintptr_t)state % 16, 0);
    assert_int_equal((uintptr_t)state % 8, 0);
    memset(state, 'x', size);
    assert_non_null(weir_pipeline_find(rig.pipeline, "a name of its own"));
    rig_close(&rig);
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
    struct rig rig;

    rig_open(&rig);
    was_given_a_state = true;
    assert_int_equal(weir_pipeline_add_last_as(rig.pipeline, "a name of its own", &stateless, NULL),
                     0);
    assert_false(was_given_a_state);
    assert_null(weir_ctx_state(weir_pipeline_find_handler(rig.pipeline, &stateless)));
    assert_non_null(weir_pipeline_find(rig.pipeline, "a name of its own"));
    rig_close(&rig);
}

/* ---- timers ---- */

struct clockwork {
    struct diary *diary;
    weir_timer short_timer;
    weir_timer long_timer;
};

static int clockwork_init(void *state, const void *options)
{
    struct clockwork *self = state;

    self->diary = *(struct diary *const *)options;
    return 0;
}

static void on_short(weir_ctx *ctx, weir_timer *timer)
{
    struct clockwork *self = weir_ctx_state(ctx);

    assert_ptr_equal(timer, &self->short_timer);
    diary_write(self->diary, "short");
}

static void on_long(weir_ctx *ctx, weir_timer *timer)
{
    struct clockwork *self = weir_ctx_state(ctx);

    assert_ptr_equal(timer, &self->long_timer);
    diary_write(self->diary, "long");
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

static void add_clockwork(struct rig *rig)
{
    struct diary *diary = &rig->diary;

    assert_int_equal(weir_pipeline_add_last(rig->pipeline, &clockwork, &diary), 0);
}

TEST(ctx, has_timers_that_run_on_its_executor)
{
    struct rig rig;

    rig_open_started(&rig, &(struct wire_options){.silent = true}, NULL);
    add_clockwork(&rig);
    (void)stepper_advance(&rig.stepper, weir_ms(1));
    assert_diary(&rig.diary, "short");
    (void)stepper_advance(&rig.stepper, weir_ms(1));
    assert_diary(&rig.diary, "long");
    rig_close(&rig);
}

TEST(ctx, has_timers_that_stop_before_it_is_removed)
{
    struct rig rig;

    rig_open_started(&rig, &(struct wire_options){.silent = true}, NULL);
    add_clockwork(&rig);
    add_clockwork(&rig);
    (void)weir_pipeline_remove(rig.pipeline, "clockwork", NULL);
    (void)stepper_advance(&rig.stepper, weir_ms(5));
    assert_diary(&rig.diary, "short long"); /* the second's */
    rig_close(&rig);
}

TEST(ctx, has_timers_that_stop_before_the_channel_leaves_its_loop)
{
    struct rig rig;

    rig_open_with(&rig, &(struct wire_options){.silent = true}, NULL);
    add_clockwork(&rig);
    rig_start(&rig);
    weir_channel_deregister(rig.channel, NULL);
    rig_run(&rig);
    (void)stepper_advance(&rig.stepper, weir_ms(5));
    assert_diary(&rig.diary, "");
    rig_start(&rig);
    (void)stepper_advance(&rig.stepper, weir_ms(5));
    assert_diary(&rig.diary, "short long");
    rig_close(&rig);
}

TEST(ctx, refuses_timers_of_others)
{
    struct rig rig;
    struct clockwork *first;
    weir_ctx *second;

    rig_open_started(&rig, &(struct wire_options){.silent = true}, NULL);
    add_clockwork(&rig);
    add_clockwork(&rig);
    first = weir_ctx_state(weir_pipeline_find(rig.pipeline, "clockwork"));
    second = weir_pipeline_find(rig.pipeline, "clockwork#2");
    assert_int_equal(weir_ctx_timer_start(second, &first->short_timer, 0, on_short), -EINVAL);
    assert_int_equal(weir_ctx_timer_start(second, &first->short_timer, 0, NULL), -EINVAL);
    rig_close(&rig);
}

static void never(weir_timer *timer)
{
    (void)timer;
    fail();
}

TEST(ctx, keeps_its_timers_from_those_who_would_start_them_otherwise)
{
    struct rig rig;
    struct clockwork *self;

    rig_open_started(&rig, &(struct wire_options){.silent = true}, NULL);
    add_clockwork(&rig);
    self = weir_ctx_state(weir_pipeline_find(rig.pipeline, "clockwork"));
    assert_int_equal(weir_timer_start(rig.stepper.executor, &self->short_timer, 0, never), -EBUSY);
    assert_int_equal(weir_timer_restart(&self->short_timer, weir_ms(3)), 0);
    (void)stepper_advance(&rig.stepper, weir_ms(5));
    assert_diary(&rig.diary, "long short");
    rig_close(&rig);
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
    struct rig rig;
    struct diary *diary = &rig.diary;

    late = clockwork;
    late.unregistered = clockwork_unregistered;
    rig_open_with(&rig, &(struct wire_options){.silent = true}, NULL);
    assert_int_equal(weir_pipeline_add_last(rig.pipeline, &late, &diary), 0);
    rig_start(&rig);
    weir_channel_deregister(rig.channel, NULL);
    rig_run(&rig);
    assert_int_equal(late_result, WEIR_ECLOSED);
    (void)stepper_advance(&rig.stepper, weir_ms(5));
    assert_diary(&rig.diary, "");
    rig_close(&rig);
}
