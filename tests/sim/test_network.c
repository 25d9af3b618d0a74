/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TCP of the simulated network, compared with what Linux does, by system calls in a world.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>

#include "sim/stream.h"
#include "support/sim/echo.h"
#include "support/sim/net.h"

#define ARRIVAL weir_ms(20) /* by then everything has arrived */

static void set_lingers(int descriptor)
{
    const struct linger linger = {.l_onoff = 1, .l_linger = 0};

    EXPECT_EQUAL(weir__seams_get()->system->setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &linger,
                                                       sizeof(linger)),
                 0);
}

static void close_both(int a, int b)
{
    EXPECT_EQUAL(net_close(a), 0);
    EXPECT_EQUAL(net_close(b), 0);
}

/* ---- bytes ---- */

static uint8_t byte_at(size_t position)
{
    return (uint8_t)(position * 7 + (position >> 8) * 13);
}

/* Sends what fits. */
static size_t send_some(int descriptor, size_t position, size_t end)
{
    uint8_t bytes[5000];
    size_t length = 0;
    ssize_t sent;

    while (length < sizeof(bytes) && position + length < end) {
        bytes[length] = byte_at(position + length);
        length++;
    }
    sent = net_send(descriptor, bytes, length);
    EXPECT(sent > 0 || sent == -EAGAIN || sent == -EINTR || sent == -ENOBUFS);
    return sent > 0 ? (size_t)sent : 0;
}

static size_t receive_some(int descriptor, size_t position)
{
    uint8_t bytes[7000];
    ssize_t length = net_receive(descriptor, bytes, sizeof(bytes), 0);

    EXPECT(length > 0 || length == -EAGAIN || length == -EINTR);
    for (ssize_t i = 0; i < length; i++)
        EXPECT(bytes[i] == byte_at(position + (size_t)i));
    return length > 0 ? (size_t)length : 0;
}

static void transfer(struct net *net)
{
    size_t sent = 0, received = 0, total = 400000;
    int client, server;

    net_pair(net, &client, &server);
    while (received < total) {
        if (sent < total)
            sent += send_some(client, sent, total);
        if (weir_sim_random(net->sim, 3) == 0)
            net_sleep(weir_us(200));
        received += receive_some(server, received);
        EXPECT(received <= sent);
        if (net->sim->failure != NULL)
            break;
    }
    close_both(client, server);
}

TEST(tcp, delivers_all_bytes_in_order)
{
    net_run(WEIR_SIM_OPTIONS(.rates = {[WEIR_SIM_FAULT_SHORT_READ] = 0.3,
                                       [WEIR_SIM_FAULT_SHORT_WRITE] = 0.3,
                                       [WEIR_SIM_FAULT_INTERRUPTED] = 0.1,
                                       [WEIR_SIM_FAULT_NO_BUFFERS] = 0.05}),
            transfer);
}

static void peek(struct net *net)
{
    char bytes[8] = "";
    int client, server;

    net_pair(net, &client, &server);
    EXPECT_EQUAL(net_send(client, "a", 1), 1);
    net_sleep(ARRIVAL);
    EXPECT_EQUAL(net_receive(server, bytes, sizeof(bytes), MSG_PEEK), 1);
    EXPECT_TEXT(server, "a");
    EXPECT_EQUAL(net_receive(server, bytes, sizeof(bytes), 0), -EAGAIN);
    close_both(client, server);
}

TEST(tcp, a_peek_leaves_the_bytes)
{
    net_run(NULL, peek);
}

/* The reader stops: the writer fills both buffers, and continues when there is room again. */
static void block_the_writer(struct net *net)
{
    size_t sent = 0, received = 0, now;
    int client, server;

    net_pair(net, &client, &server);
    for (unsigned idle = 0; idle<3; idle = now> 0 ? 0 : idle + 1) {
        now = send_some(client, sent, SIZE_MAX);
        sent += now;
        net_sleep(ARRIVAL);
    }
    EXPECT_EQUAL(sent, 128 * 1024);
    EXPECT_EQUAL(net_poll(client) & POLLOUT, 0);
    for (unsigned i = 0; i < 200 && received < sent; i++) {
        received += receive_some(server, received);
        net_sleep(ARRIVAL);
        EXPECT((net_poll(client) & POLLOUT) != 0 || received < sent / 2);
    }
    EXPECT_EQUAL(received, sent);
    EXPECT((net_poll(client) & POLLOUT) != 0);
    close_both(client, server);
}

