/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/resp/resp_reader.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include <weir/buf.h>
#include <weir/error.h>

#include "protocol/resp/resp.h"
#include "protocol/resp/resp_inline.h"
#include "protocol/resp/resp_number.h"

#define LINE_END 2 /* CR LF */

/* ---- lifecycle and errors ---- */

void weir__resp_reader_init(weir__resp_reader *reader, const weir_resp_options *limits)
{
    *reader = (weir__resp_reader){.limits = *limits};
}

/* Releases attributes and the outermost value. All other open values belong to their parents. */
static void release_open(weir__resp_reader *reader)
{
    weir_resp *parent;

    for (weir_resp *value = reader->open; value != NULL; value = parent) {
        parent = value->parent;
        if (parent == NULL || value->kind == WEIR_RESP_ATTRIBUTE)
            weir_resp_release(value);
    }
    weir_resp_release(reader->attributes);
    reader->open = NULL;
    reader->attributes = NULL;
}

void weir__resp_reader_deinit(weir__resp_reader *reader)
{
    release_open(reader);
}

WEIR_PRINTF(3, 4) static int fail(weir__resp_reader *reader, int err, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(reader->detail, sizeof(reader->detail), format, arguments);
    va_end(arguments);
    return err;
}

static int malformed(weir__resp_reader *reader, const char *detail)
{
    return fail(reader, WEIR_EMALFORMED, "%s", detail);
}

static void reset_counts(weir__resp_reader *reader)
{
    reader->depth = 0;
    reader->elements = 0;
    reader->bytes = 0;
    reader->memory = 0;
}

/* ---- skipping ---- */

static bool is_skipping(const weir__resp_reader *reader)
{
    return reader->skip_values > 0;
}

/* Counts the values to skip: the current one, and all that have not started. A value whose
 * attributes are open has not started either. */
static void start_skipping(weir__resp_reader *reader)
{
    enum weir_resp_kind outermost = WEIR_RESP_ATTRIBUTE;

    for (const weir_resp *value = reader->open; value != NULL; value = value->parent) {
        reader->skip_values += value->left;
        outermost = value->kind;
    }
    reader->skip_values += outermost == WEIR_RESP_ATTRIBUTE;
    release_open(reader);
    reset_counts(reader);
}

static int skip_elements(weir__resp_reader *reader, enum weir_resp_kind kind, uint64_t count)
{
    if (weir__resp_kind_is_map(kind) && __builtin_mul_overflow(count, 2, &count))
        return malformed(reader, "too many elements");
    if (__builtin_add_overflow(reader->skip_values, count, &reader->skip_values))
        return malformed(reader, "too many elements");
    reader->skip_values -= kind != WEIR_RESP_ATTRIBUTE;
    return 1;
}

/* ---- building ---- */

/* Closes all aggregates that are complete. */
static void close_all(weir__resp_reader *reader, weir_msg **ret_msg)
{
    weir_resp *value;

    while (reader->open != NULL && reader->open->left == 0) {
        value = reader->open;
        reader->open = value->parent;
        reader->depth--;
        if (value->kind == WEIR_RESP_ATTRIBUTE) {
            reader->attributes = value;
            return; /* the value that it describes has not started, so nothing else is complete */
        }
        if (reader->open == NULL)
            *ret_msg = &value->msg;
    }
}

static int put_into_parent(weir__resp_reader *reader, weir_resp *value)
{
    value->attributes = reader->attributes;
    reader->attributes = NULL;
    if (reader->open == NULL)
        return 0;
    reader->open->left--;
    return weir_resp_add(reader->open, value);
}

/* Takes: value, which still expects `elements` elements. */
static int put(weir__resp_reader *reader, weir_resp *value, uint64_t elements, weir_msg **ret_msg)
{
    int err = value->kind == WEIR_RESP_ATTRIBUTE ? 0 : put_into_parent(reader, value);

    if (err < 0)
        return err;
    if (weir__resp_kind_is_aggregate(value->kind)) {
        value->parent = reader->open;
        value->left = elements;
        reader->open = value;
        reader->depth++;
    } else if (reader->open == NULL) {
        *ret_msg = &value->msg;
    }
    close_all(reader, ret_msg);
    if (*ret_msg != NULL)
        reset_counts(reader);
    return 1;
}

/* ---- lines: parsing by kind ---- */

