/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A JSON value ends when all its brackets are closed. The scan state is kept between calls, so that
 * no byte is scanned twice.
 */
#include <weir/frames.h>

#include <string.h>

#include <weir/buf.h>

#include "base/options.h"
#include "codec/frames.h"

struct json_splitter {
    struct weir__frames frames;
    size_t scanned; /* bytes of the current value */
    size_t depth;   /* open brackets; 0 = between values */
    bool in_string;
    bool is_escaped;      /* the next character of the string is literal */
    weir_byte_set quotes; /* the bytes to look for in a string */
};

/* ---- searching ---- */

static size_t count_space(weir_span in)
{
    size_t count = 0;

    while (count < in.length && memchr(" \t\r\n", in.data[count], 4) != NULL)
        count++;
    return count;
}

/* Both continue the scan as far as there are bytes. */

static void scan_string(struct json_splitter *splitter, weir_span in)
{
    ssize_t found;

    if (splitter->is_escaped) {
        splitter->is_escaped = false;
        splitter->scanned++;
    }
    in = weir_span_of(in.data + splitter->scanned, in.length - splitter->scanned);
    found = weir_span_find_any(in, &splitter->quotes);
    if (found < 0) {
        splitter->scanned += in.length;
        return;
    }
    splitter->scanned += (size_t)found + 1;
    splitter->in_string = in.data[found] != '"';
    splitter->is_escaped = splitter->in_string;
}

/* Scans up to the next string or the end of the value. True if the value ended. */
static bool scan_brackets(struct json_splitter *splitter, weir_span in)
{
    size_t depth = splitter->depth, scanned = splitter->scanned;
    bool has_end = false, in_string = false;

    while (scanned < in.length && !has_end && !in_string) {
        switch (in.data[scanned++]) {
        case '"':
            in_string = true;
            break;
        case '{':
        case '[':
            depth++;
            break;
        case '}':
        case ']':
            has_end = --depth == 0;
            break;
        default:
            break;
        }
    }
    splitter->depth = depth;
    splitter->scanned = scanned;
    splitter->in_string = in_string;
    return has_end;
}

/* ---- decoding ---- */

static int skip(weir_ctx *ctx, weir_buf *in, bool has_end)
{
    struct json_splitter *splitter = weir_ctx_state(ctx);

    (void)weir_buf_skip(in, splitter->scanned);
    splitter->scanned = 0;
    if (has_end)
        weir__frames_skipped(ctx);
    return 1;
}

static int decode_value(weir_ctx *ctx, weir_buf *in, weir_msg **ret_msg)
{
    struct json_splitter *splitter = weir_ctx_state(ctx);
    weir_span bytes = weir_buf_span(in);
    bool has_end = false;
    size_t length;

    while (!has_end && splitter->scanned < bytes.length)
        if (splitter->in_string)
            scan_string(splitter, bytes);
        else
            has_end = scan_brackets(splitter, bytes);
    length = splitter->scanned;
    if (splitter->frames.is_skipping)
        return skip(ctx, in, has_end);
    if (length > splitter->frames.max_length)
        return weir__frames_too_long(ctx) ? skip(ctx, in, has_end) : 0;
    if (!has_end)
        return 0;
    splitter->scanned = 0;
    return weir__frames_cut(in, 0, length, 0, ret_msg);
}

static int decode(weir_ctx *ctx, weir_buf *in, weir_msg **ret_msg)
{
    const struct json_splitter *splitter = weir_ctx_state(ctx);
    uint8_t first;

    if (splitter->depth == 0) {
        (void)weir_buf_skip(in, count_space(weir_buf_span(in)));
        if (weir_buf_readable(in) == 0)
            return 0;
        first = weir_buf_bytes(in)[0];
        if (first != '{' && first != '[')
            return weir_decoder_fail(ctx, WEIR_EMALFORMED, "expected a JSON object or array");
    }
    return decode_value(ctx, in, ret_msg);
}

/* ---- options ---- */

static int init(void *state, const void *given)
{
    struct json_splitter *splitter = state;
    weir_json_splitter_options options;
    int err = weir__options_read(&options, sizeof(options), given);

    if (err == 0)
        err = weir__frames_init(&splitter->frames, "JSON value", options.max_length,
                                WEIR__FRAMES_MAX_LENGTH);
    if (err < 0)
        return err;
    splitter->frames.reports_after_skip = options.report_after_skip;
    weir_byte_set_init(&splitter->quotes, "\"\\", 2);
    return 0;
}

static const weir_decoder decoder = {
    .handler = {.name = "json-splitter", .init = init, WEIR_DECODER_SLOTS(struct json_splitter)},
    .decode = decode,
    .decode_last = weir__frames_last,
};

int weir_json_splitter_add(weir_pipeline *pipeline, const weir_json_splitter_options *options)
{
    return weir_pipeline_add_last(pipeline, &decoder.handler, options);
}
