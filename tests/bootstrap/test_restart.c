/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Servers that are replaced by new processes, on each backend; and what happens if that does not
 * succeed.
 */
#include <weir/restart.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/clock.h>
#include <weir/error.h>
#include <weir/transport.h>
#include <weir/watch.h>

#include "os/clock.h"
#include "os/system.h"
#include "os/thread.h"
#include "support/bootstrap/echo_service.h"
#include "support/bootstrap/raw_client.h"
#include "support/bootstrap/successor.h"
#include "support/executor/global_executor.h"
#include "support/executor/group.h"
#include "support/executor/log_capture.h"
#include "support/loop/faults.h"
#include "support/loop/host.h"
#include "support/loop/sockets.h"
#include "support/memory.h"

#define REPLACEMENTS 3 /* ./dev soak restart does ten, under a storm of clients */

#define COMMAND(...)      \
    (char *[])            \
    {                     \
        __VA_ARGS__, NULL \
    }
#define WORD(text) \
    (char[])       \
    {              \
        text       \
    }

static int result_of(weir_promise *promise)
{
    int err = weir_promise_await(promise, TEST_TIMEOUT_NS);

    return err < 0 ? err : weir_promise_result(promise);
}

static weir_promise *restart(weir_server *server, const weir_restart_options *options)
{
    weir_promise *done = NULL;

    assert_int_equal(weir_promise_create(NULL, &done), 0);
    assert_int_equal(weir_server_restart(server, options, done), 0);
    return done;
}

static void greet_listener(weir_channel *listener)
{
    int peer = raw_client_connect_listener(listener);

    raw_client_echo(peer, "hello");
    raw_client_close(peer);
}

static void greet(const weir_server *server)
{
    greet_listener(weir_server_listener(server, 0));
}

/* The number that a server prints when it is ready. */
static int read_pid(int output)
{
    struct pollfd ready = {.fd = output, .events = POLLIN};
    char text[32] = "";
    size_t length = 0;

    while (length < sizeof(text) - 1 && (length == 0 || text[length - 1] != '\n')) {
        assert_int_equal(poll(&ready, 1, 20000), 1);
        assert_int_equal(read(output, text + length, 1), 1);
        length++;
    }
    return (int)strtol(text, NULL, 10);
}

/* ---- listeners that were handed over ---- */

TEST_EACH_LOOP(server, adopts_listening_sockets)
{
    struct echo_service service = {0};
    struct address addresses[2];
    const int listeners[] = {socket_listen(AF_INET, 16, &addresses[0]),
                             socket_listen(AF_UNIX, 16, &addresses[1])};
    weir_server *server = NULL;

    assert_int_equal(
        weir_server_start(WEIR_SERVER_OPTIONS(.boss = host->group, .address = "127.0.0.1:0",
                                              .adopt = listeners, .adopt_count = 2,
                                              .init_child = echo_service_init,
                                              .user_data = &service),
                          &server),
        0);
    assert_int_equal(weir_server_listener_count(server), 3);
    for (size_t i = 0; i < 3; i++)
        greet_listener(weir_server_listener(server, i));
    echo_service_stop(server);
    assert_int_equal(service.opened.calls, 3);
    assert_int_equal(fcntl(listeners[0], F_GETFD), -1);
}

TEST_EACH_LOOP(server, closes_what_it_was_handed_when_it_cannot_start)
{
    struct echo_service service = {0};
    struct address address;
    int listeners[2];
    weir_server *server = NULL;

    log_capture_start();
    for (int i = 0; i < 3; i++) {
        listeners[0] = socket_listen(AF_INET, 16, &address);
        listeners[1] = i == 0 ? socket_bind(AF_INET, SOCK_DGRAM, &address) /* does not listen */
                              : socket_listen(AF_INET, 16, &address);
        assert_int_equal(echo_service_try(&service,
                                          WEIR_SERVER_OPTIONS(.boss = i == 2 ? NULL : host->group,
                                                              .address = i == 1 ? "nonsense" : NULL,
                                                              .adopt = listeners, .adopt_count = 2),
                                          &server),
                         -EINVAL);
        assert_int_equal(fcntl(listeners[0], F_GETFD), -1);
        assert_int_equal(fcntl(listeners[1], F_GETFD), -1);
    }
    assert_null(server);
}

TEST_EACH_LOOP(server, survives_each_allocation_that_fails_while_it_adopts)
{
    bool failed = true;

    log_capture_start();
    for (unsigned n = 1; failed && n < 300; n++) {
        struct echo_service service = {0};
        struct address address;
        const int listener = socket_listen(AF_INET, 16, &address);
        weir_server *server = NULL;
        int err;

        host_turn(host, 1);
        test_memory_fail_at(n);
        err = echo_service_try(
            &service,
            WEIR_SERVER_OPTIONS(.boss = host->group, .adopt = &listener, .adopt_count = 1),
            &server);
        failed = test_memory_failed();
        test_memory_fail_at(0);
        assert_true(err == 0 || (failed && err < 0));
        if (err == 0) {
            weir_channel_abort(weir_server_listener(server, 0), NULL);
            assert_int_equal(
                weir_channel_await_closed(weir_server_listener(server, 0), TEST_TIMEOUT_NS), 0);
            weir_server_release(server);
        }
        host_turn(host, 2);
        assert_int_equal(fcntl(listener, F_GETFD), -1);
    }
}

/* ---- connections that are left to their clients ---- */

