/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Servers on a loop of the caller's: one that the test's thread runs, and one with its own thread.
 */
#include <weir/server.h>

#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include <weir/error.h>
#include <weir/loop.h>

#include "support/bootstrap/echo_service.h"
#include "support/bootstrap/raw_client.h"
#include "support/executor/group.h"
#include "support/executor/log_capture.h"
#include "support/executor/run_on_thread.h"
#include "support/loop/host.h"
#include "support/memory.h"

static weir_executor *make_loop(const struct host *host)
{
    weir_executor *loop = NULL;

    assert_int_equal(weir_loop_create(WEIR_LOOP_OPTIONS(.io = host->backend->io), &loop), 0);
    return loop;
}

/* Runs the loop until the counter has reached 1. */
static void run_until(weir_executor *loop, struct call_counter *counter)
{
    for (int i = 0; i < 1000 && atomic_load(&counter->calls) == 0; i++)
        assert_true(weir_loop_run_once(loop, weir_ms(10)) >= 0);
    assert_int_equal(counter->calls, 1);
}

TEST_EACH_LOOP(server_loop, serves_while_the_caller_runs_the_loop)
{
    struct echo_service service = {0};
    weir_executor *loop = make_loop(host);
    weir_server *server = echo_service_start(&service, WEIR_SERVER_OPTIONS(.loop = loop));
    int peer = raw_client_connect(server);

    raw_client_send(peer, "hello");
    run_until(loop, &service.opened);
    for (int i = 0; i < 5; i++)
        assert_true(weir_loop_run_once(loop, weir_ms(10)) >= 0);
    raw_client_receive(peer, "hello");
    assert_ptr_equal(service.loops[0], loop);
    assert_ptr_equal(weir_channel_executor(weir_server_listener(server, 0)), loop);
    raw_client_close(peer);
    run_until(loop, &service.closed);
    echo_service_stop(server);
    assert_int_equal(weir_executor_state(loop), WEIR_EXECUTOR_TERMINATED);
    weir_executor_release(loop);
}

TEST_EACH_LOOP(server_loop, is_drained_by_stop)
{
    struct echo_service service = {.drains_itself = true};
    weir_executor *loop = make_loop(host);
    weir_server *server = echo_service_start(&service, WEIR_SERVER_OPTIONS(.loop = loop));
    int peer = raw_client_connect(server);

    run_until(loop, &service.opened);
    assert_int_equal(weir_server_stop(server, 0, weir_ms(200)), 0);
    assert_int_equal(service.drained.calls, 1);
    assert_int_equal(service.closed.calls, 1);
    raw_client_receive_end(peer);
    raw_client_close(peer);
    assert_int_equal(weir_server_stop(server, 0, 0), 0); /* again: there is nothing to do */
    weir_server_release(server);
    weir_executor_release(loop);
}

/* ---- weir_server_run ---- */

static void terminate(void *arg, int status)
{
    struct echo_service *service = arg;

    if (status == 0 && call_counter_await(&service->opened, 1))
        (void)kill(getpid(), SIGTERM);
}

TEST_EACH_LOOP(server_loop, is_run_by_weir_server_run)
{
    struct echo_service service = {0};
    weir_group *other = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 1));
    weir_executor *loop = make_loop(host);
    weir_server *server = echo_service_start(&service, WEIR_SERVER_OPTIONS(.loop = loop));
    int peer = raw_client_connect(server);
    sigset_t signals;

    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    assert_int_equal(pthread_sigmask(SIG_BLOCK, &signals, NULL), 0);
    assert_int_equal(weir_group_execute(other, terminate, &service), 0);
    assert_int_equal(weir_server_run(server), 0);
    assert_int_equal(pthread_sigmask(SIG_UNBLOCK, &signals, NULL), 0);
    assert_int_equal(service.closed.calls, 1);
    assert_int_equal(weir_executor_state(loop), WEIR_EXECUTOR_TERMINATED);
    raw_client_receive_end(peer);
    raw_client_close(peer);
    weir_server_release(server);
    weir_executor_release(loop);
    end_group(other);
}

static void close_server(void *server, int status)
{
    (void)status;
    weir_server_close(server);
}

