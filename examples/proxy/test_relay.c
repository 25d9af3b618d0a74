/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The proxy between real peers: what it buffers and passes on, and how connections end.
 */
#include "support/relay.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "support/bootstrap/echo_service.h"
#include "support/bootstrap/raw_client.h"
#include "support/executor/group.h"
#include "support/executor/run_on_thread.h"
#include "support/loop/host.h"
#include "support/loop/sockets.h"
#include "support/loop/stream.h"

/* ---- a proxy between two sockets of the test ---- */

struct scene {
    struct host *host;
    char target[WEIR_ADDRESS_TEXT_SIZE];
    weir_server *proxy;
    weir_channel *front; /* of the first client */
    struct call_counter fronts;
    bool reads_first; /* the first words of a client come before the relay */
    int listener;     /* the target's */
    int client;
    int server;
    struct stream sent;
    struct stream received;
};

static int keep_scene(void *state, const void *scene)
{
    memcpy(state, &scene, sizeof(scene));
    return 0;
}

static void read_words(weir_ctx *ctx, weir_msg *msg)
{
    struct scene *scene = *(struct scene **)weir_ctx_state(ctx);

    if (relay_init(weir_ctx_channel(ctx), scene->target) < 0)
        weir_close(ctx, NULL);
    weir_fire_read(ctx, msg);
    weir_ctx_remove(ctx);
}

static int init_front(weir_channel *channel, void *user_data)
{
    static const weir_handler reader = {.name = "reader",
                                        .state_size = sizeof(struct scene *),
                                        .init = keep_scene,
                                        .active = weir_request_read,
                                        .read = read_words};
    struct scene *scene = user_data;

    if (scene->front == NULL)
        scene->front = weir_channel_retain(channel);
    call_counter_add(&scene->fronts);
    if (scene->reads_first)
        return weir_pipeline_add_last(weir_channel_pipeline(channel), &reader, scene);
    return relay_init(channel, scene->target);
}

static void start_proxy(struct scene *scene, struct host *host, const weir_address *target,
                        bool reads_first)
{
    memset(scene, 0, sizeof(*scene));
    scene->host = host;
    scene->reads_first = reads_first;
    (void)weir_address_format(target, scene->target, sizeof(scene->target));
    assert_int_equal(
        weir_server_start(WEIR_SERVER_OPTIONS(.boss = host->group, .address = "127.0.0.1:0",
                                              .init_child = init_front, .user_data = scene,
                                              .child_options = RELAY_OPTIONS),
                          &scene->proxy),
        0);
}

static void stop_proxy(struct scene *scene)
{
    assert_int_equal(weir_server_stop(scene->proxy, 0, TEST_TIMEOUT_NS), 0);
    weir_channel_release(scene->front);
    weir_server_release(scene->proxy);
}

static void await(int descriptor, short events)
{
    struct pollfd entry = {.fd = descriptor, .events = events};

    assert_int_equal(poll(&entry, 1, 10000), 1);
}

/* A client. */
static void connect_client(struct scene *scene, struct host *host, bool reads_first)
{
    struct address address;
    int listener = socket_listen(AF_INET, 10, &address);
    weir_address target, proxy;

    assert_int_equal(weir_address_from_sockaddr((const struct sockaddr *)&address.storage,
                                                address.length, &target),
                     0);
    start_proxy(scene, host, &target, reads_first);
    scene->listener = listener;
    assert_int_equal(weir_channel_local_address(weir_server_listener(scene->proxy, 0), &proxy), 0);
    memcpy(&address.storage, &proxy.storage, sizeof(address.storage));
    address.length = proxy.length;
    scene->client = socket_connect(&address);
    await(scene->client, POLLOUT);
}

