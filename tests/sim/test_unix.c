/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unix sockets of the simulated network, by system calls and by channels of weir.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/sim/echo.h"
#include "support/sim/net.h"

#define PATH "/run/x.sock"
#define ADDRESS "unix:" PATH

static weir__system *sys(void)
{
    return weir__seams_get()->system;
}

static void close_both(int a, int b)
{
    EXPECT_EQUAL(net_close(a), 0);
    EXPECT_EQUAL(net_close(b), 0);
}

static int open_bound(struct net *net, int kind, const char *address)
{
    int descriptor;

    net_act(net, 0);
    descriptor = net_socket(AF_UNIX, kind);
    EXPECT_EQUAL(net_bind(descriptor, address), 0);
    if (kind != SOCK_DGRAM)
        EXPECT_EQUAL(net_listen(descriptor, 16), 0);
    return descriptor;
}

/* A connection, by an abstract name. */
static void connect_pair(struct net *net, int kind, int *ret_client, int *ret_server)
{
    int listener = open_bound(net, kind, "unix:@pair");

    *ret_client = net_socket(AF_UNIX, kind);
    EXPECT_EQUAL(net_connect(*ret_client, "unix:@pair"), 0);
    *ret_server = net_accept(listener);
    EXPECT(*ret_server >= 0);
    EXPECT_EQUAL(net_close(listener), 0);
}

static bool has_file(const char *path)
{
    struct stat status;

    return sys()->lstat(path, &status) == 0;
}

/* ---- streams ---- */

static void exchange(struct net *net)
{
    char byte;
    int client, server;

    connect_pair(net, SOCK_STREAM, &client, &server);
    EXPECT_EQUAL(net_receive(server, &byte, 1, 0), -EAGAIN);
    EXPECT_EQUAL(net_send(client, "ab", 2), 2);
    EXPECT_EQUAL(net_send(client, "cd", 2), 2);
    EXPECT_EQUAL(net_poll(server), POLLIN | POLLOUT);
    EXPECT_EQUAL(net_receive(server, &byte, 1, MSG_PEEK), 1);
    EXPECT_TEXT(server, "abcd");
    EXPECT_EQUAL(net_shutdown(client, SHUT_WR), 0);
    EXPECT_EQUAL(net_send(client, "x", 1), -EPIPE);
    EXPECT((net_poll(server) & (POLLIN | POLLRDHUP | POLLHUP)) == (POLLIN | POLLRDHUP));
    EXPECT_EQUAL(net_receive(server, &byte, 1, 0), 0);
    EXPECT_EQUAL(net_send(server, "answer", 6), 6);
    EXPECT_TEXT(client, "answer");
    EXPECT_EQUAL(net_connect(client, "unix:@pair"), -ECONNREFUSED);
    close_both(client, server);
}

TEST(unix, a_stream_arrives_at_once)
{
    net_run(NULL, exchange);
}

static void fill_stream(struct net *net)
{
    static char large[100000];
    size_t received = 0;
    int client, server;

    connect_pair(net, SOCK_STREAM, &client, &server);
    EXPECT_EQUAL(net_send(client, large, sizeof(large)), 65536);
    EXPECT_EQUAL(net_send(client, "x", 1), -EAGAIN);
    EXPECT_EQUAL(net_poll(client) & POLLOUT, 0);
    while (received < 65536)
        received += (size_t)net_receive(server, large, 10000, 0);
    EXPECT((net_poll(client) & POLLOUT) != 0);
    EXPECT_EQUAL(received, 65536);
    close_both(client, server);
}

TEST(unix, a_full_stream_blocks_its_writer)
{
    net_run(NULL, fill_stream);
}

