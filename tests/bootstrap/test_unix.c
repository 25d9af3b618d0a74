/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Servers and clients with Unix addresses, of every kind.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <weir/buf.h>
#include <weir/client.h>
#include <weir/datagram.h>
#include <weir/pipeline.h>
#include <weir/server.h>
#include <weir/transport.h>

#include "support/bootstrap/echo_service.h"
#include "support/channel/test_channel.h"
#include "support/executor/group.h"
#include "support/executor/log_capture.h"
#include "support/loop/host.h"

static char address[WEIR_ADDRESS_TEXT_SIZE];

/* A file that nobody has. */
static void choose_path(void)
{
    static unsigned number;

    (void)snprintf(address, sizeof(address), "unix:/tmp/weir-bootstrap-%d-%u", (int)getpid(),
                   number++);
}

static bool has_file(void)
{
    return access(address + strlen("unix:"), F_OK) == 0;
}

/* ---- a client ---- */

static struct call_counter answered; /* by what was asked */

static weir_buf *bytes_of(weir_msg *msg)
{
    weir_datagram *datagram = weir_datagram_of(msg);

    return datagram != NULL ? weir_datagram_buf(datagram) : weir_buf_of(msg);
}

static void on_active(weir_ctx *ctx)
{
    weir_write_and_flush(ctx, text_msg("hello"), NULL);
}

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    const weir_buf *buf = bytes_of(msg);

    (void)ctx;
    if (weir_buf_readable(buf) == 5 && memcmp(weir_buf_bytes(buf), "hello", 5) == 0)
        call_counter_add(&answered);
    weir_msg_release(msg);
}

static const weir_handler asker = {.name = "asker", .active = on_active, .read = on_read};

static int init_client(weir_channel *channel, void *user_data)
{
    (void)user_data;
    return weir_pipeline_add_last(weir_channel_pipeline(channel), &asker, NULL);
}

static weir_channel *ask(struct host *host, enum weir_kind kind)
{
    weir_channel *client;

    answered = (struct call_counter){0};
    assert_int_equal(
        weir_client_connect_sync(WEIR_CLIENT_OPTIONS(.group = host->group, .address = address,
                                                     .kind = kind, .init = init_client),
                                 &client),
        0);
    assert_true(call_counter_await(&answered, 1));
    return client;
}

static void end_client(weir_channel *client)
{
    weir_channel_close(client, NULL);
    assert_int_equal(weir_channel_await_closed(client, TEST_TIMEOUT_NS), 0);
    weir_channel_release(client);
}

/* ---- servers ---- */

static void check_connections(struct host *host, enum weir_kind kind)
{
    struct echo_service service = {0};
    weir_server *server;
    weir_channel *client;

    choose_path();
    server = echo_service_start(
        &service, WEIR_SERVER_OPTIONS(.boss = host->group, .address = address, .kind = kind));
    assert_true(has_file());
    client = ask(host, kind);
    end_client(client);
    echo_service_stop(server);
    assert_false(has_file());
}

TEST_EACH_LOOP(unix, serves_streams)
{
    check_connections(host, WEIR_KIND_STREAM);
}

TEST_EACH_LOOP(unix, serves_packets)
{
    check_connections(host, WEIR_KIND_SEQPACKET);
}

static void send_back(weir_ctx *ctx, weir_msg *msg)
{
    weir_datagram_make_reply(weir_datagram_of(msg));
    weir_write_and_flush(ctx, msg, NULL);
}

static const weir_handler echo = {.name = "echo", .read = send_back};

static int init_server(weir_channel *channel, void *user_data)
{
    (void)user_data;
    return weir_pipeline_add_last(weir_channel_pipeline(channel), &echo, NULL);
}

TEST_EACH_LOOP(unix, serves_datagrams)
{
    weir_server *server;
    weir_channel *client;

    choose_path();
    assert_int_equal(
        weir_server_start(WEIR_SERVER_OPTIONS(.kind = WEIR_KIND_DATAGRAM, .boss = host->group,
                                              .address = address, .init_server = init_server),
                          &server),
        0);
    assert_true(has_file());
    client = ask(host, WEIR_KIND_DATAGRAM);
    end_client(client);
    echo_service_stop(server);
    assert_false(has_file());
}

/* A second server does not take the name of the first. */
TEST_EACH_LOOP(unix, is_served_by_one)
{
    struct echo_service service = {0}, other = {0};
    weir_server *server, *second = NULL;

    choose_path();
    server =
        echo_service_start(&service, WEIR_SERVER_OPTIONS(.boss = host->group, .address = address));
    assert_int_equal(echo_service_try(&other,
                                      WEIR_SERVER_OPTIONS(.boss = host->group, .address = address),
                                      &second),
                     -EADDRINUSE);
    end_client(ask(host, WEIR_KIND_STREAM));
    echo_service_stop(server);
    assert_false(has_file());
}

/* It will not go away: trying again would only say so again. */
TEST_EACH_LOOP(unix, has_no_patience_with_a_file_that_is_no_socket)
{
    struct echo_service service = {0};
    weir_server *server = NULL;
    int file;

    choose_path();
    file = open(address + strlen("unix:"), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    close(file);
    log_capture_start();
    assert_int_equal(echo_service_try(&service,
                                      WEIR_SERVER_OPTIONS(.boss = host->group, .address = address),
                                      &server),
                     -EEXIST);
    assert_int_equal(log_capture_count(WEIR_LOG_WARN), 1);
    assert_true(has_file());
    unlink(address + strlen("unix:"));
}
