/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The event log: words separated by spaces.
 */
#include "support/channel/event_log.h"

#include <stdio.h>
#include <string.h>

#include "support/executor/global_executor.h"

void event_log_open(struct event_log *events)
{
    weir__mutex_init(&events->lock);
    events->length = 0;
    events->text[0] = '\0';
}

/* A channel that outlives its loop is torn down by the global executor, where its handlers may
 * still write. */
void event_log_close(struct event_log *events)
{
    global_executor_stop();
    weir__mutex_deinit(&events->lock);
}

static void clear_locked(struct event_log *events)
{
    events->length = 0;
    events->text[0] = '\0';
}

void event_log_clear(struct event_log *events)
{
    weir__mutex_lock(&events->lock);
    clear_locked(events);
    weir__mutex_unlock(&events->lock);
}

void event_log_take(struct event_log *events, char *ret_text)
{
    weir__mutex_lock(&events->lock);
    memcpy(ret_text, events->text, EVENT_LOG_SIZE);
    clear_locked(events);
    weir__mutex_unlock(&events->lock);
}

void event_log_write(struct event_log *events, const char *format, ...)
{
    va_list arguments;
    int written;

    weir__mutex_lock(&events->lock);
    if (events->length > 0 && events->length + 1 < EVENT_LOG_SIZE)
        events->text[events->length++] = ' ';
    va_start(arguments, format);
    written = vsnprintf(events->text + events->length, EVENT_LOG_SIZE - events->length, format,
                        arguments);
    va_end(arguments);
    events->length += (size_t)written;
    if (events->length >= EVENT_LOG_SIZE)
        events->length = EVENT_LOG_SIZE - 1;
    weir__mutex_unlock(&events->lock);
}

unsigned event_log_count(struct event_log *events, const char *word)
{
    size_t length = strlen(word);
    const char *at = events->text;
    unsigned count = 0;

    weir__mutex_lock(&events->lock);
    while (at != NULL && *at != '\0') {
        count += strncmp(at, word, length) == 0;
        at = strchr(at, ' ');
        at = at != NULL ? at + 1 : NULL;
    }
    weir__mutex_unlock(&events->lock);
    return count;
}