static void close_streams(struct net *net)
{
    char byte;
    int client, server;

    connect_pair(net, SOCK_STREAM, &client, &server);
    EXPECT_EQUAL(net_send(server, "before", 6), 6);
    EXPECT_EQUAL(net_close(server), 0);
    EXPECT((net_poll(client) & POLLHUP) != 0);
    EXPECT_EQUAL(net_send(client, "x", 1), -EPIPE);
    EXPECT_TEXT(client, "before");
    EXPECT_EQUAL(net_receive(client, &byte, 1, 0), 0);
    EXPECT_EQUAL(net_close(client), 0);

    connect_pair(net, SOCK_STREAM, &client, &server);
    EXPECT_EQUAL(net_send(server, "before", 6), 6);
    EXPECT_EQUAL(net_send(client, "unread", 6), 6);
    EXPECT_EQUAL(net_close(server), 0); /* unread data: a reset */
    EXPECT((net_poll(client) & POLLERR) != 0);
    EXPECT_TEXT(client, "before");
    EXPECT_EQUAL(net_receive(client, &byte, 1, 0), -ECONNRESET);
    EXPECT_EQUAL(net_receive(client, &byte, 1, 0), 0);
    EXPECT_EQUAL(net_close(client), 0);
}

TEST(unix, a_close_with_unread_data_is_a_reset)
{
    net_run(NULL, close_streams);
}

static void fill_backlog(struct net *net)
{
    char byte;
    int listener, clients[3];

    net_act(net, 0);
    listener = net_socket(AF_UNIX, SOCK_STREAM);
    EXPECT_EQUAL(net_bind(listener, ADDRESS), 0);
    EXPECT_EQUAL(net_listen(listener, 1), 0);
    for (unsigned i = 0; i < 3; i++)
        clients[i] = net_socket(AF_UNIX, SOCK_STREAM);
    EXPECT_EQUAL(net_connect(clients[0], ADDRESS), 0);
    EXPECT_EQUAL(net_connect(clients[1], ADDRESS), 0);
    EXPECT_EQUAL(net_connect(clients[2], ADDRESS), -EAGAIN);
    EXPECT_EQUAL(net_close(net_accept(listener)), 0);
    EXPECT_EQUAL(net_connect(clients[2], ADDRESS), 0);
    EXPECT_EQUAL(net_connect(clients[2], ADDRESS), -EISCONN);
    EXPECT_EQUAL(net_close(listener), 0);
    EXPECT_EQUAL(net_receive(clients[2], &byte, 1, 0), -ECONNRESET); /* it was not accepted */
    for (unsigned i = 0; i < 3; i++)
        EXPECT_EQUAL(net_close(clients[i]), 0);
    EXPECT_EQUAL(sys()->unlink(PATH), 0);
}

TEST(unix, a_full_backlog_refuses_for_now)
{
    net_run(NULL, fill_backlog);
}

/* ---- packets ---- */

static void exchange_packets(struct net *net)
{
    static char large[70000];
    char bytes[8];
    int client, server;

    connect_pair(net, SOCK_SEQPACKET, &client, &server);
    EXPECT_EQUAL(net_send(client, "one", 3), 3);
    EXPECT_EQUAL(net_send(client, "three", 5), 5);
    EXPECT_EQUAL(net_send(client, large, sizeof(large)), -EMSGSIZE);
    EXPECT_EQUAL(net_receive(server, bytes, sizeof(bytes), 0), 3);
    EXPECT_EQUAL(net_receive(server, bytes, 2, 0), 2); /* the rest is lost */
    EXPECT_EQUAL(net_receive(server, bytes, sizeof(bytes), 0), -EAGAIN);
    for (unsigned i = 0; i < 6; i++)
        EXPECT_EQUAL(net_send(client, large, 12000), 12000);
    EXPECT_EQUAL(net_send(client, large, 12000), -EAGAIN);
    EXPECT_EQUAL(net_poll(client) & POLLOUT, 0);
    for (unsigned i = 0; i < 5; i++)
        EXPECT_EQUAL(net_receive(server, large, sizeof(large), 0), 12000);
    EXPECT((net_poll(client) & POLLOUT) != 0);
    EXPECT_EQUAL(net_shutdown(client, SHUT_WR), 0);
    EXPECT_EQUAL(net_receive(server, large, sizeof(large), 0), 12000);
    EXPECT_EQUAL(net_receive(server, large, sizeof(large), 0), 0);
    close_both(client, server);
}

