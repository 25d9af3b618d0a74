/* SPDX-License-Identifier: Apache-2.0 */
/*
 * UDP: datagrams of one length to one recipient travel through the system together. A plain socket
 * receives them, one by one, or (UDP_GRO) as the system has got them.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <weir/transport.h>

#include "support/channel/test_channel.h"
#include "support/transport/datagram_endpoint.h"

#define MANY 40
#define PATIENCE_S 10

struct receiver {
    int descriptor;
    weir_address address;
};

static void receiver_open(struct receiver *receiver, bool joined)
{
    struct sockaddr_in local = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct timeval patience = {.tv_sec = PATIENCE_S};
    int on = joined, descriptor = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    assert_true(descriptor >= 0);
    assert_int_equal(bind(descriptor, (struct sockaddr *)&local, sizeof(local)), 0);
    assert_int_equal(setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)),
                     0);
    assert_int_equal(setsockopt(descriptor, IPPROTO_UDP, UDP_GRO, &on, sizeof(on)), 0);
    receiver->descriptor = descriptor;
    receiver->address.length = sizeof(receiver->address.storage);
    assert_int_equal(getsockname(descriptor, (struct sockaddr *)&receiver->address.storage,
                                 &receiver->address.length),
                     0);
}

static void receiver_close(struct receiver *receiver)
{
    close(receiver->descriptor);
}

/* Text comes next, and no more with it. */
static void assert_comes(const struct receiver *receiver, const char *text)
{
    static char bytes[65536];
    ssize_t length;

    do {
        length = recv(receiver->descriptor, bytes, sizeof(bytes) - 1, 0);
    } while (length < 0 && errno == EINTR); /* a wait with a limit is not begun again by itself */
    assert_true(length >= 0);
    bytes[length] = '\0';
    assert_string_equal(bytes, text);
}

static void assert_nothing_comes(const struct receiver *receiver)
{
    char byte;

    assert_int_equal(recv(receiver->descriptor, &byte, 1, MSG_DONTWAIT), -1);
}

/* Letters, each with the receiver that it is for, in one flush: all are sent. */
struct post {
    const char *text;
    const struct receiver *receiver; /* NULL = whom it is connected to, and only bytes */
};

static void send_all(struct datagram_endpoint *endpoint, const struct post *posts, size_t count)
{
    weir_promise *done[MANY];

    for (size_t i = 0; i < count; i++) {
        const struct receiver *receiver = posts[i].receiver;

        done[i] = endpoint_promise(endpoint);
        weir_channel_write(endpoint->channel,
                           receiver != NULL ? make_datagram(posts[i].text, &receiver->address)
                                            : text_msg(posts[i].text),
                           done[i]);
    }
    weir_channel_flush(endpoint->channel);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(endpoint_result(done[i]), 0);
}

#define SEND(endpoint, ...)                                \
    send_all(endpoint, (const struct post[]){__VA_ARGS__}, \
             sizeof((const struct post[]){__VA_ARGS__}) / sizeof(struct post))

TEST_EACH_HOST(udp_runs, of_one_length_are_given_to_the_system_as_one)
{
    struct receiver there;
    struct datagram_endpoint endpoint;

    receiver_open(&there, true);
    endpoint_open(&endpoint, host, NULL);
    SEND(&endpoint, {"aaa", &there}, {"bbb", &there}, {"ccc", &there});
    assert_comes(&there, "aaabbbccc");
    assert_nothing_comes(&there);
    endpoint_close(&endpoint);
    receiver_close(&there);
}

TEST_EACH_HOST(udp_runs, arrive_as_the_datagrams_that_they_are)
{
    struct receiver there;
    struct datagram_endpoint endpoint;

    receiver_open(&there, false);
    endpoint_open(&endpoint, host, NULL);
    SEND(&endpoint, {"aaa", &there}, {"bbb", &there}, {"c", &there}, {"d", &there},
         {"eee", &there});
    assert_comes(&there, "aaa");
    assert_comes(&there, "bbb");
    assert_comes(&there, "c");
    assert_comes(&there, "d");
    assert_comes(&there, "eee");
    assert_nothing_comes(&there);
    endpoint_close(&endpoint);
    receiver_close(&there);
}

/* The system cannot tell where a longer one, or one after a shorter one, would begin. */
TEST_EACH_HOST(udp_runs, end_where_the_length_changes)
{
    struct receiver there;
    struct datagram_endpoint endpoint;

    receiver_open(&there, true);
    endpoint_open(&endpoint, host, NULL);
    SEND(&endpoint, {"aaa", &there}, {"bbb", &there}, {"c", &there}, {"d", &there}, {"eee", &there},
         {"", &there}, {"ff", &there}, {"gg", &there});
    assert_comes(&there, "aaabbbc");
    assert_comes(&there, "d");
    assert_comes(&there, "eee");
    assert_comes(&there, "");
    assert_comes(&there, "ffgg");
    assert_nothing_comes(&there);
    endpoint_close(&endpoint);
    receiver_close(&there);
}

TEST_EACH_HOST(udp_runs, end_where_the_recipient_changes)
{
    struct receiver one, other;
    struct datagram_endpoint endpoint;

    receiver_open(&one, true);
    receiver_open(&other, true);
    endpoint_open(&endpoint, host, NULL);
    SEND(&endpoint, {"aa", &one}, {"bb", &one}, {"cc", &other}, {"dd", &other}, {"ee", &one});
    assert_comes(&one, "aabb");
    assert_comes(&one, "ee");
    assert_comes(&other, "ccdd");
    assert_nothing_comes(&one);
    assert_nothing_comes(&other);
    endpoint_close(&endpoint);
    receiver_close(&one);
    receiver_close(&other);
}