struct line {
    enum weir_resp_kind kind;
    weir_span rest; /* after the first byte, without the line end */
    size_t length;  /* of the whole line */
};

/* Charges an element with a text of `length` bytes to max_memory. */
static int count_memory(weir__resp_reader *reader, size_t length)
{
    size_t max = reader->limits.max_memory, left = max - reader->memory;

    if (left < WEIR_RESP_ELEMENT_MEMORY || length > left - WEIR_RESP_ELEMENT_MEMORY)
        return fail(reader, WEIR_ETOOLONG, "value of %zu bytes of memory: max_memory is %zu",
                    reader->memory + WEIR_RESP_ELEMENT_MEMORY + length, max);
    reader->memory += WEIR_RESP_ELEMENT_MEMORY + length;
    return 0;
}

/* Charges a text of `length` bytes to max_bytes and max_memory. */
static int count_text(weir__resp_reader *reader, uint64_t length)
{
    size_t max = reader->limits.max_bytes;
    int err;

    if (length > max - reader->bytes)
        return fail(reader, WEIR_ETOOLONG,
                    "text of %" PRIu64 " bytes after %zu in the value: max_bytes is %zu", length,
                    reader->bytes, max);
    err = count_memory(reader, (size_t)length);
    if (err == 0)
        reader->bytes += (size_t)length;
    return err;
}

static int read_text_line(weir__resp_reader *reader, const struct line *line, weir_buf *in,
                          weir_msg **ret_msg)
{
    weir_resp *value;
    weir_buf *text;
    int err = count_text(reader, line->rest.length);

    if (err == 0)
        err = weir_buf_slice(in, weir_buf_read_index(in) + 1, line->rest.length, &text);
    if (err == 0)
        err = weir_resp_create_from(line->kind, text, &value);
    if (err == -EINVAL)
        return malformed(reader, line->kind == WEIR_RESP_BIG_NUMBER ? "invalid big number"
                                                                    : "CR within a line");
    return err < 0 ? err : put(reader, value, 0, ret_msg);
}

static int read_null(weir__resp_reader *reader, weir_msg **ret_msg)
{
    weir_resp *value;
    int err = count_memory(reader, 0);

    if (err == 0)
        err = weir_resp_create_null(&value);
    return err < 0 ? err : put(reader, value, 0, ret_msg);
}

static int read_scalar(weir__resp_reader *reader, const struct line *line, weir_msg **ret_msg)
{
    const weir_span *text = &line->rest;
    weir_resp *value;
    int64_t integer;
    double number;
    int err = count_memory(reader, 0);

    if (err < 0)
        return err;
    if (line->kind == WEIR_RESP_INTEGER && weir__resp_read_integer(*text, &integer) == 0)
        err = weir_resp_create_integer(integer, &value);
    else if (line->kind == WEIR_RESP_DOUBLE && weir__resp_read_double(*text, &number) == 0)
        err = weir_resp_create_double(number, &value);
    else if (line->kind == WEIR_RESP_BOOLEAN && text->length == 1 && *text->data == 't')
        err = weir_resp_create_boolean(true, &value);
    else if (line->kind == WEIR_RESP_BOOLEAN && text->length == 1 && *text->data == 'f')
        err = weir_resp_create_boolean(false, &value);
    else if (line->kind == WEIR_RESP_NULL && text->length == 0)
        err = weir_resp_create_null(&value);
    else
        return malformed(reader, "invalid number, boolean or null");
    return err < 0 ? err : put(reader, value, 0, ret_msg);
}

/* Parses the number after '$', '*' and the like. In RESP2, -1 is a null for these two. */
static int read_count(weir__resp_reader *reader, const struct line *line, bool *ret_is_null,
                      uint64_t *ret_count)
{
    bool may_be_null = line->kind == WEIR_RESP_BULK || line->kind == WEIR_RESP_ARRAY;
    int64_t count;

    if (weir__resp_read_integer(line->rest, &count) < 0)
        return malformed(reader, "invalid length");
    *ret_is_null = may_be_null && count == -1;
    if (count < 0 && !*ret_is_null)
        return malformed(reader, "negative length");
    *ret_count = *ret_is_null ? 0 : (uint64_t)count;
    return 0;
}

