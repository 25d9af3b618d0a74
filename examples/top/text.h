/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines of a terminal: cut off at its width, without control characters of others.
 */
#ifndef EXAMPLES_TOP_TEXT_H
#define EXAMPLES_TOP_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text {
    char *data; /* grows; NUL-terminated after text_end */
    size_t length, capacity;
    int width;  /* of the terminal; 0 = lines are not cut off */
    int column; /* of the current line */
    int lines;
    bool is_utf8; /* otherwise other characters than ASCII become "?" */
    bool has_styles;
    bool failed; /* no memory */
};

enum style {
    STYLE_PLAIN,
    STYLE_BOLD,
    STYLE_DIM,
    STYLE_REVERSE,
    STYLE_WARNING,
    STYLE_ALERT,
};

/* Appends a text, or spaces up to a column. */
void text_put(struct text *text, const char *words);
void text_printf(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_pad_to(struct text *text, int column);

/* True if the line has room for words, without spaces at their end; for a number of columns. */
bool text_fits(const struct text *text, const char *words);
bool text_has_room(const struct text *text, int columns);

/* Leaves out what follows in this line. */
void text_cut(struct text *text);

/* Appends words in a field, to its left or right edge, and cuts off what does not fit. */
void text_put_left(struct text *text, int width, const char *words);
void text_put_right(struct text *text, int width, const char *words);

/* A bar of which a part, in thousandths, is filled. */
void text_put_bar(struct text *text, int width, int64_t permille);

/* Ends the line. */
void text_end_line(struct text *text);

void text_set_style(struct text *text, enum style style);

/* ---- numbers: at most NUMBER_COLUMNS, into a buffer of NUMBER_SIZE ---- */

#define NUMBER_COLUMNS 6
#define NUMBER_SIZE 16

/* 950, 12.3k, 4.56M */
const char *format_count(double count, char *buffer);

/* 950B, 12.3K, 4.56M: units of 1024 */
const char *format_bytes(double bytes, char *buffer);

/* 950ns, 12.3us, 4.56ms, 7.8s, 12m05 */
const char *format_ns(int64_t ns, bool is_utf8, char *buffer);

#endif
