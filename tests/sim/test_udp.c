/* SPDX-License-Identifier: Apache-2.0 */
/*
 * UDP of the simulated network, by system calls and by channels of weir.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <string.h>

#include "support/sim/echo.h"
#include "support/sim/net.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

#define ARRIVAL weir_ms(20) /* by then everything has arrived */

static int open_socket(struct net *net, unsigned host, const char *address)
{
    int descriptor;

    net_act(net, host);
    descriptor = net_socket(address[0] == '[' ? AF_INET6 : AF_INET, SOCK_DGRAM);
    EXPECT_EQUAL(net_bind(descriptor, address), 0);
    return descriptor;
}

static void close_both(int a, int b)
{
    EXPECT_EQUAL(net_close(a), 0);
    EXPECT_EQUAL(net_close(b), 0);
}

/* Receives with the name of the sender, as text. */
static ssize_t receive_from(int descriptor, void *bytes, size_t size, int flags, int *ret_flags,
                            char from[WEIR_ADDRESS_TEXT_SIZE])
{
    weir_address address = {.length = sizeof(address.storage)};
    struct iovec vector = {bytes, size};
    struct msghdr message = {.msg_iov = &vector,
                             .msg_iovlen = 1,
                             .msg_name = &address.storage,
                             .msg_namelen = address.length};
    ssize_t length = weir__seams_get()->system->recvmsg(descriptor, &message, flags);

    if (length < 0)
        return -errno;
    address.length = message.msg_namelen;
    *ret_flags = message.msg_flags;
    (void)weir_address_format(&address, from, WEIR_ADDRESS_TEXT_SIZE);
    return length;
}

/* ---- delivery ---- */

static void exchange_names(struct net *net)
{
    char bytes[16], from[WEIR_ADDRESS_TEXT_SIZE];
    int a = open_socket(net, 0, "0.0.0.0:5000"), b = open_socket(net, 1, "0.0.0.0:5001"), flags;

    EXPECT_EQUAL(net_send_to(a, "hello", 5, "10.0.0.2:5001"), 5);
    EXPECT_EQUAL(net_receive(b, bytes, sizeof(bytes), 0), -EAGAIN);
    net_sleep(ARRIVAL);
    EXPECT_EQUAL(net_poll(b), POLLIN | POLLOUT);
    EXPECT_EQUAL(receive_from(b, bytes, sizeof(bytes), 0, &flags, from), 5);
    EXPECT(memcmp(bytes, "hello", 5) == 0 && strcmp(from, "10.0.0.1:5000") == 0);
    EXPECT_EQUAL(net_send_to(b, "answer", 6, from), 6);
    net_sleep(ARRIVAL);
    EXPECT_EQUAL(receive_from(a, bytes, sizeof(bytes), 0, &flags, from), 6);
    EXPECT(strcmp(from, "10.0.0.2:5001") == 0);
    EXPECT_EQUAL(net_send(a, "nowhere", 7), -EDESTADDRREQ);
    EXPECT_EQUAL(net_send_to(a, "x", 1, "10.0.0.2:0"), -EINVAL);
    EXPECT_EQUAL(net_send_to(a, "x", 1, "[fd00::2]:5001"), -EAFNOSUPPORT);
    EXPECT_EQUAL(net_listen(a, 1), -EOPNOTSUPP);
    close_both(a, b);
}

TEST(udp, a_datagram_arrives_with_the_name_of_its_sender)
{
    net_run(NULL, exchange_names);
}

