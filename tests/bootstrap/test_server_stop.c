/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of a server, and of a group of loops with channels: what is under way is finished, what
 * does not end is aborted, and nothing takes longer than was asked for.
 */
#include <weir/server.h>

#include <errno.h>
#include <sched.h>

#include <weir/error.h>
#include <weir/pipeline.h>
#include <weir/timer.h>
#include <weir/transport.h>

#include "bootstrap/server.h"
#include "os/clock.h"
#include "support/bootstrap/echo_service.h"
#include "support/bootstrap/raw_client.h"
#include "support/executor/gate.h"
#include "support/executor/group.h"
#include "support/executor/log_capture.h"
#include "support/executor/run_on_thread.h"
#include "support/loop/host.h"

static int64_t since(int64_t start_ns)
{
    return weir__monotonic_now() - start_ns;
}

/* ---- groups with channels ---- */

static int64_t time_the_end(const struct host *host)
{
    struct echo_service service = {0};
    weir_group *group = NULL;
    weir_server *server;
    int64_t start_ns, took_ns;

    assert_int_equal(
        weir_group_create(WEIR_GROUP_OPTIONS(.io = host->backend->io, .threads = 1), &group), 0);
    server = echo_service_start(&service, WEIR_SERVER_OPTIONS(.boss = group));
    start_ns = weir__monotonic_now();
    assert_int_equal(weir_group_shutdown(group, 0, TEST_TIMEOUT_NS), 0);
    assert_int_equal(weir_group_await_termination(group, TEST_TIMEOUT_NS), 0);
    took_ns = since(start_ns);
    assert_false(weir_channel_is_open(weir_server_listener(server, 0)));
    assert_false(weir_channel_is_registered(weir_server_listener(server, 0)));
    weir_server_release(server);
    weir_group_release(group);
    return took_ns;
}

/* A busy machine may hold it up, but not always. */
TEST_EACH_LOOP(drain, of_a_listener_takes_no_time)
{
    int tries = 0;

    while (time_the_end(host) >= weir_ms(600))
        assert_true(++tries < 5);
}

TEST_EACH_LOOP(drain, sends_what_was_written_and_closes)
{
    struct echo_service service = {0};
    weir_server *server = echo_service_start(&service, WEIR_SERVER_OPTIONS(.boss = host->group));
    int peer = raw_client_connect(server);

    raw_client_echo(peer, "one");
    raw_client_send(peer, "two");
    assert_int_equal(weir_group_shutdown(host->group, 0, TEST_TIMEOUT_NS), 0);
    raw_client_receive_end(peer);
    raw_client_close(peer);
    assert_int_equal(weir_group_await_termination(host->group, TEST_TIMEOUT_NS), 0);
    assert_int_equal(service.closed.calls, 1);
    weir_server_release(server);
}

/* As by a second signal that comes before the first has reached the loops. */
TEST_EACH_LOOP(server, that_is_aborted_before_it_stops_waits_for_no_client)
{
    struct echo_service service = {0};
    weir_server *server = echo_service_start(
        &service, WEIR_SERVER_OPTIONS(.boss = host->group,
                                      .child_options = WEIR_CHANNEL_OPTIONS(.drain_waits = true)));
    int peer = raw_client_connect(server);
    int64_t start_ns = weir__monotonic_now();

    raw_client_echo(peer, "x");
    weir__server_abort(server);
    assert_int_equal(weir_server_stop(server, 0, TEST_TIMEOUT_NS), 0);
    assert_true(since(start_ns) < TEST_TIMEOUT_NS / 2);
    raw_client_close(peer);
    weir_server_release(server);
}

/* ---- a request that is under way ---- */

struct request {
    struct echo_service service; /* first: it is the user_data */
    struct gate gate;
    weir_group *elsewhere;
    struct call_counter begun;
};

struct request_state {
    struct request *request;
    weir_msg *question; /* NULL = none is under way */
    bool drains;
};

static void *think(void *arg)
{
    gate_task(&((struct request *)arg)->gate, 0);
    return NULL;
}

static void on_answer(weir_ctx *ctx, int err, void *result, void *arg)
{
    struct request_state *state;

    (void)err;
    (void)result;
    (void)arg;
    if (ctx == NULL)
        return;
    state = weir_ctx_state(ctx);
    weir_write_and_flush(ctx, state->question, NULL);
    state->question = NULL;
    if (state->drains)
        weir_close(ctx, NULL);
}

