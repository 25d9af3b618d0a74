/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptors that pass through Unix sockets: streams, packets, and what goes wrong. Whatever
 * happens, none may be left open: connection_run counts them.
 */
#include <weir/descriptors.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weir/error.h>
#include <weir/transport.h>

#include "support/channel/test_channel.h"
#include "support/loop/sockets.h"
#include "support/transport/connection.h"

static const weir_channel_options taking = {
    .size = sizeof(taking),
    .receive_descriptors = true,
    .keep_open_on_error = true,
};

static const struct connection_options both_taking = {.server = &taking, .client = &taking};

static void open_line(struct connection *connection, enum connection_medium medium)
{
    connection->medium = medium;
    connection_open(connection, &both_taking);
}

/* An unlinked file with these bytes. */
static int file_of(const char *text)
{
    char name[] = "/tmp/weir-descriptors-XXXXXX";
    int descriptor = mkstemp(name);

    assert_true(descriptor >= 0);
    unlink(name);
    assert_int_equal(write(descriptor, text, strlen(text)), strlen(text));
    return descriptor;
}

static weir_msg *passing(const char *text, const int *numbers, size_t count)
{
    weir_descriptors *descriptors;
    weir_buf *bytes = NULL;

    if (text != NULL)
        assert_int_equal(weir_buf_create_from(text, strlen(text), &bytes), 0);
    assert_int_equal(weir_descriptors_create(bytes, numbers, count, &descriptors), 0);
    return weir_descriptors_msg(descriptors);
}

static weir_msg *passing_file(const char *text, const char *content)
{
    int file = file_of(content);

    return passing(text, &file, 1);
}

static int write_result(struct connection_end *end, weir_msg *msg)
{
    weir_promise *promise = connection_promise(end);

    weir_channel_write_and_flush(end->channel, msg, promise);
    return connection_result(promise);
}

/* For on_read: notes "content", or the word "closed-on-exec", of the first descriptor. */
static void read_file(weir_ctx *ctx, weir_msg *msg)
{
    weir_descriptors *passed = weir_descriptors_of(msg);
    int file = passed != NULL ? weir_descriptors_take(passed, 0) : -1;
    char text[32] = "";

    if (file >= 0 && pread(file, text, sizeof(text) - 1, 0) > 0)
        connection_note(connection_end_of(ctx), text);
    if (file >= 0 && (fcntl(file, F_GETFD) & FD_CLOEXEC) == 0)
        connection_note(connection_end_of(ctx), "open-on-exec");
    if (file >= 0)
        close(file);
    weir_msg_release(msg);
}

static void check_use(struct connection *connection, enum connection_medium medium)
{
    open_line(connection, medium);
    connection->server.on_read = read_file;
    connection->client.on_read = read_file;
    assert_int_equal(write_result(&connection->client, passing_file("x", "hello")), 0);
    assert_end_events(&connection->server, "hello");
    assert_int_equal(write_result(&connection->server, passing_file(NULL, "back")), 0);
    assert_end_events(&connection->client, "back");
}

TEST_EACH_PAIR(descriptors, are_usable_after_a_stream)
{
    check_use(connection, CONNECTION_UNIX);
}

TEST_EACH_PAIR(descriptors, are_usable_after_a_packet)
{
    check_use(connection, CONNECTION_SEQPACKET);
}

/* The system may join what was written before to the first of them, but nothing that comes after.
 */
TEST_EACH_CONNECTION(descriptors, come_with_their_bytes_and_between_others)
{
    open_line(connection, CONNECTION_UNIX);
    connection_send(&connection->client, "before");
    assert_end_events(&connection->server, "read(before)");
    weir_channel_write(connection->client.channel, passing_file("with", "1"), NULL);
    weir_channel_write(connection->client.channel, passing_file("more", "2"), NULL);
    weir_channel_write_and_flush(connection->client.channel, text_msg("after"), NULL);
    assert_end_events(&connection->server, "passed(with) passed(more) read(after)");
}

TEST_EACH_CONNECTION(descriptors, come_with_their_packet_and_between_others)
{
    open_line(connection, CONNECTION_SEQPACKET);
    weir_channel_write(connection->client.channel, text_msg("before"), NULL);
    weir_channel_write(connection->client.channel, passing_file("with", "1"), NULL);
    weir_channel_write(connection->client.channel, passing_file("more", "2"), NULL);
    weir_channel_write_and_flush(connection->client.channel, text_msg("after"), NULL);
    assert_end_events(&connection->server, "read(before) passed(with) passed(more) read(after)");
}

