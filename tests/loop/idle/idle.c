/* SPDX-License-Identifier: Apache-2.0 */
/*
 * idle SECONDS: sleeps next to two sleeping executors of each kind, and writes `begin` and `end`
 * for a tracer of system calls. The first of each kind sleeps forever, as a loop with a socket that
 * receives nothing; the second has a timer of an hour.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <weir/group.h>
#include <weir/timer.h>

#include "executor/executor.h"
#include "loop/loop.h"
#include "support/loop/backend.h"
#include "support/timeout.h"

struct kind {
    weir_group *group; /* NULL = it cannot be had here */
    weir__io_handle handle;
};

static void do_nothing(void *arg, int status)
{
    (void)arg;
    (void)status;
}

static void on_detached(weir__io_handle *handle)
{
    (void)handle;
}

static void attach_socket(void *arg, int status)
{
    static const weir__io_owner owner = {.detached = on_detached}; /* nothing else ever happens */
    struct kind *kind = arg;
    int pair[2];

    if (status < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) < 0)
        abort();
    weir__io_handle_init(&kind->handle, pair[0], &owner);
    if (weir__io_attach(weir__loop_io(weir_executor_current()), &kind->handle) < 0)
        abort();
    weir__io_receive_start(&kind->handle, false);
}

static void close_socket(void *arg, int status)
{
    struct kind *kind = arg;

    (void)status;
    weir__io_close(&kind->handle);
}

/* The kernel's word for what a thread does: S = it sleeps. A thread that is being traced is in t.
 */
static char thread_state(int64_t id)
{
    char path[64], state = '?';
    FILE *file;

    (void)snprintf(path, sizeof(path), "/proc/self/task/%lld/stat", (long long)id);
    file = fopen(path, "r");
    if (file == NULL)
        return state;
    if (fscanf(file, "%*d %*s %c", &state) != 1)
        state = '?';
    (void)fclose(file);
    return state;
}

/* Its deadline is published, and nothing can keep it from sleeping any more: it does. */
static bool await_sleep(weir_executor *executor, int64_t end_ns)
{
    weir_thread_properties thread;

    if (weir_executor_thread(executor, &thread) < 0)
        return false;
    while (atomic_load(&executor->next_wakeup) == WEIR__AWAKE || thread_state(thread.id) != 'S') {
        if (weir__monotonic_now() > end_ns)
            return false;
        weir__thread_yield();
    }
    return true;
}

static void write_mark(const char *word, size_t length)
{
    if (write(STDOUT_FILENO, word, length) != (ssize_t)length)
        abort();
}

/* Two executors of this kind, which are about to sleep. */
static bool start(struct kind *kind, const weir_group_options *options)
{
    weir_task_fn *first = options->io == WEIR_IO_NONE ? do_nothing : attach_socket;

    return weir_group_create(options, &kind->group) == 0 &&
           weir_execute(weir_group_at(kind->group, 0), first, kind) == 0 &&
           weir_schedule(weir_group_at(kind->group, 1), weir_seconds(3600), do_nothing, NULL,
                         NULL) == 0;
}

static bool start_loops(struct kind *kind, const struct backend *backend)
{
    char reason[256];
    weir__io *io;

    if (backend_create(backend, &io, reason, sizeof(reason)) < 0) {
        fprintf(stderr, "skipped: %s: %s\n", backend->name, reason);
        return true;
    }
    weir__io_destroy(io);
    return start(kind, WEIR_GROUP_OPTIONS(.threads = 2, .name = backend->name, .io = backend->io));
}

int main(int argc, char **argv)
{
    int64_t seconds = argc > 1 ? strtol(argv[1], NULL, 10) : 0;
    int64_t end_ns = weir__monotonic_now() + TEST_TIMEOUT_NS;
    struct kind kinds[BACKEND_COUNT + 1] = {0};

    for (int i = 0; i < BACKEND_COUNT; i++)
        if (!start_loops(&kinds[i], &backends[i]))
            return EXIT_FAILURE;
    if (!start(&kinds[BACKEND_COUNT],
               WEIR_GROUP_OPTIONS(.threads = 2, .name = "plain", .io = WEIR_IO_NONE)))
        return EXIT_FAILURE;
    for (int i = 0; i <= BACKEND_COUNT; i++)
        if (kinds[i].group != NULL && !(await_sleep(weir_group_at(kinds[i].group, 0), end_ns) &&
                                        await_sleep(weir_group_at(kinds[i].group, 1), end_ns)))
            return EXIT_FAILURE;

    write_mark("begin\n", 6);
    weir__thread_sleep(weir_seconds(seconds));
    write_mark("end\n", 4);
    for (int i = 0; i <= BACKEND_COUNT; i++) {
        if (i < BACKEND_COUNT && kinds[i].group != NULL)
            (void)(weir_execute(weir_group_at(kinds[i].group, 0), close_socket, &kinds[i]) == 0);
        weir_group_release(kinds[i].group);
    }
    return EXIT_SUCCESS;
}