TEST_EACH_LOOP(drain, waits_for_clients_where_it_is_told_to)
{
    struct echo_service service = {0};
    weir_server *server = echo_service_start(
        &service, WEIR_SERVER_OPTIONS(.boss = host->group,
                                      .child_options = WEIR_CHANNEL_OPTIONS(.drain_waits = true)));
    int peer = raw_client_connect(server);

    raw_client_echo(peer, "x");
    assert_int_equal(weir_group_shutdown(host->group, 0, TEST_TIMEOUT_NS), 0);
    raw_client_echo(peer, "it goes on");
    raw_client_close(peer);
    assert_int_equal(weir_group_await_termination(host->group, TEST_TIMEOUT_NS), 0);
    assert_int_equal(service.closed.calls, 1);
    weir_server_release(server);
}

/* ---- a new process ---- */

TEST_EACH_LOOP(restart, hands_the_listeners_to_a_new_process)
{
    struct echo_service service = {0};
    weir_server *server = echo_service_start(&service, WEIR_SERVER_OPTIONS(.boss = host->group));
    weir_promise *done = restart(
        server,
        WEIR_RESTART_OPTIONS(.argv = successor_argv((enum backend_id)(host->backend - backends)),
                             .probation_ns = WEIR_OFF));
    weir_address address;
    weir_child *child;
    int peer;

    assert_int_equal(weir_channel_local_address(weir_server_listener(server, 0), &address), 0);
    assert_int_equal(result_of(done), 0);
    child = weir_child_retain(weir_promise_value(done));
    assert_int_equal(weir_child_signal(child, 0), 0);
    weir_promise_release(done);
    echo_service_stop(server);
    peer = raw_client_connect_address(&address);
    raw_client_echo(peer, "who is there");
    raw_client_close(peer);
    assert_int_equal(weir_child_signal(child, SIGTERM), 0);
    assert_int_equal(waitpid(weir_child_pid(child), NULL, 0), weir_child_pid(child));
    weir_child_release(child);
}

/* ---- files of Unix sockets ---- */

static char *const *successor_of(const struct host *host)
{
    return successor_argv((enum backend_id)(host->backend - backends));
}

static void end_child(weir_child *child)
{
    assert_int_equal(weir_child_signal(child, SIGTERM), 0);
    assert_int_equal(waitpid(weir_child_pid(child), NULL, 0), weir_child_pid(child));
    weir_child_release(child);
}

/* Stops the server when it has been replaced. Gives the child that has replaced it. */
static weir_child *replace(const struct host *host, weir_server *server)
{
    weir_promise *done =
        restart(server, WEIR_RESTART_OPTIONS(.argv = successor_of(host), .probation_ns = WEIR_OFF));
    weir_child *child;

    assert_int_equal(result_of(done), 0);
    child = weir_child_retain(weir_promise_value(done));
    weir_promise_release(done);
    echo_service_stop(server);
    return child;
}

static void choose_path(char *ret_address, size_t size)
{
    (void)snprintf(ret_address, size, "unix:/tmp/weir-restart-%d", (int)getpid());
    (void)unlink(ret_address + strlen("unix:"));
}

TEST_EACH_LOOP(restart, leaves_the_file_of_a_listener_to_the_new_process)
{
    struct echo_service service = {0};
    char text[64];
    weir_address address;
    weir_server *server;
    weir_child *child;
    int peer;

    choose_path(text, sizeof(text));
    assert_int_equal(weir_address_parse(text, &address), 0);
    server =
        echo_service_start(&service, WEIR_SERVER_OPTIONS(.boss = host->group, .address = text));
    child = replace(host, server);
    peer = raw_client_connect_address(&address);
    raw_client_echo(peer, "who is there");
    raw_client_close(peer);
    end_child(child);
    assert_int_equal(unlink(text + strlen("unix:")), 0);
}

static int init_nothing(weir_channel *channel, void *user_data)
{
    (void)channel;
    (void)user_data;
    return 0;
}

TEST_EACH_LOOP(restart, leaves_the_file_of_datagrams_to_the_new_process)
{
    const weir_address any = {.length = sizeof(sa_family_t), .storage = {.ss_family = AF_UNIX}};
    char text[64];
    weir_address address;
    weir_server *server = NULL;
    weir_child *child;
    int peer = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    choose_path(text, sizeof(text));
    assert_int_equal(weir_address_parse(text, &address), 0);
    assert_int_equal(
        weir_server_start(WEIR_SERVER_OPTIONS(.kind = WEIR_KIND_DATAGRAM, .boss = host->group,
                                              .address = text, .init_server = init_nothing),
                          &server),
        0);
    child = replace(host, server);
    assert_int_equal(bind(peer, weir_address_sockaddr(&any), any.length), 0);
    assert_int_equal(connect(peer, weir_address_sockaddr(&address), address.length), 0);
    raw_client_echo(peer, "who is there");
    raw_client_close(peer);
    end_child(child);
    assert_int_equal(unlink(text + strlen("unix:")), 0);
}

/* ---- what does not succeed ---- */

struct stopping {
    weir_server *server;
    int err;
};

static void stop(void *arg)
{
    struct stopping *stopping = arg;

    stopping->err = weir_server_stop(stopping->server, 0, TEST_TIMEOUT_NS);
}

/* A program that becomes ready when the file is there. */
static char *const *late_successor_of(const struct host *host, const char *file)
{
    static char script[256], word[] = "sh", option[] = "-c";
    static char *argv[] = {word, option, script, NULL};
    char *const *successor = successor_of(host);
    char program[128];
    ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);

    assert_true(length > 0);
    program[length] = '\0';
    (void)snprintf(script, sizeof(script), "until [ -e %s ]; do sleep 0.01; done; exec %s %s %s",
                   file, program, successor[1], successor[2]);
    return argv;
}

