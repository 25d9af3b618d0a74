/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TCP: connecting, and what keeps it from that.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include <weir/error.h>

#include "os/clock.h"
#include "support/channel/test_channel.h"
#include "support/loop/sockets.h"
#include "support/transport/connection.h"

static weir_promise *connect_to(struct connection *connection, const weir_address *remote,
                                const weir_address *local)
{
    weir_promise *promise = connection_promise(&connection->client);

    weir_channel_connect(connection->client.channel, remote, local, promise);
    return promise;
}

static void start_client(struct connection *connection, const weir_channel_options *options)
{
    connection->options.client = options;
    connection_make_client(connection);
    weir_group_register(connection->near.group, connection->client.channel, NULL);
    assert_end_events(&connection->client, "registered");
}

/* An address where nobody listens: of a socket that is bound and does not. */
static int nobody(weir_address *ret_address)
{
    struct address address;
    int bound = socket_bind(AF_INET, SOCK_STREAM, &address);

    assert_int_equal(weir_address_from_sockaddr((const struct sockaddr *)&address.storage,
                                                address.length, ret_address),
                     0);
    return bound;
}

/* One that does not answer: a listener with a backlog that is full. */
struct silence {
    int sockets[4];
    weir_address address;
};

static void silent_address_init(struct silence *silence)
{
    struct address address;

    silence->sockets[0] = socket_listen(AF_INET, 0, &address);
    for (int i = 1; i < 4; i++)
        silence->sockets[i] = socket_connect(&address);
    assert_int_equal(weir_address_from_sockaddr((const struct sockaddr *)&address.storage,
                                                address.length, &silence->address),
                     0);
}

static void silence_break(struct silence *silence)
{
    for (int i = 0; i < 4; i++)
        assert_int_equal(close(silence->sockets[i]), 0);
}

TEST_EACH_CONNECTION(tcp, is_closed_if_it_is_refused)
{
    weir_address address;
    int bound = nobody(&address);

    start_client(connection, NULL);
    assert_int_equal(connection_result(connect_to(connection, &address, NULL)), -ECONNREFUSED);
    assert_end_events(&connection->client, "unregistered");
    assert_false(weir_channel_is_open(connection->client.channel));
    assert_int_equal(close(bound), 0);
}

TEST_EACH_CONNECTION(tcp, is_closed_if_it_is_refused_with_half_closure_too)
{
    weir_address address;
    int bound = nobody(&address);

    start_client(connection, WEIR_CHANNEL_OPTIONS(.half_closure = true));
    assert_int_equal(connection_result(connect_to(connection, &address, NULL)), -ECONNREFUSED);
    assert_end_events(&connection->client, "unregistered");
    assert_int_equal(close(bound), 0);
}

TEST_EACH_CONNECTION(tcp, times_out)
{
    struct silence silence;
    int64_t start = weir__monotonic_now(), passed;

    silent_address_init(&silence);
    start_client(connection, WEIR_CHANNEL_OPTIONS(.connect_timeout_ns = weir_ms(50)));
    assert_int_equal(connection_result(connect_to(connection, &silence.address, NULL)), -ETIMEDOUT);
    passed = weir__monotonic_now() - start;
    assert_true(passed >= weir_ms(50) && passed < TEST_TIMEOUT_NS / 2);
    assert_end_events(&connection->client, "unregistered");
    silence_break(&silence);
}

TEST_EACH_CONNECTION(tcp, is_closed_if_connecting_is_cancelled)
{
    struct silence silence;
    weir_promise *promise;
    int64_t start;

    silent_address_init(&silence);
    start_client(connection, NULL);
    promise = connect_to(connection, &silence.address, NULL);
    host_turn(&connection->near, 1);
    start = weir__monotonic_now();
    assert_int_equal(weir_promise_cancel(promise), 0);
    assert_int_equal(connection_result(promise), WEIR_ECANCELED);
    assert_int_equal(weir_channel_await_closed(connection->client.channel, TEST_TIMEOUT_NS), 0);
    assert_true(weir__monotonic_now() - start < TEST_TIMEOUT_NS / 2);
    assert_end_events(&connection->client, "unregistered");
    silence_break(&silence);
}

