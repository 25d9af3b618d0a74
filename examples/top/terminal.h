/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The terminal: keys without waiting for a line, and a screen of its own, which is left as it was.
 */
#ifndef EXAMPLES_TOP_TERMINAL_H
#define EXAMPLES_TOP_TERMINAL_H

#include <stdbool.h>

/* Changes the terminal of standard input and output; leaves it at exit. False if it cannot. */
bool terminal_enter(void);

/* Restores the terminal. Does nothing if it is not entered. */
void terminal_leave(void);

/* The number of its columns and lines; 80 and 24 if they are unknown. */
void terminal_read_size(int *ret_width, int *ret_height);

/* Replaces everything that is shown. */
void terminal_show(const char *lines);

/* A character or a KEY_ of screen.h; 0 if there is none now, or an unknown sequence; -1 at the end
 * of the input. */
int terminal_read_key(void);

#endif
