/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Claims on signals: each signal has at most one receiver in the process, a weir_signals or a
 * thread that waits for it.
 */
#ifndef WEIR_LOOP_SIGNALS_H
#define WEIR_LOOP_SIGNALS_H

#include "os/signal_set.h"

/* Claims all signals of the set. Any thread. Fails with -EBUSY if one of them has a receiver. */
int weir__signals_claim(weir__signal_set set);
void weir__signals_unclaim(weir__signal_set set);

/* Unblocks the signals of the set that are not claimed, in the calling thread. */
void weir__signals_unblock(weir__signal_set set);

#endif
