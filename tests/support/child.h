/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Doing in a child process what must end it: a failed assert, an access that a sanitizer reports.
 */
#ifndef WEIR_TEST_CHILD_H
#define WEIR_TEST_CHILD_H

#include <stdbool.h>

/* Whether a copy of this process comes back from fn. What it prints meanwhile is thrown away. */
bool child_survives(void (*fn)(void));

/*
 * True if fn ends a copy of this process, and its last words contain the text. Under ASan a report
 * of it will do: it comes first where fn touches memory that was freed.
 */
bool child_dies_with_output(void (*fn)(void), const char *text);

#endif