/* Accepts the connection at the target. */
static void accept_at_target(struct scene *scene)
{
    await(scene->listener, POLLIN);
    scene->server = accept4(scene->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    assert_true(scene->server >= 0);
    assert_true(call_counter_await(&scene->fronts, 1)); /* so `front` can be read */
}

static void open_scene(struct scene *scene, struct host *host)
{
    connect_client(scene, host, false);
    accept_at_target(scene);
}

static void close_scene(struct scene *scene)
{
    close(scene->client);
    close(scene->server);
    close(scene->listener);
    stop_proxy(scene);
}

/* ---- streams ---- */

/* The next bytes of the stream, if there is room; returns how many. */
static size_t send_some(struct scene *scene, size_t most)
{
    char bytes[65536];
    struct stream ahead = scene->sent;
    ssize_t sent;

    if (most > sizeof(bytes))
        most = sizeof(bytes);
    stream_write(&ahead, bytes, most);
    sent = send(scene->client, bytes, most, MSG_NOSIGNAL);
    if (sent < 0) {
        assert_int_equal(errno, EAGAIN);
        return 0;
    }
    scene->sent.position += (uint64_t)sent;
    return (size_t)sent;
}

static size_t receive_some(struct scene *scene)
{
    char bytes[65536];
    ssize_t received = recv(scene->server, bytes, sizeof(bytes), 0);

    if (received < 0) {
        assert_int_equal(errno, EAGAIN);
        return 0;
    }
    assert_true(stream_check(&scene->received, bytes, (size_t)received));
    return (size_t)received;
}

/* Sends until the client has sent `bytes`, and the target has received them all. */
static void transfer(struct scene *scene, uint64_t bytes)
{
    while (scene->received.position < bytes) {
        uint64_t left = bytes - scene->sent.position;
        struct pollfd entries[2] = {
            {.fd = scene->server, .events = POLLIN},
            {.fd = left > 0 ? scene->client : -1, .events = POLLOUT},
        };

        assert_true(poll(entries, 2, 10000) > 0);
        if (entries[1].revents != 0)
            (void)send_some(scene, left < 65536 ? (size_t)left : 65536);
        if (entries[0].revents != 0)
            (void)receive_some(scene);
    }
}

/* What the proxy buffers. */
struct held {
    struct scene *scene;
    bool reads;      /* from the client */
    int64_t pending; /* of both channels, written and not sent */
    uint64_t pool;   /* bytes of buffers in use */
};

static void look(void *arg)
{
    struct held *held = arg;
    weir_channel *back = relay_other(held->scene->front);
    weir_pool_stats stats;

    weir_pool_read_stats(&stats);
    held->pool = stats.in_use_bytes;
    held->reads = weir_channel_auto_read(held->scene->front);
    held->pending = weir_channel_pending_bytes(held->scene->front) +
                    (back != NULL ? weir_channel_pending_bytes(back) : 0);
}

static struct held look_at(struct scene *scene)
{
    struct held held = {.scene = scene};

    run_on_executor(scene->host->loop, look, &held);
    return held;
}

/* The client sends until nobody takes any more: the proxy has stopped reading, and its socket is
 * full; it has had time to go on if it wanted to. */
static void send_in_vain(struct scene *scene)
{
    struct pollfd entry = {.fd = scene->client, .events = POLLOUT};

    while (look_at(scene).reads || poll(&entry, 1, 100) > 0) {
        while (send_some(scene, 65536) > 0)
            ;
        assert_true(scene->sent.position < (uint64_t)100 << 20);
    }
}

/* The proxy holds a bounded amount for a slow reader. */
TEST_EACH_LOOP(relay, holds_no_more_than_the_marks_for_a_reader_that_has_stopped)
{
    struct scene scene;
    struct held before, full, after;

    open_scene(&scene, host);
    transfer(&scene, 1 << 20);
    before = look_at(&scene);
    send_in_vain(&scene);
    full = look_at(&scene);
    assert_in_range(full.pending, RELAY_MARK / 2, 2 * RELAY_MARK); /* between its two marks */
    assert_in_range(full.pool - before.pool, 1, 2 * RELAY_MARK);

    transfer(&scene, scene.sent.position + (8 << 20)); /* the reader resumes */
    after = look_at(&scene);
    assert_true(after.reads);
    assert_int_equal(after.pending, 0);
    close_scene(&scene);
}

TEST_EACH_LOOP(relay, brings_every_byte)
{
    struct scene scene;

    open_scene(&scene, host);
    transfer(&scene, 64 << 20);
    close_scene(&scene);
}

/* ---- ends ---- */

static void await_end(int descriptor)
{
    char byte;

    await(descriptor, POLLIN);
    assert_int_equal(recv(descriptor, &byte, 1, 0), 0);
}

static void send_text(int descriptor, const char *text)
{
    assert_int_equal(send(descriptor, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

static void assert_receives(int descriptor, const char *text)
{
    char received[16] = "";

    await(descriptor, POLLIN);
    assert_int_equal(recv(descriptor, received, strlen(text), MSG_WAITALL), strlen(text));
    assert_string_equal(received, text);
}

TEST_EACH_LOOP(relay, passes_half_closure_on)
{
    struct scene scene;

    open_scene(&scene, host);
    send_text(scene.client, "request");
    shutdown(scene.client, SHUT_WR);
    assert_receives(scene.server, "request");
    await_end(scene.server);
    send_text(scene.server, "reply"); /* that direction is still open */
    assert_receives(scene.client, "reply");
    shutdown(scene.server, SHUT_WR);
    await_end(scene.client);
    assert_int_equal(weir_channel_await_closed(scene.front, TEST_TIMEOUT_NS), 0);
    close_scene(&scene);
}

/* As a proxy that chooses the target by the first bytes. */
TEST_EACH_LOOP(relay, that_begins_late_passes_on_what_has_been_read)
{
    struct scene scene;

    connect_client(&scene, host, true);
    send_text(scene.client, "first words");
    accept_at_target(&scene);
    assert_receives(scene.server, "first words");
    send_text(scene.client, "more");
    assert_receives(scene.server, "more");
    send_text(scene.server, "reply");
    assert_receives(scene.client, "reply");
    close_scene(&scene);
}

TEST_EACH_LOOP(relay, that_begins_late_passes_on_that_nothing_more_comes)
{
    struct scene scene;

    connect_client(&scene, host, true);
    send_text(scene.client, "only words");
    shutdown(scene.client, SHUT_WR);
    accept_at_target(&scene);
    assert_receives(scene.server, "only words");
    await_end(scene.server);
    send_text(scene.server, "reply");
    assert_receives(scene.client, "reply");
    close_scene(&scene);
}

TEST_EACH_LOOP(relay, ends_when_the_target_does)
{
    struct scene scene;

    open_scene(&scene, host);
    send_text(scene.server, "bye");
    close(scene.server);
    assert_receives(scene.client, "bye");
    await_end(scene.client);
    scene.server = -1;
    close_scene(&scene);
}

static void await_reset(int descriptor)
{
    char byte;

    await(descriptor, POLLIN);
    assert_int_equal(recv(descriptor, &byte, 1, 0), -1);
    assert_int_equal(errno, ECONNRESET);
}

TEST_EACH_LOOP(relay, resets_one_when_the_other_is_reset)
{
    struct scene scene;

    open_scene(&scene, host);
    socket_reset(scene.client);
    await_reset(scene.server);
    scene.client = -1;
    assert_int_equal(weir_channel_await_closed(scene.front, TEST_TIMEOUT_NS), 0);
    close_scene(&scene);
}

/* The stream had ended before, so it is complete. */
TEST_EACH_LOOP(relay, is_not_broken_by_a_peer_that_has_ended_and_takes_no_reply)
{
    struct scene scene;
    int err = -1;

    open_scene(&scene, host);
    send_text(scene.client, "request");
    shutdown(scene.client, SHUT_WR);
    assert_receives(scene.server, "request");
    await_end(scene.server);
    socket_reset(scene.client);
    scene.client = -1;
    send_text(scene.server, "reply");
    assert_int_equal(weir_channel_await_closed(scene.front, TEST_TIMEOUT_NS), 0);
    assert_int_equal(
        getsockopt(scene.server, SOL_SOCKET, SO_ERROR, &err, &(socklen_t){sizeof(err)}), 0);
    assert_int_equal(err, 0);
    close_scene(&scene);
}

/* Data that was read is sent although the sender has disconnected. */
TEST_EACH_LOOP(relay, loses_nothing_of_a_sender_that_has_gone)
{
    struct scene scene;

    open_scene(&scene, host);
    send_in_vain(&scene);
    close(scene.client);
    scene.client = -1;
    transfer(&scene, scene.sent.position);
    await_end(scene.server);
    close_scene(&scene);
}

TEST_EACH_LOOP(relay, closes_for_whom_the_target_refuses)
{
    struct scene scene;
    weir_address target = unused_address();
    int peer;

    start_proxy(&scene, host, &target, false);
    peer = raw_client_connect(scene.proxy);
    raw_client_receive_end(peer);
    raw_client_close(peer);
    stop_proxy(&scene);
}

TEST_EACH_LOOP(relay, that_is_connecting_does_not_keep_the_proxy_from_ending)
{
    struct scene scene;
    struct silent_address silent;
    int peer;

    silent_address_init(&silent);
    start_proxy(&scene, host, &silent.address, false);
    peer = raw_client_connect(scene.proxy);
    assert_true(call_counter_await(&scene.fronts, 1));
    raw_client_close(peer); /* the proxy does not read, so it does not notice */
    stop_proxy(&scene);
    silent_address_deinit(&silent);
}

#define MANY 1000

TEST_EACH_LOOP(relay, is_for_a_thousand_at_once)
{
    static int peers[MANY];
    struct scene scene;
    struct echo_service service = {0};
    struct host far;
    weir_server *target;
    weir_address address;

    host_open(&far, BACKEND_EPOLL);
    target = echo_service_start(&service, WEIR_SERVER_OPTIONS(.boss = far.group));
    assert_int_equal(weir_channel_local_address(weir_server_listener(target, 0), &address), 0);
    start_proxy(&scene, host, &address, false);
    for (int i = 0; i < MANY; i++)
        peers[i] = raw_client_connect(scene.proxy);
    for (int i = 0; i < MANY; i++)
        raw_client_send(peers[i], "hello");
    for (int i = 0; i < MANY; i++)
        raw_client_receive(peers[i], "hello");
    for (int i = 0; i < MANY; i++)
        raw_client_close(peers[i]);
    assert_true(call_counter_await(&service.closed, MANY));
    stop_proxy(&scene);
    echo_service_stop(target);
    weir_group_release(far.group);
}
