/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server whose process has run out of memory. Connections end all the same, without an
 * allocation, so that what they hold becomes free; data that came meanwhile waits.
 */
#include <errno.h>
#include <unistd.h>

#include <weir/server.h>

#include "os/clock.h"
#include "os/thread.h"
#include "support/bootstrap/echo_service.h"
#include "support/bootstrap/raw_client.h"
#include "support/executor/log_capture.h"
#include "support/loop/host.h"
#include "support/loop/sockets.h"
#include "support/memory.h"
#include "support/timeout.h"

#define VISITORS 24

/* Connections that were never read from: their loop has no receive buffer yet. */
static weir_server *start_idle(struct host *host, struct echo_service *service, int *ret_visitors)
{
    weir_server *server = echo_service_start(service, WEIR_SERVER_OPTIONS(.boss = host->group));

    for (unsigned i = 0; i < VISITORS; i++)
        ret_visitors[i] = raw_client_connect(server);
    assert_true(call_counter_await(&service->opened, VISITORS));
    host_turn(host, 2); /* what allocates after `active` is through */
    return server;
}

static void expect_service(weir_server *server)
{
    int peer = raw_client_connect(server);

    raw_client_echo(peer, "hello");
    raw_client_close(peer);
}

static void await_failure(void)
{
    int64_t give_up_ns = weir__monotonic_now() + TEST_TIMEOUT_NS;

    while (!test_memory_failed()) {
        assert_true(weir__monotonic_now() < give_up_ns);
        weir__thread_sleep(weir_ms(1));
    }
}

TEST_EACH_HOST(out_of_memory, connections_that_end_are_gone)
{
    struct echo_service service = {0};
    int peers[VISITORS];
    weir_server *server = start_idle(host, &service, peers);

    log_capture_start();
    test_memory_fail_all(true);
    for (unsigned i = 0; i < VISITORS; i++) {
        if (i % 2 == 0)
            raw_client_close(peers[i]);
        else
            socket_reset(peers[i]);
    }
    assert_true(call_counter_await_for(&service.closed, VISITORS, TEST_TIMEOUT_NS));
    test_memory_fail_all(false);
    expect_service(server);
    echo_service_stop(server);
}

/* True when a byte has arrived; false at the end of the connection. */
static bool await_byte(int peer)
{
    ssize_t length;
    char byte;

    do
        length = recv(peer, &byte, 1, MSG_PEEK);
    while (length < 0 && errno == EINTR); /* by a ring that this thread has closed */
    return length > 0;
}

/*
 * A ring receives into buffers that it has, and delivers the data at once: then the answer may find
 * no memory, and the connection is closed.
 */
static void expect_answer(const struct host *host, int peer)
{
    if (host->backend->io == WEIR_IO_URING && !await_byte(peer))
        return;
    raw_client_receive(peer, "hello");
}

TEST_EACH_HOST(out_of_memory, data_is_delivered_when_memory_returns)
{
    struct echo_service service = {0};
    int peers[VISITORS];
    weir_server *server = start_idle(host, &service, peers);

    log_capture_start();
    test_memory_fail_all(true);
    for (unsigned i = 0; i < VISITORS; i++)
        raw_client_send(peers[i], "hello");
    await_failure();
    test_memory_fail_all(false);
    for (unsigned i = 0; i < VISITORS; i++) {
        expect_answer(host, peers[i]);
        raw_client_close(peers[i]);
    }
    expect_service(server);
    echo_service_stop(server);
}
