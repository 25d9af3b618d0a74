/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What happened, in order, as words: handlers and the wire of a rig write, the test reads.
 *
 *     diary_write(diary, "read(%s)", text);
 *     assert_diary(diary, "attach a.added a.registered");
 *
 * Any thread may write.
 */
#ifndef WEIR_TEST_EVENT_LOG_H
#define WEIR_TEST_EVENT_LOG_H

#include <weir/base.h>

#include "os/thread.h"
#include "support/test.h"

#define DIARY_SIZE 8192

struct diary {
    weir__mutex lock;
    size_t length;
    char text[DIARY_SIZE];
};

void diary_open(struct diary *diary);
void diary_close(struct diary *diary);

/* Writes a word. */
void diary_write(struct diary *diary, const char *format, ...) WEIR_PRINTF(2, 3);

/* How often a word begins with this. */
unsigned diary_count(struct diary *diary, const char *word);

/* Forgets everything; or moves it to `ret_text`, of DIARY_SIZE, so that no word is lost between. */
void diary_clear(struct diary *diary);
void diary_take(struct diary *diary, char *ret_text);

/* These words, and no others, were written since the last look. */
#define assert_diary(diary, words)                 \
    do {                                           \
        assert_string_equal((diary)->text, words); \
        diary_clear(diary);                        \
    } while (0)

#endif
