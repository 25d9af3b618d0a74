/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waits by the number of writes.
 */
#include "support/channel/event_wait.h"

void events_await(struct event_log *events, struct call_counter *notes, const char *word,
                  unsigned count)
{
    for (;;) {
        uint32_t calls = atomic_load(&notes->calls);

        if (event_log_count(events, word) >= count)
            return;
        if (!call_counter_await(notes, calls + 1))
            fail_msg("waiting for %s; events: %s", word, events->text);
    }
}

static unsigned count_words(const char *words)
{
    unsigned count = *words != '\0';

    for (; *words != '\0'; words++)
        count += *words == ' ';
    return count;
}

const char *events_await_all(struct event_log *events, struct call_counter *notes,
                             const char *words, char *said)
{
    events_await(events, notes, "", count_words(words));
    event_log_take(events, said);
    return said;
}
