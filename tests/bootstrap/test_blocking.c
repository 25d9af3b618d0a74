/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Servers and clients whose channels have a thread each: what handlers may do there, who gets a
 * thread, and what happens when there is none. A 32.
 */
#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include <weir/client.h>
#include <weir/error.h>
#include <weir/loop.h>
#include <weir/pipeline.h>
#include <weir/resolver.h>
#include <weir/server.h>
#include <weir/transport.h>

#include "os/clock.h"
#include "os/thread.h"
#include "support/bootstrap/echo_service.h"
#include "support/bootstrap/raw_client.h"
#include "support/channel/pointer_state.h"
#include "support/channel/stats.h"
#include "support/executor/gate.h"
#include "support/executor/global_executor.h"
#include "support/executor/group.h"
#include "support/executor/log_capture.h"
#include "support/executor/thread_factory.h"
#include "support/loop/faults.h"
#include "support/loop/sockets.h"
#include "support/test.h"

#define BLOCKING .io = WEIR_IO_BLOCKING

static weir_group *make_blocking(int max_channels)
{
    weir_group *group = NULL;

    assert_int_equal(
        weir_group_create(WEIR_GROUP_OPTIONS(BLOCKING, .max_channels = max_channels), &group), 0);
    return group;
}

static weir_group_stats stats_of(const weir_group *group)
{
    weir_group_stats stats;

    weir_group_read_stats(group, &stats);
    return stats;
}

/* A channel leaves its executor after its close was reported. */
static void await_active(const weir_group *group, uint64_t active)
{
    for (int i = 0; i < 5000 && stats_of(group).active != active; i++)
        weir__thread_sleep(weir_ms(2));
    assert_int_equal(stats_of(group).active, active);
}

/* ---- what it is ---- */

TEST(blocking, is_a_kind_of_loops)
{
    weir_group *group = make_blocking(0);
    weir_executor *loop = NULL;

    assert_int_equal(weir_loop_io(weir_group_at(group, 0)), WEIR_IO_BLOCKING);
    assert_int_equal(
        weir_loop_create(WEIR_LOOP_OPTIONS(.io = WEIR_IO_BLOCKING, .name = "mine"), &loop),
        -EINVAL);
    assert_null(loop);
    end_group(group);
}

TEST(blocking, reports_why_it_cannot_be_created)
{
    weir_group *group = NULL;

    log_capture_start();
    faults_install();
    faults_inject(FAULT_EVENTFD, 1, 1, EMFILE);
    assert_int_equal(weir_group_create(WEIR_GROUP_OPTIONS(BLOCKING), &group), -EMFILE);
    faults_remove();
    assert_null(group);
    assert_int_equal(log_capture_count(WEIR_LOG_ERROR), 1);
    assert_true(log_capture_last_contains("is not available"));
}

/* ---- threads ---- */

TEST(blocking, gives_every_channel_a_thread)
{
    enum { VISITORS = 5 };
    struct echo_service service = {0};
    weir_group *group = make_blocking(0);
    weir_server *server = echo_service_start(&service, WEIR_SERVER_OPTIONS(.boss = group));
    int peers[VISITORS];

    for (int i = 0; i < VISITORS; i++) {
        peers[i] = raw_client_connect(server);
        raw_client_echo(peers[i], "hello");
        assert_ptr_not_equal(service.loops[i],
                             weir_channel_executor(weir_server_listener(server, 0)));
        for (int j = 0; j < i; j++)
            assert_ptr_not_equal(service.loops[i], service.loops[j]);
    }
    assert_int_equal(stats_of(group).active, VISITORS + 1);
    assert_int_equal(stats_of(group).threads, VISITORS + 1);
    for (int i = 0; i < VISITORS; i++)
        raw_client_close(peers[i]);
    await_active(group, 1);
    echo_service_stop(server);
    weir_group_release(group);
}

