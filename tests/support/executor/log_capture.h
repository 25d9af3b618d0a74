/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Catches what the library logs, so that a test can look at it and its output stays clean.
 */
#ifndef WEIR_TEST_LOG_CAPTURE_H
#define WEIR_TEST_LOG_CAPTURE_H

#include <errno.h>
#include <stdbool.h>

#include <weir/log.h>

#include "support/test.h"

/* From now until the end of the test messages are caught, not written; earlier ones are forgotten.
 */
void log_capture_start(void);

/* How many came at this level; any thread may have sent them. */
unsigned log_capture_count(enum weir_log_level level);

/* Whether the last one contains the text. */
bool log_capture_last_contains(const char *text);

/* A call refuses its options, and one message says why. */
#define assert_options_rejected(call, words)                    \
    do {                                                        \
        log_capture_start();                                    \
        assert_int_equal(call, -EINVAL);                        \
        assert_int_equal(log_capture_count(WEIR_LOG_ERROR), 1); \
        assert_log_contains(words);                             \
    } while (0)

#define assert_log_contains(words)                                    \
    do {                                                              \
        if (!log_capture_last_contains(words))                        \
            fail_msg("the last message does not contain: %s", words); \
    } while (0)

#endif
