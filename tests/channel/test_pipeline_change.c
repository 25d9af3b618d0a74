/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes of a pipeline that other threads ask for and that are not made: cancelled with the loop,
 * refused by one that has ended, wrong, or without memory. Each leaves nothing behind.
 */
#include <errno.h>

#include <weir/error.h>

#include "support/channel/test_channel.h"
#include "support/executor/global_executor.h"
#include "support/executor/group.h"
#include "support/executor/log_capture.h"
#include "support/executor/run_on_thread.h"
#include "support/memory.h"

/* ---- a handler that is counted ---- */

static unsigned inits, added, deinits;

static int count_init(void *state, const void *options)
{
    (void)state;
    (void)options;
    inits++;
    return 0;
}

static void count_deinit(void *state)
{
    (void)state;
    deinits++;
}

static void count_added(weir_ctx *ctx)
{
    (void)ctx;
    added++;
}

static const weir_handler counted = {
    .name = "counted",
    .state_size = 64,
    .init = count_init,
    .deinit = count_deinit,
    .added = count_added,
};

/* ---- what another thread asks for ---- */

struct request {
    weir_pipeline *pipeline;
    weir_group *group; /* of the new handler; NULL = the loop */
    weir_promise *done;
    unsigned fails_at; /* which allocation; 0 = none */
    bool has_failed;
    int err;
};

static void ask_to_add(void *request_)
{
    struct request *request = request_;

    test_memory_fail_at(request->fails_at);
    request->err = weir_pipeline_add(
        request->pipeline,
        WEIR_PLACE(.name = "new", .after = "a", .group = request->group, .done = request->done),
        &counted, NULL);
    request->has_failed = test_memory_failed();
    test_memory_fail_at(0);
}

static void ask_to_add_after_nobody(void *request_)
{
    struct request *request = request_;

    request->err = weir_pipeline_add(
        request->pipeline, WEIR_PLACE(.after = "nobody", .done = request->done), &counted, NULL);
}

static void ask_to_replace(void *request_)
{
    struct request *request = request_;

    test_memory_fail_at(request->fails_at);
    request->err = weir_pipeline_replace(
        request->pipeline, "a", WEIR_PLACE(.name = "new", .done = request->done), &counted, NULL);
    request->has_failed = test_memory_failed();
    test_memory_fail_at(0);
}

static void ask_to_remove(void *request_)
{
    struct request *request = request_;

    test_memory_fail_at(request->fails_at);
    request->err = weir_pipeline_remove(request->pipeline, "a", request->done);
    request->has_failed = test_memory_failed();
    test_memory_fail_at(0);
}

static weir_thread_fn *const requests[] = {ask_to_add, ask_to_replace, ask_to_remove};
#define REQUESTS (sizeof(requests) / sizeof(requests[0]))

/* A channel with "a" on a loop that the test ends, and a request for its pipeline. */
struct doomed_rig {
    struct test_channel tc;
    struct stepper loop;
    struct request request;
};

static void open_doomed(struct doomed_rig *doomed)
{
    inits = added = deinits = 0;
    log_capture_start();
    doomed->loop = stepper_open();
    tc_open(&doomed->tc);
    tc_add(&doomed->tc, "a");
    weir_channel_register(doomed->tc.channel, doomed->loop.executor, NULL);
    (void)stepper_run(&doomed->loop);
    doomed->request = (struct request){.pipeline = doomed->tc.pipeline};
    assert_int_equal(weir_promise_create(NULL, &doomed->request.done), 0);
}

/* The loop is given up with all that it has to do. */
static void give_loop_up(struct doomed_rig *doomed)
{
    weir_executor_release(doomed->loop.executor);
    weir_manual_clock_release(doomed->loop.clock);
}

/* What was made is gone; the channel's own end comes from the global executor. */
static void close_doomed(struct doomed_rig *doomed)
{
    weir_promise_release(doomed->request.done);
    weir_channel_abort(doomed->tc.channel, NULL);
    global_executor_stop();
    tc_close(&doomed->tc);
    global_executor_stop();
    assert_int_equal(deinits, inits);
}

TEST(change, that_is_cancelled_with_the_loop_leaves_nothing)
{
    struct doomed_rig doomed;

    for (size_t i = 0; i < REQUESTS; i++) {
        open_doomed(&doomed);
        run_on_other_thread(requests[i], &doomed.request);
        assert_int_equal(doomed.request.err, 0);
        assert_false(weir_promise_is_done(doomed.request.done));
        give_loop_up(&doomed);
        assert_int_equal(weir_promise_result(doomed.request.done), WEIR_ECANCELED);
        assert_int_equal(deinits, inits);
        assert_int_equal(added, 0);
        assert_non_null(weir_pipeline_find(doomed.tc.pipeline, "a"));
        close_doomed(&doomed);
    }
}