TEST(tcp, a_reader_that_stops_blocks_the_writer)
{
    net_run(NULL, block_the_writer);
}

/* ---- the end of a stream ---- */

static void half_close(struct net *net)
{
    char byte;
    int client, server;

    net_pair(net, &client, &server);
    EXPECT_EQUAL(net_send(client, "request", 7), 7);
    EXPECT_EQUAL(net_shutdown(client, SHUT_WR), 0);
    EXPECT_EQUAL(net_send(client, "x", 1), -EPIPE);
    net_sleep(ARRIVAL);
    EXPECT((net_poll(server) & (POLLIN | POLLRDHUP | POLLHUP)) == (POLLIN | POLLRDHUP));
    EXPECT_TEXT(server, "request");
    EXPECT_EQUAL(net_receive(server, &byte, 1, 0), 0);
    EXPECT_EQUAL(net_receive(server, &byte, 1, 0), 0);
    EXPECT_EQUAL(net_send(server, "answer", 6), 6);
    EXPECT_EQUAL(net_close(server), 0);
    net_sleep(ARRIVAL);
    EXPECT((net_poll(client) & POLLHUP) != 0);
    EXPECT_TEXT(client, "answer");
    EXPECT_EQUAL(net_receive(client, &byte, 1, 0), 0);
    EXPECT_EQUAL(net_close(client), 0);
}

TEST(tcp, a_half_closed_connection_still_receives)
{
    net_run(NULL, half_close);
}

static void end_both(struct net *net)
{
    char byte;
    int client, server;

    net_pair(net, &client, &server);
    EXPECT_EQUAL(net_shutdown(client, SHUT_WR), 0);
    EXPECT_EQUAL(net_shutdown(server, SHUT_WR), 0);
    net_sleep(ARRIVAL);
    EXPECT_EQUAL(net_receive(client, &byte, 1, 0), 0);
    EXPECT_EQUAL(net_receive(server, &byte, 1, 0), 0);
    EXPECT_EQUAL(net_shutdown(server, SHUT_WR), -ENOTCONN); /* it is over */
    set_lingers(client);
    EXPECT_EQUAL(net_close(client), 0);
    net_sleep(ARRIVAL);
    EXPECT_EQUAL(net_get(server, SOL_SOCKET, SO_ERROR), 0); /* and cannot be reset */
    EXPECT_EQUAL(net_close(server), 0);
}

TEST(tcp, both_ends_may_end_at_the_same_time)
{
    net_run(NULL, end_both);
}

/* ---- resets ---- */

static void close_unread(struct net *net)
{
    char byte;
    int client, server;

    net_pair(net, &client, &server);
    EXPECT_EQUAL(net_send(server, "before", 6), 6);
    EXPECT_EQUAL(net_send(client, "unread", 6), 6);
    net_sleep(ARRIVAL);
    EXPECT_EQUAL(net_close(server), 0);
    net_sleep(ARRIVAL);
    EXPECT((net_poll(client) & (POLLERR | POLLHUP)) == (POLLERR | POLLHUP));
    EXPECT_EQUAL(net_peer_port(client), 0);
    EXPECT_TEXT(client, "before"); /* what came before the reset */
    EXPECT_EQUAL(net_receive(client, &byte, 1, 0), -ECONNRESET);
    EXPECT_EQUAL(net_receive(client, &byte, 1, 0), 0);
    EXPECT_EQUAL(net_send(client, "x", 1), -EPIPE);
    EXPECT_EQUAL(net_shutdown(client, SHUT_WR), -ENOTCONN);
    EXPECT_EQUAL(net_close(client), 0);
}

TEST(tcp, a_close_with_unread_data_is_a_reset)
{
    net_run(NULL, close_unread);
}

