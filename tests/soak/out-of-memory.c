/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ./dev soak --release out-of-memory [COUNT [MIB]]: on each backend, a server with limited address
 * space gets more connections than it has memory for. All of them end, half of them by a reset.
 * Within a minute it must have closed its descriptors, used little CPU time, and serve again.
 * (Sanitizers need more address space.)
 */
#include <dirent.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/channel.h>
#include <weir/group.h>
#include <weir/log.h>
#include <weir/pipeline.h>
#include <weir/server.h>

#include "os/clock.h"
#include "os/thread.h"
#include "support/loop/backend.h"

#define COUNT 10000
#define LIMIT_MIB 80
#define STATE_SIZE 8192 /* that the application keeps for each connection */
#define SECONDS 60
#define CPU_SECONDS_MAX 6.0 /* a tenth of them */

/* ---- the server's process ---- */

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    weir_write_and_flush(ctx, msg, NULL);
}

static void on_error(weir_ctx *ctx, int err, const char *detail)
{
    (void)err;
    (void)detail;
    weir_close(ctx, NULL);
}

static const weir_handler echo = {
    .name = "echo", .state_size = STATE_SIZE, .read = on_read, .error = on_error};

static int init_child(weir_channel *channel, void *user_data)
{
    (void)user_data;
    return weir_pipeline_add_last(weir_channel_pipeline(channel), &echo, NULL);
}

static bool limit_memory(unsigned mib)
{
    const struct rlimit limit = {.rlim_cur = (rlim_t)mib << 20, .rlim_max = RLIM_INFINITY};

    return setrlimit(RLIMIT_AS, &limit) == 0;
}

/* Says its port, 0 if it cannot be had here, and serves until it is killed. */
static void serve(const struct backend *backend, unsigned mib, int pipe)
{
    weir_group *group = NULL;
    weir_server *server = NULL;
    weir_address address;
    uint16_t port = 0;

    weir_log_set_level(WEIR_LOG_ERROR);
    if (limit_memory(mib) && backend->type != NULL &&
        weir_group_create(WEIR_GROUP_OPTIONS(.io = backend->io, .threads = 1), &group) == 0 &&
        weir_server_start(
            WEIR_SERVER_OPTIONS(.boss = group, .address = "127.0.0.1:0", .init_child = init_child),
            &server) == 0 &&
        weir_channel_local_address(weir_server_listener(server, 0), &address) == 0)
        port = weir_address_port(&address);
    (void)!write(pipe, &port, sizeof(port));
    for (;;)
        (void)pause();
}

/* ---- what the others see of it ---- */

static unsigned descriptors_of(pid_t process)
{
    char path[64];
    unsigned count = 0;
    DIR *entries;

    (void)snprintf(path, sizeof(path), "/proc/%d/fd", (int)process);
    entries = opendir(path);
    while (entries != NULL && readdir(entries) != NULL)
        count++;
    if (entries != NULL)
        (void)closedir(entries);
    return count;
}

static double cpu_seconds_of(pid_t process)
{
    unsigned long user = 0, system = 0;
    char path[64];
    FILE *file;

    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)process);
    file = fopen(path, "r");
    if (file == NULL)
        return 0;
    if (fscanf(file, "%*d %*s %*s %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user,
               &system) != 2)
        user = system = 0;
    (void)fclose(file);
    return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

/* ---- clients ---- */

static int connect_to(uint16_t port)
{
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int client = socket(AF_INET, SOCK_STREAM, 0);

    if (client >= 0 && connect(client, (const struct sockaddr *)&address, sizeof(address)) < 0) {
        (void)close(client);
        return -1;
    }
    return client;
}

static void connect_all(uint16_t port, int *clients, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        clients[i] = connect_to(port);
}

static void end_all(const int *clients, unsigned count)
{
    const struct linger reset = {.l_onoff = 1};

    for (unsigned i = 0; i < count; i++) {
        if (clients[i] < 0)
            continue;
        if (i % 2 == 0)
            (void)setsockopt(clients[i], SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
        (void)close(clients[i]);
    }
}

static bool is_served(uint16_t port)
{
    const struct timeval patience = {.tv_sec = 5};
    int client = connect_to(port);
    char byte = 0;
    bool served;

    if (client < 0)
        return false;
    (void)setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    served =
        send(client, "x", 1, MSG_NOSIGNAL) == 1 && recv(client, &byte, 1, 0) == 1 && byte == 'x';
    (void)close(client);
    return served;
}

/* ---- the play ---- */

struct figures {
    unsigned before; /* descriptors of the server */
    unsigned most;
    unsigned left;
    int seconds; /* until they were closed */
    double cpu_seconds;
    bool serves;
};

static void watch_end(pid_t process, struct figures *figures)
{
    double begin = cpu_seconds_of(process);

    figures->left = descriptors_of(process);
    while (figures->left > figures->before && figures->seconds < SECONDS) {
        weir__thread_sleep(weir_seconds(1));
        figures->seconds++;
        figures->left = descriptors_of(process);
    }
    figures->cpu_seconds = cpu_seconds_of(process) - begin;
}

static bool visit(pid_t process, uint16_t port, unsigned count, struct figures *figures)
{
    int *clients = calloc(count, sizeof(*clients));

    if (clients == NULL)
        return false;
    figures->before = descriptors_of(process);
    connect_all(port, clients, count);
    weir__thread_sleep(weir_seconds(2)); /* it accepts the last of them */
    figures->most = descriptors_of(process);
    end_all(clients, count);
    free(clients);
    watch_end(process, figures);
    figures->serves = is_served(port);
    return figures->left <= figures->before && figures->cpu_seconds < CPU_SECONDS_MAX &&
           figures->serves;
}

static bool soak(const struct backend *backend, unsigned count, unsigned mib)
{
    struct figures figures = {0};
    uint16_t port = 0;
    bool good = true;
    int ends[2];
    pid_t process;

    if (pipe(ends) < 0)
        abort();
    process = fork();
    if (process == 0)
        serve(backend, mib, ends[1]);
    if (read(ends[0], &port, sizeof(port)) != sizeof(port) || port == 0) {
        printf("%-10s cannot be had here\n", backend->name);
    } else {
        good = visit(process, port, count, &figures);
        printf("%-10s %u descriptors of %u, then %u after %d s, %.2f s of CPU time, %s: %s\n",
               backend->name, figures.most, figures.before, figures.left, figures.seconds,
               figures.cpu_seconds, figures.serves ? "serves" : "does not serve",
               good ? "good" : "FAILED");
    }
    (void)fflush(stdout);
    (void)kill(process, SIGKILL);
    (void)waitpid(process, NULL, 0);
    (void)close(ends[0]);
    (void)close(ends[1]);
    return good;
}

int main(int argc, char **argv)
{
    unsigned count = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : COUNT;
    unsigned mib = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : LIMIT_MIB;
    bool good = true;

    for (int i = 0; i < BACKEND_COUNT; i++)
        good = soak(&backends[i], count, mib) && good;
    return good ? 0 : 1;
}
