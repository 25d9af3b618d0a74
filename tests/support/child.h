/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Doing in a child process what must end it: a failed assert, an access that a sanitizer reports.
 */
#ifndef WEIR_TEST_CHILD_H
#define WEIR_TEST_CHILD_H

#include <stdbool.h>

/* Whether a copy of this process comes back from fn. What it prints meanwhile is thrown away. */
bool child_survives(void (*fn)(void));

#endif
