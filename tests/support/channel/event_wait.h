/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiting for events that other threads log. A writer increments `notes` after each word.
 */
#ifndef WEIR_TEST_EVENT_WAIT_H
#define WEIR_TEST_EVENT_WAIT_H

#include "support/channel/event_log.h"
#include "support/executor/call_counter.h"

/* Waits until `count` words begin with `word`; fails the test after a timeout. */
void events_await(struct event_log *events, struct call_counter *notes, const char *word,
                  unsigned count);

/* Waits until the log has as many words as `words`, moves them to `said` (EVENT_LOG_SIZE bytes) and
 * returns it. */
const char *events_await_all(struct event_log *events, struct call_counter *notes,
                             const char *words, char *said);

#endif
