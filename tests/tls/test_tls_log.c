/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients that make mistakes, and a server whose standard error nobody reads.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <weir/log.h>
#include <weir/pipeline.h>
#include <weir/server.h>
#include <weir/tls.h>

#include "support/executor/log_capture.h"
#include "support/loop/host.h"
#include "support/tls/tls_caller.h"
#include "support/tls/tls_line.h"

#define CLIENTS 650

/* ---- a server, whose handler leaves errors to the tail ---- */

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    weir_write_and_flush(ctx, msg, NULL);
}

static const weir_handler echo = {.name = "echo", .read = on_read};

static int init_child(weir_channel *channel, void *setup)
{
    weir_pipeline *pipeline = weir_channel_pipeline(channel);
    int err = weir_tls_add(pipeline, ((struct tls_setup *)setup)->server);

    return err < 0 ? err : weir_pipeline_add_last(pipeline, &echo, NULL);
}

static weir_server *start_server(struct host *host, struct tls_setup *setup)
{
    weir_server *server = NULL;

    assert_int_equal(
        weir_server_start(WEIR_SERVER_OPTIONS(.boss = host->group, .address = "127.0.0.1:0",
                                              .init_child = init_child, .user_data = setup),
                          &server),
        0);
    return server;
}

static void stop_server(weir_server *server)
{
    assert_int_equal(weir_server_stop(server, 0, TEST_TIMEOUT_NS), 0);
    weir_server_release(server);
}

/* ---- clients that do not speak TLS ---- */

static int connect_plainly(weir_server *server)
{
    const struct timeval patience = {.tv_sec = TEST_TIMEOUT_NS / 1000000000};
    int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    weir_address address;

    assert_int_equal(weir_channel_local_address(weir_server_listener(server, 0), &address), 0);
    assert_true(client >= 0);
    assert_int_equal(setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)), 0);
    while (connect(client, (const struct sockaddr *)&address.storage, address.length) < 0)
        if (errno != EINTR && errno != EALREADY)
            break;
    return client;
}

/* False if the server does not end the connection. */
static bool is_hung_up_on(int client)
{
    char bytes[64];
    ssize_t length;

    do
        length = recv(client, bytes, sizeof(bytes), 0);
    while (length > 0 || (length < 0 && errno == EINTR));
    return length == 0 || errno == ECONNRESET;
}

static bool make_mistake(weir_server *server)
{
    static const char request[] = "GET / HTTP/1.1\r\n\r\n";
    int client = connect_plainly(server);
    bool is_answered;

    (void)send(client, request, strlen(request), MSG_NOSIGNAL);
    is_answered = is_hung_up_on(client);
    close(client);
    return is_answered;
}

/* ---- standard error ---- */

static int saved_stderr = -1;

static void restore_stderr(void)
{
    weir_log_set_level(WEIR_LOG_WARN);
    if (saved_stderr < 0)
        return;
    dup2(saved_stderr, STDERR_FILENO);
    close(saved_stderr);
    saved_stderr = -1;
}

__attribute__((constructor)) static void restore_stderr_after_each_test(void)
{
    test_before_leak_check(restore_stderr);
}

/* A pipe that is full. Returns its other end. */
static int stall_stderr(void)
{
    int ends[2];

    assert_int_equal(pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0);
    while (write(ends[1], "x", 1) == 1)
        continue;
    assert_int_equal(fcntl(ends[1], F_SETFL, 0), 0);
    saved_stderr = dup(STDERR_FILENO);
    dup2(ends[1], STDERR_FILENO);
    close(ends[1]);
    return ends[0];
}

/* ---- tests ---- */

/* Nothing is asserted while standard error is full: a failure could not be printed. */
TEST_EACH_HOST(tls_log, clients_do_not_stop_a_server_whose_log_nobody_reads)
{
    struct tls_setup setup;
    struct tls_call call = {.text = "still here"};
    uint64_t before = weir_log_dropped();
    weir_server *server;
    int answered = 0, end;

    tls_setup_open(&setup);
    server = start_server(host, &setup);
    end = stall_stderr();
    for (int i = 0; i < CLIENTS && answered == i; i++) {
        weir_log_set_level(i % 2 == 0 ? WEIR_LOG_WARN : WEIR_LOG_DEBUG);
        answered += make_mistake(server);
    }
    restore_stderr();
    close(end);
    assert_int_equal(answered, CLIENTS);
    assert_in_range(weir_log_dropped() - before, 10, CLIENTS);

    call.tls = setup.client;
    tls_call_run(host->group, server, &call);
    assert_string_equal(call.received, "still here");
    stop_server(server);
    tls_setup_close(&setup);
}

/* The message comes before the connection ends. */
TEST_EACH_HOST(tls_log, mistakes_of_clients_are_below_the_default_level_and_limited)
{
    struct tls_setup setup;
    weir_server *server;

    tls_setup_open(&setup);
    server = start_server(host, &setup);
    log_capture_start();
    for (int i = 0; i < 3; i++)
        assert_true(make_mistake(server));
    assert_int_equal(log_capture_count(WEIR_LOG_WARN), 0);

    weir_log_set_level(WEIR_LOG_INFO);
    log_capture_start();
    for (int i = 0; i < 30; i++)
        assert_true(make_mistake(server));
    assert_int_equal(log_capture_count(WEIR_LOG_WARN), 0);
    assert_int_equal(log_capture_count(WEIR_LOG_INFO), 10);
    stop_server(server);
    tls_setup_close(&setup);
}

TEST_EACH_HOST(tls_log, a_message_names_both_ends_of_the_connection)
{
    char local[WEIR_ADDRESS_TEXT_SIZE], expected[2 * WEIR_ADDRESS_TEXT_SIZE + 16];
    weir_address address = {.length = sizeof(address.storage)};
    struct tls_setup setup;
    weir_server *server;
    int client;

    tls_setup_open(&setup);
    server = start_server(host, &setup);
    weir_log_set_level(WEIR_LOG_INFO);
    log_capture_start();
    client = connect_plainly(server);
    assert_int_equal(getsockname(client, (struct sockaddr *)&address.storage, &address.length), 0);
    weir_address_format(&address, local, sizeof(local));
    assert_true(send(client, "hello hello hello", 17, MSG_NOSIGNAL) == 17);
    assert_true(is_hung_up_on(client));
    close(client);

    assert_int_equal(weir_channel_local_address(weir_server_listener(server, 0), &address), 0);
    (void)snprintf(expected, sizeof(expected), " (%s -> ", local);
    assert_log_contains(expected);
    (void)snprintf(expected, sizeof(expected),
                   " -> %s): ", weir_address_format(&address, local, sizeof(local)));
    assert_log_contains(expected);
    stop_server(server);
    tls_setup_close(&setup);
}
