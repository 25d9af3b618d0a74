/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A channel's whole life, with every allocation failing in turn: nothing crashes, nothing is left,
 * every promise completes.
 */
#include <errno.h>

#include <weir/channel.h>
#include <weir/error.h>

#include "support/channel/test_channel.h"
#include "support/executor/group.h"
#include "support/executor/log_capture.h"
#include "support/executor/run_on_thread.h"
#include "support/memory.h"

static weir_group *others;

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    weir_ctx_add_pending_bytes(ctx, 5);
    weir_write(ctx, msg, NULL);
    weir_ctx_add_pending_bytes(ctx, -5);
}

static void on_read_complete(weir_ctx *ctx)
{
    weir_flush(ctx);
}

static const weir_handler echo = {
    .name = "echo",
    .state_size = 24,
    .read = on_read,
    .read_complete = on_read_complete,
};

static const weir_handler nobody = {.name = "nobody"};

static int give_handlers(weir_channel *channel, void *arg)
{
    weir_pipeline *pipeline = weir_channel_pipeline(channel);
    int err = weir_pipeline_add_last(pipeline, &nobody, NULL);

    (void)arg;
    if (err == 0)
        err = weir_pipeline_add_last(pipeline, &nobody, NULL); /* with a name of its own */
    if (err == 0)
        err = weir_pipeline_add(pipeline, WEIR_PLACE(.group = others), &nobody, NULL);
    return err < 0 ? err : weir_pipeline_add_last(pipeline, &echo, NULL);
}

static void nothing(void *arg)
{
    (void)arg;
}

/* Runs until nothing is on its way to or from the remote handler. */
static void settle(struct stepper *stepper)
{
    for (int i = 0; i < 6; i++) {
        run_on_executor(weir_group_at(others, 0), nothing, NULL);
        (void)stepper_run(stepper);
    }
}

static weir_promise *promise_of(weir_executor *executor)
{
    weir_promise *promise = NULL;

    IGNORE_RESULT(weir_promise_create(executor, &promise));
    return promise;
}

static void receive(weir_channel *channel)
{
    weir_buf *buf;

    if (((struct wire *)channel)->reads && weir_buf_create_from("ping", 4, &buf) == 0) {
        (void)weir__channel_received(channel, weir_buf_msg(buf));
        weir__channel_read_complete(channel);
    }
}

static void live(weir_channel *channel, struct stepper *stepper)
{
    static const weir_attribute attribute = {.name = "x"};
    weir_promise *registered = promise_of(stepper->executor), *written, *shut, *closed;
    weir_address address;
    weir_buf *buf;

    weir_channel_register(channel, stepper->executor, registered);
    settle(stepper);
    IGNORE_RESULT(weir_attribute_set(channel, &attribute, stepper));
    (void)weir_channel_local_address(channel, &address);
    (void)weir_channel_set_options(channel, WEIR_CHANNEL_OPTIONS(.high_mark = 300));
    receive(channel);
    settle(stepper);
    written = promise_of(stepper->executor);
    if (weir_buf_create_from("pong", 4, &buf) == 0)
        weir_channel_write_and_flush(channel, weir_buf_msg(buf), written);
    settle(stepper);
    shut = promise_of(stepper->executor);
    weir_channel_shutdown_output(channel, shut);
    settle(stepper);
    (void)weir_channel_closed(channel);
    closed = promise_of(stepper->executor);
    weir_channel_close(channel, closed);
    settle(stepper);
    weir_channel_abort(channel, NULL);
    settle(stepper);
    assert_true(registered == NULL || weir_promise_is_done(registered));
    assert_true(shut == NULL || weir_promise_is_done(shut));
    assert_true(closed == NULL || weir_promise_is_done(closed));
    weir_promise_release(registered);
    weir_promise_release(written);
    weir_promise_release(shut);
    weir_promise_release(closed);
}

TEST(out_of_memory, ends_no_channel_badly)
{
    static struct event_log events;
    struct stepper stepper = stepper_open();
    unsigned n;

    log_capture_start();
    event_log_open(&events);
    others = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 1));
    run_on_executor(weir_group_at(others, 0), nothing, NULL);
    for (n = 1;; n++) {
        weir_channel *channel = NULL;
        bool failed;

        test_memory_fail_at(n);
        if (wire_create(&events, &(struct wire_options){.silent = true}, NULL, NULL, &channel) ==
                0 &&
            weir_pipeline_add_initializer(weir_channel_pipeline(channel), give_handlers, NULL) == 0)
            live(channel, &stepper);
        weir_channel_release(channel);
        settle(&stepper);
        failed = test_memory_failed();
        test_memory_fail_at(0);
        if (!failed)
            break;
    }
    assert_in_range(n, 15, 100);
    end_group(others);
    stepper_close(&stepper);
    event_log_close(&events);
}
