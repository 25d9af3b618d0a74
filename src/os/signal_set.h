/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sets of signals as bit masks, and the signal mask of the calling thread.
 */
#ifndef WEIR_OS_SIGNAL_SET_H
#define WEIR_OS_SIGNAL_SET_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "os/thread.h"

/* Signal n is bit n - 1. */
typedef uint64_t weir__signal_set;

/*
 * Adds a signal. Fails with -EINVAL if the number is invalid, or the signal cannot be blocked or
 * reports a fault of the thread itself, such as SIGSEGV.
 */
int weir__signal_set_add(weir__signal_set *set, int number);

/* True if the signal has its default disposition. */
bool weir__signal_is_default(int number);

/* Converts to a sigset_t. */
void weir__signal_set_expand(weir__signal_set set, sigset_t *ret_signals);

/* Blocks signals in the calling thread; returns those that were not blocked before. */
weir__signal_set weir__signal_set_block(weir__signal_set set);
void weir__signal_set_unblock(weir__signal_set set);

typedef struct weir__signal_event {
    int number;
    bool is_own; /* sent by this process, by kill(2) or weir__signal_send_to_thread */
} weir__signal_event;

/* Waits for a signal of the set, all of which the calling thread has blocked. Signals directed at
 * the thread come first. Fails with -EINVAL if the set is empty. */
int weir__signal_wait(weir__signal_set set, weir__signal_event *ret_event);

/* Sends a signal of the set to a running thread. */
void weir__signal_send_to_thread(weir__signal_set set, const weir__thread *thread);

#endif
