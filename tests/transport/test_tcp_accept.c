/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TCP: listening and accepting.
 */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <weir/error.h>

#include "os/clock.h"
#include "support/channel/test_channel.h"
#include "support/child.h"
#include "support/loop/sockets.h"
#include "support/transport/connection.h"

static struct address address_of(const weir_address *address)
{
    struct address plain = {.length = address->length};

    memcpy(&plain.storage, &address->storage, sizeof(plain.storage));
    return plain;
}

/* A plain socket that is connected. */
static int call(const weir_address *address)
{
    struct address plain = address_of(address);

    return socket_connect(&plain);
}

static int bind_result(struct connection *connection, weir_channel *listener, const char *text)
{
    weir_promise *bound = connection_promise(&connection->server);
    weir_address address;

    assert_int_equal(weir_address_parse(text, &address), 0);
    weir_group_register(connection->far.group, listener, NULL);
    weir_channel_bind(listener, &address, bound);
    return connection_result(bound);
}

static int try_to_bind(struct connection *connection, const weir_channel_options *options,
                       const weir_channel_options *child_options, const char *text)
{
    weir_channel *listener;
    int result;

    assert_int_equal(weir_tcp_create_server(options, child_options, &listener), 0);
    result = bind_result(connection, listener, text);
    weir_channel_abort(listener, NULL);
    assert_int_equal(weir_channel_await_closed(listener, TEST_TIMEOUT_NS), 0);
    weir_channel_release(listener);
    return result;
}

/* ---- binding ---- */

TEST_EACH_CONNECTION(tcp, knows_where_it_listens)
{
    weir_address address;
    weir_channel *listener;

    assert_int_equal(weir_tcp_create_server(NULL, NULL, &listener), 0);
    assert_int_equal(weir_channel_local_address(listener, &address), -ENOTCONN);
    assert_int_equal(bind_result(connection, listener, "127.0.0.1:0"), 0);
    assert_true(weir_channel_is_active(listener));
    assert_int_equal(weir_channel_local_address(listener, &address), 0);
    assert_int_not_equal(weir_address_port(&address), 0);
    weir_channel_close(listener, NULL);
    assert_int_equal(weir_channel_await_closed(listener, TEST_TIMEOUT_NS), 0);
    weir_channel_release(listener);
}

TEST_EACH_CONNECTION(tcp, listens_and_connects_over_version_6)
{
    weir_channel *listener;
    weir_promise *connected;
    weir_address address;
    int err;

    assert_int_equal(weir_tcp_create_server(NULL, NULL, &listener), 0);
    err = bind_result(connection, listener, "[::1]:0");
    if (err == 0) {
        assert_int_equal(weir_channel_local_address(listener, &address), 0);
        connection_make_client(connection);
        connected = connection_promise(&connection->client);
        weir_group_register(connection->near.group, connection->client.channel, NULL);
        weir_channel_connect(connection->client.channel, &address, NULL, connected);
        assert_int_equal(connection_result(connected), 0);
    }
    weir_channel_abort(listener, NULL);
    assert_int_equal(weir_channel_await_closed(listener, TEST_TIMEOUT_NS), 0);
    weir_channel_release(listener);
    assert_true(err == 0 || err == -EADDRNOTAVAIL || err == -EAFNOSUPPORT);
}

TEST_EACH_CONNECTION(tcp, is_closed_if_its_address_is_taken)
{
    char text[WEIR_ADDRESS_TEXT_SIZE];

    connection_prepare(connection, NULL);
    (void)weir_address_format(&connection->address, text, sizeof(text));
    assert_int_equal(try_to_bind(connection, NULL, NULL, text), -EADDRINUSE);
    assert_int_equal(try_to_bind(connection, NULL, NULL, "192.0.2.1:0"), -EADDRNOTAVAIL);
}

TEST_EACH_CONNECTION(tcp, shares_its_address_if_both_allow_it)
{
    char text[WEIR_ADDRESS_TEXT_SIZE];
    const weir_channel_options *options = WEIR_CHANNEL_OPTIONS(.reuse_port = true);

    connection_prepare(connection, &(const struct connection_options){.listener = options});
    (void)weir_address_format(&connection->address, text, sizeof(text));
    assert_int_equal(try_to_bind(connection, options, NULL, text), 0);
    assert_int_equal(try_to_bind(connection, NULL, NULL, text), -EADDRINUSE);
}

