/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Servers in a sandbox that forbids or hides a system call of io_uring.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/syscall.h>

#include <weir/loop.h>

#include "support/bootstrap/echo_service.h"
#include "support/bootstrap/raw_client.h"
#include "support/child.h"
#include "support/executor/global_executor.h"
#include "support/executor/log_capture.h"
#include "support/seccomp.h"
#include "support/test.h"

static const struct {
    long number;
    const char *name;
} calls[] = {
    {SYS_io_uring_setup, "io_uring_setup"},
    {SYS_io_uring_register, "io_uring_register"},
    {SYS_io_uring_enter, "io_uring_enter"},
};

static size_t filtered;   /* an index of calls */
static int filtered_with; /* an errno */

static void try_each_filter(void (*fn)(void))
{
    static const int errors[] = {EPERM, ENOSYS};

    for (filtered = 0; filtered < sizeof(calls) / sizeof(calls[0]); filtered++) {
        for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
            filtered_with = errors[i];
            if (!child_survives(fn))
                fail_msg("with %s refused by errno %d", calls[filtered].name, filtered_with);
        }
    }
}

static void serve_on_epoll(void)
{
    struct echo_service service = {0};
    weir_group *group = NULL;
    weir_server *server;
    int peer;

    log_capture_start();
    seccomp_refuse(calls[filtered].number, filtered_with);
    assert_int_equal(weir_group_create(WEIR_GROUP_OPTIONS(.threads = 2), &group), 0);
    assert_int_equal(weir_loop_io(weir_group_at(group, 0)), WEIR_IO_EPOLL);
    assert_int_equal(log_capture_count(WEIR_LOG_WARN), 1);
    assert_log_contains(calls[filtered].name);
    server = echo_service_start(&service, WEIR_SERVER_OPTIONS(.boss = group));
    peer = raw_client_connect(server);
    raw_client_echo(peer, "x");
    raw_client_close(peer);
    echo_service_stop(server);
    weir_group_release(group);
    global_executor_stop(); /* a child's _exit does not wait for its thread, and TSan reports that
                             */
}

static void be_refused(void)
{
    weir_group *group = NULL;

    log_capture_start();
    seccomp_refuse(calls[filtered].number, filtered_with);
    assert_int_equal(weir_group_create(WEIR_GROUP_OPTIONS(.io = WEIR_IO_URING), &group),
                     -filtered_with);
    assert_int_equal(log_capture_count(WEIR_LOG_ERROR), 1);
    assert_log_contains(calls[filtered].name);
}

#ifdef WEIR_WITH_URING
TEST(seccomp, leaves_a_server_that_falls_back_to_epoll)
{
    try_each_filter(serve_on_epoll);
}

TEST(seccomp, makes_io_uring_fail_with_the_reason)
{
    try_each_filter(be_refused);
}
#endif
