/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Captures log messages, so that a test can check them and its output stays clean.
 */
#ifndef WEIR_TEST_LOG_CAPTURE_H
#define WEIR_TEST_LOG_CAPTURE_H

#include <errno.h>
#include <stdbool.h>

#include <weir/log.h>

#include "support/test.h"

/* Captures messages, instead of writing them, until the end of the test; forgets earlier ones. */
void log_capture_start(void);

/* The number of messages at this level, from any thread. */
unsigned log_capture_count(enum weir_log_level level);

/* True if the last message contains the text. */
bool log_capture_last_contains(const char *text);

/* Asserts that a call rejects its options with one message that contains the text. */
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
