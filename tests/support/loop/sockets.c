/* SPDX-License-Identifier: Apache-2.0 */
/* Calls the system directly, not through weir__sys: only calls of the library fail there. */
#include "support/loop/sockets.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/un.h>
#include <unistd.h>

#include "os/clock.h"
#include "os/thread.h"
#include "support/test.h"
#include "support/timeout.h"

/* 127.64.0.0/10 has an address for every process id of 22 bits. */
uint32_t own_loopback(void)
{
    return (127u << 24) | (64u << 16) | ((uint32_t)getpid() & 0x3fffff);
}

const char *own_loopback_text(void)
{
    static char text[32];
    uint32_t address = own_loopback();

    (void)snprintf(text, sizeof(text), "127.%u.%u.%u:0", address >> 16 & 255, address >> 8 & 255,
                   address & 255);
    return text;
}

static struct address fresh_address(int family)
{
    static unsigned number;
    struct address address = {.storage = {.ss_family = (sa_family_t)family}};

    if (family == AF_INET) {
        struct sockaddr_in *inet = (struct sockaddr_in *)&address.storage;

        inet->sin_addr.s_addr = htonl(own_loopback());
        address.length = sizeof(*inet);
    } else {
        struct sockaddr_un *local = (struct sockaddr_un *)&address.storage;
        int length = snprintf(local->sun_path + 1, sizeof(local->sun_path) - 1, "weir-test-%d-%u",
                              (int)getpid(), number++);

        address.length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
    }
    return address;
}

int socket_new(int family, int type)
{
    int descriptor = socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    assert_true(descriptor >= 0);
    return descriptor;
}

int socket_bind(int family, int type, struct address *ret_address)
{
    int descriptor = socket_new(family, type);
    struct address address = fresh_address(family);
    struct sockaddr *generic = (struct sockaddr *)&address.storage;

    assert_int_equal(bind(descriptor, generic, address.length), 0);
    assert_int_equal(getsockname(descriptor, generic, &address.length), 0);
    *ret_address = address;
    return descriptor;
}

int socket_listen(int family, int backlog, struct address *ret_address)
{
    int descriptor = socket_bind(family, SOCK_STREAM, ret_address);

    assert_int_equal(listen(descriptor, backlog), 0);
    return descriptor;
}

int socket_connect(const struct address *address)
{
    int descriptor = socket_new(address->storage.ss_family, SOCK_STREAM);
    int err = connect(descriptor, (const struct sockaddr *)&address->storage, address->length);

    assert_true(err == 0 || errno == EINPROGRESS);
    return descriptor;
}

static void tcp_pair(int ret_pair[2])
{
    struct address address;
    int listener = socket_listen(AF_INET, 1, &address);
    const int on = 1;

    assert_int_equal(fcntl(listener, F_SETFL, 0), 0); /* waits for the connection */
    ret_pair[0] = socket_connect(&address);
    ret_pair[1] = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    assert_true(ret_pair[1] >= 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(setsockopt(ret_pair[i], IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)), 0);
    (void)close(listener);
}

static void udp_pair(int ret_pair[2])
{
    struct address addresses[2];

    for (int i = 0; i < 2; i++)
        ret_pair[i] = socket_bind(AF_INET, SOCK_DGRAM, &addresses[i]);
    for (int i = 0; i < 2; i++)
        assert_int_equal(
            connect(ret_pair[i], (struct sockaddr *)&addresses[!i].storage, addresses[!i].length),
            0);
}

static void unix_pair(int type, int ret_pair[2])
{
    assert_int_equal(socketpair(AF_UNIX, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ret_pair), 0);
}

void socket_pair(enum pair_kind kind, int ret_pair[2])
{
    switch (kind) {
    case PAIR_TCP:
        tcp_pair(ret_pair);
        break;
    case PAIR_UNIX:
        unix_pair(SOCK_STREAM, ret_pair);
        break;
    case PAIR_UNIX_SEQPACKET:
        unix_pair(SOCK_SEQPACKET, ret_pair);
        break;
    case PAIR_UNIX_DATAGRAM:
        unix_pair(SOCK_DGRAM, ret_pair);
        break;
    case PAIR_UDP:
        udp_pair(ret_pair);
        break;
    }
}

void socket_shrink(int descriptor, int size)
{
    assert_int_equal(setsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)), 0);
    assert_int_equal(setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size)), 0);
}

void socket_reset(int descriptor)
{
    const struct linger none = {.l_onoff = 1, .l_linger = 0};

    assert_int_equal(setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &none, sizeof(none)), 0);
    (void)close(descriptor);
}

size_t socket_waiting(int descriptor)
{
    int count = 0;

    assert_int_equal(ioctl(descriptor, FIONREAD, &count), 0);
    return (size_t)count;
}

size_t socket_fill(int descriptor)
{
    static const char zeroes[4096];
    size_t total = 0;
    ssize_t count;

    while ((count = send(descriptor, zeroes, sizeof(zeroes), MSG_NOSIGNAL)) > 0)
        total += (size_t)count;
    assert_int_equal(errno, EAGAIN);
    return total;
}

size_t socket_drain(int descriptor)
{
    char memory[4096];
    size_t total = 0;
    ssize_t count;

    while ((count = recv(descriptor, memory, sizeof(memory), 0)) > 0)
        total += (size_t)count;
    return total;
}

size_t descriptors_open(void)
{
    DIR *directory = opendir("/proc/self/fd");
    size_t count = 0;

    assert_non_null(directory);
    while (readdir(directory) != NULL)
        count++;
    (void)closedir(directory);
    return count - 3; /* ".", ".." and the directory itself */
}

void descriptors_print(void)
{
    DIR *directory = opendir("/proc/self/fd");
    const struct dirent *entry;
    char target[128];
    ssize_t length;

    assert_non_null(directory);
    while ((entry = readdir(directory)) != NULL) {
        length = readlinkat(dirfd(directory), entry->d_name, target, sizeof(target));
        if (length > 0)
            printf("descriptor %s is %.*s\n", entry->d_name, (int)length, target);
    }
    (void)closedir(directory);
}

bool descriptors_await(size_t count)
{
    int64_t until_ns = weir__monotonic_now() + TEST_TIMEOUT_NS;

    while (descriptors_open() != count) {
        if (weir__monotonic_now() > until_ns) {
            descriptors_print();
            return false;
        }
        weir__thread_sleep(weir_ms(1));
    }
    return true;
}

void descriptors_limit(rlim_t limit)
{
    struct rlimit limits;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limits), 0);
    limits.rlim_cur = limit;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limits), 0);
}

static int lowest_free(void)
{
    int lowest = open("/dev/null", O_RDONLY | O_CLOEXEC);

    assert_true(lowest >= 0);
    (void)close(lowest);
    return lowest;
}

/*
 * The limit applies to numbers: the lowest free one is the first to fail. Other threads may use a
 * lower one for a moment, so it must be found many times in a row.
 */
rlim_t descriptors_forbid(void)
{
    int lowest = lowest_free(), found;
    struct rlimit limits;

    for (int times = 0; times < 50; times++) {
        weir__thread_yield();
        found = lowest_free();
        if (found != lowest)
            times = 0;
        lowest = found;
    }
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limits), 0);
    descriptors_limit((rlim_t)lowest);
    return limits.rlim_cur;
}

void descriptors_allow_all(void)
{
    struct rlimit limits;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limits), 0);
    descriptors_limit(limits.rlim_max);
}