static void send_to_closed(struct net *net)
{
    char byte;
    int client, server;

    net_pair(net, &client, &server);
    EXPECT_EQUAL(net_close(server), 0);
    net_sleep(ARRIVAL);
    EXPECT_EQUAL(net_receive(client, &byte, 1, 0), 0);
    EXPECT_EQUAL(net_send(client, "a", 1), 1); /* not known yet */
    net_sleep(ARRIVAL);
    EXPECT_EQUAL(net_send(client, "b", 1), -EPIPE);
    EXPECT_EQUAL(net_close(client), 0);
}

TEST(tcp, data_for_a_closed_socket_is_answered_by_a_reset)
{
    net_run(NULL, send_to_closed);
}

static void linger(struct net *net)
{
    int client, server;

    net_pair(net, &client, &server);
    set_lingers(client);
    EXPECT_EQUAL(net_send(client, "lost or not", 11), 11);
    EXPECT_EQUAL(net_close(client), 0);
    net_sleep(ARRIVAL);
    EXPECT_EQUAL(net_get(server, SOL_SOCKET, SO_ERROR), ECONNRESET);
    EXPECT_EQUAL(net_send(server, "x", 1), -EPIPE);
    EXPECT_EQUAL(net_close(server), 0);
}

TEST(tcp, a_linger_of_zero_resets)
{
    net_run(NULL, linger);
}

static void lose_reset(struct net *net)
{
    char byte;
    int client, server;

    net_pair(net, &client, &server);
    weir_sim_partition(net->hosts[0], net->hosts[1], true);
    set_lingers(server);
    EXPECT_EQUAL(net_close(server), 0);
    net_sleep(weir_seconds(1));
    weir_sim_partition(net->hosts[0], net->hosts[1], false);
    net_sleep(weir_seconds(1));
    EXPECT_EQUAL(net_receive(client, &byte, 1, 0), -EAGAIN); /* nothing has told it */
    EXPECT_EQUAL(net_send(client, "x", 1), 1);
    net_sleep(ARRIVAL);
    EXPECT_EQUAL(net_receive(client, &byte, 1, 0), -ECONNRESET);
    EXPECT_EQUAL(net_close(client), 0);
}

TEST(tcp, a_lost_reset_is_noticed_by_the_next_send)
{
    net_run(NULL, lose_reset);
}

static void reset_by_network(struct net *net)
{
    int client, server;

    net_pair(net, &client, &server);
    net_sleep(weir_seconds(2));
    EXPECT_EQUAL(net_get(client, SOL_SOCKET, SO_ERROR), ECONNRESET);
    EXPECT_EQUAL(net_send(server, "x", 1), -ECONNRESET);
    EXPECT_EQUAL(net_send(server, "x", 1), -EPIPE);
    close_both(client, server);
}

TEST(tcp, the_network_resets_at_its_rate)
{
    net_run(WEIR_SIM_OPTIONS(.rates = {[WEIR_SIM_FAULT_RESET] = 50}), reset_by_network);
}

/* ---- connecting ---- */

static void refuse(struct net *net)
{
    int client = net_client(net, 0, "10.0.0.2:9");

    EXPECT_EQUAL(net_connect(client, "10.0.0.2:9"), -EALREADY);
    EXPECT_EQUAL(net_poll(client), 0);
    EXPECT_EQUAL(net_get(client, SOL_SOCKET, SO_ERROR), 0);
    net_sleep(ARRIVAL);
    EXPECT((net_poll(client) & (POLLERR | POLLOUT)) == (POLLERR | POLLOUT));
    EXPECT_EQUAL(net_get(client, SOL_SOCKET, SO_ERROR), ECONNREFUSED);
    EXPECT_EQUAL(net_get(client, SOL_SOCKET, SO_ERROR), 0);
    EXPECT_EQUAL(net_connect(client, "10.0.0.3:9"), -EINPROGRESS); /* once more */
    net_sleep(ARRIVAL);
    EXPECT_EQUAL(net_connect(client, "10.0.0.3:9"), -ECONNREFUSED);
    EXPECT_EQUAL(net_close(client), 0);
}

TEST(tcp, a_port_without_a_listener_refuses)
{
    net_run(NULL, refuse);
}

