/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a service manager hands over, and hears. Descriptors begin at 3, which a test has in use: so
 * those parts run in a copy of the process.
 */
#include <weir/restart.h>

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bootstrap/notify_socket.h"
#include "support/executor/log_capture.h"
#include "support/loop/faults.h"
#include "support/loop/sockets.h"
#include "support/test.h"

/* ---- descriptors ---- */

static void announce(const char *pid, const char *count, const char *names)
{
    char own[16];

    (void)snprintf(own, sizeof(own), "%d", getpid());
    (void)setenv("LISTEN_PID", pid != NULL ? pid : own, 1);
    (void)setenv("LISTEN_FDS", count, 1);
    if (names != NULL)
        (void)setenv("LISTEN_FDNAMES", names, 1);
    else
        (void)unsetenv("LISTEN_FDNAMES");
}

static void forget(void)
{
    (void)unsetenv("LISTEN_PID");
    (void)unsetenv("LISTEN_FDS");
    (void)unsetenv("LISTEN_FDNAMES");
}

/* Says by its status what is wrong. */
static int take_two(void)
{
    weir_systemd_listener listeners[2];

    (void)dup2(STDERR_FILENO, 3);
    (void)dup2(STDERR_FILENO, 4);
    announce(NULL, "2", "http:");
    if (weir_systemd_listeners(true, NULL, 0) != 2)
        return 1;
    if (weir_systemd_listeners(false, listeners, 2) != 2 || listeners[0].descriptor != 3 ||
        listeners[1].descriptor != 4)
        return 2;
    if (strcmp(listeners[0].name, "http") != 0 || strcmp(listeners[1].name, "unknown") != 0)
        return 3;
    if (fcntl(3, F_GETFD) != FD_CLOEXEC || fcntl(4, F_GETFD) != FD_CLOEXEC)
        return 4;
    if (weir_systemd_listeners(true, listeners, 2) != 2)
        return 5;
    return weir_systemd_listeners(true, listeners, 2) == 0 && getenv("LISTEN_FDS") == NULL ? 0 : 6;
}

static int take_what_is_not_there(void)
{
    weir_systemd_listener listeners[2];

    (void)close(4);
    announce(NULL, "2", NULL);
    return weir_systemd_listeners(true, listeners, 2) == -EBADF ? 0 : 1;
}

static int status_of(int (*fn)(void))
{
    int status;
    pid_t pid = fork();

    if (pid == 0)
        _exit(fn());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(systemd, hands_over_descriptors_with_names)
{
    assert_int_equal(status_of(take_two), 0);
    log_capture_start();
    assert_int_equal(status_of(take_what_is_not_there), 0);
}

TEST(systemd, has_nothing_for_who_was_not_meant)
{
    weir_systemd_listener listener;

    forget();
    assert_int_equal(weir_systemd_listeners(true, &listener, 1), 0);
    announce("1", "1", NULL);
    assert_int_equal(weir_systemd_listeners(true, &listener, 1), 0);
    (void)unsetenv("LISTEN_PID");
    assert_int_equal(weir_systemd_listeners(true, &listener, 1), 0);
    announce(NULL, "0", NULL);
    assert_int_equal(weir_systemd_listeners(true, &listener, 1), 0);
    forget();
}

TEST(systemd, logs_invalid_numbers)
{
    const char *const wrong[] = {"", "x", "1x", "-1", "99999999999999999999", "1000000"};
    weir_systemd_listener listener;
    int64_t interval_ns;

    log_capture_start();
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        announce(NULL, wrong[i], NULL);
        assert_int_equal(weir_systemd_listeners(true, &listener, 1), -EINVAL);
        assert_true(log_capture_last_contains("invalid number"));
    }
    announce("nobody", "1", NULL);
    assert_int_equal(weir_systemd_listeners(true, &listener, 1), -EINVAL);
    forget();
    (void)setenv("WATCHDOG_USEC", "often", 1);
    assert_int_equal(weir_systemd_watchdog(&interval_ns), -EINVAL);
    (void)unsetenv("WATCHDOG_USEC");
}

/* ---- notification ---- */

static int listen_at(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    size_t length = strlen(path);

    memcpy(address.sun_path, path, length);
    if (*path == '@')
        address.sun_path[0] = '\0';
    assert_int_equal(bind(manager, (struct sockaddr *)&address,
                          (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length)),
                     0);
    (void)setenv("NOTIFY_SOCKET", path, 1);
    return manager;
}

