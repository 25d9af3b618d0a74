/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts a signal. Its handler does not restart what it interrupts.
 */
#ifndef WEIR_TEST_SIGNALS_H
#define WEIR_TEST_SIGNALS_H

/* From now until the end of the program, beginning with none. */
void signals_count(int number);

/* How many have come, of whichever signal was counted last. */
int signals_counted(void);

#endif