static void on_question(weir_ctx *ctx, weir_msg *msg)
{
    struct request_state *state = weir_ctx_state(ctx);

    state->question = msg;
    if (weir_ctx_offload(ctx, state->request->elsewhere, think, on_answer, state->request) < 0)
        weir_close(ctx, NULL);
    call_counter_add(&state->request->begun);
}

static void on_request_draining(weir_ctx *ctx)
{
    struct request_state *state = weir_ctx_state(ctx);

    state->drains = true;
    if (state->question == NULL)
        weir_close(ctx, NULL);
}

static int init_request(void *state, const void *options)
{
    ((struct request_state *)state)->request = (struct request *)(uintptr_t)options;
    return 0;
}

static const weir_handler thinker = {
    .name = "thinker",
    .state_size = sizeof(struct request_state),
    .init = init_request,
    .read = on_question,
    .draining = on_request_draining,
};

static int init_thinker(weir_channel *channel, void *arg)
{
    return weir_pipeline_add_last(weir_channel_pipeline(channel), &thinker, arg);
}

TEST_EACH_LOOP(drain, lets_a_pending_request_be_answered)
{
    struct request request = {.elsewhere = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 1))};
    weir_server *server = echo_service_start(
        &request.service, WEIR_SERVER_OPTIONS(.boss = host->group, .init_child = init_thinker));
    int busy = raw_client_connect(server), idle = raw_client_connect(server);

    raw_client_send(busy, "what is the answer?");
    assert_true(call_counter_await(&request.begun, 1));
    assert_int_equal(weir_group_shutdown(host->group, 0, TEST_TIMEOUT_NS), 0);
    raw_client_receive_end(idle); /* which says that the draining has begun */
    gate_open(&request.gate);
    raw_client_receive(busy, "what is the answer?");
    raw_client_receive_end(busy);
    raw_client_close(busy);
    raw_client_close(idle);
    assert_int_equal(weir_group_await_termination(host->group, TEST_TIMEOUT_NS), 0);
    weir_server_release(server);
    end_group(request.elsewhere);
}

/* ---- what does not go by itself ---- */

/* Releases a group whose thread comes back after the deadline; its promise does not tell when. */
static void release_late(weir_group *group)
{
    int64_t start_ns = weir__monotonic_now();

    while (weir_group_state(group) < WEIR_EXECUTOR_TERMINATED && since(start_ns) < TEST_TIMEOUT_NS)
        (void)sched_yield();
    weir_group_release(group);
}

TEST_EACH_LOOP(drain, aborts_remaining_channels_at_its_deadline)
{
    struct echo_service service = {.drains_itself = true};
    weir_group *group = NULL;
    weir_server *server;
    int64_t start_ns;
    int peer;

    log_capture_start();
    assert_int_equal(
        weir_group_create(WEIR_GROUP_OPTIONS(.io = host->backend->io, .threads = 1), &group), 0);
    server = echo_service_start(&service, WEIR_SERVER_OPTIONS(.boss = group));
    peer = raw_client_connect(server);
    raw_client_echo(peer, "x");
    start_ns = weir__monotonic_now();
    assert_int_equal(weir_group_shutdown(group, 0, weir_ms(300)), 0);
    assert_true(call_counter_await(&service.drained, 1));
    raw_client_receive_end(peer);
    assert_true(since(start_ns) >= weir_ms(300));
    assert_true(call_counter_await(&service.closed, 1));
    assert_int_equal(service.drained.calls, 1);
    raw_client_close(peer);
    weir_server_release(server);
    release_late(group); /* on a busy machine the thread may be late */
}

/* Aborts after a quarter of a second, with another one to go; returns when that was. */
static int64_t time_the_abort(const struct host *host)
{
    struct echo_service service = {.drains_itself = true};
    weir_group *group = NULL;
    weir_server *server;
    int64_t start_ns, aborted_ns;
    int peer;

    assert_int_equal(
        weir_group_create(WEIR_GROUP_OPTIONS(.io = host->backend->io, .threads = 1), &group), 0);
    server = echo_service_start(&service, WEIR_SERVER_OPTIONS(.boss = group));
    peer = raw_client_connect(server);
    raw_client_echo(peer, "x");
    start_ns = weir__monotonic_now();
    assert_int_equal(weir_group_shutdown(group, weir_ms(250), weir_ms(500)), 0);
    raw_client_receive_end(peer);
    aborted_ns = since(start_ns);
    assert_true(aborted_ns >= weir_ms(250));
    raw_client_close(peer);
    weir_server_release(server);
    release_late(group);
    assert_true(since(start_ns) >= weir_ms(500));
    return aborted_ns;
}

