/* SPDX-License-Identifier: Apache-2.0 */
/* Processes started from a loop of each backend: their arguments and their exit. */
#include <weir/watch.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/error.h>
#include <weir/loop.h>

#include "os/system.h"
#include "support/executor/call_counter.h"
#include "support/executor/global_executor.h"
#include "support/executor/log_capture.h"
#include "support/loop/faults.h"
#include "support/loop/host.h"
#include "support/loop/sockets.h"
#include "support/memory.h"

struct ending {
    struct call_counter exited;
    weir_child_exit exit;
    weir_executor *where;
};

static void on_exited(weir_child *child, const weir_child_exit *exit, void *user_data)
{
    struct ending *ending = user_data;

    (void)child;
    ending->exit = *exit;
    ending->where = weir_executor_current();
    call_counter_add(&ending->exited);
}

#define SHELL(script)                                          \
    (char *[])                                                 \
    {                                                          \
        (char[]){"sh"}, (char[]){"-c"}, (char[]){script}, NULL \
    }
#define TOLD(ending) .exited = on_exited, .user_data = (ending)

static weir_child *spawn(weir_executor *loop, const weir_child_options *options)
{
    weir_child *child = NULL;

    assert_int_equal(weir_child_spawn(loop, options, &child), 0);
    return child;
}

static int try_to_spawn(weir_executor *loop, const weir_child_options *options)
{
    weir_child *child = (weir_child *)&child;
    int err = weir_child_spawn(loop, options, &child);

    assert_ptr_equal(child, &child); /* written only on success */
    return err;
}

/* ---- the end ---- */

TEST_EACH_LOOP(child, reports_its_status_on_the_loop)
{
    struct ending ending = {0};
    weir_child *child =
        spawn(host->loop, WEIR_CHILD_OPTIONS(.argv = SHELL("exit 7"), TOLD(&ending)));

    assert_true(call_counter_await(&ending.exited, 1));
    assert_int_equal(ending.exit.err, 0);
    assert_int_equal(ending.exit.status, 7);
    assert_int_equal(ending.exit.signal, 0);
    assert_ptr_equal(ending.where, host->loop);
    assert_int_equal(weir_child_signal(child, 0), -ESRCH);
    assert_int_equal(waitpid(weir_child_pid(child), NULL, WNOHANG), -1); /* no zombie is left */
    weir_child_release(child);
}

TEST_EACH_LOOP(child, reports_the_signal_that_killed_it)
{
    struct ending ending = {0};
    weir_child *child =
        spawn(host->loop, WEIR_CHILD_OPTIONS(.argv = SHELL("exec sleep 100"), TOLD(&ending)));

    assert_int_equal(weir_child_signal(child, 0), 0);
    host_turn(host, 3);
    assert_int_equal(ending.exited.calls, 0);
    assert_int_equal(weir_child_signal(child, SIGTERM), 0);
    assert_true(call_counter_await(&ending.exited, 1));
    assert_int_equal(ending.exit.err, 0);
    assert_int_equal(ending.exit.status, -1);
    assert_int_equal(ending.exit.signal, SIGTERM);
    assert_false(ending.exit.dumped_core);
    weir_child_release(child);
}

TEST_EACH_LOOP(child, reports_its_exit_without_a_reference)
{
    struct ending ending = {0};

    assert_int_equal(weir_child_spawn(host->loop,
                                      WEIR_CHILD_OPTIONS(.argv = SHELL("exit 0"), TOLD(&ending)),
                                      NULL),
                     0);
    assert_true(call_counter_await(&ending.exited, 1));
    assert_int_equal(ending.exit.status, 0);
}

TEST_EACH_LOOP(child, goes_on_when_its_loop_has_shut_down)
{
    struct ending ending = {0};
    weir_child *child =
        spawn(host->loop, WEIR_CHILD_OPTIONS(.argv = SHELL("exec sleep 100"), TOLD(&ending)));

    host_end(host);
    assert_true(call_counter_await(&ending.exited, 1));
    assert_int_equal(ending.exit.err, WEIR_ECANCELED);
    assert_int_equal(weir_child_signal(child, SIGKILL), 0);
    assert_int_equal(waitpid(weir_child_pid(child), NULL, 0), weir_child_pid(child));
    weir_child_release(child);
}

