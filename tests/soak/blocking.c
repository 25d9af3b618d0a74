/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ./dev soak --release blocking [COUNT]: opens COUNT idle connections (default 5000) to a server
 * with a thread per channel, and closes them. Prints the descriptors and the resident memory of the
 * process. A minute later it must hold little more than before.
 */
#include <dirent.h>
#include <malloc.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <weir/channel.h>
#include <weir/clock.h>
#include <weir/group.h>
#include <weir/pipeline.h>
#include <weir/server.h>

#include "os/clock.h"
#include "os/thread.h"

#define COUNT 5000
#define GROWTH_MAX (32u << 20) /* the C library keeps stacks for the next threads, up to 40 MiB */

static _Atomic unsigned open_now;

static void on_active(weir_ctx *ctx)
{
    atomic_fetch_add(&open_now, 1);
    weir_fire_active(ctx);
}

static void on_inactive(weir_ctx *ctx)
{
    atomic_fetch_sub(&open_now, 1);
    weir_fire_inactive(ctx);
}

static const weir_handler counter = {
    .name = "counter", .active = on_active, .inactive = on_inactive};

static int init_child(weir_channel *channel, void *user_data)
{
    (void)user_data;
    return weir_pipeline_add_last(weir_channel_pipeline(channel), &counter, NULL);
}

/* ---- what the process holds ---- */

struct holding {
    unsigned descriptors;
    size_t resident;
};

static unsigned descriptors_open(void)
{
    DIR *entries = opendir("/proc/self/fd");
    unsigned count = 0;

    while (entries != NULL && readdir(entries) != NULL)
        count++;
    if (entries != NULL)
        (void)closedir(entries);
    return count;
}

static struct holding look(const char *when, const weir_group *group)
{
    struct holding holding = {.descriptors = descriptors_open()};
    weir_group_stats stats;
    FILE *file = fopen("/proc/self/statm", "r");
    unsigned long pages = 0;

    if (file == NULL || fscanf(file, "%*u %lu", &pages) != 1)
        abort();
    (void)fclose(file);
    holding.resident = pages * (size_t)sysconf(_SC_PAGESIZE);
    weir_group_read_stats(group, &stats);
    printf("%-12s %6u descriptors %6llu executors %6llu threads %8.1f MiB\n", when,
           holding.descriptors, (unsigned long long)stats.executors,
           (unsigned long long)stats.threads, (double)holding.resident / (1 << 20));
    (void)fflush(stdout);
    return holding;
}

/* ---- the play ---- */

static int connect_to(uint16_t port)
{
    const struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int client = socket(AF_INET, SOCK_STREAM, 0);

    if (client < 0 || connect(client, (const struct sockaddr *)&address, sizeof(address)) < 0)
        abort();
    return client;
}

static void await_open(unsigned count)
{
    for (int i = 0; i < 6000 && atomic_load(&open_now) != count; i++)
        weir__thread_sleep(weir_ms(10));
}

static void await_executors(const weir_group *group, uint64_t active, uint64_t executors)
{
    weir_group_stats stats;
    int i = 0;

    do {
        weir__thread_sleep(weir_ms(10));
        weir_group_read_stats(group, &stats);
    } while ((stats.active > active || stats.executors > executors) && ++i < 1000);
    weir__thread_sleep(weir_seconds(1)); /* the last threads end */
}

static bool play(weir_group *group, weir_manual_clock *clock, uint16_t port, int *clients,
                 unsigned count)
{
    struct holding before, open, after;

    clients[0] = connect_to(port); /* what the first one needs is no matter */
    await_open(1);
    (void)close(clients[0]);
    await_open(0);
    before = look("before", group);
    for (unsigned i = 0; i < count; i++) {
        clients[i] = connect_to(port);
        await_open(i + 1);
    }
    open = look("open", group);
    printf("%-12s %.1f KiB for each connection\n", "",
           (double)(open.resident - before.resident) / 1024 / count);
    for (unsigned i = 0; i < count; i++)
        (void)close(clients[i]);
    await_open(0);
    await_executors(group, 1, UINT64_MAX);
    (void)look("closed", group);
    (void)weir_manual_clock_advance(clock, weir_seconds(61));
    await_executors(group, 1, 2);
#ifdef __GLIBC__
    (void)malloc_trim(0); /* what channels had, and nobody has now */
#endif
    after = look("a minute on", group);
    return after.descriptors <= before.descriptors + 1 &&
           after.resident < before.resident + GROWTH_MAX;
}

int main(int argc, char **argv)
{
    unsigned count = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : COUNT;
    int *clients = calloc(count, sizeof(*clients));
    weir_manual_clock *clock;
    weir_group *group;
    weir_server *server;
    weir_address address;
    bool good;

    if (clients == NULL || weir_manual_clock_create(0, &clock) < 0 ||
        weir_group_create(
            WEIR_GROUP_OPTIONS(.io = WEIR_IO_BLOCKING, .clock = weir_manual_clock_clock(clock)),
            &group) < 0 ||
        weir_server_start(
            WEIR_SERVER_OPTIONS(.boss = group, .address = "127.0.0.1:0", .init_child = init_child),
            &server) < 0 ||
        weir_channel_local_address(weir_server_listener(server, 0), &address) < 0)
        abort();
    good = play(group, clock, weir_address_port(&address), clients, count);
    printf("%s\n", good ? "good" : "FAILED");
    weir_channel_abort(weir_server_listener(server, 0), NULL);
    weir_server_release(server);
    weir_group_release(group);
    weir_manual_clock_release(clock);
    free(clients);
    return good ? 0 : 1;
}
