/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signals as events, on a loop of each backend. The signals are sent to the whole process, whose
 * other threads belong to weir and block all signals.
 */
#include <weir/watch.h>

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <weir/error.h>

#include "os/system.h"
#include "os/thread.h"
#include "support/executor/call_counter.h"
#include "support/executor/gate.h"
#include "support/executor/group.h"
#include "support/executor/log_capture.h"
#include "support/executor/run_on_thread.h"
#include "support/loop/host.h"
#include "support/memory.h"

#define HEARD_MAX 128

struct heard {
    struct call_counter received;
    struct call_counter closed;
    _Atomic int err;
    weir_signal signals[HEARD_MAX];
    weir_executor *where;
    bool release; /* at the first one */
};

static void on_signal(weir_signals *signals, const weir_signal *signal, void *user_data)
{
    struct heard *heard = user_data;
    uint32_t count = heard->received.calls;

    if (count < HEARD_MAX)
        heard->signals[count] = *signal;
    heard->where = weir_executor_current();
    if (heard->release && count == 0)
        weir_signals_release(signals);
    call_counter_add(&heard->received);
}

static void on_closed(weir_signals *signals, int err, void *user_data)
{
    struct heard *heard = user_data;

    (void)signals;
    atomic_store(&heard->err, err);
    call_counter_add(&heard->closed);
}

#define HEARD(heard) .received = on_signal, .closed = on_closed, .user_data = (heard)

static weir_signals *create_signals(weir_executor *loop, const weir_signals_options *options)
{
    weir_signals *signals = NULL;

    assert_int_equal(weir_signals_create(loop, options, &signals), 0);
    return signals;
}

static void stop_hearing(weir_signals *signals, struct heard *heard)
{
    weir_signals_release(signals);
    assert_true(call_counter_await(&heard->closed, 1));
    assert_int_equal(heard->err, 0);
}

static void send_signal(int number)
{
    assert_int_equal(kill(getpid(), number), 0);
}

static bool is_blocked(int number)
{
    sigset_t blocked;

    assert_int_equal(pthread_sigmask(SIG_BLOCK, NULL, &blocked), 0);
    return sigismember(&blocked, number) == 1;
}

static void block(int how, int number)
{
    sigset_t signals;

    sigemptyset(&signals);
    sigaddset(&signals, number);
    assert_int_equal(pthread_sigmask(how, &signals, NULL), 0);
}

/* Takes a pending signal, if there is one. */
static bool take_signal(int number)
{
    const struct timespec none = {0};
    sigset_t signals;

    sigemptyset(&signals);
    sigaddset(&signals, number);
    return sigtimedwait(&signals, NULL, &none) == number;
}

/* ---- delivery ---- */

TEST_EACH_LOOP(signals, are_delivered_on_the_loop)
{
    struct heard heard = {0};
    weir_signals *signals =
        create_signals(host->loop, WEIR_SIGNALS_OPTIONS(.numbers = {SIGUSR1}, HEARD(&heard)));

    for (uint32_t i = 1; i <= 3; i++) {
        send_signal(SIGUSR1);
        assert_true(call_counter_await(&heard.received, i));
    }
    assert_int_equal(heard.signals[0].number, SIGUSR1);
    assert_int_equal(heard.signals[0].code, SI_USER);
    assert_int_equal(heard.signals[0].pid, getpid());
    assert_int_equal(heard.signals[0].uid, getuid());
    assert_ptr_equal(heard.where, host->loop);
    stop_hearing(signals, &heard);
}

