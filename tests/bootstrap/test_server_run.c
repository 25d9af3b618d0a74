/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Serving until the listener is closed or a signal comes. A signal that is blocked waits, so the
 * tests send it before there is anybody to hear it.
 */
#include <weir/server.h>

#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include <weir/error.h>
#include <weir/watch.h>

#include "os/clock.h"
#include "support/bootstrap/echo_service.h"
#include "support/bootstrap/raw_client.h"
#include "support/executor/group.h"
#include "support/executor/log_capture.h"
#include "support/loop/host.h"
#include "support/loop/sockets.h"
#include "support/memory.h"

static void mask(int how, int number)
{
    sigset_t signals;

    sigemptyset(&signals);
    sigaddset(&signals, number);
    assert_int_equal(pthread_sigmask(how, &signals, NULL), 0);
}

static bool is_blocked(int number)
{
    sigset_t blocked;

    assert_int_equal(pthread_sigmask(SIG_BLOCK, NULL, &blocked), 0);
    return sigismember(&blocked, number) == 1;
}

static void send_blocked(int number)
{
    mask(SIG_BLOCK, number);
    assert_int_equal(kill(getpid(), number), 0);
}

TEST_EACH_LOOP(run, serves_until_the_listener_is_closed)
{
    struct echo_service service = {0};
    weir_server *server = echo_service_start(&service, WEIR_SERVER_OPTIONS(.boss = host->group));

    weir_server_close(server);
    assert_int_equal(weir_server_run(server), 0);
    assert_int_equal(weir_group_state(host->group), WEIR_EXECUTOR_TERMINATED);
    assert_false(is_blocked(SIGTERM));
    weir_server_release(server);
}

static void run_until(struct host *host, int number)
{
    struct echo_service service = {0};
    weir_server *server = echo_service_start(&service, WEIR_SERVER_OPTIONS(.boss = host->group));
    int peer = raw_client_connect(server);

    raw_client_echo(peer, "x");
    send_blocked(number);
    assert_int_equal(weir_server_run(server), 0);
    mask(SIG_UNBLOCK, number);
    assert_int_equal(weir_group_state(host->group), WEIR_EXECUTOR_TERMINATED);
    raw_client_receive_end(peer);
    raw_client_close(peer);
    assert_int_equal(service.closed.calls, 1);
    weir_server_release(server);
}

TEST_EACH_LOOP(run, drains_on_sigterm)
{
    run_until(host, SIGTERM);
}

/* The connection has a handler that would drain for ever. */
TEST_EACH_LOOP(run, drains_as_long_as_it_is_told)
{
    struct echo_service service = {.drains_itself = true};
    weir_server *server = echo_service_start(
        &service, WEIR_SERVER_OPTIONS(.boss = host->group, .drain_timeout_ns = weir_ms(50)));
    int peer = raw_client_connect(server);
    int64_t begin_ns;

    raw_client_echo(peer, "x");
    send_blocked(SIGTERM);
    begin_ns = weir__monotonic_now();
    assert_int_equal(weir_server_run(server), 0);
    mask(SIG_UNBLOCK, SIGTERM);
    assert_true(weir__monotonic_now() - begin_ns >= weir_ms(50));
    assert_true(weir__monotonic_now() - begin_ns < weir_seconds(5));
    raw_client_receive_end(peer);
    raw_client_close(peer);
    weir_server_release(server);
}

TEST_EACH_LOOP(run, drains_on_sigint)
{
    run_until(host, SIGINT);
}

static void signal_again(void *arg, int status)
{
    struct echo_service *service = arg;

    if (status == 0 && call_counter_await(&service->drained, 1))
        (void)kill(getpid(), SIGINT);
}

TEST_EACH_LOOP(run, aborts_on_the_second_signal)
{
    struct echo_service service = {.drains_itself = true};
    weir_group *elsewhere = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 1)), *workers = NULL;
    weir_server *server;
    int64_t start_ns;
    int peer;

    assert_int_equal(
        weir_group_create(WEIR_GROUP_OPTIONS(.io = host->backend->io, .threads = 2), &workers), 0);
    server =
        echo_service_start(&service, WEIR_SERVER_OPTIONS(.boss = host->group, .workers = workers));
    peer = raw_client_connect(server);
    raw_client_echo(peer, "x");
    assert_int_equal(weir_group_execute(elsewhere, signal_again, &service), 0);
    start_ns = weir__monotonic_now();
    send_blocked(SIGTERM);
    assert_int_equal(weir_server_run(server), 0);
    mask(SIG_UNBLOCK, SIGTERM);
    assert_true(weir__monotonic_now() - start_ns < weir_seconds(5));
    assert_int_equal(service.closed.calls, 1);
    raw_client_receive_end(peer);
    raw_client_close(peer);
    weir_server_release(server);
    weir_group_release(workers);
    end_group(elsewhere);
}

static void on_signal(weir_signals *signals, const weir_signal *signal, void *server)
{
    (void)signals;
    (void)signal;
    weir_server_close(server);
}

TEST_EACH_LOOP(run, ignores_signals_that_the_program_watches)
{
    struct echo_service service = {0};
    weir_server *server = echo_service_start(&service, WEIR_SERVER_OPTIONS(.boss = host->group));
    struct host other;
    weir_signals *signals = NULL;

    host_open(&other, BACKEND_EPOLL);
    assert_int_equal(
        weir_signals_create(
            other.loop,
            WEIR_SIGNALS_OPTIONS(.numbers = {SIGTERM}, .received = on_signal, .user_data = server),
            &signals),
        0);
    assert_int_equal(kill(getpid(), SIGTERM), 0);
    assert_int_equal(weir_server_run(server), 0);
    weir_signals_release(signals);
    host_close(&other);
    weir_server_release(server);
}

/* Clients that have come since the start may have the last descriptors. */
TEST_EACH_LOOP(run, ends_by_a_signal_without_free_descriptors)
{
    struct echo_service service = {0};
    weir_server *server = echo_service_start(&service, WEIR_SERVER_OPTIONS(.boss = host->group));
    rlim_t limit = descriptors_forbid();

    send_blocked(SIGTERM);
    assert_int_equal(weir_server_run(server), 0);
    descriptors_limit(limit);
    mask(SIG_UNBLOCK, SIGTERM);
    assert_int_equal(weir_group_state(host->group), WEIR_EXECUTOR_TERMINATED);
    weir_server_release(server);
}

TEST_EACH_LOOP(run, survives_every_failed_allocation)
{
    bool failed = true;

    log_capture_start();
    for (unsigned n = 1; failed; n++) {
        struct echo_service service = {0};
        struct host other;
        weir_server *server;
        int err;

        host_open(&other, (enum backend_id)(host->backend - backends));
        server = echo_service_start(&service, WEIR_SERVER_OPTIONS(.boss = other.group));
        weir_server_close(server);
        assert_int_equal(
            weir_channel_await_closed(weir_server_listener(server, 0), TEST_TIMEOUT_NS), 0);
        test_memory_fail_at(n);
        err = weir_server_run(server);
        failed = test_memory_failed();
        test_memory_fail_at(0);
        assert_true(err == 0 || (failed && err == -ENOMEM));
        weir_server_release(server);
        host_close(&other);
    }
}