TEST(change, that_is_refused_by_a_loop_that_has_ended_leaves_nothing)
{
    struct doomed_rig doomed;

    for (size_t i = 0; i < REQUESTS; i++) {
        open_doomed(&doomed);
        stepper_close(&doomed.loop);
        run_on_other_thread(requests[i], &doomed.request);
        global_executor_stop(); /* in the place of the loop */
        assert_int_equal(weir_promise_result(doomed.request.done), WEIR_EREJECTED);
        assert_int_equal(deinits, inits);
        assert_int_equal(added, 0);
        assert_non_null(weir_pipeline_find(doomed.tc.pipeline, "a"));
        close_doomed(&doomed);
    }
}

/* If nobody waits for it the log says so. */
TEST(change, that_is_rejected_without_a_promise_is_logged)
{
    struct doomed_rig doomed;
    weir_promise *done;

    open_doomed(&doomed);
    stepper_close(&doomed.loop);
    done = doomed.request.done;
    doomed.request.done = NULL;
    run_on_other_thread(ask_to_add, &doomed.request);
    global_executor_stop(); /* in the place of the loop */
    assert_int_equal(log_capture_count(WEIR_LOG_WARN), 1);
    assert_int_equal(deinits, 1);
    doomed.request.done = done;
    close_doomed(&doomed);
}

TEST(change, of_a_remote_handler_that_is_cancelled_releases_its_executor)
{
    weir_group *group = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 1));
    struct doomed_rig doomed;

    open_doomed(&doomed);
    doomed.request.group = group;
    run_on_other_thread(ask_to_add, &doomed.request);
    give_loop_up(&doomed);
    assert_int_equal(weir_promise_result(doomed.request.done), WEIR_ECANCELED);
    assert_int_equal(deinits, 1);
    close_doomed(&doomed);
    end_group(group);
}

TEST(change, that_cannot_be_made_leaves_nothing)
{
    struct doomed_rig doomed;

    open_doomed(&doomed);
    run_on_other_thread(ask_to_add_after_nobody, &doomed.request);
    assert_int_equal(doomed.request.err, 0);
    (void)stepper_run(&doomed.loop);
    assert_int_equal(weir_promise_result(doomed.request.done), -ENOENT);
    assert_int_equal(inits, 1);
    assert_int_equal(deinits, 1);
    assert_int_equal(added, 0);
    assert_int_equal(weir_pipeline_count(doomed.tc.pipeline), 1);
    stepper_close(&doomed.loop);
    close_doomed(&doomed);
}

static void ask_without_memory(weir_thread_fn *ask)
{
    struct doomed_rig doomed;
    bool failed = true;

    for (unsigned nth = 1; failed; nth++) {
        open_doomed(&doomed);
        doomed.request.fails_at = nth;
        run_on_other_thread(ask, &doomed.request);
        failed = doomed.request.has_failed;
        (void)stepper_run(&doomed.loop);
        if (failed) {
            assert_int_equal(doomed.request.err, -ENOMEM);
            assert_int_equal(weir_promise_result(doomed.request.done), -ENOMEM);
            assert_int_equal(deinits, inits);
            assert_int_equal(weir_pipeline_count(doomed.tc.pipeline), 1);
        } else {
            assert_int_equal(weir_promise_result(doomed.request.done), 0);
        }
        stepper_close(&doomed.loop);
        close_doomed(&doomed);
    }
}

TEST(change, without_memory_leaves_nothing)
{
    for (size_t i = 0; i < REQUESTS; i++)
        ask_without_memory(requests[i]);
}

/* What is under way when the channel ends finds it closed. */
TEST(change, that_comes_when_the_channel_is_closed_leaves_nothing)
{
    struct doomed_rig doomed;

    open_doomed(&doomed);
    run_on_other_thread(ask_to_add, &doomed.request);
    weir_channel_abort(doomed.tc.channel, NULL);
    (void)stepper_run(&doomed.loop);
    assert_int_equal(weir_promise_result(doomed.request.done), WEIR_ECLOSED);
    assert_int_equal(inits, 1);
    assert_int_equal(deinits, 1);
    assert_int_equal(added, 0);
    stepper_close(&doomed.loop);
    close_doomed(&doomed);
}
