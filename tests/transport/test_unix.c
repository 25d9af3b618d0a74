/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unix sockets: packets, peers, and what is not as TCP. That streams are as TCP's the tests of TCP
 * say themselves (WEIR_TEST_LINE=unix), and the files are in test_unix_file.c.
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

static void open_packets(struct line *line, const struct line_options *options)
{
    line->medium = LINE_SEQPACKET;
    line_open(line, options);
}

static int write_result(struct line_end *end, weir_msg *msg)
{
    weir_promise *promise = line_promise(end);

    weir_channel_write_and_flush(end->channel, msg, promise);
    return line_result(promise);
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
    open_packets(line, NULL);
    weir_channel_write(line->client.channel, text_msg("one"), NULL);
    weir_channel_write(line->client.channel, text_msg("two"), NULL);
    weir_channel_write_and_flush(line->client.channel, text_msg("three"), NULL);
    assert_heard(&line->server, "read(one) read(two) read(three)");
    line_say(&line->server, "x");
    line_say(&line->server, "y");
    assert_heard(&line->client, "read(x) read(y)");
}

TEST_EACH_LINE(seqpacket, sends_more_than_fit_into_one_call)
{
    open_packets(line, NULL);
    for (int i = 0; i < 100; i++)
        weir_channel_write(line->client.channel, text_msg("x"), NULL);
    weir_channel_flush(line->client.channel);
    line_await(&line->server, "read(x)", 100);
}

TEST_EACH_LINE(seqpacket, makes_one_packet_of_a_composite)
{
    weir_composite *composite;

    open_packets(line, NULL);
    assert_int_equal(weir_composite_create(0, &composite), 0);
    assert_int_equal(weir_composite_add(composite, text_msg("ab")), 0);
    assert_int_equal(weir_composite_add(composite, text_msg("cd")), 0);
    assert_int_equal(write_result(&line->client, weir_composite_msg(composite)), 0);
    assert_heard(&line->server, "read(abcd)");
}

/* A packet is one read, however many have come. D 79 */
TEST_EACH_LINE(seqpacket, reads_one_packet_when_it_is_asked_for_one)
{
    open_packets(
        line, &(const struct line_options){.server = WEIR_CHANNEL_OPTIONS(.read_on_demand = true)});
    line_say(&line->client, "a");
    line_say(&line->client, "b");
    weir_channel_request_read(line->server.channel);
    assert_heard(&line->server, "read(a)");
    host_turn(&line->far, 2);
    weir_channel_request_read(line->server.channel);
    assert_heard(&line->server, "read(b)");
}

static void stop_reading(weir_ctx *ctx, weir_msg *msg)
{
    weir_msg_release(msg);
    line_note(line_end_of(ctx), "stopped");
    weir_ctx_set_auto_read(ctx, false);
}

static void go_on(weir_ctx *ctx, weir_msg *msg)
{
    weir_msg_release(msg);
    line_note(line_end_of(ctx), "again");
}

TEST_EACH_LINE(seqpacket, stops_between_two_packets)
{
    open_packets(line, NULL);
    line->server.on_read = stop_reading;
    line_say(&line->client, "a");
    line_say(&line->client, "b");
    assert_heard(&line->server, "stopped");
    host_turn(&line->far, 2);
    line->server.on_read = go_on;
    weir_channel_set_auto_read(line->server.channel, true);
    assert_heard(&line->server, "again");
}

TEST_EACH_LINE(seqpacket, refuses_an_empty_packet)
{
    open_packets(line, NULL);
    assert_int_equal(write_result(&line->client, text_msg("")), -EINVAL);
    line_say(&line->client, "x");
    assert_heard(&line->server, "read(x)");
}

TEST_EACH_LINE(seqpacket, refuses_what_is_no_packet)
{
    weir_file_range *range;

    open_packets(line, NULL);
    assert_int_equal(weir_file_range_create(0, 0, 10, 0, &range), 0);
    assert_int_equal(write_result(&line->client, weir_file_range_msg(range)), -EPROTOTYPE);
}

/* Neither the packet nor a part of it is passed on; those after it are. */
TEST_EACH_LINE(seqpacket, loses_a_packet_that_is_too_long_with_an_error)
{
    open_packets(line, &(const struct line_options){
                           .server = WEIR_CHANNEL_OPTIONS(.receive_max = 8, .receive_min = 8,
                                                          .receive_initial = 8,
                                                          .keep_open_on_error = true)});
    line_say(&line->client, "12345678");
    line_say(&line->client, "123456789");
    line_say(&line->client, "x");
    assert_heard(&line->server, "read(12345678) error(EMSGSIZE) read(x)");
}