/* The boss is there until the last client has gone, and hears that the new process is ready. */
TEST_EACH_LOOP(restart, does_not_come_after_the_server_was_told_to_stop)
{
    struct echo_service service = {.drains_itself = true};
    weir_group *workers = NULL;
    weir_server *server;
    weir_promise *done;
    struct stopping stopping = {0};
    weir__thread thread;
    char file[64];
    int peer, created;

    log_capture_start();
    (void)snprintf(file, sizeof(file), "/tmp/weir-restart-%d-go", (int)getpid());
    (void)unlink(file);
    assert_int_equal(
        weir_group_create(WEIR_GROUP_OPTIONS(.threads = 1, .io = host->backend->io), &workers), 0);
    server =
        echo_service_start(&service, WEIR_SERVER_OPTIONS(.boss = host->group, .workers = workers));
    peer = raw_client_connect(server);
    raw_client_echo(peer, "hello");
    done = restart(server, WEIR_RESTART_OPTIONS(.argv = late_successor_of(host, file),
                                                .probation_ns = WEIR_OFF));
    stopping.server = server;
    assert_int_equal(weir__thread_start("stop", stop, &stopping, &thread), 0);
    assert_true(call_counter_await(&service.drained, 1));
    created = open(file, O_CREAT | O_CLOEXEC, 0600);
    assert_true(created >= 0);
    assert_int_equal(close(created), 0);
    assert_int_equal(result_of(done), WEIR_ECANCELED);
    assert_non_null(strstr(weir_promise_detail(done), "the server was stopped"));
    weir_promise_release(done);
    raw_client_close(peer);
    weir__thread_join(&thread);
    assert_int_equal(stopping.err, 0);
    weir_server_release(server);
    weir_group_release(workers);
    (void)unlink(file);
    while (waitpid(-1, NULL, 0) > 0) {
    }
}

TEST_EACH_LOOP(restart, that_fails_leaves_the_server_as_it_was)
{
    struct echo_service service = {0};
    weir_server *server = echo_service_start(&service, WEIR_SERVER_OPTIONS(.boss = host->group));
    weir_promise *done;

    log_capture_start();
    done = restart(server,
                   WEIR_RESTART_OPTIONS(.argv = COMMAND(WORD("sh"), WORD("-c"), WORD("exit 3"))));
    assert_int_equal(result_of(done), -ECHILD);
    assert_string_equal(weir_promise_detail(done),
                        "the new process exited with status 3 before it was ready");
    weir_promise_release(done);
    greet(server);
    done = restart(server, WEIR_RESTART_OPTIONS(.argv = COMMAND(WORD("sleep"), WORD("100")),
                                                .ready_timeout_ns = weir_ms(20)));
    assert_int_equal(
        weir_server_restart(server, WEIR_RESTART_OPTIONS(.argv = COMMAND(WORD("x"))), NULL),
        -EALREADY);
    assert_int_equal(result_of(done), -ETIMEDOUT);
    weir_promise_release(done);
    greet(server);
    assert_int_equal(
        weir_server_restart(server, WEIR_RESTART_OPTIONS(.argv = COMMAND(WORD("/no/such"))), NULL),
        -ENOENT);
    greet(server);
    echo_service_stop(server);
}

/* The manager watches this process, so its pid is not the new one's; nor can the program say whom
 * the new process notifies. */
TEST_EACH_LOOP(restart, gives_the_new_process_its_environment)
{
    static char check[] = "test -z \"${WATCHDOG_PID+set}\" || exit 1\n"
                          "test \"$WATCHDOG_USEC\" = 5000000 || exit 2\n"
                          "test \"$EXTRA\" = yes || exit 3\n"
                          "test \"$INHERITED\" = replaced || exit 4\n"
                          "test \"$NOTIFY_SOCKET\" != /mine || exit 5\n"
                          "exit 10";
    struct echo_service service = {0};
    weir_server *server = echo_service_start(&service, WEIR_SERVER_OPTIONS(.boss = host->group));
    weir_promise *done;

    log_capture_start();
    (void)setenv("WATCHDOG_PID", "1", 1);
    (void)setenv("WATCHDOG_USEC", "5000000", 1);
    (void)setenv("INHERITED", "as it was", 1);
    done = restart(server, WEIR_RESTART_OPTIONS(.argv = COMMAND(WORD("sh"), WORD("-c"), check),
                                                .extra_env = COMMAND(WORD("EXTRA=yes"),
                                                                     WORD("INHERITED=replaced"),
                                                                     WORD("NOTIFY_SOCKET=/mine"))));
    (void)unsetenv("WATCHDOG_PID");
    (void)unsetenv("WATCHDOG_USEC");
    (void)unsetenv("INHERITED");
    assert_int_equal(result_of(done), -ECHILD);
    assert_string_equal(weir_promise_detail(done),
                        "the new process exited with status 10 before it was ready");
    weir_promise_release(done);
    echo_service_stop(server);
}

TEST_EACH_LOOP(restart, ends_with_the_server)
{
    struct echo_service service = {0};
    weir_server *server = echo_service_start(&service, WEIR_SERVER_OPTIONS(.boss = host->group));
    weir_promise *done;

    log_capture_start();
    done = restart(server, WEIR_RESTART_OPTIONS(.argv = COMMAND(WORD("sleep"), WORD("100"))));
    echo_service_stop(server);
    assert_int_equal(result_of(done), WEIR_ECANCELED);
    weir_promise_release(done);
    while (waitpid(-1, NULL, 0) > 0) { /* it was sent SIGTERM */
    }
}

/* Writes to the pipe at that path when it starts, and at each SIGTERM; exits when the path is gone.
 */
