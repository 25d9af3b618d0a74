/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What TCP channels count, with real sockets and real errors.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <weir/error.h>

#include "os/thread.h"
#include "support/channel/stats.h"
#include "support/channel/test_channel.h"
#include "support/child.h"
#include "support/loop/sockets.h"
#include "support/transport/connection.h"

#define ERRORS(...) .errors = {__VA_ARGS__}

static int call(const weir_address *address)
{
    struct address plain = {.length = address->length};

    memcpy(&plain.storage, &address->storage, sizeof(plain.storage));
    return socket_connect(&plain);
}

/* Returns when the sender knows that it is sent: the other end may have received it before. */
static void send_msg(struct connection_end *end, weir_msg *msg)
{
    weir_promise *sent = connection_promise(end);

    weir_channel_write_and_flush(end->channel, msg, sent);
    assert_int_equal(connection_result(sent), 0);
}

/* ---- exact numbers ---- */

static void close_both(struct connection *connection)
{
    weir_channel_close(connection->client.channel, NULL);
    assert_int_equal(weir_channel_await_closed(connection->client.channel, TEST_TIMEOUT_NS), 0);
    assert_int_equal(weir_channel_await_closed(connection->server.channel, TEST_TIMEOUT_NS), 0);
}

TEST_EACH_PAIR(tcp_stats, are_exact_for_a_connection_and_its_traffic)
{
    struct stats stats = stats_from_now("tcp");
    weir_channel_stats end;

    connection_open(connection, NULL);
    assert_stats(&stats, .open = 2, .active = 2, .listeners = 1, .listeners_active = 1,
                 .created = 2, .accepted = 1, .connected = 1);
    send_msg(&connection->client, text_msg("hello"));
    assert_end_events(&connection->server, "read(hello)");
    send_msg(&connection->server, text_msg("morning"));
    assert_end_events(&connection->client, "read(morning)");
    assert_stats(&stats, .open = 2, .active = 2, .listeners = 1, .listeners_active = 1,
                 .created = 2, .accepted = 1, .connected = 1, .messages_sent = 2, .bytes_sent = 12,
                 .messages_received = 2, .bytes_received = 12);
    close_both(connection);
    connection_close(connection);
    end = (weir_channel_stats){.created = 2,
                               .closed = 2,
                               .accepted = 1,
                               .connected = 1,
                               .messages_sent = 2,
                               .bytes_sent = 12,
                               .messages_received = 2,
                               .bytes_received = 12};
    stats_check(&stats, &end, __FILE__, __LINE__);
    host_end(&connection->near);
    host_end(&connection->far);
    stats_check(&stats, &end, __FILE__, __LINE__); /* the loops have left it behind */
}

TEST_EACH_CONNECTION(tcp_stats, count_each_byte_of_much)
{
    enum { SIZE = 3 * 1024 * 1024 };
    struct stats stats = stats_from_now("tcp");
    weir_channel_stats since;

    connection_open(connection, NULL);
    connection->server.on_read = connection_discard;
    weir_channel_write(connection->client.channel, sized_msg(SIZE), NULL);
    send_msg(&connection->client, sized_msg(1));
    connection_await_received(&connection->server, SIZE + 1);
    since = stats_since(&stats);
    assert_int_equal(since.bytes_received, SIZE + 1);
    assert_int_equal(since.bytes_sent, SIZE + 1);
    assert_int_equal(since.messages_sent, 2);
    assert_true(since.messages_received >= SIZE / (128 * 1024));
    assert_int_equal(since.unwritable, 1);
}

TEST_EACH_CONNECTION(tcp_stats, are_those_of_their_kind)
{
    struct stats all = stats_from_now(NULL), tcp = stats_from_now("tcp");
    struct stats inproc = stats_from_now("inproc");
    weir_channel_stats since;

    connection_open(connection, NULL);
    since = stats_since(&tcp);
    stats_check(&all, &since, __FILE__, __LINE__);
    assert_stats(&inproc, .open = 0);
}

/* ---- errors ---- */

TEST_EACH_CONNECTION(tcp_stats, count_a_refusal)
{
    struct stats stats;
    weir_promise *refused;

    connection_prepare(connection, NULL);
    weir_channel_close(connection->listener, NULL);
    assert_int_equal(weir_channel_await_closed(connection->listener, TEST_TIMEOUT_NS), 0);
    stats = stats_from_now("tcp");
    refused = connection_promise(&connection->client);
    weir_channel_connect(connection->client.channel, &connection->address, NULL, refused);
    assert_int_equal(connection_result(refused), -ECONNREFUSED);
    assert_int_equal(weir_channel_await_closed(connection->client.channel, TEST_TIMEOUT_NS), 0);
    assert_stats(&stats, .open = (uint64_t)-1, .closed = 1, .connects_failed = 1,
                 ERRORS(.refused = 1));
}