TEST(unix, packets_keep_their_boundaries)
{
    net_run(NULL, exchange_packets);
}

/* ---- datagrams ---- */

static void exchange_datagrams(struct net *net)
{
    char bytes[8];
    int a = open_bound(net, SOCK_DGRAM, "unix:@a"), b = open_bound(net, SOCK_DGRAM, ADDRESS), c;

    c = net_socket(AF_UNIX, SOCK_DGRAM);
    EXPECT_EQUAL(net_send(c, "x", 1), -ENOTCONN);
    EXPECT_EQUAL(net_send_to(c, "hello", 5, ADDRESS), 5);
    EXPECT_EQUAL(net_receive(b, bytes, sizeof(bytes), 0), 5);
    EXPECT_EQUAL(net_connect(b, "unix:@a"), 0);
    EXPECT_EQUAL(net_send_to(c, "x", 1, ADDRESS), -EPERM); /* it is connected to another */
    EXPECT_EQUAL(net_send_to(a, "", 0, ADDRESS), 0);
    EXPECT_EQUAL(net_receive(b, bytes, sizeof(bytes), 0), 0);
    EXPECT_EQUAL(net_connect(c, "unix:@a"), 0);
    for (unsigned i = 0; i < 11; i++)
        EXPECT_EQUAL(net_send(c, "x", 1), 1);
    EXPECT_EQUAL(net_send(c, "x", 1), -EAGAIN); /* the queue of the receiver is full */
    EXPECT_EQUAL(net_poll(c) & POLLOUT, 0);
    EXPECT_EQUAL(net_receive(a, bytes, sizeof(bytes), 0), 1);
    EXPECT((net_poll(c) & POLLOUT) != 0);
    EXPECT_EQUAL(net_close(a), 0);
    EXPECT_EQUAL(net_send(c, "x", 1), -ECONNREFUSED);
    EXPECT_EQUAL(net_send(c, "x", 1), -ENOTCONN);
    close_both(b, c);
    EXPECT_EQUAL(sys()->unlink(PATH), 0);
}

TEST(unix, datagrams_wait_for_their_receiver)
{
    net_run(NULL, exchange_datagrams);
}

/* ---- names ---- */

static void use_paths(struct net *net)
{
    struct stat first, second;
    int listener = open_bound(net, SOCK_STREAM, ADDRESS), other, client;

    other = net_socket(AF_UNIX, SOCK_STREAM);
    client = net_socket(AF_UNIX, SOCK_STREAM);
    EXPECT_EQUAL(net_bind(other, ADDRESS), -EADDRINUSE);
    EXPECT_EQUAL(net_connect(client, "unix:/run/y.sock"), -ENOENT);
    EXPECT_EQUAL(sys()->lstat(PATH, &first), 0);
    EXPECT(S_ISSOCK(first.st_mode) && (first.st_mode & 0777) == 0755);
    EXPECT_EQUAL(sys()->chmod(PATH, 0600), 0);
    EXPECT_EQUAL(sys()->rename(PATH, "/run/y.sock"), 0);
    EXPECT(!has_file(PATH));
    EXPECT_EQUAL(sys()->link("/run/y.sock", PATH), 0);
    EXPECT_EQUAL(sys()->link("/run/y.sock", PATH), -1);
    EXPECT_EQUAL(errno, EEXIST);
    EXPECT_EQUAL(sys()->lstat(PATH, &second), 0);
    EXPECT(first.st_ino == second.st_ino && (second.st_mode & 0777) == 0600);
    EXPECT_EQUAL(sys()->unlink("/run/y.sock"), 0);
    EXPECT_EQUAL(net_connect(client, ADDRESS), 0);
    EXPECT_EQUAL(net_close(client), 0);
    EXPECT_EQUAL(net_close(listener), 0);
    client = net_socket(AF_UNIX, SOCK_STREAM);
    EXPECT_EQUAL(net_connect(client, ADDRESS), -ECONNREFUSED); /* the file stays */
    EXPECT_EQUAL(net_bind(other, ADDRESS), -EADDRINUSE);
    EXPECT_EQUAL(sys()->unlink(PATH), 0);
    EXPECT_EQUAL(sys()->unlink(PATH), -1);
    EXPECT_EQUAL(errno, ENOENT);
    EXPECT_EQUAL(sys()->fchmod(other, 0700), 0);
    EXPECT_EQUAL(net_bind(other, ADDRESS), 0);
    EXPECT_EQUAL(sys()->lstat(PATH, &second), 0);
    EXPECT(first.st_ino != second.st_ino && (second.st_mode & 0777) == 0700);
    net_act(net, 1);
    EXPECT(!has_file(PATH)); /* another host */
    close_both(client, other);
}