static int reuse_address_of(struct connection *connection)
{
    int value = -1;
    size_t size = sizeof(value);

    assert_int_equal(weir_channel_get_socket_option(connection->listener, SOL_SOCKET, SO_REUSEADDR,
                                                    &value, &size),
                     0);
    return value;
}

TEST_EACH_CONNECTION(tcp, reuses_its_address_by_default)
{
    connection_prepare(connection, NULL);
    if (connection->medium == CONNECTION_TCP)
        assert_int_equal(reuse_address_of(connection), 1);
}

TEST_EACH_CONNECTION(tcp, does_not_reuse_its_address_if_that_is_off)
{
    const weir_channel_options *options = WEIR_CHANNEL_OPTIONS(.reuse_address = WEIR_OFF);

    connection_prepare(connection, &(const struct connection_options){.listener = options});
    assert_int_equal(reuse_address_of(connection), 0);
}

TEST_EACH_CONNECTION(tcp, is_not_bound_if_an_option_cannot_be_set)
{
    const weir_socket_option nonsense = {.level = SOL_SOCKET, .name = 12345, .value = 1};
    const weir_channel_options *options =
        WEIR_CHANNEL_OPTIONS(.socket_options = &nonsense, .socket_option_count = 1);

    assert_int_equal(try_to_bind(connection, options, NULL, "127.0.0.1:0"), -ENOPROTOOPT);
}

/* ---- accepting ---- */

/* Waits until the peer has closed it; returns the error of the last read, 0 for a plain end. */
static int await_end(int client)
{
    struct pollfd ready = {.fd = client, .events = POLLIN};
    char byte;
    ssize_t length;

    do {
        assert_int_equal(poll(&ready, 1, 10000), 1);
        length = recv(client, &byte, 1, 0);
    } while (length > 0);
    return length < 0 ? -errno : 0;
}

/* For a connection that cannot get its options there is no channel, and the listener stays.
 */
TEST_EACH_CONNECTION(tcp, closes_a_connection_whose_options_cannot_be_set)
{
    const weir_socket_option nonsense = {.level = SOL_SOCKET, .name = 12345, .value = 1};
    int client;

    connection_prepare(connection, &(const struct connection_options){
                                       .server = WEIR_CHANNEL_OPTIONS(.socket_options = &nonsense,
                                                                      .socket_option_count = 1)});
    client = call(&connection->address);
    assert_int_equal(await_end(client), 0);
    assert_int_equal(close(client), 0);
    assert_int_equal(atomic_load(&connection->accepted.calls), 0);
    assert_true(weir_channel_is_active(connection->listener));
}

static void come_in(const struct connection *connection, int *clients, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        clients[i] = call(&connection->address);
}

static void leave(const int *clients, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        assert_int_equal(close(clients[i]), 0);
}

TEST_EACH_CONNECTION(tcp, accepts_none_before_it_reads)
{
    int clients[3];

    connection_prepare(connection, &(const struct connection_options){
                                       .listener = WEIR_CHANNEL_OPTIONS(.read_on_demand = true)});
    come_in(connection, clients, 3);
    host_turn(&connection->far, 3);
    assert_int_equal(atomic_load(&connection->accepted.calls), 0);
    weir_channel_request_read(connection->listener);
    assert_true(call_counter_await(&connection->accepted, 1));
    host_turn(&connection->far, 3);
    assert_int_equal(atomic_load(&connection->accepted.calls), 1);
    weir_channel_request_read(connection->listener);
    assert_true(call_counter_await(&connection->accepted, 2));
    weir_channel_set_auto_read(connection->listener, true);
    assert_true(call_counter_await(&connection->accepted, 3));
    leave(clients, 3);
}