TEST_EACH_CONNECTION(tcp, can_be_closed_while_it_connects)
{
    struct silence silence;
    weir_promise *promise;

    silent_address_init(&silence);
    start_client(connection, NULL);
    promise = connect_to(connection, &silence.address, NULL);
    assert_int_equal(connection_do(&connection->client, weir_channel_close), 0);
    assert_int_equal(connection_result(promise), WEIR_ECLOSED);
    assert_end_events(&connection->client, "unregistered");
    silence_break(&silence);
}

TEST_EACH_CONNECTION(tcp, connects_only_once)
{
    struct silence silence;
    weir_promise *first;

    silent_address_init(&silence);
    start_client(connection, NULL);
    first = connect_to(connection, &silence.address, NULL);
    assert_int_equal(connection_result(connect_to(connection, &silence.address, NULL)), -EALREADY);
    assert_int_equal(connection_do(&connection->client, weir_channel_abort), 0);
    assert_int_equal(connection_result(first), WEIR_ECLOSED);
    silence_break(&silence);

    assert_end_events(&connection->client, "unregistered");
    connection_open(connection, NULL);
    assert_int_equal(connection_result(connect_to(connection, &connection->address, NULL)),
                     -EISCONN);
    connection_send(&connection->client, "x");
    assert_end_events(&connection->server, "read(x)");
}

TEST_EACH_CONNECTION(tcp, connects_from_an_address_of_its_own)
{
    weir_address local, seen;

    assert_int_equal(weir_address_parse("127.0.0.2:0", &local), 0);
    connection_prepare(connection, NULL);
    assert_int_equal(connection_result(connect_to(connection, &connection->address, &local)), 0);
    connection_await(&connection->server, "active", 1);
    assert_int_equal(weir_channel_remote_address(connection->server.channel, &seen), 0);
    weir_address_set_port(&seen, 0);
    assert_true(weir_address_equal(&seen, &local));
}

TEST_EACH_CONNECTION(tcp, can_be_bound_before_it_is_connected)
{
    weir_promise *bound;
    weir_address local, seen;

    assert_int_equal(weir_address_parse("127.0.0.3:0", &local), 0);
    connection_prepare(connection, NULL);
    bound = connection_promise(&connection->client);
    assert_int_equal(weir_channel_local_address(connection->client.channel, &seen), -ENOTCONN);
    weir_channel_bind(connection->client.channel, &local, bound);
    assert_int_equal(connection_result(bound), 0);
    connection_connect(connection);
    assert_int_equal(weir_channel_local_address(connection->client.channel, &seen), 0);
    weir_address_set_port(&seen, 0);
    assert_true(weir_address_equal(&seen, &local));
}

TEST_EACH_CONNECTION(tcp, cannot_connect_from_an_address_of_others)
{
    weir_address local;

    assert_int_equal(weir_address_parse("192.0.2.1:0", &local), 0);
    connection_prepare(connection, NULL);
    assert_int_equal(connection_result(connect_to(connection, &connection->address, &local)),
                     -EADDRNOTAVAIL);
    assert_end_events(&connection->client, "unregistered");
}

TEST_EACH_CONNECTION(tcp, does_not_connect_if_an_option_cannot_be_set)
{
    const weir_socket_option nonsense = {.level = SOL_SOCKET, .name = 12345, .value = 1};

    connection_prepare(connection, &(const struct connection_options){
                                       .client = WEIR_CHANNEL_OPTIONS(.socket_options = &nonsense,
                                                                      .socket_option_count = 1)});
    assert_int_equal(connection_result(connect_to(connection, &connection->address, NULL)),
                     -ENOPROTOOPT);
    assert_end_events(&connection->client, "unregistered");
    assert_int_equal(atomic_load(&connection->accepted.calls), 0);
}

/* ---- options ---- */

static int option_of(weir_channel *channel, int level, int name)
{
    int value = -1;
    size_t length = sizeof(value);

    assert_int_equal(weir_channel_get_socket_option(channel, level, name, &value, &length), 0);
    return value;
}

