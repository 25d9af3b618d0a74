/* SPDX-License-Identifier: Apache-2.0 */
/* Installing a signal handler beside those of the program. */
#include "os/signal_handler.h"

#include <errno.h>

#include "os/thread.h"
#include "support/test.h"

#define SIGNAL (SIGRTMIN + 3)

static volatile sig_atomic_t calls, program_calls;

static void on_signal(int number, siginfo_t *info, void *context)
{
    (void)info;
    (void)context;
    calls += number == SIGNAL;
}

static void on_program_signal(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)info;
    (void)context;
    program_calls++;
}

static void set_program_handler(void)
{
    struct sigaction action = {.sa_sigaction = on_program_signal, .sa_flags = SA_SIGINFO};

    assert_int_equal(sigaction(SIGNAL, &action, NULL), 0);
}

static void set_disposition(void (*fn)(int number))
{
    struct sigaction action = {.sa_handler = fn};

    assert_int_equal(sigaction(SIGNAL, &action, NULL), 0);
}

static bool has_disposition(void (*fn)(int number))
{
    struct sigaction action;

    assert_int_equal(sigaction(SIGNAL, NULL, &action), 0);
    return action.sa_handler == fn;
}

TEST(signal_handler, is_called_until_it_is_removed)
{
    weir__signal_handler handler;

    calls = 0;
    set_disposition(SIG_IGN);
    assert_int_equal(weir__signal_handler_install(&handler, SIGNAL, on_signal), 0);
    assert_true(weir__signal_handler_is_installed(&handler));
    assert_int_equal(raise(SIGNAL), 0);
    assert_int_equal(calls, 1);
    weir__signal_handler_remove(&handler);
    assert_false(weir__signal_handler_is_installed(&handler));
    assert_true(has_disposition(SIG_IGN));
    set_disposition(SIG_DFL);
}

/* A pending signal would end the process when it is unblocked. */
TEST(signal_handler, discards_pending_signals_when_it_is_removed)
{
    weir__signal_handler handler;

    calls = 0;
    assert_int_equal(weir__signal_handler_install(&handler, SIGNAL, on_signal), 0);
    weir__thread_block_signal(SIGNAL, true);
    assert_int_equal(weir__thread_signal(weir__thread_id(), SIGNAL), 0);
    weir__signal_handler_remove(&handler);
    assert_true(has_disposition(SIG_DFL));
    weir__thread_block_signal(SIGNAL, false);
    assert_int_equal(calls, 0);
}

TEST(signal_handler, does_not_replace_that_of_the_program)
{
    weir__signal_handler handler;

    program_calls = 0;
    set_program_handler();
    assert_int_equal(weir__signal_handler_install(&handler, SIGNAL, on_signal), -EBUSY);
    assert_int_equal(raise(SIGNAL), 0);
    assert_int_equal(program_calls, 1);
    set_disposition(SIG_DFL);
}

TEST(signal_handler, leaves_a_later_one_of_the_program)
{
    weir__signal_handler handler;

    program_calls = 0;
    assert_int_equal(weir__signal_handler_install(&handler, SIGNAL, on_signal), 0);
    set_program_handler();
    assert_false(weir__signal_handler_is_installed(&handler));
    weir__signal_handler_remove(&handler);
    assert_int_equal(raise(SIGNAL), 0);
    assert_int_equal(program_calls, 1);
    set_disposition(SIG_DFL);
}

TEST(signal_handler, needs_a_signal_that_can_be_handled)
{
    weir__signal_handler handler;

    assert_int_equal(weir__signal_handler_install(&handler, SIGKILL, on_signal), -EINVAL);
    assert_int_equal(weir__signal_handler_install(&handler, 0, on_signal), -EINVAL);
}
