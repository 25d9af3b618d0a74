/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Selects a planted mistake (base/planted.h), in the runner that is built with them.
 */
#ifndef SIM_PLANTED_H
#define SIM_PLANTED_H

#include <stdbool.h>

/* Turns on the mistake of that name, "LOST_WAKEUP"; false if there is none. */
bool planted_select(const char *name);

/* Prints their names and texts. */
void planted_list(void);

#endif
