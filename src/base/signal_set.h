/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sets of signals that one can calculate with, and the calling thread's mask of blocked ones.
 */
#ifndef WEIR_BASE_SIGNAL_SET_H
#define WEIR_BASE_SIGNAL_SET_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

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

#endif