static void use_ipv6(struct net *net)
{
    char bytes[16], from[WEIR_ADDRESS_TEXT_SIZE];
    int a = open_socket(net, 0, "[::]:5000"), b = open_socket(net, 1, "[::]:5001");
    int c = open_socket(net, 2, "0.0.0.0:5002"), flags;

    EXPECT_EQUAL(net_send_to(a, "six", 3, "[fd00::2]:5001"), 3);
    net_sleep(ARRIVAL);
    EXPECT_EQUAL(receive_from(b, bytes, sizeof(bytes), 0, &flags, from), 3);
    EXPECT(strcmp(from, "[fd00::1]:5000") == 0);
    EXPECT_EQUAL(net_send_to(c, "four", 4, "10.0.0.2:5001"), 4); /* to a dual-stack socket */
    net_sleep(ARRIVAL);
    EXPECT_EQUAL(receive_from(b, bytes, sizeof(bytes), 0, &flags, from), 4);
    EXPECT(strcmp(from, "[::ffff:10.0.0.3]:5002") == 0);
    EXPECT_EQUAL(net_send_to(b, "back", 4, from), 4);
    net_sleep(ARRIVAL);
    EXPECT_EQUAL(receive_from(c, bytes, sizeof(bytes), 0, &flags, from), 4);
    EXPECT(strcmp(from, "10.0.0.2:5001") == 0);
    close_both(a, b);
    EXPECT_EQUAL(net_close(c), 0);
}

TEST(udp, ipv6_and_mapped_addresses)
{
    net_run(NULL, use_ipv6);
}

static void use_sizes(struct net *net)
{
    static char large[70000];
    char bytes[8], from[WEIR_ADDRESS_TEXT_SIZE];
    int a = open_socket(net, 0, "0.0.0.0:5000"), b = open_socket(net, 1, "0.0.0.0:5001"), flags;

    EXPECT_EQUAL(net_send_to(a, large, 1473, "10.0.0.2:5001"), -EMSGSIZE);
    EXPECT_EQUAL(net_send_to(a, large, 1472, "10.0.0.2:5001"), 1472);
    EXPECT_EQUAL(net_send_to(a, "", 0, "10.0.0.2:5001"), 0);
    EXPECT_EQUAL(net_send_to(a, "0123456789", 10, "10.0.0.2:5001"), 10);
    net_sleep(ARRIVAL);
    EXPECT_EQUAL(receive_from(b, large, sizeof(large), 0, &flags, from), 1472);
    EXPECT_EQUAL(flags, 0);
    EXPECT_EQUAL(receive_from(b, bytes, sizeof(bytes), 0, &flags, from), 0); /* empty, not an end */
    EXPECT_EQUAL(receive_from(b, bytes, sizeof(bytes), MSG_PEEK, &flags, from), 8);
    EXPECT_EQUAL(flags, MSG_TRUNC);
    EXPECT_EQUAL(receive_from(b, bytes, 3, MSG_TRUNC, &flags, from), 10);
    EXPECT(flags == MSG_TRUNC && memcmp(bytes, "012", 3) == 0);
    EXPECT_EQUAL(receive_from(b, bytes, sizeof(bytes), 0, &flags, from), -EAGAIN);
    close_both(a, b);
}

TEST(udp, sizes_are_limited_and_kept)
{
    net_run(WEIR_SIM_OPTIONS(.network = {.max_datagram = 1472}), use_sizes);
}

static void fill_receiver(struct net *net)
{
    char large[10000] = {0};
    int a = open_socket(net, 0, "0.0.0.0:5000"), b = open_socket(net, 1, "0.0.0.0:5001");
    unsigned received = 0;

    for (unsigned i = 0; i < 10; i++) {
        EXPECT_EQUAL(net_send_to(a, large, sizeof(large), "10.0.0.2:5001"), sizeof(large));
        net_sleep(ARRIVAL);
    }
    while (net_receive(b, large, sizeof(large), 0) == sizeof(large))
        received++;
    EXPECT_EQUAL(received, 6); /* of a buffer of 64 KiB */
    EXPECT_EQUAL(net_send_to(a, "x", 1, "10.0.0.2:5001"), 1);
    net_sleep(ARRIVAL);
    EXPECT_TEXT(b, "x");
    close_both(a, b);
}

