/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sets of signals, and the signal mask of a thread.
 */
#include "os/signal_set.h"

#include <errno.h>
#include <stdbool.h>
#include <unistd.h>

#include "support/test.h"

static weir__signal_set set_of(int first, int second)
{
    weir__signal_set set = 0;

    assert_int_equal(weir__signal_set_add(&set, first), 0);
    assert_int_equal(weir__signal_set_add(&set, second), 0);
    return set;
}

static bool is_blocked(int number)
{
    sigset_t blocked;

    assert_int_equal(pthread_sigmask(SIG_BLOCK, NULL, &blocked), 0);
    return sigismember(&blocked, number) == 1;
}

TEST(signal_set, holds_what_was_added)
{
    weir__signal_set set = set_of(SIGHUP, SIGRTMAX);
    sigset_t signals;

    weir__signal_set_expand(set, &signals);
    for (int number = 1; number <= SIGRTMAX; number++)
        assert_int_equal(sigismember(&signals, number) == 1,
                         number == SIGHUP || number == SIGRTMAX);
}

TEST(signal_set, rejects_signals_that_cannot_be_blocked)
{
    static const int refused[] = {SIGKILL, SIGSTOP, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP,
                                  SIGSYS,  0,       -1,      32,     65,     1000};
    weir__signal_set set = 0;

    for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++)
        assert_int_equal(weir__signal_set_add(&set, refused[i]), -EINVAL);
    assert_int_equal(set, 0);
}

TEST(signal_set, knows_which_it_has_blocked)
{
    weir__signal_set both = set_of(SIGUSR1, SIGUSR2), first = 0, second = 0;

    assert_int_equal(weir__signal_set_add(&first, SIGUSR1), 0);
    assert_int_equal(weir__signal_set_add(&second, SIGUSR2), 0);
    assert_int_equal(weir__signal_set_block(first), first);
    assert_true(is_blocked(SIGUSR1) && !is_blocked(SIGUSR2));
    assert_int_equal(weir__signal_set_block(both), second);
    assert_true(is_blocked(SIGUSR1) && is_blocked(SIGUSR2));
    weir__signal_set_unblock(both);
    assert_false(is_blocked(SIGUSR1) || is_blocked(SIGUSR2));
}

/* ---- waiting ---- */

struct waiting {
    weir__signal_set set;
    weir__signal_event event;
    int result;
};

static void wait_once(void *arg)
{
    struct waiting *waiting = arg;

    waiting->result = weir__signal_wait(waiting->set, &waiting->event);
}

TEST(signal_set, is_waited_for_by_the_thread_that_a_signal_is_directed_at)
{
    struct waiting waiting = {.set = set_of(SIGUSR1, SIGUSR2), .result = -1};
    weir__thread thread;

    assert_int_equal(weir__thread_start("waiting", wait_once, &waiting, &thread), 0);
    weir__signal_send_to_thread(waiting.set, &thread);
    weir__thread_join(&thread);
    assert_int_equal(waiting.result, 0);
    assert_int_equal(waiting.event.number, SIGUSR1);
    assert_true(waiting.event.is_own);
}

TEST(signal_set, is_waited_for_also_if_the_signal_came_before)
{
    struct waiting waiting = {.set = set_of(SIGUSR2, SIGHUP), .result = -1};

    (void)weir__signal_set_block(waiting.set);
    assert_int_equal(kill(getpid(), SIGUSR2), 0);
    wait_once(&waiting);
    weir__signal_set_unblock(waiting.set);
    assert_int_equal(waiting.result, 0);
    assert_int_equal(waiting.event.number, SIGUSR2);
}

TEST(signal_set, that_is_empty_is_not_waited_for)
{
    struct waiting waiting = {.set = 0};

    wait_once(&waiting);
    assert_int_equal(waiting.result, -EINVAL);
}