static char *const *stubborn_program(const char *path)
{
    static char script[512], word[] = "sh", option[] = "-c";
    static char *argv[] = {word, option, script, NULL};

    (void)snprintf(script, sizeof(script),
                   "exec 9>%s; trap 'echo told >&9' TERM; echo here >&9; "
                   "while [ -e %s ]; do sleep 0.01; done",
                   path, path);
    return argv;
}

static void assert_line(int pipe_end, const char *line)
{
    struct pollfd ready = {.fd = pipe_end, .events = POLLIN};
    char text[16] = "";

    assert_int_equal(poll(&ready, 1, 20000), 1);
    assert_int_equal(read(pipe_end, text, strlen(line)), strlen(line));
    assert_string_equal(text, line);
}

/* The second time it would leave the clients that it has accepted. */
TEST_EACH_LOOP(restart, tells_the_new_process_to_end_only_once)
{
    struct echo_service service = {0};
    weir_manual_clock *clock = NULL;
    weir_group *group = NULL;
    weir_server *server;
    weir_promise *done;
    char path[64];
    int pipe_end;

    log_capture_start();
    (void)snprintf(path, sizeof(path), "/tmp/weir-restart-%d-pipe", (int)getpid());
    (void)unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    pipe_end = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    assert_int_equal(weir_manual_clock_create(weir_seconds(1), &clock), 0);
    assert_int_equal(weir_group_create(WEIR_GROUP_OPTIONS(.threads = 1, .io = host->backend->io,
                                                          .clock = weir_manual_clock_clock(clock)),
                                       &group),
                     0);
    server = echo_service_start(&service, WEIR_SERVER_OPTIONS(.boss = group));
    done = restart(server, WEIR_RESTART_OPTIONS(.argv = stubborn_program(path)));
    assert_line(pipe_end, "here\n");
    greet(server); /* by then the loop waits for it to be ready */
    assert_int_equal(weir_manual_clock_advance(clock, weir_seconds(61)), 0);
    assert_line(pipe_end, "told\n");
    echo_service_stop(server);
    assert_int_equal(result_of(done), WEIR_ECANCELED);
    weir_promise_release(done);
    assert_int_equal(unlink(path), 0);
    while (waitpid(-1, NULL, 0) > 0) {
    }
    assert_int_equal(read(pipe_end, path, 1), -1);
    assert_int_equal(close(pipe_end), 0);
    weir_group_release(group);
    weir_manual_clock_release(clock);
}

struct early {
    weir_server *server;
    int err;
};

/* On the loop, before the listener is bound. */
static int restart_too_early(weir_channel *channel, void *user_data)
{
    struct early *early = user_data;

    (void)channel;
    early->err =
        weir_server_restart(early->server, WEIR_RESTART_OPTIONS(.argv = COMMAND(WORD("x"))), NULL);
    return 0;
}

TEST_EACH_LOOP(restart, of_a_server_that_does_not_listen_yet_is_rejected)
{
    struct early early = {0};
    weir_promise *started = NULL;

    log_capture_start();
    assert_int_equal(weir_promise_create(NULL, &started), 0);
    assert_int_equal(weir_server_start_later(
                         WEIR_SERVER_OPTIONS(.boss = host->group, .address = "127.0.0.1:0",
                                             .init_child = init_nothing,
                                             .init_server = restart_too_early, .user_data = &early),
                         started, &early.server),
                     0);
    assert_int_equal(weir_promise_sync(started, TEST_TIMEOUT_NS), 0);
    weir_promise_release(started);
    assert_int_equal(early.err, -EINVAL);
    assert_true(log_capture_last_contains("does not listen yet"));
    echo_service_stop(early.server);
}

TEST_EACH_LOOP(restart, with_invalid_options_is_rejected)
{
    struct echo_service service = {0};
    weir_server *server = echo_service_start(&service, WEIR_SERVER_OPTIONS(.boss = host->group));
    weir_server *inproc = echo_service_start(
        &service, WEIR_SERVER_OPTIONS(.boss = host->group, .address = "inproc:restart"));
    weir_server *kept;

    log_capture_start();
    assert_int_equal(weir_server_restart(server, NULL, NULL), -EINVAL);
    assert_int_equal(
        weir_server_restart(inproc, WEIR_RESTART_OPTIONS(.argv = COMMAND(WORD("x"))), NULL),
        -ENOTSUP);
    weir_server_close(inproc);
    assert_int_equal(weir_channel_await_closed(weir_server_listener(inproc, 0), TEST_TIMEOUT_NS),
                     0);
    weir_server_release(inproc);
    kept = weir_server_retain(server);
    echo_service_stop(server);
    assert_int_equal(
        weir_server_restart(kept, WEIR_RESTART_OPTIONS(.argv = COMMAND(WORD("x"))), NULL),
        WEIR_ECLOSED);
    weir_server_release(kept);
}

TEST_EACH_LOOP(restart, survives_each_allocation_that_fails)
{
    struct echo_service service = {0};
    weir_server *server = echo_service_start(&service, WEIR_SERVER_OPTIONS(.boss = host->group));
    bool failed = true;

    log_capture_start();
    greet(server);
    for (unsigned n = 1; failed && n < 500; n++) {
        weir_promise *done = NULL;
        int err;

        assert_int_equal(weir_promise_create(NULL, &done), 0);
        host_turn(host, 2);
        test_memory_fail_at(n);
        err = weir_server_restart(server, WEIR_RESTART_OPTIONS(.argv = COMMAND(WORD("/bin/false"))),
                                  done);
        if (err == 0)
            err = result_of(done);
        failed = test_memory_failed();
        test_memory_fail_at(0);
        assert_true(err == -ECHILD || (failed && err < 0));
        weir_promise_release(done);
        while (waitpid(-1, NULL, 0) > 0) {
        }
    }
    greet(server);
    echo_service_stop(server);
}