static void count_them(weir_ctx *ctx, weir_msg *msg)
{
    weir_descriptors *passed = weir_descriptors_of(msg);

    if (passed != NULL && weir_descriptors_count(passed) == WEIR_DESCRIPTORS_MAX)
        connection_note(connection_end_of(ctx), "all");
    weir_msg_release(msg);
}

TEST_EACH_CONNECTION(descriptors, can_be_many)
{
    int numbers[WEIR_DESCRIPTORS_MAX];

    open_line(connection, CONNECTION_UNIX);
    connection->server.on_read = count_them;
    for (int i = 0; i < WEIR_DESCRIPTORS_MAX; i++)
        numbers[i] = dup(0);
    assert_int_equal(
        write_result(&connection->client, passing(NULL, numbers, WEIR_DESCRIPTORS_MAX)), 0);
    assert_end_events(&connection->server, "all");
}

static void count_passed(weir_ctx *ctx, weir_msg *msg)
{
    if (weir_descriptors_of(msg) != NULL)
        connection_note(connection_end_of(ctx), "passed");
    weir_msg_release(msg);
}

/* The bytes of one message in many pieces: the descriptors go with the first, and only then. */
TEST_EACH_PAIR(descriptors, go_once_with_more_bytes_than_are_taken_at_once)
{
    size_t length = 2000000;
    int file = file_of("x");
    weir_descriptors *descriptors;
    weir_promise *promise;
    weir_buf *bytes;

    open_line(connection, CONNECTION_UNIX);
    weir_channel_set_auto_read(connection->server.channel, false);
    connection->server.on_read = count_passed;
    assert_int_equal(weir_buf_create(length, 0, &bytes), 0);
    memset(weir_buf_space(bytes), 'x', length);
    assert_int_equal(weir_buf_set_write_index(bytes, length), 0);
    assert_int_equal(weir_descriptors_create(bytes, &file, 1, &descriptors), 0);
    promise = connection_promise(&connection->client);
    weir_channel_write_and_flush(connection->client.channel, weir_descriptors_msg(descriptors),
                                 promise);
    weir_channel_set_auto_read(connection->server.channel, true);
    assert_int_equal(connection_result(promise), 0);
    connection_await_received(&connection->server, length);
    assert_end_events(&connection->server, "passed");
}

/* Whoever does not ask for descriptors gets none, whatever a peer sends. */
static void check_unasked(struct connection *connection, enum connection_medium medium)
{
    size_t before;

    connection->medium = medium;
    connection_open(connection, NULL);
    before = descriptors_open();
    assert_int_equal(write_result(&connection->client, passing_file("with", "1")), 0);
    connection_send(&connection->client, "after");
    connection_await_received(&connection->server, 9);
    assert_int_equal(descriptors_open(), before);
    connection_await(&connection->server, "read(with", 1);
}

TEST_EACH_CONNECTION(descriptors, are_dropped_by_a_stream_that_did_not_ask)
{
    check_unasked(connection, CONNECTION_UNIX);
}

TEST_EACH_CONNECTION(descriptors, are_dropped_by_packets_that_did_not_ask)
{
    check_unasked(connection, CONNECTION_SEQPACKET);
}

TEST_EACH_CONNECTION(descriptors, come_from_when_they_are_asked_for)
{
    connection->medium = CONNECTION_UNIX;
    connection_open(connection, NULL);
    assert_int_equal(write_result(&connection->client, passing_file("a", "1")), 0);
    assert_end_events(&connection->server, "read(a)");
    assert_int_equal(weir_channel_set_options(connection->server.channel,
                                              WEIR_CHANNEL_OPTIONS(.receive_descriptors = true)),
                     0);
    host_turn(&connection->far, 2);
    assert_int_equal(write_result(&connection->client, passing_file("b", "1")), 0);
    assert_end_events(&connection->server, "passed(b)");
}

