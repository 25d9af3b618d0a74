/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What makes the program a server is its name: a constructor looks at it before the tests begin.
 */
#include "support/bootstrap/successor.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <weir/datagram.h>
#include <weir/error.h>
#include <weir/handler.h>
#include <weir/pipeline.h>
#include <weir/restart.h>
#include <weir/server.h>

#include "os/system.h"

#define ROLE "weir-test-successor"
#define FIRST_LISTENER 3

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
    if (weir_datagram_of(msg) != NULL)
        weir_datagram_make_reply(weir_datagram_of(msg));
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

static int add_echo(weir_channel *channel, void *user_data)
{
    (void)user_data;
    return weir_pipeline_add_last(weir_channel_pipeline(channel), &echo, NULL);
}

static int64_t probation(void)
{
    const char *text = getenv(SUCCESSOR_PROBATION), *next = getenv(SUCCESSOR_NEXT_PROBATION);
    int64_t probation_ns = text != NULL ? weir_ms(strtol(text, NULL, 10)) : WEIR_OFF;

    if (next != NULL) {
        (void)setenv(SUCCESSOR_PROBATION, next, 1);
        (void)unsetenv(SUCCESSOR_NEXT_PROBATION);
    }
    return probation_ns;
}

/* What it is handed says whether it serves connections or datagrams. */
static weir_server_options options_of(weir_group *group)
{
    int type = SOCK_STREAM;
    socklen_t length = sizeof(type);
    weir_server_options options;

    (void)getsockopt(FIRST_LISTENER, SOL_SOCKET, SO_TYPE, &type, &length);
    options = *WEIR_SERVER_OPTIONS();
    options.boss = group;
    options.address = "127.0.0.1:0";
    options.kind = type == SOCK_DGRAM ? WEIR_KIND_DATAGRAM : WEIR_KIND_STREAM;
    if (type == SOCK_DGRAM)
        options.init_server = add_echo;
    else
        options.init_child = add_echo;
    options.inherit = true;
    options.restart_argv = argv_of_it;
    options.restart_probation_ns = probation();
    return options;
}

/* The signal comes before anybody waits for it. */
static void be_hasty(void)
{
    (void)unsetenv(SUCCESSOR_HASTY);
    (void)kill(getpid(), SIGUSR2);
}

static ssize_t (*send_before)(int descriptor, const void *bytes, size_t size, int flags);

static ssize_t send_and_crash(int descriptor, const void *bytes, size_t size, int flags)
{
    ssize_t sent = send_before(descriptor, bytes, size, flags);

    if (size >= strlen("READY=1") && memcmp(bytes, "READY=1", strlen("READY=1")) == 0)
        (void)raise(SIGKILL);
    return sent;
}

static int serve(const struct backend *backend)
{
    weir_group *group = NULL;
    weir_server *server = NULL;
    int err = weir_group_create(WEIR_GROUP_OPTIONS(.threads = 2, .io = backend->io), &group);

    if (err == 0) {
        const weir_server_options options = options_of(group);

        err = weir_server_start(&options, &server);
    }
    if (err == 0) {
        printf("%d\n", getpid());
        (void)fflush(stdout);
        if (getenv(SUCCESSOR_HASTY) != NULL)
            be_hasty();
        (void)weir_systemd_notify("STATUS=running");
        err = weir_server_run(server);
    }
    if (err < 0)
        fprintf(stderr, "%s: %s\n", ROLE, weir_error_text(err));
    weir_server_release(server);
    weir_group_release(group);
    return err < 0;
}

__attribute__((constructor)) static void take_the_role(int argc, char **argv)
{
    if (argc != 3 || strcmp(argv[1], ROLE) != 0)
        return;
    (void)snprintf(backend_name, sizeof(backend_name), "%s", argv[2]);
    if (getenv(SUCCESSOR_CRASHES) != NULL) {
        send_before = weir__sys.send;
        weir__sys.send = send_and_crash;
    }
    exit(serve(&backends[strtol(argv[2], NULL, 10) % BACKEND_KINDS]));
}
