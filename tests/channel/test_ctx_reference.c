/* SPDX-License-Identifier: Apache-2.0 */
/*
 * References to contexts: weir_ctx_retain, weir_ctx_release and weir_ctx_is_removed, and the clock
 * that a handler reads.
 */
#include <stdlib.h>

#include <weir/loop.h>

#include "support/channel/test_channel.h"
#include "support/executor/call_counter.h"
#include "support/executor/global_executor.h"
#include "support/executor/group.h"
#include "support/executor/run_on_thread.h"
#include "support/litmus.h"

static weir_ctx *ctx_of(struct test_channel *tc)
{
    return weir_pipeline_find(tc->pipeline, "a");
}

TEST(ctx_reference, outlives_the_removal_and_does_not_delay_it)
{
    struct test_channel tc;
    weir_ctx *ctx;

    tc_open_started(&tc, NULL, NULL);
    ctx = weir_ctx_retain(ctx_of(&tc));
    assert_false(weir_ctx_is_removed(ctx));
    weir_ctx_remove(ctx);
    assert_true(weir_ctx_is_removed(ctx));
    tc_run(&tc);
    assert_events(&tc.events, "a.removed a.deinit");
    assert_true(weir_ctx_is_removed(ctx));
    assert_string_equal(weir_ctx_name(ctx), "a");
    assert_ptr_equal(weir_ctx_handler(ctx), &event_recorder);
    assert_ptr_equal(weir_ctx_channel(ctx), tc.channel);
    assert_ptr_equal(weir_ctx_pipeline(ctx), tc.pipeline);
    weir_ctx_release(ctx);
    weir_ctx_release(NULL);
    tc_close(&tc);
}

TEST(ctx_reference, may_be_retained_more_than_once)
{
    struct test_channel tc;
    weir_ctx *ctx;

    tc_open_started(&tc, NULL, NULL);
    ctx = weir_ctx_retain(weir_ctx_retain(ctx_of(&tc)));
    weir_ctx_release(ctx);
    assert_false(weir_ctx_is_removed(ctx));
    weir_ctx_remove(ctx);
    tc_run(&tc);
    assert_true(weir_ctx_is_removed(weir_ctx_retain(ctx)));
    weir_ctx_release(ctx);
    weir_ctx_release(ctx);
    tc_close(&tc);
}

TEST(ctx_reference, keeps_a_closed_channel_in_memory)
{
    struct test_channel tc;
    weir_ctx *ctx;

    tc_open_started(&tc, NULL, NULL);
    ctx = weir_ctx_retain(ctx_of(&tc));
    weir_channel_abort(tc.channel, NULL);
    tc_run(&tc);
    weir_channel_release(tc.channel);
    tc_run(&tc);
    assert_true(weir_ctx_is_removed(ctx));
    assert_int_equal(event_log_count(&tc.events, "DESTROY"), 0);
    assert_false(weir_channel_is_open(weir_ctx_channel(ctx)));
    weir_ctx_release(ctx);
    assert_int_equal(event_log_count(&tc.events, "DESTROY"), 1);
    stepper_close(&tc.stepper);
    event_log_close(&tc.events);
}

/* The channel was never registered: its handlers stay until it is freed. */
TEST(ctx_reference, of_a_channel_without_a_loop_is_not_removed)
{
    struct test_channel tc;
    weir_ctx *ctx;

    tc_open(&tc);
    tc_add(&tc, "a");
    ctx = weir_ctx_retain(ctx_of(&tc));
    weir_channel_abort(tc.channel, NULL);
    weir_channel_release(tc.channel);
    assert_false(weir_ctx_is_removed(ctx));
    weir_ctx_release(ctx);
    assert_int_equal(event_log_count(&tc.events, "DESTROY"), 1);
    stepper_close(&tc.stepper);
    event_log_close(&tc.events);
}

static void assert_removed(void *arg)
{
    assert_true(weir_ctx_is_removed(arg));
}

static void assert_not_removed(void *arg)
{
    assert_false(weir_ctx_is_removed(arg));
}

static void release(void *arg)
{
    weir_ctx_release(arg);
}