TEST(blocking, uses_threads_again)
{
    struct echo_service service = {0};
    weir_group *group = make_blocking(0);
    weir_server *server = echo_service_start(&service, WEIR_SERVER_OPTIONS(.boss = group));

    for (int i = 0; i < 10; i++) {
        int peer = raw_client_connect(server);

        raw_client_echo(peer, "hello");
        raw_client_close(peer);
        await_active(group, 1);
    }
    assert_int_equal(weir_group_count(group), 2);
    assert_int_equal(stats_of(group).idle, 1);
    echo_service_stop(server);
    weir_group_release(group);
}

TEST(blocking, closes_descriptors_after_a_minute)
{
    enum { VISITORS = 12 };
    struct echo_service service = {0};
    int peers[VISITORS];
    weir_manual_clock *clock;
    weir_group *group = NULL;
    weir_server *server;
    size_t descriptors;

    assert_int_equal(weir_manual_clock_create(0, &clock), 0);
    assert_int_equal(
        weir_group_create(WEIR_GROUP_OPTIONS(BLOCKING, .clock = weir_manual_clock_clock(clock)),
                          &group),
        0);
    server = echo_service_start(&service, WEIR_SERVER_OPTIONS(.boss = group));
    descriptors = descriptors_open();
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < VISITORS; i++) {
            peers[i] = raw_client_connect(server);
            raw_client_echo(peers[i], "hello");
        }
        assert_int_equal(stats_of(group).executors, VISITORS + 1);
        for (int i = 0; i < VISITORS; i++)
            raw_client_close(peers[i]);
        await_active(group, 1);
        for (int i = 0; i < 5000 && stats_of(group).executors > 1; i++) {
            assert_int_equal(weir_manual_clock_advance(clock, weir_seconds(60)), 0);
            weir__thread_sleep(weir_ms(2));
        }
        assert_int_equal(stats_of(group).executors, 1);
        assert_true(descriptors_await(descriptors)); /* executors retire */
    }
    echo_service_stop(server);
    weir_group_release(group);
    weir_manual_clock_release(clock);
}

TEST(blocking, gives_every_acceptor_a_thread)
{
    struct echo_service service = {0};
    weir_group *group = make_blocking(0);
    weir_server *server =
        echo_service_start(&service, WEIR_SERVER_OPTIONS(.boss = group, .acceptors = 3));
    int peer = raw_client_connect(server);

    raw_client_echo(peer, "hello");
    assert_int_equal(weir_server_listener_count(server), 3);
    assert_int_equal(stats_of(group).active, 4);
    assert_ptr_not_equal(weir_channel_executor(weir_server_listener(server, 1)),
                         weir_channel_executor(weir_server_listener(server, 2)));
    raw_client_close(peer);
    echo_service_stop(server);
    weir_group_release(group);
}

/* ---- handlers that block ---- */

struct slow {
    struct gate gate;
    weir_address address; /* of another server, */
    weir_group *group;    /* and where to call it from */
    int connected;
    int own_promise;
    int own_loop;
    int own_end;
    int stopped;
    int ran;
    weir_server *server;
    struct call_counter answered;
};

static struct slow *slow_of(weir_ctx *ctx)
{
    return *(struct slow **)weir_ctx_state(ctx);
}

static void stand_at_gate(weir_ctx *ctx, weir_msg *msg)
{
    gate_task(&slow_of(ctx)->gate, 0);
    weir_write(ctx, msg, NULL);
    weir_flush(ctx);
}

static const weir_handler at_gate = {
    .name = "slow", .state_size = sizeof(void *), .init = pointer_keep, .read = stand_at_gate};

static int init_slow(weir_channel *channel, void *slow)
{
    return weir_pipeline_add_last(weir_channel_pipeline(channel), &at_gate, slow);
}

static weir_server *start_slow(struct slow *slow, weir_init_fn *init, weir_group *group)
{
    weir_server *server = NULL;

    assert_int_equal(weir_server_start(WEIR_SERVER_OPTIONS(.boss = group, .address = "127.0.0.1:0",
                                                           .init_child = init, .user_data = slow),
                                       &server),
                     0);
    return server;
}