/* Who has asked for one gets the next: nobody would know that it has to ask again. */
TEST_EACH_LINE(seqpacket, reads_on_for_a_request_if_a_packet_was_too_long)
{
    open_packets(
        line,
        &(const struct line_options){
            .server = WEIR_CHANNEL_OPTIONS(.receive_max = 8, .receive_min = 8, .receive_initial = 8,
                                           .read_on_demand = true, .keep_open_on_error = true)});
    line_say(&line->client, "123456789");
    weir_channel_request_read(line->server.channel);
    assert_heard(&line->server, "error(EMSGSIZE)");
    line_say(&line->client, "x");
    line_say(&line->client, "y");
    assert_heard(&line->server, "read(x)");
    host_turn(&line->far, 2);
    weir_channel_request_read(line->server.channel);
    assert_heard(&line->server, "read(y)");
}

TEST_EACH_LINE(seqpacket, fails_only_the_write_of_a_packet_that_cannot_be_sent)
{
    open_packets(line,
                 &(const struct line_options){.client = WEIR_CHANNEL_OPTIONS(.send_buffer = 4096)});
    assert_int_equal(write_result(&line->client, zeros_msg(100000)), -EMSGSIZE);
    line_say(&line->client, "x");
    assert_heard(&line->server, "read(x)");
}

/* How long a packet may be is the send buffer's to say. */
TEST_EACH_LINE(seqpacket, gets_its_options_also_if_it_is_accepted)
{
    open_packets(line,
                 &(const struct line_options){.server = WEIR_CHANNEL_OPTIONS(.send_buffer = 4096)});
    assert_int_equal(write_result(&line->server, zeros_msg(100000)), -EMSGSIZE);
    line_say(&line->server, "x");
    assert_heard(&line->client, "read(x)");
}

TEST_EACH_PAIR(seqpacket, waits_for_a_reader)
{
    open_packets(
        line, &(const struct line_options){.server = WEIR_CHANNEL_OPTIONS(.read_on_demand = true)});
    line->server.on_read = line_discard;
    for (int i = 0; i < 1000; i++)
        weir_channel_write(line->client.channel, zeros_msg(1000), NULL);
    weir_channel_flush(line->client.channel);
    weir_channel_set_auto_read(line->server.channel, true);
    line_await_received(&line->server, 1000 * 1000);
    assert_int_equal(line_do(&line->client, weir_channel_close), 0);
}

TEST_EACH_PAIR(seqpacket, ends_as_a_stream_does)
{
    open_packets(line, NULL);
    line_say(&line->client, "last");
    assert_int_equal(line_do(&line->client, weir_channel_close), 0);
    assert_heard(&line->server, "read(last) inactive unregistered");
    assert_heard(&line->client, "inactive unregistered");
}

TEST_EACH_LINE(seqpacket, can_be_half_closed)
{
    const weir_channel_options *half = WEIR_CHANNEL_OPTIONS(.half_closure = true);

    open_packets(line, &(const struct line_options){.client = half, .server = half});
    assert_int_equal(line_do(&line->client, weir_channel_shutdown_output), 0);
    assert_heard(&line->client, "output-closed");
    assert_heard(&line->server, "input-closed input-drained");
    line_say(&line->server, "x");
    assert_heard(&line->client, "read(x)");
}

static void close_channel(weir_ctx *ctx, weir_msg *msg)
{
    weir_msg_release(msg);
    weir_close(ctx, NULL);
}

/* D 102: a descriptor that is closed in a read, and somebody else's number at once, is not read
 * from. */
TEST_EACH_LINE(seqpacket, never_reads_from_a_descriptor_that_it_has_closed)
{
    open_packets(line, NULL);
    line->server.on_read = close_channel;
    for (int i = 0; i < 20; i++)
        weir_channel_write(line->client.channel, text_msg("x"), NULL);
    weir_channel_flush(line->client.channel);
    assert_heard(&line->server, "inactive unregistered");
    assert_int_equal(atomic_load(&line->server.received), 1);
}

