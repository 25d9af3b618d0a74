/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/delimiters.h"

#include <string.h>

static uint8_t last_of(weir_span delimiter)
{
    return delimiter.data[delimiter.length - 1];
}

static bool share_last_byte(const weir_span *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (weir_span_find(list[i], last_of(list[0])) != (ssize_t)list[i].length - 1)
            return false;
    return true;
}

void weir__delimiters_init(struct weir__delimiters *delimiters, const weir_span *list, size_t count)
{
    uint8_t firsts[WEIR__DELIMITERS_MAX] = {0};

    for (size_t i = 0; i < count; i++) {
        firsts[i] = list[i].data[0];
        if (list[i].length > delimiters->longest)
            delimiters->longest = list[i].length;
    }
    weir_byte_set_init(&delimiters->firsts, firsts, count);
    delimiters->share_last_byte = share_last_byte(list, count);
    delimiters->list = list;
    delimiters->count = count;
}

/* ---- searching ---- */

enum found {
    NONE,
    PARTIAL, /* a prefix of the delimiter at the end of the bytes */
    ENTIRE,
};

static enum found compare(weir_span bytes, weir_span delimiter)
{
    size_t length = bytes.length < delimiter.length ? bytes.length : delimiter.length;

    if (memcmp(bytes.data, delimiter.data, length) != 0)
        return NONE;
    return length < delimiter.length ? PARTIAL : ENTIRE;
}

/* Finds the first delimiter of the list at the start of `bytes`. At the end of the stream, partial
 * matches do not count. */
static enum found compare_all(const struct weir__delimiters *delimiters, weir_span bytes,
                              bool is_end, size_t *ret_length)
{
    for (size_t i = 0; i < delimiters->count; i++) {
        enum found found = compare(bytes, delimiters->list[i]);

        if (found == NONE || (found == PARTIAL && is_end))
            continue;
        *ret_length = delimiters->list[i].length;
        return found;
    }
    return NONE;
}

/* The length of the longest delimiter that ends at `end`, which is the one that starts first; 0 =
 * none. */
static size_t length_ending_at(const struct weir__delimiters *delimiters, const uint8_t *bytes,
                               size_t end)
{
    size_t longest = 0;

    for (size_t i = 0; i < delimiters->count; i++) {
        weir_span delimiter = delimiters->list[i];

        if (delimiter.length <= end && delimiter.length > longest &&
            memcmp(bytes + end - delimiter.length, delimiter.data, delimiter.length) == 0)
            longest = delimiter.length;
    }
    return longest;
}

/*
 * If the last byte of every delimiter occurs nowhere else in the delimiters, as with line ends, the
 * first occurrence that ends a delimiter ends the frame. Searching for one byte is much faster.
 */
static bool find_last_byte(struct weir__delimiters *delimiters, weir_span in, size_t *ret_length)
{
    uint8_t last = last_of(delimiters->list[0]);
    const uint8_t *from = in.data + delimiters->searched, *end = in.data + in.length;
    size_t tail = in.length < delimiters->longest ? in.length : delimiters->longest - 1;

    while (from < end && (from = memchr(from, last, (size_t)(end - from))) != NULL) {
        size_t behind = (size_t)(++from - in.data);

        *ret_length = length_ending_at(delimiters, in.data, behind);
        delimiters->searched = behind - *ret_length;
        if (*ret_length > 0)
            return true;
    }
    if (delimiters->searched < in.length - tail) /* a delimiter may start in the tail */
        delimiters->searched = in.length - tail;
    return false;
}

/* Searches the unsearched bytes. True if a delimiter of `*ret_length` bytes follows the searched
 * ones. */
static bool find_first(struct weir__delimiters *delimiters, weir_span in, bool is_end,
                       size_t *ret_length)
{
    while (delimiters->searched < in.length) {
        weir_span rest = {in.data + delimiters->searched, in.length - delimiters->searched};
        ssize_t first = weir_span_find_any(rest, &delimiters->firsts);
        enum found found;

        if (first < 0) {
            delimiters->searched = in.length;
            return false;
        }
        delimiters->searched += (size_t)first;
        rest = weir_span_of(rest.data + first, rest.length - (size_t)first);
        found = compare_all(delimiters, rest, is_end, ret_length);
        if (found != NONE)
            return found == ENTIRE;
        delimiters->searched++;
    }
    return false;
}

static bool find(struct weir__delimiters *delimiters, weir_span in, bool is_end, size_t *ret_length)
{
    if (delimiters->share_last_byte && find_last_byte(delimiters, in, ret_length))
        return true;
    return find_first(delimiters, in, is_end, ret_length);
}

/* ---- decoding ---- */

/* Discards the bytes of a frame over the limit, including its delimiter if that was found. */
static int skip(weir_ctx *ctx, weir_buf *in, bool has_end, size_t length)
{
    struct weir__delimiters *delimiters = weir_ctx_state(ctx);
    size_t taken = delimiters->searched + (has_end ? length : 0);

    delimiters->searched = 0;
    (void)weir_buf_skip(in, taken);
    if (has_end)
        weir__frames_skipped(ctx);
    return taken > 0;
}

static int decode(weir_ctx *ctx, weir_buf *in, bool is_end, weir_msg **ret_msg)
{
    struct weir__delimiters *delimiters = weir_ctx_state(ctx);
    size_t length = 0, frame;
    bool has_end = find(delimiters, weir_buf_span(in), is_end, &length);

    if (delimiters->frames.is_skipping)
        return skip(ctx, in, has_end, length);
    if (delimiters->searched > delimiters->frames.max_length)
        return weir__frames_too_long(ctx) ? skip(ctx, in, has_end, length) : 0;
    if (!has_end)
        return 0;
    frame = delimiters->searched;
    delimiters->searched = 0;
    if (delimiters->keep_delimiter)
        return weir__frames_cut(in, 0, frame + length, 0, ret_msg);
    return weir__frames_cut(in, 0, frame, length, ret_msg);
}

int weir__delimiters_decode(weir_ctx *ctx, weir_buf *in, weir_msg **ret_msg)
{
    return decode(ctx, in, false, ret_msg);
}

int weir__delimiters_decode_last(weir_ctx *ctx, weir_buf *in, weir_msg **ret_msg)
{
    int result = decode(ctx, in, true, ret_msg);

    if (weir_buf_readable(in) == 0)
        (void)weir__frames_last(ctx, in, ret_msg);
    return result;
}