/* To whom it is connected, and to others: bytes alone are for the first. */
TEST_EACH_HOST(udp_runs, of_a_connected_socket)
{
    struct receiver there, other;
    struct datagram_endpoint endpoint;

    receiver_open(&there, true);
    receiver_open(&other, true);
    endpoint_init(&endpoint, host, NULL);
    assert_int_equal(endpoint_connect(&endpoint, &there.address), 0);
    SEND(&endpoint, {"aa", NULL}, {"bb", NULL}, {"cc", &other}, {"dd", &other}, {"ee", NULL});
    assert_comes(&there, "aabb");
    assert_comes(&there, "ee");
    assert_comes(&other, "ccdd");
    endpoint_close(&endpoint);
    receiver_close(&there);
    receiver_close(&other);
}

TEST_EACH_HOST(udp_runs, end_where_the_source_changes)
{
    static const char *const sources[] = {"127.0.0.1:0", "127.0.0.1:0", "127.0.0.2:0"};
    static const char *const texts[] = {"aa", "bb", "cc"};
    struct receiver there;
    weir_promise *done[3];
    struct datagram_endpoint endpoint;
    weir_address source;

    receiver_open(&there, true);
    endpoint_init(&endpoint, host, NULL);
    assert_int_equal(endpoint_bind(&endpoint, "0.0.0.0:0"), 0);
    for (int i = 0; i < 3; i++) {
        weir_msg *msg = make_datagram(texts[i], &there.address);

        assert_int_equal(weir_address_parse(sources[i], &source), 0);
        weir_datagram_set_sender(weir_datagram_of(msg), &source);
        done[i] = endpoint_promise(&endpoint);
        weir_channel_write(endpoint.channel, msg, done[i]);
    }
    weir_channel_flush(endpoint.channel);
    for (int i = 0; i < 3; i++)
        assert_int_equal(endpoint_result(done[i]), 0);
    assert_comes(&there, "aabb");
    assert_comes(&there, "cc");
    endpoint_close(&endpoint);
    receiver_close(&there);
}

/* More than one piece holds, and more messages than a batch. */
TEST_EACH_HOST(udp_runs, that_are_too_long_go_in_several)
{
    static char bytes[MANY][4001];
    struct post posts[MANY];
    struct receiver there;
    struct datagram_endpoint endpoint;

    receiver_open(&there, false);
    endpoint_open(&endpoint, host, NULL);
    for (int i = 0; i < MANY; i++) {
        memset(bytes[i], 'A' + i, sizeof(bytes[i]) - 1);
        posts[i] = (struct post){bytes[i], &there};
    }
    send_all(&endpoint, posts, MANY);
    for (int i = 0; i < MANY; i++)
        assert_comes(&there, bytes[i]);
    endpoint_close(&endpoint);
    receiver_close(&there);
}

/* ---- refusals ---- */

static void set_option(struct datagram_endpoint *endpoint, int level, int name, int value)
{
    int descriptor;

    assert_int_equal(weir_channel_duplicate_descriptor(endpoint->channel, &descriptor), 0);
    assert_int_equal(setsockopt(descriptor, level, name, &value, sizeof(value)), 0);
    close(descriptor);
}

/* The system makes no segments without checksums. */
TEST_EACH_HOST(udp_runs, that_are_refused_go_one_by_one)
{
    struct receiver there;
    struct datagram_endpoint endpoint;

    receiver_open(&there, true);
    endpoint_open(&endpoint, host, NULL);
    set_option(&endpoint, SOL_SOCKET, SO_NO_CHECK, 1);
    for (int times = 0; times < 3; times++) {
        SEND(&endpoint, {"aaa", &there}, {"bbb", &there}, {"c", &there});
        assert_comes(&there, "aaa");
        assert_comes(&there, "bbb");
        assert_comes(&there, "c");
    }
    assert_nothing_comes(&there);
    set_option(&endpoint, SOL_SOCKET, SO_NO_CHECK, 0);
    SEND(&endpoint, {"ddd", &there}, {"eee", &there}, {"ff", &there}, {"gg", &there});
    assert_comes(&there, "ddd"); /* as long as what was refused, */
    assert_comes(&there, "eee");
    assert_comes(&there, "ffgg"); /* and shorter */
    endpoint_close(&endpoint);
    receiver_close(&there);
}

/* Who asks from port 0 cannot be answered; that says nothing of runs to others. */
TEST_EACH_HOST(udp_runs, to_nowhere_are_not_held_against_others)
{
    struct receiver there;
    struct datagram_endpoint endpoint;
    weir_address nowhere;
    weir_promise *done[3];

    receiver_open(&there, true);
    endpoint_open(&endpoint, host, NULL);
    nowhere = there.address;
    weir_address_set_port(&nowhere, 0);
    for (int i = 0; i < 3; i++) {
        done[i] = endpoint_promise(&endpoint);
        weir_channel_write(endpoint.channel, make_datagram("x", &nowhere), done[i]);
    }
    weir_channel_flush(endpoint.channel);
    for (int i = 0; i < 3; i++)
        assert_int_equal(endpoint_result(done[i]), -EINVAL);
    SEND(&endpoint, {"aaa", &there}, {"bbb", &there});
    assert_comes(&there, "aaabbb");
    endpoint_close(&endpoint);
    receiver_close(&there);
}
