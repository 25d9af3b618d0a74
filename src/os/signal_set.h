/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sets of signals that one can calculate with, and the calling thread's mask of blocked ones.
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
 * Adds a signal that a thread can do without. Fails with -EINVAL if there is none of this number,
 * it cannot be blocked, or it tells of a fault of the thread itself, which then cannot go on.
 */
int weir__signal_set_add(weir__signal_set *set, int number);

/* Whether nobody has said what is to be done when it comes. */
bool weir__signal_is_default(int number);

/* As the system knows it. */
void weir__signal_set_expand(weir__signal_set set, sigset_t *ret_signals);

/* Blocks signals in the calling thread; returns those of them that were not blocked before. */
weir__signal_set weir__signal_set_block(weir__signal_set set);
void weir__signal_set_unblock(weir__signal_set set);

typedef struct weir__signal_event {
    int number;
    bool is_own; /* this process has sent it, by kill(2) or weir__signal_send_to_thread */
} weir__signal_event;

/* Waits for a signal of the set, whose signals the calling thread has blocked. One that is directed
 * at the thread comes before others. Fails with -EINVAL if the set is empty. */
int weir__signal_wait(weir__signal_set set, weir__signal_event *ret_event);

/* Sends a signal of the set to one thread that runs, and to no other. */
void weir__signal_send_to_thread(weir__signal_set set, const weir__thread *thread);

#endif