TEST(unix, a_path_outlives_its_socket)
{
    net_run(NULL, use_paths);
}

static void use_abstract_names(struct net *net)
{
    const struct sockaddr any = {.sa_family = AF_UNIX};
    int listener = open_bound(net, SOCK_STREAM, "unix:@name"), other, datagram;

    other = net_socket(AF_UNIX, SOCK_STREAM);
    datagram = net_socket(AF_UNIX, SOCK_DGRAM);
    EXPECT_EQUAL(net_bind(other, "unix:@name"), -EADDRINUSE);
    EXPECT_EQUAL(net_connect(other, "unix:@none"), -ECONNREFUSED);
    EXPECT_EQUAL(net_connect(datagram, "unix:@name"), -EPROTOTYPE);
    EXPECT_EQUAL(net_connect(other, "unix:@name"), 0);
    EXPECT_EQUAL(net_close(listener), 0);
    EXPECT_EQUAL(net_close(other), 0);
    other = net_socket(AF_UNIX, SOCK_STREAM);
    EXPECT_EQUAL(net_bind(other, "unix:@name"), 0); /* free again */
    EXPECT_EQUAL(sys()->bind(datagram, &any, sizeof(sa_family_t)), 0);
    EXPECT_EQUAL(net_send_to(datagram, "x", 1, "unix:@00001"), 1); /* its own name */
    EXPECT_EQUAL(net_bind(datagram, "unix:@other"), -EINVAL);
    close_both(other, datagram);
}

TEST(unix, abstract_names_end_with_their_socket)
{
    net_run(NULL, use_abstract_names);
}

static void die(struct net *net)
{
    char byte;
    int listener = open_bound(net, SOCK_STREAM, ADDRESS), client, server;

    connect_pair(net, SOCK_STREAM, &client, &server);
    weir_sim_kill(net->processes[0]);
    EXPECT_EQUAL(sys()->unlink(PATH), -1);
    EXPECT_EQUAL(errno, EIO);
    EXPECT_EQUAL(net_receive(client, &byte, 1, 0), -ECONNRESET);
    net_act(net, 1);
    close_both(client, server);
    EXPECT_EQUAL(net_close(listener), 0);
    net->processes[1] = weir__sim_process_create(net->hosts[0], "again");
    net_act(net, 1);
    EXPECT(has_file(PATH)); /* as after SIGKILL */
    client = net_socket(AF_UNIX, SOCK_STREAM);
    EXPECT_EQUAL(net_connect(client, ADDRESS), -ECONNREFUSED);
    EXPECT_EQUAL(net_close(client), 0);
}

TEST(unix, a_killed_process_leaves_its_files)
{
    net_run(NULL, die);
}

/* ---- credentials and descriptors ---- */

static void read_credentials(struct net *net)
{
    struct ucred of_client, of_server;
    socklen_t length = sizeof(of_client);
    int client, server;

    connect_pair(net, SOCK_STREAM, &client, &server);
    EXPECT_EQUAL(sys()->getsockopt(server, SOL_SOCKET, SO_PEERCRED, &of_client, &length), 0);
    EXPECT_EQUAL(sys()->getsockopt(client, SOL_SOCKET, SO_PEERCRED, &of_server, &length), 0);
    EXPECT(of_client.pid > 0 && of_client.pid == of_server.pid && of_client.uid == 1000);
    close_both(client, server);
    client = net_socket(AF_UNIX, SOCK_STREAM);
    EXPECT_EQUAL(sys()->getsockopt(client, SOL_SOCKET, SO_PEERCRED, &of_server, &length), 0);
    EXPECT(of_server.uid == (uid_t)-1);
    EXPECT_EQUAL(net_close(client), 0);
}

