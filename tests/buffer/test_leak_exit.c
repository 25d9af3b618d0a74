/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leaks at the end of a process: what the log of a child process says. No test of this program may
 * watch a message itself, or the check at exit would be the parent's.
 */
#include <weir/pool.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/buf.h>

#include "buffer/leak_record.h"
#include "os/thread.h"
#include "support/child.h"
#include "support/test.h"

static weir_buf *made;
static int never_written[2];

static void make(void *arg)
{
    (void)arg;
    if (weir_buf_create(500, 0, &made) < 0)
        abort();
}

static void make_on_thread(void)
{
    weir__thread thread;

    (void)weir_leak_set_level(WEIR_LEAK_PARANOID);
    if (weir__thread_start("worker-1", make, NULL, &thread) < 0)
        abort();
    weir__thread_join(&thread);
}

static void forget(void)
{
    make_on_thread();
    exit(0);
}

/* The creator has ended, and the main thread has the message and releases it later. */
static void hold(void)
{
    make_on_thread();
    weir_buf_release(made);
    exit(0);
}

static void make_and_wait(void *arg)
{
    char byte;

    make(arg);
    if (read(never_written[0], &byte, 1) >= 0)
        abort();
}

/* A thread that runs at exit may have got the message, without having touched it. */
static void exit_beside_a_thread(void)
{
    static weir__thread thread;

    make_on_thread();
    if (pipe(never_written) < 0 || weir__thread_start("holder", make_and_wait, NULL, &thread) < 0)
        abort();
    while (!weir__leak_others_run())
        weir__thread_yield();
    exit(0);
}

static void forget_in_a_child_of_the_child(void)
{
    make_on_thread();
    if (fork() == 0)
        exit(0);
    _exit(0);
}

static bool says_leak(void (*fn)(void))
{
    char output[8192];

    child_output(fn, output, sizeof(output));
    return strstr(output, "weir WARN  leak buf: ") != NULL &&
           strstr(output, "last seen on worker-1") != NULL;
}

TEST(leak_exit, reports_a_message_of_a_thread_that_has_ended)
{
    assert_true(says_leak(forget));
}

TEST(leak_exit, reports_no_message_that_another_thread_has_released)
{
    assert_false(says_leak(hold));
}

TEST(leak_exit, reports_nothing_while_a_thread_runs_that_may_have_it)
{
    assert_false(says_leak(exit_beside_a_thread));
}

TEST(leak_exit, reports_nothing_in_a_fork)
{
    assert_false(says_leak(forget_in_a_child_of_the_child));
}
