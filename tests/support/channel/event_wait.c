/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A diary, and how often it was written to.
 */
#include "support/channel/event_wait.h"

void notes_await(struct diary *diary, struct call_counter *notes, const char *word, unsigned count)
{
    for (;;) {
        uint32_t calls = atomic_load(&notes->calls);

        if (diary_count(diary, word) >= count)
            return;
        if (!call_counter_await(notes, calls + 1))
            fail_msg("waiting for %s, heard: %s", word, diary->text);
    }
}

static unsigned count_words(const char *words)
{
    unsigned count = *words != '\0';

    for (; *words != '\0'; words++)
        count += *words == ' ';
    return count;
}

const char *notes_heard(struct diary *diary, struct call_counter *notes, const char *words,
                        char *said)
{
    notes_await(diary, notes, "", count_words(words));
    diary_take(diary, said);
    return said;
}