TEST(blocking, lets_handlers_block)
{
    struct slow slow = {0};
    struct echo_service service = {0};
    weir_group *group = make_blocking(0);
    weir_server *slow_server = start_slow(&slow, init_slow, group);
    weir_server *server = echo_service_start(&service, WEIR_SERVER_OPTIONS(.boss = group));
    int blocked = raw_client_connect(slow_server), other = raw_client_connect(slow_server), third;

    raw_client_send(blocked, "a");
    raw_client_send(other, "b");
    assert_true(gate_await_arrivals(&slow.gate, 2));
    third = raw_client_connect(server); /* the listeners, and everybody else, go on */
    raw_client_echo(third, "hello");
    gate_open(&slow.gate);
    raw_client_receive(blocked, "a");
    raw_client_receive(other, "b");
    raw_client_close(blocked);
    raw_client_close(other);
    raw_client_close(third);
    weir_channel_abort(weir_server_listener(slow_server, 0), NULL);
    assert_int_equal(
        weir_channel_await_closed(weir_server_listener(slow_server, 0), TEST_TIMEOUT_NS), 0);
    weir_server_release(slow_server);
    echo_service_stop(server);
    weir_group_release(group);
}

/* A thread that waits for bytes is woken for a task: one that looked every second would be late. */
TEST(blocking, runs_tasks_of_a_channel_that_waits_for_bytes)
{
    struct echo_service service = {0};
    weir_group *group = make_blocking(0);
    weir_server *server = echo_service_start(&service, WEIR_SERVER_OPTIONS(.boss = group));
    int peer = raw_client_connect(server);
    struct call_counter counter = {0};
    int64_t start_ns;

    raw_client_echo(peer, "hello");
    start_ns = weir__monotonic_now();
    for (uint32_t i = 1; i <= 50; i++) {
        assert_int_equal(weir_execute(service.loops[0], call_counter_task, &counter), 0);
        assert_true(call_counter_await(&counter, i));
    }
    assert_true(weir__monotonic_now() - start_ns < weir_seconds(5));
    raw_client_close(peer);
    echo_service_stop(server);
    weir_group_release(group);
}

/* Each of these would wait for ever, or be refused, on an event loop. */
static void wait_for_much(weir_ctx *ctx, weir_msg *msg)
{
    struct slow *slow = slow_of(ctx);
    weir_channel *channel = weir_ctx_channel(ctx), *client = NULL;
    weir_promise *own;

    slow->connected = weir_client_connect_sync(
        WEIR_CLIENT_OPTIONS(.group = slow->group, .addresses = &slow->address, .address_count = 1),
        &client);
    if (client != NULL) {
        weir_channel_close(client, NULL);
        slow->connected = weir_channel_await_closed(client, TEST_TIMEOUT_NS);
        weir_channel_release(client);
    }
    if (weir_promise_create(weir_ctx_executor(ctx), &own) == 0) {
        slow->own_promise = weir_promise_await(own, TEST_TIMEOUT_NS);
        weir_promise_release(own);
    }
    slow->own_loop = weir_client_connect_sync(WEIR_CLIENT_OPTIONS(.loop = weir_ctx_executor(ctx),
                                                                  .addresses = &slow->address,
                                                                  .address_count = 1),
                                              &client);
    slow->own_end = weir_channel_await_closed(channel, TEST_TIMEOUT_NS);
    slow->stopped = weir_server_stop(slow->server, 0, TEST_TIMEOUT_NS);
    slow->ran = weir_server_run(slow->server);
    weir_msg_release(msg);
    call_counter_add(&slow->answered);
}

static const weir_handler waiting = {
    .name = "waiting", .state_size = sizeof(void *), .init = pointer_keep, .read = wait_for_much};

static int init_waiting(weir_channel *channel, void *slow)
{
    return weir_pipeline_add_last(weir_channel_pipeline(channel), &waiting, slow);
}