TEST_EACH_LOOP(signals, of_several_kinds_are_delivered_together)
{
    struct heard heard = {0}, other = {0};
    weir_signals *signals = create_signals(
        host->loop, WEIR_SIGNALS_OPTIONS(.numbers = {SIGUSR1, SIGUSR2, SIGUSR1}, HEARD(&heard)));
    weir_signals *others =
        create_signals(host->loop, WEIR_SIGNALS_OPTIONS(.numbers = {SIGHUP}, HEARD(&other)));

    send_signal(SIGUSR1);
    send_signal(SIGUSR2);
    send_signal(SIGHUP);
    assert_true(call_counter_await(&heard.received, 2));
    assert_true(call_counter_await(&other.received, 1));
    assert_int_equal(heard.signals[0].number + heard.signals[1].number, SIGUSR1 + SIGUSR2);
    assert_int_equal(other.signals[0].number, SIGHUP);
    stop_hearing(signals, &heard);
    stop_hearing(others, &other);
}

TEST_EACH_LOOP(signals, already_pending_are_delivered)
{
    struct heard heard = {0};
    weir_signals *signals;

    block(SIG_BLOCK, SIGUSR1);
    send_signal(SIGUSR1);
    signals = create_signals(host->loop, WEIR_SIGNALS_OPTIONS(.numbers = {SIGUSR1}, HEARD(&heard)));
    assert_true(call_counter_await(&heard.received, 1));
    stop_hearing(signals, &heard);
    block(SIG_UNBLOCK, SIGUSR1);
}

/* More than are delivered in a turn. */
TEST_EACH_LOOP(signals, that_queue_are_delivered_one_by_one_in_order)
{
    struct heard heard = {0};
    struct gate gate = {0};
    weir_signals *signals =
        create_signals(host->loop, WEIR_SIGNALS_OPTIONS(.numbers = {SIGRTMIN}, HEARD(&heard)));

    assert_int_equal(weir_execute(host->loop, gate_task, &gate), 0);
    for (int i = 0; i < 100; i++)
        assert_int_equal(sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = i}), 0);
    gate_open(&gate);
    assert_true(call_counter_await(&heard.received, 100));
    for (int i = 0; i < 100; i++) {
        assert_int_equal(heard.signals[i].code, SI_QUEUE);
        assert_int_equal((int)heard.signals[i].value, i);
    }
    stop_hearing(signals, &heard);
}

TEST_EACH_LOOP(signals, report_a_child)
{
    struct heard heard = {0};
    weir_signals *signals =
        create_signals(host->loop, WEIR_SIGNALS_OPTIONS(.numbers = {SIGCHLD}, HEARD(&heard)));
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0)
        _exit(7);
    assert_true(call_counter_await(&heard.received, 1));
    assert_int_equal(heard.signals[0].pid, child);
    assert_int_equal(heard.signals[0].code, CLD_EXITED);
    assert_int_equal(heard.signals[0].status, 7);
    assert_int_equal(waitpid(child, NULL, 0), child);
    stop_hearing(signals, &heard);
}

/* ---- what is refused ---- */

static int try_to_hear(weir_executor *loop, const weir_signals_options *options)
{
    weir_signals *signals = (weir_signals *)&signals;
    int err = weir_signals_create(loop, options, &signals);

    assert_ptr_equal(signals, &signals); /* written only on success */
    return err;
}

TEST_EACH_LOOP(signals, that_make_no_sense_are_refused)
{
    assert_int_equal(try_to_hear(host->loop, NULL), -EINVAL);
    assert_int_equal(try_to_hear(host->loop, WEIR_SIGNALS_OPTIONS(.received = on_signal)), -EINVAL);
    assert_int_equal(try_to_hear(host->loop, WEIR_SIGNALS_OPTIONS(.numbers = {SIGUSR1})), -EINVAL);
    assert_int_equal(try_to_hear(host->loop, WEIR_SIGNALS_OPTIONS(.numbers = {SIGUSR1, SIGKILL},
                                                                  .received = on_signal)),
                     -EINVAL);
    assert_int_equal(try_to_hear(weir_executor_global(),
                                 WEIR_SIGNALS_OPTIONS(.numbers = {SIGUSR1}, .received = on_signal)),
                     -EINVAL);
    assert_int_equal(
        try_to_hear(NULL, WEIR_SIGNALS_OPTIONS(.numbers = {SIGUSR1}, .received = on_signal)),
        -EINVAL);
    assert_false(is_blocked(SIGUSR1));
    weir_signals_release(NULL);
}