TEST_EACH_CONNECTION(tcp_stats, count_a_reset)
{
    struct stats stats;
    int client;

    connection_prepare(connection, NULL);
    stats = stats_from_now("tcp");
    client = call(&connection->address);
    assert_true(call_counter_await(&connection->accepted, 1));
    connection_await(&connection->server, "active", 1);
    socket_reset(client);
    assert_int_equal(weir_channel_await_closed(connection->server.channel, TEST_TIMEOUT_NS), 0);
    assert_stats(&stats, .created = 1, .closed = 1, .accepted = 1, ERRORS(.reset = 1));
}

/* It does not read, and so notices the peer's close only when it sends. */
TEST_EACH_CONNECTION(tcp_stats, count_a_broken_pipe)
{
    struct stats stats;
    weir_channel_stats since;
    int client;

    connection_prepare(connection, &(const struct connection_options){
                                       .server = WEIR_CHANNEL_OPTIONS(.read_on_demand = true)});
    stats = stats_from_now("tcp");
    client = call(&connection->address);
    assert_true(call_counter_await(&connection->accepted, 1));
    connection_await(&connection->server, "active", 1);
    assert_int_equal(close(client), 0);
    while (weir_channel_is_open(connection->server.channel))
        connection_send(&connection->server, "anybody there?");
    assert_int_equal(weir_channel_await_closed(connection->server.channel, TEST_TIMEOUT_NS), 0);
    since = stats_since(&stats);
    assert_int_equal(since.errors.pipe, 1);
    assert_true(since.writes_failed >= 1);
}

static void write_again(weir_promise *promise, void *channel)
{
    if (weir_promise_result(promise) < 0)
        weir_channel_write_and_flush(channel, text_msg("again"), NULL);
}

/* What a listener writes for a failed send is not sent. */
TEST_EACH_CONNECTION(tcp_stats, count_a_broken_pipe_once)
{
    struct stats stats;
    weir_promise *promise;
    int client;

    connection_prepare(connection, &(const struct connection_options){
                                       .server = WEIR_CHANNEL_OPTIONS(.read_on_demand = true)});
    stats = stats_from_now("tcp");
    client = call(&connection->address);
    assert_true(call_counter_await(&connection->accepted, 1));
    connection_await(&connection->server, "active", 1);
    assert_int_equal(close(client), 0);
    while (weir_channel_is_open(connection->server.channel)) {
        promise = connection_promise(&connection->server);
        assert_int_equal(
            weir_promise_add_listener(promise, write_again, connection->server.channel), 0);
        weir_channel_write_and_flush(connection->server.channel, text_msg("anybody there?"),
                                     promise);
        (void)connection_result(promise);
    }
    assert_int_equal(weir_channel_await_closed(connection->server.channel, TEST_TIMEOUT_NS), 0);
    assert_int_equal(stats_since(&stats).errors.pipe, 1);
}

TEST_EACH_CONNECTION(tcp_stats, count_a_loop_that_has_gone)
{
    struct stats stats;
    weir_channel *late;

    assert_int_equal(weir_tcp_create(NULL, &late), 0);
    stats = stats_from_now("tcp");
    host_end(&connection->near);
    weir_channel_register(late, connection->near.loop, NULL);
    assert_int_equal(weir_channel_await_closed(late, TEST_TIMEOUT_NS), 0);
    assert_stats(&stats, .open = (uint64_t)-1, .closed = 1, ERRORS(.rejected = 1));
    weir_channel_release(late);
}

TEST_EACH_CONNECTION(tcp_stats, count_an_address_that_is_taken)
{
    struct stats stats;
    weir_channel *second;
    weir_promise *bound;

    connection_prepare(connection, NULL);
    assert_int_equal(weir_tcp_create_server(NULL, NULL, &second), 0);
    stats = stats_from_now("tcp");
    bound = connection_promise(&connection->server);
    weir_channel_register(second, connection->far.loop, NULL);
    weir_channel_bind(second, &connection->address, bound);
    assert_int_equal(connection_result(bound), -EADDRINUSE);
    assert_int_equal(weir_channel_await_closed(second, TEST_TIMEOUT_NS), 0);
    assert_stats(&stats, .listeners = (uint64_t)-1, ERRORS(.address = 1));
    weir_channel_release(second);
}

#ifndef __SANITIZE_THREAD__ /* its own thread opens and closes descriptors at any time */

static enum backend_id starved;

