/* SPDX-License-Identifier: Apache-2.0 */
#include "udp/load.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/bench.h"

enum { EVENTS_MAX = 64, WAIT_MS_MAX = 10 * 1000 };

struct client {
    int descriptor;
    int64_t sent_ns;
};

/* The messages are the same for all of them, and for each datagram of a batch. */
struct udp_load {
    int epoll;
    size_t count;
    size_t size;
    size_t depth;
    struct client *clients;
    char *request;
    char *answers; /* `depth` of them */
    struct iovec out;
    struct iovec in[UDP_DEPTH_MAX];
    struct mmsghdr requests[UDP_DEPTH_MAX];
    struct mmsghdr received[UDP_DEPTH_MAX];
    echo_counts *counts;
};

static void ask(udp_load *load, struct client *client, unsigned count, int64_t now_ns)
{
    client->sent_ns = now_ns;
    bench_require(sendmmsg(client->descriptor, load->requests, count, 0) == (int)count, "sending");
}

static void on_readable(udp_load *load, struct client *client)
{
    int count =
        recvmmsg(client->descriptor, load->received, (unsigned)load->depth, MSG_DONTWAIT, NULL);
    int64_t now_ns = bench_now_ns();

    bench_require(count > 0, "receiving");
    for (int i = 0; i < count; i++)
        bench_require(load->received[i].msg_len == load->size, "the length of the echo");
    bench_require(memcmp(load->answers, load->request, load->size) == 0, "the echo");
    load->counts->requests += (uint64_t)count;
    latency_record(&load->counts->latency, now_ns - client->sent_ns);
    ask(load, client, (unsigned)count, now_ns);
}

void udp_load_run(udp_load *load, int64_t duration_ns, echo_counts *counts)
{
    int64_t end_ns = bench_now_ns() + duration_ns;
    struct epoll_event events[EVENTS_MAX];

    load->counts = counts;
    do {
        int count = epoll_wait(load->epoll, events, EVENTS_MAX, WAIT_MS_MAX);

        bench_require(count > 0, "waiting for an answer");
        for (int i = 0; i < count; i++)
            on_readable(load, events[i].data.ptr);
    } while (bench_now_ns() < end_ns);
}

static void client_open(udp_load *load, struct client *client, uint16_t port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons(port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = client};

    client->descriptor = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bench_require(client->descriptor >= 0, "socket");
    bench_require(connect(client->descriptor, (struct sockaddr *)&address, sizeof(address)) == 0,
                  "connecting");
    bench_require(epoll_ctl(load->epoll, EPOLL_CTL_ADD, client->descriptor, &event) == 0,
                  "epoll_ctl");
}

static void prepare_messages(udp_load *load)
{
    uint64_t state = load->size;

    for (size_t i = 0; i < load->size; i++)
        load->request[i] = (char)bench_random(&state);
    load->out = (struct iovec){load->request, load->size};
    for (size_t i = 0; i < load->depth; i++) {
        load->in[i] = (struct iovec){load->answers + i * load->size, load->size};
        load->requests[i].msg_hdr = (struct msghdr){.msg_iov = &load->out, .msg_iovlen = 1};
        load->received[i].msg_hdr = (struct msghdr){.msg_iov = &load->in[i], .msg_iovlen = 1};
    }
}

udp_load *udp_load_open(uint16_t port, size_t sockets, size_t size, size_t depth)
{
    udp_load *load = bench_alloc(1, sizeof(*load));

    bench_require(depth <= UDP_DEPTH_MAX, "such a depth");
    load->epoll = epoll_create1(EPOLL_CLOEXEC);
    bench_require(load->epoll >= 0, "epoll_create1");
    load->count = sockets;
    load->size = size;
    load->depth = depth;
    load->clients = bench_alloc(sockets, sizeof(*load->clients));
    load->request = bench_alloc(1, size);
    load->answers = bench_alloc(depth, size);
    prepare_messages(load);
    for (size_t i = 0; i < sockets; i++)
        client_open(load, &load->clients[i], port);
    for (size_t i = 0; i < sockets; i++)
        ask(load, &load->clients[i], (unsigned)depth, bench_now_ns());
    return load;
}

void udp_load_close(udp_load *load)
{
    for (size_t i = 0; i < load->count; i++)
        close(load->clients[i].descriptor);
    close(load->epoll);
    bench_free(load->answers);
    bench_free(load->request);
    bench_free(load->clients);
    bench_free(load);
}