static bool is_streamed(const weir__resp_reader *reader, enum weir_resp_kind kind, uint64_t length)
{
    return kind == WEIR_RESP_BULK && reader->open == NULL && reader->attributes == NULL &&
           reader->limits.stream_threshold > 0 && length >= reader->limits.stream_threshold;
}

static int begin_bulk(weir__resp_reader *reader, enum weir_resp_kind kind, uint64_t length,
                      weir_msg **ret_msg)
{
    weir_resp *head;
    int err;

    if (is_streamed(reader, kind, length)) {
        err = weir_resp_create_bulk_header(length, &head);
        if (err < 0)
            return err;
        reader->stream_left = length;
        *ret_msg = &head->msg;
        return 1;
    }
    err = count_text(reader, length);
    if (err < 0)
        return err;
    reader->bulk = kind;
    reader->bulk_length = (size_t)length;
    return 1;
}

static int begin_aggregate(weir__resp_reader *reader, enum weir_resp_kind kind, uint64_t count,
                           weir_msg **ret_msg)
{
    size_t max = reader->limits.max_elements;
    weir_resp *value;
    int err;

    if (kind == WEIR_RESP_ATTRIBUTE && reader->attributes != NULL)
        return malformed(reader, "two attributes for one value");
    if (reader->depth == reader->limits.max_depth)
        return fail(reader, WEIR_ETOOLONG, "aggregates nested %u deep: max_depth is %u",
                    reader->depth + 1, reader->limits.max_depth);
    if (count > max || count << weir__resp_kind_is_map(kind) > max - reader->elements)
        return fail(reader, WEIR_ETOOLONG,
                    "aggregate of %" PRIu64 " %s after %zu elements: max_elements is %zu", count,
                    weir__resp_kind_is_map(kind) ? "pairs" : "elements", reader->elements, max);
    err = count_memory(reader, 0);
    if (err < 0)
        return err;
    count <<= weir__resp_kind_is_map(kind);
    reader->elements += (size_t)count;
    err = weir_resp_create_aggregate(kind, &value);
    return err < 0 ? err : put(reader, value, count, ret_msg);
}

static int read_counted(weir__resp_reader *reader, const struct line *line, weir_msg **ret_msg)
{
    bool is_aggregate = weir__resp_kind_is_aggregate(line->kind), is_null;
    uint64_t count = 0;
    int err = read_count(reader, line, &is_null, &count);

    if (err < 0)
        return err;
    if (is_null)
        return read_null(reader, ret_msg);
    if (is_aggregate)
        return begin_aggregate(reader, line->kind, count, ret_msg);
    return begin_bulk(reader, line->kind, count, ret_msg);
}

static int skip_counted(weir__resp_reader *reader, const struct line *line)
{
    bool is_null;
    uint64_t count = 0;
    int err = read_count(reader, line, &is_null, &count);

    if (err < 0)
        return err;
    if (weir__resp_kind_is_aggregate(line->kind))
        return skip_elements(reader, line->kind, count);
    reader->skip_bytes = is_null ? 0 : count + LINE_END;
    reader->skip_values--;
    return 1;
}

/* The maximum number of words of an inline command of `length` bytes. */
static size_t max_words(const weir__resp_reader *reader, size_t length)
{
    size_t max = reader->limits.max_memory, affordable = 0;

    if (max > length)
        affordable = (max - length) / WEIR_RESP_ELEMENT_MEMORY;
    return affordable < reader->limits.max_elements ? affordable : reader->limits.max_elements;
}

static int read_inline(weir__resp_reader *reader, const struct line *line, weir_buf *in,
                       weir_msg **ret_msg)
{
    size_t max = max_words(reader, line->length);
    weir_resp *command = NULL;
    int err = weir__resp_read_inline(in, line->length, max, &command);

    if (err == -EINVAL)
        return malformed(reader, "unclosed quote");
    if (err == -E2BIG)
        return fail(reader, WEIR_ETOOLONG,
                    "more than %zu words in a command: max_elements is %zu, max_memory is %zu", max,
                    reader->limits.max_elements, reader->limits.max_memory);
    if (err < 0)
        return err;
    if (command != NULL)
        *ret_msg = &command->msg;
    return 1;
}

/* ---- lines: splitting ---- */

static bool is_inline(const weir__resp_reader *reader, uint8_t first)
{
    return reader->limits.inline_commands && reader->open == NULL && reader->attributes == NULL &&
           !is_skipping(reader) && first != WEIR_RESP_ARRAY;
}

