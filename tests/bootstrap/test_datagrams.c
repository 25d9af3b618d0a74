/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Servers and clients of datagrams: the listeners are the channels themselves.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <weir/client.h>
#include <weir/datagram.h>
#include <weir/pipeline.h>
#include <weir/server.h>

#include "support/bootstrap/raw_client.h"
#include "support/channel/pointer_state.h"
#include "support/executor/call_counter.h"
#include "support/executor/group.h"
#include "support/executor/log_capture.h"
#include "support/loop/host.h"

#define LOOPS 3
#define VISITORS 40

/* ---- an echo service ---- */

struct service {
    struct call_counter opened;
    struct call_counter closed;
    struct call_counter drained;
    _Atomic uint32_t reads[LOOPS]; /* by each loop */
    weir_group *group;
    bool drains_itself;
    int init_err;
};

static struct service *service_of(weir_ctx *ctx)
{
    return *(struct service **)weir_ctx_state(ctx);
}

static void on_active(weir_ctx *ctx)
{
    call_counter_add(&service_of(ctx)->opened);
}

static void on_inactive(weir_ctx *ctx)
{
    call_counter_add(&service_of(ctx)->closed);
}

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    struct service *service = service_of(ctx);

    for (size_t i = 0; i < LOOPS; i++)
        if (service->group != NULL && weir_group_at(service->group, i) == weir_ctx_executor(ctx))
            atomic_fetch_add(&service->reads[i], 1);
    weir_datagram_make_reply(weir_datagram_of(msg));
    weir_write(ctx, msg, NULL);
}

static void on_read_complete(weir_ctx *ctx)
{
    weir_flush(ctx);
}

static const weir_handler echo = {
    .name = "echo",
    .state_size = sizeof(struct service *),
    .init = pointer_keep,
    .active = on_active,
    .inactive = on_inactive,
    .read = on_read,
    .read_complete = on_read_complete,
};

static void on_draining(weir_ctx *ctx)
{
    call_counter_add(&service_of(ctx)->drained);
    weir_close(ctx, NULL);
}

static const weir_handler drainer = {
    .name = "drainer",
    .state_size = sizeof(struct service *),
    .init = pointer_keep,
    .draining = on_draining,
};

static int init(weir_channel *channel, void *user_data)
{
    struct service *service = user_data;
    weir_pipeline *pipeline = weir_channel_pipeline(channel);
    int err = service->init_err;

    if (err == 0 && service->drains_itself)
        err = weir_pipeline_add_last(pipeline, &drainer, service);
    return err == 0 ? weir_pipeline_add_last(pipeline, &echo, service) : err;
}

static weir_server *start(struct service *service, weir_group *group, int acceptors)
{
    weir_server *server;

    assert_int_equal(
        weir_server_start(WEIR_SERVER_OPTIONS(.kind = WEIR_KIND_DATAGRAM, .boss = group,
                                              .address = "127.0.0.1:0", .acceptors = acceptors,
                                              .init_server = init, .user_data = service),
                          &server),
        0);
    return server;
}

static void stop(weir_server *server)
{
    assert_int_equal(weir_server_stop(server, 0, TEST_TIMEOUT_NS), 0);
    weir_server_release(server);
}

static weir_group *make_loops(const struct host *host)
{
    weir_group *group = NULL;

    assert_int_equal(
        weir_group_create(WEIR_GROUP_OPTIONS(.io = host->backend->io, .threads = LOOPS), &group),
        0);
    return group;
}

/* ---- a visitor, with a socket of his own ---- */

static int come(weir_server *server)
{
    const struct timeval patience = {.tv_sec = 10};
    int peer = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    weir_address address;

    assert_int_equal(setsockopt(peer, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)), 0);
    assert_int_equal(weir_channel_local_address(weir_server_listener(server, 0), &address), 0);
    assert_int_equal(connect(peer, weir_address_sockaddr(&address), address.length), 0);
    return peer;
}

/* ---- servers ---- */

TEST_EACH_HOST(datagrams, are_served_by_one_channel)
{
    struct service service = {0};
    weir_server *server = start(&service, host->group, 0);
    int peer = come(server);

    assert_int_equal(weir_server_listener_count(server), 1);
    raw_client_echo(peer, "hello");
    raw_client_echo(peer, "again");
    (void)close(peer);
    stop(server);
    assert_int_equal(service.opened.calls, 1);
    assert_int_equal(service.closed.calls, 1);
}

TEST_EACH_HOST(datagrams, that_are_too_long_do_not_fill_the_log)
{
    static const char too_long[4000];
    struct service service = {0};
    weir_server *server = start(&service, host->group, 0);
    int peer = come(server);

    log_capture_start();
    for (int i = 0; i < 3; i++)
        assert_int_equal(send(peer, too_long, sizeof(too_long), 0), sizeof(too_long));
    raw_client_echo(peer, "hello");
    assert_int_equal(log_capture_count(WEIR_LOG_WARN), 1);
    (void)close(peer);
    stop(server);
}