TEST_EACH_LOOP(child, ends_on_a_loop_that_its_owner_drives)
{
    struct ending ending = {0};
    weir_executor *loop = NULL;

    assert_int_equal(weir_loop_create(WEIR_LOOP_OPTIONS(.io = host->backend->io), &loop), 0);
    weir_child_release(spawn(loop, WEIR_CHILD_OPTIONS(.argv = SHELL("exit 3"), TOLD(&ending))));
    for (int i = 0; i < 1000 && ending.exited.calls == 0; i++)
        (void)weir_loop_run_once(loop, weir_ms(10));
    assert_int_equal(ending.exited.calls, 1);
    assert_int_equal(ending.exit.status, 3);
    weir_executor_release(loop);
}

/* ---- watching running processes ---- */

TEST_EACH_LOOP(child, already_running_is_watched)
{
    struct ending ending = {0};
    weir_child *child = NULL;
    pid_t pid = fork();

    if (pid == 0) {
        (void)pause();
        _exit(0);
    }
    assert_int_equal(weir_child_watch(host->loop, pid, on_exited, &ending, &child), 0);
    assert_int_equal(weir_child_pid(child), pid);
    assert_int_equal(weir_child_signal(child, SIGKILL), 0);
    assert_true(call_counter_await(&ending.exited, 1));
    assert_int_equal(ending.exit.signal, SIGKILL);
    weir_child_release(child);
}