static int read_kind(weir__resp_reader *reader, const struct line *line, weir_buf *in,
                     weir_msg **ret_msg)
{
    switch (line->kind) {
    case WEIR_RESP_SIMPLE:
    case WEIR_RESP_ERROR:
    case WEIR_RESP_BIG_NUMBER:
        return read_text_line(reader, line, in, ret_msg);
    case WEIR_RESP_INTEGER:
    case WEIR_RESP_DOUBLE:
    case WEIR_RESP_BOOLEAN:
    case WEIR_RESP_NULL:
        return read_scalar(reader, line, ret_msg);
    case WEIR_RESP_BULK:
    case WEIR_RESP_BULK_ERROR:
    case WEIR_RESP_VERBATIM:
    case WEIR_RESP_ARRAY:
    case WEIR_RESP_MAP:
    case WEIR_RESP_SET:
    case WEIR_RESP_PUSH:
    case WEIR_RESP_ATTRIBUTE:
        return read_counted(reader, line, ret_msg);
    }
    return malformed(reader, "unknown type byte");
}

static int skip_kind(weir__resp_reader *reader, const struct line *line)
{
    enum weir_resp_kind kind = line->kind;

    if (weir__resp_kind_is_aggregate(kind) ||
        (weir__resp_kind_is_text(kind) && !weir__resp_kind_is_line(kind)))
        return skip_counted(reader, line);
    if (kind == 0 || strchr("+-(:,#_", (int)kind) == NULL)
        return malformed(reader, "unknown type byte");
    reader->skip_values--;
    return 1;
}

/* A line over a limit is the first one to be skipped. */
static int read_line(weir__resp_reader *reader, const struct line *line, weir_buf *in,
                     weir_msg **ret_msg)
{
    int result, skipped;

    if (is_skipping(reader))
        return skip_kind(reader, line);
    result = read_kind(reader, line, in, ret_msg);
    if (result != WEIR_ETOOLONG)
        return result;
    start_skipping(reader);
    skipped = skip_kind(reader, line);
    return skipped < 0 ? skipped : result;
}

static int take_line(weir__resp_reader *reader, weir_buf *in, size_t length, weir_msg **ret_msg)
{
    weir_span all = weir_span_of(weir_buf_bytes(in), length);
    struct line line = {.kind = (enum weir_resp_kind)all.data[0], .length = length};
    int result;

    if (is_inline(reader, all.data[0])) {
        result = read_inline(reader, &line, in, ret_msg);
    } else if (length < 1 + LINE_END || all.data[length - LINE_END] != '\r') {
        return malformed(reader, "line without CR LF");
    } else {
        line.rest = weir_span_of(all.data + 1, length - 1 - LINE_END);
        result = read_line(reader, &line, in, ret_msg);
    }
    (void)weir_buf_skip(in, length);
    return result;
}

/* The maximum length of a line up to its LF. */
static size_t longest(const weir__resp_reader *reader, uint8_t first)
{
    if (weir__resp_kind_is_line((enum weir_resp_kind)first) || is_inline(reader, first))
        return reader->limits.max_line + 2;
    return WEIR__RESP_NUMBER_MAX + 2;
}

/* The line is too long, with or without its end in the buffer: skips `length` bytes before that.
 * Only texts may be too long. */
static int start_skipping_line(weir__resp_reader *reader, weir_buf *in, size_t length)
{
    uint8_t first = *weir_buf_bytes(in);
    bool was_skipping = is_skipping(reader);

    if (!weir__resp_kind_is_line((enum weir_resp_kind)first) && !is_inline(reader, first))
        return malformed(reader, "number too long");
    if (!was_skipping)
        start_skipping(reader);
    reader->skip_line = true;
    reader->searched = 0;
    (void)weir_buf_skip(in, length);
    if (was_skipping)
        return 1;
    return fail(reader, WEIR_ETOOLONG, "line longer than max_line, %zu bytes",
                reader->limits.max_line);
}

