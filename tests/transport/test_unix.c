/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unix sockets: packets, peers, and what is not as TCP. That streams are as TCP's the tests of TCP
 * say themselves (WEIR_TEST_CONNECTION=unix), and the files are in test_unix_path.c.
 */
#include <weir/transport.h>

#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/buf.h>
#include <weir/composite.h>
#include <weir/error.h>
#include <weir/file_range.h>

#include "support/channel/test_channel.h"
#include "support/loop/sockets.h"
#include "support/transport/connection.h"

static void open_packets(struct connection *connection, const struct connection_options *options)
{
    connection->medium = CONNECTION_SEQPACKET;
    connection_open(connection, options);
}

static int write_result(struct connection_end *end, weir_msg *msg)
{
    weir_promise *promise = connection_promise(end);

    weir_channel_write_and_flush(end->channel, msg, promise);
    return connection_result(promise);
}

static weir_msg *zeros_msg(size_t length)
{
    weir_buf *buf;

    assert_int_equal(weir_buf_create(length, 0, &buf), 0);
    memset(weir_buf_space(buf), 0, length);
    assert_int_equal(weir_buf_set_write_index(buf, length), 0);
    return weir_buf_msg(buf);
}

/* ---- packets ---- */

TEST_EACH_PAIR(seqpacket, keeps_messages_apart)
{
    open_packets(connection, NULL);
    weir_channel_write(connection->client.channel, text_msg("one"), NULL);
    weir_channel_write(connection->client.channel, text_msg("two"), NULL);
    weir_channel_write_and_flush(connection->client.channel, text_msg("three"), NULL);
    assert_end_events(&connection->server, "read(one) read(two) read(three)");
    connection_send(&connection->server, "x");
    connection_send(&connection->server, "y");
    assert_end_events(&connection->client, "read(x) read(y)");
}

TEST_EACH_CONNECTION(seqpacket, sends_more_than_fit_into_one_call)
{
    open_packets(connection, NULL);
    for (int i = 0; i < 100; i++)
        weir_channel_write(connection->client.channel, text_msg("x"), NULL);
    weir_channel_flush(connection->client.channel);
    connection_await(&connection->server, "read(x)", 100);
}

TEST_EACH_CONNECTION(seqpacket, makes_one_packet_of_a_composite)
{
    weir_composite *composite;

    open_packets(connection, NULL);
    assert_int_equal(weir_composite_create(0, &composite), 0);
    assert_int_equal(weir_composite_add(composite, text_msg("ab")), 0);
    assert_int_equal(weir_composite_add(composite, text_msg("cd")), 0);
    assert_int_equal(write_result(&connection->client, weir_composite_msg(composite)), 0);
    assert_end_events(&connection->server, "read(abcd)");
}

/* A packet is one read, however many have come. */
TEST_EACH_CONNECTION(seqpacket, reads_one_packet_when_it_is_asked_for_one)
{
    open_packets(connection, &(const struct connection_options){
                                 .server = WEIR_CHANNEL_OPTIONS(.read_on_demand = true)});
    connection_send(&connection->client, "a");
    connection_send(&connection->client, "b");
    weir_channel_request_read(connection->server.channel);
    assert_end_events(&connection->server, "read(a)");
    host_turn(&connection->far, 2);
    weir_channel_request_read(connection->server.channel);
    assert_end_events(&connection->server, "read(b)");
}

static void stop_reading(weir_ctx *ctx, weir_msg *msg)
{
    weir_msg_release(msg);
    connection_note(connection_end_of(ctx), "stopped");
    weir_ctx_set_auto_read(ctx, false);
}

static void go_on(weir_ctx *ctx, weir_msg *msg)
{
    weir_msg_release(msg);
    connection_note(connection_end_of(ctx), "again");
}

TEST_EACH_CONNECTION(seqpacket, stops_between_two_packets)
{
    open_packets(connection, NULL);
    connection->server.on_read = stop_reading;
    connection_send(&connection->client, "a");
    connection_send(&connection->client, "b");
    assert_end_events(&connection->server, "stopped");
    host_turn(&connection->far, 2);
    connection->server.on_read = go_on;
    weir_channel_set_auto_read(connection->server.channel, true);
    assert_end_events(&connection->server, "again");
}

TEST_EACH_CONNECTION(seqpacket, refuses_an_empty_packet)
{
    open_packets(connection, NULL);
    assert_int_equal(write_result(&connection->client, text_msg("")), -EINVAL);
    connection_send(&connection->client, "x");
    assert_end_events(&connection->server, "read(x)");
}

TEST_EACH_CONNECTION(seqpacket, refuses_what_is_no_packet)
{
    weir_file_range *range;

    open_packets(connection, NULL);
    assert_int_equal(weir_file_range_create(0, 0, 10, 0, &range), 0);
    assert_int_equal(write_result(&connection->client, weir_file_range_msg(range)), -EPROTOTYPE);
}

