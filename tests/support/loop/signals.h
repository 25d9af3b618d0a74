/* SPDX-License-Identifier: Apache-2.0 */
/* Counts a signal. The handler is installed without SA_RESTART. */
#ifndef WEIR_TEST_SIGNALS_H
#define WEIR_TEST_SIGNALS_H

/* Starts counting, from zero, until the end of the program. */
void signals_count(int number);

/* The count of the signal passed last. */
int signals_counted(void);

#endif
