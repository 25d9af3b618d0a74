/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interrupts the thread of a blocked loop by a signal, to take a snapshot of what it does.
 */
#ifndef WEIR_WATCHDOG_INTERRUPT_H
#define WEIR_WATCHDOG_INTERRUPT_H

#include <weir/executor.h>

#include "watchdog/snapshot.h"

/* Installs the handler of the signal. Fails: -EBUSY (the program handles it), -EINVAL. */
int weir__interrupt_open(int signal);

/* Restores the disposition of the signal, unless the program has changed it; none is pending then.
 */
void weir__interrupt_close(void);

/*
 * Interrupts the thread of a loop, which the caller has a reference to, if it is still in the turn
 * that follows `turns` others. Returns NULL if the thread does not answer in time. The snapshot is
 * valid until the next call; it is empty if the turn has ended. One thread at a time.
 */
const weir__snapshot *weir__interrupt_take(weir_executor *loop, uint64_t turns);

#endif