/* A grandchild: its parent ends first, so that it is nobody's that we know. */
TEST_EACH_LOOP(child, of_another_process_has_no_status)
{
    struct ending ending = {0};
    weir_child *child = NULL;
    int ends[2];
    pid_t pid;

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    pid = fork();
    if (pid == 0) {
        pid = fork();
        if (pid > 0)
            (void)!write(ends[1], &pid, sizeof(pid));
        else
            (void)pause();
        _exit(0);
    }
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(read(ends[0], &pid, sizeof(pid)), sizeof(pid));
    assert_int_equal(weir_child_watch(host->loop, pid, on_exited, &ending, &child), 0);
    assert_int_equal(weir_child_signal(child, SIGKILL), 0);
    assert_true(call_counter_await(&ending.exited, 1));
    assert_int_equal(ending.exit.err, -ECHILD);
    assert_int_equal(ending.exit.status, -1);
    weir_child_release(child);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

TEST_EACH_LOOP(child, that_is_gone_cannot_be_watched)
{
    weir_child *child = NULL;
    pid_t pid = fork();

    if (pid == 0)
        _exit(0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(weir_child_watch(host->loop, pid, on_exited, NULL, &child), -ESRCH);
    assert_int_equal(weir_child_watch(host->loop, -1, on_exited, NULL, &child), -EINVAL);
    assert_null(child);
}

/* ---- what it is given ---- */

/* Runs a script and returns its output, after its exit. */
static void run_script(struct host *host, weir_child_options options, char *ret_text, size_t size)
{
    struct ending ending = {0};
    size_t length = 0;
    ssize_t count;
    int ends[2];

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    options.size = sizeof(options);
    options.stdio[1] = ends[1];
    options.exited = on_exited;
    options.user_data = &ending;
    weir_child_release(spawn(host->loop, &options));
    (void)close(ends[1]);
    while ((count = read(ends[0], ret_text + length, size - 1 - length)) > 0)
        length += (size_t)count;
    ret_text[length] = '\0';
    (void)close(ends[0]);
    assert_true(call_counter_await(&ending.exited, 1));
    assert_int_equal(ending.exit.status, 0);
}

/* Two that change places: one of them would be overwritten if they were copied one by one. */
TEST_EACH_LOOP(child, gets_descriptors_from_three_on_and_no_others)
{
    int one[2], two[2], descriptors[100], count, stray = fcntl(STDERR_FILENO, F_DUPFD, 200);
    char text[256], script[256];

    assert_int_equal(pipe2(one, O_CLOEXEC), 0);
    assert_int_equal(pipe2(two, O_CLOEXEC), 0);
    assert_int_equal(write(one[1], "one\n", 4), 4);
    assert_int_equal(write(two[1], "two\n", 4), 4);
    count = two[1] - 2;
    assert_true(count <= 100);
    for (int i = 0; i < count; i++)
        descriptors[i] = STDERR_FILENO;
    descriptors[one[0] - 3] = two[0];
    descriptors[two[0] - 3] = one[0];
    (void)snprintf(script, sizeof(script),
                   "read a </proc/$$/fd/%d; read b </proc/$$/fd/%d; echo $a $b;"
                   "test -e /proc/$$/fd/%d || echo no other",
                   one[0], two[0], stray);
    run_script(host,
               (weir_child_options){
                   .argv = (char *[]){(char[]){"sh"}, (char[]){"-c"}, script, NULL},
                   .descriptors = descriptors,
                   .descriptor_count = (size_t)count,
               },
               text, sizeof(text));
    assert_string_equal(text, "two one\nno other\n");
    (void)close(stray);
    for (int i = 0; i < 2; i++) {
        (void)close(one[i]);
        (void)close(two[i]);
    }
}

TEST_EACH_LOOP(child, gets_an_environment_and_a_directory)
{
    char text[256];

    run_script(host,
               (weir_child_options){
                   .argv = SHELL("echo $ONE $TWO $(pwd)"),
                   .env = (char *[]){(char[]){"ONE=1"}, (char[]){"TWO=2"}, NULL},
                   .extra_env = (char *[]){(char[]){"TWO=3"}, NULL},
                   .directory = "/",
               },
               text, sizeof(text));
    assert_string_equal(text, "1 3 /\n");
}

/* sh keeps what is ignored ignored, and cannot unblock. */
TEST_EACH_LOOP(child, gets_default_signals_none_of_them_blocked)
{
    struct ending ending = {0};
    sigset_t all, before;
    weir_child *child;

    assert_true(signal(SIGTERM, SIG_IGN) != SIG_ERR);
    sigfillset(&all);
    assert_int_equal(pthread_sigmask(SIG_SETMASK, &all, &before), 0);
    child = spawn(host->loop, WEIR_CHILD_OPTIONS(.argv = SHELL("exec sleep 100"), TOLD(&ending)));
    assert_int_equal(pthread_sigmask(SIG_SETMASK, &before, NULL), 0);
    assert_true(signal(SIGTERM, SIG_DFL) != SIG_ERR);
    assert_int_equal(weir_child_signal(child, SIGTERM), 0);
    assert_true(call_counter_await(&ending.exited, 1));
    assert_int_equal(ending.exit.signal, SIGTERM);
    weir_child_release(child);
}

TEST_EACH_LOOP(child, keeps_ignoring_hangups_as_nohup_asks)
{
    char text[64];

    assert_true(signal(SIGHUP, SIG_IGN) != SIG_ERR);
    run_script(host, (weir_child_options){.argv = SHELL("kill -HUP $$; echo here")}, text,
               sizeof(text));
    assert_true(signal(SIGHUP, SIG_DFL) != SIG_ERR);
    assert_string_equal(text, "here\n");
}

TEST_EACH_LOOP(child, gets_listeners_by_the_systemd_protocol)
{
    char text[256];

    assert_int_equal(setenv("LISTEN_FDS", "77", 1), 0);
    run_script(host,
               (weir_child_options){
                   .argv = SHELL("test $LISTEN_PID = $$ && echo $LISTEN_FDS $LISTEN_FDNAMES"),
                   .descriptors = (const int[]){STDERR_FILENO, STDERR_FILENO},
                   .descriptor_count = 2,
                   .export_listen_fds = true,
                   .listen_fd_names = "one:two",
               },
               text, sizeof(text));
    assert_string_equal(text, "2 one:two\n");
    run_script(host, (weir_child_options){.argv = SHELL("echo \"-$LISTEN_FDS-\"")}, text,
               sizeof(text));
    assert_string_equal(text, "--\n"); /* ours are not its */
    assert_int_equal(unsetenv("LISTEN_FDS"), 0);
}

/* ---- what cannot be started ---- */

TEST_EACH_LOOP(child, that_cannot_run_is_a_logged_error)
{
    log_capture_start();
    assert_int_equal(
        try_to_spawn(host->loop,
                     WEIR_CHILD_OPTIONS(.argv = (char *[]){(char[]){"/no/such/program"}, NULL})),
        -ENOENT);
    assert_true(log_capture_last_contains("cannot be started"));
    assert_int_equal(
        try_to_spawn(host->loop,
                     WEIR_CHILD_OPTIONS(.argv = (char *[]){(char[]){"no-such-program"}, NULL})),
        -ENOENT);
    assert_int_equal(
        try_to_spawn(host->loop,
                     WEIR_CHILD_OPTIONS(.argv = (char *[]){(char[]){"/etc/passwd"}, NULL})),
        -EACCES);
    assert_int_equal(try_to_spawn(host->loop, WEIR_CHILD_OPTIONS(.argv = SHELL("exit"),
                                                                 .directory = "/no/such")),
                     -ENOENT);
    assert_int_equal(
        try_to_spawn(host->loop, WEIR_CHILD_OPTIONS(.argv = SHELL("exit"), .descriptor_count = 1,
                                                    .descriptors = (const int[]){1000000})),
        -EBADF);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* none of them is left */
    assert_int_equal(errno, ECHILD);
}

TEST_EACH_LOOP(child, that_makes_no_sense_is_refused)
{
    assert_int_equal(try_to_spawn(host->loop, NULL), -EINVAL);
    assert_int_equal(try_to_spawn(host->loop, WEIR_CHILD_OPTIONS(.argv = (char *[]){NULL})),
                     -EINVAL);
    assert_int_equal(try_to_spawn(NULL, WEIR_CHILD_OPTIONS(.argv = SHELL("exit"))), -EINVAL);
    assert_int_equal(
        try_to_spawn(weir_executor_global(), WEIR_CHILD_OPTIONS(.argv = SHELL("exit"))), -EINVAL);
    log_capture_start();
    assert_int_equal(try_to_spawn(host->loop, WEIR_CHILD_OPTIONS(.argv = SHELL("exit"),
                                                                 .extra_env = SHELL("no name"))),
                     -EINVAL);
    host_end(host);
    assert_int_equal(try_to_spawn(host->loop, WEIR_CHILD_OPTIONS(.argv = SHELL("exit"))),
                     WEIR_EREJECTED);
    weir_child_release(NULL);
}

/* ---- failures ---- */

/* 0 if it was started: then `exited` is called once. */
static int start_and_wait(struct host *host, bool *ret_memory_failed)
{
    struct ending ending = {0};
    int err = weir_child_spawn(host->loop,
                               WEIR_CHILD_OPTIONS(.argv = SHELL("exit 0"), TOLD(&ending)), NULL);

    if (err == 0) {
        assert_true(call_counter_await(&ending.exited, 1));
    }
    *ret_memory_failed = test_memory_failed();
    test_memory_fail_at(0);
    host_turn(host, 1);
    assert_true(ending.exited.calls <= 1);
    while (waitpid(-1, NULL, 0) > 0) { /* one that could not be watched or waited for goes on */
    }
    return err;
}

TEST_EACH_LOOP(child, survives_each_allocation_that_fails)
{
    bool failed = true;

    log_capture_start();
    for (unsigned n = 1; failed; n++) {
        int err;

        test_memory_fail_at(n);
        err = start_and_wait(host, &failed);
        assert_true(err == 0 || (failed && err == -ENOMEM));
        assert_true(n < 500);
    }
}

static void fail_each(struct host *host, enum fault_call call)
{
    bool memory_failed;

    for (const int *err = faults_errors(call); *err != 0; err++) {
        for (uint64_t n = 1; n <= 3; n++) {
            faults_inject(call, n, 1, *err);
            (void)start_and_wait(host, &memory_failed);
            faults_end();
        }
    }
}

TEST(child, survives_each_call_that_fails)
{
    const enum fault_call calls[] = {FAULT_PIPE2,        FAULT_FORK,       FAULT_READ,
                                     FAULT_WAITID,       FAULT_PIDFD_OPEN, FAULT_CLOSE,
                                     FAULT_EPOLL_CREATE1};
    size_t descriptors = descriptors_open();
    struct host host;

    log_capture_start();
    faults_install();
    host_open(&host, BACKEND_EPOLL);
    for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
        fail_each(&host, calls[i]);
    host_close(&host);
    global_executor_stop();
    faults_remove();
    assert_int_equal(descriptors_open(), descriptors);
}
