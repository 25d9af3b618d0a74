/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each system call of a UDP echo server fails with the errors that it can return, and each
 * allocation in turn, while clients - plain sockets, whose calls do not fail - ask and ask again.
 *
 * Whatever fails, a repeated request is answered, unless the socket is unusable and the server
 * closed; then a handler has received the reason. When nothing fails any more an open server
 * answers the first time, and neither memory nor a descriptor is left.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/error.h>
#include <weir/transport.h>

#include "base/memory.h"
#include "support/executor/global_executor.h"
#include "support/executor/group.h"
#include "support/loop/faults.h"
#include "support/loop/sockets.h"
#include "support/transport/datagram_endpoint.h"
#include "support/transport/faulty_server.h"

#define QUESTIONS 12 /* of each client: more than one batch */
#define SEGMENT 50   /* of the answers, which are twice as long */
#define TRIES 1000
#define TRY_MS 5
#define PLACES 40 /* calls of one kind to fail, at the most, or a little more */

/* ---- the server ---- */

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    weir_datagram_set_segment_size(weir_datagram_of(msg), SEGMENT);
    weir_datagram_make_reply(weir_datagram_of(msg));
    weir_write(ctx, msg, NULL);
}

static void on_read_complete(weir_ctx *ctx)
{
    weir_flush(ctx);
}

static const weir_handler answering = {
    .name = "answering",
    .read = on_read,
    .read_complete = on_read_complete,
};

/* With WEIR_TEST_CONNECTION=unix they are Unix datagrams. */
static bool is_unix(void)
{
    return getenv("WEIR_TEST_CONNECTION") != NULL;
}

/* A name of its own each time: a ring that was given up keeps its sockets until the kernel has
 * cleared it away. */
static weir_address choose_address(void)
{
    static unsigned count;
    char text[WEIR_ADDRESS_TEXT_SIZE] = "127.0.0.1:0";
    weir_address address;

    if (is_unix())
        (void)snprintf(text, sizeof(text), "unix:@weir-faults-%d-%u", (int)getpid(), ++count);
    assert_int_equal(weir_address_parse(text, &address), 0);
    return address;
}

static int create_channel(weir_channel **ret_channel)
{
    const weir_channel_options *options =
        WEIR_CHANNEL_OPTIONS(.gro = true, .datagram_size = 4096, .receive_descriptors = true);

    return is_unix() ? weir_unix_create(WEIR_KIND_DATAGRAM, options, ret_channel)
                     : weir_udp_create(options, ret_channel);
}

static int open_channel(struct faulty_server *faulty)
{
    const weir_address address = choose_address();
    int err = create_channel(&faulty->channel);

    if (err == 0)
        err = faulty_server_add(faulty, faulty->channel, &answering);
    return err == 0 ? faulty_server_bind(faulty, &address) : err;
}

/* ---- a client ---- */

static int client_open(const struct faulty_server *faulty)
{
    struct address own; /* so that it can be answered */
    int client =
        is_unix() ? socket_bind(AF_UNIX, SOCK_DGRAM, &own) : socket_new(AF_INET, SOCK_DGRAM);

    assert_int_equal(
        connect(client, (const struct sockaddr *)&faulty->address.storage, faulty->address.length),
        0);
    return client;
}

/* Takes what has come; returns how many bytes that was. */
static size_t hear(int client)
{
    char answer[2 * SEGMENT];
    size_t total = 0;
    ssize_t length;

    while ((length = recv(client, answer, sizeof(answer), 0)) > 0)
        total += (size_t)length;
    return total;
}

/* Waits; meanwhile somebody else allocates, because the test's allocator refuses pages for as long
 * as nobody does. */
static void await(int client, short events)
{
    struct pollfd ready = {.fd = client, .events = events};

    (void)poll(&ready, 1, TRY_MS);
    weir__free(weir__alloc(1));
}

/* A Unix socket holds few of them: if it is full the server has yet to run, or to be listened to.
 * Returns how many bytes it has said meanwhile. */
static size_t ask(int client)
{
    char question[2 * SEGMENT] = "?";
    size_t heard = 0;

    for (int i = 0; i < QUESTIONS; i++) {
        if (send(client, question, sizeof(question), MSG_NOSIGNAL) >= 0)
            continue;
        await(client, POLLIN | POLLOUT);
        heard += hear(client);
        (void)send(client, question, sizeof(question), MSG_NOSIGNAL);
    }
    return heard;
}

/* Asks until all is answered at one go, or nobody is there any more. */
static bool is_served(const struct faulty_server *faulty)
{
    int client = client_open(faulty);
    size_t heard = 0, all = QUESTIONS * 2 * SEGMENT;

    for (int i = 0; i < TRIES && heard < all && weir_channel_is_open(faulty->channel); i++) {
        if (i % 4 == 0)
            heard = ask(client);
        await(client, POLLIN);
        heard += hear(client);
    }
    assert_int_equal(close(client), 0);
    return heard >= all;
}

