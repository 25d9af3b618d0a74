/* SPDX-License-Identifier: Apache-2.0 */
#include <weir/frames.h>

#include <stdio.h>
#include <string.h>

#include <weir/buf.h>

#include "base/options.h"
#include "codec/frame_write.h"
#include "codec/frames.h"

#define DIGITS_MAX 19 /* always fit into a uint64_t */

/* ---- inbound ---- */

static int fail(weir_ctx *ctx, const char *detail)
{
    return weir_decoder_fail(ctx, WEIR_EMALFORMED, detail);
}

/*
 * Reads the digits before the colon. Returns 1 and the length, or 0 if the colon has not arrived.
 */
static int read_length(weir_ctx *ctx, weir_span in, uint64_t *ret_length, size_t *ret_digits)
{
    uint64_t length = 0;

    for (size_t i = 0; i < in.length; i++) {
        if (in.data[i] == ':' && i > 0) {
            *ret_length = length;
            *ret_digits = i;
            return 1;
        }
        if (in.data[i] < '0' || in.data[i] > '9')
            return fail(ctx, "expected a decimal length and a colon");
        if (i > 0 && in.data[0] == '0')
            return fail(ctx, "netstring length with a leading zero");
        if (i == DIGITS_MAX)
            return fail(ctx, "netstring length of more than 19 digits");
        length = length * 10 + (in.data[i] - '0');
    }
    return 0;
}

static int fail_missing_comma(weir_ctx *ctx)
{
    return fail(ctx, "netstring without a comma at its end");
}

/* The end of a skipped netstring is verified as well: otherwise decoding would resume anywhere. */
static int skip_on(weir_ctx *ctx, weir_buf *in)
{
    const struct weir__frames *frames = weir_ctx_state(ctx);
    weir_span bytes = weir_buf_span(in);
    bool is_wrong = frames->skip_left <= bytes.length && bytes.data[frames->skip_left - 1] != ',';
    int result = weir__frames_skip_more(ctx, in);

    return is_wrong && !weir_ctx_is_removed(ctx) ? fail_missing_comma(ctx) : result;
}

static int decode(weir_ctx *ctx, weir_buf *in, weir_msg **ret_msg)
{
    struct weir__frames *frames = weir_ctx_state(ctx);
    weir_span bytes = weir_buf_span(in);
    uint64_t length = 0;
    size_t digits = 0, whole;
    int result;

    if (frames->is_skipping)
        return skip_on(ctx, in);
    result = read_length(ctx, bytes, &length, &digits);
    if (result <= 0)
        return result;
    if (length > frames->max_length) {
        frames->skip_left = digits + 1 + length + 1;
        return weir__frames_too_long(ctx) ? skip_on(ctx, in) : 0;
    }
    whole = digits + 1 + (size_t)length + 1;
    if (bytes.length >= whole && bytes.data[whole - 1] != ',')
        return fail_missing_comma(ctx);
    return weir__frames_take(ctx, in, whole, digits + 1, 1, ret_msg);
}

/* ---- outbound ---- */

static void on_write(weir_ctx *ctx, weir_msg *msg, weir_promise *done)
{
    int64_t length = weir__frame_content_length(msg);
    char head[DIGITS_MAX + 2];
    int head_length;

    if (length < 0) {
        weir_write(ctx, msg, done);
        return;
    }
    head_length = snprintf(head, sizeof(head), "%lld:", (long long)length);
    weir__frame_write(ctx, weir_span_of(head, (size_t)head_length), msg, weir_span_of(",", 1),
                      done);
}

/* ---- options ---- */

static int init(void *state, const void *given)
{
    struct weir__frames *frames = state;
    weir_netstrings_options options;
    int err = weir__options_read(&options, sizeof(options), given);

    if (err == 0)
        err = weir__frames_init(frames, "netstring", options.max_length, WEIR__FRAMES_MAX_LENGTH);
    if (err == 0)
        frames->reports_after_skip = options.report_after_skip;
    return err;
}

static const weir_decoder codec = {
    .handler = {.name = "netstrings",
                .init = init,
                .write = on_write,
                WEIR_DECODER_SLOTS(struct weir__frames)},
    .decode = decode,
    .decode_last = weir__frames_last,
};

int weir_netstrings_add(weir_pipeline *pipeline, const weir_netstrings_options *options)
{
    return weir_pipeline_add_last(pipeline, &codec.handler, options);
}
