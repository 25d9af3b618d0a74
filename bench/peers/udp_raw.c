/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A UDP echo server on epoll with nothing else in it: a batch is received into hot buffers by one
 * call, and sent back by another.
 */
#include "echo/competitor.h"

#include <sys/epoll.h>

#include "udp/socket.h"

enum { BATCH = 16, WINDOW = 2048 };

static char windows[BATCH][WINDOW];
static struct iovec vectors[BATCH];
static struct sockaddr_in senders[BATCH];
static struct mmsghdr messages[BATCH];

static void server_configure(bench_round *round)
{
    (void)round;
}

static void prepare(int i)
{
    vectors[i] = (struct iovec){windows[i], WINDOW};
    messages[i].msg_hdr = (struct msghdr){
        .msg_name = &senders[i],
        .msg_namelen = sizeof(senders[i]),
        .msg_iov = &vectors[i],
        .msg_iovlen = 1,
    };
}

/* False if that was all. */
static bool echo_batch(int descriptor)
{
    int count = recvmmsg(descriptor, messages, BATCH, 0, NULL);

    if (count <= 0)
        return false;
    for (int i = 0; i < count; i++)
        vectors[i].iov_len = messages[i].msg_len;
    bench_require(sendmmsg(descriptor, messages, (unsigned)count, 0) == count, "sendmmsg");
    for (int i = 0; i < count; i++)
        prepare(i);
    return count == BATCH;
}

static void server_run(int cpu)
{
    int descriptor = udp_socket_open(), epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN};

    bench_pin(cpu);
    bench_require(epoll >= 0, "epoll_create1");
    bench_require(epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event) == 0, "epoll_ctl");
    for (int i = 0; i < BATCH; i++)
        prepare(i);
    echo_server_announce(descriptor);
    while (epoll_wait(epoll, &event, 1, -1) >= 0)
        while (echo_batch(descriptor))
            ;
}

#include "udp/cases.h"

int main(int argc, char **argv)
{
    static const bench_case cases[] = {UDP_CASES, {NULL, NULL}};

    return bench_main(argc, argv, cases);
}