TEST_EACH_LOOP(server_loop, run_returns_when_it_is_closed)
{
    struct echo_service service = {0};
    weir_executor *loop = make_loop(host);
    weir_server *server = echo_service_start(&service, WEIR_SERVER_OPTIONS(.loop = loop));

    assert_int_equal(weir_execute(loop, close_server, server), 0);
    assert_int_equal(weir_server_run(server), 0);
    weir_server_release(server);
    weir_executor_release(loop);
}

struct inside {
    weir_server *server;
    int stop_err;
    int run_err;
};

static void stop_inside(void *arg, int status)
{
    struct inside *inside = arg;

    (void)status;
    inside->stop_err = weir_server_stop(inside->server, 0, 0);
    inside->run_err = weir_server_run(inside->server);
}

TEST_EACH_LOOP(server_loop, cannot_be_waited_for_inside_the_loop)
{
    struct echo_service service = {0};
    weir_executor *loop = make_loop(host);
    struct inside inside = {.server =
                                echo_service_start(&service, WEIR_SERVER_OPTIONS(.loop = loop))};

    assert_int_equal(weir_execute(loop, stop_inside, &inside), 0);
    assert_true(weir_loop_run_once(loop, 0) >= 0);
    assert_int_equal(inside.stop_err, -EDEADLK);
    assert_int_equal(inside.run_err, -EDEADLK);
    echo_service_stop(inside.server);
    weir_executor_release(loop);
}

/* ---- a loop with its own thread ---- */

TEST_EACH_LOOP(server_loop, may_be_one_of_a_group)
{
    struct echo_service service = {0};
    weir_server *server = echo_service_start(&service, WEIR_SERVER_OPTIONS(.loop = host->loop));
    int peer = raw_client_connect(server);

    raw_client_echo(peer, "hello");
    assert_true(call_counter_await(&service.opened, 1));
    assert_ptr_equal(service.loops[0], host->loop);
    raw_client_close(peer);
    echo_service_stop(server);
    assert_int_equal(weir_executor_state(host->loop), WEIR_EXECUTOR_TERMINATED);
}

/* ---- errors ---- */

TEST_EACH_LOOP(server_loop, rejects_groups_and_acceptors)
{
    struct echo_service service = {0};
    weir_server *server = NULL;

    log_capture_start();
    assert_int_equal(echo_service_try(&service,
                                      WEIR_SERVER_OPTIONS(.loop = host->loop, .boss = host->group),
                                      &server),
                     -EINVAL);
    assert_true(log_capture_last_contains("mutually exclusive"));
    assert_int_equal(echo_service_try(&service,
                                      WEIR_SERVER_OPTIONS(.loop = host->loop, .acceptors = 2),
                                      &server),
                     -EINVAL);
    assert_true(log_capture_last_contains("mutually exclusive"));
    assert_null(server);
}

TEST_EACH_LOOP(server_loop, reports_an_address_in_use)
{
    struct echo_service service = {0};
    weir_executor *loop = make_loop(host);
    weir_server *server = echo_service_start(&service, WEIR_SERVER_OPTIONS(.loop = loop));
    weir_server *second = NULL;
    char text[WEIR_ADDRESS_TEXT_SIZE];
    weir_address address;

    log_capture_start();
    assert_int_equal(weir_channel_local_address(weir_server_listener(server, 0), &address), 0);
    (void)weir_address_format(&address, text, sizeof(text));
    assert_int_equal(
        echo_service_try(&service, WEIR_SERVER_OPTIONS(.loop = loop, .address = text), &second),
        -EADDRINUSE);
    assert_null(second);
    echo_service_stop(server);
    weir_executor_release(loop);
}

/* A listener that was never registered closes on the global executor: that must end the wait. */
TEST_EACH_LOOP(server_loop, start_survives_each_failed_allocation)
{
    bool failed = true;

    log_capture_start();
    for (unsigned n = 1; failed; n++) {
        struct echo_service service = {0};
        weir_executor *loop = make_loop(host);
        weir_server *server = NULL;
        int err;

        test_memory_fail_at(n);
        err = echo_service_try(&service, WEIR_SERVER_OPTIONS(.loop = loop), &server);
        failed = test_memory_failed();
        test_memory_fail_at(0);
        if (err == 0)
            echo_service_stop(server);
        else
            assert_int_equal(err, -ENOMEM);
        weir_executor_release(loop);
    }
}