TEST(blocking, lets_handlers_wait_for_others_but_not_for_themselves)
{
    struct echo_service service = {0};
    struct slow slow = {.group = make_blocking(0)};
    weir_group *group = weir_group_retain(slow.group);
    weir_server *server = echo_service_start(&service, WEIR_SERVER_OPTIONS(.boss = group));
    int peer;

    assert_int_equal(weir_channel_local_address(weir_server_listener(server, 0), &slow.address), 0);
    slow.server = start_slow(&slow, init_waiting, group);
    peer = raw_client_connect(slow.server);
    raw_client_send(peer, "x");
    assert_true(call_counter_await(&slow.answered, 1));
    assert_int_equal(slow.connected, 0);
    assert_int_equal(slow.own_promise, -EDEADLK);
    assert_int_equal(slow.own_loop, -EDEADLK);
    assert_int_equal(slow.own_end, -EDEADLK);
    assert_int_equal(slow.stopped, -EDEADLK);
    assert_int_equal(slow.ran, -EDEADLK);
    raw_client_close(peer);
    await_active(group, 2); /* also what was not waited for is gone: the listeners are left */
    echo_service_stop(server);
    weir_server_release(slow.server);
    weir_group_release(slow.group);
    weir_group_release(group);
}

/* ---- when there is no thread ---- */

TEST(blocking, closes_connections_beyond_its_limit)
{
    struct echo_service service = {0};
    weir_group *group = make_blocking(3); /* one of them is the listener's */
    weir_server *server = echo_service_start(&service, WEIR_SERVER_OPTIONS(.boss = group));
    struct stats stats = stats_from_now("tcp");
    int peers[2], turned_away;

    weir_log_set_level(WEIR_LOG_INFO);
    log_capture_start();
    for (int i = 0; i < 2; i++) {
        peers[i] = raw_client_connect(server);
        raw_client_echo(peers[i], "hello");
    }
    turned_away = raw_client_connect(server);
    raw_client_receive_end(turned_away);
    raw_client_close(turned_away);
    assert_int_equal(stats_of(group).refused, 1);
    assert_int_equal(stats_since(&stats).errors.rejected, 1);
    weir_log_set_level(WEIR_LOG_WARN);
    assert_int_equal(log_capture_count(WEIR_LOG_WARN), 0);
    assert_int_equal(log_capture_count(WEIR_LOG_INFO), 1);
    assert_true(log_capture_last_contains("too many channels"));
    raw_client_echo(peers[0], "still here");
    raw_client_close(peers[0]);
    await_active(group, 2);
    peers[0] = raw_client_connect(server);
    raw_client_echo(peers[0], "hello again");
    for (int i = 0; i < 2; i++)
        raw_client_close(peers[i]);
    echo_service_stop(server);
    weir_group_release(group);
}

TEST(blocking, reports_that_there_is_no_room)
{
    weir_group *group = make_blocking(1), *others = make_blocking(0);
    weir_channel *channel = NULL;
    weir_server *server = NULL, *there = NULL;
    weir_promise *promise = NULL;
    struct echo_service service = {0};

    log_capture_start();
    server = echo_service_start(&service, WEIR_SERVER_OPTIONS(.boss = group, .workers = others));
    assert_int_equal(echo_service_try(&service, WEIR_SERVER_OPTIONS(.boss = group), &there),
                     WEIR_ETOOMANY);
    assert_int_equal(weir_client_connect(
                         WEIR_CLIENT_OPTIONS(.group = group, .address = "127.0.0.1:1"), &promise),
                     WEIR_ETOOMANY);
    assert_null(promise);
    assert_int_equal(weir_tcp_create(NULL, &channel), 0);
    assert_int_equal(weir_promise_create(weir_group_at(others, 0), &promise), 0);
    weir_group_register(group, channel, promise);
    assert_int_equal(weir_promise_sync(promise, TEST_TIMEOUT_NS), WEIR_ETOOMANY);
    assert_false(weir_channel_is_open(channel));
    weir_promise_release(promise);
    weir_channel_release(channel);
    echo_service_stop(server);
    weir_group_release(group);
    weir_group_release(others);
}