static void not_reach(struct net *net)
{
    int client = net_client(net, 0, "10.9.9.9:9");

    net_sleep(ARRIVAL);
    EXPECT_EQUAL(net_get(client, SOL_SOCKET, SO_ERROR), EHOSTUNREACH);
    EXPECT_EQUAL(net_close(client), 0);
}

TEST(tcp, an_address_without_a_host_is_unreachable)
{
    net_run(NULL, not_reach);
}

static void connect_in_the_dark(struct net *net)
{
    int listener = net_server(net, 1, "0.0.0.0:7", 16), client, server;

    weir_sim_partition(net->hosts[0], net->hosts[1], true);
    client = net_client(net, 0, "10.0.0.2:7");
    net_sleep(weir_seconds(126));
    EXPECT_EQUAL(net_poll(client), 0);
    net_sleep(weir_seconds(3));
    EXPECT_EQUAL(net_get(client, SOL_SOCKET, SO_ERROR), ETIMEDOUT);
    EXPECT_EQUAL(net_close(client), 0);

    client = net_client(net, 0, "10.0.0.2:7");
    EXPECT_EQUAL(net_set(client, IPPROTO_TCP, TCP_USER_TIMEOUT, 5000), 0);
    net_sleep(weir_ms(4900));
    EXPECT_EQUAL(net_poll(client), 0);
    net_sleep(weir_ms(200));
    EXPECT_EQUAL(net_get(client, SOL_SOCKET, SO_ERROR), ETIMEDOUT);
    EXPECT_EQUAL(net_close(client), 0);

    client = net_client(net, 0, "10.0.0.2:7");
    net_sleep(weir_seconds(5));
    weir_sim_partition(net->hosts[0], net->hosts[1], false);
    net_sleep(weir_seconds(4)); /* the next SYN */
    EXPECT_EQUAL(net_poll(client), POLLOUT);
    net_act(net, 1);
    server = net_accept(listener);
    EXPECT(server >= 0);
    close_both(client, server);
    EXPECT_EQUAL(net_close(listener), 0);
}

TEST(tcp, a_connect_through_a_partition_times_out_or_succeeds_later)
{
    net_run(NULL, connect_in_the_dark);
}

static void give_up(struct net *net)
{
    int listener = net_server(net, 1, "0.0.0.0:7", 16);
    int client = net_client(net, 0, "10.0.0.2:7");

    net_sleep((int64_t)weir_sim_random(net->sim, 1000) * 1000);
    EXPECT_EQUAL(net_close(client), 0);
    net_sleep(ARRIVAL);
    EXPECT_EQUAL(net_close(listener), 0);
}

TEST(tcp, a_client_may_close_before_it_is_connected)
{
    net_run(NULL, give_up);
}

static void close_the_listener(struct net *net)
{
    int listener = net_server(net, 1, "0.0.0.0:7", 16), error;
    int client = net_client(net, 0, "10.0.0.2:7");

    net_sleep((int64_t)weir_sim_random(net->sim, 1500) * 1000);
    EXPECT_EQUAL(net_close(listener), 0);
    net_sleep(ARRIVAL);
    error = net_get(client, SOL_SOCKET, SO_ERROR);
    EXPECT(error == ECONNREFUSED || error == ECONNRESET);
    EXPECT_EQUAL(net_close(client), 0);
}

TEST(tcp, a_listener_that_closes_resets_what_it_has_not_accepted)
{
    net_run(NULL, close_the_listener);
}

/* ---- listening ---- */

static void fill_backlog(struct net *net)
{
    int listener = net_server(net, 1, "0.0.0.0:7", 1), clients[4], servers[4];

    for (unsigned i = 0; i < 4; i++)
        clients[i] = net_client(net, 0, "10.0.0.2:7");
    net_sleep(ARRIVAL);
    for (unsigned i = 0, connected = 0; i < 4; i++) {
        connected += (net_poll(clients[i]) & POLLOUT) != 0;
        EXPECT(i < 3 || connected == 2); /* one more than the backlog, as with Linux */
    }
    net_act(net, 1);
    servers[0] = net_accept(listener);
    servers[1] = net_accept(listener);
    EXPECT_EQUAL(net_accept(listener), -EAGAIN);
    net_sleep(weir_seconds(2)); /* the SYN is sent again */
    servers[2] = net_accept(listener);
    servers[3] = net_accept(listener);
    for (unsigned i = 0; i < 4; i++) {
        EXPECT((net_poll(clients[i]) & POLLOUT) != 0);
        close_both(clients[i], servers[i]);
    }
    EXPECT_EQUAL(net_close(listener), 0);
}

