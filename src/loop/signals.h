/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Claims on signals: each signal has one receiver in the process at most, a weir_signals or a
 * thread that waits for it.
 */
#ifndef WEIR_LOOP_SIGNALS_H
#define WEIR_LOOP_SIGNALS_H

#include "os/signal_set.h"

/* Claims all signals of the set. Any thread. Fails with -EBUSY if one of them has a receiver. */
int weir__signals_claim(weir__signal_set set);
void weir__signals_unclaim(weir__signal_set set);

/* Unblocks those signals of the set in the calling thread that nobody has claimed. */
void weir__signals_unblock(weir__signal_set set);

#endif