/* A registered channel is not closed because another group has no room. */
TEST(blocking, does_not_close_what_has_a_thread)
{
    weir_group *group = make_blocking(1);
    weir_channel *channel = NULL;
    weir_promise *promise = NULL;

    assert_int_equal(weir_tcp_create(NULL, &channel), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(weir_promise_create(NULL, &promise), 0);
        weir_group_register(group, channel, promise);
        assert_int_equal(weir_promise_sync(promise, TEST_TIMEOUT_NS), i == 0 ? 0 : -EALREADY);
        weir_promise_release(promise);
    }
    assert_true(weir_channel_is_open(channel));
    weir_channel_abort(channel, NULL);
    assert_int_equal(weir_channel_await_closed(channel, TEST_TIMEOUT_NS), 0);
    weir_channel_release(channel);
    await_active(group, 0);
    end_group(group);
}

static void turn_one_away(weir_server *server)
{
    int peer = raw_client_connect(server);

    raw_client_receive_end(peer);
    raw_client_close(peer);
}

TEST(blocking, continues_when_a_thread_cannot_be_started)
{
    static struct thread_factory_fixture fixture;
    struct echo_service service = {0};
    weir_group *group = NULL;
    weir_server *server;
    int peer;

    log_capture_start();
    thread_factory_open(&fixture);
    assert_int_equal(
        weir_group_create(WEIR_GROUP_OPTIONS(BLOCKING, .thread_factory = &fixture.factory), &group),
        0);
    server = echo_service_start(&service, WEIR_SERVER_OPTIONS(.boss = group));
    atomic_store(&fixture.answer, -EAGAIN);
    turn_one_away(server);
    turn_one_away(server);
    atomic_store(&fixture.answer, 0);
    await_active(group, 1);
    peer = raw_client_connect(server);
    raw_client_echo(peer, "hello");
    raw_client_close(peer);
    assert_int_equal(service.opened.calls, 1);
    echo_service_stop(server);
    weir_group_release(group);
    thread_factory_close(&fixture);
}

TEST(blocking, continues_without_a_descriptor_for_another_executor)
{
    struct echo_service service = {0};
    weir_group *group;
    weir_server *server;
    int peer;

    log_capture_start();
    faults_install();
    group = make_blocking(0);
    server = echo_service_start(&service, WEIR_SERVER_OPTIONS(.boss = group));
    faults_inject(FAULT_EVENTFD, 1, 2, EMFILE);
    turn_one_away(server);
    turn_one_away(server);
    assert_int_equal(faults_injected(), 2);
    assert_int_equal(log_capture_count(WEIR_LOG_WARN), 2);
    peer = raw_client_connect(server);
    raw_client_echo(peer, "hello");
    raw_client_close(peer);
    echo_service_stop(server);
    weir_group_release(group);
    global_executor_stop(); /* it may be the last to hold the loops */
    faults_remove();
}

/* ---- clients ---- */

/* All attempts of a race share one thread, which is released in any case. */
TEST(blocking, gives_a_client_one_thread_for_all_its_addresses)
{
    struct echo_service service = {0};
    weir_group *group = make_blocking(0), *servers = make_blocking(0);
    weir_server *server = echo_service_start(&service, WEIR_SERVER_OPTIONS(.boss = servers));
    weir_channel *client = NULL;
    weir_address addresses[3] = {unused_address(), unused_address()};

    assert_int_equal(
        weir_client_connect_sync(
            WEIR_CLIENT_OPTIONS(.group = group, .addresses = addresses, .address_count = 2),
            &client),
        -ECONNREFUSED);
    await_active(group, 0);
    assert_int_equal(weir_channel_local_address(weir_server_listener(server, 0), &addresses[2]), 0);
    assert_int_equal(
        weir_client_connect_sync(
            WEIR_CLIENT_OPTIONS(.group = group, .addresses = addresses, .address_count = 3),
            &client),
        0);
    await_active(group, 1);
    assert_int_equal(weir_group_count(group), 1);
    weir_channel_close(client, NULL);
    assert_int_equal(weir_channel_await_closed(client, TEST_TIMEOUT_NS), 0);
    weir_channel_release(client);
    await_active(group, 0);
    echo_service_stop(server);
    end_group(group);
    weir_group_release(servers);
}