static int find_line(weir__resp_reader *reader, weir_buf *in, weir_msg **ret_msg)
{
    size_t from = weir_buf_read_index(in);
    ssize_t end = weir_buf_find(in, from + reader->searched, '\n');
    size_t length = end >= 0 ? (size_t)end - from : weir_buf_readable(in);

    if (length > longest(reader, *weir_buf_bytes(in)))
        return start_skipping_line(reader, in, length);
    if (end < 0) {
        reader->searched = length;
        return 0;
    }
    reader->searched = 0;
    return take_line(reader, in, length + 1, ret_msg);
}

/* ---- the bytes of bulks ---- */

static int expect_line_end(weir__resp_reader *reader, const weir_buf *in, size_t offset)
{
    const uint8_t *bytes = weir_buf_bytes(in) + offset;

    if (bytes[0] != '\r' || bytes[1] != '\n')
        return malformed(reader, "bulk without CR LF at its end");
    return 0;
}

static int read_bulk(weir__resp_reader *reader, weir_buf *in, weir_msg **ret_msg, size_t *ret_need)
{
    enum weir_resp_kind kind = reader->bulk;
    weir_resp *value;
    weir_buf *text;
    int err;

    if (weir_buf_readable(in) < reader->bulk_length + LINE_END) {
        *ret_need = reader->bulk_length + LINE_END;
        return 0;
    }
    err = expect_line_end(reader, in, reader->bulk_length);
    if (err == 0)
        err = weir_buf_read_slice(in, reader->bulk_length, &text);
    if (err < 0)
        return err;
    reader->bulk = (enum weir_resp_kind)0;
    (void)weir_buf_skip(in, LINE_END);
    err = weir_resp_create_from(kind, text, &value);
    if (err == -EINVAL)
        return malformed(reader, "verbatim text without a format");
    return err < 0 ? err : put(reader, value, 0, ret_msg);
}

static int read_stream(weir__resp_reader *reader, weir_buf *in, weir_msg **ret_msg)
{
    size_t length = weir_buf_readable(in);
    weir_buf *piece;
    int err;

    if (length > reader->stream_left)
        length = (size_t)reader->stream_left;
    err = weir_buf_read_slice(in, length, &piece);
    if (err < 0)
        return err;
    reader->stream_left -= length;
    reader->stream_ends = reader->stream_left == 0;
    *ret_msg = weir_buf_msg(piece);
    return 1;
}

static int end_stream(weir__resp_reader *reader, weir_buf *in, size_t *ret_need)
{
    int err;

    if (weir_buf_readable(in) < LINE_END) {
        *ret_need = LINE_END;
        return 0;
    }
    err = expect_line_end(reader, in, 0);
    if (err < 0)
        return err;
    reader->stream_ends = false;
    (void)weir_buf_skip(in, LINE_END);
    return 1;
}

static int skip_bytes(weir__resp_reader *reader, weir_buf *in)
{
    size_t length = weir_buf_readable(in);

    if (length > reader->skip_bytes)
        length = (size_t)reader->skip_bytes;
    reader->skip_bytes -= length;
    (void)weir_buf_skip(in, length);
    return 1;
}

static int skip_line(weir__resp_reader *reader, weir_buf *in)
{
    size_t from = weir_buf_read_index(in);
    ssize_t end = weir_buf_find(in, from, '\n');

    (void)weir_buf_skip(in, end >= 0 ? (size_t)end + 1 - from : weir_buf_readable(in));
    if (end >= 0) {
        reader->skip_line = false;
        reader->skip_values--;
    }
    return 1;
}

/* ---- entry point ---- */

static int step(weir__resp_reader *reader, weir_buf *in, weir_msg **ret_msg, size_t *ret_need)
{
    if (reader->skip_bytes > 0)
        return skip_bytes(reader, in);
    if (reader->skip_line)
        return skip_line(reader, in);
    if (reader->stream_left > 0)
        return read_stream(reader, in, ret_msg);
    if (reader->stream_ends)
        return end_stream(reader, in, ret_need);
    if (reader->bulk != 0)
        return read_bulk(reader, in, ret_msg, ret_need);
    return find_line(reader, in, ret_msg);
}

int weir__resp_read(weir__resp_reader *reader, weir_buf *in, weir_msg **ret_msg, size_t *ret_need)
{
    int result;

    do
        result = step(reader, in, ret_msg, ret_need);
    while (result > 0 && *ret_msg == NULL && weir_buf_readable(in) > 0);
    if (result < 0) {
        weir_msg_release(*ret_msg);
        *ret_msg = NULL;
    }
    return result;
}