TEST(tcp, a_full_backlog_delays_connections)
{
    net_run(NULL, fill_backlog);
}

static void run_out_of_descriptors(struct net *net)
{
    int listener = net_server(net, 1, "0.0.0.0:7", 8), client, server, used[8];

    client = net_client(net, 0, "10.0.0.2:7");
    net_sleep(ARRIVAL);
    net_act(net, 1);
    for (unsigned i = 0; i < 7; i++)
        used[i] = net_socket(AF_INET, SOCK_DGRAM);
    EXPECT_EQUAL(net_socket(AF_INET, SOCK_STREAM), -EMFILE);
    EXPECT_EQUAL(net_accept(listener), -EMFILE);
    EXPECT((net_poll(listener) & POLLIN) != 0);
    EXPECT_EQUAL(net_close(used[6]), 0);
    server = net_accept(listener);
    EXPECT(server >= 0);
    for (unsigned i = 0; i < 6; i++)
        EXPECT_EQUAL(net_close(used[i]), 0);
    close_both(client, server);
    EXPECT_EQUAL(net_close(listener), 0);
}

TEST(tcp, an_accept_without_descriptors_keeps_the_connection)
{
    net_run(WEIR_SIM_OPTIONS(.max_descriptors = 8), run_out_of_descriptors);
}

/* ---- addresses ---- */

static void exhaust_ports(struct net *net)
{
    int listener = net_server(net, 1, "0.0.0.0:7", 16), clients[4], one_more;

    for (unsigned i = 0; i < 4; i++)
        clients[i] = net_client(net, 0, "10.0.0.2:7");
    one_more = net_socket(AF_INET, SOCK_STREAM);
    EXPECT_EQUAL(net_connect(one_more, "10.0.0.2:7"), -EADDRNOTAVAIL);
    EXPECT_EQUAL(net_bind(one_more, "0.0.0.0:0"), -EADDRINUSE);
    EXPECT_EQUAL(net_close(clients[2]), 0);
    EXPECT_EQUAL(net_connect(one_more, "10.0.0.2:7"), -EINPROGRESS);
    EXPECT_EQUAL(net_bind(one_more, "0.0.0.0:0"), -EINVAL);
    for (unsigned i = 0; i < 4; i++)
        EXPECT_EQUAL(net_close(i == 2 ? one_more : clients[i]), 0);
    EXPECT_EQUAL(net_close(listener), 0);
}

TEST(tcp, ports_can_be_exhausted)
{
    net_run(WEIR_SIM_OPTIONS(.network = {.ports = 4}), exhaust_ports);
}

static void collide(struct net *net)
{
    int listener = net_server(net, 1, "10.0.0.2:7", 16), other;

    other = net_socket(AF_INET, SOCK_STREAM);
    EXPECT_EQUAL(net_bind(other, "0.0.0.0:7"), -EADDRINUSE);
    EXPECT_EQUAL(net_bind(other, "10.0.0.1:7"), -EADDRNOTAVAIL);
    EXPECT_EQUAL(net_bind(other, "127.0.0.1:7"), 0);
    EXPECT_EQUAL(net_listen(other, 1), 0);
    EXPECT_EQUAL(net_close(other), 0);
    other = net_socket(AF_INET6, SOCK_STREAM);
    EXPECT_EQUAL(net_bind(other, "[::]:7"), -EADDRINUSE);
    EXPECT_EQUAL(net_set(other, IPPROTO_IPV6, IPV6_V6ONLY, 1), 0);
    EXPECT_EQUAL(net_bind(other, "[::]:7"), 0);
    EXPECT_EQUAL(net_close(other), 0);
    other = net_socket(AF_INET, SOCK_STREAM);
    EXPECT_EQUAL(net_listen(other, 1), 0); /* of a port that the kernel chooses */
    EXPECT(net_port(other) >= 32768);
    EXPECT_EQUAL(net_close(other), 0);
    EXPECT_EQUAL(net_close(listener), 0);
}