TEST_EACH_CONNECTION(tcp, stops_and_resumes_accepting)
{
    int clients[4];

    connection_prepare(connection, NULL);
    come_in(connection, clients, 1);
    assert_true(call_counter_await(&connection->accepted, 1));
    weir_channel_set_auto_read(connection->listener, false);
    host_turn(&connection->far, 2);
    come_in(connection, clients + 1, 3);
    host_turn(&connection->far, 3);
    assert_int_equal(atomic_load(&connection->accepted.calls), 1);
    weir_channel_set_auto_read(connection->listener, true);
    assert_true(call_counter_await(&connection->accepted, 4));
    leave(clients, 4);
}

TEST_EACH_CONNECTION(tcp, accepts_on_another_loop_when_its_listener_moves)
{
    weir_promise *promise;
    int clients[2];

    connection_prepare(connection, NULL);
    come_in(connection, clients, 1);
    assert_true(call_counter_await(&connection->accepted, 1));
    promise = connection_promise(&connection->server);
    weir_channel_deregister(connection->listener, promise);
    assert_int_equal(connection_result(promise), 0);
    come_in(connection, clients + 1, 1);
    promise = connection_promise(&connection->server);
    weir_group_register(connection->near.group, connection->listener, promise);
    assert_int_equal(connection_result(promise), 0);
    assert_true(call_counter_await(&connection->accepted, 2));
    leave(clients, 2);
}

TEST_EACH_CONNECTION(tcp, refuses_connections_after_its_close)
{
    weir_promise *refused;

    connection_prepare(connection, NULL);
    weir_channel_close(connection->listener, NULL);
    assert_int_equal(weir_channel_await_closed(connection->listener, TEST_TIMEOUT_NS), 0);
    refused = connection_promise(&connection->client);
    weir_channel_connect(connection->client.channel, &connection->address, NULL, refused);
    assert_int_equal(connection_result(refused), -ECONNREFUSED);
}

/* ---- without descriptors ---- */

#ifndef __SANITIZE_THREAD__ /* its own thread opens and closes descriptors at any time */

static enum backend_id starved;

/*
 * In a separate process, because of the limit: without free descriptors a client is refused by
 * means of the reserve, and does not wait; when there are descriptors again, the next is accepted.
 */
static void run_out_of_descriptors(void)
{
    static struct connection connection;
    int early, late;
    rlim_t before;

    connection.client.connection = connection.server.connection = &connection;
    event_log_open(&connection.client.events);
    event_log_open(&connection.server.events);
    host_open(&connection.far, starved);
    connection.near = connection.far;
    connection_prepare(&connection, &(const struct connection_options){
                                        .listener = WEIR_CHANNEL_OPTIONS(.read_on_demand = true)});
    late = socket_new(AF_INET, SOCK_STREAM);
    early = socket_new(AF_INET, SOCK_STREAM);
    before = descriptors_forbid();
    weir_channel_set_auto_read(connection.listener,
                               true); /* a ring keeps the limit of this moment */
    (void)connect(early, weir_address_sockaddr(&connection.address), connection.address.length);
    assert_int_equal(await_end(early), 0); /* refused */
    assert_int_equal(atomic_load(&connection.accepted.calls), 0);
    assert_true(weir_channel_is_active(connection.listener));
    host_turn(&connection.far, 1); /* or the next would be refused with it */
    descriptors_limit(before);     /* after a pause it begins again */
    (void)connect(late, weir_address_sockaddr(&connection.address), connection.address.length);
    assert_true(call_counter_await(&connection.accepted, 1));
    connection_close(&connection);
    host_close(&connection.far);
}

static void starve(enum backend_id id)
{
    struct host host;

    host_open(&host, id); /* skips the test if it cannot be had */
    host_close(&host);
    starved = id;
    assert_true(child_survives(run_out_of_descriptors));
}

TEST(tcp, turns_clients_away_without_descriptors_on_epoll)
{
    starve(BACKEND_EPOLL);
}

TEST(tcp, turns_clients_away_without_descriptors_on_uring)
{
    starve(BACKEND_URING);
}

TEST(tcp, turns_clients_away_without_descriptors_on_poll)
{
    starve(BACKEND_POLL);
}

#endif
