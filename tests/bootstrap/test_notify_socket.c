/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The manager's end of notifications, told by our own: weir_systemd_notify.
 */
#include "bootstrap/notify_socket.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/restart.h>

#include "support/executor/log_capture.h"
#include "support/loop/faults.h"
#include "support/loop/sockets.h"
#include "support/test.h"

static int open_and_export(void)
{
    char entry[WEIR__NOTIFY_ENTRY_SIZE];
    int descriptor = -1;

    assert_int_equal(weir__notify_socket_open(&descriptor, entry, sizeof(entry)), 0);
    assert_int_equal(strncmp(entry, "NOTIFY_SOCKET=@", 15), 0);
    assert_int_equal(setenv("NOTIFY_SOCKET", entry + 14, 1), 0);
    return descriptor;
}

static bool hears(int descriptor, const char *text)
{
    assert_int_equal(weir_systemd_notify(text), 1);
    return weir__notify_socket_read(descriptor, getpid()).is_ready;
}

TEST(ready_socket, hears_that_a_process_is_ready)
{
    int descriptor = open_and_export();

    assert_false(weir__notify_socket_read(descriptor, getpid()).is_ready);
    assert_false(hears(descriptor, "STATUS=READY=1"));
    assert_false(hears(descriptor, "READY=0\nREADY=10"));
    assert_false(hears(descriptor, ""));
    assert_true(hears(descriptor, "READY=1"));
    assert_true(hears(descriptor, "STATUS=here\nREADY=1\n"));
    assert_int_equal(weir_systemd_notify("STATUS=first"), 1);
    assert_true(hears(descriptor, "READY=1\nSTATUS=then"));
    (void)close(descriptor);
    (void)unsetenv("NOTIFY_SOCKET");
}

TEST(ready_socket, does_not_believe_others)
{
    int descriptor = open_and_export();

    log_capture_start();
    assert_int_equal(weir_systemd_notify("READY=1"), 1);
    assert_false(weir__notify_socket_read(descriptor, getpid() + 1).is_ready);
    assert_true(log_capture_last_contains("is not the new process"));
    (void)close(descriptor);
    (void)unsetenv("NOTIFY_SOCKET");
}

TEST(ready_socket, leaves_nothing_when_a_call_fails)
{
    const enum fault_call calls[] = {FAULT_SOCKET, FAULT_SETSOCKOPT, FAULT_BIND, FAULT_GETSOCKNAME};
    size_t descriptors = descriptors_open();
    char entry[WEIR__NOTIFY_ENTRY_SIZE];
    int descriptor;

    faults_install();
    for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
        for (const int *err = faults_errors(calls[i]); *err != 0; err++) {
            faults_inject(calls[i], 1, 1, *err);
            assert_int_equal(weir__notify_socket_open(&descriptor, entry, sizeof(entry)), -*err);
        }
    }
    faults_remove();
    assert_int_equal(descriptors_open(), descriptors);
}