static void fail_one_kind(struct host *host, weir_server *server, enum fault_call call)
{
    for (const int *err = faults_errors(call); *err != 0; err++) {
        weir_promise *done = NULL;
        int result;

        assert_int_equal(weir_promise_create(NULL, &done), 0);
        faults_inject(call, 1, 1, *err);
        result = weir_server_restart(
            server, WEIR_RESTART_OPTIONS(.argv = COMMAND(WORD("/bin/false"))), done);
        if (result == 0)
            result = result_of(done);
        faults_end();
        assert_true(result < 0 && result != -ETIMEDOUT);
        weir_promise_release(done);
        while (waitpid(-1, NULL, 0) > 0) {
        }
        host_turn(host, 2);
    }
}

TEST_EACH_LOOP(restart, survives_each_call_that_fails)
{
    const enum fault_call calls[] = {FAULT_SOCKET,      FAULT_SETSOCKOPT,   FAULT_BIND,
                                     FAULT_GETSOCKNAME, FAULT_FCNTL,        FAULT_PIPE2,
                                     FAULT_FORK,        FAULT_PIDFD_OPEN,   FAULT_WAITID,
                                     FAULT_CLOSE,       FAULT_EPOLL_CREATE1};
    struct echo_service service = {0};
    struct host other;
    weir_server *server;

    log_capture_start();
    faults_install(); /* no thread of this group's runs yet */
    host_open(&other, (enum backend_id)(host->backend - backends));
    server = echo_service_start(&service, WEIR_SERVER_OPTIONS(.boss = other.group));
    for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
        fail_one_kind(&other, server, calls[i]);
    greet(server);
    echo_service_stop(server);
    host_close(&other);
    host_end(host);
    global_executor_stop();
    faults_remove();
}

/* ---- a service that is replaced again and again ---- */

/* The first of a row of servers, which takes the listener; returns what they say. */
static int spawn_first(struct host *host, char *const *extra_env, int listener)
{
    int output[2];

    assert_int_equal(pipe2(output, O_CLOEXEC), 0);
    assert_int_equal(
        weir_child_spawn(host->loop,
                         WEIR_CHILD_OPTIONS(.argv = successor_of(host), .extra_env = extra_env,
                                            .stdio = {0, output[1], 0}, .export_listen_fds = true,
                                            .descriptors = &listener, .descriptor_count = 1),
                         NULL),
        0);
    (void)close(output[1]);
    (void)close(listener);
    return output[0];
}

/* A process that has ended has no program, even if its parent has not waited for it. */
static void await_end(int pid)
{
    int64_t deadline_ns = weir__monotonic_now() + TEST_TIMEOUT_NS;
    char path[32], program[8];

    (void)snprintf(path, sizeof(path), "/proc/%d/exe", pid);
    while (readlink(path, program, sizeof(program)) >= 0) {
        assert_true(weir__monotonic_now() < deadline_ns);
        weir__thread_sleep(weir_ms(1));
    }
}

TEST_EACH_LOOP(restart, by_signals_is_not_noticed_by_clients)
{
    struct address where;
    weir_address address;
    int output, listener = socket_listen(AF_INET, 64, &where), pid;

    assert_int_equal(
        weir_address_from_sockaddr((struct sockaddr *)&where.storage, where.length, &address), 0);
    output = spawn_first(host, COMMAND(WORD(SUCCESSOR_PROBATION "=20")), listener);
    pid = read_pid(output);
    for (int i = 0; i < REPLACEMENTS; i++) {
        struct pollfd ready = {.fd = output, .events = POLLIN};
        int successor;

        assert_int_equal(kill(pid, SIGUSR2), 0);
        do {
            int peer = raw_client_connect_address(&address);

            raw_client_echo(peer, "still there");
            raw_client_close(peer);
        } while (poll(&ready, 1, 0) == 0);
        successor = read_pid(output);
        assert_int_not_equal(successor, pid);
        if (i + 1 == REPLACEMENTS)
            await_end(pid); /* it would go on if the last one ended before */
        pid = successor;
    }
    assert_int_equal(kill(pid, SIGTERM), 0);
    assert_int_equal(read(output, &pid, 1), 0); /* all of them have ended */
    (void)close(output);
    host_turn(host, 2);
}

/* Sends the signal until the process has started another one, and returns the number of that. A
 * process that watches a new one still does not start another. */
static int replace_by_signal(int pid, int output)
{
    struct pollfd ready = {.fd = output, .events = POLLIN};
    int64_t deadline_ns = weir__monotonic_now() + TEST_TIMEOUT_NS;

    do {
        assert_true(weir__monotonic_now() < deadline_ns);
        assert_int_equal(kill(pid, SIGUSR2), 0);
    } while (poll(&ready, 1, 20) == 0);
    return read_pid(output);
}

/* The second process ends in the probation of the first, because a third has replaced it. */
TEST_EACH_LOOP(restart, ends_when_the_new_process_was_replaced_itself)
{
    struct address where;
    int output, first, second, third;

    output = spawn_first(
        host, COMMAND(WORD(SUCCESSOR_PROBATION "=600000"), WORD(SUCCESSOR_NEXT_PROBATION "=20")),
        socket_listen(AF_INET, 64, &where));
    first = read_pid(output);
    second = replace_by_signal(first, output);
    third = replace_by_signal(second, output);
    await_end(second);
    await_end(first);
    assert_int_equal(kill(third, SIGTERM), 0);
    assert_int_equal(read(output, &third, 1), 0); /* all of them have ended */
    (void)close(output);
    host_turn(host, 2);
}