TEST(udp, a_full_receiver_drops)
{
    net_run(NULL, fill_receiver);
}

static void fill_sender(struct net *net)
{
    char large[10000] = {0};
    int a = open_socket(net, 0, "0.0.0.0:5000");
    ssize_t sent = 0;

    for (unsigned i = 0; i < 20 && sent >= 0; i++)
        sent = net_send_to(a, large, sizeof(large), "10.0.0.2:5001");
    EXPECT_EQUAL(sent, -EAGAIN);
    EXPECT_EQUAL(net_poll(a) & POLLOUT, 0);
    net_sleep(ARRIVAL);
    EXPECT((net_poll(a) & POLLOUT) != 0);
    EXPECT_EQUAL(net_send_to(a, large, sizeof(large), "10.0.0.2:5001"), sizeof(large));
    EXPECT_EQUAL(net_close(a), 0);
}

TEST(udp, a_full_sender_waits)
{
    net_run(NULL, fill_sender);
}

static void segment(struct net *net)
{
    char bytes[16], from[WEIR_ADDRESS_TEXT_SIZE];
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(uint16_t))] = {0};
    char text[] = "aaaabbbbcc";
    struct iovec vector = {text, 10};
    struct msghdr message = {.msg_iov = &vector,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof(control)};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    int a = open_socket(net, 0, "0.0.0.0:5000"), b = open_socket(net, 1, "0.0.0.0:5001"), flags;

    header->cmsg_level = IPPROTO_UDP;
    header->cmsg_type = UDP_SEGMENT;
    header->cmsg_len = CMSG_LEN(sizeof(uint16_t));
    *(uint16_t *)(void *)CMSG_DATA(header) = 4;
    EXPECT_EQUAL(net_connect(a, "10.0.0.2:5001"), 0);
    EXPECT_EQUAL(weir__seams_get()->system->sendmsg(a, &message, 0), 10);
    net_sleep(ARRIVAL);
    EXPECT_EQUAL(receive_from(b, bytes, sizeof(bytes), 0, &flags, from), 4);
    EXPECT_EQUAL(receive_from(b, bytes, sizeof(bytes), 0, &flags, from), 4);
    EXPECT(memcmp(bytes, "bbbb", 4) == 0);
    EXPECT_EQUAL(receive_from(b, bytes, sizeof(bytes), 0, &flags, from), 2);
    EXPECT_EQUAL(net_set(a, IPPROTO_UDP, UDP_GRO, 1), -ENOPROTOOPT);
    close_both(a, b);
}

TEST(udp, segments_are_cut)
{
    net_run(NULL, segment);
}

/* ---- connected sockets ---- */

static void connect_sockets(struct net *net)
{
    const struct sockaddr nobody = {.sa_family = AF_UNSPEC};
    char bytes[16];
    int a = open_socket(net, 0, "0.0.0.0:5000"), b = open_socket(net, 1, "0.0.0.0:5001");
    int c = open_socket(net, 2, "0.0.0.0:5002");

    EXPECT_EQUAL(net_connect(b, "10.0.0.1:5000"), 0);
    EXPECT_EQUAL(net_peer_port(b), 5000);
    EXPECT_EQUAL(net_send_to(c, "no", 2, "10.0.0.2:5001"), 2);
    EXPECT_EQUAL(net_send_to(a, "yes", 3, "10.0.0.2:5001"), 3);
    EXPECT_EQUAL(net_send(b, "back", 4), 4);
    EXPECT_EQUAL(net_send_to(b, "aside", 5, "10.0.0.3:5002"), 5);
    net_sleep(ARRIVAL);
    EXPECT_TEXT(b, "yes");
    EXPECT_EQUAL(net_receive(b, bytes, sizeof(bytes), 0), -EAGAIN); /* only from its peer */
    EXPECT_TEXT(a, "back");
    EXPECT_TEXT(c, "aside");
    EXPECT_EQUAL(weir__seams_get()->system->connect(b, &nobody, sizeof(nobody)), 0);
    EXPECT_EQUAL(net_peer_port(b), 0);
    EXPECT_EQUAL(net_port(b), 5001); /* bind was given it */
    EXPECT_EQUAL(net_send_to(c, "now", 3, "10.0.0.2:5001"), 3);
    net_sleep(ARRIVAL);
    EXPECT_TEXT(b, "now");
    close_both(a, b);
    EXPECT_EQUAL(net_close(c), 0);
}

