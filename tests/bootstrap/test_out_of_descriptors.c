/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that serves with few descriptors: either it ends with an error, or it says that it
 * listens and ends by SIGTERM with 0. Each program is a child process with a limit of its own.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/error.h>
#include <weir/log.h>
#include <weir/server.h>

#include "support/bootstrap/echo_service.h"
#include "support/bootstrap/raw_client.h"
#include "support/executor/global_executor.h"
#include "support/loop/backend.h"
#include "support/loop/sockets.h"
#include "support/test.h"

#define LIMIT_MIN 3
#define LIMIT_MAX 24
#define CLIENTS 40
#define ERROR_STATUS 3

struct program {
    pid_t pid;
    int output; /* the read end: what the program prints, and its end */
};

/* ---- the program ---- */

static void say(int out, const char *text)
{
    (void)!write(out, text, strlen(text));
}

static int make_groups(enum weir_io io, weir_group **ret_boss, weir_group **ret_workers)
{
    int err = weir_group_create(WEIR_GROUP_OPTIONS(.threads = 1, .io = io), ret_boss);

    return err < 0 ? err
                   : weir_group_create(WEIR_GROUP_OPTIONS(.threads = 1, .io = io), ret_workers);
}

static int say_port(weir_server *server, int out)
{
    weir_address address;
    char line[64];
    int err = weir_channel_local_address(weir_server_listener(server, 0), &address);

    (void)snprintf(line, sizeof(line), "listening on %u\n", weir_address_port(&address));
    if (err == 0)
        say(out, line);
    return err;
}

/* The end of main() of an example. */
static int serve(enum weir_io io, int out)
{
    struct echo_service service = {0};
    weir_group *boss = NULL, *workers = NULL;
    weir_server *server = NULL;
    int err = make_groups(io, &boss, &workers);

    if (err == 0)
        err = weir_server_start(
            WEIR_SERVER_OPTIONS(.boss = boss, .workers = workers, .address = "127.0.0.1:0",
                                .init_child = echo_service_init, .user_data = &service),
            &server);
    if (err == 0)
        err = say_port(server, out);
    if (err == 0)
        err = weir_server_run(server);
    if (err < 0)
        say(out, weir_error_text(err));
    weir_server_release(server);
    weir_group_release(workers);
    weir_group_release(boss);
    return err < 0 ? ERROR_STATUS : 0;
}

/* A signal that comes before weir_server_run waits for it. */
static void block_signals(void)
{
    sigset_t signals;

    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    (void)pthread_sigmask(SIG_BLOCK, &signals, NULL);
}

static struct program start(enum weir_io io, rlim_t limit)
{
    struct program program;
    int ends[2], status;

    assert_int_equal(pipe(ends), 0);
    program.pid = fork();
    assert_true(program.pid >= 0);
    if (program.pid == 0) {
        weir_log_set_level(WEIR_LOG_OFF);
        block_signals();
        (void)dup2(ends[1], STDOUT_FILENO);
        (void)dup2(open("/dev/null", O_RDWR), STDERR_FILENO);
        for (int i = STDERR_FILENO + 1; i < 256; i++)
            (void)close(i);
        descriptors_limit(limit);
        status = serve(io, STDOUT_FILENO);
        global_executor_stop(); /* _exit does not wait for its thread, and TSan reports that */
        _exit(status);
    }
    (void)close(ends[1]);
    program.output = ends[0];
    return program;
}

/* ---- the test ---- */

static bool is_readable(int descriptor)
{
    struct pollfd entry = {.fd = descriptor, .events = POLLIN};

    return poll(&entry, 1, (int)(TEST_TIMEOUT_NS / weir_ms(1))) == 1;
}

/* What it prints first: where it listens, or an error. */
static unsigned await_port(const struct program *program)
{
    char text[256] = "";
    unsigned port = 0;

    assert_true(is_readable(program->output));
    assert_true(read(program->output, text, sizeof(text) - 1) > 0);
    (void)sscanf(text, "listening on %u", &port);
    return port;
}

/* The program closes its output when it ends. */
static int await_end(struct program *program)
{
    char text[256];
    int status;

    do {
        if (!is_readable(program->output)) {
            (void)kill(program->pid, SIGKILL);
            break;
        }
    } while (read(program->output, text, sizeof(text)) > 0);
    assert_int_equal(waitpid(program->pid, &status, 0), program->pid);
    (void)close(program->output);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void try_each_limit(enum weir_io io)
{
    bool listened = false;

    for (rlim_t limit = LIMIT_MIN; limit <= LIMIT_MAX; limit++) {
        struct program program = start(io, limit);

        listened = await_port(&program) != 0;
        if (listened)
            assert_int_equal(kill(program.pid, SIGTERM), 0);
        assert_int_equal(await_end(&program), listened ? 0 : ERROR_STATUS);
    }
    assert_true(listened); /* with the highest of them */
}

/* Clients that hold all descriptors of the program. */
static void try_with_clients(enum weir_io io)
{
    struct program program = start(io, LIMIT_MAX);
    weir_address address;
    int clients[CLIENTS];

    assert_int_equal(weir_address_parse("127.0.0.1:0", &address), 0);
    weir_address_set_port(&address, (uint16_t)await_port(&program));
    for (int i = 0; i < CLIENTS; i++)
        clients[i] = raw_client_connect_address(&address);
    raw_client_echo(clients[0], "x");
    assert_int_equal(kill(program.pid, SIGTERM), 0);
    raw_client_receive_end(clients[0]);
    for (int i = 0; i < CLIENTS; i++)
        raw_client_close(clients[i]);
    assert_int_equal(await_end(&program), 0);
}

static void try_all(void (*fn)(enum weir_io io))
{
    static const enum weir_io all[] = {WEIR_IO_EPOLL, WEIR_IO_POLL, WEIR_IO_BLOCKING, WEIR_IO_AUTO};

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        fn(all[i]);
}

TEST(few_descriptors, are_an_error_or_enough_to_hear_signals)
{
    try_all(try_each_limit);
}

TEST(few_descriptors, that_clients_hold_do_not_keep_signals_away)
{
    try_all(try_with_clients);
}