TEST_EACH_LOOP(restart, by_signals_is_undone_by_a_crash_of_the_new_process)
{
    struct address where;
    weir_address address;
    int output, listener = socket_listen(AF_INET, 64, &where), pid, successor;

    assert_int_equal(
        weir_address_from_sockaddr((struct sockaddr *)&where.storage, where.length, &address), 0);
    output = spawn_first(host, COMMAND(WORD(SUCCESSOR_PROBATION "=600000")), listener);
    pid = read_pid(output);
    for (int i = 0; i < 2; i++) {
        successor = replace_by_signal(pid, output);
        assert_int_equal(kill(successor, SIGKILL), 0);
        await_end(successor);
        for (int visit = 0; visit < 5; visit++) {
            int peer = raw_client_connect_address(&address);

            raw_client_echo(peer, "still there");
            raw_client_close(peer);
        }
    }
    successor = replace_by_signal(pid, output);
    assert_int_equal(kill(pid, SIGTERM), 0); /* ends both */
    assert_int_equal(read(output, &pid, 1), 0);
    await_end(successor);
    (void)close(output);
    host_turn(host, 2);
}

/* ---- signals that come early ---- */

/* As soon as it is ready SIGUSR2 may arrive: that does not kill it. */
TEST_EACH_LOOP(restart, may_be_requested_before_weir_server_run)
{
    struct address where;
    int output, listener = socket_listen(AF_INET, 64, &where), first, second;

    output = spawn_first(host, COMMAND(WORD(SUCCESSOR_HASTY "=1")), listener);
    first = read_pid(output);
    second = read_pid(output);
    assert_int_not_equal(first, second);
    assert_int_equal(kill(second, SIGTERM), 0);
    assert_int_equal(read(output, &first, 1), 0); /* all of them have ended */
    (void)close(output);
    host_turn(host, 2);
}

static bool is_held(int number)
{
    sigset_t signals;

    assert_int_equal(pthread_sigmask(SIG_BLOCK, NULL, &signals), 0);
    return sigismember(&signals, number) == 1;
}

static void unblock(int number)
{
    sigset_t signals;

    sigemptyset(&signals);
    sigaddset(&signals, number);
    assert_int_equal(pthread_sigmask(SIG_UNBLOCK, &signals, NULL), 0);
}

TEST_EACH_LOOP(restart, leaves_signals_alone_if_the_server_does_not_start)
{
    struct echo_service service = {0};
    weir_server *server = NULL;

    log_capture_start();
    assert_int_equal(
        echo_service_try(&service,
                         WEIR_SERVER_OPTIONS(.boss = host->group, .address = "unix:/no/such",
                                             .restart_argv = successor_of(host)),
                         &server),
        -ENOENT);
    assert_false(is_held(SIGUSR2));
    assert_false(is_held(SIGTERM));
    server = echo_service_start(&service, WEIR_SERVER_OPTIONS(.boss = host->group));
    assert_false(is_held(SIGTERM));
    echo_service_stop(server);
}

/* Also one that is stopped without weir_server_run: then its process can be interrupted again. */
TEST_EACH_LOOP(restart, holds_signals_only_until_the_server_is_stopped)
{
    struct echo_service service = {0};
    weir_server *server = echo_service_start(
        &service, WEIR_SERVER_OPTIONS(.boss = host->group, .restart_argv = successor_of(host)));

    assert_true(is_held(SIGUSR2));
    assert_true(is_held(SIGINT));
    assert_true(is_held(SIGTERM));
    echo_service_stop(server);
    assert_false(is_held(SIGINT));
    assert_false(is_held(SIGTERM));
    unblock(SIGUSR2);
}

/* ---- what a manager hears ---- */

struct manager {
    int socket;
    char heard[1024]; /* searched, not compared: messages of two processes may be reordered */
    int sender;       /* the process that has sent the last one */
};

static void manager_open(struct manager *manager)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int length = snprintf(address.sun_path, sizeof(address.sun_path), "@weir-manager-%d", getpid());
    int on = 1;

    manager->heard[0] = '\0';
    manager->socket = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    (void)setenv("NOTIFY_SOCKET", address.sun_path, 1);
    address.sun_path[0] = '\0';
    assert_int_equal(bind(manager->socket, (struct sockaddr *)&address,
                          (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)length)),
                     0);
    assert_int_equal(setsockopt(manager->socket, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)), 0);
}

static void manager_close(struct manager *manager)
{
    (void)unsetenv("NOTIFY_SOCKET");
    (void)close(manager->socket);
}

/* Adds the next message to what was heard. */
static void hear(struct manager *manager)
{
    struct pollfd ready = {.fd = manager->socket, .events = POLLIN};
    char message[256];
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(struct ucred))];
    struct iovec vector = {.iov_base = message, .iov_len = sizeof(message) - 1};
    struct msghdr header = {.msg_iov = &vector,
                            .msg_iovlen = 1,
                            .msg_control = control,
                            .msg_controllen = sizeof(control)};
    size_t length = strlen(manager->heard);
    struct ucred sender;
    ssize_t got;

    assert_int_equal(poll(&ready, 1, 20000), 1);
    got = recvmsg(manager->socket, &header, 0);
    assert_true(got >= 0 && CMSG_FIRSTHDR(&header) != NULL);
    message[got] = '\0';
    memcpy(&sender, CMSG_DATA(CMSG_FIRSTHDR(&header)), sizeof(sender));
    manager->sender = sender.pid;
    (void)snprintf(manager->heard + length, sizeof(manager->heard) - length, "[%s]", message);
}

/* Waits for a message that begins so; all others before it have been heard, too. */
static void assert_hears(struct manager *manager, const char *text)
{
    while (strstr(manager->heard, text) == NULL)
        hear(manager);
}

