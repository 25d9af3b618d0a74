/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ./dev soak connections [COUNT]: on each backend a server holds as many connections as the limit
 * of descriptors allows. Their clients are plain sockets in another process, which has the same
 * limit; each is pinged twice, and none may be lost.
 */
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/channel.h>
#include <weir/group.h>
#include <weir/pipeline.h>
#include <weir/server.h>

#include "os/clock.h"
#include "support/loop/backend.h"

#define SPARE 200 /* descriptors for everything else */
#define PINGS 2

static unsigned as_many_as_possible(void)
{
    struct rlimit limits = {0};

    (void)getrlimit(RLIMIT_NOFILE, &limits);
    limits.rlim_cur = limits.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limits);
    return (unsigned)(limits.rlim_cur > 1 << 20 ? 1 << 20 : limits.rlim_cur) - SPARE;
}

/* ---- the clients' process ---- */

static int connect_to(uint16_t port)
{
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const struct linger reset = {.l_onoff =
                                     1}; /* or the ports would run out by the fourth backend */
    int client = socket(AF_INET, SOCK_STREAM, 0);

    if (client < 0 || connect(client, (const struct sockaddr *)&address, sizeof(address)) < 0)
        return -1;
    (void)setsockopt(client, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
    return client;
}

static bool ping_all(const int *clients, unsigned count, unsigned round)
{
    for (unsigned i = 0; i < count; i++) {
        uint64_t ping = (uint64_t)round << 32 | i;

        if (send(clients[i], &ping, sizeof(ping), MSG_NOSIGNAL) != sizeof(ping))
            return false;
    }
    for (unsigned i = 0; i < count; i++) {
        uint64_t pong = 0;

        if (recv(clients[i], &pong, sizeof(pong), MSG_WAITALL) != sizeof(pong) ||
            pong != ((uint64_t)round << 32 | i))
            return false;
    }
    return true;
}

/* All of them are open before the first is pinged, and until the last has been. */
static bool be_clients(uint16_t port, unsigned count)
{
    int *clients = calloc(count, sizeof(*clients));

    if (clients == NULL)
        return false;
    for (unsigned i = 0; i < count; i++) {
        clients[i] = connect_to(port);
        if (clients[i] < 0)
            return false;
    }
    for (unsigned round = 0; round < PINGS; round++)
        if (!ping_all(clients, count, round))
            return false;
    return true;
}

/* A process that waits for the port number. Forked before weir starts threads. */
struct clients {
    pid_t process;
    int port;
};

static struct clients fork_clients(unsigned count)
{
    struct clients clients;
    uint16_t port;
    int ends[2];

    if (pipe(ends) < 0)
        abort();
    clients.process = fork();
    if (clients.process == 0) {
        (void)close(ends[1]);
        if (read(ends[0], &port, sizeof(port)) != sizeof(port))
            _exit(0); /* it was not needed */
        _exit(be_clients(port, count) ? 0 : 1);
    }
    (void)close(ends[0]);
    clients.port = ends[1];
    return clients;
}

static bool let_clients_do(struct clients *clients, uint16_t port)
{
    int status = 1;

    if (write(clients->port, &port, sizeof(port)) != sizeof(port))
        return false;
    (void)waitpid(clients->process, &status, 0);
    return status == 0;
}

/* ---- the server ---- */

static _Atomic unsigned held, most_held;

static void on_active(weir_ctx *ctx)
{
    unsigned now = atomic_fetch_add(&held, 1) + 1;

    if (now > atomic_load(&most_held))
        atomic_store(&most_held, now); /* there is one thread */
    weir_fire_active(ctx);
}

static void on_inactive(weir_ctx *ctx)
{
    atomic_fetch_sub(&held, 1);
    weir_fire_inactive(ctx);
}

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    weir_write_and_flush(ctx, msg, NULL);
}

static const weir_handler echo = {
    .name = "echo", .active = on_active, .inactive = on_inactive, .read = on_read};

static int init_child(weir_channel *channel, void *user_data)
{
    (void)user_data;
    return weir_pipeline_add_last(weir_channel_pipeline(channel), &echo, NULL);
}

static bool serve(weir_group *group, struct clients *clients)
{
    weir_server *server;
    weir_address address;
    bool good;

    atomic_store(&most_held, 0);
    if (weir_server_start(
            WEIR_SERVER_OPTIONS(.boss = group, .address = "127.0.0.1:0", .init_child = init_child),
            &server) < 0)
        return false;
    good = weir_channel_local_address(weir_server_listener(server, 0), &address) == 0 &&
           let_clients_do(clients, weir_address_port(&address));
    good = weir_server_stop(server, 0, weir_seconds(30)) == 0 && good;
    weir_server_release(server);
    return good;
}

static bool soak(const struct backend *backend, struct clients *clients, unsigned count)
{
    int64_t begin_ns = weir__monotonic_now();
    weir_group *group;
    bool good;

    if (backend->type == NULL ||
        weir_group_create(WEIR_GROUP_OPTIONS(.io = backend->io, .threads = 1), &group) < 0) {
        printf("%-10s cannot be had here\n", backend->name);
        return true;
    }
    good = serve(group, clients) && atomic_load(&most_held) == count;
    weir_group_release(group);
    printf("%-10s %u connections in %.1f s: %s\n", backend->name, atomic_load(&most_held),
           (double)(weir__monotonic_now() - begin_ns) / 1e9, good ? "none lost" : "FAILED");
    (void)fflush(stdout);
    return good;
}

int main(int argc, char **argv)
{
    unsigned most = as_many_as_possible();
    unsigned count = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : most;
    struct clients clients[BACKEND_COUNT];
    bool good = true;

    count = count < most ? count : most;
    for (int i = 0; i < BACKEND_COUNT; i++)
        clients[i] = fork_clients(count);
    for (int i = 0; i < BACKEND_COUNT; i++) {
        good = soak(&backends[i], &clients[i], count) && good;
        (void)close(clients[i].port);
    }
    return good ? 0 : 1;
}
