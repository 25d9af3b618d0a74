/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Words, one after the other.
 */
#include "support/channel/event_log.h"

#include <stdio.h>
#include <string.h>

#include "support/executor/global_executor.h"

void diary_open(struct diary *diary)
{
    weir__mutex_init(&diary->lock);
    diary->length = 0;
    diary->text[0] = '\0';
}

/* A channel that outlives its loop is taken apart by the global executor, and its handlers still
 * write. */
void diary_close(struct diary *diary)
{
    global_executor_stop();
    weir__mutex_deinit(&diary->lock);
}

static void clear_locked(struct diary *diary)
{
    diary->length = 0;
    diary->text[0] = '\0';
}

void diary_clear(struct diary *diary)
{
    weir__mutex_lock(&diary->lock);
    clear_locked(diary);
    weir__mutex_unlock(&diary->lock);
}

void diary_take(struct diary *diary, char *ret_text)
{
    weir__mutex_lock(&diary->lock);
    memcpy(ret_text, diary->text, DIARY_SIZE);
    clear_locked(diary);
    weir__mutex_unlock(&diary->lock);
}

void diary_write(struct diary *diary, const char *format, ...)
{
    va_list arguments;
    int written;

    weir__mutex_lock(&diary->lock);
    if (diary->length > 0 && diary->length + 1 < DIARY_SIZE)
        diary->text[diary->length++] = ' ';
    va_start(arguments, format);
    written = vsnprintf(diary->text + diary->length, DIARY_SIZE - diary->length, format, arguments);
    va_end(arguments);
    diary->length += (size_t)written;
    if (diary->length >= DIARY_SIZE)
        diary->length = DIARY_SIZE - 1;
    weir__mutex_unlock(&diary->lock);
}

unsigned diary_count(struct diary *diary, const char *word)
{
    size_t length = strlen(word);
    const char *at = diary->text;
    unsigned count = 0;

    weir__mutex_lock(&diary->lock);
    while (at != NULL && *at != '\0') {
        count += strncmp(at, word, length) == 0;
        at = strchr(at, ' ');
        at = at != NULL ? at + 1 : NULL;
    }
    weir__mutex_unlock(&diary->lock);
    return count;
}