TEST(udp, a_connected_socket_receives_from_its_peer_only)
{
    net_run(NULL, connect_sockets);
}

static void disconnect(struct net *net)
{
    const struct sockaddr nobody = {.sa_family = AF_UNSPEC};
    int a;

    net_act(net, 0);
    a = net_socket(AF_INET, SOCK_DGRAM);
    EXPECT_EQUAL(net_connect(a, "10.0.0.2:5001"), 0);
    EXPECT(net_port(a) != 0);
    EXPECT_EQUAL(weir__seams_get()->system->connect(a, &nobody, sizeof(nobody)), 0);
    EXPECT_EQUAL(net_port(a), 0); /* the kernel takes back what it has chosen */
    EXPECT_EQUAL(net_send_to(a, "x", 1, "10.0.0.2:5001"), 1);
    EXPECT(net_port(a) != 0);
    EXPECT_EQUAL(net_close(a), 0);
}

TEST(udp, a_disconnect_takes_back_the_port)
{
    net_run(NULL, disconnect);
}

static void get_refused(struct net *net)
{
    char byte;
    int a = open_socket(net, 0, "0.0.0.0:5000"), b = open_socket(net, 0, "0.0.0.0:5001");

    EXPECT_EQUAL(net_connect(a, "10.0.0.2:9"), 0);
    EXPECT_EQUAL(net_send(a, "x", 1), 1);
    EXPECT_EQUAL(net_send_to(b, "x", 1, "10.0.0.2:9"), 1); /* not connected: not told */
    net_sleep(ARRIVAL);
    EXPECT((net_poll(a) & POLLERR) != 0);
    EXPECT_EQUAL(net_receive(a, &byte, 1, 0), -ECONNREFUSED);
    EXPECT_EQUAL(net_receive(a, &byte, 1, 0), -EAGAIN);
    EXPECT_EQUAL(net_receive(b, &byte, 1, 0), -EAGAIN);
    EXPECT_EQUAL(net_send(a, "x", 1), 1);
    net_sleep(ARRIVAL);
    EXPECT_EQUAL(net_send(a, "x", 1), -ECONNREFUSED);
    EXPECT_EQUAL(net_connect(a, "10.9.9.9:9"), 0);
    EXPECT_EQUAL(net_send(a, "x", 1), 1);
    net_sleep(ARRIVAL);
    EXPECT_EQUAL(net_get(a, SOL_SOCKET, SO_ERROR), EHOSTUNREACH);
    close_both(a, b);
}

TEST(udp, a_connected_socket_learns_that_nobody_receives)
{
    net_run(NULL, get_refused);
}

static void receive_then_fail(struct net *net)
{
    char bytes[2][4];
    struct iovec vectors[2] = {{bytes[0], 4}, {bytes[1], 4}};
    struct mmsghdr messages[2] = {{.msg_hdr = {.msg_iov = &vectors[0], .msg_iovlen = 1}},
                                  {.msg_hdr = {.msg_iov = &vectors[1], .msg_iovlen = 1}}};
    int a = open_socket(net, 0, "0.0.0.0:5000"), b = open_socket(net, 1, "0.0.0.0:5001");

    EXPECT_EQUAL(net_send_to(a, "1", 1, "10.0.0.2:5001"), 1);
    EXPECT_EQUAL(net_send_to(a, "2", 1, "10.0.0.2:5001"), 1);
    net_sleep(ARRIVAL);
    EXPECT_EQUAL(weir__seams_get()->system->recvmmsg(b, messages, 2, 0, NULL), 2);
    EXPECT(messages[0].msg_len == 1 && bytes[0][0] == '1' && bytes[1][0] == '2');
    EXPECT_EQUAL(weir__seams_get()->system->recvmmsg(b, messages, 2, 0, NULL), -1);
    EXPECT_EQUAL(errno, EAGAIN);
    close_both(a, b);
}

