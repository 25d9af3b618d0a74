/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process that is stopped by SIGSTOP in the middle of a turn, for longer than the threshold: not
 * a block.
 *
 * The child is forked before this program has started a thread. Its loop computes in short turns
 * all the time, so that the signal stops one of them.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <weir/group.h>
#include <weir/watchdog.h>

#include "os/clock.h"
#include "support/test.h"

#define THRESHOLD_NS weir_ms(200)
#define TURN_NS weir_ms(20)
#define STOP_MS 300
#define TURNS_AFTER 8

struct child {
    weir_executor *loop;
    int begun[2];
    int stopped[2];
    _Atomic unsigned turns_left; /* after the stop */
};

/* True if the parent has continued the process. */
static bool has_been_stopped(const struct child *child)
{
    char byte;

    return read(child->stopped[0], &byte, 1) == 1;
}

static void compute(void *arg, int status)
{
    int64_t end_ns = weir__monotonic_now() + TURN_NS;
    struct child *child = arg;

    while (weir__monotonic_now() < end_ns)
        ;
    if (atomic_load(&child->turns_left) > TURNS_AFTER && has_been_stopped(child))
        atomic_store(&child->turns_left, TURNS_AFTER);
    else if (atomic_load(&child->turns_left) <= TURNS_AFTER)
        atomic_fetch_sub(&child->turns_left, 1);
    if (status < 0 || atomic_load(&child->turns_left) == 0 ||
        weir_execute(child->loop, compute, child) < 0)
        atomic_store(&child->turns_left, 0);
}

/* Returns the exit code: 0 = no block was reported. */
static int run_child(struct child *child)
{
    struct timespec pause = {.tv_nsec = 5000000};
    weir_watchdog_stats stats;
    weir_group *group;

    if (weir_group_create(WEIR_GROUP_OPTIONS(.threads = 1), &group) < 0 ||
        weir_watchdog_start(WEIR_WATCHDOG_OPTIONS(.threshold_ns = THRESHOLD_NS)) < 0)
        return 2;
    child->loop = weir_group_at(group, 0);
    atomic_store(&child->turns_left, TURNS_AFTER + 1);
    if (weir_execute(child->loop, compute, child) < 0 || write(child->begun[1], "x", 1) != 1)
        return 3;
    while (atomic_load(&child->turns_left) > 0)
        (void)nanosleep(&pause, NULL);
    weir_watchdog_stop();
    weir_watchdog_read_stats(&stats);
    return stats.blocks == 0 ? 0 : 1;
}

static void await_status(pid_t pid, int options, int *ret_status)
{
    assert_int_equal(waitpid(pid, ret_status, options), pid);
}

TEST(stopped_process, is_not_reported)
{
    struct timespec stop = {.tv_nsec = STOP_MS * 1000000L};
    struct child child = {0};
    int status;
    pid_t pid;
    char byte;

    assert_int_equal(pipe(child.begun), 0);
    assert_int_equal(pipe2(child.stopped, O_NONBLOCK), 0);
    pid = fork();
    if (pid == 0)
        _exit(run_child(&child));
    assert_true(pid > 0);
    assert_int_equal(read(child.begun[0], &byte, 1), 1);
    assert_int_equal(kill(pid, SIGSTOP), 0);
    await_status(pid, WUNTRACED, &status);
    assert_true(WIFSTOPPED(status));
    (void)nanosleep(&stop, NULL);
    assert_int_equal(kill(pid, SIGCONT), 0);
    assert_int_equal(write(child.stopped[1], "x", 1), 1);
    await_status(pid, 0, &status);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    for (int i = 0; i < 2; i++) {
        (void)close(child.begun[i]);
        (void)close(child.stopped[i]);
    }
}