TEST(ctx_reference, can_be_asked_and_released_on_any_thread)
{
    struct test_channel tc;
    weir_ctx *ctx;

    tc_open_started(&tc, NULL, NULL);
    ctx = weir_ctx_retain(ctx_of(&tc));
    run_on_other_thread(assert_not_removed, ctx);
    weir_ctx_remove(ctx);
    run_on_other_thread(assert_removed, ctx);
    tc_run(&tc);
    run_on_other_thread(release, ctx);
    tc_close(&tc);
}

static _Atomic(weir_ctx *) remote;

static void retain_remote(weir_ctx *ctx)
{
    remote = weir_ctx_retain(ctx);
}

static void nothing(void *arg)
{
    (void)arg;
}

TEST(ctx_reference, of_a_handler_on_another_executor_outlives_its_removal)
{
    static const weir_handler handler = {.name = "remote", .added = retain_remote};
    weir_group *group = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 1));
    struct test_channel tc;

    tc_open(&tc);
    assert_int_equal(weir_pipeline_add(tc.pipeline, WEIR_PLACE(.group = group), &handler, NULL), 0);
    tc_start(&tc);
    run_on_executor(weir_group_at(group, 0), nothing, NULL);
    assert_false(weir_ctx_is_removed(remote));
    assert_int_equal(weir_pipeline_remove(tc.pipeline, "remote", NULL), 0);
    for (int i = 0; i < 4; i++) {
        run_on_executor(weir_group_at(group, 0), nothing, NULL);
        tc_run(&tc);
    }
    assert_int_equal(weir_pipeline_count(tc.pipeline), 0);
    assert_true(weir_ctx_is_removed(remote));
    assert_string_equal(weir_ctx_name(remote), "remote");
    weir_ctx_release(remote);
    tc_close(&tc);
    end_group(group);
}

/* ---- many threads ---- */

#define ROUNDS 200
#define REFERENCES 8
#define MAGIC 0x600d

struct state {
    int magic;
    int uses;
};

static weir_group *workers;
static struct call_counter released, deinitialized;
static _Atomic unsigned misused, used;

struct errand {
    weir_ctx *ctx;           /* retained */
    weir_executor *executor; /* the handler's */
    bool was_removed;
};

static void finish(struct errand *errand)
{
    weir_ctx_release(errand->ctx);
    free(errand);
    call_counter_add(&released);
}

/* On the handler's executor: its state may be used if it has not been removed. */
static void on_back(void *arg, int status)
{
    struct errand *errand = arg;
    struct state *state;

    if (status == 0 && !weir_ctx_is_removed(errand->ctx)) {
        state = weir_ctx_state(errand->ctx);
        state->uses++;
        if (state->magic != MAGIC || errand->was_removed)
            atomic_fetch_add(&misused, 1);
        atomic_fetch_add(&used, 1);
    }
    finish(errand);
}

/* On a worker: once removed, it stays removed. */
static void on_worker(void *arg, int status)
{
    struct errand *errand = arg;

    (void)status;
    for (int i = 0; i < 50; i++) {
        bool is_removed = weir_ctx_is_removed(errand->ctx);

        if (errand->was_removed && !is_removed)
            atomic_fetch_add(&misused, 1);
        errand->was_removed = is_removed;
        weir_ctx_release(weir_ctx_retain(errand->ctx));
    }
    if (weir_execute(errand->executor, on_back, errand) < 0)
        finish(errand);
}

static void send_errands(weir_ctx *ctx)
{
    ((struct state *)weir_ctx_state(ctx))->magic = MAGIC;
    for (int i = 0; i < REFERENCES; i++) {
        struct errand *errand = malloc(sizeof(*errand));

        *errand = (struct errand){weir_ctx_retain(ctx), weir_ctx_executor(ctx), false};
        if (weir_execute(weir_group_next(workers), on_worker, errand) < 0)
            finish(errand);
    }
}

static void deinit(void *state)
{
    ((struct state *)state)->magic = 0;
    call_counter_add(&deinitialized);
}

