/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What makes the program a server is its name: a constructor looks at it before the tests begin.
 */
#include "support/bootstrap/successor.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/ctx.h>
#include <weir/error.h>
#include <weir/pipeline.h>
#include <weir/server.h>

#define ROLE "weir-test-successor"

static char program[] = "/proc/self/exe";
static char role[] = ROLE;
static char backend_name[32];
static char *argv_of_it[] = {program, role, backend_name, NULL};

char *const *successor_argv(enum backend_id id)
{
    (void)snprintf(backend_name, sizeof(backend_name), "%d", (int)id);
    return argv_of_it;
}

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    weir_write(ctx, msg, NULL);
}

static void on_read_complete(weir_ctx *ctx)
{
    weir_flush(ctx);
}

static const weir_handler echo = {
    .name = "echo",
    .read = on_read,
    .read_complete = on_read_complete,
};

static int init_child(weir_channel *channel, void *user_data)
{
    (void)user_data;
    return weir_pipeline_add_last(weir_channel_pipeline(channel), &echo, NULL);
}

static int serve(const struct backend *backend)
{
    weir_group *group = NULL;
    weir_channel *server = NULL;
    int err = weir_group_create(
        WEIR_GROUP_OPTIONS(.threads = 2, .io = backend->io, .uring_receive = backend->ring_receive),
        &group);

    if (err == 0)
        err = weir_server_start(WEIR_SERVER_OPTIONS(.boss = group, .address = "127.0.0.1:0",
                                                    .init_child = init_child, .inherit = true,
                                                    .restart_argv = argv_of_it),
                                &server);
    if (err == 0) {
        printf("%d\n", getpid());
        (void)fflush(stdout);
        err = weir_server_run(server);
    }
    if (err < 0)
        fprintf(stderr, "%s: %s\n", ROLE, weir_error_text(err));
    weir_channel_release(server);
    weir_group_release(group);
    return err < 0;
}

/* Signals wait until somebody hears them. */
static void hold_signals(void)
{
    sigset_t signals;

    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGUSR2);
    (void)pthread_sigmask(SIG_BLOCK, &signals, NULL);
}

__attribute__((constructor)) static void take_the_role(int argc, char **argv)
{
    if (argc != 3 || strcmp(argv[1], ROLE) != 0)
        return;
    (void)snprintf(backend_name, sizeof(backend_name), "%s", argv[2]);
    hold_signals();
    exit(serve(&backends[strtol(argv[2], NULL, 10) % BACKEND_KINDS]));
}