/* A busy machine may hold it up, but not always. */
TEST_EACH_LOOP(drain, leaves_the_quiet_period_after_the_abort)
{
    int tries = 0;

    log_capture_start();
    while (time_the_abort(host) >= weir_ms(490))
        assert_true(++tries < 5);
}

/* ---- registering too late ---- */

TEST_EACH_LOOP(drain, over_takes_no_channel)
{
    weir_channel *channel = NULL;
    weir_promise *registered;

    host_end(host);
    assert_int_equal(weir_tcp_create(NULL, &channel), 0);
    assert_int_equal(weir_promise_create(NULL, &registered), 0);
    weir_channel_register(channel, host->loop, registered);
    assert_int_equal(weir_promise_sync(registered, TEST_TIMEOUT_NS), WEIR_EREJECTED);
    assert_false(weir_channel_is_open(channel));
    assert_int_equal(weir_channel_await_closed(channel, TEST_TIMEOUT_NS), 0);
    weir_promise_release(registered);
    weir_channel_release(channel);
}

/* ---- weir_server_stop ---- */

TEST_EACH_LOOP(stop, ends_both_groups)
{
    struct echo_service service = {0};
    weir_group *workers = NULL;
    weir_server *server;
    int peer;

    assert_int_equal(
        weir_group_create(WEIR_GROUP_OPTIONS(.io = host->backend->io, .threads = 2), &workers), 0);
    server =
        echo_service_start(&service, WEIR_SERVER_OPTIONS(.boss = host->group, .workers = workers));
    peer = raw_client_connect(server);
    raw_client_echo(peer, "x");
    assert_int_equal(weir_server_stop(server, weir_ms(50), TEST_TIMEOUT_NS), 0);
    assert_int_equal(weir_group_state(workers), WEIR_EXECUTOR_TERMINATED);
    assert_int_equal(weir_group_state(host->group), WEIR_EXECUTOR_TERMINATED);
    raw_client_receive_end(peer);
    raw_client_close(peer);
    assert_int_equal(weir_server_stop(server, 0, 0), 0); /* again: there is nothing to do */
    weir_server_release(server);
    weir_group_release(workers);
}

struct stopping {
    weir_server *server;
    int stop_err;
    int run_err;
};

static void stop_there(void *arg)
{
    struct stopping *stopping = arg;

    stopping->stop_err = weir_server_stop(stopping->server, 0, TEST_TIMEOUT_NS);
    stopping->run_err = weir_server_run(stopping->server);
}

TEST_EACH_LOOP(stop, is_rejected_on_a_loop)
{
    struct echo_service service = {0};
    weir_server *server = echo_service_start(&service, WEIR_SERVER_OPTIONS(.boss = host->group));
    struct stopping stopping = {.server = server};

    run_on_executor(host->loop, stop_there, &stopping);
    assert_int_equal(stopping.stop_err, -EDEADLK);
    assert_int_equal(stopping.run_err, -EDEADLK);
    assert_int_equal(weir_server_stop(server, -1, 0), -EINVAL);
    assert_int_equal(weir_server_stop(server, 1, 0), -EINVAL);
    assert_int_equal(weir_server_stop(NULL, 0, 0), -EINVAL);
    assert_int_equal(weir_server_run(NULL), -EINVAL);
    echo_service_stop(server);
}

TEST_EACH_LOOP(stop, times_out_when_a_thread_does_not_return)
{
    struct echo_service service = {.drains_itself = true};
    struct gate gate = {0};
    weir_server *server = echo_service_start(&service, WEIR_SERVER_OPTIONS(.boss = host->group));
    int peer = raw_client_connect(server);

    log_capture_start();
    raw_client_echo(peer, "x");
    gate_hold(&gate, host->loop);
    assert_int_equal(weir_server_stop(server, 0, weir_ms(100)), -ETIMEDOUT);
    gate_open(&gate); /* it comes back after all, and has no time left */
    raw_client_receive_end(peer);
    raw_client_close(peer);
    assert_true(call_counter_await(&service.closed, 1));
    assert_int_equal(weir_channel_await_closed(weir_server_listener(server, 0), TEST_TIMEOUT_NS),
                     0);
    weir_server_release(server);
    release_late(host->group);
    host_open(host, BACKEND_EPOLL); /* for the one that has failed to end well */
}