TEST_EACH_LOOP(signals, belong_to_one_receiver_at_a_time)
{
    struct heard heard = {0}, next = {0};
    weir_signals *signals = create_signals(
        host->loop, WEIR_SIGNALS_OPTIONS(.numbers = {SIGUSR1, SIGUSR2}, HEARD(&heard)));

    assert_int_equal(
        try_to_hear(host->loop, WEIR_SIGNALS_OPTIONS(.numbers = {SIGHUP, SIGUSR2}, HEARD(&next))),
        -EBUSY);
    assert_false(is_blocked(SIGHUP));
    weir_signals_release(signals);
    signals = create_signals(host->loop,
                             WEIR_SIGNALS_OPTIONS(.numbers = {SIGHUP, SIGUSR2}, HEARD(&next)));
    send_signal(SIGUSR2);
    assert_true(call_counter_await(&next.received, 1));
    stop_hearing(signals, &next);
    assert_true(call_counter_await(&heard.closed, 1));
    assert_int_equal(heard.received.calls, 0);
}

/* ---- the mask ---- */

TEST_EACH_LOOP(signals, are_blocked_until_released)
{
    struct heard heard = {0};
    weir_signals *signals;

    block(SIG_BLOCK, SIGUSR2);
    signals = create_signals(host->loop,
                             WEIR_SIGNALS_OPTIONS(.numbers = {SIGUSR1, SIGUSR2}, HEARD(&heard)));
    assert_true(is_blocked(SIGUSR1) && is_blocked(SIGUSR2));
    weir_signals_release(signals);
    assert_false(is_blocked(SIGUSR1));
    assert_true(is_blocked(SIGUSR2)); /* as it was before */
    assert_true(call_counter_await(&heard.closed, 1));
    block(SIG_UNBLOCK, SIGUSR2);
}

static void release_here(void *arg)
{
    weir_signals_release(arg);
}

TEST_EACH_LOOP(signals, stay_blocked_when_another_thread_ends_it)
{
    struct heard heard = {0};
    weir_signals *signals =
        create_signals(host->loop, WEIR_SIGNALS_OPTIONS(.numbers = {SIGUSR1}, HEARD(&heard)));

    run_on_other_thread(release_here, signals);
    assert_true(call_counter_await(&heard.closed, 1));
    assert_true(is_blocked(SIGUSR1));
    send_signal(SIGUSR1);
    assert_true(take_signal(SIGUSR1)); /* nobody else has read it */
    block(SIG_UNBLOCK, SIGUSR1);
}

TEST_EACH_LOOP(signals, that_were_not_delivered_stay_in_the_kernel)
{
    struct heard heard = {.release = true};
    struct gate gate = {0};

    (void)create_signals(host->loop, WEIR_SIGNALS_OPTIONS(.numbers = {SIGRTMIN}, HEARD(&heard)));
    gate_hold(&gate, host->loop);
    for (int i = 0; i < 3; i++)
        assert_int_equal(sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = i}), 0);
    gate_open(&gate);
    assert_true(call_counter_await(&heard.closed, 1));
    assert_int_equal(heard.received.calls, 1);
    assert_true(take_signal(SIGRTMIN));
    assert_true(take_signal(SIGRTMIN));
    assert_false(take_signal(SIGRTMIN));
    block(SIG_UNBLOCK, SIGRTMIN);
}

/* ---- the loop's end ---- */

static void on_signal_shut_down(weir_signals *signals, const weir_signal *signal, void *user_data)
{
    struct host *host = user_data;

    (void)signals;
    (void)signal;
    (void)weir_group_shutdown(host->group, 0, TEST_TIMEOUT_NS);
}

TEST_EACH_LOOP(signals, may_shut_their_loop_down)
{
    weir_signals *signals = create_signals(
        host->loop, WEIR_SIGNALS_OPTIONS(.numbers = {SIGTERM}, .received = on_signal_shut_down,
                                         .user_data = host));

    send_signal(SIGTERM);
    assert_int_equal(weir_group_await_termination(host->group, TEST_TIMEOUT_NS), 0);
    weir_signals_release(signals);
    assert_false(is_blocked(SIGTERM));
}