/* One socket per loop; the system chooses by the sender's address. */
TEST_EACH_LOOP(datagrams, are_served_by_a_channel_on_each_loop)
{
    weir_group *group = make_loops(host);
    struct service service = {.group = group};
    weir_server *server = start(&service, group, LOOPS);
    weir_address first, other;
    unsigned used = 0, total = 0;

    assert_int_equal(weir_server_listener_count(server), LOOPS);
    assert_int_equal(weir_channel_local_address(weir_server_listener(server, 0), &first), 0);
    for (size_t i = 0; i < LOOPS; i++) {
        assert_int_equal(weir_channel_local_address(weir_server_listener(server, i), &other), 0);
        assert_true(weir_address_equal(&first, &other));
        assert_ptr_equal(weir_channel_executor(weir_server_listener(server, i)),
                         weir_group_at(group, i));
    }
    for (int i = 0; i < VISITORS; i++) {
        int peer = come(server);

        raw_client_echo(peer, "hello");
        (void)close(peer);
    }
    for (size_t i = 0; i < LOOPS; i++) {
        used += service.reads[i] > 0;
        total += service.reads[i];
    }
    assert_int_equal(total, VISITORS);
    assert_true(used > 1);
    stop(server);
    assert_int_equal(service.closed.calls, LOOPS);
    weir_group_release(group);
}

TEST_EACH_LOOP(datagrams, close_the_others_with_the_first)
{
    weir_group *group = make_loops(host);
    struct service service = {0};
    weir_server *server = start(&service, group, LOOPS);

    weir_server_close(server);
    assert_true(call_counter_await(&service.closed, LOOPS));
    stop(server);
    weir_group_release(group);
}

TEST_EACH_HOST(datagrams, have_a_port_for_themselves)
{
    struct service service = {0};
    weir_server *server = start(&service, host->group, 0), *second;
    char text[WEIR_ADDRESS_TEXT_SIZE];
    weir_address address;

    log_capture_start();
    assert_int_equal(weir_channel_local_address(weir_server_listener(server, 0), &address), 0);
    assert_int_equal(
        weir_server_start(
            WEIR_SERVER_OPTIONS(.kind = WEIR_KIND_DATAGRAM, .boss = host->group,
                                .address = weir_address_format(&address, text, sizeof(text)),
                                .init_server = init, .user_data = &service),
            &second),
        -EADDRINUSE);
    stop(server);
}

/* A connection is none, though it can be adopted as well. */
TEST_EACH_LOOP(datagrams, do_not_come_from_a_connection_that_was_handed_over)
{
    struct service service = {0};
    weir_server *server;
    int ends[2];

    log_capture_start();
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    assert_int_equal(
        weir_server_start(WEIR_SERVER_OPTIONS(.kind = WEIR_KIND_DATAGRAM, .boss = host->group,
                                              .adopt = &ends[0], .adopt_count = 1,
                                              .init_server = init, .user_data = &service),
                          &server),
        -EINVAL);
    assert_true(log_capture_last_contains("datagram"));
    (void)close(ends[1]); /* the other was closed: it is taken in any case */
}

TEST_EACH_LOOP(datagrams, are_not_served_without_handlers)
{
    struct service service = {.init_err = -EPERM};
    weir_server *server;

    log_capture_start();
    assert_int_equal(
        weir_server_start(WEIR_SERVER_OPTIONS(.kind = WEIR_KIND_DATAGRAM, .boss = host->group,
                                              .address = "127.0.0.1:0", .init_server = init,
                                              .user_data = &service),
                          &server),
        -EPERM);
}

/* Its channels are drained as connections are: what was written before goes out. */
TEST_EACH_LOOP(datagrams, hear_that_the_server_is_being_stopped)
{
    weir_group *group = make_loops(host);
    struct service service = {.drains_itself = true};
    weir_server *server = start(&service, group, LOOPS);

    stop(server);
    assert_int_equal(service.drained.calls, LOOPS);
    assert_int_equal(service.closed.calls, LOOPS);
    weir_group_release(group);
}

/* ---- clients ---- */

struct guest {
    struct call_counter replies;
    char last[16];
};

static void on_reply(weir_ctx *ctx, weir_msg *msg)
{
    struct guest *guest = *(struct guest **)weir_ctx_state(ctx);
    const weir_buf *buf = weir_datagram_buf(weir_datagram_of(msg));

    if (weir_buf_readable(buf) < sizeof(guest->last))
        memcpy(guest->last, weir_buf_bytes(buf), weir_buf_readable(buf));
    weir_msg_release(msg);
    call_counter_add(&guest->replies);
}

static const weir_handler listener = {
    .name = "guest",
    .state_size = sizeof(struct guest *),
    .init = pointer_keep,
    .read = on_reply,
};

static int init_guest(weir_channel *channel, void *guest)
{
    return weir_pipeline_add_last(weir_channel_pipeline(channel), &listener, guest);
}

TEST_EACH_HOST(datagrams, are_sent_by_a_connected_client)
{
    struct service service = {0};
    struct guest guest = {0};
    weir_server *server = start(&service, host->group, 0);
    weir_channel *client;
    char text[WEIR_ADDRESS_TEXT_SIZE];
    weir_address address;
    weir_buf *buf;

    assert_int_equal(weir_channel_local_address(weir_server_listener(server, 0), &address), 0);
    assert_int_equal(
        weir_client_connect_sync(
            WEIR_CLIENT_OPTIONS(.kind = WEIR_KIND_DATAGRAM, .group = host->group,
                                .address = weir_address_format(&address, text, sizeof(text)),
                                .init = init_guest, .user_data = &guest),
            &client),
        0);
    assert_int_equal(weir_buf_create_from("hello", 5, &buf), 0);
    weir_channel_write_and_flush(client, weir_buf_msg(buf), NULL);
    assert_true(call_counter_await(&guest.replies, 1));
    assert_string_equal(guest.last, "hello");
    weir_channel_close(client, NULL);
    weir_channel_release(client);
    stop(server);
}