TEST(udp, several_datagrams_are_received_at_once)
{
    net_run(NULL, receive_then_fail);
}

/* ---- binding ---- */

static void share_port(struct net *net)
{
    int a = open_socket(net, 0, "0.0.0.0:5000"), sockets[2];
    char bytes[4];
    ssize_t first;

    net_act(net, 1);
    for (unsigned i = 0; i < 2; i++) {
        sockets[i] = net_socket(AF_INET, SOCK_DGRAM);
        EXPECT_EQUAL(net_set(sockets[i], SOL_SOCKET, SO_REUSEPORT, 1), 0);
        EXPECT_EQUAL(net_bind(sockets[i], "0.0.0.0:5001"), 0);
    }
    EXPECT_EQUAL(net_send_to(a, "1", 1, "10.0.0.2:5001"), 1);
    EXPECT_EQUAL(net_send_to(a, "2", 1, "10.0.0.2:5001"), 1);
    net_sleep(ARRIVAL);
    first = net_receive(sockets[0], bytes, sizeof(bytes), 0); /* all of a sender go to one */
    EXPECT_EQUAL(net_receive(sockets[first == 1 ? 0 : 1], bytes, sizeof(bytes), 0), 1);
    if (first != 1)
        EXPECT_EQUAL(net_receive(sockets[1], bytes, sizeof(bytes), 0), 1);
    EXPECT_EQUAL(net_receive(sockets[0], bytes, sizeof(bytes), 0), -EAGAIN);
    EXPECT_EQUAL(net_receive(sockets[1], bytes, sizeof(bytes), 0), -EAGAIN);
    close_both(sockets[0], sockets[1]);
    EXPECT_EQUAL(net_close(a), 0);
}

TEST(udp, a_sender_stays_with_one_of_several_receivers)
{
    net_run(NULL, share_port);
}

static void kill_receiver(struct net *net)
{
    char byte;
    int a = open_socket(net, 0, "0.0.0.0:5000"), b = open_socket(net, 1, "0.0.0.0:5001");

    EXPECT_EQUAL(net_connect(a, "10.0.0.2:5001"), 0);
    EXPECT_EQUAL(net_send(a, "x", 1), 1);
    weir_sim_kill(net->processes[1]);
    EXPECT_EQUAL(net_receive(b, &byte, 1, 0), -EAGAIN);
    EXPECT_EQUAL(net_send_to(b, "x", 1, "10.0.0.1:5000"), -ENETDOWN);
    net_sleep(ARRIVAL);
    EXPECT_EQUAL(net_receive(a, &byte, 1, 0), -ECONNREFUSED);
    close_both(a, b);
}

TEST(udp, a_killed_process_receives_nothing)
{
    net_run(NULL, kill_receiver);
}

/* ---- a bad network ---- */

enum {
    DATAGRAMS = 200,
};

static unsigned lost, duplicated, overtaken;

static void count_faults(struct net *net)
{
    int a = open_socket(net, 0, "0.0.0.0:5000"), b = open_socket(net, 1, "0.0.0.0:5001");
    unsigned seen[DATAGRAMS] = {0};
    uint32_t number, last = 0;

    for (uint32_t i = 0; i < DATAGRAMS; i++) {
        EXPECT_EQUAL(net_send_to(a, &i, sizeof(i), "10.0.0.2:5001"), sizeof(i));
        net_sleep(weir_us(100));
    }
    net_sleep(ARRIVAL);
    while (net_receive(b, &number, sizeof(number), 0) == sizeof(number)) {
        if (number < DATAGRAMS && seen[number]++ == 0) {
            overtaken += number < last;
            last = number;
        }
    }
    for (unsigned i = 0; i < DATAGRAMS; i++) {
        lost += seen[i] == 0;
        duplicated += seen[i] == 2;
        EXPECT(seen[i] <= 2);
    }
    close_both(a, b);
}

