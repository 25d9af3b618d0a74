/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir inside a program with its own main loop, here poll(2), which waits for the keyboard, for
 * signals, and for an event loop of weir that runs on the same thread.
 *     embed [--host 127.0.0.1] [--port 8011] [--io auto|epoll|uring|poll]
 *
 * Echoes each connection, and sends typed lines to all of them.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>
#include <weir/weir.h>

#include "support/settings.h"

#define POLLFDS_MAX 1024

struct program {
    int keyboard; /* -1 = at its end */
    int signals;
    weir_executor *loop;
    weir_server *server;
    weir_channel_group *connections;
};

/* ---- weir's side ---- */

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    weir_write_and_flush(ctx, msg, NULL);
}

static void on_writability(weir_ctx *ctx)
{
    weir_ctx_set_auto_read(ctx, weir_ctx_is_writable(ctx)); /* stop reading from a slow reader */
}

static const weir_handler echo = {
    .name = "echo",
    .read = on_read,
    .writability = on_writability,
};

/* doc:begin listen */
static int init_child(weir_channel *channel, void *user_data)
{
    struct program *program = user_data;
    int err = weir_pipeline_add_last(weir_channel_pipeline(channel), &echo, NULL);

    return err ? err : weir_channel_group_add(program->connections, channel);
}

/* Accepts and serves on the program's own loop. */
static int listen_on(struct program *program, const char *address)
{
    return weir_server_start(WEIR_SERVER_OPTIONS(.loop = program->loop, .address = address,
                                                 .init_child = init_child, .user_data = program),
                             &program->server);
}
/* doc:end */

/* ---- the program's own side ---- */

static void on_keyboard(struct program *program)
{
    char bytes[1024];
    ssize_t count = read(program->keyboard, bytes, sizeof(bytes));
    weir_buf *buf;

    if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR))
        program->keyboard = -1;
    if (count > 0 && weir_buf_create_from(bytes, (size_t)count, &buf) == 0)
        weir_channel_group_write_and_flush(program->connections, weir_buf_msg(buf), NULL,
                                           weir_match_writable, NULL);
}

static void on_signal(struct program *program)
{
    struct signalfd_siginfo info;

    if (read(program->signals, &info, sizeof(info)) > 0)
        (void)weir_executor_shutdown(program->loop, 0, weir_seconds(10)); /* drains first */
}

/* doc:begin run */
/* Waits for the program's descriptors and for the loop. */
static void wait_for_something(struct program *program, struct pollfd *entries)
{
    ssize_t count = weir_loop_pollfds(program->loop, POLLFDS_MAX, entries + 2);
    int64_t wait_ns = weir_loop_timeout(program->loop);
    struct timespec timeout;

    if (count > POLLFDS_MAX) { /* only --io poll has more than one; the rest is polled */
        count = POLLFDS_MAX;
        wait_ns = weir_ms(10);
    }
    timeout.tv_sec = (time_t)(wait_ns / weir_seconds(1));
    timeout.tv_nsec = (long)(wait_ns % weir_seconds(1));
    entries[0] = (struct pollfd){.fd = program->keyboard, .events = POLLIN};
    entries[1] = (struct pollfd){.fd = program->signals, .events = POLLIN};
    (void)ppoll(entries, 2 + (count > 0 ? (nfds_t)count : 0),
                wait_ns == WEIR_NEVER ? NULL : &timeout, NULL);
}

/* Returns when the loop has ended: after a signal, once all connections are closed. */
static void run(struct program *program)
{
    static struct pollfd entries[2 + POLLFDS_MAX];

    do {
        wait_for_something(program, entries);
        if (entries[0].revents)
            on_keyboard(program);
        if (entries[1].revents)
            on_signal(program);
    } while (weir_loop_run_once(program->loop, 0) != WEIR_ETERMINATED);
}
/* doc:end */

static int open_signals(void)
{
    sigset_t signals;

    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    return signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
}

int main(int argc, char **argv)
{
    struct settings settings = settings_read(argc, argv, "127.0.0.1", 8011);
    struct program program = {.keyboard = STDIN_FILENO, .signals = open_signals()};
    int err = program.signals < 0 ? -errno : 0;

    if (!err)
        err = weir_loop_create(WEIR_LOOP_OPTIONS(.io = settings.io), &program.loop);
    if (!err)
        err = weir_channel_group_create(NULL, &program.connections);
    if (!err)
        err = listen_on(&program, settings.address);
    if (!err) {
        print_address(program.server);
        run(&program);
    } else {
        fprintf(stderr, "embed: %s: %s\n", settings.address, weir_error_text(err));
    }
    weir_server_release(program.server);
    weir_channel_group_release(program.connections);
    weir_executor_release(program.loop);
    return err ? EXIT_FAILURE : EXIT_SUCCESS;
}