TEST(blocking, releases_the_thread_of_a_cancelled_client)
{
    weir_group *group = make_blocking(0);
    struct silent_address silent;
    weir_promise *connecting = NULL;

    silent_address_init(&silent);
    assert_int_equal(
        weir_client_connect(
            WEIR_CLIENT_OPTIONS(.group = group, .addresses = &silent.address, .address_count = 1),
            &connecting),
        0);
    assert_int_equal(stats_of(group).active, 1);
    assert_int_equal(weir_promise_cancel(connecting), 0);
    await_active(group, 0);
    weir_promise_release(connecting);
    silent_address_deinit(&silent);
    end_group(group);
}

/* A channel that has a thread is refused another registration, and leaves it all the same. */
TEST(blocking, keeps_no_thread_for_a_registration_that_is_refused)
{
    struct echo_service service = {0};
    weir_group *group = make_blocking(0);
    weir_server *server = echo_service_start(&service, WEIR_SERVER_OPTIONS(.boss = group));
    weir_channel *listener = weir_server_listener(server, 0);
    weir_promise *done = NULL;

    assert_int_equal(weir_promise_create(NULL, &done), 0);
    weir_channel_register(listener, weir_channel_executor(listener), done);
    assert_int_equal(weir_promise_sync(done, TEST_TIMEOUT_NS), -EALREADY);
    weir_promise_release(done);
    weir_server_close(server);
    await_active(group, 0);
    weir_server_release(server);
    end_group(group);
}

TEST(blocking, leases_nothing_for_invalid_options)
{
    weir_group *group = make_blocking(0);
    weir_promise *connecting = NULL;

    log_capture_start();
    assert_int_equal(
        weir_client_connect(WEIR_CLIENT_OPTIONS(.group = group, .address = "127.0.0.1:1",
                                                .local_address = "nonsense"),
                            &connecting),
        -EINVAL);
    assert_null(connecting);
    assert_int_equal(stats_of(group).active, 0);
    end_group(group);
}

/* ---- what needs a next one ---- */

static void *no_work(void *arg)
{
    return arg;
}

static void no_result(weir_ctx *ctx, int err, void *result, void *arg)
{
    (void)ctx;
    (void)err;
    (void)result;
    (void)arg;
}

static void offload_there(weir_ctx *ctx, weir_msg *msg)
{
    struct slow *slow = slow_of(ctx);

    slow->connected = weir_ctx_offload(ctx, slow->group, no_work, no_result, NULL);
    weir_msg_release(msg);
    call_counter_add(&slow->answered);
}

static const weir_handler offloader = {
    .name = "offload", .state_size = sizeof(void *), .init = pointer_keep, .read = offload_there};

static int init_offloader(weir_channel *channel, void *slow)
{
    return weir_pipeline_add_last(weir_channel_pipeline(channel), &offloader, slow);
}

TEST(blocking, is_no_group_to_offload_to)
{
    struct slow slow = {.group = make_blocking(0)};
    weir_server *server = start_slow(&slow, init_offloader, slow.group);
    weir_channel *channel = NULL;
    weir_resolver *resolver = NULL;
    int peer = raw_client_connect(server);

    raw_client_send(peer, "x");
    assert_true(call_counter_await(&slow.answered, 1));
    assert_int_equal(slow.connected, -ENOTSUP);
    assert_int_equal(weir_tcp_create(NULL, &channel), 0);
    assert_int_equal(weir_pipeline_add(weir_channel_pipeline(channel),
                                       WEIR_PLACE(.group = slow.group), &at_gate, &slow),
                     -ENOTSUP);
    weir_channel_release(channel);
    assert_int_equal(
        weir_resolver_create_system(WEIR_RESOLVER_OPTIONS(.group = slow.group), &resolver),
        -ENOTSUP);
    assert_null(resolver);
    raw_client_close(peer);
    echo_service_stop(server);
    weir_group_release(slow.group);
}

