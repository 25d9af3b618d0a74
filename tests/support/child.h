/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Running code in a child process that is expected to crash: a failed assert, a sanitizer report.
 */
#ifndef WEIR_TEST_CHILD_H
#define WEIR_TEST_CHILD_H

#include <stdbool.h>
#include <stddef.h>

/* True if fn returns in a child process. Its output is discarded. */
bool child_survives(void (*fn)(void));

/*
 * True if fn terminates a child process and its stderr contains `text`. Any ASan report is accepted
 * too: it comes first if fn accesses freed memory.
 */
bool child_dies_with_output(void (*fn)(void), const char *text);

/* The beginning of what a child process, in which fn exits, writes to stderr. */
void child_output(void (*fn)(void), char *output, size_t size);

#endif