/* Neither the packet nor a part of it is passed on; those after it are. */
TEST_EACH_CONNECTION(seqpacket, loses_a_packet_that_is_too_long_with_an_error)
{
    open_packets(connection, &(const struct connection_options){
                                 .server = WEIR_CHANNEL_OPTIONS(.receive_max = 8, .receive_min = 8,
                                                                .receive_initial = 8,
                                                                .keep_open_on_error = true)});
    connection_send(&connection->client, "12345678");
    connection_send(&connection->client, "123456789");
    connection_send(&connection->client, "x");
    assert_end_events(&connection->server, "read(12345678) error(EMSGSIZE) read(x)");
}

/* Who has asked for one gets the next: nobody would know that it has to ask again. */
TEST_EACH_CONNECTION(seqpacket, reads_on_for_a_request_if_a_packet_was_too_long)
{
    open_packets(
        connection,
        &(const struct connection_options){
            .server = WEIR_CHANNEL_OPTIONS(.receive_max = 8, .receive_min = 8, .receive_initial = 8,
                                           .read_on_demand = true, .keep_open_on_error = true)});
    connection_send(&connection->client, "123456789");
    weir_channel_request_read(connection->server.channel);
    assert_end_events(&connection->server, "error(EMSGSIZE)");
    connection_send(&connection->client, "x");
    connection_send(&connection->client, "y");
    assert_end_events(&connection->server, "read(x)");
    host_turn(&connection->far, 2);
    weir_channel_request_read(connection->server.channel);
    assert_end_events(&connection->server, "read(y)");
}

TEST_EACH_CONNECTION(seqpacket, fails_only_the_write_of_a_packet_that_cannot_be_sent)
{
    open_packets(connection, &(const struct connection_options){
                                 .client = WEIR_CHANNEL_OPTIONS(.send_buffer = 4096)});
    assert_int_equal(write_result(&connection->client, zeros_msg(100000)), -EMSGSIZE);
    connection_send(&connection->client, "x");
    assert_end_events(&connection->server, "read(x)");
}

/* How long a packet may be is the send buffer's to say. */
TEST_EACH_CONNECTION(seqpacket, gets_its_options_also_if_it_is_accepted)
{
    open_packets(connection, &(const struct connection_options){
                                 .server = WEIR_CHANNEL_OPTIONS(.send_buffer = 4096)});
    assert_int_equal(write_result(&connection->server, zeros_msg(100000)), -EMSGSIZE);
    connection_send(&connection->server, "x");
    assert_end_events(&connection->client, "read(x)");
}

TEST_EACH_PAIR(seqpacket, waits_for_a_reader)
{
    open_packets(connection, &(const struct connection_options){
                                 .server = WEIR_CHANNEL_OPTIONS(.read_on_demand = true)});
    connection->server.on_read = connection_discard;
    for (int i = 0; i < 1000; i++)
        weir_channel_write(connection->client.channel, zeros_msg(1000), NULL);
    weir_channel_flush(connection->client.channel);
    weir_channel_set_auto_read(connection->server.channel, true);
    connection_await_received(&connection->server, 1000 * 1000);
    assert_int_equal(connection_do(&connection->client, weir_channel_close), 0);
}

TEST_EACH_PAIR(seqpacket, ends_as_a_stream_does)
{
    open_packets(connection, NULL);
    connection_send(&connection->client, "last");
    assert_int_equal(connection_do(&connection->client, weir_channel_close), 0);
    assert_end_events(&connection->server, "read(last) inactive unregistered");
    assert_end_events(&connection->client, "inactive unregistered");
}

TEST_EACH_CONNECTION(seqpacket, can_be_half_closed)
{
    const weir_channel_options *half = WEIR_CHANNEL_OPTIONS(.half_closure = true);

    open_packets(connection, &(const struct connection_options){.client = half, .server = half});
    assert_int_equal(connection_do(&connection->client, weir_channel_shutdown_output), 0);
    assert_end_events(&connection->client, "output-closed");
    assert_end_events(&connection->server, "input-closed");
    connection_send(&connection->server, "x");
    assert_end_events(&connection->client, "read(x)");
}

static void close_channel(weir_ctx *ctx, weir_msg *msg)
{
    weir_msg_release(msg);
    weir_close(ctx, NULL);
}

/* A descriptor that is closed in a read, and somebody else's number at once, is not read
 * from. */
TEST_EACH_CONNECTION(seqpacket, never_reads_from_a_descriptor_that_it_has_closed)
{
    open_packets(connection, NULL);
    connection->server.on_read = close_channel;
    for (int i = 0; i < 20; i++)
        weir_channel_write(connection->client.channel, text_msg("x"), NULL);
    weir_channel_flush(connection->client.channel);
    assert_end_events(&connection->server, "inactive unregistered");
    assert_int_equal(atomic_load(&connection->server.received), 1);
}

TEST_EACH_CONNECTION(seqpacket, moves_to_another_loop)
{
    open_packets(connection, NULL);
    assert_int_equal(connection_do(&connection->client, weir_channel_deregister), 0);
    connection_send(&connection->server, "a");
    connection_send(&connection->server, "b");
    weir_channel_register(connection->client.channel, connection->far.loop, NULL);
    assert_end_events(&connection->client, "unregistered registered read(a) read(b)");
}

