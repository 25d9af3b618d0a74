/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Implementation of os/signal_set.h.
 */
#include "os/signal_set.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <unistd.h>

#include "os/virtual_os.h"

#define SIGNALS_MAX 64

static weir__signal_set set_of(int number)
{
    return UINT64_C(1) << (number - 1);
}

/* libc reserves some numbers for itself and rejects them. */
static bool is_signal(int number)
{
    sigset_t signals;

    sigemptyset(&signals);
    return number >= 1 && number <= SIGNALS_MAX && sigaddset(&signals, number) == 0;
}

static bool can_be_blocked(int number)
{
    switch (number) {
    case SIGKILL:
    case SIGSTOP:
    case SIGSEGV:
    case SIGBUS:
    case SIGFPE:
    case SIGILL:
    case SIGTRAP:
    case SIGSYS:
        return false;
    default:
        return true;
    }
}

int weir__signal_set_add(weir__signal_set *set, int number)
{
    if (!is_signal(number) || !can_be_blocked(number))
        return -EINVAL;
    *set |= set_of(number);
    return 0;
}

bool weir__signal_is_default(int number)
{
    struct sigaction action;

    if (weir__os_is_virtual())
        return true;
    return sigaction(number, NULL, &action) == 0 && (action.sa_flags & SA_SIGINFO) == 0 &&
           action.sa_handler == SIG_DFL;
}

void weir__signal_set_expand(weir__signal_set set, sigset_t *ret_signals)
{
    sigemptyset(ret_signals);
    for (int number = 1; number <= SIGNALS_MAX; number++)
        if ((set & set_of(number)) != 0)
            (void)sigaddset(ret_signals, number); /* sigaddset accepted it before */
}

static weir__signal_set change_mask(int how, weir__signal_set set)
{
    sigset_t signals, before;
    weir__signal_set blocked = 0;

    if (weir__os_is_virtual())
        return set; /* a virtual process has no handlers, and waits for all signals */
    weir__signal_set_expand(set, &signals);
    (void)pthread_sigmask(how, &signals, &before); /* fails only for an invalid `how` */
    for (int number = 1; number <= SIGNALS_MAX; number++)
        if (sigismember(&before, number) == 1)
            blocked |= set_of(number);
    return blocked;
}

weir__signal_set weir__signal_set_block(weir__signal_set set)
{
    return set & ~change_mask(SIG_BLOCK, set);
}

void weir__signal_set_unblock(weir__signal_set set)
{
    (void)change_mask(SIG_UNBLOCK, set);
}

int weir__signal_wait(weir__signal_set set, weir__signal_event *ret_event)
{
    sigset_t signals;
    siginfo_t info;
    int number;

    if (set == 0)
        return -EINVAL;
    if (weir__os_is_virtual())
        return weir__virtual_os_set->signal_wait(set, &ret_event->number, &ret_event->is_own);
    weir__signal_set_expand(set, &signals);
    do {
        number = sigwaitinfo(&signals, &info);
    } while (number < 0 && errno == EINTR); /* by another signal that has a handler */
    if (number < 0)
        return -errno;
    ret_event->number = number;
    /* glibc replaces SI_TKILL by SI_USER, musl does not. */
    ret_event->is_own =
        (info.si_code == SI_USER || info.si_code == SI_TKILL) && info.si_pid == getpid();
    return 0;
}

void weir__signal_send_to_thread(weir__signal_set set, const weir__thread *thread)
{
    int number = 1;

    while (number < SIGNALS_MAX && (set & set_of(number)) == 0)
        number++;
    if (weir__os_is_virtual())
        weir__virtual_os_set->signal_thread(number, thread->virtual_handle);
    else
        (void)pthread_kill(thread->handle, number);
}
