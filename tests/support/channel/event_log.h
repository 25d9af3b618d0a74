/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The events of a test, in order, as words. Handlers and the wire of a test_channel write them, the
 * test compares them.
 *
 *     event_log_write(events, "read(%s)", text);
 *     assert_events(events, "attach a.added a.registered");
 *
 * Any thread may write.
 */
#ifndef WEIR_TEST_EVENT_LOG_H
#define WEIR_TEST_EVENT_LOG_H

#include <weir/base.h>

#include "os/thread.h"
#include "support/test.h"

#define EVENT_LOG_SIZE 8192

struct event_log {
    weir__mutex lock;
    size_t length;
    char text[EVENT_LOG_SIZE];
};

void event_log_open(struct event_log *events);
void event_log_close(struct event_log *events);

/* Appends a word. */
void event_log_write(struct event_log *events, const char *format, ...) WEIR_PRINTF(2, 3);

/* The number of words that begin with `word`. */
unsigned event_log_count(struct event_log *events, const char *word);

/* Clears the log. event_log_take moves its text to `ret_text` (EVENT_LOG_SIZE bytes) first, in one
 * step. */
void event_log_clear(struct event_log *events);
void event_log_take(struct event_log *events, char *ret_text);

/* Exactly these words were written since the last call. */
#define assert_events(events, words)                \
    do {                                            \
        assert_string_equal((events)->text, words); \
        event_log_clear(events);                    \
    } while (0)

#endif