/* In a process of its own, because of the limit. */
static void run_out_of_descriptors(void)
{
    static struct connection connection;
    weir_promise *connected;
    weir_channel_stats since;
    struct stats stats;
    rlim_t before;
    int client;

    connection.client.connection = connection.server.connection = &connection;
    event_log_open(&connection.client.events);
    event_log_open(&connection.server.events);
    host_open(&connection.far, starved);
    connection.near = connection.far;
    connection_prepare(&connection, &(const struct connection_options){
                                        .listener = WEIR_CHANNEL_OPTIONS(.read_on_demand = true)});
    client = socket_new(AF_INET, SOCK_STREAM);
    stats = stats_from_now("tcp");
    before = descriptors_forbid();
    connected = connection_promise(&connection.client);
    weir_channel_connect(connection.client.channel, &connection.address, NULL, connected);
    assert_int_equal(connection_result(connected), -EMFILE);
    since = stats_since(&stats);
    assert_int_equal(since.connects_failed, 1);
    assert_int_equal(since.errors.descriptors, 1);
    weir_channel_set_auto_read(connection.listener,
                               true); /* a ring keeps the limit of this moment */
    (void)connect(client, weir_address_sockaddr(&connection.address), connection.address.length);
    while (stats_since(&stats).turned_away == 0)
        host_turn(&connection.far, 1);
    host_turn(&connection.far, 1);
    since = stats_since(&stats);
    assert_int_equal(since.turned_away, 1);
    assert_true(since.accepts_failed >= 1); /* a ring fails also when nobody comes */
    assert_true(since.errors.descriptors >= 2);
    descriptors_limit(before);
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

TEST(tcp_stats, count_descriptors_that_were_wanting_on_epoll)
{
    starve(BACKEND_EPOLL);
}

TEST(tcp_stats, count_descriptors_that_were_wanting_on_uring)
{
    starve(BACKEND_URING);
}

TEST(tcp_stats, count_descriptors_that_were_wanting_on_poll)
{
    starve(BACKEND_POLL);
}

#endif

/* ---- readers beside the loops ---- */

enum { ROUNDS = 30 };

static _Atomic bool is_over;
static _Atomic unsigned mistakes;

static bool is_plausible(const weir_channel_stats *now, const weir_channel_stats *last)
{
    return now->open == now->created - now->closed && now->open < 1u << 20 &&
           now->active < 1u << 20 && now->listeners < 1u << 20 && now->created >= last->created &&
           now->closed >= last->closed && now->bytes_sent >= last->bytes_sent &&
           now->bytes_received >= last->bytes_received && now->accepted >= last->accepted &&
           now->errors.reset >= last->errors.reset;
}

static void read_on_and_on(void *arg)
{
    weir_channel_stats last, now;

    (void)arg;
    weir_channel_read_stats(&last);
    while (!atomic_load(&is_over)) {
        weir_channel_read_stats(&now);
        if (!is_plausible(&now, &last))
            atomic_fetch_add(&mistakes, 1);
        last = now;
    }
}

static void come_and_go(struct connection *connection)
{
    connection_open(connection, NULL);
    send_msg(&connection->client, text_msg("0123456789"));
    assert_end_events(&connection->server, "read(0123456789)");
    close_both(connection);
    connection_await(&connection->client, "unregistered", 1);
    connection_await(&connection->server, "unregistered", 1);
    connection_close(connection);
    event_log_clear(&connection->client.events);
    event_log_clear(&connection->server.events);
}

/* Loops of other groups come and go meanwhile, and leave their counters behind. */
TEST_EACH_CONNECTION(tcp_stats, never_go_back_under_a_reader_while_loops_come_and_go)
{
    struct stats stats = stats_from_now("tcp");
    weir__thread readers[2];

    atomic_store(&is_over, false);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(weir__thread_start("reader", read_on_and_on, NULL, &readers[i]), 0);
    for (unsigned i = 0; i < ROUNDS; i++) {
        come_and_go(connection);
        if (i % 10 != 9)
            continue;
        host_close(&connection->near);
        host_open(&connection->near, (enum backend_id)(connection->far.backend - backends));
    }
    atomic_store(&is_over, true);
    for (unsigned i = 0; i < 2; i++)
        weir__thread_join(&readers[i]);
    assert_int_equal(atomic_load(&mistakes), 0);
    assert_stats(&stats, .created = 2 * ROUNDS, .closed = 2 * ROUNDS, .accepted = ROUNDS,
                 .connected = ROUNDS, .messages_sent = ROUNDS, .bytes_sent = 10 * ROUNDS,
                 .messages_received = ROUNDS, .bytes_received = 10 * ROUNDS);
}