static void run_round(weir_group *loops, weir_group *group, struct event_log *events, int round)
{
    static const weir_handler handler = {.name = "sender",
                                         .state_size = sizeof(struct state),
                                         .deinit = deinit,
                                         .added = send_errands};
    weir_channel *channel;

    assert_int_equal(
        wire_create(events, &(struct wire_options){.silent = true}, NULL, NULL, &channel), 0);
    assert_int_equal(weir_pipeline_add(weir_channel_pipeline(channel), WEIR_PLACE(.group = group),
                                       &handler, NULL),
                     0);
    weir_channel_register(channel, weir_group_next(loops), NULL);
    if (round % 3 != 0)
        (void)weir_pipeline_remove(weir_channel_pipeline(channel), "sender", NULL);
    if (round % 3 == 2)
        assert_true(call_counter_await(&deinitialized, (uint32_t)round + 1));
    weir_channel_abort(channel, NULL);
    assert_int_equal(weir_channel_await_closed(channel, TEST_TIMEOUT_NS), 0);
    weir_channel_release(channel);
    assert_true(call_counter_await(&deinitialized, (uint32_t)round + 1));
}

static void run_rounds(bool is_remote)
{
    weir_group *loops = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 2));
    weir_group *others = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 1));
    static struct event_log events;

    workers = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 2));
    released = deinitialized = (struct call_counter){0};
    event_log_open(&events);
    for (int round = 0; round < ROUNDS; round++)
        run_round(loops, is_remote ? others : NULL, &events, round);
    assert_true(call_counter_await(&released, ROUNDS * REFERENCES));
    end_group(workers);
    end_group(loops);
    end_group(others);
    global_executor_stop();
    event_log_close(&events);
    assert_int_equal(atomic_load(&misused), 0);
}

TEST(ctx_reference, is_safe_while_a_handler_on_the_loop_is_removed)
{
    run_rounds(false);
}

TEST(ctx_reference, is_safe_while_a_handler_on_another_executor_is_removed)
{
    run_rounds(true);
}

/* ---- time ---- */

TEST(ctx_now, is_the_time_of_the_executors_clock)
{
    struct test_channel tc;
    int64_t before;

    tc_open(&tc);
    tc_add(&tc, "a");
    assert_int_equal(weir_ctx_now(ctx_of(&tc)), 0);
    tc_start(&tc);
    before = weir_ctx_now(ctx_of(&tc));
    assert_int_equal(before, weir_loop_now(tc.stepper.executor));
    (void)stepper_advance(&tc.stepper, weir_ms(5));
    assert_int_equal(weir_ctx_now(ctx_of(&tc)) - before, weir_ms(5));
    assert_int_equal(weir_ctx_turn_elapsed(ctx_of(&tc)), 0); /* not an event loop */
    tc_close(&tc);
}

/* ---- several threads on behalf of one holder ---- */

static void retain(void *ctx)
{
    weir_ctx_retain(ctx);
}

TEST(ctx_reference, of_one_holder_is_retained_by_two_threads)
{
    struct test_channel tc;
    weir_ctx *ctx;

    tc_open_started(&tc, NULL, NULL);
    ctx = weir_ctx_retain(ctx_of(&tc));
    litmus_references(retain, release, ctx);
    assert_int_equal(ctx->refs, 2); /* the pipeline's, and the test's */
    weir_ctx_release(ctx);
    assert_int_equal(ctx->refs, 1);
    tc_close(&tc);
}

static void read_and_release(void *arg)
{
    weir_ctx *ctx = arg;

    (void)strlen(weir_ctx_name(ctx)); /* reads the context */
    weir_ctx_release(ctx);
}

static void remove_and_free(void *arg)
{
    struct test_channel *tc = arg;

    assert_int_equal(weir_pipeline_remove(tc->pipeline, "a", NULL), 0);
    tc_run(tc);
}

/* Nothing but the count orders the two threads. */
TEST(ctx_reference, that_another_thread_released_is_not_used_after_the_context_is_freed)
{
    struct test_channel tc;

    tc_open_started(&tc, NULL, NULL);
    litmus_last_use(read_and_release, weir_ctx_retain(ctx_of(&tc)), remove_and_free, &tc);
    tc_close(&tc);
}
