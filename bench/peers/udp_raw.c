/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A UDP echo server on epoll with nothing else in it: a batch is received into hot buffers by one
 * call, and sent back by another; with join=1 those of one length to one recipient as one message,
 * of which the system makes datagrams again.
 */
#include "echo/competitor.h"

#include <netinet/udp.h>
#include <string.h>
#include <sys/epoll.h>

#include "udp/socket.h"

enum { BATCH = 16, WINDOW = 2048 };

static char windows[BATCH][WINDOW];
static struct iovec vectors[BATCH];
static struct sockaddr_in senders[BATCH];
static struct mmsghdr messages[BATCH];
static struct mmsghdr runs[BATCH];
static _Alignas(struct cmsghdr) char controls[BATCH][CMSG_SPACE(sizeof(uint16_t))];
static bool joins;

static void server_configure(bench_round *round)
{
    joins = bench_setting(round, "join", 0) != 0;
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

static void ask_for_segments(struct msghdr *header, char *control, uint16_t size)
{
    header->msg_control = control;
    header->msg_controllen = sizeof(controls[0]);
    *CMSG_FIRSTHDR(header) = (struct cmsghdr){
        .cmsg_len = CMSG_LEN(sizeof(size)),
        .cmsg_level = IPPROTO_UDP,
        .cmsg_type = UDP_SEGMENT,
    };
    memcpy(CMSG_DATA(CMSG_FIRSTHDR(header)), &size, sizeof(size));
}

static bool are_alike(int one, int other)
{
    return messages[one].msg_len == messages[other].msg_len &&
           memcmp(&senders[one], &senders[other], sizeof(senders[0])) == 0;
}

/* Joins equal neighbours of `count` messages; returns the number of runs. */
static int join(int count)
{
    int used = 0;

    for (int from = 0, to; from < count; from = to) {
        struct msghdr *header = &runs[used].msg_hdr;

        for (to = from + 1; to < count && are_alike(from, to); to++)
            ;
        *header = messages[from].msg_hdr;
        header->msg_iovlen = (size_t)(to - from);
        if (to - from > 1)
            ask_for_segments(header, controls[used], (uint16_t)messages[from].msg_len);
        used++;
    }
    return used;
}

static void send_back(int descriptor, int count)
{
    struct mmsghdr *sent = joins ? runs : messages;

    count = joins ? join(count) : count;
    bench_require(sendmmsg(descriptor, sent, (unsigned)count, 0) == count, "sendmmsg");
}

/* False if that was all. */
static bool echo_batch(int descriptor)
{
    int count = recvmmsg(descriptor, messages, BATCH, 0, NULL);

    if (count <= 0)
        return false;
    for (int i = 0; i < count; i++)
        vectors[i].iov_len = messages[i].msg_len;
    send_back(descriptor, count);
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