static void expect_faults(const weir_sim_options *options, bool loses, bool duplicates,
                          bool overtakes)
{
    lost = 0;
    duplicated = 0;
    overtaken = 0;
    net_run(options, count_faults);
    if (loses)
        assert_true(lost > 300 && lost < 500); /* of 4,000: a tenth */
    else
        assert_int_equal(lost, 0);
    if (duplicates)
        assert_true(duplicated > 250 && duplicated < 500);
    else
        assert_int_equal(duplicated, 0);
    if (overtakes)
        assert_true(overtaken > 100);
    else
        assert_int_equal(overtaken, 0);
}

TEST(udp, a_good_network_neither_loses_nor_reorders)
{
    expect_faults(NULL, false, false, false);
}

TEST(udp, loss_duplicates_and_reordering_happen_at_their_rates)
{
    expect_faults(WEIR_SIM_OPTIONS(.rates = {[WEIR_SIM_FAULT_LOSS] = 0.1}), true, false, false);
    expect_faults(WEIR_SIM_OPTIONS(.rates = {[WEIR_SIM_FAULT_DUPLICATE] = 0.1}), false, true,
                  false);
    expect_faults(WEIR_SIM_OPTIONS(.rates = {[WEIR_SIM_FAULT_REORDER] = 0.1}), false, false, true);
    expect_faults(WEIR_SIM_OPTIONS(.rates = {[WEIR_SIM_FAULT_LOSS] = 0.1,
                                             [WEIR_SIM_FAULT_DUPLICATE] = 0.1,
                                             [WEIR_SIM_FAULT_REORDER] = 0.1}),
                  true, true, true);
}

static void separate(struct net *net)
{
    char byte;
    int a = open_socket(net, 0, "0.0.0.0:5000"), b = open_socket(net, 1, "0.0.0.0:5001");

    weir_sim_partition(net->hosts[0], net->hosts[1], true);
    EXPECT_EQUAL(net_send_to(a, "lost", 4, "10.0.0.2:5001"), 4);
    net_sleep(ARRIVAL);
    weir_sim_partition(net->hosts[0], net->hosts[1], false);
    net_sleep(weir_seconds(10));
    EXPECT_EQUAL(net_receive(b, &byte, 1, 0), -EAGAIN);
    close_both(a, b);
}

TEST(udp, a_partition_drops)
{
    net_run(NULL, separate);
}

/* ---- channels ---- */

TEST(udp, channels_echo_over_a_bad_network)
{
    echo_run(WEIR_SIM_OPTIONS(.rates = {[WEIR_SIM_FAULT_LOSS] = 0.1,
                                        [WEIR_SIM_FAULT_DUPLICATE] = 0.1,
                                        [WEIR_SIM_FAULT_REORDER] = 0.1,
                                        [WEIR_SIM_FAULT_INTERRUPTED] = 0.05,
                                        [WEIR_SIM_FAULT_NO_BUFFERS] = 0.02}),
             &(const struct echo){.kind = WEIR_KIND_DATAGRAM,
                                  .server_address = "0.0.0.0:8007",
                                  .client_address = "10.0.0.2:8007",
                                  .size = 100,
                                  .batch = 40});
}

TEST(udp, channels_echo_over_ipv6)
{
    echo_run(NULL, &(const struct echo){.kind = WEIR_KIND_DATAGRAM,
                                        .server_address = "[::]:8007",
                                        .client_address = "[fd00::2]:8007",
                                        .size = 1000,
                                        .batch = 10});
}