TEST_EACH_LINE(seqpacket, moves_to_another_loop)
{
    open_packets(line, NULL);
    assert_int_equal(line_do(&line->client, weir_channel_deregister), 0);
    line_say(&line->server, "a");
    line_say(&line->server, "b");
    weir_channel_register(line->client.channel, line->far.loop, NULL);
    assert_heard(&line->client, "unregistered registered read(a) read(b)");
}

/* ---- peers ---- */

TEST_EACH_LINE(unix, knows_its_peer)
{
    weir_unix_peer peer = {0};

    line->medium = LINE_UNIX;
    line_open(line, NULL);
    assert_int_equal(weir_unix_read_peer(line->server.channel, &peer), 0);
    assert_int_equal(peer.pid, getpid());
    assert_int_equal(peer.uid, getuid());
    assert_int_equal(peer.gid, getgid());
    assert_int_equal(weir_unix_read_peer(line->client.channel, &peer), 0);
    assert_int_equal(peer.pid, getpid());
}

TEST_EACH_LINE(unix, knows_its_peer_when_that_has_gone)
{
    weir_unix_peer peer = {0};

    line->medium = LINE_SEQPACKET;
    line_open(line,
              &(const struct line_options){.server = WEIR_CHANNEL_OPTIONS(.half_closure = true)});
    weir_channel_abort(line->client.channel, NULL);
    assert_heard(&line->server, "input-closed input-drained");
    assert_int_equal(weir_unix_read_peer(line->server.channel, &peer), 0);
    assert_int_equal(peer.pid, getpid());
    weir_channel_abort(line->server.channel, NULL);
    assert_int_equal(weir_channel_await_closed(line->server.channel, TEST_TIMEOUT_NS), 0);
    assert_int_equal(weir_unix_read_peer(line->server.channel, &peer), WEIR_ECLOSED);
}

TEST_EACH_LINE(unix, knows_the_groups_of_its_peer)
{
    gid_t own[256], groups[256];
    size_t count = 256;
    int own_count = getgroups(256, own);

    line->medium = LINE_UNIX;
    line_open(line, NULL);
    assert_int_equal(weir_unix_read_peer_groups(line->server.channel, groups, &count), 0);
    assert_int_equal(count, own_count);
    count = 0;
    assert_int_equal(weir_unix_read_peer_groups(line->server.channel, groups, &count),
                     own_count > 0 ? -ERANGE : 0);
    assert_int_equal(count, own_count);
}

TEST_EACH_LINE(unix, has_no_peer_before_it_is_connected)
{
    weir_unix_peer peer;
    weir_channel *tcp;

    line->medium = LINE_UNIX;
    line_prepare(line, NULL);
    assert_int_equal(weir_unix_read_peer(line->client.channel, &peer), -ENOTSUP);
    assert_int_equal(weir_unix_read_peer(line->listener, &peer), -ENOTCONN);
    assert_int_equal(weir_tcp_create(NULL, &tcp), 0);
    assert_int_equal(weir_unix_read_peer(tcp, &peer), -EINVAL);
    weir_channel_release(tcp);
}

/* ---- addresses ---- */

static int connect_result(struct line *line, const char *text)
{
    weir_promise *promise = line_promise(&line->client);
    weir_address address;

    assert_int_equal(weir_address_parse(text, &address), 0);
    weir_channel_connect(line->client.channel, &address, NULL, promise);
    return line_result(promise);
}

TEST_EACH_LINE(unix, is_refused_where_nobody_is)
{
    line->medium = LINE_UNIX;
    line_prepare(line, NULL);
    assert_int_equal(connect_result(line, "unix:/nowhere/x.sock"), -ENOENT);
    assert_heard(&line->client, "unregistered");
}

TEST_EACH_LINE(unix, knows_no_other_addresses)
{
    line->medium = LINE_UNIX;
    line_prepare(line, NULL);
    assert_int_equal(connect_result(line, "127.0.0.1:1"), -EAFNOSUPPORT);
}

TEST_EACH_LINE(unix, is_not_connected_by_a_socket_of_another_type)
{
    line->medium = LINE_SEQPACKET;
    line_prepare(line, NULL);
    line->medium = LINE_UNIX;
    line_make_client(line);
    weir_channel_register(line->client.channel, line->near.loop, NULL);
    assert_int_equal(connect_result(line, "unix:@nobody"), -ECONNREFUSED);
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
