/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An in-process echo server, with every allocation failing in turn: the listener survives, the
 * affected connection reports the error, every promise completes, nothing leaks.
 */
#include <weir/transport.h>

#include <errno.h>

#include <weir/error.h>
#include <weir/thread.h>

#include "support/channel/test_channel.h"
#include "support/executor/log_capture.h"
#include "support/memory.h"

#define PINGS 3

#define PROMISES (PINGS + 5)

/* A listener, and what has become of the connection to it. */
struct trial {
    struct stepper near;
    struct stepper far;
    weir_address address;
    weir_channel *listener;
    weir_promise *promises[PROMISES];
    unsigned promise_count;
    unsigned echoed; /* bytes */
    unsigned errors; /* that handlers heard */
    bool ended_early;
};

static struct trial *trial;

/* ---- handlers ---- */

static void on_error(weir_ctx *ctx, int err, const char *detail)
{
    (void)ctx;
    (void)err;
    (void)detail;
    trial->errors++;
}

static void echo_read(weir_ctx *ctx, weir_msg *msg)
{
    weir_write_and_flush(ctx, msg, NULL);
}

/* An error closes the connection. */
static void echo_error(weir_ctx *ctx, int err, const char *detail)
{
    on_error(ctx, err, detail);
    weir_close(ctx, NULL);
}

static const weir_handler echo = {.name = "echo", .read = echo_read, .error = echo_error};

static void client_read(weir_ctx *ctx, weir_msg *msg)
{
    (void)ctx;
    trial->echoed += (unsigned)weir_buf_readable(weir_buf_of(msg));
    weir_msg_release(msg);
}

static const weir_handler client = {.name = "client", .read = client_read, .error = on_error};

static void on_accepted(weir_ctx *ctx, weir_msg *msg)
{
    weir_channel *channel = weir_channel_of(msg);

    if (weir_pipeline_add_last(weir_channel_pipeline(channel), &echo, NULL) == 0)
        weir_channel_register(channel, weir_ctx_executor(ctx), NULL);
    weir_msg_release(msg);
}

static const weir_handler acceptor = {.name = "acceptor", .read = on_accepted, .error = on_error};

/* ---- a connection ---- */

static void run(void)
{
    while (stepper_run(&trial->near) + stepper_run(&trial->far) > 0)
        ;
}

/* One of those that were made while there was memory. */
static weir_promise *next_promise(void)
{
    return trial->promises[trial->promise_count++];
}

/* In two halves, which the echo may see as one. */
static void ping(weir_channel *channel)
{
    weir_buf *first, *second;

    if (weir_buf_create_from("pi", 2, &first) == 0)
        weir_channel_write(channel, weir_buf_msg(first), NULL);
    else
        trial->errors++;
    if (weir_buf_create_from("ng", 2, &second) == 0)
        weir_channel_write_and_flush(channel, weir_buf_msg(second), next_promise());
    else
        (void)weir_promise_fail(next_promise(), -ENOMEM, NULL);
    run();
}

/* Half of the pings before it moves, half after. */
static void talk(weir_channel *channel)
{
    weir_channel_register(channel, trial->near.executor, next_promise());
    weir_channel_connect(channel, &trial->address, NULL, next_promise());
    run();
    ping(channel);
    weir_channel_deregister(channel, next_promise());
    run();
    weir_channel_register(channel, trial->far.executor, next_promise());
    for (unsigned i = 1; i < PINGS; i++)
        ping(channel);
    trial->ended_early = !weir_channel_is_open(channel);
    weir_channel_close(channel, next_promise());
    run();
}

static void make_promises(void)
{
    trial->promise_count = trial->echoed = trial->errors = 0;
    trial->ended_early = false;
    for (unsigned i = 0; i < PROMISES; i++)
        assert_int_equal(weir_promise_create(trial->near.executor, &trial->promises[i]), 0);
}

/* All that were used are complete. Returns how many have failed. */
static unsigned drop_promises(void)
{
    unsigned failed = 0;

    for (unsigned i = 0; i < PROMISES; i++) {
        assert_true(i >= trial->promise_count || weir_promise_is_done(trial->promises[i]));
        failed += i < trial->promise_count && weir_promise_result(trial->promises[i]) < 0;
        weir_promise_release(trial->promises[i]);
    }
    return failed;
}

/* Connects, with the n-th allocation failing. True if every failure was reported. */
static bool connect_once(unsigned n)
{
    weir_channel *channel = NULL;
    unsigned failed;

    weir_locals_remove_all(); /* what this thread has in store */
    make_promises();
    test_memory_fail_at(n);
    if (weir_inproc_create(NULL, &channel) == 0 &&
        weir_pipeline_add_last(weir_channel_pipeline(channel), &client, NULL) == 0)
        talk(channel);
    else
        trial->errors++;
    if (channel != NULL)
        weir_channel_abort(channel, NULL);
    weir_channel_release(channel);
    run();
    failed = drop_promises();
    return trial->echoed == 4 * PINGS || failed > 0 || trial->errors > 0 || trial->ended_early;
}

static void open_trial(struct trial *new_trial)
{
    trial = new_trial;
    trial->near = stepper_open();
    trial->far = stepper_open();
    assert_int_equal(weir_address_parse("inproc:memory", &trial->address), 0);
    log_capture_start();
}

static void close_trial(void)
{
    stepper_close(&trial->near);
    stepper_close(&trial->far);
}

/* An error of the listener may come by its promise, or at once. */
static int open_listener(weir_promise *done)
{
    int err = weir_inproc_create_server(NULL, NULL, &trial->listener);

    if (err == 0)
        err = weir_pipeline_add_last(weir_channel_pipeline(trial->listener), &acceptor, NULL);
    if (err < 0)
        return err;
    weir_channel_register(trial->listener, trial->far.executor, NULL);
    weir_channel_bind(trial->listener, &trial->address, done);
    run();
    return weir_promise_result(done);
}

static void close_listener(void)
{
    if (trial->listener != NULL)
        weir_channel_abort(trial->listener, NULL);
    run();
    weir_channel_release(trial->listener);
    trial->listener = NULL;
}

static int try_listener(unsigned n)
{
    weir_promise *done;
    int err;

    weir_locals_remove_all();
    assert_int_equal(weir_promise_create(trial->far.executor, &done), 0);
    test_memory_fail_at(n);
    err = open_listener(done);
    weir_promise_release(done);
    return err;
}

TEST(inproc_memory, a_listener_is_created_or_fails)
{
    struct trial here = {.echoed = 0};
    unsigned n = 0;
    bool failed;
    int err;

    open_trial(&here);
    do {
        err = try_listener(++n);
        failed = test_memory_failed();
        test_memory_fail_at(0);
        assert_int_equal(err, failed ? -ENOMEM : 0);
        close_listener();
    } while (failed);
    assert_in_range(n, 5, 50);
    close_trial();
}

TEST(inproc_memory, a_listener_survives_and_a_connection_fails)
{
    struct trial here = {.echoed = 0};
    unsigned n = 0;
    bool failed;

    open_trial(&here);
    assert_int_equal(try_listener(0), 0);
    do {
        assert_true(connect_once(++n));
        failed = test_memory_failed();
        test_memory_fail_at(0);
        assert_true(connect_once(0));
        assert_int_equal(trial->echoed, 4 * PINGS);
        assert_int_equal(trial->errors, 0);
    } while (failed);
    assert_in_range(n, 15, 200);
    close_listener();
    close_trial();
}
