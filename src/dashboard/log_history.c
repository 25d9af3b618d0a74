/* SPDX-License-Identifier: Apache-2.0 */
#include "dashboard/log_history.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <weir/memory.h>

#include "os/clock.h"
#include "os/mutex.h"

struct line {
    int64_t time_ns;
    enum weir_log_level level;
    char subsystem[24];
    char object[48];
    char text[512];
};

struct weir__log_history {
    weir__mutex mutex;
    uint64_t count; /* lines so far: line n, from 1, is at (n - 1) % capacity */
    size_t capacity;
    struct line lines[];
};

int weir__log_history_create(int lines, weir__log_history **ret_history)
{
    size_t size = sizeof(weir__log_history) + (size_t)lines * sizeof(struct line);
    weir__log_history *history = weir_memory_alloc(size);

    if (history == NULL)
        return -ENOMEM;
    weir__mutex_init(&history->mutex);
    history->count = 0;
    history->capacity = (size_t)lines;
    *ret_history = history;
    return 0;
}

void weir__log_history_free(weir__log_history *history)
{
    if (history == NULL)
        return;
    weir__mutex_deinit(&history->mutex);
    weir_memory_free(history);
}

static void copy(char *to, size_t size, const char *text)
{
    size_t length = strnlen(text, size - 1);

    memcpy(to, text, length);
    to[length] = '\0';
}

void weir__log_history_add(void *user_data, enum weir_log_level level, const char *subsystem,
                           const char *object, const char *message)
{
    weir__log_history *history = user_data;
    int64_t now_ns = weir_time_of_day();
    struct line *line;

    weir__mutex_lock(&history->mutex);
    line = &history->lines[history->count++ % history->capacity];
    line->time_ns = now_ns;
    line->level = level;
    copy(line->subsystem, sizeof(line->subsystem), subsystem);
    copy(line->object, sizeof(line->object), object);
    copy(line->text, sizeof(line->text), message);
    weir__mutex_unlock(&history->mutex);
}

static void write_line(weir__json *json, uint64_t number, const struct line *line)
{
    weir__json_open(json, '[');
    weir__json_int(json, (int64_t)number);
    weir__json_int(json, line->time_ns / 1000000);
    weir__json_text(json, weir_log_level_name(line->level));
    weir__json_text(json, line->subsystem);
    weir__json_text(json, line->object);
    weir__json_text(json, line->text);
    weir__json_close(json, ']');
}

/* Copies the line with a number, or the oldest one after it. False: there is none. */
static bool read_line(weir__log_history *history, uint64_t *number, struct line *ret_line)
{
    bool is_found;

    weir__mutex_lock(&history->mutex);
    if (*number + history->capacity <= history->count)
        *number = history->count - history->capacity + 1;
    is_found = *number <= history->count;
    if (is_found)
        *ret_line = history->lines[(*number - 1) % history->capacity];
    weir__mutex_unlock(&history->mutex);
    return is_found;
}

uint64_t weir__log_history_write(weir__log_history *history, uint64_t after, weir__json *json)
{
    uint64_t number = after + 1;
    struct line line;

    weir__json_open(json, '[');
    while (history != NULL && json->err == 0 && read_line(history, &number, &line)) {
        write_line(json, number, &line);
        after = number++;
    }
    weir__json_close(json, ']');
    return after;
}