TEST(unix, the_peer_has_credentials)
{
    net_run(NULL, read_credentials);
}

static ssize_t send_descriptors(int descriptor, char *bytes, size_t length, const int *passed,
                                unsigned count)
{
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(4 * sizeof(int))] = {0};
    struct iovec vector = {bytes, length};
    struct msghdr message = {.msg_iov = &vector,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = CMSG_SPACE(count * sizeof(int))};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);

    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(count * sizeof(int));
    memcpy(CMSG_DATA(header), passed, count * sizeof(int));
    return sys()->sendmsg(descriptor, &message, MSG_NOSIGNAL) < 0 ? -errno : (ssize_t)length;
}

/* Returns the length; *ret_count is the number of descriptors. */
static ssize_t receive_descriptors(int descriptor, char *bytes, size_t size, int *ret_passed,
                                   unsigned max, unsigned *ret_count, int *ret_flags)
{
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(4 * sizeof(int))];
    struct iovec vector = {bytes, size};
    struct msghdr message = {.msg_iov = &vector,
                             .msg_iovlen = 1,
                             .msg_control = max > 0 ? control : NULL,
                             .msg_controllen = max > 0 ? CMSG_LEN(max * sizeof(int)) : 0};
    ssize_t length = sys()->recvmsg(descriptor, &message, 0);
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);

    *ret_count = 0;
    *ret_flags = message.msg_flags;
    if (length >= 0 && header != NULL) {
        *ret_count = (unsigned)((header->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        memcpy(ret_passed, CMSG_DATA(header), *ret_count * sizeof(int));
    }
    return length < 0 ? -errno : length;
}

static void pass(struct net *net)
{
    char bytes[16], text[] = "abcdef";
    int client, server, a, b, passed[4], flags;
    unsigned count;

    connect_pair(net, SOCK_STREAM, &client, &server);
    connect_pair(net, SOCK_STREAM, &a, &b);
    EXPECT_EQUAL(net_send(client, "123", 3), 3);
    EXPECT_EQUAL(send_descriptors(client, text, 6, (const int[]){a, b}, 2), 6);
    EXPECT_EQUAL(net_send(client, "456", 3), 3);
    EXPECT_EQUAL(net_close(a), 0); /* the message keeps it open */
    EXPECT_EQUAL(receive_descriptors(server, bytes, 3, passed, 4, &count, &flags), 3);
    EXPECT_EQUAL(count, 0);
    EXPECT_EQUAL(receive_descriptors(server, bytes, 16, passed, 4, &count, &flags), 6);
    EXPECT(count == 2 && flags == 0); /* a read ends with the bytes that brought them */
    EXPECT_EQUAL(net_send(passed[0], "via", 3), 3);
    EXPECT_TEXT(b, "via");
    EXPECT_TEXT(server, "456");
    close_both(passed[0], passed[1]);
    EXPECT_EQUAL(send_descriptors(client, text, 6, (const int[]){b, b}, 2), 6);
    EXPECT_EQUAL(receive_descriptors(server, bytes, 16, passed, 1, &count, &flags), 6);
    EXPECT(count == 1 && flags == MSG_CTRUNC);
    EXPECT_EQUAL(net_close(passed[0]), 0);
    EXPECT_EQUAL(send_descriptors(client, text, 6, (const int[]){b}, 1), 6);
    EXPECT_EQUAL(receive_descriptors(server, bytes, 16, passed, 0, &count, &flags), 6);
    EXPECT_EQUAL(flags, MSG_CTRUNC);
    EXPECT_EQUAL(send_descriptors(client, text, 6, (const int[]){b}, 1), 6); /* never received */
    EXPECT_EQUAL(send_descriptors(client, text, 6, (const int[]){99999}, 1), -EBADF);
    close_both(client, server);
    EXPECT_EQUAL(net_close(b), 0);
}

TEST(unix, descriptors_pass_with_a_stream)
{
    net_run(NULL, pass);
}

static void pass_in_packets(struct net *net)
{
    char bytes[16], text[] = "abc";
    int client, server, a, b, passed[4], flags;
    unsigned count;

    connect_pair(net, SOCK_SEQPACKET, &client, &server);
    connect_pair(net, SOCK_STREAM, &a, &b);
    EXPECT_EQUAL(send_descriptors(client, text, 3, (const int[]){a}, 1), 3);
    EXPECT_EQUAL(send_descriptors(client, text, 3, (const int[]){b}, 1), 3);
    EXPECT_EQUAL(receive_descriptors(server, bytes, 16, passed, 4, &count, &flags), 3);
    EXPECT_EQUAL(count, 1);
    EXPECT_EQUAL(net_send(passed[0], "via", 3), 3);
    EXPECT_TEXT(b, "via");
    EXPECT_EQUAL(net_close(passed[0]), 0);
    close_both(a, b);
    close_both(client, server); /* with one under way */
}

TEST(unix, descriptors_pass_with_packets)
{
    net_run(NULL, pass_in_packets);
}

/* A listener in two processes: one dies, the other serves. */
static void share_listener(struct net *net)
{
    char bytes[8], text[] = "x", byte;
    int listener = net_server(net, 0, "10.0.0.1:80", 16), client, server, a, b, passed = -1, flags;
    unsigned count;

    connect_pair(net, SOCK_STREAM, &a, &b);
    EXPECT_EQUAL(send_descriptors(a, text, 1, &listener, 1), 1);
    net->processes[2] = weir__sim_process_create(net->hosts[0], "successor");
    net_act(net, 2);
    EXPECT_EQUAL(receive_descriptors(b, bytes, 8, &passed, 1, &count, &flags), 1);
    client = net_client(net, 1, "10.0.0.1:80");
    net_sleep(weir_ms(20));
    EXPECT(net_poll(listener) == POLLIN && net_poll(passed) == POLLIN);
    weir_sim_kill(net->processes[0]);
    EXPECT_EQUAL(net_accept(listener), -EINVAL);
    net_act(net, 2);
    server = net_accept(passed);
    EXPECT(server >= 0);
    EXPECT_EQUAL(net_send(client, "hi", 2), 2);
    net_sleep(weir_ms(20));
    EXPECT_TEXT(server, "hi");
    close_both(client, server);
    EXPECT_EQUAL(net_close(listener), 0);
    client = net_client(net, 1, "10.0.0.1:80");
    net_sleep(weir_ms(20));
    EXPECT_EQUAL(net_poll(client), POLLOUT);
    EXPECT_EQUAL(net_close(passed), 0);
    net_sleep(weir_ms(20));
    EXPECT_EQUAL(net_receive(client, &byte, 1, 0), -ECONNRESET);
    EXPECT_EQUAL(net_close(client), 0);
    close_both(a, b);
}

TEST(unix, a_passed_listener_survives_its_first_process)
{
    net_run(NULL, share_listener);
}

/* ---- channels ---- */

static const struct {
    enum weir_kind kind;
    const char *address;
} lines[] = {
    {WEIR_KIND_STREAM, ADDRESS},        {WEIR_KIND_STREAM, "unix:@echo"},
    {WEIR_KIND_SEQPACKET, ADDRESS},     {WEIR_KIND_DATAGRAM, ADDRESS},
    {WEIR_KIND_DATAGRAM, "unix:@echo"},
};

TEST(unix, channels_echo)
{
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
        echo_run(WEIR_SIM_OPTIONS(.rates = {[WEIR_SIM_FAULT_SHORT_READ] = 0.3,
                                            [WEIR_SIM_FAULT_SHORT_WRITE] = 0.3,
                                            [WEIR_SIM_FAULT_INTERRUPTED] = 0.1}),
                 &(const struct echo){.kind = lines[i].kind,
                                      .server_address = lines[i].address,
                                      .client_address = lines[i].address,
                                      .is_local = true,
                                      .size = 1400,
                                      .batch = 30});
}
