/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The length of a frame is the value of its field plus `rest`, the bytes that the field does not
 * count. The value may be up to 2^64 - 1, so the sum may overflow.
 */
#include <weir/frames.h>

#include <string.h>

#include "base/options.h"
#include "codec/frames.h"

#define DEFAULT_WIDTH 4
#define WIDTH_MAX 8

struct length_field {
    struct weir__frames frames;
    size_t offset;
    size_t width;
    enum weir_byte_order order;
    size_t header; /* bytes up to the end of the field */
    int64_t rest;
    size_t strip;
};

/* ---- decoding ---- */

/* A sum that overflows is clamped: it is over any limit. */
static int length_of(weir_ctx *ctx, uint64_t value, uint64_t *ret_length)
{
    const struct length_field *field = weir_ctx_state(ctx);
    uint64_t length;

    if (field->rest < 0 && value < (uint64_t)-field->rest)
        return weir_decoder_fail(ctx, WEIR_EMALFORMED, "negative frame length");
    if (__builtin_add_overflow(value, (uint64_t)field->rest, &length) && field->rest > 0)
        length = UINT64_MAX;
    if (length < field->header)
        return weir_decoder_fail(ctx, WEIR_EMALFORMED, "frame length shorter than the header");
    if (length < field->strip)
        return weir_decoder_fail(ctx, WEIR_EMALFORMED, "frame length shorter than .strip");
    *ret_length = length;
    return 0;
}

static int decode(weir_ctx *ctx, weir_buf *in, weir_msg **ret_msg)
{
    const struct length_field *field = weir_ctx_state(ctx);
    uint64_t value = 0, length = 0;
    int err;

    if (field->frames.is_skipping)
        return weir__frames_skip_more(ctx, in);
    if (weir_buf_readable(in) < field->header)
        return weir_decoder_need(ctx, field->header);
    (void)weir_buf_get_uint(in, weir_buf_read_index(in) + field->offset, field->width, field->order,
                            &value);
    err = length_of(ctx, value, &length);
    if (err < 0)
        return err;
    if (length > field->frames.max_length)
        return weir__frames_skip(ctx, in, length);
    return weir__frames_take(ctx, in, (size_t)length, field->strip, 0, ret_msg);
}

/* ---- options ---- */

/* The maximum value of the field. */
static uint64_t value_max(size_t width)
{
    return UINT64_MAX >> (64 - 8 * width);
}

static const char *find_fault(const weir_length_field_options *options, size_t limit, size_t width)
{
    int64_t rest;

    if (width > WIDTH_MAX)
        return "width must be 1 to 8 bytes";
    if (options->order != WEIR_BIG_ENDIAN && options->order != WEIR_LITTLE_ENDIAN)
        return "unknown byte order";
    if (options->offset > limit || width > limit - options->offset)
        return "the length field lies beyond max_length";
    if (options->strip > limit)
        return "strip is above max_length";
    rest = (int64_t)(options->offset + width);
    if (options->adjustment > (int64_t)limit - rest)
        return "adjustment makes every frame longer than max_length";
    if (options->adjustment < 0 && (uint64_t) - (options->adjustment + 1) >= value_max(width))
        return "adjustment makes every frame length negative";
    return NULL;
}

static int init(void *state, const void *given)
{
    struct length_field *field = state;
    weir_length_field_options options;
    const char *fault;
    int err = weir__options_read(&options, sizeof(options), given);

    if (err == 0)
        err =
            weir__frames_init(&field->frames, "frame", options.max_length, WEIR__FRAMES_MAX_LENGTH);
    if (err < 0)
        return err;
    field->width = options.width > 0 ? options.width : DEFAULT_WIDTH;
    fault = find_fault(&options, field->frames.max_length, field->width);
    if (fault != NULL)
        return weir__frames_reject("length-field", fault);
    field->frames.reports_after_skip = options.report_after_skip;
    field->offset = options.offset;
    field->order = options.order;
    field->header = options.offset + field->width;
    field->rest = (int64_t)field->header + options.adjustment;
    field->strip = options.strip;
    return 0;
}

static const weir_decoder decoder = {
    .handler = {.name = "length-field", .init = init, WEIR_DECODER_SLOTS(struct length_field)},
    .decode = decode,
    .decode_last = weir__frames_last,
};

int weir_length_field_add(weir_pipeline *pipeline, const weir_length_field_options *options)
{
    return weir_pipeline_add_last(pipeline, &decoder.handler, options);
}
