/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The limit: canned answers (http/canned.h). As a proxy, a relay of bytes that knows nothing of
 * HTTP, with an upstream connection for each of the clients'.
 */
#include "echo/competitor.h"

#include <netinet/in.h>
#include <netinet/tcp.h>

#include "http/service.h"
#include "peers/backlog.h"

static void server_configure(bench_round *round)
{
    service_configure(round);
}

/* ---- a relay ---- */

static int others[DESCRIPTORS_MAX]; /* the other end of each descriptor, + 1 */

static void relay_accepted(int descriptor)
{
    struct sockaddr_storage address;
    socklen_t length = echo_server_address(service.upstream, &address);
    int other = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int on = 1;

    bench_require(other >= 0 && other < DESCRIPTORS_MAX, "so many connections");
    bench_require(connect(other, (struct sockaddr *)&address, length) == 0, "connecting");
    setsockopt(other, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    others[descriptor] = other + 1;
    others[other] = descriptor + 1;
    watch(other, EPOLL_CTL_ADD, EPOLLIN);
}

static void relay_hang_up(int descriptor)
{
    int other = others[descriptor] - 1;

    if (other < 0)
        return;
    others[descriptor] = others[other] = 0;
    backlog_clear(descriptor);
    backlog_clear(other);
    close(descriptor);
    close(other);
}

static void relay_readable(int descriptor)
{
    static alignas(4096) char window[CANNED_WINDOW];
    ssize_t got = recv(descriptor, window, sizeof(window), MSG_DONTWAIT);
    int other = others[descriptor] - 1;
    ssize_t sent = got > 0 ? send_now(other, window, (size_t)got) : -1;

    if (sent < 0) {
        relay_hang_up(descriptor);
    } else if (sent < got) {
        backlog_add(other, window + sent, (size_t)(got - sent));
        watch(other, EPOLL_CTL_MOD, EPOLLOUT);
    }
}

static void relay_writable(int descriptor)
{
    if (!backlog_send(descriptor))
        relay_hang_up(descriptor);
    else if (backlog_is_empty(descriptor))
        watch(descriptor, EPOLL_CTL_MOD, EPOLLIN);
}

/* ---- both ---- */

static void prepare_file(void)
{
    char path[128];

    snprintf(path, sizeof(path), "%s%s", bench_folder(), service.path);
    canned_prepare_file(path, service.size);
}

static void server_run(int cpu)
{
    static const struct watched relay = {relay_accepted, relay_readable, relay_writable};

    if (service.serve == SERVE_PROXY)
        watched_run(&relay, cpu);
    if (service.serve == SERVE_FILE)
        prepare_file();
    else
        canned_prepare_text(HTTP_HELLO);
    canned_run(cpu);
}

#include "http/cases.h"

int main(int argc, char **argv)
{
    static const bench_case cases[] = {HTTP_CASES, {NULL, NULL}};

    return bench_main(argc, argv, cases);
}
