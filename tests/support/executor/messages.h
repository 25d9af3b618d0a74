/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Catches what the library logs, so that a test can look at it and its output stays clean.
 */
#ifndef WEIR_TEST_MESSAGES_H
#define WEIR_TEST_MESSAGES_H

#include <stdbool.h>

#include <weir/log.h>

/* From now until the end of the test messages are caught, not written; earlier ones are forgotten.
 */
void messages_catch(void);

/* How many came at this level; any thread may have sent them. */
unsigned messages_count(enum weir_log_level level);

/* Whether the last one contains the text. */
bool messages_last_contains(const char *text);

#endif