TEST(tcp, two_listeners_need_two_addresses)
{
    net_run(NULL, collide);
}

static unsigned accepted_by[2];

static void share_port(struct net *net)
{
    int listeners[2], clients[16];

    net_act(net, 1);
    for (unsigned i = 0; i < 2; i++) {
        listeners[i] = net_socket(AF_INET, SOCK_STREAM);
        EXPECT_EQUAL(net_set(listeners[i], SOL_SOCKET, SO_REUSEPORT, 1), 0);
        EXPECT_EQUAL(net_bind(listeners[i], "0.0.0.0:7"), 0);
        EXPECT_EQUAL(net_listen(listeners[i], 16), 0);
    }
    for (unsigned i = 0; i < 16; i++)
        clients[i] = net_client(net, 0, "10.0.0.2:7");
    net_sleep(ARRIVAL);
    for (unsigned i = 0, total = 0; i < 2; i++) {
        for (int server; (server = net_accept(listeners[i])) >= 0; total++, accepted_by[i]++)
            EXPECT_EQUAL(net_close(server), 0);
        EXPECT(i == 0 || total == 16);
        EXPECT_EQUAL(net_close(listeners[i]), 0);
    }
    for (unsigned i = 0; i < 16; i++)
        EXPECT_EQUAL(net_close(clients[i]), 0);
}

TEST(tcp, listeners_with_reuse_port_share_the_connections)
{
    accepted_by[0] = 0;
    accepted_by[1] = 0;
    net_run(NULL, share_port);
    assert_true(accepted_by[0] > 40 && accepted_by[1] > 40); /* of 320 */
}

static void use_ipv6(struct net *net)
{
    int listener = net_server(net, 1, "[::]:7", 16), servers[2], clients[2], refused;
    struct sockaddr_in6 peer;
    socklen_t length = sizeof(peer);

    clients[0] = net_client(net, 0, "[fd00::2]:7");
    servers[0] = net_await_accept(net, 1, listener);
    clients[1] = net_client(net, 0, "10.0.0.2:7");
    servers[1] = net_await_accept(net, 1, listener);
    EXPECT(servers[0] >= 0 && servers[1] >= 0);
    EXPECT_EQUAL(
        weir__seams_get()->system->getpeername(servers[1], (struct sockaddr *)&peer, &length), 0);
    EXPECT(peer.sin6_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&peer.sin6_addr));
    EXPECT_EQUAL(ntohs(peer.sin6_port), net_port(clients[1]));
    close_both(clients[0], servers[0]);
    close_both(clients[1], servers[1]);
    EXPECT_EQUAL(net_close(listener), 0);
    listener = net_server(net, 1, "0.0.0.0:7", 16);
    refused = net_client(net, 0, "[fd00::2]:7");
    net_sleep(ARRIVAL);
    EXPECT_EQUAL(net_get(refused, SOL_SOCKET, SO_ERROR), ECONNREFUSED);
    close_both(refused, listener);
}

TEST(tcp, a_dual_stack_listener_shows_mapped_addresses)
{
    net_run(NULL, use_ipv6);
}

static void use_loopback(struct net *net)
{
    int listener = net_server(net, 1, "127.0.0.1:7", 16), client, other, server;

    other = net_client(net, 0, "127.0.0.1:7"); /* of another host */
    client = net_client(net, 1, "0.0.0.0:7");
    server = net_await_accept(net, 1, listener);
    EXPECT(server >= 0);
    EXPECT_EQUAL(net_get(other, SOL_SOCKET, SO_ERROR), ECONNREFUSED);
    EXPECT_EQUAL(net_peer_port(client), 7);
    close_both(client, server);
    close_both(other, listener);
}

TEST(tcp, loopback_is_the_own_host)
{
    net_run(NULL, use_loopback);
}

/* ---- partitions and stopped hosts ---- */