/* ---- peers ---- */

TEST_EACH_CONNECTION(unix, knows_its_peer)
{
    weir_unix_peer peer = {0};

    connection->medium = CONNECTION_UNIX;
    connection_open(connection, NULL);
    assert_int_equal(weir_unix_read_peer(connection->server.channel, &peer), 0);
    assert_int_equal(peer.pid, getpid());
    assert_int_equal(peer.uid, getuid());
    assert_int_equal(peer.gid, getgid());
    assert_int_equal(weir_unix_read_peer(connection->client.channel, &peer), 0);
    assert_int_equal(peer.pid, getpid());
}

TEST_EACH_CONNECTION(unix, knows_its_peer_when_that_has_gone)
{
    weir_unix_peer peer = {0};

    connection->medium = CONNECTION_SEQPACKET;
    connection_open(connection, &(const struct connection_options){
                                    .server = WEIR_CHANNEL_OPTIONS(.half_closure = true)});
    weir_channel_abort(connection->client.channel, NULL);
    assert_end_events(&connection->server, "input-closed");
    assert_int_equal(weir_unix_read_peer(connection->server.channel, &peer), 0);
    assert_int_equal(peer.pid, getpid());
    weir_channel_abort(connection->server.channel, NULL);
    assert_int_equal(weir_channel_await_closed(connection->server.channel, TEST_TIMEOUT_NS), 0);
    assert_int_equal(weir_unix_read_peer(connection->server.channel, &peer), WEIR_ECLOSED);
}

TEST_EACH_CONNECTION(unix, knows_the_groups_of_its_peer)
{
    gid_t own[256], groups[256];
    size_t count = 256;
    int own_count = getgroups(256, own);

    connection->medium = CONNECTION_UNIX;
    connection_open(connection, NULL);
    assert_int_equal(weir_unix_read_peer_groups(connection->server.channel, groups, &count), 0);
    assert_int_equal(count, own_count);
    count = 0;
    assert_int_equal(weir_unix_read_peer_groups(connection->server.channel, groups, &count),
                     own_count > 0 ? -ERANGE : 0);
    assert_int_equal(count, own_count);
}

TEST_EACH_CONNECTION(unix, has_no_peer_before_it_is_connected)
{
    weir_unix_peer peer;
    weir_channel *tcp;

    connection->medium = CONNECTION_UNIX;
    connection_prepare(connection, NULL);
    assert_int_equal(weir_unix_read_peer(connection->client.channel, &peer), -ENOTSUP);
    assert_int_equal(weir_unix_read_peer(connection->listener, &peer), -ENOTCONN);
    assert_int_equal(weir_tcp_create(NULL, &tcp), 0);
    assert_int_equal(weir_unix_read_peer(tcp, &peer), -EINVAL);
    weir_channel_release(tcp);
}

/* ---- addresses ---- */

static int connect_result(struct connection *connection, const char *text)
{
    weir_promise *promise = connection_promise(&connection->client);
    weir_address address;

    assert_int_equal(weir_address_parse(text, &address), 0);
    weir_channel_connect(connection->client.channel, &address, NULL, promise);
    return connection_result(promise);
}

TEST_EACH_CONNECTION(unix, is_refused_without_a_socket)
{
    connection->medium = CONNECTION_UNIX;
    connection_prepare(connection, NULL);
    assert_int_equal(connect_result(connection, "unix:/nowhere/x.sock"), -ENOENT);
    assert_end_events(&connection->client, "unregistered");
}

TEST_EACH_CONNECTION(unix, knows_no_other_addresses)
{
    connection->medium = CONNECTION_UNIX;
    connection_prepare(connection, NULL);
    assert_int_equal(connect_result(connection, "127.0.0.1:1"), -EAFNOSUPPORT);
}

TEST_EACH_CONNECTION(unix, is_not_connected_by_a_socket_of_another_type)
{
    connection->medium = CONNECTION_SEQPACKET;
    connection_prepare(connection, NULL);
    connection->medium = CONNECTION_UNIX;
    connection_make_client(connection);
    weir_channel_register(connection->client.channel, connection->near.loop, NULL);
    assert_int_equal(connect_result(connection, "unix:@nobody"), -ECONNREFUSED);
}

TEST(unix, has_no_server_of_datagrams_nor_of_what_is_not_known)
{
    weir_channel *channel;

    assert_int_equal(weir_unix_create_server(WEIR_KIND_DATAGRAM, NULL, NULL, &channel), -EINVAL);
    assert_int_equal(weir_unix_create((enum weir_kind)17, NULL, &channel), -EINVAL);
    assert_int_equal(
        weir_unix_create(WEIR_KIND_STREAM, WEIR_CHANNEL_OPTIONS(.unix_mode = 01000), &channel),
        -EINVAL);
}
