/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ./dev soak restart [REPLACEMENTS [BACKEND]]: on each backend, or on one, replaces a server
 * process REPLACEMENTS times (default 10), while clients connect, send, compare the echo and close,
 * in a loop. None of them may be refused, reset or left without an answer.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <weir/error.h>
#include <weir/group.h>
#include <weir/watch.h>

#include "os/thread.h"
#include "support/bootstrap/successor.h"
#include "support/loop/sockets.h"

#define CLIENTS 4
#define SIZE_MAX_SENT 8192
#define BETWEEN_NS weir_ms(100)
#define PATIENCE_MS 30000

struct storm {
    struct address address;
    _Atomic bool is_over;
    _Atomic uint64_t served;
    _Atomic uint64_t failed;
};

/* ---- clients ---- */

static bool exchange(int client, size_t size)
{
    char sent[SIZE_MAX_SENT], heard[SIZE_MAX_SENT];
    size_t length = 0;

    memset(sent, (int)('a' + size % 26), size);
    if (send(client, sent, size, MSG_NOSIGNAL) != (ssize_t)size)
        return false;
    while (length < size) {
        ssize_t count = recv(client, heard + length, size - length, 0);

        if (count <= 0)
            return false;
        length += (size_t)count;
    }
    return memcmp(sent, heard, size) == 0;
}

static bool visit(const struct storm *storm, size_t size)
{
    const struct timeval patience = {.tv_sec = 10};
    int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool is_well = false;

    errno = 0;
    if (client < 0)
        return false;
    (void)setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    if (connect(client, (const struct sockaddr *)&storm->address.storage, storm->address.length) ==
        0)
        is_well = exchange(client, size);
    if (!is_well)
        fprintf(stderr, "a client of %zu bytes was not served: %s\n", size, strerror(errno));
    (void)close(client);
    return is_well;
}

static void be_client(void *arg)
{
    struct storm *storm = arg;

    for (size_t size = 1; !storm->is_over; size = size * 7 % SIZE_MAX_SENT + 1) {
        if (visit(storm, size))
            storm->served++;
        else
            storm->failed++;
    }
}

/* ---- the server ---- */

/* The number that it prints when it is ready; 0 if it does not come to that. */
static int read_pid(int output)
{
    struct pollfd ready = {.fd = output, .events = POLLIN};
    char text[32] = "";

    for (size_t length = 0; length < sizeof(text) - 1; length++) {
        if (poll(&ready, 1, PATIENCE_MS) != 1 || read(output, text + length, 1) != 1)
            return 0;
        if (text[length] == '\n')
            return (int)strtol(text, NULL, 10);
    }
    return 0;
}

static int start(weir_executor *loop, enum backend_id id, struct storm *storm)
{
    int output[2], listener = socket_listen(AF_INET, 1024, &storm->address), err;

    if (pipe2(output, O_CLOEXEC) < 0)
        return -1;
    err = weir_child_spawn(loop,
                           WEIR_CHILD_OPTIONS(.argv = successor_argv(id),
                                              .stdio = {0, output[1], 0}, .export_listen_fds = true,
                                              .descriptors = &listener, .descriptor_count = 1),
                           NULL);
    (void)close(output[1]);
    (void)close(listener);
    if (err < 0)
        fprintf(stderr, "the server does not start: %s\n", weir_error_text(err));
    return err < 0 ? -1 : output[0];
}

/* The last one's number, or 0 if one of them was not replaced. */
static int replace(int output, unsigned replacements)
{
    int pid = read_pid(output);

    for (unsigned i = 0; i < replacements && pid > 0; i++) {
        weir__thread_sleep(BETWEEN_NS);
        (void)kill(pid, SIGUSR2);
        pid = read_pid(output);
    }
    weir__thread_sleep(BETWEEN_NS);
    return pid;
}

/* ---- both ---- */

static bool run(weir_executor *loop, enum backend_id id, unsigned replacements)
{
    struct storm storm = {.served = 0};
    weir__thread clients[CLIENTS];
    int output = start(loop, id, &storm);
    bool is_well = output >= 0;
    int last;
    char rest;

    for (int i = 0; i < CLIENTS && is_well; i++)
        is_well = weir__thread_start("client", be_client, &storm, &clients[i]) == 0;
    if (!is_well)
        return false;
    last = replace(output, replacements);
    storm.is_over = true;
    for (int i = 0; i < CLIENTS; i++)
        weir__thread_join(&clients[i]);
    is_well = last > 0 && kill(last, SIGTERM) == 0;
    while (read(output, &rest, 1) > 0) { /* until all of them have ended */
    }
    (void)close(output);
    printf("%-10s replaced %u times: %" PRIu64 " clients served, %" PRIu64 " not\n",
           backends[id].name, replacements, storm.served, storm.failed);
    return is_well && storm.failed == 0;
}

int main(int argc, char **argv)
{
    unsigned replacements = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 10;
    weir_group *group = NULL;
    bool is_well = weir_group_create(WEIR_GROUP_OPTIONS(.threads = 1), &group) == 0;

    for (int id = 0; id < BACKEND_COUNT && is_well; id++)
        if (backends[id].type != NULL && (argc < 3 || strcmp(argv[2], backends[id].name) == 0))
            is_well = run(weir_group_at(group, 0), (enum backend_id)id, replacements);
    weir_group_release(group);
    return is_well ? EXIT_SUCCESS : EXIT_FAILURE;
}