static void heal(struct net *net)
{
    char byte;
    int client, server;

    net_pair(net, &client, &server);
    weir_sim_partition(net->hosts[0], net->hosts[1], true);
    EXPECT_EQUAL(net_send(client, "late", 4), 4);
    EXPECT_EQUAL(net_shutdown(client, SHUT_WR), 0);
    net_sleep(weir_seconds(3));
    EXPECT_EQUAL(net_receive(server, &byte, 1, 0), -EAGAIN);
    weir_sim_partition(net->hosts[0], net->hosts[1], false);
    net_sleep(weir_seconds(4)); /* it is sent again */
    EXPECT_TEXT(server, "late");
    EXPECT_EQUAL(net_receive(server, &byte, 1, 0), 0);
    close_both(client, server);
}

TEST(tcp, a_partition_that_heals_delays)
{
    net_run(NULL, heal);
}

static void time_out(struct net *net)
{
    char byte;
    int client, server;

    net_pair(net, &client, &server);
    EXPECT_EQUAL(net_set(client, IPPROTO_TCP, TCP_USER_TIMEOUT, 3000), 0);
    weir_sim_partition(net->hosts[0], net->hosts[1], true);
    EXPECT_EQUAL(net_send(client, "lost", 4), 4);
    net_sleep(weir_ms(2900));
    EXPECT_EQUAL(net_get(client, SOL_SOCKET, SO_ERROR), 0);
    net_sleep(weir_ms(200));
    EXPECT_EQUAL(net_receive(client, &byte, 1, 0), -ETIMEDOUT);
    EXPECT_EQUAL(net_send(client, "x", 1), -EPIPE);
    weir_sim_partition(net->hosts[0], net->hosts[1], false);
    net_sleep(weir_seconds(1));
    EXPECT_EQUAL(net_send(server, "too late", 8), 8);
    net_sleep(ARRIVAL);
    EXPECT_EQUAL(net_receive(client, &byte, 1, 0), 0); /* it is closed: nothing is received */
    EXPECT_EQUAL(net_receive(server, &byte, 1, 0), -ECONNRESET);
    close_both(client, server);
}

TEST(tcp, a_user_timeout_ends_a_black_hole)
{
    net_run(NULL, time_out);
}

static void time_out_slowly(struct net *net)
{
    int client, server;

    net_pair(net, &client, &server);
    weir_sim_partition(net->hosts[0], net->hosts[1], true);
    EXPECT_EQUAL(net_send(client, "lost", 4), 4);
    EXPECT_EQUAL(net_close(server), 0); /* its end of the stream is lost, too */
    net_sleep(weir_seconds(890));
    EXPECT_EQUAL(net_get(client, SOL_SOCKET, SO_ERROR), 0);
    net_sleep(weir_seconds(20));
    EXPECT_EQUAL(net_get(client, SOL_SOCKET, SO_ERROR), ETIMEDOUT);
    EXPECT_EQUAL(net_close(client), 0);
}

TEST(tcp, a_black_hole_ends_after_15_minutes)
{
    net_run(NULL, time_out_slowly);
}

static void stop_a_host(struct net *net)
{
    char byte;
    int client, server;

    net_pair(net, &client, &server);
    EXPECT_EQUAL(net_set(server, IPPROTO_TCP, TCP_USER_TIMEOUT, 3000), 0);
    weir_sim_host_stop(net->hosts[1]);
    EXPECT_EQUAL(net_send(client, "to", 2), 2);
    EXPECT_EQUAL(net_send(server, "from", 4), 4); /* written just before */
    net_sleep(weir_seconds(6));
    EXPECT_EQUAL(net_receive(server, &byte, 1, 0), -EAGAIN);
    EXPECT_EQUAL(net_receive(client, &byte, 1, 0), -EAGAIN);
    weir_sim_host_continue(net->hosts[1]);
    net_sleep(weir_seconds(13));
    EXPECT_TEXT(server, "to");
    EXPECT_TEXT(client, "from"); /* the timers of a stopped host stand still */
    close_both(client, server);
}

TEST(tcp, a_stopped_host_continues_its_connections)
{
    net_run(NULL, stop_a_host);
}

/* ---- killed processes ---- */

