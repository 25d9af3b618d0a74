/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Offloaded work, and how it returns.
 */
#include <errno.h>

#include <weir/error.h>

#include "support/channel/test_channel.h"
#include "support/executor/gate.h"
#include "support/executor/global_executor.h"
#include "support/executor/group.h"
#include "support/executor/run_on_thread.h"
#include "support/memory.h"

struct job {
    struct gate gate;
    weir_executor *worked_on;
    weir_executor *returned_on;
    weir_ctx *ctx;
    int err;
    void *result;
    struct call_counter done;
};

static void *work(void *arg)
{
    struct job *job = arg;

    job->worked_on = weir_executor_current();
    gate_task(&job->gate, 0);
    return &job->err;
}

static void done(weir_ctx *ctx, int err, void *result, void *arg)
{
    struct job *job = arg;

    job->returned_on = weir_executor_current();
    job->ctx = ctx;
    job->err = err;
    job->result = result;
    call_counter_add(&job->done);
}

static weir_ctx *ctx_of(struct test_channel *tc)
{
    return weir_pipeline_find(tc->pipeline, "a");
}

static void nothing(void *arg)
{
    (void)arg;
}

/* What the group has done is back on the loop. */
static void come_back(struct test_channel *tc, weir_group *group)
{
    run_on_executor(weir_group_at(group, 0), nothing, NULL);
    tc_run(tc);
}

/* Closes a channel with a handler on the group, which has finished with it when this returns. */
static void close_with(struct test_channel *tc, weir_group *group)
{
    weir_channel_abort(tc->channel, NULL);
    for (int i = 0; i < 3; i++) {
        tc_run(tc);
        run_on_executor(weir_group_at(group, 0), nothing, NULL);
    }
    tc_close(tc);
}

TEST(offload, runs_on_the_group_and_returns)
{
    weir_group *group = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 1));
    struct job job = {.err = 1};
    struct test_channel tc;

    tc_open_started(&tc, NULL, NULL);
    assert_int_equal(weir_ctx_offload(ctx_of(&tc), group, work, done, &job), 0);
    gate_open(&job.gate);
    come_back(&tc, group);
    assert_int_equal(atomic_load(&job.done.calls), 1);
    assert_ptr_equal(job.worked_on, weir_group_at(group, 0));
    assert_ptr_equal(job.returned_on, tc.stepper.executor);
    assert_ptr_equal(job.ctx, ctx_of(&tc));
    assert_int_equal(job.err, 0);
    assert_ptr_equal(job.result, &job.err);
    tc_close(&tc);
    end_group(group);
}

TEST(offload, to_an_executor_works_there_and_comes_back)
{
    weir_group *group = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 2));
    struct job job = {.err = 1};
    struct test_channel tc;

    tc_open_started(&tc, NULL, NULL);
    for (unsigned i = 0; i < 2; i++) {
        job = (struct job){.err = 1};
        assert_int_equal(
            weir_ctx_offload_to(ctx_of(&tc), weir_group_at(group, 1), work, done, &job), 0);
        gate_open(&job.gate);
        run_on_executor(weir_group_at(group, 1), nothing, NULL);
        tc_run(&tc);
        assert_int_equal(atomic_load(&job.done.calls), 1);
        assert_ptr_equal(job.worked_on, weir_group_at(group, 1));
        assert_ptr_equal(job.returned_on, tc.stepper.executor);
        assert_ptr_equal(job.ctx, ctx_of(&tc));
    }
    assert_int_equal(weir_ctx_offload_to(ctx_of(&tc), NULL, work, done, &job), -EINVAL);
    assert_int_equal(weir_ctx_offload_to(ctx_of(&tc), weir_group_at(group, 1), NULL, done, &job),
                     -EINVAL);
    assert_int_equal(weir_ctx_offload_to(ctx_of(&tc), weir_group_at(group, 1), work, NULL, &job),
                     -EINVAL);
    tc_close(&tc);
    end_group(group);
}

/* Its own state must stay valid until the work is back, that of other handlers need not. */
TEST(offload, of_one_handler_does_not_delay_another)
{
    weir_group *group = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 2));
    struct job first = {.err = 1}, second = {.err = 1};
    struct test_channel tc;

    tc_open_started(&tc, NULL, NULL);
    tc_add(&tc, "b");
    assert_int_equal(weir_ctx_offload_to(ctx_of(&tc), weir_group_at(group, 0), work, done, &first),
                     0);
    assert_int_equal(weir_ctx_offload_to(ctx_of(&tc), weir_group_at(group, 1), work, done, &second),
                     0);
    event_log_clear(&tc.events);
    weir_ctx_remove(weir_pipeline_find(tc.pipeline, "b"));
    weir_ctx_remove(ctx_of(&tc));
    tc_run(&tc);
    assert_events(&tc.events, "b.removed a.removed b.deinit");
    gate_open(&first.gate);
    run_on_executor(weir_group_at(group, 0), nothing, NULL);
    tc_run(&tc);
    assert_events(&tc.events, "");
    gate_open(&second.gate);
    run_on_executor(weir_group_at(group, 1), nothing, NULL);
    tc_run(&tc);
    assert_events(&tc.events, "a.deinit");
    tc_close(&tc);
    end_group(group);
}