/* A process that can open no more: what came is closed, and the bytes are not lost. */
static void check_no_room(struct connection *connection, enum connection_medium medium)
{
    weir_msg *msg = passing_file("with", "1");
    rlim_t before;

    open_line(connection, medium);
    weir_msg_retain(msg); /* or its own descriptor would make room */
    before = descriptors_forbid();
    weir_channel_write_and_flush(connection->client.channel, msg, NULL);
    connection_await(&connection->server, "read", 1);
    descriptors_limit(before);
    weir_msg_release(msg);
    assert_end_events(&connection->server, "error(EMFILE) read(with)");
    connection_send(&connection->client, "after");
    assert_end_events(&connection->server, "read(after)");
}

TEST_EACH_CONNECTION(descriptors, that_cannot_be_opened_are_an_error_of_a_stream)
{
    check_no_room(connection, CONNECTION_UNIX);
}

TEST_EACH_CONNECTION(descriptors, that_cannot_be_opened_are_an_error_of_a_packet)
{
    check_no_room(connection, CONNECTION_SEQPACKET);
}

/* A peer of another make: an empty packet that is not the end, because something comes with it. */
/* A socket that asks for credentials gets some with the end of a stream, too. */
TEST_EACH_CONNECTION(descriptors, do_not_hide_the_end_of_a_stream_with_credentials)
{
    const weir_socket_option credentials = {.level = SOL_SOCKET, .name = SO_PASSCRED, .value = 1};
    weir_channel_options options = taking;

    options.socket_options = &credentials;
    options.socket_option_count = 1;
    connection->medium = CONNECTION_UNIX;
    connection_open(connection, &(const struct connection_options){.server = &options});
    connection_send(&connection->client, "hello");
    assert_int_equal(connection_do(&connection->client, weir_channel_close), 0);
    assert_end_events(&connection->server, "read(hello) inactive unregistered");
}

TEST_EACH_CONNECTION(descriptors, without_a_byte_are_an_error)
{
    int numbers[] = {file_of("x")};
    struct msghdr header = {0};
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(numbers))] = {0};
    struct cmsghdr *rights;
    int peer = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    connection->medium = CONNECTION_SEQPACKET;
    connection_prepare(connection, &both_taking);
    assert_int_equal(
        connect(peer, weir_address_sockaddr(&connection->address), connection->address.length), 0);
    assert_end_events(&connection->server, "registered active");
    header.msg_control = control;
    header.msg_controllen = sizeof(control);
    rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(numbers));
    memcpy(CMSG_DATA(rights), numbers, sizeof(numbers));
    assert_int_equal(sendmsg(peer, &header, 0), 0);
    assert_int_equal(send(peer, "x", 1, 0), 1);
    assert_end_events(&connection->server, "error(EPROTO) read(x)");
    close(peer);
    close(numbers[0]);
    assert_end_events(&connection->server, "inactive unregistered");
}

/* What nobody reads, and what is written to a channel that closes. */
TEST_EACH_CONNECTION(descriptors, are_closed_with_their_channel)
{
    open_line(connection, CONNECTION_UNIX);
    weir_channel_set_auto_read(connection->server.channel, false);
    for (int i = 0; i < 20; i++)
        weir_channel_write(connection->client.channel, passing_file("x", "1"), NULL);
    weir_channel_flush(connection->client.channel);
    weir_channel_write(connection->client.channel, passing_file("x", "1"), NULL);
    weir_channel_abort(connection->client.channel, NULL);
    weir_channel_write(connection->client.channel, passing_file("x", "1"), NULL);
    assert_int_equal(weir_channel_await_closed(connection->client.channel, TEST_TIMEOUT_NS), 0);
}

TEST_EACH_CONNECTION(descriptors, are_refused_by_other_channels)
{
    connection->medium = CONNECTION_TCP;
    connection_open(connection, NULL);
    assert_int_equal(write_result(&connection->client, passing_file("x", "1")), -EPROTOTYPE);
}

static void send_on(weir_ctx *ctx, weir_msg *msg)
{
    weir_write_and_flush(ctx, msg, NULL);
}

/* A message that was read can be written as it is. */
TEST_EACH_CONNECTION(descriptors, can_be_passed_on)
{
    open_line(connection, CONNECTION_SEQPACKET);
    connection->server.on_read = send_on;
    connection->client.on_read = read_file;
    assert_int_equal(write_result(&connection->client, passing_file("x", "hello")), 0);
    assert_end_events(&connection->client, "hello");
}
