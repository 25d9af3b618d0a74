/* SPDX-License-Identifier: Apache-2.0 */
#include "top/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void append(struct text *text, const char *bytes, size_t length)
{
    if (text->capacity - text->length <= length) {
        size_t capacity = 2 * text->capacity + length + 1024;
        char *grown = realloc(text->data, capacity);

        if (grown == NULL) {
            text->failed = true;
            return;
        }
        text->data = grown;
        text->capacity = capacity;
    }
    memcpy(text->data + text->length, bytes, length);
    text->length += length;
    text->data[text->length] = '\0';
}

/* The length of the character at `at`, in UTF-8 that is valid. */
static size_t character_length(const char *at)
{
    size_t length = 1;

    while ((at[length] & 0xc0) == 0x80)
        length++;
    return length;
}

static bool is_control(const char *at)
{
    unsigned char first = (unsigned char)at[0];

    return first < 0x20 || first == 0x7f || (first == 0xc2 && (unsigned char)at[1] < 0xa0);
}

static void put_character(struct text *text, const char *at, size_t length)
{
    if (text->width > 0 && text->column >= text->width)
        return;
    if (is_control(at) || (length > 1 && !text->is_utf8))
        append(text, "?", 1);
    else
        append(text, at, length);
    text->column++;
}

/* Puts at most `max` characters; returns their number. */
static int put_up_to(struct text *text, int max, const char *words)
{
    int count = 0;

    for (size_t length; *words != '\0' && count < max; words += length, count++) {
        length = character_length(words);
        put_character(text, words, length);
    }
    return count;
}

static int count_columns(const char *words)
{
    int count = 0;

    for (; *words != '\0'; words += character_length(words))
        count++;
    return count;
}

bool text_has_room(const struct text *text, int columns)
{
    return text->width == 0 || text->column + columns <= text->width;
}

bool text_fits(const struct text *text, const char *words)
{
    int columns = count_columns(words);

    for (const char *end = words + strlen(words); end > words && end[-1] == ' '; end--)
        columns--;
    return text_has_room(text, columns);
}

void text_cut(struct text *text)
{
    text->column = text->width;
}

void text_put(struct text *text, const char *words)
{
    (void)put_up_to(text, 1000, words);
}

void text_printf(struct text *text, const char *format, ...)
{
    char words[1000];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(words, sizeof(words), format, arguments);
    va_end(arguments);
    text_put(text, words);
}

void text_pad_to(struct text *text, int column)
{
    while (text->column < column && (text->width == 0 || text->column < text->width))
        put_character(text, " ", 1);
}

void text_put_left(struct text *text, int width, const char *words)
{
    int count = put_up_to(text, width, words);

    for (; count < width; count++)
        put_character(text, " ", 1);
}

void text_put_right(struct text *text, int width, const char *words)
{
    for (int count = count_columns(words); count < width; count++)
        put_character(text, " ", 1);
    (void)put_up_to(text, width, words);
}

/* Eighths of a block, so that small changes are seen. */
void text_put_bar(struct text *text, int width, int64_t permille)
{
    static const char *const parts[] = {" ", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"};
    int64_t eighths = (permille * width * 8 + 500) / 1000;

    for (int i = 0; i < width; i++, eighths -= 8) {
        int64_t part = eighths < 0 ? 0 : eighths > 8 ? 8 : eighths;

        text_put(text, text->is_utf8 ? parts[part] : part >= 4 ? "#" : ".");
    }
}

void text_end_line(struct text *text)
{
    append(text, "\n", 1);
    text->column = 0;
    text->lines++;
}

void text_set_style(struct text *text, enum style style)
{
    static const char *const codes[] = {
        [STYLE_PLAIN] = "\033[0m",   [STYLE_BOLD] = "\033[1m",     [STYLE_DIM] = "\033[2m",
        [STYLE_REVERSE] = "\033[7m", [STYLE_WARNING] = "\033[33m", [STYLE_ALERT] = "\033[1;31m",
    };

    if (text->has_styles)
        append(text, codes[style], strlen(codes[style]));
}

/* ---- numbers ---- */

/* Three digits and a unit; numbers of the first unit are whole. */
static const char *format_scaled(double value, double step, const char *const *units, char *buffer)
{
    const char *const *unit = units;
    int decimals = 0;

    if (value < 0)
        value = 0;
    for (; value >= 999.5 && unit[1] != NULL; unit++)
        value /= step;
    if (unit != units)
        decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
    (void)snprintf(buffer, NUMBER_SIZE, "%.*f%s", decimals, value, *unit);
    return buffer;
}

const char *format_count(double count, char *buffer)
{
    static const char *const units[] = {"", "k", "M", "G", "T", "P", "E", NULL};

    return format_scaled(count, 1000, units, buffer);
}

const char *format_bytes(double bytes, char *buffer)
{
    static const char *const units[] = {"B", "K", "M", "G", "T", "P", "E", NULL};

    return format_scaled(bytes, 1024, units, buffer);
}

const char *format_ns(int64_t ns, bool is_utf8, char *buffer)
{
    static const char *const units[] = {"ns", "us", "ms", "s", NULL};
    static const char *const utf8_units[] = {"ns", "µs", "ms", "s", NULL};
    int64_t seconds = ns / 1000000000;

    if (seconds < 100)
        return format_scaled((double)ns, 1000, is_utf8 ? utf8_units : units, buffer);
    if (seconds < 100 * 60)
        (void)snprintf(buffer, NUMBER_SIZE, "%dm%02d", (int)(seconds / 60), (int)(seconds % 60));
    else if (seconds < 100 * 3600)
        (void)snprintf(buffer, NUMBER_SIZE, "%dh%02d", (int)(seconds / 3600),
                       (int)(seconds / 60 % 60));
    else
        (void)snprintf(buffer, NUMBER_SIZE, "%lldd", (long long)(seconds / 86400));
    return buffer;
}