TEST(offload, comes_back_without_a_context_if_the_handler_has_been_removed)
{
    weir_group *group = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 1));
    struct job job = {.ctx = (weir_ctx *)&job};
    struct test_channel tc;

    tc_open_started(&tc, NULL, NULL);
    assert_int_equal(weir_ctx_offload(ctx_of(&tc), group, work, done, &job), 0);
    weir_ctx_remove(ctx_of(&tc));
    tc_run(&tc);
    assert_events(&tc.events, "a.removed"); /* its memory is still needed */
    gate_open(&job.gate);
    come_back(&tc, group);
    assert_int_equal(atomic_load(&job.done.calls), 1);
    assert_null(job.ctx);
    assert_int_equal(job.err, 0);
    assert_events(&tc.events, "a.deinit");
    tc_close(&tc);
    end_group(group);
}

TEST(offload, comes_back_also_if_the_channel_has_gone)
{
    weir_group *group = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 1));
    struct job job = {.ctx = (weir_ctx *)&job};
    struct test_channel tc;

    tc_open_started(&tc, NULL, NULL);
    assert_int_equal(weir_ctx_offload(ctx_of(&tc), group, work, done, &job), 0);
    weir_channel_abort(tc.channel, NULL);
    tc_run(&tc);
    weir_channel_release(tc.channel);
    tc_run(&tc);
    assert_int_equal(event_log_count(&tc.events, "DESTROY"), 0);
    gate_open(&job.gate);
    come_back(&tc, group);
    assert_int_equal(atomic_load(&job.done.calls), 1);
    assert_null(job.ctx);
    assert_int_equal(event_log_count(&tc.events, "DESTROY"), 1);
    stepper_close(&tc.stepper);
    event_log_close(&tc.events);
    end_group(group);
}

TEST(offload, comes_back_somewhere_if_the_loop_has_ended)
{
    weir_group *group = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 1));
    struct job job = {.ctx = (weir_ctx *)&job};
    struct test_channel tc;

    tc_open_started(&tc, NULL, NULL);
    assert_int_equal(weir_ctx_offload(ctx_of(&tc), group, work, done, &job), 0);
    weir_channel_abort(tc.channel, NULL);
    tc_run(&tc);
    weir_channel_release(tc.channel);
    stepper_close(&tc.stepper);
    gate_open(&job.gate);
    assert_true(call_counter_await(&job.done, 1));
    assert_null(job.ctx);
    end_group(group);
    event_log_close(&tc.events);
}

static int cancel_it(weir_executor *executor, weir_task_fn *fn, void *arg, int reason,
                     void *user_data)
{
    (void)executor;
    (void)reason;
    (void)user_data;
    fn(arg, WEIR_ECANCELED);
    return 0;
}

TEST(offload, that_is_cancelled_reports_it)
{
    weir_group *group = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 1, .rejected = cancel_it));
    struct job job = {.err = 1};
    struct test_channel tc;

    tc_open_started(&tc, NULL, NULL);
    assert_int_equal(weir_group_shutdown(group, 0, TEST_TIMEOUT_NS), 0);
    assert_int_equal(weir_group_await_termination(group, TEST_TIMEOUT_NS), 0);
    assert_int_equal(weir_ctx_offload(ctx_of(&tc), group, work, done, &job), 0);
    assert_int_equal(job.err, 1);
    tc_run(&tc);
    assert_int_equal(job.err, WEIR_ECANCELED);
    assert_ptr_equal(job.ctx, ctx_of(&tc));
    tc_close(&tc);
    weir_group_release(group);
}

TEST(offload, that_is_rejected_calls_nothing)
{
    weir_group *group = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 1));
    struct job job = {.err = 1};
    struct test_channel tc;

    tc_open_started(&tc, NULL, NULL);
    assert_int_equal(weir_group_shutdown(group, 0, TEST_TIMEOUT_NS), 0);
    assert_int_equal(weir_group_await_termination(group, TEST_TIMEOUT_NS), 0);
    assert_int_equal(weir_ctx_offload(ctx_of(&tc), group, work, done, &job), WEIR_EREJECTED);
    assert_int_equal(weir_ctx_offload(ctx_of(&tc), NULL, work, done, &job), -EINVAL);
    assert_int_equal(job.err, 1);
    tc_close(&tc);
    weir_group_release(group);
}

static weir_group *work_group;
static struct job *current_job;

static void offload_in_read(weir_ctx *ctx, weir_msg *msg)
{
    weir_msg_release(msg);
    assert_int_equal(weir_ctx_offload(ctx, work_group, work, done, current_job), 0);
}