/* Everything that was sent before. */
static void hear_all(struct manager *manager)
{
    struct pollfd ready = {.fd = manager->socket, .events = POLLIN};

    while (poll(&ready, 1, 0) == 1)
        hear(manager);
}

TEST_EACH_LOOP(restart, is_told_to_the_manager)
{
    struct echo_service service = {0};
    struct manager manager;
    weir_server *server;
    weir_child *child;
    char expected[64];

    manager_open(&manager);
    server =
        echo_service_start(&service, WEIR_SERVER_OPTIONS(.boss = host->group, .inherit = true));
    assert_hears(&manager, "[READY=1]");
    child = replace(host, server); /* which stops the server: the manager need not know */
    assert_hears(&manager, "[RELOADING=1\nMONOTONIC_USEC=");
    (void)snprintf(expected, sizeof(expected), "[MAINPID=%d\nREADY=1]", weir_child_pid(child));
    assert_hears(&manager, expected);
    assert_hears(&manager, "[STATUS=running]"); /* says the new one by itself */
    hear_all(&manager);
    assert_null(strstr(manager.heard, "STOPPING=1"));
    end_child(child);
    assert_hears(&manager, "[STOPPING=1]");
    manager_close(&manager);
}

TEST_EACH_LOOP(restart, that_fails_is_told_to_the_manager)
{
    struct echo_service service = {0};
    struct manager manager;
    weir_server *server;
    weir_promise *done;

    log_capture_start();
    manager_open(&manager);
    server = echo_service_start(&service, WEIR_SERVER_OPTIONS(.boss = host->group));
    done = restart(server, WEIR_RESTART_OPTIONS(.argv = COMMAND(WORD("/bin/false"))));
    assert_int_equal(result_of(done), -ECHILD);
    weir_promise_release(done);
    assert_hears(&manager, "[RELOADING=1\n");
    assert_hears(&manager, "[READY=1]");
    echo_service_stop(server);
    manager_close(&manager);
}

/* Without the second message systemd would wait for the end of the reload. */
TEST_EACH_LOOP(restart, that_cannot_start_is_told_to_the_manager)
{
    struct echo_service service = {0};
    struct manager manager;
    weir_server *server;

    log_capture_start();
    manager_open(&manager);
    server = echo_service_start(&service, WEIR_SERVER_OPTIONS(.boss = host->group));
    assert_int_equal(
        weir_server_restart(server, WEIR_RESTART_OPTIONS(.argv = COMMAND(WORD("/no/such"))), NULL),
        -ENOENT);
    hear(&manager);
    assert_memory_equal(manager.heard, "[RELOADING=1\n", strlen("[RELOADING=1\n"));
    hear(&manager);
    assert_non_null(strstr(manager.heard, "][READY=1]"));
    assert_int_equal(weir_server_restart(server, NULL, NULL), -EINVAL); /* not -EALREADY */
    echo_service_stop(server);
    assert_int_equal(recv(manager.socket, manager.heard, 1, MSG_DONTWAIT), -1);
    manager_close(&manager);
}

static struct {
    int socket;
    ssize_t (*as_ever)(int, const void *, size_t, int);
} slow;

/* Delays the notification of the restart, so that another one could overtake it. */
static ssize_t send_slowly(int descriptor, const void *bytes, size_t size, int flags)
{
    struct pollfd ready = {.fd = slow.socket, .events = POLLIN};

    if (strncmp(bytes, "RELOADING=1", strlen("RELOADING=1")) == 0)
        (void)poll(&ready, 1, 100);
    return slow.as_ever(descriptor, bytes, size, flags);
}

/* A manager that received the end first would wait for it forever. */
TEST_EACH_LOOP(restart, that_fails_at_once_notifies_in_order)
{
    struct echo_service service = {0};
    struct manager manager;
    weir_server *server;
    weir_promise *done;

    log_capture_start();
    manager_open(&manager);
    slow.socket = manager.socket;
    slow.as_ever = weir__sys.send;
    weir__sys.send = send_slowly;
    server = echo_service_start(&service, WEIR_SERVER_OPTIONS(.boss = host->group));
    done = restart(server, WEIR_RESTART_OPTIONS(.argv = COMMAND(WORD("/bin/false"))));
    assert_int_equal(result_of(done), -ECHILD);
    weir_promise_release(done);
    echo_service_stop(server);
    weir__sys.send = slow.as_ever;
    assert_hears(&manager, "[READY=1]");
    assert_non_null(strstr(manager.heard, "RELOADING=1"));
    manager_close(&manager);
}

/* ---- a new process that ends after it was ready ---- */

TEST_EACH_LOOP(restart, goes_on_if_the_new_process_crashes_when_it_is_ready)
{
    char *const crashes[] = {WORD(SUCCESSOR_CRASHES "=1"), NULL};
    struct echo_service service = {0};
    weir_server *server = echo_service_start(&service, WEIR_SERVER_OPTIONS(.boss = host->group));

    log_capture_start();
    for (int i = 0; i < 2; i++) { /* a failed restart may be followed by another one */
        weir_promise *done =
            restart(server, WEIR_RESTART_OPTIONS(.argv = successor_of(host), .extra_env = crashes));

        assert_int_equal(result_of(done), -ECHILD);
        assert_non_null(strstr(weir_promise_detail(done), "was killed by signal 9"));
        weir_promise_release(done);
        greet(server);
    }
    echo_service_stop(server);
}

#define PROBATION_NS weir_seconds(8)

struct probation {
    struct manager manager;
    weir_manual_clock *clock;
    struct host host; /* on that clock */
    struct echo_service service;
    weir_server *server;
    weir_promise *done;
    int pid; /* of the new process */
};