static void kill_process(struct net *net)
{
    char byte;
    int listener = net_server(net, 1, "10.0.0.2:8", 16), waiting, client, server;

    net_pair(net, &client, &server);
    waiting = net_client(net, 0, "10.0.0.2:8");
    net_sleep(ARRIVAL);
    EXPECT_EQUAL(net_send(server, "last words", 10), 10);
    weir_sim_kill(net->processes[1]);
    EXPECT_EQUAL(net_send(server, "x", 1), -ECONNRESET);
    EXPECT_EQUAL(net_receive(server, &byte, 1, 0), -ECONNRESET);
    EXPECT_EQUAL(net_accept(listener), -EINVAL);
    EXPECT_EQUAL(net_get(server, SOL_SOCKET, SO_ERROR), ECONNRESET);
    net_act(net, 1);
    EXPECT_EQUAL(net_socket(AF_INET, SOCK_STREAM), -ENETDOWN);
    net_sleep(ARRIVAL);
    EXPECT_TEXT(client, "last words"); /* the kernel still sends them */
    EXPECT_EQUAL(net_receive(client, &byte, 1, 0), 0);
    EXPECT_EQUAL(net_get(waiting, SOL_SOCKET, SO_ERROR), ECONNRESET);
    EXPECT_EQUAL(net_close(waiting), 0);
    waiting = net_client(net, 0, "10.0.0.2:8");
    net_sleep(ARRIVAL);
    EXPECT_EQUAL(net_get(waiting, SOL_SOCKET, SO_ERROR), ECONNREFUSED);
    close_both(waiting, client);
    close_both(server, listener);
}

TEST(tcp, the_sockets_of_a_killed_process_close)
{
    net_run(NULL, kill_process);
}

/* ---- channels ---- */

TEST(tcp, channels_echo_through_outages)
{
    echo_run(WEIR_SIM_OPTIONS(.rates = {[WEIR_SIM_FAULT_PARTITION] = 4,
                                        [WEIR_SIM_FAULT_HOST_STOP] = 3,
                                        [WEIR_SIM_FAULT_SHORT_READ] = 0.3,
                                        [WEIR_SIM_FAULT_SHORT_WRITE] = 0.3,
                                        [WEIR_SIM_FAULT_INTERRUPTED] = 0.1},
                              .max_outage_ns = weir_ms(100)),
             &(const struct echo){.kind = WEIR_KIND_STREAM,
                                  .server_address = "[::]:8007",
                                  .client_address = "10.0.0.2:8007",
                                  .size = 5000,
                                  .batch = 30});
}

/* ---- the check ---- */

static void move(weir__sim_stream *stream, bool corrupts)
{
    char text[] = "some text", copy[sizeof(text)];
    struct iovec in = {text, sizeof(text)}, out = {copy, sizeof(copy)};
    const struct msghdr written = {.msg_iov = &in, .msg_iovlen = 1};
    struct msghdr read = {.msg_iov = &out, .msg_iovlen = 1};

    weir__sim_stream_write(stream, &written, 4);
    weir__sim_stream_write(stream, &written, sizeof(text));
    if (corrupts) { /* two bytes change places */
        uint8_t first = stream->bytes[5];

        stream->bytes[5] = stream->bytes[6];
        stream->bytes[6] = first;
    }
    weir__sim_stream_read(stream, &read, 6, false);
    weir__sim_stream_read(stream, &read, 8, false);
}

static void move_bytes(struct net *net)
{
    weir__sim_stream stream = {0};

    (void)net;
    for (unsigned i = 0; i < 1000; i++)
        move(&stream, false);
    weir__sim_stream_drop(&stream);
}

static void swap_bytes(struct net *net)
{
    weir__sim_stream stream = {0};

    (void)net;
    move(&stream, true);
    weir__sim_stream_drop(&stream);
}

static void invent_bytes(struct net *net)
{
    weir__sim_stream stream = {0};
    char copy[4];
    struct iovec out = {copy, sizeof(copy)};
    struct msghdr read = {.msg_iov = &out, .msg_iovlen = 1};

    (void)net;
    move(&stream, false);
    weir__sim_stream_read(&stream, &read, 1, false);
}

TEST(stream, that_delivers_other_bytes_fails_the_run)
{
    net_run(NULL, move_bytes);
    assert_true(net_fails(swap_bytes, "other bytes than were written"));
    assert_true(net_fails(invent_bytes, "15 bytes, but 14 were written"));
}