/* ---- a play ---- */

static void serve(struct faulty_server *faulty)
{
    if (!is_served(faulty)) {
        if (weir_channel_is_open(faulty->channel))
            sweep_fail(faulty->sweep, "a client is not answered");
        if (!call_counter_await(&faulty->errors, 1))
            sweep_fail(faulty->sweep, "the server is closed, and no handler has heard why");
    }
    sweep_stop_faults(faulty->sweep);
    if (weir_channel_is_open(faulty->channel) && !is_served(faulty))
        sweep_fail(faulty->sweep, "the server is not as it was");
}

static const struct faulty_server_run play = {.open = open_channel, .serve = serve};

static void sweep_all(const struct backend *backend, void (*sweep_it)(struct sweep *sweep))
{
    sweep_it(&(struct sweep){.backend = backend,
                             .scenario = faulty_server_run,
                             .arg = &play,
                             .places = PLACES,
                             .stride = SWEEP_STRIDE});
}

TEST_EACH_HOST(udp, survives_each_call_that_fails)
{
    sweep_all(host->backend, sweep_calls);
}

TEST_EACH_HOST(udp, survives_each_allocation_that_fails)
{
    sweep_all(host->backend, sweep_allocations);
}

/* ---- segments that the system, or a device, does not make ---- */

static void expect_datagram(int receiver, const char *text)
{
    struct pollfd ready = {.fd = receiver, .events = POLLIN};
    char bytes[16] = "";

    assert_int_equal(poll(&ready, 1, TRIES * TRY_MS), 1);
    assert_int_equal(recv(receiver, bytes, sizeof(bytes), 0), strlen(text));
    assert_string_equal(bytes, text);
}

static void send_segments(struct datagram_endpoint *endpoint, int receiver)
{
    weir_msg *msg = make_datagram("aaabbbc", NULL);

    weir_datagram_set_segment_size(weir_datagram_of(msg), 3);
    assert_int_equal(endpoint_write(endpoint, msg), 0);
    expect_datagram(receiver, "aaa");
    expect_datagram(receiver, "bbb");
    expect_datagram(receiver, "c");
}

static void refuse_segments(struct host *host, int err)
{
    struct address there;
    int receiver = socket_bind(AF_INET, SOCK_DGRAM, &there);
    weir_address address;
    struct datagram_endpoint endpoint;

    assert_int_equal(
        weir_address_from_sockaddr((const struct sockaddr *)&there.storage, there.length, &address),
        0);
    endpoint_init(&endpoint, host, NULL);
    assert_int_equal(endpoint_connect(&endpoint, &address), 0);
    faults_inject(FAULT_SENDMMSG, 1, 1, err);
    send_segments(&endpoint, receiver);
    assert_int_equal(faults_injected(), 1);
    send_segments(&endpoint, receiver);
    endpoint_close(&endpoint);
    (void)close(receiver);
}

TEST_EACH_HOST(udp, makes_segments_itself_if_the_system_does_not)
{
    struct host other;

    faults_install();
    host_open(&other, (enum backend_id)(host->backend - backends));
    refuse_segments(&other, EIO);
    refuse_segments(&other, EINVAL);
    refuse_segments(&other, EMSGSIZE);
    host_close(&other);
    global_executor_stop(); /* it may hold the loop, and close what it had */
    faults_remove();
}

/* ---- a socket that is lost ---- */

struct call {
    struct datagram_endpoint endpoint;
    weir_address peer;
    weir_promise *connected;
};

/* The connect is reported later; but now the loop fails to watch the socket. */
static void connect_and_read(void *arg, int status)
{
    struct call *call = arg;

    (void)status;
    faults_inject(FAULT_EPOLL_CTL, 1, 1, ENOMEM);
    weir_channel_connect(call->endpoint.channel, &call->peer, NULL, call->connected);
    weir_channel_request_read(call->endpoint.channel);
}

TEST(udp, fails_to_connect_if_its_loop_loses_the_socket)
{
    struct call call;
    struct datagram_endpoint there;
    struct host host;

    faults_install();
    host_open(&host, BACKEND_EPOLL);
    endpoint_open(&there, &host, NULL);
    call.peer = there.address;
    endpoint_open(&call.endpoint, &host, WEIR_CHANNEL_OPTIONS(.read_on_demand = true));
    call.connected = endpoint_promise(&call.endpoint);
    assert_int_equal(weir_execute(host.loop, connect_and_read, &call), 0);
    assert_int_equal(endpoint_result(call.connected), -ENOMEM);
    assert_int_equal(faults_injected(), 1);
    endpoint_close(&call.endpoint);
    endpoint_close(&there);
    host_close(&host);
    global_executor_stop();
    faults_remove();
}