TEST_EACH_CONNECTION(tcp, sets_its_options)
{
    const weir_socket_option idle = {.level = IPPROTO_TCP, .name = TCP_KEEPIDLE, .value = 77};
    const weir_channel_options *options =
        WEIR_CHANNEL_OPTIONS(.keep_alive = true, .send_buffer = 20000, .receive_buffer = 30000,
                             .user_timeout_ns = weir_seconds(7), .socket_options = &idle,
                             .socket_option_count = 1);
    struct connection_end *ends[] = {&connection->client, &connection->server};

    connection_open(connection,
                    &(const struct connection_options){.client = options, .server = options});
    for (int i = 0; i < 2; i++) {
        weir_channel *channel = ends[i]->channel;

        assert_int_equal(option_of(channel, IPPROTO_TCP, TCP_NODELAY), 1);
        assert_int_equal(option_of(channel, SOL_SOCKET, SO_KEEPALIVE), 1);
        assert_int_equal(option_of(channel, SOL_SOCKET, SO_SNDBUF), 40000);
        assert_int_equal(option_of(channel, SOL_SOCKET, SO_RCVBUF), 60000);
        assert_int_equal(option_of(channel, IPPROTO_TCP, TCP_USER_TIMEOUT), 7000);
        assert_int_equal(option_of(channel, IPPROTO_TCP, TCP_KEEPIDLE), 77);
    }
}

TEST_EACH_CONNECTION(tcp, takes_options_back)
{
    weir_channel *channel;
    int on = 1;

    connection_open(connection,
                    &(const struct connection_options){
                        .client = WEIR_CHANNEL_OPTIONS(.keep_alive = true,
                                                       .user_timeout_ns = weir_seconds(7))});
    channel = connection->client.channel;
    assert_int_equal(
        weir_channel_set_options(channel, WEIR_CHANNEL_OPTIONS(.nagle = true, .backlog = 1)), 0);
    host_turn(&connection->near, 1);
    assert_int_equal(option_of(channel, IPPROTO_TCP, TCP_NODELAY), 0);
    assert_int_equal(option_of(channel, SOL_SOCKET, SO_KEEPALIVE), 0);
    assert_int_equal(option_of(channel, IPPROTO_TCP, TCP_USER_TIMEOUT), 0);
    assert_int_equal(
        weir_channel_set_socket_option(channel, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on)), 0);
    assert_int_equal(option_of(channel, SOL_SOCKET, SO_KEEPALIVE), 1);
}

TEST_EACH_CONNECTION(tcp, has_no_socket_options_without_a_socket)
{
    int value = 1;
    size_t length = sizeof(value);

    connection_make_client(connection);
    assert_int_equal(weir_channel_get_socket_option(connection->client.channel, SOL_SOCKET,
                                                    SO_KEEPALIVE, &value, &length),
                     -ENOTSUP);
    assert_int_equal(weir_channel_set_socket_option(connection->client.channel, SOL_SOCKET,
                                                    SO_KEEPALIVE, &value, sizeof(value)),
                     -ENOTSUP);
}

/*
 * TCP Fast Open is two options of sockets. Where the system does it, and the server is known from
 * an earlier connection, connecting sends nothing yet: the first write goes with the SYN.
 */
TEST_EACH_CONNECTION(tcp, may_open_fast)
{
    static const weir_socket_option queue = {IPPROTO_TCP, TCP_FASTOPEN, 16};
    static const weir_socket_option fast = {IPPROTO_TCP, TCP_FASTOPEN_CONNECT, 1};

    if (connection_is_unix())
        return; /* there is no such thing */
    connection_prepare(
        connection,
        &(const struct connection_options){
            .listener = WEIR_CHANNEL_OPTIONS(.socket_options = &queue, .socket_option_count = 1),
            .client = WEIR_CHANNEL_OPTIONS(.socket_options = &fast, .socket_option_count = 1)});
    connection_start(connection);
    connection_send(&connection->client, "hello");
    assert_end_events(&connection->client, "active");
    connection_await(&connection->server, "read(hello)", 1);
    connection_send(&connection->server, "welcome");
    connection_await(&connection->client, "read(welcome)", 1);
}