TEST_EACH_LOOP(signals, are_free_when_their_loop_has_ended)
{
    struct heard heard = {0}, next = {0};
    weir_signals *signals =
        create_signals(host->loop, WEIR_SIGNALS_OPTIONS(.numbers = {SIGUSR1}, HEARD(&heard)));
    weir_signals *successor;
    struct host other;

    host_end(host);
    assert_true(call_counter_await(&heard.closed, 1));
    assert_int_equal(heard.err, WEIR_ECANCELED);
    host_open(&other, BACKEND_EPOLL);
    successor =
        create_signals(other.loop, WEIR_SIGNALS_OPTIONS(.numbers = {SIGUSR1}, HEARD(&next)));
    weir_signals_release(signals);
    assert_true(is_blocked(SIGUSR1)); /* the successor needs it */
    send_signal(SIGUSR1);
    assert_true(call_counter_await(&next.received, 1));
    stop_hearing(successor, &next);
    host_close(&other);
    block(SIG_UNBLOCK, SIGUSR1);
}

TEST_EACH_LOOP(signals, are_refused_by_a_loop_that_has_ended)
{
    struct heard heard = {0};

    host_end(host);
    assert_int_equal(
        try_to_hear(host->loop, WEIR_SIGNALS_OPTIONS(.numbers = {SIGUSR1}, HEARD(&heard))),
        WEIR_EREJECTED);
    assert_false(is_blocked(SIGUSR1));
}

/* ---- failures ---- */

TEST_EACH_LOOP(signals, leave_nothing_when_there_is_no_memory)
{
    log_capture_start();
    for (unsigned n = 1;; n++) {
        struct heard heard = {0};
        weir_signals *signals = NULL;
        bool failed;
        int err;

        host_turn(host, 1);
        test_memory_fail_at(n);
        err = weir_signals_create(
            host->loop, WEIR_SIGNALS_OPTIONS(.numbers = {SIGUSR1}, HEARD(&heard)), &signals);
        if (err == 0) {
            weir_signals_release(signals);
            assert_true(call_counter_await(&heard.closed, 1));
            err = heard.err;
        }
        failed = test_memory_failed();
        test_memory_fail_at(0);
        assert_false(is_blocked(SIGUSR1));
        if (!failed)
            break;
        assert_true(err == -ENOMEM || err == 0); /* released before the loop asked for it */
        assert_true(n < 100);
    }
}

static int no_signalfd(int descriptor, const sigset_t *mask, int flags)
{
    (void)descriptor;
    (void)mask;
    (void)flags;
    errno = EMFILE;
    return -1;
}

TEST_EACH_LOOP(signals, leave_nothing_when_there_is_no_descriptor)
{
    struct heard heard = {0};

    weir__sys.signalfd = no_signalfd;
    for (int i = 0; i < 2; i++)
        assert_int_equal(
            try_to_hear(host->loop, WEIR_SIGNALS_OPTIONS(.numbers = {SIGUSR1}, HEARD(&heard))),
            -EMFILE);
    weir__sys.signalfd = signalfd;
    assert_false(is_blocked(SIGUSR1));
}

/* `received` may be called, and release the signals, before weir_signals_create returns. */
TEST_EACH_LOOP(signals, may_be_released_before_they_are_returned)
{
    for (int i = 0; i < 50; i++) {
        struct heard heard = {.release = true};

        block(SIG_BLOCK, SIGUSR1);
        send_signal(SIGUSR1);
        (void)create_signals(host->loop, WEIR_SIGNALS_OPTIONS(.numbers = {SIGUSR1}, HEARD(&heard)));
        assert_true(call_counter_await(&heard.closed, 1));
        assert_int_equal(heard.received.calls, 1);
        block(SIG_UNBLOCK, SIGUSR1);
    }
}