static void assert_told(int manager, const char *text)
{
    char heard[256] = "";

    assert_true(recv(manager, heard, sizeof(heard) - 1, MSG_DONTWAIT) >= 0);
    assert_string_equal(heard, text);
}

TEST(systemd, receives_notifications)
{
    char path[64];
    int manager;

    (void)snprintf(path, sizeof(path), "@weir-test-notify-%d", getpid());
    manager = listen_at(path);
    assert_int_equal(weir_systemd_notify("READY=1\nSTATUS=here"), 1);
    assert_told(manager, "READY=1\nSTATUS=here");
    (void)close(manager);

    (void)snprintf(path, sizeof(path), "/tmp/weir-test-notify-%d", getpid());
    manager = listen_at(path);
    assert_int_equal(weir_systemd_notify("STOPPING=1"), 1);
    assert_told(manager, "STOPPING=1");
    (void)close(manager);
    log_capture_start();
    assert_int_equal(weir_systemd_notify("STOPPING=1"), -ECONNREFUSED);
    (void)unlink(path);
    assert_int_equal(weir_systemd_notify("STOPPING=1"), -ENOENT);
    assert_true(log_capture_last_contains("sd_notify failed"));
    (void)setenv("NOTIFY_SOCKET", "nowhere", 1);
    assert_int_equal(weir_systemd_notify("STOPPING=1"), -EINVAL);
    (void)unsetenv("NOTIFY_SOCKET");
    assert_int_equal(weir_systemd_notify("STOPPING=1"), 0);
}

/* As of a process that replaces another: that one is notified first, and once. */
TEST(systemd, tells_the_process_before_once_that_it_is_ready)
{
    char manager_path[64], before_path[64];
    int manager, before;

    (void)snprintf(manager_path, sizeof(manager_path), "@weir-test-manager-%d", getpid());
    (void)snprintf(before_path, sizeof(before_path), "@weir-test-before-%d", getpid());
    manager = listen_at(manager_path);
    before = listen_at(before_path); /* NOTIFY_SOCKET */
    (void)setenv(WEIR__NOTIFY_MANAGER, manager_path, 1);
    announce(NULL, "0", NULL);
    assert_int_equal(weir_systemd_listeners(true, NULL, 0), 0);
    assert_int_equal(weir_systemd_notify("STATUS=starting"), 1);
    assert_told(manager, "STATUS=starting");
    assert_int_equal(weir_systemd_notify("READY=1"), 1);
    assert_told(before, "READY=1");
    assert_int_equal(weir_systemd_notify("READY=1"), 1); /* after a reload of its own */
    assert_told(manager, "READY=1");
    assert_null(getenv(WEIR__NOTIFY_MANAGER));
    (void)close(before);
    (void)close(manager);
    (void)unsetenv("NOTIFY_SOCKET");
    forget();
}

TEST(systemd, may_want_to_hear_that_we_live)
{
    int64_t interval_ns = 0;

    assert_int_equal(weir_systemd_watchdog(&interval_ns), 0);
    (void)setenv("WATCHDOG_USEC", "1500", 1);
    assert_int_equal(weir_systemd_watchdog(&interval_ns), 1);
    assert_int_equal(interval_ns, 1500000);
    (void)setenv("WATCHDOG_PID", "1", 1);
    assert_int_equal(weir_systemd_watchdog(&interval_ns), 0);
    (void)unsetenv("WATCHDOG_PID");
    (void)unsetenv("WATCHDOG_USEC");
}

TEST(systemd, notification_survives_each_call_that_fails)
{
    const enum fault_call calls[] = {FAULT_SOCKET, FAULT_CONNECT, FAULT_SEND, FAULT_CLOSE};
    size_t descriptors;
    char path[64];
    int manager;

    (void)snprintf(path, sizeof(path), "@weir-test-notify-%d", getpid());
    manager = listen_at(path);
    log_capture_start();
    descriptors = descriptors_open();
    faults_install();
    for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
        for (const int *err = faults_errors(calls[i]); *err != 0; err++) {
            bool goes_on = calls[i] == FAULT_CLOSE ||
                           (calls[i] == FAULT_SEND && (*err == EINTR || *err == ENOBUFS));

            faults_inject(calls[i], 1, 1, *err);
            assert_int_equal(weir_systemd_notify("x"), goes_on ? 1 : -*err);
        }
    }
    faults_remove();
    assert_int_equal(descriptors_open(), descriptors);
    (void)close(manager);
    (void)unsetenv("NOTIFY_SOCKET");
}