TEST(offload, of_a_handler_on_an_executor_comes_back_there)
{
    static const weir_handler offloader = {.name = "offloader", .read = offload_in_read};
    weir_group *home = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 1));
    struct job kept = {.err = 1}, removed = {.err = 1};
    struct test_channel tc;

    work_group = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 2));
    tc_open(&tc);
    assert_int_equal(weir_pipeline_add(tc.pipeline, WEIR_PLACE(.group = home), &offloader, NULL),
                     0);
    tc_start(&tc);
    come_back(&tc, home);
    current_job = &kept;
    (void)tc_receive(&tc, "1");
    assert_true(gate_await_arrivals(&kept.gate, 1));
    gate_open(&kept.gate);
    assert_true(call_counter_await(&kept.done, 1));
    assert_ptr_equal(kept.returned_on, weir_group_at(home, 0));
    assert_non_null(kept.ctx);

    current_job = &removed;
    (void)tc_receive(&tc, "2");
    assert_true(gate_await_arrivals(&removed.gate, 1));
    weir_channel_abort(tc.channel, NULL);
    tc_run(&tc);
    come_back(&tc, home); /* it has heard that the channel ends */
    run_on_executor(weir_group_at(home, 0), nothing, NULL);
    gate_open(&removed.gate);
    assert_true(call_counter_await(&removed.done, 1));
    assert_null(removed.ctx);
    assert_ptr_equal(removed.returned_on, weir_group_at(home, 0));
    run_on_executor(weir_group_at(home, 0), nothing, NULL);
    close_with(&tc, home);
    end_group(home);
    end_group(work_group);
}

struct late {
    weir_ctx *ctx;
    weir_promise *written;
};

static void pass_on_late(void *arg)
{
    struct late *late = arg;

    weir_fire_read(late->ctx, text_msg("x"));
    weir_write(late->ctx, text_msg("y"), late->written);
}

/* The offload keeps its context in memory, but not in the pipeline. */
TEST(offload, of_a_remote_handler_that_was_removed_leaves_a_context_that_passes_nothing_on)
{
    static const weir_handler offloader = {.name = "offloader", .read = offload_in_read};
    weir_group *home = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 1));
    struct job job = {.err = 1};
    struct test_channel tc;
    struct late late;

    work_group = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 1));
    current_job = &job;
    tc_open(&tc);
    assert_int_equal(weir_pipeline_add(tc.pipeline, WEIR_PLACE(.group = home), &offloader, NULL),
                     0);
    tc_add(&tc, "z");
    tc_start(&tc);
    come_back(&tc, home);
    late.ctx = weir_pipeline_find(tc.pipeline, "offloader");
    late.written = tc_promise(&tc, "written");
    (void)tc_receive(&tc, "1");
    assert_true(gate_await_arrivals(&job.gate, 1));
    assert_int_equal(weir_pipeline_remove(tc.pipeline, "offloader", NULL), 0);
    come_back(&tc, home);
    event_log_clear(&tc.events);
    run_on_executor(weir_group_at(home, 0), pass_on_late, &late);
    come_back(&tc, home);
    assert_events(&tc.events, "written=WEIR_ECLOSED");
    gate_open(&job.gate);
    assert_true(call_counter_await(&job.done, 1));
    assert_null(job.ctx);
    come_back(&tc, home);
    weir_promise_release(late.written);
    close_with(&tc, home);
    end_group(home);
    end_group(work_group);
}

/* The handler's executor ends before the work does: the channel ends all the same. */
TEST(offload, of_a_handler_whose_executor_has_ended_keeps_no_channel)
{
    static const weir_handler offloader = {.name = "offloader", .read = offload_in_read};
    weir_group *home = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 1));
    struct job job = {.err = 1};
    struct test_channel tc;

    work_group = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 1));
    tc_open(&tc);
    assert_int_equal(weir_pipeline_add(tc.pipeline, WEIR_PLACE(.group = home), &offloader, NULL),
                     0);
    tc_start(&tc);
    come_back(&tc, home);
    current_job = &job;
    (void)tc_receive(&tc, "1");
    assert_true(gate_await_arrivals(&job.gate, 1));
    end_group(home);
    gate_open(&job.gate);
    assert_true(call_counter_await(&job.done, 1));
    weir_channel_abort(tc.channel, NULL);
    for (int i = 0; i < 4; i++) {
        tc_run(&tc);
        global_executor_stop();
    }
    assert_int_equal(weir_pipeline_count(tc.pipeline), 0);
    assert_false(weir__channel_is_member(tc.channel));
    tc_close(&tc);
    end_group(work_group);
}

TEST(offload, needs_memory)
{
    weir_group *group = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 1));
    struct job job = {.err = 1};
    struct test_channel tc;

    tc_open_started(&tc, NULL, NULL);
    for (unsigned nth = 1; nth <= 2; nth++) {
        test_memory_fail_at(nth);
        assert_int_equal(weir_ctx_offload(ctx_of(&tc), group, work, done, &job), -ENOMEM);
        test_memory_fail_at(0);
    }
    tc_close(&tc);
    end_group(group);
}