static void await_message(const char *text)
{
    int64_t deadline_ns = weir__monotonic_now() + TEST_TIMEOUT_NS;

    while (!log_capture_last_contains(text)) {
        assert_true(weir__monotonic_now() < deadline_ns);
        weir__thread_sleep(weir_ms(1));
    }
}

/* Starts a new process, which has become ready at this moment of the clock. */
static void probation_begin(struct probation *probation)
{
    probation->done = restart(probation->server, NULL);
    assert_hears(&probation->manager, "[STATUS=running]");
    probation->pid = probation->manager.sender;
    await_message("is ready; probation: 8000 ms");
}

static void probation_init(struct probation *probation, const struct host *host)
{
    memset(probation, 0, sizeof(*probation));
    log_capture_start();
    weir_log_set_level(WEIR_LOG_INFO);
    manager_open(&probation->manager);
    assert_int_equal(weir_manual_clock_create(weir_seconds(1), &probation->clock), 0);
    probation->host.backend = host->backend;
    assert_int_equal(
        weir_group_create(WEIR_GROUP_OPTIONS(.threads = 1, .io = host->backend->io,
                                             .clock = weir_manual_clock_clock(probation->clock)),
                          &probation->host.group),
        0);
    probation->host.loop = weir_group_at(probation->host.group, 0);
    probation->server = echo_service_start(
        &probation->service, WEIR_SERVER_OPTIONS(.boss = probation->host.group, .inherit = true,
                                                 .restart_argv = successor_of(host),
                                                 .restart_probation_ns = PROBATION_NS));
    assert_hears(&probation->manager, "[READY=1]");
    probation->manager.heard[0] = '\0';
    probation_begin(probation);
}

/* Returns when all processes have ended. What they have said can still be heard. */
static void probation_end(struct probation *probation)
{
    echo_service_stop(probation->server);
    weir_promise_release(probation->done);
    weir_group_release(probation->host.group);
    weir_manual_clock_release(probation->clock);
    while (waitpid(-1, NULL, 0) > 0) {
    }
    unblock(SIGUSR2);
    weir_log_set_level(WEIR_LOG_WARN);
}

TEST_EACH_LOOP(restart, goes_on_if_the_new_process_ends_in_its_probation)
{
    struct probation probation;

    probation_init(&probation, host);
    assert_int_equal(weir_manual_clock_advance(probation.clock, PROBATION_NS / 2), 0);
    host_turn(&probation.host, 2);
    assert_false(weir_promise_is_done(probation.done));
    assert_int_equal(kill(probation.pid, SIGKILL), 0);
    assert_int_equal(result_of(probation.done), -ECHILD);
    assert_string_equal(weir_promise_detail(probation.done),
                        "the new process was killed by signal 9 4000 ms after it was ready");
    assert_true(log_capture_last_contains("this process continues"));
    assert_hears(&probation.manager, "[READY=1]");
    assert_null(strstr(probation.manager.heard, "MAINPID"));
    for (int i = 0; i < 3; i++)
        greet(probation.server);
    probation_end(&probation); /* it is still the service, and says so when it ends */
    assert_hears(&probation.manager, "[STOPPING=1]");
    manager_close(&probation.manager);
}

TEST_EACH_LOOP(restart, is_over_when_the_new_process_has_passed_its_probation)
{
    struct probation probation;
    char expected[64];

    probation_init(&probation, host);
    assert_int_equal(weir_manual_clock_advance(probation.clock, PROBATION_NS - weir_ms(10)), 0);
    host_turn(&probation.host, 2);
    assert_false(weir_promise_is_done(probation.done));
    assert_null(strstr(probation.manager.heard, "READY=1"));
    assert_int_equal(weir_manual_clock_advance(probation.clock, weir_ms(20)), 0);
    assert_int_equal(result_of(probation.done), 0);
    (void)snprintf(expected, sizeof(expected), "[MAINPID=%d\nREADY=1]", probation.pid);
    assert_hears(&probation.manager, expected);
    assert_null(strstr(probation.manager.heard, "STOPPING=1"));
    assert_int_equal(kill(probation.pid, SIGTERM), 0);
    assert_hears(&probation.manager, "[STOPPING=1]");
    assert_int_equal(probation.manager.sender, probation.pid);
    probation_end(&probation);
    manager_close(&probation.manager);
}

TEST_EACH_LOOP(restart, may_be_tried_again_after_a_failed_probation)
{
    struct probation probation;

    probation_init(&probation, host);
    assert_int_equal(weir_server_restart(probation.server, NULL, NULL), -EALREADY);
    assert_int_equal(kill(probation.pid, SIGTERM), 0); /* an orderly end counts as well */
    assert_int_equal(result_of(probation.done), -ECHILD);
    assert_string_equal(weir_promise_detail(probation.done),
                        "the new process exited with status 0 0 ms after it was ready");
    weir_promise_release(probation.done);
    probation.manager.heard[0] = '\0';
    probation_begin(&probation);
    assert_int_equal(weir_manual_clock_advance(probation.clock, PROBATION_NS + weir_ms(10)), 0);
    assert_int_equal(result_of(probation.done), 0);
    assert_int_equal(kill(probation.pid, SIGTERM), 0);
    probation_end(&probation);
    manager_close(&probation.manager);
}

/* For the manager, the old process is the service: so both end. */
TEST_EACH_LOOP(restart, ends_with_a_server_that_is_stopped_in_the_probation)
{
    struct probation probation;

    probation_init(&probation, host);
    probation_end(&probation);
    assert_hears(&probation.manager, "[STOPPING=1]");
    assert_null(strstr(probation.manager.heard, "MAINPID"));
    manager_close(&probation.manager);
}
