/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiting for what is written into a diary on other threads: whoever writes there counts a note
 * after it.
 */
#ifndef WEIR_TEST_EVENT_WAIT_H
#define WEIR_TEST_EVENT_WAIT_H

#include "support/channel/event_log.h"
#include "support/executor/call_counter.h"

/* Waits until `count` words begin with this one; fails the test if that takes too long. */
void notes_await(struct diary *diary, struct call_counter *notes, const char *word, unsigned count);

/* Waits until there are as many words as these, copies them to `said` (DIARY_SIZE), which is
 * returned, and forgets them. */
const char *notes_heard(struct diary *diary, struct call_counter *notes, const char *words,
                        char *said);

#endif