/* ---- many at once ---- */

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define ROUNDS 40
#else
#define ROUNDS 200
#endif

struct crowd {
    weir_address address;
    unsigned served;
    unsigned turned_away;
};

static bool visit(const weir_address *address)
{
    int peer = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct pollfd ready = {.fd = peer, .events = POLLIN};
    char byte = 'x';
    bool is_served = connect(peer, weir_address_sockaddr(address), address->length) == 0 &&
                     send(peer, &byte, 1, MSG_NOSIGNAL) == 1 && poll(&ready, 1, 10000) == 1 &&
                     recv(peer, &byte, 1, 0) == 1;

    (void)close(peer);
    return is_served;
}

static void come_and_go(void *arg)
{
    struct crowd *crowd = arg;

    for (int i = 0; i < ROUNDS; i++) {
        bool is_served = visit(&crowd->address);

        crowd->served += is_served;
        crowd->turned_away += !is_served;
    }
}

/* Threads are leased and released all the time; each connection is served, or refused. */
TEST(blocking, serves_or_refuses_each_client)
{
    enum { THREADS = 4 };
    struct echo_service service = {0};
    weir_group *group = make_blocking(4);
    weir_server *server = echo_service_start(&service, WEIR_SERVER_OPTIONS(.boss = group));
    struct crowd crowds[THREADS];
    weir__thread threads[THREADS];
    unsigned served = 0, turned_away = 0;
    weir_address address;

    log_capture_start();
    assert_int_equal(weir_channel_local_address(weir_server_listener(server, 0), &address), 0);
    for (int i = 0; i < THREADS; i++) {
        crowds[i] = (struct crowd){.address = address};
        assert_int_equal(weir__thread_start("crowd", come_and_go, &crowds[i], &threads[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        weir__thread_join(&threads[i]);
        served += crowds[i].served;
        turned_away += crowds[i].turned_away;
    }
    await_active(group, 1);
    assert_true(served > 0);
    assert_int_equal(turned_away, stats_of(group).refused);
    assert_int_equal(service.opened.calls, served);
    assert_int_equal(service.closed.calls, served);
    assert_true(weir_group_count(group) <= 4);
    echo_service_stop(server);
    weir_group_release(group);
}

/* ---- the end ---- */

TEST(blocking, drains_all_its_threads)
{
    enum { VISITORS = 8 };
    struct echo_service service = {0};
    weir_group *boss = make_blocking(0), *workers = make_blocking(0);
    weir_server *server =
        echo_service_start(&service, WEIR_SERVER_OPTIONS(.boss = boss, .workers = workers));
    int peers[VISITORS];

    for (int i = 0; i < VISITORS; i++) {
        peers[i] = raw_client_connect(server);
        raw_client_echo(peers[i], "hello");
    }
    raw_client_close(peers[0]); /* its thread idles */
    await_active(workers, VISITORS - 1);
    echo_service_stop(server);
    assert_int_equal(service.closed.calls, VISITORS);
    assert_int_equal(stats_of(workers).threads, 0);
    assert_int_equal(stats_of(workers).active, 0);
    for (int i = 1; i < VISITORS; i++) {
        raw_client_receive_end(peers[i]);
        raw_client_close(peers[i]);
    }
    weir_group_release(boss);
    weir_group_release(workers);
}

TEST(blocking, leaves_no_descriptor)
{
    size_t descriptors = descriptors_open();
    struct echo_service service = {0};
    weir_group *group = make_blocking(0);
    weir_server *server = echo_service_start(&service, WEIR_SERVER_OPTIONS(.boss = group));
    int peer = raw_client_connect(server);

    raw_client_echo(peer, "hello");
    raw_client_close(peer);
    echo_service_stop(server);
    weir_group_release(group);
    global_executor_stop();
    assert_true(descriptors_await(descriptors));
}
