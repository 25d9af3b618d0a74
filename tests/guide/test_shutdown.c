/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What docs/guide/14-shutdown.md shows.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "guide/guide_fixture.h"
#include "support/bootstrap/raw_client.h"
#include "support/executor/call_counter.h"

static struct call_counter asked;

/* doc:begin draining */
struct worker {
    weir_timer timer; /* stands for the work that an answer takes */
    bool busy;
    bool draining;
};

static void on_answer(weir_ctx *ctx, weir_timer *timer)
{
    struct worker *self = weir_ctx_state(ctx);
    weir_buf *buf;

    (void)timer;
    self->busy = false;
    if (weir_buf_create_from("done\n", 5, &buf) == 0)
        weir_write_and_flush(ctx, weir_buf_msg(buf), NULL);
    if (self->draining)
        weir_close(ctx, NULL); /* that was the last one */
}

static void on_draining(weir_ctx *ctx)
{
    struct worker *self = weir_ctx_state(ctx);

    self->draining = true;
    weir_ctx_set_auto_read(ctx, false); /* no more requests */
    if (!self->busy)
        weir_close(ctx, NULL);
}
/* doc:end */

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    struct worker *self = weir_ctx_state(ctx);

    weir_msg_release(msg);
    self->busy = true;
    (void)weir_ctx_timer_start(ctx, &self->timer, weir_ms(100), on_answer);
    call_counter_add(&asked);
}

static const weir_handler worker = {
    .name = "worker",
    .state_size = sizeof(struct worker),
    .read = on_read,
    .draining = on_draining,
};

static int init_child(weir_channel *channel, void *user_data)
{
    (void)user_data;
    return weir_pipeline_add_last(weir_channel_pipeline(channel), &worker, NULL);
}

static weir_server *start(weir_group *workers)
{
    weir_server *server = NULL;
    /* doc:begin impatient */
    const weir_channel_options *impatient = WEIR_CHANNEL_OPTIONS(.close_timeout_ns = weir_ms(200));
    /* doc:end */
    int err =
        weir_server_start(WEIR_SERVER_OPTIONS(.workers = workers, .address = "127.0.0.1:0",
                                              .init_child = init_child, .child_options = impatient),
                          &server);

    assert_int_equal(err, 0);
    return server;
}

TEST(shutdown, waits_for_the_answer_that_is_being_made)
{
    weir_group *workers = make_loops(2);
    weir_server *server = start(workers);
    int peer = raw_client_connect(server);
    int err;

    raw_client_send(peer, "do it");
    assert_true(call_counter_await(&asked, 1));
    /* doc:begin stop */
    err = weir_server_stop(server, 0, weir_seconds(10)); /* quiet, and at the longest */
    if (err == -ETIMEDOUT)
        fprintf(stderr, "a thread did not come back; the log says which\n");
    weir_server_release(server);
    weir_group_release(workers);
    /* doc:end */
    assert_int_equal(err, 0);
    raw_client_receive(peer, "done\n");
    raw_client_receive_end(peer);
    raw_client_close(peer);
}

/* doc:begin signals */
static void on_signal(weir_signals *signals, const weir_signal *signal, void *user_data)
{
    (void)signals;
    (void)signal;
    weir_promise_succeed(user_data, NULL); /* main waits for this */
}

static int serve_until_told(weir_server *server, weir_executor *loop)
{
    weir_signals *signals = NULL;
    weir_promise *told = NULL;
    int err = weir_promise_create(NULL, &told);

    if (!err)
        err = weir_signals_create(loop,
                                  WEIR_SIGNALS_OPTIONS(.numbers = {SIGTERM, SIGUSR1},
                                                       .received = on_signal, .user_data = told),
                                  &signals);
    if (!err)
        err = weir_promise_sync(told, WEIR_NEVER);
    weir_signals_release(signals);
    if (!err)
        err = weir_server_stop(server, 0, weir_seconds(10));
    weir_promise_release(told); /* the loops have ended: nobody calls on_signal any more */
    return err;
}
/* doc:end */

static void send_signal(void *arg, int status)
{
    (void)arg;
    if (status == 0)
        kill(getpid(), SIGUSR1);
}

TEST(shutdown, comes_by_a_signal_of_your_own_choice)
{
    weir_group *loops = make_loops(1);
    weir_server *server = start(loops);
    sigset_t usr1;

    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    assert_int_equal(pthread_sigmask(SIG_BLOCK, &usr1, NULL), 0);
    assert_int_equal(weir_group_execute(loops, send_signal, NULL), 0);
    assert_int_equal(serve_until_told(server, weir_group_at(loops, 0)), 0);
    weir_server_release(server);
    weir_group_release(loops);
}

static int end_by_hand(weir_group *group)
{
    /* doc:begin group */
    int err = weir_group_shutdown(group, weir_ms(100), weir_seconds(10)); /* begins, and returns */

    if (!err)
        err = weir_group_await_termination(group, WEIR_NEVER);
    weir_group_release(group);
    /* doc:end */
    return err;
}

/* doc:begin hook */
static void close_database(void *arg, int status)
{
    (void)status;
    *(bool *)arg = true; /* on the executor's own thread, after its last task */
}
/* doc:end */

TEST(shutdown, runs_hooks_and_ends_threads)
{
    weir_group *group = make_loops(1);
    bool closed = false;

    assert_int_equal(
        weir_executor_add_shutdown_hook(weir_group_at(group, 0), close_database, &closed), 0);
    assert_int_equal(weir_group_execute(group, call_counter_task, &asked), 0);
    assert_int_equal(end_by_hand(group), 0);
    assert_true(closed);
}
